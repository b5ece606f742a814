#include "powerloss/script.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct script {
	struct model *model;
	struct moment now;
	struct rng *rng;
	struct arena *arena;
};

static void *must_alloc(struct script *script, size_t bytes)
{
	void *memory = arena_alloc(script->arena, bytes);

	if (!memory)
		abort();
	return memory;
}

__attribute__((format(printf, 2, 3))) static struct span text(struct script *script, const char *format, ...)
{
	char *room = must_alloc(script, MODEL_ID_MAX);
	va_list args;

	va_start(args, format);
	int len = vsnprintf(room, MODEL_ID_MAX, format, args);
	va_end(args);
	return (struct span){room, (size_t)len};
}

static struct span bytes(struct script *script, uint32_t max)
{
	size_t len = rng_below(script->rng, max) + 1;
	char *room = must_alloc(script, len);
	uint64_t word = rng_u64(script->rng);

	for (size_t i = 0; i < len; i++)
		room[i] = (char)(word >> (i % 8 * 8));
	return (struct span){room, len};
}

/* Mostly short, sometimes several pages. */
static struct span body(struct script *script)
{
	if (rng_chance(script->rng, script->model->is_heavy ? 2 : 60))
		return bytes(script, 60000);
	return bytes(script, rng_chance(script->rng, 8) ? 9000 : 300);
}

static struct name_list one_name(struct script *script, struct span name)
{
	struct span *items = must_alloc(script, sizeof(*items));

	*items = name;
	return (struct name_list){items, 1};
}

static const struct told_task *any_task(struct script *script)
{
	const struct model *model = script->model;

	if (model->task_count == 0)
		return NULL;
	if (rng_chance(script->rng, 2)) /* one of the latest */
		return &model->tasks[model->task_count - 1 -
			rng_below(script->rng, model->task_count < 8 ? model->task_count : 8)];
	return &model->tasks[rng_below(script->rng, model->task_count)];
}

/* A task that somebody holds, if one is found soon. */
static const struct told_task *held_task(struct script *script)
{
	const struct told_task *task = NULL;

	for (int i = 0; i < 12; i++) {
		task = any_task(script);
		if (!task || task->holder[0])
			return task;
	}
	return task;
}

static struct told_worker *any_worker(struct script *script)
{
	return &script->model->workers[rng_below(script->rng, MODEL_WORKERS)];
}

/* ---- producers and operators ------------------------------------------------------------------ */

static void draw_create(struct script *script, struct command *command)
{
	struct command_create *create = &command->create;
	struct rng *rng = script->rng;
	uint64_t name = ++script->model->names_given;
	const struct told_task *parent = any_task(script);

	command->kind = COMMAND_CREATE;
	create->queue = model_queue(rng_below(rng, MODEL_QUEUES));
	create->body = body(script);
	create->priority = (int32_t)rng_below(rng, 3) * 50 - 50;
	if (rng_chance(rng, 4))
		create->id = text(script, "own-%llu", (unsigned long long)name);
	if (parent && rng_chance(rng, 4))
		create->parents = one_name(script, span_of(parent->id));
	if (rng_chance(rng, 6))
		create->unique_key = text(script, "key-%u", rng_below(rng, 20));
	if (rng_chance(rng, 6))
		create->not_before_ms = script->now.wall_ms + rng_below(rng, 3000);
	if (rng_chance(rng, 12))
		create->start_by_ms = script->now.wall_ms + 1 + rng_below(rng, 5000);
	if (rng_chance(rng, 8))
		create->requires = one_name(script, SPAN("gpu"));
	if (rng_chance(rng, 4)) {
		create->idempotency_key =
			text(script, "request-%llu", (unsigned long long)(name - rng_below(rng, 2)));
		memset(create->fingerprint, 7, sizeof(create->fingerprint));
	}
	create->parked = rng_chance(rng, 10);
	if (rng_chance(rng, 6))
		create->group = text(script, "g%u", rng_below(rng, 3));
	if (rng_chance(rng, 10))
		create->blocked_by_groups = one_name(script, text(script, "g%u", rng_below(rng, 3)));
	if (rng_chance(rng, 6))
		create->credential = SPAN("team");
}

