/*
 * What the attempts of a task have used: the totals of the last attempt that reported any, and the sum of those before it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/command/commands.h"
#include "store/read/sound.h"

enum {
	NUMBERS = 1 + 2 * (2 + USAGE_COUNTS), /* the fence, and two usages */
	TEXT_BYTES = NUMBERS * 21,
};

struct kept_usage {
	uint64_t fence;
	struct usage attempt, before;
};

static size_t put_usage(char *text, const struct usage *usage)
{
	size_t len =
		(size_t)snprintf(text, TEXT_BYTES, " %d %d", usage->is_reported, usage->price_is_unknown);

	for (int i = 0; i < USAGE_COUNTS; i++)
		len += (size_t)snprintf(text + len, TEXT_BYTES - len, " %" PRId64, usage->counts[i]);
	return len;
}

static void take_usage(const int64_t *numbers, struct usage *ret_usage)
{
	*ret_usage = (struct usage){.is_reported = numbers[0] != 0, .price_is_unknown = numbers[1] != 0};
	memcpy(ret_usage->counts, numbers + 2, sizeof ret_usage->counts);
}

static int read_kept(struct store *store, int64_t seq, struct arena *arena, struct kept_usage *ret_kept)
{
	char text[TEXT_BYTES + 1], *at = text;
	int64_t numbers[NUMBERS];
	struct span kept;

	*ret_kept = (struct kept_usage){0};
	int r = store_get_kept(store, seq, EXTRA_USAGE, arena, &kept);
	if (r < 0 || kept.len == 0)
		return r;
	if (kept.len > TEXT_BYTES)
		return store_damaged(store, "task_extra", seq);
	memcpy(text, kept.data, kept.len);
	text[kept.len] = 0;
	for (int i = 0; i < NUMBERS; i++) {
		char *end;
		numbers[i] = strtoll(at, &end, 10);
		if (end == at)
			return store_damaged(store, "task_extra", seq);
		at = end;
	}
	ret_kept->fence = (uint64_t)numbers[0];
	take_usage(numbers + 1, &ret_kept->attempt);
	take_usage(numbers + 3 + USAGE_COUNTS, &ret_kept->before);
	return *at == 0 ? 0 : store_damaged(store, "task_extra", seq);
}

int usage_read(struct store *store, int64_t seq, struct arena *arena, struct usage *ret_usage)
{
	struct kept_usage kept;
	int r = read_kept(store, seq, arena, &kept);

	*ret_usage = usage_add(&kept.before, &kept.attempt);
	return r;
}

int usage_keep(struct turn *turn, const struct task *task, const struct usage *said, bool *ret_turned)
{
	char text[2 * TEXT_BYTES];
	struct kept_usage kept;

	int r = read_kept(turn->store, task->seq, &turn->arena, &kept);
	if (r < 0)
		return r;
	if (kept.fence != task->fence) {
		kept.before = usage_add(&kept.before, &kept.attempt);
		kept.attempt = (struct usage){0};
	}
	struct usage before = kept.attempt;
	kept.attempt = usage_raise(&kept.attempt, said);
	*ret_turned = kept.attempt.counts[USAGE_TURNS] > before.counts[USAGE_TURNS];
	stats_note_spent(turn, task, &before, &kept.attempt, !before.is_reported);
	r = budgets_use(turn, task, &before, &kept.attempt);
	if (r < 0)
		return r;
	size_t len = (size_t)snprintf(text, sizeof text, "%" PRIu64, task->fence);
	len += put_usage(text + len, &kept.attempt);
	len += put_usage(text + len, &kept.before);
	return turn_put(turn, put_extra, task->seq, EXTRA_USAGE, 0, (struct span){text, len});
}
