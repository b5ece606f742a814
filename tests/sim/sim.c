#include "proof/check.h"
#include "sim/sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "checker/checker.h"
#include "sim/audit.h"
#include "sim/calm.h"

#define FIRST_TRUE_MS INT64_C(1000000)
#define FIRST_WALL_MS INT64_C(1800000000000)

enum {
	SLICE_EVENTS = 24, /* of the last history of a task, shown with a violation */
};

_Noreturn void sim_abort(const char *why)
{
	fprintf(stderr, "stint-sim: %s\n", why);
	exit(2);
}

void sim_violate(struct sim *sim, const char *invariant, int64_t task, const char *format, ...)
{
	struct violation *violation = &sim->violation;
	va_list args;

	if (violation->found)
		return;
	violation->found = true;
	violation->invariant = invariant;
	violation->task = task;
	va_start(args, format);
	vsnprintf(violation->sentence, sizeof violation->sentence, format, args);
	va_end(args);
}

int64_t sim_paced(const struct sim *sim, int64_t ms)
{
	return ms * sim->options.pace_percent / 100;
}

int64_t sim_paced_between(struct sim *sim, int64_t lo_ms, int64_t hi_ms)
{
	return sim_paced(sim, rng_between(&sim->rng, lo_ms, hi_ms));
}

void sim_at(struct sim *sim, int64_t true_ms, enum agenda what, uint32_t number)
{
	struct heap_entry entry = {.at = true_ms, .what = (uint64_t)what << 32 | number};

	if (heap_push(&sim->agenda, entry) < 0)
		sim_abort("no memory");
}

static void perform(struct sim *sim, enum agenda what, uint32_t number)
{
	switch (what) {
	case AGENDA_ARRIVE:
		network_arrive(sim, number);
		return;
	case AGENDA_HEAR:
		network_hear(sim, number);
		return;
	case AGENDA_PATIENCE:
		network_lose_patience(sim, number);
		return;
	case AGENDA_ACT:
		actor_act(sim, &sim->crowd.actors[number]);
		return;
	case AGENDA_TURN:
		server_turn(sim);
		return;
	case AGENDA_SWEEP:
		server_sweep(sim);
		return;
	case AGENDA_BACK:
		server_back(sim);
		return;
	case AGENDA_RELIEF:
		faults_relieve(sim);
		return;
	}
}

bool sim_step(struct sim *sim)
{
	struct heap_entry entry = heap_pop(&sim->agenda);

	sim->step++;
	sim->clock.true_ms = entry.at;
	perform(sim, (enum agenda)(entry.what >> 32), (uint32_t)entry.what);
	if (!sim->violation.found)
		faults_step(sim);
	return !sim->violation.found;
}

/* ---- the verdict ---------------------------------------------------------------------------------- */

static int put_row(void *context, const struct task *task, struct span holder)
{
	struct sim *sim = context;
	char id[ID_MAX];
	int len = snprintf(id, sizeof id, "t%" PRId64, task->seq);

	if (history_row(&sim->history, sim->server.store, (struct span){id, (size_t)len}, task, holder) < 0)
		sim_abort("the history is too long");
	return 0;
}

static void put_rows(struct sim *sim)
{
	int64_t after = 0;

	for (uint32_t i = 0; i < sim->model.task_count; i++) {
		const struct model_task *task = &sim->model.tasks[i];
		if (task->fold.task.state == TASK_NOWHERE || task->fold.task.seq <= after)
			continue;
		store_page_tasks(sim->server.store, task->fold.task.seq - 1, 1, put_row, sim);
	}
	history_quiet(&sim->history);
}

static void set_limits(struct checker *checker, const struct rules *rules)
{
	checker_set(checker, "retry_base_ms", rules->retry_base_ms);
	checker_set(checker, "retry_max_ms", rules->retry_max_ms);
	checker_set(checker, "crash_budget", rules->crash_budget);
	checker_set(checker, "interruption_budget", rules->interruption_budget);
	checker_set(checker, "verify_after_ms", rules->verify_after_ms);
	checker_set(checker, "restart_grace_ms", rules->restart_grace_ms);
}

static int read_history(struct checker *checker, struct span text)
{
	const char *at = text.data;
	const char *end = text.data + text.len;
	int verdict = CHECKER_OK;

	while (at < end && verdict == CHECKER_OK) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		verdict = checker_line(checker, at, (size_t)(newline - at));
		at = newline + 1;
	}
	return verdict == CHECKER_OK ? checker_finish(checker) : verdict;
}

static void write_history(const struct sim *sim)
{
	FILE *file = sim->options.history_path ? fopen(sim->options.history_path, "we") : NULL;

	if (!file)
		return;
	fwrite(sim->history.text.data, 1, sim->history.text.len, file);
	fclose(file);
}

