#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/rng.h"
#include "base/take.h"

static bool starved;

void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

void *__wrap_realloc(void *memory, size_t bytes)
{
	return starved ? NULL : __real_realloc(memory, bytes);
}

static void puts_append_in_order(void **state)
{
	cleanup(buf_done) struct buf buf;

	(void)state;
	buf_init(&buf, 100);
	assert_true(span_is_empty(buf_span(&buf)));
	assert_int_equal(buf_put(&buf, "st", 2), 0);
	assert_int_equal(buf_put_span(&buf, SPAN("in")), 0);
	assert_int_equal(buf_put_byte(&buf, 't'), 0);
	assert_int_equal(buf_put_span(&buf, span_of(NULL)), 0);
	assert_true(span_equal(buf_span(&buf), SPAN("stint")));
}

static void a_buf_fills_to_its_maximum_and_not_beyond(void **state)
{
	cleanup(buf_done) struct buf buf;
	volatile size_t far_too_many = SIZE_MAX; /* the compiler must not see it coming */

	(void)state;
	buf_init(&buf, 5);
	buf_put(&buf, "12345", 5);
	assert_true(span_equal(buf_span(&buf), SPAN("12345")));
	buf_put_byte(&buf, '6');
	assert_int_equal(buf_fault(&buf), -E2BIG);
	buf_cut(&buf, 5);
	buf_put(&buf, "", far_too_many);
	assert_int_equal(buf_fault(&buf), -E2BIG);
	buf_cut(&buf, 5);
	assert_true(span_equal(buf_span(&buf), SPAN("12345")));
}

/* Every way to put something, each of a few bytes. */
static void put_one(struct buf *buf, int which)
{
	switch (which) {
	case 0:
		buf_put(buf, "ab", 2);
		break;
	case 1:
		buf_put_span(buf, SPAN("ab"));
		break;
	case 2:
		buf_put_byte(buf, 'a');
		break;
	case 3:
		buf_put_decimal(buf, 7);
		break;
	case 4:
		buf_put_uvarint(buf, 7);
		break;
	case 5:
		buf_put_svarint(buf, -70000);
		break;
	case 6:
		buf_put_bytes(buf, SPAN("a"));
		break;
	case 7:
		buf_printf(buf, "%d", 7);
		break;
	}
}

enum {
	WAYS = 8,
};

static void after_a_fault_no_put_appends_anything(void **state)
{
	(void)state;
	for (int way = 0; way < WAYS; way++) {
		cleanup(buf_done) struct buf buf;

		buf_init(&buf, 16);
		buf_put(&buf, "123", 3);
		buf_put(&buf, "four and ten bytes", 18);
		put_one(&buf, way); /* there would be room for it */
		assert_int_equal(buf_fault(&buf), -E2BIG);
		assert_int_equal(buf.len, 3);
		assert_int_not_equal(buf_reserve(&buf, 1), 0);
	}
}

static void every_put_that_finds_no_room_is_a_fault_of_the_buf(void **state)
{
	(void)state;
	for (int way = 0; way < WAYS; way++) {
		cleanup(buf_done) struct buf buf;

		buf_init(&buf, 3);
		buf_put(&buf, "123", 3);
		put_one(&buf, way);
		assert_int_equal(buf_fault(&buf), -E2BIG);
		assert_int_equal(buf.len, 3);
	}
}

static void bytes_that_were_cut_short_cannot_be_had(void **state)
{
	cleanup(buf_done) struct buf buf;

	(void)state;
	buf_init(&buf, 5);
	buf_put(&buf, "123", 3);
	buf_put(&buf, "456", 3);
	assert_true(span_is_empty(buf_span(&buf)));
}

