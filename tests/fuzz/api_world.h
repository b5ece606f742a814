/*
 * A small world for the API to read from: forty tasks, odd ones final; events 11 to 60, every fifth one of task 1; one
 * worker, one queue, one token. And a request to it, taken as far as a reply or commands.
 */
#pragma once

#include "api/api.h"

enum {
	WORLD_TASKS = 40,
	WORLD_EVENT_BASE = 10,
	WORLD_LAST_EVENT = 60,
};

struct api_world {
	struct arena arena;
	struct buf body;
	struct rules rules;
	struct api_services host;
	struct http_request request; /* fill in what world_ask() does not: headers */
	struct api_call call;
};

void world_init(struct api_world *world);
void world_done(struct api_world *world);

/* `target` is a path, perhaps with a query. Every scope is granted. Reads are done to their end. The spans must live
 * as long as the call. */
enum api_step world_ask(
	struct api_world *world, enum http_method method, struct span target, struct span body);

/* The reply is complete, in good form, and JSON. Aborts if not. */
void world_expect_reply(const struct api_world *world);
