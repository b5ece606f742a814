/*
 * Many at once: test_exec_storm [COUNT] starts so many processes, lets all of them end in one moment and counts what
 * is told: each started, exited with its own status and gone, once. Prints what a start and an exit cost.
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
	print_message("figure: a start, %d at once\t%.2f\t-\tms\nfigure: all of them gone\t%.0f\t-\tms\n",
		wave.to - wave.from, (double)(opened - began) / 1e6 / (wave.to - wave.from),
		(double)(now_ns() - opened) / 1e6);
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

static void figure(const char *level, const char *what, uint64_t *ns, int rounds)
{
	qsort(ns, (size_t)rounds, sizeof *ns, by_size);
	print_message("figure: %s: %s, p50 and p99\t%.0f %.0f\t-\tus\n", level, what,
		(double)ns[rounds / 2] / 1e3, (double)ns[rounds - 2] / 1e3);
}

/* One after the other: each says when it ends, and its exit and its end are told after that, in this order. How long they
   take is printed, for ./dev bench figures. */
static void expect_ends_in_order(const struct wall *wall, int rounds)
{
	enum { ROUNDS_MAX = 100 };
	static uint64_t call_ns[ROUNDS_MAX], start_ns[ROUNDS_MAX], exit_ns[ROUNDS_MAX], gone_ns[ROUNDS_MAX];
	const char *child = wall->level == WALL_CONTAINER ? "/bin/child" : world.child;
	const char *level = wall_level_name(wall->level);

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
		assert_int_equal(running.order, 3);
		assert_int_equal(running.end.how, ENDED_EXIT);
		assert_int_equal(running.end.code, 0);
		assert_int_equal(sscanf(running_text(&running, STREAM_OUT), "%lu", &ended), 1);
		assert_true(began <= running.started_ns);
		assert_true(ended <= running.exited_ns);
		assert_true(running.exited_ns <= running.gone_ns);
		start_ns[i] = running.started_ns - began;
		exit_ns[i] = running.exited_ns - ended;
		gone_ns[i] = running.gone_ns - ended;
		running_done(&running);
	}
	figure(level, "process_start", call_ns, rounds);
	figure(level, "until it has started", start_ns, rounds);
	figure(level, "from its exit until that is told", exit_ns, rounds);
	figure(level, "from its exit until it is gone", gone_ns, rounds);
}

static void an_end_is_told_after_it_happened_and_in_order(void **state)
{
	const struct wall none = {0};

	(void)state;
	expect_ends_in_order(&none, 100);
}

/* Which of them can be had was found out before the host was opened. */
static bool had[WALL_LEVELS];

static void behind_walls_too(void **state)
{
	char rootfs[200], run_path[200];
	struct wall sandbox = {.level = WALL_SANDBOX},
		    container = {.level = WALL_CONTAINER, .rootfs = rootfs, .run_path = run_path};

	(void)state;
	if (had[WALL_SANDBOX])
		expect_ends_in_order(&sandbox, 30);
	if (!had[WALL_CONTAINER])
		return;
	world_make_rootfs(&world, rootfs, sizeof rootfs);
	snprintf(run_path, sizeof run_path, "%s/run", world.dir);
	assert_int_equal(mkdir(run_path, 0700), 0);
	expect_ends_in_order(&container, 30);
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
		cmocka_unit_test(an_end_is_told_after_it_happened_and_in_order),
		cmocka_unit_test(behind_walls_too),
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
