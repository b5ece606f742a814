/*
 * The files of `tls.cert`, `tls.key` and `tls.ca`, and what is wrong with them, in words that name the file.
 */
#pragma once

#include "wire/tls/tls.h"

struct options;

enum {
	CERTIFICATE_COMPLAINT_BYTES = TLS_COMPLAINT_BYTES + 300,
};

/* The pair of the configuration. The complaint names the file. -EINVAL, -ENOSYS, -ENOMEM, or the fault of reading. */
int certificate_load(const struct options *options, int64_t wall_ms, struct tls_identity **ret_identity,
	char complaint[CERTIFICATE_COMPLAINT_BYTES]);

/* What stands in `tls.ca`. -EINVAL, or the fault of reading. */
int certificate_authority(const struct options *options, struct tls_facts *ret_facts,
	char complaint[CERTIFICATE_COMPLAINT_BYTES]);

/* SHA-256 of the certificate in `tls.ca`. -ENOENT: none is configured; or the fault of reading. */
int certificate_hash(const struct options *options, unsigned char ret_hash[TLS_HASH_BYTES]);
