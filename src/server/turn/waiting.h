/*
 * Claims that wait for work, and workers that wait for news; see waiting.c.
 */
#pragma once

#include "server/turn/exchange.h"

enum {
	READY_QUEUES_MAX = 16,
	WAITING_BUCKETS = 1024,
	WAITING_LISTS = WAITING_BUCKETS + 1,
};

struct waiting {
	/* Claims that name one queue, by the hash of its name. The last list has claims that name several queues or none. */
	struct exchange_list claims[WAITING_LISTS];
	uint32_t named[WAITING_BUCKETS]; /* claims in the last list that name a queue of that hash */
	uint32_t nameless;               /* claims in the last list that name no queue */
	uint32_t count;                  /* all claims */
	struct exchange *claimants[WAITING_BUCKETS]; /* all claims again, by the hash of their worker */
	struct exchange_list news[WAITING_BUCKETS];  /* workers that wait for news, by the hash of their id */
	uint32_t news_count;
	uint64_t places;                         /* places given out so far: see `place` of an exchange */
	uint64_t wakeups;                        /* turns that left something to claim */
	uint32_t wake_batch;                     /* claims that are asked again at once */
	int64_t look_ms;                         /* lease clock: when the next look at all claims is due */
	uint32_t ready_queues[READY_QUEUES_MAX]; /* queues that got work since the last wake-up */
	uint32_t ready_queue_count;
	bool ready_any; /* more queues than the list has room for, or an account is no longer held */
};

/* A claim that found nothing and may wait, or a worker that waits for news, stands here until it is removed. */
void waiting_add(struct server *server, struct exchange *exchange);
void waiting_remove(struct server *server, struct exchange *exchange);
struct exchange *waiting_first_for(struct server *server, struct span queue); /* NULL: none */

/* After a turn: answer the workers for which it has news. */
void waiting_tell(struct server *server);
/* After a turn: ask claims again that may find something. True: some of them want the next turn. */
bool waiting_wake(struct server *server);
/* About once a second: answers exchanges whose time is up; all of them when the server stops. */
void waiting_sweep(struct server *server);
