/* The HTTP contract: made from spec/openapi.json by tools/sdk-types. Do not edit. */
/** The id of a task. */
export type Id = string;
/** A name of 1 to 255 bytes of UTF-8 without control characters. */
export type Name = string;
export type Names = Array<Name>;
/** An id: 1 to 128 bytes of UTF-8 without control characters. */
export type AnyId = string;
/** A number of 64 bits as a string of digits: it may be larger than a double holds. */
export type Decimal = string;
/** Opaque; for the next beat. 8 bytes, lowest first, in base64. */
export type BeatToken = string;
/** Milliseconds since 1970. */
export type Time = number;
/** Milliseconds since 1970, as the server saw it. */
export type Moment = number;
/** Milliseconds that are left of the lease. */
export type LeaseLeft = number;
/** How long the lease should be, in milliseconds; 0 or nothing is the default. The server clamps it and says what it granted. */
export type Lease = number | null;
/** Where the task stands, exactly; see spec/states.md. */
export type TaskState = "pending" | "scheduled" | "waiting" | "ready" | "claimed" | "running" | "asking" | "review" | "blocked" | "failed" | "done" | "cancelled";
/** The lane of the state. */
export type TaskStatus = "todo" | "in-progress" | "review" | "blocked" | "done" | "cancelled";
export type IsolationLevel = "process" | "sandbox" | "container" | "vm";
/** Whether an attempt gets a git work tree and a branch of its own, whatever its executor says; with base, the branch or commit that it begins with. */
export type TaskWorktree = boolean | { base: string };
/** What its attempts have used, as they reported it. */
export type TaskUsage = { inputTokens: number; outputTokens: number; cacheReadTokens: number; cacheWriteTokens: number; turns: number; toolCalls: number; usd: number | null };
/** What all attempts together may use. Its worker meters it and blocks the task with BUDGET_EXCEEDED; a worker that cannot meter a part refuses the task with NOT_ALLOWED. */
export type TaskBudget = { usd?: number; minutes?: number; tokens?: number; turns?: number; toolCalls?: number };
/** Variables for the command of the task. With an executor whose argv is the task's ("argv":"payload") all of them reach it, else those that its envFromTask names. Names and values have at most 32768 bytes together. Whoever may read the task reads them: they are not for secrets. In a PATCH they replace all that there were. */
export type TaskEnv = Record<string, string>;
/** Higher comes first. The words mean 100, 50, 0 and -50. */
export type Priority = number | "urgent" | "high" | "normal" | "low" | "P0" | "P1" | "P2" | "P3" | null;
/** A task to be created. Every field may be left out or null. Unknown fields are kept in metadata and named in warnings; what only the server says is refused. */
export type TaskDraft = { id?: Id | null; title?: string | null; description?: string | null; instructions?: string | null; steps?: Array<any> | null; deliverables?: any; workingDir?: string | null; model?: Name | null; thinking?: Name | null; queue?: Name | null; owner?: Name | null; requires?: Names | null; priority?: Priority; executor?: Name | null; module?: string | null; payload?: any; isolationLevel?: IsolationLevel | null; blockedBy?: Array<AnyId> | null; onParentFailure?: "block" | "run" | null; parent?: Id | null; notBefore?: Time | null; startBy?: Time | null; finishBy?: Time | null; timeoutMs?: number | null; maxAttempts?: number | null; uniqueKey?: Name | null; onConflict?: "existing" | "reject" | "replace" | null; uniqueForMs?: number | null; concurrencyKey?: Name | null; credential?: Name | null; budget?: TaskBudget | null; labels?: Names | null; env?: TaskEnv | null; worktree?: TaskWorktree | null; workflow?: Workflow | null; gates?: Array<Name> | null; metadata?: Record<string, any> | null; state?: "pending" | null; group?: Name | null; blockedByGroups?: Array<Name> | null; [more: string]: any };
/** Fields to change (RFC 7396): null takes a field away. Unknown fields are kept in metadata and named in warnings; what only the server says, and what cannot change after creation, is refused. */
export type TaskPatch = { title?: string | null; description?: string | null; instructions?: string | null; steps?: Array<any> | null; deliverables?: any; workingDir?: string | null; model?: Name | null; thinking?: Name | null; queue?: Name; owner?: Name | null; requires?: Names | null; priority?: Priority; executor?: Name | null; module?: string | null; payload?: any; isolationLevel?: IsolationLevel | null; blockedBy?: Array<AnyId> | null; notBefore?: Time | null; startBy?: Time | null; finishBy?: Time | null; timeoutMs?: number | null; maxAttempts?: number | null; uniqueKey?: Name | null; concurrencyKey?: Name | null; credential?: Name | null; budget?: TaskBudget | null; labels?: Names | null; env?: TaskEnv | null; worktree?: TaskWorktree | null; metadata?: Record<string, any> | null; status?: "todo" | "in-progress" | "review" | "blocked" | "done"; [more: string]: any };
/** What a credential that may not read gets of the task that has the uniqueKey. */
export type TaskFound = { id: Id; state: TaskState; deduplicated: true; warnings?: Array<string> };
/** A task as the server shows it. */
export type Task = { id: Id; title?: string; description?: string; instructions?: string; steps?: Array<any>; deliverables?: any; workingDir?: string; model?: string; thinking?: string; requires?: Names; module?: string; payload?: any; isolationLevel?: IsolationLevel; blockedBy?: Array<string>; onParentFailure?: "block" | "run"; parent?: Id; parents?: Array<{ id: string; state: TaskState | null; result?: any; resultCut?: true }>; children?: Array<{ id: Id; state: TaskState; result: any; resultCut?: true }>; notBefore?: Time; uniqueKey?: Name; onConflict?: "existing" | "reject" | "replace"; uniqueForMs?: number; supersededBy?: Id; verdictFor?: Id; concurrencyKey?: Name; credential?: Name; budget?: TaskBudget; labels?: Names; env?: Record<string, string>; worktree?: TaskWorktree; workflow?: Workflow; stage?: Stage; gates?: Array<Name>; gatesPassed?: Array<Name>; metadata?: Record<string, any>; queue: Name; owner: Name | null; priority: number; executor: Name | null; startBy?: Time; finishBy?: Time; timeoutMs: number; maxAttempts: number; status: TaskStatus; state: TaskState; attempt: number; spent: number; crashes: number; workerId: AnyId | null; fence: Decimal | null; leaseMs: number | null; stopping?: true; runMs?: number; parking?: true; result: any; error: Failure | null; previousError?: Failure; sessionId?: string; checkpoint?: any; question?: Question; answer?: Answer; evidence?: any; note?: string; percent?: number; report?: { outcome: "complete" | "review" | "fail" | "block" | "release" | "wait"; result?: any; evidence?: any; error?: Failure }; createdAt: Moment; updatedAt: number; version: number; reason?: string; deduplicated?: true; warnings?: Array<string>; why?: { reason: string; text: string; try?: string }; tells?: Array<{ id: number; text: string; at: Moment; heard?: true }>; usage?: TaskUsage; schedule?: { id: Id; at: Moment }; group?: string; blockedByGroups?: Array<string> };
/** Why an attempt failed. */
export type Failure = { code: string; message: string; class: FailureClass; retryAt?: Time; retry?: false; credential?: Name; details?: any; gate?: string; event?: string; evidence?: any };
/** What the failure does to the task. */
export type FailureClass = "task" | "timeout" | "crash" | "host" | "quota" | "policy" | "final";
/** Why an attempt failed, as the worker says it. The code decides what happens next; the class counts only for a code that the server does not know. */
export type FailureReport = { code?: string | null; message?: string | null; class?: string | null; retryAt?: Time | null; retry?: boolean | null; credential?: Name | null; details?: any };
/** Numbers the questions of one task. */
export type QuestionId = string;
/** What the worker wants to know from a person, or wants to be allowed. */
export type Question = { id?: QuestionId; text: string; tool?: string; input?: any; diff?: string; rule?: any; options?: Array<any>; freeText?: true; deadline?: Time };
/** What a person answered. */
export type Answer = { text?: string; allow?: "once" | "task"; deny?: true; late?: true };
/** Why a task is where it is. */
export type Why = { id: Id; state: TaskState; reason: "ready" | "parked" | "scheduled" | "back_off" | "dependency" | "children" | "predecessor" | "schedule" | "queue_paused" | "limited" | "execution_disarmed" | "not_autonomous" | "store_read_only" | "no_worker" | "queue_unserved" | "no_capability" | "no_executor" | "owner_away" | "owner_quarantined" | "held" | "kept_for_host" | "workers_busy" | "pool_quarantined" | "unconfirmed" | "running" | "stopping" | "overdue" | "asking" | "review" | "blocked" | "ended"; text: string; try?: string; until?: Moment; host?: string; slot?: string; code?: string };
/** A task that was handed out: yours until the lease ends. Every report about it carries the fence. */
export type Claim = { task: Task; fence: Decimal; leaseMs: LeaseLeft; attempt: number; checkpoint: any; questions?: Array<{ id: QuestionId; text: string; tool?: string; input?: any; diff?: string; rule?: any; options?: Array<any>; freeText?: true; deadline?: Time; answer: Answer }>; allowed?: Array<{ tool?: string; input?: any; rule?: any }>; fallback?: Name; fresh?: true; token?: string; judges?: { id: Id; action: "create_pr" | "validate" | "merge" | "verify"; state: TaskState; attempt: number; queue: Name; executor?: Name; title?: any; description?: any; instructions?: any; deliverables?: any; workingDir?: any; metadata?: any; result?: any; evidence?: any }; parent?: { id: Id; queue: Name; executor?: Name; isolationLevel?: IsolationLevel; workingDir?: string } };
export type ClaimNext = { workerId: AnyId; queues?: Names | null; slot?: Name | null; capabilities?: Names | null; executors?: Names | null; max?: number | null; waitMs?: number | null; leaseMs?: Lease; resumeOwned?: boolean | null; includeStatuses?: Array<"ready" | "pending"> | null; requestId?: Name | null; tokens?: boolean | null; finish?: Array<Finish> | null; credentials?: Record<string, Name | Array<Name>> | null; subtasks?: Record<string, Name | Array<Name>> | null; fallback?: Record<string, Name | Array<Name>> | null };
export type ClaimOne = { workerId: AnyId; slot?: Name | null; capabilities?: Names | null; executors?: Names | null; leaseMs?: Lease; resumeOwned?: boolean | null; includeStatuses?: Array<"ready" | "pending"> | null; requestId?: Name | null; credentials?: Record<string, Name | Array<Name>> | null; subtasks?: Record<string, Name | Array<Name>> | null; fallback?: Record<string, Name | Array<Name>> | null };
/** How a claim ends: as its own report would say it, with the fields that one has. */
export type Finish = { id: AnyId; fence: Decimal; outcome: "complete" | "review"; result?: any; evidence?: any; byReport?: ByReport } | { id: AnyId; fence: Decimal; outcome: "fail" | "block"; error: FailureReport; evidence?: any; byReport?: ByReport } | { id: AnyId; fence: Decimal; outcome: "release"; reason?: string | null; delayMs?: number | null; byReport?: ByReport } | { id: AnyId; fence: Decimal; outcome: "wait"; byReport?: ByReport };
/** true: what is sent here is what the supervisor saw, and the server weighs it against what the work itself reported with the token of its claim (see spec/states.md, "By its report"). `state` says what became of the task. */
export type ByReport = boolean | null;
/** What became of one of them. */
export type Finished = { id: string; ok: boolean; state?: TaskState; code?: Code };
export type Claims = { claims: Array<Claim>; finished?: Array<Finished> };
/** What the server wants of a worker: stop that task, end the process of one that has waited long enough for an answer and give its claim back (park), take no new work, end; or that the work of the task has said how it ended (see report), so that its processes may be waited for; or that people told the task something (see tells). */
export type Command = { type: "cancel" | "park" | "reported" | "tell"; task: string } | { type: "quiet" | "terminate" };
export type Progress = { leaseMs: LeaseLeft; commands: Array<Command> };
/** Who reports. Must be there, unless the credential is one for that worker, or for that claim, alone. */
export type Reporter = AnyId | null;
/** The fence of the claim. Must be there, unless the credential is one for that claim alone. */
export type Proof = Decimal | null;
export type ProgressReport = { workerId?: Reporter; fence?: Proof; note?: string | null; percent?: number | null; leaseMs?: Lease; event?: Name | null; data?: any; session?: null | string | { id: string; [more: string]: any }; usage?: { inputTokens?: number | null; outputTokens?: number | null; cacheReadTokens?: number | null; cacheWriteTokens?: number | null; turns?: number | null; toolCalls?: number | null; usd?: number | null }; prompt?: string | null; told?: number | null };
export type CompleteReport = { workerId?: Reporter; fence?: Proof; result?: any; evidence?: any; byReport?: ByReport };
export type FailReport = { workerId?: Reporter; fence?: Proof; error: FailureReport; evidence?: any; byReport?: ByReport };
export type ReviewReport = { workerId?: Reporter; fence?: Proof; result?: any; evidence?: any };
export type ErrorReport = { workerId?: Reporter; fence?: Proof; error: FailureReport };
export type ReleaseReport = { workerId?: Reporter; fence?: Proof; reason?: string | null; delayMs?: number | null; byReport?: ByReport };
export type LogAppend = { workerId?: AnyId | null; fence?: Proof; offset: number; data: string; streams?: Array<number> | null; dropped?: number | null };
export type LogAppended = { attempt: number; next: number };
/** A part of the output of an attempt. It never crosses a gap. */
export type LogPiece = { attempt: number; offset: number; data: string; records?: Array<{ kind: "message" | "tool" | "tool_failed" | "retry" | "stint" | "output"; atMs?: number; name?: string; text: string }>; streams?: Array<number>; dropped: number; length: number; next: number };
export type Note = { id?: Name | null; type: string; status?: string | null; data?: any };
/** The event that it became, now or the first time. */
export type Noted = { task: Id; seq: number; time: Moment; type: "task.noted"; stage?: Stage };
/** A question, or the id of one that its holder takes back. */
export type AskReport = { workerId?: Reporter; fence?: Proof; question?: string; options?: Array<any> | null; freeText?: boolean | null; deadline?: Time | null; data?: { tool?: string | null; input?: any; diff?: string | null; rule?: any }; withdraw?: QuestionId };
export type WaitReport = { workerId?: Reporter; fence?: Proof };
/** The answer in words; or `allow`; or `deny`, with or without words. `question` is the id of the question that is answered: needed once the attempt has asked twice, and refused (`question_changed`) if the task asks another one by then. */
export type AnswerBody = { question?: QuestionId | null; text?: string | null; allow?: "once" | "task" | null; deny?: boolean | null };
export type Reason = { reason?: string | null };
export type Retry = { reason?: string | null; fresh?: boolean | null };
export type Nothing = Record<string, any>;
/** Up to 1000 tasks, as a list or under "tasks". */
export type Batch = Drafts | { tasks: Drafts };
export type Drafts = Array<any>;
export type BatchResults = { results: Array<{ ok: true; status: 200 | 201; task: Task | TaskFound } | { ok: false; status: number; code: Code; detail?: string; errors?: Errors }> };
export type Replaces = { workerId: AnyId; pid: number; startTime: number };
export type Registration = { workerId: AnyId; slot?: Name | null; capabilities?: Names | null; executors?: Names | null; maxConcurrent?: number | null; metadata?: Record<string, any> | null; host?: Name | null; bootId?: string | null; pid?: number | null; startTime?: number | null; version?: Name | null; replaces?: Replaces | null; leaseMs?: Lease; credentials?: Record<string, Name | Array<Name>> | null; subtasks?: Record<string, Name | Array<Name>> | null; fallback?: Record<string, Name | Array<Name>> | null };
/** A sign of life, and what changed since the last. The names in brackets are those of the liveness protocol, which may also be written as worker_instance_key or WorkerInstanceKey; of two names for the same thing send one. */
export type Beat = { workerId?: AnyId | null; workerInstanceKey?: AnyId | null; worker_instance_key?: AnyId | null; WorkerInstanceKey?: AnyId | null; token?: string | null; leaseMs?: number | null; leaseDuration?: number | string | null; lease_duration?: number | string | null; LeaseDuration?: number | string | null; boundTasks?: Array<AnyId> | null; boundActivities?: Array<AnyId> | null; bound_activities?: Array<AnyId> | null; BoundActivities?: Array<AnyId> | null; unboundTasks?: Array<AnyId> | null; unboundActivities?: Array<AnyId> | null; unbound_activities?: Array<AnyId> | null; UnboundActivities?: Array<AnyId> | null; slot?: Name | null; capabilities?: Names | null; executors?: Names | null; maxConcurrent?: number | null; metadata?: Record<string, any> | null; host?: Name | null; bootId?: string | null; pid?: number | null; startTime?: number | null; version?: Name | null; replaces?: Replaces | null; credentials?: Record<string, Name | Array<Name>> | null; subtasks?: Record<string, Name | Array<Name>> | null; fallback?: Record<string, Name | Array<Name>> | null };
export type WorkerState = "unknown" | "active" | "quiet" | "terminating" | "inactive";
export type Registered = { workerId: AnyId; state: WorkerState; token: BeatToken; leaseMs: number; credential?: string };
export type Standing = { workerId: AnyId; state: WorkerState; token: BeatToken; leaseMs: number; lost: Array<string>; commands: Array<Command> };
/** Whether there is something that a worker should beat for at once. */
export type News = { workerId: AnyId; news: boolean; seq: number };
/** One process that works. */
export type Worker = { workerId: AnyId; state: WorkerState; ended?: "expired" | "shutdown" | "terminated" | "replaced"; endedAt?: Moment; slot: Name | null; capabilities?: Names; executors?: Array<Name>; queues?: Array<Name>; anyQueue?: true; maxConcurrent: number; held: number; leaseMs: LeaseLeft; leaseGrantedMs: number; registeredAt: Moment; lastBeatAt: number | null; host?: Name; bootId?: string; pid?: number; startTime?: number; metadata?: Record<string, any>; tasks?: Array<string>; heartbeatAgeMs: number | null; instance: number; restarts: number; version?: Name };
/** A stable name that workers fill. */
export type Slot = { name: Name; state: "empty" | "filled" | "quarantined" | "trial"; workerId: AnyId | null; since: number | null; trialAt?: number | null; crashes: number; restarts: number };
export type Queue = { name: Name; state: "open" | "paused" | "draining"; ready?: number; tasks?: { pending: number; scheduled: number; waiting: number; ready: number; claimed: number; running: number; asking: number; review: number; blocked: number }; budget?: DayBudget; spentToday?: SpentToday; workers?: number; oldestReadyAt?: Moment; why?: { reason: string; text: string; try?: string }; live?: number; limits?: { concurrency?: number; perKey?: number; keys?: Record<string, number>; sequential?: true; rate?: Rate; review?: number; fair?: true; maxOpen?: number } };
export type QueueKey = { key?: string | null; live: number; begun: number; waiting: number };
/** So many claims in a time, evenly spaced. Filling the bucket takes a year at most. */
export type Rate = { count: number; perMs: number; burst?: number | null; per?: "queue" | "key" | null };
export type QueueLimits = { concurrency?: number | null; perKey?: number | null; keys?: Record<string, number | null> | null; sequential?: boolean | null; rate?: Rate | null; review?: number | null; fair?: boolean | null; maxOpen?: number | null; budget?: DayBudgetWanted; reason?: string | null };
/** An account whose tasks are passed over. */
export type Hold = { credential: Name; state: "held" | "probing" | "releasing"; until?: Moment | null; since: Moment; code?: "QUOTA" | "AUTH" | "UPSTREAM" | "BUDGET_EXCEEDED" | "OTHER"; tasks: number };
export type HoldWanted = { credential: Name; until?: Time | null; reason?: string | null };
export type HoldLifted = { credential: Name; state: "none" };
/** An account that a live worker announced; or, without executor and worker, one that has a budget or was used today. */
export type Account = { name: Name; executor: Name | null; worker: string | null; budget?: DayBudget; spentToday?: SpentToday };
/** What agents may use from midnight to midnight, UTC. Tokens are those of input, output and of what is written to a cache. A price that is not known counts as nothing. */
export type DayBudget = { usd?: number; tokens?: number; turns?: number; toolCalls?: number };
/** A part that is not named stays; null lifts it, and null in place of the object lifts all. */
export type DayBudgetWanted = { usd?: number | null; tokens?: number | null; turns?: number | null; toolCalls?: number | null };
/** What agents have used since midnight, UTC, as far as they said. */
export type SpentToday = { usd: number; tokens: number; turns: number; toolCalls: number };
export type AccountWanted = { budget: DayBudgetWanted; reason?: string | null };
export type AccountBudget = { name: Name; budget?: DayBudget; spentToday: SpentToday };
/** Something that happened; see spec/events.md. */
export type StintEvent = { seq: number; time: Moment; type: "task.created" | "task.updated" | "task.claimed" | "task.confirmed" | "task.progressed" | "task.asked" | "task.answered" | "task.reviewed" | "task.completed" | "task.failed" | "task.blocked" | "task.released" | "task.expired" | "task.requeued" | "task.cancelled" | "task.retried" | "task.parked" | "task.unparked" | "task.orphan_result" | "task.purged" | "claim.unconfirmed" | "claim.rebased" | "worker.registered" | "worker.updated" | "worker.quiet" | "worker.terminating" | "worker.inactive" | "slot.quarantined" | "slot.unquarantined" | "queue.paused" | "queue.resumed" | "queue.draining" | "queue.updated" | "queue.limited" | "queue.idle" | "queue.drained" | "server.started" | "server.restored" | "server.degraded" | "token.created" | "token.revoked" | "token.key_rotated" | "token.admin_replaced" | "token.renewed" | "token.settled" | "server.audited" | "task.noted" | "session.started" | "session.output" | "session.usage" | "session.gone" | "session.ended" | "execution.armed" | "execution.disarmed" | "task.stage_changed" | "gate.opened" | "gate.passed" | "gate.rejected" | "slot.assigned" | "hold.opened" | "hold.extended" | "hold.probing" | "hold.closed" | "schedule.created" | "schedule.updated" | "schedule.removed" | "schedule.fired" | "schedule.skipped" | "schedule.failing" | "group.closed" | "group.ended" | "group.removed" | "bulk.started" | "bulk.ended" | "task.suspended" | "budget.near" | "budget.spent" | "budget.updated"; task?: string; worker?: string; session?: string; actor?: string; data: { from?: TaskState | Moment; state?: TaskState; attempt?: number; fence?: Decimal; spent?: number; crashes?: number; leaseMs?: number; retryAt?: Moment; message?: string; stage?: Stage; fromStage?: Stage; action?: "create_pr" | "validate" | "merge" | "verify"; gate?: string; credential?: string; part?: "usd" | "tokens" | "turns" | "toolCalls"; [more: string]: any } };
export type Events = { events: Array<StintEvent>; next: string };
/** What it may do; see spec/credentials.md. */
export type TokenKind = "admin" | "operator" | "producer" | "worker" | "approver" | "emit" | "viewer" | "metrics" | string;
/** A credential for somebody; or one for a claim that the caller holds, to hand to the program that does the work. */
export type TokenDraft = { kind: TokenKind; name: string; queues?: Array<Name> | null; expiresInMs?: number | null; task?: null; fence?: null; role?: null; uses?: null; tokenLivesMs?: null } | { kind: "claim"; task: AnyId; fence: Decimal; name?: null; queues?: null; expiresInMs?: null; role?: null; uses?: null; tokenLivesMs?: null } | { kind: "login"; name?: string | null; role?: LoginRole | null; queues?: null; expiresInMs?: null; task?: null; fence?: null; uses?: null; tokenLivesMs?: null } | { kind: "join"; name?: string | null; queues?: Array<Name> | null; expiresInMs?: number | null; uses?: number | null; tokenLivesMs?: number | null; task?: null; fence?: null; role?: null };
export type SigningKeys = { keys: Array<{ id: string; createdAt: Moment | null; signs: boolean }> };
/** A credential, without its secret. */
export type Token = { id: string; kind: TokenKind | "join"; name: string; queues?: Names; createdAt: Moment; createdBy: string; expiresAt: Moment | null; revokedAt?: Moment; revokedBy?: string; uses?: number; used?: number; tokenLivesMs?: number; join?: string; renewInMs?: number; renewedAt?: Moment; previousUntil?: Moment; token?: string };
export type ClaimToken = { kind: "claim"; task: Id; fence: Decimal; workerId: AnyId; token: string };
export type BackupWanted = { file?: string | null };
export type Backup = { file: string; path: string; bytes: number; lastEvent: number };
export type Query = { sql: string; params?: Array<string | number | boolean | null> | null };
export type QueryAnswer = { columns: Array<string>; rows: Array<Array<string | number | null | { base64: string }>>; truncated: boolean };
/** Where a value came from: the name of the flag or variable, or the path of the file with line and column. */
export type ConfigOrigin = "default" | "file" | "environment" | "flag";
export type Config = { schema: 1; home: string; keys: Array<{ key: string; value: string | number | boolean; source: ConfigOrigin; origin?: string; line?: number; column?: number }>; ignored: Array<{ key: string; program: string; names?: string; source: ConfigOrigin; origin?: string; line?: number; column?: number }>; problems: Array<any> };
export type Version = { name: "stint"; version: string; api: number; store?: string; schema?: number; generation?: number; starts?: number; startedAt?: Moment; uptimeMs?: number; now?: Moment; armed?: boolean };
/** What is wrong, field by field. */
export type Errors = Array<{ field: string; message: string }>;
/** Programs rely on this; see spec/refusals.md. */
export type Code = "invalid" | "not_found" | "forbidden" | "task_exists" | "stale_claim" | "not_claimed" | "claimed_by_other" | "already_terminal" | "bad_transition" | "question_changed" | "queue_paused" | "queue_draining" | "limited" | "group_closed" | "in_use" | "slot_taken" | "slot_quarantined" | "worker_full" | "TOKEN_MISMATCH" | "WORKER_INACTIVE" | "cursor_gone" | "backup_running" | "backup_exists" | "bad_offset" | "version_mismatch" | "idempotency_conflict" | "too_large" | "unauthorized" | "method_not_allowed" | "unsupported_media_type" | "wrong_host" | "rate_limited" | "quota_exceeded" | "queue_full" | "unavailable" | "disk_low" | "store_damaged" | "not_leader" | "busy" | "bad_request" | "EXECUTION_DISARMED" | "NOT_AUTONOMOUS_TASK" | "gate_required" | "schedule_exists" | "code_gone";
/** Of a store that several servers share, in PostgreSQL: which of them leads. */
export type Leader = { name: string; url?: string; since: number; here: boolean };
/** Why nothing was changed (RFC 9457). */
export type Problem = { type: string; title: string; status: number; code: Code; detail?: string; errors?: Errors; state?: TaskState; token?: BeatToken; holder?: string; needs?: string; oldest?: string; next?: string; finished?: Array<Finished>; length?: number; question?: QuestionId; limit?: "hold" | "concurrency" | "perKey" | "sequential" | "rate" | "review" | "budget"; until?: Moment | null };
/** OpenAPI 3.1. */
export type Contract = { openapi: "3.1.0"; info: Record<string, any>; paths: Record<string, any> };
/** A heartbeat as slot workers write it. Fields that are not known are left out. */
export type SlotBeat = { slot: string; status: "idle" | "working" | "offline"; task?: Id | null; taskTitle?: string | null; sessionId?: string | null; lastUpdate?: Time | null; startedAt?: Time | null; metadata?: { workerPid?: number | null }; [more: string]: any };
/** A slot and what its worker does. */
export type Heartbeat = { slot: Name; status: "idle" | "working" | "offline"; task: AnyId | null; taskTitle: string | null; sessionId: string | null; lastUpdate: Moment; startedAt: Moment; metadata: { workerPid: number | null; workerVersion: string | null; restartCount: number; taskStartedAt?: Moment; offlineReason?: string; detectedAt?: Moment; [more: string]: any } };
/** A slot in the other historical form. */
export type SlotRow = { slot: Name; label: string; role: string; task: string | null; mode: "active" | "waiting"; lastBeatAt: string; beats: Array<{ at: string }> };
/** The document of all slots: a map, or with shape=array a list. */
export type Heartbeats = { workers: { "slot-1"?: Heartbeat; "slot-2"?: Heartbeat; "slot-3"?: Heartbeat } } | { updatedAt: string; workers: Array<SlotRow> };
/** An agent to be run. Fields that are not known are left out. */
export type Spawn = { sessionLabel?: AnyId | null; channel?: Name | null; prompt?: string | null; model?: Name | null; thinking?: Name | null; autoStart?: boolean | null; taskId?: AnyId | null; [more: string]: any };
/** A session in a list. */
export type SessionRow = { id: AnyId; taskId: AnyId; status: "pending" | "queued" | "running" | "stopping" | "asking" | "completed" | "failed" | "stopped"; completed: boolean; error: string | null; agentSessionId: string | null; channel: string | null; model: string | null; thinking: string | null; adapter: string | null; host: string | null; workerId: AnyId | null; attempt: number; createdAt: Moment; startedAt: number | null; endedAt: number | null };
/** A session by itself. */
export type Session = { id: AnyId; taskId: AnyId; status: "pending" | "queued" | "running" | "stopping" | "asking" | "completed" | "failed" | "stopped"; completed: boolean; error: string | null; agentSessionId: string | null; channel: string | null; model: string | null; thinking: string | null; adapter: string | null; host: string | null; workerId: AnyId | null; attempt: number; createdAt: Moment; startedAt: number | null; endedAt: number | null; prompt: string | null; attach: string | null; result: any; usage?: TaskUsage };
/** What the agent of the last attempt was told first, as its worker said it. */
export type SessionPrompt = { id: AnyId; taskId: AnyId; attempt: number; prompt: string | null };
export type Execution = { armed: boolean; since: Moment | null };
export type ExecutionWanted = { armed: boolean; reason?: string | null };
/** Of a workflow; see spec/workflows.md. */
export type Stage = "allocated" | "in_progress" | "building" | "pr_created" | "reviewing" | "validated" | "merged" | "deploying" | "verifying" | "completed" | "failed";
/** autopilot, autopilot-deploy, or one of the server's configuration. */
export type Workflow = string;
export type WorkflowPlan = { name: Workflow; text: string; last: Stage; builtIn: boolean; rules: Array<{ events: Array<string>; from: Array<Stage>; guards: Array<"holder" | "review" | "unheld" | "failed" | "success" | "noPr" | "verdict" | "gated">; to: Stage; action?: "create_pr" | "validate" | "merge" | "verify"; onReject?: Stage; reports?: boolean }> };
export type Verdict = { verdict: "pass" | "reject"; reason?: string | null; evidence?: any };
/** Something that waits for a verdict, or for an answer. */
export type Approval = { task: Id; kind: "gate" | "question"; gate?: Name; question?: Question; title?: string; queue: Name; stage?: Stage; attempt: number; since: Moment };
/** ISO 8601, UTC, with milliseconds. */
export type IsoTime = string;
export type IsoTimeOrNull = IsoTime | null;
/** No, in the words of this surface. */
export type ConnectorRefusal = { ok: false; error: string; error_code?: Code; claimed?: false; released?: false; reason?: string; vtid?: string; task_state?: TaskState; claimed_by?: string; expires_at?: IsoTime; timestamp?: IsoTime };
export type ConnectorTask = { vtid: Id; title: string | null; summary: string | null; layer: string | null; module: string | null; spec_status: string | null; status: "scheduled" | "in_progress" | "in_review" | "blocked" | "failed" | "completed" | "cancelled"; state: Stage; is_terminal: boolean; priority: number; dispatched_at: IsoTimeOrNull; spec_snapshot_id: string; created_at: IsoTime; updated_at: IsoTime; claimed_by: string | null; claim_started_at: IsoTimeOrNull; claim_expires_at: IsoTimeOrNull };
export type ConnectorRegister = { worker_id: AnyId; capabilities?: Names | null; max_concurrent?: number | null; version?: string | null; metadata?: Record<string, any> | null; [more: string]: any };
export type ConnectorClaimWanted = { worker_id: AnyId; expires_minutes?: number | null; fence?: Decimal | null; [more: string]: any };
export type ConnectorProgress = { worker_id: AnyId; event: string; message?: string | null; metadata?: Record<string, any> | null; fence?: Decimal | null; [more: string]: any };
export type ConnectorRelease = { worker_id: AnyId; reason?: string | null; fence?: Decimal | null; [more: string]: any };
export type ConnectorBeat = { worker_id: AnyId; active_vtid?: string | null; [more: string]: any };
export type ConnectorWorker = { worker_id: string; capabilities: Array<string>; max_concurrent: number; status: "active"; registered_at: IsoTimeOrNull; last_heartbeat_at: IsoTimeOrNull; current_vtid: string | null; metadata: Record<string, any> };
export type ItemStatus = "ready" | "pending" | "claimed" | "in_progress" | "done" | "failed";
/** A task as clients of the clawnsole workqueue know it. */
export type Item = { id: AnyId; queue: Name; title: string; instructions: string; priority: number; status: ItemStatus; claimedBy: string; claimedAt: string; leaseUntil: number; attempts: number; lastError: string; createdAt: string; updatedAt: string; dedupeKey?: string; lastNote?: string; result?: any; meta?: Record<string, any>; fence?: string; _deduped?: true };
export type Enqueue = { queue: string; title?: string | null; instructions?: string | null; priority?: number | string | null; dedupeKey?: string | null; meta?: Record<string, any> | null };
export type QueueNames = Array<string> | null;
/** The queues are those that are named; else those assigned to the agent; else the default. */
export type ItemClaim = { agentId: string; queues?: QueueNames; defaultQueues?: Array<string> | null; leaseMs?: number | string | null; includeStatuses?: Array<string> | string | null; resumeOwned?: any; preferOwned?: any };
export type ItemReport = { itemId: string; agentId: string; fence?: string | number | null; note?: string | null; leaseMs?: number | string | null; result?: any; error?: string | null; status?: any };
export type ItemAnswer = { ok: true; item: Item | ItemFound | null };
/** What a credential that may not read gets of the item that has the dedupeKey. */
export type ItemFound = { id: Id; status: string; _deduped: true };
export type ItemClaimed = { ok: true; item: Item | null; reason?: "NO_QUEUES"; queues?: Array<Name>; queuesSource?: "requested" | "assignment" | "default" };
export type Items = { ok: true; items: Array<Item>; next?: string };
export type ItemSummary = { ok: true; queue?: string; counts: Record<string, number>; active: Array<Item> };
export type ItemQueues = { ok: true; queues: Array<Name> };
export type ItemUpdate = { itemId: string; patch?: { title?: string | null; instructions?: string | null; priority?: number | string | null; status?: string | null } };
export type ItemDelete = { itemId: string };
export type Assignment = { agentId: string; queues: Array<string> };
export type Assigned = { ok: true; agentId: Name; queues: Array<Name> };
export type Assignments = { ok: true; assignments: Record<string, Array<Name>> };
/** Items as work-queues.json of clawnsole has them. */
export type ItemImport = { items: Array<Record<string, any>>; dryRun?: boolean };
export type ItemsImported = { ok: true; items: Array<{ id: Id; imported: boolean; exists?: true; error?: Code; message?: string }> };
/** As the original refuses, with a sentence for people. */
export type ItemRefusal = { ok: false; error: string; message: string; errors?: Errors; claimedBy?: string; leaseUntil?: number; state?: TaskState };
export type TellBody = { text: string };
/** A schedule: one of cron, every and at. */
export type ScheduleDraft = { id: Id; cron?: string | null; every?: number | string | null; at?: number | string | null; tz?: string | null; task: Record<string, any>; jitterMs?: number | null; catchUp?: "one" | "skip" | "all" | null; overlap?: "skip" | "allow" | "queue" | "cancel" | null; paused?: boolean | null };
/** A job as OpenClaw's cron has it. The id is made of its name. */
export type CronJob = { name: string; schedule: { kind: "every" | "cron" | "at"; everyMs?: number; expr?: string; at?: any; tz?: string }; payload?: Record<string, any>; sessionTarget?: string; enabled?: boolean };
/** A merge patch (RFC 7396). Another way to say when takes the place of the one before. */
export type SchedulePatch = { cron?: string | null; every?: number | string | null; at?: number | string | null; tz?: string | null; task?: Record<string, any>; jitterMs?: number | null; catchUp?: "one" | "skip" | "all" | null; overlap?: "skip" | "allow" | "queue" | "cancel" | null; paused?: boolean | null };
/** One planned instant, or several that were skipped together. */
export type Occurrence = { at?: Moment; from?: Moment; to?: Moment; count?: number; outcome: "open" | "done" | "failed" | "cancelled" | "skipped"; task?: Id; reason?: "missed" | "overlap" | "queue_full" | "queue_draining" | "task_exists" | "quota_exceeded" | "parent_gone" | "too_large" | "made_before" | "refused" | "max_open" | "group_closed" };
/** A schedule as the server shows it. */
export type Schedule = { id: Id; cron?: string; every?: number; at?: Moment; tz: string; task: Record<string, any>; jitterMs: number; catchUp: "one" | "skip" | "all"; overlap: "skip" | "allow" | "queue" | "cancel"; paused: boolean; when: string; next: Moment | null; failing: boolean; failuresInARow: number; openTasks: number; made: number; skipped: number; history: Array<Occurrence>; problem?: string; madeBy: string; createdAt: Moment; updatedAt: Moment; version: number };
export type ScheduleNext = { id: Id; tz: string; paused: boolean; next: Array<Moment> };
export type ScheduleRun = { at?: number | null };
export type ScheduleGone = { id: Id };
/** What the browser may do: never more than the token that made the code. */
export type LoginRole = "viewer" | "approver" | "operator" | "admin";
/** A code for a browser. The link is `page`, or else the server's address, with /#k=CODE behind it. */
export type LoginCode = { id: string; kind: "login"; name: string; role: LoginRole; createdAt: Moment; expiresAt: Moment; code: string; page?: string };
export type LoginBody = { code: string };
/** A browser session, or the open code of one. */
export type Login = { id: string; name: string; role: LoginRole; maker: string; state: "code" | "open" | "ended"; createdAt: Moment; usedAt: Moment | null; endedAt: Moment | null; expiresAt: Moment; current: boolean; pageKey?: string };
/** The session, with the key that every request of the page carries in Stint-Page-Key. */
export type LoginMade = Login;
/** Tasks that belong together. */
export type Group = { name: Name; closed: boolean; ended: boolean; tasks: number; open: number; counts: { pending: number; scheduled: number; waiting: number; ready: number; claimed: number; running: number; asking: number; review: number; blocked: number; failed: number; done: number; cancelled: number }; createdAt: Moment; endedAt?: Moment };
/** The name is free. */
export type GroupGone = { name: Name };
/** One message of JSON-RPC 2.0, as the Model Context Protocol defines it: a request, a notification or an answer. */
export type RpcMessage = { jsonrpc: "2.0"; id?: any; method?: string; params?: Record<string, any>; result?: Record<string, any>; error?: { code: number; message: string; data?: any } };
export type BulkId = string;
/** purge removes tasks that have ended. */
export type BulkAction = "retry" | "cancel" | "park" | "unpark" | "move" | "priority" | "purge";
/** The filters of GET /api/tasks. One at least, or {"all":true}. */
export type BulkFilter = { status?: string | null; state?: string | null; queue?: string | null; owner?: string | null; label?: string | null; q?: string | null; schedule?: string | null; group?: string | null; workflow?: string | null; stage?: string | null; error?: string | null; all?: boolean | null; parent?: string };
export type BulkWanted = { filter: BulkFilter; action: BulkAction; value?: any; dryRun?: boolean | null };
export type GroupBulkWanted = { dryRun?: boolean | null };
export type BulkAccepted = { id: string; matched: number };
export type BulkCount = { action: BulkAction; matched: number; states: { pending?: number; scheduled?: number; waiting?: number; ready?: number; claimed?: number; running?: number; asking?: number; review?: number; blocked?: number; failed?: number; done?: number; cancelled?: number } };
/** One change for all tasks that match a filter. */
export type Bulk = { id: string; state: "running" | "done" | "stopped"; reason?: "by_person" | "revoked" | "restored" | "store_damaged"; action: BulkAction; value?: string | number; filter: { status?: string; state?: string; queue?: string; owner?: string; label?: string; q?: string; schedule?: string; group?: string; workflow?: string; stage?: string; error?: string; all?: boolean }; matched: number; done: number; skipped: Record<string, number>; actor: string; createdAt: Moment; endedAt?: Moment };
/** Failures with the same words. */
export type ErrorCause = { id: string; code: string; message: string; tasks: number; failed: number; blocked: number; firstAt: Moment; lastAt: Moment; task: string };
export type StatsCell = { done: number; failed: number; cancelled: number; claims: number; waitHalfMs?: number; waitMostMs?: number };
export type Stats = { span: "1h" | "24h" | "7d"; from: Moment; stepMs: number; steps: number; points: Array<{ at: Time; done: number; failed: number; cancelled: number; claims: number; waitHalfMs?: number; waitMostMs?: number }>; total: StatsCell; spent?: Array<{ executor: string; attempts: number; tokens: number; usd: number; unpriced: number; hours?: Array<{ at: Time; attempts: number; tokens: number; usd: number; unpriced: number }> }> };
/** A code for machines. */
export type JoinCode = { id: string; kind: "join"; name: string; queues?: Names; createdAt: Moment; createdBy: string; expiresAt: Moment; uses: number; used: number; tokenLivesMs: number; url?: string; code: string };
export type EnrolBody = { code: string; id: string; hash: string; host?: string | null };
export type RenewBody = { hash?: string | null };
/** The TLS certificate that the server shows. */
export type Certificate = { endsAt: Moment; stale?: true; problem?: string };
export type Delivery = { id: string; type: string; task?: Id; at: number; outcome: "delivered" | "retrying" | "given-up"; tries: number; status?: number; error?: string; againAt?: number };
export type DeliveryTold = { id: string; type: string; task?: string | null; at: number; outcome: "delivered" | "retrying" | "given-up"; tries: number; status?: number | null; error?: string | null; againAt?: number | null };
export type DeliveriesTold = { target: Id; url?: string | null; delivered?: number | null; givenUp?: number | null; missed?: number | null; waiting?: number | null; last: Array<DeliveryTold> };
export type Deliveries = { target: Id; by: string; toldAt: Moment; url?: string; delivered: number; givenUp: number; missed: number; waiting: number; last: Array<Delivery> };

