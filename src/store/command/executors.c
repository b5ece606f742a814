/*
 * Executors that ready tasks wait for and that no live worker of their queue has.
 *
 * A sweep looks which ones are missing and remembers since when, in memory: after a restart of the server these times
 * start again. Only what was missing all the time, for a task that was ready all the time, blocks that task; a fleet
 * that restarts does not.
 */
#include "store/command/executors.h"

#include <string.h>

#include "store/turn/turn.h"

enum {
	WORKERS_LOOKED_AT_MAX = 50000, /* of one sweep; who is not looked at changes nothing */
	TASKS_LOOKED_AT_MAX = 10000,
};

bool holder_runs(const struct store *store, const struct holder *holder, uint32_t executor, uint32_t queue)
{
	const struct worker *worker = &holder->worker;
	struct name_set has;

	if (worker->state != WORKER_ACTIVE || !holder_may_take(holder, queue))
		return false;
	if (worker->any_executor || executor == 0)
		return true;
	names_set_members(&store->names, worker->executors, &has);
	return name_set_contains(&has, executor);
}

/* Is it certain that nobody has it? */
static bool nobody_has(const struct store *store, uint32_t executor, uint32_t queue, uint32_t *looks)
{
	const struct index *index = &store->index;

	for (uint32_t number = 0; (number = index_next_holder(index, number)) != 0;) {
		if (*looks == 0 || holder_runs(store, index_holder(index, number), executor, queue))
			return false;
		(*looks)--;
	}
	return true;
}

static struct missing_executor *find(struct missing_executors *missing, const struct lane_key *lane)
{
	for (uint32_t i = 0; i < missing->count; i++) {
		if (missing->items[i].executor == lane->executor && missing->items[i].queue == lane->queue)
			return &missing->items[i];
	}
	return NULL;
}

/* Looked at in this sweep: it is in the list if it is missing. */
static void look_for(struct store *store, const struct lane_key *lane, int64_t now_ms, uint32_t *looks)
{
	struct missing_executors *missing = &store->missing_executors;
	struct missing_executor *known = find(missing, lane);

	if (known && known->sweep == missing->sweep)
		return;
	if (!nobody_has(store, lane->executor, lane->queue, looks))
		return; /* one that is in the list goes at the end of the sweep */
	if (!known && missing->count < MISSING_MAX) {
		known = &missing->items[missing->count++];
		*known = (struct missing_executor){
			.executor = lane->executor, .queue = lane->queue, .since_ms = now_ms};
	}
	if (known)
		known->sweep = missing->sweep;
}

static void forget_found(struct missing_executors *missing)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < missing->count; i++) {
		if (missing->items[i].sweep == missing->sweep)
			missing->items[kept++] = missing->items[i];
	}
	missing->count = kept;
}

static bool is_open(const struct lane *lane)
{
	return lane->key.executor != 0 && !lane->key.pending && lane->total > 0;
}

static void look_around(struct store *store, int64_t now_ms)
{
	const struct lanes *lanes = &store->index.lanes;
	const struct lane *lane = NULL;
	uint32_t looks = WORKERS_LOOKED_AT_MAX;

	store->missing_executors.sweep++;
	while ((lane = lanes_walk(lanes, lane))) {
		if (is_open(lane))
			look_for(store, &lane->key, now_ms, &looks);
	}
	forget_found(&store->missing_executors);
}

static int strand(struct turn *turn, int64_t seq)
{
	struct turn_task *view;

	int r = turn_task(turn, seq, &view);
	if (r < 0)
		return r;
	struct task_decision decision = task_strand(&view->task, &turn->given);
	struct record record = turn_record(turn, decision.event);
	record_fact(&record, FACT_CLASS, failure_code_class(decision.task.code));
	return turn_write_task(turn, view, &decision, &record);
}

/* What is left of the sweep. */
struct room {
	uint32_t looks, strands;
};

/* The tasks of a lane that waited long enough. */
static int strand_lane(struct turn *turn, const struct lane *lane, struct room *room)
{
	const struct index *index = &turn->store->index;
	struct lane_walk walk = {0};
	uint32_t place;
	int r = 0;

	while (r == 0 && room->looks > 0 && room->strands > 0 &&
		(place = lane_next_task(&index->lanes, lane, &walk)) != MAP_NONE) {
		struct task task;
		room->looks--;
		index_get(index, place, &task);
		if (task_strand(&task, &turn->given).event == EVENT_NONE)
			continue;
		r = strand(turn, task.seq);
		room->strands--;
	}
	return r;
}

int executors_sweep(struct turn *turn, uint32_t limit)
{
	struct store *store = turn->store;
	const struct lanes *lanes = &store->index.lanes;
	const struct lane *lane = NULL;
	int64_t now_ms = turn->given.now.lease_ms, after_ms = store->rules.executor_missing_ms;
	struct room room = {.looks = TASKS_LOOKED_AT_MAX, .strands = limit};
	int r = 0;

	if (after_ms == 0 || store->grace.frozen)
		return 0;
	look_around(store, now_ms);
	while (r == 0 && store->missing_executors.count > 0 && (lane = lanes_walk(lanes, lane))) {
		const struct missing_executor *known =
			is_open(lane) ? find(&store->missing_executors, &lane->key) : NULL;
		if (known && known->since_ms + after_ms <= now_ms)
			r = strand_lane(turn, lane, &room);
	}
	return r;
}
