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

static void assert_claim(const struct command_claim *claim)
{
	assert(claim->max >= 1);
	assert(claim->max <= COMMAND_CLAIMS_MAX);
	assert(claim->lease_ms >= 0);
	assert(claim->run_ms >= 0);
	assert(claim->queues.count <= COMMAND_LIST_MAX);
	assert(claim->capabilities.count <= COMMAND_LIST_MAX);
	assert(claim->executors.count <= COMMAND_LIST_MAX);
	assert(claim->slot.len <= COMMAND_NAME_MAX);
}

static void assert_beat(const struct command_beat *beat)
{
	assert(beat->lease_ms >= 0);
	assert(beat->slot.len <= COMMAND_NAME_MAX);
	assert(beat->bound.count <= COMMAND_LIST_MAX);
	assert(beat->unbound.count <= COMMAND_LIST_MAX);
}

/* What core/command.h promises of a command: the rules below rely on it. */
static void assert_command(const struct api_call *call, const struct command *command)
{
	assert(command->task.len <= COMMAND_ID_MAX);
	assert(command->worker.len <= COMMAND_ID_MAX);
	assert(command->principal == call->who.number); /* nobody acts for somebody else */
	switch (command->kind) {
	case COMMAND_CREATE:
		assert_create(&command->create);
		if (command->create.subtask)
			break; /* of the task that it names */
		return;
	case COMMAND_CLAIM:
	case COMMAND_CLAIM_NEXT:
		assert_name(command->worker, COMMAND_ID_MAX);
		assert_claim(&command->claim);
		return;
	case COMMAND_REGISTER:
	case COMMAND_BEAT:
		assert_name(command->worker, COMMAND_ID_MAX);
		assert_beat(&command->beat);
		return;
	case COMMAND_VERDICT:
		assert_name(command->verdict.gate, COMMAND_NAME_MAX);
		break;
	case COMMAND_LOG:
		assert(command->log.dropped >= 0);
		assert(command->log.offset >= command->log.dropped);
		break;
	case COMMAND_PROGRESS:
		assert(command->lease_ms >= 0);
		break;
	case COMMAND_RELEASE:
		assert(command->delay_ms >= 0);
		break;
	case COMMAND_UPDATE:
	case COMMAND_CANCEL:
	case COMMAND_STOP:
	case COMMAND_RETRY:
	case COMMAND_PARK:
	case COMMAND_UNPARK:
	case COMMAND_ANSWER:
	case COMMAND_EMIT:
	case COMMAND_PURGE:
	case COMMAND_COMPLETE:
	case COMMAND_FAIL:
	case COMMAND_REVIEW:
	case COMMAND_BLOCK:
	case COMMAND_ASK:
	case COMMAND_WAIT:
		break;
	case COMMAND_QUIET:
	case COMMAND_TERMINATE:
	case COMMAND_LEAVE:
		assert_name(command->worker, COMMAND_ID_MAX);
		return;
	case COMMAND_TELL:
		assert(command->data.len > 0);
		break;
	case COMMAND_HOLD_SET:
	case COMMAND_HOLD_LIFT:
		assert_name(command->hold.credential, COMMAND_NAME_MAX);
		return;
	case COMMAND_GROUP_CLOSE:
	case COMMAND_GROUP_REMOVE:
		assert_name(command->group.name, COMMAND_NAME_MAX);
		return;
	case COMMAND_BULK_START:
		assert(command->bulk.bulk.action >= BULK_RETRY);
		assert(command->bulk.bulk.action < BULK_ACTION_COUNT);
		assert(command->bulk.bulk.filter.len > 0);
		assert(command->bulk.bulk.filter.len <= BULK_FILTER_BYTES_MAX);
		return;
	case COMMAND_BULK_STOP:
		assert(command->bulk.bulk.number > 0);
		return;
	case COMMAND_QUEUE_SET:
		assert_name(command->queue_set.queue, COMMAND_NAME_MAX);
		return;
	case COMMAND_QUEUE_LIMIT:
		assert_name(command->queue_limit.queue, COMMAND_NAME_MAX);
		assert(limits_are_sound(&command->queue_limit.patch.wanted));
		assert(command->queue_limit.cap_count <= KEY_CAPS_MAX);
		for (uint32_t i = 0; i < command->queue_limit.cap_count; i++)
			assert_name(command->queue_limit.caps[i].key, CONCURRENCY_KEY_MAX);
		return;
	case COMMAND_SCHEDULE_PUT:
		assert(command->schedule.create);
		assert_create(command->schedule.create);
		assert(command->schedule.schedule.task.len > 0);
		assert_name(command->schedule.schedule.id, COMMAND_ID_MAX);
		return;
	case COMMAND_SCHEDULE_RUN:
		assert(command->schedule.at_ms >= 0);
		return;
	case COMMAND_SCHEDULE_REMOVE:
	case COMMAND_SCHEDULE_PAUSE:
	case COMMAND_SCHEDULE_RESUME:
		return;
	case COMMAND_SLOT_CRASH:
	case COMMAND_UNQUARANTINE:
	case COMMAND_SLOT_ENTER:
		assert_name(command->slot, COMMAND_NAME_MAX);
		return;
	case COMMAND_SLOT_ASSIGN:
		assert_name(command->assign.slot, COMMAND_ID_MAX);
		assert(command->assign.queues.count > 0);
		return;
	case COMMAND_TOKEN_PUT:
	case COMMAND_TOKEN_REVOKE:
		assert(command->token.id.len > 0);
		return;
	case COMMAND_ENROL:
		assert(command->token.code.len > 0);
		assert_name(command->token.name, COMMAND_NAME_MAX);
		assert(command->token.id.len == TOKEN_ID_TEXT_MAX - 1);
		return;
	case COMMAND_TOKEN_RENEW:
		assert(command->token.id.len > 0);
		return;
	case COMMAND_LOGIN_CODE:
	case COMMAND_LOGIN:
	case COMMAND_LOGOUT:
		assert_name(command->login.id, LOGIN_ID_BYTES_MAX - 1);
		return;
	case COMMAND_AUDIT:
		assert(command->note.len > 0); /* what leaves no trace is not done */
		return;
	case COMMAND_EXECUTION_SET:
	case COMMAND_KEY_ROTATE:
		return;
	case COMMAND_PASS:
	case COMMAND_REJECT:
	case COMMAND_RETURN:
	case COMMAND_BULK_STEP:
	case COMMAND_KIND_COUNT:
		assert(0 && "no request becomes such a command");
	}
	assert_name(command->task, COMMAND_ID_MAX);
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
