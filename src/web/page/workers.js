// Who is alive, who is about to be lost?
import { useState } from "preact/hooks";
import { href, now } from "../live/state.js";
import { Act } from "../part/actions.js";
import { Age, Button, Empty, Glyph, Lease, Title, html, useResource } from "../part/parts.js";
import { clean, count, countdown, span, thousands } from "../part/text.js";

const ROWS = 100, GONE = 30;

/** What a worker holds, with the title where the page knows it. @param {{ w: any, tasks: Map<string, any> }} props */
function Holds({ w, tasks }) {
  const ids = /** @type {string[]} */ ((w.tasks ?? []).map((/** @type {any} */ t) => t.id ?? t)), more = (w.held ?? ids.length) - ids.length;
  if (!ids.length) return html`<span class="q">${w.held ? count(w.held, "task") : "nothing"}</span>`;
  return html`${ids.map(id => html`<a class="r hold" key=${id} href=${href("task", id)}><${Glyph} state=${tasks.get(id)?.state ?? "running"} /><span class="cut"><span class="mono">${clean(id)}</span> ${tasks.has(id) ? html`<${Title} task=${tasks.get(id)} />` : null}</span></a>`)}${more > 0 ? html`<span class="q">and ${thousands(more)} more</span>` : null}`;
}

/** @param {{ w: any, at: number, tasks: Map<string, any>, host?: boolean }} props */
function Row({ w, at, tasks, host }) {
  const alive = w.state !== "inactive", left = Math.max(0, (w.leaseMs ?? 0) - (performance.now() - at)), share = w.leaseGrantedMs ? left / w.leaseGrantedMs : 1;
  const tone = !alive ? "q" : share < 0.1 ? "outtx" : share < 0.25 ? "lowtx" : "q";
  return html`<tr data-id=${w.workerId}><td data-l="Slot"><b class="iso">${clean(w.slot ?? w.workerId)}</b>${w.slot ? html`<br /><span class="q mono">${clean(w.workerId)}</span>` : null}${host && w.host ? html`<br /><span class="q iso">${clean(w.host)}</span>` : null}</td>
    <td data-l="Lease left" class="full-w">${alive ? html`<${Lease} ms=${w.leaseMs} of=${w.leaseGrantedMs} at=${at} full /><span class=${tone}>${countdown(left)} left of ${countdown(w.leaseGrantedMs)}, ${typeof w.heartbeatAgeMs === "number" ? `beat ${span(w.heartbeatAgeMs + performance.now() - at)} ago` : "no beat yet"}</span>${w.state === "active" ? null : html`<br /><span class="you">${w.state === "quiet" ? "Quiet: it takes nothing new" : w.state === "terminating" ? "Stopping: it ends when its work has" : w.state}</span>`}`
      : html`<span class="q">${clean(w.ended ?? "gone")}${w.endedAt ? html`, <${Age} at=${w.endedAt} ago />` : null}</span>`}</td>
    <td data-l="Holds" class="full-w"><${Holds} w=${w} tasks=${tasks} /></td>
    <td data-l="Runs" class="xl"><bdi>${clean((w.executors ?? ["anything"]).join(", "))}</bdi>${w.queues?.length ? html`<br /><span class="q iso">${clean(w.queues.join(", "))}</span>` : null}</td>
    <td data-l="Restarts" class="num">${w.restarts ?? 0}</td>
    <td class="num nw full-w">${alive ? html`${w.state === "active" ? html`<${Act} name="quiet" words=${[w.workerId]} bare />` : null}<${Act} name="stop" words=${[w.workerId]} bare />` : null}</td></tr>`;
}

/** A slot that crashed too often: what happens next, and the way to end it now. @param {{ slot: any }} props */
const Quarantined = ({ slot }) => html`<tr data-slot=${slot.name}><td data-l="Slot"><b class="iso">${clean(slot.name)}</b></td>
  <td class="full-w"><span class="st s-blocked"><${Glyph} state="blocked" /><span>Quarantined</span></span><br /><span class="q">${slot.trialAt ? slot.trialAt > now.value ? `lifts for one trial in ${span(slot.trialAt - now.value)}` : "one trial is let in" : "until a person lifts it"}</span></td>
  <td data-l="Why" class="full-w">${count(slot.crashes ?? 0, "crash").replace("crashs", "crashes")} of late${slot.since ? html`, since <${Age} at=${slot.since} ago />` : null}</td><td class="xl"></td><td data-l="Restarts" class="num">${slot.restarts ?? 0}</td>
  <td class="num nw full-w"><${Act} name="unquarantine" words=${[slot.name]} label="Lift now" /></td></tr>`;

