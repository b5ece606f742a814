/*
 * What the store lends to the API for reading.
 */
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "server/server.h"

static struct server *of(void *context)
{
	return context;
}

static int find_task(void *context, struct span id, int64_t *ret_seq)
{
	return store_find_task(of(context)->store, id, ret_seq);
}

static int read_task(void *context, int64_t seq, struct arena *arena, struct task_document *ret_document)
{
	return store_read_task(of(context)->store, seq, of(context)->now, arena, ret_document);
}

static int read_last(void *context, struct arena *arena, struct task_document *document)
{
	return store_read_last(of(context)->store, arena, document);
}

static int read_log(void *context, int64_t seq, uint32_t attempt, int64_t after, uint32_t limit,
	struct arena *arena, struct log_piece *ret_piece)
{
	return store_read_log(of(context)->store, seq, attempt, after, limit, arena, ret_piece);
}

static int page_open(void *context, uint32_t *at, uint32_t limit,
	int (*each)(void *, const struct task_outline *), void *each_context)
{
	return store_page_open(of(context)->store, at, limit, each, each_context);
}

static int page_final(void *context, int64_t *before, uint32_t limit,
	int (*each)(void *, const struct task_outline *), void *each_context)
{
	return store_page_final(of(context)->store, before, limit, each, each_context);
}

static int page_rows(void *context, bool oldest_first, int64_t *at, uint32_t limit,
	int (*each)(void *, const struct task_outline *), void *each_context)
{
	return store_page_rows(of(context)->store, oldest_first, at, limit, each, each_context);
}

static int assignment(void *context, struct span slot, struct arena *arena, struct span *ret_queues)
{
	return store_assignment(of(context)->store, slot, arena, ret_queues);
}

static int page_assignments(void *context, int64_t *after, uint32_t limit,
	int (*each)(void *, struct span, struct span), void *each_context)
{
	return store_page_assignments(of(context)->store, after, limit, each, each_context);
}

static const struct workflows *workflows(void *context)
{
	return store_workflows(of(context)->store);
}

static const char *default_queues(void *context)
{
	return of(context)->options->default_queues;
}

static int page_events(void *context, int64_t after, uint32_t limit,
	int (*each)(void *, const struct record *), void *each_context)
{
	return store_page_events(of(context)->store, after, limit, each, each_context);
}

static int task_queue(void *context, int64_t seq, uint32_t *ret_queue)
{
	return store_task_queue(of(context)->store, seq, ret_queue);
}

static int task_id(void *context, const struct task *task, struct arena *arena, struct span *ret_id)
{
	return store_task_id(of(context)->store, task, arena, ret_id);
}

static struct reason why(void *context, const struct task *task)
{
	return store_why(of(context)->store, task, of(context)->now);
}

static int page_workers(void *context, uint32_t *at, uint32_t limit,
	int (*each)(void *, struct span, const struct worker *), void *each_context)
{
	return store_page_workers(of(context)->store, at, limit, each, each_context);
}

static int read_worker(void *context, struct span id, struct worker_document *ret_document)
{
	return store_read_worker(of(context)->store, id, ret_document);
}

static int each_held(void *context, struct span worker, int (*each)(void *, struct span), void *each_context)
{
	return store_each_held(of(context)->store, worker, each, each_context);
}

static int each_slot(void *context, int (*each)(void *, const struct slot_document *), void *each_context)
{
	return store_each_slot(of(context)->store, each, each_context);
}

static int read_slot(void *context, struct span name, struct slot_document *ret_slot)
{
	return store_read_slot(of(context)->store, name, ret_slot);
}

static int find_session(void *context, struct span label, int64_t *ret_seq)
{
	return store_find_session(of(context)->store, label, ret_seq);
}

static int read_session(void *context, int64_t seq, struct arena *arena, struct session_document *ret_session)
{
	return store_read_session(of(context)->store, seq, arena, ret_session);
}

static int page_sessions(void *context, uint32_t *at, uint32_t limit, int (*each)(void *, int64_t, int64_t),
	void *each_context)
{
	return store_page_sessions(of(context)->store, at, limit, each, each_context);
}

static bool process_is_alive(void *context, uint64_t boot_hi, uint64_t boot_lo, uint32_t pid, uint64_t start)
{
	const struct store_options *ours = &of(context)->options->storage;

	return boot_hi == ours->boot_hi && boot_lo == ours->boot_lo && process_is_seen(pid, start);
}

static struct span name(void *context, uint32_t number)
{
	return store_name(of(context)->store, number);
}

static int each_queue(
	void *context, int (*each)(void *, struct span, enum queue_state, uint32_t), void *each_context)
{
	return store_each_queue(of(context)->store, each, each_context);
}

static int each_member(void *context, uint32_t set, int (*each)(void *, struct span), void *each_context)
{
	return store_each_member(of(context)->store, set, each, each_context);
}

