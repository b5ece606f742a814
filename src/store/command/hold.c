/*
 * Holds on accounts: opened by failures and by people, tried by one claim at a time, closed by a claim that works.
 *
 * Which account an attempt uses is known from its task, or from what its worker announced for the executor. What workers
 * announce lives in memory: they say it again with every claim.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/command/commands.h"
#include "store/record/small.h"

enum {
	HOLDS_MAX = 1000,
};

/* ---- as the turn has them ---------------------------------------------------------------------------------------- */

struct hold turn_hold(const struct turn *turn, uint32_t credential)
{
	const struct store *store = turn->store;

	for (uint32_t i = 0; i < turn->hold_count; i++) {
		if (turn->holds[i].credential == credential)
			return turn->holds[i].hold;
	}
	for (uint32_t i = 0; i < store->hold_count; i++) {
		if (store->holds[i].credential == credential)
			return store->holds[i].hold;
	}
	return (struct hold){0};
}

bool holds_exist(const struct turn *turn)
{
	return turn->store->hold_count + turn->hold_count > 0;
}

static bool probe_lives(const struct turn *turn, const struct hold *hold)
{
	struct task task;

	const struct turn_task *view = turn_find_task(turn, hold->probe_task);
	if (view)
		return task_is_claimed(&view->task) && view->task.fence == hold->probe_fence;
	uint32_t place = index_find(&turn->store->index, hold->probe_task);
	if (place == MAP_NONE)
		return false;
	index_get(&turn->store->index, place, &task);
	return task_is_claimed(&task) && task.fence == hold->probe_fence;
}

static bool lets(const struct turn *turn, uint32_t credential)
{
	struct hold hold = turn_hold(turn, credential);
	bool lives = hold.state == HOLD_PROBING && hold.probe_task != 0 && probe_lives(turn, &hold);

	return hold_lets(&hold, lives, &turn->given);
}

int turn_write_hold(struct turn *turn, uint32_t credential, const struct hold_decision *decision)
{
	struct span name = names_text(&turn->store->names, credential);
	char data[SMALL_BYTES_MAX];
	uint32_t i = 0;

	while (i < turn->hold_count && turn->holds[i].credential != credential)
		i++;
	int r = turn_grow((void **)&turn->holds, i, &turn->hold_cap, sizeof *turn->holds);
	if (r == 0 && decision->event != EVENT_NONE) {
		struct record record = turn_record(turn, decision->event);
		record.subject = name;
		if (decision->hold.until_ms != 0)
			record_fact(&record, FACT_RETRY_AT, decision->hold.until_ms);
		r = turn_write_event(turn, &record);
	}
	if (r < 0)
		return r;
	turn->holds[i] = (struct turn_hold){credential, decision->hold};
	if (i == turn->hold_count)
		turn->hold_count++;
	turn->holds_let |= decision->hold.state != HOLD_HELD;
	return decision->hold.state == HOLD_NONE
		? turn_put(turn, delete_small, SMALL_HOLD, name)
		: turn_put(turn, put_small, SMALL_HOLD, name, small_hold_put(&decision->hold, data));
}

/* ---- what workers announce --------------------------------------------------------------------------------------- */

/* One piece of memory: the list, and behind it the texts. */
static struct worker_account *copy_accounts(const struct command_accounts *said)
{
	size_t bytes = said->count * sizeof(struct worker_account);

	for (uint32_t i = 0; i < said->count; i++)
		bytes += said->items[i].executor.len + said->items[i].account.len;
	struct worker_account *list = malloc(bytes);
	if (!list)
		return NULL;
	char *text = (char *)(list + said->count);
	for (uint32_t i = 0; i < said->count; i++) {
		const struct command_account *one = &said->items[i];
		memcpy(text, one->executor.data, one->executor.len);
		list[i].executor = (struct span){text, one->executor.len};
		text += one->executor.len;
		memcpy(text, one->account.data, one->account.len);
		list[i].account = (struct span){text, one->account.len};
		text += one->account.len;
	}
	return list;
}

static int keep_said(const struct command_accounts *said, struct worker_account **list, uint32_t *count)
{
	if (!said->given)
		return 0;
	assert(said->count <= COMMAND_LIST_MAX);
	struct worker_account *copy = said->count > 0 ? copy_accounts(said) : NULL;
	if (said->count > 0 && !copy)
		return -ENOMEM;
	free(*list);
	*list = copy;
	*count = said->count;
	return 0;
}

