/*
 * A store in place of the real one: the reads that answer the same in every test of requests (tests/unit/api_fixture.h) and under the
 * fuzzer (tests/fuzz/api_world.c). Each of the two has the others itself. One program includes this once.
 */
#pragma once

#include <errno.h>

#include "base/take.h"
#include "store/read.h"

int store_each_parent(
	struct store *context, int64_t seq, int (*each)(void *, int64_t, bool), void *each_context)
{
	(void)context;
	(void)seq;
	return each(each_context, 1, false);
}

int store_count_subtasks(struct store *context, int64_t seq, struct arena *arena, uint32_t *ret_made)
{
	(void)context;
	(void)seq;
	(void)arena;
	*ret_made = 1;
	return 0;
}

int store_each_subtask(struct store *context, int64_t seq, struct arena *arena, int (*each)(void *, int64_t),
	void *each_context)
{
	(void)context;
	(void)arena;
	return each(each_context, seq + 1);
}

int store_each_held(
	struct store *context, struct span worker, int (*each)(void *, struct span), void *each_context)
{
	(void)context;
	(void)worker;
	return each(each_context, SPAN("t-1"));
}

uint32_t store_slot_owner(const struct store *context, uint32_t slot, int64_t wall_ms)
{
	(void)context;
	(void)slot;
	(void)wall_ms;
	return PRINCIPAL_NOBODY;
}

int store_page_stats(struct store *store, struct stats_key *key, uint32_t limit, bool *ret_more,
	void (*each)(void *context, int64_t hour, struct span queue, uint32_t step,
		const struct stats_cell *cells),
	void *context)
{
	(void)store, (void)key, (void)limit, (void)each, (void)context;
	*ret_more = false;
	return 0;
}

void store_each_fresh_stats(const struct store *store,
	void (*each)(void *context, int64_t minute, struct span queue, const struct stats_cell *cell),
	void *context)
{
	(void)store, (void)each, (void)context;
}

int store_page_spent(struct store *store, struct stats_key *key, uint32_t limit, bool *ret_more,
	void (*each)(void *context, int64_t hour, struct span executor, const struct spent_counts *counts),
	void *context)
{
	(void)store, (void)key, (void)limit, (void)each, (void)context;
	*ret_more = false;
	return 0;
}

void store_each_fresh_spent(const struct store *store,
	void (*each)(void *context, int64_t minute, struct span executor, const struct spent_counts *counts),
	void *context)
{
	(void)store, (void)each, (void)context;
}

int store_read_schedule(const struct store *context, struct span id, struct schedule_document *ret_document)
{
	static const struct schedule schedule = {.id = {"nightly", 7},
		.kind = PLAN_EVERY,
		.every_ms = 60000,
		.task = {"{}", 2},
		.maker = {"alice", 5}};
	static const struct schedule_state state = {.version = 7};
	static const struct schedule_plan plan = {.kind = PLAN_EVERY, .every_ms = 60000};

	(void)context;
	if (!span_equal(id, schedule.id))
		return -ENOENT;
	*ret_document = (struct schedule_document){&schedule, &state, &plan, 60000};
	return 0;
}

int store_page_schedules(const struct store *context, struct span after, uint32_t limit, bool *ret_more,
	int (*each)(void *context, const struct schedule_document *document), void *each_context)
{
	struct schedule_document document;

	(void)limit;
	*ret_more = false;
	store_read_schedule(context, SPAN("nightly"), &document);
	return after.len > 0 ? 0 : each(each_context, &document);
}

int store_schedule_of(struct store *context, const struct task *task, struct arena *arena,
	struct span *ret_id, int64_t *ret_planned_ms)
{
	(void)context;
	(void)task;
	(void)arena;
	(void)ret_id;
	(void)ret_planned_ms;
	return -ENOENT;
}

static const struct inbox_document kept_row = {
	.id = 1,
	.since_ms = 1000,
	.queue = {"q", 1},
	.role = {"app", 3},
	.why = {"{\"code\":\"invalid\"}", 18},
	.task = {"{\"title\":\"t\",\"queue\":\"q\"}", 25},
};

int store_read_kept(
	struct store *context, int64_t id, struct arena *arena, struct inbox_document *ret_document)
{
	(void)context;
	(void)arena;
	if (id != kept_row.id)
		return -ENOENT;
	*ret_document = kept_row;
	return 0;
}

int store_page_kept(struct store *context, int64_t after, uint32_t limit,
	int (*each)(void *context, const struct inbox_document *document), void *each_context)
{
	(void)context;
	(void)limit;
	return after < kept_row.id ? each(each_context, &kept_row) : 0;
}