static int read_body(void *context, int64_t seq, struct arena *arena, struct span *ret_body)
{
	return store_read_body(of(context)->store, seq, arena, ret_body);
}

static int64_t last_event(void *context)
{
	return store_last_event(of(context)->store);
}

static int64_t event_base(void *context)
{
	return store_event_base(of(context)->store);
}

static int put_metrics(void *context, bool open, struct buf *out)
{
	return metrics_put(of(context), open, out);
}

static bool is_degraded(void *context)
{
	return store_is_degraded(of(context)->store);
}

static bool is_draining(void *context)
{
	return of(context)->stopping;
}

static int make_token(void *context, enum token_kind kind, struct arena *arena, struct minted *ret_minted)
{
	char text[TOKEN_BYTES_MAX], id[TOKEN_ID_BYTES_MAX];

	(void)context;
	mint_token(token_kind_name(kind), text, id);
	crypto_hash_sha256(ret_minted->hash, (const unsigned char *)text, strlen(text));
	int r = arena_copy(arena, span_of(id), &ret_minted->id);
	if (r == 0)
		r = arena_copy(arena, span_of(text), &ret_minted->text);
	sodium_memzero(text, sizeof text);
	return r;
}

static int make_instance(void *context, struct span parent, struct span worker, uint64_t number,
	struct arena *arena, struct span *ret_text)
{
	struct derived derived = {.kind = DERIVED_INSTANCE, .parent = parent, .number = number};

	if (worker.len > sizeof derived.worker)
		return -E2BIG;
	memcpy(derived.worker, worker.data, worker.len);
	derived.worker_len = worker.len;
	return derived_text(&derived, of(context)->gate.key, arena, ret_text);
}

static int make_claim(void *context, struct span parent, const struct task *task, struct arena *arena,
	struct span *ret_text)
{
	struct derived derived = {
		.kind = DERIVED_CLAIM,
		.parent = parent,
		.number = (uint64_t)task->seq,
		.fence = task->fence,
		.reissued = task->claim.reissued,
	};

	return derived_text(&derived, of(context)->gate.key, arena, ret_text);
}

static const struct token *find_token(void *context, struct span id)
{
	return store_find_token(of(context)->store, id);
}

static int each_token(void *context, int (*each)(void *, const struct token *), void *each_context)
{
	return store_each_token(of(context)->store, each, each_context);
}

static struct span root_token(void *context)
{
	return span_of(of(context)->gate.admin_id);
}

static bool is_over(void *context)
{
	return uv_hrtime() > *(const uint64_t *)context;
}

static int ask(void *context, struct question *question)
{
	uint64_t until_ns = uv_hrtime() + QUESTION_RUN_MS * UINT64_C(1000000);

	question->is_over = is_over;
	question->over_context = &until_ns;
	return store_query(of(context)->store, question);
}

static bool is_backing_up(void *context)
{
	return of(context)->backup.exchange != NULL;
}

static struct about about(void *context)
{
	const struct server *server = of(context);
	struct moment now = clock_now();
	int64_t armed_ms;
	bool armed = store_is_armed(server->store, &armed_ms);

	return (struct about){
		.armed = armed,
		.armed_ms = armed_ms,
		.store = store_kind(server->store),
		.schema = store_schema(server->store),
		.generation = store_generation(server->store),
		.starts = store_starts(server->store),
		.started_ms = server->started.wall_ms,
		.up_ms = now.lease_ms - server->started.lease_ms,
	};
}

void reads_init(struct server *server)
{
	server->reads = (struct api_reads){
		.context = server,
		.find_task = find_task,
		.read_task = read_task,
		.read_last = read_last,
		.page_open = page_open,
		.page_final = page_final,
		.page_rows = page_rows,
		.assignment = assignment,
		.page_assignments = page_assignments,
		.default_queues = default_queues,
		.workflows = workflows,
		.read_log = read_log,
		.page_events = page_events,
		.task_queue = task_queue,
		.task_id = task_id,
		.why = why,
		.read_worker = read_worker,
		.each_held = each_held,
		.each_slot = each_slot,
		.read_slot = read_slot,
		.find_session = find_session,
		.read_session = read_session,
		.page_sessions = page_sessions,
		.process_is_alive = process_is_alive,
		.page_workers = page_workers,
		.name = name,
		.each_queue = each_queue,
		.each_member = each_member,
		.read_body = read_body,
		.last_event = last_event,
		.event_base = event_base,
		.put_metrics = put_metrics,
		.mint_token = make_token,
		.mint_instance = make_instance,
		.mint_claim = make_claim,
		.find_token = find_token,
		.each_token = each_token,
		.root_token = root_token,
		.ask = ask,
		.is_backing_up = is_backing_up,
		.about = about,
		.is_degraded = is_degraded,
		.is_draining = is_draining,
	};
}
