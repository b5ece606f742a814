"""The HTTP contract: made from spec/openapi.json by tools/sdk-types. Do not edit."""
# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict
from urllib.parse import quote

Id: TypeAlias = "str"
Name: TypeAlias = "str"
Names: TypeAlias = "list[Name]"
AnyId: TypeAlias = "str"
Decimal: TypeAlias = "str"
BeatToken: TypeAlias = "str"
Time: TypeAlias = "int"
Moment: TypeAlias = "int"
LeaseLeft: TypeAlias = "int"
Lease: TypeAlias = "int | None"
TaskState: TypeAlias = "Literal[\"pending\", \"scheduled\", \"waiting\", \"ready\", \"claimed\", \"running\", \"asking\", \"review\", \"blocked\", \"failed\", \"done\", \"cancelled\"]"
TaskStatus: TypeAlias = "Literal[\"todo\", \"in-progress\", \"review\", \"blocked\", \"done\", \"cancelled\"]"
IsolationLevel: TypeAlias = "Literal[\"process\", \"sandbox\", \"container\", \"vm\"]"
TaskWorktree: TypeAlias = "bool | TaskWorktree2"
TaskEnv: TypeAlias = "dict[str, str]"
Priority: TypeAlias = "int | Literal[\"urgent\", \"high\", \"normal\", \"low\", \"P0\", \"P1\", \"P2\", \"P3\"] | None"
FailureClass: TypeAlias = "Literal[\"task\", \"timeout\", \"crash\", \"host\", \"quota\", \"policy\", \"final\"]"
QuestionId: TypeAlias = "str"
Finish: TypeAlias = "Finish1 | Finish2 | Finish3 | Finish4"
ByReport: TypeAlias = "bool | None"
Command: TypeAlias = "Command1 | Command2"
Reporter: TypeAlias = "AnyId | None"
Proof: TypeAlias = "Decimal | None"
Nothing: TypeAlias = "dict[str, Any]"
Batch: TypeAlias = "Drafts | Batch2"
Drafts: TypeAlias = "list[Any]"
WorkerState: TypeAlias = "Literal[\"unknown\", \"active\", \"quiet\", \"terminating\", \"inactive\"]"
TokenKind: TypeAlias = "Literal[\"admin\", \"operator\", \"producer\", \"worker\", \"approver\", \"emit\", \"viewer\", \"metrics\"] | str"
TokenDraft: TypeAlias = "TokenDraft1 | TokenDraft2 | TokenDraft3 | TokenDraft4"
ConfigOrigin: TypeAlias = "Literal[\"default\", \"file\", \"environment\", \"flag\"]"
Errors: TypeAlias = "list[ErrorsItem]"
Code: TypeAlias = "Literal[\"invalid\", \"not_found\", \"forbidden\", \"task_exists\", \"stale_claim\", \"not_claimed\", \"claimed_by_other\", \"already_terminal\", \"bad_transition\", \"question_changed\", \"queue_paused\", \"queue_draining\", \"limited\", \"group_closed\", \"in_use\", \"slot_taken\", \"slot_quarantined\", \"worker_full\", \"TOKEN_MISMATCH\", \"WORKER_INACTIVE\", \"cursor_gone\", \"backup_running\", \"backup_exists\", \"bad_offset\", \"version_mismatch\", \"idempotency_conflict\", \"too_large\", \"unauthorized\", \"method_not_allowed\", \"unsupported_media_type\", \"wrong_host\", \"rate_limited\", \"quota_exceeded\", \"queue_full\", \"unavailable\", \"disk_low\", \"store_damaged\", \"not_leader\", \"busy\", \"bad_request\", \"EXECUTION_DISARMED\", \"NOT_AUTONOMOUS_TASK\", \"gate_required\", \"schedule_exists\", \"code_gone\"]"
Heartbeats: TypeAlias = "Heartbeats1 | Heartbeats2"
Stage: TypeAlias = "Literal[\"allocated\", \"in_progress\", \"building\", \"pr_created\", \"reviewing\", \"validated\", \"merged\", \"deploying\", \"verifying\", \"completed\", \"failed\"]"
Workflow: TypeAlias = "str"
IsoTime: TypeAlias = "str"
IsoTimeOrNull: TypeAlias = "IsoTime | None"
ItemStatus: TypeAlias = "Literal[\"ready\", \"pending\", \"claimed\", \"in_progress\", \"done\", \"failed\"]"
QueueNames: TypeAlias = "list[str] | None"
LoginRole: TypeAlias = "Literal[\"viewer\", \"approver\", \"operator\", \"admin\"]"
LoginMade: TypeAlias = "Login"
BulkId: TypeAlias = "str"
BulkAction: TypeAlias = "Literal[\"retry\", \"cancel\", \"park\", \"unpark\", \"move\", \"priority\", \"purge\"]"


class TaskWorktree2(TypedDict):
    base: str


class TaskUsage(TypedDict):
    inputTokens: int
    outputTokens: int
    cacheReadTokens: int
    cacheWriteTokens: int
    turns: int
    toolCalls: int
    usd: float | None


class TaskBudget(TypedDict):
    usd: NotRequired[float]
    minutes: NotRequired[float]
    tokens: NotRequired[int]
    turns: NotRequired[int]
    toolCalls: NotRequired[int]


class TaskDraft(TypedDict):
    id: NotRequired[Id | None]
    title: NotRequired[str | None]
    description: NotRequired[str | None]
    instructions: NotRequired[str | None]
    steps: NotRequired[list[Any] | None]
    deliverables: NotRequired[Any]
    workingDir: NotRequired[str | None]
    model: NotRequired[Name | None]
    thinking: NotRequired[Name | None]
    queue: NotRequired[Name | None]
    owner: NotRequired[Name | None]
    requires: NotRequired[Names | None]
    priority: NotRequired[Priority]
    executor: NotRequired[Name | None]
    module: NotRequired[str | None]
    payload: NotRequired[Any]
    isolationLevel: NotRequired[IsolationLevel | None]
    blockedBy: NotRequired[list[AnyId] | None]
    onParentFailure: NotRequired[Literal["block", "run"] | None]
    parent: NotRequired[Id | None]
    notBefore: NotRequired[Time | None]
    startBy: NotRequired[Time | None]
    finishBy: NotRequired[Time | None]
    timeoutMs: NotRequired[int | None]
    maxAttempts: NotRequired[int | None]
    uniqueKey: NotRequired[Name | None]
    onConflict: NotRequired[Literal["existing", "reject", "replace"] | None]
    uniqueForMs: NotRequired[int | None]
    concurrencyKey: NotRequired[Name | None]
    credential: NotRequired[Name | None]
    budget: NotRequired[TaskBudget | None]
    labels: NotRequired[Names | None]
    env: NotRequired[TaskEnv | None]
    worktree: NotRequired[TaskWorktree | None]
    workflow: NotRequired[Workflow | None]
    gates: NotRequired[list[Name] | None]
    metadata: NotRequired[dict[str, Any] | None]
    state: NotRequired[Literal["pending"] | None]
    group: NotRequired[Name | None]
    blockedByGroups: NotRequired[list[Name] | None]


class TaskPatch(TypedDict):
    title: NotRequired[str | None]
    description: NotRequired[str | None]
    instructions: NotRequired[str | None]
    steps: NotRequired[list[Any] | None]
    deliverables: NotRequired[Any]
    workingDir: NotRequired[str | None]
    model: NotRequired[Name | None]
    thinking: NotRequired[Name | None]
    queue: NotRequired[Name]
    owner: NotRequired[Name | None]
    requires: NotRequired[Names | None]
    priority: NotRequired[Priority]
    executor: NotRequired[Name | None]
    module: NotRequired[str | None]
    payload: NotRequired[Any]
    isolationLevel: NotRequired[IsolationLevel | None]
    blockedBy: NotRequired[list[AnyId] | None]
    notBefore: NotRequired[Time | None]
    startBy: NotRequired[Time | None]
    finishBy: NotRequired[Time | None]
    timeoutMs: NotRequired[int | None]
    maxAttempts: NotRequired[int | None]
    uniqueKey: NotRequired[Name | None]
    concurrencyKey: NotRequired[Name | None]
    credential: NotRequired[Name | None]
    budget: NotRequired[TaskBudget | None]
    labels: NotRequired[Names | None]
    env: NotRequired[TaskEnv | None]
    worktree: NotRequired[TaskWorktree | None]
    metadata: NotRequired[dict[str, Any] | None]
    status: NotRequired[Literal["todo", "in-progress", "review", "blocked", "done"]]


class TaskFound(TypedDict):
    id: Id
    state: TaskState
    deduplicated: Literal[True]
    warnings: NotRequired[list[str]]


class TaskParentsItem(TypedDict):
    id: str
    state: TaskState | None
    result: NotRequired[Any]
    resultCut: NotRequired[Literal[True]]


class TaskChildrenItem(TypedDict):
    id: Id
    state: TaskState
    result: Any
    resultCut: NotRequired[Literal[True]]


class TaskReport(TypedDict):
    outcome: Literal["complete", "review", "fail", "block", "release", "wait"]
    result: NotRequired[Any]
    evidence: NotRequired[Any]
    error: NotRequired[Failure]


TaskWhy = TypedDict("TaskWhy", {
    "reason": "str",
    "text": "str",
    "try": "NotRequired[str]",
})


class TaskTellsItem(TypedDict):
    id: int
    text: str
    at: Moment
    heard: NotRequired[Literal[True]]


class TaskSchedule(TypedDict):
    id: Id
    at: Moment


class Task(TypedDict):
    id: Id
    title: NotRequired[str]
    description: NotRequired[str]
    instructions: NotRequired[str]
    steps: NotRequired[list[Any]]
    deliverables: NotRequired[Any]
    workingDir: NotRequired[str]
    model: NotRequired[str]
    thinking: NotRequired[str]
    requires: NotRequired[Names]
    module: NotRequired[str]
    payload: NotRequired[Any]
    isolationLevel: NotRequired[IsolationLevel]
    blockedBy: NotRequired[list[str]]
    onParentFailure: NotRequired[Literal["block", "run"]]
    parent: NotRequired[Id]
    parents: NotRequired[list[TaskParentsItem]]
    children: NotRequired[list[TaskChildrenItem]]
    notBefore: NotRequired[Time]
    uniqueKey: NotRequired[Name]
    onConflict: NotRequired[Literal["existing", "reject", "replace"]]
    uniqueForMs: NotRequired[int]
    supersededBy: NotRequired[Id]
    verdictFor: NotRequired[Id]
    concurrencyKey: NotRequired[Name]
    credential: NotRequired[Name]
    budget: NotRequired[TaskBudget]
    labels: NotRequired[Names]
    env: NotRequired[dict[str, str]]
    worktree: NotRequired[TaskWorktree]
    workflow: NotRequired[Workflow]
    stage: NotRequired[Stage]
    gates: NotRequired[list[Name]]
    gatesPassed: NotRequired[list[Name]]
    metadata: NotRequired[dict[str, Any]]
    queue: Name
    owner: Name | None
    priority: int
    executor: Name | None
    startBy: NotRequired[Time]
    finishBy: NotRequired[Time]
    timeoutMs: int
    maxAttempts: int
    status: TaskStatus
    state: TaskState
    attempt: int
    spent: int
    crashes: int
    workerId: AnyId | None
    fence: Decimal | None
    leaseMs: int | None
    stopping: NotRequired[Literal[True]]
    runMs: NotRequired[int]
    parking: NotRequired[Literal[True]]
    result: Any
    error: Failure | None
    previousError: NotRequired[Failure]
    sessionId: NotRequired[str]
    checkpoint: NotRequired[Any]
    question: NotRequired[Question]
    answer: NotRequired[Answer]
    evidence: NotRequired[Any]
    note: NotRequired[str]
    percent: NotRequired[float]
    report: NotRequired[TaskReport]
    createdAt: Moment
    updatedAt: int
    version: int
    reason: NotRequired[str]
    deduplicated: NotRequired[Literal[True]]
    warnings: NotRequired[list[str]]
    why: NotRequired[TaskWhy]
    tells: NotRequired[list[TaskTellsItem]]
    usage: NotRequired[TaskUsage]
    schedule: NotRequired[TaskSchedule]
    group: NotRequired[str]
    blockedByGroups: NotRequired[list[str]]


