/* What host.c, process.c and start.c share; for nobody else. */
#pragma once

#include "base/buf.h"
#include "exec/wall/short_link.h"
#include "exec/cgroup_place.h"
#include "exec/host.h"
#include "exec/process.h"
#include "exec/system_grants.h"

enum {
	HOST_READ_BYTES = 65536
}; /* from a stream in one iteration of the loop, so that none starves the others */

struct host {
	uv_loop_t *loop;
	uv_timer_t sweep;  /* runs while there are lost processes */
	int epoll;         /* the descriptors of all processes; the loop watches this one */
	uv_poll_t watches; /* of epoll; the loop ends without it when there is no process */
	uint32_t handles;  /* that the loop has not closed yet */
	char shim[1024];
	char boot[IDENTITY_BOOT_BYTES];
	struct buf filter,
		filter_offline; /* programs for seccomp; the latter for processes without a network */
	int landlock_abi;
	struct cgroup_place place;
	struct system_grants system;
	struct process *first; /* started and not yet gone */
	uint32_t count;
	char read[HOST_READ_BYTES];
};

/* A descriptor of a process, in the epoll of its host. */
struct watch {
	struct process *process;
	void (*ready)(struct watch *watch);
	int fd;          /* -1: closed, and so out of the epoll: nobody else has it open */
	uint32_t events; /* EPOLLIN or EPOLLOUT; 0: neither is wanted now */
};

struct stream {
	struct watch watch; /* closed when it is at its end */
	enum output_overflow overflow;
	struct output output;
};

/*
 * A process as we know of it; process_enter() alone changes it.
 *
 *	SPAWNED ──"ready"──▶ READY ──"gone"──▶ LEFT ──shim waited for──▶ GONE ──process_free──▶ FREED
 *	   ├──"unstarted, gone"─────────────────▲                          ▲
 *	   ├──the shim died──▶ LOST ◀──the shim died── READY               │
 *	   │                    └──host.c: nothing is left of the tree─────┘
 *	   └──process_discard, when the start fails──▶ FREED
 *
 * SPAWNED: nothing of the program has run. READY: it may have. LEFT: the shim has said that nothing is left.
 */
enum process_state {
	PROCESS_SPAWNED,
	PROCESS_READY,
	PROCESS_LEFT,
	PROCESS_LOST,
	PROCESS_GONE,
	PROCESS_FREED
};

struct process {
	enum process_state state;
	struct host *host;
	struct process *next, *previous;
	const struct process_events *events;
	void *context;
	char run[PROCESS_RUN_BYTES_MAX + 1];

	pid_t shim; /* 0: waited for */
	uint64_t shim_start;
	pid_t main;
	uint64_t main_start;
	char short_link[SHORT_LINK_BYTES];
	struct cgroup_leaves leaves; /* their descriptors are the shim's alone once it runs */

	struct watch pidfd; /* of the shim, open until it was waited for: a signal goes only through it */
	struct watch control;
	uv_timer_t late;
	bool late_closed; /* by the loop: the memory may go */
	int64_t late_ms;  /* when it fires; INT64_MAX: never */

	struct stream streams[2];
	struct watch input; /* our end of a STDIN_PIPE */
	struct buf stdin_waiting;
	size_t stdin_written; /* bytes of stdin_waiting */
	bool stdin_closing;

	struct process_end end;
	uint64_t output_bytes, output_bytes_most; /* bytes read so far, and their budget */
	bool output_free;                         /* the budget of output does not count now */
	uint32_t budgets;                         /* how many were begun or ended since its start */
	uint32_t linger_ms;
};

/* host.c: the shim of one of our processes has died; end what it left, then call process_swept(). */
void host_sweep_begin(struct host *host);

/* process.c, for the sweep: nothing is left of one that is PROCESS_LOST. */
void process_swept(struct process *process);

/* process.c, for a start. A new process has no descriptors; NULL: no memory. The descriptors it gets are watched from
 * process_attach() on. When nothing can fail any more, process_enlist() adds it to the host. A process that cannot be
 * started is discarded: its descriptors are closed, and the loop frees its memory. */
struct process *process_new(struct host *host, const struct process_spec *spec);
int process_attach(struct process *process);
void process_enlist(struct process *process);
void process_discard(struct process *process);
