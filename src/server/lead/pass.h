/*
 * Connections passed on: the bytes of a client go to the server that leads, and those of that server to the client, unread. So any
 * address works for any client, long polls and streams included. When the leader changes the connection ends, and the client makes
 * another one.
 *
 * The first line to the leader says for whom the connection is (net/passed.h). A leader that speaks TLS is not passed on to: what a
 * client says there is for that server alone.
 */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/span.h"

struct server;
struct leader_pass;

LIST_HEAD(leader_pass_list, leader_pass);

struct leader_passes {
	struct leader_pass_list all;
	uint32_t count, most; /* the most that there may be */
	char url[400];        /* of the leader; empty: it is not passed on to */
	struct sockaddr_storage leader;
	bool is_known; /* its address */
	struct resolving *resolving;
};

/* From now on to this server. A URL that is no http://HOST:PORT: to none. */
void passing_turn_to(struct server *server, const char *url);
/* Take the connection over if it can be passed on: its socket lives on when the caller closes its stream. `first` is what the client
 * has said. */
bool pass_on(struct server *server, uv_stream_t *client, struct span first);
/* Connections that do nothing but wait for their end are ended. Once a second. */
void passing_sweep(struct server *server);
void passing_end_all(struct server *server);
