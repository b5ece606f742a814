/*
 * Queues: what there is, and pausing, resuming and draining them.
 */
#include "api/form.h"
#include "api/task/why.h"

enum {
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

static int put_queue(struct queue_list *list, struct span name)
{
	struct api_call *call = list->call;
	struct queue_document queue;
	struct json_object object;
	int r = store_read_queue(call->store, name, &queue);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	json_put_comma(call->body, &list->any);
	json_begin(&object, call->body);
	json_member_string(&object, "name", name);
	json_member_cstr(&object, "state", queue_state_name(queue.state));
	json_member_int(&object, "ready", queue.count[TASK_READY]);
	put_counts(&object, queue.count);
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
	for (int i = 0; r == 0 && i < SLICE_QUEUES && list->at < list->count; i++)
		r = put_queue(list, list->names[list->at++]);
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
