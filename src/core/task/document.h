/*
 * Tasks, workers and slots as a reader gets them: their columns, and what is kept beside them.
 */
#pragma once

#include "base/span.h"
#include "core/flow/bulk.h"
#include "core/flow/group.h"
#include "core/flow/hold.h"
#include "core/flow/limit.h"
#include "core/flow/queue.h"
#include "core/task/log_streams.h"
#include "core/worker/slot.h"
#include "core/task/task.h"
#include "core/flow/budget.h"
#include "core/task/usage.h"
#include "core/worker/worker.h"

/* The few columns by which a list chooses and orders tasks, before it reads any of them. */
struct task_outline {
	int64_t seq;
	int64_t created_ms;
	uint32_t queue, owner;
	int32_t priority;
	enum task_state state;
	uint32_t group;
	int64_t subtask_of;
};

static inline struct task_outline task_outline_of(const struct task *task)
{
	return (struct task_outline){task->seq, task->created_ms, task->queue, task->owner, task->priority,
		task->state, task->group, task->subtask_of};
}

/* Kept in place of an answer: nobody answered in time. */
#define ANSWER_LATE SPAN("late")

/* The last holder of a task, when it claimed the task, and until when its lease would have lasted. */
struct last_holder {
	struct span worker;
	int64_t claimed_ms, until_ms; /* wall */
};

/* A task as it is, with what is kept beside it. Spans live in the reader's arena. */
struct task_document {
	struct task task;
	struct span id;
	struct span holder; /* worker id */
	struct span body;
	struct span result, error, checkpoint, question, answer, evidence, session;
	struct usage usage;    /* of all its attempts */
	struct span *tellings; /* what people told it: from that number to that number … */
	uint32_t first_telling, last_telling;
	uint32_t heard_telling;   /* … of which a holder has heard up to that one */
	uint32_t question_number; /* of the question; 0: it was asked of an older server */
	struct span progress;     /* the last words of the attempt about how far it is: "note", "percent" */
	/* read separately, because few callers need them: */
	struct span words; /* the last that a holder said, for people */
	/* For a task that is final or in review, if its last claim was made by name; else empty. */
	struct last_holder last;
	/* The work's own report of its end, until its supervisor has ended the attempt. */
	struct span report;
	int64_t lease_ms; /* remaining */
	/* wall: when it was last taken from a dead slot worker, and when it last failed under one; 0: never */
	int64_t recovered_ms, failed_ms;
	struct span previous_session, failed_session; /* the session at each of these times */
};

/* A queue as it stands. */
struct queue_document {
	uint32_t number;   /* of its name */
	uint32_t key_caps; /* keys that have a number of their own */
	enum queue_state state;
	uint32_t count[TASK_STATE_COUNT]; /* tasks by state; final ones are not counted */
	uint32_t workers;                 /* live ones that take its work, as far as is known */
	int64_t oldest_ready_ms; /* wall: since when the longest waiting task is ready; 0: no task is ready */
	struct queue_limits limits;
	struct queue_load load;
	int64_t next_seq; /* a task that is ready, one of the first to be taken; 0: none is */
};

/* A concurrency key of a queue, or, as key 0, its tasks without one. */
struct key_document {
	uint64_t key;
	uint32_t live;    /* tasks with a live claim */
	uint32_t begun;   /* tasks that were claimed once and are not final */
	uint32_t waiting; /* tasks that are ready, or parked */
	int64_t task;     /* seq of one that waits; 0: none does */
};

/* A worker with what it said of itself. Spans live until the next turn. */
struct worker_document {
	struct span id;
	struct worker worker;
	struct span metadata; /* as it was given; empty: none */
	uint32_t instance;    /* how often that name has come to life */
	const uint32_t *
		queues; /* names of the queues that it asked for work since the server runs, the first of them … */
	uint32_t queue_count; /* … and how many of them are named */
	bool any_queue;       /* it asks for work of any queue */
	uint32_t restarts;    /* unclean ends in its slot */
	int64_t ended_ms;     /* wall: since when it is inactive, else 0 */
	int64_t news_seq; /* the last event that concerns it; after a start of the server the last event of all */
};

/* What makes a task a session. Spans live in the reader's arena. */
struct session_document {
	struct span label;
	struct span spec; /* what was asked for */
	struct span notice;
	bool own;   /* the task was created for the session */
	bool found; /* nobody asked for it: a worker runs an agent, and calls it so */
};

/* The hold of an account. Spans live until the next turn. */
struct hold_document {
	struct span name;
	struct hold hold;
	uint32_t tasks; /* that name the account and wait */
};

/* A budget of a day. The span lives until the next turn. */
struct budget_document {
	enum budget_scope scope;
	struct span name;
	struct day_budget budget;
};

/* A task that somebody asked for in a transaction of their own. */
struct inbox_row {
	int64_t id;
	struct span queue, role, task; /* who asked, by the name in the database; the document */
};

/* A row of the inbox that cannot become a task. */
struct inbox_document {
	int64_t id;
	int64_t since_ms; /* wall: when it was refused */
	struct span queue;
	struct span role; /* who put it there, by the name in the database */
	struct span why;  /* the refusal, as JSON */
	struct span task; /* the document; mostly JSON */
};

/* A group with its counts. It lives until the next turn. */
struct bulk_document {
	const struct bulk *bulk;
	const struct bulk_progress *progress;
};

struct group_document {
	struct span name;
	const struct group_state *group;
};

/* An account that a live worker announced. */
struct account_document {
	struct span name, executor, worker;
};

/* A slot and who fills it. Spans live until the next turn. */
struct slot_document {
	struct span name;
	struct slot slot;
	struct span worker;          /* id of the live worker that fills it */
	const struct worker *filler; /* NULL: nobody does */
};

/* A piece of the log of an attempt: what is kept from `offset` on without a gap. */
struct log_piece {
	uint32_t attempt;
	int64_t offset;
	int64_t dropped; /* bytes between the position asked for and `offset` that are not kept */
	struct span data;
	struct log_streams streams; /* of the data */
	int64_t length;             /* of the log so far, kept or not */
};
