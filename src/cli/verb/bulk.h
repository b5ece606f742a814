/*
 * Many tasks at once, for the verbs that do it: counted first, asked about, begun, and watched until the end.
 */
#pragma once

#include "cli/frame/cli.h"

/* How one speaks of an action. */
struct bulk_words {
	const char *action;
	const char *begin;  /* "Cancel" */
	const char *done;   /* "cancelled" */
	const char *states; /* the states that are meant if none is named: those that the action can change */
};

/* NULL: no such action. */
const struct bulk_words *bulk_words_of(struct span action);

/* Counts what the request would change; with --dry-run that is the answer. Else asks a person, begins, and waits until the end unless
 * --no-wait was given. `members` writes the body of the request without "dryRun". Returns the ending. */
struct bulk_run {
	const char *path, *name; /* of the POST */
	const struct bulk_words *words;
	void (*members)(struct cli *cli, struct json_object *body);
};

/* --dry-run, --yes and --no-wait, for verbs that name the tasks in another way. */
extern const struct flag bulk_group_flags[];

int bulk_go(struct cli *cli, const struct bulk_run *run);
