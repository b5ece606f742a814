/*
 * A long random walk: whatever is asked of a task, in whatever order, certain things stay true.
 *
 * STINT_TEST_SEED chooses another walk.
 */
#include "core_fixture.h"

#include "base/rng.h"

enum {
	STEPS = 200000,
};

struct walk {
	struct world w;
	struct rng rng;
	struct task task;
	int64_t seq;
	int seen[EVENT_KIND_COUNT];
	int visited[TASK_STATE_COUNT];
	int refused[REFUSAL_COUNT];
};

static bool chance(struct walk *walk, uint32_t one_in)
{
	return rng_chance(&walk->rng, one_in);
}

static const struct worker *any_worker(struct walk *walk)
{
	const struct worker *workers[] = {
		&walk->w.beater, &walk->w.beater, &walk->w.rival, &walk->w.plain, &walk->w.named};

	return workers[rng_below(&walk->rng, 5)];
}

/* Mostly the right proof; sometimes an old fence, a wrong holder, or only a name. */
static struct proof any_proof(struct walk *walk)
{
	struct proof proof = proof_of(&walk->task);

	if (proof.holder == 0 || chance(walk, 8))
		proof.holder = any_worker(walk)->handle;
	if (chance(walk, 8))
		proof.fence -= rng_below(&walk->rng, 4);
	if (chance(walk, 8))
		proof.by_name = true;
	return proof;
}

static struct failure any_failure(struct walk *walk)
{
	enum failure_code code =
		(enum failure_code)rng_between(&walk->rng, CODE_OTHER, FAILURE_CODE_COUNT - 1);
	struct failure failure = failure_of(code);

	if (chance(walk, 2)) /* else most attempts would end in a block */
		failure = failure_of(CODE_EXECUTION_ERROR);
	failure.no_retry = chance(walk, 20);
	if (chance(walk, 10))
		failure.retry_at_ms = walk->w.given.now.wall_ms + rng_between(&walk->rng, -1000, 100000);
	return failure;
}

static struct task_patch any_patch(struct walk *walk)
{
	return (struct task_patch){
		.set_priority = chance(walk, 2),
		.set_max_attempts = chance(walk, 4),
		.set_timeout = chance(walk, 4),
		.set_start_by = chance(walk, 8),
		.set_finish_by = chance(walk, 8),
		.priority = (int32_t)rng_u32(&walk->rng),
		.max_attempts = rng_below(&walk->rng, 6),
		.timeout_ms = rng_below(&walk->rng, 10000000),
		.start_by_ms = walk->w.given.now.wall_ms + rng_between(&walk->rng, -1000, HOURS(1)),
		.finish_by_ms = walk->w.given.now.wall_ms + rng_between(&walk->rng, -1000, HOURS(5)),
	};
}

static struct task create_any(struct walk *walk)
{
	struct task draft = {.seq = ++walk->seq, .queue = QUEUE, .max_attempts = rng_below(&walk->rng, 5)};

	draft.open_parents = chance(walk, 3) ? 1 + rng_below(&walk->rng, 3) : 0;
	if (draft.open_parents > 0 && chance(walk, 6))
		draft.dead_parents = 1;
	if (chance(walk, 4))
		draft.ready_at_ms = walk->w.given.now.wall_ms + rng_between(&walk->rng, 0, HOURS(1));
	return task_create(&draft, chance(walk, 5), QUEUE_OPEN, &walk->w.given).task;
}

static struct task_decision any_claim(struct walk *walk)
{
	struct claimant by = claimant_of(any_worker(walk));

	by.takes_pending = chance(walk, 4);
	by.resumes = chance(walk, 3);
	by.confirms = chance(walk, 8);
	by.lease_ms = chance(walk, 3) ? rng_between(&walk->rng, 1, HOURS(2)) : 0;
	return task_claim(&walk->task, &by, chance(walk, 20) ? QUEUE_PAUSED : QUEUE_OPEN, &walk->w.given);
}

static struct task_decision any_wish_of_people(struct walk *walk)
{
	const struct given *given = &walk->w.given;
	struct task_patch patch = any_patch(walk);

	switch (rng_below(&walk->rng, 12)) {
	case 0:
		return task_update(&walk->task, &patch, given);
	case 1:
		return task_cancel(&walk->task, holder_of(&walk->w, &walk->task), given);
	case 2:
		return task_park(&walk->task, given);
	case 3:
	case 4:
		return task_unpark(&walk->task, given);
	case 5:
		return task_purge(&walk->task, given);
	case 6:
	case 7:
		return task_answer(&walk->task, &no_questions, 0, given);
	case 8:
		return task_pass(&walk->task, given);
	case 9:
		return task_reject(&walk->task, given);
	default:
		return task_retry(&walk->task, chance(walk, 5), given);
	}
}

static struct task_decision any_turn_of_time(struct walk *walk)
{
	const struct given *given = &walk->w.given;

