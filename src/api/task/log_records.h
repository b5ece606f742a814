/*
 * The log of an agent as records: see log_records.c.
 */
#pragma once

#include "api/call.h"

/* The records of a piece of a log, as an array. The last one is left out if the log goes on behind the piece (`is_end`: it does not) and the
 * record may, too: *ret_taken is where the next piece begins, in bytes of this one. */
int log_records_put(struct buf *out, struct span data, bool is_end, size_t *ret_taken);
