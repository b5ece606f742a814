/*
 * The judge: holds events and results against the model and the invariants. It changes nothing but the leases
 * that results tell.
 */
#pragma once

#include "core/command.h"
#include "sim/model.h"

struct sim;

/* An event of a task: may it be about this task (NULL: one never seen)? */
void judge_existence(struct sim *sim, const struct model_task *task, const struct record *record);

/* Just before and just after it is folded in. */
void judge_before(struct sim *sim, const struct model_task *task, const struct record *record);
void judge_after(struct sim *sim, const struct model_task *task, const struct fold *before,
	const struct record *record);

void judge_worker(struct sim *sim, const struct model_worker *worker, const struct record *record);
void judge_generation(struct sim *sim, const struct record *record);

/* Each result of the turn at hand, after its events were followed. */
void judge_results(struct sim *sim);

/* G1: a group has ended when no member is open. */
void judge_group(struct sim *sim, const struct model_group *group, const struct record *record);

/* A queue that drains has no open task when it says so. */
void judge_drained(struct sim *sim, int queue, const struct record *record);

/* D1: an occurrence of a schedule makes one task, over crashes, clocks and restores. What a restore takes back, and a clock that was
 * set back has before it again, is forgotten: the backup does not know of it. */
void judge_occurrence(struct sim *sim, const struct record *record);
void judge_forget_occurrences(struct sim *sim, int64_t wall_ms);
