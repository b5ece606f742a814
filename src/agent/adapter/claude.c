/*
 * Claude Code: `claude -p` with stream-json both ways. Permission prompts come as control requests on its standard output and
 * are answered on its standard input. Hooks, and servers that a repository names, are off: with them a repository could answer
 * in our place. Its tools that outlive a turn or leave the tree are off, too.
 */
#include <string.h>

#include "agent/session/session.h"

/*
 * Rules that outrank those which a repository, or the agent itself, writes into settings that are read besides ours: what must be
 * asked is asked although another file allows it, and nothing switches asking off.
 */
#define SETTINGS                                                                                              \
	"{\"disableAllHooks\":true,\"cleanupPeriodDays\":99999,\"permissions\":{\"defaultMode\":\"default\"," \
	"\"disableBypassPermissionsMode\":\"disable\","                                                       \
	"\"ask\":[\"Bash\",\"Edit\",\"Write\",\"NotebookEdit\",\"WebFetch\",\"WebSearch\"]}}\n"

/* Of 2.1.197 and 2.1.325 alike: what works after its turn, in another tree or in another session. */
#define TOOLS_OFF \
	"CronCreate,CronDelete,CronList,ScheduleWakeup,EnterWorktree,ExitWorktree,SendMessage,RemoteTrigger"

static void put_argv(struct adapter_words *words, const struct adapter_start *start)
{
	words_add_all(words, start->program);
	words_add(words, "-p");
	words_add_pair(words, "--input-format", "stream-json");
	words_add_pair(words, "--output-format", "stream-json");
	words_add(words, "--verbose");
	words_add_pair(words, "--permission-prompt-tool", "stdio");
	words_add(words, "--strict-mcp-config");
	words_add_pair(words, "--settings", start->settings);
	words_add_pair(words, "--disallowedTools", TOOLS_OFF);
	words_add_pair(words, start->resumes ? "--resume" : "--session-id", start->session);
	words_add_pair(words, "--model", start->model);
	if (start->turns_max > 0)
		words_add_pair(
			words, "--max-turns", arena_text(words->arena, "%lld", (long long)start->turns_max));
	if (start->usd_max > 0)
		words_add_pair(words, "--max-budget-usd", arena_text(words->arena, "%g", start->usd_max));
}

static void put_user(struct agent_session *session, struct span text)
{
	struct buf *out = &session->reply;

	buf_put_span(out,
		SPAN("{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"));
	json_put_string(out, text);
	buf_put_span(out, SPAN("}]}}\n"));
}

static void begin(struct agent_session *session)
{
	put_user(session, session->prompt);
}

static void answer(struct agent_session *session, bool allow, struct span words)
{
	const struct session_question *question = &session->questions[0];
	struct json_object outer, response, inner;
	struct buf *out = &session->reply;

	json_begin(&outer, out);
	json_member_word(&outer, "type", "control_response");
	json_put_key(&outer, "response");
	json_begin(&response, out);
	json_member_word(&response, "subtype", "success");
	json_member_string(&response, "request_id", span_of(question->id));
	json_put_key(&response, "response");
	json_begin(&inner, out);
	json_member_word(&inner, "behavior", allow ? "allow" : "deny");
	if (allow)
		json_member_raw(&inner, "updatedInput",
			question->input.len > 0 ? buf_span(&question->input) : SPAN("{}"));
	else
		json_member_string(&inner, "message", words.len > 0 ? words : SPAN("denied"));
	json_end(&inner);
	json_end(&response);
	json_end(&outer);
	buf_put_byte(out, '\n');
}

static struct session_usage read_usage(yyjson_val *usage)
{
	return (struct session_usage){.input_tokens = json_int(usage, "input_tokens"),
		.output_tokens = json_int(usage, "output_tokens"),
		.cache_read_tokens = json_int(usage, "cache_read_input_tokens"),
		.cache_write_tokens = json_int(usage, "cache_creation_input_tokens"),
		.tokens_known = usage != NULL};
}

