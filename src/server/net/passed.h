/*
 * Connections that a server on standby has passed on: their first line says whom they are for.
 *
 *	STINT-PASS/1 TERM SOURCE HOST:PORT CR LF, then what the client says
 *
 * TERM is that of the lead, in decimal: who knows it can read the store. SOURCE is the client's, in hexadecimal digits, so that what a
 * stranger does wrong counts for the stranger. HOST:PORT is where the client connected, one more that requests may name.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "server/net/sources.h"

#define PASSED_WORD "STINT-PASS/1 "

enum {
	PASSED_HOST_BYTES = 320,
	PASSED_LINE_MAX = PASSED_HOST_BYTES + 100,
};

struct passed {
	struct source_key source;
	char host[PASSED_HOST_BYTES];
};

/* The line for a connection; its length. */
size_t passed_put(char line[PASSED_LINE_MAX], int64_t term, const struct passed *passed);

/* > 0: so many bytes are the line, and it is right; 0: it may become one; -EINVAL: it is none, or of another term. */
int passed_read(struct span bytes, int64_t term, struct passed *ret_passed);
