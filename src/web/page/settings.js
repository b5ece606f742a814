// What this server is, who has a browser session, and the switch.
import { keepSession, ask } from "../live/api.js";
import { allows, me, signedOut, version } from "../live/state.js";
import { Act } from "../part/actions.js";
import { Age, Button, html, useResource } from "../part/parts.js";
import { flipTheme } from "../part/frame.js";
import { clean, span } from "../part/text.js";

function Tokens() {
  const { value, failed } = useResource("/api/tokens", ["token."]);
  return html`<section><h2 class="h2">Tokens</h2>${failed ? html`<p class="pt q">${clean(failed)}</p>` : null}${value && value.length === 0 ? html`<p class="pt q">None but the one in admin.token.</p>` : null}
    ${(value ?? []).map((/** @type {any} */ t) => html`<div class="li" key=${t.id}><code>${clean(t.id)}</code><span class="cut"><b class="iso">${clean(t.name)}</b> <span class="q">${clean(t.kind)}${t.revokedAt ? ", revoked" : ""}</span></span><${Age} at=${t.createdAt} class="q end" /></div>`)}</section>`;
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
    <section class="c6"><h2 class="h2">You</h2><dl class="facts"><dt>Name</dt><dd class="iso">${clean(me.value?.name)}</dd><dt>Role</dt><dd>${me.value?.role}</dd></dl><p class="r"><${Button} onClick=${flipTheme}>Light or dark<//><${Button} onClick=${out} cli="stint dashboard">Sign out<//></p>
      <h2 class="h2 mt">Browser sessions</h2>${logins.map((/** @type {any} */ one) => html`<div class="li" key=${one.id}><code>${clean(one.id).slice(0, 8)}</code><span class="cut"><b class="iso">${clean(one.name)}</b> <span class="q">${one.role}, ${one.state === "code" ? "code not used yet" : one.state}${one.current ? ", this one" : ""}</span></span>
        <span class="q">${one.state === "open" ? `ends in ${span(one.expiresAt - Date.now())}` : ""}</span>${one.state === "open" && !one.current ? html`<${Act} name="endLogin" words=${[one.id]} bare />` : null}</div>`)}
      ${allows("admin") ? html`<${Tokens} />` : html`<p class="pt q">Tokens are for admins: <code>stint dashboard --role admin</code></p>`}</section></div>`;
}
