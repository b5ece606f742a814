/*
 * Events from outside: each becomes one event of its task, and an event with an id acts once. An event that a rule of
 * the task's workflow names moves the task; and so does a verdict at its gates.
 *
 * The latest ids are remembered beside the task, for as long as there is one: a row by the digest of the id, and a
 * ring of digests that says which of them is the oldest.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "store/command/commands.h"
#include "store/read/sound.h"

/* What is remembered of one. */
struct emitted {
	unsigned char fingerprint[16];
	int64_t seq, wall_ms;
	struct span id;
};

static void encode_emitted(const struct emitted *emitted, struct buf *out)
{
	buf_clear(out);
	buf_put(out, emitted->fingerprint, sizeof emitted->fingerprint);
	buf_put_svarint(out, emitted->seq);
	buf_put_svarint(out, emitted->wall_ms);
	buf_put_bytes(out, emitted->id);
}

static int decode_emitted(struct span data, struct emitted *ret_emitted)
{
	struct reader reader;

	reader_init(&reader, data);
	for (size_t i = 0; i < sizeof ret_emitted->fingerprint; i++)
		ret_emitted->fingerprint[i] = reader_byte(&reader);
	ret_emitted->seq = reader_svarint(&reader);
	ret_emitted->wall_ms = reader_svarint(&reader);
	ret_emitted->id = reader_bytes(&reader);
	return reader_is_done(&reader) ? 0 : -EPROTO;
}

/* Did it act before? Sets *ret_is_answered if the result is complete. */
static int emitted_before(struct turn *turn, const struct turn_task *view, const struct command_emit *emit,
	struct result *result, bool *ret_is_answered)
{
	struct emitted emitted;
	struct span data;

	*ret_is_answered = false;
	if (emit->id.len == 0)
		return 0;
	int r = store_rows(turn->store, get_extra, view->task.seq, EXTRA_EMITTED, (int64_t)emit->digest,
		&turn->arena, &data);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (decode_emitted(data, &emitted) < 0)
		return store_damaged(turn->store, "task_extra", view->task.seq);
	if (!span_equal(emitted.id, emit->id))
		return 0; /* another id with the same digest: that one is forgotten */
	*ret_is_answered = true;
	if (memcmp(emitted.fingerprint, emit->fingerprint, sizeof emitted.fingerprint) != 0)
		return command_refuse(result, REFUSED_IDEMPOTENCY_CONFLICT);
	result->repeated = true;
	result->noted_seq = emitted.seq;
	result->noted_ms = emitted.wall_ms;
	return 0;
}

/* The number in a row of the ring, or 0. */
static int get_number(struct turn *turn, int64_t seq, int64_t n, uint64_t *ret_number)
{
	struct reader reader;
	struct span data;

	*ret_number = 0;
	int r = store_rows(turn->store, get_extra, seq, EXTRA_EMITTED_AT, n, &turn->arena, &data);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	reader_init(&reader, data);
	*ret_number = reader_uvarint(&reader);
	return reader_is_done(&reader) ? 0 : store_damaged(turn->store, "task_extra", seq);
}

static int put_number(struct turn *turn, int64_t seq, int64_t n, uint64_t number)
{
	buf_clear(&turn->record);
	buf_put_uvarint(&turn->record, number);
	return turn_put_record(turn, seq, EXTRA_EMITTED_AT, n);
}

/* The newest takes the place of the oldest. */
static int take_place(struct turn *turn, int64_t seq, uint64_t digest)
{
	uint64_t count, oldest;

	int r = get_number(turn, seq, -1, &count);
	int64_t place = (int64_t)(count % COMMAND_EMITS_MAX);
	if (r == 0)
		r = get_number(turn, seq, place, &oldest);
	if (r < 0)
		return r;
	if (count >= COMMAND_EMITS_MAX && oldest != digest)
		turn_put(turn, delete_extra, seq, EXTRA_EMITTED, (int64_t)oldest);
	r = put_number(turn, seq, place, digest);
	return r < 0 ? r : put_number(turn, seq, -1, count + 1);
}

static int remember(struct turn *turn, const struct turn_task *view, const struct command_emit *emit,
	const struct result *result)
{
	struct emitted emitted = {.seq = result->noted_seq, .wall_ms = result->noted_ms, .id = emit->id};

	if (emit->id.len == 0)
		return 0;
	memcpy(emitted.fingerprint, emit->fingerprint, sizeof emitted.fingerprint);
	int r = take_place(turn, view->task.seq, emit->digest);
	if (r < 0)
		return r;
	encode_emitted(&emitted, &turn->record);
	return turn_put_record(turn, view->task.seq, EXTRA_EMITTED, (int64_t)emit->digest);
}

