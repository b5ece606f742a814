/*
 * Stores of every schema there ever was, frozen in tests/fixtures: each is opened in a copy and must have the
 * rows it was made with. `test_sqlite_fixture --make FILE` makes the one of today's schema.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/sendfile.h>

#include "sqlite_place.h"
#include "store/record/small.h"

/* The rows. A new schema adds to them and changes none: old files do not change either. */

static struct task_row ready_task(void)
{
	return (struct task_row){
		.task = {.seq = 1,
			.created_ms = 1768599000000,
			.queue = 1,
			.state = TASK_READY,
			.version = 1},
		.task.updated_ms = 1768599000000,
	};
}

static struct task_row running_task(void)
{
	struct task_row row = {
		.task = {.seq = 2, .queue = 1, .requires = 2, .priority = -50, .timeout_ms = 1800000},
		.holder = SPAN("worker-1"),
		.task.updated_ms = 1768599002000,
	};

	row.task.state = TASK_RUNNING;
	row.task.fence = (1ull << 63) | 7;
	row.task.attempt = 1;
	row.task.version = 3;
	row.task.named_id = true;
	row.task.claim =
		(struct claim){.clock = CLOCK_WORKER, .claimed_wall_ms = 1768599001000, .request = 99};
	row.task.claim.lease = (struct lease){123456, 60000};
	row.task.claim.stopping = true;
	return row;
}

static struct task_row done_task(void)
{
	return (struct task_row){
		.task = {.seq = 3, .queue = 1, .state = TASK_DONE, .ended = ENDED_COMPLETE, .version = 2},
	};
}

static struct worker_row worker(void)
{
	struct worker_row row = {.id = SPAN("worker-1"), .instance = 3, .metadata = SPAN("{\"pid\":7}")};

	row.worker.state = WORKER_ACTIVE;
	row.worker.token = UINT64_MAX;
	row.worker.lease = (struct lease){123456, 60000};
	row.worker.capabilities = 2;
	row.worker.max_concurrent = 4;
	return row;
}

static struct slot a_slot(void)
{
	struct slot slot;

	slot_init(&slot);
	slot.state = SLOT_QUARANTINED;
	slot.crashed_ms[0] = 5000;
	slot.restarts = 3;
	return slot;
}

static const struct token a_token = {
	.id = {"00ff", 4},
	.kind = TOKEN_WORKER,
	.hash = {1, 2, 3, [31] = 255},
	.name = {"builder", 7},
	.queues = {"\x1f"
		   "default",
		8},
	.created_ms = 1768599000000,
	.created_by = {"admin", 5},
	.expires_ms = 1771191000000,
	.revoked_ms = 1768600000000,
	.revoked_by = {"admin:root", 10},
};

static void put_tasks(struct backend *backend)
{
	struct task_row rows[] = {ready_task(), running_task(), done_task()};

	for (int i = 0; i < 3; i++)
		assert_int_equal(backend->ops->put_task(backend, &rows[i], true), 0);
	assert_int_equal(backend->ops->put_body(backend, 2, SPAN("{\"title\":\"two\"}")), 0);
	assert_int_equal(backend->ops->put_extra(backend, 3, EXTRA_RESULT, 0, SPAN("42")), 0);
	assert_int_equal(backend->ops->put_base(backend, 3, SPAN("base")), 0);
	assert_int_equal(backend->ops->put_id(backend, SPAN("VTID-2"), 2), 0);
	assert_int_equal(backend->ops->put_key(backend, SPAN("only-one"), 2), 0);
	assert_int_equal(backend->ops->put_edge(backend, &(struct edge_row){3, 1, true, false}), 0);
}

static void put_others(struct backend *backend)
{
	struct worker_row a_worker = worker();
	struct slot slot = a_slot();
	char data[SMALL_BYTES_MAX];
	struct idem_row idem = {
		.principal = SPAN("ci"), .key = SPAN("k"), .task = 2, .created_ms = 1768599000000};

	memcpy(idem.fingerprint, "0123456789abcdef", 16);
	assert_int_equal(backend->ops->put_token(backend, &a_token), 0);
	assert_int_equal(backend->ops->put_name(backend, &(struct name_row){1, 16, SPAN("default")}), 0);
	assert_int_equal(
		backend->ops->put_name(backend, &(struct name_row){2, 16, SPAN("\x1fgpu\x1flinux")}), 0);
	assert_int_equal(backend->ops->put_name(backend, &(struct name_row){3, 16, SPAN("slot-3")}), 0);
	assert_int_equal(backend->ops->put_event(backend, 3, SPAN("event")), 0);
	assert_int_equal(backend->ops->put_worker(backend, &a_worker), 0);
	assert_int_equal(
		backend->ops->put_small(backend, SMALL_SLOT, SPAN("slot-3"), small_slot_put(&slot, data)), 0);
	assert_int_equal(backend->ops->put_small(
				 backend, SMALL_QUEUE, SPAN("default"), small_queue_put(QUEUE_PAUSED, data)),
		0);
	assert_int_equal(backend->ops->put_idem(backend, &idem), 0);
	assert_int_equal(backend->ops->put_meta(backend, META_GENERATION, 1), 0);
	assert_int_equal(backend->ops->put_meta(backend, META_EVENT_BASE, 2), 0);
}

