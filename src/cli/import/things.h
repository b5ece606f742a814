/*
 * Things that wait for each other, in the order in which they can become tasks: a task waits only for tasks that exist already, so each
 * comes behind what it waits for. A circle is a mistake in the file.
 */
#pragma once

#include "cli/import/intake.h"

enum thing_mark { THING_FRESH, THING_UNDER_WAY, THING_PASSED };

struct thing {
	const char *id;
	yyjson_val *value;
	struct intake_place place;
	const char *over; /* why it becomes no task, as "it is closed"; NULL: it becomes one */
	enum thing_mark mark;
};

struct things {
	struct cli *cli;
	const char *noun; /* "issue" */
	struct buf list;  /* a struct thing each */
	struct ids ids;
	/* The id of the n-th thing that this one waits for, NULL if that entry says something else. False: there are no more. */
	bool (*parent)(struct cli *cli, const struct thing *thing, size_t n, const char **ret_id);
};

void things_open(struct things *things, struct cli *cli, const char *noun);
void things_close(struct things *things);

/* The id is its member "id". One that is there twice ends the run. The thing moves when another one is added. */
struct thing *things_add(struct things *things, yyjson_val *value, struct intake_place place);

size_t things_count(const struct things *things);
struct thing *things_at(const struct things *things, size_t i);
struct thing *things_named(const struct things *things, const char *id); /* NULL: there is none */

/* Every one, behind all that it waits for, in the order of the list otherwise. Things that are over are left out of the intake. */
void things_pass(struct things *things, struct intake *intake,
	void (*put)(void *context, const struct thing *thing), void *context);

/* "blockedBy": what it waits for, without what is over or not there. */
void things_put_parents(const struct things *things, const struct thing *thing, struct json_object *task);
