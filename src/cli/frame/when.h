/*
 * Times as people write them and read them: 90s, 1h30m, 2026-03-01T12:00, 5 min ago.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* "250ms", "90s", "30m", "1h30m", "2d", "1w", "0", and as we print them: "41 min", "1 h 59 min". -EINVAL: not a duration; a number without a unit is refused,
 * because the unit would be a guess. */
int when_duration(const char *text, int64_t *ret_ms);

/* A moment: a duration from now ("30m", "in 30m"), "now", the next time that the clock shows ("22:00"), a date with or without time ("2026-03-01",
 * "2026-03-01T12:30", "2026-03-01 12:30:00", with Z or +02:00, else local time), or milliseconds since 1970 as in
 * JSON. -EINVAL. */
int when_moment(const char *text, int64_t now_ms, int64_t *ret_ms);

/* "12 s", "5 min", "3 h", "2 d": the two largest units at most when `exact`, else one. */
int when_put_duration(struct buf *out, int64_t ms, bool exact);

/* "5 min ago", "in 2 h", "now". */
int when_put_relative(struct buf *out, int64_t moment_ms, int64_t now_ms);

/* "12:30:00" today, "1 Mar 12:30:00" on another day, local time. */
int when_put_time(struct buf *out, int64_t moment_ms, int64_t now_ms);

/* "2026-03-01 12:30:00", local time. */
int when_put_clock(struct buf *out, int64_t moment_ms);
