/*
 * What an admin did, as its event tells it. It has no secret: callers name objects by their ids.
 */
#include "api/call.h"

#include "base/take.h"

enum {
	REQUEST_ID_MAX = 128,
};

/* Of a client's own making: taken over only if it can neither fill the log nor look like something else in it. */
static bool request_id_is_sane(struct span id)
{
	for (size_t i = 0; i < id.len; i++) {
		if (id.data[i] <= ' ' || id.data[i] > '~')
			return false;
	}
	return id.len > 0 && id.len <= REQUEST_ID_MAX;
}

bool call_audit(struct api_call *call, struct command *command, struct span object, const struct buf *more)
{
	cleanup(buf_done) struct buf note = {.max = API_TEXT_MAX};
	struct json_object members = {.buf = &note};
	char route[128];

	snprintf(route, sizeof route, "%s %s", http_method_name(call->route->method), call->route->pattern);
	json_member_string(&members, "principal", call->who.id);
	json_member_cstr(&members, "route", route);
	json_member_string_if_any(&members, "object", object);
	json_note(&members, buf_fault(more));
	json_members_raw(&members, buf_span(more));
	if (request_id_is_sane(call->request->request_id))
		json_member_string(&members, "requestId", call->request->request_id);
	return call_keep(call, &note, &command->note) == 0;
}

void call_audit_begin(struct api_call *call, const char *key, struct span text, struct span object)
{
	cleanup(buf_done) struct buf more = {.max = API_TEXT_MAX};
	struct json_object members = {.buf = &more};
	struct command *command = call_command(call, COMMAND_AUDIT);

	if (!command)
		return;
	json_member_string_if_any(&members, key, text);
	call_audit(call, command, object, &more);
}
