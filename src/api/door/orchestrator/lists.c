/*
 * What worker connectors look at: the tasks that wait, the workers, and figures. Lists are made in slices.
 */
#include "api/door/orchestrator/orchestrator.h"

#include <errno.h>
#include <stdlib.h>

#include "api/task/slice.h"
#include "base/take.h"

enum {
	PENDING_DEFAULT = 100,
	PENDING_MAX = 200,
	WORKERS_MAX = 1000, /* of one reply */
	SCAN_TASKS = 500,   /* of one slice */
	SCAN_WORKERS = 100,
};

#define DAY_MS (24 * 60 * 60 * INT64_C(1000))

/* ---- tasks that wait ------------------------------------------------------------------------------------ */

struct pending_list {
	struct api_call *call;
	struct span worker; /* of the query */
	struct open_pass pass;
	uint32_t count;
};

/* As the original read it: a number somewhere, or the default; never too many. */
static uint32_t limit_of(struct span text)
{
	int64_t limit = 0;

	for (size_t i = 0; i < text.len && i < 9 && text.data[i] >= '0' && text.data[i] <= '9'; i++)
		limit = limit * 10 + (text.data[i] - '0');
	if (limit == 0)
		return text.len > 0 && text.data[0] == '-' ? 1 : PENDING_DEFAULT;
	return limit > PENDING_MAX ? PENDING_MAX : (uint32_t)limit;
}

/* The oldest first, whatever their priority. */
static struct task_key age_key(int64_t created_ms, int64_t seq)
{
	return (struct task_key){.created_ms = created_ms, .seq = seq};
}

static int gather_waiting(void *context, const struct task_outline *outline)
{
	struct pending_list *pending = context;
	struct task_key key = age_key(outline->created_ms, outline->seq);

	if (outline->state != TASK_READY || !principal_may_see(pending->call, outline) ||
		!store_offers(pending->call->store, outline->seq, pending->worker, pending->call->now))
		return 0;
	return task_keys_add(&pending->pass.keys, &key);
}

/* Its own claims are there for it too. */
static int gather_own(void *context, struct span id)
{
	struct pending_list *pending = context;
	struct task_document document;
	int64_t seq;

	int r = store_find_task(pending->call->store, id, &seq);
	if (r == 0)
		r = store_read_task(
			pending->call->store, seq, pending->call->now, pending->call->arena, &document);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	struct task_key key = age_key(document.task.created_ms, seq);
	return task_keys_add(&pending->pass.keys, &key);
}

static int find_own(struct pending_list *pending)
{
	struct worker_document found;

	if (pending->worker.len == 0 ||
		store_read_worker(pending->call->store, pending->worker, &found) < 0 ||
		!orchestrator_sees_worker(pending->call, &found.worker))
		return 0;
	int r = store_each_held(pending->call->store, pending->worker, gather_own, pending);
	return r == -ENOENT ? 0 : r;
}

/* Unknown parameters are ignored. */
static int read_query(struct pending_list *pending, uint32_t *ret_limit)
{
	struct api_call *call = pending->call;
	struct span name, text;
	size_t at = 0;
	int r = 0;

	while (r == 0 && http_query_next(call->request->query, &at, &name, &text)) {
		cleanup(buf_done) struct buf decoded = {.max = 8192};
		r = http_decode(text, true, &decoded);
		r = r == -ENOMEM ? r : 0; /* a bad escape is an empty value */
		if (span_equal(name, SPAN("limit")))
			*ret_limit = limit_of(buf_span(&decoded));
		if (span_equal(name, SPAN("worker_id")) && text_is_name(buf_span(&decoded), COMMAND_ID_MAX))
			r = arena_copy(call->arena, buf_span(&decoded), &pending->worker);
	}
	return r;
}

/* Is it still there for the worker? */
static bool still_waits(const struct pending_list *pending, const struct task_document *document)
{
	const struct task *task = &document->task;

	return store_offers(pending->call->store, task->seq, pending->worker, pending->call->now) ||
		(task_is_claimed(task) && span_equal(document->holder, pending->worker));
}

