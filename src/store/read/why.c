/*
 * Why a task rests: what the rules want to know of its surroundings, from memory.
 */
#include <string.h>

#include "store/command/commands.h"
#include "store/turn/turn.h"

static void look_at_worker(const struct store *store, const struct task *task, const struct name_set *needed,
	const struct holder *holder, struct surroundings *around)
{
	const struct worker *worker = &holder->worker;
	struct name_set has;

	around->known = around->known || worker->state != WORKER_UNKNOWN;
	if (worker->state != WORKER_ACTIVE)
		return;
	around->workers++;
	if (holder->refused)
		around->refused = worker->handle;
	if (holder->refused || !holder_may_take(holder, task->queue))
		return;
	around->serving++;
	names_set_members(&store->names, worker->capabilities, &has);
	if (!name_set_covers(&has, needed))
		return;
	around->capable++;
	names_set_members(&store->names, worker->executors, &has);
	if (task->executor != 0 && !worker->any_executor && !name_set_contains(&has, task->executor))
		return;
	around->executing++;
	if (task->owner != 0 && task->owner != worker->slot)
		return;
	around->owning++;
	if (!holds_let_claim(&store->turn, worker->handle, task->executor, task->credential)) {
		around->held_until_ms = holds_until_ms(&store->turn, worker->handle, task);
		return;
	}
	around->free++;
	around->idle += worker_may_claim(worker) == REFUSED_NOTHING;
}

/* Quarantined, and not just before its trial: then the next one is let in. */
static bool is_shut(const struct slot *slot, const struct given *given, int64_t *ret_trial_at_ms)
{
	uint32_t trial_ms = given->rules->quarantine_trial_ms;
	int64_t left_ms = slot->since_ms + trial_ms - given->now.lease_ms;

	if (slot_state_now(slot, given) != SLOT_QUARANTINED || (trial_ms > 0 && left_ms <= 0))
		return false;
	*ret_trial_at_ms = trial_ms > 0 ? given->now.wall_ms + left_ms : 0;
	return true;
}

static void look_at_owner(const struct store *store, const struct task *task, const struct given *given,
	struct surroundings *around)
{
	const struct slot *slot = task->owner != 0 ? store_find_slot(store, task->owner) : NULL;

	around->owner_quarantined = slot && is_shut(slot, given, &around->trial_at_ms);
}

/* Is it the supervisor whose places are called so: by its slot, or by the name in front of its id? */
static bool is_called(const struct store *store, const struct holder *holder, struct span name)
{
	struct span id = holder_id(holder);

	if (holder->worker.slot != 0)
		return span_equal(names_text(&store->names, holder->worker.slot), name);
	return id.len > name.len + 1 && memcmp(id.data, name.data, name.len) == 0 &&
		id.data[name.len] == '-' && !memchr(id.data + name.len + 1, '-', id.len - name.len - 1);
}

/* A live worker that takes work of its queue, and has places of that name. */
static bool stands_behind(const struct store *store, const struct task *task, struct span name)
{
	const struct index *index = &store->index;

	for (uint32_t number = 0; (number = index_next_holder(index, number)) != 0;) {
		const struct holder *holder = index_holder(index, number);
		if (holder->worker.state == WORKER_ACTIVE && holder_may_take(holder, task->queue) &&
			is_called(store, holder, name))
			return true;
	}
	return false;
}

/* A worker does not claim what its pool cannot begin. The server knows of such a pool the places that are quarantined, if the task
 * names no executor of every pool that may be meant. */
static void look_at_pools(const struct store *store, const struct task *task, const struct given *given,
	struct surroundings *around)
{
	struct span wanted =
		task->executor != 0 ? names_text(&store->names, task->executor) : (struct span){0};
	struct span worker, executor;

	for (uint32_t i = 0; store->quarantined > 0 && i < store->slot_count && around->pool_slot == 0; i++) {
		const struct turn_slot *slot = &store->slots[i];
		if (slot->slot.state == SLOT_QUARANTINED &&
			slot_split_pool(names_text(&store->names, slot->name), &worker, &executor) &&
			(wanted.len == 0 || span_equal(executor, wanted)) &&
			is_shut(&slot->slot, given, &around->trial_at_ms) &&
			stands_behind(store, task, worker))
			around->pool_slot = slot->name;
	}
}

static void look_at_hold(const struct store *store, const struct task *task, struct surroundings *around)
{
	struct hold hold =
		task->credential != 0 ? turn_hold(&store->turn, task->credential) : (struct hold){0};

	around->held = hold.state == HOLD_HELD || hold.state == HOLD_PROBING;
	around->held_until_ms = hold.until_ms;
}

struct reason store_why(struct store *store, const struct task *task, struct moment now)
{
	const struct index *index = &store->index;
	struct given given = {.rules = &store->rules, .now = now, .grace = store->grace};
	struct surroundings around = {
		.queue = store_queue_state(store, names_text(&store->names, task->queue))};
	struct name_set needed;

	names_set_members(&store->names, task->requires, &needed);
	if (task->state == TASK_READY) {
		around.disarmed = store->facts.disarmed;
		bool any;
		around.limits = store_limits(store, task->queue, &around.load);
		store_key_limits(store, task->queue, task->concurrency_key, &around.key_cap, &any);
		around.key_load = store_key_load(store, task);
		around.rate_opens_ms = store_rate_opens_ms(store, task->queue, task->concurrency_key);
		if (store_budget_is_spent(store, task->queue))
			around.budget_until_ms = day_end_ms(store->budgets_ms);
		around.opted_in = store_opts_in(store, task->queue);
		around.read_only = store->degraded;
		around.asked_for = asked_lately(&store->asked, task->queue, now.lease_ms);
		look_at_owner(store, task, &given, &around);
		look_at_hold(store, task, &around);
		for (uint32_t number = 0; (number = index_next_holder(index, number)) != 0;)
			look_at_worker(store, task, &needed, index_holder(index, number), &around);
		if (around.idle > 0)
			look_at_pools(store, task, &given, &around);
	}
	return task_why(task, &around, &given);
}
