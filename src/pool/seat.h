/*
 * Inside of the pools: one seat, and what the files of pool.h do with it. Nobody else includes this.
 *
 *	pool.c     all seats, for the supervisor
 *	job.c      a task finds its seat, or is told why not
 *	entry.c    the server is asked before a start, and told of a crash
 *	spawn.c    a process is started, and what it leaves is removed
 *	seat.c     it is heard, and what worker.h says is done
 *	end.c      how an attempt ended, in words
 *	metrics.c  how all of them stand
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "exec/process.h"
#include "wire/frame.h"
#include "pool/pool.h"
#include "pool/text.h"
#include "pool/worker.h"
#include "attempt/walls.h"

enum {
	POOL_AWAY_MAX = 16, /* modules at a time */
	SEAT_NAME_BYTES = 160,
	SEAT_SLOT_BYTES = 300,
	SEAT_TASK_BYTES = 129,
	SEAT_LETTER_BYTES = PROCESS_RUN_BYTES_MAX + 16,
	SEAT_LINE_BYTES_MAX = 300, /* of what a worker wrote, where one line is told */
	SEAT_QUOTE_BYTES = 100,
	SEAT_TROUBLE_BYTES = 400,             /* for the snapshot of its pool */
	SEAT_END_BYTES = 1024,                /* for its end in words */
	MEMBERS_BYTES_MAX = (1 << 20) - 4096, /* a report is a request, and has a head of its own */
};

struct pool_seat {
	struct pools *pools;
	const struct executor *executor;
	char name[SEAT_NAME_BYTES]; /* airi-1: as the worker is called */
	char slot[SEAT_SLOT_BYTES]; /* host/airi-1: as the server knows it */
	struct pool_worker worker;
	struct frame_reader frames;
	struct process *process;
	char run[PROCESS_RUN_BYTES_MAX + 1];
	char letter[SEAT_LETTER_BYTES]; /* the word of its crash, on its way; empty: none */
	struct pool_job *job;
	char last_task[SEAT_TASK_BYTES]; /* the one that it had before */
	/* why the last of its frames was dropped, since its start or its task; "": none was */
	char dropped[POOL_REASON_BYTES];
	char quote
		[SEAT_QUOTE_BYTES]; /* what it wrote instead of a frame, or why it said that it goes; "": nothing */
	struct buf modules;         /* each with a NUL */
	uint32_t module_count;
	uint64_t words_from; /* where what it wrote for its task begins */
	bool asks;           /* to enter: its turn to ask comes */
	bool quarantine_told;
	char trouble
		[SEAT_TROUBLE_BYTES]; /* how it crashed last, or why it could not be started; "": never so far */
	int64_t trouble_ms;           /* wall */
	/* why it cannot be started as its executor is; "": as far as is known it can */
	char barred[WALLS_COMPLAINT_BYTES];
	const char *barred_code;
	char leftover[PROCESS_RUN_BYTES_MAX + 1]; /* the run whose directory is being removed; empty: none */
	uv_timer_t timer, clear_timer;
};

/* Tasks that came while all who have their module were busy and others were not (job.c). */
struct pool_away {
	const struct executor *executor; /* NULL: the place is free */
	char module[POOL_MODULE_BYTES_MAX + 1];
	uint32_t count; /* that were given back since one of those workers has begun with another */
	int64_t last_ms;
};

struct pools {
	struct pools_site site;
	struct pool_seat *seats;
	uint32_t seat_count;
	struct pool_job *waiting;
	struct pool_seat *asking; /* to enter: its question is under way */
	bool retiring;
	int64_t started_ms; /* wall */
	uv_timer_t hold_timer;
	struct pool_away away[POOL_AWAY_MAX];
};

/* A machine that was asleep was so with all its workers: their silence is counted by the clock that stands still then. */
int64_t pool_clock_ms(void);

/* The owner is told, from wherever we are, that something has changed. */
static inline void pools_tell_changed(struct pools *pools)
{
	pools->site.owner->changed(pools->site.context);
}

/* ---- seat.c ---- */

void pool_seat_init(struct pools *pools, struct pool_seat *seat, const struct executor *executor, int64_t n);

/* The one of its modules that it would run this as; NULL: none. */
const char *pool_seat_module(const struct pool_seat *seat, const char *module);

/* For whoever asks how its pool stands. */
void pool_seat_note_trouble(struct pool_seat *seat, const char *why);

/* What worker.h says: bits of enum pool_do. The message is that which led to it; NULL: none did. */
void pool_seat_perform(struct pool_seat *seat, uint32_t todo, const struct pool_message *message);

/* Of its process. */
extern const struct process_events pool_seat_events;

/* ---- spawn.c ---- */

void pool_seat_spawn(struct pool_seat *seat);
int pool_seat_note(struct pool_seat *seat); /* its process is written down, for whoever comes after us */

/* It cannot be had here as its executor is: whoever asks for a worker of the pool is told so. */
void pool_seat_bar(struct pool_seat *seat, const char *code, const char *why);

/* Its directory goes, in steps if there is much in it. */
void pool_seat_clear_up(struct pool_seat *seat);

/* ---- job.c ---- */

/* It waits no more, if it did. All who place or refuse it do this first. */
void pool_job_unlink(struct pools *pools, struct pool_job *job);
void pool_job_refuse(struct pools *pools, struct pool_job *job, const char *code, const char *message);

/* True: it has found its seat, or its end. False: nobody was told of anything; it waits, or is to wait. */
bool pool_job_place(struct pools *pools, struct pool_job *job);
void pool_jobs_place(struct pools *pools, const struct executor *executor);

/* One that never came to life: those who wait for it are told, unless others live. */
void pool_jobs_give_up(struct pool_seat *seat);

/* ---- entry.c ---- */

void pool_entry_ask(struct pools *pools);
void pool_entry_tell_crash(struct pool_seat *seat);

/* ---- end.c ---- */

/* How it ended, and what it said last, if it said that for this task. */
void pool_end_describe(const struct pool_seat *seat, char *out, size_t room);
int pool_end_put_crash(const struct pool_seat *seat, struct buf *members);
int pool_end_put_answer(const struct pool_seat *seat, const struct pool_message *message,
	enum report_verb *ret_verb, struct buf *members);

/* ---- metrics.c ---- */

/* The last one that crashed or could not be started; NULL: none so far. */
const struct pool_seat *pool_last_troubled(const struct pools *pools, const struct executor *executor);
