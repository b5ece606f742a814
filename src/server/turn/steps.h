/*
 * Bulk actions that run: their next steps, one with each turn; see steps.c.
 */
#pragma once

#include "api/api.h"

struct server;

struct bulk_steps {
	struct bulk_look looks[BULKS_RUNNING_MAX]; /* by action */
	uint32_t last;                             /* number of the action that was looked at last */
	struct bulk_look *stepping;                /* whose step `command` is */
	struct command command;
	bool is_ready;         /* `command` is the next step */
	bool is_taken;         /* … and in the turn that runs */
	int64_t not_before_ms; /* lease clock: the store was full, or short of memory */
	struct arena arena;
	struct buf body;
	struct http_request request;
};

bool steps_have_work(const struct server *server);
void steps_look(struct server *server);
/* The step that is ready as the first of the commands; returns how many there are. */
uint32_t steps_take(struct server *server, struct command *commands);
void steps_finish(struct server *server, const struct result *result);
void steps_done(struct server *server);
