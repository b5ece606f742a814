/* The whole tree: whatever a program starts ends with it, and gone means gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/take.h"
#include "exec/tree/cgroup.h"
#include "exec/tree/proc.h"
#include "exec/tree/tree.h"
#include "world.h"
#include "../skip.h"

/* ---- asked to end ------------------------------------------------------------------------------------------------- */

static void term_is_enough_for_the_polite(void **state)
{
	struct running running;

	(void)state;
	world_run(&shared_world, &running, CHILD(&shared_world, "polite"));
	world_until_text(&running, STREAM_OUT, "ready");
	process_stop(running.process, 10000);
	world_until_gone(&running);
	assert_int_equal(running.end.how, ENDED_EXIT);
	assert_int_equal(running.end.code, 41);
	assert_true(running.end.stop_asked);
	assert_false(running.end.kill_used);
	assert_nothing_left(&running);
	running_done(&running);
}

static void one_that_is_stopped_hears_term_too(void **state)
{
	struct running running;

	(void)state;
	world_run(&shared_world, &running, CHILD(&shared_world, "stopped"));
	world_until_text(&running, STREAM_OUT, "ready");
	process_stop(running.process, 10000);
	world_until_gone(&running);
	assert_int_equal(running.end.code, 41);
	running_done(&running);
}

static void the_deaf_are_killed_after_the_grace(void **state)
{
	struct running running;

	(void)state;
	world_run(&shared_world, &running, CHILD(&shared_world, "deaf"));
	world_until_text(&running, STREAM_OUT, "ready");
	process_stop(running.process, 50);
	world_until_gone(&running);
	assert_int_equal(running.end.how, ENDED_SIGNAL);
	assert_int_equal(running.end.code, SIGKILL);
	assert_true(running.end.kill_used);
	assert_nothing_left(&running);
	running_done(&running);
}

/* The first grace would last longer than the test has patience. */
static void a_shorter_grace_wins_and_a_longer_one_does_not(void **state)
{
	struct running running;

	(void)state;
	world_run(&shared_world, &running, CHILD(&shared_world, "deaf"));
	world_until_text(&running, STREAM_OUT, "ready");
	process_stop(running.process, 600000);
	process_stop(running.process, 50);
	process_stop(running.process, 600000);
	world_until_gone(&running);
	assert_int_equal(running.end.code, SIGKILL);
	running_done(&running);
}

static void a_kill_right_after_the_start_leaves_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		struct running running;
		world_run(&shared_world, &running, CHILD(&shared_world, "deaf"));
		process_kill(running.process);
		world_until_gone(&running);
		assert_nothing_left(&running);
		running_done(&running);
	}
}

static void a_stop_after_the_end_does_nothing(void **state)
{
	struct running running;

	(void)state;
	world_run(&shared_world, &running, CHILD(&shared_world, "exit", "0"));
	while (!running.exited)
		uv_run(&shared_world.loop, UV_RUN_ONCE);
	if (running.process)
		process_stop(running.process, 0);
	world_until_gone(&running);
	assert_false(running.end.stop_asked);
	assert_int_equal(running.end.code, 0);
	running_done(&running);
}

/* ---- what it leaves behind ---------------------------------------------------------------------------------------- */

static void daemons_end_with_the_program_that_left_them(void **state)
{
	struct running running;

	(void)state;
	world_finish(&shared_world, &running, CHILD(&shared_world, "daemon", "3"));
	assert_true(running.exited);
	assert_int_equal(running.end.code, 3);
	assert_int_equal(running.end.strays, 3);
	assert_false(running.end.kill_used);
	assert_nothing_left(&running);
	running_done(&running);
}

static void deaf_daemons_are_killed(void **state)
{
	struct running running;

	(void)state;
	struct process_spec spec =
		world_spec(&shared_world, &running, CHILD(&shared_world, "daemon", "3", "deaf"));
	spec.linger_ms = 50;
	world_start(&shared_world, &running, &spec);
	world_until_gone(&running);
	assert_int_equal(running.end.how, ENDED_EXIT);
	assert_int_equal(running.end.strays, 3);
	assert_true(running.end.kill_used);
	assert_nothing_left(&running);
	running_done(&running);
}

