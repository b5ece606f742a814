/*
 * stintd from the inside.
 *
 *   main.c        start and stop                    turns.c       requests → one turn → replies; who waits for work
 *   options.c     flags and configuration           connection.c  sockets: bytes in, bytes out, timeouts
 *   home.c        the state directory               gate.c        host, origin, credential; mint.c: new ones
 *   clock.c       the two clocks                    reads.c       what the store lends to the API
 *   metrics.c     counters, for Prometheus          streams.c     who listens to events, and how far they got
 *   sources.c     where strangers come from
 *
 * One thread. Whatever is ready is read, decided, committed once, and answered: requests that arrive while a
 * commit is syncing make up the next turn.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "api/api.h"
#include "server/metrics.h"
#include "server/mint.h"
#include "server/options.h"
#include "server/sources.h"
#include "store/store.h"
#include "wire/http.h"

struct connection;

/* One request on its way. It is kept until its reply has been written. */
struct exchange {
	struct api_call call;
	struct http_request request; /* copied: the connection reads on meanwhile */
	struct arena arena;
	struct buf body;
	struct connection *connection; /* NULL: the client is gone */
	struct exchange *next, *previous;
	uint32_t first_result;
	int64_t wait_until_ms; /* lease clock */
	bool waits;            /* stands among those that wait for work */
	uint64_t tried;        /* the wake-up it was last asked in */
	uint32_t claim_count;  /* handed out by its reply: given back if that is never written */
	struct claimed *claims;
	uint64_t began_ns; /* the request was complete */
	bool has_waited;
	bool streams;    /* stands among the streams of events */
	int64_t said_ms; /* lease clock: when the stream was last given something */
};

enum {
	READY_QUEUES_MAX = 16,
	SHARES_MAX = 256,
};

/* What a principal has of the turn that is being filled. */
struct share {
	uint64_t round; /* the turn it is about */
	uint32_t commands;
};

struct exchange_list {
	struct exchange *first, *last;
	uint32_t count;
};

/* Some events as a stream tells them: those behind `after`, up to `last`. */
struct stream_page {
	int64_t after, last;
	const struct exchange
		*only; /* made for this one alone, which does not see everything; NULL: for all */
	struct buf bytes;
};

struct gate {
	unsigned char admin_hash[TOKEN_HASH_BYTES]; /* of the token in admin.token, which no API revokes */
	char admin_id[TOKEN_BYTES_MAX];
	unsigned char nobody_hash[TOKEN_HASH_BYTES]; /* stands for a token that there is none of */
	unsigned char key[MINT_KEY_BYTES];           /* of tokens that follow from others */
	char hosts[4][300];                          /* allowed values of Host */
	uint32_t host_count;
	bool any_host;
};

struct server {
	struct options *options;
	uv_loop_t loop;
	uv_tcp_t tcp;
	uv_pipe_t local;
	uv_check_t check;
	uv_timer_t sweep;
	uv_timer_t due;
	uv_idle_t more;  /* runs while streams could be given more at once */
	uv_idle_t again; /* runs while the next turn is due at once */
	uv_signal_t term, interrupt;
	struct store *store;
	struct gate gate;
	struct api_reads reads;
	struct connection *connections;
	struct connection *dirty; /* have something to write, or to read on */
	uint32_t connection_count;
	struct exchange_list pending; /* want a turn */
	struct exchange_list later;   /* want one after it: their principals have their share of the next */
	struct share shares[SHARES_MAX];
	uint64_t share_round;
	uint32_t share_count;         /* principals that have one */
	struct exchange_list waiting; /* claims that wait for work */
	struct exchange_list streams; /* of events; those fed last stand last */
	struct exchange_list spare;
	struct stream_page page; /* the last one read */
	int64_t streams_last;    /* the last event when streams were last fed */
	bool streams_hungry;     /* one has room again, or could not be given all there was */
	struct sources sources;
	struct metrics metrics;
	uint64_t wakeups;
	uint32_t wake_batch;
	uint32_t ready_queues[READY_QUEUES_MAX];
	uint32_t ready_queue_count;
	bool ready_any; /* more queues than the list has room for */
	struct moment now;
	int64_t last_sweep_ms, asleep_ms; /* lease clock; boot time − monotonic time */
	bool stopping;
	int exit_status;
};

/* clock.c */
struct moment clock_now(void);
int64_t clock_asleep_ms(void);
int clock_boot_id(uint64_t *ret_hi, uint64_t *ret_lo);

/* gate.c */
void gate_init(struct gate *gate, const struct options *options, uint16_t port, const char *admin_token);
/* May the request in, and as whom? False: the exchange has its reply. */
bool gate_pass(struct server *server, struct exchange *exchange);
/* Is its credential still good? For whoever stays longer than a request: waiting claims, streams. */
bool gate_still_knows(const struct server *server, const struct exchange *exchange);

/* reads.c */
void reads_init(struct server *server);

/* turns.c */
void exchange_list_add(struct exchange_list *list, struct exchange *exchange);
void exchange_list_remove(struct exchange_list *list, struct exchange *exchange);
struct exchange *exchange_new(struct server *server);
void exchange_free(struct server *server, struct exchange *exchange);
void exchange_begin(struct server *server, struct exchange *exchange);
void exchange_abandon(struct server *server, struct exchange *exchange); /* the client went away */
void turns_run(struct server *server);
void turns_timeout_waiting(struct server *server);
void turns_stop(struct server *server);
void turns_done(struct server *server);

/* connection.c */
void connection_accept(uv_stream_t *listener, int status);
void connection_reply(struct connection *connection, struct exchange *exchange); /* takes the exchange over */
/* Where it comes from, and whether it has shown a good credential. */
struct visitor {
	struct source_key source;
	bool known;
};
struct visitor *connection_visitor(struct connection *connection);
/* The head of a stream, which stays the current exchange until either side ends it. */
void connection_begin_stream(struct connection *connection);
void connection_end_stream(struct connection *connection);    /* after what it was given has been written */
struct buf *connection_output(struct connection *connection); /* for more of the stream; it will be written */
size_t connection_unsent(const struct connection *connection); /* bytes that the kernel has not taken yet */
void connections_flush(struct server *server);
void connections_timeout(struct server *server);
void connections_close_all(struct server *server);

/* streams.c: a stream of events begins with the exchange whose step is API_STREAM. False: it was refused and has its
 * reply. streams_feed() is to be called after whatever may have committed events. */
bool stream_begin(struct server *server, struct exchange *exchange);
void streams_feed(struct server *server);
void streams_sweep(struct server *server); /* about once a second */
void streams_stop(struct server *server);
void streams_done(struct server *server);

/* main.c: end the process at once: the store cannot be trusted any more. */
_Noreturn void server_die(struct server *server, int fault);
