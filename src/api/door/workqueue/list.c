/*
 * Items, their counts and their queues: one pass over the rows, newest or oldest first, a bounded slice per call.
 *
 * A list is cut after `limit` items, or when enough rows were looked at for them, so that a filter that matches little
 * costs as much as one that matches all; "next" then says where to go on. The original tells everything at once. Counts
 * and queues look at every row, slice by slice, so that no other request waits for them.
 */
#include "api/door/workqueue/workqueue.h"
#include "api/task/slice.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/take.h"

enum {
	ITEMS_MAX = 1000,
	LOOKS_MAX = 100000,         /* rows for one list */
	ACTIVE_MAX = 1000,          /* items that a summary shows … */
	ACTIVE_BYTES_MAX = 4 << 20, /* … while they are no longer than this together */
	QUEUES_MAX = 1000,          /* in one reply */
};

enum { P_QUEUE, P_STATUS, P_LIMIT, P_ORDER, P_AFTER, P_COUNT };

enum pass_phase { PHASE_LOOK, PHASE_TELL };

/* An item that an agent holds, for a summary. */
struct active {
	int64_t updated_ms;
	struct span json;
};

struct item_pass {
	struct api_call *call;
	struct query_value values[P_COUNT];
	struct span queue; /* empty: all */
	uint32_t states;
	uint32_t limit;
	bool oldest_first;
	enum pass_phase phase;
	int64_t at;
	uint32_t looked_at;
	struct task_keys keys; /* keys of the items to be written */
	uint32_t tell_at;      /* index of the next key */
	uint32_t told;         /* items written so far */
	struct active *active; /* of a summary, in the order of the keys */
	uint32_t active_count;
	size_t active_bytes;
	bool is_cut;
	uint64_t counts[TASK_STATE_COUNT];
	uint32_t *queues; /* by number, each once */
	uint32_t queue_count;
};

/* ---- what was asked -------------------------------------------------------------------------------------------- */

static bool read_query(struct item_pass *pass)
{
	static const char *const names[P_COUNT] = {"queue", "status", "limit", "order", "after"};

	for (int i = 0; i < P_COUNT; i++)
		pass->values[i].name = names[i];
	return query_read_known(pass->call, pass->values, P_COUNT);
}

static bool read_states(struct item_pass *pass)
{
	struct span text = text_trim(pass->values[P_STATUS].value);
	struct name_list names;

	pass->states = ~0u;
	if (text.len == 0)
		return true;
	pass->states = 0;
	if (split_names(pass->call->arena, text, ',', &names) < 0)
		return call_refuse_fault(pass->call, -ENOMEM);
	for (uint32_t i = 0; i < names.count; i++) {
		uint32_t states = item_states(names.items[i]);
		if (states == 0)
			return call_refuse_field(pass->call, "status",
				"must be of ready, pending, claimed, in_progress, done, failed, with commas between them");
		pass->states |= states;
	}
	return true;
}

static bool read_place(struct item_pass *pass)
{
	struct query_value *values = pass->values;
	int64_t limit, after;

	pass->oldest_first = span_equal(values[P_ORDER].value, SPAN("oldest"));
	if (values[P_ORDER].value.data && !pass->oldest_first &&
		!span_equal(values[P_ORDER].value, SPAN("newest")))
		return call_refuse_field(pass->call, "order", "must be newest or oldest");
	if (!query_int(pass->call, &values[P_LIMIT], 1, ITEMS_MAX, ITEMS_MAX, &limit,
		    "must be from 1 to 1000") ||
		!query_int(pass->call, &values[P_AFTER], 1, INT64_MAX, 0, &after,
			"must be as it was given out in \"next\""))
		return false;
	pass->limit = (uint32_t)limit;
	pass->at = after != 0 ? after : pass->oldest_first ? 0 : INT64_MAX;
	return true;
}

/* What the call has found so far; NULL: it was refused. */
static struct item_pass *pass_of(struct api_call *call, uint32_t items, uint32_t queues)
{
	struct item_pass *pass = call_detail(call, sizeof *pass);

	if (!pass || pass->call)
		return pass;
	pass->call = call;
	task_keys_init(&pass->keys, call->arena, items + 1);
	pass->queues = arena_alloc(call->arena, (queues + 1) * sizeof *pass->queues);
	if (!pass->queues) {
		call_refuse_fault(call, -ENOMEM);
		return NULL;
	}
	if (!read_query(pass) || !read_states(pass) || !read_place(pass))
		return NULL;
	pass->queue = text_trim(pass->values[P_QUEUE].value);
	return pass;
}

/* ---- looking ------------------------------------------------------------------------------------------------------ */

enum {
	ENOUGH = 1,
};

