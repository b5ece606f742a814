/* Frames: length and bytes, in whatever pieces they come. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/take.h"
#include "wire/frame.h"

static struct buf stream_of(const char *const *texts)
{
	struct buf out;

	buf_init(&out, 1 << 20);
	for (size_t i = 0; texts[i]; i++)
		assert_int_equal(frame_put(&out, span_of(texts[i])), 0);
	return out;
}

static const char *const three[] = {"{\"a\":1}", "", "the third, which is longer than the others", NULL};

/* Feeds it in pieces of `first`, then `piece` bytes; counts the frames and compares each. */
static size_t feed(struct span all, size_t first, size_t piece, const char *const *expected)
{
	struct frame_reader reader;
	size_t at = 0, seen = 0, want = first;

	frame_reader_init(&reader);
	while (at < all.len) {
		struct span part = {all.data + at, want < all.len - at ? want : all.len - at};
		while (part.len > 0) {
			struct span frame;
			size_t used;
			int r = frame_read(&reader, part, &used, &frame);
			assert_in_range(r, 0, 1);
			if (r == 1)
				assert_true(span_equal(frame, span_of(expected[seen++])));
			else
				assert_int_equal(used, part.len);
			part.data += used;
			part.len -= used;
			at += used;
		}
		want = piece;
	}
	assert_false(frame_is_open(&reader));
	frame_reader_done(&reader);
	return seen;
}

static void frames_come_out_whole_wherever_they_are_cut(void **state)
{
	cleanup(buf_done) struct buf all = stream_of(three);

	(void)state;
	for (size_t cut = 1; cut < all.len; cut++)
		assert_int_equal(feed(buf_span(&all), cut, all.len, three), 3);
	for (size_t piece = 1; piece <= all.len; piece++)
		assert_int_equal(feed(buf_span(&all), piece, piece, three), 3);
}

static void the_head_is_big_endian(void **state)
{
	cleanup(buf_done) struct buf out;

	(void)state;
	buf_init(&out, 1 << 20);
	char body[0x10203] = {0};
	assert_int_equal(frame_put(&out, (struct span){body, sizeof body}), 0);
	assert_memory_equal(out.data, "\x00\x01\x02\x03", 4);
}

/* Workers that read their standard input as text lose such a byte. */
static void no_byte_of_a_length_that_is_written_is_above_127(void **state)
{
	cleanup(buf_done) struct buf body, out;
	static const size_t lengths[] = {0, 1, 127, 128, 200, 255, 256, 384, 32767, 32768, 33000, 65535,
		98304, 0xff7f7f, FRAME_BYTES_MAX - 1, FRAME_BYTES_MAX};

	(void)state;
	buf_init(&body, FRAME_BYTES_MAX);
	buf_init(&out, 2 << 20);
	assert_int_equal(buf_reserve(&body, FRAME_BYTES_MAX), 0);
	memset(body.data, 'x', FRAME_BYTES_MAX);
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		body.len = lengths[i] < FRAME_BYTES_MAX ? lengths[i] : FRAME_BYTES_MAX;
		buf_clear(&out);
		assert_int_equal(frame_put(&out, buf_span(&body)), 0);
		size_t length = frame_padded_length(body.len);
		assert_int_equal(out.len, FRAME_HEAD_BYTES + length);
		assert_in_range(length, body.len, FRAME_BYTES_MAX);
		for (int at = 0; at < FRAME_HEAD_BYTES; at++)
			assert_true((unsigned char)out.data[at] < 0x80);
		for (size_t at = body.len; at < length; at++)
			assert_int_equal(out.data[FRAME_HEAD_BYTES + at], ' ');
	}
}

static void a_length_over_the_cap_breaks_the_stream_for_good(void **state)
{
	static const char *const heads[] = {
		"\xff\xff\xff\xff", "\x00\x10\x00\x01", "\x80\x00\x00\x00", "log "};
	struct frame_reader reader;
	struct span frame;
	size_t used;

	(void)state;
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		frame_reader_init(&reader);
		assert_int_equal(frame_read(&reader, (struct span){heads[i], 4}, &used, &frame), -EMSGSIZE);
		assert_null(reader.body.data);
		assert_int_equal(frame_read(&reader, SPAN("\0\0\0\0"), &used, &frame), -EMSGSIZE);
		frame_reader_done(&reader);
	}
}

