/*
 * An item as clients of the original know it, and refusals in its words.
 *
 * The agent that ended an item stays in it, as in the original; an item that is given back forgets its
 * holder. What an imported item brought along is shown until something happens to it here.
 */
#include "api/door/workqueue/workqueue.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "api/task/form.h"
#include "api/task/view.h"
#include "base/iso_time.h"
#include "base/take.h"

/* ---- words ------------------------------------------------------------------------------------------------ */

const char *item_status(enum task_state state)
{
	static const char *const words[TASK_STATE_COUNT] = {
		[TASK_NOWHERE] = "",
		[TASK_PENDING] = "pending",
		[TASK_SCHEDULED] = "pending",
		[TASK_WAITING] = "pending",
		[TASK_READY] = "ready",
		[TASK_CLAIMED] = "claimed",
		[TASK_RUNNING] = "in_progress",
		[TASK_ASKING] = "in_progress",
		[TASK_REVIEW] = "in_progress",
		[TASK_DONE] = "done",
		[TASK_BLOCKED] = "failed",
		[TASK_FAILED] = "failed",
		[TASK_CANCELLED] = "failed",
	};

	assert(state < TASK_STATE_COUNT);
	assert(words[state]);
	return words[state];
}

uint32_t item_states(struct span status)
{
	uint32_t states = 0;

	for (int i = TASK_NOWHERE + 1; i < TASK_STATE_COUNT; i++) {
		if (span_equal(span_of(item_status((enum task_state)i)), status))
			states |= STATE_BIT((enum task_state)i);
	}
	return states;
}

/* The length before the name: no queue and key can be taken for another queue and key. */
struct span item_key(struct form *form, struct span key, struct span queue)
{
	struct span kept = {0};
	char text[COMMAND_NAME_MAX + 1];

	if (key.len == 0)
		return kept;
	if (!text_is_name(key, DEDUPE_KEY_BYTES_MAX)) {
		form_error(form, "dedupeKey", "must be without control characters");
		return kept;
	}
	if (queue.len + key.len > DEDUPE_KEY_BYTES_MAX) {
		form_error(form, "dedupeKey", "has, with the queue, %zu bytes; at most %d are allowed",
			queue.len + key.len, DEDUPE_KEY_BYTES_MAX);
		return kept;
	}
	int len = snprintf(text, sizeof text, "%zu:%.*s:%.*s", queue.len, SPAN_ARGS(queue), SPAN_ARGS(key));
	int r = arena_copy(form->arena, (struct span){text, (size_t)len}, &kept);
	if (r < 0)
		form->fault = r;
	return kept;
}

/* Back from there; a key that another door gave is itself. */
static struct span dedupe_key_of(struct span key, struct span queue)
{
	char before[32];
	int len = snprintf(before, sizeof before, "%zu:", queue.len);
	size_t skip = (size_t)len + queue.len + 1;

	if (key.len < skip || memcmp(key.data, before, (size_t)len) != 0 ||
		memcmp(key.data + len, queue.data, queue.len) != 0 || key.data[skip - 1] != ':')
		return key;
	return (struct span){key.data + skip, key.len - skip};
}

int item_error_put(struct buf *out, struct span message)
{
	struct json_object error;

	json_begin(&error, out);
	json_member_cstr(&error, "code", failure_code_name(CODE_EXECUTION_ERROR));
	json_member_string(&error, "message", message);
	json_member_cstr(&error, "class", failure_class_name(CLASS_TASK));
	json_member_bool(&error, "retry", false);
	return json_end(&error);
}

int item_read(
	const struct api_call *call, int64_t seq, struct arena *arena, struct task_document *ret_document)
{
	int r = store_read_task(call->store, seq, call->now, arena, ret_document);

	return r < 0 ? r : store_read_last(call->store, arena, ret_document);
}

/* ---- an item ---------------------------------------------------------------------------------------------- */

struct item_view {
	const struct api_call *call;
	const struct task_document *document;
	yyjson_doc *doc;
	yyjson_val *body;     /* what was said when it was made */
	yyjson_val *imported; /* what it brought along; NULL: it was made here, or has changed since */
};

static struct span member_text(yyjson_val *object, const char *key)
{
	return json_text(yyjson_obj_get(object, key));
}

static yyjson_val *imported_of(const struct item_view *item)
{
	const struct task *task = &item->document->task;
	yyjson_val *kept = yyjson_obj_get(yyjson_obj_get(item->body, "metadata"), IMPORTED_KEY);
	bool same = yyjson_get_uint(yyjson_obj_get(kept, "attempts")) == task->attempt;
	struct span status = member_text(kept, "status");

	/* what was held there is free here */
	if (span_equal(status, SPAN("claimed")) || span_equal(status, SPAN("in_progress")))
		status = SPAN("ready");
	return same && span_equal(status, span_of(item_status(task->state))) ? kept : NULL;
}

