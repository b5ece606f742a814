/*
 * Attempts, what a failure costs, and when the next try may come: C1, C2, C4, C5.
 */
#include "checker/step.h"

/* The class of the failure that this event records; WORD_NONE for other events. */
static int64_t class_of(const struct step *step)
{
	if (step->kind != WORD_TASK_FAILED || !record_gives(step->event, KEY_CLASS))
		return WORD_NONE;
	return step->event->value[KEY_CLASS];
}

static bool spends_attempt(const struct step *step)
{
	int64_t class = class_of(step);
	bool was_worked_on = ck_step_is_held_from(step) || step->from == WORD_REVIEW;

	return was_worked_on && (class == WORD_TASK || class == WORD_TIMEOUT);
}

int ck_rule_attempt(struct step *step)
{
	int64_t claims = step_before(step, KEY_ATTEMPT) + (step->kind == WORD_TASK_CLAIMED);

	return ck_step_expect(
		step, KEY_ATTEMPT, claims, "C1", "attempt rises by one with each claim, and only then");
}

/* Which outcomes an event that ends a claim may record. The first is the one it means if it says nothing. */
static const uint32_t *outcomes_of(uint32_t kind)
{
	static const uint32_t complete[] = {WORD_COMPLETE, 0};
	static const uint32_t review[] = {WORD_REVIEW, 0};
	static const uint32_t fail[] = {WORD_FAIL, 0};
	static const uint32_t block[] = {WORD_BLOCK, WORD_FAIL, WORD_RELEASE, WORD_LOST, 0};
	static const uint32_t release[] = {WORD_RELEASE, WORD_LOST, 0};
	static const uint32_t cancel[] = {
		WORD_LOST, WORD_FAIL, WORD_REVIEW, WORD_BLOCK, WORD_RELEASE, WORD_WAIT, 0};
	static const uint32_t wait[] = {WORD_WAIT, 0};
	static const uint32_t lost[] = {WORD_LOST, 0};

	switch (kind) {
	case WORD_TASK_COMPLETED:
		return complete;
	case WORD_TASK_REVIEWED:
		return review;
	case WORD_TASK_FAILED:
		return fail;
	case WORD_TASK_BLOCKED:
		return block;
	case WORD_TASK_RELEASED:
		return release;
	case WORD_TASK_SUSPENDED:
		return wait;
	case WORD_TASK_CANCELLED:
		return cancel;
	default:
		return lost;
	}
}

/* C1: each attempt ends in exactly one outcome, and its event says which. */
int ck_rule_outcome(struct step *step)
{
	static const char sentence[] = "the recorded outcome does not fit the event";

	if (step->kind == WORD_TASK_CLAIMED)
		return ck_step_expect(
			step, KEY_ENDED, WORD_NONE, "C1", "a new attempt has an outcome already");
	if (step->holder == WORD_NONE || step->after[KEY_HELD] != WORD_NONE)
		return ck_step_expect(step, KEY_ENDED, step_before(step, KEY_ENDED), "C1", sentence);
	/* told to stop for good: whatever its worker says of it then */
	bool stopped = step->kind == WORD_TASK_BLOCKED && step->after[KEY_CODE] == WORD_STOPPED;
	const uint32_t *outcome = outcomes_of(stopped ? WORD_TASK_CANCELLED : step->kind);
	if (!record_gives(step->event, KEY_ENDED)) {
		step->after[KEY_ENDED] = *outcome;
		return CHECKER_OK;
	}
	for (; *outcome != WORD_NONE; outcome++) {
		if (step->after[KEY_ENDED] == *outcome)
			return CHECKER_OK;
	}
	return ck_complain(step->checker, "C1", step->event->task, "%s", sentence);
}

int ck_rule_spent(struct step *step)
{
	struct checker *checker = step->checker;
	int64_t max = step->after[KEY_MAX_ATTEMPTS];
	int64_t spent = step_before(step, KEY_SPENT) + spends_attempt(step);

	if (step->kind == WORD_TASK_FAILED && class_of(step) == WORD_NONE)
		return ck_complain(checker, "C2", step->event->task, "a failure without a class");
	if (step->kind == WORD_TASK_RETRIED)
		spent = 0;
	if (ck_step_expect(step, KEY_SPENT, spent, "C2", "spent is not what this event costs"))
		return checker->verdict;
	if (max > 0 && spent > max)
		return ck_complain(checker, "C1", step->event->task, "spent is above max_attempts");
	if (max > 0 && spends_attempt(step) && spent == max && step->to != WORD_FAILED)
		return ck_complain(
			checker, "C1", step->event->task, "all attempts are spent, yet it goes on");
	return CHECKER_OK;
}

