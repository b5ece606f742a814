/*
 * Replies that say no: application/problem+json (RFC 9457), always with a code that programs can rely on, and a
 * sentence for people. The current fence of a task is never part of one.
 */
#include "api/call.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "api/task/view.h"
#include "api/worker/beat_token.h"
#include "base/take.h"

/* What put_problem() would write, had it memory. */
#define PROBLEM_SHORT                                                                            \
	"{\"type\":\"urn:stint:problem:unavailable\",\"title\":\"the server cannot do it now\"," \
	"\"status\":503,\"code\":\"unavailable\",\"detail\":\"" SHORT_OF_MEMORY "\"}"

static int put_problem(struct api_call *call, struct refused *refused)
{
	struct json_object problem;
	char type[96];

	snprintf(type, sizeof type, "urn:stint:problem:%s", refused->code);
	json_begin(&problem, call->body);
	json_member_cstr(&problem, "type", type);
	json_member_cstr(&problem, "title", refused->title);
	json_member_int(&problem, "status", refused->status);
	json_member_cstr(&problem, "code", refused->code);
	if (refused->detail)
		json_member_cstr(&problem, "detail", refused->detail);
	if (refused->members.len > 0)
		json_members_raw(&problem, refused->members);
	return json_end(&problem);
}

/* Our own paths: they have no words but those of the refusal itself. */
static const struct door own_door = {
	.content_type = {"application/problem+json", sizeof "application/problem+json" - 1},
	.short_of_memory = {PROBLEM_SHORT, sizeof PROBLEM_SHORT - 1},
	.put = put_problem,
};

static const struct door *door_of(const struct api_call *call)
{
	struct span path = call->request->path;

	for (uint32_t i = 0; i < door_count; i++) {
		size_t len = strlen(doors[i].prefix);
		if (path.len >= len && memcmp(path.data, doors[i].prefix, len) == 0)
			return &doors[i];
	}
	return &own_door;
}

/* Headers that the reply has already stay. */
static void complete(struct api_call *call, int status, struct span content_type, struct span body)
{
	call->step = API_REPLY;
	call->reply.status = status;
	call->reply.content_type = content_type;
	call->reply.body = body;
	call->reply.head = call->request->method == HTTP_METHOD_HEAD;
	if (status == 503 || status == 429)
		call->reply.retry_after_s = 1;
}

void call_problem(struct api_call *call, int status, const char *code, const char *title, const char *detail,
	const struct buf *members)
{
	const struct door *door = door_of(call);
	struct refused refused = {
		status, code, title, detail, members ? buf_span(members) : (struct span){0}};

	buf_clear(call->body);
	buf_fail(call->body, members ? buf_fault(members) : 0);
	bool short_of_memory = door->put(call, &refused) < 0;
	call->reply = (struct http_reply){0};
	complete(call, short_of_memory ? refusal_http_status(REFUSED_UNAVAILABLE) : refused.status,
		door->content_type, short_of_memory ? door->short_of_memory : buf_span(call->body));
}

void api_refuse_early(struct api_call *call, int status, const char *detail)
{
	call_problem(call, status, "bad_request", "the request cannot be read", detail, NULL);
}

static const char *low_detail(struct api_call *call)
{
	const struct store_room *room = store_room(call->store);
	const char *text = arena_text(call->arena,
		"The disk of the server has %" PRIu64 " MiB left, less than the %" PRIu64
		" MiB that are kept for reports: new tasks, claims, changes of tasks, logs and registrations are taken again "
		"when there are %" PRIu64 " MiB. Make room there, or let an operator do it.",
		room->free_bytes >> 20, room->low_bytes >> 20, room->open_bytes >> 20);

	return text[0] ? text : NULL;
}

void call_refuse_with(
	struct api_call *call, enum refusal refusal, const char *detail, const struct buf *members)
{
	const char *text = refusal_text(refusal);

