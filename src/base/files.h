/*
 * Small files, by directory and name: whole or not at all, ours alone, no link followed.
 */
#pragma once

#include "base/buf.h"

/* What is in it, as far as the buffer allows. -ENOENT, -E2BIG ... */
__attribute__((warn_unused_result)) int file_read(int dir_fd, const char *name, struct buf *out);

/* In the place of what was there. `durable`: also after a loss of power. */
__attribute__((warn_unused_result)) int file_write(
	int dir_fd, const char *name, struct span text, bool durable);

/* All of it, however many writes that takes. */
__attribute__((warn_unused_result)) int file_write_all(int fd, struct span text);

/* One file under several new names, as hard links, at the cost of one file. Each name is removed on its own. On a file
 * system without hard links nothing is written. */
__attribute__((warn_unused_result)) int file_write_as(
	int dir_fd, const char *const *names, size_t count, struct span text, bool durable);

/* Each name in the directory that does not begin with a dot; at most `most`. The callback may remove it. */
__attribute__((warn_unused_result)) int file_each(
	int dir_fd, unsigned most, int (*each)(void *context, const char *name), void *context);

/* mkdir -p: the directory, and those above it, mode 0700 from the first that is made. -ENAMETOOLONG, -ENOTDIR ... */
__attribute__((warn_unused_result)) int directory_make(const char *path);

/* Remove what somebody who died was about to write. */
void file_tidy(int dir_fd);
