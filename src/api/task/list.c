/*
 * The list of tasks: all that are not final in claim order, then the final ones, newest first. With words to search for: all of
 * them newest first.
 *
 * It is made in slices, so that no list stands in the way of a commit, and others may change tasks between two of
 * them:
 *
 *   SCAN     outlines of the open tasks, in no order: the first keys behind the cursor are kept
 *   SORT     those keys into order
 *   FINALS   as many final ones behind them as there is room for, newest first
 *   TEXTS    with a filter on the text: which of them have it
 *   RENDER   what stands behind the keys that are left is read and written
 *
 * No order is kept for lists beforehand: that would cost every create and claim. A task that stays where it is, is in
 * the list exactly once, whatever happens to others; and over the pages of a list as well, because a cursor is a place
 * in the order. A task that becomes final between two slices moves behind the open ones.
 *
 * A list that was cut names its continuation in Link: it may be cut because it is full, or, with a filter on the text,
 * because enough tasks were looked at.
 */
#include "api/task/view.h"

#include <assert.h>
#include <string.h>

#include "api/task/filter.h"
#include "api/task/slice.h"
#include "api/task/why.h"
#include "base/hash.h"
#include "base/take.h"

enum {
	LIST_MAX = 10000,
	FINAL_TASKS = 200, /* of one slice */
	/* kinds of ready tasks whose reason is known */
	REASONS_KEPT = 32,
};

enum phase { PHASE_SCAN, PHASE_SORT, PHASE_FINALS, PHASE_TEXTS, PHASE_RENDER };

/* The filters come first. */
enum parameter { P_INCLUDE = FILTER_FIELDS, P_LIMIT, P_AFTER, P_COUNT };

/* Ready tasks that want the same of a worker wait for the same reason: a worker that can take one can take the other. */
struct known_reason {
	uint32_t queue, owner, requires, executor; /* of no queue: the place is free */
	struct reason reason;
};

struct task_list {
	struct api_call *call;
	struct query_value values[P_COUNT];
	struct task_filter filter;
	uint32_t limit; /* tasks in the reply */
	uint32_t looks; /* tasks looked at for it */
	bool continues;
	struct task_key after;
	enum phase phase;
	uint32_t scan_at;
	int64_t final_before;
	struct task_keys keys; /* one more than is looked at shows that the list is cut */
	uint32_t at;           /* the next key to look at, or to render */
	uint32_t kept;         /* by the filter on the text */
	bool is_cut;           /* there is more than this reply shows */
	bool any;              /* something was rendered */
	struct known_reason reasons[REASONS_KEPT];
};

/* What is searched for comes newest first, final or not. */
static bool is_by_age(const struct task_list *list)
{
	return list->filter.search.count > 0;
}

static struct task_key key_of(const struct task_list *list, const struct task_outline *outline)
{
	return is_by_age(list) ? (struct task_key){.seq = outline->seq, .final = true}
			       : task_key_of(outline, store_age_ms(list->call->store));
}

/* ---- choosing --------------------------------------------------------------------------------------- */

static int gather(void *context, const struct task_outline *outline)
{
	struct task_list *list = context;
	struct task_key key = task_key_of(outline, store_age_ms(list->call->store));

	if (!task_filter_takes_outline(list->call, &list->filter, outline) ||
		(list->continues && task_key_order(&key, &list->after) <= 0))
		return 0;
	return task_keys_add(&list->keys, &key);
}

static int scan(struct task_list *list)
{
	int r = store_page_open(list->call->store, &list->scan_at, SLICE_SCAN, gather, list);

	if (list->scan_at == 0)
		list->phase = PHASE_SORT;
	return r;
}

enum {
	ENOUGH = 1,
};

static int gather_final(void *context, const struct task_outline *outline)
{
	struct task_list *list = context;
	struct task_key key = key_of(list, outline);

	if (list->keys.count == list->keys.max)
		return ENOUGH;
	return task_filter_takes_outline(list->call, &list->filter, outline)
		? task_keys_append(&list->keys, &key)
		: 0;
}

static int page_finals(struct task_list *list)
{
	bool wants_more = list->keys.count < list->keys.max && list->final_before > 0;
	int r = 0;

	if (wants_more && is_by_age(list))
		r = store_page_rows(
			list->call->store, false, &list->final_before, FINAL_TASKS, gather_final, list);
	else if (wants_more)
		r = store_page_final(list->call->store, &list->final_before, FINAL_TASKS, gather_final, list);
	if (!wants_more)
		list->phase = PHASE_TEXTS;
	return r == ENOUGH ? 0 : r;
}

