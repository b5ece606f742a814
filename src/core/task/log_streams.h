/*
 * Which bytes of a log the process wrote to standard output, and which to standard error: lengths by turns, standard
 * output first. {5, 3, 2} is 5 bytes of output, 3 of errors, 2 of output. What a list does not reach is output, so that an
 * empty list stands for a log in which nobody told the two apart.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum log_stream { LOG_OUT, LOG_ERR };

enum {
	LOG_APPEND_STREAMS_MAX = 1024, /* lengths of one append */
	LOG_PIECE_STREAMS_MAX = 4096, /* lengths of a piece that is read: it ends where there would be more */
};

struct log_streams {
	uint32_t count, max;
	uint32_t *lengths; /* the caller's memory. Only the first may be 0 */
};

/* Append so many bytes of a stream; false: the list is full, and is as it was. */
bool log_streams_add(struct log_streams *list, enum log_stream stream, uint32_t bytes);

/* Append a part of another list. Returns how many of its bytes there was room for. */
uint32_t log_streams_add_part(
	struct log_streams *list, const struct log_streams *of, uint32_t from, uint32_t bytes);

/* All bytes that the list reaches; and whether any of them are errors. */
uint64_t log_streams_bytes(const struct log_streams *list);
bool log_streams_has_errors(const struct log_streams *list);
