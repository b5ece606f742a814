/* The heartbeat as a client: a worker, a server that says what the test wants, and a clock that the test moves. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "worker/beat/beat.h"
#include "attempt/retry.h"

enum {
	LEASE_MS = 60 * 1000,
	TASKS_MAX = 400,
};

struct world {
	struct beat_state beat;
	struct beat_task tasks[TASKS_MAX];
	struct beat_request request;
	struct beat_effects news;
	int64_t now_ms;
};

static struct beat_rules rules = {.lease_ms = LEASE_MS};

static void begin(struct world *w, bool same_host)
{
	struct beat_rules mine = rules;

	mine.same_host = same_host;
	w->now_ms = 1000000;
	beat_init(&w->beat, &mine, w->tasks, TASKS_MAX, 1, w->now_ms);
}

static int set_up(void **state)
{
	static struct world world;

	begin(&world, false);
	*state = &world;
	return 0;
}

/* ---- dialogue ---- */

/* Time passes until something is due. */
static void until_due(struct world *w)
{
	int64_t due_ms = beat_due_ms(&w->beat);

	assert_true(due_ms < INT64_MAX);
	if (due_ms > w->now_ms)
		w->now_ms = due_ms;
}

static void sends(struct world *w)
{
	until_due(w);
	assert_true(beat_send(&w->beat, w->now_ms, &w->request));
	assert_int_equal(beat_due_ms(&w->beat) == w->now_ms, false);
}

static void hears(struct world *w, struct beat_answer answer)
{
	beat_hear(&w->beat, w->now_ms, &answer, &w->news);
}

static void hears_ok(struct world *w, const char *token)
{
	hears(w,
		(struct beat_answer){
			.outcome = BEAT_ACCEPTED, .token = span_of(token), .lease_ms = LEASE_MS});
}

static void hears_nothing(struct world *w)
{
	hears(w, (struct beat_answer){.outcome = BEAT_UNANSWERED});
}

static void registered(struct world *w)
{
	sends(w);
	assert_true(w->request.registers);
	hears_ok(w, "1");
}

static void binds(struct world *w, const char *id)
{
	assert_int_equal(beat_bind(&w->beat, span_of(id), w->now_ms), 0);
}

/* Told, and acknowledged. */
static void holds(struct world *w, const char *id)
{
	binds(w, id);
	sends(w);
	assert_int_equal(w->request.bound_count, 1);
	hears_ok(w, "2");
}

static bool has(const struct span *ids, uint32_t count, const char *id)
{
	for (uint32_t i = 0; i < count; i++) {
		if (span_equal(ids[i], span_of(id)))
			return true;
	}
	return false;
}

static void says_token(struct world *w, const char *token)
{
	sends(w);
	assert_true(span_equal(w->request.token, span_of(token)));
}

/* ---- seed 2: what the client does ---- */

static void the_first_request_registers_and_the_second_shows_the_token(void **state)
{
	struct world *w = *state;

	registered(w);
	says_token(w, "1");
	assert_false(w->request.registers);
}

static void each_answer_brings_the_token_of_the_next_beat(void **state)
{
	struct world *w = *state;

	registered(w);
	says_token(w, "1");
	hears_ok(w, "2");
	says_token(w, "2");
}

static void an_accepted_beat_clears_the_deltas_it_carried(void **state)
{
	struct world *w = *state;

	registered(w);
	binds(w, "a");
	sends(w);
	assert_true(has(w->request.bound, w->request.bound_count, "a"));
	hears_ok(w, "2");
	sends(w);
	assert_int_equal(w->request.bound_count, 0);
	assert_int_equal(w->request.unbound_count, 0);
}

static void a_token_mismatch_takes_the_current_token_and_keeps_the_deltas(void **state)
{
	struct world *w = *state;

	registered(w);
	binds(w, "a");
	sends(w);
	int64_t then_ms = w->now_ms;
	hears(w, (struct beat_answer){.outcome = BEAT_TOKEN_MISMATCH, .token = SPAN("9")});
	says_token(w, "9");
	assert_int_equal(w->now_ms, then_ms);
	assert_true(has(w->request.bound, w->request.bound_count, "a"));
}

