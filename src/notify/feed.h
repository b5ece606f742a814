/*
 * The events of the server, one after the other, for as long as it takes: a server that is away is asked again.
 *
 *	waiting ──due──▶ version ──generation──▶ last ──met()──▶ stream from where somebody must begin ──▶ event(), event() …
 *	   ▲                │                     │                  ├──410──▶ gone() ──▶ stream
 *	   └────────────────┴──away, or busy──────┴──────────────────┘
 */
#pragma once

#include <curl/curl.h>

#include "config/server_place.h"
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
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers, *stream_headers;
	char base[640]; /* http://HOST:PORT/PREFIX */
	enum feed_step step;
	struct buf body; /* of what is no stream */
	struct sse sse;
	int64_t generation, due_ms, heard_ms;
	uint32_t failures;
	bool met, away; /* and that was said */
	int fault;      /* of an owner's function */
};

/* -ENOMEM. */
int feed_open(
	struct feed *feed, const struct server_place *place, const struct feed_events *events, CURLM *multi);
void feed_close(struct feed *feed);

/* Begin what is due; when to come again. */
int feed_step(struct feed *feed, int64_t now_ms, int64_t *ret_next_ms);

/* curl is done with it. -EACCES: the server does not want us; it was logged. */
int feed_finish(struct feed *feed, CURLcode code, int64_t now_ms);

/* Somebody needs events that have passed: the stream begins again. */
void feed_rewind(struct feed *feed, int64_t now_ms);
