/*
 * What the files of turn/ share. Only they include this.
 *
 *   turn/turn.c     the life of a turn, and what the memory learns from a commit
 *   turn/view.c     what it looks at
 *   turn/task.c     decisions about tasks
 *   turn/follow.c   what follows from them for the task itself: sessions, stages, gates
 *   turn/stage.c    decisions about everything else
 */
#pragma once

#include "store/turn/turn.h"

/* A view of a task that the turn has not seen. */
int turn_add_view(struct turn *turn, int64_t seq, struct turn_task **ret_view);

/* It may be claimed in this very turn, if it stands in a lane now. */
int turn_list_ready(struct turn *turn, struct turn_task *view);

/* The row as it shall be; the event of a change, by which it comes to be so; and both, with all that hangs on them but
 * what follows for the task itself. */
int turn_write_row(struct turn *turn, const struct task *task, bool fresh);
int turn_write_change(
	struct turn *turn, struct turn_task *view, const struct task *after, struct record *record);
int turn_write_one(struct turn *turn, struct turn_task *view, const struct task_decision *decision,
	struct record *record);

/* What follows: for its session, given the claim as it was; for its stage and gates, given the task as it was. */
int turn_follow_session(
	struct turn *turn, struct turn_task *view, enum event_kind event, uint64_t fence, uint32_t holder);
int turn_follow_own(struct turn *turn, struct turn_task *view, const struct task *before);
