#include "base/duration.h"

#include <stddef.h>

static const struct {
	const char *name;
	int64_t ms;
} units[] = {{"d", 24 * 60 * 60 * 1000}, {"h", 60 * 60 * 1000}, {"min", 60 * 1000}, {"s", 1000}};

enum {
	UNIT_COUNT = sizeof units / sizeof *units,
};

int duration_put(struct buf *out, int64_t ms, unsigned count)
{
	size_t at = 0;

	if (ms < 0)
		ms = 0;
	while (at < UNIT_COUNT - 1 && ms < units[at].ms)
		at++;
	buf_printf(out, "%lld %s", (long long)(ms / units[at].ms), units[at].name);
	if (count < 2 || at == UNIT_COUNT - 1 || ms % units[at].ms < units[at + 1].ms)
		return buf_fault(out);
	return buf_printf(
		out, " %lld %s", (long long)(ms % units[at].ms / units[at + 1].ms), units[at + 1].name);
}

int duration_put_countdown(struct buf *out, int64_t ms)
{
	int64_t seconds = ms > 0 ? (ms + 999) / 1000 : 0;

	if (seconds >= 3600)
		return duration_put(out, ms, 1);
	return buf_printf(out, "%lld:%02lld", (long long)(seconds / 60), (long long)(seconds % 60));
}
