/*
 * A2: the lifecycle columns of the state tables, and of baselines, are what folding the events gives.
 */
#include <string.h>

#include "checker/fold.h"

static const char *const column_names[COLUMN_COUNT] = {
#define X(name, word, type) [KEY_##name] = word,
	COLUMNS(X)
#undef X
};

static int compare(struct checker *checker, const struct record *record, const struct task *task)
{
	for (int i = 0; i < COLUMN_COUNT; i++) {
		if (record_gives(record, (enum key)i) && record->value[i] != task->column[i])
			return ck_complain(checker, "A2", record->task,
				"the events give another %s than the table has", column_names[i]);
	}
	return CHECKER_OK;
}

static void adopt(struct checker *checker, const struct record *record, struct task *task)
{
	memcpy(task->column, record->value, sizeof task->column);
	task->exists = true;
	task->was_created = true;
	task->last_seq = record->seq;
	task->baseline_fence = task->column[KEY_FENCE];
	if (task->highest_fence < task->baseline_fence)
		task->highest_fence = task->baseline_fence;
	task->ready_wall_ms = task->column[KEY_READY_AT];
	task->granted_ms = 0;
	task->verify_by_ms = 0;
	task->lease_boot = WORD_NONE;
	if (task->column[KEY_HELD] == WORD_NONE)
		return;
	uint32_t holder = (uint32_t)task->column[KEY_HELD];
	ck_worker_named(checker, holder)->held++;
	if (!ck_claim_find(checker, record->task, task->baseline_fence))
		ck_claim_begin(checker, record->task, task->baseline_fence, holder);
}

int ck_baseline_record(struct checker *checker, const struct record *record)
{
	struct task *task = ck_task_named(checker, record->task);

	if (task->exists) {
		/* a later event of the task has moved the fold on: nothing to compare with */
		return task->last_seq <= record->seq ? compare(checker, record, task) : CHECKER_OK;
	}
	if (checker->started && !checker->rewound)
		return ck_complain(
			checker, "A2", record->task, "a baseline of a task that the events do not know");
	if (!checker->started) {
		checker->partial = true;
		if (checker->seq < record->seq)
			checker->seq = record->seq;
	}
	adopt(checker, record, task);
	return CHECKER_OK;
}

int ck_state_record(struct checker *checker, const struct record *record)
{
	struct task *task = ck_task_named(checker, record->task);

	if (!task->exists)
		return ck_complain(
			checker, "A2", record->task, "the table has a task that the events do not know");
	task->listed = checker->round;
	return compare(checker, record, task);
}

int ck_quiet_point(struct checker *checker)
{
	for (uint32_t i = 0; i < checker->tasks_room; i++) {
		struct task *task = checker->tasks[i];
		if (!task || !task->exists)
			continue;
		if (task->listed != checker->round)
			return ck_complain(checker, "A2", i, "the table lacks a task that the events know");
		if (ck_verification_is_late(checker, i, task))
			return checker->verdict;
	}
	checker->round++;
	return CHECKER_OK;
}