int holder_announce(struct turn *turn, uint32_t holder_number, const struct command_announced *said)
{
	struct holder *holder = index_holder(&turn->store->index, holder_number);
	int r = keep_said(&said->accounts, &holder->accounts, &holder->account_count);

	if (r == 0)
		r = keep_said(&said->subtasks, &holder->subtasks, &holder->subtask_count);
	return r < 0 ? r : keep_said(&said->fallback, &holder->fallback, &holder->fallback_count);
}

bool holder_lists(const struct turn *turn, uint32_t holder_number, struct span executor, struct span other)
{
	const struct holder *holder = index_holder(&turn->store->index, holder_number);

	for (uint32_t i = 0; i < holder->subtask_count; i++) {
		if (span_equal(holder->subtasks[i].executor, executor) &&
			span_equal(holder->subtasks[i].account, other))
			return true;
	}
	return false;
}

/* The first that it announced for that executor (empty: any) of that name (empty: any). */
static const struct worker_account *find_account(
	const struct holder *holder, struct span executor, struct span account)
{
	for (uint32_t i = 0; i < holder->account_count; i++) {
		const struct worker_account *one = &holder->accounts[i];
		if ((executor.len == 0 || span_equal(one->executor, executor)) &&
			(account.len == 0 || span_equal(one->account, account)))
			return one;
	}
	return NULL;
}

static bool is_announced(const struct store *store, struct span account)
{
	for (uint32_t number = 0; (number = index_next_holder(&store->index, number)) != 0;) {
		const struct holder *holder = index_holder(&store->index, number);
		if (worker_is_alive(&holder->worker) && find_account(holder, (struct span){0}, account))
			return true;
	}
	return false;
}

/* ---- claims ------------------------------------------------------------------------------------------------------ */

/* Held, or tried by another task than that: then a fallback serves. Not while it is released: the next claim is let through soon. */
static bool is_held(const struct turn *turn, uint32_t credential, int64_t task)
{
	struct hold hold = turn_hold(turn, credential);

	return hold.state == HOLD_HELD ||
		(hold.state == HOLD_PROBING && hold.probe_task != 0 && hold.probe_task != task &&
			probe_lives(turn, &hold));
}

/* How a claim of such a task would run. */
struct way {
	uint32_t account;     /* 0: none that could be held */
	struct span fallback; /* the executor that takes the place of its own; empty: none does */
	bool is_held;         /* the account is: no claim */
};

/* With that executor, as far as the claimant says. The first of its accounts that is free; else the last one. */
static struct way way_with(
	const struct turn *turn, const struct holder *holder, struct span executor, int64_t task)
{
	const struct names *names = &turn->store->names;
	struct way way = {0};

	for (uint32_t i = 0; i < holder->account_count; i++) {
		const struct worker_account *one = &holder->accounts[i];
		if (!span_equal(one->executor, executor))
			continue;
		way.account = names_find(names, one->account);
		way.is_held = way.account != 0 && is_held(turn, way.account, task);
		if (way.account == 0 || lets(turn, way.account))
			return way;
	}
	return way;
}

/* The first executor that takes the place of one whose account is held, and that is not held itself. */
static struct way way_around(const struct turn *turn, const struct holder *holder, struct span executor,
	struct way own, int64_t task)
{
	for (uint32_t i = 0; i < holder->fallback_count; i++) {
		const struct worker_account *one = &holder->fallback[i];
		if (!span_equal(one->executor, executor))
			continue;
		struct way way = way_with(turn, holder, one->account, task);
		way.fallback = one->account;
		if (!way.is_held)
			return way;
	}
	return own;
}

/* `task`: the task that has the claim already; 0: it is to be made. False: the claimant has other accounts than the task names. */
static bool way_for(const struct turn *turn, uint32_t holder_number, uint32_t executor, uint32_t credential,
	int64_t task, struct way *ret_way)
{
	const struct names *names = &turn->store->names;
	const struct holder *holder = index_holder(&turn->store->index, holder_number);
	struct span wanted = executor != 0 ? names_text(names, executor) : (struct span){0};
	struct way own = {.account = credential};

	if (credential != 0) {
		bool announces = executor != 0 && find_account(holder, wanted, (struct span){0});
		if (announces && !find_account(holder, wanted, names_text(names, credential)))
			return false;
		own.is_held = is_held(turn, credential, task);
	} else if (executor != 0) {
		own = way_with(turn, holder, wanted, task);
	}
	*ret_way = own.is_held && executor != 0 ? way_around(turn, holder, wanted, own, task) : own;
	return true;
}

