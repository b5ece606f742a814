/*
 * Task documents, by a table: every field of a task, what it may be, and where it is kept.
 *
 * Columns are what the rules look at. Everything else is text that nobody below the API reads: it is kept as
 * members of a JSON object, so that showing a task is copying them. Lists that the store turns into numbers
 * (requires, blockedBy) are kept both ways. Fields that nobody knows go into metadata and are named in warnings:
 * a task document is the one place where we are not strict, because producers annotate.
 */
#include "api/task/form.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/take.h"
#include "wire/task_env.h"
#include "wire/trace.h"

enum place {
	IN_COLUMN = 1 << 0,
	IN_BODY = 1 << 1,
	AT_BIRTH = 1 << 2, /* cannot be changed later */
	LATER = 1 << 3,    /* cannot be said at creation */
};

#define TEXT_MAX       API_TEXT_MAX
#define TIME_MAX       INT64_C(253402300799999) /* the year 9999 */
#define COLUMN(member) offsetof(struct task_form, member)

static field_take take_isolation, take_workflow, take_metadata, take_env, take_worktree, take_groups,
	take_state, take_status, take_budget, take_on_failure, take_on_conflict;

/* Names are looked for in this order: what most tasks have comes first. */
static const struct task_field {
	struct field field;
	unsigned place;
} table[] = {
	// clang-format off
	{{"title",          FIELD_TEXT,  .max = 4096},                                         IN_BODY},
	{{"queue",          FIELD_NAME,  .at = COLUMN(create.queue)},                                 IN_COLUMN},
	{{"payload",        FIELD_VALUE, .max = 0},                                            IN_BODY},
	{{"id",             FIELD_ID,    .at = COLUMN(create.id)},                                    IN_COLUMN | AT_BIRTH},
	{{"description",    FIELD_TEXT,  .max = TEXT_MAX},                                     IN_BODY},
	{{"instructions",   FIELD_TEXT,  .max = TEXT_MAX},                                     IN_BODY},
	{{"steps",          FIELD_LIST,  .max = 0},                                            IN_BODY},
	{{"deliverables",   FIELD_VALUE, .max = 0},                                            IN_BODY},
	{{"workingDir",     FIELD_NAME,  .max = 4096},                                         IN_BODY},
	{{"model",          FIELD_NAME,  .max = 0},                                            IN_BODY},
	{{"thinking",       FIELD_NAME,  .max = 0},                                            IN_BODY},
	{{"owner",          FIELD_NAME,  .at = COLUMN(create.owner)},                                 IN_COLUMN},
	{{"requires",       FIELD_NAMES, .at = COLUMN(create.requires)},                              IN_COLUMN | IN_BODY},
	{{"priority",       FIELD_BY,    .at = COLUMN(create.priority), .by = task_take_priority},     IN_COLUMN},
	{{"executor",       FIELD_NAME,  .at = COLUMN(create.executor)},                              IN_COLUMN},
	{{"module",         FIELD_NAME,  .max = 4096},                                         IN_BODY},
	{{"isolationLevel", FIELD_BY,    .by = take_isolation},                                IN_BODY},
	{{"blockedBy",      FIELD_NAMES, .max = COMMAND_ID_MAX, .at = COLUMN(create.parents)},        IN_COLUMN | IN_BODY},
	{{"group",          FIELD_NAME,  .at = COLUMN(create.group)},                                 IN_COLUMN | IN_BODY | AT_BIRTH},
	{{"blockedByGroups", FIELD_BY,   .at = COLUMN(create.blocked_by_groups), .by = take_groups}, IN_COLUMN | IN_BODY | AT_BIRTH},
	{{"parent",         FIELD_ID,    .at = 0},                                             IN_BODY | AT_BIRTH},
	{{"onParentFailure", FIELD_BY,   .at = COLUMN(create.runs_anyway), .by = take_on_failure},    IN_COLUMN | IN_BODY | AT_BIRTH},
	{{"notBefore",      FIELD_INT,   .max = TIME_MAX, .at = COLUMN(create.not_before_ms)},        IN_COLUMN | IN_BODY},
	{{"startBy",        FIELD_INT,   .max = TIME_MAX, .at = COLUMN(create.start_by_ms)},          IN_COLUMN},
	{{"finishBy",       FIELD_INT,   .max = TIME_MAX, .at = COLUMN(create.finish_by_ms)},         IN_COLUMN},
	{{"timeoutMs",      FIELD_INT,   .min = 1, .max = TIME_MAX, .at = COLUMN(timeout_ms)}, IN_COLUMN},
	{{"maxAttempts",    FIELD_INT,   .min = 1, .max = TASK_ATTEMPTS_MAX, .at = COLUMN(max_attempts)}, IN_COLUMN},
	{{"uniqueKey",      FIELD_NAME,  .at = COLUMN(create.unique_key)},                            IN_COLUMN | IN_BODY},
	{{"onConflict",     FIELD_BY,    .at = COLUMN(create.on_conflict), .by = take_on_conflict},       IN_COLUMN | IN_BODY | AT_BIRTH},
	{{"uniqueForMs",    FIELD_INT,   .min = 1, .max = TASK_DELAY_MS_MAX, .at = COLUMN(create.unique_for_ms)}, IN_COLUMN | IN_BODY | AT_BIRTH},
	{{"concurrencyKey", FIELD_NAME,  .at = COLUMN(create.concurrency_key)},                       IN_COLUMN | IN_BODY},
	{{"credential",     FIELD_NAME,  .at = COLUMN(create.credential)},                            IN_COLUMN},
	{{"budget",         FIELD_BY,    .by = take_budget},                                   IN_BODY},
	{{"labels",         FIELD_NAMES, .max = 0},                                            IN_BODY},
	{{"workflow",       FIELD_BY,    .at = COLUMN(create.workflow), .by = take_workflow},     IN_COLUMN | AT_BIRTH},
	{{"gates",          FIELD_NAMES, .at = COLUMN(create.gates)},                                 IN_COLUMN | AT_BIRTH},
	{{"worktree",       FIELD_BY,    .by = take_worktree},                                 IN_BODY},
	{{"env",            FIELD_BY,    .by = take_env},                                      IN_BODY},
	{{"metadata",       FIELD_BY,    .by = take_metadata},                                 0},
	{{"state",          FIELD_BY,    .at = COLUMN(create.parked), .by = take_state},          IN_COLUMN | AT_BIRTH},
	{{"status",         FIELD_BY,    .at = COLUMN(status), .by = take_status},                IN_COLUMN | LATER},
	// clang-format on
};

