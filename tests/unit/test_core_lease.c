#include "core_fixture.h"

static void a_lease_without_a_wish_has_the_default_length(void **state)
{
	struct world *w = *state;

	assert_int_equal(lease_clamp(&w->rules, 0, 60000), 60000);
	assert_int_equal(lease_clamp(&w->rules, -1, 60000), 60000);
	assert_int_equal(lease_clamp(&w->rules, INT64_MIN, 60000), 60000);
}

static void a_lease_is_clamped_to_five_seconds_and_a_day(void **state)
{
	struct world *w = *state;

	assert_int_equal(lease_clamp(&w->rules, 1, 60000), 5000);
	assert_int_equal(lease_clamp(&w->rules, 4999, 60000), 5000);
	assert_int_equal(lease_clamp(&w->rules, 5000, 60000), 5000);
	assert_int_equal(lease_clamp(&w->rules, 5001, 60000), 5001);
	assert_int_equal(lease_clamp(&w->rules, HOURS(24), 60000), HOURS(24));
	assert_int_equal(lease_clamp(&w->rules, HOURS(24) + 1, 60000), HOURS(24));
	assert_int_equal(lease_clamp(&w->rules, INT64_MAX, 60000), HOURS(24));
}

static void the_lower_limit_is_a_setting(void **state)
{
	struct world *w = *state;

	w->rules.lease_min_ms = 100;
	assert_int_equal(lease_clamp(&w->rules, 1, 60000), 100);
	assert_int_equal(lease_clamp(&w->rules, 100, 60000), 100);
}

static void a_granted_lease_ends_that_long_from_now(void **state)
{
	struct world *w = *state;
	struct lease lease = lease_grant(60000, &w->given);

	assert_int_equal(lease.deadline_ms, w->given.now.lease_ms + 60000);
	assert_int_equal(lease.granted_ms, 60000);
	assert_int_equal(lease_remaining_ms(&lease, &w->given), 60000);
}

static void a_lease_expires_at_its_deadline_and_not_a_millisecond_before(void **state)
{
	struct world *w = *state;
	struct lease lease = lease_grant(60000, &w->given);

	pass_time(w, 59999);
	assert_false(lease_is_expired(&lease, &w->given));
	assert_int_equal(lease_remaining_ms(&lease, &w->given), 1);
	pass_time(w, 1);
	assert_true(lease_is_expired(&lease, &w->given));
	assert_int_equal(lease_remaining_ms(&lease, &w->given), 0);
	pass_time(w, 1);
	assert_int_equal(lease_remaining_ms(&lease, &w->given), 0);
}

static void a_jump_of_the_wall_clock_changes_no_lease(void **state)
{
	struct world *w = *state;
	struct lease lease = lease_grant(60000, &w->given);

	w->given.now.wall_ms += HOURS(24 * 365);
	assert_false(lease_is_expired(&lease, &w->given));
	assert_int_equal(lease_remaining_ms(&lease, &w->given), 60000);
	w->given.now.wall_ms = 0;
	assert_false(lease_is_expired(&lease, &w->given));
	assert_int_equal(lease_end(&lease, &w->given), lease.deadline_ms);
}

static void after_a_start_nobody_expires_within_the_grace(void **state)
{
	struct world *w = *state;
	struct lease lease = lease_grant(5000, &w->given);

	pass_time(w, HOURS(2));
	w->given.grace.started_ms = w->given.now.lease_ms;
	assert_int_equal(lease_end(&lease, &w->given), w->given.now.lease_ms + SECONDS(60));
	pass_time(w, SECONDS(60) - 1);
	assert_false(lease_is_expired(&lease, &w->given));
	pass_time(w, 1);
	assert_true(lease_is_expired(&lease, &w->given));
}

static void a_start_never_shortens_a_lease(void **state)
{
	struct world *w = *state;
	struct lease lease = lease_grant((uint32_t)HOURS(1), &w->given);

	w->given.grace.started_ms = w->given.now.lease_ms;
	assert_int_equal(lease_end(&lease, &w->given), lease.deadline_ms);
}

static void after_a_pause_of_the_server_a_long_lease_gets_half_a_minute(void **state)
{
	struct world *w = *state;
	struct lease lease = lease_grant(60000, &w->given);

	pass_time(w, HOURS(1));
	w->given.grace.woke_ms = w->given.now.lease_ms;
	assert_int_equal(lease_end(&lease, &w->given), w->given.now.lease_ms + SECONDS(30));
}

