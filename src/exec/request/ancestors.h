/*
 * Where a directory lies, by identity and not by name: itself and every directory above it up to the root. Two names for
 * one place, links and mounts included, are one place.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

enum { ANCESTORS_MAX = 256, ANCESTORS_NAME_BYTES = 4096 };

struct place {
	dev_t dev;
	ino_t ino;
};

struct place place_of(const struct stat *stat);

/* Returns the count; entry 0 is the directory itself. -ENAMETOOLONG: deeper than ANCESTORS_MAX; -ENOENT: it was removed. */
int ancestors_find(int fd, struct place ret_ancestors[ANCESTORS_MAX]);

/* The same, but no further up than `last`, which is then the last entry. */
int ancestors_until(int fd, const struct place *last, struct place ret_ancestors[ANCESTORS_MAX]);

/* The same for a path. 0: the path is NULL or does not exist. */
int ancestors_find_path(const char *path, struct place ret_ancestors[ANCESTORS_MAX]);

/* The index of this place among the ancestors, or -1. */
int ancestors_index(const struct place *ancestors, int count, int fd);
int ancestors_index_of(const struct place *ancestors, int count, struct place place);

/* Is `fd` that directory, or does it lie in it? Works for files, too. */
bool ancestors_holds(const char *dir, int fd);

/* Resolves the part of the path that exists; the rest stays as it was given. False: too long, or not absolute. */
bool ancestors_real_name(const char *path, char ret_real[ANCESTORS_NAME_BYTES]);

/* By names alone: is `path` that directory, or does it lie in it? */
bool path_lies_in(const char *path, const char *dir);

/* Like ancestors_holds(), for paths that need not exist yet: links are followed in the part that exists. */
enum lies { LIES_APART, LIES_ABOVE /* or is it */, LIES_BENEATH };
enum lies ancestors_compare(const char *path, const char *dir);
