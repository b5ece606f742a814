/*
 * What a worker connector would get if it claimed now: the decision of a claim by id, made without a turn.
 */
#include "base/take.h"
#include "store/turn/turn.h"

bool store_task_fits(const struct store *store, const struct task *task, const struct name_set *capabilities)
{
	unset struct name_set needed;

	if (task->executor != 0 || task->requires == 0)
		return task->executor == 0;
	names_set_members(&store->names, task->requires, &needed);
	return name_set_covers(capabilities, &needed);
}

/* As its claim would find it: a name that has ended, or that nobody knows, comes to life with the claim. */
static struct worker worker_as_claimant(const struct store *store, struct span id)
{
	struct worker worker = {0};

	if (!store_worker(store, id, &worker) || !worker_is_alive(&worker))
		worker.state = WORKER_ACTIVE;
	return worker;
}

bool store_offers(const struct store *store, int64_t seq, struct span worker_id, struct moment now)
{
	const struct given given = {.rules = &store->rules, .now = now, .grace = store->grace};
	struct worker worker = worker_as_claimant(store, worker_id);
	struct claimant by = {.worker = &worker, .slot = names_find(&store->names, worker_id), .named = true};
	unset struct name_set capabilities;
	unset struct task task;
	uint32_t place = index_find(&store->index, seq);

	if (place == MAP_NONE)
		return false;
	index_get(&store->index, place, &task);
	names_set_members(&store->names, worker.capabilities, &capabilities);
	by.opted_in = store_opts_in(store, task.queue);
	by.unfit = worker_id.len > 0 ? !store_task_fits(store, &task, &capabilities) : task.executor != 0;
	if (!task_is_claimed(&task) &&
		(store_task_limit(store, &task) != LIMIT_NONE || store_hold_keeps(store, worker_id, &task)))
		return false;
	return task_claim_refusal(&task, &by, turn_queue(&store->turn, task.queue), &given) ==
		REFUSED_NOTHING;
}
