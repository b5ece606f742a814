#include "sim/server.h"

#include <assert.h>
#include <errno.h>

#include "sim/audit.h"
#include "sim/judge.h"
#include "sim/sim.h"

enum {
	SWEEP_MS = 1000,
	IDLE_MAX_MS = 60000,
	THINK_MAX_MS = 20, /* how long what arrives waits for company */
};

void server_init(struct sim *sim)
{
	struct server *server = &sim->server;

	server->backend = memory_open();
	if (!server->backend)
		sim_abort("no memory");
	server->turn_at_ms = INT64_MAX;
	server->back_at_ms = INT64_MAX;
	server->woke_ms = INT64_MIN;
	model_init(&server->backup_model);
	server_start(sim);
	sim_at(sim, sim->clock.true_ms + SWEEP_MS, AGENDA_SWEEP, 0);
}

static void close_backend(struct backend *backend)
{
	if (backend)
		backend->ops->close(backend);
}

void server_done(struct sim *sim)
{
	struct server *server = &sim->server;

	if (server->store)
		store_close(server->store);
	else
		close_backend(server->backend);
	close_backend(server->backup);
	model_done(&server->backup_model);
	for (uint32_t i = 0; i < SERVER_BATCH_MAX; i++)
		wire_call_done(&server->calls[i]);
}

void server_want_turn(struct sim *sim, int64_t true_ms)
{
	if (true_ms >= sim->server.turn_at_ms)
		return;
	sim->server.turn_at_ms = true_ms;
	sim_at(sim, true_ms, AGENDA_TURN, 0);
}

static void want_back(struct sim *sim, int64_t in_ms)
{
	sim->server.back_at_ms = sim->clock.true_ms + in_ms;
	sim_at(sim, sim->server.back_at_ms, AGENDA_BACK, 0);
}

static struct store_options options_of(struct sim *sim)
{
	struct store_options options = store_options_default();

	options.rules = sim->options.rules;
	options.retention = sim->options.retention;
	options.now = clocks_now(&sim->clock);
	options.boot_hi = 1;
	options.boot_lo = sim->clock.boot;
	options.seed = rng_u64(&sim->rng);
	return options;
}

void server_start(struct sim *sim)
{
	struct server *server = &sim->server;
	struct store_options options = options_of(sim);

	memory_fail_commits_with(server->backend, 0);
	memory_set_full(server->backend, server->full);
	model_note_clock(&sim->model, clocks_now(&sim->clock).wall_ms);
	int r = store_open(server->backend, &options, &server->store);
	if (r < 0) {
		server->store = NULL;
		if (r != -ENOSPC || !server->full)
			sim_violate(sim, "D1", 0, "the store cannot be opened: %d", r);
		want_back(sim, 1000);
		return;
	}
	server->started_ms = options.now.lease_ms;
	server->started_true_ms = sim->clock.true_ms;
	server->woke_ms = INT64_MIN;
	server->degraded = store_is_degraded(server->store); /* a full disk is no reason not to start */
	server->count = 0;
	server->move_count = 0;
	server->scenery_moved = false;
	if (store_last_event(server->store) < sim->model.last_event)
		sim_violate(sim, "D1", 0, "%lld events were committed, %lld are there",
			(long long)sim->model.last_event, (long long)store_last_event(server->store));
	model_follow(sim);
	audit_all(sim);
	server_want_turn(sim, sim->clock.true_ms + 1);
}

static void forget_inbox(struct sim *sim)
{
	struct server *server = &sim->server;

	for (uint32_t i = 0; i < server->inbox_count; i++)
		network_unref(sim, server->inbox[i]);
	server->inbox_count = 0;
	server->return_count = 0;
}

void server_crash(struct sim *sim, int64_t down_ms)
{
	struct server *server = &sim->server;

	if (server->store)
		server->backend = memory_reopen(store_abandon(server->store));
	server->store = NULL;
	server->away = false;
	server->dies_after_commit = false;
	server->turn_at_ms = INT64_MAX;
	forget_inbox(sim);
	want_back(sim, down_ms);
}

