/*
 * OpenClaw: `openclaw agent exec --isolated --json` runs in our own tree and prints one answer at its end. A session of its
 * gateway runs in a daemon, out of our reach: it is not offered.
 */
#include <string.h>

#include "agent/session/session.h"

static void put_argv(struct adapter_words *words, const struct adapter_start *start)
{
	words_add_all(words, start->program);
	words_add(words, "agent");
	words_add(words, "exec");
	words_add_pair(words, "--message-file", start->prompt_file);
	words_add(words, "--isolated");
	words_add_pair(words, "--model", start->model);
	words_add(words, "--json");
}

static void hear(struct agent_session *session, yyjson_val *answer)
{
	yyjson_val *usage = yyjson_obj_get(answer, "usage"), *error = yyjson_obj_get(answer, "error");
	struct span words = json_text(yyjson_obj_get(answer, "final"));
	struct span why = json_text(yyjson_is_obj(error) ? yyjson_obj_get(error, "message") : error);
	double usd = 0;
	bool priced = json_number(yyjson_obj_get(answer, "costUsd"), &usd);
	struct session_usage used = {.input_tokens = json_int(usage, "input"),
		.output_tokens = json_int(usage, "output"),
		.cache_read_tokens = json_int(usage, "cacheRead"),
		.cache_write_tokens = json_int(usage, "cacheWrite"),
		.usd = usd,
		.usd_known = priced,
		.tokens_known = usage != NULL};

	if (!yyjson_is_bool(yyjson_obj_get(answer, "ok"))) {
		session->odd_lines++;
		return;
	}
	session_began(session, json_text(yyjson_obj_get(answer, "sessionId")),
		json_text(yyjson_obj_get(answer, "model")), SPAN(""));
	session_used_more(session, &used);
	session_turned(session);
	session_said(session, words);
	if (yyjson_is_true(yyjson_obj_get(answer, "ok"))) {
		session_ended_well(session, words);
		return;
	}
	const char *code = session_code_of(0, why);
	bool late = yyjson_equals_str(yyjson_obj_get(answer, "status"), "timeout");
	session_ended_badly(session,
		code           ? code
			: late ? "TASK_TIMEOUT"
			       : "EXECUTION_ERROR",
		why.len > 0    ? why
			: late ? SPAN("its own time was up")
			       : SPAN("it failed and does not say why"));
}

static const char *const env[] = {"OPENCLAW_HOME=~/.openclaw", NULL};
static const char *const hosts[] = {"api.anthropic.com", "api.openai.com", NULL};
static const char *const keys[] = {"ANTHROPIC_API_KEY", "OPENAI_API_KEY", NULL};

const struct adapter adapter_openclaw = {
	.name = "openclaw",
	.program = "openclaw",
	.tried_from = "2026.9.6",
	.tried_to = "2026.9.6",
	.talk = TALK_ONCE,
	.output = OUTPUT_WHOLE,
	.counts_usd = true,
	.counts_tokens = true,
	.env = env,
	.hosts = hosts,
	.login = {.variables = keys,
		.variable = "ANTHROPIC_API_KEY",
		.command = "an API key of your provider"},
	.put_argv = put_argv,
	.hear = hear,
};
