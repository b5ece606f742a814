/*
 * Workers come and stay: registration and heartbeats, also with the names of the liveness protocol (workerInstanceKey,
 * leaseDuration, boundActivities, unboundActivities) in its three spellings.
 */
#include "api/flow/accounts.h"
#include "api/form.h"

#include <ctype.h>

#include "api/worker/beat_token.h"
#include "base/take.h"
#include "base/uuid.h"

/* Our name first, then those of the liveness protocol. */
enum {
	SPELLINGS = 4,
};

static const char *const worker_names[SPELLINGS] = {
	"workerId", "workerInstanceKey", "worker_instance_key", "WorkerInstanceKey"};
static const char *const lease_names[SPELLINGS] = {
	"leaseMs", "leaseDuration", "lease_duration", "LeaseDuration"};
static const char *const bound_names[SPELLINGS] = {
	"boundTasks", "boundActivities", "bound_activities", "BoundActivities"};
static const char *const unbound_names[SPELLINGS] = {
	"unboundTasks", "unboundActivities", "unbound_activities", "UnboundActivities"};

struct beat_body {
	struct span worker, slot, metadata;
	struct name_list capabilities, executors;
	struct name_list bound, unbound;
	uint64_t token;
	int64_t lease_ms, max_concurrent;
	/* by spelling */
	struct span workers[SPELLINGS];
	struct name_list bounds[SPELLINGS], unbounds[SPELLINGS];
	yyjson_val *leases[SPELLINGS]; /* of the liveness protocol: not the first */
	struct span host, boot, version;
	int64_t pid, start;
	yyjson_val *replaces, *credentials, *subtasks, *fallback;
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

#define DESCRIPTION                                                                                        \
	[ROW_EXECUTORS] = FIELD(beat_body, executors, "executors", FIELD_NAMES, .max = 0),                 \
	[ROW_SLOT] = FIELD(beat_body, slot, "slot", FIELD_NAME, .max = 0),                                 \
	[ROW_CAPABILITIES] = FIELD(beat_body, capabilities, "capabilities", FIELD_NAMES, .max = 0),        \
	[ROW_MAX] = FIELD(beat_body, max_concurrent, "maxConcurrent", FIELD_INT, .max = 100000),           \
	[ROW_METADATA] = FIELD(beat_body, metadata, "metadata", FIELD_OBJECT, .max = WORKER_METADATA_MAX), \
	[ROW_HOST] = FIELD(beat_body, host, "host", FIELD_NAME, .max = 0),                                 \
	[ROW_BOOT] = FIELD(beat_body, boot, "bootId", FIELD_TEXT, .max = 64),                              \
	[ROW_PID] = FIELD(beat_body, pid, "pid", FIELD_INT, .min = 1, .max = INT32_MAX),                   \
	[ROW_START] = FIELD(beat_body, start, "startTime", FIELD_INT, .min = 1, .max = INT64_MAX),         \
	[ROW_VERSION] = FIELD(beat_body, version, "version", FIELD_NAME, .max = 0),                        \
	[ROW_REPLACES] = FIELD(beat_body, replaces, "replaces", FIELD_NODE, .max = 0)

static const struct field register_fields[] = {
	DESCRIPTION,
	FIELD_MUST_BE(beat_body, worker, "workerId", FIELD_NAME, .max = COMMAND_ID_MAX),
	FIELD(beat_body, lease_ms, "leaseMs", FIELD_INT, .max = INT64_MAX), /* the rules clamp it */
	FIELD(beat_body, credentials, "credentials", FIELD_NODE, .max = 0),
	FIELD(beat_body, subtasks, "subtasks", FIELD_NODE, .max = 0),
	FIELD(beat_body, fallback, "fallback", FIELD_NODE, .max = 0),
};

#define NAMES_OF(member, name) FIELD(beat_body, member, name, FIELD_NAMES, .max = COMMAND_ID_MAX)

static const struct field beat_fields[] = {
	DESCRIPTION,
	[ROW_TOKEN] = FIELD(beat_body, token, "token", FIELD_BY, .by = form_take_token,
		.allowed = "the string that was given out"),
	FIELD(beat_body, workers[0], "workerId", FIELD_NAME, .max = COMMAND_ID_MAX),
	FIELD(beat_body, workers[1], "workerInstanceKey", FIELD_NAME, .max = COMMAND_ID_MAX),
	FIELD(beat_body, workers[2], "worker_instance_key", FIELD_NAME, .max = COMMAND_ID_MAX),
	FIELD(beat_body, workers[3], "WorkerInstanceKey", FIELD_NAME, .max = COMMAND_ID_MAX),
	FIELD(beat_body, lease_ms, "leaseMs", FIELD_INT, .max = INT64_MAX),
	FIELD(beat_body, leases[1], "leaseDuration", FIELD_NODE, .max = 0),
	FIELD(beat_body, leases[2], "lease_duration", FIELD_NODE, .max = 0),
	FIELD(beat_body, leases[3], "LeaseDuration", FIELD_NODE, .max = 0),
	NAMES_OF(bounds[0], "boundTasks"),
	NAMES_OF(bounds[1], "boundActivities"),
	NAMES_OF(bounds[2], "bound_activities"),
	NAMES_OF(bounds[3], "BoundActivities"),
	NAMES_OF(unbounds[0], "unboundTasks"),
	NAMES_OF(unbounds[1], "unboundActivities"),
	NAMES_OF(unbounds[2], "unbound_activities"),
	NAMES_OF(unbounds[3], "UnboundActivities"),
	FIELD(beat_body, credentials, "credentials", FIELD_NODE, .max = 0),
	FIELD(beat_body, subtasks, "subtasks", FIELD_NODE, .max = 0),
	FIELD(beat_body, fallback, "fallback", FIELD_NODE, .max = 0),
};

/* Seconds as protobuf writes them in JSON: "60s", "1.5s"; up to twelve digits and nine behind the point. -1: the text is not that. */
static int64_t seconds_read(struct span text)
{
	int64_t ms = 0, part_ms = 1000;
	size_t i = 0, point;

	for (; i < text.len && i < 12 && isdigit((unsigned char)text.data[i]); i++)
		ms = ms * 10 + (text.data[i] - '0') * INT64_C(1000);
	point = i;
	if (i > 0 && i < text.len && text.data[i] == '.')
		i++;
	for (; i > point && i < text.len && i <= point + 9 && isdigit((unsigned char)text.data[i]); i++)
		ms += (text.data[i] - '0') * (part_ms /= 10);
	return point > 0 && i + 1 == text.len && text.data[i] == 's' ? ms : -1;
}

/* leaseDuration: milliseconds as leaseMs has them, or a text with seconds. */
static void read_lease_duration(
	struct form *form, const char *name, yyjson_val *value, bool *any, int64_t *ret_ms)
{
	int64_t asked_ms = -1;

