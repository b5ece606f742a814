/*
 * The turn: one owner, many commands, one commit.
 *
 * Rejected: changing the memory at once and undoing it when the commit fails. The undo would be a second
 * path to every change, taken only on the worst day. Copies cost a few hundred bytes per task touched.
 */
#include "store/turn/parts.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	TURN_ARENA_MAX = 512 << 20,
	RECORD_MAX = 20 << 20,
};

static uint64_t task_hash(void *context, uint32_t index)
{
	const struct turn *turn = context;

	return hash_u64((uint64_t)turn->tasks[index]->task.seq);
}

static const struct map_ops task_ops = {.hash_of = task_hash};

static uint64_t group_hash(void *context, uint32_t index)
{
	const struct turn *turn = context;
	struct span name = turn->groups[index]->name;

	return hash_bytes(&turn->store->index.key, name.data, name.len);
}

static const struct map_ops group_ops = {.hash_of = group_hash};

void turn_init(struct turn *turn, struct store *store)
{
	turn->store = store;
	arena_init(&turn->arena, TURN_ARENA_MAX);
	buf_init(&turn->record, RECORD_MAX);
	map_init(&turn->task_by_seq, &task_ops, turn);
	map_init(&turn->group_by_name, &group_ops, turn);
}

/* The copies that the index would have taken over. */
static void free_copies(struct turn *turn)
{
	while (turn->token_count > 0)
		free(turn->tokens[--turn->token_count]);
	while (turn->spawned_count > 0)
		free((char *)turn->spawned[--turn->spawned_count].label.data);
	while (turn->schedule_count > 0)
		definition_free(turn->schedules[--turn->schedule_count]->definition);
	groups_forget(turn);
	bulks_forget(turn);
	limits_forget(turn);
	for (uint32_t i = 0; i < turn->worker_count; i++) {
		free(turn->workers[i]->kept_metadata);
		turn->workers[i]->kept_metadata = NULL;
	}
}

void turn_done(struct turn *turn)
{
	if (turn->state != TURN_IDLE)
		free_copies(turn);
	arena_done(&turn->arena);
	buf_done(&turn->record);
	map_done(&turn->task_by_seq);
	map_done(&turn->group_by_name);
	free(turn->groups);
	free(turn->bulks);
	free(turn->tasks);
	free(turn->ready);
	free(turn->workers);
	free(turn->notified);
	free(turn->queues);
	free(turn->slots);
	free(turn->holds);
	free(turn->day_budgets);
	free(turn->limited);
	free(turn->budgets);
	map_done(&turn->key_by_number);
	free(turn->keys);
	free(turn->open_keys);
	free(turn->buckets);
	free(turn->tellings);
	free(turn->spawned);
	free(turn->schedules);
	free(turn->tokens);
	free(turn->logins);
	free(turn->paces);
}

static void forget_tasks(struct turn *turn)
{
	for (uint32_t i = 0; i < turn->task_count; i++)
		map_remove(&turn->task_by_seq, hash_u64((uint64_t)turn->tasks[i]->task.seq), i);
	turn->task_count = 0;
	turn->ready_count = 0;
}

/* The one place where the state of a turn changes. */
static void turn_set(struct turn *turn, enum turn_state to)
{
	enum turn_state from = turn->state;

	assert(to != TURN_OPEN || from == TURN_IDLE); /* one turn at a time */
	assert(to != TURN_SENT || from == TURN_OPEN); /* a turn is sent once */
	assert(to != TURN_IDLE || from != TURN_IDLE); /* a turn ends once */
	turn->state = to;
}

