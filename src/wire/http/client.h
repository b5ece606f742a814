/*
 * A client of one HTTP server over sockets and poll(): one connection, kept alive, one request at a time, no call without a
 * time limit. What it decides is in http/transfer.h.
 *
 * A request that may have reached the server is sent a second time only if it `may_repeat`: it changes nothing, or
 * carries what makes the server recognise it. One whose connection could not even be made was not sent, and that
 * is a different fault, so that callers can tell "nothing happened" from "nobody knows". With https nothing is sent before the
 * server has shown who it is: one that is not trusted has heard nothing (-EKEYREJECTED).
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "wire/http/transfer.h"

struct http_client;

/* Connects nowhere yet. NULL: no memory. */
struct http_client *http_client_new(
	const struct http_address *address, const struct http_answer_limits *limits);
void http_client_free(struct http_client *client);

/* ---- for callers that wait ---- */

/* Sends the request and waits for the reply; a reply that is a stream is handed over with its head. The answer is
 * the client's and lives until the next call. Faults: -ETIMEDOUT, -EPROTO, -E2BIG, -EINVAL (a control byte in a
 * header), and what the sockets say. */
__attribute__((warn_unused_result)) int http_client_call(struct http_client *client,
	const struct http_call *call, struct http_answer **ret_answer, enum http_reach *ret_reach);

/* More of a stream, into the answer of the last call. 0: the stream has ended. 1: there is more in it.
 * -ETIMEDOUT: nothing came in that time, and it goes on. */
__attribute__((warn_unused_result)) int http_client_more(struct http_client *client, int64_t timeout_ms);

/* Why TLS did not come about, in words; "" if it did, or was not asked for. */
const char *http_client_complaint(const struct http_client *client);

/* Say goodbye; the next call connects anew. */
void http_client_hang_up(struct http_client *client);

/* ---- for callers with a loop of their own: begin, then poll and step until it is over ---- */

/* Faults as of http_put_request(). To look up the name of a host is the one thing that waits. */
__attribute__((warn_unused_result)) int http_client_begin(
	struct http_client *client, const struct http_call *call);

/* What to poll for (fd -1: nothing), and until when at the latest: INT64_MAX for a stream. */
int64_t http_client_wait(const struct http_client *client, struct pollfd *ret_poll);

/* Does what can be done now. Harmless if that is nothing. */
void http_client_step(struct http_client *client);

/* The call, as it stands: http_transfer_is_under_way(), its answer, its fault. */
const struct http_transfer *http_client_transfer(const struct http_client *client);