static bool matches(const struct item_pass *pass, const struct task_outline *outline)
{
	return (pass->states & STATE_BIT(outline->state)) != 0 &&
		(pass->queue.len == 0 || span_equal(pass->queue, name_of(pass->call, outline->queue))) &&
		principal_may_see(pass->call, outline);
}

static int look(struct item_pass *pass, int (*each)(void *context, const struct task_outline *outline))
{
	int r = store_page_rows(pass->call->store, pass->oldest_first, &pass->at, SLICE_SCAN, each, pass);

	if (r == ENOUGH || pass->at == (pass->oldest_first ? INT64_MAX : 0))
		pass->phase = PHASE_TELL;
	return r == ENOUGH ? 0 : r;
}

/* ---- items --------------------------------------------------------------------------------------------------------- */

static int add_item(struct item_pass *pass, const struct task_outline *outline)
{
	struct task_key key = {.seq = outline->seq};

	return task_keys_append(&pass->keys, &key);
}

static int gather(void *context, const struct task_outline *outline)
{
	struct item_pass *pass = context;

	pass->looked_at++;
	assert(pass->keys.count < pass->limit); /* the pass ends with the last that fits */
	int r = matches(pass, outline) ? add_item(pass, outline) : 0;
	pass->is_cut = pass->keys.count == pass->limit || pass->looked_at >= LOOKS_MAX;
	return r < 0 ? r : pass->is_cut ? ENOUGH : 0;
}

static int tell_item(
	void *context, const struct task_key *key, struct task_document *document, struct arena *arena)
{
	struct item_pass *pass = context;
	struct api_call *call = pass->call;

	(void)key;
	int r = store_read_last(call->store, arena, document);
	if (r < 0)
		return r;
	if (pass->told++ > 0)
		buf_put_byte(call->body, ',');
	return item_put(call, call->body, document, false);
}

/* A slice of the items that were chosen. */
static int tell(struct item_pass *pass, task_use *use)
{
	return task_slice(pass->call, &pass->keys, &pass->tell_at, pass->keys.count, use, pass);
}

void workqueue_items_read(struct api_call *call)
{
	struct item_pass *pass = pass_of(call, ITEMS_MAX, 0);

	if (!pass)
		return;
	bool looking = pass->phase == PHASE_LOOK;
	int r = looking ? look(pass, gather) : tell(pass, tell_item);
	if (r == 0 && looking && pass->phase == PHASE_TELL)
		call_slices_begin(call, "{\"ok\":true,\"items\":[");
	bool more = pass->phase == PHASE_LOOK || pass->tell_at < pass->keys.count;
	if (r == 0 && !more) {
		buf_put_byte(call->body, ']');
		if (pass->is_cut)
			buf_printf(call->body, ",\"next\":\"%lld\"", (long long)pass->at);
	}
	call_slice(call, r, more, "}");
}

void workqueue_item_read(struct api_call *call)
{
	struct task_document document;

	call->query_taken = true;
	int r = item_find(call, call->params[0], &document);
	if (r == 0)
		item_reply_document(call, &document);
	else if (r == -ENOENT)
		call_reply(call, 200, buf_put_span(call->body, SPAN("{\"ok\":true,\"item\":null}")));
	else
		call_refuse_fault(call, r);
}

/* ---- the summary ---------------------------------------------------------------------------------------------------- */

static bool is_active(enum task_state state)
{
	return state == TASK_CLAIMED || state == TASK_RUNNING || state == TASK_ASKING || state == TASK_REVIEW;
}

static int count_row(void *context, const struct task_outline *outline)
{
	struct item_pass *pass = context;

	if (!matches(pass, outline))
		return 0;
	pass->counts[outline->state]++;
	return is_active(outline->state) && pass->keys.count < ACTIVE_MAX ? add_item(pass, outline) : 0;
}

/* {"ready":3,"done":9}: a status that no item has is not there. */
static void put_counts(struct buf *out, const uint64_t counts[TASK_STATE_COUNT])
{
	static const char *const words[] = {"ready", "pending", "claimed", "in_progress", "done", "failed"};
	struct json_object object;

	json_begin(&object, out);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		uint32_t states = item_states(span_of(words[i]));
		uint64_t count = 0;
		for (int state = 1; state < TASK_STATE_COUNT; state++)
			count += states & STATE_BIT((enum task_state)state) ? counts[state] : 0;
		if (count > 0)
			json_member_int(&object, words[i], (int64_t)count);
	}
	json_end(&object);
}

static int by_update(const void *a, const void *b)
{
	const struct active *left = a, *right = b;

	return left->updated_ms > right->updated_ms ? -1 : left->updated_ms < right->updated_ms;
}

