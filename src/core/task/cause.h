/*
 * Causes: failures with the same words have the same cause, whatever numbers stand in them.
 */
#pragma once

#include <stddef.h>

#include "base/span.h"

enum {
	CAUSE_BYTES_MAX = 240,
};

/* The first line of the message that says something, with N in place of each number; a long one is cut between characters. Returns
 * its length. */
size_t cause_put(struct span message, char text[CAUSE_BYTES_MAX]);
