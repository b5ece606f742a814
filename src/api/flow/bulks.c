/*
 * Bulk actions: one change for every task that matches a filter.
 *
 * What matches is known here, because only the API reads the texts of tasks. A request counts the tasks first, in slices; a dry run
 * ends with that. Then the store keeps the action, and the server asks for its steps one by one: api_look_for_step().
 */
#include "api/form.h"
#include "api/task/filter.h"
#include "api/task/form.h"
#include "api/task/slice.h"

#include <errno.h>

#include "base/take.h"

enum {
	FILTER_TEXT_MAX = 1024, /* of one value */
};

/* ---- the filter of a body ------------------------------------------------------------------------------------ */

struct filter_body {
	struct span values[FILTER_FIELDS];
	bool all;
};

#define FILTER_VALUE(index, name) \
	{name, FIELD_TEXT, .max = FILTER_TEXT_MAX, .at = offsetof(struct filter_body, values[index])}

static const struct field filter_fields[] = {
	FILTER_VALUE(FILTER_STATUS, "status"),
	FILTER_VALUE(FILTER_STATE, "state"),
	FILTER_VALUE(FILTER_QUEUE, "queue"),
	FILTER_VALUE(FILTER_OWNER, "owner"),
	FILTER_VALUE(FILTER_LABEL, "label"),
	FILTER_VALUE(FILTER_Q, "q"),
	FILTER_VALUE(FILTER_SCHEDULE, "schedule"),
	FILTER_VALUE(FILTER_GROUP, "group"),
	FILTER_VALUE(FILTER_PARENT, "parent"),
	FILTER_VALUE(FILTER_WORKFLOW, "workflow"),
	FILTER_VALUE(FILTER_STAGE, "stage"),
	FILTER_VALUE(FILTER_ERROR, "error"),
	FIELD(filter_body, all, "all", FIELD_BOOL, .max = 0),
};

_Static_assert(sizeof filter_fields / sizeof *filter_fields == FILTER_FIELDS + 1, "every filter, and all");

static bool any_value(const struct filter_body *body)
{
	for (int i = 0; i < FILTER_FIELDS; i++) {
		if (body->values[i].data)
			return true;
	}
	return false;
}

/* Without a filter nobody means every task, unless they say so. */
static void judge_body(struct form *form, const struct filter_body *body)
{
	if (body->all && any_value(body))
		form_error(form, "all", "must stand alone: with a filter beside it, leave it out");
	else if (!body->all && !any_value(body))
		form_error(form, "",
			"must name what the tasks have in common, such as {\"queue\":\"ci\"}; {\"all\":true} is every task");
}

/* ---- a request ----------------------------------------------------------------------------------------------- */

struct bulk_request {
	struct task_filter filter;
	enum bulk_action action;
	struct span text; /* of the filter, as JSON */
	struct span queue;
	int32_t priority;
	bool dry_run;
	/* counting */
	int64_t at;
	int64_t seqs[SLICE_SCAN]; /* those of the last page that are to be read */
	uint32_t seq_count, seq_next;
	uint64_t matched, states[TASK_STATE_COUNT];
};

struct bulk_body {
	yyjson_val *filter, *value;
	int action;
	bool dry_run;
};

static const struct field bulk_fields[] = {
	FIELD_MUST_BE(bulk_body, filter, "filter", FIELD_NODE, .max = 0),
	FIELD_MUST_BE(bulk_body, action, "action", FIELD_CHOICE,
		.words = "retry|cancel|park|unpark|move|priority|purge"),
	FIELD(bulk_body, value, "value", FIELD_NODE, .max = 0),
	FIELD(bulk_body, dry_run, "dryRun", FIELD_BOOL, .max = 0),
};

/* The text is kept with the action: what is read again after a restart is what was asked for. */
static int keep_filter(struct api_call *call, struct bulk_request *request)
{
	cleanup(buf_done) struct buf text = {.max = BULK_FILTER_BYTES_MAX};
	struct json_object object;
	bool any = false;

	json_begin(&object, &text);
	for (int i = 0; i < FILTER_FIELDS; i++) {
		struct span value = request->filter.values[i];
		any |= value.data != NULL;
		if (value.data)
			json_member_string(&object, filter_names[i], value);
	}
	if (!any)
		json_member_bool(&object, "all", true);
	json_end(&object);
	return call_keep(call, &text, &request->text);
}

