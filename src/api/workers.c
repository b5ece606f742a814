/*
 * Workers: registration and heartbeats, also with the names of the liveness protocol (workerInstanceKey,
 * leaseDuration, boundActivities, unboundActivities); looking at them; sending them away. And slots.
 */
#include "api/form.h"

#include <ctype.h>
#include <errno.h>

#include "api/beat_token.h"
#include "base/take.h"

enum {
	SLICE_WORKERS = 100,
};

#define LEASE_ASKED_MAX (INT64_C(365) * 24 * 3600 * 1000) /* the rules clamp it further */

/* ---- registration and heartbeats -------------------------------------------------------------------- */

struct beat_body {
	struct span worker, worker_key, slot, metadata;
	struct name_list capabilities, executors;
	struct name_list bound, bound_activities, unbound, unbound_activities;
	uint64_t token;
	int64_t lease_ms, max_concurrent;
	yyjson_val *lease_duration;
	struct span host, boot, version;
	int64_t pid, start;
	yyjson_val *replaces;
};

/* The rows that say who it is come first: a beat that has one of them describes the worker anew. */
enum beat_row {
	ROW_EXECUTORS,
	ROW_SLOT,
	ROW_CAPABILITIES,
	ROW_MAX,
	ROW_METADATA,
	ROW_HOST,
	ROW_BOOT,
	ROW_PID,
	ROW_START,
	ROW_VERSION,
	ROW_REPLACES,
	DESCRIBING,
	ROW_TOKEN = DESCRIBING
};

#define DESCRIPTION                                                                                 \
	[ROW_EXECUTORS] = FIELD(beat_body, executors, "executors", FIELD_NAMES, .max = 0),          \
	[ROW_SLOT] = FIELD(beat_body, slot, "slot", FIELD_NAME, .max = 0),                          \
	[ROW_CAPABILITIES] = FIELD(beat_body, capabilities, "capabilities", FIELD_NAMES, .max = 0), \
	[ROW_MAX] = FIELD(beat_body, max_concurrent, "maxConcurrent", FIELD_INT, .max = 100000),    \
	[ROW_METADATA] = FIELD(beat_body, metadata, "metadata", FIELD_OBJECT, .max = 0),            \
	[ROW_HOST] = FIELD(beat_body, host, "host", FIELD_NAME, .max = 0),                          \
	[ROW_BOOT] = FIELD(beat_body, boot, "bootId", FIELD_TEXT, .max = 64),                       \
	[ROW_PID] = FIELD(beat_body, pid, "pid", FIELD_INT, .min = 1, .max = INT32_MAX),            \
	[ROW_START] = FIELD(beat_body, start, "startTime", FIELD_INT, .min = 1, .max = INT64_MAX),  \
	[ROW_VERSION] = FIELD(beat_body, version, "version", FIELD_NAME, .max = 0),                 \
	[ROW_REPLACES] = FIELD(beat_body, replaces, "replaces", FIELD_NODE, .max = 0)

static const struct field register_fields[] = {
	DESCRIPTION,
	FIELD_MUST_BE(beat_body, worker, "workerId", FIELD_NAME, .max = COMMAND_ID_MAX),
	FIELD(beat_body, lease_ms, "leaseMs", FIELD_INT, .max = LEASE_ASKED_MAX),
};

static const struct field beat_fields[] = {
	DESCRIPTION,
	[ROW_TOKEN] = FIELD(beat_body, token, "token", FIELD_TOKEN, .max = 0),
	FIELD(beat_body, worker, "workerId", FIELD_NAME, .max = COMMAND_ID_MAX),
	FIELD(beat_body, worker_key, "workerInstanceKey", FIELD_NAME, .max = COMMAND_ID_MAX),
	FIELD(beat_body, lease_ms, "leaseMs", FIELD_INT, .max = LEASE_ASKED_MAX),
	FIELD(beat_body, lease_duration, "leaseDuration", FIELD_NODE, .max = 0),
	FIELD(beat_body, bound, "boundTasks", FIELD_NAMES, .max = COMMAND_ID_MAX),
	FIELD(beat_body, bound_activities, "boundActivities", FIELD_NAMES, .max = COMMAND_ID_MAX),
	FIELD(beat_body, unbound, "unboundTasks", FIELD_NAMES, .max = COMMAND_ID_MAX),
	FIELD(beat_body, unbound_activities, "unboundActivities", FIELD_NAMES, .max = COMMAND_ID_MAX),
};

