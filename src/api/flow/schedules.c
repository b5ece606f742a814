/*
 * Schedules: what there is, making and changing them, and what comes next.
 */
#include "api/flow/schedule_form.h"

#include <errno.h>
#include <string.h>

#include "api/task/view.h"
#include "base/base36.h"
#include "base/take.h"

enum {
	SLICE_SCHEDULES = 50,
	NEXT_DEFAULT = 5,
	NEXT_MAX = 100,
	PATCH_TRIES_MAX = 10000, /* of those that meet in one turn one is done */
};

/* ---- one ----------------------------------------------------------------------------------------------------- */

static void put_task_id(struct json_object *object, const char *key, int64_t seq)
{
	char text[2 + BASE36_MAX] = "t-"; /* a template has no id of its own */
	size_t len = base36_encode((uint64_t)seq, text + 2);

	json_member_string(object, key, (struct span){text, len + 2});
}

static int put_occurrence(struct buf *out, const struct occurrence *occurrence)
{
	struct json_object object;

	json_begin(&object, out);
	if (occurrence->count > 1) {
		json_member_int(&object, "from", occurrence->from_ms);
		json_member_int(&object, "to", occurrence->at_ms);
		json_member_int(&object, "count", occurrence->count);
	} else {
		json_member_int(&object, "at", occurrence->at_ms);
	}
	json_member_cstr(&object, "outcome", outcome_name(occurrence->outcome));
	if (occurrence->task != 0)
		put_task_id(&object, "task", occurrence->task);
	if (occurrence->skip != SKIP_NOTHING)
		json_member_cstr(&object, "reason", skip_name(occurrence->skip));
	return json_end(&object);
}

/* Oldest first. */
static void put_history(struct json_object *object, const struct schedule_state *state)
{
	if (!json_put_key(object, "history"))
		return;
	buf_put_byte(object->buf, '[');
	for (uint32_t i = 0; i < state->history_count; i++) {
		if (i > 0)
			buf_put_byte(object->buf, ',');
		json_note(object, put_occurrence(object->buf, &state->history[i]));
	}
	buf_put_byte(object->buf, ']');
}

/* Why it is silent although it is not paused. */
static const char *problem_of(const struct schedule_document *document, int64_t now_ms)
{
	if (document->schedule->kind == PLAN_CRON && !document->plan->zone)
		return "The system of this server does not know the time zone, so nothing is made: install its files and restart the server, or set another tz.";
	if (document->state->last_ms > now_ms + SCHEDULE_LATE_MS)
		return "The clock was set back behind the last planned time, and no time is used twice: a change of the schedule starts it from now.";
	return NULL;
}

static int put_schedule(
	const struct api_call *call, struct buf *out, const struct schedule_document *document)
{
	const struct schedule_state *state = document->state;
	const char *problem = problem_of(document, call->now.wall_ms);
	cleanup(buf_done) struct buf words = {.max = 1024};
	struct json_object object;

	json_begin(&object, out);
	schedule_put_asked(&object, document);
	json_note(&object, schedule_put_words(&words, document));
	json_member_string(&object, "when", buf_span(&words));
	json_member_int_or_null(&object, "next", document->next_ms == INT64_MAX ? 0 : document->next_ms);
	json_member_bool(&object, "failing", state->streak >= SCHEDULE_FAILING);
	json_member_int(&object, "failuresInARow", state->streak);
	json_member_int(&object, "openTasks", state->open_count);
	json_member_int(&object, "made", (int64_t)state->made);
	json_member_int(&object, "skipped", (int64_t)state->skipped);
	put_history(&object, state);
	if (problem)
		json_member_cstr(&object, "problem", problem);
	json_member_string(&object, "madeBy", document->schedule->maker);
	json_member_int(&object, "createdAt", document->schedule->created_ms);
	json_member_int(&object, "updatedAt", document->schedule->updated_ms);
	json_member_int(&object, "version", state->version);
	return json_end(&object);
}

static bool find(struct api_call *call, struct schedule_document *ret_document)
{
	return !call_has_failed(call, store_read_schedule(call->store, call->params[0], ret_document));
}

void schedule_read_one(struct api_call *call)
{
	struct schedule_document document;

	if (query_read(call, NULL, 0) && find(call, &document) && task_etag(call, document.state->version))
		call_reply(call, 200, put_schedule(call, call->body, &document));
}

