/*
 * Frames: four bytes of length, big-endian, then that many bytes. How workers of a pool and their supervisor talk over
 * standard input and output (spec/stdio.md).
 *
 * A stream of frames has no place to begin again: a length that is too large, or an end in the middle, breaks it for
 * good. Memory follows the bytes that came, never the length that was announced.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

enum {
	FRAME_HEAD_BYTES = 4,
	FRAME_BYTES_MAX = 1 << 20, /* of a body */
};

struct frame_reader {
	struct buf body;
	unsigned char head[FRAME_HEAD_BYTES];
	uint8_t head_len;
	bool whole; /* the body was handed out: the next byte begins another */
	bool broken;
};

/* Allocates nothing and cannot fail. */
void frame_reader_init(struct frame_reader *reader);
void frame_reader_done(struct frame_reader *reader);

/*
 * Takes bytes up to the end of the next frame, and says how many those were. 1: there is one, which lives until the next
 * call; 0: all bytes were taken, and more are needed. -EMSGSIZE: the length is over the maximum, and nothing will ever be
 * read again; -ENOMEM.
 */
__attribute__((warn_unused_result)) int frame_read(
	struct frame_reader *reader, struct span bytes, size_t *ret_used, struct span *ret_frame);

/* What its head says: how long the body is, or would have to be. Only when the head is whole. */
uint32_t frame_length(const struct frame_reader *reader);

/* Is it in the middle of one? An end here is an end too early. */
bool frame_is_open(const struct frame_reader *reader);

/* The length of a body of that many bytes with blanks behind it, so that no byte of the head is above 127: some workers read
 * their standard input as text, and lose such a byte. Never more than FRAME_BYTES_MAX, if `length` is not. */
size_t frame_padded_length(size_t length);

/* Head and body, and blanks behind it. -EMSGSIZE: too long for a frame; -ENOMEM, -E2BIG. */
__attribute__((warn_unused_result)) int frame_put(struct buf *out, struct span body);