void server_back(struct sim *sim)
{
	struct server *server = &sim->server;

	if (sim->clock.true_ms != server->back_at_ms)
		return;
	server->back_at_ms = INT64_MAX;
	faults_linger(sim);
	if (!server->store) {
		server_start(sim);
		return;
	}
	server->away = false;
	server->woke_ms = clocks_now(&sim->clock).lease_ms;
	store_woke(server->store, clocks_now(&sim->clock));
	server_want_turn(sim, sim->clock.true_ms);
}

bool server_receive(struct sim *sim, uint32_t slot)
{
	struct server *server = &sim->server;

	if (!server->store || server->inbox_count == SERVER_INBOX_MAX)
		return false;
	server->inbox[server->inbox_count++] = slot;
	if (!server->away)
		server_want_turn(sim, sim->clock.true_ms + rng_below(&sim->rng, THINK_MAX_MS));
	return true;
}

/* ---- a turn --------------------------------------------------------------------------------------- */

static void take_returns(struct server *server)
{
	for (uint32_t i = 0; i < server->return_count; i++) {
		const struct returned *returned = &server->returning[i];
		server->returning[i] = server->returns[i];
		server->slots[server->count] = SLAB_NONE;
		server->commands[server->count++] = (struct command){
			.kind = COMMAND_RETURN,
			.actor = SPAN("server"),
			.task = span_of(returned->task),
			.worker = span_of(returned->worker),
			.fence = returned->fence,
		};
	}
	server->return_count = 0;
}

/* ---- steps of bulk actions ---- */

struct step_look {
	struct sim *sim;
	const struct bulk *bulk;
	uint32_t count;
	int64_t seqs[SERVER_STEP_MAX], last;
};

/* The filter is the name of a queue. */
static int look_for_step(void *context, const struct task_outline *outline)
{
	struct step_look *look = context;

	look->last = outline->seq;
	if (span_equal(store_name(look->sim->server.store, outline->queue), look->bulk->filter))
		look->seqs[look->count++] = outline->seq;
	return 0;
}

static bool next_bulk(struct server *server, struct bulk_document *ret_document)
{
	for (int round = 0; round < 2; round++, server->last_bulk = 0) {
		while (store_next_bulk(server->store, &server->last_bulk, ret_document)) {
			if (ret_document->progress->state == BULK_RUNNING)
				return true;
		}
	}
	return false;
}

/* What stintd does between two turns; now and then the same step comes twice. */
static void take_step(struct sim *sim)
{
	struct server *server = &sim->server;
	struct bulk_document document;
	struct arena arena;
	struct task task;

	if (!store_has_bulk(server->store) || !next_bulk(server, &document))
		return;
	struct step_look look = {.sim = sim, .bulk = document.bulk};
	struct command *command = &server->commands[server->count];
	*command = (struct command){.kind = COMMAND_BULK_STEP, .actor = SPAN("server")};
	struct command_bulk *step = &command->bulk;
	step->bulk.number = document.bulk->number;
	step->from = step->to = document.progress->cursor;
	step->items = server->items;
	if (store_page_rows(server->store, true, &step->to, 1 + rng_below(&sim->rng, SERVER_STEP_MAX),
		    look_for_step, &look) < 0)
		return;
	arena_init(&arena, 1 << 20);
	for (uint32_t i = 0; i < look.count; i++) {
		if (store_read_columns(server->store, look.seqs[i], &arena, &task) == 0)
			server->items[step->item_count++] =
				(struct bulk_item){.seq = task.seq, .version = task.version};
	}
	arena_done(&arena);
	server->slots[server->count++] = SLAB_NONE;
	if (rng_chance(&sim->rng, 8)) {
		server->commands[server->count] = *command;
		server->slots[server->count++] = SLAB_NONE;
	}
}

static void take_requests(struct sim *sim)
{
	struct server *server = &sim->server;
	uint32_t most = sim->options.batch_max;
	uint32_t taken = server->inbox_count < most ? server->inbox_count : most;

	for (uint32_t i = 0; i < taken; i++) {
		const struct request *request = network_at(sim, server->inbox[i]);
		struct command *command = &server->commands[server->count];
		server->slots[server->count] = server->inbox[i];
		*command = request->command;
		if (request->path.len > 0)
			wire_begin(sim, &server->calls[server->count], request, command);
		server->count++;
	}
	server->inbox_count -= taken;
	memmove(server->inbox, server->inbox + taken, server->inbox_count * sizeof *server->inbox);
}

