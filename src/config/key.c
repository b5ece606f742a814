#include "config/key.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "wire/form/form.h"

// clang-format off
const struct config_key_row config_keys[CONFIG_KEY_COUNT] = {
#define X(symbol, name, type, of, least, most, fallback, variable, help) \
	[CONFIG_##symbol] = {name, CONFIG_##type, of, least, most, fallback, variable, help},
	CONFIG_KEYS(X)
#undef X
};
// clang-format on

#define X(symbol, name, ...) static_assert(sizeof(name) <= CONFIG_NAME_MAX, name);
CONFIG_KEYS(X)
#undef X

/* Other programs read the same files. A new top-level key of theirs gets a line here. */
static const struct {
	const char *name, *program;
} owners[] = {
	{"executors", "stint-worker"},
	{"landlock", "stint-worker"},
	{"notify", "stint-notify"},
	{"prSweep", "stint-worker"},
	{"prices", "stint-worker"},
	{"queues", "stint-worker"},
	{"roots", "stint-worker"},
	{"workflows", "stintd"},
	{"$schema", "editors"},
};

const char *config_key_owner(const char *name)
{
	for (size_t i = 0; i < sizeof owners / sizeof *owners; i++) {
		if (strcmp(owners[i].name, name) == 0)
			return owners[i].program;
	}
	return NULL;
}

const char *config_foreign_key(uint32_t number)
{
	return number < sizeof owners / sizeof *owners ? owners[number].name : NULL;
}

/* ---- finding ------------------------------------------------------------------------------------------- */

enum config_key config_key_find(const char *name)
{
	int key = 0;

	while (key < CONFIG_KEY_COUNT && strcmp(config_keys[key].name, name) != 0)
		key++;
	return (enum config_key)key;
}

bool config_key_is_group(const char *name)
{
	size_t len = strlen(name);

	for (int key = 0; key < CONFIG_KEY_COUNT; key++)
		if (strncmp(config_keys[key].name, name, len) == 0 && config_keys[key].name[len] == '.')
			return true;
	return false;
}

const char *config_key_like(const char *name)
{
	struct suggestion best = {0};

	for (int key = 0; key < CONFIG_KEY_COUNT; key++)
		suggest_consider(&best, name, config_keys[key].name);
	for (size_t i = 0; i < sizeof owners / sizeof *owners; i++)
		suggest_consider(&best, name, owners[i].name);
	return best.word;
}

/* ---- values -------------------------------------------------------------------------------------------- */

/* A value as it is read: one member is set. */
struct key_value {
	int64_t number;
	int choice;
	bool on;
	const char *text;
};

/* Paths and addresses have no control characters, and terminals do not like them. */
static bool is_plain(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

struct field config_key_field(enum config_key key, char allowed[CONFIG_ALLOWED_BYTES])
{
	const struct config_key_row *row = &config_keys[key];
	struct field field = {.name = row->name, .min = row->least, .max = row->most};

	switch (row->type) {
	case CONFIG_TEXT:
		snprintf(allowed, CONFIG_ALLOWED_BYTES, "a string: %s", row->of);
		field.kind = FIELD_STRING;
		field.at = offsetof(struct key_value, text);
		field.accepts = is_plain;
		field.allowed = allowed;
		break;
	case CONFIG_NUMBER:
		field.kind = FIELD_INT;
		field.unit = row->of[0] ? row->of : NULL;
		break;
	case CONFIG_BOOL:
		field.kind = FIELD_BOOL;
		field.at = offsetof(struct key_value, on);
		break;
	case CONFIG_CHOICE:
		field.kind = FIELD_CHOICE;
		field.at = offsetof(struct key_value, choice);
		field.words = row->of;
		break;
	}
	return field;
}

bool config_key_take(
	enum config_key key, struct form *form, const char *word, yyjson_val *value, int64_t *ret_number)
{
	char allowed[CONFIG_ALLOWED_BYTES];
	const struct field field = config_key_field(key, allowed);
	struct key_value read = {0};
	bool good = word ? form_take_word(form, &field, word, &read) : form_take(form, &field, value, &read);

	assert((read.number != 0) + (read.choice != 0) + read.on <= 1);
	if (good)
		*ret_number = read.number + read.choice + read.on;
	return good;
}

static void ignore(struct form *form, const char *name, const char *message)
{
	(void)form;
	(void)name;
	(void)message;
}

bool config_key_parse(enum config_key key, const char *text, int64_t *ret_number)
{
	struct form form;

	form_start(&form, NULL);
	form.note = ignore;
	return config_key_take(key, &form, text, NULL, ret_number);
}
