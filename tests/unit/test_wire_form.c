/*
 * The reader of typed values: what each kind accepts, and every sentence that it says about the rest.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/take.h"
#include "wire/form/form.h"

/* ---- a machine without memory ---- */

static int mallocs_left = -1; /* -1: every one succeeds */

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	if (mallocs_left == 0)
		return NULL;
	mallocs_left -= mallocs_left > 0;
	return __real_malloc(bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
	if (mallocs_left == 0)
		return NULL;
	mallocs_left -= mallocs_left > 0;
	return __real_realloc(old, bytes);
}

/* ---- a struct with everything ---- */

enum colour { COLOUR_RED, COLOUR_GREEN };

struct inner {
	int64_t number;
	const char *text;
};

struct everything {
	struct span id, name, text, value, object, list;
	struct name_list names;
	const char *string, *path, *mode, *csv;
	const char *const *strings;
	enum colour colour;
	int64_t number;
	uint64_t milli, decimal;
	bool on, said;
	yyjson_val *node;
	struct inner inner;
};

static bool is_path(const char *text)
{
	return text[0] == '/';
}

static bool take_even(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	int64_t number;

	if (node_int(value, &number) < 0 || number % 2 != 0)
		return form_wrong(form, field, value);
	*(int64_t *)at = number;
	return true;
}

static const struct field inner_fields[] = {
	FIELD(inner, number, "number", FIELD_INT, .min = 1, .max = 5),
	FIELD(inner, text, "text", FIELD_STRING, .min = 1),
};

static const struct field fields[] = {
	FIELD(everything, id, "id", FIELD_ID),
	FIELD(everything, name, "name", FIELD_NAME, .max = 10),
	FIELD(everything, text, "text", FIELD_TEXT, .max = 10),
	FIELD(everything, names, "names", FIELD_NAMES, .max = 10),
	FIELD(everything, string, "string", FIELD_STRING, .min = 1, .max = 3),
	FIELD(everything, path, "path", FIELD_STRING, .accepts = is_path, .allowed = "an absolute path"),
	FIELD(everything, path, "secret", FIELD_STRING, .accepts = is_path, .secret = true,
		.allowed = "an absolute path"),
	FIELD(everything, mode, "mode", FIELD_STRING, .words = "slow|fast", .flag = "--mode"),
	FIELD(everything, strings, "strings", FIELD_STRINGS, .min = 1, .max = 2, .flag = "--strings"),
	FIELD(everything, csv, "csv", FIELD_CSV, .min = 1, .words = "a|b", .flag = "--csv"),
	FIELD(everything, colour, "colour", FIELD_CHOICE, .words = "red green"),
	FIELD(everything, number, "number", FIELD_INT, .min = 1, .max = 1000, .unit = "ms",
		.flag = "--number"),
	FIELD(everything, milli, "cpus", FIELD_MILLI, .min = 10, .max = 4096000),
	FIELD(everything, on, "on", FIELD_BOOL, .flag = "--on"),
	FIELD(everything, decimal, "fence", FIELD_DECIMAL),
	FIELD(everything, value, "value", FIELD_VALUE),
	FIELD(everything, object, "object", FIELD_OBJECT),
	FIELD(everything, list, "list", FIELD_LIST),
	FIELD(everything, node, "node", FIELD_NODE),
	FIELD(everything, inner, "inner", FIELD_GROUP, .fields = inner_fields, .field_count = 2),
	FIELD(everything, number, "even", FIELD_BY, .by = take_even, .allowed = "an even number"),
	{.name = "",
		.flag = "--only-a-flag",
		.kind = FIELD_BOOL,
		.bare = true,
		.at = offsetof(struct everything, said)},
};

struct world {
	struct arena arena;
	struct form form;
	yyjson_doc *doc;
	struct everything got;
	uint64_t given;
	char told[4096];
};

static void tell(struct form *form, const char *name, const char *message)
{
	struct world *world = form->context;
	size_t len = strlen(world->told);

	snprintf(world->told + len, sizeof world->told - len, "%s%s %s", len > 0 ? "\n" : "", name, message);
}

