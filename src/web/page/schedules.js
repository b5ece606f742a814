// Did it fire, when next? And the accounts whose tasks are passed over.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { allows, go, href, now, overlay, refreshAll, route, toast } from "../live/state.js";
import { Act, act, actions } from "../part/actions.js";
import { Overlay } from "../part/frame.js";
import { Age, Button, Empty, Meter, html, useResource } from "../part/parts.js";
import { ahead, clean, clock, count, exact, money, span, tokens } from "../part/text.js";

const DAY_MS = 86400000, MIN_MS = 60000, RULER_MAX = 24, MARKS_MAX = 96;
const overlaps = /** @type {Record<string, string>} */ ({ skip: "skips while one is open", allow: "side by side", queue: "one after the other", cancel: "the new one replaces the open one" });
const catches = /** @type {Record<string, string>} */ ({ one: "the newest of them is made", skip: "they are left out", all: "the newest hundred are made" });
const capital = (/** @type {string} */ text) => text.charAt(0).toUpperCase() + text.slice(1);
const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Rows that j and k walk through; the other keys get the row. A row is remembered by its id: no key acts on a row that came to its place by
 * itself. @param {any[]} rows @param {(row: any) => string} idOf @param {(key: string, row: any) => void} onKey */
export function useRows(rows, idOf, onKey) {
  const [here, setHere] = useState("");
  useLayoutEffect(() => {
    const listen = (/** @type {any} */ e) => {
      const at = rows.findIndex(row => idOf(row) === here), step = { j: 1, k: -1 }[/** @type {string} */ (e.detail.key)];
      if (step && rows.length) setHere(idOf(rows[Math.max(0, Math.min(at + step, rows.length - 1))]));
      else if (rows[at]) onKey(e.detail.key, rows[at]);
    };
    addEventListener("stint-key", listen);
    return () => removeEventListener("stint-key", listen);
  });
  useEffect(() => { document.querySelector("tr.at")?.scrollIntoView({ block: "nearest" }); }, [here]);
  return here;
}

/** Rows keep the place that they had when the page was opened; new ones come last. @param {any[]} sorted @param {(row: any) => string} idOf */
export function useSettled(sorted, idOf) {
  const order = useRef(/** @type {string[]} */ ([]));
  const byId = new Map(sorted.map(row => [idOf(row), row]));
  order.current = [...order.current.filter(id => byId.has(id)), ...sorted.map(idOf).filter(id => !order.current.includes(id))];
  return order.current.map(id => byId.get(id));
}

/** How long until then, without seconds that would flicker. @param {number} at */
const until = at => {
  const left = at - now.value;
  return left <= 0 ? "due" : "in " + span(left < MIN_MS ? left : Math.floor(left / MIN_MS) * MIN_MS);
};

/** One mark per occurrence, the last 15. @param {{ history: any[] }} props */
function Ticks({ history }) {
  const last = history.slice(-15);
  const kinds = /** @type {Record<string, string>} */ ({ failed: "bad", open: "run", skipped: "no", cancelled: "no" });
  return html`<span class="ticks" role="img" aria-label=${last.length ? "last times: " + last.map(o => o.outcome).join(", ") : "it has not been due yet"}>${last.map((o, i) => html`<i key=${i} class=${kinds[o.outcome] ?? ""}></i>`)}</span>`;
}

/** @param {{ o: any }} props */
const Made = ({ o }) => o?.task ? html` <a class="link mono" href=${href("task", o.task)}>${clean(o.task)}</a>` : null;

/** What came of one time. @param {{ o: any }} props */
function Outcome({ o }) {
  if (o.outcome === "open") return html`now open:<${Made} o=${o} />`;
  if (o.outcome === "skipped") return html`<span class="q">${o.count > 1 ? count(o.count, "time") + " " : ""}skipped: ${clean((o.reason ?? "").replace(/_/g, " "))}</span>`;
  return html`<span class=${o.outcome === "failed" ? "bad" : ""}>${clean(o.outcome)}</span><${Made} o=${o} />`;
}

