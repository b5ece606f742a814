/*
 * The list of tasks: all that are not final in claim order, then the final ones, newest first.
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
 * in the order. One that becomes final meanwhile moves behind the open ones.
 *
 * A list that was cut names its continuation in Link: it may be cut because it is full, or, with a filter on the text,
 * because enough tasks were looked at.
 */
#include "api/task/view.h"

#include <errno.h>
#include <strings.h>

#include "api/task/form.h"
#include "api/task/keys.h"
#include "base/hash.h"
#include "base/take.h"

enum {
	LIST_MAX = 10000,
	/* of one slice */
	SCAN_TASKS = 500,
	SORT_STEPS = 1000,
	FINAL_TASKS = 200,
	READ_TASKS = 32,
	READ_BYTES = 128 << 10,
	/* kinds of ready tasks whose reason is known */
	REASONS_KEPT = 32,
};

enum phase { PHASE_SCAN, PHASE_SORT, PHASE_FINALS, PHASE_TEXTS, PHASE_RENDER };

enum parameter {
	P_STATUS,
	P_STATE,
	P_QUEUE,
	P_OWNER,
	P_LABEL,
	P_Q,
	P_WORKFLOW,
	P_STAGE,
	P_LIMIT,
	P_AFTER,
	P_COUNT
};

/* Ready tasks that want the same of a worker wait for the same reason: whoever can take one can take the other. */
struct known_reason {
	uint32_t queue, owner, requires, executor; /* of no queue: the place is free */
	enum why why;
};

