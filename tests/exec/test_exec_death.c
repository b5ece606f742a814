/*
 * The supervisor is killed with -9, alone or together with its shims: nothing of what it started is left after 5 s, or
 * after a successor has looked. This program opens no host: it is the successor.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/take.h"
#include "exec/cgroup_place.h"
#include "exec/orphan.h"
#include "exec/tree/proc.h"
#include "exec/request/request.h"
#include "exec/tree/tree.h"
#include "exec/wall/wall.h"
#include "world.h"
#include "../skip.h"

enum { RECORDS_MAX = 16 };

struct supervisor {
	pid_t pid;
	int pidfd;
	struct process_identity records[RECORDS_MAX];
	size_t count;
	char dir[256]; /* of its own, for its temporary files */
	FILE *lines;   /* what it says */
};

static bool parse(const char *line, struct process_identity *record)
{
	int shim, main_;

	memset(record, 0, sizeof *record);
	if (sscanf(line, "%64s %39s %d %" SCNu64 " %d %" SCNu64 " %511s", record->run, record->boot, &shim,
		    &record->shim_start, &main_, &record->main_start, record->cgroup) != 7)
		return false;
	record->shim = shim;
	record->main = main_;
	if (strcmp(record->cgroup, "-") == 0)
		record->cgroup[0] = 0;
	return true;
}

static void supervisor_start(struct supervisor *supervisor, char *const *argv)
{
	char line[1024];
	int out[2];

	memset(supervisor, 0, sizeof *supervisor);
	snprintf(supervisor->dir, sizeof supervisor->dir, "/tmp/stint-death-XXXXXX");
	assert_non_null(mkdtemp(supervisor->dir));
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	supervisor->pid = fork();
	if (supervisor->pid == 0) {
		dup2(out[1], 1);
		setenv("TMPDIR", supervisor->dir, 1);
		execv(getenv("STINT_EXEC_SUPERVISOR"), argv);
		_exit(127);
	}
	close(out[1]);
	supervisor->pidfd = pidfd_open_of(supervisor->pid);
	supervisor->lines = fdopen(out[0], "r");
	while (fgets(line, sizeof line, supervisor->lines) && strcmp(line, "all\n") != 0)
		if (parse(line, &supervisor->records[supervisor->count]))
			supervisor->count++;
	assert_true(supervisor->count > 0);
}

/* Killed and gone: the one does not follow from the other at once. */
static void kill_known(pid_t pid, uint64_t start)
{
	cleanup(close_at) int pidfd = pidfd_open_known(pid, start);

	assert_true(pidfd >= 0);
	assert_int_equal(pidfd_signal(pidfd, SIGKILL), 0);
	assert_int_equal(poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1, 10000), 1);
}

/* A stop is not there when it has been sent. */
static void stop_known(pid_t pid, uint64_t start)
{
	cleanup(close_at) int pidfd = pidfd_open_known(pid, start);
	struct proc_stat stat;

	assert_true(pidfd >= 0);
	assert_int_equal(pidfd_signal(pidfd, SIGSTOP), 0);
	while (proc_stat_read(pid, &stat) == 0 && stat.state != 'T')
		poll(NULL, 0, 1);
}

/* It may have been woken by the death of its parent before, and be gone. */
static void wake_known(pid_t pid, uint64_t start)
{
	cleanup(close_at) int pidfd = pidfd_open_known(pid, start);

	if (pidfd >= 0)
		pidfd_signal(pidfd, SIGCONT);
}

static void supervisor_stop(const struct supervisor *supervisor)
{
	struct proc_stat stat;

	assert_int_equal(proc_stat_read(supervisor->pid, &stat), 0);
	stop_known(supervisor->pid, stat.start);
}

static void supervisor_kill(struct supervisor *supervisor)
{
	siginfo_t info;

	assert_int_equal(pidfd_signal(supervisor->pidfd, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)supervisor->pid, &info, WEXITED), 0);
	assert_int_equal(info.si_status, SIGKILL);
	close(supervisor->pidfd);
}

static void supervisor_done(struct supervisor *supervisor)
{
	char command[300];

	fclose(supervisor->lines);
	snprintf(command, sizeof command, "rm -rf '%s'", supervisor->dir);
	assert_int_equal(system(command), 0);
}