static int keep_active(
	void *context, const struct task_key *key, struct task_document *document, struct arena *arena)
{
	struct item_pass *pass = context;
	struct api_call *call = pass->call;
	cleanup(buf_done) struct buf text = {.max = 16 * API_TEXT_MAX};

	(void)key;
	if (!pass->active)
		pass->active = arena_alloc(call->arena, pass->keys.count * sizeof *pass->active);
	if (!pass->active)
		return -ENOMEM;
	if (!is_active(document->task.state) || pass->active_bytes >= ACTIVE_BYTES_MAX)
		return 0;
	int r = store_read_last(call->store, arena, document);
	if (r < 0)
		return r;
	r = item_put(call, &text, document, false);
	pass->active_bytes += text.len;
	assert(pass->active_count < pass->keys.count);
	struct active *active = &pass->active[pass->active_count++];
	active->updated_ms = document->task.updated_ms;
	return r < 0 ? r : buf_keep(&text, call->arena, &active->json);
}

/* The last touched one first, as the original has them. */
static void put_active(struct item_pass *pass)
{
	struct buf *body = pass->call->body;
	bool any = false;

	if (pass->active_count > 0)
		qsort(pass->active, pass->active_count, sizeof *pass->active, by_update);
	for (uint32_t i = 0; i < pass->active_count; i++) {
		json_put_comma(body, &any);
		buf_put_span(body, pass->active[i].json);
	}
}

static void put_summary(struct item_pass *pass)
{
	struct buf *body = pass->call->body;
	struct json_object object;

	json_begin(&object, body);
	json_member_bool(&object, "ok", true);
	json_member_string_if_any(&object, "queue", pass->queue);
	json_put_key(&object, "counts");
	put_counts(body, pass->counts);
	json_put_key(&object, "active");
	buf_put_byte(body, '[');
	put_active(pass);
	buf_put_byte(body, ']');
	json_end(&object);
}

void workqueue_summary_read(struct api_call *call)
{
	struct item_pass *pass = pass_of(call, ACTIVE_MAX, 0);

	if (!pass)
		return;
	int r = pass->phase == PHASE_LOOK ? look(pass, count_row) : tell(pass, keep_active);
	bool more = pass->phase == PHASE_LOOK || pass->tell_at < pass->keys.count;
	if (r == 0 && !more)
		put_summary(pass);
	call_slice(call, r, more, "");
}

/* ---- queues ------------------------------------------------------------------------------------------------------------ */

static int note_queue(void *context, const struct task_outline *outline)
{
	struct item_pass *pass = context;

	if (!principal_may_see(pass->call, outline))
		return 0;
	for (uint32_t i = 0; i < pass->queue_count; i++) {
		if (pass->queues[i] == outline->queue)
			return 0;
	}
	if (pass->queue_count < QUEUES_MAX)
		pass->queues[pass->queue_count++] = outline->queue;
	return 0;
}

struct queue_names {
	struct span *items;
	uint32_t count, max;
};

static int add_queue(void *context, struct span name, enum queue_state state, uint32_t ready)
{
	struct queue_names *names = context;

	(void)state;
	(void)ready;
	if (names->count < names->max)
		names->items[names->count++] = name;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return span_compare(*(const struct span *)a, *(const struct span *)b);
}

/* The queues of items, the paused queues, and the default queues. */
static int put_queue_names(struct item_pass *pass)
{
	struct api_call *call = pass->call;
	const struct api_services *host = call->host;
	struct queue_names names = {.max = QUEUES_MAX + 2000};
	struct name_list defaults = {0};
	int r = 0;

	names.items = arena_alloc(call->arena, names.max * sizeof *names.items);
	if (!names.items)
		return -ENOMEM;
	for (uint32_t i = 0; i < pass->queue_count; i++)
		add_queue(&names, name_of(call, pass->queues[i]), QUEUE_OPEN, 0);
	r = store_each_queue(call->store, add_queue, &names);
	if (r == 0 && host->default_queues)
		r = split_names(call->arena, span_of(host->default_queues(host->context)), ',', &defaults);
	for (uint32_t i = 0; i < defaults.count; i++)
		add_queue(&names, defaults.items[i], QUEUE_OPEN, 0);
	qsort(names.items, names.count, sizeof *names.items, by_name);
	for (uint32_t i = 0; r == 0 && i < names.count; i++) {
		bool again = i > 0 && span_equal(names.items[i], names.items[i - 1]);
		if (again || !principal_serves(&call->who, names.items[i]))
			continue;
		if (pass->told++ > 0)
			buf_put_byte(call->body, ',');
		json_put_string(call->body, names.items[i]);
	}
	return r;
}

void workqueue_queues_read(struct api_call *call)
{
	struct item_pass *pass = pass_of(call, 0, QUEUES_MAX);

	if (!pass)
		return;
	int r = look(pass, note_queue);
	bool more = pass->phase == PHASE_LOOK;
	if (r == 0 && !more) {
		buf_put_span(call->body, SPAN("{\"ok\":true,\"queues\":["));
		r = put_queue_names(pass);
	}
	call_slice(call, r, more, "]}");
}