void turn_begin(struct turn *turn, struct moment now)
{
	struct store *store = turn->store;

	turn_set(turn, TURN_OPEN);
	assert(!turn->begun); /* the transaction of the last turn is over */
	assert(!turn->command);
	assert(turn->token_count == 0); /* the copies of the last turn were taken over or freed … */
	assert(turn->spawned_count == 0);
	assert(turn->schedule_count == 0);
	assert(turn->bulk_count == 0);
	assert(store->index.lanes.reserved == 0);             /* … its rooms were used or given back … */
	assert(store->names.count == store->names.committed); /* … and its names committed or forgotten */
	assert(store->event_base <= store->facts.last_event); /* only what was told is folded */
	forget_tasks(turn);
	groups_clear(turn);
	running_keys_clear(turn);
	turn->bucket_count = turn->refilled_count = turn->budget_count = 0;
	arena_reset(&turn->arena);
	turn->number++;
	turn->in_doubt = false;
	turn->fault = 0;
	turn->worker_count = 0;
	turn->notified_count = turn->notified_last = 0;
	turn->any_widened = false;
	turn->queue_count = 0;
	turn->slot_count = 0;
	turn->login_count = 0;
	turn->hold_count = turn->telling_count = 0;
	turn->limited_count = 0;
	turn->holds_let = false;
	turn->day_budget_count = 0;
	turn->schedules_new = 0;
	turn->pace_count = 0;
	turn->timer_count = 0;
	turn->wall_timer_count = 0;
	turn->facts = store->facts;
	memset(turn->told, 0, sizeof turn->told);
	memset(turn->told_kinds, 0, sizeof turn->told_kinds);
	turn->handed_bytes = 0;
	turn->rescheduled = 0;
	turn->spent.count = 0;
	turn->wrote_stats = false;
	memset(turn->unscheduled, 0, sizeof turn->unscheduled);
	turn->command = NULL;
	turn->outside_event_task = 0;
	turn->given = (struct given){
		.rules = &store->rules,
		.now = now,
		.grace = store->grace,
		.generation = store->generation,
		.disarmed = store->facts.disarmed,
	};
}

int turn_open_transaction(struct turn *turn)
{
	assert(turn->state == TURN_OPEN); /* nothing is staged while a turn is under way to the disk */
	assert(turn->fault <= 0);
	if (turn->begun || turn->fault < 0)
		return turn->fault;
	turn->fault = turn->memory_only ? -ENOSPC : store_rows(turn->store, begin);
	turn->begun = turn->fault == 0;
	return turn->fault;
}

int turn_put_record(struct turn *turn, int64_t seq, enum extra_kind kind, int64_t n)
{
	int r = buf_fault(&turn->record);

	return r < 0 ? r : turn_put(turn, put_extra, seq, kind, n, buf_span(&turn->record));
}

/* ---- the end of a turn -------------------------------------------------------------------------- */

static void rearm_timers(struct turn *turn)
{
	struct index *index = &turn->store->index;

	for (uint32_t i = 0; i < turn->timer_count; i++)
		index_rearm(index, turn->timers[i], &turn->given);
	for (uint32_t i = 0; i < turn->wall_timer_count; i++)
		index_rearm_wall(index, &turn->wall_timers[i]);
}

static void apply_queues(struct turn *turn)
{
	struct store *store = turn->store;

	for (uint32_t i = 0; i < turn->queue_count; i++) {
		uint32_t j = 0;
		while (j < store->queue_count && store->queues[j].name != turn->queues[i].name)
			j++;
		assert(j < store->queue_cap); /* turn_reserve() made room */
		store->queues[j] = turn->queues[i];
		if (j == store->queue_count)
			store->queue_count++;
	}
}

static uint32_t find_slot(const struct store *store, uint32_t name)
{
	struct map_probe probe;
	uint32_t index = map_first(&store->slot_by_name, hash_u64(name), &probe);

	while (index != MAP_NONE && store->slots[index].name != name)
		index = map_next(&store->slot_by_name, &probe);
	return index;
}

const struct slot *store_find_slot(const struct store *store, uint32_t name)
{
	uint32_t index = find_slot(store, name);

	return index != MAP_NONE ? &store->slots[index].slot : NULL;
}

int store_reserve_slots(struct store *store, uint32_t more)
{
	int r = turn_grow(
		(void **)&store->slots, store->slot_count + more, &store->slot_cap, sizeof *store->slots);

	return r < 0 ? r : map_reserve(&store->slot_by_name, store->slot_count + more);
}

void store_set_slot(struct store *store, const struct turn_slot *slot)
{
	uint32_t index = find_slot(store, slot->name);

	if (index == MAP_NONE) {
		index = store->slot_count;
		assert(index < store->slot_cap); /* store_reserve_slots() was called */
		index_must_fit(map_insert(&store->slot_by_name, hash_u64(slot->name), index));
		store->slots[store->slot_count++] = (struct turn_slot){.name = slot->name};
	}
	store->quarantined -= store->slots[index].slot.state == SLOT_QUARANTINED;
	store->quarantined += slot->slot.state == SLOT_QUARANTINED;
	store->slots[index] = *slot;
	assert(store->quarantined <= store->slot_count);
}

