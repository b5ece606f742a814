/*
 * The dashboard's files: in the program, as tools/build-site made them, or for those who change the page in a directory.
 */
#pragma once

#include <stdbool.h>

#include "api/api.h"

/* A file in the program. Its bytes are compressed; its name has a hash of them, but for index.html. */
struct embedded_file {
	const char *name, *type;
	const unsigned char *bytes;
	size_t len;
};

/* Made at build time. The last has no name. Without the page there are none, and the reason is given. */
extern const struct embedded_file site_files[];
extern const char site_missing[];

/* From `dir` if that is not NULL. False: there is no such file. */
bool site_find(const char *dir, struct span name, struct arena *arena, struct site_file *ret_file);
