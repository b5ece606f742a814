/*
 * What a worker leaves in its home, and what the next one makes of it: reports for attempts that nobody reported, written
 * with as few syncs as one takes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "worker/report/report_file.h"
#include "worker/state_dir.h"

enum { STARTERS = 4, STARTS = 100 };

static char home[64];
static struct state_dir state_dir;
static int syncs;

int __real_fsync(int fd);
int __wrap_fsync(int fd);

int __wrap_fsync(int fd)
{
	syncs++;
	return __real_fsync(fd);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(home, "/tmp/stint-state-dir-XXXXXX");
	assert_non_null(mkdtemp(home));
	return 0;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *ftw)
{
	(void)about;
	(void)kind;
	(void)ftw;
	return remove(path);
}

static int tear_down(void **state)
{
	(void)state;
	state_dir_close(&state_dir, false);
	return nftw(home, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The one before, if there was one, is dead by that. */
static void open_as(const char *worker)
{
	char complaint[STATE_DIR_COMPLAINT_BYTES];

	if (state_dir.home[0])
		state_dir_close(&state_dir, false);
	assert_int_equal(state_dir_open(&state_dir, home, NULL, worker, false, complaint), 0);
}

static struct run_record noted = {.fd = -1}; /* the last one */

static void note(const char *run, const char *task)
{
	struct process_identity identity = {.boot = "another"};
	struct run_attempt attempt = {"w-1", task, "7"};

	snprintf(identity.run, sizeof identity.run, "%s", run);
	run_record_close(&noted);
	assert_int_equal(state_dir_note_run(&state_dir, &noted, &identity, &attempt), 0);
}

static int count_one(void *context, const char *name)
{
	(void)name;
	++*(int *)context;
	return 0;
}

static int reports(void)
{
	int count = 0;

	assert_int_equal(file_each(state_dir.outbox_fd, 10000, count_one, &count), 0);
	return count;
}

static void says(const char *run, const char *expected)
{
	struct span text;
	struct buf file;

	buf_init(&file, REPORT_BYTES_MAX);
	assert_int_equal(report_load(state_dir.outbox_fd, run, &file, &text), 0);
	assert_int_equal(text.len, strlen(expected));
	assert_memory_equal(text.data, expected, text.len);
	buf_done(&file);
}

static void what_nobody_reported_is_a_crash(void **state)
{
	(void)state;
	open_as("w-1");
	note("r-1", "t");
	open_as("w-2");
	assert_int_equal(state_dir.adopted, 1);
	assert_int_equal(reports(), 1);
	says("r-1",
		"/api/tasks/t/fail\n"
		"{\"workerId\":\"w-1\",\"fence\":\"7\",\"byReport\":true,\"error\":{\"code\":\"WORKER_CRASHED\",\"message\":\"the "
		"supervisor ended while it ran; its processes are gone\"}}");
}

static void many_crashes_cost_the_syncs_of_one(void **state)
{
	char run[16];
	int before;

	(void)state;
	open_as("w-1");
	before = syncs;
	open_as("w-2");
	int usual = syncs - before;
	for (int i = 0; i < 100; i++) {
		snprintf(run, sizeof run, "r-%d", i);
		note(run, "t");
	}
	before = syncs;
	open_as("w-3");
	assert_int_equal(reports(), 100);
	assert_int_equal(syncs - before, usual + 2); /* of their file, and of the directory */
}

/* As many runs as a worker may have, and workers of pools besides. */
static void more_than_a_thousand_records_are_all_taken_over_at_once(void **state)
{
	char run[16];

	(void)state;
	open_as("w-1");
	for (int i = 0; i < 1003; i++) {
		snprintf(run, sizeof run, "r-%d", i);
		note(run, "t");
	}
	open_as("w-2");
	assert_int_equal(state_dir.adopted, 1003);
	assert_int_equal(reports(), 1003);
}

