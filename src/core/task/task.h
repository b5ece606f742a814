/*
 * Tasks: what they are, and every decision about one.
 *
 * Each task_*() below is a pure function: it looks at a task and a request and answers with a refusal, or
 * with the task as it shall be and the one event that says so. Nothing is changed here; the store writes
 * what was decided. Names (queues, slots, workers, capabilities) are numbers given out by the store;
 * 0 is "none".
 *
 *   task/new.c       creation and what an operator or a producer may do
 *   task/claim.c     taking, confirming, renewing and losing
 *   task/ask.c       asking a person, answering, withdrawing
 *   task/subtask.c   what a task may create under its claim, and waiting for that
 *   task/unique.c    unique keys: who holds one, and what takes the place of its holder
 *   task/end.c       how an attempt ends: complete, fail, review, block, release; verdicts
 *   task/status.c    all of that for slot workers, which set a status
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/event.h"
#include "core/task/failure.h"
#include "core/task/fields.h"
#include "core/task/given.h"
#include "core/lease.h"
#include "core/flow/queue.h"
#include "core/refusal.h"
#include "core/task/state.h"
#include "core/worker/worker.h"
#include "core/workflow.h"

/* The generation of the store stands in the high digits of a fence, the count of claims in the others. */
#define FENCE_GENERATION_STEP UINT64_C(1000000000000)

enum {
	TASK_ATTEMPTS_MAX = 1000,    /* maxAttempts is clamped to it */
	TASK_COUNT_MAX = UINT16_MAX, /* of crashes, interruptions and parents */
	TASK_GATES_MAX = 16,
	QUESTIONS_MAX = 50, /* of one attempt */
};

/* No delay or run limit is longer than a year. */
#define TASK_DELAY_MS_MAX (INT64_C(366) * 24 * 3600 * 1000)

/* Which lease a claim lives on. One clock at a time. */
enum claim_clock {
	CLOCK_CLAIM = 1, /* its own lease, renewed by progress */
	CLOCK_WORKER,    /* its worker's lease, renewed by heartbeats: the claim is bound */
};

/* A live claim. Without one all fields are 0. */
struct claim {
	uint32_t holder; /* the worker that holds the task */
	enum claim_clock clock;
	struct lease lease;   /* of the claim; idle while clock is CLOCK_WORKER */
	int64_t verify_at_ms; /* lease clock: a claim not confirmed by then is taken back; 0 = no such limit */
	int64_t run_until_ms; /* lease clock: after it a claim lease is not renewed and a beating worker must stop */
	int64_t run_ms; /* run_until_ms as a length from the claim, for a rebase */
	int64_t asked_at_ms; /* lease clock: since when its process waits for an answer, or for its subtasks; 0 = it does not wait */
	int64_t claimed_wall_ms; /* for people */
	uint64_t request;        /* digest of the requestId that made it; 0 = none */
	bool named;              /* taken through a door that knows only a name: never verified */
	bool stopping;     /* a cancel, or a stop, waits until the worker confirms it or the lease ends */
	bool handed_again; /* handed out again to the same requestId; in memory only */
	uint32_t reissued; /* how often its token was replaced by a new one */
	bool reported;     /* the work itself has said how it ended; its supervisor will end the attempt */
};

/* How the last claim ended, so that a repeated report is answered as the first one was. */
enum claim_end {
	ENDED_NOT = 0,
	ENDED_COMPLETE,
	ENDED_FAIL,
	ENDED_REVIEW,
	ENDED_BLOCK,
	ENDED_RELEASE,
	ENDED_LOST, /* by the server: expired, unconfirmed, cancelled, voided */
	ENDED_WAIT, /* it waits for its subtasks */
};

/* Was it made by a schedule? Stored numbers. */
enum task_occurrence {
	OCCURRENCE_NONE = 0,
	OCCURRENCE_MADE = 1,
	OCCURRENCE_HELD = 2, /* … and waits until the task that the schedule made before it has ended */
};

/* Has it created subtasks? Stored numbers. */
enum task_subtasks {
	SUBTASKS_NONE = 0,
	SUBTASKS_MADE = 1,
	SUBTASKS_AWAITED = 2, /* … and it waits for them: they are its open parents */
};

