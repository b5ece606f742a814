/*
 * Claims, leases and fences: B1, B2, B3, B6, B7, B9, B10, C3, D7, and the end of workers (A4).
 */
#include "checker/step.h"

/* The kinds that leave a live claim as it is. All others end it. */
static bool keeps_claim(uint32_t kind)
{
	return kind == WORD_TASK_UPDATED || kind == WORD_TASK_CONFIRMED || kind == WORD_TASK_PROGRESSED ||
		kind == WORD_TASK_ASKED || kind == WORD_TASK_ANSWERED || kind == WORD_CLAIM_REBASED ||
		kind == WORD_TASK_ORPHAN_RESULT || kind == WORD_TASK_NOTED || kind == WORD_SESSION_STARTED ||
		kind == WORD_SESSION_GONE || kind == WORD_SESSION_ENDED || kind == WORD_SESSION_OUTPUT ||
		kind == WORD_SESSION_USAGE || kind == WORD_TASK_STAGE_CHANGED || kind == WORD_GATE_OPENED ||
		kind == WORD_GATE_PASSED || kind == WORD_GATE_REJECTED;
}

/* The kinds that make no sense without a live claim. */
static bool needs_claim(const struct step *step)
{
	switch (step->kind) {
	case WORD_TASK_CONFIRMED:
	case WORD_TASK_PROGRESSED:
	case WORD_TASK_ASKED:
	case WORD_TASK_REVIEWED:
	case WORD_TASK_RELEASED:
	case WORD_TASK_SUSPENDED:
	case WORD_TASK_EXPIRED:
	case WORD_CLAIM_UNCONFIRMED:
	case WORD_CLAIM_REBASED:
		return true;
	case WORD_TASK_REQUEUED:
		return step->from == WORD_ASKING;
	default:
		return false;
	}
}

/* What only the holder can cause: these kinds, and an end of the claim that somebody reported. */
static bool is_act_of_holder(const struct step *step)
{
	int64_t ended = record_gives(step->event, KEY_ENDED) ? step->event->value[KEY_ENDED] : WORD_NONE;

	if (!keeps_claim(step->kind) && ended != WORD_NONE && ended != WORD_LOST)
		return true;
	switch (step->kind) {
	case WORD_TASK_CONFIRMED:
	case WORD_TASK_PROGRESSED:
	case WORD_TASK_ASKED:
	case WORD_TASK_REVIEWED:
		return true;
	case WORD_TASK_COMPLETED:
	case WORD_TASK_FAILED:
		return ck_step_is_held_from(step);
	default:
		return false;
	}
}

static int claim_by_other(const struct step *step)
{
	return ck_complain(step->checker, "B1", step->event->task, "%s claims what %s holds",
		ck_text(step->checker, step->event->worker), ck_text(step->checker, step->holder));
}

int ck_rule_one_holder(struct step *step)
{
	struct checker *checker = step->checker;
	uint32_t task = step->event->task;
	bool must_hold = step->to == WORD_CLAIMED || step->to == WORD_RUNNING;
	int64_t holder = keeps_claim(step->kind) ? step->holder : WORD_NONE;

	if (step->kind == WORD_TASK_CLAIMED) {
		if (step->event->worker == WORD_NONE)
			return ck_complain(checker, "B1", task, "a claim by nobody");
		if (step->resumes && step->holder != step->event->worker)
			return claim_by_other(step);
		holder = step->event->worker;
	}
	if (needs_claim(step) && step->holder == WORD_NONE)
		return ck_complain(
			checker, "B1", task, "%s, but nobody held it", ck_text(checker, step->kind));
	if (ck_step_expect(step, KEY_HELD, holder, "B1", "the wrong worker holds it after this event"))
		return checker->verdict;
	if (must_hold && holder == WORD_NONE)
		return ck_complain(
			checker, "B1", task, "%s, and nobody holds it", ck_text(checker, step->to));
	if (!must_hold && step->to != WORD_ASKING && holder != WORD_NONE)
		return ck_complain(checker, "B1", task, "%s, and still held", ck_text(checker, step->to));
	return CHECKER_OK;
}

/* B3: what only a holder can cause comes from the holder and under its fence. D7: and its fence is of this
 * generation of the store. */
