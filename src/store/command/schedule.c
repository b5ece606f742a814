/*
 * Schedules: made, changed, paused and removed by operators; occurrences that are due, or wanted by hand; and what the end of a
 * task means for the schedule that made it.
 *
 * An occurrence enters the turn as a create like any other: its key, its parents, the quota of its maker and the state of its queue
 * decide about it. The task, its event and the schedule's last planned instant are rows of one transaction.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base36.h"
#include "store/command/commands.h"
#include "store/read/sound.h"
#include "store/record/schedule.h"

enum {
	SCHEDULES_PER_TURN = 100, /* that are looked at by one turn; the next one goes on */
	ACTOR_BYTES_MAX = COMMAND_ID_MAX + 16,
};

/* ---- rows and events --------------------------------------------------------------------------------------- */

static int put_state(struct turn *turn, const struct turn_schedule *view)
{
	buf_clear(&turn->record);
	int r = schedule_state_put(&view->state, &turn->record);
	return r < 0 ? r
		     : turn_put(turn, put_small, SMALL_SCHEDULE_STATE, view->definition->schedule.id,
			       buf_span(&turn->record));
}

static int put_definition(struct turn *turn, const struct turn_schedule *view)
{
	buf_clear(&turn->record);
	int r = schedule_put(&view->definition->schedule, &turn->record);
	return r < 0 ? r
		     : turn_put(turn, put_small, SMALL_SCHEDULE, view->definition->schedule.id,
			       buf_span(&turn->record));
}

static struct record schedule_record(
	const struct turn *turn, const struct turn_schedule *view, enum event_kind kind)
{
	struct record record = turn_record(turn, kind);

	record.subject = view->definition->schedule.id;
	return record;
}

/* People are told once in a row of failures and skips. */
static int tell_failing(
	struct turn *turn, const struct turn_schedule *view, const struct schedule_state *before)
{
	if (!schedule_is_failing_now(before, &view->state))
		return 0;
	struct record record = schedule_record(turn, view, EVENT_SCHEDULE_FAILING);
	record.note = (struct span){0};
	record_fact(&record, FACT_STREAK, view->state.streak);
	return turn_write_event(turn, &record);
}

static int skip_occurrences(struct turn *turn, struct turn_schedule *view, const struct occurrence *skipped)
{
	struct schedule_state before = view->state;
	struct record record = schedule_record(turn, view, EVENT_SCHEDULE_SKIPPED);

	record_fact(&record, FACT_PLANNED, skipped->at_ms);
	if (skipped->count > 1) {
		record_fact(&record, FACT_PLANNED_FROM, skipped->from_ms);
		record_fact(&record, FACT_PLANNED_COUNT, skipped->count);
	}
	record_fact(&record, FACT_SKIP, skipped->skip);
	int r = turn_write_event(turn, &record);
	schedule_skipped(&view->state, skipped);
	return r < 0 ? r : tell_failing(turn, view, &before);
}

static int skip_one(struct turn *turn, struct turn_schedule *view, int64_t at_ms, enum skip skip)
{
	struct occurrence skipped = {at_ms, at_ms, 1, 0, OUTCOME_SKIPPED, skip};

	return skip_occurrences(turn, view, &skipped);
}

/* ---- one occurrence ------------------------------------------------------------------------------------------ */

/* A command of the schedule itself, inside another one or a timer. */
static int run_inner(
	struct turn *turn, struct turn_schedule *view, struct command *command, struct result *result)
{
	const struct schedule *schedule = &view->definition->schedule;
	const struct command *outer = turn->command;
	char *actor = arena_alloc(&turn->arena, ACTOR_BYTES_MAX);

	if (!actor)
		return -ENOMEM;
	command->actor = (struct span){
		actor, (size_t)snprintf(actor, ACTOR_BYTES_MAX, "schedule:%.*s", SPAN_ARGS(schedule->id))};
	command->principal = schedule->principal;
	command->oversees = schedule->oversees;
	turn->command = NULL;
	int r = command_run(turn, command, result);
	turn->command = outer;
	return r;
}

static int cancel_task(struct turn *turn, struct turn_schedule *view, int64_t seq)
{
	struct command *command = arena_alloc(&turn->arena, sizeof *command);
	struct turn_task *task;
	struct result result;

	if (!command)
		return -ENOMEM;
	*command = (struct command){.kind = COMMAND_CANCEL};
	int r = turn_task(turn, seq, &task);
	if (r == 0)
		r = turn_id_text(turn, task, &command->task);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return run_inner(turn, view, command, &result);
}

