/*
 * Beats as requests and answers of the server: JSON out, JSON in.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "wire/http/answer.h"
#include "worker/beat/beat.h"

/* {"workerId":…,"leaseMs":…, …}. `about`: members that say who the worker is ("slot":…), without braces; they go with a
 * registration, and with a beat after they have changed. -ENOMEM, -E2BIG. */
int beat_put(struct buf *out, const struct beat_request *request, struct span worker_id, struct span about);

/* What a refusal says of itself; of an answer that was accepted, what else it says. */
struct beat_said {
	int status;
	struct span code, detail; /* of a refusal */
	struct span credential;   /* of a registration: to be used from now on */
	struct span slot_holder;  /* of slot_taken: the worker in the way */
};

/* The answer that came; whatever cannot be understood is as good as none. Texts are the arena's. */
void beat_read(const struct http_answer *answer, struct arena *arena, struct beat_answer *ret_answer,
	struct beat_said *ret_said);

/* The target of a request that waits for news, and what came of it. `seq` moves along; false: nothing has happened. */
enum { NEWS_WAIT_MS = 30 * 1000, NEWS_SLACK_MS = 15 * 1000 };
int news_put_target(struct buf *out, struct span worker_id, int64_t seq);
bool news_read(const struct http_answer *answer, int64_t *seq);
