/*
 * Reading a store between turns: what the API shows, and all of the store that it sees. Nothing here changes anything.
 *
 * Each call is bounded; a list goes on by a key or a position that the caller keeps. Faults are negative errnos; -ENOENT: not
 * found. Texts live in the arena that was given, else until the next turn.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "core/flow/queue.h"
#include "core/flow/schedule.h"
#include "core/flow/stats.h"
#include "core/record.h"
#include "core/task/document.h"
#include "core/why.h"
#include "core/worker/login.h"
#include "core/worker/token.h"
#include "core/worker/worker.h"
#include "core/workflow.h"

struct store;

/* What attempts of an executor have used. */
struct spent_counts {
	uint64_t micro_usd; /* of those whose price is known */
	uint64_t tokens;    /* all that the model read and wrote */
	uint64_t attempts;
	uint64_t unpriced; /* attempts with an unknown price */
};

enum {
	STATS_KEY_BYTES_MAX = 8 + 255, /* the hour, and a name */
};

int store_find_task(struct store *store, struct span id, int64_t *ret_seq); /* -ENOENT */
int store_read_task(struct store *store, int64_t seq, struct moment now, struct arena *arena,
	struct task_document *ret_document);
/* Newest first from INT64_MAX on, or oldest first from 0 on: outlines of all tasks, final or not. Up to `limit` are
 * looked at; the position moves along and is 0, or INT64_MAX, at the end. */
int store_page_rows(struct store *store, bool oldest_first, int64_t *at, uint32_t limit,
	int (*each)(void *context, const struct task_outline *outline), void *context);
/* The queues of that slot, each after ASSIGNMENT_SEPARATOR; -ENOENT: it has none. And of all slots behind `*after`, which
 * is the number of a slot's name, in the order of the names; it moves along and is 0 at the end. */
int store_assignment(struct store *store, struct span slot, struct arena *arena, struct span *ret_queues);
int store_page_assignments(struct store *store, int64_t *after, uint32_t limit,
	int (*each)(void *context, struct span slot, struct span queues), void *context);
/* Fills in `words` and `last` of a task that was read: only the API for older clients shows them. */
int store_read_last(struct store *store, struct arena *arena, struct task_document *document);
/* The columns of a task alone: -ENOENT. */
int store_read_columns(struct store *store, int64_t seq, struct arena *arena, struct task *ret_task);
int store_read_body(struct store *store, int64_t seq, struct arena *arena, struct span *ret_body);
/* The log of an attempt from `after` on, at most `limit` bytes of it; attempt 0: the latest that has one. -ENOENT: no
 * such task, or it had no such attempt. */
int store_read_log(struct store *store, int64_t seq, uint32_t attempt, int64_t after, uint32_t limit,
	struct arena *arena, struct log_piece *ret_piece);
/* The tasks that this one waits for, dead ones too, and those that are done whose results it may still want. */
int store_each_parent(struct store *store, int64_t seq, int (*each)(void *context, int64_t parent, bool done),
	void *context);
/* How many subtasks the task has ever created, or taken up again. */
int store_count_subtasks(struct store *store, int64_t seq, struct arena *arena, uint32_t *ret_made);
/* The subtasks that the task has created since an operator last retried it, oldest first; each() may return a fault. */
int store_each_subtask(struct store *store, int64_t seq, struct arena *arena,
	int (*each)(void *context, int64_t subtask), void *context);
/* Would a worker connector of that name get the open task `seq` if it claimed it now, execution being armed? Without a name:
 * would some connector? */
bool store_offers(const struct store *store, int64_t seq, struct span worker, struct moment now);
/* Outlines for lists. Both look at up to `limit` places and move the position along; it is 0 when there is no more.
 * Tasks that are not final, in no order, from 0 on: one that stays is met exactly once, whatever happens between the
 * calls. And final ones, the newest first, from INT64_MAX on. */
int store_page_open(const struct store *store, uint32_t *at, uint32_t limit,
	int (*each)(void *context, const struct task_outline *outline), void *context);
int store_page_final(struct store *store, int64_t *before, uint32_t limit,
	int (*each)(void *context, const struct task_outline *outline), void *context);
/* -ESTALE: events that follow `after` have been compacted; store_event_base() is the oldest cursor. */
int store_page_events(struct store *store, int64_t after, uint32_t limit,
	int (*each)(void *context, const struct record *record), void *context);
/* The last events of a task that compaction took out of the log, the oldest first. Ends with what is not 0, which it returns. */
int store_each_kept(struct store *store, int64_t task,
	int (*each)(void *context, const struct record *record), void *context);
/* Events of credentials, gates, execution and the server that compaction took out of the log, as store_page_events(). The oldest
 * cursor. */
int store_page_audit(struct store *store, int64_t after, uint32_t limit,
	int (*each)(void *context, const struct record *record), void *context);
