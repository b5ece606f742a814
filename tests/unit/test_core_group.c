/*
 * Groups: when one has ended, what that means for those that wait, and who may use it.
 */
#include "core_fixture.h"

#include "core/flow/group.h"

enum {
	NOW_MS = 5000,
	MAKER = 3,
	OTHER = 4,
};

static struct group_state new_group(void)
{
	return (struct group_state){.number = 1, .principal = MAKER, .created_ms = 1000};
}

static enum follow move(struct group_state *group, enum task_state from, enum task_state to)
{
	struct group_decision decision = group_move(group, from, to, NOW_MS);

	*group = decision.group;
	assert_true(group_is_sound(group));
	return decision.follow;
}

static struct group_decision close_it(struct group_state *group)
{
	struct group_decision decision = group_close(group, MAKER, false, NOW_MS);

	*group = decision.group;
	assert_true(group_is_sound(group));
	return decision;
}

static void an_empty_group_ends_when_it_is_closed(void **state)
{
	struct group_state group = new_group();

	(void)state;
	struct group_decision decision = close_it(&group);
	assert_int_equal(decision.event, EVENT_GROUP_CLOSED);
	assert_true(decision.ends);
	assert_int_equal(decision.follow, FOLLOW_PARENT_DONE);
	assert_int_equal(group.ended_ms, NOW_MS);
}

static void an_open_group_does_not_end(void **state)
{
	struct group_state group = new_group();

	(void)state;
	move(&group, TASK_NOWHERE, TASK_READY);
	assert_int_equal(move(&group, TASK_READY, TASK_DONE), FOLLOW_NOTHING);
	assert_false(group_has_ended(&group));
	assert_int_equal(group_verdict(&group), GROUP_OPEN);
}

static void a_closed_group_ends_with_its_last_member(void **state)
{
	struct group_state group = new_group();

	(void)state;
	move(&group, TASK_NOWHERE, TASK_READY);
	move(&group, TASK_NOWHERE, TASK_BLOCKED);
	assert_false(close_it(&group).ends);
	assert_int_equal(move(&group, TASK_READY, TASK_DONE), FOLLOW_NOTHING);
	assert_int_equal(move(&group, TASK_BLOCKED, TASK_DONE), FOLLOW_PARENT_DONE);
}

static void one_failed_or_cancelled_member_blocks_what_waits(void **state)
{
	static const enum task_state ends[] = {TASK_FAILED, TASK_CANCELLED};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct group_state group = new_group();
		move(&group, TASK_NOWHERE, TASK_READY);
		move(&group, TASK_NOWHERE, TASK_READY);
		close_it(&group);
		move(&group, TASK_READY, ends[i]);
		assert_int_equal(move(&group, TASK_READY, TASK_DONE), FOLLOW_PARENT_DEAD);
	}
}

static void a_retried_member_makes_the_blocked_wait_again(void **state)
{
	struct group_state group = new_group();

	(void)state;
	move(&group, TASK_NOWHERE, TASK_READY);
	close_it(&group);
	assert_int_equal(move(&group, TASK_READY, TASK_FAILED), FOLLOW_PARENT_DEAD);
	assert_int_equal(move(&group, TASK_FAILED, TASK_READY), FOLLOW_PARENT_REOPENED);
	assert_int_equal(group.ended_ms, 0);
	assert_int_equal(move(&group, TASK_READY, TASK_DONE), FOLLOW_PARENT_DONE);
}

static void a_failed_member_that_is_done_after_all_lets_the_blocked_go(void **state)
{
	struct group_state group = new_group();

	(void)state;
	move(&group, TASK_NOWHERE, TASK_FAILED);
	close_it(&group);
	assert_int_equal(move(&group, TASK_FAILED, TASK_DONE), FOLLOW_PARENT_REVIVED);
}

static void a_purged_member_stays_counted(void **state)
{
	struct group_state group = new_group();

	(void)state;
	move(&group, TASK_NOWHERE, TASK_FAILED);
	close_it(&group);
	assert_false(group_is_past(&group, NOW_MS, 0));
	assert_int_equal(move(&group, TASK_FAILED, TASK_NOWHERE), FOLLOW_NOTHING);
	assert_int_equal(group.count[TASK_FAILED], 1);
	assert_int_equal(group_verdict(&group), GROUP_DEAD);
	assert_true(group_is_past(&group, NOW_MS, 1000));
}

static void an_empty_group_is_kept_as_long_as_a_final_task(void **state)
{
	struct group_state group = new_group();

	(void)state;
	close_it(&group);
	assert_false(group_is_past(&group, NOW_MS + 999, 1000));
	assert_true(group_is_past(&group, NOW_MS + 1000, 1000));
}

static void a_group_is_its_makers(void **state)
{
	struct group_state group = new_group();

	(void)state;
	assert_int_equal(group_join_refusal(&group, MAKER, false), REFUSED_NOTHING);
	assert_int_equal(group_join_refusal(&group, OTHER, false), REFUSED_FORBIDDEN);
	assert_int_equal(group_join_refusal(&group, OTHER, true), REFUSED_NOTHING);
	assert_int_equal(group_close(&group, OTHER, false, NOW_MS).refusal, REFUSED_FORBIDDEN);
	close_it(&group);
	assert_int_equal(group_join_refusal(&group, MAKER, false), REFUSED_GROUP_CLOSED);
	assert_int_equal(group_use_refusal(&group, MAKER, false), REFUSED_NOTHING);
	assert_int_equal(group_remove(&group, OTHER, false, false).refusal, REFUSED_FORBIDDEN);
}

static void closing_again_changes_nothing(void **state)
{
	struct group_state group = new_group();

	(void)state;
	close_it(&group);
	struct group_decision again = close_it(&group);
	assert_true(again.repeated);
	assert_int_equal(again.event, EVENT_NONE);
	assert_false(again.ends);
}

static void only_an_ended_group_that_nobody_waits_for_is_removed(void **state)
{
	struct group_state group = new_group();

	(void)state;
	assert_int_equal(group_remove(&group, MAKER, false, false).refusal, REFUSED_IN_USE);
	close_it(&group);
	assert_int_equal(group_remove(&group, MAKER, false, true).refusal, REFUSED_IN_USE);
	assert_int_equal(group_remove(&group, MAKER, false, false).event, EVENT_GROUP_REMOVED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_group_ends_when_it_is_closed),
		cmocka_unit_test(an_open_group_does_not_end),
		cmocka_unit_test(a_closed_group_ends_with_its_last_member),
		cmocka_unit_test(one_failed_or_cancelled_member_blocks_what_waits),
		cmocka_unit_test(a_retried_member_makes_the_blocked_wait_again),
		cmocka_unit_test(a_failed_member_that_is_done_after_all_lets_the_blocked_go),
		cmocka_unit_test(a_purged_member_stays_counted),
		cmocka_unit_test(an_empty_group_is_kept_as_long_as_a_final_task),
		cmocka_unit_test(a_group_is_its_makers),
		cmocka_unit_test(closing_again_changes_nothing),
		cmocka_unit_test(only_an_ended_group_that_nobody_waits_for_is_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
