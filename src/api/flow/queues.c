/*
 * Queues: what there is, their limits, and pausing, resuming and draining them.
 */
#include "api/flow/budgets.h"
#include "api/task/why.h"
#include "base/take.h"

enum {
	REASON_MAX = 4096,
	QUEUES_MAX = 1000,
	SLICE_QUEUES = 8, /* each looks at every worker */
};

/* The names come first, then a few queues per slice. */
struct queue_list {
	struct api_call *call;
	struct span names[QUEUES_MAX];
	uint32_t count, at;
	bool any;
};

static int gather(void *context, struct span name, enum queue_state state, uint32_t ready)
{
	struct queue_list *list = context;

	(void)state;
	(void)ready;
	if (list->count == QUEUES_MAX || !principal_serves(&list->call->who, name))
		return 0;
	int r = arena_copy(list->call->arena, name, &list->names[list->count]);
	list->count += r == 0;
	return r;
}

static void put_counts(struct json_object *object, const uint32_t counts[TASK_STATE_COUNT])
{
	struct json_object states;

	if (!json_put_key(object, "tasks"))
		return;
	json_begin(&states, object->buf);
	for (int i = TASK_NOWHERE + 1; i < TASK_STATE_COUNT; i++) {
		if (!task_state_is_final((enum task_state)i))
			json_member_int(&states, task_state_name((enum task_state)i), counts[i]);
	}
	json_note(object, json_end(&states));
}

/* Why the next of its ready tasks is not taken. It may have been taken since it was found. */
static int put_next(const struct api_call *call, struct json_object *object, int64_t seq)
{
	struct task_document document;
	int r = store_read_task(call->store, seq, call->now, call->arena, &document);

	if (r == 0 && document.task.state == TASK_READY)
		why_put_member(call, object, &document, store_why(call->store, &document.task, call->now));
	return r == -ENOENT ? 0 : r;
}

/* A person chose the key: it may be any text. */
static void put_cap(struct json_object *object, const struct key_cap *cap)
{
	json_put_comma(object->buf, &object->any);
	json_put_string(object->buf, span_of(cap->text));
	buf_put_byte(object->buf, ':');
	buf_put_decimal(object->buf, cap->most);
}

static void put_caps(struct api_call *call, struct json_object *object, uint32_t queue)
{
	struct json_object members;
	struct key_cap cap;
	uint32_t at = 0;

	if (!store_next_cap(call->store, queue, &at, &cap) || !json_put_key(object, "keys"))
		return;
	json_begin(&members, object->buf);
	do
		put_cap(&members, &cap);
	while (store_next_cap(call->store, queue, &at, &cap));
	json_note(object, json_end(&members));
}

static void put_rate(struct json_object *object, const struct rate *rate)
{
	struct json_object members;

	if (rate->count == 0 || !json_put_key(object, "rate"))
		return;
	json_begin(&members, object->buf);
	json_member_int(&members, "count", rate->count);
	json_member_int(&members, "perMs", rate->per_ms);
	json_member_int(&members, "burst", rate->burst);
	json_member_cstr(&members, "per", rate->per_key ? "key" : "queue");
	json_note(object, json_end(&members));
}

static void put_limits(struct api_call *call, struct json_object *object, const struct queue_document *queue)
{
	const struct queue_limits *limits = &queue->limits;
	struct json_object members;

	if ((limits_are_none(limits) && queue->key_caps == 0) || !json_put_key(object, "limits"))
		return;
	json_begin(&members, object->buf);
	json_member_int_if_any(&members, "concurrency", limits->concurrency);
	json_member_int_if_any(&members, "perKey", limits->per_key);
	put_caps(call, &members, queue->number);
	if (limits->sequential)
		json_member_bool(&members, "sequential", true);
	put_rate(&members, &limits->rate);
	json_member_int_if_any(&members, "review", limits->review);
	if (limits->fair)
		json_member_bool(&members, "fair", true);
	json_member_int_if_any(&members, "maxOpen", limits->max_open);
	json_note(object, json_end(&members));
}

/* -ENOENT: nobody named such a queue. */
static int put_queue(struct api_call *call, struct span name)
{
	struct queue_document queue;
	struct day_budget budget;
	struct json_object object;
	int r = store_read_queue(call->store, name, &queue);

	if (r < 0)
		return r;
	json_begin(&object, call->body);
	json_member_string(&object, "name", name);
	json_member_cstr(&object, "state", queue_state_name(queue.state));
	json_member_int(&object, "ready", queue.count[TASK_READY]);
	put_counts(&object, queue.count);
	json_member_int(&object, "live", queue.load.live);
	put_limits(call, &object, &queue);
	if (store_find_budget(call->store, BUDGET_OF_QUEUE, name, &budget))
		budget_put_members(&object, &budget, call->now.wall_ms);
	json_member_int(&object, "workers", queue.workers);
	json_member_int_if_any(&object, "oldestReadyAt", queue.oldest_ready_ms);
	if (queue.next_seq != 0)
		r = put_next(call, &object, queue.next_seq);
	return r < 0 ? r : json_end(&object);
}

