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

/* How many, the directory itself first. -ENAMETOOLONG: deeper than ANCESTORS_MAX; -ENOENT: it was removed. */
int ancestors_find(int fd, struct place ret_ancestors[ANCESTORS_MAX]);

/* The same up to that place, which is the last of them if it is among them. */
int ancestors_until(int fd, const struct place *last, struct place ret_ancestors[ANCESTORS_MAX]);

/* The same of a path; NULL, or one that does not exist, is nowhere: 0. */
int ancestors_find_path(const char *path, struct place ret_ancestors[ANCESTORS_MAX]);

/* Which of them this is, or -1. */
int ancestors_index(const struct place *ancestors, int count, int fd);
int ancestors_index_of(const struct place *ancestors, int count, struct place place);

/* Is it that directory, or does it lie in it? Files have a place, too. */
bool ancestors_holds(const char *dir, int fd);

/* The name of what is there, and behind it the rest of the path as it was given. False: it is too long, or not absolute. */
bool ancestors_real_name(const char *path, char ret_real[ANCESTORS_NAME_BYTES]);

/* By names alone: is it that directory, or does it lie in it? */
bool path_lies_in(const char *path, const char *dir);

/* The same as ancestors_holds() of names, for what need not be there yet: links are followed as far as there is something. */
enum lies { LIES_APART, LIES_ABOVE /* or is it */, LIES_BENEATH };
enum lies ancestors_compare(const char *path, const char *dir);
