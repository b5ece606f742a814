/*
 * Reads that take more than a moment; see readers.c.
 */
#pragma once

#include "server/turn/exchange.h"

struct readers {
	struct exchange_list fresh, reading, queued; /* see readers.c */
	uint64_t spent_ns; /* on reads in this tick of the loop, before or after its replies */
	bool has_work;     /* a read may be ready for a slice */
};

/* The step of the exchange is API_READ. */
void reader_begin(struct server *server, struct exchange *exchange);
void readers_run(struct server *server);   /* after the replies of a turn have gone out */
void readers_sweep(struct server *server); /* about once a second */
void readers_stop(struct server *server);
