/*
 * What leaves the API is valid by construction. Here it is asserted, once for every step of a call: a command that breaks
 * one of these is a mistake of a handler, never of a client.
 */
#include "api/call.h"

#include <assert.h>

/* A name that must be there. */
static void assert_name(struct span name, size_t max)
{
	assert(name.len > 0);
	assert(name.len <= max);
}

static void assert_create(const struct command_create *create)
{
	assert(create->subtask || create->queue.len > 0); /* a subtask is in the queue of its parent */
	assert(create->queue.len <= COMMAND_NAME_MAX);
	assert(create->id.len <= COMMAND_ID_MAX);
	assert(create->owner.len <= COMMAND_NAME_MAX);
	assert(create->executor.len <= COMMAND_NAME_MAX);
	assert(create->requires.count <= COMMAND_LIST_MAX);
	assert(create->parents.count <= COMMAND_PARENTS_MAX);
	assert(create->gates.count <= TASK_GATES_MAX);
	assert(create->not_before_ms >= 0);
	assert(create->start_by_ms >= 0);
	assert(create->finish_by_ms >= 0);
}

static void about_create(const struct command *command)
{
	assert_create(&command->create);
	if (command->create.subtask)
		assert_name(command->task, COMMAND_ID_MAX); /* its parent */
}

static void about_verdict(const struct command *command)
{
	assert_name(command->verdict.gate, COMMAND_NAME_MAX);
}

static void about_log(const struct command *command)
{
	assert(command->log.dropped >= 0);
	assert(command->log.offset >= command->log.dropped);
}

static void about_progress(const struct command *command)
{
	assert(command->lease_ms >= 0);
}

static void about_release(const struct command *command)
{
	assert(command->delay_ms >= 0);
}

static void about_tell(const struct command *command)
{
	assert(command->data.len > 0);
}

static void about_claim(const struct command *command)
{
	const struct command_claim *claim = &command->claim;

	assert(claim->max >= 1);
	assert(claim->max <= COMMAND_CLAIMS_MAX);
	assert(claim->lease_ms >= 0);
	assert(claim->run_ms >= 0);
	assert(claim->queues.count <= COMMAND_LIST_MAX);
	assert(claim->capabilities.count <= COMMAND_LIST_MAX);
	assert(claim->executors.count <= COMMAND_LIST_MAX);
	assert(claim->slot.len <= COMMAND_NAME_MAX);
}

static void about_beat(const struct command *command)
{
	const struct command_beat *beat = &command->beat;

	assert(beat->lease_ms >= 0);
	assert(beat->slot.len <= COMMAND_NAME_MAX);
	assert(beat->bound.count <= COMMAND_LIST_MAX);
	assert(beat->unbound.count <= COMMAND_LIST_MAX);
}

static void about_slot(const struct command *command)
{
	assert_name(command->slot, COMMAND_NAME_MAX);
}

static void about_assignment(const struct command *command)
{
	assert_name(command->assign.slot, COMMAND_ID_MAX);
	assert(command->assign.queues.count > 0);
}

static void about_hold(const struct command *command)
{
	assert_name(command->hold.credential, COMMAND_NAME_MAX);
}

static void about_budget(const struct command *command)
{
	assert_name(command->budget.name, COMMAND_NAME_MAX);
	assert(command->budget.patch.set != 0);
}

static void about_inbox(const struct command *command)
{
	assert(command->inbox.id > 0);
}

static void about_group(const struct command *command)
{
	assert_name(command->group.name, COMMAND_NAME_MAX);
}

static void about_bulk_start(const struct command *command)
{
	const struct bulk *bulk = &command->bulk.bulk;

	assert(bulk->action >= BULK_RETRY);
	assert(bulk->action < BULK_ACTION_COUNT);
	assert(bulk->filter.len > 0);
	assert(bulk->filter.len <= BULK_FILTER_BYTES_MAX);
}

static void about_bulk_stop(const struct command *command)
{
	assert(command->bulk.bulk.number > 0);
}

