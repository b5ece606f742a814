// Where is my thing and what is it doing now?
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { PIECE, openList } from "../live/list.js";
import { allows, go, href, now, overlay, refreshAll, route, toast } from "../live/state.js";
import { act, actions } from "../part/actions.js";
import { BulkBar } from "../part/bulk.js";
import { Overlay } from "../part/frame.js";
import { Age, Button, Empty, Lease, Pips, State, Title, html, nowWords, useResource } from "../part/parts.js";
import { clean, count, lanes, thousands } from "../part/text.js";

const keysOfFilter = ["state", "queue", "owner", "label", "group", "parent", "schedule", "workflow", "stage", "error", "q"];
const open = [...lanes.you, ...lanes.running, ...lanes.waiting];
const all = [...open, ...lanes.finished];
/** A view is a filter with a name: Open is the one without any. */
const views = /** @type {[string, string[]][]} */ ([["Open", open], ["Needs you", lanes.you], ["Running", lanes.running], ["Waiting", lanes.waiting], ["Failed", ["failed"]], ["Done", ["done", "cancelled"]], ["All", all]]);
const headings = [{ name: "Needs you", states: lanes.you }, { name: "Running", states: lanes.running }, { name: "Waiting", states: lanes.waiting }, { name: "Finished", states: lanes.finished }];
const ROW = 36, HEAD = 38, AROUND = 15, IDLE_MS = 10000;

export const filterNow = () => Object.fromEntries([...route.value.query].filter(([key, value]) => keysOfFilter.includes(key) && value));

/** The states that the filter wants. @param {Record<string, string>} filter */
export const statesOf = filter => filter.state ? filter.state.split(",") : filter.error ? ["failed", "blocked"] : filter.group || filter.parent || filter.schedule ? all : open;

/** How many tasks each view has, where the server has counted them. @param {Record<string, string>} filter */
function useCounts(filter) {
  const queues = useResource("/api/queues", ["task.", "queue.", "claim."]).value;
  const { state: _, ...rest } = filter, plain = Object.keys(rest).every(key => key === "queue") && !(rest.queue ?? "").includes(",");
  const errors = useResource("/api/errors?" + new URLSearchParams({ ...rest, state: "failed" }), ["task.failed", "task.retried", "task.purged"]).value;
  const counts = /** @type {Record<string, number>} */ ({});
  if (Array.isArray(errors)) counts.Failed = errors.reduce((n, cause) => n + cause.tasks, 0);
  if (plain && queues) for (const [name, states] of views.slice(0, 4)) {
    counts[name] = queues.filter((/** @type {any} */ q) => !rest.queue || q.name === rest.queue).reduce((/** @type {number} */ n, /** @type {any} */ q) => n + states.reduce((m, s) => m + (q.tasks?.[s] ?? 0), 0), 0);
  }
  return counts;
}

