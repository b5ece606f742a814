#include "core/flow/schedule.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"

static const char *const skip_names[SKIP_END] = {
#define X(name, number, wire, text) [SKIP_##name] = wire,
	SKIPS(X)
#undef X
};

const char *skip_name(enum skip skip)
{
	assert(skip > SKIP_NOTHING);
	assert(skip < SKIP_END);
	return skip_names[skip];
}

const char *outcome_name(enum occurrence_outcome outcome)
{
	static const char *const names[] = {
		[OUTCOME_OPEN] = "open",
		[OUTCOME_DONE] = "done",
		[OUTCOME_FAILED] = "failed",
		[OUTCOME_CANCELLED] = "cancelled",
		[OUTCOME_SKIPPED] = "skipped",
	};

	assert(outcome >= OUTCOME_OPEN);
	assert(outcome <= OUTCOME_SKIPPED);
	return names[outcome];
}

/* ---- when ------------------------------------------------------------------------------------------------ */

static int64_t floor_s(int64_t ms)
{
	return (ms >= 0 ? ms : ms - 999) / 1000;
}

static int64_t next_every(const struct schedule_plan *plan, int64_t after_ms)
{
	int64_t past_ms = after_ms - plan->anchor_ms;

	assert(plan->every_ms > 0);
	return plan->anchor_ms + (past_ms < 0 ? 1 : past_ms / plan->every_ms + 1) * plan->every_ms;
}

int64_t schedule_plan_next(const struct schedule_plan *plan, int64_t after_ms)
{
	int64_t s;

	switch (plan->kind) {
	case PLAN_CRON:
		s = plan->zone ? cron_next(&plan->cron, plan->zone, floor_s(after_ms)) : INT64_MAX;
		return s == INT64_MAX ? s : s * 1000;
	case PLAN_EVERY:
		return next_every(plan, after_ms);
	case PLAN_AT:
		return plan->at_ms > after_ms ? plan->at_ms : INT64_MAX;
	}
	return INT64_MAX;
}

int64_t schedule_next_ms(const struct schedule_state *state, const struct schedule_plan *plan)
{
	return state->paused ? INT64_MAX : schedule_plan_next(plan, state->last_ms);
}

/* ---- what is due ------------------------------------------------------------------------------------------- */

/* How many instants lie after `after_ms`, up to `upto_ms`. Of a cron line no more than SCHEDULE_COUNT_MAX are counted. */
static int64_t count_between(const struct schedule_plan *plan, int64_t after_ms, int64_t upto_ms)
{
	int64_t count = 0;

	if (plan->kind == PLAN_EVERY) {
		int64_t first_ms = next_every(plan, after_ms);
		return first_ms > upto_ms ? 0 : (upto_ms - first_ms) / plan->every_ms + 1;
	}
	for (int64_t at_ms = after_ms; count < SCHEDULE_COUNT_MAX; count++) {
		at_ms = schedule_plan_next(plan, at_ms);
		if (at_ms > upto_ms)
			break;
	}
	return count;
}

/* The last instant after `after_ms`, up to `upto_ms`; -1: none. Looks further and further back. */
static int64_t last_between(const struct schedule_plan *plan, int64_t after_ms, int64_t upto_ms)
{
	for (int64_t back_ms = 60000;; back_ms *= 2) {
		int64_t from_ms = upto_ms - after_ms > back_ms ? upto_ms - back_ms : after_ms, found_ms = -1;
		for (int64_t at_ms = schedule_plan_next(plan, from_ms); at_ms <= upto_ms;
			at_ms = schedule_plan_next(plan, at_ms))
			found_ms = at_ms;
		if (found_ms >= 0 || from_ms == after_ms)
			return found_ms;
	}
}

/* The newest missed ones that are made, oldest first; returns how many. */
static uint32_t newest(
	const struct schedule_plan *plan, int64_t after_ms, int64_t upto_ms, uint32_t most, int64_t *ret)
{
	uint32_t count = 0;

	while (count < most) {
		int64_t at_ms = last_between(plan, after_ms, upto_ms);
		if (at_ms < 0)
			break;
		ret[count++] = at_ms;
		upto_ms = at_ms - 1;
	}
	for (uint32_t i = 0; i < count / 2; i++) {
		int64_t swapped = ret[i];
		ret[i] = ret[count - 1 - i];
		ret[count - 1 - i] = swapped;
	}
	return count;
}

static uint32_t caught_up_most(enum catch_up catch_up)
{
	switch (catch_up) {
	case CATCH_UP_ONE:
		return 1;
	case CATCH_UP_SKIP:
		return 0;
	case CATCH_UP_ALL:
		return SCHEDULE_CATCH_UP_MAX;
	}
	return 0;
}