static void hear_assistant(struct agent_session *session, yyjson_val *line)
{
	yyjson_val *message = yyjson_obj_get(line, "message"), *content = yyjson_obj_get(message, "content"),
		   *part;
	yyjson_val *usage = yyjson_obj_get(message, "usage");
	size_t i, count;

	if (usage) {
		struct session_usage used = read_usage(usage);
		session_used(session, json_text(yyjson_obj_get(message, "id")), &used);
	}
	if (yyjson_equals_str(yyjson_obj_get(message, "stop_reason"), "refusal"))
		session->step = 1; /* the model declined */
	yyjson_arr_foreach(content, i, count, part)
	{
		yyjson_val *type = yyjson_obj_get(part, "type");
		if (yyjson_equals_str(type, "text"))
			session_said(session, json_text(yyjson_obj_get(part, "text")));
		else if (yyjson_equals_str(type, "tool_use"))
			session_tool_began(session, json_text(yyjson_obj_get(part, "id")),
				json_text(yyjson_obj_get(part, "name")), yyjson_obj_get(part, "input"));
	}
}

/* Was it denied by a rule of its own? What we have denied is known; a system that says "Permission denied" has denied nothing. */
static bool is_denied(yyjson_val *part)
{
	static const char *const begins[] = {"Permission to use ", "Claude requested permissions "};
	yyjson_val *content = yyjson_obj_get(part, "content");
	struct span text = yyjson_is_arr(content)
		? json_text(yyjson_obj_get(yyjson_arr_get_first(content), "text"))
		: json_text(content);

	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
		if (text.len > strlen(begins[i]) && memcmp(text.data, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

static void hear_user(struct agent_session *session, yyjson_val *line)
{
	yyjson_val *content = yyjson_obj_get(yyjson_obj_get(line, "message"), "content"), *part;
	size_t i, count;

	yyjson_arr_foreach(content, i, count, part)
	{
		if (!yyjson_equals_str(yyjson_obj_get(part, "type"), "tool_result"))
			continue;
		bool failed = yyjson_is_true(yyjson_obj_get(part, "is_error"));
		session_tool_ended(session, json_text(yyjson_obj_get(part, "tool_use_id")),
			!failed                   ? TOOL_GOOD
				: is_denied(part) ? TOOL_DENIED
						  : TOOL_FAILED);
	}
}

static void hear_system(struct agent_session *session, yyjson_val *line)
{
	yyjson_val *subtype = yyjson_obj_get(line, "subtype");

	if (yyjson_equals_str(subtype, "init"))
		session_began(session, json_text(yyjson_obj_get(line, "session_id")),
			json_text(yyjson_obj_get(line, "model")),
			json_text(yyjson_obj_get(line, "claude_code_version")));
	else if (yyjson_equals_str(subtype, "api_retry"))
		session_retried(session, json_text(yyjson_obj_get(line, "error")));
}

/* The first sentence of what went wrong: errors[], or the words of the result. */
static struct span complaint_of(yyjson_val *line)
{
	struct span first = json_text(yyjson_arr_get_first(yyjson_obj_get(line, "errors")));

	return first.len > 0 ? first : json_text(yyjson_obj_get(line, "result"));
}

/* The sum of what one model after the other has used. */
static int64_t model_tokens(yyjson_val *models)
{
	int64_t sum = 0;
	size_t i, count;
	yyjson_val *key, *value;

	yyjson_obj_foreach(models, i, count, key, value) sum += json_int(value, "outputTokens");
	return sum;
}

/* What this process has cost. Its total counts the whole session in newer versions and the process in older ones: then its
 * models' tokens are those of the process. */
static void hear_cost(struct agent_session *session, yyjson_val *line)
{
	yyjson_val *usage = yyjson_obj_get(line, "usage");
	double total = 0;

	if (usage) {
		struct session_usage own = read_usage(usage);
		if (own.output_tokens >
			session->usage.output_tokens) { /* a message was counted before its end */
			own.input_tokens = own.cache_read_tokens = own.cache_write_tokens = 0;
			own.output_tokens -= session->usage.output_tokens;
			session_used_more(session, &own);
		}
	}
	session->agent_output_tokens = model_tokens(yyjson_obj_get(line, "modelUsage"));
	if (!json_number(yyjson_obj_get(line, "total_cost_usd"), &total))
		return;
	session->agent_usd = total;
	bool whole_session = session->resumes && session->agent_output_tokens > session->usage.output_tokens;
	session->usage.usd =
		whole_session && total >= session->usd_before ? total - session->usd_before : total;
	session->usage.usd_known = true;
}

static const char *code_of(struct agent_session *session, yyjson_val *line, struct span why)
{
	yyjson_val *subtype = yyjson_obj_get(line, "subtype");
	const char *code;

	if (yyjson_equals_str(subtype, "error_max_turns") ||
		yyjson_equals_str(subtype, "error_max_budget_usd"))
		return "BUDGET_EXCEEDED";
	if (session->limited)
		return "QUOTA";
	code = session_code_of(json_int(line, "api_error_status"), why);
	return code ? code : session->step == 1 ? "REFUSED" : "EXECUTION_ERROR";
}

static void hear_result(struct agent_session *session, yyjson_val *line)
{
	yyjson_val *turns = yyjson_obj_get(line, "num_turns");
	struct span why = complaint_of(line);
	const char *subtype = yyjson_get_str(yyjson_obj_get(line, "subtype"));
	bool bad = yyjson_is_true(yyjson_obj_get(line, "is_error")) ||
		(subtype && strncmp(subtype, "error", 5) == 0);

	hear_cost(session, line);
	session->turns += yyjson_is_int(turns) ? (uint32_t)yyjson_get_uint(turns) : 1;
	if (bad)
		session_ended_badly(session, code_of(session, line, why),
			why.len > 0 ? why : span_of(subtype ? subtype : "the agent says that it failed"));
	else if (session->step == 1)
		session_ended_badly(session, "REFUSED", why.len > 0 ? why : SPAN("the model declined"));
	else
		session_ended_well(session, json_text(yyjson_obj_get(line, "result")));
}

static void hear_request(struct agent_session *session, yyjson_val *line)
{
	yyjson_val *request = yyjson_obj_get(line, "request");

	if (yyjson_equals_str(yyjson_obj_get(request, "subtype"), "can_use_tool"))
		session_asked(session, json_text(yyjson_obj_get(line, "request_id")),
			json_text(yyjson_obj_get(request, "tool_name")), yyjson_obj_get(request, "input"),
			NULL);
	else
		session->odd_lines++;
}

static void hear_limit(struct agent_session *session, yyjson_val *line)
{
	yyjson_val *info = yyjson_obj_get(line, "rate_limit_info");

	if (yyjson_equals_str(yyjson_obj_get(info, "status"), "rejected"))
		session_limited(session, json_int(info, "resetsAt") * 1000);
}

static void hear(struct agent_session *session, yyjson_val *line)
{
	static const struct {
		const char *type;
		void (*hear)(struct agent_session *session, yyjson_val *line);
	} rows[] = {
		{"system", hear_system},
		{"assistant", hear_assistant},
		{"user", hear_user},
		{"result", hear_result},
		{"control_request", hear_request},
		{"rate_limit_event", hear_limit},
	};
	yyjson_val *type = yyjson_obj_get(line, "type");

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (yyjson_equals_str(type, rows[i].type)) {
			rows[i].hear(session, line);
			return;
		}
	if (yyjson_equals_str(type, "control_cancel_request"))
		session_withdrew(session, json_text(yyjson_obj_get(line, "request_id")));
	else if (!yyjson_equals_str(type, "control_response") && !yyjson_equals_str(type, "stream_event"))
		session->odd_lines++;
}

static const char *const env[] = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
	"DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_MAX_RETRIES=4",
	"CLAUDE_CONFIG_DIR=~/.claude", NULL};
static const char *const gateway[] = {"ANTHROPIC_BASE_URL", NULL};
static const char *const hosts[] = {"api.anthropic.com", NULL};
static const char *const keys[] = {
	"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN", NULL};

const struct adapter adapter_claude = {
	.name = "claude",
	.program = "claude",
	.tried_from = "2.1.197",
	.tried_to = "2.1.325",
	.talk = TALK_STREAM,
	.output = OUTPUT_LINES,
	.takes_id = true,
	.resumes = true,
	.asks = true,
	.counts_usd = true,
	.counts_tokens = true,
	.counts_tools = true,
	.transcript = ".claude/projects/*/%s.jsonl",
	.env = env,
	.hosts = hosts,
	.gateway = gateway,
	.login = {.variables = keys,
		.file = ".claude/.credentials.json",
		.token = "claudeAiOauth.accessToken",
		.until = "claudeAiOauth.expiresAt",
		.variable = "CLAUDE_CODE_OAUTH_TOKEN",
		.command = "claude setup-token"},
	.settings_file = "stint-settings.json",
	.settings = SETTINGS,
	.by_hand = "claude --resume %s",
	.put_argv = put_argv,
	.begin = begin,
	.go_on = put_user,
	.answer = answer,
	.hear = hear,
};
