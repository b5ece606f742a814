/*
 * The reader of typed values. Whatever the text says, what is stored is within its bounds, whatever is wrong is told
 * without control characters, and a text that is told as good was stored. The same text as a word is read without harm.
 */
#include <assert.h>
#include <string.h>

#include "base/utf8.h"
#include "fuzz/fuzz.h"
#include "wire/form/form.h"

struct inner {
	int64_t number;
	struct span name;
};

struct all {
	struct span id, name, text;
	struct name_list names;
	const char *string;
	const char *const *strings;
	const char *csv;
	int choice;
	int64_t number;
	uint64_t milli, decimal;
	bool on;
	struct span value;
	struct inner inner;
};

static const struct field inner_fields[] = {
	FIELD(inner, number, "number", FIELD_INT, .min = -5, .max = 5),
	FIELD_MUST_BE(inner, name, "name", FIELD_NAME, .max = 20),
};

static const struct field fields[] = {
	FIELD(all, id, "id", FIELD_ID),
	FIELD(all, name, "name", FIELD_NAME),
	FIELD(all, text, "text", FIELD_TEXT, .max = 30),
	FIELD(all, names, "names", FIELD_NAMES),
	FIELD(all, string, "string", FIELD_STRING, .min = 1, .max = 30),
	FIELD(all, strings, "strings", FIELD_STRINGS, .min = 1, .max = 5),
	FIELD(all, csv, "csv", FIELD_CSV, .words = "ready|pending"),
	FIELD(all, choice, "choice", FIELD_CHOICE, .words = "low|medium|high"),
	FIELD(all, number, "number", FIELD_INT, .min = 1, .max = 1000),
	FIELD(all, milli, "milli", FIELD_MILLI, .min = 1, .max = 5000),
	FIELD(all, on, "on", FIELD_BOOL),
	FIELD(all, decimal, "decimal", FIELD_DECIMAL),
	FIELD(all, value, "value", FIELD_VALUE),
	FIELD(all, inner, "inner", FIELD_GROUP, .fields = inner_fields, .field_count = 2),
};

enum { FIELD_COUNT = sizeof fields / sizeof *fields };

static void expect_plain(const char *text)
{
	for (const char *at = text; *at; at++)
		assert((unsigned char)*at >= ' ' && *at != 0x7f);
}

static void note(struct form *form, const char *name, const char *message)
{
	(void)form;
	expect_plain(name);
	expect_plain(message);
	assert(message[0]);
	assert(strlen(message) < FORM_MESSAGE_MAX);
}

static void expect_bounds(const struct all *all)
{
	assert(all->id.len <= FORM_ID_MAX);
	assert(all->name.len == 0 || text_is_name(all->name, FORM_NAME_MAX));
	assert(all->text.len <= 30);
	assert(all->names.count <= FORM_LIST_MAX);
	assert(!all->string || strlen(all->string) <= 30);
	for (size_t i = 0; all->strings && all->strings[i]; i++)
		assert(i < 5);
	assert(all->choice >= 0);
	assert(all->choice < 3);
	assert(all->number >= 0);
	assert(all->number <= 1000);
	assert(all->milli <= 5000);
	assert(all->inner.number >= -5);
	assert(all->inner.number <= 5);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = {(const char *)data, size};
	struct json_complaint complaint;
	struct all all = {0};
	struct arena arena;
	struct form form;
	struct span word;

	arena_init(&arena, 4 << 20);
	form_start(&form, &arena);
	form.note = note;
	yyjson_doc *doc = json_read_in(&arena, text, &complaint);
	if (doc && yyjson_is_obj(yyjson_doc_get_root(doc)))
		form_read(&form, yyjson_doc_get_root(doc), fields, FIELD_COUNT, &all);
	expect_bounds(&all);
	assert(!form.path);
	for (size_t i = 0; i < FIELD_COUNT && arena_copy(&arena, text, &word) == 0; i++) {
		uint32_t before = form.error_count;
		bool good = form_take_word(&form, &fields[i], word.data, &all);
		assert(good || form.fault < 0 || form.error_count > before);
		expect_bounds(&all);
	}
	form_done(&form);
	arena_done(&arena);
	return 0;
}
