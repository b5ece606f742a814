/*
 * What people see: text that does no harm to a terminal, and tables that fit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#undef fail /* the command has one of its own */

#include "cli/frame/cli.h"
#include "cli/frame/table.h"
#include "cli/frame/text.h"

static void expect_clean(const char *text, bool utf8, const char *shown)
{
	struct buf out;

	buf_init(&out, 1000);
	assert_int_equal(text_clean(&out, span_of(text), utf8, false), 0);
	buf_put_byte(&out, 0);
	assert_string_equal(out.data, shown);
	buf_done(&out);
}

static void what_would_steer_a_terminal_is_only_shown(void **state)
{
	(void)state;
	expect_clean("plain", true, "plain");
	expect_clean("\033[31mred\007", true, "\xef\xbf\xbd[31mred\xef\xbf\xbd");
	expect_clean("\033[31m", false, "?[31m");
	expect_clean("a\nb\tc\r", true, "a b c");
	expect_clean("\xc2\x9b"
		     "31m",
		true,
		"\xef\xbf\xbd"
		"31m"); /* CSI in one character */
	expect_clean("a\xe2\x80\xae"
		     "b",
		true,
		"a\xef\xbf\xbd"
		"b"); /* writes from right to left */
	expect_clean("\xff\xc0\xaf", true, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* no UTF-8 */
	expect_clean("grün", true, "grün");
	expect_clean("grün", false, "gr?n");
}

static void width_is_counted_in_columns(void **state)
{
	(void)state;
	assert_int_equal(text_width(SPAN("abc")), 3);
	assert_int_equal(text_width(SPAN("grün")), 4);
	assert_int_equal(text_width(SPAN("日本")), 4);
	assert_int_equal(text_width(SPAN("e\xcc\x81")), 1);
}

static void expect_fit(const char *text, size_t width, const char *shown)
{
	struct buf out;

	buf_init(&out, 1000);
	assert_int_equal(text_fit(&out, span_of(text), width, true), 0);
	buf_put_byte(&out, 0);
	assert_string_equal(out.data, shown);
	buf_done(&out);
}

static void what_is_cut_says_so(void **state)
{
	(void)state;
	expect_fit("abcdef", 6, "abcdef");
	expect_fit("abcdef", 4, "abc…");
	expect_fit("日本語", 4, "日…");
	expect_fit("abc", 1, "…");
	expect_fit("abc", 0, "");
}

/* ---- tables ---- */

static const struct column columns[] = {{.name = "ID"}, {.name = "QUEUE", .rank = 1},
	{.name = "N", .right = true, .rank = 2}, {.name = "TITLE", .shrinks = true}};

static void fill(struct table *table)
{
	static const char *const cells[][4] = {
		{"t-1", "demo", "1", "a title that is rather long"}, {"t-10", "ci", "100", "short"}};

	table_init(table, columns, 4, true);
	for (size_t r = 0; r < 2; r++) {
		table_row(table);
		for (size_t c = 0; c < 4; c++)
			table_cell(table, c, span_of(cells[r][c]), PAINT_NONE);
	}
}

static void expect_table(size_t width, const char *shown)
{
	struct term term = {.tty = true, .utf8 = true, .width = width};
	struct table table;
	struct buf out;

	fill(&table);
	buf_init(&out, 10000);
	assert_int_equal(table_put(&out, &table, &term), 0);
	buf_put_byte(&out, 0);
	assert_string_equal(out.data, shown);
	buf_done(&out);
	table_done(&table);
}

static void expect_wrapped(const char *text, size_t width, const char *expected)
{
	struct buf out;

	buf_init(&out, 1 << 10);
	assert_int_equal(text_wrap(&out, span_of(text), width, 0, 2), 0);
	assert_int_equal(buf_put_byte(&out, 0), 0);
	assert_string_equal(out.data, expected);
	buf_done(&out);
}

static void prose_is_broken_between_words_and_hangs(void **state)
{
	(void)state;
	expect_wrapped("one two three", 0, "one two three");
	expect_wrapped("one two three", 13, "one two three");
	expect_wrapped("one two three", 12, "one two\n  three");
	expect_wrapped("see /a/path/that/is/long now", 10, "see\n  /a/path/that/is/long\n  now");
	expect_wrapped("one\ntwo", 20, "one\n  two");
	expect_wrapped("gr\xc3\xbcn two", 8, "gr\xc3\xbcn two");
	expect_wrapped("", 5, "");
}

static void a_table_is_as_wide_as_it_needs(void **state)
{
	(void)state;
	expect_table(0,
		"ID    QUEUE    N  TITLE\n"
		"t-1   demo     1  a title that is rather long\n"
		"t-10  ci     100  short\n");
}

static void a_narrow_terminal_cuts_the_text_first(void **state)
{
	(void)state;
	expect_table(36,
		"ID    QUEUE    N  TITLE\n"
		"t-1   demo     1  a title that is r…\n"
		"t-10  ci     100  short\n");
}

static void then_columns_go_the_least_needed_first(void **state)
{
	(void)state;
	expect_table(26,
		"ID    QUEUE  TITLE\n"
		"t-1   demo   a title tha…\n"
		"t-10  ci     short\n");
	expect_table(20,
		"ID    TITLE\n"
		"t-1   a title tha…\n"
		"t-10  short\n");
}

static void no_line_is_wider_than_the_terminal(void **state)
{
	(void)state;
	for (size_t width = 1; width < 60; width++) {
		struct term term = {.tty = true, .utf8 = true, .width = width};
		struct table table;
		struct buf out;
		fill(&table);
		buf_init(&out, 10000);
		assert_int_equal(table_put(&out, &table, &term), 0);
		const char *line = out.data;
		while (line < out.data + out.len) {
			const char *end = memchr(line, '\n', (size_t)(out.data + out.len - line));
			/* two columns that must stay, and the gap between, take four */
			assert_true(text_width((struct span){line, (size_t)(end - line)}) <=
				(width < 4 ? 4 : width));
			line = end + 1;
		}
		buf_done(&out);
		table_done(&table);
	}
}

static void elsewhere_there_are_tabs_and_nothing_is_cut(void **state)
{
	struct table table;
	struct buf out;

	(void)state;
	fill(&table);
	buf_init(&out, 10000);
	assert_int_equal(table_put_tabs(&out, &table), 0);
	buf_put_byte(&out, 0);
	assert_string_equal(out.data, "t-1\tdemo\t1\ta title that is rather long\nt-10\tci\t100\tshort\n");
	buf_done(&out);
	table_done(&table);
}

/* Whoever follows events for days picks from each of them. */
static void members_that_are_picked_leave_nothing_behind(void **state)
{
	struct cli cli = {.output = OUTPUT_JSON, .fields = "b,c"};
	struct json_complaint complaint;
	yyjson_doc *doc = json_read(SPAN("{\"a\":1,\"b\":[2]}"), &complaint);

	(void)state;
	arena_init(&cli.arena, 1 << 20);
	buf_init(&cli.out, 1 << 20);
	cli_put_value(&cli, yyjson_doc_get_root(doc));
	assert_true(span_equal(buf_span(&cli.out), SPAN("{\"b\":[2],\"c\":null}")));
	assert_int_equal(cli.arena.held, 0);
	yyjson_doc_free(doc);
	buf_done(&cli.out);
	arena_done(&cli.arena);
}

/* The text in pieces: | stands between two. */
static void expect_output(const char *text, bool utf8, bool color, const char *shown)
{
	struct text_output state = {0};
	struct buf out;

	buf_init(&out, 1000);
	for (const char *at = text; *at; at += strspn(at, "|")) {
		size_t len = strcspn(at, "|");
		assert_int_equal(text_put_output(&out, &state, (struct span){at, len}, utf8, color), 0);
		at += len;
	}
	text_end_output(&out, &state, utf8, color);
	buf_put_byte(&out, 0);
	assert_string_equal(out.data, shown);
	buf_done(&out);
}

static void colours_of_a_program_stay_and_end_with_their_line(void **state)
{
	(void)state;
	expect_output("a\033[31mred\033[0m b\n", true, true, "a\033[31mred\033[0m b\n");
	expect_output("\033[1;31mred\nnext\n", true, true, "\033[1;31mred\033[0m\nnext\n");
	expect_output("\033[38:5:9mred", true, true, "\033[38:5:9mred\033[0m");
	expect_output("\033[|3|1mred\033|[m", true, true, "\033[31mred\033[m");
	expect_output("\033[31mred\n\033[mx", true, false, "red\nx");
}

static void nothing_else_of_a_program_steers_a_terminal(void **state)
{
	(void)state;
	expect_output("\033[2Jx\033]0;t\007", true, true, "\u241b[2Jx\u241b]0;t\u241b");
	expect_output("\033[31", true, true, "\u241b[31");
	expect_output("\033\033[1mx", false, true, "?\033[1mx\033[0m");
	expect_output("\033[3\303\274m", true, true, "\u241b[3\303\274m");
	expect_output("\033[3\n1m", true, true, "\u241b[3\n1m");
	expect_output("\302\23331mx\tq\r\n\b", true, true, "\u241b31mx\tq\n\u241b");
	expect_output("\342\200\256x\377", true, true, "\u241bx\u241b");
	expect_output("\033[11111111111111111111111111111111111m", true, true,
		"\u241b[11111111111111111111111111111111111m");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_that_are_picked_leave_nothing_behind),
		cmocka_unit_test(what_would_steer_a_terminal_is_only_shown),
		cmocka_unit_test(colours_of_a_program_stay_and_end_with_their_line),
		cmocka_unit_test(nothing_else_of_a_program_steers_a_terminal),
		cmocka_unit_test(width_is_counted_in_columns),
		cmocka_unit_test(what_is_cut_says_so),
		cmocka_unit_test(prose_is_broken_between_words_and_hangs),
		cmocka_unit_test(a_table_is_as_wide_as_it_needs),
		cmocka_unit_test(a_narrow_terminal_cuts_the_text_first),
		cmocka_unit_test(then_columns_go_the_least_needed_first),
		cmocka_unit_test(no_line_is_wider_than_the_terminal),
		cmocka_unit_test(elsewhere_there_are_tabs_and_nothing_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
