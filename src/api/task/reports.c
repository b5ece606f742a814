/*
 * What a holder says about its claim. Each carries the worker and the fence: the proof that it still holds it.
 */
#include "api/task/report_form.h"
#include "api/task/subtask.h"
#include "api/task/view.h"

#include <assert.h>

#include "base/take.h"

#define USAGE_MAX 1e12
#define DELAY_MAX (INT64_C(365) * 24 * 3600 * 1000)
#define TIME_MAX  INT64_C(253402300799999)

enum {
	SESSION_ID_MAX = 1024,
	MESSAGE_NOTED_BYTES = 300,
	PROGRESS_NOTE_BYTES = 1000,
	PROMPT_MAX = 256 << 10,
	ATTACH_MAX = 2048,
};

struct report {
	struct span id, outcome;                            /* of one in a list */
	struct span worker, note, event, reason, question;  /* texts */
	struct span tool, diff, input, rule;                /* of a question: two texts, two JSON values */
	struct span result, evidence, data, usage, options; /* JSON */
	struct span session_id;                             /* JSON */
	struct span prompt;
	struct span agent_label,
		agent;    /* the session of an agent: its label, and what is known of it; JSON */
	yyjson_val *body; /* all of it */
	yyjson_val *error, *percent, *session, *asks_for;
	struct span withdraws; /* the id of a question */
	bool by_report, free_text;
	uint64_t fence;
	int64_t lease_ms, delay_ms, deadline_ms, heard;
};

/* Both must be there, or be known from the credential: its worker, its claim. */
enum proof_row { ROW_WORKER, ROW_FENCE };

#define WORKER [ROW_WORKER] = FIELD(report, worker, "workerId", FIELD_NAME, .max = COMMAND_ID_MAX)
#define FENCE  [ROW_FENCE] = FIELD(report, fence, "fence", FIELD_DECIMAL, .max = 0)

#define RESULT    FIELD(report, result, "result", FIELD_VALUE, .max = 0)
#define ERROR     FIELD_MUST_BE(report, error, "error", FIELD_NODE, .max = 0)
#define EVIDENCE  FIELD(report, evidence, "evidence", FIELD_VALUE, .max = 0)
#define BY_REPORT FIELD(report, by_report, "byReport", FIELD_BOOL, .max = 0)
#define REASON    FIELD(report, reason, "reason", FIELD_TEXT, .max = 4096)
#define DELAY     FIELD(report, delay_ms, "delayMs", FIELD_INT, .max = DELAY_MAX)

static const struct field progress_fields[] = {
	WORKER,
	FENCE,
	FIELD(report, note, "note", FIELD_TEXT, .max = 64 << 10),
	FIELD(report, percent, "percent", FIELD_NODE, .max = 0),
	FIELD(report, lease_ms, "leaseMs", FIELD_INT, .max = INT64_MAX), /* the rules clamp it */
	FIELD(report, event, "event", FIELD_NAME, .max = 0),
	FIELD(report, data, "data", FIELD_VALUE, .max = 0),
	FIELD(report, session, "session", FIELD_NODE, .max = 0),
	FIELD(report, usage, "usage", FIELD_OBJECT, .max = 0),
	FIELD(report, heard, "told", FIELD_INT, .min = 1, .max = UINT32_MAX),
	FIELD(report, prompt, "prompt", FIELD_TEXT, .max = PROMPT_MAX),
};

static const struct field complete_fields[] = {WORKER, FENCE, RESULT, EVIDENCE, BY_REPORT};
static const struct field review_fields[] = {WORKER, FENCE, RESULT, EVIDENCE};
static const struct field fail_fields[] = {WORKER, FENCE, ERROR, EVIDENCE, BY_REPORT};
static const struct field block_fields[] = {WORKER, FENCE, ERROR};
static const struct field release_fields[] = {WORKER, FENCE, REASON, DELAY, BY_REPORT};

static const struct field wait_fields[] = {WORKER, FENCE};