int ck_rule_holder_acts(struct step *step)
{
	struct checker *checker = step->checker;
	const struct record *event = step->event;
	int64_t fence = step_before(step, KEY_FENCE);

	if (step->kind == WORD_TASK_CLAIMED || step->holder == WORD_NONE)
		return CHECKER_OK;
	if (!is_act_of_holder(step)) {
		bool loses = !keeps_claim(step->kind) && step->kind != WORD_TASK_CANCELLED;
		if (loses && event->worker != WORD_NONE && event->worker != step->holder)
			return ck_complain(checker, "B3", event->task, "%s was not the holder",
				ck_text(checker, event->worker));
		return CHECKER_OK;
	}
	if (event->worker != step->holder)
		return ck_complain(checker, "B3", event->task, "%s acts on what %s holds",
			ck_text(checker, event->worker), ck_text(checker, step->holder));
	if (!record_gives(event, KEY_FENCE) || event->value[KEY_FENCE] != fence)
		return ck_complain(checker, "B3", event->task, "a stale fence changed the task");
	if (checker->generation_known && fence / FENCE_GENERATION_STEP < checker->generation)
		return ck_complain(
			checker, "D7", event->task, "a fence of before the restore changed the task");
	return CHECKER_OK;
}

int ck_rule_fence(struct step *step)
{
	struct checker *checker = step->checker;
	int64_t before = step_before(step, KEY_FENCE);

	if (step->kind == WORD_TASK_CREATED)
		step->task->highest_fence = 0;
	if (step->kind != WORD_TASK_CLAIMED)
		return ck_step_expect(step, KEY_FENCE, before, "B2", "the fence changed without a claim");
	if (!record_gives(step->event, KEY_FENCE))
		return ck_complain(checker, "B2", step->event->task, "a claim without a fence");
	if (before < step->task->highest_fence)
		before = step->task->highest_fence;

	int64_t fence = step->after[KEY_FENCE];
	int64_t generation = fence / FENCE_GENERATION_STEP;
	int64_t floor = generation * FENCE_GENERATION_STEP;
	if (checker->generation_known && generation != checker->generation)
		return ck_complain(checker, "B2", step->event->task, "fence %lld is not of generation %lld",
			(long long)fence, (long long)checker->generation);
	if (fence != (before > floor ? before : floor) + 1)
		return ck_complain(checker, "B2", step->event->task, "fence %lld follows fence %lld",
			(long long)fence, (long long)before);
	return CHECKER_OK;
}

bool ck_slot_is_quarantined(const struct checker *checker, uint32_t slot)
{
	return slot != WORD_NONE && slot < checker->quarantined_room && checker->quarantined[slot];
}

static int rule_worker_may_claim(struct step *step)
{
	struct checker *checker = step->checker;
	const struct record *event = step->event;
	struct worker *worker = ck_worker_named(checker, event->worker);
	const char *name = ck_text(checker, event->worker);
	int64_t max = record_gives(event, KEY_MAX) ? event->value[KEY_MAX] : worker->max;
	uint32_t slot = record_gives(event, KEY_SLOT) ? (uint32_t)event->value[KEY_SLOT] : worker->slot;

	bool named = record_gives(event, KEY_NAMED) && event->value[KEY_NAMED] == 1;
	if (worker->life == WORKER_GONE && !named) /* a name may be spoken for while nobody beats for it */
		return ck_complain(checker, "A4", event->task, "%s is inactive and claims", name);
	if (step->resumes)
		return CHECKER_OK;
	if (worker->life == WORKER_QUIET || worker->life == WORKER_TERMINATING)
		return ck_complain(checker, "A4", event->task, "%s was told to take no more work", name);
	if (ck_slot_is_quarantined(checker, slot))
		return ck_complain(checker, "C3", event->task, "%s claims from a quarantined slot", name);
	if (max > 0 && worker->held + 1 > max)
		return ck_complain(
			checker, "B9", event->task, "%s holds more than %lld", name, (long long)max);
	return CHECKER_OK;
}

