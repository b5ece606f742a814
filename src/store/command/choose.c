/*
 * Choosing the next task for a claimant.
 *
 * The one place where many tasks are looked at: lanes give the first committed task of each kind the claimant may
 * take; tasks that this turn has touched are compared beside them. In a fair queue the turn of a task's key is compared before its
 * place in line, so the tasks of such a queue are compared among themselves first; each queue then puts its next one forward.
 * Ageing changes the order between priorities alone, so it is a matter of which head is compared how: see lane_key.priority.
 */
#include "store/command/choose.h"

#include <errno.h>

#include "base/take.h"

static bool may_take_from(const struct turn *turn, const struct chooser *chooser, const struct lane_key *lane)
{
	unset struct name_set needed;

	if (lane->pending ? !chooser->wants->takes_pending : !chooser->wants->takes_ready)
		return false;
	if (lane->owner != 0 && lane->owner != chooser->slot)
		return false;
	if (!lane->autonomous && store_opts_in(turn->store, lane->queue))
		return false;
	if (lane->host != 0 && lane->host != chooser->worker->worker.process.host)
		return false;
	if (lane->executor != 0 && !chooser->any_executor &&
		!name_set_contains(&chooser->executors, lane->executor))
		return false;
	if (!holds_let_claim(turn, chooser->worker->worker.handle, lane->executor, lane->credential))
		return false;
	if (lane->requires == 0)
		return true;
	names_set_members(&turn->store->names, lane->requires, &needed);
	return name_set_covers(&chooser->capabilities, &needed);
}

/* Nothing in it may be claimed now. */
static bool is_shut(const struct turn *turn, uint32_t queue)
{
	return turn_queue(turn, queue) == QUEUE_PAUSED || turn_limit(turn, queue) != LIMIT_NONE;
}

bool chooser_wants_queue(const struct turn *turn, const struct chooser *chooser, uint32_t queue)
{
	const struct name_list *queues = &chooser->wants->queues;

	if (turn_queue(turn, queue) == QUEUE_PAUSED)
		return false;
	if (queues->count == 0)
		return true;
	struct span text = names_text(&turn->store->names, queue);
	for (uint32_t i = 0; i < queues->count; i++) {
		if (span_equal(queues->items[i], text))
			return true;
	}
	return false;
}

/* The best task so far: in the index, or among those this turn has touched. In a fair queue it has the turn of its key beside it. */
struct candidate {
	int64_t seq;
	struct task task;
	bool is_fair;
	struct fair_turn turn;
};

/* The best of a fair queue, which is compared with the tasks of other queues once all of its own were compared. */
struct head {
	struct head *next;
	uint64_t choice; /* of which it is the head */
	struct candidate best;
};

static struct candidate *head_begin(struct turn *turn, struct chooser *chooser, struct limited_queue *queue)
{
	if (queue->head_turn != turn->number)
		queue->head = arena_alloc(&turn->arena, sizeof *queue->head);
	queue->head_turn = queue->head ? turn->number : 0;
	if (!queue->head) {
		chooser->fault = -ENOMEM;
		return NULL;
	}
	*queue->head = (struct head){.next = chooser->heads, .choice = turn->choices, .best.is_fair = true};
	chooser->heads = queue->head;
	return &queue->head->best;
}

/* What a task of that queue is compared with. */
static struct candidate *head_of(
	struct turn *turn, struct chooser *chooser, uint32_t queue, struct candidate *best)
{
	struct limited_queue *fair = turn_fair_queue(turn, queue);
	struct candidate *head;

	if (!fair)
		return best;
	if (fair->head_turn == turn->number && fair->head->choice == turn->choices)
		return &fair->head->best;
	head = head_begin(turn, chooser, fair);
	return head ? head : best;
}

/* Which of two tasks goes first, each with the turn of its key. */
static int fair_task_order(
	const struct task *a, const struct fair_turn *turn_a, const struct candidate *candidate)
{
	if (a->priority != candidate->task.priority)
		return a->priority > candidate->task.priority ? -1 : 1;
	int order = fair_order(turn_a, &candidate->turn);
	return order != 0 ? order : task_claim_order(a, &candidate->task, 0);
}

static bool is_better(const struct turn *turn, const struct task *task, const struct candidate *best)
{
	if (best->seq == 0)
		return true;
	if (!best->is_fair)
		return task_claim_order(task, &best->task, turn->store->rules.queue_age_ms) < 0;
	struct fair_turn its = turn_fair(turn, task->queue, task->concurrency_key);
	return fair_task_order(task, &its, best) < 0;
}

