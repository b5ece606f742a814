/*
 * Logs: where an append goes, what is kept, and what is refused.
 */
#include "core_fixture.h"

#include "core/task/log.h"
#include "core/task/log_streams.h"

static struct log_decision append(struct world *w, const struct log *log, int64_t offset, uint32_t bytes)
{
	struct log_append wanted = {.offset = offset, .bytes = bytes};

	return log_append(log, &wanted, &w->given);
}

/* Append what comes next, a second later. */
static void grow(struct world *w, struct log *log, uint32_t bytes)
{
	pass_time(w, SECONDS(1));
	struct log_decision decision = append(w, log, log->length, bytes);

	assert_int_equal(decision.refusal, REFUSED_NOTHING);
	assert_int_equal(decision.known, 0);
	assert_int_equal(decision.log.length, log->length + bytes);
	*log = decision.log;
}

static int64_t kept(const struct log *log)
{
	int64_t bytes = 0, end = 0;

	for (uint32_t i = 0; i < log->count; i++) {
		assert_true(log->chunks[i].offset >= end);
		end = log->chunks[i].offset + log->chunks[i].bytes;
		bytes += log->chunks[i].bytes;
	}
	assert_true(end <= log->length);
	return bytes;
}

static void small_appends_share_a_chunk(void **state)
{
	struct world *w = *state;
	struct log log = {0};

	for (int i = 0; i < 100; i++)
		grow(w, &log, 100);
	assert_int_equal(log.count, 1);
	grow(w, &log, LOG_APPEND_MAX);
	assert_int_equal(log.count, 2);
	assert_int_equal(kept(&log), 10000 + LOG_APPEND_MAX);
}

static void a_repeat_adds_nothing_and_an_overlap_only_what_is_new(void **state)
{
	struct world *w = *state;
	struct log log = {0};

	grow(w, &log, 100);
	struct log_decision again = append(w, &log, 40, 60);
	assert_false(again.grows);
	assert_int_equal(again.known, 60);
	struct log_decision longer = append(w, &log, 40, 80);
	assert_true(longer.grows);
	assert_int_equal(longer.known, 60);
	assert_int_equal(longer.log.length, 120);
	assert_int_equal(kept(&longer.log), 120);
}

static void a_gap_is_refused_unless_it_is_declared(void **state)
{
	struct world *w = *state;
	struct log_append wanted = {.offset = 150, .dropped = 50, .bytes = 10};
	struct log log = {0};

	grow(w, &log, 100);
	assert_int_equal(append(w, &log, 101, 10).refusal, REFUSED_BAD_OFFSET);
	struct log_decision decision = log_append(&log, &wanted, &w->given);
	assert_int_equal(decision.refusal, REFUSED_NOTHING);
	assert_int_equal(decision.log.length, 160);
	assert_int_equal(decision.log.count, 2);
	assert_false(log_append(&decision.log, &wanted, &w->given).grows); /* the same again */
	wanted.dropped = 49;
	assert_int_equal(log_append(&log, &wanted, &w->given).refusal, REFUSED_BAD_OFFSET);
}

static void beyond_the_limit_the_middle_goes(void **state)
{
	struct world *w = *state;
	struct log log = {0};

	for (int i = 0; i < 3000; i++)
		grow(w, &log, 1000);
	assert_int_equal(log.length, 3000000);
	assert_in_range(kept(&log), w->rules.log_keep_bytes - 2 * LOG_CHUNK_MAX, w->rules.log_keep_bytes);
	assert_int_equal(log.chunks[0].offset, 0);
	uint32_t last = log.count - 1;
	assert_int_equal(log.chunks[last].offset + log.chunks[last].bytes, log.length);
	/* one gap, behind the first quarter */
	uint32_t gaps = 0;
	for (uint32_t i = 1; i < log.count; i++)
		gaps += log.chunks[i].offset != log.chunks[i - 1].offset + log.chunks[i - 1].bytes;
	assert_int_equal(gaps, 1);
}

