/*
 * Queues: what there is, and pausing, resuming and draining them.
 */
#include "api/form.h"

struct queue_listing {
	struct api_call *call;
	bool any;
};

static int put_queue(void *context, struct span name, enum queue_state state, uint32_t ready)
{
	struct queue_listing *listing = context;
	struct buf *body = listing->call->body;
	struct json_object queue;

	if (!principal_serves(&listing->call->who, name))
		return 0;
	int r = json_put_comma(body, &listing->any);
	if (r < 0)
		return r;
	json_begin(&queue, body);
	json_member_string(&queue, "name", name);
	json_member_cstr(&queue, "state", queue_state_name(state));
	json_member_int(&queue, "ready", ready);
	return json_end(&queue);
}

void queue_list_read(struct api_call *call)
{
	struct store *store = call->store;
	struct queue_listing listing = {call, false};

	if (!query_read(call, NULL, 0))
		return;
	int r = buf_put_byte(call->body, '[');
	if (r == 0)
		r = store_each_queue(store, put_queue, &listing);
	if (r == 0)
		r = buf_put_byte(call->body, ']');
	call_reply(call, 200, r);
}

static void queue_begin(struct api_call *call, enum queue_state state)
{
	uint64_t given;

	if (!form_read_body(call, NULL, 0, NULL, &given))
		return;
	if (!text_is_name(call->params[0], COMMAND_NAME_MAX)) {
		call_refuse_field(call, "name", "must be 1 to 255 bytes without control characters");
		return;
	}
	if (!call_commands(call, 1))
		return;
	call->commands[0].kind = COMMAND_QUEUE_SET;
	call->commands[0].queue_set.queue = call->params[0];
	call->commands[0].queue_set.state = state;
}

void queue_pause_begin(struct api_call *call)
{
	queue_begin(call, QUEUE_PAUSED);
}

void queue_resume_begin(struct api_call *call)
{
	queue_begin(call, QUEUE_OPEN);
}

void queue_drain_begin(struct api_call *call)
{
	queue_begin(call, QUEUE_DRAINING);
}

void queue_finish(struct api_call *call, const struct result *results)
{
	struct json_object queue;

	if (results[0].refusal != REFUSED_NOTHING) {
		call_refuse_result(call, &results[0]);
		return;
	}
	json_begin(&queue, call->body);
	json_member_string(&queue, "name", call->params[0]);
	json_member_cstr(&queue, "state", queue_state_name(call->commands[0].queue_set.state));
	call->reply.event_seq = results[0].event_seq;
	call_reply(call, 200, json_end(&queue));
}