	switch (rng_below(&walk->rng, 14)) {
	case 0:
		return chance(walk, 2) ? task_keep_for_host(&walk->task, given)
				       : task_due(&walk->task, given);
	case 1:
		return task_deadline(&walk->task, given);
	case 2:
	case 3:
		return task_parent_done(&walk->task, given);
	case 4:
		return task_parent_dead(&walk->task, given);
	case 5:
		return task_parent_reopened(&walk->task, given);
	case 6:
	case 11:
	case 12:
		return expire(&walk->w, &walk->task);
	case 7:
	case 13:
		return task_verify(&walk->task, given);
	case 8:
		return chance(walk, 3) ? task_lose(&walk->task, given) : task_due(&walk->task, given);
	case 9:
		return chance(walk, 3) ? task_return(&walk->task, given) : task_due(&walk->task, given);
	default:
		return task_rebase(&walk->task, given);
	}
}

static uint32_t holder_host(const struct task *task)
{
	return task->claim.holder == BEATER ? HOST : task->claim.holder == RIVAL ? OTHER_HOST : 0;
}

/* Now and then of an agent, that has a session there. */
static struct task_decision any_progress(struct walk *walk, const struct proof *proof)
{
	struct task_decision decision =
		task_progress(&walk->task, proof, rng_between(&walk->rng, 0, HOURS(1)), &walk->w.given);

	if (decision.refusal == REFUSED_NOTHING && chance(walk, 3))
		task_begin_session(&decision, holder_host(&decision.task));
	return decision;
}

static struct task_decision any_report(struct walk *walk)
{
	const struct given *given = &walk->w.given;
	struct proof proof = any_proof(walk);
	struct failure failure = any_failure(walk);

	switch (rng_below(&walk->rng, 11)) {
	case 0:
		return task_complete(&walk->task, &proof, given);
	case 1:
	case 2:
		return task_fail(&walk->task, &proof, &failure, given);
	case 3:
		return task_report(&walk->task, &proof, given);
	case 4:
		return task_block(&walk->task, &proof, CODE_STOPPED, given);
	case 5:
		return task_ask(
			&walk->task, &no_questions, &proof, holder_of(&walk->w, &walk->task), 0, given);
	case 6:
		return chance(walk, 3) ? task_ask_again(&walk->task, &no_questions, &proof, given)
				       : task_ask(&walk->task, &no_questions, &proof,
						 holder_of(&walk->w, &walk->task), 0, given);
	case 7:
		return task_release(&walk->task, &proof, rng_between(&walk->rng, 0, 5000), given);
	case 8:
		return task_bind(&walk->task, proof.holder, given);
	case 9:
		return task_unbind(&walk->task, proof.holder, given);
	default:
		return any_progress(walk, &proof);
	}
}

/* A restore: a new generation, and every claim is void. */
static struct task_decision restore(struct walk *walk)
{
	walk->w.given.generation++;
	return task_void(&walk->task, &walk->w.given);
}

static void let_time_pass(struct walk *walk)
{
	struct given *given = &walk->w.given;

	pass_time(&walk->w,
		chance(walk, 6) ? rng_between(&walk->rng, 0, HOURS(1)) : rng_between(&walk->rng, 0, 9999));
	given->random = rng_u32(&walk->rng);
	if (chance(walk, 2))
		hear_from(&walk->w, &walk->w.beater);
	given->grace.frozen = chance(walk, 50);
	if (chance(walk, 200))
		given->grace.started_ms = given->now.lease_ms;
	if (chance(walk, 200))
		given->grace.woke_ms = given->now.lease_ms;
}

/* Anything at any time; more often what may have an effect, so that the walk gets somewhere. */
static struct task_decision any_step(struct walk *walk)
{
	uint32_t kind = rng_below(&walk->rng, 4);

	if (chance(walk, 500))
		return restore(walk);
	if (task_is_claimed(&walk->task))
		kind = chance(walk, 2) ? 3 : kind;
	else if (chance(walk, 2))
		kind = walk->task.state == TASK_READY ? 2 : 0;
	switch (kind) {
	case 0:
		return any_wish_of_people(walk);
	case 1:
		return any_turn_of_time(walk);
	case 2:
		return any_claim(walk);
	default:
		return any_report(walk);
	}
}

/* ---- what stays true ---------------------------------------------------------------------------- */

static void check_event(const struct task *before, const struct task_decision *d)
{
	const struct task *after = &d->task;

	if (d->event == EVENT_NONE) {
		assert_int_equal(after->state, before->state);
		assert_int_equal(d->follow, FOLLOW_NOTHING);
		return;
	}
	assert_true(transition_is_legal(d->event, before->state, after->state));
	if (task_state_is_final(before->state) && after->state != before->state)
		assert_true(d->event == EVENT_TASK_RETRIED || d->event == EVENT_TASK_PURGED);
}

