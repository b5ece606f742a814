#include "server/net/secure.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/net/connection.h"

enum {
	CORES_FOR_TWO = 4, /* with so many, two threads make handshakes */
};

static bool is_same(const struct source_key *a, const struct source_key *b)
{
	return memcmp(a, b, sizeof *a) == 0;
}

void handshakes_init(struct handshakes *handshakes)
{
	TAILQ_INIT(&handshakes->waiting);
	handshakes->away_max = uv_available_parallelism() >= CORES_FOR_TWO ? 2 : 1;
}

bool handshakes_are_full(const struct handshakes *handshakes)
{
	return handshakes->waiting_count >= HANDSHAKES_MAX;
}

/* ---- life ---- */

struct secure *secure_new(struct connection *connection, const struct tls_identity *identity)
{
	struct secure *secure = calloc(1, sizeof *secure);

	if (!secure)
		return NULL;
	*secure = (struct secure){
		.server = connection->server,
		.connection = connection,
		.tls = tls_server_new(identity),
		.source = connection->source,
	};
	buf_init(&secure->heard, HANDSHAKE_BYTES_MAX);
	if (secure->tls)
		return secure;
	free(secure);
	return NULL;
}

static void secure_free(struct secure *secure)
{
	buf_done(&secure->heard);
	tls_free(secure->tls);
	free(secure);
}

void secure_leave(struct secure *secure)
{
	if (!secure)
		return;
	if (secure->state == SECURE_AWAY) {
		secure->connection = NULL;
		return;
	}
	if (secure->state == SECURE_WAITING) {
		struct handshakes *handshakes = &secure->server->handshakes;
		TAILQ_REMOVE(&handshakes->waiting, secure, place);
		handshakes->waiting_count--;
	}
	secure_free(secure);
}

/* ---- turns ---- */

static void send_away(struct server *server);

/* In another thread. */
static void on_work(uv_work_t *work)
{
	struct secure *secure = work->data;

	secure->result = tls_hear(secure->tls, buf_span(&secure->heard));
	if (secure->result == 0)
		secure->result = tls_shake(secure->tls);
}

static void on_back(uv_work_t *work, int status)
{
	struct secure *secure = work->data;
	struct server *server = secure->server;

	(void)status;
	assert(secure->state == SECURE_AWAY);
	server->handshakes.away_count--;
	buf_done(&secure->heard);
	secure->state = secure->result == 1 ? SECURE_OPEN : SECURE_HEARING;
	server->handshakes.done += secure->result == 1;
	server->handshakes.failed += secure->result < 0;
	if (secure->connection)
		connection_shaken(secure->connection, secure->result);
	else
		secure_free(secure);
	send_away(server);
}

static void send_away(struct server *server)
{
	struct handshakes *handshakes = &server->handshakes;
	struct secure *secure;

	while (handshakes->away_count < handshakes->away_max &&
		(secure = TAILQ_FIRST(&handshakes->waiting))) {
		TAILQ_REMOVE(&handshakes->waiting, secure, place);
		handshakes->waiting_count--;
		handshakes->round = secure->round;
		secure->work.data = secure;
		secure->state = SECURE_AWAY;
		int r = uv_queue_work(&server->loop, &secure->work, on_work, on_back);
		assert(r == 0); /* it has a callback */
		(void)r;
		handshakes->away_count++;
	}
}

/* A source has one turn in a round: what it has beyond that comes behind the first of all others. */
static bool join_queue(struct secure *secure)
{
	struct handshakes *handshakes = &secure->server->handshakes;
	uint64_t round = handshakes->round + 1;
	uint32_t own = 0;
	struct secure *other;

	TAILQ_FOREACH(other, &handshakes->waiting, place)
	{
		if (!is_same(&other->source, &secure->source))
			continue;
		own++;
		round = other->round + 1;
	}
	if (own >= HANDSHAKES_OF_SOURCE_MAX && handshakes->waiting_count > own) {
		handshakes->refused++;
		return false;
	}
	secure->round = round;
	secure->state = SECURE_WAITING;
	handshakes->waiting_count++;
	TAILQ_FOREACH_REVERSE(other, &handshakes->waiting, secure_queue, place)
	{
		if (other->round <= round)
			break;
	}
	if (other)
		TAILQ_INSERT_AFTER(&handshakes->waiting, other, secure, place);
	else
		TAILQ_INSERT_HEAD(&handshakes->waiting, secure, place);
	return true;
}

bool secure_hear(struct secure *secure, struct span bytes)
{
	assert(secure->state != SECURE_OPEN);
	/* libuv keeps silent while it is away: the connection does not read */
	assert(secure->state != SECURE_AWAY);
	if (buf_put_span(&secure->heard, bytes) < 0)
		return false;
	if (secure->state == SECURE_HEARING && !join_queue(secure))
		return false;
	send_away(secure->server);
	return true;
}

bool secure_is_late(const struct secure *secure, int64_t waited_ms)
{
	return secure->state == SECURE_HEARING && waited_ms > HANDSHAKE_TIMEOUT_MS;
}
