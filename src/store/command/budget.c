/*
 * Budgets of a day, of queues and of accounts (core/flow/budget.h): what attempts report is counted, and what is spent is told.
 *
 * A queue whose budget is spent hands out nothing before the next day begins. An account is held until then, by a hold as after a quota
 * failure, so that executors that take its place serve meanwhile. What accounts use is counted without a budget, too, for the
 * list of accounts; a queue is counted only under a budget.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store/command/commands.h"
#include "store/record/small.h"

enum {
	BUDGETS_MAX = 2000,
	NOTE_BYTES = 128,
};

/* ---- as the turn has them ---------------------------------------------------------------------------------------- */

static bool is_of(const struct turn_day_budget *one, enum budget_scope scope, uint32_t name)
{
	return one->name == name && one->scope == scope;
}

static bool find(
	const struct turn *turn, enum budget_scope scope, uint32_t name, struct day_budget *ret_budget)
{
	const struct store *store = turn->store;

	for (uint32_t i = 0; i < turn->day_budget_count; i++) {
		if (is_of(&turn->day_budgets[i], scope, name)) {
			*ret_budget = turn->day_budgets[i].budget;
			return true;
		}
	}
	return store_read_budget(store, scope, name, ret_budget);
}

/* "q" or "a", and the name. */
static struct span key_of(struct turn *turn, enum budget_scope scope, uint32_t name)
{
	struct span text = names_text(&turn->store->names, name);
	char *key = arena_alloc(&turn->arena, text.len + 1);

	if (!key)
		return (struct span){0};
	key[0] = scope == BUDGET_OF_QUEUE ? 'q' : 'a';
	memcpy(key + 1, text.data, text.len);
	return (struct span){key, text.len + 1};
}

/* "queue usd 5000000 4100000": scope, part, limit and what is used; of a change the limits alone, and below them what the caller said. */
static struct span note_of(
	struct turn *turn, enum budget_scope scope, const struct day_budget_decision *decision)
{
	const struct day_budget *budget = &decision->budget;
	struct span said = turn_record(turn, decision->event).note;
	size_t room = NOTE_BYTES + said.len;
	char *text = arena_alloc(&turn->arena, room);
	const char *noun = scope == BUDGET_OF_QUEUE ? "queue" : "credential";
	int len;

	if (!text)
		return (struct span){0};
	if (decision->event == EVENT_BUDGET_UPDATED)
		len = snprintf(text, room, "%s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n%.*s", noun,
			budget->most[DAY_USD], budget->most[DAY_TOKENS], budget->most[DAY_TURNS],
			budget->most[DAY_TOOL_CALLS], SPAN_ARGS(said));
	else
		len = snprintf(text, NOTE_BYTES, "%s %s %" PRId64 " %" PRId64, noun,
			day_part_name(decision->part), budget->most[decision->part],
			budget->used[decision->part]);
	return (struct span){text, (size_t)len};
}

static int tell(
	struct turn *turn, enum budget_scope scope, uint32_t name, const struct day_budget_decision *decision)
{
	struct record record = turn_record(turn, decision->event);

	record.subject = names_text(&turn->store->names, name);
	record.note = note_of(turn, scope, decision);
	return record.note.len == 0 ? -ENOMEM : turn_write_event(turn, &record);
}

static int write_row(
	struct turn *turn, enum budget_scope scope, uint32_t name, const struct day_budget *budget)
{
	struct span key = key_of(turn, scope, name);
	char data[SMALL_BYTES_MAX];

	if (key.len == 0)
		return -ENOMEM;
	return day_budget_is_idle(budget, turn->given.now.wall_ms)
		? turn_put(turn, delete_small, SMALL_DAY_BUDGET, key)
		: turn_put(turn, put_small, SMALL_DAY_BUDGET, key, small_day_budget_put(budget, data));
}

static int keep(
	struct turn *turn, enum budget_scope scope, uint32_t name, const struct day_budget_decision *decision)
{
	uint32_t i = 0;

