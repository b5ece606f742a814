/*
 * 128 bits as people write them: 32 hexadecimal digits in five groups.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

enum {
	UUID_CHARS = 36,
};

/* 32 hexadecimal digits, with dashes or without; false: it is anything else. */
bool uuid_read(struct span text, uint64_t *ret_hi, uint64_t *ret_lo);

/* With a zero behind it. */
void uuid_write(uint64_t hi, uint64_t lo, char ret_text[UUID_CHARS + 1]);
