/*
 * Claims: who asks, which of its own it takes up again, and handing over what choose.c has found.
 */
#include <assert.h>
#include <errno.h>

#include "base/take.h"
#include "store/command/choose.h"
#include "store/command/commands.h"
#include "store/command/subtask.h"

enum {
	CLAIM_BYTES_MAX = 4 << 20, /* after that a claim hands out no further task */
	AGAIN_BYTES_MAX =
		2 * CLAIM_BYTES_MAX, /* so that what one claim handed out comes again, in any order */
	TURN_BYTES_MAX = 64 << 20,   /* after that a turn begins no further claim */
};

static void union_with(struct name_set *set, const struct name_set *more)
{
	for (uint32_t i = 0; i < more->count && set->count < NAME_SET_MAX; i++) {
		if (!name_set_contains(set, more->ids[i]))
			set->ids[set->count++] = more->ids[i];
	}
}

/* What it says now counts beside what it said when it registered. The result may be a refusal. */
static int chooser_init(
	struct turn *turn, const struct command *command, struct chooser *chooser, struct result *result)
{
	const struct names *names = &turn->store->names;
	const struct command_claim *wants = &command->claim;
	unset struct name_set registered;

	chooser->worker = turn_worker(turn, command->worker, true);
	if (!chooser->worker)
		return -ENOMEM;
	struct worker *worker = &chooser->worker->worker;
	result->not_yours = !worker_belongs_to(worker, command->principal);
	if (result->not_yours)
		return command_refuse(result, REFUSED_FORBIDDEN);
	worker->principal = command->principal; /* it was nobody's, or it was the caller's already */
	int r = holder_announce(turn, worker->handle, &wants->announced);
	if (r < 0)
		return r;
	chooser->wants = wants;
	chooser->handed_before = turn->handed_bytes;
	chooser->slot = wants->slot.len > 0 ? names_find(names, wants->slot) : worker->slot;
	if (chooser->slot != worker->slot && slot_is_foreign(turn, command, wants->slot))
		return command_refuse(result, REFUSED_SLOT_TAKEN);
	names_resolve(names, wants->capabilities, &chooser->capabilities);
	names_set_members(names, worker->capabilities, &registered);
	union_with(&chooser->capabilities, &registered);
	if (wants->any_executor && worker->state != WORKER_UNKNOWN) {
		names_set_members(names, worker->executors, &chooser->executors);
		chooser->any_executor = worker->any_executor;
	} else {
		names_resolve(names, wants->executors, &chooser->executors);
		chooser->any_executor = wants->any_executor;
	}
	chooser->slot_entry = slot_entry_of(turn, chooser->slot, command->worker);
	chooser->own_entry =
		slot_entry_of(turn, chooser->slot != worker->slot ? worker->slot : 0, command->worker);
	chooser->enters = false;
	return 0;
}

static enum refusal entries_refuse(const struct chooser *chooser)
{
	enum refusal refusal = chooser->own_entry.decision.refusal;

	return refusal != REFUSED_NOTHING ? refusal : chooser->slot_entry.decision.refusal;
}

/* Most claims are for no slot, or for one that has nothing to tell. */
static int entries_pass(struct turn *turn, struct chooser *chooser)
{
	int r = chooser->own_entry.decision.event != EVENT_NONE ? slot_entry_pass(turn, &chooser->own_entry)
								: 0;

	if (r == 0 && chooser->slot_entry.decision.event != EVENT_NONE)
		r = slot_entry_pass(turn, &chooser->slot_entry);
	return r;
}

/* A claim of an older client is a sign of life, and may be the first: a name that has ended comes back with it. The
 * worker counts as alive for the decision; that is written only if the claim is accepted. */
static int chooser_enter(
	struct turn *turn, const struct command *command, struct chooser *chooser, struct result *result)
{
	struct worker *worker = &chooser->worker->worker;
	const struct beat beat = {
		.principal = command->principal,
		.lease_ms = command->claim.lease_ms,
		.named = true,
	};

	if (!command->claim.enters)
		return 0;
	turn->given.next_token = store_next_token(turn->store);
	chooser->entry = worker_beat(worker, &beat, false, &turn->given);
	if (chooser->entry.refusal != REFUSED_NOTHING)
		return command_refuse(result, chooser->entry.refusal);
	chooser->enters = true;
	chooser->entry.must_store |= chooser->entry.event != EVENT_NONE;
	return 0;
}

static const struct worker *claiming_worker(const struct chooser *chooser)
{
	return chooser->enters ? &chooser->entry.worker : &chooser->worker->worker;
}

static int entry_pass(struct turn *turn, struct chooser *chooser)
{
	assert(chooser->enters);
	struct record record = turn_record(turn, chooser->entry.event);
	record.note = (struct span){0};
	record_fact(&record, FACT_MAX, chooser->entry.worker.max_concurrent);
	record_fact(&record, FACT_NAMED, chooser->entry.worker.named);
	chooser->enters = false;
	return turn_write_worker(turn, chooser->worker, &chooser->entry, &record);
}