/* ---- what a rule of the workflow makes of it -------------------------------------------------------- */

/* The bit of the gate of that name among those of the task; 0: it has none. */
static uint32_t gate_bit(const struct turn *turn, const struct task *task, struct span name)
{
	struct name_set gates;

	names_set_members(&turn->store->names, task->gates, &gates);
	for (uint32_t i = 0; i < gates.count; i++) {
		if (span_equal(names_text(&turn->store->names, gates.ids[i]), name))
			return UINT32_C(1) << i;
	}
	return 0;
}

/* Why it failed or was rejected, for the person who looks and for the next attempt. */
static int keep_reason(struct turn *turn, struct turn_task *view, const struct task_decision *decision)
{
	static const struct command_told nothing;
	const struct command_told *told = turn->command ? &turn->command->told : &nothing;
	struct span reason = turn->told_error.len > 0      ? turn->told_error
		: decision->task.code == CODE_CHECK_FAILED ? told->rejection
							   : told->error;

	return reason.len > 0 ? turn_put(turn, put_extra, view->task.seq, EXTRA_ERROR, 0, reason) : 0;
}

static int stage_decision(struct turn *turn, struct turn_task *view, const struct task_decision *decision,
	struct span gate, struct span note)
{
	assert(decision->refusal == REFUSED_NOTHING);
	struct record record = turn_record(turn, decision->event);
	record.note = note;
	record.subject = gate;
	if (decision->task.code != CODE_NONE && decision->event == EVENT_TASK_FAILED)
		record_fact(&record, FACT_CLASS, failure_code_class(decision->task.code));
	int r = turn_write_task(turn, view, decision, &record);
	return r < 0 || decision->event != EVENT_TASK_FAILED ? r : keep_reason(turn, view, decision);
}

/* A verdict at a gate is written down; `note` is what was said with it. */
static int stage_verdict(struct turn *turn, struct turn_task *view, struct span gate, bool passes,
	struct span note, bool *ret_repeated)
{
	struct task_decision decision = task_verdict(&view->task, gate_bit(turn, &view->task, gate), passes);

	*ret_repeated = decision.repeated;
	return decision.repeated ? 0 : stage_decision(turn, view, &decision, gate, note);
}

/* The holder says it without its fence: whose worker it is has said enough. */
static struct proof holder_of(const struct task *task)
{
	return (struct proof){
		.holder = task->claim.holder,
		.principal = task->claimant,
		.fence = task->fence,
	};
}

/* The state that goes with the new stage; event NONE: it stays as it is. */
static struct task_decision decide_by_rule(
	const struct turn *turn, const struct task *task, const struct stage_rule *rule)
{
	const struct failure failure = {.code = CODE_EXECUTION_ERROR, .klass = CLASS_TASK, .no_retry = true};
	struct proof holder = holder_of(task);

	if (rule->on_reject != STAGE_NONE)
		return task_reject(task, &turn->given);
	if (rule->to == STAGE_FAILED)
		return task_is_claimed(task) ? task_fail(task, &holder, &failure, &turn->given)
					     : task_fail_outside(task);
	if (rule->reports)
		return task_report(task, &holder, &turn->given);
	if (task->state == TASK_FAILED)
		return task_revive(task);
	if (rule->to == turn_plan(turn, task)->last)
		return task_pass(task, &turn->given);
	if (task->state == TASK_PENDING && rule->to == STAGE_IN_PROGRESS)
		return task_unpark(task, &turn->given);
	return (struct task_decision){.task = *task};
}

/* A stage that ends the workflow comes before the end that it means. */
static int move_by_rule(struct turn *turn, struct turn_task *view, const struct stage_rule *rule)
{
	const struct span none = {0};
	bool repeated;
	int r = 0;

	if ((rule->guards & GUARD_VERDICT) && view->task.state == TASK_REVIEW)
		r = stage_verdict(turn, view, SPAN(WORKFLOW_GATE), true, none, &repeated);
	command_apply_workflow_event(turn, view);
	struct task before = view->task;
	bool finishes = before.state == TASK_REVIEW && rule->to == turn_plan(turn, &before)->last;
	if (r == 0 && finishes)
		r = turn_follow(turn, view, &before);
	struct task_decision decision = decide_by_rule(turn, &view->task, rule);
	if (r < 0)
		return r;
	return decision.event == EVENT_NONE ? turn_follow(turn, view, &before)
					    : stage_decision(turn, view, &decision, none, none);
}

/* ---- verdicts ---------------------------------------------------------------------------------------- */

