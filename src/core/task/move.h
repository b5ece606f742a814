/*
 * How the files of core/task/ build a decision: begin with the view, change it, move it once, close it.
 * Only they include this.
 */
#pragma once

#include "core/task/task.h"

/* "No", naming nothing but the refusal; the task stays as it was. */
struct task_decision task_refuse(const struct task *task, enum refusal refusal);

/* "Yes", and there is nothing to record. */
struct task_decision task_unchanged(const struct task *task);

/* Start from the task as it is. */
struct task_decision task_decide(const struct task *task);

/* The one setter of a task's state. Asserts that the table has the move. */
void task_move(struct task_decision *decision, enum event_kind kind, enum task_state to);

/* Where a task without a claim stands now: blocked by a dead parent, waiting, scheduled or ready. */
enum task_state task_resting_state(const struct task *task, const struct given *given);

/* Move it to where it stands, as of now or `not_before_ms`. */
void task_rest(struct task_decision *decision, enum event_kind kind, int64_t not_before_ms,
	const struct given *given);

/* End the claim; how it ended is remembered with its fence. */
void task_drop_claim(struct task_decision *decision, enum claim_end how);

/* The crash that was counted when the claim was made did not happen. */
void task_undo_crash(struct task_decision *decision);

/* Host trouble, one more time in a row. */
void task_count_interruption(struct task_decision *decision);

/* End the claim with nothing spent: it goes back in line; too often in a row and a person must look. */
void task_give_back(struct task_decision *decision, enum event_kind kind, enum claim_end how,
	int64_t not_before_ms, const struct given *given);

/* The claim has ended, and a cancel or a stop had waited for that: it takes effect. */
void task_call_off(struct task_decision *decision);

/* Does the caller hold the live claim, whatever its fence? With all of its proof: task_proof_refusal(). */
bool task_is_held_by(const struct task *task, const struct proof *proof);
struct task_decision task_refuse_proof(
	const struct task *task, const struct proof *proof, enum refusal refusal);

/* It waits until so many subtasks have ended; without any it is ready at once. The host comes first then. */
void task_wait_for_subtasks(
	struct task_decision *decision, uint32_t open_subtasks, uint32_t host, const struct given *given);

/* Check the decision against the view and hand it out. */
struct task_decision task_decided(const struct task *before, struct task_decision decision);
