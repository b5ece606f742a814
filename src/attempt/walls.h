/*
 * Which wall is around an attempt, how things are called inside of it, and what of that this machine can do. A level is
 * what the executor says, or the stricter one that the task asks for: a task can tighten it and never loosen it.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "exec/wall/wall.h"
#include "attempt/environment.h"
#include "attempt/executor.h"

enum { WALLS_COMPLAINT_BYTES = WALL_REASON_BYTES + WALL_FIX_BYTES + 64 };

/* `asked` may be NULL. A negative errno: the wall is not available here, and the complaint says why and what to do. */
int walls_choose(const struct executor *executor, const char *asked, const char *home, struct wall *ret_wall,
	char complaint[WALLS_COMPLAINT_BYTES]);

/* Fills in the attempt's run dir, the socket in it that leads to the server, and that of the proxy; NULL: there is none. Borrows
 * all. */
void walls_settle(struct wall *wall, const char *run_path, const char *socket, const char *proxy);

/* Replaces the paths of an environment by their names inside, and sets the addresses of the server and of the
 * proxy. -ENOMEM. */
int walls_rename(struct arena *arena, const struct wall *wall, struct environment *about);

/* One line per level, and per executor that is behind a wall: works or not, why, what to do. Tries each. For `stint doctor`,
 * as JSON: [{"level":"sandbox","executor":null,"works":true,"text":"…","fix":"…"}, …; the caller closes the list. Faults as
 * buf_put(). */
int walls_report(
	const struct executor *executors, uint32_t count, const struct wall_trial *trial, struct buf *out);