enum {
	FIELD_COUNT = sizeof table / sizeof *table,
	BODY_BYTES_USUAL = 512,
};
_Static_assert(FIELD_COUNT <= 64, "a bit for each");

/* What the server says about a task and nobody else. */
static const char *const read_only[] = {"stage", "gatesPassed", "attempt", "spent", "crashes", "workerId",
	"sessionId", "fence", "leaseMs", "result", "error", "question", "answer", "tells", "usage",
	"checkpoint", "evidence", "report", "reason", "stopping", "parking", "runMs", "createdAt",
	"updatedAt", "version", "warnings", "deduplicated", "schedule", "parents", "children", "supersededBy",
	"verdictFor"};

static int row_of(struct span name)
{
	for (int i = 0; i < FIELD_COUNT; i++) {
		if (span_is(name, table[i].field.name))
			return i;
	}
	return -1;
}

uint64_t task_field_bit(const char *name)
{
	int row = row_of(span_of(name));

	assert(row >= 0);
	return UINT64_C(1) << row;
}

static bool is_read_only(struct span name)
{
	for (size_t i = 0; i < sizeof read_only / sizeof *read_only; i++) {
		if (span_is(name, read_only[i]))
			return true;
	}
	return false;
}

/* ---- fields with rules of their own ----------------------------------------------------------------- */

static const struct {
	const char *word;
	int32_t priority;
} priority_words[] = {{"urgent", 100}, {"P0", 100}, {"high", 50}, {"P1", 50}, {"normal", 0}, {"P2", 0},
	{"low", -50}, {"P3", -50}};

bool task_take_priority(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	int32_t *priority = at;
	int64_t number;

	for (size_t i = 0; yyjson_is_str(value) && i < sizeof priority_words / sizeof *priority_words; i++) {
		if (span_equal(span_of(priority_words[i].word), json_text(value))) {
			*priority = priority_words[i].priority;
			return true;
		}
	}
	if (node_int(value, &number) < 0 || number < INT32_MIN || number > INT32_MAX)
		return form_error(form, field->name,
			"must be an integer of 32 bits, or one of urgent, high, normal, low, P0, P1, P2, P3");
	*priority = (int32_t)number;
	return true;
}