/* ---- reading the chosen ones -------------------------------------------------------------------------- */

/* Has the list come past the place of that key? Then a task that moved there is not shown by a later page. */
static bool is_passed(const struct task_list *list, const struct task_key *key)
{
	const struct task_keys *keys = &list->keys;

	return !list->is_cut || (keys->count > 0 && task_key_order(key, &keys->items[keys->count - 1]) <= 0);
}

/* Is it still to be shown at the place that was chosen for it? One that has become final since is shown with the
 * final ones, unless they were gathered before it was one of them. */
static bool still_belongs(const struct task_list *list, const struct task_key *key, const struct task *task)
{
	struct task_outline outline = task_outline_of(task);
	struct task_key now = task_key_of(&outline, store_age_ms(list->call->store));

	if (!task_filter_takes_outline(list->call, &list->filter, &outline))
		return false;
	if (key->final || !now.final || list->phase != PHASE_RENDER)
		return true;
	return is_passed(list, &now) && !task_keys_have(&list->keys, &now);
}

/* ---- the head: where it goes on ------------------------------------------------------------------------ */

static void put_query(struct buf *link, const struct task_list *list)
{
	for (int i = 0; i < P_AFTER; i++) {
		struct span value = list->values[i].value;
		if (!value.data)
			continue;
		buf_printf(link, "%s=", list->values[i].name);
		http_encode(value, link);
		buf_put_byte(link, '&');
	}
}

/* Behind the last task that was looked at. */
static int link_next(struct task_list *list, const struct task_key *last)
{
	struct api_call *call = list->call;
	cleanup(buf_done) struct buf link = {.max = 64 << 10};

	buf_put_span(&link, SPAN("</api/tasks?"));
	put_query(&link, list);
	buf_put_span(&link, SPAN("after="));
	task_key_put(&link, last);
	buf_put_span(&link, SPAN(">; rel=\"next\""));
	return buf_keep(&link, call->arena, &call->reply.link);
}

/* `looked_at` keys were; `count` of those before them are to be rendered. */
static int begin_rendering(struct task_list *list, uint32_t looked_at, uint32_t count)
{
	int r = 0;

	list->is_cut = looked_at < list->keys.count;
	if (list->is_cut)
		r = link_next(list, &list->keys.items[looked_at - 1]);
	list->keys.count = count;
	list->at = 0;
	list->phase = PHASE_RENDER;
	call_reply_begin(list->call);
	return r < 0 ? r : buf_put_byte(list->call->body, '[');
}

/* ---- the texts ----------------------------------------------------------------------------------------- */

static int keep_if_text_matches(
	void *context, const struct task_key *key, struct task_document *document, struct arena *arena)
{
	struct task_list *list = context;

	(void)arena;
	assert(list->kept < list->at); /* what is kept is written over keys that were looked at */
	if (still_belongs(list, key, &document->task) &&
		task_filter_takes_text(list->call, &list->filter, document))
		list->keys.items[list->kept++] = *key;
	return list->kept == list->limit ? ENOUGH : 0;
}

static int look_at_texts(struct task_list *list)
{
	uint32_t count = list->keys.count;
	uint32_t end = count < list->looks ? count : list->looks;

	if (!list->filter.reads_text)
		return begin_rendering(list, end, end);
	int r = task_slice(list->call, &list->keys, &list->at, end, keep_if_text_matches, list);
	if (r < 0 || (r == 0 && list->at < end))
		return r;
	return begin_rendering(list, list->at, list->kept);
}

/* ---- the body -------------------------------------------------------------------------------------------- */

/* To ask for the reason of a ready task is to look at every worker. */
static struct reason reason_of(struct task_list *list, const struct task *task)
{
	struct known_reason kind = {task->queue, task->owner, task->requires, task->executor, {0}};
	uint64_t hash = hash_u64((uint64_t)kind.queue << 32 | kind.owner) ^
		hash_u64((uint64_t)kind.requires << 32 | kind.executor);
	struct known_reason *known = &list->reasons[hash % REASONS_KEPT];

	if (task->state != TASK_READY || task->resume_until_ms != 0)
		return store_why(list->call->store, task, list->call->now);
	if (known->queue != kind.queue || known->owner != kind.owner || known->requires != kind.requires ||
		known->executor != kind.executor) {
		kind.reason = store_why(list->call->store, task, list->call->now);
		*known = kind;
	}
	return known->reason;
}

