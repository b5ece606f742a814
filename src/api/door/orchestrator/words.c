/*
 * The words of the worker connector's surface: its refusals, the fields of a body, and a task as JSON.
 */
#include "api/door/orchestrator/orchestrator.h"

#include <assert.h>
#include <stdio.h>

#include "base/iso_time.h"
#include "base/take.h"
#include "base/uuid.h"

enum {
	EXPIRES_MINUTES = 60,
	EXPIRES_MINUTES_MAX = 7 * 24 * 60,
	EVENT_MAX = 128,
};

/* ---- saying no ---------------------------------------------------------------------------------------- */

/* Without a credential the form of the refusal must not show which paths exist. */
static bool is_route_told(const struct api_call *call)
{
	return call->route && call->who.scopes != 0;
}

static bool is_claim(const struct api_call *call)
{
	return is_route_told(call) && call->route->finish == orchestrator_claim_finish;
}

static bool is_release(const struct api_call *call)
{
	return is_route_told(call) && call->route->finish == orchestrator_release_finish;
}

void orchestrator_put_no(
	struct api_call *call, struct json_object *object, const char *code, const char *text)
{
	json_begin(object, call->body);
	json_member_bool(object, "ok", false);
	if (is_claim(call))
		json_member_bool(object, "claimed", false);
	if (is_release(call))
		json_member_bool(object, "released", false);
	if (is_claim(call) || is_release(call))
		json_member_cstr(object, "reason", text);
	json_member_cstr(object, "error", text);
	if (code)
		json_member_cstr(object, "error_code", code);
}

/* Whatever is refused before, or without, the words of this surface. */
int orchestrator_put_refused(struct api_call *call, struct refused *refused)
{
	struct json_object object;

	refused->status = refused->status == 422 ? 400 : refused->status;
	orchestrator_put_no(call, &object, refused->code, refused->detail ? refused->detail : refused->title);
	return json_end(&object);
}

void orchestrator_refuse(struct api_call *call, int status, const char *code, const char *text)
{
	struct json_object object;

	orchestrator_put_no(call, &object, code, text);
	call_reply(call, status, json_end(&object));
}

void orchestrator_put_yes(struct api_call *call, struct json_object *object)
{
	json_begin(object, call->body);
	json_member_bool(object, "ok", true);
}

void orchestrator_reply(struct api_call *call, struct json_object *object, const struct result *result)
{
	orchestrator_put_now(call, object);
	call->reply.event_seq = result->event_seq;
	call_reply(call, 200, json_end(object));
}

