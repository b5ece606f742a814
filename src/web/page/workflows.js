// Workflows as stages from left to right, with where tasks are. What skips a stage runs above, what is rejected runs back beneath.
import { useState } from "preact/hooks";
import { href } from "../live/state.js";
import { Button, Empty, html, useResource } from "../part/parts.js";
import { clean, count, lanes, thousands } from "../part/text.js";

const TASKS = 500, WIDTH = 71, GAP = 1.3, TALL = 3.5, LEVEL = 0.9; // in rem
const shown = [...lanes.you, ...lanes.running, ...lanes.waiting, "failed"].join(",");

/** Stages in the order of the rules, as far as the one that is done; and the moves between them. @param {any} flow */
function planOf(flow) {
  const all = /** @type {string[]} */ ([]), moves = new Map(), back = new Map();
  for (const rule of flow.rules ?? []) for (const stage of [...(rule.from ?? []), rule.to]) if (stage && !all.includes(stage) && stage !== "failed") all.push(stage);
  const stages = flow.last && all.includes(flow.last) ? all.slice(0, all.indexOf(flow.last) + 1) : all;
  for (const rule of flow.rules ?? []) for (const from of rule.from ?? []) {
    const a = stages.indexOf(from), b = stages.indexOf(rule.to), r = stages.indexOf(rule.onReject);
    if (a >= 0 && b > a) moves.set(`${a}-${b}`, { a, b });
    if (a > r && r >= 0) back.set(`${a}-${r}`, { a, b: r });
  }
  return { stages, moves: [...moves.values()].sort((x, y) => (x.b - x.a) - (y.b - y.a)), back: [...back.values()].sort((x, y) => (x.a - x.b) - (y.a - y.b)) };
}

/** Lines of one side that do not touch: each on the lowest level that is free over its length. @param {{ a: number, b: number }[]} list */
function levels(list) {
  const taken = /** @type {[number, number][][]} */ ([]);
  return list.map(({ a, b }) => {
    const from = Math.min(a, b), to = Math.max(a, b);
    let level = taken.findIndex(row => row.every(([x, y]) => to <= x || from >= y));
    if (level < 0) level = taken.push([]) - 1;
    taken[level].push([from, to]);
    return { a, b, level };
  });
}

