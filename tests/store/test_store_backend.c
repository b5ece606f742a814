/*
 * What every backend does: one suite, run over each of them. A backend under test starts empty.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/take.h"
#include "sqlite_place.h"
#include "store/backend.h"
#include "backend/memory.h"
#include "postgres_place.h"
#include "store/sqlite.h"

struct host {
	const char *name;
	struct backend *(*open)(struct place *place); /* NULL: PostgreSQL */
};

static const struct host *host; /* whose turn it is */

struct bench {
	struct place place;
	char url[512]; /* of a store in PostgreSQL; else empty */
	struct backend *backend;
	const struct backend_ops *ops;
	struct arena arena;
};

static struct backend *open_memory(struct place *place)
{
	(void)place;
	return memory_open();
}

static struct backend *open_sqlite(struct place *place)
{
	struct sqlite_options options = {.path = place->store, .no_ballast = true};
	struct backend *backend = NULL;

	assert_int_equal(sqlite_open(&options, &backend, NULL), 0);
	return backend;
}

static int bench_setup(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	place_make(&bench->place);
	arena_init(&bench->arena, 1 << 20);
	if (!host->open)
		postgres_place(bench->url, sizeof bench->url);
	bench->backend = host->open ? host->open(&bench->place) : postgres_open_at(bench->url);
	bench->ops = bench->backend->ops;
	*state = bench;
	return 0;
}

static int bench_teardown(void **state)
{
	struct bench *bench = *state;

	bench->ops->close(bench->backend);
	arena_done(&bench->arena);
	place_remove(&bench->place);
	if (bench->url[0])
		postgres_remove(bench->url);
	free(bench);
	return 0;
}

static void begin(struct bench *bench)
{
	assert_int_equal(bench->ops->begin(bench->backend), 0);
}

static void commit(struct bench *bench)
{
	assert_int_equal(backend_commit(bench->backend), 0);
}

#define put(bench, what, ...)    assert_int_equal((bench)->ops->put_##what((bench)->backend, __VA_ARGS__), 0)
#define drop(bench, what, ...)   assert_int_equal((bench)->ops->delete_##what((bench)->backend, __VA_ARGS__), 0)
#define absent(bench, call, ...) assert_int_equal((bench)->ops->call((bench)->backend, __VA_ARGS__), -ENOENT)
#define found(bench, call, ...)  assert_int_equal((bench)->ops->call((bench)->backend, __VA_ARGS__), 0)

static void assert_span(struct span span, struct span expected)
{
	assert_int_equal(span.len, expected.len);
	assert_memory_equal(span.data ? span.data : "", expected.data ? expected.data : "", span.len);
}

/* ---- rows ---- */

static struct task_row plain_task(int64_t seq)
{
	return (struct task_row){
		.task = {.seq = seq,
			.created_ms = 1000 + seq,
			.queue = 1,
			.state = TASK_READY,
			.version = seq},
		.task.updated_ms = 2000 + seq,
	};
}

/* Every field has a value that no other field of its width has, at the edge of its range where one is. */
static struct task_row extreme_task(int64_t seq)
{
	return (struct task_row){
		.task = {.seq = seq,
			.created_ms = INT64_MAX,
			.queue = UINT32_MAX,
			.owner = UINT32_MAX - 1,
			.requires = UINT32_MAX - 2,
			.executor = UINT32_MAX - 3,
			.priority = INT32_MIN,
			.timeout_ms = UINT32_MAX - 4,
			.max_attempts = UINT32_MAX - 5,
			.start_by_ms = INT64_MAX - 1,
			.finish_by_ms = INT64_MIN,
			.keyed = true,
			.has_parent = false,
			.named_id = true,
			.state = TASK_RUNNING,
			.ready_at_ms = INT64_MIN + 1,
			.attempt = UINT32_MAX - 6,
			.spent = UINT32_MAX - 7,
			.crashes = UINT32_MAX - 8,
			.interruptions = UINT32_MAX - 9,
			.open_parents = UINT32_MAX - 10,
			.dead_parents = UINT32_MAX - 11,
			.resume_host = UINT32_MAX - 30,
			.resume_until_ms = INT64_MAX - 30,
			.fence = UINT64_MAX,
			.ended = ENDED_LOST,
			.code = CODE_DEADLINE,
			.version = INT64_MAX - 2,
			.claim = {.clock = CLOCK_WORKER,
				.lease = {INT64_MIN + 2, UINT32_MAX - 12},
				.verify_at_ms = INT64_MAX - 3,
				.run_until_ms = INT64_MAX - 4,
				.run_ms = INT64_MAX - 5,
				.asked_at_ms = INT64_MAX - 5,
				.claimed_wall_ms = INT64_MAX - 6,
				.request = UINT64_MAX - 1,
				.named = true,
				.stopping = true,
				.reported = true,
				.reissued = 5}},
		.holder = SPAN("w\xc3\xb6rker \x01"),
		.task.updated_ms = INT64_MAX - 7,
	};
}

static void assert_claim(const struct claim *claim, const struct claim *expected)
{
#define SAME(field) assert_int_equal(claim->field, expected->field)
	assert_int_equal(claim->holder, 0); /* the text is stored, not the number */
	SAME(clock);
	SAME(lease.deadline_ms);
	SAME(lease.granted_ms);
	SAME(verify_at_ms);
	SAME(run_until_ms);
	SAME(run_ms);
	SAME(asked_at_ms);
	SAME(claimed_wall_ms);
	SAME(request);
	SAME(named);
	SAME(stopping);
	SAME(reported);
	SAME(reissued);
#undef SAME
}

static void assert_task(const struct task_row *row, const struct task_row *expected)
{
#define SAME(field) assert_int_equal(row->task.field, expected->task.field)
	SAME(seq);
	SAME(created_ms);
	SAME(queue);
	SAME(owner);
	SAME(requires);
	SAME(executor);
	SAME(priority);
	SAME(timeout_ms);
	SAME(max_attempts);
	SAME(start_by_ms);
	SAME(finish_by_ms);
	SAME(keyed);
	SAME(has_parent);
	SAME(named_id);
	SAME(state);
	SAME(ready_at_ms);
	SAME(attempt);
	SAME(spent);
	SAME(crashes);
	SAME(interruptions);
	SAME(open_parents);
	SAME(dead_parents);
	SAME(resume_host);
	SAME(resume_until_ms);
	SAME(fence);
	SAME(ended);
	SAME(code);
	SAME(version);
#undef SAME
	assert_claim(&row->task.claim, &expected->task.claim);
	assert_span(row->holder, expected->holder);
	assert_int_equal(row->task.updated_ms, expected->task.updated_ms);
}

static void assert_stored_task(struct bench *bench, const struct task_row *expected)
{
	struct task_row row;

	found(bench, get_task, expected->task.seq, &bench->arena, &row);
	assert_task(&row, expected);
}

/* What a scan or a page gave. */
struct catch
{
	int64_t keys[32];
	int count;
	int verdict_after; /* end the scan with verdict 7 at this row; 0: never */
	struct task_row tasks[8];
	struct span datas[32];
	struct arena *arena;
};

static int collect(struct catch *rows, int64_t key)
{
	assert_true(rows->count < 32);
	rows->keys[rows->count++] = key;
	return rows->count == rows->verdict_after ? 7 : 0;
}

