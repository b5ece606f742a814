/*
 * Codex as a server on its standard streams: `codex app-server`, a JSON message a line. In this mode it asks for permission, hears a
 * person in the middle of its work, and says when an account may be used again. `codex exec` (codex.c) can do none of it.
 *
 *	we: initialize, initialized ──▶ thread/start or thread/resume ──▶ turn/start … turn/start
 *	it: item/started, item/completed, thread/tokenUsage/updated, turn/completed (its last word)
 *	    item/commandExecution/requestApproval, item/fileChange/requestApproval (answered by us)
 *
 * Its own rules ask for all that is not known to be harmless ("untrusted"); ours decide what reaches a person.
 */
#include <stdio.h>
#include <string.h>

#include "agent/session/session.h"
#include "base/take.h"

enum { STEP_HELLO, STEP_THREAD, STEP_TURN };
enum { INPUT_BYTES_MAX = 200 << 10 };

static void put_argv(struct adapter_words *words, const struct adapter_start *start)
{
	words_add_all(words, start->program);
	words_add(words, "app-server");
	if (start->model)
		words_add_pair(words, "-c", arena_text(words->arena, "model=\"%s\"", start->model));
	words_add_pair(words, "-c",
		start->walled ? "sandbox_mode=\"danger-full-access\"" : "sandbox_mode=\"workspace-write\"");
}

/* ---- what we say --------------------------------------------------------------------------------------------- */

/* {"id":N,"method":"…","params":{ : the caller writes the members and closes both. */
static void begin_request(struct agent_session *session, struct json_object *outer,
	struct json_object *params, const char *method)
{
	json_begin(outer, &session->reply);
	json_member_int(outer, "id", (int64_t)++session->request);
	json_member_word(outer, "method", method);
	json_put_key(outer, "params");
	json_begin(params, &session->reply);
}

static void end_request(struct agent_session *session, struct json_object *outer, struct json_object *params)
{
	json_end(params);
	json_end(outer);
	buf_put_byte(&session->reply, '\n');
}

static void begin(struct agent_session *session)
{
	struct json_object outer, params;

	session->step = STEP_HELLO;
	begin_request(session, &outer, &params, "initialize");
	json_member_raw(
		&params, "clientInfo", SPAN("{\"name\":\"stint\",\"title\":\"stint\",\"version\":\"1\"}"));
	end_request(session, &outer, &params);
}

static void open_thread(struct agent_session *session)
{
	struct json_object outer, params;

	buf_put_span(&session->reply, SPAN("{\"method\":\"initialized\"}\n"));
	session->step = STEP_THREAD;
	begin_request(session, &outer, &params, session->resumes ? "thread/resume" : "thread/start");
	if (session->resumes)
		json_member_string(&params, "threadId", span_of(session->id));
	json_member_word(
		&params, "approvalPolicy", "untrusted"); /* a configuration may not say so any more */
	if (session->cwd)
		json_member_string(&params, "cwd", span_of(session->cwd));
	end_request(session, &outer, &params);
}

static void put_prompt(struct agent_session *session, struct span text)
{
	struct json_object outer, params;

	session->step = STEP_TURN;
	begin_request(session, &outer, &params, "turn/start");
	json_member_string(&params, "threadId", span_of(session->id));
	json_put_key(&params, "input");
	buf_put_span(&session->reply, SPAN("[{\"type\":\"text\",\"text\":"));
	json_put_string(&session->reply, text);
	buf_put_span(&session->reply, SPAN("}]"));
	end_request(session, &outer, &params);
}

/* Words of a denial have no place in the protocol. */
static void answer(struct agent_session *session, bool allow, struct span words)
{
	(void)words;
	buf_printf(&session->reply, "{\"id\":%s,\"result\":{\"decision\":\"%s\"}}\n",
		session->questions[0].id, allow ? "accept" : "decline");
}

/* ---- what it is about to do ------------------------------------------------------------------------------------ */

