/*
 * The surface of worker connectors: /api/v1/worker/orchestrator. Workers register, look for tasks, claim one by its
 * VTID, tell how it goes and beat; each is one of the commands that everybody else gives by another name.
 *
 * Its words: a VTID is the id of a task, a worker_id a name with instances behind it. Names are snake_case, times
 * ISO 8601, fields that nobody knows are ignored, and a refusal is {"ok":false,"error":…}. A claim has two clocks: five
 * minutes that every sign of life renews, and the time it was claimed for (claim_expires_at), past which nothing does.
 * Answers have an extra `fence` and calls accept it; without one the name is compared, and the event says so.
 */
#include "api/orchestrator.h"

#include <errno.h>
#include <stdio.h>

#include "base/iso_time.h"
#include "base/take.h"

enum {
	LIVENESS_MS = 5 * 60 * 1000,
	EXPIRES_MINUTES = 60,
	EXPIRES_MINUTES_MAX = 7 * 24 * 60,
	MINUTE_MS = 60 * 1000,
	EVENT_MAX = 128,
	MESSAGE_MAX = 64 << 10,
};

/* ---- saying no ---------------------------------------------------------------------------------------- */

/* Whoever shows no credential does not learn from the way it is refused which paths there are. */
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

static void put_no(struct api_call *call, struct json_object *object, const char *code, const char *text)
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
	put_no(call, &object, refused->code, refused->detail ? refused->detail : refused->title);
	return json_end(&object);
}

/* In its own words; `code` may be NULL. */
static void refuse(struct api_call *call, int status, const char *code, const char *text)
{
	struct json_object object;

	buf_clear(call->body);
	put_no(call, &object, code, text);
	call_reply(call, status, json_end(&object));
}

/* Of a command: those that mean the same here as everywhere. */
static void refuse_result(struct api_call *call, const struct result *result)
{
	if (result->refusal == REFUSED_NOT_FOUND)
		refuse(call, 404, refusal_code(result->refusal), "Task not found");
	else
		call_refuse_result(call, result);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

struct body {
	struct span worker, event, message, reason, active, version, metadata;
	struct name_list capabilities;
	int64_t max_concurrent, expires_minutes;
	uint64_t fence;
	bool has_pr;
};

enum row {
	R_WORKER = 1 << 0,
	R_EVENT = 1 << 1,
	R_FENCE = 1 << 2,
};

static const struct field fields[] = {
	FIELD(body, worker, "worker_id", FIELD_NAME, .max = COMMAND_ID_MAX),
	FIELD(body, event, "event", FIELD_NAME, .max = EVENT_MAX),
	FIELD(body, fence, "fence", FIELD_DECIMAL, .max = 0),
	FIELD(body, message, "message", FIELD_TEXT, .max = MESSAGE_MAX),
	FIELD(body, reason, "reason", FIELD_TEXT, .max = 4096),
	FIELD(body, active, "active_vtid", FIELD_NAME, .max = COMMAND_ID_MAX),
	FIELD(body, version, "version", FIELD_TEXT, .max = 255),
	FIELD(body, metadata, "metadata", FIELD_OBJECT, .max = 0),
	FIELD(body, capabilities, "capabilities", FIELD_NAMES, .max = 0),
	FIELD(body, max_concurrent, "max_concurrent", FIELD_INT, .min = 1, .max = 100000),
	FIELD(body, expires_minutes, "expires_minutes", FIELD_INT, .min = 1, .max = EXPIRES_MINUTES_MAX),
};

/* The first mistake, with its field: "max_concurrent must be …". */
static void refuse_form(struct form *form)
{
	struct json_complaint complaint;
	cleanup(buf_done) struct buf list = {0}, text = {0};

	buf_init(&list, 64 << 10);
	buf_init(&text, 4 << 10);
	int r = buf_put_byte(&list, '[');
	if (r == 0)
		r = buf_put_span(&list, buf_span(&form->errors));
	if (r == 0)
		r = buf_put_byte(&list, ']');
	yyjson_doc *doc = r == 0 ? json_read(buf_span(&list), &complaint) : NULL;
	yyjson_val *first = yyjson_arr_get_first(yyjson_doc_get_root(doc));
	const char *field = yyjson_get_str(yyjson_obj_get(first, "field"));
	const char *message = yyjson_get_str(yyjson_obj_get(first, "message"));
	r = buf_printf(&text, "%s %s%c", field ? field : "the body", message ? message : "is wrong", 0);
	refuse(form->call, 400, refusal_code(REFUSED_INVALID), r == 0 ? text.data : "the body is wrong");
	yyjson_doc_free(doc);
}

/* What the seed calls by name when it is missing. An empty text is as good as none. */
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
		refuse(form->call, 400, NULL, text);
		return false;
	}
	return true;
}

