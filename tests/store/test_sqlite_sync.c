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

#include "base/crc32c.h"
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

int fdatasync(int fd)
{
	return fsync(fd);
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
	LOG_FRAME_SALTS = 8,
	REMAINS = 64,
};

struct log {
	int fd;
	off_t end; /* behind its last commit */
	char salts[8];
};

static struct log log_open(const struct place *place)
{
	char path[PLACE_PATH_MAX + 8], frame[LOG_FRAME];
	struct log log;

	snprintf(path, sizeof path, "%s-wal", place->store);
	log.fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(log.fd, log.salts, sizeof log.salts, LOG_SALTS), sizeof log.salts);
	log.end = LOG_HEADER;
	for (off_t at = LOG_HEADER; pread(log.fd, frame, sizeof frame, at) == LOG_FRAME; at += LOG_FRAME) {
		if (memcmp(frame + LOG_FRAME_SALTS, log.salts, sizeof log.salts) == 0 &&
			(frame[6] || frame[7]))
			log.end = at + LOG_FRAME;
	}
	return log;
}

/* The last frame many times more, with a page that its checksum does not fit: what a power cut leaves of a long turn. */
static void leave_remains(const struct log *log)
{
	char frame[LOG_FRAME];

	assert_int_equal(pread(log->fd, frame, sizeof frame, log->end - LOG_FRAME), LOG_FRAME);
	frame[LOG_FRAME - 1] ^= 1;
	memset(frame + 4, 0, 4); /* it has not come to its commit */
	for (off_t i = 0; i < REMAINS; i++)
		assert_int_equal(pwrite(log->fd, frame, sizeof frame, log->end + i * LOG_FRAME), LOG_FRAME);
}

static bool has_salts(const struct log *log, off_t at)
{
	char salts[8];

	assert_int_equal(pread(log->fd, salts, sizeof salts, at + LOG_FRAME_SALTS), sizeof salts);
	return memcmp(salts, log->salts, sizeof salts) == 0;
}

/* If they stayed, the remains of this turn and those of the next could together look like damage. */
static void the_remains_of_a_torn_turn_are_wiped_before_the_log_is_written(void **state)
{
	struct place *place = *state;

	leave_log(place);
	struct log log = log_open(place);
	leave_remains(&log);
	struct backend *backend = store_open(place->store);
	for (off_t i = 0; i < REMAINS; i++)
		assert_false(has_salts(&log, log.end + i * LOG_FRAME));
	assert_true(has_salts(&log, log.end - LOG_FRAME));
	task_commit(backend, 2);
	backend->ops->close(backend);
	close(log.fd);
	backend = store_open(place->store);
	assert_true(task_is_there(backend, 1));
	assert_true(task_is_there(backend, 2));
	backend->ops->close(backend);
}

enum {
	BOOT = 7,
	MARK_BYTES_MAX = 512,
};

static int open_in(const struct place *place, int64_t boot, struct backend **ret_backend)
{
	struct sqlite_options options = {.path = place->store, .no_ballast = true, .boot_lo = (uint64_t)boot};
	cleanup(free_at) char *complaint = NULL;
	int fault = sqlite_open(&options, ret_backend, &complaint);

	assert_true(fault == 0 || (fault == -EBADMSG && strstr(complaint, "commits lie behind it")));
	return fault;
}

