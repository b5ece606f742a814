/*
 * Rows that we never wrote: in a store with a bit of everything one value of one row is altered, then the store is
 * started, read, listed and used. Whatever the value is, the program does not abort: it works, or it gives a fault with a
 * sentence. Every table and column comes up; STINT_DAMAGE=all tries every case, else every STRIDE-th.
 */
#include "store_fixture.h"

#include <sqlite3.h>
#include <sys/wait.h>

#include "base/rng.h"
#include "store/sqlite/sqlite_backend.h"

enum {
	STRIDE = 7,
	TEXT_LONG = 400,
	BLOB_DRAWS = 24, /* ways to alter one blob */
	SQL_MAX = 2048,
	COLUMNS_MAX = 512,
	COLUMNS_BYTES = 1024,
};

/* ---- a store with a bit of everything ------------------------------------------------------------- */

static void run(struct world *world, struct command command)
{
	assert_int_equal(store_turn(world->store, world->now, &command, 1, &world->result), 0);
	assert_int_equal(world->result.refusal, REFUSED_NOTHING);
}

static void add_tasks(struct world *world)
{
	static const struct span needs[] = {SPAN("big"), SPAN("gpu")}, gates[] = {SPAN("ci"), SPAN("human")};
	static const struct span parents[] = {SPAN("keyed"), SPAN("gated")};
	struct command command = say_create("keyed", "q");

	command.create.unique_key = SPAN("k");
	command.create.idempotency_key = SPAN("idem");
	command.create.requires = (struct name_list){needs, 2};
	command.create.executor = SPAN("shell");
	command.create.owner = SPAN("slot-1");
	run(world, command);
	command = say_create("gated", "q");
	command.create.gates = (struct name_list){gates, 2};
	command.create.finish_by_ms = world->now.wall_ms + 3600000;
	run(world, command);
	command = say_create("child", "q");
	command.create.parents = (struct name_list){parents, 2};
	run(world, command);
	command = say_create("flow", "q");
	command.create.workflow = WORKFLOW_COUNT - 1;
	run(world, command);
	command = say_create(NULL, "later");
	command.create.not_before_ms = world->now.wall_ms + 60000;
	command.create.spawn =
		(struct command_spawn){.label = SPAN("label"), .spec = SPAN("{}"), .notice = SPAN("notice")};
	run(world, command);
}

static void add_worker(struct world *world)
{
	static const struct span has[] = {SPAN("big"), SPAN("gpu"), SPAN("fast")}, bound[] = {SPAN("run")};
	struct command command = say_beat("w-1", 0);

	run(world, say_create("run", "work"));
	command.kind = COMMAND_REGISTER;
	command.beat.describes = true;
	command.beat.slot = SPAN("slot-1");
	command.beat.capabilities = (struct name_list){has, 3};
	command.beat.process = (struct command_process){SPAN("host"), 1, 2, 3, 4};
	command.beat.version = SPAN("1.0");
	command.beat.metadata = SPAN("{\"a\":1}");
	run(world, command);
	uint64_t token = world->result.worker.token;
	static const struct span work[] = {SPAN("work")};
	command = say_claim("w-1");
	command.claim.queues = (struct name_list){work, 1};
	run(world, command);
	uint64_t fence = world->result.claims[0].task.fence;
	command = say_beat("w-1", token);
	command.beat.bound = (struct name_list){bound, 1};
	run(world, command);
	command = say_report(COMMAND_LOG, "run", "w-1", fence);
	command.log.offset = command.log.dropped = 0;
	command.data = SPAN("hello\n");
	run(world, command);
	command = say_report(COMMAND_PROGRESS, "run", "w-1", fence);
	command.data = SPAN("{\"step\":1}");
	run(world, command);
}

