/*
 * What the files of wire/tls know of each other. Only they include this.
 */
#pragma once

#include "wire/tls/library.h"
#include "wire/tls/tls.h"

enum {
	PEM_BYTES_MAX = 1 << 20,
};

struct tls_trust {
	const struct tls_library *library;
	SSL_CTX *context;
	tls_is_it is_it; /* of a pinned trust */
	void *is_it_context;
	struct buf found; /* its authority, in PEM */
};

struct tls_identity {
	const struct tls_library *library;
	SSL_CTX *context;
	struct tls_facts facts;
};

extern const char *tls_missing; /* the sentence for a machine without OpenSSL */

/* NULL: there is none, or it is too large. Freeing NULL is fine, as it is with all of OpenSSL's. */
BIO *pem_open(const struct tls_library *library, struct span pem);
X509 *pem_next_certificate(const struct tls_library *library, BIO *pem);
X509 *pem_certificate(const struct tls_library *library, struct span pem);
EVP_PKEY *pem_key(const struct tls_library *library, struct span pem);
void certificate_facts(
	const struct tls_library *library, const X509 *certificate, struct tls_facts *ret_facts);

char *tls_complaint_room(struct tls *tls); /* TLS_COMPLAINT_BYTES of it */
const char *tls_host(const struct tls *tls);