static void a_deep_family_is_killed_at_once(void **state)
{
	struct running running;

	(void)state;
	world_run(&shared_world, &running, CHILD(&shared_world, "family", "40"));
	world_until_text(&running, STREAM_OUT, "ready");
	assert_int_equal(marked(running.identity.run), 41);
	process_kill(running.process);
	world_until_gone(&running);
	assert_nothing_left(&running);
	running_done(&running);
}

struct family {
	pid_t shim, pids[8];
};

static bool has_two_children(void *context)
{
	struct family *family = context;

	return tree_children(family->shim, family->pids, 8) == 2;
}

/* Another session, no parent, no marker: only that it descends from the shim is left. */
static void one_without_marker_session_and_parent_is_found(void **state)
{
	struct running running;
	struct family family;

	(void)state;
	world_run(&shared_world, &running, CHILD(&shared_world, "scrubbed"));
	world_until_text(&running, STREAM_OUT, "ready");
	family.shim = running.identity.shim;
	world_until(
		&shared_world, has_two_children, &family); /* the program, and the one that lost its parent */
	process_kill(running.process);
	world_until_gone(&running);
	for (int i = 0; i < 2; i++) {
		struct proc_stat stat;
		assert_int_equal(proc_stat_read(family.pids[i], &stat), -ESRCH);
	}
	running_done(&running);
}

/* May those who are nobody in particular go there? Not, for one, where a home of root is above it. */
static bool others_reach(const char *path)
{
	char above[4096];
	struct stat stat_;

	snprintf(above, sizeof above, "%s", path);
	while (stat(above, &stat_) == 0 && stat_.st_mode & S_IXOTH) {
		char *slash = strrchr(above, '/');
		if (!slash || slash == above)
			return true;
		*slash = 0;
	}
	return false;
}

/* Never more than `most`, and as an ordinary user also never more than the limit. */
static void a_fork_bomb_is_bounded_and_ends(void **state)
{
	struct running running;
	int forked;

	(void)state;
	struct process_spec spec = world_spec(&shared_world, &running, CHILD(&shared_world, "bomb", "1500"));
	spec.confine.limits.tasks = 30;
	if (geteuid() == 0) {
		if (!others_reach(shared_world.child))
			skip_because("nobody else may execute %s", shared_world.child);
		spec.drop_user = true;
		spec.uid = spec.gid = 65534;
	}
	world_start(&shared_world, &running, &spec);
	world_until_text(&running, STREAM_OUT, "forked");
	assert_int_equal(sscanf(running_text(&running, STREAM_OUT), "forked %d", &forked), 1);
	assert_in_range(forked, 10, 1499);
	process_kill(running.process);
	world_until_gone(&running);
	assert_nothing_left(&running);
	running_done(&running);
}

/* Every process lives for the time of one fork: whoever lists first and kills later finds nobody he listed. */
static void those_that_fork_away_are_caught(void **state)
{
	struct running running;

	(void)state;
	world_run(&shared_world, &running, CHILD(&shared_world, "respawn", "4"));
	world_until_text(&running, STREAM_OUT, "ready");
	process_kill(running.process);
	world_until_gone(&running);
	assert_nothing_left(&running);
	running_done(&running);
}

/* ---- when the shim does not do its part --------------------------------------------------------------------------- */

static void signal_shim(const struct running *running, int signal)
{
	cleanup(close_at) int pidfd = pidfd_open_known(running->identity.shim, running->identity.shim_start);

	assert_true(pidfd >= 0);
	assert_int_equal(pidfd_signal(pidfd, signal), 0);
}

static void the_tree_of_a_killed_shim_is_ended_by_us(void **state)
{
	struct running running, other;

	(void)state;
	world_run(&shared_world, &other, CHILD(&shared_world, "polite"));
	world_until_text(&other, STREAM_OUT, "ready");
	world_run(&shared_world, &running, CHILD(&shared_world, "family", "10"));
	world_until_text(&running, STREAM_OUT, "ready");
	signal_shim(&running, SIGKILL);
	world_until_gone(&running);
	assert_int_equal(running.end.how, ENDED_LOST);
	assert_int_equal(marked(running.identity.run), 0);
	assert_int_equal(marked(other.identity.run), 1); /* nobody else was touched */
	process_stop(other.process, 10000);
	world_until_gone(&other);
	assert_int_equal(other.end.code, 41);
	assert_nothing_left(&running);
	running_done(&other);
	running_done(&running);
}

