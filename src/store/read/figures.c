/*
 * Figures for the metrics and for people: counts, ages and queues, from memory. Each looks at a bounded number of tasks
 * and workers.
 */
#include <string.h>

#include "store/turn/turn.h"

enum {
	QUEUES_TOLD_MAX = 1000,
	LOOKS_MAX = 50000, /* at tasks or workers, for figures: about a millisecond */
	QUEUES_TOLD_CELLS = 2048,
};

const struct store_counts *store_counts(const struct store *store)
{
	return &store->counts;
}

uint32_t store_workers(const struct store *store, enum worker_state state)
{
	return store->index.workers[state];
}

uint32_t store_slots_quarantined(const struct store *store)
{
	return store->quarantined;
}

/* A worker that was not heard since the start is as old as the wall clock says. */
int64_t store_heartbeat_age_max_ms(const struct store *store, struct moment now)
{
	uint32_t number = index_longest_unheard(&store->index);
	int64_t age_ms = 0;

	if (number != 0) {
		const struct worker *worker = &index_holder(&store->index, number)->worker;
		age_ms = worker->heard_ms != INT64_MIN ? now.lease_ms - worker->heard_ms
						       : now.wall_ms - worker->last_beat_ms;
	}
	return age_ms > 0 ? age_ms : 0;
}

/* Since when the longest waiting task of each tally is ready. */
static void find_oldest(const struct store *store, int64_t oldest_ms[QUEUES_TOLD_MAX])
{
	const struct lanes *lanes = &store->index.lanes;
	const struct lane *lane = NULL;
	uint32_t looks = LOOKS_MAX;

	for (uint32_t i = 0; i < QUEUES_TOLD_MAX; i++)
		oldest_ms[i] = INT64_MAX;
	while ((lane = lanes_walk(lanes, lane))) {
		uint32_t at = index_find_tally(&store->index, lane->key.queue);
		if (at >= QUEUES_TOLD_MAX || lane->key.pending)
			continue;
		int64_t ready_ms = index_oldest_ready_ms(&store->index, lane, &looks);
		if (ready_ms < oldest_ms[at])
			oldest_ms[at] = ready_ms;
	}
}

int store_each_queue_figures(const struct store *store,
	int (*each)(void *context, const struct queue_figures *figures), void *context)
{
	const struct queue_tally *tally;
	int64_t oldest_ms[QUEUES_TOLD_MAX];
	int r = 0;

	find_oldest(store, oldest_ms);
	for (uint32_t i = 0; r == 0 && i < QUEUES_TOLD_MAX && (tally = index_tally(&store->index, i)); i++) {
		struct queue_figures figures = {
			.name = names_text(&store->names, tally->queue),
			.count = tally->count,
			.came = tally->came,
			.oldest_ready_ms = oldest_ms[i],
		};
		r = each(context, &figures);
	}
	return r;
}

/* The ready tasks of a lane have one reason in common, and its first one is asked for it. */
static uint32_t count_ready_reasons(struct store *store, struct moment now, uint32_t *counts)
{
	const struct lanes *lanes = &store->index.lanes;
	const struct lane *lane = NULL;
	uint32_t asked = 0, unasked = 0;
	struct task task;

	while ((lane = lanes_walk(lanes, lane))) {
		if (lane->key.pending || lane->total == 0)
			continue;
		asked += 1 + store->index.workers_alive + (store->quarantined > 0 ? store->slot_count : 0);
		if (asked > LOOKS_MAX) {
			unasked += lane->total;
			continue;
		}
		index_get(&store->index, lane_next_task(lanes, lane, &(struct lane_walk){0}), &task);
		counts[store_why(store, &task, now).why] += lane->total;
	}
	return unasked;
}

uint32_t store_count_reasons(struct store *store, struct moment now, uint32_t ret_counts[WHY_COUNT])
{
	const struct index *index = &store->index;

	memset(ret_counts, 0, WHY_COUNT * sizeof *ret_counts);
	ret_counts[WHY_PARKED] = index->count[TASK_PENDING];
	ret_counts[WHY_SCHEDULED] = index->count[TASK_SCHEDULED] - index->backing_off;
	ret_counts[WHY_BACKING_OFF] = index->backing_off;
	ret_counts[WHY_DEPENDENCY] =
		index->count[TASK_WAITING] - index->behind_schedule - index->succeeding - index->awaiting;
	ret_counts[WHY_CHILDREN] = index->awaiting;
	ret_counts[WHY_PREDECESSOR] = index->succeeding;
	ret_counts[WHY_SCHEDULE] = index->behind_schedule;
	ret_counts[WHY_ASKING] = index->count[TASK_ASKING] - index->asking_to_stop;
	ret_counts[WHY_REVIEW] = index->count[TASK_REVIEW];
	ret_counts[WHY_BLOCKED] = index->count[TASK_BLOCKED];
	return count_ready_reasons(store, now, ret_counts);
}