/** One filter for table and board: tokens and words, all in the URL. @param {{ page: string }} props */
export function Filter({ page }) {
  const filter = filterNow(), counts = useCounts(filter);
  const [text, setText] = useState(filter.q ?? "");
  useEffect(() => { setText(filter.q ?? ""); }, [filter.q]);
  const set = (/** @type {Record<string, string>} */ next) => go(href(page, "", next));
  const take = () => {
    const next = { ...filter }, rest = [];
    delete next.q;
    for (const word of text.trim().split(/\s+/).filter(Boolean)) {
      const found = /^(state|queue|owner|label|group|parent|schedule|workflow|stage|error):(.+)$/.exec(word);
      if (found) next[found[1]] = found[2];
      else rest.push(word);
    }
    if (rest.length) next.q = rest.join(" ");
    set(next);
  };
  const without = (/** @type {string} */ key) => { const next = { ...filter }; delete next[key]; return next; };
  const queues = /** @type {any[]} */ (useResource("/api/queues", ["task.", "queue.", "claim."]).value ?? []), sum = (/** @type {any} */ q, /** @type {string[]} */ states) => states.reduce((n, s) => n + (q.tasks?.[s] ?? 0), 0);
  // What is typed so far without its last word, and each way to end that word, with how many tasks it leaves.
  const before = text.replace(/\S*$/, ""), hints = [...queues.map(q => [`queue:${q.name}`, sum(q, open)]), ...open.map(state => [`state:${state}`, queues.reduce((n, q) => n + sum(q, [state]), 0)])]
    .filter(([word, n]) => n && !/\s/.test(String(word))).slice(0, 40);
  const wanted = statesOf(filter), view = views.find(([, states]) => states.length === wanted.length && states.every(state => wanted.includes(state)))?.[0];
  const tint = (/** @type {string} */ name) => counts[name] ? { "Needs you": "you", Failed: "bad" }[name] : undefined;
  return html`<div class="tabs">${views.map(([name, states]) => html`<a key=${name} href=${href(page, "", { ...without("state"), ...(name === "Open" && statesOf(without("state")) === open ? {} : { state: states.join(",") }) })}
      aria-current=${name === view ? "true" : null}>${name}${counts[name] === undefined ? null : html`<b class=${tint(name)}>${thousands(counts[name])}</b>`}</a>`)}</div>
    <div class="tools"><form class="filter" role="search" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); take(); }}>
      ${Object.entries(filter).filter(([key]) => key !== "q" && (key !== "state" || !view)).map(([key, value]) => html`<span class="tok" key=${key}><i>${key}</i> <bdi>${clean(value)}</bdi>
        <button type="button" aria-label=${`Remove ${key}`} onClick=${() => set(without(key))}>×</button></span>`)}
      <input data-search value=${text} placeholder="Words, or queue:ci label:flaky owner:slot-1" aria-label="Filter tasks" list="hints" autocomplete="off" onInput=${(/** @type {any} */ e) => setText(e.target.value)} /><datalist id="hints">${hints.map(([word, n]) => html`<option key=${word} value=${before + word}>${count(Number(n), "task")}</option>`)}</datalist><kbd>/</kbd></form>
      <span class="seg" role="group" aria-label="Form"><a href=${href("tasks", "", filter)} aria-current=${page === "tasks" ? "true" : null}>Table</a><a href=${href("board", "", filter)} aria-current=${page === "board" ? "true" : null}>Board</a></span></div>`;
}

/** A new task. The line below is the command that does the same. */
export function AddTask() {
  const [draft, setDraft] = useState(/** @type {Record<string, string>} */ ({ title: "", queue: "", executor: "", dir: "", text: "" }));
  const [wrong, setWrong] = useState("");
  const agents = [...new Set((useResource("/api/workers", ["worker."]).value ?? []).filter((/** @type {any} */ w) => w.state === "active").flatMap((/** @type {any} */ w) => w.executors ?? []))].sort();
  const words = [draft.title, draft.queue, draft.executor, draft.dir, draft.text];
  const set = (/** @type {string} */ name) => (/** @type {any} */ e) => setDraft({ ...draft, [name]: e.target.value });
  const send = async (/** @type {Event} */ e) => {
    e.preventDefault();
    try {
      const made = await actions.addTask.run(...words);
      overlay.value = "";
      toast(`${made.id} ${actions.addTask.done}.`);
      refreshAll();
      go(href("task", made.id));
    } catch (fault) {
      setWrong(/** @type {Error} */ (fault).message);
    }
  };
  const field = (/** @type {string} */ name, /** @type {string} */ label, /** @type {string} */ hint) => html`<label>${label}
    <input name=${name} required=${name === "title"} autofocus=${name === "title"} autocomplete="off" list=${name === "executor" ? "executors" : null} placeholder=${hint} value=${draft[name]} onInput=${set(name)} /></label>`;
  return html`<${Overlay} label="Add a task"><form class="form" onSubmit=${send}><h2 class="h2">Add a task</h2>
    ${field("title", "Title", "Fix the flaky test")}<label>Instructions<textarea name="text" rows="3" placeholder="What the work must know, and when it is done" value=${draft.text} onInput=${set("text")}></textarea></label>
    <div class="cols2">${field("executor", "Runs with", agents.length ? String(agents[0]) : "any")}${field("queue", "Queue", "default")}</div>
    <datalist id="executors">${agents.map(name => html`<option key=${name} value=${name}></option>`)}</datalist>${field("dir", "Work directory", "/srv/app")}
    ${wrong ? html`<p class="bad" role="alert">${clean(wrong)}</p>` : null}<p class="q"><code>${clean(actions.addTask.cli(...words))}</code></p>
    <div class="r"><button type="submit" class="btn pri" data-act="addTask">${actions.addTask.label}</button><button type="button" class="btn" onClick=${() => { overlay.value = ""; }}>Cancel</button></div></form><//>`;
}

