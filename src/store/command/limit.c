/*
 * Limits of queues: which of them are reached, counted from live claims.
 *
 * The committed count of a queue stands in its tally (index.h). Beside it stands what the open turn changes, in the entry of a queue
 * that has, or had, a limit; a queue without one costs nothing. Rejected: counting the tasks of the turn at each claim, which makes a
 * turn of many claims slow.
 */
#include <assert.h>
#include <errno.h>

#include "store/command/commands.h"
#include "store/record/small.h"

static struct limited_queue *limited_at(const struct store *store, uint32_t number)
{
	return slab_at(&store->limited, number);
}

static uint64_t limited_hash(void *context, uint32_t number)
{
	return hash_u64(limited_at(context, number)->queue);
}

static const struct map_ops limited_ops = {.hash_of = limited_hash};

void limits_init(struct store *store)
{
	slab_init(&store->limited, sizeof(struct limited_queue));
	map_init(&store->limited_by_queue, &limited_ops, store);
}

void limits_done(struct store *store)
{
	map_done(&store->limited_by_queue);
	slab_done(&store->limited);
}

static struct limited_queue *limited_find(const struct store *store, uint32_t queue)
{
	struct map_probe probe;

	if (slab_used(&store->limited) == 0)
		return NULL;
	uint32_t number = map_first(&store->limited_by_queue, hash_u64(queue), &probe);
	while (number != MAP_NONE && limited_at(store, number)->queue != queue)
		number = map_next(&store->limited_by_queue, &probe);
	return number == MAP_NONE ? NULL : limited_at(store, number);
}

/* A new entry, without limits. NULL: no memory. */
static struct limited_queue *limited_make(struct store *store, uint32_t queue)
{
	uint32_t number;

	if (slab_alloc(&store->limited, &number) < 0)
		return NULL;
	limited_at(store, number)->queue = queue;
	if (map_insert(&store->limited_by_queue, hash_u64(queue), number) < 0) {
		slab_free(&store->limited, number);
		return NULL;
	}
	return limited_at(store, number);
}

int limits_load(struct store *store, uint32_t queue, const struct queue_limits *limits)
{
	struct limited_queue *limited = limited_make(store, queue);

	if (!limited)
		return -ENOMEM;
	limited->limits = *limits;
	return 0;
}

/* ---- as the turn has them ---------------------------------------------------------------------------------------- */

/* The turn changes something of it. -ENOMEM. */
static int limited_touch(struct turn *turn, struct limited_queue *limited)
{
	if (limited->turn == turn->number)
		return 0;
	int r = turn_grow((void **)&turn->limited, turn->limited_count, &turn->limited_cap,
		sizeof(struct limited_queue *));
	if (r < 0)
		return r;
	turn->limited[turn->limited_count++] = limited;
	limited->turn = turn->number;
	limited->next = limited->limits;
	limited->more_live = 0;
	limited->opened = false;
	return 0;
}

static int count_live(struct turn *turn, uint32_t queue, int more)
{
	struct limited_queue *limited = limited_find(turn->store, queue);
	int r = limited ? limited_touch(turn, limited) : 0;

	if (!limited || r < 0)
		return r;
	limited->more_live += more;
	limited->opened |= more < 0;
	return 0;
}

int limits_follow(struct turn *turn, const struct task *before, const struct task *after)
{
	bool was = task_is_claimed(before), is = task_is_claimed(after);

	if (slab_used(&turn->store->limited) == 0 || (was == is && (!was || before->queue == after->queue)))
		return 0;
	int r = was ? count_live(turn, before->queue, -1) : 0;
	return r == 0 && is ? count_live(turn, after->queue, 1) : r;
}

/* The first limit of a queue comes in the middle of a turn: what the turn did before counts too. */
static int count_again(struct turn *turn, uint32_t queue)
{
	const struct index *index = &turn->store->index;
	struct task before;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < turn->task_count; i++) {
		const struct turn_task *view = turn->tasks[i];
		if (view->place != MAP_NONE)
			index_get(index, view->place, &before);
		if (view->place != MAP_NONE && before.queue == queue && task_is_claimed(&before))
			r = count_live(turn, queue, -1);
		if (r == 0 && !view->gone && view->task.queue == queue && task_is_claimed(&view->task))
			r = count_live(turn, queue, 1);
	}
	return r;
}