/** @param {{ s: any }} props */
function Last({ s }) {
  const last = s.history.at(-1), failed = s.history.findLast((/** @type {any} */ o) => o.outcome === "failed");
  if (s.problem) return html`<span class="bad iso">${clean(s.problem)}</span>`;
  if (s.failing) return html`<span class="bad">failed or skipped ${s.failuresInARow} times in a row</span><${Made} o=${failed ?? last} />`;
  if (!last) return html`<span class="q">not due yet</span>`;
  const at = last.at ?? last.to;
  return html`<${Outcome} o=${last} />${at && last.outcome !== "open" ? html`<span class="q">, <${Age} at=${at} ago /></span>` : null}`;
}

/** What a schedule makes within a day, as far as its answer says: the next time, and the ones after it where a fixed length lies between.
 * @param {any} s @param {number} from */
function timesOf(s, from) {
  const times = [];
  for (let at = s.next; at - from < DAY_MS && times.length < MARKS_MAX; at += s.every) {
    times.push(at);
    if (!s.every) break;
  }
  return times;
}

/** The next 24 hours: a dot for each time, thin marks for what comes often. @param {{ list: any[] }} props */
function Ruler({ list }) {
  const from = now.value, due = list.filter(s => !s.paused && s.next && s.next - from < DAY_MS).sort((a, b) => a.next - b.next).slice(0, RULER_MAX);
  const share = (/** @type {number} */ at) => Math.max(0, Math.min(100, (at - from) / DAY_MS * 100));
  const first = new Date(from); first.setMinutes(0, 0, 0);
  const hours = Array.from({ length: 8 }, (_, i) => first.getTime() + (i + 1) * 3 * 3600000).filter(at => at - from < DAY_MS * 0.98);
  let free = -1;
  if (!due.length) return null;
  const mark = (/** @type {string} */ kind, /** @type {string} */ key, /** @type {number} */ at, /** @type {any} */ text) => html`<span class=${kind} key=${key} style=${{ "--x": share(at).toFixed(2) + "%" }}>${text}</span>`;
  return html`<section><h2 class="h2">Next 24 hours</h2><div class="day" role="img" aria-label=${"Next 24 hours: " + due.map(s => `${clean(s.id)} ${s.every && s.every < DAY_MS ? clean(s.when) : "at " + clock(s.next)}`).join(", ")}>
    ${due.map(s => {
      const times = timesOf(s, from), often = times.length > RULER_MAX, x = share(s.next), named = x >= free;
      const name = often ? `${s.id} ${s.when}` : s.id;
      if (named) free = x + 2 + name.length * 0.75;
      return html`${times.map(at => often ? mark("thin", s.id + at, at, null) : mark("f", s.id + at, at, null))}${named ? mark("nm iso" + (often ? " hs" : "") + (x < 8 ? " lt" : x > 90 ? " rt" : ""), s.id + "-name", s.next, clean(name)) : null}`;
    })}${mark("hour lt", "now", from, "now")}${hours.map((at, i) => html`${mark("thin", "h" + at, at, null)}${mark(i % 2 ? "hour" : "hour hs", "t" + at, at, clock(at).slice(-5))}`)}</div></section>`;
}

