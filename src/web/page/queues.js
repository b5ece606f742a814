// Which one falls behind and what holds it back?
import { useState } from "preact/hooks";
import { allows, go, href } from "../live/state.js";
import { Act, act, actions } from "../part/actions.js";
import { Age, Button, Empty, html, useResource } from "../part/parts.js";
import { clean, count, lanes, span, thousands } from "../part/text.js";
import { useRows, useSettled } from "./schedules.js";

const CELLS = 12;
const sum = (/** @type {any} */ q, /** @type {string[]} */ states) => states.reduce((n, s) => n + (q.tasks?.[s] ?? 0), 0);

/** The limits of a queue as one sentence. @param {any} limits */
function limitWords(limits) {
  if (!limits) return "no limits";
  const rate = limits.rate, keys = Object.keys(limits.keys ?? {}).length;
  return [limits.concurrency ? `at most ${thousands(limits.concurrency)} at once` : "", limits.perKey ? `${thousands(limits.perKey)} per key` : "", keys ? `${count(keys, "key")} with a number of their own` : "", limits.sequential ? "one after the other per key" : "",
    rate ? `${thousands(rate.count)} per ${rate.perMs % 60000 ? span(rate.perMs) : rate.perMs === 60000 ? "min" : span(rate.perMs)}${rate.per === "key" ? " and key" : ""}` : "", limits.fair ? "fair between keys" : "",
    limits.review ? `stops at ${thousands(limits.review)} in review` : "", limits.maxOpen ? `at most ${thousands(limits.maxOpen)} open` : ""].filter(Boolean).join(", ") || "no limits";
}

/** Places in use: a cell each, where there is a limit. @param {{ q: any }} props */
function InWork({ q }) {
  const live = q.live ?? sum(q, lanes.running), most = q.limits?.concurrency;
  if (!most) return html`<span class=${live ? "" : "q"}>${thousands(live)}</span><br /><span class="q">no limit</span>`;
  return html`${most <= CELLS ? html`<span class="cells" aria-hidden="true">${Array.from({ length: most }, (_, i) => html`<i key=${i} class=${i < live ? "run" : "no"}></i>`)}</span><br />` : null}<span class=${live >= most ? "you" : "q"}>${thousands(live)} of ${thousands(most)}</span>`;
}

/** How many may run at once. @param {{ q: any, close: () => void }} props */
function Limit({ q, close }) {
  const [text, setText] = useState(String(q.limits?.concurrency ?? ""));
  const send = async (/** @type {Event} */ e) => { e.preventDefault(); if (await act("limitQueue", q.name, text.trim())) close(); };
  return html`<form class="r" onSubmit=${send}><label class="r"><span class="q">At once</span><input class="find-in" autofocus name="limit" inputmode="numeric" placeholder="no limit" value=${text} onInput=${(/** @type {any} */ e) => setText(e.target.value)} onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (e.key === "Escape") close(); }} /></label>
    <${Button} cli=${actions.limitQueue.cli(q.name, text.trim())} data-act="limitQueue" onClick=${send}>Set<//></form>`;
}

export function Queues() {
  const { value } = useResource("/api/queues", ["task.", "queue.", "claim.", "worker."]);
  const [open, setOpen] = useState("");
  const list = useSettled(/** @type {any[]} */ ([...(value ?? [])].sort((a, b) => (b.ready ?? 0) - (a.ready ?? 0) || (a.name < b.name ? -1 : 1))), q => q.name);
  const here = useRows(list, q => q.name, (key, q) => { if (key === "Enter") go(href("tasks", "", { queue: q.name })); if (key === "p") act(q.state === "open" ? "pause" : "resume", q.name); });
  const may = allows(actions.limitQueue.role), all = (/** @type {string[]} */ states) => list.reduce((n, q) => n + sum(q, states), 0);
  return html`<div class="head"><h1>Queues</h1><span class="q">${list.length ? `${count(list.length, "queue")}, ${thousands(all(lanes.waiting))} waiting, ${thousands(all(lanes.running))} in work` : ""}</span></div>
    ${value && list.length === 0 ? html`<${Empty} head="No queue has open tasks.">A queue begins with its first task: <code>stint add "fix the flaky test" --queue ci</code><//>` : null}
    ${list.length ? html`<table class="t two" aria-label="Queues"><thead><tr><th class="w9">Queue</th><th class="w6">In work</th><th class="w5 num">Waiting</th><th class="w5 num">Oldest</th><th class="w6 num">Needs you</th><th class="w5 num xl">Workers</th><th>What holds it back</th><th class="w12"><span class="sr">Actions</span></th></tr></thead>
      <tbody>${list.map(q => html`<tr key=${q.name} data-id=${q.name} class=${q.name === here ? "at" : ""}><td><a href=${href("tasks", "", { queue: q.name })}><b class="iso">${clean(q.name)}</b></a><div class=${q.state === "open" ? "q" : "you"}>${q.state}</div></td>
        <td data-l="In work"><${InWork} q=${q} /></td>
        <td data-l="Waiting" class="num"><b>${thousands(sum(q, lanes.waiting))}</b>${sum(q, ["ready"]) && sum(q, ["ready"]) !== sum(q, lanes.waiting) ? html`<br /><span class="q">${thousands(sum(q, ["ready"]))} ready</span>` : null}</td>
        <td data-l="Oldest" class="num">${q.oldestReadyAt ? html`<${Age} at=${q.oldestReadyAt} />` : html`<span class="q">–</span>`}</td>
        <td data-l="Needs you" class="num">${sum(q, lanes.you) ? html`<a class="you" href=${href("tasks", "", { queue: q.name, state: lanes.you.join(",") })}>${thousands(sum(q, lanes.you))}</a>` : html`<span class="q">0</span>`}</td><td data-l="Workers" class="num xl">${thousands(q.workers ?? 0)}</td>
        <td class="full-w"><bdi>${q.why ? clean(q.why.text) : html`<span class=${q.state === "open" ? "q" : "you"}>${{ paused: "Paused: nothing in it is handed out", draining: "Draining: it takes no new tasks" }[/** @type {string} */ (q.state)] ?? "Nothing"}</span>`}</bdi>${q.why?.try ? html`<br /><code class="q">${clean(q.why.try)}</code>` : null}
          ${open === q.name ? html`<${Limit} q=${q} close=${() => setOpen("")} />` : html`<div class="q">${limitWords(q.limits)}</div>`}</td>
        <td class="num nw full-w">${may ? html`<${Button} bare data-limit cli=${actions.limitQueue.cli(q.name, "")} onClick=${() => setOpen(open === q.name ? "" : q.name)}>Limit<//>` : null}${q.state === "open" ? html`<${Act} name="pause" words=${[q.name]} bare /><${Act} name="drain" words=${[q.name]} bare />` : html`<${Act} name="resume" words=${[q.name]} bare />`}</td></tr>`)}</tbody></table>` : null}`;
}
