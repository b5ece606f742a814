/*
 * Storage alone: what the rules and the store cost without a network.
 *
 *   stint-bench-storage [--seconds S] [--tasks N] [--dir DIR] [lives|depth|open|all]
 *
 * lives: task lives per second (create, claim, complete: three operations in three commits) with 1, 16 and 64
 *        operations per commit, synced before every acknowledgement.
 * depth: bytes of memory per waiting task, and claims per second with N tasks waiting.
 * open:  time to open a store with N waiting tasks after the process was killed.
 */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "store/sqlite.h"
#include "store/store.h"

enum {
	BATCH_MAX = 1000,
	PAYLOAD_BYTES = 256,
};

static char payload[PAYLOAD_BYTES + 1];
static char path[512];

static double now_s(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static struct moment now_moment(void)
{
	struct timespec wall, boot;

	clock_gettime(CLOCK_REALTIME, &wall);
	clock_gettime(CLOCK_BOOTTIME, &boot);
	return (struct moment){
		wall.tv_sec * 1000 + wall.tv_nsec / 1000000, boot.tv_sec * 1000 + boot.tv_nsec / 1000000};
}

static void die(const char *what, int fault)
{
	fprintf(stderr, "stint-bench-storage: %s: %s\n", what, strerror(-fault));
	exit(1);
}

static void remove_store(void)
{
	static const char *const endings[] = {"", "-wal", "-shm", ".ballast"};
	char name[600];

	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
		snprintf(name, sizeof name, "%s%s", path, endings[i]);
		unlink(name);
	}
}

static struct store *open_store(void)
{
	struct sqlite_options options = {.path = path};
	struct store_options store_options = store_options_default();
	struct backend *backend;
	struct store *store;
	char *complaint = NULL;

	int r = sqlite_open(&options, &backend, &complaint);
	if (r < 0)
		die(complaint ? complaint : path, r);
	store_options.now = now_moment();
	r = store_open(backend, &store_options, &store);
	if (r < 0)
		die("store_open", r);
	return store;
}

static void turn(struct store *store, const struct command *commands, uint32_t count, struct result *results)
{
	int r = store_turn(store, now_moment(), commands, count, results);
	if (r < 0)
		die("store_turn", r);
	for (uint32_t i = 0; i < count; i++) {
		if (results[i].refusal != REFUSED_NOTHING)
			die(refusal_code(results[i].refusal), -EIO);
	}
	r = store_checkpoint(store);
	if (r < 0)
		die("store_checkpoint", r);
}

static struct command create_command(void)
{
	return (struct command){
		.kind = COMMAND_CREATE,
		.actor = SPAN("bench"),
		.create = {.queue = SPAN("q"), .body = {payload, PAYLOAD_BYTES}},
	};
}

static struct command claim_command(void)
{
	static const struct span queue = {"q", 1};

	return (struct command){
		.kind = COMMAND_CLAIM_NEXT,
		.actor = SPAN("bench"),
		.worker = SPAN("worker-1"),
		.claim = {.queues = {&queue, 1}, .any_executor = true, .takes_ready = true, .max = 1},
	};
}

/* Three commits: as many creates, claims and completions as the batch has room for. */
static void one_round(struct store *store, uint32_t batch, struct command *commands, struct result *results)
{
	char ids[BATCH_MAX][32];
	uint64_t fences[BATCH_MAX];

	for (uint32_t i = 0; i < batch; i++)
		commands[i] = create_command();
	turn(store, commands, batch, results);
	for (uint32_t i = 0; i < batch; i++)
		commands[i] = claim_command();
	turn(store, commands, batch, results);
	for (uint32_t i = 0; i < batch; i++) {
		snprintf(ids[i], sizeof ids[i], "%.*s", SPAN_ARGS(results[i].claims[0].id));
		fences[i] = results[i].claims[0].task.fence;
	}
	for (uint32_t i = 0; i < batch; i++)
		commands[i] = (struct command){
			.kind = COMMAND_COMPLETE,
			.actor = SPAN("bench"),
			.worker = SPAN("worker-1"),
			.task = span_of(ids[i]),
			.fence = fences[i],
		};
	turn(store, commands, batch, results);
}