struct task {
	/* what was asked for */
	int64_t seq; /* creation sequence; the generated id shows it */
	int64_t created_ms;
	uint32_t queue;
	uint32_t owner;    /* slot that alone may claim it */
	uint32_t requires; /* set of capabilities */
	uint32_t executor;
	uint32_t credential; /* name: the account that it uses; 0: that of its worker */
	uint32_t group;      /* number of the group that it is a member of; 0: of none */
	uint64_t
		concurrency_key; /* number of its concurrency key: see concurrency_key_number(); 0: it has none */
	int32_t priority;
	uint32_t timeout_ms;
	uint32_t max_attempts;
	int64_t start_by_ms; /* wall; 0 = none */
	int64_t finish_by_ms;
	bool keyed;         /* has a unique key: see task_holds_key() */
	bool has_parent;    /* has a blockedBy list */
	bool named_id;      /* has an id of the caller's own */
	bool autonomous;    /* its metadata says that it may run on its own */
	bool runs_anyway;   /* once all parents have ended, however they did */
	int64_t subtask_of; /* the task under whose claim it was created; 0: none */
	int64_t unique_until_ms; /* wall: until then it holds its unique key even though it is done; 0: until its end */
	enum workflow workflow;
	uint32_t gates;      /* set of names: the verdicts that it needs before it is done … */
	uint32_t gate_count; /* … and how many those are */
	uint64_t
		charge; /* on whose quota it is while it is open, and its size: see task_charge(); 0: on nobody's */

	/* where it stands: folding the events gives these */
	enum task_state state;
	int64_t ready_at_ms;    /* wall: ready since; before that, not ready earlier than */
	uint32_t attempt;       /* claims so far */
	uint32_t spent;         /* failures that count */
	uint32_t crashes;       /* in a row; the one of a live claim is provisional */
	uint32_t interruptions; /* host trouble in a row without progress */
	uint32_t open_parents;  /* not done yet, dead ones included */
	uint32_t dead_parents;  /* failed or cancelled */
	enum task_subtasks subtasks;
	enum task_occurrence occurrence;
	int64_t superseded_by; /* the task that took its unique key and its place; 0: none */
	int64_t predecessor; /* it took the key of that one, and waits until the attempt of that has ended; 0: of none */
	uint64_t fence;    /* of the last claim */
	uint32_t claimant; /* principal that made it */
	enum claim_end ended;
	enum stage stage;      /* of its workflow; STAGE_NONE: it has none */
	uint32_t gates_passed; /* by what its last attempt reported: bit per member of `gates` */
	uint32_t
		resume_host; /* name: where its open question was asked, or the one just answered; 0: anywhere */
	int64_t resume_until_ms; /* wall: ready after an answer, or given back after a late one, until then only for
				  * that host; 0: for anyone. While it asks: see task_answer_by_ms() */
	uint32_t
		session_host; /* name: where the session and the tree of its last attempt by an agent are; 0: nowhere, or
				* nobody knows */
	int64_t verdict_for; /* it is an action of that task's workflow, and its end is a verdict; 0: of none */
	enum action verdict_action;
	uint32_t verdict_attempt; /* that it is about: what is rejected and made again is judged anew */
	bool begins_anew;         /* a person said so: the next attempt goes on with no session */
	enum failure_code code;   /* why it is blocked or failed */
	int64_t version;          /* seq of its last event */
	int64_t updated_ms; /* wall: last written, for people; the memory does not keep it: 0 until read or written */
	struct claim claim;
};

/* The principal that created it, and the KiB that it takes, as one number. */
static inline uint64_t task_charge(uint32_t principal, uint32_t kib)
{
	return (uint64_t)principal << 32 | kib;
}

/* On whose quota it is. */
static inline uint32_t task_charged(const struct task *task)
{
	return (uint32_t)(task->charge >> 32);
}

static inline bool task_awaits(const struct task *task)
{
	return task->subtasks == SUBTASKS_AWAITED;
}

