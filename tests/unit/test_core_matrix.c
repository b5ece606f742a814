/*
 * Every operation in every state: what the contract answers, written by hand.
 *
 * The columns are the twelve states, and `asking` a second time after its process has gone. Reports come from
 * the last holder with its last fence unless the row says otherwise.
 */
#include "core_fixture.h"

enum answer {
	GOES = 1, /* accepted, recorded, into the state named */
	NOTES,    /* accepted, recorded, the state stays */
	QUIET,    /* accepted, not recorded, the state stays; a lease may have moved */
	NOTHING,  /* accepted, and nothing changes */
	REPEATS,  /* answered as the first time */
	REFUSES,  /* refused, with the refusal named */
};

struct cell {
	enum answer answer;
	int what;
};

enum {
	COLUMNS = 13,
};

struct row {
	const char *name;
	struct task_decision (*operate)(struct world *w, const struct task *task);
	struct cell cells[COLUMNS];
};

static struct proof last_proof(const struct task *task)
{
	return proof_with(BEATER, task->fence);
}

/* ---- operations --------------------------------------------------------------------------------- */

static struct task_decision update(struct world *w, const struct task *task)
{
	struct task_patch patch = {.set_priority = true, .priority = 50};

	return task_update(task, &patch, &w->given);
}

static struct task_decision retry(struct world *w, const struct task *task)
{
	return task_retry(task, false, &w->given);
}

static struct task_decision retry_key_taken(struct world *w, const struct task *task)
{
	return task_retry(task, true, &w->given);
}

static struct task_decision park(struct world *w, const struct task *task)
{
	return task_park(task, &w->given);
}

static struct task_decision unpark(struct world *w, const struct task *task)
{
	return task_unpark(task, &w->given);
}

static struct task_decision purge(struct world *w, const struct task *task)
{
	return task_purge(task, &w->given);
}

static struct task_decision due(struct world *w, const struct task *task)
{
	pass_time(w, HOURS(1));
	return task_due(task, &w->given);
}

static struct task_decision deadline(struct world *w, const struct task *task)
{
	struct task_patch patch = {.set_finish_by = true, .finish_by_ms = w->given.now.wall_ms + 1};
	struct task dated = noted(task_update(task, &patch, &w->given), task, EVENT_TASK_UPDATED);

	pass_time(w, 1);
	return task_deadline(&dated, &w->given);
}

static struct task_decision parent_done(struct world *w, const struct task *task)
{
	return task_parent_done(task, &w->given);
}

static struct task_decision parent_dead(struct world *w, const struct task *task)
{
	return task_parent_dead(task, &w->given);
}

static struct task_decision parent_reopened(struct world *w, const struct task *task)
{
	return task_parent_reopened(task, &w->given);
}

static struct task_decision claim(struct world *w, const struct task *task)
{
	return claim_by(w, task, &w->rival);
}

static struct task_decision claim_pending(struct world *w, const struct task *task)
{
	struct claimant by = claimant_of(&w->rival);

	by.takes_pending = true;
	return task_claim(task, &by, QUEUE_OPEN, &w->given);
}

static struct task_decision claim_paused(struct world *w, const struct task *task)
{
	struct claimant by = claimant_of(&w->rival);

	return task_claim(task, &by, QUEUE_PAUSED, &w->given);
}

static struct task_decision resume(struct world *w, const struct task *task)
{
	struct claimant by = claimant_of(&w->beater);

	by.resumes = true;
	return task_claim(task, &by, QUEUE_OPEN, &w->given);
}

static struct task_decision bind_own(struct world *w, const struct task *task)
{
	return task_bind(task, BEATER, &w->given);
}

static struct task_decision bind_other(struct world *w, const struct task *task)
{
	return task_bind(task, RIVAL, &w->given);
}

static struct task_decision unbind_own(struct world *w, const struct task *task)
{
	return task_unbind(task, BEATER, &w->given);
}