static void add_ended(struct world *world)
{
	struct command command = say_create("done", "ended");

	command.create.id = SPAN("done");
	run(world, command);
	static const struct span queue[] = {SPAN("ended")};
	command = say_claim("plain");
	command.claim.queues = (struct name_list){queue, 1};
	command.claim.named = true;
	run(world, command);
	command = say_report(COMMAND_COMPLETE, "done", "plain", world->result.claims[0].task.fence);
	command.data = SPAN("{\"ok\":true}");
	run(world, command);
	run(world, say_create("dropped", "ended"));
	run(world, say_about(COMMAND_CANCEL, "dropped"));
	command = say_about(COMMAND_EMIT, "gated");
	command.emit.id = SPAN("event-1");
	command.emit.digest = 77;
	command.note = SPAN("{}");
	run(world, command);
}

static void add_rest(struct world *world)
{
	static const struct span queues[] = {SPAN("q"), SPAN("later")};
	struct command command = {
		.kind = COMMAND_SLOT_CRASH, .slot = SPAN("slot-2"), .actor = SPAN("tester")};

	run(world, command);
	command = (struct command){.kind = COMMAND_QUEUE_SET, .actor = SPAN("tester")};
	command.queue_set.queue = SPAN("later");
	command.queue_set.state = QUEUE_PAUSED;
	run(world, command);
	command = (struct command){.kind = COMMAND_SLOT_ASSIGN, .actor = SPAN("tester")};
	command.assign.slot = SPAN("slot-2");
	command.assign.queues = (struct name_list){queues, 2};
	run(world, command);
	command = (struct command){.kind = COMMAND_TOKEN_PUT, .actor = SPAN("tester")};
	command.token = (struct command_token){.id = SPAN("tok1"), .kind = TOKEN_WORKER, .name = SPAN("t")};
	run(world, command);
	command = (struct command){.kind = COMMAND_EXECUTION_SET, .actor = SPAN("tester"), .armed = false};
	run(world, command);
	command.armed = true;
	run(world, command);
}

/* ---- using it ------------------------------------------------------------------------------------- */

struct reads {
	struct store *store;
	struct moment now;
	struct arena arena;
};

static int ignore_name(void *context, struct span name)
{
	(void)context;
	(void)name;
	return 0;
}

static int read_one(void *context, const struct task_outline *outline)
{
	struct reads *reads = context;
	struct task_document document;
	struct session_document session;
	struct log_piece piece;

	arena_reset(&reads->arena);
	if (store_read_task(reads->store, outline->seq, reads->now, &reads->arena, &document) == 0) {
		store_read_last(reads->store, &reads->arena, &document);
		store_name(reads->store, document.task.queue);
		store_name(reads->store, document.task.owner);
		store_name(reads->store, document.task.executor);
		store_each_member(reads->store, document.task.requires, ignore_name, NULL);
		store_each_member(reads->store, document.task.gates, ignore_name, NULL);
		store_why(reads->store, &document.task, reads->now);
	}
	store_read_session(reads->store, outline->seq, &reads->arena, &session);
	store_read_log(reads->store, outline->seq, 0, 0, 1000, &reads->arena, &piece);
	store_read_log(reads->store, outline->seq, 1, 2, 1000, &reads->arena, &piece);
	return 0;
}

static int ignore_record(void *context, const struct record *record)
{
	(void)context;
	(void)record;
	return 0;
}

static int read_worker(void *context, struct span id, const struct worker *worker)
{
	struct reads *reads = context;
	struct worker_document document;

	store_read_worker(reads->store, id, &document);
	store_name(reads->store, worker->slot);
	store_each_member(reads->store, worker->capabilities, ignore_name, NULL);
	return store_each_held(reads->store, id, ignore_name, NULL);
}

static int ignore_assignment(void *context, struct span slot, struct span queues)
{
	(void)context;
	(void)slot;
	(void)queues;
	return 0;
}

static int ignore_queue(void *context, struct span name, enum queue_state state, uint32_t waiting)
{
	(void)context;
	(void)name;
	(void)state;
	(void)waiting;
	return 0;
}

static int ignore_slot(void *context, const struct slot_document *slot)
{
	(void)context;
	(void)slot;
	return 0;
}

