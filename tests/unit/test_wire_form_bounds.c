/*
 * The reader of typed values at its bounds: the first and the last text that each kind takes, and the sentence of every shape
 * of a field.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/take.h"
#include "wire/form/form.h"

struct taken {
	struct span text;
	struct name_list names;
	const char *string;
	const char *const *strings;
	uint64_t decimal;
	int64_t number;
	yyjson_val *node;
};

struct world {
	struct arena arena;
	struct form form;
	struct taken taken;
};

static int set_up(void **state)
{
	static struct world w;

	arena_init(&w.arena, 1 << 20);
	form_start(&w.form, &w.arena);
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	form_done(&w->form);
	arena_done(&w->arena);
	return 0;
}

static yyjson_val *json_of(struct world *w, const char *text)
{
	struct json_complaint complaint;
	yyjson_doc *doc = json_read_in(&w->arena, span_of(text), &complaint);

	assert_non_null(doc);
	return yyjson_doc_get_root(doc);
}

static bool takes(struct world *w, const struct field *field, const char *json)
{
	return form_take(&w->form, field, json_of(w, json), &w->taken);
}

/* A list of so many strings, or of words after each other. */
static const char *many(size_t count, const char *item, const char *between)
{
	static char text[2000];
	size_t len = 0;

	for (size_t i = 0; i < count; i++)
		len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", i > 0 ? between : "", item);
	return text;
}

static const char *list_of(size_t count)
{
	static char list[2100];

	snprintf(list, sizeof list, "[%s]", many(count, "\"a\"", ","));
	return list;
}

/* ---- what each kind takes ---- */

static void an_id_is_letters_digits_and_four_signs(void **state)
{
	static const char *const bad[] = {
		"", ".a", "a/b", "a@b", "a[b", "a`b", "a{b", "\xc3\xbc", "a b", "a;", "-"};
	char text[FORM_ID_MAX + 2];

	(void)state;
	assert_true(text_is_id(SPAN("azAZ09._:-")));
	assert_true(text_is_id(SPAN("0")));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(text_is_id(span_of(bad[i])));
	memset(text, 'a', sizeof text);
	assert_true(text_is_id((struct span){text, FORM_ID_MAX}));
	assert_false(text_is_id((struct span){text, FORM_ID_MAX + 1}));
}

static void a_name_has_no_control_characters_of_either_kind(void **state)
{
	(void)state;
	assert_true(text_is_name(SPAN("a b\xc3\xbc\xc2\xa0"), 10));
	assert_true(text_is_name(SPAN("\xc2"), 10)); /* cut: whether it is a character is judged elsewhere */
	assert_false(text_is_name(SPAN(""), 10));
	assert_false(text_is_name(SPAN("12345678901"), 10));
	assert_false(text_is_name(SPAN("a\nb"), 10));
	assert_false(text_is_name(SPAN("a\x7f"), 10));
	assert_false(text_is_name(SPAN("a\xc2\x85"), 10));
}

static void a_list_of_names_has_at_most_a_hundred(void **state)
{
	const struct field field = {.name = "f", .kind = FIELD_NAMES, .at = offsetof(struct taken, names)};
	struct world *w = *state;

	assert_true(takes(w, &field, list_of(FORM_LIST_MAX)));
	assert_int_equal(w->taken.names.count, FORM_LIST_MAX);
	assert_false(takes(w, &field, list_of(FORM_LIST_MAX + 1)));
	assert_false(takes(w, &field, "\"a\""));
	assert_false(takes(w, &field, "[7]"));
	assert_int_equal(w->form.error_count, 3);
}

static void a_list_of_strings_keeps_its_bounds(void **state)
{
	const struct field field = {.name = "f",
		.kind = FIELD_STRINGS,
		.min = 1,
		.max = 2,
		.at = offsetof(struct taken, strings)};
	struct world *w = *state;

	assert_true(takes(w, &field, list_of(2)));
	assert_false(takes(w, &field, "[]"));
	assert_false(takes(w, &field, list_of(3)));
	assert_false(takes(w, &field, "{}"));
	assert_false(takes(w, &field, "[null]"));
	assert_false(takes(w, &field, "[\"a\\u0000b\"]")); /* C cannot carry it */
}

