#include "proof/check.h"
#include "powerloss/model.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PAGE_TASKS = 500,
	ARENA_BYTES = 16 << 20,
};

static void copy_text(char to[MODEL_ID_MAX], struct span from)
{
	assert(from.len < MODEL_ID_MAX);
	if (from.len)
		memcpy(to, from.data, from.len);
	to[from.len] = '\0';
}

struct span model_queue(uint32_t queue)
{
	static const char *const names[MODEL_QUEUES] = {"default", "slow", "urgent"};

	return span_of(names[queue]);
}

static void worker_name(struct told_worker *worker, uint32_t slot)
{
	worker->is_registered = false;
	worker->token = 0;
	snprintf(worker->id, sizeof(worker->id), "worker-%u.%u", slot, worker->instance);
}

void model_init(struct model *model)
{
	*model = (struct model){0};
	for (uint32_t i = 0; i < MODEL_WORKERS; i++)
		worker_name(&model->workers[i], i);
}

void model_done(struct model *model)
{
	free(model->tasks);
	*model = (struct model){0};
}

/* ---- what replies tell ------------------------------------------------------------------------ */

static struct told_task *told_task(struct model *model, int64_t seq)
{
	for (uint32_t i = model->task_count; i > 0; i--)
		if (model->tasks[i - 1].task.seq == seq)
			return &model->tasks[i - 1];
	if (model->task_count == model->task_room) {
		model->task_room = model->task_room ? 2 * model->task_room : 64;
		model->tasks = realloc(model->tasks, model->task_room * sizeof(*model->tasks));
		if (!model->tasks)
			abort();
	}
	struct told_task *told = &model->tasks[model->task_count++];

	*told = (struct told_task){.task.seq = seq};
	return told;
}

static void take_task(struct model *model, const struct task *task, struct span id, struct span holder)
{
	struct told_task *told = told_task(model, task->seq);

	if (task->version < told->task.version)
		return;
	if (told->id[0] == '\0')
		copy_text(told->id, id);
	told->task = *task;
	if (holder.len || !task_is_claimed(task))
		copy_text(told->holder, holder);
}

static struct told_worker *told_worker(struct model *model, struct span id)
{
	for (uint32_t i = 0; i < MODEL_WORKERS; i++)
		if (span_equal(span_of(model->workers[i].id), id))
			return &model->workers[i];
	return NULL;
}

static void take_worker(struct model *model, struct span id, const struct worker *worker)
{
	struct told_worker *told = told_worker(model, id);

	if (!told)
		return;
	if (worker->state == WORKER_INACTIVE) {
		told->instance++;
		worker_name(told, (uint32_t)(told - model->workers));
	} else if (worker->state != WORKER_UNKNOWN) {
		told->is_registered = true;
		told->token = worker->token;
	}
}

static void take_queue(struct model *model, const struct command *command)
{
	for (uint32_t i = 0; i < MODEL_QUEUES; i++)
		if (span_equal(model_queue(i), command->queue_set.queue))
			model->queues[i] = command->queue_set.state;
}

static void take_result(struct model *model, const struct command *command, const struct result *result)
{
	bool about_worker = command->kind >= COMMAND_REGISTER && command->kind <= COMMAND_LEAVE;

	if (about_worker &&
		(result->refusal == REFUSED_NOTHING || result->refusal == REFUSED_TOKEN_MISMATCH ||
			result->refusal == REFUSED_WORKER_INACTIVE))
		take_worker(model, command->worker, &result->worker);
	if (result->event_seq > model->last_event)
		model->last_event = result->event_seq;
	if (result->refusal != REFUSED_NOTHING)
		return;
	for (uint32_t i = 0; i < result->claim_count; i++)
		take_task(model, &result->claims[i].task, result->claims[i].id, command->worker);
	if (result->task.seq && !about_worker && result->claim_count == 0)
		take_task(model, &result->task, result->id, (struct span){0});
	if (command->kind == COMMAND_QUEUE_SET)
		take_queue(model, command);
}

void model_take(
	struct model *model, const struct command *commands, const struct result *results, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		take_result(model, &commands[i], &results[i]);
}

/* ---- after a restart -------------------------------------------------------------------------- */

/* What differs between two views of the same version, or NULL. */
static const char *difference(const struct told_task *told, const struct task_document *found)
{
	const struct task *a = &told->task, *b = &found->task;

	if (!span_equal(span_of(told->holder), found->holder))
		return "holder";
	if (a->state != b->state || a->ready_at_ms != b->ready_at_ms)
		return "state";
	if (a->fence != b->fence || a->attempt != b->attempt)
		return "fence";
	if (a->spent != b->spent || a->crashes != b->crashes || a->interruptions != b->interruptions)
		return "budget";
	return a->ended != b->ended || a->code != b->code ? "end" : NULL;
}

