/*
 * What a holder says about its claim: progress, an end, a question (see ask.c); and a reply that was never written.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/take.h"
#include "store/command/commands.h"
#include "store/command/subtask.h"
#include "store/read/sound.h"

/* A result whose claim was lost before it arrived changes nothing, but is kept for a person: one per fence. */
static int keep_orphan(struct turn *turn, struct turn_task *view, const struct command *command)
{
	struct span kept;
	struct task_decision note = {.event = EVENT_TASK_ORPHAN_RESULT, .task = view->task};

	int r = store_rows(turn->store, get_extra, view->task.seq, EXTRA_ORPHAN, (int64_t)command->fence,
		&turn->arena, &kept);
	if (r != -ENOENT)
		return r;
	struct record record = turn_record(turn, note.event);
	record.worker = command->worker;
	r = turn_write_task(turn, view, &note, &record);
	if (r < 0)
		return r;
	return store_rows(
		turn->store, put_extra, view->task.seq, EXTRA_ORPHAN, (int64_t)command->fence, command->data);
}

enum {
	LOOK_BACK_MAX = 64,          /* events of one task that are looked at for a claim */
	NOTE_BYTES_OF_ONE = 4 << 10, /* a longer note counts as more progress */
};

static int read_event(struct turn *turn, int64_t seq, struct record *ret_record)
{
	struct span data;
	int r = store_rows(turn->store, get_event, seq, &turn->arena, &data);

	if (r == 0 && record_decode(seq, data, ret_record) < 0)
		r = store_damaged(turn->store, "event", seq);
	return r;
}

/* Was this fence given to the principal? The task has had another claim since, so that only the events know. */
static int find_claim(
	struct turn *turn, const struct task *task, const struct command *command, bool *ret_mine)
{
	uint32_t claimant = PRINCIPAL_NOBODY; /* as long as no event says otherwise */
	int64_t seq = task->version;
	bool found = false;

	*ret_mine = false;
	for (uint32_t i = 0; i < LOOK_BACK_MAX && seq > turn->store->event_base; i++) {
		struct record record;
		int r = read_event(turn, seq, &record);
		if (r < 0)
			return r == -ENOENT ? 0 : r;
		found = found ||
			(record.kind == EVENT_TASK_CLAIMED && record.columns.fence == command->fence);
		seq = record.previous;
		if (found && record_changes_claimant(&record)) { /* with that claim, or before it */
			claimant = record.columns.claimant;
			seq = 0;
		}
	}
	*ret_mine = found && seq == 0 && claimant == command->principal;
	return 0;
}

/* Is this the worker whose claim was the last? The task only knows its principal, which may have many workers; its events know
 * more. What they do not tell any more is granted. */
static int was_held_by(
	struct turn *turn, const struct task *task, const struct command *command, bool *ret_mine)
{
	int64_t seq = task->version;

	*ret_mine = true;
	for (uint32_t i = 0; i < LOOK_BACK_MAX && seq > turn->store->event_base; i++) {
		struct record record;
		int r = read_event(turn, seq, &record);
		if (r < 0)
			return r == -ENOENT ? 0 : r;
		if (record_ends_claim(&record) || record.kind == EVENT_TASK_CLAIMED) {
			*ret_mine = span_equal(record.worker, command->worker);
			return 0;
		}
		seq = record.previous;
	}
	return 0;
}

/* Is the task hidden from the caller, as another's claim is, whatever the fence? A ready task may be seen, and after a
 * restore nobody knows who had which fence. */
static bool is_hidden(const struct command *command, const struct result *result)
{
	return !command->oversees && !result->restored && result->task.state != TASK_READY;
}

int command_refuse_report(struct turn *turn, const struct command *command, struct turn_task *view,
	const struct task_decision *decision, struct result *result)
{
	bool was_mine = !decision->foreign;
	int r = 0;

	result->restored =
		decision->refusal == REFUSED_STALE_CLAIM && command_fence_is_of_before(turn, command);
	if ((decision->orphan || decision->foreign) && command->fence < view->task.fence)
		r = find_claim(turn, &view->task, command, &was_mine);
	if (r == 0 && was_mine && decision->orphan && command->data.len > 0)
		r = keep_orphan(turn, view, command);
	if (r < 0)
		return r;
	if (was_mine || !decision->foreign || !is_hidden(command, result))
		return command_refuse(result, decision->refusal);
	*result = (struct result){.id = command->task};
	return command_refuse(result, REFUSED_NOT_FOUND);
}

/* The last word of a worker ends its claim: by the rules of the workflow, or by the door that it came through. What it
 * says so has failed is not tried again. */
