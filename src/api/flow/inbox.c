/*
 * The inbox: tasks that other programs asked for inside their own transactions. What a row asks for is what POST /api/tasks takes, so
 * the row becomes such a request; what that request would be refused for is kept with the row.
 */
#include "api/call.h"
#include "api/form.h"

#include <errno.h>
#include <stdlib.h>

#include "base/take.h"
#include "base/utf8.h"

enum {
	LIST_DEFAULT = 100,
	LIST_MAX = 1000,
	NUMBER_DIGITS_MAX = 18,
};

/* ---- a row becomes a task ---------------------------------------------------------------------------------------- */

/* Will the same row be taken later, without anybody doing something about it? */
static bool may_pass(const struct api_call *call)
{
	return call->reply.status == 429 || call->reply.status == 503;
}

static void put_reason(struct api_call *call, struct json_object *note)
{
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc =
		json_read_to(call->reply.body, JSON_REPLY_DEPTH_MAX, &complaint);
	yyjson_val *root = yyjson_doc_get_root(doc);

	json_member_string_if_any(note, "code", json_text(yyjson_obj_get(root, "code")));
	json_member_string_if_any(note, "detail", json_text(yyjson_obj_get(root, "detail")));
}

/* A database of encoding SQL_ASCII has texts of any bytes. */
static struct span text_or_none(struct span text)
{
	return utf8_is_text(text) ? text : SPAN("?");
}

/* The refusal that stands in the reply becomes a command that keeps the row. */
static void keep_row(struct api_call *call, const struct inbox_row *row)
{
	cleanup(buf_done) struct buf text = {.max = API_TEXT_MAX};
	struct json_object note = {.buf = &text};
	struct command *command = arena_alloc(call->arena, sizeof *command);

	if (!command)
		return; /* the refusal stays a reply, and the row is looked at again */
	*command = (struct command){.kind = COMMAND_INBOX_KEEP,
		.actor = call->who.name,
		.data = row->task,
		.inbox = {.id = row->id, .queue = text_or_none(row->queue), .role = text_or_none(row->role)}};
	json_member_int(&note, "inbox", row->id);
	put_reason(call, &note);
	if (call_keep(call, &text, &command->note) < 0 ||
		arena_copy(call->arena, call->reply.body, &command->beside) < 0)
		return;
	call->commands = command;
	call->command_count = 1;
	call->step = API_TURN;
}

void api_begin_inbox(struct api_call *call, const struct inbox_row *row)
{
	cleanup(buf_done) struct buf name = {.max = API_TEXT_MAX};

	buf_put_span(&name, SPAN("inbox "));
	buf_put_span(&name, text_or_none(row->role));
	if (call_keep(call, &name, &call->who.name) < 0)
		return;
	call->who.scopes = SCOPE_BIT(SCOPE_PRODUCE);
	api_begin(call);
	if (call->step == API_TURN)
		call->commands[0].create.inbox = row->id;
	else if (!may_pass(call))
		keep_row(call, row);
}

bool api_finish_inbox(struct api_call *call, const struct inbox_row *row, const struct result *results)
{
	if (results[0].refusal == REFUSED_NOTHING || call->commands[0].kind == COMMAND_INBOX_KEEP)
		return true;
	buf_clear(call->body);
	api_finish(call, results);
	if (may_pass(call))
		return true;
	keep_row(call, row);
	return call->step != API_TURN;
}

/* ---- those that cannot ------------------------------------------------------------------------------------------- */

/* Mostly JSON; a row that was put there by hand may be anything. */
static void put_json(struct json_object *object, const char *key, struct span text)
{
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read_to(text, JSON_REPLY_DEPTH_MAX, &complaint);

	if (doc)
		json_member_raw(object, key, text);
	else
		json_member_string(object, key, text_or_none(text));
}

static int put_kept(void *context, const struct inbox_document *document)
{
	struct call_list *list = context;
	struct json_object object;

	call_list_next(list);
	json_begin(&object, list->call->body);
	json_member_int(&object, "id", document->id);
	json_member_string(&object, "queue", document->queue);
	json_member_string(&object, "role", document->role);
	json_member_int(&object, "refusedAt", document->since_ms);
	put_json(&object, "error", document->why);
	put_json(&object, "task", document->task);
	return json_end(&object);
}