static uint32_t left_of(const struct supervisor *supervisor)
{
	uint32_t left = 0;

	for (size_t i = 0; i < supervisor->count; i++) {
		const struct process_identity *record = &supervisor->records[i];
		left += marked(record->run);
		int shim = pidfd_open_known(record->shim, record->shim_start);
		if (shim >= 0) {
			left++;
			close(shim);
		}
		if (record->cgroup[0] && access(record->cgroup, F_OK) == 0)
			left++;
	}
	return left;
}

/* Without the shims, whom a supervisor that is stopped does not wait for. */
static uint32_t programs_of(const struct supervisor *supervisor)
{
	uint32_t left = 0;

	for (size_t i = 0; i < supervisor->count; i++)
		left += marked(supervisor->records[i].run);
	return left;
}

/* Returns after how many milliseconds nothing was left. */
static int64_t until_nothing_is_left(struct supervisor *supervisor)
{
	int64_t began_ms = monotonic_ms();

	while (left_of(supervisor) && monotonic_ms() - began_ms < WORLD_PATIENCE_MS)
		poll(NULL, 0, 20);
	assert_int_equal(left_of(supervisor), 0);
	supervisor_done(supervisor);
	return monotonic_ms() - began_ms;
}

static int64_t kill_and_wait(struct supervisor *supervisor)
{
	supervisor_kill(supervisor);
	return until_nothing_is_left(supervisor);
}

static char *const everything[] = {
	"exec-supervisor", "deaf", "family:20", "stopped", "hang", "scrubbed", "polite", NULL};

static void a_killed_supervisor_leaves_nothing(void **state)
{
	struct supervisor supervisor;

	(void)state;
	supervisor_start(&supervisor, everything);
	assert_int_equal(supervisor.count, 6);
	assert_true(left_of(&supervisor) >= 12);
	print_message("figure: gone after a killed supervisor\t%d\t%d\tms\n", (int)kill_and_wait(&supervisor),
		SHIM_ORPHAN_MS);
}

static void a_shim_that_was_stopped_wakes_when_the_supervisor_dies(void **state)
{
	struct supervisor supervisor;

	(void)state;
	supervisor_start(&supervisor, (char *const[]){"exec-supervisor", "deaf", NULL});
	stop_known(supervisor.records[0].shim, supervisor.records[0].shim_start);
	kill_and_wait(&supervisor);
}

/* The shims sleep from their first moment on and wake as orphans: nobody is there to hear of the start. */
static void a_supervisor_killed_during_a_start_leaves_nothing(void **state)
{
	struct supervisor supervisor;

	(void)state;
	supervisor_start(&supervisor,
		(char *const[]){"exec-supervisor", "--asleep", "silent", "silent", "silent", NULL});
	assert_int_equal(supervisor.count, 3);
	supervisor_kill(&supervisor);
	for (size_t i = 0; i < supervisor.count; i++)
		wake_known(supervisor.records[i].shim, supervisor.records[i].shim_start);
	until_nothing_is_left(&supervisor);
}

/* Nobody has died, and what it runs does not outlive its lease: the supervisor itself hears of it when it goes on. */
static void expect_to_lapse(char *const *argv, size_t count)
{
	struct supervisor supervisor;
	char line[200], wanted[200];
	siginfo_t info;

	supervisor_start(&supervisor, argv);
	assert_int_equal(supervisor.count, count);
	supervisor_stop(&supervisor);
	for (int64_t began_ms = monotonic_ms(); programs_of(&supervisor) > 0;) {
		assert_true(monotonic_ms() - began_ms < WORLD_PATIENCE_MS);
		poll(NULL, 0, 20);
	}
	assert_int_equal(pidfd_signal(supervisor.pidfd, SIGCONT), 0);
	for (size_t i = 0; i < supervisor.count; i++) {
		snprintf(wanted, sizeof wanted, "%s lapsed\n", supervisor.records[i].run);
		assert_non_null(fgets(line, sizeof line, supervisor.lines));
		assert_string_equal(line, wanted);
	}
	assert_int_equal(waitid(P_PID, (id_t)supervisor.pid, &info, WEXITED), 0);
	assert_int_equal(info.si_status, 0);
	close(supervisor.pidfd);
	supervisor_done(&supervisor);
}

static void a_stopped_supervisor_leaves_nothing_past_its_lease(void **state)
{
	(void)state;
	expect_to_lapse((char *const[]){"exec-supervisor", "--leased", "deaf", "family:5", "scrubbed",
				"stopped", NULL},
		4);
}

