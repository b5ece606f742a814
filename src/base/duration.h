/*
 * Durations as people read them: 38 s, 41 min, 3 h, 15 d.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"

/* Append the duration in its largest units, one in a table and two in a sentence: "1 h 59 min". Less than a second is "0 s",
 * less than zero counts as zero. */
int duration_put(struct buf *out, int64_t ms, unsigned units);

/* Append a short time to go as a countdown: "4:12". An hour and more is written as by duration_put(). */
int duration_put_countdown(struct buf *out, int64_t ms);
