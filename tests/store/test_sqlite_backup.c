/*
 * Backups of a running store, and stores put back from them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sqlite3.h>
#include <time.h>

#include "core/flow/execution.h"
#include "sqlite_place.h"

enum {
	TOLD_BYTES = 400,
};

static void commit_tasks(struct backend *backend, int64_t first, int64_t last)
{
	assert_int_equal(backend->ops->begin(backend), 0);
	for (int64_t seq = first; seq <= last; seq++)
		assert_int_equal(task_put(backend, seq), 0);
	assert_int_equal(backend_commit(backend), 0);
}

static void finish_backup(struct backend *backend, uint32_t pages)
{
	uint32_t remaining = 1;

	for (int steps = 0; remaining && steps < 10000; steps++)
		assert_int_equal(backend->ops->backup_step(backend, pages, &remaining), 0);
	assert_int_equal(remaining, 0);
	backend->ops->backup_end(backend);
}

static void take_backup(struct backend *backend, const char *path)
{
	assert_int_equal(backend->ops->backup_begin(backend, path), 0);
	finish_backup(backend, 1000);
}

static void assert_tasks(struct backend *backend, int64_t last)
{
	for (int64_t seq = 1; seq <= last; seq++)
		assert_true(task_is_there(backend, seq));
	assert_false(task_is_there(backend, last + 1));
}

static void a_backup_is_a_store(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);
	struct stat stat;

	commit_tasks(backend, 1, 50);
	take_backup(backend, place->other);
	task_commit(backend, 51);
	backend->ops->close(backend);
	assert_int_equal(lstat(place->other, &stat), 0);
	assert_int_equal(stat.st_mode & 07777, 0600);
	assert_false(file_is_there(place->other, ".partial"));
	assert_false(file_is_there(place->other, "-wal"));
	backend = store_open(place->other);
	assert_tasks(backend, 50);
	backend->ops->close(backend);
}

static void what_is_written_during_a_backup_is_in_it(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);
	uint32_t remaining = 0;

	commit_tasks(backend, 1, 5000);
	assert_int_equal(backend->ops->backup_begin(backend, place->other), 0);
	for (int64_t seq = 5001; seq <= 5020; seq++) {
		assert_int_equal(backend->ops->backup_step(backend, 2, &remaining), 0);
		assert_true(remaining > 0);
		assert_false(file_is_there(place->other, ""));
		task_commit(backend, seq);
		assert_int_equal(backend->ops->checkpoint(backend, true), 0);
	}
	finish_backup(backend, 3);
	backend->ops->close(backend);
	backend = store_open(place->other);
	assert_tasks(backend, 5020);
	backend->ops->close(backend);
}

static void what_is_rolled_back_during_a_backup_is_not_in_it(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);
	uint32_t remaining;

	commit_tasks(backend, 1, 5000);
	assert_int_equal(backend->ops->backup_begin(backend, place->other), 0);
	assert_int_equal(backend->ops->backup_step(backend, 10, &remaining), 0);
	assert_int_equal(backend->ops->begin(backend), 0);
	assert_int_equal(task_put(backend, 5001), 0);
	backend->ops->rollback(backend);
	finish_backup(backend, 10);
	backend->ops->close(backend);
	backend = store_open(place->other);
	assert_tasks(backend, 5000);
	backend->ops->close(backend);
}

static void a_backup_that_is_given_up_leaves_nothing(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);
	uint32_t remaining;

	commit_tasks(backend, 1, 5000);
	assert_int_equal(backend->ops->backup_begin(backend, place->other), 0);
	assert_int_equal(backend->ops->backup_step(backend, 1, &remaining), 0);
	assert_true(file_is_there(place->other, ".partial"));
	backend->ops->backup_end(backend);
	assert_false(file_is_there(place->other, ".partial"));
	assert_false(file_is_there(place->other, ""));
	take_backup(backend, place->other); /* and the next one succeeds */
	assert_int_equal(backend->ops->backup_begin(backend, place->other), -EEXIST);
	assert_non_null(strstr(backend->complaint, "other.db"));
	backend->ops->close(backend);
}