static struct claimant claimant_of(const struct chooser *chooser)
{
	const struct command_claim *wants = chooser->wants;

	return (struct claimant){
		.worker = claiming_worker(chooser),
		.slot = chooser->slot,
		.named = wants->named,
		.takes_pending = wants->takes_pending,
		.resumes = wants->resumes,
		.confirms = wants->confirms,
		.lease_ms = wants->lease_ms,
		.run_ms = wants->run_ms,
		.request = wants->request,
	};
}

/* What an earlier attempt left for the next one, if anything. */
static int take_left(struct turn *turn, int64_t seq, struct claimed *claimed)
{
	struct store *store = turn->store;
	int r = store_get_kept(store, seq, EXTRA_CHECKPOINT, &turn->arena, &claimed->checkpoint);

	if (r == 0)
		r = store_get_kept(store, seq, EXTRA_SESSION, &turn->arena, &claimed->session);
	if (r == 0)
		r = store_get_kept(store, seq, EXTRA_QUESTION, &turn->arena, &claimed->question);
	if (r == 0)
		r = store_get_kept(store, seq, EXTRA_ERROR, &turn->arena, &claimed->error);
	if (r == 0)
		r = usage_read(store, seq, &turn->arena, &claimed->usage);
	if (r == 0)
		r = question_hand_over(turn, claimed);
	return r;
}

static int hand_over(struct turn *turn, struct turn_task *view, struct result *result)
{
	struct claimed *claimed = (struct claimed *)&result->claims[result->claim_count];
	const struct turn_worker *worker = turn_worker_by_number(turn, view->task.claim.holder);

	if (!worker)
		return -ENOMEM;
	/* handed out before, and the memory does not keep when */
	if (view->task.updated_ms == 0) {
		struct task_row row;
		int r = store_rows(turn->store, get_task, view->task.seq, &turn->arena, &row);
		if (r < 0)
			return r;
		view->task.updated_ms = row.task.updated_ms;
	}
	claimed->task = view->task;
	claimed->lease_ms = task_lease_remaining_ms(&view->task, &worker->worker, &turn->given);
	int r = turn_id_text(turn, view, &claimed->id);
	if (r == 0)
		r = arena_copy(&turn->arena, holds_fallback(turn, &view->task), &claimed->fallback);
	if (r == 0)
		r = store_rows(turn->store, get_body, view->task.seq, &turn->arena, &claimed->body);
	if (r == 0 && view->task.attempt > 1)
		r = take_left(turn, view->task.seq, claimed);
	if (r == 0 && (view->task.attempt > 1 || turn_is_told(turn, view->task.seq)))
		r = tellings_hand_over(turn, claimed);
	if (r < 0)
		return r;
	turn->handed_bytes += claimed->body.len + claimed->checkpoint.len + claimed->session.len +
		claimed->question.len + claimed->answer.len + claimed->error.len;
	for (uint32_t i = 0; i < claimed->answered_count; i++)
		turn->handed_bytes += claimed->answered[i].question.len + claimed->answered[i].answer.len;
	result->claim_count++;
	return 0;
}

bool command_is_limited(struct turn *turn, const struct task *task, uint32_t holder, struct result *result)
{
	result->limit = turn_task_limit(turn, task);
	if (result->limit == LIMIT_BUDGET)
		result->until_ms = day_end_ms(turn->given.now.wall_ms);
	if (result->limit == LIMIT_RATE)
		result->until_ms = turn_rate_opens_ms(turn, task->queue, task->concurrency_key);
	if (result->limit == LIMIT_NONE && !holds_let_claim(turn, holder, task->executor, task->credential)) {
		result->limit = LIMIT_HOLD;
		result->until_ms = holds_until_ms(turn, holder, task);
	}
	return result->limit != LIMIT_NONE;
}

/* Claim this one; a refusal goes into the result. */
static int claim_view(
	struct turn *turn, struct chooser *chooser, struct turn_task *view, struct result *result)
{
	struct claimant by = claimant_of(chooser);

	by.opted_in = store_opts_in(turn->store, view->task.queue);
	by.unfit = chooser->wants->fits && !store_task_fits(turn->store, &view->task, &chooser->capabilities);
	result->unfit = by.unfit;
	struct task_decision decision =
		task_claim(&view->task, &by, turn_queue(turn, view->task.queue), &turn->given);