	if (refusal == REFUSED_DISK_LOW)
		detail = low_detail(call);
	call_problem(call, refusal_http_status(refusal), refusal_code(refusal), text, detail ? detail : text,
		members);
}

bool api_refuse(struct api_call *call, enum refusal refusal, const char *detail)
{
	call_refuse_with(call, refusal, detail, NULL);
	return false;
}

bool call_refuse_kind(struct api_call *call, const char *detail, const char *kind)
{
	cleanup(buf_done) struct buf members = {.max = 128};

	buf_printf(&members, "\"needs\":\"%s\"", kind);
	call_refuse_with(call, REFUSED_FORBIDDEN, detail, door_of(call) == &own_door ? &members : NULL);
	return false;
}

bool call_bad_request(struct api_call *call, const char *detail)
{
	api_refuse_early(call, 400, detail);
	return false;
}

bool call_refuse_field(struct api_call *call, const char *field, const char *message)
{
	cleanup(buf_done) struct buf members = {.max = 4096};

	buf_printf(&members, "\"errors\":[{\"field\":");
	json_put_string(&members, span_of(field));
	buf_printf(&members, ",\"message\":");
	json_put_string(&members, span_of(message));
	buf_printf(&members, "}]");
	call_refuse_with(call, REFUSED_INVALID, message, &members);
	return false;
}

bool call_require(struct api_call *call, bool is_met, enum refusal refusal, const char *detail)
{
	return is_met || api_refuse(call, refusal, detail);
}

bool call_require_field(struct api_call *call, bool is_met, const char *field, const char *message)
{
	return is_met || call_refuse_field(call, field, message);
}

/* Why the newcomer does not get the slot, and what would give it to it. */
static const char *slot_detail(enum evidence evidence)
{
	switch (evidence) {
	case EVIDENCE_NONE:
	case EVIDENCE_HOLDS:
		break;
	case EVIDENCE_OF_ANOTHER:
		return "\"replaces\" names another worker than the one that fills the slot; see \"holder\".";
	case EVIDENCE_UNCHECKED:
		return "The worker that fills the slot did not say which process it is, so nobody can show that it is dead: "
		       "wait for its lease to end, or have an operator remove it.";
	case EVIDENCE_FROM_AFAR:
		return "Only from the same host and boot can it be shown that the worker that fills the slot is dead.";
	case EVIDENCE_OTHER_PROCESS:
		return "The worker that fills the slot is another process than the one that \"replaces\" says is dead.";
	case EVIDENCE_REFUTED:
		return "The process that \"replaces\" says is dead is alive.";
	}
	return "Another live worker fills this slot; see \"holder\". Wait for its lease to end, or show with \"replaces\" "
	       "that its process is dead.";
}

static const char *gate_detail(const struct task *task)
{
	if (task->state == TASK_REVIEW)
		return "A gate of the task is not passed yet: POST /api/tasks/ID/gates/GATE with a token that has its scope, by "
		       "somebody who has held no attempt of the task. GET /api/approvals lists what waits.";
	return "The task has gates: report the work with POST /api/tasks/ID/review, and others decide.";
}