static void a_store_closed_during_a_backup_leaves_no_half(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);

	commit_tasks(backend, 1, 500);
	assert_int_equal(backend->ops->backup_begin(backend, place->other), 0);
	backend->ops->close(backend);
	assert_false(file_is_there(place->other, ".partial"));
}

static void a_backup_to_nowhere_is_refused(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);
	char path[PLACE_PATH_MAX];

	place_name(place, "nowhere/backup.db", path);
	assert_int_equal(backend->ops->backup_begin(backend, path), -ENOENT);
	assert_non_null(backend->complaint);
	task_commit(backend, 1);
	backend->ops->close(backend);
}

/* ---- restore ---- */

static void restore(const char *backup, const char *store)
{
	cleanup(free_at) char *complaint = NULL;

	if (sqlite_restore(backup, store, NULL, NULL, &complaint) != 0)
		fail_msg("%s", complaint ? complaint : "no complaint");
}

static void assert_restore_refused(const char *backup, const char *store, int fault, const char *words)
{
	cleanup(free_at) char *complaint = NULL;

	assert_int_equal(sqlite_restore(backup, store, NULL, NULL, &complaint), fault);
	assert_non_null(complaint);
	if (!strstr(complaint, words))
		fail_msg("\"%s\" does not say \"%s\"", complaint, words);
	assert_false(file_is_there(store, ".restoring"));
}

static void commit_meta(struct backend *backend, enum meta_key key, int64_t value)
{
	assert_int_equal(backend->ops->begin(backend), 0);
	assert_int_equal(backend->ops->put_meta(backend, key, value), 0);
	assert_int_equal(backend_commit(backend), 0);
}

static void overwrite(const char *path, off_t at, const char *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, text, len, at), len);
	close(fd);
}

static void die_with_a_log(const char *path)
{
	struct backend *backend = store_open(path);

	commit_tasks(backend, 61, 200);
	_exit(0);
}

/* A backup of tasks 1 to 50 at `other`, and a store that has gone on to 60 and was started twice more. */
static void make_both(struct place *place)
{
	struct backend *backend = store_open(place->store);

	commit_tasks(backend, 1, 50);
	commit_meta(backend, META_GENERATION, 4);
	commit_meta(backend, META_STARTS, 7);
	take_backup(backend, place->other);
	commit_tasks(backend, 51, 60);
	commit_meta(backend, META_STARTS, 9);
	backend->ops->close(backend);
}

/* What the numbers that a store gives out begin with. */
struct numbers {
	int64_t generation, starts, floor;
};

static struct numbers numbers_of(const char *path)
{
	struct backend *backend = store_open(path);
	struct numbers numbers = {
		.generation = meta_value(backend, META_GENERATION),
		.starts = meta_value(backend, META_STARTS),
		.floor = meta_value(backend, META_TASK_FLOOR),
	};

	assert_int_not_equal(meta_value(backend, META_RESTORED), RESTORED_NOT);
	backend->ops->close(backend);
	return numbers;
}

static void assert_numbers(const char *path, int64_t generation, int64_t starts, int64_t floor)
{
	struct numbers numbers = numbers_of(path);

	assert_int_equal(numbers.generation, generation);
	assert_int_equal(numbers.starts, starts);
	assert_int_equal(numbers.floor, floor);
}

static int64_t minutes_since_2026(void)
{
	return (time(NULL) - INT64_C(1767225600)) / 60;
}

