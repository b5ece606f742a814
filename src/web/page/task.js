// What is it doing, why, and can I trust it?
import { useLayoutEffect } from "preact/hooks";
import { href, now, route, serverNow } from "../live/state.js";
import { Act, act, actionsOf } from "../part/actions.js";
import { Age, Copy, Empty, Glyph, Lease, Title, html, useResource } from "../part/parts.js";
import { Log } from "../part/log.js";
import { clean, clock, exact, sentence, span, stateWords } from "../part/text.js";
import { Card } from "./inbox.js";

const ends = /** @type {Record<string, [string, string]>} */ ({
  "task.completed": ["done", "done"], "task.failed": ["failed", "failed"], "task.blocked": ["blocked", "blocked"], "task.released": ["ready", "given back"],
  "task.expired": ["failed", "lost: the lease ran out"], "task.cancelled": ["cancelled", "cancelled"], "task.reviewed": ["review", "reported"],
  "claim.unconfirmed": ["ready", "taken back: not confirmed"],
});

/** Attempts with their times, out of the task's events. @param {any[]} events @param {any} task */
export function attemptsOf(events, task) {
  /** @type {any[]} */
  const lanes = [];
  let since = events[0]?.time ?? task.createdAt, open = /** @type {any} */ (null), asked = 0;
  for (const event of events) {
    if (event.type === "task.claimed") {
      if (open && !open.end) open.end = event.time;
      open = { number: event.data?.attempt ?? lanes.length + 1, worker: event.worker, queued: since, begin: event.time, end: 0, people: [], what: "", state: "running" };
      lanes.push(open);
    } else if (event.type === "task.asked" && open) asked = event.time;
    else if (event.type === "task.answered" && asked) { open?.people.push({ from: asked, to: event.time, who: event.actor }); asked = 0; }
    else if (ends[event.type] && open && !open.end) {
      open.end = event.time;
      open.state = ends[event.type][0];
      open.what = event.data?.error?.message ?? event.data?.message ?? ends[event.type][1];
      if (asked) { open.people.push({ from: asked, to: 0, who: "" }); }
      since = event.time;
      open = null;
    }
  }
  if (asked && open) open.people.push({ from: asked, to: 0, who: "" });
  return lanes;
}

/** @param {{ attempts: any[], task: any }} props */
function Lanes({ attempts, task }) {
  if (!attempts.length) return null;
  now.value;
  const over = ["done", "failed", "cancelled"].includes(task.state);
  const from = attempts[0].queued, to = Math.max(over ? attempts[attempts.length - 1].end || task.updatedAt : serverNow(), from + 1000);
  const x = (/** @type {number} */ t) => `${Math.max(0, Math.min(100, 100 * (t - from) / (to - from)))}%`;
  const w = (/** @type {number} */ a, /** @type {number} */ b) => `${Math.max(0.2, 100 * (b - a) / (to - from))}%`;
  const shown = attempts.length > 6 ? [attempts[0], ...attempts.slice(-3)] : attempts;
  const ticks = [0, 0.25, 0.5, 0.75, 1].map(share => from + share * (to - from));
  return html`<div class="lanes" aria-label="Attempts over time">${shown.map((one, i) => {
    const end = one.end || to, late = (end - from) / (to - from) > 0.66;
    return html`<div class="ln" key=${one.number}><span class="r"><b>${one.number}</b> <span class="cut iso">${clean(one.worker)}</span> <span class="q">${span(end - one.begin)}</span></span>
      <div class="tr"><i class="wait" style=${{ "--x": x(one.queued), "--w": w(one.queued, one.begin) }}></i><i class="a z" style=${{ "--x": x(one.begin), "--w": w(one.begin, end) }}></i>
      ${one.people.map((/** @type {any} */ p) => html`<i class="hum" key=${p.from} style=${{ "--x": x(p.from), "--w": w(p.from, p.to || end) }}></i>`)}
      <span class=${"cap" + (late ? " l" : "")} style=${{ "--x": late ? x(one.begin) : x(end) }}><${Glyph} state=${one.end ? one.state : task.state} /><span class="cut iso">${one.end ? clean(one.what).slice(0, 80) : stateWords[task.state]}</span></span></div></div>
      ${attempts.length > 6 && i === 0 ? html`<p class="q">${attempts.length - 4} more</p>` : null}`;
  })}${ticks.map((t, i) => html`<span class=${"tick" + (i === 0 ? " lo" : i === ticks.length - 1 ? " hi" : "")} key=${t} style=${{ "--x": (t - from) / (to - from) }}>${clock(t, to - from < 300000)}</span>`)}
  <span class="lgd tr"><i></i>work<i class="hum"></i>a person</span></div>`;
}

/** @param {{ name: string, children?: any }} props */
const Fact = ({ name, children }) => children === null || children === undefined || children === "" ? null : html`<dt>${name}</dt><dd>${children}</dd>`;

/** @param {{ head: string, value: any }} props */
const Json = ({ head, value }) => value === undefined || value === null ? null : html`<section><h2 class="h2">${head}</h2><pre class="json" tabindex="0">${clean(typeof value === "string" ? value : JSON.stringify(value, null, 2))}</pre></section>`;