static const struct field ask_fields[] = {
	WORKER,
	FENCE,
	FIELD(report, question, "question", FIELD_TEXT, .max = 64 << 10),
	FIELD(report, options, "options", FIELD_LIST, .max = 0),
	FIELD(report, free_text, "freeText", FIELD_BOOL, .max = 0),
	FIELD(report, deadline_ms, "deadline", FIELD_INT, .max = TIME_MAX),
	FIELD(report, asks_for, "data", FIELD_NODE, .max = 0),
	FIELD(report, withdraws, "withdraw", FIELD_NAME, .max = COMMAND_NAME_MAX),
};

/* What a question is about. */
static const struct field asks_for_fields[] = {
	FIELD(report, tool, "tool", FIELD_NAME, .max = COMMAND_NAME_MAX),
	FIELD(report, input, "input", FIELD_VALUE, .max = 0),
	FIELD(report, diff, "diff", FIELD_TEXT, .max = 256 << 10),
	FIELD(report, rule, "rule", FIELD_VALUE, .max = 0),
};

/* What a report of that kind may say. */
static const struct {
	const struct field *fields;
	uint32_t count;
} tables[COMMAND_KIND_COUNT] = {
	[COMMAND_PROGRESS] = {FIELDS(progress_fields)},
	[COMMAND_COMPLETE] = {FIELDS(complete_fields)},
	[COMMAND_REVIEW] = {FIELDS(review_fields)},
	[COMMAND_FAIL] = {FIELDS(fail_fields)},
	[COMMAND_BLOCK] = {FIELDS(block_fields)},
	[COMMAND_RELEASE] = {FIELDS(release_fields)},
	[COMMAND_ASK] = {FIELDS(ask_fields)},
	[COMMAND_WAIT] = {FIELDS(wait_fields)},
};

/* ---- requests --------------------------------------------------------------------------------------- */

static void put_node(struct json_object *object, const char *key, yyjson_val *value)
{
	if (value && json_put_key(object, key))
		json_put_value(object->buf, value);
}

/* Why it failed, for readers of the history: the error itself is gone when a later attempt succeeds. */
static void put_message(struct json_object *members, yyjson_val *error)
{
	yyjson_val *message = yyjson_obj_get(error, "message");
	struct span text = json_text(message);

	if (!yyjson_is_str(message))
		return;
	while (text.len > MESSAGE_NOTED_BYTES ||
		(text.len < yyjson_get_len(message) && ((unsigned char)text.data[text.len] & 0xc0) == 0x80))
		text.len--; /* to the end of a character */
	json_member_string_if_any(members, "message", text);
}

/* How a process ended, if the details say it. */
static void put_end(struct json_object *members, yyjson_val *details)
{
	static const char *const names[] = {"exitCode", "exit", "signal"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		yyjson_val *value = yyjson_obj_get(details, names[i]);
		if (yyjson_is_int(value) || (yyjson_is_str(value) && yyjson_get_len(value) <= 32))
			put_node(members, names[i], value);
	}
}

/* How to go on with it by hand is for the session, and not for every event. */
static void put_session(struct json_object *members, yyjson_val *session)
{
	static const char *const left_out[] = {"attach", "host"};
	struct json_object object;
	size_t i, count;
	yyjson_val *key, *value;

	if (!yyjson_obj_get(session, left_out[0]) && !yyjson_obj_get(session, left_out[1])) {
		put_node(members, "session", session);
		return;
	}
	if (!json_put_key(members, "session"))
		return;
	json_begin(&object, members->buf);
	yyjson_obj_foreach(session, i, count, key, value)
	{
		if (!yyjson_equals_str(key, left_out[0]) && !yyjson_equals_str(key, left_out[1]))
			json_member_node(&object, key, value);
	}
	json_note(members, json_end(&object));
}

