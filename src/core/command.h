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
#include "core/task/failure.h"
#include "core/flow/queue.h"
#include "core/task/task.h"
#include "core/task/verdict.h"
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
	COMMAND_QUEUE_SET,
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

/* The task is to run as a session: under a label, found by it and told of by it. */
struct command_spawn {
	struct span label; /* 1 to COMMAND_ID_MAX bytes; empty: the id of the task */
	struct span spec;  /* what was asked for, kept with the task; empty: it is no session */
	struct span
		notice; /* goes into the event of its end, for the program that sends a message about it */
};

struct command_create {
	struct span id;    /* empty: one is generated */
	struct span queue; /* never empty */
	struct span owner, executor;
	struct name_list requires;
	struct name_list parents; /* ids of the tasks that block it */
	struct span unique_key;
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
	struct span past_result, past_error,
		past_note; /* kept with the task, as if they had been said here */
	struct span past_holder;
	/* one effect per (principal, key): the same fingerprint is answered again, another one refused */
	struct span idempotency_key;
	unsigned char fingerprint[16];
};

struct command_update {
	struct task_patch patch; /* its names and parents are filled in from these: */
	struct span owner, queue, executor;
	struct name_list requires;
	struct name_list parents;
	struct span unique_key; /* empty: none any more */
	enum task_status
		status; /* then it goes into this lane, for the slot that owns it; STATUS_NONE: it stays */
	bool set_body;
	struct span body;
	int64_t body_version;             /* `body` was made from the text of this version; 0: from none */
	bool says_failure, says_recovery; /* `body` has the caller's own word of when that was */
	struct command_spawn spawn;
};

struct command_claim {
	struct name_list queues; /* empty: all */
	struct span slot;
	struct name_list capabilities;
	struct name_list executors;
	bool any_executor; /* no executors were named: any will do */
	bool named, takes_pending, takes_ready, resumes, confirms;
	bool tokens; /* each claim is handed out with a token */
	bool enters; /* COMMAND_CLAIM: by a name that is heard with it, and comes to life if it has not yet, or had ended */
	bool extends; /* COMMAND_CLAIM: what it holds already is claimed for longer; with a fence only under that one */
	uint32_t max; /* for COMMAND_CLAIM_NEXT */
	int64_t lease_ms, run_ms;
	uint64_t request; /* digest of the requestId, 0 = none */
};

/* Which process a worker is; see struct worker_process. */
struct command_process {
	struct span host;
	uint64_t boot_hi, boot_lo;
	uint32_t pid;
	uint64_t start;
};

/* A newcomer's word that the worker in its slot, which was that process on the newcomer's own machine, is dead. */
struct command_replaces {
	struct span worker; /* empty: it says nothing of the kind */
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
	bool any_executor;
	uint32_t max_concurrent;
	struct span metadata;
	struct name_list bound, unbound; /* task ids */
	bool tells_all;                  /* `bound` is all it runs: what it holds besides is unbound */
	struct span session; /* kept with what is bound, when it is bound or the metadata changes */
};

/* Tasks that a stage of another one sets going, by enum action; those without a queue are only told in the event. */
struct command_action {
	struct span queue;
	struct span body;
};

/* What is told about the task with PROGRESS, REPORT, EMIT or VERDICT, for its workflow. */
struct command_told {
	struct outside_event event; /* by_holder and is_verdict are set by the store when it decides … */
	bool may_judge;             /* … from this: the principal has the scope of the gate of workflows */
	bool by_work;               /* the work itself says it, with the token of its claim */
	bool ends;         /* a worker's last word ends its claim, whether the task has a workflow or not */
	struct span note;  /* of the event that says where it stands now */
	struct span error; /* kept as the error of the task, if it has failed with that */
	const struct command_action *actions; /* ACTION_COUNT of them; NULL: there are none */
};

struct command_verdict {
	struct span gate;
	bool passes;
};

/* One effect per task and id: the same fingerprint is answered again, another one refused. */
struct command_emit {
	struct span id;  /* empty: it acts whenever it is said */
	uint64_t digest; /* of the id */
	unsigned char fingerprint[16];
};

struct command_token {
	struct span id;
	enum token_kind kind;
	unsigned char hash[TOKEN_HASH_BYTES];
	struct span name;
	struct span gate;        /* of TOKEN_GATE */
	struct name_list queues; /* empty: all */
	int64_t lives_ms;        /* 0: until it is revoked */
};

