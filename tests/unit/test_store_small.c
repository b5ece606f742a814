/*
 * Small records: what was put is what is read, and what was never put is not read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "store/record/small.h"

static void a_queue_is_read_as_it_was_put(void **state)
{
	char text[SMALL_BYTES_MAX];

	(void)state;
	for (int i = QUEUE_OPEN; i <= QUEUE_DRAINING; i++) {
		enum queue_state read = QUEUE_OPEN;
		assert_true(small_queue_read(small_queue_put((enum queue_state)i, text), &read));
		assert_int_equal(read, i);
	}
}

static void a_slot_with_the_longest_numbers_is_read_as_it_was_put(void **state)
{
	struct slot put = {.state = SLOT_ON_TRIAL,
		.since_ms = INT64_MIN + 1,
		.restarts = UINT32_MAX,
		.trial_by = UINT64_MAX};
	struct slot read = {0};
	char text[SMALL_BYTES_MAX];

	(void)state;
	for (int i = 0; i < SLOT_CRASHES_KEPT; i++)
		put.crashed_ms[i] = i % 2 == 0 ? INT64_MIN : INT64_MIN + 1;
	assert_true(small_slot_read(small_slot_put(&put, text), &read));
	assert_int_equal(read.state, put.state);
	assert_int_equal(read.since_ms, put.since_ms);
	assert_int_equal(read.restarts, put.restarts);
	assert_true(read.trial_by == put.trial_by);
	assert_memory_equal(read.crashed_ms, put.crashed_ms, sizeof put.crashed_ms);
}

static void a_queue_that_was_never_put_is_not_read(void **state)
{
	static const struct span damaged[] = {SPAN(""), SPAN(" "), SPAN("x"), SPAN("-"), SPAN("-1"),
		SPAN("3"), SPAN("0 0"), SPAN("0 "), SPAN("0\0"), SPAN("99999999999999999999")};
	enum queue_state read;

	(void)state;
	for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
		if (small_queue_read(damaged[i], &read))
			fail_msg("read: '%.*s'", SPAN_ARGS(damaged[i]));
	}
}

/* Four numbers, with no crash kept behind them. */
static struct span slot_text(const char *first, const char *tail, char text[4 * SMALL_BYTES_MAX])
{
	size_t len = (size_t)snprintf(text, 4 * SMALL_BYTES_MAX, "%s", first);

	for (int i = 0; i < SLOT_CRASHES_KEPT; i++)
		len += (size_t)snprintf(text + len, 4 * SMALL_BYTES_MAX - len, " -");
	len += (size_t)snprintf(text + len, 4 * SMALL_BYTES_MAX - len, "%s", tail);
	return (struct span){text, len};
}

static void a_slot_that_was_never_put_is_not_read(void **state)
{
	static const struct {
		const char *first, *tail;
	} damaged[] = {{"3 0 0 0", ""}, {"-1 0 0 0", ""}, {"0 0 -1 0", ""}, {"0 0 4294967296 0", ""},
		{"0 0 0", ""}, {"0 0 0 0", " 1"}, {"0 0 0 0", " "}, {"0 0 0 0", "x"}, {"0  0 0", ""},
		{"0,0 0 0", ""}, {"a 0 0 0", ""}, {"", ""}};
	char text[4 * SMALL_BYTES_MAX];
	struct slot read;

	(void)state;
	assert_true(small_slot_read(slot_text("0 0 0 0", "", text), &read));
	for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
		struct span span = slot_text(damaged[i].first, damaged[i].tail, text);
		if (small_slot_read(span, &read))
			fail_msg("read: '%.*s'", SPAN_ARGS(span));
	}
	memset(text, '0', sizeof text); /* longer than any record */
	assert_false(small_slot_read((struct span){text, SMALL_BYTES_MAX}, &read));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_queue_is_read_as_it_was_put),
		cmocka_unit_test(a_slot_with_the_longest_numbers_is_read_as_it_was_put),
		cmocka_unit_test(a_queue_that_was_never_put_is_not_read),
		cmocka_unit_test(a_slot_that_was_never_put_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