/* Its flags as one number, and back. */
static inline unsigned task_flags(const struct task *task)
{
#define X(name, column, bit) (task->name ? bit : 0u) |
	return TASK_FLAGS(X)(unsigned) task->occurrence << TASK_OCCURRENCE_SHIFT;
#undef X
}

static inline void task_set_flags(struct task *task, unsigned flags)
{
#define X(name, column, bit) task->name = (flags & bit) != 0;
	TASK_FLAGS(X)
#undef X
	task->occurrence = (enum task_occurrence)(flags >> TASK_OCCURRENCE_SHIFT & 3);
}

static inline uint64_t claim_flags(const struct claim *claim)
{
#define X(name, bit) (claim->name ? bit : 0u) |
	return CLAIM_FLAGS(X)(uint64_t) claim->reissued << CLAIM_FLAG_BITS;
#undef X
}

static inline void claim_set_flags(struct claim *claim, uint64_t flags)
{
#define X(name, bit) claim->name = (flags & bit) != 0;
	CLAIM_FLAGS(X)
#undef X
	claim->reissued = (uint32_t)(flags >> CLAIM_FLAG_BITS);
}

/* What must happen to other objects because of this decision; each is a decision of its own in the same turn. */
enum follow {
	FOLLOW_NOTHING = 0,
	FOLLOW_PARENT_DONE,
	FOLLOW_PARENT_DEAD,
	FOLLOW_PARENT_REOPENED, /* it was failed or cancelled */
	FOLLOW_PARENT_REVIVED,  /* it had failed, and is done after all */
};

struct task_decision {
	enum refusal refusal; /* REFUSED_NOTHING: accepted */
	enum event_kind
		event; /* EVENT_NONE: accepted and nothing to record; lease times may still have moved */
	enum follow follow;
	bool repeated;    /* the same report was accepted before; answer as then */
	bool orphan;      /* refused, but a result that comes with it is kept for the operator */
	bool foreign;     /* refused, and the last claim was another principal's */
	struct task task; /* as it shall be; equal to the view when refused */
};

/* A caller's proof that it holds the claim. */
struct proof {
	uint32_t holder;
	uint32_t principal;
	uint64_t fence;
	bool by_name; /* no fence was given: the name alone is matched, as old doors do */
};

/* Who wants to claim. */
struct claimant {
	/* Its record; never NULL, state WORKER_UNKNOWN for one that never registered. */
	const struct worker *worker;
	uint32_t slot;
	bool named;         /* comes through a door that knows only a name */
	bool takes_pending; /* includeStatuses names pending */
	bool resumes;       /* resumeOwned: may take its own live claim up again */
	bool confirms;      /* the claim is confirmed as it is made */
	bool opted_in;      /* the queue hands out only tasks that may run on their own */
	bool unfit; /* the task requires what the claimant has not, and that counts for a claim by id too */
	int64_t lease_ms; /* asked for; 0 = the default */
	int64_t run_ms;   /* run limit that its API asks for; 0 = the task's timeout */
	uint64_t request;
};

/* A failure as reported. */
struct failure {
	enum failure_code code;
	enum failure_class klass; /* of the code; for CODE_OTHER what the caller said, else CLASS_TASK */
	int64_t retry_at_ms;      /* wall; 0 = back-off decides */
	bool no_retry;
	bool is_held; /* of class quota: a hold on its account decides when it is tried again */
};

/* The past of a task that is imported from another system. `state` is TASK_NOWHERE for a task without a past. */
struct task_past {
	enum task_state state; /* ready, pending, done or failed */
	int64_t created_ms;    /* wall; 0 = now */
	uint32_t attempt;
	int64_t claimed_ms, lease_until_ms; /* wall, of the last claim, for people; 0 = none */
};

/* What a producer or operator may change later. */
struct task_patch {
	bool set_priority, set_owner, set_queue, set_requires, set_executor, set_max_attempts, set_timeout;
	bool set_start_by, set_finish_by, set_credential, set_concurrency_key;
	bool set_not_before, set_parents, set_keyed;
	int32_t priority;
	uint32_t owner, queue, requires, executor, credential, max_attempts, timeout_ms;
	int64_t start_by_ms, finish_by_ms;
	uint64_t concurrency_key;
	int64_t not_before_ms; /* 0: at once */
	uint32_t open_parents, dead_parents;
	bool has_parent, keyed;
	bool set_autonomous, autonomous;
};