static void the_first_fault_is_the_one_that_stays(void **state)
{
	cleanup(buf_done) struct buf buf;

	(void)state;
	buf_init(&buf, 5);
	assert_int_equal(buf_fail(&buf, 0), 0);
	assert_int_equal(buf_fail(&buf, -EPROTO), -EPROTO);
	buf_put(&buf, "123456", 6);
	assert_int_equal(buf_fail(&buf, -EIO), -EPROTO);
	assert_int_equal(buf_fault(&buf), -EPROTO);
}

static void a_buf_without_memory_keeps_what_it_had_and_takes_no_more(void **state)
{
	struct buf buf;
	size_t before;

	(void)state;
	buf_init(&buf, 1 << 20);
	buf_printf(&buf, "%060d", 1);
	before = buf.len;
	starved = true;
	buf_printf(&buf, "%5000d", 1);
	starved = false;
	buf_put_byte(&buf, 'x');
	assert_int_equal(buf_fault(&buf), -ENOMEM);
	assert_int_equal(buf.len, before);
	buf_done(&buf); /* a checker of leaks sees whether it was freed */
	assert_int_equal(buf_fault(&buf), 0);
	starved = true;
	buf_put_byte(&buf, 'x');
	starved = false;
	assert_int_equal(buf_fault(&buf), -ENOMEM);
	buf_clear(&buf);
	buf_put_byte(&buf, 'x');
	assert_true(span_equal(buf_span(&buf), SPAN("x")));
	buf_done(&buf);
}

static void a_buf_that_was_cut_goes_on_without_the_part_that_failed(void **state)
{
	cleanup(buf_done) struct buf buf;
	size_t before;

	(void)state;
	buf_init(&buf, 5);
	buf_put(&buf, "12", 2);
	before = buf.len;
	buf_put(&buf, "34", 2);
	buf_put(&buf, "56", 2);
	buf_cut(&buf, before);
	assert_int_equal(buf_fault(&buf), 0);
	buf_put(&buf, "789", 3);
	assert_true(span_equal(buf_span(&buf), SPAN("12789")));
}

static void bytes_are_dropped_from_the_end_but_not_after_a_fault(void **state)
{
	cleanup(buf_done) struct buf buf;

	(void)state;
	buf_init(&buf, 5);
	buf_put(&buf, "123", 3);
	buf_drop(&buf, 1);
	assert_true(span_equal(buf_span(&buf), SPAN("12")));
	buf_clear(&buf);
	buf_fail(&buf, -ENOMEM);
	buf_drop(&buf, 1);
	assert_int_equal(buf.len, 0);
}

static void a_buf_grows_through_many_sizes(void **state)
{
	cleanup(buf_done) struct buf buf;

	(void)state;
	buf_init(&buf, 100000);
	for (int i = 0; i < 100000; i++)
		assert_int_equal(buf_put_byte(&buf, (unsigned char)i), 0);
	for (int i = 0; i < 100000; i++)
		assert_int_equal((unsigned char)buf.data[i], i & 0xff);
	assert_int_equal(buf.len, 100000);
	assert_true(buf.cap <= buf.max);
}

static void a_cleared_buf_keeps_its_memory(void **state)
{
	cleanup(buf_done) struct buf buf;
	char *data;

	(void)state;
	buf_init(&buf, 100);
	assert_int_equal(buf_put(&buf, "old", 3), 0);
	data = buf.data;
	buf_clear(&buf);
	assert_int_equal(buf_put(&buf, "new", 3), 0);
	assert_ptr_equal(buf.data, data);
	assert_true(span_equal(buf_span(&buf), SPAN("new")));
}

static void a_done_buf_may_be_used_again(void **state)
{
	struct buf buf;

	(void)state;
	buf_done(NULL);
	buf_init(&buf, 3);
	assert_int_equal(buf_put(&buf, "old", 3), 0);
	buf_done(&buf);
	assert_int_equal(buf_put(&buf, "new", 3), 0);
	assert_true(span_equal(buf_span(&buf), SPAN("new")));
	assert_int_equal(buf_put(&buf, "!", 1), -E2BIG);
	buf_done(&buf);
	assert_int_equal(buf_put(&buf, "new", 3), 0);
	assert_true(span_equal(buf_span(&buf), SPAN("new")));
	buf_done(&buf);
}

