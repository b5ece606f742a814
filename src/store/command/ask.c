/*
 * Questions to people: asking, withdrawing, answering, and what the next attempt gets of it.
 *
 * Beside the task are kept: the last question and its answer, for readers; each question and answer by its number, for the
 * next attempt; what the last question was, so that it is recognised when it is asked again; and what was allowed for the
 * whole task.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/take.h"
#include "store/command/commands.h"
#include "store/read/sound.h"

enum {
	FENCE_DIGITS_MAX = 20,
	NUMBERS_BYTES_MAX = 4 * (FENCE_DIGITS_MAX + 1) + 1,
	ALLOWED_MAX = 100,            /* of one task: beyond them each question is asked */
	HANDED_BYTES_MAX = 256 << 10, /* of all questions and answers that are handed over */
};

/* ---- what is kept ----------------------------------------------------------------------------------------------- */

int questions_read(struct store *store, int64_t seq, struct arena *arena, struct questions *ret_questions)
{
	char text[NUMBERS_BYTES_MAX];
	struct questions questions = {0};
	struct span kept;
	int used = 0;

	*ret_questions = questions;
	int r = store_get_kept(store, seq, EXTRA_QUESTIONS, arena, &kept);
	if (r < 0 || kept.len == 0)
		return r;
	snprintf(text, sizeof text, "%.*s", SPAN_ARGS(kept));
	if (sscanf(text, "%" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu32 "%n", &questions.last,
		    &questions.in_attempt, &questions.fence, &questions.allowed, &used) != 4 ||
		(size_t)used != kept.len || questions.allowed > ALLOWED_MAX)
		return store_damaged(store, "task_extra", seq);
	*ret_questions = questions;
	return 0;
}

static int put_questions(struct turn *turn, int64_t seq, const struct questions *questions)
{
	char text[NUMBERS_BYTES_MAX];
	int len = snprintf(text, sizeof text, "%" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu32, questions->last,
		questions->in_attempt, questions->fence, questions->allowed);

	return turn_put(turn, put_extra, seq, EXTRA_QUESTIONS, 0, (struct span){text, (size_t)len});
}

/* As the last one, and by its number. */
static int put_answer(struct turn *turn, int64_t seq, uint32_t number, struct span answer)
{
	turn_put(turn, put_extra, seq, EXTRA_ANSWER, 0, answer);
	return number == 0 ? turn->fault : turn_put(turn, put_extra, seq, EXTRA_ANSWER, number, answer);
}

int questions_forget_allowed(struct turn *turn, int64_t seq)
{
	struct questions questions;

	int r = questions_read(turn->store, seq, &turn->arena, &questions);
	if (r < 0 || questions.allowed == 0)
		return r;
	while (questions.allowed > 0)
		turn_put(turn, delete_extra, seq, EXTRA_ALLOWED, --questions.allowed);
	return put_questions(turn, seq, &questions);
}

/* ---- asking ----------------------------------------------------------------------------------------------------- */

static struct span what_is_asked(const struct command *command)
{
	return command->ask.what.len > 0 ? command->ask.what : command->data;
}

static int is_allowed(struct turn *turn, const struct task *task, const struct command *command,
	const struct questions *questions, bool *ret_allowed)
{
	struct span permission = command->ask.permission, kept;
	int r = 0;

	*ret_allowed = false;
	for (uint32_t i = 0; permission.len > 0 && i < questions->allowed && !*ret_allowed; i++) {
		r = store_rows(turn->store, get_extra, task->seq, EXTRA_ALLOWED, i, &turn->arena, &kept);
		if (r < 0)
			return store_must_find(turn->store, r, task->seq);
		*ret_allowed = span_equal(kept, permission);
	}
	return 0;
}

static int look_back(
	struct turn *turn, const struct task *task, const struct command *command, struct asking *asking)
{
	struct span kept, what = what_is_asked(command), answer;
	char fence[FENCE_DIGITS_MAX + 2];
	bool allowed;

	asking->asked = ASKED_NEVER;
	int r = is_allowed(turn, task, command, &asking->questions, &allowed);
	if (r < 0)
		return r;
	if (allowed)
		asking->asked = ASKED_GRANTED;
	r = store_rows(turn->store, get_extra, task->seq, EXTRA_ASKED, 0, &turn->arena, &kept);
	if (r < 0 || what.len == 0)
		return r == -ENOENT ? 0 : r;
	const char *space = kept.len > 0 ? memchr(kept.data, ' ', kept.len) : NULL;
	if (!space)
		return store_damaged(turn->store, "task_extra", task->seq);
	size_t digits = (size_t)(space - kept.data);
	if (!span_equal(what, (struct span){space + 1, kept.len - digits - 1}))
		return 0;
	int len = snprintf(fence, sizeof fence, "%" PRIu64, task->fence);
	if (span_equal((struct span){kept.data, digits}, (struct span){fence, (size_t)len})) {
		if (task->state == TASK_ASKING || asking->asked == ASKED_NEVER)
			asking->asked = ASKED_NOW;
		return 0;
	}
	r = store_rows(turn->store, get_extra, task->seq, EXTRA_ANSWER, 0, &turn->arena, &answer);
	if (r == 0)
		asking->asked = ASKED_BEFORE;
	return r == -ENOENT ? 0 : r;
}