/* Producers and operators. `draft` holds what was asked for, with ready_at_ms as notBefore. */
struct task_decision task_create(
	const struct task *draft, bool parked, enum queue_state queue, const struct given *given);
struct task_decision task_import(const struct task *draft, const struct task_past *past,
	enum queue_state queue, const struct given *given);
struct task_decision task_update(
	const struct task *task, const struct task_patch *patch, const struct given *given);
struct task_decision task_cancel(
	const struct task *task, const struct worker *holder, const struct given *given);
/* Stops the running attempt and blocks the task until a person acts. Like a cancel it waits for a worker that beats. */
struct task_decision task_stop(const struct task *task, const struct worker *holder);
struct task_decision task_retry(const struct task *task, bool key_taken, const struct given *given);

/* Of a retry: the next attempt goes on with no session, and may be anywhere. */
void task_begin_anew(struct task_decision *decision);
struct task_decision task_park(const struct task *task, const struct given *given);
struct task_decision task_unpark(const struct task *task, const struct given *given);
struct task_decision task_note(const struct task *task); /* something was told about it from outside */
struct task_decision task_purge(const struct task *task, const struct given *given);

/* Time and other tasks. */
struct task_decision task_due(const struct task *task, const struct given *given);

/* The time of the host that has its session is over; a worker is alive there that could take it: then it waits on for that one. */
bool task_host_is_due(const struct task *task, const struct given *given);
struct task_decision task_keep_for_host(const struct task *task, const struct given *given);
struct task_decision task_deadline(const struct task *task, const struct given *given);
struct task_decision task_strand(const struct task *task,
	const struct given *given); /* nobody has had its executor for executor_missing_ms */
struct task_decision task_parent_done(const struct task *task, const struct given *given);
struct task_decision task_parent_dead(const struct task *task, const struct given *given);
struct task_decision task_parent_reopened(const struct task *task, const struct given *given);
/* The task that its schedule made before it has ended. */
struct task_decision task_schedule_free(const struct task *task, const struct given *given);

/* Unique keys: unique.c. */
enum on_conflict {
	CONFLICT_EXISTING = 0, /* the task that holds the key is the answer */
	CONFLICT_REJECT,
	CONFLICT_REPLACE,
};

/* What a task that comes with the key means for the one that holds it. */
enum key_meeting {
	MEETING_EXISTS,
	MEETING_REFUSED,
	MEETING_REPLACES,
};

/* Does it hold its unique key: while it is open, and when it is done until its time is over? */
bool task_holds_key(const struct task *task, int64_t now_ms);

/* `may_cancel`: the caller may cancel the holder. */
enum key_meeting task_meet_key(const struct task *holder, enum on_conflict on_conflict, bool may_cancel);

/* The draft takes the place of the holder in line. */
void task_succeed(struct task *draft, const struct task *holder);

/* The holder gives its key, and its place, to the successor: at once, or when its attempt has ended and is not done. The same once more
 * names another successor. */
struct task_decision task_supersede(const struct task *holder, int64_t successor);

/* The attempt that it waited for has ended. */
struct task_decision task_predecessor_ended(const struct task *task, const struct given *given);

/* Is it a member of its group that counts? */
bool task_counts_in_group(const struct task *task);

/* Claims. */
enum refusal task_claim_refusal(const struct task *task, const struct claimant *by, enum queue_state queue,
	const struct given *given);
struct task_decision task_claim(const struct task *task, const struct claimant *by, enum queue_state queue,
	const struct given *given);
struct task_decision task_bind(const struct task *task, uint32_t holder, const struct given *given);
struct task_decision task_unbind(const struct task *task, uint32_t holder, const struct given *given);
/* Of a report of progress: an agent works on it there, and the next attempt can go on in its session and its tree. */
void task_begin_session(struct task_decision *decision, uint32_t host);
struct task_decision task_progress(
	const struct task *task, const struct proof *proof, int64_t lease_ms, const struct given *given);
