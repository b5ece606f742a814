/*
 * stint-powerloss: cuts the power at every bad moment and looks at what is left.
 *
 *   --cycles N          how many cycles, one cut, kill or restart each     (5000)
 *   --seed S            of the first life; the next life has the next one  (1)
 *   --synchronous X     FULL: nothing may be lost; NORMAL: count the losses (FULL)
 *   --long              200,000 cycles
 *   --exhaustive        cut a fixed script at each of its first 2,000 operations
 *   --cut-at N          … at this one only
 *   --stale-cache       a restart after a failed sync finds the cache as the failed program left it
 *   --trace             tell what happens
 *
 * A run with FULL ends with a short one with NORMAL, which has to lose something: a disk that loses nothing
 * would prove nothing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "powerloss/life.h"

enum {
	CYCLES = 5000,
	CYCLES_LONG = 200000,
	CYCLES_NORMAL = 200,
	SCRIPT_OPERATIONS = 2000,
};

struct arguments {
	uint64_t seed, cycles, cut_at;
	const char *synchronous;
	bool exhaustive, stale_cache, trace;
};

__attribute__((noreturn)) static void usage(void)
{
	fprintf(stderr,
		"usage: stint-powerloss [--cycles N] [--seed S] [--synchronous FULL|NORMAL] [--long]\n"
		"                       [--exhaustive [--cut-at N]] [--stale-cache] [--trace]\n");
	exit(2);
}

static uint64_t number(const char *text)
{
	char *end = NULL;
	uint64_t value = text ? strtoull(text, &end, 10) : 0;

	if (!text || end == text || *end)
		usage();
	return value;
}

static void parse(struct arguments *arguments, char **argv)
{
	for (char **at = argv + 1; *at; at++) {
		if (strcmp(*at, "--cycles") == 0)
			arguments->cycles = number(*++at);
		else if (strcmp(*at, "--seed") == 0)
			arguments->seed = number(*++at);
		else if (strcmp(*at, "--cut-at") == 0)
			arguments->cut_at = number(*++at);
		else if (strcmp(*at, "--synchronous") == 0)
			arguments->synchronous = *++at ? *at : "";
		else if (strcmp(*at, "--long") == 0)
			arguments->cycles = CYCLES_LONG;
		else if (strcmp(*at, "--exhaustive") == 0)
			arguments->exhaustive = true;
		else if (strcmp(*at, "--stale-cache") == 0)
			arguments->stale_cache = true;
		else if (strcmp(*at, "--trace") == 0)
			arguments->trace = true;
		else
			usage();
		if (!*at)
			usage();
	}
	if (strcmp(arguments->synchronous, "FULL") != 0 && strcmp(arguments->synchronous, "NORMAL") != 0)
		usage();
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void report(const char *synchronous, uint64_t cycles, double took, const struct life_totals *totals)
{
	printf("%s: %" PRIu64 " cycles in %.1f s (%.0f/s), %" PRIu64 " turns acknowledged, %" PRIu64
	       " of them lost\n",
		synchronous, cycles, took, took > 0 ? (double)cycles / took : 0, totals->turns,
		totals->lost_turns);
	printf("  %" PRIu64 " cuts, %" PRIu64 " kills, %" PRIu64 " restarts, %" PRIu64 " full disks, %" PRIu64
	       " failed syncs, %" PRIu64 " operations\n",
		totals->cuts, totals->kills, totals->restarts, totals->full_disks, totals->failed_syncs,
		totals->operations);
	printf("  %" PRIu64 " turns found though not acknowledged, %" PRIu64 " integrity checks\n",
		totals->in_doubt_found, totals->looks_inside);
}

static struct life_totals run_lives(
	const struct arguments *arguments, const char *synchronous, uint64_t cycles)
{
	struct life_totals totals = {0};
	struct life_options options = {.synchronous = synchronous,
		.totals = &totals,
		.stale_cache = arguments->stale_cache,
		.trace = arguments->trace};
	double began = seconds();
	uint64_t seed = arguments->seed;

	for (uint64_t done = 0; done < cycles;) {
		uint64_t left = cycles - done;
		done += life_run(&options, seed++, left > UINT32_MAX ? UINT32_MAX : (uint32_t)left);
	}
	report(synchronous, cycles, seconds() - began, &totals);
	return totals;
}

static struct life_totals run_script(const struct arguments *arguments)
{
	struct life_totals totals = {0};
	struct life_options options = {
		.synchronous = arguments->synchronous, .totals = &totals, .trace = arguments->trace};
	double began = seconds();
	uint64_t at = arguments->cut_at ? arguments->cut_at : 1;
	uint64_t last = arguments->cut_at ? arguments->cut_at : SCRIPT_OPERATIONS;

	while (at <= last && life_run_script(&options, arguments->seed, at))
		at++;
	report(arguments->synchronous, totals.cuts, seconds() - began, &totals);
	return totals;
}

/* Does the disk bite? */
static void check_normal_loses(const struct arguments *arguments)
{
	struct life_totals totals = run_lives(arguments, "NORMAL", CYCLES_NORMAL);

	if (totals.lost_turns > 0)
		return;
	printf("violation: NORMAL has lost nothing, so this run shows nothing\n");
	printf("replay: build/tests/stint-powerloss --synchronous NORMAL --seed %" PRIu64 " --cycles %d\n",
		arguments->seed, CYCLES_NORMAL);
	exit(1);
}

int main(int argc, char **argv)
{
	struct arguments arguments = {.seed = 1, .cycles = CYCLES, .synchronous = "FULL"};
	struct life_totals totals;

	(void)argc;
	setvbuf(stdout, NULL, _IOLBF, 0);
	parse(&arguments, argv);
	printf("seed %" PRIu64 ", %s, synchronous %s\n", arguments.seed,
		arguments.exhaustive ? "each operation of a fixed script" : "random lives",
		arguments.synchronous);
	life_prepare();
	totals = arguments.exhaustive ? run_script(&arguments)
				      : run_lives(&arguments, arguments.synchronous, arguments.cycles);
	if (!arguments.exhaustive && !arguments.trace && strcmp(arguments.synchronous, "FULL") == 0)
		check_normal_loses(&arguments);
	printf("%" PRIu64 " cuts, %" PRIu64 " lost\n", totals.cuts, totals.lost_turns);
	return 0;
}
