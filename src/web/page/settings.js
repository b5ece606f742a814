// What this server is and how it is set, who has a session or a token, and the switch.
import { useState } from "preact/hooks";
import { keepSession, ask } from "../live/api.js";
import { allows, flipKeys, href, me, now, signedOut, singleKeys, version } from "../live/state.js";
import { Act, actions } from "../part/actions.js";
import { Age, Button, Glyph, html, useResource } from "../part/parts.js";
import { flipTheme } from "../part/frame.js";
import { clean, count, span, thousands } from "../part/text.js";

/** Credentials, the newest first, and a way to take one back. */
function Tokens() {
  const { value, failed } = useResource("/api/tokens", ["token."]);
  const [sure, setSure] = useState("");
  const live = (/** @type {any} */ t) => !t.revokedAt && !(t.expiresAt && t.expiresAt < now.value);
  const list = [.../** @type {any[]} */ (value ?? [])].sort((x, y) => Number(live(y)) - Number(live(x)) || y.createdAt - x.createdAt);
  return html`<section data-tokens><h2 class="h2 mt">Tokens <span class="end">${value ? count(list.filter(live).length, "live token") : ""}</span></h2>${failed ? html`<p class="pt q">${clean(failed)}</p>` : null}${value && !list.length ? html`<p class="pt q">None but the one in admin.token. <code>stint token create --kind worker</code></p>` : null}
    ${list.slice(0, 100).map(t => html`<div class="li" key=${t.id}><span class="cut"><b class="iso">${clean(t.name)}</b> <span class="q">${clean(t.kind)}${t.queues?.length ? html`, queues <bdi>${clean(t.queues.join(", "))}</bdi>` : null}, made by <bdi>${clean(t.createdBy)}</bdi></span> <code class="q">${clean(t.id).slice(0, 8)}</code></span>
      <span class="q nw">${t.revokedAt ? html`revoked <${Age} at=${t.revokedAt} ago />` : t.expiresAt ? t.expiresAt < now.value ? "expired" : `ends in ${span(t.expiresAt - now.value)}` : "no end"}</span>
      ${live(t) ? sure === t.id ? html`<${Act} name="revokeToken" words=${[t.id]} label="Revoke it: what it made ends, too" after=${() => setSure("")} /><${Button} bare onClick=${() => setSure("")}>Keep<//>` : html`<${Button} bare cli=${actions.revokeToken.cli(t.id)} data-sure onClick=${() => setSure(t.id)}>Revoke…<//>` : null}</div>`)}</section>`;
}

/** Every key with its value and where that came from; what is not as it ships comes first. */
function Config() {
  const { value, failed } = useResource("/api/config", ["server."]);
  const [all, setAll] = useState(false);
  const keys = /** @type {any[]} */ (value?.keys ?? []), own = keys.filter(key => key.source !== "default"), shown = all ? keys : own;
  const from = (/** @type {any} */ key) => key.source === "default" ? "default" : `${key.origin ?? key.source}${key.line ? `:${key.line}` : ""}`;
  return html`<section class="c12" data-config><h2 class="h2">Configuration <span class="q">${value ? `${own.length} of ${count(keys.length, "key")} set` : ""}</span><span class="end"><${Button} bare cli="stint config show --origin" aria-pressed=${all ? "true" : "false"} onClick=${() => setAll(!all)}>${all ? "Only what is set" : "Show every key"}<//></span></h2>
    ${failed ? html`<p class="pt q">${clean(failed)}</p>` : null}${value && !shown.length ? html`<p class="pt q">Everything is as it ships. A key is set in <code>${clean(value.home)}/config.json</code>, by a variable or by <code>--set KEY=VALUE</code>.</p>` : null}
    <dl class="facts conf">${shown.map(key => html`<dt key=${key.key} class="mono">${clean(key.key)}</dt><dd><code class="iso">${key.value === "" ? html`<span class="q">empty</span>` : clean(key.value)}</code> <span class="q iso">${clean(from(key))}</span></dd>`)}
      ${(value?.ignored ?? []).map((/** @type {any} */ key) => html`<dt key=${key.key} class="mono">${clean(key.key)}</dt><dd><span class="q iso">read by ${clean(key.program)}, ${clean(from(key))}</span></dd>`)}</dl></section>`;
}

const FIRST = 5, SILENT_MS = 150000; // a sender is heard once a minute
const outcomes = /** @type {Record<string, [string, string]>} */ ({ delivered: ["done", "Delivered"], retrying: ["scheduled", "Tries again"], "given-up": ["failed", "Given up"] });