/* Numbers that a store which nobody could read cannot have given out. */
static void assert_numbers_of_the_clock(const char *path, int64_t earliest)
{
	struct numbers numbers = numbers_of(path);
	int64_t latest = minutes_since_2026();

	assert_in_range(numbers.generation, earliest + 1, latest + 1);
	assert_in_range(numbers.starts, earliest, latest);
	assert_in_range(numbers.floor, (earliest + 1) * 1000000, (latest + 1) * 1000000);
	assert_true(numbers.generation < 18000000); /* a fence is generation * 10^12 + n */
	assert_true(numbers.starts < 1 << 24);      /* a token is starts << 40 | n */
}

static void a_restored_store_is_a_new_generation(void **state)
{
	struct place *place = *state;
	struct backend *backend;

	make_both(place);
	restore(place->other, place->store);
	backend = store_open(place->store);
	assert_tasks(backend, 50);
	backend->ops->close(backend);
	assert_numbers(place->store, 5, 9, 1000060);
	assert_false(file_is_there(place->store, ".restoring"));
}

static void one_backup_restored_twice_repeats_no_number(void **state)
{
	struct place *place = *state;
	struct backend *backend;

	make_both(place);
	restore(place->other, place->store);
	backend = store_open(place->store);
	commit_meta(backend, META_STARTS, 10); /* as its first start does */
	commit_tasks(backend, 1000061, 1000070);
	backend->ops->close(backend);
	restore(place->other, place->store);
	assert_numbers(place->store, 6, 10, 2000070);
	restore(place->other, place->store); /* also when it was never started */
	assert_numbers(place->store, 7, 10, 3000070);
}

static int64_t restored_how(const char *path)
{
	struct backend *backend = store_open(path);
	int64_t how = meta_value(backend, META_RESTORED);

	backend->ops->close(backend);
	return how;
}

static void what_was_disarmed_since_the_backup_is_remembered(void **state)
{
	static const int64_t switches[][2] = {
		{EXECUTION_ARMED, RESTORED}, {EXECUTION_DISARMED, RESTORED_OVER_DISARMED},
		{77, RESTORED_OVER_DISARMED}, /* whatever that means */
	};
	struct place *place = *state;

	make_both(place);
	restore(place->other, place->store);
	assert_int_equal(restored_how(place->store), RESTORED); /* it was never set */
	for (int i = 0; i < 3; i++) {
		struct backend *backend = store_open(place->store);
		commit_meta(backend, META_EXECUTION, switches[i][0]);
		commit_meta(backend, META_RESTORED, RESTORED_NOT);
		backend->ops->close(backend);
		for (int times = 0; times < 2; times++) { /* the second time it was never started */
			restore(place->other, place->store);
			assert_int_equal(restored_how(place->store), switches[i][1]);
		}
	}
}

static void commit_token_of(struct backend *backend, const char *id, uint32_t principal, int64_t revoked_ms)
{
	struct token token = {
		.id = span_of(id),
		.principal = principal,
		.kind = TOKEN_WORKER,
		.name = SPAN("ci"),
		.created_ms = 1,
		.created_by = SPAN("admin"),
		.revoked_ms = revoked_ms,
		.revoked_by = revoked_ms ? SPAN("admin") : SPAN(""),
	};

	assert_int_equal(backend->ops->begin(backend), 0);
	assert_int_equal(backend->ops->put_token(backend, &token), 0);
	assert_int_equal(backend_commit(backend), 0);
}

static void commit_token(struct backend *backend, const char *id, int64_t revoked_ms)
{
	commit_token_of(backend, id, PRINCIPAL_FIRST + 1, revoked_ms);
}

static int sum_revoked(void *context, const struct token *token)
{
	*(int64_t *)context += token->revoked_ms;
	return 0;
}

static void a_token_that_was_revoked_since_the_backup_stays_revoked(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);
	int64_t revoked_ms = 0;

	commit_token(backend, "lost", 0);
	commit_token(backend, "kept", 0);
	take_backup(backend, place->other);
	commit_token(backend, "lost", 77);
	backend->ops->close(backend);
	restore(place->other, place->store);
	backend = store_open(place->store);
	assert_int_equal(backend->ops->scan_tokens(backend, sum_revoked, &revoked_ms), 0);
	assert_int_equal(revoked_ms, 77);
	backend->ops->close(backend);
}