static void mismatches_without_end_are_not_answered_at_once(void **state)
{
	struct world *w = *state;

	registered(w);
	sends(w);
	int64_t then_ms = w->now_ms;
	for (int i = 0; i < BEAT_MISMATCHES_MAX; i++) {
		hears(w, (struct beat_answer){.outcome = BEAT_TOKEN_MISMATCH, .token = SPAN("9")});
		sends(w);
		assert_int_equal(w->now_ms, then_ms);
	}
	hears(w, (struct beat_answer){.outcome = BEAT_TOKEN_MISMATCH, .token = SPAN("9")});
	sends(w);
	assert_true(w->now_ms >= then_ms + 1000);
}

static void an_inactive_worker_stops_everything_and_comes_back_under_another_key(void **state)
{
	struct world *w = *state;

	registered(w);
	holds(w, "a");
	sends(w);
	hears(w, (struct beat_answer){.outcome = BEAT_WORKER_INACTIVE});
	assert_true(w->news.over);
	assert_int_equal(beat_held(&w->beat), 0);
	assert_int_equal(beat_due_ms(&w->beat), INT64_MAX);
	beat_renew(&w->beat, w->now_ms);
	registered(w);
}

static void there_is_one_request_at_a_time(void **state)
{
	struct world *w = *state;

	registered(w);
	sends(w);
	binds(w, "a");
	assert_false(beat_send(&w->beat, w->now_ms + 1000000, &w->request));
}

static void a_lost_answer_is_followed_by_the_same_token_and_deltas(void **state)
{
	struct world *w = *state;

	registered(w);
	binds(w, "a");
	sends(w);
	hears_nothing(w);
	says_token(w, "1");
	assert_true(has(w->request.bound, w->request.bound_count, "a"));
}

/* ---- deltas ---- */

static void what_ends_before_the_beat_is_never_told(void **state)
{
	struct world *w = *state;

	registered(w);
	binds(w, "a");
	beat_unbind(&w->beat, SPAN("a"), w->now_ms);
	sends(w);
	assert_int_equal(w->request.bound_count + w->request.unbound_count, 0);
}

static void what_is_let_go_while_its_bind_is_under_way_is_unbound_next(void **state)
{
	struct world *w = *state;

	registered(w);
	binds(w, "a");
	sends(w);
	beat_unbind(&w->beat, SPAN("a"), w->now_ms);
	hears_ok(w, "2");
	sends(w);
	assert_true(has(w->request.unbound, w->request.unbound_count, "a"));
	hears_ok(w, "3");
	assert_int_equal(w->beat.task_count, 0);
}

static void an_unbind_that_perhaps_arrived_is_sent_again(void **state)
{
	struct world *w = *state;

	registered(w);
	holds(w, "a");
	beat_unbind(&w->beat, SPAN("a"), w->now_ms);
	sends(w);
	hears_nothing(w);
	sends(w);
	assert_true(has(w->request.unbound, w->request.unbound_count, "a"));
}

static void a_bind_after_an_unbind_counts(void **state)
{
	struct world *w = *state;

	registered(w);
	holds(w, "a");
	beat_unbind(&w->beat, SPAN("a"), w->now_ms);
	binds(w, "a");
	sends(w);
	assert_int_equal(w->request.unbound_count, 0);
	assert_int_equal(beat_held(&w->beat), 1);
}

static void more_than_a_hundred_deltas_go_with_the_next_beat_at_once(void **state)
{
	struct world *w = *state;
	char id[16];
	uint32_t told = 0;

	registered(w);
	for (int i = 0; i < 250; i++) {
		snprintf(id, sizeof id, "t-%d", i);
		binds(w, id);
	}
	sends(w);
	int64_t then_ms = w->now_ms;
	for (int beats = 1; beats <= 3; beats++) {
		assert_int_equal(w->now_ms, then_ms);
		told += w->request.bound_count;
		assert_true(w->request.bound_count <= BEAT_DELTAS_MAX);
		hears_ok(w, "2");
		if (beats < 3)
			sends(w);
	}
	assert_int_equal(told, 250);
	assert_true(beat_due_ms(&w->beat) > w->now_ms);
}

