// Workflows as stages from left to right, with where tasks are; and the dead letter by error.
import { href } from "../live/state.js";
import { Act } from "../part/actions.js";
import { Age, Empty, Title, html, useResource } from "../part/parts.js";
import { clean, count } from "../part/text.js";

/** Stages in the order of the rules. @param {any} flow */
function stagesOf(flow) {
  const stages = /** @type {string[]} */ ([]);
  for (const rule of flow.rules ?? []) for (const stage of [...(rule.from ?? []), rule.to]) if (stage && !stages.includes(stage) && stage !== "failed") stages.push(stage);
  return stages;
}

/** @param {{ flow: any }} props */
function Flow({ flow }) {
  const tasks = useResource(`/api/tasks?workflow=${encodeURIComponent(flow.name)}&limit=500`, ["task."]).value ?? [];
  const at = (/** @type {string} */ stage) => tasks.filter((/** @type {any} */ t) => t.stage === stage).length;
  return html`<section><h2 class="h2"><bdi>${clean(flow.name)}</bdi> <span class="q iso">${clean(flow.text)}</span><span class="end">${flow.builtIn ? "built in" : "configured"}</span></h2><div class="flow">${stagesOf(flow).map((stage, i) => html`${i ? html`<span class="q" aria-hidden="true">→</span>` : null}
    <a class=${"box" + (at(stage) ? " has" : "")} key=${stage} href=${href("tasks", "", { workflow: flow.name, stage })}><bdi>${clean(stage)}</bdi>${at(stage) ? html`<b>${at(stage)}</b>` : null}</a>`)}</div></section>`;
}

export function Workflows() {
  const { value } = useResource("/api/workflows", ["server."]);
  return html`<div class="head"><h1>Workflows</h1></div>${value && value.length === 0 ? html`<${Empty} head="No workflow is configured." />` : null}${(value ?? []).map((/** @type {any} */ flow) => html`<${Flow} key=${flow.name} flow=${flow} />`)}`;
}

/** The same error with other numbers is the same error. @param {any} task */
const kind = task => `${task.error?.code ?? "unknown"}: ${(task.error?.message ?? "").replace(/\d+/g, "N").slice(0, 160)}`;

export function Dead() {
  const { value } = useResource("/api/tasks?state=failed&limit=500", ["task."]);
  const groups = new Map();
  for (const task of value ?? []) { const name = kind(task); groups.set(name, [...(groups.get(name) ?? []), task]); }
  return html`<div class="head"><h1>Dead letter</h1><span class="q">failed for good, by error</span></div>${value && value.length === 0 ? html`<${Empty} head="Nothing has failed for good.">What spends its attempts ends here: <code>stint ls --state failed</code><//>` : null}
    ${[...groups].sort((a, b) => b[1].length - a[1].length).map(([name, tasks]) => html`<section key=${name}><h2 class="h2"><bdi class="cut">${clean(name)}</bdi><span class="end">${count(tasks.length, "task")}</span></h2>
      ${tasks.slice(0, 20).map((/** @type {any} */ task) => html`<div class="li" key=${task.id}><a class="link mono" href=${href("task", task.id)}>${clean(task.id)}</a><span class="cut"><${Title} task=${task} /> <span class="q iso">${clean(task.error?.message)}</span></span><${Age} at=${task.updatedAt} class="q" /><span class="end"><${Act} name="retry" words=${[task.id]} bare /></span></div>`)}</section>`)}`;
}
