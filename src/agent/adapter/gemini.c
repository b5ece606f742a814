/* Gemini CLI: `gemini -o stream-json`, the prompt on standard input. In this mode it asks for no permission. */
#include <string.h>

#include "agent/session/session.h"

static void put_argv(struct adapter_words *words, const struct adapter_start *start)
{
	words_add_all(words, start->program);
	words_add_pair(words, "-o", "stream-json");
	words_add_pair(words, start->resumes ? "-r" : "--session-id", start->session);
	words_add_pair(words, "-m", start->model);
	if (start->walled)
		words_add_pair(words, "--approval-mode", "yolo");
}

static void hear_message(struct agent_session *session, yyjson_val *line)
{
	yyjson_val *role = yyjson_obj_get(line, "role");

	if (yyjson_equals_str(role, "assistant") || yyjson_equals_str(role, "model"))
		session_said(session, json_text(yyjson_obj_get(line, "content")));
}

static void hear_result(struct agent_session *session, yyjson_val *line)
{
	yyjson_val *stats = yyjson_obj_get(line, "stats"), *error = yyjson_obj_get(line, "error");
	struct span message = json_text(yyjson_obj_get(error, "message"));
	struct session_usage used = {.input_tokens = json_int(stats, "input_tokens"),
		.output_tokens = json_int(stats, "output_tokens"),
		.cache_read_tokens = json_int(stats, "cached"),
		.tokens_known = stats != NULL};

	session_used_more(session, &used);
	session_turned(session);
	if (yyjson_equals_str(yyjson_obj_get(line, "status"), "success")) {
		session_ended_well(session, SPAN(""));
		return;
	}
	const char *code = session_code_of(json_int(error, "code"), message);
	session_ended_badly(session, code ? code : "EXECUTION_ERROR",
		message.len > 0 ? message : SPAN("it ended with an error and does not say which"));
}

static void hear(struct agent_session *session, yyjson_val *line)
{
	yyjson_val *type = yyjson_obj_get(line, "type");

	if (yyjson_equals_str(type, "init"))
		session_began(session, json_text(yyjson_obj_get(line, "session_id")),
			json_text(yyjson_obj_get(line, "model")), SPAN(""));
	else if (yyjson_equals_str(type, "message"))
		hear_message(session, line);
	else if (yyjson_equals_str(type, "tool_use"))
		session_tool_began(session, json_text(yyjson_obj_get(line, "tool_id")),
			json_text(yyjson_obj_get(line, "tool_name")), yyjson_obj_get(line, "parameters"));
	else if (yyjson_equals_str(type, "tool_result"))
		session_tool_ended(session, json_text(yyjson_obj_get(line, "tool_id")),
			yyjson_equals_str(yyjson_obj_get(line, "status"), "success") ? TOOL_GOOD
										     : TOOL_FAILED);
	else if (yyjson_equals_str(type, "error"))
		session_retried(session, json_text(yyjson_obj_get(line, "message")));
	else if (yyjson_equals_str(type, "result"))
		hear_result(session, line);
	else
		session->odd_lines++;
}

static const char *const env[] = {"GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_CLI_HOME=~/", NULL};
static const char *const gateway[] = {"GOOGLE_GEMINI_BASE_URL", NULL};
static const char *const hosts[] = {"generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com", NULL};
static const char *const keys[] = {"GEMINI_API_KEY", "GOOGLE_API_KEY", NULL};

const struct adapter adapter_gemini = {
	.name = "gemini",
	.program = "gemini",
	.tried_from = "0.61.0",
	.tried_to = "0.61.0",
	.talk = TALK_ONCE,
	.output = OUTPUT_LINES,
	.takes_id = true,
	.resumes = true,
	.counts_tokens = true,
	.input_has_cache = true,
	.counts_tools = true,
	.env = env,
	.hosts = hosts,
	.gateway = gateway,
	.login = {.variables = keys,
		.variable = "GEMINI_API_KEY",
		.command = "an API key of aistudio.google.com"},
	.settings_file = ".gemini/settings.json",
	.settings =
		"{\"security\":{\"auth\":{\"selectedType\":\"gemini-api-key\"}},\"general\":{\"disableAutoUpdate\":true,\"maxAttempts\":3}}\n",
	.by_hand = "gemini --resume %s",
	.put_argv = put_argv,
	.hear = hear,
};
