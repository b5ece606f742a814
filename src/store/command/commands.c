/*
 * Every command by its kind, and what most of them have in common.
 */
#include <assert.h>
#include <errno.h>

#include "store/command/commands.h"
#include "store/command/subtask.h"

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
	} else if (decision->event == EVENT_TASK_ASKED || decision->event == EVENT_TASK_ANSWERED) {
		record_fact(record, FACT_QUESTION, turn->question);
		if (turn->command && turn->command->kind == COMMAND_ASK && turn->command->ask.withdraws != 0)
			record_fact(record, FACT_WITHDRAWN, 1);
	} else if (decision->event == EVENT_TASK_PROGRESSED) {
		if (turn->command && turn->command->kind != COMMAND_PROGRESS && claim->reported)
			record_fact(record, FACT_REPORTED, 1);
	} else if (decision->event == EVENT_TASK_UPDATED) {
		if (claim->stopping && !before->claim.stopping)
			record_fact(record, FACT_STOPPING, 1);
	}
}

int command_write(struct turn *turn, struct turn_task *view, const struct task_decision *decision,
	struct result *result)
{
	result->repeated = decision->repeated;
	if (decision->refusal != REFUSED_NOTHING)
		return command_refuse(result, decision->refusal);
	struct record record = turn_record(turn, decision->event);
	add_facts(turn, &record, &view->task, decision);
	if (turn->command && turn->command->by_name && decision->event != EVENT_TASK_UPDATED)
		record_fact(&record, FACT_NAME_ONLY, 1);
	int r = turn_write_task(turn, view, decision, &record);
	result->task = view->task;
	return r;
}

/* Stage an accepted decision and keep what came with the command. */
int command_write_keeping(struct turn *turn, struct turn_task *view, const struct task_decision *decision,
	enum extra_kind kind, struct result *result)
{
	int r = command_write(turn, view, decision, result);

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
	int r = command_has_held_one(turn, task, principal, ret_has_held);

	if (r < 0 || *ret_has_held || (task->subtask_of == 0 && task->subtasks == SUBTASKS_NONE))
		return r;
	return subtasks_tree_held(turn, task->seq, principal, ret_has_held);
}

int command_has_held_one(struct turn *turn, const struct task *task, uint32_t principal, bool *ret_has_held)
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

int command_prepare_workflow_event(
	struct turn *turn, const struct turn_task *view, const struct command *command)
{
	const struct task *task = &view->task;
	bool has_held = true;

	turn->outside_event = command->told.event;
	turn->outside_event.by_holder = task_is_claimed(task) && task->claimant == command->principal;
	if (command->told.by_work &&
		turn->outside_event.by_holder) { /* its supervisor ends the attempt, not itself */
		const struct turn_worker *holder = turn_worker_by_number(turn, task->claim.holder);
		if (!holder)
			return -ENOMEM;
		turn->outside_event.by_holder = !task_is_supervised(task, &holder->worker);
	}
	int r = command->told.may_judge ? command_has_held(turn, task, command->principal, &has_held) : 0;
	turn->outside_event.is_verdict = !has_held;
	return r;
}

void command_apply_workflow_event(struct turn *turn, const struct turn_task *view)
{
	turn->outside_event_task = view->task.seq;
}

bool command_fence_is_of_before(const struct turn *turn, const struct command *command)
{
	return command->fence >= FENCE_GENERATION_STEP &&
		command->fence / FENCE_GENERATION_STEP < turn->store->generation;
}

/* ---- all of them ---------------------------------------------------------------------------------- */

/* How a command is run: by itself, or on the task that it names, or by a decision that needs nothing but that task. */
struct command_way {
	int (*run)(struct turn *turn, const struct command *command, struct result *result);
	int (*run_on)(struct turn *turn, struct turn_task *view, struct result *result);
	struct task_decision (*decide)(const struct task *task, const struct given *given);
	bool any_version; /* run_on judges the version itself */
};

