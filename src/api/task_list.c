/*
 * The list of tasks: all that are not final in claim order, then the final ones, newest first.
 *
 * The store pages by creation; the order is made here. What is kept while paging is a key per task, never more
 * than twice what one reply may look at; the tasks themselves are read when their turn comes. A list that was cut
 * names its continuation in Link: it may be cut because it is full, or, with a filter on the text, because enough
 * tasks were looked at.
 */
#include "api/task_view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "api/form.h"
#include "base/take.h"

enum {
	LIST_MAX = 10000,
	PAGE = 500,
};

/* Where a task stands in the list. */
struct key {
	bool final;
	int32_t priority;
	int64_t created_ms, seq;
};

static int compare(const void *left, const void *right)
{
	const struct key *a = left, *b = right;

	if (a->final != b->final)
		return a->final ? 1 : -1;
	if (a->final)
		return a->seq > b->seq ? -1 : a->seq < b->seq;
	if (a->priority != b->priority)
		return a->priority > b->priority ? -1 : 1;
	if (a->created_ms != b->created_ms)
		return a->created_ms < b->created_ms ? -1 : 1;
	return a->seq < b->seq ? -1 : a->seq > b->seq;
}

enum parameter { P_STATUS, P_STATE, P_QUEUE, P_OWNER, P_LABEL, P_Q, P_LIMIT, P_AFTER, P_COUNT };

struct listing {
	struct api_call *call;
	struct query_value values[P_COUNT];
	int64_t limit;  /* tasks in the reply */
	uint32_t looks; /* tasks looked at for it */
	bool continues;
	struct key after;
	struct key *keys;
	uint32_t count, room;
	int64_t last_seq; /* of the page */
	uint32_t paged;
};

/* ---- what matches ----------------------------------------------------------------------------------- */

static bool differs(const struct query_value *value, struct span text)
{
	return value->value.data && !span_equal(value->value, text);
}

static bool columns_match(const struct listing *listing, const struct task *task)
{
	const struct query_value *values = listing->values;

	return !differs(&values[P_STATUS], span_of(task_state_status(task->state))) &&
		!differs(&values[P_STATE], span_of(task_state_name(task->state))) &&
		!differs(&values[P_QUEUE], name_of(listing->call, task->queue)) &&
		!differs(&values[P_OWNER], name_of(listing->call, task->owner));
}

static bool has_label(yyjson_val *body, struct span label)
{
	size_t i, limit;
	yyjson_val *item;

	yyjson_arr_foreach(yyjson_obj_get(body, "labels"), i, limit, item)
	{
		if (yyjson_is_str(item) && span_equal(node_text(item), label))
			return true;
	}
	return false;
}

static bool contains(struct span text, struct span part)
{
	for (size_t i = 0; part.len <= text.len && i <= text.len - part.len; i++) {
		if (strncasecmp(text.data + i, part.data, part.len) == 0)
			return true;
	}
	return false;
}

static bool says(const struct task_document *document, yyjson_val *body, struct span part)
{
	static const char *const members[] = {"title", "description", "instructions"};

	if (contains(document->id, part))
		return true;
	for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
		yyjson_val *text = yyjson_obj_get(body, members[i]);
		if (yyjson_is_str(text) && contains(node_text(text), part))
			return true;
	}
	return false;
}

/* Filters that look into the text. */
static bool text_matches(const struct listing *listing, const struct task_document *document)
{
	struct span label = listing->values[P_LABEL].value, part = listing->values[P_Q].value;
	struct json_complaint complaint;
	cleanup(buf_done) struct buf text = {0};

	if (!label.data && !part.data)
		return true;
	buf_init(&text, 4 * API_TEXT_MAX);
	if (buf_put_byte(&text, '{') < 0 || buf_put_span(&text, document->body) < 0 ||
		buf_put_byte(&text, '}') < 0)
		return false;
	yyjson_doc *doc = json_read(buf_span(&text), &complaint);
	yyjson_val *body = yyjson_doc_get_root(doc);
	bool matches = (!label.data || has_label(body, label)) && (!part.data || says(document, body, part));
	yyjson_doc_free(doc);
	return matches;
}

/* ---- collecting ------------------------------------------------------------------------------------- */

/* Keep the first ones only. One more than is looked at shows that the list is cut. */
static void prune(struct listing *listing)
{
	if (listing->count > 1)
		qsort(listing->keys, listing->count, sizeof *listing->keys, compare);
	if (listing->count > listing->looks + 1)
		listing->count = listing->looks + 1;
}

static int grow(struct listing *listing)
{
	uint32_t most = 2 * (listing->looks + 1);
	uint32_t room = listing->room == 0 ? 64 : 2 * listing->room;

	if (listing->room >= most) {
		prune(listing);
		return 0;
	}
	struct key *keys = reallocarray(listing->keys, room < most ? room : most, sizeof *keys);
	if (!keys)
		return -ENOMEM;
	listing->keys = keys;
	listing->room = room < most ? room : most;
	return 0;
}

static int collect(void *context, const struct task *task)
{
	struct listing *listing = context;
	struct key key = {task_state_is_final(task->state), task->priority, task->created_ms, task->seq};

	listing->last_seq = task->seq;
	listing->paged++;
	if (!principal_sees(listing->call, task) || !columns_match(listing, task) ||
		(listing->continues && compare(&key, &listing->after) <= 0))
		return 0;
	int r = listing->count == listing->room ? grow(listing) : 0;
	if (r == 0)
		listing->keys[listing->count++] = key;
	return r;
}

static int collect_all(struct listing *listing)
{
	const struct api_reads *reads = listing->call->reads;

	do {
		listing->paged = 0;
		int r = reads->page_tasks(reads->context, listing->last_seq, PAGE, collect, listing);
		if (r < 0)
			return r;
	} while (listing->paged == PAGE);
	prune(listing);
	return 0;
}

