// How is the flow? Five lanes of status, the same filter and sentences as the table. A card is dropped only where the move is legal.
import { useState } from "preact/hooks";
import { allows, href, route } from "../live/state.js";
import { act, actionsOf, Act, actions } from "../part/actions.js";
import { Age, Empty, Glyph, Lease, Pips, Title, html, nowWords, useResource } from "../part/parts.js";
import { clean, lanes, thousands } from "../part/text.js";
import { Filter, filterNow, statesOf, useAddTask } from "./tasks.js";

const CARDS = 60;
const columns = /** @type {[string, string, string[]][]} */ ([["todo", "To do", lanes.waiting], ["in-progress", "In progress", [...lanes.running, "asking"]], ["review", "Review", ["review"]],
  ["blocked", "Blocked", ["blocked", "failed"]], ["done", "Done", ["done", "cancelled"]]]);

/** The gate that decides next. @param {any} task */
const gateOf = task => (task.gates ?? []).find((/** @type {string} */ gate) => !(task.gatesPassed ?? []).includes(gate)) ?? "review";

/** What may be done to a card, as moves to another lane: the same for a drop and for a button. @param {any} task
 * @returns {Record<string, { name: string, words: string[], say: string }>} */
function movesOf(task) {
  const may = actionsOf(task);
  if (task.state === "review") {
    const gate = gateOf(task);
    return { done: { name: "pass", words: [task.id, gate], say: `Drop to pass gate ${gate}` }, todo: { name: "reject", words: [task.id, gate], say: `Drop to reject it at gate ${gate}` } };
  }
  return may.includes("retry") ? { todo: { name: "retry", words: [task.id], say: "Drop to retry it" } } : {};
}

/** Why a card may not come to that lane. @param {any} task @param {string} lane */
const whyNot = (task, lane) => ({ todo: "It is under way: cancel it first", "in-progress": "Only a worker can start work", review: "Only the work itself gets here",
  blocked: "Only a failure gets here", done: task.state === "review" ? "" : "Only finished work gets here" })[lane] ?? "";

/** @param {{ lane: [string, string, string[]], held: any, hold: (task: any) => void }} props */
function Lane({ lane: [lane, name, states], held, hold }) {
  const filter = filterNow(), wide = filter.state ? statesOf(filter) : columns.flatMap(([, , each]) => each), wanted = states.filter(state => wide.includes(state));
  const path = "/api/tasks?" + new URLSearchParams({ ...filter, state: (wanted.length ? wanted : states).join(","), include: "why", limit: String(CARDS + 1) });
  const { value, at } = useResource(path, ["task.", "claim.", "gate."]);
  const cards = wanted.length ? /** @type {any[]} */ (value ?? []).slice(0, CARDS) : [];
  const isHome = held && states.includes(held.state), move = held && !isHome ? movesOf(held)[lane] : undefined;
  return html`<section class=${"lane" + (!held || isHome ? "" : move ? " yes" : " no")} aria-label=${name} data-lane=${lane}
    onDragOver=${(/** @type {any} */ e) => { if (move) e.preventDefault(); }}
    onDrop=${(/** @type {any} */ e) => { e.preventDefault(); if (move) act(move.name, ...move.words); hold(null); }}>
    <h2>${name} <b>${thousands(cards.length)}${(value?.length ?? 0) > CARDS && wanted.length ? " and more" : ""}</b></h2><ul>${held && !isHome ? html`<li class="say-l">${move ? move.say : whyNot(held, lane)}</li>` : null}${cards.map(task => html`<li key=${task.id} data-id=${task.id} class=${"card" + (held?.id === task.id ? " drag" : "")} draggable=${Object.values(movesOf(task)).some(one => allows(actions[one.name].role))}
      onDragStart=${(/** @type {any} */ e) => { e.dataTransfer.setData("text/plain", task.id); setTimeout(() => hold(task)); }} onDragEnd=${() => hold(null)}>
      <span class="r"><${Glyph} state=${task.state} /><a class="mono" href=${href("task", task.id)} tabindex="-1">${clean(task.id)}</a><span class="end"><${Pips} task=${task} /></span><${Age} at=${lanes.finished.includes(task.state) ? task.updatedAt : task.createdAt} /></span>
      <h3><a href=${href("task", task.id)}><${Title} task=${task} /></a></h3><p class=${{ failed: "bad", asking: "you", review: "you", blocked: "you" }[/** @type {string} */ (task.state)] ?? ""}><bdi>${nowWords(task)}</bdi></p>
      ${task.workerId && lane === "in-progress" ? html`<span class="r"><span class="cut iso">${clean(task.workerId)}</span></span><${Lease} ms=${task.leaseMs} of=${60000} at=${at} />` : null}
      ${lane !== "done" && Object.values(movesOf(task)).length ? html`<span class="r">${Object.values(movesOf(task)).map(one => html`<${Act} key=${one.name} name=${one.name} words=${one.words} bare label=${actions[one.name].label} />`)}</span>` : null}</li>`)}</ul></section>`;
}

export function Board() {
  const [held, hold] = useState(/** @type {any} */ (null));
  const queues = useResource("/api/queues", ["task.", "queue."]).value, add = useAddTask();
  route.value;
  return html`<div class="head"><h1>Tasks</h1>${add}</div><${Filter} page="board" />
    ${queues?.length === 0 ? html`<${Empty} head="No tasks yet."><code>stint add "fix the flaky test" --agent claude --cwd .</code><//>` : null}
    <div class="board">${columns.map(lane => html`<${Lane} key=${lane[0]} lane=${lane} held=${held} hold=${hold} />`)}</div>`;
}