static struct queue_list *queue_list_new(struct api_call *call)
{
	struct queue_list *list = query_read(call, NULL, 0) ? call_detail(call, sizeof *list) : NULL;

	if (!list)
		return NULL;
	list->call = call;
	if (call_has_failed(call, store_each_queue(call->store, gather, list)))
		return NULL;
	call_slices_begin(call, "[");
	return list;
}

void queue_list_read(struct api_call *call)
{
	struct queue_list *list = call->detail ? call->detail : queue_list_new(call);
	int r = 0;

	if (!list)
		return;
	for (int i = 0; r == 0 && i < SLICE_QUEUES && list->at < list->count; i++) {
		json_put_comma(call->body, &list->any);
		r = put_queue(call, list->names[list->at++]); /* a queue that has a name keeps it */
	}
	call_slice(call, r, list->at < list->count, "]");
}

void queue_set_begin(struct api_call *call)
{
	if (!form_read_body(call, NULL, 0, NULL) || !call_param_is_name(call, "name"))
		return;
	struct command *command = call_command(call, COMMAND_QUEUE_SET);
	if (!command)
		return;
	command->queue_set.queue = call->params[0];
	command->queue_set.state = (enum queue_state)call->route->variant;
}

void queue_finish(struct api_call *call, const struct result *results)
{
	struct json_object queue;

	(void)results;
	json_begin(&queue, call->body);
	json_member_string(&queue, "name", call->params[0]);
	json_member_cstr(&queue, "state", queue_state_name(call->commands[0].queue_set.state));
	call_reply(call, 200, json_end(&queue));
}

/* ---- one queue, and its limits ------------------------------------------------------------------------------------ */

static void answer_queue(struct api_call *call)
{
	int r = put_queue(call, call->params[0]);

	if (r == -ENOENT)
		call_require(call, false, REFUSED_NOT_FOUND,
			"No task was ever in a queue of that name, and nobody set it.");
	else
		call_reply(call, 200, r);
}

void queue_read(struct api_call *call)
{
	if (!query_read(call, NULL, 0) || !call_param_is_name(call, "name"))
		return;
	if (call_require(call, principal_serves(&call->who, call->params[0]), REFUSED_FORBIDDEN,
		    "This credential is not for that queue."))
		answer_queue(call);
}

struct rate_body {
	int64_t count, per_ms, burst;
	int per;
};

struct limits_body {
	int64_t concurrency, per_key, review, max_open;
	bool sequential, fair;
	struct rate_body rate;
	struct span reason;
	struct command_key_cap caps[KEY_CAPS_MAX];
	uint32_t cap_count;
};

static field_take take_caps;

static const struct field rate_fields[] = {
	FIELD(rate_body, count, "count", FIELD_INT, .min = 1, .max = LIMIT_MAX, .required = true),
	FIELD(rate_body, per_ms, "perMs", FIELD_INT, .min = 1, .max = RATE_FILL_MS_MAX, .required = true),
	FIELD(rate_body, burst, "burst", FIELD_INT, .min = 1, .max = LIMIT_MAX),
	FIELD(rate_body, per, "per", FIELD_CHOICE, .words = "queue|key"),
};

static const struct field limits_fields[] = {
	FIELD(limits_body, concurrency, "concurrency", FIELD_INT, .min = 1, .max = LIMIT_MAX),
	FIELD(limits_body, per_key, "perKey", FIELD_INT, .min = 1, .max = LIMIT_MAX),
	FIELD(limits_body, sequential, "sequential", FIELD_BOOL),
	{"keys", FIELD_BY, .by = take_caps},
	FIELD(limits_body, reason, "reason", FIELD_TEXT, .max = REASON_MAX),
	FIELD(limits_body, rate, "rate", FIELD_GROUP, .fields = rate_fields,
		.field_count = sizeof rate_fields / sizeof *rate_fields),
	FIELD(limits_body, fair, "fair", FIELD_BOOL),
	FIELD(limits_body, review, "review", FIELD_INT, .min = 1, .max = LIMIT_MAX),
	FIELD(limits_body, max_open, "maxOpen", FIELD_INT, .min = 1, .max = LIMIT_MAX),
	{"budget", FIELD_BY, .by = budget_take_later},
};

/* The names of limits; a null lifts one, and what is not named stays. */
static const struct {
	const char *name;
	uint32_t set;
} limit_names[] = {
	{"concurrency", LIMITS_SET_CONCURRENCY},
	{"perKey", LIMITS_SET_PER_KEY},
	{"sequential", LIMITS_SET_SEQUENTIAL},
	{"rate", LIMITS_SET_RATE},
	{"review", LIMITS_SET_REVIEW},
	{"fair", LIMITS_SET_FAIR},
	{"maxOpen", LIMITS_SET_MAX_OPEN},
};