static void many_gaps_take_no_more_room_than_few(void **state)
{
	struct world *w = *state;
	struct log log = {0};

	for (int i = 0; i < 2000; i++) {
		struct log_append wanted = {.offset = log.length + 10, .dropped = 10, .bytes = 1};

		pass_time(w, SECONDS(1));
		struct log_decision decision = log_append(&log, &wanted, &w->given);
		assert_int_equal(decision.refusal, REFUSED_NOTHING);
		log = decision.log;
	}
	assert_int_equal(log.count, LOG_CHUNKS_MAX);
	assert_int_equal(kept(&log), LOG_CHUNKS_MAX);
}

static void who_says_too_much_is_told_to_wait(void **state)
{
	struct world *w = *state;
	struct log log = {0};
	uint32_t appends = 0;
	struct log_decision decision = append(w, &log, 0, LOG_APPEND_MAX);

	for (; decision.refusal == REFUSED_NOTHING && appends < 100; appends++) {
		log = decision.log;
		decision = append(w, &log, log.length, LOG_APPEND_MAX);
	}
	assert_int_equal(decision.refusal, REFUSED_RATE_LIMITED);
	assert_int_equal(appends, w->rules.log_bytes_per_s / LOG_APPEND_MAX);
	assert_false(append(w, &log, 0, 100).grows); /* a repeat costs nothing */
	pass_time(w, 100);
	assert_int_equal(append(w, &log, log.length, LOG_APPEND_MAX).refusal, REFUSED_NOTHING);
	w->given.now.lease_ms = 5; /* a reboot */
	assert_int_equal(append(w, &log, log.length, LOG_APPEND_MAX).refusal, REFUSED_NOTHING);
}

/* So many of that many bytes, one after the other in one moment, find room in the event stream. */
static uint32_t told(struct world *w, struct log *log, uint32_t count, uint32_t bytes)
{
	uint32_t tells = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct log_decision decision = append(w, log, log->length, bytes);
		assert_int_equal(decision.refusal, REFUSED_NOTHING);
		tells += decision.tells;
		*log = decision.log;
	}
	return tells;
}

static void what_is_told_of_it_is_bounded_however_much_and_often_is_said(void **state)
{
	struct world *w = *state;
	struct log log = {0}, other = {0};

	w->rules.log_bytes_per_s = 64 << 20;
	assert_int_equal(told(w, &log, 100, LOG_APPEND_MAX), LOG_TOLD_ROOM / LOG_TOLD_MAX);
	pass_time(w, SECONDS(2));
	assert_int_equal(told(w, &log, 10, LOG_APPEND_MAX), 2);
	pass_time(w, SECONDS(60));
	assert_int_equal(told(w, &log, 100, LOG_APPEND_MAX), LOG_TOLD_ROOM / LOG_TOLD_MAX);
	assert_int_equal(told(w, &other, 1000, 1), LOG_TOLD_ROOM / LOG_TOLD_LEAST);
	assert_false(append(w, &other, 0, 1).tells); /* a repeat */
}

static void there_is_an_end_to_positions(void **state)
{
	struct world *w = *state;
	struct log log = {.length = LOG_LENGTH_MAX - 10};

	assert_int_equal(append(w, &log, log.length, 10).refusal, REFUSED_NOTHING);
	assert_int_equal(append(w, &log, log.length, 11).refusal, REFUSED_TOO_LARGE);
}

static void only_the_holder_may_append(void **state)
{
	struct world *w = *state;
	struct task task = running_task(w), done = done_task(w);
	struct proof holder = proof_of(&task), other = proof_with(RIVAL, task.fence);
	struct proof old = proof_with(BEATER, task.fence - 1), late = proof_with(BEATER, done.fence);

	assert_int_equal(task_append_log(&task, &holder).refusal, REFUSED_NOTHING);
	assert_int_equal(task_append_log(&task, &other).refusal, REFUSED_STALE_CLAIM);
	assert_int_equal(task_append_log(&task, &old).refusal, REFUSED_STALE_CLAIM);
	assert_int_equal(task_append_log(&done, &late).refusal, REFUSED_STALE_CLAIM);
}

static void bytes_that_were_dropped_lengthen_the_log_and_are_told_to_nobody(void **state)
{
	struct world *w = *state;
	struct log log = {0};
	struct log_append gap = {.offset = 500, .dropped = 500, .bytes = 0};
	struct log_decision decision = log_append(&log, &gap, &w->given);

	assert_int_equal(decision.refusal, REFUSED_NOTHING);
	assert_int_equal(decision.log.length, 500);
	assert_int_equal(decision.log.count, 0);
	assert_false(decision.tells);
}