static void daemons_of_a_killed_shim_are_ended_by_us(void **state)
{
	struct running running;

	(void)state;
	world_run(&shared_world, &running, CHILD(&shared_world, "scrubbed"));
	world_until_text(&running, STREAM_OUT, "ready");
	signal_shim(&running, SIGKILL);
	world_until_gone(&running);
	assert_nothing_left(&running);
	running_done(&running);
}

static void a_shim_that_sleeps_through_an_order_is_replaced(void **state)
{
	struct running running;

	(void)state;
	world_run(&shared_world, &running, CHILD(&shared_world, "deaf"));
	world_until_text(&running, STREAM_OUT, "ready");
	signal_shim(&running, SIGSTOP);
	process_kill(running.process);
	world_until_gone(&running);
	assert_int_equal(running.end.how, ENDED_LOST);
	assert_true(running.end.stop_asked);
	assert_nothing_left(&running);
	running_done(&running);
}

static void a_shim_ignores_every_signal_but_kill(void **state)
{
	struct running running;

	(void)state;
	world_run(&shared_world, &running, CHILD(&shared_world, "polite"));
	world_until_text(&running, STREAM_OUT, "ready");
	for (int signal = 1; signal < 32; signal++)
		if (signal != SIGKILL && signal != SIGSTOP)
			signal_shim(&running, signal);
	process_stop(running.process, 10000);
	world_until_gone(&running);
	assert_int_equal(running.end.code, 41);
	running_done(&running);
}

/* ---- cgroups of both versions ------------------------------------------------------------------------------------- */

static void end_by_cgroup(const char *place)
{
	char path[CGROUP_PATH_BYTES], run[32];
	siginfo_t info;
	int fd;

	snprintf(run, sizeof run, "test-%d", (int)getpid());
	if (access(place, W_OK) < 0 || cgroup_make(place, run, path, &fd) < 0)
		skip_because("no cgroup can be made in %s: %s", place, strerror(errno));
	pid_t pid = fork();
	if (pid == 0) {
		if (cgroup_enter(fd) < 0)
			_exit(1);
		for (int i = 0; i < 5; i++)
			fork();
		signal(SIGTERM, SIG_IGN);
		for (int i = 0; i < 60; i++)
			usleep(1000000);
		_exit(0);
	}
	while (cgroup_signal(fd, path, 0) < 32) /* all of them are there */
		usleep(1000);
	assert_int_equal(cgroup_remove(path), -EBUSY);
	assert_in_range(cgroup_signal(fd, path, SIGKILL), 1, 32);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED), 0);
	assert_int_equal(info.si_status, SIGKILL);
	while (waitid(P_ALL, 0, &info, WEXITED) == 0)
		; /* we are a subreaper */
	assert_int_equal(cgroup_signal(fd, path, 0), 0);
	close(fd);
	assert_int_equal(cgroup_remove(path), 0);
}

static const char *second_version(void)
{
	return access("/sys/fs/cgroup/unified/cgroup.procs", F_OK) == 0 ? "/sys/fs/cgroup/unified"
									: "/sys/fs/cgroup";
}

static void a_cgroup_of_the_second_version_ends_in_one_stroke(void **state)
{
	(void)state;
	end_by_cgroup(second_version());
}

/* A leaf in a place of our own. */
static void make_leaf(const char *run, char place[CGROUP_PATH_BYTES], char leaf[CGROUP_PATH_BYTES])
{
	int fd;

	snprintf(place, CGROUP_PATH_BYTES, "%s/stint-place-%d", second_version(), (int)getpid());
	if (mkdir(place, 0755) < 0 && errno != EEXIST)
		skip_because("%s cannot be made: %s", place, strerror(errno));
	assert_int_equal(cgroup_make(place, run, leaf, &fd), 0);
	close(fd);
}