/** The last deliveries to one target. @param {{ one: any }} props */
function Target({ one }) {
  const [all, setAll] = useState(false);
  const silent = now.value - one.toldAt > SILENT_MS, shown = all ? one.last : one.last.slice(0, FIRST);
  const sum = [`${thousands(one.delivered)} delivered`, one.givenUp ? html`<span class="bad">${thousands(one.givenUp)} given up</span>` : "", one.missed ? html`<span class="bad">${thousands(one.missed)} missed</span>` : "", one.waiting ? `${count(one.waiting, "message")} waiting` : ""].filter(Boolean);
  return html`<div data-target=${one.target}><p class="r pt"><b class="iso">${clean(one.target)}</b> <code class="q cut iso">${clean(one.url ?? "")}</code><span class="end">${sum.map((part, i) => html`${i ? ", " : ""}${part}`)}</span></p>
    ${silent ? html`<p class="you">Its sender was last heard <${Age} at=${one.toldAt} ago />: is <code>stint notify</code> running?</p>` : null}
    ${one.last.length ? html`<table class="t" aria-label=${`Deliveries to ${clean(one.target)}`}><thead><tr><th class="w9">Outcome</th><th>Event</th><th class="w6 hs">Answer</th><th class="w5 num">Tries</th><th class="w6 num">When</th></tr></thead><tbody>${shown.map((/** @type {any} */ d) => {
      const [state, word] = outcomes[d.outcome] ?? ["ready", d.outcome], left = d.againAt - now.value;
      return html`<tr key=${d.id}><td><span class=${"st s-" + state}><${Glyph} state=${state} /><span>${word}${d.outcome === "retrying" && left > 0 ? ` in ${span(left)}` : ""}</span></span></td><td title=${clean(d.error ?? d.id)}><span class="mono">${clean(d.type)}</span> ${d.task ? html`<a class="link mono" href=${href("task", d.task)}>${clean(d.task)}</a>` : null} ${d.error ? html`<bdi class="q">${clean(d.error)}</bdi>` : null}</td>
        <td class="hs">${d.status ? d.status : html`<span class="q">none</span>`}</td><td class="num">${d.tries}</td><td class="num"><${Age} at=${d.at} ago class="q" /></td></tr>`; })}</tbody></table>
      ${one.last.length > FIRST ? html`<p><${Button} bare aria-pressed=${all ? "true" : "false"} data-all-deliveries onClick=${() => setAll(!all)}>${all ? `Only the last ${FIRST}` : `All of the last ${one.last.length}`}<//></p>` : null}` : html`<p class="q">Nothing was sent yet.</p>`}</div>`;
}

/** Webhooks, as their senders tell of them. */
function Webhooks() {
  const { value, failed } = useResource("/api/deliveries", ["beat"]);
  const list = [.../** @type {any[]} */ (value ?? [])].sort((a, b) => a.target < b.target ? -1 : 1);
  return html`<section class="c12" data-webhooks><h2 class="h2">Webhooks <span class="end">${list.length ? count(list.length, "target") : ""}</span></h2>${failed && !value ? html`<p class="pt q">${clean(failed)}</p>` : null}
    ${value && !list.length ? html`<p class="pt q">Nobody sends webhooks from here. Name a target under <code>notify</code> in config.json, then start <code>stint notify</code>.</p>` : null}
    ${list.map(one => html`<${Target} key=${one.target + one.by} one=${one} />`)}</section>`;
}

export function Settings() {
  const logins = useResource("/api/logins", ["token."]).value ?? [];
  const execution = useResource("/api/execution", ["execution."]).value;
  const about = version.value;
  const out = async () => { try { await ask("DELETE", `/api/logins/${me.value?.id}`, {}); } catch { /* it is over anyway */ } keepSession(null); signedOut("You have signed out."); };
  return html`<div class="head"><h1>Settings</h1></div><div class="grid">
    <section class="c6"><h2 class="h2">This server</h2>${about ? html`<dl class="facts"><dt>Version</dt><dd>stint ${clean(about.version)}</dd><dt>Store</dt><dd>${clean(about.store)}, schema ${about.schema}, generation ${about.generation}</dd><dt>Started</dt><dd><${Age} at=${about.startedAt} ago />, start ${about.starts}</dd></dl>` : null}
      <h2 class="h2">Execution</h2>${execution ? html`<p class="pt"><b class=${execution.armed ? "" : "you"}>${execution.armed ? "Armed." : "Disarmed."}</b> ${execution.armed ? "Work is handed out." : "Nothing is handed out; heartbeats and reports go on."}${execution.since ? html` Since <${Age} at=${execution.since} ago />.` : null}</p><p class="pt">${execution.armed ? html`<${Act} name="disarm" words=${[]} />` : html`<${Act} name="arm" words=${[]} primary />`}</p>` : null}
      <h2 class="h2 mt">Backup</h2><p class="pt q2">A copy of the store while it runs, on the server's computer.</p><p class="pt"><${Act} name="backup" words=${[]} /></p></section>
    <section class="c6"><h2 class="h2">You</h2><dl class="facts"><dt>Name</dt><dd class="iso">${clean(me.value?.name)}</dd><dt>Role</dt><dd>${me.value?.role}</dd></dl><p class="r"><${Button} onClick=${flipTheme}>Light or dark<//><${Button} class="hs" aria-pressed=${singleKeys.value ? "true" : "false"} data-keys-of onClick=${flipKeys}>Single letters: ${singleKeys.value ? "on" : "off"}<//><${Button} onClick=${out} cli="stint dashboard">Sign out<//></p>
      <h2 class="h2 mt">Browser sessions</h2>${logins.map((/** @type {any} */ one) => html`<div class="li" key=${one.id}><code>${clean(one.id).slice(0, 8)}</code><span class="cut"><b class="iso">${clean(one.name)}</b> <span class="q">${one.role}, ${one.state === "code" ? "code not used yet" : one.state}${one.current ? ", this one" : ""}</span></span>
        <span class="q">${one.state === "open" ? `ends in ${span(one.expiresAt - now.value)}` : ""}</span>${one.state === "open" && !one.current ? html`<${Act} name="endLogin" words=${[one.id]} bare />` : null}</div>`)}
      ${allows("admin") ? html`<${Tokens} />` : html`<h2 class="h2 mt">Tokens</h2><p class="pt q">Tokens and backups are for admins: <code>stint dashboard --role admin</code></p>`}</section>
    <${Webhooks} />${allows("operator") ? html`<${Config} />` : null}</div>`;
}