static int decide_withdraw(struct turn *turn, const struct task *task, const struct command *command,
	const struct asking *asking, struct task_decision *ret_decision)
{
	struct proof proof = command_proof(turn, command);

	turn->question = command->ask.withdraws;
	*ret_decision = task_withdraw(task, &asking->questions, command->ask.withdraws, &proof, &turn->given);
	return 0;
}

/* A program that begins anew asks what it has asked before: nobody is asked twice for that. Asked once more by the same
 * attempt it is another question; unless the first one is still open, and our reply to it was lost. */
int question_decide(struct turn *turn, const struct task *task, const struct command *command,
	struct asking *ret_asking, struct task_decision *ret_decision)
{
	static const struct worker nobody;
	const struct worker *holder = &nobody;
	struct proof proof = command_proof(turn, command);
	struct questions *questions = &ret_asking->questions;

	ret_asking->asked = ASKED_NEVER;
	int r = questions_read(turn->store, task->seq, &turn->arena, questions);
	if (r < 0)
		return r;
	if (command->ask.withdraws != 0)
		return decide_withdraw(turn, task, command, ret_asking, ret_decision);
	if (task->claim.holder != 0) {
		const struct turn_worker *worker = turn_worker_by_number(turn, task->claim.holder);
		if (!worker)
			return -ENOMEM;
		holder = &worker->worker;
	}
	*ret_decision = task_ask(task, questions, &proof, holder, command->ask.answer_by_ms, &turn->given);
	if (ret_decision->refusal != REFUSED_NOTHING && ret_decision->refusal != REFUSED_BAD_TRANSITION)
		return 0;
	r = look_back(turn, task, command, ret_asking);
	turn->question = questions->last;
	if (r < 0)
		return r;
	if (ret_asking->asked == ASKED_NOW && task->state == TASK_ASKING)
		*ret_decision = (struct task_decision){.repeated = true, .task = *task};
	else if (ret_asking->asked == ASKED_BEFORE || ret_asking->asked == ASKED_GRANTED)
		*ret_decision = task_ask_again(task, questions, &proof, &turn->given);
	if (ret_decision->refusal == REFUSED_NOTHING && !ret_decision->repeated)
		turn->question = questions_add(questions, task, ret_asking->asked != ASKED_BEFORE).last;
	return 0;
}

/* A question that was taken back is handed to nobody. */
static int forget_question(struct turn *turn, const struct task *task, uint32_t number)
{
	turn_put(turn, delete_extra, task->seq, EXTRA_QUESTION, 0);
	turn_put(turn, delete_extra, task->seq, EXTRA_QUESTION, number);
	turn_put(turn, delete_extra, task->seq, EXTRA_PERMISSION, 0);
	return turn_put(turn, delete_extra, task->seq, EXTRA_ASKED, 0);
}

/* As the last question of the task: the attempt that asked it, and what it was. */
static int put_asked(struct turn *turn, const struct task *task, struct span what)
{
	cleanup(buf_done) struct buf asked = {0};

	buf_init(&asked, what.len + FENCE_DIGITS_MAX + 2);
	buf_printf(&asked, "%" PRIu64 " ", task->fence);
	buf_put_span(&asked, what);
	int r = buf_fault(&asked);
	return r < 0 ? r : turn_put(turn, put_extra, task->seq, EXTRA_ASKED, 0, buf_span(&asked));
}

/* By its number; the oldest one makes room. */
static int put_numbered(
	struct turn *turn, const struct task *task, const struct command *command, uint32_t number)
{
	int64_t seq = task->seq;

	if (number > QUESTIONS_MAX) {
		turn_put(turn, delete_extra, seq, EXTRA_QUESTION, number - QUESTIONS_MAX);
		turn_put(turn, delete_extra, seq, EXTRA_ANSWER, number - QUESTIONS_MAX);
	}
	if (command->data.len > 0)
		turn_put(turn, put_extra, seq, EXTRA_QUESTION, number, command->data);
	return turn->fault;
}