/** What any call may be given. */
export interface CallOptions { signal?: AbortSignal; retries?: number; timeoutMs?: number }

export interface Sent {
  body?: unknown; query?: Record<string, unknown>; headers?: Record<string, string | undefined>;
  repeatable?: boolean; text?: boolean; key?: string;
}

/** One method for each operation of the server. */
export abstract class Api {
  abstract call(method: string, path: string, sent: Sent, options?: CallOptions): Promise<any>;

  /** List tasks: `GET /api/tasks`. */
  listTasks(options: { group?: string; parent?: string; status?: TaskStatus; state?: string; queue?: string; owner?: string; label?: string; q?: string; error?: string; schedule?: string; workflow?: Workflow; stage?: Stage; include?: "why"; limit?: number; after?: string } & CallOptions = {}): Promise<Array<Task>> {
    return this.call("GET", "/api/tasks", { query: { group: options.group, parent: options.parent, status: options.status, state: options.state, queue: options.queue, owner: options.owner, label: options.label, q: options.q, error: options.error, schedule: options.schedule, workflow: options.workflow, stage: options.stage, include: options.include, limit: options.limit, after: options.after }, repeatable: true }, options);
  }

  /** Create a task: `POST /api/tasks`. */
  createTask(body: TaskDraft = {}, options: { idempotencyKey?: string; traceparent?: string } & CallOptions = {}): Promise<Task | TaskFound | Task> {
    return this.call("POST", "/api/tasks", { body, headers: { "Idempotency-Key": options.idempotencyKey, traceparent: options.traceparent }, repeatable: true }, options);
  }

