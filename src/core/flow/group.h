/*
 * Groups: tasks that belong together, counted by state.
 *
 *   open ──close──▶ closed ──its last member becomes final──▶ ended ──DELETE · retention──▶ gone
 *     │                          ▲ a member is retried           │
 *     └──────────────────────────┴───────────────────────────────┘
 *
 * A group begins when a task names it, as its own group or as one to wait for, and belongs to the principal of that task. It has
 * ended when it is closed and every member, perhaps none, is final. Those that wait for it are judged then, as by a parent: let
 * go if all members are done, blocked if not. The counts include members that retention has removed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/event.h"
#include "core/refusal.h"
#include "core/task/task.h"

enum {
	GROUPS_MAX = 100000,           /* of a store */
	GROUP_WAITERS_MAX = 10000,     /* tasks that wait for one group: they are judged in one turn */
	TASK_GROUPS_MAX = 10,          /* blockedByGroups of one task */
	GROUP_CYCLE_LOOKS_MAX = 10000, /* tasks and groups that are looked at for one that waits for itself */
};

struct group_state {
	uint32_t number; /* never given out again: tasks name their group by it */
	uint32_t principal;
	bool closed;
	int64_t created_ms;
	int64_t ended_ms;                  /* wall; 0: it has not ended */
	uint32_t count[TASK_STATE_COUNT];  /* members by state, with those that were removed */
	uint32_t purged[TASK_STATE_COUNT]; /* of these, how many were removed; only final states */
};

struct group_decision {
	enum refusal refusal;
	enum event_kind event; /* EVENT_NONE: none, though the counts may have changed */
	bool ends;             /* EVENT_GROUP_ENDED comes after it */
	bool repeated;         /* it was so before */
	enum follow follow;    /* for those that wait for it */
	struct group_state group;
};

uint32_t group_members(const struct group_state *group);
uint32_t group_open_members(const struct group_state *group); /* that are not final */
bool group_has_ended(const struct group_state *group);

/* May the principal name it? And make a task in it? */
enum refusal group_use_refusal(const struct group_state *group, uint32_t principal, bool oversees);
enum refusal group_join_refusal(const struct group_state *group, uint32_t principal, bool oversees);

/* What the group is to a task that begins to wait for it. */
enum group_verdict {
	GROUP_OPEN,
	GROUP_DONE,
	GROUP_DEAD, /* a member failed or was cancelled */
};
enum group_verdict group_verdict(const struct group_state *group);

/* A member moves: from TASK_NOWHERE it joins. To TASK_NOWHERE a final one is removed, and an open one counts no more: another task has its
 * place. */
struct group_decision group_move(
	const struct group_state *group, enum task_state from, enum task_state to, int64_t now_ms);
struct group_decision group_close(
	const struct group_state *group, uint32_t principal, bool oversees, int64_t now_ms);
/* `waited_for`: tasks that are not final wait for it. */
struct group_decision group_remove(
	const struct group_state *group, uint32_t principal, bool oversees, bool waited_for);

/* Retention removes a group that has ended, with its last member, or an empty one as old as final tasks get. */
bool group_is_past(const struct group_state *group, int64_t now_ms, int64_t keep_ms);

bool group_is_sound(const struct group_state *group);