int store_audit_base(struct store *store, int64_t *ret_base);
/* The first task that it waits for; `dead`: the first that it waits for in vain. -ENOENT: none. */
int store_first_parent(struct store *store, int64_t seq, bool dead, int64_t *ret_parent);
int store_task_id(struct store *store, const struct task *task, struct arena *arena, struct span *ret_id);
int64_t store_last_event(const struct store *store);
int64_t store_event_base(const struct store *store); /* events up to here are compacted */
struct span store_name(const struct store *store, uint32_t number);
/* The members of a set of names. */
int store_each_member(
	const struct store *store, uint32_t set, int (*each)(void *context, struct span name), void *context);
struct reason store_why(struct store *store, const struct task *task, struct moment now);

/* The holds, and the accounts that live workers announced, one by one; both begin with a zeroed cursor. False: no more. */
struct account_cursor {
	uint32_t holder, next;
	bool begun;
};
bool store_next_hold(const struct store *store, uint32_t *at, struct hold_document *ret_hold);
/* The budgets of a day, one by one; and that of a name, if it has one or has used something today. */
bool store_next_budget(const struct store *store, uint32_t *at, struct budget_document *ret_budget);
bool store_find_budget(
	const struct store *store, enum budget_scope scope, struct span name, struct day_budget *ret_budget);
bool store_next_account(
	const struct store *store, struct account_cursor *at, struct account_document *ret_account);
/* Queues with a task that is not final in them, or paused or draining; a thousand at most. `waiting`: tasks that are ready. */
int store_each_queue(const struct store *store,
	int (*each)(void *context, struct span name, enum queue_state state, uint32_t waiting),
	void *context);
/* One queue; -ENOENT: it never had a task, and nobody set it. Looks at every worker. */
int store_read_queue(struct store *store, struct span name, struct queue_document *ret_queue);
/* The concurrency keys of a queue that have a number of their own, one after the other: *at begins with 0. */
bool store_next_cap(const struct store *store, uint32_t queue, uint32_t *at, struct key_cap *ret_cap);
/* The number of a queue that had a task since the start, or -ENOENT; a page of its concurrency keys, as for store_page_open(); its tasks
 * without one; and, of a page of its open tasks, those that have a key and were claimed once. */
int store_queue_number(const struct store *store, struct span name, uint32_t *ret_queue);
int store_page_keys(const struct store *store, uint32_t queue, uint32_t *at, uint32_t limit,
	int (*each)(void *context, const struct key_document *key), void *context);
struct key_document store_keyless(const struct store *store, uint32_t queue);
int store_page_begun(const struct store *store, uint32_t queue, uint32_t *at, uint32_t limit,
	int (*each)(void *context, uint64_t key, int64_t seq), void *context);
/* A page of the workers, as for store_page_open(). */
int store_page_workers(const struct store *store, uint32_t *at, uint32_t limit,
	int (*each)(void *context, struct span id, const struct worker *worker), void *context);
int store_task_queue(struct store *store, int64_t seq, uint32_t *ret_queue); /* -ENOENT */
int store_read_worker(const struct store *store, struct span id, struct worker_document *ret_document);
struct span store_worker_id(const struct store *store, uint32_t handle); /* valid until the next turn */
/* The ids of the tasks that a worker holds; -ENOENT: no such worker. */
int store_each_held(
	struct store *store, struct span worker, int (*each)(void *context, struct span id), void *context);
/* NULL: no such login. It may have ended. Valid until the next turn. */
const struct browser_login *store_find_login(const struct store *store, struct span id);
int store_each_login(const struct store *store, int (*each)(void *context, const struct browser_login *login),
	void *context);

/* NULL: no such token. It may have ended. Valid until the next turn or sweep. */
const struct token *store_find_token(const struct store *store, struct span id);
/* Id and age of the keys of derived tokens, the newest first. False: there are no more. */
bool store_signing_key(const struct store *store, uint32_t place, struct span *ret_id, int64_t *ret_made_ms);
int store_each_token(const struct store *store, int (*each)(void *context, const struct token *token),
	void *context); /* in order of id */
/* Slots that a live worker fills, and slots with a history, by name. */
int store_each_slot(const struct store *store, int (*each)(void *context, const struct slot_document *slot),
	void *context);
/* -ENOENT: nobody fills it, and nothing ever happened there. */
int store_read_slot(const struct store *store, struct span name, struct slot_document *ret_slot);
/* The principal to which the slot belongs: the one whose worker fills it, or was the last to do so and is remembered, while that
 * principal has a live token. PRINCIPAL_NOBODY: anybody may fill it. */