bool store_damage_place(const struct store *context, uint32_t number, char ret_text[DAMAGE_TEXT_BYTES])
{
	(void)context;
	(void)number;
	(void)ret_text;
	return false;
}

uint32_t store_damages(const struct store *context)
{
	(void)context;
	return 0;
}

const char *store_damage_text(const struct store *context)
{
	(void)context;
	return NULL;
}

int64_t store_next_cursor(struct store *context, int64_t after)
{
	(void)context;
	return after;
}

int store_read_columns(struct store *context, int64_t seq, struct arena *arena, struct task *ret_task)
{
	(void)context;
	(void)arena;
	*ret_task = (struct task){.seq = seq, .version = 1};
	return 0;
}

int store_read_bulk(const struct store *context, uint32_t number, struct bulk_document *ret_document)
{
	static const struct bulk bulk = {.number = 1,
		.action = BULK_MOVE,
		.queue = {"q", 1},
		.filter = {"{\"all\":true}", 12},
		.actor = {"a", 1}};
	static const struct bulk_progress progress = {
		.state = BULK_RUNNING, .last = 9, .matched = 9, .done = 2};

	(void)context;
	if (number != 1)
		return -ENOENT;
	*ret_document = (struct bulk_document){&bulk, &progress};
	return 0;
}

bool store_next_bulk(const struct store *context, uint32_t *number, struct bulk_document *ret_document)
{
	return ++*number == 1 && store_read_bulk(context, 1, ret_document) == 0;
}

const struct workflows *store_workflows(const struct store *context)
{
	(void)context;
	return &workflows_built_in;
}

struct span store_worker_id(const struct store *context, uint32_t handle)
{
	(void)context;
	(void)handle;
	return SPAN("w1");
}

int store_first_parent(struct store *context, int64_t seq, bool dead, int64_t *ret_parent)
{
	(void)context;
	(void)seq;
	(void)dead;
	(void)ret_parent;
	return -ENOENT;
}

int store_read_prompt(struct store *context, int64_t seq, struct arena *arena, struct span *ret_prompt)
{
	(void)context;
	(void)seq;
	(void)arena;
	*ret_prompt = SPAN("You work.");
	return 0;
}

int store_read_agent(struct store *context, int64_t seq, struct arena *arena, struct span *ret_agent)
{
	(void)context;
	(void)seq;
	(void)arena;
	*ret_agent = SPAN("{\"adapter\":\"claude\",\"host\":\"h\",\"attach\":\"claude --resume u\"}");
	return 0;
}

bool store_signing_key(const struct store *context, uint32_t place, struct span *ret_id, int64_t *ret_made_ms)
{
	(void)context;
	if (place > 1)
		return false;
	*ret_id = place == 0 ? SPAN("1-00000002") : SPAN("1-00000001");
	*ret_made_ms = 1000 * (2 - (int64_t)place);
	return true;
}

bool store_next_hold(const struct store *store, uint32_t *at, struct hold_document *ret_hold)
{
	(void)store;
	if ((*at)++ > 0)
		return false;
	*ret_hold = (struct hold_document){
		.name = SPAN("work"), .hold = {.state = HOLD_HELD, .since_ms = 1, .until_ms = 2}, .tasks = 3};
	return true;
}

bool store_find_budget(
	const struct store *store, enum budget_scope scope, struct span name, struct day_budget *ret_budget)
{
	(void)store, (void)scope;
	if (!span_equal(name, SPAN("work")))
		return false;
	*ret_budget = (struct day_budget){.most = {5000000, 0, 7, 0}, .used = {1250000, 3, 0, 0}};
	return true;
}

bool store_next_budget(const struct store *store, uint32_t *at, struct budget_document *ret_budget)
{
	static const struct span names[] = {{"work", 4}, {"other", 5}, {"q", 1}};

	(void)store;
	if (*at == sizeof names / sizeof *names)
		return false;
	*ret_budget = (struct budget_document){.name = names[*at],
		.scope = *at == 2 ? BUDGET_OF_QUEUE : BUDGET_OF_ACCOUNT,
		.budget = {.most = {0, 9, 0, 0}}};
	(*at)++;
	return true;
}

bool store_next_account(
	const struct store *store, struct account_cursor *at, struct account_document *ret_account)
{
	(void)store;
	if (at->begun)
		return false;
	at->begun = true;
	*ret_account = (struct account_document){SPAN("work"), SPAN("claude"), SPAN("w1")};
	return true;
}
