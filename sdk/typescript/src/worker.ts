/*
 * The worker loop: claims tasks, runs a handler for each, keeps them alive beside it, and reports how each ended.
 *
 *     await new Worker(new Client(), async (job) => `hello ${job.payload.name}`, { queues: ["greetings"] }).run();
 *
 * Each place (`concurrency`) claims, runs and reports; beside them one loop beats, and one waits for news, so that a cancel
 * arrives at once. The end of a task and the claim of the next are one request. A report is sent until the server has answered it.
 */
import { randomUUID } from "node:crypto";
import { hostname, uptime } from "node:os";
import type { Answer, AskReport, Claim, ClaimNext, Command, FailureReport, Finished, ProgressReport, Task, TaskDraft } from "./api.js";
import { type Client, Problem, Unreachable } from "./client.js";

const WAIT_MS = 30_000, SLACK_MS = 15_000, AWAY_MS = 15_000, BIND_AFTER_MS = 1000, DELTAS_MAX = 100, MESSAGE_MAX = 4096;
const FATAL = new Set([400, 401, 404, 405, 413, 415, 421, 422]);

/** The job must end now. `job.signal.reason` is one of these, and so is what the methods of a stopped job throw. */
export class Stopped extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}
/** Somebody cancelled the task, or its time is over. */
export class Cancelled extends Stopped {}
/** The task is not ours any more: whatever we would report is refused. */
export class Lost extends Stopped {}
/** Nobody has answered for a while: another attempt gets the answer. */
export class Parked extends Stopped {}
/** Its subtasks have not all ended: another attempt goes on with their results. */
export class Waiting extends Stopped {}
/** The worker ends: the task is given back and spends nothing. */
export class ShuttingDown extends Stopped {}

/** How a job ends, where it is not just done: return one from a handler, or throw one. */
export class Outcome extends Error {
  constructor(readonly outcome: "complete" | "review" | "fail" | "block" | "release", readonly fields: Record<string, unknown>) {
    super(outcome);
  }
}
export const done = (result?: unknown, evidence?: unknown) => new Outcome("complete", { result, evidence });
export const review = (result?: unknown, evidence?: unknown) => new Outcome("review", { result, evidence });
/** `code` decides what follows; `more`: retry: false, retryAt, details. */
export const fail = (message: string, more: FailureReport = {}) => new Outcome("fail", { error: { code: "EXECUTION_ERROR", message, ...more } });
export const block = (message: string, more: FailureReport = {}) => new Outcome("block", { error: { code: "NOT_ALLOWED", message, ...more } });
export const release = (reason?: string, delayMs?: number) => new Outcome("release", { reason, delayMs });

/** The clock of leases, in ms: it runs on while the machine sleeps. */
const now = (): number => uptime() * 1000;
const delayOf = (failures: number): number => Math.min(2 ** (failures - 1) * 1000, AWAY_MS) * (0.9 + Math.random() * 0.2);

/** A pause that ends early with any of the signals. */
function pause(ms: number, ...signals: AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const over = () => {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener("abort", over);
      resolve();
    };
    const timer = setTimeout(over, ms);
    for (const signal of signals) signal.aborted ? over() : signal.addEventListener("abort", over);
  });
}

/** One attempt at a task. `signal` is aborted when it must end; the methods here then throw why (a Stopped). */
export class Job {
  readonly task: Task;
  readonly id: string;
  readonly fence: string;
  readonly attempt: number;
  readonly payload: any;
  /** What the attempt before left with checkpoint(). */
  saved: any;
  /** @internal */ isBound = false;
  /** @internal */ since = now();
  /** @internal */ leaseMs: number;
  /** @internal */ wake = new AbortController();
  readonly #stop = new AbortController();
  #token = "";

  constructor(readonly client: Client, readonly claim: Claim, readonly workerId: string) {
    this.task = claim.task;
    this.id = claim.task.id;
    this.fence = claim.fence;
    this.attempt = claim.attempt;
    this.payload = claim.task.payload;
    this.saved = claim.checkpoint;
    this.leaseMs = claim.leaseMs;
  }

