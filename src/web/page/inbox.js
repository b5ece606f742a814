// What must I decide, and what happens if I say yes?
import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { allows, href, now, route } from "../live/state.js";
import { Act, act, actions } from "../part/actions.js";
import { Age, Button, Empty, Glyph, Title, html, useResource } from "../part/parts.js";
import { clean, span } from "../part/text.js";

const ARM_MS = 500, DIFF_LINES = 40;
const movedAt = signal(0); // when cards last changed their places

/** A card that has just come takes no click and no key, and one that has just come to another place no click: it would land on what was not
 * looked at. @param {any[]} changes */
function useArmed(changes) {
  const [, draw] = useState(0);
  const timer = useRef(0), born = useRef(performance.now());
  useLayoutEffect(() => { movedAt.value = performance.now(); }, changes);
  const left = () => Math.max(born.current, movedAt.value) + ARM_MS - performance.now(), wait = left();
  useEffect(() => { clearTimeout(timer.current); if (wait > 0) timer.current = window.setTimeout(() => draw(n => n + 1), wait + 1); return () => clearTimeout(timer.current); });
  return { click: wait <= 0, key: () => performance.now() - born.current >= ARM_MS };
}

/** @param {{ diff: string }} props */
function Diff({ diff }) {
  const [all, setAll] = useState(false);
  const lines = diff.split("\n"), shown = all ? lines : lines.slice(0, DIFF_LINES);
  return html`<div class="diff"><pre tabindex="0">${shown.map((line, i) => html`<span key=${i} class=${line[0] === "+" ? "add" : line[0] === "-" ? "del" : ""}>${clean(line) || " "}</span>`)}</pre>
    ${lines.length > shown.length ? html`<div class="bar"><${Button} bare onClick=${() => setAll(true)}>Show ${lines.length - shown.length} more lines<//></div>` : null}</div>`;
}

/** The thing itself: a command, a diff, or what the tool was given. @param {{ question: any }} props */
function Thing({ question }) {
  const input = question.input;
  const line = typeof input === "string" ? input : typeof input?.command === "string" ? input.command : null;
  return html`${line ? html`<pre class="cmd">${clean(line)}</pre>` : null}
    ${question.diff ? html`<${Diff} diff=${question.diff} />` : null}
    ${input && !line ? html`<pre class="json" tabindex="0">${clean(JSON.stringify(input, null, 2))}</pre>` : null}`;
}

/** What is to be judged: what was reported, and what shows that it is right. @param {{ id: string }} props */
function Reported({ id }) {
  const { value: task } = useResource(`/api/tasks/${encodeURIComponent(id)}`, ["=" + id]);
  const own = task?.evidence ?? {}, checks = Array.isArray(own.checks) ? own.checks : [], files = Array.isArray(own.files) ? own.files : [];
  if (!task) return null;
  return html`${task.result == null ? null : html`<pre class="json" tabindex="0">${clean(typeof task.result === "string" ? task.result : JSON.stringify(task.result, null, 2))}</pre>`}
    <p class="ctx">${checks.map((/** @type {any} */ check, /** @type {number} */ i) => html`<span key=${i} class=${"st s-" + (check?.passed ? "done" : "failed")}><${Glyph} state=${check?.passed ? "done" : "failed"} /><span class="iso">${clean(check?.name)} ${check?.passed ? "passed" : "failed"}</span></span>`)}
      ${files.length ? html`<span>${files.length} file${files.length === 1 ? "" : "s"}: <b class="iso">${clean(files.slice(0, 3).map((/** @type {any} */ each) => each?.path ?? each).join(", "))}${files.length > 3 ? " …" : ""}</b></span>` : null}${own.branch ? html`<span>branch <b class="iso">${clean(own.branch)}</b></span>` : null}</p>
    ${task.result == null && !checks.length && !files.length ? html`<p class="q">Nothing was reported beside that it is finished.</p>` : null}`;
}

/** What waiting costs: does a process wait with it? @param {{ id: string, gate: boolean, since: number }} props */
function Cost({ id, gate, since }) {
  const task = useResource(`/api/tasks/${encodeURIComponent(id)}`, ["=" + id]).value, waited = now.value - since;
  if (gate) return html`<p class="q">It waits until somebody decides. Nothing is lost either way.</p>`;
  if (!task) return html`<p class="q">Nothing is lost while it waits.</p>`;
  return html`<p class="q">${task.workerId ? `Its process on ${clean(task.workerId)} has waited ${span(waited)}. It is put aside after a while and goes on when you answer: nothing is lost either way.`
    : "Its process was put aside. When you answer, the next free worker goes on where it stopped."}</p>`;
}

