export type * as api from "./api.js";
export type { Answer, Claim, FailureReport, Task, TaskDraft } from "./api.js";
export * from "./client.js";
export * from "./pool.js";
export * from "./worker.js";
