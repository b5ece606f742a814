/*
 * A run: one attempt of a task, from the claim to the report.
 *
 *	claimed, with a token for its claim ──▶ process ──gone──▶ log to its end ──▶ report ──the server has it──▶ over
 *	   └──it cannot be run here: nothing is started──────────────────────────▶
 *
 * The report is on disk as soon as the tree is gone, and not before: nobody may have the task again while something of
 * it still runs. It is sent when the log is, because the log of an attempt that has ended takes no more.
 */
#pragma once

#include "wire/json/json.h"
#include "worker/supervisor/supervisor.h"
#include "attempt/verdict.h"

/* A run of one member of "claims": it is listed with the supervisor, and begins. False: no memory, or that was no claim. */
bool run_take(struct supervisor *supervisor, yyjson_val *claim);

/* Why it must stop; the first reason counts, except that STOP_LOST beats all. `grace_ms` at the most; the executor's
 * own if that is shorter. */
void run_stop(struct run *run, enum stop_reason reason, int64_t grace_ms);

/* Extends the lease of its processes, because we have reason to go on. */
void run_push(struct run *run);

/* People told the task something. */
void run_told(struct run *run);

/* The work has said how it ended: its processes have ten seconds to go. */
void run_reported(struct run *run);

/* Reads the task from the server: while the task waits for an answer the clocks of the run stand still. A pass of run-once gets
 * the task, too (once_seen()). Harmless while a look is under way. */
void run_look(struct run *run);

struct span run_task(const struct run *run);

bool run_is_pooled(const struct run *run); /* a worker of a pool has it, or will */
bool run_has_ended(const struct run *run); /* nothing of it runs; at most the report is under way */

/* Does the run take a place of that executor? A pool has places of its own; all other executors share the worker's places. The
 * place of a run whose report is on its way with a claim is free for the tasks of that claim. */
bool run_takes_place(const struct run *run, const struct executor *executor);

/* Its report is on disk; or the disk has refused it. */
void run_saved(struct run *run, int fault);

/* Removes some of its files, if they may be removed. False: there is nothing to do. The run may be freed afterwards. */
bool run_clean_up(struct run *run);

/* The outbox has settled its report, which is gone. If the server refused it and the claim is still ours, another report ends
 * the claim. */
void run_report_answered(struct run *run, const struct outbox_answer *answer);

/* Only when it is over. */
void run_free(struct run *run);
