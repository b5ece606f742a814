/*
 * The table of tools, the schemas of their arguments, and the requests that they become.
 *
 * Schemas are made from the same rows that place the arguments, so the two cannot differ. A row says where an argument goes; its
 * value is judged by the route. No tool passes a gate or answers a question: an agent must not approve its own work. No tool
 * beats: the supervisor does that.
 */
#include "api/mcp/tools.h"

#include <errno.h>

#include "base/take.h"

enum param_place {
	IN_PATH, /* the id of the task; a worker's own by default */
	IN_QUERY,
	IN_BODY,
	IN_ERROR, /* a member of "error" */
	AS_KEY,   /* Idempotency-Key */
};

struct param {
	const char *name, *type, *text; /* type NULL: any value; "strings": a list of them */
	enum param_place place;
	bool required;
	const char *member; /* of the request; NULL: its own name */
};

enum { PARAMS_MAX = 10 };

enum profile { WORKER = 1, OPERATOR = 2, BOTH = 3 };

struct tool {
	const char *name, *title, *text;
	enum profile profile;
	enum http_method method;
	const char *before, *after; /* of the id in the path; `after` NULL: no id */
	uint32_t scopes;            /* those of the route */
	bool reads, destroys, repeats, asks;
	struct param params[PARAMS_MAX];
};