/* /bin/bash -lc 'git push': what the shell is given. A command that is not of this form stays as it is. */
static void put_command(struct buf *out, struct span command)
{
	static const char *const shells[] = {"/bin/bash -lc ", "bash -lc ", "/bin/sh -lc ", "/bin/sh -c ",
		"sh -c ", "/bin/bash -c ", "bash -c ", "/bin/zsh -lc ", "zsh -lc "};
	struct span rest = {0};

	for (size_t i = 0; i < sizeof shells / sizeof *shells && rest.len == 0; i++) {
		size_t len = strlen(shells[i]);
		if (command.len > len && memcmp(command.data, shells[i], len) == 0)
			rest = (struct span){command.data + len, command.len - len};
	}
	bool quoted = rest.len >= 2 && rest.data[0] == '\'' && rest.data[rest.len - 1] == '\'';
	bool plain = rest.len > 0 && !memchr(rest.data, ' ', rest.len) && !memchr(rest.data, '"', rest.len) &&
		!memchr(rest.data, '\'', rest.len);
	if (!quoted) {
		buf_put_span(out, plain ? rest : command);
		return;
	}
	/* 'it'\''s', or 'it'"'"'s' */
	for (size_t at = 1; at < rest.len - 1;) {
		struct span left = {rest.data + at, rest.len - 1 - at};
		size_t skip = left.len >= 4 && memcmp(left.data, "'\\''", 4) == 0 ? 4
			: left.len >= 5 && memcmp(left.data, "'\"'\"'", 5) == 0   ? 5
										  : 0;
		buf_put_byte(out, skip ? '\'' : left.data[0]);
		at += skip ? skip : 1;
	}
}

static const char *name_of(yyjson_val *type)
{
	static const struct {
		const char *type, *name;
	} names[] = {{"commandExecution", "command_execution"}, {"fileChange", "file_change"},
		{"mcpToolCall", "mcp_tool_call"}, {"webSearch", "web_search"}};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (yyjson_equals_str(type, names[i].type))
			return names[i].name;
	return NULL;
}

/* {"command":…} or {"path":…,"changes":…}: what is asked for, and what the policy is matched with. */
static void put_input(struct buf *out, yyjson_val *item)
{
	yyjson_val *changes = yyjson_obj_get(item, "changes");
	cleanup(buf_done) struct buf command = {0};
	struct json_object object;

	buf_init(&command, INPUT_BYTES_MAX);
	json_begin(&object, out);
	if (yyjson_is_str(yyjson_obj_get(item, "command"))) {
		put_command(&command, json_text(yyjson_obj_get(item, "command")));
		json_member_string(&object, "command", buf_span(&command));
	}
	if (changes) {
		json_member_string_if_any(
			&object, "path", json_text(yyjson_obj_get(yyjson_arr_get_first(changes), "path")));
		if (json_put_key(&object, "changes"))
			json_put_value(object.buf, changes);
	}
	json_end(&object);
}

static yyjson_doc *read_input(yyjson_val *item)
{
	cleanup(buf_done) struct buf text = {0};
	struct json_complaint complaint;

	buf_init(&text, 2 * INPUT_BYTES_MAX);
	put_input(&text, item);
	return buf_fault(&text) < 0 ? NULL : json_read(buf_span(&text), &complaint);
}

/* ---- what it says ---------------------------------------------------------------------------------------------- */

static enum tool_end end_of(yyjson_val *item)
{
	yyjson_val *status = yyjson_obj_get(item, "status"), *code = yyjson_obj_get(item, "exitCode");

	if (yyjson_equals_str(status, "declined"))
		return TOOL_DENIED;
	return yyjson_equals_str(status, "failed") || (yyjson_is_int(code) && yyjson_get_sint(code) != 0)
		? TOOL_FAILED
		: TOOL_GOOD;
}

