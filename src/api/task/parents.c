/*
 * The tasks that a task was made to wait for: `blockedBy` names those that still hold it back, `parents` all of them, with
 * what came of each. The text of the task keeps the list as it was given; what is shown follows the edges of the store.
 */
#include "api/task/view.h"

#include <errno.h>
#include <string.h>

#include "api/task/form.h"
#include "base/take.h"
#include "base/utf8.h"

enum {
	RESULTS_BYTES_MAX = 256 << 10, /* of all parents of one task */
	PARENT_BYTES_MAX = 8 << 20,    /* memory to read one of them */
};

/* A parent by its edge. The text of the task does not name one that took the place of another. */
struct linked {
	int64_t seq;
	bool holds_back, is_named;
};

struct links {
	struct linked items[COMMAND_PARENTS_MAX];
	uint32_t count;
};

static int note_parent(void *context, int64_t seq, bool done)
{
	struct links *links = context;

	if (links->count < COMMAND_PARENTS_MAX)
		links->items[links->count++] = (struct linked){seq, .holds_back = !done};
	return 0;
}

static struct linked *link_to(struct links *links, int64_t seq)
{
	for (uint32_t i = 0; i < links->count; i++) {
		if (links->items[i].seq == seq)
			return &links->items[i];
	}
	return NULL;
}

struct parent_lists {
	const struct api_call *call;
	int64_t task;
	struct links links;
	bool with_results;
	bool sees_all; /* an attempt has the results of all its parents, whatever their queues */
	size_t left;   /* bytes for results */
	struct buf held, all;
	bool any_held, any;
	int fault;
};

void result_put_cut(struct json_object *object, struct span result, size_t *left)
{
	if (result.len <= *left) {
		json_member_raw(object, "result", result.len > 0 ? result : SPAN("null"));
		*left -= result.len;
		return;
	}
	struct span cut = utf8_cut(result, *left);
	json_member_string(object, "result", cut);
	json_member_bool(object, "resultCut", true);
	*left = 0;
}

/* -ENOENT: it is no longer there. */
static int put_parent(struct parent_lists *parents, struct span id, int64_t seq, struct arena *arena)
{
	struct store *store = parents->call->store;
	struct task_document document = {0};
	struct json_object object;

	int r = seq != 0 ? store_read_task(store, seq, parents->call->now, arena, &document) : -ENOENT;
	if (r < 0 && r != -ENOENT)
		return r;
	/* the one that took its place is the parent now */
	if (document.task.superseded_by != 0 && parents->links.count > 0 && !link_to(&parents->links, seq))
		return 0;
	json_put_comma(&parents->all, &parents->any);
	json_begin(&object, &parents->all);
	json_member_string(&object, "id", id);
	if (r == -ENOENT) {
		json_member_null(&object, "state"); /* it was removed long ago */
	} else {
		json_member_cstr(&object, "state", task_state_name(document.task.state));
		if (parents->sees_all ||
			principal_serves(&parents->call->who, name_of(parents->call, document.task.queue)))
			result_put_cut(&object, task_result(&document), &parents->left);
	}
	return json_end(&object);
}

static int put_one(struct parent_lists *parents, struct span id)
{
	struct arena arena;
	int64_t seq = 0;

	int r = store_find_task(parents->call->store, id, &seq);
	if (r < 0 && r != -ENOENT && r != -EINVAL)
		return r;
	seq = r < 0 ? 0 : seq;
	struct linked *link = seq != 0 ? link_to(&parents->links, seq) : NULL;
	if (link)
		link->is_named = true;
	if (link && link->holds_back) {
		json_put_comma(&parents->held, &parents->any_held);
		json_put_string(&parents->held, id);
	}
	if (!parents->with_results)
		return 0;
	arena_init(&arena, PARENT_BYTES_MAX);
	r = put_parent(parents, id, seq, &arena);
	arena_done(&arena);
	return r;
}

/* Those that took the place of one that the text names. */
static int put_successors(struct parent_lists *parents)
{
	struct task_document document;
	struct arena arena;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < parents->links.count; i++) {
		if (parents->links.items[i].is_named)
			continue;
		arena_init(&arena, PARENT_BYTES_MAX);
		r = store_read_task(parents->call->store, parents->links.items[i].seq, parents->call->now,
			&arena, &document);
		if (r == 0 &&
			document.task.subtask_of !=
				parents->task) /* it waits for its subtasks by edges too */
			r = put_one(parents, document.id);
		arena_done(&arena);
		r = r == -ENOENT ? 0 : r;
	}
	return r;
}

/* The text of the task with the lists in place of what was given. */
static int put_lists(struct parent_lists *parents, struct arena *arena, yyjson_doc *doc, yyjson_val *ids,
	struct span *ret_body)
{
	cleanup(buf_done) struct buf text = {.max = 4 * API_TEXT_MAX + RESULTS_BYTES_MAX};
	struct json_object object = {.buf = &text};
	yyjson_val *key, *value, *id;
	size_t at, count;
	int r = 0;

	yyjson_arr_foreach(ids, at, count, id)
	{
		r = r == 0 && yyjson_is_str(id) ? put_one(parents, json_text(id)) : r;
	}
	if (r == 0)
		r = put_successors(parents);
	if (r < 0)
		return r;
	yyjson_obj_foreach(yyjson_doc_get_root(doc), at, count, key, value)
	{
		if (value != ids && json_put_key(&object, yyjson_get_str(key)))
			json_put_value(&text, value);
	}
	buf_put_byte(&parents->held, ']');
	json_member_raw(&object, "blockedBy", buf_span(&parents->held));
	buf_put_byte(&parents->all, ']');
	if (parents->with_results)
		json_member_raw(&object, "parents", buf_span(&parents->all));
	r = buf_fault(&parents->held) < 0 ? buf_fault(&parents->held) : buf_fault(&parents->all);
	return r < 0 ? r : buf_keep(&text, arena, ret_body);
}

static int put_parents(const struct api_call *call, const struct task *task, struct span body,
	enum parents_shown shown, struct span *ret_body)
{
	struct parent_lists parents = {
		.call = call,
		.task = task->seq,
		.with_results = shown != PARENTS_IN_LIST,
		.sees_all = shown == PARENTS_FOR_ATTEMPT || call->who.task.len > 0,
		.left = RESULTS_BYTES_MAX,
	};

	cleanup(yyjson_doc_free_at) yyjson_doc *doc = task_body_read(body, NULL);
	yyjson_val *ids = yyjson_obj_get(yyjson_doc_get_root(doc), "blockedBy");
	if (!doc)
		return -ENOMEM;
	if (yyjson_arr_size(ids) == 0)
		return 0;
	int r = task->open_parents > 0 || parents.with_results
		? store_each_parent(call->store, task->seq, note_parent, &parents.links)
		: 0;
	if (r < 0)
		return r;
	buf_init(&parents.held, API_TEXT_MAX);
	buf_init(&parents.all, 4 * API_TEXT_MAX);
	buf_put_byte(&parents.held, '[');
	buf_put_byte(&parents.all, '[');
	r = put_lists(&parents, call->arena, doc, ids, ret_body);
	buf_done(&parents.held);
	buf_done(&parents.all);
	return r;
}

int task_body_put_parents(const struct api_call *call, const struct task *task, struct span body,
	enum parents_shown shown, struct span *ret_body)
{
	*ret_body = body;
	return task->has_parent && body.len > 0 ? put_parents(call, task, body, shown, ret_body) : 0;
}
