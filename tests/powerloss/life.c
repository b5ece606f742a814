#include "proof/check.h"
#include "powerloss/life.h"

#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "powerloss/ledger.h"
#include "powerloss/model.h"
#include "powerloss/script.h"
#include "powerloss/vfs.h"
#include "store/sqlite.h"

enum {
	LIFE_CYCLES_MAX = 24,
	CYCLE_TURNS_MAX = 40,
	SCRIPT_TURNS = 150,
	SWEEPS_UNTIL_BACK_MAX = 10,
	TURN_ARENA_BYTES = 64 << 20,
	BULK_SEEN = 1 << 16,
};

static const char store_path[] = "stint.db", log_path[] = "stint.db-wal";
static const char vfs_name[] = "powerloss", copy_vfs_name[] = "powerloss-copy";
static struct disk *disk, *disk_of_copy;

struct life {
	const struct life_options *options;
	uint64_t seed;
	uint64_t script_cut_at; /* 0: not the fixed script */
	uint32_t cycle;
	struct rng rng;    /* what happens */
	struct rng damage; /* what a cut leaves */
	struct ledger *ledger;
	struct model model;
	struct arena arena;
	struct store_options store_options;
	struct moment now;
	uint64_t boots;
	bool sync_failed; /* in the life before this start */
	struct store *store;
	uint32_t full_turns_left; /* how long the disk stays full */
	bool safe;                /* what is on disk now survived a cut */
	bool forgave;             /* losses, since the model was last brought in line */
	bool is_over;
};

/* ---- violations ------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3), noreturn)) static void violation(
	const struct life *life, const char *format, ...)
{
	va_list args;

	printf("\nviolation: ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\nseed %" PRIu64 ", cycle %u, operation %" PRIu64 ", sector %u, powersafe %d\n", life->seed,
		life->cycle, disk_operations(disk), disk_make_of(disk).sector_bytes,
		disk_make_of(disk).powersafe);
	if (life->script_cut_at)
		printf("replay: build/tests/stint-powerloss --exhaustive --seed %" PRIu64 " --cut-at %" PRIu64
		       "\n",
			life->seed, life->script_cut_at);
	else
		printf("replay: build/tests/stint-powerloss --seed %" PRIu64
		       " --cycles %u --synchronous %s%s --trace\n",
			life->seed, life->cycle, life->options->synchronous,
			life->options->stale_cache ? " --stale-cache" : "");
	exit(1);
}

__attribute__((format(printf, 2, 3))) static void trace(const struct life *life, const char *format, ...)
{
	va_list args;

	if (!life->options->trace)
		return;
	printf("%" PRIu64 ".%u @%" PRIu64 " ", life->seed, life->cycle, disk_operations(disk));
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

/* A fault of the store is its right only if the disk gave it one. */
static bool is_excused(void)
{
	return disk_is_off(disk) || disk_is_full(disk) || disk_sync_has_failed(disk);
}

static bool must_keep_all(const struct life *life)
{
	return strcmp(life->options->synchronous, "FULL") == 0;
}

/* ---- opening and looking ---------------------------------------------------------------------- */

static void look_inside(struct life *life)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *statement = NULL;

	disk_copy(disk_of_copy, disk);
	int code =
		sqlite3_open_v2(store_path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, copy_vfs_name);
	if (code == SQLITE_OK)
		code = sqlite3_exec(db, "PRAGMA locking_mode = EXCLUSIVE", NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &statement, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	if (code != SQLITE_ROW || strcmp((const char *)sqlite3_column_text(statement, 0), "ok") != 0)
		violation(life, "integrity_check: %s",
			code == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0)
					   : sqlite3_errmsg(db));
	sqlite3_finalize(statement);
	sqlite3_close(db);
	life->options->totals->looks_inside++;
}

/* Are the rows those of every transaction that is owed? False if that can no longer be told: with NORMAL a
 * transaction that was lost can come back when its place in the log is written again. */