static int render_task(
	void *context, const struct task_key *key, struct task_document *document, struct arena *arena)
{
	struct task_list *list = context;
	struct api_call *call = list->call;
	struct json_object object;

	(void)arena;
	if (!still_belongs(list, key, &document->task))
		return 0;
	json_put_comma(call->body, &list->any);
	json_begin(&object, call->body);
	task_put_members(call, &object, document, PARENTS_IN_LIST);
	struct reason reason = reason_of(list, &document->task);
	json_member_cstr(&object, "reason", why_name(reason.why));
	if (list->values[P_INCLUDE].value.data)
		why_put_member(call, &object, document, reason);
	return json_end(&object);
}

/* Its end is the end of the list. */
static int render(struct task_list *list)
{
	int r = task_slice(list->call, &list->keys, &list->at, list->keys.count, render_task, list);

	if (r < 0 || list->at < list->keys.count)
		return r;
	r = buf_put_byte(list->call->body, ']');
	return r < 0 ? r : ENOUGH;
}

/* ---- the request ------------------------------------------------------------------------------------ */

static bool read_after(struct task_list *list)
{
	struct span text = list->values[P_AFTER].value;

	list->final_before = INT64_MAX;
	if (!text.data)
		return true;
	if (task_key_read(text, &list->after) < 0 || (is_by_age(list) && !list->after.final))
		return call_refuse_field(list->call, "after", "must be a cursor as it was given out in Link");
	list->continues = true;
	if (list->after.final)
		list->final_before = list->after.seq;
	return true;
}

static bool read_parameters(struct task_list *list)
{
	struct query_value *values = list->values;
	int64_t limit;

	if (!query_read(list->call, values, P_COUNT) ||
		!query_int(list->call, &values[P_LIMIT], 1, LIST_MAX, LIST_MAX, &limit,
			"must be from 1 to 10000"))
		return false;
	if (!why_is_wanted(list->call, &values[P_INCLUDE]))
		return false;
	for (int i = 0; i < FILTER_FIELDS; i++)
		list->filter.values[i] = values[i].value;
	if (!task_filter_judge(list->call, &list->filter))
		return false;
	list->limit = (uint32_t)limit;
	list->looks = list->filter.reads_text ? LIST_MAX : list->limit;
	return read_after(list);
}

/* Where the filters leave nothing to find there is nothing to look at. */
static void choose_start(struct task_list *list)
{
	const uint32_t finals = STATE_BIT(TASK_DONE) | STATE_BIT(TASK_FAILED) | STATE_BIT(TASK_CANCELLED);

	if ((list->filter.states & finals) == 0 && !is_by_age(list))
		list->final_before = 0;
	list->phase = is_by_age(list) || (list->filter.states & ~finals) == 0 ||
			(list->continues && list->after.final)
		? PHASE_FINALS
		: PHASE_SCAN;
	task_keys_init(&list->keys, list->call->arena, list->looks + 1);
}

/* NULL: it was refused. */
static struct task_list *task_list_new(struct api_call *call)
{
	static const char *const others[] = {"include", "limit", "after"};
	struct task_list *list = call_detail(call, sizeof *list);

	if (!list)
		return NULL;
	list->call = call;
	for (int i = 0; i < P_COUNT; i++)
		list->values[i].name = i < FILTER_FIELDS ? filter_names[i] : others[i - FILTER_FIELDS];
	if (!read_parameters(list))
		return NULL;
	choose_start(list);
	return list;
}

static int take_slice(struct task_list *list)
{
	switch (list->phase) {
	case PHASE_SCAN:
		return scan(list);
	case PHASE_SORT:
		if (task_keys_sort(&list->keys, SLICE_SORT))
			list->phase = PHASE_FINALS;
		return 0;
	case PHASE_FINALS:
		return page_finals(list);
	case PHASE_TEXTS:
		return look_at_texts(list);
	case PHASE_RENDER:
		break;
	}
	return render(list);
}

void task_list_read(struct api_call *call)
{
	struct task_list *list = call->detail ? call->detail : task_list_new(call);

	if (!list)
		return;
	int r = take_slice(list);
	if (r == 0)
		call_again(call);
	else
		call_reply(call, 200, r == ENOUGH ? 0 : r);
}
