/*
 * Queues: what there is, and pausing, resuming and draining them.
 */
#include "api/form.h"

static int put_queue(void *context, struct span name, enum queue_state state, uint32_t ready)
{
	struct call_list *list = context;
	struct json_object queue;

	if (!principal_serves(&list->call->who, name))
		return 0;
	call_list_next(list);
	json_begin(&queue, list->call->body);
	json_member_string(&queue, "name", name);
	json_member_cstr(&queue, "state", queue_state_name(state));
	json_member_int(&queue, "ready", ready);
	return json_end(&queue);
}

void queue_list_read(struct api_call *call)
{
	struct call_list list;

	if (call_list_begin(&list, call))
		call_list_end(&list, store_each_queue(call->store, put_queue, &list));
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
