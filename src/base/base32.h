/*
 * Base 32: five bits a character, of a to z and 2 to 7, which nobody mistakes for each other.
 */
#pragma once

#include <stddef.h>

/* The first 5 × `chars` bits of the bytes, and a NUL. The byte behind the last bit is read, too. */
void base32_put(const unsigned char *bytes, size_t chars, char *ret_text);
