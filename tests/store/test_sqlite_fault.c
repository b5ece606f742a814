/*
 * A disk in trouble: which faults are "not now", which are the end, and the ballast.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faulty_vfs.h"
#include "sqlite_place.h"

static struct backend *faulty_store_open(const char *path)
{
	struct sqlite_options options = {.path = path, .no_ballast = true, .vfs = faulty_vfs()};
	struct backend *backend = NULL;

	assert_int_equal(sqlite_open(&options, &backend, NULL), 0);
	return backend;
}

/* Put and commit more than the log has in hand; the fault of whichever refused. */
static int try_commit(struct backend *backend, int64_t seq)
{
	static char large[512 << 10];
	int fault = backend->ops->begin(backend);

	if (!fault)
		fault = task_put(backend, seq);
	if (!fault)
		fault = backend->ops->put_body(backend, seq, (struct span){large, sizeof(large)});
	if (!fault)
		fault = backend_commit(backend);
	if (fault)
		backend->ops->rollback(backend);
	return fault;
}

static void assert_goes_on(struct backend *backend, const char *path)
{
	assert_true(task_is_there(backend, 1));
	assert_false(task_is_there(backend, 2));
	task_commit(backend, 3);
	backend->ops->close(backend);
	backend = store_open(path);
	assert_true(task_is_there(backend, 1));
	assert_false(task_is_there(backend, 2));
	assert_true(task_is_there(backend, 3));
	backend->ops->close(backend);
}

static void a_full_disk_is_not_now(void **state)
{
	struct place *place = *state;
	struct backend *backend = faulty_store_open(place->store);

	task_commit(backend, 1);
	faulty.is_full = true;
	assert_int_equal(try_commit(backend, 2), -ENOSPC);
	assert_non_null(backend->complaint);
	assert_int_equal(try_commit(backend, 2), -ENOSPC);
	assert_true(task_is_there(backend, 1));
	faulty.is_full = false;
	assert_goes_on(backend, place->store);
}

/* A file that grows makes every sync write its length too. */
static void the_log_does_not_grow_with_every_commit(void **state)
{
	struct place *place = *state;
	struct backend *backend = faulty_store_open(place->store);

	task_commit(backend, 1);
	faulty.is_full = true;
	for (int64_t seq = 2; seq < 12; seq++)
		task_commit(backend, seq);
	faulty.is_full = false;
	backend->ops->close(backend);
	backend = store_open(place->store);
	assert_true(task_is_there(backend, 11));
	backend->ops->close(backend);
}

static void a_full_disk_in_the_middle_of_a_large_transaction_is_not_now(void **state)
{
	struct place *place = *state;
	struct backend *backend = faulty_store_open(place->store);
	static char page[1 << 20];
	int fault = 0;

	task_commit(backend, 1);
	faulty.is_full = true;
	assert_int_equal(backend->ops->begin(backend), 0);
	assert_int_equal(task_put(backend, 2), 0);
	for (int64_t seq = 100; seq < 140 && !fault; seq++) /* more than the cache holds */
		fault = backend->ops->put_body(backend, seq, (struct span){page, sizeof(page)});
	assert_int_equal(fault, -ENOSPC);
	backend->ops->rollback(backend);
	faulty.is_full = false;
	assert_goes_on(backend, place->store);
}

static void a_spent_quota_and_a_read_only_disk_are_not_now(void **state)
{
	static const int faults[] = {EDQUOT, EROFS};
	struct place *place = *state;
	struct backend *backend = faulty_store_open(place->store);

	task_commit(backend, 1);
	for (int i = 0; i < 2; i++) {
		faulty.write_fault = faults[i];
		assert_int_equal(try_commit(backend, 2), -faults[i]);
	}
	faulty.write_fault = 0;
	assert_goes_on(backend, place->store);
}