  get signal(): AbortSignal { return this.#stop.signal; }
  stop(why: Stopped): void { this.#stop.abort(why); }
  check(): void { this.signal.throwIfAborted(); }

  async sleep(ms: number): Promise<void> {
    await pause(ms, this.signal);
    this.check();
  }

  #report(verb: string, body: object): Promise<any> {
    return this.#post(`/api/tasks/${encodeURIComponent(this.id)}/${verb}`, { workerId: this.workerId, fence: this.fence, ...body });
  }

  async #post(path: string, body: object, headers: Record<string, string> = {}): Promise<any> {
    this.check();
    try {
      return await this.client.call("POST", path, { body, headers, repeatable: true }, { signal: this.signal });
    } catch (error) {
      if (error instanceof Problem && /^(stale_claim|not_claimed|claimed_by_other|already_terminal)$/.test(error.code)) this.stop(new Lost(error.message));
      this.check();
      throw error;
    }
  }

  /** Say how far it is; `data` is a checkpoint. */
  async progress(report: Omit<ProgressReport, "workerId" | "fence">): Promise<void> {
    this.leaseMs = (await this.#report("progress", report)).leaseMs;
    this.since = now();
  }

  /** Keep `data` for the next attempt, which finds it in `saved`. */
  async checkpoint(data: unknown): Promise<void> {
    await this.progress({ data });
    this.saved = data;
  }

  /** Ask a person and wait. When nobody answers for a while Parked is thrown: the next attempt asks again and gets the answer at once. */
  async ask(question: string, more: Omit<AskReport, "workerId" | "fence" | "question"> = {}): Promise<Answer> {
    const earlier = this.claim.questions?.find((found) => found.text === question);
    if (earlier) return earlier.answer;
    await this.#report("ask", { question, ...more });
    for (;;) {
      await pause(5000, this.signal, this.wake.signal);
      if (this.wake.signal.aborted) this.wake = new AbortController();
      this.check();
      const task = await this.client.readTask(this.id);
      if (task.fence !== this.fence) this.stop(new Lost("another claim has the task"));
      else if (task.state !== "asking") return task.answer ?? {};
    }
  }

  /**
   * Create a subtask, with no more rights than this task has. The same id again is the same subtask, so another attempt may repeat it.
   * `more`: payload, queue, budget, …
   */
  async add(id: string, title: string, more: Omit<TaskDraft, "id" | "title"> = {}): Promise<Task> {
    this.#token ||= this.claim.token ?? (await this.#post("/api/tokens", { kind: "claim", task: this.id, fence: this.fence })).token;
    return this.#post("/api/tasks", { id, title, ...more }, { Authorization: "Bearer " + this.#token });
  }

  /**
   * Wait until all subtasks have ended: id, state and result of each. While one is open Waiting is thrown and the task is given up until
   * then; the next attempt gets them at once.
   */
  async children(): Promise<NonNullable<Task["children"]>> {
    const task = await this.#report("wait", {});
    if (!["claimed", "running"].includes(task.state)) this.stop(new Waiting("its subtasks have not all ended"));
    this.check();
    return task.children ?? [];
  }
}

export type Handler = (job: Job, signal: AbortSignal) => unknown;

export interface WorkerOptions extends Pick<ClaimNext, "slot" | "capabilities" | "executors"> {
  queues?: string[]; concurrency?: number;
  /** false: a plain claimant that does not register; its claims are renewed one by one. */
  beats?: boolean;
  leaseMs?: number;
  /** How long running work may go on after a stop. */
  graceMs?: number;
  /** The beginning of its id. */
  name?: string;
  log?: (sentence: string) => void;
}

type Ended = { job: Job; outcome: Outcome };

/**
 * `handler(job, signal)` returns the result, or an Outcome; what it throws is a failed attempt. run() ends after SIGTERM, SIGINT,
 * stop(), or an operator's `stint worker terminate`; it throws what no repetition can mend (a wrong token).
 */
export class Worker {
  workerId = "";
  readonly #options: WorkerOptions;
  readonly #leaseMs: number;
  readonly #about: object;
  readonly #held = new Map<string, Job>();
  readonly #unbound = new Set<string>();
  readonly #stopping = new AbortController();
  readonly #over = new AbortController();
  #changed = new AbortController();
  #anew: Promise<void> | undefined;
  #token = "";
  #heard = now();
  #grantedMs: number;
  #isHurried = false;
  #isQuiet = false;
  #failure: unknown;

