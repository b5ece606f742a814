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
	LOG_CHUNK_MAX = 16 << 10,  /* a chunk grows no further than this by appends that are smaller */
	LOG_CHUNKS_MAX = 512,
	LOG_ATTEMPTS_MAX = 10,  /* of one task that have a log; the oldest one gives way */
	LOG_KEEP_MAX = 4 << 20, /* bytes of one attempt */
	/* what of it is told in events, where it is: */
	LOG_TOLD_MAX = 4 << 10,   /* the last bytes of one append … */
	LOG_TOLD_LEAST = 512,     /* … which count as that many at least … */
	LOG_TOLD_ROOM = 64 << 10, /* … so much at once … */
	LOG_TOLD_PER_S = 4 << 10, /* … and so much for ever */
};

#define LOG_LENGTH_MAX (INT64_C(1) << 40)

struct log_chunk {
	int64_t offset;
	uint32_t bytes;
};

/* Bytes of late: it runs dry with time, and does not run over. */
struct log_bucket {
	int64_t at_ms; /* lease clock */
	uint32_t level;
};

struct log {
	int64_t length; /* all that was said, be it kept or not */
	struct log_bucket said, told;
	uint32_t count;
	struct log_chunk chunks[LOG_CHUNKS_MAX]; /* in order; where they do not touch something was dropped */
};

struct log_append {
	int64_t offset;
	int64_t dropped; /* that many bytes before it the holder did not keep either */
	uint32_t bytes;
};

struct log_decision {
	enum refusal refusal;
	uint32_t known; /* so many of its first bytes lie within the log: they must be the same */
	bool grows;     /* the others are new, or something before them was dropped */
	bool joins;     /* … and go to the end of the last chunk */
	bool tells;     /* the event stream has room for it */
	struct log log; /* as it shall be */
};

struct log_decision log_append(
	const struct log *log, const struct log_append *append, const struct given *given);

/* The first chunk that has bytes at or behind that position; `count` if there is none. */
uint32_t log_find(const struct log *log, int64_t offset);