/* Reads the body; fields that nobody knows are ignored. False: the call was refused. */
static bool read_body(struct api_call *call, unsigned required, struct body *body, unsigned *ret_given)
{
	cleanup(form_done) struct form form = {0};
	unsigned given = 0;

	*body = (struct body){.max_concurrent = 1, .expires_minutes = EXPIRES_MINUTES};
	if (!form_open(&form, call, false) || !has_required(&form, required))
		return false;
	for (unsigned i = 0; i < sizeof fields / sizeof *fields; i++) {
		yyjson_val *value = yyjson_obj_get(form.root, fields[i].name);
		if (!value || yyjson_is_null(value))
			continue;
		given |= 1u << i;
		form_take(&form, &fields[i], value, body);
	}
	body->has_pr = told_has_pr(yyjson_obj_get(form.root, "metadata"));
	if (form.fault < 0)
		api_refuse(call, REFUSED_TOO_LARGE, NULL);
	else if (form.error_count > 0)
		refuse_form(&form);
	*ret_given = given;
	return form.fault == 0 && form.error_count == 0;
}

/* The VTID of the path, as something that a task may be called. */
static bool has_vtid(struct api_call *call)
{
	if (text_is_name(call->params[0], COMMAND_ID_MAX))
		return true;
	refuse(call, 404, refusal_code(REFUSED_NOT_FOUND), "Task not found");
	return false;
}

/* A command about the task of the path, by the worker of the body. NULL: the call was refused. */
static struct command *task_command(
	struct api_call *call, enum command_kind kind, const struct body *body, unsigned given)
{
	struct command *command = call_commands(call, 1);

	if (!command)
		return NULL;
	command->kind = kind;
	command->task = call->params[0];
	command->worker = body->worker;
	command->fence = body->fence;
	command->by_name = !(given & R_FENCE);
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

static void put_timestamp(const struct api_call *call, struct json_object *object)
{
	orchestrator_time(object, "timestamp", call->now.wall_ms);
}

static void put_text(struct json_object *object, const char *key, yyjson_val *value)
{
	if (yyjson_is_str(value))
		json_member_string(object, key, json_text(value));
	else
		json_member_null(object, key);
}

static struct span spec_of(yyjson_doc *doc)
{
	yyjson_val *body = yyjson_doc_get_root(doc);
	yyjson_val *text = yyjson_obj_get(body, "instructions");

