/* Terms of a process that the supervisor and its shim share: its lease, how its start can fail, which budget it spent. */
#pragma once

#include <stdint.h>

enum {
	PROCESS_RUN_BYTES_MAX = 64,
	PROCESS_ARGS_MAX = 4096,
	PROCESS_ENV_MAX = 1024,
	PROCESS_HOLDS = 2,
};

/* In the environment of everything we start, with the run as its value: how a tree is found whose shim is dead. */
#define PROCESS_MARKER "STINT_RUN"

/* Until when it may run without a further lease: then its shim ends it (exec/shim/deadline.h). */
struct process_lease {
	int64_t until_ms;  /* on the clock that counts from boot (CLOCK_BOOTTIME); 0: no limit */
	uint32_t grace_ms; /* between TERM and KILL */
	uint32_t
		window_ms; /* after a sleep of the machine: how long past until_ms it may still run; 0: not at all */
};

/* Where a start failed. */
enum start_step {
	START_NONE,
	START_SHIM,    /* the shim did not come to life */
	START_REQUEST, /* it did not understand us: another version? */
	START_FORK,    /* no process could be made */
	START_SESSION,
	START_STDIO,
	START_LIMITS,
	START_WORKDIR,
	START_PRIVILEGES,
	START_USER,
	START_LANDLOCK, /* a path that cannot be granted: detail names it */
	START_SECCOMP,
	START_EXEC,        /* argv[0] itself */
	START_INTERPRETER, /* argv[0] is there, and what its first line or its header names is not */
	START_WALL,        /* what should make the wall ended before the program began: detail names it */
};

enum { START_DETAIL_BYTES = 256 };

struct start_fault {
	enum start_step step;
	int error;                       /* a positive errno */
	char detail[START_DETAIL_BYTES]; /* the path it is about, or empty */
};

/* Which budget of its limits a tree used up; it was ended for that, or ended before we could. */
enum process_spent { SPENT_NOTHING, SPENT_MEMORY, SPENT_CPU, SPENT_OUTPUT };