struct listing {
	struct api_call *call;
	struct query_value values[P_COUNT];
	uint32_t states; /* bit per state that is wanted */
	enum workflow workflow;
	enum stage stage;
	uint32_t limit;  /* tasks in the reply */
	uint32_t looks;  /* tasks looked at for it */
	bool reads_text; /* a filter needs the text */
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

/* ---- what matches ----------------------------------------------------------------------------------- */

static bool differs(const struct query_value *value, struct span text)
{
	return value->value.data && !span_equal(value->value, text);
}

static bool columns_match(const struct listing *listing, const struct task_outline *outline)
{
	const struct query_value *values = listing->values;

	return (listing->states & STATE_BIT(outline->state)) != 0 &&
		!differs(&values[P_QUEUE], name_of(listing->call, outline->queue)) &&
		!differs(&values[P_OWNER], name_of(listing->call, outline->owner)) &&
		principal_may_see(listing->call, outline);
}

static bool has_label(yyjson_val *body, struct span label)
{
	size_t i, limit;
	yyjson_val *item;

	yyjson_arr_foreach(yyjson_obj_get(body, "labels"), i, limit, item)
	{
		if (yyjson_is_str(item) && span_equal(json_text(item), label))
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
		if (yyjson_is_str(text) && contains(json_text(text), part))
			return true;
	}
	return false;
}

static bool stage_matches(const struct listing *listing, const struct task *task)
{
	return (listing->workflow == WORKFLOW_NONE || listing->workflow == task->workflow) &&
		(listing->stage == STAGE_NONE || listing->stage == task->stage);
}

/* Filters that look into the text, or at what few tasks have. */
static bool text_matches(const struct listing *listing, const struct task_document *document)
{
	struct span label = listing->values[P_LABEL].value, part = listing->values[P_Q].value;

	if (!stage_matches(listing, &document->task))
		return false;
	if (!label.data && !part.data)
		return true;
	yyjson_doc *doc = task_body_read(document->body);
	yyjson_val *body = yyjson_doc_get_root(doc);
	bool matches = (!label.data || has_label(body, label)) && (!part.data || says(document, body, part));
	yyjson_doc_free(doc);
	return matches;
}

/* ---- choosing --------------------------------------------------------------------------------------- */

static int gather(void *context, const struct task_outline *outline)
{
	struct listing *listing = context;
	struct task_key key = task_key_of(outline);

	if (!columns_match(listing, outline) ||
		(listing->continues && task_key_order(&key, &listing->after) <= 0))
		return 0;
	return task_keys_add(&listing->keys, &key);
}

static int scan(struct listing *listing)
{
	int r = store_page_open(listing->call->store, &listing->scan_at, SCAN_TASKS, gather, listing);

	if (listing->scan_at == 0)
		listing->phase = PHASE_SORT;
	return r;
}

enum {
	ENOUGH = 1,
};

static int gather_final(void *context, const struct task_outline *outline)
{
	struct listing *listing = context;
	struct task_key key = task_key_of(outline);

	if (listing->keys.count == listing->keys.max)
		return ENOUGH;
	return columns_match(listing, outline) ? task_keys_append(&listing->keys, &key) : 0;
}

static int page_finals(struct listing *listing)
{
	bool wants_more = listing->keys.count < listing->keys.max && listing->final_before > 0;
	int r = 0;

	if (wants_more)
		r = store_page_final(
			listing->call->store, &listing->final_before, FINAL_TASKS, gather_final, listing);
	if (!wants_more)
		listing->phase = PHASE_TEXTS;
	return r == ENOUGH ? 0 : r;
}

/* ---- reading the chosen ones -------------------------------------------------------------------------- */

static struct task_outline outline_of(const struct task *task)
{
	return (struct task_outline){
		.seq = task->seq,
		.created_ms = task->created_ms,
		.queue = task->queue,
		.owner = task->owner,
		.priority = task->priority,
		.state = task->state,
	};
}

/* Has the list come past the place of that key? Then a task that moved there is not shown by a later page. */
static bool is_passed(const struct listing *listing, const struct task_key *key)
{
	const struct task_keys *keys = &listing->keys;

	return !listing->is_cut ||
		(keys->count > 0 && task_key_order(key, &keys->items[keys->count - 1]) <= 0);
}

/* Is it still to be shown at the place that was chosen for it? One that has become final since is shown with the
 * final ones, unless they were gathered before it was one of them. */
static bool still_belongs(
	const struct listing *listing, const struct task_key *key, const struct task_outline *outline)
{
	struct task_key now = task_key_of(outline);

	if (!columns_match(listing, outline))
		return false;
	if (key->final || !now.final || listing->phase != PHASE_RENDER)
		return true;
	return is_passed(listing, &now) && !task_keys_have(&listing->keys, &now);
}

/* The task behind the key. *ret_there: it is there, and belongs into the list. */
static int read_chosen(struct listing *listing, const struct task_key *key, struct arena *arena,
	struct task_document *ret_document, bool *ret_there)
{
	*ret_there = false;
	int r = store_read_task(listing->call->store, key->seq, listing->call->now, arena, ret_document);
	if (r == -ENOENT)
		return 0; /* purged since */
	if (r < 0)
		return r;
	struct task_outline outline = outline_of(&ret_document->task);
	*ret_there =
		still_belongs(listing, key, &outline) && principal_sees(listing->call, &ret_document->task);
	return 0;
}

static size_t text_bytes(const struct task_document *document)
{
	return document->body.len + document->result.len + document->error.len + document->checkpoint.len;
}

/* A slice of reading: calls use() for the tasks from `at` on, until enough was read for once. What it returns, if it is
 * not 0, ends the slice: a fault, or ENOUGH. */
static int read_slice(struct listing *listing, uint32_t end,
	int (*use)(struct listing *listing, const struct task_key *key, const struct task_document *document))
{
	size_t bytes = 0;
	struct task_document document;
	struct arena arena;
	bool there;
	int r = 0;

	arena_init(&arena, 16 * API_TEXT_MAX);
	for (uint32_t tasks = 0; r == 0 && tasks < READ_TASKS && bytes < READ_BYTES && listing->at < end;
		tasks++) {
		const struct task_key *key = &listing->keys.items[listing->at];
		r = read_chosen(listing, key, &arena, &document, &there);
		if (r == 0 && there) {
			r = use(listing, key, &document);
			bytes += text_bytes(&document);
		}
		listing->at++;
		arena_reset(&arena);
	}
	arena_done(&arena);
	return r;
}

/* ---- the head: where it goes on ------------------------------------------------------------------------ */

static int put_query(struct buf *link, const struct listing *listing)
{
	int r = 0;

	for (int i = 0; r == 0 && i < P_AFTER; i++) {
		struct span value = listing->values[i].value;
		if (!value.data)
			continue;
		r = buf_printf(link, "%s=", listing->values[i].name);
		if (r == 0)
			r = http_encode(value, link);
		if (r == 0)
			r = buf_put_byte(link, '&');
	}
	return r;
}

/* Behind the last task that was looked at. */
static int link_next(struct listing *listing, const struct task_key *last)
{
	struct api_call *call = listing->call;
	cleanup(buf_done) struct buf link = {0};

	buf_init(&link, 64 << 10);
	int r = buf_printf(&link, "</api/tasks?");
	if (r == 0)
		r = put_query(&link, listing);
	if (r == 0)
		r = buf_printf(&link, "after=");
	if (r == 0)
		r = task_key_put(&link, last);
	if (r == 0)
		r = buf_printf(&link, ">; rel=\"next\"");
	return r < 0 ? r : arena_copy(call->arena, buf_span(&link), &call->reply.link);
}

/* `looked_at` keys were; `count` of those before them are to be rendered. */
static int begin_rendering(struct listing *listing, uint32_t looked_at, uint32_t count)
{
	int r = 0;

	listing->is_cut = looked_at < listing->keys.count;
	if (listing->is_cut)
		r = link_next(listing, &listing->keys.items[looked_at - 1]);
	listing->keys.count = count;
	listing->at = 0;
	listing->phase = PHASE_RENDER;
	call_reply_begin(listing->call);
	return r < 0 ? r : buf_put_byte(listing->call->body, '[');
}

/* ---- the texts ----------------------------------------------------------------------------------------- */

static int keep_if_text_matches(
	struct listing *listing, const struct task_key *key, const struct task_document *document)
{
	if (text_matches(listing, document))
		listing->keys.items[listing->kept++] = *key;
	return listing->kept == listing->limit ? ENOUGH : 0;
}

static int look_at_texts(struct listing *listing)
{
	uint32_t count = listing->keys.count;
	uint32_t end = count < listing->looks ? count : listing->looks;

	if (!listing->reads_text)
		return begin_rendering(listing, end, end);
	int r = read_slice(listing, end, keep_if_text_matches);
	if (r < 0 || (r == 0 && listing->at < end))
		return r;
	return begin_rendering(listing, listing->at, listing->kept);
}

/* ---- the body -------------------------------------------------------------------------------------------- */

/* To ask for the reason of a ready task is to look at every worker. */
static enum why reason_of(struct listing *listing, const struct task *task)
{
	struct known_reason kind = {task->queue, task->owner, task->requires, task->executor, 0};
	uint64_t hash = hash_u64((uint64_t)kind.queue << 32 | kind.owner) ^
		hash_u64((uint64_t)kind.requires << 32 | kind.executor);
	struct known_reason *known = &listing->reasons[hash % REASONS_KEPT];

