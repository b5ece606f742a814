/*
 * One worker of a pool, as its supervisor sees it: what its words, its silence and its end mean, and what is to be done.
 * No process, no clock, no server: time is an argument, so an hour of crashes is tested in a millisecond.
 *
 *	off ─▶ entering ─may run─▶ starting ─hello─▶ ready ◀─worker.ready─ answered
 *	        ▲    │                  │              └─execute.task─▶ busy ─result, failure─▲
 *	        │    ▼ slot is          └──────┬──────────────┬──────────┴─────────────┘
 *	        │  quarantined                 │ it ended     │ told to go, or it says so
 *	        │    │ asked again             ▼              ▼
 *	        └────┴──── waiting ◀──told── telling ◀─gone─ leaving
 *	                  at least 1 s       the server of its crash
 *
 * The caller does what the returned bits say. A crash is reported to the server before anything is started again: the third
 * within a minute quarantines the slot, and the server decides that, because it outlives us.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "pool/text.h"

enum {
	POOL_UNKNOWN_MAX = 100, /* frames in a row that are not understood */
};

struct pool_rules {
	int64_t hello_ms;   /* from the start to its hello */
	int64_t silence_ms; /* between two frames that are understood */
	int64_t ready_ms;   /* from its answer to its worker.ready */
	int64_t grace_ms;   /* from the end of its input to its own end */
	int64_t respawn_ms; /* the shortest time between two starts; doubles with each crash in a row */
	int64_t respawn_max_ms;
	int64_t settled_ms; /* after this time alive a crash is the first in a row */
	int64_t ask_ms;     /* the longest time between two questions about a quarantined slot */
	int64_t coming_ms;  /* a task waits for a worker that is started within this time */
};

/* The values of spec/stdio.md. */
struct pool_rules pool_rules_default(void);

enum pool_state {
	POOL_OFF,         /* nothing runs and nothing shall */
	POOL_ENTERING,    /* the server is asked whether the slot may run */
	POOL_QUARANTINED, /* the slot may not run: the server is asked again at due_ms */
	POOL_STARTING,    /* no hello yet */
	POOL_IDLE,
	POOL_BUSY,
	POOL_ANSWERED, /* its task has ended; worker.ready is awaited */
	POOL_LEAVING,  /* it shall go, or is being killed */
	POOL_TELLING,  /* it is gone; its crash is being reported to the server */
	POOL_WAITING,  /* until due_ms, to be started again */
};

/* What it did wrong. */
enum pool_fault {
	POOL_FAULT_NONE,
	POOL_FAULT_ENDED, /* it ended by itself */
	POOL_FAULT_SILENT,
	POOL_FAULT_LENGTH,    /* a frame longer than allowed, or output that is no frame at all */
	POOL_FAULT_HALF,      /* its output ended within a frame */
	POOL_FAULT_UNKNOWN,   /* too many frames in a row that are not understood */
	POOL_FAULT_NO_HELLO,  /* no hello in time */
	POOL_FAULT_NOT_READY, /* no worker.ready in time after its answer */
	POOL_FAULT_DEAF,      /* it closed its input */
	POOL_FAULT_MUTE,      /* it closed its output and did not end */
	POOL_FAULT_LEFT,      /* it said goodbye with a task, or before its hello */
};

struct pool_child {
	struct pool_rules rules;
	enum pool_state state;
	enum pool_fault fault;
	bool planned;          /* we want its end, or it announced its end while it had no task */
	bool has_task;         /* it has a task whose attempt is not over */
	bool spoke;            /* it has sent a frame about its task, so it has read the task */
	bool stop_task;        /* its task shall end without an answer */
	int64_t stop_grace_ms; /* of POOL_DO_TERM */
	bool retiring;         /* it is not started again */
	bool killed;           /* POOL_DO_KILL was returned */
	bool said_hello, said_ready;
	int64_t due_ms;   /* in most states: when to look again */
	int64_t heard_ms; /* the last frame that was understood */
	int64_t spawned_ms;
	int64_t assigned_ms;
	uint32_t crashes_in_row;
	uint32_t unknown_in_row;
	uint32_t asked_in_row; /* questions about its slot, while that is quarantined */
	/* since the supervisor's start */
	uint64_t starts, crashes, completed, failed;
	uint64_t unknown, strays; /* frames that were dropped */
	int64_t up_ms;            /* life time of its past processes */
};