static struct task_decision decide_progress(const struct turn *turn, const struct task *task,
	const struct proof *proof, const struct command *command)
{
	const struct failure failure = {.code = CODE_EXECUTION_ERROR, .klass = CLASS_TASK, .no_retry = true};
	const struct outside_event *outside = &turn->outside_event;
	enum refusal refusal;
	const struct stage_rule *rule = workflow_find(turn_plan(turn, task), task, outside, &refusal);
	bool plain = command->told.ends && task->workflow == WORKFLOW_NONE;

	if (refusal != REFUSED_NOTHING && task_proof_refusal(task, proof) == REFUSED_NOTHING)
		return (struct task_decision){.refusal = refusal, .task = *task};
	if (rule ? rule->to == STAGE_FAILED : plain && outside_event_says_failed(outside))
		return task_fail(task, proof, &failure, &turn->given);
	if (rule ? rule->reports : plain && outside_event_says_done(outside))
		return task_report(task, proof, &turn->given);
	return task_progress(task, proof, command->lease_ms, &turn->given);
}

/* An account that is exhausted is held, and its task stays in line. A task without an executor would be claimed by the same
 * worker at once, because nobody says which account that would use: it waits as if there were no account. */
static struct task_decision decide_failure(const struct turn *turn, const struct task *task,
	const struct proof *proof, const struct command *command, bool has_account)
{
	struct failure failure = command->failure;

	failure.is_held = has_account && (task->executor != 0 || task->credential != 0);
	return task_fail(task, proof, &failure, &turn->given);
}

static struct task_decision decide_report(
	const struct turn *turn, const struct task *task, const struct command *command, bool has_account)
{
	struct proof proof = command_proof(turn, command);

	if (command->kind == COMMAND_PROGRESS && command->told.event.type.len > 0)
		return decide_progress(turn, task, &proof, command);
	if (command->kind == COMMAND_PROGRESS)
		return task_progress(task, &proof, command->lease_ms, &turn->given);
	if (command->kind == COMMAND_COMPLETE)
		return task_complete(task, &proof, &turn->given);
	if (command->kind == COMMAND_FAIL)
		return decide_failure(turn, task, &proof, command, has_account);
	if (command->kind == COMMAND_REVIEW)
		return task_report(task, &proof, &turn->given);
	if (command->kind == COMMAND_BLOCK)
		return task_block(task, &proof, command->failure.code, &turn->given);
	assert(command->kind == COMMAND_RELEASE); /* no other kind of command is a report */
	return task_release(task, &proof, command->delay_ms, &turn->given);
}

static enum extra_kind report_extra(enum command_kind kind, enum event_kind event)
{
	if (kind == COMMAND_PROGRESS) /* the last word of an attempt came as progress */
		return event == EVENT_TASK_REVIEWED ? EXTRA_RESULT : EXTRA_CHECKPOINT;
	if (kind == COMMAND_FAIL || kind == COMMAND_BLOCK)
		return EXTRA_ERROR;
	return kind == COMMAND_ASK ? EXTRA_QUESTION : EXTRA_RESULT;
}

/* A door that knows names shows who ended a task, and since when it had it, long after the claim is gone. */
static int keep_holder(struct turn *turn, const struct claim *before, const struct turn_task *view)
{
	unset char text[LAST_HOLDER_BYTES_MAX];

	if (!before->named || !last_holder_is_shown(view->task.state))
		return 0;
	const struct turn_worker *worker = turn_worker_by_number(turn, before->holder);
	if (!worker)
		return -ENOMEM;
	const struct task held = {.claim = *before};
	int64_t left_ms = task_lease_remaining_ms(&held, &worker->worker, &turn->given);
	struct last_holder last = {worker->id, before->claimed_wall_ms, turn->given.now.wall_ms + left_ms};
	return turn_put(turn, put_extra, view->task.seq, EXTRA_LAST_HOLDER, 0, last_holder_put(&last, text));
}

int command_keep_work_ending(
	struct turn *turn, const struct command *command, struct turn_task *view, struct result *result)
{
	struct proof proof = command_proof(turn, command);
	struct task_decision decision =
		task_hear(&view->task, &proof, command->kind == COMMAND_WAIT, &turn->given);
	struct span before = {0};
	int r = -ENOENT;

	if (decision.refusal != REFUSED_NOTHING)
		return command_refuse_report(turn, command, view, &decision, result);
	result->heard = true;
	if (view->task.claim.reported)
		r = store_rows(
			turn->store, get_extra, view->task.seq, EXTRA_REPORT, 0, &turn->arena, &before);
	if (r == 0 && span_equal(before, command->report)) {
		result->repeated = true;
		return 0;
	}
	if (r < 0 && r != -ENOENT)
		return r;
	r = command_write(turn, view, &decision, result);
	return r < 0 ? r : turn_put(turn, put_extra, view->task.seq, EXTRA_REPORT, 0, command->report);
}

