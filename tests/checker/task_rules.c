/*
 * One event of a task: where it stood, where it goes, and every rule that has a say.
 */
#include <string.h>

#include "checker/step.h"

bool ck_state_is_final(uint32_t state)
{
	return state == WORD_DONE || state == WORD_FAILED || state == WORD_CANCELLED;
}

bool ck_step_is_held_from(const struct step *step)
{
	return step->holder != WORD_NONE;
}

int ck_step_expect(
	struct step *step, enum key column, int64_t value, const char *invariant, const char *sentence)
{
	if (record_gives(step->event, column) && step->after[column] != value)
		return ck_complain(step->checker, invariant, step->event->task, "%s", sentence);
	step->after[column] = value;
	return CHECKER_OK;
}

/* A5: one event per change of state, one change per event. */
static int rule_continues(struct step *step)
{
	int64_t stands = step_before(step, KEY_STATE);

	if (step->from != stands)
		return ck_complain(step->checker, "A5", step->event->task,
			"%s leads from %s, but the task was %s", ck_text(step->checker, step->kind),
			ck_text(step->checker, step->from), ck_text(step->checker, stands));
	return CHECKER_OK;
}

/* A3 and A4: only published moves, and out of a final state only an operator's retry and the purge. */
static int rule_published(struct step *step)
{
	struct checker *checker = step->checker;

	if (!ck_published_allows(&checker->published, step->kind, step->from, step->to))
		return ck_complain(checker, ck_state_is_final(step->from) ? "A4" : "A3", step->event->task,
			"%s may not lead from %s to %s", ck_text(checker, step->kind),
			ck_text(checker, step->from), ck_text(checker, step->to));
	/* one word lifts what failed, and it is published */
	bool lifted = step->kind == WORD_TASK_COMPLETED && step->from == WORD_FAILED;
	if (ck_state_is_final(step->from) && step->from != step->to && step->kind != WORD_TASK_RETRIED &&
		step->kind != WORD_TASK_PURGED && !lifted)
		return ck_complain(
			checker, "A4", step->event->task, "%s was final", ck_text(checker, step->from));
	if (step->kind == WORD_TASK_RETRIED && step->event->worker != WORD_NONE)
		return ck_complain(checker, "A4", step->event->task, "a worker opened a task again");
	return CHECKER_OK;
}

static void fold_claim(struct step *step)
{
	struct checker *checker = step->checker;
	const struct record *event = step->event;
	struct task *task = step->task;

	if (step->kind == WORD_TASK_CLAIMED) {
		if (step->resumes)
			ck_claim_end(checker, event->task, step_before(step, KEY_FENCE), WORD_SUPERSEDED);
		else
			ck_worker_named(checker, event->worker)->held++;
		ck_claim_begin(checker, event->task, step->after[KEY_FENCE], event->worker);
		task->highest_fence = step->after[KEY_FENCE];
	} else if (step->holder != WORD_NONE && step->after[KEY_HELD] == WORD_NONE) {
		uint32_t outcome = (uint32_t)step->after[KEY_ENDED];
		ck_claim_end(checker, event->task, step_before(step, KEY_FENCE), outcome);
		ck_worker_named(checker, step->holder)->held--;
		task->outcomes |= UINT64_C(1) << outcome;
	}
	if (step->kind == WORD_TASK_PROGRESSED) {
		struct claim *claim = ck_claim_find(checker, event->task, step_before(step, KEY_FENCE));
		if (claim)
			claim->progressed++;
		task->progressed++;
	}
}

static void fold_lease(struct step *step)
{
	const struct record *event = step->event;
	struct task *task = step->task;

	if (step->kind == WORD_TASK_CLAIMED) {
		bool verified = record_gives(event, KEY_VERIFY) && event->value[KEY_VERIFY] == 1;
		task->granted_ms = record_gives(event, KEY_GRANTED) ? event->value[KEY_GRANTED] : 0;
		task->verify_by_ms = verified ? event->lease_ms + step->checker->limits.verify_after_ms : 0;
	} else if (step->kind == WORD_CLAIM_REBASED) {
		if (task->verify_by_ms != 0)
			task->verify_by_ms = event->lease_ms + step->checker->limits.verify_after_ms;
	} else {
		if (step->to != WORD_CLAIMED)
			task->verify_by_ms = 0;
		return;
	}
	task->granted_at_ms = event->lease_ms;
	task->lease_boot = event->boot;
}

static void fold(struct step *step)
{
	struct task *task = step->task;

	fold_claim(step);
	fold_lease(step);
	if (step->to == WORD_READY && step->from != WORD_READY)
		task->ready_wall_ms = step->event->wall_ms;
	if (step->kind == WORD_TASK_CANCELLED || step->kind == WORD_TASK_UPDATED)
		task->was_called_off = true;
	task->was_created = true;
	task->exists = step->to != WORD_NONE;
	task->last_seq = step->event->seq;
	memcpy(task->column, step->after, sizeof task->column);
	if (!task->exists)
		memset(task->column, 0, sizeof task->column);
}

static void step_init(struct step *step, struct checker *checker, const struct record *event)
{
	struct task *task = ck_task_named(checker, event->task);

	if (!task->exists)
		memset(task->column, 0, sizeof task->column);
	*step = (struct step){
		.checker = checker,
		.event = event,
		.task = task,
		.kind = event->kind,
		.from = event->from,
		.to = (uint32_t)event->value[KEY_STATE],
		.holder = (uint32_t)task->column[KEY_HELD],
		.resumes = event->kind == WORD_TASK_CLAIMED && task->column[KEY_HELD] != WORD_NONE,
	};
	for (int i = 0; i < COLUMN_COUNT; i++)
		step->after[i] = record_gives(event, (enum key)i) ? event->value[i] : task->column[i];
}

int ck_task_event(struct checker *checker, const struct record *event)
{
	static int (*const rules[])(struct step *) = {
		rule_continues,
		rule_published,
		ck_rule_one_holder,
		ck_rule_holder_acts,
		ck_rule_fence,
		ck_rule_attempt,
		ck_rule_claimant,
		ck_rule_expiry,
		ck_rule_verification,
		ck_rule_outcome,
		ck_rule_spent,
		ck_rule_crashes,
		ck_rule_interruptions,
		ck_rule_time,
	};
	struct record own = *event;
	struct step step;

	if (own.kind == WORD_TASK_ORPHAN_RESULT) /* its fence and attempt are those that came too late */
		own.given &= ~(UINT64_C(1) << KEY_FENCE | UINT64_C(1) << KEY_ATTEMPT);
	step_init(&step, checker, &own);
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		if (rules[i](&step) != CHECKER_OK)
			return checker->verdict;
	}
	fold(&step);
	return CHECKER_OK;
}
