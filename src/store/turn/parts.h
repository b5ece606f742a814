/*
 * What the files of turn/ share. Only they include this.
 *
 *   turn.c     the life of a turn, and the change of the index after a commit
 *   view.c     copies of tasks and workers that the turn looks at
 *   task.c     writing decisions about tasks
 *   follow.c   what follows from them for the task itself: sessions, stages, gates
 *   write.c    writing decisions about everything else
 */
#pragma once

#include "store/turn/turn.h"

/* A view of a task that the turn has not seen. */
int turn_add_view(struct turn *turn, int64_t seq, struct turn_task **ret_view);

/* Lists the task for claims of this same turn, if it belongs in a lane now. */
int turn_list_ready(struct turn *turn, struct turn_task *view);

/* Writes the row of a task; the event of a change; and both with everything that depends on them, except what
 * turn_follow_*() do. */
int turn_write_row(struct turn *turn, const struct task *task, bool fresh);
int turn_write_change(
	struct turn *turn, struct turn_task *view, const struct task *after, struct record *record);
int turn_write_one(struct turn *turn, struct turn_task *view, const struct task_decision *decision,
	struct record *record);

/* What follows from a change: for the session, given the claim before it; for stage and gates, given the task before it. */
int turn_follow_session(
	struct turn *turn, struct turn_task *view, enum event_kind event, uint64_t fence, uint32_t holder);
int turn_follow_own(struct turn *turn, struct turn_task *view, const struct task *before);
