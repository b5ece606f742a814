/*
 * Commands and results: what goes into a turn and what comes out of it.
 *
 * A command is valid by construction: its builder has checked syntax, bounds and permission. Spans
 * are borrowed and must live until the turn is over. Bodies, results and texts are bytes that nobody below
 * the API looks into. Names are 1 to COMMAND_NAME_MAX bytes without control characters, ids 1 to
 * COMMAND_ID_MAX; delays and limits are not negative.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "core/task/log_streams.h"
#include "core/task/failure.h"
#include "core/flow/budget.h"
#include "core/flow/bulk.h"
#include "core/flow/group.h"
#include "core/flow/limit.h"
#include "core/flow/queue.h"
#include "core/flow/schedule.h"
#include "core/task/subtask.h"
#include "core/task/task.h"
#include "core/task/usage.h"
#include "core/task/verdict.h"
#include "core/worker/login.h"
#include "core/worker/token.h"
#include "core/worker/worker.h"
#include "core/workflow.h"

enum command_kind {
	/* producers and operators */
	COMMAND_CREATE = 1,
	COMMAND_UPDATE,
	COMMAND_CANCEL,
	COMMAND_STOP, /* data: the error that says why */
	COMMAND_RETRY,
	COMMAND_PARK,
	COMMAND_UNPARK,
	COMMAND_ANSWER,
	COMMAND_PASS,
	COMMAND_REJECT,
	COMMAND_VERDICT, /* beside: what speaks for it */
	COMMAND_EMIT,    /* the note: what somebody outside tells about the task */
	COMMAND_PURGE,   /* a final task is removed before retention does it */
	COMMAND_TELL,    /* data: what a person says to whoever works on the task */
	COMMAND_HOLD_SET,
	COMMAND_HOLD_LIFT,
	COMMAND_BUDGET_SET,
	COMMAND_SCHEDULE_PUT,
	COMMAND_SCHEDULE_REMOVE,
	COMMAND_SCHEDULE_RUN, /* an occurrence by hand */
	COMMAND_SCHEDULE_PAUSE,
	COMMAND_SCHEDULE_RESUME,
	COMMAND_GROUP_CLOSE,
	COMMAND_GROUP_REMOVE,
	COMMAND_BULK_START,
	COMMAND_BULK_STOP,
	COMMAND_BULK_STEP, /* of the server itself: the next tasks of a bulk action */
	COMMAND_QUEUE_SET,
	COMMAND_QUEUE_LIMIT,
	COMMAND_EXECUTION_SET,
	/* workers about tasks */
	COMMAND_CLAIM_NEXT,
	COMMAND_CLAIM,
	COMMAND_PROGRESS,
	COMMAND_COMPLETE,
	COMMAND_FAIL,
	COMMAND_REVIEW,
	COMMAND_BLOCK,
	COMMAND_ASK,
	COMMAND_WAIT, /* for its subtasks */
	COMMAND_RELEASE,
	COMMAND_LOG,    /* data: the bytes */
	COMMAND_RETURN, /* the socket closed before the reply that carried the claim was written */
	/* workers about themselves */
	COMMAND_REGISTER,
	COMMAND_BEAT,
	COMMAND_QUIET,
	COMMAND_TERMINATE,
	COMMAND_LEAVE,
	COMMAND_SLOT_CRASH,
	COMMAND_UNQUARANTINE,
	COMMAND_SLOT_ASSIGN,
	COMMAND_SLOT_ENTER, /* worker: who wants to run in it */
	/* admins about credentials */
	COMMAND_TOKEN_PUT,
	COMMAND_TOKEN_REVOKE,
	/* machines: one shows a join code and gets a token; a token gets a new secret */
	COMMAND_ENROL,
	COMMAND_TOKEN_RENEW,
	/* browsers: a code is made, becomes a session, and the session ends */
	COMMAND_LOGIN_CODE,
	COMMAND_LOGIN,
	COMMAND_LOGOUT,
	COMMAND_KEY_ROTATE, /* a new key signs the tokens of instances and claims */
	/* Leaves server.audited with `actor` and `note`, and does nothing else: for what an admin does outside the store
	 * (a backup, a query). It goes first, so that nothing is done that left no trace. */
	COMMAND_AUDIT,
	COMMAND_KIND_COUNT,
};

