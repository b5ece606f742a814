/*
 * Items that have a past in a file of the original.
 *
 * Each becomes a task of its own id with one event, and is the same again when it comes again: what is there already is
 * left as it is. Ids, queues, texts, priorities, statuses, attempts, results, errors, notes, keys and times of creation
 * go where a task has them; the rest stands in the metadata, as it was, so that nothing is lost. What somebody held
 * there is ready here: no claim of theirs can be proved to us. A key that two open items share belongs to the first.
 */
#include "api/door/workqueue/workqueue.h"

#include <errno.h>
#include <stdio.h>

#include "base/iso_time.h"
#include "base/take.h"

enum {
	IMPORT_MAX = 500,
};

struct imported {
	struct span id; /* for the answer */
	uint32_t of;    /* the item of the command of this index */
	bool exists, refused;
	enum refusal refusal;
};

struct importing {
	uint32_t count;
	bool again; /* without keys that others hold */
	bool tries; /* nothing is changed: what would be? */
	struct imported items[];
};

static void reply_imported(struct api_call *call, const struct importing *importing);

/* ---- one item ---------------------------------------------------------------------------------------------- */

/* The original takes any number as a priority; it becomes the nearest whole one, so order changes only between
 * priorities that round to the same number. */
static int32_t nearest(double number)
{
	if (number >= INT32_MAX)
		return INT32_MAX;
	if (number <= INT32_MIN)
		return INT32_MIN;
	return (int32_t)(number < 0 ? number - 0.5 : number + 0.5);
}

static bool take_priority(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	double number = 0;

	if (!json_number(value, &number))
		return form_error(form, field->name, "must be a number");
	*(int32_t *)at = nearest(number);
	return true;
}

/* Members that a task has a place for. A priority that it has not quite is kept as it was. */
static bool has_place(struct span name, yyjson_val *value)
{
	static const char *const names[] = {
		"id", "queue", "title", "instructions", "priority", "result", "meta", "dedupeKey"};
	double number = 0;

	if (span_equal(name, SPAN("priority")) && json_number(value, &number) && number != nearest(number))
		return false;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (span_equal(span_of(names[i]), name))
			return true;
	}
	return false;
}

/* {what the item had there,"clawnsoleItem":{all that has no place}} */
static void put_metadata(struct buf *out, yyjson_val *item)
{
	struct json_object metadata, rest;
	yyjson_val *meta = yyjson_obj_get(item, "meta"), *key, *value;
	size_t i, limit;

	json_begin(&metadata, out);
	if (yyjson_is_obj(meta)) {
		yyjson_obj_foreach(meta, i, limit, key, value)
		{
			if (!yyjson_equals_str(key, IMPORTED_KEY))
				json_member_node(&metadata, key, value);
		}
	}
	json_put_key(&metadata, IMPORTED_KEY);
	json_begin(&rest, out);
	yyjson_obj_foreach(item, i, limit, key, value)
	{
		bool odd_meta = value == meta && !yyjson_is_obj(meta);
		if (!has_place(json_text(key), value) || odd_meta)
			json_member_node(&rest, key, value);
	}
	json_end(&rest);
	json_end(&metadata);
}

static void put_body(struct buf *out, yyjson_val *item, struct span key)
{
	struct json_object members = {.buf = out};
	struct span title = json_text(yyjson_obj_get(item, "title"));

	json_member_string(&members, "title", title.len > 0 ? title : SPAN("(untitled)"));
	json_member_string(&members, "instructions", json_text(yyjson_obj_get(item, "instructions")));
	json_member_string_if_any(&members, "uniqueKey", key);
	json_put_key(&members, "metadata");
	put_metadata(out, item);
}

/* A time as the item has it; "" is not set. */
static bool take_time(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	struct span text = {0};

	if (!workqueue_take_text(form, field, value, &text))
		return false;
	if (text.len == 0 || iso_time_read(text, at) == 0)
		return true;
	return form_error(form, field->name, "must be a time such as 2026-02-09T20:20:35.682Z");
}

static bool take_status(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	enum task_state *state = at;
	struct span status = {0};

	if (!workqueue_take_text(form, field, value, &status))
		return false;
	if (span_equal(status, SPAN("pending")))
		*state = TASK_PENDING;
	else if (span_equal(status, SPAN("done")))
		*state = TASK_DONE;
	else if (span_equal(status, SPAN("failed")))
		*state = TASK_FAILED;
	else if (status.len > 0 && item_states(status) == 0)
		form_error(form, field->name,
			"must be one of ready, pending, claimed, in_progress, done, failed");
	return true;
}