static void a_list_of_values_has_at_most_a_hundred(void **state)
{
	const struct field list = {.name = "f", .kind = FIELD_LIST, .at = offsetof(struct taken, text)};
	const struct field object = {.name = "f", .kind = FIELD_OBJECT, .at = offsetof(struct taken, text)};
	struct world *w = *state;

	assert_true(takes(w, &list, list_of(FORM_LIST_MAX)));
	assert_false(takes(w, &list, list_of(FORM_LIST_MAX + 1)));
	assert_false(takes(w, &list, "{}"));
	assert_true(takes(w, &object, "{}"));
	assert_false(takes(w, &object, "[]"));
}

static void a_decimal_is_up_to_twenty_digits_of_64_bits(void **state)
{
	static const char *const bad[] = {"\"\"", "\"18446744073709551616\"", "\"99999999999999999999\"",
		"\"000000000000000000001\"", "\"1x\"", "\"-1\"", "\"1/\"", "7"};
	const struct field field = {
		.name = "f", .kind = FIELD_DECIMAL, .at = offsetof(struct taken, decimal)};
	struct world *w = *state;

	assert_true(takes(w, &field, "\"18446744073709551615\""));
	assert_true(w->taken.decimal == UINT64_MAX);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(takes(w, &field, bad[i]));
}

static void an_integer_may_be_written_with_a_fraction_of_zero(void **state)
{
	struct world *w = *state;
	int64_t number = 0;

	assert_int_equal(node_int(json_of(w, "-7.0"), &number), 0);
	assert_int_equal(number, -7);
	assert_int_equal(node_int(json_of(w, "7.5"), &number), -EINVAL);
	assert_int_equal(node_int(json_of(w, "\"7\""), &number), -EINVAL);
	assert_int_equal(node_int(json_of(w, "1e300"), &number), -ERANGE);
	assert_int_equal(node_int(json_of(w, "-1e300"), &number), -ERANGE);
	assert_int_equal(node_int(json_of(w, "18446744073709551615"), &number), -ERANGE);
	assert_int_equal(number, -7);
}

static void more_words_than_a_list_may_have_are_refused(void **state)
{
	const struct field field = {
		.name = "f", .kind = FIELD_STRINGS, .at = offsetof(struct taken, strings)};
	struct world *w = *state;

	assert_true(form_take_word(&w->form, &field, many(FORM_LIST_MAX, "a", ","), &w->taken));
	assert_false(form_take_word(&w->form, &field, many(FORM_LIST_MAX + 1, "a", ","), &w->taken));
	assert_true(form_take_word(&w->form, &field, "", &w->taken));
	assert_null(w->taken.strings[0]);
}

static void a_member_is_taken_by_the_row_of_its_name(void **state)
{
	const struct field fields[] = {FIELD(taken, number, "number", FIELD_INT, .max = 5)};
	struct world *w = *state;

	assert_true(form_take_member(&w->form, FIELDS(fields), SPAN("number"), json_of(w, "5"), &w->taken));
	assert_int_equal(w->taken.number, 5);
	assert_true(form_take_member(&w->form, FIELDS(fields), SPAN("number"), json_of(w, "6"), &w->taken));
	assert_int_equal(w->form.error_count, 1);
	assert_false(form_take_member(&w->form, FIELDS(fields), SPAN("other"), json_of(w, "6"), &w->taken));
	assert_false(form_take_member(&w->form, FIELDS(fields), SPAN(""), json_of(w, "6"), &w->taken));
}

/* ---- sentences ---- */

static void expect_errors(
	struct world *w, const char *json, const struct field *fields, uint32_t count, const char *errors)
{
	form_read(&w->form, json_of(w, json), fields, count, &w->taken);
	buf_put_byte(&w->form.errors, 0);
	assert_string_equal(w->form.errors.data, errors);
	buf_clear(&w->form.errors);
}