enum {
	COMMAND_LIST_MAX = 100,       /* queues, capabilities, executors, deltas of one command */
	ASSIGNMENT_SEPARATOR = 31,    /* stands before each of the queues that are kept for a slot */
	COMMAND_PARENTS_MAX = 100,    /* blockedBy of one task */
	COMMAND_CHILDREN_MAX = 10000, /* tasks blocked by one task */
	COMMAND_CLAIMS_MAX = 100,     /* tasks handed out by one claim */
	COMMAND_NAME_MAX = 255,       /* bytes of a queue, slot, executor or capability */
	COMMAND_ID_MAX = 128,         /* bytes of a task id or worker id */
	COMMAND_EMITS_MAX = 1000,     /* ids of events from outside that are remembered with one task */
};

/* The task runs as a session: it is found by a label, and its events name the label. */
struct command_spawn {
	struct span label; /* 1 to COMMAND_ID_MAX bytes; empty: the id of the task */
	struct span spec;  /* the caller's request, kept with the task; empty: no session */
	struct span
		notice; /* goes into the event of its end, for the program that sends a message about it */
	bool found;     /* nobody asked for it by a label: its worker runs an agent, and this is its id */
};

/* The accounts of a worker: with which executor it uses which. Subtasks and fallbacks in the same form: of which executor, which
 * others. */
struct command_account {
	struct span executor, account;
};

struct command_accounts {
	bool given; /* it said something of them */
	uint32_t count;
	const struct command_account *items;
};

/* What a worker says of its executors. */
struct command_announced {
	struct command_accounts accounts;
	struct command_accounts subtasks; /* with which executor which others may be named in subtasks */
	struct command_accounts
		fallback; /* which others take the place of an executor whose account is held, first to last */
};

struct command_create {
	struct span id;    /* empty: one is generated */
	struct span queue; /* empty: of a subtask, that of its parent; else never */
	struct span owner, executor, credential;
	struct span concurrency_key; /* its text is in `body` too */
	bool subtask;                /* of the task whose claim the command shows */
	bool says_priority, runs_anyway;
	const struct subtask_budget *budget; /* of a subtask whose parent has one; else NULL */
	struct name_list requires;
	struct name_list parents;           /* ids of the tasks that block it */
	struct span group;                  /* of which it is a member; empty: of none */
	struct name_list blocked_by_groups; /* at most TASK_GROUPS_MAX */
	struct span unique_key;
	enum on_conflict on_conflict; /* where another task holds the key */
	int64_t unique_for_ms; /* so long from its creation it holds the key, even if it is done before; 0: until its end */
	struct span body; /* everything else the caller said */
	int32_t priority;
	uint32_t timeout_ms, max_attempts; /* 0: the default */
	int64_t not_before_ms, start_by_ms, finish_by_ms;
	bool parked;
	struct command_spawn spawn;
	bool autonomous;
	enum workflow workflow;
	struct name_list gates;
	struct task_past past;
	struct span past_result, past_error, past_note; /* kept with the task, as if reported here */
	struct span past_holder;
	/* made by a schedule, for this planned instant; no request sets these */
	struct span schedule; /* its id */
	int64_t planned_ms;
	bool held; /* until the task that the schedule made before has ended */
	/* one effect per (principal, key): the same fingerprint gets the same answer, another one is refused */
	struct span idempotency_key;
	unsigned char fingerprint[16];
};

struct command_update {
	struct task_patch patch; /* its names and parents are filled in from the next six fields */
	struct span owner, queue, executor, credential, concurrency_key;
	struct name_list requires;
	struct name_list parents;
	struct span unique_key; /* empty: the key is removed */
	enum task_status
		status; /* set after the patch, for the slot that owns the task; STATUS_NONE: unchanged */
	bool set_body;
	struct span body;
	int64_t body_version;             /* the version of the task that `body` was made from; 0: none */
	bool says_failure, says_recovery; /* `body` has the caller's own time of the failure or recovery */
	struct command_spawn spawn;
};

struct command_claim {
	struct name_list queues; /* empty: all */
	struct span slot;
	struct name_list capabilities;
	struct name_list executors;
	struct command_announced announced;
	bool any_executor; /* no executors were named: any will do */
	bool named, takes_pending, takes_ready, resumes, confirms;
	bool tokens; /* each claim is handed out with a token */
	bool forbidden; /* COMMAND_CLAIM_NEXT: the credential is not for all of these queues: refused, and noted for `why` */
	bool enters; /* COMMAND_CLAIM: an older client's claim registers or revives its worker */
	bool fits; /* COMMAND_CLAIM: only a task that names no executor, and whose `requires` the worker has */
	bool extends; /* COMMAND_CLAIM: renews a claim the caller already holds; a fence, if given, must match */
	uint32_t max; /* for COMMAND_CLAIM_NEXT */
	int64_t lease_ms, run_ms;
	uint64_t request; /* digest of the requestId, 0 = none */
};

