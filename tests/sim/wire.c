#include "sim/wire.h"

#include <assert.h>
#include <stdio.h>

#include "base/take.h"
#include "sim/sim.h"
#include "wire/json/json.h"

enum {
	WIRE_BYTES_MAX = 1 << 20,
};

/* ---- what is said --------------------------------------------------------------------------------- */

static void member_names(struct json_object *object, const char *key, struct name_list names)
{
	cleanup(buf_done) struct buf list = {0};
	int r = 0;

	buf_init(&list, WIRE_BYTES_MAX);
	r = buf_put_byte(&list, '[');
	for (uint32_t i = 0; r == 0 && i < names.count; i++) {
		r = i > 0 ? buf_put_byte(&list, ',') : 0;
		if (r == 0)
			r = json_put_string(&list, names.items[i]);
	}
	if (r < 0 || buf_put_byte(&list, ']') < 0)
		sim_abort("no memory");
	json_member_raw(object, key, buf_span(&list));
}

static void member_text(struct json_object *object, const char *key, struct span text)
{
	if (text.len > 0)
		json_member_string(object, key, text);
}

static void member_number(struct json_object *object, const char *key, int64_t number)
{
	if (number != 0)
		json_member_int(object, key, number);
}

static void say_process(struct json_object *object, const struct command_beat *beat)
{
	const struct command_process *process = &beat->process;
	const struct command_replaces *replaces = &beat->replaces;
	char text[128];
	int len = snprintf(text, sizeof text, "%016llx%016llx", (unsigned long long)process->boot_hi,
		(unsigned long long)process->boot_lo);

	json_member_string(object, "host", process->host);
	json_member_string(object, "bootId", (struct span){text, (size_t)len});
	json_member_int(object, "pid", process->pid);
	json_member_int(object, "startTime", (int64_t)process->start);
	if (replaces->worker.len == 0 || beat->slot.len == 0)
		return;
	len = snprintf(text, sizeof text, "{\"workerId\":\"%.*s\",\"pid\":%u,\"startTime\":%llu}",
		SPAN_ARGS(replaces->worker), replaces->pid, (unsigned long long)replaces->start);
	json_member_raw(object, "replaces", (struct span){text, (size_t)len});
}

static void say_description(struct json_object *object, const struct command_beat *beat)
{
	if (!beat->describes)
		return;
	member_text(object, "slot", beat->slot);
	member_names(object, "capabilities", beat->capabilities);
	if (!beat->any_executor)
		member_names(object, "executors", beat->executors);
	member_number(object, "maxConcurrent", beat->max_concurrent);
	json_member_raw(object, "metadata", beat->metadata);
	say_process(object, beat);
}

/* Half of them know the protocol by its older names. */
static void say_beat(struct json_object *object, const struct command *command, const struct actor *actor)
{
	const struct command_beat *beat = &command->beat;
	bool old = command->kind == COMMAND_BEAT && actor->index % 2 == 1;

	json_member_string(object, old ? "workerInstanceKey" : "workerId", command->worker);
	member_number(object, "leaseMs", beat->lease_ms);
	say_description(object, beat);
	if (beat->has_token)
		json_member_string(object, "token", span_of(actor->token_text));
	if (beat->bound.count > 0)
		member_names(object, old ? "boundActivities" : "boundTasks", beat->bound);
	if (beat->unbound.count > 0)
		member_names(object, old ? "unboundActivities" : "unboundTasks", beat->unbound);
}

static void say_claim(struct json_object *object, const struct command *command)
{
	const struct command_claim *claim = &command->claim;
	char text[32];

	json_member_string(object, "workerId", command->worker);
	if (command->kind == COMMAND_CLAIM_NEXT) {
		member_names(object, "queues", claim->queues);
		json_member_int(object, "max", claim->max);
	}
	member_text(object, "slot", claim->slot);
	member_names(object, "capabilities", claim->capabilities);
	if (!claim->any_executor)
		member_names(object, "executors", claim->executors);
	if (claim->takes_pending)
		json_member_raw(object, "includeStatuses",
			claim->takes_ready ? SPAN("[\"ready\",\"pending\"]") : SPAN("[\"pending\"]"));
	json_member_bool(object, "resumeOwned", claim->resumes);
	member_number(object, "leaseMs", claim->lease_ms);
	snprintf(text, sizeof text, "r%llx", (unsigned long long)claim->request);
	if (claim->request != 0)
		json_member_string(object, "requestId", span_of(text));
}