  /** Create many tasks at once: `POST /api/tasks/batch`. */
  createTasks(body: Batch, options: { idempotencyKey?: string; traceparent?: string } & CallOptions = {}): Promise<BatchResults> {
    return this.call("POST", "/api/tasks/batch", { body, headers: { "Idempotency-Key": options.idempotencyKey, traceparent: options.traceparent }, repeatable: true }, options);
  }

  /** Read a task: `GET /api/tasks/{id}`. */
  readTask(id: string, options: { include?: "why" } & CallOptions = {}): Promise<Task> {
    return this.call("GET", `/api/tasks/${encodeURIComponent(id)}`, { query: { include: options.include }, repeatable: true }, options);
  }

  /** Change fields of a task: `PUT /api/tasks/{id}`. */
  putTask(id: string, body: TaskPatch = {}, options: { ifMatch?: string } & CallOptions = {}): Promise<Task> {
    return this.call("PUT", `/api/tasks/${encodeURIComponent(id)}`, { body, headers: { "If-Match": options.ifMatch }, repeatable: true }, options);
  }

  /** Change fields of a task: `PATCH /api/tasks/{id}`. */
  changeTask(id: string, body: TaskPatch = {}, options: { ifMatch?: string } & CallOptions = {}): Promise<Task> {
    return this.call("PATCH", `/api/tasks/${encodeURIComponent(id)}`, { body, headers: { "If-Match": options.ifMatch }, repeatable: true }, options);
  }