static void there_is_room_for_so_many_and_no_more(void **state)
{
	struct world *w = *state;
	char id[16];

	for (int i = 0; i < TASKS_MAX; i++) {
		snprintf(id, sizeof id, "t-%d", i);
		binds(w, id);
	}
	assert_int_equal(beat_bind(&w->beat, SPAN("one more"), w->now_ms), -ENOSPC);
	assert_int_equal(beat_bind(&w->beat, SPAN("t-0"), w->now_ms), 0);
	assert_int_equal(beat_bind(&w->beat, SPAN(""), w->now_ms), -EINVAL);
}

static void what_is_lost_is_no_longer_held(void **state)
{
	struct world *w = *state;
	struct span lost[] = {SPAN("a")};

	registered(w);
	binds(w, "a");
	sends(w);
	struct beat_answer answer = {.outcome = BEAT_ACCEPTED,
		.token = SPAN("2"),
		.lease_ms = LEASE_MS,
		.lost = lost,
		.lost_count = 1};
	beat_hear(&w->beat, w->now_ms, &answer, &w->news);
	assert_int_equal(answer.lost_count, 1);
	assert_int_equal(beat_held(&w->beat), 0);
}

static void a_task_that_was_claimed_anew_meanwhile_is_not_lost(void **state)
{
	struct world *w = *state;
	struct span lost[] = {SPAN("a")};

	registered(w);
	binds(w, "a");
	sends(w);
	beat_forget(&w->beat, SPAN("a"));
	binds(w, "a");
	struct beat_answer answer = {.outcome = BEAT_ACCEPTED,
		.token = SPAN("2"),
		.lease_ms = LEASE_MS,
		.lost = lost,
		.lost_count = 1};
	beat_hear(&w->beat, w->now_ms, &answer, &w->news);
	assert_int_equal(answer.lost_count, 0);
	assert_int_equal(beat_held(&w->beat), 1);
}

static void after_a_server_that_was_away_everything_held_is_told_again(void **state)
{
	struct world *w = *state;

	registered(w);
	holds(w, "a");
	sends(w);
	assert_int_equal(w->request.bound_count, 0);
	hears_nothing(w);
	sends(w);
	hears_ok(w, "3");
	sends(w);
	assert_true(has(w->request.bound, w->request.bound_count, "a"));
}

/* ---- when ---- */

static void an_idle_worker_beats_in_every_third_of_its_lease(void **state)
{
	struct world *w = *state;

	registered(w);
	for (int i = 0; i < 50; i++) {
		int64_t then_ms = w->now_ms;
		sends(w);
		assert_in_range(w->now_ms - then_ms, LEASE_MS / 3 * 9 / 10, LEASE_MS / 3);
		hears_ok(w, "2");
	}
}

static void one_that_holds_work_in_every_quarter(void **state)
{
	struct world *w = *state;

	registered(w);
	holds(w, "a");
	for (int i = 0; i < 50; i++) {
		int64_t then_ms = w->now_ms;
		sends(w);
		assert_in_range(w->now_ms - then_ms, LEASE_MS / 4 * 9 / 10, LEASE_MS / 4);
		hears_ok(w, "2");
	}
}

static void a_slot_beats_every_30_s_and_every_15_s_while_it_works(void **state)
{
	struct world *w = *state;
	struct beat_rules slot = {.lease_ms = 90000, .idle_ms = 30000, .working_ms = 15000};

	beat_init(&w->beat, &slot, w->tasks, TASKS_MAX, 1, w->now_ms);
	sends(w);
	hears(w, (struct beat_answer){.outcome = BEAT_ACCEPTED, .token = SPAN("1"), .lease_ms = 90000});
	assert_in_range(beat_due_ms(&w->beat) - w->now_ms, 27000, 30000);
	binds(w, "a");
	sends(w);
	hears(w, (struct beat_answer){.outcome = BEAT_ACCEPTED, .token = SPAN("2"), .lease_ms = 90000});
	assert_in_range(beat_due_ms(&w->beat) - w->now_ms, 13500, 15000);
}

