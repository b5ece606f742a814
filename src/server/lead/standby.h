/*
 * Standing by: this server listens, and another one leads the store that both were given. It says who leads, and passes
 * connections on to that one (pass.h), until it leads itself.
 *
 * The store is opened by a thread of its own, which looks at the lead again and again and waits for PostgreSQL, so that the loop never
 * waits. The two share what stands behind `lock`. When the thread has ended, what it opened belongs to the loop's thread alone.
 */
#pragma once

#include <uv.h>

#include "base/buf.h"
#include "server/lead/pass.h"
#include "store/postgres.h"

struct exchange;
struct options;
struct server;

struct standby {
	uv_async_t news;
	uv_timer_t tick;
	uv_timer_t life; /* while we lead */
	uv_thread_t thread;
	uv_mutex_t lock;
	/* under the lock */
	struct postgres_leader found;
	char away[512]; /* why PostgreSQL cannot be reached; empty: it can */
	bool has_found, gives_up, is_done;
	/* the thread's, and ours when it has ended */
	struct postgres_options options;
	struct backend *backend;
	char *complaint;
	int fault;
	/* the loop's */
	bool is_on; /* nobody has the store open here */
	bool is_told;
	bool was_away;
	struct postgres_leader leader; /* the last one that was seen; its name is empty while none was */
	char holder[LEADER_NAME_BYTES], url[LEADER_URL_BYTES];
	struct leader_passes passing;
};

/* Serve until this server leads. 0, and the store's backend; -ECANCELED: a signal came first; or a fault, with a sentence that the
 * caller frees. `tell` is called once, if it takes longer than a moment. */
int standby_wait(struct server *server, const char *store_url, void (*tell)(struct server *server),
	struct backend **ret_backend, char **ret_complaint);
/* A signal: stop. */
void standby_give_up(struct server *server);

/* We lead from now on, and show it to the others several times within each lease. */
void lead_begin(struct server *server);

/* May this server answer from what it has in memory? A leader that has not heard from PostgreSQL for most of its lease may have been
 * replaced, as after it was suspended: it asks first, and while PostgreSQL is away it answers nobody. */
bool lead_is_sure(struct server *server);

/* The reply of a server that does not lead. */
void standby_answer(struct server *server, struct exchange *exchange);
/* The same for a request of which only the path is known. */
void standby_put_refusal(struct server *server, struct span path, struct buf *out);
