/*
 * Workers: registration and heartbeats, also with the names of the liveness protocol (workerInstanceKey,
 * leaseDuration, boundActivities, unboundActivities); looking at them; sending them away. And slots.
 */
#include "api/form.h"

#include <errno.h>

#include "base/take.h"

#define LEASE_ASKED_MAX (INT64_C(365) * 24 * 3600 * 1000) /* the rules clamp it further */

/* ---- registration and heartbeats -------------------------------------------------------------------- */

struct beat_body {
	struct span worker, worker_key, slot, metadata;
	struct name_list capabilities, executors;
	struct name_list bound, bound_activities, unbound, unbound_activities;
	uint64_t token;
	int64_t lease_ms, lease_duration_ms, max_concurrent;
};

/* The rows that say who it is come first: a beat that has one of them describes the worker anew. */
enum beat_row {
	ROW_EXECUTORS,
	ROW_SLOT,
	ROW_CAPABILITIES,
	ROW_MAX,
	ROW_METADATA,
	DESCRIBING,
	ROW_TOKEN = DESCRIBING
};

#define DESCRIPTION                                                                                 \
	[ROW_EXECUTORS] = FIELD(beat_body, executors, "executors", FIELD_NAMES, .max = 0),          \
	[ROW_SLOT] = FIELD(beat_body, slot, "slot", FIELD_NAME, .max = 0),                          \
	[ROW_CAPABILITIES] = FIELD(beat_body, capabilities, "capabilities", FIELD_NAMES, .max = 0), \
	[ROW_MAX] = FIELD(beat_body, max_concurrent, "maxConcurrent", FIELD_INT, .max = 100000),    \
	[ROW_METADATA] = FIELD(beat_body, metadata, "metadata", FIELD_OBJECT, .max = 0)

static const struct field register_fields[] = {
	DESCRIPTION,
	FIELD_MUST_BE(beat_body, worker, "workerId", FIELD_NAME, .max = COMMAND_ID_MAX),
	FIELD(beat_body, lease_ms, "leaseMs", FIELD_INT, .max = LEASE_ASKED_MAX),
};

static const struct field beat_fields[] = {
	DESCRIPTION,
	[ROW_TOKEN] = FIELD(beat_body, token, "token", FIELD_DECIMAL, .max = 0),
	FIELD(beat_body, worker, "workerId", FIELD_NAME, .max = COMMAND_ID_MAX),
	FIELD(beat_body, worker_key, "workerInstanceKey", FIELD_NAME, .max = COMMAND_ID_MAX),
	FIELD(beat_body, lease_ms, "leaseMs", FIELD_INT, .max = LEASE_ASKED_MAX),
	FIELD(beat_body, lease_duration_ms, "leaseDuration", FIELD_INT, .max = LEASE_ASKED_MAX),
	FIELD(beat_body, bound, "boundTasks", FIELD_NAMES, .max = COMMAND_ID_MAX),
	FIELD(beat_body, bound_activities, "boundActivities", FIELD_NAMES, .max = COMMAND_ID_MAX),
	FIELD(beat_body, unbound, "unboundTasks", FIELD_NAMES, .max = COMMAND_ID_MAX),
	FIELD(beat_body, unbound_activities, "unboundActivities", FIELD_NAMES, .max = COMMAND_ID_MAX),
};

/* The other names mean the same; both at once is a mistake. */
static void join_names(struct form *form, struct beat_body *body)
{
	if (body->worker.len > 0 && body->worker_key.len > 0)
		form_error(form, "workerInstanceKey", "is another name of workerId: send one of them");
	if (body->worker.len == 0)
		body->worker = body->worker_key;
	if (body->worker.len == 0 && form->error_count == 0)
		form_error(form, "workerId", "is required");
	if (body->lease_ms == 0)
		body->lease_ms = body->lease_duration_ms;
	if (body->bound.count > 0 && body->bound_activities.count > 0)
		form_error(form, "boundActivities", "is another name of boundTasks: send one of them");
	if (body->bound.count == 0)
		body->bound = body->bound_activities;
	if (body->unbound.count > 0 && body->unbound_activities.count > 0)
		form_error(form, "unboundActivities", "is another name of unboundTasks: send one of them");
	if (body->unbound.count == 0)
		body->unbound = body->unbound_activities;
}

