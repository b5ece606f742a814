#include "pool/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/iso_time.h"
#include "base/take.h"
#include "base/utf8.h"
#include "wire/frame.h"
#include "attempt/verdict.h"

enum {
	CODE_BYTES_MAX = 64,
	POOL_WORD_BYTES_MAX = 128, /* of what a frame says, in a sentence about it */
};

/* ---- in ---- */

static struct span text_of(yyjson_val *object, const char *key)
{
	return json_text(yyjson_obj_get(object, key));
}

/* Letters, digits, - and _, and these marks. */
static bool is_name(struct span name, const char *marks, size_t most)
{
	if (name.len == 0 || name.len > most)
		return false;
	for (size_t i = 0; i < name.len; i++) {
		unsigned char byte = (unsigned char)name.data[i];
		if (byte == 0 || byte > 0x7f ||
			(!isalnum(byte) && !strchr("-_", byte) && !strchr(marks, byte)))
			return false;
	}
	return true;
}

bool pool_is_module(struct span name)
{
	return is_name(name, "", POOL_MODULE_BYTES_MAX);
}

static const char *read_hello(yyjson_val *root, struct pool_message *message)
{
	yyjson_val *modules = yyjson_obj_get(yyjson_obj_get(root, "capabilities"), "moduleIds"), *item;
	size_t index, count;

	if (!yyjson_is_arr(modules))
		return "capabilities.moduleIds must be a list of names";
	if (yyjson_arr_size(modules) > POOL_MODULES_MAX)
		return "capabilities.moduleIds has more than 256 names";
	yyjson_arr_foreach(modules, index, count, item)
	{
		struct span name = json_text(item);
		if (!yyjson_is_str(item) || !pool_is_module(name))
			return "capabilities.moduleIds has an entry that is not a name of a module: letters, digits, - and _";
		message->modules[message->module_count++] = name;
	}
	return NULL;
}

static const char *read_shutdown(yyjson_val *root, struct pool_message *message)
{
	message->reason = utf8_cut(text_of(root, "reason"), POOL_NOTE_BYTES_MAX);
	return NULL;
}

static const char *read_progress(yyjson_val *root, struct pool_message *message)
{
	yyjson_val *progress = yyjson_obj_get(root, "progress");
	double percent = 0;
	bool is_number = json_number(progress, &percent);

	message->note = utf8_cut(text_of(root, "message"), POOL_NOTE_BYTES_MAX);
	message->percent = -1;
	if (is_number)
		message->percent = percent >= 100 ? 100 : percent >= 0 ? (int)percent : 0;
	return is_number || message->note.len > 0
		? NULL
		: "a progress must have a number as its progress, or a message";
}

static const char *read_result(yyjson_val *root, struct pool_message *message)
{
	yyjson_val *result = yyjson_obj_get(root, "result"), *success = yyjson_obj_get(result, "success");

	if (!yyjson_is_bool(success))
		return "result.success must be true or false";
	message->success = yyjson_get_bool(success);
	message->output = yyjson_obj_get(result, "output");
	return NULL;
}

static const char *read_failure(yyjson_val *root, struct pool_message *message)
{
	yyjson_val *error = yyjson_obj_get(root, "error");

	if (!yyjson_is_obj(error))
		return "error must be an object";
	message->code = text_of(error, "code");
	message->text = utf8_cut(text_of(error, "message"), POOL_ERROR_BYTES_MAX);
	message->details = yyjson_obj_get(error, "details");
	return NULL;
}

static const struct message_row {
	const char *type;
	const char *(*read)(
		yyjson_val *root, struct pool_message *message); /* NULL: there is no more to read */
} rows[] = {
	[POOL_HELLO] = {"worker.hello", read_hello},
	[POOL_READY] = {"worker.ready", NULL},
	[POOL_HEARTBEAT] = {"worker.heartbeat", NULL},
	[POOL_SHUTDOWN] = {"worker.shutdown", read_shutdown},
	[POOL_PROGRESS] = {"task.progress", read_progress},
	[POOL_RESULT] = {"task.result", read_result},
	[POOL_FAILURE] = {"task.failure", read_failure},
};

/* NULL, or why it is not understood. */
static const char *read_message(yyjson_val *root, struct pool_message *message)
{
	struct span type = text_of(root, "type");
	size_t row = 0;

	if (text_of(root, "id").len == 0 || type.len == 0 || text_of(root, "timestamp").len == 0)
		return "id, type and timestamp must be texts";
	while (row < sizeof rows / sizeof *rows && !span_is(type, rows[row].type))
		row++;
	if (row == sizeof rows / sizeof *rows)
		return "its type is not one that a worker sends";
	message->kind = (enum pool_message_kind)row;
	if (message->kind >= POOL_PROGRESS) {
		message->task = text_of(root, "taskId");
		if (message->task.len == 0)
			return "taskId must be a text";
	}
	return rows[row].read ? rows[row].read(root, message) : NULL;
}

/* The sentence, and what it is about, as far as there is room. */
static void complain(struct pool_complaint *complaint, const char *sentence, struct span of)
{
	struct span word = utf8_cut(of, POOL_WORD_BYTES_MAX);

	snprintf(complaint->reason, sizeof complaint->reason, "%s%s%.*s%s", sentence, of.len > 0 ? " (" : "",
		SPAN_ARGS(word), of.len > 0 ? ")" : "");
}

void pool_complain_of_task(struct pool_complaint *complaint, const struct pool_message *message)
{
	*complaint = (struct pool_complaint){0};
	complain(complaint, "its taskId is not that of a task that the worker has", message->task);
}

int pool_text_read(struct span frame, yyjson_doc **ret_doc, struct pool_message *ret_message,
	struct pool_complaint *ret_complaint)
{
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(frame, &complaint);
	struct span type = text_of(yyjson_doc_get_root(doc), "type");

