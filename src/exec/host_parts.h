/* What host.c and process.c share; for nobody else. */
#pragma once

#include "base/buf.h"
#include "exec/cgroup.h"
#include "exec/host.h"
#include "exec/process.h"

enum {
	HOST_READ_BYTES = 65536
}; /* from one stream in one turn of the loop, so that none starves the others */

struct host {
	uv_loop_t *loop;
	uv_timer_t sweep; /* runs while `lost` are there */
	char shim[1024];
	char boot[IDENTITY_BOOT_BYTES];
	struct buf filter; /* for seccomp */
	int landlock_abi;
	enum cgroup_kind cgroup;
	char cgroup_place[CGROUP_PATH_BYTES];
	struct process *first; /* started and not yet gone */
	uint32_t count;
	uint32_t lost; /* of them: their shims have died, we end their trees */
	char read[HOST_READ_BYTES];
};

/* The shim of one of our processes has died: end what it left. */
void host_sweep_begin(struct host *host);

/* One round over all that dead shims left: true when nothing is left. */
bool host_sweep_round(struct host *host);

/* The sweep is over for a process whose shim was lost. */
void process_swept(struct process *process);

/* For the sweep: */
struct process *process_next(const struct process *process);
bool process_is_lost(const struct process *process);
pid_t process_shim(const struct process *process);  /* 0 when it was waited for */
bool process_sweep_cgroup(struct process *process); /* true when it is empty and removed */