static void apply_slots(struct turn *turn)
{
	for (uint32_t i = 0; i < turn->slot_count; i++)
		store_set_slot(turn->store, &turn->slots[i]);
}

/* A hold that is over leaves the list. */
static void apply_holds(struct turn *turn)
{
	struct store *store = turn->store;

	for (uint32_t i = 0; i < turn->hold_count; i++) {
		uint32_t j = 0;
		while (j < store->hold_count && store->holds[j].credential != turn->holds[i].credential)
			j++;
		assert(j < store->hold_cap); /* turn_reserve() made room */
		store->holds[j] = turn->holds[i];
		if (j == store->hold_count)
			store->hold_count++;
		if (store->holds[j].hold.state == HOLD_NONE)
			store->holds[j] = store->holds[--store->hold_count];
	}
}

static void apply_tokens(struct turn *turn)
{
	for (uint32_t i = 0; i < turn->token_count; i++)
		tokens_set(&turn->store->credentials, turn->tokens[i]);
	turn->token_count = 0;
}

static void apply_logins(struct turn *turn)
{
	for (uint32_t i = 0; i < turn->login_count; i++) {
		if (turn->logins[i].gone)
			logins_drop(&turn->store->logins, span_of(turn->logins[i].login.id));
		else
			logins_set(&turn->store->logins, &turn->logins[i].login);
	}
}

static void apply_sessions(struct turn *turn)
{
	struct sessions *sessions = &turn->store->sessions;

	for (uint32_t i = 0; i < turn->spawned_count; i++)
		sessions_add(sessions, &turn->spawned[i]);
	turn->spawned_count = 0;
	for (uint32_t i = 0; sessions->count > 0 && i < turn->task_count; i++) {
		const struct turn_task *view = turn->tasks[i];
		struct session *session = view->changed ? sessions_find(sessions, view->task.seq) : NULL;
		if (session)
			session->ended_ms = view->gone || task_state_is_final(view->task.state)
				? turn->given.now.wall_ms
				: 0;
	}
}

static void apply_schedules(struct turn *turn)
{
	struct schedules *schedules = &turn->store->schedules;

	for (uint32_t i = 0; i < turn->schedule_count; i++) {
		struct turn_schedule *view = turn->schedules[i];
		if (view->gone) {
			schedules_drop(schedules, view->definition->schedule.id);
			definition_free(view->definition);
		} else {
			schedules_set(schedules, view->definition, &view->state);
		}
	}
	turn->schedule_count = 0;
}

const int64_t times_ends_ms[TIMES_BUCKETS - 1] = {
	10, 50, 100, 500, 1000, 5000, 10000, 60000, 300000, 1800000, 7200000};

static void times_add(struct times *times, int64_t ms)
{
	uint32_t i = 0;

	if (ms < 0) /* somebody set the clock */
		ms = 0;
	while (i < TIMES_BUCKETS - 1 && ms > times_ends_ms[i])
		i++;
	times->buckets[i]++;
	times->sum_ms += ms;
}

/* A claim was made, or is over: how long did it take? */
static void note_times(struct turn *turn, const struct turn_task *view)
{
	struct store *store = turn->store;
	const struct task *task = &view->task;
	uint64_t fence = 0;
	int64_t claimed_ms =
		view->place != MAP_NONE ? index_claimed_ms(&store->index, view->place, &fence) : 0;
	bool fresh = task->claim.holder != 0 && task->fence != fence;

	if (claimed_ms != 0 && (task->claim.holder == 0 || fresh))
		times_add(&store->counts.run_times, turn->given.now.wall_ms - claimed_ms);
	if (fresh) {
		int64_t waited_ms = task->claim.claimed_wall_ms - task->ready_at_ms;
		times_add(&store->counts.wait_times, waited_ms);
		index_note_wait(&store->index, task->queue, waited_ms);
	}
}

static void apply_tasks(struct turn *turn)
{
	struct index *index = &turn->store->index;

	for (uint32_t i = 0; i < turn->task_count; i++) {
		const struct turn_task *view = turn->tasks[i];
		if (view->gone) {
			index_forget(index, view->place);
		} else if (view->changed) {
			note_times(turn, view);
			index_set(index, view->place, &view->task, view->lane, &turn->given);
		}
		if (view->children > 0 || view->orphaned)
			index_set_children(index, view->task.seq, view->children);
	}
}