/* The claimant is gone before the reply: its claims go back with the next turn. */
static bool hang_up(struct sim *sim, uint32_t i)
{
	struct server *server = &sim->server;
	const struct result *result = &server->results[i];
	const struct request *request = network_at(sim, server->slots[i]);
	const struct actor *actor = &sim->crowd.actors[request->actor];

	if (result->claim_count == 0 || server->return_count + result->claim_count > SERVER_RETURNS_MAX)
		return false;
	if (sim->calm || actor->steady || !rng_chance(&sim->rng, sim->options.hang_up))
		return false;
	for (uint32_t j = 0; j < result->claim_count; j++) {
		struct returned *returned = &server->returns[server->return_count++];
		id_copy(returned->worker, request->command.worker);
		id_copy(returned->task, result->claims[j].id);
		returned->fence = result->claims[j].task.fence;
	}
	return true;
}

static void answer_all(struct sim *sim)
{
	struct server *server = &sim->server;

	for (uint32_t i = 0; i < server->count; i++) {
		if (server->slots[i] == SLAB_NONE || hang_up(sim, i))
			continue;
		const struct request *request = network_at(sim, server->slots[i]);
		struct reply reply = {0};
		if (request->path.len > 0)
			wire_finish(sim, &server->calls[i], request, &server->results[i], &reply);
		else
			reply_fill(&reply, &request->command, &server->results[i]);
		network_answer(sim, server->slots[i], &reply);
	}
}

static void forget_batch(struct sim *sim)
{
	struct server *server = &sim->server;

	for (uint32_t i = 0; i < server->count; i++) {
		if (server->slots[i] != SLAB_NONE)
			network_unref(sim, server->slots[i]);
	}
	server->count = 0;
}

/* In which state each operation finds its object. */
static uint32_t state_found(struct sim *sim, uint32_t i)
{
	const struct command *command = &sim->server.commands[i];
	const struct model *model = &sim->model;
	const struct model_worker *worker = model_worker(model, command->worker);
	const struct model_task *task;

	switch (command->kind) {
	case COMMAND_CREATE:
		task = model_task_by_id(model, command->create.id);
		return command->create.id.len > 0 && task ? task->fold.task.state : TASK_NOWHERE;
	case COMMAND_QUEUE_SET:
		return model->queues[word_find(word_queues, WORD_QUEUES, command->queue_set.queue)];
	case COMMAND_SLOT_CRASH:
	case COMMAND_SLOT_ENTER:
	case COMMAND_UNQUARANTINE:
		return model->quarantined[word_find(word_slots, WORD_SLOTS, command->slot)];
	case COMMAND_CLAIM_NEXT:
	case COMMAND_REGISTER:
	case COMMAND_BEAT:
	case COMMAND_QUIET:
	case COMMAND_TERMINATE:
	case COMMAND_LEAVE:
		return worker ? worker->state : WORKER_UNKNOWN;
	default:
		task = model_task_by_id(model, command->task);
		return task ? task->fold.task.state : TASK_NOWHERE;
	}
}

static void cover_batch(struct sim *sim)
{
	struct server *server = &sim->server;
	enum fault weather = faults_weather(sim);

	for (uint32_t i = 0; i < server->count; i++) {
		uint32_t slot = server->slots[i];
		bool again = slot != SLAB_NONE && network_at(sim, slot)->arrivals > 1;
		uint32_t state = state_found(sim, i);
		coverage_op(sim->coverage, server->commands[i].kind, state, weather);
		if (again)
			coverage_op(sim->coverage, server->commands[i].kind, state, COVERAGE_REPEAT);
	}
}

/* The server finds out that the disk is full, or has room again, in a turn or a sweep. */
static void note_degraded(struct sim *sim)
{
	struct server *server = &sim->server;
	bool degraded = store_is_degraded(server->store);

	if (server->degraded && !degraded)
		server->woke_ms = clocks_now(&sim->clock).lease_ms;
	server->was_degraded = server->degraded;
	server->degraded = degraded;
}

