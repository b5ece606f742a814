/*
 * A store on disk: who may open it, what is refused, and what is there after a process has died.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>

#include "sqlite_place.h"

/* Run SQL on a file that no store has open. */
static void run_sql(const char *path, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void assert_answers(const char *path, const char *sql, const char *expected)
{
	sqlite3_stmt *statement;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
		fail_msg("%s", sqlite3_errmsg(db));
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	assert_string_equal((const char *)sqlite3_column_text(statement, 0), expected);
	sqlite3_finalize(statement);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void assert_mode(const char *path, unsigned mode)
{
	struct stat stat;

	assert_int_equal(lstat(path, &stat), 0);
	assert_int_equal(stat.st_mode & 07777, mode);
}

/* ---- who may open it ---- */

static void a_new_store_is_for_its_owner_alone(void **state)
{
	struct place *place = *state;
	mode_t umask_before = umask(0);
	struct backend *backend = store_open(place->store);
	char wal[PLACE_PATH_MAX];

	umask(umask_before);
	task_commit(backend, 1);
	place_name(place, "stint.db-wal", wal);
	assert_mode(place->store, 0600);
	assert_mode(wal, 0600);
	backend->ops->close(backend);
}

static void a_second_process_is_turned_away(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);

	assert_busy_elsewhere(place->store);
	task_commit(backend, 1);
	assert_busy_elsewhere(place->store);
	backend->ops->close(backend);
}

static void a_second_opener_in_the_same_process_frees_no_lock(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);

	assert_refused(place->store, -EBUSY, "in use");
	assert_busy_elsewhere(place->store);
	task_commit(backend, 1);
	backend->ops->close(backend);
}

static void expect_one_task(const char *path)
{
	struct backend *backend = store_open(path);

	if (!task_is_there(backend, 1))
		_exit(1);
	backend->ops->close(backend);
}

static void a_closed_store_is_free_for_the_next(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);

	task_commit(backend, 1);
	backend->ops->close(backend);
	in_another_process(expect_one_task, place->store);
}

/* ---- what is refused ---- */

static void a_store_of_a_newer_release_is_refused(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);

	backend->ops->close(backend);
	run_sql(place->store, "PRAGMA user_version = 1000000");
	assert_refused(place->store, -EPROTO, "newer");
	assert_answers(place->store, "PRAGMA user_version", "1000000");
}

/* One flipped bit of the file's header makes such a number. */
static void a_schema_below_0_is_damage(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);

	backend->ops->close(backend);
	run_sql(place->store, "PRAGMA user_version = -2147483644");
	assert_refused(place->store, -EIO, "damaged (its schema is called -2147483644)");
	assert_answers(place->store, "PRAGMA user_version", "-2147483644");
}

static void a_database_of_somebody_else_is_refused_and_left_alone(void **state)
{
	struct place *place = *state;

	run_sql(place->store, "CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)");
	assert_refused(place->store, -EPROTO, "not a stint store");
	assert_answers(place->store, "PRAGMA journal_mode", "delete");
	assert_answers(place->store, "SELECT group_concat(name) FROM sqlite_schema", "theirs");
}

static void a_file_that_is_no_database_is_refused(void **state)
{
	struct place *place = *state;

	write_file(place->store, "# notes\n");
	assert_refused(place->store, -EPROTO, "not a stint store");
}

static void an_empty_file_becomes_a_store(void **state)
{
	struct place *place = *state;
	struct backend *backend;

	write_file(place->store, "");
	backend = store_open(place->store);
	task_commit(backend, 1);
	backend->ops->close(backend);
}

static void a_store_that_was_only_begun_is_finished(void **state)
{
	struct place *place = *state;
	struct backend *backend;

	run_sql(place->store, "PRAGMA journal_mode = WAL"); /* where a crash may leave a first start */
	backend = store_open(place->store);
	task_commit(backend, 1);
	backend->ops->close(backend);
}

static void a_symbolic_link_is_refused(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);

	backend->ops->close(backend);
	assert_int_equal(symlink(place->store, place->other), 0);
	assert_refused(place->other, -ELOOP, "symbolic link");
}