const char *refusal_detail(const struct result *result)
{
	if (result->refusal == REFUSED_STALE_CLAIM && result->restored)
		return "The store was restored from a backup since that claim was made: it is void. Stop this work and claim again.";
	if (result->refusal == REFUSED_STALE_CLAIM)
		return "That claim is over. Nothing was changed; a result that came with it is kept for the operator.";
	if (result->refusal == REFUSED_FORBIDDEN && result->other_queues)
		return OTHER_QUEUES;
	if (result->refusal == REFUSED_FORBIDDEN && result->not_yours)
		return "That workerId belongs to another credential: use an id of your own.";
	if (result->refusal == REFUSED_FORBIDDEN && result->slot_not_yours)
		return "That slot belongs to another credential, whose worker filled it last: use a slot of your own. The slot is free "
		       "7 days after that worker has ended, or as soon as an admin revokes that credential.";
	if (result->refusal == REFUSED_FORBIDDEN &&
		(result->worker.state == WORKER_QUIET || result->worker.state == WORKER_TERMINATING))
		return "That worker was told to finish: it takes nothing new.";
	if (result->refusal == REFUSED_TOO_LARGE && result->names_spent)
		return "This credential has introduced as many new names (queues, slots, hosts, executors, capabilities) as it "
		       "ever may; names that are known go on working. An admin can give out a new token.";
	if (result->refusal == REFUSED_TOO_LARGE && result->asked_enough)
		return "An attempt may ask 50 questions, and this one has asked them. Decide without a person, or end the attempt.";
	if (result->refusal == REFUSED_TOO_LARGE && result->told_enough)
		return "Nobody has heard what was told before: a task keeps 20 such messages, and all tasks together 1000. Wait until "
		       "its worker has them.";
	if (result->refusal == REFUSED_GROUP_CLOSED)
		return "The group was closed (GET /api/groups/NAME): no task joins it any more. Name another group, or remove this one "
		       "when it has ended (DELETE /api/groups/NAME) and begin it again.";
	if (result->refusal == REFUSED_IN_USE && result->task.seq != 0)
		return "An open task still needs its result, or it is part of a tree of subtasks that is at work. It is removed when those "
		       "tasks have ended.";
	if (result->refusal == REFUSED_IN_USE)
		return "A group is removed when it has ended: closed, every member final, and no open task waiting for it. "
		       "GET /api/groups/NAME shows its counts; POST /api/groups/NAME/close closes it.";
	if (result->refusal == REFUSED_FORBIDDEN && result->group.len > 0)
		return "The group belongs to the credential that named it first; others need one with the scope of an operator.";
	if (result->refusal == REFUSED_TOO_LARGE && result->group.len > 0)
		return "10,000 tasks wait for that group already, or the store has 100,000 groups, which is the most it keeps. Remove "
		       "groups that have ended (DELETE /api/groups/NAME).";
	if (result->refusal == REFUSED_QUESTION_CHANGED)
		return "The task asks another question now than the one you read; nothing was answered. Read it again "
		       "(GET /api/approvals), and send the id of its question as \"question\".";
	if (result->refusal == REFUSED_LIMITED && result->limit == LIMIT_CONCURRENCY)
		return "As many tasks of the queue are claimed as its limit \"concurrency\" allows (GET /api/queues/NAME, stint queue show). "
		       "Claim it when one of them has ended.";
	if (result->refusal == REFUSED_LIMITED && result->limit == LIMIT_PER_KEY)
		return "As many tasks of its concurrency key are claimed as the limits \"perKey\" and \"keys\" of the queue allow "
		       "(GET /api/queues/NAME, stint queue show). Claim it when one of them has ended.";
	if (result->refusal == REFUSED_LIMITED && result->limit == LIMIT_SEQUENTIAL)
		return "The queue takes the tasks of a concurrency key one after the other (\"sequential\"), and one of this key that has "
		       "begun is not final yet. Claim it when that one is done, failed or cancelled.";
	if (result->refusal == REFUSED_LIMITED && result->limit == LIMIT_RATE)
		return "The rate of the queue is used up (GET /api/queues/NAME, stint queue show). The next claim may be made at \"until\".";
	if (result->refusal == REFUSED_LIMITED && result->limit == LIMIT_BUDGET)
		return "The budget of the queue for today is used up (GET /api/queues/NAME, stint queue show). It hands out again at \"until\", or "
		       "when it has a larger budget.";
	if (result->refusal == REFUSED_LIMITED && result->limit == LIMIT_REVIEW)
		return "As many tasks of the queue are in review as its limit \"review\" allows: nothing of it is handed out until "
		       "one of them is decided (GET /api/approvals, stint inbox).";
	if (result->refusal == REFUSED_LIMITED)
		return "The account of the task is held (GET /api/holds, stint hold ls); claims pass it over until the hold has ended.";
	if (result->refusal == REFUSED_EXECUTION_DISARMED)
		return "Somebody disarmed execution: nothing is handed out until it is armed again (POST /api/execution, stint arm). "
		       "Reads, heartbeats and reports go on.";
	if (result->refusal == REFUSED_FORBIDDEN && result->own_work)
		return "Whoever worked on a task may not approve it, and this token did. Approve with another one.";
	if (result->refusal == REFUSED_NOT_AUTONOMOUS)
		return "The queue hands out only tasks with \"autonomous_execution\": true in their metadata, and this one has not.";
	if (result->refusal == REFUSED_GATE_REQUIRED)
		return gate_detail(&result->task);
	if (result->refusal == REFUSED_WORKER_INACTIVE)
		return "Stop everything that runs under this id and come back under a new one.";
	if (result->refusal == REFUSED_SLOT_TAKEN)
		return slot_detail(result->evidence);
	if (result->refusal == REFUSED_RATE_LIMITED && result->crash_loop)
		return "Workers of this slot, or under this id, were registered too often within a minute and did not say "
		       "goodbye: they seem to die soon after they start. Wait as long as Retry-After says.";
	if (result->refusal == REFUSED_RATE_LIMITED && result->task.seq != 0)
		return "This attempt says more than it may in so short a time (limits.progressPerMinute, "
		       "task.logBytesPerSecond). Nothing was changed, and no lease renewed. Wait as long as Retry-After says.";
	if (result->refusal == REFUSED_RATE_LIMITED)
		return "This credential registered too many workers within a minute. Wait as long as Retry-After says.";
	if (result->refusal == REFUSED_QUEUE_FULL)
		return "As many tasks of the queue are open as its limit \"maxOpen\" allows (GET /api/queues/NAME, stint queue show). "
		       "Try again when some of them have ended.";
	if (result->refusal == REFUSED_QUOTA_EXCEEDED && result->workers_spent)
		return "This credential has as many live workers as it may (limits.workers): end some of them first.";
	if (result->refusal == REFUSED_QUOTA_EXCEEDED)
		return "This credential has as many open tasks as it may, or they take as many bytes as they may "
		       "(quota.openTasks, quota.openBytes). Create more when some of them have ended, or cancel some.";
	if (result->refusal == REFUSED_TOKEN_MISMATCH)
		return "Nothing was renewed or changed. Send the beat again with the token given here.";
	return NULL;
}

