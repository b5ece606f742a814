/*
 * CRC32C (Castagnoli): finds every flipped bit, and every burst of up to 32, in what a disk gives back.
 */
#pragma once

#include <stdint.h>

#include "base/span.h"

/* Goes on from `crc`, which is 0 at first: crc32c(crc32c(0, a), b) is that of a and b together. */
uint32_t crc32c(uint32_t crc, struct span bytes);

/* The portable way, for processors without the instruction; tests compare the two. */
uint32_t crc32c_by_table(uint32_t crc, struct span bytes);