int ck_rule_claimant(struct step *step)
{
	struct checker *checker = step->checker;
	const struct record *event = step->event;
	bool free_to_run =
		step->to == WORD_READY || step->to == WORD_SCHEDULED || step->kind == WORD_TASK_CLAIMED;

	if (free_to_run && step->after[KEY_OPEN_PARENTS] != 0)
		return ck_complain(checker, "B10", event->task, "%s before its parents are done",
			ck_text(checker, step->to));
	if (step->kind == WORD_TASK_CONFIRMED && ck_worker_named(checker, event->worker)->life == WORKER_GONE)
		return ck_complain(checker, "A4", event->task, "%s is inactive and binds",
			ck_text(checker, event->worker));
	if (step->kind != WORD_TASK_CLAIMED)
		return CHECKER_OK;
	int64_t owner = step->after[KEY_OWNER];
	if (owner != WORD_NONE && record_gives(event, KEY_SLOT) && event->value[KEY_SLOT] != owner)
		return ck_complain(checker, "B10", event->task, "it belongs to %s", ck_text(checker, owner));
	return rule_worker_may_claim(step);
}

bool ck_before_restart_grace(const struct checker *checker, const struct record *event)
{
	return checker->start_known && checker->start_boot == event->boot &&
		event->lease_ms < checker->start_ms + checker->limits.restart_grace_ms;
}

/* A claim that was never renewed ends no earlier than what was granted, whatever the event says. */
static bool before_first_lease(const struct step *step)
{
	const struct task *task = step->task;
	int64_t granted_ms = task->granted_ms;

	if (step->from != WORD_CLAIMED || granted_ms == 0)
		return false;
	if (task->verify_by_ms != 0 && granted_ms > step->checker->limits.verify_after_ms)
		granted_ms = step->checker->limits.verify_after_ms;
	return step->event->lease_ms < task->granted_at_ms + granted_ms;
}

int ck_rule_expiry(struct step *step)
{
	struct checker *checker = step->checker;
	const struct record *event = step->event;

	if (step->kind != WORD_TASK_EXPIRED && step->kind != WORD_CLAIM_UNCONFIRMED)
		return CHECKER_OK;
	const struct worker *holder = ck_worker_named(checker, step->holder);
	bool gone = holder->life == WORKER_GONE;
	if (gone && !holder->lease_ran_out) /* it was shown to be dead: no need to wait */
		return CHECKER_OK;
	if (!gone && !record_gives(event, KEY_DEADLINE))
		return ck_complain(checker, "B7", event->task, "it does not say which deadline passed");
	if (record_gives(event, KEY_DEADLINE) && event->lease_ms < event->value[KEY_DEADLINE])
		return ck_complain(checker, "B7", event->task, "expired before its deadline");
	if (record_gives(event, KEY_GRACE_END) && event->lease_ms < event->value[KEY_GRACE_END])
		return ck_complain(checker, "B7", event->task, "expired within the grace");
	if (ck_before_restart_grace(checker, event))
		return ck_complain(checker, "B7", event->task, "expired within the grace of a start");
	if (!gone && step->task->lease_boot != WORD_NONE && event->boot != step->task->lease_boot)
		return ck_complain(checker, "B7", event->task, "its lease is of another boot");
	if (!gone && before_first_lease(step))
		return ck_complain(checker, "B7", event->task, "expired before the lease it was granted");
	return CHECKER_OK;
}

/* B6. A start moves the moment: nobody is taken anything from before the grace is over. */
int ck_verification_is_late(struct checker *checker, uint32_t name, struct task *task)
{
	int64_t by_ms = task->verify_by_ms;

	if (checker->limits.verify_slack_ms < 0 || by_ms == 0 || !task->exists ||
		task->lease_boot != checker->boot)
		return CHECKER_OK;
	int64_t grace_end_ms = checker->start_ms + checker->limits.restart_grace_ms;
	if (checker->start_known && checker->start_boot == checker->boot && by_ms < grace_end_ms)
		by_ms = grace_end_ms;
	if (checker->lease_ms <= by_ms + checker->limits.verify_slack_ms)
		return CHECKER_OK;
	return ck_complain(
		checker, "B6", name, "never confirmed, and not taken back by %lld", (long long)by_ms);
}

int ck_rule_verification(struct step *step)
{
	if (step->kind == WORD_CLAIM_UNCONFIRMED && step->task->verify_by_ms == 0 &&
		step->task->lease_boot != WORD_NONE)
		return ck_complain(step->checker, "B6", step->event->task,
			"taken back as unconfirmed, but it was not to be verified");
	if (step->kind == WORD_CLAIM_REBASED)
		return CHECKER_OK;
	return ck_verification_is_late(step->checker, step->event->task, step->task);
}
