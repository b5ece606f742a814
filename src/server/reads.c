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

struct task_visit {
	int (*each)(void *context, const struct task *task);
	void *context;
};

static int visit_task(void *context, const struct task *task, struct span holder)
{
	const struct task_visit *visit = context;

	(void)holder;
	return visit->each(visit->context, task);
}

static int page_tasks(void *context, int64_t after, uint32_t limit, int (*each)(void *, const struct task *),
	void *each_context)
{
	struct task_visit visit = {each, each_context};

	return store_page_tasks(of(context)->store, after, limit, visit_task, &visit);
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

static int each_worker(
	void *context, int (*each)(void *, struct span, const struct worker *), void *each_context)
{
	return store_each_worker(of(context)->store, each, each_context);
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

static int put_metrics(void *context, struct buf *out)
{
	return metrics_put(of(context), out);
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

static int make_claim(void *context, struct span parent, int64_t task, uint64_t fence, struct arena *arena,
	struct span *ret_text)
{
	struct derived derived = {
		.kind = DERIVED_CLAIM, .parent = parent, .number = (uint64_t)task, .fence = fence};

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

void reads_init(struct server *server)
{
	server->reads = (struct api_reads){
		.context = server,
		.find_task = find_task,
		.read_task = read_task,
		.page_tasks = page_tasks,
		.page_events = page_events,
		.task_queue = task_queue,
		.task_id = task_id,
		.why = why,
		.each_worker = each_worker,
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
		.is_degraded = is_degraded,
		.is_draining = is_draining,
	};
}
