/*
 * Streams of events; see streams.c.
 */
#pragma once

#include "server/turn/exchange.h"

/* Some events as a stream sends them: those behind `after`, up to `last`. */
struct stream_page {
	int64_t after, last;
	const struct exchange
		*only; /* the page is for this stream, which does not see all events; NULL: for all streams */
	struct buf bytes;
};

struct streams {
	struct exchange_list open; /* the longest unfed stream first */
	struct stream_page page;   /* the last page read */
	int64_t last;              /* the store's last event when streams were last fed */
	bool has_work;             /* a stream has room again, or did not get all events yet */
};

/* The step of the exchange is API_STREAM. False: it was refused and has its reply. */
bool stream_begin(struct server *server, struct exchange *exchange);
void streams_feed(struct server *server);  /* after everything that may have committed events */
void streams_sweep(struct server *server); /* about once a second */
void streams_stop(struct server *server);
void streams_done(struct server *server);
