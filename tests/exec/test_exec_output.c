#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/rng.h"
#include "base/take.h"
#include "exec/output.h"

static void assert_tail(const struct output *output, size_t most, const char *expected)
{
	cleanup(buf_done) struct buf buf;

	buf_init(&buf, 100);
	assert_int_equal(output_tail(output, most, &buf), 0);
	assert_int_equal(buf.len, strlen(expected));
	assert_memory_equal(buf.data ? buf.data : "", expected, buf.len);
}

static void bytes_are_read_in_order(void **state)
{
	cleanup(output_done) struct output output;
	uint64_t position;

	(void)state;
	output_init(&output, 100);
	assert_true(span_is_empty(output_unread(&output, &position)));
	output_put(&output, SPAN("one"));
	output_put(&output, SPAN("two"));
	assert_true(span_equal(output_unread(&output, &position), SPAN("onetwo")));
	output_advance(&output, 4);
	assert_true(span_equal(output_unread(&output, &position), SPAN("wo")));
	assert_int_equal(position, 4);
	assert_int_equal(output.dropped, 0);
}

static void the_oldest_give_way_and_are_counted(void **state)
{
	cleanup(output_done) struct output output;
	uint64_t position;

	(void)state;
	output_init(&output, 4);
	output_put(&output, SPAN("abcdef"));
	output_unread(&output, &position);
	assert_int_equal(position, 2);
	assert_int_equal(output.dropped, 2);
	output_advance(&output, 1);
	output_put(&output, SPAN("g"));
	assert_int_equal(output.dropped, 2); /* the one that gave way was read */
	output_put(&output, SPAN("hi"));
	assert_int_equal(output.dropped, 4);
	assert_tail(&output, 100, "fghi");
	assert_tail(&output, 2, "hi");
}

static void the_tail_stays_after_it_was_read(void **state)
{
	cleanup(output_done) struct output output;

	(void)state;
	output_init(&output, 10);
	assert_tail(&output, 10, "");
	output_put(&output, SPAN("result"));
	output_advance(&output, 6);
	assert_int_equal(output_waiting(&output), 0);
	assert_tail(&output, 10, "result");
}

/* Against the whole of what was put, byte for byte. */
static void random_puts_and_reads_agree_with_what_was_said(void **state)
{
	enum { TOTAL = 200000, MAX = 10000 };
	cleanup(output_done) struct output output;
	static char said[TOTAL], part[20000];
	uint64_t put = 0, seen = 0, dropped = 0, position;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 7);
	output_init(&output, MAX);
	for (size_t i = 0; i < TOTAL; i++)
		said[i] = (char)rng_u64(&rng);
	while (put < TOTAL) {
		size_t len = rng_u64(&rng) % (rng_u64(&rng) % 10 ? 700 : sizeof part);
		len = len < TOTAL - put ? len : TOTAL - put;
		output_put(&output, (struct span){said + put, len});
		put += len;
		for (int reads = (int)(rng_u64(&rng) % 3); reads > 0; reads--) {
			struct span unread = output_unread(&output, &position);
			dropped += position - seen;
			assert_memory_equal(said + position, unread.data ? unread.data : "", unread.len);
			output_advance(&output, unread.len / 2 + unread.len % 2);
			seen = position + unread.len / 2 + unread.len % 2;
		}
	}
	output_unread(&output, &position);
	assert_int_equal(output.dropped, dropped + position - seen);
	assert_int_equal(output.end, TOTAL);
	assert_true(output.cap <= MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_read_in_order),
		cmocka_unit_test(the_oldest_give_way_and_are_counted),
		cmocka_unit_test(the_tail_stays_after_it_was_read),
		cmocka_unit_test(random_puts_and_reads_agree_with_what_was_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