static void wait_for_the_lock(const struct supervisor *supervisor)
{
	char path[300];

	snprintf(path, sizeof path, "%s/held", supervisor->dir);
	cleanup(close_at) int fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
}

/* A program that is killed in the middle of its work leaves a mess: git, its locks. */
static void an_orphan_that_may_finish_does_and_holds_its_lock_until_then(void **state)
{
	struct supervisor supervisor;
	char pattern[300];
	glob_t found;

	(void)state;
	supervisor_start(&supervisor, (char *const[]){"exec-supervisor", "--finishing", "late", NULL});
	supervisor_kill(&supervisor);
	wait_for_the_lock(&supervisor);
	snprintf(pattern, sizeof pattern, "%s/*/finished", supervisor.dir);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	globfree(&found);
	until_nothing_is_left(&supervisor);
}

static void one_that_does_not_finish_is_killed_all_the_same(void **state)
{
	struct supervisor supervisor;

	(void)state;
	supervisor_start(&supervisor, (char *const[]){"exec-supervisor", "--finishing", "hang", NULL});
	kill_and_wait(&supervisor);
}

static void a_successor_ends_what_has_no_shim_any_more(void **state)
{
	struct supervisor supervisor;
	struct orphans_left left;

	(void)state;
	supervisor_start(
		&supervisor, (char *const[]){"exec-supervisor", "deaf", "family:20", "stopped", NULL});
	/* One shim is asleep, the others are killed first: the supervisor has no time to do anything about it. */
	supervisor_stop(&supervisor);
	stop_known(supervisor.records[0].shim, supervisor.records[0].shim_start);
	kill_known(supervisor.records[1].shim, supervisor.records[1].shim_start);
	kill_known(supervisor.records[2].shim, supervisor.records[2].shim_start);
	supervisor_kill(&supervisor);
	assert_int_equal(orphans_end(supervisor.records, supervisor.count, 15000, &left), 0);
	assert_true(left.found > 2);
	assert_int_equal(left.left, 0);
	assert_int_equal(left_of(&supervisor), 0);
	supervisor_done(&supervisor);
}

/* Moved there before it begins: like a service, it is alone in its cgroup. */
static void enter_own_cgroup(const char *path)
{
	char procs[CGROUP_PATH_BYTES + 64];

	snprintf(procs, sizeof procs, "%s/cgroup.procs", path);
	setenv("STINT_EXEC_OWN_CGROUP", procs, 1);
}

/* Nobody has written down anything: the cgroup alone tells. One of them has left its environment behind. */
static void the_next_start_in_a_cgroup_of_its_own_ends_what_worker_and_shims_left(void **state)
{
	static struct cgroup_place place;
	struct supervisor first, second;
	char own[CGROUP_PATH_BYTES + 32];

	(void)state;
	cgroup_look(&place);
	snprintf(own, sizeof own, "%s/own-%d", place.tree, (int)getpid());
	if (!place.tree[0] || mkdir(own, 0755) < 0)
		skip_because("no cgroup can be made here");
	enter_own_cgroup(own);
	supervisor_start(&first, (char *const[]){"exec-supervisor", "family:20", "scrubbed", NULL});
	supervisor_stop(&first);
	for (size_t i = 0; i < first.count; i++)
		kill_known(first.records[i].shim, first.records[i].shim_start);
	supervisor_kill(&first);
	assert_true(left_of(&first) > 0);
	supervisor_start(&second, (char *const[]){"exec-supervisor", "polite", NULL});
	assert_int_equal(left_of(&first), 0);
	supervisor_done(&first);
	kill_and_wait(&second);
	unsetenv("STINT_EXEC_OWN_CGROUP");
	rmdir(own);
}

static void the_run_alone_is_enough_for_a_successor(void **state)
{
	struct supervisor supervisor;
	struct process_identity only = {0};
	struct orphans_left left;

	(void)state;
	supervisor_start(&supervisor, (char *const[]){"exec-supervisor", "family:5", NULL});
	memcpy(only.run, supervisor.records[0].run, sizeof only.run);
	supervisor_stop(&supervisor);
	kill_known(supervisor.records[0].shim, supervisor.records[0].shim_start);
	supervisor_kill(&supervisor);
	assert_int_equal(orphans_end(&only, 1, 15000, &left), 0);
	assert_true(left.found > 0);
	assert_int_equal(left.left, 0);
	assert_int_equal(marked(only.run), 0);
	rmdir(supervisor.records[0].cgroup);
	supervisor_done(&supervisor);
}

