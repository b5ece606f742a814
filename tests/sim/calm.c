#include "sim/calm.h"

#include "sim/sim.h"

enum {
	CALM_MS = 4 * 3600 * 1000, /* at pace 100 % */
	CALM_STEPS = 400000,
};

/* The machine is well again, and nobody's time lies in a future that will not come. */
static void recover(struct sim *sim)
{
	struct server *server = &sim->server;
	struct clocks *clock = &sim->clock;

	sim->calm = true;
	server->dies_after_commit = false;
	server->full = false;
	memory_set_full(server->backend, false);
	memory_fail_commits_with(server->backend, 0);
	clock->wall_offset_ms = clock->wall_offset_high_ms;
}

static void wake_everybody(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->crowd.count; i++) {
		struct actor *actor = &sim->crowd.actors[i];
		if (actor->wake_ms == INT64_MAX)
			actor_wake_in(sim, actor, 1);
	}
}

static void blame_restless(struct sim *sim)
{
	const struct model *model = &sim->model;

	if (model->live_count == 0) {
		sim_violate(sim, "L1", 0, "a bulk action does not end");
		return;
	}
	const struct model_task *task = &model->tasks[model->live[0]];
	sim_violate(sim, "L1", task->fold.task.seq,
		"%u tasks do not come to rest; this one is %s, held by '%s'", model->live_count,
		task_state_name(task->fold.task.state), task->fold.holder);
}

void calm_run(struct sim *sim)
{
	int64_t until_ms = sim->clock.true_ms + sim_paced(sim, CALM_MS);
	uint64_t steps = sim->step + CALM_STEPS;

	recover(sim);
	wake_everybody(sim);
	while (sim->model.live_count > 0 || !sim->server.store || store_has_bulk(sim->server.store)) {
		if (!sim_step(sim))
			return;
		if (sim->clock.true_ms > until_ms || sim->step > steps) {
			blame_restless(sim);
			return;
		}
	}
}
