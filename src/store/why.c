/*
 * Why a task rests: what the rules want to know of its surroundings, from memory.
 */
#include "store/turn.h"

static void look_at_worker(const struct store *store, const struct task *task, const struct name_set *needed,
	const struct holder *holder, struct surroundings *around)
{
	const struct worker *worker = &holder->worker;
	struct name_set has;

	around->known = around->known || worker->state != WORKER_UNKNOWN;
	if (worker->state != WORKER_ACTIVE)
		return;
	around->workers++;
	if (!hot_may_serve(holder, task->queue))
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
	around->idle += worker_may_claim(worker) == REFUSED_NOTHING;
}

static void look_at_owner(const struct store *store, const struct task *task, const struct given *given,
	struct surroundings *around)
{
	uint32_t trial_ms = given->rules->quarantine_trial_ms;
	struct slot slot;

	if (task->owner == 0 || !store_slot(store, names_text(&store->names, task->owner), &slot) ||
		slot_state_now(&slot, given) != SLOT_QUARANTINED)
		return;
	int64_t left_ms = slot.since_ms + trial_ms - given->now.lease_ms;
	if (trial_ms > 0 && left_ms <= 0)
		return; /* the next one is let in */
	around->owner_quarantined = true;
	around->trial_at_ms = trial_ms > 0 ? given->now.wall_ms + left_ms : 0;
}

struct reason store_why(struct store *store, const struct task *task, struct moment now)
{
	const struct hot *hot = &store->hot;
	struct given given = {.rules = &store->rules, .now = now, .grace = store->grace};
	struct surroundings around = {
		.queue = store_queue_state(store, names_text(&store->names, task->queue))};
	struct name_set needed;

	names_set_members(&store->names, task->requires, &needed);
	if (task->state == TASK_READY) {
		around.disarmed = store->disarmed;
		around.opted_in = store_opts_in(store, task->queue);
		around.read_only = store->degraded;
		around.asked_for = served_lately(&store->served, task->queue, now.lease_ms);
		look_at_owner(store, task, &given, &around);
		for (uint32_t number = hot_next_holder(hot, 0); number != 0;
			number = hot_next_holder(hot, number))
			look_at_worker(store, task, &needed, hot_holder(hot, number), &around);
	}
	return task_why(task, &around, &given);
}