static void a_dangling_link_creates_nothing(void **state)
{
	struct place *place = *state;

	assert_int_equal(symlink(place->store, place->other), 0);
	assert_refused(place->other, -ELOOP, "symbolic link");
	assert_false(file_is_there(place->store, ""));
}

static void a_directory_may_be_a_link(void **state)
{
	struct place *place = *state;
	char path[PLACE_PATH_MAX];
	struct backend *backend;

	assert_int_equal(symlink(place->directory, place->other), 0);
	place_name(place, "other.db/stint.db", path);
	backend = store_open(path);
	assert_true(file_is_there(place->store, ""));
	backend->ops->close(backend);
}

static void a_place_without_a_directory_is_refused(void **state)
{
	struct place *place = *state;
	char path[PLACE_PATH_MAX];

	place_name(place, "nowhere/stint.db", path);
	assert_refused(path, -ENOENT, "no place");
	assert_refused(place->directory, -EINVAL, "not a plain file");
}

static void an_unknown_level_of_sync_is_refused(void **state)
{
	struct place *place = *state;
	struct sqlite_options options = {
		.path = place->store, .no_ballast = true, .synchronous = "SOMETIMES"};
	struct backend *backend = NULL;

	assert_int_equal(sqlite_open(&options, &backend, NULL), -EINVAL);
}

static void a_row_that_nobody_wrote_is_a_fault(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);
	cleanup(arena_done) struct arena arena;
	struct task_row row;

	arena_init(&arena, 1 << 16);
	task_commit(backend, 1);
	backend->ops->close(backend);
	run_sql(place->store, "UPDATE task SET state = 99");
	backend = store_open(place->store);
	assert_int_equal(backend->ops->get_task(backend, 1, &arena, &row), -EBADMSG);
	assert_non_null(strstr(backend->complaint, "row 1 of table task is damaged; restore a backup"));
	backend->ops->close(backend);
}

/* ---- after a death ---- */

static void die_in_a_transaction(const char *path)
{
	struct backend *backend = store_open(path);

	task_commit(backend, 1);
	if (backend->ops->begin(backend) || task_put(backend, 2))
		_exit(1);
	_exit(0);
}

static void an_exit_without_closing_loses_only_what_was_not_committed(void **state)
{
	struct place *place = *state;
	struct backend *backend;

	in_another_process(die_in_a_transaction, place->store);
	backend = store_open(place->store);
	assert_true(task_is_there(backend, 1));
	assert_false(task_is_there(backend, 2));
	task_commit(backend, 2);
	backend->ops->close(backend);
}

/* Commit tasks 1, 2, 3, … and tell each on the pipe once it is acknowledged. */
static void commit_for_ever(const char *path, int pipe)
{
	struct backend *backend = store_open(path);

	for (int64_t seq = 1;; seq++) {
		task_commit(backend, seq);
		if (backend->ops->checkpoint(backend, true) || write(pipe, &seq, sizeof(seq)) != sizeof(seq))
			_exit(1);
	}
}

static int64_t kill_after(const char *path, int64_t commits)
{
	int64_t seq = 0, last = 0;
	int pipes[2];
	pid_t child;

	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (child == 0)
		commit_for_ever(path, pipes[1]);
	close(pipes[1]);
	while (read(pipes[0], &seq, sizeof(seq)) == sizeof(seq)) {
		last = seq;
		if (seq == commits)
			kill(child, SIGKILL);
	}
	close(pipes[0]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	return last;
}

static void a_killed_process_loses_nothing_it_acknowledged(void **state)
{
	struct place *place = *state;
	int64_t acknowledged = kill_after(place->store, 300);
	struct backend *backend = store_open(place->store);

	assert_true(acknowledged >= 300);
	for (int64_t seq = 1; seq <= acknowledged; seq++)
		assert_true(task_is_there(backend, seq));
	assert_false(task_is_there(backend, acknowledged + 2));
	backend->ops->close(backend);
}

/* ---- what the file is ---- */

static void the_file_says_what_it_is(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);

	backend->ops->close(backend);
	assert_answers(place->store, "PRAGMA application_id", "1937010292");
	assert_answers(place->store, "PRAGMA page_size", "2048");
	assert_answers(place->store, "PRAGMA journal_mode", "wal");
	assert_answers(place->store,
		"SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND tbl_name IN ('task', 'task_body', 'event')",
		"0");
}