static void draw_update(struct script *script, struct command *command)
{
	command->kind = COMMAND_UPDATE;
	command->update.patch.set_priority = rng_chance(script->rng, 2);
	command->update.patch.priority = (int32_t)rng_below(script->rng, 100);
	command->update.set_body = rng_chance(script->rng, 2);
	command->update.body = body(script);
}

static void draw_operator(struct script *script, struct command *command)
{
	static const enum command_kind kinds[] = {COMMAND_CANCEL, COMMAND_RETRY, COMMAND_PARK, COMMAND_UNPARK,
		COMMAND_ANSWER, COMMAND_PASS, COMMAND_REJECT, COMMAND_UPDATE};
	const struct told_task *task = any_task(script);

	if (!task) {
		draw_create(script, command);
		return;
	}
	command->kind = kinds[rng_below(script->rng, sizeof(kinds) / sizeof(kinds[0]))];
	command->task = span_of(task->id);
	if (command->kind == COMMAND_UPDATE)
		draw_update(script, command);
	else if (rng_chance(script->rng, 2))
		command->note = bytes(script, 60);
	if (command->kind == COMMAND_ANSWER)
		command->data = bytes(script, 60);
}

static void draw_queue(struct script *script, struct command *command)
{
	command->kind = COMMAND_QUEUE_SET;
	command->queue_set.queue = model_queue(rng_below(script->rng, MODEL_QUEUES));
	/* mostly open, or there would soon be nothing to do */
	command->queue_set.state =
		rng_chance(script->rng, 3) ? (enum queue_state)rng_below(script->rng, 3) : QUEUE_OPEN;
}

/* A few schedules that make tasks by themselves, change and go. */
static void draw_schedule(struct script *script, struct command *command)
{
	static const enum command_kind kinds[] = {COMMAND_SCHEDULE_PUT, COMMAND_SCHEDULE_PUT,
		COMMAND_SCHEDULE_RUN, COMMAND_SCHEDULE_PAUSE, COMMAND_SCHEDULE_RESUME,
		COMMAND_SCHEDULE_REMOVE};
	uint32_t which = rng_below(script->rng, 4);
	struct command_schedule *schedule = &command->schedule;

	command->kind = kinds[rng_below(script->rng, sizeof kinds / sizeof *kinds)];
	schedule->schedule.id = text(script, "s%u", which);
	if (command->kind != COMMAND_SCHEDULE_PUT)
		return;
	struct command_create *create = must_alloc(script, sizeof *create);
	*create = (struct command_create){
		.queue = model_queue(rng_below(script->rng, MODEL_QUEUES)), .body = bytes(script, 300)};
	schedule->create = create;
	schedule->schedule.task = SPAN("{}");
	schedule->schedule.kind = PLAN_EVERY;
	schedule->schedule.every_ms = rng_between(script->rng, 1000, 30000);
	schedule->schedule.overlap = (enum overlap)which;
	schedule->changes = rng_chance(script->rng, 3);
}

/* One change for all tasks; its steps are taken between two turns, see life.c. Groups close, accounts are held. */
static void draw_many(struct script *script, struct command *command)
{
	static const enum bulk_action actions[] = {
		BULK_RETRY, BULK_CANCEL, BULK_PARK, BULK_UNPARK, BULK_PRIORITY, BULK_PURGE};
	struct bulk *bulk = &command->bulk.bulk;

	switch (rng_below(script->rng, 4)) {
	case 0:
		command->kind = COMMAND_GROUP_CLOSE;
		command->group.name = text(script, "g%u", rng_below(script->rng, 3));
		return;
	case 1:
		command->kind = rng_chance(script->rng, 2) ? COMMAND_HOLD_SET : COMMAND_HOLD_LIFT;
		command->hold.credential = SPAN("team");
		if (command->kind == COMMAND_HOLD_SET)
			command->hold.until_ms = script->now.wall_ms + 1 + rng_below(script->rng, 5000);
		return;
	default:
		command->kind = rng_chance(script->rng, 8) ? COMMAND_BULK_STOP : COMMAND_BULK_START;
		bulk->number = 1 + rng_below(script->rng, 8);
		bulk->action = actions[rng_below(script->rng, sizeof actions / sizeof *actions)];
		bulk->filter = SPAN("all");
		bulk->priority = (int32_t)rng_below(script->rng, 5);
	}
}