static int make(const char *path)
{
	struct backend *backend = store_open(path);

	assert_int_equal(backend->ops->begin(backend), 0);
	put_tasks(backend);
	put_others(backend);
	assert_int_equal(backend_commit(backend), 0);
	backend->ops->close(backend);
	return 0;
}

/* ---- what must be there ---- */

static void assert_text(struct span span, const char *text)
{
	assert_int_equal(span.len, strlen(text));
	assert_memory_equal(span.data, text, span.len);
}

static void assert_running_task(struct backend *backend, struct arena *arena)
{
	struct task_row expected = running_task(), row;

	assert_int_equal(backend->ops->get_task(backend, 2, arena, &row), 0);
	assert_int_equal(row.task.state, TASK_RUNNING);
	assert_int_equal(row.task.requires, expected.task.requires);
	assert_int_equal(row.task.priority, expected.task.priority);
	assert_int_equal(row.task.timeout_ms, expected.task.timeout_ms);
	assert_int_equal(row.task.fence, expected.task.fence);
	assert_int_equal(row.task.attempt, 1);
	assert_int_equal(row.task.version, 3);
	assert_true(row.task.named_id);
	assert_text(row.holder, "worker-1");
	assert_int_equal(row.task.claim.clock, CLOCK_WORKER);
	assert_int_equal(row.task.claim.lease.deadline_ms, 123456);
	assert_int_equal(row.task.claim.lease.granted_ms, 60000);
	assert_int_equal(row.task.claim.claimed_wall_ms, expected.task.claim.claimed_wall_ms);
	assert_int_equal(row.task.claim.request, 99);
	assert_true(row.task.claim.stopping);
	assert_int_equal(row.task.updated_ms, expected.task.updated_ms);
}

static void assert_around_tasks(struct backend *backend, struct arena *arena)
{
	struct span span;
	int64_t seq;

	assert_int_equal(backend->ops->get_body(backend, 2, arena, &span), 0);
	assert_text(span, "{\"title\":\"two\"}");
	assert_int_equal(backend->ops->get_extra(backend, 3, EXTRA_RESULT, 0, arena, &span), 0);
	assert_text(span, "42");
	assert_int_equal(backend->ops->get_base(backend, 3, arena, &span), 0);
	assert_text(span, "base");
	assert_int_equal(backend->ops->find_id(backend, SPAN("VTID-2"), &seq), 0);
	assert_int_equal(seq, 2);
	assert_int_equal(backend->ops->find_key(backend, SPAN("only-one"), &seq), 0);
	assert_int_equal(seq, 2);
	assert_int_equal(backend->ops->get_event(backend, 3, arena, &span), 0);
	assert_text(span, "event");
}

static void assert_others(struct backend *backend, struct arena *arena)
{
	struct worker_row row;
	struct idem_row idem;

	assert_int_equal(backend->ops->get_worker(backend, SPAN("worker-1"), arena, &row), 0);
	assert_int_equal(row.worker.token, UINT64_MAX);
	assert_int_equal(row.worker.max_concurrent, 4);
	assert_int_equal(row.instance, 3);
	assert_text(row.metadata, "{\"pid\":7}");
	assert_int_equal(backend->ops->get_idem(backend, SPAN("ci"), SPAN("k"), &idem), 0);
	assert_memory_equal(idem.fingerprint, "0123456789abcdef", 16);
	assert_int_equal(meta_value(backend, META_GENERATION), 1);
}

static int count_task(void *context, const struct task_row *row)
{
	*(int64_t *)context += row->task.seq;
	return 0;
}

static int count_edge(void *context, const struct edge_row *row)
{
	*(int64_t *)context += row->parent * 100 + row->child * 10 + row->dead;
	return 0;
}

static int count_slot(void *context, struct span key, struct span data)
{
	struct slot slot, expected = a_slot();

	assert_text(key, "slot-3");
	assert_true(small_slot_read(data, &slot));
	assert_int_equal(slot.state, expected.state);
	assert_int_equal(slot.restarts, expected.restarts);
	assert_memory_equal(slot.crashed_ms, expected.crashed_ms, sizeof slot.crashed_ms);
	++*(int64_t *)context;
	return 0;
}

