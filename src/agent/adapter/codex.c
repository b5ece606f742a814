/*
 * Codex: `codex exec --json`, the prompt on standard input. It says its thread id in the first line and has no permission
 * prompts in this mode. Its token counts are those of the whole thread.
 */
#include <string.h>

#include "agent/session/session.h"

static void put_argv(struct adapter_words *words, const struct adapter_start *start)
{
	words_add_all(words, start->program);
	words_add(words, "exec");
	if (start->resumes) {
		words_add(words, "resume");
		words_add(words, start->session);
	}
	words_add(words, "--json");
	words_add(words, "--skip-git-repo-check");
	if (start->walled)
		words_add(words, "--dangerously-bypass-approvals-and-sandbox");
	words_add_pair(words, "-m", start->model);
	words_add(words, "-");
}

static enum tool_end end_of(yyjson_val *item)
{
	yyjson_val *status = yyjson_obj_get(item, "status"), *code = yyjson_obj_get(item, "exit_code");

	if (yyjson_equals_str(status, "declined"))
		return TOOL_DENIED;
	return yyjson_equals_str(status, "failed") || (yyjson_is_int(code) && yyjson_get_sint(code) != 0)
		? TOOL_FAILED
		: TOOL_GOOD;
}

static void hear_item(struct agent_session *session, yyjson_val *item, bool begins)
{
	yyjson_val *type = yyjson_obj_get(item, "type");
	struct span id = json_text(yyjson_obj_get(item, "id"));

	if (yyjson_equals_str(type, "agent_message")) {
		if (!begins)
			session_said(session, json_text(yyjson_obj_get(item, "text")));
	} else if (yyjson_equals_str(type, "error")) { /* a warning: the turn goes on */
		session_note(session, json_text(yyjson_obj_get(item, "message")));
	} else if (yyjson_equals_str(type, "command_execution") || yyjson_equals_str(type, "file_change") ||
		yyjson_equals_str(type, "mcp_tool_call") || yyjson_equals_str(type, "web_search")) {
		session_tool_began(session, id, json_text(type), item);
		if (!begins)
			session_tool_ended(session, id, end_of(item));
	}
}

/* The thread's counts so far: what an earlier process used is taken off by the caller, who knows it. */
static void hear_usage(struct agent_session *session, yyjson_val *usage)
{
	struct session_usage used = {.input_tokens = json_int(usage, "input_tokens"),
		.output_tokens = json_int(usage, "output_tokens"),
		.cache_read_tokens = json_int(usage, "cached_input_tokens"),
		.tokens_known = true};

	session_used(session, SPAN("thread"), &used);
}

static void fail(struct agent_session *session, struct span message)
{
	const char *code = session_code_of(0, message);

	if (code && strcmp(code, "QUOTA") == 0)
		session_limited(session, 0); /* it says a time of day without a date: that is no time */
	session_ended_badly(session, code ? code : "EXECUTION_ERROR",
		message.len > 0 ? message : SPAN("the turn failed, and it does not say why"));
}

static void hear(struct agent_session *session, yyjson_val *line)
{
	yyjson_val *type = yyjson_obj_get(line, "type");

	if (yyjson_equals_str(type, "thread.started"))
		session_began(session, json_text(yyjson_obj_get(line, "thread_id")), SPAN(""), SPAN(""));
	else if (yyjson_equals_str(type, "item.started"))
		hear_item(session, yyjson_obj_get(line, "item"), true);
	else if (yyjson_equals_str(type, "item.completed"))
		hear_item(session, yyjson_obj_get(line, "item"), false);
	else if (yyjson_equals_str(type, "error"))
		session_retried(session, json_text(yyjson_obj_get(line, "message")));
	else if (yyjson_equals_str(type, "turn.completed")) {
		hear_usage(session, yyjson_obj_get(line, "usage"));
		session_turned(session);
		session_ended_well(session, SPAN(""));
	} else if (yyjson_equals_str(type, "turn.failed"))
		fail(session, json_text(yyjson_obj_get(yyjson_obj_get(line, "error"), "message")));
	else if (!yyjson_equals_str(type, "turn.started") && !yyjson_equals_str(type, "item.updated"))
		session->odd_lines++;
}

static const char *const env[] = {"CODEX_HOME=~/.codex", NULL};
static const char *const gateway[] = {"OPENAI_BASE_URL", NULL};
static const char *const hosts[] = {"api.openai.com", "chatgpt.com", NULL};
static const char *const keys[] = {"CODEX_API_KEY", "OPENAI_API_KEY", NULL};

const struct adapter adapter_codex = {
	.name = "codex",
	.program = "codex",
	.tried_from = "0.166.0",
	.tried_to = "0.166.0",
	.talk = TALK_ONCE,
	.output = OUTPUT_LINES,
	.resumes = true,
	.asking = &adapter_codex_asking,
	.counts_tokens = true,
	.counts_thread = true,
	.input_has_cache = true,
	.counts_tools = true,
	.transcript = ".codex/sessions/*/*/*/rollout-*-%s.jsonl",
	.env = env,
	.hosts = hosts,
	.gateway = gateway,
	.login = {.variables = keys,
		.variable = "CODEX_API_KEY",
		.command = "an API key of platform.openai.com"},
	.settings_file = ".codex/config.toml",
	.settings = "check_for_update_on_startup = false\n",
	.by_hand = "codex resume %s",
	.put_argv = put_argv,
	.hear = hear,
};