/* How many crashes in a row a failure of that class leaves. */
static int64_t crashes_after_failure(const struct step *step, int64_t before)
{
	int64_t class = class_of(step);

	if (class == WORD_TASK || class == WORD_TIMEOUT)
		return 0;
	/* a question waits without its process: nothing was lost with that */
	return class == WORD_CRASH && step->to != WORD_ASKING ? before : before - 1;
}

/* The crash that a claim counts in advance stays only if its holder is lost. */
static int64_t crashes_after(const struct step *step)
{
	int64_t before = step_before(step, KEY_CRASHES);
	bool held = ck_step_is_held_from(step);

	switch (step->kind) {
	case WORD_TASK_CLAIMED:
		return step->resumes ? before : before + 1;
	case WORD_TASK_REVIEWED:
	case WORD_TASK_RETRIED:
		return 0;
	case WORD_TASK_COMPLETED:
		return held ? 0 : before;
	case WORD_TASK_FAILED:
		return held ? crashes_after_failure(step, before) : before;
	case WORD_TASK_EXPIRED:
		return step->from == WORD_ASKING ? before - 1 : before;
	case WORD_TASK_BLOCKED:
	case WORD_TASK_RELEASED:
	case WORD_TASK_SUSPENDED:
	case WORD_TASK_REQUEUED:
	case WORD_TASK_CANCELLED:
	case WORD_CLAIM_UNCONFIRMED:
		return held ? before - 1 : before;
	default:
		return before;
	}
}

int ck_rule_crashes(struct step *step)
{
	struct checker *checker = step->checker;
	int64_t crashes = crashes_after(step);
	bool may_stay = step->kind == WORD_TASK_CANCELLED && ck_step_is_held_from(step);
	bool crashed = (step->kind == WORD_TASK_EXPIRED && step->from != WORD_ASKING) ||
		(ck_step_is_held_from(step) && class_of(step) == WORD_CRASH && step->to != WORD_ASKING);

	/* a cancel that waited for its worker may end with the worker's death */
	if (may_stay && step->after[KEY_ENDED] == WORD_REVIEW)
		crashes = 0;
	else if (may_stay && step->after[KEY_CRASHES] == crashes + 1)
		crashes++;
	if (ck_step_expect(step, KEY_CRASHES, crashes, "C2", "crashes is not what this event costs"))
		return checker->verdict;
	if (crashed && crashes >= checker->limits.crash_budget && step->to != WORD_FAILED)
		return ck_complain(
			checker, "C5", step->event->task, "the crash budget is spent, yet it goes on");
	if (step->kind == WORD_TASK_EXPIRED && step->to == WORD_FAILED &&
		crashes < checker->limits.crash_budget)
		return ck_complain(
			checker, "C5", step->event->task, "failed before the crash budget was spent");
	return CHECKER_OK;
}

/* C2: what costs nothing may still not go on for ever. */
int ck_rule_interruptions(struct step *step)
{
	struct checker *checker = step->checker;
	int64_t before = step_before(step, KEY_INTERRUPTIONS);
	int64_t after = step->after[KEY_INTERRUPTIONS];
	bool interrupted = step->kind == WORD_TASK_RELEASED || step->kind == WORD_CLAIM_UNCONFIRMED ||
		class_of(step) == WORD_HOST;

	if (after != before && after != before + 1 && after != 0)
		return ck_complain(checker, "C2", step->event->task, "interruptions are counted one by one");
	if (interrupted && step->from != WORD_ASKING && step->to != WORD_FAILED &&
		after >= checker->limits.interruption_budget)
		return ck_complain(checker, "C2", step->event->task, "interrupted too often, yet it goes on");
	return CHECKER_OK;
}

