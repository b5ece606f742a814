/*
 * The words of a history that the checker gives a meaning to. They are the first names it numbers, so that
 * a name read from a line can be compared with WORD_x.
 */
#pragma once

// clang-format off
#define WORDS(X) \
	X(NONE, "-") \
	/* states, in the order of their bits */ \
	X(PENDING, "pending") X(SCHEDULED, "scheduled") X(WAITING, "waiting") X(READY, "ready") \
	X(CLAIMED, "claimed") X(RUNNING, "running") X(ASKING, "asking") X(REVIEW, "review") \
	X(BLOCKED, "blocked") X(FAILED, "failed") X(DONE, "done") X(CANCELLED, "cancelled") \
	/* events */ \
	X(TASK_CREATED, "task.created") X(TASK_UPDATED, "task.updated") X(TASK_CLAIMED, "task.claimed") \
	X(TASK_CONFIRMED, "task.confirmed") X(TASK_PROGRESSED, "task.progressed") X(TASK_ASKED, "task.asked") \
	X(TASK_ANSWERED, "task.answered") X(TASK_REVIEWED, "task.reviewed") X(TASK_COMPLETED, "task.completed") \
	X(TASK_FAILED, "task.failed") X(TASK_BLOCKED, "task.blocked") X(TASK_RELEASED, "task.released") \
	X(TASK_EXPIRED, "task.expired") X(TASK_REQUEUED, "task.requeued") X(TASK_CANCELLED, "task.cancelled") \
	X(TASK_RETRIED, "task.retried") X(TASK_PARKED, "task.parked") X(TASK_UNPARKED, "task.unparked") \
	X(TASK_ORPHAN_RESULT, "task.orphan_result") X(TASK_PURGED, "task.purged") X(TASK_NOTED, "task.noted") X(TASK_SUSPENDED, "task.suspended") \
	X(CLAIM_UNCONFIRMED, "claim.unconfirmed") X(CLAIM_REBASED, "claim.rebased") \
	X(WORKER_REGISTERED, "worker.registered") X(WORKER_UPDATED, "worker.updated") X(WORKER_QUIET, "worker.quiet") \
	X(WORKER_TERMINATING, "worker.terminating") X(WORKER_INACTIVE, "worker.inactive") \
	X(SLOT_QUARANTINED, "slot.quarantined") X(SLOT_UNQUARANTINED, "slot.unquarantined") \
	X(SERVER_STARTED, "server.started") X(SERVER_RESTORED, "server.restored") \
	/* how a claim ended, and what clients ask for; "review" is above */ \
	X(COMPLETE, "complete") X(FAIL, "fail") X(BLOCK, "block") X(RELEASE, "release") X(WAIT, "wait") X(LOST, "lost") \
	X(SUPERSEDED, "superseded") X(ENQUEUE, "enqueue") X(CLAIM, "claim") X(PROGRESS, "progress") \
	X(CANCEL, "cancel") X(INVOKE, "invoke") X(OK, "ok") X(INFO, "info") \
	/* classes of failure, and a worker's end that needs a deadline */ \
	X(TASK, "task") X(TIMEOUT, "timeout") X(CRASH, "crash") X(HOST, "host") X(QUOTA, "quota") \
	X(POLICY, "policy") X(FINAL, "final") X(EXPIRED, "expired") \
	/* notes of workflows and gates */ \
	X(TASK_STAGE_CHANGED, "task.stage_changed") X(GATE_OPENED, "gate.opened") X(GATE_PASSED, "gate.passed") \
	X(GATE_REJECTED, "gate.rejected") \
	/* what workers ask for that no event answers alone */ \
	X(BEAT, "beat") X(BIND, "bind") X(UNBIND, "unbind") \
	/* events of sessions: notes about their tasks */ \
	X(SESSION_STARTED, "session.started") X(SESSION_GONE, "session.gone") X(SESSION_ENDED, "session.ended") \
	X(SESSION_OUTPUT, "session.output") X(SESSION_USAGE, "session.usage") \
	/* the code of what was stopped for good */ \
	X(STOPPED, "STOPPED") \
	/* the code of work that a check refused */ \
	X(CHECK_FAILED, "CHECK_FAILED")
// clang-format on

enum word {
#define X(name, text) WORD_##name,
	WORDS(X)
#undef X
		WORD_COUNT
};

_Static_assert(WORD_CANCEL < 64, "outcomes are kept as bits");

enum {
	WORD_FIRST_STATE = WORD_PENDING,
	WORD_LAST_STATE = WORD_CANCELLED,
};