export function Workers() {
  const { value, at } = useResource("/api/workers", ["worker.", "beat", "task.claimed", "task.completed", "task.failed"]);
  const slots = /** @type {any[]} */ (useResource("/api/slots", ["slot.", "worker."]).value ?? []);
  const held = useResource("/api/tasks?state=claimed,running,asking&limit=1000", ["task.claimed", "task.asked", "task.answered", "task.confirmed"]).value ?? [];
  const [most, setMost] = useState(ROWS);
  const workers = /** @type {any[]} */ (value ?? []), alive = workers.filter(w => w.state !== "inactive");
  const tasks = new Map(held.map((/** @type {any} */ task) => [task.id, task]));
  const isLate = (/** @type {any} */ w) => w.leaseGrantedMs > 0 && w.leaseMs < w.leaseGrantedMs / 4;
  const quarantined = slots.filter(s => s.state === "quarantined");
  const look = alive.filter(w => isLate(w) || w.state !== "active"), well = alive.filter(w => !look.includes(w)), gone = workers.filter(w => w.state === "inactive");
  const hosts = new Map();
  for (const w of [...well].sort((a, b) => ((a.host ?? "") < (b.host ?? "") ? -1 : (a.host ?? "") > (b.host ?? "") ? 1 : (a.slot ?? a.workerId) < (b.slot ?? b.workerId) ? -1 : 1))) hosts.set(w.host ?? "", [...(hosts.get(w.host ?? "") ?? []), w]);
  let room = most;
  const shown = [...hosts].map(([host, list]) => { const part = list.slice(0, Math.max(0, room)); room -= part.length; return { host, list, part }; }).filter(each => each.part.length);
  const late = alive.filter(isLate).length;
  const head = [`${thousands(alive.length)} alive${hosts.size > 1 ? ` on ${thousands(new Set(alive.map(w => w.host ?? "")).size)} hosts` : ""}`, late ? `${late} late` : "", quarantined.length ? `${quarantined.length} quarantined` : ""].filter(Boolean).join(", ");
  const group = (/** @type {string} */ key, /** @type {any} */ name, /** @type {any} */ said, /** @type {any} */ rows) => html`<tbody key=${key}><tr class="gr"><td colspan="6">${name} <b>${said}</b></td></tr>${rows}</tbody>`;
  return html`<div class="head"><h1>Workers</h1><span class="q">${head}</span></div>
    ${value && !alive.length ? html`<${Empty} head="Nobody is here to work.">Tasks wait until a worker comes. Start one: <code>stint worker</code><//>` : null}
    ${workers.length || quarantined.length ? html`<table class="t two" aria-label="Workers"><thead><tr><th class="w9">Slot</th><th class="w18">Lease left</th><th>Holds</th><th class="w9 xl">Runs</th><th class="w5 num">Restarts</th><th class="w9"><span class="sr">Actions</span></th></tr></thead>
      ${look.length + quarantined.length ? group("look", "Look here", look.length + quarantined.length, html`${look.slice(0, ROWS).map(w => html`<${Row} key=${w.workerId + w.instance} w=${w} at=${at} tasks=${tasks} host />`)}${quarantined.map(slot => html`<${Quarantined} key=${"slot " + slot.name} slot=${slot} />`)}`) : null}
      ${shown.map(({ host, list, part }) => group("host " + host, html`<span class="iso">${clean(host || "no host told")}</span>`, `${thousands(list.reduce((/** @type {number} */ n, /** @type {any} */ w) => n + (w.held ?? 0), 0))} of ${count(list.reduce((/** @type {number} */ n, /** @type {any} */ w) => n + (w.maxConcurrent ?? 1), 0), "place")} in use`,
        part.map((/** @type {any} */ w) => html`<${Row} key=${w.workerId + w.instance} w=${w} at=${at} tasks=${tasks} />`)))}
      ${gone.length ? group("gone", "Gone", thousands(gone.length), gone.slice(0, GONE).map(w => html`<${Row} key=${w.workerId + w.instance} w=${w} at=${at} tasks=${tasks} host />`)) : null}</table>` : null}
    ${well.length > most ? html`<p class="pt"><${Button} onClick=${() => setMost(most + ROWS)}>Show ${thousands(Math.min(ROWS, well.length - most))} of ${thousands(well.length - most)} more<//></p>` : null}`;
}