/* What goes into the event. */
static void put_note(struct buf *note, const struct report *report)
{
	struct json_object members = {.buf = note};

	json_member_string_if_any(&members, "note", report->note);
	put_node(&members, "percent", report->percent);
	json_member_string_if_any(&members, "event", report->event);
	put_session(&members, report->session);
	json_member_raw_if_any(&members, "usage", report->usage);
	json_member_raw_if_any(&members, "evidence", report->evidence);
	json_member_string_if_any(&members, "reason", report->reason);
	json_member_string_if_any(&members, "question", report->question);
	json_member_raw_if_any(&members, "options", report->options);
	json_member_string_if_any(&members, "tool", report->tool);
	put_message(&members, report->error);
	put_end(&members, yyjson_obj_get(report->error, "details"));
}

static void put_question(struct buf *question, const struct report *report)
{
	struct json_object object;

	json_begin(&object, question);
	json_member_string(&object, "text", report->question);
	json_member_string_if_any(&object, "tool", report->tool);
	json_member_raw_if_any(&object, "input", report->input);
	json_member_string_if_any(&object, "diff", report->diff);
	json_member_raw_if_any(&object, "rule", report->rule);
	json_member_raw_if_any(&object, "options", report->options);
	json_member_true_if(&object, "freeText", report->free_text);
	json_member_int_if_any(&object, "deadline", report->deadline_ms);
	json_end(&object);
}

/* What a tool wants to do: with these members two questions are the same one, whatever their words. */
static void put_wish(struct buf *wish, const struct report *report)
{
	struct json_object object;

	json_begin(&object, wish);
	json_member_string(&object, "tool", report->tool);
	json_member_raw_if_any(&object, "input", report->input);
	json_end(&object);
}

static void put_rule(struct buf *permission, const struct report *report)
{
	struct json_object object;

	json_begin(&object, permission);
	json_member_string_if_any(&object, "tool", report->tool);
	json_member_raw(&object, "rule", report->rule);
	json_end(&object);
}

/* By when it is needed makes no other question of it. False: the call was refused. */
static bool keep_asked(struct api_call *call, const struct report *report, struct command_ask *ask)
{
	cleanup(buf_done) struct buf what = {.max = 2 * API_TEXT_MAX}, permission = {.max = 2 * API_TEXT_MAX};
	struct report timeless = *report;

	timeless.deadline_ms = 0;
	ask->answer_by_ms = report->deadline_ms;
	if (report->tool.len == 0)
		put_question(&what, &timeless);
	else
		put_wish(&what, report);
	if (call_keep(call, &what, &ask->what) < 0)
		return false;
	if (report->rule.len > 0)
		put_rule(&permission, report);
	else if (report->tool.len > 0)
		put_wish(&permission, report);
	ask->granted = SPAN("{\"allow\":\"task\"}");
	return permission.len == 0 || call_keep(call, &permission, &ask->permission) == 0;
}

static void complete_proof(struct form *form, struct report *report, uint64_t given)
{
	const struct principal *who = &form_call(form)->who;

	if (!(given & 1u << ROW_WORKER)) {
		report->worker = who->worker;
		if (report->worker.len == 0)
			form_error(form, "workerId", "is required");
	}
	if (!(given & 1u << ROW_FENCE)) {
		report->fence = who->fence;
		if (report->fence == 0)
			form_error(form, "fence", "is required");
	}
}

/* Of a supervisor that runs an agent: what it is, and how a person goes on with it by hand. */
static void read_agent(struct form *form, struct report *report, struct span id)
{
	static const char *const keys[] = {"adapter", "model", "host", "agentSessionId", "attach"};
	cleanup(buf_done) struct buf text = {.max = 8 * ATTACH_MAX};
	struct json_object object;

	if (!yyjson_is_str(yyjson_obj_get(report->session, "adapter")) || id.len > COMMAND_ID_MAX)
		return;
	json_begin(&object, &text);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		struct span value = json_text(yyjson_obj_get(report->session, keys[i]));
		if (value.len > 0 && value.len <= ATTACH_MAX)
			json_member_string(&object, keys[i], value);
	}
	json_end(&object);
	report->agent_label = id;
	form_keep_text(form, &text, &report->agent);
}

