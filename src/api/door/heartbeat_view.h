/*
 * One slot as its heartbeat shows it.
 */
#pragma once

#include "api/call.h"

struct heartbeat {
	struct span slot;
	const char *status;      /* idle, working, offline */
	struct span task, title; /* empty: none */
	struct span session;     /* JSON; empty: none */
	int64_t last_update_ms, started_ms;
	int64_t pid; /* 0: none */
	uint32_t restarts;
	int64_t task_started_ms;    /* 0: it did not say, and holds nothing */
	int64_t detected_ms;        /* when its silence was noticed, else 0 */
	struct span offline_reason; /* of the offline ones */
	yyjson_doc *said;           /* its metadata */
};

/* What is known of that worker, which fills a slot or did. Always heartbeat_done(). -ENOENT, -ENOMEM. */
int heartbeat_read(struct api_call *call, struct span worker, struct heartbeat *ret_beat);
void heartbeat_done(struct heartbeat *beat);

/* As an entry of the document; and as one of the form that is a list. */
int heartbeat_put(struct buf *out, const struct heartbeat *beat);
int heartbeat_put_row(struct buf *out, const struct heartbeat *beat);

/* Reply with the slot of the worker that is called like it. */
void heartbeat_reply(struct api_call *call, struct span slot);
