#include "api/task/filter.h"

#include <stdio.h>
#include <string.h>

#include "api/task/form.h"
#include "api/task/view.h"
#include "base/utf8.h"
#include "core/task/cause.h"

enum {
	CAUSE_DIGITS = 12,
	CODE_BYTES_MAX = 240,
};

_Static_assert((int)TASK_CAUSE_BYTES >= (int)CODE_BYTES_MAX + (int)CAUSE_BYTES_MAX, "room for both texts");
_Static_assert((int)CAUSE_ID_BYTES > (int)CODE_BYTES_MAX + (int)CAUSE_DIGITS + 1, "room for code and digits");

const char *const filter_names[FILTER_FIELDS] = {
	[FILTER_STATUS] = "status",
	[FILTER_STATE] = "state",
	[FILTER_QUEUE] = "queue",
	[FILTER_OWNER] = "owner",
	[FILTER_LABEL] = "label",
	[FILTER_Q] = "q",
	[FILTER_SCHEDULE] = "schedule",
	[FILTER_GROUP] = "group",
	[FILTER_PARENT] = "parent",
	[FILTER_WORKFLOW] = "workflow",
	[FILTER_STAGE] = "stage",
	[FILTER_ERROR] = "error",
};

/* ---- what the values mean --------------------------------------------------------------------------------- */

static bool refuse(
	struct api_call *call, const struct task_filter *filter, enum filter_field field, const char *message)
{
	char name[64];

	snprintf(name, sizeof name, "%s%s", filter->path ? filter->path : "", filter_names[field]);
	return call_refuse_field(call, name, message);
}

/* The states of that name or status; 0: there is none. */
static uint32_t states_called(struct span word, enum filter_field which)
{
	uint32_t states = 0;

	for (int i = TASK_NOWHERE + 1; i < TASK_STATE_COUNT; i++) {
		enum task_state state = (enum task_state)i;
		const char *name = which == FILTER_STATE ? task_state_name(state) : task_state_status(state);
		if (span_equal(word, span_of(name)))
			states |= STATE_BIT(state);
	}
	return states;
}

/* The states that this filter lets through: one word, or a list of states with commas between; 0: a word names no state. */
static uint32_t states_wanted(const struct task_filter *filter, enum filter_field which)
{
	struct span rest = filter->values[which];
	uint32_t states = 0;

	if (!rest.data)
		return UINT32_MAX;
	for (;;) {
		const char *comma =
			which == FILTER_STATE && rest.len > 0 ? memchr(rest.data, ',', rest.len) : NULL;
		size_t len = comma ? (size_t)(comma - rest.data) : rest.len;
		uint32_t called = states_called((struct span){rest.data, len}, which);
		if (called == 0)
			return 0;
		states |= called;
		if (!comma)
			return states;
		rest = (struct span){comma + 1, rest.len - len - 1};
	}
}

static bool judge_states(struct api_call *call, struct task_filter *filter)
{
	uint32_t by_state = states_wanted(filter, FILTER_STATE);
	uint32_t by_status = states_wanted(filter, FILTER_STATUS);

	if (by_state == 0)
		return refuse(call, filter, FILTER_STATE,
			"must be one or more of pending, scheduled, waiting, ready, claimed, running, asking, review, "
			"blocked, failed, done, cancelled, with commas between");
	if (by_status == 0)
		return refuse(call, filter, FILTER_STATUS,
			"must be one of todo, in-progress, review, blocked, done, cancelled");
	filter->states = by_state & by_status;
	return true;
}

static bool judge_stage(struct api_call *call, struct task_filter *filter)
{
	struct span workflow = filter->values[FILTER_WORKFLOW], stage = filter->values[FILTER_STAGE];

	filter->workflow = workflow_from_name(call_workflows(call), workflow);
	filter->stage = stage_from_name(stage);
	if (workflow.data && filter->workflow == WORKFLOW_NONE)
		return refuse(call, filter, FILTER_WORKFLOW, "must be the name of a workflow");
	if (stage.data && filter->stage == STAGE_NONE)
		return refuse(call, filter, FILTER_STAGE, "must be the name of a stage");
	return true;
}

/* A task that is not there has no subtasks. */
static void judge_parent(const struct api_call *call, struct task_filter *filter)
{
	struct span id = filter->values[FILTER_PARENT];

	if (id.data && store_find_task(call->store, id, &filter->parent) < 0)
		filter->states = 0;
}

