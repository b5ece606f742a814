// What is it doing, why, and can I trust it?
import { useLayoutEffect, useState } from "preact/hooks";
import { allows, command, href, route } from "../live/state.js";
import { Act, act, actions, actionsOf } from "../part/actions.js";
import { Lanes, Story, attemptsOf, useHistory } from "../part/history.js";
import { Age, Button, Copy, Glyph, Lease, Meter, Title, html, useResource } from "../part/parts.js";
import { Log } from "../part/log.js";
import { ahead, clean, count, money, quote, span, stateWords, thousands, tokens, wait } from "../part/text.js";
import { Card } from "./inbox.js";

/** @param {{ name: string, children?: any }} props */
const Fact = ({ name, children }) => children === null || children === undefined || children === "" ? null : html`<dt>${name}</dt><dd>${children}</dd>`;

/** @param {{ head: string, value: any }} props */
const Json = ({ head, value }) => value === undefined || value === null ? null : html`<section><h2 class="h2">${head}</h2><pre class="json" tabindex="0">${clean(typeof value === "string" ? value : JSON.stringify(value, null, 2))}</pre></section>`;

/** What its attempts have used, beside what they may. A price that is not known is not 0. @param {{ task: any }} props */
function Money({ task }) {
  const used = task.usage, budget = task.budget ?? {};
  if (!used && !task.budget) return null;
  const usd = used?.usd ?? (used ? null : 0), input = (used?.inputTokens ?? 0) + (used?.cacheReadTokens ?? 0) + (used?.cacheWriteTokens ?? 0);
  const of = (/** @type {number | undefined} */ most) => most === undefined ? null : html` <span class="q">of ${thousands(most)}</span>`;
  return html`<section data-money><h2 class="h2">Money <span class="end">${usd === null ? "unknown" : money(usd)}${budget.usd === undefined ? null : ` of ${money(budget.usd)}`}</span></h2><dl class="facts">
    ${budget.usd === undefined || usd === null ? null : html`<${Fact} name="Budget"><${Meter} of=${Math.min(usd, budget.usd)} max=${budget.usd} /><//>`}
    ${input + (used?.outputTokens ?? 0) ? html`<${Fact} name="Tokens">${tokens(input)} in${used.cacheReadTokens ? html` <span class="q">${Math.round(100 * used.cacheReadTokens / input)} % from cache</span>` : null}, ${tokens(used.outputTokens)} out${of(budget.tokens)}<//>` : null}
    ${used?.turns ? html`<${Fact} name="Turns">${thousands(used.turns)}${of(budget.turns)}<//>` : null}${used?.toolCalls ? html`<${Fact} name="Tool calls">${thousands(used.toolCalls)}${of(budget.toolCalls)}<//>` : null}
    ${budget.minutes === undefined ? null : html`<${Fact} name="Time">at most ${budget.minutes} min<//>`}</dl></section>`;
}

/** The agent's session of the last attempt. @param {{ id: string, task: any }} props */
function Session({ id, task }) {
  const { value: one } = useResource(`/api/sessions/${encodeURIComponent(id)}`, ["=" + task.id]);
  return html`<section data-session><h2 class="h2">Session</h2><dl class="facts">
    <${Fact} name="Agent">${one?.adapter || task.executor ? html`<span class="iso">${clean(one?.adapter ?? task.executor)}</span>${one?.model || task.model ? html` <span class="q iso">${clean(one?.model ?? task.model)}</span>` : null}` : null}<//>
    <${Fact} name="Id"><code class="iso">${clean(id)}</code><//><${Fact} name="On">${one?.host ? html`<span class="iso">${clean(one.host)}</span>` : null}<//>
    ${one?.attach ? html`<${Fact} name="Go on by hand"><${Copy} text=${`stint session attach ${quote(id)}`} /><//>` : null}
    ${one?.prompt ? html`<${Fact} name="What it was told"><${Copy} text=${`stint session prompt ${quote(id)}`} /><//>` : null}</dl></section>`;
}

/** @param {string} text */
const isLink = text => /^https?:\/\/[^\s]+$/.test(text);

/** What shows that the work is right: checks, files, branch, commits, links. What is unknown is shown as it came. @param {{ evidence: any }} props */
function Evidence({ evidence }) {
  const own = evidence && typeof evidence === "object" && !Array.isArray(evidence) ? evidence : { said: evidence };
  const { checks, files, branch, tree, vcs: _, commits, links, undelivered, ...rest } = own;
  const list = (/** @type {any} */ value) => Array.isArray(value) ? value.map((/** @type {any} */ each) => typeof each === "string" ? each : each?.id ?? each?.path ?? each?.url ?? JSON.stringify(each)) : [];
  return html`${Array.isArray(checks) && checks.length ? html`<section data-checks><h2 class="h2">Checks</h2><dl class="facts">${checks.map((/** @type {any} */ check, /** @type {number} */ i) => html`<${Fact} key=${i} name=${html`<span class="iso">${clean(check?.name ?? `check ${i + 1}`)}</span>`}>
      <span class=${"st s-" + (check?.passed ? "done" : "failed")}><${Glyph} state=${check?.passed ? "done" : "failed"} /><span>${check?.passed ? "passed" : "failed"}</span></span>${typeof check?.ms === "number" ? html` <span class="q">${wait(check.ms)}</span>` : null}<//>`)}</dl></section>` : null}
    ${list(files).length || branch || list(commits).length || list(links).length || undelivered || Object.keys(rest).length ? html`<section data-evidence><h2 class="h2">Evidence</h2><dl class="facts">
      ${list(files).length ? html`<${Fact} name=${count(list(files).length, "file")}><ul class="mono">${list(files).slice(0, 12).map(each => html`<li key=${each} class="iso">${clean(each)}</li>`)}${list(files).length > 12 ? html`<li class="q">and ${list(files).length - 12} more</li>` : null}</ul><//>` : null}
      <${Fact} name="Branch">${branch ? html`<code class="iso">${clean(branch)}</code>` : null}<//><${Fact} name="Tree">${tree ? html`<code class="iso">${clean(tree)}</code>` : null}<//>
      ${list(commits).length ? html`<${Fact} name="Commits">${list(commits).slice(0, 8).map(each => html`<code key=${each}>${clean(each).slice(0, 12)}</code> `)}<//>` : null}
      ${list(links).length ? html`<${Fact} name="Links">${list(links).slice(0, 8).map(each => isLink(each) ? html`<div key=${each}><a class="link iso" href=${each} rel="noreferrer noopener" target="_blank">${clean(each)}</a></div>` : html`<div key=${each} class="iso">${clean(each)}</div>`)}<//>` : null}
      <${Fact} name="Not delivered">${undelivered ? html`<bdi class="bad">${clean(undelivered)}</bdi>` : null}<//></dl>${Object.keys(rest).length ? html`<pre class="json" tabindex="0">${clean(JSON.stringify(rest, null, 2))}</pre>` : null}</section>` : null}`;
}

const TREE_DEPTH = 4;

/** The tasks that the work on a task has made, with theirs beneath. @param {{ id: string, depth: number }} props */
function Subtasks({ id, depth }) {
  const { value } = useResource(`/api/tasks?parent=${encodeURIComponent(id)}&limit=200`, ["task."]);
  const tasks = /** @type {any[]} */ (value ?? []);
  return tasks.length ? html`<ul class="subs">${tasks.map(task => html`<li key=${task.id}><a class="r" href=${href("task", task.id)}><${Glyph} state=${task.state} /><span class="mono">${clean(task.id)}</span><span class="cut"><${Title} task=${task} /></span><span class="end q nw">${stateWords[task.state]}</span></a>
    ${depth < TREE_DEPTH ? html`<${Subtasks} id=${task.id} depth=${depth + 1} />` : null}</li>`)}</ul>` : null;
}

/** @param {{ ids: any[] }} props */
const Linked = ({ ids }) => ids.map(one => html`<a class="r link-s" key=${one.id} href=${href("task", one.id)}><${Glyph} state=${one.state ?? "cancelled"} /><span class="mono">${clean(one.id)}</span>${one.state ? null : html`<span class="q">removed</span>`}</a>`);

/** Words for whoever works on it. @param {{ task: any }} props */
function Tell({ task }) {
  const [words, setWords] = useState("");
  const may = allows(actions.tell.role), cli = actions.tell.cli(task.id, words);
  const send = async (/** @type {Event} */ e) => { e.preventDefault(); if (words.trim() && await act("tell", task.id, words.trim())) setWords(""); };
  const said = /** @type {any[]} */ (task.tells ?? []);
  if (!may && !said.length) return null;
  return html`<section data-tell><h2 class="h2">Tell it</h2>${said.map(one => html`<div class="li" key=${one.id}><span class="cut iso" title=${clean(one.text)}>${clean(one.text)}</span><span class="q nw end">${one.heard ? "heard" : "not heard yet"}</span><${Age} at=${one.at} class="q nw" /></div>`)}
    ${may ? html`<form class="r pt" onSubmit=${send}><input class="find-in wide" name="tell" aria-label="A message to the work" placeholder="It reads this at its next turn" value=${words} onInput=${(/** @type {any} */ e) => setWords(e.target.value)} onFocus=${() => { command.value = cli; }} onBlur=${() => { command.value = ""; }} /><${Button} cli=${cli} data-act="tell" onClick=${send}>Send<//></form>` : null}</section>`;
}

/** How it went as a whole, of what has ended. @param {any[]} attempts @param {any} task */
function summary(attempts, task) {
  const first = attempts[0], last = attempts.at(-1);
  if (!first || !last?.end) return "";
  const work = attempts.reduce((sum, one) => sum + ((one.end || one.begin) - one.begin), 0), usd = task.usage?.usd;
  const long = (/** @type {number} */ ms) => ms < 10000 ? wait(ms) : span(ms);
  return `${long(last.end - first.queued)} from start to end, ${long(work)} of it at work${usd ? `, ${money(usd)}` : ""}.`;
}

export function Task() {
  const id = route.value.id, path = `/api/tasks/${encodeURIComponent(id)}`;
  const { value: task, at, failed } = useResource(`${path}?include=why`, ["=" + id, "worker.", "queue."]);
  const history = useHistory(id);
  const inbox = useResource("/api/approvals", ["task.", "gate."]).value ?? [];
  const workers = useResource("/api/workers", ["worker.", "beat"]).value ?? [];
  useLayoutEffect(() => {
    const onKey = (/** @type {any} */ e) => {
      if (e.detail.key === "r" && actionsOf(task ?? {}).includes("retry")) act("retry", id);
      if (e.detail.key === "f") { e.detail.origin.preventDefault(); /** @type {HTMLElement | null} */ (document.querySelector("[data-find]"))?.focus(); }
      if (e.detail.key === "End") /** @type {HTMLElement | null} */ (document.querySelector("[data-follow]"))?.click();
      if (e.detail.key === "Escape") window.history.back();
    };
    addEventListener("stint-key", onKey);
    return () => removeEventListener("stint-key", onKey);
  });
  if (!task) return failed ? html`<div class="crumb"><a href=${href("tasks")}>Tasks</a> / ${clean(id)}</div><h1>No such task</h1><p class="pt q2">${clean(failed)}</p>` : html`<h1 class="sr">Task ${clean(id)}</h1>`;
  const attempts = attemptsOf(history, task), over = ["done", "failed", "cancelled"].includes(task.state);
  const mine = inbox.filter((/** @type {any} */ one) => one.task === task.id);
  const worker = workers.find((/** @type {any} */ w) => w.workerId === task.workerId);
  const crashes = task.crashes - (["claimed", "running"].includes(task.state) ? 1 : 0); // of a claim that lives one is counted in advance
  const again = task.state === "done" || task.state === "cancelled" ? "Run again" : undefined;
  return html`<div class="crumb"><a href=${href("tasks")}>Tasks</a> / <span class="mono">${clean(task.id)}</span> ${(task.labels ?? []).map((/** @type {string} */ label) => html`<a class="lb iso" key=${label} href=${href("tasks", "", { label })}>${clean(label)}</a>`)}</div>
    <div class="ttl"><${Glyph} state=${task.state} big /><h1><${Title} task=${task} /></h1><span class="end r">${actionsOf(task).map(name => html`<${Act} key=${name} name=${name} words=${[task.id]} label=${name === "retry" ? again : undefined} />`)}</span></div>
    <p class="because"><b>${task.stopping ? "Stopping" : stateWords[task.state]}.</b> <bdi>${clean(task.why?.text ?? task.note ?? "")}</bdi>${over && attempts.at(-1)?.end ? html`. <b>${summary(attempts, task)}</b>` : null}</p>
    ${task.why?.try ? html`<div class="because"><${Copy} text=${task.why.try} /></div>` : null}
    ${mine.map((/** @type {any} */ one) => html`<${Card} key=${one.question?.id ?? one.gate} one=${one} focused alone />`)}
    <${Lanes} attempts=${attempts} task=${task} />
    <div class="grid"><div class="c8">
      ${over || task.result != null ? html`<${Json} head="Result" value=${task.result} />` : null}
      <section><h2 class="h2">Log</h2>${task.attempt ? html`<${Log} id=${task.id} attempts=${task.attempt} live=${!over} />` : html`<p class="pt q">No attempt has begun.</p>`}</section>
      <${Story} events=${history} />
      <${Json} head="Instructions" value=${task.instructions ?? task.description} />
      <${Json} head="Payload" value=${task.payload} /><${Json} head="Metadata" value=${task.metadata && Object.keys(task.metadata).length ? task.metadata : null} />
    </div><div class="c4">
      <section><h2 class="h2">Held by</h2><dl class="facts">
        <${Fact} name="Worker">${task.workerId ? html`<a class="link iso" href=${href("workers")}>${clean(worker?.slot ?? task.workerId)}</a>${worker?.host ? html` <span class="q iso">on ${clean(worker.host)}</span>` : null}` : html`<span class="q">nobody${over ? ", it has ended" : ""}</span>`}<//>
        <${Fact} name="Lease">${task.leaseMs != null ? html`<${Lease} ms=${task.leaseMs} of=${worker?.leaseGrantedMs ?? Math.max(60000, task.leaseMs)} at=${at} full text />` : null}<//>
        <${Fact} name="Attempts">${task.attempt} so far, ${task.spent} of ${count(task.maxAttempts, "failure")} spent<//>
        <${Fact} name="Crashes">${crashes ? `${crashes} in a row` : null}<//>
        <${Fact} name="Progress">${task.percent != null ? `${task.percent} %` : null}<//></dl></section>
      <${Money} task=${task} />${task.sessionId ? html`<${Session} id=${task.sessionId} task=${task} />` : null}
      ${task.evidence === undefined || task.evidence === null ? null : html`<${Evidence} evidence=${task.evidence} />`}
      ${task.error ? html`<section><h2 class="h2">Error</h2><dl class="facts"><${Fact} name="Code"><code>${clean(task.error.code)}</code><//><${Fact} name="Message"><bdi>${clean(task.error.message)}</bdi><//><${Fact} name="Class">${task.error.class}<//></dl></section>` : null}
      <section data-around><h2 class="h2">Around it</h2><dl class="facts">
        <${Fact} name="After">${task.parents?.length ? html`<${Linked} ids=${task.parents} />` : null}<//>
        <${Fact} name="Subtask of">${task.parent ? html`<a class="link mono" href=${href("task", task.parent)}>${clean(task.parent)}</a>` : null}<//>
        <${Fact} name="Group">${task.group ? html`<a class="link iso" href=${href("tasks", "", { group: task.group })}>${clean(task.group)}</a>` : null}<//>
        <${Fact} name="After groups">${task.blockedByGroups?.length ? task.blockedByGroups.map((/** @type {string} */ group) => html`<a class="link iso" key=${group} href=${href("tasks", "", { group })}>${clean(group)}</a> `) : null}<//>
        <${Fact} name="Schedule">${task.schedule ? html`<a class="link iso" href=${href("schedules", task.schedule.id)}>${clean(task.schedule.id)}</a>` : null}<//>
        <${Fact} name="Replaced by">${task.supersededBy ? html`<a class="link mono" href=${href("task", task.supersededBy)}>${clean(task.supersededBy)}</a>` : null}<//>
        <${Fact} name="Queue"><a class="link iso" href=${href("tasks", "", { queue: task.queue })}>${clean(task.queue)}</a> <span class="q">priority ${task.priority}</span><//>
        <${Fact} name="Account">${task.credential ? clean(task.credential) : null}<//><${Fact} name="Key">${task.concurrencyKey ? clean(task.concurrencyKey) : null}<//>
        <${Fact} name="Stage">${task.stage ? html`<a class="link iso" href=${href("workflows")}>${clean(task.workflow)}</a>: ${clean(task.stage)}` : null}<//>
        <${Fact} name="Gates">${task.gates?.length ? task.gates.map((/** @type {string} */ gate) => html`<span class="iso" key=${gate}>${clean(gate)}${task.gatesPassed?.includes(gate) ? " (passed)" : ""}</span> `) : null}<//></dl>
        ${task.children?.length || task.reason === "children" ? html`<h2 class="h2">Subtasks</h2><${Subtasks} id=${task.id} depth=${1} />` : null}</section>
      <section><h2 class="h2">Task</h2><dl class="facts">
        <${Fact} name="Runs with">${task.executor ? clean(task.executor) : null}<//><${Fact} name="Owner">${task.owner ? clean(task.owner) : null}<//><${Fact} name="Needs">${task.requires?.length ? clean(task.requires.join(", ")) : null}<//>
        <${Fact} name="Isolation">${task.isolationLevel}<//><${Fact} name="Work dir">${task.workingDir ? html`<code>${clean(task.workingDir)}</code>` : null}<//>
        <${Fact} name="Not before">${task.notBefore ? ahead(task.notBefore, Date.now()) : null}<//><${Fact} name="Done by">${task.finishBy ? ahead(task.finishBy, Date.now()) : null}<//>
        <${Fact} name="Created"><${Age} at=${task.createdAt} ago /><//><${Fact} name="Changed"><${Age} at=${task.updatedAt} ago /><//>
        <${Fact} name="Time limit">${span(task.timeoutMs)}<//></dl></section>
      ${over ? null : html`<${Tell} task=${task} />`}
    </div></div>`;
}