bool orchestrator_refuse_result(struct api_call *call, const struct result *result)
{
	if (result->refusal != REFUSED_NOT_FOUND)
		return false;
	orchestrator_refuse(call, 404, refusal_code(result->refusal), "Task not found");
	return true;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static const struct field fields[] = {
	FIELD(orchestrator_body, worker, "worker_id", FIELD_NAME, .max = COMMAND_ID_MAX),
	FIELD(orchestrator_body, event, "event", FIELD_NAME, .max = EVENT_MAX),
	FIELD(orchestrator_body, fence, "fence", FIELD_DECIMAL, .max = 0),
	FIELD(orchestrator_body, message, "message", FIELD_TEXT, .max = ORCHESTRATOR_MESSAGE_MAX),
	FIELD(orchestrator_body, reason, "reason", FIELD_TEXT, .max = 4096),
	FIELD(orchestrator_body, active, "active_vtid", FIELD_NAME, .max = COMMAND_ID_MAX),
	FIELD(orchestrator_body, version, "version", FIELD_TEXT, .max = 255),
	FIELD(orchestrator_body, metadata, "metadata", FIELD_OBJECT, .max = 0),
	FIELD(orchestrator_body, capabilities, "capabilities", FIELD_NAMES, .max = 0),
	FIELD(orchestrator_body, max_concurrent, "max_concurrent", FIELD_INT, .min = 1, .max = 100000),
	FIELD(orchestrator_body, expires_minutes, "expires_minutes", FIELD_INT, .min = 1,
		.max = EXPIRES_MINUTES_MAX),
};

/* The first mistake, with its field: "max_concurrent must be …". */
static void refuse_first(struct form *form, const char *name, const char *message)
{
	char text[FORM_MESSAGE_MAX + 256];

	if (form_call(form)->reply.status != 0)
		return; /* it was not the first */
	snprintf(text, sizeof text, "%s %s", name[0] ? name : "the body", message);
	orchestrator_refuse(form_call(form), 400, refusal_code(REFUSED_INVALID), text);
}

/* The fields whose absence the original reports by name. An empty text counts as missing. */
static bool has_required(struct form *form, unsigned required)
{
	static const char *const names[] = {"worker_id", "event"};

	for (unsigned i = 0; i < 2; i++) {
		yyjson_val *value = yyjson_obj_get(form->root, names[i]);
		bool missing = !value || yyjson_is_null(value) || yyjson_equals_str(value, "");
		char text[64];
		if (!(required & 1u << i) || !missing)
			continue;
		snprintf(text, sizeof text, "%s is required", names[i]);
		orchestrator_refuse(form_call(form), 400, NULL, text);
		return false;
	}
	return true;
}

bool orchestrator_read(struct api_call *call, unsigned required, struct orchestrator_body *body)
{
	cleanup(form_done) struct form form = {0};

	*body = (struct orchestrator_body){.max_concurrent = 1, .expires_minutes = EXPIRES_MINUTES};
	if (!form_open(&form, call, false) || !has_required(&form, required))
		return false;
	form.note = refuse_first;
	form.tolerant = true;
	uint64_t given = form_read(&form, form.root, FIELDS(fields), body);
	body->has_fence = given & ORCHESTRATOR_FENCE;
	body->has_pr = told_has_pr(yyjson_obj_get(form.root, "metadata"));
	return (form.fault == 0 && form.error_count > 0) ? false : form_is_good(&form);
}

bool orchestrator_has_vtid(struct api_call *call)
{
	if (text_is_name(call->params[0], COMMAND_ID_MAX))
		return true;
	orchestrator_refuse(call, 404, refusal_code(REFUSED_NOT_FOUND), "Task not found");
	return false;
}

struct command *orchestrator_command(
	struct api_call *call, enum command_kind kind, const struct orchestrator_body *body)
{
	struct command *command = call_command(call, kind);

	if (!command)
		return NULL;
	command->task = call->params[0];
	command->worker = body->worker;
	command->fence = body->fence;
	command->by_name = !body->has_fence;
	return command;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

void orchestrator_time(struct json_object *object, const char *key, int64_t wall_ms)
{
	char text[ISO_TIME_BYTES + 1];

	if (wall_ms <= 0) {
		json_member_null(object, key);
		return;
	}
	iso_time_put(wall_ms, text);
	json_member_cstr(object, key, text);
}

void orchestrator_put_now(const struct api_call *call, struct json_object *object)
{
	orchestrator_time(object, "timestamp", call->now.wall_ms);
}

struct span orchestrator_spec(yyjson_doc *doc)
{
	yyjson_val *body = yyjson_doc_get_root(doc);
	yyjson_val *text = yyjson_obj_get(body, "instructions");

	if (!yyjson_is_str(text))
		text = yyjson_obj_get(body, "description");
	return yyjson_is_str(text) ? json_text(text) : SPAN("");
}

/* The id that the metadata name, or one derived from the text: the same text gives the same id. */
void orchestrator_put_snapshot(struct json_object *object, yyjson_doc *doc)
{
	yyjson_val *metadata = yyjson_obj_get(yyjson_doc_get_root(doc), "metadata");
	yyjson_val *given = yyjson_obj_get(metadata, "spec_snapshot_id");
	struct span spec = orchestrator_spec(doc);
	char text[UUID_CHARS + 1];

	if (yyjson_is_str(given)) {
		json_member_string(object, "spec_snapshot_id", json_text(given));
		return;
	}
	uuid_write(digest_text(spec, SPAN("1")), digest_text(spec, SPAN("2")), text);
	json_member_cstr(object, "spec_snapshot_id", text);
}

void orchestrator_put_summary(struct json_object *object, yyjson_doc *doc)
{
	static const char *const names[] = {"summary", "layer", "module", "spec_status"};
	yyjson_val *metadata = yyjson_obj_get(yyjson_doc_get_root(doc), "metadata");

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		json_member_text_or_null(object, names[i], yyjson_obj_get(metadata, names[i]));
}

/* The words of the ledger that the original kept. */
static const char *status_word(enum task_state state)
{
	static const char *const words[TASK_STATE_COUNT] = {
		[TASK_NOWHERE] = "cancelled",
		[TASK_PENDING] = "scheduled",
		[TASK_SCHEDULED] = "scheduled",
		[TASK_WAITING] = "scheduled",
		[TASK_READY] = "in_progress",
		[TASK_CLAIMED] = "in_progress",
		[TASK_RUNNING] = "in_progress",
		[TASK_ASKING] = "in_progress",
		[TASK_REVIEW] = "in_review",
		[TASK_BLOCKED] = "blocked",
		[TASK_FAILED] = "failed",
		[TASK_DONE] = "completed",
		[TASK_CANCELLED] = "cancelled",
	};

	assert(state < TASK_STATE_COUNT);
	assert(words[state]);
	return words[state];
}

int64_t orchestrator_claim_expires_ms(const struct api_call *call, const struct task *task)
{
	if (!task_is_claimed(task))
		return 0;
	return call->now.wall_ms + task->claim.run_until_ms - call->now.lease_ms;
}

void orchestrator_put_task(struct json_object *object, const struct task_document *document, yyjson_doc *doc)
{
	const struct task *task = &document->task;

	json_member_string(object, "vtid", document->id);
	json_member_text_or_null(object, "title", yyjson_obj_get(yyjson_doc_get_root(doc), "title"));
	orchestrator_put_summary(object, doc);
	json_member_cstr(object, "status", status_word(task->state));
	json_member_cstr(object, "state", stage_name(workflow_stage_of(task)));
	json_member_bool(object, "is_terminal", task_state_is_final(task->state));
	json_member_int(object, "priority", task->priority);
	orchestrator_time(object, "dispatched_at", task->ready_at_ms);
	orchestrator_put_snapshot(object, doc);
	orchestrator_time(object, "created_at", task->created_ms);
	orchestrator_time(object, "updated_at", task->updated_ms);
}
