// The log of an attempt: text nodes in a window of lines, colours of the terminal mapped to ours, other escapes removed. It is read from
// near its end, forwards as it grows and backwards on demand. What an agent's session wrote is shown in voices: its speech, its tools, stint's own lines.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "../live/api.js";
import { stream, whenEvent } from "../live/state.js";
import { Button, html } from "./parts.js";
import { clean, count, quote, thousands } from "./text.js";

const LINES_MAX = 2000, PIECE_BYTES = 65536, FIRST_BYTES = 262144, TEXT_MAX = 4194304, LOOK_MS = 1000;

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

/** @param {number} n */
const bytes = n => n < 10000 ? `${thousands(n)} bytes` : n < 1e7 ? `${thousands(Math.round(n / 1000))} KB` : `${thousands(Math.round(n / 1e6))} MB`;

/** A line of an agent's session: "00:58  ▸ Edit src/a.c". @param {string} line @returns {{ time: string, kind: string, mark: string, text: string } | null} */
function voice(line) {
  const found = /^(\d{2,}:\d\d)  (.*)$/s.exec(line);
  if (!found) return null;
  const [, time, text] = found, mark = { "▸": "tool", "✓": "good", "✗": "err" }[text[0]];
  if (mark) return { time, kind: mark, mark: text[0], text: text.slice(2) };
  return text.startsWith("stint: ") ? { time, kind: "sys", mark: "", text } : { time, kind: "say", mark: "•", text };
}

/** The parts of a line with what was searched for marked. @param {{ text: string, kind: string }[]} parts @param {string} search */
const marked = (parts, search) => parts.map(part => {
  const pieces = [];
  let at = 0;
  for (let found; search && (found = part.text.toLowerCase().indexOf(search, at)) >= 0; at = found + search.length) pieces.push(part.text.slice(at, found), html`<mark>${part.text.slice(found, found + search.length)}</mark>`);
  pieces.push(part.text.slice(at));
  return part.kind ? html`<span class=${part.kind}>${pieces}</span>` : pieces;
});