/** The button and its key, for both forms of the list. */
export function useAddTask() {
  const may = allows(actions.addTask.role), show = () => { if (may) overlay.value = "addTask"; };
  useEffect(() => () => { if (overlay.peek() === "addTask") overlay.value = ""; }, []);
  useLayoutEffect(() => {
    const onKey = (/** @type {any} */ e) => { if (e.detail.key === "n") { e.detail.origin.preventDefault(); show(); } };
    addEventListener("stint-key", onKey);
    return () => removeEventListener("stint-key", onKey);
  });
  if (!may) return null; // an operator's token makes no tasks either
  return html`<span class="end"><${Button} primary cli=${actions.addTask.cli("", "", "", "", "")} onClick=${show}>Add a task <kbd>n</kbd><//></span>
    ${overlay.value === "addTask" ? html`<${AddTask} />` : null}`;
}

/** @param {{ task: any, chosen: boolean, here: boolean, choose: (e: any) => void }} props */
function Row({ task, chosen, here, choose }) {
  const finished = lanes.finished.includes(task.state), words = nowWords(task);
  return html`<tr class=${(finished ? "fin" : "") + (here ? " at" : "")} aria-selected=${chosen ? "true" : "false"} data-id=${task.id}>
    <td class="c-x w2"><input type="checkbox" checked=${chosen} onClick=${choose} aria-label=${`Select ${task.id}`} /></td>
    <td class="c-st"><${State} state=${task.state} stopping=${task.stopping} /></td>
    <td class="c-id"><a href=${href("task", task.id)} tabindex="-1">${clean(task.id)}</a></td>
    <td class="c-ti"><span class="r"><a class="cut" href=${href("task", task.id)}><${Title} task=${task} /></a>${task.labels?.[0] ? html`<span class="lb iso">${clean(task.labels[0])}</span>` : null}</span></td>
    <td class="c-now" title=${words}><bdi>${words}</bdi></td>
    <td class="c-q xl"><bdi>${clean(task.queue)}</bdi></td>
    <td class="c-at xl"><${Pips} task=${task} /></td>
    <td class="c-w xl">${task.workerId ? html`<span class="r"><span class="cut iso">${clean(task.workerId)}</span><${Lease} ms=${task.leaseMs} of=${60000} at=${task.at} /></span>` : null}</td>
    <td class="c-age num"><${Age} at=${finished ? task.updatedAt : task.createdAt} /></td></tr>`;
}

/** The rows of the table that are in the window, with some around them. The rest of each heading is two empty rows of its height.
 * @param {any[]} chains @param {number} row @param {{ top: number, height: number }} view */
function windowOf(chains, row, view) {
  let y = 0;
  return chains.map(chain => {
    const begin = y + HEAD, count = chain.ids.length;
    y = begin + count * row;
    const from = Math.max(0, Math.min(count, Math.floor((view.top - begin) / row) - AROUND)), to = Math.max(from, Math.min(count, Math.ceil((view.top + view.height - begin) / row) + AROUND));
    return { chain, from, to, begin };
  });
}

