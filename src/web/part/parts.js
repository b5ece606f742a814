// Small things that every page is made of.
import htm from "htm";
import { h } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { command, href, leaseLeft, now, refresh, resource, retain, stale } from "../live/state.js";
import { age, clean, countdown, exact, stateWords } from "./text.js";

export const html = htm.bind(h);

/** The answer of a path, kept fresh. @param {string} path @param {string[]} kinds */
export function useResource(path, kinds) {
  const one = useMemo(() => resource(path, kinds), [path]);
  useEffect(() => retain(one), [one]);
  return { value: one.value.value, at: one.at, failed: one.failed.value, again: () => refresh(one) };
}

/** @param {{ name: string, size?: number, class?: string }} props */
export const Icon = ({ name, size = 16, class: more = "" }) =>
  html`<svg width=${size} height=${size} class=${more} aria-hidden="true"><use href=${"#i-" + name} /></svg>`;

/** @param {{ state: string, big?: boolean }} props */
export const Glyph = ({ state, big }) =>
  html`<svg class=${`g${big ? " big" : ""} s-${state}`} aria-hidden="true"><use href=${"#s-" + state} /></svg>`;

/** @param {{ state: string, stopping?: boolean }} props */
export const State = ({ state, stopping }) =>
  html`<span class=${"st s-" + state}><${Glyph} state=${state} /><span>${stopping ? "Stopping" : stateWords[state] ?? state}</span></span>`;

/** Ages rise by themselves. @param {{ at: number, ago?: boolean, class?: string }} props */
export const Age = ({ at, ago, class: more = "" }) =>
  html`<time class=${more} title=${exact(at)} datetime=${new Date(at).toISOString()}>${age(now.value - at)}${ago ? " ago" : ""}</time>`;

/** One mark per attempt. @param {{ task: any }} props */
export function Pips({ task }) {
  const made = task.attempt ?? 0, max = Math.max(task.maxAttempts ?? 3, made, 1);
  const last = { running: "run", claimed: "run", asking: "you", review: "you", done: "ok", failed: "bad", blocked: "you" }[/** @type {string} */ (task.state)] ?? "";
  const words = [], marks = [];
  for (let i = 1; i <= Math.min(max, 8); i++) {
    const kind = i > made ? "no" : i === made && last ? last : i < made ? "bad" : "";
    marks.push(html`<i class=${kind} key=${i}></i>`);
    if (i <= made) words.push(/** @type {Record<string, string>} */ ({ run: "running", you: "needs you", ok: "done", bad: "ended badly", "": "given back" })[kind]);
  }
  return html`<span class="pips" role="img" aria-label=${made ? "attempts: " + words.join(", ") : "no attempt yet"}>${marks}</span>`;
}

/** A lease that empties. @param {{ ms: number | null | undefined, of: number, at: number, full?: boolean, text?: boolean }} props */
export function Lease({ ms, of, at, full, text }) {
  now.value;
  if (ms === null || ms === undefined) return null;
  const left = stale.value ? ms : Math.max(0, leaseLeft(ms, at)), share = of > 0 ? Math.min(1, left / of) : 0;
  const level = share < 0.1 ? "out" : share < 0.25 ? "low" : "";
  return html`<span>${text ? html`<span class=${level ? level + "tx" : "q"}>${countdown(left)}</span>` : null}
    <span class=${`lease ${full ? "full" : ""} ${level}`} role="img" aria-label=${`lease: ${countdown(left)} left`}
      style=${{ "--w": `${Math.round(share * 100)}%` }}><i></i></span></span>`;
}

/** @param {{ of: number, max: number }} props */
export const Meter = ({ of, max }) =>
  html`<span class="meter" style=${{ "--w": `${max > 0 ? Math.round(100 * of / max) : 0}%` }}><i></i></span>`;

/** @param {{ head: string, children?: any }} props */
export const Empty = ({ head, children }) => html`<div class="empty"><b>${head}</b><span class="q2">${children}</span></div>`;

/** A control that says in the bottom line what it would type. @param {any} props */
export function Button({ cli, primary, bare, disabled, reason, children, class: more = "", ...rest }) {
  const shown = useRef(false);
  const show = () => { shown.current = true; command.value = disabled && reason ? reason : cli ?? ""; };
  const hide = () => { shown.current = false; command.value = ""; };
  useEffect(() => { if (shown.current) show(); }, [cli, disabled]); // another act under the same pointer
  useEffect(() => () => { if (shown.current) hide(); }, []);
  return html`<button type="button" class=${`btn ${primary ? "pri" : ""} ${bare ? "bare" : ""} ${more}`} aria-disabled=${disabled ? "true" : null}
    onMouseEnter=${show} onFocus=${show} onMouseLeave=${hide} onBlur=${hide} ...${rest}
    onClick=${(/** @type {Event} */ e) => { e.preventDefault(); if (!disabled) rest.onClick?.(e); }}>${children}</button>`;
}

/** Copies a line. @param {{ text: string }} props */
export const Copy = ({ text }) => html`<div class="copy"><code>${clean(text)}</code><button type="button" class="btn bare ic" aria-label=${"Copy " + clean(text)}
  onClick=${() => navigator.clipboard?.writeText(text)}><${Icon} name="copy" size=${13} /></button></div>`;

/** A task's title, isolated. @param {{ task: any }} props */
export const Title = ({ task }) => html`<bdi>${clean(task.title || task.id)}</bdi>`;

/** @param {{ id: string, children?: any }} props */
export const TaskLink = ({ id, children }) => html`<a href=${href("task", id)}>${children ?? clean(id)}</a>`;

/** What a task is doing now, in words. @param {any} task */
export function nowWords(task) {
  if (task.stopping) return "stopping: a cancel waits for its worker";
  if (task.state === "asking" && task.question) return "Asks: " + clean(task.question.text ?? "");
  if (["running", "claimed"].includes(task.state) && task.note) return `${task.percent != null ? task.percent + " % · " : ""}${clean(task.note)}`;
  if (task.why?.text) return clean(task.why.text);
  if (task.state === "failed" || task.state === "blocked") return clean(task.error?.message ?? task.reason ?? "");
  return clean(task.note ?? task.reason ?? "");
}