/* A judge that shares no code with the store reads the same history. */
static void ask_checker(struct sim *sim)
{
	struct checker *checker = checker_new(sim->options.states_md);

	if (!checker)
		sim_abort("no table of moves: run where spec/states.md is, or name it with --states");
	set_limits(checker, &sim->options.rules);
	if (read_history(checker, buf_span(&sim->history.text)) != CHECKER_OK)
		sim_violate(sim, "checker", 0, "%s", checker_complaint(checker));
	checker_free(checker);
}

static void show_slice(const struct sim *sim)
{
	char field[ID_MAX + 8];
	const char *shown[SLICE_EVENTS];
	uint32_t count = 0;
	const char *at = sim->history.text.data;
	const char *end = at + sim->history.text.len;
	size_t len = (size_t)snprintf(field, sizeof field, "\tt%" PRId64 "\t", sim->violation.task);

	for (const char *newline; at < end; at = newline + 1) {
		newline = memchr(at, '\n', (size_t)(end - at));
		bool about = sim->violation.task == 0 || memmem(at, (size_t)(newline - at), field, len);
		if (about && *at == 'E')
			shown[count++ % SLICE_EVENTS] = at;
	}
	uint32_t first = count > SLICE_EVENTS ? count - SLICE_EVENTS : 0;
	for (uint32_t i = first; i < count; i++) {
		const char *line = shown[i % SLICE_EVENTS];
		printf("  %.*s\n", (int)(strchr(line, '\n') - line), line);
	}
}

static void show_violation(struct sim *sim)
{
	const struct violation *violation = &sim->violation;
	struct moment now = clocks_now(&sim->clock);

	if (buf_put_byte(&sim->history.text, 0) == 0) /* so that it can be read as a string */
		sim->history.text.len--;
	options_print(&sim->options);
	printf("VIOLATION of %s at seed %" PRIu64 " step %" PRIu64 ", task t%" PRId64 ": %s\n",
		violation->invariant, sim->options.seed, sim->step, violation->task, violation->sentence);
	printf("  now: lease %" PRId64 " wall %" PRId64 " boot b%" PRIu64 "; weather %s; started %" PRId64
	       "\n",
		now.lease_ms, now.wall_ms, sim->clock.boot, fault_name(faults_weather(sim)),
		sim->server.started_ms);
	if (strcmp(violation->invariant, "checker") != 0) /* which shows a slice of its own */
		show_slice(sim);
	printf("replay: ./dev sim --seed %" PRIu64 " --steps %" PRIu64 "\n", sim->options.seed,
		sim->options.steps);
}

/* ---- one seed ------------------------------------------------------------------------------------- */

static void sim_init(struct sim *sim, const struct sim_options *options, struct coverage *coverage)
{
	sim->options = *options;
	sim->coverage = coverage;
	rng_seed(&sim->rng, options->seed ^ UINT64_C(0x9e3779b97f4a7c15));
	sim->clock.true_ms = FIRST_TRUE_MS;
	sim->clock.booted_ms = FIRST_TRUE_MS - rng_between(&sim->rng, 1000, 500000);
	sim->clock.wall_offset_ms = FIRST_WALL_MS - FIRST_TRUE_MS;
	sim->clock.wall_offset_high_ms = sim->clock.wall_offset_ms;
	sim->clock.boot = 1;
	heap_init(&sim->agenda);
	network_init(&sim->network);
	model_init(&sim->model);
	history_init(&sim->history);
	crowd_init(sim);
	server_init(sim);
}

static void sim_done(struct sim *sim)
{
	server_done(sim);
	history_done(&sim->history);
	model_done(&sim->model);
	network_done(&sim->network);
	heap_done(&sim->agenda);
}

static void conclude(struct sim *sim)
{
	if (sim->violation.found)
		return;
	audit_all(sim);
	model_check_acks(sim);
	put_rows(sim);
	if (!sim->violation.found)
		ask_checker(sim);
}

int sim_run(
	const struct sim_options *options, struct coverage *coverage, uint64_t *ret_hash, uint64_t *ret_steps)
{
	struct sim *sim = calloc(1, sizeof *sim);

	if (!sim)
		sim_abort("no memory");
	sim_init(sim, options, coverage);
	while (!sim->violation.found && sim->step < options->steps)
		sim_step(sim);
	if (!sim->violation.found)
		calm_run(sim);
	conclude(sim);
	bool bad = sim->violation.found;
	if (bad)
		show_violation(sim);
	write_history(sim);
	*ret_hash = sim->model.hash;
	*ret_steps = sim->step;
	sim_done(sim);
	free(sim);
	return bad ? -EPROTO : 0;
}