static void say_failure(struct json_object *object, const struct failure *failure)
{
	cleanup(buf_done) struct buf text = {0};
	struct json_object error;

	buf_init(&text, WIRE_BYTES_MAX);
	json_begin(&error, &text);
	json_member_string(&error, "code",
		failure->code == CODE_OTHER ? SPAN("ODD") : span_of(failure_code_name(failure->code)));
	json_member_string(&error, "message", SPAN("by dice"));
	if (failure->code == CODE_OTHER)
		json_member_string(&error, "class", span_of(failure_class_name(failure->klass)));
	member_number(&error, "retryAt", failure->retry_at_ms);
	if (failure->no_retry)
		json_member_bool(&error, "retry", false);
	if (json_end(&error) < 0)
		sim_abort("no memory");
	json_member_raw(object, "error", buf_span(&text));
}

static void say_question(struct json_object *object, const struct command_ask *ask)
{
	json_member_string(object, "question", SPAN("may I?"));
	if (ask->answer_by_ms != 0)
		json_member_int(object, "deadline", ask->answer_by_ms);
}

static void say_report(struct json_object *object, const struct command *command)
{
	bool ends = command->kind == COMMAND_COMPLETE || command->kind == COMMAND_REVIEW;

	json_member_string(object, "workerId", command->worker);
	json_member_decimal(object, "fence", command->fence);
	if (ends && command->data.len > 0)
		json_member_raw(object, "result", command->data);
	if (command->kind == COMMAND_PROGRESS) {
		member_number(object, "leaseMs", command->lease_ms);
		if (command->data.len > 0)
			json_member_raw(object, "data", command->data);
	}
	if (command->kind == COMMAND_FAIL || command->kind == COMMAND_BLOCK)
		say_failure(object, &command->failure);
	if (command->kind == COMMAND_ASK)
		say_question(object, &command->ask);
	if (command->kind == COMMAND_RELEASE)
		member_number(object, "delayMs", command->delay_ms);
}

static const char *verb_of(enum command_kind kind)
{
	switch (kind) {
	case COMMAND_CLAIM:
		return "claim";
	case COMMAND_PROGRESS:
		return "progress";
	case COMMAND_COMPLETE:
		return "complete";
	case COMMAND_FAIL:
		return "fail";
	case COMMAND_REVIEW:
		return "review";
	case COMMAND_BLOCK:
		return "block";
	case COMMAND_ASK:
		return "ask";
	case COMMAND_RELEASE:
		return "release";
	default:
		sim_abort("a worker says no such thing");
	}
}

static void say_path(struct request *request)
{
	const struct command *command = &request->command;

	switch (command->kind) {
	case COMMAND_REGISTER:
		request->path = SPAN("/api/workers/register");
		return;
	case COMMAND_BEAT:
		request->path = SPAN("/api/workers/heartbeat");
		return;
	case COMMAND_LEAVE:
		request->path = request_printf(request, "/api/workers/%.*s", SPAN_ARGS(command->worker));
		return;
	case COMMAND_CLAIM_NEXT:
		request->path = SPAN("/api/claims");
		return;
	default:
		request->path = request_printf(
			request, "/api/tasks/%.*s/%s", SPAN_ARGS(command->task), verb_of(command->kind));
	}
}

void wire_speak(struct request *request, const struct actor *actor)
{
	const struct command *command = &request->command;
	cleanup(buf_done) struct buf text = {0};
	struct json_object object;

	buf_init(&text, WIRE_BYTES_MAX);
	say_path(request);
	if (command->kind == COMMAND_LEAVE)
		return;
	json_begin(&object, &text);
	if (command->kind == COMMAND_REGISTER || command->kind == COMMAND_BEAT)
		say_beat(&object, command, actor);
	else if (command->kind == COMMAND_CLAIM || command->kind == COMMAND_CLAIM_NEXT)
		say_claim(&object, command);
	else
		say_report(&object, command);
	if (json_end(&object) < 0)
		sim_abort("no memory");
	request->body = request_text(request, buf_span(&text));
}

/* ---- in the hands of the API ---------------------------------------------------------------------- */