export function Tasks() {
  const where = route.value.query.toString(), filter = useMemo(filterNow, [where]), wanted = useMemo(() => statesOf(filter), [filter]);
  const [, draw] = useState(0);
  const [chosen, setChosen] = useState(/** @type {Map<string, any>} */ (new Map()));
  const [every, setEvery] = useState(false);
  const [here, setHere] = useState("");
  const [view, setView] = useState({ top: 0, height: 900 });
  const [row, setRow] = useState(ROW);
  const table = useRef(/** @type {HTMLElement | null} */ (null));
  const touched = useRef(0), anchor = useRef("");
  const movedAt = useRef(0);
  const list = useMemo(() => {
    const { state: _, ...rest } = filter;
    return openList(headings.map(one => ({ ...one, states: one.states.filter(state => wanted.includes(state)) })).filter(one => one.states.length), rest, () => draw(n => n + 1));
  }, [filter]);
  useEffect(() => () => list.end(), [list]);
  useEffect(() => { setChosen(new Map()); setEvery(false); setHere(""); }, [list]);

  const chains = list.chains.filter(chain => chain.ids.length), size = chains.reduce((n, chain) => n + chain.ids.length, 0);
  const flat = () => chains.flatMap(chain => chain.ids);
  const shown = windowOf(chains, row, view);
  list.look(list.chains.map(chain => { const one = shown.find(each => each.chain === chain); return /** @type {[number, number]} */ (one ? [one.from, one.to] : [0, 0]); }));

  // Rows keep their place and heading while somebody reads; what is new or has moved is counted, and shown when asked for.
  const isNew = list.fresh.size;
  const moved = shown.reduce((n, { chain, from, to }) => n + chain.ids.slice(from, to).filter((/** @type {string} */ id) => !chain.states.includes(list.rows.get(id)?.state)).length, 0);
  useEffect(() => {
    if (!isNew && !moved) { movedAt.current = 0; return; }
    movedAt.current ||= Date.now();
    const main = document.getElementById("main"), quiet = Date.now() - touched.current > IDLE_MS;
    const isRead = table.current?.matches(":hover") || table.current?.contains(document.activeElement) || chosen.size > 0 || every || here !== "" || (main?.scrollTop ?? 0) > 0;
    if (!isRead && quiet && Date.now() - movedAt.current > IDLE_MS) list.take();
  });

  // Where the window stands over the table, and how high a row is here.
  useLayoutEffect(() => {
    const main = /** @type {HTMLElement} */ (document.getElementById("main"));
    let due = 0;
    const look = () => {
      due = 0;
      const body = table.current?.querySelector("tbody");
      if (!body) return;
      const first = table.current?.querySelector("tr[data-id]"), top = main.getBoundingClientRect().top - body.getBoundingClientRect().top;
      const high = /** @type {HTMLElement | null} */ (first)?.offsetHeight;
      if (high && Math.abs(high - row) > 1 && high < 3 * row) setRow(high);
      setView(old => Math.abs(old.top - top) > 4 * ROW || old.height !== main.clientHeight ? { top, height: main.clientHeight } : old);
    };
    const onScroll = () => { touched.current = Date.now(); due ||= requestAnimationFrame(look); };
    main.addEventListener("scroll", onScroll, { passive: true });
    addEventListener("resize", onScroll);
    look();
    return () => { main.removeEventListener("scroll", onScroll); removeEventListener("resize", onScroll); cancelAnimationFrame(due); };
  }, [list, chains.length > 0, row]);
  useEffect(() => { for (const { chain, to } of shown) if (chain.next !== null && to > chain.ids.length - 30) list.more(list.chains.indexOf(chain)); });

  const toggle = (/** @type {string} */ id, /** @type {boolean} */ range) => {
    const next = new Map(chosen), all = range ? flat() : [], from = all.indexOf(anchor.current), to = all.indexOf(id);
    if (range && from >= 0) for (const one of all.slice(Math.min(from, to), Math.max(from, to) + 1)) next.set(one, list.rows.get(one));
    else if (!next.delete(id)) next.set(id, list.rows.get(id));
    anchor.current = id;
    setEvery(false);
    setChosen(next);
  };
  const clear = () => { setChosen(new Map()); setEvery(false); };
  const step = (/** @type {number} */ by) => {
    const all = flat(), next = all[Math.max(0, Math.min(all.indexOf(here) + by, size - 1))];
    if (!next) return;
    setHere(next);
    const part = shown.find(({ chain }) => chain.ids.includes(next)), main = document.getElementById("main"), body = table.current?.querySelector("tbody");
    if (!part || !main || !body) return;
    const y = part.begin + part.chain.ids.indexOf(next) * row + body.getBoundingClientRect().top - main.getBoundingClientRect().top;
    if (y < HEAD + row) main.scrollTop += y - HEAD - row;
    else if (y + 2 * row > main.clientHeight) main.scrollTop += y + 2 * row - main.clientHeight;
  };
  useLayoutEffect(() => {
    const onKey = (/** @type {any} */ e) => {
      const key = e.detail.key, task = list.rows.get(here);
      if (key === "j") step(1);
      if (key === "k") step(-1);
      if (key === "Enter" && task) go(href("task", task.id));
      if ((key === "x" || key === "X") && task) toggle(task.id, key === "X");
      if (key === "r" && task && !chosen.size) act("retry", task.id);
      if (key === ".") list.take();
      if (key === "Escape") { if (chosen.size || every) clear(); else setHere(""); }
    };
    addEventListener("stint-key", onKey);
    return () => removeEventListener("stint-key", onKey);
  });

  now.value;
  const whole = list.chains.every(chain => chain.next === null), hidden = where && list.ready && !size;
  return html`<div class="head"><h1>Tasks</h1>${filter.state === "failed" ? html`<span class="q"><a class="link" href=${href("dead")}>By cause, to redrive many at once</a></span>` : null}${useAddTask()}</div><${Filter} page="tasks" />
    ${isNew + moved > 0 && size ? html`<div class="pill on"><button type="button" class="btn" onClick=${() => list.take()}>Show ${[isNew ? `${isNew}${isNew >= PIECE ? " or more" : ""} new` : "", moved ? `${moved} moved` : ""].filter(Boolean).join(", ")} <kbd>.</kbd></button></div>` : null}
    ${list.failed && !list.ready ? html`<${Empty} head="The list cannot be read.">${clean(list.failed)}<//>` : null}
    ${hidden ? html`<${Empty} head="No task matches."><a class="link" href=${href("tasks")}>Clear the filter</a><//>` : null}
    ${!where && list.ready && !size ? html`<${Empty} head="No task is open."><code>stint add "fix the flaky test" --agent claude --cwd .</code> · <a class="link" href=${href("tasks", "", { state: all.join(",") })}>Show all</a><//>` : null}
    ${size ? html`<table class="t" ref=${table} aria-label="Tasks" aria-rowcount=${whole ? size : -1} onPointerMove=${() => { touched.current = Date.now(); }}><thead><tr><th class="w2 c-x"><span class="sr">Select</span></th><th class="w6">State</th><th class="w6">Id</th><th>Task</th><th>Now</th><th class="w6 xl">Queue</th><th class="w5 xl">Attempts</th><th class="w9 xl">Worker</th><th class="w4 num">Age</th></tr></thead>
      ${shown.map(({ chain, from, to }) => html`<tbody key=${chain.name}><tr class="gr"><td colspan="9">${chain.name} <b>${thousands(chain.ids.length)}${chain.next === null ? "" : " and more"}</b></td></tr>
        ${from ? html`<tr class="space" aria-hidden="true"><td colspan="9" style=${{ height: `${from * row}px` }}></td></tr>` : null}
        ${chain.ids.slice(from, to).map((/** @type {string} */ id) => list.rows.get(id)).filter(Boolean).map((/** @type {any} */ task) => html`<${Row} key=${task.id} task=${task} chosen=${every || chosen.has(task.id)} here=${here === task.id} choose=${(/** @type {any} */ e) => toggle(task.id, e.shiftKey)} />`)}
        ${to < chain.ids.length ? html`<tr class="space" aria-hidden="true"><td colspan="9" style=${{ height: `${(chain.ids.length - to) * row}px` }}></td></tr>` : null}</tbody>`)}</table>` : null}
    ${chosen.size || every ? html`<${BulkBar} chosen=${[...chosen].map(([id, task]) => list.rows.get(id) ?? task)} all=${every} filter=${filter} states=${wanted} whole=${whole ? size : null} chooseAll=${() => setEvery(true)} clear=${clear} />` : null}`;
}
