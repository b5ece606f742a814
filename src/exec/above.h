/*
 * Where a directory lies, by identity and not by name: itself and every directory above it up to the root. Two names for
 * one place, links and mounts included, are one place.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum { ABOVE_MAX = 256 };

struct place {
	dev_t dev;
	ino_t ino;
};

/* How many, the directory itself first. -ENAMETOOLONG: deeper than ABOVE_MAX; -ENOENT: it was removed. */
int above_find(int fd, struct place ret_above[ABOVE_MAX]);

/* The same of a path; NULL, or one that does not exist, is nowhere: 0. */
int above_find_path(const char *path, struct place ret_above[ABOVE_MAX]);

/* Which of them this is, or -1. */
int above_index(const struct place *above, int count, int fd);
