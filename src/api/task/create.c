/*
 * Tasks are created: one by one, or many at once.
 */
#include "api/task/form.h"
#include "api/task/subtask.h"
#include "api/task/view.h"

#include <assert.h>
#include <stdio.h>

#include "base/take.h"

enum {
	BATCH_MAX = 1000,
};

#define OTHER_QUEUE "The credential is for other queues than this one."

/* ---- create ----------------------------------------------------------------------------------------- */

static void fill_create(struct api_call *call, const struct task_form *task, struct command *command)
{
	command->kind = COMMAND_CREATE;
	command->create = task->create;
	call_key(call, &command->create);
}

void task_create_begin(struct api_call *call)
{
	struct task_form *task = call_detail(call, sizeof *task);
	cleanup(form_done) struct form form = {0};

	if (!task || !form_open(&form, call, false) || !call_key_is_good(call))
		return;
	call->takes_trace = true;
	task_form_create(&form, form.root, task);
	if (!form_is_good(&form) || !call_commands(call, 1))
		return;
	struct command *command = &call->commands[0];
	fill_create(call, task, command);
	if (call->who.task_seq != 0 && !subtask_fill(&form, form.root, command))
		return;
	if (command->create.queue.len > 0 && !principal_makes_in(&call->who, command->create.queue))
		api_refuse(call, REFUSED_FORBIDDEN, OTHER_QUEUE);
}

/* The task that a create made, or found: the first is known without asking the store. */
static int document_of(struct api_call *call, const struct command *command, const struct result *result,
	struct task_document *ret_document)
{
	if (result->deduplicated || result->repeated)
		return store_read_task(call->store, result->task.seq, call->now, call->arena, ret_document);
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
	bool is_own = call->who.task_seq != 0 && ret_document->task.subtask_of == call->who.task_seq;
	if (result->deduplicated && !principal_reads(&call->who) && !is_own) {
		json_member_string(&object, "id", ret_document->id);
		json_member_cstr(&object, "state", task_state_name(ret_document->task.state));
	} else {
		task_put_members(call, &object, ret_document, PARENTS_IN_LIST);
	}
	json_member_true_if(&object, "deduplicated", result->deduplicated);
	warnings_put(&object, warnings);
	return json_end(&object);
}

bool parent_is_missing(const struct result *result)
{
	return result->refusal == REFUSED_INVALID && result->excess == EXCESS_NONE &&
		(result->id.len > 0 || result->group.len > 0);
}

static void tell_missing(const struct result *result, char message[256])
{
	snprintf(message, 256,
		result->cyclic ? "names %.*s, which waits for this task itself"
			       : "names %.*s, and there is no such task",
		SPAN_ARGS(result->group.len > 0 ? result->group : result->id));
}

void parent_refuse(struct api_call *call, const struct result *result)
{
	char message[256];

	tell_missing(result, message);
	call_refuse_field(call, result->group.len > 0 ? "blockedByGroups" : "blockedBy", message);
}

void task_create_finish(struct api_call *call, const struct result *results)
{
	const struct result *result = &results[0];
	const struct task_form *task = call->detail;
	struct task_document document;
	cleanup(buf_done) struct buf path = {.max = 2 * COMMAND_ID_MAX};

	const char *field;
	char message[256];
	if (parent_is_missing(result)) {
		parent_refuse(call, result);
		return;
	}
	if (subtask_complaint(call, result, &field, message)) {
		call_refuse_field(call, field, message);
		return;
	}
	if (call_is_refused(call, result))
		return;
	int r = put_created(call, &call->commands[0], task->warnings, result, &document);
	call_reply(call, result->deduplicated ? 200 : 201, r);
	if (r < 0)
		return;
	call->reply.event_seq = result->event_seq;
	buf_put_span(&path, SPAN("/api/tasks/"));
	buf_put_span(&path, document.id);
	if (task_etag(call, document.task.version))
		call_locate(call, &path);
}

/* ---- many at once ----------------------------------------------------------------------------------- */

struct batch_item {
	struct task_form task;
	struct span errors; /* elements of a JSON list */
	bool forbidden;     /* its queue is not the caller's */
};

struct batch {
	uint32_t count;
	struct batch_item items[];
};

static struct batch *batch_new(struct api_call *call, size_t count)
{
	struct batch *batch = call_detail(call, sizeof *batch + count * sizeof *batch->items);

	if (batch)
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
	call->takes_trace = true;
	task_form_create(&form, document, &item->task);
	if (form.fault < 0)
		return form_is_good(&form);
	if (form.error_count > 0)
		return call_keep(call, &form.errors, &item->errors) == 0;
	item->forbidden = !principal_serves(&call->who, item->task.create.queue);
	return true;
}

/* Each item has a key of its own, so that a repeated batch meets each of its tasks again. */
static bool key_item(struct api_call *call, struct command *command, uint32_t index)
{
	cleanup(buf_done) struct buf key = {.max = IDEMPOTENCY_KEY_MAX + 16};

	if (command->create.idempotency_key.len == 0)
		return true;
	buf_put_span(&key, command->create.idempotency_key);
	buf_printf(&key, "/%u", index);
	return call_keep(call, &key, &command->create.idempotency_key) == 0;
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
	yyjson_arr_foreach(list, i, limit, document)
	{
		if (!read_item(call, document, &batch->items[i]))
			return;
	}
	if (fill_batch(call, batch) && call->command_count == 0)
		task_batch_finish(call, NULL);
}

static void put_refused_item(struct buf *out, enum refusal refusal, const char *detail, struct span errors)
{
	struct json_object item;

	json_begin(&item, out);
	json_member_bool(&item, "ok", false);
	json_member_int(&item, "status", refusal_http_status(refusal));
	json_member_cstr(&item, "code", refusal_code(refusal));
	if (detail)
		json_member_cstr(&item, "detail", detail);
	if (errors.len > 0 && json_put_key(&item, "errors")) {
		buf_put_byte(out, '[');
		buf_put_span(out, errors);
		buf_put_byte(out, ']');
	}
	json_end(&item);
}

static int put_item(struct api_call *call, const struct batch_item *item, const struct command *command,
	const struct result *result)
{
	struct task_document document;
	char message[256];

	if (result->refusal != REFUSED_NOTHING) {
		if (parent_is_missing(result))
			tell_missing(result, message);
		put_refused_item(call->body, result->refusal,
			parent_is_missing(result) ? message : refusal_text(result->refusal),
			(struct span){0});
		return 0;
	}
	buf_printf(call->body, "{\"ok\":true,\"status\":%d,\"task\":", result->deduplicated ? 200 : 201);
	int r = put_created(call, command, item->task.warnings, result, &document);
	buf_put_byte(call->body, '}');
	return r;
}

void task_batch_finish(struct api_call *call, const struct result *results)
{
	const struct batch *batch = call->detail;
	uint32_t at = 0;
	int r = buf_put_span(call->body, SPAN("{\"results\":["));

	for (uint32_t i = 0; r == 0 && i < batch->count; i++) {
		const struct batch_item *item = &batch->items[i];
		if (i > 0)
			buf_put_byte(call->body, ',');
		if (item->errors.len > 0)
			put_refused_item(call->body, REFUSED_INVALID, NULL, item->errors);
		else if (item->forbidden)
			put_refused_item(call->body, REFUSED_FORBIDDEN, OTHER_QUEUE, item->errors);
		else {
			r = put_item(call, item, &call->commands[at], &results[at]);
			at++;
		}
	}
	assert(r < 0 || at == call->command_count);
	buf_put_span(call->body, SPAN("]}"));
	call_note_events(call, results);
	call_reply(call, 200, r);
}