/* A group that is not there has no members. */
static void judge_group(const struct api_call *call, struct task_filter *filter)
{
	struct group_document document;

	if (!filter->values[FILTER_GROUP].data)
		return;
	if (store_read_group(call->store, filter->values[FILTER_GROUP], &document) == 0)
		filter->group = document.group->number;
	else
		filter->states = 0;
}

/* Other tasks have no cause. */
static bool judge_error(struct api_call *call, struct task_filter *filter)
{
	struct span error = filter->values[FILTER_ERROR];

	if (!error.data)
		return true;
	if (error.len == 0)
		return refuse(call, filter, FILTER_ERROR,
			"must be the code of a failure, or an id of GET /api/errors");
	filter->states &= STATE_BIT(TASK_FAILED) | STATE_BIT(TASK_BLOCKED);
	filter->reads_causes = true;
	return true;
}

bool task_filter_judge(struct api_call *call, struct task_filter *filter)
{
	const struct span *values = filter->values;

	filter->reads_text = values[FILTER_LABEL].data || values[FILTER_Q].data ||
		values[FILTER_SCHEDULE].data || values[FILTER_WORKFLOW].data || values[FILTER_STAGE].data ||
		values[FILTER_ERROR].data;
	if (!judge_states(call, filter) || !judge_error(call, filter))
		return false;
	if (!search_read(values[FILTER_Q], &filter->search))
		return refuse(call, filter, FILTER_Q, "must be at most 16 words, each of at most 256 bytes");
	judge_group(call, filter);
	judge_parent(call, filter);
	return judge_stage(call, filter);
}

/* ---- causes ------------------------------------------------------------------------------------------------- */

static bool has_cause(enum task_state state)
{
	return state == TASK_FAILED || state == TASK_BLOCKED;
}

/* The words of the failure: its reporter's, or the server's own. */
static size_t put_words(const struct api_call *call, const struct task *task, yyjson_val *error, char *text)
{
	yyjson_val *message = yyjson_obj_get(error, "message");
	char room[TASK_FAILURE_BYTES];

	if (yyjson_is_str(message))
		return cause_put(json_text(message), text);
	return cause_put(span_of(task_failure_text(call, task, room)), text);
}

bool task_cause_read(const struct api_call *call, const struct task_document *document,
	char room[TASK_CAUSE_BYTES], struct task_cause *ret_cause)
{
	const struct task *task = &document->task;

	if (!has_cause(task->state))
		return false;
	yyjson_doc *doc = task_error_read(task, document->error, call->body);
	yyjson_val *error = yyjson_doc_get_root(doc);
	struct span code = json_text(yyjson_obj_get(error, "code"));
	if (code.len == 0)
		code = span_of(failure_code_name(task->code));
	code = utf8_cut(code, CODE_BYTES_MAX);
	memcpy(room, code.data, code.len);
	ret_cause->code = (struct span){room, code.len};
	char *text = room + code.len;
	ret_cause->text = (struct span){text, put_words(call, task, error, text)};
	ret_cause->digest = digest_text(ret_cause->code, ret_cause->text);
	yyjson_doc_free(doc);
	return true;
}

static void put_digits(uint64_t digest, char digits[CAUSE_DIGITS])
{
	for (int i = 0; i < CAUSE_DIGITS; i++)
		digits[i] = "0123456789abcdef"[digest >> (60 - 4 * i) & 15];
}

struct span task_cause_id_put(const struct task_cause *cause, char text[CAUSE_ID_BYTES])
{
	memcpy(text, cause->code.data, cause->code.len);
	text[cause->code.len] = ':';
	put_digits(cause->digest, text + cause->code.len + 1);
	return (struct span){text, cause->code.len + 1 + CAUSE_DIGITS};
}

static bool error_matches(
	const struct api_call *call, const struct task_filter *filter, const struct task_document *document)
{
	char room[TASK_CAUSE_BYTES], id[CAUSE_ID_BYTES];
	struct span wanted = filter->values[FILTER_ERROR];
	struct task_cause cause;

	if (!filter->reads_causes)
		return true;
	return task_cause_read(call, document, room, &cause) &&
		(span_equal(wanted, cause.code) || span_equal(wanted, task_cause_id_put(&cause, id)));
}

