/*
 * A small world for the tests of the rules: four workers, two clocks that only the test moves, and a task in
 * any state, brought there by the rules themselves.
 *
 * moved(), noted(), silent(), refused() … say what a decision must be, and hand on the task as it shall be.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/worker/slot.h"
#include "core/task/task.h"
#include "core/why.h"
#include "core/worker/worker.h"

#define SECONDS(n) ((int64_t)(n) * 1000)
#define MINUTES(n) SECONDS((n) * 60)
#define HOURS(n)   MINUTES((n) * 60)

enum {
	QUEUE = 7,
	BEATER = 11, /* registered, sends heartbeats */
	RIVAL,       /* another like it */
	PLAIN,       /* never registered */
	NAMED,       /* known by a name only */
	HOST = 31,   /* of BEATER, if it says where it is */
	OTHER_HOST,
	SLOT = 21,
	OTHER_SLOT,
};

struct world {
	struct rules rules;
	struct given given;
	struct worker beater, rival, plain, named;
};

/* ---- the world ---------------------------------------------------------------------------------- */

static inline void pass_time(struct world *w, int64_t ms)
{
	w->given.now.wall_ms += ms;
	w->given.now.lease_ms += ms;
}

static inline struct worker registered(struct world *w, uint32_t handle, bool named)
{
	struct worker unknown = {.handle = handle};
	struct beat beat = {.named = named};
	struct worker_decision decision = worker_register(&unknown, &beat, false, &w->given);

	assert_int_equal(decision.refusal, REFUSED_NOTHING);
	w->given.next_token++;
	return decision.worker;
}

/* A server that has been up for an hour, with the default rules and no jitter. */
static inline void world_init(struct world *w)
{
	*w = (struct world){.rules = rules_default()};
	w->given = (struct given){
		.rules = &w->rules,
		.now = {.wall_ms = 1700000000000, .lease_ms = 1000000000},
		.grace = {.started_ms = 1000000000 - HOURS(1), .woke_ms = INT64_MIN},
		.next_token = 100,
		.generation = 1,
	};
	w->beater = registered(w, BEATER, false);
	w->rival = registered(w, RIVAL, false);
	w->plain = (struct worker){.handle = PLAIN};
	w->named = registered(w, NAMED, true);
}

/* A heartbeat without deltas: the worker lives, and says nothing of what it runs. */
static inline void hear_from(struct world *w, struct worker *worker)
{
	struct beat beat = {.has_token = true, .token = worker->token};
	struct worker_decision decision = worker_beat(worker, &beat, false, &w->given);

	assert_int_equal(decision.refusal, REFUSED_NOTHING);
	w->given.next_token++;
	*worker = decision.worker;
}

static inline int world_setup(void **state)
{
	static struct world world;

	world_init(&world);
	*state = &world;
	return 0;
}

#define TEST(name) cmocka_unit_test_setup(name, world_setup)

/* ---- what a decision must be -------------------------------------------------------------------- */

static inline void assert_same_claim(const struct claim *a, const struct claim *b)
{
	assert_int_equal(a->holder, b->holder);
	assert_int_equal(a->clock, b->clock);
	assert_int_equal(a->lease.deadline_ms, b->lease.deadline_ms);
	assert_int_equal(a->lease.granted_ms, b->lease.granted_ms);
	assert_int_equal(a->verify_at_ms, b->verify_at_ms);
	assert_int_equal(a->run_until_ms, b->run_until_ms);
	assert_int_equal(a->run_ms, b->run_ms);
	assert_int_equal(a->asked_at_ms, b->asked_at_ms);
	assert_int_equal(a->request, b->request);
	assert_int_equal(a->stopping, b->stopping);
}

static inline void assert_same_task(const struct task *a, const struct task *b)
{
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->ready_at_ms, b->ready_at_ms);
	assert_int_equal(a->attempt, b->attempt);
	assert_int_equal(a->spent, b->spent);
	assert_int_equal(a->crashes, b->crashes);
	assert_int_equal(a->interruptions, b->interruptions);
	assert_int_equal(a->open_parents, b->open_parents);
	assert_int_equal(a->dead_parents, b->dead_parents);
	assert_int_equal(a->fence, b->fence);
	assert_int_equal(a->ended, b->ended);
	assert_int_equal(a->code, b->code);
	assert_int_equal(a->resume_host, b->resume_host);
	assert_int_equal(a->session_host, b->session_host);
	assert_int_equal(a->begins_anew, b->begins_anew);
	assert_int_equal(a->resume_until_ms, b->resume_until_ms);
	assert_same_claim(&a->claim, &b->claim);
}

/* Accepted, with that event, into that state. */
static inline struct task moved(struct task_decision decision, enum event_kind event, enum task_state to)
{
	assert_int_equal(decision.refusal, REFUSED_NOTHING);
	assert_false(decision.repeated);
	assert_int_equal(decision.event, event);
	assert_int_equal(decision.task.state, to);
	return decision.task;
}

