/*
 * TLS without I/O: bytes of the network go in and come out, and so do the bytes that are meant. The owner has the socket.
 *
 *	        tls_hear()                     tls_read()
 *	socket ───────────▶ ┌────────────┐ ──────────────▶ requests and answers
 *	       ◀─────────── │ struct tls │ ◀──────────────
 *	        tls_output()└────────────┘  tls_write()
 *
 * An end begins in its handshake: tls_shake() after everything that was heard, until it returns 1. What a call has made for the
 * other end lies in tls_output() and is to be sent, after a failure too: that is how the other end learns the reason.
 *
 * One thread at a time per struct tls; different ones may be used by different threads. OpenSSL is loaded by the first call of
 * tls_trust_new(), tls_identity_new() or tls_authority_new() (see library.h), which therefore belong to the main thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/span.h"

enum {
	TLS_COMPLAINT_BYTES = 600,
	TLS_HASH_BYTES = 32,
	TLS_NAME_BYTES = 256,
	TLS_NAMES_MAX = 64, /* of a certificate, that are looked at */
	TLS_RECORD_BYTES = 16 << 10,
};

struct tls;
struct tls_trust;
struct tls_identity;

/* ---- what a client trusts ---- */

/* The certificates of `pem`; data NULL: those of the system. -ENOSYS: there is no OpenSSL; -EINVAL: not certificates; -ENOMEM. The
 * complaint says it in words. */
int tls_trust_new(struct span pem, struct tls_trust **ret_trust, char complaint[TLS_COMPLAINT_BYTES]);
/* Trust in one authority of which nothing is known but the hash of its certificate. The other end has to show that certificate
 * behind its own, which the authority must have signed. `is_it` says whether a certificate is the one. Faults of tls_trust_new(). */
typedef bool (*tls_is_it)(void *context, const unsigned char hash[TLS_HASH_BYTES]);
int tls_trust_pinned(
	tls_is_it is_it, void *context, struct tls_trust **ret_trust, char complaint[TLS_COMPLAINT_BYTES]);

/* The certificate of that authority in PEM, after a handshake with it; data NULL before. */
struct span tls_trust_found(const struct tls_trust *trust);

void tls_trust_free(struct tls_trust *trust);

/* SHA-256 of the bytes. -ENOSYS: there is no OpenSSL. */
int tls_sha256(struct span bytes, unsigned char ret_hash[TLS_HASH_BYTES]);

/* SHA-256 of the first certificate of `pem`, as it is. -EINVAL: there is none; -ENOSYS. */
int tls_hash(struct span pem, unsigned char ret_hash[TLS_HASH_BYTES]);

/* ---- who a server is ---- */

/* A certificate, with those between it and its authority behind it, and its key. The first certificate of `ca`, if any, is shown
 * behind them, for clients that know its hash alone. -EINVAL: one is not that, or they do not belong together, or now is not between
 * its dates; -ENOSYS, -ENOMEM. */
int tls_identity_new(struct span cert, struct span key, struct span ca, int64_t wall_ms,
	struct tls_identity **ret_identity, char complaint[TLS_COMPLAINT_BYTES]);
void tls_identity_free(struct tls_identity *identity); /* open connections keep what they need of it */

struct tls_facts {
	int64_t begins_ms, ends_ms; /* wall */
	uint32_t name_count;
	char names[TLS_NAMES_MAX][TLS_NAME_BYTES]; /* hosts, with * for a part; addresses as numbers */
};

const struct tls_facts *tls_identity_facts(const struct tls_identity *identity);

/* The same of any certificate. */
int tls_facts_read(struct span cert, struct tls_facts *ret_facts);

/* Is that host, a name or an address, one of the certificate's? */
bool tls_facts_name(const struct tls_facts *facts, struct span host);

/* ---- one end of a connection ---- */

/* NULL: no memory. A client names the host as its URL does: a certificate for another one is refused. */
struct tls *tls_client_new(const struct tls_trust *trust, const char *host);
struct tls *tls_server_new(const struct tls_identity *identity);
void tls_free(struct tls *tls);

/* Bytes from the network. -ENOMEM. */
int tls_hear(struct tls *tls, struct span bytes);

/* 1: the handshake is done; 0: it needs to hear more. -EKEYREJECTED: the other end is not who it should be; -EPROTO: it does not
 * speak TLS, or not as we do. tls_complaint() has the words. */
int tls_shake(struct tls *tls);
bool tls_is_open(const struct tls *tls); /* the handshake is done */

/* What was meant by what was heard. 0: nothing more for now. -EPIPE: the other end has said goodbye, and nothing follows; -EPROTO. */
ssize_t tls_read(struct tls *tls, char *at, size_t room);

/* At most TLS_RECORD_BYTES at a time. -EPROTO, -ENOMEM. */
int tls_write(struct tls *tls, struct span bytes);
void tls_say_goodbye(struct tls *tls);

/* What is to be sent, and how much of it was. */
struct span tls_output(const struct tls *tls);
void tls_output_sent(struct tls *tls, size_t len);

/* Why it failed; "" if it has not. */
const char *tls_complaint(const struct tls *tls);

/* ---- making certificates: they begin in 2020 ---- */

struct tls_authority; /* a certificate authority of one's own: a key and its certificate */

int tls_authority_new(const char *name, int64_t ends_ms, struct tls_authority **ret_authority);
/* From files that were kept. -EINVAL. */
int tls_authority_read(struct span cert, struct span key, struct tls_authority **ret_authority);
void tls_authority_free(struct tls_authority *authority);
int tls_authority_put(const struct tls_authority *authority, struct buf *cert, struct buf *key);

/* A certificate for these hosts (names and addresses), and its key. -EINVAL: a name is none. */
int tls_authority_issue(const struct tls_authority *authority, const char *const *hosts, size_t host_count,
	int64_t ends_ms, struct buf *cert, struct buf *key);
