#include "base/command_line.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"

struct reading {
	const struct command_line *line;
	bool seen[COMMAND_FLAGS_MAX];
	char *complaint;
};

__attribute__((format(printf, 2, 3))) static int complain(
	const struct reading *reading, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reading->complaint, COMMAND_COMPLAINT_BYTES, format, args);
	va_end(args);
	return -EINVAL;
}

/* The place of the flag in the table, or the end of it. */
static size_t find(const struct command_line *line, const char *word)
{
	size_t len = strcspn(word, "="), i = 0;

	if (strcmp(word, "-h") == 0)
		return find(line, "--help");
	while (i < line->flag_count &&
		!(strlen(line->flags[i].name) == len && memcmp(line->flags[i].name, word, len) == 0))
		i++;
	return i;
}

static int complain_unknown_flag(const struct reading *reading, const char *word)
{
	const struct command_line *line = reading->line;
	struct suggestion best = {0};
	char typed[64];

	snprintf(typed, sizeof typed, "%.*s", (int)strcspn(word, "="), word);
	for (size_t i = 0; i < line->flag_count; i++)
		suggest_consider(&best, typed + strspn(typed, "-"), line->flags[i].name + 2);
	if (best.word)
		return complain(reading, "there is no flag %s; did you mean --%s? %s --help lists them all",
			typed, best.word, line->program);
	return complain(
		reading, "there is no flag %s; %s --help lists those there are", typed, line->program);
}

int command_line_unknown_word(
	const struct command_line *line, const char *word, char complaint[COMMAND_COMPLAINT_BYTES])
{
	struct reading reading = {.line = line, .complaint = complaint};
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
		return complain(&reading, "%s takes flags only, and \"%.100s\" is none; %s --help lists them",
			line->program, word, line->program);
	return complain(&reading, "there is no command \"%.100s\"; %s%s%s %s", word,
		best.word ? "did you mean " : "", best.word ? best.word : "",
		best.word ? "? There are" : "there are", names);
}

/* *at moves over the value if that is a word of its own. */
static int take_flag(struct reading *reading, int argc, char **argv, int *at)
{
	const struct command_line *line = reading->line;
	const char *word = argv[*at], *value = strchr(word, '=');
	size_t index = find(line, word);

	if (index == line->flag_count)
		return complain_unknown_flag(reading, word);
	const struct command_flag *flag = &line->flags[index];
	value = value ? value + 1 : NULL;
	if (flag->kind == COMMAND_SWITCH && value)
		return complain(reading, "%s takes no value; it is \"%.100s\"", flag->name, value);
	if (flag->kind == COMMAND_VALUE && reading->seen[index])
		return complain(reading, "%s is given twice; say which one you mean", flag->name);
	reading->seen[index] = true;
	if (flag->kind != COMMAND_SWITCH && !value) {
		const char *next = *at + 1 < argc ? argv[*at + 1] : NULL;
		if (!next ||
			find(line, next) < line->flag_count) /* what looks like one of ours: --flag=VALUE */
			return complain(
				reading, "%s needs a value; %s --help says which", flag->name, line->program);
		value = argv[++*at];
	}
	return line->take_flag(line->context, flag->name, value);
}

static int take_word(struct reading *reading, const char *word)
{
	const struct command_line *line = reading->line;

	if (line->take_word)
		return line->take_word(line->context, word);
	return command_line_unknown_word(line, word, reading->complaint);
}

int command_line_read(
	const struct command_line *line, int argc, char **argv, char complaint[COMMAND_COMPLAINT_BYTES])
{
	struct reading reading = {.line = line, .complaint = complaint};
	int r = 0;

	assert(line->flag_count <= COMMAND_FLAGS_MAX);
	complaint[0] = 0;
	for (int i = 1; r == 0 && i < argc; i++)
		r = argv[i][0] == '-' && argv[i][1] ? take_flag(&reading, argc, argv, &i)
						    : take_word(&reading, argv[i]);
	return r;
}