static void a_place_in_a_log_is_found_by_its_chunk(void **state)
{
	const struct log log = {.count = 2, .chunks = {{.offset = 0, .bytes = 5}, {.offset = 7, .bytes = 5}}};

	(void)state;
	assert_int_equal(log_find(&log, 0), 0);
	assert_int_equal(log_find(&log, 4), 0);
	assert_int_equal(log_find(&log, 5), 1); /* what lay between is gone: the next chunk that there is */
	assert_int_equal(log_find(&log, 11), 1);
	assert_int_equal(log_find(&log, 12), 2);
}

/* ---- streams ---- */

#define LIST(name, room, ...)                          \
	uint32_t name##_lengths[room] = {__VA_ARGS__}; \
	struct log_streams name = {.max = (room), .lengths = name##_lengths}

static void are(const struct log_streams *list, uint32_t count, const uint32_t *lengths)
{
	assert_int_equal(list->count, count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(list->lengths[i], lengths[i]);
}

static void streams_take_turns_and_output_comes_first(void **state)
{
	LIST(list, 4, 0);

	(void)state;
	assert_false(log_streams_has_errors(&list));
	assert_true(log_streams_add(&list, LOG_ERR, 3));
	are(&list, 2, (uint32_t[]){0, 3});
	assert_true(log_streams_add(&list, LOG_ERR, 2) && log_streams_add(&list, LOG_OUT, 0));
	assert_true(log_streams_add(&list, LOG_OUT, 4) && log_streams_add(&list, LOG_ERR, 1));
	are(&list, 4, (uint32_t[]){0, 5, 4, 1});
	assert_false(log_streams_add(&list, LOG_OUT, 1));
	are(&list, 4, (uint32_t[]){0, 5, 4, 1});
	assert_int_equal(log_streams_bytes(&list), 10);
	assert_true(log_streams_has_errors(&list));
}

static void a_part_of_streams_is_what_its_bytes_were(void **state)
{
	LIST(all, 4, 5, 3, 2);
	LIST(none, 1, 0);
	static const struct {
		uint32_t from, bytes, taken, count, lengths[4];
	} rows[] = {{0, 10, 10, 3, {5, 3, 2}}, {4, 3, 3, 2, {1, 2}}, {5, 3, 3, 2, {0, 3}},
		{6, 1, 1, 2, {0, 1}}, {8, 2, 2, 1, {2}}, {0, 5, 5, 1, {5}}, {3, 0, 0, 0, {0}},
		{7, 9, 9, 3, {0, 1, 8}}};

	(void)state;
	all.count = 3;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		LIST(part, 4, 0);
		assert_int_equal(
			log_streams_add_part(&part, &all, rows[i].from, rows[i].bytes), rows[i].taken);
		are(&part, rows[i].count, rows[i].lengths);
	}
	LIST(part, 2, 0);
	assert_int_equal(log_streams_add_part(&part, &none, 7, 9), 9); /* nobody told them apart */
	are(&part, 1, (uint32_t[]){9});
	assert_int_equal(log_streams_add_part(&part, &all, 4, 6), 4); /* there is room for two lengths */
	are(&part, 2, (uint32_t[]){10, 3});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(small_appends_share_a_chunk),
		TEST(a_repeat_adds_nothing_and_an_overlap_only_what_is_new),
		TEST(a_gap_is_refused_unless_it_is_declared),
		TEST(beyond_the_limit_the_middle_goes),
		TEST(many_gaps_take_no_more_room_than_few),
		TEST(who_says_too_much_is_told_to_wait),
		TEST(what_is_told_of_it_is_bounded_however_much_and_often_is_said),
		TEST(there_is_an_end_to_positions),
		TEST(only_the_holder_may_append),
		TEST(bytes_that_were_dropped_lengthen_the_log_and_are_told_to_nobody),
		TEST(a_place_in_a_log_is_found_by_its_chunk),
		TEST(streams_take_turns_and_output_comes_first),
		TEST(a_part_of_streams_is_what_its_bytes_were),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
