/*
 * Tasks: reading one, changing it, and what people do to it.
 */
#include "api/task/form.h"
#include "api/task/view.h"
#include "api/task/why.h"

#include <errno.h>
#include <stdio.h>

#include "base/take.h"
#include "base/utf8.h"

enum {
	REASON_MAX = 4096,
	PATCH_TRIES_MAX =
		10000, /* of those that meet in one turn one is done: as many as there can be requests */
};

/* ---- read ------------------------------------------------------------------------------------------- */

/* The work on a task may read what it has created. What it would change there is refused by its command, which needs the claim. */
static bool is_own_subtask(const struct api_call *call, const struct task *task)
{
	return call->who.task_seq != 0 && task->subtask_of == call->who.task_seq;
}

bool task_find(struct api_call *call, struct task_document *ret_document)
{
	int64_t seq;

	int r = store_find_task(call->store, call->params[0], &seq);
	if (r == 0)
		r = store_read_task(call->store, seq, call->now, call->arena, ret_document);
	if (r == 0 && !principal_sees(call, &ret_document->task) &&
		!is_own_subtask(call, &ret_document->task))
		r = -ENOENT;
	return !call_has_failed(call, r);
}

/* If-None-Match: does it name that version, among others or with "*"? Weak or not makes no difference here. */
static bool etag_is_listed(struct span list, struct span etag)
{
	if (span_equal(list, SPAN("*")))
		return true;
	for (size_t at = 0; at + etag.len <= list.len; at++) {
		bool ends = at + etag.len == list.len || strchr(", \t", list.data[at + etag.len]);
		if (ends && memcmp(list.data + at, etag.data, etag.len) == 0)
			return true;
	}
	return false;
}

/* What its holder goes by: how much of its time limit is left, and whether it has waited long enough for an answer. */
static void put_clocks(struct json_object *object, const struct api_call *call, const struct task *task)
{
	struct given given = {.rules = call->rules, .now = call->now};
	int64_t run_ms = task_run_remaining_ms(task, &given);

	if (!task_is_claimed(task))
		return;
	json_member_int(object, "runMs", run_ms > 0 ? run_ms : 0);
	json_member_true_if(object, "parking", task_must_park(task, &given));
}

void task_read(struct api_call *call)
{
	struct query_value include = {.name = "include"};
	struct task_document document;
	struct json_object object;

	if (!query_read(call, &include, 1) || !why_is_wanted(call, &include) || !task_find(call, &document) ||
		!task_etag(call, document.task.version))
		return;
	if (etag_is_listed(call->request->if_none_match, call->reply.etag)) {
		call->reply.status = 304;
		return;
	}
	json_begin(&object, call->body);
	task_put_members(call, &object, &document, PARENTS_IN_DOCUMENT);
	put_clocks(&object, call, &document.task);
	struct reason reason = store_why(call->store, &document.task, call->now);
	json_member_cstr(&object, "reason", why_name(reason.why));
	if (include.value.data)
		why_put_member(call, &object, &document, reason);
	call_reply(call, 200, json_end(&object));
}

void task_why_read(struct api_call *call)
{
	struct task_document document;
	struct json_object object;

	if (!task_find(call, &document))
		return;
	struct reason reason = store_why(call->store, &document.task, call->now);
	json_begin(&object, call->body);
	json_member_string(&object, "id", document.id);
	json_member_cstr(&object, "state", task_state_name(document.task.state));
	why_put(call, &object, &document, reason, true);
	json_member_int_if_any(&object, "until", reason.until_ms);
	if (reason.why == WHY_KEPT_FOR_HOST)
		json_member_string(&object, "host", store_name(call->store, document.task.resume_host));
	if (reason.slot != 0)
		json_member_string(&object, "slot", store_name(call->store, reason.slot));
	if (reason.code != CODE_NONE)
		json_member_cstr(&object, "code", failure_code_name(reason.code));
	call_reply(call, 200, json_end(&object));
}

/* ---- change ----------------------------------------------------------------------------------------- */

/* What it says about the end of the attempt, if the work itself puts its task there. */
static enum claim_end outcome_of(enum task_status lane)
{
	switch (lane) {
	case STATUS_DONE:
		return ENDED_COMPLETE;
	case STATUS_REVIEW:
		return ENDED_REVIEW;
	case STATUS_BLOCKED:
		return ENDED_BLOCK;
	case STATUS_TODO:
		return ENDED_RELEASE;
	case STATUS_NONE:
	case STATUS_IN_PROGRESS:
	case STATUS_CANCELLED:
	case TASK_STATUS_COUNT:
		break;
	}
	return ENDED_NOT;
}