static int collect_data(void *context, int64_t seq, struct span data)
{
	struct catch *rows = context;

	if (rows->arena)
		assert_int_equal(arena_copy(rows->arena, data, &rows->datas[rows->count]), 0);
	return collect(rows, seq);
}

static int collect_task(void *context, const struct task_row *row)
{
	struct catch *rows = context;

	assert_true(rows->count < 8);
	rows->tasks[rows->count] = *row;
	if (rows->arena)
		assert_int_equal(arena_copy(rows->arena, row->holder, &rows->tasks[rows->count].holder), 0);
	return collect(rows, row->task.seq);
}

static int collect_edge(void *context, const struct edge_row *row)
{
	return collect(context, row->parent * 100 + row->child * 10 + (row->done ? 2 : row->dead));
}

static void assert_keys(const struct catch *rows, int count, const int64_t *keys)
{
	assert_int_equal(rows->count, count);
	for (int i = 0; i < count; i++)
		assert_int_equal(rows->keys[i], keys[i]);
}

#define ASSERT_KEYS(rows, ...) \
	assert_keys(rows, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

/* ---- round trips ---- */

static void a_task_comes_back_as_it_was_put(void **state)
{
	struct bench *bench = *state;
	struct task_row plain = plain_task(1), extreme = extreme_task(INT64_MAX - 1);

	begin(bench);
	put(bench, task, &plain, true);
	put(bench, task, &extreme, true);
	commit(bench);
	assert_stored_task(bench, &plain);
	assert_stored_task(bench, &extreme);
}

static void each_field_of_a_task_is_kept_by_itself(void **state)
{
	struct bench *bench = *state;
	struct task_row row[6];

	for (int i = 0; i < 6; i++)
		row[i] = plain_task(i + 1);
	row[0].task.has_parent = true;
	row[1].task.dead_parents = 1;
	row[2].task.ended = ENDED_COMPLETE;
	row[3].task.fence = 1;
	row[4].task.priority = -1;
	row[5].task.code = CODE_OTHER;
	begin(bench);
	for (int i = 0; i < 6; i++)
		put(bench, task, &row[i], true);
	commit(bench);
	for (int i = 0; i < 6; i++)
		assert_stored_task(bench, &row[i]);
}

static void of_what_is_put_twice_in_a_turn_the_last_one_counts(void **state)
{
	struct bench *bench = *state;
	struct task_row row, got;
	struct span body;

	begin(bench);
	for (int64_t seq = 1; seq <= 40; seq++) {
		row = plain_task(seq);
		put(bench, task, &row, true);
	}
	commit(bench);
	begin(bench);
	for (int64_t i = 0; i < 80; i++) { /* every one twice, in no order */
		row = plain_task(1 + i * 17 % 40);
		row.task.attempt = i < 40 ? 1 : 2;
		put(bench, task, &row, false);
		put(bench, body, row.task.seq, i < 40 ? SPAN("first") : SPAN("last"));
	}
	commit(bench);
	for (int64_t seq = 1; seq <= 40; seq++) {
		found(bench, get_task, seq, &bench->arena, &got);
		assert_int_equal(got.task.attempt, 2);
		found(bench, get_body, seq, &bench->arena, &body);
		assert_span(body, SPAN("last"));
	}
}

static void a_task_that_is_put_again_is_replaced(void **state)
{
	struct bench *bench = *state;
	struct task_row row = plain_task(3);

	begin(bench);
	put(bench, task, &row, true);
	commit(bench);
	begin(bench);
	row.task.state = TASK_DONE;
	row.task.attempt = 2;
	put(bench, task, &row, false);
	commit(bench);
	assert_stored_task(bench, &row);
}

static void a_claim_that_ended_leaves_nothing(void **state)
{
	struct bench *bench = *state;
	struct task_row row = extreme_task(3);

	begin(bench);
	put(bench, task, &row, true);
	commit(bench);
	begin(bench);
	row.holder = (struct span){0};
	row.task.claim = (struct claim){0};
	row.task.state = TASK_READY;
	put(bench, task, &row, false);
	commit(bench);
	assert_stored_task(bench, &row);
}

static void bytes_come_back_whatever_they_are(void **state)
{
	struct bench *bench = *state;
	static const char all[] = "\x00\x01\xff\xfe' \" \n\x00";
	struct span bytes = {all, sizeof(all)}, got;

	begin(bench);
	put(bench, body, 1, bytes);
	put(bench, extra, 1, EXTRA_RESULT, INT64_MIN, bytes);
	put(bench, event, 1, bytes);
	put(bench, base, 1, bytes);
	commit(bench);
	found(bench, get_body, 1, &bench->arena, &got);
	assert_span(got, bytes);
	found(bench, get_extra, 1, EXTRA_RESULT, INT64_MIN, &bench->arena, &got);
	assert_span(got, bytes);
	found(bench, get_event, 1, &bench->arena, &got);
	assert_span(got, bytes);
	found(bench, get_base, 1, &bench->arena, &got);
	assert_span(got, bytes);
}

static void empty_bytes_are_there_and_empty(void **state)
{
	struct bench *bench = *state;
	struct span nothing = {0}, got = SPAN("x");

	begin(bench);
	put(bench, body, 1, nothing);
	put(bench, extra, 1, EXTRA_ERROR, 0, nothing);
	put(bench, event, 1, nothing);
	commit(bench);
	found(bench, get_body, 1, &bench->arena, &got);
	assert_int_equal(got.len, 0);
	got = SPAN("x");
	found(bench, get_extra, 1, EXTRA_ERROR, 0, &bench->arena, &got);
	assert_int_equal(got.len, 0);
	got = SPAN("x");
	found(bench, get_event, 1, &bench->arena, &got);
	assert_int_equal(got.len, 0);
}

static void large_bytes_come_back_whole(void **state)
{
	struct bench *bench = *state;
	size_t bytes = 300 * 1000;
	cleanup(free_at) char *data = malloc(bytes);
	struct span got;

	for (size_t i = 0; i < bytes; i++)
		data[i] = (char)(i * 31);
	begin(bench);
	put(bench, body, 1, (struct span){data, bytes});
	commit(bench);
	found(bench, get_body, 1, &bench->arena, &got);
	assert_span(got, (struct span){data, bytes});
}

/* Every tenth is a large one, every seventh is not there. */
static struct span nth_body(int64_t seq, char text[1000])
{
	memset(text, 'a' + (int)(seq % 26), 1000);
	int len = snprintf(text, 1000, "body %d ", (int)seq);

	return (struct span){text, seq % 10 == 0 ? 1000 : (size_t)len};
}

static void assert_nth_body(struct bench *bench, int64_t seq)
{
	char text[1000];
	struct span got;

	if (seq % 7 == 0) {
		absent(bench, get_body, seq, &bench->arena, &got);
		return;
	}
	found(bench, get_body, seq, &bench->arena, &got);
	assert_span(got, nth_body(seq, text));
}

/* A backend may keep the latest in memory, and read ahead of whoever asks for one after the other. */
static void bodies_are_the_right_ones_in_whatever_order(void **state)
{
	struct bench *bench = *state;
	char text[1000];
	struct span got;

	begin(bench);
	for (int64_t seq = 1; seq <= 2000; seq++) {
		if (seq % 7 != 0)
			put(bench, body, seq, nth_body(seq, text));
	}
	commit(bench);
	for (int64_t seq = 1; seq <= 300; seq++)
		assert_nth_body(bench, seq);
	for (int64_t seq = 2000; seq > 300; seq -= 13)
		assert_nth_body(bench, seq);
	begin(bench);
	put(bench, body, 411, SPAN("never"));
	bench->ops->rollback(bench->backend);
	for (int64_t seq = 411; seq <= 412; seq++) /* and maybe those behind it */
		assert_nth_body(bench, seq);
	begin(bench);
	put(bench, body, 415, SPAN("another"));
	drop(bench, task, 416);
	commit(bench);
	found(bench, get_body, 415, &bench->arena, &got);
	assert_span(got, SPAN("another"));
	absent(bench, get_body, 416, &bench->arena, &got);
	for (int64_t seq = 417; seq <= 450; seq++)
		assert_nth_body(bench, seq);
}

static void extras_differ_by_kind_and_number(void **state)
{
	struct bench *bench = *state;
	struct span got;

	begin(bench);
	put(bench, extra, 1, EXTRA_ORPHAN, 7, SPAN("seven"));
	put(bench, extra, 1, EXTRA_ORPHAN, 8, SPAN("eight"));
	put(bench, extra, 1, EXTRA_RESULT, 7, SPAN("result"));
	put(bench, extra, 1, EXTRA_RESULT, 7, SPAN("better result"));
	drop(bench, extra, 1, EXTRA_ORPHAN, 8);
	commit(bench);
	found(bench, get_extra, 1, EXTRA_ORPHAN, 7, &bench->arena, &got);
	assert_span(got, SPAN("seven"));
	found(bench, get_extra, 1, EXTRA_RESULT, 7, &bench->arena, &got);
	assert_span(got, SPAN("better result"));
	absent(bench, get_extra, 1, EXTRA_ORPHAN, 8, &bench->arena, &got);
	absent(bench, get_extra, 2, EXTRA_ORPHAN, 7, &bench->arena, &got);
}

static void what_was_never_put_is_not_there(void **state)
{
	struct bench *bench = *state;
	struct worker_row worker;
	struct idem_row idem;
	struct task_row task;
	struct span span;
	int64_t number;

	absent(bench, get_task, 1, &bench->arena, &task);
	absent(bench, get_body, 1, &bench->arena, &span);
	absent(bench, get_extra, 1, EXTRA_RESULT, 0, &bench->arena, &span);
	absent(bench, get_event, 1, &bench->arena, &span);
	absent(bench, get_base, 1, &bench->arena, &span);
	absent(bench, get_worker, SPAN("w"), &bench->arena, &worker);
	absent(bench, get_idem, SPAN("p"), SPAN("k"), &idem);
	absent(bench, get_meta, META_TASK_FLOOR, &number);
	absent(bench, find_id, SPAN("i"), &number);
	absent(bench, find_key, SPAN("k"), &number);
	assert_null(bench->backend->complaint);
}

static void ids_and_keys_are_found_to_the_byte(void **state)
{
	struct bench *bench = *state;
	struct span odd = {"a\0b", 3};
	int64_t seq;

	begin(bench);
	put(bench, id, SPAN("Deploy-1"), 5);
	put(bench, key, odd, 6);
	put(bench, key, SPAN("a"), 7);
	commit(bench);
	found(bench, find_id, SPAN("Deploy-1"), &seq);
	assert_int_equal(seq, 5);
	absent(bench, find_id, SPAN("deploy-1"), &seq);
	absent(bench, find_id, SPAN("Deploy-"), &seq);
	found(bench, find_key, odd, &seq);
	assert_int_equal(seq, 6);
	found(bench, find_key, SPAN("a"), &seq);
	assert_int_equal(seq, 7);
	begin(bench);
	drop(bench, key, SPAN("a"));
	commit(bench);
	absent(bench, find_key, SPAN("a"), &seq);
	found(bench, find_key, odd, &seq);
}

static struct worker_row extreme_worker(struct span id)
{
	return (struct worker_row){
		.worker = {.state = WORKER_INACTIVE,
			.ended = WORKER_REPLACED,
			.named = true,
			.token = UINT64_MAX,
			.lease = {INT64_MAX, UINT32_MAX},
			.stored_deadline_ms = INT64_MAX,
			.slot = UINT32_MAX - 1,
			.capabilities = UINT32_MAX - 2,
			.executors = UINT32_MAX - 3,
			.any_executor = true,
			.max_concurrent = UINT32_MAX - 4,
			.registered_ms = INT64_MIN,
			.last_beat_ms = INT64_MAX - 2,
			.process = {UINT32_MAX - 6, UINT64_MAX, UINT64_MAX - 1, UINT32_MAX - 7,
				UINT64_MAX - 2}},
		.id = id,
		.instance = UINT32_MAX - 5,
		.metadata = SPAN("{\"host\":\"a\"}"),
		.ended_ms = INT64_MAX - 3,
	};
}

static void assert_worker(const struct worker_row *row, const struct worker_row *expected)
{
#define SAME(field) assert_int_equal(row->field, expected->field)
	SAME(worker.handle); /* 0: not stored */
	SAME(worker.held);
	SAME(worker.state);
	SAME(worker.ended);
	SAME(worker.named);
	SAME(worker.token);
	SAME(worker.lease.deadline_ms);
	SAME(worker.lease.granted_ms);
	SAME(worker.stored_deadline_ms);
	SAME(worker.slot);
	SAME(worker.capabilities);
	SAME(worker.executors);
	SAME(worker.any_executor);
	SAME(worker.max_concurrent);
	SAME(worker.registered_ms);
	SAME(worker.last_beat_ms);
	SAME(worker.process.host);
	SAME(worker.process.boot_hi);
	SAME(worker.process.boot_lo);
	SAME(worker.process.pid);
	SAME(worker.process.start);
	SAME(instance);
	SAME(ended_ms);
#undef SAME
	assert_span(row->id, expected->id);
	assert_span(row->metadata, expected->metadata);
}

static void a_worker_comes_back_as_it_was_put(void **state)
{
	struct bench *bench = *state;
	struct worker_row extreme = extreme_worker(SPAN("w-1")), plain = {.id = SPAN("w-2")}, got;

	plain.worker.state = WORKER_ACTIVE;
	begin(bench);
	put(bench, worker, &extreme);
	put(bench, worker, &plain);
	commit(bench);
	found(bench, get_worker, SPAN("w-1"), &bench->arena, &got);
	assert_worker(&got, &extreme);
	found(bench, get_worker, SPAN("w-2"), &bench->arena, &got);
	assert_worker(&got, &plain);
	begin(bench);
	drop(bench, worker, SPAN("w-1"));
	commit(bench);
	absent(bench, get_worker, SPAN("w-1"), &bench->arena, &got);
	found(bench, get_worker, SPAN("w-2"), &bench->arena, &got);
}

static int collect_worker(void *context, const struct worker_row *row)
{
	return collect(context, row->id.data[0]);
}

static void workers_are_scanned_in_order_of_id(void **state)
{
	struct bench *bench = *state;
	struct catch rows = {0};

	begin(bench);
	put(bench, worker, &(struct worker_row){.id = SPAN("b")});
	put(bench, worker, &(struct worker_row){.id = SPAN("a")});
	put(bench, worker, &(struct worker_row){.id = SPAN("C")});
	commit(bench);
	found(bench, scan_workers, collect_worker, &rows);
	ASSERT_KEYS(&rows, 'C', 'a', 'b');
}

static int collect_small(void *context, struct span key, struct span data)
{
	return collect_data(context, key.data[0], data);
}

static void small_records_come_back_in_order_of_key_and_by_kind(void **state)
{
	struct bench *bench = *state;
	const struct span first = {0};
	struct catch rows = {0}, page = {0}, others = {0};
	struct span data;

	begin(bench);
	put(bench, small, SMALL_QUEUE, SPAN("b"), SPAN("old"));
	put(bench, small, SMALL_QUEUE, SPAN("b"), SPAN("new"));
	put(bench, small, SMALL_QUEUE, SPAN("a"), SPAN(""));
	put(bench, small, SMALL_QUEUE, SPAN("C"), SPAN("c\0c"));
	put(bench, small, SMALL_SLOT, SPAN("d"), SPAN("slot"));
	commit(bench);
	found(bench, page_small, SMALL_QUEUE, first, UINT32_MAX, collect_small, &rows);
	ASSERT_KEYS(&rows, 'C', 'a', 'b');
	found(bench, page_small, SMALL_QUEUE, SPAN("C"), 1, collect_small, &page);
	ASSERT_KEYS(&page, 'a');
	found(bench, page_small, SMALL_SLOT, first, 9, collect_small, &others);
	ASSERT_KEYS(&others, 'd');
	found(bench, get_small, SMALL_QUEUE, SPAN("b"), &bench->arena, &data);
	assert_true(span_equal(data, SPAN("new")));
	assert_int_equal(
		bench->ops->get_small(bench->backend, SMALL_QUEUE, SPAN("d"), &bench->arena, &data), -ENOENT);
}

static void a_small_record_that_is_deleted_is_gone_and_no_other(void **state)
{
	struct bench *bench = *state;
	struct catch rows = {0};

	begin(bench);
	put(bench, small, SMALL_QUEUE, SPAN("a"), SPAN("1"));
	put(bench, small, SMALL_SLOT, SPAN("a"), SPAN("1"));
	assert_int_equal(bench->ops->delete_small(bench->backend, SMALL_QUEUE, SPAN("a")), 0);
	assert_int_equal(bench->ops->delete_small(bench->backend, SMALL_QUEUE, SPAN("none")), 0);
	commit(bench);
	found(bench, page_small, SMALL_QUEUE, (struct span){0}, 9, collect_small, &rows);
	assert_int_equal(rows.count, 0);
	found(bench, page_small, SMALL_SLOT, (struct span){0}, 9, collect_small, &rows);
	assert_int_equal(rows.count, 1);
}

/* The number of whoever brought it in stands before that of the name. */
static int collect_name(void *context, const struct name_row *row)
{
	return collect_data(context, row->principal * 100ll + row->id, row->text);
}

static void names_come_back_in_order(void **state)
{
	struct bench *bench = *state;
	struct catch rows = {.arena = &bench->arena};
	struct span set = {"\x1fgpu\x1flinux", 10};

	begin(bench);
	put(bench, name, &(struct name_row){2, UINT32_MAX, set});
	put(bench, name, &(struct name_row){1, 0, SPAN("default")});
	put(bench, name, &(struct name_row){30, 16, SPAN("gr\xc3\xbc\xc3\x9f")});
	commit(bench);
	found(bench, scan_names, collect_name, &rows);
	ASSERT_KEYS(&rows, 1, UINT32_MAX * 100ll + 2, 1630);
	assert_span(rows.datas[0], SPAN("default"));
	assert_span(rows.datas[1], set);
	assert_span(rows.datas[2], SPAN("gr\xc3\xbc\xc3\x9f"));
}

static struct idem_row idem_row(struct span principal, struct span key, int64_t created_ms)
{
	struct idem_row row = {
		.principal = principal, .key = key, .task = INT64_MAX, .created_ms = created_ms};

	for (int i = 0; i < 16; i++)
		row.fingerprint[i] = (unsigned char)(i * 17);
	return row;
}

static void a_request_is_found_by_both_principal_and_key(void **state)
{
	struct bench *bench = *state;
	struct idem_row row = idem_row(SPAN("ci"), SPAN("k"), INT64_MAX - 1), got;

	row.deduplicated = true;
	begin(bench);
	put(bench, idem, &row);
	commit(bench);
	found(bench, get_idem, SPAN("ci"), SPAN("k"), &got);
	assert_span(got.principal, row.principal);
	assert_span(got.key, row.key);
	assert_memory_equal(got.fingerprint, row.fingerprint, sizeof(row.fingerprint));
	assert_int_equal(got.task, row.task);
	assert_int_equal(got.created_ms, row.created_ms);
	assert_true(got.deduplicated);
	absent(bench, get_idem, SPAN("c"), SPAN("ik"), &got);
	absent(bench, get_idem, SPAN("k"), SPAN("ci"), &got);
}

static int idems_left(struct bench *bench)
{
	static const struct span keys[] = {SPAN("a"), SPAN("b"), SPAN("c"), SPAN("d")};
	struct idem_row row;
	int left = 0;

	for (int i = 0; i < 4; i++)
		left += bench->ops->get_idem(bench->backend, SPAN("p"), keys[i], &row) == 0;
	return left;
}

static void old_requests_are_forgotten_a_few_at_a_time(void **state)
{
	struct bench *bench = *state;
	struct idem_row rows[] = {
		idem_row(SPAN("p"), SPAN("a"), 100),
		idem_row(SPAN("p"), SPAN("b"), 200),
		idem_row(SPAN("p"), SPAN("c"), 300),
		idem_row(SPAN("p"), SPAN("d"), 99),
	};
	struct idem_row got;

	begin(bench);
	for (int i = 0; i < 4; i++)
		put(bench, idem, &rows[i]);
	drop(bench, idems, 300, 2);
	assert_int_equal(idems_left(bench), 2);
	drop(bench, idems, 300, 100);
	assert_int_equal(idems_left(bench), 1);
	commit(bench);
	found(bench, get_idem, SPAN("p"), SPAN("c"), &got); /* made at 300, so not before it */
}

static void meta_keeps_the_whole_range_of_a_number(void **state)
{
	struct bench *bench = *state;
	int64_t value;

	begin(bench);
	put(bench, meta, META_BOOT_HI, INT64_MIN);
	put(bench, meta, META_BOOT_LO, INT64_MAX);
	put(bench, meta, META_BOOT_LO, -1);
	commit(bench);
	found(bench, get_meta, META_BOOT_HI, &value);
	assert_int_equal(value, INT64_MIN);
	found(bench, get_meta, META_BOOT_LO, &value);
	assert_int_equal(value, -1);
}

/* ---- edges ---- */

static void put_edges(struct bench *bench)
{
	static const struct edge_row edges[] = {
		{2, 4, false, false}, {1, 3, false, true}, {1, 2, true, false}, {3, 4, true, false}};

	for (int i = 0; i < 4; i++)
		put(bench, edge, &edges[i]);
}

static void edges_are_followed_both_ways_in_order(void **state)
{
	struct bench *bench = *state;
	struct catch down = {0}, up = {0}, none = {0}, all = {0};

	begin(bench);
	put_edges(bench);
	commit(bench);
	found(bench, children, 1, collect_edge, &down);
	ASSERT_KEYS(&down, 121, 132);
	found(bench, parents, 4, collect_edge, &up);
	ASSERT_KEYS(&up, 240, 341);
	found(bench, children, 4, collect_edge, &none);
	assert_int_equal(none.count, 0);
	found(bench, scan_edges, collect_edge, &all);
	ASSERT_KEYS(&all, 121, 132, 240, 341);
}

static void an_edge_is_replaced_and_removed(void **state)
{
	struct bench *bench = *state;
	struct catch down = {0}, up = {0};

	begin(bench);
	put_edges(bench);
	put(bench, edge, &(struct edge_row){1, 3, true, false});
	drop(bench, edge, 1, 2);
	drop(bench, edge, 9, 9); /* none: fine */
	commit(bench);
	found(bench, children, 1, collect_edge, &down);
	ASSERT_KEYS(&down, 131);
	found(bench, parents, 3, collect_edge, &up);
	ASSERT_KEYS(&up, 131);
}

/* ---- a task goes ---- */

static void put_everything(struct bench *bench, int64_t seq, struct span id)
{
	struct task_row row = plain_task(seq);

	row.task.named_id = true;
	put(bench, task, &row, true);
	put(bench, body, seq, SPAN("body"));
	put(bench, extra, seq, EXTRA_RESULT, 0, SPAN("result"));
	put(bench, extra, seq, EXTRA_ORPHAN, 3, SPAN("orphan"));
	put(bench, extra, seq, EXTRA_ID, 0, id);
	put(bench, base, seq, SPAN("base"));
	put(bench, id, id, seq);
}

static void a_deleted_task_leaves_only_its_baseline_behind(void **state)
{
	struct bench *bench = *state;
	struct catch edges = {0};
	struct task_row task;
	struct span span;
	int64_t seq;

	begin(bench);
	put_everything(bench, 2, SPAN("two"));
	put_edges(bench);
	commit(bench);
	begin(bench);
	drop(bench, task, 2);
	commit(bench);
	absent(bench, get_task, 2, &bench->arena, &task);
	absent(bench, get_body, 2, &bench->arena, &span);
	absent(bench, get_extra, 2, EXTRA_RESULT, 0, &bench->arena, &span);
	absent(bench, get_extra, 2, EXTRA_ORPHAN, 3, &bench->arena, &span);
	absent(bench, find_id, SPAN("two"), &seq);
	found(bench, get_base, 2, &bench->arena, &span);
	begin(bench);
	drop(bench, base, 2);
	commit(bench);
	absent(bench, get_base, 2, &bench->arena, &span);
	found(bench, scan_edges, collect_edge, &edges);
	ASSERT_KEYS(&edges, 132, 341);
}

static void a_deleted_task_takes_nobody_with_it(void **state)
{
	struct bench *bench = *state;
	struct task_row task;
	struct span span;
	int64_t seq;

	begin(bench);
	put_everything(bench, 1, SPAN("one"));
	put_everything(bench, 2, SPAN("two"));
	put_everything(bench, 3, SPAN("three"));
	drop(bench, task, 2);
	commit(bench);
	for (int64_t i = 1; i <= 3; i += 2) {
		found(bench, get_task, i, &bench->arena, &task);
		found(bench, get_body, i, &bench->arena, &span);
		found(bench, get_extra, i, EXTRA_ORPHAN, 3, &bench->arena, &span);
		found(bench, get_base, i, &bench->arena, &span);
	}
	found(bench, find_id, SPAN("one"), &seq);
	found(bench, find_id, SPAN("three"), &seq);
}

/* ---- transactions ---- */

static struct token extreme_token(struct span id)
{
	struct token token = {
		.id = id,
		.kind = TOKEN_METRICS,
		.name = SPAN("a name \xc3\xa9"),
		.queues = SPAN("\x1f"
			       "a\x1f"
			       "b c"),
		.created_ms = INT64_MAX,
		.expires_ms = INT64_MAX - 1,
		.revoked_ms = INT64_MIN,
		.created_by = SPAN("admin"),
		.revoked_by = SPAN("admin:x"),
	};

	for (size_t i = 0; i < sizeof token.hash; i++)
		token.hash[i] = (unsigned char)(255 - 8 * i); /* with a zero in it */
	return token;
}

static int compare_token(void *context, const struct token *token)
{
	struct token expected = extreme_token(token->id);

	assert_int_equal(token->kind, expected.kind);
	assert_memory_equal(token->hash, expected.hash, sizeof expected.hash);
	assert_span(token->name, expected.name);
	assert_span(token->queues, expected.queues);
	assert_int_equal(token->created_ms, expected.created_ms);
	assert_int_equal(token->expires_ms, expected.expires_ms);
	assert_int_equal(token->revoked_ms, expected.revoked_ms);
	assert_span(token->created_by, expected.created_by);
	assert_span(token->revoked_by, expected.revoked_by);
	return collect(context, token->id.data[0]);
}

static int collect_token(void *context, const struct token *token)
{
	return collect(context, token->kind);
}

static void tokens_come_back_in_order_until_they_are_deleted(void **state)
{
	struct bench *bench = *state;
	struct token first = extreme_token(SPAN("a1")), last = extreme_token(SPAN("z"));
	struct token plain = {.id = SPAN("z"), .kind = TOKEN_ADMIN, .name = SPAN("n")};
	struct catch rows = {0};

	begin(bench);
	put(bench, token, &plain);
	put(bench, token, &last);
	put(bench, token, &first);
	commit(bench);
	found(bench, scan_tokens, compare_token, &rows);
	assert_int_equal(rows.count, 2);
	assert_int_equal(rows.keys[0], 'a');
	assert_int_equal(rows.keys[1], 'z');
	begin(bench);
	drop(bench, token, SPAN("a1"));
	drop(bench, token, SPAN("never"));
	put(bench, token, &plain);
	commit(bench);
	rows = (struct catch){0};
	found(bench, scan_tokens, collect_token, &rows);
	assert_int_equal(rows.count, 1);
	assert_int_equal(rows.keys[0], TOKEN_ADMIN);
}

static void put_one_of_each(struct bench *bench)
{
	struct token token = extreme_token(SPAN("t"));
	struct worker_row worker = extreme_worker(SPAN("w"));
	struct idem_row idem = idem_row(SPAN("p"), SPAN("k"), 1);

	put_everything(bench, 1, SPAN("one"));
	put_edges(bench);
	put(bench, key, SPAN("k"), 1);
	put(bench, event, 1, SPAN("event"));
	put(bench, name, &(struct name_row){1, 0, SPAN("default")});
	put(bench, worker, &worker);
	put(bench, small, SMALL_SLOT, SPAN("s"), SPAN("1"));
	put(bench, small, SMALL_QUEUE, SPAN("q"), SPAN("1"));
	put(bench, token, &token);
	put(bench, idem, &idem);
	put(bench, meta, META_GENERATION, 1);
}

/* How many of the rows of put_one_of_each() there are. */
static int count_one_of_each(struct bench *bench)
{
	const struct backend_ops *ops = bench->ops;
	struct catch rows = {0};
	struct idem_row idem;
	struct span span;
	int64_t number;

	found(bench, page_tasks, 0, 8, collect_task, &rows);
	found(bench, page_events, 0, 8, collect_data, &rows);
	found(bench, page_bases, 0, 8, collect_data, &rows);
	found(bench, scan_edges, collect_edge, &rows);
	found(bench, scan_names, collect_name, &rows);
	found(bench, scan_workers, collect_worker, &rows);
	found(bench, page_small, SMALL_SLOT, (struct span){0}, 9, collect_small, &rows);
	found(bench, page_small, SMALL_QUEUE, (struct span){0}, 9, collect_small, &rows);
	found(bench, scan_tokens, collect_token, &rows);
	rows.count += ops->get_body(bench->backend, 1, &bench->arena, &span) == 0;
	rows.count += ops->get_extra(bench->backend, 1, EXTRA_RESULT, 0, &bench->arena, &span) == 0;
	rows.count += ops->get_idem(bench->backend, SPAN("p"), SPAN("k"), &idem) == 0;
	rows.count += ops->get_meta(bench->backend, META_GENERATION, &number) == 0;
	rows.count += ops->find_id(bench->backend, SPAN("one"), &number) == 0;
	rows.count += ops->find_key(bench->backend, SPAN("k"), &number) == 0;
	return rows.count;
}

static void a_transaction_sees_what_it_put(void **state)
{
	struct bench *bench = *state;

	begin(bench);
	put_one_of_each(bench);
	assert_int_equal(count_one_of_each(bench), 18);
	commit(bench);
	assert_int_equal(count_one_of_each(bench), 18);
}

static void a_rollback_forgets_what_was_put(void **state)
{
	struct bench *bench = *state;

	begin(bench);
	put_one_of_each(bench);
	bench->ops->rollback(bench->backend);
	assert_int_equal(count_one_of_each(bench), 0);
	begin(bench);
	put_one_of_each(bench); /* and the rows may be put as new ones again */
	commit(bench);
	assert_int_equal(count_one_of_each(bench), 18);
}

static void a_rollback_brings_back_what_was_deleted(void **state)
{
	struct bench *bench = *state;

	begin(bench);
	put_one_of_each(bench);
	commit(bench);
	begin(bench);
	drop(bench, task, 1);
	drop(bench, key, SPAN("k"));
	drop(bench, worker, SPAN("w"));
	drop(bench, events, 1);
	drop(bench, idems, 100, 100);
	drop(bench, edge, 3, 4);
	assert_true(count_one_of_each(bench) < 17);
	bench->ops->rollback(bench->backend);
	assert_int_equal(count_one_of_each(bench), 18);
}

static void a_rollback_brings_back_what_was_replaced(void **state)
{
	struct bench *bench = *state;
	struct task_row old = extreme_task(1), new = plain_task(1);
	struct span body;

	begin(bench);
	put(bench, task, &old, true);
	put(bench, body, 1, SPAN("old"));
	commit(bench);
	begin(bench);
	put(bench, task, &new, false);
	put(bench, body, 1, SPAN("new"));
	bench->ops->rollback(bench->backend);
	assert_stored_task(bench, &old);
	found(bench, get_body, 1, &bench->arena, &body);
	assert_span(body, SPAN("old"));
}

static void an_empty_transaction_is_fine(void **state)
{
	struct bench *bench = *state;

	begin(bench);
	commit(bench);
	begin(bench);
	bench->ops->rollback(bench->backend);
	bench->ops->rollback(bench->backend); /* again: nothing to forget */
	assert_int_equal(count_one_of_each(bench), 0);
}

/* ---- scans and pages ---- */

static void put_tasks(struct bench *bench, int64_t first, int64_t last)
{
	for (int64_t seq = first; seq <= last; seq++) {
		struct task_row row = plain_task(seq);

		put(bench, task, &row, true);
	}
}

static void pages_go_on_by_key(void **state)
{
	struct bench *bench = *state;
	struct catch first = {0}, second = {0}, last = {0};

	begin(bench);
	put_tasks(bench, 1, 3);
	put_tasks(bench, 7, 8);
	commit(bench);
	found(bench, page_tasks, 0, 2, collect_task, &first);
	ASSERT_KEYS(&first, 1, 2);
	found(bench, page_tasks, 2, 2, collect_task, &second);
	ASSERT_KEYS(&second, 3, 7);
	found(bench, page_tasks, 7, 2, collect_task, &last);
	ASSERT_KEYS(&last, 8);
}

static int collect_outline(void *context, const struct task_outline *outline)
{
	return collect(context, outline->seq);
}

static void outlines_go_backwards_by_key(void **state)
{
	struct bench *bench = *state;
	struct catch first = {0}, second = {0}, none = {0}, cut = {.verdict_after = 1};

	begin(bench);
	put_tasks(bench, 1, 3);
	put_tasks(bench, 7, 8);
	put(bench, body, 9, SPAN("no task"));
	commit(bench);
	found(bench, page_outlines, INT64_MAX, 2, collect_outline, &first);
	ASSERT_KEYS(&first, 8, 7);
	found(bench, page_outlines, 7, 8, collect_outline, &second);
	ASSERT_KEYS(&second, 3, 2, 1);
	found(bench, page_outlines, 1, 8, collect_outline, &none);
	assert_int_equal(none.count, 0);
	assert_int_equal(bench->ops->page_outlines(bench->backend, 8, 8, collect_outline, &cut), 7);
}

static int keep_outline(void *context, const struct task_outline *outline)
{
	*(struct task_outline *)context = *outline;
	return 0;
}

static void an_outline_has_the_columns_of_its_task(void **state)
{
	struct bench *bench = *state;
	struct task_row row = extreme_task(5);
	struct task_outline outline = {0};

	begin(bench);
	put(bench, task, &row, true);
	commit(bench);
	found(bench, page_outlines, 6, 1, keep_outline, &outline);
	assert_int_equal(outline.seq, 5);
	assert_int_equal(outline.created_ms, row.task.created_ms);
	assert_int_equal(outline.queue, row.task.queue);
	assert_int_equal(outline.owner, row.task.owner);
	assert_int_equal(outline.priority, row.task.priority);
	assert_int_equal(outline.state, row.task.state);
}

static void a_page_of_tasks_has_final_and_claimed_ones(void **state)
{
	struct bench *bench = *state;
	struct catch rows = {.arena = &bench->arena};
	struct task_row done = plain_task(1), claimed = extreme_task(2);

	done.task.state = TASK_DONE;
	begin(bench);
	put(bench, task, &done, true);
	put(bench, task, &claimed, true);
	commit(bench);
	found(bench, page_tasks, 0, 8, collect_task, &rows);
	ASSERT_KEYS(&rows, 1, 2);
	assert_task(&rows.tasks[0], &done);
	assert_task(&rows.tasks[1], &claimed);
}

static void events_and_baselines_are_paged_with_their_bytes(void **state)
{
	struct bench *bench = *state;
	struct catch events = {.arena = &bench->arena}, bases = {.arena = &bench->arena};

	begin(bench);
	put(bench, event, 1, SPAN("one"));
	put(bench, event, 2, SPAN("two"));
	put(bench, event, 3, SPAN("three"));
	put(bench, base, 9, SPAN("nine"));
	put(bench, base, 4, SPAN("four"));
	commit(bench);
	found(bench, page_events, 1, 8, collect_data, &events);
	ASSERT_KEYS(&events, 2, 3);
	assert_span(events.datas[1], SPAN("three"));
	found(bench, page_bases, 0, 1, collect_data, &bases);
	ASSERT_KEYS(&bases, 4);
	assert_span(bases.datas[0], SPAN("four"));
}

static void events_go_up_to_a_number(void **state)
{
	struct bench *bench = *state;
	struct catch rows = {0};

	begin(bench);
	for (int64_t seq = 1; seq <= 5; seq++)
		put(bench, event, seq, SPAN("e"));
	drop(bench, events, 3);
	commit(bench);
	found(bench, page_events, 0, 8, collect_data, &rows);
	ASSERT_KEYS(&rows, 4, 5);
}

/* Each number as bytes of its own length, so that none is taken for another. */
static void put_events(struct bench *bench, int64_t first, int64_t last)
{
	static const char bytes[256] = "";

	for (int64_t seq = first; seq <= last; seq++)
		put(bench, event, seq, ((struct span){bytes, (size_t)seq % 250}));
}

static void assert_event(struct bench *bench, int64_t seq)
{
	struct span got;

	found(bench, get_event, seq, &bench->arena, &got);
	assert_int_equal(got.len, (size_t)seq % 250);
}

static void many_events_of_one_commit_are_found_one_by_one(void **state)
{
	struct bench *bench = *state;
	struct catch rows = {.arena = &bench->arena};
	struct span got;

	begin(bench);
	put_events(bench, 1, 100);
	assert_event(bench, 60); /* amid the commit too */
	put_events(bench, 101, 300);
	commit(bench);
	for (int64_t seq = 1; seq <= 300; seq++)
		assert_event(bench, seq);
	absent(bench, get_event, 0, &bench->arena, &got);
	absent(bench, get_event, 301, &bench->arena, &got);
	found(bench, page_events, 57, 3, collect_data, &rows);
	ASSERT_KEYS(&rows, 58, 59, 60);
	assert_int_equal(rows.datas[1].len, 59);
}

static void events_end_amid_those_of_one_commit(void **state)
{
	struct bench *bench = *state;
	struct catch rows = {.arena = &bench->arena};
	struct span got;

	begin(bench);
	put_events(bench, 1, 20);
	commit(bench);
	begin(bench);
	put_events(bench, 21, 22);
	drop(bench, events, 17);
	put_events(bench, 23, 23);
	commit(bench);
	absent(bench, get_event, 17, &bench->arena, &got);
	found(bench, page_events, 0, 99, collect_data, &rows);
	ASSERT_KEYS(&rows, 18, 19, 20, 21, 22, 23);
	assert_event(bench, 18);
	begin(bench);
	drop(bench, events, 17); /* once more, and then all */
	assert_event(bench, 18);
	drop(bench, events, 23);
	commit(bench);
	absent(bench, get_event, 23, &bench->arena, &got);
}

static void events_that_were_rolled_back_never_were(void **state)
{
	struct bench *bench = *state;
	struct catch rows = {.arena = &bench->arena};

	begin(bench);
	put(bench, event, 1, SPAN("never"));
	bench->ops->rollback(bench->backend);
	begin(bench);
	put(bench, event, 1, SPAN("one"));
	commit(bench);
	found(bench, page_events, 0, 8, collect_data, &rows);
	ASSERT_KEYS(&rows, 1);
	assert_span(rows.datas[0], SPAN("one"));
}

static void a_large_event_stands_among_small_ones(void **state)
{
	struct bench *bench = *state;
	static const char large[100 * 1000] = "";
	struct span got;

	begin(bench);
	put(bench, event, 1, SPAN("one"));
	put(bench, event, 2, ((struct span){large, sizeof large}));
	put(bench, event, 3, SPAN("three"));
	commit(bench);
	found(bench, get_event, 2, &bench->arena, &got);
	assert_int_equal(got.len, sizeof large);
	found(bench, get_event, 3, &bench->arena, &got);
	assert_span(got, SPAN("three"));
}

static void rows_of_one_commit_are_found_amid_it(void **state)
{
	struct bench *bench = *state;
	struct catch rows = {.arena = &bench->arena};
	struct task_row changed = plain_task(2);
	struct span got;

	begin(bench);
	put_tasks(bench, 1, 3);
	put(bench, body, 2, SPAN("two"));
	changed.task.priority = 7;
	put(bench, task, &changed, false);
	assert_stored_task(bench, &changed);
	put(bench, body, 2, SPAN("two again"));
	drop(bench, task, 3);
	found(bench, page_tasks, 0, 8, collect_task, &rows);
	ASSERT_KEYS(&rows, 1, 2);
	found(bench, get_body, 2, &bench->arena, &got);
	assert_span(got, SPAN("two again"));
	commit(bench);
	assert_stored_task(bench, &changed);
}

static void more_rows_than_are_written_at_once_are_all_there(void **state)
{
	struct bench *bench = *state;
	static const char body[1000] = "b";
	struct task_row row;
	struct span got;

	begin(bench);
	for (int64_t seq = 1; seq <= 2000; seq++) {
		row = plain_task(seq);
		put(bench, task, &row, true);
		put(bench, body, seq, ((struct span){body, 500 + (size_t)seq % 500}));
	}
	commit(bench);
	for (int64_t seq = 1; seq <= 2000; seq++) {
		row = plain_task(seq);
		assert_stored_task(bench, &row);
		found(bench, get_body, seq, &bench->arena, &got);
		assert_int_equal(got.len, 500 + (size_t)seq % 500);
		arena_reset(&bench->arena);
	}
}

static void rows_that_were_rolled_back_never_were(void **state)
{
	struct bench *bench = *state;
	struct catch rows = {.arena = &bench->arena};
	struct task_row row;
	struct span got;

	begin(bench);
	put_tasks(bench, 1, 2);
	put(bench, body, 1, SPAN("never"));
	bench->ops->rollback(bench->backend);
	begin(bench);
	put_tasks(bench, 3, 3);
	commit(bench);
	found(bench, page_tasks, 0, 8, collect_task, &rows);
	ASSERT_KEYS(&rows, 3);
	absent(bench, get_task, 1, &bench->arena, &row);
	absent(bench, get_body, 1, &bench->arena, &got);
}

static void a_callback_ends_its_scan(void **state)
{
	struct bench *bench = *state;
	struct catch rows = {.verdict_after = 2}, again = {0};
	struct backend_facts facts;

	begin(bench);
	put_tasks(bench, 1, 5);
	put_edges(bench);
	commit(bench);
	assert_int_equal(bench->ops->page_tasks(bench->backend, 0, 5, collect_task, &rows), 7);
	assert_int_equal(rows.count, 2);
	rows = (struct catch){.verdict_after = 1};
	assert_int_equal(bench->ops->scan_live_tasks(bench->backend, collect_task, &rows, &facts), 7);
	assert_int_equal(rows.count, 1);
	rows = (struct catch){.verdict_after = 1};
	assert_int_equal(bench->ops->children(bench->backend, 1, collect_edge, &rows), 7);
	found(bench, children, 1, collect_edge, &again);
	assert_int_equal(again.count, 2);
}

static int look_up_another(void *context, const struct task_row *row)
{
	struct bench *bench = context;
	struct catch edges = {0};
	struct task_row other;

	found(bench, get_task, 6 - row->task.seq, &bench->arena, &other);
	assert_int_equal(other.task.seq, 6 - row->task.seq);
	found(bench, children, row->task.seq, collect_edge, &edges);
	return 0;
}

static void a_callback_may_look_other_rows_up(void **state)
{
	struct bench *bench = *state;
	struct backend_facts facts;

	begin(bench);
	put_tasks(bench, 1, 5);
	put_edges(bench);
	commit(bench);
	found(bench, scan_live_tasks, look_up_another, bench, &facts);
	found(bench, page_tasks, 0, 5, look_up_another, bench);
	assert_int_equal(facts.last_task, 5);
}

static void the_live_scan_gives_whole_rows_and_skips_final_ones(void **state)
{
	struct bench *bench = *state;
	struct catch rows = {.arena = &bench->arena};
	struct task_row plain = plain_task(1), claimed = extreme_task(5), tried = plain_task(6);
	struct backend_facts facts;

	tried.task.attempt = 1;
	begin(bench);
	put(bench, task, &plain, true);
	for (int i = 0; i < 3; i++) {
		struct task_row final = plain_task(2 + i);

		final.task.state = (enum task_state[]){TASK_DONE, TASK_FAILED, TASK_CANCELLED}[i];
		put(bench, task, &final, true);
	}
	put(bench, task, &claimed, true);
	put(bench, task, &tried, true);
	commit(bench);
	found(bench, scan_live_tasks, collect_task, &rows, &facts);
	ASSERT_KEYS(&rows, 1, 5, 6);
	assert_task(&rows.tasks[0], &plain);
	assert_task(&rows.tasks[1], &claimed);
	assert_task(&rows.tasks[2], &tried);
	assert_int_equal(facts.finals, 3);
}

static void an_empty_store_has_no_facts(void **state)
{
	struct bench *bench = *state;
	struct catch rows = {0};
	struct backend_facts facts = {9, 9, 9, 9};

	found(bench, scan_live_tasks, collect_task, &rows, &facts);
	assert_int_equal(rows.count, 0);
	assert_int_equal(facts.last_event, 0);
	assert_int_equal(facts.last_task, 0);
	assert_int_equal(facts.shadow_ids, 0);
	assert_int_equal(facts.finals, 0);
}

static void facts_are_those_of_the_whole_store(void **state)
{
	static const struct span ids[] = {SPAN("t-1"), SPAN("t-7k3"), SPAN("t-"), SPAN("t-A"), SPAN("t-1.2"),
		SPAN("task-1"), SPAN("t.1"), SPAN("s-1"), SPAN("T-1")};
	struct bench *bench = *state;
	struct catch rows = {0};
	struct task_row last = plain_task(40);
	struct backend_facts facts;

	last.task.state = TASK_DONE;
	begin(bench);
	put(bench, task, &last, true); /* final, and still the last */
	put(bench, event, 17, SPAN("e"));
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		put(bench, id, ids[i], (int64_t)i + 1);
	commit(bench);
	found(bench, scan_live_tasks, collect_task, &rows, &facts);
	assert_int_equal(facts.last_task, 40);
	assert_int_equal(facts.last_event, 17);
	assert_int_equal(facts.shadow_ids, 2);
	assert_int_equal(facts.finals, 1);
}

static void the_last_event_may_be_folded_away(void **state)
{
	struct bench *bench = *state;
	struct catch rows = {0};
	struct backend_facts facts;

	begin(bench);
	put(bench, event, 17, SPAN("e"));
	drop(bench, events, 17);
	put(bench, meta, META_EVENT_BASE, 17);
	commit(bench);
	found(bench, scan_live_tasks, collect_task, &rows, &facts);
	assert_int_equal(facts.last_event, 17);
}

static void upkeep_changes_no_row(void **state)
{
	struct bench *bench = *state;

	begin(bench);
	put_one_of_each(bench);
	commit(bench);
	found(bench, checkpoint, false);
	found(bench, checkpoint, true);
	assert_int_equal(bench->ops->relieve(bench->backend), 0);
	assert_int_equal(bench->ops->reserve(bench->backend), 0);
	assert_int_equal(count_one_of_each(bench), 18);
}

#define BENCH_CASE(function) cmocka_unit_test_setup_teardown(function, bench_setup, bench_teardown)

static const struct CMUnitTest cases[] = {
	BENCH_CASE(a_task_comes_back_as_it_was_put),
	BENCH_CASE(each_field_of_a_task_is_kept_by_itself),
	BENCH_CASE(a_task_that_is_put_again_is_replaced),
	BENCH_CASE(of_what_is_put_twice_in_a_turn_the_last_one_counts),
	BENCH_CASE(a_claim_that_ended_leaves_nothing),
	BENCH_CASE(bytes_come_back_whatever_they_are),
	BENCH_CASE(empty_bytes_are_there_and_empty),
	BENCH_CASE(large_bytes_come_back_whole),
	BENCH_CASE(bodies_are_the_right_ones_in_whatever_order),
	BENCH_CASE(extras_differ_by_kind_and_number),
	BENCH_CASE(what_was_never_put_is_not_there),
	BENCH_CASE(ids_and_keys_are_found_to_the_byte),
	BENCH_CASE(a_worker_comes_back_as_it_was_put),
	BENCH_CASE(workers_are_scanned_in_order_of_id),
	BENCH_CASE(small_records_come_back_in_order_of_key_and_by_kind),
	BENCH_CASE(a_small_record_that_is_deleted_is_gone_and_no_other),
	BENCH_CASE(tokens_come_back_in_order_until_they_are_deleted),
	BENCH_CASE(names_come_back_in_order),
	BENCH_CASE(a_request_is_found_by_both_principal_and_key),
	BENCH_CASE(old_requests_are_forgotten_a_few_at_a_time),
	BENCH_CASE(meta_keeps_the_whole_range_of_a_number),
	BENCH_CASE(edges_are_followed_both_ways_in_order),
	BENCH_CASE(an_edge_is_replaced_and_removed),
	BENCH_CASE(a_deleted_task_leaves_only_its_baseline_behind),
	BENCH_CASE(a_deleted_task_takes_nobody_with_it),
	BENCH_CASE(a_transaction_sees_what_it_put),
	BENCH_CASE(a_rollback_forgets_what_was_put),
	BENCH_CASE(a_rollback_brings_back_what_was_deleted),
	BENCH_CASE(a_rollback_brings_back_what_was_replaced),
	BENCH_CASE(an_empty_transaction_is_fine),
	BENCH_CASE(pages_go_on_by_key),
	BENCH_CASE(outlines_go_backwards_by_key),
	BENCH_CASE(an_outline_has_the_columns_of_its_task),
	BENCH_CASE(a_page_of_tasks_has_final_and_claimed_ones),
	BENCH_CASE(events_and_baselines_are_paged_with_their_bytes),
	BENCH_CASE(events_go_up_to_a_number),
	BENCH_CASE(many_events_of_one_commit_are_found_one_by_one),
	BENCH_CASE(events_end_amid_those_of_one_commit),
	BENCH_CASE(events_that_were_rolled_back_never_were),
	BENCH_CASE(a_large_event_stands_among_small_ones),
	BENCH_CASE(rows_of_one_commit_are_found_amid_it),
	BENCH_CASE(more_rows_than_are_written_at_once_are_all_there),
	BENCH_CASE(rows_that_were_rolled_back_never_were),
	BENCH_CASE(a_callback_ends_its_scan),
	BENCH_CASE(a_callback_may_look_other_rows_up),
	BENCH_CASE(the_live_scan_gives_whole_rows_and_skips_final_ones),
	BENCH_CASE(an_empty_store_has_no_facts),
	BENCH_CASE(facts_are_those_of_the_whole_store),
	BENCH_CASE(the_last_event_may_be_folded_away),
	BENCH_CASE(upkeep_changes_no_row),
};

int main(void)
{
	static const struct host hosts[] = {
		{"memory", open_memory}, {"sqlite", open_sqlite}, {"postgres", NULL}};
	int failed = 0;

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		host = &hosts[i];
		if ((postgres_server() != NULL) == (host->open == NULL)) /* see choose_stores() */
			failed += cmocka_run_group_tests_name(host->name, cases, NULL, NULL);
	}
	return failed ? 1 : 0;
}