/* What a restore tells of tokens: "came ID" and so on, each before a semicolon. */
static void note_token(void *context, enum restored_token what, struct span id, struct span name)
{
	static const char *const words[] = {"unknown", "came", "went", "ended"};
	char *text = context;
	size_t len = strlen(text);

	(void)name;
	snprintf(text + len, TOLD_BYTES - len, "%s %.*s;", words[what], SPAN_ARGS(id));
}

static void assert_restore_tells(const char *backup, const char *store, const char *told)
{
	char text[TOLD_BYTES] = "";
	struct restore_teller teller = {.token = note_token, .context = text};

	assert_int_equal(sqlite_restore(backup, store, NULL, &teller, NULL), 0);
	assert_string_equal(text, told);
}

struct token_asked {
	const char *id;
	int64_t revoked_ms; /* -1: there is no such token */
};

static int ask_token(void *context, const struct token *token)
{
	struct token_asked *asked = context;

	if (span_equal(token->id, span_of(asked->id)))
		asked->revoked_ms = token->revoked_ms;
	return 0;
}

static int64_t revoked_ms_of(const char *path, const char *id)
{
	struct backend *backend = store_open(path);
	struct token_asked asked = {id, -1};

	assert_int_equal(backend->ops->scan_tokens(backend, ask_token, &asked), 0);
	backend->ops->close(backend);
	return asked.revoked_ms;
}

static void commit_small(struct backend *backend, enum small_kind kind, const char *key, const char *data)
{
	assert_int_equal(backend->ops->begin(backend), 0);
	assert_int_equal(backend->ops->put_small(backend, kind, span_of(key), span_of(data)), 0);
	assert_int_equal(backend_commit(backend), 0);
}

static void delete_token(struct backend *backend, const char *id)
{
	assert_int_equal(backend->ops->begin(backend), 0);
	assert_int_equal(backend->ops->delete_token(backend, span_of(id)), 0);
	assert_int_equal(backend_commit(backend), 0);
}

static void tokens_that_came_back_or_went_are_told(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);

	commit_meta(backend, META_STORE_LO, 99);
	commit_meta(backend, META_PRINCIPALS, 20);
	commit_token_of(backend, "both", 17, 0);
	commit_token_of(backend, "later", 30, 0); /* of a number that the old store does not know */
	take_backup(backend, place->other);
	delete_token(backend, "later");
	commit_token_of(backend, "since", 18, 0);
	commit_token_of(backend, "since-over", 19, 5);
	backend->ops->close(backend);
	assert_restore_tells(place->other, place->store, "came later;went since;");
	assert_int_equal(revoked_ms_of(place->store, "both"), 0);
	assert_int_equal(revoked_ms_of(place->store, "later"), 0);
	assert_int_equal(revoked_ms_of(place->store, "since"), -1);
}

/* It was revoked and, after a month, forgotten. */
static void a_token_that_the_old_store_had_forgotten_does_not_come_back(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);

	commit_meta(backend, META_STORE_LO, 99);
	commit_meta(backend, META_PRINCIPALS, 20);
	commit_token_of(backend, "over", 17, 0);
	take_backup(backend, place->other);
	delete_token(backend, "over");
	backend->ops->close(backend);
	assert_restore_tells(place->other, place->store, "ended over;");
	assert_true(revoked_ms_of(place->store, "over") > 0);
}

static void over_another_store_all_tokens_of_the_backup_are_valid(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);
	char elsewhere[PLACE_PATH_MAX];

	place_name(place, "elsewhere.db", elsewhere);
	commit_meta(backend, META_STORE_LO, 99);
	commit_token_of(backend, "mine", 17, 0);
	take_backup(backend, place->other);
	backend->ops->close(backend);
	backend = store_open(elsewhere);
	commit_meta(backend, META_STORE_LO, 100);
	commit_meta(backend, META_PRINCIPALS, 20);
	backend->ops->close(backend);
	assert_restore_tells(place->other, elsewhere, "came mine;");
	assert_int_equal(revoked_ms_of(elsewhere, "mine"), 0);
}

