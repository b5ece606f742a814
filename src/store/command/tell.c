/*
 * What people tell a task while it waits or runs.
 *
 * Each telling is kept beside the task by its number, with the last number and the last one that a holder has heard. Tasks with
 * tellings that nobody has heard are known in memory, so that a heartbeat and a claim need not ask the disk for every task. A
 * claim carries them and counts as heard; a running holder is told that there are some, reads its task, and says with its
 * progress how far it has heard.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/command/commands.h"
#include "store/read/sound.h"

enum {
	NUMBER_BYTES_MAX = 24,
	TOLD_TASKS_MAX = 1000, /* with tellings that nobody has heard */
};

/* ---- in memory ---------------------------------------------------------------------------------------------------- */

/* Where the task is, or belongs, in the sorted list. */
static uint32_t find_place(const struct store *store, int64_t seq)
{
	uint32_t low = 0, high = store->told_task_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (store->told_tasks[middle] < seq)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_listed(const struct store *store, int64_t seq)
{
	uint32_t place = find_place(store, seq);

	return place < store->told_task_count && store->told_tasks[place] == seq;
}

bool turn_is_told(const struct turn *turn, int64_t seq)
{
	for (uint32_t i = turn->telling_count; i > 0; i--) {
		if (turn->tellings[i - 1].seq == seq)
			return turn->tellings[i - 1].unheard;
	}
	return turn->store->told_task_count > 0 && is_listed(turn->store, seq);
}

int tellings_reserve(struct store *store, uint32_t more)
{
	return turn_grow((void **)&store->told_tasks, store->told_task_count + more, &store->told_task_cap,
		sizeof *store->told_tasks);
}

void tellings_set(struct store *store, int64_t seq, bool unheard)
{
	uint32_t place = find_place(store, seq);
	int64_t *at = store->told_tasks + place;
	bool listed = is_listed(store, seq);

	if (listed == unheard)
		return;
	size_t behind = store->told_task_count - place;
	if (unheard) {
		assert(store->told_task_count < store->told_task_cap); /* tellings_reserve() was called */
		memmove(at + 1, at, behind * sizeof *at);
		*at = seq;
		store->told_task_count++;
	} else {
		memmove(at, at + 1, (behind - 1) * sizeof *at);
		store->told_task_count--;
	}
}

/* The key of its small record. */
static struct span key_of(int64_t seq, char text[NUMBER_BYTES_MAX])
{
	return (struct span){text, (size_t)snprintf(text, NUMBER_BYTES_MAX, "%" PRId64, seq)};
}

static int stage(struct turn *turn, int64_t seq, bool unheard)
{
	char text[NUMBER_BYTES_MAX];
	struct span key = key_of(seq, text);

	int r = turn_grow(
		(void **)&turn->tellings, turn->telling_count, &turn->telling_cap, sizeof *turn->tellings);
	if (r < 0)
		return r;
	turn->tellings[turn->telling_count++] = (struct turn_telling){seq, unheard};
	return unheard ? turn_put(turn, put_small, SMALL_TOLD, key, SPAN("1"))
		       : turn_put(turn, delete_small, SMALL_TOLD, key);
}

int telling_load(struct store *store, struct span key)
{
	char text[NUMBER_BYTES_MAX], *end;

	if (key.len == 0 || key.len >= sizeof text)
		return store_damaged(store, "small", SMALL_TOLD);
	memcpy(text, key.data, key.len);
	text[key.len] = 0;
	int64_t seq = strtoll(text, &end, 10);
	if (*end != 0 || seq <= 0)
		return store_damaged(store, "small", SMALL_TOLD);
	int r = tellings_reserve(store, 1);
	if (r == 0)
		tellings_set(store, seq, true);
	return r;
}

/* ---- on disk ------------------------------------------------------------------------------------------------------ */

int tellings_read(struct store *store, int64_t seq, struct arena *arena, struct tellings *ret_tellings)
{
	char text[2 * NUMBER_BYTES_MAX];
	struct tellings tellings = {0};
	struct span kept;
	int used = 0;

	*ret_tellings = tellings;
	int r = store_get_kept(store, seq, EXTRA_TELL, arena, &kept);
	if (r < 0 || kept.len == 0)
		return r;
	snprintf(text, sizeof text, "%.*s", SPAN_ARGS(kept));
	if (sscanf(text, "%" SCNu32 " %" SCNu32 "%n", &tellings.last, &tellings.heard, &used) != 2 ||
		(size_t)used != kept.len || tellings.heard > tellings.last)
		return store_damaged(store, "task_extra", seq);
	*ret_tellings = tellings;
	return 0;
}

static int put_tellings(struct turn *turn, int64_t seq, const struct tellings *tellings)
{
	char text[2 * NUMBER_BYTES_MAX];
	int len = snprintf(text, sizeof text, "%" PRIu32 " %" PRIu32, tellings->last, tellings->heard);

	return turn_put(turn, put_extra, seq, EXTRA_TELL, 0, (struct span){text, (size_t)len});
}

int tellings_list(struct store *store, int64_t seq, struct arena *arena, struct tellings *ret_tellings,
	struct span **ret_texts, uint32_t *ret_first)
{
	struct tellings tellings;

	*ret_texts = NULL;
	int r = tellings_read(store, seq, arena, &tellings);
	*ret_tellings = tellings;
	if (r < 0 || tellings.last == 0)
		return r;
	uint32_t first = tellings.last > TELLINGS_KEPT ? tellings.last - TELLINGS_KEPT + 1 : 1;
	struct span *texts = arena_alloc(arena, TELLINGS_KEPT * sizeof *texts);
	if (!texts)
		return -ENOMEM;
	for (uint32_t number = first; r == 0 && number <= tellings.last; number++)
		r = store_must_find(store,
			store_rows(store, get_extra, seq, EXTRA_TELL, number, arena, &texts[number - first]),
			seq);
	*ret_texts = texts;
	*ret_first = first;
	return r;
}

/* ---- commands ----------------------------------------------------------------------------------------------------- */

int execute_tell(struct turn *turn, struct turn_task *view, struct result *result)
{
	const struct command *command = turn->command;
	int64_t seq = view->task.seq;
	struct tellings tellings;

	if (task_state_is_final(view->task.state))
		return command_refuse(result, REFUSED_BAD_TRANSITION);
	int r = tellings_read(turn->store, seq, &turn->arena, &tellings);
	if (r < 0)
		return r;
	if (tellings.last - tellings.heard >= TELLINGS_KEPT ||
		(!turn_is_told(turn, seq) &&
			turn->store->told_task_count + turn->telling_count >= TOLD_TASKS_MAX)) {
		result->told_enough = true;
		return command_refuse(result, REFUSED_TOO_LARGE);
	}
	struct task_decision decision = task_note(&view->task);
	r = command_write(turn, view, &decision, result);
	if (r < 0 || result->refusal != REFUSED_NOTHING)
		return r;
	tellings.last++;
	if (tellings.last > TELLINGS_KEPT)
		turn_put(turn, delete_extra, seq, EXTRA_TELL, tellings.last - TELLINGS_KEPT);
	turn_put(turn, put_extra, seq, EXTRA_TELL, tellings.last, command->data);
	r = put_tellings(turn, seq, &tellings);
	if (r == 0)
		r = stage(turn, seq, true);
	return r == 0 && view->task.claim.holder != 0 ? turn_notify(turn, view->task.claim.holder) : r;
}

int tellings_heard(struct turn *turn, int64_t seq, uint32_t number)
{
	struct tellings tellings;

	if (!turn_is_told(turn, seq))
		return 0;
	int r = tellings_read(turn->store, seq, &turn->arena, &tellings);
	if (r < 0 || number <= tellings.heard)
		return r;
	tellings.heard = number < tellings.last ? number : tellings.last;
	r = put_tellings(turn, seq, &tellings);
	return r == 0 && tellings.heard == tellings.last ? stage(turn, seq, false) : r;
}

int tellings_hand_over(struct turn *turn, struct claimed *claimed)
{
	struct tellings tellings;

	int r = tellings_list(turn->store, claimed->task.seq, &turn->arena, &tellings, &claimed->tellings,
		&claimed->first_telling);
	claimed->last_telling = tellings.last;
	return r < 0 ? r : tellings_heard(turn, claimed->task.seq, tellings.last);
}