int command_is_from_supervised_work(
	struct turn *turn, const struct command *command, const struct task *task, bool *ret_heard)
{
	*ret_heard = false;
	if (command->report.len == 0 || task->claim.holder == 0)
		return 0;
	const struct turn_worker *holder = turn_worker_by_number(turn, task->claim.holder);
	if (!holder)
		return -ENOMEM;
	*ret_heard = task_is_supervised(task, &holder->worker);
	return 0;
}

enum {
	FENCE_DIGITS_MAX = 20,
};

static int keep_progress(struct turn *turn, const struct task *task, struct span progress)
{
	cleanup(buf_done) struct buf kept = {0};

	buf_init(&kept, progress.len + FENCE_DIGITS_MAX + 2);
	buf_printf(&kept, "%" PRIu64 " ", task->fence);
	int r = buf_put_span(&kept, progress);
	return r < 0 ? r : turn_put(turn, put_extra, task->seq, EXTRA_PROGRESS, 0, buf_span(&kept));
}

/* What came with it beside its result. `before` is the claim as it was. */
static int keep_said(struct turn *turn, const struct turn_task *view, const struct command *command,
	const struct claim *before, enum event_kind event, const struct asking *asking)
{
	enum extra_kind kind = command->kind == COMMAND_PROGRESS ? EXTRA_SESSION : EXTRA_EVIDENCE;
	int64_t seq = view->task.seq;
	int r = keep_holder(turn, before, view);

	if (r == 0 && command->words.len > 0)
		r = turn_put(turn, put_extra, seq, EXTRA_WORDS, 0, command->words);
	if (r == 0 && command->progress.len > 0 && task_is_claimed(&view->task))
		r = keep_progress(turn, &view->task, command->progress);
	if (r == 0 && command->told.error.len > 0 && event == EVENT_TASK_FAILED)
		r = turn_put(turn, put_extra, seq, EXTRA_ERROR, 0, command->told.error);
	if (r == 0 && command->beside.len > 0)
		r = turn_put(turn, put_extra, seq, kind, 0, command->beside);
	return r == 0 && command->kind == COMMAND_ASK ? question_keep(turn, &view->task, command, asking) : r;
}

/* It is said with every report of progress, and mostly the same. */
static int keep_agent(struct turn *turn, int64_t seq, struct span agent)
{
	struct span kept;

	int r = store_get_kept(turn->store, seq, EXTRA_AGENT, &turn->arena, &kept);
	return r < 0 || span_equal(kept, agent) ? r : turn_put(turn, put_extra, seq, EXTRA_AGENT, 0, agent);
}

/* What only agents say: their session, their first prompt, what they have used. */
static int keep_agents(struct turn *turn, struct turn_task *view, const struct command *command)
{
	bool turned = false;
	int r = 0;

	if (command->prompt.len > 0)
		r = turn_put(turn, put_extra, view->task.seq, EXTRA_PROMPT, 0, command->prompt);
	if (r == 0 && command->agent.len > 0)
		r = keep_agent(turn, view->task.seq, command->agent);
	if (r == 0 && command->session.label.len > 0 && view->task.claim.holder != 0)
		r = session_find(turn, view, &command->session);
	if (r == 0 && command->usage.is_reported)
		r = usage_keep(turn, &view->task, &command->usage, &turned);
	return r == 0 && turned ? turn_tell_usage(turn, view) : r;
}

/* Who holds it now goes into the result. The progress of a name is a sign of its life. */
static int renew_holder(
	struct turn *turn, const struct turn_task *view, const struct command *command, struct result *result)
{
	struct turn_worker *worker = turn_worker_by_number(turn, view->task.claim.holder);
	int r = 0;

	if (!worker)
		return -ENOMEM;
	if (command->kind == COMMAND_PROGRESS && worker->worker.named) {
		struct worker_decision renewed = worker_renew(&worker->worker, &turn->given);
		struct record record = turn_record(turn, renewed.event);
		r = turn_write_worker(turn, worker, &renewed, &record);
	}
	result->worker = worker->worker;
	return r;
}

