/*
 * What the store tests share: a store on each backend under virtual time, and commands in one line.
 */
#pragma once

// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proof/check.h"
#include "backend/memory.h"
#include "backend/short_ops.h"
#include "postgres_place.h"
#include "store/sqlite.h"
#include "store/store.h"

#define START_WALL_MS  INT64_C(1700000000000)
#define START_LEASE_MS INT64_C(5000000)

struct world {
	bool on_disk; /* what is not in memory is there after a crash: SQLite or PostgreSQL */
	bool on_postgres;
	char dir[256];
	char path[512]; /* or its URL */
	struct backend *backend;
	struct store *store;
	struct store_options options;
	struct moment now;
	struct result result; /* of the last command */
};

static inline struct backend *world_backend(struct world *world)
{
	if (!world->on_disk)
		return world->backend ? memory_reopen(world->backend) : memory_open();
	if (world->on_postgres)
		return postgres_open_at(world->path);
	struct sqlite_options options = {.path = world->path, .no_ballast = true};
	struct backend *backend = NULL;
	char *complaint = NULL;
	int r = sqlite_open(&options, &backend, &complaint);
	if (r < 0)
		fail_msg("sqlite_open: %s", complaint ? complaint : strerror(-r));
	return backend;
}

static inline void world_open(struct world *world)
{
	world->backend = world_backend(world);
	world->options.now = world->now;
	assert_int_equal(store_open(world->backend, &world->options, &world->store), 0);
}

/* Everything in memory is lost; what was committed is there again. */
static inline void world_crash(struct world *world)
{
	struct backend *backend = store_abandon(world->store);

	world->store = NULL; /* for world_free(), if it cannot be opened again */
	if (world->on_disk)
		backend->ops->close(backend);
	world_open(world);
}

static inline void world_make_directory(struct world *world)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(world->dir, sizeof world->dir, "%s/stint-test-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(world->dir));
	snprintf(world->path, sizeof world->path, "%s/stint.db", world->dir);
}

static inline struct world *world_new_on(bool on_disk, bool on_postgres)
{
	struct world *world = calloc(1, sizeof *world);

	assert_non_null(world);
	world->on_disk = on_disk;
	world->on_postgres = on_postgres;
	world->now = (struct moment){START_WALL_MS, START_LEASE_MS};
	world->options = store_options_default();
	world->options.boot_lo = 1;
	world->options.seed = 7;
	if (on_postgres)
		postgres_place(world->path, sizeof world->path);
	else if (on_disk)
		world_make_directory(world);
	world_open(world);
	return world;
}

static inline struct world *world_new(bool on_disk)
{
	return world_new_on(on_disk, false);
}

static inline void world_remove_directory(struct world *world)
{
	static const char *const endings[] = {"", "-wal", "-shm", ".ballast"};
	char path[sizeof world->path + 32];

	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
		snprintf(path, sizeof path, "%s%s", world->path, endings[i]);
		unlink(path);
	}
	snprintf(path, sizeof path, "%s/store.mark", world->dir);
	unlink(path);
	rmdir(world->dir);
}

static inline void world_free(struct world *world)
{
	store_close(world->store);
	if (world->on_postgres)
		postgres_remove(world->path);
	else if (world->on_disk)
		world_remove_directory(world);
	free(world);
}

static inline void world_pass(struct world *world, int64_t ms)
{
	world->now.wall_ms += ms;
	world->now.lease_ms += ms;
}

/* With STINT_SHORT_OPS every turn is tried again and again before it is made: the first operation of the backend fails, then the
 * second, and so on, until none is left that could (behind the 64th only some of them). A turn that failed has changed nothing. */
static inline void world_turn(struct world *world, const struct command *command)
{
	static int is_short = -1;
	bool failed = true;

	if (is_short < 0)
		is_short = getenv("STINT_SHORT_OPS") != NULL;
	for (uint32_t number = 1; is_short && failed; number += number < 64 ? 1 : number) {
		int64_t last = store_last_event(world->store);
		short_ops_begin(world->backend, number);
		int r = store_turn(world->store, world->now, command, command ? 1 : 0, &world->result);
		failed = short_ops_end(world->backend);
		assert_int_equal(r, 0);
		if (failed && store_last_event(world->store) != last)
			fail_msg("operation %u failed, and the turn was made", number);
		if (failed && command && world->result.refusal != REFUSED_UNAVAILABLE)
			fail_msg("operation %u failed, and the turn says %d", number, world->result.refusal);
	}
	if (!is_short)
		assert_int_equal(
			store_turn(world->store, world->now, command, command ? 1 : 0, &world->result), 0);
}