  /** What happened to a task: `GET /api/tasks/{id}/events`. */
  listTaskEvents(id: string, options: { after?: string; limit?: number } & CallOptions = {}): Promise<Events> {
    return this.call("GET", `/api/tasks/${encodeURIComponent(id)}/events`, { query: { after: options.after, limit: options.limit }, repeatable: true }, options);
  }

  /** Tell what happened outside: `POST /api/tasks/{id}/events`. */
  noteTask(id: string, body: Note, options: { ifMatch?: string } & CallOptions = {}): Promise<Noted> {
    return this.call("POST", `/api/tasks/${encodeURIComponent(id)}/events`, { body, headers: { "If-Match": options.ifMatch }, repeatable: true, key: "id" }, options);
  }

  /** Why a task is where it is: `GET /api/tasks/{id}/why`. */
  explainTask(id: string, options: CallOptions = {}): Promise<Why> {
    return this.call("GET", `/api/tasks/${encodeURIComponent(id)}/why`, { repeatable: true }, options);
  }

  /** Read the output of an attempt: `GET /api/tasks/{id}/log`. */
  readLog(id: string, options: { attempt?: number; after?: number; limit?: number; stream?: "stdout" | "stderr"; as?: "text" | "records" } & CallOptions = {}): Promise<LogPiece> {
    return this.call("GET", `/api/tasks/${encodeURIComponent(id)}/log`, { query: { attempt: options.attempt, after: options.after, limit: options.limit, stream: options.stream, as: options.as }, repeatable: true }, options);
  }

