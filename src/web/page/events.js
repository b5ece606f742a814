// What happens, as it happens.
import { useState } from "preact/hooks";
import { events } from "../live/state.js";
import { Button, Empty, html } from "../part/parts.js";
import { sentence } from "../part/text.js";
import { EventRow } from "./overview.js";

export function Events() {
  const [text, setText] = useState("");
  const [held, hold] = useState(/** @type {any[] | null} */ (null));
  const all = held ?? events.value, wanted = text.trim().toLowerCase();
  const found = wanted ? all.filter(e => `${e.type} ${e.task ?? ""} ${e.worker ?? ""} ${e.actor ?? ""} ${sentence(e)}`.toLowerCase().includes(wanted)) : all;
  return html`<div class="head"><h1>Events</h1></div><div class="tools"><div class="filter"><input data-search value=${text} placeholder="Words: task.failed, t-4, a worker" aria-label="Filter events" onInput=${(/** @type {any} */ e) => setText(e.target.value)} /></div>
    <${Button} aria-pressed=${held ? "true" : "false"} onClick=${() => hold(held ? null : events.value)}>${held ? `Go on (${events.value.length && held.length ? Math.max(0, events.value[0].seq - held[0].seq) : 0} new)` : "Hold"}<//></div>
    ${found.length ? found.slice(0, 300).map(event => html`<${EventRow} key=${event.seq} event=${event} />`) : html`<${Empty} head=${wanted ? "Nothing like that among the last events." : "Nothing has happened yet."}>Older ones: <code>stint events --limit 0</code><//>`}`;
}
