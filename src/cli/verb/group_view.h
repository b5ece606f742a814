/* Groups as sentences. */
#pragma once

#include "cli/frame/cli.h"

/* "14 done, 3 running, 1 failed"; in the memory of the command. */
const char *group_counts(struct cli *cli, yyjson_val *group);
