/*
 * A client of stint's server: every route as a method, over HTTP, HTTPS or a Unix socket.
 *
 * A request is repeated only where the server can tell that it is the same: reads, reports with their fence, creates under an
 * Idempotency-Key, claims under a requestId. Those are sent again 1, 2 and 4 s after a connection error or a 5xx. Any other
 * change is sent again only if it cannot have reached the server, or the server says that it changed nothing (503).
 */
import { randomUUID } from "node:crypto";
import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import * as http from "node:http";
import * as https from "node:https";
import { isIP } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Api, type CallOptions, type Sent } from "./api.js";

const RETRY_DELAYS_MS = [1000, 2000, 4000];
const REPLY_BYTES_MAX = 64 << 20;

/** The server refused: `code` is stable, `detail` a sentence for people, `body` the whole answer. */
export class Problem extends Error {
  readonly body: Record<string, any>;
  readonly code: string;
  readonly detail: string;
  constructor(readonly status: number, body: unknown) {
    const found: Record<string, any> = body !== null && typeof body === "object" ? body : {};
    const error = found["error"]; // the doors of older tools have another shape
    const code = String(found["code"] ?? error?.code ?? (typeof error === "string" ? error : `http_${status}`));
    const detail = String(found["detail"] ?? found["title"] ?? code);
    super(`${detail} (${status} ${code})`);
    this.name = "Problem";
    this.body = found;
    this.code = code;
    this.detail = detail;
  }
}

/** No server answered. `sent`: the last request may have reached one, and may have been done. */
export class Unreachable extends Error {
  constructor(message: string, readonly sent: boolean) {
    super(message);
    this.name = "Unreachable";
  }
}

export interface ClientOptions {
  /** `https://HOST:PORT`, `http://HOST:PORT` or `unix:/PATH`; several with commas. */
  url?: string; token?: string; home?: string; tokenFile?: string;
  /** A file with the certificates to trust in place of the system's. */
  ca?: string;
  /** Send the token over plain HTTP to another computer. */
  plain?: boolean;
  timeoutMs?: number; env?: Record<string, string | undefined>;
}

interface Address { url: string; isLocal: boolean; tls: boolean; options: https.RequestOptions; prefix: string; agent: http.Agent }

function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, "");
  return bare === "localhost" || bare === "::1" || (isIP(bare) === 4 && bare.startsWith("127."));
}

function addressOf(text: string, ca: Buffer | undefined): Address {
  if (text.startsWith("unix:")) {
    const socketPath = text.slice(5).replace(/^\/\//, "");
    if (!socketPath.startsWith("/")) throw new TypeError(`${text}: a socket is written unix:/PATH`);
    return { url: text, isLocal: true, tls: false, options: { socketPath, host: "localhost" }, prefix: "", agent: new http.Agent({ keepAlive: true }) };
  }
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username)
    throw new TypeError(`${text}: an address is http://HOST:PORT, https://HOST:PORT or unix:/PATH`);
  const tls = url.protocol === "https:";
  const options: https.RequestOptions = { host: url.hostname.replace(/^\[|\]$/g, ""), port: url.port || (tls ? 443 : 80) };
  if (tls) Object.assign(options, { minVersion: "TLSv1.2", ...(ca ? { ca } : {}) });
  return { url: text, isLocal: isLoopback(url.hostname), tls, options, prefix: url.pathname.replace(/\/$/, ""),
    agent: tls ? new https.Agent({ keepAlive: true }) : new http.Agent({ keepAlive: true }) };
}

function line(path: string): string {
  const text = readFileSync(path, "utf8").trim();
  if (!/^[!-~]+$/.test(text)) throw new TypeError(`${path}: that is not one line with a token or an address`);
  return text;
}

function readable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

function urlOfHome(home: string): string {
  const path = join(home, "stint.sock");
  if (existsSync(path) && path.length < 108) return "unix:" + path;
  if (!readable(join(home, "url"))) throw new TypeError(`no server runs in ${home}; start one with \`stint up\`, or set STINT_URL`);
  return line(join(home, "url"));
}

/**
 * Finds its server as `stint` does: `url`, `home`, STINT_URL (several with commas), STINT_HOME, the default state directory. The
 * token is `token`, `tokenFile`, STINT_TOKEN, STINT_TOKEN_FILE, or `admin.token` of the state directory if all addresses are on
 * this computer; `ca` is also STINT_CA.
 */
export class Client extends Api {
  readonly isLocal: boolean;
  readonly timeoutMs: number;
  #addresses: Address[];
  #token: string;
  #tokenFile: string | undefined;
  #current = 0;