/* ---- the reply -------------------------------------------------------------------------------------- */

/* One task; *ret_put says whether it is in the list. -E2BIG: the reply is full. */
static int put_task(struct listing *listing, int64_t seq, struct arena *arena, bool first, bool *ret_put)
{
	struct api_call *call = listing->call;
	struct task_document document;
	size_t before = call->body->len;

	*ret_put = false;
	int r = call->reads->read_task(call->reads->context, seq, arena, &document);
	if (r == -ENOENT)
		return 0; /* purged since */
	if (r < 0 || !text_matches(listing, &document))
		return r;
	r = first ? 0 : buf_put_byte(call->body, ',');
	if (r == 0)
		r = task_put(call, call->body, &document);
	if (r < 0)
		call->body->len = before;
	*ret_put = r == 0;
	return r;
}

static int put_query(struct buf *link, const struct listing *listing)
{
	static const char hex[] = "0123456789ABCDEF";
	int r = 0;

	for (int i = 0; r == 0 && i < P_AFTER; i++) {
		struct span value = listing->values[i].value;
		if (!value.data)
			continue;
		r = buf_printf(link, "%s=", listing->values[i].name);
		for (size_t c = 0; r == 0 && c < value.len; c++) {
			unsigned char byte = (unsigned char)value.data[c];
			bool plain =
				(byte >= '0' && byte <= '9') || ((byte | 32) >= 'a' && (byte | 32) <= 'z');
			r = plain ? buf_put_byte(link, byte)
				  : buf_printf(link, "%%%c%c", hex[byte >> 4], hex[byte & 15]);
		}
		if (r == 0)
			r = buf_put_byte(link, '&');
	}
	return r;
}

/* Where it goes on: behind the last task that was looked at. */
static void link_next(struct listing *listing, const struct key *last)
{
	struct api_call *call = listing->call;
	cleanup(buf_done) struct buf link = {0};

	buf_init(&link, 64 << 10);
	int r = buf_printf(&link, "</api/tasks?");
	if (r == 0)
		r = put_query(&link, listing);
	if (r == 0)
		r = buf_printf(&link, "after=%d.%d.%lld.%lld>; rel=\"next\"", last->final, last->priority,
			(long long)last->created_ms, (long long)last->seq);
	if (r == 0)
		r = arena_copy(call->arena, buf_span(&link), &call->reply.link);
}

static int put_tasks(struct listing *listing)
{
	struct arena arena;
	int64_t count = 0;
	bool put;
	uint32_t i = 0;
	int r = buf_put_byte(listing->call->body, '[');

	arena_init(&arena, 16 * API_TEXT_MAX);
	while (r == 0 && i < listing->count && i < listing->looks && count < listing->limit) {
		r = put_task(listing, listing->keys[i].seq, &arena, count == 0, &put);
		arena_reset(&arena);
		count += put;
		i += r == 0;
	}
	arena_done(&arena);
	if (r == -E2BIG && i > 0)
		r = 0; /* the reply is full: the next one goes on from here */
	if (r == 0 && i > 0 && i < listing->count)
		link_next(listing, &listing->keys[i - 1]);
	return r < 0 ? r : buf_put_byte(listing->call->body, ']');
}

/* ---- the request ------------------------------------------------------------------------------------ */

static bool read_after(struct listing *listing)
{
	struct span text = listing->values[P_AFTER].value;
	int final, priority, end = 0;
	long long created, seq;

	if (!text.data)
		return true;
	/* the copy in the arena ends in NUL */
	if (sscanf(text.data, "%1d.%11d.%20lld.%20lld%n", &final, &priority, &created, &seq, &end) != 4 ||
		(size_t)end != text.len) {
		call_refuse_field(listing->call, "after", "must be a cursor as it was given out in Link");
		return false;
	}
	listing->continues = true;
	listing->after = (struct key){final != 0, priority, created, seq};
	return true;
}

static bool status_is_known(struct span status)
{
	for (int state = TASK_NOWHERE + 1; state < TASK_STATE_COUNT; state++) {
		if (span_equal(status, span_of(task_state_status((enum task_state)state))))
			return true;
	}
	return false;
}

static bool read_parameters(struct listing *listing)
{
	struct query_value *values = listing->values;
	struct api_call *call = listing->call;

	if (!query_read(call, values, P_COUNT))
		return false;
	if (query_int(&values[P_LIMIT], 1, LIST_MAX, LIST_MAX, &listing->limit) < 0) {
		call_refuse_field(call, "limit", "must be from 1 to 10000");
		return false;
	}
	if (values[P_STATE].value.data &&
		task_state_from_name(values[P_STATE].value.data, values[P_STATE].value.len) == TASK_NOWHERE) {
		call_refuse_field(call, "state", "must be the name of a state");
		return false;
	}
	if (values[P_STATUS].value.data && !status_is_known(values[P_STATUS].value)) {
		call_refuse_field(
			call, "status", "must be one of todo, in-progress, review, blocked, done, cancelled");
		return false;
	}
	listing->looks =
		values[P_LABEL].value.data || values[P_Q].value.data ? LIST_MAX : (uint32_t)listing->limit;
	return read_after(listing);
}

void task_list_read(struct api_call *call)
{
	struct listing listing = {
		.call = call,
		.values = {{.name = "status"}, {.name = "state"}, {.name = "queue"}, {.name = "owner"},
			{.name = "label"}, {.name = "q"}, {.name = "limit"}, {.name = "after"}},
	};

	if (!read_parameters(&listing))
		return;
	int r = collect_all(&listing);
	if (r == 0)
		r = put_tasks(&listing);
	free(listing.keys);
	call_reply(call, 200, r);
}