static bool check_rows(struct life *life, struct backend *backend)
{
	struct found found;
	int fault = ledger_settle(life->ledger, backend, life->safe, &found);

	trace(life, "found: %u commits lost, in doubt %s", found.lost_commits,
		found.in_doubt_is_there ? "there" : "absent");
	if (fault && (fault != -EPROTO || must_keep_all(life)))
		violation(life, "the rows found are those of no point in the order of commits: %s (%s)",
			found.complaint, strerror(-fault));
	if (found.lost_commits && must_keep_all(life))
		violation(life, "%u commits are lost, %u acknowledged turns among them; first difference: %s",
			found.lost_commits, found.lost_turns, found.complaint);
	life->options->totals->lost_turns += found.lost_turns;
	life->options->totals->in_doubt_found += found.in_doubt_is_there;
	life->forgave |= found.lost_commits > 0;
	return fault == 0;
}

static void check_memory(struct life *life)
{
	char complaint[512] = "";
	int fault = store_check_memory(life->store, complaint, sizeof(complaint));

	if (fault)
		violation(life, "memory and rows differ: %s (%s)", complaint, strerror(-fault));
}

/* ---- bulk actions ------------------------------------------------------------------------------ */

struct step_look {
	uint32_t count;
	int64_t seqs[BULK_STEP_MAX];
};

static int look_for_step(void *context, const struct task_outline *outline)
{
	struct step_look *look = context;

	look->seqs[look->count++] = outline->seq;
	return 0;
}

/* A step of an action that runs, as the server takes one between two turns. False: none runs, or the disk does not let it be read. */
static bool take_step(struct life *life, struct command *command)
{
	struct bulk_document document = {0};
	struct step_look look = {0};
	uint32_t number = 0;
	struct task task;

	do {
		if (!store_next_bulk(life->store, &number, &document))
			return false;
	} while (document.progress->state != BULK_RUNNING);
	struct bulk_item *items = arena_alloc(&life->arena, BULK_STEP_MAX * sizeof *items);
	*command = (struct command){.kind = COMMAND_BULK_STEP, .actor = SPAN("server")};
	struct command_bulk *step = &command->bulk;
	step->bulk.number = document.bulk->number;
	step->from = step->to = document.progress->cursor;
	step->items = items;
	if (!items ||
		store_page_rows(
			life->store, true, &step->to, 1 + rng_below(&life->rng, 8), look_for_step, &look) < 0)
		return false;
	for (uint32_t i = 0; i < look.count; i++) {
		if (store_read_columns(life->store, look.seqs[i], &life->arena, &task) == 0)
			items[step->item_count++] =
				(struct bulk_item){.seq = task.seq, .version = task.version};
	}
	return true;
}

/* Which action changed the task; 0: none. */
static uint32_t bulk_of(const struct record *record)
{
	static const char before[] = "\"bulk\":\"";
	size_t len = sizeof before - 1;

	if ((record->kind != EVENT_TASK_RETRIED && record->kind != EVENT_TASK_CANCELLED &&
		    record->kind != EVENT_TASK_PARKED && record->kind != EVENT_TASK_UNPARKED &&
		    record->kind != EVENT_TASK_PURGED) ||
		record->note.len <= len + 1 || memcmp(record->note.data, before, len) != 0)
		return 0;
	return bulk_id_read((struct span){record->note.data + len, record->note.len - len - 1});
}

struct bulk_look {
	const struct life *life;
	int64_t last;
	uint64_t seen[BULK_SEEN]; /* by hash; 0: free */
};

