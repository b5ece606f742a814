/*
 * Tells the server of the last deliveries, target by target: what is new, at most once a second, and all of it when the server was met
 * and once a minute, so that the server knows that we are here. Whatever the answer, messages are sent as before.
 */
#pragma once

#include <poll.h>

#include "config/server_place.h"
#include "notify/sender.h"
#include "wire/http/client.h"

struct teller {
	const struct server_place *place;
	struct senders *senders;
	struct http_client *client;
	bool under_way;
	bool refused; /* this server knows no deliveries, or refuses ours: not again until it is met anew */
	uint32_t at;  /* the target that is being told of */
	uint64_t version;
	int64_t due_ms; /* not before */
};

/* -ENOMEM. */
int teller_open(struct teller *teller, const struct server_place *place, struct senders *senders);
void teller_close(struct teller *teller);

/* The server was met: it may know nothing of us. */
void teller_meet(struct teller *teller);

/* Take what has come, and do what is due if the server `is_here`. Lowers *next_ms to when to come again. */
void teller_step(struct teller *teller, bool is_here, int64_t now_ms, int64_t *next_ms);

/* What it waits for; fd -1: nothing. */
struct pollfd teller_poll(const struct teller *teller);