static void the_lease_is_what_the_server_grants(void **state)
{
	struct world *w = *state;

	sends(w);
	hears(w, (struct beat_answer){.outcome = BEAT_ACCEPTED, .token = SPAN("1"), .lease_ms = 6000});
	assert_in_range(beat_due_ms(&w->beat) - w->now_ms, 1800, 2000);
}

static void work_is_told_within_a_second(void **state)
{
	struct world *w = *state;

	registered(w);
	binds(w, "a");
	assert_int_equal(beat_due_ms(&w->beat), w->now_ms + BEAT_DELTA_DELAY_MS);
}

static void a_server_that_is_away_is_tried_after_1_2_4_and_then_every_15_s(void **state)
{
	static const int64_t delays_ms[] = {1000, 2000, 4000, 15000, 15000, 15000};
	struct world *w = *state;

	rules.lease_ms = 10 * LEASE_MS;
	begin(w, false);
	rules.lease_ms = LEASE_MS;
	sends(w);
	hears(w, (struct beat_answer){.outcome = BEAT_ACCEPTED, .token = SPAN("1"), .lease_ms = 600000});
	binds(w, "a");
	sends(w);
	for (size_t i = 0; i < sizeof delays_ms / sizeof *delays_ms; i++) {
		int64_t then_ms = w->now_ms;
		hears_nothing(w);
		sends(w);
		assert_in_range(w->now_ms - then_ms, delays_ms[i], delays_ms[i] + delays_ms[i] / 5);
	}
}

static void but_within_a_quarter_of_the_lease_while_it_lasts(void **state)
{
	struct world *w = *state;

	sends(w);
	hears(w, (struct beat_answer){.outcome = BEAT_ACCEPTED, .token = SPAN("1"), .lease_ms = 8000});
	binds(w, "a");
	sends(w);
	for (int i = 0; i < 3; i++) {
		int64_t then_ms = w->now_ms;
		hears_nothing(w);
		until_due(w);
		assert_true(w->now_ms - then_ms <= 2000);
		beat_lapses(&w->beat, w->now_ms);
		sends(w);
	}
}

static void an_idle_worker_asks_less_and_less_often_wherever_the_server_is(void **state)
{
	struct world *w = *state;

	for (int same_host = 0; same_host < 2; same_host++) {
		int64_t longest_ms = 0;
		begin(w, same_host);
		sends(w);
		for (int i = 0; i < 20; i++) {
			int64_t then_ms = w->now_ms;
			hears_nothing(w);
			sends(w);
			longest_ms = w->now_ms - then_ms > longest_ms ? w->now_ms - then_ms : longest_ms;
		}
		assert_in_range(longest_ms, BEAT_IDLE_AWAY_MS, BEAT_IDLE_AWAY_MS * 6 / 5);
	}
}

static void retry_after_is_honoured(void **state)
{
	struct world *w = *state;

	registered(w);
	sends(w);
	int64_t then_ms = w->now_ms;
	hears(w, (struct beat_answer){.outcome = BEAT_BUSY, .retry_after_ms = 7000});
	sends(w);
	assert_int_equal(w->now_ms, then_ms + 7000);
}

static void but_not_at_the_cost_of_the_lease(void **state)
{
	struct world *w = *state;

	registered(w);
	holds(w, "a");
	sends(w);
	int64_t then_ms = w->now_ms;
	hears(w, (struct beat_answer){.outcome = BEAT_BUSY, .retry_after_ms = 3600000});
	until_due(w);
	assert_int_equal(w->now_ms, then_ms + LEASE_MS / 4);
}

static void a_refusal_is_not_tried_again_before_the_next_beat(void **state)
{
	struct world *w = *state;

	registered(w);
	sends(w);
	int64_t then_ms = w->now_ms;
	hears(w, (struct beat_answer){.outcome = BEAT_REFUSED});
	sends(w);
	assert_int_equal(w->now_ms, then_ms + 15000);
}

/* ---- stopping ---- */

