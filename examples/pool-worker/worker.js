#!/usr/bin/env node
// A worker for a pool of stint, in Node's own library. See spec/stdio.md for what is said here and why.
//
//   {"executors": {"node": {"kind": "pool", "argv": ["node", "/srv/airi/worker.js"], "read": ["/srv/airi"]}}}
//
// To make it yours, put functions into `modules`: each gets the task and a way to tell of its progress; what it returns
// is the result, what it throws is the failure. One task is given at a time. Standard output is the protocol:
// console.log goes to standard error here.
"use strict";
const { randomUUID } = require("node:crypto");
const { writeSync } = require("node:fs");
const { setTimeout: sleep } = require("node:timers/promises");

const WORKER_ID = process.env.AIRI_WORKER_ID ?? process.env.AIRIER_WORKER_ID ?? `worker-${process.pid}`;
const HEARTBEAT_MS = 10_000;
const FRAME_BYTES_MAX = 1 << 20;
console.log = console.error;

const modules = {
  // Gives back what it got.
  echo: async (task, progress) => {
    progress(50, "half way");
    return task.payload;
  },
  // Takes payload.seconds.
  sleep: async (task, progress) => {
    const seconds = task.payload?.seconds ?? 1;
    for (let second = 0; second < seconds; second++) {
      progress((100 * second) / seconds);
      await sleep(1000);
    }
    return { slept: seconds };
  },
};

function send(type, fields = {}) {
  const message = { id: randomUUID(), type, timestamp: new Date().toISOString(), workerId: WORKER_ID, ...fields };
  const body = Buffer.from(JSON.stringify(message));
  if (body.length > FRAME_BYTES_MAX) throw new RangeError(`a message has at most ${FRAME_BYTES_MAX} bytes`);
  const head = Buffer.alloc(4);
  head.writeUInt32BE(body.length);
  let rest = Buffer.concat([head, body]);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(1, rest));
    } catch (error) {
      if (error.code !== "EAGAIN") throw error; // the pipe is full: the supervisor reads soon
    }
  }
}

async function execute({ task, moduleId }) {
  const taskId = task.id;
  const progress = (percent, message) => send("task.progress", { taskId, progress: percent, message });
  progress(0, "starting");
  try {
    if (!Object.hasOwn(modules, moduleId)) {
      const error = { code: "EXECUTOR_NOT_FOUND", message: `no module ${moduleId}` };
      return send("task.failure", { taskId, error });
    }
    const output = await modules[moduleId](task, progress);
    send("task.result", { taskId, result: { success: true, output } });
  } catch (error) {
    const message = String(error?.message ?? error).slice(0, 4096);
    send("task.failure", { taskId, error: { code: "EXECUTION_ERROR", message } });
  }
}

function shutdown(reason) {
  send("worker.shutdown", { reason });
  process.exit(0);
}

let input = Buffer.alloc(0);
process.stdin.on("data", async (bytes) => {
  input = Buffer.concat([input, bytes]);
  while (input.length >= 4 && input.length >= 4 + input.readUInt32BE(0)) {
    const length = input.readUInt32BE(0);
    const message = JSON.parse(input.subarray(4, 4 + length).toString());
    input = input.subarray(4 + length);
    if (message.type !== "execute.task") continue;
    await execute(message);
    send("worker.ready");
  }
  if (input.length >= 4 && input.readUInt32BE(0) > FRAME_BYTES_MAX) shutdown("a frame is too long");
});
process.stdin.on("end", () => shutdown("stdin closed"));
process.on("SIGTERM", () => shutdown("SIGTERM"));
process.on("SIGINT", () => shutdown("SIGINT"));
send("worker.hello", { capabilities: { moduleIds: Object.keys(modules), maxConcurrent: 1 } });
setInterval(() => send("worker.heartbeat"), HEARTBEAT_MS).unref();