void call_put_result(struct buf *members, const struct result *result)
{
	struct json_object object = {.buf = members};
	char token[BEAT_TOKEN_CHARS], id[QUESTION_ID_BYTES];

	if (result->refusal == REFUSED_TOKEN_MISMATCH) {
		beat_token_write(result->worker.token, token);
		json_member_string(&object, "token", (struct span){token, BEAT_TOKEN_CHARS});
	} else if (result->refusal == REFUSED_SLOT_TAKEN && result->slot_holder.len > 0) {
		json_member_string(&object, "holder", result->slot_holder);
	} else if (result->task.seq != 0 && result->task.state != TASK_NOWHERE) {
		json_member_word(&object, "state", task_state_name(result->task.state));
		if (result->refusal == REFUSED_LIMITED) {
			json_member_cstr(&object, "limit", limit_kind_name(result->limit));
			json_member_int_or_null(&object, "until", result->until_ms);
		}
		if (result->refusal == REFUSED_QUESTION_CHANGED && result->question != 0)
			json_member_string(&object, "question", question_id_put(result->question, id));
	}
}

void call_refuse_result(struct api_call *call, const struct result *result)
{
	const struct door *door = door_of(call);
	cleanup(buf_done) struct buf members = {.max = 4096};

	assert(result->refusal != REFUSED_NOTHING);
	if (door->refuse && door->refuse(call, result))
		return;
	call_put_result(&members, result);
	call_refuse_with(call, result->refusal, refusal_detail(result), &members);
	if (result->retry_ms > 0)
		call->reply.retry_after_s = (result->retry_ms + 999) / 1000;
}

