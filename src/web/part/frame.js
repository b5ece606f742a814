// The frame: rail, bottom line, palette, keys, toasts.
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../live/api.js";
import { allows, command, dropToast, go, href, me, now, overlay, retryAt, route, stale, stream, theme, toasts, tryNow } from "../live/state.js";
import { act, actions } from "./actions.js";
import { Icon, html, useResource } from "./parts.js";
import { clean, clock, quote, span, thousands } from "./text.js";

/** @type {[string, string, string, string][]} page, name, key, command */
export const pages = [
  ["overview", "Overview", "o", "stint ls"], ["inbox", "Inbox", "i", "stint inbox"], ["tasks", "Tasks", "t", "stint ls"],
  ["workers", "Workers", "w", "stint worker ls"], ["sessions", "Sessions", "s", "stint session ls"], ["queues", "Queues", "q", "stint queue ls"],
  ["schedules", "Schedules", "h", "stint schedule ls"], ["groups", "Groups", "r", "stint group ls"], ["holds", "Holds", "l", "stint hold ls"],
  ["workflows", "Workflows", "f", "stint workflow ls"], ["events", "Events", "e", "stint events"], ["settings", "Settings", "c", "stint config show"],
];
const tabs = ["overview", "inbox", "tasks", "workers"];

export function flipTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  theme.value = root.dataset.theme;
  try { localStorage.setItem("stint.theme", root.dataset.theme); } catch { /* not kept */ }
}

function Rail() {
  const at = { task: "tasks", board: "tasks", dead: "tasks" }[route.value.page] ?? route.value.page;
  const inbox = useResource("/api/approvals", ["task.", "gate."]).value ?? [];
  const blocked = useResource("/api/tasks?state=blocked&limit=100", ["task."]).value ?? [];
  const queues = useResource("/api/queues", ["task.", "queue.", "claim."]).value ?? [];
  const workers = useResource("/api/workers", ["worker.", "beat"]).value ?? [];
  const open = queues.reduce((/** @type {number} */ sum, /** @type {any} */ q) => sum + Object.values(q.tasks ?? {}).reduce((/** @type {any} */ a, /** @type {any} */ b) => a + b, 0), 0);
  const counts = /** @type {Record<string, number>} */ ({ inbox: inbox.length + blocked.length, tasks: open, workers: workers.filter((/** @type {any} */ w) => w.state !== "inactive").length });
  const link = (/** @type {[string, string, string, string]} */ [page, name]) => html`<a key=${page} class=${"nav" + (tabs.includes(page) ? " tab" : "")} href=${href(page)}
    aria-current=${at === page ? "page" : null} title=${name}><${Icon} name=${page} /><span>${name}</span>${counts[page]
    ? html`<b class=${page === "inbox" ? "due" : ""} aria-label=${counts[page] + (page === "inbox" ? " need you" : "")}>${thousands(counts[page])}</b>` : null}</a>`;
  return html`<nav class="rail" aria-label="Pages">
    <a class="brand" href=${href("overview")} aria-label="stint, overview"><${Icon} name="logo" size=${18} /><span>stint</span></a>
    <button type="button" class="find" onClick=${() => { overlay.value = "palette"; }} aria-label="Search or jump Ctrl K"><${Icon} name="find" size=${14} /><span>Search or jump</span> <kbd>Ctrl K</kbd></button>
    ${pages.slice(0, 5).map(link)}<hr />${pages.slice(5, 11).map(link)}
    <button type="button" class="nav tab more" onClick=${() => { overlay.value = "palette"; }}><${Icon} name="more" /><span>More</span></button>
    <span class="push"></span><${Spoken} count=${counts.inbox} />${link(pages[11])}
    <div class="me"><span class="iso">${clean(me.value?.name)}</span> <span class="q">${me.value?.role}</span>
      <button type="button" class="btn bare ic" onClick=${flipTheme} title="Light or dark (t)" aria-label="Light or dark"><${Icon} name="theme" size=${14} /></button></div>
  </nav>`;
}

