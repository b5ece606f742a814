/*
 * Where a worker keeps what must outlive it, below the state directory:
 *
 *	runs/RUN/               the private directory of an attempt (exec/rundir.h)
 *	worker-ID.token         the token of kind worker that an admin token was exchanged for (supervisor/credential.c)
 *	workers/NAME/lock       held by the worker that lives
 *	workers/NAME/worker     the worker's identity, or its predecessor's if the server refused it; removed at a clean end
 *	workers/NAME/runs/RUN   a process that was started, so that a successor can end it, and whose attempt it is
 *	workers/NAME/outbox/RUN a report that the server has not got yet (report/outbox.h)
 *
 * NAME is that of the slot, or of the agent of a run-once, or else the worker's own. A worker that starts looks for the
 * directories of dead workers, ends what they left running, and takes over their reports; an attempt without a report is
 * reported as crashed. A run-once that finds an attempt of its own agent leaves the claim as it is: it takes it up again, and the
 * server counts an interruption.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "exec/process.h"

enum {
	STATE_DIR_NAME_BYTES = 200,
	STATE_DIR_COMPLAINT_BYTES = 512,
};

/* The worker that had our slot before us and did not end cleanly; without a slot: one that had none and died on this machine. */
struct predecessor {
	char worker_id[160]; /* empty: no such worker */
	char boot[IDENTITY_BOOT_BYTES];
	int64_t pid, start;
};

struct state_dir {
	char home[4096];
	char name[STATE_DIR_NAME_BYTES];
	int workers_fd, runs_fd; /* workers/ and runs/, shared by all workers */
	int dir_fd, lock_fd, outbox_fd, records_fd;
	struct predecessor before;
	bool not_ours;       /* the record is our predecessor's */
	const char *resumes; /* agent whose open claims this run-once resumes; NULL: none */
	uint32_t adopted;    /* attempts of dead workers that were taken over */
	uint32_t orphans;    /* processes of dead workers that still ran */
};

/* Makes the directories, takes the lock, and takes over from the dead: waits for their processes to be gone, so it is
 * called before the loop runs. `slot` may be NULL. `agent`: the worker's id is the name of an agent, and comes again.
 * -EBUSY: a worker with that slot, or of that agent, lives. */
int state_dir_open(struct state_dir *state, const char *home, const char *slot, const char *worker_id,
	bool agent, char complaint[STATE_DIR_COMPLAINT_BYTES]);

/* `clean`: it ended as it should. The outbox stays if there is something in it. */
void state_dir_close(struct state_dir *state, bool clean);

/* Writes down the id of the worker from now on. */
int state_dir_note_worker(struct state_dir *state, const char *worker_id);

/* The server did not let us in: the next worker replaces our predecessor, not us. */
int state_dir_note_refused(struct state_dir *state);

/* The task is empty if the process is a worker of a pool: its attempts are written down under names of their own. */
struct run_attempt {
	const char *worker_id, *task, *fence;
};

/* The record of a process, open as long as it may change: it is written in place, which a killed worker cannot do by half. */
struct run_record {
	int fd; /* -1: not written yet */
	size_t len;
};

int state_dir_note_run(struct state_dir *state, struct run_record *record,
	const struct process_identity *identity, const struct run_attempt *attempt);
/* The attempt is reported; only its files are left to remove. */
void run_record_settle(struct run_record *record);
void run_record_close(struct run_record *record);

/* Removes the run's directory; and then its record. -EAGAIN: a part of the directory is removed, and there is more. */
int state_dir_clear_run(struct state_dir *state, const char *run);
int state_dir_forget_run(struct state_dir *state, const char *run);