int question_keep(struct turn *turn, const struct task *task, const struct command *command,
	const struct asking *asking)
{
	struct questions after = questions_add(&asking->questions, task, asking->asked != ASKED_BEFORE);
	bool is_new = asking->asked != ASKED_BEFORE;
	int64_t seq = task->seq;

	if (command->ask.withdraws != 0)
		return forget_question(turn, task, command->ask.withdraws);
	int r = put_questions(turn, seq, &after);
	if (r == 0)
		r = put_asked(turn, task, what_is_asked(command));
	if (r < 0 || !is_new)
		return r;
	put_numbered(turn, task, command, after.last);
	if (asking->asked == ASKED_GRANTED)
		return put_answer(turn, seq, after.last, command->ask.granted);
	turn_put(turn, delete_extra, seq, EXTRA_ANSWER, 0);
	return command->ask.permission.len > 0
		? turn_put(turn, put_extra, seq, EXTRA_PERMISSION, 0, command->ask.permission)
		: turn_put(turn, delete_extra, seq, EXTRA_PERMISSION, 0);
}

/* ---- answering -------------------------------------------------------------------------------------------------- */

/* What the open question asks for is allowed from now on. */
static int allow(struct turn *turn, int64_t seq, struct questions *questions)
{
	struct span permission;

	int r = store_get_kept(turn->store, seq, EXTRA_PERMISSION, &turn->arena, &permission);
	if (r < 0 || permission.len == 0 || questions->allowed == ALLOWED_MAX)
		return r;
	turn_put(turn, put_extra, seq, EXTRA_ALLOWED, questions->allowed++, permission);
	return put_questions(turn, seq, questions);
}

int execute_answer(struct turn *turn, struct turn_task *view, struct result *result)
{
	const struct command *command = turn->command;
	int64_t seq = view->task.seq;
	struct questions questions;

	int r = questions_read(turn->store, seq, &turn->arena, &questions);
	if (r < 0)
		return r;
	turn->question = result->question = questions.last;
	struct task_decision decision =
		task_answer(&view->task, &questions, command->answer.question, &turn->given);
	r = command_write(turn, view, &decision, result);
	if (r < 0 || result->refusal != REFUSED_NOTHING)
		return r;
	if (command->data.len > 0)
		r = put_answer(turn, seq, questions.last, command->data);
	return r == 0 && command->answer.for_task ? allow(turn, seq, &questions) : r;
}

int question_keep_late(struct turn *turn, const struct task *task)
{
	struct questions questions;

	int r = questions_read(turn->store, task->seq, &turn->arena, &questions);
	return r < 0 ? r : put_answer(turn, task->seq, questions.last, ANSWER_LATE);
}

/* ---- the next attempt ------------------------------------------------------------------------------------------- */

/* From the last one back, as many as there is room for. */
static int hand_answered(struct turn *turn, uint32_t last, struct claimed *claimed)
{
	struct store *store = turn->store;
	int64_t seq = claimed->task.seq;
	size_t bytes = 0;
	struct answered *list = arena_alloc(&turn->arena, QUESTIONS_MAX * sizeof *list);

	if (!list)
		return -ENOMEM;
	struct answered *first = list + QUESTIONS_MAX;
	for (uint32_t number = last; number > 0 && last - number < QUESTIONS_MAX; number--) {
		struct answered one = {.number = number};
		int r = store_rows(store, get_extra, seq, EXTRA_ANSWER, number, &turn->arena, &one.answer);
		if (r == 0)
			r = store_rows(
				store, get_extra, seq, EXTRA_QUESTION, number, &turn->arena, &one.question);
		if (r < 0 && r != -ENOENT)
			return r;
		bytes += one.question.len + one.answer.len;
		if (r == 0 && bytes <= HANDED_BYTES_MAX)
			*--first = one;
	}
	claimed->answered = first;
	claimed->answered_count = (uint32_t)(list + QUESTIONS_MAX - first);
	return 0;
}

static int hand_allowed(struct turn *turn, const struct questions *questions, struct claimed *claimed)
{
	struct span *list = arena_alloc(&turn->arena, (questions->allowed + 1) * sizeof *list);
	int r = list ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < questions->allowed; i++) {
		r = store_rows(
			turn->store, get_extra, claimed->task.seq, EXTRA_ALLOWED, i, &turn->arena, &list[i]);
		r = store_must_find(turn->store, r, claimed->task.seq);
	}
	claimed->allowed = list;
	claimed->allowed_count = questions->allowed;
	return r;
}

int question_hand_over(struct turn *turn, struct claimed *claimed)
{
	struct questions questions;
	int64_t seq = claimed->task.seq;

	int r = questions_read(turn->store, seq, &turn->arena, &questions);
	if (r == 0 && claimed->question.len > 0)
		r = store_get_kept(turn->store, seq, EXTRA_ANSWER, &turn->arena, &claimed->answer);
	if (r < 0 || questions.last == 0)
		return r;
	claimed->question_number = questions.last;
	r = hand_answered(turn, questions.last, claimed);
	return r < 0 ? r : hand_allowed(turn, &questions, claimed);
}