static void a_frame_of_just_the_cap_is_read_and_one_byte_more_is_not_written(void **state)
{
	cleanup(buf_done) struct buf body, out;
	struct frame_reader reader;
	struct span frame;
	size_t used;

	(void)state;
	buf_init(&body, 2 << 20);
	buf_init(&out, 2 << 20);
	assert_int_equal(buf_reserve(&body, FRAME_BYTES_MAX + 1), 0);
	memset(body.data, 'x', FRAME_BYTES_MAX + 1);
	body.len = FRAME_BYTES_MAX;
	assert_int_equal(frame_put(&out, buf_span(&body)), 0);
	frame_reader_init(&reader);
	assert_int_equal(frame_read(&reader, buf_span(&out), &used, &frame), 1);
	assert_int_equal(frame.len, FRAME_BYTES_MAX);
	frame_reader_done(&reader);
	body.len++;
	assert_int_equal(frame_put(&out, buf_span(&body)), -EMSGSIZE);
	assert_int_equal(out.len, FRAME_BYTES_MAX + 4);
}

static void an_announced_length_costs_no_memory(void **state)
{
	struct frame_reader reader;
	struct span frame;
	size_t used;

	(void)state;
	frame_reader_init(&reader);
	assert_int_equal(frame_read(&reader,
				 SPAN("\x00\x10\x00\x00"
				      "ab"),
				 &used, &frame),
		0);
	assert_true(reader.body.cap <= 4096);
	frame_reader_done(&reader);
}

static void an_end_in_the_middle_is_seen(void **state)
{
	cleanup(buf_done) struct buf all = stream_of(three);
	struct frame_reader reader;
	struct span frame;
	size_t used;

	(void)state;
	for (size_t cut = 0; cut < 4 + 7; cut++) {
		frame_reader_init(&reader);
		assert_int_equal(frame_read(&reader, (struct span){all.data, cut}, &used, &frame), 0);
		assert_int_equal(frame_is_open(&reader), cut > 0);
		frame_reader_done(&reader);
	}
}

static void the_memory_of_a_large_frame_is_given_back_before_the_next(void **state)
{
	cleanup(buf_done) struct buf body, out;
	struct frame_reader reader;
	struct span frame, rest;
	size_t used;

	(void)state;
	buf_init(&body, FRAME_BYTES_MAX);
	buf_init(&out, 2 << 20);
	assert_int_equal(buf_reserve(&body, 100000), 0);
	memset(body.data, 'x', 100000);
	body.len = 100000;
	assert_int_equal(frame_put(&out, buf_span(&body)), 0);
	assert_int_equal(frame_put(&out, SPAN("ab")), 0);
	frame_reader_init(&reader);
	assert_int_equal(frame_read(&reader, buf_span(&out), &used, &frame), 1);
	rest = (struct span){out.data + used, out.len - used};
	assert_int_equal(frame_read(&reader, rest, &used, &frame), 1);
	assert_true(span_equal(frame, SPAN("ab")));
	assert_true(reader.body.cap < 100000);
	frame_reader_done(&reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_come_out_whole_wherever_they_are_cut),
		cmocka_unit_test(the_head_is_big_endian),
		cmocka_unit_test(no_byte_of_a_length_that_is_written_is_above_127),
		cmocka_unit_test(a_length_over_the_cap_breaks_the_stream_for_good),
		cmocka_unit_test(a_frame_of_just_the_cap_is_read_and_one_byte_more_is_not_written),
		cmocka_unit_test(an_announced_length_costs_no_memory),
		cmocka_unit_test(an_end_in_the_middle_is_seen),
		cmocka_unit_test(the_memory_of_a_large_frame_is_given_back_before_the_next),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
