/*
 * Sessions: agents that are asked for by a label, and watched and stopped by it.
 *
 * A session is a task with a label, and its process is an attempt of that task. Without a task of the caller's one is
 * made in the queue "sessions", whose id is the label where a label can be one: a worker of that queue runs it. With
 * taskId the label is put onto that task, which runs wherever it would have run. So everything that is true of tasks is
 * true of sessions; this file knows their words and no rule.
 */
#include "api/form.h"
#include "api/task/form.h"
#include "api/task/view.h"

#include <assert.h>
#include <errno.h>

#include "base/take.h"

enum {
	SLICE_SESSIONS = 20,
	DOCUMENT_MAX = 16 * API_TEXT_MAX,
};

#define LISTED_MS (INT64_C(24) * 3600 * 1000) /* a session that has ended is listed that long */

/* ---- a session as JSON -------------------------------------------------------------------------------- */

struct view {
	struct task_document task;
	struct session_document session;
	struct span agent; /* JSON; empty: its worker has said nothing of it */
};

static int read_view(const struct api_call *call, int64_t seq, struct arena *arena, struct view *ret_view)
{
	int r = store_read_session(call->store, seq, arena, &ret_view->session);
	ret_view->agent = (struct span){0};
	if (r == 0)
		r = store_read_agent(call->store, seq, arena, &ret_view->agent);
	return r < 0 ? r : store_read_task(call->store, seq, call->now, arena, &ret_view->task);
}

/* … if it is there for the caller. */
static int see_view(struct api_call *call, int64_t seq, struct arena *arena, struct view *ret_view)
{
	int r = read_view(call, seq, arena, ret_view);

	return r == 0 && !principal_sees(call, &ret_view->task.task) ? -ENOENT : r;
}

/* The session of the path. False: the call was refused. */
static bool find_view(struct api_call *call, struct view *ret_view)
{
	int64_t seq;

	int r = store_find_session(call->store, call->params[0], &seq);
	if (r == 0)
		r = see_view(call, seq, call->arena, ret_view);
	return !call_has_failed(call, r);
}

static const char *status_of(const struct task *task)
{
	static const char *const words[TASK_STATE_COUNT] = {
		[TASK_NOWHERE] = "unknown",
		[TASK_PENDING] = "pending",
		[TASK_SCHEDULED] = "queued",
		[TASK_WAITING] = "queued",
		[TASK_READY] = "queued",
		[TASK_CLAIMED] = "running",
		[TASK_RUNNING] = "running",
		[TASK_ASKING] = "asking",
		[TASK_REVIEW] = "completed",
		[TASK_DONE] = "completed",
		[TASK_BLOCKED] = "failed",
		[TASK_FAILED] = "failed",
		[TASK_CANCELLED] = "stopped",
	};

	if (task->state == TASK_BLOCKED && task->code == CODE_STOPPED)
		return "stopped";
	if (task->claim.stopping && (task->state == TASK_CLAIMED || task->state == TASK_RUNNING))
		return "stopping";
	assert(task->state < TASK_STATE_COUNT);
	assert(words[task->state]);
	return words[task->state];
}

static bool is_completed(const struct task *task)
{
	return task->state == TASK_DONE || task->state == TASK_REVIEW;
}

static bool has_failed(const struct task *task)
{
	return task->state == TASK_FAILED || task->state == TASK_BLOCKED || task->state == TASK_CANCELLED;
}

/* In words, where there are any. */
static void put_error(struct json_object *object, const struct task_document *document)
{
	const struct task *task = &document->task;
	yyjson_doc *words = has_failed(task) ? task_error_read(task, document->error, object->buf) : NULL;
	yyjson_val *message = yyjson_obj_get(yyjson_doc_get_root(words), "message");

	if (!has_failed(task))
		json_member_null(object, "error");
	else if (task->state == TASK_CANCELLED)
		json_member_cstr(object, "error", "the session was stopped");
	else if (yyjson_is_str(message))
		json_member_string(object, "error", json_text(message));
	else
		json_member_cstr(object, "error", failure_code_name(task->code));
	yyjson_doc_free(words);
}