static bool is_named(const struct form *form, const char *name)
{
	return yyjson_obj_get(form->root, name) != NULL;
}

static bool is_key(struct span text)
{
	for (size_t i = 0; i < text.len; i++) {
		if ((unsigned char)text.data[i] < 32 || text.data[i] == 127)
			return false;
	}
	return text.len > 0 && text.len <= COMMAND_NAME_MAX;
}

/* One key with its number; null takes the number away. */
static void take_cap(struct form *form, struct span key, yyjson_val *value, void *into)
{
	struct limits_body *body = into;
	int64_t most = 0;

	if (!is_key(key))
		form_error(form, "", "is no concurrency key: 1 to %d bytes without control characters",
			COMMAND_NAME_MAX);
	else if (body->cap_count == KEY_CAPS_MAX)
		form_error(form, "",
			"is one key too many: at most %d have a number of their own, and perKey is for the others",
			KEY_CAPS_MAX);
	else if (!yyjson_is_null(value) && (node_int(value, &most) < 0 || most < 1 || most > LIMIT_MAX))
		form_error(form, "", "must be an integer from 1 to %d, or null to take its number away",
			LIMIT_MAX);
	else
		body->caps[body->cap_count++] = (struct command_key_cap){key, (uint32_t)most};
}

static bool take_caps(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	uint32_t before = form->error_count;

	if (!yyjson_is_obj(value))
		return form_wrong_as(
			form, field->name, "an object of concurrency keys and their numbers", value);
	form_each(form, field->name, value, take_cap, at);
	return form->error_count == before;
}

/* The caller's texts are in the request, which the command outlives. */
static bool keep_caps(struct api_call *call, const struct limits_body *body, struct command *command)
{
	struct command_key_cap *caps = arena_alloc(call->arena, (body->cap_count + 1) * sizeof *caps);

	for (uint32_t i = 0; caps && i < body->cap_count; i++) {
		caps[i].most = body->caps[i].most;
		if (arena_copy(call->arena, body->caps[i].key, &caps[i].key) < 0)
			caps = NULL;
	}
	if (!caps)
		return !call_has_failed(call, -ENOMEM);
	command->queue_limit.caps = caps;
	command->queue_limit.cap_count = body->cap_count;
	return true;
}

static struct rate rate_of(const struct rate_body *body)
{
	if (body->count == 0)
		return (struct rate){0};
	return (struct rate){.count = (uint32_t)body->count,
		.per_ms = body->per_ms,
		.burst = body->burst != 0 ? (uint32_t)body->burst : 1,
		.per_key = body->per == 1};
}

void queue_limit_begin(struct api_call *call)
{
	struct limits_body body = {0};
	cleanup(form_done) struct form form = {0};
	struct day_budget_patch budget;
	uint32_t set = 0;
	bool has_budget;

	if (!call_param_is_name(call, "name") || !form_open(&form, call, false))
		return;
	form_read(&form, form.root, FIELDS(limits_fields), &body);
	budget_read_member(&form, &has_budget, &budget);
	for (size_t i = 0; i < sizeof limit_names / sizeof *limit_names; i++)
		set |= is_named(&form, limit_names[i].name) ? limit_names[i].set : 0;
	if (form.error_count == 0 && form.fault == 0 && set == 0 && !has_budget && !is_named(&form, "keys"))
		form_error(&form, "",
			"names no limit; concurrency, perKey, keys, sequential, rate, fair, review, maxOpen or budget is required (null lifts a limit)");
	struct rate rate = rate_of(&body.rate);
	if (form.error_count == 0 && !rate_is_sound(&rate))
		form_error(&form, "rate.burst", "takes more than a year to come back at that rate");
	if (!form_is_good(&form))
		return;
	struct command *command = call_command(call, COMMAND_QUEUE_LIMIT);
	if (!command || !keep_caps(call, &body, command))
		return;
	command->queue_limit.queue = call->params[0];
	command->queue_limit.budget = budget;
	command->queue_limit.lifts_caps = yyjson_is_null(yyjson_obj_get(form.root, "keys"));
	command->queue_limit.patch = (struct limits_patch){
		.set = set,
		.wanted = {.concurrency = (uint32_t)body.concurrency,
			.per_key = (uint32_t)body.per_key,
			.sequential = body.sequential,
			.rate = rate,
			.review = (uint32_t)body.review,
			.fair = body.fair,
			.max_open = (uint32_t)body.max_open},
	};
	call_keep_note(call, "reason", body.reason, command);
}

void queue_limit_finish(struct api_call *call, const struct result *results)
{
	(void)results;
	answer_queue(call);
}