struct span holds_fallback(const struct turn *turn, const struct task *task)
{
	struct way way;

	if (!holds_exist(turn) ||
		!way_for(turn, task->claim.holder, task->executor, task->credential, task->seq, &way))
		return (struct span){0};
	return way.fallback;
}

bool holds_let_claim(const struct turn *turn, uint32_t holder_number, uint32_t executor, uint32_t credential)
{
	struct way way;

	if (credential == 0 && !holds_exist(turn))
		return true;
	return way_for(turn, holder_number, executor, credential, 0, &way) &&
		(way.account == 0 || lets(turn, way.account));
}

int64_t holds_until_ms(const struct turn *turn, uint32_t holder_number, const struct task *task)
{
	struct way way = {0};

	way_for(turn, holder_number, task->executor, task->credential, 0, &way);
	return way.account != 0 ? turn_hold(turn, way.account).until_ms : 0;
}

int holds_take_permit(struct turn *turn, const struct task *task, bool is_new)
{
	struct way way = {0};

	if (!holds_exist(turn))
		return 0;
	way_for(turn, task->claim.holder, task->executor, task->credential, 0, &way);
	struct hold before = way.account != 0 ? turn_hold(turn, way.account) : (struct hold){0};
	if (before.state != HOLD_PROBING && before.state != HOLD_RELEASING)
		return 0;
	if (!is_new && before.probe_task != task->seq)
		return 0;
	struct hold_decision taken = {.hold = is_new
			? hold_claimed(&before, task->seq, task->fence, &turn->given)
			: hold_resumed(&before, task->seq, task->fence)};
	return turn_write_hold(turn, way.account, &taken);
}

/* ---- what attempts say ------------------------------------------------------------------------------------------- */

/* An account of an executor that takes the place of that one. NULL: none is. */
static const struct worker_account *find_fallback_account(
	const struct holder *holder, struct span executor, struct span account)
{
	const struct worker_account *found = NULL;

	for (uint32_t i = 0; !found && i < holder->fallback_count; i++) {
		if (span_equal(holder->fallback[i].executor, executor))
			found = find_account(holder, holder->fallback[i].account, account);
	}
	return found;
}

struct span holds_account_of(const struct turn *turn, const struct task *task, const struct command *command)
{
	const struct span nothing = {0};
	const struct names *names = &turn->store->names;
	struct span named = command->account;

	if (task->claim.holder == 0)
		return nothing;
	const struct holder *holder = index_holder(&turn->store->index, task->claim.holder);
	struct span executor = task->executor != 0 ? names_text(names, task->executor) : nothing;
	const struct worker_account *other =
		named.len > 0 && executor.len > 0 ? find_fallback_account(holder, executor, named) : NULL;
	if (task->credential != 0) {
		struct span own = names_text(names, task->credential);
		bool says_so = find_account(holder, executor, own) != NULL;
		if (named.len > 0 && !span_equal(named, own))
			return other ? other->account : nothing;
		return says_so || !is_announced(turn->store, own) ? own : nothing;
	}
	if (executor.len == 0 && named.len == 0)
		return nothing; /* which of its executors ran it nobody says */
	const struct worker_account *used = find_account(holder, executor, named);
	used = used ? used : other;
	return used ? used->account : nothing;
}

struct span holds_account_in_use(const struct turn *turn, const struct task *task)
{
	const struct names *names = &turn->store->names;

	if (task->claim.holder == 0)
		return (struct span){0};
	const struct holder *holder = index_holder(&turn->store->index, task->claim.holder);
	struct span executor = holds_fallback(turn, task);
	if (executor.len == 0 && task->credential != 0)
		return names_text(names, task->credential);
	if (executor.len == 0 && task->executor != 0)
		executor = names_text(names, task->executor);
	const struct worker_account *one =
		executor.len > 0 ? find_account(holder, executor, (struct span){0}) : NULL;
	return one ? one->account : (struct span){0};
}

int holds_note_failure(struct turn *turn, struct span account, const struct failure *failure)
{
	uint32_t credential;

	int r = turn_name(turn, account, &credential);
	if (r < 0)
		return r == -E2BIG ? 0 : r; /* the task has failed all the same */
	struct hold before = turn_hold(turn, credential);
	struct hold_decision decision = hold_fail(&before, failure->code, failure->retry_at_ms, &turn->given);
	if (decision.event == EVENT_NONE || turn->store->hold_count + turn->hold_count >= HOLDS_MAX)
		return 0;
	return turn_write_hold(turn, credential, &decision);
}