uint32_t store_slot_owner(const struct store *store, uint32_t slot, int64_t wall_ms);
/* Schedules by id; -ENOENT. And which of them made the task: -ENOENT, none. */
int store_read_schedule(const struct store *store, struct span id, struct schedule_document *ret_document);
/* … and those behind that id, in order of id, at most `limit`; *ret_more: there are others behind them. */
int store_page_schedules(const struct store *store, struct span after, uint32_t limit, bool *ret_more,
	int (*each)(void *context, const struct schedule_document *document), void *context);
int store_schedule_of(struct store *store, const struct task *task, struct arena *arena, struct span *ret_id,
	int64_t *ret_planned_ms);
/* Groups by name; -ENOENT. And the one that an edge of store_first_parent() is of: -ENOENT, it was removed. */
int store_read_group(const struct store *store, struct span name, struct group_document *ret_document);
int store_read_group_of_edge(const struct store *store, int64_t edge, struct group_document *ret_document);
/* … and those behind that name, in order of name, at most `limit`; *ret_more: there are others behind them. */
int store_page_groups(const struct store *store, struct span after, uint32_t limit, bool *ret_more,
	int (*each)(void *context, const struct group_document *document), void *context);
/* Bulk actions by number, -ENOENT; and the next behind that number, running or not. And is one to go on now? */
int store_read_bulk(const struct store *store, uint32_t number, struct bulk_document *ret_document);
bool store_next_bulk(const struct store *store, uint32_t *number, struct bulk_document *ret_document);
bool store_has_bulk(const struct store *store);
/* Sessions: the task of a label (-ENOENT: unknown, or the task is no longer kept); the request of a task's session (-ENOENT:
 * the task is not a session); and a page of the latest sessions, oldest first, as for store_page_open(). */
int store_find_session(struct store *store, struct span label, int64_t *ret_seq);
int store_read_session(
	struct store *store, int64_t seq, struct arena *arena, struct session_document *ret_session);
/* Empty: it has none. */
int store_read_prompt(struct store *store, int64_t seq, struct arena *arena, struct span *ret_prompt);
int store_read_agent(struct store *store, int64_t seq, struct arena *arena, struct span *ret_agent);
int store_page_sessions(const struct store *store, uint32_t *at, uint32_t limit,
	int (*each)(void *context, int64_t seq, int64_t ended_ms), void *context);

/* Figures over time. The rows behind `key`, in order of time, at most `limit`; each has the hour since 1970, the queue, and cells of
 * `step` minutes from the beginning of the hour on. `key` is moved along: it begins as stats_first_key(). Rows that were damaged are
 * left out. *ret_more: there are others behind them. Then what is counted and in no row yet. */
struct stats_key {
	char text[STATS_KEY_BYTES_MAX];
	size_t len;
};
struct stats_key stats_first_key(int64_t hour);
int store_page_stats(struct store *store, struct stats_key *key, uint32_t limit, bool *ret_more,
	void (*each)(void *context, int64_t hour, struct span queue, uint32_t step,
		const struct stats_cell *cells),
	void *context);
void store_each_fresh_stats(const struct store *store,
	void (*each)(void *context, int64_t minute, struct span queue, const struct stats_cell *cell),
	void *context);
int store_page_spent(struct store *store, struct stats_key *key, uint32_t limit, bool *ret_more,
	void (*each)(void *context, int64_t hour, struct span executor, const struct spent_counts *counts),
	void *context);
void store_each_fresh_spent(const struct store *store,
	void (*each)(void *context, int64_t minute, struct span executor, const struct spent_counts *counts),
	void *context);

/* What attempts have used since the server started, by executor; without a name: of none, or of those beyond the first. */
void store_each_spent_since_start(const struct store *store,
	void (*each)(void *context, struct span executor, const struct spent_counts *counts), void *context);

/* All workflows, by number; workflows that are no longer configured have workflow_plan_unknown's rules. */
const struct workflows *store_workflows(const struct store *store);

/* Places of the store that were found damaged by this run; and where the last one is, for operators: valid until the next call
 * that reads. */
uint32_t store_damages(const struct store *store);
const char *store_damage_text(const struct store *store);
/* The damaged places one by one, from 0 on, as "row 7 of table task". False: there are no more, or no more are remembered. */
enum {
	DAMAGE_TEXT_BYTES = 112,
};
bool store_damage_place(const struct store *store, uint32_t number, char ret_text[DAMAGE_TEXT_BYTES]);

/* The cursor behind the events that are lost after `after`. */
int64_t store_next_cursor(struct store *store, int64_t after);

/* queue.ageMs: see task_line_ms(). */
int64_t store_age_ms(const struct store *store);

/* The room on the disk, as its owner saw it last. While it is low the store begins nothing new, except for operators. */
struct store_room {
	uint64_t free_bytes;
	uint64_t low_bytes;  /* below, the room is low; 0: no mark */
	uint64_t open_bytes; /* … until there is so much */
	bool low;
};

const struct store_room *store_room(const struct store *store);

bool store_is_degraded(const struct store *store); /* the disk is full: changes are refused, reads go on */