void wire_call_done(struct wire_call *wire)
{
	if (!wire->used)
		return;
	buf_done(&wire->body);
	arena_done(&wire->arena);
	wire->used = false;
}

static void open_call(struct sim *sim, struct wire_call *wire, const struct request *request)
{
	static const struct api_services nothing;

	if (!wire->used) {
		arena_init(&wire->arena, WIRE_BYTES_MAX);
		buf_init(&wire->body, WIRE_BYTES_MAX);
		wire->used = true;
	}
	arena_reset(&wire->arena);
	buf_clear(&wire->body);
	wire->request = (struct http_request){
		.method = request->command.kind == COMMAND_LEAVE ? HTTP_METHOD_DELETE : HTTP_METHOD_POST,
		.path = request->path,
		.content_type = SPAN("application/json"),
		.body = request->body,
	};
	wire->call = (struct api_call){
		.request = &wire->request,
		.who = {.name = request->command.actor, .scopes = SCOPE_BIT(SCOPE_WORK)},
		.arena = &wire->arena,
		.body = &wire->body,
		.rules = &sim->options.rules,
		.now = clocks_now(&sim->clock),
		.store = sim->server.store,
		.host = &nothing,
	};
}

bool wire_begin(
	struct sim *sim, struct wire_call *wire, const struct request *request, struct command *ret_command)
{
	open_call(sim, wire, request);
	api_begin(&wire->call);
	if (wire->call.step != API_TURN || wire->call.command_count != 1) {
		sim_violate(sim, "W1", request->task, "the API does not take %.*s %.*s: %.*s",
			SPAN_ARGS(request->path), SPAN_ARGS(request->body), SPAN_ARGS(buf_span(&wire->body)));
		return false;
	}
	*ret_command = wire->call.commands[0];
	return true;
}

/* ---- what is heard -------------------------------------------------------------------------------- */

static struct span text_of(yyjson_val *object, const char *key)
{
	yyjson_val *value = yyjson_obj_get(object, key);

	return (struct span){yyjson_get_str(value), yyjson_get_len(value)};
}

static int64_t seq_of(struct sim *sim, struct span id)
{
	const struct model_task *task = model_task_by_id(&sim->model, id);

	return task ? task->fold.task.seq : 0;
}

static enum refusal refusal_of(struct span code)
{
	for (int refusal = REFUSED_NOTHING + 1; refusal < REFUSAL_COUNT; refusal++) {
		if (span_equal(span_of(refusal_code((enum refusal)refusal)), code))
			return (enum refusal)refusal;
	}
	return REFUSED_NOTHING;
}

static void hear_claim(struct sim *sim, yyjson_val *claim, struct reply *reply)
{
	struct span id = text_of(yyjson_obj_get(claim, "task"), "id");
	struct told_claim *told = &reply->claims[reply->claim_count];

	if (reply->claim_count == REPLY_CLAIMS_MAX || id.len >= ID_MAX)
		return;
	reply->claim_count++;
	id_copy(told->id, id);
	told->seq = seq_of(sim, id);
	struct span fence = text_of(claim, "fence");
	told->fence = fence.len > 0 ? strtoull(fence.data, NULL, 10) : 0;
}

static void hear_standing(yyjson_val *root, struct reply *reply)
{
	struct span state = text_of(root, "state");

	for (int word = WORKER_UNKNOWN; word <= WORKER_INACTIVE; word++) {
		if (span_equal(span_of(worker_state_name((enum worker_state)word)), state))
			reply->worker_state = (enum worker_state)word;
	}
	reply->granted_ms = (uint32_t)yyjson_get_int(yyjson_obj_get(root, "leaseMs"));
}

static void hear_lists(yyjson_val *root, struct reply *reply)
{
	size_t i, count;
	yyjson_val *item;

	yyjson_arr_foreach(yyjson_obj_get(root, "lost"), i, count, item)
	{
		if (i < REPLY_LIST_MAX)
			id_copy(reply->lost[reply->lost_count++],
				(struct span){yyjson_get_str(item), yyjson_get_len(item)});
	}
	yyjson_arr_foreach(yyjson_obj_get(root, "commands"), i, count, item)
	{
		if (reply->stop_count < REPLY_LIST_MAX && span_equal(text_of(item, "type"), SPAN("cancel")))
			id_copy(reply->stop[reply->stop_count++], text_of(item, "task"));
		if (reply->park_count < REPLY_LIST_MAX && span_equal(text_of(item, "type"), SPAN("park")))
			id_copy(reply->park[reply->park_count++], text_of(item, "task"));
	}
}

