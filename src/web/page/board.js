// How is the flow? Five lanes of status, the same filter and sentences as the table. A card is dropped only where the move is legal.
import { useState } from "preact/hooks";
import { href, route } from "../live/state.js";
import { act, actionsOf, Act } from "../part/actions.js";
import { Age, Glyph, Title, html, nowWords, useResource } from "../part/parts.js";
import { clean } from "../part/text.js";
import { Filter, filterQuery } from "./tasks.js";

const lanes = [["todo", "To do"], ["in-progress", "In progress"], ["review", "Review"], ["blocked", "Blocked"], ["done", "Done"]];

/** What a drop of the task in that lane means. @param {any} task @param {string} lane */
function move(task, lane) {
  const may = actionsOf(task);
  if (lane === task.status) return null;
  if (lane === "todo" && may.includes("retry")) return { name: "retry", say: "Drop to retry it" };
  return { name: "", say: lane === "in-progress" ? "Only a worker can start work" : lane === "todo" ? "It is under way: cancel it first" : "Only its work can bring it here" };
}

export function Board() {
  const { value } = useResource(filterQuery(200), ["task.", "claim.", "gate."]);
  const [held, setHeld] = useState(/** @type {any} */ (null));
  route.value;
  const tasks = /** @type {any[]} */ (value ?? []);
  return html`<div class="head"><h1>Board</h1></div><${Filter} page="board" />
    <div class="board">${lanes.map(([lane, name]) => {
      const cards = tasks.filter(task => (task.status === "cancelled" ? "done" : task.status) === lane).slice(0, 60);
      const drop = held ? move(held, lane) : null;
      return html`<section class=${"lane" + (drop ? drop.name ? " yes" : " no" : "")} key=${lane} aria-label=${name}
        onDragOver=${(/** @type {any} */ e) => { if (drop?.name) e.preventDefault(); }}
        onDrop=${(/** @type {any} */ e) => { e.preventDefault(); if (drop?.name) act(drop.name, held.id); setHeld(null); }}>
        <h2>${name} <b>${cards.length}</b></h2><ul>${drop ? html`<li class="say-l">${drop.say}</li>` : null}${cards.map(task => html`<li key=${task.id} class=${"card" + (held?.id === task.id ? " drag" : "")} draggable="true"
          onDragStart=${(/** @type {any} */ e) => { e.dataTransfer.setData("text/plain", task.id); setTimeout(() => setHeld(task)); }} onDragEnd=${() => setHeld(null)}>
          <h3><a href=${href("task", task.id)}><${Title} task=${task} /></a></h3><p><bdi>${nowWords(task)}</bdi></p>
          <span class="r"><${Glyph} state=${task.state} /><span class="mono">${clean(task.id)}</span><span class="iso">${clean(task.queue)}</span><${Age} at=${task.createdAt} class="end" /></span>
          ${actionsOf(task).includes("retry") ? html`<span class="r"><${Act} name="retry" words=${[task.id]} bare /></span>` : null}</li>`)}</ul></section>`;
    })}</div>`;
}
