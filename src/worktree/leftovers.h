/*
 * Work trees whose end had to be put off: the disk was full, git could not be started, a directory could not be removed. Their
 * records are on disk, and the next worker would end them; this ends them while we go on, one at a time, after 1, 2, 4 … 60 s.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/rng.h"
#include "worktree/worktree.h"

enum { LEFTOVERS_MAX = 32 }; /* more are left to the next worker */

struct leftovers {
	struct worktree_site site;
	char names[LEFTOVERS_MAX][WORKTREE_NAME_BYTES]; /* the first is the next */
	uint32_t count, failures;
	struct worktree *tree; /* the tree that is being ended, or NULL */
	uv_timer_t timer;
	struct rng rng;
	bool stopped;
	void (*idle)(void *context); /* after a stop: the tree that was being ended is done */
	void *context;
};

/* The texts of the site are borrowed. */
void leftovers_init(struct leftovers *leftovers, const struct worktree_site *site,
	void (*idle)(void *context), void *context);

/* Adds the tree, if its end is not written down (worktree_is_settled()). */
void leftovers_add(struct leftovers *leftovers, const struct worktree *tree);

/* The same by the name of its record: its task is final. */
void leftovers_add_name(struct leftovers *leftovers, const char *name);

/* No further tree is begun. */
void leftovers_stop(struct leftovers *leftovers);
bool leftovers_are_idle(const struct leftovers *leftovers);