static void reserved_room_does_not_move_the_bytes(void **state)
{
	cleanup(buf_done) struct buf buf;
	char *data;

	(void)state;
	buf_init(&buf, 5000);
	assert_int_equal(buf_reserve(&buf, 5001), -E2BIG);
	buf_clear(&buf);
	assert_int_equal(buf_reserve(&buf, 5000), 0);
	data = buf.data;
	for (int i = 0; i < 5000; i++)
		assert_int_equal(buf_put_byte(&buf, 'x'), 0);
	assert_ptr_equal(buf.data, data);
}

static void printed_text_is_appended_without_its_nul(void **state)
{
	cleanup(buf_done) struct buf buf;

	(void)state;
	buf_init(&buf, 1000);
	assert_int_equal(buf_printf(&buf, "%s=%d", "tries", 3), 0);
	assert_int_equal(buf_printf(&buf, ";%200d;", 7), 0);
	assert_int_equal(buf.len, 7 + 202);
	assert_memory_equal(buf.data, "tries=3;", 8);
	assert_memory_equal(buf.data + buf.len - 2, "7;", 2);
}

static void printed_text_may_fill_the_buf_to_the_last_byte(void **state)
{
	cleanup(buf_done) struct buf buf;

	(void)state;
	buf_init(&buf, 6);
	assert_int_equal(buf_printf(&buf, "%d", 1234567), -E2BIG);
	assert_int_equal(buf.len, 0);
	buf_clear(&buf);
	assert_int_equal(buf_printf(&buf, "%d", 123456), 0);
	assert_int_equal(buf_printf(&buf, "%s", ""), 0);
	assert_true(span_equal(buf_span(&buf), SPAN("123456")));
	assert_int_equal(buf_printf(&buf, "%d", 7), -E2BIG);
}

static void bytes_that_do_not_fit_leave_no_length_behind(void **state)
{
	cleanup(buf_done) struct buf buf;

	(void)state;
	buf_init(&buf, 5);
	assert_int_equal(buf_put_bytes(&buf, SPAN("12345")), -E2BIG);
	assert_int_equal(buf.len, 0);
	buf_clear(&buf);
	assert_int_equal(buf_put_bytes(&buf, SPAN("1234")), 0);
	assert_true(span_equal(buf_span(&buf),
		SPAN("\x04"
		     "1234")));
}

static void a_uvarint_has_its_known_bytes(void **state)
{
	cleanup(buf_done) struct buf buf;

	(void)state;
	buf_init(&buf, 100);
	assert_int_equal(buf_put_uvarint(&buf, 0), 0);
	assert_int_equal(buf_put_uvarint(&buf, 127), 0);
	assert_int_equal(buf_put_uvarint(&buf, 128), 0);
	assert_int_equal(buf_put_uvarint(&buf, 624485), 0);
	assert_true(span_equal(buf_span(&buf), SPAN("\x00\x7f\x80\x01\xe5\x8e\x26")));
}

static void a_svarint_has_its_known_bytes(void **state)
{
	cleanup(buf_done) struct buf buf;

	(void)state;
	buf_init(&buf, 100);
	assert_int_equal(buf_put_svarint(&buf, 0), 0);
	assert_int_equal(buf_put_svarint(&buf, -1), 0);
	assert_int_equal(buf_put_svarint(&buf, 1), 0);
	assert_int_equal(buf_put_svarint(&buf, -64), 0);
	assert_int_equal(buf_put_svarint(&buf, 64), 0);
	assert_true(span_equal(buf_span(&buf), SPAN("\x00\x01\x02\x7f\x80\x01")));
}