/* ---- workers ---------------------------------------------------------------------------------- */

static void draw_claim(struct script *script, struct command *command)
{
	const struct told_task *task = any_task(script);
	struct rng *rng = script->rng;

	command->worker = span_of(any_worker(script)->id);
	command->kind = task && rng_chance(rng, 4) ? COMMAND_CLAIM : COMMAND_CLAIM_NEXT;
	if (command->kind == COMMAND_CLAIM)
		command->task = span_of(task->id);
	command->claim.any_executor = true;
	command->claim.max = 1 + rng_below(rng, rng_chance(rng, 4) ? 20 : 3);
	command->claim.takes_ready = true;
	command->claim.takes_pending = rng_chance(rng, 4);
	command->claim.resumes = rng_chance(rng, 4);
	command->claim.confirms = rng_chance(rng, 3);
	command->claim.lease_ms = rng_chance(rng, 2) ? 5000 + rng_below(rng, 60000) : 0;
	if (rng_chance(rng, 2))
		command->claim.capabilities = one_name(script, SPAN("gpu"));
	if (rng_chance(rng, 3))
		command->claim.queues = one_name(script, model_queue(rng_below(rng, MODEL_QUEUES)));
}

static void draw_failure(struct script *script, struct failure *failure)
{
	static const enum failure_code codes[] = {CODE_OTHER, CODE_EXECUTION_ERROR, CODE_TASK_TIMEOUT,
		CODE_WORKER_CRASHED, CODE_WORKER_INIT_FAILED, CODE_QUOTA, CODE_BAD_WORKDIR};

	failure->code = codes[rng_below(script->rng, sizeof(codes) / sizeof(codes[0]))];
	failure->klass = failure_code_class(failure->code);
	failure->no_retry = rng_chance(script->rng, 6);
	if (failure->code == CODE_QUOTA)
		failure->retry_at_ms = script->now.wall_ms + 1000;
}

static void draw_report(struct script *script, struct command *command)
{
	static const enum command_kind kinds[] = {COMMAND_PROGRESS, COMMAND_PROGRESS, COMMAND_COMPLETE,
		COMMAND_COMPLETE, COMMAND_COMPLETE, COMMAND_FAIL, COMMAND_FAIL, COMMAND_REVIEW, COMMAND_BLOCK,
		COMMAND_ASK, COMMAND_WAIT, COMMAND_RELEASE, COMMAND_RETURN};
	const struct told_task *task = held_task(script);
	struct rng *rng = script->rng;

	if (!task) {
		draw_create(script, command);
		return;
	}
	command->kind = kinds[rng_below(rng, sizeof(kinds) / sizeof(kinds[0]))];
	command->task = span_of(task->id);
	command->worker = task->holder[0] ? span_of(task->holder) : span_of(any_worker(script)->id);
	command->fence = rng_chance(rng, 20) ? task->task.fence - 1 : task->task.fence;
	command->by_name = command->kind != COMMAND_RETURN && rng_chance(rng, 12);
	if (!rng_chance(rng, 3))
		command->data = bytes(script, rng_chance(rng, 10) ? 9000 : 200);
	if (command->kind == COMMAND_FAIL || command->kind == COMMAND_BLOCK)
		draw_failure(script, &command->failure);
	if (command->kind == COMMAND_RELEASE)
		command->delay_ms = rng_below(rng, 2000);
}

