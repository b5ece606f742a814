/*
 * Who owns what in a scope:
 *
 *	cleanup(buf_done) struct buf body;          done when the scope ends
 *	cleanup(free_at) char *path = NULL;         freed when the scope ends
 *	cleanup(close_at) int fd = -1;              closed when the scope ends
 *	*ret_path = take(path);                     handed over: no longer ours
 *	*ret_fd = take_fd(fd);
 *
 * A cleanup function gets the variable's address. For a `_free` or `_close`
 * that wants the pointer itself, CLEANUP_AT makes the adaptor:
 *
 *	CLEANUP_AT(struct store, store_close)       gives store_close_at
 *
 * Initialise the variable on the line that declares it, or before anything in
 * the scope can return.
 */
#pragma once

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define cleanup(function) __attribute__((__cleanup__(function)))

#define take(pointer)                           \
	({                                      \
		__auto_type taken_ = (pointer); \
		(pointer) = NULL;               \
		taken_;                         \
	})

#define take_fd(fd)                   \
	({                            \
		int taken_fd_ = (fd); \
		(fd) = -1;            \
		taken_fd_;            \
	})

#define CLEANUP_AT(type, function)                       \
	static inline void function##_at(type **pointer) \
	{                                                \
		function(*pointer);                      \
	}                                                \
	struct cleanup_wants_a_semicolon

/* Takes the address of any pointer to malloc's memory. */
static inline void free_at(void *pointer)
{
	void *owned;

	/* memcpy: a char * may not be read through a void **. */
	memcpy(&owned, pointer, sizeof(owned));
	free(owned);
}

/* Keeps errno: the scope often ends because of the fault it tells. */
static inline void close_at(int *fd)
{
	int fault = errno;

	if (*fd >= 0)
		close(*fd);
	errno = fault;
}

/* A large variable that is set before it is read. The others are cleared first: see the hardening in meson.build. */
#define unset __attribute__((uninitialized))