void schedule_next_read(struct api_call *call)
{
	struct query_value n = {.name = "n"};
	struct schedule_document document;
	struct json_object object;
	int64_t count;

	if (!query_read(call, &n, 1) ||
		!query_int(call, &n, 1, NEXT_MAX, NEXT_DEFAULT, &count, "must be from 1 to 100") ||
		!find(call, &document))
		return;
	json_begin(&object, call->body);
	json_member_string(&object, "id", document.schedule->id);
	json_member_string(
		&object, "tz", document.schedule->tz.len > 0 ? document.schedule->tz : SPAN("UTC"));
	json_member_bool(&object, "paused", document.state->paused);
	if (json_put_key(&object, "next")) {
		int64_t at_ms = document.state->last_ms > call->now.wall_ms ? document.state->last_ms
									    : call->now.wall_ms;
		buf_put_byte(call->body, '[');
		for (int64_t i = 0;
			i < count && (at_ms = schedule_plan_next(document.plan, at_ms)) != INT64_MAX; i++)
			buf_printf(call->body, i > 0 ? ",%lld" : "%lld", (long long)at_ms);
		buf_put_byte(call->body, ']');
	}
	call_reply(call, 200, json_end(&object));
}

/* ---- all ----------------------------------------------------------------------------------------------------- */

struct schedule_list {
	struct api_call *call;
	char after[COMMAND_ID_MAX]; /* the last one that was written */
	size_t after_len;
	bool any;
};

static int put_listed(void *context, const struct schedule_document *document)
{
	struct schedule_list *list = context;
	struct span id = document->schedule->id;

	json_put_comma(list->call->body, &list->any);
	memcpy(list->after, id.data, id.len);
	list->after_len = id.len;
	return put_schedule(list->call, list->call->body, document);
}

void schedule_list_read(struct api_call *call)
{
	struct schedule_list *list = call->detail;
	bool more;

	if (!list) {
		list = query_read(call, NULL, 0) ? call_detail(call, sizeof *list) : NULL;
		if (!list)
			return;
		list->call = call;
		call_slices_begin(call, "[");
	}
	struct span after = {list->after, list->after_len};
	int r = store_page_schedules(call->store, after, SLICE_SCHEDULES, &more, put_listed, list);
	call_slice(call, r, more, "]");
}

/* ---- making and changing --------------------------------------------------------------------------------------- */

static void fill(struct api_call *call, const struct schedule_form *said, bool changes, int64_t version)
{
	struct command *command = call_command(call, COMMAND_SCHEDULE_PUT);

	if (!command)
		return;
	if (command->if_version == 0) /* without If-Match: what was read for the merge */
		command->if_version = version;
	command->schedule = (struct command_schedule){
		.schedule = said->schedule,
		.create = &said->task.create,
		.changes = changes,
		.paused = said->paused,
	};
}

void schedule_create_begin(struct api_call *call)
{
	struct schedule_form *said = call_detail(call, sizeof *said);
	cleanup(form_done) struct form form = {0};

	if (!said || !form_open(&form, call, false))
		return;
	schedule_form_read(&form, form.root, said);
	if (form_is_good(&form))
		fill(call, said, false, 0);
}

/* The schedule as it is, with the members of the request merged into it: RFC 7396. NULL: the call was refused. */
static yyjson_val *merge(struct api_call *call, const struct schedule_document *document, yyjson_val *patch)
{
	cleanup(buf_done) struct buf text = {.max = 2 * API_TEXT_MAX};
	struct json_complaint complaint;
	struct json_object object;
	yyjson_val *key;
	size_t i, limit;
	yyjson_val *value;
	bool timed = false;

	yyjson_obj_foreach(patch, i, limit, key, value) timed |= yyjson_equals_str(key, "cron") ||
		yyjson_equals_str(key, "every") || yyjson_equals_str(key, "at");
	json_begin(&object, &text);
	schedule_put_asked(&object, document);
	int r = json_end(&object);
	yyjson_doc *old = r == 0 ? json_read_in(call->arena, buf_span(&text), &complaint) : NULL;
	yyjson_mut_doc *doc = old ? yyjson_mut_doc_new(NULL) : NULL;
	yyjson_mut_val *merged = doc ? yyjson_merge_patch(doc, yyjson_doc_get_root(old), patch) : NULL;
	if (merged && timed) { /* another way to say when takes the place of the one before */
		static const char *const ways[] = {"cron", "every", "at"};
		for (int way = 0; way < 3; way++) {
			if (!yyjson_obj_get(patch, ways[way]))
				yyjson_mut_obj_remove_key(merged, ways[way]);
		}
	}
	size_t len = 0;
	char *written = merged ? yyjson_mut_val_write(merged, 0, &len) : NULL;
	yyjson_doc *read =
		written ? json_read_in(call->arena, (struct span){written, len}, &complaint) : NULL;
	free(written);
	yyjson_mut_doc_free(doc);
	if (!read)
		call_refuse_request(call, -ENOMEM);
	return yyjson_doc_get_root(read);
}