static int64_t mark_bytes(const struct place *place, char text[MARK_BYTES_MAX])
{
	char path[PLACE_PATH_MAX];

	place_name(place, "store.mark", path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = read(fd, text, MARK_BYTES_MAX - 1);
	assert_true(got > 0);
	text[got] = 0;
	close(fd);
	return got;
}

static void mark_put(const struct place *place, const char *text)
{
	char path[PLACE_PATH_MAX];

	place_name(place, "store.mark", path);
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

/* A life that ends with a turn whose sync failed: nobody was told of task 2. */
static void leave_doubt(const struct place *place)
{
	pid_t child = fork();

	if (child == 0) {
		struct backend *backend;
		assert_int_equal(open_in(place, BOOT, &backend), 0);
		assert_int_equal(backend->ops->begin(backend), 0);
		assert_int_equal(backend->ops->put_meta(backend, META_BOOT_LO, BOOT), 0);
		assert_int_equal(task_put(backend, 1), 0);
		assert_int_equal(backend_commit(backend), 0);
		assert_int_equal(backend->ops->mark(backend), 0);
		failing = "-wal";
		assert_int_equal(backend->ops->begin(backend), 0);
		assert_int_equal(task_put(backend, 2), 0);
		assert_int_equal(backend_commit(backend), -EIO);
		_exit(0);
	}
	assert_ends_well(child);
}

/* What the disk may have kept of that turn: its commit, and not its first page. */
static void tear_last_turn(const struct log *log)
{
	char frame[LOG_FRAME];
	off_t first = log->end - LOG_FRAME;

	while (first > LOG_HEADER) {
		assert_int_equal(pread(log->fd, frame, sizeof frame, first - LOG_FRAME), LOG_FRAME);
		if (frame[6] || frame[7])
			break;
		first -= LOG_FRAME;
	}
	assert_true(first < log->end - LOG_FRAME); /* it has more than one page */
	assert_int_equal(pread(log->fd, frame, sizeof frame, first), LOG_FRAME);
	frame[LOG_FRAME - 1] ^= 1;
	assert_int_equal(pwrite(log->fd, frame, sizeof frame, first), LOG_FRAME);
}

/* The sync failed, so the turn was told to nobody, as if the power had gone: the mark says so. Within one boot nothing else does. */
static void a_torn_turn_whose_sync_failed_is_the_end_and_without_the_mark_it_is_damage(void **state)
{
	struct place *place = *state;
	char doubting[MARK_BYTES_MAX], sure[MARK_BYTES_MAX];
	struct backend *backend = NULL;

	leave_doubt(place);
	mark_bytes(place, doubting);
	assert_non_null(strstr(doubting, "\ndoubt 1\n"));
	struct log log = log_open(place);
	tear_last_turn(&log);
	close(log.fd);
	snprintf(sure, sizeof sure, "%s", doubting);
	*(strstr(sure, "\ndoubt ") + strlen("\ndoubt ")) = '0';
	char *sum = strstr(sure, "crc ");
	struct span summed = {sure, (size_t)(sum - sure)};
	snprintf(sum, 16, "crc %08x\n", crc32c(0, summed));
	mark_put(place, sure);
	assert_int_equal(open_in(place, BOOT, &backend), -EBADMSG);
	mark_put(place, doubting);
	assert_int_equal(open_in(place, BOOT, &backend), 0);
	assert_true(task_is_there(backend, 1));
	assert_false(task_is_there(backend, 2));
	backend->ops->close(backend);
}

static void the_doubt_of_a_sync_that_failed_ends_with_the_next_start(void **state)
{
	struct place *place = *state;
	char doubting[MARK_BYTES_MAX];
	struct backend *backend = NULL;

	leave_doubt(place);
	mark_bytes(place, doubting);
	failing = NULL;
	assert_int_equal(open_in(place, BOOT, &backend), 0); /* the turn is there as a whole */
	assert_true(task_is_there(backend, 2));
	assert_int_equal(backend->ops->mark(backend), 0); /* as a start does */
	backend->ops->close(backend);
	mark_bytes(place, doubting);
	assert_non_null(strstr(doubting, "\ndoubt 0\n"));
}

int main(void)
{
	static const struct CMUnitTest cases[] = {
		CASE(a_backup_is_synced_before_it_has_its_name),
		CASE(a_backup_that_cannot_be_synced_gets_no_name),
		CASE(a_start_syncs_the_log_before_it_believes_it),
		CASE(a_log_that_cannot_be_synced_is_not_believed),
		CASE(a_torn_turn_whose_sync_failed_is_the_end_and_without_the_mark_it_is_damage),
		CASE(the_doubt_of_a_sync_that_failed_ends_with_the_next_start),
		CASE(the_remains_of_a_torn_turn_are_wiped_before_the_log_is_written),
	};

	return cmocka_run_group_tests_name("syncs outside of a commit", cases, NULL, NULL);
}
