// What has failed for good or is blocked, by its cause, and redrive: retry all tasks of one cause at once.
import { useState } from "preact/hooks";
import { go, href } from "../live/state.js";
import { actions } from "../part/actions.js";
import { BulkOf } from "../part/bulk.js";
import { Age, Button, Empty, html, useResource } from "../part/parts.js";
import { allows } from "../live/state.js";
import { clean, count, thousands } from "../part/text.js";
import { useRows, useSettled } from "./schedules.js";

/** @param {any} cause */
const filterOf = cause => /** @type {Record<string, string>} */ ({ error: cause.id, state: "failed,blocked" });

export function Dead() {
  const { value, failed } = useResource("/api/errors?state=failed,blocked", ["task.failed", "task.blocked", "task.retried", "task.requeued", "task.cancelled", "task.purged", "bulk.ended"]);
  const [wanted, setWanted] = useState(/** @type {any} */ (null));
  const list = useSettled(/** @type {any[]} */ (value ?? []), cause => cause.id), may = allows(actions.bulkRetry.role);
  const here = useRows(list, cause => cause.id, (key, cause) => {
    if (key === "Enter") go(href("tasks", "", { error: cause.id }));
    if (key === "r" && may) setWanted(cause);
    if (key === "Escape") setWanted(null);
  });
  const sum = list.reduce((n, cause) => n + cause.tasks, 0);
  return html`<div class="head"><h1>Dead letter</h1><span class="q">${sum ? `${count(sum, "task")} of ${count(list.length, "cause")}` : ""}</span>
      ${list.length > 1 ? html`<span class="end"><${Button} cli=${actions.bulkRetry.cli(JSON.stringify({ state: "failed" }))} disabled=${!may} reason=${`this needs the role ${actions.bulkRetry.role}`} data-redrive-all onClick=${() => setWanted({ id: "" })}>Redrive all that failed<//></span>` : null}</div>
    ${failed && !value ? html`<${Empty} head="The causes cannot be read.">${clean(failed)}<//>` : null}
    ${value && list.length === 0 ? html`<${Empty} head="Nothing has failed for good.">What spends its attempts ends here: <code>stint errors</code><//>` : null}
    ${list.length ? html`<table class="t two" aria-label="Causes"><thead><tr><th class="w5 num">Tasks</th><th>Cause</th><th class="w8">Last</th><th class="w6 num xl">First</th><th class="w9"><span class="sr">Actions</span></th></tr></thead>
      <tbody>${list.map(cause => html`<tr key=${cause.id} data-id=${cause.id} class=${cause.id === here ? "at" : ""}><td class="num"><a class="link" href=${href("tasks", "", { error: cause.id })}><b>${thousands(cause.tasks)}</b></a></td>
        <td class="full-w"><b class="mono iso">${clean(cause.code)}</b> <span class="q">${[cause.failed ? `${thousands(cause.failed)} failed` : "", cause.blocked ? `${thousands(cause.blocked)} blocked` : ""].filter(Boolean).join(", ")}</span><div class="clamp"><bdi>${cause.message ? clean(cause.message) : html`<span class="q">many messages</span>`}</bdi></div></td>
        <td data-l="Last"><${Age} at=${cause.lastAt} ago /><br /><a class="link mono" href=${href("task", cause.task)}>${clean(cause.task)}</a></td><td data-l="First" class="num xl"><${Age} at=${cause.firstAt} class="q" /></td>
        <td class="num nw full-w"><${Button} cli=${actions.bulkRetry.cli(JSON.stringify(filterOf(cause)))} disabled=${!may} reason=${`this needs the role ${actions.bulkRetry.role}`} data-redrive onClick=${() => setWanted(cause)}>Redrive ${thousands(cause.tasks)}<//></td></tr>`)}</tbody></table>` : null}
    ${wanted ? html`<div class="bulk on" role="toolbar" aria-label="Redrive"><${BulkOf} key=${wanted.id} name="bulkRetry" filter=${wanted.id ? filterOf(wanted) : { state: "failed" }} close=${() => setWanted(null)} /></div>` : null}`;
}