/** @param {{ one: any, focused: boolean, cardRef?: any, alone?: boolean }} props */
export function Card({ one, focused, cardRef, alone }) {
  const [words, setWords] = useState(/** @type {string | null} */ (null));
  const [over, setOver] = useState("");
  const armed = useArmed([over !== ""]), may = { disabled: !allows("approver"), reason: "this needs the role approver" };
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const gate = one.kind === "gate", question = one.question ?? {}, tool = question.tool || question.input || question.diff;
  const key = gate ? one.gate : question.id;
  const done = (/** @type {string} */ text) => () => setOver(text);
  const noName = gate ? "reject" : tool ? "deny" : "deny";
  const say = async () => { if (await act(noName, one.task, key, words ?? "")) setOver(`${gate ? "Rejected" : "Denied"}.`); };
  const reply = async (/** @type {string} */ text) => { if (await act("answer", one.task, key, text)) setOver(`Answered: ${text}`); };

  useLayoutEffect(() => {
    if (!focused) return undefined;
    const onKey = (/** @type {any} */ e) => {
      const { key: pressed } = e.detail;
      if (over || !armed.key()) return;
      if (pressed === "a") { gate ? act("pass", one.task, key).then(ok => ok && setOver("Passed.")) : tool && act("allow", one.task, key).then(ok => ok && setOver("Allowed once.")); }
      if (pressed === "A" && !gate && tool) act("allowTask", one.task, key).then(ok => ok && setOver("Allowed for this task."));
      if (pressed === "d" && !may.disabled) { setWords(words ?? ""); e.detail.origin.preventDefault(); }
      if (/^[1-9]$/.test(pressed) && question.options?.[Number(pressed) - 1] !== undefined) reply(question.options[Number(pressed) - 1]);
    };
    addEventListener("stint-key", onKey);
    return () => removeEventListener("stint-key", onKey);
  });
  useEffect(() => { if (words !== null) field.current?.focus(); }, [words !== null]);

  if (over) return html`<article class="ask over" ref=${cardRef}><p class="rcpt"><${Glyph} state="done" /><span class="iso">${clean(over)}</span> <a class="link iso" href=${href("task", one.task)}>${clean(one.title || one.task)}</a></p></article>`;
  const sendKeys = (/** @type {KeyboardEvent} */ e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) { e.preventDefault(); say(); } if (e.key === "Escape") setWords(null); };
  return html`<article class=${"ask" + (focused ? " at" : "") + (armed.click ? "" : " fresh")} ref=${cardRef} data-task=${one.task}>
    <header><${Glyph} state=${gate ? "review" : "asking"} /><a class="link cut iso" href=${href("task", one.task)}>${clean(one.title || one.task)}</a> <span class="mono">${clean(one.task)}</span><${Age} at=${one.since} class="end" /></header>
    <div class="in"><h2>${gate ? html`Needs a verdict on gate ${clean(one.gate)}` : question.diff ? "Wants to change a file" : tool ? html`Wants to use ${clean(question.tool ?? "a tool")}` : "Asks a question"}</h2>
      ${gate ? alone ? null : html`<${Reported} id=${one.task} />` : html`<${Thing} question=${question} />`}
      ${question.text ? html`<p class="quote iso">${clean(question.text)}</p>` : null}
      ${!gate && !tool && question.options?.length ? html`<div class="opt">${question.options.map((/** @type {string} */ option, /** @type {number} */ i) =>
        html`<${Button} key=${option} cli=${actions.answer.cli(one.task, key, option)} data-act="answer" ...${may} onClick=${() => reply(option)}>${i < 9 ? html`<kbd>${i + 1}</kbd>` : null} <bdi>${clean(option)}</bdi><//>`)}</div>` : null}
      <p class="ctx"><span>queue <b class="iso">${clean(one.queue)}</b></span><span>attempt <b>${one.attempt}</b></span>${question.rule ? html`<span>rule <b class="iso">${clean(typeof question.rule === "string" ? question.rule : JSON.stringify(question.rule))}</b></span>` : null}
        ${question.deadline ? html`<span>denied by itself in <b>${span(question.deadline - now.value)}</b></span>` : null}</p>
      <${Cost} id=${one.task} gate=${gate} since=${one.since} />
      ${words !== null ? html`<label><span class="sr">${gate || tool ? "Why not" : "Your answer"}</span><textarea ref=${field} rows="2" value=${words} placeholder=${gate || tool ? "Why not: the work reads this. Ctrl Enter sends." : "Your answer. Ctrl Enter sends."}
        onInput=${(/** @type {any} */ e) => setWords(e.target.value)} onKeyDown=${sendKeys}></textarea></label>` : null}</div>
    <footer>${gate ? html`<${Act} name="pass" words=${[one.task, key]} primary after=${done("Passed.")} label=${html`Pass <kbd>a</kbd>`} />` : null}
      ${!gate && tool ? html`<${Act} name="allow" words=${[one.task, key]} primary after=${done("Allowed once.")} label=${html`Allow once <kbd>a</kbd>`} /><${Act} name="allowTask" words=${[one.task, key]} after=${done("Allowed for this task.")} label=${html`For this task <kbd>A</kbd>`} />` : null}
      ${words === null ? html`<${Button} cli=${actions[noName].cli(one.task, key, "")} data-act=${noName} ...${may} onClick=${() => setWords("")}>${gate ? "Reject" : tool ? "Deny" : "Write"}… <kbd>d</kbd><//>`
        : html`${!gate && !tool ? html`<${Button} primary cli=${actions.answer.cli(one.task, key, words)} onClick=${() => reply(words)}>Answer<//>` : null}<${Button} cli=${actions[noName].cli(one.task, key, words)} onClick=${say}>${gate ? "Reject" : "Deny"}<//>`}
      <code class="end q">${gate ? actions.pass.cli(one.task, key) : tool ? actions.allow.cli(one.task, key) : actions.answer.cli(one.task, key, "…")}</code></footer></article>`;
}

export function Inbox() {
  const { value } = useResource("/api/approvals", ["task.", "gate."]);
  const blocked = useResource("/api/tasks?state=blocked&include=why&limit=100", ["task."]).value ?? [];
  const [at, setAt] = useState(0);
  const kept = useRef(/** @type {Map<string, any>} */ (new Map()));
  const list = useRef(/** @type {Map<string, any>} */ (new Map()));
  const key = (/** @type {any} */ one) => `${one.task}/${one.kind}/${one.gate ?? one.question?.id}`;
  // A card that was decided stays, folded, until the page is left.
  for (const one of value ?? []) kept.current.set(key(one), one);
  const cards = [...kept.current.entries()].sort(([, a], [, b]) => a.since - b.since);
  const first = cards.findIndex(([, one]) => one.task === route.value.id);
  useEffect(() => { if (first >= 0) setAt(first); }, [route.value.id, first >= 0]);
  useLayoutEffect(() => {
    const onKey = (/** @type {any} */ e) => {
      if (e.detail.key === "j") setAt(Math.min(at + 1, cards.length - 1));
      if (e.detail.key === "k") setAt(Math.max(at - 1, 0));
    };
    addEventListener("stint-key", onKey);
    return () => removeEventListener("stint-key", onKey);
  });
  useEffect(() => { list.current.get(cards[at]?.[0])?.scrollIntoView({ block: "nearest" }); }, [at]);
  const open = new Set((value ?? []).map(key));
  return html`<div class="head"><h1>Inbox</h1><span class="q">${open.size + blocked.length ? `${open.size + blocked.length} need${open.size + blocked.length === 1 ? "s" : ""} you` : ""}</span></div>
    ${value && cards.length === 0 && blocked.length === 0 ? html`<${Empty} head="Nothing needs you.">Questions, permissions and gates appear here and in <code>stint inbox</code>.<//>` : null}
    <div class="inbox">${cards.length + blocked.length ? html`<nav class="idx" aria-label="What waits for you">${cards.map(([name, one], i) => html`<a key=${name} href=${href("inbox", one.task)} aria-current=${i === at ? "true" : null} onClick=${() => setAt(i)}>
      <${Glyph} state=${one.kind === "gate" ? "review" : "asking"} /><b class="cut"><${Title} task=${one} /></b><span class="cut q">${one.kind === "gate" ? clean(one.gate) : clean(one.question?.text ?? one.question?.tool ?? "")}</span></a>`)}</nav>` : null}
      <div>${cards.map(([name, one], i) => html`<${Card} key=${name} one=${one} focused=${i === at} cardRef=${(/** @type {any} */ el) => { list.current.set(name, el); }} />`)}
        ${blocked.length ? html`<h2 class="h2">Blocked</h2>` : null}${blocked.map((/** @type {any} */ task) => html`<article class="ask" key=${task.id}><header><${Glyph} state="blocked" /><a class="link cut iso" href=${href("task", task.id)}><${Title} task=${task} /></a> <span class="mono">${clean(task.id)}</span><${Age} at=${task.updatedAt} class="end" /></header>
          <div class="in"><p><bdi>${clean(task.why?.text ?? task.error?.message ?? "")}</bdi></p></div><footer><${Act} name="retry" words=${[task.id]} /><${Act} name="cancel" words=${[task.id]} /></footer></article>`)}</div></div>`;
}
