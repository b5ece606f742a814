// A list of tasks that may be long: read in pieces, one chain of pieces for each heading, and kept fresh where somebody looks.
// What is known of a task is cut down to what a row shows, so that a hundred thousand rows fit into the page.
import { get, read } from "./api.js";
import { whenEvent } from "./state.js";

export const PIECE = 200;
const FRESH_MS = 1000, LOST_MAX = 20, PIECES_FRESH_MAX = 4;

/** What a row shows of a task. @param {any} task @param {number} at */
const thin = (task, at) => ({
  id: task.id, title: task.title, labels: task.labels?.slice(0, 1), state: task.state, status: task.status, stopping: task.stopping, queue: task.queue,
  attempt: task.attempt, maxAttempts: task.maxAttempts, workerId: task.workerId, leaseMs: task.leaseMs, at, note: task.note, percent: task.percent, reason: task.reason,
  why: task.why ? { text: task.why.text } : undefined, question: task.question ? { text: task.question.text } : undefined,
  error: task.error ? { message: task.error.message } : undefined, createdAt: task.createdAt, updatedAt: task.updatedAt,
});

/** @typedef {{ name: string, states: string[] }} Heading */
/** @typedef {{ path: string, ids: string[] }} Piece */
/** @typedef {Heading & { pieces: Piece[], ids: string[], known: Set<string>, next: string | null, busy: boolean }} Chain */

/** @param {Heading[]} headings @param {Record<string, string>} filter @param {() => void} changed */
export function openList(headings, filter, changed) {
  const rows = new Map();
  /** @type {Chain[]} */
  const chains = headings.map(one => ({ ...one, pieces: [], ids: [], known: new Set(), next: first(one.states), busy: false }));
  /** @type {Map<string, number>} */
  const fresh = new Map();        // ids that are not shown yet, with their heading
  const soiled = new Set();       // shown tasks that an event named since they were read
  let seen = /** @type {[number, number][]} */ ([]); // heading and row where somebody looks: from, to
  let over = false, due = 0, busy = false, isNews = false;
  const list = { chains, rows, fresh, failed: "", ready: false, more, look, refresh, take, end };

  /** @param {string[]} states */
  function first(states) {
    const query = new URLSearchParams({ ...filter, state: states.join(","), include: "why", limit: String(PIECE) });
    return "/api/tasks?" + query;
  }

  /** @param {any[]} tasks */
  const keep = tasks => { const at = performance.now(); for (const task of tasks) { rows.set(task.id, thin(task, at)); soiled.delete(task.id); } };

  /** The next piece of a heading. @param {number} i */
  async function more(i) {
    const chain = chains[i];
    if (chain.busy || chain.next === null || over) return;
    chain.busy = true;
    const path = chain.next;
    try {
      const { value, next } = await read(path);
      if (over) return;
      keep(value);
      const ids = value.map((/** @type {any} */ task) => task.id).filter((/** @type {string} */ id) => !chain.known.has(id));
      for (const id of ids) { fresh.delete(id); chain.known.add(id); chain.ids.push(id); }
      chain.pieces.push({ path, ids });
      chain.next = next;
      list.failed = "";
    } catch (fault) {
      list.failed = /** @type {Error} */ (fault).message;
    }
    chain.busy = false;
    if (!over) changed();
  }

  /** Everything from the beginning, in the order that holds now. */
  async function take() {
    if (busy || over) return;
    busy = true;
    try {
      const answers = await Promise.all(chains.map(chain => read(first(chain.states))));
      if (over) return;
      answers.forEach(({ value, next }, i) => {
        const ids = value.map((/** @type {any} */ task) => task.id);
        Object.assign(chains[i], { pieces: [{ path: first(chains[i].states), ids }], ids: [...ids], known: new Set(ids), next });
      });
      rows.clear();
      answers.forEach(({ value }) => keep(value));
      fresh.clear();
      soiled.clear();
      list.failed = "";
      list.ready = true;
    } catch (fault) {
      list.failed = /** @type {Error} */ (fault).message;
    } finally {
      busy = false;
    }
    if (!over) changed();
  }

  /** Read again what is in view and the beginning of each heading, where new tasks come; then what has left both. */
  async function refresh() {
    if (busy || over || !list.ready) return;
    busy = true;
    isNews = false;
    try {
      for (let i = 0; i < chains.length; i++) {
        for (const piece of inView(i)) {
          const { value } = await read(piece.path);
          if (over) return;
          keep(value);
          for (const task of value) if (!chains[i].known.has(task.id)) fresh.set(task.id, i);
        }
      }
      const shown = new Set(chains.flatMap((chain, i) => seen[i] ? chain.ids.slice(...seen[i]) : []));
      for (const id of [...soiled].filter(one => shown.has(one)).slice(0, LOST_MAX)) {
        soiled.delete(id);
        await get(`/api/tasks/${encodeURIComponent(id)}?include=why`).then(task => keep([task]), () => { /* it is purged, or not ours any more */ });
        if (over) return;
      }
      for (const [id, i] of fresh) if (!chains[i].states.includes(rows.get(id)?.state)) fresh.delete(id);
      list.failed = "";
    } catch (fault) {
      list.failed = /** @type {Error} */ (fault).message;
    } finally {
      busy = false;
    }
    if (!over) changed();
    if (isNews) soon();
  }

  /** @param {number} i @returns {Piece[]} */
  function inView(i) {
    const [from, to] = seen[i] ?? [0, 0], found = chains[i].pieces.slice(0, 1);
    let at = 0;
    for (const piece of chains[i].pieces) {
      if (at < to && at + piece.ids.length > from && !found.includes(piece)) found.push(piece);
      at += piece.ids.length;
    }
    return found.slice(0, PIECES_FRESH_MAX);
  }

  /** @param {[number, number][]} ranges */
  function look(ranges) { seen = ranges; }

  const soon = () => { due ||= window.setTimeout(() => { due = 0; if (document.hidden) soon(); else refresh(); }, FRESH_MS); };
  const ends = whenEvent(event => {
    if (!/^(task|claim|gate|queue|worker|hold|group|slot|execution|bulk)\./.test(event.type)) return;
    if (event.task && rows.has(event.task)) soiled.add(event.task);
    isNews = true;
    if (!busy) soon();
  });

  function end() { over = true; clearTimeout(due); ends(); }

  take();
  return list;
}