static struct world *world_of(void **state)
{
	return *state;
}

static void begin(struct world *w)
{
	form_done(&w->form);
	arena_reset(&w->arena);
	form_start(&w->form, &w->arena);
	w->form.note = tell;
	w->form.context = w;
	w->got = (struct everything){0};
	w->told[0] = 0;
}

static void read_text(struct world *w, const char *text)
{
	struct json_complaint complaint;

	begin(w);
	w->doc = json_read_in(&w->arena, span_of(text), &complaint);
	assert_non_null(w->doc);
	w->form.root = yyjson_doc_get_root(w->doc);
	w->given = form_read(&w->form, w->form.root, FIELDS(fields), &w->got);
}

static void expect_good(struct world *w, const char *text)
{
	read_text(w, text);
	assert_string_equal(w->told, "");
	assert_int_equal(w->form.error_count, 0);
}

static void expect_told(struct world *w, const char *text, const char *told)
{
	read_text(w, text);
	assert_string_equal(w->told, told);
	assert_int_not_equal(w->form.error_count, 0);
}

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof *w);

	arena_init(&w->arena, 1 << 20);
	form_start(&w->form, &w->arena);
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	form_done(&w->form);
	arena_done(&w->arena);
	free(w);
	return 0;
}

/* ---- what is accepted ---- */

static void values_go_to_the_places_that_the_table_names(void **state)
{
	struct world *w = world_of(state);

	expect_good(w,
		"{\"id\":\"t-1\",\"name\":\"dev team\",\"text\":\"\",\"names\":[\"a\",\"b\"],\"colour\":\"green\","
		"\"number\":7.0,\"cpus\":0.5,\"on\":true,\"fence\":\"18446744073709551615\",\"value\":null,"
		"\"object\":{\"a\":1},\"list\":[1],\"node\":7,\"inner\":{\"number\":5,\"text\":\"x\"}}");
	assert_true(span_is(w->got.id, "t-1"));
	assert_true(span_is(w->got.name, "dev team"));
	assert_int_equal(w->got.names.count, 2);
	assert_true(span_is(w->got.names.items[1], "b"));
	assert_int_equal(w->got.colour, COLOUR_GREEN);
	assert_int_equal(w->got.number, 7);
	assert_int_equal(w->got.milli, 500);
	assert_true(w->got.on);
	assert_true(w->got.decimal == UINT64_MAX);
	assert_true(span_is(w->got.value, "null"));
	assert_true(span_is(w->got.object, "{\"a\":1}"));
	assert_true(span_is(w->got.list, "[1]"));
	assert_int_equal(yyjson_get_int(w->got.node), 7);
	assert_int_equal(w->got.inner.number, 5);
	assert_string_equal(w->got.inner.text, "x");
}

static void strings_are_kept_in_the_arena(void **state)
{
	struct world *w = world_of(state);

	expect_good(w,
		"{\"string\":\"abc\",\"path\":\"/x\",\"mode\":\"fast\",\"strings\":[\"a\",\"\"],\"csv\":[\"a\",\"b\"],\"even\":4}");
	memset(w->doc->str_pool, 'x', 20); /* the document is gone */
	assert_string_equal(w->got.string, "abc");
	assert_string_equal(w->got.mode, "fast");
	assert_string_equal(w->got.strings[0], "a");
	assert_string_equal(w->got.strings[1], "");
	assert_null(w->got.strings[2]);
	assert_string_equal(w->got.csv, "a,b");
	assert_int_equal(w->got.number, 4);
}