function Foot() {
  const { page, id, query } = route.value;
  const own = page === "task" ? `stint show ${quote(id)}` : page === "schedules" && id ? `stint schedule show ${quote(id)}` : query.get("schedule") ? `stint schedule show ${quote(query.get("schedule") ?? "")}` : page === "dead" ? "stint errors" : (page === "tasks" || page === "board") && query.toString()
    ? "stint ls " + [...query].filter(([k]) => k !== "view").map(([k, v]) => k === "q" ? `--search ${quote(v)}` : `--${k} ${quote(v)}`).join(" ") : pages.find(([p]) => p === page)?.[3] ?? "stint ls";
  const line = command.value || own;
  const live = stream.value.state === "live";
  return html`<footer class="foot"><code>${clean(line)}</code>
    <button type="button" class="btn bare ic" title="Copy (c)" aria-label="Copy the command" onClick=${() => navigator.clipboard?.writeText(line)}><${Icon} name="copy" size=${13} /></button>
    <span class="end"><span class=${"dot" + (live ? "" : " away")}></span><span data-live>${live ? `Live · event ${thousands(stream.value.seq)}` : "Not live"}</span>
    <button type="button" class="btn bare hs" onClick=${() => { overlay.value = "keys"; }}>? keys</button></span></footer>`;
}

export function StaleNote() {
  if (!stale.value) return null;
  const silent = now.value - stream.value.since, left = retryAt.value - Date.now();
  return html`<div class="note" role="status"><${Icon} name="schedules" size=${14} /><span>No news from the server for <b>${span(silent)}</b>. This page shows ${clock(stream.value.since, true)}.${left > 0 ? ` Trying again in ${span(left)}.` : ""}</span>
    <button type="button" class="btn end" onClick=${tryNow}>Try now</button></div>`;
}

function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">${toasts.value.map(one => html`<div key=${one.id} class=${"toast" + (one.bad ? " err" : "")}>
    <span class="iso">${clean(one.text)}</span>${one.undo ? html`<button type="button" data-undo onClick=${() => { dropToast(one.id); one.undo(); }}>Undo <kbd>u</kbd> <span aria-hidden="true">${Math.max(0, Math.ceil((one.until - now.value) / 1000))}</span></button>`
    : html`<button type="button" onClick=${() => dropToast(one.id)}>Close</button>`}</div>`)}</div>`;
}

const SPEAK_MS = 10000;

/** For those who hear the page: at most one sentence in a while, and only when more needs them. @param {{ count: number }} props */
function Spoken({ count }) {
  const [said, say] = useState("");
  const heard = useRef({ count, at: 0 });
  useEffect(() => {
    const more = count - heard.current.count, wait = Math.max(0, heard.current.at + SPEAK_MS - Date.now());
    if (more < 0) heard.current.count = count;
    if (more <= 0) return undefined;
    const timer = setTimeout(() => { say(`${more} more ${more === 1 ? "thing needs" : "things need"} you`); heard.current = { count, at: Date.now() }; }, wait);
    return () => clearTimeout(timer);
  }, [count]);
  return html`<span class="sr" role="status" aria-live="polite" data-spoken>${said}</span>`;
}

/** A dialog that the browser opens and closes. @param {{ children?: any, label: string, class?: string }} props */
export function Overlay({ children, label, class: kind }) {
  const ref = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => { ref.current?.showModal(); }, []);
  return html`<dialog ref=${ref} class=${kind} aria-label=${label} onClose=${() => { overlay.value = ""; }}
    onClick=${(/** @type {any} */ e) => { if (e.target === ref.current) ref.current?.close(); }}>${children}</dialog>`;
}

