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
#include <sys/stat.h>
#include <unistd.h>

#include "base/take.h"
#include "exec/wall/wall.h"
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

/* What it costs to start at a level, and how long an exit takes to be known. */
static void measure(const struct wall *wall, int rounds)
{
	enum { ROUNDS_MAX = 100 };
	static uint64_t call_ns[ROUNDS_MAX], start_ns[ROUNDS_MAX], exit_ns[ROUNDS_MAX], gone_ns[ROUNDS_MAX];
	const char *child = wall->level == WALL_CONTAINER ? "/bin/child" : world.child;

	for (int i = 0; i < rounds; i++) {
		const char *argv[] = {child, "clock", NULL};
		struct running running;
		struct process_spec spec = world_spec(&world, &running, argv);
		uint64_t began = now_ns(), ended;
		spec.wall = wall;
		world.grants[0].optional = true; /* a container has its own */
		world_start(&world, &running, &spec);
		call_ns[i] = now_ns() - began;
		world_until_gone(&running);
		assert_int_equal(sscanf(running_text(&running, STREAM_OUT), "%lu", &ended), 1);
		start_ns[i] = running.started_ns - began;
		exit_ns[i] = running.exited_ns - ended;
		gone_ns[i] = running.gone_ns - ended;
		running_done(&running);
	}
	qsort(call_ns, (size_t)rounds, sizeof *call_ns, by_size);
	qsort(start_ns, (size_t)rounds, sizeof *start_ns, by_size);
	qsort(exit_ns, (size_t)rounds, sizeof *exit_ns, by_size);
	qsort(gone_ns, (size_t)rounds, sizeof *gone_ns, by_size);
	print_message(
		"%s, us p50/p99: process_start %.0f/%.0f, to started %.0f/%.0f, exit to told %.0f/%.0f, exit to gone "
		"%.0f/%.0f\n",
		wall_level_name(wall->level), (double)call_ns[rounds / 2] / 1e3,
		(double)call_ns[rounds - 2] / 1e3, (double)start_ns[rounds / 2] / 1e3,
		(double)start_ns[rounds - 2] / 1e3, (double)exit_ns[rounds / 2] / 1e3,
		(double)exit_ns[rounds - 2] / 1e3, (double)gone_ns[rounds / 2] / 1e3,
		(double)gone_ns[rounds - 2] / 1e3);
}

/* One after the other. */
static void a_start_is_cheap_and_an_exit_is_known_soon(void **state)
{
	const struct wall none = {0};

	(void)state;
	measure(&none, 100);
}

/* Which of them can be had was found out before the host was opened. */
static bool had[WALL_LEVELS];

static void walls_are_not_dear(void **state)
{
	char rootfs[200], run_path[200];
	struct wall sandbox = {.level = WALL_SANDBOX},
		    container = {.level = WALL_CONTAINER, .rootfs = rootfs, .run_path = run_path};

	(void)state;
	if (had[WALL_SANDBOX])
		measure(&sandbox, 30);
	if (!had[WALL_CONTAINER])
		return;
	world_make_rootfs(&world, rootfs, sizeof rootfs);
	snprintf(run_path, sizeof run_path, "%s/run", world.dir);
	assert_int_equal(mkdir(run_path, 0700), 0);
	measure(&container, 30);
}

static void look_around(void)
{
	char reason[WALL_REASON_BYTES], fix[WALL_FIX_BYTES];

	for (int level = WALL_SANDBOX; level <= WALL_CONTAINER; level++) {
		struct wall wall = {.level = (enum wall_level)level};
		had[level] =
			wall_try(&wall, &(struct wall_trial){.shim = getenv("STINT_SHIM")}, reason, fix) == 0;
		if (!had[level])
			print_message("skipped: level %s cannot be had here: %s\n",
				wall_level_name(wall.level), reason);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_start_is_cheap_and_an_exit_is_known_soon),
		cmocka_unit_test(walls_are_not_dear),
		cmocka_unit_test(no_exit_of_a_storm_is_lost),
	};
	if (argc > 1)
		count = atoi(argv[1]);
	all = calloc((size_t)count, sizeof *all);
	look_around();
	world_open(&world);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	world_close(&world);
	free(all);
	return failed;
}
