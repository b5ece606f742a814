// What has happened to a task: all of its events, its attempts as lanes on one time axis, and its story in sentences.
import { useEffect, useState } from "preact/hooks";
import { get } from "../live/api.js";
import { now, serverNow, whenEvent } from "../live/state.js";
import { Glyph, Icon, html } from "./parts.js";
import { clean, clock, count, exact, money, sentence, span, stateWords } from "./text.js";

const EVENTS_MAX = 5000, PIECE = 1000, BREAK_SHARE = 0.4, BREAK_LEFT = 0.06, LANES = 6;

/** The events of a task from the first on, and each new one as it comes. @param {string} id */
export function useHistory(id) {
  const [events, setEvents] = useState(/** @type {any[]} */ ([]));
  useEffect(() => {
    let over = false, known = /** @type {any[]} */ ([]), due = 0;
    const show = () => { due ||= window.setTimeout(() => { due = 0; if (!over) setEvents([...known]); }, 100); };
    const add = (/** @type {any[]} */ more) => { const last = Number(known.at(-1)?.seq ?? 0); known.push(...more.filter(one => Number(one.seq) > last)); show(); };
    const read = async () => {
      for (let after = String(known.at(-1)?.seq ?? 0); known.length < EVENTS_MAX && !over;) {
        const page = await get(`/api/tasks/${encodeURIComponent(id)}/events?after=${after}&limit=${PIECE}`).catch(() => null);
        if (!page) return;
        add(page.events);
        after = page.next;
        if (page.events.length < PIECE) return;
      }
    };
    read();
    const ends = whenEvent(event => { if (event.task === id) add([event]); else if (event.seq === undefined) read(); });
    return () => { over = true; clearTimeout(due); ends(); };
  }, [id]);
  return events;
}

const causes = /** @type {Record<string, string>} */ ({ CHECK_FAILED: "Check failed", WORKER_CRASHED: "Crashed", LEASE_LOST: "Lost: its worker went silent", TASK_TIMEOUT: "Time limit reached", STALLED: "Stopped: it went silent",
  DEADLINE: "Past its deadline", BUDGET_EXCEEDED: "Budget spent", REFUSED: "The model declined", PROTOCOL_ERROR: "Broke the protocol", STOPPED: "Stopped by a person", WORKER_INIT_FAILED: "Could not start", QUOTA: "Account limit reached", AUTH: "Login is gone" });
const ends = /** @type {Record<string, [string, string]>} */ ({
  "task.completed": ["done", "Done"], "task.failed": ["failed", "Failed"], "task.blocked": ["blocked", "Blocked"], "task.released": ["ready", "Given back"],
  "task.expired": ["failed", "Lost: the lease ran out"], "task.cancelled": ["cancelled", "Cancelled"], "task.reviewed": ["review", "Reported for review"],
  "claim.unconfirmed": ["ready", "Taken back: not confirmed"], "task.suspended": ["waiting", "Waits for its subtasks"],
});

/** @param {any} data */
const checksOf = data => /** @type {any[]} */ (Array.isArray(data?.evidence?.checks) ? data.evidence.checks : []).filter(check => typeof check?.ms === "number");

/** What ended an attempt, in few words. @param {any} event */
function endWords(event) {
  const data = event.data ?? {}, code = data.error?.code ?? data.code, message = data.error?.message ?? data.message;
  const failed = checksOf(data).find(check => check.passed === false);
  if (data.signal) return `Killed by signal ${data.signal}`;
  if (code === "CHECK_FAILED" && failed) return `Check failed: ${failed.name}`;
  const cause = causes[code];
  return cause ?? (message && ["task.failed", "task.blocked"].includes(event.type) ? message : event.type === "task.completed" && checksOf(data).length ? "Done, checks passed" : ends[event.type][1]);
}

/** Attempts with their times, money, people and checks, out of the task's events. @param {any[]} events @param {any} task */
export function attemptsOf(events, task) {
  /** @type {any[]} */
  const lanes = [];
  let since = events[0]?.time ?? task.createdAt, open = /** @type {any} */ (null), asked = 0;
  for (const event of events) {
    const data = event.data ?? {};
    if (event.type === "task.claimed") {
      if (open && data.attempt === open.number) continue; // the same claim, taken up again
      if (open && !open.end) open.end = event.time;
      open = { number: data.attempt ?? lanes.length + 1, worker: event.worker, queued: since, begin: event.time, end: 0, people: [], checks: 0, what: "", state: "running", usd: undefined };
      lanes.push(open);
    } else if (event.type === "task.asked" && open) asked = event.time;
    else if (event.type === "task.answered" && asked) { (open ?? lanes.at(-1))?.people.push({ from: asked, to: event.time, who: data.withdrawn || data.late ? "" : event.actor }); asked = 0; }
    else if (ends[event.type]) {
      const lane = open ?? (event.type === "task.completed" && lanes.at(-1)?.state === "review" ? lanes.at(-1) : null);
      if (!lane) continue;
      if (open) { lane.end = event.time; lane.checks = Math.min(event.time - lane.begin, checksOf(data).reduce((sum, check) => sum + check.ms, 0)); since = event.time; }
      lane.state = ends[event.type][0];
      lane.what = endWords(event);
      open = null;
    }
    if (open && typeof data.usage?.usd === "number") open.usd = data.usage.usd;
  }
  if (asked) lanes.at(-1)?.people.push({ from: asked, to: 0, who: "" });
  return lanes;
}