/* Seconds as protobuf writes them in JSON: "60s", "1.5s"; up to seven digits and nine behind the point. -1: it is none. */
static int64_t seconds_read(struct span text)
{
	int64_t ms = 0, part_ms = 1000;
	size_t i = 0, point;

	for (; i < text.len && i < 7 && isdigit((unsigned char)text.data[i]); i++)
		ms = ms * 10 + (text.data[i] - '0') * INT64_C(1000);
	point = i;
	if (i > 0 && i < text.len && text.data[i] == '.')
		i++;
	for (; i > point && i < text.len && i <= point + 9 && isdigit((unsigned char)text.data[i]); i++)
		ms += (text.data[i] - '0') * (part_ms /= 10);
	return point > 0 && i + 1 == text.len && text.data[i] == 's' ? ms : -1;
}

/* leaseDuration: milliseconds as leaseMs has them, or a text with seconds. */
static void read_lease_duration(struct form *form, struct beat_body *body)
{
	yyjson_val *value = body->lease_duration;
	int64_t asked_ms = -1;

	if (!value)
		return;
	if (yyjson_is_str(value))
		asked_ms = seconds_read(json_text(value));
	else if (node_int(value, &asked_ms) < 0)
		asked_ms = -1;
	if (asked_ms < 0 || asked_ms > LEASE_ASKED_MAX)
		form_error(form, "leaseDuration",
			"must be a whole number of milliseconds, or seconds as in \"60s\", up to 365 days");
	else if (body->lease_ms > 0 && (asked_ms > 0 || yyjson_is_str(value)))
		form_error(form, "leaseDuration", "is another name of leaseMs: send one of them");
	else if (body->lease_ms == 0)
		body->lease_ms = asked_ms;
}

/* The other names mean the same; both at once is a mistake. */
static void join_names(struct form *form, struct beat_body *body)
{
	if (body->worker.len > 0 && body->worker_key.len > 0)
		form_error(form, "workerInstanceKey", "is another name of workerId: send one of them");
	if (body->worker.len == 0)
		body->worker = body->worker_key;
	if (body->worker.len == 0 && form->error_count == 0)
		form_error(form, "workerId", "is required");
	read_lease_duration(form, body);
	if (body->bound.count > 0 && body->bound_activities.count > 0)
		form_error(form, "boundActivities", "is another name of boundTasks: send one of them");
	if (body->bound.count == 0)
		body->bound = body->bound_activities;
	if (body->unbound.count > 0 && body->unbound_activities.count > 0)
		form_error(form, "unboundActivities", "is another name of unboundTasks: send one of them");
	if (body->unbound.count == 0)
		body->unbound = body->unbound_activities;
}

/* ---- which process it is, and which one it says is dead ---- */

/* A boot id: 32 hexadecimal digits, with or without dashes. */
static void read_boot(struct form *form, struct span text, struct command_process *process)
{
	uint64_t halves[2] = {0, 0};
	uint32_t digits = 0;
	bool good = true;

	if (text.len == 0)
		return;
	for (size_t i = 0; good && i < text.len; i++) {
		char byte = text.data[i];
		if (byte == '-')
			continue;
		good = isxdigit((unsigned char)byte) && digits < 32;
		if (!good)
			break;
		int digit = byte <= '9' ? byte - '0' : (byte | ' ') - 'a' + 10;
		halves[digits / 16] = halves[digits / 16] << 4 | (uint64_t)digit;
		digits++;
	}
	if (!good || digits != 32)
		form_error(form, "bootId",
			"must be 32 hexadecimal digits, as in /proc/sys/kernel/random/boot_id");
	process->boot_hi = halves[0];
	process->boot_lo = halves[1];
}

struct replaces_body {
	struct span worker;
	int64_t pid, start;
};

static const struct field replaces_fields[] = {
	FIELD_MUST_BE(replaces_body, worker, "workerId", FIELD_NAME, .max = COMMAND_ID_MAX),
	FIELD_MUST_BE(replaces_body, pid, "pid", FIELD_INT, .min = 1, .max = INT32_MAX),
	FIELD_MUST_BE(replaces_body, start, "startTime", FIELD_INT, .min = 1, .max = INT64_MAX),
};