/* The newest first: the end of one lets the next go. `but` stays. */
static int cancel_open(struct turn *turn, struct turn_schedule *view, bool held_only, int64_t but)
{
	int64_t open[SCHEDULE_OPEN_MAX];
	uint32_t count = view->state.open_count;
	struct turn_task *task;
	int r = 0;

	memcpy(open, view->state.open, count * sizeof *open);
	while (r == 0 && count-- > 0) {
		r = turn_task(turn, open[count], &task);
		if (r == -ENOENT) {
			r = 0;
			continue;
		}
		if (r == 0 && open[count] != but && (!held_only || task->task.occurrence == OCCURRENCE_HELD))
			r = cancel_task(turn, view, open[count]);
	}
	return r;
}

static enum skip skip_of(const struct result *result)
{
	if (result->deduplicated || result->refusal == REFUSED_TASK_EXISTS)
		return SKIP_KEY_HELD;
	if (result->refusal == REFUSED_QUEUE_DRAINING)
		return SKIP_DRAINING;
	if (result->refusal == REFUSED_QUOTA_EXCEEDED)
		return SKIP_QUOTA;
	if (result->refusal == REFUSED_QUEUE_FULL)
		return SKIP_MAX_OPEN;
	if (result->refusal == REFUSED_GROUP_CLOSED)
		return SKIP_GROUP;
	if (result->refusal == REFUSED_INVALID)
		return SKIP_PARENT;
	if (result->refusal == REFUSED_TOO_LARGE)
		return SKIP_TOO_LARGE;
	return result->refusal == REFUSED_NOTHING ? SKIP_NOTHING : SKIP_REFUSED;
}

static int64_t planned(int64_t relative_ms, int64_t at_ms)
{
	return relative_ms == 0 ? 0 : at_ms + relative_ms;
}

/* The task of the occurrence, by the template. */
static int create_task(
	struct turn *turn, struct turn_schedule *view, int64_t at_ms, bool waits, struct result *result)
{
	const struct schedule *schedule = &view->definition->schedule;
	struct command *command = arena_alloc(&turn->arena, sizeof *command);

	if (!command)
		return -ENOMEM;
	*command = (struct command){.kind = COMMAND_CREATE};
	struct command_create *create = &command->create;
	int r = template_read(schedule->template, &turn->arena, create);
	if (r < 0)
		return r == -EPROTO ? store_damaged(turn->store, "small", SMALL_SCHEDULE) : r;
	int64_t jitter_ms = schedule_jitter_ms(schedule->id, at_ms, schedule->jitter_ms);
	create->not_before_ms = planned(create->not_before_ms + jitter_ms, at_ms);
	create->start_by_ms = planned(create->start_by_ms, at_ms);
	create->finish_by_ms = planned(create->finish_by_ms, at_ms);
	create->schedule = schedule->id;
	create->planned_ms = at_ms;
	create->held = waits && view->state.open_count > 0;
	return run_inner(turn, view, command, result);
}

static int note_made(struct turn *turn, struct turn_schedule *view, int64_t at_ms, const struct result *made)
{
	struct record record = schedule_record(turn, view, EVENT_SCHEDULE_FIRED);
	bool cancels = view->definition->schedule.overlap == OVERLAP_CANCEL;

	record.id = made->id;
	record_fact(&record, FACT_PLANNED, at_ms);
	schedule_made(&view->state, at_ms, made->task.seq);
	int r = turn_write_event(turn, &record);
	/* the new one is there before the old one is called off: what cannot be made stops nobody */
	return r < 0 || !cancels ? r : cancel_open(turn, view, false, made->task.seq);
}

/* An occurrence that is due makes its task, or is skipped. */
static int occur(struct turn *turn, struct turn_schedule *view, int64_t at_ms)
{
	struct overlap_decision overlap = schedule_overlap(&view->state, view->definition->schedule.overlap);
	struct result made = {0};

	if (schedule_has_made(&view->state, at_ms))
		overlap.skip = SKIP_MADE;
	if (overlap.skip != SKIP_NOTHING)
		return skip_one(turn, view, at_ms, overlap.skip);
	int r = create_task(turn, view, at_ms, overlap.waits, &made);
	if (r < 0)
		return r;
	enum skip skip = skip_of(&made);
	return skip != SKIP_NOTHING ? skip_one(turn, view, at_ms, skip) : note_made(turn, view, at_ms, &made);
}

