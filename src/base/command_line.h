/*
 * The command line of a program: flags with a value or without, and words that are none. stint(1) has verbs, letters and
 * kinds of values of its own (cli/frame/args.c); this is for the programs behind it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
	COMMAND_FLAGS_MAX = 64,
	COMMAND_COMPLAINT_BYTES = 600,
};

enum command_flag_kind { COMMAND_VALUE, COMMAND_VALUES /* may be repeated */, COMMAND_SWITCH };

struct command_flag {
	const char *name; /* with its dashes */
	enum command_flag_kind kind;
};

struct command_line {
	const char *program; /* whose --help lists the flags */
	const struct command_flag *flags;
	size_t flag_count;
	const char *const *words; /* that it takes as its first one, NULL behind the last; NULL: none */
	void *context;

	/* One flag, with the name that the table has; of a switch the value is NULL. Not 0: go no further. */
	int (*take_flag)(void *context, const char *flag, const char *value);

	/* A word that is no flag. May be NULL: then every word is one too many. */
	int (*take_word)(void *context, const char *word);
};

/* 0; what `take_flag` or `take_word` returned; or -EINVAL, and the complaint is one sentence: a flag that is not there, with the
 * one that was probably meant, is given twice, has no value or one too many. -h is --help. */
int command_line_read(
	const struct command_line *line, int argc, char **argv, char complaint[COMMAND_COMPLAINT_BYTES]);

/* There is no such word: which one was probably meant, and which there are. -EINVAL. */
int command_line_unknown_word(
	const struct command_line *line, const char *word, char complaint[COMMAND_COMPLAINT_BYTES]);