/* What was asked for, member by member as it was said; the prompt only where one session is looked at alone. */
static void put_spec(struct json_object *object, struct span spec, bool alone)
{
	static const char *const keys[] = {"channel", "thinking", "prompt"};
	yyjson_doc *doc = kept_read(spec, object->buf);

	for (size_t i = 0; i < sizeof keys / sizeof *keys - !alone; i++) {
		json_member_text_or_null(object, keys[i], yyjson_obj_get(yyjson_doc_get_root(doc), keys[i]));
	}
	yyjson_doc_free(doc);
}

/* What its worker says of the agent; the model also as it was asked for, and the session id also from workers that say nothing else. */
static void put_agent(struct json_object *object, const struct view *view, bool alone)
{
	static const char *const keys[] = {"adapter", "host", "attach"};
	yyjson_doc *said = kept_read(view->agent, object->buf),
		   *asked = kept_read(view->session.spec, object->buf);
	yyjson_val *agent = yyjson_doc_get_root(said), *model = yyjson_obj_get(agent, "model"),
		   *id = yyjson_obj_get(agent, "agentSessionId");

	json_member_text_or_null(
		object, "model", model ? model : yyjson_obj_get(yyjson_doc_get_root(asked), "model"));
	if (id)
		json_member_text_or_null(object, "agentSessionId", id);
	else
		json_member_raw_or_null(object, "agentSessionId",
			view->session.found ? (struct span){0} : view->task.session);
	for (size_t i = 0; i < sizeof keys / sizeof *keys - !alone; i++)
		json_member_text_or_null(object, keys[i], yyjson_obj_get(agent, keys[i]));
	yyjson_doc_free(asked);
	yyjson_doc_free(said);
}

static int put_session(struct buf *out, const struct view *view, bool alone)
{
	const struct task *task = &view->task.task;
	bool held = task->claim.holder != 0, ended = is_completed(task) || has_failed(task);
	struct json_object object;

	json_begin(&object, out);
	json_member_string(&object, "id", view->session.label);
	json_member_string(&object, "taskId", view->task.id);
	json_member_cstr(&object, "status", status_of(task));
	json_member_bool(&object, "completed", is_completed(task));
	put_error(&object, &view->task);
	put_agent(&object, view, alone);
	put_spec(&object, view->session.spec, alone);
	json_member_string_or_null(&object, "workerId", held ? view->task.holder : (struct span){0});
	json_member_int(&object, "attempt", task->attempt);
	json_member_int(&object, "createdAt", task->created_ms);
	json_member_int_or_null(&object, "startedAt", task->claim.claimed_wall_ms);
	json_member_int_or_null(&object, "endedAt", ended ? task->updated_ms : 0);
	if (alone)
		json_member_raw_or_null(&object, "result", view->task.result);
	if (alone && view->task.usage.is_reported)
		task_put_usage(&object, &view->task.usage);
	return json_end(&object);
}

static void reply(struct api_call *call, int status, const struct view *view)
{
	call_reply(call, status, put_session(call->body, view, true));
}

/* The session of the task as it is now; 201 says where that is. */
static void reply_with(struct api_call *call, int status, const struct result *result)
{
	cleanup(buf_done) struct buf path = {.max = 4 * COMMAND_ID_MAX};
	struct view view;

	int r = read_view(call, result->task.seq, call->arena, &view);
	call->reply.event_seq = result->event_seq;
	if (!call_has_failed(call, r))
		reply(call, status, &view);
	if (call->reply.status != 201)
		return;
	http_put_path(&path, "/api/sessions/", view.session.label, "");
	call_locate(call, &path);
}

/* ---- spawning ---------------------------------------------------------------------------------------- */

struct spawn_body {
	struct span label, channel, prompt, model, thinking, task;
	bool auto_start;
};

static const struct field spawn_fields[] = {
	FIELD(spawn_body, label, "sessionLabel", FIELD_NAME, .max = COMMAND_ID_MAX),
	FIELD(spawn_body, channel, "channel", FIELD_NAME, .max = 0),
	FIELD(spawn_body, prompt, "prompt", FIELD_TEXT, .max = API_TEXT_MAX),
	FIELD(spawn_body, model, "model", FIELD_NAME, .max = 0),
	FIELD(spawn_body, thinking, "thinking", FIELD_NAME, .max = 0),
	FIELD(spawn_body, auto_start, "autoStart", FIELD_BOOL, .max = 0),
	FIELD(spawn_body, task, "taskId", FIELD_NAME, .max = COMMAND_ID_MAX),
};