  /** Append to the output of the attempt: `POST /api/tasks/{id}/log`. */
  appendLog(id: string, body: LogAppend, options: { ifMatch?: string } & CallOptions = {}): Promise<LogAppended> {
    return this.call("POST", `/api/tasks/${encodeURIComponent(id)}/log`, { body, headers: { "If-Match": options.ifMatch }, repeatable: true }, options);
  }

  /** Call a task off: `POST /api/tasks/{id}/cancel`. */
  cancelTask(id: string, body: Reason = {}, options: { ifMatch?: string } & CallOptions = {}): Promise<Task> {
    return this.call("POST", `/api/tasks/${encodeURIComponent(id)}/cancel`, { body, headers: { "If-Match": options.ifMatch }, repeatable: true }, options);
  }

  /** Open a task again with fresh budgets: `POST /api/tasks/{id}/retry`. */
  retryTask(id: string, body: Retry = {}, options: { ifMatch?: string } & CallOptions = {}): Promise<Task> {
    return this.call("POST", `/api/tasks/${encodeURIComponent(id)}/retry`, { body, headers: { "If-Match": options.ifMatch } }, options);
  }

  /** Set a task aside: `POST /api/tasks/{id}/park`. */
  parkTask(id: string, body: Reason = {}, options: { ifMatch?: string } & CallOptions = {}): Promise<Task> {
    return this.call("POST", `/api/tasks/${encodeURIComponent(id)}/park`, { body, headers: { "If-Match": options.ifMatch } }, options);
  }

  /** Let a parked task go on: `POST /api/tasks/{id}/unpark`. */
  unparkTask(id: string, body: Reason = {}, options: { ifMatch?: string } & CallOptions = {}): Promise<Task> {
    return this.call("POST", `/api/tasks/${encodeURIComponent(id)}/unpark`, { body, headers: { "If-Match": options.ifMatch } }, options);
  }

  /** Send a message to the worker of the task: `POST /api/tasks/{id}/tell`. */
  tellTask(id: string, body: TellBody, options: { ifMatch?: string } & CallOptions = {}): Promise<Task> {
    return this.call("POST", `/api/tasks/${encodeURIComponent(id)}/tell`, { body, headers: { "If-Match": options.ifMatch } }, options);
  }

  /** Answer what a worker asked: `POST /api/tasks/{id}/answer`. */
  answerTask(id: string, body: AnswerBody, options: { ifMatch?: string } & CallOptions = {}): Promise<Task> {
    return this.call("POST", `/api/tasks/${encodeURIComponent(id)}/answer`, { body, headers: { "If-Match": options.ifMatch } }, options);
  }

  /** Claim the next task: `POST /api/claims`. */
  claimNext(body: ClaimNext, options: CallOptions = {}): Promise<Claims> {
    return this.call("POST", "/api/claims", { body, repeatable: true, key: "requestId" }, options);
  }

  /** Claim this task: `POST /api/tasks/{id}/claim`. */
  claimTask(id: string, body: ClaimOne, options: { ifMatch?: string } & CallOptions = {}): Promise<Claim> {
    return this.call("POST", `/api/tasks/${encodeURIComponent(id)}/claim`, { body, headers: { "If-Match": options.ifMatch }, repeatable: true, key: "requestId" }, options);
  }

  /** Say that the work goes on: `POST /api/tasks/{id}/progress`. */
  reportProgress(id: string, body: ProgressReport, options: { ifMatch?: string } & CallOptions = {}): Promise<Progress> {
    return this.call("POST", `/api/tasks/${encodeURIComponent(id)}/progress`, { body, headers: { "If-Match": options.ifMatch }, repeatable: true }, options);
  }

  /** Finish a task: `POST /api/tasks/{id}/complete`. */
  completeTask(id: string, body: CompleteReport, options: { ifMatch?: string } & CallOptions = {}): Promise<Task> {
    return this.call("POST", `/api/tasks/${encodeURIComponent(id)}/complete`, { body, headers: { "If-Match": options.ifMatch }, repeatable: true }, options);
  }

  /** Report work that needs a verdict: `POST /api/tasks/{id}/review`. */
  reviewTask(id: string, body: ReviewReport, options: { ifMatch?: string } & CallOptions = {}): Promise<Task> {
    return this.call("POST", `/api/tasks/${encodeURIComponent(id)}/review`, { body, headers: { "If-Match": options.ifMatch }, repeatable: true }, options);
  }

  /** Report that the attempt failed: `POST /api/tasks/{id}/fail`. */
  failTask(id: string, body: FailReport, options: { ifMatch?: string } & CallOptions = {}): Promise<Task> {
    return this.call("POST", `/api/tasks/${encodeURIComponent(id)}/fail`, { body, headers: { "If-Match": options.ifMatch }, repeatable: true }, options);
  }

  /** Report that a person must change something first: `POST /api/tasks/{id}/block`. */
  blockTask(id: string, body: ErrorReport, options: { ifMatch?: string } & CallOptions = {}): Promise<Task> {
    return this.call("POST", `/api/tasks/${encodeURIComponent(id)}/block`, { body, headers: { "If-Match": options.ifMatch }, repeatable: true }, options);
  }

  /** Give a task back: `POST /api/tasks/{id}/release`. */
  releaseTask(id: string, body: ReleaseReport, options: { ifMatch?: string } & CallOptions = {}): Promise<Task> {
    return this.call("POST", `/api/tasks/${encodeURIComponent(id)}/release`, { body, headers: { "If-Match": options.ifMatch }, repeatable: true }, options);
  }

  /** Ask a person, or withdraw the question: `POST /api/tasks/{id}/ask`. */
  askAboutTask(id: string, body: AskReport, options: { ifMatch?: string } & CallOptions = {}): Promise<Task> {
    return this.call("POST", `/api/tasks/${encodeURIComponent(id)}/ask`, { body, headers: { "If-Match": options.ifMatch }, repeatable: true }, options);
  }