static void read_filter(struct form *form, yyjson_val *node, struct bulk_request *request)
{
	struct form_path path;
	struct filter_body body = {0};

	if (!node)
		return;
	uint64_t given = form_read_inner(form, "filter", node, FIELDS(filter_fields), &body);
	if (form->error_count > 0)
		return;
	for (int i = 0; i < FILTER_FIELDS; i++) { /* an empty text is a value too */
		if (given & UINT64_C(1) << i && !body.values[i].data)
			body.values[i] = SPAN("");
		request->filter.values[i] = body.values[i];
	}
	form_enter(form, &path, SPAN("filter"), -1);
	judge_body(form, &body);
	form_leave(form);
}

static void read_value(struct form *form, yyjson_val *value, struct bulk_request *request)
{
	static const struct field queue = {"value", FIELD_NAME, .required = true, .max = COMMAND_NAME_MAX,
		.at = offsetof(struct bulk_request, queue)};
	static const struct field priority = {"value", FIELD_BY, .required = true,
		.at = offsetof(struct bulk_request, priority), .by = task_take_priority};

	if (request->action != BULK_MOVE && request->action != BULK_PRIORITY) {
		if (value)
			form_error(form, "value", "must be left out: only move and priority have one");
	} else if (!value) {
		form_error(form, "value", "is required: %s",
			request->action == BULK_MOVE ? "the queue to move the tasks to"
						     : "the new priority of the tasks");
	} else {
		form_take(form, request->action == BULK_MOVE ? &queue : &priority, value, request);
	}
}

/* False: the call was refused. */
static bool read_request(struct api_call *call, struct bulk_request *request)
{
	cleanup(form_done) struct form form = {0};
	struct bulk_body body = {0};

	if (!form_open(&form, call, false))
		return false;
	uint64_t given = form_read(&form, form.root, FIELDS(bulk_fields), &body);
	read_filter(&form, body.filter, request);
	if (given & 1 << 1) {
		request->action = (enum bulk_action)(body.action + BULK_RETRY);
		read_value(&form, body.value, request);
	}
	request->dry_run = body.dry_run;
	return form_is_good(&form);
}

static bool begin_count(struct api_call *call, struct bulk_request *request)
{
	request->filter.path = "filter.";
	if (!task_filter_judge(call, &request->filter) || keep_filter(call, request) < 0)
		return false;
	call->step = API_READ;
	return true;
}

void bulk_start_begin(struct api_call *call)
{
	struct bulk_request *request = call_detail(call, sizeof *request);

	if (!request || !call_key_is_good(call) || !query_read(call, NULL, 0) || !read_request(call, request))
		return;
	if (request->action == BULK_MOVE && !principal_serves(&call->who, request->queue)) {
		api_refuse(call, REFUSED_FORBIDDEN, OTHER_QUEUES);
		return;
	}
	begin_count(call, request);
}

struct group_bulk_body {
	bool dry_run;
};

static const struct field group_bulk_fields[] = {
	FIELD(group_bulk_body, dry_run, "dryRun", FIELD_BOOL, .max = 0),
};

/* Of a group, cancel means what has not ended, and retry what has not ended well. */
void group_bulk_begin(struct api_call *call)
{
	struct bulk_request *request = call_detail(call, sizeof *request);
	struct group_bulk_body body = {0};
	struct group_document document;

	if (!request || !call_key_is_good(call) || !form_read_body(call, FIELDS(group_bulk_fields), &body) ||
		!query_read(call, NULL, 0) || !call_param_is_name(call, "name"))
		return;
	if (call_has_failed(call, store_read_group(call->store, call->params[0], &document)))
		return;
	request->action = (enum bulk_action)call->route->variant;
	request->dry_run = body.dry_run;
	request->filter.values[FILTER_GROUP] = call->params[0];
	request->filter.values[FILTER_STATE] = request->action == BULK_CANCEL
		? SPAN("pending,scheduled,waiting,ready,claimed,running,asking,review,blocked")
		: SPAN("blocked,failed,cancelled");
	begin_count(call, request);
}

/* ---- counting ------------------------------------------------------------------------------------------------ */

static void count(struct bulk_request *request, enum task_state state)
{
	request->matched++;
	request->states[state]++;
}

struct counting {
	struct api_call *call;
	struct bulk_request *request;
};

static int count_row(void *context, const struct task_outline *outline)
{
	struct counting *counting = context;
	struct bulk_request *request = counting->request;

	if (!task_filter_takes_outline(counting->call, &request->filter, outline))
		return 0;
	if (request->filter.reads_text)
		request->seqs[request->seq_count++] = outline->seq;
	else
		count(request, outline->state);
	return 0;
}