/* A text that changes is merged with what is there, so the task is read first; see task_patch_read(). */
void task_patch_begin(struct api_call *call)
{
	struct task_form *task = call_detail(call, sizeof *task);
	cleanup(form_done) struct form form = {0};

	if (!task || !form_open(&form, call, false))
		return;
	task_form_patch(&form, form.root, task);
	if (!form_is_good(&form))
		return;
	struct command *command = call_command(call, COMMAND_UPDATE);
	if (!command)
		return;
	command->task = call->params[0];
	command->worker = call->who.worker; /* with the token of a claim: it acts for that */
	command->fence = call->who.fence;
	task_form_to_update(task, &command->update);
	if (command->update.status != STATUS_NONE)
		command->data = task->error;
	if (!report_keep_own(call, command, outcome_of(command->update.status)))
		return;
	if (command->update.status != STATUS_NONE && command->fence == 0) {
		command->by_name = true;
		if (call->who.number != PRINCIPAL_OPEN) /* who shows nothing is the slot worker itself */
			command->note = SPAN("\"operator\":true");
	}
	if (task->create.body.len > 0)
		call->step = API_READ;
}

/* The metadata as they will be say whether it may run on its own. False: there is no memory to read them. */
static bool read_autonomous(struct command_update *update)
{
	yyjson_doc *doc = task_body_read(update->body, NULL);

	if (!doc)
		return false;
	update->patch.set_autonomous = true;
	update->patch.autonomous = task_is_autonomous(yyjson_obj_get(yyjson_doc_get_root(doc), "metadata"));
	yyjson_doc_free(doc);
	return true;
}

/* The text is the one of this very version: a change in between must not be lost. */
void task_patch_read(struct api_call *call)
{
	const struct task_form *task = call->detail;
	struct command_update *update = &call->commands[0].update;
	cleanup(buf_done) struct buf patch = {.max = 3 * API_TEXT_MAX};
	struct task_document document;

	if (!task_find(call, &document))
		return;
	buf_put_byte(&patch, '{');
	buf_put_span(&patch, task->create.body);
	int r = buf_put_byte(&patch, '}');
	if (r == 0 && (task->cleared & task_field_bit("metadata")))
		r = task_body_merge(call->arena, document.body, SPAN("{\"metadata\":null}"), &document.body);
	if (r == 0 &&
		(task->given & task_field_bit("env"))) /* replaced as a whole: it has limits as a whole */
		r = task_body_merge(call->arena, document.body, SPAN("{\"env\":null}"), &document.body);
	if (r == 0)
		r = task_body_merge(call->arena, document.body, buf_span(&patch), &update->body);
	if (call_has_failed(call, r))
		return;
	update->set_body = true;
	update->body_version = document.task.version;
	if (read_autonomous(update))
		call->step = API_TURN;
	else
		call_refuse_request(call, -ENOMEM);
}

void task_finish(struct api_call *call, const struct result *results)
{
	task_reply(call, 200, &results[0], (struct span){0});
}

/* Somebody else was faster, and the caller did not ask for a certain version: merge again with what is there now. */
static bool patch_again(struct api_call *call, const struct result *result)
{
	struct task_form *task = call->detail;

	if (result->refusal != REFUSED_VERSION_MISMATCH || call->commands[0].if_version != 0 ||
		task->tries++ == PATCH_TRIES_MAX)
		return false;
	task_patch_read(call);
	return true;
}

/* What the sender of a move should do instead. */
static const char *move_detail(const struct command_update *update, const struct result *result)
{
	if (update->status == STATUS_NONE)
		return refusal_detail(result);
	if (result->refusal == REFUSED_CLAIMED_BY_OTHER)
		return "A worker holds it that is not the slot that owns it: that worker reports how it ends, or POST /api/tasks/ID/cancel stops it.";
	if (result->refusal != REFUSED_BAD_TRANSITION)
		return refusal_detail(result);
	if (update->status == STATUS_IN_PROGRESS && result->task.state == TASK_READY)
		return "Nobody owns the task, so there is no slot to take it: send \"owner\" along, or claim it with POST /api/tasks/ID/claim.";
	if (update->status == STATUS_IN_PROGRESS)
		return "Only a task that is ready can be taken.";
	if (update->status == STATUS_TODO)
		return "Only work in progress can be given back: POST /api/tasks/ID/retry opens a task that has ended, POST /api/tasks/ID/answer goes on with one that asks.";
	if (result->task.state == TASK_REVIEW)
		return "The work was reported, and waits for a verdict: POST /api/tasks/ID/gates/GATE, or stint approve.";
	if (task_state_is_final(result->task.state))
		return "It has ended: POST /api/tasks/ID/retry opens it again.";
	return "Only work in progress can end so: claim the task first.";
}