  /** Wait for the subtasks of a task: `POST /api/tasks/{id}/wait`. */
  waitForSubtasks(id: string, body: WaitReport, options: { ifMatch?: string } & CallOptions = {}): Promise<Task> {
    return this.call("POST", `/api/tasks/${encodeURIComponent(id)}/wait`, { body, headers: { "If-Match": options.ifMatch } }, options);
  }

  /** Register a worker: `POST /api/workers/register`. */
  registerWorker(body: Registration, options: CallOptions = {}): Promise<Registered> {
    return this.call("POST", "/api/workers/register", { body, repeatable: true }, options);
  }

  /** Say that a worker is alive: `POST /api/workers/heartbeat`. */
  beatWorker(body: Beat, options: CallOptions = {}): Promise<Standing> {
    return this.call("POST", "/api/workers/heartbeat", { body, repeatable: true }, options);
  }

  /** List workers: `GET /api/workers`. */
  listWorkers(options: { state?: "active" | "quiet" | "terminating" | "inactive"; limit?: number } & CallOptions = {}): Promise<Array<Worker>> {
    return this.call("GET", "/api/workers", { query: { state: options.state, limit: options.limit }, repeatable: true }, options);
  }

  /** Read a worker: `GET /api/workers/{id}`. */
  readWorker(id: string, options: CallOptions = {}): Promise<Worker> {
    return this.call("GET", `/api/workers/${encodeURIComponent(id)}`, { repeatable: true }, options);
  }

  /** Say goodbye: `DELETE /api/workers/{id}`. */
  removeWorker(id: string, options: { how?: "shutdown" | "terminated" } & CallOptions = {}): Promise<Worker> {
    return this.call("DELETE", `/api/workers/${encodeURIComponent(id)}`, { query: { how: options.how }, repeatable: true }, options);
  }

  /** Wait for news of a worker: `GET /api/workers/{id}/news`. */
  waitForNews(id: string, options: { after?: number; waitMs?: number } & CallOptions = {}): Promise<News> {
    return this.call("GET", `/api/workers/${encodeURIComponent(id)}/news`, { query: { after: options.after, waitMs: options.waitMs }, repeatable: true }, options);
  }

  /** Tell a worker to take no new work: `POST /api/workers/{id}/quiet`. */
  quietWorker(id: string, options: CallOptions = {}): Promise<Worker> {
    return this.call("POST", `/api/workers/${encodeURIComponent(id)}/quiet`, { body: {}, repeatable: true }, options);
  }

  /** Tell a worker to end: `POST /api/workers/{id}/terminate`. */
  terminateWorker(id: string, options: CallOptions = {}): Promise<Worker> {
    return this.call("POST", `/api/workers/${encodeURIComponent(id)}/terminate`, { body: {}, repeatable: true }, options);
  }

  /** List slots: `GET /api/slots`. */
  listSlots(options: CallOptions = {}): Promise<Array<Slot>> {
    return this.call("GET", "/api/slots", { repeatable: true }, options);
  }

  /** Count a crash of a slot: `POST /api/slots/{slot}/crash`. */
  crashSlot(slot: string, options: { idempotencyKey?: string } & CallOptions = {}): Promise<Slot> {
    return this.call("POST", `/api/slots/${encodeURIComponent(slot)}/crash`, { body: {}, headers: { "Idempotency-Key": options.idempotencyKey }, repeatable: true }, options);
  }

  /** Ask to run in a slot: `POST /api/slots/{slot}/enter`. */
  enterSlot(slot: string, body: { workerId: AnyId }, options: CallOptions = {}): Promise<Slot> {
    return this.call("POST", `/api/slots/${encodeURIComponent(slot)}/enter`, { body }, options);
  }

  /** Lift the quarantine of a slot: `POST /api/slots/{slot}/unquarantine`. */
  unquarantineSlot(slot: string, options: CallOptions = {}): Promise<Slot> {
    return this.call("POST", `/api/slots/${encodeURIComponent(slot)}/unquarantine`, { body: {} }, options);
  }

  /** The accounts that are held: `GET /api/holds`. */
  listHolds(options: CallOptions = {}): Promise<Array<Hold>> {
    return this.call("GET", "/api/holds", { repeatable: true }, options);
  }

  /** Hold an account: `POST /api/holds`. */
  holdAccount(body: HoldWanted, options: CallOptions = {}): Promise<Hold> {
    return this.call("POST", "/api/holds", { body }, options);
  }

  /** Lift a hold: `DELETE /api/holds/{credential}`. */
  liftHold(credential: string, options: CallOptions = {}): Promise<HoldLifted> {
    return this.call("DELETE", `/api/holds/${encodeURIComponent(credential)}`, {}, options);
  }

  /** The accounts that workers announced: `GET /api/credentials`. */
  listCredentials(options: CallOptions = {}): Promise<Array<Account>> {
    return this.call("GET", "/api/credentials", { repeatable: true }, options);
  }

  /** Set what may be used on an account in a day: `PATCH /api/credentials/{name}`. */
  budgetAccount(name: string, body: AccountWanted, options: CallOptions = {}): Promise<AccountBudget> {
    return this.call("PATCH", `/api/credentials/${encodeURIComponent(name)}`, { body }, options);
  }

  /** List queues: `GET /api/queues`. */
  listQueues(options: CallOptions = {}): Promise<Array<Queue>> {
    return this.call("GET", "/api/queues", { repeatable: true }, options);
  }

  /** One queue and its limits: `GET /api/queues/{name}`. */
  getQueue(name: string, options: CallOptions = {}): Promise<Queue> {
    return this.call("GET", `/api/queues/${encodeURIComponent(name)}`, { repeatable: true }, options);
  }

  /** Limit how many of its tasks, or of each concurrency key, are in work at a time: `PATCH /api/queues/{name}`. */
  limitQueue(name: string, body: QueueLimits, options: CallOptions = {}): Promise<Queue> {
    return this.call("PATCH", `/api/queues/${encodeURIComponent(name)}`, { body }, options);
  }

  /** The concurrency keys of a queue, those with the most tasks in work first: `GET /api/queues/{name}/keys`. */
  listQueueKeys(name: string, options: { limit?: number } & CallOptions = {}): Promise<Array<QueueKey>> {
    return this.call("GET", `/api/queues/${encodeURIComponent(name)}/keys`, { query: { limit: options.limit }, repeatable: true }, options);
  }

  /** Hand out nothing of a queue: `POST /api/queues/{name}/pause`. */
  pauseQueue(name: string, options: CallOptions = {}): Promise<Queue> {
    return this.call("POST", `/api/queues/${encodeURIComponent(name)}/pause`, { body: {}, repeatable: true }, options);
  }

  /** Open a queue again: `POST /api/queues/{name}/resume`. */
  resumeQueue(name: string, options: CallOptions = {}): Promise<Queue> {
    return this.call("POST", `/api/queues/${encodeURIComponent(name)}/resume`, { body: {}, repeatable: true }, options);
  }

  /** Add nothing more to a queue: `POST /api/queues/{name}/drain`. */
  drainQueue(name: string, options: CallOptions = {}): Promise<Queue> {
    return this.call("POST", `/api/queues/${encodeURIComponent(name)}/drain`, { body: {}, repeatable: true }, options);
  }

  /** List groups: `GET /api/groups`. */
  listGroups(options: CallOptions = {}): Promise<Array<Group>> {
    return this.call("GET", "/api/groups", { repeatable: true }, options);
  }

  /** Read a group: `GET /api/groups/{name}`. */
  getGroup(name: string, options: CallOptions = {}): Promise<Group> {
    return this.call("GET", `/api/groups/${encodeURIComponent(name)}`, { repeatable: true }, options);
  }

  /** Free the name of a group that has ended: `DELETE /api/groups/{name}`. */
  removeGroup(name: string, options: CallOptions = {}): Promise<GroupGone> {
    return this.call("DELETE", `/api/groups/${encodeURIComponent(name)}`, {}, options);
  }

  /** Let nothing more into a group: `POST /api/groups/{name}/close`. */
  closeGroup(name: string, options: CallOptions = {}): Promise<Group> {
    return this.call("POST", `/api/groups/${encodeURIComponent(name)}/close`, { body: {} }, options);
  }

  /** Cancel the tasks of a group: `POST /api/groups/{name}/cancel`. */
  cancelGroup(name: string, body: GroupBulkWanted = {}, options: { idempotencyKey?: string } & CallOptions = {}): Promise<BulkCount | BulkAccepted> {
    return this.call("POST", `/api/groups/${encodeURIComponent(name)}/cancel`, { body, headers: { "Idempotency-Key": options.idempotencyKey }, repeatable: true }, options);
  }

  /** Retry the tasks of a group: `POST /api/groups/{name}/retry`. */
  retryGroup(name: string, body: GroupBulkWanted = {}, options: { idempotencyKey?: string } & CallOptions = {}): Promise<BulkCount | BulkAccepted> {
    return this.call("POST", `/api/groups/${encodeURIComponent(name)}/retry`, { body, headers: { "Idempotency-Key": options.idempotencyKey }, repeatable: true }, options);
  }

  /** Change all tasks that match a filter: `POST /api/tasks/bulk`. */
  startBulk(body: BulkWanted, options: { idempotencyKey?: string } & CallOptions = {}): Promise<BulkCount | BulkAccepted> {
    return this.call("POST", "/api/tasks/bulk", { body, headers: { "Idempotency-Key": options.idempotencyKey }, repeatable: true }, options);
  }

  /** List bulk actions: `GET /api/bulk`. */
  listBulk(options: CallOptions = {}): Promise<Array<Bulk>> {
    return this.call("GET", "/api/bulk", { repeatable: true }, options);
  }

  /** How far a bulk action is: `GET /api/bulk/{id}`. */
  getBulk(id: string, options: CallOptions = {}): Promise<Bulk> {
    return this.call("GET", `/api/bulk/${encodeURIComponent(id)}`, { repeatable: true }, options);
  }

  /** Stop a bulk action: `DELETE /api/bulk/{id}`. */
  stopBulk(id: string, options: CallOptions = {}): Promise<Bulk> {
    return this.call("DELETE", `/api/bulk/${encodeURIComponent(id)}`, {}, options);
  }

  /** What failed, and why: `GET /api/errors`. */
  listErrors(options: { status?: TaskStatus; state?: string; queue?: string; owner?: string; label?: string; q?: string; schedule?: string; group?: string; workflow?: Workflow; stage?: Stage; error?: string } & CallOptions = {}): Promise<Array<ErrorCause>> {
    return this.call("GET", "/api/errors", { query: { status: options.status, state: options.state, queue: options.queue, owner: options.owner, label: options.label, q: options.q, schedule: options.schedule, group: options.group, workflow: options.workflow, stage: options.stage, error: options.error }, repeatable: true }, options);
  }