static void offer(const struct turn *turn, struct candidate *best, const struct task *task)
{
	if (!is_better(turn, task, best))
		return;
	best->seq = task->seq;
	best->task = *task;
	if (best->is_fair)
		best->turn = turn_fair(turn, task->queue, task->concurrency_key);
}

/* Need no task behind this place be looked at? In a fair queue the key decides. */
static bool is_behind(const struct index *index, uint32_t place, const struct candidate *best)
{
	return best->seq != 0 && !best->is_fair && !index_goes_before(index, place, &best->task);
}

/* The first task of the lane that this turn has not touched. */
static void offer_lane(
	struct turn *turn, const struct chooser *chooser, struct lane *lane, struct candidate *best)
{
	const struct index *index = &turn->store->index;
	unset struct task task;
	uint32_t place;

	while ((place = lane_peek(lane, turn->number)) != MAP_NONE) {
		if (is_behind(index, place, best))
			return;
		if (!turn_find_task(turn, index_seq(index, place))) {
			index_get(index, place, &task);
			if (task_is_claimable(&task, chooser->wants->takes_pending, &turn->given)) {
				offer(turn, best, &task);
				return;
			}
		}
		lane_skip(lane);
	}
}

/* ---- tasks with a concurrency key -------------------------------------------------------------------------------- */

/*
 * The first task of the sublane that this turn has not touched and that may be claimed. True: no sublane behind this one has a better
 * task, because this one's first was looked at; a sublane stands where its first task belongs.
 */
static bool offer_sublane(struct turn *turn, const struct chooser *chooser, const struct sublane *sublane,
	struct candidate *best)
{
	const struct index *index = &turn->store->index;
	const struct sublanes *sublanes = &index->lanes.sublanes;
	uint32_t first = sublane_first(sublanes, sublane);
	unset struct task task;

	for (uint32_t place = first; place != MAP_NONE; place = sublane_after(sublanes, sublane, place)) {
		if (is_behind(index, place, best))
			return place == first;
		if (turn_find_task(turn, index_seq(index, place)))
			continue;
		index_get(index, place, &task);
		if (task_is_claimable(&task, chooser->wants->takes_pending, &turn->given)) {
			offer(turn, best, &task);
			return place == first;
		}
	}
	return false;
}

static bool is_touched(const struct turn *turn, uint32_t key_number)
{
	const struct running_key *key = sublanes_key(&turn->store->index.lanes.sublanes, key_number);

	return turn_key(turn, key->queue, key->key) != NULL;
}

/* Keys that this turn has changed are looked at by offer_keys(). */
static void offer_keyed_lane(
	struct turn *turn, const struct chooser *chooser, struct lane *lane, struct candidate *best)
{
	const struct lanes *lanes = &turn->store->index.lanes;
	uint32_t at;

	while ((at = lane_peek_sublane(lanes, lane, turn->number)) != MAP_NONE &&
		is_touched(turn, sublane_at(&lanes->sublanes, at)->key))
		lane_skip_sublane(lanes, lane);
	for (; at != MAP_NONE; at = sublanes_after(&lanes->sublanes, lane->sides.open, at)) {
		const struct sublane *sublane = sublane_at(&lanes->sublanes, at);
		if (!is_touched(turn, sublane->key) && offer_sublane(turn, chooser, sublane, best))
			return;
	}
}

/* The limits of the key, for tasks that stand in one of its sublanes. */
static bool key_is_shut(const struct turn *turn, const struct turn_key *key, bool begun)
{
	const struct task task = {
		.state = TASK_READY, .queue = key->queue, .concurrency_key = key->key, .attempt = begun};

	return turn_key_limit(turn, &task) != LIMIT_NONE;
}

static void offer_key(
	struct turn *turn, struct chooser *chooser, const struct turn_key *key, struct candidate *best)
{
	const struct lanes *lanes = &turn->store->index.lanes;
	uint32_t at = sublanes_key(&lanes->sublanes, key->number)->first;

	if (is_shut(turn, key->queue) || !chooser_wants_queue(turn, chooser, key->queue))
		return;
	best = head_of(turn, chooser, key->queue, best);
	for (; at != SLAB_NONE; at = sublane_at(&lanes->sublanes, at)->next) {
		const struct sublane *sublane = sublane_at(&lanes->sublanes, at);
		if (!key_is_shut(turn, key, sublane->begun) &&
			may_take_from(turn, chooser, lanes_key(lanes, sublane->lane)))
			offer_sublane(turn, chooser, sublane, best);
	}
}

