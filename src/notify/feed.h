/*
 * The events of the server, one after the other, for as long as it takes: a server that is away is asked again.
 *
 *	waiting ──due──▶ version ──generation──▶ last ──senders_meet()──▶ stream ──▶ senders_offer() for each event
 *	   ▲                │                     │                  ├──410──▶ senders_skip() ──▶ stream
 *	   └────────────────┴──away, or busy──────┴──────────────────┘
 *
 * An event of a task has its id. Title, queue and labels, which a person knows it by, are asked for when a sender wants the event, and
 * stand beside its data, as "about", with the task's traceparent if it has one; without an answer in time the event goes without them.
 * Where spans are wanted, "trace" says when the task was created, and when which attempt of it began.
 */
#pragma once

#include <poll.h>

#include "config/server_place.h"
#include "notify/sender.h"
#include "wire/http/client.h"
#include "wire/json/json.h"
#include "wire/sse.h"

enum feed_step {
	FEED_WAITING,
	FEED_VERSION,
	FEED_LAST,
	FEED_STREAM,
};

struct feed {
	const struct server_place *place;
	struct senders *senders; /* get the events */
	struct http_client *client;
	struct http_client *tasks; /* looks up what an event is about */
	enum feed_step step;
	struct sse sse;
	int64_t generation, due_ms, heard_ms;
	uint32_t failures;
	bool met, away; /* the server was met, or is away, and that was logged */
	int fault;      /* fault of a sender, which ends the program */
};

/* -ENOMEM. */
int feed_open(struct feed *feed, const struct server_place *place, struct senders *senders);
void feed_close(struct feed *feed);

/* Do what is due, and take what has come. Lowers *next_ms to when to come again, if nothing comes before. -EACCES: the server
 * refuses the token, which was logged. */
int feed_step(struct feed *feed, int64_t now_ms, int64_t *next_ms);

/* The descriptor that the request under way waits for; fd -1: none. */
struct pollfd feed_poll(const struct feed *feed);

/* A sender needs events that have passed: the stream begins again. */
void feed_rewind(struct feed *feed, int64_t now_ms);
