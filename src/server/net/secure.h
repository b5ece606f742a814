/*
 * The handshakes of TLS connections: done by other threads, so that no stranger's arithmetic stands between a request and its
 * commit, and in turn by source, so that a source that knocks in a loop delays itself.
 *
 *	HEARING ──bytes──▶ WAITING ──its turn──▶ AWAY ──needs more──▶ HEARING
 *	                                          └──done──▶ OPEN        └──5 s of silence, a fault──▶ the connection is closed
 *
 * While it is AWAY a thread has the struct tls, and nobody else touches it; a connection that is closed meanwhile leaves it
 * behind, and it is freed when it comes back. When OPEN the loop encrypts and decrypts by itself.
 */
#pragma once

#include <sys/queue.h>
#include <uv.h>

#include "base/buf.h"
#include "server/net/sources.h"
#include "wire/tls/tls.h"

struct connection;
struct server;

enum {
	SECURE_BLOCK_BYTES = 64 << 10,
	HANDSHAKES_MAX = 1024,          /* that wait; then no connection is accepted */
	HANDSHAKES_OF_SOURCE_MAX = 64,  /* … of one source while another one waits, too */
	HANDSHAKE_TIMEOUT_MS = 5000,    /* in which the client has to go on */
	HANDSHAKE_BYTES_MAX = 64 << 10, /* that come before they are looked at */
};

enum secure_state { SECURE_HEARING, SECURE_WAITING, SECURE_AWAY, SECURE_OPEN };

struct secure {
	enum secure_state state;
	struct server *server;
	struct connection *connection; /* NULL: it was closed while this was AWAY */
	struct tls *tls;
	struct buf heard; /* in the handshake: came, and TLS has not seen it yet */
	bool has_heard;   /* the first byte was looked at */
	int result;       /* of tls_shake(), by the thread */
	size_t sealed;    /* bytes at the front of the connection's output that TLS has taken already */
	uint64_t round;   /* in which it has its turn */
	struct source_key source;
	TAILQ_ENTRY(secure) place;
	uv_work_t work;
};

TAILQ_HEAD(secure_queue, secure);

struct handshakes {
	struct secure_queue waiting; /* in the order of their rounds */
	uint32_t waiting_count, away_count, away_max;
	uint64_t round; /* of the last that had its turn */
	uint64_t done, failed, refused;
};

void handshakes_init(struct handshakes *handshakes);
bool handshakes_are_full(const struct handshakes *handshakes);

/* NULL: no memory. */
struct secure *secure_new(struct connection *connection, const struct tls_identity *identity);

/* The connection is closed, or does without. NULL is fine. */
void secure_leave(struct secure *secure);

/* Bytes of the handshake have come. False: there are too many, or too many wait: the connection is to be closed. */
bool secure_hear(struct secure *secure, struct span bytes);

/* Does it wait for its client, and for too long? */
bool secure_is_late(const struct secure *secure, int64_t waited_ms);

/* In connection.c: a step of the handshake was made. */
void connection_shaken(struct connection *connection, int result);
