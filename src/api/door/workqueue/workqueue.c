/*
 * Adding items, taking the next one, reporting: the frequent requests of this API.
 *
 * A claim here is known by a name: its lease is its own, 15 minutes unless the caller asks for another, and lasts for
 * as long as there is progress, because the original knows no other clock. A report with the fence of the
 * item must have the right one; a report without is matched by name, and the event says so.
 */
#include "api/door/workqueue/workqueue.h"
#include "api/task/report_form.h"

#include <errno.h>

#include "base/take.h"

#define LEASE_ASKED_MAX \
	(INT64_C(365) * 24 * 3600 * 1000) /* more counts as this, and the rules clamp it further */

/* ---- fields of a request -------------------------------------------------------------------------------- */

struct span text_trim(struct span text)
{
	static const char space[] = " \t\n\r\f\v";

	while (text.len > 0 && memchr(space, text.data[0], sizeof space - 1))
		text = (struct span){text.data + 1, text.len - 1};
	while (text.len > 0 && memchr(space, text.data[text.len - 1], sizeof space - 1))
		text.len--;
	return text;
}

bool workqueue_take_text(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	struct span text = text_trim(json_text(value));

	if (!yyjson_is_str(value))
		return form_error(form, field->name, "must be a string");
	if (text.len > (size_t)field->max)
		return form_error(form, field->name, "has %zu bytes; at most %zu are allowed", text.len,
			(size_t)field->max);
	if (text.len > 0)
		*(struct span *)at = text;
	return true;
}

bool workqueue_take_id(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	const struct span *name = at;

	if (!workqueue_take_text(form, field, value, at))
		return false;
	if (name->len == 0 || text_is_name(*name, COMMAND_ID_MAX))
		return true;
	return form_error(
		form, field->name, "must be 1 to %d bytes without control characters", COMMAND_ID_MAX);
}

struct span workqueue_text(struct form *form, const char *name)
{
	struct field field = {name, FIELD_BY, .max = COMMAND_ID_MAX, .by = workqueue_take_text};
	yyjson_val *value = yyjson_obj_get(form->root, name);
	struct span text = {0};

	if (value && !yyjson_is_null(value))
		form_take(form, &field, value, &text);
	return text;
}

static int digits_read(struct span text, int64_t *ret_number)
{
	bool minus = text.len > 0 && text.data[0] == '-';
	int64_t number = 0;

	if (text.len == (size_t)minus || text.len > 18)
		return -EINVAL;
	for (size_t i = minus; i < text.len; i++) {
		if (text.data[i] < '0' || text.data[i] > '9')
			return -EINVAL;
		number = number * 10 + (text.data[i] - '0');
	}
	*ret_number = minus ? -number : number;
	return 0;
}

bool workqueue_take_whole(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	int64_t *number = at;
	int r = yyjson_is_str(value) ? digits_read(text_trim(json_text(value)), number)
				     : node_int(value, number);

	if (r == 0 && *number > field->max && field->max == LEASE_ASKED_MAX)
		*number = field->max;
	if (r == 0 && *number >= field->min && *number <= field->max)
		return true;
	return form_error(form, field->name, "must be a whole number from %lld to %lld",
		(long long)field->min, (long long)field->max);
}

/* One more name, unless it is blank. False: that is an error. */
static bool add_name(struct form *form, const char *field, struct span text, struct name_list *names)
{
	struct span trimmed = text_trim(text), *items = (struct span *)names->items;

	if (trimmed.len == 0)
		return true;
	if (!text_is_name(trimmed, COMMAND_NAME_MAX))
		return form_error(form, field,
			"has a name that is not 1 to %d bytes without control characters", COMMAND_NAME_MAX);
	if (names->count == COMMAND_LIST_MAX)
		return form_error(form, field, "has more than %d names", COMMAND_LIST_MAX);
	items[names->count++] = trimmed;
	return true;
}

struct name_list field_queues(struct form *form, yyjson_val *object, const char *name)
{
	yyjson_val *value = yyjson_obj_get(object, name), *item;
	struct name_list names = {0};
	size_t i, limit;

	if (!value || yyjson_is_null(value))
		return names;
	if (!yyjson_is_arr(value)) {
		form_error(form, name, "must be a list of strings");
		return names;
	}
	names.items = arena_alloc(form->arena, COMMAND_LIST_MAX * sizeof *names.items);
	if (!names.items) {
		form_short(form, -ENOMEM);
		return names;
	}
	yyjson_arr_foreach(value, i, limit, item)
	{
		if (yyjson_is_str(item) ? !add_name(form, name, json_text(item), &names)
					: !form_error(form, name, "has at [%zu] what is no string", i))
			break;
	}
	return names;
}

