/*
 * GET /api/queues/:name/keys: the concurrency keys of a queue, with what is in work and what waits, the busiest first.
 *
 * Made in slices: all keys are counted and the first ones kept; then a task of each is found, because the text of a key is in the
 * documents of its tasks alone. A key without a waiting task is looked for among all open tasks.
 */
#include <stdlib.h>
#include <string.h>

#include "api/form.h"
#include "api/task/form.h"

enum {
	KEYS_MAX = 1000,
	KEYS_DEFAULT = 100,
	SCAN_KEYS = 4000, /* of one slice */
	SCAN_TASKS = 2000,
	READ_TASKS = 20,
};

struct listed_key {
	struct key_document key;
	struct span text;
};

enum keys_phase { KEYS_COUNT, KEYS_SEEK, KEYS_READ, KEYS_REPLY };

struct key_list {
	struct api_call *call;
	enum keys_phase phase;
	uint32_t queue, at, next;
	int64_t limit;
	uint32_t count;
	struct listed_key keys[2 * KEYS_MAX]; /* twice as many as are shown, so that they are sorted seldom */
};

static int compare_loads(const void *left, const void *right)
{
	const struct key_document *a = &((const struct listed_key *)left)->key;
	const struct key_document *b = &((const struct listed_key *)right)->key;

	if (a->live != b->live)
		return a->live > b->live ? -1 : 1;
	if (a->waiting != b->waiting)
		return a->waiting > b->waiting ? -1 : 1;
	return a->key < b->key ? -1 : a->key > b->key;
}

static void cut(struct key_list *list)
{
	qsort(list->keys, list->count, sizeof *list->keys, compare_loads);
	if (list->count > list->limit)
		list->count = (uint32_t)list->limit;
}

static int take_key(void *context, const struct key_document *key)
{
	struct key_list *list = context;

	if (list->count == 2 * KEYS_MAX)
		cut(list);
	list->keys[list->count++] = (struct listed_key){.key = *key};
	return 0;
}

/* Of a key that has no waiting task: any that has begun will do. */
static int take_begun(void *context, uint64_t key, int64_t seq)
{
	struct key_list *list = context;

	for (uint32_t i = 0; i < list->count; i++) {
		if (list->keys[i].key.key == key && list->keys[i].key.task == 0)
			list->keys[i].key.task = seq;
	}
	return 0;
}

static bool lacks_a_task(const struct key_list *list)
{
	for (uint32_t i = 0; i < list->count; i++) {
		if (list->keys[i].key.task == 0 && list->keys[i].key.key != 0)
			return true;
	}
	return false;
}

/* A task may have ended since it was found: then the key is shown without its text. */
static int read_text(struct key_list *list, struct listed_key *listed, struct arena *arena)
{
	struct api_call *call = list->call;
	struct span body;
	int r = listed->key.task == 0 ? -ENOENT
				      : store_read_body(call->store, listed->key.task, arena, &body);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	yyjson_doc *doc = task_body_read(body, call->body);
	struct span text = json_text(yyjson_obj_get(yyjson_doc_get_root(doc), "concurrencyKey"));
	bool is_of_key = concurrency_key_number(text) == listed->key.key;
	r = is_of_key ? arena_copy(call->arena, text, &listed->text) : 0;
	yyjson_doc_free(doc);
	return r;
}

static int read_some(struct key_list *list)
{
	struct arena arena;
	int r = 0;

	arena_init(&arena, 16 * API_TEXT_MAX);
	for (uint32_t i = 0; r == 0 && i < READ_TASKS && list->next < list->count; i++) {
		r = read_text(list, &list->keys[list->next++], &arena);
		arena_reset(&arena);
	}
	arena_done(&arena);
	return r;
}

static int take_slice(struct key_list *list)
{
	const struct store *store = list->call->store;
	int r = 0;

	switch (list->phase) {
	case KEYS_COUNT:
		r = store_page_keys(store, list->queue, &list->at, SCAN_KEYS, take_key, list);
		if (list->at != 0)
			return r;
		cut(list);
		list->phase = lacks_a_task(list) ? KEYS_SEEK : KEYS_READ;
		return r;
	case KEYS_SEEK:
		r = store_page_begun(store, list->queue, &list->at, SCAN_TASKS, take_begun, list);
		if (list->at == 0 || !lacks_a_task(list))
			list->phase = KEYS_READ;
		return r;
	case KEYS_READ:
		r = read_some(list);
		if (list->next == list->count)
			list->phase = KEYS_REPLY;
		return r;
	case KEYS_REPLY:
		break;
	}
	return 0;
}

static int put_key(struct buf *out, const struct listed_key *listed)
{
	struct json_object object;

	json_begin(&object, out);
	if (listed->key.key == 0)
		json_member_raw(&object, "key", SPAN("null"));
	else if (listed->text.len > 0)
		json_member_string(&object, "key", listed->text);
	json_member_int(&object, "live", listed->key.live);
	json_member_int(&object, "begun", listed->key.begun);
	json_member_int(&object, "waiting", listed->key.waiting);
	return json_end(&object);
}

static void reply(struct api_call *call, struct key_list *list)
{
	bool any = false;
	int r = 0;

	buf_put_byte(call->body, '[');
	for (uint32_t i = 0; r == 0 && i < list->count; i++) {
		json_put_comma(call->body, &any);
		r = put_key(call->body, &list->keys[i]);
	}
	call_reply(call, 200, r < 0 ? r : buf_put_byte(call->body, ']'));
}

/* NULL: the call was refused. */
static struct key_list *key_list_new(struct api_call *call)
{
	struct query_value limit = {.name = "limit"};
	struct key_list *list = call_param_is_name(call, "name") ? call_detail(call, sizeof *list) : NULL;

	if (!list || !query_read(call, &limit, 1) ||
		!query_int(call, &limit, 1, KEYS_MAX, KEYS_DEFAULT, &list->limit,
			"must be an integer from 1 to 1000") ||
		!call_require(call, principal_serves(&call->who, call->params[0]), REFUSED_FORBIDDEN,
			"This credential is not for that queue."))
		return NULL;
	if (store_queue_number(call->store, call->params[0], &list->queue) < 0) {
		call_require(call, false, REFUSED_NOT_FOUND, "No open task was in a queue of that name.");
		return NULL;
	}
	list->call = call;
	const struct key_document keyless = store_keyless(call->store, list->queue);
	if (keyless.live > 0 || keyless.waiting > 0)
		take_key(list, &keyless);
	return list;
}

void queue_keys_read(struct api_call *call)
{
	struct key_list *list = call->detail ? call->detail : key_list_new(call);

	if (!list || call_has_failed(call, take_slice(list)))
		return;
	if (list->phase == KEYS_REPLY)
		reply(call, list);
	else
		call_again(call);
}
