/*
 * News of queues, each told once: what is draining has no open task any more; a limit begins to hold back tasks; no work is left.
 *
 * The first is told in the turn that ends the last task. The other two come and go many times a second in a busy queue, so they are looked
 * for by the sweep, once a second. What was told of them is kept in memory: after a restart a queue that is limited is told once more.
 */
#include <assert.h>

#include "store/command/commands.h"

static bool is_open(const struct task *task)
{
	return task->state != TASK_NOWHERE && !task_state_is_final(task->state);
}

static bool is_open_in(const struct task *task, uint32_t queue)
{
	return is_open(task) && task->queue == queue;
}

bool queue_is_empty(const struct turn *turn, uint32_t queue)
{
	const struct index *index = &turn->store->index;
	uint32_t at = index_find_tally(index, queue);
	int64_t open = 0;
	struct task before;

	for (int i = 0; at != MAP_NONE && i < TASK_STATE_COUNT; i++)
		open += index_tally(index, at)->count[i]; /* final ones are not counted */
	for (uint32_t i = 0; i < turn->task_count; i++) {
		const struct turn_task *view = turn->tasks[i];
		if (view->place != MAP_NONE)
			index_get(index, view->place, &before);
		open -= view->place != MAP_NONE && is_open_in(&before, queue);
		open += !view->gone && is_open_in(&view->task, queue);
	}
	assert(open >= 0);
	return open == 0;
}

static int tell(struct turn *turn, uint32_t queue, struct record *record)
{
	record->note = (struct span){0};
	record->subject = names_text(&turn->store->names, queue);
	return turn_write_event(turn, record);
}

int queue_follow_task(struct turn *turn, const struct task *before, const struct task *after)
{
	if (!is_open(before) || is_open_in(after, before->queue) ||
		turn_queue(turn, before->queue) != QUEUE_DRAINING || !queue_is_empty(turn, before->queue))
		return 0;
	return queue_tell_drained(turn, before->queue);
}

int queue_tell_drained(struct turn *turn, uint32_t queue)
{
	struct record record = turn_record(turn, EVENT_QUEUE_DRAINED);

	return tell(turn, queue, &record);
}

/* ---- looked for by the sweep ------------------------------------------------------------------------------------- */

/* How many tasks of the queue were taken since the start. */
static uint64_t taken(const struct queue_tally *tally)
{
	return tally->came[TASK_CLAIMED] + tally->came[TASK_RUNNING];
}

static bool is_at_rest(const struct queue_tally *tally)
{
	return tally->count[TASK_READY] == 0 && tally->live == 0;
}

static int look_at(struct turn *turn, const struct queue_tally *tally, struct queue_news *news)
{
	enum limit_kind limit =
		tally->count[TASK_READY] > 0 ? store_limit(turn->store, tally->queue) : LIMIT_NONE;

	*news = (struct queue_news){
		tally->queue, tally->told_limited && tally->count[TASK_READY] > 0, tally->told_taken};
	if (limit != LIMIT_NONE && !tally->told_limited) {
		struct record record = turn_record(turn, EVENT_QUEUE_LIMITED);
		record_fact(&record, FACT_LIMIT, limit);
		record_fact(&record, FACT_WAITING, tally->count[TASK_READY]);
		news->told_limited = true;
		return tell(turn, tally->queue, &record);
	}
	if (is_at_rest(tally) && taken(tally) != tally->told_taken) {
		struct record record = turn_record(turn, EVENT_QUEUE_IDLE);
		news->told_taken = taken(tally);
		return tell(turn, tally->queue, &record);
	}
	return 0;
}

int queues_sweep(struct turn *turn, struct queue_news news[QUEUE_NEWS_MAX], uint32_t *ret_count)
{
	struct store *store = turn->store;
	const struct queue_tally *tally;
	int r = 0;

	*ret_count = 0;
	for (uint32_t i = 0; r == 0 && i < QUEUES_LOOKED_AT && *ret_count < QUEUE_NEWS_MAX; i++) {
		tally = index_tally(&store->index, store->queue_cursor++);
		if (!tally) {
			store->queue_cursor = 0;
			break;
		}
		r = look_at(turn, tally, &news[*ret_count]);
		*ret_count += news[*ret_count].told_limited != tally->told_limited ||
			news[*ret_count].told_taken != tally->told_taken;
	}
	return r;
}
