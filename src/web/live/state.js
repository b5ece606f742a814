// What the page knows: state from REST, and events after it. Parts of the page read signals; nothing else keeps a copy.
import { computed, signal } from "@preact/signals";
import { get, keepSession, session, whenUnauthorized } from "./api.js";
import { renew } from "./renew.js";
import { openStream } from "./stream.js";

export const me = signal(session());
export const problem = signal("");            // why there is no session
export const route = signal(readRoute());
export const now = signal(Date.now());         // the server's clock, once a second
export const stream = signal(/** @type {{ state: string, since: number, seq: number }} */ ({ state: "away", since: Date.now(), seq: 0 }));
export const events = signal(/** @type {any[]} */ ([]));     // newest first
export const version = signal(/** @type {any} */ (null));
export const toasts = signal(/** @type {any[]} */ ([]));
export const command = signal("");             // what the hovered control would type
export const overlay = signal(/** @type {"" | "palette" | "keys" | "add" | "addTask"} */ (""));
export const retryAt = signal(0);                // when the stream is asked for again, by this browser's clock
export const theme = signal("");                // which of the two is chosen; a plot is drawn again when it changes
export const stale = computed(() => stream.value.state !== "live" && now.value - stream.value.since > 5000);

const EVENTS_MAX = 500, BEFORE_EVENTS = 200, REFRESH_MS = 1000;
let skew = 0;

export const serverNow = () => Date.now() + skew;