int split_names(struct arena *arena, struct span text, char separator, struct name_list *ret_names)
{
	struct span *items = arena_alloc(arena, COMMAND_LIST_MAX * sizeof *items);

	*ret_names = (struct name_list){items, 0};
	if (!items)
		return -ENOMEM;
	while (text.len > 0 && ret_names->count < COMMAND_LIST_MAX) {
		const char *comma = memchr(text.data, separator, text.len);
		size_t len = comma ? (size_t)(comma - text.data) : text.len;
		struct span name = text_trim((struct span){text.data, len});
		if (text_is_name(name, COMMAND_NAME_MAX))
			items[ret_names->count++] = name;
		text = comma ? (struct span){comma + 1, text.len - len - 1} : (struct span){0};
	}
	return 0;
}

/* ---- enqueue ------------------------------------------------------------------------------------------------ */

struct enqueued {
	struct span queue, title, instructions, key, meta;
	int64_t priority;
};

static const struct field enqueue_fields[] = {
	ITEM_TEXT(enqueued, queue, "queue", COMMAND_NAME_MAX),
	ITEM_TEXT(enqueued, title, "title", TITLE_BYTES_MAX),
	ITEM_TEXT(enqueued, instructions, "instructions", API_TEXT_MAX),
	ITEM_WHOLE(enqueued, priority, "priority", INT32_MIN, INT32_MAX),
	ITEM_TEXT(enqueued, key, "dedupeKey", DEDUPE_KEY_BYTES_MAX),
	FIELD(enqueued, meta, "meta", FIELD_OBJECT, .max = 0),
};

static void read_enqueued(struct form *form, struct enqueued *item)
{
	form->tolerant = true;
	form_read(form, form->root, FIELDS(enqueue_fields), item);
	item->key = item_key(form, item->key, item->queue);
	if (item->queue.len > 0 && !text_is_name(item->queue, COMMAND_NAME_MAX))
		form_error(form, "queue", "must be a name without control characters");
}

/* The members of the task that the rules do not look into. */
static void put_body(struct buf *body, struct enqueued *item)
{
	struct json_object members = {.buf = body};

	json_member_string(&members, "title", item->title.len > 0 ? item->title : SPAN("(untitled)"));
	json_member_string(&members, "instructions", item->instructions);
	json_member_string_if_any(&members, "uniqueKey", item->key);
	json_member_raw_if_any(&members, "metadata", item->meta);
}

static void fill_enqueue(struct api_call *call, struct enqueued *item)
{
	cleanup(buf_done) struct buf body = {.max = 4 * API_TEXT_MAX};

	if (!call_require(call, principal_serves(&call->who, item->queue), REFUSED_FORBIDDEN,
		    "The credential is for other queues than this one."))
		return;
	struct command *command = call_command(call, COMMAND_CREATE);
	if (!command)
		return;
	command->create.queue = item->queue;
	command->create.priority = (int32_t)item->priority;
	command->create.unique_key = item->key;
	put_body(&body, item);
	call_keep(call, &body, &command->create.body);
}

void workqueue_enqueue_begin(struct api_call *call)
{
	cleanup(form_done) struct form form = {0};
	struct enqueued item = {0};

	call->query_taken = true;
	if (!form_open(&form, call, false))
		return;
	read_enqueued(&form, &item);
	if (!form_is_good(&form))
		return;
	if (item.queue.len == 0)
		workqueue_missing(
			call, "queue_required", "\"queue\" names the queue that the item goes into");
	else
		fill_enqueue(call, &item);
}

void workqueue_enqueue_finish(struct api_call *call, const struct result *results)
{
	item_reply(call, &results[0], results[0].deduplicated, (struct span){0});
}

/* What an agent says of itself and of an item. */
struct said {
	struct span item, agent, note, error, result;
	uint64_t fence;
	bool has_fence;
	int64_t lease_ms;
};

static const struct field claim_fields[] = {
	ITEM_ID(said, agent, "agentId"),
	ITEM_WHOLE(said, lease_ms, "leaseMs", 0, LEASE_ASKED_MAX),
};

/* ---- claim-next ---------------------------------------------------------------------------------------------- */

/* Where the queues came from, for the answer. */
struct queue_sources {
	const char *name;
	struct name_list queues;
};

bool assigned_next(struct span *rest, struct span *ret_queue)
{
	size_t len = 1;

	if (rest->len == 0)
		return false;
	while (len < rest->len && rest->data[len] != ASSIGNMENT_SEPARATOR)
		len++;
	*ret_queue = (struct span){rest->data + 1, len - 1};
	*rest = (struct span){rest->data + len, rest->len - len};
	return true;
}