static int count_texts(struct api_call *call, struct bulk_request *request)
{
	struct task_document document;
	struct arena arena;
	int r = 0;

	arena_init(&arena, 16 * API_TEXT_MAX);
	for (uint32_t i = 0; r == 0 && i < SLICE_READ && request->seq_next < request->seq_count; i++) {
		r = store_read_task(
			call->store, request->seqs[request->seq_next++], call->now, &arena, &document);
		if (r == 0 && task_filter_takes_text(call, &request->filter, &document))
			count(request, document.task.state);
		r = r == -ENOENT ? 0 : r;
		arena_reset(&arena);
	}
	arena_done(&arena);
	return r;
}

static int count_slice(struct api_call *call, struct bulk_request *request)
{
	struct counting counting = {call, request};

	if (request->seq_next < request->seq_count)
		return count_texts(call, request);
	request->seq_count = request->seq_next = 0;
	return store_page_rows(call->store, true, &request->at, SLICE_SCAN, count_row, &counting);
}

static void reply_dry(struct api_call *call, const struct bulk_request *request)
{
	struct json_object object, states;

	json_begin(&object, call->body);
	json_member_cstr(&object, "action", bulk_action_name(request->action));
	json_member_int(&object, "matched", (int64_t)request->matched);
	json_put_key(&object, "states");
	json_begin(&states, call->body);
	for (int i = TASK_NOWHERE + 1; i < TASK_STATE_COUNT; i++)
		json_member_int_if_any(
			&states, task_state_name((enum task_state)i), (int64_t)request->states[i]);
	json_end(&states);
	call_reply(call, 200, json_end(&object));
}

static void put_value(
	struct json_object *object, enum bulk_action action, struct span queue, int32_t priority)
{
	if (action == BULK_MOVE)
		json_member_string(object, "value", queue);
	if (action == BULK_PRIORITY)
		json_member_int(object, "value", priority);
}

static void ask_for_start(struct api_call *call, const struct bulk_request *request)
{
	cleanup(buf_done) struct buf note = {.max = 2 * BULK_FILTER_BYTES_MAX};
	struct json_object members = {.buf = &note};
	struct command *command = call_command(call, COMMAND_BULK_START);

	if (!command)
		return;
	command->bulk.bulk = (struct bulk){.action = request->action,
		.priority = request->priority,
		.queue = request->queue,
		.filter = request->text,
		.token = call->who.id};
	command->bulk.matched = request->matched;
	if (call->request->idempotency_key.data) {
		command->bulk.idempotency_key = call->request->idempotency_key;
		digest_request(call->request, command->bulk.fingerprint);
	}
	json_member_cstr(&members, "change", bulk_action_name(request->action));
	json_member_raw(&members, "filter", request->text);
	put_value(&members, request->action, request->queue, request->priority);
	call_keep(call, &note, &command->note);
}

void bulk_count_read(struct api_call *call)
{
	struct bulk_request *request = call->detail;

	if (call_has_failed(call, count_slice(call, request)))
		return;
	if (request->at != INT64_MAX || request->seq_next < request->seq_count)
		call_again(call);
	else if (request->dry_run)
		reply_dry(call, request);
	else
		ask_for_start(call, request);
}

void bulk_start_finish(struct api_call *call, const struct result *results)
{
	const struct bulk_request *request = call->detail;
	cleanup(buf_done) struct buf location = {.max = 64};
	char id[BULK_ID_BYTES_MAX];
	struct json_object object;

	if (results[0].refusal == REFUSED_TOO_LARGE) {
		api_refuse(call, REFUSED_TOO_LARGE,
			"16 bulk actions run already: wait for one of them, or end it with DELETE /api/bulk/ID.");
		return;
	}
	if (call_is_refused(call, &results[0]))
		return;
	call->reply.event_seq = results[0].event_seq;
	struct bulk_document before;
	bool is_known = results[0].repeated && store_read_bulk(call->store, results[0].bulk, &before) == 0;
	struct span name = bulk_id_put(results[0].bulk, id);
	json_begin(&object, call->body);
	json_member_string(&object, "id", name);
	json_member_int(
		&object, "matched", (int64_t)(is_known ? before.progress->matched : request->matched));
	call_reply(call, 202, json_end(&object));
	buf_printf(&location, "/api/bulk/%.*s", SPAN_ARGS(name));
	if (call->reply.status == 202)
		call_locate(call, &location);
}

