/*
 * The surface of worker connectors: /api/v1/worker/orchestrator. Workers register, look for tasks, claim one by its
 * VTID, tell how it goes and beat; each is one of the commands that everybody else gives by another name.
 *
 * Its words: a VTID is the id of a task, a worker_id a name with instances behind it. Names are snake_case, times
 * ISO 8601, unknown fields are ignored, and a refusal is {"ok":false,"error":…}. A claim has two clocks: five
 * minutes that every sign of life renews, and the time it was claimed for (claim_expires_at), past which nothing does.
 * Answers have an extra `fence` and calls accept it; without one the name is compared, and the event says so.
 *
 *   door/orchestrator/words.c   what is asked and answered everywhere   door/orchestrator/worker.c   those who work
 *   door/orchestrator/lists.c   pending tasks, workers, counts          here: claim, progress, release
 */
#include "api/door/orchestrator/orchestrator.h"

#include <errno.h>

#include "base/take.h"

enum {
	MINUTE_MS = 60 * 1000,
};

/* ---- claim --------------------------------------------------------------------------------------------- */

void orchestrator_claim_begin(struct api_call *call)
{
	struct orchestrator_body body;

	if (!orchestrator_has_vtid(call) || !orchestrator_read(call, ORCHESTRATOR_WORKER, &body))
		return;
	struct command *command = orchestrator_command(call, COMMAND_CLAIM, &body);
	if (!command)
		return;
	command->claim = (struct command_claim){
		.slot = body.worker, /* a task may be owned by that worker */
		.any_executor = true,
		.named = true,
		.takes_ready = true,
		.enters = true,
		.fits = true,
		.extends = true,
		.max = 1,
		.lease_ms = ORCHESTRATOR_LIVENESS_MS,
		.run_ms = body.expires_minutes * MINUTE_MS,
	};
}

/* Why a task that nobody holds cannot be claimed: its state says it. */
static const char *state_reason(enum task_state state)
{
	switch (state) {
	case TASK_PENDING:
		return "Task is not waiting for a worker: it is parked (pending)";
	case TASK_SCHEDULED:
		return "Task is not waiting for a worker: its time has not come (scheduled)";
	case TASK_WAITING:
		return "Task is not waiting for a worker: it waits for other tasks (waiting)";
	case TASK_ASKING:
		return "Task is not waiting for a worker: it waits for an answer (asking)";
	case TASK_REVIEW:
		return "Task is not waiting for a worker: its work is under review (review)";
	case TASK_BLOCKED:
		return "Task is not waiting for a worker: a person must act first (blocked)";
	case TASK_READY: /* past its deadline, and about to fail */
		return "Task is not waiting for a worker: its deadline has passed (ready)";
	case TASK_NOWHERE:
	case TASK_CLAIMED:
	case TASK_RUNNING:
	case TASK_FAILED:
	case TASK_DONE:
	case TASK_CANCELLED:
	case TASK_STATE_COUNT:
		break;
	}
	return "Task is not waiting for a worker";
}

static const char *claim_reason(const struct result *result)
{
	static const struct {
		enum refusal refusal;
		const char *text;
	} words[] = {
		{REFUSED_NOT_FOUND, "Task not found"},
		{REFUSED_CLAIMED_BY_OTHER, "Task already claimed by another worker"},
		{REFUSED_ALREADY_TERMINAL, "Task is already terminal"},
		{REFUSED_WORKER_FULL, "Worker holds as many tasks as its max_concurrent allows"},
		{REFUSED_QUEUE_PAUSED, "Task is in a queue that is paused"},
		{REFUSED_STALE_CLAIM, "The fence is that of an earlier claim"},
		{REFUSED_EXECUTION_DISARMED, "Autopilot execution is disarmed"},
		{REFUSED_NOT_AUTONOMOUS, "Task does not have metadata.autonomous_execution: true"},
	};
	const char *detail = refusal_detail(result);

	if (result->refusal == REFUSED_BAD_TRANSITION)
		return state_reason(result->task.state);
	if (result->refusal == REFUSED_FORBIDDEN && result->unfit)
		return result->task.executor != 0
			? "Task names an executor: it is for a worker that announces executors"
			: "Task requires capabilities that this worker did not register";
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (words[i].refusal == result->refusal)
			return words[i].text;
	}
	return detail ? detail : refusal_text(result->refusal);
}