void schedule_due(const struct schedule_plan *plan, enum catch_up catch_up,
	const struct schedule_state *state, int64_t now_ms, struct schedule_due *ret_due)
{
	int64_t late_ms = now_ms - SCHEDULE_LATE_MS - 1; /* up to here they were missed */
	int64_t first_ms = schedule_next_ms(state, plan);

	*ret_due = (struct schedule_due){.last_ms = state->last_ms};
	if (first_ms > now_ms)
		return;
	int64_t from_ms = state->last_ms;
	if (first_ms <= late_ms) {
		uint32_t most = caught_up_most(catch_up);
		ret_due->count = newest(plan, from_ms, late_ms, most, ret_due->make);
		int64_t upto_ms = ret_due->count > 0 ? ret_due->make[0] - 1 : late_ms;
		if (first_ms <= upto_ms)
			ret_due->missed = (struct occurrence){
				.from_ms = first_ms,
				.at_ms = last_between(plan, from_ms, upto_ms),
				.count = count_between(plan, from_ms, upto_ms),
				.outcome = OUTCOME_SKIPPED,
				.skip = SKIP_MISSED,
			};
		from_ms = late_ms;
	}
	for (int64_t at_ms = schedule_plan_next(plan, from_ms); at_ms <= now_ms;
		at_ms = schedule_plan_next(plan, at_ms)) {
		assert(ret_due->count < SCHEDULE_DUE_MAX); /* a second lies between two */
		ret_due->make[ret_due->count++] = at_ms;
	}
	ret_due->last_ms = ret_due->count > 0 ? ret_due->make[ret_due->count - 1] : ret_due->missed.at_ms;
}

struct overlap_decision schedule_overlap(const struct schedule_state *state, enum overlap overlap)
{
	switch (overlap) {
	case OVERLAP_SKIP:
		return (struct overlap_decision){.skip = state->open_count > 0 ? SKIP_OVERLAP : SKIP_NOTHING};
	case OVERLAP_ALLOW:
		break;
	case OVERLAP_QUEUE:
		return (struct overlap_decision){
			.skip = state->open_count >= SCHEDULE_OPEN_MAX ? SKIP_QUEUE_FULL : SKIP_NOTHING,
			.waits = true};
	case OVERLAP_CANCEL:
		return (struct overlap_decision){.waits = true};
	}
	return (struct overlap_decision){0};
}

int64_t schedule_jitter_ms(struct span id, int64_t at_ms, int64_t jitter_ms)
{
	static const struct hash_key fixed = {0x7363686564756c65, 0x6a69747465720000};
	uint64_t hash = hash_u64(hash_bytes(&fixed, id.data, id.len) ^ (uint64_t)at_ms);

	return jitter_ms <= 0 ? 0 : (int64_t)(hash % ((uint64_t)jitter_ms + 1));
}

/* ---- what became of it ---------------------------------------------------------------------------------------- */

static void remember(struct schedule_state *state, const struct occurrence *occurrence)
{
	if (state->history_count == SCHEDULE_HISTORY_MAX) {
		memmove(state->history, state->history + 1,
			(SCHEDULE_HISTORY_MAX - 1) * sizeof *state->history);
		state->history_count--;
	}
	state->history[state->history_count++] = *occurrence;
}

static void forget_open(struct schedule_state *state, uint32_t at)
{
	state->open_count--;
	memmove(state->open + at, state->open + at + 1, (state->open_count - at) * sizeof *state->open);
}

void schedule_made(struct schedule_state *state, int64_t at_ms, int64_t task)
{
	struct occurrence made = {at_ms, at_ms, 1, task, OUTCOME_OPEN, SKIP_NOTHING};

	remember(state, &made);
	state->made++;
	if (state->open_count == SCHEDULE_OPEN_MAX) /* with OVERLAP_ALLOW: the newest ones are known */
		forget_open(state, 0);
	state->open[state->open_count++] = task;
}

void schedule_skipped(struct schedule_state *state, const struct occurrence *skipped)
{
	remember(state, skipped);
	state->skipped += (uint64_t)skipped->count;
	state->streak++;
}

static enum occurrence_outcome outcome_of(enum task_state end)
{
	if (end == TASK_DONE)
		return OUTCOME_DONE;
	if (end == TASK_FAILED)
		return OUTCOME_FAILED;
	return end == TASK_CANCELLED ? OUTCOME_CANCELLED : OUTCOME_OPEN;
}

