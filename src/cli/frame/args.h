/*
 * The command line, read by the table of the verb: flags with checked values, and what is left.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "cli/frame/verb.h"

enum {
	ARGS_MAX = 4096,
};

struct arg {
	const struct flag *flag; /* NULL: not a flag */
	const char *text;        /* its value; NULL: no value */
	int64_t number; /* the value of numbers, durations, moments and priorities; for a choice the index of its word */
};

struct args {
	const struct verb *verb;
	struct arg *items;
	size_t count;
	size_t plain_count;   /* arguments that are not flags */
	size_t before_dashes; /* … and stand before "--"; without "--" all of them */
};

/* 0, or -EINVAL with a sentence of what is wrong and, where there is one, the command that helps. -ENOMEM. */
struct args_complaint {
	char text[512];
	char fix[256];
};

int args_read(struct args *args, const struct verb *verb, int count, char *const *words, int64_t now_ms,
	struct args_complaint *ret_complaint);

/* The same for a verb that stands in for another program's: long flags only; the value is the next word; a flag before
 * another flag, or at the end, has none; -- ends them. Nothing is checked, and unknown flags are left out:
 * `unknown` has the first of them, or NULL. */
int args_read_loosely(
	struct args *args, const struct verb *verb, int count, char *const *words, const char **ret_unknown);
void args_done(struct args *args);

/* Was the flag of that name given? */
bool args_has(const struct args *args, const char *name);
const char *args_text(const struct args *args, const char *name); /* the last one; NULL: not given */
int64_t args_number(const struct args *args, const char *name, int64_t otherwise);

/* Walk the values of a flag. Start with *at = 0; NULL at the end. */
const char *args_each(const struct args *args, const char *name, size_t *at);

/* Walk the names of a flag: "a,b" and the next "c" are three. Start with a walk of zeroes; false at the end. */
struct args_names {
	size_t at;
	const char *rest; /* rest of the current value */
};

bool args_each_name(
	const struct args *args, const char *name, struct args_names *walk, struct span *ret_name);

/* The n-th argument that is no flag; NULL. */
const char *args_plain(const struct args *args, size_t n);

/* Words of the priorities, as the server has them. -EINVAL. */
int args_priority(const char *text, int64_t *ret_priority);