static int look_at_bulk(void *context, const struct record *record)
{
	struct bulk_look *look = context;
	uint32_t bulk = bulk_of(record);
	uint64_t both = (uint64_t)bulk << 40 | (uint64_t)record->task;
	uint32_t at = (uint32_t)(both * UINT64_C(0x9e3779b97f4a7c15) >> 48);

	look->last = record->seq;
	for (uint32_t i = 0; bulk != 0 && i < BULK_SEEN; i++, at++) {
		uint64_t *place = &look->seen[at % BULK_SEEN];
		if (*place == both)
			violation(look->life, "bulk action %u changed task %" PRId64 " twice", bulk,
				record->task);
		if (*place == 0) {
			*place = both;
			return 0;
		}
	}
	return 0;
}

/* Whatever cut a bulk action short, it has changed no task twice. */
static void check_bulks(const struct life *life)
{
	static struct bulk_look look;
	int64_t before;

	memset(&look, 0, sizeof look);
	look.life = life;
	do {
		before = look.last;
		if (store_page_events(life->store, before, 256, look_at_bulk, &look) < 0)
			return;
	} while (look.last > before);
}

static void check_store(struct life *life)
{
	char complaint[512] = "";
	int fault = 0;

	check_memory(life);
	fault = store_check_fold(life->store, complaint, sizeof(complaint));
	if (fault)
		violation(life, "events and rows differ: %s (%s)", complaint, strerror(-fault));
	check_bulks(life);
	if (!life->forgave)
		fault = model_check(
			&life->model, life->store, life->now, life->ledger, complaint, sizeof(complaint));
	if (fault)
		violation(life, "%s", complaint);
	fault = model_learn(&life->model, life->store);
	if (fault)
		violation(life, "the store cannot be read: %s", strerror(-fault));
	life->forgave = false;
}

/* False if the disk did not let it happen. */
static bool open_store(struct life *life)
{
	struct sqlite_options options = {.path = store_path,
		.vfs = vfs_name,
		.synchronous = life->options->synchronous,
		.no_ballast = true,
		.boot_lo = life->sync_failed ? 0 : life->boots};
	struct backend *backend;
	char *complaint = NULL;

	int fault = sqlite_open(&options, &backend, &complaint);
	if (fault && !is_excused())
		violation(life, "cannot be opened: %s (%s)", complaint ? complaint : "", strerror(-fault));
	trace(life, "opened: %s", fault ? strerror(-fault) : "ok");
	free(complaint);
	if (fault)
		return false;
	life->is_over = !check_rows(life, backend);
	if (life->is_over) {
		backend->ops->close(backend);
		return false;
	}
	backend = ledger_watch(life->ledger, backend);
	life->store_options.now = life->now;
	life->store_options.boot_lo = life->boots;
	fault = store_open(backend, &life->store_options, &life->store);
	trace(life, "started: %s", fault ? strerror(-fault) : "ok");
	if (fault) {
		if (!is_excused())
			violation(life, "cannot be started: %s", strerror(-fault));
		backend->ops->close(backend);
		ledger_stop(life->ledger);
		return false;
	}
	if (disk_sync_has_failed(disk))
		violation(life, "started although a sync failed");
	life->sync_failed = false;
	check_store(life);
	return true;
}

/* ---- working ---------------------------------------------------------------------------------- */

static void pass_time(struct life *life)
{
	int64_t ms = rng_below(&life->rng, 300);

	if (rng_chance(&life->rng, 12))
		ms += 5000;
	if (rng_chance(&life->rng, 40))
		ms += 70000; /* leases run out */
	life->now.wall_ms += ms;
	life->now.lease_ms += ms;
}

/* The store gave a fault: it must have had a reason, and it must not go on. */
static void check_death(struct life *life, int fault, const char *what)
{
	struct result result;
	struct command command = {.kind = COMMAND_CREATE,
		.actor = SPAN("tester"),
		.create = {.queue = SPAN("late"), .body = SPAN("{}")}};

	trace(life, "%s: %s", what, strerror(-fault));
	if (!disk_is_off(disk) && !disk_sync_has_failed(disk))
		violation(life, "%s failed for no reason: %s (%s)", what, strerror(-fault),
			store_complaint(life->store) ? store_complaint(life->store) : "");
	if (!store_is_dead(life->store))
		violation(life, "%s failed (%s) and the store is not dead", what, strerror(-fault));
	if (store_turn(life->store, life->now, &command, 1, &result) == 0)
		violation(life, "a turn was accepted after %s had failed", what);
}