static void about_queue(const struct command *command)
{
	assert_name(command->queue_set.queue, COMMAND_NAME_MAX);
}

static void about_limit(const struct command *command)
{
	const struct command_queue_limit *limit = &command->queue_limit;

	assert_name(limit->queue, COMMAND_NAME_MAX);
	assert(limits_are_sound(&limit->patch.wanted));
	assert(limit->cap_count <= KEY_CAPS_MAX);
	for (uint32_t i = 0; i < limit->cap_count; i++)
		assert_name(limit->caps[i].key, CONCURRENCY_KEY_MAX);
}

static void about_schedule(const struct command *command)
{
	assert(command->schedule.create);
	assert_create(command->schedule.create);
	assert(command->schedule.schedule.task.len > 0);
	assert_name(command->schedule.schedule.id, COMMAND_ID_MAX);
}

static void about_occurrence(const struct command *command)
{
	assert(command->schedule.at_ms >= 0);
}

static void about_token(const struct command *command)
{
	assert(command->token.id.len > 0);
}

static void about_enrolment(const struct command *command)
{
	assert(command->token.code.len > 0);
	assert_name(command->token.name, COMMAND_NAME_MAX);
	assert(command->token.id.len == TOKEN_ID_TEXT_MAX - 1);
}

static void about_login(const struct command *command)
{
	assert_name(command->login.id, LOGIN_ID_BYTES_MAX - 1);
}

static void about_audit(const struct command *command)
{
	assert(command->note.len > 0); /* what leaves no trace is not done */
}

/* What every command of a kind names. */
enum command_names {
	NO_REQUEST, /* no request becomes a command of that kind: it is the server's own */
	NEITHER,    /* neither of the two, or not always */
	A_TASK,
	A_WORKER,
};