function Palette() {
  const [text, setText] = useState("");
  const [tasks, setTasks] = useState(/** @type {any[]} */ ([]));
  const [at, setAt] = useState(0);
  useEffect(() => {
    if (text.trim().length < 2) { setTasks([]); return undefined; }
    const timer = setTimeout(() => get(`/api/tasks?q=${encodeURIComponent(text.trim())}&limit=10`).then(setTasks, () => setTasks([])), 150);
    return () => clearTimeout(timer);
  }, [text]);
  const wanted = text.trim().toLowerCase();
  const queues = /** @type {any[]} */ (useResource("/api/queues", ["task.", "queue.", "claim."]).value ?? []), armed = useResource("/api/execution", ["execution."]).value?.armed;
  const does = (/** @type {string} */ name, /** @type {string} */ label, /** @type {string[]} */ ...words) => ({ name: label, cli: actions[name].cli(...words), role: actions[name].role, where: name + words.join(), act: () => { act(name, ...words); } });
  const acts = wanted.length < 2 ? [] : [{ name: "Add a task", cli: actions.addTask.cli("", "", "", "", ""), role: actions.addTask.role, where: "add", act: () => { go(href("tasks")); setTimeout(() => { overlay.value = "addTask"; }); } },
    armed === undefined ? null : armed ? does("disarm", "Disarm: hand out nothing") : does("arm", "Arm: hand out work again"),
    ...queues.map(q => q.state === "open" ? does("pause", `Pause queue ${clean(q.name)}`, q.name) : does("resume", `Resume queue ${clean(q.name)}`, q.name)),
    { name: "Light or dark", cli: "", role: "viewer", where: "theme", act: flipTheme }].flatMap(one => one && allows(/** @type {any} */ (one.role)) && one.name.toLowerCase().includes(wanted) ? [one] : []).slice(0, 8);
  const rows = /** @type {{ where: string, name: string, cli: string, act?: () => void }[]} */ ([
    ...pages.filter(([, name]) => name.toLowerCase().includes(wanted)).map(([page, name, , cli]) => ({ where: href(page), name, cli })),
    ...[["board", "Board", "stint ls"], ["dead", "Dead letter", "stint ls --state failed"]].filter(([, name]) => name.toLowerCase().includes(wanted)).map(([page, name, cli]) => ({ where: href(page), name, cli })),
    ...acts, ...tasks.map(task => ({ where: href("task", task.id), name: clean(task.title), cli: `stint show ${task.id}` })),
  ]).slice(0, 20);
  const pick = (/** @type {number} */ i) => { const row = rows[i]; if (row) { overlay.value = ""; row.act ? row.act() : go(row.where); } };
  const onKey = (/** @type {KeyboardEvent} */ e) => {
    if (e.key === "ArrowDown") { e.preventDefault(); setAt(Math.min(at + 1, rows.length - 1)); }
    if (e.key === "ArrowUp") { e.preventDefault(); setAt(Math.max(at - 1, 0)); }
    if (e.key === "Enter") { e.preventDefault(); pick(at); }
  };
  return html`<${Overlay} label="Search or jump" class="pal"><input autofocus placeholder="A page, an action, or words of a task" aria-label="A page, an action, or words of a task" role="combobox" aria-expanded="true"
    aria-controls="found" aria-activedescendant=${rows[at] ? "found-" + at : null} value=${text} onInput=${(/** @type {any} */ e) => { setText(e.target.value); setAt(0); }} onKeyDown=${onKey} />
    <ul id="found" role="listbox" aria-label="Found">${rows.map((row, i) => html`<li key=${row.where} id=${"found-" + i} role="option" aria-selected=${i === at ? "true" : "false"} onClick=${() => pick(i)}>
      <span class="cut iso">${row.name}</span><code>${clean(row.cli)}</code></li>`)}</ul><//>`;
}

const keys = [["/", "search tasks"], ["Ctrl K", "search or jump"], ...pages.map(([, name, key]) => ["g " + key, name]), ["g b", "Board"], ["g d", "Dead letter"],
  ["j k", "next, previous"], ["Enter", "open"], ["x", "select"], ["r", "retry"], ["X", "select up to here"], ["n", "add a task, a schedule"], [".", "show what is new"], ["p", "pause, resume a schedule"], ["l", "lift a hold"], ["a", "allow, pass"], ["A", "allow for this task"], ["d", "deny with words"],
  ["1–9", "answer"], ["f", "find in the log"], ["End", "follow the log"], ["c", "copy the command"], ["t", "light or dark"], ["u", "undo"], ["Esc", "back"], ["?", "keys"]];

const Keys = () => html`<${Overlay} label="Keys" class="help"><h2 class="h2">Keys</h2><div class="cols">${keys.map(([key, what]) =>
  html`<p key=${key}><span>${what}</span><kbd>${key}</kbd></p>`)}</div><//>`;

/** @param {{ children?: any }} props */
export function Frame({ children }) {
  useEffect(() => { document.documentElement.classList.toggle("stale", stale.value); }, [stale.value]);
  return html`<a class="skip" href="#main" onClick=${(/** @type {Event} */ e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to the page</a>
    <${Rail} /><main id="main" tabindex="-1"><${StaleNote} /><div class="page">${children}</div></main><${Foot} /><${Toasts} />
    ${overlay.value === "palette" ? html`<${Palette} />` : null}${overlay.value === "keys" ? html`<${Keys} />` : null}`;
}
