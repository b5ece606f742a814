/*
 * Tasks as JSON: the columns by name, and between them the members that the caller gave, copied as they are.
 *
 * What the server says is always there, null if there is nothing to say; what the caller may say, and what is kept
 * beside a task (sessionId, checkpoint, question, answer, evidence), is there once it was said. A report is answered
 * with what it said itself: nothing is read for it but the text.
 */
#include "api/task/form.h"
#include "api/task/subtask.h"
#include "api/task/view.h"

#include <errno.h>
#include <stdio.h>

#include "base/take.h"

enum {
	SUCCESSOR_BYTES_MAX = 8 << 20, /* memory to read the task that took the place of one */
	MEMBERS_BYTES_MAX = 512,       /* of any of the groups of members below, without the texts in it */
};

/* Words about an earlier failure are not about this one. */
yyjson_doc *task_error_read(const struct task *task, struct span error, struct buf *out)
{
	yyjson_doc *doc = kept_read(error, out);
	yyjson_val *name = yyjson_obj_get(yyjson_doc_get_root(doc), "code");

	if (yyjson_is_str(name) &&
		failure_code_from_name(yyjson_get_str(name), yyjson_get_len(name)) == task->code)
		return doc;
	yyjson_doc_free(doc);
	return NULL;
}

const char *task_failure_text(
	const struct api_call *call, const struct task *task, char room[TASK_FAILURE_BYTES])
{
	if (task->code != CODE_EXECUTOR_NOT_FOUND || task->executor == 0)
		return failure_code_text(task->code);
	snprintf(room, TASK_FAILURE_BYTES,
		"no active worker of queue %.*s has executor %.*s; start one that has it, or give the task another one, then retry it",
		SPAN_ARGS(name_of(call, task->queue)), SPAN_ARGS(name_of(call, task->executor)));
	return room;
}

static void put_own_error(const struct api_call *call, struct json_object *object, const struct task *task)
{
	char room[TASK_FAILURE_BYTES];
	struct json_object error;

	if (!json_put_key(object, "error"))
		return;
	json_begin(&error, object->buf);
	json_member_cstr(&error, "code", failure_code_name(task->code));
	json_member_cstr(&error, "message", task_failure_text(call, task, room));
	json_member_cstr(&error, "class", failure_class_name(failure_code_class(task->code)));
	json_note(object, json_end(&error));
}

/* The worker's own words if they are about this; else the code that the server itself gave. */
static void put_error(
	const struct api_call *call, struct json_object *object, const struct task *task, struct span error)
{
	if (task->code == CODE_NONE) {
		json_member_null(object, "error");
		if (!task_state_is_final(task->state)) /* what the next attempt should know */
			json_member_raw_if_any(object, "previousError", error);
		return;
	}
	yyjson_doc *own = task_error_read(task, error, object->buf);
	if (own)
		json_member_raw(object, "error", error);
	else
		put_own_error(call, object, task);
	yyjson_doc_free(own);
}

/* The same as one sentence. */
static void put_reason(const struct api_call *call, struct json_object *object, const char *key,
	const struct task *task, struct span error)
{
	yyjson_doc *own = task_error_read(task, error, object->buf);
	yyjson_val *message = yyjson_obj_get(yyjson_doc_get_root(own), "message");
	char room[TASK_FAILURE_BYTES];

	if (yyjson_is_str(message))
		json_member_string(object, key, json_text(message));
	else
		json_member_cstr(object, key, task_failure_text(call, task, room));
	yyjson_doc_free(own);
}

static void put_asked_for(const struct api_call *call, struct json_object *object, const struct task *task)
{
	struct span queue = name_of(call, task->queue), owner = name_of(call, task->owner),
		    executor = name_of(call, task->executor), credential = {0};
	if (task->credential != 0)
		credential = name_of(call, task->credential);
	char *at = json_room(object,
		MEMBERS_BYTES_MAX + json_string_max(queue) + json_string_max(owner) +
			json_string_max(executor) + json_string_max(credential));

	if (!at)
		return;
	at = json_write_text_or_null(at, "queue", queue);
	at = json_write_text_or_null(at, "owner", owner);
	at = json_write_int(at, "priority", task->priority);
	at = json_write_text_or_null(at, "executor", executor);
	if (credential.len > 0)
		at = json_write_text_or_null(at, "credential", credential);
	if (task->start_by_ms != 0)
		at = json_write_int(at, "startBy", task->start_by_ms);
	if (task->finish_by_ms != 0)
		at = json_write_int(at, "finishBy", task->finish_by_ms);
	at = json_write_int(at, "timeoutMs", task->timeout_ms);
	at = json_write_int(at, "maxAttempts", task->max_attempts);
	json_wrote(object, at);
}

