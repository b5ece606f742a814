#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "base/take.h"
#include "wire/http/http.h"

static void expect_decoded(struct span text, bool in_query, struct span expected)
{
	cleanup(buf_done) struct buf out;

	buf_init(&out, 100);
	assert_int_equal(buf_put(&out, "=", 1), 0);
	assert_int_equal(http_decode(text, in_query, &out), 0);
	assert_int_equal(out.len, expected.len + 1);
	if (expected.len > 0)
		assert_memory_equal(out.data + 1, expected.data, expected.len);
}

static void expect_refused(struct span text)
{
	cleanup(buf_done) struct buf out;

	buf_init(&out, 100);
	assert_int_equal(buf_put(&out, "=", 1), 0);
	assert_int_equal(http_decode(text, false, &out), -EINVAL);
	assert_int_equal(http_decode(text, true, &out), -EINVAL);
	assert_true(span_equal(buf_span(&out), SPAN("=")));
}

static void escapes_become_bytes(void **state)
{
	(void)state;
	expect_decoded(SPAN("a%20b%2Fc%2f"), false, SPAN("a b/c/"));
	expect_decoded(SPAN("%C3%bc%ff%01"), false, SPAN("\xc3\xbc\xff\x01"));
	expect_decoded(SPAN("%2520"), false, SPAN("%20"));
	expect_decoded(SPAN(""), false, SPAN(""));
	expect_decoded((struct span){0}, true, SPAN(""));
}

static void plus_is_a_space_in_a_query_only(void **state)
{
	(void)state;
	expect_decoded(SPAN("a+b%2B"), true, SPAN("a b+"));
	expect_decoded(SPAN("a+b%2B"), false, SPAN("a+b+"));
}

static void bad_escapes_and_nul_are_refused_and_leave_nothing(void **state)
{
	(void)state;
	expect_refused(SPAN("%"));
	expect_refused(SPAN("a%2"));
	expect_refused(SPAN("a%g0"));
	expect_refused(SPAN("a%0g"));
	expect_refused(SPAN("a%%20"));
	expect_refused(SPAN("a% 20"));
	expect_refused(SPAN("a%00b"));
	expect_refused(SPAN("a\0b"));
	expect_refused(SPAN("%u0041"));
	expect_refused(SPAN("%+1"));
}

static void what_does_not_fit_leaves_nothing(void **state)
{
	cleanup(buf_done) struct buf out;

	(void)state;
	buf_init(&out, 2);
	assert_int_equal(http_decode(SPAN("%61bc"), false, &out), -E2BIG);
	assert_int_equal(out.len, 0);
	assert_int_equal(http_decode(SPAN("%61b"), false, &out), 0);
	assert_int_equal(out.len, 2);
}

/* "name=value|name" for each piece. */
static void expect_walk(struct span query, const char *expected)
{
	cleanup(buf_done) struct buf text;
	struct span name, value;
	size_t at = 0;

	buf_init(&text, 1000);
	while (http_query_next(query, &at, &name, &value)) {
		assert_int_equal(buf_printf(&text, "%.*s", SPAN_ARGS(name)), 0);
		if (value.data)
			assert_int_equal(buf_printf(&text, "=%.*s", SPAN_ARGS(value)), 0);
		assert_int_equal(buf_put_byte(&text, '|'), 0);
	}
	assert_false(http_query_next(query, &at, &name, &value));
	assert_true(at <= query.len);
	assert_int_equal(buf_put_byte(&text, 0), 0);
	assert_string_equal(text.data, expected);
}

static void a_query_is_walked_piece_by_piece(void **state)
{
	(void)state;
	expect_walk(SPAN("a=1&b=2"), "a=1|b=2|");
	expect_walk(SPAN("a=1&a=2&A=3"), "a=1|a=2|A=3|");
	expect_walk(SPAN("a=%26&b=c%3Dd+e"), "a=%26|b=c%3Dd+e|");
}

static void odd_queries_are_walked_too(void **state)
{
	(void)state;
	expect_walk((struct span){0}, "");
	expect_walk(SPAN(""), "");
	expect_walk(SPAN("&"), "");
	expect_walk(SPAN("&&a&&"), "a|");
	expect_walk(SPAN("a="), "a=|");
	expect_walk(SPAN("=a"), "=a|");
	expect_walk(SPAN("="), "=|");
	expect_walk(SPAN("a=b=c&d;e=f"), "a=b=c|d;e=f|");
}

static void a_type_is_accepted_if_it_is_named_with_some_weight(void **state)
{
	static const char type[] = "text/event-stream";

	(void)state;
	assert_true(http_accepts(SPAN("text/event-stream"), type));
	assert_true(http_accepts(SPAN("application/json, TEXT/Event-Stream ; q=0.001"), type));
	assert_true(http_accepts(SPAN("text/event-stream;q=1.000;a=b,*/*"), type));
	assert_true(http_accepts(SPAN("text/event-stream;q=0, text/event-stream"), type));
	assert_false(http_accepts(SPAN("text/event-stream;q=0"), type));
	assert_false(http_accepts(SPAN("text/event-stream; a=b; Q=0.000, */*"), type));
	assert_false(http_accepts(SPAN("x-text/event-stream"), type));
	assert_false(http_accepts(SPAN("text/event-stream-2, text/*"), type));
	assert_false(http_accepts(SPAN(""), type));
	assert_false(http_accepts((struct span){0}, type));
}

static void names_are_encoded_into_a_path(void **state)
{
	cleanup(buf_done) struct buf out;

	(void)state;
	buf_init(&out, 1000);
	assert_int_equal(http_put_path(&out, "/a/", SPAN("azAZ09-._~ /@[`{:\0\x80\xff"), "/log"), 0);
	assert_true(span_equal(buf_span(&out), SPAN("/a/azAZ09-._~%20%2F%40%5B%60%7B%3A%00%80%FF/log")));
}

static void a_parameter_that_is_no_weight_does_not_refuse_a_type(void **state)
{
	(void)state;
	assert_true(http_accepts(SPAN("a/b;flag"), "a/b"));
	assert_true(http_accepts(SPAN("a/b;v=0"), "a/b"));
	assert_true(http_accepts(SPAN("a/b;q="), "a/b"));
	assert_false(http_accepts(SPAN("a/b;q=0."), "a/b"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_type_is_accepted_if_it_is_named_with_some_weight),
		cmocka_unit_test(escapes_become_bytes),
		cmocka_unit_test(plus_is_a_space_in_a_query_only),
		cmocka_unit_test(bad_escapes_and_nul_are_refused_and_leave_nothing),
		cmocka_unit_test(what_does_not_fit_leaves_nothing),
		cmocka_unit_test(a_query_is_walked_piece_by_piece),
		cmocka_unit_test(odd_queries_are_walked_too),
		cmocka_unit_test(names_are_encoded_into_a_path),
		cmocka_unit_test(a_parameter_that_is_no_weight_does_not_refuse_a_type),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