/* A task in review that was given no gates has this one. */
static bool is_open_review(const struct task *task, struct span gate)
{
	return task->gate_count == 0 && span_equal(gate, SPAN("review"));
}

/* A principal that did the work does not judge it; in a review without a gate, the scope is enough. */
static int verdict_refusal(
	struct turn *turn, const struct task *task, const struct command *command, struct result *result)
{
	struct span gate = command->verdict.gate;

	if (is_open_review(task, gate))
		return 0;
	if (gate_bit(turn, task, gate) == 0) {
		*result = (struct result){.id = command->task};
		return command_refuse(result, REFUSED_NOT_FOUND);
	}
	int r = command_has_held(turn, task, command->principal, &result->own_work);
	return r == 0 && result->own_work ? command_refuse(result, REFUSED_FORBIDDEN) : r;
}

/* What the verdict means for the task. */
static int follow_verdict(struct turn *turn, struct turn_task *view, const struct command *command)
{
	bool passes = command->verdict.passes;
	bool of_workflow = view->task.workflow != WORKFLOW_NONE &&
		span_equal(command->verdict.gate, SPAN(WORKFLOW_GATE));
	struct task before = view->task;

	if (!passes || of_workflow) {
		turn->outside_event = (struct outside_event){
			.type = passes ? SPAN("validator.passed") : SPAN("validator.failed"),
			.is_verdict = true,
		};
		command_apply_workflow_event(turn, view);
	}
	if (passes && view->task.workflow != WORKFLOW_NONE)
		return of_workflow ? turn_follow(turn, view, &before) : 0;
	if (passes && view->task.gates_passed != task_gates_all(&view->task))
		return 0;
	struct task_decision decision =
		passes ? task_pass(&view->task, &turn->given) : task_reject(&view->task, &turn->given);
	return stage_decision(turn, view, &decision, (struct span){0}, (struct span){0});
}

int execute_verdict(struct turn *turn, struct turn_task *view, struct result *result)
{
	const struct command *command = turn->command;
	const struct command_verdict *verdict = &command->verdict;

	int r = verdict_refusal(turn, &view->task, command, result);
	if (r < 0 || result->refusal != REFUSED_NOTHING)
		return r;
	if (view->task.state != TASK_REVIEW)
		return command_refuse(result, REFUSED_BAD_TRANSITION);
	r = stage_verdict(turn, view, verdict->gate, verdict->passes, command->note, &result->repeated);
	if (r == 0 && !result->repeated)
		r = follow_verdict(turn, view, command);
	result->task = view->task;
	return r;
}

/* ---- events ------------------------------------------------------------------------------------------ */

int execute_emit(struct turn *turn, struct turn_task *view, struct result *result)
{
	const struct command *command = turn->command;
	enum refusal refusal;
	bool settled;

	int r = emitted_before(turn, view, &command->emit, result, &settled);
	if (r < 0 || settled)
		return r;
	if (command_is_late(command, &view->task))
		return command_refuse(result, REFUSED_VERSION_MISMATCH);
	r = command_prepare_workflow_event(turn, view, command);
	if (r < 0)
		return r;
	const struct stage_rule *rule =
		workflow_find(turn_plan(turn, &view->task), &view->task, &turn->outside_event, &refusal);
	if (refusal != REFUSED_NOTHING)
		return command_refuse(result, refusal);
	struct task_decision decision = task_note(&view->task);
	r = command_write(turn, view, &decision, result);
	if (r < 0)
		return r;
	result->noted_seq = result->task.version;
	result->noted_ms = turn->given.now.wall_ms;
	r = remember(turn, view, &command->emit, result);
	if (r == 0 && rule)
		r = move_by_rule(turn, view, rule);
	result->task = view->task;
	return r;
}

/* The command at hand is about another task: what it says is nothing of this one. */
int command_tell(
	struct turn *turn, struct turn_task *view, struct span type, struct span note, struct span error)
{
	struct outside_event event = turn->outside_event;
	int64_t event_task = turn->outside_event_task;
	struct task_decision decision = task_note(&view->task);
	struct record record = turn_record(turn, decision.event);
	enum refusal refusal;

	record.note = note;
	turn->outside_event = (struct outside_event){.type = type, .is_verdict = true};
	turn->outside_event_task = 0;
	turn->told_error = error;
	const struct stage_rule *rule =
		workflow_find(turn_plan(turn, &view->task), &view->task, &turn->outside_event, &refusal);
	int r = turn_write_task(turn, view, &decision, &record);
	if (r == 0 && rule)
		r = move_by_rule(turn, view, rule);
	turn->outside_event = event;
	turn->outside_event_task = event_task;
	turn->told_error = (struct span){0};
	return r;
}