	if (task->state != TASK_READY || task->resume_until_ms != 0)
		return store_why(listing->call->store, task, listing->call->now).why;
	if (known->queue != kind.queue || known->owner != kind.owner || known->requires != kind.requires ||
		known->executor != kind.executor) {
		kind.why = store_why(listing->call->store, task, listing->call->now).why;
		*known = kind;
	}
	return known->why;
}

static int render_task(
	struct listing *listing, const struct task_key *key, const struct task_document *document)
{
	struct api_call *call = listing->call;
	struct json_object object;

	(void)key;
	int r = json_put_comma(call->body, &listing->any);
	if (r < 0)
		return r;
	json_begin(&object, call->body);
	task_put_members(call, &object, document);
	json_member_cstr(&object, "reason", why_name(reason_of(listing, &document->task)));
	return json_end(&object);
}

/* Its end is the end of the list. */
static int render(struct listing *listing)
{
	int r = read_slice(listing, listing->keys.count, render_task);

	if (r < 0 || listing->at < listing->keys.count)
		return r;
	r = buf_put_byte(listing->call->body, ']');
	return r < 0 ? r : ENOUGH;
}

/* ---- the request ------------------------------------------------------------------------------------ */

static bool read_after(struct listing *listing)
{
	struct span text = listing->values[P_AFTER].value;

	listing->final_before = INT64_MAX;
	if (!text.data)
		return true;
	if (task_key_read(text, &listing->after) < 0) {
		call_refuse_field(listing->call, "after", "must be a cursor as it was given out in Link");
		return false;
	}
	listing->continues = true;
	if (listing->after.final)
		listing->final_before = listing->after.seq;
	return true;
}

/* The states that both filters let through; 0: one of them is none. */
static uint32_t states_wanted(const struct query_value *values, enum parameter which)
{
	uint32_t states = 0;

	for (int i = TASK_NOWHERE + 1; i < TASK_STATE_COUNT; i++) {
		enum task_state state = (enum task_state)i;
		const char *name = which == P_STATE ? task_state_name(state) : task_state_status(state);
		if (!differs(&values[which], span_of(name)))
			states |= STATE_BIT(state);
	}
	return states;
}

static bool read_states(struct listing *listing)
{
	uint32_t by_state = states_wanted(listing->values, P_STATE);
	uint32_t by_status = states_wanted(listing->values, P_STATUS);

	if (by_state == 0) {
		call_refuse_field(listing->call, "state",
			"must be one of pending, scheduled, waiting, ready, claimed, running, asking, review, "
			"blocked, failed, done, cancelled");
		return false;
	}
	if (by_status == 0) {
		call_refuse_field(listing->call, "status",
			"must be one of todo, in-progress, review, blocked, done, cancelled");
		return false;
	}
	listing->states = by_state & by_status;
	return true;
}

static bool read_stage(struct listing *listing)
{
	const struct query_value *values = listing->values;

	listing->workflow = workflow_from_name(call_workflows(listing->call), values[P_WORKFLOW].value);
	listing->stage = stage_from_name(values[P_STAGE].value);
	if (values[P_WORKFLOW].value.data && listing->workflow == WORKFLOW_NONE) {
		call_refuse_field(listing->call, "workflow", "must be the name of a workflow");
		return false;
	}
	if (values[P_STAGE].value.data && listing->stage == STAGE_NONE) {
		call_refuse_field(listing->call, "stage", "must be the name of a stage");
		return false;
	}
	return true;
}

static bool read_parameters(struct listing *listing)
{
	struct query_value *values = listing->values;
	int64_t limit;

	if (!query_read(listing->call, values, P_COUNT))
		return false;
	if (query_int(&values[P_LIMIT], 1, LIST_MAX, LIST_MAX, &limit) < 0) {
		call_refuse_field(listing->call, "limit", "must be from 1 to 10000");
		return false;
	}
	listing->limit = (uint32_t)limit;
	listing->reads_text = values[P_LABEL].value.data || values[P_Q].value.data ||
		values[P_WORKFLOW].value.data || values[P_STAGE].value.data;
	listing->looks = listing->reads_text ? LIST_MAX : listing->limit;
	return read_states(listing) && read_stage(listing) && read_after(listing);
}

/* Where the filters leave nothing to find there is nothing to look at. */
static void choose_start(struct listing *listing)
{
	const uint32_t finals = STATE_BIT(TASK_DONE) | STATE_BIT(TASK_FAILED) | STATE_BIT(TASK_CANCELLED);

	if ((listing->states & finals) == 0)
		listing->final_before = 0;
	listing->phase = (listing->states & ~finals) == 0 || (listing->continues && listing->after.final)
		? PHASE_FINALS
		: PHASE_SCAN;
	task_keys_init(&listing->keys, listing->call->arena, listing->looks + 1);
}

/* NULL: it was refused. */
static struct listing *listing_new(struct api_call *call)
{
	static const char *const names[P_COUNT] = {
		"status", "state", "queue", "owner", "label", "q", "workflow", "stage", "limit", "after"};
	struct listing *listing = arena_alloc(call->arena, sizeof *listing);

	if (!listing) {
		call_refuse_fault(call, -ENOMEM);
		return NULL;
	}
	listing->call = call;
	for (int i = 0; i < P_COUNT; i++)
		listing->values[i].name = names[i];
	if (!read_parameters(listing))
		return NULL;
	choose_start(listing);
	return listing;
}

static int take_slice(struct listing *listing)
{
	switch (listing->phase) {
	case PHASE_SCAN:
		return scan(listing);
	case PHASE_SORT:
		if (task_keys_sort(&listing->keys, SORT_STEPS))
			listing->phase = PHASE_FINALS;
		return 0;
	case PHASE_FINALS:
		return page_finals(listing);
	case PHASE_TEXTS:
		return look_at_texts(listing);
	case PHASE_RENDER:
		break;
	}
	return render(listing);
}

void task_list_read(struct api_call *call)
{
	struct listing *listing = call->detail;

	if (!listing) {
		listing = listing_new(call);
		if (!listing)
			return;
		call->detail = listing;
	}
	int r = take_slice(listing);
	if (r == 0)
		call_again(call);
	else
		call_reply(call, 200, r == ENOUGH ? 0 : r);
}
