/*
 * Queues: what there is, their limits, and pausing, resuming and draining them.
 */
#include "api/form.h"
#include "api/task/why.h"
#include "base/take.h"

enum {
	REASON_MAX = 4096,
	QUEUES_MAX = 1000,
	SLICE_QUEUES = 8, /* each looks at every worker */
};

/* The names come first, then a few queues per slice. */
struct queue_list {
	struct api_call *call;
	struct span names[QUEUES_MAX];
	uint32_t count, at;
	bool any;
};

static int gather(void *context, struct span name, enum queue_state state, uint32_t ready)
{
	struct queue_list *list = context;

	(void)state;
	(void)ready;
	if (list->count == QUEUES_MAX || !principal_serves(&list->call->who, name))
		return 0;
	int r = arena_copy(list->call->arena, name, &list->names[list->count]);
	list->count += r == 0;
	return r;
}

static void put_counts(struct json_object *object, const uint32_t counts[TASK_STATE_COUNT])
{
	struct json_object states;

	if (!json_put_key(object, "tasks"))
		return;
	json_begin(&states, object->buf);
	for (int i = TASK_NOWHERE + 1; i < TASK_STATE_COUNT; i++) {
		if (!task_state_is_final((enum task_state)i))
			json_member_int(&states, task_state_name((enum task_state)i), counts[i]);
	}
	json_note(object, json_end(&states));
}

/* Why the next of its ready tasks is not taken. It may have been taken since it was found. */
static int put_next(const struct api_call *call, struct json_object *object, int64_t seq)
{
	struct task_document document;
	int r = store_read_task(call->store, seq, call->now, call->arena, &document);

	if (r == 0 && document.task.state == TASK_READY)
		why_put_member(call, object, &document, store_why(call->store, &document.task, call->now));
	return r == -ENOENT ? 0 : r;
}

static void put_limits(struct json_object *object, const struct queue_limits *limits)
{
	struct json_object members;

	if (limits_are_none(limits) || !json_put_key(object, "limits"))
		return;
	json_begin(&members, object->buf);
	json_member_int_if_any(&members, "concurrency", limits->concurrency);
	json_note(object, json_end(&members));
}

/* -ENOENT: nobody named such a queue. */
static int put_queue(struct api_call *call, struct span name)
{
	struct queue_document queue;
	struct json_object object;
	int r = store_read_queue(call->store, name, &queue);

	if (r < 0)
		return r;
	json_begin(&object, call->body);
	json_member_string(&object, "name", name);
	json_member_cstr(&object, "state", queue_state_name(queue.state));
	json_member_int(&object, "ready", queue.count[TASK_READY]);
	put_counts(&object, queue.count);
	json_member_int(&object, "live", queue.load.live);
	put_limits(&object, &queue.limits);
	json_member_int(&object, "workers", queue.workers);
	json_member_int_if_any(&object, "oldestReadyAt", queue.oldest_ready_ms);
	if (queue.next_seq != 0)
		r = put_next(call, &object, queue.next_seq);
	return r < 0 ? r : json_end(&object);
}

static struct queue_list *queue_list_new(struct api_call *call)
{
	struct queue_list *list = query_read(call, NULL, 0) ? call_detail(call, sizeof *list) : NULL;

	if (!list)
		return NULL;
	list->call = call;
	if (call_has_failed(call, store_each_queue(call->store, gather, list)))
		return NULL;
	call_slices_begin(call, "[");
	return list;
}

void queue_list_read(struct api_call *call)
{
	struct queue_list *list = call->detail ? call->detail : queue_list_new(call);
	int r = 0;

	if (!list)
		return;
	for (int i = 0; r == 0 && i < SLICE_QUEUES && list->at < list->count; i++) {
		json_put_comma(call->body, &list->any);
		r = put_queue(call, list->names[list->at++]); /* a queue that has a name keeps it */
	}
	call_slice(call, r, list->at < list->count, "]");
}

void queue_set_begin(struct api_call *call)
{
	if (!form_read_body(call, NULL, 0, NULL) || !call_param_is_name(call, "name"))
		return;
	struct command *command = call_command(call, COMMAND_QUEUE_SET);
	if (!command)
		return;
	command->queue_set.queue = call->params[0];
	command->queue_set.state = (enum queue_state)call->route->variant;
}

void queue_finish(struct api_call *call, const struct result *results)
{
	struct json_object queue;

	(void)results;
	json_begin(&queue, call->body);
	json_member_string(&queue, "name", call->params[0]);
	json_member_cstr(&queue, "state", queue_state_name(call->commands[0].queue_set.state));
	call_reply(call, 200, json_end(&queue));
}

/* ---- one queue, and its limits ------------------------------------------------------------------------------------ */

static void answer_queue(struct api_call *call)
{
	int r = put_queue(call, call->params[0]);

	if (r == -ENOENT)
		call_require(call, false, REFUSED_NOT_FOUND,
			"No task was ever in a queue of that name, and nobody set it.");
	else
		call_reply(call, 200, r);
}

void queue_read(struct api_call *call)
{
	if (!query_read(call, NULL, 0) || !call_param_is_name(call, "name"))
		return;
	if (call_require(call, principal_serves(&call->who, call->params[0]), REFUSED_FORBIDDEN,
		    "This credential is not for that queue."))
		answer_queue(call);
}

struct limits_body {
	int64_t concurrency;
	struct span reason;
};

#define UNLIMITED "is no limit of this version, and was not set: a queue has the limit concurrency"

static const struct field limits_fields[] = {
	FIELD(limits_body, concurrency, "concurrency", FIELD_INT, .min = 1, .max = LIMIT_MAX),
	FIELD(limits_body, reason, "reason", FIELD_TEXT, .max = REASON_MAX),
	{"perKey", FIELD_REFUSED, .allowed = UNLIMITED},
	{"keys", FIELD_REFUSED, .allowed = UNLIMITED},
	{"sequential", FIELD_REFUSED, .allowed = UNLIMITED},
	{"rate", FIELD_REFUSED, .allowed = UNLIMITED},
	{"fair", FIELD_REFUSED, .allowed = UNLIMITED},
	{"review", FIELD_REFUSED, .allowed = UNLIMITED},
	{"maxOpen", FIELD_REFUSED, .allowed = UNLIMITED},
	{"budget", FIELD_REFUSED, .allowed = UNLIMITED},
};

/* A null lifts the limit; what is not named stays. */
static bool is_named(const struct form *form, const char *name)
{
	return yyjson_obj_get(form->root, name) != NULL;
}

void queue_limit_begin(struct api_call *call)
{
	struct limits_body body = {0};
	cleanup(form_done) struct form form = {0};

	if (!call_param_is_name(call, "name") || !form_open(&form, call, false))
		return;
	form_read(&form, form.root, FIELDS(limits_fields), &body);
	bool concurrency = is_named(&form, "concurrency");
	if (form.error_count == 0 && form.fault == 0 && !concurrency)
		form_error(&form, "concurrency",
			"is required: a number lets so many run at a time, null lifts the limit");
	if (!form_is_good(&form))
		return;
	struct command *command = call_command(call, COMMAND_QUEUE_LIMIT);
	if (!command)
		return;
	command->queue_limit.queue = call->params[0];
	command->queue_limit.patch = (struct limits_patch){
		.set = concurrency ? LIMITS_SET_CONCURRENCY : 0,
		.wanted = {.concurrency = (uint32_t)body.concurrency},
	};
	call_keep_note(call, "reason", body.reason, command);
}

void queue_limit_finish(struct api_call *call, const struct result *results)
{
	(void)results;
	answer_queue(call);
}
