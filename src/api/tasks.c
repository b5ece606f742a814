/*
 * Tasks: creating them one by one or many at once, changing them, and what people do to them.
 */
#include "api/task_form.h"
#include "api/task_view.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "base/take.h"

enum {
	BATCH_MAX = 1000,
	REASON_MAX = 4096,
	PATCH_TRIES_MAX = 10,
};

#define OTHER_QUEUE "The credential is for other queues than this one."

/* ---- create ----------------------------------------------------------------------------------------- */

static void fill_create(struct api_call *call, const struct task_form *task, struct command *command)
{
	command->kind = COMMAND_CREATE;
	task_form_to_create(task, &command->create);
	if (!call->request->idempotency_key.data)
		return;
	command->create.idempotency_key = call->request->idempotency_key;
	digest_request(call->request, command->create.fingerprint);
}

void task_create_begin(struct api_call *call)
{
	struct task_form *task = arena_alloc(call->arena, sizeof *task);
	cleanup(form_done) struct form form = {0};

	if (!form_open(&form, call, false) || !call_key_is_good(call))
		return;
	if (!task) {
		api_refuse(call, REFUSED_UNAVAILABLE, NULL);
		return;
	}
	task_form_create(&form, form.root, task);
	if (!form_is_good(&form) || !call_commands(call, 1))
		return;
	call->detail = task;
	fill_create(call, task, &call->commands[0]);
	if (!principal_serves(&call->who, call->commands[0].create.queue))
		api_refuse(call, REFUSED_FORBIDDEN, OTHER_QUEUE);
}

/* The task that a create made, or found: the first is known without asking the store. */
static int document_of(struct api_call *call, const struct command *command, const struct result *result,
	struct task_document *ret_document)
{
	const struct api_reads *reads = call->reads;

	if (result->deduplicated || result->repeated)
		return reads->read_task(reads->context, result->task.seq, call->arena, ret_document);
	*ret_document = (struct task_document){
		.task = result->task,
		.id = result->id,
		.body = command->create.body,
	};
	return 0;
}

static int put_created(struct api_call *call, const struct command *command, struct span warnings,
	const struct result *result, struct task_document *ret_document)
{
	struct json_object object;

	int r = document_of(call, command, result, ret_document);
	if (r < 0)
		return r;
	json_begin(&object, call->body);
	task_put_members(call, &object, ret_document);
	if (result->deduplicated)
		json_member_bool(&object, "deduplicated", true);
	r = json_end(&object);
	return r < 0 ? r : warnings_put(call->body, warnings);
}

static struct span location_of(struct api_call *call, struct span id)
{
	static const struct span prefix = {"/api/tasks/", sizeof "/api/tasks/" - 1};
	char *text = arena_alloc(call->arena, prefix.len + id.len);

	if (!text)
		return (struct span){0};
	memcpy(text, prefix.data, prefix.len);
	memcpy(text + prefix.len, id.data, id.len);
	return (struct span){text, prefix.len + id.len};
}

/* A parent that is not there, or waits for the task itself, is the caller's mistake in one field. */
static bool is_missing_parent(const struct result *result)
{
	return result->refusal == REFUSED_INVALID && result->id.len > 0;
}

static void missing_parent(const struct result *result, char message[256])
{
	snprintf(message, 256,
		result->cyclic ? "names %.*s, which waits for this task itself"
			       : "names %.*s, and there is no such task",
		SPAN_ARGS(result->id));
}

void task_create_finish(struct api_call *call, const struct result *results)
{
	const struct result *result = &results[0];
	const struct task_form *task = call->detail;
	struct task_document document;
	char message[256];

	if (is_missing_parent(result)) {
		missing_parent(result, message);
		call_refuse_field(call, "blockedBy", message);
		return;
	}
	if (result->refusal != REFUSED_NOTHING) {
		call_refuse_result(call, result);
		return;
	}
	int r = put_created(call, &call->commands[0], task->warnings, result, &document);
	call_reply(call, result->deduplicated ? 200 : 201, r);
	if (r < 0)
		return;
	call->reply.event_seq = result->event_seq;
	call->reply.location = location_of(call, document.id);
	call->reply.etag = task_etag(call, document.task.version);
}

