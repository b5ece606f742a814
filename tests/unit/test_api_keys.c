// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <errno.h>
#include <stdlib.h>

#include "api/task/keys.h"
#include "base/rng.h"
#include "base/take.h"

static struct task_outline any_outline(struct rng *rng)
{
	static const enum task_state states[] = {TASK_READY, TASK_CLAIMED, TASK_DONE, TASK_FAILED};

	return (struct task_outline){
		.seq = (int64_t)rng_below(rng, 1000) + 1,
		.created_ms = (int64_t)rng_below(rng, 4),
		.priority = (int32_t)rng_below(rng, 5) - 2,
		.state = states[rng_below(rng, 4)],
	};
}

static void open_keys_stand_in_claim_order_and_final_ones_behind_them(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 1);
	for (int i = 0; i < 10000; i++) {
		int64_t age_ms = i % 3;
		struct task_outline a = any_outline(&rng), b = any_outline(&rng);
		struct task left = {.seq = a.seq, .created_ms = a.created_ms, .priority = a.priority};
		struct task right = {.seq = b.seq, .created_ms = b.created_ms, .priority = b.priority};
		struct task_key one = task_key_of(&a, age_ms), other = task_key_of(&b, age_ms);
		int order = task_key_order(&one, &other);
		assert_int_equal(order, -task_key_order(&other, &one));
		if (!one.final && !other.final)
			assert_int_equal(order < 0, task_claim_order(&left, &right, age_ms) < 0);
		else if (one.final != other.final)
			assert_int_equal(order < 0, other.final);
		else
			assert_int_equal(order<0, one.seq> other.seq);
	}
}

static int by_order(const void *a, const void *b)
{
	return task_key_order(a, b);
}

static void the_first_keys_are_kept_in_order_however_they_come(void **state)
{
	enum { COUNT = 3000, KEPT = 700 };
	static struct task_key all[COUNT];
	struct task_keys keys;
	struct arena arena;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 2);
	arena_init(&arena, 1 << 20);
	task_keys_init(&keys, &arena, KEPT);
	for (int i = 0; i < COUNT; i++) {
		struct task_outline outline = any_outline(&rng);
		all[i] = task_key_of(&outline, 0);
		assert_int_equal(task_keys_add(&keys, &all[i]), 0);
	}
	qsort(all, COUNT, sizeof *all, by_order);
	assert_false(task_keys_sort(&keys, KEPT - 1));
	assert_true(task_keys_sort(&keys, 1));
	assert_int_equal(keys.count, KEPT);
	for (int i = 0; i < KEPT; i++)
		assert_int_equal(task_key_order(&keys.items[i], &all[i]), 0);
	assert_true(task_keys_have(&keys, &all[KEPT / 2]));
	struct task_key none = {.seq = 5000, .priority = -1};
	assert_false(task_keys_have(&keys, &none));
	arena_done(&arena);
}

static void few_keys_leave_room_for_more_behind_them(void **state)
{
	struct task_key open = {.seq = 1, .priority = 1}, final = {.seq = 9, .final = true};
	struct task_keys keys;
	struct arena arena;

	(void)state;
	arena_init(&arena, 1 << 20);
	task_keys_init(&keys, &arena, 3);
	assert_true(task_keys_sort(&keys, 1));
	assert_false(task_keys_have(&keys, &open));
	assert_int_equal(task_keys_append(&keys, &open), 0);
	assert_int_equal(task_keys_append(&keys, &final), 0);
	assert_true(task_keys_have(&keys, &final));
	arena_done(&arena);
}

static void a_cursor_is_read_as_it_was_written(void **state)
{
	static const struct task_key rows[] = {{.seq = 1, .final = true}, {.seq = INT64_MAX, .final = true},
		{.seq = 7, .created_ms = 1700000000000, .priority = -50},
		{.seq = INT64_MAX, .created_ms = INT64_MAX, .priority = INT32_MIN},
		{.seq = 1, .created_ms = 0, .priority = INT32_MAX}, {.seq = 3, .created_ms = -1},
		{.seq = 3, .created_ms = -INT64_MAX}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		cleanup(buf_done) struct buf text;
		struct task_key key;
		buf_init(&text, 100);
		assert_int_equal(task_key_put(&text, &rows[i]), 0);
		assert_int_equal(task_key_read(buf_span(&text), &key), 0);
		assert_int_equal(task_key_order(&key, &rows[i]), 0);
	}
}

static void what_was_never_given_out_is_no_cursor(void **state)
{
	static const char *const rows[] = {"", "o", "f-", "f-0", "f-01", "f-1 ", "f-1-1", "f-A", "x-1",
		"o-1-1", "o-1-1-", "o-1-1-0", "o-1-1-1-1", "o--1-1", "o-1z141z4-1-1", "f-3w5e11264sgsf",
		"f-1y2p0ij32e8e8", "o-1-1y2p0ij32e8e8-1", "1.2", "o-1-1-1\n", "b-1-0-1",
		"b-1-1y2p0ij32e8e8-1"};
	struct task_key key;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (task_key_read(span_of(rows[i]), &key) != -EINVAL)
			fail_msg("%s was taken", rows[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_keys_stand_in_claim_order_and_final_ones_behind_them),
		cmocka_unit_test(the_first_keys_are_kept_in_order_however_they_come),
		cmocka_unit_test(few_keys_leave_room_for_more_behind_them),
		cmocka_unit_test(a_cursor_is_read_as_it_was_written),
		cmocka_unit_test(what_was_never_given_out_is_no_cursor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
