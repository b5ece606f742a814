// What do the agents do and eat?
import { href } from "../live/state.js";
import { Act } from "../part/actions.js";
import { Age, Empty, Glyph, html, useResource } from "../part/parts.js";
import { clean, span } from "../part/text.js";

const glyphs = /** @type {Record<string, string>} */ ({ pending: "pending", queued: "ready", running: "running", stopping: "running", asking: "asking", completed: "done", failed: "failed", stopped: "cancelled" });

export function Sessions() {
  const { value } = useResource("/api/sessions", ["session.", "task."]);
  const rows = /** @type {any[]} */ (value ?? []), live = rows.filter(s => !["completed", "failed", "stopped"].includes(s.status));
  return html`<div class="head"><h1>Sessions</h1><span class="q">${live.length} open</span></div>
    ${value && rows.length === 0 ? html`<${Empty} head="No agent is running.">Sessions of the last day appear here and in <code>stint session ls</code>.<//>` : null}
    ${rows.length ? html`<table class="t two"><thead><tr><th class="w6">State</th><th>Session</th><th>Task</th><th class="xl">Worker</th><th class="w6 xl">Model</th><th class="w6 num">Ran</th><th class="w5"><span class="sr">Actions</span></th></tr></thead><tbody>${[...live, ...rows.filter(s => !live.includes(s))].map(s => html`<tr key=${s.id}>
      <td data-l="State"><span class=${"st s-" + glyphs[s.status]}><${Glyph} state=${glyphs[s.status] ?? "ready"} /><span>${clean(s.status)}</span></span></td><td data-l="Session"><code>${clean(s.id)}</code>${s.error ? html`<br /><span class="bad iso">${clean(s.error)}</span>` : null}</td>
      <td data-l="Task"><a class="link" href=${href("task", s.taskId)}>${clean(s.taskId)}</a></td><td data-l="Worker" class="xl iso">${clean(s.workerId)}</td><td data-l="Model" class="xl iso">${clean(s.model)}</td>
      <td data-l="Ran" class="num">${s.startedAt ? s.endedAt ? span(s.endedAt - s.startedAt) : html`<${Age} at=${s.startedAt} />` : "–"}</td><td class="num">${live.includes(s) ? html`<${Act} name="stopSession" words=${[s.id]} bare />` : null}</td></tr>`)}</tbody></table>` : null}`;
}