/* Queues as they were met, and cells that find them by their number: there may be many more groups of lanes than queues. */
struct queue_board {
	struct {
		uint32_t name, waiting;
		enum queue_state state;
	} rows[QUEUES_TOLD_MAX];
	uint32_t count;
	uint16_t cells[QUEUES_TOLD_CELLS]; /* 1 + row; 0: empty */
};

/* The row of that queue; QUEUES_TOLD_MAX: there is no room for another. */
static uint32_t board_row(struct queue_board *board, uint32_t name)
{
	uint32_t cell = (uint32_t)hash_u64(name) % QUEUES_TOLD_CELLS;

	while (board->cells[cell] != 0 && board->rows[board->cells[cell] - 1].name != name)
		cell = (cell + 1) % QUEUES_TOLD_CELLS;
	if (board->cells[cell] != 0)
		return board->cells[cell] - 1u;
	if (board->count == QUEUES_TOLD_MAX)
		return QUEUES_TOLD_MAX;
	board->rows[board->count].name = name;
	board->rows[board->count].state = QUEUE_OPEN;
	board->cells[cell] = (uint16_t)++board->count;
	return board->count - 1;
}

static bool has_tasks(const struct queue_tally *tally)
{
	for (int state = 0; state < TASK_STATE_COUNT; state++) {
		if (tally->count[state] > 0)
			return true;
	}
	return false;
}

static void board_waiting(struct queue_board *board, const struct index *index)
{
	const struct queue_tally *tally;

	for (uint32_t i = 0; (tally = index_tally(index, i)); i++) {
		uint32_t row = has_tasks(tally) ? board_row(board, tally->queue) : QUEUES_TOLD_MAX;
		if (row < QUEUES_TOLD_MAX)
			board->rows[row].waiting = tally->count[TASK_READY];
	}
}

int store_each_queue(const struct store *store,
	int (*each)(void *context, struct span name, enum queue_state state, uint32_t waiting), void *context)
{
	struct queue_board board = {.count = 0};
	int r = 0;

	board_waiting(&board, &store->index);
	for (uint32_t i = 0; i < store->queue_count; i++) {
		uint32_t row = board_row(&board, store->queues[i].name);
		if (row < QUEUES_TOLD_MAX)
			board.rows[row].state = store->queues[i].state;
	}
	for (uint32_t i = 0; i < slab_high(&store->limited); i++) {
		const struct limited_queue *limited = slab_at(&store->limited, i);
		if (!limits_are_none(&limited->limits) || (limited->caps && limited->caps->count > 0))
			board_row(&board, limited->queue);
	}
	for (uint32_t i = 0; r == 0 && i < board.count; i++)
		r = each(context, names_text(&store->names, board.rows[i].name), board.rows[i].state,
			board.rows[i].waiting);
	return r;
}

/* The ready tasks of one lane: since when the oldest waits, and the first of them. */
static void look_at_lane(
	const struct index *index, const struct lane *lane, uint32_t *looks, struct queue_document *queue)
{
	if (lane->key.pending || lane->total == 0)
		return;
	int64_t ready_ms = index_oldest_ready_ms(index, lane, looks);
	if (queue->oldest_ready_ms == 0 || ready_ms < queue->oldest_ready_ms)
		queue->oldest_ready_ms = ready_ms;
	if (queue->next_seq != 0)
		return;
	queue->next_seq = index_seq(index, lane_next_task(&index->lanes, lane, &(struct lane_walk){0}));
}

static void look_at_lanes(const struct index *index, uint32_t name, struct queue_document *queue)
{
	const struct lane_group *group = NULL;
	uint32_t looks = LOOKS_MAX;

	while (queue->count[TASK_READY] > 0 && (group = lanes_next_stand(&index->lanes, group))) {
		const struct lane *lane = group->queue == name ? lanes_first(&index->lanes, group) : NULL;
		for (; lane; lane = lanes_next(&index->lanes, lane))
			look_at_lane(index, lane, &looks, queue);
	}
}

int store_read_queue(struct store *store, struct span name, struct queue_document *ret_queue)
{
	const struct index *index = &store->index;
	struct queue_document queue = {.state = store_queue_state(store, name)};
	uint32_t number = names_find(&store->names, name), tally;

	if (number == 0)
		return -ENOENT;
	tally = index_find_tally(index, number);
	if (tally != MAP_NONE)
		memcpy(queue.count, index_tally(index, tally)->count, sizeof queue.count);
	for (uint32_t at = 0; (at = index_next_holder(index, at)) != 0;) {
		const struct holder *holder = index_holder(index, at);
		queue.workers += holder->worker.state == WORKER_ACTIVE && holder_may_take(holder, number);
	}
	look_at_lanes(index, number, &queue);
	queue.number = number;
	queue.limits = store_limits(store, number, &queue.load);
	queue.key_caps = store_count_caps(store, number);
	*ret_queue = queue;
	return 0;
}