static void over_nothing_a_restore_tells_of_no_token(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);
	char elsewhere[PLACE_PATH_MAX];

	place_name(place, "elsewhere.db", elsewhere);
	commit_token(backend, "mine", 0);
	take_backup(backend, place->other);
	backend->ops->close(backend);
	assert_restore_tells(place->other, elsewhere, "");
}

static void tokens_that_cannot_be_read_are_told_as_unknown(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);
	sqlite3 *db;

	commit_token(backend, "mine", 0);
	take_backup(backend, place->other);
	backend->ops->close(backend);
	assert_int_equal(sqlite3_open(place->store, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "DROP TABLE token", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	assert_restore_tells(place->other, place->store, "unknown -;came mine;");
}

static int find_small(void *context, struct span key, struct span data)
{
	char *text = context;
	size_t len = strlen(text);

	snprintf(text + len, TOLD_BYTES - len, "%.*s %.*s;", SPAN_ARGS(key), SPAN_ARGS(data));
	return 0;
}

static int last_name(void *context, const struct name_row *row)
{
	snprintf(context, TOLD_BYTES, "%u %.*s %u", row->id, SPAN_ARGS(row->text), row->principal);
	return 0;
}

#define QUARANTINED "1 5000 3 0 5000 - - - - - - -"
#define FREE        "0 0 1 0 - - - - - - - -"

static void a_slot_that_was_quarantined_since_the_backup_stays_so(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);
	const struct span first = {0};
	char found[TOLD_BYTES] = "", name[TOLD_BYTES] = "";

	commit_small(backend, SMALL_SLOT, "a", FREE);
	commit_small(backend, SMALL_SLOT, "lifted", QUARANTINED);
	take_backup(backend, place->other);
	commit_small(backend, SMALL_SLOT, "a", QUARANTINED);
	commit_small(backend, SMALL_SLOT, "b", QUARANTINED);
	commit_small(backend, SMALL_SLOT, "lifted", FREE);
	assert_int_equal(backend->ops->begin(backend), 0);
	assert_int_equal(backend->ops->put_name(backend, &(struct name_row){1, 17, SPAN("b")}), 0);
	assert_int_equal(backend_commit(backend), 0);
	backend->ops->close(backend);
	restore(place->other, place->store);
	backend = store_open(place->store);
	assert_int_equal(backend->ops->page_small(backend, SMALL_SLOT, first, 9, find_small, found), 0);
	assert_string_equal(found, "a " QUARANTINED ";b " QUARANTINED ";lifted " QUARANTINED ";");
	assert_int_equal(backend->ops->scan_names(backend, last_name, name), 0);
	assert_string_equal(name, "2 b 17"); /* a came first */
	backend->ops->close(backend);
}

/* ---- the keys of derived tokens ---- */

static bool file_has(const char *path, const char *text)
{
	static char bytes[1 << 20];
	int fd = open(path, O_RDONLY);
	ssize_t len = read(fd, bytes, sizeof bytes);

	close(fd);
	assert_in_range(len, 1, sizeof bytes - 1);
	return memmem(bytes, (size_t)len, text, strlen(text)) != NULL;
}

