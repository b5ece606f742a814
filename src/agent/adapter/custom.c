/*
 * An agent of the operator's own: any program that reads a prompt on standard input. Lines of JSON with these types are
 * understood; every other line goes to the log. A program that writes no such line is judged by its status, and the end of its
 * output is its last word.
 *
 *	{"type":"session","id":"…","model":"…"}
 *	{"type":"text","text":"…"}
 *	{"type":"tool","id":"1","name":"Bash","input":{…}}        {"type":"tool_end","id":"1","ok":true}
 *	{"type":"usage","message":"m1","inputTokens":1,"outputTokens":2,"usd":0.01}
 *	{"type":"result","ok":true,"text":"…"}                    {"type":"result","ok":false,"code":"QUOTA","text":"…","retryAt":1770000000000}
 */
#include <string.h>

#include "agent/session/session.h"

/* {session} and {model} in a word of its argv stand for those values; a word that needs one that is not there is left out. */
static void put_argv(struct adapter_words *words, const struct adapter_start *start)
{
	for (size_t i = 0; start->program[i]; i++) {
		const char *word = start->program[i];
		if (strcmp(word, "{session}") == 0)
			words_add(words, start->session);
		else if (strcmp(word, "{model}") == 0)
			words_add(words, start->model);
		else if (strcmp(word, "{prompt-file}") == 0)
			words_add(words, start->prompt_file);
		else
			words_add(words, word);
	}
}

static const char *known_code(struct span code)
{
	static const char *const codes[] = {
		"AUTH", "QUOTA", "UPSTREAM", "REFUSED", "BUDGET_EXCEEDED", "NOT_ALLOWED"};

	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (span_is(code, codes[i]))
			return codes[i];
	return "EXECUTION_ERROR";
}

static void hear_usage(struct agent_session *session, yyjson_val *line)
{
	struct span message = json_text(yyjson_obj_get(line, "message"));
	double usd = 0;
	bool priced = json_number(yyjson_obj_get(line, "usd"), &usd);
	struct session_usage used = {.input_tokens = json_int(line, "inputTokens"),
		.output_tokens = json_int(line, "outputTokens"),
		.cache_read_tokens = json_int(line, "cacheReadTokens"),
		.cache_write_tokens = json_int(line, "cacheWriteTokens"),
		.usd = usd,
		.usd_known = priced,
		.tokens_known = yyjson_obj_get(line, "outputTokens") != NULL};

	if (message.len > 0)
		session_used(session, message, &used);
	else
		session_used_more(session, &used);
}

static void hear_result(struct agent_session *session, yyjson_val *line)
{
	struct span text = json_text(yyjson_obj_get(line, "text"));
	int64_t retry_at_ms = json_int(line, "retryAt");

	session_turned(session);
	if (!yyjson_is_false(yyjson_obj_get(line, "ok"))) {
		session_ended_well(session, text);
		return;
	}
	if (retry_at_ms > 0)
		session_limited(session, retry_at_ms);
	session_ended_badly(session, known_code(json_text(yyjson_obj_get(line, "code"))),
		text.len > 0 ? text : SPAN("it failed and does not say why"));
}

static void hear(struct agent_session *session, yyjson_val *line)
{
	yyjson_val *type = yyjson_obj_get(line, "type");
	struct span id = json_text(yyjson_obj_get(line, "id"));

	if (yyjson_equals_str(type, "session"))
		session_began(session, id, json_text(yyjson_obj_get(line, "model")),
			json_text(yyjson_obj_get(line, "version")));
	else if (yyjson_equals_str(type, "text"))
		session_said(session, json_text(yyjson_obj_get(line, "text")));
	else if (yyjson_equals_str(type, "tool"))
		session_tool_began(
			session, id, json_text(yyjson_obj_get(line, "name")), yyjson_obj_get(line, "input"));
	else if (yyjson_equals_str(type, "tool_end"))
		session_tool_ended(
			session, id, yyjson_is_false(yyjson_obj_get(line, "ok")) ? TOOL_FAILED : TOOL_GOOD);
	else if (yyjson_equals_str(type, "usage"))
		hear_usage(session, line);
	else if (yyjson_equals_str(type, "result"))
		hear_result(session, line);
	else
		session->odd_lines++;
}

/* Without a result of its own its status is the result. */
static void ended(struct agent_session *session, int status)
{
	if (session->final == FINAL_NONE && status == 0)
		session_ended_well(session, SPAN(""));
}

const struct adapter adapter_custom = {
	.name = "custom",
	.talk = TALK_ONCE,
	.output = OUTPUT_LINES,
	.takes_id = true,
	.resumes = true,
	.counts_usd = true,
	.counts_tokens = true,
	.counts_tools = true,
	.put_argv = put_argv,
	.hear = hear,
	.ended = ended,
};