/* ---- many at once ----------------------------------------------------------------------------------- */

struct batch_item {
	struct task_form task;
	struct span errors; /* elements of a JSON list */
	bool forbidden;     /* its queue is not the caller's */
};

struct batch {
	uint32_t count;
	struct batch_item *items;
};

static struct batch *batch_new(struct api_call *call, size_t count)
{
	struct batch *batch = arena_alloc(call->arena, sizeof *batch);

	if (batch)
		batch->items = arena_alloc(call->arena, (count + 1) * sizeof *batch->items);
	if (!batch || !batch->items) {
		api_refuse(call, REFUSED_TOO_LARGE, "There is no room for so many at once.");
		return NULL;
	}
	batch->count = (uint32_t)count;
	return batch;
}

static yyjson_val *batch_list(struct form *form)
{
	struct {
		yyjson_val *tasks;
	} body = {0};
	static const struct field fields[] = {{"tasks", FIELD_NODE, .required = true, .at = 0}};

	if (yyjson_is_arr(form->root))
		return form->root;
	form_read(form, form->root, FIELDS(fields), &body);
	if (body.tasks && !yyjson_is_arr(body.tasks))
		form_error(form, "tasks", "must be a list of tasks");
	return body.tasks;
}

/* What is wrong with one item concerns that item alone. */
static bool read_item(struct api_call *call, yyjson_val *document, struct batch_item *item)
{
	cleanup(form_done) struct form form = {0};

	form_init(&form, call);
	task_form_create(&form, document, &item->task);
	if (form.fault < 0)
		return form_is_good(&form);
	if (form.error_count > 0)
		return call_keep(call, &form.errors, &item->errors) == 0;
	struct command_create create = {0};
	task_form_to_create(&item->task, &create);
	item->forbidden = !principal_serves(&call->who, create.queue);
	return true;
}

/* Each item has a key of its own, so that a repeated batch meets each of its tasks again. */
static bool key_item(struct api_call *call, struct command *command, uint32_t index)
{
	cleanup(buf_done) struct buf key = {0};

	if (command->create.idempotency_key.len == 0)
		return true;
	buf_init(&key, IDEMPOTENCY_KEY_MAX + 16);
	int r = buf_put_span(&key, command->create.idempotency_key);
	if (r == 0)
		r = buf_printf(&key, "/%u", index);
	return r == 0 && call_keep(call, &key, &command->create.idempotency_key) == 0;
}

static bool has_command(const struct batch_item *item)
{
	return item->errors.len == 0 && !item->forbidden;
}

static bool fill_batch(struct api_call *call, const struct batch *batch)
{
	uint32_t good = 0;

	for (uint32_t i = 0; i < batch->count; i++)
		good += has_command(&batch->items[i]);
	struct command *commands = call_commands(call, good);
	for (uint32_t i = 0, at = 0; commands && i < batch->count; i++) {
		if (!has_command(&batch->items[i]))
			continue;
		fill_create(call, &batch->items[i].task, &commands[at]);
		if (!key_item(call, &commands[at++], i))
			return false;
	}
	return commands != NULL;
}

void task_batch_begin(struct api_call *call)
{
	cleanup(form_done) struct form form = {0};
	size_t i, limit;
	yyjson_val *document;

	if (!form_open(&form, call, true) || !call_key_is_good(call))
		return;
	yyjson_val *list = batch_list(&form);
	if (yyjson_arr_size(list) > BATCH_MAX)
		form_error(&form, "tasks", "has %zu tasks; at most %d are allowed", yyjson_arr_size(list),
			BATCH_MAX);
	if (!form_is_good(&form))
		return;
	struct batch *batch = batch_new(call, yyjson_arr_size(list));
	if (!batch)
		return;
	call->detail = batch;
	yyjson_arr_foreach(list, i, limit, document)
	{
		if (!read_item(call, document, &batch->items[i]))
			return;
	}
	if (fill_batch(call, batch) && call->command_count == 0)
		task_batch_finish(call, NULL);
}

