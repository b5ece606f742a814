/*
 * Sessions in memory: which tasks were spawned under a label of their own, the latest SESSIONS_MAX of them.
 *
 * A label is found on disk among the unique keys, behind a byte that no caller's key has, for as long as its task is
 * kept. That it is also here makes the list of sessions cheap, and a turn learns without looking at the disk whether the
 * claim that it makes or ends is a session's. On disk the order is kept as rows of task 0, round and round.
 */
#pragma once

#include "base/map.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	SESSIONS_MAX = 10000,
};

struct session {
	int64_t seq;      /* of its task; 0: an empty place */
	int64_t ended_ms; /* wall: since when the task is final, else 0 */
	bool own;         /* the task was created for the session */
	bool found;       /* nobody asked for it: the label is what the worker of the attempt calls it */
	uint64_t fence;   /* of a found one: the attempt that it is; 0: not known any more */
	struct span label;
};

struct sessions {
	struct session *items; /* SESSIONS_MAX of them, once there is one */
	uint64_t count;        /* sessions ever added: the next one's place is count % SESSIONS_MAX */
	struct map by_seq;
};

void sessions_init(struct sessions *sessions);
void sessions_done(struct sessions *sessions);

/* The session of that task; NULL: the task is no session. */
struct session *sessions_find(const struct sessions *sessions, int64_t seq);

/* Room for one more, and for all that follow; -ENOMEM. */
int sessions_reserve(struct sessions *sessions);

/* Takes the next place, for which there is room; a task has one session, the last one. The label is on the heap and is taken
 * over. */
void sessions_add(struct sessions *sessions, const struct session *session);