/* The work itself says how it ended; its supervisor will end the attempt. `waits`: it waits for its subtasks, and until it says
 * something else its time stands still. */
struct task_decision task_hear(
	const struct task *task, const struct proof *proof, bool waits, const struct given *given);
/* It said that it waits for its subtasks, and all of them have ended: it goes on. */
struct task_decision task_go_on(
	const struct task *task, const struct proof *proof, const struct given *given);
/* The claim is handed out again with a new token; its older tokens are invalid. */
struct task_decision task_reissue(const struct task *task);
struct task_decision task_expire(
	const struct task *task, const struct worker *holder, const struct given *given);
struct task_decision task_verify(const struct task *task, const struct given *given);
/* Its worker is inactive. */
struct task_decision task_lose(const struct task *task, const struct given *given);
/* Its worker left in peace, or the reply that would have handed it over was never written. */
struct task_decision task_return(const struct task *task, const struct given *given);
/* The store was restored. */
struct task_decision task_void(const struct task *task, const struct given *given);
/* The token of its holder was revoked: a lease of its own is cut. */
struct task_decision task_cut(const struct task *task, const struct given *given);
/* The machine rebooted. */
struct task_decision task_rebase(const struct task *task, const struct given *given);

/* Ends of an attempt. */
struct task_decision task_complete(
	const struct task *task, const struct proof *proof, const struct given *given);
struct task_decision task_fail(const struct task *task, const struct proof *proof,
	const struct failure *failure, const struct given *given);
struct task_decision task_report(
	const struct task *task, const struct proof *proof, const struct given *given);
struct task_decision task_block(const struct task *task, const struct proof *proof, enum failure_code code,
	const struct given *given);
struct task_decision task_release(
	const struct task *task, const struct proof *proof, int64_t delay_ms, const struct given *given);

/* What a task has asked so far. Its questions are numbered from 1. */
struct questions {
	uint32_t last;       /* number of its last question; 0: it has asked none */
	uint32_t in_attempt; /* how many questions the attempt with that fence has asked */
	uint64_t fence;
	uint32_t allowed; /* how many permissions were given that hold until the task is final */
};

/* With one more question of the attempt; one that is not new keeps the number of the last one. */
struct questions questions_add(const struct questions *questions, const struct task *task, bool is_new);

/* The time (wall) by which an asking task must be answered; 0: there is none. */
int64_t task_answer_by_ms(const struct task *task);

/* `answer_by_ms`: past that time it is denied; 0: it waits for ever. */
struct task_decision task_ask(const struct task *task, const struct questions *questions,
	const struct proof *proof, const struct worker *holder, int64_t answer_by_ms,
	const struct given *given);
/* The attempt asks what was answered before: by an earlier attempt, or for the whole task. */
struct task_decision task_ask_again(const struct task *task, const struct questions *questions,
	const struct proof *proof, const struct given *given);
/* `question`: the number of the one that is answered; 0: the caller named none. */
struct task_decision task_answer(const struct task *task, const struct questions *questions,
	uint32_t question, const struct given *given);
/* The holder takes its question back. */
struct task_decision task_withdraw(const struct task *task, const struct questions *questions,
	uint32_t question, const struct proof *proof, const struct given *given);
/* Nobody answered in time: that is a denial. */
struct task_decision task_answer_due(const struct task *task, const struct given *given);
/* The claim is given up until that many subtasks have ended; `host` is that of its worker. Without any it goes on at once. */
struct task_decision task_suspend(const struct task *task, const struct proof *proof, uint32_t open_subtasks,
	uint32_t host, const struct given *given);
struct task_decision task_pass(const struct task *task, const struct given *given);
struct task_decision task_reject(const struct task *task, const struct given *given);

/* Stages and gates. A verdict at one gate (its bit) is a note: what follows from it is a decision of its own. */
struct task_decision task_verdict(const struct task *task, uint32_t gate, bool passes);
struct task_decision task_open_gate(const struct task *task, uint32_t gate);
struct task_decision task_set_stage(const struct task *task, enum stage stage);
struct task_decision task_fail_outside(const struct task *task); /* a rule of its workflow says so */
struct task_decision task_revive(const struct task *task);       /* it failed, and was a success after all */

