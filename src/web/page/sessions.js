// What do the agents do and eat?
import { go, href, now } from "../live/state.js";
import { Act, act } from "../part/actions.js";
import { Age, Copy, Empty, Glyph, html, nowWords, useResource } from "../part/parts.js";
import { clean, count, money, quote, span, thousands, tokens } from "../part/text.js";
import { useRows, useSettled } from "./schedules.js";

const MIN_MS = 60000;
const glyphs = /** @type {Record<string, string>} */ ({ pending: "pending", queued: "ready", running: "running", stopping: "running", asking: "asking", completed: "done", failed: "failed", stopped: "cancelled" });
const words = /** @type {Record<string, string>} */ ({ pending: "Parked", queued: "Ready", running: "Running", stopping: "Stopping", asking: "Asking", completed: "Done", failed: "Failed", stopped: "Stopped" });

/** @param {any} s */
const isOpen = s => !["completed", "failed", "stopped"].includes(s.status);

/** What a session costs in a minute of its attempt, as far as that is known. @param {any} s */
const pace = s => s.status === "running" && s.usage?.usd && s.startedAt && now.value - s.startedAt > MIN_MS ? s.usage.usd / ((now.value - s.startedAt) / MIN_MS) : 0;

export function Sessions() {
  const { value } = useResource("/api/sessions", ["session.", "task."]);
  const held = useResource("/api/tasks?state=claimed,running,asking&limit=1000&include=why", ["task.", "claim."]).value ?? [];
  const tasks = new Map(held.map((/** @type {any} */ task) => [task.id, task]));
  const all = /** @type {any[]} */ (value ?? []), open = all.filter(isOpen), over = all.filter(s => !isOpen(s)).sort((a, b) => (b.endedAt ?? 0) - (a.endedAt ?? 0));
  const list = useSettled([...open, ...over].slice(0, 300), s => s.id);
  const here = useRows(list, s => s.id, (key, s) => { if (key === "Enter") go(href("task", s.taskId)); if (key === "s" && isOpen(s)) act("stopSession", s.id); });
  const chosen = list.find(s => s.id === here) ?? list.find(s => s.attach), perMinute = open.reduce((n, s) => n + pace(s), 0);
  return html`<div class="head"><h1>Sessions</h1><span class="q">${all.length ? [`${thousands(open.length)} open`, perMinute ? `${money(perMinute)} per min` : "", `${thousands(over.length)} ended in the last day`].filter(Boolean).join(" · ") : ""}</span></div>
    ${value && all.length === 0 ? html`<${Empty} head="No agent is running.">Sessions of the last day appear here and in <code>stint session ls</code>.<//>` : null}
    ${list.length ? html`<table class="t" aria-label="Sessions"><thead><tr><th class="w6">State</th><th class="w8">Id</th><th class="w9">Agent</th><th>Doing</th><th class="w5 num xl">Turns</th><th class="w9 num xl">Tokens in / out</th><th class="w5 num">Money</th><th class="w6 num xl">Ran</th><th class="w5"><span class="sr">Actions</span></th></tr></thead><tbody>${list.map(s => {
      const used = s.usage, task = tasks.get(s.taskId), doing = s.error ?? (task ? nowWords(task) : "");
      return html`<tr key=${s.id} data-id=${s.id} class=${(isOpen(s) ? "" : "fin") + (s.id === here ? " at" : "")}>
        <td class="c-st"><span class=${"st s-" + glyphs[s.status]}><${Glyph} state=${glyphs[s.status] ?? "ready"} /><span>${words[s.status] ?? clean(s.status)}</span></span></td><td class="c-id"><a href=${href("task", s.taskId)}>${clean(s.id)}</a></td>
        <td data-l="Agent"><b class="iso">${clean(s.adapter ?? "")}</b> <span class="q iso">${clean(s.model ?? "")}</span></td><td class="c-now" title=${clean(doing)}>${s.taskId === s.id ? null : html`<a class="mono" href=${href("task", s.taskId)}>${clean(s.taskId)}</a> `}<bdi class=${s.error ? "bad" : ""}>${clean(doing)}</bdi></td>
        <td class="num xl">${used?.turns ? thousands(used.turns) : html`<span class="q">–</span>`}</td><td class="num xl">${used ? `${tokens(used.inputTokens + used.cacheReadTokens + used.cacheWriteTokens)} / ${tokens(used.outputTokens)}` : html`<span class="q">–</span>`}</td>
        <td data-l="Money" class="num">${used ? used.usd === null ? html`<span class="q">unknown</span>` : money(used.usd) : html`<span class="q">–</span>`}</td>
        <td class="num xl">${s.startedAt ? s.endedAt ? span(s.endedAt - s.startedAt) : html`<${Age} at=${s.startedAt} />` : html`<span class="q">–</span>`}</td><td class="num">${isOpen(s) ? html`<${Act} name="stopSession" words=${[s.id]} bare />` : null}</td></tr>`;
    })}</tbody></table>` : null}
    ${chosen ? html`<div class="grid mt"><section class="c6"><h2 class="h2"><span class="mono">${clean(chosen.id)}</span>${chosen.host ? html`<span class="q iso">on ${clean(chosen.host)}</span>` : null}<span class="end">${count(chosen.attempt ?? 0, "attempt")}</span></h2><dl class="facts"><dt>Task</dt><dd><a class="link mono" href=${href("task", chosen.taskId)}>${clean(chosen.taskId)}</a></dd>
        <dt>Worker</dt><dd class="iso">${clean(chosen.workerId ?? "nobody")}</dd>${chosen.agentSessionId ? html`<dt>Its own name</dt><dd class="mono iso">${clean(chosen.agentSessionId)}</dd>` : null}</dl></section>
      <section class="c6"><h2 class="h2">Go on by hand</h2>${chosen.attach ? html`<div class="pt"><${Copy} text=${`stint session attach ${quote(chosen.id)}`} /></div><p class="pt q">Prints the agent's own command, to be typed on the host of its worker.</p>` : html`<p class="pt q">This session has no command of its own to go on with.</p>`}
        <div class="pt"><${Copy} text=${`stint session prompt ${quote(chosen.id)}`} /></div></section></div>` : null}`;
}