struct command_queue_limit {
	struct span queue;
	struct limits_patch patch;
	/* keys that get a number of their own, or lose it with 0; at first all lose theirs if `lifts_caps` */
	const struct command_key_cap {
		struct span key;
		uint32_t most;
	} *caps;
	uint32_t cap_count; /* at most KEY_CAPS_MAX */
	bool lifts_caps;
	struct day_budget_patch budget; /* of a day */
};

struct command_schedule {
	struct schedule schedule; /* of all but PUT the id alone; the store fills in the template */
	const struct command_create *create; /* PUT: the template */
	bool changes;                        /* PUT: the schedule is there, and becomes this */
	bool paused;                         /* PUT */
	int64_t at_ms;                       /* RUN: a planned instant that was skipped; 0: now */
};

/* A task that matched when it was looked at. If it has another version by now, it is to be looked at again. */
struct bulk_item {
	int64_t seq, version;
	bool damaged; /* it could not be read: it is passed over */
};

struct command_bulk {
	struct bulk bulk; /* START; of STOP and STEP the number alone; the store fills in who asks */
	uint64_t matched; /* START */
	/* START: one action per (principal, key): see command_create */
	struct span idempotency_key;
	unsigned char fingerprint[16];
	struct span login; /* START: the browser session of the caller; empty: it comes by a token */
	int64_t from, to;  /* STEP: tasks behind `from` were looked at, up to `to` */
	const struct bulk_item *items; /* STEP: those that matched, in order, at most BULK_STEP_MAX */
	uint32_t item_count;
	bool damaged; /* STEP: what follows cannot be read, and the action is stopped */
};

/* Which process a worker is; see struct worker_process. */
struct command_process {
	struct span host;
	uint64_t boot_hi, boot_lo;
	uint32_t pid;
	uint64_t start;
};

/* A newcomer says: the worker in its slot was this process on the newcomer's own machine, and is dead. */
struct command_replaces {
	struct span worker; /* empty: it says no such thing */
	uint32_t pid;
	uint64_t start;
	bool seen_alive; /* by the server, which runs on the same machine */
};

struct command_beat {
	bool has_token;
	uint64_t token;
	int64_t lease_ms;
	bool describes;
	bool named;
	struct span slot;
	struct command_process process;
	struct span version;
	struct command_replaces replaces;
	struct name_list capabilities, executors;
	struct command_announced announced;
	bool any_executor;
	uint32_t max_concurrent;
	struct span metadata;
	struct name_list bound, unbound; /* task ids */
	bool tells_all;                  /* `bound` is all it runs: its other claims become unbound */
	struct span session; /* kept with each bound task, when that is bound or the metadata changes */
};

/* A task that a stage of another task creates, by enum action. Without a queue no task is created, and the event names the
 * action. */
/* What PROGRESS, REPORT, EMIT or VERDICT say about the task, for its workflow. */
struct command_told {
	struct outside_event event; /* the store sets by_holder and is_verdict when it decides */
	bool may_judge;             /* the principal has the scope of the workflows' gate */
	bool by_work;               /* said by the work itself, with the token of its claim */
	bool ends;                  /* a worker's final event ends its claim, with or without a workflow */
	struct span note;           /* of the event that names the new stage */
	struct span error;          /* kept as the task's error, if this event makes it fail, … */
	struct span rejection;      /* … or rejects its last attempt */
};

struct command_verdict {
	struct span gate;
	bool passes;
};

/* One effect per task and id: the same fingerprint is answered again, another one refused. */
struct command_emit {
	struct span id;  /* empty: every repetition has an effect */
	uint64_t digest; /* of the id */
	unsigned char fingerprint[16];
};

/* A question, or the number of one that is taken back. */
struct command_ask {
	struct span what;       /* what two questions must have in common to be the same one */
	struct span permission; /* what an answer may allow for the whole task; empty: nothing */
	struct span granted;    /* the answer, if that was allowed for the whole task before */
	int64_t answer_by_ms;   /* wall; 0: it waits for ever */
	uint32_t withdraws;     /* number of a question; 0: it asks */
};

struct command_answer {
	uint32_t question; /* its number; 0: the caller named none */
	bool for_task;     /* what was asked for is allowed until the task is final */
};

struct command_token {
	struct span id;
	enum token_kind kind;
	unsigned char hash[TOKEN_HASH_BYTES];
	struct span name;
	struct span gate;        /* of TOKEN_GATE */
	struct name_list queues; /* empty: all */
	int64_t lives_ms;        /* 0: until it is revoked */
	uint32_t uses;           /* TOKEN_PUT of a join code */
	int64_t grants_ms;       /* TOKEN_PUT of a join code: how long the tokens live that it gives */
	struct span code;        /* ENROL: id of the join code */
	unsigned char shown[TOKEN_HASH_BYTES]; /* ENROL, TOKEN_RENEW: of the text that the caller showed */
};