/* A session is given by its id, or as an object that has one. */
static void read_session(struct form *form, struct report *report)
{
	yyjson_val *id =
		yyjson_is_obj(report->session) ? yyjson_obj_get(report->session, "id") : report->session;
	cleanup(buf_done) struct buf text = {.max = 8 * SESSION_ID_MAX};

	if (!yyjson_is_str(id) || !text_is_name(json_text(id), SESSION_ID_MAX)) {
		form_error(form, "session",
			"must be an id of 1 to %d bytes, or an object with such an \"id\"", SESSION_ID_MAX);
		return;
	}
	json_put_string(&text, json_text(id));
	form_keep_text(form, &text, &report->session_id);
	read_agent(form, report, json_text(id));
}

/* A question, or the id of one that is taken back. */
static void check_question(struct form *form, struct report *report)
{
	uint32_t number;

	if (report->asks_for)
		form_read_inner(form, "data", report->asks_for, FIELDS(asks_for_fields), report);
	if (report->withdraws.len == 0 && report->question.len == 0)
		form_error(form, "question", "is required, unless \"withdraw\" names a question");
	else if (report->withdraws.len > 0 && report->question.len > 0)
		form_error(
			form, "withdraw", "must not stand beside \"question\": a request asks or withdraws");
	else if (report->withdraws.len > 0 && !question_id_read(report->withdraws, &number))
		form_error(form, "withdraw", QUESTION_ID_FORM);
}

static void check_report(struct form *form, struct report *report)
{
	if (report->session)
		read_session(form, report);
	double percent;

	if (report->percent && (!json_number(report->percent, &percent) || percent < 0 || percent > 100))
		form_error(form, "percent", "must be a number from 0 to 100");
}

static enum claim_end outcome_of(enum command_kind kind)
{
	static const enum claim_end ends[COMMAND_KIND_COUNT] = {
		[COMMAND_COMPLETE] = ENDED_COMPLETE,
		[COMMAND_REVIEW] = ENDED_REVIEW,
		[COMMAND_FAIL] = ENDED_FAIL,
		[COMMAND_BLOCK] = ENDED_BLOCK,
		[COMMAND_RELEASE] = ENDED_RELEASE,
		[COMMAND_WAIT] = ENDED_WAIT,
	};

	return ends[kind]; /* the other kinds end no attempt: ENDED_NOT is 0 */
}

static bool has_failure(enum command_kind kind)
{
	return kind == COMMAND_FAIL || kind == COMMAND_BLOCK;
}

bool report_keep_own(struct api_call *call, struct command *command, enum claim_end outcome)
{
	cleanup(buf_done) struct buf kept = {.max = 4 * API_TEXT_MAX};
	struct ending ending = {
		.outcome = outcome,
		.failure = {.code = CODE_EXECUTION_ERROR, .klass = CLASS_TASK},
		.data = command->data,
		.evidence = command->kind == COMMAND_UPDATE ? (struct span){0} : command->beside,
		.note = command->note,
	};

	if (call->who.task.len == 0 || outcome == ENDED_NOT)
		return true;
	if (has_failure(command->kind))
		ending.failure = command->failure;
	if (command->kind == COMMAND_RELEASE)
		ending.delay_ms = command->delay_ms;
	ending_put(&kept, &ending);
	return call_keep(call, &kept, &command->report) == 0;
}

/* What a supervisor saw, where it leaves the end to the report of the work. */
static enum seen_end seen_of(const struct report *report, const struct command *command)
{
	yyjson_val *exit = yyjson_obj_get(yyjson_obj_get(report->error, "details"), "exit");
	yyjson_val *checks = yyjson_obj_get(yyjson_obj_get(report->body, "evidence"), "checks");

	if (!report->by_report)
		return SEEN_NOT_SAID;
	return verdict_seen(outcome_of(command->kind), has_failure(command->kind) ? &command->failure : NULL,
		yyjson_is_num(exit), yyjson_is_ctn(checks) && yyjson_get_len(checks) > 0);
}