/* A key that is shut for tasks of both kinds is listed again when one of its claims ends. */
static void offer_keys(struct turn *turn, struct chooser *chooser, struct candidate *best)
{
	for (uint32_t i = 0; i < turn->open_key_count; i++) {
		struct turn_key *key = turn->open_keys[i];
		if (key_is_shut(turn, key, false) && key_is_shut(turn, key, true)) {
			key->listed = false;
			turn->open_keys[i--] = turn->open_keys[--turn->open_key_count];
			continue;
		}
		offer_key(turn, chooser, key, best);
	}
}

/* ---- all that it may take ---------------------------------------------------------------------------------------- */

static void offer_stand(
	struct turn *turn, struct chooser *chooser, const struct lane_group *group, struct candidate *best)
{
	const struct lanes *lanes = &turn->store->index.lanes;

	if (!group)
		return;
	best = head_of(turn, chooser, group->queue, best);
	for (struct lane *lane = lanes_first(lanes, group); lane; lane = lanes_next(lanes, lane)) {
		if (!may_take_from(turn, chooser, &lane->key))
			continue;
		if (lane->key.keyed)
			offer_keyed_lane(turn, chooser, lane, best);
		else
			offer_lane(turn, chooser, lane, best);
	}
}

/* A worker that looks into a queue takes work of it. Queue 0: of any. */
static void note_asked(struct turn *turn, const struct chooser *chooser, uint32_t queue)
{
	const struct worker *worker = &chooser->worker->worker;

	if (worker->state == WORKER_UNKNOWN)
		asked_note(&turn->store->asked, queue == 0 ? ASKED_ALL : asked_bit(queue),
			turn->given.now.lease_ms);
	else
		holder_asks(index_holder(&turn->store->index, worker->handle), queue);
}

static void offer_committed(struct turn *turn, struct chooser *chooser, struct candidate *best)
{
	const struct lanes *lanes = &turn->store->index.lanes;
	const struct name_list *queues = &chooser->wants->queues;
	const struct lane_group *group = NULL;

	for (uint32_t i = 0; i < queues->count; i++) {
		uint32_t queue = names_find(&turn->store->names, queues->items[i]);
		if (queue == 0)
			continue;
		note_asked(turn, chooser, queue);
		if (is_shut(turn, queue))
			continue;
		offer_stand(turn, chooser, lanes_stand(lanes, queue, 0), best);
		if (chooser->slot != 0)
			offer_stand(turn, chooser, lanes_stand(lanes, queue, chooser->slot), best);
	}
	if (queues->count > 0)
		return;
	note_asked(turn, chooser, 0);
	while ((group = lanes_next_stand(lanes, group))) {
		bool mine = group->owner == 0 || group->owner == chooser->slot;
		if (mine && !is_shut(turn, group->queue))
			offer_stand(turn, chooser, group, best);
	}
}

static void offer_touched(struct turn *turn, struct chooser *chooser, struct candidate *best)
{
	struct lane_key lane;

	for (uint32_t i = 0; i < turn->ready_count; i++) {
		struct turn_task *view = turn->ready[i];
		if (!index_lane_of(&turn->store->index, &view->task, &lane)) {
			/* taken since it was listed; it is listed again if it comes back */
			view->listed = false;
			turn->ready[i--] = turn->ready[--turn->ready_count];
			continue;
		}
		struct candidate *head = head_of(turn, chooser, view->task.queue, best);
		if (is_better(turn, &view->task, head) && may_take_from(turn, chooser, &lane) &&
			chooser_wants_queue(turn, chooser, view->task.queue) &&
			turn_task_limit(turn, &view->task) == LIMIT_NONE &&
			task_is_claimable(&view->task, chooser->wants->takes_pending, &turn->given))
			offer(turn, head, &view->task);
	}
}

int choose_next(struct turn *turn, struct chooser *chooser, int64_t *ret_seq)
{
	struct candidate best = {0};

	turn->choices++;
	chooser->heads = NULL;
	chooser->fault = 0;
	offer_committed(turn, chooser, &best);
	offer_keys(turn, chooser, &best);
	offer_touched(turn, chooser, &best);
	for (const struct head *head = chooser->heads; head; head = head->next) {
		if (head->best.seq != 0)
			offer(turn, &best, &head->best.task);
	}
	*ret_seq = best.seq;
	return chooser->fault;
}