	bool is_new = decision.refusal == REFUSED_NOTHING && !task_is_claimed(&view->task);
	if (is_new && command_is_limited(turn, &view->task, by.worker->handle, result))
		return command_refuse(result, REFUSED_LIMITED);
	if (decision.refusal == REFUSED_NOTHING && entries_refuse(chooser) != REFUSED_NOTHING)
		return command_refuse(result, entries_refuse(chooser));
	int r = decision.refusal == REFUSED_NOTHING ? entries_pass(turn, chooser) : 0;
	if (r == 0 && decision.refusal == REFUSED_NOTHING && chooser->enters)
		r = entry_pass(turn, chooser);
	if (r == 0)
		r = command_write(turn, view, &decision, result);
	if (r == 0 && result->refusal == REFUSED_NOTHING)
		r = holds_take_permit(turn, &view->task, is_new);
	if (r == 0 && result->refusal == REFUSED_NOTHING)
		r = subtask_keep_list(turn, view);
	if (r < 0 || result->refusal != REFUSED_NOTHING)
		return r;
	return hand_over(turn, view, result);
}

/* The same worker again: the same claim, from now on. */
static int claim_longer(struct turn *turn, const struct command *command, struct chooser *chooser,
	struct turn_task *view, struct result *result)
{
	struct claimant by = claimant_of(chooser);

	if (!command->by_name && command->fence != view->task.fence)
		return command_refuse(result, REFUSED_STALE_CLAIM);
	struct task_decision decision = task_extend(&view->task, &by, &turn->given);
	int r = decision.refusal == REFUSED_NOTHING && chooser->enters ? entry_pass(turn, chooser) : 0;
	if (r < 0)
		return r;
	r = command_write(turn, view, &decision, result);
	return r < 0 || result->refusal != REFUSED_NOTHING ? r : hand_over(turn, view, result);
}

/* No claim takes more than its share of a turn, and what was handed over must fit into a reply. */
static bool has_enough(const struct turn *turn, const struct chooser *chooser, const struct result *result)
{
	return result->claim_count >= chooser->wants->max ||
		turn->handed_bytes - chooser->handed_before >= CLAIM_BYTES_MAX;
}

/* Two replies carry it now. Which of them is read nobody knows, so the loss of one says nothing: see execute_return(). */
static int hand_over_again(
	struct turn *turn, const struct command_claim *wants, struct turn_task *view, struct result *result)
{
	struct task_decision reissued = task_reissue(&view->task);

	struct record record = turn_record(turn, reissued.event);
	int r = wants->tokens ? turn_write_task(turn, view, &reissued, &record) : 0;
	if (r < 0)
		return r;
	result->repeated = true;
	view->task.claim.handed_again = true;
	view->changed = true;
	return hand_over(turn, view, result);
}

/* It made more than is asked for by now. */
static int make_room(struct turn *turn, struct result *result)
{
	struct claimed *claims = arena_alloc(&turn->arena, COMMAND_CLAIMS_MAX * sizeof *claims);

	if (!claims)
		return -ENOMEM;
	memcpy(claims, result->claims, result->claim_count * sizeof *claims);
	result->claims = claims;
	return 0;
}

/* The same requestId again: hand out all of its claims once more, unless one of them was confirmed. A claim left out now
 * would never reach the claimant. */