static void what_was_reported_is_not_reported_again(void **state)
{
	(void)state;
	open_as("w-1");
	note("r-1", "t");
	assert_int_equal(file_write(state_dir.outbox_fd, "r-1", SPAN("/api/tasks/t/complete\n{}"), true), 0);
	note("r-2", "u");
	run_record_settle(&noted);
	open_as("w-2");
	assert_int_equal(state_dir.adopted, 1);
	assert_int_equal(reports(), 1);
	says("r-1", "/api/tasks/t/complete\n{}");
}

static void what_was_being_written_is_removed(void **state)
{
	char path[128];

	(void)state;
	open_as("w-1");
	assert_int_equal(close(openat(state_dir.outbox_fd, ".r-1.new", O_CREAT | O_WRONLY, 0600)), 0);
	assert_int_equal(close(openat(state_dir.records_fd, ".r-1.new", O_CREAT | O_WRONLY, 0600)), 0);
	open_as("w-2");
	snprintf(path, sizeof path, "%s/workers/w-1", home);
	assert_int_equal(access(path, F_OK), -1);
}

static void open_slot_as(const char *worker)
{
	char complaint[STATE_DIR_COMPLAINT_BYTES];

	assert_int_equal(state_dir_open(&state_dir, home, "s", worker, false, complaint), 0);
}

static _Noreturn void open_and_close(int who)
{
	char worker[40], complaint[STATE_DIR_COMPLAINT_BYTES];
	struct state_dir own;

	for (int i = 0; i < STARTS; i++) {
		snprintf(worker, sizeof worker, "w-%d-%d", who, i);
		int r = state_dir_open(&own, home, NULL, worker, false, complaint);
		if (r < 0) {
			fprintf(stderr, "%s: %s\n", worker, complaint);
			_exit(1);
		}
		state_dir_close(&own, true);
	}
	_exit(0);
}

/* Each looks at the directories of the others before those have their locks. */
static void workers_that_start_beside_each_other_all_do(void **state)
{
	int failed = 0, status;

	(void)state;
	for (int who = 0; who < STARTERS; who++) {
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			open_and_close(who);
	}
	for (int who = 0; who < STARTERS; who++) {
		assert_true(wait(&status) > 0);
		failed += status != 0;
	}
	assert_int_equal(failed, 0);
}

static void who_is_not_let_into_a_slot_leaves_the_record_of_who_was_there(void **state)
{
	(void)state;
	open_slot_as("w-1");
	assert_string_equal(state_dir.before.worker_id, "");
	for (int clean = 0; clean < 2; clean++) {
		state_dir_close(&state_dir, false);
		open_slot_as("w-2");
		assert_string_equal(state_dir.before.worker_id, "w-1");
		assert_int_equal(state_dir_note_refused(&state_dir), 0);
		state_dir_close(&state_dir, clean);
		open_slot_as("w-3");
		assert_string_equal(state_dir.before.worker_id, "w-1");
		assert_int_equal(state_dir_note_refused(&state_dir), 0);
	}
}

static void who_is_let_in_at_last_is_on_record(void **state)
{
	(void)state;
	open_slot_as("w-1");
	state_dir_close(&state_dir, false);
	open_slot_as("w-2");
	assert_int_equal(state_dir_note_refused(&state_dir), 0);
	assert_int_equal(state_dir_note_worker(&state_dir, "w-2"), 0);
	state_dir_close(&state_dir, false);
	open_slot_as("w-3");
	assert_string_equal(state_dir.before.worker_id, "w-2");
	state_dir_close(&state_dir, true);
	open_slot_as("w-4");
	assert_string_equal(state_dir.before.worker_id, "");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(workers_that_start_beside_each_other_all_do),
		T(what_nobody_reported_is_a_crash),
		T(many_crashes_cost_the_syncs_of_one),
		T(more_than_a_thousand_records_are_all_taken_over_at_once),
		T(what_was_reported_is_not_reported_again),
		T(what_was_being_written_is_removed),
		T(who_is_not_let_into_a_slot_leaves_the_record_of_who_was_there),
		T(who_is_let_in_at_last_is_on_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
