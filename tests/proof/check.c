/*
 * What else tests read of a store.
 */
#include "proof/check.h"
#include "store/turn/turn.h"

struct page {
	struct store *store;
	int (*task)(void *context, const struct task *task, struct span holder);
	void *context;
};

static int page_task(void *context, const struct task_row *row)
{
	const struct page *page = context;
	struct task task = row->task;

	if (row->holder.len > 0)
		task.claim.holder = index_find_holder(&page->store->index, row->holder);
	return page->task(page->context, &task, row->holder);
}

int store_page_tasks(struct store *store, int64_t after, uint32_t limit,
	int (*each)(void *context, const struct task *task, struct span holder), void *context)
{
	struct page page = {.store = store, .task = each, .context = context};

	return store->backend->ops->page_tasks(store->backend, after, limit, page_task, &page);
}

int store_each_worker(const struct store *store,
	int (*each)(void *context, struct span id, const struct worker *worker), void *context)
{
	uint32_t at = 0;

	return store_page_workers(store, &at, UINT32_MAX, each, context);
}
