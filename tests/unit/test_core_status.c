/*
 * Moves by status: for the slot that owns the task, through a worker named like it.
 */
#include "core_fixture.h"

static struct claimant the_slot(struct world *w)
{
	return (struct claimant){.worker = &w->plain};
}

static struct task_decision put(struct world *w, const struct task *task, enum task_status status)
{
	struct claimant by = the_slot(w);

	return task_set_status(task, status, &by, QUEUE_OPEN, &w->given);
}

static struct task owned_task(struct world *w)
{
	struct task draft = draft_new();

	draft.owner = SLOT;
	return created(w, &draft, TASK_READY);
}

static struct task in_progress(struct world *w)
{
	struct task task = owned_task(w);

	return moved(put(w, &task, STATUS_IN_PROGRESS), EVENT_TASK_CLAIMED, TASK_RUNNING);
}

static void in_progress_is_a_confirmed_claim_for_as_long_as_the_task_may_take(void **state)
{
	struct world *w = *state;
	struct task task = in_progress(w);

	assert_int_equal(task.claim.holder, PLAIN);
	assert_int_equal(task.claim.lease.granted_ms, task.timeout_ms);
	assert_true(task.claim.named);
	assert_int_equal(task.attempt, 1);
	repeated(put(w, &task, STATUS_IN_PROGRESS), &task);
}

static void the_slot_ends_its_work_by_a_word(void **state)
{
	struct world *w = *state;
	struct task task = in_progress(w);

	moved(put(w, &task, STATUS_DONE), EVENT_TASK_COMPLETED, TASK_DONE);
	moved(put(w, &task, STATUS_REVIEW), EVENT_TASK_REVIEWED, TASK_REVIEW);
	moved(put(w, &task, STATUS_TODO), EVENT_TASK_RELEASED, TASK_READY);
	struct task blocked = moved(put(w, &task, STATUS_BLOCKED), EVENT_TASK_BLOCKED, TASK_BLOCKED);
	assert_int_equal(blocked.code, CODE_EXECUTION_ERROR);
	assert_int_equal(blocked.spent, 0);
}

static void the_lane_it_stands_in_is_no_move(void **state)
{
	struct world *w = *state;

	for (int s = TASK_PENDING; s < TASK_STATE_COUNT; s++) {
		struct task task = task_in(w, (enum task_state)s);
		enum task_status status = task_status_of(task.state);

		if (!task_is_claimed(&task))
			repeated(put(w, &task, status), &task);
	}
}

static void only_a_ready_task_with_an_owner_is_taken(void **state)
{
	struct world *w = *state;

	for (int s = TASK_PENDING; s < TASK_STATE_COUNT; s++) {
		struct task task = task_in(w, (enum task_state)s);

		task.owner = s == TASK_READY ? 0 : SLOT;
		if (!task_is_claimed(&task))
			refused(put(w, &task, STATUS_IN_PROGRESS), &task, REFUSED_BAD_TRANSITION);
	}
}

static void what_is_not_in_progress_ends_in_no_lane(void **state)
{
	struct world *w = *state;

	for (int s = TASK_PENDING; s < TASK_STATE_COUNT; s++) {
		struct task task = task_in(w, (enum task_state)s);

		for (int to = STATUS_TODO; !task_is_claimed(&task) && to <= STATUS_DONE; to++) {
			if (to != STATUS_IN_PROGRESS && to != (int)task_status_of(task.state))
				refused(put(w, &task, (enum task_status)to), &task, REFUSED_BAD_TRANSITION);
		}
	}
}

static void what_another_worker_holds_is_not_moved(void **state)
{
	struct world *w = *state;

	for (int s = TASK_CLAIMED; s <= TASK_ASKING; s++) {
		struct task task = task_in(w, (enum task_state)s);

		for (int to = STATUS_TODO; to <= STATUS_DONE; to++)
			refused(put(w, &task, (enum task_status)to), &task, REFUSED_CLAIMED_BY_OTHER);
	}
}

static void a_question_is_answered_and_not_given_back(void **state)
{
	struct world *w = *state;
	struct task task = in_progress(w);

	task = moved(ask(w, &task), EVENT_TASK_ASKED, TASK_ASKING);
	refused(put(w, &task, STATUS_TODO), &task, REFUSED_BAD_TRANSITION);
	moved(put(w, &task, STATUS_DONE), EVENT_TASK_COMPLETED, TASK_DONE);
}

static void the_holder_of_a_claim_moves_it_by_a_word(void **state)
{
	struct world *w = *state;
	struct task task = in_progress(w);
	struct proof proof = proof_of(&task), stale = proof_with(task.claim.holder, task.fence + 1);

	repeated(task_report_status(&task, STATUS_IN_PROGRESS, &proof, &w->given), &task);
	moved(task_report_status(&task, STATUS_DONE, &proof, &w->given), EVENT_TASK_COMPLETED, TASK_DONE);
	moved(task_report_status(&task, STATUS_TODO, &proof, &w->given), EVENT_TASK_RELEASED, TASK_READY);
	refused(task_report_status(&task, STATUS_DONE, &stale, &w->given), &task, REFUSED_STALE_CLAIM);
	refused(task_report_status(&task, STATUS_IN_PROGRESS, &stale, &w->given), &task, REFUSED_STALE_CLAIM);
	refused(task_report_status(&task, STATUS_CANCELLED, &proof, &w->given), &task,
		REFUSED_BAD_TRANSITION);
}