/* ---- what matches ------------------------------------------------------------------------------------------- */

static bool differs(struct span wanted, struct span text)
{
	return wanted.data && !span_equal(wanted, text);
}

bool task_filter_takes_outline(
	const struct api_call *call, const struct task_filter *filter, const struct task_outline *outline)
{
	const struct span *values = filter->values;

	return (filter->states & STATE_BIT(outline->state)) != 0 &&
		!differs(values[FILTER_QUEUE], name_of(call, outline->queue)) &&
		!differs(values[FILTER_OWNER], name_of(call, outline->owner)) &&
		(filter->group == 0 || filter->group == outline->group) &&
		(filter->parent == 0 || filter->parent == outline->subtask_of) &&
		principal_may_see(call, outline);
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

static uint32_t look_at_labels(const struct search_words *search, yyjson_val *body)
{
	uint32_t found = 0;
	size_t i, limit;
	yyjson_val *item;

	yyjson_arr_foreach(yyjson_obj_get(body, "labels"), i, limit, item) found |=
		search_look(search, json_text(item));
	return found;
}

/* Code and message of its failure, if it has one. */
static uint32_t look_at_error(
	const struct api_call *call, const struct search_words *search, const struct task_document *document)
{
	char room[TASK_FAILURE_BYTES];
	uint32_t found = 0;

	if (document->task.code == CODE_NONE && document->error.len == 0)
		return 0;
	yyjson_doc *doc = task_error_read(&document->task, document->error, call->body);
	yyjson_val *error = yyjson_doc_get_root(doc);
	found |= search_look(search, json_text(yyjson_obj_get(error, "code")));
	found |= search_look(search, json_text(yyjson_obj_get(error, "message")));
	yyjson_doc_free(doc);
	if (error || document->task.code == CODE_NONE)
		return found;
	found |= search_look(search, span_of(failure_code_name(document->task.code)));
	return found | search_look(search, span_of(task_failure_text(call, &document->task, room)));
}

/* What the attempt said last of how far it is: members of an object. */
static uint32_t look_at_note(
	const struct api_call *call, const struct search_words *search, const struct task_document *document)
{
	yyjson_doc *doc = document->progress.len > 0 ? task_body_read(document->progress, call->body) : NULL;
	uint32_t found = search_look(search, json_text(yyjson_obj_get(yyjson_doc_get_root(doc), "note")));

	yyjson_doc_free(doc);
	return found;
}

static bool has_words(const struct api_call *call, const struct search_words *search,
	const struct task_document *document, yyjson_val *body)
{
	uint32_t found = search_look(search, document->id) |
		search_look(search, json_text(yyjson_obj_get(body, "title"))) |
		search_look(search, name_of(call, document->task.queue)) | look_at_labels(search, body);

	return search_is_found(search, found) ||
		search_is_found(search,
			found | look_at_error(call, search, document) | look_at_note(call, search, document));
}

static bool stage_matches(const struct task_filter *filter, const struct task *task)
{
	return (filter->workflow == WORKFLOW_NONE || filter->workflow == task->workflow) &&
		(filter->stage == STAGE_NONE || filter->stage == task->stage);
}

static bool schedule_matches(
	const struct api_call *call, const struct task_filter *filter, const struct task *task)
{
	struct span wanted = filter->values[FILTER_SCHEDULE], id;
	int64_t at_ms;

	return !wanted.data ||
		(store_schedule_of(call->store, task, call->arena, &id, &at_ms) == 0 &&
			span_equal(id, wanted));
}

bool task_filter_takes_text(
	const struct api_call *call, const struct task_filter *filter, const struct task_document *document)
{
	struct span label = filter->values[FILTER_LABEL];

	if (!stage_matches(filter, &document->task) || !schedule_matches(call, filter, &document->task) ||
		!error_matches(call, filter, document))
		return false;
	if (!label.data && filter->search.count == 0)
		return true;
	yyjson_doc *doc = task_body_read(document->body, call->body);
	yyjson_val *body = yyjson_doc_get_root(doc);
	bool matches =
		(!label.data || has_label(body, label)) && has_words(call, &filter->search, document, body);
	yyjson_doc_free(doc);
	return matches;
}