/* The queues of the request; else the assigned queues of the agent; else the default. */
static int resolve_queues(
	struct api_call *call, struct form *form, struct span agent, struct queue_sources *ret_sources)
{
	const struct api_services *host = call->host;
	struct span text = {0};
	bool own_default = yyjson_is_arr(yyjson_obj_get(form->root, "defaultQueues"));

	*ret_sources = (struct queue_sources){"requested", field_queues(form, form->root, "queues")};
	if (ret_sources->queues.count > 0 || form->error_count > 0)
		return 0;
	int r = store_assignment(call->store, agent, call->arena, &text);
	if (r == 0)
		r = split_names(call->arena, text, ASSIGNMENT_SEPARATOR, &ret_sources->queues);
	ret_sources->name = "assignment";
	if (r != -ENOENT && (r < 0 || ret_sources->queues.count > 0))
		return r;
	ret_sources->name = "default";
	if (own_default) {
		ret_sources->queues = field_queues(form, form->root, "defaultQueues");
		return 0;
	}
	const char *defaults = host->default_queues ? host->default_queues(host->context) : "";
	return split_names(call->arena, span_of(defaults), ',', &ret_sources->queues);
}

/* A list, or "ready,pending"; ready alone if nothing is said. */
static void read_statuses(struct form *form, struct command_claim *claim)
{
	yyjson_val *value = yyjson_obj_get(form->root, "includeStatuses");
	struct name_list names = {0};

	claim->takes_ready = !value || yyjson_is_null(value);
	if (claim->takes_ready)
		return;
	if (!yyjson_is_str(value))
		names = field_queues(form, form->root, "includeStatuses");
	else if (split_names(form->arena, json_text(value), ',', &names) < 0)
		form_short(form, -ENOMEM);
	claim_read_statuses(form, &names, claim);
}

static bool is_true(yyjson_val *root, const char *name)
{
	yyjson_val *value = yyjson_obj_get(root, name);

	return yyjson_is_true(value) || yyjson_equals_str(value, "true");
}

static void fill_claim(struct api_call *call, struct span agent, const struct command_claim *claim,
	struct queue_sources *sources)
{
	if (sources->queues.count == 0) {
		int r = buf_put_span(
			call->body, SPAN("{\"ok\":true,\"item\":null,\"reason\":\"NO_QUEUES\"}"));
		call_reply(call, 200, r);
		return;
	}
	struct command *command =
		call_serves_all(call, &sources->queues) ? call_command(call, COMMAND_CLAIM_NEXT) : NULL;
	if (!command)
		return;
	command->worker = agent;
	command->claim = *claim;
	command->claim.queues = sources->queues;
	command->claim.slot = agent;
	command->claim.any_executor = true;
	command->claim.named = true;
	command->claim.max = 1;
	command->claim.run_ms = TASK_DELAY_MS_MAX;
}

void workqueue_claim_begin(struct api_call *call)
{
	cleanup(form_done) struct form form = {0};
	struct queue_sources *sources = call_detail(call, sizeof *sources);
	struct command_claim claim = {0};
	struct said said = {0};

	call->query_taken = true;
	if (!sources || !form_open(&form, call, false))
		return;
	form.tolerant = true;
	form_read(&form, form.root, FIELDS(claim_fields), &said);
	if (said.agent.len == 0 && form.error_count == 0)
		form_error(&form, "agentId", "is required");
	claim.lease_ms = said.lease_ms;
	claim.resumes = is_true(form.root, "resumeOwned") || is_true(form.root, "preferOwned");
	read_statuses(&form, &claim);
	int r = form.error_count == 0 ? resolve_queues(call, &form, said.agent, sources) : 0;
	if (r < 0)
		form.fault = r;
	if (form_is_good(&form))
		fill_claim(call, said.agent, &claim, sources);
}

void workqueue_claim_finish(struct api_call *call, const struct result *results)
{
	const struct queue_sources *sources = call->detail;
	struct result taken = results[0];
	cleanup(buf_done) struct buf more = {.max = 8 * COMMAND_LIST_MAX * COMMAND_NAME_MAX};
	struct json_object members = {.buf = &more, .any = true};

	if (json_put_key(&members, "queues"))
		json_put_strings(&more, sources->queues.items, sources->queues.count);
	json_member_cstr(&members, "queuesSource", sources->name);
	if (taken.claim_count > 0 && buf_fault(&more) == 0) {
		taken.task = taken.claims[0].task;
		item_reply(call, &taken, false, buf_span(&more));
		return;
	}
	buf_put_span(call->body, SPAN("{\"ok\":true,\"item\":null"));
	buf_put_span(call->body, buf_span(&more));
	buf_put_byte(call->body, '}');
	call_reply(call, 200, buf_fault(&more));
}