/** @param {{ flow: any }} props */
function Flow({ flow }) {
  const [open, setOpen] = useState(false);
  const { stages, moves, back } = planOf(flow);
  const tasks = /** @type {any[]} */ (useResource(`/api/tasks?workflow=${encodeURIComponent(flow.name)}&state=${shown}&limit=${TASKS}`, ["task.", "gate."]).value ?? []), many = tasks.length === TASKS;
  const at = (/** @type {string} */ stage) => tasks.filter(task => task.stage === stage);
  const STEP = Math.max(7.2, Math.min(10.5, WIDTH / stages.length)), BOX = STEP - GAP, over = levels(moves.filter(({ a, b }) => b > a + 1)), under = levels(back), next = moves.filter(({ a, b }) => b === a + 1);
  const head = (over.length ? Math.max(...over.map(one => one.level)) + 1 : 0) * LEVEL + 0.4, foot = (under.length ? Math.max(...under.map(one => one.level)) + 1 : 0) * LEVEL + 0.6;
  const mid = (/** @type {number} */ i) => i * STEP + BOX / 2, wide = stages.length * STEP - GAP, high = head + TALL + foot;
  const arc = (/** @type {any} */ one, /** @type {boolean} */ below) => { const y = below ? head + TALL : head, to = below ? y + (one.level + 1) * LEVEL - 0.3 : y - (one.level + 1) * LEVEL + 0.3, lean = 0.8;
    return `M${mid(one.a) + (below ? -lean : lean)} ${y}V${to}H${mid(one.b) + (below ? lean : -lean)}V${y}`; };
  const failed = at("failed").length + tasks.filter(task => task.state === "failed" && task.stage !== "failed").length;
  const words = stages.map(stage => `${stage} ${at(stage).length}`).join(", ");
  return html`<section data-flow=${flow.name}><h2 class="h2"><bdi>${clean(flow.name)}</bdi> <span class="q iso">${clean(flow.text)}</span><span class="end">${failed ? html`<a class="bad" href=${href("tasks", "", { workflow: flow.name, state: "failed" })}>${count(failed, "task")} failed</a> · ` : null}${many ? `the first ${thousands(TASKS)} open tasks` : count(tasks.length - failed, "open task")} · ${flow.builtIn ? "built in" : "configured"}</span></h2>
    <div class="flow" tabindex="0" role="group" aria-label=${`${clean(flow.name)}: ${clean(words)}`}><div class="flow-in" style=${{ width: `${wide}rem`, height: `${high}rem` }}><svg viewBox=${`0 0 ${wide} ${high}`} aria-hidden="true">
      ${next.map(({ a }) => { const y = head + TALL / 2, x = a * STEP + BOX; return html`<path key=${"n" + a} d=${`M${x} ${y}H${x + GAP - 0.25}m-.4 -.3l.4 .3l-.4 .3`} />`; })}
      ${over.map(one => html`<path key=${"o" + one.a + one.b} d=${arc(one, false) + "m-.3 -.4l.3 .4l.3 -.4"} />`)}${under.map(one => html`<path key=${"u" + one.a + one.b} class="bk" d=${arc(one, true) + "m-.3 .4l.3 -.4l.3 .4"} />`)}</svg>
      ${stages.map((stage, i) => { const here = at(stage), you = here.filter(task => lanes.you.includes(task.state)).length, run = here.filter(task => lanes.running.includes(task.state)).length;
        return html`<a class=${"box" + (here.length ? " has" : "") + (stage === flow.last ? " last" : "")} key=${stage} data-stage=${stage} href=${href("tasks", "", { workflow: flow.name, stage })} style=${{ left: `${i * STEP}rem`, top: `${head}rem`, width: `${BOX}rem`, height: `${TALL}rem` }}>
          <bdi class="cut" title=${clean(stage)}>${clean(stage)}</bdi><span class="r">${here.length ? html`${you ? html`<b class="you">${thousands(you)} need${you === 1 ? "s" : ""} you</b>` : null}${run ? html`<b class="run-w">${thousands(run)} running</b>` : null}${here.length > run + you ? html`<b>${thousands(here.length - run - you)} open</b>` : null}` : html`<span class="q">${stage === flow.last ? "done" : "–"}</span>`}</span></a>`; })}</div></div>
    <p><${Button} bare cli=${`stint workflow show ${flow.name}`} aria-pressed=${open ? "true" : "false"} onClick=${() => setOpen(!open)}>${open ? "Hide what moves a task" : "What moves a task"}<//></p>
    ${open ? html`<table class="t two" aria-label=${`Moves of ${clean(flow.name)}`}><thead><tr><th class="w18">From</th><th class="w8">To</th><th>When one of these is told</th></tr></thead><tbody>${(flow.rules ?? []).filter((/** @type {any} */ rule) => (rule.from ?? []).some((/** @type {string} */ from) => stages.includes(from) || from === "failed")).map((/** @type {any} */ rule, /** @type {number} */ i) => html`<tr key=${i}><td data-l="From"><bdi>${clean((rule.from ?? []).join(", "))}</bdi></td>
      <td data-l="To"><bdi>${clean(rule.to)}</bdi>${rule.onReject ? html`<div class="q">or back to <bdi>${clean(rule.onReject)}</bdi></div>` : null}</td><td class="full-w"><bdi class="mono">${clean((rule.events ?? []).join(", "))}</bdi></td></tr>`)}</tbody></table>` : null}</section>`;
}

export function Workflows() {
  const { value } = useResource("/api/workflows", ["server."]);
  return html`<div class="head"><h1>Workflows</h1></div>${value && value.length === 0 ? html`<${Empty} head="No workflow is configured." />` : null}${(value ?? []).map((/** @type {any} */ flow) => html`<${Flow} key=${flow.name} flow=${flow} />`)}`;
}