static void apply_workers(struct turn *turn)
{
	struct index *index = &turn->store->index;

	for (uint32_t i = 0; i < turn->worker_count; i++) {
		struct turn_worker *view = turn->workers[i];
		struct span metadata = {view->kept_metadata, view->metadata.len};
		struct holder *holder = index_holder(index, view->worker.handle);
		holder->instance = view->instance;
		holder->stale_on_disk = view->stale_on_disk;
		view->kept_metadata = NULL; /* the index takes it over */
		index_set_worker(index, &view->worker, metadata, &turn->given);
	}
}

static void apply_notified(struct turn *turn)
{
	struct index *index = &turn->store->index;

	for (uint32_t i = 0; i < turn->notified_count; i++) {
		uint32_t number = index_find_holder(index, turn->notified[i]);
		if (number != 0)
			index_holder(index, number)->notified_seq = turn->facts.last_event;
	}
}

/* The transaction is on disk: now, and only now, the memory follows. */
/* Only the kinds that this turn told of: most turns tell of a few. */
static void count_told(const struct turn *turn)
{
	for (int word = 0; word < TOLD_WORDS; word++) {
		for (uint64_t kinds = turn->told_kinds[word]; kinds != 0; kinds &= kinds - 1) {
			int kind = 64 * word + __builtin_ctzll(kinds);
			turn->store->counts.events[kind] += turn->told[kind];
		}
	}
}

static void turn_apply(struct turn *turn)
{
	struct store *store = turn->store;

	assert(turn->state == TURN_SENT); /* the memory follows a turn that was sent … */
	assert(!turn->begun);             /* … and whose transaction is over */
	assert(turn->facts.last_event >= store->facts.last_event); /* no number is given out twice */
	assert(turn->facts.last_task >= store->facts.last_task);
	assert(turn->facts.last_principal >= store->facts.last_principal);
	assert(turn->fault == 0); /* a turn with a fault is never sent */
	assert(turn->facts.finals >= 0);
	apply_tasks(turn);
	apply_workers(turn);
	apply_notified(turn);
	apply_queues(turn);
	apply_tokens(turn);
	apply_logins(turn);
	apply_slots(turn);
	apply_holds(turn);
	budgets_apply(turn);
	limits_apply(turn);
	rates_apply(turn);
	for (uint32_t i = 0; i < turn->telling_count; i++)
		tellings_set(store, turn->tellings[i].seq, turn->tellings[i].unheard);
	apply_sessions(turn);
	if (turn->schedule_count > 0)
		apply_schedules(turn);
	if (turn->group_count > 0)
		groups_apply(turn);
	if (turn->bulk_count > 0)
		bulks_apply(turn);
	names_commit(&store->names);
	store->facts = turn->facts;
	if (turn->spent.count > 0)
		stats_apply_spent(turn);
	count_told(turn);
	store->worker_changes += turn->worker_count;
	store->counts.rescheduled += turn->rescheduled;
	for (int type = 0; type < RESCHEDULE_ERROR_COUNT; type++)
		store->counts.unscheduled[type] += turn->unscheduled[type];
	rearm_timers(turn);
	index_release_reserved(&store->index);
}

/* ---- before the commit -------------------------------------------------------------------------- */

static int reserve_tasks(struct turn *turn, uint32_t *changes)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < turn->task_count; i++) {
		struct turn_task *view = turn->tasks[i];
		*changes += view->changed || view->children > 0 || view->orphaned;
		if (view->changed && !view->gone)
			r = index_reserve_lane(&turn->store->index, view->place, &view->task, &view->lane);
	}
	return r;
}

static int copy_metadata(struct turn *turn)
{
	for (uint32_t i = 0; i < turn->worker_count; i++) {
		struct turn_worker *view = turn->workers[i];
		if (!view->metadata.data)
			continue;
		view->kept_metadata = index_copy(view->metadata);
		if (!view->kept_metadata)
			return -ENOMEM;
	}
	return 0;
}

