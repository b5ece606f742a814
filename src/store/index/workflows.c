/*
 * Workflows that somebody configured, and the numbers by which their tasks know them.
 *
 * A number is given out once and stays with its name for ever: it is kept as a row of task 0, written with the start that
 * saw the name first. A name that the configuration no longer has keeps its number too; its tasks stand where they are,
 * because no rule moves them, until it is back or a person ends them.
 */
#include <errno.h>
#include <string.h>

#include "store/turn/turn.h"
#include "store/read/sound.h"

_Static_assert(WORKFLOW_MAX <= 64, "workflows_new has a bit for each");

static const int64_t no_task = 0;

static void set_plan(struct store *store, uint32_t number, struct span name, const struct workflow_plan *plan)
{
	char *kept = store->workflow_names[number];

	memcpy(kept, name.data, name.len);
	store->workflows.plans[number] = *plan;
	store->workflows.plans[number].name = (struct span){kept, name.len};
}

static int load_names(struct store *store, struct arena *arena)
{
	struct span name;
	int r = 0;

	for (uint32_t number = WORKFLOW_CONFIGURED; number < WORKFLOW_MAX; number++) {
		r = store_rows(store, get_extra, no_task, EXTRA_WORKFLOW, number, arena, &name);
		if (r < 0)
			break;
		if (name.len == 0 || name.len > WORKFLOW_NAME_MAX)
			return store_damaged(store, "task_extra", no_task);
		set_plan(store, number, name, &workflow_plan_unknown);
	}
	return r == -ENOENT ? 0 : r;
}

/* The number of the name, or the first free number; WORKFLOW_MAX: all numbers are taken. */
static uint32_t number_of(const struct store *store, struct span name)
{
	const struct workflow_plan *plans = store->workflows.plans;
	uint32_t number = WORKFLOW_CONFIGURED;

	while (number < WORKFLOW_MAX && plans[number].rules && !span_equal(plans[number].name, name))
		number++;
	return number;
}

int workflows_load(struct store *store, const struct store_options *options)
{
	struct arena arena;

	store->workflows = workflows_built_in;
	arena_init(&arena, 1 << 20);
	int r = load_names(store, &arena);
	arena_done(&arena);
	for (uint32_t i = 0; r == 0 && i < options->workflow_count; i++) {
		const struct workflow_plan *plan = &options->workflows[i];
		uint32_t number = number_of(store, plan->name);
		if (number == WORKFLOW_MAX)
			return -E2BIG;
		if (!store->workflows.plans[number].rules)
			store->workflows_new |= UINT64_C(1) << number;
		set_plan(store, number, plan->name, plan);
	}
	return r;
}

int workflows_keep(struct turn *turn)
{
	const struct store *store = turn->store;
	int r = 0;

	for (uint32_t number = WORKFLOW_CONFIGURED; r == 0 && number < WORKFLOW_MAX; number++) {
		if (store->workflows_new & UINT64_C(1) << number)
			r = turn_put(turn, put_extra, no_task, EXTRA_WORKFLOW, number,
				store->workflows.plans[number].name);
	}
	return r;
}

const struct workflows *store_workflows(const struct store *store)
{
	return &store->workflows;
}
