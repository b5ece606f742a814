#include "config/key.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"

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

/* Others read the same files. Whoever gets another top-level key there adds a line. */
static const struct {
	const char *name, *program;
} owners[] = {
	{"executors", "stint-worker"},
	{"landlock", "stint-worker"},
	{"notify", "stint-notify"},
	{"prSweep", "stint-worker"},
	{"queues", "stint-worker"},
	{"roots", "stint-worker"},
	{"workflows", "stintd"},
	{"$schema", "editors"},
};

const char *config_key_owner(const char *name)
{
	for (size_t i = 0; i < sizeof owners / sizeof *owners; i++)
		if (strcmp(owners[i].name, name) == 0)
			return owners[i].program;
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
	const char *best = NULL;
	size_t len = strlen(name);

	if (len >= CONFIG_NAME_MAX)
		return NULL;
	size_t nearest = len / 4 + 2; /* further off it is no slip of the finger */
	for (uint32_t i = 0; i < CONFIG_KEY_COUNT || config_foreign_key(i - CONFIG_KEY_COUNT); i++) {
		const char *known =
			i < CONFIG_KEY_COUNT ? config_keys[i].name : config_foreign_key(i - CONFIG_KEY_COUNT);
		size_t far = suggest_distance(name, known);
		if (far < nearest) {
			nearest = far;
			best = known;
		}
	}
	return best;
}

/* ---- values -------------------------------------------------------------------------------------------- */

static bool next_word(const char **at, struct span *ret_word)
{
	*at += strspn(*at, " ");
	*ret_word = (struct span){*at, strcspn(*at, " ")};
	*at += ret_word->len;
	return ret_word->len > 0;
}

static void put_words(const char *words, struct buf *out)
{
	struct span word;
	const char *before = "one of ";

	while (next_word(&words, &word)) {
		buf_printf(out, "%s\"%.*s\"", before, SPAN_ARGS(word));
		before = ", ";
	}
}

void config_key_put_allowed(enum config_key key, struct buf *out)
{
	const struct config_key_row *row = &config_keys[key];

	switch (row->type) {
	case CONFIG_TEXT:
		buf_printf(out, "a text: %s", row->of);
		return;
	case CONFIG_NUMBER:
		buf_printf(out, "a whole number%s%s from %" PRId64 " to %" PRId64, row->of[0] ? " of " : "",
			row->of, row->least, row->most);
		return;
	case CONFIG_BOOL:
		buf_put_span(out, SPAN("true or false"));
		return;
	case CONFIG_CHOICE:
		put_words(row->of, out);
		return;
	}
}

static bool parse_number(const struct config_key_row *row, const char *text, int64_t *ret_number)
{
	char *end;
	bool digits = text[strspn(text, "-0123456789")] == 0; /* no blanks, no plus, no hexadecimal */

	errno = 0;
	long long number = strtoll(text, &end, 10);
	if (!digits || errno || end == text || *end || number < row->least || number > row->most)
		return false;
	*ret_number = number;
	return true;
}

static bool parse_choice(const char *words, const char *text, int64_t *ret_number)
{
	struct span word;

	for (int64_t place = 0; next_word(&words, &word); place++) {
		if (span_equal(word, span_of(text))) {
			*ret_number = place;
			return true;
		}
	}
	return false;
}

/* Paths and addresses have no control characters, and terminals do not like them. */
static bool parse_text(const struct config_key_row *row, const char *text)
{
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return false;
	return (int64_t)len >= row->least && (int64_t)len <= row->most;
}

bool config_key_parse(enum config_key key, const char *text, int64_t *ret_number)
{
	const struct config_key_row *row = &config_keys[key];

	switch (row->type) {
	case CONFIG_TEXT:
		*ret_number = 0;
		return parse_text(row, text);
	case CONFIG_NUMBER:
		return parse_number(row, text, ret_number);
	case CONFIG_BOOL:
		return parse_choice("false true", text, ret_number);
	case CONFIG_CHOICE:
		return parse_choice(row->of, text, ret_number);
	}
	return false;
}
