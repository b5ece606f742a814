/*
 * Where connections come from, and how much a stranger may try: an address, or a user on the Unix socket.
 *
 * A wrong credential costs its source a share of a second. A source that has spent too much is refused for a moment without
 * a look at its credential, unless that was right before (admission.c). The table has a fixed size and forgets sources that owe
 * nothing; when it is full of sources that misbehave, all new ones share one place.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum {
	SOURCE_BYTES = 16,
	SOURCES_SETS = 256,
	SOURCES_WAYS = 4,
};

struct source_key {
	unsigned char
		bytes[SOURCE_BYTES]; /* an IPv6 address, an IPv4 one behind ::ffff, or a uid behind 0xff */
};

struct source {
	struct source_key key;
	int64_t free_at_ms; /* lease clock: when its failed attempts are forgotten */
	uint64_t counted;   /* number of the sweep that `strangers` is of */
	uint32_t strangers; /* its connections without a valid credential, as that sweep counted them */
};

struct sources {
	struct source places[SOURCES_SETS][SOURCES_WAYS];
	struct source others;
	uint64_t sweep;
};

/* The source of a connection; all unknown sources count as one. */
struct source_key source_of(uv_stream_t *stream);

/* Has the source shown so many wrong credentials that no new one is checked for now? `per_s` of them are forgotten each
 * second, and a burst of `per_s` is allowed. */
bool source_is_barred(struct sources *sources, const struct source_key *key, int64_t now_ms);
void source_failed(struct sources *sources, const struct source_key *key, uint32_t per_s, int64_t now_ms);

/* A sweep looks at all connections. source_count(): how many strangers of that source it has seen so far, with this one. */
void sources_begin_sweep(struct sources *sources);
uint32_t source_count(struct sources *sources, const struct source_key *key, int64_t now_ms);
