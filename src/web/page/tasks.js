// Where is my thing and what is it doing now?
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { go, href, now, route } from "../live/state.js";
import { act, actions } from "../part/actions.js";
import { Age, Button, Empty, Lease, Pips, State, Title, html, nowWords, useResource } from "../part/parts.js";
import { clean, lanes, thousands } from "../part/text.js";

const keysOfFilter = ["state", "queue", "owner", "label", "group", "schedule", "workflow", "stage", "q"];
const views = [["All", {}], ["Needs you", { state: lanes.you.join(",") }], ["Running", { state: lanes.running.join(",") }],
  ["Waiting", { state: lanes.waiting.join(",") }], ["Finished", { state: lanes.finished.join(",") }]];

/** The filter of the URL as the query of the API. @param {number} limit */
export function filterQuery(limit) {
  const query = new URLSearchParams({ include: "why", limit: String(limit) });
  for (const key of keysOfFilter) if (route.value.query.get(key)) query.set(key, /** @type {string} */ (route.value.query.get(key)));
  return "/api/tasks?" + query;
}

const filterNow = () => Object.fromEntries([...route.value.query].filter(([key, value]) => keysOfFilter.includes(key) && value));

/** One filter for table and board: tokens and words, all in the URL. @param {{ page: string }} props */
export function Filter({ page }) {
  const filter = filterNow();
  const [text, setText] = useState(filter.q ?? "");
  useEffect(() => { setText(filter.q ?? ""); }, [filter.q]);
  const set = (/** @type {Record<string, string>} */ next) => go(href(page, "", next));
  const take = () => {
    const next = { ...filter }, rest = [];
    delete next.q;
    for (const word of text.trim().split(/\s+/).filter(Boolean)) {
      const found = /^(state|queue|owner|label|group|schedule|workflow|stage):(.+)$/.exec(word);
      if (found) next[found[1]] = found[2];
      else rest.push(word);
    }
    if (rest.length) next.q = rest.join(" ");
    set(next);
  };
  const without = (/** @type {string} */ key) => { const next = { ...filter }; delete next[key]; return next; };
  return html`<div class="tabs">${views.map(([name, view]) => html`<a key=${name} href=${href(page, "", /** @type {any} */ ({ ...without("state"), .../** @type {object} */ (view) }))}
      aria-current=${(filter.state ?? "") === (/** @type {any} */ (view).state ?? "") ? "true" : null}>${name}</a>`)}</div>
    <div class="tools"><form class="filter" role="search" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); take(); }}>
      ${Object.entries(filter).filter(([key]) => key !== "q" && key !== "state").map(([key, value]) => html`<span class="tok" key=${key}><i>${key}</i> <bdi>${clean(value)}</bdi>
        <button type="button" aria-label=${`Remove ${key}`} onClick=${() => set(without(key))}>×</button></span>`)}
      <input data-search value=${text} placeholder="Words, or queue:ci label:flaky owner:slot-1" aria-label="Filter tasks" onInput=${(/** @type {any} */ e) => setText(e.target.value)} /></form>
      <span class="seg" role="group" aria-label="Form"><a href=${href("tasks", "", filter)} aria-current=${page === "tasks" ? "true" : null}>Table</a><a href=${href("board", "", filter)} aria-current=${page === "board" ? "true" : null}>Board</a></span></div>`;
}

/** @param {{ task: any, at: number, chosen: boolean, here: boolean, choose: () => void }} props */
function Row({ task, at, chosen, here, choose }) {
  const finished = lanes.finished.includes(task.state);
  return html`<tr class=${(finished ? "fin" : "") + (here ? " at" : "")} aria-selected=${chosen ? "true" : "false"} data-id=${task.id}>
    <td class="c-x w2"><input type="checkbox" checked=${chosen} onChange=${choose} aria-label=${`Select ${task.id}`} /></td>
    <td class="c-st"><${State} state=${task.state} stopping=${task.stopping} /></td>
    <td class="c-id"><a href=${href("task", task.id)} tabindex="-1">${clean(task.id)}</a></td>
    <td class="c-ti"><span class="r"><a class="cut" href=${href("task", task.id)}><${Title} task=${task} /></a>${task.labels?.[0] ? html`<span class="lb iso">${clean(task.labels[0])}</span>` : null}</span></td>
    <td class="c-now" title=${nowWords(task)}><bdi>${nowWords(task)}</bdi></td>
    <td class="c-q xl"><bdi>${clean(task.queue)}</bdi></td>
    <td class="c-at xl"><${Pips} task=${task} /></td>
    <td class="c-w xl">${task.workerId ? html`<span class="r"><span class="cut iso">${clean(task.workerId)}</span><${Lease} ms=${task.leaseMs} of=${60000} at=${at} /></span>` : null}</td>
    <td class="c-age num"><${Age} at=${finished ? task.updatedAt : task.createdAt} /></td></tr>`;
}

const groups = [["Needs you", lanes.you], ["Running", lanes.running], ["Waiting", lanes.waiting], ["Finished", lanes.finished]];