static void a_backup_has_no_key_and_no_byte_of_one(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);

	commit_small(backend, SMALL_SIGNING_KEY, "1-aa", "1 5 secret-of-the-first-key");
	commit_small(backend, SMALL_SIGNING_KEY, "1-bb", "2 5 secret-of-the-second-key");
	assert_int_equal(backend->ops->begin(backend), 0);
	assert_int_equal(backend->ops->delete_small(backend, SMALL_SIGNING_KEY, SPAN("1-aa")), 0);
	assert_int_equal(backend_commit(backend), 0);
	commit_small(backend, SMALL_QUEUE, "q", "1");
	take_backup(backend, place->other);
	backend->ops->close(backend);
	assert_true(file_has(place->store, "secret-of-the-second-key"));
	assert_false(file_has(place->other, "secret-of-the-first"));
	assert_false(file_has(place->other, "secret-of-the-second"));
	backend = store_open(place->other);
	char found[TOLD_BYTES] = "";
	const struct span first = {0};
	assert_int_equal(
		backend->ops->page_small(backend, SMALL_SIGNING_KEY, first, 9, find_small, found), 0);
	assert_string_equal(found, "");
	assert_int_equal(backend->ops->page_small(backend, SMALL_QUEUE, first, 9, find_small, found), 0);
	assert_string_equal(found, "q 1;");
	backend->ops->close(backend);
}

/* Whoever puts a copy of the store's own file back gets no key either. */
static void a_restore_drops_the_keys(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->other);
	const struct span first = {0};
	char found[TOLD_BYTES] = "";

	commit_small(backend, SMALL_SIGNING_KEY, "1-aa", "1 5 x");
	commit_meta(backend, META_KEY_OF_ADMIN, 1);
	backend->ops->close(backend);
	restore(place->other, place->store);
	backend = store_open(place->store);
	assert_int_equal(
		backend->ops->page_small(backend, SMALL_SIGNING_KEY, first, 9, find_small, found), 0);
	assert_string_equal(found, "");
	assert_int_equal(meta_value(backend, META_KEY_OF_ADMIN), 0);
	backend->ops->close(backend);
}

static void an_old_backup_rises_above_a_newer_generation(void **state)
{
	struct place *place = *state;
	struct backend *backend;

	make_both(place);
	backend = store_open(place->store);
	commit_meta(backend, META_GENERATION, 40);
	commit_meta(backend, META_TASK_FLOOR, 5000000); /* its tasks are purged */
	backend->ops->close(backend);
	restore(place->other, place->store);
	assert_numbers(place->store, 41, 9, 6000000);
}

static void a_new_backup_rises_above_an_older_store(void **state)
{
	struct place *place = *state;
	struct backend *backend;

	make_both(place);
	backend = store_open(place->store);
	commit_meta(backend, META_GENERATION, 2);
	commit_meta(backend, META_STARTS, 3);
	for (int64_t seq = 1; seq <= 60; seq++) {
		assert_int_equal(backend->ops->begin(backend), 0);
		assert_int_equal(backend->ops->delete_task(backend, seq), 0);
		assert_int_equal(backend_commit(backend), 0);
	}
	backend->ops->close(backend);
	restore(place->other, place->store);
	assert_numbers(place->store, 5, 7, 1000050);
}

static void what_only_the_log_of_the_old_store_knows_counts(void **state)
{
	struct place *place = *state;

	make_both(place);
	in_another_process(die_with_a_log, place->store);
	restore(place->other, place->store);
	assert_numbers(place->store, 5, 9, 1000200);
}

static void over_nothing_the_clock_tells_what_was_never_given_out(void **state)
{
	struct place *place = *state;
	char elsewhere[PLACE_PATH_MAX];
	int64_t earliest = minutes_since_2026();

	make_both(place);
	place_name(place, "elsewhere.db", elsewhere);
	restore(place->other, elsewhere);
	assert_numbers_of_the_clock(elsewhere, earliest);
}

static void over_an_empty_file_too(void **state)
{
	struct place *place = *state;
	char elsewhere[PLACE_PATH_MAX];
	int64_t earliest = minutes_since_2026();

	make_both(place);
	place_name(place, "elsewhere.db", elsewhere);
	overwrite(elsewhere, 0, "", 0);
	restore(place->other, elsewhere);
	assert_numbers_of_the_clock(elsewhere, earliest);
}