static void lapses_at(struct world *w, int64_t at_ms)
{
	while (beat_due_ms(&w->beat) < at_ms) {
		sends(w);
		hears_nothing(w);
	}
	assert_int_equal(beat_due_ms(&w->beat), at_ms);
	w->now_ms = at_ms - 1;
	assert_false(beat_lapses(&w->beat, w->now_ms));
	w->now_ms = at_ms;
	assert_true(beat_lapses(&w->beat, w->now_ms));
	assert_false(beat_lapses(&w->beat, w->now_ms));
}

static void a_remote_worker_stops_itself_at_nine_tenths_of_its_lease(void **state)
{
	struct world *w = *state;

	registered(w);
	holds(w, "a");
	lapses_at(w, w->now_ms + LEASE_MS * 9 / 10);
}

static void counted_from_before_the_beat_was_sent(void **state)
{
	struct world *w = *state;

	registered(w);
	binds(w, "a");
	sends(w);
	int64_t sent_ms = w->now_ms;
	w->now_ms += 5000; /* the answer takes its time */
	hears_ok(w, "2");
	lapses_at(w, sent_ms + LEASE_MS * 9 / 10);
}

static void also_while_a_request_hangs(void **state)
{
	struct world *w = *state;

	registered(w);
	holds(w, "a");
	int64_t leased_ms = w->now_ms;
	sends(w);
	assert_int_equal(beat_due_ms(&w->beat), leased_ms + LEASE_MS * 9 / 10);
}

static void of_a_short_lease_two_seconds_are_left(void **state)
{
	struct world *w = *state;

	sends(w);
	hears(w, (struct beat_answer){.outcome = BEAT_ACCEPTED, .token = SPAN("1"), .lease_ms = 5000});
	int64_t leased_ms = w->now_ms;
	binds(w, "a");
	lapses_at(w, leased_ms + 3000);
}

static void an_answer_in_time_takes_the_stop_away(void **state)
{
	struct world *w = *state;

	registered(w);
	holds(w, "a");
	w->now_ms += LEASE_MS / 2;
	assert_true(beat_send(&w->beat, w->now_ms, &w->request));
	hears_ok(w, "3");
	assert_false(beat_lapses(&w->beat, w->now_ms + LEASE_MS / 2));
}

static void a_worker_that_holds_nothing_has_nothing_to_stop(void **state)
{
	struct world *w = *state;

	registered(w);
	assert_false(beat_lapses(&w->beat, w->now_ms + 10 * LEASE_MS));
}

static void on_the_servers_host_work_goes_on_while_the_server_is_away(void **state)
{
	struct world *w = *state;

	begin(w, true);
	registered(w);
	holds(w, "a");
	for (int i = 0; i < 60; i++) { /* ten minutes and more */
		sends(w);
		hears_nothing(w);
		assert_false(beat_lapses(&w->beat, w->now_ms));
	}
	assert_int_equal(beat_held(&w->beat), 1);
	sends(w);
	hears(w, (struct beat_answer){.outcome = BEAT_TOKEN_MISMATCH, .token = SPAN("77")});
	says_token(w, "77");
	assert_true(has(w->request.bound, w->request.bound_count, "a"));
}

/* What stands in for a worker that is stopped counts from here. */
static void an_accepted_beat_vouches_from_its_sending_on(void **state)
{
	struct world *w = *state;

	registered(w);
	binds(w, "a");
	assert_false(beat_is_bound(&w->beat, SPAN("a")));
	sends(w);
	int64_t sent_ms = w->now_ms;
	w->now_ms += 5000;
	hears_ok(w, "2");
	assert_true(w->news.vouched);
	assert_int_equal(w->beat.vouched_ms, sent_ms);
	assert_true(beat_is_bound(&w->beat, SPAN("a")));
}

static void elsewhere_silence_vouches_for_nothing(void **state)
{
	struct world *w = *state;

	registered(w);
	holds(w, "a");
	int64_t vouched_ms = w->beat.vouched_ms;
	sends(w);
	hears_nothing(w);
	assert_false(w->news.vouched);
	assert_int_equal(w->beat.vouched_ms, vouched_ms);
}