/* ---- looking ------------------------------------------------------------------------------------------------- */

/* Whoever reads certain queues only sees its own. */
static bool bulk_is_visible(const struct principal *who, const struct bulk *bulk)
{
	return who->queues.count == 0 || who->number == bulk->principal;
}

static int put_bulk(struct buf *out, const struct bulk_document *document)
{
	const struct bulk_progress *progress = document->progress;
	const struct bulk *bulk = document->bulk;
	struct json_object object, skipped;
	char id[BULK_ID_BYTES_MAX];

	json_begin(&object, out);
	json_member_string(&object, "id", bulk_id_put(bulk->number, id));
	json_member_cstr(&object, "state", bulk_state_name(progress->state));
	if (progress->stop != BULK_NOT_STOPPED)
		json_member_cstr(&object, "reason", bulk_stop_name(progress->stop));
	json_member_cstr(&object, "action", bulk_action_name(bulk->action));
	put_value(&object, bulk->action, bulk->queue, bulk->priority);
	json_member_raw(&object, "filter", bulk->filter);
	json_member_int(&object, "matched", (int64_t)progress->matched);
	json_member_int(&object, "done", (int64_t)progress->done);
	json_put_key(&object, "skipped");
	json_begin(&skipped, out);
	for (int i = REFUSED_NOTHING + 1; i < REFUSAL_COUNT; i++)
		json_member_int_if_any(
			&skipped, refusal_code((enum refusal)i), (int64_t)progress->skipped[i]);
	json_end(&skipped);
	json_member_string(&object, "actor", bulk->actor);
	json_member_int(&object, "createdAt", bulk->created_ms);
	json_member_int_if_any(&object, "endedAt", progress->ended_ms);
	return json_end(&object);
}

void bulk_list_read(struct api_call *call)
{
	struct bulk_document document;
	struct call_list list;
	uint32_t number = 0;
	int r = 0;

	if (!call_list_begin(&list, call))
		return;
	while (r == 0 && store_next_bulk(call->store, &number, &document)) {
		if (!bulk_is_visible(&call->who, document.bulk))
			continue;
		call_list_next(&list);
		r = put_bulk(call->body, &document);
	}
	call_list_end(&list, r);
}

/* The bulk action of the path. False: the call was refused. */
static bool find(struct api_call *call, struct bulk_document *ret_document)
{
	if (call_has_failed(call, store_read_bulk(call->store, bulk_id_read(call->params[0]), ret_document)))
		return false;
	return bulk_is_visible(&call->who, ret_document->bulk) || api_refuse(call, REFUSED_NOT_FOUND, NULL);
}

void bulk_one_read(struct api_call *call)
{
	struct bulk_document document;

	if (query_read(call, NULL, 0) && find(call, &document))
		call_reply(call, 200, put_bulk(call->body, &document));
}

void bulk_stop_begin(struct api_call *call)
{
	struct bulk_document document;

	if (!form_read_body(call, NULL, 0, NULL) || !query_read(call, NULL, 0) || !find(call, &document))
		return;
	struct command *command = call_command(call, COMMAND_BULK_STOP);
	if (command)
		command->bulk.bulk.number = document.bulk->number;
}

void bulk_stop_finish(struct api_call *call, const struct result *results)
{
	struct bulk_document document;

	if (call_is_refused(call, &results[0]))
		return;
	call->reply.event_seq = results[0].event_seq;
	if (find(call, &document))
		call_reply(call, 200, put_bulk(call->body, &document));
}

/* ---- the next step ------------------------------------------------------------------------------------------- */

struct stepping {
	struct api_call *call;
	struct task_filter filter;
	int64_t last;             /* the last task of the action */
	int64_t seqs[SLICE_SCAN]; /* whose outline matches */
	uint32_t count;
};

/* The filter as it was kept. One that means nothing any more, because a workflow is gone, lets no task through. */
static int read_kept_filter(struct api_call *call, const struct bulk *bulk, struct task_filter *ret_filter)
{
	struct json_complaint complaint;
	yyjson_doc *doc = json_read_in(call->arena, bulk->filter, &complaint);

	if (!doc)
		return -ENOMEM;
	*ret_filter = (struct task_filter){.path = ""};
	for (int i = 0; i < FILTER_FIELDS; i++) {
		yyjson_val *value = yyjson_obj_get(yyjson_doc_get_root(doc), filter_names[i]);
		if (value)
			ret_filter->values[i] = yyjson_get_len(value) > 0 ? json_text(value) : SPAN("");
	}
	if (!task_filter_judge(call, ret_filter))
		ret_filter->states = 0;
	return 0;
}