static void each_restore_goes_further_ahead(void **state)
{
	struct place *place = *state;
	struct backend *backend;
	char second[PLACE_PATH_MAX];

	make_both(place);
	place_name(place, "second.db", second);
	restore(place->other, place->store);
	backend = store_open(place->store);
	take_backup(backend, second);
	backend->ops->close(backend);
	restore(second, place->store);
	backend = store_open(place->store);
	assert_int_equal(meta_value(backend, META_GENERATION), 6);
	assert_int_equal(meta_value(backend, META_TASK_FLOOR), 2000060);
	backend->ops->close(backend);
}

static void a_store_without_a_generation_was_the_first(void **state)
{
	struct place *place = *state;
	struct backend *backend = store_open(place->store);

	task_commit(backend, 1);
	take_backup(backend, place->other);
	backend->ops->close(backend);
	restore(place->other, place->store);
	backend = store_open(place->store);
	assert_int_equal(meta_value(backend, META_GENERATION), 2);
	backend->ops->close(backend);
}

static void a_backup_is_not_changed_by_restoring_it(void **state)
{
	struct place *place = *state;
	struct backend *backend;
	char elsewhere[PLACE_PATH_MAX];

	make_both(place);
	assert_int_equal(chmod(place->other, 0400), 0);
	place_name(place, "elsewhere.db", elsewhere);
	restore(place->other, elsewhere); /* where there was none */
	backend = store_open(place->other);
	assert_int_equal(meta_value(backend, META_GENERATION), 4);
	backend->ops->close(backend);
	backend = store_open(elsewhere);
	assert_tasks(backend, 50);
	backend->ops->close(backend);
}

static void a_log_of_the_old_store_is_not_taken_for_the_new_one(void **state)
{
	struct place *place = *state;
	struct backend *backend;

	make_both(place);
	in_another_process(die_with_a_log, place->store);
	assert_true(file_is_there(place->store, "-wal"));
	restore(place->other, place->store);
	assert_false(file_is_there(place->store, "-wal"));
	backend = store_open(place->store);
	assert_tasks(backend, 50);
	backend->ops->close(backend);
}

static void a_store_that_is_open_is_not_replaced(void **state)
{
	struct place *place = *state;
	struct backend *backend;

	make_both(place);
	backend = store_open(place->store);
	assert_restore_refused(place->other, place->store, -EBUSY, "in use");
	assert_busy_elsewhere(place->store);
	task_commit(backend, 61);
	backend->ops->close(backend);
	backend = store_open(place->store);
	assert_tasks(backend, 61);
	backend->ops->close(backend);
}

static void a_store_that_is_open_is_no_backup(void **state)
{
	struct place *place = *state;
	struct backend *backend;
	char elsewhere[PLACE_PATH_MAX];

	make_both(place);
	place_name(place, "elsewhere.db", elsewhere);
	backend = store_open(place->store);
	assert_restore_refused(place->store, elsewhere, -EBUSY, "in use");
	assert_false(file_is_there(elsewhere, ""));
	backend->ops->close(backend);
}

static void what_is_no_backup_changes_nothing(void **state)
{
	struct place *place = *state;
	struct backend *backend;
	char text[PLACE_PATH_MAX], empty[PLACE_PATH_MAX];

	make_both(place);
	place_name(place, "notes.txt", text);
	place_name(place, "empty.db", empty);
	overwrite(text, 0, "notes", 5);
	overwrite(empty, 0, "", 0);
	assert_restore_refused(text, place->store, -EPROTO, "not a stint store");
	assert_restore_refused(empty, place->store, -EPROTO, "not a stint store");
	assert_restore_refused("/nowhere/backup.db", place->store, -ENOENT, "cannot open");
	backend = store_open(place->store);
	assert_tasks(backend, 60);
	backend->ops->close(backend);
}