	if (!value)
		return;
	if (yyjson_is_str(value))
		asked_ms = seconds_read(json_text(value));
	else if (node_int(value, &asked_ms) < 0)
		asked_ms = -1;
	bool says = asked_ms > 0 || yyjson_is_str(value);
	if (asked_ms < 0)
		form_error(form, name, "must be a whole number of milliseconds, or seconds as in \"60s\"");
	else if (*any && says)
		form_error(form, name, "is another name of leaseMs: send one of them");
	else if (says)
		*ret_ms = asked_ms;
	*any |= says;
}

static void refuse_spelling(struct form *form, const char *const names[SPELLINGS], unsigned at)
{
	form_error(form, names[at], "is another name of %s: send one of them", names[0]);
}

static void join_lists(struct form *form, const char *const names[SPELLINGS],
	const struct name_list lists[SPELLINGS], struct name_list *ret_list)
{
	for (unsigned i = 0; i < SPELLINGS; i++) {
		if (lists[i].count > 0 && ret_list->count > 0)
			refuse_spelling(form, names, i);
		else if (lists[i].count > 0)
			*ret_list = lists[i];
	}
}

/* The other names mean the same; two at once are a mistake. */
static void join_names(struct form *form, struct beat_body *body)
{
	bool any_lease = body->lease_ms > 0;

	for (unsigned i = 0; i < SPELLINGS; i++) {
		if (body->workers[i].len > 0 && body->worker.len > 0)
			refuse_spelling(form, worker_names, i);
		else if (body->workers[i].len > 0)
			body->worker = body->workers[i];
		read_lease_duration(form, lease_names[i], body->leases[i], &any_lease, &body->lease_ms);
	}
	if (body->worker.len == 0 && form->error_count == 0)
		form_error(form, "workerId", "is required");
	join_lists(form, bound_names, body->bounds, &body->bound);
	join_lists(form, unbound_names, body->unbounds, &body->unbound);
}

/* ---- which process it is, and which one it says is dead ---- */

static void read_boot(struct form *form, struct span text, struct command_process *process)
{
	if (text.len > 0 && !uuid_read(text, &process->boot_hi, &process->boot_lo))
		form_error(form, "bootId",
			"must be 32 hexadecimal digits, as in /proc/sys/kernel/random/boot_id");
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
	const struct api_services *host = form_call(form)->host;
	struct replaces_body replaces = {0};

	if (!body->replaces)
		return;
	form_read_inner(form, "replaces", body->replaces, FIELDS(replaces_fields), &replaces);
	if (body->host.len == 0 || body->boot.len == 0)
		form_error(
			form, "replaces", "is believed from the same machine only: send host and bootId too");
	beat->replaces = (struct command_replaces){
		.worker = replaces.worker,
		.pid = (uint32_t)replaces.pid,
		.start = (uint64_t)replaces.start,
	};
	if (host->process_is_alive)
		beat->replaces.seen_alive = host->process_is_alive(host->context, beat->process.boot_hi,
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
	struct command *command = call_command(call, kind);

	if (!command)
		return;
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
		.announced = said->announced,
	};
}

/* Registration, or a heartbeat. */
void worker_beat_begin(struct api_call *call)
{
	enum command_kind kind = (enum command_kind)call->route->variant;
	bool registers = kind == COMMAND_REGISTER;
	struct beat_body body = {0};
	struct command_beat said = {0};
	cleanup(form_done) struct form form = {0};

	if (!form_open(&form, call, false))
		return;
	uint64_t given = registers ? form_read(&form, form.root, FIELDS(register_fields), &body)
				   : form_read(&form, form.root, FIELDS(beat_fields), &body);
	if (!registers)
		join_names(&form, &body);
	if (registers || (given & ((1u << DESCRIBING) - 1)) != 0)
		read_process(&form, &body, &said);
	accounts_read(&form, "credentials", body.credentials, &said.announced.accounts);
	accounts_read(&form, "subtasks", body.subtasks, &said.announced.subtasks);
	accounts_read(&form, "fallback", body.fallback, &said.announced.fallback);
	if (form_is_good(&form))
		fill_beat(call, kind, &body, &said, given);
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
	const struct api_services *host = call->host;
	struct span text;

	if (!host->mint_instance || call->who.number == PRINCIPAL_OPEN)
		return;
	int r = host->mint_instance(host->context, call->who.id, call->commands[0].worker, worker->credential,
		call->arena, &text);
	if (r == 0)
		json_member_string(object, "credential", text);
	else
		json_note(object, r);
}

void worker_register_finish(struct api_call *call, const struct result *results)
{
	struct json_object object;

	json_begin(&object, call->body);
	put_standing(&object, call, &results[0]);
	put_credential(&object, call, &results[0].worker);
	call_reply(call, 200, json_end(&object));
}

void order_put(struct buf *out, const char *type, struct span task, bool *any)
{
	struct json_object order;

	json_put_comma(out, any);
	json_begin(&order, out);
	json_member_cstr(&order, "type", type);
	json_member_string_if_any(&order, "task", task);
	json_end(&order);
}

void orders_put_worker(struct buf *out, const struct worker *worker, bool *any)
{
	if (worker->state == WORKER_QUIET)
		order_put(out, "quiet", (struct span){0}, any);
	if (worker->state == WORKER_TERMINATING)
		order_put(out, "terminate", (struct span){0}, any);
}

static void put_commands(struct buf *out, const struct result *result)
{
	bool any = false;

	for (uint32_t i = 0; i < result->stop_count; i++)
		order_put(out, "cancel", result->stop[i], &any);
	for (uint32_t i = 0; i < result->park_count; i++)
		order_put(out, "park", result->park[i], &any);
	for (uint32_t i = 0; i < result->tell_count; i++)
		order_put(out, "tell", result->tell[i], &any);
	for (uint32_t i = 0; i < result->reported_count; i++)
		order_put(out, "reported", result->reported[i], &any);
	orders_put_worker(out, &result->worker, &any);
}

static int put_beat(struct api_call *call, const struct result *result)
{
	struct json_object object;

	json_begin(&object, call->body);
	put_standing(&object, call, result);
	buf_put_span(call->body, SPAN(",\"lost\":"));
	json_put_strings(call->body, result->lost, result->lost_count);
	buf_put_span(call->body, SPAN(",\"commands\":["));
	put_commands(call->body, result);
	buf_put_span(call->body, SPAN("]}"));
	return buf_fault(call->body);
}

void worker_beat_finish(struct api_call *call, const struct result *results)
{
	call_reply(call, 200, put_beat(call, &results[0]));
}
