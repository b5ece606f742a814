/*
 * What a child wrote: the newest bytes up to a maximum, and how many were lost.
 *
 * Positions count from the first byte that ever came. `read` is how far the owner has read; what is overwritten before
 * it was read is dropped, and counted. Reading takes nothing away: the tail is there until newer bytes push it out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

struct output {
	char *data; /* NULL until the first byte; grows up to max */
	size_t cap;
	size_t max;
	uint64_t end;     /* bytes that ever came */
	uint64_t read;    /* position of the next byte to read */
	uint64_t dropped; /* overwritten before they were read, or refused by the machine's memory */
	bool starved;     /* some were lost because it could not grow */
};

/* Allocates nothing and cannot fail. max is at least 1. */
void output_init(struct output *output, size_t max);

/* NULL is fine. */
void output_done(struct output *output);

/* Takes all bytes; the oldest ones give way. Without memory to grow the buffer stays as large as it is. */
void output_put(struct output *output, struct span bytes);

/* The next unread bytes, as many as are contiguous; may be empty. Borrowed until the next put. Dropped bytes show as a jump
 * of *ret_position, which may be NULL. */
struct span output_unread(const struct output *output, uint64_t *ret_position);

/* The owner has read these bytes: at most as many as output_unread() gave. */
void output_advance(struct output *output, size_t bytes);

/* Unread bytes in all. */
size_t output_waiting(const struct output *output);

/* Append the newest bytes, at most `most`, read or not. -ENOBUFS: some were lost for want of memory, so that nobody takes what is
 * left for all of it. Other faults as buf_put(). */
int output_tail(const struct output *output, size_t most, struct buf *buf);