static void read_everything(struct world *world)
{
	struct reads reads = {.store = world->store, .now = world->now};
	int64_t first = 0, last = INT64_MAX, final = INT64_MAX, after = 0;
	uint32_t open = 0, workers = 0, counts[WHY_COUNT];

	arena_init(&reads.arena, 4 << 20);
	store_page_open(world->store, &open, 1000, read_one, &reads);
	store_page_final(world->store, &final, 1000, read_one, &reads);
	store_page_rows(world->store, true, &first, 1000, read_one, &reads);
	store_page_rows(world->store, false, &last, 1000, read_one, &reads);
	store_page_events(world->store, store_event_base(world->store), 1000, ignore_record, NULL);
	store_page_workers(world->store, &workers, 1000, read_worker, &reads);
	store_page_assignments(world->store, &after, 1000, ignore_assignment, NULL);
	store_each_queue(world->store, ignore_queue, NULL);
	store_each_slot(world->store, ignore_slot, NULL);
	store_count_reasons(world->store, world->now, counts);
	arena_done(&reads.arena);
}

/* A fault must have a sentence; after one the store is dead, or nothing happened. */
static bool turn_goes_on(struct world *world, const struct command *command)
{
	int r = store_turn(world->store, world->now, command, command ? 1 : 0, &world->result);

	if (r < 0 && !store_complaint(world->store))
		_exit(3);
	return r == 0;
}

static bool use(struct world *world)
{
	static const struct span parents[] = {SPAN("flow")};
	struct command update = say_about(COMMAND_UPDATE, "child");
	struct command claim = say_claim("other"), beat = say_beat("w-1", 0);
	struct command emit = say_about(COMMAND_EMIT, "gated");
	struct command again = say_create("keyed", "q");

	update.update.patch.set_parents = true;
	update.update.parents = (struct name_list){parents, 1};
	claim.claim.max = 10;
	emit.emit.id = SPAN("event-1");
	emit.emit.digest = 77;
	again.create.idempotency_key = SPAN("idem");
	const struct command commands[] = {claim, beat, emit, again, update, say_about(COMMAND_RETRY, "done"),
		say_about(COMMAND_CANCEL, "keyed"), say_about(COMMAND_RETRY, "keyed"),
		say_about(COMMAND_PURGE, "dropped")};
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		if (!turn_goes_on(world, &commands[i]))
			return false;
	}
	return true;
}

/* In a process of its own: it ends with 0, or by a signal if something is wrong. */
static void live_with(struct world *world)
{
	struct sqlite_options options = {.path = world->path, .no_ballast = true, .synchronous = "OFF"};
	char *complaint = NULL;

	if (sqlite_open(&options, &world->backend, &complaint) < 0)
		_exit(complaint ? 0 : 3);
	world->options.now = world->now;
	world->options.retention.event_ms = world->options.retention.final_ms = 1000;
	if (store_open(world->backend, &world->options, &world->store) < 0)
		_exit(world->backend->complaint ? 0 : 3);
	read_everything(world);
	if (!use(world))
		_exit(0);
	for (int i = 0; i < 3; i++) {
		world_pass(world, 10 * 60 * 1000);
		if (!turn_goes_on(world, NULL) || store_sweep(world->store, world->now) < 0)
			_exit(0);
	}
	read_everything(world);
	_exit(0);
}

/* ---- altering it ---------------------------------------------------------------------------------- */

struct column {
	char table[64], name[64], type[16], key[128];
};

static int add_column(void *context, int count, char **values, char **names)
{
	struct column **at = context;

	(void)count;
	(void)names;
	snprintf((*at)->table, sizeof(*at)->table, "%s", values[0]);
	snprintf((*at)->name, sizeof(*at)->name, "%s", values[1]);
	snprintf((*at)->type, sizeof(*at)->type, "%s", values[2]);
	snprintf((*at)->key, sizeof(*at)->key, "%s", values[3]);
	++*at;
	return 0;
}

