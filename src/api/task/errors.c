/*
 * What failed and why: failed and blocked tasks, counted by their cause. Made in slices like the lists of tasks: the open ones that
 * are blocked, then the final ones that failed, newest first; each that matches is read for its cause.
 *
 * There are at most CAUSES_MAX causes. What is beyond them is counted by its code alone.
 */
#include "api/task/filter.h"
#include "api/task/slice.h"

#include <stdlib.h>

#include "base/hash.h"

enum {
	CAUSES_MAX = 1000,
	PLACES = 4096, /* of the table: a power of 2, larger than all causes with all codes beyond them */
	CODES_MAX = 1000,
	FINAL_ROWS = 200, /* of one slice */
};

struct cause_count {
	uint64_t digest;
	struct span code, text, task; /* `task`: the id of the last one */
	uint32_t failed, blocked;
	int64_t first_ms, last_ms; /* wall: when the first and the last of them came to its state */
};

enum errors_phase { ERRORS_OPEN, ERRORS_FINAL, ERRORS_REPLY };

struct error_list {
	struct api_call *call;
	struct task_filter filter;
	enum errors_phase phase;
	uint32_t scan_at;
	int64_t final_before;
	int64_t seqs[SLICE_SCAN]; /* to be read */
	uint32_t seq_count, seq_next;
	struct cause_count *causes;
	uint32_t count;
	uint16_t places[PLACES]; /* number of the cause, from 1; 0: free */
};

/* ---- counting ------------------------------------------------------------------------------------------------ */

/* NULL: there is none of that digest, and *ret_place is where it would stand. */
static struct cause_count *find_cause(struct error_list *list, uint64_t digest, uint32_t *ret_place)
{
	uint32_t place = (uint32_t)hash_u64(digest) % PLACES;

	for (; list->places[place] != 0; place = (place + 1) % PLACES) {
		struct cause_count *cause = &list->causes[list->places[place] - 1];
		if (cause->digest == digest)
			return cause;
	}
	*ret_place = place;
	return NULL;
}

/* *ret_cause is NULL if there is no room for one more. */
static int cause_of(struct error_list *list, const struct task_cause *cause, struct cause_count **ret_cause)
{
	struct task_cause meant = *cause;
	uint32_t place;

	*ret_cause = find_cause(list, meant.digest, &place);
	if (!*ret_cause && list->count >= CAUSES_MAX) {
		meant.text = (struct span){0};
		meant.digest = digest_text(meant.code, meant.text);
		*ret_cause = find_cause(list, meant.digest, &place);
	}
	if (*ret_cause || list->count == CAUSES_MAX + CODES_MAX)
		return 0;
	struct cause_count *fresh = &list->causes[list->count];
	*fresh = (struct cause_count){.digest = meant.digest};
	int r = arena_copy(list->call->arena, meant.code, &fresh->code);
	if (r == 0)
		r = arena_copy(list->call->arena, meant.text, &fresh->text);
	if (r < 0)
		return r;
	list->places[place] = (uint16_t)++list->count;
	*ret_cause = fresh;
	return 0;
}

static int count_task(struct error_list *list, const struct task_document *document)
{
	const struct task *task = &document->task;
	char room[TASK_CAUSE_BYTES];
	struct cause_count *count;
	struct task_cause cause;

	if (!task_cause_read(list->call, document, room, &cause))
		return 0;
	int r = cause_of(list, &cause, &count);
	if (r < 0 || !count)
		return r;
	if (task->state == TASK_FAILED)
		count->failed++;
	else
		count->blocked++;
	if (count->first_ms == 0 || task->updated_ms < count->first_ms)
		count->first_ms = task->updated_ms;
	if (count->task.len > 0 && task->updated_ms < count->last_ms)
		return 0;
	count->last_ms = task->updated_ms;
	return arena_copy(list->call->arena, document->id, &count->task);
}

/* ---- slices -------------------------------------------------------------------------------------------------- */

static int gather(void *context, const struct task_outline *outline)
{
	struct error_list *list = context;

	if (task_filter_takes_outline(list->call, &list->filter, outline))
		list->seqs[list->seq_count++] = outline->seq;
	return 0;
}