Failure = TypedDict("Failure", {
    "code": "str",
    "message": "str",
    "class": "FailureClass",
    "retryAt": "NotRequired[Time]",
    "retry": "NotRequired[Literal[False]]",
    "credential": "NotRequired[Name]",
    "details": "NotRequired[Any]",
    "gate": "NotRequired[str]",
    "event": "NotRequired[str]",
    "evidence": "NotRequired[Any]",
})


FailureReport = TypedDict("FailureReport", {
    "code": "NotRequired[str | None]",
    "message": "NotRequired[str | None]",
    "class": "NotRequired[str | None]",
    "retryAt": "NotRequired[Time | None]",
    "retry": "NotRequired[bool | None]",
    "credential": "NotRequired[Name | None]",
    "details": "NotRequired[Any]",
})


class Question(TypedDict):
    id: NotRequired[QuestionId]
    text: str
    tool: NotRequired[str]
    input: NotRequired[Any]
    diff: NotRequired[str]
    rule: NotRequired[Any]
    options: NotRequired[list[Any]]
    freeText: NotRequired[Literal[True]]
    deadline: NotRequired[Time]


class Answer(TypedDict):
    text: NotRequired[str]
    allow: NotRequired[Literal["once", "task"]]
    deny: NotRequired[Literal[True]]
    late: NotRequired[Literal[True]]


Why = TypedDict("Why", {
    "id": "Id",
    "state": "TaskState",
    "reason": "Literal[\"ready\", \"parked\", \"scheduled\", \"back_off\", \"dependency\", \"children\", \"predecessor\", \"schedule\", \"queue_paused\", \"limited\", \"execution_disarmed\", \"not_autonomous\", \"store_read_only\", \"no_worker\", \"queue_unserved\", \"no_capability\", \"no_executor\", \"owner_away\", \"owner_quarantined\", \"held\", \"kept_for_host\", \"workers_busy\", \"pool_quarantined\", \"unconfirmed\", \"running\", \"stopping\", \"overdue\", \"asking\", \"review\", \"blocked\", \"ended\"]",
    "text": "str",
    "try": "NotRequired[str]",
    "until": "NotRequired[Moment]",
    "host": "NotRequired[str]",
    "slot": "NotRequired[str]",
    "code": "NotRequired[str]",
})


class ClaimQuestionsItem(TypedDict):
    id: QuestionId
    text: str
    tool: NotRequired[str]
    input: NotRequired[Any]
    diff: NotRequired[str]
    rule: NotRequired[Any]
    options: NotRequired[list[Any]]
    freeText: NotRequired[Literal[True]]
    deadline: NotRequired[Time]
    answer: Answer


class ClaimAllowedItem(TypedDict):
    tool: NotRequired[str]
    input: NotRequired[Any]
    rule: NotRequired[Any]


class ClaimJudges(TypedDict):
    id: Id
    action: Literal["create_pr", "validate", "merge", "verify"]
    state: TaskState
    attempt: int
    queue: Name
    executor: NotRequired[Name]
    title: NotRequired[Any]
    description: NotRequired[Any]
    instructions: NotRequired[Any]
    deliverables: NotRequired[Any]
    workingDir: NotRequired[Any]
    metadata: NotRequired[Any]
    result: NotRequired[Any]
    evidence: NotRequired[Any]


class ClaimParent(TypedDict):
    id: Id
    queue: Name
    executor: NotRequired[Name]
    isolationLevel: NotRequired[IsolationLevel]
    workingDir: NotRequired[str]


class Claim(TypedDict):
    task: Task
    fence: Decimal
    leaseMs: LeaseLeft
    attempt: int
    checkpoint: Any
    questions: NotRequired[list[ClaimQuestionsItem]]
    allowed: NotRequired[list[ClaimAllowedItem]]
    fallback: NotRequired[Name]
    fresh: NotRequired[Literal[True]]
    token: NotRequired[str]
    judges: NotRequired[ClaimJudges]
    parent: NotRequired[ClaimParent]


class ClaimNext(TypedDict):
    workerId: AnyId
    queues: NotRequired[Names | None]
    slot: NotRequired[Name | None]
    capabilities: NotRequired[Names | None]
    executors: NotRequired[Names | None]
    max: NotRequired[int | None]
    waitMs: NotRequired[int | None]
    leaseMs: NotRequired[Lease]
    resumeOwned: NotRequired[bool | None]
    includeStatuses: NotRequired[list[Literal["ready", "pending"]] | None]
    requestId: NotRequired[Name | None]
    tokens: NotRequired[bool | None]
    finish: NotRequired[list[Finish] | None]
    credentials: NotRequired[dict[str, Name | list[Name]] | None]
    subtasks: NotRequired[dict[str, Name | list[Name]] | None]
    fallback: NotRequired[dict[str, Name | list[Name]] | None]


class ClaimOne(TypedDict):
    workerId: AnyId
    slot: NotRequired[Name | None]
    capabilities: NotRequired[Names | None]
    executors: NotRequired[Names | None]
    leaseMs: NotRequired[Lease]
    resumeOwned: NotRequired[bool | None]
    includeStatuses: NotRequired[list[Literal["ready", "pending"]] | None]
    requestId: NotRequired[Name | None]
    credentials: NotRequired[dict[str, Name | list[Name]] | None]
    subtasks: NotRequired[dict[str, Name | list[Name]] | None]
    fallback: NotRequired[dict[str, Name | list[Name]] | None]


class Finish1(TypedDict):
    id: AnyId
    fence: Decimal
    outcome: Literal["complete", "review"]
    result: NotRequired[Any]
    evidence: NotRequired[Any]
    byReport: NotRequired[ByReport]


class Finish2(TypedDict):
    id: AnyId
    fence: Decimal
    outcome: Literal["fail", "block"]
    error: FailureReport
    evidence: NotRequired[Any]
    byReport: NotRequired[ByReport]


class Finish3(TypedDict):
    id: AnyId
    fence: Decimal
    outcome: Literal["release"]
    reason: NotRequired[str | None]
    delayMs: NotRequired[int | None]
    byReport: NotRequired[ByReport]


class Finish4(TypedDict):
    id: AnyId
    fence: Decimal
    outcome: Literal["wait"]
    byReport: NotRequired[ByReport]


class Finished(TypedDict):
    id: str
    ok: bool
    state: NotRequired[TaskState]
    code: NotRequired[Code]


class Claims(TypedDict):
    claims: list[Claim]
    finished: NotRequired[list[Finished]]


class Command1(TypedDict):
    type: Literal["cancel", "park", "reported", "tell"]
    task: str


class Command2(TypedDict):
    type: Literal["quiet", "terminate"]


class Progress(TypedDict):
    leaseMs: LeaseLeft
    commands: list[Command]


class ProgressReportSession3(TypedDict):
    id: str


class ProgressReportUsage(TypedDict):
    inputTokens: NotRequired[float | None]
    outputTokens: NotRequired[float | None]
    cacheReadTokens: NotRequired[float | None]
    cacheWriteTokens: NotRequired[float | None]
    turns: NotRequired[float | None]
    toolCalls: NotRequired[float | None]
    usd: NotRequired[float | None]


class ProgressReport(TypedDict):
    workerId: NotRequired[Reporter]
    fence: NotRequired[Proof]
    note: NotRequired[str | None]
    percent: NotRequired[float | None]
    leaseMs: NotRequired[Lease]
    event: NotRequired[Name | None]
    data: NotRequired[Any]
    session: NotRequired[None | str | ProgressReportSession3]
    usage: NotRequired[ProgressReportUsage]
    prompt: NotRequired[str | None]
    told: NotRequired[int | None]


class CompleteReport(TypedDict):
    workerId: NotRequired[Reporter]
    fence: NotRequired[Proof]
    result: NotRequired[Any]
    evidence: NotRequired[Any]
    byReport: NotRequired[ByReport]


class FailReport(TypedDict):
    workerId: NotRequired[Reporter]
    fence: NotRequired[Proof]
    error: FailureReport
    evidence: NotRequired[Any]
    byReport: NotRequired[ByReport]


class ReviewReport(TypedDict):
    workerId: NotRequired[Reporter]
    fence: NotRequired[Proof]
    result: NotRequired[Any]
    evidence: NotRequired[Any]


class ErrorReport(TypedDict):
    workerId: NotRequired[Reporter]
    fence: NotRequired[Proof]
    error: FailureReport


class ReleaseReport(TypedDict):
    workerId: NotRequired[Reporter]
    fence: NotRequired[Proof]
    reason: NotRequired[str | None]
    delayMs: NotRequired[int | None]
    byReport: NotRequired[ByReport]


class LogAppend(TypedDict):
    workerId: NotRequired[AnyId | None]
    fence: NotRequired[Proof]
    offset: int
    data: str
    streams: NotRequired[list[int] | None]
    dropped: NotRequired[int | None]


class LogAppended(TypedDict):
    attempt: int
    next: int


class LogPieceRecordsItem(TypedDict):
    kind: Literal["message", "tool", "tool_failed", "retry", "stint", "output"]
    atMs: NotRequired[int]
    name: NotRequired[str]
    text: str


class LogPiece(TypedDict):
    attempt: int
    offset: int
    data: str
    records: NotRequired[list[LogPieceRecordsItem]]
    streams: NotRequired[list[int]]
    dropped: int
    length: int
    next: int


class Note(TypedDict):
    id: NotRequired[Name | None]
    type: str
    status: NotRequired[str | None]
    data: NotRequired[Any]


class Noted(TypedDict):
    task: Id
    seq: int
    time: Moment
    type: Literal["task.noted"]
    stage: NotRequired[Stage]


class AskReportData(TypedDict):
    tool: NotRequired[str | None]
    input: NotRequired[Any]
    diff: NotRequired[str | None]
    rule: NotRequired[Any]


class AskReport(TypedDict):
    workerId: NotRequired[Reporter]
    fence: NotRequired[Proof]
    question: NotRequired[str]
    options: NotRequired[list[Any] | None]
    freeText: NotRequired[bool | None]
    deadline: NotRequired[Time | None]
    data: NotRequired[AskReportData]
    withdraw: NotRequired[QuestionId]


class WaitReport(TypedDict):
    workerId: NotRequired[Reporter]
    fence: NotRequired[Proof]


class AnswerBody(TypedDict):
    question: NotRequired[QuestionId | None]
    text: NotRequired[str | None]
    allow: NotRequired[Literal["once", "task"] | None]
    deny: NotRequired[bool | None]


class Reason(TypedDict):
    reason: NotRequired[str | None]


class Retry(TypedDict):
    reason: NotRequired[str | None]
    fresh: NotRequired[bool | None]


class Batch2(TypedDict):
    tasks: Drafts


class BatchResultsResultsItem1(TypedDict):
    ok: Literal[True]
    status: Literal[200, 201]
    task: Task | TaskFound


class BatchResultsResultsItem2(TypedDict):
    ok: Literal[False]
    status: int
    code: Code
    detail: NotRequired[str]
    errors: NotRequired[Errors]


class BatchResults(TypedDict):
    results: list[BatchResultsResultsItem1 | BatchResultsResultsItem2]


class Replaces(TypedDict):
    workerId: AnyId
    pid: int
    startTime: int