static void a_name_that_belongs_elsewhere_is_refused_in_its_own_words(void **state)
{
	const struct field fields[] = {{.name = "old", .kind = FIELD_REFUSED, .allowed = "is now called new"},
		FIELD(taken, number, "new", FIELD_INT, .max = 5), {.name = "", .kind = FIELD_BOOL}};
	struct world *w = *state;

	expect_errors(
		w, "{\"old\":1}", FIELDS(fields), "{\"field\":\"old\",\"message\":\"is now called new\"}");
	expect_errors(w, "{\"\":1}", FIELDS(fields),
		"{\"field\":\"\",\"message\":\"is not a known field; the known one is new\"}");
	w->form.noun = "key";
	expect_errors(w, "{\"x\":1}", FIELDS(fields),
		"{\"field\":\"x\",\"message\":\"is not a known key; the known one is new\"}");
}

static void an_unknown_name_that_a_terminal_would_act_on_is_told_without_that(void **state)
{
	const struct field fields[] = {FIELD(taken, number, "number", FIELD_INT, .max = 5)};
	struct world *w = *state;

	expect_errors(w, "{\"a\\u007f\\u0085\\u001b\\u00a0\":1}", FIELDS(fields),
		"{\"field\":\"a???\xc2\xa0\",\"message\":\"is not a known field; the known one is number\"}");
}

static void expect_described(struct field field, const char *expected)
{
	char text[200];

	field_describe(&field, text, sizeof text);
	assert_string_equal(text, expected);
}

static void every_shape_of_a_string_has_its_sentence(void **state)
{
	(void)state;
	expect_described((struct field){.kind = FIELD_STRING}, "a string");
	expect_described((struct field){.kind = FIELD_STRING, .min = 1}, "a string");
	expect_described((struct field){.kind = FIELD_STRING, .max = 9}, "a string of at most 9 bytes");
	expect_described(
		(struct field){.kind = FIELD_STRING, .min = 1, .max = 9}, "a string of 1 to 9 bytes");
	expect_described((struct field){.kind = FIELD_TEXT}, "a string of at most 255 bytes");
	expect_described((struct field){.kind = FIELD_CHOICE, .words = "one"}, "\"one\"");
	expect_described((struct field){.kind = FIELD_CHOICE, .words = "one|two|three"},
		"\"one\", \"two\" or \"three\"");
	expect_described((struct field){.kind = FIELD_ID, .max = 9},
		"1 to 9 letters, digits, '.', '_', ':' or '-', the first a letter or digit");
	expect_described(
		(struct field){.kind = FIELD_NAME}, "a string of 1 to 255 bytes without control characters");
}

static void every_shape_of_a_list_has_its_sentence(void **state)
{
	(void)state;
	expect_described((struct field){.kind = FIELD_STRINGS}, "a list of at most 100 strings");
	expect_described(
		(struct field){.kind = FIELD_STRINGS, .min = 1, .max = 3}, "a list of 1 to 3 strings");
	expect_described((struct field){.kind = FIELD_CSV, .words = "a|b"}, "a list of \"a\" and \"b\"");
	expect_described((struct field){.kind = FIELD_NAMES},
		"a list of at most 100 strings of 1 to 255 bytes without control characters");
	expect_described((struct field){.kind = FIELD_LIST}, "a list of at most 100 values");
	expect_described((struct field){.kind = FIELD_INT, .max = 3}, "a whole number from 0 to 3");
	expect_described((struct field){.kind = FIELD_BY}, "another value");
	expect_described((struct field){.kind = FIELD_BY, .allowed = "an even number"}, "an even number");
}

static void what_does_not_fit_into_a_sentence_is_cut(void **state)
{
	const struct field field = {.kind = FIELD_CSV, .words = "a|b"};
	char text[12];

	(void)state;
	field_describe(&field, text, sizeof text);
	assert_string_equal(text, "a list of \"");
}

static void a_value_is_described_by_its_kind(void **state)
{
	static const struct {
		const char *json, *text;
	} values[] = {{"null", "null"}, {"true", "true"}, {"{}", "an object"}, {"[]", "an empty list"},
		{"[1]", "a list of 1"}, {"-7", "-7"}, {"7", "7"}, {"1.5", "1.5"}, {"\"a\"", "\"a\""},
		{"123456789012345678901234567890", "123456789012345678901234567890"}};
	struct world *w = *state;
	char text[200];

	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		form_describe(json_of(w, values[i].json), text, sizeof text);
		assert_string_equal(text, values[i].text);
	}
}

