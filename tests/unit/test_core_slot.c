#include "core_fixture.h"

enum {
	WORKER = 7, /* digest of a worker */
	ANOTHER = 8,
};

static struct slot new_slot(void)
{
	struct slot slot;

	slot_init(&slot);
	return slot;
}

/* The slot crashes, and that has exactly this consequence. */
static struct slot crashed(struct world *w, struct slot slot, enum slot_state expected)
{
	struct slot_decision decision = slot_crash(&slot, &w->given);
	bool falls = expected == SLOT_QUARANTINED && slot.state != SLOT_QUARANTINED;

	assert_int_equal(decision.refusal, REFUSED_NOTHING);
	assert_int_equal(decision.slot.state, expected);
	assert_int_equal(decision.event, falls ? EVENT_SLOT_QUARANTINED : EVENT_NONE);
	assert_int_equal(decision.slot.restarts, slot.restarts + 1);
	return decision.slot;
}

static struct slot quarantined(struct world *w)
{
	struct slot slot = crashed(w, new_slot(), SLOT_FREE_TO_RUN);

	slot = crashed(w, slot, SLOT_FREE_TO_RUN);
	return crashed(w, slot, SLOT_QUARANTINED);
}

static struct slot on_trial(struct world *w)
{
	struct slot slot = quarantined(w);

	pass_time(w, MINUTES(10));
	return slot_enter(&slot, WORKER, &w->given).slot;
}

static void two_crashes_do_not_quarantine(void **state)
{
	struct world *w = *state;
	struct slot slot = crashed(w, new_slot(), SLOT_FREE_TO_RUN);

	slot = crashed(w, slot, SLOT_FREE_TO_RUN);
	struct slot_decision decision = slot_enter(&slot, WORKER, &w->given);
	assert_int_equal(decision.refusal, REFUSED_NOTHING);
	assert_int_equal(decision.event, EVENT_NONE);
}

static void the_third_crash_within_a_minute_quarantines(void **state)
{
	struct world *w = *state;
	struct slot slot = crashed(w, new_slot(), SLOT_FREE_TO_RUN);

	pass_time(w, SECONDS(30));
	slot = crashed(w, slot, SLOT_FREE_TO_RUN);
	pass_time(w, SECONDS(29));
	slot = crashed(w, slot, SLOT_QUARANTINED);
	assert_int_equal(slot.since_ms, w->given.now.lease_ms);
	assert_int_equal(slot_enter(&slot, WORKER, &w->given).refusal, REFUSED_SLOT_QUARANTINED);
}

static void the_window_is_a_minute_to_the_millisecond(void **state)
{
	struct world *w = *state;
	struct slot slot = crashed(w, new_slot(), SLOT_FREE_TO_RUN);

	slot = crashed(w, slot, SLOT_FREE_TO_RUN);
	pass_time(w, SECONDS(60));
	crashed(w, slot, SLOT_QUARANTINED);
	pass_time(w, 1);
	crashed(w, slot, SLOT_FREE_TO_RUN);
}

static void the_window_slides(void **state)
{
	struct world *w = *state;
	struct slot slot = new_slot();

	for (int i = 0; i < 20; i++) {
		slot = crashed(w, slot, SLOT_FREE_TO_RUN);
		pass_time(w, SECONDS(31));
	}
	pass_time(w, -SECONDS(31));
	pass_time(w, SECONDS(1));
	crashed(w, slot, SLOT_QUARANTINED);
}

static void a_crash_in_quarantine_is_counted_and_prolongs_nothing(void **state)
{
	struct world *w = *state;
	struct slot slot = quarantined(w);
	int64_t since_ms = slot.since_ms;

	pass_time(w, MINUTES(5));
	slot = crashed(w, slot, SLOT_QUARANTINED);
	assert_int_equal(slot.since_ms, since_ms);
}

static void a_trial_is_let_through_after_ten_minutes(void **state)
{
	struct world *w = *state;
	struct slot slot = quarantined(w);

	pass_time(w, MINUTES(10) - 1);
	assert_int_equal(slot_enter(&slot, WORKER, &w->given).refusal, REFUSED_SLOT_QUARANTINED);
	pass_time(w, 1);
	struct slot_decision decision = slot_enter(&slot, WORKER, &w->given);
	assert_int_equal(decision.refusal, REFUSED_NOTHING);
	assert_int_equal(decision.event, EVENT_SLOT_UNQUARANTINED);
	assert_int_equal(decision.slot.state, SLOT_ON_TRIAL);
}

static void a_crash_on_trial_quarantines_at_once(void **state)
{
	struct world *w = *state;
	struct slot slot = on_trial(w);

	pass_time(w, SECONDS(1));
	slot = crashed(w, slot, SLOT_QUARANTINED);
	assert_int_equal(slot_enter(&slot, WORKER, &w->given).refusal, REFUSED_SLOT_QUARANTINED);
	pass_time(w, MINUTES(10));
	assert_int_equal(slot_enter(&slot, WORKER, &w->given).refusal, REFUSED_NOTHING);
}

static void a_trial_that_was_survived_gives_the_whole_budget_back(void **state)
{
	struct world *w = *state;
	struct slot slot = on_trial(w);

	pass_time(w, SECONDS(60) + 1);
	slot = crashed(w, slot, SLOT_ON_TRIAL);
	slot = crashed(w, slot, SLOT_ON_TRIAL);
	crashed(w, slot, SLOT_QUARANTINED);
}

static void a_trial_time_of_zero_means_never(void **state)
{
	struct world *w = *state;
	struct slot slot = quarantined(w);

	w->rules.quarantine_trial_ms = 0;
	pass_time(w, HOURS(24 * 365));
	assert_int_equal(slot_enter(&slot, WORKER, &w->given).refusal, REFUSED_SLOT_QUARANTINED);
}

