/*
 * "Did you mean": the known word that is nearest to the one that was typed.
 */
#pragma once

#include <stddef.h>

/* How many keystrokes apart: insert, delete, replace, swap two neighbours. Case does not count. */
size_t suggest_distance(const char *a, const char *b);

struct suggestion {
	const char *word; /* NULL: nothing is near */
	size_t distance;
};

/* Look at one candidate more. Start with {0}. */
void suggest_consider(struct suggestion *best, const char *typed, const char *candidate);