	while (i < turn->day_budget_count && !is_of(&turn->day_budgets[i], scope, name))
		i++;
	int r = turn_grow((void **)&turn->day_budgets, i, &turn->day_budget_cap, sizeof *turn->day_budgets);
	if (r == 0)
		r = write_row(turn, scope, name, &decision->budget);
	if (r == 0 && decision->event != EVENT_NONE)
		r = tell(turn, scope, name, decision);
	if (r < 0)
		return r;
	turn->day_budgets[i] = (struct turn_day_budget){scope, name, decision->budget};
	turn->day_budget_count += i == turn->day_budget_count;
	return 0;
}

/* A row of a day that is over, of something without a limit, is of no use any more. */
static bool is_out_of_use(const struct store *store, const struct turn_day_budget *one)
{
	return day_budget_is_idle(&one->budget, store->budgets_ms);
}

int budgets_reserve(struct turn *turn)
{
	struct store *store = turn->store;

	return turn_grow((void **)&store->day_budgets, store->day_budget_count + turn->day_budget_count,
		&store->day_budget_cap, sizeof *store->day_budgets);
}

void budgets_apply(struct turn *turn)
{
	struct store *store = turn->store;

	store->budgets_ms = turn->given.now.wall_ms;
	for (uint32_t i = 0; i < turn->day_budget_count; i++) {
		const struct turn_day_budget *one = &turn->day_budgets[i];
		uint32_t at = 0;
		while (at < store->day_budget_count && !is_of(&store->day_budgets[at], one->scope, one->name))
			at++;
		assert(at < store->day_budget_cap); /* budgets_reserve() made room */
		store->day_budgets[at] = *one;
		store->day_budget_count += at == store->day_budget_count;
		if (is_out_of_use(store, one))
			store->day_budgets[at] = store->day_budgets[--store->day_budget_count];
	}
}

bool turn_budget_is_spent(const struct turn *turn, uint32_t queue)
{
	struct day_budget budget;

	return find(turn, BUDGET_OF_QUEUE, queue, &budget) &&
		day_budget_is_spent(&budget, turn->given.now.wall_ms);
}

/* ---- accounts ---------------------------------------------------------------------------------------------------- */

/* The account is held until its day is over; a hold that is longer stays. */
static int hold_account(struct turn *turn, uint32_t name)
{
	struct hold before = turn_hold(turn, name);
	struct hold_decision decision =
		hold_spend(&before, day_end_ms(turn->given.now.wall_ms), &turn->given);

	return decision.event == EVENT_NONE ? 0 : turn_write_hold(turn, name, &decision);
}

/* It may have more: a hold that its budget has opened is over. */
static int let_account_go(struct turn *turn, uint32_t name)
{
	struct hold before = turn_hold(turn, name);

	if (before.state != HOLD_HELD || before.code != CODE_BUDGET_EXCEEDED)
		return 0;
	struct hold_decision decision = hold_lift(&before);
	return turn_write_hold(turn, name, &decision);
}

static int follow(struct turn *turn, enum budget_scope scope, uint32_t name, const struct day_budget *before,
	const struct day_budget *after)
{
	int64_t now_ms = turn->given.now.wall_ms;
	bool was = day_budget_is_spent(before, now_ms), is = day_budget_is_spent(after, now_ms);

	if (scope == BUDGET_OF_QUEUE) {
		turn->holds_let |= was && !is; /* claims of the queue go through again */
		return 0;
	}
	if (is && !was)
		return hold_account(turn, name);
	return was && !is ? let_account_go(turn, name) : 0;
}

/* ---- what attempts say ------------------------------------------------------------------------------------------- */

static int use(struct turn *turn, enum budget_scope scope, uint32_t name, const struct usage *before,
	const struct usage *after)
{
	struct day_budget budget = {0};
	bool known = find(turn, scope, name, &budget);

	if (!known &&
		(scope == BUDGET_OF_QUEUE ||
			turn->store->day_budget_count + turn->day_budget_count >= BUDGETS_MAX))
		return 0;
	struct day_budget_decision decision = day_budget_use(&budget, before, after, turn->given.now.wall_ms);
	if (day_budget_is_idle(&decision.budget, turn->given.now.wall_ms))
		return 0;
	int r = keep(turn, scope, name, &decision);
	return r < 0 ? r : follow(turn, scope, name, &budget, &decision.budget);
}

int budgets_use(
	struct turn *turn, const struct task *task, const struct usage *before, const struct usage *after)
{
	uint32_t account;
	int r = use(turn, BUDGET_OF_QUEUE, task->queue, before, after);