static struct task_decision unbind_other(struct world *w, const struct task *task)
{
	return task_unbind(task, RIVAL, &w->given);
}

static struct task_decision progress_own(struct world *w, const struct task *task)
{
	struct proof proof = last_proof(task);

	return task_progress(task, &proof, 0, &w->given);
}

static struct task_decision progress_stale(struct world *w, const struct task *task)
{
	struct proof proof = proof_with(BEATER, task->fence + 1);

	return task_progress(task, &proof, 0, &w->given);
}

static struct task_decision progress_named(struct world *w, const struct task *task)
{
	struct proof proof = by_name(BEATER);

	return task_progress(task, &proof, 0, &w->given);
}

static struct task_decision release_own(struct world *w, const struct task *task)
{
	struct proof proof = last_proof(task);

	return task_release(task, &proof, 0, &w->given);
}

static struct task_decision claim_lease_ends(struct world *w, const struct task *task)
{
	pass_time(w, HOURS(25));
	return expire(w, task);
}

static struct task_decision verify(struct world *w, const struct task *task)
{
	pass_time(w, MINUTES(2));
	return task_verify(task, &w->given);
}

static struct task_decision lose(struct world *w, const struct task *task)
{
	return task_lose(task, &w->given);
}

static struct task_decision give_back(struct world *w, const struct task *task)
{
	return task_return(task, &w->given);
}

static struct task_decision void_claim(struct world *w, const struct task *task)
{
	return task_void(task, &w->given);
}

static struct task_decision rebase(struct world *w, const struct task *task)
{
	return task_rebase(task, &w->given);
}

static struct task_decision complete_own(struct world *w, const struct task *task)
{
	struct proof proof = last_proof(task);

	return task_complete(task, &proof, &w->given);
}

static struct task_decision complete_stale(struct world *w, const struct task *task)
{
	struct proof proof = proof_with(BEATER, task->fence + 1);

	return task_complete(task, &proof, &w->given);
}

static struct task_decision complete_named(struct world *w, const struct task *task)
{
	struct proof proof = by_name(BEATER);

	return task_complete(task, &proof, &w->given);
}

static struct task_decision complete_other(struct world *w, const struct task *task)
{
	struct proof proof = by_name(RIVAL);

	return task_complete(task, &proof, &w->given);
}

static struct task_decision fail_own(struct world *w, const struct task *task)
{
	struct proof proof = last_proof(task);
	struct failure failure = failure_of(CODE_EXECUTION_ERROR);

	return task_fail(task, &proof, &failure, &w->given);
}

static struct task_decision report_own(struct world *w, const struct task *task)
{
	struct proof proof = last_proof(task);

	return task_report(task, &proof, &w->given);
}

static struct task_decision block_own(struct world *w, const struct task *task)
{
	struct proof proof = last_proof(task);

	return task_block(task, &proof, CODE_STOPPED, &w->given);
}

static struct task_decision ask_own(struct world *w, const struct task *task)
{
	struct proof proof = last_proof(task);

	return task_ask(task, &no_questions, &proof, holder_of(w, task), 0, &w->given);
}

static struct task_decision ask_named(struct world *w, const struct task *task)
{
	struct proof proof = by_name(BEATER);

	return task_ask(task, &no_questions, &proof, holder_of(w, task), 0, &w->given);
}

static struct task_decision answer(struct world *w, const struct task *task)
{
	return task_answer(task, &no_questions, 0, &w->given);
}

static struct task_decision pass(struct world *w, const struct task *task)
{
	return task_pass(task, &w->given);
}

static struct task_decision reject(struct world *w, const struct task *task)
{
	return task_reject(task, &w->given);
}

/* ---- the matrix --------------------------------------------------------------------------------- */