static void fill_beat(
	struct api_call *call, enum command_kind kind, const struct beat_body *body, uint64_t given)
{
	struct command *command = call_commands(call, 1);

	if (!command)
		return;
	command->kind = kind;
	command->worker = body->worker;
	command->beat = (struct command_beat){
		.lease_ms = body->lease_ms,
		.describes = kind == COMMAND_REGISTER || (given & ((1u << DESCRIBING) - 1)) != 0,
		.slot = body->slot,
		.capabilities = body->capabilities,
		.executors = body->executors,
		.any_executor = !(given & 1u << ROW_EXECUTORS),
		.max_concurrent = (uint32_t)body->max_concurrent,
		.metadata = body->metadata,
		.bound = body->bound,
		.unbound = body->unbound,
		.has_token = kind == COMMAND_BEAT && (given & 1u << ROW_TOKEN) != 0,
		.token = body->token,
	};
}

void worker_register_begin(struct api_call *call)
{
	struct beat_body body = {0};
	uint64_t given;

	if (form_read_body(call, FIELDS(register_fields), &body, &given))
		fill_beat(call, COMMAND_REGISTER, &body, given);
}

void worker_beat_begin(struct api_call *call)
{
	struct beat_body body = {0};
	cleanup(form_done) struct form form = {0};

	if (!form_open(&form, call, false))
		return;
	uint64_t given = form_read(&form, form.root, FIELDS(beat_fields), &body);
	join_names(&form, &body);
	if (form_is_good(&form))
		fill_beat(call, COMMAND_BEAT, &body, given);
}

static void put_standing(struct json_object *object, const struct api_call *call, const struct result *result)
{
	json_member_string(object, "workerId", call->commands[0].worker);
	json_member_cstr(object, "state", worker_state_name(result->worker.state));
	json_member_decimal(object, "token", result->worker.token);
	json_member_int(object, "leaseMs", result->worker.lease.granted_ms);
}

/* The instance's own token: good for this worker alone, as long as it lives. */
static void put_credential(struct json_object *object, struct api_call *call, const struct worker *worker)
{
	const struct api_reads *reads = call->reads;
	struct span text;

	if (!reads->mint_instance || call->who.number == PRINCIPAL_OPEN)
		return;
	int r = reads->mint_instance(reads->context, call->who.id, call->commands[0].worker,
		worker->credential, call->arena, &text);
	if (r == 0)
		json_member_string(object, "credential", text);
	else if (object->fault == 0)
		object->fault = r;
}

void worker_register_finish(struct api_call *call, const struct result *results)
{
	struct json_object object;

	if (results[0].refusal != REFUSED_NOTHING) {
		call_refuse_result(call, &results[0]);
		return;
	}
	json_begin(&object, call->body);
	put_standing(&object, call, &results[0]);
	put_credential(&object, call, &results[0].worker);
	call->reply.event_seq = results[0].event_seq;
	call_reply(call, 200, json_end(&object));
}

static int put_ids(struct buf *out, const struct span *ids, uint32_t count)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < count; i++) {
		r = i > 0 ? buf_put_byte(out, ',') : 0;
		if (r == 0)
			r = json_put_string(out, ids[i]);
	}
	return r;
}

static int put_commands(struct buf *out, const struct result *result)
{
	bool any = false;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < result->stop_count; i++) {
		r = buf_printf(out, "%s{\"type\":\"cancel\",\"task\":", any ? "," : "");
		if (r == 0)
			r = json_put_string(out, result->stop[i]);
		if (r == 0)
			r = buf_put_byte(out, '}');
		any = true;
	}
	if (r == 0 && result->worker.state == WORKER_QUIET)
		r = buf_printf(out, "%s{\"type\":\"quiet\"}", any ? "," : "");
	if (r == 0 && result->worker.state == WORKER_TERMINATING)
		r = buf_printf(out, "%s{\"type\":\"terminate\"}", any ? "," : "");
	return r;
}

