// Did it fire, when next? And the accounts whose tasks are passed over.
import { useLayoutEffect, useState } from "preact/hooks";
import { go, href, now } from "../live/state.js";
import { Act, act } from "../part/actions.js";
import { Age, Empty, html, useResource } from "../part/parts.js";
import { clean, clock, count, exact, span } from "../part/text.js";

const DAY_MS = 86400000, RULER_MAX = 24;
const overlaps = /** @type {Record<string, string>} */ ({ skip: "skips while one is open", allow: "side by side", queue: "one after the other", cancel: "the new one replaces the open one" });

/** Rows that j and k walk through; the other keys get the row. @param {any[]} rows @param {(key: string, row: any) => void} onKey */
function useRows(rows, onKey) {
  const [at, setAt] = useState(-1);
  useLayoutEffect(() => {
    const listen = (/** @type {any} */ e) => {
      if (e.detail.key === "j") setAt(Math.min(at + 1, rows.length - 1));
      else if (e.detail.key === "k") setAt(Math.max(at - 1, 0));
      else if (rows[at]) onKey(e.detail.key, rows[at]);
    };
    addEventListener("stint-key", listen);
    return () => removeEventListener("stint-key", listen);
  });
  return at;
}

/** One mark per occurrence, the last 15. @param {{ history: any[] }} props */
function Ticks({ history }) {
  const last = history.slice(-15);
  const kinds = /** @type {Record<string, string>} */ ({ failed: "bad", open: "run", skipped: "no", cancelled: "no" });
  return html`<span class="ticks" role="img" aria-label=${last.length ? "last times: " + last.map(o => o.outcome).join(", ") : "it has not been due yet"}>${last.map((o, i) => html`<i key=${i} class=${kinds[o.outcome] ?? ""}></i>`)}</span>`;
}

/** What came of the last time. @param {{ s: any }} props */
function Last({ s }) {
  const last = s.history.at(-1), failed = s.history.findLast((/** @type {any} */ o) => o.outcome === "failed");
  const link = (/** @type {any} */ o) => o?.task ? html` <a class="link mono" href=${href("task", o.task)}>${clean(o.task)}</a>` : null;
  if (s.problem) return html`<span class="bad iso">${clean(s.problem)}</span>`;
  if (s.failing) return html`<span class="bad">failed or skipped ${s.failuresInARow} times in a row</span>${link(failed ?? last)}`;
  if (!last) return html`<span class="q">not due yet</span>`;
  const at = last.at ?? last.to;
  if (last.outcome === "open") return html`now open:${link(last)}`;
  if (last.outcome === "skipped") return html`<span class="q">${last.count ? count(last.count, "time") + " " : ""}skipped: ${clean((last.reason ?? "").replace(/_/g, " "))}${at ? html`, <${Age} at=${at} ago />` : null}</span>`;
  return html`<span class=${last.outcome === "failed" ? "bad" : ""}>${clean(last.outcome)}</span>${at ? html`<span class="q">, <${Age} at=${at} ago /></span>` : null}${link(last)}`;
}

/** The schedules that are next within a day, where they lie in it. @param {{ list: any[] }} props */
function Ruler({ list }) {
  const from = now.value, due = list.filter(s => !s.paused && s.next && s.next - from < DAY_MS).sort((a, b) => a.next - b.next).slice(0, RULER_MAX);
  const place = (/** @type {number} */ at) => `${Math.max(0, Math.min(100, (at - from) / DAY_MS * 100)).toFixed(2)}%`;
  const first = new Date(from); first.setMinutes(0, 0, 0);
  const hours = Array.from({ length: 8 }, (_, i) => first.getTime() + (i + 1) * 3 * 3600000).filter(at => at - from < DAY_MS * 0.98);
  let free = -1;
  if (!due.length) return null;
  return html`<section><h2 class="h2">Next 24 hours</h2><div class="day" role="img" aria-label=${"Next 24 hours: " + due.map(s => `${clean(s.id)} at ${clock(s.next)}`).join(", ")}>
    ${due.map(s => {
      const x = (s.next - from) / DAY_MS * 100, named = x >= free;
      if (named) free = x + 2 + s.id.length * 0.75;
      return html`<b class="f" key=${s.id} style=${{ "--x": place(s.next) }}></b>${named ? html`<span class=${"nm iso" + (x < 8 ? " lt" : x > 90 ? " rt" : "")} key=${s.id + "-name"} style=${{ "--x": place(s.next) }}>${clean(s.id)}</span>` : null}`;
    })}<span class="lt" style=${{ "--x": "0%" }}>now</span>${hours.map(at => html`<i key=${at} style=${{ "--x": place(at) }}></i><span key=${at + "-t"} style=${{ "--x": place(at) }}>${clock(at).slice(-5)}</span>`)}</div></section>`;
}