static void put_iso(struct json_object *object, const char *key, int64_t wall_ms)
{
	char text[ISO_TIME_BYTES + 1] = "";

	if (wall_ms != 0)
		iso_time_put(wall_ms, text);
	json_member_cstr(object, key, text);
}

static void put_holder(struct json_object *object, const struct item_view *item)
{
	const struct task_document *document = item->document;
	const struct claim *claim = &document->task.claim;
	struct last_holder last = document->last;

	if (claim->holder != 0)
		last = (struct last_holder){document->holder, claim->claimed_wall_ms,
			item->call->now.wall_ms + document->lease_ms};
	json_member_string(object, "claimedBy", last.worker);
	put_iso(object, "claimedAt", last.claimed_ms);
	json_member_int(object, "leaseUntil", last.until_ms);
}

/* What a worker reported, or why the server gave it up. */
static void put_last_error(struct json_object *object, const struct item_view *item)
{
	const struct task_document *document = item->document;
	yyjson_doc *doc = kept_read(document->error, object->buf);
	struct span message = member_text(yyjson_doc_get_root(doc), "message");
	enum failure_code code = document->task.code;
	char room[TASK_FAILURE_BYTES], text[TASK_FAILURE_BYTES + 64] = "";

	if (message.len == 0 && code != CODE_NONE)
		snprintf(text, sizeof text, "%s: %s", failure_code_name(code),
			task_failure_text(item->call, &document->task, room));
	json_member_string(object, "lastError", message.len > 0 ? message : span_of(text));
	yyjson_doc_free(doc);
}

static void put_times(struct json_object *object, const struct item_view *item)
{
	struct span before = member_text(item->imported, "updatedAt");

	put_iso(object, "createdAt", item->document->task.created_ms);
	if (before.len > 0)
		json_member_string(object, "updatedAt", before);
	else
		put_iso(object, "updatedAt", item->document->task.updated_ms);
}

/* The metadata without our own member; no member if nothing is left. */
static void put_meta(struct json_object *object, const struct item_view *item)
{
	cleanup(buf_done) struct buf text = {.max = 2 * API_TEXT_MAX};
	struct json_object meta;
	size_t i, limit;
	yyjson_val *key, *value;

	json_begin(&meta, &text);
	yyjson_obj_foreach(yyjson_obj_get(item->body, "metadata"), i, limit, key, value)
	{
		if (!yyjson_equals_str(key, IMPORTED_KEY))
			json_member_node(&meta, key, value);
	}
	json_end(&meta);
	if (meta.any)
		json_member_buf(object, "meta", &text);
}

static void put_optional(struct json_object *object, const struct item_view *item)
{
	const struct task_document *document = item->document;
	struct span key = member_text(item->body, "uniqueKey");

	if (key.len > 0)
		json_member_string(
			object, "dedupeKey", dedupe_key_of(key, name_of(item->call, document->task.queue)));
	json_member_string_if_any(object, "lastNote", document->words);
	json_member_raw_if_any(object, "result", document->result);
	put_meta(object, item);
	if (document->task.claim.holder != 0)
		json_member_decimal(object, "fence", document->task.fence);
}

int item_put(
	const struct api_call *call, struct buf *out, const struct task_document *document, bool deduplicated)
{
	struct item_view item = {.call = call, .document = document};
	const struct task *task = &document->task;
	struct json_object object;

	item.doc = task_body_read(document->body, out);
	item.body = yyjson_doc_get_root(item.doc);
	item.imported = imported_of(&item);
	struct span title = member_text(item.body, "title");
	struct span instructions = member_text(item.body, "instructions");
	json_begin(&object, out);
	json_member_string(&object, "id", document->id);
	json_member_string(&object, "queue", name_of(call, task->queue));
	json_member_string(&object, "title", title.len > 0 ? title : SPAN("(untitled)"));
	json_member_string(&object, "instructions",
		instructions.data ? instructions : member_text(item.body, "description"));
	json_member_int(&object, "priority", task->priority);
	json_member_cstr(&object, "status", item_status(task->state));
	put_holder(&object, &item);
	json_member_int(&object, "attempts", task->attempt);
	put_last_error(&object, &item);
	put_times(&object, &item);
	put_optional(&object, &item);
	json_member_true_if(&object, "_deduped", deduplicated);
	yyjson_doc_free(item.doc);
	return json_end(&object);
}

/* The item as this command left it, with its holder. */
static void set_back(const struct api_call *call, const struct result *result, struct task_document *document)
{
	struct given given = {.rules = call->rules, .now = call->now};

	task_set_back(document, result);
	if (result->task.claim.holder == 0)
		return;
	int64_t left_ms = task_lease_remaining_ms(&result->task, &result->worker, &given);
	int64_t granted_ms = result->task.claim.lease.granted_ms;
	document->lease_ms = left_ms < granted_ms ? left_ms : granted_ms;
	if (call->commands[0].worker.len > 0)
		document->holder = call->commands[0].worker;
}