static int count_queue(void *context, struct span key, struct span data)
{
	enum queue_state state;

	assert_text(key, "default");
	assert_true(small_queue_read(data, &state));
	assert_int_equal(state, QUEUE_PAUSED);
	++*(int64_t *)context;
	return 0;
}

static int count_token(void *context, const struct token *token)
{
	assert_text(token->id, "00ff");
	assert_text(token->name, "builder");
	assert_text(token->queues,
		"\x1f"
		"default");
	assert_text(token->created_by, "admin");
	assert_memory_equal(token->hash, a_token.hash, sizeof a_token.hash);
	*(int64_t *)context += token->kind * 10 + (token->revoked_ms != 0);
	return 0;
}

static void assert_scans(struct backend *backend)
{
	int64_t live = 0, edges = 0, slots = 0, queues = 0, tokens = 0;
	struct backend_facts facts;

	assert_int_equal(backend->ops->scan_live_tasks(backend, count_task, &live, &facts), 0);
	assert_int_equal(live, 1 + 2);
	assert_int_equal(facts.finals, 1);
	assert_int_equal(facts.last_task, 3);
	assert_int_equal(facts.last_event, 3);
	assert_int_equal(backend->ops->scan_edges(backend, count_edge, &edges), 0);
	assert_int_equal(edges, 311);
	const struct span first = {0};
	assert_int_equal(backend->ops->page_small(backend, SMALL_SLOT, first, 9, count_slot, &slots), 0);
	assert_int_equal(slots, 1);
	assert_int_equal(backend->ops->page_small(backend, SMALL_QUEUE, first, 9, count_queue, &queues), 0);
	assert_int_equal(queues, 1);
	assert_int_equal(backend->ops->scan_tokens(backend, count_token, &tokens), 0);
	assert_int_equal(tokens, TOKEN_WORKER * 10 + 1);
}

static void copy_file(const char *from, const char *to)
{
	cleanup(close_at) int in = open(from, O_RDONLY);
	cleanup(close_at) int out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0600);

	if (in < 0)
		fail_msg("no %s", from);
	assert_true(out >= 0);
	assert_true(sendfile(out, in, NULL, 64 << 20) > 0);
}

static void open_copy_of(struct place *place, const char *name)
{
	const char *fixtures = getenv("STINT_FIXTURES");
	cleanup(arena_done) struct arena arena;
	char path[PATH_MAX];
	struct backend *backend;

	arena_init(&arena, 1 << 16);
	snprintf(path, sizeof(path), "%s/%s", fixtures ? fixtures : "tests/fixtures", name);
	copy_file(path, place->store);
	backend = store_open(place->store);
	assert_running_task(backend, &arena);
	assert_around_tasks(backend, &arena);
	assert_others(backend, &arena);
	assert_scans(backend);
	task_commit(backend, 4);
	backend->ops->close(backend);
}

static void a_store_of_schema_1_is_opened_with_its_rows(void **state)
{
	open_copy_of(*state, "schema-001.db");
}

static void a_store_of_schema_2_is_opened_with_its_rows(void **state)
{
	open_copy_of(*state, "schema-002.db");
}

static void a_store_of_schema_3_is_opened_with_its_rows(void **state)
{
	open_copy_of(*state, "schema-003.db");
}

static void a_store_of_schema_4_is_opened_with_its_rows(void **state)
{
	open_copy_of(*state, "schema-004.db");
}

static void a_store_of_schema_1_is_restored(void **state)
{
	struct place *place = *state;
	struct backend *backend;

	open_copy_of(place, "schema-001.db");
	assert_int_equal(sqlite_restore(place->store, place->other, NULL, NULL, NULL), 0);
	backend = store_open(place->other);
	assert_true(meta_value(backend, META_GENERATION) >= 2);
	assert_int_equal(meta_value(backend, META_RESTORED), 1);
	backend->ops->close(backend);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest cases[] = {
		CASE(a_store_of_schema_1_is_opened_with_its_rows),
		CASE(a_store_of_schema_4_is_opened_with_its_rows),
		CASE(a_store_of_schema_3_is_opened_with_its_rows),
		CASE(a_store_of_schema_1_is_restored),
		CASE(a_store_of_schema_2_is_opened_with_its_rows),
	};

	if (argc == 3 && strcmp(argv[1], "--make") == 0)
		return make(argv[2]);
	return cmocka_run_group_tests(cases, NULL, NULL);
}