static void check_counters(const struct walk *walk, const struct task *before, const struct task_decision *d)
{
	const struct task *after = &d->task;
	bool claims = d->event == EVENT_TASK_CLAIMED;
	bool new_generation = after->fence / 1000000000000 > before->fence / 1000000000000;

	assert_int_equal(after->attempt, before->attempt + claims);
	if (!claims)
		assert_int_equal(after->fence, before->fence);
	else if (!new_generation)
		assert_int_equal(after->fence, before->fence + 1);
	assert_true(after->fence >= before->fence);
	assert_true(after->spent <= after->max_attempts);
	assert_true(after->spent <= before->spent + 1);
	if (after->spent > before->spent)
		assert_int_equal(d->event, EVENT_TASK_FAILED);
	if (after->spent < before->spent)
		assert_int_equal(d->event, EVENT_TASK_RETRIED);
	assert_true(after->crashes <= walk->w.rules.crash_budget);
	assert_true(after->interruptions <= before->interruptions + 1);
}

static void check_claim(const struct task *before, const struct task_decision *d)
{
	const struct task *after = &d->task;
	static const struct claim none;

	if (after->state == TASK_CLAIMED || after->state == TASK_RUNNING)
		assert_true(task_is_claimed(after));
	else if (after->state != TASK_ASKING)
		assert_false(task_is_claimed(after));
	if (!task_is_claimed(after))
		assert_same_claim(&after->claim, &none);
	if (task_is_claimed(before) && !task_is_claimed(after))
		assert_int_not_equal(after->ended, ENDED_NOT);
	if (task_is_claimed(after))
		assert_int_equal(after->ended, ENDED_NOT);
	if (!task_is_claimed(before) && task_is_claimed(after))
		assert_int_equal(d->event, EVENT_TASK_CLAIMED);
	if (!task_is_claimed(before) && task_is_claimed(after) && before->resume_until_ms != 0)
		assert_int_equal(before->resume_host, holder_host(after));
}

static void check_follow(const struct task *before, const struct task_decision *d)
{
	bool ends = d->task.state != before->state;
	bool was_dead = before->state == TASK_FAILED || before->state == TASK_CANCELLED;
	enum follow expected = FOLLOW_NOTHING;

	if (ends && d->task.state == TASK_DONE)
		expected = FOLLOW_PARENT_DONE;
	if (ends && (d->task.state == TASK_FAILED || d->task.state == TASK_CANCELLED))
		expected = FOLLOW_PARENT_DEAD;
	if (was_dead && d->event == EVENT_TASK_RETRIED)
		expected = FOLLOW_PARENT_REOPENED;
	assert_int_equal(d->follow, expected);
}

static void check_decision(const struct walk *walk, const struct task *before, const struct task_decision *d)
{
	if (d->refusal != REFUSED_NOTHING || d->repeated) {
		assert_int_equal(d->event, EVENT_NONE);
		assert_same_task(&d->task, before);
	}
	check_event(before, d);
	if (d->task.state == TASK_NOWHERE)
		return;
	check_counters(walk, before, d);
	check_claim(before, d);
	check_follow(before, d);
	task_check(&d->task);
}

/* ---- the walk ----------------------------------------------------------------------------------- */

static uint64_t seed_of_walk(void)
{
	const char *seed = getenv("STINT_TEST_SEED");

	return seed == NULL ? 20240229 : strtoull(seed, NULL, 10);
}

static void step(struct walk *walk)
{
	struct task before = walk->task;

	let_time_pass(walk);
	struct task_decision decision = any_step(walk);
	check_decision(walk, &before, &decision);
	walk->seen[decision.event]++;
	walk->refused[decision.refusal]++;
	walk->visited[decision.task.state]++;
	walk->task = decision.task;
	if (walk->task.state == TASK_NOWHERE || chance(walk, 400))
		walk->task = create_any(walk);
}

static void whatever_is_asked_the_invariants_hold(void **state)
{
	static struct walk walk;
	uint64_t seed = seed_of_walk();

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	rng_seed(&walk.rng, seed);
	world_init(&walk.w);
	walk.w.beater.process.host = HOST;
	walk.w.rival.process.host = OTHER_HOST;
	walk.task = create_any(&walk);
	for (int i = 0; i < STEPS; i++)
		step(&walk);
	for (int s = TASK_PENDING; s < TASK_STATE_COUNT; s++)
		assert_true(walk.visited[s] > 50);
	for (int kind = EVENT_TASK_UPDATED; kind <= EVENT_CLAIM_REBASED; kind++)
		if (kind != EVENT_TASK_ORPHAN_RESULT && walk.seen[kind] < 50)
			fail_msg("%s was seen %d times", event_kind_name((enum event_kind)kind),
				walk.seen[kind]);
	assert_true(walk.refused[REFUSED_STALE_CLAIM] > 50);
	assert_true(walk.refused[REFUSED_CLAIMED_BY_OTHER] > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_is_asked_the_invariants_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