static void the_reader_returns_every_kind_of_value_put(void **state)
{
	cleanup(buf_done) struct buf buf;
	struct reader reader;

	(void)state;
	buf_init(&buf, 100);
	assert_int_equal(buf_put_uvarint(&buf, UINT64_MAX), 0);
	assert_int_equal(buf_put_svarint(&buf, INT64_MIN), 0);
	assert_int_equal(buf_put_svarint(&buf, INT64_MAX), 0);
	assert_int_equal(buf_put_byte(&buf, 0xff), 0);
	assert_int_equal(buf_put_bytes(&buf, SPAN("stint")), 0);
	assert_int_equal(buf_put_bytes(&buf, SPAN("")), 0);

	reader_init(&reader, buf_span(&buf));
	assert_true(reader_uvarint(&reader) == UINT64_MAX);
	assert_true(reader_svarint(&reader) == INT64_MIN);
	assert_true(reader_svarint(&reader) == INT64_MAX);
	assert_int_equal(reader_byte(&reader), 0xff);
	assert_true(span_equal(reader_bytes(&reader), SPAN("stint")));
	assert_true(span_is_empty(reader_bytes(&reader)));
	assert_true(reader_is_done(&reader));
}

static void numbers_of_every_size_come_back(void **state)
{
	cleanup(buf_done) struct buf buf;
	struct reader reader;
	struct rng rng;

	(void)state;
	buf_init(&buf, 100);
	rng_seed(&rng, 1);
	for (int i = 0; i < 20000; i++) {
		uint64_t value = rng_u64(&rng) >> rng_below(&rng, 64);

		buf_clear(&buf);
		assert_int_equal(buf_put_uvarint(&buf, value), 0);
		assert_int_equal(buf_put_svarint(&buf, (int64_t)value), 0);
		reader_init(&reader, buf_span(&buf));
		assert_true(reader_uvarint(&reader) == value);
		assert_true(reader_svarint(&reader) == (int64_t)value);
		assert_true(reader_is_done(&reader));
	}
}

static void assert_uvarint_breaks(struct span bytes)
{
	struct reader reader;

	reader_init(&reader, bytes);
	assert_true(reader_uvarint(&reader) == 0);
	assert_true(reader.broken);
	assert_false(reader_is_done(&reader));
}

static void a_truncated_number_breaks_the_reader(void **state)
{
	(void)state;
	assert_uvarint_breaks(span_of(NULL));
	assert_uvarint_breaks(SPAN("\x80"));
	assert_uvarint_breaks(SPAN("\xff\xff\xff"));
}

static void a_number_past_64_bits_breaks_the_reader(void **state)
{
	(void)state;
	assert_uvarint_breaks(SPAN("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"));
	assert_uvarint_breaks(SPAN("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x00"));
}

static void a_number_not_in_its_shortest_form_breaks_the_reader(void **state)
{
	(void)state;
	assert_uvarint_breaks(SPAN("\x80\x00"));
	assert_uvarint_breaks(SPAN("\xff\x80\x00"));
}

static void bytes_longer_than_the_input_break_the_reader(void **state)
{
	struct reader reader;

	(void)state;
	reader_init(&reader,
		SPAN("\x05"
		     "abcd"));
	assert_true(span_is_empty(reader_bytes(&reader)));
	assert_true(reader.broken);
	reader_init(&reader,
		SPAN("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
		     "abcd"));
	assert_true(span_is_empty(reader_bytes(&reader)));
	assert_true(reader.broken);
}

static void a_broken_reader_stays_broken(void **state)
{
	struct reader reader;

	(void)state;
	reader_init(&reader, SPAN("\x80\x00\x07\x07\x07"));
	reader_uvarint(&reader);
	assert_true(reader.broken);
	assert_int_equal(reader_byte(&reader), 0);
	assert_true(reader_uvarint(&reader) == 0);
	assert_true(reader_svarint(&reader) == 0);
	assert_true(span_is_empty(reader_bytes(&reader)));
	assert_true(reader.broken);
}

