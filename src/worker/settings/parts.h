/*
 * What the files of this folder share. Only they include this.
 *
 *	settings.c    the whole: queues, roots, the sweep, and what is asked of them
 *	executor.c    one executor: program, budget and limits, work tree, walls, pool
 *	prices.c      prices of models
 *	value.c       kinds of values that only settings have: paths, grants, variables
 */
#pragma once

#include "wire/form/form.h"
#include "worker/settings/settings.h"

#define PATH_ALLOWED "an absolute path, or one that begins with ~/"

/* For `accepts` of a field. */
bool settings_is_variable(const char *name);
bool settings_is_task_variable(const char *name); /* … that a task may set */
bool settings_is_path(const char *text);

/* For `by` of a field. A path may begin at home, where a task's may not. */
field_take settings_take_path;      /* const char *: as it is given */
field_take settings_take_real_path; /* const char *: where it leads */
field_take settings_take_granted;   /* const struct settings_path *: nothing of ours */
field_take settings_take_read;      /* struct executor: the same for `read`, in which "home" is a word */
field_take settings_take_env;       /* const char *const *: {"NAME":"value"} as NAME=value */

/* At most so many paths; NULL behind the last. NULL: there was an error. */
const char *const *settings_read_paths(struct form *form, const char *name, yyjson_val *value, int64_t most);

/* executor.c */
form_member_take settings_take_executor;

/* Room for one that no file names; NULL: there is one of that name, or there are too many. */
struct executor *settings_add_executor(struct settings *settings, const char *name);

/* A list that begins with a program. */
bool settings_take_program(
	struct form *form, const struct field *field, yyjson_val *value, const char *const **into);

/* prices.c: the dated table of prices. */
field_take settings_take_prices; /* struct settings */

/* agent.c: a member that only agents have; and what an agent is where nothing is said. */
field_take settings_take_agent; /* struct executor */
void settings_check_fallback(const struct settings *settings, struct config *config);
void settings_finish_agent(struct form *form, yyjson_val *value, struct executor *executor);
