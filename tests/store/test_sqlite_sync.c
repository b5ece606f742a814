/*
 * Syncs outside of a commit: that of a backup before it gets its name, and that of the log before a start believes it.
 * This program has fsync() and renameat2() of its own, which note what they are called for and can fail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/syscall.h>

#include "sqlite_place.h"

/* A call for which file, in order. */
static char calls[4096];
static const char *failing; /* the sync of a file whose name ends so fails */

static void note(const char *what, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t len = strlen(calls);

	snprintf(calls + len, sizeof calls - len, "%s %s\n", what, slash ? slash + 1 : path);
}

static void path_of(int fd, char path[PATH_MAX])
{
	char link[64];

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t len = readlink(link, path, PATH_MAX - 1);
	path[len > 0 ? len : 0] = 0;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

int fsync(int fd)
{
	char path[PATH_MAX];

	path_of(fd, path);
	note("sync", path);
	if (failing && ends_with(path, failing)) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fsync, fd);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	note("name", to);
	return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

static void take_backup(struct backend *backend, const char *path)
{
	uint32_t remaining = 1;

	assert_int_equal(backend->ops->backup_begin(backend, path), 0);
	for (int steps = 0; remaining && steps < 1000; steps++)
		assert_int_equal(backend->ops->backup_step(backend, 1000, &remaining), 0);
	backend->ops->backup_end(backend);
}

static void a_backup_is_synced_before_it_has_its_name(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);

	task_commit(backend, 1);
	calls[0] = 0;
	take_backup(backend, place->other);
	const char *synced = strstr(calls, "sync other.db.partial\n"),
		   *named = strstr(calls, "name other.db\n");
	assert_non_null(synced);
	assert_non_null(named);
	assert_true(synced < named);
	assert_non_null(strstr(named, "sync ")); /* its directory */
	backend->ops->close(backend);
}

static void a_backup_that_cannot_be_synced_gets_no_name(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);
	uint32_t remaining = 1;

	task_commit(backend, 1);
	failing = "other.db.partial";
	assert_int_equal(backend->ops->backup_begin(backend, place->other), 0);
	assert_int_equal(backend->ops->backup_step(backend, 1000, &remaining), -EIO);
	failing = NULL;
	backend->ops->backup_end(backend);
	assert_false(file_is_there(place->other, ""));
	assert_false(file_is_there(place->other, ".partial"));
	backend->ops->close(backend);
}

/* A store whose process was killed: its log is there. */
static void leave_log(const struct place *place)
{
	pid_t child = fork();

	if (child == 0) {
		task_commit(store_open(place->store), 1);
		_exit(0);
	}
	assert_ends_well(child);
	assert_true(file_is_there(place->store, "-wal"));
}

static void a_start_syncs_the_log_before_it_believes_it(void **state)
{
	struct place *place = *state;

	leave_log(place);
	calls[0] = 0;
	struct backend *backend = store_open(place->store);
	assert_ptr_equal(strstr(calls, "sync stint.db-wal\n"), calls); /* first of all */
	assert_true(task_is_there(backend, 1));
	backend->ops->close(backend);
}

static void a_log_that_cannot_be_synced_is_not_believed(void **state)
{
	struct place *place = *state;

	leave_log(place);
	failing = "-wal";
	assert_refused(place->store, -EIO, "cannot sync");
	failing = NULL;
}

enum {
	LOG_HEADER = 32,
	LOG_FRAME = 24 + 2048,
	LOG_SALTS = 16,
};

/* The last frame once more, with a page that its checksum does not fit: what a power cut leaves of a turn. */
static void leave_remains(const struct place *place, char salts[8])
{
	char path[PLACE_PATH_MAX + 8], frame[LOG_FRAME];
	struct stat found;

	snprintf(path, sizeof path, "%s-wal", place->store);
	cleanup(close_at) int fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(fstat(fd, &found), 0);
	off_t end = LOG_HEADER + (found.st_size - LOG_HEADER) / LOG_FRAME * LOG_FRAME;
	off_t last = end - LOG_FRAME;
	while (pread(fd, frame, sizeof frame, last) == LOG_FRAME && frame[7] == 0 && frame[6] == 0)
		last -= LOG_FRAME; /* room that is kept behind the frames, or a frame without a commit */
	frame[LOG_FRAME - 1] ^= 1;
	assert_int_equal(pwrite(fd, frame, sizeof frame, last + LOG_FRAME), LOG_FRAME);
	assert_int_equal(pread(fd, salts, 8, LOG_SALTS), 8);
}

static void read_salts(const struct place *place, char salts[8])
{
	char path[PLACE_PATH_MAX + 8];

	snprintf(path, sizeof path, "%s-wal", place->store);
	cleanup(close_at) int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(fd, salts, 8, LOG_SALTS), 8);
}

/* Were it written on, the remains of this turn and those of the next could together look like damage. */
static void a_log_with_the_remains_of_a_torn_turn_is_begun_again(void **state)
{
	struct place *place = *state;
	char before[8], after[8];

	leave_log(place);
	leave_remains(place, before);
	struct backend *backend = store_open(place->store);
	task_commit(backend, 2);
	read_salts(place, after);
	assert_memory_not_equal(before, after, sizeof before);
	assert_true(task_is_there(backend, 1));
	backend->ops->close(backend);
}

static void a_log_that_ends_with_a_commit_is_gone_on_with(void **state)
{
	struct place *place = *state;
	char before[8], after[8];

	leave_log(place);
	read_salts(place, before);
	struct backend *backend = store_open(place->store);
	task_commit(backend, 2);
	read_salts(place, after);
	assert_memory_equal(before, after, sizeof before);
	backend->ops->close(backend);
}

int main(void)
{
	static const struct CMUnitTest cases[] = {
		CASE(a_backup_is_synced_before_it_has_its_name),
		CASE(a_backup_that_cannot_be_synced_gets_no_name),
		CASE(a_start_syncs_the_log_before_it_believes_it),
		CASE(a_log_that_cannot_be_synced_is_not_believed),
		CASE(a_log_with_the_remains_of_a_torn_turn_is_begun_again),
		CASE(a_log_that_ends_with_a_commit_is_gone_on_with),
	};

	return cmocka_run_group_tests_name("syncs outside of a commit", cases, NULL, NULL);
}