struct command {
	enum command_kind kind;
	struct span actor;       /* who, for the event */
	uint32_t principal;      /* who, by number: workers, and claims, belong to one */
	bool oversees;           /* an operator: it sees what others hold, and sends their workers away */
	struct span task;        /* its id */
	struct span worker;      /* workerId */
	int64_t if_version;      /* refused if the task has another version by now; 0: whatever it has */
	struct name_list within; /* a task outside these queues is not there for the caller; empty: all are */
	uint64_t fence;
	bool by_name; /* no fence was given */
	enum seen_end
		seen; /* COMPLETE, FAIL, REPORT, BLOCK, RELEASE: the end by its report; core/task/verdict.h */
	struct span data;   /* kept with the task: a result, an error, a checkpoint, a question, an answer */
	struct span beside; /* kept with the task too: the evidence of a REPORT, the session of a PROGRESS */
	struct span note;   /* goes into the event and nowhere else */
	struct command_told told;
	struct span words; /* kept with the task: the last that its holder said, for people */
	/* Said by the work itself: under a supervisor this is kept, and the claim goes on. A struct ending, as ending_put() writes it. */
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
		struct span asked;      /* ASK: what two questions must have in common to be the same one */
		struct {
			int64_t offset, dropped;
		} log;                 /* LOG */
		int64_t version;       /* RETURN: of the task as it was handed out */
		int64_t delay_ms;      /* RELEASE */
		enum worker_end leave; /* LEAVE */
		struct {
			struct span queue;
			enum queue_state state;
		} queue_set;
		bool armed; /* EXECUTION_SET */
		struct {
			struct span slot;      /* SLOT_CRASH, UNQUARANTINE, SLOT_ENTER */
			struct span crash_key; /* SLOT_CRASH: one effect for each, as of creates */
			unsigned char crash_fingerprint[16];
		};
		struct {
			struct span slot;
			struct name_list queues; /* in order, and as often as they are named */
		} assign;
		struct command_token token; /* TOKEN_PUT; of TOKEN_REVOKE the id alone */
	};
};

/* How much of it means something: thousands of claims may wait, and each is kept no longer than this. */
static inline size_t command_bytes(const struct command *command)
{
	return command->kind == COMMAND_CLAIM_NEXT ? offsetof(struct command, claim) + sizeof command->claim
						   : sizeof *command;
}

/* A task handed to a claimant. */
struct claimed {
	struct task task;
	struct span id;
	struct span body;
	struct span checkpoint, session;
	struct span question, answer; /* the last one, and what was said to it */
	int64_t lease_ms;             /* remaining */
};

/* What happened. Spans and lists live until the next turn begins. */
struct result {
	enum refusal refusal;
	bool repeated;     /* accepted before: answered as then */
	bool deduplicated; /* CREATE: the unique key is held by this task */
	bool not_yours;    /* FORBIDDEN: the worker is another principal's */
	bool restored;     /* STALE_CLAIM: the store was restored since that fence was given */
	bool cyclic;       /* INVALID: the parent `id` waits for the task itself */
	bool names_spent;  /* TOO_LARGE: the principal has brought in as many names as it may */
	bool own_work;     /* FORBIDDEN: the principal has held an attempt of the task */
	bool put_off;      /* UNAVAILABLE: this turn hands out no more; to be tried again in the next one */
	struct task task;  /* as it is now; for a refusal as it was found (seq 0: there is none) */
	struct span id;
	int64_t log_length;          /* BAD_OFFSET: so far it goes */
	int64_t noted_seq, noted_ms; /* EMIT: the event that it became, now or the first time */
	int64_t event_seq;           /* the last event of this command, 0 if there is none */
	/* claims */
	const struct claimed *claims;
	uint32_t claim_count;
	/* workers */
	struct worker worker;
	struct span slot_holder; /* SLOT_TAKEN: who fills it … */
	enum evidence evidence;  /* … and why the word that it is dead was not believed */
	int64_t retry_ms;        /* RATE_LIMITED: after that long … */
	bool crash_loop;         /* … because of one slot or id, and not of all that the principal does */
	const struct span *lost; /* BEAT: bound, but not held */
	uint32_t lost_count;
	const struct span *stop; /* BEAT: held, and to be stopped */
	uint32_t stop_count;
	const struct span *reported; /* BEAT: held, and the work has said how it ended */
	uint32_t reported_count;
	const struct span *park; /* BEAT: held, and its process has waited long enough for an answer */
	uint32_t park_count;
	bool heard; /* COMPLETE, FAIL, REPORT, BLOCK: it was kept as the word of the work; the claim goes on */
};