/* The holder and the end of its claim, for the worker that was too late. */
static void put_holder(struct api_call *call, struct json_object *object, const struct result *result)
{
	struct task_document document;

	if (result->refusal != REFUSED_CLAIMED_BY_OTHER)
		return;
	int r = store_read_task(call->store, result->task.seq, call->now, call->arena, &document);
	json_note(object, r == -ENOENT ? 0 : r);
	if (r < 0 || document.holder.len == 0)
		return;
	json_member_string(object, "claimed_by", document.holder);
	orchestrator_time(object, "expires_at", orchestrator_claim_expires_ms(call, &document.task));
}

static void refuse_claim(struct api_call *call, const struct result *result)
{
	struct json_object object;

	orchestrator_put_no(call, &object, refusal_code(result->refusal), claim_reason(result));
	json_member_string(&object, "vtid", call->params[0]);
	if (result->refusal == REFUSED_BAD_TRANSITION)
		json_member_cstr(&object, "task_state", task_state_name(result->task.state));
	put_holder(call, &object, result);
	orchestrator_put_now(call, &object);
	call_reply(call, refusal_http_status(result->refusal), json_end(&object));
}

static void put_claim(struct api_call *call, const struct result *result, yyjson_doc *doc)
{
	const struct claimed *claimed = &result->claims[0];
	int64_t expires_ms = orchestrator_claim_expires_ms(call, &claimed->task);
	struct json_object object;

	orchestrator_put_yes(call, &object);
	json_member_bool(&object, "claimed", true);
	json_member_string(&object, "vtid", claimed->id);
	json_member_string(&object, "worker_id", call->commands[0].worker);
	json_member_decimal(&object, "fence", claimed->task.fence);
	json_member_text_or_null(&object, "title", yyjson_obj_get(yyjson_doc_get_root(doc), "title"));
	orchestrator_put_summary(&object, doc);
	json_member_string(&object, "spec", orchestrator_spec(doc));
	orchestrator_put_snapshot(&object, doc);
	json_member_cstr(&object, "state", stage_name(workflow_stage_of(&claimed->task)));
	json_member_int(&object, "attempt", claimed->task.attempt);
	orchestrator_time(&object, "claim_expires_at", expires_ms);
	orchestrator_time(&object, "expires_at", expires_ms);
	json_member_raw_if_any(&object, "checkpoint", claimed->checkpoint);
	json_member_raw_if_any(&object, "previous_error", claimed->error);
	orchestrator_reply(call, &object, result);
}

void orchestrator_claim_finish(struct api_call *call, const struct result *results)
{
	const struct result *result = &results[0];

	if (result->refusal != REFUSED_NOTHING) {
		refuse_claim(call, result);
		return;
	}
	yyjson_doc *doc = task_body_read(result->claims[0].body, call->body);
	put_claim(call, result, doc);
	yyjson_doc_free(doc);
}

/* ---- progress ------------------------------------------------------------------------------------------ */

static void put_note(struct buf *note, const struct orchestrator_body *body)
{
	struct json_object members = {.buf = note};

	json_member_string(&members, "event", body->event);
	json_member_string_if_any(&members, "note", body->message);
	json_member_raw_if_any(&members, "metadata", body->metadata);
}

/* Why it failed, should this be its last word. */
static void put_error(struct buf *error, const struct orchestrator_body *body)
{
	struct json_object object;

	json_begin(&object, error);
	json_member_cstr(&object, "code", failure_code_name(CODE_EXECUTION_ERROR));
	json_member_string(&object, "message", body->message.len > 0 ? body->message : body->event);
	json_member_cstr(&object, "class", failure_class_name(CLASS_TASK));
	json_end(&object);
}

