/* The TypeScript SDK, led by scenarios.py; driver.py says how. */
import { existsSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { Client, type ClientOptions, type Job, PoolFailure, Problem, Stopped, Unreachable, Worker, block, fail, release, review, servePool } from "stint-sdk";

const say = (words: object): void => { writeSync(1, JSON.stringify(words) + "\n"); };

function clientOf(options: ClientOptions): Client | undefined {
  try {
    return new Client(options);
  } catch (error) {
    say({ error: (error as Error).message });
    return undefined;
  }
}

async function calls(options: ClientOptions): Promise<void> {
  const client = clientOf(options) as any;
  if (!client) return;
  for await (const line of createInterface({ input: process.stdin })) {
    const request = JSON.parse(line);
    try {
      say({ ok: await client[request.call](...request.args, request.options) });
    } catch (error) {
      if (error instanceof Problem) say({ problem: error.code, status: error.status });
      else if (error instanceof Unreachable) say({ unreachable: error.message, sent: error.sent });
      else say({ error: (error as Error).message });
    }
  }
}

async function work(job: Job): Promise<unknown> {
  const wanted = job.payload ?? {};
  say({ began: job.id, attempt: job.attempt, worker: job.workerId, fence: job.fence });
  switch (wanted.do) {
    case "sleep":
      await job.progress({ note: "begun", percent: 1 });
      await job.sleep(wanted.seconds * 1000);
      break;
    case "checkpoint":
      if (job.saved === null) {
        await job.checkpoint({ page: 7 });
        process.kill(process.pid, "SIGKILL");
        await job.sleep(60_000);
      }
      return job.saved;
    case "ask": return job.ask("which colour?", { options: ["red", "blue"] });
    case "split":
      for (const n of [1, 2]) await job.add(`part-${n}`, "a part", { queue: "parts" });
      return job.children();
    case "wait":
      while (!existsSync(wanted.file)) await new Promise((resolve) => setTimeout(resolve, 10));
      break;
    case "told":
      if (job.attempt % 3 === 1) await job.progress({ note: "begun", percent: 10 });
      if (job.attempt % 3 === 2) throw new Error("it broke");
      return { by: job.workerId, fence: job.fence };
    case "review": return review("look at this", { links: ["a"] });
    case "release": throw release("not now", 3_600_000);
    case "block": return block("no such directory", { code: "BAD_WORKDIR" });
    case "fail": throw fail("no good", { retry: false });
    case "throw": throw new Error("it broke");
    case "large": return "x".repeat(2 << 20);
  }
  return wanted.value;
}

async function handler(job: Job): Promise<unknown> {
  try {
    return await work(job);
  } catch (error) {
    if (error instanceof Stopped) say({ stopped: job.id, why: error.name });
    throw error;
  }
}

const [role, text] = process.argv.slice(2), settings = JSON.parse(text ?? "{}");
if (role === "call") await calls(settings);
else if (role === "worker") {
  const { client, graceS, ...options } = settings;
  const found = clientOf(client);
  if (!found) process.exit(1);
  await new Worker(found, handler, { ...options, ...(graceS === undefined ? {} : { graceMs: graceS * 1000 }) }).run();
  say({ ended: true });
} else {
  await servePool({
    echo: (task, progress) => {
      progress(50, "half way");
      console.log("this is no frame");
      return task["payload"];
    },
    broken: () => { throw new PoolFailure("no position", "BAD_POSITION", { at: 3 }); },
  });
}