/* The server looks for itself where it can: on its own machine. */
static void read_replaces(struct form *form, const struct beat_body *body, struct command_beat *beat)
{
	const struct api_reads *reads = form->call->reads;
	struct replaces_body replaces = {0};

	if (!body->replaces)
		return;
	strcpy(form->prefix, "replaces.");
	if (!yyjson_is_obj(body->replaces))
		form_error(form, "", "must be an object");
	else
		form_read(form, body->replaces, FIELDS(replaces_fields), &replaces);
	form->prefix[0] = 0;
	if (body->slot.len == 0)
		form_error(form, "replaces", "is about a slot: say which one with \"slot\"");
	if (body->host.len == 0 || body->boot.len == 0)
		form_error(
			form, "replaces", "is believed from the same machine only: send host and bootId too");
	beat->replaces = (struct command_replaces){
		.worker = replaces.worker,
		.pid = (uint32_t)replaces.pid,
		.start = (uint64_t)replaces.start,
	};
	if (reads->process_is_alive)
		beat->replaces.seen_alive = reads->process_is_alive(reads->context, beat->process.boot_hi,
			beat->process.boot_lo, beat->replaces.pid, beat->replaces.start);
}

static void read_process(struct form *form, const struct beat_body *body, struct command_beat *beat)
{
	beat->process = (struct command_process){
		.host = body->host,
		.pid = (uint32_t)body->pid,
		.start = (uint64_t)body->start,
	};
	read_boot(form, body->boot, &beat->process);
	read_replaces(form, body, beat);
}

static void fill_beat(struct api_call *call, enum command_kind kind, const struct beat_body *body,
	const struct command_beat *said, uint64_t given)
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
		.process = said->process,
		.version = body->version,
		.replaces = said->replaces,
	};
}

void worker_register_begin(struct api_call *call)
{
	struct beat_body body = {0};
	struct command_beat said = {0};
	cleanup(form_done) struct form form = {0};

	if (!form_open(&form, call, false))
		return;
	uint64_t given = form_read(&form, form.root, FIELDS(register_fields), &body);
	read_process(&form, &body, &said);
	if (form_is_good(&form))
		fill_beat(call, COMMAND_REGISTER, &body, &said, given);
}

void worker_beat_begin(struct api_call *call)
{
	struct beat_body body = {0};
	struct command_beat said = {0};
	cleanup(form_done) struct form form = {0};

	if (!form_open(&form, call, false))
		return;
	uint64_t given = form_read(&form, form.root, FIELDS(beat_fields), &body);
	join_names(&form, &body);
	if ((given & ((1u << DESCRIBING) - 1)) != 0)
		read_process(&form, &body, &said);
	if (form_is_good(&form))
		fill_beat(call, COMMAND_BEAT, &body, &said, given);
}

static void put_standing(struct json_object *object, const struct api_call *call, const struct result *result)
{
	char token[BEAT_TOKEN_CHARS];

	json_member_string(object, "workerId", call->commands[0].worker);
	json_member_cstr(object, "state", worker_state_name(result->worker.state));
	beat_token_write(result->worker.token, token);
	json_member_string(object, "token", (struct span){token, sizeof token});
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
	else
		json_note(object, r);
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

static int put_orders(struct buf *out, const char *type, const struct span *tasks, uint32_t count, bool *any)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < count; i++) {
		r = buf_printf(out, "%s{\"type\":\"%s\",\"task\":", *any ? "," : "", type);
		if (r == 0)
			r = json_put_string(out, tasks[i]);
		if (r == 0)
			r = buf_put_byte(out, '}');
		*any = true;
	}
	return r;
}