/* The ids of what the worker holds, or of anything. */
static struct name_list some_tasks(struct script *script, const struct told_worker *worker)
{
	uint32_t count = rng_below(script->rng, 4);
	struct span *items = must_alloc(script, (count + 1) * sizeof(*items));
	uint32_t used = 0;

	for (uint32_t i = 0; i < 8 * count && used < count; i++) {
		const struct told_task *task = held_task(script);

		if (task && (strcmp(task->holder, worker->id) == 0 || rng_chance(script->rng, 20)))
			items[used++] = span_of(task->id);
	}
	return (struct name_list){items, used};
}

static void draw_beat(struct script *script, struct command *command)
{
	struct told_worker *worker = any_worker(script);
	struct command_beat *beat = &command->beat;
	uint32_t slot = (uint32_t)(worker - script->model->workers);

	command->kind = rng_chance(script->rng, 6) ? COMMAND_REGISTER : COMMAND_BEAT;
	command->worker = span_of(worker->id);
	beat->has_token = worker->is_registered;
	beat->token = worker->token;
	beat->lease_ms = 5000 + rng_below(script->rng, 60000);
	beat->any_executor = true;
	if (!worker->is_registered || rng_chance(script->rng, 6)) {
		beat->describes = true;
		beat->slot = text(script, "slot-%u", slot);
		beat->process = (struct command_process){SPAN("host"), 1, 2, slot + 1, 7};
		beat->capabilities = one_name(script, SPAN("gpu"));
		beat->max_concurrent = 20;
		beat->metadata = text(script, "{\"n\":%u}", rng_below(script->rng, 100));
	}
	beat->bound = some_tasks(script, worker);
	if (rng_chance(script->rng, 3))
		beat->unbound = some_tasks(script, worker);
}

static void draw_worker(struct script *script, struct command *command)
{
	struct told_worker *worker = any_worker(script);

	command->worker = span_of(worker->id);
	switch (rng_below(script->rng, 5)) {
	case 0:
		command->kind = COMMAND_QUIET;
		return;
	case 1:
		command->kind = COMMAND_TERMINATE;
		return;
	case 2:
		command->kind = COMMAND_LEAVE;
		command->leave = rng_chance(script->rng, 2) ? WORKER_SHUTDOWN : WORKER_TERMINATED;
		return;
	case 3:
		command->kind = COMMAND_SLOT_CRASH;
		break;
	default:
		command->kind = COMMAND_UNQUARANTINE;
		break;
	}
	command->slot = text(script, "slot-%u", (uint32_t)(worker - script->model->workers));
}

/* ---- a turn ----------------------------------------------------------------------------------- */

static void draw_command(struct script *script, struct command *command)
{
	uint32_t draw = rng_below(script->rng, 100);

	*command = (struct command){.actor = SPAN("tester")};
	if (draw < 30)
		draw_create(script, command);
	else if (draw < 50)
		draw_claim(script, command);
	else if (draw < 74)
		draw_report(script, command);
	else if (draw < 86)
		draw_beat(script, command);
	else if (draw < 93)
		draw_operator(script, command);
	else if (draw < 95)
		draw_many(script, command);
	else if (draw < 97)
		draw_worker(script, command);
	else if (draw < 98)
		draw_queue(script, command);
	else
		draw_schedule(script, command);
}

uint32_t script_turn(struct model *model, struct moment now, struct rng *rng, struct arena *arena,
	struct command commands[SCRIPT_COMMANDS_MAX])
{
	struct script script = {.model = model, .now = now, .rng = rng, .arena = arena};
	uint32_t count = 1 + rng_below(rng, rng_chance(rng, 12) ? SCRIPT_COMMANDS_MAX : 6);

	for (uint32_t i = 0; i < count; i++)
		draw_command(&script, &commands[i]);
	/* the last place is left for a step of a bulk action */
	return count < SCRIPT_COMMANDS_MAX ? count : SCRIPT_COMMANDS_MAX - 1;
}