static void a_paused_queue_hands_out_nothing(void **state)
{
	struct world *w = *state;
	struct task task = owned_task(w);
	struct claimant by = the_slot(w);

	refused(task_set_status(&task, STATUS_IN_PROGRESS, &by, QUEUE_PAUSED, &w->given), &task,
		REFUSED_QUEUE_PAUSED);
}

/* ---- a new time, new parents ---- */

static struct task_decision patch_time(struct world *w, const struct task *task, int64_t not_before_ms)
{
	struct task_patch patch = {.set_not_before = true, .not_before_ms = not_before_ms};

	return task_update(task, &patch, &w->given);
}

static struct task_decision patch_parents(
	struct world *w, const struct task *task, uint32_t open, uint32_t dead)
{
	struct task_patch patch = {
		.set_parents = true, .has_parent = open > 0, .open_parents = open, .dead_parents = dead};

	return task_update(task, &patch, &w->given);
}

static void a_new_time_moves_what_is_in_line(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	int64_t now_ms = w->given.now.wall_ms;

	task = moved(patch_time(w, &task, now_ms + HOURS(1)), EVENT_TASK_UPDATED, TASK_SCHEDULED);
	assert_int_equal(task.ready_at_ms, now_ms + HOURS(1));
	task = moved(patch_time(w, &task, now_ms + HOURS(2)), EVENT_TASK_UPDATED, TASK_SCHEDULED);
	pass_time(w, HOURS(1));
	unchanged(task_due(&task, &w->given), &task);
	task = moved(patch_time(w, &task, 0), EVENT_TASK_UPDATED, TASK_READY);
	assert_int_equal(task.ready_at_ms, w->given.now.wall_ms);
}

static void a_ready_task_stays_ready_since_then(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);

	pass_time(w, HOURS(1));
	struct task same = noted(patch_time(w, &task, 0), &task, EVENT_TASK_UPDATED);
	assert_int_equal(same.ready_at_ms, task.ready_at_ms);
}

static void a_parked_task_keeps_its_new_time_for_later(void **state)
{
	struct world *w = *state;
	struct task task = pending_task(w);

	task = noted(patch_time(w, &task, w->given.now.wall_ms + HOURS(1)), &task, EVENT_TASK_UPDATED);
	moved(task_unpark(&task, &w->given), EVENT_TASK_UNPARKED, TASK_SCHEDULED);
}

static void new_parents_hold_it_back_or_let_it_go(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);

	task = moved(patch_parents(w, &task, 2, 0), EVENT_TASK_UPDATED, TASK_WAITING);
	task = moved(patch_parents(w, &task, 2, 1), EVENT_TASK_UPDATED, TASK_BLOCKED);
	assert_int_equal(task.code, CODE_DEPENDENCY_FAILED);
	task = moved(patch_parents(w, &task, 1, 0), EVENT_TASK_UPDATED, TASK_WAITING);
	assert_int_equal(task.code, CODE_NONE);
	moved(patch_parents(w, &task, 0, 0), EVENT_TASK_UPDATED, TASK_READY);
}

static void what_was_blocked_for_another_reason_stays_so(void **state)
{
	struct world *w = *state;
	struct task task = blocked_task(w);

	task = noted(patch_parents(w, &task, 1, 0), &task, EVENT_TASK_UPDATED);
	assert_int_equal(task.code, CODE_BAD_WORKDIR);
	moved(task_retry(&task, false, &w->given), EVENT_TASK_RETRIED, TASK_WAITING);
}

static void what_has_begun_has_no_new_time_and_no_new_parents(void **state)
{
	struct world *w = *state;

	for (int s = TASK_CLAIMED; s < TASK_STATE_COUNT; s++) {
		struct task task = task_in(w, (enum task_state)s);

		if (s == TASK_BLOCKED)
			continue;
		refused(patch_time(w, &task, 0), &task, REFUSED_BAD_TRANSITION);
		refused(patch_parents(w, &task, 0, 0), &task, REFUSED_BAD_TRANSITION);
	}
}

static void work_that_asks_and_is_held_by_nobody_cannot_be_taken_by_its_status(void **state)
{
	struct world *w = *state;
	struct task task = asking_unclaimed(w);
	struct claimant by = {.worker = &w->named, .named = true};

	refused(task_set_status(&task, STATUS_IN_PROGRESS, &by, QUEUE_OPEN, &w->given), &task,
		REFUSED_BAD_TRANSITION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(in_progress_is_a_confirmed_claim_for_as_long_as_the_task_may_take),
		TEST(the_slot_ends_its_work_by_a_word),
		TEST(the_lane_it_stands_in_is_no_move),
		TEST(only_a_ready_task_with_an_owner_is_taken),
		TEST(what_is_not_in_progress_ends_in_no_lane),
		TEST(what_another_worker_holds_is_not_moved),
		TEST(a_question_is_answered_and_not_given_back),
		TEST(the_holder_of_a_claim_moves_it_by_a_word),
		TEST(a_paused_queue_hands_out_nothing),
		TEST(a_new_time_moves_what_is_in_line),
		TEST(a_ready_task_stays_ready_since_then),
		TEST(a_parked_task_keeps_its_new_time_for_later),
		TEST(new_parents_hold_it_back_or_let_it_go),
		TEST(what_was_blocked_for_another_reason_stays_so),
		TEST(what_has_begun_has_no_new_time_and_no_new_parents),
		TEST(work_that_asks_and_is_held_by_nobody_cannot_be_taken_by_its_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
