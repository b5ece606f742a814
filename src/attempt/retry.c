#include "attempt/retry.h"

enum {
	FIRST_MS = 1000,
	RETRY_AFTER_S_MAX = 24 * 60 * 60,
};

int64_t retry_delay_ms(uint32_t n, int64_t most_ms, struct rng *rng)
{
	int64_t delay_ms = n > 20 ? most_ms : (int64_t)FIRST_MS << (n > 0 ? n - 1 : 0);

	if (delay_ms > most_ms)
		delay_ms = most_ms;
	return delay_ms + rng_between(rng, 0, delay_ms / 5);
}

int64_t retry_after_ms(const struct http_answer *answer)
{
	struct span text = http_answer_field(answer, HTTP_ANSWER_RETRY_AFTER);
	int64_t seconds = 0;

	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] < '0' || text.data[i] > '9')
			return 0; /* a date: clocks differ, we wait as usual */
		seconds = seconds * 10 + (text.data[i] - '0');
		if (seconds > RETRY_AFTER_S_MAX)
			return (int64_t)RETRY_AFTER_S_MAX * 1000;
	}
	return seconds * 1000;
}
