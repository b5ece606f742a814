/*
 * What the clocks bring: lapsed leases, claims that were never confirmed, times that have come.
 */
#include <errno.h>

#include "base/take.h"
#include "store/command/commands.h"
#include "store/command/executors.h"

static void take_timer(void *context, uint32_t timer)
{
	struct turn *turn = context;

	turn->timers[turn->timer_count++] = timer;
}

static int claim_timer(struct turn *turn, int64_t seq)
{
	struct turn_task *view;

	int r = turn_task(turn, seq, &view);
	if (r < 0)
		return r;
	if (!task_is_claimed(&view->task))
		return 0; /* ended by a timer before this one */
	const struct turn_worker *holder = turn_worker_by_number(turn, view->task.claim.holder);
	if (!holder)
		return -ENOMEM;
	struct lease due = view->task.claim.lease;
	struct task_decision decision = task_verify(&view->task, &turn->given);
	if (decision.event != EVENT_NONE)
		due = (struct lease){view->task.claim.verify_at_ms, turn->given.rules->verify_after_ms};
	else
		decision = task_expire(&view->task, &holder->worker, &turn->given);
	if (decision.event == EVENT_NONE)
		return 0;
	struct record record = turn_record(turn, decision.event);
	record_fact(&record, FACT_DEADLINE, due.deadline_ms);
	record_fact(&record, FACT_GRANTED, due.granted_ms);
	record_fact(&record, FACT_GRACE_END, lease_end(&due, &turn->given));
	command_add_loss_facts(turn, &record, &view->task);
	return turn_write_task(turn, view, &decision, &record);
}

static int worker_timer(struct turn *turn, uint32_t number)
{
	struct turn_worker *view = turn_worker_by_number(turn, number);

	if (!view)
		return -ENOMEM;
	struct worker_decision decision = worker_expire(&view->worker, &turn->given);
	return decision.event == EVENT_NONE ? 0 : command_end_worker(turn, view, &decision);
}

/* Is a worker alive on the host that has its session, and could take it, be it busy? */
static bool host_serves(const struct store *store, const struct task *task)
{
	const struct index *index = &store->index;

	for (uint32_t number = 0; (number = index_next_holder(index, number)) != 0;) {
		const struct holder *holder = index_holder(index, number);
		if (holder->worker.process.host == task->resume_host &&
			holder_runs(store, holder, task->executor, task->queue))
			return true;
	}
	return false;
}

/* Whoever takes it begins with nothing of what is on that host: the event says what that is, and where. */
static int note_left(struct turn *turn, int64_t seq, struct record *record)
{
	cleanup(buf_done) struct buf note = {0};
	struct span agent;

	int r = store_read_agent(turn->store, seq, &turn->arena, &agent);
	if (r < 0 || agent.len == 0)
		return r;
	buf_init(&note, agent.len + sizeof "\"left\":");
	buf_put_span(&note, SPAN("\"left\":"));
	r = buf_put_span(&note, agent);
	return r < 0 ? r : arena_copy(&turn->arena, buf_span(&note), &record->note);
}

static int wall_timer(struct turn *turn, int64_t seq)
{
	struct turn_task *view;

	if (index_find(&turn->store->index, seq) == MAP_NONE)
		return 0; /* it has ended since */
	int r = turn_task(turn, seq, &view);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	struct task_decision decision = task_deadline(&view->task, &turn->given);
	bool host_is_due = task_host_is_due(&view->task, &turn->given);
	if (decision.event == EVENT_NONE && host_is_due && host_serves(turn->store, &view->task))
		decision = task_keep_for_host(&view->task, &turn->given);
	if (decision.event == EVENT_NONE)
		decision = task_due(&view->task, &turn->given);
	if (decision.event == EVENT_NONE)
		decision = task_answer_due(&view->task, &turn->given);
	if (decision.event == EVENT_NONE)
		return 0;
	struct record record = turn_record(turn, decision.event);
	if (host_is_due && view->task.session_host != 0 && decision.task.session_host == 0)
		r = note_left(turn, view->task.seq, &record);
	if (decision.event == EVENT_TASK_FAILED)
		record_fact(&record, FACT_CLASS, CLASS_FINAL);
	if (decision.event == EVENT_TASK_ANSWERED) {
		record_fact(&record, FACT_LATE, 1);
		r = question_keep_late(turn, &view->task);
	}
	return r < 0 ? r : turn_write_task(turn, view, &decision, &record);
}

int timers_run(struct turn *turn)
{
	struct index *index = &turn->store->index;
	const struct moment *now = &turn->given.now;
	int r = rates_refill(turn);

	budgets_run_due(turn);

	wheel_advance(&index->lease_timers, now->lease_ms, STORE_TIMERS_MAX, take_timer, turn);
	for (uint32_t i = 0; r == 0 && i < turn->timer_count; i++) {
		uint32_t timer = turn->timers[i];
		turn->given.random = rng_u32(&turn->store->rng);
		r = (timer & 1) == TIMER_CLAIM ? claim_timer(turn, index_timer_task(index, timer))
					       : worker_timer(turn, (timer >> 1) + 1);
	}
	while (r == 0 && turn->wall_timer_count < STORE_TIMERS_MAX) {
		const struct heap_entry *next = heap_peek(&index->wall_timers);
		if (!next || next->at > now->wall_ms)
			break;
		turn->wall_timers[turn->wall_timer_count++] = heap_pop(&index->wall_timers);
		r = wall_timer(turn, (int64_t)turn->wall_timers[turn->wall_timer_count - 1].what);
	}
	if (r == 0 && turn->store->schedules.next_ms <= now->wall_ms)
		r = schedules_run(turn);
	return r == 0 ? holds_run_due(turn) : r;
}
