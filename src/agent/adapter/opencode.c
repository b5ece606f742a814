/*
 * opencode: `opencode run --format json`, the prompt on standard input. It has no last line: it went well if its last step
 * stopped by itself and its status is 0.
 */
#include <string.h>

#include "agent/session/session.h"

enum { STEP_OPEN, STEP_STOPPED };

static void put_argv(struct adapter_words *words, const struct adapter_start *start)
{
	words_add_all(words, start->program);
	words_add(words, "run");
	words_add_pair(words, "--format", "json");
	if (start->resumes)
		words_add_pair(words, "-s", start->session);
	words_add_pair(words, "-m", start->model);
}

static void hear_finish(struct agent_session *session, yyjson_val *part)
{
	yyjson_val *tokens = yyjson_obj_get(part, "tokens"), *cache = yyjson_obj_get(tokens, "cache");
	double usd = 0;
	bool priced = json_number(yyjson_obj_get(part, "cost"), &usd);
	struct session_usage used = {.input_tokens = json_int(tokens, "input"),
		.output_tokens = json_int(tokens, "output"),
		.cache_read_tokens = json_int(cache, "read"),
		.cache_write_tokens = json_int(cache, "write"),
		.usd = usd,
		.usd_known = priced,
		.tokens_known = tokens != NULL};

	session_used(session, json_text(yyjson_obj_get(part, "id")), &used);
	session_turned(session);
	session->step = yyjson_equals_str(yyjson_obj_get(part, "reason"), "stop") ? STEP_STOPPED : STEP_OPEN;
}

static void hear_tool(struct agent_session *session, yyjson_val *part)
{
	yyjson_val *state = yyjson_obj_get(part, "state"), *status = yyjson_obj_get(state, "status");
	struct span id = json_text(yyjson_obj_get(part, "callID"));

	session_tool_began(
		session, id, json_text(yyjson_obj_get(part, "tool")), yyjson_obj_get(state, "input"));
	if (yyjson_equals_str(status, "completed") || yyjson_equals_str(status, "error"))
		session_tool_ended(session, id, yyjson_equals_str(status, "error") ? TOOL_FAILED : TOOL_GOOD);
}

static void hear_error(struct agent_session *session, yyjson_val *error)
{
	yyjson_val *data = yyjson_obj_get(error, "data");
	struct span message = json_text(yyjson_obj_get(data, "message"));
	const char *code = session_code_of(json_int(data, "statusCode"), message);

	session_ended_badly(session, code ? code : "EXECUTION_ERROR",
		message.len > 0 ? message : json_text(yyjson_obj_get(error, "name")));
}

static void hear(struct agent_session *session, yyjson_val *line)
{
	yyjson_val *type = yyjson_obj_get(line, "type"), *part = yyjson_obj_get(line, "part");

	session_began(session, json_text(yyjson_obj_get(line, "sessionID")), SPAN(""), SPAN(""));
	if (yyjson_equals_str(type, "text"))
		session_said(session, json_text(yyjson_obj_get(part, "text")));
	else if (yyjson_equals_str(type, "tool_use"))
		hear_tool(session, part);
	else if (yyjson_equals_str(type, "step_finish"))
		hear_finish(session, part);
	else if (yyjson_equals_str(type, "error"))
		hear_error(session, yyjson_obj_get(line, "error"));
	else if (!yyjson_equals_str(type, "step_start"))
		session->odd_lines++;
}

static void ended(struct agent_session *session, int status)
{
	if (status == 0 && session->final == FINAL_NONE && session->step == STEP_STOPPED)
		session_ended_well(session, SPAN(""));
}

static const char *const env[] = {"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", NULL};
static const char *const hosts[] = {"api.anthropic.com", "api.openai.com", "opencode.ai", NULL};
static const char *const keys[] = {"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", NULL};

const struct adapter adapter_opencode = {
	.name = "opencode",
	.program = "opencode",
	.tried_from = "1.18.33",
	.tried_to = "1.18.33",
	.talk = TALK_ONCE,
	.output = OUTPUT_LINES,
	.resumes = true,
	.counts_usd = true,
	.counts_tokens = true,
	.counts_tools = true,
	.env = env,
	.hosts = hosts,
	.login = {.variables = keys,
		.variable = "ANTHROPIC_API_KEY",
		.command = "an API key of your provider"},
	.by_hand = "opencode --session %s",
	.put_argv = put_argv,
	.hear = hear,
	.ended = ended,
};