export function Schedules() {
  const { value } = useResource("/api/schedules", ["schedule.", "task.created", "task.completed", "task.failed", "task.cancelled"]);
  const rank = (/** @type {any} */ s) => s.failing || s.problem ? 0 : s.paused ? 2 : 1;
  const list = [.../** @type {any[]} */ (value ?? [])].sort((a, b) => rank(a) - rank(b) || (a.next ?? Infinity) - (b.next ?? Infinity) || (a.id < b.id ? -1 : 1));
  const failing = list.filter(s => rank(s) === 0).length, paused = list.filter(s => s.paused).length;
  const at = useRows(list, (key, s) => {
    if (key === "p") act(s.paused ? "resumeSchedule" : "pauseSchedule", s.id);
    if (key === "Enter") go(href("tasks", "", { schedule: s.id }));
  });
  return html`<div class="head"><h1>Schedules</h1><span class="q">${list.length ? [list.length, failing ? `${failing} failing` : "", paused ? `${paused} paused` : ""].filter(Boolean).join(", ") : ""}</span></div>
    ${value && !list.length ? html`<${Empty} head="Nothing is planned."><code>stint schedule add nightly --cron "30 2 * * *" -- make test</code><//>` : null}
    <${Ruler} list=${list} />
    ${list.length ? html`<table class="t two" aria-label="Schedules"><thead><tr><th class="w9">Schedule</th><th class="w9">When</th><th class="w8">Last 15</th><th>Last time</th><th class="num w9">Next</th><th class="w9"><span class="sr">Actions</span></th></tr></thead>
      <tbody>${list.map((s, i) => html`<tr key=${s.id} data-id=${s.id} class=${i === at ? "at" : ""}><td data-l="Schedule"><b class="iso">${clean(s.id)}</b><div class="q">${s.paused ? "paused" : overlaps[s.overlap] ?? ""}</div></td>
        <td data-l="When"><bdi>${clean(s.when)}</bdi><div class="q mono">${clean(s.cron ?? "")}${s.tz !== "UTC" || s.cron ? html` <span class="iso">${clean(s.tz)}</span>` : null}</div></td>
        <td data-l="Last 15"><${Ticks} history=${s.history} /></td><td class="full-w"><${Last} s=${s} /></td>
        <td data-l="Next" class="num">${s.next && !s.paused ? html`<time title=${exact(s.next)}>${clock(s.next)}</time><div class="q">${s.next > now.value ? "in " + span(s.next - now.value) : "due"}</div>` : html`<span class="q">–</span>`}</td>
        <td class="num nw"><${Act} name="runSchedule" words=${[s.id]} bare />${s.paused ? html`<${Act} name="resumeSchedule" words=${[s.id]} bare />` : html`<${Act} name="pauseSchedule" words=${[s.id]} bare />`}</td></tr>`)}</tbody></table>` : null}`;
}

const causes = /** @type {Record<string, string>} */ ({ AUTH: "The login is gone", UPSTREAM: "Its service is down", QUOTA: "Its limit is reached" });

export function Holds() {
  const { value } = useResource("/api/holds", ["hold.", "task."]);
  const list = /** @type {any[]} */ (value ?? []);
  const at = useRows(list, (key, hold) => { if (key === "l") act("lift", hold.credential); });
  const until = (/** @type {any} */ h) => h.state === "probing" ? html`one task tries it` : h.state === "releasing" ? html`works again, a few tasks at a time`
    : h.until ? html`<time title=${exact(h.until)}>${clock(h.until)}</time><div class="q">${h.until > now.value ? "in " + span(h.until - now.value) : "now"}</div>` : html`<span class="you">until a person acts</span>`;
  return html`<div class="head"><h1>Holds</h1><span class="q">${list.length ? count(list.length, "account") : ""}</span></div>
    ${value && !list.length ? html`<${Empty} head="No account is on hold.">An account whose limit is reached, or whose login is gone, appears here. By hand: <code>stint hold add team-account --until 2h</code><//>` : null}
    ${list.length ? html`<table class="t two" aria-label="Holds"><thead><tr><th>Account</th><th class="w9">Until</th><th class="w6 num">Tasks wait</th><th>Why</th><th class="w5 num xl">Since</th><th class="w6"><span class="sr">Actions</span></th></tr></thead>
      <tbody>${list.map((h, i) => html`<tr key=${h.credential} data-id=${h.credential} class=${i === at ? "at" : ""}><td data-l="Account"><b class="iso">${clean(h.credential)}</b></td><td data-l="Until">${until(h)}</td><td data-l="Tasks wait" class="num">${h.tasks}</td>
        <td class="full-w">${h.code ? html`${causes[h.code] ?? "A failure"} <span class="q mono">${h.code}</span>` : "Held by a person"}</td><td data-l="Since" class="num xl"><${Age} at=${h.since} class="q" /></td>
        <td class="num nw"><${Act} name="lift" words=${[h.credential]} bare /></td></tr>`)}</tbody></table>` : null}`;
}