static int gather_row(void *context, const struct task_outline *outline)
{
	struct stepping *stepping = context;

	if (outline->seq <= stepping->last &&
		task_filter_takes_outline(stepping->call, &stepping->filter, outline))
		stepping->seqs[stepping->count++] = outline->seq;
	return 0;
}

/* 1: it matches, and *ret_item is it. */
static int look_at_task(
	struct stepping *stepping, struct arena *arena, int64_t seq, struct bulk_item *ret_item)
{
	struct api_call *call = stepping->call;
	struct task_document document;
	bool matches = true;
	int r;

	if (stepping->filter.reads_text) {
		r = store_read_task(call->store, seq, call->now, arena, &document);
		matches = r == 0 && task_filter_takes_text(call, &stepping->filter, &document);
	} else {
		r = store_read_columns(call->store, seq, arena, &document.task);
	}
	*ret_item = (struct bulk_item){.seq = seq, .damaged = r == -EBADMSG};
	if (r == -EBADMSG)
		return 1;
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	ret_item->version = document.task.version;
	return matches;
}

/* Of the rows behind the cursor, as many as one step takes. */
static int fill_step(struct stepping *stepping, const struct bulk_look *look, int64_t page_end,
	struct bulk_item *items, struct command_bulk *step)
{
	uint32_t most = look->most, reads = stepping->filter.reads_text ? SLICE_READ : SLICE_SCAN;
	struct arena arena;
	int r = 0;

	arena_init(&arena, 16 * API_TEXT_MAX);
	step->to = page_end;
	for (uint32_t i = 0; r >= 0 && i < stepping->count; i++) {
		if (step->item_count == most || i == reads) {
			step->to = stepping->seqs[i] - 1;
			break;
		}
		r = look_at_task(stepping, &arena, stepping->seqs[i], &items[step->item_count]);
		if (r > 0) {
			items[step->item_count].damaged |= look->passes_by;
			step->item_count++;
		}
		arena_reset(&arena);
	}
	arena_done(&arena);
	return r < 0 ? r : buf_fault(stepping->call->body);
}

static int look_on(struct api_call *call, const struct bulk_document *document, struct bulk_look *look,
	struct command_bulk *ret_step)
{
	struct stepping *stepping = arena_alloc(call->arena, sizeof *stepping);
	struct bulk_item *items = arena_alloc(call->arena, BULK_STEP_MAX * sizeof *items);
	int64_t at = look->looked;

	if (!stepping || !items)
		return -ENOMEM;
	stepping->call = call;
	stepping->last = document->progress->last;
	*ret_step = (struct command_bulk){
		.bulk = {.number = document->bulk->number}, .from = look->cursor, .items = items};
	int r = read_kept_filter(call, document->bulk, &stepping->filter);
	if (r == 0) {
		r = store_page_rows(call->store, true, &at, SLICE_SCAN, gather_row, stepping);
		ret_step->damaged = r == -EBADMSG;
		ret_step->to = look->looked;
	}
	if (r == -EBADMSG)
		return 0;
	return r < 0 ? r : fill_step(stepping, look, at, items, ret_step);
}

int api_look_for_step(struct api_call *call, struct bulk_look *look, struct command *ret_command)
{
	struct bulk_document document;

	if (store_read_bulk(call->store, look->number, &document) < 0)
		return 0;
	if (look->cursor != document.progress->cursor || look->looked < look->cursor)
		look->cursor = look->looked = document.progress->cursor;
	if (look->most == 0)
		look->most = BULK_STEP_MAX;
	call->who = (struct principal){.name = document.bulk->actor,
		.number = document.bulk->principal,
		.scopes = api_scopes_of(TOKEN_OPERATOR),
		.queues = document.bulk->within};
	*ret_command = (struct command){.kind = COMMAND_BULK_STEP, .actor = document.bulk->actor};
	struct command_bulk *step = &ret_command->bulk;
	int r = look_on(call, &document, look, step);
	if (r < 0)
		return r;
	if (step->item_count == 0 && !step->damaged && step->to < document.progress->last) {
		look->looked = step->to;
		return 0;
	}
	return 1;
}