/* Accepted, recorded, and the state stays as it was. */
static inline struct task noted(
	struct task_decision decision, const struct task *before, enum event_kind event)
{
	return moved(decision, event, before->state);
}

/* Accepted and not recorded; lease times may have moved. */
static inline struct task silent(struct task_decision decision, const struct task *before)
{
	return moved(decision, EVENT_NONE, before->state);
}

/* Accepted, and nothing at all has changed. */
static inline struct task unchanged(struct task_decision decision, const struct task *before)
{
	assert_int_equal(decision.refusal, REFUSED_NOTHING);
	assert_int_equal(decision.event, EVENT_NONE);
	assert_int_equal(decision.follow, FOLLOW_NOTHING);
	assert_false(decision.repeated);
	assert_same_task(&decision.task, before);
	return decision.task;
}

/* Answered as the first time: nothing changes again. */
static inline struct task repeated(struct task_decision decision, const struct task *before)
{
	assert_true(decision.repeated);
	decision.repeated = false;
	return unchanged(decision, before);
}

static inline void refused(struct task_decision decision, const struct task *before, enum refusal refusal)
{
	assert_int_equal(decision.refusal, refusal);
	assert_int_equal(decision.event, EVENT_NONE);
	assert_int_equal(decision.follow, FOLLOW_NOTHING);
	assert_false(decision.repeated);
	assert_same_task(&decision.task, before);
}

/* ---- requests ----------------------------------------------------------------------------------- */

static inline struct proof proof_of(const struct task *task)
{
	return (struct proof){.holder = task->claim.holder, .fence = task->fence};
}

static inline struct proof proof_with(uint32_t holder, uint64_t fence)
{
	return (struct proof){.holder = holder, .fence = fence};
}

static inline struct proof by_name(uint32_t holder)
{
	return (struct proof){.holder = holder, .by_name = true};
}

static inline struct claimant claimant_of(const struct worker *worker)
{
	return (struct claimant){.worker = worker, .slot = worker->slot, .named = worker->named};
}

static inline struct failure failure_of(enum failure_code code)
{
	return (struct failure){.code = code, .klass = failure_code_class(code)};
}

static inline struct task_decision claim_by(
	struct world *w, const struct task *task, const struct worker *worker)
{
	struct claimant by = claimant_of(worker);

	return task_claim(task, &by, QUEUE_OPEN, &w->given);
}

static inline struct task_decision complete(struct world *w, const struct task *task)
{
	struct proof proof = proof_of(task);

	return task_complete(task, &proof, &w->given);
}

static inline struct task_decision fail_with(struct world *w, const struct task *task, enum failure_code code)
{
	struct proof proof = proof_of(task);
	struct failure failure = failure_of(code);

	return task_fail(task, &proof, &failure, &w->given);
}

static inline struct task_decision fail_for_ever(struct world *w, const struct task *task)
{
	struct proof proof = proof_of(task);
	struct failure failure = failure_of(CODE_EXECUTION_ERROR);

	failure.no_retry = true;
	return task_fail(task, &proof, &failure, &w->given);
}

static inline struct task_decision report(struct world *w, const struct task *task)
{
	struct proof proof = proof_of(task);

	return task_report(task, &proof, &w->given);
}

static inline struct task_decision block(struct world *w, const struct task *task)
{
	struct proof proof = proof_of(task);

	return task_block(task, &proof, CODE_BAD_WORKDIR, &w->given);
}

/* The worker that holds it; a plain claimant if nobody does. */
static inline const struct worker *holder_of(const struct world *w, const struct task *task)
{
	switch (task->claim.holder) {
	case BEATER:
		return &w->beater;
	case RIVAL:
		return &w->rival;
	case NAMED:
		return &w->named;
	default:
		return &w->plain;
	}
}

__attribute__((unused)) static const struct questions no_questions;

static inline struct task_decision ask(struct world *w, const struct task *task)
{
	struct proof proof = proof_of(task);

	return task_ask(task, &no_questions, &proof, holder_of(w, task), 0, &w->given);
}

static inline struct task_decision release(struct world *w, const struct task *task)
{
	struct proof proof = proof_of(task);

	return task_release(task, &proof, 0, &w->given);
}

static inline struct task_decision progress(struct world *w, const struct task *task)
{
	struct proof proof = proof_of(task);

	return task_progress(task, &proof, 0, &w->given);
}

static inline struct task_decision cancel(struct world *w, const struct task *task)
{
	return task_cancel(task, &w->beater, &w->given);
}

static inline struct task_decision expire(struct world *w, const struct task *task)
{
	return task_expire(task, holder_of(w, task), &w->given);
}

