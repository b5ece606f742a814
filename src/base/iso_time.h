/*
 * Wall times as people and other programs write them: 2026-02-09T20:20:35.682Z (ISO 8601, in UTC). Milliseconds since
 * 1970 are ours.
 */
#pragma once

#include <stdint.h>

#include "base/span.h"

enum {
	ISO_TIME_BYTES = 24, /* without a NUL */
};

/* The years 0 to 9999; what lies outside becomes the nearest moment inside. Writes a NUL, too. */
void iso_time_put(int64_t wall_ms, char text[ISO_TIME_BYTES + 1]);

/* Of the same form; the fraction may be missing or have one to nine digits. -EINVAL. */
int iso_time_read(struct span text, int64_t *ret_wall_ms);