/* The names of those gates that `mask` has. */
struct gate_names {
	struct json_names names;
	uint32_t bit, mask;
};

static int put_gate(void *context, struct span name)
{
	struct gate_names *gates = context;
	bool is_in = (gates->mask & gates->bit) != 0;

	gates->bit <<= 1;
	return is_in ? json_names_put(&gates->names, name) : 0;
}

static void put_gates(const struct api_call *call, struct json_object *object, const char *key,
	const struct task *task, uint32_t mask)
{
	struct gate_names gates = {.bit = 1, .mask = mask};

	json_names_begin(&gates.names, object, key);
	json_names_end(&gates.names, store_each_member(call->store, task->gates, put_gate, &gates));
}

/* Where it stands in its workflow, and which verdicts it needs; nothing of a task that has neither. */
static void put_stage(const struct api_call *call, struct json_object *object, const struct task *task)
{
	if (task->workflow != WORKFLOW_NONE) {
		json_member_string(
			object, "workflow", workflow_plan_of(call_workflows(call), task->workflow)->name);
		json_member_cstr(object, "stage", stage_name(task->stage));
	}
	if (task->gates == 0)
		return;
	put_gates(call, object, "gates", task, UINT32_MAX);
	put_gates(call, object, "gatesPassed", task, task->gates_passed);
}

static char *write_claim(char *at, const struct task_document *document)
{
	const struct task *task = &document->task;
	bool is_held = task->claim.holder != 0;

	at = json_write_text_or_null(at, "workerId", is_held ? document->holder : SPAN(""));
	at = task->fence == 0 ? json_write_raw(at, "fence", SPAN("null"))
			      : json_write_decimal(at, "fence", task->fence);
	at = is_held ? json_write_int(at, "leaseMs", document->lease_ms)
		     : json_write_raw(at, "leaseMs", SPAN("null"));
	return task->claim.stopping ? json_write_raw(at, "stopping", SPAN("true")) : at;
}

/* While an attempt is under way, or once it was lost, what is kept is the result of another one. */
struct span task_result(const struct task_document *document)
{
	const struct task *task = &document->task;
	bool is_its_own =
		task->state == TASK_DONE || task->ended == ENDED_COMPLETE || task->ended == ENDED_REVIEW;

	return is_its_own ? document->result : (struct span){0};
}

static void put_standing(struct json_object *object, const struct task_document *document)
{
	const struct task *task = &document->task;
	struct span result = task_result(document);
	char *at = json_room(
		object, MEMBERS_BYTES_MAX + json_string_max(document->holder) + document->result.len);

	if (!at)
		return;
	at = json_write_word(at, "status", task_state_status(task->state));
	at = json_write_word(at, "state", task_state_name(task->state));
	at = json_write_int(at, "attempt", task->attempt);
	at = json_write_int(at, "spent", task->spent);
	at = json_write_int(at, "crashes", task->crashes);
	at = write_claim(at, document);
	at = json_write_raw(at, "result", result.len > 0 ? result : SPAN("null"));
	json_wrote(object, at);
}

static void put_times(struct json_object *object, const struct task *task)
{
	char *at = json_room(object, MEMBERS_BYTES_MAX);

	if (!at)
		return;
	at = json_write_int(at, "createdAt", task->created_ms);
	at = json_write_int(at, "updatedAt", task->updated_ms);
	at = json_write_int(at, "version", task->version);
	json_wrote(object, at);
}

/* What the work itself said of its end: {"outcome","result"|"error","evidence"}. */
static void put_report(struct json_object *object, struct span kept)
{
	static const char *const outcomes[] = {
		[ENDED_COMPLETE] = "complete",
		[ENDED_FAIL] = "fail",
		[ENDED_REVIEW] = "review",
		[ENDED_BLOCK] = "block",
		[ENDED_RELEASE] = "release",
		[ENDED_WAIT] = "wait",
	};
	cleanup(buf_done) struct buf text = {.max = 4 * API_TEXT_MAX};
	struct json_object report;
	struct ending ending;

	int r = ending_read(kept, &ending);
	if (r < 0 || kept.data[0] == '{') { /* of an older server: JSON already */
		json_note(object, r);
		json_member_raw(object, "report", kept);
		return;
	}
	bool failed = ending.outcome == ENDED_FAIL || ending.outcome == ENDED_BLOCK;
	json_begin(&report, &text);
	json_member_cstr(&report, "outcome", outcomes[ending.outcome]);
	if (ending.data.len > 0)
		json_member_raw(&report, failed ? "error" : "result", ending.data);
	json_member_raw_if_any(&report, "evidence", ending.evidence);
	json_note(object, json_end(&report));
	json_member_raw(object, "report", buf_span(&text));
}

