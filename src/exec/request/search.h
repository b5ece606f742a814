/*
 * Which program a name means. It is looked up along the PATH of the child before the child is confined, so that it is the
 * program that a shell of this user would run. Looked up behind the wall, a directory that the child may not enter would be
 * passed over, and another program of the same name would run without a word.
 */
#pragma once

#include <stddef.h>

enum { SEARCH_PATH_BYTES = 4096 };

/* The value of PATH in an environment, or the usual directories. */
const char *search_path_of(const char *const *env);

/* The first file of that name that we may execute, in a directory of `path` (DIR:DIR). -ENOENT: there is none. */
int search_program(const char *path, const char *name, char ret_program[SEARCH_PATH_BYTES]);