export function Tasks() {
  const [limit, setLimit] = useState(200);
  const { value, at, failed } = useResource(filterQuery(limit), ["task.", "claim.", "gate.", "queue.", "worker."]);
  const [order, setOrder] = useState(/** @type {string[]} */ ([]));
  const [chosen, setChosen] = useState(/** @type {Set<string>} */ (new Set()));
  const [here, setHere] = useState(-1);
  const table = useRef(/** @type {HTMLElement | null} */ (null));
  const where = route.value.query.toString();
  const settled = useRef({ where: "", groups: /** @type {Record<string, string>} */ ({}) });
  const tasks = /** @type {any[]} */ (value ?? []);
  const byId = new Map(tasks.map(task => [task.id, task]));
  const groupOf = (/** @type {any} */ task) => /** @type {string} */ (groups.find(([, states]) => states.includes(task.state))?.[0] ?? "Finished");

  // Rows keep their place and group while somebody reads; what is new or moved is counted, and shown when asked for.
  const isNew = tasks.filter(task => !order.includes(task.id)).length;
  const moved = tasks.filter(task => order.includes(task.id) && settled.current.groups[task.id] !== groupOf(task)).length;
  const settle = () => { settled.current = { where, groups: Object.fromEntries(tasks.map(task => [task.id, groupOf(task)])) }; setOrder(tasks.map(task => task.id)); };
  useEffect(() => {
    if (!value) return;
    const main = document.getElementById("main");
    const busy = table.current?.matches(":hover") || table.current?.contains(document.activeElement) || chosen.size > 0 || (main?.scrollTop ?? 0) > 0;
    if (settled.current.where !== where || order.length === 0 || !busy) settle();
  }, [value, where]);

  const shown = order.map(id => byId.get(id)).filter(Boolean);
  const rows = groups.map(([name, states]) => [name, shown.filter(task => (settled.current.groups[task.id] ?? groupOf(task)) === name), states]).filter(([, list]) => list.length);
  const flat = rows.flatMap(([, list]) => /** @type {any[]} */ (list));
  const toggle = (/** @type {string} */ id) => { const next = new Set(chosen); if (!next.delete(id)) next.add(id); setChosen(next); };
  const bulk = async (/** @type {string} */ name) => { for (const id of chosen) await act(name, id); setChosen(new Set()); };

  useLayoutEffect(() => {
    const onKey = (/** @type {any} */ e) => {
      const key = e.detail.key, task = flat[here];
      if (key === "j") setHere(Math.min(here + 1, flat.length - 1));
      if (key === "k") setHere(Math.max(here - 1, 0));
      if (key === "Enter" && task) go(href("task", task.id));
      if (key === "x" && task) toggle(task.id);
      if (key === "r" && task) act("retry", task.id);
      if (key === ".") settle();
      if (key === "Escape") setChosen(new Set());
    };
    addEventListener("stint-key", onKey);
    return () => removeEventListener("stint-key", onKey);
  });
  useEffect(() => { table.current?.querySelector("tr.at")?.scrollIntoView({ block: "nearest" }); }, [here]);

  now.value;
  return html`<div class="head"><h1>Tasks</h1></div><${Filter} page="tasks" />
    ${isNew + moved > 0 && order.length ? html`<div class="pill on"><button type="button" class="btn" onClick=${settle}>Show ${[isNew ? `${isNew} new` : "", moved ? `${moved} moved` : ""].filter(Boolean).join(", ")}</button></div>` : null}
    ${failed && !value ? html`<${Empty} head="The list cannot be read.">${clean(failed)}<//>` : null}
    ${value && tasks.length === 0 ? (where ? html`<${Empty} head="No task matches."><a class="link" href=${href("tasks")}>Clear the filter</a><//>`
      : html`<${Empty} head="No tasks yet."><code>stint run -- echo hello</code><//>`) : null}
    ${tasks.length ? html`<table class="t" ref=${table} aria-rowcount=${flat.length}><thead><tr><th class="w2 c-x"><span class="sr">Select</span></th><th class="w6">State</th><th class="w6">Id</th><th>Task</th><th>Now</th><th class="w6 xl">Queue</th><th class="w5 xl">Attempts</th><th class="w9 xl">Worker</th><th class="w4 num">Age</th></tr></thead>
      ${rows.map(([name, list]) => html`<tbody key=${name}><tr class="gr"><td colspan="9">${name} <b>${/** @type {any[]} */ (list).length}</b></td></tr>
        ${/** @type {any[]} */ (list).map(task => html`<${Row} key=${task.id} task=${task} at=${at} chosen=${chosen.has(task.id)} here=${flat[here] === task} choose=${() => toggle(task.id)} />`)}</tbody>`)}</table>` : null}
    ${tasks.length >= limit ? html`<p class="pt"><${Button} onClick=${() => setLimit(limit + 500)}>Show more than ${thousands(limit)}<//></p>` : null}
    ${chosen.size ? html`<div class="bulk on" role="toolbar" aria-label="Selected tasks"><span>${chosen.size} selected</span>${["retry", "cancel", "park", "unpark"].map(name =>
      html`<${Button} key=${name} cli=${actions[name].cli([...chosen].join(" "))} data-act=${name} onClick=${() => bulk(name)}>${actions[name].label} ${chosen.size}<//>`)}
      <${Button} bare onClick=${() => setChosen(new Set())}>Clear<//></div>` : null}`;
}