static int put_beat(struct api_call *call, const struct result *result)
{
	struct json_object object;

	json_begin(&object, call->body);
	put_standing(&object, call, result);
	int r = object.fault < 0 ? object.fault : buf_printf(call->body, ",\"lost\":[");
	if (r == 0)
		r = put_ids(call->body, result->lost, result->lost_count);
	if (r == 0)
		r = buf_printf(call->body, "],\"commands\":[");
	if (r == 0)
		r = put_commands(call->body, result);
	return r < 0 ? r : buf_printf(call->body, "]}");
}

void worker_beat_finish(struct api_call *call, const struct result *results)
{
	if (results[0].refusal != REFUSED_NOTHING) {
		call_refuse_result(call, &results[0]);
		return;
	}
	call->reply.event_seq = results[0].event_seq;
	call_reply(call, 200, put_beat(call, &results[0]));
}

/* ---- looking ---------------------------------------------------------------------------------------- */

struct member_listing {
	struct buf *out;
	bool any;
};

static int put_member(void *context, struct span name)
{
	struct member_listing *listing = context;
	int r = listing->any ? buf_put_byte(listing->out, ',') : 0;

	listing->any = true;
	return r < 0 ? r : json_put_string(listing->out, name);
}

static void put_set(const struct api_call *call, struct json_object *object, const char *key, uint32_t set)
{
	const struct api_reads *reads = call->reads;
	cleanup(buf_done) struct buf list = {0};
	struct member_listing listing = {&list, false};

	if (!reads->each_member)
		return;
	buf_init(&list, 64 << 10);
	int r = buf_put_byte(&list, '[');
	if (r == 0 && set != 0)
		r = reads->each_member(reads->context, set, put_member, &listing);
	if (r == 0)
		r = buf_put_byte(&list, ']');
	if (r == 0)
		json_member_raw(object, key, buf_span(&list));
	else if (object->fault == 0)
		object->fault = r;
}

static int64_t lease_left_ms(const struct api_call *call, const struct worker *worker)
{
	struct given given = {.rules = call->rules, .now = call->now};

	return worker_is_alive(worker) ? lease_remaining_ms(&worker->lease, &given) : 0;
}

static int put_worker(
	const struct api_call *call, struct buf *out, struct span id, const struct worker *worker)
{
	struct json_object object;

	json_begin(&object, out);
	json_member_string(&object, "workerId", id);
	json_member_cstr(&object, "state", worker_state_name(worker->state));
	if (worker->ended != WORKER_ENDED_NOT)
		json_member_cstr(&object, "ended", worker_end_name(worker->ended));
	if (worker->slot != 0)
		json_member_string(&object, "slot", name_of(call, worker->slot));
	else
		json_member_null(&object, "slot");
	put_set(call, &object, "capabilities", worker->capabilities);
	if (!worker->any_executor)
		put_set(call, &object, "executors", worker->executors);
	json_member_int(&object, "maxConcurrent", worker->max_concurrent);
	json_member_int(&object, "held", worker->held);
	json_member_int(&object, "leaseMs", lease_left_ms(call, worker));
	json_member_int(&object, "registeredAt", worker->registered_ms);
	json_member_int(&object, "lastHeartbeatAt", worker->last_beat_ms);
	return json_end(&object);
}

struct worker_listing {
	struct api_call *call;
	struct span only; /* empty: all */
	bool any;
};

/* Whoever may not see everything sees its own, as a worker; and a worker is of no certain queue. */
static bool sees_worker(const struct principal *who, struct span id, const struct worker *worker)
{
	if ((who->scopes & (SCOPE_BIT(SCOPE_READ) | SCOPE_BIT(SCOPE_ADMIN))) != 0)
		return who->queues.count == 0;
	return worker->principal == who->number && (who->worker.len == 0 || span_equal(who->worker, id));
}

/* Claimants that never registered are no workers of the list. */
static int list_worker(void *context, struct span id, const struct worker *worker)
{
	struct worker_listing *listing = context;
	struct api_call *call = listing->call;

	if (!sees_worker(&call->who, id, worker))
		return 0;
	if (listing->only.len > 0 ? !span_equal(id, listing->only) : worker->state == WORKER_UNKNOWN)
		return 0;
	int r = listing->any ? buf_put_byte(call->body, ',') : 0;
	listing->any = true;
	return r < 0 ? r : put_worker(call, call->body, id, worker);
}