/* Every column of every table, with the columns of the table's key. */
static uint32_t list_columns(const char *path, struct column columns[COLUMNS_MAX])
{
	struct column *at = columns;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(db,
			"SELECT t.name, c.name, c.type, (SELECT group_concat('\"' || k.name || '\"')"
			" FROM pragma_table_info(t.name) AS k WHERE k.pk > 0)"
			" FROM sqlite_schema AS t, pragma_table_info(t.name) AS c WHERE t.type = 'table'",
			add_column, &at, NULL),
		SQLITE_OK);
	sqlite3_close(db);
	assert_true(at > columns + 50);
	return (uint32_t)(at - columns);
}

static const char *const integers[] = {"-1", "0", "1", "2", "3", "9", "16", "255", "70000", "4294967295",
	"4294967296", "1099511627776", "9223372036854775807", "-9223372036854775808", "NULL"};
static const char *const texts[] = {"''", "'x'", "char(31)", "char(31) || 'none'", "'a' || char(31)",
	"replace(hex(zeroblob(200)), '0', 'a')", "cast(x'fffe' AS TEXT)", "NULL"};

static uint32_t ways_of(const struct column *column)
{
	if (strcmp(column->type, "INTEGER") == 0)
		return sizeof integers / sizeof *integers;
	return strcmp(column->type, "TEXT") == 0 ? sizeof texts / sizeof *texts : BLOB_DRAWS;
}

/* What the column becomes: an expression over what it is. */
static void value_of(const struct column *column, uint32_t way, struct rng *rng, char text[SQL_MAX / 2])
{
	const char *name = column->name;
	uint32_t at = rng_u32(rng) % 64, byte = rng_u32(rng) % 256;

	if (strcmp(column->type, "INTEGER") == 0)
		snprintf(text, SQL_MAX / 2, "%s", integers[way]);
	else if (strcmp(column->type, "TEXT") == 0)
		snprintf(text, SQL_MAX / 2, "%s", texts[way]);
	else if (way == 0)
		snprintf(text, SQL_MAX / 2, "x''");
	else if (way == 1)
		snprintf(text, SQL_MAX / 2, "substr(\"%s\", 1, length(\"%s\") - 1)", name, name);
	else if (way == 2)
		snprintf(text, SQL_MAX / 2, "cast(\"%s\" || x'00' AS BLOB)", name);
	else if (way == 3)
		snprintf(text, SQL_MAX / 2, "x'ffffffffffffffffffffffffffffff'");
	else /* one byte is another one */
		snprintf(text, SQL_MAX / 2,
			"cast(substr(\"%s\", 1, %u %% length(\"%s\")) || x'%02x' ||"
			" substr(\"%s\", %u %% length(\"%s\") + 2) AS BLOB)",
			name, at, name, byte, name, at, name);
}

