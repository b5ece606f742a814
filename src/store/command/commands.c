/*
 * Every command by its kind, and what most of them have in common.
 */
#include <assert.h>
#include <errno.h>

#include "store/command/commands.h"

int command_refuse(struct result *result, enum refusal refusal)
{
	result->refusal = refusal;
	return 0;
}

bool command_sees(const struct turn *turn, const struct task *task)
{
	const struct name_list *within = &turn->command->within;
	struct span queue = names_text(&turn->store->names, task->queue);

	for (uint32_t i = 0; i < within->count; i++) {
		if (span_equal(within->items[i], queue))
			return true;
	}
	return within->count == 0;
}

int command_find(
	struct turn *turn, const struct command *command, struct result *result, struct turn_task **ret_view)
{
	struct span id = command->task;

	*ret_view = NULL;
	int r = turn_task_by_id(turn, id, ret_view);
	if (r == -ENOENT || (r == 0 && !command_sees(turn, &(*ret_view)->task))) {
		*ret_view = NULL;
		result->id = id;
		return command_refuse(result, REFUSED_NOT_FOUND);
	}
	if (r < 0)
		return r;
	result->task = (*ret_view)->task;
	return turn_id_text(turn, *ret_view, &result->id);
}

bool command_is_late(const struct command *command, const struct task *task)
{
	return command->if_version != 0 && command->if_version != task->version;
}

int command_load(
	struct turn *turn, const struct command *command, struct result *result, struct turn_task **ret_view)
{
	int r = command_find(turn, command, result, ret_view);

	if (r < 0 || !*ret_view || !command_is_late(command, &(*ret_view)->task))
		return r;
	*ret_view = NULL;
	return command_refuse(result, REFUSED_VERSION_MISMATCH);
}

static void add_failure_facts(struct record *record, const struct failure *failure)
{
	record_fact(record, FACT_CLASS, failure->klass);
	if (failure->retry_at_ms > 0)
		record_fact(record, FACT_RETRY_AT, failure->retry_at_ms);
}

/* Facts that explain the event of a decision; `before` is the task as it was. */
static void add_facts(struct turn *turn, struct record *record, const struct task *before,
	const struct task_decision *decision)
{
	const struct claim *claim = &decision->task.claim;

	/* the other events explain themselves */
	if (decision->event == EVENT_TASK_CLAIMED) {
		record_fact(record, FACT_GRANTED, claim->lease.granted_ms);
		if (claim->named)
			record_fact(record, FACT_NAMED, 1);
		if (claim->verify_at_ms != 0) {
			record_fact(record, FACT_BEATS, 1);
			record_fact(record, FACT_VERIFY, claim->verify_at_ms);
		}
	} else if (decision->event == EVENT_TASK_FAILED || decision->event == EVENT_TASK_BLOCKED) {
		if (turn->command && turn->command->kind == COMMAND_FAIL)
			add_failure_facts(record, &turn->command->failure);
		else if (decision->task.code != CODE_NONE)
			record_fact(record, FACT_CLASS, failure_code_class(decision->task.code));
	} else if (decision->event == EVENT_TASK_PROGRESSED) {
		if (turn->command && turn->command->kind != COMMAND_PROGRESS && claim->reported)
			record_fact(record, FACT_REPORTED, 1);
	} else if (decision->event == EVENT_TASK_UPDATED) {
		if (claim->stopping && !before->claim.stopping)
			record_fact(record, FACT_STOPPING, 1);
	}
}

int command_stage(struct turn *turn, struct turn_task *view, const struct task_decision *decision,
	struct result *result)
{
	struct record record;

	result->repeated = decision->repeated;
	if (decision->refusal != REFUSED_NOTHING)
		return command_refuse(result, decision->refusal);
	turn_record(turn, &record, decision->event);
	add_facts(turn, &record, &view->task, decision);
	if (turn->command && turn->command->by_name && decision->event != EVENT_TASK_UPDATED)
		record_fact(&record, FACT_NAME_ONLY, 1);
	int r = turn_stage_task(turn, view, decision, &record);
	result->task = view->task;
	return r;
}

/* Stage an accepted decision and keep what came with the command. */
int command_stage_keeping(struct turn *turn, struct turn_task *view, const struct task_decision *decision,
	enum extra_kind kind, struct result *result)
{
	int r = command_stage(turn, view, decision, result);

	if (r < 0 || result->refusal != REFUSED_NOTHING || result->repeated || turn->command->data.len == 0)
		return r;
	return turn_put(turn, put_extra, view->task.seq, kind, 0, turn->command->data);
}

struct proof command_proof(const struct turn *turn, const struct command *command)
{
	return (struct proof){
		.holder = index_find_holder(&turn->store->index, command->worker),
		.principal = command->principal,
		.fence = command->fence,
		.by_name = command->by_name,
	};
}

