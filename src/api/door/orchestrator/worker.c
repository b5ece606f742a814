/*
 * Workers on the worker connector's surface: they register, beat and leave; and its health.
 */
#include "api/door/orchestrator/orchestrator.h"

#include "base/take.h"

/* ---- register ------------------------------------------------------------------------------------------ */

/* What it said of itself, and its version beside that. */
static bool keep_metadata(struct api_call *call, struct orchestrator_body *body)
{
	cleanup(buf_done) struct buf text = {0};
	struct json_object object;

	if (body->version.len == 0)
		return true;
	buf_init(&text, 128 << 10);
	json_begin(&object, &text);
	json_member_string(&object, "version", body->version);
	if (body->metadata.len > 2)
		json_members_raw(&object, (struct span){body->metadata.data + 1, body->metadata.len - 2});
	json_end(&object);
	return call_keep(call, &text, &body->metadata) == 0;
}

/* Was it alive before? */
static bool is_alive(const struct api_call *call, struct span id)
{
	struct store *store = call->store;
	struct worker_document found;

	return store_read_worker(store, id, &found) == 0 && worker_is_alive(&found.worker);
}

void orchestrator_register_begin(struct api_call *call)
{
	bool *again = arena_alloc(call->arena, sizeof *again);
	struct orchestrator_body body;
	unsigned given;

	if (!again) {
		api_refuse(call, REFUSED_UNAVAILABLE, NULL);
		return;
	}
	if (!orchestrator_read(call, ORCHESTRATOR_WORKER, &body, &given) || !keep_metadata(call, &body) ||
		!call_commands(call, 1))
		return;
	*again = is_alive(call, body.worker);
	call->detail = again;
	call->commands[0].kind = COMMAND_REGISTER;
	call->commands[0].worker = body.worker;
	call->commands[0].beat = (struct command_beat){
		.lease_ms = ORCHESTRATOR_LIVENESS_MS,
		.describes = true,
		.named = true,
		.capabilities = body.capabilities,
		.any_executor = true,
		.max_concurrent = (uint32_t)body.max_concurrent,
		.metadata = body.metadata,
	};
}

void orchestrator_register_finish(struct api_call *call, const struct result *results)
{
	const struct result *result = &results[0];
	struct json_object object;

	if (result->refusal != REFUSED_NOTHING) {
		orchestrator_refuse_result(call, result);
		return;
	}
	orchestrator_put_yes(call, &object);
	json_member_string(&object, "worker_id", call->commands[0].worker);
	json_member_bool(&object, "registered", true);
	if (*(const bool *)call->detail)
		json_member_bool(&object, "reregistered", true);
	orchestrator_time(&object, "registered_at", result->worker.registered_ms);
	orchestrator_reply(call, &object, result);
}

void orchestrator_leave_begin(struct api_call *call)
{
	if (!call_commands(call, 1))
		return;
	call->commands[0].kind = COMMAND_LEAVE;
	call->commands[0].worker = call->params[0];
	call->commands[0].leave = WORKER_TERMINATED;
}

void orchestrator_leave_finish(struct api_call *call, const struct result *results)
{
	struct json_object object;

	if (results[0].refusal != REFUSED_NOTHING) {
		orchestrator_refuse(call, refusal_http_status(results[0].refusal),
			refusal_code(results[0].refusal), "Worker not registered");
		return;
	}
	orchestrator_put_yes(call, &object);
	json_member_string(&object, "worker_id", call->commands[0].worker);
	json_member_bool(&object, "unregistered", true);
	orchestrator_reply(call, &object, &results[0]);
}

/* ---- heartbeat ----------------------------------------------------------------------------------------- */

bool orchestrator_sees_worker(const struct api_call *call, const struct worker *worker)
{
	const struct principal *who = &call->who;

	if ((who->scopes & (SCOPE_BIT(SCOPE_READ) | SCOPE_BIT(SCOPE_ADMIN))) != 0)
		return who->queues.count == 0;
	return worker->principal == who->number;
}

/* A worker whose lease ended comes back with its next heartbeat; one that was terminated must register again. */
static bool is_registered(const struct api_call *call, struct span id)
{
	struct store *store = call->store;
	struct worker_document found;

	return store_read_worker(store, id, &found) == 0 && found.worker.state != WORKER_UNKNOWN &&
		found.worker.ended != WORKER_TERMINATED;
}

void orchestrator_beat_begin(struct api_call *call)
{
	struct span *active = arena_alloc(call->arena, sizeof *active);
	struct orchestrator_body body;
	unsigned given;

	if (!orchestrator_read(call, ORCHESTRATOR_WORKER, &body, &given))
		return;
	if (!is_registered(call, body.worker)) {
		orchestrator_refuse(call, 400, NULL, "Worker not registered");
		return;
	}
	if (!active || !call_commands(call, 1))
		return;
	*active = body.active;
	call->detail = active;
	call->commands[0].kind = COMMAND_BEAT;
	call->commands[0].worker = body.worker;
	call->commands[0].beat = (struct command_beat){.lease_ms = ORCHESTRATOR_LIVENESS_MS, .named = true};
}

/* What it holds: the task that it named, or the first. */
struct holding {
	struct api_call *call;
	struct span active, found;
	int fault;
};

static int look_at_held(void *context, struct span id)
{
	struct holding *holding = context;
	bool is_active = span_equal(id, holding->active);

	if (holding->found.len > 0 && !is_active)
		return 0;
	holding->fault = arena_copy(holding->call->arena, id, &holding->found);
	return holding->fault < 0 || is_active ? 1 : 0;
}

void orchestrator_beat_finish(struct api_call *call, const struct result *results)
{
	struct store *store = call->store;
	const struct command *command = &call->commands[0];
	struct holding holding = {.call = call, .active = *(struct span *)call->detail};
	struct json_object object;

	if (results[0].refusal != REFUSED_NOTHING) {
		orchestrator_refuse_result(call, &results[0]);
		return;
	}
	store_each_held(store, command->worker, look_at_held, &holding);
	orchestrator_put_yes(call, &object);
	json_member_string(&object, "worker_id", command->worker);
	orchestrator_time(&object, "heartbeat_at", results[0].worker.last_beat_ms);
	json_member_string_or_null(&object, "current_vtid", holding.found);
	orchestrator_reply(call, &object, &results[0]);
}

/* ---- health -------------------------------------------------------------------------------------------- */

void orchestrator_health_read(struct api_call *call)
{
	struct store *store = call->store;
	bool degraded = store_is_degraded(store);
	struct json_object object;

	call->query_taken = true;
	json_begin(&object, call->body);
	json_member_bool(&object, "ok", !degraded);
	json_member_cstr(&object, "status", degraded ? "degraded" : "healthy");
	json_member_cstr(&object, "service", "worker-orchestrator");
	json_member_bool(&object, "execution_armed", call_is_armed(call, NULL));
	orchestrator_put_now(call, &object);
	call_reply(call, degraded ? 503 : 200, json_end(&object));
}