class Registration(TypedDict):
    workerId: AnyId
    slot: NotRequired[Name | None]
    capabilities: NotRequired[Names | None]
    executors: NotRequired[Names | None]
    maxConcurrent: NotRequired[int | None]
    metadata: NotRequired[dict[str, Any] | None]
    host: NotRequired[Name | None]
    bootId: NotRequired[str | None]
    pid: NotRequired[int | None]
    startTime: NotRequired[int | None]
    version: NotRequired[Name | None]
    replaces: NotRequired[Replaces | None]
    leaseMs: NotRequired[Lease]
    credentials: NotRequired[dict[str, Name | list[Name]] | None]
    subtasks: NotRequired[dict[str, Name | list[Name]] | None]
    fallback: NotRequired[dict[str, Name | list[Name]] | None]


class Beat(TypedDict):
    workerId: NotRequired[AnyId | None]
    workerInstanceKey: NotRequired[AnyId | None]
    worker_instance_key: NotRequired[AnyId | None]
    WorkerInstanceKey: NotRequired[AnyId | None]
    token: NotRequired[str | None]
    leaseMs: NotRequired[int | None]
    leaseDuration: NotRequired[int | str | None]
    lease_duration: NotRequired[int | str | None]
    LeaseDuration: NotRequired[int | str | None]
    boundTasks: NotRequired[list[AnyId] | None]
    boundActivities: NotRequired[list[AnyId] | None]
    bound_activities: NotRequired[list[AnyId] | None]
    BoundActivities: NotRequired[list[AnyId] | None]
    unboundTasks: NotRequired[list[AnyId] | None]
    unboundActivities: NotRequired[list[AnyId] | None]
    unbound_activities: NotRequired[list[AnyId] | None]
    UnboundActivities: NotRequired[list[AnyId] | None]
    slot: NotRequired[Name | None]
    capabilities: NotRequired[Names | None]
    executors: NotRequired[Names | None]
    maxConcurrent: NotRequired[int | None]
    metadata: NotRequired[dict[str, Any] | None]
    host: NotRequired[Name | None]
    bootId: NotRequired[str | None]
    pid: NotRequired[int | None]
    startTime: NotRequired[int | None]
    version: NotRequired[Name | None]
    replaces: NotRequired[Replaces | None]
    credentials: NotRequired[dict[str, Name | list[Name]] | None]
    subtasks: NotRequired[dict[str, Name | list[Name]] | None]
    fallback: NotRequired[dict[str, Name | list[Name]] | None]


class Registered(TypedDict):
    workerId: AnyId
    state: WorkerState
    token: BeatToken
    leaseMs: int
    credential: NotRequired[str]


class Standing(TypedDict):
    workerId: AnyId
    state: WorkerState
    token: BeatToken
    leaseMs: int
    lost: list[str]
    commands: list[Command]


class News(TypedDict):
    workerId: AnyId
    news: bool
    seq: int


class Worker(TypedDict):
    workerId: AnyId
    state: WorkerState
    ended: NotRequired[Literal["expired", "shutdown", "terminated", "replaced"]]
    endedAt: NotRequired[Moment]
    slot: Name | None
    capabilities: NotRequired[Names]
    executors: NotRequired[list[Name]]
    queues: NotRequired[list[Name]]
    anyQueue: NotRequired[Literal[True]]
    maxConcurrent: int
    held: int
    leaseMs: LeaseLeft
    leaseGrantedMs: int
    registeredAt: Moment
    lastBeatAt: int | None
    host: NotRequired[Name]
    bootId: NotRequired[str]
    pid: NotRequired[int]
    startTime: NotRequired[int]
    metadata: NotRequired[dict[str, Any]]
    tasks: NotRequired[list[str]]
    heartbeatAgeMs: int | None
    instance: int
    restarts: int
    version: NotRequired[Name]


class Slot(TypedDict):
    name: Name
    state: Literal["empty", "filled", "quarantined", "trial"]
    workerId: AnyId | None
    since: int | None
    trialAt: NotRequired[int | None]
    crashes: int
    restarts: int


class QueueTasks(TypedDict):
    pending: int
    scheduled: int
    waiting: int
    ready: int
    claimed: int
    running: int
    asking: int
    review: int
    blocked: int


QueueWhy = TypedDict("QueueWhy", {
    "reason": "str",
    "text": "str",
    "try": "NotRequired[str]",
})


class QueueLimits(TypedDict):
    concurrency: NotRequired[int | None]
    perKey: NotRequired[int | None]
    keys: NotRequired[dict[str, int | None] | None]
    sequential: NotRequired[bool | None]
    rate: NotRequired[Rate | None]
    review: NotRequired[int | None]
    fair: NotRequired[bool | None]
    maxOpen: NotRequired[int | None]
    budget: NotRequired[DayBudgetWanted]
    reason: NotRequired[str | None]


class Queue(TypedDict):
    name: Name
    state: Literal["open", "paused", "draining"]
    ready: NotRequired[int]
    tasks: NotRequired[QueueTasks]
    budget: NotRequired[DayBudget]
    spentToday: NotRequired[SpentToday]
    workers: NotRequired[int]
    oldestReadyAt: NotRequired[Moment]
    why: NotRequired[QueueWhy]
    live: NotRequired[int]
    limits: NotRequired[QueueLimits]


class QueueKey(TypedDict):
    key: NotRequired[str | None]
    live: int
    begun: int
    waiting: int


class Rate(TypedDict):
    count: int
    perMs: int
    burst: NotRequired[int | None]
    per: NotRequired[Literal["queue", "key"] | None]


class Hold(TypedDict):
    credential: Name
    state: Literal["held", "probing", "releasing"]
    until: NotRequired[Moment | None]
    since: Moment
    code: NotRequired[Literal["QUOTA", "AUTH", "UPSTREAM", "BUDGET_EXCEEDED", "OTHER"]]
    tasks: int


class HoldWanted(TypedDict):
    credential: Name
    until: NotRequired[Time | None]
    reason: NotRequired[str | None]


class HoldLifted(TypedDict):
    credential: Name
    state: Literal["none"]


class Account(TypedDict):
    name: Name
    executor: Name | None
    worker: str | None
    budget: NotRequired[DayBudget]
    spentToday: NotRequired[SpentToday]


class DayBudget(TypedDict):
    usd: NotRequired[float]
    tokens: NotRequired[int]
    turns: NotRequired[int]
    toolCalls: NotRequired[int]


class DayBudgetWanted(TypedDict):
    usd: NotRequired[float | None]
    tokens: NotRequired[int | None]
    turns: NotRequired[int | None]
    toolCalls: NotRequired[int | None]


class SpentToday(TypedDict):
    usd: float
    tokens: int
    turns: int
    toolCalls: int


class AccountWanted(TypedDict):
    budget: DayBudgetWanted
    reason: NotRequired[str | None]


class AccountBudget(TypedDict):
    name: Name
    budget: NotRequired[DayBudget]
    spentToday: SpentToday


EventData = TypedDict("EventData", {
    "from": "NotRequired[TaskState | Moment]",
    "state": "NotRequired[TaskState]",
    "attempt": "NotRequired[int]",
    "fence": "NotRequired[Decimal]",
    "spent": "NotRequired[int]",
    "crashes": "NotRequired[int]",
    "leaseMs": "NotRequired[int]",
    "retryAt": "NotRequired[Moment]",
    "message": "NotRequired[str]",
    "stage": "NotRequired[Stage]",
    "fromStage": "NotRequired[Stage]",
    "action": "NotRequired[Literal[\"create_pr\", \"validate\", \"merge\", \"verify\"]]",
    "gate": "NotRequired[str]",
    "credential": "NotRequired[str]",
    "part": "NotRequired[Literal[\"usd\", \"tokens\", \"turns\", \"toolCalls\"]]",
})


class Event(TypedDict):
    seq: int
    time: Moment
    type: Literal["task.created", "task.updated", "task.claimed", "task.confirmed", "task.progressed", "task.asked", "task.answered", "task.reviewed", "task.completed", "task.failed", "task.blocked", "task.released", "task.expired", "task.requeued", "task.cancelled", "task.retried", "task.parked", "task.unparked", "task.orphan_result", "task.purged", "claim.unconfirmed", "claim.rebased", "worker.registered", "worker.updated", "worker.quiet", "worker.terminating", "worker.inactive", "slot.quarantined", "slot.unquarantined", "queue.paused", "queue.resumed", "queue.draining", "queue.updated", "queue.limited", "queue.idle", "queue.drained", "server.started", "server.restored", "server.degraded", "token.created", "token.revoked", "token.key_rotated", "token.admin_replaced", "token.renewed", "token.settled", "server.audited", "task.noted", "session.started", "session.output", "session.usage", "session.gone", "session.ended", "execution.armed", "execution.disarmed", "task.stage_changed", "gate.opened", "gate.passed", "gate.rejected", "slot.assigned", "hold.opened", "hold.extended", "hold.probing", "hold.closed", "schedule.created", "schedule.updated", "schedule.removed", "schedule.fired", "schedule.skipped", "schedule.failing", "group.closed", "group.ended", "group.removed", "bulk.started", "bulk.ended", "task.suspended", "budget.near", "budget.spent", "budget.updated", "inbox.refused", "inbox.dropped"]
    task: NotRequired[str]
    worker: NotRequired[str]
    session: NotRequired[str]
    actor: NotRequired[str]
    data: EventData


class Events(TypedDict):
    events: list[Event]
    next: str


class TokenDraft1(TypedDict):
    kind: TokenKind
    name: str
    queues: NotRequired[list[Name] | None]
    expiresInMs: NotRequired[int | None]
    task: NotRequired[None]
    fence: NotRequired[None]
    role: NotRequired[None]
    uses: NotRequired[None]
    tokenLivesMs: NotRequired[None]


class TokenDraft2(TypedDict):
    kind: Literal["claim"]
    task: AnyId
    fence: Decimal
    name: NotRequired[None]
    queues: NotRequired[None]
    expiresInMs: NotRequired[None]
    role: NotRequired[None]
    uses: NotRequired[None]
    tokenLivesMs: NotRequired[None]


class TokenDraft3(TypedDict):
    kind: Literal["login"]
    name: NotRequired[str | None]
    role: NotRequired[LoginRole | None]
    queues: NotRequired[None]
    expiresInMs: NotRequired[None]
    task: NotRequired[None]
    fence: NotRequired[None]
    uses: NotRequired[None]
    tokenLivesMs: NotRequired[None]


class TokenDraft4(TypedDict):
    kind: Literal["join"]
    name: NotRequired[str | None]
    queues: NotRequired[list[Name] | None]
    expiresInMs: NotRequired[int | None]
    uses: NotRequired[int | None]
    tokenLivesMs: NotRequired[int | None]
    task: NotRequired[None]
    fence: NotRequired[None]
    role: NotRequired[None]


class SigningKeysKeysItem(TypedDict):
    id: str
    createdAt: Moment | None
    signs: bool


class SigningKeys(TypedDict):
    keys: list[SigningKeysKeysItem]


class Token(TypedDict):
    id: str
    kind: TokenKind | Literal["join"]
    name: str
    queues: NotRequired[Names]
    createdAt: Moment
    createdBy: str
    expiresAt: Moment | None
    revokedAt: NotRequired[Moment]
    revokedBy: NotRequired[str]
    uses: NotRequired[int]
    used: NotRequired[int]
    tokenLivesMs: NotRequired[int]
    join: NotRequired[str]
    renewInMs: NotRequired[int]
    renewedAt: NotRequired[Moment]
    previousUntil: NotRequired[Moment]
    token: NotRequired[str]


class ClaimToken(TypedDict):
    kind: Literal["claim"]
    task: Id
    fence: Decimal
    workerId: AnyId
    token: str


class BackupWanted(TypedDict):
    file: NotRequired[str | None]


class Backup(TypedDict):
    file: str
    path: str
    bytes: int
    lastEvent: int


class Query(TypedDict):
    sql: str
    params: NotRequired[list[str | float | bool | None] | None]


class QueryAnswerRowsItemItem2(TypedDict):
    base64: str


