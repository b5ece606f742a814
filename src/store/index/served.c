#include "store/index/served.h"

void served_note(struct served *served, uint64_t bits, int64_t now_ms)
{
	for (; bits != 0; bits &= bits - 1)
		served->asked_ms[__builtin_ctzll(bits)] = now_ms;
}

bool served_lately(const struct served *served, uint32_t queue, int64_t now_ms)
{
	int64_t asked_ms = served->asked_ms[queue % SERVED_BITS];

	return asked_ms != 0 && now_ms - asked_ms <= SERVED_LATELY_MS;
}