/* Everything that the memory needs to follow this turn, so that nothing can fail once it is on disk. */
static int turn_reserve(struct turn *turn)
{
	struct store *store = turn->store;
	uint32_t changes = turn->worker_count + turn->wall_timer_count; /* a timer may be set again */

	assert(turn->state == TURN_OPEN);
	int r = reserve_tasks(turn, &changes);
	if (r == 0)
		r = index_reserve(&store->index, changes);
	if (r == 0)
		r = copy_metadata(turn);
	if (r == 0 && turn->queue_count > 0)
		r = turn_grow((void **)&store->queues, store->queue_count + turn->queue_count,
			&store->queue_cap, sizeof *store->queues);
	if (r == 0 && turn->token_count > 0)
		r = tokens_reserve(&store->credentials, turn->token_count);
	if (r == 0 && turn->login_count > 0)
		r = logins_reserve(&store->logins, turn->login_count);
	if (r == 0 && turn->slot_count > 0)
		r = store_reserve_slots(store, turn->slot_count);
	if (r == 0 && turn->telling_count > 0)
		r = tellings_reserve(store, turn->telling_count);
	if (r == 0 && turn->hold_count > 0)
		r = turn_grow((void **)&store->holds, store->hold_count + turn->hold_count, &store->hold_cap,
			sizeof *store->holds);
	if (r == 0 && turn->day_budget_count > 0)
		r = budgets_reserve(turn);
	if (r == 0 && turn->bucket_count > 0)
		r = rates_reserve(turn);
	if (r == 0 && turn->spawned_count > 0)
		r = sessions_reserve(&store->sessions);
	if (r == 0 && turn->schedules_new > 0)
		r = schedules_reserve(&store->schedules, turn->schedules_new);
	if (r == 0 && turn->group_count > 0)
		r = groups_prepare(turn);
	return r;
}

static int fail_commit(struct turn *turn, int fault)
{
	turn->in_doubt = true;
	turn_abort(turn);
	return fault;
}

int turn_send(struct turn *turn)
{
	assert(turn->state == TURN_OPEN);
	int r = turn->fault;
	if (r == 0 && turn->group_count > 0)
		r = groups_write(turn);
	if (r == 0 && turn->bucket_count > 0)
		r = rates_write(turn);
	if (r == 0)
		r = turn_reserve(turn);
	if (r < 0) {
		turn_abort(turn);
		return r;
	}
	turn_set(turn, TURN_SENT);
	r = turn->begun ? store_rows(turn->store, send) : 0;
	return r < 0 ? fail_commit(turn, r) : 0;
}

int turn_settle(struct turn *turn)
{
	assert(turn->state == TURN_SENT);
	int r = turn->begun ? store_rows(turn->store, settle) : 0;
	if (r == -EAGAIN)
		return r;
	if (r < 0)
		return fail_commit(turn, r);
	turn->begun = false;
	turn_apply(turn);
	turn_set(turn, TURN_IDLE);
	assert(turn->store->facts.last_event == turn->facts.last_event); /* the memory is as the disk */
	return 0;
}

int turn_commit(struct turn *turn)
{
	int r = turn_send(turn);

	if (r == 0) {
		do
			r = turn_settle(turn);
		while (r == -EAGAIN);
	}
	return r;
}

void turn_abort(struct turn *turn)
{
	struct store *store = turn->store;

	assert(turn->state != TURN_IDLE); /* a turn ends once */
	if (turn->begun)
		store_rows(store, rollback);
	turn->begun = false;
	turn_set(turn, TURN_IDLE);
	turn->notified_count = 0;
	turn->ready_count = 0; /* nothing to claim, in queues that may have no name */
	turn->queue_count = turn->slot_count = turn->hold_count = turn->telling_count = 0;
	turn->holds_let = false;
	turn->day_budget_count = 0;
	turn->any_widened = false;
	free_copies(turn);
	turn->limited_count = 0;
	running_keys_clear(turn);
	while (turn->pace_count > 0) { /* the last one first; before the holders, which have some of them */
		struct turn_pace *taken = &turn->paces[--turn->pace_count];
		*taken->pace = taken->before;
	}
	for (uint32_t i = 0; i < turn->worker_count; i++) {
		if (turn->workers[i]->added)
			index_drop_holder(&store->index, turn->workers[i]->worker.handle);
	}
	names_forget(&store->names);
	rearm_timers(turn);
	index_release_reserved(&store->index);
	assert(store->names.count == store->names.committed); /* nothing of the turn is left */
	store->counts.unscheduled[RESCHEDULE_RETRY] +=
		turn->rescheduled + turn->unscheduled[RESCHEDULE_PERMANENT];
}
