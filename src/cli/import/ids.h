/*
 * The ids of things that were read, each with the number of its turn: the first one is 0.
 */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "cli/frame/cli.h"

struct ids {
	struct buf texts; /* a const char * each */
	struct map map;
};

void ids_open(struct ids *ids);
void ids_close(struct ids *ids);

/* The next number. Without memory the run ends. The text must live as long as the run. */
void ids_add(struct ids *ids, struct cli *cli, const char *id);

/* The number of the first one; -1: there is none of that id. */
int64_t ids_find(const struct ids *ids, const char *id);