/** An axis on which a long wait is cut out: the parts of it, and where a moment lies between 0 and 100. @param {any[]} lanes @param {number} from @param {number} to */
function axisOf(lanes, from, to) {
  const busy = lanes.map(lane => [lane.begin, lane.end || to]).sort((a, b) => a[0] - b[0]);
  let gap = { from: 0, to: 0 }, at = from;
  for (const [begin, end] of busy) {
    if (begin - at > gap.to - gap.from) gap = { from: at, to: begin };
    at = Math.max(at, end);
  }
  const cut = gap.to - gap.from > BREAK_SHARE * (to - from) ? gap : null, hidden = cut ? cut.to - cut.from : 0, rest = Math.max(1, to - from - hidden), scale = cut ? 1 - BREAK_LEFT : 1;
  const x = (/** @type {number} */ t) => {
    const inside = cut ? Math.max(0, Math.min(t, cut.to) - cut.from) : 0, outside = t - from - inside;
    return Math.max(0, Math.min(100, 100 * (scale * outside / rest + (cut ? BREAK_LEFT * inside / hidden : 0))));
  };
  return { cut, x };
}

/** @param {{ attempts: any[], task: any }} props */
export function Lanes({ attempts, task }) {
  if (!attempts.length) return null;
  now.value;
  const last = attempts[attempts.length - 1], living = !last.end || last.people.some((/** @type {any} */ p) => !p.to);
  const from = attempts[0].queued, to = Math.max(living ? serverNow() : last.end, from + 1000);
  const { cut, x } = axisOf(attempts, from, to), place = (/** @type {number} */ a, /** @type {number} */ b) => ({ "--x": x(a).toFixed(2) + "%", "--w": Math.max(0.2, x(b) - x(a)).toFixed(2) + "%" });
  const shown = attempts.length > LANES ? [attempts[0], ...attempts.slice(-3)] : attempts;
  const ticks = Array.from({ length: 6 }, (_, i) => from + (i + 0.5) / 6 * (to - from)).filter(t => (!cut || t < cut.from || t > cut.to) && (!living || x(t) < 92));
  return html`<div class="lanes" role="group" aria-label="Attempts over time">${shown.map((one, i) => {
    const end = one.end || to, late = x(end) > 62, waits = one.people.some((/** @type {any} */ p) => !p.to), words = one.end ? clean(one.what) : waits ? "Asks you" : stateWords[task.state];
    return html`<div class="ln" key=${one.number}><span class="r"><b>${one.number}</b> <span class="cut iso">${clean(one.worker)}</span> <span class="q">${span(end - one.begin)}${one.usd === undefined ? "" : ` · ${money(one.usd)}`}</span></span>
      <div class="tr"><i class="wait" style=${place(one.queued, one.begin)}></i><i class=${"a" + (one.checks ? "" : " z")} style=${place(one.begin, end - one.checks)}></i>${one.checks ? html`<i class="chk z" style=${place(end - one.checks, end)}></i>` : null}
      ${one.people.map((/** @type {any} */ p) => html`<i class="hum" key=${p.from} style=${place(p.from, p.to || to)}></i><span class="tip" key=${"t" + p.from} style=${{ "--x": Math.max(8, Math.min(92, (x(p.from) + x(p.to || to)) / 2)).toFixed(2) + "%" }}>${p.to ? p.who ? `asked, ${clean(p.who)} answered in ${span(p.to - p.from)}` : `asked for ${span(p.to - p.from)}` : `asks for ${span(to - p.from)}`}</span>`)}
      <span class=${"cap" + (late ? " l" : "")} style=${{ "--x": (late ? x(one.queued) : x(end)).toFixed(2) + "%" }}>${late ? null : html`<${Glyph} state=${one.end ? one.state : task.state} />`}<span class="cut iso">${words}</span>${late ? html`<${Glyph} state=${one.end ? one.state : task.state} />` : null}</span></div></div>
      ${attempts.length > LANES && i === 0 ? html`<p class="q ln-more">${attempts.length - 4} more</p>` : null}`;
  })}${cut ? html`<span class="brk" style=${{ "--x": (x(cut.from) + x(cut.to)) / 200 }}>${span(cut.to - cut.from)} later</span>` : null}
  ${ticks.map(t => html`<span class="tick" key=${t} style=${{ "--x": x(t) / 100 }}>${clock(t, to - from < 300000)}</span>`)}${living ? html`<span class="now" style=${{ "--x": 1 }}>now</span>` : null}
  <span class="lgd tr"><i></i>work ${attempts.some(one => one.checks) ? html`<i class="chk"></i>checks ` : null}${attempts.some(one => one.people.length) ? html`<i class="hum"></i>a person` : null}</span></div>`;
}