static void on_the_servers_host_the_worker_vouches_itself_while_the_server_is_away(void **state)
{
	struct world *w = *state;

	begin(w, true);
	registered(w);
	holds(w, "a");
	for (int i = 0; i < 60; i++) {
		int64_t before_ms = w->beat.vouched_ms;
		sends(w);
		int64_t sent_ms = w->now_ms;
		assert_true(sent_ms - before_ms < LEASE_MS / 2); /* long before it would be over */
		w->now_ms += 5000;
		hears_nothing(w);
		assert_true(w->news.vouched);
		assert_int_equal(w->beat.vouched_ms, sent_ms);
	}
}

/* The server hangs: each beat takes as long as heartbeat.c lets it. */
static void and_in_time_however_short_the_lease(void **state)
{
	static const int64_t leases_ms[] = {5000, 6000, 10000, 60000, 300000};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof leases_ms / sizeof *leases_ms; i++) {
		int64_t lease_ms = leases_ms[i], quarter_ms = lease_ms / 4;
		begin(w, true);
		sends(w);
		hears(w,
			(struct beat_answer){
				.outcome = BEAT_ACCEPTED, .token = SPAN("1"), .lease_ms = lease_ms});
		binds(w, "a");
		for (int n = 0; n < 20; n++) {
			sends(w);
			w->now_ms += quarter_ms < 10000 ? quarter_ms : 10000;
			assert_true(
				w->now_ms - w->beat.vouched_ms < lease_ms - lease_spare_ms(lease_ms) / 4 * 3);
			hears_nothing(w);
		}
	}
}

static void but_not_when_it_is_there_and_says_no(void **state)
{
	struct world *w = *state;
	int64_t vouched_ms;

	begin(w, true);
	registered(w);
	holds(w, "a");
	vouched_ms = w->beat.vouched_ms;
	sends(w);
	hears(w, (struct beat_answer){.outcome = BEAT_TOKEN_MISMATCH, .token = SPAN("77")});
	assert_false(w->news.vouched);
	sends(w);
	hears(w, (struct beat_answer){.outcome = BEAT_REFUSED});
	assert_false(w->news.vouched);
	assert_int_equal(w->beat.vouched_ms, vouched_ms);
}

static void of_the_shortest_lease_half_is_left(void **state)
{
	(void)state;
	assert_int_equal(lease_spare_ms(1000), 500);
	assert_int_equal(lease_spare_ms(5000), 2000);
	assert_int_equal(lease_spare_ms(300000), 30000);
}

static void lapses_when_it_always_hears(struct world *w, struct beat_answer answer)
{
	bool lapsed = false;

	begin(w, true);
	registered(w);
	holds(w, "a");
	for (int i = 0; i < 20 && !lapsed; i++) {
		until_due(w);
		lapsed = beat_lapses(&w->beat, w->now_ms);
		if (beat_send(&w->beat, w->now_ms, &w->request)) {
			hears(w, answer);
			assert_false(w->news.vouched);
		}
	}
	assert_true(lapsed);
	assert_true(w->now_ms < beat_lease_end_ms(&w->beat));
}

static void but_not_when_the_server_refuses_it(void **state)
{
	lapses_when_it_always_hears(*state, (struct beat_answer){.outcome = BEAT_REFUSED});
}

static void nor_when_it_cannot_even_ask(void **state)
{
	lapses_when_it_always_hears(*state, (struct beat_answer){.outcome = BEAT_UNANSWERED, .unsent = true});
}

static void a_refusal_of_before_does_not_count_when_the_server_is_busy(void **state)
{
	struct world *w = *state;

	begin(w, true);
	registered(w);
	holds(w, "a");
	sends(w);
	hears(w, (struct beat_answer){.outcome = BEAT_REFUSED});
	for (int i = 0; i < 60; i++) { /* its disk is full, say: nobody expires */
		sends(w);
		hears(w, (struct beat_answer){.outcome = BEAT_BUSY, .retry_after_ms = 5000});
		assert_false(beat_lapses(&w->beat, w->now_ms));
	}
}

static void a_change_of_standing_is_told_once(void **state)
{
	struct world *w = *state;
	struct beat_answer quiet = {
		.outcome = BEAT_ACCEPTED, .token = SPAN("2"), .lease_ms = LEASE_MS, .standing = BEAT_QUIET};

	registered(w);
	sends(w);
	hears(w, quiet);
	assert_true(w->news.standing);
	sends(w);
	hears(w, quiet);
	assert_false(w->news.standing);
}