  /** List schedules: `GET /api/schedules`. */
  listSchedules(options: CallOptions = {}): Promise<Array<Schedule>> {
    return this.call("GET", "/api/schedules", { repeatable: true }, options);
  }

  /** Create a schedule: `POST /api/schedules`. */
  createSchedule(body: ScheduleDraft | CronJob, options: CallOptions = {}): Promise<Schedule> {
    return this.call("POST", "/api/schedules", { body }, options);
  }

  /** Read a schedule: `GET /api/schedules/{id}`. */
  getSchedule(id: string, options: CallOptions = {}): Promise<Schedule> {
    return this.call("GET", `/api/schedules/${encodeURIComponent(id)}`, { repeatable: true }, options);
  }

  /** Change a schedule; it starts from now: `PATCH /api/schedules/{id}`. */
  updateSchedule(id: string, body: SchedulePatch = {}, options: { ifMatch?: string } & CallOptions = {}): Promise<Schedule> {
    return this.call("PATCH", `/api/schedules/${encodeURIComponent(id)}`, { body, headers: { "If-Match": options.ifMatch } }, options);
  }

  /** Remove a schedule; its tasks that wait for the one before are cancelled: `DELETE /api/schedules/{id}`. */
  removeSchedule(id: string, options: { ifMatch?: string } & CallOptions = {}): Promise<ScheduleGone> {
    return this.call("DELETE", `/api/schedules/${encodeURIComponent(id)}`, { headers: { "If-Match": options.ifMatch } }, options);
  }

  /** Make a task of a schedule now: `POST /api/schedules/{id}/run`. */
  runSchedule(id: string, body: ScheduleRun = {}, options: { ifMatch?: string } & CallOptions = {}): Promise<Task> {
    return this.call("POST", `/api/schedules/${encodeURIComponent(id)}/run`, { body, headers: { "If-Match": options.ifMatch } }, options);
  }

  /** Make no more tasks: `POST /api/schedules/{id}/pause`. */
  pauseSchedule(id: string, options: { ifMatch?: string } & CallOptions = {}): Promise<Schedule> {
    return this.call("POST", `/api/schedules/${encodeURIComponent(id)}/pause`, { body: {}, headers: { "If-Match": options.ifMatch } }, options);
  }

  /** Go on from now: `POST /api/schedules/{id}/resume`. */
  resumeSchedule(id: string, options: { ifMatch?: string } & CallOptions = {}): Promise<Schedule> {
    return this.call("POST", `/api/schedules/${encodeURIComponent(id)}/resume`, { body: {}, headers: { "If-Match": options.ifMatch } }, options);
  }

  /** The next planned instants: `GET /api/schedules/{id}/next`. */
  nextOfSchedule(id: string, options: { n?: number } & CallOptions = {}): Promise<ScheduleNext> {
    return this.call("GET", `/api/schedules/${encodeURIComponent(id)}/next`, { query: { n: options.n }, repeatable: true }, options);
  }

  /** Read what happened: `GET /api/events`. */
  listEvents(options: { after?: string; limit?: number; only?: "audit" } & CallOptions = {}): Promise<Events> {
    return this.call("GET", "/api/events", { query: { after: options.after, limit: options.limit, only: options.only }, repeatable: true }, options);
  }

  /** List credentials: `GET /api/tokens`. */
  listTokens(options: CallOptions = {}): Promise<Array<Token>> {
    return this.call("GET", "/api/tokens", { repeatable: true }, options);
  }

  /** Give somebody a credential: `POST /api/tokens`. */
  createToken(body: TokenDraft, options: CallOptions = {}): Promise<Token | ClaimToken | LoginCode | JoinCode> {
    return this.call("POST", "/api/tokens", { body }, options);
  }

  /** Take a credential back: `DELETE /api/tokens/{id}`. */
  revokeToken(id: string, options: CallOptions = {}): Promise<Token> {
    return this.call("DELETE", `/api/tokens/${encodeURIComponent(id)}`, {}, options);
  }

  /** The keys that sign the tokens of worker instances and claims: `GET /api/signing-keys`. */
  listSigningKeys(options: CallOptions = {}): Promise<SigningKeys> {
    return this.call("GET", "/api/signing-keys", { repeatable: true }, options);
  }

  /** Sign with a new key: `POST /api/signing-keys`. */
  rotateSigningKey(options: CallOptions = {}): Promise<SigningKeys> {
    return this.call("POST", "/api/signing-keys", { body: {} }, options);
  }

  /** Does it run?: `GET /livez`. */
  livez(options: CallOptions = {}): Promise<{ status: "ok" }> {
    return this.call("GET", "/livez", { repeatable: true }, options);
  }

  /** Does it serve? As /readyz, for those who ask by this name: `GET /healthz`. */
  healthz(options: CallOptions = {}): Promise<{ status: "ready" | "standby"; leader?: Leader; damage?: number; certificate?: Certificate }> {
    return this.call("GET", "/healthz", { repeatable: true }, options);
  }

  /** Does it serve?: `GET /readyz`. */
  readyz(options: CallOptions = {}): Promise<{ status: "ready" | "standby"; leader?: Leader; damage?: number; places?: Array<string>; certificate?: Certificate }> {
    return this.call("GET", "/readyz", { repeatable: true }, options);
  }

  /** Does this server lead its store? For load balancers: `GET /health/leader`. */
  leader(options: CallOptions = {}): Promise<{ status: "leader"; leader?: Leader }> {
    return this.call("GET", "/health/leader", { repeatable: true }, options);
  }

  /** Counters and gauges for Prometheus: `GET /metrics`. */
  metrics(options: CallOptions = {}): Promise<string> {
    return this.call("GET", "/metrics", { repeatable: true, text: true }, options);
  }

  /** The effective configuration: `GET /api/config`. */
  readConfig(options: CallOptions = {}): Promise<Config> {
    return this.call("GET", "/api/config", { repeatable: true }, options);
  }

  /** Figures over time: `GET /api/stats`. */
  stats(options: { span?: "1h" | "24h" | "7d"; queue?: string } & CallOptions = {}): Promise<Stats> {
    return this.call("GET", "/api/stats", { query: { span: options.span, queue: options.queue }, repeatable: true }, options);
  }

  /** The last deliveries of webhooks: `GET /api/deliveries`. */
  listDeliveries(options: CallOptions = {}): Promise<Array<Deliveries>> {
    return this.call("GET", "/api/deliveries", { repeatable: true }, options);
  }

  /** Tell of the last deliveries to a target: `POST /api/deliveries`. */
  tellDeliveries(body: DeliveriesTold, options: CallOptions = {}): Promise<Deliveries> {
    return this.call("POST", "/api/deliveries", { body }, options);
  }

  /** Which server is it?: `GET /api/version`. */
  version(options: CallOptions = {}): Promise<Version> {
    return this.call("GET", "/api/version", { repeatable: true }, options);
  }

  /** What does it understand?: `GET /api/openapi.json`. */
  openapi(options: CallOptions = {}): Promise<Contract> {
    return this.call("GET", "/api/openapi.json", { repeatable: true }, options);
  }

  /** Make a backup while it serves: `POST /api/backup`. */
  backUp(body: BackupWanted = {}, options: CallOptions = {}): Promise<Backup> {
    return this.call("POST", "/api/backup", { body }, options);
  }

  /** Ask the store in SQL: `POST /api/query`. */
  query(body: Query, options: CallOptions = {}): Promise<QueryAnswer> {
    return this.call("POST", "/api/query", { body }, options);
  }

  /** The heartbeats of all slots: `GET /api/heartbeats`. */
  listHeartbeats(options: { shape?: "map" | "array" } & CallOptions = {}): Promise<Heartbeats> {
    return this.call("GET", "/api/heartbeats", { query: { shape: options.shape }, repeatable: true }, options);
  }

  /** Say what the worker of a slot does: `POST /api/heartbeats`. */
  beatSlot(body: SlotBeat, options: CallOptions = {}): Promise<Heartbeat> {
    return this.call("POST", "/api/heartbeats", { body, repeatable: true }, options);
  }

  /** Have an agent run: `POST /api/sessions/spawn`. */
  spawnSession(body: Spawn, options: CallOptions = {}): Promise<Session> {
    return this.call("POST", "/api/sessions/spawn", { body }, options);
  }

  /** List sessions: `GET /api/sessions`. */
  listSessions(options: CallOptions = {}): Promise<Array<SessionRow>> {
    return this.call("GET", "/api/sessions", { repeatable: true }, options);
  }

  /** Look at a session: `GET /api/sessions/{id}`. */
  getSession(id: string, options: CallOptions = {}): Promise<Session> {
    return this.call("GET", `/api/sessions/${encodeURIComponent(id)}`, { repeatable: true }, options);
  }

  /** Stop a session: `DELETE /api/sessions/{id}`. */
  stopSession(id: string, options: CallOptions = {}): Promise<Session> {
    return this.call("DELETE", `/api/sessions/${encodeURIComponent(id)}`, {}, options);
  }

  /** Read what its agent was told first: `GET /api/sessions/{id}/prompt`. */
  readSessionPrompt(id: string, options: CallOptions = {}): Promise<SessionPrompt> {
    return this.call("GET", `/api/sessions/${encodeURIComponent(id)}/prompt`, { repeatable: true }, options);
  }

  /** Read the log of a session: `GET /api/sessions/{id}/log`. */
  readSessionLog(id: string, options: { attempt?: number; after?: number; limit?: number; as?: "text" | "records" } & CallOptions = {}): Promise<LogPiece> {
    return this.call("GET", `/api/sessions/${encodeURIComponent(id)}/log`, { query: { attempt: options.attempt, after: options.after, limit: options.limit, as: options.as }, repeatable: true }, options);
  }

  /** A verdict at a gate: `POST /api/tasks/{id}/gates/{gate}`. */
  giveVerdict(id: string, gate: string, body: Verdict, options: { ifMatch?: string } & CallOptions = {}): Promise<Task> {
    return this.call("POST", `/api/tasks/${encodeURIComponent(id)}/gates/${encodeURIComponent(gate)}`, { body, headers: { "If-Match": options.ifMatch } }, options);
  }

  /** What waits for a person: `GET /api/approvals`. */
  listApprovals(options: CallOptions = {}): Promise<Array<Approval>> {
    return this.call("GET", "/api/approvals", { repeatable: true }, options);
  }