static bool take_isolation(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	(void)at;
	if (yyjson_is_str(value) && words_find("process|sandbox|container|vm", json_text(value)) >= 0)
		return true;
	return form_error(form, field->name, "must be one of process, sandbox, container, vm");
}

static bool take_workflow(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	enum workflow *workflow = at;

	*workflow = workflow_from_name(call_workflows(form_call(form)), json_text(value));
	if (*workflow != WORKFLOW_NONE)
		return true;
	return form_error(form, field->name,
		"must be autopilot, autopilot-deploy or one that the server's configuration has: GET /api/workflows lists them");
}

static bool take_metadata(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	(void)at;
	return yyjson_is_obj(value) || form_wrong_as(form, field->name, "an object", value);
}

static bool take_env(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	char wrong[TASK_ENV_WRONG_BYTES];

	(void)at;
	return task_env_check(value, wrong) == 0 || form_error(form, field->name, "%s", wrong);
}

/* true, false, or where its branch begins; git reads the base, so that it must not look like an option. */
static bool take_worktree(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	yyjson_val *base = yyjson_obj_get(value, "base");
	struct span text = json_text(base);
	bool whole = text.len > 0 && text.len <= COMMAND_NAME_MAX && text.data[0] != '-' &&
		!memchr(text.data, 0, text.len);

	(void)at;
	return yyjson_is_bool(value) || (yyjson_obj_size(value) == 1 && yyjson_is_str(base) && whole) ||
		form_wrong_as(form, field->name,
			"true, false, or {\"base\":REF} with the branch or commit that it begins with",
			value);
}

/* What it does when one of those that block it has failed. */
static bool take_on_failure(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	int word = yyjson_is_str(value) ? words_find("block|run", json_text(value)) : -1;
	bool *runs = at;

	if (word < 0)
		return form_wrong_as(form, field->name, "\"block\" or \"run\"", value);
	*runs = word == 1;
	return true;
}

/* What becomes of it when another task holds its unique key. */
static bool take_on_conflict(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	int word = yyjson_is_str(value) ? words_find("existing|reject|replace", json_text(value)) : -1;
	enum on_conflict *conflict = at;

	if (word < 0)
		return form_wrong_as(form, field->name, "\"existing\", \"reject\" or \"replace\"", value);
	*conflict = (enum on_conflict)word;
	return true;
}

/* What all attempts together may use. Its worker meters it. */
static bool take_budget(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	static const struct {
		const char *name;
		bool whole;
		double most;
	} parts[] = {{"usd", false, 1e6}, {"minutes", false, 30 * 24 * 60}, {"tokens", true, 1e15},
		{"turns", true, 1e6}, {"toolCalls", true, 1e6}};
	size_t i, count, known = 0;
	yyjson_val *key, *part;
	double number = 0;
	int64_t whole;

	(void)at;
	yyjson_obj_foreach(value, i, count, key, part)
	{
		for (size_t j = 0; j < sizeof parts / sizeof *parts; j++)
			known += yyjson_equals_str(key, parts[j].name) && json_number(part, &number) &&
				number > 0 && number <= parts[j].most &&
				(!parts[j].whole || node_int(part, &whole) == 0);
	}
	return (yyjson_is_obj(value) && known > 0 && known == yyjson_obj_size(value)) ||
		form_wrong_as(form, field->name,
			"an object with numbers above 0 under usd, minutes, tokens, turns or toolCalls, as in "
			"{\"usd\": 5}",
			value);
}

static bool take_groups(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	struct field names = {field->name, FIELD_NAMES, .max = COMMAND_NAME_MAX, .at = 0};

	if (yyjson_arr_size(value) > TASK_GROUPS_MAX)
		return form_error(form, field->name, "names %zu groups; a task waits for at most %d",
			yyjson_arr_size(value), TASK_GROUPS_MAX);
	return form_take(form, &names, value, at);
}