/** One turn of fate: a heading, and what is to say about it. @param {any} event @param {{ attempt: number, since: number }} at @returns {[string, string, string] | null} glyph, heading, words */
function turn(event, at) {
  const data = event.data ?? {}, message = data.error?.message ?? data.message ?? "", code = data.error?.code ?? data.code, here = `Attempt ${at.attempt}`;
  const failed = checksOf(data).find(check => check.passed === false);
  switch (event.type) {
  case "task.created": return [data.state ?? "ready", `Created${event.actor ? ` by ${event.actor}` : ""}`, ""];
  case "task.claimed": return ["claimed", `${here}${event.worker ? ` on ${event.worker}` : ""}`, event.time - at.since > 1000 ? `After ${span(event.time - at.since)} in the queue.` : ""];
  case "task.failed": case "task.expired": {
    const heading = code === "CHECK_FAILED" ? "failed its check" : data.class === "crash" || event.type === "task.expired" || code === "WORKER_CRASHED" ? "crashed" : data.class === "timeout" ? "ran out of time" : "failed";
    const words = [failed && !message.includes(failed.name) ? `${failed.name}: ${message}` : message, data.signal ? `Signal ${data.signal}.` : "", data.exitCode ? `Exit status ${data.exitCode}.` : ""].filter(Boolean).join(" ");
    const next = data.state === "failed" ? `${count(data.spent ?? 0, "failure")} spent; that was the last.` : data.state === "scheduled" ? "It backs off before the next attempt." : data.state === "ready" ? "It is in line again." : "";
    return ["failed", at.attempt ? `${here} ${heading}` : "Failed", [words, next].filter(Boolean).join(words && !/[.!?]$/.test(words) ? ". " : " ")];
  }
  case "task.asked": return ["asking", `${here} asked`, data.question ? `“${data.question}”` : data.tool ? `It wants to use ${data.tool}.` : ""];
  case "task.answered": return data.withdrawn ? ["running", "The question was taken back", ""] : ["person", data.late ? "Nobody answered in time, so it was denied" : `${event.actor ?? "somebody"} ${data.deny ? "said no" : data.allow ? "allowed it" : "answered"}`, data.text ? `“${data.text}”` : ""];
  case "task.completed": return ["done", "Done", checksOf(data).length ? `${checksOf(data).map(check => check.name).join(", ")} passed.` : ""];
  case "task.progressed": case "task.confirmed": case "session.output": case "session.usage": case "session.started": case "session.ended": return null;
  default: { const words = sentence(event); return [data.state ?? "events", words.charAt(0).toUpperCase() + words.slice(1), ""]; }
  }
}

/** @param {{ events: any[] }} props */
export function Story({ events }) {
  const [whole, setWhole] = useState(false);
  const at = { attempt: 0, since: events[0]?.time ?? 0 };
  const rows = events.map(event => {
    if (event.type === "task.claimed") at.attempt = event.data?.attempt ?? at.attempt + 1;
    const told = turn(event, at);
    if (["ready"].includes(event.data?.state)) at.since = event.time;
    return { event, told };
  });
  const shown = whole ? rows : rows.filter(({ told }) => told);
  return html`<section><h2 class="h2">Story <span class="end"><button type="button" class="btn bare hs" aria-pressed=${whole ? "true" : "false"} onClick=${() => setWhole(!whole)}>Every event</button></span></h2>
    <ol class="story">${shown.length ? shown.slice(-500).map(({ event, told }) => { const [glyph, heading, words] = whole || !told ? [event.data?.state ?? "events", sentence(event), event.type] : told;
      return html`<li key=${event.seq}><time title=${exact(event.time)}>${clock(event.time, whole)}</time>${stateWords[glyph] ? html`<${Glyph} state=${glyph} />` : html`<${Icon} name=${glyph} size=${14} class="g q2" />`}
        <div><p><b class="iso">${clean(heading)}</b></p>${words ? html`<p><bdi>${clean(words)}</bdi></p>` : null}</div></li>`; }) : html`<li class="q">Nothing has happened yet.</li>`}</ol></section>`;
}
