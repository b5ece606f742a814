/*
 * The inbox in the server: the leader reads what others have put there, and each row takes part in a turn as a request without a
 * connection.
 */
#pragma once

#include <uv.h>

#include "core/command.h"
#include "core/task/document.h"

struct server;
struct exchange;

struct inbox {
	uv_timer_t look;
	int64_t after;      /* the round goes on behind that row */
	uint32_t seen;      /* rows of the last page */
	uint32_t under_way; /* those of them that have not had their turn yet */
};

/* Only a store in PostgreSQL has one. */
void inbox_begin(struct server *server);

/* The exchange of a row has had its turn. */
void inbox_finish(struct server *server, struct exchange *exchange, const struct result *results);
