#include "backend/short_ops.h"

#include <assert.h>
#include <errno.h>

static const struct backend_ops *real;
static uint32_t left; /* operations until the one that fails; 0: it has failed */

static bool is_short(void)
{
	return left > 0 && --left == 0;
}

#define B struct backend *backend

/* An operation with its parameters, and their names. */
#define SHORT(op, parameters, names)                          \
	static int short_##op parameters                      \
	{                                                     \
		return is_short() ? -ENOMEM : real->op names; \
	}

// clang-format off
SHORT(put_task, (B, const struct task_row *row, bool fresh), (backend, row, fresh))
SHORT(put_body, (B, int64_t seq, struct span body), (backend, seq, body))
SHORT(put_extra, (B, int64_t seq, enum extra_kind kind, int64_t n, struct span data), (backend, seq, kind, n, data))
SHORT(put_event, (B, int64_t seq, struct span data), (backend, seq, data))
SHORT(put_base, (B, int64_t seq, struct span data), (backend, seq, data))
SHORT(put_name, (B, const struct name_row *row), (backend, row))
SHORT(put_id, (B, struct span id, int64_t seq), (backend, id, seq))
SHORT(put_key, (B, struct span key, int64_t seq), (backend, key, seq))
SHORT(put_edge, (B, const struct edge_row *row), (backend, row))
SHORT(put_worker, (B, const struct worker_row *row), (backend, row))
SHORT(put_small, (B, enum small_kind kind, struct span key, struct span data), (backend, kind, key, data))
SHORT(put_token, (B, const struct token *token), (backend, token))
SHORT(put_idem, (B, const struct idem_row *row), (backend, row))
SHORT(put_meta, (B, enum meta_key key, int64_t value), (backend, key, value))
SHORT(delete_task, (B, int64_t seq), (backend, seq))
SHORT(delete_base, (B, int64_t seq), (backend, seq))
SHORT(delete_extra, (B, int64_t seq, enum extra_kind kind, int64_t n), (backend, seq, kind, n))
SHORT(delete_key, (B, struct span key), (backend, key))
SHORT(delete_edge, (B, int64_t parent, int64_t child), (backend, parent, child))
SHORT(delete_worker, (B, struct span id), (backend, id))
SHORT(delete_token, (B, struct span id), (backend, id))
SHORT(delete_small, (B, enum small_kind kind, struct span key), (backend, kind, key))
SHORT(delete_events, (B, int64_t upto), (backend, upto))
SHORT(delete_idems, (B, int64_t before_ms, uint32_t limit), (backend, before_ms, limit))
SHORT(get_task, (B, int64_t seq, struct arena *arena, struct task_row *ret), (backend, seq, arena, ret))
SHORT(get_body, (B, int64_t seq, struct arena *arena, struct span *ret), (backend, seq, arena, ret))
SHORT(get_extra, (B, int64_t seq, enum extra_kind kind, int64_t n, struct arena *arena, struct span *ret),
	(backend, seq, kind, n, arena, ret))
SHORT(get_event, (B, int64_t seq, struct arena *arena, struct span *ret), (backend, seq, arena, ret))
SHORT(get_base, (B, int64_t seq, struct arena *arena, struct span *ret), (backend, seq, arena, ret))
SHORT(get_worker, (B, struct span id, struct arena *arena, struct worker_row *ret), (backend, id, arena, ret))
SHORT(get_idem, (B, struct span principal, struct span key, struct idem_row *ret), (backend, principal, key, ret))
SHORT(get_meta, (B, enum meta_key key, int64_t *ret), (backend, key, ret))
SHORT(get_small, (B, enum small_kind kind, struct span key, struct arena *arena, struct span *ret),
	(backend, kind, key, arena, ret))
SHORT(find_id, (B, struct span id, int64_t *ret), (backend, id, ret))
SHORT(find_key, (B, struct span key, int64_t *ret), (backend, key, ret))
SHORT(children, (B, int64_t parent, int (*each)(void *, const struct edge_row *), void *context),
	(backend, parent, each, context))
SHORT(parents, (B, int64_t child, int (*each)(void *, const struct edge_row *), void *context),
	(backend, child, each, context))
SHORT(page_tasks, (B, int64_t after, uint32_t limit, int (*each)(void *, const struct task_row *), void *context),
	(backend, after, limit, each, context))
SHORT(page_outlines, (B, int64_t before, uint32_t limit, int (*each)(void *, const struct task_outline *), void *context),
	(backend, before, limit, each, context))
SHORT(page_events, (B, int64_t after, uint32_t limit, int (*each)(void *, int64_t, struct span), void *context),
	(backend, after, limit, each, context))
SHORT(page_bases, (B, int64_t after, uint32_t limit, int (*each)(void *, int64_t, struct span), void *context),
	(backend, after, limit, each, context))
SHORT(page_small, (B, enum small_kind kind, struct span after, uint32_t limit,
	int (*each)(void *, struct span, struct span), void *context), (backend, kind, after, limit, each, context))
// clang-format on

static struct backend_ops ops;

void short_ops_begin(struct backend *backend, uint32_t number)
{
	assert(number > 0);
	assert(backend->ops != &ops); /* it does not begin twice */
	real = backend->ops;
	ops = *real;
	left = number;
	// clang-format off
#define X(op) ops.op = short_##op;
	X(put_task) X(put_body) X(put_extra) X(put_event) X(put_base) X(put_name) X(put_id) X(put_key)
	X(put_edge) X(put_worker) X(put_small) X(put_token) X(put_idem) X(put_meta) X(delete_task)
	X(delete_base) X(delete_extra) X(delete_key) X(delete_edge) X(delete_worker) X(delete_token)
	X(delete_small) X(delete_events) X(delete_idems) X(get_task) X(get_body) X(get_extra) X(get_event)
	X(get_base) X(get_worker) X(get_idem) X(get_meta) X(get_small) X(find_id) X(find_key) X(children)
	X(parents) X(page_tasks) X(page_outlines) X(page_events) X(page_bases) X(page_small)
#undef X
		// clang-format on
		backend->ops = &ops;
}

bool short_ops_end(struct backend *backend)
{
	assert(backend->ops == &ops);
	backend->ops = real;
	return left == 0;
}
