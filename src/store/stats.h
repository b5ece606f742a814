/*
 * Figures over time: what is counted since the last row was written, and the rows.
 *
 * Counts of queues lie with their tallies in the index, money lies here; both follow committed turns. The sweep writes them once a
 * minute into the row of their queue and hour, in a turn of its own that costs no other turn anything. A crash loses the counts
 * of the minute that was open. Rows of minutes become rows of ten minutes, then of an hour, and are removed after a week.
 */
#pragma once

#include "core/task/usage.h"
#include "core/task/task.h"
#include "store/read.h"

struct turn;

enum {
	SPENT_MAX = 64, /* executors that are told apart; the others count together, without a name */
};

/* What attempts of an executor have used, as far as they said. */
struct spent {
	uint32_t executor; /* name; 0: none was named */
	struct spent_counts counts;
};

struct spent_list {
	struct spent items[SPENT_MAX];
	uint32_t count;
};

struct store_stats {
	int64_t minute; /* since 1970, of the counts that are not written yet; 0: none was begun */
	struct spent_list spent;
	struct spent_list since_start; /* the same, of all minutes since the start */
	int64_t aged_hour;             /* the last hour in which old rows were looked for; … */
	bool is_aging;                 /* … it is under way, and goes on behind that key */
	char aged_to[STATS_KEY_BYTES_MAX];
	size_t aged_to_len;
};

/* Counting begins. */
void stats_begin(struct store_stats *stats, struct moment now);

/* An attempt of the task has said that it used more than before. */
void stats_note_spent(struct turn *turn, const struct task *task, const struct usage *before,
	const struct usage *after, bool is_first);
/* The memory follows the turn. */
void stats_apply_spent(struct turn *turn);

/* Two halves of the sweep: rows are staged, and after the commit what was written is counted no more. */
int stats_write(struct turn *turn, bool all);
void stats_forget(struct turn *turn);