static void a_failed_sync_is_the_end(void **state)
{
	struct place *place = *state;
	struct backend *backend = faulty_store_open(place->store);
	unsigned syncs;

	task_commit(backend, 1);
	faulty.sync_fails = true;
	faulty.write_fault = 0;
	syncs = faulty.syncs;
	assert_int_equal(try_commit(backend, 2), -EIO);
	assert_int_equal(faulty.syncs, syncs + 1); /* asked once, not again */
	assert_non_null(backend->complaint);
	backend->ops->close(backend);
	assert_int_equal(faulty.syncs, syncs + 1);
	backend = store_open(place->store);
	assert_true(task_is_there(backend, 1));
	backend->ops->close(backend);
}

static void a_failed_write_is_the_end(void **state)
{
	struct place *place = *state;
	struct backend *backend = faulty_store_open(place->store);

	task_commit(backend, 1);
	faulty.write_fault = EIO;
	assert_int_equal(try_commit(backend, 2), -EIO);
	faulty.write_fault = 0;
	backend->ops->close(backend);
}

static void every_commit_is_synced(void **state)
{
	struct place *place = *state;
	struct backend *backend = faulty_store_open(place->store);
	unsigned syncs;

	task_commit(backend, 1);
	syncs = faulty.syncs;
	for (int64_t seq = 2; seq < 10; seq++)
		task_commit(backend, seq);
	assert_int_equal(faulty.syncs, syncs + 8);
	backend->ops->close(backend);
}

/* Enough changed pages for a checkpoint to be due. */
static void fill_log(struct backend *backend)
{
	static char megabyte[1 << 20];

	assert_int_equal(backend->ops->begin(backend), 0);
	for (int64_t seq = 100; seq < 110; seq++)
		assert_int_equal(
			backend->ops->put_body(backend, seq, (struct span){megabyte, sizeof(megabyte)}), 0);
	assert_int_equal(backend_commit(backend), 0);
}

static int64_t size_of(const char *path, const char *suffix)
{
	char name[PLACE_PATH_MAX + 16];
	struct stat stat;

	snprintf(name, sizeof(name), "%s%s", path, suffix);
	return lstat(name, &stat) == 0 ? stat.st_size : -1;
}

static void a_long_log_is_written_back_and_keeps_its_size(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);
	int64_t log;

	fill_log(backend);
	log = size_of(place->store, "-wal");
	assert_true(log > 10 << 20);
	assert_true(size_of(place->store, "") < 1 << 20);
	assert_int_equal(backend->ops->checkpoint(backend, false), 0);
	assert_true(size_of(place->store, "") > 10 << 20);
	task_commit(backend, 1);
	fill_log(backend); /* from its beginning again */
	assert_true(size_of(place->store, "-wal") <= log + (1 << 16));
	backend->ops->close(backend);
}

static void a_short_log_is_left_alone(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);
	int64_t size = size_of(place->store, "");

	task_commit(backend, 1);
	assert_int_equal(backend->ops->checkpoint(backend, true), 0);
	assert_int_equal(size_of(place->store, ""), size);
	backend->ops->close(backend);
}

static void a_full_disk_only_puts_a_checkpoint_off(void **state)
{
	struct place *place = *state;
	struct backend *backend = faulty_store_open(place->store);

	task_commit(backend, 1);
	fill_log(backend);
	faulty.is_full = true;
	assert_int_equal(backend->ops->checkpoint(backend, false), -ENOSPC);
	faulty.is_full = false;
	assert_int_equal(backend->ops->checkpoint(backend, false), 0);
	assert_goes_on(backend, place->store);
}

/* ---- ballast ---- */

static struct backend *open_with_ballast(const char *path, uint64_t bytes)
{
	struct sqlite_options options = {.path = path, .ballast_bytes = bytes};
	struct backend *backend = NULL;

	assert_int_equal(sqlite_open(&options, &backend, NULL), 0);
	return backend;
}

