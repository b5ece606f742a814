/*
 * Work trees whose end had to be put off: the disk was full, git could not be started, a directory could not be removed. What is
 * there of them is on disk in their records, and the next worker would see to it; this does so while we go on, one at a time, after
 * 1, 2, 4 … 60 s.
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
	struct worktree *tree; /* NULL: none is looked after */
	uv_timer_t timer;
	struct rng rng;
	bool stopped;
	void (*idle)(void *context); /* the one that was looked after when we were stopped is done with */
	void *context;
};

/* The texts of the site are borrowed. */
void leftovers_init(struct leftovers *leftovers, const struct worktree_site *site,
	void (*idle)(void *context), void *context);

/* That one, if its end is not written down (worktree_is_settled()). */
void leftovers_add(struct leftovers *leftovers, const struct worktree *tree);

/* No other is begun with. */
void leftovers_stop(struct leftovers *leftovers);
bool leftovers_are_idle(const struct leftovers *leftovers);