static bool take_state(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	bool *parked = at;

	*parked = yyjson_equals_str(value, "pending");
	if (!*parked)
		form_error(form, field->name, "is read-only; a new task may only ask for \"pending\"");
	return *parked;
}

/* The new status. Calling a task off has a route of its own, because it may take its time. */
static bool take_status(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	enum task_status *status = at;

	*status = yyjson_is_str(value) ? task_status_from_name(yyjson_get_str(value), yyjson_get_len(value))
				       : STATUS_NONE;
	if (*status == STATUS_CANCELLED)
		form_error(form, field->name,
			"cannot be set to \"cancelled\": POST /api/tasks/ID/cancel does that");
	else if (*status == STATUS_NONE)
		form_error(form, field->name, "must be one of todo, in-progress, review, blocked, done");
	return *status != STATUS_CANCELLED && *status != STATUS_NONE;
}

/* ---- a document ------------------------------------------------------------------------------------- */

/* One known field. What only the body keeps is checked here and written by the caller. */
static void take_field(
	struct form *form, const struct task_field *row, yyjson_val *value, struct task_form *task)
{
	struct field checked = row->field;
	union {
		struct span text;
		struct name_list list;
		int64_t number;
	} ignored;

	checked.at = 0;
	if (row->place & IN_COLUMN)
		form_take(form, &row->field, value, task);
	else if (row->field.kind != FIELD_VALUE)
		form_take(form, &checked, value, &ignored);
}

static void tell_read_only(struct form *form, struct span name)
{
	char text[64];

	snprintf(text, sizeof text, "%.*s", SPAN_ARGS(name));
	form_error(form, text, "is read-only: the server says it");
}

/* A JSON key and value into the members. */
static void put_member(struct buf *members, yyjson_val *key, yyjson_val *value)
{
	struct json_object object = {.buf = members, .any = members->len > 0};

	json_member_node(&object, key, value);
}

static void put_warning(struct buf *warnings, struct span name, bool kept)
{
	char text[256];

	snprintf(text, sizeof text,
		kept ? "unknown field \"%.*s\" was kept in metadata"
		     : "unknown field \"%.*s\" was left out: metadata has one of that name",
		(int)(name.len < 150 ? name.len : 150), name.data);
	if (warnings->len > 0)
		buf_put_byte(warnings, ',');
	json_put_string(warnings, span_of(text));
}

struct parsing {
	struct form *form;
	struct task_form *task;
	bool patch;
	bool has_trace; /* a member "traceparent" came, and is kept in metadata */
	struct buf body, metadata_text, warnings;
};

static void take_unknown(struct parsing *parsing, yyjson_val *document, yyjson_val *key, yyjson_val *value)
{
	yyjson_val *metadata = yyjson_obj_get(document, "metadata");
	bool kept = !yyjson_is_obj(metadata) ||
		!yyjson_obj_getn(metadata, yyjson_get_str(key), yyjson_get_len(key));

	parsing->has_trace |= span_equal(json_text(key), SPAN("traceparent"));
	put_warning(&parsing->warnings, json_text(key), kept);
	if (kept)
		put_member(&parsing->metadata_text, key, value);
}

static void take_null(struct parsing *parsing, int row, yyjson_val *key, yyjson_val *value)
{
	if (!parsing->patch)
		return; /* as if it had not been said */
	parsing->task->cleared |= UINT64_C(1) << row;
	if (span_equal(json_text(key), SPAN("queue")))
		form_error(parsing->form, "queue", "must be a name; a task is always in a queue");
	if (table[row].place & LATER)
		take_field(parsing->form, &table[row], value, parsing->task);
	if (table[row].place & IN_BODY)
		put_member(&parsing->body, key, value);
}

/* The token of a claim changes how the work goes, not what the work is. */
static bool is_of_claim(struct span name)
{
	return span_equal(name, SPAN("status")) || span_equal(name, SPAN("metadata"));
}

static void take_given(struct parsing *parsing, int row, yyjson_val *key, yyjson_val *value)
{
	parsing->task->given |= UINT64_C(1) << row;
	take_field(parsing->form, &table[row], value, parsing->task);
	if (table[row].place & IN_BODY)
		put_member(&parsing->body, key, value);
}