static void after_a_pause_of_the_server_a_short_lease_gets_its_own_length(void **state)
{
	struct world *w = *state;
	struct lease lease = lease_grant(5000, &w->given);
	struct lease edge = lease_grant(30000, &w->given);

	pass_time(w, HOURS(1));
	w->given.grace.woke_ms = w->given.now.lease_ms;
	assert_int_equal(lease_end(&lease, &w->given), w->given.now.lease_ms + SECONDS(5));
	assert_int_equal(lease_end(&edge, &w->given), w->given.now.lease_ms + SECONDS(30));
}

static void a_pause_never_shortens_a_lease_or_the_grace_of_a_start(void **state)
{
	struct world *w = *state;
	struct lease lease = lease_grant(60000, &w->given);

	w->given.grace.woke_ms = w->given.now.lease_ms;
	assert_int_equal(lease_end(&lease, &w->given), lease.deadline_ms);
	pass_time(w, SECONDS(59));
	w->given.grace.started_ms = w->given.now.lease_ms;
	w->given.grace.woke_ms = w->given.now.lease_ms;
	assert_int_equal(lease_end(&lease, &w->given), w->given.now.lease_ms + SECONDS(60));
}

static void while_the_store_cannot_be_written_nobody_expires(void **state)
{
	struct world *w = *state;
	struct lease lease = lease_grant(5000, &w->given);

	w->given.grace.frozen = true;
	assert_int_equal(lease_end(&lease, &w->given), INT64_MAX);
	pass_time(w, HOURS(24 * 365));
	assert_false(lease_is_expired(&lease, &w->given));
}

static void a_claim_without_holder_has_nothing_left(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);

	assert_int_equal(task_lease_remaining_ms(&task, NULL, &w->given), 0);
	assert_int_equal(task_next_lease_ms(&task, &w->given), INT64_MAX);
}

static void an_unbound_claim_lives_on_its_own_lease(void **state)
{
	struct world *w = *state;
	struct task task = claimed_by(w, &w->plain);

	pass_time(w, MINUTES(5));
	assert_int_equal(task_lease_remaining_ms(&task, &w->plain, &w->given), MINUTES(10));
	assert_int_equal(task_next_lease_ms(&task, &w->given), w->given.now.lease_ms + MINUTES(10));
}

static void a_bound_claim_lives_on_its_workers_lease(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w);

	w->beater.lease = lease_grant((uint32_t)MINUTES(5), &w->given);
	assert_int_equal(task_lease_remaining_ms(&task, &w->beater, &w->given), MINUTES(5));
	assert_int_equal(task_next_lease_ms(&task, &w->given), INT64_MAX);
}

static void the_next_look_at_a_claim_is_the_sooner_of_lease_and_verification(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct claimant by = claimant_of(&w->beater);
	int64_t now_ms = w->given.now.lease_ms;

	by.lease_ms = MINUTES(1);
	struct task brief = task_claim(&task, &by, QUEUE_OPEN, &w->given).task;
	by.lease_ms = MINUTES(10);
	struct task lasting = task_claim(&task, &by, QUEUE_OPEN, &w->given).task;
	assert_int_equal(task_next_lease_ms(&brief, &w->given), now_ms + MINUTES(1));
	assert_int_equal(task_next_lease_ms(&lasting, &w->given), now_ms + MINUTES(2));
}

/* Whoever works on it without a word stops when it is not his any more. */
static void nobody_is_promised_more_than_until_the_verification(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct claimant by = claimant_of(&w->beater);

	w->rules.verify_after_ms = (uint32_t)SECONDS(10);
	task = task_claim(&task, &by, QUEUE_OPEN, &w->given).task;
	pass_time(w, SECONDS(4));
	assert_int_equal(task_lease_remaining_ms(&task, &w->beater, &w->given), SECONDS(6));
	task.claim.verify_at_ms = 0; /* it was confirmed */
	assert_int_equal(task_lease_remaining_ms(&task, &w->beater, &w->given), SECONDS(56));
}

static void a_reboot_grants_the_claim_its_length_once_more(void **state)
{
	struct world *w = *state;
	struct task task = claimed_by(w, &w->plain);

	w->given.now.lease_ms = SECONDS(7);
	w->given.grace.started_ms = SECONDS(7);
	task = noted(task_rebase(&task, &w->given), &task, EVENT_CLAIM_REBASED);
	assert_int_equal(task.claim.lease.deadline_ms, SECONDS(7) + MINUTES(15));
	assert_int_equal(task.claim.lease.granted_ms, MINUTES(15));
	assert_int_equal(task.claim.run_until_ms, SECONDS(7) + MINUTES(30));
}

