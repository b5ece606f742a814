/* When to try again what a server, a disk or a process did not do. */
#pragma once

#include <stdint.h>

#include "base/rng.h"
#include "wire/http/answer.h"

/* The n-th try (from 1 on) waits 1, 2, 4 … s, at most `most_ms`, and up to a fifth more. */
int64_t retry_delay_ms(uint32_t n, int64_t most_ms, struct rng *rng);

/* Retry-After in ms; 0: the answer has no such header. */
int64_t retry_after_ms(const struct http_answer *answer);
