/*
 * What it costs to keep a worker alive, by how many there are: for callgrind, which counts what measure() does.
 *
 *   stint-bench-liveness --workers N [--count N] beat|register|claim|crash|figures|expire
 *
 * beat: a heartbeat without deltas of a worker that holds a task. register: a newcomer in a slot of its own. claim: by a
 * worker that names its slot and finds nothing. crash: of a slot. figures: what /metrics asks about workers. expire: a
 * worker's lease ends, and its task is set free. One operation per turn, into SQLite; N more workers live beside.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/sqlite.h"
#include "store/store.h"

enum {
	SPACING_MS = 500, /* of leases that end one by one */
	LEASE_MS = 5000,
};

static struct store *store;
static struct moment now = {.wall_ms = 1700000000000, .lease_ms = 1000000000};
static uint64_t tokens[200000];
static long count = 100;

static void die(const char *what)
{
	fprintf(stderr, "stint-bench-liveness: %s\n", what);
	exit(1);
}

static struct result turn(const struct command *command)
{
	struct result result = {0};

	if (store_turn(store, now, command, command ? 1 : 0, &result) < 0)
		die("a turn failed");
	if (result.refusal != REFUSED_NOTHING)
		die(refusal_code(result.refusal));
	return result;
}

static struct span text_of(char buffer[32], const char *kind, long number)
{
	snprintf(buffer, 32, "%s-%ld", kind, number);
	return span_of(buffer);
}

static void beat(long number, int64_t lease_ms, struct name_list bound)
{
	char id[32], slot[32];
	struct command command = {
		.kind = COMMAND_BEAT,
		.actor = SPAN("bench"),
		.worker = text_of(id, "worker", number),
		.beat = {.has_token = tokens[number] != 0,
			.token = tokens[number],
			.lease_ms = lease_ms,
			.describes = tokens[number] == 0,
			.any_executor = true,
			.slot = text_of(slot, "slot", number),
			.bound = bound},
	};

	tokens[number] = turn(&command).worker.token;
}

/* A worker with a task of its own. */
static void make_worker(long number, int64_t lease_ms)
{
	char id[32], task[32];
	struct span name = text_of(task, "task", number);
	struct command create = {.kind = COMMAND_CREATE,
		.actor = SPAN("bench"),
		.create = {.id = name, .queue = SPAN("q"), .body = SPAN("{}")}};
	struct command claim = {.kind = COMMAND_CLAIM_NEXT,
		.actor = SPAN("bench"),
		.worker = text_of(id, "worker", number),
		.claim = {.max = 1, .any_executor = true, .takes_ready = true}};

	beat(number, lease_ms, (struct name_list){0});
	turn(&create);
	if (turn(&claim).claim_count != 1)
		die("there was nothing to claim");
	beat(number, lease_ms, (struct name_list){&name, 1});
}

static void claim_nothing(long number)
{
	char id[32], slot[32];
	struct command command = {.kind = COMMAND_CLAIM_NEXT,
		.actor = SPAN("bench"),
		.worker = text_of(id, "worker", number),
		.claim = {.max = 1,
			.any_executor = true,
			.takes_ready = true,
			.slot = text_of(slot, "slot", number + 1)}};

	turn(&command);
}

static void crash_slot(long number)
{
	char slot[32];
	struct command command = {
		.kind = COMMAND_SLOT_CRASH, .actor = SPAN("bench"), .slot = text_of(slot, "slot", number)};
	struct slot_document document;

	turn(&command);
	if (store_read_slot(store, command.slot, &document) < 0)
		die("no such slot");
}

static void ask_figures(void)
{
	uint32_t reasons[WHY_COUNT];

	store_workers(store, WORKER_ACTIVE);
	store_heartbeat_age_max_ms(store, now);
	store_slots_quarantined(store);
	store_count_reasons(store, now, reasons);
}

static __attribute__((noinline)) void measure(const char *what, long workers)
{
	for (long i = 0; i < count; i++) {
		if (strcmp(what, "beat") == 0)
			beat(i % workers, 0, (struct name_list){0});
		else if (strcmp(what, "register") == 0)
			beat(workers + i, 0, (struct name_list){0});
		else if (strcmp(what, "claim") == 0)
			claim_nothing(i % (workers - 1));
		else if (strcmp(what, "crash") == 0)
			crash_slot(i % workers);
		else if (strcmp(what, "figures") == 0)
			ask_figures();
		else {
			now.lease_ms += SPACING_MS;
			turn(NULL);
		}
	}
}

static void open_store(const char *path)
{
	struct sqlite_options sqlite = {.path = path, .no_ballast = true};
	struct store_options options = store_options_default();
	struct backend *backend;
	char *complaint;

	options.now = now;
	options.boot_lo = 1;
	options.rules.restart_grace_ms = 0;
	options.rules.principal_registrations = 0;
	if (sqlite_open(&sqlite, &backend, &complaint) < 0 || store_open(backend, &options, &store) < 0)
		die("the store does not open");
}

int main(int argc, char **argv)
{
	char directory[] = "/dev/shm/stint-bench-XXXXXX", path[64],
	     name[80]; /* syncing is not what is counted */
	const char *what = argc % 2 == 0 ? argv[argc - 1] : "";
	long workers = 100;

	for (int i = 1; i + 2 < argc; i += 2) {
		if (strcmp(argv[i], "--workers") == 0)
			workers = atol(argv[i + 1]);
		else if (strcmp(argv[i], "--count") == 0)
			count = atol(argv[i + 1]);
	}
	bool expires = strcmp(what, "expire") == 0;
	if (what[0] == 0 || workers < 2 || count < 1 || workers + count > 200000)
		die("usage: --workers N [--count N] beat|register|claim|crash|figures|expire");
	if (!mkdtemp(directory))
		die("no temporary directory");
	snprintf(path, sizeof path, "%s/stint.db", directory);
	open_store(path);
	for (long i = 0; i < workers; i++)
		make_worker(i, 24 * 3600 * 1000);
	for (long i = 0; expires && i < count; i++)
		make_worker(workers + i, LEASE_MS + SPACING_MS * i);
	if (expires)
		now.lease_ms += LEASE_MS;
	measure(what, workers);
	uint64_t gone = store_counts(store)->events[EVENT_WORKER_INACTIVE];
	if (expires && gone != (uint64_t)count)
		die("not every lease ended");
	store_close(store);
	for (int i = 0; i < 4; i++) {
		snprintf(
			name, sizeof name, "%s%s", path, (const char *[]){"", "-wal", "-shm", ".ballast"}[i]);
		unlink(name);
	}
	rmdir(directory);
	printf("%s: %ld at %ld workers\n", what, count, workers);
	return 0;
}