int command_take_pace(struct turn *turn, const struct turn_task *view, size_t times, struct result *result)
{
	struct pace *pace = view->place == MAP_NONE ? NULL : index_progress(&turn->store->index, view->place);
	uint32_t per_minute = turn->given.rules->attempt_progress;
	int64_t now_ms = turn->given.now.lease_ms;

	if (!pace) /* it was claimed a moment ago */
		return 0;
	int r = turn_pace(turn, pace);
	if (r < 0)
		return r;
	result->retry_ms = pace_wait_ms(pace, per_minute, now_ms);
	for (size_t i = 0; i < times && result->retry_ms == 0; i++)
		pace_take(pace, per_minute, now_ms);
	return result->retry_ms == 0 ? 0 : command_refuse(result, REFUSED_RATE_LIMITED);
}

/* ---- by its report ---- */

static enum command_kind kind_of(enum claim_end outcome)
{
	switch (outcome) {
	case ENDED_COMPLETE:
		return COMMAND_COMPLETE;
	case ENDED_FAIL:
		return COMMAND_FAIL;
	case ENDED_REVIEW:
		return COMMAND_REVIEW;
	case ENDED_BLOCK:
		return COMMAND_BLOCK;
	case ENDED_RELEASE:
		return COMMAND_RELEASE;
	case ENDED_WAIT:
		return COMMAND_WAIT;
	case ENDED_NOT:
	case ENDED_LOST:
		break;
	}
	assert(0 && "somebody said how it ended");
	return COMMAND_RELEASE;
}

static bool is_success(enum command_kind kind)
{
	return kind == COMMAND_COMPLETE || kind == COMMAND_REVIEW;
}

/* The command says what the work reported. A success without a result has the one that the supervisor found. */
static void take_report(struct command *command, const struct ending *report)
{
	enum command_kind kind = kind_of(report->outcome);
	bool keeps_data = report->data.len == 0 && is_success(kind) && is_success(command->kind);

	command->kind = kind;
	if (kind == COMMAND_FAIL || kind == COMMAND_BLOCK)
		command->failure = report->failure;
	if (kind == COMMAND_RELEASE)
		command->delay_ms = report->delay_ms;
	if (!keeps_data)
		command->data = report->data;
	if (report->evidence.len > 0)
		command->beside = report->evidence;
	command->note = report->note;
}

/* The claim is over, and this caller, or another process of it, ended it: the same again is answered as then. */
static bool has_ended(const struct task *task, const struct command *command)
{
	return !task_is_claimed(task) && task->fence == command->fence &&
		task->claimant == command->principal && task->ended != ENDED_NOT && task->ended != ENDED_LOST;
}

/* The supervisor said what it saw: make the command say how the attempt ends. */
static int weigh(struct turn *turn, const struct task *task, struct command *command)
{
	bool is_live = task_is_claimed(task) && task->fence == command->fence;
	struct ending report = {.outcome = ENDED_NOT};
	struct span kept;
	int r = 0;

	if (is_live && task->claim.reported)
		r = store_rows(turn->store, get_extra, task->seq, EXTRA_REPORT, 0, &turn->arena, &kept);
	if (r == 0 && is_live && task->claim.reported)
		r = ending_read(kept, &report);
	if (r < 0)
		return r;
	switch (verdict_weigh(command->seen, report.outcome, is_live && task->state == TASK_ASKING)) {
	case VERDICT_SEEN:
		break;
	case VERDICT_REPORTED:
		take_report(command, &report);
		break;
	case VERDICT_ASKED:
		command->kind = COMMAND_RELEASE;
		command->delay_ms = 0;
		command->data = (struct span){0};
		break;
	}
	if (has_ended(task, command))
		command->kind = kind_of(task->ended);
	else if (command->kind == COMMAND_COMPLETE && task->gate_count > 0)
		command->kind = COMMAND_REVIEW;
	return 0;
}

/* An agent says that it works on it: its session, and what it has changed, are on the host of its worker. */
static void note_host(struct turn *turn, const struct command *command, struct task_decision *decision)
{
	if (command->kind != COMMAND_PROGRESS || command->agent.len == 0 ||
		decision->refusal != REFUSED_NOTHING || !task_is_claimed(&decision->task))
		return;
	const struct turn_worker *holder = turn_worker_by_number(turn, decision->task.claim.holder);
	if (holder)
		task_begin_session(decision, holder->worker.process.host);
}