/* How far it is, for lists: of a long note the beginning. */
static void keep_progress(struct form *form, const struct report *report, struct command *command)
{
	cleanup(buf_done) struct buf progress = {.max = API_TEXT_MAX};
	struct json_object members = {.buf = &progress};
	struct span note = report->note;

	while (note.len > PROGRESS_NOTE_BYTES ||
		(note.len < report->note.len && ((unsigned char)note.data[note.len] & 0xc0) == 0x80))
		note.len--; /* to the end of a character */
	json_member_string_if_any(&members, "note", note);
	put_node(&members, "percent", report->percent);
	form_keep_text(form, &progress, &command->progress);
}

/* The counts that it knows; other members are for readers of the events. */
static void read_usage(struct form *form, yyjson_val *said, struct usage *ret_usage)
{
	struct usage usage = {.is_reported = true, .price_is_unknown = true};
	double number;

	for (int i = 0; i < USAGE_COUNTS; i++) {
		yyjson_val *value = yyjson_obj_get(said, usage_names[i]);
		if (!value || yyjson_is_null(value))
			continue;
		if (!json_number(value, &number) || number < 0 || number > USAGE_MAX) {
			form_error(form, "usage",
				"must have numbers that are not negative, or null, as its counts");
			return;
		}
		usage.counts[i] = (int64_t)(i == USAGE_MICRO_USD ? number * 1e6 + 0.5 : number);
		if (i == USAGE_MICRO_USD)
			usage.price_is_unknown = false;
	}
	*ret_usage = usage;
}

/* Did the model answer: has it counted anything? */
static bool has_answered(yyjson_val *usage)
{
	static const char *const counts[] = {"outputTokens", "turns", "usd"};
	double number;

	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		yyjson_val *value = yyjson_obj_get(usage, counts[i]);
		if (value && json_number(value, &number) && number > 0)
			return true;
	}
	return false;
}

/* What a report and an element of "finish" have in common: everything but who says it, and of which task. */
static void fill_command(
	struct form *form, struct report *report, enum command_kind kind, struct command *command)
{
	struct failure failure = {0};
	struct span error = {0};
	cleanup(buf_done) struct buf note = {.max = 4 * API_TEXT_MAX};

	check_report(form, report);
	if (report->error)
		failure_read(form, report->error, &failure, &error, &command->account);
	command->kind = kind;
	command->fence = report->fence;
	command->data = report->error ? error : kind == COMMAND_PROGRESS ? report->data : report->result;
	command->beside = kind == COMMAND_PROGRESS ? report->session_id : report->evidence;
	if (report->error)
		command->failure = failure;
	command->seen = seen_of(report, command);
	if (kind == COMMAND_PROGRESS)
		command->lease_ms = report->lease_ms;
	command->uses = kind == COMMAND_PROGRESS && has_answered(yyjson_obj_get(report->body, "usage"));
	command->heard = (uint32_t)report->heard;
	if (kind == COMMAND_PROGRESS) {
		command->prompt = report->prompt;
		command->agent = report->agent;
		command->session = (struct command_spawn){
			.label = report->agent_label, .spec = SPAN("{}"), .found = report->agent.len > 0};
	}
	if (kind == COMMAND_PROGRESS && report->usage.len > 0)
		read_usage(form, yyjson_obj_get(report->body, "usage"), &command->usage);
	if (kind == COMMAND_RELEASE)
		command->delay_ms = report->delay_ms;
	put_note(&note, report);
	if (note.len > 0 || buf_fault(&note))
		form_keep_text(form, &note, &command->note);
	if (kind == COMMAND_PROGRESS && (report->note.len > 0 || report->percent))
		keep_progress(form, report, command);
}

/* Then the workflow of the task hears of it. */
static bool may_be_reviewed(const struct command *command)
{
	return command->kind == COMMAND_REVIEW || command->seen != SEEN_NOT_SAID;
}

static bool tell(struct api_call *call, struct command *command, const struct report *report)
{
	struct outside_event event = {.type = report->event};

	return call_tells(call, command, &event);
}