/* A wrong value under a right checksum: what a mistake of ours would leave, and the checks behind the checksum must find. */
static bool seal_again(sqlite3 *db, const char *table)
{
	char columns[COLUMNS_BYTES], sql[SQL_MAX];
	sqlite3_stmt *statement;

	snprintf(sql, sizeof sql,
		"SELECT group_concat('\"' || name || '\"', ', ') FROM pragma_table_info('%s') WHERE name <> 'crc'",
		table);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	snprintf(columns, sizeof columns, "%s", (const char *)sqlite3_column_text(statement, 0));
	sqlite3_finalize(statement);
	snprintf(sql, sizeof sql, "UPDATE \"%s\" SET crc = seal(%s)", table, columns);
	return seals_in_sql(db) == SQLITE_OK && sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* Tasks and what hangs on them have seals of another form, and had them before: their checks are met by other tests. */
static bool has_plain_seal(const char *table)
{
	return strcmp(table, "task") != 0 && strcmp(table, "task_body") != 0 &&
		strcmp(table, "task_extra") != 0 && strcmp(table, "event") != 0;
}

/* False: the table has no row, or does not take such a value. */
static bool alter(
	const char *path, const struct column *column, uint32_t way, struct rng *rng, char sql[SQL_MAX])
{
	char value[SQL_MAX / 2];
	sqlite3 *db;

	value_of(column, way, rng, value);
	snprintf(sql, SQL_MAX,
		"UPDATE \"%s\" SET \"%s\" = %s WHERE (%s) = (SELECT %s FROM \"%s\" LIMIT 1 OFFSET %u %% max(1, (SELECT"
		" count(*) FROM \"%s\")))",
		column->table, column->name, value, column->key, column->key, column->table,
		rng_u32(rng) % 1000, column->table);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	bool done = sqlite3_exec(db, "PRAGMA synchronous = OFF", NULL, NULL, NULL) == SQLITE_OK &&
		sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK && sqlite3_changes(db) == 1;
	if (done && way % 4 != 0 && has_plain_seal(column->table) && strcmp(column->name, "crc") != 0)
		done = seal_again(db, column->table);
	sqlite3_close(db);
	return done;
}

static void copy_file(const char *from, const char *to)
{
	char bytes[65536];
	FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
	size_t count;

	assert_non_null(in);
	assert_non_null(out);
	while ((count = fread(bytes, 1, sizeof bytes, in)) > 0)
		assert_int_equal(fwrite(bytes, 1, count, out), count);
	fclose(in);
	assert_int_equal(fclose(out), 0);
}

static uint32_t failures;

static void try_case(struct world *world, const char *whole, const struct column *column, uint32_t way)
{
	struct rng rng;
	char sql[SQL_MAX], wal[sizeof world->path + 8];
	int status;

	rng_seed(&rng, way + 1000u);
	snprintf(wal, sizeof wal, "%s-wal", world->path);
	unlink(wal);
	copy_file(whole, world->path);
	if (!alter(world->path, column, way, &rng, sql))
		return;
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		live_with(world);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		print_error("%s: ended with status %d\n", sql, status), failures++;
}

/* ---- tests ---------------------------------------------------------------------------------------- */

static void some_bytes(void *bytes, size_t count)
{
	static unsigned char next;

	for (size_t i = 0; i < count; i++)
		((unsigned char *)bytes)[i] = next++;
}

static struct world *full_world(void)
{
	struct world *world = world_new(true);

	store_close(world->store);
	world->options.random = some_bytes;
	world->backend = world_backend(world);
	assert_int_equal(store_open(world->backend, &world->options, &world->store), 0);
	add_tasks(world);
	add_worker(world);
	add_ended(world);
	add_rest(world);
	store_close(world->store);
	world->store = NULL;
	return world;
}

static void no_value_of_any_row_makes_a_start_a_read_or_a_turn_abort(void **state)
{
	static struct column columns[COLUMNS_MAX];
	const char *wanted = getenv("STINT_DAMAGE");
	struct world *world = full_world();
	char whole[sizeof world->path + 8];
	uint32_t number = 0, stride = wanted && strcmp(wanted, "all") == 0 ? 1 : STRIDE;

	(void)state;
	snprintf(whole, sizeof whole, "%s.whole", world->path);
	copy_file(world->path, whole);
	uint32_t count = list_columns(whole, columns);
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t way = 0; way < ways_of(&columns[i]); way++) {
			if (number++ % stride == 0)
				try_case(world, whole, &columns[i], way);
		}
	}
	unlink(whole);
	assert_int_equal(failures, 0);
	world_free(world);
}

/* A store with a bit of everything, in which that was done. */
static struct world *altered_world(const char *sql)
{
	struct world *world = full_world();
	sqlite3 *db;

