/*
 * Signatures of Standard Webhooks 1.0: HMAC-SHA-256 over ID.TIMESTAMP.BODY, so that a receiver knows who sent it, that
 * nothing was changed, and that it is not an old one sent again.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum {
	SECRET_BYTES_MIN = 24,
	SECRET_BYTES_MAX = 64,
	SECRETS_MAX = 2, /* while one takes the place of the other */
};

struct secret {
	unsigned char bytes[SECRET_BYTES_MAX];
	size_t len;
};

/* whsec_ and 24 to 64 bytes in base64. -EINVAL. */
int secret_parse(struct span text, struct secret *ret_secret);

/* "v1,BASE64", one for each secret, with blanks between. -ENOMEM, -E2BIG. */
int signature_put(struct buf *out, const struct secret *secrets, uint32_t count, const char *id,
	int64_t timestamp_s, struct span body);