/* ---- questions ---- */

struct span question_id_put(uint32_t number, char text[QUESTION_ID_BYTES])
{
	return (struct span){text, (size_t)snprintf(text, QUESTION_ID_BYTES, "q-%u", number)};
}

bool question_id_read(struct span id, uint32_t *ret_number)
{
	uint64_t number = 0;

	if (id.len < 3 || id.len > 12 || memcmp(id.data, "q-", 2) != 0 || (id.data[2] == '0'))
		return false;
	for (size_t i = 2; i < id.len; i++) {
		if (id.data[i] < '0' || id.data[i] > '9')
			return false;
		number = number * 10 + (uint64_t)(id.data[i] - '0');
	}
	*ret_number = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX; /* no task has asked that many */
	return true;
}

int question_put(struct buf *out, struct span question, uint32_t number, struct span answer)
{
	yyjson_doc *doc = kept_read(question, out);
	yyjson_val *key, *value;
	char id[QUESTION_ID_BYTES];
	struct json_object object;
	size_t at, count;

	json_begin(&object, out);
	if (number != 0)
		json_member_string(&object, "id", question_id_put(number, id));
	yyjson_obj_foreach(yyjson_doc_get_root(doc), at, count, key, value)
	{
		bool old = yyjson_equals_str(key, "question");
		if (json_put_key(&object, old ? "text" : yyjson_get_str(key)))
			json_put_value(out, value);
	}
	json_member_raw_if_any(&object, "answer", answer_shown(answer));
	yyjson_doc_free(doc);
	return json_end(&object);
}

struct span answer_shown(struct span answer)
{
	return span_equal(answer, ANSWER_LATE) ? SPAN("{\"deny\":true,\"late\":true}") : answer;
}

const char *const usage_names[USAGE_COUNTS] = {
	"inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "turns", "toolCalls", "usd"};

/* A price that is not known is null, never 0. */
void task_put_usage(struct json_object *object, const struct usage *usage)
{
	struct json_object one;

	if (!json_put_key(object, "usage"))
		return;
	json_begin(&one, object->buf);
	for (int i = 0; i < USAGE_MICRO_USD; i++)
		json_member_int(&one, usage_names[i], usage->counts[i]);
	if (usage->price_is_unknown)
		json_member_null(&one, usage_names[USAGE_MICRO_USD]);
	else if (json_put_key(&one, usage_names[USAGE_MICRO_USD]))
		buf_printf(object->buf, "%lld.%06lld", (long long)(usage->counts[USAGE_MICRO_USD] / 1000000),
			(long long)(usage->counts[USAGE_MICRO_USD] % 1000000));
	json_note(object, json_end(&one));
}

/* What people told it, each with its number; `heard` once a holder has it. */
static void put_tells(struct json_object *object, const struct task_document *document)
{
	bool any = false;

	if (!json_put_key(object, "tells"))
		return;
	buf_put_byte(object->buf, '[');
	for (uint32_t number = document->first_telling; number <= document->last_telling; number++) {
		struct json_object one;
		json_put_comma(object->buf, &any);
		json_begin(&one, object->buf);
		json_member_int(&one, "id", number);
		json_members_raw(&one, document->tellings[number - document->first_telling]);
		json_member_true_if(&one, "heard", number <= document->heard_telling);
		json_note(object, json_end(&one));
	}
	buf_put_byte(object->buf, ']');
}

static void put_kept(struct json_object *object, const struct task_document *document)
{
	static const struct {
		const char *key;
		size_t at;
	} kept[] = {
		{"sessionId", offsetof(struct task_document, session)},
		{"checkpoint", offsetof(struct task_document, checkpoint)},
		{"evidence", offsetof(struct task_document, evidence)},
	};

	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
		const struct span *json = (const void *)((const char *)document + kept[i].at);
		bool of_before = json == &document->evidence && task_is_claimed(&document->task);
		if (json->len > 0 && !of_before)
			json_member_raw(object, kept[i].key, *json);
	}
	if (document->question.len > 0 && json_put_key(object, "question"))
		json_note(object,
			question_put(object->buf, document->question, document->question_number,
				(struct span){0}));
	json_member_raw_if_any(object, "answer", answer_shown(document->answer));
	if (document->usage.is_reported)
		task_put_usage(object, &document->usage);
	if (document->tellings)
		put_tells(object, document);
	if (document->progress.len > 0)
		json_members_raw(object, document->progress);
	if (document->report.len > 0)
		put_report(object, document->report);
}

