// Which one falls behind and what holds it back?
import { href } from "../live/state.js";
import { Act } from "../part/actions.js";
import { Age, Empty, html, useResource } from "../part/parts.js";
import { clean, thousands } from "../part/text.js";

export function Queues() {
  const { value } = useResource("/api/queues", ["task.", "queue.", "claim.", "worker."]);
  const queues = /** @type {any[]} */ (value ?? []);
  const sum = (/** @type {any} */ q, /** @type {string[]} */ states) => states.reduce((n, s) => n + (q.tasks?.[s] ?? 0), 0);
  return html`<div class="head"><h1>Queues</h1></div>
    ${value && queues.length === 0 ? html`<${Empty} head="No queue has open tasks.">A queue begins with its first task: <code>stint add "fix the flaky test" --queue ci</code><//>` : null}
    ${queues.length ? html`<table class="t two"><thead><tr><th class="w9">Queue</th><th class="w5 num">Ready</th><th class="w5 num">Waiting</th><th class="w5 num">Running</th><th class="w6 num">Needs you</th><th class="w5 num xl">Workers</th><th>What holds it back</th><th class="w9"><span class="sr">Actions</span></th></tr></thead>
      <tbody>${queues.map(q => html`<tr key=${q.name}><td data-l="Queue"><a class="link" href=${href("tasks", "", { queue: q.name })}><b class="iso">${clean(q.name)}</b></a>${q.state !== "open" ? html`<br /><span class="you">${q.state}</span>` : null}</td>
        <td data-l="Ready" class="num">${thousands(q.ready ?? 0)}${q.oldestReadyAt ? html`<br /><${Age} at=${q.oldestReadyAt} class="q" />` : null}</td><td data-l="Waiting" class="num">${thousands(sum(q, ["waiting", "scheduled", "pending"]))}</td>
        <td data-l="Running" class="num">${thousands(sum(q, ["running", "claimed"]))}</td><td data-l="Needs you" class="num">${thousands(sum(q, ["asking", "review", "blocked"]))}</td><td data-l="Workers" class="num xl">${q.workers ?? 0}</td>
        <td class="full-w"><bdi>${q.why ? clean(q.why.text) : html`<span class=${q.state === "open" ? "q" : "you"}>${{ paused: "Paused: nothing in it is handed out", draining: "Draining: it takes no new tasks" }[/** @type {string} */ (q.state)] ?? "nothing"}</span>`}</bdi>${q.why?.try ? html`<br /><code class="q">${clean(q.why.try)}</code>` : null}</td>
        <td class="num nw">${q.state === "open" ? html`<${Act} name="pause" words=${[q.name]} bare /><${Act} name="drain" words=${[q.name]} bare />` : html`<${Act} name="resume" words=${[q.name]} bare />`}</td></tr>`)}</tbody></table>` : null}`;
}
