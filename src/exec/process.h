/*
 * A process: one program that was started, everything it started itself, and their end.
 *
 *	process_start ──▶ starting ──started()──▶ running ──exited()──▶ leaving ──gone()──▶ process_free
 *	                     └────────it could not start──────────────────────────gone()──▶
 *
 * Between us and the program stands a shim (exec/shim/shim.c), one for each process: it owns the tree, so that nothing of it
 * outlives us by more than SHIM_ORPHAN_MS, whatever happens to us. All that the program starts, however often it
 * forks and whichever session it joins, is part of the tree. When the program itself has ended, what it left
 * behind is a stray and gets TERM, then KILL after linger_ms. gone() comes when nothing is left, and not before.
 *
 * A child never makes us wait: its input is a file or a bounded buffer, its output is read as it comes and kept as
 * output.h says.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/span.h"
#include "exec/request/confine.h"
#include "exec/host.h"
#include "exec/output.h"
#include "exec/request/terms.h"

enum {
	PROCESS_INPUT_BYTES_MAX = 16 << 20,
	PROCESS_OUTPUT_BYTES_MAX = 16 << 20,
	PROCESS_WRITE_BYTES_MAX = 4 << 20, /* waiting in a STDIN_PIPE */
};

enum process_stdin {
	STDIN_NULL,  /* /dev/null */
	STDIN_BYTES, /* a file with these bytes: there at once, read or not */
	STDIN_PIPE,  /* process_write() and process_close_stdin() */
};

enum process_stream { STREAM_OUT, STREAM_ERR };

enum output_overflow {
	OVERFLOW_DROPS, /* the oldest unread bytes give way and are counted: logs */
	OVERFLOW_HOLDS, /* nothing more is read until the owner has read: protocols */
};

struct process;

/* All come from the loop, none from within process_start(), process_stop() or process_kill(). Only gone may free. */
struct process_events {
	void (*started)(void *context, struct process *process); /* the program runs */
	void (*output)(void *context, struct process *process, enum process_stream stream); /* new bytes */
	void (*closed)(void *context, struct process *process, enum process_stream stream); /* nobody has it
		open any more; of one that ends this may come, or not */
	void (*exited)(void *context, struct process *process); /* it has ended: process_end() */
	void (*gone)(void *context,
		struct process *process); /* the tree is gone and its output read. Once, always */
};

/* Borrowed during process_start(); events and context until gone(). */
struct process_spec {
	const char *run; /* A-Z a-z 0-9 . _ - : the marker, never used for anything else on this machine */
	const char *const
		*argv; /* NULL at the end; argv[0] is looked up in the child's own PATH if it has no slash */
	const char *
		program; /* the file to execute, from such a search (search.h); NULL: process_start() searches */
	const char *const *env; /* NAME=value, NULL at the end; all that the child gets, together with: */
	const char *const *env_allow; /* names that are copied from our own environment unless env has them */
	int workdir_fd;               /* from workdir_open() or rundir_make(); stays the caller's */
	enum process_stdin stdin_from;
	struct span input;                /* of STDIN_BYTES */
	size_t output_bytes_max[2];       /* by stream; 1 MiB each */
	enum output_overflow overflow[2]; /* by stream; drops */
	mode_t umask;                     /* 077 */
	uint32_t linger_ms;               /* for strays between TERM and KILL; 1000 */
	bool drop_user;                   /* as root only: run as uid and gid, in no further group */
	uid_t uid;
	gid_t gid;
	struct confine confine;
	const struct wall *wall; /* around it (exec/wall/wall.h); NULL: level process */
	bool budget_later;       /* processor time and output count only while it has process_work() */
	bool finishes; /* if we die it may come to its end, and is killed if it does not: no TERM before */
	struct process_lease lease; /* the first one; default: none */
	/* The shim keeps these open until nothing of the tree is left; then their locks are free. -1: none. They stay the
	 * caller's. */
	int hold_fds[PROCESS_HOLDS];
	const struct process_events *events;
	void *context;
};

/* The defaults above, nothing granted, no working directory. */
struct process_spec process_spec_default(void);

enum process_ended {
	ENDED_NOT_YET,
	ENDED_UNSTARTED, /* `fault` says why; nothing of argv ever ran */
	ENDED_EXIT,      /* `code` is its status */
	ENDED_SIGNAL,    /* `code` is the signal */
	ENDED_LOST,      /* the shim died before it could tell: how it ended nobody knows */
};

