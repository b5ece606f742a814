/*
 * The legal moves of a task, as spec/states.md publishes them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "checker/names.h"

enum {
	PUBLISHED_ROWS_MAX = 128,
};

struct published_row {
	uint32_t kind;
	uint32_t from; /* bit per state word; bit 0 is nowhere */
	uint32_t to;
	bool note; /* leaves the state as it is */
};

struct published {
	struct published_row rows[PUBLISHED_ROWS_MAX];
	uint32_t count;
};

/* 0, or negative errno; -EINVAL: the tables are missing, or name a state that the checker does not know. */
int ck_published_read(struct published *published, struct names *names, const char *path);

bool ck_published_allows(const struct published *published, uint32_t kind, uint32_t from, uint32_t to);
