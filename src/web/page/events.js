// What happens, as it happens; and what happened before, as far back as events are kept.
import { useState } from "preact/hooks";
import { get } from "../live/api.js";
import { events } from "../live/state.js";
import { Button, Empty, html } from "../part/parts.js";
import { clock, sentence, thousands } from "../part/text.js";
import { EventRow } from "./overview.js";

const PIECE = 500, OLDER_MAX = 20000, ROWS = 300;

export function Events() {
  const [text, setText] = useState("");
  const [held, hold] = useState(/** @type {any[] | null} */ (null));
  const [older, setOlder] = useState(/** @type {any[]} */ ([]));
  const [end, setEnd] = useState("");             // why there is nothing before
  const [busy, setBusy] = useState(false);
  const [most, setMost] = useState(ROWS);
  const recent = held ?? events.value, oldest = older.at(-1) ?? recent.at(-1), wanted = text.trim().toLowerCase();
  const match = (/** @type {any} */ e) => `${e.seq} ${e.type} ${e.task ?? ""} ${e.worker ?? ""} ${e.actor ?? ""} ${sentence(e)}`.toLowerCase().includes(wanted);
  const all = [...recent, ...older.filter(e => !recent.length || Number(e.seq) < Number(recent.at(-1).seq))], found = wanted ? all.filter(match) : all;

  /** Back until so much more was found, or everything was looked through. */
  const back = async () => {
    setBusy(true);
    if (!held) hold(recent); // what is new would leave a gap between
    let before = Number(oldest?.seq ?? 0), more = /** @type {any[]} */ ([]), hits = 0;
    while (before > 1 && hits < (wanted ? 50 : PIECE) && older.length + more.length < OLDER_MAX) {
      const after = Math.max(0, before - 1 - PIECE), page = await get(`/api/events?after=${after}&limit=${PIECE}`).catch(fault => { setEnd(fault.code === "cursor_gone" ? "Events before these are not kept." : fault.message); return null; });
      if (!page) break;
      const piece = page.events.filter((/** @type {any} */ e) => Number(e.seq) < before).reverse();
      more = [...more, ...piece];
      hits += wanted ? piece.filter(match).length : piece.length;
      before = Math.min(after + 1, Number(piece.at(-1)?.seq ?? after + 1));
    }
    if (before <= 1) setEnd("This is how it began.");
    setOlder([...older, ...more]);
    setMost(most + PIECE);
    setBusy(false);
  };
  const since = oldest ? clock(oldest.time, true) : "";
  return html`<div class="head"><h1>Events</h1><span class="q">${all.length ? `${thousands(found.length)}${wanted ? ` of ${thousands(all.length)}` : ""} since ${since}` : ""}</span></div><div class="tools"><div class="filter"><input data-search value=${text} placeholder="Words: task.failed, t-4, a worker, a number" aria-label="Filter events" onInput=${(/** @type {any} */ e) => setText(e.target.value)} /></div>
    <${Button} aria-pressed=${held ? "true" : "false"} onClick=${() => { hold(held ? null : events.value); setOlder([]); setEnd(""); setMost(ROWS); }}>${held ? `Go on (${events.value.length && held.length ? Math.max(0, events.value[0].seq - held[0].seq) : 0} new)` : "Hold"}<//></div>
    ${found.length ? found.slice(0, most).map(event => html`<${EventRow} key=${event.seq} event=${event} />`) : html`<${Empty} head=${wanted ? `Nothing like that since ${since}.` : "Nothing has happened yet."}>In a terminal: <code>stint events --limit 0</code><//>`}
    <p class="pt r">${oldest && !end ? html`<${Button} data-older cli="stint events --limit 0" disabled=${busy} reason="it looks" onClick=${back}>${wanted ? "Look further back" : "Show older ones"}<//>` : html`<span class="q">${end}</span>`}</p>`;
}
