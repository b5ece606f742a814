/*
 * Reading the inbox between turns: what others have asked for, and what of it could not become a task.
 */
#include <errno.h>

#include "store/read/sound.h"
#include "store/record/inbox.h"

int store_page_inbox(struct store *store, int64_t after, uint32_t limit,
	int (*each)(void *context, const struct inbox_row *row), void *context)
{
	if (store->dead || store->degraded || !store->started)
		return 0;
	return store_rows(store, page_inbox, after, limit, each, context);
}

int store_read_kept(struct store *store, int64_t id, struct arena *arena, struct inbox_document *ret_document)
{
	char key[INBOX_KEY_BYTES];
	struct span data;
	int r = store_rows(store, get_small, SMALL_INBOX, inbox_key(id, key), arena, &data);

	if (r == 0)
		r = inbox_read(data, ret_document);
	if (r == -EPROTO)
		return store_damaged(store, "small", SMALL_INBOX);
	if (r == 0)
		ret_document->id = id;
	return r;
}

struct kept_page {
	struct store *store;
	int (*each)(void *context, const struct inbox_document *document);
	void *context;
};

static int show_kept(void *context, struct span key, struct span data)
{
	const struct kept_page *page = context;
	struct inbox_document document;
	int64_t id = 0;

	int r = inbox_read(data, &document);
	if (r == 0)
		r = inbox_id_of(key, &id);
	if (r < 0)
		return store_damaged(page->store, "small", SMALL_INBOX);
	document.id = id;
	return page->each(page->context, &document);
}

int store_page_kept(struct store *store, int64_t after, uint32_t limit,
	int (*each)(void *context, const struct inbox_document *document), void *context)
{
	struct kept_page page = {store, each, context};
	char key[INBOX_KEY_BYTES];

	return store_rows(store, page_small, SMALL_INBOX, inbox_key(after, key), limit, show_kept, &page);
}
