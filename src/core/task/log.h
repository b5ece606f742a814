/*
 * Logs: what an attempt's process printed, appended by its holder, and what is kept of it.
 *
 * Positions are bytes since the attempt began; a repeated append is known by where it says that it begins. What is
 * kept is a list of chunks: the first quarter of the limit and the latest rest, because a failure shows at the end and
 * its reason often at the beginning. What lies between is dropped, and so is what the holder says it dropped itself.
 *
 * Here is only where the chunks lie; their bytes are the store's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/task/given.h"
#include "core/refusal.h"

enum {
	LOG_APPEND_MAX = 64 << 10, /* bytes of one append */
	LOG_CHUNK_MAX = 16 << 10,  /* small appends make a chunk grow up to this many bytes */
	LOG_CHUNKS_MAX = 512,
	LOG_ATTEMPTS_MAX = 10,  /* attempts of one task that have a log; the oldest log is removed */
	LOG_KEEP_MAX = 4 << 20, /* bytes of one attempt */
	/* Output events of a session: at most the last LOG_TOLD_MAX bytes of an append; each counts as at least
	 * LOG_TOLD_LEAST; burst LOG_TOLD_ROOM, then LOG_TOLD_PER_S. */
	LOG_TOLD_MAX = 4 << 10,
	LOG_TOLD_LEAST = 512,
	LOG_TOLD_ROOM = 64 << 10,
	LOG_TOLD_PER_S = 4 << 10,
};

#define LOG_LENGTH_MAX (INT64_C(1) << 40)

struct log_chunk {
	int64_t offset;
	uint32_t bytes;
};

/* A leaky bucket: `level` is how many recent bytes count against the limit, and sinks with time. */
struct log_bucket {
	int64_t at_ms; /* lease clock */
	uint32_t level;
};

struct log {
	int64_t length; /* bytes ever appended, kept or not */
	struct log_bucket said, told;
	uint32_t count;
	struct log_chunk chunks[LOG_CHUNKS_MAX]; /* in order; where they do not touch something was dropped */
};

struct log_append {
	int64_t offset;
	int64_t dropped; /* bytes before it that the holder did not keep either */
	uint32_t bytes;
};

struct log_decision {
	enum refusal refusal;
	uint32_t known; /* how many of its first bytes the log has already: they must be the same */
	bool grows;     /* its other bytes are new, or something before them was dropped */
	bool joins;     /* the new bytes go to the end of the last chunk */
	bool tells;     /* an output event is written: the limit on events allows it */
	struct log log; /* as it shall be */
};

struct log_decision log_append(
	const struct log *log, const struct log_append *append, const struct given *given);

/* The first chunk that has bytes at or behind that position, or `count`. */
uint32_t log_find(const struct log *log, int64_t offset);
