/*
 * Private to the room: a member of a pool, and what each file does with it. A member is one of the workers that a pool shall
 * have, under its name, with the process that it has now: when that ends, the next one is started for the same member.
 *
 *	pool.c     all members, for the supervisor
 *	job.c      gives a task to a member, or says why it cannot
 *	entry.c    asks the server before a start, and reports a crash
 *	spawn.c    starts a process, and removes what it leaves
 *	member.c   reads what the process writes, and does what child.h decides
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
#include "pool/child.h"
#include "attempt/walls.h"

enum {
	POOL_AWAY_MAX = 16, /* modules at a time */
	MEMBER_NAME_BYTES = 160,
	MEMBER_SLOT_BYTES = 300,
	MEMBER_TASK_BYTES = 129,
	MEMBER_REPORT_NAME_BYTES = PROCESS_RUN_BYTES_MAX + 16,
	MEMBER_LINE_BYTES_MAX = 300, /* of one line of a worker's output, where it is quoted */
	MEMBER_QUOTE_BYTES = 100,
	MEMBER_TROUBLE_BYTES = 400,          /* for the snapshot of its pool */
	MEMBER_END_BYTES = 1024,             /* for its end in words */
	REPORT_BYTES_MAX = (1 << 20) - 4096, /* a report is a request, and has a head of its own */
};

struct pool_member {
	struct pools *pools;
	const struct executor *executor;
	char name[MEMBER_NAME_BYTES]; /* the worker's name: airi-1 */
	char slot[MEMBER_SLOT_BYTES]; /* its slot at the server: host/airi-1 */
	struct pool_child worker;
	struct frame_reader frames;
	struct process *process;
	struct child_socket *proxy; /* its way to the hosts of its executor; NULL: none */
	char run[PROCESS_RUN_BYTES_MAX + 1];
	char crash_report
		[MEMBER_REPORT_NAME_BYTES]; /* name of its crash report in the outbox; "": none is on its way */
	struct pool_job *job;
	char last_task[MEMBER_TASK_BYTES]; /* the task that it had before */
	/* why the last dropped frame since its start, or since its task, was dropped; "": no frame was */
	char dropped[POOL_REASON_BYTES];
	char quote
		[MEMBER_QUOTE_BYTES]; /* what it wrote instead of a frame, or why it said that it goes; "": nothing */
	struct buf modules;           /* each with a NUL */
	uint32_t module_count;
	uint64_t words_from; /* position in its standard error where its task began */
	bool asks;           /* it waits until it may ask the server whether it may enter */
	bool quarantine_told;
	char trouble
		[MEMBER_TROUBLE_BYTES]; /* how it crashed last, or why it could not be started; "": never so far */
	int64_t trouble_ms;             /* wall */
	/* why its executor cannot be started on this machine; "": no reason is known */
	char barred[WALLS_COMPLAINT_BYTES];
	const char *barred_code;
	char leftover[PROCESS_RUN_BYTES_MAX + 1]; /* the run whose directory is being removed; empty: none */
	uv_timer_t timer, clear_timer;
};

/* Tasks that came while all workers with their module were busy and other workers were not (job.c). */
struct pool_away {
	const struct executor *executor; /* NULL: the place is free */
	char module[POOL_MODULE_BYTES_MAX + 1];
	uint32_t count; /* tasks given back since a worker with this module last began a task */
	int64_t last_ms;
};

struct pools {
	struct pools_site site;
	struct pool_member *members;
	uint32_t member_count;
	struct pool_job *waiting;
	struct pool_member *asking; /* the member whose question to the server (may it enter?) is under way */
	bool retiring;
	int64_t started_ms; /* wall */
	uv_timer_t hold_timer;
	struct pool_away away[POOL_AWAY_MAX];
};

/* The clock by which the silence of workers is counted: it stands still while the machine sleeps, as the workers do. */
int64_t pool_clock_ms(void);

/* Calls the owner: something has changed. May be called from everywhere. */
static inline void pools_tell_changed(struct pools *pools)
{
	pools->site.owner->changed(pools->site.context);
}

/* The member of that executor after this one, NULL for the first; NULL: there is no more. */
struct pool_member *pools_next(
	const struct pools *pools, const struct executor *executor, const struct pool_member *member);

#define POOL_EACH(member_, pools_, executor_)                                            \
	for (struct pool_member *member_ = pools_next(pools_, executor_, NULL); member_; \
		member_ = pools_next(pools_, executor_, member_))

/* ---- member.c ---- */

void pool_member_init(
	struct pools *pools, struct pool_member *member, const struct executor *executor, int64_t n);

/* The module under which its worker would run a task that asks for `module`; NULL: it cannot run it. */
const char *pool_member_module(const struct pool_member *member, const char *module);

/* The last trouble of a member: the snapshot of its pool shows it. */
void pool_member_note_trouble(struct pool_member *member, const char *why);

/* Does what child.h returned: bits of enum pool_do. `message` is the message that led to it, or NULL. */
void pool_member_perform(struct pool_member *member, uint32_t todo, const struct pool_message *message);

/* The events of its process. */
extern const struct process_events pool_member_events;

/* ---- spawn.c ---- */

void pool_member_spawn(struct pool_member *member);
/* Its process is written down: a successor ends it if we die. */
int pool_member_note(struct pool_member *member);

/* It cannot be started here as its executor asks: a task that wants a worker of the pool is refused with this reason. */
void pool_member_bar(struct pool_member *member, const char *code, const char *why);

/* Its directory goes, in steps if there is much in it. */
void pool_member_clear_up(struct pool_member *member);

/* ---- job.c ---- */

/* Takes the job off the waiting list, if it is there. To be called first by everything that places or refuses it. */
void pool_job_unlink(struct pools *pools, struct pool_job *job);
void pool_job_refuse(struct pools *pools, struct pool_job *job, const char *code, const char *message);

/* True: the job has a member, or has ended. False: no callback was called; the job has to wait. */
bool pool_job_place(struct pools *pools, struct pool_job *job);
void pool_jobs_place(struct pools *pools, const struct executor *executor);

/* The member's worker never came to life: refuses the jobs that wait for the pool, unless another worker lives. */
void pool_jobs_give_up(struct pool_member *member);

/* ---- entry.c ---- */

void pool_entry_ask(struct pools *pools);
void pool_entry_tell_crash(struct pool_member *member);

/* ---- end.c ---- */

/* How its process ended, with the last line of its standard error, if it wrote that for this task. */
void pool_end_describe(const struct pool_member *member, char *out, size_t room);
int pool_end_put_crash(const struct pool_member *member, struct buf *report);
int pool_end_put_answer(const struct pool_member *member, const struct pool_message *message,
	enum report_verb *ret_verb, struct buf *report);

/* ---- metrics.c ---- */

/* The member that last crashed or could not be started; NULL: none so far. */
const struct pool_member *pool_last_troubled(const struct pools *pools, const struct executor *executor);