/* What is to be done. */
enum pool_do {
	POOL_DO_ENTER = 1 << 0, /* ask the server: pool_child_entered() */
	POOL_DO_SPAWN =
		1 << 1, /* start the process: pool_child_gone() in the end, or pool_child_unspawned() */
	POOL_DO_CLOSE = 1 << 2, /* close its input */
	POOL_DO_TERM = 1 << 3,  /* TERM to its tree, KILL after stop_grace_ms */
	POOL_DO_KILL = 1 << 4,  /* KILL to its tree */
	POOL_DO_TELL = 1 << 5,  /* report its crash: pool_child_told() */
	/* its task has ended: by the message (an answer, or ready without an answer), by its fault, or because we stopped it */
	POOL_DO_END = 1 << 6,
	POOL_DO_WORK = 1 << 7, /* it is free now */
	POOL_DO_NOTE = 1 << 8, /* the message is progress of its task */
};

void pool_child_init(struct pool_child *worker, const struct pool_rules *rules);

/* Are its modules known, and can it be given work now or later? */
bool pool_child_is_alive(const struct pool_child *worker);

/* Will its modules be known soon, so that a task may wait for it? A task does not wait for a worker that is started again only
 * after a while, because another supervisor could run the task sooner. */
bool pool_child_is_coming(const struct pool_child *worker, int64_t now_ms);

/* It is wanted from now on. */
uint32_t pool_child_begin(struct pool_child *worker);

/* It is not wanted any more: an idle worker goes at once, a busy one when its task has ended. */
uint32_t pool_child_retire(struct pool_child *worker, int64_t now_ms);

enum pool_entry { POOL_ENTRY_FREE, POOL_ENTRY_QUARANTINED, POOL_ENTRY_UNKNOWN };

/* The server's answer about the slot. POOL_ENTRY_UNKNOWN: it did not answer. */
uint32_t pool_child_entered(struct pool_child *worker, enum pool_entry entry, int64_t now_ms);

/* The machine could not start it: no process, no memory. That is no crash. */
uint32_t pool_child_unspawned(struct pool_child *worker, int64_t now_ms);

/* It got a task. Only when it is idle. */
void pool_child_assign(struct pool_child *worker, int64_t now_ms);

/* The task must end without an answer (cancelled, too late): the worker goes, within the shorter grace. */
uint32_t pool_child_stop_task(struct pool_child *worker, int64_t grace_ms, int64_t now_ms);

/* Of which task a message speaks: the one that the worker has, the one that it had before, or neither. */
enum pool_subject { POOL_OF_NONE, POOL_OF_ITS_TASK, POOL_OF_THE_LAST, POOL_OF_ANOTHER };

/* A frame that was understood. */
uint32_t pool_child_hear(struct pool_child *worker, const struct pool_message *message,
	enum pool_subject subject, int64_t now_ms);

/* A frame that was not understood. `of_itself`: it was about the worker, not about its task. */
uint32_t pool_child_hear_unknown(struct pool_child *worker, bool of_itself);

/* The connection to it is broken: POOL_FAULT_LENGTH, POOL_FAULT_HALF, POOL_FAULT_DEAF. */
uint32_t pool_child_break(struct pool_child *worker, enum pool_fault fault);

/* Its output has ended: the worker ends soon, or we end it. */
uint32_t pool_child_hear_end(struct pool_child *worker, bool within_frame, int64_t now_ms);

/* Time has passed. */
uint32_t pool_child_look(struct pool_child *worker, int64_t now_ms);
int64_t pool_child_due_ms(const struct pool_child *worker); /* INT64_MAX: nothing is due */

/* Its shim ended it because we did not extend its lease in time: neither the worker nor its task has a fault. To be called
 * before pool_child_gone(). */
void pool_child_lapse(struct pool_child *worker);

/* It was ended because its task used up a budget: that is no crash of the worker. */
void pool_child_excuse(struct pool_child *worker);

/* Nothing of it runs any more, and all of its output was read. */
uint32_t pool_child_gone(struct pool_child *worker, bool within_frame, int64_t now_ms);

/* The server knows of the crash. */
uint32_t pool_child_told(struct pool_child *worker, enum pool_entry entry, int64_t now_ms);

bool pool_child_has_process(const struct pool_child *worker);

/* WORKER_CRASHED, PROTOCOL_ERROR or WORKER_INIT_FAILED, and in words. */
const char *pool_fault_code(const struct pool_child *worker);
const char *pool_fault_text(const struct pool_child *worker);

/* starting, ready, busy, unresponsive, dead; and quarantined. */
const char *pool_state_name(const struct pool_child *worker);