void orchestrator_progress_begin(struct api_call *call)
{
	cleanup(buf_done) struct buf note = {.max = 2 * API_TEXT_MAX},
				     error = {.max = 8 * ORCHESTRATOR_MESSAGE_MAX};
	struct orchestrator_body body;

	if (!orchestrator_has_vtid(call) ||
		!orchestrator_read(call, ORCHESTRATOR_WORKER | ORCHESTRATOR_EVENT, &body))
		return;
	struct command *command = orchestrator_command(call, COMMAND_PROGRESS, &body);
	if (!command)
		return;
	struct outside_event event = {.type = body.event, .has_pr = body.has_pr};
	command->lease_ms = ORCHESTRATOR_LIVENESS_MS;
	command->data = body.metadata;
	command->told.ends = true;
	put_note(&note, &body);
	put_error(&error, &body);
	if (call_keep(call, &note, &command->note) == 0 && call_keep(call, &error, &command->told.error) == 0)
		call_tells(call, command, &event);
}

/* The claim does not exist, belongs to another worker, or has ended. */
static bool is_without_claim(enum refusal refusal)
{
	return refusal == REFUSED_NOT_CLAIMED || refusal == REFUSED_CLAIMED_BY_OTHER ||
		refusal == REFUSED_STALE_CLAIM || refusal == REFUSED_ALREADY_TERMINAL ||
		refusal == REFUSED_NOT_FOUND;
}

void orchestrator_progress_finish(struct api_call *call, const struct result *results)
{
	const struct result *result = &results[0];
	struct json_object object;

	if (is_without_claim(result->refusal)) {
		orchestrator_refuse(
			call, 400, refusal_code(result->refusal), "No active claim for this task");
		return;
	}
	if (call_is_refused(call, result))
		return;
	orchestrator_put_yes(call, &object);
	json_member_string(&object, "vtid", result->id);
	json_member_string(&object, "event", call->commands[0].told.event.type);
	json_member_cstr(&object, "state", stage_name(workflow_stage_of(&result->task)));
	if (task_is_claimed(&result->task))
		json_member_decimal(&object, "fence", result->task.fence);
	orchestrator_reply(call, &object, result);
}

/* ---- release ------------------------------------------------------------------------------------------- */

void orchestrator_release_begin(struct api_call *call)
{
	struct orchestrator_body body;

	if (!orchestrator_has_vtid(call) || !orchestrator_read(call, ORCHESTRATOR_WORKER, &body))
		return;
	if (body.reason.len == 0)
		body.reason = SPAN("completed");
	struct command *command = orchestrator_command(call, COMMAND_RELEASE, &body);
	if (command)
		call_keep_note(call, "reason", body.reason, command);
}

/* Its last word has ended the claim already: there is nothing left to give back. 1: so it is; 0, or a fault. */
static int was_reported(const struct api_call *call, const struct result *result)
{
	const struct task *task = &result->task;
	struct task_document document;

	if (task->seq == 0 || task_is_claimed(task) || task->claimant != call->who.number)
		return 0;
	int r = store_read_task(call->store, task->seq, call->now, call->arena, &document);
	if (r == 0)
		r = store_read_last(call->store, call->arena, &document);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return span_equal(document.last.worker, call->commands[0].worker) &&
		(task->ended == ENDED_REVIEW || task->ended == ENDED_FAIL || task->ended == ENDED_COMPLETE);
}

static void put_released(struct api_call *call, const struct result *result)
{
	struct json_object object;

	orchestrator_put_yes(call, &object);
	json_member_bool(&object, "released", true);
	json_member_string(&object, "vtid", call->params[0]);
	json_member_string(&object, "worker_id", call->commands[0].worker);
	json_members_raw(&object, call->commands[0].note);
	orchestrator_reply(call, &object, result);
}

void orchestrator_release_finish(struct api_call *call, const struct result *results)
{
	const struct result *result = &results[0];
	int over = result->refusal != REFUSED_NOTHING ? was_reported(call, result) : 1;

	if (over < 0)
		call_refuse_fault(call, over);
	else if (over)
		put_released(call, result);
	else if (is_without_claim(result->refusal))
		orchestrator_refuse(
			call, 409, refusal_code(result->refusal), "No active claim for this task");
	else
		call_refuse_result(call, result);
}