// clang-format off
#define GO(state) {GOES, TASK_##state}
#define NO(why)   {REFUSES, REFUSED_##why}
#define note      {NOTES, 0}
#define quiet     {QUIET, 0}
#define same      {NOTHING, 0}
#define again     {REPEATS, 0}
#define bad       NO(BAD_TRANSITION)
#define stale     NO(STALE_CLAIM)
#define ended     NO(ALREADY_TERMINAL)
#define other     NO(CLAIMED_BY_OTHER)
#define nobody    NO(NOT_CLAIMED)

static const struct row rows[] = {
	/*                 pending        scheduled      waiting        ready
	 *                 claimed        running        asking         asking, no claim
	 *                 review         blocked        failed         done           cancelled */
	{"update", update,
	                  {note,          note,          note,          note,
	                   note,          note,          note,          note,
	                   note,          note,          note,          note,          note}},
	{"cancel", cancel,
	                  {GO(CANCELLED), GO(CANCELLED), GO(CANCELLED), GO(CANCELLED),
	                   GO(CANCELLED), note,          note,          GO(CANCELLED),
	                   GO(CANCELLED), GO(CANCELLED), ended,         ended,         again}},
	{"retry", retry,
	                  {bad,           bad,           bad,           bad,
	                   bad,           bad,           bad,           bad,
	                   bad,           GO(READY),     GO(READY),     GO(READY),     GO(READY)}},
	{"retry while its key is held", retry_key_taken,
	                  {bad,           bad,           bad,           bad,
	                   bad,           bad,           bad,           bad,
	                   bad,           GO(READY),     NO(TASK_EXISTS), NO(TASK_EXISTS), NO(TASK_EXISTS)}},
	{"park", park,
	                  {bad,           GO(PENDING),   GO(PENDING),   GO(PENDING),
	                   bad,           bad,           bad,           bad,
	                   bad,           bad,           bad,           bad,           bad}},
	{"unpark", unpark,
	                  {GO(READY),     bad,           bad,           bad,
	                   bad,           bad,           bad,           bad,
	                   bad,           bad,           bad,           bad,           bad}},
	{"purge", purge,
	                  {bad,           bad,           bad,           bad,
	                   bad,           bad,           bad,           bad,
	                   bad,           bad,           GO(NOWHERE),   GO(NOWHERE),   GO(NOWHERE)}},
	{"its time comes", due,
	                  {same,          GO(READY),     same,          same,
	                   same,          same,          same,          same,
	                   same,          same,          same,          same,          same}},
	{"finishBy passes", deadline,
	                  {GO(FAILED),    GO(FAILED),    GO(FAILED),    GO(FAILED),
	                   same,          same,          same,          GO(FAILED),
	                   GO(FAILED),    GO(FAILED),    same,          same,          same}},
	{"its only parent is done", parent_done,
	                  {same,          same,          GO(READY),     same,
	                   same,          same,          same,          same,
	                   same,          same,          same,          same,          same}},
	{"its only parent fails", parent_dead,
	                  {same,          same,          GO(BLOCKED),   same,
	                   same,          same,          same,          same,
	                   same,          same,          same,          same,          same}},
	{"a parent is opened again", parent_reopened,
	                  {same,          same,          same,          same,
	                   same,          same,          same,          same,
	                   same,          same,          same,          same,          same}},
	{"claim", claim,
	                  {bad,           bad,           bad,           GO(CLAIMED),
	                   other,         other,         other,         bad,
	                   bad,           bad,           ended,         ended,         ended}},
	{"claim, pending too", claim_pending,
	                  {GO(CLAIMED),   bad,           bad,           GO(CLAIMED),
	                   other,         other,         other,         bad,
	                   bad,           bad,           ended,         ended,         ended}},
	{"claim in a paused queue", claim_paused,
	                  {bad,           bad,           bad,           NO(QUEUE_PAUSED),
	                   other,         other,         other,         bad,
	                   bad,           bad,           ended,         ended,         ended}},
	{"resume", resume,
	                  {bad,           bad,           bad,           GO(CLAIMED),
	                   GO(CLAIMED),   GO(CLAIMED),   other,         bad,
	                   bad,           bad,           ended,         ended,         ended}},
	{"bind", bind_own,
	                  {stale,         stale,         stale,         stale,
	                   GO(RUNNING),   same,          same,          stale,
	                   stale,         stale,         stale,         stale,         stale}},
	{"bind another's", bind_other,
	                  {stale,         stale,         stale,         stale,
	                   stale,         stale,         stale,         stale,
	                   stale,         stale,         stale,         stale,         stale}},
	{"unbind", unbind_own,
	                  {same,          same,          same,          same,
	                   same,          quiet,         quiet,         same,
	                   same,          same,          same,          same,          same}},
	{"unbind another's", unbind_other,
	                  {same,          same,          same,          same,
	                   same,          same,          same,          same,
	                   same,          same,          same,          same,          same}},
	{"progress", progress_own,
	                  {stale,         stale,         stale,         stale,
	                   GO(RUNNING),   note,          note,          stale,
	                   stale,         stale,         stale,         stale,         stale}},
	{"progress with a wrong fence", progress_stale,
	                  {stale,         stale,         stale,         stale,
	                   stale,         stale,         stale,         stale,
	                   stale,         stale,         stale,         stale,         stale}},
	{"progress by name", progress_named,
	                  {nobody,        nobody,        nobody,        nobody,
	                   GO(RUNNING),   note,          note,          nobody,
	                   nobody,        nobody,        ended,         ended,         ended}},
	{"release", release_own,
	                  {stale,         stale,         stale,         stale,
	                   GO(READY),     GO(READY),     note,          again,
	                   ended,         ended,         ended,         ended,         stale}},
	{"the claim lease ends", claim_lease_ends,
	                  {same,          same,          same,          same,
	                   GO(READY),     same,          same,          same,
	                   same,          same,          same,          same,          same}},
	{"the verification timer ends", verify,
	                  {same,          same,          same,          same,
	                   GO(READY),     same,          same,          same,
	                   same,          same,          same,          same,          same}},
	{"the worker is lost", lose,
	                  {same,          same,          same,          same,
	                   GO(READY),     GO(READY),     note,          same,
	                   same,          same,          same,          same,          same}},
	{"the worker leaves in peace", give_back,
	                  {same,          same,          same,          same,
	                   GO(READY),     GO(READY),     note,          same,
	                   same,          same,          same,          same,          same}},
	{"the store is restored", void_claim,
	                  {same,          same,          same,          same,
	                   GO(READY),     GO(READY),     note,          same,
	                   same,          same,          same,          same,          same}},
	{"the machine rebooted", rebase,
	                  {same,          same,          same,          same,
	                   note,          note,          note,          same,
	                   same,          same,          same,          same,          same}},
	{"complete", complete_own,
	                  {stale,         stale,         stale,         stale,
	                   GO(DONE),      GO(DONE),      GO(DONE),      ended,
	                   ended,         ended,         ended,         again,         stale}},
	{"complete with a wrong fence", complete_stale,
	                  {stale,         stale,         stale,         stale,
	                   stale,         stale,         stale,         stale,
	                   stale,         stale,         stale,         stale,         stale}},
	{"complete by name", complete_named,
	                  {nobody,        nobody,        nobody,        nobody,
	                   GO(DONE),      GO(DONE),      GO(DONE),      nobody,
	                   nobody,        nobody,        ended,         ended,         ended}},
	{"complete by another name", complete_other,
	                  {nobody,        nobody,        nobody,        nobody,
	                   other,         other,         other,         nobody,
	                   nobody,        nobody,        ended,         ended,         ended}},
	{"fail", fail_own,
	                  {stale,         stale,         stale,         stale,
	                   GO(SCHEDULED), GO(SCHEDULED), GO(SCHEDULED), ended,
	                   ended,         ended,         again,         ended,         stale}},
	{"review", report_own,
	                  {stale,         stale,         stale,         stale,
	                   GO(REVIEW),    GO(REVIEW),    GO(REVIEW),    ended,
	                   again,         ended,         ended,         ended,         stale}},
	{"block", block_own,
	                  {stale,         stale,         stale,         stale,
	                   GO(BLOCKED),   GO(BLOCKED),   GO(BLOCKED),   ended,
	                   ended,         again,         ended,         ended,         stale}},
	{"ask", ask_own,
	                  {stale,         stale,         stale,         stale,
	                   GO(ASKING),    GO(ASKING),    bad,           stale,
	                   stale,         stale,         stale,         stale,         stale}},
	{"ask by name", ask_named,
	                  {nobody,        nobody,        nobody,        nobody,
	                   GO(ASKING),    GO(ASKING),    bad,           nobody,
	                   nobody,        nobody,        ended,         ended,         ended}},
	{"answer", answer,
	                  {bad,           bad,           bad,           bad,
	                   bad,           bad,           GO(RUNNING),   GO(READY),
	                   bad,           bad,           bad,           bad,           bad}},
	{"pass", pass,
	                  {bad,           bad,           bad,           bad,
	                   bad,           bad,           bad,           bad,
	                   GO(DONE),      bad,           bad,           bad,           bad}},
	{"reject", reject,
	                  {bad,           bad,           bad,           bad,
	                   bad,           bad,           bad,           bad,
	                   GO(READY),     bad,           bad,           bad,           bad}},
};
// clang-format on

