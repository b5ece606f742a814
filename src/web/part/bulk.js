// One change for many tasks. First it says how many there are, then it is confirmed by a button that repeats the number, then it shows how
// far it is and can be stopped. Tasks that were selected one by one are changed one by one; all that match a filter are the server's work.
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../live/api.js";
import { allows, refreshAll, toast } from "../live/state.js";
import { actions, bulks } from "./actions.js";
import { Button, html } from "./parts.js";
import { clean, count, lanes, quote, thousands } from "./text.js";

const LOOK_MS = 400;

/** What was skipped, by the code of the refusal. @param {Record<string, number>} skipped */
const skippedWords = skipped => Object.entries(skipped ?? {}).map(([code, n]) => `${thousands(n)} skipped: ${code.replace(/_/g, " ")}`).join(", ");

/** @param {number} matched @param {Record<string, number>} states */
function countWords(matched, states) {
  const running = lanes.running.reduce((n, state) => n + (states?.[state] ?? 0), 0);
  return { many: count(matched, "task"), running: running ? `, ${thousands(running)} of them running` : "" };
}

/** A bulk action of the server until its end. @param {{ id: string, done: string, close: () => void }} props */
function Progress({ id, done, close }) {
  const [one, setOne] = useState(/** @type {any} */ (null));
  useEffect(() => {
    let over = false;
    const look = async () => {
      const now = await get(`/api/bulk/${encodeURIComponent(id)}`).catch(() => null);
      if (over) return;
      if (now) setOne(now);
      if (!now || now.state === "running") setTimeout(look, LOOK_MS);
      else refreshAll();
    };
    look();
    return () => { over = true; };
  }, [id]);
  if (!one) return html`<span>${id} begins</span>`;
  const skipped = skippedWords(one.skipped), rest = skipped ? html`<span class="q">${skipped}</span>` : null;
  if (one.state === "running") return html`<span data-bulk="running"><b>${thousands(one.done)}</b> of ${thousands(one.matched)} ${done}</span><progress max=${one.matched || 1} value=${one.done} aria-label=${`${one.done} of ${one.matched}`}></progress>${rest}
    <${Button} cli=${actions.stopBulk.cli(id)} data-act="stopBulk" onClick=${() => actions.stopBulk.run(id).catch(fault => toast(fault.message, { bad: true }))}>Stop<//>`;
  return html`<span data-bulk=${one.state}><b>${thousands(one.done)}</b> of ${thousands(one.matched)} ${done}${one.state === "stopped" ? ", then it was stopped" : ""}</span>${rest}<${Button} bare onClick=${close}>Close<//>`;
}

/** Tasks one after the other. @param {{ ids: string[], name: string, value: string, done: string, close: () => void }} props */
function Each({ ids, name, value, done, close }) {
  const [state, setState] = useState({ done: 0, at: 0, refused: /** @type {Record<string, number>} */ ({}), over: false });
  const stopped = useRef(false);
  useEffect(() => {
    (async () => {
      let changed = 0, at = 0;
      const refused = /** @type {Record<string, number>} */ ({});
      for (const id of ids) {
        if (stopped.current) break;
        try {
          await actions[name].run(id, value);
          changed++;
        } catch (fault) {
          const code = /** @type {any} */ (fault).code || "refused";
          refused[code] = (refused[code] ?? 0) + 1;
        }
        setState({ done: changed, at: ++at, refused: { ...refused }, over: false });
      }
      setState({ done: changed, at, refused, over: true });
      refreshAll();
    })();
    return () => { stopped.current = true; };
  }, []);
  const rest = Object.keys(state.refused).length ? html`<span class="q">${skippedWords(state.refused)}</span>` : null;
  if (!state.over) return html`<span data-bulk="running"><b>${state.at}</b> of ${ids.length}</span><progress max=${ids.length} value=${state.at} aria-label=${`${state.at} of ${ids.length}`}></progress>${rest}<${Button} onClick=${() => { stopped.current = true; }}>Stop<//>`;
  return html`<span data-bulk="done"><b>${state.done}</b> of ${ids.length} ${done}</span>${rest}<${Button} bare onClick=${close}>Close<//>`;
}

