// What is this, and what do I type? The tasks of the demo, living their lives, until the first task of somebody's own.
import { useEffect } from "preact/hooks";
import { signal } from "@preact/signals";
import { href, now } from "../live/state.js";
import { Act } from "../part/actions.js";
import { Copy, Glyph, Pips, State, html, useResource } from "../part/parts.js";
import { paint } from "../part/log.js";
import { clean, count, lanes, span } from "../part/text.js";

const LINES = 4, ALL = [...lanes.you, ...lanes.running, ...lanes.waiting, ...lanes.finished].join(",");
const names = /** @type {Record<string, string>} */ ({ "demo-hello": "One that works", "demo-crash": "One that dies, and recovers", "demo-ask": "One that asks you" });
const over = signal(false); // there was a task that is not of the demo: until the page is loaded anew, nobody asks again

/** What an attempt has printed. @param {{ id: string, attempt: number, last: boolean }} props */
function Printed({ id, attempt, last }) {
  const text = useResource(`/api/tasks/${encodeURIComponent(id)}/log?attempt=${attempt}&after=0&limit=4000`, ["=" + id]).value?.data ?? "";
  return html`${text.trimEnd().split("\n").slice(-LINES).map((/** @type {string} */ line, /** @type {number} */ i) => html`<span key=${i}>${paint(line).map(part => part.text)}${"\n"}</span>`)}${last ? null : html`<span class="bad">its process was killed${"\n"}</span>`}`;
}

/** @param {any} task */
const story = task => task.id === "demo-hello" ? task.state === "done" ? `Done ${span(task.updatedAt - task.createdAt)} after it was added.` : "It prints a line each second."
  : task.id === "demo-crash" ? task.state === "done" ? "It was killed on purpose. It went back in line, and the second attempt ended well." : task.attempt > 1 ? "It was killed on purpose. The second attempt runs." : "Its first attempt kills itself half way."
    : task.state === "asking" ? "It waits for you, and no process waits with it." : task.state === "done" ? "You answered, it went on and ended." : "It will ask you something.";

/** @param {{ task: any }} props */
function Card({ task }) {
  const question = task.state === "asking" ? task.question : null;
  return html`<section class="card" data-demo=${task.id}><span class="r"><${State} state=${task.state} /><a class="mono end" href=${href("task", task.id)}>${task.id}</a></span>
    <h2>${names[task.id]}</h2><pre>${question ? html`<bdi>${clean(question.text ?? "")}</bdi>` : Array.from({ length: task.attempt ?? 0 }, (_, i) => html`<${Printed} key=${i} id=${task.id} attempt=${i + 1} last=${i + 1 === task.attempt || task.id !== "demo-crash"} />`)}</pre>
    <p>${story(task)} ${task.id === "demo-crash" ? html`<${Pips} task=${task} />` : null}</p>
    ${question ? html`<span class="r">${(question.options ?? []).map((/** @type {string} */ option, /** @type {number} */ i) => html`<${Act} key=${option} name="answer" words=${[task.id, question.id, option]} primary=${i === 0} label=${option} />`)}</span>` : null}</section>`;
}

/** Nothing but the demo was ever here: the page says what stint is. @param {{ children?: any }} props */
export function FirstRun({ children }) {
  const { value, failed } = useResource(`/api/tasks?limit=5&state=${ALL}`, ["task."]);
  const tasks = /** @type {any[]} */ (value ?? []), isFirst = tasks.length > 0 && tasks.every(task => names[task.id] && task.labels?.includes("demo"));
  const found = /** @type {any[]} */ (useResource("/api/workers", ["worker.", "beat"]).value ?? []).filter((/** @type {any} */ w) => w.state !== "inactive");
  useEffect(() => { if (tasks.length && !isFirst) over.value = true; }, [tasks.length, isFirst]);
  now.value;
  if (!value && !failed) return html`<h1 class="lede">stint</h1>`;
  if (!isFirst) return children;
  const programs = [...new Set(found.flatMap(w => w.executors ?? []))].sort();
  return html`<h1 class="lede"><b>stint is running.</b> Three small tasks show what it does with work that succeeds, work that dies, and work that needs you.</h1>
    <div class="first" data-first>${Object.keys(names).flatMap(id => tasks.filter(task => task.id === id)).map(task => html`<${Card} key=${task.id} task=${task} />`)}</div>
    <div class="grid"><section class="c7"><h2 class="h2">Now something of your own</h2><p class="pt q2">In a terminal, any program:</p><div class="pt"><${Copy} text="stint run -- echo hello" /></div>
        <p class="pt q2">${programs.some(name => name !== "shell") ? "Or an agent, in a git repository:" : "Or an agent, once one is installed:"}</p><div class="pt"><${Copy} text=${`stint add "fix the flaky test" --agent ${programs.find(name => name !== "shell") ?? "claude"} --cwd .`} /></div></section>
      <section class="c5"><h2 class="h2">What is here</h2><dl class="facts">${programs.map(name => html`<dt key=${name} class="iso">${clean(name)}</dt><dd class="r"><${Glyph} state="done" /> ready</dd>`)}
        <dt>Workers</dt><dd>${found.length ? html`${count(found.length, "worker")} <span class="q iso">${clean(found[0].host ?? "")}</span>` : html`<span class="q">none yet</span>`}</dd><dt>This page</dt><dd class="mono">${location.host}</dd><dt>Manual</dt><dd><code>stint help topics</code></dd></dl></section></div>`;
}

/** @param {{ children?: any }} props */
export const First = ({ children }) => over.value ? children : html`<${FirstRun}>${children}<//>`;