/* The pid of a record may be anybody's by now: without start time and boot it means nothing. */
static void a_record_of_another_touches_nobody(void **state)
{
	struct process_identity others[2];
	struct proc_stat stat;
	struct orphans_left left;
	siginfo_t info;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		for (;;)
			pause();
	memset(others, 0, sizeof others);
	assert_int_equal(proc_stat_read(pid, &stat), 0);
	assert_int_equal(boot_id_read(others[0].boot, sizeof others[0].boot), 0);
	others[0].shim = others[0].main = pid;
	others[0].shim_start = others[0].main_start = stat.start + 1; /* the number was given out again */
	strcpy(others[1].boot, "00000000-0000-0000-0000-000000000000");
	others[1].shim = others[1].main = pid;
	others[1].shim_start = others[1].main_start = stat.start; /* the machine has started again */
	assert_int_equal(orphans_end(others, 2, 1000, &left), 0);
	assert_int_equal(left.found, 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	assert_int_equal(proc_stat_read(pid, &stat), 0);
	kill_known(pid, stat.start);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED), 0);
}

/* In a process of its own: a trial makes who tries it a reaper of orphans. */
static bool can_be_had(enum wall_level level)
{
	char reason[WALL_REASON_BYTES], fix[WALL_FIX_BYTES];
	struct wall wall = {.level = level};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		bool works =
			wall_try(&wall, &(struct wall_trial){.shim = getenv("STINT_SHIM")}, reason, fix) == 0;
		if (!works)
			printf("skipped: level %s cannot be had here: %s\n", wall_level_name(level), reason);
		fflush(stdout);
		_exit(works ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status == 0;
}

/* What makes a wall is part of the tree: whoever dies, it does not stay. */
static void nothing_is_left_behind_a_wall_either(enum wall_level level)
{
	struct supervisor supervisor;
	struct orphans_left left;

	if (!can_be_had(level))
		return;
	setenv("STINT_EXEC_LEVEL", wall_level_name(level), 1);
	supervisor_start(
		&supervisor, (char *const[]){"exec-supervisor", "deaf", "family:5", "scrubbed", NULL});
	assert_int_equal(supervisor.count, 3);
	kill_and_wait(&supervisor);
	expect_to_lapse((char *const[]){"exec-supervisor", "--leased", "deaf", "family:5", NULL}, 2);
	supervisor_start(&supervisor, (char *const[]){"exec-supervisor", "deaf", "family:5", NULL});
	supervisor_stop(&supervisor);
	stop_known(supervisor.records[0].shim, supervisor.records[0].shim_start);
	kill_known(supervisor.records[1].shim, supervisor.records[1].shim_start);
	supervisor_kill(&supervisor);
	unsetenv("STINT_EXEC_LEVEL");
	assert_int_equal(orphans_end(supervisor.records, supervisor.count, 15000, &left), 0);
	assert_int_equal(left.left, 0);
	assert_int_equal(left_of(&supervisor), 0);
	supervisor_done(&supervisor);
}

static void nothing_is_left_of_sandboxes(void **state)
{
	(void)state;
	nothing_is_left_behind_a_wall_either(WALL_SANDBOX);
}

static void nothing_is_left_of_containers(void **state)
{
	(void)state;
	nothing_is_left_behind_a_wall_either(WALL_CONTAINER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_killed_supervisor_leaves_nothing),
		cmocka_unit_test(a_shim_that_was_stopped_wakes_when_the_supervisor_dies),
		cmocka_unit_test(a_supervisor_killed_during_a_start_leaves_nothing),
		cmocka_unit_test(a_stopped_supervisor_leaves_nothing_past_its_lease),
		cmocka_unit_test(an_orphan_that_may_finish_does_and_holds_its_lock_until_then),
		cmocka_unit_test(one_that_does_not_finish_is_killed_all_the_same),
		cmocka_unit_test(a_successor_ends_what_has_no_shim_any_more),
		cmocka_unit_test(the_next_start_in_a_cgroup_of_its_own_ends_what_worker_and_shims_left),
		cmocka_unit_test(the_run_alone_is_enough_for_a_successor),
		cmocka_unit_test(a_record_of_another_touches_nobody),
		cmocka_unit_test(nothing_is_left_of_sandboxes),
		cmocka_unit_test(nothing_is_left_of_containers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