static void hear_item(struct agent_session *session, yyjson_val *item, bool begins)
{
	yyjson_val *type = yyjson_obj_get(item, "type");
	const char *name = name_of(type);
	struct span id = json_text(yyjson_obj_get(item, "id"));

	if (yyjson_equals_str(type, "agentMessage") && !begins)
		session_said(session, json_text(yyjson_obj_get(item, "text")));
	if (!name)
		return;
	cleanup(yyjson_doc_free_at) yyjson_doc *input = read_input(item);
	session_tool_began(session, id, span_of(name), yyjson_doc_get_root(input));
	if (!begins)
		session_tool_ended(session, id, end_of(item));
	else if (yyjson_equals_str(type, "fileChange")) { /* who asks for it names its id alone */
		buf_clear(&session->aside);
		json_put_value(&session->aside, item);
	}
}

/* A change of files is asked for by its id: what it is was said before. */
static void hear_approval(struct agent_session *session, yyjson_val *line, bool of_files)
{
	yyjson_val *params = yyjson_obj_get(line, "params");
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *said =
		of_files && session->aside.len > 0 ? json_read(buf_span(&session->aside), &complaint) : NULL;
	yyjson_val *item = yyjson_doc_get_root(said);
	bool known = item &&
		span_equal(
			json_text(yyjson_obj_get(item, "id")), json_text(yyjson_obj_get(params, "itemId")));
	cleanup(yyjson_doc_free_at) yyjson_doc *input = read_input(known ? item : params);
	char number[32];

	snprintf(number, sizeof number, "%lld", (long long)yyjson_get_sint(yyjson_obj_get(line, "id")));
	session_asked(session, span_of(number), of_files ? SPAN("file_change") : SPAN("command_execution"),
		yyjson_doc_get_root(input) ? yyjson_doc_get_root(input) : params, NULL);
}

/* The counts of the whole thread: what an earlier process used is taken off by the caller, who knows it. */
static void hear_usage(struct agent_session *session, yyjson_val *total)
{
	struct session_usage used = {.input_tokens = json_int(total, "inputTokens"),
		.output_tokens = json_int(total, "outputTokens"),
		.cache_read_tokens = json_int(total, "cachedInputTokens"),
		.cache_write_tokens = json_int(total, "cacheWriteInputTokens"),
		.tokens_known = true};

	if (session->step == STEP_TURN) /* before, it repeats what is known */
		session_used(session, SPAN("thread"), &used);
}

/* The end of the window that is used up: it says seconds. */
static void hear_limits(struct agent_session *session, yyjson_val *limits)
{
	static const char *const windows[] = {"primary", "secondary"};

	for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
		yyjson_val *window = yyjson_obj_get(limits, windows[i]);
		if (yyjson_get_num(yyjson_obj_get(window, "usedPercent")) >= 100 &&
			json_int(window, "resetsAt") > 0)
			session_limited(session, json_int(window, "resetsAt") * 1000);
	}
}

static void fail(struct agent_session *session, yyjson_val *error)
{
	struct span message = json_text(yyjson_obj_get(error, "message"));
	yyjson_val *info = yyjson_obj_get(error, "codexErrorInfo");
	bool limit = yyjson_equals_str(info, "usageLimitExceeded");
	const char *code = limit                              ? "QUOTA"
		: yyjson_equals_str(info, "unauthorized")     ? "AUTH"
		: yyjson_equals_str(info, "serverOverloaded") ? "UPSTREAM"
							      : session_code_of(0, message);

	if (code && strcmp(code, "QUOTA") == 0 && !session->limited)
		session_limited(session, 0);
	session_ended_badly(session, code ? code : "EXECUTION_ERROR",
		message.len > 0 ? message : SPAN("the turn failed, and it does not say why"));
}

static void hear_turn_end(struct agent_session *session, yyjson_val *turn)
{
	yyjson_val *status = yyjson_obj_get(turn, "status");

	if (yyjson_equals_str(status, "completed")) {
		session_turned(session);
		session_ended_well(session, SPAN(""));
	} else {
		fail(session, yyjson_obj_get(turn, "error"));
	}
}

