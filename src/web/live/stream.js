// One stream of events for the browser, by fetch: EventSource sends no headers. The tab that has the lock reads it and tells the
// others, because a browser opens few connections to one host. It is resumed behind the last event, goes to another tab while this
// one is hidden, and says how old the news is. Where the browser has no locks (plain http from another computer) each tab reads its own.
import { headers, session } from "./api.js";

const RETRY_MS = [500, 1000, 2000, 4000, 8000];
const HIDDEN_MS = 60000;
const SILENT_MS = 20000; // the server says something every 15 s

/**
 * @param {{ after: () => string, event: (event: any) => void, state: (state: "live" | "away") => void,
 *           again: (at: number) => void, gone: () => void, unauthorized: () => void }} watch
 */
export function openStream(watch) {
  const mine = session()?.id; // tabs of another session are none of ours
  const channel = "BroadcastChannel" in window ? new BroadcastChannel("stint.stream") : null;
  /** @type {AbortController | null} */
  let open = null;
  /** @type {AbortController | null} */
  let asking = null;                                 // for the lock
  let release = /** @type {(() => void) | null} */ (null); // of the lock that this tab has
  let tries = 0, timer = 0, hidden = 0, silent = 0, ended = false;

  const tell = (/** @type {any} */ news) => channel?.postMessage({ of: mine, ...news });
  const again = (/** @type {number} */ ms) => { clearTimeout(timer); if (!ended && open) { timer = window.setTimeout(run, ms); watch.again(Date.now() + ms); } };
  const heard = () => {
    clearTimeout(silent);
    silent = window.setTimeout(() => { watch.state("away"); if (open) run(); }, SILENT_MS);
  };
  const live = () => { heard(); watch.state("live"); };

  async function run() {
    if (ended) return;
    open?.abort();
    const own = open = new AbortController();
    try {
      const reply = await fetch(`./api/events?after=${encodeURIComponent(watch.after())}`, {
        headers: headers({ Accept: "text/event-stream", "Last-Event-ID": watch.after() }),
        credentials: "same-origin", cache: "no-store", signal: own.signal,
      });
      if (reply.status === 401) { tell({ what: "unauthorized" }); end(); return watch.unauthorized(); }
      if (reply.status === 410) { tell({ what: "gone" }); watch.gone(); return again(200); }
      if (!reply.ok || !reply.body) throw new Error(String(reply.status));
      tries = 0;
      live();
      tell({ what: "live" });
      await read(reply.body.getReader());
    } catch { /* away: said below */ }
    if (own !== open) return; // another one took over
    watch.state("away");
    tell({ what: "away" });
    again(RETRY_MS[Math.min(tries++, RETRY_MS.length - 1)]);
  }

  /** @param {ReadableStreamDefaultReader<Uint8Array>} reader */
  async function read(reader) {
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const news = [];
      text += decoder.decode(value, { stream: true });
      for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
        const data = text.slice(0, end).split("\n").filter(line => line.startsWith("data:")).map(line => line.slice(5).trimStart());
        if (data.length) news.push(JSON.parse(data.join("\n")));
      }
      live();
      news.forEach(take);
      tell({ what: "live", news });
    }
  }

  /** Each event once, whoever read it. @param {any} event */
  const take = event => { if (Number(event.seq) > Number(watch.after())) watch.event(event); };

  if (channel) channel.onmessage = ({ data }) => {
    if (ended || data.of !== mine) return;
    if (data.what === "now" && release) { tries = 0; run(); }
    if (data.what === "hello" && release && open && !open.signal.aborted) tell({ what: "live" });
    if (release) return; // this tab reads by itself
    if (data.what === "live") { live(); (data.news ?? []).forEach(take); }
    if (data.what === "away") { clearTimeout(silent); watch.state("away"); }
    if (data.what === "gone") watch.gone();
    if (data.what === "unauthorized") { end(); watch.unauthorized(); }
  };

  /** The lock is this tab's: it reads until it gives the lock back. */
  function lead() {
    if (ended || release) return undefined;
    asking = null;
    return new Promise(resolve => { release = () => { release = null; resolve(null); }; run(); });
  }

  function begin() {
    if (ended || release || asking) return;
    if (!navigator.locks || !channel) { lead(); return; }
    asking = new AbortController();
    tell({ what: "hello" });
    navigator.locks.request(`stint.stream.${mine}`, { signal: asking.signal }, lead).catch(() => { asking = null; });
  }

  /** No stream, and no wish for one. */
  function rest() {
    asking?.abort();
    asking = null;
    const was = open;
    open = null;
    clearTimeout(timer);
    was?.abort();
    release?.();
  }

  function end() {
    ended = true;
    clearTimeout(silent);
    clearTimeout(hidden);
    rest();
    channel?.close();
    document.removeEventListener("visibilitychange", look);
  }

  function look() {
    clearTimeout(hidden);
    if (document.hidden) hidden = window.setTimeout(rest, HIDDEN_MS);
    else begin();
  }

  document.addEventListener("visibilitychange", look);
  if (!document.hidden) begin();
  else look();
  return { now: () => { tries = 0; if (release) run(); else tell({ what: "now" }); }, end };
}