static void the_ballast_is_eight_megabytes_unless_told(void **state)
{
	struct place *place = *state;
	struct backend *backend = open_with_ballast(place->store, 0);

	assert_int_equal(size_of(place->store, ".ballast"), 8 << 20);
	backend->ops->close(backend);
	assert_int_equal(size_of(place->store, ".ballast"), 8 << 20); /* stays for the next start */
}

static void the_ballast_goes_and_comes_back(void **state)
{
	struct place *place = *state;
	struct backend *backend = open_with_ballast(place->store, 1 << 20);
	struct stat stat;
	char path[PLACE_PATH_MAX];

	assert_int_equal(backend->ops->relieve(backend), 0);
	assert_false(file_is_there(place->store, ".ballast"));
	assert_int_equal(backend->ops->relieve(backend), 0);
	assert_int_equal(backend->ops->reserve(backend), 0);
	place_name(place, "stint.db.ballast", path);
	assert_int_equal(lstat(path, &stat), 0);
	assert_int_equal(stat.st_mode & 07777, 0600);
	assert_true(stat.st_blocks * 512 >= 1 << 20); /* set aside, not a hole */
	backend->ops->close(backend);
}

/* On a faulty disk: the room of the real one belongs to everybody. */
static void a_ballast_that_does_not_fit_leaves_no_half(void **state)
{
	struct place *place = *state;
	struct sqlite_options options = {.path = place->store, .ballast_bytes = 8 << 20, .vfs = faulty_vfs()};
	struct backend *backend = NULL;
	char ballast[PLACE_PATH_MAX];

	place_name(place, "stint.db.ballast", ballast);
	faulty.ballast_path = ballast;
	faulty.capacity_bytes = 4 << 20;
	assert_int_equal(sqlite_open(&options, &backend, NULL), 0);
	assert_null(backend->complaint); /* no reason not to start */
	assert_false(file_is_there(place->store, ".ballast"));
	assert_true(backend->ops->reserve(backend) < 0);
	assert_non_null(backend->complaint);
	assert_false(file_is_there(place->store, ".ballast"));
	task_commit(backend, 1);
	backend->ops->close(backend);
}

/* A store on a faulty disk that has room for half a ballast, and ten megabytes in a log that is written back or
 * not. */
static struct backend *open_without_room(struct place *place, char ballast[PLACE_PATH_MAX], bool written_back)
{
	struct sqlite_options options = {.path = place->store, .ballast_bytes = 1 << 20, .vfs = faulty_vfs()};
	struct backend *backend = NULL;

	place_name(place, "stint.db.ballast", ballast);
	faulty.ballast_path = ballast;
	assert_int_equal(sqlite_open(&options, &backend, NULL), 0);
	task_commit(backend, 1);
	fill_log(backend);
	if (written_back)
		assert_int_equal(backend->ops->checkpoint(backend, false), 0);
	assert_int_equal(backend->ops->relieve(backend), 0);
	faulty.capacity_bytes = faulty.used_bytes + (1 << 19);
	return backend;
}

static void the_log_makes_room_for_the_ballast(void **state)
{
	struct place *place = *state;
	char ballast[PLACE_PATH_MAX];
	struct backend *backend = open_without_room(place, ballast, true);

	assert_true(size_of(place->store, "-wal") > 10 << 20);
	assert_int_equal(backend->ops->reserve(backend), 0);
	assert_int_equal(size_of(place->store, ".ballast"), 1 << 20);
	assert_int_equal(size_of(place->store, "-wal"), 0);
	assert_goes_on(backend, place->store);
}

static void a_log_that_cannot_be_written_back_makes_no_room_now(void **state)
{
	struct place *place = *state;
	char ballast[PLACE_PATH_MAX];
	struct backend *backend = open_without_room(place, ballast, false);

	assert_int_equal(backend->ops->reserve(backend), -ENOSPC);
	assert_non_null(backend->complaint);
	assert_false(file_is_there(place->store, ".ballast"));
	faulty.capacity_bytes += 10 << 20; /* somebody made room */
	assert_int_equal(backend->ops->reserve(backend), 0);
	assert_goes_on(backend, place->store);
}

