/*
 * Events: the kinds of change that stint records, on one screen.
 *
 * Every change of state writes exactly one event in the same transaction. The numbers are stored, so
 * rows are only ever appended. The sentences are for spec/events.md, which is checked against this table.
 */
#pragma once

#include <stdbool.h>

// clang-format off
#define EVENT_KINDS(X) \
	X(TASK_CREATED,        1, "task.created",       "a task came into being") \
	X(TASK_UPDATED,        2, "task.updated",       "its fields changed, or a stop was asked for") \
	X(TASK_CLAIMED,        3, "task.claimed",       "a worker took it, or took its own claim up again") \
	X(TASK_CONFIRMED,      4, "task.confirmed",     "the worker's heartbeat named it as running") \
	X(TASK_PROGRESSED,     5, "task.progressed",    "the worker reported progress") \
	X(TASK_ASKED,          6, "task.asked",         "the worker asked a person") \
	X(TASK_ANSWERED,       7, "task.answered",      "a person answered or denied, or what it asks was answered before") \
	X(TASK_REVIEWED,       8, "task.reviewed",      "the work was reported and waits for a verdict") \
	X(TASK_COMPLETED,      9, "task.completed",     "it is done") \
	X(TASK_FAILED,        10, "task.failed",        "an attempt failed, or the task did for good") \
	X(TASK_BLOCKED,       11, "task.blocked",       "a person must change something first") \
	X(TASK_RELEASED,      12, "task.released",      "the worker gave it back") \
	X(TASK_EXPIRED,       13, "task.expired",       "the lease ran out") \
	X(TASK_REQUEUED,      14, "task.requeued",      "its time came, its last parent was done, a claim was voided, or it is no longer kept for a host") \
	X(TASK_CANCELLED,     15, "task.cancelled",     "it was called off") \
	X(TASK_RETRIED,       16, "task.retried",       "an operator opened it again with fresh budgets") \
	X(TASK_PARKED,        17, "task.parked",        "an operator set it aside") \
	X(TASK_UNPARKED,      18, "task.unparked",      "an operator let it go on") \
	X(TASK_ORPHAN_RESULT, 19, "task.orphan_result", "a result came too late and was kept apart") \
	X(TASK_PURGED,        20, "task.purged",        "retention removed a final task") \
	X(CLAIM_UNCONFIRMED,  21, "claim.unconfirmed",  "a claim was never confirmed and was taken back") \
	X(CLAIM_REBASED,      22, "claim.rebased",      "its lease starts again: the machine rebooted, or a token was revoked") \
	X(WORKER_REGISTERED,  23, "worker.registered",  "a worker instance came into being") \
	X(WORKER_QUIET,       24, "worker.quiet",       "it takes no new work") \
	X(WORKER_TERMINATING, 25, "worker.terminating", "it was told to end") \
	X(WORKER_INACTIVE,    26, "worker.inactive",    "its lease is over, for good") \
	X(SLOT_QUARANTINED,   27, "slot.quarantined",   "the slot crashed too often") \
	X(SLOT_UNQUARANTINED, 28, "slot.unquarantined", "an operator, or a trial, let it run again") \
	X(QUEUE_PAUSED,       29, "queue.paused",       "nothing in it is claimed") \
	X(QUEUE_RESUMED,      30, "queue.resumed",      "it is open again") \
	X(QUEUE_DRAINING,     31, "queue.draining",     "nothing is added to it") \
	X(SERVER_STARTED,     32, "server.started",     "a server opened the store") \
	X(SERVER_RESTORED,    33, "server.restored",    "the store was restored from a backup: a new generation") \
	X(SERVER_DEGRADED,    34, "server.degraded",    "the store could not be written for a while") \
	X(TOKEN_CREATED,      35, "token.created",      "a credential was given to somebody") \
	X(TOKEN_REVOKED,      36, "token.revoked",      "a credential was taken back") \
	X(SERVER_AUDITED,     37, "server.audited",     "an admin did something that changes no object of the store") \
	X(TASK_NOTED,         38, "task.noted",         "somebody outside told something about it") \
	X(WORKER_UPDATED,     39, "worker.updated",     "it said something else of itself, or registered again while alive") \
	X(SESSION_STARTED,    41, "session.started",    "an attempt of a session's task began") \
	X(SESSION_GONE,       42, "session.gone",       "its worker was lost, or its claim taken back") \
	X(SESSION_ENDED,      43, "session.ended",      "the attempt ended, however it did") \
	X(SLOT_ASSIGNED,      46, "slot.assigned",      "the queues that its work comes from were set") \
	X(EXECUTION_ARMED,    47, "execution.armed",    "work is handed out again") \
	X(EXECUTION_DISARMED, 48, "execution.disarmed", "nothing is handed out any more") \
	X(TASK_STAGE_CHANGED, 49, "task.stage_changed", "it came to another stage of its workflow") \
	X(GATE_OPENED,        50, "gate.opened",        "a verdict is needed now") \
	X(GATE_PASSED,        51, "gate.passed",        "a verdict let it pass") \
	X(GATE_REJECTED,      52, "gate.rejected",      "a verdict sent it back") \
	X(SESSION_OUTPUT,     55, "session.output",     "its process printed something") \
	X(HOLD_OPENED,        60, "hold.opened",        "the tasks of an account are passed over") \
	X(HOLD_EXTENDED,      61, "hold.extended",      "the account is held for longer") \
	X(HOLD_PROBING,       62, "hold.probing",       "its time is over: one task at a time tries the account") \
	X(HOLD_CLOSED,        63, "hold.closed",        "the account works again, or a person has lifted the hold") \
	X(QUEUE_UPDATED,      70, "queue.updated",      "its limits were changed") \
	X(QUEUE_LIMITED,      71, "queue.limited",      "a limit of it holds back tasks that are ready") \
	X(QUEUE_IDLE,         72, "queue.idle",         "it has handed out work, and none of its tasks is ready or in work any more") \
	X(QUEUE_DRAINED,      73, "queue.drained",      "it is draining, and its last open task has ended") \
	X(TOKEN_KEY_ROTATED,  80, "token.key_rotated",  "a new key signs the tokens of worker instances and claims; the key before it stays valid") \
	X(TOKEN_ADMIN_REPLACED, 81, "token.admin_replaced", "the server was started with another admin token") \
	X(TOKEN_RENEWED,      82, "token.renewed",      "its holder gave it a new secret; the one before is valid until the new one is used, at most 24 h") \
	X(TOKEN_SETTLED,      83, "token.settled",      "its new secret was used: the one before is no longer valid") \
	X(SCHEDULE_CREATED,   90, "schedule.created",   "a schedule came into being") \
	X(SCHEDULE_UPDATED,   91, "schedule.updated",   "it was changed, paused or resumed") \
	X(SCHEDULE_REMOVED,   92, "schedule.removed",   "it is gone; tasks that waited for the one before are cancelled") \
	X(SCHEDULE_FIRED,     93, "schedule.fired",     "an occurrence made its task") \
	X(SCHEDULE_SKIPPED,   94, "schedule.skipped",   "an occurrence, or several, made no task") \
	X(SCHEDULE_FAILING,   95, "schedule.failing",   "three failures or skips in a row") \
	X(GROUP_CLOSED,      110, "group.closed",       "nothing is added to it any more") \
	X(GROUP_ENDED,       111, "group.ended",        "it is closed, and every member is final") \
	X(GROUP_REMOVED,     112, "group.removed",      "it is gone, by hand or with its last member; its name is free") \
	X(TASK_SUSPENDED,    120, "task.suspended",     "its claim was given up until its subtasks have ended") \
	X(BULK_STARTED,      125, "bulk.started",       "one change for all tasks that match a filter was begun") \
	X(BULK_ENDED,        126, "bulk.ended",         "the last of these tasks was looked at, or it was stopped") \
	X(SESSION_USAGE,     130, "session.usage",      "a turn of its agent has ended, with what the attempt has used so far") \
	X(BUDGET_NEAR,       131, "budget.near",        "four fifths of the budget of a queue or an account for today are used") \
	X(BUDGET_SPENT,      132, "budget.spent",       "nothing is left of it: nothing is begun before the next day of UTC") \
	X(BUDGET_UPDATED,    133, "budget.updated",     "the budget of a queue or an account was changed")
// clang-format on

enum event_kind {
	EVENT_NONE = 0,
#define X(name, number, wire, text) EVENT_##name = number,
	EVENT_KINDS(X)
#undef X
		EVENT_KIND_COUNT
};

/* Some numbers are kept free. */
bool event_kind_is_known(enum event_kind kind);

/* Is it a note about a session, beside what happens to its task? */
bool event_kind_is_of_session(enum event_kind kind);

/* Is it about credentials, gates, execution or the server? However much else happens, these are kept. */
bool event_kind_is_of_audit(enum event_kind kind);

const char *event_kind_name(enum event_kind kind);