/* A shim that hears these bytes, or only that we are gone, instead of a request. */
static void mislead_shim(char *leaf, const char *said)
{
	char *argv[] = {"stint-shim", "misled", leaf, NULL};
	posix_spawn_file_actions_t actions;
	int pair[2], status;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
	assert_int_equal(posix_spawn_file_actions_adddup2(&actions, pair[1], 0), 0);
	assert_int_equal(posix_spawn(&pid, getenv("STINT_SHIM"), &actions, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	if (said)
		assert_int_equal(send(pair[0], said, strlen(said), 0), strlen(said));
	close(pair[1]);
	close(pair[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Any directory does: it is only removed. */
static void a_shim_that_starts_nothing_leaves_no_cgroup(void **state)
{
	char leaf[200];

	(void)state;
	snprintf(leaf, sizeof leaf, "%s/leaf", shared_world.dir);
	assert_int_equal(mkdir(leaf, 0700), 0);
	mislead_shim(leaf, NULL);
	assert_int_equal(access(leaf, F_OK), -1);
	assert_int_equal(mkdir(leaf, 0700), 0);
	mislead_shim(leaf, "no descriptors");
	assert_int_equal(access(leaf, F_OK), -1);
}

static void make_old(const char *path)
{
	struct timespec times[2] = {{.tv_sec = time(NULL) - 3600}, {.tv_sec = time(NULL) - 3600}};

	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void cgroups_that_the_dead_left_are_swept_and_no_others(void **state)
{
	char place[CGROUP_PATH_BYTES], left[CGROUP_PATH_BYTES], fresh[CGROUP_PATH_BYTES],
		lived_in[CGROUP_PATH_BYTES];
	int status;

	(void)state;
	make_leaf("left", place, left);
	make_leaf("fresh", place, fresh);
	make_leaf("lived-in", place, lived_in);
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	int fd = open(lived_in, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup(close_at) int procs = openat(fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	assert_true(dprintf(procs, "%d", (int)pid) > 0);
	make_old(left);
	make_old(lived_in);
	cgroup_sweep(place);
	assert_int_equal(access(left, F_OK), -1);
	assert_int_equal(access(fresh, F_OK), 0);
	assert_int_equal(access(lived_in, F_OK), 0);
	assert_int_equal(cgroup_signal(fd, lived_in, SIGKILL), 1);
	close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(rmdir(lived_in), 0);
	assert_int_equal(rmdir(fresh), 0);
	assert_int_equal(rmdir(place), 0);
}

static void a_cgroup_of_the_first_version_is_frozen_and_ended(void **state)
{
	(void)state;
	end_by_cgroup("/sys/fs/cgroup/freezer");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(term_is_enough_for_the_polite),
		cmocka_unit_test(one_that_is_stopped_hears_term_too),
		cmocka_unit_test(the_deaf_are_killed_after_the_grace),
		cmocka_unit_test(a_shorter_grace_wins_and_a_longer_one_does_not),
		cmocka_unit_test(a_kill_right_after_the_start_leaves_nothing),
		cmocka_unit_test(a_stop_after_the_end_does_nothing),
		cmocka_unit_test(daemons_end_with_the_program_that_left_them),
		cmocka_unit_test(deaf_daemons_are_killed),
		cmocka_unit_test(a_deep_family_is_killed_at_once),
		cmocka_unit_test(one_without_marker_session_and_parent_is_found),
		cmocka_unit_test(a_fork_bomb_is_bounded_and_ends),
		cmocka_unit_test(those_that_fork_away_are_caught),
		cmocka_unit_test(the_tree_of_a_killed_shim_is_ended_by_us),
		cmocka_unit_test(daemons_of_a_killed_shim_are_ended_by_us),
		cmocka_unit_test(a_shim_that_sleeps_through_an_order_is_replaced),
		cmocka_unit_test(a_shim_ignores_every_signal_but_kill),
		cmocka_unit_test(a_cgroup_of_the_second_version_ends_in_one_stroke),
		cmocka_unit_test(a_cgroup_of_the_first_version_is_frozen_and_ended),
		cmocka_unit_test(a_shim_that_starts_nothing_leaves_no_cgroup),
		cmocka_unit_test(cgroups_that_the_dead_left_are_swept_and_no_others),
	};

	return cmocka_run_group_tests(tests, shared_world_open, shared_world_close);
}