/* How much of the queue counts, as far as it is committed. */
static struct queue_load load_of(const struct store *store, uint32_t queue)
{
	uint32_t tally = index_find_tally(&store->index, queue);

	return (struct queue_load){.live = tally != MAP_NONE ? index_tally(&store->index, tally)->live : 0};
}

enum limit_kind turn_limit(const struct turn *turn, uint32_t queue)
{
	const struct limited_queue *limited = limited_find(turn->store, queue);

	if (!limited)
		return LIMIT_NONE;
	struct queue_load load = load_of(turn->store, queue);
	if (limited->turn != turn->number)
		return limits_judge(&limited->limits, &load);
	assert((int64_t)load.live + limited->more_live >= 0); /* a claim that ends was counted */
	load.live = (uint32_t)((int64_t)load.live + limited->more_live);
	return limits_judge(&limited->next, &load);
}

void limits_apply(struct turn *turn)
{
	for (uint32_t i = 0; i < turn->limited_count; i++)
		turn->limited[i]->limits = turn->limited[i]->next;
}

/* ---- people ------------------------------------------------------------------------------------------------------ */

static int write_limits(struct turn *turn, struct limited_queue *limited, struct limits_decision decision)
{
	struct span name = names_text(&turn->store->names, limited->queue);
	struct record record = turn_record(turn, decision.event);
	char data[SMALL_BYTES_MAX];

	record.subject = name;
	if (decision.limits.concurrency != 0)
		record_fact(&record, FACT_CONCURRENCY, decision.limits.concurrency);
	int r = turn_write_event(turn, &record);
	if (r < 0)
		return r;
	limited->next = decision.limits;
	limited->opened = true;
	return limits_are_none(&decision.limits)
		? turn_put(turn, delete_small, SMALL_LIMITS, name)
		: turn_put(turn, put_small, SMALL_LIMITS, name, small_limits_put(&decision.limits, data));
}

int execute_queue_limit(struct turn *turn, const struct command *command, struct result *result)
{
	uint32_t queue;
	int r = turn_name(turn, command->queue_limit.queue, &queue);

	if (r < 0)
		return r == -E2BIG ? command_refuse(result, REFUSED_TOO_LARGE) : r;
	struct limited_queue *limited = limited_find(turn->store, queue);
	bool is_new = !limited;
	if (is_new && slab_used(&turn->store->limited) >= LIMITED_QUEUES_MAX)
		return command_refuse(result, REFUSED_TOO_LARGE);
	if (is_new)
		limited = limited_make(turn->store, queue);
	r = limited ? limited_touch(turn, limited) : -ENOMEM;
	if (r == 0 && is_new)
		r = count_again(turn, queue);
	if (r < 0)
		return r;
	struct limits_decision decision = limits_change(&limited->next, &command->queue_limit.patch);
	result->repeated = decision.event == EVENT_NONE;
	return result->repeated ? 0 : write_limits(turn, limited, decision);
}

/* ---- looking: what is committed ---------------------------------------------------------------------------------- */

struct queue_limits store_limits(const struct store *store, uint32_t queue, struct queue_load *ret_load)
{
	const struct limited_queue *limited = limited_find(store, queue);

	*ret_load = load_of(store, queue);
	return limited ? limited->limits : (struct queue_limits){0};
}

enum limit_kind store_limit(const struct store *store, uint32_t queue)
{
	struct queue_load load;
	struct queue_limits limits = store_limits(store, queue, &load);

	return limits_judge(&limits, &load);
}

bool limits_next_opened(const struct store *store, uint32_t *at, uint32_t *ret_queue, uint32_t *ret_room)
{
	const struct turn *turn = &store->turn;
	struct queue_load load;

	while (*at < turn->limited_count) {
		const struct limited_queue *limited = turn->limited[(*at)++];
		struct queue_limits limits = store_limits(store, limited->queue, &load);
		*ret_queue = limited->queue;
		*ret_room = limited->opened ? limits_room(&limits, &load) : 0;
		if (*ret_room > 0)
			return true;
	}
	return false;
}
