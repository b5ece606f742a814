/*
 * Where programs were found: in which directory of PATH a start found its program, so that the next one of the same name
 * and PATH looks there first. A shell does the same; here it lasts for SEARCH_KEPT_MS only, so that a program
 * installed further up in PATH is soon found. The child itself looks, already confined; if the program is gone from that
 * directory the child looks everywhere again.
 *
 * What a child may enter depends on its grants: a directory of PATH in a work tree is open to one start and closed to the
 * next. So a place is remembered only if every directory before it is the system's, which all starts may read alike.
 */
#pragma once

#include <stdint.h>

enum { SEARCH_KEPT_MS = 10 * 1000, SEARCHES_MAX = 32 };

struct searches {
	struct {
		uint64_t key; /* 0: nothing is known */
		int64_t until_ms;
		uint32_t index;
	} known[SEARCHES_MAX];
};

/* A key for a program and the environment it is looked up in; 0: it is not looked up, because it has a slash. */
uint64_t search_key(const char *program, const char *const *env);

/* How many directories at the beginning of PATH are the system's (grants_system). */
uint32_t search_common(const char *const *env);

/* The number of the directory in PATH to try first; 0 also if nothing is known. */
uint32_t search_index(const struct searches *searches, uint64_t key, int64_t now_ms);

/* The start of that key found its program in the directory `index`; `common` is search_common() of its environment. */
void search_found(struct searches *searches, uint64_t key, uint32_t common, uint32_t index, int64_t now_ms);
