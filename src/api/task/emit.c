/*
 * Events from outside: CI, a code host, a deploy or a person tells something about a task. What was told travels in
 * the data of one event of the task; the same id acts once.
 */
#include "api/call.h"

#include <errno.h>

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

static void put_note(struct buf *note, const struct emit_body *body)
{
	struct json_object members = {.buf = note};

	json_member_string(&members, "event", body->type);
	json_member_string_if_any(&members, "status", body->status);
	json_member_string_if_any(&members, "id", body->id);
	json_member_raw_if_any(&members, "data", body->data);
}

/* Does what was told name a pull request? */
bool told_has_pr(yyjson_val *data)
{
	return yyjson_get_num(yyjson_obj_get(data, "pr_number")) != 0 ||
		yyjson_get_len(yyjson_obj_get(data, "pr_number")) > 0 ||
		yyjson_get_len(yyjson_obj_get(data, "pr_url")) > 0;
}

bool call_tells(struct api_call *call, struct command *command, const struct outside_event *event)
{
	cleanup(buf_done) struct buf note = {.max = 8 << 10};
	struct json_object members = {.buf = &note};

	command->told.event = *event;
	command->told.by_work = call->who.task_seq != 0;
	command->told.may_judge = principal_passes(&call->who, SPAN(WORKFLOW_GATE));
	json_member_string_if_any(&members, "event", event->type);
	int r = buf_fault(members.buf);
	if (r < 0)
		call_refuse_request(call, r);
	return r == 0 && (note.len == 0 || call_keep(call, &note, &command->told.note) == 0);
}

/* The words of the data that say what happened; else the name of the event. */
static struct span emit_message(const struct emit_body *body, yyjson_val *data)
{
	static const char *const names[] = {"message", "reason", "error", "summary"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		yyjson_val *text = yyjson_obj_get(data, names[i]);
		if (yyjson_get_len(text) > 0 && yyjson_is_str(text))
			return json_text(text);
	}
	return body->type;
}

/* The error of the task, should the event make it fail or reject its work: whoever does it again should know why. */
static int put_error(struct api_call *call, const struct emit_body *body, yyjson_val *data,
	enum failure_code code, struct span *ret_error)
{
	cleanup(buf_done) struct buf error = {.max = 4 * EMIT_DATA_MAX};
	struct json_object object;

	json_begin(&object, &error);
	json_member_cstr(&object, "code", failure_code_name(code));
	json_member_string(&object, "message", emit_message(body, data));
	json_member_cstr(&object, "class", failure_class_name(failure_code_class(code)));
	json_member_string(&object, "event", body->type);
	json_member_raw_if_any(&object, "evidence", body->data);
	int r = json_end(&object);
	return r < 0 ? r : buf_keep(&error, call->arena, ret_error);
}

/* Data that was accepted is JSON: what cannot be read finds no memory. -ENOMEM. */
static int read_data(
	struct api_call *call, const struct emit_body *body, struct command *command, bool *ret_has_pr)
{
	struct json_complaint complaint;
	yyjson_doc *doc = body->data.len > 0 ? json_read(body->data, &complaint) : NULL;
	yyjson_val *data = yyjson_doc_get_root(doc);

	if (body->data.len > 0 && !doc)
		return -ENOMEM;
	*ret_has_pr = told_has_pr(data);
	int r = put_error(call, body, data, CODE_EXECUTION_ERROR, &command->told.error);
	if (r == 0)
		r = put_error(call, body, data, CODE_CHECK_FAILED, &command->told.rejection);
	yyjson_doc_free(doc);
	return r;
}

void task_emit_begin(struct api_call *call)
{
	struct emit_body body = {0};
	cleanup(buf_done) struct buf note = {.max = 2 * EMIT_DATA_MAX};

	if (!form_read_body(call, FIELDS(emit_fields), &body) ||
		!call_require_field(
			call, body.data.len <= EMIT_DATA_MAX, "data", "has more than 65536 bytes"))
		return;
	struct command *command = call_command(call, COMMAND_EMIT);
	if (!command)
		return;
	command->task = call->params[0];
	if (body.id.len > 0) {
		command->emit.id = body.id;
		command->emit.digest = digest_text(body.id, (struct span){0});
		digest_request(call->request, command->emit.fingerprint);
	}
	struct outside_event event = {.type = body.type, .status = body.status};
	int r = read_data(call, &body, command, &event.has_pr);
	put_note(&note, &body);
	if (r < 0)
		call_refuse_request(call, r);
	else if (call_keep(call, &note, &command->note) == 0)
		call_tells(call, command, &event);
}

void task_emit_finish(struct api_call *call, const struct result *results)
{
	const struct result *result = &results[0];
	struct json_object object;

	json_begin(&object, call->body);
	json_member_string(&object, "task", result->id);
	json_member_int(&object, "seq", result->noted_seq);
	json_member_int(&object, "time", result->noted_ms);
	json_member_cstr(&object, "type", event_kind_name(EVENT_TASK_NOTED));
	if (result->task.workflow != WORKFLOW_NONE)
		json_member_cstr(&object, "stage", stage_name(result->task.stage));
	call_reply(call, 200, json_end(&object));
}