/* C4: the wait before the next try lies between the step of the back-off and that plus its jitter. */
static int check_backoff(struct step *step, int64_t k)
{
	const struct limits *limits = &step->checker->limits;
	int64_t wait_ms = step->after[KEY_READY_AT] - step->event->wall_ms;
	int64_t least_ms = k == 0 ? 0 : limits->retry_base_ms;

	for (int64_t i = 1; i < k && least_ms < limits->retry_max_ms; i++)
		least_ms *= 2;
	if (least_ms > limits->retry_max_ms)
		least_ms = limits->retry_max_ms;
	if (wait_ms >= least_ms && wait_ms <= least_ms + least_ms * limits->retry_jitter_percent / 100)
		return CHECKER_OK;
	return ck_complain(step->checker, "C4", step->event->task,
		"waits %lld ms where the back-off is %lld ms", (long long)wait_ms, (long long)least_ms);
}

/* A verdict or a check said no: the next attempt may begin at once. */
static bool rejects_work(const struct step *step)
{
	return step->from == WORD_REVIEW || step->after[KEY_CODE] == WORD_CHECK_FAILED;
}

static int check_next_try(struct step *step)
{
	const struct record *event = step->event;
	int64_t class = class_of(step);

	if (step->to != WORD_READY && step->to != WORD_SCHEDULED)
		return CHECKER_OK;
	/* its account is held, and the task stays in line */
	if (class == WORD_QUOTA && step->to == WORD_READY)
		return CHECKER_OK;
	if (record_gives(event, KEY_RETRY_AT) && event->value[KEY_RETRY_AT] > 0) {
		int64_t at_ms = event->value[KEY_RETRY_AT];
		if (at_ms < event->wall_ms)
			at_ms = event->wall_ms;
		return ck_step_expect(step, KEY_READY_AT, at_ms, "C4", "not at the time the worker named");
	}
	if (spends_attempt(step))
		return check_backoff(step, rejects_work(step) ? 0 : step->after[KEY_SPENT]);
	if (class == WORD_CRASH || step->kind == WORD_TASK_EXPIRED)
		return check_backoff(step, step->after[KEY_CRASHES] - 1);
	return CHECKER_OK;
}

static int check_claim_time(struct step *step)
{
	int64_t ready_at_ms = step_before(step, KEY_READY_AT);
	int64_t wall_ms = step->event->wall_ms;

	/* once ready it stays so, even if somebody sets the wall clock back */
	if (step->from == WORD_READY && wall_ms < step->task->ready_wall_ms)
		wall_ms = step->task->ready_wall_ms;
	if (!step->resumes && ready_at_ms > wall_ms)
		return ck_complain(step->checker, "C4", step->event->task, "claimed before its time");
	return CHECKER_OK;
}

static bool stands_in_line(uint32_t state)
{
	return state == WORD_PENDING || state == WORD_SCHEDULED || state == WORD_WAITING ||
		state == WORD_READY || state == WORD_BLOCKED;
}

int ck_rule_time(struct step *step)
{
	struct checker *checker = step->checker;
	uint32_t task = step->event->task;
	int64_t wall_ms = step->event->wall_ms;
	bool woken = step->kind == WORD_TASK_REQUEUED || step->kind == WORD_TASK_UNPARKED;

	if (step->kind == WORD_TASK_CLAIMED && check_claim_time(step))
		return checker->verdict;
	/* an operator may name another time while it stands in line */
	if (stands_in_line(step->to) && step->to == step->from && step->kind == WORD_TASK_UPDATED)
		return CHECKER_OK;
	if (!stands_in_line(step->to) || step->to == step->from)
		return ck_step_expect(
			step, KEY_READY_AT, step_before(step, KEY_READY_AT), "C4", "ready_at moved");
	if (step->to == WORD_READY && !record_gives(step->event, KEY_READY_AT))
		step->after[KEY_READY_AT] = wall_ms;
	if (step->to == WORD_READY && step->after[KEY_READY_AT] > wall_ms)
		return ck_complain(checker, "C4", task, "ready before its time");
	if (step->to == WORD_READY && woken && !ck_step_is_held_from(step) &&
		step_before(step, KEY_READY_AT) > wall_ms)
		return ck_complain(checker, "C4", task, "woken before its time");
	if (step->to == WORD_SCHEDULED && step->after[KEY_READY_AT] <= wall_ms)
		return ck_complain(checker, "C4", task, "scheduled for a time that has come");
	return check_next_try(step);
}