/* ---- news ---- */

static void whoever_hurries_beats_now_and_then_as_usual(void **state)
{
	struct world *w = *state;

	registered(w);
	beat_hurry(&w->beat, w->now_ms);
	assert_int_equal(beat_due_ms(&w->beat), w->now_ms);
	sends(w);
	hears_ok(w, "2");
	assert_true(beat_due_ms(&w->beat) > w->now_ms);
}

static void a_beat_that_was_under_way_before_the_news_does_not_count(void **state)
{
	struct world *w = *state;

	registered(w);
	sends(w);
	beat_hurry(&w->beat, w->now_ms);
	w->now_ms += 5;
	hears_ok(w, "2");
	assert_int_equal(beat_due_ms(&w->beat), w->now_ms);
	sends(w);
	hears_ok(w, "3");
	assert_true(beat_due_ms(&w->beat) > w->now_ms);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(name, set_up)
	const struct CMUnitTest tests[] = {
		T(the_first_request_registers_and_the_second_shows_the_token),
		T(each_answer_brings_the_token_of_the_next_beat),
		T(an_accepted_beat_clears_the_deltas_it_carried),
		T(a_token_mismatch_takes_the_current_token_and_keeps_the_deltas),
		T(mismatches_without_end_are_not_answered_at_once),
		T(an_inactive_worker_stops_everything_and_comes_back_under_another_key),
		T(there_is_one_request_at_a_time),
		T(a_lost_answer_is_followed_by_the_same_token_and_deltas),
		T(what_ends_before_the_beat_is_never_told),
		T(what_is_let_go_while_its_bind_is_under_way_is_unbound_next),
		T(an_unbind_that_perhaps_arrived_is_sent_again),
		T(a_bind_after_an_unbind_counts),
		T(more_than_a_hundred_deltas_go_with_the_next_beat_at_once),
		T(there_is_room_for_so_many_and_no_more),
		T(what_is_lost_is_no_longer_held),
		T(a_task_that_was_claimed_anew_meanwhile_is_not_lost),
		T(after_a_server_that_was_away_everything_held_is_told_again),
		T(an_idle_worker_beats_in_every_third_of_its_lease),
		T(one_that_holds_work_in_every_quarter),
		T(a_slot_beats_every_30_s_and_every_15_s_while_it_works),
		T(the_lease_is_what_the_server_grants),
		T(work_is_told_within_a_second),
		T(a_server_that_is_away_is_tried_after_1_2_4_and_then_every_15_s),
		T(but_within_a_quarter_of_the_lease_while_it_lasts),
		T(an_idle_worker_asks_less_and_less_often_wherever_the_server_is),
		T(retry_after_is_honoured),
		T(but_not_at_the_cost_of_the_lease),
		T(a_refusal_is_not_tried_again_before_the_next_beat),
		T(a_remote_worker_stops_itself_at_nine_tenths_of_its_lease),
		T(counted_from_before_the_beat_was_sent),
		T(also_while_a_request_hangs),
		T(of_a_short_lease_two_seconds_are_left),
		T(an_answer_in_time_takes_the_stop_away),
		T(a_worker_that_holds_nothing_has_nothing_to_stop),
		T(on_the_servers_host_work_goes_on_while_the_server_is_away),
		T(an_accepted_beat_vouches_from_its_sending_on),
		T(elsewhere_silence_vouches_for_nothing),
		T(on_the_servers_host_the_worker_vouches_itself_while_the_server_is_away),
		T(and_in_time_however_short_the_lease),
		T(but_not_when_it_is_there_and_says_no),
		T(of_the_shortest_lease_half_is_left),
		T(but_not_when_the_server_refuses_it),
		T(nor_when_it_cannot_even_ask),
		T(a_refusal_of_before_does_not_count_when_the_server_is_busy),
		T(a_change_of_standing_is_told_once),
		T(whoever_hurries_beats_now_and_then_as_usual),
		T(a_beat_that_was_under_way_before_the_news_does_not_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