/* For one that may not read: another may have made it. */
static int put_found(struct buf *out, const struct task_document *document)
{
	struct json_object object;

	json_begin(&object, out);
	json_member_string(&object, "id", document->id);
	json_member_cstr(&object, "status", item_status(document->task.state));
	json_member_bool(&object, "_deduped", true);
	return json_end(&object);
}

static void reply(
	struct api_call *call, const struct task_document *document, bool deduplicated, struct span more)
{
	buf_put_span(call->body, SPAN("{\"ok\":true,\"item\":"));
	int r = deduplicated && !principal_reads(&call->who)
		? put_found(call->body, document)
		: item_put(call, call->body, document, deduplicated);
	buf_put_span(call->body, more);
	buf_put_byte(call->body, '}');
	call_reply(call, 200, r);
}

void item_reply(struct api_call *call, const struct result *result, bool deduplicated, struct span more)
{
	struct task_document document;

	call->reply.event_seq = result->event_seq;
	int r = item_read(call, result->task.seq, call->arena, &document);
	if (r < 0) {
		call_reply(call, 200, r);
		return;
	}
	set_back(call, result, &document);
	reply(call, &document, deduplicated, more);
}

void item_reply_document(struct api_call *call, const struct task_document *document)
{
	reply(call, document, false, (struct span){0});
}

/* ---- no ---------------------------------------------------------------------------------------------------- */

/* Our code as the original's; most are the same. */
static const struct {
	const char *ours, *theirs;
	int status;
} codes[] = {
	{"bad_request", "invalid_request", 400},
	{"invalid", "invalid_request", 400},
	{"too_large", "request_too_large", 413},
	{"unavailable", "workqueue_error", 503},
};

int workqueue_put_refused(struct api_call *call, struct refused *refused)
{
	const char *code = refused->code;
	struct json_object object;

	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
		if (strcmp(codes[i].ours, refused->code) == 0) {
			code = codes[i].theirs;
			refused->status = codes[i].status;
		}
	}
	json_begin(&object, call->body);
	json_member_bool(&object, "ok", false);
	json_member_cstr(&object, "error", code);
	json_member_cstr(&object, "message", refused->detail ? refused->detail : refused->title);
	if (refused->members.len > 0)
		json_members_raw(&object, refused->members);
	return json_end(&object);
}

/* Names the holder and the end of its lease, not its fence. */
static void refuse_claimed(struct api_call *call, const struct result *result)
{
	cleanup(buf_done) struct buf members = {.max = 4096};
	struct json_object object = {.buf = &members};
	struct task_document document;
	char text[COMMAND_ID_MAX + 64];

	int r = item_read(call, result->task.seq, call->arena, &document);
	if (call_has_failed(call, r))
		return;
	json_member_string(&object, "claimedBy", document.holder);
	json_member_int(&object, "leaseUntil", call->now.wall_ms + document.lease_ms);
	snprintf(text, sizeof text, "item claimed by another agent: %.*s", SPAN_ARGS(document.holder));
	call_refuse_with(call, result->refusal, text, &members);
}

static void refuse_missing(struct api_call *call, struct span id)
{
	char text[COMMAND_ID_MAX + 32];

	snprintf(text, sizeof text, "item not found: %.*s", SPAN_ARGS(id));
	api_refuse(call, REFUSED_NOT_FOUND, text);
}

bool workqueue_refuse(struct api_call *call, const struct result *result)
{
	char text[64];

	if (result->refusal == REFUSED_CLAIMED_BY_OTHER) {
		refuse_claimed(call, result);
	} else if (result->refusal == REFUSED_NOT_FOUND) {
		refuse_missing(call, call->commands[0].task);
	} else if (result->refusal == REFUSED_ALREADY_TERMINAL) {
		snprintf(text, sizeof text, "item is already %s", item_status(result->task.state));
		api_refuse(call, result->refusal, text);
	} else if (result->refusal == REFUSED_NOT_CLAIMED) {
		api_refuse(call, result->refusal, "item is not claimed");
	} else {
		return false;
	}
	return true;
}

void workqueue_missing(struct api_call *call, const char *code, const char *message)
{
	call_problem(call, 400, code, message, message, NULL);
}

int item_find(struct api_call *call, struct span id, struct task_document *ret_document)
{
	int64_t seq;

	int r = text_is_name(id, COMMAND_ID_MAX) ? store_find_task(call->store, id, &seq) : -ENOENT;
	if (r == 0)
		r = item_read(call, seq, call->arena, ret_document);
	return r == 0 && !principal_sees(call, &ret_document->task) ? -ENOENT : r;
}

bool workqueue_find(struct api_call *call, struct span id, struct task_document *ret_document)
{
	int r = item_find(call, id, ret_document);

	if (r == -ENOENT)
		refuse_missing(call, id);
	else if (r < 0)
		call_refuse_fault(call, r);
	return r == 0;
}