struct import_item {
	struct span id, queue, title, instructions, key, note, error, result, holder;
	enum task_state state;
	int32_t priority;
	int64_t attempts, created_ms, claimed_ms, lease_until_ms;
};

static const struct field item_fields[] = {
	ITEM_TEXT(import_item, id, "id", COMMAND_ID_MAX),
	ITEM_TEXT(import_item, queue, "queue", COMMAND_NAME_MAX),
	ITEM_TEXT(import_item, title, "title", TITLE_BYTES_MAX),
	ITEM_TEXT(import_item, instructions, "instructions", API_TEXT_MAX),
	FIELD(import_item, priority, "priority", FIELD_BY, .by = take_priority),
	ITEM_TEXT(import_item, key, "dedupeKey", DEDUPE_KEY_BYTES_MAX),
	ITEM_TEXT(import_item, error, "lastError", NOTE_BYTES_MAX),
	FIELD(import_item, state, "status", FIELD_BY, .max = 32, .by = take_status),
	FIELD(import_item, created_ms, "createdAt", FIELD_BY, .max = 64, .by = take_time),
	ITEM_WHOLE(import_item, attempts, "attempts", 0, 1000000),
	ITEM_TEXT(import_item, note, "lastNote", NOTE_BYTES_MAX),
	FIELD(import_item, result, "result", FIELD_VALUE, .max = 0),
};

/* Of an item that has ended: of others the holder is forgotten. */
static const struct field ended_fields[] = {
	ITEM_TEXT(import_item, holder, "claimedBy", COMMAND_ID_MAX),
	FIELD(import_item, claimed_ms, "claimedAt", FIELD_BY, .max = 64, .by = take_time),
	ITEM_WHOLE(import_item, lease_until_ms, "leaseUntil", 0, INT64_C(1) << 53),
};

static void read_fields(struct form *form, yyjson_val *object, struct import_item *item)
{
	form->tolerant = true;
	form_read(form, object, FIELDS(item_fields), item);
	if (!text_is_id(item->id))
		form_error(form, "id",
			"must be 1 to %d letters, digits, '.', '_', ':' or '-', and begin with a letter or digit",
			COMMAND_ID_MAX);
	if (!text_is_name(item->queue, COMMAND_NAME_MAX))
		form_error(
			form, "queue", "must be 1 to %d bytes without control characters", COMMAND_NAME_MAX);
	item->key = item_key(form, item->key, item->queue);
	if (!task_state_is_final(item->state))
		return;
	form_read(form, object, FIELDS(ended_fields), item);
	if (item->holder.len > 0 && !text_is_name(item->holder, COMMAND_ID_MAX))
		form_error(form, "claimedBy", "must be without control characters");
}

static void read_item(struct form *form, yyjson_val *object, struct command *command)
{
	struct command_create *create = &command->create;
	cleanup(buf_done) struct buf body = {.max = 8 * API_TEXT_MAX}, error = {.max = 8 * NOTE_BYTES_MAX};
	struct import_item item = {.state = TASK_READY};

	read_fields(form, object, &item);
	command->kind = COMMAND_CREATE;
	command->note = SPAN("\"imported\":\"clawnsole\"");
	create->id = item.id;
	create->queue = item.queue;
	create->priority = item.priority;
	create->unique_key = item.key;
	create->past.state = item.state;
	create->past.created_ms = item.created_ms;
	create->past.attempt = (uint32_t)item.attempts;
	create->past.claimed_ms = item.claimed_ms;
	create->past.lease_until_ms = item.lease_until_ms;
	create->past_note = item.note;
	create->past_holder = item.holder;
	create->past_result = item.result;
	put_body(&body, object, item.key);
	form_keep_text(form, &body, &create->body);
	if (item.error.len == 0)
		return;
	item_error_put(&error, item.error);
	form_keep_text(form, &error, &create->past_error);
}

/* ---- the request --------------------------------------------------------------------------------------------- */