static void a_damaged_backup_changes_nothing(void **state)
{
	static char garbage[4096];
	struct place *place = *state;
	struct backend *backend;

	make_both(place);
	memset(garbage, 0x5a, sizeof(garbage));
	overwrite(place->other, 4096 * 2, garbage, sizeof(garbage));
	assert_restore_refused(place->other, place->store, -EIO, "damaged");
	backend = store_open(place->store);
	assert_tasks(backend, 60);
	backend->ops->close(backend);
}

/* The header, the schema, or everything but those: each is read by somebody else. */
static void a_damaged_store_can_be_replaced(void **state)
{
	static const off_t begins[] = {0, 100, 4096};
	static char garbage[1 << 18];
	struct place *place = *state;
	struct backend *backend;

	make_both(place);
	memset(garbage, 0x5a, sizeof(garbage));
	for (int i = 0; i < 3; i++) {
		int64_t earliest = minutes_since_2026();

		overwrite(place->store, begins[i], garbage, i == 0 ? 4096 : i == 1 ? 3996 : sizeof(garbage));
		restore(place->other, place->store);
		assert_numbers_of_the_clock(place->store, earliest);
		assert_int_equal(restored_how(place->store), RESTORED_OVER_DISARMED); /* nobody knows */
		backend = store_open(place->store);
		assert_tasks(backend, 50);
		backend->ops->close(backend);
	}
}

static void numbers_that_no_store_can_have_are_not_believed(void **state)
{
	struct place *place = *state;
	int64_t earliest = minutes_since_2026();
	struct backend *backend;

	make_both(place);
	backend = store_open(place->store);
	commit_meta(backend, META_GENERATION, INT64_MAX);
	backend->ops->close(backend);
	restore(place->other, place->store);
	assert_numbers_of_the_clock(place->store, earliest);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest cases[] = {
		CASE(a_backup_is_a_store),
		CASE(what_is_written_during_a_backup_is_in_it),
		CASE(what_is_rolled_back_during_a_backup_is_not_in_it),
		CASE(a_backup_that_is_given_up_leaves_nothing),
		CASE(a_store_closed_during_a_backup_leaves_no_half),
		CASE(a_backup_to_nowhere_is_refused),
		CASE(tokens_that_came_back_or_went_are_told),
		CASE(a_token_that_the_old_store_had_forgotten_does_not_come_back),
		CASE(over_another_store_all_tokens_of_the_backup_are_valid),
		CASE(over_nothing_a_restore_tells_of_no_token),
		CASE(tokens_that_cannot_be_read_are_told_as_unknown),
		CASE(a_slot_that_was_quarantined_since_the_backup_stays_so),
		CASE(a_backup_has_no_key_and_no_byte_of_one),
		CASE(a_restore_drops_the_keys),
		CASE(a_restored_store_is_a_new_generation),
		CASE(one_backup_restored_twice_repeats_no_number),
		CASE(an_old_backup_rises_above_a_newer_generation),
		CASE(a_new_backup_rises_above_an_older_store),
		CASE(what_only_the_log_of_the_old_store_knows_counts),
		CASE(over_nothing_the_clock_tells_what_was_never_given_out),
		CASE(over_an_empty_file_too),
		CASE(each_restore_goes_further_ahead),
		CASE(a_store_without_a_generation_was_the_first),
		CASE(a_backup_is_not_changed_by_restoring_it),
		CASE(a_log_of_the_old_store_is_not_taken_for_the_new_one),
		CASE(a_store_that_is_open_is_not_replaced),
		CASE(a_store_that_is_open_is_no_backup),
		CASE(what_was_disarmed_since_the_backup_is_remembered),
		CASE(a_token_that_was_revoked_since_the_backup_stays_revoked),
		CASE(what_is_no_backup_changes_nothing),
		CASE(a_damaged_backup_changes_nothing),
		CASE(a_damaged_store_can_be_replaced),
		CASE(numbers_that_no_store_can_have_are_not_believed),
	};
	int status;

	if (is_second(argc, argv, &status))
		return status;
	return cmocka_run_group_tests(cases, NULL, NULL);
}
