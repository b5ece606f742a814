/*
 * Many at once: test_exec_storm [COUNT] starts so many processes, lets all of them end in one moment and counts what
 * is told: each started, exited with its own status and gone, once. Says what a start and an exit cost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/take.h"
#include "world.h"

static struct world world;
enum { DESCRIPTORS_EACH = 4 };

static int count = 300;
static struct running *all;

/* A wave is those that run at a time: as many as there are, if we may have the descriptors. */
struct wave {
	int from, to;
};

static bool all_started(void *context)
{
	struct wave *wave = context;

	while (wave->from < wave->to && all[wave->from].started)
		wave->from++;
	return wave->from == wave->to;
}

static bool all_gone(void *context)
{
	struct wave *wave = context;

	while (wave->from < wave->to && all[wave->from].gone)
		wave->from++;
	return wave->from == wave->to;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Every process waits for the same lock, which we hold. */
static void storm(struct wave wave)
{
	char gate[200], status[8];
	struct wave starting = wave, going = wave;

	snprintf(gate, sizeof gate, "%s/gate", world.dir);
	cleanup(close_at) int fd = open(gate, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	uint64_t began = now_ns();
	for (int i = wave.from; i < wave.to; i++) {
		snprintf(status, sizeof status, "%d", i % 100);
		world_run(&world, &all[i], CHILD(&world, "gate", "gate", status));
		uv_run(&world.loop, UV_RUN_NOWAIT);
	}
	world_until(&world, all_started, &starting);
	uint64_t opened = now_ns();
	assert_int_equal(flock(fd, LOCK_UN), 0);
	world_until(&world, all_gone, &going);
	print_message("%d started in %.2f ms each, gone within %.0f ms\n", wave.to - wave.from,
		(double)(opened - began) / 1e6 / (wave.to - wave.from), (double)(now_ns() - opened) / 1e6);
}

static void no_exit_of_a_storm_is_lost(void **state)
{
	struct rlimit limit;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	int fit = ((int)limit.rlim_cur - 64) / DESCRIPTORS_EACH, waves = (count + fit - 1) / fit;
	for (int i = 0; i < waves; i++)
		storm((struct wave){count * i / waves, count * (i + 1) / waves});
	for (int i = 0; i < count; i++) {
		assert_true(all[i].exited);
		assert_int_equal(all[i].end.how, ENDED_EXIT);
		assert_int_equal(all[i].end.code, i % 100);
		running_done(&all[i]);
	}
	assert_nothing_left(&all[0]);
}

/* One after the other: what it costs to start at this level, and how long an exit takes to be known. */
static void a_start_is_cheap_and_an_exit_is_known_soon(void **state)
{
	enum { ROUNDS = 100 };
	static uint64_t call_ns[ROUNDS], start_ns[ROUNDS], exit_ns[ROUNDS], gone_ns[ROUNDS];

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct running running;
		uint64_t began = now_ns(), ended;
		world_run(&world, &running, CHILD(&world, "clock"));
		call_ns[i] = now_ns() - began;
		world_until_gone(&running);
		assert_int_equal(sscanf(running_text(&running, STREAM_OUT), "%lu", &ended), 1);
		start_ns[i] = running.started_ns - began;
		exit_ns[i] = running.exited_ns - ended;
		gone_ns[i] = running.gone_ns - ended;
		running_done(&running);
	}
	qsort(call_ns, ROUNDS, sizeof *call_ns, by_size);
	qsort(start_ns, ROUNDS, sizeof *start_ns, by_size);
	qsort(exit_ns, ROUNDS, sizeof *exit_ns, by_size);
	qsort(gone_ns, ROUNDS, sizeof *gone_ns, by_size);
	print_message(
		"us p50/p99: process_start %.0f/%.0f, to started %.0f/%.0f, exit to told %.0f/%.0f, exit to gone "
		"%.0f/%.0f\n",
		(double)call_ns[ROUNDS / 2] / 1e3, (double)call_ns[ROUNDS - 2] / 1e3,
		(double)start_ns[ROUNDS / 2] / 1e3, (double)start_ns[ROUNDS - 2] / 1e3,
		(double)exit_ns[ROUNDS / 2] / 1e3, (double)exit_ns[ROUNDS - 2] / 1e3,
		(double)gone_ns[ROUNDS / 2] / 1e3, (double)gone_ns[ROUNDS - 2] / 1e3);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_start_is_cheap_and_an_exit_is_known_soon),
		cmocka_unit_test(no_exit_of_a_storm_is_lost),
	};
	if (argc > 1)
		count = atoi(argv[1]);
	all = calloc((size_t)count, sizeof *all);
	world_open(&world);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	world_close(&world);
	free(all);
	return failed;
}
