/*
 * Events from outside: CI, a code host, a deploy or a person tells something about a task. What was told travels in
 * the data of one event of the task; the same id acts once.
 */
#include "api/call.h"

#include "api/form.h"
#include "base/take.h"

enum {
	TYPE_MAX = 128,
	EMIT_ID_MAX = 255,
	EMIT_DATA_MAX = 64 << 10,
};

struct emit_body {
	struct span id, type, status, data;
};

static const struct field emit_fields[] = {
	FIELD(emit_body, id, "id", FIELD_NAME, .max = EMIT_ID_MAX),
	FIELD_MUST_BE(emit_body, type, "type", FIELD_NAME, .max = TYPE_MAX),
	FIELD(emit_body, status, "status", FIELD_NAME, .max = TYPE_MAX),
	FIELD(emit_body, data, "data", FIELD_VALUE, .max = 0),
};

static int put_note(struct buf *note, const struct emit_body *body)
{
	struct json_object members = {.buf = note};

	json_member_string(&members, "event", body->type);
	if (body->status.len > 0)
		json_member_string(&members, "status", body->status);
	if (body->id.len > 0)
		json_member_string(&members, "id", body->id);
	if (body->data.len > 0)
		json_member_raw(&members, "data", body->data);
	return members.fault;
}

void task_emit_begin(struct api_call *call)
{
	struct emit_body body = {0};
	cleanup(buf_done) struct buf note = {0};
	uint64_t given;

	buf_init(&note, 2 * EMIT_DATA_MAX);
	if (!form_read_body(call, FIELDS(emit_fields), &body, &given))
		return;
	if (body.data.len > EMIT_DATA_MAX) {
		call_refuse_field(call, "data", "has more than 65536 bytes");
		return;
	}
	if (!call_commands(call, 1))
		return;
	struct command *command = &call->commands[0];
	command->kind = COMMAND_EMIT;
	command->task = call->params[0];
	if (body.id.len > 0) {
		command->emit.id = body.id;
		command->emit.digest = digest_text(body.id, (struct span){0});
		digest_request(call->request, command->emit.fingerprint);
	}
	if (put_note(&note, &body) < 0)
		api_refuse(call, REFUSED_TOO_LARGE, NULL);
	else
		call_keep(call, &note, &command->note);
}

void task_emit_finish(struct api_call *call, const struct result *results)
{
	const struct result *result = &results[0];
	struct json_object object;

	if (result->refusal != REFUSED_NOTHING) {
		call_refuse_result(call, result);
		return;
	}
	json_begin(&object, call->body);
	json_member_string(&object, "task", result->id);
	json_member_int(&object, "seq", result->noted_seq);
	json_member_int(&object, "time", result->noted_ms);
	json_member_cstr(&object, "type", event_kind_name(EVENT_TASK_NOTED));
	call->reply.event_seq = result->event_seq;
	call_reply(call, 200, json_end(&object));
}