static void plan_next(struct sim *sim)
{
	struct server *server = &sim->server;
	int64_t idle_ms = store_idle_ms(server->store, clocks_now(&sim->clock));

	if (server->inbox_count > 0 || server->return_count > 0 || store_has_bulk(server->store))
		idle_ms = 1;
	else if (server->degraded)
		idle_ms = SWEEP_MS;
	if (idle_ms < 1)
		idle_ms = 1;
	if (idle_ms > IDLE_MAX_MS)
		idle_ms = IDLE_MAX_MS;
	server_want_turn(sim, sim->clock.true_ms + idle_ms);
}

/* A fault that was not asked for is a violation; one that was ends the process. */
static void die_of(struct sim *sim, int fault)
{
	if (fault != -EIO)
		sim_violate(sim, "D5", 0, "a turn failed: %d %s", fault, store_complaint(sim->server.store));
	if (!store_is_dead(sim->server.store))
		sim_violate(sim, "D5", 0, "a commit failed and the store goes on");
	forget_batch(sim);
	server_crash(sim, sim_paced_between(sim, 0, 5000));
}

void server_turn(struct sim *sim)
{
	struct server *server = &sim->server;

	if (!server->store || server->away || sim->clock.true_ms != server->turn_at_ms)
		return;
	server->turn_at_ms = INT64_MAX;
	server->before = sim->model.last_event;
	server->count = 0;
	server->move_count = 0;
	server->scenery_moved = false;
	take_step(sim);
	take_returns(server);
	take_requests(sim);
	cover_batch(sim);
	model_note_clock(&sim->model, clocks_now(&sim->clock).wall_ms);
	int r = store_turn(
		server->store, clocks_now(&sim->clock), server->commands, server->count, server->results);
	if (r < 0) {
		die_of(sim, r);
		return;
	}
	note_degraded(sim);
	model_follow(sim);
	judge_results(sim);
	audit_turn(sim);
	if (server->dies_after_commit) {
		forget_batch(sim);
		server_crash(sim, sim_paced_between(sim, 0, 20000));
		return;
	}
	answer_all(sim);
	forget_batch(sim);
	plan_next(sim);
}

void server_sweep(struct sim *sim)
{
	struct server *server = &sim->server;

	sim_at(sim, sim->clock.true_ms + SWEEP_MS, AGENDA_SWEEP, 0);
	if (!server->store || server->away)
		return;
	server->count = 0;
	server->move_count = 0;
	server->scenery_moved = false;
	model_note_clock(&sim->model, clocks_now(&sim->clock).wall_ms);
	int r = store_sweep(server->store, clocks_now(&sim->clock));
	if (r < 0) {
		die_of(sim, r);
		return;
	}
	note_degraded(sim);
	model_follow(sim);
}

/* ---- backup and restore --------------------------------------------------------------------------- */

void server_backup(struct sim *sim)
{
	struct server *server = &sim->server;

	if (!server->store)
		return;
	close_backend(server->backup);
	server->backup = memory_copy(server->backend);
	if (!server->backup)
		sim_abort("no memory");
	model_copy(&server->backup_model, &sim->model);
	server->backup_history = sim->history.text.len;
}

/* The disk is replaced by the copy. What happened since never happened; what was told since may be wrong. */
void server_restore(struct sim *sim)
{
	struct server *server = &sim->server;
	struct model *model = &sim->model;
	uint64_t hash = model->hash;
	uint32_t era = model->era + 1;
	int64_t wall_high_ms = model->wall_high_ms;

	if (!server->backup || !server->store)
		return;
	server_crash(sim, sim_paced_between(sim, 0, 20000));
	close_backend(server->backend);
	server->backend = server->backup;
	server->backup = NULL;
	model_copy(model, &server->backup_model);
	model->hash = hash;
	model->era = era;
	model->wall_high_ms = wall_high_ms;
	for (int slot = 0; slot < WORD_SLOTS; slot++) /* their times may be of another boot */
		model_forget_crashes(model, slot);
	history_truncate(&sim->history, server->backup_history);
}