class QueryAnswer(TypedDict):
    columns: list[str]
    rows: list[list[str | float | None | QueryAnswerRowsItemItem2]]
    truncated: bool


class ConfigKeysItem(TypedDict):
    key: str
    value: str | int | bool
    source: ConfigOrigin
    origin: NotRequired[str]
    line: NotRequired[int]
    column: NotRequired[int]


class ConfigIgnoredItem(TypedDict):
    key: str
    program: str
    names: NotRequired[str]
    source: ConfigOrigin
    origin: NotRequired[str]
    line: NotRequired[int]
    column: NotRequired[int]


class Config(TypedDict):
    schema: Literal[1]
    home: str
    keys: list[ConfigKeysItem]
    ignored: list[ConfigIgnoredItem]
    problems: list[Any]


class Version(TypedDict):
    name: Literal["stint"]
    version: str
    api: int
    store: NotRequired[str]
    schema: NotRequired[int]
    generation: NotRequired[int]
    starts: NotRequired[int]
    startedAt: NotRequired[Moment]
    uptimeMs: NotRequired[int]
    now: NotRequired[Moment]
    armed: NotRequired[bool]


class ErrorsItem(TypedDict):
    field: str
    message: str


class Leader(TypedDict):
    name: str
    url: NotRequired[str]
    since: int
    here: bool
    turn: NotRequired[int]
    synchronous: NotRequired[bool]


class Problem(TypedDict):
    type: str
    title: str
    status: int
    code: Code
    detail: NotRequired[str]
    errors: NotRequired[Errors]
    state: NotRequired[TaskState]
    token: NotRequired[BeatToken]
    holder: NotRequired[str]
    needs: NotRequired[str]
    oldest: NotRequired[str]
    next: NotRequired[str]
    finished: NotRequired[list[Finished]]
    length: NotRequired[int]
    question: NotRequired[QuestionId]
    limit: NotRequired[Literal["hold", "concurrency", "perKey", "sequential", "rate", "review", "budget"]]
    until: NotRequired[Moment | None]


class Contract(TypedDict):
    openapi: Literal["3.1.0"]
    info: dict[str, Any]
    paths: dict[str, Any]


class SlotBeatMetadata(TypedDict):
    workerPid: NotRequired[int | None]


class SlotBeat(TypedDict):
    slot: str
    status: Literal["idle", "working", "offline"]
    task: NotRequired[Id | None]
    taskTitle: NotRequired[str | None]
    sessionId: NotRequired[str | None]
    lastUpdate: NotRequired[Time | None]
    startedAt: NotRequired[Time | None]
    metadata: NotRequired[SlotBeatMetadata]


class HeartbeatMetadata(TypedDict):
    workerPid: int | None
    workerVersion: str | None
    restartCount: int
    taskStartedAt: NotRequired[Moment]
    offlineReason: NotRequired[str]
    detectedAt: NotRequired[Moment]


class Heartbeat(TypedDict):
    slot: Name
    status: Literal["idle", "working", "offline"]
    task: AnyId | None
    taskTitle: str | None
    sessionId: str | None
    lastUpdate: Moment
    startedAt: Moment
    metadata: HeartbeatMetadata


class SlotRowBeatsItem(TypedDict):
    at: str


class SlotRow(TypedDict):
    slot: Name
    label: str
    role: str
    task: str | None
    mode: Literal["active", "waiting"]
    lastBeatAt: str
    beats: list[SlotRowBeatsItem]


Heartbeats1Workers = TypedDict("Heartbeats1Workers", {
    "slot-1": "NotRequired[Heartbeat]",
    "slot-2": "NotRequired[Heartbeat]",
    "slot-3": "NotRequired[Heartbeat]",
})


class Heartbeats1(TypedDict):
    workers: Heartbeats1Workers


class Heartbeats2(TypedDict):
    updatedAt: str
    workers: list[SlotRow]


class Spawn(TypedDict):
    sessionLabel: NotRequired[AnyId | None]
    channel: NotRequired[Name | None]
    prompt: NotRequired[str | None]
    model: NotRequired[Name | None]
    thinking: NotRequired[Name | None]
    autoStart: NotRequired[bool | None]
    taskId: NotRequired[AnyId | None]


class SessionRow(TypedDict):
    id: AnyId
    taskId: AnyId
    status: Literal["pending", "queued", "running", "stopping", "asking", "completed", "failed", "stopped"]
    completed: bool
    error: str | None
    agentSessionId: str | None
    channel: str | None
    model: str | None
    thinking: str | None
    adapter: str | None
    host: str | None
    workerId: AnyId | None
    attempt: int
    createdAt: Moment
    startedAt: int | None
    endedAt: int | None


class Session(TypedDict):
    id: AnyId
    taskId: AnyId
    status: Literal["pending", "queued", "running", "stopping", "asking", "completed", "failed", "stopped"]
    completed: bool
    error: str | None
    agentSessionId: str | None
    channel: str | None
    model: str | None
    thinking: str | None
    adapter: str | None
    host: str | None
    workerId: AnyId | None
    attempt: int
    createdAt: Moment
    startedAt: int | None
    endedAt: int | None
    prompt: str | None
    attach: str | None
    result: Any
    usage: NotRequired[TaskUsage]


class SessionPrompt(TypedDict):
    id: AnyId
    taskId: AnyId
    attempt: int
    prompt: str | None


class Execution(TypedDict):
    armed: bool
    since: Moment | None


class ExecutionWanted(TypedDict):
    armed: bool
    reason: NotRequired[str | None]


WorkflowPlanRulesItem = TypedDict("WorkflowPlanRulesItem", {
    "events": "list[str]",
    "from": "list[Stage]",
    "guards": "list[Literal[\"holder\", \"review\", \"unheld\", \"failed\", \"success\", \"noPr\", \"verdict\", \"gated\"]]",
    "to": "Stage",
    "action": "NotRequired[Literal[\"create_pr\", \"validate\", \"merge\", \"verify\"]]",
    "onReject": "NotRequired[Stage]",
    "reports": "NotRequired[bool]",
})


class WorkflowPlan(TypedDict):
    name: Workflow
    text: str
    last: Stage
    builtIn: bool
    rules: list[WorkflowPlanRulesItem]


class Verdict(TypedDict):
    verdict: Literal["pass", "reject"]
    reason: NotRequired[str | None]
    evidence: NotRequired[Any]


class Approval(TypedDict):
    task: Id
    kind: Literal["gate", "question"]
    gate: NotRequired[Name]
    question: NotRequired[Question]
    title: NotRequired[str]
    queue: Name
    stage: NotRequired[Stage]
    attempt: int
    since: Moment


class ConnectorRefusal(TypedDict):
    ok: Literal[False]
    error: str
    error_code: NotRequired[Code]
    claimed: NotRequired[Literal[False]]
    released: NotRequired[Literal[False]]
    reason: NotRequired[str]
    vtid: NotRequired[str]
    task_state: NotRequired[TaskState]
    claimed_by: NotRequired[str]
    expires_at: NotRequired[IsoTime]
    timestamp: NotRequired[IsoTime]


class ConnectorTask(TypedDict):
    vtid: Id
    title: str | None
    summary: str | None
    layer: str | None
    module: str | None
    spec_status: str | None
    status: Literal["scheduled", "in_progress", "in_review", "blocked", "failed", "completed", "cancelled"]
    state: Stage
    is_terminal: bool
    priority: int
    dispatched_at: IsoTimeOrNull
    spec_snapshot_id: str
    created_at: IsoTime
    updated_at: IsoTime
    claimed_by: str | None
    claim_started_at: IsoTimeOrNull
    claim_expires_at: IsoTimeOrNull


class ConnectorRegister(TypedDict):
    worker_id: AnyId
    capabilities: NotRequired[Names | None]
    max_concurrent: NotRequired[int | None]
    version: NotRequired[str | None]
    metadata: NotRequired[dict[str, Any] | None]


class ConnectorClaimWanted(TypedDict):
    worker_id: AnyId
    expires_minutes: NotRequired[int | None]
    fence: NotRequired[Decimal | None]


class ConnectorProgress(TypedDict):
    worker_id: AnyId
    event: str
    message: NotRequired[str | None]
    metadata: NotRequired[dict[str, Any] | None]
    fence: NotRequired[Decimal | None]


class ConnectorRelease(TypedDict):
    worker_id: AnyId
    reason: NotRequired[str | None]
    fence: NotRequired[Decimal | None]


class ConnectorBeat(TypedDict):
    worker_id: AnyId
    active_vtid: NotRequired[str | None]


class ConnectorWorker(TypedDict):
    worker_id: str
    capabilities: list[str]
    max_concurrent: int
    status: Literal["active"]
    registered_at: IsoTimeOrNull
    last_heartbeat_at: IsoTimeOrNull
    current_vtid: str | None
    metadata: dict[str, Any]


class Item(TypedDict):
    id: AnyId
    queue: Name
    title: str
    instructions: str
    priority: int
    status: ItemStatus
    claimedBy: str
    claimedAt: str
    leaseUntil: int
    attempts: int
    lastError: str
    createdAt: str
    updatedAt: str
    dedupeKey: NotRequired[str]
    lastNote: NotRequired[str]
    result: NotRequired[Any]
    meta: NotRequired[dict[str, Any]]
    fence: NotRequired[str]
    _deduped: NotRequired[Literal[True]]


class Enqueue(TypedDict):
    queue: str
    title: NotRequired[str | None]
    instructions: NotRequired[str | None]
    priority: NotRequired[int | str | None]
    dedupeKey: NotRequired[str | None]
    meta: NotRequired[dict[str, Any] | None]


class ItemClaim(TypedDict):
    agentId: str
    queues: NotRequired[QueueNames]
    defaultQueues: NotRequired[list[str] | None]
    leaseMs: NotRequired[int | str | None]
    includeStatuses: NotRequired[list[str] | str | None]
    resumeOwned: NotRequired[Any]
    preferOwned: NotRequired[Any]


class ItemReport(TypedDict):
    itemId: str
    agentId: str
    fence: NotRequired[str | int | None]
    note: NotRequired[str | None]
    leaseMs: NotRequired[int | str | None]
    result: NotRequired[Any]
    error: NotRequired[str | None]
    status: NotRequired[Any]


class ItemAnswer(TypedDict):
    ok: Literal[True]
    item: Item | ItemFound | None


class ItemFound(TypedDict):
    id: Id
    status: str
    _deduped: Literal[True]


class ItemClaimed(TypedDict):
    ok: Literal[True]
    item: Item | None
    reason: NotRequired[Literal["NO_QUEUES"]]
    queues: NotRequired[list[Name]]
    queuesSource: NotRequired[Literal["requested", "assignment", "default"]]


class Items(TypedDict):
    ok: Literal[True]
    items: list[Item]
    next: NotRequired[str]


class ItemSummary(TypedDict):
    ok: Literal[True]
    queue: NotRequired[str]
    counts: dict[str, int]
    active: list[Item]


class ItemQueues(TypedDict):
    ok: Literal[True]
    queues: list[Name]


class ItemUpdatePatch(TypedDict):
    title: NotRequired[str | None]
    instructions: NotRequired[str | None]
    priority: NotRequired[int | str | None]
    status: NotRequired[str | None]


class ItemUpdate(TypedDict):
    itemId: str
    patch: NotRequired[ItemUpdatePatch]


class ItemDelete(TypedDict):
    itemId: str


class Assignment(TypedDict):
    agentId: str
    queues: list[str]


class Assigned(TypedDict):
    ok: Literal[True]
    agentId: Name
    queues: list[Name]


class Assignments(TypedDict):
    ok: Literal[True]
    assignments: dict[str, list[Name]]


class ItemImport(TypedDict):
    items: list[dict[str, Any]]
    dryRun: NotRequired[bool]


class ItemsImportedItemsItem(TypedDict):
    id: Id
    imported: bool
    exists: NotRequired[Literal[True]]
    error: NotRequired[Code]
    message: NotRequired[str]