	struct span name = r == 0 ? holds_account_in_use(turn, task) : (struct span){0};
	if (r < 0 || name.len == 0)
		return r;
	r = turn_name(turn, name, &account);
	if (r < 0)
		return r == -E2BIG ? 0 : r; /* there is no room for another name: it is not counted */
	return use(turn, BUDGET_OF_ACCOUNT, account, before, after);
}

/* ---- time and people --------------------------------------------------------------------------------------------- */

/* A day has begun: queues that had nothing left hand out again. Holds of accounts end by their own time. */
void budgets_run_due(struct turn *turn)
{
	const struct store *store = turn->store;
	int64_t now_ms = turn->given.now.wall_ms;

	for (uint32_t i = 0; i < store->day_budget_count; i++) {
		const struct turn_day_budget *one = &store->day_budgets[i];
		if (one->scope == BUDGET_OF_QUEUE && day_budget_is_spent(&one->budget, store->budgets_ms) &&
			!day_budget_is_spent(&one->budget, now_ms))
			turn->holds_let = true;
	}
}

int64_t budgets_next_ms(const struct store *store)
{
	for (uint32_t i = 0; i < store->day_budget_count; i++) {
		if (day_budget_is_spent(&store->day_budgets[i].budget, store->budgets_ms))
			return day_end_ms(store->budgets_ms);
	}
	return INT64_MAX;
}

int execute_budget(struct turn *turn, const struct command *command, struct result *result)
{
	return budget_set(turn, command->budget.scope, command->budget.name, &command->budget.patch, result);
}

int budget_set(struct turn *turn, enum budget_scope scope, struct span text,
	const struct day_budget_patch *patch, struct result *result)
{
	struct day_budget before = {0};
	uint32_t name;

	int r = turn_name(turn, text, &name);
	if (r < 0)
		return r == -E2BIG ? command_refuse(result, REFUSED_TOO_LARGE) : r;
	bool known = find(turn, scope, name, &before);
	if (!known && turn->store->day_budget_count + turn->day_budget_count >= BUDGETS_MAX)
		return command_refuse(result, REFUSED_TOO_LARGE);
	struct day_budget_decision decision = day_budget_change(&before, patch, turn->given.now.wall_ms);
	result->repeated = decision.event == EVENT_NONE;
	if (result->repeated)
		return 0;
	r = keep(turn, scope, name, &decision);
	return r < 0 ? r : follow(turn, scope, name, &before, &decision.budget);
}

/* ---- looking: what is committed ---------------------------------------------------------------------------------- */

bool store_read_budget(
	const struct store *store, enum budget_scope scope, uint32_t name, struct day_budget *ret_budget)
{
	for (uint32_t i = 0; i < store->day_budget_count; i++) {
		if (is_of(&store->day_budgets[i], scope, name)) {
			*ret_budget = store->day_budgets[i].budget;
			return true;
		}
	}
	return false;
}

bool store_budget_is_spent(const struct store *store, uint32_t queue)
{
	struct day_budget budget;

	return store_read_budget(store, BUDGET_OF_QUEUE, queue, &budget) &&
		day_budget_is_spent(&budget, store->budgets_ms);
}

bool store_find_budget(
	const struct store *store, enum budget_scope scope, struct span name, struct day_budget *ret_budget)
{
	uint32_t number = names_find(&store->names, name);

	return number != 0 && store_read_budget(store, scope, number, ret_budget);
}

bool store_next_budget(const struct store *store, uint32_t *at, struct budget_document *ret_budget)
{
	if (*at >= store->day_budget_count)
		return false;
	const struct turn_day_budget *one = &store->day_budgets[(*at)++];
	*ret_budget = (struct budget_document){
		.scope = one->scope, .name = names_text(&store->names, one->name), .budget = one->budget};
	return true;
}

int budgets_load(struct store *store, struct span key, const struct day_budget *budget, uint32_t name)
{
	int r = turn_grow((void **)&store->day_budgets, store->day_budget_count + 1, &store->day_budget_cap,
		sizeof *store->day_budgets);

	if (r == 0)
		store->day_budgets[store->day_budget_count++] = (struct turn_day_budget){
			key.data[0] == 'q' ? BUDGET_OF_QUEUE : BUDGET_OF_ACCOUNT, name, *budget};
	return r;
}