static int run_due(struct turn *turn, struct turn_schedule *view)
{
	struct schedule_due *due = arena_alloc(&turn->arena, sizeof *due);
	int r = 0;

	if (!due)
		return -ENOMEM;
	schedule_due(&view->definition->plan, view->definition->schedule.catch_up, &view->state,
		turn->given.now.wall_ms, due);
	view->state.last_ms = due->last_ms;
	if (due->missed.count > 0)
		r = skip_occurrences(turn, view, &due->missed);
	for (uint32_t i = 0; r == 0 && i < due->count; i++)
		r = occur(turn, view, due->make[i]);
	return r < 0 ? r : put_state(turn, view);
}

int schedules_run(struct turn *turn)
{
	const struct schedules *schedules = &turn->store->schedules;
	struct turn_schedule *view;
	uint32_t ran = 0;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < schedules->count && ran < SCHEDULES_PER_TURN; i++) {
		if (schedules->items[i]->next_ms > turn->given.now.wall_ms)
			continue;
		r = turn_schedule(turn, schedules->items[i]->definition->schedule.id, &view);
		if (r == 0)
			r = run_due(turn, view);
		ran++;
	}
	return r;
}

/* ---- what its tasks do ------------------------------------------------------------------------------------------ */

/* The oldest of its open tasks waits for none of them. */
static int free_first(struct turn *turn, struct turn_schedule *view)
{
	struct turn_task *task;

	if (view->state.open_count == 0)
		return 0;
	int r = turn_task(turn, view->state.open[0], &task);
	if (r < 0)
		return store_must_find(turn->store, r, view->state.open[0]);
	struct task_decision decision = task_schedule_free(&task->task, &turn->given);
	if (decision.event == EVENT_NONE)
		return 0;
	struct record record = turn_record(turn, decision.event);
	record.note = (struct span){0};
	return turn_write_task(turn, task, &decision, &record);
}

int schedule_follow_task(struct turn *turn, const struct turn_task *task)
{
	bool is_final = task_state_is_final(task->task.state);
	struct turn_schedule *view;
	struct span data, id;
	int64_t at_ms;

	int r = store_rows(turn->store, get_extra, task->task.seq, EXTRA_SCHEDULE, 0, &turn->arena, &data);
	if (r < 0)
		return store_must_find(turn->store, r, task->task.seq);
	if (!schedule_of_task_read(data, &id, &at_ms))
		return store_damaged(turn->store, "task_extra", task->task.seq);
	r = turn_schedule(turn, id, &view);
	if (r < 0 || !view)
		return r; /* it was removed */
	struct schedule_state before = view->state;
	schedule_task_ended(&view->state, task->task.seq, is_final ? task->task.state : TASK_NOWHERE);
	r = tell_failing(turn, view, &before);
	if (r == 0)
		r = put_state(turn, view);
	return r < 0 ? r : free_first(turn, view);
}

int schedules_begin_again(struct turn *turn)
{
	const struct schedules *schedules = &turn->store->schedules;
	struct turn_schedule *view;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < schedules->count; i++) {
		r = turn_schedule(turn, schedules->items[i]->definition->schedule.id, &view);
		if (r < 0)
			break;
		schedule_begin(&view->state, turn->given.now.wall_ms, false);
		r = put_state(turn, view);
	}
	return r;
}

/* ---- what operators do ------------------------------------------------------------------------------------------ */

static int write_change(struct turn *turn, struct turn_schedule *view, enum event_kind kind)
{
	struct record record = schedule_record(turn, view, kind);
	int r = turn_write_event(turn, &record);

	view->state.version = record.seq;
	return r < 0 ? r : put_state(turn, view);
}

static int new_definition(struct turn *turn, const struct command *command,
	const struct turn_schedule *before, struct definition **ret_definition)
{
	const struct command_schedule *said = &command->schedule;
	struct schedule schedule = said->schedule;
	int64_t now_ms = turn->given.now.wall_ms;
	struct buf template = {.max = 4 << 20};

	schedule.anchor_ms = schedule.updated_ms = now_ms;
	schedule.created_ms = before ? before->definition->schedule.created_ms : now_ms;
	schedule.maker = command->actor;
	schedule.principal = command->principal;
	schedule.oversees = command->oversees;
	int r = template_put(said->create, &template);
	schedule.template = buf_span(&template);
	if (r == 0)
		r = definition_new(&turn->store->schedules, &schedule, ret_definition);
	buf_done(&template);
	return r;
}