	if (!yyjson_is_str(text))
		text = yyjson_obj_get(body, "description");
	return yyjson_is_str(text) ? json_text(text) : SPAN("");
}

/* The one that the metadata name, or what stands for the text: the same for the same text. */
static void put_snapshot(struct json_object *object, yyjson_doc *doc)
{
	yyjson_val *metadata = yyjson_obj_get(yyjson_doc_get_root(doc), "metadata");
	yyjson_val *given = yyjson_obj_get(metadata, "spec_snapshot_id");
	struct span spec = spec_of(doc);
	uint64_t hi = digest_text(spec, SPAN("1")), lo = digest_text(spec, SPAN("2"));
	char text[40];

	if (yyjson_is_str(given)) {
		json_member_string(object, "spec_snapshot_id", json_text(given));
		return;
	}
	snprintf(text, sizeof text, "%08x-%04x-%04x-%04x-%012llx", (unsigned)(hi >> 32),
		(unsigned)(hi >> 16) & 0xffff, (unsigned)hi & 0xffff, (unsigned)(lo >> 48),
		(unsigned long long)(lo & 0xffffffffffff));
	json_member_cstr(object, "spec_snapshot_id", text);
}

static void put_summary(struct json_object *object, yyjson_doc *doc)
{
	static const char *const names[] = {"summary", "layer", "module", "spec_status"};
	yyjson_val *metadata = yyjson_obj_get(yyjson_doc_get_root(doc), "metadata");

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		put_text(object, names[i], yyjson_obj_get(metadata, names[i]));
}

/* The words of the ledger that the original kept. */
static const char *status_word(enum task_state state)
{
	switch (task_status_of(state)) {
	case STATUS_TODO:
		return state == TASK_READY ? "in_progress" : "scheduled";
	case STATUS_IN_PROGRESS:
		return "in_progress";
	case STATUS_REVIEW:
		return "in_review";
	case STATUS_BLOCKED:
		return state == TASK_FAILED ? "failed" : "blocked";
	case STATUS_DONE:
		return "completed";
	default:
		return "cancelled";
	}
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
	put_text(object, "title", yyjson_obj_get(yyjson_doc_get_root(doc), "title"));
	put_summary(object, doc);
	json_member_cstr(object, "status", status_word(task->state));
	json_member_cstr(object, "state", stage_name(workflow_stage_of(task)));
	json_member_bool(object, "is_terminal", task_state_is_final(task->state));
	json_member_int(object, "priority", task->priority);
	orchestrator_time(object, "dispatched_at", task->ready_at_ms);
	put_snapshot(object, doc);
	orchestrator_time(object, "created_at", task->created_ms);
	orchestrator_time(object, "updated_at", task->updated_ms);
}

/* ---- register ------------------------------------------------------------------------------------------ */

/* What it said of itself, and its version beside that. */
static bool keep_metadata(struct api_call *call, struct body *body)
{
	cleanup(buf_done) struct buf text = {0};
	struct json_object object;

	if (body->version.len == 0)
		return true;
	buf_init(&text, 128 << 10);
	json_begin(&object, &text);
	json_member_string(&object, "version", body->version);
	if (body->metadata.len > 2)
		json_members_raw(&object, (struct span){body->metadata.data + 1, body->metadata.len - 2});
	int r = json_end(&object);
	if (r == 0)
		return call_keep(call, &text, &body->metadata) == 0;
	api_refuse(call, REFUSED_TOO_LARGE, NULL);
	return false;
}

/* Was it alive before? */
static bool is_alive(const struct api_call *call, struct span id)
{
	const struct api_reads *reads = call->reads;
	struct worker_document found;

	return reads->read_worker(reads->context, id, &found) == 0 && worker_is_alive(&found.worker);
}

void orchestrator_register_begin(struct api_call *call)
{
	bool *again = arena_alloc(call->arena, sizeof *again);
	struct body body;
	unsigned given;

	if (!again) {
		api_refuse(call, REFUSED_UNAVAILABLE, NULL);
		return;
	}
	if (!read_body(call, R_WORKER, &body, &given) || !keep_metadata(call, &body) ||
		!call_commands(call, 1))
		return;
	*again = is_alive(call, body.worker);
	call->detail = again;
	call->commands[0].kind = COMMAND_REGISTER;
	call->commands[0].worker = body.worker;
	call->commands[0].beat = (struct command_beat){
		.lease_ms = LIVENESS_MS,
		.describes = true,
		.named = true,
		.capabilities = body.capabilities,
		.any_executor = true,
		.max_concurrent = (uint32_t)body.max_concurrent,
		.metadata = body.metadata,
	};
}

void orchestrator_register_finish(struct api_call *call, const struct result *results)
{
	const struct result *result = &results[0];
	struct json_object object;

	if (result->refusal != REFUSED_NOTHING) {
		refuse_result(call, result);
		return;
	}
	json_begin(&object, call->body);
	json_member_bool(&object, "ok", true);
	json_member_string(&object, "worker_id", call->commands[0].worker);
	json_member_bool(&object, "registered", true);
	if (*(const bool *)call->detail)
		json_member_bool(&object, "reregistered", true);
	orchestrator_time(&object, "registered_at", result->worker.registered_ms);
	put_timestamp(call, &object);
	call->reply.event_seq = result->event_seq;
	call_reply(call, 200, json_end(&object));
}

void orchestrator_leave_begin(struct api_call *call)
{
	if (!call_commands(call, 1))
		return;
	call->commands[0].kind = COMMAND_LEAVE;
	call->commands[0].worker = call->params[0];
	call->commands[0].leave = WORKER_TERMINATED;
}

void orchestrator_leave_finish(struct api_call *call, const struct result *results)
{
	struct json_object object;

	if (results[0].refusal != REFUSED_NOTHING) {
		refuse(call, refusal_http_status(results[0].refusal), refusal_code(results[0].refusal),
			"Worker not registered");
		return;
	}
	json_begin(&object, call->body);
	json_member_bool(&object, "ok", true);
	json_member_string(&object, "worker_id", call->commands[0].worker);
	json_member_bool(&object, "unregistered", true);
	put_timestamp(call, &object);
	call->reply.event_seq = results[0].event_seq;
	call_reply(call, 200, json_end(&object));
}

/* ---- heartbeat ----------------------------------------------------------------------------------------- */

bool orchestrator_sees_worker(const struct api_call *call, const struct worker *worker)
{
	const struct principal *who = &call->who;

	if ((who->scopes & (SCOPE_BIT(SCOPE_READ) | SCOPE_BIT(SCOPE_ADMIN))) != 0)
		return who->queues.count == 0;
	return worker->principal == who->number;
}

/* One that ran out of time comes back with its next beat; one that was sent away registers again. */
static bool is_registered(const struct api_call *call, struct span id)
{
	const struct api_reads *reads = call->reads;
	struct worker_document found;

	return reads->read_worker(reads->context, id, &found) == 0 && found.worker.state != WORKER_UNKNOWN &&
		found.worker.ended != WORKER_TERMINATED;
}

void orchestrator_beat_begin(struct api_call *call)
{
	struct span *active = arena_alloc(call->arena, sizeof *active);
	struct body body;
	unsigned given;

	if (!read_body(call, R_WORKER, &body, &given))
		return;
	if (!is_registered(call, body.worker)) {
		refuse(call, 400, NULL, "Worker not registered");
		return;
	}
	if (!active || !call_commands(call, 1))
		return;
	*active = body.active;
	call->detail = active;
	call->commands[0].kind = COMMAND_BEAT;
	call->commands[0].worker = body.worker;
	call->commands[0].beat = (struct command_beat){.lease_ms = LIVENESS_MS, .named = true};
}

/* What it holds: the task that it named, or the first. */
struct holding {
	struct api_call *call;
	struct span active, found;
	int fault;
};

static int look_at_held(void *context, struct span id)
{
	struct holding *holding = context;
	bool is_active = span_equal(id, holding->active);

	if (holding->found.len > 0 && !is_active)
		return 0;
	holding->fault = arena_copy(holding->call->arena, id, &holding->found);
	return holding->fault < 0 || is_active ? 1 : 0;
}

void orchestrator_beat_finish(struct api_call *call, const struct result *results)
{
	const struct api_reads *reads = call->reads;
	const struct command *command = &call->commands[0];
	struct holding holding = {.call = call, .active = *(struct span *)call->detail};
	struct json_object object;

	if (results[0].refusal != REFUSED_NOTHING) {
		refuse_result(call, &results[0]);
		return;
	}
	reads->each_held(reads->context, command->worker, look_at_held, &holding);
	json_begin(&object, call->body);
	json_member_bool(&object, "ok", true);
	json_member_string(&object, "worker_id", command->worker);
	orchestrator_time(&object, "heartbeat_at", results[0].worker.last_beat_ms);
	json_member_string_or_null(&object, "current_vtid", holding.found);
	put_timestamp(call, &object);
	call->reply.event_seq = results[0].event_seq;
	call_reply(call, 200, json_end(&object));
}

/* ---- claim --------------------------------------------------------------------------------------------- */

void orchestrator_claim_begin(struct api_call *call)
{
	struct body body;
	unsigned given;

	if (!has_vtid(call) || !read_body(call, R_WORKER, &body, &given))
		return;
	struct command *command = task_command(call, COMMAND_CLAIM, &body, given);
	if (!command)
		return;
	command->claim = (struct command_claim){
		.slot = body.worker, /* a task may be somebody's own */
		.any_executor = true,
		.named = true,
		.takes_ready = true,
		.enters = true,
		.extends = true,
		.max = 1,
		.lease_ms = LIVENESS_MS,
		.run_ms = body.expires_minutes * MINUTE_MS,
	};
}

static const char *claim_reason(const struct result *result)
{
	switch (result->refusal) {
	case REFUSED_NOT_FOUND:
		return "Task not found";
	case REFUSED_CLAIMED_BY_OTHER:
		return "Task already claimed by another worker";
	case REFUSED_ALREADY_TERMINAL:
		return "Task is already terminal";
	case REFUSED_BAD_TRANSITION:
		return "Task is not waiting for a worker";
	case REFUSED_WORKER_FULL:
		return "Worker holds as many tasks as its max_concurrent allows";
	case REFUSED_QUEUE_PAUSED:
		return "Task is in a queue that is paused";
	case REFUSED_STALE_CLAIM:
		return "The fence is that of an earlier claim";
	case REFUSED_EXECUTION_DISARMED:
		return "Autopilot execution is disarmed";
	case REFUSED_NOT_AUTONOMOUS:
		return "Task does not have metadata.autonomous_execution: true";
	default:
		return refusal_detail(result) ? refusal_detail(result) : refusal_text(result->refusal);
	}
}

/* Who has it, and until when: told to whoever was too late. */
static void put_holder(struct api_call *call, struct json_object *object, const struct result *result)
{
	const struct api_reads *reads = call->reads;
	struct task_document document;

	if (result->refusal != REFUSED_CLAIMED_BY_OTHER ||
		reads->read_task(reads->context, result->task.seq, call->arena, &document) < 0 ||
		document.holder.len == 0)
		return;
	json_member_string(object, "claimed_by", document.holder);
	orchestrator_time(object, "expires_at", orchestrator_claim_expires_ms(call, &document.task));
}

static void refuse_claim(struct api_call *call, const struct result *result)
{
	struct json_object object;

	buf_clear(call->body);
	put_no(call, &object, refusal_code(result->refusal), claim_reason(result));
	json_member_string(&object, "vtid", call->params[0]);
	put_holder(call, &object, result);
	put_timestamp(call, &object);
	call_reply(call, refusal_http_status(result->refusal), json_end(&object));
}

static void put_claim(struct api_call *call, const struct claimed *claimed, yyjson_doc *doc)
{
	int64_t expires_ms = orchestrator_claim_expires_ms(call, &claimed->task);
	struct json_object object;

	json_begin(&object, call->body);
	json_member_bool(&object, "ok", true);
	json_member_bool(&object, "claimed", true);
	json_member_string(&object, "vtid", claimed->id);
	json_member_string(&object, "worker_id", call->commands[0].worker);
	json_member_decimal(&object, "fence", claimed->task.fence);
	put_text(&object, "title", yyjson_obj_get(yyjson_doc_get_root(doc), "title"));
	put_summary(&object, doc);
	json_member_string(&object, "spec", spec_of(doc));
	put_snapshot(&object, doc);
	json_member_cstr(&object, "state", stage_name(workflow_stage_of(&claimed->task)));
	json_member_int(&object, "attempt", claimed->task.attempt);
	orchestrator_time(&object, "claim_expires_at", expires_ms);
	orchestrator_time(&object, "expires_at", expires_ms);
	if (claimed->checkpoint.len > 0)
		json_member_raw(&object, "checkpoint", claimed->checkpoint);
	put_timestamp(call, &object);
	call_reply(call, 200, json_end(&object));
}

void orchestrator_claim_finish(struct api_call *call, const struct result *results)
{
	const struct result *result = &results[0];

	if (result->refusal != REFUSED_NOTHING) {
		refuse_claim(call, result);
		return;
	}
	yyjson_doc *doc = task_body_read(result->claims[0].body);
	put_claim(call, &result->claims[0], doc);
	yyjson_doc_free(doc);
	call->reply.event_seq = result->event_seq;
}

/* ---- progress ------------------------------------------------------------------------------------------ */

static int put_note(struct buf *note, const struct body *body)
{
	struct json_object members = {.buf = note};

	json_member_string(&members, "event", body->event);
	if (body->message.len > 0)
		json_member_string(&members, "note", body->message);
	if (body->metadata.len > 0)
		json_member_raw(&members, "metadata", body->metadata);
	return members.fault;
}

/* Why it failed, should this be its last word. */
static int put_error(struct buf *error, const struct body *body)
{
	struct json_object object;

	json_begin(&object, error);
	json_member_cstr(&object, "code", failure_code_name(CODE_EXECUTION_ERROR));
	json_member_string(&object, "message", body->message.len > 0 ? body->message : body->event);
	json_member_cstr(&object, "class", failure_class_name(CLASS_TASK));
	return json_end(&object);
}

void orchestrator_progress_begin(struct api_call *call)
{
	cleanup(buf_done) struct buf note = {0}, error = {0};
	struct body body;
	unsigned given;

	buf_init(&note, 2 * API_TEXT_MAX);
	buf_init(&error, 8 * MESSAGE_MAX);
	if (!has_vtid(call) || !read_body(call, R_WORKER | R_EVENT, &body, &given))
		return;
	struct command *command = task_command(call, COMMAND_PROGRESS, &body, given);
	if (!command)
		return;
	struct tiding tiding = {.type = body.event, .has_pr = body.has_pr};
	command->lease_ms = LIVENESS_MS;
	command->data = body.metadata;
	command->told.ends = true;
	if (put_note(&note, &body) < 0 || put_error(&error, &body) < 0) {
		api_refuse(call, REFUSED_TOO_LARGE, NULL);
		return;
	}
	if (call_keep(call, &note, &command->note) == 0 && call_keep(call, &error, &command->told.error) == 0)
		call_tells(call, command, &tiding);
}

/* Nobody's claim, another's, or one that is over. */
static bool is_without_claim(enum refusal refusal)
{
	return refusal == REFUSED_NOT_CLAIMED || refusal == REFUSED_CLAIMED_BY_OTHER ||
		refusal == REFUSED_STALE_CLAIM || refusal == REFUSED_ALREADY_TERMINAL ||
		refusal == REFUSED_NOT_FOUND;
}

void orchestrator_progress_finish(struct api_call *call, const struct result *results)
{
	const struct result *result = &results[0];
	struct json_object object;

	if (is_without_claim(result->refusal)) {
		refuse(call, 400, refusal_code(result->refusal), "No active claim for this task");
		return;
	}
	if (result->refusal != REFUSED_NOTHING) {
		refuse_result(call, result);
		return;
	}
	json_begin(&object, call->body);
	json_member_bool(&object, "ok", true);
	json_member_string(&object, "vtid", result->id);
	json_member_string(&object, "event", call->commands[0].told.tiding.type);
	json_member_cstr(&object, "state", stage_name(workflow_stage_of(&result->task)));
	if (task_is_claimed(&result->task))
		json_member_decimal(&object, "fence", result->task.fence);
	put_timestamp(call, &object);
	call->reply.event_seq = result->event_seq;
	call_reply(call, 200, json_end(&object));
}

/* ---- release ------------------------------------------------------------------------------------------- */

void orchestrator_release_begin(struct api_call *call)
{
	cleanup(buf_done) struct buf note = {0};
	struct json_object members = {.buf = &note};
	struct body body;
	unsigned given;

	buf_init(&note, 64 << 10);
	if (!has_vtid(call) || !read_body(call, R_WORKER, &body, &given))
		return;
	if (body.reason.len == 0)
		body.reason = SPAN("completed");
	struct command *command = task_command(call, COMMAND_RELEASE, &body, given);
	if (!command)
		return;
	json_member_string(&members, "reason", body.reason);
	if (members.fault < 0)
		api_refuse(call, REFUSED_TOO_LARGE, NULL);
	else
		call_keep(call, &note, &command->note);
}

/* Its last word has ended the claim already: there is nothing left to give back. */
static bool was_reported(const struct api_call *call, const struct result *result)
{
	const struct api_reads *reads = call->reads;
	const struct task *task = &result->task;
	struct task_document document;

	if (task->seq == 0 || task_is_claimed(task) || task->claimant != call->who.number ||
		reads->read_task(reads->context, task->seq, call->arena, &document) < 0 ||
		reads->read_last(reads->context, call->arena, &document) < 0)
		return false;
	return span_equal(document.last.worker, call->commands[0].worker) &&
		(task->ended == ENDED_REVIEW || task->ended == ENDED_FAIL || task->ended == ENDED_COMPLETE);
}

void orchestrator_release_finish(struct api_call *call, const struct result *results)
{
	const struct result *result = &results[0];
	struct json_object object;
	bool is_over = result->refusal != REFUSED_NOTHING && was_reported(call, result);

	if (is_without_claim(result->refusal) && !is_over) {
		refuse(call, 409, refusal_code(result->refusal), "No active claim for this task");
		return;
	}
	if (result->refusal != REFUSED_NOTHING && !is_over) {
		refuse_result(call, result);
		return;
	}
	json_begin(&object, call->body);
	json_member_bool(&object, "ok", true);
	json_member_bool(&object, "released", true);
	json_member_string(&object, "vtid", call->params[0]);
	json_member_string(&object, "worker_id", call->commands[0].worker);
	json_members_raw(&object, call->commands[0].note);
	put_timestamp(call, &object);
	call->reply.event_seq = result->event_seq;
	call_reply(call, 200, json_end(&object));
}

/* ---- health -------------------------------------------------------------------------------------------- */

void orchestrator_health_read(struct api_call *call)
{
	const struct api_reads *reads = call->reads;
	bool degraded = reads->is_degraded(reads->context);
	struct json_object object;

	call->query_taken = true;
	json_begin(&object, call->body);
	json_member_bool(&object, "ok", !degraded);
	json_member_cstr(&object, "status", degraded ? "degraded" : "healthy");
	json_member_cstr(&object, "service", "worker-orchestrator");
	json_member_bool(&object, "execution_armed", call_is_armed(call, NULL));
	put_timestamp(call, &object);
	call_reply(call, degraded ? 503 : 200, json_end(&object));
}