/** #/tasks?queue=ci → {page, id, query}. */
function readRoute() {
  const hash = location.hash.replace(/^#\/?/, "");
  const [path, query] = hash.startsWith("k=") ? ["", ""] : hash.split("?");
  const [page, id] = (path || "overview").split("/");
  return { page, id: id ? decodeURIComponent(id) : "", query: new URLSearchParams(query ?? "") };
}

/** @param {string} page @param {string} [id] @param {Record<string, string>} [query] */
export function href(page, id, query) {
  const text = new URLSearchParams(query ?? {}).toString();
  return `#/${page}${id ? "/" + encodeURIComponent(id) : ""}${text ? "?" + text : ""}`;
}

/** @param {string} where */
export const go = where => { location.hash = where; };

addEventListener("hashchange", () => {
  if (/^#k=/.test(location.hash)) { location.reload(); return; } // a link that was opened in a tab that is here already
  route.value = readRoute();
});

// ---- resources: a path, its last answer, and when it came --------------------------------------------------

/** @typedef {{ path: string, kinds: string[], value: import("@preact/signals").Signal<any>, at: number, users: number,
 *   dirty: boolean, busy: boolean, failed: import("@preact/signals").Signal<string> }} Resource */
/** @type {Map<string, Resource>} */
const resources = new Map();

/** The answer of GET path, kept fresh while somebody uses it: `kinds` are the beginnings of event types that change it.
 * @param {string} path @param {string[]} kinds */
export function resource(path, kinds) {
  let found = resources.get(path);
  if (!found) {
    found = { path, kinds, value: signal(undefined), at: 0, users: 0, dirty: true, busy: false, failed: signal("") };
    resources.set(path, found);
  }
  return found;
}

/** @param {Resource} one */
export function retain(one) {
  one.users++;
  if (one.dirty) refresh(one);
  // The next page takes it before it gives it up: what nobody has in the end is forgotten, and no sooner.
  return () => { one.users--; setTimeout(() => { if (one.users === 0 && resources.get(one.path) === one) resources.delete(one.path); }); };
}

/** @param {Resource} one */
export async function refresh(one) {
  if (!me.value) return;
  if (one.busy) { one.dirty = true; return; } // the answer under way may be older than what happened since
  one.busy = true;
  one.dirty = false;
  try {
    const answer = await get(one.path);
    one.at = performance.now();
    one.failed.value = "";
    one.value.value = answer;
    if (one.dirty) soon();
  } catch (fault) {
    one.failed.value = /** @type {Error} */ (fault).message;
    one.dirty = true;
  } finally {
    one.busy = false;
  }
}

/** Everything that somebody looks at, again. */
export const refreshAll = () => {
  for (const one of resources.values()) if (one.users) refresh(one);
  for (const listen of listeners) listen({ type: "task.", task: undefined });
};

/** @type {Set<(event: any) => void>} */
const listeners = new Set();
/** Each event, as it comes. @param {(event: any) => void} listen */
export const whenEvent = listen => { listeners.add(listen); return () => { listeners.delete(listen); }; };

let due = 0;
/** @param {string} type @param {string} [task] */
function soil(type, task) {
  for (const one of resources.values()) {
    if (one.kinds.some(kind => kind.startsWith("=") ? kind.slice(1) === task : type.startsWith(kind))) one.dirty = true;
  }
  soon();
}

/** What has become old is read again, at most once in REFRESH_MS. */
function soon() {
  due ||= window.setTimeout(() => {
    due = 0;
    for (const one of resources.values()) if (one.dirty && one.users && !one.busy) refresh(one);
  }, REFRESH_MS);
}

/** How much is left of a lease that was told with an answer. @param {number} ms @param {number} at */
export const leaseLeft = (ms, at) => ms - (performance.now() - at);

// ---- life ------------------------------------------------------------------------------------------------------

const UNDO_MS = 10000;
/** @param {string} text @param {{ bad?: boolean, undo?: () => void }} [more] */
export function toast(text, more) {
  const one = { id: Math.random(), text, until: serverNow() + UNDO_MS, ...more };
  toasts.value = [...toasts.value.slice(-3), one];
  if (!more?.bad) setTimeout(() => dropToast(one.id), more?.undo ? UNDO_MS : 3500);
}
/** Call back what was done last, while it is offered. */
export function undoLast() {
  const one = toasts.value.filter(each => each.undo).at(-1);
  if (one) { dropToast(one.id); one.undo(); }
}
/** @param {number} id */
export const dropToast = id => { toasts.value = toasts.value.filter(one => one.id !== id); };

const placeOfKeys = "stint.keys";
const keysWere = () => { try { return localStorage.getItem(placeOfKeys) !== "off"; } catch { return true; } };
export const singleKeys = signal(keysWere());   // one letter is a command
export function flipKeys() {
  singleKeys.value = !singleKeys.value;
  try { localStorage.setItem(placeOfKeys, singleKeys.value ? "on" : "off"); } catch { /* as long as the page lives */ }
}

/** @type {ReturnType<typeof openStream> | null} */
let feed = null;
export const tryNow = () => feed?.now();

function leave() {
  feed?.end();
  feed = null;
  keepSession(null);
  me.value = null;
}

/** @param {string} why */
export function signedOut(why) {
  problem.value = why;
  leave();
}

/** The server's clock counts, which may be set while it runs. */
async function setClock() {
  const asked = Date.now(), about = await get("/api/version");
  skew = (about.now ?? about.startedAt + about.uptimeMs) - (asked + Date.now()) / 2;
  version.value = about;
  now.value = serverNow();
}

async function first() {
  await setClock();
  const last = Number((await get("/api/events?after=now&limit=1")).next);
  const before = Math.max(0, last - BEFORE_EVENTS);
  const page = await get(`/api/events?after=${before}&limit=${BEFORE_EVENTS}`).catch(() => ({ events: [] }));
  events.value = page.events.reverse();
  return Number(page.events[0]?.seq ?? last);
}

/** With a session: read what there is, then follow what happens. */
export async function begin() {
  whenUnauthorized(() => { if (me.value) signedOut("Your session has ended."); });
  me.value = session();
  if (!me.value) return;
  let seq = 0;
  try {
    seq = await first();
  } catch {
    if (!me.value) return;
    stream.value = { ...stream.value, state: "away", since: serverNow() };
    setTimeout(begin, 2000);
    return;
  }
  let hasBeenLive = false;
  feed = openStream({
    after: () => String(seq),
    state: state => {
      const was = stream.value.state;
      if (state === "live" && was !== "live") {
        if (stale.value) toast("Back. What was missed has been caught up.");
        refreshAll();
        if (hasBeenLive) { renew(); setClock().catch(() => { /* away again */ }); }
        hasBeenLive = true;
      }
      if (state !== was || state === "live") stream.value = { state, since: state === "live" || was === "live" ? serverNow() : stream.value.since, seq };
    },
    event: event => {
      seq = event.seq;
      events.value = [event, ...events.value].slice(0, EVENTS_MAX);
      for (const listen of listeners) listen(event);
      soil(event.type, event.task);
    },
    again: at => { retryAt.value = at; },
    gone: () => { seq = 0; refreshAll(); toast("Old events are gone; the page was read again."); },
    unauthorized: () => signedOut("Your session has ended."),
  });
  readRole();
}

/** What this page may: an admin's role is less after a while. */
export async function readRole() {
  const mine = await get("/api/logins").then(rows => rows.find((/** @type {any} */ row) => row.current), () => null);
  if (mine && me.value && (mine.role !== me.value.role || mine.name !== me.value.name)) me.value = { ...me.value, role: mine.role, name: mine.name };
}
setInterval(() => { if (!document.hidden && me.value?.role === "admin") readRole(); }, 60000);

setInterval(() => { if (!document.hidden) now.value = serverNow(); }, 1000);
// What changes without an event: heartbeats, and leases.
setInterval(() => {
  if (document.hidden || stream.value.state !== "live") return;
  for (const one of resources.values()) if (one.users && one.kinds.includes("beat")) refresh(one);
}, 5000);

const may = { viewer: 0, approver: 1, operator: 2, admin: 3 };
/** May this page do what needs that role? @param {keyof typeof may} role */
export const allows = role => (may[/** @type {keyof typeof may} */ (me.value?.role)] ?? 0) >= may[role];
