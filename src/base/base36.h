/*
 * Numbers as short text: digits, then lower-case letters. Each number has
 * exactly one spelling, so texts may be compared instead of numbers.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

#define BASE36_DIGITS_MAX 13
#define BASE36_MAX        (BASE36_DIGITS_MAX + 1)

/* Returns the number of digits, 1 to BASE36_DIGITS_MAX; a NUL follows them. */
size_t base36_encode(uint64_t value, char out[BASE36_MAX]);

/* Takes only what base36_encode writes; anything else is -EINVAL. */
int base36_decode(struct span text, uint64_t *ret);