/* What slot workers write into the metadata themselves when a task fails, or when they come back after a crash, is there
 * too when it was the server that found out. The last word counts. */
static int put_traces(const struct api_call *call, struct buf *text, const struct task_document *document)
{
	struct json_object metadata;

	json_begin(&metadata, text);
	if (document->recovered_ms != 0) {
		json_member_bool(&metadata, "crashRecovery", true);
		json_member_raw_or_null(&metadata, "previousSession", document->previous_session);
		json_member_int(&metadata, "recoveredAt", document->recovered_ms);
	}
	if (document->failed_ms != 0) {
		put_reason(call, &metadata, "errorReason", &document->task, document->error);
		json_member_int(&metadata, "failedAt", document->failed_ms);
		json_member_raw_if_any(&metadata, "sessionId", document->failed_session);
	}
	return json_end(&metadata);
}

static struct span body_with_traces(const struct api_call *call, const struct task_document *document)
{
	cleanup(buf_done) struct buf traces = {.max = API_TEXT_MAX};
	struct span body = document->body;

	int r = put_traces(call, &traces, document);
	if (r == 0)
		r = task_body_put_metadata(call->arena, document->body, buf_span(&traces), &body);
	return r < 0 ? document->body : body;
}

/* The schedule that made it, and the planned instant. */
static void put_occurrence(const struct api_call *call, struct json_object *object, const struct task *task)
{
	struct json_object schedule;
	struct span id;
	int64_t at_ms;
	int r = store_schedule_of(call->store, task, call->arena, &id, &at_ms);

	if (r < 0 || !json_put_key(object, "schedule")) {
		json_note(object, r);
		return;
	}
	json_begin(&schedule, object->buf);
	json_member_string(&schedule, "id", id);
	json_member_int(&schedule, "at", at_ms);
	json_note(object, json_end(&schedule));
}

/* The task that took its key and its place. */
static void put_successor(const struct api_call *call, struct json_object *object, const struct task *task)
{
	struct task_document successor;
	struct arena arena;

	arena_init(&arena, SUCCESSOR_BYTES_MAX);
	int r = store_read_task(call->store, task->superseded_by, call->now, &arena, &successor);
	if (r == 0)
		json_member_string(object, "supersededBy", successor.id);
	else
		json_note(object, r == -ENOENT ? 0 : r); /* it was removed long ago */
	arena_done(&arena);
}

void task_put_members(const struct api_call *call, struct json_object *object,
	const struct task_document *document, enum parents_shown shown)
{
	const struct task *task = &document->task;
	bool is_traced = document->recovered_ms != 0 || document->failed_ms != 0;
	struct span body = is_traced ? body_with_traces(call, document) : document->body;

	json_note(object, task_body_put_parents(call, task, body, shown, &body));
	json_member_string(object, "id", document->id);
	if (buf_fault(object->buf) < 0)
		return; /* what follows has its place behind a member */
	json_members_raw(object, body);
	put_asked_for(call, object, task);
	if (task->workflow != WORKFLOW_NONE || task->gates != 0)
		put_stage(call, object, task);
	put_standing(object, document);
	put_error(call, object, task, document->error);
	put_kept(object, document);
	if (task->subtasks != SUBTASKS_NONE && shown != PARENTS_IN_LIST)
		subtasks_put(call, object, task);
	if (task->superseded_by != 0)
		put_successor(call, object, task);
	if (task->verdict_for != 0)
		action_put_verdict_for(call, object, task);
	if (task->occurrence != OCCURRENCE_NONE)
		put_occurrence(call, object, task);
	put_times(object, task);
}

static int put_task(const struct api_call *call, struct buf *out, const struct task_document *document,
	enum parents_shown shown)
{
	struct json_object object;

	json_begin(&object, out);
	task_put_members(call, &object, document, shown);
	return json_end(&object);
}

int task_put(const struct api_call *call, struct buf *out, const struct task_document *document)
{
	return put_task(call, out, document, PARENTS_IN_DOCUMENT);
}

