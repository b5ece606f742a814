// Is all well, and does it need me?
import { useMemo, useState } from "preact/hooks";
import { events, href, now } from "../live/state.js";
import { Age, Empty, Glyph, Icon, Lease, Meter, TaskLink, Title, html, useResource } from "../part/parts.js";
import { Plot } from "../part/plot.js";
import { First } from "./first.js";
import { useSettled } from "./schedules.js";
import { age, clean, clock, count, exact, money, sentence, thousands, wait, words } from "../part/text.js";

const DAY_MS = 86400000;
const notable = ["task.failed", "task.blocked", "task.expired", "task.asked", "task.completed", "task.cancelled", "slot.quarantined", "worker.inactive",
  "worker.registered", "worker.terminating", "bulk.ended", "queue.paused", "queue.resumed", "execution.armed", "execution.disarmed", "server.started", "server.degraded", "gate.opened", "gate.passed", "gate.rejected", "task.answered"];

/** @param {{ event: any }} props */
export function EventRow({ event }) {
  const state = event.data?.state;
  return html`<div class="li"><time class="q mono" title=${exact(event.time)}>${clock(event.time, true)}</time>
    ${state ? html`<${Glyph} state=${state} />` : html`<${Icon} name=${event.type.startsWith("worker") ? "workers" : "events"} size=${14} class="g q2" />`}
    <span class="cut">${event.task ? html`<${TaskLink} id=${event.task} /> ` : null}<bdi>${sentence(event)}</bdi></span></div>`;
}

const spans = /** @type {[string, string][]} */ ([["1h", "1 h"], ["24h", "24 h"], ["7d", "7 d"]]);
const per = /** @type {Record<string, string>} */ ({ "1h": "minute", "24h": "10 minutes", "7d": "hour" });

/** Points in which nothing happened are left out of the answer: they are 0, and of waits nothing is known. @param {any} stats */
function columns(stats) {
  const at = Array.from({ length: stats?.steps ?? 0 }, (_, i) => stats.from + i * stats.stepMs);
  const byTime = new Map((stats?.points ?? []).map((/** @type {any} */ point) => [point.at, point]));
  const points = at.map(time => byTime.get(time));
  return { at, ends: [points.map(p => p ? p.done + p.failed + p.cancelled : 0), points.map(p => p?.failed ?? 0)], waits: [points.map(p => p?.waitHalfMs ?? null), points.map(p => p?.waitMostMs ?? null)] };
}

/** What ended and how long claims were waited for, from the rollups of the server. @param {{ chosen: string, choose: (span: string) => void }} props */
function Plots({ chosen, choose }) {
  const { value } = useResource(`/api/stats?span=${chosen}`, ["task.completed", "task.failed", "task.cancelled", "task.claimed", "minute"]);
  const { at, ends, waits } = useMemo(() => columns(value), [value]);
  const total = value?.total, all = total ? total.done + total.failed + total.cancelled : 0;
  return html`<${Plot} name=${`Finished per ${per[chosen]}`} at=${at} values=${ends} unit=${thousands} stands=${`${thousands(all)} in all`}
      series=${[{ name: "all", kind: "line", words: (/** @type {number} */ n) => `${thousands(n)} finished` }, { name: "failed", kind: "marks", words: (/** @type {number} */ n) => `${thousands(n)} failed` }]}>
      <span class="seg" role="group" aria-label="How far back">${spans.map(([name, words]) => html`<button type="button" key=${name} data-span=${name} aria-pressed=${chosen === name ? "true" : "false"} onClick=${() => choose(name)}>${words}</button>`)}</span><//>
    <${Plot} name="Wait before a claim" at=${at} values=${waits} unit=${wait} stands=${total?.claims ? `${wait(total.waitHalfMs)} / ${wait(total.waitMostMs)} of ${count(total.claims, "claim")}` : "no claim"}
      series=${[{ name: "half", kind: "line", words: (/** @type {number | null} */ ms) => ms === null ? "no claim" : `half ${wait(ms)}` }, { name: "19 of 20", kind: "dashed", words: (/** @type {number | null} */ ms) => ms === null ? "" : `19 of 20 ${wait(ms)}` }]} />`;
}

const days = /** @type {[string, string][]} */ ([["today", "Today"], ["yesterday", "Yesterday"], ["week", "7 d"]]);

