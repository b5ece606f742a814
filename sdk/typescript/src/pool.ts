/*
 * A worker of a pool: `stint worker` starts it, and they talk in frames over standard input and output (spec/stdio.md).
 *
 *     await servePool({ echo: (task) => task.payload });
 */
import { randomUUID } from "node:crypto";
import { writeSync } from "node:fs";

const HEARTBEAT_MS = 10_000, FRAME_BYTES_MAX = 1 << 20, MESSAGE_MAX = 4096;

export type PoolProgress = (percent?: number, message?: string) => void;
export type PoolModule = (task: Record<string, any>, progress: PoolProgress) => unknown;

/** A failed task with a `code` of its own. */
export class PoolFailure extends Error {
  constructor(message: string, readonly code = "EXECUTION_ERROR", readonly details?: unknown) {
    super(message);
  }
}

/** Run tasks, one at a time, until the supervisor closes our input. */
export async function servePool(modules: Record<string, PoolModule>): Promise<void> {
  const workerId = process.env["AIRI_WORKER_ID"] || process.env["AIRIER_WORKER_ID"] || `worker-${process.pid}`;
  const send = (type: string, fields: Record<string, unknown> = {}): void => {
    const body = Buffer.from(JSON.stringify({ id: randomUUID(), type, timestamp: new Date().toISOString(), workerId, ...fields }));
    if (body.length > FRAME_BYTES_MAX) throw new RangeError(`a message has at most ${FRAME_BYTES_MAX} bytes`);
    const frame = Buffer.alloc(4 + body.length);
    frame.writeUInt32BE(body.length);
    body.copy(frame, 4);
    writeAll(frame);
  };
  // what is printed by mistake goes to the log
  console.log = console.info = console.debug = console.error;
  process.stdout.write = process.stderr.write.bind(process.stderr) as typeof process.stdout.write;
  const timer = setInterval(() => send("worker.heartbeat"), HEARTBEAT_MS);
  send("worker.hello", { capabilities: { moduleIds: Object.keys(modules), maxConcurrent: 1 } });
  try {
    for await (const message of frames()) {
      if (message["type"] !== "execute.task") continue;
      await execute(modules, message["task"], message["moduleId"], send);
      send("worker.ready");
    }
    send("worker.shutdown", { reason: "end of input" });
  } finally {
    clearInterval(timer);
  }
}

/** All of it at once, also where the pipe is full: a heartbeat must not come between the head and the body. */
function writeAll(frame: Buffer): void {
  for (let at = 0; at < frame.length;) {
    try {
      at += writeSync(1, frame, at);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

async function* frames(): AsyncGenerator<Record<string, any>> {
  let kept = Buffer.alloc(0);
  for await (const piece of process.stdin) {
    kept = Buffer.concat([kept, piece as Buffer]);
    while (kept.length >= 4 && kept.length >= 4 + kept.readUInt32BE()) {
      const end = 4 + kept.readUInt32BE();
      yield JSON.parse(kept.toString("utf8", 4, end));
      kept = kept.subarray(end);
    }
    if (kept.length >= 4 && kept.readUInt32BE() > FRAME_BYTES_MAX) throw new RangeError(`a frame of ${kept.readUInt32BE()} bytes`);
  }
}

async function execute(modules: Record<string, PoolModule>, task: Record<string, any>, module: string, send: (type: string, fields?: Record<string, unknown>) => void): Promise<void> {
  const taskId = task["id"];
  const progress: PoolProgress = (percent, message) => send("task.progress", { taskId, progress: percent, message });
  progress(0, "starting");
  try {
    const run = Object.hasOwn(modules, module) ? modules[module] : undefined;
    if (!run) throw new PoolFailure("no module " + module, "EXECUTOR_NOT_FOUND");
    send("task.result", { taskId, result: { success: true, output: await run(task, progress) } });
  } catch (error) {
    const message = (error instanceof Error ? error.message : String(error)).slice(0, MESSAGE_MAX);
    const known = error instanceof PoolFailure ? error : undefined;
    send("task.failure", { taskId, error: { code: known?.code ?? "EXECUTION_ERROR", message, details: known?.details } });
  }
}
