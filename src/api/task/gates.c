/*
 * Gates: verdicts, and what waits for one, or for an answer.
 */
#include "api/form.h"
#include "api/task/form.h"
#include "api/task/slice.h"
#include "api/task/view.h"

#include <errno.h>

#include "base/take.h"

enum {
	REASON_MAX = 64 << 10,
	APPROVALS_MAX = 1000, /* tasks of one reply */
};

/* ---- verdicts ----------------------------------------------------------------------------------------- */

struct verdict_body {
	struct span verdict, reason, evidence;
};

static const struct field verdict_fields[] = {
	FIELD_MUST_BE(verdict_body, verdict, "verdict", FIELD_NAME, .max = 0),
	FIELD(verdict_body, reason, "reason", FIELD_TEXT, .max = REASON_MAX),
	FIELD(verdict_body, evidence, "evidence", FIELD_VALUE, .max = 0),
};

static void put_note(struct buf *note, const struct verdict_body *body)
{
	struct json_object members = {.buf = note};

	json_member_string(&members, "verdict", body->verdict);
	json_member_string_if_any(&members, "reason", body->reason);
	json_member_raw_if_any(&members, "evidence", body->evidence);
}

/* The error of the task, if its work is rejected: whoever does it again should know why. */
static void put_rejection(struct buf *error, struct span gate, const struct verdict_body *body)
{
	cleanup(buf_done) struct buf message = {.max = 2 * COMMAND_NAME_MAX};
	struct json_object object;
	int r = body->reason.len > 0 ? 0 : buf_printf(&message, "rejected at gate %.*s", SPAN_ARGS(gate));

	json_begin(&object, error);
	json_note(&object, r);
	json_member_cstr(&object, "code", failure_code_name(CODE_CHECK_FAILED));
	json_member_string(&object, "message", body->reason.len > 0 ? body->reason : buf_span(&message));
	json_member_cstr(&object, "class", failure_class_name(CLASS_TASK));
	json_member_string(&object, "gate", gate);
	json_member_raw_if_any(&object, "evidence", body->evidence);
	json_end(&object);
}

static bool read_verdict(struct api_call *call, struct verdict_body *body, bool *ret_passes)
{
	if (!form_read_body(call, FIELDS(verdict_fields), body))
		return false;
	*ret_passes = span_equal(body->verdict, SPAN("pass"));
	if (!*ret_passes && !span_equal(body->verdict, SPAN("reject")))
		return call_refuse_field(call, "verdict", "must be \"pass\" or \"reject\"");
	return true;
}

void gate_verdict_begin(struct api_call *call)
{
	struct verdict_body body = {0};
	cleanup(buf_done) struct buf note = {.max = 2 * API_TEXT_MAX}, error = {.max = 2 * API_TEXT_MAX};
	bool passes;

	if (!read_verdict(call, &body, &passes) ||
		!call_require(
			call, text_is_name(call->params[1], COMMAND_NAME_MAX), REFUSED_NOT_FOUND, NULL) ||
		!call_require(call, principal_passes(&call->who, call->params[1]), REFUSED_FORBIDDEN,
			"The credential is for another gate than this one."))
		return;
	struct command *command = call_command(call, COMMAND_VERDICT);
	struct outside_event nothing = {0};
	if (!command)
		return;
	command->task = call->params[0];
	command->verdict = (struct command_verdict){.gate = call->params[1], .passes = passes};
	put_note(&note, &body);
	put_rejection(&error, call->params[1], &body);
	if (call_keep(call, &note, &command->note) == 0 &&
		call_keep(call, &error, &command->told.rejection) == 0)
		call_tells(call, command, &nothing);
}

/* ---- what waits --------------------------------------------------------------------------------------- */

struct approvals {
	struct api_call *call;
	struct open_pass pass;
	bool any;
	/* of the task that is written */
	const struct task_document *document;
	uint32_t gate_bit;
};

static int gather(void *context, const struct task_outline *outline)
{
	struct approvals *approvals = context;
	struct task_key key = task_key_of(outline, store_age_ms(approvals->call->store));

	if ((outline->state != TASK_REVIEW && outline->state != TASK_ASKING) ||
		!principal_may_see(approvals->call, outline))
		return 0;
	return task_keys_add(&approvals->pass.keys, &key);
}

static int put_approval(struct approvals *approvals, struct span gate)
{
	struct api_call *call = approvals->call;
	const struct task_document *document = approvals->document;
	const struct task *task = &document->task;
	yyjson_doc *doc = task_body_read(document->body, call->body);
	yyjson_val *title = yyjson_obj_get(yyjson_doc_get_root(doc), "title");
	struct json_object object;

	json_put_comma(call->body, &approvals->any);
	json_begin(&object, call->body);
	json_member_string(&object, "task", document->id);
	json_member_cstr(&object, "kind", gate.len > 0 ? "gate" : "question");
	if (gate.len > 0)
		json_member_string(&object, "gate", gate);
	else if (json_put_key(&object, "question"))
		question_put(call->body, document->question, document->question_number, (struct span){0});
	if (yyjson_is_str(title))
		json_member_string(&object, "title", json_text(title));
	json_member_string(&object, "queue", name_of(call, task->queue));
	if (task->workflow != WORKFLOW_NONE)
		json_member_cstr(&object, "stage", stage_name(task->stage));
	json_member_int(&object, "attempt", task->attempt);
	json_member_int(&object, "since", task->updated_ms);
	yyjson_doc_free(doc);
	return json_end(&object);
}

static int put_open_gate(void *context, struct span name)
{
	struct approvals *approvals = context;
	bool passed = (approvals->document->task.gates_passed & approvals->gate_bit) != 0;

	approvals->gate_bit <<= 1;
	return passed ? 0 : put_approval(approvals, name);
}

static int put_waiting(
	void *context, const struct task_key *key, struct task_document *document, struct arena *arena)
{
	struct approvals *approvals = context;

	(void)key;
	(void)arena;
	approvals->document = document;
	approvals->gate_bit = 1;
	if (document->task.state == TASK_ASKING)
		return put_approval(approvals, (struct span){0});
	if (document->task.state != TASK_REVIEW)
		return 0; /* decided since */
	if (document->task.gates == 0)
		return put_approval(approvals, SPAN("review"));
	return store_each_member(approvals->call->store, document->task.gates, put_open_gate, approvals);
}

/* In slices: the open tasks are scanned, the waiting ones sorted, read and written. */
void approval_list_read(struct api_call *call)
{
	if (!call->detail && !query_read(call, NULL, 0))
		return;
	struct approvals *approvals = call_detail(call, sizeof *approvals);
	if (!approvals)
		return;
	if (!approvals->call) {
		approvals->call = call;
		task_keys_init(&approvals->pass.keys, call->arena, APPROVALS_MAX);
		call_slices_begin(call, "[");
	}
	int r = open_pass_slice(call, &approvals->pass, gather, put_waiting, approvals);
	call_slice(call, r, open_pass_has_more(&approvals->pass), "]");
}