static void hear_news(struct agent_session *session, yyjson_val *method, yyjson_val *params)
{
	if (yyjson_equals_str(method, "item/started"))
		hear_item(session, yyjson_obj_get(params, "item"), true);
	else if (yyjson_equals_str(method, "item/completed"))
		hear_item(session, yyjson_obj_get(params, "item"), false);
	else if (yyjson_equals_str(method, "thread/tokenUsage/updated"))
		hear_usage(session, yyjson_obj_get(yyjson_obj_get(params, "tokenUsage"), "total"));
	else if (yyjson_equals_str(method, "account/rateLimits/updated"))
		hear_limits(session, yyjson_obj_get(params, "rateLimits"));
	else if (yyjson_equals_str(method, "error") && yyjson_is_true(yyjson_obj_get(params, "willRetry")))
		session_retried(
			session, json_text(yyjson_obj_get(yyjson_obj_get(params, "error"), "message")));
	else if (yyjson_equals_str(method, "turn/completed"))
		hear_turn_end(session, yyjson_obj_get(params, "turn"));
}

static void hear_request(struct agent_session *session, yyjson_val *line, yyjson_val *method, yyjson_val *id)
{
	bool of_files = yyjson_equals_str(method, "item/fileChange/requestApproval");

	if (!yyjson_is_int(id))
		session->odd_lines++; /* one that cannot be answered as it stands */
	else if (of_files || yyjson_equals_str(method, "item/commandExecution/requestApproval"))
		hear_approval(session, line, of_files);
	else
		buf_printf(&session->reply,
			"{\"id\":%lld,\"error\":{\"code\":-32601,\"message\":\"not offered\"}}\n",
			(long long)yyjson_get_sint(id));
}

static void hear_answer(struct agent_session *session, yyjson_val *line)
{
	yyjson_val *result = yyjson_obj_get(line, "result"), *error = yyjson_obj_get(line, "error");
	yyjson_val *thread = yyjson_obj_get(result, "thread");

	if (error) {
		fail(session, error);
	} else if (session->step == STEP_HELLO) {
		open_thread(session);
	} else if (session->step == STEP_THREAD) {
		session_began(session, json_text(yyjson_obj_get(thread, "id")),
			json_text(yyjson_obj_get(thread, "model")),
			json_text(yyjson_obj_get(thread, "cliVersion")));
		put_prompt(session, session->prompt);
	}
}

static void hear(struct agent_session *session, yyjson_val *line)
{
	yyjson_val *method = yyjson_obj_get(line, "method"), *id = yyjson_obj_get(line, "id");

	if (yyjson_is_str(method) && id)
		hear_request(session, line, method, id);
	else if (yyjson_is_str(method))
		hear_news(session, method, yyjson_obj_get(line, "params"));
	else if (yyjson_is_uint(id) && yyjson_get_uint(id) == session->request && session->request > 0)
		hear_answer(session, line);
	else
		session->odd_lines++;
}

/* Its program, home and login are those of adapter_codex. */
static const char *const env[] = {"CODEX_HOME=~/.codex", NULL};
static const char *const gateway[] = {"OPENAI_BASE_URL", NULL};
static const char *const hosts[] = {"api.openai.com", "chatgpt.com", NULL};
static const char *const keys[] = {"CODEX_API_KEY", "OPENAI_API_KEY", NULL};

const struct adapter adapter_codex_asking = {
	.name = "codex",
	.program = "codex",
	.tried_from = "0.166.0",
	.tried_to = "0.166.0",
	.talk = TALK_STREAM,
	.output = OUTPUT_LINES,
	.resumes = true,
	.asks = true,
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
	.begin = begin,
	.go_on = put_prompt,
	.answer = answer,
	.hear = hear,
};