static int put_commands(struct buf *out, const struct result *result)
{
	bool any = false;
	int r = put_orders(out, "cancel", result->stop, result->stop_count, &any);

	if (r == 0)
		r = put_orders(out, "park", result->park, result->park_count, &any);
	if (r == 0)
		r = put_orders(out, "reported", result->reported, result->reported_count, &any);
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
	int r = object.fault < 0 ? object.fault : buf_put_span(call->body, SPAN(",\"lost\":"));
	if (r == 0)
		r = json_put_strings(call->body, result->lost, result->lost_count);
	if (r == 0)
		r = buf_put_span(call->body, SPAN(",\"commands\":["));
	if (r == 0)
		r = put_commands(call->body, result);
	return r < 0 ? r : buf_put_span(call->body, SPAN("]}"));
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

static int64_t lease_left_ms(const struct api_call *call, const struct worker *worker)
{
	struct given given = {.rules = call->rules, .now = call->now};

	return worker_is_alive(worker) ? lease_remaining_ms(&worker->lease, &given) : 0;
}

static void put_boot(struct json_object *object, const struct process *process)
{
	uint64_t hi = process->boot_hi, lo = process->boot_lo;
	char text[37];

	if ((hi | lo) == 0)
		return;
	snprintf(text, sizeof text, "%08x-%04x-%04x-%04x-%012llx", (uint32_t)(hi >> 32),
		(uint32_t)(hi >> 16) & 0xffff, (uint32_t)hi & 0xffff, (uint32_t)(lo >> 48),
		(unsigned long long)(lo & 0xffffffffffff));
	json_member_cstr(object, "bootId", text);
}

/* What it said of its process, as far as it did. */
static void put_process(
	const struct api_call *call, struct json_object *object, const struct process *process)
{
	if (process->host != 0)
		json_member_string(object, "host", name_of(call, process->host));
	put_boot(object, process);
	if (process->pid != 0)
		json_member_int(object, "pid", process->pid);
	if (process->start != 0)
		json_member_int(object, "startTime", (int64_t)process->start);
}

/* How long ago it was heard, by the clock that its lease runs on; by people's if that was before this start. */
static void put_age(struct json_object *object, const struct api_call *call, const struct worker *worker)
{
	int64_t age_ms = call->now.wall_ms - worker->last_beat_ms;

	if (worker->heard_ms != INT64_MIN)
		age_ms = call->now.lease_ms - worker->heard_ms;
	if (worker->last_beat_ms != 0)
		json_member_int(object, "heartbeatAgeMs", age_ms > 0 ? age_ms : 0);
	else
		json_member_null(object, "heartbeatAgeMs");
}

/* The ids of what it holds: for one worker alone, since there may be thousands. */
static void put_tasks(const struct api_call *call, struct json_object *object, struct span id)
{
	const struct api_reads *reads = call->reads;
	struct name_listing listing = {object->buf, false};

	if (!json_put_key(object, "tasks"))
		return;
	int r = buf_put_byte(object->buf, '[');
	if (r == 0)
		r = reads->each_held(reads->context, id, name_listing_put, &listing);
	json_note(object, r < 0 ? r : buf_put_byte(object->buf, ']'));
}

/* Everything that is known of it. `alone`: with the ids of what it holds. */
static int put_worker(
	const struct api_call *call, struct buf *out, struct span id, const struct worker *worker, bool alone)
{
	const struct api_reads *reads = call->reads;
	struct worker_document more = {0};
	struct json_object object;

	if (reads->read_worker && reads->read_worker(reads->context, id, &more) < 0)
		more = (struct worker_document){0};
	json_begin(&object, out);
	json_member_string(&object, "workerId", id);
	json_member_cstr(&object, "state", worker_state_name(worker->state));
	if (worker->ended != WORKER_ENDED_NOT)
		json_member_cstr(&object, "ended", worker_end_name(worker->ended));
	if (more.ended_ms != 0)
		json_member_int(&object, "endedAt", more.ended_ms);
	json_member_string_or_null(&object, "slot", name_of(call, worker->slot));
	json_member_set(call, &object, "capabilities", worker->capabilities);
	if (!worker->any_executor)
		json_member_set(call, &object, "executors", worker->executors);
	json_member_int(&object, "maxConcurrent", worker->max_concurrent);
	json_member_int(&object, "held", worker->held);
	json_member_int(&object, "leaseMs", lease_left_ms(call, worker));
	json_member_int(&object, "leaseGrantedMs", worker->lease.granted_ms);
	json_member_int(&object, "registeredAt", worker->registered_ms);
	json_member_int_or_null(&object, "lastBeatAt", worker->last_beat_ms);
	put_age(&object, call, worker);
	json_member_int(&object, "instance", more.instance);
	json_member_int(&object, "restarts", more.restarts);
	put_process(call, &object, &worker->process);
	if (worker->version != 0)
		json_member_string(&object, "version", name_of(call, worker->version));
	if (more.metadata.len > 0)
		json_member_raw(&object, "metadata", more.metadata);
	if (alone && reads->each_held)
		put_tasks(call, &object, id);
	return json_end(&object);
}

enum {
	WORKERS_MAX = 10000, /* of one reply */
};

struct worker_listing {
	struct api_call *call;
	struct span state; /* empty: all */
	bool alive;        /* this time those that live, or the others */
	uint32_t count, limit;
	uint32_t at;
};

bool worker_is_visible(const struct principal *who, struct span id, const struct worker *worker)
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

	if (worker->state == WORKER_UNKNOWN || worker_is_alive(worker) != listing->alive)
		return 0;
	if (!worker_is_visible(&call->who, id, worker))
		return 0;
	if (listing->state.data && !span_equal(listing->state, span_of(worker_state_name(worker->state))))
		return 0;
	if (listing->count == listing->limit)
		return 1;
	int r = listing->count++ > 0 ? buf_put_byte(call->body, ',') : 0;
	return r < 0 ? r : put_worker(call, call->body, id, worker, false);
}