static int read_some(struct error_list *list)
{
	struct api_call *call = list->call;
	struct task_document document;
	struct arena arena;
	int r = 0;

	arena_init(&arena, 16 * API_TEXT_MAX);
	for (uint32_t i = 0; r == 0 && i < SLICE_READ && list->seq_next < list->seq_count; i++) {
		r = store_read_task(call->store, list->seqs[list->seq_next++], call->now, &arena, &document);
		if (r == 0 && principal_sees(call, &document.task) &&
			task_filter_takes_text(call, &list->filter, &document))
			r = count_task(list, &document);
		r = r == -ENOENT ? 0 : r;
		arena_reset(&arena);
	}
	arena_done(&arena);
	return r;
}

static int take_slice(struct error_list *list)
{
	struct store *store = list->call->store;
	int r = 0;

	if (list->seq_next < list->seq_count)
		return read_some(list);
	list->seq_count = list->seq_next = 0;
	if (list->phase == ERRORS_OPEN) {
		r = store_page_open(store, &list->scan_at, SLICE_SCAN, gather, list);
		if (list->scan_at == 0)
			list->phase = ERRORS_FINAL;
	} else if (list->final_before > 0) {
		r = store_page_final(store, &list->final_before, FINAL_ROWS, gather, list);
	} else {
		list->phase = ERRORS_REPLY;
	}
	return r;
}

/* ---- the reply ----------------------------------------------------------------------------------------------- */

static int order_causes(const void *left, const void *right)
{
	const struct cause_count *a = left, *b = right;
	uint32_t a_tasks = a->failed + a->blocked, b_tasks = b->failed + b->blocked;

	if (a_tasks != b_tasks)
		return a_tasks > b_tasks ? -1 : 1;
	if (a->last_ms != b->last_ms)
		return a->last_ms > b->last_ms ? -1 : 1;
	return a->digest < b->digest ? -1 : a->digest > b->digest;
}

static int put_cause(struct buf *out, const struct cause_count *count)
{
	struct task_cause cause = {count->code, count->text, count->digest};
	char id[CAUSE_ID_BYTES];
	struct json_object object;

	json_begin(&object, out);
	json_member_string(&object, "id", count->text.len > 0 ? task_cause_id_put(&cause, id) : count->code);
	json_member_string(&object, "code", count->code);
	json_member_string(&object, "message", count->text);
	json_member_int(&object, "tasks", count->failed + count->blocked);
	json_member_int(&object, "failed", count->failed);
	json_member_int(&object, "blocked", count->blocked);
	json_member_int(&object, "firstAt", count->first_ms);
	json_member_int(&object, "lastAt", count->last_ms);
	json_member_string(&object, "task", count->task);
	return json_end(&object);
}

static void reply(struct api_call *call, struct error_list *list)
{
	bool any = false;
	int r = buf_fault(call->body);

	if (list->count > 0)
		qsort(list->causes, list->count, sizeof *list->causes, order_causes);
	buf_put_byte(call->body, '[');
	for (uint32_t i = 0; r == 0 && i < list->count; i++) {
		json_put_comma(call->body, &any);
		r = put_cause(call->body, &list->causes[i]);
	}
	if (r == 0)
		r = buf_put_byte(call->body, ']');
	call_reply(call, 200, r);
}

/* NULL: the call was refused. */
static struct error_list *error_list_new(struct api_call *call)
{
	const uint32_t states = STATE_BIT(TASK_FAILED) | STATE_BIT(TASK_BLOCKED);
	struct query_value values[FILTER_FIELDS] = {0};
	struct error_list *list = call_detail(call, sizeof *list);

	if (!list)
		return NULL;
	for (int i = 0; i < FILTER_FIELDS; i++)
		values[i].name = filter_names[i];
	if (!query_read(call, values, FILTER_FIELDS))
		return NULL;
	for (int i = 0; i < FILTER_FIELDS; i++)
		list->filter.values[i] = values[i].value;
	if (!task_filter_judge(call, &list->filter))
		return NULL;
	list->filter.states &= states;
	list->causes = arena_alloc(call->arena, (CAUSES_MAX + CODES_MAX) * sizeof *list->causes);
	if (!list->causes) {
		call_refuse_request(call, -ENOMEM);
		return NULL;
	}
	list->call = call;
	list->final_before = INT64_MAX;
	return list;
}

void error_list_read(struct api_call *call)
{
	struct error_list *list = call->detail ? call->detail : error_list_new(call);

	if (!list || call_has_failed(call, take_slice(list)))
		return;
	if (list->phase == ERRORS_REPLY)
		reply(call, list);
	else
		call_again(call);
}