/* What earlier attempts asked and were answered, and what was allowed for the whole task. */
static void put_answered(struct json_object *claim, const struct claimed *claimed)
{
	struct buf *out = claim->buf;
	bool any = false;

	if (claimed->answered_count > 0 && json_put_key(claim, "questions")) {
		buf_put_byte(out, '[');
		for (uint32_t i = 0; i < claimed->answered_count; i++) {
			const struct answered *one = &claimed->answered[i];
			json_put_comma(out, &any);
			json_note(claim, question_put(out, one->question, one->number, one->answer));
		}
		buf_put_byte(out, ']');
	}
	if (claimed->allowed_count == 0 || !json_put_key(claim, "allowed"))
		return;
	any = false;
	buf_put_byte(out, '[');
	for (uint32_t i = 0; i < claimed->allowed_count; i++) {
		json_put_comma(out, &any);
		buf_put_span(out, claimed->allowed[i]);
	}
	buf_put_byte(out, ']');
}

int claim_put(const struct api_call *call, struct buf *out, const struct claimed *claimed, struct span worker,
	struct span token)
{
	struct task_document document = {
		.task = claimed->task,
		.id = claimed->id,
		.holder = worker,
		.body = claimed->body,
		.session = claimed->session,
		.question = claimed->question,
		.question_number = claimed->question_number,
		.tellings = claimed->tellings,
		.first_telling = claimed->first_telling,
		.last_telling = claimed->last_telling,
		.answer = claimed->answer,
		.error = claimed->error,
		.usage = claimed->usage,
		.lease_ms = claimed->lease_ms,
	};
	struct json_object claim;

	json_begin(&claim, out);
	if (!json_put_key(&claim, "task"))
		return buf_fault(out);
	put_task(call, out, &document, PARENTS_FOR_ATTEMPT);
	char *at = json_room(&claim, MEMBERS_BYTES_MAX + claimed->checkpoint.len);
	if (!at)
		return buf_fault(claim.buf);
	at = json_write_decimal(at, "fence", claimed->task.fence);
	at = json_write_int(at, "leaseMs", claimed->lease_ms);
	at = json_write_int(at, "attempt", claimed->task.attempt);
	at = json_write_raw(
		at, "checkpoint", claimed->checkpoint.len > 0 ? claimed->checkpoint : SPAN("null"));
	json_wrote(&claim, at);
	put_answered(&claim, claimed);
	if (claimed->task.subtask_of != 0)
		subtask_put_parent(call, &claim, &claimed->task);
	if (claimed->task.verdict_for != 0)
		action_put_judged(call, &claim, &claimed->task);
	json_member_string_if_any(&claim, "fallback", claimed->fallback);
	if (claimed->task.begins_anew)
		json_member_bool(&claim, "fresh", true);
	json_member_string_if_any(&claim, "token", token);
	return json_end(&claim);
}

bool task_etag(struct api_call *call, int64_t version)
{
	char *text = arena_alloc(call->arena, DECIMAL_DIGITS_MAX + 2);

	if (!text)
		return call_refuse_fault(call, -ENOMEM);
	text[0] = '"';
	char *end = decimal_write(text + 1, (uint64_t)version);
	*end++ = '"';
	call->reply.etag = (struct span){text, (size_t)(end - text)};
	return true;
}

void warnings_put(struct json_object *object, struct span warnings)
{
	if (warnings.len == 0 || !json_put_key(object, "warnings"))
		return;
	buf_put_byte(object->buf, '[');
	buf_put_span(object->buf, warnings);
	buf_put_byte(object->buf, ']');
}

void task_set_back(struct task_document *document, const struct result *result)
{
	int64_t updated_ms = document->task.updated_ms;

	document->task = result->task;
	if (document->task.updated_ms == 0) /* it changed nothing, and the memory does not know */
		document->task.updated_ms = updated_ms;
}

void task_reply(struct api_call *call, int status, const struct result *result, struct span warnings)
{
	struct task_document document;
	struct json_object object;

	call->reply.event_seq = result->event_seq;
	int r = store_read_task(call->store, result->task.seq, call->now, call->arena, &document);
	if (r < 0) {
		call_reply(call, status, r);
		return;
	}
	task_set_back(&document, result);
	json_begin(&object, call->body);
	task_put_members(call, &object, &document, PARENTS_IN_DOCUMENT);
	warnings_put(&object, warnings);
	r = json_end(&object);
	call_reply(call, status, r);
	if (r == 0)
		task_etag(call, document.task.version);
}
