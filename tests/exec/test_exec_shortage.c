/*
 * The machine is short of descriptors, processes or memory: a start then fails with a clear fault, at whichever step the
 * shortage strikes, and leaves nothing behind; afterwards everything works again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "world.h"
#include "../skip.h"

static int open_descriptors(int *ret_highest)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int count = 0, highest = 0;

	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(dir)) {
			count++;
			highest = atoi(entry->d_name) > highest ? atoi(entry->d_name) : highest;
		}
	closedir(dir);
	if (ret_highest)
		*ret_highest = highest;
	return count;
}

/* Start under a limit that holds for the start alone, and see it through. Returns what process_start() said. */
static int start_limited(int resource, rlim_t value, struct running *running)
{
	struct process_spec spec = world_spec(&shared_world, running, CHILD(&shared_world, "exit", "0"));
	struct rlimit usual, low;
	int before = open_descriptors(NULL);

	assert_int_equal(getrlimit(resource, &usual), 0);
	low = (struct rlimit){value, usual.rlim_max};
	assert_int_equal(setrlimit(resource, &low), 0);
	int fault = process_start(shared_world.host, &spec, &running->process);
	assert_int_equal(setrlimit(resource, &usual), 0);
	if (!fault) {
		process_identify(running->process, &running->identity);
		world_until_gone(running);
	}
	uv_run(&shared_world.loop, UV_RUN_NOWAIT);
	assert_int_equal(open_descriptors(NULL), before);
	assert_nothing_left(running);
	running_done(running);
	return fault;
}

static void assert_all_is_well(void)
{
	struct running running;

	world_finish(&shared_world, &running, CHILD(&shared_world, "exit", "0"));
	assert_int_equal(running.end.how, ENDED_EXIT);
	running_done(&running);
}

/* Every number below the highest is taken, so that a limit is a number of free ones. */
static int fill_holes(int *fds, int room)
{
	int highest, count = 0;

	open_descriptors(&highest);
	while (count < room) {
		int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		fds[count++] = fd;
		if (fd > highest)
			break;
	}
	return count;
}

static void without_descriptors_a_start_fails_and_leaves_nothing(void **state)
{
	int highest, failed = 0, unstarted = 0, well = 0, holes[64], hole_count = fill_holes(holes, 64);
	struct running running;

	(void)state;
	open_descriptors(&highest);
	for (int more = 1; more < 30; more++) {
		int fault = start_limited(RLIMIT_NOFILE, (rlim_t)(highest + more), &running);
		failed += fault != 0;
		if (fault) {
			assert_int_equal(fault, -EMFILE);
			continue;
		}
		well += running.end.how == ENDED_EXIT;
		unstarted += running.end.how == ENDED_UNSTARTED;
		if (running.end.how == ENDED_UNSTARTED)
			assert_int_equal(running.end.fault.error, EMFILE);
	}
	while (hole_count > 0)
		close(holes[--hole_count]);
	assert_true(failed >= 5);
	assert_true(well >= 5);
	assert_int_equal(failed + unstarted + well, 29);
	assert_all_is_well();
}

static void without_processes_a_start_fails_and_leaves_nothing(void **state)
{
	struct running running;
	int well = 0, fault;

	(void)state;
	if (geteuid() == 0)
		skip_because("root has no such limit; exec_shortage_as_nobody does it");
	assert_int_equal(start_limited(RLIMIT_NPROC, 0, &running), -EAGAIN);
	/* Up through every step: no shim, a shim that cannot fork, a child. */
	for (rlim_t most = 1; most < 3000 && well < 3; most++) {
		fault = start_limited(RLIMIT_NPROC, most, &running);
		if (fault) {
			assert_int_equal(fault, -EAGAIN);
			continue;
		}
		well += running.end.how == ENDED_EXIT;
		if (running.end.how == ENDED_UNSTARTED)
			assert_int_equal(running.end.fault.error, EAGAIN);
	}
	assert_int_equal(well, 3);
	assert_all_is_well();
}

/* What comes of it depends on where the memory ends: no shim, half a shim, a program that cannot be loaded. */
static void without_memory_a_start_fails_and_leaves_nothing(void **state)
{
	struct running running;
	int failed = 0;

	(void)state;
#if defined(__SANITIZE_ADDRESS__)
	skip_because("a sanitizer has reserved more than any limit");
#endif
	for (rlim_t most = 0; most < 4u << 20; most += 128u << 10) {
		int fault = start_limited(RLIMIT_AS, most, &running);
		assert_true(fault == 0 || fault == -ENOMEM || fault == -EAGAIN);
		failed += fault != 0 || running.end.how != ENDED_EXIT || running.end.code != 0;
	}
	assert_true(failed > 5);
	assert_all_is_well();
}

static void there_are_so_many_and_no_more(void **state)
{
	struct process_spec spec;
	struct running running;
	struct process *process = NULL;

	(void)state;
	static char arguments[PROCESS_ARGS_MAX + 2][2];
	static const char *argv[PROCESS_ARGS_MAX + 2];
	for (int i = 0; i < PROCESS_ARGS_MAX + 1; i++)
		argv[i] = arguments[i];
	spec = world_spec(&shared_world, &running, argv);
	assert_int_equal(process_start(shared_world.host, &spec, &process), -E2BIG);
	static const char *env[PROCESS_ENV_MAX + 2];
	static char entries[PROCESS_ENV_MAX + 2][16];
	for (int i = 0; i < PROCESS_ENV_MAX + 1; i++) {
		snprintf(entries[i], sizeof entries[i], "N%d=x", i);
		env[i] = entries[i];
	}
	spec = world_spec(&shared_world, &running, CHILD(&shared_world, "exit", "0"));
	spec.env = env;
	assert_int_equal(process_start(shared_world.host, &spec, &process), -E2BIG);
	assert_null(process);
	running_done(&running);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_descriptors_a_start_fails_and_leaves_nothing),
		cmocka_unit_test(without_processes_a_start_fails_and_leaves_nothing),
		cmocka_unit_test(without_memory_a_start_fails_and_leaves_nothing),
		cmocka_unit_test(there_are_so_many_and_no_more),
	};

	closefrom(3); /* whoever started us may have left some */
	return cmocka_run_group_tests(tests, shared_world_open, shared_world_close);
}