static inline struct result *world_run(struct world *world, const struct command *command)
{
	char complaint[256] = "";

	world_turn(world, command);
	if (store_check_memory(world->store, complaint, sizeof complaint) < 0)
		fail_msg("memory: %s", complaint);
	if (store_check_fold(world->store, complaint, sizeof complaint) < 0)
		fail_msg("fold: %s", complaint);
	return &world->result;
}

/* ---- commands in one line ------------------------------------------------------------------------ */

static inline struct command say_create(const char *id, const char *queue)
{
	return (struct command){
		.kind = COMMAND_CREATE,
		.actor = SPAN("tester"),
		.create = {.id = span_of(id), .queue = span_of(queue), .body = SPAN("{}")},
	};
}

static inline struct command say_claim(const char *worker)
{
	return (struct command){
		.kind = COMMAND_CLAIM_NEXT,
		.actor = span_of(worker),
		.worker = span_of(worker),
		.claim = {.max = 1, .any_executor = true, .takes_ready = true},
	};
}

static inline struct command say_about(enum command_kind kind, const char *task)
{
	return (struct command){.kind = kind, .actor = SPAN("tester"), .task = span_of(task)};
}

static inline struct command say_report(
	enum command_kind kind, const char *task, const char *worker, uint64_t fence)
{
	struct command command = say_about(kind, task);

	command.worker = span_of(worker);
	command.fence = fence;
	command.failure = (struct failure){.code = CODE_EXECUTION_ERROR, .klass = CLASS_TASK};
	if (kind == COMMAND_PROGRESS)
		command.lease_ms = 0;
	if (kind == COMMAND_RELEASE)
		command.delay_ms = 0;
	if (kind == COMMAND_ASK)
		command.ask = (struct command_ask){0};
	return command;
}

static inline struct command say_beat(const char *worker, uint64_t token)
{
	return (struct command){
		.kind = COMMAND_BEAT,
		.actor = span_of(worker),
		.worker = span_of(worker),
		.beat = {.has_token = token != 0, .token = token},
	};
}

static inline enum refusal world_create(struct world *world, const char *id, const char *queue)
{
	struct command command = say_create(id, queue);

	return world_run(world, &command)->refusal;
}

/* The fence of the claim, 0 if there was nothing. */
static inline uint64_t world_claim(struct world *world, const char *worker)
{
	struct command command = say_claim(worker);
	struct result *result = world_run(world, &command);

	assert_int_equal(result->refusal, REFUSED_NOTHING);
	return result->claim_count == 0 ? 0 : result->claims[0].task.fence;
}

static inline enum refusal world_report(
	struct world *world, enum command_kind kind, const char *task, const char *worker, uint64_t fence)
{
	struct command command = say_report(kind, task, worker, fence);

	return world_run(world, &command)->refusal;
}

/* As it is read; if there is none its state is TASK_NOWHERE. */
static inline struct task world_task(struct world *world, const char *id)
{
	struct task_document document;
	struct arena arena;
	int64_t seq;

	arena_init(&arena, 1 << 20);
	int r = store_find_task(world->store, span_of(id), &seq);
	if (r == 0)
		r = store_read_task(world->store, seq, world->now, &arena, &document);
	arena_done(&arena);
	return r == 0 ? document.task : (struct task){.state = TASK_NOWHERE};
}

static inline enum task_state world_state(struct world *world, const char *id)
{
	return world_task(world, id).state;
}

/* Every test runs on both kinds of store: in memory, and on disk. There that is SQLite, and PostgreSQL where a server is named: then
 * it is all that is run, because the others are run without it. */
static inline void __attribute__((constructor)) choose_stores(void)
{
	if (postgres_server())
		cmocka_set_test_filter("*(postgres)");
	else
		cmocka_set_skip_filter("*(postgres)");
}

static inline int on_memory(void **state)
{
	*state = world_new(false);
	return 0;
}

static inline int on_sqlite(void **state)
{
	*state = world_new(true);
	return 0;
}

static inline int on_postgres(void **state)
{
	*state = world_new_on(true, true);
	return 0;
}

static inline int world_over(void **state)
{
	world_free(*state);
	return 0;
}

#define ON_BOTH(test)                                                    \
	{#test " (memory)", test, on_memory, world_over, NULL},          \
		{#test " (sqlite)", test, on_sqlite, world_over, NULL},  \
	{                                                                \
		#test " (postgres)", test, on_postgres, world_over, NULL \
	}