  constructor(options: ClientOptions = {}) {
    super();
    const env = options.env ?? process.env;
    const home = options.home ?? (env["STINT_HOME"] || join(env["XDG_STATE_HOME"] || join(env["HOME"] || homedir(), ".local", "state"), "stint"));
    const urls = options.url || (options.home ? "" : env["STINT_URL"]) || urlOfHome(home);
    const ca = options.ca ?? (env["STINT_CA"] || undefined);
    const trusted = ca ? readFileSync(ca) : undefined;
    this.#addresses = urls.split(",").map((part) => part.trim()).filter(Boolean).map((part) => addressOf(part, trusted));
    if (this.#addresses.length === 0) throw new TypeError("no address of a server: give url, or set STINT_URL");
    this.isLocal = this.#addresses.every((address) => address.isLocal);
    this.timeoutMs = options.timeoutMs ?? 30_000;
    this.#token = options.token ?? "";
    if (!this.#token && !options.tokenFile) this.#token = env["STINT_TOKEN"] ?? "";
    if (!this.#token) {
      const admin = join(home, "admin.token");
      this.#tokenFile = options.tokenFile ?? (env["STINT_TOKEN_FILE"] || (this.isLocal && readable(admin) ? admin : undefined));
      if (this.#tokenFile) this.#token = line(this.#tokenFile);
    }
    const open = this.#addresses.find((address) => !address.isLocal && !address.tls);
    if (this.#token && open && !options.plain)
      throw new TypeError(`${open.url}: a token is not sent over plain HTTP to another computer; use https://, or say plain`);
  }

  /** Send one request, again where that is safe. `options.retries`: how often (3). `options.signal` ends it. */
  async call(method: string, path: string, sent: Sent, options: CallOptions = {}): Promise<any> {
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(sent.headers ?? {})) {
      if (value !== undefined) headers[name] = value;
      else if (name === "Idempotency-Key") headers[name] = randomUUID();
    }
    let body = sent.body as Record<string, unknown> | undefined;
    if (sent.key && body && !body[sent.key]) body = { ...body, [sent.key]: randomUUID() };
    const asked = Object.entries(sent.query ?? {}).filter(([, value]) => value !== undefined && value !== null);
    const target = path + (asked.length ? "?" + new URLSearchParams(asked.map(([name, value]) => [name, String(value)])) : "");
    const data = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const delays = RETRY_DELAYS_MS.slice(0, options.retries ?? RETRY_DELAYS_MS.length);
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#round(method, target, data, headers, sent, options);
      } catch (error) {
        const isSafe = error instanceof Problem ? error.status >= 500 && (sent.repeatable || error.status === 503)
          : error instanceof Unreachable && (sent.repeatable || !error.sent);
        const delay = delays[attempt];
        if (!isSafe || delay === undefined || options.signal?.aborted) throw error;
        await sleep(delay, undefined, options.signal ? { signal: options.signal } : {}).catch(() => { throw error; });
      }
    }
  }

  /** Ask the addresses in turn, beginning with the one that answered last, until one does not say that it is away. */
  async #round(method: string, target: string, data: Buffer | undefined, headers: Record<string, string>, sent: Sent, options: CallOptions): Promise<any> {
    for (let turn = 1; ; turn++) {
      const index = this.#current, isLast = turn >= this.#addresses.length, address = this.#addresses[index]!;
      const next = () => { this.#current = (index + 1) % this.#addresses.length; };
      let reply: { status: number; text: string };
      try {
        reply = await this.#exchange(address, method, target, data, headers, sent, options);
        if (reply.status === 401 && this.#renewToken()) reply = await this.#exchange(address, method, target, data, headers, sent, options);
      } catch (error) {
        if (!(error instanceof Unreachable)) throw error;
        next();
        if (isLast || (error.sent && !sent.repeatable)) throw error;
        continue;
      }
      if (reply.status < 300) return sent.text ? reply.text : reply.text ? JSON.parse(reply.text) : null;
      if (reply.status !== 503 || isLast) throw new Problem(reply.status, documentOf(reply.text));
      next();
    }
  }

  #exchange(address: Address, method: string, target: string, data: Buffer | undefined, headers: Record<string, string>, sent: Sent, options: CallOptions): Promise<{ status: number; text: string }> {
    const all: Record<string, string | number> = { Accept: "application/json, */*;q=0.1", ...headers };
    if (data) Object.assign(all, { "Content-Type": "application/json", "Content-Length": data.length });
    if (this.#token && !all["Authorization"]) all["Authorization"] = "Bearer " + this.#token;
    return new Promise((resolve, reject) => {
      let wasConnected = false, isReused = false;
      const fail = (error: NodeJS.ErrnoException) => {
        if (/CERT|SELF_SIGNED|ALTNAME|UNABLE_TO/.test(error.code ?? "")) reject(new TypeError(`${address.url}: ${error.message}; name its CA with ca or STINT_CA`));
        else if (isReused && error.code === "ECONNRESET" && !options.signal?.aborted) // closed while it was kept: on a new connection
          this.#exchange(address, method, target, data, headers, { ...sent, repeatable: false }, options).then(resolve, reject);
        else reject(new Unreachable(`${address.url}: ${error.message || error.code}`, wasConnected));
      };
      // A kept connection may have been closed by now, and then nobody knows whether the server has read the request.
      const request = (address.tls ? https : http).request({ ...address.options, method, path: address.prefix + target, headers: all,
        agent: sent.repeatable ? address.agent : new (address.tls ? https : http).Agent(), ...(options.signal ? { signal: options.signal } : {}) });
      request.setTimeout(options.timeoutMs ?? this.timeoutMs, () => request.destroy(new Error("no answer in time")));
      request.on("socket", (socket) => {
        isReused = request.reusedSocket;
        if (!socket.connecting) wasConnected = true;
        else socket.once(address.tls ? "secureConnect" : "connect", () => { wasConnected = true; });
      });
      request.on("error", fail);
      request.on("response", (reply) => {
        const pieces: Buffer[] = [];
        let bytes = 0;
        reply.on("data", (piece: Buffer) => {
          pieces.push(piece);
          if ((bytes += piece.length) > REPLY_BYTES_MAX) reply.destroy(new Error(`the reply has more than ${REPLY_BYTES_MAX} bytes`));
        });
        reply.on("error", fail);
        reply.on("end", () => resolve({ status: reply.statusCode ?? 0, text: Buffer.concat(pieces).toString("utf8") }));
      });
      request.end(data);
    });
  }

  /** A token in a file may have been replaced since we read it. */
  #renewToken(): boolean {
    try {
      const token = this.#tokenFile ? line(this.#tokenFile) : this.#token;
      const isChanged = token !== this.#token;
      this.#token = token;
      return isChanged;
    } catch {
      return false;
    }
  }
}

function documentOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return { title: text.slice(0, 200) };
  }
}