static void hear_success(struct sim *sim, yyjson_val *root, struct reply *reply)
{
	size_t i, count;
	yyjson_val *item;

	switch (reply->kind) {
	case COMMAND_REGISTER:
	case COMMAND_BEAT:
		hear_standing(root, reply);
		hear_lists(root, reply);
		return;
	case COMMAND_CLAIM:
		hear_claim(sim, root, reply);
		return;
	case COMMAND_CLAIM_NEXT:
		yyjson_arr_foreach(yyjson_obj_get(root, "claims"), i, count, item)
			hear_claim(sim, item, reply);
		return;
	default:
		return;
	}
}

/* False: nobody could make sense of it. */
static bool hear(
	struct sim *sim, const struct request *request, const struct wire_call *wire, struct reply *reply)
{
	struct json_complaint complaint;
	yyjson_doc *doc = json_read(buf_span(&wire->body), &complaint);
	yyjson_val *root = yyjson_doc_get_root(doc);
	int status = wire->call.reply.status;

	*reply = (struct reply){.kind = request->command.kind, .fence = request->command.fence};
	if (status >= 400)
		reply->refusal = refusal_of(text_of(root, "code"));
	else
		hear_success(sim, root, reply);
	if (request->command.task.len > 0) {
		id_copy(reply->id, request->command.task);
		reply->seq = seq_of(sim, request->command.task);
	}
	struct span token = text_of(root, "token");
	if (token.len < sizeof reply->token_text && token.len > 0)
		memcpy(reply->token_text, token.data, token.len);
	yyjson_doc_free(doc);
	return root && (status == 200 || status == 202 || reply->refusal != REFUSED_NOTHING);
}

static bool ids_equal(char a[][ID_MAX], uint32_t a_count, const struct span *b, uint32_t b_count)
{
	bool equal = a_count == b_count;

	for (uint32_t i = 0; equal && i < a_count; i++)
		equal = span_equal(span_of(a[i]), b[i]);
	return equal;
}

/* The first thing in which the reply and the result differ, or NULL. */
static const char *difference(struct reply *reply, const struct result *result)
{
	bool stands = reply->kind == COMMAND_REGISTER || reply->kind == COMMAND_BEAT;
	bool good = result->refusal == REFUSED_NOTHING;

	if (reply->refusal != result->refusal)
		return "the refusal";
	if (reply->claim_count != (good ? result->claim_count : 0))
		return "how many were claimed";
	for (uint32_t i = 0; i < reply->claim_count; i++) {
		if (reply->claims[i].fence != result->claims[i].task.fence ||
			!span_equal(span_of(reply->claims[i].id), result->claims[i].id))
			return "what was claimed";
	}
	if (stands && (good || reply->refusal == REFUSED_TOKEN_MISMATCH) && reply->token_text[0] == 0)
		return "the token";
	if (!good || !stands)
		return NULL;
	if (reply->granted_ms != result->worker.lease.granted_ms ||
		reply->worker_state != result->worker.state)
		return "lease or state";
	if (reply->kind == COMMAND_REGISTER)
		return NULL;
	if (!ids_equal(reply->lost, reply->lost_count, result->lost, result->lost_count))
		return "what is lost";
	if (!ids_equal(reply->park, reply->park_count, result->park, result->park_count))
		return "what to park";
	return ids_equal(reply->stop, reply->stop_count, result->stop, result->stop_count) ? NULL
											   : "what to stop";
}

void wire_finish(struct sim *sim, struct wire_call *wire, const struct request *request,
	const struct result *result, struct reply *ret_reply)
{
	api_finish(&wire->call, result);
	const char *wrong =
		hear(sim, request, wire, ret_reply) ? difference(ret_reply, result) : "everything";
	if (wrong)
		sim_violate(sim, "W1", request->task, "%.*s is answered with another thing (%s): %d %.*s",
			SPAN_ARGS(request->path), wrong, wire->call.reply.status,
			SPAN_ARGS(buf_span(&wire->body)));
}
