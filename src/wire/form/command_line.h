/*
 * The command line of a program, read by the tables of wire/form: a flag is a field whose value is a word. stint(1) has
 * verbs, letters and kinds of values of its own (cli/frame/args.c); this is for the programs behind it.
 */
#pragma once

#include "wire/form/form.h"

enum {
	COMMAND_TABLES_MAX = 3,
	COMMAND_WORDS_MAX = 2,
	COMMAND_FLAGS_MAX = 64, /* of one table */
	COMMAND_COMPLAINT_BYTES = 1200,
};

/* Rows that have a flag, and the struct that they fill. */
struct command_table {
	const struct field *fields;
	uint32_t count;
	void *into;
};

struct command_line {
	const char *program;                             /* whose --help lists the flags */
	struct command_table tables[COMMAND_TABLES_MAX]; /* of two equal flags the first counts */
	struct arena *arena;                             /* for lists; NULL: no flag is a list */
	const char *const *words; /* the commands there are, NULL behind the last; NULL: none */
	uint32_t word_max;        /* how many words may stand beside the flags; the first is a command */
};

/* 0; or -EINVAL, and the complaint is one sentence: an unknown flag with the one that was probably meant, a flag that is
 * given twice, has no value or a wrong one, a word that is not a command or one too many. -ENOMEM. -h is --help.
 * ret_words may be NULL if word_max is 0. */
int command_line_read(const struct command_line *line, int argc, char **argv, const char **ret_words,
	char complaint[COMMAND_COMPLAINT_BYTES]);
