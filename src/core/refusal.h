/*
 * Refusals: every normal "no" that stint can answer, on one screen.
 *
 * A refusal changes nothing. The row gives its wire code, its HTTP status, the exit status of the
 * command line, and the sentence that documents it; spec/refusals.md is checked against this table.
 */
#pragma once

// clang-format off
#define REFUSALS(X) \
	X(INVALID,              "invalid",              422, 2, "a value is malformed or out of bounds") \
	X(NOT_FOUND,            "not_found",            404, 3, "no such object, or none that the caller may see") \
	X(FORBIDDEN,            "forbidden",            403, 6, "the caller may not do this to that object") \
	X(TASK_EXISTS,          "task_exists",          409, 4, "the id, or the unique key, belongs to another task") \
	X(STALE_CLAIM,          "stale_claim",          409, 4, "the fence is not that of a live claim of the caller") \
	X(NOT_CLAIMED,          "not_claimed",          409, 4, "the task is not claimed by anyone") \
	X(CLAIMED_BY_OTHER,     "claimed_by_other",     409, 4, "somebody else holds the task") \
	X(ALREADY_TERMINAL,     "already_terminal",     409, 4, "the task or the attempt has ended in another way") \
	X(BAD_TRANSITION,       "bad_transition",       409, 4, "the task's state does not allow this move") \
	X(QUESTION_CHANGED,     "question_changed",     409, 4, "the task asks another question than the one that was answered") \
	X(QUEUE_PAUSED,         "queue_paused",         409, 4, "the queue is paused: nothing in it may be claimed") \
	X(QUEUE_DRAINING,       "queue_draining",       409, 4, "the queue is draining: nothing may be added to it") \
	X(LIMITED,              "limited",              409, 4, "a limit or a hold keeps the task from being claimed now") \
	X(GROUP_CLOSED,         "group_closed",         409, 4, "the group is closed: nothing may be added to it") \
	X(SCHEDULE_EXISTS,      "schedule_exists",      409, 4, "there is a schedule of that id") \
	X(IN_USE,               "in_use",               409, 4, "something that has not ended still needs it") \
	X(SLOT_TAKEN,           "slot_taken",           409, 4, "another live worker fills this slot") \
	X(SLOT_QUARANTINED,     "slot_quarantined",     409, 4, "the slot crashed too often and is quarantined") \
	X(EXECUTION_DISARMED,   "EXECUTION_DISARMED",   403, 6, "execution is disarmed: nothing may be claimed") \
	X(NOT_AUTONOMOUS,       "NOT_AUTONOMOUS_TASK",  409, 4, "the queue hands out only tasks that say they may run on their own") \
	X(GATE_REQUIRED,        "gate_required",        409, 4, "a verdict is needed first") \
	X(WORKER_FULL,          "worker_full",          409, 4, "the worker holds as many tasks as it may") \
	X(TOKEN_MISMATCH,       "TOKEN_MISMATCH",       409, 4, "the heartbeat token is not the last one issued") \
	X(WORKER_INACTIVE,      "WORKER_INACTIVE",      410, 4, "the worker's lease is over; come back under a new id") \
	X(CODE_GONE,            "code_gone",            410, 4, "the one-time code is unknown, too old, or was used before") \
	X(CURSOR_GONE,          "cursor_gone",          410, 4, "events that old are no longer kept") \
	X(BACKUP_RUNNING,       "backup_running",       409, 4, "another backup is being made") \
	X(BACKUP_EXISTS,        "backup_exists",        409, 4, "there is a backup of that name") \
	X(BAD_OFFSET,           "bad_offset",           409, 4, "the log does not go on there, or has other bytes there") \
	X(VERSION_MISMATCH,     "version_mismatch",     412, 4, "the task has changed since that version") \
	X(IDEMPOTENCY_CONFLICT, "idempotency_conflict", 422, 4, "the idempotency key was used for another request") \
	X(TOO_LARGE,            "too_large",            413, 1, "more than a limit allows") \
	X(UNAUTHORIZED,         "unauthorized",         401, 6, "no credential, or none that is known") \
	X(METHOD_NOT_ALLOWED,   "method_not_allowed",   405, 1, "the path is known and has no such method") \
	X(MEDIA_TYPE,           "unsupported_media_type", 415, 1, "a body that changes something must be application/json") \
	X(WRONG_HOST,           "wrong_host",           421, 1, "the Host header names no name of this server") \
	X(RATE_LIMITED,         "rate_limited",         429, 7, "too many requests; Retry-After says when") \
	X(QUOTA_EXCEEDED,       "quota_exceeded",       429, 7, "the caller has as many open tasks, bytes in them, or live workers as it may") \
	X(QUEUE_FULL,           "queue_full",           429, 7, "the queue has as many open tasks as its limit maxOpen allows") \
	X(STORE_DAMAGED,        "store_damaged",        503, 7, "what was asked for is damaged in the store; nothing was changed") \
	X(DISK_LOW,             "disk_low",             503, 7, "the disk of the server is nearly full: it begins nothing new; nothing was changed") \
	X(UNAVAILABLE,          "unavailable",          503, 7, "the store cannot be written now; nothing was changed") \
	X(NOT_LEADER,           "not_leader",           503, 7, "another server leads this store; Stint-Leader says where it is") \
	X(BUSY,                 "busy",                 503, 7, "all connections that the caller may have are taken; Retry-After says when to come back")
// clang-format on

enum refusal {
	REFUSED_NOTHING = 0,
#define X(name, code, status, exit_status, text) REFUSED_##name,
	REFUSALS(X)
#undef X
		REFUSAL_COUNT
};

const char *refusal_code(enum refusal refusal);
int refusal_http_status(enum refusal refusal);
const char *refusal_text(enum refusal refusal);
