// Who is alive, who is about to be lost?
import { href, now } from "../live/state.js";
import { Act } from "../part/actions.js";
import { Age, Empty, Lease, html, useResource } from "../part/parts.js";
import { clean, count, span } from "../part/text.js";

/** @param {{ w: any, at: number }} props */
function Row({ w, at }) {
  const alive = w.state !== "inactive", tasks = (w.tasks ?? []).map((/** @type {any} */ t) => t.id ?? t);
  return html`<tr><td data-l="Worker"><b class="iso">${clean(w.slot ?? w.workerId)}</b>${w.slot ? html`<br /><span class="q mono">${clean(w.workerId)}</span>` : null}<br /><span class="q iso">${clean(w.host)}${w.pid ? `, pid ${w.pid}` : ""}</span></td>
    <td data-l="Lease">${alive ? html`<${Lease} ms=${w.leaseMs} of=${w.leaseGrantedMs} at=${at} full text /><span class="q">beat ${w.lastBeatAt ? span(now.value - w.lastBeatAt) : "never"} ago, of ${span(w.leaseGrantedMs)}</span>` : html`<span class="q">${clean(w.ended ?? "gone")}${w.endedAt ? html`, <${Age} at=${w.endedAt} ago />` : null}</span>`}</td>
    <td data-l="State">${w.state === "active" ? "" : html`<span class=${alive ? "you" : "q"}>${w.state}</span>`}</td>
    <td data-l="Holds">${tasks.length ? tasks.map((/** @type {string} */ id) => html`<a class="link" key=${id} href=${href("task", id)}>${clean(id)}</a> `) : html`<span class="q">${w.held ? count(w.held, "task") : "nothing"}</span>`}<br /><span class="q">${w.held ?? 0} of ${w.maxConcurrent ?? 1}</span></td>
    <td data-l="Serves" class="xl"><bdi>${clean((w.queues ?? []).join(", ") || (w.anyQueue ? "every queue" : "–"))}</bdi><br /><span class="q iso">${clean((w.executors ?? ["any"]).join(", "))}</span></td>
    <td data-l="Restarts" class="num">${w.restarts ?? 0}</td>
    <td class="num nw">${alive ? html`<${Act} name="quiet" words=${[w.workerId]} bare /><${Act} name="stop" words=${[w.workerId]} bare />` : null}</td></tr>`;
}

export function Workers() {
  const { value, at } = useResource("/api/workers", ["worker.", "beat", "task.claimed", "task.completed", "task.failed"]);
  const slots = useResource("/api/slots", ["slot.", "worker."]).value ?? [];
  const workers = /** @type {any[]} */ (value ?? []);
  const late = (/** @type {any} */ w) => w.state !== "inactive" && w.leaseGrantedMs > 0 && w.leaseMs < w.leaseGrantedMs / 4;
  const quarantined = slots.filter((/** @type {any} */ s) => s.state === "quarantined" || s.quarantined);
  const groups = [["Look here", workers.filter(w => late(w) || (w.state !== "active" && w.state !== "inactive"))], ["Here", workers.filter(w => w.state === "active" && !late(w))], ["Gone", workers.filter(w => w.state === "inactive").slice(0, 30)]];
  return html`<div class="head"><h1>Workers</h1><span class="q">${count(workers.filter(w => w.state !== "inactive").length, "worker")} alive</span></div>
    ${value && workers.every(w => w.state === "inactive") ? html`<${Empty} head="Nobody is here to work.">Tasks wait until a worker comes. Start one: <code>stint worker</code><//>` : null}
    ${quarantined.length ? html`<section><h2 class="h2">Quarantined slots</h2>${quarantined.map((/** @type {any} */ s) => html`<div class="li" key=${s.slot ?? s.name}><b class="iso">${clean(s.slot ?? s.name)}</b><span class="cut q">crashed too often${s.restarts ? `, ${s.restarts} restarts` : ""}</span><span class="end"><${Act} name="unquarantine" words=${[s.slot ?? s.name]} /></span></div>`)}</section>` : null}
    ${workers.length ? html`<table class="t two"><thead><tr><th>Worker</th><th class="w18">Lease</th><th class="w6">State</th><th>Holds</th><th class="xl">Serves</th><th class="w5 num">Restarts</th><th class="w9"><span class="sr">Actions</span></th></tr></thead>
      ${groups.filter(([, list]) => list.length).map(([name, list]) => html`<tbody key=${name}><tr class="gr"><td colspan="7">${name} <b>${list.length}</b></td></tr>${/** @type {any[]} */ (list).map(w => html`<${Row} key=${w.workerId + w.instance} w=${w} at=${at} />`)}</tbody>`)}</table>` : null}`;
}
