/*
 * Cron lines and the files of time zones. Whatever the bytes are: a refusal that says where, or a line whose next times rise and lie
 * within its years; and a zone whose shifts stand in order.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/zone.h"
#include "core/flow/cron.h"
#include "fuzz/fuzz.h"

enum {
	TIMES = 8,
};

static const struct {
	uint32_t count;
	struct zone_shift shifts[5];
} berlin = {5,
	{{ZONE_BEGIN, 3600}, {1774746000, 7200}, {1792890000, 3600}, {1806195600, 7200}, {1824944400, 3600}}};

static void look(const struct cron *cron, const struct zone *zone)
{
	int64_t at_s = 1774000000;

	for (int i = 0; i < TIMES; i++) {
		int64_t next_s = cron_next(cron, zone, at_s);
		if (next_s == INT64_MAX)
			return;
		assert(next_s > at_s);
		assert(next_s <= at_s + (int64_t)(CRON_YEARS_MAX + 1) * 366 * 86400);
		at_s = next_s;
	}
}

static void read_zone(struct span file)
{
	struct zone *zone;
	int r = zone_read(file, &zone);

	assert(r == 0 || r == -EINVAL || r == -ENOMEM);
	if (r < 0)
		return;
	assert(zone->count >= 1);
	assert(zone->shifts[0].at_s == ZONE_BEGIN);
	for (uint32_t i = 1; i < zone->count; i++)
		assert(zone->shifts[i].at_s > zone->shifts[i - 1].at_s);
	zone_free(zone);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = {(const char *)data, size};
	struct cron_fault fault = {0};
	struct cron cron;

	read_zone(text);
	int r = cron_read(text, &cron, &fault);
	assert(r == 0 || r == -EINVAL);
	if (r < 0) {
		assert(fault.allowed);
		return 0;
	}
	look(&cron, &zone_utc);
	look(&cron, (const struct zone *)&berlin);
	return 0;
}