int command_has_held(struct turn *turn, const struct task *task, uint32_t principal, bool *ret_has_held)
{
	struct span ignored;

	*ret_has_held = task->attempt > 0 && task->claimant == principal;
	if (*ret_has_held || task->attempt == 0)
		return 0;
	int r = store_rows(
		turn->store, get_extra, task->seq, EXTRA_CLAIMANT, principal, &turn->arena, &ignored);
	*ret_has_held = r == 0;
	return r == -ENOENT ? 0 : r;
}

int command_listen(struct turn *turn, const struct turn_task *view, const struct command *command)
{
	const struct task *task = &view->task;
	bool has_held = true;

	turn->tiding = command->told.tiding;
	turn->tiding.by_holder = task_is_claimed(task) && task->claimant == command->principal;
	if (command->told.by_work &&
		turn->tiding.by_holder) { /* its supervisor ends the attempt, not itself */
		const struct turn_worker *holder = turn_worker_by_number(turn, task->claim.holder);
		if (!holder)
			return -ENOMEM;
		turn->tiding.by_holder = !task_is_supervised(task, &holder->worker);
	}
	int r = command->told.may_judge ? command_has_held(turn, task, command->principal, &has_held) : 0;
	turn->tiding.is_verdict = !has_held;
	return r;
}

void command_tell(struct turn *turn, const struct turn_task *view)
{
	turn->told_seq = view->task.seq;
}

bool command_fence_is_of_before(const struct turn *turn, const struct command *command)
{
	return command->fence >= FENCE_GENERATION_STEP &&
		command->fence / FENCE_GENERATION_STEP < turn->store->generation;
}

/* ---- all of them ---------------------------------------------------------------------------------- */

static int dispatch(struct turn *turn, const struct command *command, struct result *result)
{
	switch (command->kind) {
	case COMMAND_CREATE:
		return run_create(turn, command, result);
	case COMMAND_UPDATE:
		return run_update(turn, command, result);
	case COMMAND_CANCEL:
	case COMMAND_STOP:
		return run_call_off(turn, command, result);
	case COMMAND_RETRY:
		return run_retry(turn, command, result);
	case COMMAND_PARK:
		return run_simple(turn, command, task_park, result);
	case COMMAND_UNPARK:
		return run_simple(turn, command, task_unpark, result);
	case COMMAND_ANSWER:
		return run_answer(turn, command, result);
	case COMMAND_PASS:
		return run_simple(turn, command, task_pass, result);
	case COMMAND_REJECT:
		return run_simple(turn, command, task_reject, result);
	case COMMAND_VERDICT:
		return run_verdict(turn, command, result);
	case COMMAND_EMIT:
		return run_emit(turn, command, result);
	case COMMAND_PURGE:
		return run_purge(turn, command, result);
	case COMMAND_QUEUE_SET:
		return run_queue_set(turn, command, result);
	case COMMAND_EXECUTION_SET:
		return run_execution_set(turn, command, result);
	case COMMAND_CLAIM_NEXT:
		return run_claim_next(turn, command, result);
	case COMMAND_CLAIM:
		return run_claim(turn, command, result);
	case COMMAND_PROGRESS:
	case COMMAND_COMPLETE:
	case COMMAND_FAIL:
	case COMMAND_REPORT:
	case COMMAND_BLOCK:
	case COMMAND_ASK:
	case COMMAND_RELEASE:
		return run_report(turn, command, result);
	case COMMAND_LOG:
		return run_log(turn, command, result);
	case COMMAND_RETURN:
		return run_return(turn, command, result);
	case COMMAND_REGISTER:
	case COMMAND_BEAT:
		return run_beat(turn, command, result);
	case COMMAND_QUIET:
	case COMMAND_TERMINATE:
	case COMMAND_LEAVE:
		return run_worker_command(turn, command, result);
	case COMMAND_SLOT_CRASH:
	case COMMAND_UNQUARANTINE:
		return run_slot(turn, command, result);
	case COMMAND_SLOT_ASSIGN:
		return run_slot_assign(turn, command, result);
	case COMMAND_SLOT_ENTER:
		return run_slot_enter(turn, command, result);
	case COMMAND_TOKEN_PUT:
		return run_token_put(turn, command, result);
	case COMMAND_TOKEN_REVOKE:
		return run_token_revoke(turn, command, result);
	case COMMAND_AUDIT:
		return run_audit(turn, command, result);
	case COMMAND_KIND_COUNT:
		break;
	}
	assert(0 && "a command has a kind");
	return 0;
}

int command_run(struct turn *turn, const struct command *command, struct result *result)
{
	struct names *names = &turn->store->names;
	uint32_t known = names->count;
	int64_t before = turn->last_event;

	*result = (struct result){0};
	turn->command = command;
	turn->names_spent = false;
	turn->told_seq = 0;
	turn->given.random = rng_u32(&turn->store->rng);
	int r = dispatch(turn, command, result);
	if (result->refusal != REFUSED_NOTHING)
		names_rewind(names, known);
	else if (r == 0)
		r = turn_keep_names(turn, known);
	result->names_spent = turn->names_spent;
	turn->command = NULL;
	result->event_seq = turn->last_event > before ? turn->last_event : 0;
	return r;
}
