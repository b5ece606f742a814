#include "wire/form/command_line.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"

struct line_reading {
	const struct command_line *line;
	struct form form;
	uint64_t seen[COMMAND_TABLES_MAX]; /* a bit for each row */
	uint32_t word_count;
	const char **words;
	char *complaint;
};

static int complain(struct line_reading *reading, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int complain(struct line_reading *reading, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reading->complaint, COMMAND_COMPLAINT_BYTES, format, args);
	va_end(args);
	return -EINVAL;
}

/* The first error ends the reading, so there is one complaint at most. */
static void note_error(struct form *form, const char *name, const char *message)
{
	assert(form->error_count == 1);
	complain(form->context, "%s %s", name, message);
}

/* ---- flags ------------------------------------------------------------------------------------------------- */

/* The row of a flag, and the number of its table; NULL: no such flag. */
static const struct field *find(const struct command_line *line, const char *word, uint32_t *ret_table)
{
	size_t len = strcspn(word, "=");

	if (strcmp(word, "-h") == 0)
		return find(line, "--help", ret_table);
	for (uint32_t t = 0; t < COMMAND_TABLES_MAX; t++) {
		for (uint32_t i = 0; i < line->tables[t].count; i++) {
			const struct field *field = &line->tables[t].fields[i];
			*ret_table = t;
			if (field->flag && strlen(field->flag) == len && memcmp(field->flag, word, len) == 0)
				return field;
		}
	}
	return NULL;
}

static int complain_unknown_flag(struct line_reading *reading, const char *word)
{
	const struct command_line *line = reading->line;
	struct suggestion best = {0};
	char typed[64];

	snprintf(typed, sizeof typed, "%.*s", (int)strcspn(word, "="), word);
	for (uint32_t t = 0; t < COMMAND_TABLES_MAX; t++) {
		for (uint32_t i = 0; i < line->tables[t].count; i++) {
			if (line->tables[t].fields[i].flag)
				suggest_consider(&best, typed + strspn(typed, "-"),
					line->tables[t].fields[i].flag + 2);
		}
	}
	return complain(reading, "%s is not a known flag; %s%s%s%s --help lists the flags", typed,
		best.word ? "did you mean --" : "", best.word ? best.word : "", best.word ? "? " : "",
		line->program);
}

/* *at moves over the value if that is a word of its own. */
static int take_flag(struct line_reading *reading, int argc, char **argv, int *at)
{
	const struct command_line *line = reading->line;
	const char *equals = strchr(argv[*at], '='), *value = equals ? equals + 1 : NULL;
	uint32_t table = 0, other;
	const struct field *field = find(line, argv[*at], &table);

	if (!field)
		return complain_unknown_flag(reading, argv[*at]);
	if (field->bare && value)
		return complain(reading, "%s takes no value; it is \"%.100s\"", field->flag, value);
	uint64_t bit = UINT64_C(1) << (field - line->tables[table].fields);
	if (!field->bare && !field->many && (reading->seen[table] & bit))
		return complain(reading, "%s is given twice; say which one you mean", field->flag);
	reading->seen[table] |= bit;
	if (!field->bare && !value) {
		const char *next = *at + 1 < argc ? argv[*at + 1] : NULL;
		if (!next ||
			find(line, next, &other)) /* a value that looks like a flag is written --flag=VALUE */
			return complain(reading, "%s needs a value; %s --help says which", field->flag,
				line->program);
		value = argv[++*at];
	}
	bool good =
		form_take_word(&reading->form, field, field->bare ? "true" : value, line->tables[table].into);
	return good ? 0 : reading->form.fault < 0 ? reading->form.fault : -EINVAL;
}

/* ---- words ------------------------------------------------------------------------------------------------- */

static bool is_command(const struct command_line *line, const char *word)
{
	for (const char *const *known = line->words; known && *known; known++) {
		if (strcmp(*known, word) == 0)
			return true;
	}
	return false;
}

static int complain_unknown_word(struct line_reading *reading, const char *word)
{
	const struct command_line *line = reading->line;
	struct suggestion best = {0};
	char names[200] = "";

	for (const char *const *known = line->words; known && *known; known++) {
		size_t len = strlen(names);
		snprintf(names + len, sizeof names - len, "%s%s",
			known == line->words ? ""
				: known[1]   ? ", "
					     : " and ",
			*known);
		suggest_consider(&best, word, *known);
	}
	if (!names[0])
		return complain(reading,
			"%s takes only flags, and \"%.100s\" is not one; %s --help lists the flags",
			line->program, word, line->program);
	return complain(reading, "\"%.100s\" is not a known command; %s%s%s are %s", word,
		best.word ? "did you mean " : "", best.word ? best.word : "", best.word ? "? Known" : "known",
		names);
}

static int take_word(struct line_reading *reading, const char *word)
{
	const struct command_line *line = reading->line;

	if (reading->word_count == 0 && !is_command(line, word))
		return complain_unknown_word(reading, word);
	if (line->word_max == 0)
		return complain(
			reading, "\"%s\" goes before the flags, and is said once: %s [FLAGS]", word, word);
	if (reading->word_count == line->word_max)
		return complain(reading, "\"%.100s\" is one word too many; %s --help", word, line->program);
	reading->words[reading->word_count++] = word;
	return 0;
}

int command_line_read(const struct command_line *line, int argc, char **argv, const char **ret_words,
	char complaint[COMMAND_COMPLAINT_BYTES])
{
	struct line_reading reading = {.line = line, .words = ret_words, .complaint = complaint};
	int r = 0;

	for (uint32_t t = 0; t < COMMAND_TABLES_MAX; t++)
		assert(line->tables[t].count <= COMMAND_FLAGS_MAX);
	assert(line->word_max <= COMMAND_WORDS_MAX);
	complaint[0] = 0;
	form_start(&reading.form, line->arena);
	reading.form.note = note_error;
	reading.form.context = &reading;
	for (int i = 1; r == 0 && i < argc; i++)
		r = argv[i][0] == '-' && argv[i][1] ? take_flag(&reading, argc, argv, &i)
						    : take_word(&reading, argv[i]);
	if (r < 0 && !complaint[0])
		complain(&reading, "the command line is too long, or there is no memory to read it");
	assert((r < 0) == (complaint[0] != 0));
	return r;
}