#define PARAM(name_, type_, text_, place_, ...) \
	{.name = (name_), .type = (type_), .text = (text_), .place = (place_), ##__VA_ARGS__}
#define TASKS     "/api/tasks/"
#define OF(scope) SCOPE_BIT(SCOPE_##scope)

#define ANY_TASK PARAM("id", "string", "the id of the task; in a task: its own by default", IN_PATH)
#define TASK_ID  PARAM("id", "string", "the id of the task", IN_PATH, .required = true)
#define REPORT \
	.profile = WORKER, .method = HTTP_METHOD_POST, .before = TASKS, .scopes = OF(CLAIM), .repeats = true
#define MESSAGE(text) PARAM("message", "string", text, IN_ERROR, .required = true)

static const struct tool tools[] = {
	{
		.name = "get_task",
		.title = "Get a task",
		.text = "A task with its state, instructions, progress, question, answer and result.",
		.profile = BOTH,
		.method = HTTP_METHOD_GET,
		.before = TASKS,
		.after = "",
		.scopes = OF(READ) | OF(WORK) | OF(CLAIM),
		.reads = true,
		.params = {ANY_TASK},
	},
	{
		.name = "why_task",
		.title = "Why a task is where it is",
		.text = "One sentence that says why a task is in its state, and the command that moves it.",
		.profile = BOTH,
		.method = HTTP_METHOD_GET,
		.before = TASKS,
		.after = "/why",
		.scopes = OF(READ) | OF(WORK) | OF(CLAIM),
		.reads = true,
		.params = {ANY_TASK},
	},
	{
		.name = "read_log",
		.title = "Read the log of a task",
		.text = "A piece of what the attempts of a task have written.",
		.profile = BOTH,
		.method = HTTP_METHOD_GET,
		.before = TASKS,
		.after = "/log",
		.scopes = OF(READ) | OF(WORK) | OF(CLAIM),
		.reads = true,
		.params = {ANY_TASK,
			PARAM("attempt", "integer", "the number of the attempt; the last one by default",
				IN_QUERY),
			PARAM("after", "integer", "the position in bytes to begin at", IN_QUERY),
			PARAM("limit", "integer", "bytes, at most 262144", IN_QUERY)},
	},
	{
		.name = "list_tasks",
		.title = "List tasks",
		.text = "Tasks of the queues that the token may see.",
		.profile = OPERATOR,
		.method = HTTP_METHOD_GET,
		.before = "/api/tasks",
		.scopes = OF(READ) | OF(WORK),
		.reads = true,
		.params =
			{PARAM("state", "string",
				 "only these states, with commas between: ready, claimed, asking, blocked, done …",
				 IN_QUERY),
				PARAM("queue", "string", "only this queue", IN_QUERY),
				PARAM("q", "string",
					"only tasks with this text in title, description or instructions",
					IN_QUERY),
				PARAM("label", "string", "only tasks with this label", IN_QUERY),
				PARAM("group", "string", "only members of this group", IN_QUERY),
				PARAM("limit", "integer", "at most so many tasks", IN_QUERY),
				PARAM("after", "string", "the cursor of the next page", IN_QUERY)},
	},
	{
		.name = "enqueue",
		.title = "Create a task",
		.text = "Creates a task; in a task: a subtask, with no more rights than its own. With idempotency_key the same request "
			"makes one task, however often it is sent.",
		.profile = BOTH,
		.method = HTTP_METHOD_POST,
		.before = "/api/tasks",
		.scopes = OF(PRODUCE) | OF(CLAIM),
		.params = {PARAM("title", "string", "what it is, in one line", IN_BODY, .required = true),
			PARAM("instructions", "string", "what is to be done", IN_BODY),
			PARAM("queue", "string",
				"the queue; default if none is named, of a subtask that of its task",
				IN_BODY),
			PARAM("priority", NULL, "a number, or low, normal, high, urgent", IN_BODY),
			PARAM("depends_on", "strings", "ids of tasks that must be done first", IN_BODY,
				.member = "blockedBy"),
			PARAM("executor", "string",
				"what runs it; that of the queue by default, of a subtask that of its task",
				IN_BODY),
			PARAM("payload", NULL, "data for the executor", IN_BODY),
			PARAM("labels", "strings", "labels to find it by", IN_BODY),
			PARAM("idempotency_key", "string", "a key of your own for this request", AS_KEY)},
	},
	{
		.name = "progress",
		.title = "Report progress",
		.text = "Says how far the task is and renews its lease. The reply may carry commands for you: cancel, park, quiet, terminate.",
		REPORT,
		.after = "/progress",
		.params = {PARAM("note", "string", "what is being done", IN_BODY, .required = true),
			PARAM("percent", "number", "0 to 100", IN_BODY),
			PARAM("phase", "string", "the name of a stage, for workflows", IN_BODY,
				.member = "event"),
			PARAM("metadata", NULL, "a checkpoint: the next attempt gets the last one", IN_BODY,
				.member = "data")},
	},
	{
		.name = "done",
		.title = "The task is done",
		.text = "The work is finished. A task with gates is reported with review instead.",
		REPORT,
		.after = "/complete",
		.params = {PARAM("result", NULL, "a text or any JSON value", IN_BODY, .required = true)},
	},
	{
		.name = "review",
		.title = "The task is done, others decide",
		.text = "The work is finished, and somebody else must say that it is right.",
		REPORT,
		.after = "/review",
		.params = {PARAM("result", NULL, "a text or any JSON value", IN_BODY, .required = true),
			PARAM("evidence", NULL, "what shows that it is right", IN_BODY)},
	},
	{
		.name = "fail",
		.title = "The attempt failed",
		.text = "This attempt failed. Whether there is another one depends on the code and on how many are left.",
		REPORT,
		.after = "/fail",
		.params = {MESSAGE("what went wrong"),
			PARAM("code", "string", "such as EXECUTION_ERROR, CHECK_FAILED, TASK_TIMEOUT, QUOTA",
				IN_ERROR),
			PARAM("retryable", "boolean", "false: another attempt would fail the same way",
				IN_ERROR, .member = "retry"),
			PARAM("details", NULL, "more about it, such as next steps", IN_ERROR)},
	},
	{
		.name = "block",
		.title = "A person must act first",
		.text = "The task needs a person to change something before it can go on.",
		REPORT,
		.after = "/block",
		.params = {MESSAGE("why, and what is needed"),
			PARAM("code", "string", "such as BAD_WORKDIR, BUDGET_EXCEEDED", IN_ERROR),
			PARAM("details", NULL, "more about it", IN_ERROR)},
	},
	{
		.name = "release",
		.title = "Give the task back",
		.text = "Gives the task back unfinished: no attempt is spent, and another worker may take it.",
		REPORT,
		.after = "/release",
		.params = {PARAM("reason", "string", "why", IN_BODY, .required = true),
			PARAM("delay_ms", "integer", "no worker gets it before that", IN_BODY,
				.member = "delayMs")},
	},
	{
		.name = "ask_approval",
		.title = "Ask a person",
		.text = "Asks a person. If the answer is not known yet the status is pending: end your turn then. The answer starts the next "
			"attempt, and the same question is answered at once there.",
		REPORT,
		.after = "/ask",
		.asks = true,
		.params = {PARAM("question", "string", "the question", IN_BODY, .required = true),
			PARAM("options", "strings", "answers to choose from", IN_BODY),
			PARAM("free_text", "boolean", "with options: another answer is fine, too", IN_BODY,
				.member = "freeText")},
	},
	{
		.name = "cancel_task",
		.title = "Cancel a task",
		.text = "Cancels a task and stops the attempt that runs.",
		.profile = OPERATOR,
		.method = HTTP_METHOD_POST,
		.before = TASKS,
		.after = "/cancel",
		.scopes = OF(OPERATE),
		.destroys = true,
		.repeats = true,
		.params = {TASK_ID, PARAM("reason", "string", "why", IN_BODY)},
	},
	{
		.name = "retry_task",
		.title = "Retry a task",
		.text = "Starts a task again that failed, was cancelled or is blocked.",
		.profile = OPERATOR,
		.method = HTTP_METHOD_POST,
		.before = TASKS,
		.after = "/retry",
		.scopes = OF(OPERATE),
		.params = {TASK_ID, PARAM("reason", "string", "why", IN_BODY)},
	},
};

enum { TOOL_COUNT = sizeof tools / sizeof *tools };

bool tool_is_offered(const struct tool *tool, const struct principal *who)
{
	enum profile profile = who->task.len > 0 ? WORKER : OPERATOR;

	return (tool->profile & profile) != 0 && (who->scopes & (tool->scopes | OF(ADMIN))) != 0;
}

const struct tool *tool_find(struct span name, const struct principal *who)
{
	for (size_t i = 0; i < TOOL_COUNT; i++) {
		if (span_equal(name, span_of(tools[i].name)) && tool_is_offered(&tools[i], who))
			return &tools[i];
	}
	return NULL;
}

/* ---- schemas ---------------------------------------------------------------------------------------- */

static void put_param(struct json_object *properties, const struct param *param)
{
	struct json_object schema;
	bool is_list = param->type && strcmp(param->type, "strings") == 0;

	if (!json_put_key(properties, param->name))
		return;
	json_begin(&schema, properties->buf);
	if (param->type)
		json_member_word(&schema, "type", is_list ? "array" : param->type);
	if (is_list)
		json_member_raw(&schema, "items", SPAN("{\"type\":\"string\"}"));
	json_member_cstr(&schema, "description", param->text);
	json_end(&schema);
}

static void put_schema(struct buf *out, const struct tool *tool)
{
	struct json_object schema, properties;
	struct json_names required;

	json_begin(&schema, out);
	json_member_word(&schema, "type", "object");
	json_put_key(&schema, "properties");
	json_begin(&properties, out);
	for (const struct param *param = tool->params; param->name; param++)
		put_param(&properties, param);
	json_end(&properties);
	json_names_begin(&required, &schema, "required");
	for (const struct param *param = tool->params; param->name; param++) {
		if (param->required)
			json_names_put(&required, span_of(param->name));
	}
	json_names_end(&required, 0);
	json_member_bool(&schema, "additionalProperties", false);
	json_end(&schema);
}

static void put_tool(struct buf *out, const struct tool *tool)
{
	struct json_object object, hints;

	json_begin(&object, out);
	json_member_cstr(&object, "name", tool->name);
	json_member_cstr(&object, "title", tool->title);
	json_member_cstr(&object, "description", tool->text);
	json_put_key(&object, "inputSchema");
	put_schema(out, tool);
	json_put_key(&object, "annotations");
	json_begin(&hints, out);
	json_member_bool(&hints, "readOnlyHint", tool->reads);
	json_member_bool(&hints, "destructiveHint", tool->destroys);
	json_member_bool(&hints, "idempotentHint", tool->reads || tool->repeats);
	json_member_bool(&hints, "openWorldHint", false);
	json_end(&hints);
	json_end(&object);
}

void tools_put(struct buf *out, const struct principal *who)
{
	bool any = false;

	buf_put_byte(out, '[');
	for (size_t i = 0; i < TOOL_COUNT; i++) {
		if (!tool_is_offered(&tools[i], who))
			continue;
		json_put_comma(out, &any);
		put_tool(out, &tools[i]);
	}
	buf_put_byte(out, ']');
}

/* ---- requests ---------------------------------------------------------------------------------------- */

static const struct param *param_of(const struct tool *tool, struct span name)
{
	for (const struct param *param = tool->params; param->name; param++) {
		if (span_equal(name, span_of(param->name)))
			return param;
	}
	return NULL;
}

static int check_names(const struct tool *tool, yyjson_val *arguments, struct buf *complaint)
{
	size_t at, count;
	yyjson_val *key, *value;

	yyjson_obj_foreach(arguments, at, count, key, value)
	{
		if (!param_of(tool, json_text(key))) {
			buf_printf(complaint, "%s has no argument \"%.*s\"; tools/list has the schema.",
				tool->name, SPAN_ARGS(json_text(key)));
			return -EINVAL;
		}
	}
	for (const struct param *param = tool->params; param->name; param++) {
		if (param->required && !yyjson_obj_get(arguments, param->name)) {
			buf_printf(complaint, "%s needs the argument \"%s\": %s.", tool->name, param->name,
				param->text);
			return -EINVAL;
		}
	}
	return 0;
}

/* Members of the body, or of the error in it. */
static void put_members(
	struct json_object *object, const struct tool *tool, yyjson_val *arguments, enum param_place place)
{
	for (const struct param *param = tool->params; param->name; param++) {
		yyjson_val *value = param->place == place ? yyjson_obj_get(arguments, param->name) : NULL;
		if (value && json_put_key(object, param->member ? param->member : param->name))
			json_put_value(object->buf, value);
	}
}

static void put_body(struct buf *out, const struct tool *tool, yyjson_val *arguments)
{
	struct json_object body, error;

	json_begin(&body, out);
	put_members(&body, tool, arguments, IN_BODY);
	if (tool->params[0].place == IN_ERROR && json_put_key(&body, "error")) {
		json_begin(&error, out);
		put_members(&error, tool, arguments, IN_ERROR);
		json_end(&error);
	}
	json_end(&body);
}

static int put_query(struct buf *out, const struct tool *tool, yyjson_val *arguments, struct buf *complaint)
{
	for (const struct param *param = tool->params; param->name; param++) {
		yyjson_val *value = param->place == IN_QUERY ? yyjson_obj_get(arguments, param->name) : NULL;
		cleanup(buf_done) struct buf number = {.max = 64};
		if (!value)
			continue;
		if (!yyjson_is_str(value) && !yyjson_is_int(value)) {
			buf_printf(complaint, "\"%s\" must be a text or a whole number.", param->name);
			return -EINVAL;
		}
		if (yyjson_is_int(value))
			json_put_value(&number, value);
		buf_printf(out, "%s%s=", out->len > 0 ? "&" : "", param->name);
		http_encode(yyjson_is_int(value) ? buf_span(&number) : json_text(value), out);
	}
	return 0;
}

/* An id that is given is used, and the route refuses a task that is not the caller's. */
static int put_path(struct buf *out, const struct tool *tool, const struct api_call *call,
	yyjson_val *arguments, struct buf *complaint)
{
	yyjson_val *given = yyjson_obj_get(arguments, "id");
	struct span id = given ? json_text(given) : call->who.task;

	if (!tool->after)
		return buf_put_span(out, span_of(tool->before));
	if (id.len == 0) {
		buf_printf(complaint, "%s needs the argument \"id\": the id of a task.", tool->name);
		return -EINVAL;
	}
	return http_put_path(out, tool->before, id, tool->after);
}

int tool_request(const struct tool *tool, const struct api_call *call, yyjson_val *arguments,
	struct http_request *ret_request, struct buf *complaint)
{
	cleanup(buf_done) struct buf path = {.max = 16 << 10}, query = {.max = 64 << 10},
				     body = {.max = 2 * API_TEXT_MAX};
	struct http_request request = {.method = tool->method,
		.request_id = call->request->request_id,
		.keep_alive = call->request->keep_alive};
	yyjson_val *key = yyjson_obj_get(arguments, "idempotency_key");
	int r = check_names(tool, arguments, complaint);

	if (r == 0)
		r = put_path(&path, tool, call, arguments, complaint);
	if (r == 0)
		r = put_query(&query, tool, arguments, complaint);
	if (r < 0)
		return r;
	if (key && !yyjson_is_str(key)) {
		buf_printf(complaint, "\"idempotency_key\" must be a text.");
		return -EINVAL;
	}
	request.idempotency_key = json_text(key);
	if (tool->method != HTTP_METHOD_GET) {
		put_body(&body, tool, arguments);
		request.content_type = SPAN("application/json");
	}
	r = buf_keep(&path, call->arena, &request.path);
	if (r == 0)
		r = buf_keep(&query, call->arena, &request.query);
	if (r == 0)
		r = buf_keep(&body, call->arena, &request.body);
	if (r == 0)
		*ret_request = request;
	return r;
}

bool tool_is_pending(const struct tool *tool, yyjson_val *reply)
{
	return tool->asks && span_equal(json_text(yyjson_obj_get(reply, "state")), SPAN("asking"));
}