static int put_refused_item(
	struct buf *out, int status, const char *code, const char *detail, struct span errors)
{
	struct json_object item;

	json_begin(&item, out);
	json_member_bool(&item, "ok", false);
	json_member_int(&item, "status", status);
	json_member_cstr(&item, "code", code);
	if (detail)
		json_member_cstr(&item, "detail", detail);
	int r = json_end(&item);
	if (r < 0 || errors.len == 0)
		return r;
	out->len--;
	r = buf_printf(out, ",\"errors\":[");
	if (r == 0)
		r = buf_put_span(out, errors);
	return r < 0 ? r : buf_printf(out, "]}");
}

static int put_item(struct api_call *call, const struct batch_item *item, const struct command *command,
	const struct result *result)
{
	struct task_document document;
	char message[256];

	if (result->refusal != REFUSED_NOTHING) {
		if (is_missing_parent(result))
			missing_parent(result, message);
		return put_refused_item(call->body, refusal_http_status(result->refusal),
			refusal_code(result->refusal),
			is_missing_parent(result) ? message : refusal_text(result->refusal),
			(struct span){0});
	}
	int r = buf_printf(
		call->body, "{\"ok\":true,\"status\":%d,\"task\":", result->deduplicated ? 200 : 201);
	if (r == 0)
		r = put_created(call, command, item->task.warnings, result, &document);
	return r < 0 ? r : buf_put_byte(call->body, '}');
}

void task_batch_finish(struct api_call *call, const struct result *results)
{
	const struct batch *batch = call->detail;
	uint32_t at = 0;

	int r = buf_printf(call->body, "{\"results\":[");
	for (uint32_t i = 0; r == 0 && i < batch->count; i++) {
		const struct batch_item *item = &batch->items[i];
		if (i > 0)
			r = buf_put_byte(call->body, ',');
		if (r == 0 && item->errors.len > 0)
			r = put_refused_item(call->body, refusal_http_status(REFUSED_INVALID),
				refusal_code(REFUSED_INVALID), NULL, item->errors);
		else if (r == 0 && item->forbidden)
			r = put_refused_item(call->body, refusal_http_status(REFUSED_FORBIDDEN),
				refusal_code(REFUSED_FORBIDDEN), OTHER_QUEUE, item->errors);
		else if (r == 0) {
			r = put_item(call, item, &call->commands[at], &results[at]);
			if (results[at].event_seq > call->reply.event_seq)
				call->reply.event_seq = results[at].event_seq;
			at++;
		}
	}
	if (r == 0)
		r = buf_printf(call->body, "]}");
	call_reply(call, 200, r);
}

/* ---- read ------------------------------------------------------------------------------------------- */

static int find_document(struct api_call *call, struct task_document *ret_document)
{
	const struct api_reads *reads = call->reads;
	int64_t seq;

	int r = reads->find_task(reads->context, call->params[0], &seq);
	if (r == 0)
		r = reads->read_task(reads->context, seq, call->arena, ret_document);
	return r == 0 && !principal_sees(call, &ret_document->task) ? -ENOENT : r;
}

/* If-None-Match: does it name that version, among others or with "*"? Weak or not makes no difference here. */
static bool etag_is_listed(struct span list, struct span etag)
{
	if (span_equal(list, SPAN("*")))
		return true;
	for (size_t at = 0; at + etag.len <= list.len; at++) {
		bool ends = at + etag.len == list.len || strchr(", \t", list.data[at + etag.len]);
		if (ends && memcmp(list.data + at, etag.data, etag.len) == 0)
			return true;
	}
	return false;
}

