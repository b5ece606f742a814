/* Groups as sentences. */
#pragma once

#include "cli/frame/cli.h"

/* "14 done, 3 running, 1 failed"; in the memory of the command. */
const char *group_counts(struct cli *cli, yyjson_val *group);

/* "about 6 min": how long the rest takes if it goes on as it did for the last `spent_ms`, when `ended_before` had ended; NULL: nobody can tell. */
const char *group_left(struct cli *cli, yyjson_val *group, int64_t spent_ms, int64_t ended_before);

/* A line for each of the first few members that failed: its mark, its id, and why. */
void group_put_failed(struct cli *cli, const char *name);