void schedule_task_ended(struct schedule_state *state, int64_t task, enum task_state end)
{
	enum occurrence_outcome outcome = outcome_of(end);
	uint32_t at = 0;

	for (uint32_t i = 0; i < state->history_count; i++) {
		if (state->history[i].task == task)
			state->history[i].outcome = outcome;
	}
	while (at < state->open_count && state->open[at] != task)
		at++;
	if (outcome != OUTCOME_OPEN && at < state->open_count) {
		forget_open(state, at);
	} else if (outcome == OUTCOME_OPEN && at == state->open_count && at < SCHEDULE_OPEN_MAX) {
		memmove(state->open + 1, state->open, state->open_count * sizeof *state->open);
		state->open[0] = task;
		state->open_count++;
	}
	if (outcome == OUTCOME_DONE)
		state->streak = 0;
	if (outcome == OUTCOME_FAILED)
		state->streak++;
}

bool schedule_is_failing_now(const struct schedule_state *before, const struct schedule_state *after)
{
	return before->streak < SCHEDULE_FAILING && after->streak >= SCHEDULE_FAILING;
}

/* ---- by hand --------------------------------------------------------------------------------------------------- */

bool schedule_has_made(const struct schedule_state *state, int64_t at_ms)
{
	for (uint32_t i = 0; i < state->history_count; i++) {
		if (state->history[i].task != 0 && state->history[i].at_ms == at_ms)
			return true;
	}
	return false;
}

/* Takes the instant out of a range. What is left of the range stays, as one or two. */
static void split_range(
	const struct schedule_plan *plan, struct schedule_state *state, uint32_t index, int64_t at_ms)
{
	struct occurrence range = state->history[index], before = range, after = range;

	state->history_count--;
	memmove(state->history + index, state->history + index + 1,
		(state->history_count - index) * sizeof *state->history);
	before.at_ms = last_between(plan, range.from_ms - 1, at_ms - 1);
	before.count = before.at_ms < 0 ? 0 : count_between(plan, range.from_ms - 1, at_ms - 1);
	after.from_ms = schedule_plan_next(plan, at_ms);
	after.count = after.from_ms > range.at_ms ? 0 : range.count - before.count - 1;
	if (before.count > 0)
		remember(state, &before);
	if (after.count > 0)
		remember(state, &after);
}

bool schedule_take_skipped(const struct schedule_plan *plan, struct schedule_state *state, int64_t at_ms)
{
	if (schedule_has_made(state, at_ms) || schedule_plan_next(plan, at_ms - 1) != at_ms)
		return false;
	for (uint32_t i = state->history_count; i-- > 0;) {
		const struct occurrence *range = &state->history[i];
		if (range->outcome == OUTCOME_SKIPPED && range->from_ms <= at_ms && at_ms <= range->at_ms) {
			split_range(plan, state, i, at_ms);
			return true;
		}
	}
	return false;
}

void schedule_begin(struct schedule_state *state, int64_t now_ms, bool anew)
{
	if (anew || state->last_ms < now_ms)
		state->last_ms = now_ms;
}

/* ---- what was read ---------------------------------------------------------------------------------------------- */

#define NUMBER_MAX (INT64_MAX / 4)

static bool is_number(int64_t number)
{
	return number >= -NUMBER_MAX && number <= NUMBER_MAX;
}

static bool occurrence_is_sound(const struct occurrence *occurrence)
{
	return is_number(occurrence->from_ms) && is_number(occurrence->at_ms) && occurrence->count >= 1 &&
		is_number(occurrence->count) && occurrence->from_ms <= occurrence->at_ms &&
		occurrence->task >= 0 && is_number(occurrence->task) && occurrence->outcome >= OUTCOME_OPEN &&
		occurrence->outcome <= OUTCOME_SKIPPED && occurrence->skip < SKIP_END &&
		(occurrence->outcome == OUTCOME_SKIPPED) == (occurrence->skip != SKIP_NOTHING) &&
		(occurrence->outcome == OUTCOME_SKIPPED) == (occurrence->task == 0);
}

bool schedule_state_is_sound(const struct schedule_state *state)
{
	if (!is_number(state->last_ms) || state->history_count > SCHEDULE_HISTORY_MAX ||
		state->open_count > SCHEDULE_OPEN_MAX)
		return false;
	for (uint32_t i = 0; i < state->history_count; i++) {
		if (!occurrence_is_sound(&state->history[i]))
			return false;
	}
	for (uint32_t i = 0; i < state->open_count; i++) {
		if (state->open[i] <= 0 || !is_number(state->open[i]))
			return false;
	}
	return true;
}