class ItemsImported(TypedDict):
    ok: Literal[True]
    items: list[ItemsImportedItemsItem]


class ItemRefusal(TypedDict):
    ok: Literal[False]
    error: str
    message: str
    errors: NotRequired[Errors]
    claimedBy: NotRequired[str]
    leaseUntil: NotRequired[int]
    state: NotRequired[TaskState]


class TellBody(TypedDict):
    text: str


class ScheduleDraft(TypedDict):
    id: Id
    cron: NotRequired[str | None]
    every: NotRequired[int | str | None]
    at: NotRequired[int | str | None]
    tz: NotRequired[str | None]
    task: dict[str, Any]
    jitterMs: NotRequired[int | None]
    catchUp: NotRequired[Literal["one", "skip", "all"] | None]
    overlap: NotRequired[Literal["skip", "allow", "queue", "cancel"] | None]
    paused: NotRequired[bool | None]


class CronJobSchedule(TypedDict):
    kind: Literal["every", "cron", "at"]
    everyMs: NotRequired[int]
    expr: NotRequired[str]
    at: NotRequired[Any]
    tz: NotRequired[str]


class CronJob(TypedDict):
    name: str
    schedule: CronJobSchedule
    payload: NotRequired[dict[str, Any]]
    sessionTarget: NotRequired[str]
    enabled: NotRequired[bool]


class SchedulePatch(TypedDict):
    cron: NotRequired[str | None]
    every: NotRequired[int | str | None]
    at: NotRequired[int | str | None]
    tz: NotRequired[str | None]
    task: NotRequired[dict[str, Any]]
    jitterMs: NotRequired[int | None]
    catchUp: NotRequired[Literal["one", "skip", "all"] | None]
    overlap: NotRequired[Literal["skip", "allow", "queue", "cancel"] | None]
    paused: NotRequired[bool | None]


Occurrence = TypedDict("Occurrence", {
    "at": "NotRequired[Moment]",
    "from": "NotRequired[Moment]",
    "to": "NotRequired[Moment]",
    "count": "NotRequired[int]",
    "outcome": "Literal[\"open\", \"done\", \"failed\", \"cancelled\", \"skipped\"]",
    "task": "NotRequired[Id]",
    "reason": "NotRequired[Literal[\"missed\", \"overlap\", \"queue_full\", \"queue_draining\", \"task_exists\", \"quota_exceeded\", \"parent_gone\", \"too_large\", \"made_before\", \"refused\", \"max_open\", \"group_closed\"]]",
})


class Schedule(TypedDict):
    id: Id
    cron: NotRequired[str]
    every: NotRequired[int]
    at: NotRequired[Moment]
    tz: str
    task: dict[str, Any]
    jitterMs: int
    catchUp: Literal["one", "skip", "all"]
    overlap: Literal["skip", "allow", "queue", "cancel"]
    paused: bool
    when: str
    next: Moment | None
    failing: bool
    failuresInARow: int
    openTasks: int
    made: int
    skipped: int
    history: list[Occurrence]
    problem: NotRequired[str]
    madeBy: str
    createdAt: Moment
    updatedAt: Moment
    version: int


class ScheduleNext(TypedDict):
    id: Id
    tz: str
    paused: bool
    next: list[Moment]


class ScheduleRun(TypedDict):
    at: NotRequired[int | None]


class ScheduleGone(TypedDict):
    id: Id


class LoginCode(TypedDict):
    id: str
    kind: Literal["login"]
    name: str
    role: LoginRole
    createdAt: Moment
    expiresAt: Moment
    code: str
    page: NotRequired[str]


class LoginBody(TypedDict):
    code: str


class Login(TypedDict):
    id: str
    name: str
    role: LoginRole
    maker: str
    state: Literal["code", "open", "ended"]
    createdAt: Moment
    usedAt: Moment | None
    endedAt: Moment | None
    expiresAt: Moment
    current: bool
    pageKey: NotRequired[str]


class GroupCounts(TypedDict):
    pending: int
    scheduled: int
    waiting: int
    ready: int
    claimed: int
    running: int
    asking: int
    review: int
    blocked: int
    failed: int
    done: int
    cancelled: int


class Group(TypedDict):
    name: Name
    closed: bool
    ended: bool
    tasks: int
    open: int
    counts: GroupCounts
    createdAt: Moment
    endedAt: NotRequired[Moment]


class GroupGone(TypedDict):
    name: Name


class RpcMessageError(TypedDict):
    code: int
    message: str
    data: NotRequired[Any]


class RpcMessage(TypedDict):
    jsonrpc: Literal["2.0"]
    id: NotRequired[Any]
    method: NotRequired[str]
    params: NotRequired[dict[str, Any]]
    result: NotRequired[dict[str, Any]]
    error: NotRequired[RpcMessageError]


class BulkFilter(TypedDict):
    status: NotRequired[str]
    state: NotRequired[str]
    queue: NotRequired[str]
    owner: NotRequired[str]
    label: NotRequired[str]
    q: NotRequired[str]
    schedule: NotRequired[str]
    group: NotRequired[str]
    workflow: NotRequired[str]
    stage: NotRequired[str]
    error: NotRequired[str]
    all: NotRequired[bool]


class BulkWanted(TypedDict):
    filter: BulkFilter
    action: BulkAction
    value: NotRequired[Any]
    dryRun: NotRequired[bool | None]


class GroupBulkWanted(TypedDict):
    dryRun: NotRequired[bool | None]


class BulkAccepted(TypedDict):
    id: str
    matched: int


class BulkCountStates(TypedDict):
    pending: NotRequired[int]
    scheduled: NotRequired[int]
    waiting: NotRequired[int]
    ready: NotRequired[int]
    claimed: NotRequired[int]
    running: NotRequired[int]
    asking: NotRequired[int]
    review: NotRequired[int]
    blocked: NotRequired[int]
    failed: NotRequired[int]
    done: NotRequired[int]
    cancelled: NotRequired[int]


class BulkCount(TypedDict):
    action: BulkAction
    matched: int
    states: BulkCountStates


class Bulk(TypedDict):
    id: str
    state: Literal["running", "done", "stopped"]
    reason: NotRequired[Literal["by_person", "revoked", "restored", "store_damaged"]]
    action: BulkAction
    value: NotRequired[str | int]
    filter: BulkFilter
    matched: int
    done: int
    skipped: dict[str, int]
    actor: str
    createdAt: Moment
    endedAt: NotRequired[Moment]


class ErrorCause(TypedDict):
    id: str
    code: str
    message: str
    tasks: int
    failed: int
    blocked: int
    firstAt: Moment
    lastAt: Moment
    task: str


class StatsCell(TypedDict):
    done: int
    failed: int
    cancelled: int
    claims: int
    waitHalfMs: NotRequired[int]
    waitMostMs: NotRequired[int]


class StatsPointsItem(TypedDict):
    at: Time
    done: int
    failed: int
    cancelled: int
    claims: int
    waitHalfMs: NotRequired[int]
    waitMostMs: NotRequired[int]


class StatsSpentItemHoursItem(TypedDict):
    at: Time
    attempts: int
    tokens: int
    usd: float
    unpriced: int


class StatsSpentItem(TypedDict):
    executor: str
    attempts: int
    tokens: int
    usd: float
    unpriced: int
    hours: NotRequired[list[StatsSpentItemHoursItem]]


Stats = TypedDict("Stats", {
    "span": "Literal[\"1h\", \"24h\", \"7d\"]",
    "from": "Moment",
    "stepMs": "int",
    "steps": "int",
    "points": "list[StatsPointsItem]",
    "total": "StatsCell",
    "spent": "NotRequired[list[StatsSpentItem]]",
})


class JoinCode(TypedDict):
    id: str
    kind: Literal["join"]
    name: str
    queues: NotRequired[Names]
    createdAt: Moment
    createdBy: str
    expiresAt: Moment
    uses: int
    used: int
    tokenLivesMs: int
    url: NotRequired[str]
    code: str


class EnrolBody(TypedDict):
    code: str
    id: str
    hash: str
    host: NotRequired[str | None]


class RenewBody(TypedDict):
    hash: NotRequired[str | None]


class Certificate(TypedDict):
    endsAt: Moment
    stale: NotRequired[Literal[True]]
    problem: NotRequired[str]


class Delivery(TypedDict):
    id: str
    type: str
    task: NotRequired[Id]
    at: int
    outcome: Literal["delivered", "retrying", "given-up"]
    tries: int
    status: NotRequired[int]
    error: NotRequired[str]
    againAt: NotRequired[int]


class DeliveryTold(TypedDict):
    id: str
    type: str
    task: NotRequired[str | None]
    at: int
    outcome: Literal["delivered", "retrying", "given-up"]
    tries: int
    status: NotRequired[int | None]
    error: NotRequired[str | None]
    againAt: NotRequired[int | None]


class DeliveriesTold(TypedDict):
    target: Id
    url: NotRequired[str | None]
    delivered: NotRequired[int | None]
    givenUp: NotRequired[int | None]
    missed: NotRequired[int | None]
    waiting: NotRequired[int | None]
    last: list[DeliveryTold]


class Deliveries(TypedDict):
    target: Id
    by: str
    toldAt: Moment
    url: NotRequired[str]
    delivered: int
    givenUp: int
    missed: int
    waiting: int
    last: list[Delivery]


class InboxRow(TypedDict):
    id: int
    queue: str
    role: str
    refusedAt: Moment
    error: Any
    task: Any


class InboxDropped(TypedDict):
    id: int
    dropped: Literal[True]


class EnterSlotBody(TypedDict):
    workerId: AnyId


class LivezReply(TypedDict):
    status: Literal["ok"]


class HealthzReply(TypedDict):
    status: Literal["ready", "standby"]
    leader: NotRequired[Leader]
    damage: NotRequired[int]
    certificate: NotRequired[Certificate]


class ReadyzReply(TypedDict):
    status: Literal["ready", "standby"]
    leader: NotRequired[Leader]
    damage: NotRequired[int]
    places: NotRequired[list[str]]
    certificate: NotRequired[Certificate]


class LeaderReply(TypedDict):
    status: Literal["leader"]
    leader: NotRequired[Leader]


class ConnectorRegisterReply(TypedDict):
    ok: Literal[True]
    worker_id: str
    registered: Literal[True]
    reregistered: NotRequired[Literal[True]]
    registered_at: IsoTime
    timestamp: IsoTime


class ConnectorUnregisterReply(TypedDict):
    ok: Literal[True]
    worker_id: str
    unregistered: Literal[True]
    timestamp: IsoTime


class ConnectorPendingReply(TypedDict):
    ok: Literal[True]
    tasks: list[ConnectorTask]
    count: int
    worker_id: str | None
    timestamp: IsoTime


class ConnectorClaimReply(TypedDict):
    ok: Literal[True]
    claimed: Literal[True]
    vtid: Id
    worker_id: str
    fence: Decimal
    title: str | None
    summary: str | None
    layer: str | None
    module: str | None
    spec_status: str | None
    spec: str
    spec_snapshot_id: str
    state: Stage
    attempt: int
    claim_expires_at: IsoTime
    expires_at: IsoTime
    checkpoint: NotRequired[Any]
    previous_error: NotRequired[Failure]
    timestamp: IsoTime


class ConnectorProgressReply(TypedDict):
    ok: Literal[True]
    vtid: Id
    event: str
    state: Stage
    fence: NotRequired[Decimal]
    timestamp: IsoTime


class ConnectorReleaseReply(TypedDict):
    ok: Literal[True]
    released: Literal[True]
    vtid: str
    worker_id: str
    reason: NotRequired[str]
    timestamp: IsoTime


class ConnectorBeatReply(TypedDict):
    ok: Literal[True]
    worker_id: str
    heartbeat_at: IsoTime
    current_vtid: str | None
    timestamp: IsoTime


