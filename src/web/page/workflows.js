// Workflows as stages from left to right, with where tasks are.
import { href } from "../live/state.js";
import { Empty, html, useResource } from "../part/parts.js";
import { clean } from "../part/text.js";

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