/** A new schedule: when, and which task. The line below is the command that does the same. */
function Add() {
  const [draft, setDraft] = useState({ id: "", kind: "cron", when: "", tz: zone(), title: "", queue: "" });
  const [wrong, setWrong] = useState("");
  const words = [draft.id, draft.kind, draft.when, draft.kind === "cron" ? draft.tz : "", draft.title, draft.queue];
  const field = (/** @type {"id" | "when" | "tz" | "title" | "queue"} */ name, /** @type {string} */ label, /** @type {string} */ hint, /** @type {boolean} */ needed) => html`<label>${label}
    <input name=${name} required=${needed} autofocus=${name === "id"} autocomplete="off" spellcheck=${false} placeholder=${hint} value=${draft[name]} onInput=${(/** @type {any} */ e) => setDraft({ ...draft, [name]: e.target.value })} /></label>`;
  const send = async (/** @type {Event} */ e) => {
    e.preventDefault();
    try {
      await actions.addSchedule.run(...words);
      overlay.value = "";
      toast(`${draft.id} ${actions.addSchedule.done}.`);
      refreshAll();
    } catch (fault) {
      setWrong(/** @type {Error} */ (fault).message);
    }
  };
  const kinds = [["cron", "Cron line"], ["every", "Every"], ["at", "Once"]];
  const hints = /** @type {Record<string, string>} */ ({ cron: "30 2 * * *", every: "15m, 1h30m", at: "2026-12-31T18:00:00Z" });
  return html`<${Overlay} label="Add a schedule"><form class="form" onSubmit=${send}><h2 class="h2">Add a schedule</h2>
    ${field("id", "Name", "nightly", true)}
    <div class="r"><span class="seg" role="group" aria-label="How it says when">${kinds.map(([kind, name]) => html`<button type="button" key=${kind} aria-pressed=${draft.kind === kind ? "true" : "false"} onClick=${() => setDraft({ ...draft, kind, when: "" })}>${name}</button>`)}</span></div>
    ${field("when", { cron: "Minute, hour, day, month, weekday", every: "Length of time between two tasks", at: "The moment" }[draft.kind] ?? "", hints[draft.kind], true)}
    ${draft.kind === "cron" ? field("tz", "Time zone", "Europe/Berlin", true) : null}
    ${field("title", "Title of its tasks", "nightly tests", true)}${field("queue", "Queue", "default", false)}
    ${wrong ? html`<p class="bad" role="alert">${clean(wrong)}</p>` : null}
    <p class="q"><code>${clean(actions.addSchedule.cli(...words))}</code></p>
    <div class="r"><button type="submit" class="btn pri" data-act="addSchedule">${actions.addSchedule.label}</button><button type="button" class="btn" onClick=${() => { overlay.value = ""; }}>Cancel</button></div></form><//>`;
}

/** @param {{ s: any }} props */
const Switch = ({ s }) => html`<${Act} name="runSchedule" words=${[s.id]} bare />${s.paused ? html`<${Act} name="resumeSchedule" words=${[s.id]} bare />` : html`<${Act} name="pauseSchedule" words=${[s.id]} bare />`}`;
const kindsOfEvent = ["schedule.", "task.created", "task.completed", "task.failed", "task.cancelled"];

/** One schedule: what it makes, when, and what came of it. @param {{ id: string }} props */
function Schedule({ id }) {
  const path = `/api/schedules/${encodeURIComponent(id)}`;
  const { value: s, failed } = useResource(path, kindsOfEvent);
  const next = useResource(path + "/next?n=5", ["schedule."]).value;
  const head = html`<p class="crumb"><a class="link" href=${href("schedules")}>Schedules</a></p><div class="head"><h1 class="iso">${clean(id)}</h1>${s?.paused ? html`<span class="q">paused</span>` : null}<div class="end">${s ? html`<${Switch} s=${s} />` : null}</div></div>`;
  if (!s) return html`${head}${failed ? html`<${Empty} head="This schedule cannot be shown.">${clean(failed)}<//>` : null}`;
  return html`${head}<div class="grid"><section class="c6"><h2 class="h2">When</h2><dl class="facts"><dt>Plan</dt><dd>${capital(clean(s.when))}${s.cron ? html` <code class="q">${clean(s.cron)}</code>` : null}</dd>
      <dt>Time zone</dt><dd class="iso">${clean(s.tz)}</dd><dt>While one is open</dt><dd>${overlaps[s.overlap] ?? clean(s.overlap)}</dd><dt>Times it missed</dt><dd>${catches[s.catchUp] ?? clean(s.catchUp)}</dd>
      ${s.jitterMs ? html`<dt>Begins</dt><dd>up to ${span(s.jitterMs)} later</dd>` : null}<dt>So far</dt><dd>${count(s.made, "task")}, ${s.skipped} skipped</dd><dt>Made by</dt><dd class="iso">${clean(s.madeBy)}, <${Age} at=${s.createdAt} ago /></dd></dl>
      <h2 class="h2 mt">Next</h2>${s.paused ? html`<p class="pt q">Nothing while it is paused.</p>` : (next?.next ?? []).map((/** @type {number} */ at) => html`<div class="li" key=${at}><time title=${exact(at)}>${ahead(at, now.value)}</time><span class="q end">${until(at)}</span></div>`)}</section>
    <section class="c6"><h2 class="h2">Last times <a class="end" href=${href("tasks", "", { schedule: id })}>Its tasks</a></h2>${s.history.length ? s.history.toReversed().map((/** @type {any} */ o, /** @type {number} */ i) => html`<div class="li" key=${(o.at ?? o.from) + "-" + i}><time class="q mono" title=${exact(o.at ?? o.to)}>${clock(o.at ?? o.to)}</time><span class="cut"><${Outcome} o=${o} /></span></div>`) : html`<p class="pt q">Not due yet.</p>`}
      <h2 class="h2 mt">The task that it makes</h2><pre class="json" tabindex="0">${clean(JSON.stringify(s.task, null, 2))}</pre></section></div>`;
}