export function Task() {
  const id = route.value.id, path = `/api/tasks/${encodeURIComponent(id)}`;
  const { value: task, at, failed } = useResource(`${path}?include=why`, ["=" + id, "worker.", "queue."]);
  const history = useResource(`${path}/events?limit=1000`, ["=" + id]).value?.events ?? [];
  const inbox = useResource("/api/approvals", ["task.", "gate."]).value ?? [];
  useLayoutEffect(() => {
    const onKey = (/** @type {any} */ e) => {
      if (e.detail.key === "r" && actionsOf(task ?? {}).includes("retry")) act("retry", id);
      if (e.detail.key === "f") /** @type {HTMLElement | null} */ (document.querySelector("[data-find]"))?.focus();
      if (e.detail.key === "Escape") window.history.back();
    };
    addEventListener("stint-key", onKey);
    return () => removeEventListener("stint-key", onKey);
  });
  if (!task) return failed ? html`<div class="crumb"><a href=${href("tasks")}>Tasks</a> / ${clean(id)}</div><h1>No such task</h1><p class="pt q2">${clean(failed)}</p>` : html`<h1 class="sr">Task ${clean(id)}</h1>`;
  const attempts = attemptsOf(history, task);
  const mine = inbox.filter((/** @type {any} */ one) => one.task === task.id);
  const over = ["done", "failed", "cancelled"].includes(task.state);
  return html`<div class="crumb"><a href=${href("tasks")}>Tasks</a> / <span class="mono">${clean(task.id)}</span> ${(task.labels ?? []).map((/** @type {string} */ label) => html`<a class="lb iso" key=${label} href=${href("tasks", "", { label })}>${clean(label)}</a>`)}</div>
    <div class="ttl"><${Glyph} state=${task.state} big /><h1><${Title} task=${task} /></h1><span class="end r">${actionsOf(task).map(name => html`<${Act} key=${name} name=${name} words=${[task.id]} />`)}</span></div>
    <p class="because"><b>${task.stopping ? "Stopping" : stateWords[task.state]}.</b> <bdi>${clean(task.why?.text ?? task.note ?? "")}</bdi></p>
    ${task.why?.try ? html`<div class="because"><${Copy} text=${task.why.try} /></div>` : null}
    ${mine.map((/** @type {any} */ one) => html`<${Card} key=${one.question?.id ?? one.gate} one=${one} focused />`)}
    <${Lanes} attempts=${attempts} task=${task} />
    <div class="grid"><div class="c8">
      ${over ? html`<${Json} head="Result" value=${task.result} />` : null}
      <section><h2 class="h2">Log</h2><${Log} id=${task.id} attempts=${task.attempt ?? 0} live=${!over} /></section>
      <section><h2 class="h2">Story</h2><ol class="story">${history.length ? history.map((/** @type {any} */ event) => html`<li key=${event.seq}><time title=${exact(event.time)}>${clock(event.time)}</time>
        <${Glyph} state=${event.data?.state ?? task.state} /><p><bdi>${clean(sentence(event))}</bdi></p></li>`) : html`<li>Nothing has happened yet.</li>`}</ol></section>
      ${over ? null : html`<${Json} head="Result" value=${task.result} />`}
      <${Json} head="Instructions" value=${task.instructions ?? task.description} />
      <${Json} head="Payload" value=${task.payload} /><${Json} head="Metadata" value=${task.metadata && Object.keys(task.metadata).length ? task.metadata : null} />
    </div><div class="c4">
      <section><h2 class="h2">Held by</h2><dl class="facts">
        <${Fact} name="Worker">${task.workerId ? html`<a class="link iso" href=${href("workers")}>${clean(task.workerId)}</a>` : html`<span class="q">nobody</span>`}<//>
        <${Fact} name="Lease">${task.leaseMs != null ? html`<${Lease} ms=${task.leaseMs} of=${60000} at=${at} full text />` : null}<//>
        <${Fact} name="Attempts">${task.attempt} so far, ${task.spent} of ${task.maxAttempts} failures spent<//>
        <${Fact} name="Crashes">${task.crashes} in a row<//>
        <${Fact} name="Progress">${task.percent != null ? `${task.percent} %` : null}<//></dl></section>
      <section><h2 class="h2">Task</h2><dl class="facts">
        <${Fact} name="Queue"><a class="link iso" href=${href("tasks", "", { queue: task.queue })}>${clean(task.queue)}</a><//>
        <${Fact} name="Owner">${task.owner ? clean(task.owner) : null}<//><${Fact} name="Executor">${task.executor ? clean(task.executor) : null}<//>
        <${Fact} name="Priority">${task.priority}<//><${Fact} name="Isolation">${task.isolationLevel}<//>
        <${Fact} name="Work dir">${task.workingDir ? html`<code>${clean(task.workingDir)}</code>` : null}<//>
        <${Fact} name="Stage">${task.stage ? `${clean(task.workflow)}: ${clean(task.stage)}` : null}<//>
        <${Fact} name="Gates">${task.gates?.length ? clean(task.gates.join(", ")) : null}<//>
        <${Fact} name="After">${task.blockedBy?.length ? task.blockedBy.map((/** @type {string} */ parent) => html`<a class="link" key=${parent} href=${href("task", parent)}>${clean(parent)}</a> `) : null}<//>
        <${Fact} name="Created"><${Age} at=${task.createdAt} ago /><//><${Fact} name="Changed"><${Age} at=${task.updatedAt} ago /><//>
        <${Fact} name="Time limit">${span(task.timeoutMs)}<//></dl></section>
      ${task.error ? html`<section><h2 class="h2">Error</h2><dl class="facts"><${Fact} name="Code"><code>${clean(task.error.code)}</code><//><${Fact} name="Message"><bdi>${clean(task.error.message)}</bdi><//><${Fact} name="Class">${task.error.class}<//></dl></section>` : null}
      ${task.evidence ? html`<${Json} head="Evidence" value=${task.evidence} />` : null}
      ${task.sessionId ? html`<section><h2 class="h2">Session</h2><dl class="facts"><${Fact} name="Id"><code>${clean(task.sessionId)}</code><//></dl></section>` : null}
    </div></div>`;
}
export { Empty };
