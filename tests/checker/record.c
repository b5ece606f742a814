#include "checker/record.h"

#include <assert.h>
#include <string.h>

#include "checker/words.h"

enum type { NUMBER, TEXT };

static const enum type types[KEY_COUNT] = {
#define X(name, text, type) [KEY_##name] = type,
	COLUMNS(X) DETAILS(X)
#undef X
};

/* What is left of a line. */
struct reader {
	const char *at;
	const char *end;
	struct names *names;
	const char *fault; /* the first one */
};

struct field {
	const char *text;
	size_t len;
};

void ck_keys_init(struct names *keys)
{
	ck_names_init(keys);
#define X(name, text, type)                                          \
	if (ck_names_number(keys, text, strlen(text)) != KEY_##name) \
		assert(0 && "keys are numbered in their order");
	COLUMNS(X)
	DETAILS(X)
#undef X
}

static void blame(struct reader *reader, const char *fault)
{
	if (!reader->fault)
		reader->fault = fault;
}

static bool is_none(struct field field)
{
	return field.len == 1 && field.text[0] == '-';
}

static struct field next_field(struct reader *reader)
{
	struct field field = {reader->at, 0};
	const char *tab = memchr(reader->at, '\t', (size_t)(reader->end - reader->at));

	field.len = (size_t)((tab ? tab : reader->end) - reader->at);
	reader->at = tab ? tab + 1 : reader->end;
	if (field.len == 0)
		blame(reader, "a field is missing or empty");
	return field;
}

static int64_t number_of(struct reader *reader, struct field field)
{
	bool negative = field.len > 1 && field.text[0] == '-';
	uint64_t value = 0;

	if (is_none(field))
		return 0;
	for (size_t i = negative; i < field.len; i++) {
		unsigned digit = (unsigned char)field.text[i] - '0';
		if (digit > 9 || value > ((uint64_t)INT64_MAX - digit) / 10) {
			blame(reader, "a number is not a number");
			return 0;
		}
		value = value * 10 + digit;
	}
	return negative ? -(int64_t)value : (int64_t)value;
}

static uint32_t name_of(struct reader *reader, struct field field)
{
	return ck_names_number(reader->names, field.text, field.len);
}

static int64_t next_number(struct reader *reader)
{
	return number_of(reader, next_field(reader));
}

static uint32_t next_name(struct reader *reader)
{
	return name_of(reader, next_field(reader));
}

static uint32_t next_state(struct reader *reader)
{
	uint32_t state = next_name(reader);

	if (state > WORD_LAST_STATE)
		blame(reader, "no such state");
	return state;
}

static void give(struct record *record, enum key key, int64_t value)
{
	record->value[key] = value;
	record->given |= UINT64_C(1) << key;
}

static void next_column(struct reader *reader, struct record *record, enum key key)
{
	struct field field = next_field(reader);

	if (!is_none(field))
		give(record, key, number_of(reader, field));
}

static void check_text(struct reader *reader, enum key key, uint32_t name)
{
	bool outcome =
		name == WORD_NONE || name == WORD_REVIEW || (name >= WORD_COMPLETE && name <= WORD_LOST);

	if (key == KEY_STATE && name > WORD_LAST_STATE)
		blame(reader, "no such state");
	if (key == KEY_ENDED && !outcome)
		blame(reader, "ended is one of - complete fail review block release lost");
}

static void read_pair(struct reader *reader, struct record *record, const struct names *keys)
{
	struct field field = next_field(reader);
	const char *equals = memchr(field.text, '=', field.len);

	if (!equals) {
		blame(reader, "a field is not key=value");
		return;
	}
	uint32_t key = ck_names_find(keys, field.text, (size_t)(equals - field.text));
	struct field value = {equals + 1, (size_t)(field.text + field.len - equals - 1)};

	if (key == NAME_ABSENT) { /* events may say more than we judge; tables may not */
		if (record->tag == 'S' || record->tag == 'B')
			blame(reader, "a column that the checker does not know");
		return;
	}
	if (value.len == 0) {
		blame(reader, "a key has no value");
		return;
	}
	if (key >= COLUMN_COUNT && is_none(value))
		return;
	if (types[key] == NUMBER) {
		give(record, (enum key)key, number_of(reader, value));
	} else {
		uint32_t name = name_of(reader, value);
		check_text(reader, (enum key)key, name);
		give(record, (enum key)key, name);
	}
}

static void read_event(struct reader *reader, struct record *record)
{
	record->seq = next_number(reader);
	record->boot = next_name(reader);
	record->lease_ms = next_number(reader);
	record->wall_ms = next_number(reader);
	record->kind = next_name(reader);
	record->task = next_name(reader);
	record->worker = next_name(reader);
	next_column(reader, record, KEY_FENCE);
	next_column(reader, record, KEY_ATTEMPT);
	record->from = next_state(reader);
	give(record, KEY_STATE, next_state(reader));
	next_field(reader); /* the actor: for people */
}

static void read_client(struct reader *reader, struct record *record)
{
	record->worker = next_name(reader);
	record->phase = next_name(reader);
	record->op = next_name(reader);
	record->task = next_name(reader);
	next_column(reader, record, KEY_FENCE);
	next_field(reader); /* the outcome as the client was told: for people */
	record->lease_ms = next_number(reader);
	next_number(reader);
}

static void read_fixed(struct reader *reader, struct record *record)
{
	switch (record->tag) {
	case 'E':
		read_event(reader, record);
		break;
	case 'B':
		record->seq = next_number(reader);
		record->task = next_name(reader);
		break;
	case 'S':
		record->task = next_name(reader);
		break;
	case 'C':
		read_client(reader, record);
		break;
	case 'Q':
		break;
	default:
		blame(reader, "a line begins with E, B, S, Q or C");
		break;
	}
}

const char *ck_record_parse(
	struct record *record, const char *line, size_t len, struct names *names, const struct names *keys)
{
	struct reader reader = {line, line + len, names, NULL};

	*record = (struct record){0};
	if (len == 0 || line[0] == '#')
		return NULL;
	struct field tag = next_field(&reader);
	if (tag.len != 1)
		return "a line begins with one letter and a tab";
	record->tag = tag.text[0];
	read_fixed(&reader, record);
	while (!reader.fault && reader.at < reader.end)
		read_pair(&reader, record, keys);
	return reader.fault;
}