static void check_result(
	struct life *life, const struct command *command, const struct result *result, bool committed)
{
	bool is_degraded = store_is_degraded(life->store);

	if (result->refusal == REFUSED_UNAVAILABLE && !is_degraded)
		violation(life, "unavailable, but not degraded");
	/* renewals live in memory: a full disk does not stop them */
	if (result->refusal == REFUSED_NOTHING && is_degraded && !committed && command->kind != COMMAND_BEAT)
		violation(life, "command %d was accepted and nothing was committed: the disk is full",
			command->kind);
	if (result->event_seq == 0)
		return;
	if (!committed || result->event_seq > ledger_last_event(life->ledger))
		violation(life, "event %" PRId64 " was acknowledged and not committed", result->event_seq);
	if (disk_sync_has_failed(disk))
		violation(life, "event %" PRId64 " was acknowledged after a sync had failed",
			result->event_seq);
}

/* A turn returned 0: whatever it says has happened must be in a transaction that was committed. */
static void check_results(struct life *life, const struct command *commands, const struct result *results,
	uint32_t count, bool committed)
{
	for (uint32_t i = 0; i < count; i++)
		check_result(life, &commands[i], &results[i], committed);
	if (store_is_degraded(life->store))
		check_memory(life);
}

static void run_turn(struct life *life)
{
	struct command commands[SCRIPT_COMMANDS_MAX];
	struct result results[SCRIPT_COMMANDS_MAX];
	uint64_t commits = ledger_commits(life->ledger);

	arena_reset(&life->arena);
	uint32_t count = script_turn(&life->model, life->now, &life->rng, &life->arena, commands);
	if (store_has_bulk(life->store) && take_step(life, &commands[count]))
		count++;
	int fault = store_turn(life->store, life->now, commands, count, results);
	bool committed = ledger_commits(life->ledger) > commits;

	if (fault) {
		check_death(life, fault, "turn");
		return;
	}
	trace(life, "turn of %u, %s, event %" PRId64, count, committed ? "committed" : "nothing to commit",
		ledger_last_event(life->ledger));
	check_results(life, commands, results, count, committed);
	ledger_acknowledge(life->ledger);
	model_take(&life->model, commands, results, count);
	life->options->totals->turns += committed;
}

static void run_sweep(struct life *life)
{
	int fault = store_sweep(life->store, life->now);

	trace(life, "sweep: %s%s", fault ? strerror(-fault) : "ok",
		store_is_degraded(life->store) ? ", degraded" : "");
	if (fault)
		check_death(life, fault, "sweep");
	else if (disk_sync_has_failed(disk))
		violation(life, "a sync failed and sweep did not say so");
}

static void run_checkpoint(struct life *life)
{
	int fault = store_checkpoint(life->store);

	trace(life, "checkpoint: %s", fault ? strerror(-fault) : "ok");
	if (fault)
		check_death(life, fault, "checkpoint");
	else if (disk_sync_has_failed(disk))
		violation(life, "a sync failed and checkpoint did not say so");
}

static bool can_go_on(const struct life *life)
{
	return !disk_is_off(disk) && !store_is_dead(life->store);
}