/* ---- how it goes ----------------------------------------------------------------------------------------------- */

/* Digits in a string, as it was given out; a JSON number is accepted if it is exact. */
static void read_fence(struct form *form, struct said *said)
{
	static const struct field field = FIELD(said, fence, "fence", FIELD_DECIMAL, .max = 0);
	yyjson_val *value = yyjson_obj_get(form->root, "fence");

	if (form_call(form)->who.fence != 0) { /* the token of a claim is its fence */
		said->fence = form_call(form)->who.fence;
		said->has_fence = true;
	}
	if (!value || yyjson_is_null(value) || yyjson_equals_str(value, ""))
		return;
	said->has_fence = true;
	if (yyjson_is_uint(value))
		said->fence = yyjson_get_uint(value);
	else
		form_take(form, &field, value, said);
}

static const struct field report_fields[] = {
	ITEM_ID(said, item, "itemId"),
	ITEM_ID(said, agent, "agentId"),
	ITEM_TEXT(said, note, "note", NOTE_BYTES_MAX),
	ITEM_TEXT(said, error, "error", NOTE_BYTES_MAX),
	ITEM_WHOLE(said, lease_ms, "leaseMs", 0, LEASE_ASKED_MAX),
	FIELD(said, result, "result", FIELD_VALUE, .max = 0),
};

static void read_said(struct form *form, struct said *said)
{
	form->tolerant = true;
	form_read(form, form->root, FIELDS(report_fields), said);
	read_fence(form, said);
}

static bool keep_note(struct api_call *call, const struct said *said, struct command *command)
{
	command->words = said->note;
	return call_keep_note(call, "note", said->note, command) == 0;
}

static bool keep_error(struct api_call *call, const struct said *said, struct command *command)
{
	cleanup(buf_done) struct buf error = {.max = 8 * NOTE_BYTES_MAX};

	command->failure =
		(struct failure){.code = CODE_EXECUTION_ERROR, .klass = CLASS_TASK, .no_retry = true};
	item_error_put(&error, said->error);
	return call_keep(call, &error, &command->data) == 0;
}

static void fill_said(struct api_call *call, const struct said *said, enum command_kind kind)
{
	struct command *command = call_command(call, kind);

	if (!command)
		return;
	command->task = said->item;
	command->worker = said->agent;
	command->fence = said->fence;
	command->by_name = !said->has_fence;
	if (kind == COMMAND_PROGRESS)
		command->lease_ms = said->lease_ms;
	if (kind == COMMAND_COMPLETE)
		command->data = said->result;
	if (!keep_note(call, said, command) || (kind == COMMAND_FAIL && !keep_error(call, said, command)))
		return;
	/* with the token of a claim it is the work itself that speaks: under a supervisor that is a report */
	if (kind != COMMAND_PROGRESS)
		report_keep_own(call, command, kind == COMMAND_FAIL ? ENDED_FAIL : ENDED_COMPLETE);
}

/* The report that a status asks for; COMMAND_KIND_COUNT: none. */
static enum command_kind kind_of_status(struct span status)
{
	static const struct {
		const char *status;
		enum command_kind kind;
	} words[] = {
		{"in_progress", COMMAND_PROGRESS},
		{"done", COMMAND_COMPLETE},
		{"failed", COMMAND_FAIL},
	};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (span_equal(span_of(words[i].status), status))
			return words[i].kind;
	}
	return COMMAND_KIND_COUNT;
}

/* COMMAND_KIND_COUNT: the body says which in "status". */
void workqueue_report_begin(struct api_call *call)
{
	enum command_kind kind = (enum command_kind)call->route->variant;
	cleanup(form_done) struct form form = {0};
	struct said said = {0};

	call->query_taken = true;
	if (!form_open(&form, call, false))
		return;
	read_said(&form, &said);
	if (!form_is_good(&form))
		return;
	if (kind == COMMAND_KIND_COUNT)
		kind = kind_of_status(json_text(yyjson_obj_get(form.root, "status")));
	if (said.item.len == 0)
		workqueue_missing(call, "itemId_required", "\"itemId\" says which item is meant");
	else if (said.agent.len == 0)
		workqueue_missing(call, "agentId_required", "\"agentId\" says who reports");
	else if (kind == COMMAND_KIND_COUNT)
		workqueue_missing(
			call, "invalid_status", "\"status\" must be one of in_progress, done, failed");
	else if (kind == COMMAND_FAIL && said.error.len == 0)
		workqueue_missing(call, "error_required", "\"error\" says what went wrong");
	else
		fill_said(call, &said, kind);
}

void workqueue_report_finish(struct api_call *call, const struct result *results)
{
	item_reply(call, &results[0], false, (struct span){0});
}
