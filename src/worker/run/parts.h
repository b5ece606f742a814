/*
 * What the files of this folder share. Only they include this.
 *
 *	run.c           the life of a run, its reports, and what the supervisor tells it
 *	run/claim.c     what its claim says
 *	run/start.c     its token, its directory, its process
 *	run/tree.c      a work tree of its own
 *	run/process.c   what the process does, and its end
 *	run/pool.c      the same in a pool
 *	run/clock.c     how long all that may take
 *	run/lease.c     how long without a word of ours
 */
#pragma once

#include "pool/pool.h"
#include "worker/run/run.h"
#include "worker/report/log_upload.h"
#include "worktree/worktree.h"

enum { RUN_BODY_BYTES_MAX = 1 << 20 }; /* of a report */

struct run;

/* Writes the report of a run: the verb, and the members of the body besides workerId and fence. -ENOMEM: it is asked again
 * later; any other fault: what the report would say is lost. */
typedef int (*report_writer)(struct run *run, enum report_verb *ret_verb, struct buf *members);

/*
 * Where a run stands. run_move() is the only one that changes it, and asserts that the move is in this picture and that the
 * run is as its new phase says (run_check()).
 *
 *	CLAIMED ──run_start_in(), a pool begins──▶ STARTED ──on_gone(), on_job_ended()──▶ ENDED ──run_log_ended()──▶ SENDING
 *	   ├──run_refuse(), run_end_unstarted(), a pool refuses it──────────────────────────────────────────────────▶ │
 *	   │                                                                      ENDED ──lost: nothing is reported──▶ │
 *	   └──lost before it began──▶ OVER ◀──finish(): settled, lost, or given up────────────────────────────────────┘
 */
enum run_phase {
	RUN_CLAIMED, /* nothing of it runs yet */
	RUN_STARTED, /* the process, or what is left of it */
	RUN_ENDED,   /* it is gone; the report is written, the rest of the log is uploaded */
	RUN_SENDING, /* the report is on its way */
	RUN_OVER,
};

struct run {
	struct supervisor *supervisor;
	enum run_phase phase;
	char name[PROCESS_RUN_BYTES_MAX + 1];
	struct arena arena; /* all texts below */
	const char *task, *fence, *queue, *working_dir, *module;
	const char *token; /* for its claim alone; NULL: none is needed */
	const char *const *argv;
	const struct executor *executor;
	struct wall wall;
	struct span input, log_target;
	uint32_t attempt;
	int64_t timeout_ms, granted_ms; /* how long it may run; and by the server's word alone */
	bool timeout_is_budget;         /* of the executor, which is shorter than the others */
	int64_t waited_ms;              /* so long it has waited for answers: that is not its own time */
	int64_t claimed_ms, heard_ms;   /* on the clock of leases: the last sign of life */
	int64_t lease_ms;               /* of its claim, from claimed_ms on */
	bool bound;                     /* by a heartbeat: from then on it lives under the worker's lease */
	bool spoke;                     /* it has written something */
	bool asks;                      /* it waited for an answer when it was last looked at */
	struct run_record record;
	bool remembered;        /* its record is there, and what it left on disk */
	bool unneeded;          /* both may go */
	bool cleared;           /* what it left was removed to make room for its report */
	struct process_end end; /* once it is gone */
	bool has_end;
	bool logged; /* that it ended */
	enum stop_reason stop;
	struct pending_report *report; /* NULL: it is settled, or there is none */
	report_writer writer;          /* of it; NULL: nothing is reported */
	uint32_t tries;                /* attempts to write it that found no memory */
	bool in_outbox;                /* it is in the outbox */
	bool log_ended;
	bool taken;            /* the server has it */
	enum report_verb verb; /* of it */
	int64_t limit_ms;
	int64_t final_ms; /* when it must be gone, after its last word; 0: it has not said it */
	struct api_client *client;
	struct api_client *looks; /* NULL: it was never looked at */
	bool tree_unwanted;
	struct worktree *tree;              /* of its own; NULL: none */
	const char *refused_code, *refused; /* reported as soon as its work tree is gone */
	const char *tree_rest;              /* what of the work dir the task named beneath the top of it */
	struct process *process;
	int dir_fd; /* its run dir, until its process is started; -1: none is open */
	struct log_upload upload;
	uv_timer_t clock;
	int open_handles;
	/* of one that a pool works off */
	struct pool_job job;
	enum report_verb answer_verb; /* how its worker answered */
	struct buf answer;
	bool answer_lost;         /* there was no memory to keep it */
	struct output words;      /* what its worker wrote on standard error for it */
	struct api_client *notes; /* its progress; NULL until there is some */
	uv_timer_t note_timer;
	struct buf note; /* the body of the newest, on its way or not yet */
	bool note_waits;
};

void run_move(struct run *run, enum run_phase to);

static inline int64_t earliest(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* run/claim.c: -EPROTO: that was no claim. And which executor, with which argv? False: none that we have, and that was
 * reported. */
int run_read_claim(struct run *run, yyjson_val *claim);
bool run_find_executor(struct run *run, yyjson_val *task);

/* Into the outbox, at once or as soon as there is memory for it. After the process has ended the report is held until the log
 * is uploaded. */
void run_report(struct run *run, report_writer writer);

/* The log is uploaded: for log_upload_finish(). */
void run_log_ended(void *run);

/* In our own log: how it ended, once that can be relied upon. */
void run_log_end(struct run *run, const char *as);

/* It ends before anything was started: by trouble of this host, or by what the task asks for, which will not change. Returns
 * false, for callers that say whether to go on. */
bool run_refuse(struct run *run, const char *code, const char *message);

/* The same, by what kept it from being started. */
void run_refuse_start(struct run *run, int fault);

/* Stopped before it had a process. */
void run_end_unstarted(struct run *run);

/* What it left on disk may go. */
void run_let_go(struct run *run);

/* start.c: begin; or go on in that directory. */
void run_begin(struct run *run);
void run_start_in(struct run *run, int workdir_fd);

/* Write down that it exists, and what of it. */
int run_note(struct run *run);

/* For its process, and for what sets its work tree up. */
int run_fill_spec(void *run, int workdir_fd, struct process_spec *spec);
const char *run_path_of(struct run *run, int fd);

/* run/tree.c: true: its start waits for it, or was refused. */
bool run_make_tree(struct run *run, int workdir_fd);

/* It was never used: it is removed, and then the refusal or the stop is reported. */
void run_drop_tree(struct run *run);

/* The attempt is over: then its log is brought to its end. */
void run_end_tree(struct run *run);

/* run/process.c */
extern const struct process_events run_process_events;

/* run/pool.c */
void run_start_pooled(struct run *run);

/* run/lease.c: what its shim is to be told now; and is that over? Then nothing is started before the server has spoken. */
struct process_lease run_lease(struct run *run);
bool run_is_past_lease(struct run *run);

/* If its shim has ended it: that is no crash. */
void run_heed_lapse(struct run *run, const struct process_end *end);

/* run/clock.c */
void run_arm_clock(struct run *run);
int64_t run_times_out_ms(const struct run *run); /* when it has run too long */