static void errors_that_do_not_fit_are_left_out_whole(void **state)
{
	struct world *w = *state;
	char long_text[900];

	memset(long_text, 'x', sizeof long_text);
	long_text[sizeof long_text - 1] = 0;
	for (int i = 0; i < FORM_ERRORS_MAX; i++)
		form_error(&w->form, long_text, "%s", long_text);
	assert_int_equal(buf_fault(&w->form.errors), 0);
	assert_true(w->form.errors.len > 60000);
	assert_int_equal(w->form.errors.data[w->form.errors.len - 1], '}');
}

static void the_first_lack_of_memory_is_the_one_that_is_told(void **state)
{
	struct world *w = *state;

	assert_false(form_short(&w->form, -E2BIG));
	assert_false(form_short(&w->form, -ENOMEM));
	assert_int_equal(w->form.fault, -E2BIG);
}

/* In an arena of so many bytes. */
static int fault_of(struct world *w, enum field_kind kind, yyjson_val *value, size_t bytes)
{
	const struct field field = {.name = "f", .kind = kind, .max = 100};
	char into[sizeof(struct name_list)];
	struct form form;
	struct arena arena;

	(void)w;
	arena_init(&arena, bytes);
	form_start(&form, &arena);
	bool good =
		value ? form_take(&form, &field, value, into) : form_take_word(&form, &field, "a,b", into);
	assert_int_equal(form.error_count, 0);
	assert_int_equal(good, form.fault == 0);
	form_done(&form);
	arena_done(&arena);
	return form.fault;
}

static void what_is_too_large_for_the_arena_is_not_an_error(void **state)
{
	static const enum field_kind kinds[] = {
		FIELD_NAMES, FIELD_STRINGS, FIELD_CSV, FIELD_STRING, FIELD_VALUE};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		yyjson_val *value = json_of(w, kinds[i] == FIELD_STRING ? "\"a\"" : list_of(9));
		size_t bytes = 0;
		while (fault_of(w, kinds[i], value, bytes) == -E2BIG)
			bytes += 16;
		assert_in_range(bytes, 16, 1000);
		assert_int_equal(fault_of(w, kinds[i], value, bytes), 0);
	}
	assert_int_equal(fault_of(w, FIELD_STRINGS, NULL, 0), -E2BIG);
}

static void a_name_of_a_field_is_told_as_a_terminal_can_show_it(void **state)
{
	static const char step[] = "0123456789012345678901234567890123456789012345678901234567890123456789";
	struct world *w = *state;
	struct form_path paths[16];

	form_error(&w->form, "a\xff", "x");
	for (int i = 0; i < 16; i++)
		form_enter(&w->form, &paths[i], span_of(step), -1);
	form_error(&w->form, "", "y");
	buf_put_byte(&w->form.errors, 0);
	assert_non_null(strstr(w->form.errors.data, "\"a?\""));
	assert_non_null(strstr(w->form.errors.data, "\"message\":\"y\""));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_id_is_letters_digits_and_four_signs),
		TEST(a_name_has_no_control_characters_of_either_kind),
		TEST(a_list_of_names_has_at_most_a_hundred),
		TEST(a_list_of_strings_keeps_its_bounds),
		TEST(a_list_of_values_has_at_most_a_hundred),
		TEST(a_decimal_is_up_to_twenty_digits_of_64_bits),
		TEST(an_integer_may_be_written_with_a_fraction_of_zero),
		TEST(more_words_than_a_list_may_have_are_refused),
		TEST(a_member_is_taken_by_the_row_of_its_name),
		TEST(a_name_that_belongs_elsewhere_is_refused_in_its_own_words),
		TEST(an_unknown_name_that_a_terminal_would_act_on_is_told_without_that),
		TEST(every_shape_of_a_string_has_its_sentence),
		TEST(every_shape_of_a_list_has_its_sentence),
		TEST(what_does_not_fit_into_a_sentence_is_cut),
		TEST(a_value_is_described_by_its_kind),
		TEST(errors_that_do_not_fit_are_left_out_whole),
		TEST(the_first_lack_of_memory_is_the_one_that_is_told),
		TEST(a_name_of_a_field_is_told_as_a_terminal_can_show_it),
		TEST(what_is_too_large_for_the_arena_is_not_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