/** One change of all that match: it is counted, then asked, then done. @param {{ name: string, filter: Record<string, string>, close: () => void, value?: string }} props */
export function BulkOf({ name, filter, close, value = "" }) {
  const [seen, setSeen] = useState(/** @type {any} */ (null));
  const [begun, setBegun] = useState("");
  const [wrong, setWrong] = useState("");
  const sure = useRef(/** @type {HTMLElement | null} */ (null));
  const action = actions[name], words = bulks[name], text = JSON.stringify(filter), may = allows(action.role);
  useEffect(() => { actions[name].run(text, value, "dry").then(setSeen, fault => setWrong(fault.message)); }, []);
  useEffect(() => { if (seen?.matched) /** @type {any} */ (sure.current?.querySelector("button"))?.focus(); }, [seen]);
  const begin = async () => { try { setBegun((await action.run(text, value)).id); } catch (fault) { setWrong(/** @type {Error} */ (fault).message); } };
  if (wrong) return html`<span class="bad" role="alert">${clean(wrong)}</span><${Button} bare onClick=${close}>Close<//>`;
  if (begun) return html`<${Progress} id=${begun} done=${words.done} close=${close} />`;
  if (!seen) return html`<span>Counting</span>`;
  if (!seen.matched) return html`<span data-bulk="none">No task that matches can be ${words.done}.</span><${Button} bare onClick=${close}>Close<//>`;
  const said = countWords(seen.matched, seen.states);
  return html`<span class="r" ref=${sure}><span data-bulk="asks"><b>${said.many}</b> will be ${words.done}${said.running}</span>
    <${Button} primary cli=${action.cli(text, value)} data-act=${name} disabled=${!may} reason=${`this needs the role ${action.role}`} onClick=${begin}>${action.label} ${thousands(seen.matched)}<//></span>
    <${Button} bare onClick=${close}>Back<//>`;
}

/** @param {{ chosen: any[], all: boolean, filter: Record<string, string>, whole: number | null, chooseAll: () => void, clear: () => void, states: string[] }} props */
export function BulkBar({ chosen, all, filter, whole, chooseAll, clear, states }) {
  const [wanted, setWanted] = useState("");                          // the action that was pressed
  const [value, setValue] = useState(/** @type {string | null} */ (null)); // of move and priority, once it was entered
  const [typed, setTyped] = useState("");
  const back = () => { setWanted(""); setValue(null); setTyped(""); };
  const end = () => { back(); clear(); };
  const bar = (/** @type {any} */ inner) => html`<div class="bulk on" role="toolbar" aria-label="Selected tasks">${inner}</div>`;
  const words = bulks[wanted];
  if (wanted && words.value && value === null) return bar(html`<form class="r" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); if (typed.trim()) setValue(typed.trim()); }}><label class="r">${words.value}
    <input class="find-in" autofocus name="value" value=${typed} placeholder=${words.hint} onInput=${(/** @type {any} */ e) => setTyped(e.target.value)} onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (e.key === "Escape") back(); }} /></label>
    <button type="submit" class="btn">Go on</button></form><${Button} bare onClick=${back}>Back<//>`);
  if (wanted && all) {
    const wide = words.states.filter(state => states.includes(state));
    return bar(html`<${BulkOf} key=${wanted} name=${wanted} value=${value ?? ""} filter=${{ ...filter, state: wide.join(",") }} close=${end} />`);
  }
  if (wanted) return bar(html`<${Each} key=${wanted} ids=${chosen.filter(task => words.states.includes(task.state)).map(task => task.id)} name=${words.one} value=${value ?? ""} done=${words.done} close=${end} />`);
  const running = chosen.filter(task => lanes.running.includes(task.state)).length;
  const some = (/** @type {string} */ name) => all ? states.some(state => bulks[name].states.includes(state)) : bulks[name].one !== "" && chosen.some(task => bulks[name].states.includes(task.state));
  const ids = chosen.map(task => task.id);
  return bar(html`<span><b>${all ? "All that match" : thousands(chosen.length)}</b>${all ? "" : " selected"}${running && !all ? html`<span class="q">, ${running} running</span>` : null}</span>
    ${all ? null : html`<${Button} bare data-all onClick=${chooseAll}>Select all ${whole === null ? "" : thousands(whole)} that match<//>`}
    ${Object.keys(bulks).filter(some).map(name => {
      const one = actions[bulks[name].one], cli = all ? actions[name].cli(JSON.stringify(filter), "") : one.cli("ID", "").replace("ID", ids.slice(0, 3).map(quote).join(" ") + (ids.length > 3 ? " …" : ""));
      const may = allows(actions[name].role);
      return html`<${Button} key=${name} cli=${cli} data-bulk-act=${name} data-act=${all ? undefined : bulks[name].one} disabled=${!may} reason=${`this needs the role ${actions[name].role}`}
        onClick=${() => setWanted(name)}>${actions[name].label}${all ? "" : " " + chosen.filter(task => bulks[name].states.includes(task.state)).length}<//>`;
    })}
    <${Button} bare onClick=${end}>Clear <kbd>Esc</kbd><//>`);
}
