/*
 * stint-sim --seed N --steps M [--seeds K] [--long] [--verbose] [--states FILE] [--history FILE]
 *
 * Runs the store under virtual time, from a seed. The last line is a hash over all events: the same seeds
 * and steps give the same hash. Exit status 1: an invariant was violated; 2: it could not run.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "sim/coverage.h"
#include "sim/options.h"
#include "sim/sim.h"

enum {
	STEPS_DEFAULT = 5000,
	SEEDS_LONG = 1600,
	STEPS_LONG = 20000,
};

static int usage(void)
{
	fputs("usage: stint-sim [--seed N] [--steps M] [--seeds K] [--long] [--verbose] [--states FILE] "
	      "[--history FILE]\n",
		stderr);
	return 2;
}

static bool read_number(const char *text, uint64_t *ret_number)
{
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	*ret_number = strtoull(text, &end, 10);
	return *end == 0;
}

static bool read_option(struct sim_options *options, const char *name, const char *value, int *ret_used)
{
	uint64_t number;

	*ret_used = 2;
	if (strcmp(name, "--states") == 0 && value)
		options->states_md = value;
	else if (strcmp(name, "--history") == 0 && value)
		options->history_path = value;
	else if (strcmp(name, "--seed") == 0 && read_number(value, &number))
		options->seed = number;
	else if (strcmp(name, "--steps") == 0 && read_number(value, &number))
		options->steps = number;
	else if (strcmp(name, "--seeds") == 0 && read_number(value, &number) && number > 0)
		options->seeds = (uint32_t)number;
	else
		*ret_used = 1;
	if (*ret_used == 2)
		return true;
	if (strcmp(name, "--long") == 0)
		options->thorough = true;
	else if (strcmp(name, "--verbose") == 0)
		options->verbose = true;
	else
		return false;
	return true;
}

static bool read_options(struct sim_options *options, int argc, char **argv)
{
	int used;

	for (int i = 1; i < argc; i += used) {
		if (!read_option(options, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &used))
			return false;
	}
	if (options->steps == 0)
		options->steps = options->thorough ? STEPS_LONG : STEPS_DEFAULT;
	if (options->seeds == 0)
		options->seeds = options->thorough ? SEEDS_LONG : 1;
	return true;
}

/* The only look at a real clock: how fast it ran is printed and decides nothing. */
static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int run_seeds(
	struct sim_options *options, struct coverage *coverage, uint64_t *ret_steps, uint64_t *ret_hash)
{
	uint64_t first = options->seed;
	uint64_t steps, hash;

	*ret_steps = 0;
	*ret_hash = 0;
	for (uint32_t i = 0; i < options->seeds; i++) {
		options_expand(options, first + i);
		if (options->seeds == 1 || options->verbose)
			options_print(options);
		int r = sim_run(options, coverage, &hash, &steps);
		*ret_steps += steps;
		*ret_hash = hash_u64(*ret_hash ^ hash);
		if (options->verbose)
			printf("  done     seed %" PRIu64 ": %" PRIu64 " steps, hash %016" PRIx64 "\n",
				options->seed, steps, hash);
		if (r < 0)
			return r;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct sim_options options = {.seed = 1};
	struct coverage *coverage = calloc(1, sizeof *coverage);
	uint64_t steps, hash;

	if (!coverage)
		return 2;
	if (!read_options(&options, argc, argv)) {
		free(coverage);
		return usage();
	}
	double began = seconds_now();
	int r = run_seeds(&options, coverage, &steps, &hash);
	double took = seconds_now() - began;
	uint32_t empty = r < 0 ? 0 : coverage_print(coverage, options.thorough);
	free(coverage);
	printf("%" PRIu64 " steps in %.2f s: %.0f steps/s\n", steps, took, (double)steps / took);
	if (options.thorough && empty > 0)
		printf("%u reachable cells were never touched\n", empty);
	printf("hash %016" PRIx64 "\n", hash);
	return r < 0 || (options.thorough && empty > 0) ? 1 : 0;
}