	assert_int_equal(sqlite3_open(world->path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK || sqlite3_changes(db) == 0)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
	world->backend = world_backend(world);
	world->options.now = world->now;
	return world;
}

struct alteration {
	const char *sql;
	const char *table, *row; /* that the complaint names */
};

static void assert_names(const char *complaint, const struct alteration *damage, const char *path)
{
	if (!complaint || !strstr(complaint, path) || !strstr(complaint, damage->table) ||
		!strstr(complaint, damage->row) || !strstr(complaint, "--restore"))
		fail_msg("%s: %s", damage->sql, complaint ? complaint : "no complaint");
}

static void a_start_names_the_file_the_table_the_row_and_what_to_do(void **state)
{
	static const struct alteration cases[] = {
		{"UPDATE task SET queue = 70000 WHERE seq = 1", "table task", "row 1 "},
		{"UPDATE task SET priority = priority + 1 WHERE seq = 1", "table task", "row 1 "},
		{"UPDATE task SET crc = NULL WHERE seq = 1", "table task", "row 1 "},
		{"UPDATE task SET queue = 0 WHERE seq = 2", "table task", "row 2 "},
		{"UPDATE task SET state = 99 WHERE seq = 3", "table task", "row 3 "},
		{"UPDATE task SET rest = x'' WHERE seq = 4", "table task", "row 4 "},
		{"UPDATE task SET seq = 4611686018427387904 WHERE seq = 7", "table task",
			"row 4611686018427387904 "},
		{"UPDATE name SET text = char(31) || 'none' WHERE id = 3", "table name", "row 3 "},
		{"UPDATE small SET key = 'unknown' WHERE kind = 1", "table small", "row \"unknown\" "},
		{"UPDATE small SET data = x'39' WHERE kind = 1", "table small", "row \"later\" "},
		{"UPDATE small SET data = x'39' WHERE kind = 2", "table small", "row \"slot-2\" "},
		{"UPDATE small SET crc = NULL WHERE kind = 2", "table small", "row \"slot-2\" "},
		{"UPDATE small SET key = 'unknown' WHERE kind = 3", "table small", "row \"unknown\" "},
		{"UPDATE small SET kind = 9 WHERE kind = 1", "table small", "row \"later\" "},
		{"UPDATE meta SET key = 77 WHERE key = 1", "table meta", "row 77 "},
		{"UPDATE secret SET kind = 77 WHERE kind = 11", "table secret", "row \"1-"},
		{"UPDATE worker SET capabilities = 1", "table worker", "row \"w-1\" "},
		{"UPDATE worker SET state = 9", "table worker", "row \"w-1\" "},
		{"UPDATE worker SET id = 'w-2'", "table worker", "row \"w-2\" "},
		{"UPDATE worker SET last_beat_ms = last_beat_ms + 1", "table worker", "row \"w-1\" "},
		{"UPDATE token SET kind = 99", "table token", "row \"tok1\" "},
		{"UPDATE token SET hash = x'00'", "table token", "row \"tok1\" "},
		{"UPDATE token SET revoked_ms = 0, expires_ms = 1", "table token", "row \"tok1\" "},
		{"UPDATE token SET crc = NULL", "table token", "row \"tok1\" "},
		{"UPDATE name SET principal = principal + 1 WHERE id = 2", "table name", "row 2 "},
		{"UPDATE edge SET dead = 1 - dead WHERE parent = 1", "table edge", "row 3 "},
		{"UPDATE meta SET value = value + 1 WHERE key = 1", "table meta", "row 1 "},
		{"UPDATE meta SET value = value + 1 WHERE key = 9", "table meta", "row 9 "},
		{"UPDATE meta SET crc = NULL WHERE key = 2", "table meta", "row 2 "},
		{"UPDATE secret SET data = CAST(replace(CAST(data AS TEXT), '0', '1') AS BLOB) WHERE kind = 11",
			"table secret", "row \"1-"},
		{"UPDATE event SET last = 4611686018427387904 WHERE last = (SELECT max(last) FROM event)",
			"table event", "row 4611686018427387904 "},
		{"REPLACE INTO meta (key, value) VALUES (1, 0)", "table meta", "row 1 "},
		{"REPLACE INTO meta (key, value) VALUES (2, -1)", "table meta", "row 2 "},
		{"REPLACE INTO meta (key, value) VALUES (3, -1)", "table meta", "row 3 "},
		{"REPLACE INTO meta (key, value) VALUES (4, -1)", "table meta", "row 4 "},
		{"REPLACE INTO meta (key, value) VALUES (8, -1)", "table meta", "row 8 "},
		{"REPLACE INTO meta (key, value) VALUES (10, 4611686018427387904)", "table meta", "row 10 "},
		{"DELETE FROM task_extra WHERE seq = 0 AND kind = 16 AND n = 0", "table task_extra",
			"row 0 "},
		{"UPDATE task_extra SET data = CAST('0 x' AS BLOB) WHERE seq = 0 AND kind = 16 AND n = 0",
			"table task_extra", "row 0 "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct world *world = altered_world(cases[i].sql);
		if (store_open(world->backend, &world->options, &world->store) != -EBADMSG)
			fail_msg("%s: opened", cases[i].sql);
		assert_names(world->backend->complaint, &cases[i], world->path);
		world->backend->ops->close(world->backend);
		world->store = NULL;
		world_free(world);
	}
}

/* ---- what is read later ---- */

static int look_at_events(struct reads *reads, int64_t seq)
{
	(void)seq;
	return store_page_events(reads->store, 0, 1000, ignore_record, NULL);
}

static int look_at_task(struct reads *reads, int64_t seq)
{
	struct task_document document;
	int r = store_read_task(reads->store, seq, reads->now, &reads->arena, &document);

	return r < 0 ? r : store_read_last(reads->store, &reads->arena, &document);
}

static int look_at_session(struct reads *reads, int64_t seq)
{
	struct session_document session;

	return store_read_session(reads->store, seq, &reads->arena, &session);
}

static int look_at_log(struct reads *reads, int64_t seq)
{
	struct log_piece piece;

	return store_read_log(reads->store, seq, 1, 0, 1000, &reads->arena, &piece);
}

static int look_at_finals(struct reads *reads, int64_t seq)
{
	int64_t after = INT64_MAX;

	(void)seq;
	return store_page_final(reads->store, &after, 1000, read_one, reads);
}

static int turn_with(struct reads *reads, struct command command)
{
	struct result result;

	int r = store_turn(reads->store, reads->now, &command, 1, &result);
	return r == 0 && result.refusal == REFUSED_STORE_DAMAGED ? -EBADMSG : r; /* or the store is dead */
}

static int create_again(struct reads *reads, int64_t seq)
{
	struct command command = say_create("keyed", "q");

	(void)seq;
	command.create.idempotency_key = SPAN("idem");
	return turn_with(reads, command);
}

static int create_keyed(struct reads *reads, int64_t seq)
{
	struct command command = say_create("another", "q");

	(void)seq;
	command.create.unique_key = SPAN("k");
	return turn_with(reads, command);
}

static int find_done(struct reads *reads, int64_t seq)
{
	return store_find_task(reads->store, SPAN("done"), &seq);
}

static int emit_again(struct reads *reads, int64_t seq)
{
	struct command command = say_about(COMMAND_EMIT, "gated");

	(void)seq;
	command.emit.id = SPAN("event-1");
	command.emit.digest = 77;
	return turn_with(reads, command);
}

static int cancel_keyed(struct reads *reads, int64_t seq)
{
	(void)seq;
	return turn_with(reads, say_about(COMMAND_CANCEL, "keyed"));
}

static void a_read_or_a_turn_names_them_too(void **state)
{
	static const struct {
		struct alteration damage;
		int (*look)(struct reads *reads, int64_t seq);
		int64_t seq;
	} cases[] = {
		{{"UPDATE event SET data = x'ff'", "table event", "row "}, look_at_events, 0},
		{{"UPDATE event SET crc = crc + 1 WHERE last = 2", "table event", "row 2 "}, look_at_events,
			0},
		{{"UPDATE event SET crc = NULL WHERE last = 2", "table event", "row 2 "}, look_at_events, 0},
		{{"UPDATE task_body SET body = CAST(body || ' ' AS BLOB) WHERE seq = 7", "table task_body",
			 "row 7 "},
			look_at_task, 7},
		{{"UPDATE task_body SET body = (SELECT body FROM task_body WHERE seq = 6),"
		  " crc = (SELECT crc FROM task_body WHERE seq = 6) WHERE seq = 7",
			 "table task_body", "row 7 "},
			look_at_task, 7},
		{{"UPDATE task SET priority = priority + 1 WHERE seq = 7", "table task", "row 7 "},
			look_at_task, 7},
		{{"UPDATE task_extra SET data = CAST(replace(CAST(data AS TEXT), 'h', 'j') AS BLOB) WHERE seq = 6 AND kind = 10",
			 "table task_extra", "row 6 "},
			look_at_log, 6},
		{{"UPDATE task_extra SET data = CAST('{\"ok\":trve}' AS BLOB) WHERE seq = 7 AND kind = 1",
			 "table task_extra", "row 7 "},
			look_at_task, 7},
		{{"UPDATE event SET data = x'01ff' WHERE last = 2", "table event", "row 2 "}, look_at_events,
			0},
		{{"UPDATE task SET queue = 70000 WHERE seq = 7", "table task", "row 7 "}, look_at_task, 7},
		{{"UPDATE task SET queue = 70000 WHERE seq = 7", "table task", "row 7 "}, look_at_finals, 0},
		{{"UPDATE task SET rest = x'ff' WHERE seq = 8", "table task", "row 8 "}, look_at_finals, 0},
		{{"DELETE FROM task_body WHERE seq = 7", "table task", "row 7 "}, look_at_task, 7},
		{{"DELETE FROM task_extra WHERE seq = 7 AND kind = 8", "table task", "row 7 "}, look_at_task,
			7},
		{{"UPDATE task_extra SET data = x'78' WHERE seq = 7 AND kind = 18", "table task_extra",
			 "row 7 "},
			look_at_task, 7},
		{{"UPDATE task_extra SET data = x'ff' WHERE seq = 6 AND kind = 9", "table task_extra",
			 "row 6 "},
			look_at_log, 6},
		{{"DELETE FROM task_extra WHERE seq = 6 AND kind = 10", "table task_extra", "row 6 "},
			look_at_log, 6},
		{{"UPDATE task_extra SET data = CAST(data || 'x' AS BLOB) WHERE seq = 6 AND kind = 10",
			 "table task_extra", "row 6 "},
			look_at_log, 6},
		{{"UPDATE task_extra SET data = CAST('+' || hex(zeroblob(65)) || char(31) AS BLOB) WHERE seq = 5 AND kind = 16",
			 "table task_extra", "row 5 "},
			look_at_session, 5},
		{{"UPDATE idem SET fingerprint = x'00'", "table idem", "row \"idem\" "}, create_again, 0},
		{{"UPDATE idem SET task = task + 1", "table idem", "row \"idem\" "}, create_again, 0},
		{{"UPDATE task_id SET seq = 8 WHERE id = 'done'", "table task_id", "row 8 "}, find_done, 0},
		{{"UPDATE task_key SET seq = 7", "table task_key", "row 7 "}, create_keyed, 0},
		{{"UPDATE task_extra SET data = x'00' WHERE seq = 2 AND kind = 11", "table task_extra",
			 "row 2 "},
			emit_again, 0},
		{{"DELETE FROM task_extra WHERE seq = 1 AND kind = 7", "table task", "row 1 "}, cancel_keyed,
			0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct world *world = altered_world(cases[i].damage.sql);
		if (store_open(world->backend, &world->options, &world->store) != 0)
			fail_msg("%s: %s", cases[i].damage.sql, world->backend->complaint);
		struct reads reads = {.store = world->store, .now = world->now};
		arena_init(&reads.arena, 4 << 20);
		int r = cases[i].look(&reads, cases[i].seq);
		if (r != -EBADMSG)
			fail_msg("%s: %d", cases[i].damage.sql, r);
		assert_names(store_complaint(world->store), &cases[i].damage, world->path);
		arena_done(&reads.arena);
		world_free(world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_value_of_any_row_makes_a_start_a_read_or_a_turn_abort),
		cmocka_unit_test(a_start_names_the_file_the_table_the_row_and_what_to_do),
		cmocka_unit_test(a_read_or_a_turn_names_them_too),
	};

	return cmocka_run_group_tests_name("rows that we never wrote", tests, NULL, NULL);
}
