/*
 * Workers on the worker connector's surface: they register, beat and leave; and its health.
 */
#include "api/door/orchestrator/orchestrator.h"

#include <errno.h>

#include "base/take.h"

/* ---- register ------------------------------------------------------------------------------------------ */

/* What it said of itself, and its version beside that. */
static bool keep_metadata(struct api_call *call, struct orchestrator_body *body)
{
	cleanup(buf_done) struct buf text = {.max = 128 << 10};
	struct json_object object;

	if (body->version.len == 0)
		return true;
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
	struct worker_document found;

	return store_read_worker(call->store, id, &found) == 0 && worker_is_alive(&found.worker);
}

void orchestrator_register_begin(struct api_call *call)
{
	bool *again = call_detail(call, sizeof *again);
	struct orchestrator_body body;

	if (!again || !orchestrator_read(call, ORCHESTRATOR_WORKER, &body) || !keep_metadata(call, &body))
		return;
	struct command *command = call_command(call, COMMAND_REGISTER);
	if (!command)
		return;
	*again = is_alive(call, body.worker);
	command->worker = body.worker;
	command->beat = (struct command_beat){
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

	orchestrator_put_yes(call, &object);
	json_member_string(&object, "worker_id", call->commands[0].worker);
	json_member_bool(&object, "registered", true);
	json_member_true_if(&object, "reregistered", *(const bool *)call->detail);
	orchestrator_time(&object, "registered_at", result->worker.registered_ms);
	orchestrator_reply(call, &object, result);
}

void orchestrator_leave_begin(struct api_call *call)
{
	struct command *command = call_command(call, COMMAND_LEAVE);

	if (!command)
		return;
	command->worker = call->params[0];
	command->leave = WORKER_TERMINATED;
}

void orchestrator_leave_finish(struct api_call *call, const struct result *results)
{
	enum refusal refusal = results[0].refusal;
	struct json_object object;

	if (refusal != REFUSED_NOTHING && refusal != REFUSED_UNAVAILABLE) {
		orchestrator_refuse(
			call, refusal_http_status(refusal), refusal_code(refusal), "Worker not registered");
		return;
	}
	if (call_is_refused(call, &results[0]))
		return;
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
	struct worker_document found;

	return store_read_worker(call->store, id, &found) == 0 && found.worker.state != WORKER_UNKNOWN &&
		found.worker.ended != WORKER_TERMINATED;
}

void orchestrator_beat_begin(struct api_call *call)
{
	struct span *active = call_detail(call, sizeof *active);
	struct orchestrator_body body;

	if (!active || !orchestrator_read(call, ORCHESTRATOR_WORKER, &body))
		return;
	if (!is_registered(call, body.worker)) {
		orchestrator_refuse(call, 400, NULL, "Worker not registered");
		return;
	}
	struct command *command = call_command(call, COMMAND_BEAT);
	if (!command)
		return;
	*active = body.active;
	command->worker = body.worker;
	command->beat = (struct command_beat){.lease_ms = ORCHESTRATOR_LIVENESS_MS, .named = true};
}

/* What it holds: the task that it named, or the first. */
struct holding {
	struct api_call *call;
	struct span active, found;
};

static int look_at_held(void *context, struct span id)
{
	struct holding *holding = context;
	bool is_active = span_equal(id, holding->active);

	if (holding->found.len > 0 && !is_active)
		return 0;
	int r = arena_copy(holding->call->arena, id, &holding->found);
	return r < 0 ? r : is_active;
}

void orchestrator_beat_finish(struct api_call *call, const struct result *results)
{
	const struct command *command = &call->commands[0];
	struct holding holding = {.call = call, .active = *(struct span *)call->detail};
	struct json_object object;

	int r = store_each_held(call->store, command->worker, look_at_held, &holding);
	orchestrator_put_yes(call, &object);
	json_note(&object, r < 0 && r != -ENOENT ? r : 0);
	json_member_string(&object, "worker_id", command->worker);
	orchestrator_time(&object, "heartbeat_at", results[0].worker.last_beat_ms);
	json_member_string_or_null(&object, "current_vtid", holding.found);
	orchestrator_reply(call, &object, &results[0]);
}

/* ---- health -------------------------------------------------------------------------------------------- */

void orchestrator_health_read(struct api_call *call)
{
	bool degraded = store_is_degraded(call->store);
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