static void a_reboot_starts_the_verification_again(void **state)
{
	struct world *w = *state;
	struct task task = claimed_task(w);

	w->given.now.lease_ms = SECONDS(7);
	task = noted(task_rebase(&task, &w->given), &task, EVENT_CLAIM_REBASED);
	assert_int_equal(task.claim.verify_at_ms, SECONDS(7) + MINUTES(2));
	task = bound(w, &task);
	task = noted(task_rebase(&task, &w->given), &task, EVENT_CLAIM_REBASED);
	assert_int_equal(task.claim.verify_at_ms, 0);
	assert_int_equal(task.claim.clock, CLOCK_WORKER);
}

static void a_revoked_token_cuts_a_lease_of_the_claims_own(void **state)
{
	struct world *w = *state;
	struct task task = claimed_by(w, &w->plain);

	w->given.now.lease_ms = SECONDS(7);
	task = noted(task_cut(&task, &w->given), &task, EVENT_CLAIM_REBASED);
	assert_int_equal(task.claim.lease.deadline_ms, SECONDS(67));
	assert_int_equal(task_cut(&task, &w->given).event, EVENT_NONE);
	task = claimed_task(w);
	task = bound(w, &task);
	assert_int_equal(task_cut(&task, &w->given).event, EVENT_NONE); /* it lives as long as its worker */
}

static void a_reboot_does_not_shorten_the_run_that_a_door_granted(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);
	struct claimant by = claimant_of(&w->named);

	by.run_ms = HOURS(1);
	task = moved(task_claim(&task, &by, QUEUE_OPEN, &w->given), EVENT_TASK_CLAIMED, TASK_CLAIMED);
	w->given.now.lease_ms = SECONDS(7);
	task = noted(task_rebase(&task, &w->given), &task, EVENT_CLAIM_REBASED);
	assert_true(task.claim.run_until_ms >= SECONDS(7) + HOURS(1));
}

static void a_reboot_keeps_a_question_open(void **state)
{
	struct world *w = *state;
	struct task task = asking_task(w);

	w->given.now.lease_ms = SECONDS(7);
	task = noted(task_rebase(&task, &w->given), &task, EVENT_CLAIM_REBASED);
	assert_int_equal(task.claim.asked_at_ms, SECONDS(7));
}

static void a_task_without_a_claim_has_nothing_to_rebase(void **state)
{
	struct world *w = *state;
	struct task task = ready_task(w);

	unchanged(task_rebase(&task, &w->given), &task);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_lease_without_a_wish_has_the_default_length),
		TEST(a_lease_is_clamped_to_five_seconds_and_a_day),
		TEST(the_lower_limit_is_a_setting),
		TEST(a_granted_lease_ends_that_long_from_now),
		TEST(a_lease_expires_at_its_deadline_and_not_a_millisecond_before),
		TEST(a_jump_of_the_wall_clock_changes_no_lease),
		TEST(after_a_start_nobody_expires_within_the_grace),
		TEST(a_start_never_shortens_a_lease),
		TEST(after_a_pause_of_the_server_a_long_lease_gets_half_a_minute),
		TEST(after_a_pause_of_the_server_a_short_lease_gets_its_own_length),
		TEST(a_pause_never_shortens_a_lease_or_the_grace_of_a_start),
		TEST(while_the_store_cannot_be_written_nobody_expires),
		TEST(a_claim_without_holder_has_nothing_left),
		TEST(an_unbound_claim_lives_on_its_own_lease),
		TEST(a_bound_claim_lives_on_its_workers_lease),
		TEST(nobody_is_promised_more_than_until_the_verification),
		TEST(the_next_look_at_a_claim_is_the_sooner_of_lease_and_verification),
		TEST(a_reboot_grants_the_claim_its_length_once_more),
		TEST(a_reboot_starts_the_verification_again),
		TEST(a_revoked_token_cuts_a_lease_of_the_claims_own),
		TEST(a_reboot_does_not_shorten_the_run_that_a_door_granted),
		TEST(a_reboot_keeps_a_question_open),
		TEST(a_task_without_a_claim_has_nothing_to_rebase),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