void inbox_list_read(struct api_call *call)
{
	struct query_value values[] = {{.name = "after"}, {.name = "limit"}};
	struct call_list list = {.call = call};
	int64_t after, limit;

	if (!query_read(call, values, 2) ||
		!query_int(call, &values[0], 0, INT64_MAX, 0, &after, "must be the id of a row") ||
		!query_int(call, &values[1], 1, LIST_MAX, LIST_DEFAULT, &limit,
			"must be an integer from 1 to 1000"))
		return;
	buf_put_byte(call->body, '[');
	call_list_end(&list, store_page_kept(call->store, after, (uint32_t)limit, put_kept, &list));
}

static bool number_of_row(struct api_call *call, int64_t *ret_id)
{
	struct span text = call->params[0];
	bool good = text.len > 0 && text.len <= NUMBER_DIGITS_MAX;
	int64_t id = 0;

	for (size_t i = 0; i < text.len && good; i++) {
		good = text.data[i] >= '0' && text.data[i] <= '9';
		id = 10 * id + (text.data[i] - '0');
	}
	*ret_id = id;
	return call_require(call, good && id > 0, REFUSED_NOT_FOUND, NULL);
}

void inbox_drop_begin(struct api_call *call)
{
	int64_t id;

	if (!form_read_body(call, NULL, 0, NULL) || !query_read(call, NULL, 0) || !number_of_row(call, &id))
		return;
	cleanup(buf_done) struct buf note = {.max = API_TEXT_MAX};
	struct json_object members = {.buf = &note};
	struct command *command = call_command(call, COMMAND_INBOX_DROP);
	if (!command)
		return;
	command->inbox.id = id;
	json_member_int(&members, "inbox", id);
	call_keep(call, &note, &command->note);
}

void inbox_drop_finish(struct api_call *call, const struct result *results)
{
	struct json_object object;

	if (!call_require(call, results[0].refusal != REFUSED_NOT_FOUND, REFUSED_NOT_FOUND, NULL) ||
		call_is_refused(call, &results[0]))
		return;
	json_begin(&object, call->body);
	json_member_int(&object, "id", call->commands[0].inbox.id);
	json_member_bool(&object, "dropped", true);
	call->reply.event_seq = results[0].event_seq;
	call_reply(call, 200, json_end(&object));
}

/* ---- once more --------------------------------------------------------------------------------------------------- */

/* The create request that the row asks for. The caller who tries it again is its author. */
struct inbox_retry {
	struct http_request request;
	struct api_call inner;
};

static void follow(struct api_call *call, const struct api_call *inner)
{
	call->step = inner->step;
	call->commands = inner->commands;
	call->command_count = inner->command_count;
	call->reply = inner->reply;
}

void inbox_retry_begin(struct api_call *call)
{
	struct inbox_document document;
	int64_t id;

	if (!form_read_body(call, NULL, 0, NULL) || !query_read(call, NULL, 0) || !number_of_row(call, &id))
		return;
	struct inbox_retry *retry = call_detail(call, sizeof *retry);
	if (!retry)
		return;
	int r = store_read_kept(call->store, id, call->arena, &document);
	if (!call_require(call, r != -ENOENT, REFUSED_NOT_FOUND, NULL) || call_has_failed(call, r))
		return;
	retry->request = (struct http_request){.method = HTTP_METHOD_POST,
		.path = SPAN("/api/tasks"),
		.content_type = SPAN("application/json"),
		.body = document.task,
		.request_id = call->request->request_id};
	retry->inner = *call;
	retry->inner.request = &retry->request;
	retry->inner.detail = NULL;
	api_begin(&retry->inner);
	if (retry->inner.step == API_TURN) {
		retry->inner.commands[0].create.inbox = id;
		retry->inner.commands[0].create.was_kept = true;
	}
	follow(call, &retry->inner);
}

void inbox_retry_finish(struct api_call *call, const struct result *results)
{
	struct inbox_retry *retry = call->detail;

	if (!call_require(call, results[0].refusal != REFUSED_NOT_FOUND, REFUSED_NOT_FOUND, NULL))
		return; /* somebody else was faster */
	retry->inner.now = call->now;
	api_finish(&retry->inner, results);
	follow(call, &retry->inner);
}
