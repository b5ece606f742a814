#include "sim/faults.h"

#include <errno.h>

#include "sim/sim.h"

enum {
	WEATHER_MS = 40000, /* so long a fault is felt */
};

enum fault faults_weather(const struct sim *sim)
{
	if (sim->server.full)
		return FAULT_DISK_FULL;
	return sim->clock.true_ms < sim->faults.until_ms ? sim->faults.last : FAULT_NONE;
}

void faults_linger(struct sim *sim)
{
	sim->faults.until_ms = sim->clock.true_ms + sim_paced(sim, WEATHER_MS);
}

static void reboot(struct sim *sim)
{
	int64_t down_ms = sim_paced_between(sim, 2000, 60000);

	server_crash(sim, down_ms);
	sim->clock.boot++;
	for (int slot = 0; slot < WORD_SLOTS; slot++)
		model_forget_crashes(&sim->model, slot);
	sim->clock.booted_ms = sim->clock.true_ms - rng_between(&sim->rng, 0, 5000);
}

static void go_away(struct sim *sim, int64_t ms)
{
	struct server *server = &sim->server;

	if (!server->store || server->away)
		return;
	server->away = true;
	server->turn_at_ms = INT64_MAX;
	server->back_at_ms = sim->clock.true_ms + ms;
	sim_at(sim, server->back_at_ms, AGENDA_BACK, 0);
}

static void set_wall(struct sim *sim)
{
	int64_t most_ms = sim->options.wall_jump_max_ms;

	if (rng_chance(&sim->rng, 2))
		most_ms = sim_paced(sim, 60000);
	sim->clock.wall_offset_ms += rng_between(&sim->rng, -most_ms, most_ms);
	if (sim->clock.wall_offset_high_ms < sim->clock.wall_offset_ms)
		sim->clock.wall_offset_high_ms = sim->clock.wall_offset_ms;
}

static void fill_disk(struct sim *sim)
{
	if (sim->server.full)
		return;
	sim->server.full = true;
	memory_set_full(sim->server.backend, true);
	sim_at(sim, sim->clock.true_ms + sim_paced_between(sim, 2000, 60000), AGENDA_RELIEF, 0);
}

void faults_relieve(struct sim *sim)
{
	sim->server.full = false;
	memory_set_full(sim->server.backend, false);
}

static void strike(struct sim *sim, enum fault fault)
{
	switch (fault) {
	case FAULT_CRASH:
		server_crash(sim, sim_paced_between(sim, 0, 20000));
		return;
	case FAULT_CRASH_UNSAID:
		sim->server.dies_after_commit = true;
		return;
	case FAULT_REBOOT:
		reboot(sim);
		return;
	case FAULT_SUSPEND:
		go_away(sim, sim_paced_between(sim, 5000, 400000));
		return;
	case FAULT_STALL:
		go_away(sim, sim_paced_between(sim, 2000, 15000));
		return;
	case FAULT_WALL_JUMP:
		set_wall(sim);
		return;
	case FAULT_DISK_FULL:
		fill_disk(sim);
		return;
	case FAULT_COMMIT_FAULT:
		memory_fail_commits_with(sim->server.backend, -EIO);
		return;
	case FAULT_BACKUP:
		server_backup(sim);
		return;
	case FAULT_RESTORE:
		server_restore(sim);
		return;
	case FAULT_NONE:
	case FAULT_COUNT:
		return;
	}
}

static enum fault draw(struct sim *sim)
{
	uint32_t total = 0;

	for (int fault = 0; fault < FAULT_COUNT; fault++)
		total += sim->options.fault_weight[fault];
	if (total == 0)
		return FAULT_NONE;
	uint32_t at = rng_below(&sim->rng, total);
	int fault = 0;
	while (at >= sim->options.fault_weight[fault])
		at -= sim->options.fault_weight[fault++];
	return (enum fault)fault;
}

void faults_step(struct sim *sim)
{
	if (sim->calm || !rng_chance(&sim->rng, sim->options.fault_one_in))
		return;
	enum fault fault = draw(sim);
	sim->faults.count[fault]++;
	strike(sim, fault);
	if (fault == FAULT_BACKUP || fault == FAULT_NONE)
		return;
	sim->faults.last = fault;
	faults_linger(sim);
}