static int claim_again(struct turn *turn, const struct chooser *chooser, struct result *result)
{
	struct held_tasks held;
	struct turn_task *view;
	int r = chooser->wants->request == 0 ? 0 : turn_held_by(turn, chooser->worker, &held);

	if (r < 0 || chooser->wants->request == 0)
		return r;
	for (uint32_t i = 0; i < held.count && result->claim_count < COMMAND_CLAIMS_MAX &&
		turn->handed_bytes - chooser->handed_before < AGAIN_BYTES_MAX;
		i++) {
		r = turn_task(turn, held.seqs[i], &view);
		if (r < 0)
			return r;
		if (view->task.state != TASK_CLAIMED || view->task.claim.request != chooser->wants->request ||
			!command_sees(turn, &view->task))
			continue;
		if (result->claim_count == chooser->wants->max)
			r = make_room(turn, result);
		if (r == 0)
			r = hand_over_again(turn, chooser->wants, view, result);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Its own live claims first: each gets a new fence. */
static int claim_resume(struct turn *turn, struct chooser *chooser, struct result *result)
{
	struct held_tasks held;
	struct turn_task *view, *best;
	int r = chooser->wants->resumes ? turn_held_by(turn, chooser->worker, &held) : 0;

	if (r < 0 || !chooser->wants->resumes)
		return r;
	while (!has_enough(turn, chooser, result)) {
		best = NULL;
		for (uint32_t i = 0; i < held.count; i++) {
			r = held.seqs[i] == 0 ? -ENOENT : turn_task(turn, held.seqs[i], &view);
			if (r == -ENOENT)
				continue;
			if (r < 0)
				return r;
			if (task_state_must_hold_claim(view->task.state) && !view->task.claim.stopping &&
				chooser_wants_queue(turn, chooser, view->task.queue) &&
				(!best ||
					task_claim_order(&view->task, &best->task,
						turn->store->rules.queue_age_ms) < 0))
				best = view;
		}
		if (!best)
			return 0;
		for (uint32_t i = 0; i < held.count; i++) {
			if (held.seqs[i] == best->task.seq)
				held.seqs[i] = 0;
		}
		r = claim_view(turn, chooser, best, result);
		if (r < 0)
			return r;
		result->refusal = REFUSED_NOTHING; /* e.g. it belongs to another slot by now: the next one */
	}
	return 0;
}

static int claim_fresh(struct turn *turn, struct chooser *chooser, struct result *result)
{
	struct turn_task *view;

	while (!has_enough(turn, chooser, result)) {
		if (worker_may_claim(&chooser->worker->worker) != REFUSED_NOTHING)
			return 0;
		int64_t seq;
		int r = choose_next(turn, chooser, &seq);
		if (r < 0 || seq == 0)
			return r;
		r = turn_task(turn, seq, &view);
		if (r == 0)
			r = claim_view(turn, chooser, view, result);
		if (r < 0)
			return r;
		assert(result->refusal == REFUSED_NOTHING); /* only what it may take was offered */
	}
	return 0;
}

/* All tasks that a turn hands out are in memory at once. A claim that comes when these are many waits for the next turn:
 * if the memory ran out, the whole turn would fail, with the commands of others. */
static bool put_off(const struct turn *turn, struct result *result)
{
	result->put_off = turn->handed_bytes >= TURN_BYTES_MAX;
	if (result->put_off)
		command_refuse(result, REFUSED_UNAVAILABLE);
	return result->put_off;
}

/* What both ways to claim begin with. The result has room for claims_max claims, or is a refusal. */
static int claim_begin(struct turn *turn, const struct command *command, uint32_t claims_max,
	struct chooser *chooser, struct result *result)
{
	if (turn->given.disarmed) /* also what was claimed before and is asked for again */
		return command_refuse(result, REFUSED_EXECUTION_DISARMED);
	if (put_off(turn, result))
		return 0;
	int r = chooser_init(turn, command, chooser, result);
	if (r < 0 || result->refusal != REFUSED_NOTHING)
		return r;
	result->worker = chooser->worker->worker;
	result->claims = arena_alloc(&turn->arena, claims_max * sizeof *result->claims);
	return result->claims ? 0 : -ENOMEM;
}

/* A worker that asks for work of queues that its credential is not for gets none at all. */
static int refuse_queues(struct turn *turn, const struct command *command, struct result *result)
{
	uint32_t number = index_find_holder(&turn->store->index, command->worker);
	struct holder *holder = number != 0 ? index_holder(&turn->store->index, number) : NULL;

	if (holder && worker_belongs_to(&holder->worker, command->principal))
		holder->refused = true;
	result->other_queues = true;
	return command_refuse(result, REFUSED_FORBIDDEN);
}

int execute_claim_next(struct turn *turn, const struct command *command, struct result *result)
{
	unset struct chooser chooser;

	if (command->claim.forbidden)
		return refuse_queues(turn, command, result);
	assert(command->claim.max <= COMMAND_CLAIMS_MAX);
	int r = claim_begin(turn, command, command->claim.max + 1, &chooser, result);
	if (r < 0 || result->refusal != REFUSED_NOTHING)
		return r;
	if (chooser.worker->worker.state == WORKER_INACTIVE)
		return command_refuse(result, REFUSED_WORKER_INACTIVE);
	r = claim_again(turn, &chooser, result);
	if (r < 0 || result->claim_count > 0)
		return r;
	if (entries_refuse(&chooser) != REFUSED_NOTHING)
		return 0; /* nothing for it now */
	r = claim_resume(turn, &chooser, result);
	return r < 0 ? r : claim_fresh(turn, &chooser, result);
}

int execute_claim(struct turn *turn, const struct command *command, struct result *result)
{
	unset struct chooser chooser;
	struct turn_task *view;

	int r = claim_begin(turn, command, 1, &chooser, result);
	if (r < 0 || result->refusal != REFUSED_NOTHING)
		return r;
	r = command_load(turn, command, result, &view);
	if (r == 0 && view)
		r = chooser_enter(turn, command, &chooser, result);
	if (r < 0 || !view || result->refusal != REFUSED_NOTHING)
		return r;
	if (command->claim.request != 0 && view->task.state == TASK_CLAIMED &&
		view->task.claim.holder == chooser.worker->worker.handle &&
		view->task.claim.request == command->claim.request)
		return hand_over_again(turn, &command->claim, view, result);
	if (command->claim.extends && view->task.claim.holder == chooser.worker->worker.handle)
		return claim_longer(turn, command, &chooser, view, result);
	return claim_view(turn, &chooser, view, result);
}