/* What is kept with the task, in the caller's words. */
static int put_asked(struct buf *out, const struct spawn_body *body)
{
	struct json_object object;

	json_begin(&object, out);
	json_member_string(&object, "channel", body->channel.len > 0 ? body->channel : SPAN("internal"));
	json_member_string_if_any(&object, "model", body->model);
	json_member_string_if_any(&object, "thinking", body->thinking);
	json_member_string_if_any(&object, "prompt", body->prompt);
	return json_end(&object);
}

/* The channel that is notified of its end; empty: no notification. */
static int put_notice(struct buf *out, const struct spawn_body *body)
{
	struct json_object members = {.buf = out};

	if (body->channel.len > 0 && !span_equal(body->channel, SPAN("internal")))
		json_member_string(&members, "channel", body->channel);
	return buf_fault(members.buf);
}

/* The text of a task that is made for a session. */
static int put_members(struct buf *out, const struct spawn_body *body)
{
	struct json_object members = {.buf = out};

	json_member_string(&members, "title", body->label.len > 0 ? body->label : SPAN("session"));
	json_member_string(&members, "instructions", body->prompt);
	json_member_string_if_any(&members, "model", body->model);
	json_member_string_if_any(&members, "thinking", body->thinking);
	return buf_fault(members.buf);
}

/* The route serves producers and operators; the body decides which scope the request needs. */
static bool may(struct api_call *call, enum scope scope, const char *otherwise)
{
	return call_require(call, call->who.scopes & (SCOPE_BIT(scope) | SCOPE_BIT(SCOPE_ADMIN)),
		REFUSED_FORBIDDEN, otherwise);
}

static void fill_create(
	struct api_call *call, const struct spawn_body *body, const struct command_spawn *spawn)
{
	cleanup(buf_done) struct buf members = {.max = 8 * API_TEXT_MAX};

	if (!may(call, SCOPE_PRODUCE,
		    "Without taskId it creates a task, and the credential is not for that."))
		return;
	struct command *command = call_command(call, COMMAND_CREATE);
	if (!command)
		return;
	command->create = (struct command_create){
		.id = text_is_id(body->label) ? body->label : (struct span){0},
		.queue = SPAN("sessions"),
		.max_attempts = 1, /* one process was asked for: the caller decides about another */
		.parked = !body->auto_start,
		.spawn = *spawn,
	};
	call_key(call, &command->create);
	if (!call_require(call, principal_serves(&call->who, command->create.queue), REFUSED_FORBIDDEN,
		    "The credential is for other queues than \"sessions\"."))
		return;
	put_members(&members, body);
	call_keep(call, &members, &command->create.body);
}

/* On a task that exists, for a caller who may change it. A parked task is unparked. */
static void fill_update(
	struct api_call *call, const struct spawn_body *body, const struct command_spawn *spawn)
{
	if (!may(call, SCOPE_OPERATE,
		    "With taskId it changes a task that is there, and the credential is not for that."))
		return;
	struct command *commands = call_commands(call, body->auto_start ? 2 : 1);
	if (!commands)
		return;
	commands[0].kind = COMMAND_UPDATE;
	commands[0].task = body->task;
	commands[0].update.spawn = *spawn;
	if (!body->auto_start)
		return;
	commands[1].kind = COMMAND_UNPARK;
	commands[1].task = body->task;
}

void session_spawn_begin(struct api_call *call)
{
	struct spawn_body body = {.auto_start = true};
	cleanup(form_done) struct form form = {0};
	cleanup(buf_done) struct buf asked = {.max = 8 * API_TEXT_MAX},
				     notice = {.max = 8 * COMMAND_NAME_MAX};
	struct command_spawn spawn;

	if (!form_open(&form, call, false))
		return;
	form.tolerant = true;
	form_read(&form, form.root, FIELDS(spawn_fields), &body);
	if (body.task.len == 0 && body.prompt.len == 0 && form.error_count == 0)
		form_error(&form, "prompt", "is required, unless taskId names a task that is there");
	if (!form_is_good(&form))
		return;
	put_asked(&asked, &body);
	put_notice(&notice, &body);
	spawn.label = body.label;
	if (call_keep(call, &asked, &spawn.spec) < 0 || call_keep(call, &notice, &spawn.notice) < 0)
		return;
	if (body.task.len > 0)
		fill_update(call, &body, &spawn);
	else
		fill_create(call, &body, &spawn);
}