/** Money by executor: of a day of this browser's zone, as the hours of the server make it up, or of the week. A price that is unknown is not 0. */
function Spent() {
  const [day, choose] = useState("today");
  const { value } = useResource("/api/stats?span=7d", ["task.progressed", "task.completed", "task.failed"]);
  const midnight = new Date(now.value).setHours(0, 0, 0, 0), before = new Date(midnight - 1).setHours(0, 0, 0, 0);
  const [from, to] = day === "today" ? [midnight, Infinity] : day === "yesterday" ? [before, midnight] : [0, Infinity];
  const rows = useMemo(() => /** @type {any[]} */ (value?.spent ?? []).map(one => {
    if (day === "week") return one;
    const hours = /** @type {any[]} */ (one.hours ?? []).filter(hour => hour.at >= from && hour.at < to), sum = (/** @type {string} */ key) => hours.reduce((n, hour) => n + hour[key], 0);
    return { executor: one.executor, usd: sum("usd"), tokens: sum("tokens"), attempts: sum("attempts"), unpriced: sum("unpriced") };
  }).filter(one => one.attempts || one.usd || one.tokens).sort((a, b) => b.usd - a.usd || b.tokens - a.tokens), [value, day, from, to]);
  const sum = rows.reduce((n, one) => n + one.usd, 0), most = Math.max(...rows.map(one => one.usd), 0);
  return html`<section class="c5" data-spent><h2 class="h2">Money <span class="end ink" data-sum>${rows.length ? money(sum) : ""}</span><span class="seg" role="group" aria-label="Of which time">${days.map(([name, words]) => html`<button type="button" key=${name} data-day=${name} aria-pressed=${day === name ? "true" : "false"} onClick=${() => choose(name)}>${words}</button>`)}</span></h2>
    ${rows.length ? rows.slice(0, 8).map(one => html`<div class="spend" key=${one.executor}><span class="cut iso">${clean(one.executor || "others")}</span>
    <${Meter} of=${one.usd} max=${most} /><span class="num">${one.unpriced && one.unpriced >= one.attempts ? html`<span class="q">unknown</span>` : money(one.usd)}</span><span class="q num">${count(one.attempts, "attempt")}</span></div>`) : html`<p class="q pt">${day === "yesterday" ? "No agent used anything yesterday." : "No agent has said what it used."}</p>`}</section>`;
}

export const Overview = () => html`<${First}><${Whole} /><//>`;

