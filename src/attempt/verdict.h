/*
 * What became of an attempt, as a report to the server. A process that ended, or could not be started, is looked at
 * here and nowhere else; no process and no server is needed for that.
 *
 *	exit 0                complete, with the last line of its output if that is JSON, else the tail of the text
 *	exit 75               "try again later": given back, nothing spent
 *	exit 78               failed, "do not retry"
 *	any other exit        a failed attempt
 *	a signal              a crash
 *	used up its budget    BUDGET_EXCEEDED, whatever it said and however it ended
 *	could not be started  by whose fault it was: the task's, this host's, or what it asks for
 *	stopped by us         cancelled: given back, which confirms it; too long, no sign of life: a timeout; it waits for
 *	                      an answer, we stop, or lost touch with the server: given back, nothing spent
 *	ended by its shim     its lease was over, and nobody had pushed it (exec/shim/deadline.h): as if we had stopped it
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "exec/process.h"
#include "exec/wall/wall.h"

enum stop_reason {
	STOP_NOT,
	STOP_CANCELLED,
	STOP_TIMED_OUT,
	STOP_STALLED,
	STOP_SHUTDOWN,
	STOP_LAPSED, /* no answer from the server for nine tenths of the lease; or we were stopped ourselves, and its shim
		      * ended it */
	STOP_PARKED, /* it has waited long enough for a person's answer: the question stays open */
	STOP_FINAL,  /* it has said how it ended, and did not go */
	STOP_LOST,   /* it is not ours any more: nothing is reported */
};

struct attempt_end {
	enum stop_reason stop;
	const struct process_end *end;
	struct span out, err; /* the end of its output */
	int64_t limit_ms;     /* STOP_TIMED_OUT, STOP_STALLED: the limit that it exceeded */
	bool limit_is_budget; /* STOP_TIMED_OUT: the limit is the executor's budget, not the task's timeout */
	const struct limits *limits; /* that it was started with; NULL: it was not started */
	int64_t wall_ms;             /* now: a host in trouble asks to be spared for a while */
	bool own_argv; /* the argv is the task's: if it cannot be executed, that is the task's fault */
	const char
		*hint; /* what to do about its isolation, if that is why it failed (hint.h); NULL: nothing */
};

/* It was not started because this host is short of something, which is not the fault of what was to be started. */
bool verdict_is_shortage(const struct process_end *end);

/* The failure code if nothing ran because its wall is not available here, or because it cannot enter its work dir. NULL: another
 * end. */
const char *verdict_barred(const struct process_end *end);

enum report_verb { REPORT_COMPLETE, REPORT_FAIL, REPORT_RELEASE, REPORT_REVIEW, REPORT_BLOCK };

/* "complete", as in the path of the request. */
const char *report_verb_name(enum report_verb verb);

/* The verb, and the members of the body besides workerId and fence: "result":…  -ENOMEM, -E2BIG. */
int verdict_put(const struct attempt_end *attempt, enum report_verb *ret_verb, struct buf *members);

/* The error alone, for an attempt that spent a budget. */
int verdict_put_budget(const struct attempt_end *attempt, struct buf *members);

/* A failure that no process had a part in: "error":{"code":…,"message":…}. When it may be tried again: as the server
 * thinks fit, never, or not before a time (wall, in ms). */
#define RETRY_USUAL INT64_C(0)
#define RETRY_NEVER INT64_C(-1)
int failure_put(struct buf *members, const char *code, const char *message, int64_t retry_at_ms);

/* Given back, nothing spent: the members of REPORT_RELEASE. 0: it may be claimed again at once. */
int release_put(struct buf *members, const char *reason, int64_t delay_ms);

enum { HOST_TROUBLE_MS = 10 * 1000 }; /* how long a host in trouble asks to be spared */

/* Trouble of this host, which passes and is nobody else's fault. */
bool failure_is_of_host(const char *code);

/* Nothing was started: of a host in trouble it is tried again later, else never. */
int failure_put_refused(struct buf *members, const char *code, const char *message, int64_t wall_ms);

/* Why no process could be started: a fault of process_start(), or of the steps before it, as a code and a sentence.
 * `names_dir`: the task asked for a directory; `level` is the level of its wall. */
enum { START_REASON_BYTES = 300 };
const char *start_refused(
	int fault, bool names_dir, enum wall_level level, char ret_reason[START_REASON_BYTES]);
