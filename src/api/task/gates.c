/*
 * Gates: verdicts, and what waits for one, or for an answer.
 */
#include "api/form.h"
#include "api/task/form.h"
#include "api/task/keys.h"
#include "api/task/view.h"

#include <errno.h>

#include "base/take.h"

enum {
	REASON_MAX = 64 << 10,
	APPROVALS_MAX = 1000, /* tasks of one reply */
	SCAN_TASKS = 500,     /* of one slice … */
	READ_TASKS = 32,      /* … and of one that reads them */
	SORT_STEPS = 1000,
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

static bool read_verdict(struct api_call *call, struct verdict_body *body, bool *ret_passes)
{
	if (!form_read_body(call, FIELDS(verdict_fields), body))
		return false;
	*ret_passes = span_equal(body->verdict, SPAN("pass"));
	if (!*ret_passes && !span_equal(body->verdict, SPAN("reject"))) {
		call_refuse_field(call, "verdict", "must be \"pass\" or \"reject\"");
		return false;
	}
	return true;
}

void gate_verdict_begin(struct api_call *call)
{
	struct verdict_body body = {0};
	cleanup(buf_done) struct buf note = {0};
	bool passes;

	buf_init(&note, 2 * API_TEXT_MAX);
	if (!read_verdict(call, &body, &passes))
		return;
	if (!text_is_name(call->params[1], COMMAND_NAME_MAX)) {
		api_refuse(call, REFUSED_NOT_FOUND, NULL);
		return;
	}
	if (!principal_passes(&call->who, call->params[1])) {
		api_refuse(call, REFUSED_FORBIDDEN, "The credential is for another gate than this one.");
		return;
	}
	struct command *command = call_command(call, COMMAND_VERDICT);
	struct tiding nothing = {0};
	if (!command)
		return;
	command->task = call->params[0];
	command->verdict = (struct command_verdict){.gate = call->params[1], .passes = passes};
	put_note(&note, &body);
	if (call_keep(call, &note, &command->note) == 0)
		call_tells(call, command, &nothing);
}

/* ---- what waits --------------------------------------------------------------------------------------- */

struct approvals {
	struct task_keys keys;
	uint32_t at, scan_at;
	bool scanned, sorted, any;
};

static struct approvals *approvals_new(struct api_call *call)
{
	struct approvals *approvals = arena_alloc(call->arena, sizeof *approvals);

	if (!query_read(call, NULL, 0))
		return NULL;
	if (!approvals || buf_put_byte(call->body, '[') < 0) {
		call_refuse_fault(call, -ENOMEM);
		return NULL;
	}
	task_keys_init(&approvals->keys, call->arena, APPROVALS_MAX);
	call->detail = approvals;
	call_reply_begin(call);
	return approvals;
}

struct gathering {
	struct api_call *call;
	struct approvals *approvals;
};

static int gather(void *context, const struct task_outline *outline)
{
	struct gathering *gathering = context;
	struct task_key key = task_key_of(outline);

	if ((outline->state != TASK_REVIEW && outline->state != TASK_ASKING) ||
		!principal_may_see(gathering->call, outline))
		return 0;
	return task_keys_add(&gathering->approvals->keys, &key);
}

static int put_approval(struct api_call *call, struct approvals *approvals,
	const struct task_document *document, struct span gate)
{
	yyjson_doc *doc = task_body_read(document->body);
	yyjson_val *title = yyjson_obj_get(yyjson_doc_get_root(doc), "title");
	const struct task *task = &document->task;
	struct json_object object;
	int r = json_put_comma(call->body, &approvals->any);

	json_begin(&object, call->body);
	json_member_string(&object, "task", document->id);
	json_member_cstr(&object, "kind", gate.len > 0 ? "gate" : "question");
	if (gate.len > 0)
		json_member_string(&object, "gate", gate);
	else if (document->question.len > 0)
		json_member_raw(&object, "question", document->question);
	if (yyjson_is_str(title))
		json_member_string(&object, "title", json_text(title));
	json_member_string(&object, "queue", name_of(call, task->queue));
	if (task->workflow != WORKFLOW_NONE)
		json_member_cstr(&object, "stage", stage_name(task->stage));
	json_member_int(&object, "attempt", task->attempt);
	json_member_int(&object, "since", task->updated_ms);
	yyjson_doc_free(doc);
	int fault = json_end(&object);
	return r < 0 ? r : fault;
}

struct gate_walk {
	struct api_call *call;
	struct approvals *approvals;
	const struct task_document *document;
	uint32_t bit;
};

static int put_open_gate(void *context, struct span name)
{
	struct gate_walk *walk = context;
	bool passed = (walk->document->task.gates_passed & walk->bit) != 0;

	walk->bit <<= 1;
	return passed ? 0 : put_approval(walk->call, walk->approvals, walk->document, name);
}

static int put_waiting(
	struct api_call *call, struct approvals *approvals, const struct task_document *document)
{
	struct gate_walk walk = {call, approvals, document, 1};

	if (document->task.state == TASK_ASKING)
		return put_approval(call, approvals, document, (struct span){0});
	if (document->task.state != TASK_REVIEW)
		return 0; /* decided since */
	if (document->task.gates == 0)
		return put_approval(call, approvals, document, SPAN("review"));
	return store_each_member(call->store, document->task.gates, put_open_gate, &walk);
}

static int render(struct api_call *call, struct approvals *approvals)
{
	struct task_document document;
	struct arena arena;
	int r = 0;

	arena_init(&arena, 16 * API_TEXT_MAX);
	for (uint32_t i = 0; r == 0 && i < READ_TASKS && approvals->at < approvals->keys.count; i++) {
		int64_t seq = approvals->keys.items[approvals->at++].seq;
		r = store_read_task(call->store, seq, call->now, &arena, &document);
		if (r == 0 && principal_sees(call, &document.task))
			r = put_waiting(call, approvals, &document);
		if (r == -ENOENT)
			r = 0;
		arena_reset(&arena);
	}
	arena_done(&arena);
	return r;
}

/* In slices: the open tasks are looked through, those that wait are put into order, read and written. */
void approval_list_read(struct api_call *call)
{
	struct approvals *approvals = call->detail ? call->detail : approvals_new(call);
	struct gathering gathering = {call, approvals};
	int r = 0;

	if (!approvals)
		return;
	if (!approvals->scanned) {
		r = store_page_open(call->store, &approvals->scan_at, SCAN_TASKS, gather, &gathering);
		approvals->scanned = approvals->scan_at == 0;
	} else if (!approvals->sorted) {
		approvals->sorted = task_keys_sort(&approvals->keys, SORT_STEPS);
	} else {
		r = render(call, approvals);
	}
	if (r == 0 && (!approvals->sorted || approvals->at < approvals->keys.count)) {
		call_again(call);
		return;
	}
	call_reply(call, 200, r < 0 ? r : buf_put_byte(call->body, ']'));
}