function Whole() {
  const [chosen, choose] = useState("1h");
  const queues = useResource("/api/queues", ["task.", "queue.", "claim."]).value;
  const openTasks = useResource("/api/tasks?include=why&limit=200&state=ready,waiting,scheduled,pending", ["task.", "claim.", "queue.", "worker."]).value ?? [];
  const inbox = useResource("/api/approvals", ["task.", "gate."]).value ?? [];
  const blocked = useResource("/api/tasks?state=blocked&limit=100", ["task."]).value ?? [];
  const failed = useResource("/api/tasks?state=failed&limit=200", ["task."]).value ?? [];
  const workers = useResource("/api/workers", ["worker.", "beat", "task.claimed", "task.completed"]);
  const execution = useResource("/api/execution", ["execution."]).value;
  const day = useResource("/api/stats?span=24h", ["task.progressed", "task.completed", "task.failed"]).value?.total;
  const sum = (/** @type {string[]} */ states) => (queues ?? []).reduce((/** @type {number} */ n, /** @type {any} */ q) => n + states.reduce((m, s) => m + (q.tasks?.[s] ?? 0), 0), 0);
  const running = sum(["running", "claimed"]), waiting = sum(["ready", "waiting", "scheduled", "pending"]), need = inbox.length + blocked.length;
  const ended = day ?? { failed: failed.filter((/** @type {any} */ t) => t.updatedAt > now.value - DAY_MS).length };
  const alive = (workers.value ?? []).filter((/** @type {any} */ w) => w.state !== "inactive");
  const places = alive.reduce((/** @type {number} */ n, /** @type {any} */ w) => n + (w.maxConcurrent ?? 1), 0);
  const reasons = new Map();
  for (const task of openTasks) {
    const text = clean(task.why?.text ?? task.reason ?? task.state);
    const row = reasons.get(text) ?? { text, count: 0, oldest: task.createdAt };
    row.count++;
    row.oldest = Math.min(row.oldest, task.createdAt);
    reasons.set(text, row);
  }
  const why = useSettled([...reasons.values()].sort((a, b) => b.count - a.count).slice(0, 7), row => row.text), top = why.reduce((a, b) => b.count > (a?.count ?? 0) ? b : a, /** @type {any} */ (null));
  const oldest = openTasks.reduce((/** @type {any} */ a, /** @type {any} */ b) => !a || b.createdAt < a.createdAt ? b : a, null);
  const tasks = running + waiting + need;
  const needRows = useSettled([...inbox.map((/** @type {any} */ one) => ({ id: one.task, title: one.title, state: one.kind === "gate" ? "review" : "asking",
    what: one.kind === "gate" ? "needs a verdict" : one.question?.tool ? `wants to use ${one.question.tool}` : "asks a question", at: one.since })),
    ...blocked.map((/** @type {any} */ t) => ({ id: t.id, title: t.title, state: "blocked", what: "is blocked", at: t.updatedAt }))].slice(0, 6), row => row.id + row.state);
  if (!queues) return html`<h1 class="lede">stint</h1>`;
  return html`<h1 class="lede">${execution && !execution.armed ? html`<span class="you">Execution is off: nothing is handed out. </span>` : null}
    ${need ? html`<a class="you" href=${href("inbox")}>${words(need)} ${need === 1 ? "thing needs" : "things need"} you.</a> ` : tasks ? html`Nothing needs you. ` : null}
    ${tasks === 0 ? html`<b>Nothing to do.</b> ${count(alive.length, "worker")} ${alive.length === 1 ? "is" : "are"} here.` : html`<b>${running === 0 ? "No task" : words(running) + (running === 1 ? " task" : " tasks")}</b> ${running < 2 ? "is" : "are"} running on ${count(alive.length, "worker")} and <b>${waiting ? thousands(waiting) : "none"} ${waiting < 2 ? "waits" : "wait"}</b>${top && waiting > 0 ? html`, ${2 * top.count > waiting ? "most of them" : top.count === 1 ? "one of them" : `${thousands(top.count)} of them`}: ${top.text[0].toLowerCase() + top.text.slice(1)}` : null}.`}</h1>
    <div class="four">
      <a href=${href("tasks", "", { state: "running,claimed" })}><span class="q2">Running</span><b>${thousands(running)}</b><small>of ${count(places, "place")}</small></a>
      <a href=${href("tasks", "", { state: "ready,waiting,scheduled,pending" })}><span class="q2">Waiting</span><b>${thousands(waiting)}</b><small>${oldest ? html`oldest ${age(now.value - oldest.createdAt)} · ${clean(oldest.id)}` : "nothing waits"}</small></a>
      <a href=${href("inbox")}><span class="q2">Needs you</span><b class=${need ? "you" : ""}>${thousands(need)}</b><small>${need ? html`oldest ${age(now.value - Math.min(...needRows.map(r => r.at)))}` : "inbox empty"}</small></a>
      <a href=${href("dead")}><span class="q2">Failed in 24 h</span><b class=${ended.failed ? "bad" : ""}>${thousands(ended.failed)}</b><small>${day ? `of ${thousands(day.done + day.failed + day.cancelled)} finished` : ""}</small></a>
    </div>
    ${tasks === 0 && failed.length === 0 && events.value.every(e => !e.task) ? html`<${Empty} head="No tasks yet.">Run something: <code>stint run -- echo hello</code><//>` : null}
    <div class="grid">
      <section class="c5"><h2 class="h2">Needs you <a class="end" href=${href("inbox")}>Open the inbox <kbd>g i</kbd></a></h2>
        ${needRows.length ? needRows.map(row => html`<a class="li" key=${row.id} href=${row.state === "blocked" ? href("task", row.id) : href("inbox", row.id)}><${Glyph} state=${row.state} />
          <span class="cut"><b class="hu"><${Title} task=${row} /></b> <span class="q">${clean(row.what)}</span></span><${Age} at=${row.at} class="q end nw" /></a>`) : html`<p class="q pt">Nothing needs you.</p>`}</section>
      <section class="c7"><h2 class="h2">Why ${waiting === 0 ? "tasks wait" : waiting === 1 ? "1 task waits" : `${thousands(waiting)} tasks wait`} <span class="end">longest</span></h2>
        ${why.length ? why.map(row => html`<a class="why" key=${row.text} href=${href("tasks", "", { state: "ready,waiting,scheduled,pending" })}><span class="cut hu"><bdi>${row.text}</bdi></span>
          <${Meter} of=${row.count} max=${openTasks.length} /><span class="num">${row.count}</span><span class="q num">${age(now.value - row.oldest)}</span></a>`) : html`<p class="q pt">Nothing waits.</p>`}</section>
      <${Plots} chosen=${chosen} choose=${choose} />
      <section class="c7"><h2 class="h2">Workers <span class="q">lease left</span> <a class="end" href=${href("workers")}>${count(alive.length, "worker")} alive</a></h2>
        ${alive.length ? html`<div class="ws">${alive.slice(0, 24).map((/** @type {any} */ w) => html`<a key=${w.workerId} href=${href("workers")}><span class="r"><span class="cut"><bdi>${clean(w.slot ?? w.workerId)}</bdi>
          <span class="q"> ${w.tasks?.length ? clean(w.tasks.map((/** @type {any} */ t) => t.id ?? t).join(" ")) : w.held ? `${w.held} held` : "idle"}</span></span></span><${Lease} ms=${w.leaseMs} of=${w.leaseGrantedMs} at=${workers.at} /></a>`)}</div>`
        : html`<${Empty} head="Nobody is here to work.">Tasks wait until a worker comes. Start one: <code>stint worker</code><//>`}</section>
      <${Spent} />
      <section class="c12"><h2 class="h2">Worth knowing <a class="end" href=${href("events")}>All events <kbd>g e</kbd></a></h2>
        ${events.value.filter(e => notable.includes(e.type)).slice(0, 10).map(event => html`<${EventRow} key=${event.seq} event=${event} />`)}</section>
    </div>`;
}
