/*
 * Where connections come from, and how much a stranger may try: an address, or a user on the Unix socket.
 *
 * A wrong credential costs its source a share of a second. Of a source that has spent too much, further wrong ones are 429 for
 * a moment; right ones pass (admission.c). The table has a fixed size and forgets sources that owe nothing; when it is full of
 * sources that misbehave, all new ones share one place.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

struct connection;

TAILQ_HEAD(seated, connection);

enum {
	SOURCE_BYTES = 16,
	SOURCES_SETS = 1024,
	SOURCES_WAYS = 4,
};

struct source_key {
	/* The /64 of an IPv6 address, an IPv4 address behind ::ffff, or pid and uid behind 0xff. 127.0.0.0/8 and ::1 are one
	 * source. */
	unsigned char bytes[SOURCE_BYTES];
};

struct source {
	struct source_key key;
	int64_t free_at_us; /* lease clock, in µs: when its failed attempts are forgotten */
	/* Its connections that have shown no right credential, the oldest first; while there are some the source is in `crowd`. */
	struct seated strangers;
	uint32_t count;
	LIST_ENTRY(source) crowd;
};

LIST_HEAD(source_list, source);

struct sources {
	struct source places[SOURCES_SETS][SOURCES_WAYS];
	struct source others;
	struct source_list crowd; /* sources with strangers */
};

/* The address of the client of a TCP connection, an IPv4 address behind ::ffff. False: it is not known. */
bool address_of(uv_stream_t *stream, unsigned char ret_address[SOURCE_BYTES]);
/* The source with that address. */
struct source_key source_at(const unsigned char address[SOURCE_BYTES]);

/* The source of a connection; all unknown sources count as one. */
struct source_key source_of(uv_stream_t *stream);

/* Has the source shown so many wrong credentials that further wrong ones are 429 for now? `per_s` of them are forgotten each
 * second, and a burst of `per_s` is allowed; loopback, where many programs are one source, has 20 times as many. */
bool source_is_barred(struct sources *sources, const struct source_key *key, int64_t now_ms);
void source_failed(struct sources *sources, const struct source_key *key, uint32_t per_s, int64_t now_ms);

/* The source of a stranger more, to whose `strangers` the caller adds it; and of one less, which the caller has taken out. */
struct source *source_take(struct sources *sources, const struct source_key *key, int64_t now_ms);
void source_release(struct source *source);
struct source *sources_most_strangers(struct sources *sources); /* NULL: there are none */