	*ret_message = (struct pool_message){0};
	const char *reason = doc ? read_message(yyjson_doc_get_root(doc), ret_message) : "it is no JSON";
	if (!reason) {
		*ret_doc = take(doc);
		return 0;
	}
	*ret_complaint =
		(struct pool_complaint){.of_itself = type.len > 7 && memcmp(type.data, "worker.", 7) == 0};
	complain(ret_complaint, reason, doc ? type : span_of(complaint.reason));
	return -EPROTO;
}

/* ---- out ---- */

void pool_text_uuid(const uint64_t random[2], char text[UUID_CHARS + 1])
{
	uint64_t version = UINT64_C(4) << 12, variant = UINT64_C(2) << 62;

	uuid_write((random[0] & ~(UINT64_C(15) << 12)) | version,
		(random[1] & ~(UINT64_C(3) << 62)) | variant, text);
}

static const char *priority_word(int64_t priority)
{
	return priority >= 100 ? "urgent" : priority >= 50 ? "high" : priority >= 0 ? "normal" : "low";
}

/* Is it a member that has another form here, or says what is said elsewhere? */
static bool is_ours(const char *key)
{
	static const char *const ours[] = {"priority", "module", "moduleId", "workerId", "crashes",
		"metadata", "executionAttempt", "deadlineMs", "isolationLevel"};

	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
		if (strcmp(key, ours[i]) == 0)
			return true;
	}
	return false;
}

/* The task with the members that the protocol names, in its form, and all the others as they are. */
static int put_task(struct buf *out, const struct pool_order *order, yyjson_val *task)
{
	yyjson_val *metadata = yyjson_obj_get(task, "metadata"), *key, *value;
	int64_t crashes = yyjson_get_sint(yyjson_obj_get(task, "crashes"));
	struct json_object object;
	size_t index, count;

	json_begin(&object, out);
	yyjson_obj_foreach(task, index, count, key, value)
	{
		if (!yyjson_is_null(value) && !is_ours(yyjson_get_str(key)))
			json_member_node(&object, key, value);
	}
	json_member_string(&object, "priority",
		span_of(priority_word(yyjson_get_sint(yyjson_obj_get(task, "priority")))));
	json_member_string(&object, "moduleId", span_of(order->module));
	json_member_string(&object, "workerId", span_of(order->worker));
	/* the one that is just beginning is counted until it ends otherwise */
	json_member_int(&object, "executionAttempt", crashes > 0 ? crashes - 1 : 0);
	json_member_int(&object, "deadlineMs", order->deadline_ms);
	json_member_string(&object, "isolationLevel", span_of(order->level));
	if (json_put_key(&object, "metadata"))
		json_note(&object,
			yyjson_is_obj(metadata) ? json_put_value(out, metadata)
						: buf_put_span(out, SPAN("{}")));
	return json_end(&object);
}

int pool_text_execute(struct buf *out, const struct pool_order *order, yyjson_val *task)
{
	cleanup(buf_done) struct buf body = {0};
	struct json_object object;
	char time[ISO_TIME_BYTES + 1];

	buf_init(&body, FRAME_BYTES_MAX);
	iso_time_put(order->wall_ms, time);
	json_begin(&object, &body);
	json_member_string(&object, "id", span_of(order->id));
	json_member_string(&object, "type", SPAN("execute.task"));
	json_member_string(&object, "timestamp", span_of(time));
	json_member_string(&object, "moduleId", span_of(order->module));
	if (json_put_key(&object, "task"))
		json_note(&object, put_task(&body, order, task));
	int r = json_end(&object);
	if (r == 0)
		r = frame_put(out, buf_span(&body));
	return r == -E2BIG ? -EMSGSIZE : r;
}

/* ---- reports ---- */

int pool_put_result(struct buf *report, const struct pool_message *message)
{
	int r = buf_put_span(report, SPAN("\"result\":"));

	if (r < 0)
		return r;
	return message->output ? json_put_value(report, message->output) : buf_put_span(report, SPAN("null"));
}

/* "details":…, unless they are too long to be kept. */
static void put_details(struct json_object *error, yyjson_val *details)
{
	cleanup(buf_done) struct buf text = {0};

	buf_init(&text, POOL_DETAILS_BYTES_MAX);
	if (details && json_put_value(&text, details) == 0)
		json_member_raw(error, "details", buf_span(&text));
}

int pool_put_failure(struct buf *report, const struct pool_message *message)
{
	bool said_no = message->kind == POOL_RESULT;
	struct span output = json_text(message->output);
	struct span text = message->text;
	struct json_object error;

	if (said_no)
		text = yyjson_is_str(message->output) ? utf8_cut(output, POOL_ERROR_BYTES_MAX)
						      : (struct span){0};
	int r = buf_put_span(report, SPAN("\"error\":"));
	if (r < 0)
		return r;
	json_begin(&error, report);
	json_member_string(&error, "code",
		is_name(message->code, ".:", CODE_BYTES_MAX) ? message->code : SPAN("EXECUTION_ERROR"));
	json_member_string(&error, "message",
		text.len > 0      ? text
			: said_no ? SPAN("the worker says that it was no success")
				  : SPAN("the worker says that it failed, and not why"));
	put_details(&error, said_no ? message->output : message->details);
	return json_end(&error);
}

int pool_put_unanswered(struct buf *report, const char *dropped)
{
	char message[POOL_REASON_BYTES + 128];

	snprintf(message, sizeof message,
		"worker.ready came without an answer that could be understood; of its frames %s%s",
		dropped[0] ? "this one was dropped last: " : "none was dropped", dropped);
	return failure_put(report, "EXECUTION_ERROR", message, RETRY_USUAL);
}
