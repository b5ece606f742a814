/*
 * The tasks that workflows begin: their texts, for a store that knows no JSON, and for the worker that claims one the work that it judges.
 */
#include <errno.h>

#include "api/call.h"
#include "api/task/form.h"
#include "api/task/view.h"
#include "base/take.h"

/* Its text is the same whatever the stage of the other one says. */
int api_action_body(struct arena *arena, enum action action, struct span id, struct span *ret_body)
{
	cleanup(buf_done) struct buf title = {.max = 1 << 10}, body = {.max = 8 << 10},
				     link = {.max = 4 << 10};
	struct json_object members = {.buf = &body}, linked;
	const char *name = action_name(action);

	json_note(&members, buf_printf(&title, "%s %.*s", name, SPAN_ARGS(id)));
	json_begin(&linked, &link);
	json_member_cstr(&linked, "action", name);
	json_member_string(&linked, "task", id);
	json_end(&linked);
	json_member_string(&members, "title", buf_span(&title));
	json_member_buf(&members, "payload", &link);
	json_member_buf(&members, "metadata", &link);
	return buf_keep(&body, arena, ret_body);
}

/* {"code":"CHECK_FAILED","message":what it said,"class":"task","event":"validate by ID"} */
int api_action_error(
	struct arena *arena, enum action action, struct span id, struct span said, struct span *ret_error)
{
	struct json_complaint complaint;
	cleanup(buf_done) struct buf error = {.max = 1 << 20}, usual = {.max = 1 << 10},
				     event = {.max = 1 << 10};
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = said.len > 0 ? json_read(said, &complaint) : NULL;
	struct span message = json_text(yyjson_obj_get(yyjson_doc_get_root(doc), "message"));
	bool judges = action == ACTION_VALIDATE || action == ACTION_CREATE_PR;
	struct json_object object;

	buf_printf(&event, "%s by %.*s", action_name(action), SPAN_ARGS(id));
	buf_printf(&usual, "%s failed and did not say why", action_name(action));
	json_begin(&object, &error);
	json_member_cstr(&object, "code", judges ? "CHECK_FAILED" : "EXECUTION_ERROR");
	json_member_string(&object, "message", message.len > 0 ? message : buf_span(&usual));
	json_member_cstr(&object, "class", "task");
	json_member_string(&object, "event", buf_span(&event));
	json_note(&object, json_end(&object));
	return buf_keep(&error, arena, ret_error);
}

static void put_text_of(struct json_object *object, const char *key, yyjson_val *text)
{
	yyjson_val *value = yyjson_obj_get(text, key);

	if (value && json_put_key(object, key))
		json_put_value(object->buf, value);
}

void action_put_judged(const struct api_call *call, struct json_object *object, const struct task *task)
{
	static const char *const texts[] = {
		"title", "description", "instructions", "deliverables", "workingDir", "metadata"};
	struct task_document judged;
	struct json_object said;
	int r = store_read_task(call->store, task->verdict_for, call->now, call->arena, &judged);

	if (r < 0 || !json_put_key(object, "judges")) {
		json_note(object, r == -ENOENT ? 0 : r);
		return;
	}
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = task_body_read(judged.body, object->buf);
	json_begin(&said, object->buf);
	json_member_string(&said, "id", judged.id);
	json_member_cstr(&said, "action", action_name(task->verdict_action));
	json_member_cstr(&said, "state", task_state_name(judged.task.state));
	json_member_int(&said, "attempt", judged.task.attempt);
	json_member_string(&said, "queue", store_name(call->store, judged.task.queue));
	if (judged.task.executor != 0)
		json_member_string(&said, "executor", store_name(call->store, judged.task.executor));
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		put_text_of(&said, texts[i], yyjson_doc_get_root(doc));
	json_member_raw_if_any(&said, "result", judged.result);
	json_member_raw_if_any(&said, "evidence", judged.evidence);
	json_note(object, json_end(&said));
}

void action_put_verdict_for(const struct api_call *call, struct json_object *object, const struct task *task)
{
	struct task_document judged;
	struct arena arena;

	arena_init(&arena, 4 << 20);
	int r = store_read_task(call->store, task->verdict_for, call->now, &arena, &judged);
	if (r == 0)
		json_member_string(object, "verdictFor", judged.id);
	else
		json_note(object, r == -ENOENT ? 0 : r); /* it was removed */
	arena_done(&arena);
}
