/*
 * The next time of cron lines, for tests/cron/compare.py: lines of standard input are LINE TAB ZONE TAB SECOND, and each is answered by
 * the next second after that one, "never", or "refused".
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/flow/cron.h"

enum {
	ZONES_MAX = 64,
};

static struct {
	char name[ZONE_NAME_MAX];
	struct zone *zone;
} loaded[ZONES_MAX];

static const struct zone *zone_of(const char *name)
{
	size_t i = 0;

	while (i < ZONES_MAX && loaded[i].zone && strcmp(loaded[i].name, name) != 0)
		i++;
	if (i == ZONES_MAX || strlen(name) >= ZONE_NAME_MAX)
		return NULL;
	if (!loaded[i].zone && zone_load(NULL, span_of(name), &loaded[i].zone) < 0)
		return NULL;
	strcpy(loaded[i].name, name);
	return loaded[i].zone;
}

int main(void)
{
	char line[1024];

	while (fgets(line, sizeof line, stdin)) {
		const char *text = strtok(line, "\t"), *zone_name = strtok(NULL, "\t"),
			   *after = strtok(NULL, "\n");
		const struct zone *zone = after ? zone_of(zone_name) : NULL;
		struct cron_fault fault;
		struct cron cron;
		if (!zone)
			return EXIT_FAILURE;
		if (cron_read(span_of(text), &cron, &fault) < 0) {
			puts("refused");
			continue;
		}
		int64_t next = cron_next(&cron, zone, strtoll(after, NULL, 10));
		if (next == INT64_MAX)
			puts("never");
		else
			printf("%" PRId64 "\n", next);
	}
	return EXIT_SUCCESS;
}