static int put_pending(
	void *context, const struct task_key *key, struct task_document *document, struct arena *arena)
{
	struct pending_list *pending = context;
	struct api_call *call = pending->call;
	const struct task *task = &document->task;
	bool claimed = task_is_claimed(task);
	struct json_object object;

	(void)key;
	(void)arena;
	if (!still_waits(pending, document))
		return 0;
	yyjson_doc *doc = task_body_read(document->body, call->body);
	if (pending->count++ > 0)
		buf_put_byte(call->body, ',');
	json_begin(&object, call->body);
	orchestrator_put_task(&object, document, doc);
	json_member_string_or_null(&object, "claimed_by", claimed ? document->holder : (struct span){0});
	orchestrator_time(&object, "claim_started_at", task->claim.claimed_wall_ms);
	orchestrator_time(&object, "claim_expires_at", orchestrator_claim_expires_ms(call, task));
	yyjson_doc_free(doc);
	return json_end(&object);
}

static void end_pending(struct pending_list *pending)
{
	struct api_call *call = pending->call;
	struct json_object rest = {.buf = call->body, .any = true};

	buf_put_byte(call->body, ']');
	json_member_int(&rest, "count", pending->count);
	json_member_string_or_null(&rest, "worker_id", pending->worker);
	orchestrator_put_now(call, &rest);
}

static int begin_pending(struct pending_list *pending, struct api_call *call)
{
	uint32_t limit = PENDING_DEFAULT;

	pending->call = call;
	int r = read_query(pending, &limit);
	if (r < 0)
		return r;
	task_keys_init(&pending->pass.keys, call->arena, limit);
	call_slices_begin(call, "{\"ok\":true,\"tasks\":[");
	return find_own(pending);
}

void orchestrator_pending_read(struct api_call *call)
{
	struct pending_list *pending = call_detail(call, sizeof *pending);

	call->query_taken = true;
	if (!pending)
		return;
	int r = pending->call ? 0 : begin_pending(pending, call);
	if (r == 0)
		r = open_pass_slice(call, &pending->pass, gather_waiting, put_pending, pending);
	bool more = open_pass_has_more(&pending->pass);
	if (r == 0 && !more)
		end_pending(pending);
	call_slice(call, r, more, "}");
}

/* ---- workers -------------------------------------------------------------------------------------------- */

struct known_worker {
	struct span id;
	int64_t registered_ms;
};

struct workers {
	struct api_call *call;
	struct known_worker *items;
	uint32_t count, at;
};

static int note_worker(void *context, struct span id, const struct worker *worker)
{
	struct workers *workers = context;

	if (!worker_is_alive(worker) || !orchestrator_sees_worker(workers->call, worker) ||
		workers->count == WORKERS_MAX)
		return 0;
	struct known_worker *known = &workers->items[workers->count];
	int r = arena_copy(workers->call->arena, id, &known->id);
	if (r < 0)
		return r;
	known->registered_ms = worker->registered_ms;
	workers->count++;
	return 0;
}

static int newest_first(const void *a, const void *b)
{
	const struct known_worker *left = a, *right = b;

	if (left->registered_ms != right->registered_ms)
		return left->registered_ms > right->registered_ms ? -1 : 1;
	return 0;
}

static int put_first(void *context, struct span id)
{
	struct json_object *object = context;

	json_member_string(object, "current_vtid", id);
	return 1;
}

static void put_worker(struct api_call *call, struct span id, bool *any)
{
	struct worker_document found;
	struct json_object object;

	if (store_read_worker(call->store, id, &found) < 0 || !worker_is_alive(&found.worker))
		return;
	json_put_comma(call->body, any);
	json_begin(&object, call->body);
	json_member_string(&object, "worker_id", id);
	json_member_set(call, &object, "capabilities", found.worker.capabilities);
	json_member_int(&object, "max_concurrent", found.worker.max_concurrent);
	json_member_cstr(&object, "status", "active");
	orchestrator_time(&object, "registered_at", found.worker.registered_ms);
	orchestrator_time(&object, "last_heartbeat_at", found.worker.last_beat_ms);
	int r = found.worker.held > 0 ? store_each_held(call->store, id, put_first, &object) : 0;
	if (r < 0)
		json_note(&object, r);
	else if (r == 0)
		json_member_null(&object, "current_vtid");
	json_member_raw(&object, "metadata", found.metadata.len > 0 ? found.metadata : SPAN("{}"));
	json_end(&object);
}

static void put_workers(struct workers *workers)
{
	struct api_call *call = workers->call;
	struct json_object rest = {.buf = call->body, .any = true};
	bool any = false;

	buf_put_span(call->body, SPAN("{\"ok\":true,\"workers\":["));
	qsort(workers->items, workers->count, sizeof *workers->items, newest_first);
	for (uint32_t i = 0; i < workers->count; i++)
		put_worker(call, workers->items[i].id, &any);
	buf_put_byte(call->body, ']');
	json_member_int(&rest, "count", workers->count);
	orchestrator_put_now(call, &rest);
}

