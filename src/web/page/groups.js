// How far is each group, and may it go on?
import { go, href } from "../live/state.js";
import { Act } from "../part/actions.js";
import { Age, Empty, html, useResource } from "../part/parts.js";
import { clean, count, lanes, thousands } from "../part/text.js";
import { useRows, useSettled } from "./schedules.js";

/** @param {any} group @param {string[]} states */
const sum = (group, states) => states.reduce((n, state) => n + group.counts[state], 0);

/** Members in words: what is done first, then what is not. @param {any} group */
function progress(group) {
  const rest = [[sum(group, ["failed"]), "failed"], [sum(group, ["cancelled"]), "cancelled"], [sum(group, lanes.you), "need you"], [sum(group, lanes.running), "running"], [sum(group, lanes.waiting), "waiting"]];
  return [`${thousands(group.counts.done)} of ${thousands(group.tasks)} done`, ...rest.filter(([n]) => n).map(([n, word]) => `${thousands(/** @type {number} */ (n))} ${word}`)].join(", ");
}

/** One bar per group: done, failed, what needs a person, what runs; the rest of the bar is still to do. @param {{ group: any }} props */
function Bar({ group }) {
  const parts = /** @type {[string, string[]][]} */ ([["done", ["done", "cancelled"]], ["bad", ["failed"]], ["you", lanes.you], ["run", lanes.running]]);
  return html`<span class="parts" role="img" aria-label=${progress(group)}>${parts.filter(([, states]) => sum(group, states)).map(([kind, states]) => html`<i key=${kind} class=${kind} style=${{ "--w": `${(100 * sum(group, states) / group.tasks).toFixed(2)}%` }}></i>`)}</span>`;
}

/** @param {any} group */
const standing = group => group.ended ? sum(group, ["failed", "cancelled"]) ? html`<span class="bad">ended, not all done</span>` : "ended" : group.closed ? "closed" : "open";

export function Groups() {
  const { value, failed } = useResource("/api/groups", ["group.", "task."]);
  const rank = (/** @type {any} */ g) => g.ended ? 2 : sum(g, ["failed", ...lanes.you]) ? 0 : 1;
  const sorted = [.../** @type {any[]} */ (value ?? [])].sort((a, b) => rank(a) - rank(b) || b.createdAt - a.createdAt || (a.name < b.name ? -1 : 1));
  const list = useSettled(sorted, g => g.name), open = list.filter(g => !g.ended).length;
  const here = useRows(list, g => g.name, (key, g) => { if (key === "Enter") go(href("tasks", "", { group: g.name })); });
  return html`<div class="head"><h1>Groups</h1><span class="q">${list.length ? `${count(list.length, "group")}, ${thousands(open)} not ended` : ""}</span></div>
    ${failed && !value ? html`<${Empty} head="The groups cannot be read.">${clean(failed)}<//>` : null}
    ${value && !list.length ? html`<${Empty} head="No task is in a group.">A group begins with its first task: <code>stint add "port one file" --group port</code><//>` : null}
    ${list.length ? html`<table class="t two" aria-label="Groups"><thead><tr><th class="w18">Group</th><th>Tasks</th><th class="w6 num">Since</th><th class="w9"><span class="sr">Actions</span></th></tr></thead>
      <tbody>${list.map(g => html`<tr key=${g.name} data-id=${g.name} class=${g.name === here ? "at" : ""}><td><a href=${href("tasks", "", { group: g.name })}><b class="iso">${clean(g.name)}</b></a><div class="q">${standing(g)}</div></td>
        <td class="full-w"><${Bar} group=${g} /><div>${progress(g)}</div></td><td data-l="Since" class="num"><${Age} at=${g.createdAt} class="q" /></td>
        <td class="num nw full-w">${g.ended ? html`<${Act} name="removeGroup" words=${[g.name]} bare />` : g.closed ? null : html`<${Act} name="closeGroup" words=${[g.name]} bare />`}</td></tr>`)}</tbody></table>` : null}`;
}