class ConnectorWorkersReply(TypedDict):
    ok: Literal[True]
    workers: list[ConnectorWorker]
    count: int
    timestamp: IsoTime


class ConnectorStatsReply(TypedDict):
    ok: Literal[True]
    total_workers: int
    active_workers: int
    workers_with_tasks: int
    pending_tasks: int
    active_claims: int
    tasks_today: int
    execution_armed: bool
    timestamp: IsoTime


class ConnectorHealthReply(TypedDict):
    ok: bool
    status: Literal["healthy", "degraded"]
    service: Literal["worker-orchestrator"]
    execution_armed: bool
    timestamp: IsoTime


class Api:
    """One method for each operation of the server."""

    def call(self, method: str, path: str, *, body: Any = None, query: dict[str, Any] | None = None,
             headers: dict[str, Any] | None = None, repeatable: bool = False, text: bool = False, key: str | None = None) -> Any:
        raise NotImplementedError

    def list_tasks(self, *, group: str | None = None, parent: str | None = None, status: TaskStatus | None = None, state: str | None = None, queue: str | None = None, owner: str | None = None, label: str | None = None, q: str | None = None, error: str | None = None, schedule: str | None = None, workflow: Workflow | None = None, stage: Stage | None = None, include: Literal["why"] | None = None, limit: int | None = None, after: str | None = None) -> list[Task]:
        """List tasks: `GET /api/tasks`."""
        return self.call("GET", "/api/tasks", query={"group": group, "parent": parent, "status": status, "state": state, "queue": queue, "owner": owner, "label": label, "q": q, "error": error, "schedule": schedule, "workflow": workflow, "stage": stage, "include": include, "limit": limit, "after": after}, repeatable=True)

    def create_task(self, body: TaskDraft | None = None, *, idempotency_key: str | None = None, traceparent: str | None = None) -> Task | TaskFound:
        """Create a task: `POST /api/tasks`."""
        return self.call("POST", "/api/tasks", body={} if body is None else body, headers={"Idempotency-Key": idempotency_key, "traceparent": traceparent}, repeatable=True)

    def create_tasks(self, body: Batch, *, idempotency_key: str | None = None, traceparent: str | None = None) -> BatchResults:
        """Create many tasks at once: `POST /api/tasks/batch`."""
        return self.call("POST", "/api/tasks/batch", body=body, headers={"Idempotency-Key": idempotency_key, "traceparent": traceparent}, repeatable=True)

    def read_task(self, id: str, *, include: Literal["why"] | None = None) -> Task:
        """Read a task: `GET /api/tasks/{id}`."""
        return self.call("GET", f"/api/tasks/{quote(id, safe='')}", query={"include": include}, repeatable=True)

    def put_task(self, id: str, body: TaskPatch | None = None, *, if_match: str | None = None) -> Task:
        """Change fields of a task: `PUT /api/tasks/{id}`."""
        return self.call("PUT", f"/api/tasks/{quote(id, safe='')}", body={} if body is None else body, headers={"If-Match": if_match}, repeatable=True)

    def change_task(self, id: str, body: TaskPatch | None = None, *, if_match: str | None = None) -> Task:
        """Change fields of a task: `PATCH /api/tasks/{id}`."""
        return self.call("PATCH", f"/api/tasks/{quote(id, safe='')}", body={} if body is None else body, headers={"If-Match": if_match}, repeatable=True)

    def list_task_events(self, id: str, *, after: str | None = None, limit: int | None = None) -> Events:
        """What happened to a task: `GET /api/tasks/{id}/events`."""
        return self.call("GET", f"/api/tasks/{quote(id, safe='')}/events", query={"after": after, "limit": limit}, repeatable=True)

    def note_task(self, id: str, body: Note, *, if_match: str | None = None) -> Noted:
        """Tell what happened outside: `POST /api/tasks/{id}/events`."""
        return self.call("POST", f"/api/tasks/{quote(id, safe='')}/events", body=body, headers={"If-Match": if_match}, repeatable=True, key="id")

    def explain_task(self, id: str) -> Why:
        """Why a task is where it is: `GET /api/tasks/{id}/why`."""
        return self.call("GET", f"/api/tasks/{quote(id, safe='')}/why", repeatable=True)

    def read_log(self, id: str, *, attempt: int | None = None, after: int | None = None, limit: int | None = None, stream: Literal["stdout", "stderr"] | None = None, as_: Literal["text", "records"] | None = None) -> LogPiece:
        """Read the output of an attempt: `GET /api/tasks/{id}/log`."""
        return self.call("GET", f"/api/tasks/{quote(id, safe='')}/log", query={"attempt": attempt, "after": after, "limit": limit, "stream": stream, "as": as_}, repeatable=True)

    def append_log(self, id: str, body: LogAppend, *, if_match: str | None = None) -> LogAppended:
        """Append to the output of the attempt: `POST /api/tasks/{id}/log`."""
        return self.call("POST", f"/api/tasks/{quote(id, safe='')}/log", body=body, headers={"If-Match": if_match}, repeatable=True)

    def cancel_task(self, id: str, body: Reason | None = None, *, if_match: str | None = None) -> Task:
        """Call a task off: `POST /api/tasks/{id}/cancel`."""
        return self.call("POST", f"/api/tasks/{quote(id, safe='')}/cancel", body={} if body is None else body, headers={"If-Match": if_match}, repeatable=True)

    def retry_task(self, id: str, body: Retry | None = None, *, if_match: str | None = None) -> Task:
        """Open a task again with fresh budgets: `POST /api/tasks/{id}/retry`."""
        return self.call("POST", f"/api/tasks/{quote(id, safe='')}/retry", body={} if body is None else body, headers={"If-Match": if_match})

    def park_task(self, id: str, body: Reason | None = None, *, if_match: str | None = None) -> Task:
        """Set a task aside: `POST /api/tasks/{id}/park`."""
        return self.call("POST", f"/api/tasks/{quote(id, safe='')}/park", body={} if body is None else body, headers={"If-Match": if_match})

    def unpark_task(self, id: str, body: Reason | None = None, *, if_match: str | None = None) -> Task:
        """Let a parked task go on: `POST /api/tasks/{id}/unpark`."""
        return self.call("POST", f"/api/tasks/{quote(id, safe='')}/unpark", body={} if body is None else body, headers={"If-Match": if_match})

    def tell_task(self, id: str, body: TellBody, *, if_match: str | None = None) -> Task:
        """Send a message to the worker of the task: `POST /api/tasks/{id}/tell`."""
        return self.call("POST", f"/api/tasks/{quote(id, safe='')}/tell", body=body, headers={"If-Match": if_match})

    def answer_task(self, id: str, body: AnswerBody, *, if_match: str | None = None) -> Task:
        """Answer what a worker asked: `POST /api/tasks/{id}/answer`."""
        return self.call("POST", f"/api/tasks/{quote(id, safe='')}/answer", body=body, headers={"If-Match": if_match})

    def claim_next(self, body: ClaimNext) -> Claims:
        """Claim the next task: `POST /api/claims`."""
        return self.call("POST", "/api/claims", body=body, repeatable=True, key="requestId")

    def claim_task(self, id: str, body: ClaimOne, *, if_match: str | None = None) -> Claim:
        """Claim this task: `POST /api/tasks/{id}/claim`."""
        return self.call("POST", f"/api/tasks/{quote(id, safe='')}/claim", body=body, headers={"If-Match": if_match}, repeatable=True, key="requestId")

    def report_progress(self, id: str, body: ProgressReport, *, if_match: str | None = None) -> Progress:
        """Say that the work goes on: `POST /api/tasks/{id}/progress`."""
        return self.call("POST", f"/api/tasks/{quote(id, safe='')}/progress", body=body, headers={"If-Match": if_match}, repeatable=True)

    def complete_task(self, id: str, body: CompleteReport, *, if_match: str | None = None) -> Task:
        """Finish a task: `POST /api/tasks/{id}/complete`."""
        return self.call("POST", f"/api/tasks/{quote(id, safe='')}/complete", body=body, headers={"If-Match": if_match}, repeatable=True)

    def review_task(self, id: str, body: ReviewReport, *, if_match: str | None = None) -> Task:
        """Report work that needs a verdict: `POST /api/tasks/{id}/review`."""
        return self.call("POST", f"/api/tasks/{quote(id, safe='')}/review", body=body, headers={"If-Match": if_match}, repeatable=True)

    def fail_task(self, id: str, body: FailReport, *, if_match: str | None = None) -> Task:
        """Report that the attempt failed: `POST /api/tasks/{id}/fail`."""
        return self.call("POST", f"/api/tasks/{quote(id, safe='')}/fail", body=body, headers={"If-Match": if_match}, repeatable=True)

    def block_task(self, id: str, body: ErrorReport, *, if_match: str | None = None) -> Task:
        """Report that a person must change something first: `POST /api/tasks/{id}/block`."""
        return self.call("POST", f"/api/tasks/{quote(id, safe='')}/block", body=body, headers={"If-Match": if_match}, repeatable=True)

    def release_task(self, id: str, body: ReleaseReport, *, if_match: str | None = None) -> Task:
        """Give a task back: `POST /api/tasks/{id}/release`."""
        return self.call("POST", f"/api/tasks/{quote(id, safe='')}/release", body=body, headers={"If-Match": if_match}, repeatable=True)

    def ask_about_task(self, id: str, body: AskReport, *, if_match: str | None = None) -> Task:
        """Ask a person, or withdraw the question: `POST /api/tasks/{id}/ask`."""
        return self.call("POST", f"/api/tasks/{quote(id, safe='')}/ask", body=body, headers={"If-Match": if_match}, repeatable=True)

    def wait_for_subtasks(self, id: str, body: WaitReport, *, if_match: str | None = None) -> Task:
        """Wait for the subtasks of a task: `POST /api/tasks/{id}/wait`."""
        return self.call("POST", f"/api/tasks/{quote(id, safe='')}/wait", body=body, headers={"If-Match": if_match})

    def register_worker(self, body: Registration) -> Registered:
        """Register a worker: `POST /api/workers/register`."""
        return self.call("POST", "/api/workers/register", body=body, repeatable=True)

    def beat_worker(self, body: Beat) -> Standing:
        """Say that a worker is alive: `POST /api/workers/heartbeat`."""
        return self.call("POST", "/api/workers/heartbeat", body=body, repeatable=True)

    def list_workers(self, *, state: Literal["active", "quiet", "terminating", "inactive"] | None = None, limit: int | None = None) -> list[Worker]:
        """List workers: `GET /api/workers`."""
        return self.call("GET", "/api/workers", query={"state": state, "limit": limit}, repeatable=True)

    def read_worker(self, id: str) -> Worker:
        """Read a worker: `GET /api/workers/{id}`."""
        return self.call("GET", f"/api/workers/{quote(id, safe='')}", repeatable=True)

    def remove_worker(self, id: str, *, how: Literal["shutdown", "terminated"] | None = None) -> Worker:
        """Say goodbye: `DELETE /api/workers/{id}`."""
        return self.call("DELETE", f"/api/workers/{quote(id, safe='')}", query={"how": how}, repeatable=True)

    def wait_for_news(self, id: str, *, after: int | None = None, wait_ms: int | None = None) -> News:
        """Wait for news of a worker: `GET /api/workers/{id}/news`."""
        return self.call("GET", f"/api/workers/{quote(id, safe='')}/news", query={"after": after, "waitMs": wait_ms}, repeatable=True)

    def quiet_worker(self, id: str) -> Worker:
        """Tell a worker to take no new work: `POST /api/workers/{id}/quiet`."""
        return self.call("POST", f"/api/workers/{quote(id, safe='')}/quiet", body={}, repeatable=True)

    def terminate_worker(self, id: str) -> Worker:
        """Tell a worker to end: `POST /api/workers/{id}/terminate`."""
        return self.call("POST", f"/api/workers/{quote(id, safe='')}/terminate", body={}, repeatable=True)

    def list_slots(self) -> list[Slot]:
        """List slots: `GET /api/slots`."""
        return self.call("GET", "/api/slots", repeatable=True)

    def crash_slot(self, slot: str, *, idempotency_key: str | None = None) -> Slot:
        """Count a crash of a slot: `POST /api/slots/{slot}/crash`."""
        return self.call("POST", f"/api/slots/{quote(slot, safe='')}/crash", body={}, headers={"Idempotency-Key": idempotency_key}, repeatable=True)

    def enter_slot(self, slot: str, body: EnterSlotBody) -> Slot:
        """Ask to run in a slot: `POST /api/slots/{slot}/enter`."""
        return self.call("POST", f"/api/slots/{quote(slot, safe='')}/enter", body=body)

    def unquarantine_slot(self, slot: str) -> Slot:
        """Lift the quarantine of a slot: `POST /api/slots/{slot}/unquarantine`."""
        return self.call("POST", f"/api/slots/{quote(slot, safe='')}/unquarantine", body={})

    def list_holds(self) -> list[Hold]:
        """The accounts that are held: `GET /api/holds`."""
        return self.call("GET", "/api/holds", repeatable=True)

    def hold_account(self, body: HoldWanted) -> Hold:
        """Hold an account: `POST /api/holds`."""
        return self.call("POST", "/api/holds", body=body)

    def lift_hold(self, credential: str) -> HoldLifted:
        """Lift a hold: `DELETE /api/holds/{credential}`."""
        return self.call("DELETE", f"/api/holds/{quote(credential, safe='')}")

    def list_credentials(self) -> list[Account]:
        """The accounts that workers announced: `GET /api/credentials`."""
        return self.call("GET", "/api/credentials", repeatable=True)

    def budget_account(self, name: str, body: AccountWanted) -> AccountBudget:
        """Set what may be used on an account in a day: `PATCH /api/credentials/{name}`."""
        return self.call("PATCH", f"/api/credentials/{quote(name, safe='')}", body=body)

    def list_queues(self) -> list[Queue]:
        """List queues: `GET /api/queues`."""
        return self.call("GET", "/api/queues", repeatable=True)

    def get_queue(self, name: str) -> Queue:
        """One queue and its limits: `GET /api/queues/{name}`."""
        return self.call("GET", f"/api/queues/{quote(name, safe='')}", repeatable=True)

    def limit_queue(self, name: str, body: QueueLimits) -> Queue:
        """Limit how many of its tasks, or of each concurrency key, are in work at a time: `PATCH /api/queues/{name}`."""
        return self.call("PATCH", f"/api/queues/{quote(name, safe='')}", body=body)

    def list_queue_keys(self, name: str, *, limit: int | None = None) -> list[QueueKey]:
        """The concurrency keys of a queue, those with the most tasks in work first: `GET /api/queues/{name}/keys`."""
        return self.call("GET", f"/api/queues/{quote(name, safe='')}/keys", query={"limit": limit}, repeatable=True)

    def pause_queue(self, name: str) -> Queue:
        """Hand out nothing of a queue: `POST /api/queues/{name}/pause`."""
        return self.call("POST", f"/api/queues/{quote(name, safe='')}/pause", body={}, repeatable=True)

    def resume_queue(self, name: str) -> Queue:
        """Open a queue again: `POST /api/queues/{name}/resume`."""
        return self.call("POST", f"/api/queues/{quote(name, safe='')}/resume", body={}, repeatable=True)

    def drain_queue(self, name: str) -> Queue:
        """Add nothing more to a queue: `POST /api/queues/{name}/drain`."""
        return self.call("POST", f"/api/queues/{quote(name, safe='')}/drain", body={}, repeatable=True)

    def list_inbox(self, *, after: int | None = None, limit: int | None = None) -> list[InboxRow]:
        """Rows of the inbox that became no task: `GET /api/inbox`."""
        return self.call("GET", "/api/inbox", query={"after": after, "limit": limit}, repeatable=True)

    def drop_inbox_row(self, id: str) -> InboxDropped:
        """Remove a row of the inbox: `DELETE /api/inbox/{id}`."""
        return self.call("DELETE", f"/api/inbox/{quote(id, safe='')}")

    def retry_inbox_row(self, id: str) -> Task | TaskFound:
        """Try a row of the inbox again: `POST /api/inbox/{id}/retry`."""
        return self.call("POST", f"/api/inbox/{quote(id, safe='')}/retry", body={})

    def list_groups(self) -> list[Group]:
        """List groups: `GET /api/groups`."""
        return self.call("GET", "/api/groups", repeatable=True)

    def get_group(self, name: str) -> Group:
        """Read a group: `GET /api/groups/{name}`."""
        return self.call("GET", f"/api/groups/{quote(name, safe='')}", repeatable=True)

    def remove_group(self, name: str) -> GroupGone:
        """Free the name of a group that has ended: `DELETE /api/groups/{name}`."""
        return self.call("DELETE", f"/api/groups/{quote(name, safe='')}")

    def close_group(self, name: str) -> Group:
        """Let nothing more into a group: `POST /api/groups/{name}/close`."""
        return self.call("POST", f"/api/groups/{quote(name, safe='')}/close", body={})

    def cancel_group(self, name: str, body: GroupBulkWanted | None = None, *, idempotency_key: str | None = None) -> BulkCount | BulkAccepted:
        """Cancel the tasks of a group: `POST /api/groups/{name}/cancel`."""
        return self.call("POST", f"/api/groups/{quote(name, safe='')}/cancel", body={} if body is None else body, headers={"Idempotency-Key": idempotency_key}, repeatable=True)

    def retry_group(self, name: str, body: GroupBulkWanted | None = None, *, idempotency_key: str | None = None) -> BulkCount | BulkAccepted:
        """Retry the tasks of a group: `POST /api/groups/{name}/retry`."""
        return self.call("POST", f"/api/groups/{quote(name, safe='')}/retry", body={} if body is None else body, headers={"Idempotency-Key": idempotency_key}, repeatable=True)

    def start_bulk(self, body: BulkWanted, *, idempotency_key: str | None = None) -> BulkCount | BulkAccepted:
        """Change all tasks that match a filter: `POST /api/tasks/bulk`."""
        return self.call("POST", "/api/tasks/bulk", body=body, headers={"Idempotency-Key": idempotency_key}, repeatable=True)

    def list_bulk(self) -> list[Bulk]:
        """List bulk actions: `GET /api/bulk`."""
        return self.call("GET", "/api/bulk", repeatable=True)

    def get_bulk(self, id: str) -> Bulk:
        """How far a bulk action is: `GET /api/bulk/{id}`."""
        return self.call("GET", f"/api/bulk/{quote(id, safe='')}", repeatable=True)

    def stop_bulk(self, id: str) -> Bulk:
        """Stop a bulk action: `DELETE /api/bulk/{id}`."""
        return self.call("DELETE", f"/api/bulk/{quote(id, safe='')}")

    def list_errors(self, *, status: TaskStatus | None = None, state: str | None = None, queue: str | None = None, owner: str | None = None, label: str | None = None, q: str | None = None, schedule: str | None = None, group: str | None = None, workflow: Workflow | None = None, stage: Stage | None = None, error: str | None = None) -> list[ErrorCause]:
        """What failed, and why: `GET /api/errors`."""
        return self.call("GET", "/api/errors", query={"status": status, "state": state, "queue": queue, "owner": owner, "label": label, "q": q, "schedule": schedule, "group": group, "workflow": workflow, "stage": stage, "error": error}, repeatable=True)

    def list_schedules(self) -> list[Schedule]:
        """List schedules: `GET /api/schedules`."""
        return self.call("GET", "/api/schedules", repeatable=True)

    def create_schedule(self, body: ScheduleDraft | CronJob) -> Schedule:
        """Create a schedule: `POST /api/schedules`."""
        return self.call("POST", "/api/schedules", body=body)

    def get_schedule(self, id: str) -> Schedule:
        """Read a schedule: `GET /api/schedules/{id}`."""
        return self.call("GET", f"/api/schedules/{quote(id, safe='')}", repeatable=True)

    def update_schedule(self, id: str, body: SchedulePatch | None = None, *, if_match: str | None = None) -> Schedule:
        """Change a schedule; it starts from now: `PATCH /api/schedules/{id}`."""
        return self.call("PATCH", f"/api/schedules/{quote(id, safe='')}", body={} if body is None else body, headers={"If-Match": if_match})

    def remove_schedule(self, id: str, *, if_match: str | None = None) -> ScheduleGone:
        """Remove a schedule; its tasks that wait for the one before are cancelled: `DELETE /api/schedules/{id}`."""
        return self.call("DELETE", f"/api/schedules/{quote(id, safe='')}", headers={"If-Match": if_match})

    def run_schedule(self, id: str, body: ScheduleRun | None = None, *, if_match: str | None = None) -> Task:
        """Make a task of a schedule now: `POST /api/schedules/{id}/run`."""
        return self.call("POST", f"/api/schedules/{quote(id, safe='')}/run", body={} if body is None else body, headers={"If-Match": if_match})

    def pause_schedule(self, id: str, *, if_match: str | None = None) -> Schedule:
        """Make no more tasks: `POST /api/schedules/{id}/pause`."""
        return self.call("POST", f"/api/schedules/{quote(id, safe='')}/pause", body={}, headers={"If-Match": if_match})

    def resume_schedule(self, id: str, *, if_match: str | None = None) -> Schedule:
        """Go on from now: `POST /api/schedules/{id}/resume`."""
        return self.call("POST", f"/api/schedules/{quote(id, safe='')}/resume", body={}, headers={"If-Match": if_match})

    def next_of_schedule(self, id: str, *, n: int | None = None) -> ScheduleNext:
        """The next planned instants: `GET /api/schedules/{id}/next`."""
        return self.call("GET", f"/api/schedules/{quote(id, safe='')}/next", query={"n": n}, repeatable=True)

    def list_events(self, *, after: str | None = None, limit: int | None = None, only: Literal["audit"] | None = None) -> Events:
        """Read what happened: `GET /api/events`."""
        return self.call("GET", "/api/events", query={"after": after, "limit": limit, "only": only}, repeatable=True)

    def list_tokens(self) -> list[Token]:
        """List credentials: `GET /api/tokens`."""
        return self.call("GET", "/api/tokens", repeatable=True)

    def create_token(self, body: TokenDraft) -> Token | ClaimToken | LoginCode | JoinCode:
        """Give somebody a credential: `POST /api/tokens`."""
        return self.call("POST", "/api/tokens", body=body)

    def revoke_token(self, id: str) -> Token:
        """Take a credential back: `DELETE /api/tokens/{id}`."""
        return self.call("DELETE", f"/api/tokens/{quote(id, safe='')}")

    def list_signing_keys(self) -> SigningKeys:
        """The keys that sign the tokens of worker instances and claims: `GET /api/signing-keys`."""
        return self.call("GET", "/api/signing-keys", repeatable=True)

    def rotate_signing_key(self) -> SigningKeys:
        """Sign with a new key: `POST /api/signing-keys`."""
        return self.call("POST", "/api/signing-keys", body={})

    def livez(self) -> LivezReply:
        """Does it run?: `GET /livez`."""
        return self.call("GET", "/livez", repeatable=True)

    def healthz(self) -> HealthzReply:
        """Does it serve? As /readyz, for those who ask by this name: `GET /healthz`."""
        return self.call("GET", "/healthz", repeatable=True)

    def readyz(self) -> ReadyzReply:
        """Does it serve?: `GET /readyz`."""
        return self.call("GET", "/readyz", repeatable=True)

    def leader(self) -> LeaderReply:
        """Does this server lead its store? For load balancers: `GET /health/leader`."""
        return self.call("GET", "/health/leader", repeatable=True)

    def metrics(self) -> str:
        """Counters and gauges for Prometheus: `GET /metrics`."""
        return self.call("GET", "/metrics", repeatable=True, text=True)

    def read_config(self) -> Config:
        """The effective configuration: `GET /api/config`."""
        return self.call("GET", "/api/config", repeatable=True)

    def stats(self, *, span: Literal["1h", "24h", "7d"] | None = None, queue: str | None = None) -> Stats:
        """Figures over time: `GET /api/stats`."""
        return self.call("GET", "/api/stats", query={"span": span, "queue": queue}, repeatable=True)

    def list_deliveries(self) -> list[Deliveries]:
        """The last deliveries of webhooks: `GET /api/deliveries`."""
        return self.call("GET", "/api/deliveries", repeatable=True)

    def tell_deliveries(self, body: DeliveriesTold) -> Deliveries:
        """Tell of the last deliveries to a target: `POST /api/deliveries`."""
        return self.call("POST", "/api/deliveries", body=body)

    def version(self) -> Version:
        """Which server is it?: `GET /api/version`."""
        return self.call("GET", "/api/version", repeatable=True)

    def openapi(self) -> Contract:
        """What does it understand?: `GET /api/openapi.json`."""
        return self.call("GET", "/api/openapi.json", repeatable=True)

    def back_up(self, body: BackupWanted | None = None) -> Backup:
        """Make a backup while it serves: `POST /api/backup`."""
        return self.call("POST", "/api/backup", body={} if body is None else body)

    def query(self, body: Query) -> QueryAnswer:
        """Ask the store in SQL: `POST /api/query`."""
        return self.call("POST", "/api/query", body=body)

    def list_heartbeats(self, *, shape: Literal["map", "array"] | None = None) -> Heartbeats:
        """The heartbeats of all slots: `GET /api/heartbeats`."""
        return self.call("GET", "/api/heartbeats", query={"shape": shape}, repeatable=True)

    def beat_slot(self, body: SlotBeat) -> Heartbeat:
        """Say what the worker of a slot does: `POST /api/heartbeats`."""
        return self.call("POST", "/api/heartbeats", body=body, repeatable=True)

    def spawn_session(self, body: Spawn) -> Session:
        """Have an agent run: `POST /api/sessions/spawn`."""
        return self.call("POST", "/api/sessions/spawn", body=body)

    def list_sessions(self) -> list[SessionRow]:
        """List sessions: `GET /api/sessions`."""
        return self.call("GET", "/api/sessions", repeatable=True)

    def get_session(self, id: str) -> Session:
        """Look at a session: `GET /api/sessions/{id}`."""
        return self.call("GET", f"/api/sessions/{quote(id, safe='')}", repeatable=True)

    def stop_session(self, id: str) -> Session:
        """Stop a session: `DELETE /api/sessions/{id}`."""
        return self.call("DELETE", f"/api/sessions/{quote(id, safe='')}")

    def read_session_prompt(self, id: str) -> SessionPrompt:
        """Read what its agent was told first: `GET /api/sessions/{id}/prompt`."""
        return self.call("GET", f"/api/sessions/{quote(id, safe='')}/prompt", repeatable=True)

    def read_session_log(self, id: str, *, attempt: int | None = None, after: int | None = None, limit: int | None = None, as_: Literal["text", "records"] | None = None) -> LogPiece:
        """Read the log of a session: `GET /api/sessions/{id}/log`."""
        return self.call("GET", f"/api/sessions/{quote(id, safe='')}/log", query={"attempt": attempt, "after": after, "limit": limit, "as": as_}, repeatable=True)

    def give_verdict(self, id: str, gate: str, body: Verdict, *, if_match: str | None = None) -> Task:
        """A verdict at a gate: `POST /api/tasks/{id}/gates/{gate}`."""
        return self.call("POST", f"/api/tasks/{quote(id, safe='')}/gates/{quote(gate, safe='')}", body=body, headers={"If-Match": if_match})

    def list_approvals(self) -> list[Approval]:
        """What waits for a person: `GET /api/approvals`."""
        return self.call("GET", "/api/approvals", repeatable=True)

    def list_workflows(self) -> list[WorkflowPlan]:
        """The workflows that tasks may have: `GET /api/workflows`."""
        return self.call("GET", "/api/workflows", repeatable=True)

    def get_workflow(self, name: str) -> WorkflowPlan:
        """One workflow: `GET /api/workflows/{name}`."""
        return self.call("GET", f"/api/workflows/{quote(name, safe='')}", repeatable=True)

    def get_execution(self) -> Execution:
        """Is work handed out?: `GET /api/execution`."""
        return self.call("GET", "/api/execution", repeatable=True)

    def set_execution(self, body: ExecutionWanted) -> Execution:
        """The kill switch: `POST /api/execution`."""
        return self.call("POST", "/api/execution", body=body, repeatable=True)

    def connector_register(self, body: ConnectorRegister) -> ConnectorRegisterReply:
        """Register a worker: `POST /api/v1/worker/orchestrator/register`."""
        return self.call("POST", "/api/v1/worker/orchestrator/register", body=body)

    def connector_unregister(self, id: str) -> ConnectorUnregisterReply:
        """It goes, and gives back what it holds: `DELETE /api/v1/worker/orchestrator/register/{id}`."""
        return self.call("DELETE", f"/api/v1/worker/orchestrator/register/{quote(id, safe='')}")

    def connector_pending(self, *, worker_id: str | None = None, limit: str | None = None) -> ConnectorPendingReply:
        """Tasks that wait for a worker: `GET /api/v1/worker/orchestrator/tasks/pending`."""
        return self.call("GET", "/api/v1/worker/orchestrator/tasks/pending", query={"worker_id": worker_id, "limit": limit}, repeatable=True)

    def connector_claim(self, vtid: str, body: ConnectorClaimWanted) -> ConnectorClaimReply:
        """Claim a task: `POST /api/v1/worker/orchestrator/tasks/{vtid}/claim`."""
        return self.call("POST", f"/api/v1/worker/orchestrator/tasks/{quote(vtid, safe='')}/claim", body=body)

    def connector_progress(self, vtid: str, body: ConnectorProgress) -> ConnectorProgressReply:
        """Tell how it goes: `POST /api/v1/worker/orchestrator/tasks/{vtid}/progress`."""
        return self.call("POST", f"/api/v1/worker/orchestrator/tasks/{quote(vtid, safe='')}/progress", body=body)

    def connector_release(self, vtid: str, body: ConnectorRelease) -> ConnectorReleaseReply:
        """Give a task back: `POST /api/v1/worker/orchestrator/tasks/{vtid}/release`."""
        return self.call("POST", f"/api/v1/worker/orchestrator/tasks/{quote(vtid, safe='')}/release", body=body)

    def connector_beat(self, body: ConnectorBeat) -> ConnectorBeatReply:
        """It is alive: `POST /api/v1/worker/orchestrator/heartbeat`."""
        return self.call("POST", "/api/v1/worker/orchestrator/heartbeat", body=body)

    def connector_workers(self) -> ConnectorWorkersReply:
        """Workers that are alive: `GET /api/v1/worker/orchestrator/workers`."""
        return self.call("GET", "/api/v1/worker/orchestrator/workers", repeatable=True)

    def connector_stats(self) -> ConnectorStatsReply:
        """Figures: `GET /api/v1/worker/orchestrator/stats`."""
        return self.call("GET", "/api/v1/worker/orchestrator/stats", repeatable=True)

    def connector_health(self) -> ConnectorHealthReply:
        """Is it well?: `GET /api/v1/worker/orchestrator/health`."""
        return self.call("GET", "/api/v1/worker/orchestrator/health", repeatable=True)

    def enqueue_item(self, body: Enqueue) -> ItemAnswer:
        """Add an item: `POST /api/workqueue/enqueue`."""
        return self.call("POST", "/api/workqueue/enqueue", body=body)

    def claim_item(self, body: ItemClaim) -> ItemClaimed:
        """Take the next item: `POST /api/workqueue/claim-next`."""
        return self.call("POST", "/api/workqueue/claim-next", body=body)

    def transition_item(self, body: ItemReport) -> ItemAnswer:
        """Say how an item goes: `POST /api/workqueue/transition`."""
        return self.call("POST", "/api/workqueue/transition", body=body)

    def progress_item(self, body: ItemReport) -> ItemAnswer:
        """Extend the lease of an item, with a note: `POST /api/workqueue/progress`."""
        return self.call("POST", "/api/workqueue/progress", body=body)

    def finish_item(self, body: ItemReport) -> ItemAnswer:
        """An item is done: `POST /api/workqueue/done`."""
        return self.call("POST", "/api/workqueue/done", body=body)

    def fail_item(self, body: ItemReport) -> ItemAnswer:
        """An item has failed, for good: `POST /api/workqueue/fail`."""
        return self.call("POST", "/api/workqueue/fail", body=body)

    def update_item(self, body: ItemUpdate) -> ItemAnswer:
        """Change an item: `POST /api/workqueue/update`."""
        return self.call("POST", "/api/workqueue/update", body=body)

    def delete_item(self, body: ItemDelete) -> ItemAnswer:
        """Remove an item: `POST /api/workqueue/delete`."""
        return self.call("POST", "/api/workqueue/delete", body=body)

    def list_assignments(self) -> Assignments:
        """Which queues agents work for: `GET /api/workqueue/assignments`."""
        return self.call("GET", "/api/workqueue/assignments", repeatable=True)

    def assign_queues(self, body: Assignment) -> Assigned:
        """Set the queues of an agent: `POST /api/workqueue/assignments`."""
        return self.call("POST", "/api/workqueue/assignments", body=body)

    def import_items(self, body: ItemImport) -> ItemsImported:
        """Take items over from clawnsole: `POST /api/workqueue/import`."""
        return self.call("POST", "/api/workqueue/import", body=body)

    def inspect_item(self, item: str) -> ItemAnswer:
        """One item: `GET /api/workqueue/item/{item}`."""
        return self.call("GET", f"/api/workqueue/item/{quote(item, safe='')}", repeatable=True)

    def list_items(self, *, queue: str | None = None, status: str | None = None, limit: int | None = None, order: Literal["newest", "oldest"] | None = None, after: str | None = None) -> Items:
        """Items, newest first: `GET /api/workqueue/items`."""
        return self.call("GET", "/api/workqueue/items", query={"queue": queue, "status": status, "limit": limit, "order": order, "after": after}, repeatable=True)

    def count_items(self, *, queue: str | None = None) -> ItemSummary:
        """Items by status, and those that are held: `GET /api/workqueue/summary`."""
        return self.call("GET", "/api/workqueue/summary", query={"queue": queue}, repeatable=True)

    def list_item_queues(self) -> ItemQueues:
        """Queues that have items, or are claimed from by default: `GET /api/workqueue/queues`."""
        return self.call("GET", "/api/workqueue/queues", repeatable=True)

    def login(self, body: LoginBody) -> LoginMade:
        """A browser shows its code and gets a session: `POST /api/login`."""
        return self.call("POST", "/api/login", body=body)

    def list_logins(self) -> list[Login]:
        """List browser sessions: `GET /api/logins`."""
        return self.call("GET", "/api/logins", repeatable=True)

    def end_login(self, id: str) -> Login:
        """End a browser session: `DELETE /api/logins/{id}`."""
        return self.call("DELETE", f"/api/logins/{quote(id, safe='')}")

    def mcp(self, body: RpcMessage, *, admin: str | None = None, transport: str | None = None) -> RpcMessage:
        """Tools for agents, by MCP: `POST /mcp`."""
        return self.call("POST", "/mcp", body=body, query={"admin": admin, "transport": transport})

    def enroll(self, body: EnrolBody) -> Token:
        """A machine shows its code and gets a token of a worker: `POST /api/enroll`."""
        return self.call("POST", "/api/enroll", body=body)

    def renew_token(self, body: RenewBody) -> Token:
        """Give the caller's token a new secret: `POST /api/renew`."""
        return self.call("POST", "/api/renew", body=body)
