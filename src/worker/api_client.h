/*
 * A client of the server's API: one connection over libuv, kept alive, one request at a time. Nothing waits: the answer comes
 * to a callback, from the loop. The requests are those of wire/http/client.h.
 */
#pragma once

#include <uv.h>

#include "wire/http/answer.h"
#include "wire/http/client.h"

struct api_client;

/* `fault` 0 and the answer, which lives until the next call; or a negative errno: -ETIMEDOUT, -EPROTO, -E2BIG, and what
 * sockets say. The callback may call again, or free the client. */
typedef void (*api_client_answered)(void *context, int fault, const struct http_answer *answer);

/* Connects nowhere yet. `limits` of answers; NULL: the usual ones. NULL: no memory. */
struct api_client *api_client_new(
	uv_loop_t *loop, const struct http_address *address, const struct http_answer_limits *limits);

/* From now on the client keeps a spare descriptor while it has no connection, so that it can connect when no other is left. */
void api_client_reserve(struct api_client *client);

/* Ends what is under way without a callback. The memory goes when the loop has closed its handles. NULL is fine. */
void api_client_free(struct api_client *client);

bool api_client_is_busy(const struct api_client *client);

/* Why TLS did not come about with the last call, in words; "" if it did, or was not asked for. */
const char *api_client_complaint(const struct api_client *client);

/* The call is read before this returns. After a fault (-ENOMEM, -E2BIG, -EINVAL) no callback follows. Only
 * while it is not busy. */
int api_client_call(
	struct api_client *client, const struct http_call *call, api_client_answered answered, void *context);

/* GET `target`; POST `body` to it. Both may be sent again if the answer is lost. */
int api_client_get(struct api_client *client, struct span target, struct span token, int64_t timeout_ms,
	api_client_answered answered, void *context);
int api_client_post(struct api_client *client, struct span target, struct span body, struct span token,
	int64_t timeout_ms, api_client_answered answered, void *context);

/* Give up what is under way: no callback follows. */
void api_client_drop(struct api_client *client);