struct command_login {
	struct span id;          /* of the code, and of the session that it becomes */
	enum token_kind role;    /* LOGIN_CODE */
	struct span maker, name; /* LOGIN_CODE: id of the token that made it; who it is for */
	unsigned char code_hash[TOKEN_HASH_BYTES];
	unsigned char cookie_hash[TOKEN_HASH_BYTES], key_hash[TOKEN_HASH_BYTES]; /* LOGIN */
	struct span replaces; /* LOGIN: the session that the browser had before; empty: none */
};

struct command {
	enum command_kind kind;
	struct span actor;  /* who, for the event */
	uint32_t principal; /* who, by number: workers, and claims, belong to one */
	bool anew;          /* RETRY: the next attempt goes on with no session */
	bool oversees;      /* an operator: it sees what others hold, and sends their workers away */
	struct span task;   /* its id */
	struct span worker; /* workerId */
	int64_t if_version; /* refused if the task has another version; 0: any version */
	struct name_list
		within; /* a task outside these queues does not exist for the caller; empty: all queues */
	uint64_t fence;
	bool by_name;   /* no fence was given */
	bool wait_ends; /* WAIT: the process of the work has ended */
	enum seen_end
		seen; /* COMPLETE, FAIL, REPORT, BLOCK, RELEASE: the end by its report; core/task/verdict.h */
	struct span data;   /* kept with the task: a result, an error, a checkpoint, a question, an answer */
	struct span beside; /* kept with the task too: the evidence of a REPORT, the session of a PROGRESS */
	struct span note;   /* goes into the event and nowhere else */
	struct span
		progress; /* COMMAND_PROGRESS: how far it is, kept beside the task while the attempt lasts */
	struct command_told told;
	struct span words; /* kept with the task: the holder's last message for people */
	uint32_t
		heard; /* PROGRESS: the number of the last telling that the holder has heard; 0: it does not say */
	struct span account; /* FAIL: the account that the error names; empty: none */
	struct usage usage;  /* PROGRESS: what the attempt has used so far */
	bool uses;           /* PROGRESS: the model has answered, so its account works */
	struct span prompt;  /* PROGRESS: what the agent was told first; kept with the task */
	struct span agent;   /* PROGRESS: what is known of the agent that runs; kept with the task */
	struct command_spawn
		session; /* PROGRESS: of an agent, if nobody asked for one by a label; no label: none */
	/* The work's own report of its end: under a supervisor it is kept, and the claim goes on. A struct ending, as
	 * ending_put() writes it. */
	struct span report;
	union {
		struct command_create create;
		struct command_update update;
		struct command_claim claim;
		struct command_beat beat;
		struct command_emit emit;
		struct command_verdict verdict;
		struct failure failure; /* FAIL, BLOCK */
		int64_t lease_ms;       /* PROGRESS */
		struct command_ask ask;
		struct command_answer answer;
		struct {
			int64_t offset, dropped;
			struct log_streams streams;
		} log;                 /* LOG */
		int64_t version;       /* RETURN: of the task as it was handed out */
		int64_t delay_ms;      /* RELEASE */
		enum worker_end leave; /* LEAVE */
		struct {
			struct span queue;
			enum queue_state state;
		} queue_set;
		struct command_queue_limit queue_limit;
		bool armed; /* EXECUTION_SET */
		struct {
			struct span credential;
			int64_t until_ms; /* 0: until a person acts */
		} hold;                   /* HOLD_SET, HOLD_LIFT */
		struct {
			enum budget_scope scope;
			struct span name;
			struct day_budget_patch patch;
		} budget; /* BUDGET_SET */
		struct {
			struct span slot;      /* SLOT_CRASH, UNQUARANTINE, SLOT_ENTER */
			struct span crash_key; /* SLOT_CRASH: an idempotency key, as in command_create */
			unsigned char crash_fingerprint[16];
		};
		struct {
			struct span slot;
			struct name_list queues; /* in the caller's order, with repetitions */
		} assign;
		struct {
			struct span name;
		} group;                    /* GROUP_CLOSE, GROUP_REMOVE */
		struct command_token token; /* TOKEN_PUT, ENROL, TOKEN_RENEW; of TOKEN_REVOKE the id alone */
		struct command_schedule schedule; /* SCHEDULE_… */
		struct command_bulk bulk;         /* BULK_… */
		struct command_login login;       /* LOGIN_CODE, LOGIN; of LOGOUT the id alone */
	};
};