static void refuse_patch(struct api_call *call, const struct result *result)
{
	cleanup(buf_done) struct buf members = {.max = 256};

	if (parent_is_missing(result)) {
		parent_refuse(call, result);
		return;
	}
	call_put_result(&members, result);
	call_refuse_with(call, result->refusal, move_detail(&call->commands[0].update, result), &members);
}

void task_patch_finish(struct api_call *call, const struct result *results)
{
	const struct task_form *task = call->detail;

	if (patch_again(call, &results[0]))
		return;
	if (results[0].refusal != REFUSED_NOTHING)
		refuse_patch(call, &results[0]);
	else
		task_reply(call, 200, &results[0], task->warnings);
}

/* ---- what people do --------------------------------------------------------------------------------- */

struct reason_body {
	struct span reason;
};

static const struct field reason_fields[] = {
	FIELD(reason_body, reason, "reason", FIELD_TEXT, .max = REASON_MAX),
};

struct retry_body {
	struct span reason;
	bool fresh;
};

static const struct field retry_fields[] = {
	FIELD(retry_body, reason, "reason", FIELD_TEXT, .max = REASON_MAX),
	FIELD(retry_body, fresh, "fresh", FIELD_BOOL, .max = 0),
};

void task_retry_begin(struct api_call *call)
{
	struct retry_body body = {0};

	if (!form_read_body(call, FIELDS(retry_fields), &body))
		return;
	struct command *command = call_command(call, COMMAND_RETRY);
	if (!command)
		return;
	command->task = call->params[0];
	command->anew = body.fresh;
	call_keep_note(call, "reason", body.reason, command);
}

/* A command that needs nothing but the task; the reason goes into its event. */
void task_operate_begin(struct api_call *call)
{
	struct reason_body body = {0};

	if (!form_read_body(call, FIELDS(reason_fields), &body))
		return;
	struct command *command = call_command(call, (enum command_kind)call->route->variant);
	if (!command)
		return;
	command->task = call->params[0];
	call_keep_note(call, "reason", body.reason, command);
}

/* Work under a beating worker stops first: accepted, and not over yet. */
void task_cancel_finish(struct api_call *call, const struct result *results)
{
	task_reply(call, results[0].task.claim.stopping ? 202 : 200, &results[0], (struct span){0});
}

enum {
	TELL_MAX = 16 << 10,
};

struct tell_body {
	struct span text;
};

static const struct field tell_fields[] = {
	FIELD_MUST_BE(tell_body, text, "text", FIELD_TEXT, .max = TELL_MAX),
};

/* Members of what is told: whoever works on the task gets them with a number. */
void task_tell_begin(struct api_call *call)
{
	cleanup(buf_done) struct buf told = {.max = 8 * TELL_MAX};
	struct json_object members = {.buf = &told};
	struct tell_body body = {0};

	if (!form_read_body(call, FIELDS(tell_fields), &body) ||
		!call_require_field(call, body.text.len > 0, "text", "is required"))
		return;
	struct command *command = call_command(call, COMMAND_TELL);
	if (!command)
		return;
	command->task = call->params[0];
	json_member_string(&members, "text", body.text);
	json_member_int(&members, "at", call->now.wall_ms);
	if (call_keep(call, &told, &command->data) == 0)
		call_keep_note(call, "tell", utf8_cut(body.text, 300), command);
}

struct answer_body {
	struct span text, question, allow;
	bool deny;
};

static const struct field answer_fields[] = {
	FIELD(answer_body, text, "text", FIELD_TEXT, .max = API_TEXT_MAX),
	FIELD(answer_body, deny, "deny", FIELD_BOOL, .max = 0),
	FIELD(answer_body, question, "question", FIELD_NAME, .max = COMMAND_NAME_MAX),
	FIELD(answer_body, allow, "allow", FIELD_NAME, .max = 0),
};