/* There is room again: sweeps must find that out, and then changes are taken. */
static void give_space(struct life *life)
{
	struct command command = {.kind = COMMAND_CREATE,
		.actor = SPAN("tester"),
		.create = {.queue = SPAN("after"), .body = SPAN("{}")}};
	struct result result;

	trace(life, "space is given back");
	disk_give_space(disk);
	for (int i = 0; i < SWEEPS_UNTIL_BACK_MAX && can_go_on(life); i++) {
		if (!store_is_degraded(life->store))
			break;
		life->now.wall_ms += 1000;
		life->now.lease_ms += 1000;
		run_sweep(life);
	}
	if (!can_go_on(life))
		return;
	if (store_is_degraded(life->store))
		violation(life, "still degraded after %d sweeps with room", SWEEPS_UNTIL_BACK_MAX);
	check_memory(life);
	int fault = store_turn(life->store, life->now, &command, 1, &result);
	if (fault)
		check_death(life, fault, "turn");
	else if (result.refusal != REFUSED_NOTHING)
		violation(life, "there is room, and a task is refused: %s", refusal_code(result.refusal));
}

static void mind_full_disk(struct life *life)
{
	if (!disk_is_full(disk))
		return;
	if (life->full_turns_left > 0) {
		life->full_turns_left--;
		return;
	}
	life->options->totals->full_disks++;
	give_space(life);
}

static void work(struct life *life, uint32_t turns)
{
	for (uint32_t i = 0; i < turns && can_go_on(life); i++) {
		uint32_t draw = rng_below(&life->rng, 100);

		pass_time(life);
		if (draw < 85)
			run_turn(life);
		else if (draw < 95)
			run_sweep(life);
		else
			run_checkpoint(life);
		if (can_go_on(life))
			mind_full_disk(life);
	}
}

/* ---- the end of a cycle ----------------------------------------------------------------------- */

static void close_store(struct life *life)
{
	life->options->totals->operations += disk_operations(disk);
	life->options->totals->failed_syncs += disk_sync_has_failed(disk);
	life->sync_failed |= disk_sync_has_failed(disk); /* the mark of a real store says so */
	store_close(life->store);
	life->store = NULL;
	ledger_stop(life->ledger);
}

/* The power goes; when it is back, so is the clock of a new boot. */
static void cut(struct life *life)
{
	trace(life, "cut");
	disk_unplug(disk);
	disk_plug_after_cut(disk, &life->damage);
	life->options->totals->cuts++;
	life->safe = true;
	life->boots++;
	life->now.lease_ms = 1000;
	life->now.wall_ms += 60000;
}

/* Only the program ended. A start syncs the log before it reads it, and what a failed sync left in the system's cache is gone
 * then. A store on a file system of SQLite's (as ours is) has no such path, so it is done here. */
static void restart(struct life *life, bool killed)
{
	trace(life, killed ? "killed" : "restart");
	disk_plug_kept(disk);
	disk_settle(disk, log_path);
	if (!life->options->stale_cache)
		disk_drop_stale_cache(disk);
	life->options->totals->kills += killed;
	life->options->totals->restarts += !killed;
	life->safe = false;
}

static void end_cycle(struct life *life)
{
	uint32_t draw = rng_below(&life->rng, 8);
	bool closes_in_peace = !disk_is_off(disk) && draw < 3;

	if (closes_in_peace && rng_chance(&life->rng, 2)) /* the cut may come while it closes */
		disk_plan_cut(disk, disk_operations(disk) + 1 + rng_below(&life->rng, 40));
	if (!closes_in_peace)
		disk_unplug(disk);
	close_store(life);
	if (draw == 0 || draw == 7)
		restart(life, !closes_in_peace);
	else
		cut(life);
}

/* ---- lives ------------------------------------------------------------------------------------ */