static void a_null_is_no_value_unless_it_is_wrong(void **state)
{
	struct world *w = world_of(state);

	expect_good(w, "{\"id\":null,\"number\":null}");
	assert_int_equal(w->given, 0);
	begin(w);
	w->form.null_is_wrong = true;
	form_read(&w->form, w->form.root = yyjson_doc_get_root(w->doc), fields, 0, &w->got);
	struct json_complaint complaint;
	yyjson_doc *doc = json_read_in(&w->arena, SPAN("{\"on\":null}"), &complaint);
	w->told[0] = 0;
	form_read(&w->form, yyjson_doc_get_root(doc), FIELDS(fields), &w->got);
	assert_string_equal(w->told, "on must be true or false; it is null");
}

static void bounds_themselves_are_accepted(void **state)
{
	struct world *w = world_of(state);

	expect_good(w, "{\"number\":1,\"cpus\":0.01,\"text\":\"0123456789\",\"names\":[]}");
	expect_good(w, "{\"number\":1000,\"cpus\":4096,\"string\":\"abc\"}");
	assert_int_equal(w->given, 1u << 4 | 1u << 11 | 1u << 12);
}

/* ---- what is said ---- */

static void a_wrong_value_is_told_with_what_is_allowed(void **state)
{
	static const struct {
		const char *text, *told;
	} cases[] = {
		{"{\"id\":\"-x\"}",
			"id must be 1 to 128 letters, digits, '.', '_', ':' or '-', the first a letter or digit; it is \"-x\""},
		{"{\"name\":\"\"}",
			"name must be a string of 1 to 10 bytes without control characters; it is \"\""},
		{"{\"name\":7}",
			"name must be a string of 1 to 10 bytes without control characters; it is 7"},
		{"{\"text\":\"0123456789a\"}",
			"text must be a string of at most 10 bytes; it is \"0123456789a\""},
		{"{\"names\":\"a\"}",
			"names must be a list of at most 100 strings of 1 to 10 bytes without control characters; it is \"a\""},
		{"{\"names\":[\"a\",{}]}",
			"names must be a list of at most 100 strings of 1 to 10 bytes without control characters; [1] is an object"},
		{"{\"string\":\"abcd\"}", "string must be a string of 1 to 3 bytes; it is \"abcd\""},
		{"{\"string\":\"a\\u0000b\"}", "string must be a string of 1 to 3 bytes; it is \"a?b\""},
		{"{\"path\":\"x\"}", "path must be an absolute path; it is \"x\""},
		{"{\"secret\":\"x\"}", "secret must be an absolute path"},
		{"{\"mode\":\"medium\"}", "mode must be \"slow\" or \"fast\"; it is \"medium\""},
		{"{\"strings\":[]}", "strings must be a list of 1 to 2 strings; it is an empty list"},
		{"{\"csv\":[\"a\",\"c\"]}",
			"csv must be a list of one or more of \"a\" and \"b\"; [1] is \"c\""},
		{"{\"colour\":1.5}", "colour must be \"red\" or \"green\"; it is 1.5"},
		{"{\"number\":0}", "number must be a whole number of ms from 1 to 1000; it is 0"},
		{"{\"number\":1001}", "number must be a whole number of ms from 1 to 1000; it is 1001"},
		{"{\"number\":1.5}", "number must be a whole number of ms from 1 to 1000; it is 1.5"},
		{"{\"number\":123456789012345678901}",
			"number must be a whole number of ms from 1 to 1000; it is 123456789012345678901"},
		{"{\"cpus\":0.001}", "cpus must be a number from 0.01 to 4096; it is 0.001"},
		{"{\"cpus\":\"1\"}", "cpus must be a number from 0.01 to 4096; it is \"1\""},
		{"{\"on\":1}", "on must be true or false; it is 1"},
		{"{\"fence\":7}", "fence must be the string of digits that was given out; it is 7"},
		{"{\"fence\":\"18446744073709551616\"}",
			"fence must be the string of digits that was given out; it is \"18446744073709551616\""},
		{"{\"object\":[]}", "object must be an object; it is an empty list"},
		{"{\"list\":{}}", "list must be a list of at most 100 values; it is an object"},
		{"{\"inner\":7}", "inner must be an object; it is 7"},
		{"{\"inner\":{\"number\":6}}", "inner.number must be a whole number from 1 to 5; it is 6"},
		{"{\"even\":3}", "even must be an even number; it is 3"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		expect_told(world_of(state), cases[i].text, cases[i].told);
}

static void everything_that_is_wrong_is_told_at_once(void **state)
{
	expect_told(world_of(state), "{\"number\":0,\"good\":1,\"on\":1}",
		"number must be a whole number of ms from 1 to 1000; it is 0\n"
		"good is not a known field; known are id, name, text, names, string, path, secret, mode, strings, csv, "
		"colour, number, cpus, on, fence, value, object, list, node, inner and even\n"
		"on must be true or false; it is 1");
}

static void an_unknown_name_is_refused_with_the_nearest_known_one(void **state)
{
	struct world *w = world_of(state);

	expect_told(w, "{\"numbr\":1}", "numbr is not a known field; did you mean number?");
	expect_told(w, "{\"inner\":{\"txet\":1}}", "inner.txet is not a known field; did you mean text?");
	expect_told(w, "{\"colour\\u001b\":1}", "colour? is not a known field; did you mean colour?");
	read_text(w, "{}");
	w->form.tolerant = true;
	struct json_complaint complaint;
	yyjson_doc *doc = json_read_in(&w->arena, SPAN("{\"numbr\":1}"), &complaint);
	form_read(&w->form, yyjson_doc_get_root(doc), FIELDS(fields), &w->got);
	assert_string_equal(w->told, "");
}

static void a_required_field_that_is_missing_is_told(void **state)
{
	static const struct field must[] = {FIELD_MUST_BE(everything, number, "number", FIELD_INT, .max = 1)};
	struct world *w = world_of(state);

	read_text(w, "{\"inner\":{}}");
	form_read_inner(&w->form, "task", w->form.root, FIELDS(must), &w->got);
	assert_string_equal(
		w->told, "task.inner is not a known field; the known one is number\ntask.number is required");
	w->told[0] = 0; /* a value that is wrong is not missing as well */
	struct json_complaint complaint;
	yyjson_doc *doc = json_read_in(&w->arena, SPAN("{\"number\":\"x\"}"), &complaint);
	form_read(&w->form, yyjson_doc_get_root(doc), FIELDS(must), &w->got);
	assert_string_equal(w->told, "number must be a whole number from 0 to 1; it is \"x\"");
}

static void a_long_text_is_cut_between_two_characters(void **state)
{
	struct world *w = world_of(state);
	char text[500] = "{\"string\":\"x", told[500] = "string must be a string of 1 to 3 bytes; it is \"x";

	for (int i = 0; i < 60; i++)
		strcat(text, "\xc3\xa4");
	strcat(text, "\"}");
	for (int i = 0; i < 49; i++)
		strcat(told, "\xc3\xa4");
	strcat(told, "…\" (121 bytes)");
	expect_told(w, text, told);
}

static void an_error_has_the_place_of_its_key(void **state)
{
	struct world *w = world_of(state);

	read_text(w, "{\"inner\":\n{\"number\":9}}");
	assert_null(w->form.place);
	assert_null(w->form.path);
}

static void errors_without_a_listener_are_collected_as_json(void **state)
{
	struct world *w = world_of(state);
	struct form_path path;

	begin(w);
	w->form.note = NULL;
	form_enter(&w->form, &path, SPAN("items"), 3);
	form_error(&w->form, "a", "is %s", "\"bad\"");
	form_error(&w->form, "", "must be an object");
	form_leave(&w->form);
	assert_int_equal(buf_put_byte(&w->form.errors, 0), 0);
	assert_string_equal(w->form.errors.data,
		"{\"field\":\"items[3].a\",\"message\":\"is \\\"bad\\\"\"},{\"field\":\"items[3]\",\"message\":\"must be an object\"}");
}

static void errors_beyond_the_limit_are_counted_and_not_told(void **state)
{
	struct world *w = world_of(state);

	begin(w);
	for (int i = 0; i < FORM_ERRORS_MAX + 5; i++) {
		w->told[0] = 0;
		form_error(&w->form, "a", "is wrong");
	}
	assert_string_equal(w->told, "");
	assert_int_equal(w->form.error_count, FORM_ERRORS_MAX + 5);
}

static void a_path_that_is_too_long_is_cut(void **state)
{
	struct world *w = world_of(state);
	struct form_path paths[30];
	char name[200];

	begin(w);
	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = 0;
	for (int i = 0; i < 30; i++)
		form_enter(&w->form, &paths[i], span_of(name), -1);
	form_error(&w->form, "a", "is wrong");
	assert_int_equal(w->form.error_count, 1);
	assert_in_range(strlen(w->told), 1000, 1100);
	for (int i = 0; i < 30; i++)
		form_leave(&w->form);
	assert_null(w->form.path);
}

/* ---- objects of names ---- */

static void take_named(struct form *form, struct span name, yyjson_val *value, void *into)
{
	struct inner *inner = into;

	if (span_is(name, "bad"))
		form_error(form, "", "is not a good name");
	else
		form_read(form, value, inner_fields, 2, inner);
}

static void members_by_name_have_it_in_their_path(void **state)
{
	struct world *w = world_of(state);
	struct inner inner = {0};

	read_text(w, "{\"object\":{}}");
	struct json_complaint complaint;
	yyjson_doc *doc = json_read_in(
		&w->arena, SPAN("{\"bad\":1,\"ops\":{\"number\":9},\"dev\":{\"number\":3}}"), &complaint);
	form_each(&w->form, "targets", yyjson_doc_get_root(doc), take_named, &inner);
	assert_string_equal(w->told,
		"targets.bad is not a good name\ntargets.ops.number must be a whole number from 1 to 5; it is 9");
	assert_int_equal(inner.number, 3);
	form_each(&w->form, "targets", yyjson_obj_get(yyjson_doc_get_root(doc), "bad"), take_named, &inner);
	assert_non_null(strstr(w->told, "targets must be an object; it is 1"));
}

/* ---- words ---- */

static const struct field *field_named(const char *name)
{
	const struct field *field = fields;

	while (strcmp(field->name, name) != 0)
		field++;
	return field;
}

static void expect_word(struct world *w, const char *field, const char *word, const char *told)
{
	begin(w);
	assert_int_equal(form_take_word(&w->form, field_named(field), word, &w->got), told[0] == 0);
	assert_string_equal(w->told, told);
}

static void words_are_read_by_the_same_table(void **state)
{
	struct world *w = world_of(state);

	expect_word(w, "number", "1000", "");
	assert_int_equal(w->got.number, 1000);
	expect_word(w, "on", "true", "");
	assert_true(w->got.on);
	expect_word(w, "strings", "a,b", "");
	assert_string_equal(w->got.strings[1], "b");
	expect_word(w, "csv", "b,a", "");
	assert_string_equal(w->got.csv, "b,a");
	expect_word(w, "mode", "slow", "");
	assert_string_equal(w->got.mode, "slow");
	expect_word(w, "names", "x", "");
	assert_int_equal(w->got.names.count, 1);
}

static void wrong_words_are_told_in_the_same_way(void **state)
{
	struct world *w = world_of(state);
	static const char *const words[][2] = {{"ten", "\"ten\""}, {"0x10", "\"0x10\""}, {" 7", "\" 7\""},
		{"+7", "\"+7\""}, {"", "\"\""}, {"-", "\"-\""}, {"-1", "-1"},
		{"99999999999999999999", "99999999999999999999"}};
	char told[200];

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		snprintf(told, sizeof told, "--number must be a whole number of ms from 1 to 1000; it is %s",
			words[i][1]);
		expect_word(w, "number", words[i][0], told);
	}
	expect_word(w, "on", "yes", "--on must be true or false; it is \"yes\"");
	expect_word(
		w, "csv", "", "--csv must be a list of one or more of \"a\" and \"b\"; it is an empty list");
	expect_word(w, "csv", "a,", "--csv must be a list of one or more of \"a\" and \"b\"; [1] is \"\"");
	expect_word(w, "strings", "a,b,c", "--strings must be a list of 1 to 2 strings; it is a list of 3");
}

/* ---- memory ---- */

static void a_text_that_is_too_large_for_the_arena_is_no_lack_of_memory(void **state)
{
	struct world *w = world_of(state);
	struct json_complaint complaint;

	read_text(w, "{\"string\":\"abc\",\"names\":[\"a\"],\"value\":[1,2,3]}");
	arena_done(&w->arena);
	arena_init(&w->arena, 2048);
	assert_null(json_read_in(&w->arena,
		SPAN("[1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,"
		     "1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,"
		     "1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0]"),
		&complaint));
	assert_int_equal(complaint.fault, -E2BIG);
	assert_null(json_read_in(&w->arena, SPAN("[1"), &complaint));
	assert_int_equal(complaint.fault, 0);
}

/* Reads everything with the n-th allocation failing. True: nothing failed any more. */
static bool reads_with(struct world *w, int allocations)
{
	static const char text[] =
		"{\"string\":\"abc\",\"names\":[\"a\"],\"value\":[1,2,3],\"strings\":[\"a\"],\"csv\":[\"b\"],\"path\":\"/x\"}";
	struct json_complaint complaint = {0};

	arena_done(&w->arena);
	arena_init(&w->arena, 1 << 20);
	begin(w);
	mallocs_left = allocations;
	yyjson_doc *doc = json_read_in(&w->arena, span_of(text), &complaint);
	if (doc)
		form_read(&w->form, yyjson_doc_get_root(doc), FIELDS(fields), &w->got);
	mallocs_left = -1;
	assert_int_equal(w->form.error_count, 0);
	if (!doc)
		assert_int_equal(complaint.fault, -ENOMEM);
	return doc && w->form.fault == 0;
}

static void a_machine_without_memory_is_no_error_of_the_writer(void **state)
{
	struct world *w = world_of(state);
	int n = 0;

	while (!reads_with(w, n)) {
		assert_true(w->form.fault == -ENOMEM || w->form.fault == 0);
		assert_true(++n < 100);
	}
	assert_true(n > 1);
}

/* A caller that looks at the collected errors alone would take the document for a good one. */
static void an_error_for_which_there_is_no_memory_is_a_fault(void **state)
{
	struct world *w = world_of(state);

	begin(w);
	w->form.note = NULL;
	buf_fail(&w->form.errors, -ENOMEM);
	form_error(&w->form, "title", "must be a text");
	assert_int_equal(w->form.error_count, 1);
	assert_int_equal(w->form.errors.len, 0);
	assert_int_equal(w->form.fault, -ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(values_go_to_the_places_that_the_table_names),
		TEST(strings_are_kept_in_the_arena),
		TEST(a_null_is_no_value_unless_it_is_wrong),
		TEST(bounds_themselves_are_accepted),
		TEST(a_wrong_value_is_told_with_what_is_allowed),
		TEST(everything_that_is_wrong_is_told_at_once),
		TEST(an_unknown_name_is_refused_with_the_nearest_known_one),
		TEST(a_required_field_that_is_missing_is_told),
		TEST(a_long_text_is_cut_between_two_characters),
		TEST(an_error_has_the_place_of_its_key),
		TEST(errors_without_a_listener_are_collected_as_json),
		TEST(errors_beyond_the_limit_are_counted_and_not_told),
		TEST(a_path_that_is_too_long_is_cut),
		TEST(members_by_name_have_it_in_their_path),
		TEST(words_are_read_by_the_same_table),
		TEST(wrong_words_are_told_in_the_same_way),
		TEST(a_text_that_is_too_large_for_the_arena_is_no_lack_of_memory),
		TEST(a_machine_without_memory_is_no_error_of_the_writer),
		TEST(an_error_for_which_there_is_no_memory_is_a_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