/* The second command lets go on what was parked; what was not needs it not. */
void session_spawn_finish(struct api_call *call, const struct result *results)
{
	struct result last = results[0];

	if (call_is_refused(call, &results[0]))
		return;
	if (call->command_count > 1 && results[1].event_seq != 0)
		last.event_seq = results[1].event_seq;
	reply_with(call, results[0].deduplicated ? 200 : 201, &last);
}

/* ---- looking ----------------------------------------------------------------------------------------- */

struct session_list {
	struct api_call *call;
	uint32_t at, told;
};

static int list_session(void *context, int64_t seq, int64_t ended_ms)
{
	struct session_list *list = context;
	struct api_call *call = list->call;
	struct arena arena;
	struct view view;

	if (ended_ms != 0 && call->now.wall_ms - ended_ms > LISTED_MS)
		return 0;
	arena_init(&arena, DOCUMENT_MAX);
	int r = see_view(call, seq, &arena, &view);
	if (r == 0 && list->told++ > 0)
		buf_put_byte(call->body, ',');
	if (r == 0)
		r = put_session(call->body, &view, false);
	arena_done(&arena);
	return r == -ENOENT ? 0 : r; /* retention was faster, or it is not for the caller's eyes */
}

/* In slices, oldest first. */
void session_list_read(struct api_call *call)
{
	if (!call->detail && !query_read(call, NULL, 0))
		return;
	struct session_list *list = call_detail(call, sizeof *list);
	if (!list)
		return;
	if (!list->call)
		call_slices_begin(call, "[");
	list->call = call;
	int r = store_page_sessions(call->store, &list->at, SLICE_SESSIONS, list_session, list);
	call_slice(call, r, list->at != 0, "]");
}

void session_read(struct api_call *call)
{
	struct view view;

	if (query_read(call, NULL, 0) && find_view(call, &view))
		reply(call, 200, &view);
}

/* What its agent was told first, as its worker said it; null before that. */
void session_prompt_read(struct api_call *call)
{
	struct json_object object;
	struct span prompt;
	struct view view;

	if (!query_read(call, NULL, 0) || !find_view(call, &view))
		return;
	int r = store_read_prompt(call->store, view.task.task.seq, call->arena, &prompt);
	if (call_has_failed(call, r))
		return;
	json_begin(&object, call->body);
	json_member_string(&object, "id", view.session.label);
	json_member_string(&object, "taskId", view.task.id);
	json_member_int(&object, "attempt", view.task.task.attempt);
	json_member_string_or_null(&object, "prompt", prompt);
	call_reply(call, 200, json_end(&object));
}

/* Its log is its task's. */
void session_log_read(struct api_call *call)
{
	struct view view;

	if (!find_view(call, &view))
		return;
	call->params[0] = view.task.id;
	log_read(call);
}

/* ---- stopping ---------------------------------------------------------------------------------------- */

/* Whether its task is its own is known to the store alone, so it is read first. */
void session_stop_begin(struct api_call *call)
{
	if (form_read_body(call, NULL, 0, NULL))
		call->step = API_READ;
}

void session_stop_read(struct api_call *call)
{
	struct view view;

	if (!query_read(call, NULL, 0) || !find_view(call, &view))
		return;
	if (is_completed(&view.task.task) || has_failed(&view.task.task)) {
		reply(call, 200, &view); /* nothing of it runs */
		return;
	}
	struct command *command = call_command(call, view.session.own ? COMMAND_CANCEL : COMMAND_STOP);
	if (!command)
		return;
	command->task = view.task.id;
	command->note = SPAN("\"reason\":\"its session was stopped\"");
	if (!view.session.own)
		command->data = SPAN(
			"{\"code\":\"STOPPED\",\"message\":\"its session was stopped\",\"class\":\"policy\"}");
}

/* Under a worker with heartbeats the stop is only accepted (202). A session that has ended by then stays as it is. */
void session_stop_finish(struct api_call *call, const struct result *results)
{
	if (results[0].refusal != REFUSED_NOTHING && results[0].refusal != REFUSED_ALREADY_TERMINAL)
		call_refuse_result(call, &results[0]);
	else
		reply_with(call, results[0].task.claim.stopping ? 202 : 200, &results[0]);
}