/* What its holder goes by: how much of its time limit is left, and whether it has waited long enough for an answer. */
static void put_clocks(struct json_object *object, const struct api_call *call, const struct task *task)
{
	struct given given = {.rules = call->rules, .now = call->now};
	int64_t run_ms = task_run_remaining_ms(task, &given);

	if (!task_is_claimed(task))
		return;
	json_member_int(object, "runMs", run_ms > 0 ? run_ms : 0);
	if (task_must_park(task, &given))
		json_member_bool(object, "parking", true);
}

void task_read(struct api_call *call)
{
	const struct api_reads *reads = call->reads;
	struct task_document document;
	struct json_object object;

	int r = find_document(call, &document);
	if (r < 0) {
		call_refuse_fault(call, r);
		return;
	}
	call->reply.etag = task_etag(call, document.task.version);
	if (etag_is_listed(call->request->if_none_match, call->reply.etag)) {
		call->reply.status = 304;
		return;
	}
	json_begin(&object, call->body);
	task_put_members(call, &object, &document);
	put_clocks(&object, call, &document.task);
	json_member_cstr(&object, "reason", why_name(reads->why(reads->context, &document.task).why));
	call_reply(call, 200, json_end(&object));
}

void task_why_read(struct api_call *call)
{
	const struct api_reads *reads = call->reads;
	struct task_document document;
	struct json_object object;

	int r = find_document(call, &document);
	if (r < 0) {
		call_refuse_fault(call, r);
		return;
	}
	struct reason reason = reads->why(reads->context, &document.task);
	json_begin(&object, call->body);
	json_member_string(&object, "id", document.id);
	json_member_cstr(&object, "state", task_state_name(document.task.state));
	json_member_cstr(&object, "reason", why_name(reason.why));
	json_member_cstr(&object, "text", why_text(reason.why));
	if (reason.until_ms != 0)
		json_member_int(&object, "until", reason.until_ms);
	if (reason.why == WHY_KEPT_FOR_HOST)
		json_member_string(&object, "host", reads->name(reads->context, document.task.resume_host));
	if (reason.slot != 0)
		json_member_string(&object, "slot", reads->name(reads->context, reason.slot));
	if (reason.code != CODE_NONE)
		json_member_cstr(&object, "code", failure_code_name(reason.code));
	call_reply(call, 200, json_end(&object));
}

/* ---- change ----------------------------------------------------------------------------------------- */

/* What it says about the end of the attempt, if the work itself puts its task there. */
static const char *outcome_of(enum task_status lane)
{
	switch (lane) {
	case STATUS_DONE:
		return "complete";
	case STATUS_REVIEW:
		return "review";
	case STATUS_BLOCKED:
		return "block";
	case STATUS_TODO:
		return "release";
	case STATUS_NONE:
	case STATUS_IN_PROGRESS:
	case STATUS_CANCELLED:
	case TASK_STATUS_COUNT:
		break;
	}
	return NULL;
}

/* A text that changes is merged with what is there, so the task is read first; see task_patch_read(). */
void task_patch_begin(struct api_call *call)
{
	struct task_form *task = arena_alloc(call->arena, sizeof *task);
	cleanup(form_done) struct form form = {0};

	if (!form_open(&form, call, false))
		return;
	if (!task) {
		api_refuse(call, REFUSED_UNAVAILABLE, NULL);
		return;
	}
	task_form_patch(&form, form.root, task);
	if (!form_is_good(&form) || !call_commands(call, 1))
		return;
	struct command *command = &call->commands[0];
	command->kind = COMMAND_UPDATE;
	command->task = call->params[0];
	command->worker = call->who.worker; /* with the token of a claim: it acts for that */
	command->fence = call->who.fence;
	task_form_to_update(task, &command->update);
	if (command->update.status != STATUS_NONE)
		command->data = task->error;
	if (!report_keep_word(call, command, outcome_of(command->update.status)))
		return;
	if (command->update.status != STATUS_NONE && command->fence == 0) {
		command->by_name = true;
		if (call->who.number != PRINCIPAL_OPEN) /* who shows nothing is the slot worker itself */
			command->note = SPAN("\"operator\":true");
	}
	call->detail = task;
	if (task->body.len > 0)
		call->step = API_READ;
}