/* Which of them are there already? */
static void try_import(struct api_call *call, struct importing *importing)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < importing->count; i++) {
		int64_t seq;
		r = store_find_task(call->store, importing->items[i].id, &seq);
		importing->items[i].exists = r == 0;
		r = r == -ENOENT ? 0 : r;
	}
	call->command_count = 0;
	if (!call_has_failed(call, r))
		reply_imported(call, importing);
}

/* One bad item refuses the request, so that an import is never half done. */
void workqueue_import_begin(struct api_call *call)
{
	cleanup(form_done) struct form form = {0};
	size_t i, limit;
	struct form_path path;
	yyjson_val *item;

	call->query_taken = true;
	if (!form_open(&form, call, false))
		return;
	yyjson_val *items = yyjson_obj_get(form.root, "items");
	size_t count = yyjson_arr_size(items);
	if (!call_require_field(call, yyjson_is_arr(items) && count > 0 && count <= IMPORT_MAX, "items",
		    "must be a list of 1 to 500 items"))
		return;
	struct importing *importing = call_detail(call, sizeof *importing + count * sizeof *importing->items);
	if (!importing || !call_commands(call, (uint32_t)count))
		return;
	importing->count = (uint32_t)count;
	yyjson_arr_foreach(items, i, limit, item)
	{
		form_enter(&form, &path, SPAN("items"), (int64_t)i);
		if (yyjson_is_obj(item))
			read_item(&form, item, &call->commands[i]);
		else
			form_wrong_as(&form, "", "an object", item);
		form_leave(&form);
		importing->items[i].id = call->commands[i].create.id;
		importing->items[i].of = (uint32_t)i;
	}
	importing->tries = yyjson_is_true(yyjson_obj_get(form.root, "dryRun"));
	if (form_is_good(&form) && importing->tries)
		try_import(call, importing);
}

/* ---- the answer ----------------------------------------------------------------------------------------------- */

/* Items whose key another open item holds are created again without the key; their body keeps it. True: there are such items. */
static bool import_again(struct api_call *call, struct importing *importing, const struct result *results)
{
	const struct command *before = call->commands;
	uint32_t count = 0, was = call->command_count;

	for (uint32_t i = 0; i < was; i++)
		count += results[i].deduplicated;
	if (count == 0 || importing->again || !call_commands(call, count))
		return false;
	importing->again = true;
	for (uint32_t i = 0, at = 0; i < was; i++) {
		if (!results[i].deduplicated)
			continue;
		call->commands[at].kind = COMMAND_CREATE;
		call->commands[at].note = before[i].note;
		call->commands[at].create = before[i].create;
		call->commands[at].create.unique_key = (struct span){0};
		importing->items[at++].of = importing->items[i].of;
	}
	return true;
}

static void note_results(struct api_call *call, struct importing *importing, const struct result *results)
{
	for (uint32_t i = 0; i < call->command_count; i++) {
		struct imported *item = &importing->items[importing->items[i].of];
		item->exists = results[i].refusal == REFUSED_TASK_EXISTS;
		item->refused = results[i].refusal != REFUSED_NOTHING && !item->exists;
		item->refusal = results[i].refusal;
	}
	call_note_events(call, results);
}

static void put_imported(struct buf *out, const struct imported *item, bool tries)
{
	struct json_object object;

	json_begin(&object, out);
	json_member_string(&object, "id", item->id);
	json_member_bool(&object, "imported", !item->exists && !item->refused && !tries);
	json_member_true_if(&object, "exists", item->exists);
	if (item->refused) {
		json_member_cstr(&object, "error", refusal_code(item->refusal));
		json_member_cstr(&object, "message", refusal_text(item->refusal));
	}
	json_end(&object);
}

static void reply_imported(struct api_call *call, const struct importing *importing)
{
	bool any = false;

	buf_put_span(call->body, SPAN("{\"ok\":true,\"items\":["));
	for (uint32_t i = 0; i < importing->count; i++) {
		json_put_comma(call->body, &any);
		put_imported(call->body, &importing->items[i], importing->tries);
	}
	buf_put_span(call->body, SPAN("]}"));
	call_reply(call, 200, 0);
}

void workqueue_import_finish(struct api_call *call, const struct result *results)
{
	struct importing *importing = call->detail;

	note_results(call, importing, results);
	if (import_again(call, importing, results))
		return;
	if (call->step == API_REPLY && call->reply.status != 0)
		return; /* there was no room for it */
	reply_imported(call, importing);
}
