/*
 * One line of a history, taken apart.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checker/names.h"

// clang-format off
/* The lifecycle columns of a task: folding the events gives them. */
#define COLUMNS(X) \
	X(STATE, "state", TEXT) X(FENCE, "fence", NUMBER) X(ATTEMPT, "attempt", NUMBER) \
	X(QUEUE, "queue", TEXT) X(OWNER, "owner", TEXT) X(REQUIRES, "requires", TEXT) \
	X(EXECUTOR, "executor", TEXT) X(PRIORITY, "priority", NUMBER) X(CREATED, "created", NUMBER) \
	X(READY_AT, "ready_at", NUMBER) X(SPENT, "spent", NUMBER) X(CRASHES, "crashes", NUMBER) \
	X(INTERRUPTIONS, "interruptions", NUMBER) X(MAX_ATTEMPTS, "max_attempts", NUMBER) \
	X(OPEN_PARENTS, "open_parents", NUMBER) X(DEAD_PARENTS, "dead_parents", NUMBER) \
	X(ENDED, "ended", TEXT) X(CODE, "code", TEXT) X(TIMEOUT, "timeout", NUMBER) X(HELD, "held", TEXT)

/* What else an event or a client's line may say. */
#define DETAILS(X) \
	X(BEATS, "beats", NUMBER) X(NAMED, "named", NUMBER) X(VERIFY, "verify", NUMBER) \
	X(GRANTED, "granted", NUMBER) X(DEADLINE, "deadline", NUMBER) X(GRACE_END, "grace_end", NUMBER) \
	X(CLASS, "class", TEXT) X(NAME_ONLY, "name_only", NUMBER) X(LEASE, "lease", NUMBER) \
	X(MAX, "max", NUMBER) X(SLOT, "slot", TEXT) X(REASON, "reason", TEXT) \
	X(GENERATION, "generation", NUMBER) X(START, "start", NUMBER) X(RETRY_AT, "retry_at", NUMBER) \
	X(WORKER, "worker", TEXT)
// clang-format on

enum key {
#define X(name, text, type) KEY_##name,
	COLUMNS(X) COLUMN_COUNT,
	KEY_AFTER_COLUMNS = COLUMN_COUNT - 1, /* the next key follows the columns without a gap */
	DETAILS(X)
#undef X
		KEY_COUNT
};

struct record {
	char tag; /* E, B, S, Q or C; 0 for a line that says nothing */
	int64_t seq;
	uint32_t boot;
	int64_t lease_ms; /* C: when the client asked, by its own reading of that clock */
	int64_t wall_ms;
	uint32_t kind;
	uint32_t task;
	uint32_t worker;
	uint32_t from;
	uint32_t phase; /* C: invoke, ok, fail or info */
	uint32_t op;    /* C: what the client asked for */
	uint64_t given; /* bit per key */
	int64_t value[KEY_COUNT];
};

/* The names of the keys, numbered as in enum key. */
void ck_keys_init(struct names *keys);

/* NULL, or what is wrong with the line. */
const char *ck_record_parse(
	struct record *record, const char *line, size_t len, struct names *names, const struct names *keys);

static inline bool record_gives(const struct record *record, enum key key)
{
	return (record->given >> key & 1) != 0;
}