static void put_claims(struct backend *backend)
{
	struct task_row row = {
		.task = {.seq = 9435, .queue = 1, .state = TASK_RUNNING}, .holder = SPAN("w-1")};
	struct worker_row worker = {.id = SPAN("w-1"), .worker = {.state = WORKER_ACTIVE, .capabilities = 2}};

	row.task.updated_ms = 1768599000000;
	row.task.claim = (struct claim){.clock = CLOCK_CLAIM, .claimed_wall_ms = 1768599000000};
	row.task.claim.lease.granted_ms = 90500;
	worker.worker.registered_ms = worker.worker.last_beat_ms = 1768599000123;
	assert_int_equal(backend->ops->begin(backend), 0);
	assert_int_equal(backend->ops->put_task(backend, &row, true), 0);
	row.task.seq = 2;
	assert_int_equal(backend->ops->put_task(backend, &row, true), 0);
	assert_int_equal(backend->ops->put_id(backend, SPAN("VTID-01183"), 2), 0);
	assert_int_equal(task_put(backend, 3), 0);
	assert_int_equal(
		backend->ops->put_name(backend, &(struct name_row){2, 16, SPAN("\x1fnode\x1freact")}), 0);
	assert_int_equal(backend->ops->put_worker(backend, &worker), 0);
	worker.id = SPAN("w-2");
	worker.worker.state = WORKER_INACTIVE;
	worker.worker.ended = WORKER_TERMINATED;
	worker.worker.capabilities = 0;
	worker.metadata = SPAN("{\"a\":1}");
	assert_int_equal(backend->ops->put_worker(backend, &worker), 0);
	assert_int_equal(backend_commit(backend), 0);
}

static void the_views_show_workers_and_claims(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);

	put_claims(backend);
	backend->ops->close(backend);
	assert_answers(place->store,
		"SELECT group_concat(worker_id || capabilities || registered_at || status || metadata, ' ')"
		" FROM worker_registry",
		"w-1[\"node\",\"react\"]2026-01-16T21:30:00.123Zactive{} "
		"w-2[]2026-01-16T21:30:00.123Zterminated{\"a\":1}");
	assert_answers(place->store,
		"SELECT group_concat(vtid || ' ' || worker_id || ' ' || claimed_at || ' ' || expires_at, ', ')"
		" FROM worker_task_claims WHERE released_at IS NULL AND release_reason IS NULL",
		"VTID-01183 w-1 2026-01-16T21:30:00.000Z 2026-01-16T21:31:30.500Z, "
		"t-7a3 w-1 2026-01-16T21:30:00.000Z 2026-01-16T21:31:30.500Z");
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest cases[] = {
		CASE(a_new_store_is_for_its_owner_alone),
		CASE(a_second_process_is_turned_away),
		CASE(a_second_opener_in_the_same_process_frees_no_lock),
		CASE(a_closed_store_is_free_for_the_next),
		CASE(a_store_of_a_newer_release_is_refused),
		CASE(a_schema_below_0_is_damage),
		CASE(a_database_of_somebody_else_is_refused_and_left_alone),
		CASE(a_file_that_is_no_database_is_refused),
		CASE(an_empty_file_becomes_a_store),
		CASE(a_store_that_was_only_begun_is_finished),
		CASE(a_symbolic_link_is_refused),
		CASE(a_dangling_link_creates_nothing),
		CASE(a_directory_may_be_a_link),
		CASE(a_place_without_a_directory_is_refused),
		CASE(an_unknown_level_of_sync_is_refused),
		CASE(a_row_that_nobody_wrote_is_a_fault),
		CASE(an_exit_without_closing_loses_only_what_was_not_committed),
		CASE(a_killed_process_loses_nothing_it_acknowledged),
		CASE(the_file_says_what_it_is),
		CASE(the_views_show_workers_and_claims),
	};
	int status;

	if (is_second(argc, argv, &status))
		return status;
	return cmocka_run_group_tests(cases, NULL, NULL);
}
