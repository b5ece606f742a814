/*
 * How things stand: the tasks that there are, in the four groups that people think in.
 */
#pragma once

#include "cli/frame/cli.h"

enum stand_group { STAND_NEEDS, STAND_RUNNING, STAND_WAITING, STAND_ENDED, STAND_GROUPS };

/* The states of each group, with commas between. */
extern const char *const stand_states[STAND_GROUPS];

bool stand_is_listed(const char *list, const char *word, size_t len);

/* How many open tasks there are in each group, of one queue or (NULL) of all; false: the caller may not know. */
bool stand_count(struct cli *cli, const char *queue, int64_t ret_counts[STAND_GROUPS]);

/* The same from a reply of GET /api/queues that the caller has. */
void stand_count_among(yyjson_val *queues, const char *queue, int64_t ret_counts[STAND_GROUPS]);

/* "5 need you. 10 tasks run on 3 workers and 40 wait, most for their time. 2 failed today." The lists may be NULL: then less is
 * said. */
const char *stand_sentences(struct cli *cli, const int64_t counts[STAND_GROUPS], const char *failed,
	yyjson_val *workers, yyjson_val *tasks_waiting);

/* "2 failed today", of these tasks, the newest first; "". `more`: there are older ones. */
const char *stand_failed_among(struct cli *cli, yyjson_val *ended, bool more);

/* "2 failed today", of the tasks that ended last; or "". `ret_any`: some task has ended. */
const char *stand_failed_today(struct cli *cli, bool *ret_any);
