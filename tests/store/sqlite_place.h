/*
 * A directory of its own for each test of a store on disk, and the few rows that such tests write.
 * Included after cmocka.h.
 */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/take.h"
#include "store/sqlite.h"

enum {
	PLACE_PATH_MAX = 256,
};

struct place {
	char directory[PLACE_PATH_MAX / 2];
	char store[PLACE_PATH_MAX];
	char other[PLACE_PATH_MAX]; /* for a backup, a link, … */
};

static inline void place_name(const struct place *place, const char *name, char path[PLACE_PATH_MAX])
{
	int len = snprintf(path, PLACE_PATH_MAX, "%s/%s", place->directory, name);

	assert_true(len > 0 && len < PLACE_PATH_MAX);
}

static inline void place_make(struct place *place)
{
	const char *base = getenv("TMPDIR");
	int len = snprintf(
		place->directory, sizeof(place->directory), "%s/stint-test-XXXXXX", base ? base : "/tmp");

	assert_true(len > 0 && (size_t)len < sizeof(place->directory));
	assert_non_null(mkdtemp(place->directory));
	place_name(place, "stint.db", place->store);
	place_name(place, "other.db", place->other);
}

static inline void place_remove(struct place *place)
{
	DIR *directory = opendir(place->directory);
	char path[PLACE_PATH_MAX + NAME_MAX];
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		snprintf(path, sizeof(path), "%s/%s", place->directory, entry->d_name);
		unlink(path); /* fails for "." and ".." */
	}
	if (directory)
		closedir(directory);
	rmdir(place->directory);
}

static inline int place_setup(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	place_make(place);
	*state = place;
	return 0;
}

static inline int place_teardown(void **state)
{
	place_remove(*state);
	free(*state);
	return 0;
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, place_setup, place_teardown)

static inline bool file_is_there(const char *path, const char *suffix)
{
	char name[PLACE_PATH_MAX + 16];
	struct stat stat;

	snprintf(name, sizeof(name), "%s%s", path, suffix);
	return lstat(name, &stat) == 0;
}

static inline struct backend *store_open(const char *path)
{
	struct sqlite_options options = {.path = path, .no_ballast = true};
	cleanup(free_at) char *complaint = NULL;
	struct backend *backend = NULL;

	if (sqlite_open(&options, &backend, &complaint) != 0)
		fail_msg("%s", complaint ? complaint : "no complaint");
	return backend;
}

/* It must fail with that fault and say so in a sentence that has these words. */
static inline void assert_refused(const char *path, int fault, const char *words)
{
	struct sqlite_options options = {.path = path, .no_ballast = true};
	cleanup(free_at) char *complaint = NULL;
	struct backend *backend = NULL;

	assert_int_equal(sqlite_open(&options, &backend, &complaint), fault);
	assert_null(backend);
	assert_non_null(complaint);
	if (!strstr(complaint, words))
		fail_msg("\"%s\" does not say \"%s\"", complaint, words);
}

static inline void assert_ends_well(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Run it in another process. Not while this one has the store open: SQLite remembers that across a fork. */
static inline void in_another_process(void (*run)(const char *path), const char *path)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		run(path);
		_exit(0);
	}
	assert_ends_well(child);
}

/* The same program once more, which is to find the store in use; see is_second(). */
static inline void assert_busy_elsewhere(const char *path)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		execl("/proc/self/exe", "second", path, NULL);
		_exit(127);
	}
	assert_ends_well(child);
}

/* True if this is the process that assert_busy_elsewhere() started; it ends with *ret_status. */
static inline bool is_second(int argc, char **argv, int *ret_status)
{
	struct sqlite_options options = {.no_ballast = true};
	struct backend *backend = NULL;
	char *complaint = NULL;
	bool busy;

	if (argc != 2 || strcmp(argv[0], "second") != 0)
		return false;
	options.path = argv[1];
	busy = sqlite_open(&options, &backend, &complaint) == -EBUSY;
	*ret_status = busy && complaint && strstr(complaint, "in use by another stintd") ? 0 : 1;
	free(complaint);
	return true;
}

/* A task with a body, in the transaction that is open. */
static inline int task_put(struct backend *backend, int64_t seq)
{
	struct task_row row = {
		.task = {.seq = seq, .created_ms = 1000, .queue = 1, .state = TASK_READY, .version = seq},
		.task.updated_ms = 1000,
	};
	int fault = backend->ops->put_task(backend, &row, true);

	return fault ? fault : backend->ops->put_body(backend, seq, SPAN("body"));
}

static inline void task_commit(struct backend *backend, int64_t seq)
{
	assert_int_equal(backend->ops->begin(backend), 0);
	assert_int_equal(task_put(backend, seq), 0);
	assert_int_equal(backend_commit(backend), 0);
}

static inline bool task_is_there(struct backend *backend, int64_t seq)
{
	cleanup(arena_done) struct arena arena;
	struct task_row row;
	int fault;

	arena_init(&arena, 1 << 16);
	fault = backend->ops->get_task(backend, seq, &arena, &row);
	assert_true(fault == 0 || fault == -ENOENT);
	return fault == 0;
}

static inline int64_t meta_value(struct backend *backend, enum meta_key key)
{
	int64_t value;
	int fault = backend->ops->get_meta(backend, key, &value);

	assert_true(fault == 0 || fault == -ENOENT);
	return fault ? 0 : value;
}
