// The log of an attempt: text nodes in a window of lines, colours of the terminal mapped to ours, other escapes removed.
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../live/api.js";
import { now, stream } from "../live/state.js";
import { Button, html } from "./parts.js";
import { clean, thousands } from "./text.js";

const LINES_MAX = 2000, PIECE_BYTES = 65536, LOOK_MS = 1500;

/** A line with its colours: [{text, class}]. @param {string} line */
export function paint(line) {
  const out = [];
  let kind = "", at = 0;
  const escape = /\u001b\[([0-9;]*)m|\u001b\[[0-?]*[ -\/]*[@-~]|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[@-Z\\-_]?/g;
  for (let found; (found = escape.exec(line)); at = escape.lastIndex) {
    if (found.index > at) out.push({ text: clean(line.slice(at, found.index)), kind });
    if (found[1] !== undefined) {
      for (const code of found[1].split(";").map(Number)) {
        if (code === 0) kind = "";
        else if (code === 1) kind = kind.replace(/ ?ab/, "") + " ab";
        else if (code >= 30 && code <= 37) kind = `a${code - 30}${kind.includes("ab") ? " ab" : ""}`;
        else if (code >= 90 && code <= 97) kind = `a${code - 90}${kind.includes("ab") ? " ab" : ""}`;
        else if (code === 39) kind = kind.includes("ab") ? "ab" : "";
      }
    }
  }
  if (at < line.length) out.push({ text: clean(line.slice(at)), kind });
  return out;
}

/** @param {{ id: string, attempts: number, live: boolean }} props */
export function Log({ id, attempts, live }) {
  const [attempt, choose] = useState(attempts);
  const [text, setText] = useState("");
  const [size, setSize] = useState({ next: 0, length: 0, dropped: 0 });
  const [follow, setFollow] = useState(true);
  const [wrap, setWrap] = useState(true);
  const [search, setSearch] = useState("");
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  const state = useRef({ next: 0, text: "", busy: false });

  useEffect(() => { choose(attempts); }, [attempts]);
  useEffect(() => { state.current = { next: 0, text: "", busy: false }; setText(""); setSize({ next: 0, length: 0, dropped: 0 }); look(); }, [id, attempt]);
  useEffect(() => {
    if (!live || attempt !== attempts) return undefined;
    const timer = setInterval(() => { if (!document.hidden && stream.value.state === "live") look(); }, LOOK_MS);
    return () => clearInterval(timer);
  }, [id, attempt, live, attempts]);
  useEffect(() => { if (follow && list.current) list.current.scrollTop = list.current.scrollHeight; }, [text, follow]);

  async function look() {
    const mine = state.current;
    if (mine.busy || attempt < 1) return;
    mine.busy = true;
    try {
      for (let more = true; more && mine === state.current;) {
        const piece = await get(`/api/tasks/${encodeURIComponent(id)}/log?attempt=${attempt}&after=${mine.next}&limit=${PIECE_BYTES}`);
        more = piece.next > mine.next && piece.next < piece.length;
        mine.next = piece.next;
        mine.text = (mine.text + piece.data).slice(-4 * 1024 * 1024);
        setSize({ next: piece.next, length: piece.length, dropped: piece.dropped ?? 0 });
      }
      setText(mine.text);
    } catch { /* no log yet */ }
    mine.busy = false;
  }

  const all = text === "" ? [] : text.replace(/\n$/, "").split("\n");
  const found = search ? all.filter(line => line.toLowerCase().includes(search.toLowerCase())) : all;
  const lines = found.slice(-LINES_MAX);
  const onScroll = () => { const el = list.current; if (el) setFollow(el.scrollHeight - el.scrollTop - el.clientHeight < 8); };
  now.value;
  return html`<div class=${"log" + (wrap ? "" : " nw")}>
    <div class="bar">
      <span class="seg" role="group" aria-label="Attempt">${Array.from({ length: attempts }, (_, i) => i + 1).slice(-6).map(n =>
        html`<button type="button" key=${n} aria-pressed=${n === attempt ? "true" : "false"} aria-label=${"Attempt " + n} onClick=${() => choose(n)}>${n}</button>`)}</span>
      <span class="end r"><input class="find-in" type="search" placeholder="Find" aria-label="Find in the log" data-find value=${search}
        onInput=${(/** @type {any} */ e) => setSearch(e.target.value)} />
      <${Button} bare onClick=${() => setWrap(!wrap)} aria-pressed=${wrap ? "true" : "false"}>Wrap<//>
      <${Button} onClick=${() => setFollow(true)} aria-pressed=${follow ? "true" : "false"}>${follow ? "Following" : "Follow ↓"}<//></span>
    </div>
    <ol ref=${list} onScroll=${onScroll} tabindex="0" aria-label="Log">
      ${lines.length === 0 ? html`<li class="plain"><span class="q">${search ? "No line has that." : attempts < 1 ? "No attempt has begun." : "Nothing said yet."}</span></li>` : null}
      ${lines.map((line, i) => html`<li class="plain" key=${found.length - lines.length + i}><span>${paint(line).map(part =>
        part.kind ? html`<span class=${part.kind}>${part.text}</span>` : part.text)}</span></li>`)}
    </ol>
    <div class="bar"><span>${thousands(all.length)} lines, ${thousands(size.length)} bytes${size.dropped ? `, the first ${thousands(size.dropped)} no longer kept` : ""}</span>
      <span class="end">stint logs ${clean(id)}</span></div>
  </div>`;
}