/** @param {{ id: string, attempts: number, live: boolean }} props */
export function Log({ id, attempts, live }) {
  const [attempt, choose] = useState(attempts);
  const [text, setText] = useState("");
  const [size, setSize] = useState({ from: 0, length: 0, dropped: 0 });
  const [follow, setFollow] = useState(true);
  const [wrap, setWrap] = useState(true);
  const [raw, setRaw] = useState(false);
  const [search, setSearch] = useState("");
  const [at, setAt] = useState(0);             // which of the places found
  const [read, setRead] = useState(0);         // lines that were there when somebody began to read
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  const state = useRef({ from: -1, next: 0, text: "", busy: false });

  const path = (/** @type {number} */ after, /** @type {number} */ limit) => `/api/tasks/${encodeURIComponent(id)}/log?attempt=${attempt}&after=${after}&limit=${limit}`;
  const show = (/** @type {any} */ mine, /** @type {any} */ piece) => { setText(mine.text); setSize({ from: mine.from, length: piece.length, dropped: piece.dropped ?? 0 }); };

  useEffect(() => { choose(attempts); }, [attempts]);
  useEffect(() => { state.current = { from: -1, next: 0, text: "", busy: false }; setText(""); setSize({ from: 0, length: 0, dropped: 0 }); setFollow(true); look(); }, [id, attempt]);
  useEffect(() => {
    if (!live || attempt !== attempts) return undefined;
    const timer = setInterval(() => { if (!document.hidden && stream.value.state === "live") look(); }, LOOK_MS);
    const ends = whenEvent(event => { if (event.task === id) look(); });
    return () => { clearInterval(timer); ends(); };
  }, [id, attempt, live, attempts]);
  useEffect(() => { if (follow && !search && list.current) list.current.scrollTop = list.current.scrollHeight; }, [text, follow, raw]);

  async function look() {
    const mine = state.current;
    if (mine.busy || attempt < 1) return;
    mine.busy = true;
    try {
      if (mine.from < 0) { // not more than its end, to begin with
        const { length } = await get(path(0, 16));
        mine.from = mine.next = Math.max(0, length - FIRST_BYTES);
      }
      for (let more = true; more && mine === state.current;) {
        const piece = await get(path(mine.next, PIECE_BYTES));
        more = piece.next > mine.next && piece.next < piece.length;
        mine.next = piece.next;
        mine.text = (mine.text + piece.data).slice(-TEXT_MAX);
        if (mine === state.current && (piece.data || !mine.text)) show(mine, piece);
      }
    } catch { /* no log yet */ }
    mine.busy = false;
  }

  /** The piece before what is shown. */
  async function earlier() {
    const mine = state.current, el = list.current;
    if (mine.busy || mine.from <= 0) return;
    mine.busy = true;
    try {
      const from = Math.max(0, mine.from - FIRST_BYTES);
      let before = "", piece = { next: from, length: 0, data: "" };
      while (piece.next < mine.from) {
        const after = piece.next;
        piece = await get(path(after, Math.min(PIECE_BYTES, mine.from - after)));
        if (piece.next <= after) break;
        before += piece.data;
      }
      const below = el ? el.scrollHeight - el.scrollTop : 0;
      mine.from = from;
      mine.text = before + mine.text;
      show(mine, piece);
      requestAnimationFrame(() => { if (el) el.scrollTop = el.scrollHeight - below; });
    } catch { /* it is asked for again */ }
    mine.busy = false;
  }

  const all = useMemo(() => text === "" ? [] : text.replace(/\n$/, "").split("\n"), [text]);
  const spoken = useMemo(() => all.slice(0, 20).some(line => voice(line)), [all]), speaks = spoken && !raw;
  const wanted = search.toLowerCase(), lines = all.slice(-LINES_MAX), first = all.length - lines.length;
  const hits = useMemo(() => wanted ? lines.flatMap((line, i) => line.toLowerCase().includes(wanted) ? [i] : []) : [], [lines, wanted]);
  const here = hits.length ? Math.min(at, hits.length - 1) : -1;
  useEffect(() => { if (here >= 0) list.current?.querySelector(`[data-line="${hits[here]}"]`)?.scrollIntoView({ block: "nearest" }); }, [here, wanted]);
  const onScroll = () => {
    const el = list.current;
    if (!el) return;
    const isEnd = el.scrollHeight - el.scrollTop - el.clientHeight < 8;
    if (isEnd !== follow) { setFollow(isEnd); setRead(all.length); }
    if (el.scrollTop === 0 && !isEnd) earlier();
  };
  const onFind = (/** @type {KeyboardEvent} */ e) => {
    if (e.key === "Enter") { e.preventDefault(); if (hits.length) setAt((here + (e.shiftKey ? hits.length - 1 : 1)) % hits.length); }
    if (e.key === "Escape") setSearch("");
  };
  const fresh = follow ? 0 : Math.max(0, all.length - read);
  const cli = `stint logs ${quote(id)}${attempt !== attempts ? ` --attempt ${attempt}` : ""}${live && attempt === attempts ? " --follow" : ""}`;
  let last = "say";
  return html`<div class=${"log" + (wrap ? "" : " nw")}>
    <div class="bar">
      <span class="seg" role="group" aria-label="Attempt">${Array.from({ length: attempts }, (_, i) => i + 1).slice(-6).map(n =>
        html`<button type="button" key=${n} aria-pressed=${n === attempt ? "true" : "false"} aria-label=${"Attempt " + n} onClick=${() => choose(n)}>${n}</button>`)}</span>
      <span class="end r">${wanted ? html`<span class="q nw" data-hits>${hits.length ? `${here + 1} of ${hits.length}` : "not found"}</span>` : null}<input class="find-in" type="search" placeholder="Find" aria-label="Find in the log" data-find value=${search}
        onInput=${(/** @type {any} */ e) => { setSearch(e.target.value); setAt(0); }} onKeyDown=${onFind} />
      ${spoken ? html`<${Button} bare class="hs" onClick=${() => setRaw(!raw)} aria-pressed=${raw ? "true" : "false"}>Raw<//>` : null}
      <${Button} bare class="hs" onClick=${() => setWrap(!wrap)} aria-pressed=${wrap ? "true" : "false"}>Wrap<//>
      <${Button} data-follow onClick=${() => { setFollow(true); setSearch(""); }} aria-pressed=${follow ? "true" : "false"}>${follow ? live ? "Following" : "At its end" : fresh ? `${thousands(fresh)} new line${fresh === 1 ? "" : "s"} ↓` : "Follow ↓"}<//></span>
    </div>
    <ol ref=${list} onScroll=${onScroll} tabindex="0" aria-label=${`Log of attempt ${attempt}`}>
      ${size.from > 0 ? html`<li class="plain"><span><${Button} bare data-earlier onClick=${earlier}>Show what came before<//></span></li>` : null}
      ${lines.length === 0 ? html`<li class="plain"><span class="q">${live && attempt === attempts ? "Nothing said yet." : "This attempt has written nothing."}</span></li>` : null}
      ${lines.map((line, i) => {
        const said = speaks ? voice(line) : null, kind = said ? last = said.kind : last;
        if (!speaks) return html`<li class="plain" key=${first + i} data-line=${i}><span>${marked(paint(line), wanted)}</span></li>`;
        return html`<li class=${kind} key=${first + i} data-line=${i}><time>${said?.time ?? ""}</time><i>${said?.mark ?? ""}</i><span>${marked(paint(said ? said.text : line.replace(/^ {7}/, "")), wanted)}</span></li>`;
      })}
    </ol>
    <div class="bar"><span>${count(all.length, "line")}${size.from > 0 || lines.length < all.length ? " shown of" : ","} ${bytes(size.length)}${size.dropped ? `, the first ${bytes(size.dropped)} no longer kept` : ""}</span>
      <code class="end q cut">${clean(cli)}</code></div>
  </div>`;
}