/* The same worker claims again: its claim's lease starts again with the length asked for. */
struct task_decision task_extend(
	const struct task *task, const struct claimant *by, const struct given *given);

/* The worker lives: the claim's lease starts again, unless the run limit is over. */
struct task_decision task_renew(const struct task *task, const struct given *given);

/* Sets the status, for the slot that owns the task: `by` is the worker named like the slot. `in-progress` is a claim that
 * is confirmed as it is made; `todo` gives that claim back, and every other status ends it. */
struct task_decision task_set_status(const struct task *task, enum task_status status,
	const struct claimant *by, enum queue_state queue, const struct given *given);

/* The same status change by the holder of the claim; it never creates a claim. */
struct task_decision task_report_status(const struct task *task, enum task_status status,
	const struct proof *proof, const struct given *given);

/* Does the caller hold the live claim? */
enum refusal task_proof_refusal(const struct task *task, const struct proof *proof);

/* May the caller append to the log of the attempt? The task does not change. */
struct task_decision task_append_log(const struct task *task, const struct proof *proof);

bool task_is_claimed(const struct task *task);

/* Was it claimed before, and is it not final? Then it goes on before another one of its concurrency key, where that counts. */
bool task_has_begun(const struct task *task);

/* Bits of all its gates; and is it in review without any of its own? */
uint32_t task_gates_all(const struct task *task);

/* Is its claim in the hands of a supervisor: a worker that beats for work which is not itself? */
bool task_is_supervised(const struct task *task, const struct worker *holder);

/* Has its startBy or finishBy passed? */
bool task_is_past_deadline(const struct task *task, const struct given *given);

/* May anyone claim it now? A parked task is there for those who ask for it, but neither before its time nor
 * before its parents. */
bool task_is_claimable(const struct task *task, bool takes_pending, const struct given *given);

/* Must its holder be told to stop: a cancel waits, or its time is up? */
bool task_must_stop(const struct task *task, const struct given *given);

/* Has its process waited long enough for an answer? Then its holder is to end it and to give the claim back. */
bool task_must_park(const struct task *task, const struct given *given);

/* May a claimant on that host (0: it did not say) have it, for all that hosts are concerned? */
bool task_is_for_host(const struct task *task, uint32_t host);

/* Do parents, or subtasks that it waits for, keep it from being ready? */
bool task_is_held_back(const struct task *task);

/* How much of its time limit is left to a live claim; it stands still while a person is asked. Negative: it is past it. */
int64_t task_run_remaining_ms(const struct task *task, const struct given *given);

/* What a change of a session's task means for the session: started, gone, ended, or nothing (EVENT_NONE). */
enum event_kind task_session_event(
	enum event_kind event, uint64_t fence_before, bool held_before, const struct task *after);

/* Is a session over with its task in that state? It may come back from it, by a person's hand. */
bool task_session_is_over(enum task_state state);

/* What is left of the claim in milliseconds, as things stand: until its lease is over, or until it is taken back because nobody
 * has confirmed it. `worker` is its holder. */
int64_t task_lease_remaining_ms(
	const struct task *task, const struct worker *worker, const struct given *given);

/* The next moment on each clock at which this task wants to be looked at; INT64_MAX for never. */
int64_t task_next_wall_ms(const struct task *task);
int64_t task_next_lease_ms(const struct task *task, const struct given *given);

/* Since when a task stands in line where it counts for its priority how long it waits: a step of priority is worth age_ms. */
static inline int64_t task_line_ms(int32_t priority, int64_t created_ms, int64_t age_ms)
{
	return created_ms - priority * age_ms;
}

/* Claim order: priority high to low, then creation time, then creation sequence. With age_ms: since when it stands in line, then
 * creation sequence. Negative: a goes first. */
int task_claim_order(const struct task *a, const struct task *b, int64_t age_ms);

/* task_check() asserts the invariants of a task that was decided; task_is_sound() asks whether a task that was read has them. */
void task_check(const struct task *task);
bool task_is_sound(const struct task *task);