static bool is_worker_state(struct span name)
{
	for (int state = WORKER_ACTIVE; state <= WORKER_INACTIVE; state++) {
		if (span_equal(name, span_of(worker_state_name((enum worker_state)state))))
			return true;
	}
	return false;
}

/* NULL: it was refused. */
static struct worker_listing *worker_listing_new(struct api_call *call)
{
	struct query_value values[] = {{.name = "state"}, {.name = "limit"}};
	struct worker_listing *listing;
	int64_t limit;

	if (!query_read(call, values, 2))
		return NULL;
	if (values[0].value.data && !is_worker_state(values[0].value)) {
		call_refuse_field(
			call, "state", "must be \"active\", \"quiet\", \"terminating\" or \"inactive\"");
		return NULL;
	}
	if (query_int(&values[1], 1, WORKERS_MAX, WORKERS_MAX, &limit) < 0) {
		call_refuse_field(call, "limit", "must be a number from 1 to 10000");
		return NULL;
	}
	listing = arena_alloc(call->arena, sizeof *listing);
	if (!listing || buf_put_byte(call->body, '[') < 0) {
		call_refuse_fault(call, -ENOMEM);
		return NULL;
	}
	*listing = (struct worker_listing){
		.call = call, .state = values[0].value, .alive = true, .limit = (uint32_t)limit};
	call->detail = listing;
	call_reply_begin(call);
	return listing;
}

/* In slices. Those that live come first: there may be many more that once did. */
void worker_list_read(struct api_call *call)
{
	const struct api_reads *reads = call->reads;
	struct worker_listing *listing = call->detail ? call->detail : worker_listing_new(call);

	if (!listing)
		return;
	int r = reads->page_workers(reads->context, &listing->at, SLICE_WORKERS, list_worker, listing);
	if (r == 0 && (listing->at != 0 || listing->alive)) {
		listing->alive &= listing->at != 0;
		call_again(call);
		return;
	}
	call_reply(call, 200, r < 0 ? r : buf_put_byte(call->body, ']'));
}

/* Also a claimant that never registered, as long as it holds something. */
void worker_read(struct api_call *call)
{
	const struct api_reads *reads = call->reads;
	struct worker_document found;

	if (!query_read(call, NULL, 0))
		return;
	int r = reads->read_worker(reads->context, call->params[0], &found);
	if (r == 0 && !worker_is_visible(&call->who, found.id, &found.worker))
		r = -ENOENT;
	if (r < 0)
		call_refuse_fault(call, r);
	else
		call_reply(call, 200, put_worker(call, call->body, found.id, &found.worker, true));
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
	call_reply(
		call, 200, put_worker(call, call->body, call->commands[0].worker, &results[0].worker, false));
}

/* ---- slots ------------------------------------------------------------------------------------------ */

/* In words: what fills it, or why nothing may. */
static const char *slot_standing(const struct slot_document *slot, const struct given *given)
{
	enum slot_state state = slot_state_now(&slot->slot, given);

	if (state != SLOT_FREE_TO_RUN)
		return slot_state_name(state);
	return slot->filler ? "filled" : "empty";
}

/* A moment of the lease clock as people's time; exact as long as nobody sets the clock. */
static int64_t wall_of(const struct given *given, int64_t lease_ms)
{
	return given->now.wall_ms - (given->now.lease_ms - lease_ms);
}

static uint32_t crashes_in_window(const struct slot *slot, const struct given *given)
{
	uint32_t count = 0;

	while (count < SLOT_CRASHES_KEPT && slot->crashed_ms[count] != INT64_MIN &&
		given->now.lease_ms - slot->crashed_ms[count] <= given->rules->quarantine_window_ms)
		count++;
	return count;
}