static double lives_per_second(
	uint32_t batch, double seconds, struct command *commands, struct result *results)
{
	remove_store();
	struct store *store = open_store();
	uint64_t lives = 0;
	double began = now_s();

	while (now_s() - began < seconds) {
		one_round(store, batch, commands, results);
		lives += batch;
	}
	double rate = (double)lives / (now_s() - began);
	store_close(store);
	remove_store();
	return rate;
}

static void bench_lives(double seconds, struct command *commands, struct result *results)
{
	static const uint32_t batches[] = {1, 16, 64};

	for (size_t i = 0; i < sizeof batches / sizeof *batches; i++)
		printf("lives, %2u operations per commit: %.0f/s\n", batches[i],
			lives_per_second(batches[i], seconds, commands, results));
}

static void fill(struct store *store, uint32_t tasks, struct command *commands, struct result *results)
{
	for (uint32_t made = 0; made < tasks; made += BATCH_MAX) {
		uint32_t batch = tasks - made < BATCH_MAX ? tasks - made : BATCH_MAX;
		for (uint32_t i = 0; i < batch; i++)
			commands[i] = create_command();
		turn(store, commands, batch, results);
	}
}

static size_t heap_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static void bench_depth(uint32_t tasks, double seconds, struct command *commands, struct result *results)
{
	remove_store();
	struct store *store = open_store();
	fill(store, 1000, commands, results);
	size_t before = heap_bytes();
	double began = now_s();
	fill(store, tasks, commands, results);
	printf("creates, %d per commit: %.0f/s\n", BATCH_MAX, tasks / (now_s() - began));
	printf("memory: %.1f bytes per waiting task (%u tasks)\n", (double)(heap_bytes() - before) / tasks,
		tasks);
	uint64_t lives = 0;
	began = now_s();
	while (now_s() - began < seconds && lives + 64 < tasks) {
		one_round(store, 64, commands, results);
		lives += 64;
	}
	printf("lives with %u waiting, 64 per commit: %.0f/s\n", tasks, (double)lives / (now_s() - began));
	store_close(store);
}

/* The store is left by a process that ends without a word. */
static void bench_open(uint32_t tasks, struct command *commands, struct result *results)
{
	if (access(path, F_OK) != 0) {
		struct store *store = open_store();
		fill(store, tasks, commands, results);
		store_close(store);
	}
	double began = now_s();
	struct store *store = open_store();
	double opened = now_s();
	commands[0] = claim_command();
	turn(store, commands, 1, results);
	printf("open with %u waiting: %.3f s, first claim after %.3f s\n", tasks, opened - began,
		now_s() - began);
	store_close(store);
}

int main(int argc, char **argv)
{
	const char *what = "all", *dir = "/tmp";
	double seconds = 2;
	uint32_t tasks = 1000000;
	struct command *commands = calloc(BATCH_MAX, sizeof *commands);
	struct result *results = calloc(BATCH_MAX, sizeof *results);

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
			seconds = atof(argv[++i]);
		else if (strcmp(argv[i], "--tasks") == 0 && i + 1 < argc)
			tasks = (uint32_t)atoi(argv[++i]);
		else if (strcmp(argv[i], "--dir") == 0 && i + 1 < argc)
			dir = argv[++i];
		else
			what = argv[i];
	}
	if (!commands || !results)
		die("memory", -ENOMEM);
	memset(payload, 'x', PAYLOAD_BYTES);
	snprintf(path, sizeof path, "%s/stint-bench-%d.db", dir, (int)getpid());
	bool all = strcmp(what, "all") == 0;
	if (all || strcmp(what, "lives") == 0)
		bench_lives(seconds, commands, results);
	if (all || strcmp(what, "depth") == 0)
		bench_depth(tasks, seconds, commands, results);
	if (all || strcmp(what, "open") == 0)
		bench_open(tasks, commands, results);
	remove_store();
	free(commands);
	free(results);
	return 0;
}
