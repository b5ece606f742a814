/*
 * A job: one short program that the worker itself needs (git, a set-up hook), run through exec like everything else,
 * confined, bounded in time and output, and told about when it is gone. One at a time for each struct.
 */
#pragma once

#include <uv.h>

#include "base/buf.h"
#include "exec/process.h"

enum {
	JOB_OUTPUT_BYTES_MAX = 8 << 20,
	JOB_WORDS_BYTES_MAX = 4 << 10, /* of its standard error */
};

struct job {
	struct host *host;
	uv_timer_t clock;
	struct process *process; /* NULL: no program runs */
	bool timed_out;
	struct buf out, err; /* of the last program */
	struct process_end end;
	uint64_t dropped; /* bytes of its output that did not fit */
	void (*done)(void *context);
	void *context;
	void (*closed)(void *context);
};

void job_init(struct job *job, uv_loop_t *loop, struct host *host, void *context);

/* Start it; events and context of the spec are ours. `done` comes from the loop, once, when it is gone. Faults as
 * process_start(). */
int job_start(struct job *job, struct process_spec *spec, int64_t timeout_ms, void (*done)(void *context));

/* It ends soon, and `done` is called as always. */
void job_kill(struct job *job);

/* Did it end with status 0, in time, and with all of its output kept? */
bool job_went_well(const struct job *job);

/* Why not, in a few words with the last line that it said: "exit status 128: fatal: not a git repository". */
void job_explain(const struct job *job, char *text, size_t room);

/* No program may run. `closed` comes from the loop; then the struct may be freed. */
void job_close(struct job *job, void (*closed)(void *context));
