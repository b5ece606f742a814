// Requests to the server. A cookie goes along by itself; the page's key makes it worth something.

/** A request that was refused: what the server said. */
export class Refused extends Error {
  /** @param {number} status @param {any} problem */
  constructor(status, problem) {
    const fields = (problem?.errors ?? []).map((/** @type {any} */ e) => `${e.field}: ${e.message}`).join("; ");
    super(fields || problem?.detail || problem?.title || `the server answered ${status}`);
    this.status = status;
    this.code = problem?.code ?? "";
  }
}

const place = "stint.page";

/** @returns {{key: string, id: string, role: string, name: string} | null} */
export function session() {
  try {
    return JSON.parse(localStorage.getItem(place) ?? "null");
  } catch {
    return null;
  }
}

/** @param {object | null} value */
export function keepSession(value) {
  try {
    if (value) localStorage.setItem(place, JSON.stringify(value));
    else localStorage.removeItem(place);
  } catch { /* private windows: the session lasts as long as the page */ }
}

/** @type {() => void} */
let onUnauthorized = () => {};
/** @param {() => void} act */
export const whenUnauthorized = act => { onUnauthorized = act; };

/** @param {Record<string, string>} [more] @returns {Record<string, string>} */
export function headers(more) {
  const mine = session();
  return { ...(mine ? { "Stint-Page-Key": mine.key } : {}), ...more };
}

/** @param {string} method @param {string} path @param {any} [body] @param {AbortSignal} [signal] @returns {Promise<any>} */
export const ask = async (method, path, body, signal) => (await exchange(method, path, body, signal)).value;

/** A list, and the path of the rest of it, if it was cut. @param {string} path @returns {Promise<{ value: any, next: string | null }>} */
export async function read(path) {
  const { value, link } = await exchange("GET", path);
  return { value, next: /<([^>]*)>; rel="next"/.exec(link)?.[1] ?? null };
}

/** @param {string} method @param {string} path @param {any} [body] @param {AbortSignal} [signal] @returns {Promise<{ value: any, link: string }>} */
async function exchange(method, path, body, signal) {
  const reply = await fetch("." + path, {
    method, signal, credentials: "same-origin", cache: "no-store",
    headers: headers(body === undefined ? {} : { "Content-Type": "application/json" }),
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await reply.text();
  /** @type {any} */
  let value = null;
  try {
    value = text ? JSON.parse(text) : null;
  } catch { /* not ours */ }
  if (reply.status === 401) onUnauthorized();
  if (!reply.ok) throw new Refused(reply.status, value);
  return { value, link: reply.headers.get("Link") ?? "" };
}

/** @param {string} path @param {AbortSignal} [signal] */
export const get = (path, signal) => ask("GET", path, undefined, signal);
/** @param {string} path @param {any} [body] */
export const post = (path, body) => ask("POST", path, body ?? {});

/** The code of the link becomes a session of this page. @param {string} code */
export async function login(code) {
  const made = await post("/api/login", { code });
  keepSession({ key: made.pageKey, id: made.id, role: made.role, name: made.name });
  return made;
}