static int check_task(const struct told_task *told, struct store *store, struct moment now,
	const struct ledger *ledger, struct arena *arena, char *complaint, size_t len)
{
	struct task_document found = {0};
	int fault;

	arena_reset(arena);
	fault = store_read_task(store, told->task.seq, now, arena, &found);
	if (fault == -ENOENT && !ledger_has_task(ledger, told->task.seq))
		return 0; /* retention took it in a transaction that is known */
	if (fault) {
		snprintf(complaint, len, "task %s was acknowledged and cannot be read: %s", told->id,
			strerror(-fault));
		return -EPROTO;
	}
	const char *what = NULL;
	if (!span_equal(found.id, span_of(told->id)))
		what = "id";
	else if (found.task.version < told->task.version)
		what = "version";
	else if (found.task.version == told->task.version)
		what = difference(told, &found);
	if (what) {
		snprintf(complaint, len,
			"task %s was acknowledged as %s, version %" PRId64 ", fence %" PRIu64
			"; found as %.*s, %s, version %" PRId64 ", fence %" PRIu64 ": another %s",
			told->id, task_state_name(told->task.state), told->task.version, told->task.fence,
			SPAN_ARGS(found.id), task_state_name(found.task.state), found.task.version,
			found.task.fence, what);
		return -EPROTO;
	}
	return 0;
}

static int check_workers(const struct model *model, struct store *store, const struct ledger *ledger,
	char *complaint, size_t len)
{
	struct worker worker;

	for (uint32_t i = 0; i < MODEL_WORKERS; i++) {
		const struct told_worker *told = &model->workers[i];

		/* it may have ended since, and been forgotten in a transaction that is known */
		if (told->is_registered && ledger_has_worker(ledger, span_of(told->id)) &&
			!store_worker(store, span_of(told->id), &worker)) {
			snprintf(complaint, len, "%s was registered and is unknown", told->id);
			return -EPROTO;
		}
	}
	return 0;
}

int model_check(const struct model *model, struct store *store, struct moment now,
	const struct ledger *ledger, char *complaint, size_t len)
{
	struct arena arena;
	int fault = check_workers(model, store, ledger, complaint, len);

	if (!fault && store_last_event(store) < model->last_event) {
		snprintf(complaint, len, "event %" PRId64 " was acknowledged, the last one found is %" PRId64,
			model->last_event, store_last_event(store));
		fault = -EPROTO;
	}
	arena_init(&arena, ARENA_BYTES);
	for (uint32_t i = 0; i < model->task_count && !fault; i++)
		fault = check_task(&model->tasks[i], store, now, ledger, &arena, complaint, len);
	arena_done(&arena);
	return fault;
}

struct learning {
	struct model *model;
	struct store *store;
	struct arena arena;
	uint32_t seen;
	int64_t last;
};

static int learn_task(void *context, const struct task *task, struct span holder)
{
	struct learning *learning = context;
	struct span id;

	learning->seen++;
	learning->last = task->seq;
	arena_reset(&learning->arena);
	int fault = store_task_id(learning->store, task, &learning->arena, &id);
	if (fault)
		return fault;
	take_task(learning->model, task, id, holder);
	return 0;
}

static void learn_workers(struct model *model, struct store *store)
{
	for (uint32_t i = 0; i < MODEL_WORKERS; i++) {
		struct told_worker *told = &model->workers[i];
		struct worker worker;

		told->is_registered = false;
		if (store_worker(store, span_of(told->id), &worker))
			take_worker(model, span_of(told->id), &worker);
	}
}

int model_learn(struct model *model, struct store *store)
{
	struct learning learning = {.model = model, .store = store};
	uint32_t before;
	int fault;

	model->task_count = 0;
	model->last_event = store_last_event(store);
	arena_init(&learning.arena, ARENA_BYTES);
	do {
		before = learning.seen;
		fault = store_page_tasks(store, learning.last, PAGE_TASKS, learn_task, &learning);
	} while (!fault && learning.seen == before + PAGE_TASKS);
	arena_done(&learning.arena);
	learn_workers(model, store);
	for (uint32_t i = 0; i < MODEL_QUEUES; i++)
		model->queues[i] = store_queue_state(store, model_queue(i));
	return fault;
}