static void an_operator_lifts_a_quarantine(void **state)
{
	struct world *w = *state;
	struct slot slot = quarantined(w);
	struct slot_decision lifted = slot_unquarantine(&slot);

	assert_int_equal(lifted.event, EVENT_SLOT_UNQUARANTINED);
	assert_int_equal(lifted.slot.state, SLOT_FREE_TO_RUN);
	assert_int_equal(slot_enter(&lifted.slot, WORKER, &w->given).refusal, REFUSED_NOTHING);
	slot = crashed(w, lifted.slot, SLOT_FREE_TO_RUN);
	slot = crashed(w, slot, SLOT_FREE_TO_RUN);
	crashed(w, slot, SLOT_QUARANTINED);
}

static void lifting_what_is_free_changes_nothing(void **state)
{
	struct slot slot = new_slot();

	(void)state;
	assert_int_equal(slot_unquarantine(&slot).event, EVENT_NONE);
}

static void a_quarantine_survives_a_reboot(void **state)
{
	struct world *w = *state;
	struct slot slot = quarantined(w);

	w->given.now.lease_ms = SECONDS(3);
	slot = slot_rebase(&slot, &w->given);
	assert_int_equal(slot.state, SLOT_QUARANTINED);
	assert_int_equal(slot_enter(&slot, WORKER, &w->given).refusal, REFUSED_SLOT_QUARANTINED);
	pass_time(w, MINUTES(10));
	assert_int_equal(slot_enter(&slot, WORKER, &w->given).refusal, REFUSED_NOTHING);
}

static void crashes_of_before_a_reboot_do_not_count(void **state)
{
	struct world *w = *state;
	struct slot slot = crashed(w, new_slot(), SLOT_FREE_TO_RUN);

	slot = crashed(w, slot, SLOT_FREE_TO_RUN);
	w->given.now.lease_ms = SECONDS(3);
	slot = slot_rebase(&slot, &w->given);
	crashed(w, slot, SLOT_FREE_TO_RUN);
}

static void slot_states_have_names(void **state)
{
	(void)state;
	assert_string_equal(slot_state_name(SLOT_FREE_TO_RUN), "free");
	assert_string_equal(slot_state_name(SLOT_QUARANTINED), "quarantined");
	assert_string_equal(slot_state_name(SLOT_ON_TRIAL), "trial");
}

static void a_place_in_a_pool_names_its_worker_and_executor(void **state)
{
	static const char *const none[] = {"", "/", "-", "7", "host", "host/airi", "host/airi-", "airi-1",
		"/airi-1", "host/-1", "host/-", "host-1", "host/airi-1x", "host/airi1"};
	struct span worker, executor;

	(void)state;
	assert_true(slot_split_pool(SPAN("host/airi-1"), &worker, &executor));
	assert_true(span_equal(worker, SPAN("host")) && span_equal(executor, SPAN("airi")));
	assert_true(slot_split_pool(SPAN("a/b-2/my-pool-100"), &worker, &executor));
	assert_true(span_equal(worker, SPAN("a/b-2")) && span_equal(executor, SPAN("my-pool")));
	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		assert_false(slot_split_pool(span_of(none[i]), &worker, &executor));
}

static void the_trial_belongs_to_one_worker_until_it_is_survived(void **state)
{
	struct world *w = *state;
	struct slot slot;

	slot_init(&slot);
	for (int i = 0; i < 3; i++)
		slot = slot_crash(&slot, &w->given).slot;
	pass_time(w, MINUTES(10));
	slot = slot_enter(&slot, WORKER, &w->given).slot;
	assert_int_equal(slot_enter(&slot, WORKER, &w->given).refusal, REFUSED_NOTHING);
	assert_int_equal(slot_enter(&slot, ANOTHER, &w->given).refusal, REFUSED_SLOT_QUARANTINED);
	assert_int_equal(slot_state_now(&slot, &w->given), SLOT_ON_TRIAL);
	pass_time(w, SECONDS(61));
	assert_int_equal(slot_enter(&slot, ANOTHER, &w->given).refusal, REFUSED_NOTHING);
	assert_int_equal(slot_state_now(&slot, &w->given), SLOT_FREE_TO_RUN);
}

static void an_unclean_end_is_counted_and_quarantines_nobody(void **state)
{
	struct world *w = *state;
	struct slot slot = new_slot();

	for (uint32_t i = 1; i <= 5; i++) {
		slot = slot_lost(&slot);
		assert_int_equal(slot.restarts, i);
	}
	assert_int_equal(slot_state_now(&slot, &w->given), SLOT_FREE_TO_RUN);
	crashed(w, slot, SLOT_FREE_TO_RUN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_trial_belongs_to_one_worker_until_it_is_survived),
		TEST(a_place_in_a_pool_names_its_worker_and_executor),
		TEST(two_crashes_do_not_quarantine),
		TEST(the_third_crash_within_a_minute_quarantines),
		TEST(the_window_is_a_minute_to_the_millisecond),
		TEST(the_window_slides),
		TEST(a_crash_in_quarantine_is_counted_and_prolongs_nothing),
		TEST(a_trial_is_let_through_after_ten_minutes),
		TEST(a_crash_on_trial_quarantines_at_once),
		TEST(a_trial_that_was_survived_gives_the_whole_budget_back),
		TEST(a_trial_time_of_zero_means_never),
		TEST(an_operator_lifts_a_quarantine),
		TEST(lifting_what_is_free_changes_nothing),
		TEST(a_quarantine_survives_a_reboot),
		TEST(crashes_of_before_a_reboot_do_not_count),
		TEST(slot_states_have_names),
		TEST(an_unclean_end_is_counted_and_quarantines_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