static void plan(struct life *life)
{
	struct rng *rng = &life->rng;
	uint32_t horizon = rng_chance(rng, 3) ? 40 : life->model.is_heavy ? 8000 : 600;

	if (!rng_chance(rng, 6))
		disk_plan_cut(disk, 1 + rng_below(rng, horizon));
	if (!must_keep_all(life))
		return;
	/* Where a torn write may damage its neighbours SQLite pads the log after a commit. If only the padding
	 * finds no room, the commit is refused and yet whole: a restart before the next one brings it back. No
	 * system that we run on has such disks. */
	if (disk_make_of(disk).powersafe && rng_chance(rng, 5)) {
		disk_plan_full(disk, 1 + rng_below(rng, horizon), rng_chance(rng, 3));
		life->full_turns_left = rng_below(rng, 6);
	}
	if (rng_chance(rng, 10))
		disk_plan_sync_fault(disk, 1 + rng_below(rng, horizon));
}

static void run_cycle(struct life *life)
{
	plan(life);
	if (life->safe && rng_chance(&life->rng, 16))
		look_inside(life);
	if (open_store(life))
		work(life, rng_below(&life->rng, CYCLE_TURNS_MAX));
	end_cycle(life);
}

static void draw_retention(struct life *life)
{
	struct retention *retention = &life->store_options.retention;

	if (rng_chance(&life->rng, 3))
		return;
	retention->final_ms = rng_chance(&life->rng, 2) ? 500 : 20000;
	retention->finals_max = 3 + rng_below(&life->rng, 20);
	retention->event_ms = rng_chance(&life->rng, 2) ? 1000 : 100000;
	retention->events_max = 20 + rng_below(&life->rng, 200);
	retention->dead_worker_ms = 5000;
	retention->idempotency_ms = 20000;
	retention->step = 3 + rng_below(&life->rng, 40);
}

static void life_begin(struct life *life, const struct life_options *options, uint64_t seed)
{
	*life = (struct life){.options = options, .seed = seed, .safe = true};
	rng_seed(&life->rng, seed);
	rng_seed(&life->damage, seed ^ 0x64616d616765);
	vfs_seed(seed);
	struct disk_make make = {.sector_bytes = rng_chance(&life->rng, 2) ? 512 : 4096,
		.powersafe = rng_chance(&life->rng, 2)};
	disk_wipe(disk, make, seed);
	life->ledger = ledger_new();
	model_init(&life->model);
	life->model.is_heavy = rng_chance(&life->rng, 50);
	arena_init(&life->arena, TURN_ARENA_BYTES);
	life->now = (struct moment){.wall_ms = 1700000000000, .lease_ms = 1000};
	life->boots = 1;
	life->store_options = store_options_default();
	life->store_options.seed = seed;
	draw_retention(life);
}

static void life_end(struct life *life)
{
	ledger_free(life->ledger);
	model_done(&life->model);
	arena_done(&life->arena);
}

void life_prepare(void)
{
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	disk_of_copy = disk_new();
	vfs_register(copy_vfs_name, disk_of_copy);
	disk = disk_new();
	vfs_register(vfs_name, disk);
}

uint32_t life_run(const struct life_options *options, uint64_t seed, uint32_t cycles)
{
	struct life life;

	life_begin(&life, options, seed);
	uint32_t length = 1 + rng_below(&life.rng, LIFE_CYCLES_MAX);
	if (length > cycles)
		length = cycles;
	for (life.cycle = 1; life.cycle <= length && !life.is_over; life.cycle++)
		run_cycle(&life);
	/* what the last cycle left is looked at as well */
	if (!life.is_over && open_store(&life))
		close_store(&life);
	life_end(&life);
	return length;
}

bool life_run_script(const struct life_options *options, uint64_t seed, uint64_t cut_at)
{
	struct life life;
	bool reached;

	life_begin(&life, options, seed);
	life.script_cut_at = cut_at;
	rng_seed(&life.damage, seed + cut_at);
	disk_plan_cut(disk, cut_at);
	if (open_store(&life))
		work(&life, SCRIPT_TURNS);
	reached = disk_is_off(disk);
	disk_unplug(disk);
	close_store(&life);
	cut(&life);
	if (!open_store(&life))
		violation(&life, "cannot be opened after a cut");
	close_store(&life);
	life_end(&life);
	return reached;
}