/* The command of the report; false: refused. */
static bool fill_report(struct form *form, struct report *report, enum command_kind kind)
{
	struct api_call *call = form_call(form);
	struct command *command = call_command(call, kind);

	if (!command)
		return false;
	fill_command(form, report, kind, command);
	command->task = call->params[0];
	command->worker = report->worker;
	if (!form_is_good(form) || !report_keep_own(call, command, outcome_of(kind)))
		return false;
	return (report->event.len == 0 && !may_be_reviewed(command)) || tell(call, command, report);
}

/* ---- in a list ---- */

#define LISTED                                                                  \
	FIELD_MUST_BE(report, id, "id", FIELD_NAME, .max = COMMAND_ID_MAX),     \
		FIELD_MUST_BE(report, fence, "fence", FIELD_DECIMAL, .max = 0), \
		FIELD_MUST_BE(report, outcome, "outcome", FIELD_NAME, .max = 0)

static const struct field finish_success_fields[] = {LISTED, RESULT, EVIDENCE, BY_REPORT};
static const struct field finish_failure_fields[] = {LISTED, ERROR, EVIDENCE, BY_REPORT};
static const struct field finish_release_fields[] = {LISTED, REASON, DELAY, BY_REPORT};
static const struct field finish_wait_fields[] = {LISTED, BY_REPORT};
static const struct field finish_any_fields[] = {LISTED, RESULT, REASON, DELAY, EVIDENCE, BY_REPORT,
	FIELD(report, error, "error", FIELD_NODE, .max = 0)};

static const struct finish_row {
	const char *outcome;
	enum command_kind kind;
	const struct field *fields;
	uint32_t count;
} finish_rows[] = {
	{"complete", COMMAND_COMPLETE, FIELDS(finish_success_fields)},
	{"review", COMMAND_REVIEW, FIELDS(finish_success_fields)},
	{"fail", COMMAND_FAIL, FIELDS(finish_failure_fields)},
	{"block", COMMAND_BLOCK, FIELDS(finish_failure_fields)},
	{"release", COMMAND_RELEASE, FIELDS(finish_release_fields)},
	{"wait", COMMAND_WAIT, FIELDS(finish_wait_fields)},
};

void report_read_finish(struct form *form, yyjson_val *item, struct command *command)
{
	static const struct finish_row unknown = {NULL, COMMAND_COMPLETE, FIELDS(finish_any_fields)};
	const struct finish_row *row = &unknown;
	struct report report = {.body = item};

	for (size_t i = 0; i < sizeof finish_rows / sizeof *finish_rows; i++) {
		if (yyjson_equals_str(yyjson_obj_get(item, "outcome"), finish_rows[i].outcome))
			row = &finish_rows[i];
	}
	form_read(form, item, row->fields, row->count, &report);
	if (row == &unknown && report.outcome.len > 0)
		form_error(form, "outcome",
			"must be \"complete\", \"review\", \"fail\", \"block\", \"release\" or \"wait\"");
	command->task = report.id;
	command->wait_ends = row->kind == COMMAND_WAIT; /* its process has ended */
	fill_command(form, &report, row->kind, command);
	if (may_be_reviewed(command))
		tell(form_call(form), command, &report);
}

/* ---- one by one ---- */

static bool read_report(struct api_call *call, struct report *report)
{
	enum command_kind kind = (enum command_kind)call->route->variant;
	cleanup(form_done) struct form form = {0};

	assert(tables[kind].fields);
	if (!form_open(&form, call, false))
		return false;
	*report = (struct report){.body = form.root};
	uint64_t given = form_read(&form, form.root, tables[kind].fields, tables[kind].count, report);
	complete_proof(&form, report, given);
	if (kind == COMMAND_ASK)
		check_question(&form, report);
	return fill_report(&form, report, kind);
}

void report_begin(struct api_call *call)
{
	struct report report;

	read_report(call, &report);
}