struct slot_listing {
	struct api_call *call;
	bool any;
};

static void put_slot_times(
	struct json_object *object, const struct slot_document *slot, const struct given *given)
{
	enum slot_state state = slot_state_now(&slot->slot, given);
	int64_t since_ms = state != SLOT_FREE_TO_RUN ? wall_of(given, slot->slot.since_ms) : 0;

	if (state == SLOT_FREE_TO_RUN && slot->filler)
		since_ms = slot->filler->registered_ms;
	json_member_int_or_null(object, "since", since_ms);
	if (state == SLOT_QUARANTINED)
		json_member_int_or_null(object, "trialAt",
			given->rules->quarantine_trial_ms > 0 ? since_ms + given->rules->quarantine_trial_ms
							      : 0);
}

static int put_slot(struct api_call *call, const struct slot_document *slot)
{
	struct given given = {.rules = call->rules, .now = call->now};
	struct json_object object;

	json_begin(&object, call->body);
	json_member_string(&object, "name", slot->name);
	json_member_cstr(&object, "state", slot_standing(slot, &given));
	json_member_string_or_null(&object, "workerId", slot->worker);
	put_slot_times(&object, slot, &given);
	json_member_int(&object, "crashes", crashes_in_window(&slot->slot, &given));
	json_member_int(&object, "restarts", slot->slot.restarts);
	return json_end(&object);
}

static int list_slot(void *context, const struct slot_document *slot)
{
	struct slot_listing *listing = context;

	int r = json_put_comma(listing->call->body, &listing->any);
	return r < 0 ? r : put_slot(listing->call, slot);
}

/* Like workers they are of no certain queue. */
void slot_list_read(struct api_call *call)
{
	const struct api_reads *reads = call->reads;
	struct slot_listing listing = {.call = call};

	if (!query_read(call, NULL, 0))
		return;
	int r = buf_put_byte(call->body, '[');
	if (r == 0 && call->who.queues.count == 0)
		r = reads->each_slot(reads->context, list_slot, &listing);
	if (r == 0)
		r = buf_put_byte(call->body, ']');
	call_reply(call, 200, r);
}

struct enter_body {
	struct span worker;
};

static const struct field enter_fields[] = {
	FIELD_MUST_BE(enter_body, worker, "workerId", FIELD_NAME, .max = COMMAND_ID_MAX),
};

static void slot_begin(struct api_call *call, enum command_kind kind)
{
	bool enters = kind == COMMAND_SLOT_ENTER;
	struct enter_body body = {0};
	uint64_t given;

	if (!form_read_body(call, enters ? enter_fields : NULL, enters ? 1 : 0, &body, &given))
		return;
	if (!text_is_name(call->params[0], COMMAND_NAME_MAX)) {
		call_refuse_field(call, "slot", "must be 1 to 255 bytes without control characters");
		return;
	}
	if (!call_commands(call, 1))
		return;
	call->commands[0].kind = kind;
	call->commands[0].slot = call->params[0];
	call->commands[0].worker = body.worker;
}

void slot_enter_begin(struct api_call *call)
{
	slot_begin(call, COMMAND_SLOT_ENTER);
}

void slot_crash_begin(struct api_call *call)
{
	if (!call_key_is_good(call))
		return;
	slot_begin(call, COMMAND_SLOT_CRASH);
	if (call->command_count == 0 || !call->request->idempotency_key.data)
		return;
	call->commands[0].crash_key = call->request->idempotency_key;
	digest_request(call->request, call->commands[0].crash_fingerprint);
}

void slot_unquarantine_begin(struct api_call *call)
{
	slot_begin(call, COMMAND_UNQUARANTINE);
}

/* As it is now: whoever tells of a crash learns whether it may start another one. */
void slot_finish(struct api_call *call, const struct result *results)
{
	const struct api_reads *reads = call->reads;
	struct slot_document slot = {.name = call->params[0]};

	if (results[0].refusal != REFUSED_NOTHING) {
		call_refuse_result(call, &results[0]);
		return;
	}
	int r = reads->read_slot(reads->context, call->params[0], &slot);
	if (r == -ENOENT) { /* nothing ever happened there */
		slot_init(&slot.slot);
		r = 0;
	}
	if (r == 0)
		r = put_slot(call, &slot);
	call->reply.event_seq = results[0].event_seq;
	call_reply(call, 200, r);
}