int holds_note_success(struct turn *turn, const struct task *task, uint64_t fence)
{
	const struct store *store = turn->store;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < store->hold_count; i++) {
		uint32_t credential = store->holds[i].credential;
		struct hold before = turn_hold(turn, credential);
		struct hold_decision decision = hold_prove(&before, task->seq, fence, &turn->given);
		if (decision.event != EVENT_NONE)
			r = turn_write_hold(turn, credential, &decision);
	}
	return r;
}

/* ---- time and people --------------------------------------------------------------------------------------------- */

int holds_run_due(struct turn *turn)
{
	const struct store *store = turn->store;
	int64_t now_ms = turn->given.now.wall_ms;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < store->hold_count; i++) {
		const struct hold *hold = &store->holds[i].hold;
		if (hold_next_ms(hold) > now_ms)
			continue;
		struct hold_decision decision = hold_due(hold, &turn->given);
		r = turn_write_hold(turn, store->holds[i].credential, &decision);
	}
	return r;
}

int64_t holds_next_ms(const struct store *store)
{
	int64_t next_ms = INT64_MAX;

	for (uint32_t i = 0; i < store->hold_count; i++) {
		int64_t at_ms = hold_next_ms(&store->holds[i].hold);
		next_ms = at_ms < next_ms ? at_ms : next_ms;
	}
	return next_ms;
}

int execute_hold(struct turn *turn, const struct command *command, struct result *result)
{
	bool sets = command->kind == COMMAND_HOLD_SET;
	uint32_t credential = names_find(&turn->store->names, command->hold.credential);
	int r = sets ? turn_name(turn, command->hold.credential, &credential) : 0;

	if (r < 0)
		return r == -E2BIG ? command_refuse(result, REFUSED_TOO_LARGE) : r;
	struct hold before = turn_hold(turn, credential);
	if (!sets && before.state == HOLD_NONE)
		return command_refuse(result, REFUSED_NOT_FOUND);
	if (sets && before.state == HOLD_NONE && turn->store->hold_count + turn->hold_count >= HOLDS_MAX)
		return command_refuse(result, REFUSED_TOO_LARGE);
	struct hold_decision decision =
		sets ? hold_set(&before, command->hold.until_ms, &turn->given) : hold_lift(&before);
	return turn_write_hold(turn, credential, &decision);
}

/* ---- looking ----------------------------------------------------------------------------------------------------- */

bool store_next_hold(const struct store *store, uint32_t *at, struct hold_document *ret_hold)
{
	const struct lane *lane = NULL;

	if (*at >= store->hold_count)
		return false;
	const struct turn_hold *hold = &store->holds[(*at)++];
	*ret_hold = (struct hold_document){
		.hold = hold->hold, .name = names_text(&store->names, hold->credential)};
	while ((lane = lanes_walk(&store->index.lanes, lane)))
		ret_hold->tasks += lane->key.credential == hold->credential ? lane->total : 0;
	return true;
}

bool store_hold_keeps(const struct store *store, struct span worker, const struct task *task)
{
	uint32_t holder = index_find_holder(&store->index, worker);

	if (store->hold_count == 0)
		return false;
	if (holder == 0) /* who was never heard of announces no accounts */
		return task->credential != 0 && !lets(&store->turn, task->credential);
	return !holds_let_claim(&store->turn, holder, task->executor, task->credential);
}

bool store_holds_let(const struct store *store)
{
	return store->turn.holds_let;
}

bool store_next_account(
	const struct store *store, struct account_cursor *at, struct account_document *ret_account)
{
	while (at->holder != 0 || !at->begun) {
		if (!at->begun || at->next >= index_holder(&store->index, at->holder)->account_count) {
			at->begun = true;
			at->next = 0;
			at->holder = index_next_holder(&store->index, at->holder);
			continue;
		}
		const struct holder *holder = index_holder(&store->index, at->holder);
		const struct worker_account *one = &holder->accounts[at->next++];
		if (!worker_is_alive(&holder->worker))
			continue;
		*ret_account = (struct account_document){
			.name = one->account,
			.executor = one->executor,
			.worker = holder_id(holder),
		};
		return true;
	}
	return false;
}