static const struct command_way ways[COMMAND_KIND_COUNT] = {
	[COMMAND_CREATE] = {.run = execute_create},
	[COMMAND_UPDATE] = {.run_on = execute_update},
	[COMMAND_CANCEL] = {.run_on = execute_call_off},
	[COMMAND_STOP] = {.run_on = execute_call_off},
	[COMMAND_RETRY] = {.run_on = execute_retry},
	[COMMAND_PARK] = {.decide = task_park},
	[COMMAND_UNPARK] = {.decide = task_unpark},
	[COMMAND_ANSWER] = {.run_on = execute_answer},
	[COMMAND_PASS] = {.decide = task_pass},
	[COMMAND_REJECT] = {.decide = task_reject},
	[COMMAND_VERDICT] = {.run_on = execute_verdict},
	[COMMAND_EMIT] = {.run_on = execute_emit, .any_version = true},
	[COMMAND_PURGE] = {.run_on = execute_purge},
	[COMMAND_TELL] = {.run_on = execute_tell},
	[COMMAND_HOLD_SET] = {.run = execute_hold},
	[COMMAND_HOLD_LIFT] = {.run = execute_hold},
	[COMMAND_BUDGET_SET] = {.run = execute_budget},
	[COMMAND_SCHEDULE_PUT] = {.run = execute_schedule_put},
	[COMMAND_SCHEDULE_REMOVE] = {.run = execute_schedule},
	[COMMAND_SCHEDULE_RUN] = {.run = execute_schedule},
	[COMMAND_SCHEDULE_PAUSE] = {.run = execute_schedule},
	[COMMAND_SCHEDULE_RESUME] = {.run = execute_schedule},
	[COMMAND_GROUP_CLOSE] = {.run = execute_group},
	[COMMAND_GROUP_REMOVE] = {.run = execute_group},
	[COMMAND_BULK_START] = {.run = execute_bulk},
	[COMMAND_BULK_STOP] = {.run = execute_bulk},
	[COMMAND_BULK_STEP] = {.run = execute_bulk},
	[COMMAND_QUEUE_SET] = {.run = execute_queue_set},
	[COMMAND_QUEUE_LIMIT] = {.run = execute_queue_limit},
	[COMMAND_EXECUTION_SET] = {.run = execute_execution_set},
	[COMMAND_INBOX_KEEP] = {.run = execute_inbox},
	[COMMAND_INBOX_DROP] = {.run = execute_inbox},
	[COMMAND_CLAIM_NEXT] = {.run = execute_claim_next},
	[COMMAND_CLAIM] = {.run = execute_claim},
	[COMMAND_PROGRESS] = {.run_on = execute_report, .any_version = true},
	[COMMAND_COMPLETE] = {.run_on = execute_report, .any_version = true},
	[COMMAND_FAIL] = {.run_on = execute_report, .any_version = true},
	[COMMAND_REVIEW] = {.run_on = execute_report, .any_version = true},
	[COMMAND_BLOCK] = {.run_on = execute_report, .any_version = true},
	[COMMAND_ASK] = {.run_on = execute_report, .any_version = true},
	[COMMAND_WAIT] = {.run_on = execute_report, .any_version = true},
	[COMMAND_RELEASE] = {.run_on = execute_report, .any_version = true},
	[COMMAND_LOG] = {.run_on = execute_log, .any_version = true},
	[COMMAND_RETURN] = {.run_on = execute_return, .any_version = true},
	[COMMAND_REGISTER] = {.run = execute_beat},
	[COMMAND_BEAT] = {.run = execute_beat},
	[COMMAND_QUIET] = {.run = execute_worker_command},
	[COMMAND_TERMINATE] = {.run = execute_worker_command},
	[COMMAND_LEAVE] = {.run = execute_worker_command},
	[COMMAND_SLOT_CRASH] = {.run = execute_slot},
	[COMMAND_UNQUARANTINE] = {.run = execute_slot},
	[COMMAND_SLOT_ASSIGN] = {.run = execute_slot_assign},
	[COMMAND_SLOT_ENTER] = {.run = execute_slot_enter},
	[COMMAND_TOKEN_PUT] = {.run = execute_token_put},
	[COMMAND_TOKEN_REVOKE] = {.run = execute_token_revoke},
	[COMMAND_ENROL] = {.run = execute_enrol},
	[COMMAND_TOKEN_RENEW] = {.run = execute_token_renew},
	[COMMAND_LOGIN_CODE] = {.run = execute_login_code},
	[COMMAND_LOGIN] = {.run = execute_login},
	[COMMAND_LOGOUT] = {.run = execute_logout},
	[COMMAND_KEY_ROTATE] = {.run = execute_key_rotate},
	[COMMAND_AUDIT] = {.run = execute_audit},
};

static int dispatch(struct turn *turn, const struct command *command, struct result *result)
{
	const struct command_way *way = &ways[command->kind];
	struct turn_task *view;

	if (way->run)
		return way->run(turn, command, result);
	int r = way->any_version ? command_find(turn, command, result, &view)
				 : command_load(turn, command, result, &view);
	if (r < 0 || !view)
		return r;
	if (way->run_on)
		return way->run_on(turn, view, result);
	assert(way->decide); /* every kind has a way */
	struct task_decision decision = way->decide(&view->task, &turn->given);
	return command_write(turn, view, &decision, result);
}

int command_run(struct turn *turn, const struct command *command, struct result *result)
{
	struct names *names = &turn->store->names;
	uint32_t known = names->count;
	int64_t before = turn->facts.last_event;

	assert(command->kind > 0);
	assert(command->kind < COMMAND_KIND_COUNT);
	assert(!turn->command); /* one command at a time */
	*result = (struct result){0};
	turn->command = command;
	turn->names_spent = false;
	turn->outside_event_task = 0;
	turn->given.random = rng_u32(&turn->store->rng);
	int r = dispatch(turn, command, result);
	if (result->refusal != REFUSED_NOTHING)
		names_rewind(names, known);
	else if (r == 0)
		r = turn_keep_names(turn, known);
	result->names_spent = turn->names_spent;
	turn->command = NULL;
	result->event_seq = turn->facts.last_event > before ? turn->facts.last_event : 0;
	return r;
}