static int stage_report(
	struct turn *turn, struct turn_task *view, const struct command *command, struct result *result)
{
	int r = command_prepare_workflow_event(turn, view, command);
	if (r < 0)
		return r;
	command_apply_workflow_event(turn, view);
	if (command->kind == COMMAND_WAIT)
		return stage_wait(turn, view, command, result);
	unset struct task_decision decision;
	unset struct asking asking;
	bool exhausted = command->kind == COMMAND_FAIL && command->failure.klass == CLASS_QUOTA;
	struct span account = exhausted ? holds_account_of(turn, &view->task, command) : (struct span){0};
	uint64_t fence = view->task.fence;
	if (command->kind == COMMAND_ASK)
		r = question_decide(turn, &view->task, command, &asking, &decision);
	else
		decision = decide_report(turn, &view->task, command, account.len > 0);
	if (r == 0)
		note_host(turn, command, &decision);
	bool mine = true;
	if (r == 0 && decision.repeated && command->kind != COMMAND_ASK && command->worker.len > 0)
		r = was_held_by(turn, &view->task, command, &mine);
	if (r < 0)
		return r;
	if (command->kind == COMMAND_ASK)
		result->question = turn->question;
	result->asked_enough = decision.refusal == REFUSED_TOO_LARGE;
	if (!mine)
		return command_refuse(result, REFUSED_STALE_CLAIM);
	if (decision.refusal != REFUSED_NOTHING)
		return command_refuse_report(turn, command, view, &decision, result);
	/* what was said before is answered as then, however much has happened since; but what is no version at all was
	 * never the right one */
	bool repeated = decision.repeated && command->if_version >= 0;
	if (!repeated && command_is_late(command, &view->task))
		return command_refuse(result, REFUSED_VERSION_MISMATCH);
	if (decision.event == EVENT_TASK_PROGRESSED || decision.event == EVENT_TASK_ASKED)
		r = command_take_pace(turn, view, 1 + command->note.len / NOTE_BYTES_OF_ONE, result);
	if (r < 0 || result->refusal != REFUSED_NOTHING)
		return r;
	struct claim before = view->task.claim;
	r = command_write_keeping(turn, view, &decision, report_extra(command->kind, decision.event), result);
	if (r == 0 && !result->repeated)
		r = keep_said(turn, view, command, &before, decision.event, &asking);
	if (r == 0 && !result->repeated && account.len > 0)
		r = holds_note_failure(turn, account, &command->failure);
	if (r == 0 && !result->repeated)
		r = keep_agents(turn, view, command);
	if (r == 0 && command->heard != 0)
		r = tellings_heard(turn, view->task.seq, command->heard);
	result->told = turn_is_told(turn, view->task.seq);
	bool works = command->kind == COMMAND_COMPLETE || command->kind == COMMAND_REVIEW || command->uses;
	if (r == 0 && !result->repeated && works && holds_exist(turn))
		r = holds_note_success(turn, &view->task, fence);
	return r < 0 || view->task.claim.holder == 0 ? r : renew_holder(turn, view, command, result);
}

__attribute__((noinline)) static int stage_weighed(
	struct turn *turn, struct turn_task *view, const struct command *command, struct result *result)
{
	struct command weighed = *command;
	int r = weigh(turn, &view->task, &weighed);

	turn->command = &weighed; /* its event tells what the end is, not what the supervisor saw */
	if (r == 0)
		r = stage_report(turn, view, &weighed, result);
	turn->command = command;
	return r;
}

int execute_report(struct turn *turn, struct turn_task *view, struct result *result)
{
	const struct command *command = turn->command;
	bool heard;

	int r = command_is_from_supervised_work(turn, command, &view->task, &heard);
	if (r < 0)
		return r;
	if (heard && command_is_late(command, &view->task))
		return command_refuse(result, REFUSED_VERSION_MISMATCH);
	if (heard && command->kind == COMMAND_WAIT) {
		uint32_t open;
		r = subtasks_count_open(turn, view, &open);
		if (r < 0 || open == 0)
			return r < 0 ? r : execute_go_on(turn, view, command, result);
	}
	if (heard && view->task.claim.reported) { /* the first one is free */
		r = command_take_pace(turn, view, 1, result);
		if (r < 0 || result->refusal != REFUSED_NOTHING)
			return r;
	}
	if (heard)
		return command_keep_work_ending(turn, command, view, result);
	if (command->seen == SEEN_NOT_SAID)
		return stage_report(turn, view, command, result);
	return stage_weighed(turn, view, command, result);
}

int execute_return(struct turn *turn, struct turn_task *view, struct result *result)
{
	const struct command *command = turn->command;
	struct proof proof = command_proof(turn, command);

	/* its holder may have it by another reply to the same requestId, and may have used it */
	bool untouched = view->task.state == TASK_CLAIMED || view->task.version == command->version;
	if (!untouched || view->task.claim.handed_again || view->task.claim.holder != proof.holder ||
		view->task.fence != proof.fence)
		return command_refuse(result, REFUSED_STALE_CLAIM);
	struct task_decision decision = task_return(&view->task, &turn->given);
	return command_write(turn, view, &decision, result);
}