function List() {
  const { value, failed } = useResource("/api/schedules", kindsOfEvent);
  const rank = (/** @type {any} */ s) => s.failing || s.problem ? 0 : s.paused ? 2 : 1;
  const sorted = [.../** @type {any[]} */ (value ?? [])].sort((a, b) => rank(a) - rank(b) || (a.next ?? Infinity) - (b.next ?? Infinity) || (a.id < b.id ? -1 : 1));
  const list = useSettled(sorted, s => s.id), failing = list.filter(s => rank(s) === 0).length, paused = list.filter(s => s.paused).length;
  const add = () => { if (allowsAdd()) overlay.value = "add"; };
  useEffect(() => () => { if (overlay.peek() === "add") overlay.value = ""; }, []);
  useLayoutEffect(() => {
    const listen = (/** @type {any} */ e) => { if (e.detail.key === "n") { e.detail.origin.preventDefault(); add(); } };
    addEventListener("stint-key", listen);
    return () => removeEventListener("stint-key", listen);
  });
  const here = useRows(list, s => s.id, (key, s) => {
    if (key === "p") act(s.paused ? "resumeSchedule" : "pauseSchedule", s.id);
    if (key === "Enter") go(href("schedules", s.id));
  });
  const sum = list.length ? [[list.length, failing ? `${failing} failing` : "", paused ? `${paused} paused` : ""].filter(Boolean).join(", "), `times in ${zone()}`].join(" · ") : "";
  return html`<div class="head"><h1>Schedules</h1><span class="q">${sum}</span><div class="end"><${Button} primary cli="stint schedule add" disabled=${!allowsAdd()} reason="this needs the role operator" onClick=${add}>Add a schedule<//></div></div>
    ${failed && !value ? html`<${Empty} head="The schedules cannot be read.">${clean(failed)}<//>` : null}
    ${value && !list.length ? html`<${Empty} head="Nothing is planned."><code>stint schedule add nightly --cron "30 2 * * *" -- make test</code><//>` : null}
    <${Ruler} list=${list} />
    ${list.length ? html`<table class="t two" aria-label="Schedules"><thead><tr><th class="w9">Schedule</th><th class="w9">When</th><th class="w8">Last 15</th><th>Last time</th><th class="num w9">Next</th><th class="w9"><span class="sr">Actions</span></th></tr></thead>
      <tbody>${list.map(s => html`<tr key=${s.id} data-id=${s.id} class=${s.id === here ? "at" : ""}><td><a href=${href("schedules", s.id)}><b class="iso">${clean(s.id)}</b></a><div class="q">${s.paused ? "paused" : overlaps[s.overlap] ?? ""}</div></td>
        <td><bdi>${capital(clean(s.when))}</bdi><div class="q mono">${clean(s.cron ?? "")}${s.tz !== "UTC" ? html` <span class="iso">${clean(s.tz)}</span>` : null}</div></td>
        <td class="hs"><${Ticks} history=${s.history} /></td><td class="full-w"><${Last} s=${s} /></td>
        <td data-l="Next" class="num">${s.next && !s.paused ? html`<time title=${exact(s.next)}>${ahead(s.next, now.value)}</time><div class="q">${until(s.next)}</div>` : html`<span class="q">–</span>`}</td>
        <td class="num nw full-w"><${Switch} s=${s} /></td></tr>`)}</tbody></table>` : null}
    ${overlay.value === "add" ? html`<${Add} />` : null}`;
}

const allowsAdd = () => allows(actions.addSchedule.role);

export const Schedules = () => route.value.id ? html`<${Schedule} id=${route.value.id} />` : html`<${List} />`;

/** Accounts that workers announce, or that were used today: how much of the day's budget is left where there is one. */
function Accounts() {
  const rows = /** @type {any[]} */ (useResource("/api/credentials", ["hold.", "budget.", "worker.", "task.progressed"]).value ?? []), byName = new Map();
  for (const row of rows) {
    const one = byName.get(row.name) ?? { ...row, executors: new Set(), workers: new Set() };
    if (row.executor) one.executors.add(row.executor);
    if (row.worker) one.workers.add(row.worker);
    byName.set(row.name, one);
  }
  const list = [...byName.values()].sort((a, b) => a.name < b.name ? -1 : 1);
  return list.length ? html`<section class="mt"><h2 class="h2">Accounts <span class="end">used today, in UTC</span></h2><table class="t two" aria-label="Accounts"><thead><tr><th>Account</th><th>Serves</th><th class="w9">Used today</th><th class="w9">Budget of a day</th></tr></thead><tbody>${list.map(one => {
    const usd = one.spentToday?.usd, most = one.budget?.usd, used = one.spentToday?.tokens ?? 0;
    return html`<tr key=${one.name} data-account=${one.name}><td><b class="iso">${clean(one.name)}</b></td><td class="full-w"><bdi>${clean([...one.executors].join(", ") || "nothing that is here")}</bdi>${one.workers.size ? html` <span class="q">on ${count(one.workers.size, "worker")}</span>` : null}</td>
      <td data-l="Used today">${usd === undefined ? html`<span class="q">unknown</span>` : html`${money(usd)}${used ? html` <span class="q">${tokens(used)} tokens</span>` : null}`}</td>
      <td data-l="Budget">${most === undefined ? html`<span class="q">none</span>` : html`${money(Math.max(0, most - (usd ?? 0)))} left of ${money(most)}<${Meter} of=${Math.min(usd ?? 0, most)} max=${most} />`}</td></tr>`; })}</tbody></table></section>` : null;
}

const causes = /** @type {Record<string, string>} */ ({ AUTH: "The login is gone", UPSTREAM: "Its service is down", QUOTA: "Its limit is reached" });

export function Holds() {
  const { value, failed } = useResource("/api/holds", ["hold.", "task."]);
  const list = useSettled(value ?? [], h => h.credential);
  const here = useRows(list, h => h.credential, (key, hold) => { if (key === "l") act("lift", hold.credential); });
  const ends = (/** @type {any} */ h) => h.state === "probing" ? html`one task tries it` : h.state === "releasing" ? html`works again, a few tasks at a time`
    : h.until ? html`<time title=${exact(h.until)}>${ahead(h.until, now.value)}</time><div class="q">${until(h.until)}</div>` : html`<span class="you">until a person acts</span>`;
  return html`<div class="head"><h1>Holds</h1><span class="q">${list.length ? count(list.length, "account") : ""}</span></div>
    ${failed && !value ? html`<${Empty} head="The holds cannot be read.">${clean(failed)}<//>` : null}
    ${value && !list.length ? html`<${Empty} head="No account is on hold.">An account whose limit is reached, or whose login is gone, appears here. By hand: <code>stint hold add team-account --until 2h</code><//>` : null}
    ${list.length ? html`<table class="t two" aria-label="Holds"><thead><tr><th>Account</th><th class="w9">Until</th><th class="w6 num">Tasks wait</th><th>Why</th><th class="w5 num xl">Since</th><th class="w6"><span class="sr">Actions</span></th></tr></thead>
      <tbody>${list.map(h => html`<tr key=${h.credential} data-id=${h.credential} class=${h.credential === here ? "at" : ""}><td><b class="iso">${clean(h.credential)}</b></td><td data-l="Until">${ends(h)}</td><td data-l="Tasks wait" class="num">${h.tasks}</td>
        <td class="full-w">${h.code ? html`${causes[h.code] ?? "A failure"} <span class="q mono">${h.code}</span>` : "Held by a person"}</td><td data-l="Since" class="num xl"><${Age} at=${h.since} class="q" /></td>
        <td class="num nw full-w"><${Act} name="lift" words=${[h.credential]} bare /></td></tr>`)}</tbody></table>` : null}<${Accounts} />`;
}