static void take_member(struct parsing *parsing, yyjson_val *document, yyjson_val *key, yyjson_val *value)
{
	struct span name = json_text(key);
	int row = row_of(name);

	if (row < 0 && is_read_only(name))
		tell_read_only(parsing->form, name);
	else if (row < 0)
		take_unknown(parsing, document, key, value);
	else if (parsing->patch && form_call(parsing->form)->who.task_seq != 0 && !is_of_claim(name))
		form_error(parsing->form, table[row].field.name,
			"cannot be changed with the token of a claim: that changes \"status\" and \"metadata\"");
	else if (parsing->patch && (table[row].place & AT_BIRTH))
		form_error(parsing->form, table[row].field.name, "cannot be changed after creation");
	else if (form_call(parsing->form)->who.task_seq == 0 && span_equal(name, SPAN("parent")) &&
		!yyjson_is_null(value))
		form_error(parsing->form, "parent",
			"is set by the work itself: the token of a claim creates subtasks of its own task; leave it out");
	else if (!parsing->patch && (table[row].place & LATER))
		tell_read_only(parsing->form, name);
	else if (yyjson_is_null(value))
		take_null(parsing, row, key, value);
	else
		take_given(parsing, row, key, value);
}

/* The header says which trace the task belongs to, unless its metadata do. One that is none counts for nothing, as the standard
 * has it. */
static void put_trace(struct parsing *parsing, yyjson_val *metadata)
{
	const struct api_call *call = form_call(parsing->form);
	struct span given = call->takes_trace ? call->request->traceparent : (struct span){0};
	struct json_object object = {.buf = &parsing->metadata_text, .any = parsing->metadata_text.len > 0};
	struct trace trace;

	if (given.len > 0 && !yyjson_obj_get(metadata, "traceparent") && !parsing->has_trace &&
		trace_read(given, &trace))
		json_member_string(&object, "traceparent", given);
}

/* What the caller put into metadata, and what we do not know. Metadata that is taken away is gone before that comes:
 * see task_patch_read(). */
static void put_metadata(struct parsing *parsing, yyjson_val *metadata)
{
	struct json_object body = {.buf = &parsing->body, .any = parsing->body.len > 0}, object;
	bool is_taken_away = parsing->patch && yyjson_is_null(metadata);
	size_t i, limit;
	yyjson_val *key, *value;

	yyjson_obj_foreach(metadata, i, limit, key, value) put_member(&parsing->metadata_text, key, value);
	put_trace(parsing, metadata);
	json_note(&body, buf_fault(&parsing->metadata_text));
	if (parsing->metadata_text.len == 0 && is_taken_away) {
		json_member_null(&body, "metadata");
		return;
	}
	if ((parsing->metadata_text.len == 0 && !yyjson_is_obj(metadata)) || !json_put_key(&body, "metadata"))
		return;
	json_begin(&object, body.buf);
	json_members_raw(&object, buf_span(&parsing->metadata_text));
	json_end(&object);
}

static void parsing_done(struct parsing *parsing)
{
	buf_done(&parsing->body);
	buf_done(&parsing->metadata_text);
	buf_done(&parsing->warnings);
}