static char *text_make(void)
{
	cleanup(free_at) char *dropped = strdup("dropped");
	cleanup(free_at) char *kept = strdup("kept");

	assert_non_null(dropped);
	return take(kept);
}

static void a_taken_pointer_outlives_its_scope(void **state)
{
	cleanup(free_at) char *text = text_make();

	(void)state;
	assert_string_equal(text, "kept");
}

static void a_taken_descriptor_is_no_longer_ours(void **state)
{
	cleanup(close_at) int fd = dup(0);
	cleanup(close_at) int taken = -1;
	int number = fd;

	(void)state;
	taken = take_fd(fd);
	assert_int_equal(fd, -1);
	assert_int_equal(taken, number);
}

static void assert_decimal(uint64_t value)
{
	struct buf buf;
	char expected[32];

	snprintf(expected, sizeof expected, "%" PRIu64, value);
	buf_init(&buf, 64);
	assert_int_equal(buf_put_decimal(&buf, value), 0);
	assert_int_equal(buf.len, strlen(expected));
	assert_memory_equal(buf.data, expected, buf.len);
	buf_done(&buf);
}

static void numbers_are_put_with_all_their_digits(void **state)
{
	struct rng rng;
	uint64_t power = 1;

	(void)state;
	for (int digits = 1; digits <= 20; digits++, power *= 10) {
		assert_decimal(power - 1);
		assert_decimal(power);
		assert_decimal(power + 1);
		assert_decimal(5 * power);
	}
	assert_decimal(UINT64_MAX);
	rng_seed(&rng, 3);
	for (int i = 0; i < 20000; i++)
		assert_decimal(rng_u64(&rng) >> rng_below(&rng, 64));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(puts_append_in_order),
		cmocka_unit_test(a_buf_fills_to_its_maximum_and_not_beyond),
		cmocka_unit_test(after_a_fault_no_put_appends_anything),
		cmocka_unit_test(every_put_that_finds_no_room_is_a_fault_of_the_buf),
		cmocka_unit_test(bytes_that_were_cut_short_cannot_be_had),
		cmocka_unit_test(the_first_fault_is_the_one_that_stays),
		cmocka_unit_test(a_buf_without_memory_keeps_what_it_had_and_takes_no_more),
		cmocka_unit_test(a_buf_that_was_cut_goes_on_without_the_part_that_failed),
		cmocka_unit_test(bytes_are_dropped_from_the_end_but_not_after_a_fault),
		cmocka_unit_test(a_buf_grows_through_many_sizes),
		cmocka_unit_test(a_cleared_buf_keeps_its_memory),
		cmocka_unit_test(a_done_buf_may_be_used_again),
		cmocka_unit_test(reserved_room_does_not_move_the_bytes),
		cmocka_unit_test(printed_text_is_appended_without_its_nul),
		cmocka_unit_test(printed_text_may_fill_the_buf_to_the_last_byte),
		cmocka_unit_test(bytes_that_do_not_fit_leave_no_length_behind),
		cmocka_unit_test(a_uvarint_has_its_known_bytes),
		cmocka_unit_test(a_svarint_has_its_known_bytes),
		cmocka_unit_test(the_reader_returns_every_kind_of_value_put),
		cmocka_unit_test(numbers_of_every_size_come_back),
		cmocka_unit_test(a_truncated_number_breaks_the_reader),
		cmocka_unit_test(a_number_past_64_bits_breaks_the_reader),
		cmocka_unit_test(a_number_not_in_its_shortest_form_breaks_the_reader),
		cmocka_unit_test(bytes_longer_than_the_input_break_the_reader),
		cmocka_unit_test(a_broken_reader_stays_broken),
		cmocka_unit_test(numbers_are_put_with_all_their_digits),
		cmocka_unit_test(a_taken_pointer_outlives_its_scope),
		cmocka_unit_test(a_taken_descriptor_is_no_longer_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