/* How many bytes of the command are in use: thousands of claims may wait, and only these bytes of each are kept. */
static inline size_t command_bytes(const struct command *command)
{
	return command->kind == COMMAND_CLAIM_NEXT ? offsetof(struct command, claim) + sizeof command->claim
						   : sizeof *command;
}

/* A question that was answered. */
struct answered {
	uint32_t number;
	struct span question, answer;
};

/* A task handed to a claimant. */
struct claimed {
	struct task task;
	struct span id;
	struct span body;
	struct span fallback; /* the executor that takes the place of its own; empty: none */
	struct span checkpoint, session;
	struct span question, answer; /* the last question, and its answer */
	uint32_t question_number;
	const struct answered *answered; /* its questions that were answered, oldest first */
	uint32_t answered_count;
	struct span *tellings; /* what it was told: from that number to that number */
	uint32_t first_telling, last_telling;
	const struct span *allowed; /* what was allowed for the whole task */
	uint32_t allowed_count;
	struct span error;  /* of the attempt before */
	struct usage usage; /* of all attempts before */
	int64_t lease_ms;   /* remaining */
};

/* What happened. Spans and lists live until the next turn begins. */
struct result {
	enum refusal refusal;
	bool repeated;       /* accepted before: the same answer again */
	bool deduplicated;   /* CREATE: the unique key is held by this task */
	bool not_yours;      /* FORBIDDEN: the worker is another principal's */
	bool slot_not_yours; /* FORBIDDEN: the slot belongs to another principal */
	bool other_queues;   /* FORBIDDEN: the credential is not for all of the queues */
	bool restored;       /* STALE_CLAIM: the store was restored since that fence was given */
	enum subtask_excess
		excess; /* INVALID: what the subtask has more than its parent allows; `id`: the task in question */
	uint32_t budget_part; /* … EXCESS_BUDGET: which part of its budget … */
	double budget_left;   /* … and what the parent has left of it */
	bool cyclic;          /* INVALID: the parent `id` waits for the task itself */
	bool names_spent;     /* TOO_LARGE: the principal has brought in as many names as it may */
	bool workers_spent;   /* QUOTA_EXCEEDED: the principal has as many live workers as it may */
	bool own_work;        /* FORBIDDEN: the principal has held an attempt of the task */
	bool unfit;           /* FORBIDDEN: the task names an executor, or requires what the worker has not */
	bool told_enough;  /* TOO_LARGE: nobody has heard what the task, or so many tasks, were told before */
	bool asked_enough; /* TOO_LARGE: the attempt has asked as many questions as it may */
	uint32_t bulk;     /* BULK_START: its number */
	bool put_off;      /* UNAVAILABLE: this turn hands out no more; try again in the next turn */
	struct task task;  /* as it is now; for a refusal as it was found (seq 0: no such task) */
	struct span id;
	struct span group;           /* CREATE: the group that the refusal is about; empty: about none */
	int64_t log_length;          /* BAD_OFFSET: bytes that the log has */
	int64_t noted_seq, noted_ms; /* EMIT: number and time of the event it became, now or the first time */
	int64_t event_seq;           /* the last event of this command, or 0 */
	/* claims */
	const struct claimed *claims;
	uint32_t claim_count;
	/* workers */
	struct worker worker;
	struct span slot_holder; /* SLOT_TAKEN: the worker that fills the slot */
	enum evidence
		evidence; /* SLOT_TAKEN: why the caller's word that this worker is dead was not believed */
	enum limit_kind limit;   /* LIMITED: by what */
	int64_t until_ms;        /* LIMITED: wall; 0: it is not known */
	int64_t retry_ms;        /* RATE_LIMITED: how long to wait */
	bool crash_loop;         /* RATE_LIMITED: the limit of one slot or id, and not of the principal */
	const struct span *lost; /* BEAT: bound, but not held */
	uint32_t lost_count;
	const struct span *stop; /* BEAT: held, and to be stopped */
	uint32_t stop_count;
	const struct span *reported; /* BEAT: held, and the work has said how it ended */
	uint32_t reported_count;
	const struct span *tell; /* BEAT: held, and was told something that its holder has not heard */
	uint32_t tell_count;
	bool told;               /* PROGRESS: the same of this task */
	const struct span *park; /* BEAT: held, and its process has waited long enough for an answer */
	uint32_t park_count;
	uint32_t question; /* ASK: the number of the question; QUESTION_CHANGED: of the one that is open */
	bool heard; /* COMPLETE, FAIL, REPORT, BLOCK: kept as the work's own report; the claim goes on */
};