int execute_schedule_put(struct turn *turn, const struct command *command, struct result *result)
{
	const struct command_schedule *said = &command->schedule;
	struct definition *definition;
	struct turn_schedule *view;

	int r = turn_schedule(turn, said->schedule.id, &view);
	if (r < 0)
		return r;
	if (said->changes ? !view : view != NULL)
		return command_refuse(result, said->changes ? REFUSED_NOT_FOUND : REFUSED_SCHEDULE_EXISTS);
	if (view && command->if_version != 0 && command->if_version != view->state.version)
		return command_refuse(result, REFUSED_VERSION_MISMATCH);
	if (!view && turn->store->schedules.count + turn->schedules_new >= SCHEDULES_MAX)
		return command_refuse(result, REFUSED_TOO_LARGE);
	r = new_definition(turn, command, view, &definition);
	if (r < 0)
		return r;
	if (view) {
		definition_free(view->definition);
		view->definition = definition;
	} else {
		r = turn_add_schedule(turn, definition, &view);
		turn->schedules_new += r == 0;
	}
	if (r < 0)
		return r;
	view->state.paused = said->paused;
	schedule_begin(&view->state, turn->given.now.wall_ms, true);
	r = put_definition(turn, view);
	return r < 0
		? r
		: write_change(turn, view, said->changes ? EVENT_SCHEDULE_UPDATED : EVENT_SCHEDULE_CREATED);
}

static int remove_schedule(struct turn *turn, struct turn_schedule *view)
{
	struct span id = view->definition->schedule.id;
	struct record record = schedule_record(turn, view, EVENT_SCHEDULE_REMOVED);

	int r = cancel_open(turn, view, true, 0);
	if (r == 0)
		r = turn_write_event(turn, &record);
	if (r < 0)
		return r;
	view->gone = true;
	turn_put(turn, delete_small, SMALL_SCHEDULE, id);
	return turn_put(turn, delete_small, SMALL_SCHEDULE_STATE, id);
}

static int set_paused(struct turn *turn, struct turn_schedule *view, bool paused, struct result *result)
{
	if (view->state.paused == paused) {
		result->repeated = true;
		return 0;
	}
	view->state.paused = paused;
	if (!paused)
		schedule_begin(&view->state, turn->given.now.wall_ms, false);
	return write_change(turn, view, EVENT_SCHEDULE_UPDATED);
}

/* By hand: what would be skipped is refused, and a task that runs is no reason to skip. */
static int run_by_hand(
	struct turn *turn, const struct command *command, struct turn_schedule *view, struct result *result)
{
	int64_t at_ms = command->schedule.at_ms != 0 ? command->schedule.at_ms : turn->given.now.wall_ms;
	struct overlap_decision overlap = schedule_overlap(&view->state, view->definition->schedule.overlap);
	struct schedule_state before = view->state;

	if (overlap.skip == SKIP_QUEUE_FULL)
		return command_refuse(result, REFUSED_TOO_LARGE);
	if (command->schedule.at_ms != 0 &&
		!schedule_take_skipped(&view->definition->plan, &view->state, at_ms))
		return command_refuse(result, REFUSED_INVALID);
	/* now is an instant of its own: two requests in one millisecond are two */
	while (command->schedule.at_ms == 0 && schedule_has_made(&view->state, at_ms))
		at_ms++;
	int r = create_task(turn, view, at_ms, overlap.waits, result);
	enum skip skip = r == 0 ? skip_of(result) : SKIP_NOTHING;
	if (skip == SKIP_KEY_HELD)
		result->refusal = REFUSED_TASK_EXISTS;
	if (skip != SKIP_NOTHING)
		view->state = before; /* what was skipped stays skipped */
	if (r < 0 || skip != SKIP_NOTHING)
		return r;
	struct result made = *result;
	r = note_made(turn, view, at_ms, &made);
	return r < 0 ? r : put_state(turn, view);
}

int execute_schedule(struct turn *turn, const struct command *command, struct result *result)
{
	struct turn_schedule *view;

	int r = turn_schedule(turn, command->schedule.schedule.id, &view);
	if (r < 0)
		return r;
	if (!view)
		return command_refuse(result, REFUSED_NOT_FOUND);
	if (command->if_version != 0 && command->if_version != view->state.version)
		return command_refuse(result, REFUSED_VERSION_MISMATCH);
	if (command->kind == COMMAND_SCHEDULE_REMOVE)
		return remove_schedule(turn, view);
	if (command->kind == COMMAND_SCHEDULE_RUN)
		return run_by_hand(turn, command, view, result);
	return set_paused(turn, view, command->kind == COMMAND_SCHEDULE_PAUSE, result);
}
