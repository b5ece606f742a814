#include "api/task/slice.h"

#include <assert.h>
#include <errno.h>

static size_t text_bytes(const struct task_document *document)
{
	return document->body.len + document->result.len + document->error.len + document->checkpoint.len;
}

int task_slice(struct api_call *call, const struct task_keys *keys, uint32_t *at, uint32_t end, task_use *use,
	void *context)
{
	struct task_document document;
	struct arena arena;
	size_t bytes = 0;
	int r = 0;

	assert(end <= keys->count);
	arena_init(&arena, 16 * API_TEXT_MAX);
	for (uint32_t i = 0; r == 0 && i < SLICE_READ && bytes < SLICE_READ_BYTES && *at < end; i++) {
		const struct task_key *key = &keys->items[(*at)++];
		r = store_read_task(call->store, key->seq, call->now, &arena, &document);
		if (r == 0 && principal_sees(call, &document.task)) {
			bytes += text_bytes(&document);
			r = use(context, key, &document, &arena);
		}
		r = r == -ENOENT ? 0 : r;
		arena_reset(&arena);
	}
	arena_done(&arena);
	return r;
}

int open_pass_slice(struct api_call *call, struct open_pass *pass,
	int (*gather)(void *context, const struct task_outline *outline), task_use *use, void *context)
{
	int r = 0;

	if (!pass->scanned) {
		r = store_page_open(call->store, &pass->scan_at, SLICE_SCAN, gather, context);
		pass->scanned = pass->scan_at == 0;
	} else if (!pass->sorted) {
		pass->sorted = task_keys_sort(&pass->keys, SLICE_SORT);
	} else {
		r = task_slice(call, &pass->keys, &pass->at, pass->keys.count, use, context);
	}
	return r;
}

bool open_pass_has_more(const struct open_pass *pass)
{
	return !pass->sorted || pass->at < pass->keys.count;
}