/* Do these options leave a person a choice of texts and of nothing else? */
static bool is_choice(yyjson_val *question)
{
	yyjson_val *options = yyjson_obj_get(question, "options"), *option;
	size_t at, count;

	if (yyjson_arr_size(options) == 0 || yyjson_is_true(yyjson_obj_get(question, "freeText")))
		return false;
	yyjson_arr_foreach(options, at, count, option)
	{
		if (!yyjson_is_str(option))
			return false;
	}
	return true;
}

static bool is_offered(yyjson_val *options, struct span text)
{
	yyjson_val *option;
	size_t at, count;

	yyjson_arr_foreach(options, at, count, option)
	{
		if (span_equal(json_text(option), text))
			return true;
	}
	return false;
}

/* The options as a list for a sentence: as many as there is room for. */
static const char *list_options(yyjson_val *options, char *text, size_t room)
{
	yyjson_val *option;
	size_t at, count, used = 0;

	yyjson_arr_foreach(options, at, count, option)
	{
		struct span cut = utf8_cut(json_text(option), 64);
		if (used + cut.len + 8 > room) {
			snprintf(text + used, room - used, ", …");
			break;
		}
		used += (size_t)snprintf(
			text + used, room - used, "%s\"%.*s\"", at > 0 ? ", " : "", SPAN_ARGS(cut));
	}
	return text;
}

/* A question with options is answered with one of them. False: refused. A task that does not ask is refused by its turn. */
static bool check_choice(struct api_call *call, struct span text)
{
	struct task_document document;
	char message[400], listed[300] = "";
	int64_t seq;

	int r = store_find_task(call->store, call->params[0], &seq);
	if (r == 0)
		r = store_read_task(call->store, seq, call->now, call->arena, &document);
	if (r < 0)
		return r == -ENOENT || r == -EINVAL ? true : call_refuse_fault(call, r);
	if (document.task.state != TASK_ASKING)
		return true;
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(document.question, &complaint);
	if (!doc && document.question.len > 0) /* it was JSON when it was kept */
		return call_refuse_fault(call, -ENOMEM);
	yyjson_val *question = yyjson_doc_get_root(doc), *options = yyjson_obj_get(question, "options");
	if (!is_choice(question) || is_offered(options, text))
		return true;
	snprintf(message, sizeof message, "must be one of the options: %s",
		list_options(options, listed, sizeof listed));
	return call_refuse_field(call, "text", message);
}

/* False: the call was refused. */
static bool read_answer(struct api_call *call, struct answer_body *body, uint32_t *ret_question)
{
	bool allows = body->allow.len > 0;

	*ret_question = 0;
	return call_require_field(call, body->deny || allows || body->text.len > 0, "text",
		       "is required, unless \"deny\" is true or \"allow\" is given") &&
		call_require_field(call, !allows || !body->deny, "allow", "must not stand beside \"deny\"") &&
		call_require_field(call,
			!allows || span_equal(body->allow, SPAN("once")) ||
				span_equal(body->allow, SPAN("task")),
			"allow", "must be \"once\" or \"task\"") &&
		call_require_field(call,
			body->question.len == 0 || question_id_read(body->question, ret_question), "question",
			QUESTION_ID_FORM) &&
		(body->deny || allows || check_choice(call, body->text));
}

static void put_answer(struct buf *out, const struct answer_body *body)
{
	struct json_object object;

	json_begin(&object, out);
	json_member_string_if_any(&object, "text", body->text);
	json_member_string_if_any(&object, "allow", body->allow);
	json_member_true_if(&object, "deny", body->deny);
	json_end(&object);
}

/* The event says what was decided; who reads the words of the answer reads the task. */
static int keep_decision(struct api_call *call, const struct answer_body *body, struct command *command)
{
	if (body->allow.len > 0)
		return call_keep_note(call, "allow", body->allow, command);
	if (body->deny)
		command->note = SPAN("\"deny\":true");
	return 0;
}

void task_answer_begin(struct api_call *call)
{
	struct answer_body body = {0};
	cleanup(buf_done) struct buf answer = {.max = 8 * API_TEXT_MAX};
	uint32_t question;

	if (!form_read_body(call, FIELDS(answer_fields), &body) || !read_answer(call, &body, &question))
		return;
	struct command *command = call_command(call, COMMAND_ANSWER);
	if (!command)
		return;
	command->task = call->params[0];
	command->answer = (struct command_answer){question, span_equal(body.allow, SPAN("task"))};
	put_answer(&answer, &body);
	if (call_keep(call, &answer, &command->data) == 0)
		keep_decision(call, &body, command);
}