  /** The workflows that tasks may have: `GET /api/workflows`. */
  listWorkflows(options: CallOptions = {}): Promise<Array<WorkflowPlan>> {
    return this.call("GET", "/api/workflows", { repeatable: true }, options);
  }

  /** One workflow: `GET /api/workflows/{name}`. */
  getWorkflow(name: string, options: CallOptions = {}): Promise<WorkflowPlan> {
    return this.call("GET", `/api/workflows/${encodeURIComponent(name)}`, { repeatable: true }, options);
  }

  /** Is work handed out?: `GET /api/execution`. */
  getExecution(options: CallOptions = {}): Promise<Execution> {
    return this.call("GET", "/api/execution", { repeatable: true }, options);
  }

  /** The kill switch: `POST /api/execution`. */
  setExecution(body: ExecutionWanted, options: CallOptions = {}): Promise<Execution> {
    return this.call("POST", "/api/execution", { body, repeatable: true }, options);
  }

  /** Register a worker: `POST /api/v1/worker/orchestrator/register`. */
  connectorRegister(body: ConnectorRegister, options: CallOptions = {}): Promise<{ ok: true; worker_id: string; registered: true; reregistered?: true; registered_at: IsoTime; timestamp: IsoTime }> {
    return this.call("POST", "/api/v1/worker/orchestrator/register", { body }, options);
  }

  /** It goes, and gives back what it holds: `DELETE /api/v1/worker/orchestrator/register/{id}`. */
  connectorUnregister(id: string, options: CallOptions = {}): Promise<{ ok: true; worker_id: string; unregistered: true; timestamp: IsoTime }> {
    return this.call("DELETE", `/api/v1/worker/orchestrator/register/${encodeURIComponent(id)}`, {}, options);
  }

  /** Tasks that wait for a worker: `GET /api/v1/worker/orchestrator/tasks/pending`. */
  connectorPending(options: { workerId?: string; limit?: string } & CallOptions = {}): Promise<{ ok: true; tasks: Array<ConnectorTask>; count: number; worker_id: string | null; timestamp: IsoTime }> {
    return this.call("GET", "/api/v1/worker/orchestrator/tasks/pending", { query: { worker_id: options.workerId, limit: options.limit }, repeatable: true }, options);
  }

  /** Claim a task: `POST /api/v1/worker/orchestrator/tasks/{vtid}/claim`. */
  connectorClaim(vtid: string, body: ConnectorClaimWanted, options: CallOptions = {}): Promise<{ ok: true; claimed: true; vtid: Id; worker_id: string; fence: Decimal; title: string | null; summary: string | null; layer: string | null; module: string | null; spec_status: string | null; spec: string; spec_snapshot_id: string; state: Stage; attempt: number; claim_expires_at: IsoTime; expires_at: IsoTime; checkpoint?: any; previous_error?: Failure; timestamp: IsoTime }> {
    return this.call("POST", `/api/v1/worker/orchestrator/tasks/${encodeURIComponent(vtid)}/claim`, { body }, options);
  }

  /** Tell how it goes: `POST /api/v1/worker/orchestrator/tasks/{vtid}/progress`. */
  connectorProgress(vtid: string, body: ConnectorProgress, options: CallOptions = {}): Promise<{ ok: true; vtid: Id; event: string; state: Stage; fence?: Decimal; timestamp: IsoTime }> {
    return this.call("POST", `/api/v1/worker/orchestrator/tasks/${encodeURIComponent(vtid)}/progress`, { body }, options);
  }

  /** Give a task back: `POST /api/v1/worker/orchestrator/tasks/{vtid}/release`. */
  connectorRelease(vtid: string, body: ConnectorRelease, options: CallOptions = {}): Promise<{ ok: true; released: true; vtid: string; worker_id: string; reason?: string; timestamp: IsoTime }> {
    return this.call("POST", `/api/v1/worker/orchestrator/tasks/${encodeURIComponent(vtid)}/release`, { body }, options);
  }

  /** It is alive: `POST /api/v1/worker/orchestrator/heartbeat`. */
  connectorBeat(body: ConnectorBeat, options: CallOptions = {}): Promise<{ ok: true; worker_id: string; heartbeat_at: IsoTime; current_vtid: string | null; timestamp: IsoTime }> {
    return this.call("POST", "/api/v1/worker/orchestrator/heartbeat", { body }, options);
  }

  /** Workers that are alive: `GET /api/v1/worker/orchestrator/workers`. */
  connectorWorkers(options: CallOptions = {}): Promise<{ ok: true; workers: Array<ConnectorWorker>; count: number; timestamp: IsoTime }> {
    return this.call("GET", "/api/v1/worker/orchestrator/workers", { repeatable: true }, options);
  }

  /** Figures: `GET /api/v1/worker/orchestrator/stats`. */
  connectorStats(options: CallOptions = {}): Promise<{ ok: true; total_workers: number; active_workers: number; workers_with_tasks: number; pending_tasks: number; active_claims: number; tasks_today: number; execution_armed: boolean; timestamp: IsoTime }> {
    return this.call("GET", "/api/v1/worker/orchestrator/stats", { repeatable: true }, options);
  }

  /** Is it well?: `GET /api/v1/worker/orchestrator/health`. */
  connectorHealth(options: CallOptions = {}): Promise<{ ok: boolean; status: "healthy" | "degraded"; service: "worker-orchestrator"; execution_armed: boolean; timestamp: IsoTime }> {
    return this.call("GET", "/api/v1/worker/orchestrator/health", { repeatable: true }, options);
  }

  /** Add an item: `POST /api/workqueue/enqueue`. */
  enqueueItem(body: Enqueue, options: CallOptions = {}): Promise<ItemAnswer> {
    return this.call("POST", "/api/workqueue/enqueue", { body }, options);
  }

  /** Take the next item: `POST /api/workqueue/claim-next`. */
  claimItem(body: ItemClaim, options: CallOptions = {}): Promise<ItemClaimed> {
    return this.call("POST", "/api/workqueue/claim-next", { body }, options);
  }

  /** Say how an item goes: `POST /api/workqueue/transition`. */
  transitionItem(body: ItemReport, options: CallOptions = {}): Promise<ItemAnswer> {
    return this.call("POST", "/api/workqueue/transition", { body }, options);
  }

  /** Extend the lease of an item, with a note: `POST /api/workqueue/progress`. */
  progressItem(body: ItemReport, options: CallOptions = {}): Promise<ItemAnswer> {
    return this.call("POST", "/api/workqueue/progress", { body }, options);
  }

  /** An item is done: `POST /api/workqueue/done`. */
  finishItem(body: ItemReport, options: CallOptions = {}): Promise<ItemAnswer> {
    return this.call("POST", "/api/workqueue/done", { body }, options);
  }

  /** An item has failed, for good: `POST /api/workqueue/fail`. */
  failItem(body: ItemReport, options: CallOptions = {}): Promise<ItemAnswer> {
    return this.call("POST", "/api/workqueue/fail", { body }, options);
  }

  /** Change an item: `POST /api/workqueue/update`. */
  updateItem(body: ItemUpdate, options: CallOptions = {}): Promise<ItemAnswer> {
    return this.call("POST", "/api/workqueue/update", { body }, options);
  }

  /** Remove an item: `POST /api/workqueue/delete`. */
  deleteItem(body: ItemDelete, options: CallOptions = {}): Promise<ItemAnswer> {
    return this.call("POST", "/api/workqueue/delete", { body }, options);
  }

  /** Which queues agents work for: `GET /api/workqueue/assignments`. */
  listAssignments(options: CallOptions = {}): Promise<Assignments> {
    return this.call("GET", "/api/workqueue/assignments", { repeatable: true }, options);
  }

  /** Set the queues of an agent: `POST /api/workqueue/assignments`. */
  assignQueues(body: Assignment, options: CallOptions = {}): Promise<Assigned> {
    return this.call("POST", "/api/workqueue/assignments", { body }, options);
  }

  /** Take items over from clawnsole: `POST /api/workqueue/import`. */
  importItems(body: ItemImport, options: CallOptions = {}): Promise<ItemsImported> {
    return this.call("POST", "/api/workqueue/import", { body }, options);
  }

  /** One item: `GET /api/workqueue/item/{item}`. */
  inspectItem(item: string, options: CallOptions = {}): Promise<ItemAnswer> {
    return this.call("GET", `/api/workqueue/item/${encodeURIComponent(item)}`, { repeatable: true }, options);
  }

  /** Items, newest first: `GET /api/workqueue/items`. */
  listItems(options: { queue?: string; status?: string; limit?: number; order?: "newest" | "oldest"; after?: string } & CallOptions = {}): Promise<Items> {
    return this.call("GET", "/api/workqueue/items", { query: { queue: options.queue, status: options.status, limit: options.limit, order: options.order, after: options.after }, repeatable: true }, options);
  }

  /** Items by status, and those that are held: `GET /api/workqueue/summary`. */
  countItems(options: { queue?: string } & CallOptions = {}): Promise<ItemSummary> {
    return this.call("GET", "/api/workqueue/summary", { query: { queue: options.queue }, repeatable: true }, options);
  }

  /** Queues that have items, or are claimed from by default: `GET /api/workqueue/queues`. */
  listItemQueues(options: CallOptions = {}): Promise<ItemQueues> {
    return this.call("GET", "/api/workqueue/queues", { repeatable: true }, options);
  }

  /** A browser shows its code and gets a session: `POST /api/login`. */
  login(body: LoginBody, options: CallOptions = {}): Promise<LoginMade> {
    return this.call("POST", "/api/login", { body }, options);
  }

  /** List browser sessions: `GET /api/logins`. */
  listLogins(options: CallOptions = {}): Promise<Array<Login>> {
    return this.call("GET", "/api/logins", { repeatable: true }, options);
  }

  /** End a browser session: `DELETE /api/logins/{id}`. */
  endLogin(id: string, options: CallOptions = {}): Promise<Login> {
    return this.call("DELETE", `/api/logins/${encodeURIComponent(id)}`, {}, options);
  }

  /** Tools for agents, by MCP: `POST /mcp`. */
  mcp(body: RpcMessage, options: { admin?: string; transport?: string } & CallOptions = {}): Promise<RpcMessage> {
    return this.call("POST", "/mcp", { body, query: { admin: options.admin, transport: options.transport } }, options);
  }

  /** A machine shows its code and gets a token of a worker: `POST /api/enroll`. */
  enroll(body: EnrolBody, options: CallOptions = {}): Promise<Token> {
    return this.call("POST", "/api/enroll", { body }, options);
  }

  /** Give the caller's token a new secret: `POST /api/renew`. */
  renewToken(body: RenewBody, options: CallOptions = {}): Promise<Token> {
    return this.call("POST", "/api/renew", { body }, options);
  }
}