void worker_list_read(struct api_call *call)
{
	const struct api_reads *reads = call->reads;
	struct worker_listing listing = {.call = call};

	if (!query_read(call, NULL, 0))
		return;
	int r = buf_put_byte(call->body, '[');
	if (r == 0)
		r = reads->each_worker(reads->context, list_worker, &listing);
	if (r == 0)
		r = buf_put_byte(call->body, ']');
	call_reply(call, 200, r);
}

void worker_read(struct api_call *call)
{
	const struct api_reads *reads = call->reads;
	struct worker_listing listing = {.call = call, .only = call->params[0]};

	int r = reads->each_worker(reads->context, list_worker, &listing);
	if (r == 0 && !listing.any)
		api_refuse(call, REFUSED_NOT_FOUND, NULL);
	else
		call_reply(call, 200, r);
}

/* ---- sending away ----------------------------------------------------------------------------------- */

static bool worker_begin(struct api_call *call, enum command_kind kind)
{
	uint64_t given;

	if (!form_read_body(call, NULL, 0, NULL, &given))
		return false;
	if (!text_is_name(call->params[0], COMMAND_ID_MAX)) {
		api_refuse(call, REFUSED_NOT_FOUND, NULL);
		return false;
	}
	if (!call_commands(call, 1))
		return false;
	call->commands[0].kind = kind;
	call->commands[0].worker = call->params[0];
	return true;
}

void worker_quiet_begin(struct api_call *call)
{
	worker_begin(call, COMMAND_QUIET);
}

void worker_terminate_begin(struct api_call *call)
{
	worker_begin(call, COMMAND_TERMINATE);
}

/* A goodbye, unless an operator says ?how=terminated. */
void worker_leave_begin(struct api_call *call)
{
	struct query_value how = {.name = "how"};

	if (!query_read(call, &how, 1))
		return;
	bool terminated = span_equal(how.value, SPAN("terminated"));
	if (how.value.data && !terminated && !span_equal(how.value, SPAN("shutdown"))) {
		call_refuse_field(call, "how", "must be \"shutdown\" or \"terminated\"");
		return;
	}
	if (terminated && !(call->who.scopes & (SCOPE_BIT(SCOPE_OPERATE) | SCOPE_BIT(SCOPE_ADMIN)))) {
		api_refuse(call, REFUSED_FORBIDDEN, "Only an operator terminates a worker.");
		return;
	}
	if (worker_begin(call, COMMAND_LEAVE))
		call->commands[0].leave = terminated ? WORKER_TERMINATED : WORKER_SHUTDOWN;
}

void worker_finish(struct api_call *call, const struct result *results)
{
	if (results[0].refusal != REFUSED_NOTHING) {
		call_refuse_result(call, &results[0]);
		return;
	}
	call->reply.event_seq = results[0].event_seq;
	call_reply(call, 200, put_worker(call, call->body, call->commands[0].worker, &results[0].worker));
}

/* ---- slots ------------------------------------------------------------------------------------------ */

static void slot_begin(struct api_call *call, enum command_kind kind)
{
	uint64_t given;

	if (!form_read_body(call, NULL, 0, NULL, &given))
		return;
	if (!text_is_name(call->params[0], COMMAND_NAME_MAX)) {
		call_refuse_field(call, "slot", "must be 1 to 255 bytes without control characters");
		return;
	}
	if (!call_commands(call, 1))
		return;
	call->commands[0].kind = kind;
	call->commands[0].slot = call->params[0];
}

void slot_crash_begin(struct api_call *call)
{
	slot_begin(call, COMMAND_SLOT_CRASH);
}

void slot_unquarantine_begin(struct api_call *call)
{
	slot_begin(call, COMMAND_UNQUARANTINE);
}

void slot_finish(struct api_call *call, const struct result *results)
{
	struct json_object object;

	if (results[0].refusal != REFUSED_NOTHING) {
		call_refuse_result(call, &results[0]);
		return;
	}
	json_begin(&object, call->body);
	json_member_string(&object, "slot", call->params[0]);
	call->reply.event_seq = results[0].event_seq;
	call_reply(call, 200, json_end(&object));
}