/* The metadata as they will be say whether it may run on its own. */
static void read_autonomous(struct command_update *update)
{
	yyjson_doc *doc = task_body_read(update->body);

	update->patch.set_autonomous = true;
	update->patch.autonomous = task_is_autonomous(yyjson_obj_get(yyjson_doc_get_root(doc), "metadata"));
	yyjson_doc_free(doc);
}

/* The text is the one of this very version: a change in between must not be lost. */
void task_patch_read(struct api_call *call)
{
	const struct task_form *task = call->detail;
	struct command_update *update = &call->commands[0].update;
	cleanup(buf_done) struct buf patch = {0};
	struct task_document document;

	int r = find_document(call, &document);
	buf_init(&patch, 3 * API_TEXT_MAX);
	if (r == 0 && (task->cleared & task_field_bit("metadata")))
		r = task_body_merge(call->arena, document.body, SPAN("{\"metadata\":null}"), &document.body);
	if (r == 0)
		r = buf_put_byte(&patch, '{');
	if (r == 0)
		r = buf_put_span(&patch, task->body);
	if (r == 0)
		r = buf_put_byte(&patch, '}');
	if (r == 0)
		r = task_body_merge(call->arena, document.body, buf_span(&patch), &update->body);
	if (r < 0) {
		call_refuse_fault(call, r);
		return;
	}
	update->set_body = true;
	update->body_version = document.task.version;
	read_autonomous(update);
	call->step = API_TURN;
}

void task_finish(struct api_call *call, const struct result *results)
{
	if (results[0].refusal != REFUSED_NOTHING)
		call_refuse_result(call, &results[0]);
	else
		task_reply(call, 200, &results[0], (struct span){0});
}

/* Somebody else was faster, and the caller did not ask for a certain version: merge again with what is there now. */
static bool patch_again(struct api_call *call, const struct result *result)
{
	struct task_form *task = call->detail;

	if (result->refusal != REFUSED_VERSION_MISMATCH || call->commands[0].if_version != 0 ||
		task->tries++ == PATCH_TRIES_MAX)
		return false;
	task_patch_read(call);
	return true;
}

/* What the sender of a move should do instead. */
static const char *move_detail(const struct command_update *update, const struct result *result)
{
	if (update->status == STATUS_NONE)
		return refusal_detail(result);
	if (result->refusal == REFUSED_CLAIMED_BY_OTHER)
		return "A worker holds it that is not the slot that owns it: that worker reports how it ends, or POST /api/tasks/ID/cancel stops it.";
	if (result->refusal != REFUSED_BAD_TRANSITION)
		return refusal_detail(result);
	if (update->status == STATUS_IN_PROGRESS && result->task.state == TASK_READY)
		return "Nobody owns the task, so there is no slot to take it: send \"owner\" along, or claim it with POST /api/tasks/ID/claim.";
	if (update->status == STATUS_IN_PROGRESS)
		return "Only a task that is ready can be taken.";
	if (update->status == STATUS_TODO)
		return "Only work in progress can be given back: POST /api/tasks/ID/retry opens a task that has ended, POST /api/tasks/ID/answer goes on with one that asks.";
	if (result->task.state == TASK_REVIEW)
		return "The work was reported, and waits for a verdict: POST /api/tasks/ID/gates/GATE, or stint approve.";
	if (task_state_is_final(result->task.state))
		return "It has ended: POST /api/tasks/ID/retry opens it again.";
	return "Only work in progress can end so: claim the task first.";
}