enum {
	ROWS = sizeof rows / sizeof rows[0],
};

static struct task task_of_column(struct world *w, int column)
{
	if (column < TASK_ASKING)
		return task_in(w, (enum task_state)(column + 1));
	if (column == TASK_ASKING)
		return asking_unclaimed(w);
	return task_in(w, (enum task_state)column);
}

static bool accepted(const struct task_decision *decision)
{
	return decision->refusal == REFUSED_NOTHING && !decision->repeated;
}

static bool is_as_expected(
	const struct task_decision *decision, const struct task *before, const struct cell *cell)
{
	bool stays = decision->task.state == before->state;

	switch (cell->answer) {
	case GOES:
		return accepted(decision) && decision->event != EVENT_NONE &&
			decision->task.state == (enum task_state)cell->what;
	case NOTES:
		return accepted(decision) && decision->event != EVENT_NONE && stays;
	case QUIET:
	case NOTHING:
		return accepted(decision) && decision->event == EVENT_NONE && stays;
	case REPEATS:
		return decision->repeated && decision->event == EVENT_NONE && stays;
	case REFUSES:
		return decision->refusal == (enum refusal)cell->what && decision->event == EVENT_NONE;
	}
	return false;
}

static void check_cell(const struct row *row, int column)
{
	const struct cell *cell = &row->cells[column];
	struct world w;

	world_init(&w);
	struct task before = task_of_column(&w, column);
	struct task_decision decision = row->operate(&w, &before);
	if (!is_as_expected(&decision, &before, cell))
		fail_msg("%s in state %s (column %d): refusal %d, event %d, state %d", row->name,
			task_state_name(before.state), column, (int)decision.refusal, (int)decision.event,
			(int)decision.task.state);
	if (cell->answer == NOTHING || cell->answer == REPEATS || cell->answer == REFUSES)
		assert_same_task(&decision.task, &before);
	if (decision.event != EVENT_NONE)
		assert_true(transition_is_legal(decision.event, before.state, decision.task.state));
}

static void every_operation_in_every_state_answers_as_the_contract_says(void **state)
{
	(void)state;
	for (int r = 0; r < ROWS; r++) {
		for (int column = 0; column < COLUMNS; column++) {
			assert_int_not_equal(rows[r].cells[column].answer, 0);
			check_cell(&rows[r], column);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_operation_in_every_state_answers_as_the_contract_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