void orchestrator_workers_read(struct api_call *call)
{
	struct workers *workers = call_detail(call, sizeof *workers);

	call->query_taken = true;
	if (!workers)
		return;
	workers->call = call;
	if (!workers->items)
		workers->items = arena_alloc(call->arena, WORKERS_MAX * sizeof *workers->items);
	int r = workers->items
		? store_page_workers(call->store, &workers->at, SCAN_WORKERS, note_worker, workers)
		: -ENOMEM;
	bool more = workers->at != 0;
	if (r == 0 && !more)
		put_workers(workers);
	call_slice(call, r, more, "}");
}

/* ---- figures --------------------------------------------------------------------------------------------- */

struct figures {
	struct api_call *call;
	int64_t midnight_ms, before;
	uint32_t at;
	enum { FIGURES_WORKERS, FIGURES_OPEN, FIGURES_FINAL, FIGURES_DONE } phase;
	int64_t workers, active, with_tasks, claims, pending, today;
};

static int count_worker(void *context, struct span id, const struct worker *worker)
{
	struct figures *figures = context;

	(void)id;
	if (worker->state == WORKER_UNKNOWN || !orchestrator_sees_worker(figures->call, worker))
		return 0;
	figures->workers++;
	figures->active += worker_is_alive(worker);
	figures->with_tasks += worker->held > 0;
	return 0;
}

static int count_open(void *context, const struct task_outline *outline)
{
	struct figures *figures = context;

	if (!principal_serves(&figures->call->who, name_of(figures->call, outline->queue)))
		return 0;
	figures->pending += outline->state == TASK_READY;
	figures->claims += outline->state == TASK_CLAIMED || outline->state == TASK_RUNNING;
	figures->today += outline->created_ms >= figures->midnight_ms;
	return 0;
}

/* The newest come first: the first that is of another day ends it. */
static int count_final(void *context, const struct task_outline *outline)
{
	struct figures *figures = context;

	if (outline->created_ms < figures->midnight_ms)
		return 1;
	figures->today += principal_serves(&figures->call->who, name_of(figures->call, outline->queue));
	return 0;
}

static int figures_slice(struct figures *figures)
{
	int r = 0;

	switch (figures->phase) {
	case FIGURES_WORKERS:
		r = store_page_workers(
			figures->call->store, &figures->at, SCAN_WORKERS, count_worker, figures);
		figures->phase = figures->at == 0 ? FIGURES_OPEN : FIGURES_WORKERS;
		return r;
	case FIGURES_OPEN:
		r = store_page_open(figures->call->store, &figures->at, SCAN_TASKS, count_open, figures);
		figures->phase = figures->at == 0 ? FIGURES_FINAL : FIGURES_OPEN;
		return r;
	case FIGURES_FINAL:
		r = store_page_final(
			figures->call->store, &figures->before, SCAN_TASKS, count_final, figures);
		figures->phase = r != 0 || figures->before <= 0 ? FIGURES_DONE : FIGURES_FINAL;
		return r == 1 ? 0 : r;
	case FIGURES_DONE:
		break;
	}
	return 0;
}

static void put_figures(const struct figures *figures)
{
	struct api_call *call = figures->call;
	const struct {
		const char *name;
		int64_t value;
	} rows[] = {
		{"total_workers", figures->workers},
		{"active_workers", figures->active},
		{"workers_with_tasks", figures->with_tasks},
		{"pending_tasks", figures->pending},
		{"active_claims", figures->claims},
		{"tasks_today", figures->today},
	};
	struct json_object object;

	orchestrator_put_yes(call, &object);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		json_member_int(&object, rows[i].name, rows[i].value);
	json_member_bool(&object, "execution_armed", call_is_armed(call, NULL));
	orchestrator_put_now(call, &object);
}

void orchestrator_stats_read(struct api_call *call)
{
	struct figures *figures = call_detail(call, sizeof *figures);

	call->query_taken = true;
	if (!figures)
		return;
	if (!figures->call)
		*figures = (struct figures){.call = call,
			.midnight_ms = call->now.wall_ms / DAY_MS * DAY_MS,
			.before = INT64_MAX};
	int r = figures_slice(figures);
	bool more = figures->phase != FIGURES_DONE;
	if (r == 0 && !more)
		put_figures(figures);
	call_slice(call, r, more, "}");
}
