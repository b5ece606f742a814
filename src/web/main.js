// The dashboard: a code from the link becomes a session, then the page follows the server.
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { login } from "./live/api.js";
import { begin, go, href, me, overlay, problem, route, singleKeys, theme as shade, undoLast } from "./live/state.js";
import { Frame, flipTheme, pages } from "./part/frame.js";
import { Copy, Icon, html } from "./part/parts.js";
import { clean, stateWords } from "./part/text.js";
import { Board } from "./page/board.js";
import { Dead } from "./page/dead.js";
import { Events } from "./page/events.js";
import { Groups } from "./page/groups.js";
import { Inbox } from "./page/inbox.js";
import { Overview } from "./page/overview.js";
import { Queues } from "./page/queues.js";
import { Holds, Schedules } from "./page/schedules.js";
import { Sessions } from "./page/sessions.js";
import { Settings } from "./page/settings.js";
import { Task } from "./page/task.js";
import { Tasks } from "./page/tasks.js";
import { Workers } from "./page/workers.js";
import { Workflows } from "./page/workflows.js";

const views = /** @type {Record<string, any>} */ ({ overview: Overview, inbox: Inbox, tasks: Tasks, board: Board, task: Task, workers: Workers, sessions: Sessions,
  queues: Queues, schedules: Schedules, groups: Groups, holds: Holds, workflows: Workflows, events: Events, settings: Settings, dead: Dead });

const Login = () => html`<main class="login" id="main"><${Icon} name="logo" size=${28} /><h1>stint</h1>
  <p class="q2">${problem.value ? html`${clean(problem.value)} ` : null}Open this page by a link that works once. Type this where stint runs:</p>
  <${Copy} text="stint dashboard" /></main>`;

function App() {
  const { page, id } = route.value;
  useEffect(() => {
    const name = page === "task" ? id : pages.find(([p]) => p === page)?.[1] ?? { board: "Board", dead: "Dead letter" }[page] ?? "stint";
    document.title = `${clean(name)} · stint`;
    document.getElementById("main")?.scrollTo(0, 0);
  }, [page, id]);
  if (!me.value) return html`<${Login} />`;
  const View = views[page] ?? (() => html`<h1>There is no such page</h1><p class="pt"><a class="link" href=${href("overview")}>Overview</a></p>`);
  return html`<${Frame}><${View} key=${page + id} /><//>`;
}

let pending = "";
addEventListener("keydown", e => {
  const target = /** @type {HTMLElement} */ (e.target);
  if ((e.ctrlKey || e.metaKey) && e.key === "k") { e.preventDefault(); overlay.value = overlay.value ? "" : "palette"; return; }
  if (!me.value || e.ctrlKey || e.metaKey || e.altKey || overlay.value) return;
  if (target.matches("input, textarea, select, [contenteditable]")) { if (e.key === "Escape") target.blur(); return; }
  if (!singleKeys.value && e.key.length === 1) return;
  if (pending === "g") {
    pending = "";
    const found = pages.find(([, , key]) => key === e.key)?.[0] ?? { b: "board", d: "dead" }[e.key];
    if (found) { e.preventDefault(); go(href(found)); }
    return;
  }
  if (e.key === "g") { pending = "g"; setTimeout(() => { pending = ""; }, 1000); return; }
  if (e.key === "u") { undoLast(); return; }
  if (e.key === "?") { overlay.value = "keys"; return; }
  if (e.key === "t") { flipTheme(); return; }
  if (e.key === "c") { navigator.clipboard?.writeText(document.querySelector(".foot code")?.textContent ?? ""); return; }
  if (e.key === "/") {
    e.preventDefault();
    const field = /** @type {HTMLElement | null} */ (document.querySelector("[data-search]"));
    if (field) field.focus();
    else go(href("tasks"));
    return;
  }
  if (e.key === "Enter" && target.matches("a, button")) return;
  dispatchEvent(new CustomEvent("stint-key", { detail: { key: e.key, origin: e } }));
});

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", e => { shade.value = e.matches ? "dark" : "light"; });

const place = "stint.place";
const keepPlace = () => { try { if (!me.value && location.hash.startsWith("#/")) sessionStorage.setItem(place, location.hash); } catch { /* no storage: it begins at the overview */ } };
function placeKept() {
  try {
    const kept = sessionStorage.getItem(place) ?? "";
    sessionStorage.removeItem(place);
    if (kept) return kept;
  } catch { /* no storage */ }
  return href("overview");
}

async function start() {
  try {
    const theme = localStorage.getItem("stint.theme");
    if (theme) document.documentElement.dataset.theme = theme;
  } catch { /* no storage: the system's theme */ }
  const code = /^#k=(.+)$/.exec(location.hash)?.[1];
  if (!code) keepPlace(); // where the page was to be opened, for after the login
  if (code) {
    history.replaceState(null, "", location.pathname + location.search); // the code is gone from the address before anything else
    try {
      await login(decodeURIComponent(code));
      go(placeKept());
    } catch (fault) {
      problem.value = /** @type {Error} */ (fault).message;
    }
  }
  render(html`<${App} />`, /** @type {HTMLElement} */ (document.getElementById("app")));
  begin();
}

if (Object.keys(stateWords).length) start();
