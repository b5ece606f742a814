// One stream of events for the page, by fetch: EventSource sends no headers. It is resumed behind the last event, ends while
// nobody looks, and says how old the news is.
import { headers } from "./api.js";

const RETRY_MS = [500, 1000, 2000, 4000, 8000];
const HIDDEN_MS = 60000;

/**
 * @param {{ after: () => string, event: (event: any) => void, state: (state: "live" | "away") => void,
 *           gone: () => void, unauthorized: () => void }} watch
 */
export function openStream(watch) {
  /** @type {AbortController | null} */
  let open = null;
  let tries = 0, timer = 0, hidden = 0, ended = false;

  const again = (/** @type {number} */ ms) => { clearTimeout(timer); if (!ended) timer = window.setTimeout(run, ms); };

  async function run() {
    if (ended || document.hidden) return;
    open?.abort();
    const mine = open = new AbortController();
    try {
      const reply = await fetch(`./api/events?after=${encodeURIComponent(watch.after())}`, {
        headers: headers({ Accept: "text/event-stream", "Last-Event-ID": watch.after() }),
        credentials: "same-origin", cache: "no-store", signal: mine.signal,
      });
      if (reply.status === 401) { ended = true; return watch.unauthorized(); }
      if (reply.status === 410) { watch.gone(); return again(200); }
      if (!reply.ok || !reply.body) throw new Error(String(reply.status));
      tries = 0;
      watch.state("live");
      await read(reply.body.getReader());
    } catch { /* away: said below */ }
    if (mine !== open) return; // another one took over
    watch.state("away");
    again(RETRY_MS[Math.min(tries++, RETRY_MS.length - 1)]);
  }

  /** @param {ReadableStreamDefaultReader<Uint8Array>} reader */
  async function read(reader) {
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      watch.state("live");
      text += decoder.decode(value, { stream: true });
      for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
        const data = text.slice(0, end).split("\n").filter(line => line.startsWith("data:")).map(line => line.slice(5).trimStart());
        if (data.length) watch.event(JSON.parse(data.join("\n")));
      }
    }
  }

  document.addEventListener("visibilitychange", () => {
    clearTimeout(hidden);
    if (document.hidden) hidden = window.setTimeout(() => { const was = open; open = null; was?.abort(); }, HIDDEN_MS);
    else if (!open || open.signal.aborted) run();
  });
  run();
  return { now: () => { tries = 0; run(); }, end: () => { ended = true; open?.abort(); clearTimeout(timer); } };
}