static void refuse_patch(struct api_call *call, const struct result *result)
{
	cleanup(buf_done) struct buf members = {0};
	char message[256];

	if (is_missing_parent(result)) {
		missing_parent(result, message);
		call_refuse_field(call, "blockedBy", message);
		return;
	}
	buf_init(&members, 256);
	int r = buf_printf(&members, "\"state\":\"%s\"",
		result->task.seq != 0 ? task_state_name(result->task.state) : "");
	call_refuse_with(call, result->refusal, move_detail(&call->commands[0].update, result),
		r < 0 || result->task.seq == 0 ? (struct span){0} : buf_span(&members));
}

void task_patch_finish(struct api_call *call, const struct result *results)
{
	const struct task_form *task = call->detail;

	if (patch_again(call, &results[0]))
		return;
	if (results[0].refusal != REFUSED_NOTHING)
		refuse_patch(call, &results[0]);
	else
		task_reply(call, 200, &results[0], task->warnings);
}

/* ---- what people do --------------------------------------------------------------------------------- */

struct reason_body {
	struct span reason;
};

static const struct field reason_fields[] = {
	FIELD(reason_body, reason, "reason", FIELD_TEXT, .max = REASON_MAX),
};

/* A command that needs nothing but the task; the reason goes into its event. */
static void operator_begin(struct api_call *call, enum command_kind kind)
{
	struct reason_body body = {0};
	cleanup(buf_done) struct buf note = {0};
	struct json_object members = {.buf = &note};
	uint64_t given;

	buf_init(&note, 8 * REASON_MAX);
	if (!form_read_body(call, FIELDS(reason_fields), &body, &given) || !call_commands(call, 1))
		return;
	call->commands[0].kind = kind;
	call->commands[0].task = call->params[0];
	if (body.reason.len == 0)
		return;
	json_member_string(&members, "reason", body.reason);
	call_keep(call, &note, &call->commands[0].note);
}

void task_cancel_begin(struct api_call *call)
{
	operator_begin(call, COMMAND_CANCEL);
}

void task_retry_begin(struct api_call *call)
{
	operator_begin(call, COMMAND_RETRY);
}

void task_park_begin(struct api_call *call)
{
	operator_begin(call, COMMAND_PARK);
}

void task_unpark_begin(struct api_call *call)
{
	operator_begin(call, COMMAND_UNPARK);
}

/* Work under a beating worker stops first: accepted, and not over yet. */
void task_cancel_finish(struct api_call *call, const struct result *results)
{
	if (results[0].refusal != REFUSED_NOTHING)
		call_refuse_result(call, &results[0]);
	else
		task_reply(call, results[0].task.claim.stopping ? 202 : 200, &results[0], (struct span){0});
}

struct answer_body {
	struct span text;
	bool deny;
};

static const struct field answer_fields[] = {
	FIELD(answer_body, text, "text", FIELD_TEXT, .max = API_TEXT_MAX),
	FIELD(answer_body, deny, "deny", FIELD_BOOL, .max = 0),
};

void task_answer_begin(struct api_call *call)
{
	struct answer_body body = {0};
	cleanup(buf_done) struct buf answer = {0};
	struct json_object object;
	uint64_t given;

	buf_init(&answer, 8 * API_TEXT_MAX);
	if (!form_read_body(call, FIELDS(answer_fields), &body, &given))
		return;
	if (!body.deny && body.text.len == 0) {
		call_refuse_field(call, "text", "is required, unless \"deny\" is true");
		return;
	}
	if (!call_commands(call, 1))
		return;
	call->commands[0].kind = COMMAND_ANSWER;
	call->commands[0].task = call->params[0];
	json_begin(&object, &answer);
	if (body.text.len > 0)
		json_member_string(&object, "text", body.text);
	if (body.deny)
		json_member_bool(&object, "deny", true);
	if (json_end(&object) < 0)
		api_refuse(call, REFUSED_TOO_LARGE, NULL);
	else
		call_keep(call, &answer, &call->commands[0].data);
}
