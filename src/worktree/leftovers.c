#include "worktree/leftovers.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "attempt/retry.h"

enum { AGAIN_MS = 60 * 1000 };

static void on_due(uv_timer_t *timer);

static void arm(struct leftovers *leftovers)
{
	if (leftovers->stopped || leftovers->tree || leftovers->count == 0 ||
		uv_is_active((uv_handle_t *)&leftovers->timer))
		return;
	uv_timer_start(&leftovers->timer, on_due,
		(uint64_t)retry_delay_ms(leftovers->failures + 1, AGAIN_MS, &leftovers->rng), 0);
}

static void put_last(struct leftovers *leftovers, const char *name)
{
	if (leftovers->count < LEFTOVERS_MAX)
		snprintf(leftovers->names[leftovers->count++], WORKTREE_NAME_BYTES, "%s", name);
}

static void take_first(struct leftovers *leftovers, char name[WORKTREE_NAME_BYTES])
{
	assert(leftovers->count > 0);
	memcpy(name, leftovers->names[0], WORKTREE_NAME_BYTES);
	memmove(leftovers->names[0], leftovers->names[1], (size_t)--leftovers->count * WORKTREE_NAME_BYTES);
}

static void on_ended(void *context)
{
	struct leftovers *leftovers = context;
	struct worktree *tree = leftovers->tree;
	const struct worktree_record *record = worktree_record(tree);

	if (worktree_is_settled(tree)) {
		leftovers->failures = 0;
		log_info(worktree_is_gone(tree) ? "a work tree that was left is removed"
						: "a work tree that was left is kept",
			log_cstr("task", record->task), log_cstr("path", record->path),
			log_cstr("reason", worktree_is_gone(tree) ? "" : record->kept));
	} else {
		leftovers->failures++;
		put_last(leftovers, record->name);
	}
	leftovers->tree = NULL;
	worktree_free(tree);
	arm(leftovers);
	if (leftovers->stopped)
		leftovers->idle(leftovers->context);
}

static void on_due(uv_timer_t *timer)
{
	struct leftovers *leftovers = timer->data;
	char name[WORKTREE_NAME_BYTES];

	assert(!leftovers->tree); /* one at a time */
	assert(!leftovers->stopped);
	take_first(leftovers, name);
	int fault = worktree_open(&leftovers->site, name, &leftovers->tree);
	if (fault == 0) {
		worktree_end(leftovers->tree, on_ended, leftovers);
	} else if (fault != -EBUSY && fault != -ENOENT) { /* somebody else works with it, or has removed it */
		leftovers->failures++;
		put_last(leftovers, name);
	}
	arm(leftovers);
}

void leftovers_init(struct leftovers *leftovers, const struct worktree_site *site,
	void (*idle)(void *context), void *context)
{
	*leftovers = (struct leftovers){.site = *site, .idle = idle, .context = context};
	rng_seed(&leftovers->rng, (uint64_t)uv_hrtime());
	uv_timer_init(site->loop, &leftovers->timer);
	leftovers->timer.data = leftovers;
}

void leftovers_add(struct leftovers *leftovers, const struct worktree *tree)
{
	if (worktree_is_settled(tree))
		return;
	put_last(leftovers, worktree_record(tree)->name);
	arm(leftovers);
}

void leftovers_add_name(struct leftovers *leftovers, const char *name)
{
	put_last(leftovers, name);
	arm(leftovers);
}

void leftovers_stop(struct leftovers *leftovers)
{
	leftovers->stopped = true;
	uv_timer_stop(&leftovers->timer);
}

bool leftovers_are_idle(const struct leftovers *leftovers)
{
	return !leftovers->tree;
}