struct process_end {
	enum process_ended how;
	int code;
	bool core_dumped;
	bool stop_asked; /* by process_stop() or process_kill(), before it ended */
	bool lapsed;     /* its shim ended it because nobody extended its lease: not the program's fault */
	bool kill_used;  /* something of the tree had to be killed */
	enum process_spent spent;
	bool spent_before; /* a budget was spent, but before the last process_work() */
	uint32_t strays;   /* of the tree, alive when the program had ended; 0 before gone() */
	int64_t cpu_user_us, cpu_system_us; /* of all processes that were waited for */
	int64_t memory_peak_bytes;          /* of the largest single process */
	struct start_fault fault;
};

/*
 * Start it. 0: gone() will follow. A fault leaves nothing behind and *ret_process untouched:
 *   -EINVAL  the spec itself: no argv, a bad run, a bad name in the environment, no working directory
 *   -EOPNOTSUPP  a limit that cannot be enforced on this machine (cgroup_place.h)
 *   -EXDEV   the working directory lies in confine.keep_out, and in nothing that is granted there; or, with a wall, a
 *            grant would open it
 *   -ENOENT  with a wall also: something that it is made of, or a path that is granted, is not there
 *   -EILSEQ  WALL_VM: a line break in an argument or a value of the environment
 *   -EBUSY   HOST_PROCESSES_MAX are running
 *   -E2BIG   too much in argv, environment or input
 *   -EMFILE, -ENFILE, -ENOMEM, -EAGAIN  the machine is short of descriptors, memory or processes
 *   -ENOENT, -EACCES ...  the shim cannot be executed
 */
int process_start(struct host *host, const struct process_spec *spec, struct process **ret_process);

/* TERM to the whole tree, KILL after the grace. A later call with a shorter grace shortens it; a longer one changes
 * nothing. After the end it does nothing. */
void process_stop(struct process *process, uint32_t grace_ms);

/* KILL to the whole tree, now. */
void process_kill(struct process *process);

/* Extends the lease of a process. True: its shim had been stopped by a signal and was woken, so that the lease is watched. */
bool process_lease(struct process *process, const struct process_lease *lease);

/* For a program that stays and gets work from time to time. It has work from now on, under this lease, with a new budget of
 * processor time and output. NULL: it has no work, no lease, and neither budget counts. Memory always counts. */
void process_work(struct process *process, const struct process_lease *lease);

/* Only after gone(), also from within it. The memory goes when the loop has closed the handles. NULL is fine. */
void process_free(struct process *process);

/* Of STDIN_PIPE: takes all or nothing. -ENOBUFS: the child reads too slowly; -EPIPE: it reads no more. */
int process_write(struct process *process, struct span bytes);

/* Closes the pipe after the bytes that still wait are written. Closing twice is fine. */
void process_close_stdin(struct process *process);

/* Borrowed until process_free(). The owner reads with output_unread() and tells by process_advance(), which also
 * lets a stream that holds go on. */
const struct output *process_output(const struct process *process, enum process_stream stream);
void process_advance(struct process *process, enum process_stream stream, size_t bytes);

/* Read what is there already, before the loop comes to it; no event follows. Two streams have no common order: an owner
 * that read the end of a message on one stream pulls the other to get what was written before it. */
void process_pull(struct process *process, enum process_stream stream);

/* Borrowed until process_free(). */
const struct process_end *process_end(const struct process *process);

/* "cannot execute 'foo': No such file or directory". Always ends in NUL. */
void start_fault_text(const struct start_fault *fault, char *text, size_t room);

/*
 * What to write down so that a successor can end the tree (orphan.h). Of use from the return of process_start(); main
 * is 0 until started().
 */
enum {
	IDENTITY_BOOT_BYTES = 40,
	IDENTITY_CGROUP_BYTES = 512,
};

struct process_identity {
	char run[PROCESS_RUN_BYTES_MAX + 1];
	char boot[IDENTITY_BOOT_BYTES]; /* of this boot of the machine: numbers of another mean nothing */
	pid_t shim, main;
	uint64_t shim_start, main_start;    /* ticks since boot: a pid alone is nobody */
	char cgroup[IDENTITY_CGROUP_BYTES]; /* its directory, or empty */
};

/* The identity of a process before its start: enough for a successor to find and end it, however far the start comes. */
void process_foretell(const struct host *host, const char *run, struct process_identity *ret_identity);

void process_identify(const struct process *process, struct process_identity *ret_identity);