/* What core/command.h promises of a command, by kind: the rules below rely on it. */
// clang-format off
static const struct promise {
	enum command_names names;
	void (*about)(const struct command *command); /* NULL: it says nothing else */
} promises[COMMAND_KIND_COUNT] = {
	[COMMAND_CREATE]          = {NEITHER, about_create},
	[COMMAND_UPDATE]          = {A_TASK, NULL},
	[COMMAND_CANCEL]          = {A_TASK, NULL},
	[COMMAND_STOP]            = {A_TASK, NULL},
	[COMMAND_RETRY]           = {A_TASK, NULL},
	[COMMAND_PARK]            = {A_TASK, NULL},
	[COMMAND_UNPARK]          = {A_TASK, NULL},
	[COMMAND_ANSWER]          = {A_TASK, NULL},
	[COMMAND_VERDICT]         = {A_TASK, about_verdict},
	[COMMAND_EMIT]            = {A_TASK, NULL},
	[COMMAND_PURGE]           = {A_TASK, NULL},
	[COMMAND_TELL]            = {A_TASK, about_tell},
	[COMMAND_COMPLETE]        = {A_TASK, NULL},
	[COMMAND_FAIL]            = {A_TASK, NULL},
	[COMMAND_REVIEW]          = {A_TASK, NULL},
	[COMMAND_BLOCK]           = {A_TASK, NULL},
	[COMMAND_ASK]             = {A_TASK, NULL},
	[COMMAND_WAIT]            = {A_TASK, NULL},
	[COMMAND_PROGRESS]        = {A_TASK, about_progress},
	[COMMAND_RELEASE]         = {A_TASK, about_release},
	[COMMAND_LOG]             = {A_TASK, about_log},
	[COMMAND_CLAIM]           = {A_WORKER, about_claim},
	[COMMAND_CLAIM_NEXT]      = {A_WORKER, about_claim},
	[COMMAND_REGISTER]        = {A_WORKER, about_beat},
	[COMMAND_BEAT]            = {A_WORKER, about_beat},
	[COMMAND_QUIET]           = {A_WORKER, NULL},
	[COMMAND_TERMINATE]       = {A_WORKER, NULL},
	[COMMAND_LEAVE]           = {A_WORKER, NULL},
	[COMMAND_SLOT_CRASH]      = {NEITHER, about_slot},
	[COMMAND_UNQUARANTINE]    = {NEITHER, about_slot},
	[COMMAND_SLOT_ENTER]      = {NEITHER, about_slot},
	[COMMAND_SLOT_ASSIGN]     = {NEITHER, about_assignment},
	[COMMAND_HOLD_SET]        = {NEITHER, about_hold},
	[COMMAND_HOLD_LIFT]       = {NEITHER, about_hold},
	[COMMAND_BUDGET_SET]      = {NEITHER, about_budget},
	[COMMAND_INBOX_DROP]      = {NEITHER, about_inbox},
	[COMMAND_GROUP_CLOSE]     = {NEITHER, about_group},
	[COMMAND_GROUP_REMOVE]    = {NEITHER, about_group},
	[COMMAND_BULK_START]      = {NEITHER, about_bulk_start},
	[COMMAND_BULK_STOP]       = {NEITHER, about_bulk_stop},
	[COMMAND_QUEUE_SET]       = {NEITHER, about_queue},
	[COMMAND_QUEUE_LIMIT]     = {NEITHER, about_limit},
	[COMMAND_SCHEDULE_PUT]    = {NEITHER, about_schedule},
	[COMMAND_SCHEDULE_RUN]    = {NEITHER, about_occurrence},
	[COMMAND_SCHEDULE_REMOVE] = {NEITHER, NULL},
	[COMMAND_SCHEDULE_PAUSE]  = {NEITHER, NULL},
	[COMMAND_SCHEDULE_RESUME] = {NEITHER, NULL},
	[COMMAND_EXECUTION_SET]   = {NEITHER, NULL},
	[COMMAND_TOKEN_PUT]       = {NEITHER, about_token},
	[COMMAND_TOKEN_REVOKE]    = {NEITHER, about_token},
	[COMMAND_ENROL]           = {NEITHER, about_enrolment},
	[COMMAND_TOKEN_RENEW]     = {NEITHER, about_token},
	[COMMAND_KEY_ROTATE]      = {NEITHER, NULL},
	[COMMAND_LOGIN_CODE]      = {NEITHER, about_login},
	[COMMAND_LOGIN]           = {NEITHER, about_login},
	[COMMAND_LOGOUT]          = {NEITHER, about_login},
	[COMMAND_AUDIT]           = {NEITHER, about_audit},
};
// clang-format on

static void assert_command(const struct api_call *call, const struct command *command)
{
	assert(command->kind > 0);
	assert(command->kind < COMMAND_KIND_COUNT);
	const struct promise *promise = &promises[command->kind];

	assert(promise->names != NO_REQUEST);
	assert(command->task.len <= COMMAND_ID_MAX);
	assert(command->worker.len <= COMMAND_ID_MAX);
	assert(command->principal == call->who.number); /* nobody acts for somebody else */
	if (promise->names == A_TASK)
		assert_name(command->task, COMMAND_ID_MAX);
	if (promise->names == A_WORKER)
		assert_name(command->worker, COMMAND_ID_MAX);
	if (promise->about)
		promise->about(command);
}

/* What a step of the call promises to the server. */
void call_assert_step(const struct api_call *call)
{
	switch (call->step) {
	case API_REPLY:
		assert(call->reply.status >= 200);
		assert(call->reply.status < 600);
		return;
	case API_TURN:
		assert(call->route->finish);
		assert(call->command_count > 0);
		for (uint32_t i = 0; i < call->command_count; i++)
			assert_command(call, &call->commands[i]);
		return;
	case API_READ:
		assert(call->route->read);
		return;
	case API_NEWS:
		assert(call->news_of.len > 0);
		assert(call->wait_ms > 0);
		return;
	case API_BACKUP:
	case API_STREAM:
		return;
	}
	assert(0 && "an unknown step");
}