/* ---- tasks in every state ----------------------------------------------------------------------- */

static inline struct task draft_new(void)
{
	return (struct task){.seq = 1, .queue = QUEUE};
}

static inline struct task created(struct world *w, const struct task *draft, enum task_state expected)
{
	bool parked = expected == TASK_PENDING;

	return moved(task_create(draft, parked, QUEUE_OPEN, &w->given), EVENT_TASK_CREATED, expected);
}

static inline struct task pending_task(struct world *w)
{
	struct task draft = draft_new();

	return created(w, &draft, TASK_PENDING);
}

static inline struct task scheduled_task(struct world *w)
{
	struct task draft = draft_new();

	draft.ready_at_ms = w->given.now.wall_ms + HOURS(1);
	return created(w, &draft, TASK_SCHEDULED);
}

static inline struct task waiting_task(struct world *w, uint32_t parents)
{
	struct task draft = draft_new();

	draft.has_parent = true;
	draft.open_parents = parents;
	return created(w, &draft, TASK_WAITING);
}

static inline struct task ready_task(struct world *w)
{
	struct task draft = draft_new();

	return created(w, &draft, TASK_READY);
}

static inline struct task claimed_by(struct world *w, const struct worker *worker)
{
	struct task task = ready_task(w);

	return moved(claim_by(w, &task, worker), EVENT_TASK_CLAIMED, TASK_CLAIMED);
}

static inline struct task claimed_task(struct world *w)
{
	return claimed_by(w, &w->beater);
}

static inline struct task bound(struct world *w, const struct task *task)
{
	return moved(task_bind(task, BEATER, &w->given), EVENT_TASK_CONFIRMED, TASK_RUNNING);
}

/* Running under its worker's lease. */
static inline struct task running_task(struct world *w)
{
	struct task task = claimed_task(w);

	return bound(w, &task);
}

/* Running under a lease of its own, held by a claimant that does not beat. */
static inline struct task running_plain(struct world *w)
{
	struct task task = claimed_by(w, &w->plain);

	return moved(progress(w, &task), EVENT_TASK_PROGRESSED, TASK_RUNNING);
}

static inline struct task asking_task(struct world *w)
{
	struct task task = running_task(w);

	return moved(ask(w, &task), EVENT_TASK_ASKED, TASK_ASKING);
}

static inline struct task asking_unclaimed(struct world *w)
{
	struct task task = asking_task(w);

	return noted(release(w, &task), &task, EVENT_TASK_RELEASED);
}

static inline struct task review_task(struct world *w)
{
	struct task task = running_task(w);

	return moved(report(w, &task), EVENT_TASK_REVIEWED, TASK_REVIEW);
}

static inline struct task blocked_task(struct world *w)
{
	struct task task = running_task(w);

	return moved(block(w, &task), EVENT_TASK_BLOCKED, TASK_BLOCKED);
}

static inline struct task blocked_by_parent(struct world *w)
{
	struct task task = waiting_task(w, 1);

	return moved(task_parent_dead(&task, &w->given), EVENT_TASK_BLOCKED, TASK_BLOCKED);
}

static inline struct task failed_task(struct world *w)
{
	struct task task = running_task(w);

	return moved(fail_for_ever(w, &task), EVENT_TASK_FAILED, TASK_FAILED);
}

static inline struct task done_task(struct world *w)
{
	struct task task = running_task(w);

	return moved(complete(w, &task), EVENT_TASK_COMPLETED, TASK_DONE);
}

static inline struct task cancelled_task(struct world *w)
{
	struct task task = claimed_task(w);

	return moved(cancel(w, &task), EVENT_TASK_CANCELLED, TASK_CANCELLED);
}

/* Running, with a cancel that waits for the worker. */
static inline struct task stopping_task(struct world *w)
{
	struct task task = running_task(w);

	return noted(cancel(w, &task), &task, EVENT_TASK_UPDATED);
}

static inline struct task task_in(struct world *w, enum task_state state)
{
	switch (state) {
	case TASK_PENDING:
		return pending_task(w);
	case TASK_SCHEDULED:
		return scheduled_task(w);
	case TASK_WAITING:
		return waiting_task(w, 1);
	case TASK_READY:
		return ready_task(w);
	case TASK_CLAIMED:
		return claimed_task(w);
	case TASK_RUNNING:
		return running_task(w);
	case TASK_ASKING:
		return asking_task(w);
	case TASK_REVIEW:
		return review_task(w);
	case TASK_BLOCKED:
		return blocked_task(w);
	case TASK_FAILED:
		return failed_task(w);
	case TASK_DONE:
		return done_task(w);
	case TASK_CANCELLED:
		return cancelled_task(w);
	case TASK_NOWHERE:
	case TASK_STATE_COUNT:
		break;
	}
	fail_msg("no task is in state %d", (int)state);
	return draft_new();
}