  constructor(readonly client: Client, readonly handler: Handler, options: WorkerOptions = {}) {
    this.#options = options;
    this.#leaseMs = this.#grantedMs = options.leaseMs ?? 60_000;
    const { slot, capabilities, executors } = options;
    this.#about = { slot, capabilities, executors };
  }

  async run(): Promise<void> {
    const stop = () => this.stop();
    process.on("SIGTERM", stop).on("SIGINT", stop);
    try {
      await this.#register("");
      const guard = (loop: Promise<void>) => loop.catch((error) => { this.#failure ??= error; this.#stopping.abort(); });
      const helpers = [guard(this.#options.beats === false ? this.#renewLoop() : this.#beatLoop()), guard(this.#newsLoop())];
      const places = Promise.all(Array.from({ length: this.#options.concurrency ?? 1 }, () => guard(this.#claimLoop())));
      await Promise.race([places, new Promise((resolve) => this.#stopping.signal.addEventListener("abort", resolve))]);
      await Promise.race([places, pause(this.#options.graceMs ?? 300_000, this.#over.signal)]);
      for (const job of this.#held.values()) job.stop(new ShuttingDown("the worker ends"));
      await Promise.race([places, pause(10_000, this.#over.signal)]);
      this.#over.abort();
      await Promise.all(helpers);
      if (this.#options.beats !== false && this.workerId)
        await this.client.removeWorker(this.workerId, { retries: 0 }).catch((error) => this.#log(`no goodbye: ${error.message}`));
    } finally {
      this.#over.abort();
      process.off("SIGTERM", stop).off("SIGINT", stop);
    }
    if (this.#failure) throw this.#failure;
  }

  /** Claim nothing more and let what runs finish; a second call stops that, too. */
  stop(): void {
    if (this.#stopping.signal.aborted) for (const job of this.#held.values()) job.stop(new ShuttingDown("the worker ends"));
    this.#stopping.abort();
  }

  #log(sentence: string): void { (this.#options.log ?? ((text) => console.error("stint: " + text)))(sentence); }

  /** Under an id that was never used. All that was held under the old one is lost. */
  #register(oldId: string): Promise<void> {
    if (this.workerId !== oldId) return Promise.resolve(); // somebody else has done it
    return (this.#anew ??= this.#registerAnew().finally(() => { this.#anew = undefined; }));
  }

  async #registerAnew(): Promise<void> {
    for (const job of this.#held.values()) job.stop(new Lost("the server has given up on this worker"));
    this.#held.clear();
    this.#unbound.clear();
    const workerId = `${this.#options.name ?? hostname().slice(0, 80)}-${randomUUID().slice(0, 13)}`;
    for (let failures = 1; this.#options.beats !== false && !this.#stopping.signal.aborted; failures++) {
      const body = { workerId, leaseMs: this.#leaseMs, maxConcurrent: this.#options.concurrency ?? 1, host: hostname().slice(0, 255), pid: process.pid, ...this.#about }, sent = now();
      try {
        const answer = await this.client.registerWorker(body, { retries: 0 });
        [this.#token, this.#grantedMs, this.#heard] = [answer.token, answer.leaseMs, sent];
        break;
      } catch (error) {
        if (!isOfServer(error) || (error instanceof Problem && (FATAL.has(error.status) || /^(forbidden|slot_taken)$/.test(error.code)))) throw error;
        this.#log(`cannot register: ${error.message}`);
        await pause(delayOf(failures), this.#stopping.signal);
      }
    }
    this.workerId = workerId;
    this.#isQuiet = false;
  }

  // ---- heartbeats ----

  #notify(): void {
    this.#changed.abort();
    this.#changed = new AbortController();
  }

  #hurry(): void {
    this.#isHurried = true;
    for (const job of this.#held.values()) job.wake.abort();
    this.#notify();
  }

  #beatDue(): number {
    const fresh = [...this.#held.values()].filter((job) => !job.isBound).map((job) => job.since + BIND_AFTER_MS);
    return Math.min(this.#heard + this.#grantedMs / (this.#held.size ? 4 : 3), ...fresh);
  }

  async #beatLoop(): Promise<void> {
    for (let failures = 0, againAt = 0; !this.#over.signal.aborted;) {
      const wait = Math.max(againAt, this.#isHurried ? 0 : this.#beatDue()) - now();
      if (wait > 0) {
        await pause(Math.min(wait + 10, 5000), this.#changed.signal, this.#over.signal);
        this.#lapse();
        continue;
      }
      this.#isHurried = false;
      try {
        await this.#beat();
        failures = againAt = 0;
      } catch (error) {
        if (!isOfServer(error)) throw error;
        this.#log(`heartbeat: ${error.message}`);
        againAt = now() + Math.min(delayOf(++failures), this.#grantedMs / 4);
        this.#lapse();
      }
    }
  }

  async #beat(): Promise<void> {
    const workerId = this.workerId, sent = now(), held = new Map(this.#held);
    const boundTasks = [...held.values()].filter((job) => !job.isBound).map((job) => job.id).slice(0, DELTAS_MAX);
    const unboundTasks = [...this.#unbound].filter((id) => !held.has(id)).slice(0, DELTAS_MAX);
    let answer;
    try {
      answer = await this.client.beatWorker({ workerId, token: this.#token, leaseMs: this.#leaseMs, boundTasks, unboundTasks },
        { retries: 0, timeoutMs: Math.max(1000, Math.min(10_000, this.#grantedMs / 4)) });
    } catch (error) {
      if (error instanceof Problem && error.code === "TOKEN_MISMATCH" && error.body["token"] !== this.#token) {
        this.#token = error.body["token"]; // the answer to an earlier beat was lost
        return this.#beat();
      }
      if (!(error instanceof Problem && error.code === "WORKER_INACTIVE")) throw error;
      this.#log(`the server has given up on ${workerId}: everything it holds stops`);
      return this.#register(workerId);
    }
    [this.#token, this.#grantedMs, this.#heard] = [answer.token, answer.leaseMs, sent];
    for (const id of unboundTasks) this.#unbound.delete(id);
    for (const id of boundTasks) held.get(id)!.isBound = true;
    // a task that ended, or was claimed again, since the beat was sent is another matter
    for (const id of answer.lost) if (held.has(id) && this.#held.get(id) === held.get(id)) held.get(id)!.stop(new Lost("the server says that the task is not ours"));
    for (const command of answer.commands) this.#obey(command, held);
  }

  #obey(command: Command, held: Map<string, Job>): void {
    if (command.type === "cancel") held.get(command.task)?.stop(new Cancelled("cancelled, or out of time"));
    else if (command.type === "park") held.get(command.task)?.stop(new Parked("nobody has answered yet"));
    else if (command.type === "quiet") this.#isQuiet = true;
    else if (command.type === "terminate") this.#stopping.abort();
  }

  /** Nine tenths of the lease without an answer: stop before another worker gets the tasks. Beside the server, work goes on while
   * the server is away: it waits for us when it comes back. */
  #lapse(): void {
    if (this.client.isLocal || now() < this.#heard + this.#grantedMs * 0.9) return;
    for (const job of this.#held.values()) if (job.isBound) job.stop(new Lost("no answer from the server for nine tenths of the lease"));
  }

  /** Of a plain claimant: each claim has a lease of its own, renewed by progress. */
  async #renewLoop(): Promise<void> {
    while (!this.#over.signal.aborted) {
      const isHurried = this.#isHurried;
      this.#isHurried = false;
      const due = [...this.#held.values()].filter((job) => !job.signal.aborted && (isHurried || now() >= job.since + job.leaseMs / 3));
      if (!due.length) await pause(this.#held.size ? 500 : 5000, this.#changed.signal, this.#over.signal);
      for (const job of due) {
        await job.progress({ leaseMs: this.#leaseMs }).catch((error) => {
          if (error instanceof Stopped) return undefined;
          this.#log(`renewing ${job.id}: ${error.message}`);
          if (now() >= job.since + job.leaseMs * 0.9) job.stop(new Lost("its lease could not be renewed"));
          return pause(1000, this.#over.signal);
        });
      }
    }
  }

  async #newsLoop(): Promise<void> {
    for (let seq = 0, failures = 0; !this.#over.signal.aborted;) {
      if (!this.#held.size) {
        await pause(5000, this.#changed.signal, this.#over.signal);
        continue;
      }
      try {
        const news = await this.client.waitForNews(this.workerId, { after: seq, waitMs: WAIT_MS, retries: 0, timeoutMs: WAIT_MS + SLACK_MS, signal: this.#over.signal });
        failures = 0;
        seq = news.seq;
        if (news.news) this.#hurry();
        await pause(100, this.#over.signal);
      } catch (error) {
        if (!isOfServer(error)) throw error;
        if (error instanceof Problem && (error.status === 401 || error.status === 410)) this.#hurry();
        await pause(delayOf(++failures), this.#over.signal);
      }
    }
  }

  // ---- one place ----

  async #claimLoop(): Promise<void> {
    let ended: Ended | undefined, requestId = randomUUID();
    const isStopping = () => this.#stopping.signal.aborted;
    for (let failures = 0; ended || !isStopping();) {
      let isWanted = !isStopping() && !this.#isQuiet, claims: Claim[] = [], finished: Finished[] = [];
      const workerId = this.workerId;
      try {
        [claims, finished] = await this.#exchange(workerId, ended, isWanted, requestId);
        failures = 0;
      } catch (error) {
        failures++;
        if (error instanceof Unreachable) { // the same request again, until it is answered: nobody knows whether it was done
          if (!(isStopping() && failures > 3)) {
            if (!isStopping()) this.#log(`claim: ${error.message}`);
            await pause(isStopping() ? 0 : delayOf(failures), this.#stopping.signal);
            continue;
          }
          isWanted = false;
        } else if (error instanceof Problem) {
          finished = error.body["finished"] ?? [];
          if (ended && !finished.length && (error.status === 413 || error.status === 422) && ended.outcome.outcome !== "fail") {
            ended = { job: ended.job, outcome: fail(`the result was refused: ${error.message}`) };
            continue;
          }
          await this.#refused(error, workerId, ended !== undefined && !finished.length);
          if (error.status >= 500) {
            await pause(delayOf(failures), this.#over.signal);
            continue;
          }
        } else throw error;
      }
      ended = this.#settle(ended, finished);
      requestId = randomUUID();
      if (!isWanted && !ended && !isStopping()) await pause(1000, this.#stopping.signal); // quiet
      for (const claim of claims) ended = await this.#run(new Job(this.client, claim, workerId));
    }
  }

  async #exchange(workerId: string, ended: Ended | undefined, isWanted: boolean, requestId: string): Promise<[Claim[], Finished[]]> {
    if (!isWanted) return [[], ended ? [await this.#reportAlone(ended)] : []];
    const finish = ended ? [{ id: ended.job.id, fence: ended.job.fence, outcome: ended.outcome.outcome, ...ended.outcome.fields }] : undefined;
    const body = { workerId, queues: this.#options.queues, max: 1, waitMs: WAIT_MS, leaseMs: this.#leaseMs, requestId, ...this.#about, finish };
    const answer = await this.client.claimNext(body as ClaimNext, { retries: 0, timeoutMs: WAIT_MS + SLACK_MS, signal: this.#stopping.signal });
    return [answer.claims, answer.finished ?? []];
  }

  async #reportAlone({ job, outcome }: Ended): Promise<Finished> {
    try {
      const body = { workerId: job.workerId, fence: job.fence, ...outcome.fields };
      await this.client.call("POST", `/api/tasks/${encodeURIComponent(job.id)}/${outcome.outcome}`, { body, repeatable: true });
      return { id: job.id, ok: true };
    } catch (error) {
      if (!(error instanceof Problem && [404, 409, 410].includes(error.status))) throw error;
      return { id: job.id, ok: false, code: error.code as NonNullable<Finished["code"]> };
    }
  }

  async #refused(problem: Problem, workerId: string, isReport: boolean): Promise<void> {
    if (problem.code === "WORKER_INACTIVE") return this.#register(workerId);
    if (problem.code === "forbidden" || (FATAL.has(problem.status) && !(isReport && (problem.status === 413 || problem.status === 422)))) throw problem;
    this.#log(`claim: ${problem.message}`);
    await pause(5000, this.#stopping.signal);
  }

  /** What became of the report: nothing is left to say, or (a gate is open) it is said in another way. */
  #settle(ended: Ended | undefined, finished: Finished[]): Ended | undefined {
    if (!ended) return undefined;
    const { job, outcome } = ended, item = finished.find((found) => found.id === job.id);
    if (item && !item.ok && item.code === "gate_required") return { job, outcome: new Outcome("review", outcome.fields) };
    if (item && !item.ok) this.#log(`${job.id}: the report was refused: ${item.code}`);
    if (this.#held.get(job.id) === job) {
      this.#held.delete(job.id);
      if (job.isBound && !item) this.#unbound.add(job.id); // no report arrived: the server gives the task to somebody else
    }
    return undefined;
  }

  async #run(job: Job): Promise<Ended | undefined> {
    this.#held.set(job.id, job);
    this.#notify();
    if (this.#stopping.signal.aborted) return { job, outcome: release("the worker ends") };
    try {
      const value = await this.handler(job, job.signal);
      return { job, outcome: value instanceof Outcome ? value : job.task.gates?.length ? review(value) : done(value) };
    } catch (error) {
      // whatever a handler throws once it was told to stop is its way to stop
      const why = error instanceof Outcome ? error : job.signal.aborted ? job.signal.reason : error;
      if (why instanceof Outcome) return { job, outcome: why };
      if (why instanceof Cancelled) return { job, outcome: await this.#cancelled(job) };
      if (why instanceof Lost || why instanceof Waiting) {
        if (why instanceof Lost) this.#log(`${job.id}: ${why.message}`);
        if (this.#held.get(job.id) === job) this.#held.delete(job.id);
        return undefined;
      }
      if (why instanceof Stopped) return { job, outcome: release(why.message) };
      const details = why instanceof Error ? { type: why.name, trace: why.stack?.slice(0, 8192) } : undefined;
      return { job, outcome: fail((why instanceof Error ? why.message || why.name : String(why)).slice(0, MESSAGE_MAX), { details }) };
    }
  }

  async #cancelled(job: Job): Promise<Outcome> {
    try {
      if (!(await this.client.readTask(job.id)).stopping) return fail("it took longer than timeoutMs", { code: "TASK_TIMEOUT" });
    } catch (error) {
      this.#log(`${job.id}: ${(error as Error).message}`);
    }
    return release("cancelled");
  }
}

function isOfServer(error: unknown): error is Problem | Unreachable {
  return error instanceof Problem || error instanceof Unreachable;
}