static uint32_t clamp_u32(int64_t value)
{
	return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static void parse(struct form *form, yyjson_val *document, bool patch, struct task_form *ret)
{
	cleanup(parsing_done) struct parsing parsing = {.form = form, .task = ret, .patch = patch};
	size_t i, limit;
	yyjson_val *key, *value;

	*ret = (struct task_form){0};
	buf_init(&parsing.body, 2 * API_TEXT_MAX);
	buf_reserve(&parsing.body,
		BODY_BYTES_USUAL); /* so that it need not grow; no matter if there is no memory */
	buf_init(&parsing.metadata_text, 2 * API_TEXT_MAX);
	buf_init(&parsing.warnings, 2 * API_TEXT_MAX);
	if (!yyjson_is_obj(document)) {
		form_wrong_as(form, "", "an object", document);
		return;
	}
	yyjson_obj_foreach(document, i, limit, key, value) take_member(&parsing, document, key, value);
	put_metadata(&parsing, yyjson_obj_get(document, "metadata"));
	form_keep_text(form, &parsing.body, &ret->create.body);
	form_keep_text(form, &parsing.warnings, &ret->warnings);
	ret->create.timeout_ms = clamp_u32(ret->timeout_ms); /* the core clamps it to the cap */
	ret->create.max_attempts = (uint32_t)ret->max_attempts;
}

/* Its own gates, and that of its workflow. */
static void complete_gates(struct form *form, struct command_create *create)
{
	struct span *gates = arena_alloc(form->arena, (create->gates.count + 1) * sizeof *gates);
	uint32_t count = create->gates.count;

	if (!gates) {
		form->fault = -ENOMEM;
		return;
	}
	if (count > 0)
		memcpy(gates, create->gates.items, count * sizeof *gates);
	if (create->workflow != WORKFLOW_NONE)
		gates[count++] = SPAN(WORKFLOW_GATE);
	create->gates = (struct name_list){gates, count};
}

/* Strictly true: nothing that only looks like it sets a task going. */
bool task_is_autonomous(yyjson_val *metadata)
{
	return yyjson_is_true(yyjson_obj_get(metadata, "autonomous_execution"));
}

void task_form_create(struct form *form, yyjson_val *document, struct task_form *ret)
{
	struct command_create *create = &ret->create;

	parse(form, document, false, ret);
	create->autonomous =
		task_is_autonomous(yyjson_obj_get(document, "metadata")) || task_is_autonomous(document);
	if (create->gates.count >= TASK_GATES_MAX)
		form_error(form, "gates", "has more than %d names", TASK_GATES_MAX - 1);
	else if (create->gates.count > 0 || create->workflow != WORKFLOW_NONE)
		complete_gates(form, create);
	if (create->unique_key.len == 0 && ret->given & task_field_bit("onConflict"))
		form_error(form, "onConflict", "needs a uniqueKey: without one there is no conflict");
	if (create->unique_key.len == 0 && create->unique_for_ms != 0)
		form_error(form, "uniqueForMs", "needs a uniqueKey, which is held for so long");
	if (create->queue.len == 0)
		create->queue = SPAN("default");
}

/* What a slot worker says of its failure stands in the metadata that comes with it. */
static void put_slot_error(struct form *form, yyjson_val *document, struct span *ret_error)
{
	yyjson_val *reason = yyjson_obj_get(yyjson_obj_get(document, "metadata"), "errorReason");
	cleanup(buf_done) struct buf text = {.max = API_TEXT_MAX};
	struct json_object error;

	json_begin(&error, &text);
	json_member_cstr(&error, "code", failure_code_name(CODE_EXECUTION_ERROR));
	json_member_string(&error, "message",
		yyjson_is_str(reason) ? json_text(reason) : SPAN("its status was set to blocked"));
	json_member_cstr(&error, "class", failure_class_name(CLASS_TASK));
	json_end(&error);
	form_keep_text(form, &text, ret_error);
}

void task_form_patch(struct form *form, yyjson_val *document, struct task_form *ret)
{
	yyjson_val *metadata = yyjson_obj_get(document, "metadata");

	parse(form, document, true, ret);
	if (ret->status == STATUS_BLOCKED)
		put_slot_error(form, document, &ret->error);
	ret->says_failure = yyjson_obj_get(metadata, "failedAt") != NULL;
	ret->says_recovery = yyjson_obj_get(metadata, "recoveredAt") != NULL;
}

/* ---- commands --------------------------------------------------------------------------------------- */

void task_form_to_update(const struct task_form *form, struct command_update *ret)
{
	const struct command_create *said = &form->create;
	uint64_t touched = form->given | form->cleared;

	*ret = (struct command_update){
		.owner = said->owner,
		.queue = said->queue,
		.executor = said->executor,
		.credential = said->credential,
		.concurrency_key = said->concurrency_key,
		.requires = said->requires,
		.parents = said->parents,
		.unique_key = said->unique_key,
		.status = form->status,
		.says_failure = form->says_failure,
		.says_recovery = form->says_recovery,
		.patch =
			{
				.set_not_before = touched & task_field_bit("notBefore"),
				.set_parents = touched & task_field_bit("blockedBy"),
				.set_keyed = touched & task_field_bit("uniqueKey"),
				.not_before_ms = said->not_before_ms,
				.set_priority = touched & task_field_bit("priority"),
				.set_owner = touched & task_field_bit("owner"),
				.set_queue = form->given & task_field_bit("queue"),
				.set_requires = touched & task_field_bit("requires"),
				.set_executor = touched & task_field_bit("executor"),
				.set_concurrency_key = touched & task_field_bit("concurrencyKey"),
				.set_credential = touched & task_field_bit("credential"),
				.set_max_attempts = form->given & task_field_bit("maxAttempts"),
				.set_timeout = touched & task_field_bit("timeoutMs"),
				.set_start_by = touched & task_field_bit("startBy"),
				.set_finish_by = touched & task_field_bit("finishBy"),
				.priority = said->priority,
				.max_attempts = said->max_attempts,
				.timeout_ms = said->timeout_ms,
				.start_by_ms = said->start_by_ms,
				.finish_by_ms = said->finish_by_ms,
			},
	};
}

/* ---- merging ---------------------------------------------------------------------------------------- */

static int put_members_of(struct arena *arena, yyjson_mut_val *merged, struct span *ret_members)
{
	size_t len;
	cleanup(free_at) char *text = yyjson_mut_val_write(merged, 0, &len);

	if (!text)
		return -ENOMEM;
	assert(len >= 2);
	if (len > 2 * API_TEXT_MAX)
		return -E2BIG;
	return arena_copy(arena, (struct span){text + 1, len - 2}, ret_members); /* without the braces */
}

yyjson_doc *task_body_read(struct span members, struct buf *out)
{
	struct json_complaint complaint;
	cleanup(buf_done) struct buf text = {.max = 4 * API_TEXT_MAX};

	buf_put_byte(&text, '{');
	buf_put_span(&text, members);
	buf_put_byte(&text, '}');
	/* what nobody knows lies in the metadata, a level deeper than it came */
	yyjson_doc *doc =
		buf_fault(&text) ? NULL : json_read_to(buf_span(&text), JSON_REPLY_DEPTH_MAX, &complaint);
	if (!doc && out)
		buf_fail(out, -ENOMEM); /* members that were accepted are JSON */
	return doc;
}

int task_body_merge(struct arena *arena, struct span members, struct span patch, struct span *ret_members)
{
	struct json_complaint complaint;
	yyjson_doc *old = task_body_read(members, NULL);
	yyjson_doc *new = json_read_to(patch, JSON_REPLY_DEPTH_MAX, &complaint);
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *merged = old && new && doc
		? yyjson_merge_patch(doc, yyjson_doc_get_root(old), yyjson_doc_get_root(new))
		: NULL;
	int r = merged ? put_members_of(arena, merged, ret_members) : -EPROTO;
	yyjson_mut_doc_free(doc);
	yyjson_doc_free(new);
	yyjson_doc_free(old);
	return r;
}

/* Each member of `given` into the metadata of the text. */
static bool put_each(yyjson_mut_doc *doc, yyjson_val *given)
{
	yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
	yyjson_mut_val *metadata = yyjson_mut_obj_get(root, "metadata");
	size_t at, count;
	yyjson_val *key, *value;
	bool ok = true;

	if (!yyjson_mut_is_obj(metadata)) {
		metadata = yyjson_mut_obj(doc);
		ok = yyjson_mut_obj_put(root, yyjson_mut_str(doc, "metadata"), metadata);
	}
	yyjson_obj_foreach(given, at, count, key, value)
	{
		ok = ok &&
			yyjson_mut_obj_put(
				metadata, yyjson_val_mut_copy(doc, key), yyjson_val_mut_copy(doc, value));
	}
	return ok;
}

int task_body_put_metadata(
	struct arena *arena, struct span members, struct span object, struct span *ret_members)
{
	struct json_complaint complaint;
	yyjson_doc *old = task_body_read(members, NULL);
	yyjson_doc *given = json_read(object, &complaint);
	yyjson_mut_doc *doc = old && given ? yyjson_doc_mut_copy(old, NULL) : NULL;
	int r = doc ? 0 : -EPROTO;

	if (r == 0 && !put_each(doc, yyjson_doc_get_root(given)))
		r = -ENOMEM;
	if (r == 0)
		r = put_members_of(arena, yyjson_mut_doc_get_root(doc), ret_members);
	yyjson_mut_doc_free(doc);
	yyjson_doc_free(given);
	yyjson_doc_free(old);
	return r;
}
