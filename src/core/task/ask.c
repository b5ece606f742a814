/*
 * Asking a person, which does not end the attempt.
 *
 * One question of a task is open at a time. The questions of a task are numbered, and an answer names the number of the
 * question it is for: a person who has read question 1 must not allow question 2. While a task asks, `resume_until_ms` is
 * the time by which it must be answered.
 */
#include "core/task/move.h"
#include "core/task/task.h"

#include <assert.h>

static bool is_of_attempt(const struct questions *questions, const struct task *task)
{
	return questions->last != 0 && questions->fence == task->fence;
}

struct questions questions_add(const struct questions *questions, const struct task *task, bool is_new)
{
	struct questions after = *questions;

	after.in_attempt = is_of_attempt(questions, task) ? questions->in_attempt + 1 : 1;
	after.last += is_new || after.last == 0;
	after.fence = task->fence;
	return after;
}

int64_t task_answer_by_ms(const struct task *task)
{
	return task->state == TASK_ASKING ? task->resume_until_ms : 0;
}

/* Opens a question: true if the decision is already made, and that is a refusal. */
static bool ask_is_settled(const struct task *task, const struct questions *questions,
	const struct proof *proof, struct task_decision *ret_decision)
{
	enum refusal refusal = task_proof_refusal(task, proof);

	*ret_decision = task_decide(task);
	if (refusal != REFUSED_NOTHING)
		*ret_decision = task_refuse_proof(task, proof, refusal);
	else if (task->state == TASK_ASKING)
		*ret_decision = task_refuse(task, REFUSED_BAD_TRANSITION);
	else if (is_of_attempt(questions, task) && questions->in_attempt >= QUESTIONS_MAX)
		*ret_decision = task_refuse(task, REFUSED_TOO_LARGE);
	else
		ret_decision->task.claim.verify_at_ms = 0;
	return ret_decision->refusal != REFUSED_NOTHING;
}

struct task_decision task_ask(const struct task *task, const struct questions *questions,
	const struct proof *proof, const struct worker *holder, int64_t answer_by_ms,
	const struct given *given)
{
	struct task_decision decision;

	if (ask_is_settled(task, questions, proof, &decision))
		return decision;
	if (task->claim.asked_at_ms == 0) /* else it waits for its subtasks already */
		decision.task.claim.asked_at_ms = given->now.lease_ms;
	decision.task.interruptions = 0;
	task_move(&decision, EVENT_TASK_ASKED, TASK_ASKING);
	/* what the work has on its host is there when it goes on */
	decision.task.resume_host = holder->process.host;
	decision.task.resume_until_ms = answer_by_ms;
	return task_decided(task, decision);
}

struct task_decision task_ask_again(const struct task *task, const struct questions *questions,
	const struct proof *proof, const struct given *given)
{
	struct task_decision decision;

	(void)given;
	if (ask_is_settled(task, questions, proof, &decision))
		return decision;
	decision.task.interruptions = 0;
	task_move(&decision, EVENT_TASK_ANSWERED, TASK_RUNNING);
	return task_decided(task, decision);
}

/* The question is closed. The time that a process spends waiting for a person is not its own. */
static struct task_decision close_question(const struct task *task, const struct given *given)
{
	struct task_decision decision = task_decide(task);
	struct claim *claim = &decision.task.claim;

	decision.task.resume_until_ms = 0;
	if (task_is_claimed(task)) {
		claim->run_until_ms += given->now.lease_ms - claim->asked_at_ms;
		claim->asked_at_ms = 0;
		task_move(&decision, EVENT_TASK_ANSWERED, TASK_RUNNING);
	} else {
		decision.task.ready_at_ms = given->now.wall_ms;
		task_move(&decision, EVENT_TASK_ANSWERED, TASK_READY);
	}
	return decision;
}

/* With an answer. */
static struct task_decision close_answered(const struct task *task, const struct given *given)
{
	struct task_decision decision = close_question(task, given);

	/* past its time to wait the process may be on its way out already, and the claim come back without it */
	if (task->resume_host != 0 && (!task_is_claimed(task) || task_must_park(task, given))) {
		decision.task.resume_host = task->resume_host;
		decision.task.resume_until_ms = given->now.wall_ms + given->rules->ask_resume_ms;
	}
	return task_decided(task, decision);
}

struct task_decision task_answer(const struct task *task, const struct questions *questions,
	uint32_t question, const struct given *given)
{
	if (task->state != TASK_ASKING)
		return task_refuse(task, REFUSED_BAD_TRANSITION);
	if (question != 0 ? question != questions->last
			  : is_of_attempt(questions, task) && questions->in_attempt > 1)
		return task_refuse(task, REFUSED_QUESTION_CHANGED);
	return close_answered(task, given);
}

struct task_decision task_withdraw(const struct task *task, const struct questions *questions,
	uint32_t question, const struct proof *proof, const struct given *given)
{
	enum refusal refusal = task_proof_refusal(task, proof);

	if (refusal != REFUSED_NOTHING)
		return task_refuse_proof(task, proof, refusal);
	if (question != questions->last || !is_of_attempt(questions, task))
		return task_refuse(task, REFUSED_QUESTION_CHANGED);
	if (task->state != TASK_ASKING) { /* answered, or withdrawn by a request whose reply was lost */
		struct task_decision closed = task_unchanged(task);
		closed.repeated = true;
		return closed;
	}
	return task_decided(task, close_question(task, given));
}

struct task_decision task_answer_due(const struct task *task, const struct given *given)
{
	int64_t by_ms = task_answer_by_ms(task);

	if (by_ms == 0 || by_ms > given->now.wall_ms)
		return task_unchanged(task);
	return close_answered(task, given);
}
