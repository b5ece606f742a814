/*
 * A fault and the sentence that explains it, in one statement:
 *
 *	return complain(reason, sizeof reason, -EXDEV, "%s lies outside of the roots", path);
 */
#pragma once

#include <stddef.h>

/* Writes the sentence, cut off if there is no room, and returns the fault. */
int complain(char *text, size_t room, int fault, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