void report_ask_begin(struct api_call *call)
{
	struct report report;
	cleanup(buf_done) struct buf question = {.max = 2 * API_TEXT_MAX};

	if (!read_report(call, &report))
		return;
	struct command *command = &call->commands[0];
	if (report.withdraws.len > 0) {
		question_id_read(report.withdraws, &command->ask.withdraws);
		return;
	}
	put_question(&question, &report);
	if (call_keep(call, &question, &command->data) == 0)
		keep_asked(call, &report, &command->ask);
}

/* ---- replies ---------------------------------------------------------------------------------------- */

static int64_t remaining_ms(const struct api_call *call, const struct result *result)
{
	struct given given = {.rules = call->rules, .now = call->now};
	const struct lease *lease =
		result->task.claim.clock == CLOCK_WORKER ? &result->worker.lease : &result->task.claim.lease;
	int64_t left = task_lease_remaining_ms(&result->task, &result->worker, &given);

	/* the turn may have come a moment after the request: never tell more than was granted */
	return left < lease->granted_ms ? left : lease->granted_ms;
}

static void put_commands(struct api_call *call, const struct result *result)
{
	struct given given = {.rules = call->rules, .now = call->now};
	bool any = false;
	bool stops = task_must_stop(&result->task, &given);

	if (stops || task_must_park(&result->task, &given))
		order_put(call->body, stops ? "cancel" : "park", result->id, &any);
	if (result->told)
		order_put(call->body, "tell", result->id, &any);
	orders_put_worker(call->body, &result->worker, &any);
}

void report_progress_finish(struct api_call *call, const struct result *results)
{
	const struct result *result = &results[0];

	buf_printf(call->body, "{\"leaseMs\":%lld,\"commands\":[", (long long)remaining_ms(call, result));
	put_commands(call, result);
	call_reply(call, 200, buf_put_span(call->body, SPAN("]}")));
}

/* What the report itself said, and the columns as the turn left them: this frequent path asks the store for no
 * more than the text. */
static int report_document(struct api_call *call, const struct command *command, const struct result *result,
	struct task_document *ret)
{
	enum command_kind kind = command->kind;

	/* it has its answer already, or was taken back */
	bool again = kind == COMMAND_ASK && result->task.state != TASK_ASKING;

	/* much may have happened since, or nothing yet, or another end than this one said */
	if (result->repeated || result->heard || again || command->seen != SEEN_NOT_SAID)
		return store_read_task(call->store, result->task.seq, call->now, call->arena, ret);
	*ret = (struct task_document){.task = result->task, .id = result->id};
	if (result->task.claim.holder != 0) {
		ret->holder = command->worker;
		ret->lease_ms = remaining_ms(call, result);
	}
	if (kind == COMMAND_COMPLETE || kind == COMMAND_REVIEW)
		ret->result = command->data;
	if (kind != COMMAND_ASK)
		ret->evidence = command->beside;
	if (kind == COMMAND_FAIL || kind == COMMAND_BLOCK)
		ret->error = command->data;
	else if (kind == COMMAND_ASK)
		ret->question = command->data;
	ret->question_number = result->question;
	return store_read_body(call->store, result->task.seq, call->arena, &ret->body);
}

void report_finish(struct api_call *call, const struct result *results)
{
	const struct result *result = &results[0];
	struct task_document document;

	int r = report_document(call, &call->commands[0], result, &document);
	if (r == 0)
		r = task_put(call, call->body, &document);
	call_reply(call, 200, r);
	if (r == 0)
		task_etag(call, result->task.version);
}

/* What came of the subtasks is there even if there are none. */
void report_wait_finish(struct api_call *call, const struct result *results)
{
	const struct result *result = &results[0];
	struct task_document document;
	struct json_object object;

	int r = store_read_task(call->store, result->task.seq, call->now, call->arena, &document);
	if (r == 0) {
		task_set_back(&document, result);
		json_begin(&object, call->body);
		task_put_members(call, &object, &document, PARENTS_IN_DOCUMENT);
		if (document.task.subtasks == SUBTASKS_NONE)
			subtasks_put(call, &object, &document.task);
		r = json_end(&object);
	}
	call_reply(call, 200, r);
	if (r == 0)
		task_etag(call, document.task.version);
}