void schedule_patch_begin(struct api_call *call)
{
	struct schedule_form *said = call->detail ? call->detail : call_detail(call, sizeof *said);
	cleanup(form_done) struct form form = {0};
	struct schedule_document document;

	if (!said || !form_open(&form, call, false) || !find(call, &document))
		return;
	if (yyjson_obj_get(form.root, "id")) {
		call_refuse_field(call, "id", "cannot be changed after creation");
		return;
	}
	yyjson_val *whole = merge(call, &document, form.root);
	if (!whole)
		return;
	uint32_t tries = said->tries;
	*said = (struct schedule_form){.tries = tries};
	schedule_form_read(&form, whole, said);
	if (form_is_good(&form))
		fill(call, said, true, document.state->version);
}

static void reply_with(struct api_call *call, int status, struct span id, const struct result *result)
{
	struct schedule_document document;

	call->reply.event_seq = result->event_seq;
	if (!call_has_failed(call, store_read_schedule(call->store, id, &document)) &&
		task_etag(call, document.state->version))
		call_reply(call, status, put_schedule(call, call->body, &document));
}

void schedule_create_finish(struct api_call *call, const struct result *results)
{
	struct span id = call->commands[0].schedule.schedule.id;
	cleanup(buf_done) struct buf path = {.max = 2 * COMMAND_ID_MAX};

	if (results[0].refusal == REFUSED_TOO_LARGE) {
		api_refuse(
			call, REFUSED_TOO_LARGE, "There are as many schedules as the store keeps: 10,000.");
		return;
	}
	if (call_is_refused(call, &results[0]))
		return;
	reply_with(call, 201, id, &results[0]);
	if (call->reply.status != 201)
		return;
	buf_printf(&path, "/api/schedules/%.*s", SPAN_ARGS(id));
	call_locate(call, &path);
}

void schedule_patch_finish(struct api_call *call, const struct result *results)
{
	struct schedule_form *said = call->detail;

	bool was_asked = call->request->if_match.data && !span_equal(call->request->if_match, SPAN("*"));
	if (results[0].refusal == REFUSED_VERSION_MISMATCH && !was_asked && said->tries++ < PATCH_TRIES_MAX) {
		schedule_patch_begin(call); /* somebody was faster: merge with what is there now */
		return;
	}
	if (results[0].refusal == REFUSED_VERSION_MISMATCH) {
		api_refuse(call, REFUSED_VERSION_MISMATCH, "The schedule has changed since that version.");
		return;
	}
	if (!call_is_refused(call, &results[0]))
		reply_with(call, 200, call->params[0], &results[0]);
}

/* ---- remove, pause, resume, run ---------------------------------------------------------------------------------- */

void schedule_set_begin(struct api_call *call)
{
	if (!form_read_body(call, NULL, 0, NULL))
		return;
	struct command *command = call_command(call, (enum command_kind)call->route->variant);
	if (command)
		command->schedule.schedule.id = call->params[0];
}

void schedule_set_finish(struct api_call *call, const struct result *results)
{
	reply_with(call, 200, call->params[0], &results[0]);
}

void schedule_remove_finish(struct api_call *call, const struct result *results)
{
	struct json_object object;

	call->reply.event_seq = results[0].event_seq;
	json_begin(&object, call->body);
	json_member_string(&object, "id", call->params[0]);
	call_reply(call, 200, json_end(&object));
}

void schedule_run_begin(struct api_call *call)
{
	struct run_body {
		int64_t at_ms;
	} body = {0};
	static const struct field run_fields[] = {
		FIELD(run_body, at_ms, "at", FIELD_INT, .min = 1, .max = INT64_C(253402300799999))};

	if (!form_read_body(call, FIELDS(run_fields), &body))
		return;
	struct command *command = call_command(call, COMMAND_SCHEDULE_RUN);
	if (!command)
		return;
	command->schedule.schedule.id = call->params[0];
	command->schedule.at_ms = body.at_ms;
}

void schedule_run_finish(struct api_call *call, const struct result *results)
{
	const struct result *result = &results[0];

	if (parent_is_missing(result)) {
		parent_refuse(call, result);
		return;
	}
	if (result->refusal == REFUSED_INVALID) {
		call_refuse_field(call, "at",
			"must be a planned time that was skipped and is in the schedule's history; every planned time makes at most one task");
		return;
	}
	if (!call_is_refused(call, result))
		task_reply(call, 201, result, (struct span){0});
}