static void a_sync_that_fails_while_room_is_made_is_the_end(void **state)
{
	struct place *place = *state;
	char ballast[PLACE_PATH_MAX];
	struct backend *backend = open_without_room(place, ballast, true);
	unsigned syncs;

	task_commit(backend, 3); /* something to write back */
	syncs = faulty.syncs;
	faulty.sync_fails = true;
	assert_int_equal(backend->ops->reserve(backend), -EIO);
	assert_non_null(backend->complaint);
	assert_int_equal(faulty.syncs, syncs + 1); /* asked once, not again */
	backend->ops->close(backend);
	assert_int_equal(faulty.syncs, syncs + 1);
	backend = store_open(place->store);
	assert_true(task_is_there(backend, 3));
	backend->ops->close(backend);
}

static void die_with_a_log(const char *path)
{
	struct backend *backend = store_open(path);

	fill_log(backend);
	fill_log(backend); /* the same rows: half of the log is of no use */
	_exit(0);
}

static void a_sync_that_fails_while_a_full_store_is_opened_is_told(void **state)
{
	struct place *place = *state;
	struct sqlite_options options = {.path = place->store, .ballast_bytes = 14 << 20};
	cleanup(free_at) char *complaint = NULL;
	char ballast[PLACE_PATH_MAX];
	struct backend *backend = NULL;

	in_another_process(die_with_a_log, place->store);
	options.vfs = faulty_vfs();
	place_name(place, "stint.db.ballast", ballast);
	faulty.ballast_path = ballast;
	faulty.capacity_bytes = 33 << 20;
	faulty.sync_fails = true;
	assert_int_equal(sqlite_open(&options, &backend, &complaint), -EIO);
	assert_non_null(complaint);
	faulty.sync_fails = false;
	assert_int_equal(sqlite_open(&options, &backend, NULL), 0);
	assert_int_equal(size_of(place->store, ".ballast"), 14 << 20);
	backend->ops->close(backend);
}

static void a_link_in_the_place_of_the_ballast_is_not_followed(void **state)
{
	struct place *place = *state;
	char path[PLACE_PATH_MAX];
	struct backend *backend;

	place_name(place, "stint.db.ballast", path);
	assert_int_equal(symlink(place->other, path), 0);
	backend = open_with_ballast(place->store, 1 << 20);
	assert_false(file_is_there(place->other, ""));
	backend->ops->close(backend);
}

int main(void)
{
	static const struct CMUnitTest cases[] = {
		CASE(a_full_disk_is_not_now),
		CASE(the_log_does_not_grow_with_every_commit),
		CASE(a_full_disk_in_the_middle_of_a_large_transaction_is_not_now),
		CASE(a_spent_quota_and_a_read_only_disk_are_not_now),
		CASE(a_failed_sync_is_the_end),
		CASE(a_failed_write_is_the_end),
		CASE(every_commit_is_synced),
		CASE(a_long_log_is_written_back_and_keeps_its_size),
		CASE(a_short_log_is_left_alone),
		CASE(a_full_disk_only_puts_a_checkpoint_off),
		CASE(the_ballast_is_eight_megabytes_unless_told),
		CASE(the_ballast_goes_and_comes_back),
		CASE(a_ballast_that_does_not_fit_leaves_no_half),
		CASE(the_log_makes_room_for_the_ballast),
		CASE(a_log_that_cannot_be_written_back_makes_no_room_now),
		CASE(a_sync_that_fails_while_room_is_made_is_the_end),
		CASE(a_sync_that_fails_while_a_full_store_is_opened_is_told),
		CASE(a_link_in_the_place_of_the_ballast_is_not_followed),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
