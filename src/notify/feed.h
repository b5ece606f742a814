/*
 * The events of the server, one after the other, for as long as it takes: a server that is away is asked again.
 *
 *	waiting ──due──▶ version ──generation──▶ last ──met()──▶ stream from where somebody must begin ──▶ event(), event() …
 *	   ▲                │                     │                  ├──410──▶ gone() ──▶ stream
 *	   └────────────────┴──away, or busy──────┴──────────────────┘
 */
#pragma once

#include <poll.h>

#include "config/server_place.h"
#include "wire/http/client.h"
#include "wire/json/json.h"
#include "wire/sse.h"

enum feed_step {
	FEED_WAITING,
	FEED_VERSION,
	FEED_LAST,
	FEED_STREAM,
};

/* What the owner of a feed does; a fault ends the program. */
struct feed_events {
	int (*met)(void *context, int64_t generation, int64_t last_seq);
	int (*event)(void *context, int64_t generation, yyjson_val *event);
	void (*gone)(void *context, int64_t oldest);
	int64_t (*begins_after)(void *context); /* the event before the first that somebody needs */
	void *context;
};

struct feed {
	const struct server_place *place;
	const struct feed_events *events;
	struct http_client *client;
	enum feed_step step;
	struct sse sse;
	int64_t generation, due_ms, heard_ms;
	uint32_t failures;
	bool met, away; /* and that was said */
	int fault;      /* of an owner's function */
};

/* -ENOMEM. */
int feed_open(struct feed *feed, const struct server_place *place, const struct feed_events *events);
void feed_close(struct feed *feed);

/* Do what is due, and take what has come; when to come again, if feed_poll() tells nothing before. -EACCES: the server does
 * not want us; it was logged. */
int feed_step(struct feed *feed, int64_t now_ms, int64_t *ret_next_ms);

/* What a call that is under way waits for; fd -1: nothing. */
struct pollfd feed_poll(const struct feed *feed);

/* Somebody needs events that have passed: the stream begins again. */
void feed_rewind(struct feed *feed, int64_t now_ms);