bool call_is_refused(struct api_call *call, const struct result *result)
{
	if (result->refusal != REFUSED_NOTHING)
		call_refuse_result(call, result);
	return result->refusal != REFUSED_NOTHING;
}

bool call_refuse_request(struct api_call *call, int fault)
{
	if (fault == -E2BIG)
		return api_refuse(
			call, REFUSED_TOO_LARGE, "The request is larger than the server has room for.");
	return api_refuse(call, REFUSED_UNAVAILABLE,
		"The server is short of memory; nothing was changed. Try again in a moment.");
}

bool call_refuse_fault(struct api_call *call, int fault)
{
	if (fault == -ENOENT)
		return api_refuse(call, REFUSED_NOT_FOUND, NULL);
	if (fault == -E2BIG)
		return api_refuse(
			call, REFUSED_TOO_LARGE, "The answer is larger than the server has room for.");
	if (fault == -EBADMSG) /* where it is tells something about other people's work */
		return api_refuse(call, REFUSED_STORE_DAMAGED,
			call->who.scopes & SCOPE_BIT(SCOPE_OPERATE) ? store_damage_text(call->store) : NULL);
	return api_refuse(call, REFUSED_UNAVAILABLE, "The store could not be read.");
}

bool call_has_failed(struct api_call *call, int r)
{
	return r < 0 && !call_refuse_fault(call, r);
}

yyjson_doc *kept_read(struct span json, struct buf *out)
{
	struct json_complaint complaint;
	yyjson_doc *doc = json.len > 0 ? json_read_to(json, JSON_REPLY_DEPTH_MAX, &complaint) : NULL;

	if (json.len > 0 && !doc)
		buf_fail(out, complaint.fault);
	return doc;
}

void call_locate(struct api_call *call, const struct buf *path)
{
	int r = buf_keep(path, call->arena, &call->reply.location);

	if (r < 0)
		call_refuse_fault(call, r);
}

void call_reply_begin(struct api_call *call)
{
	call->reply.status = 200;
	call->reply.content_type = SPAN("application/json");
	call->reply.head = call->request->method == HTTP_METHOD_HEAD;
}

void call_again(struct api_call *call)
{
	call->step = API_READ;
}

void call_reply(struct api_call *call, int status, int fault)
{
	if (fault == 0)
		fault = buf_fault(call->body);
	if (fault < 0) {
		call_refuse_fault(call, fault == -ENOENT ? -EIO : fault);
		return;
	}
	complete(call, status, SPAN("application/json"), buf_span(call->body));
}

void call_slices_begin(struct api_call *call, const char *head)
{
	call_reply_begin(call);
	buf_put_span(call->body, span_of(head));
}

void call_slice(struct api_call *call, int r, bool more, const char *tail)
{
	if (r == 0 && more && !buf_fault(call->body)) {
		call_again(call);
		return;
	}
	if (r >= 0)
		buf_put_span(call->body, span_of(tail));
	call_reply(call, 200, r < 0 ? r : 0);
}

void json_member_text_or_null(struct json_object *object, const char *key, yyjson_val *text)
{
	if (yyjson_is_str(text))
		json_member_string(object, key, json_text(text));
	else
		json_member_null(object, key);
}

void json_member_cstr(struct json_object *object, const char *key, const char *value)
{
	json_member_string(object, key, span_of(value));
}

void json_member_raw_if_any(struct json_object *object, const char *key, struct span json)
{
	if (json.len > 0)
		json_member_raw(object, key, json);
}

void json_member_int_if_any(struct json_object *object, const char *key, int64_t value)
{
	if (value != 0)
		json_member_int(object, key, value);
}

void json_member_true_if(struct json_object *object, const char *key, bool value)
{
	if (value)
		json_member_bool(object, key, true);
}
