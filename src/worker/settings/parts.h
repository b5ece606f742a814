/*
 * What the files of settings*.c share. Only they include this.
 *
 *	settings.c             the whole: queues, roots, the sweep, and what is asked of them
 *	settings/executor.c    one executor: program, budget and limits, work tree, walls, pool
 *	settings/value.c       values: texts, numbers, paths, variables, and what is said of those that are wrong
 */
#pragma once

#include "worker/settings/settings.h"

/* Where a complaint belongs, and how the thing is called. */
struct at {
	struct settings *settings;
	struct config_file *file;
	yyjson_val *key; /* of the member that is looked at */
	char name[300];  /* executors.tests.argv */
};

struct at at_member(const struct at *outer, yyjson_val *key);

/* What it is and must be; that there is no such key, and which there may be. */
void at_complain(const struct at *at, yyjson_val *value, const char *must_be);
void at_complain_unknown(const struct at *at, const char *known);

/* A text without a NUL in it; NULL: it is none, or empty. */
const char *at_text(yyjson_val *value);

/* For as long as the settings live. */
const char *at_keep(const struct at *at, const char *text);

/* The least one if it was complained about. */
int64_t at_number(const struct at *at, yyjson_val *value, int64_t least, int64_t most);

/* Texts, each as `accepts` wants it; NULL at the end. NULL: it was complained about. */
const char *const *at_texts(const struct at *at, yyjson_val *value, size_t least, size_t most,
	bool (*accepts)(const char *text), const char *must_be);
bool settings_is_any(const char *text);
bool settings_is_variable(const char *name);
bool settings_is_path(const char *text);

/* A path of the configuration may begin at home; one of a task may not. */
const char *at_expanded(const struct at *at, const char *path);
const char *const *at_paths(const struct at *at, yyjson_val *value, size_t most);

/* What tasks are granted: nothing of ours. */
const struct settings_path *at_granted(const struct at *at, yyjson_val *value);

/* {"NAME":"value"} as NAME=value */
const char *const *at_env(const struct at *at, yyjson_val *value);

/* Each member of an object, by its own name. */
void at_members(const struct at *at, yyjson_val *value,
	void (*take)(const struct at *at, yyjson_val *value, void *into), void *into);

/* settings/executor.c */
void settings_take_executor(const struct at *at, yyjson_val *value);
