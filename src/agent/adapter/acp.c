/*
 * Any agent that speaks the Agent Client Protocol, version 1: JSON-RPC, a message a line.
 *
 *	we: initialize ──▶ session/new or session/load ──▶ session/prompt ──▶ its answer is the last word
 *	it: session/update (words, tool calls), session/request_permission (answered by us)
 *
 * Files and terminals of the client are not offered: the agent uses its own, in its own tree.
 */
#include <stdio.h>
#include <string.h>

#include "agent/session/session.h"
#include "base/take.h"

enum { STEP_HELLO, STEP_SESSION, STEP_PROMPT };
enum { INPUT_BYTES_MAX = 256 << 10 };

static void put_argv(struct adapter_words *words, const struct adapter_start *start)
{
	words_add_all(words, start->program);
}

/* {"jsonrpc":"2.0","id":N,"method":"…","params":{ : the caller writes the members and closes both. */
static void begin_request(struct agent_session *session, struct json_object *outer,
	struct json_object *params, const char *method)
{
	json_begin(outer, &session->reply);
	json_member_word(outer, "jsonrpc", "2.0");
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
	json_member_int(&params, "protocolVersion", 1);
	json_member_raw(&params, "clientCapabilities",
		SPAN("{\"fs\":{\"readTextFile\":false,\"writeTextFile\":false},\"terminal\":false}"));
	end_request(session, &outer, &params);
}

static void open_session(struct agent_session *session)
{
	struct json_object outer, params;

	session->step = STEP_SESSION;
	begin_request(session, &outer, &params, session->resumes ? "session/load" : "session/new");
	if (session->resumes)
		json_member_string(&params, "sessionId", span_of(session->id));
	json_member_string(&params, "cwd", span_of(session->cwd ? session->cwd : "/"));
	json_member_raw(&params, "mcpServers", SPAN("[]"));
	end_request(session, &outer, &params);
}

static void put_prompt(struct agent_session *session, struct span text)
{
	struct json_object outer, params;

	session->step = STEP_PROMPT;
	buf_clear(&session->words); /* its last words are those of its last turn */
	begin_request(session, &outer, &params, "session/prompt");
	json_member_string(&params, "sessionId", span_of(session->id));
	json_put_key(&params, "prompt");
	buf_put_span(&session->reply, SPAN("[{\"type\":\"text\",\"text\":"));
	json_put_string(&session->reply, text);
	buf_put_span(&session->reply, SPAN("}]"));
	end_request(session, &outer, &params);
}

/* The option of that kind; else one whose kind begins so. */
static struct span option_of(yyjson_val *options, const char *kind)
{
	size_t i, count;
	yyjson_val *option;
	struct span found = {0};

	yyjson_arr_foreach(options, i, count, option)
	{
		struct span has = json_text(yyjson_obj_get(option, "kind"));
		if (span_is(has, kind))
			return json_text(yyjson_obj_get(option, "optionId"));
		if (has.len >= 5 && strncmp(has.data, kind, 5) == 0 && found.len == 0)
			found = json_text(yyjson_obj_get(option, "optionId"));
	}
	return found;
}

/* Words of a denial have no place in the protocol: they go with the next turn. */
static void answer(struct agent_session *session, bool allow, struct span words)
{
	const struct session_question *question = &session->questions[0];
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(buf_span(&question->extra), &complaint);
	struct span option = option_of(yyjson_doc_get_root(doc), allow ? "allow_once" : "reject_once");
	struct buf *out = &session->reply;

	(void)words;
	buf_printf(out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"outcome\":", question->id);
	if (option.len > 0) {
		buf_put_span(out, SPAN("{\"outcome\":\"selected\",\"optionId\":"));
		json_put_string(out, option);
		buf_put_span(out, SPAN("}}}\n"));
	} else {
		buf_put_span(out, SPAN("{\"outcome\":\"cancelled\"}}}\n"));
	}
}

/* What a call is about to do, as the policy and a person are to see it. Some agents say it in rawInput, others in the title alone: the
 * command that runs, or the file that changes. */
static yyjson_doc *input_of(yyjson_val *call)
{
	yyjson_val *raw = yyjson_obj_get(call, "rawInput"), *content = yyjson_obj_get(call, "content");
	yyjson_val *place = yyjson_arr_get_first(yyjson_obj_get(call, "locations"));
	struct span title = json_text(yyjson_obj_get(call, "title")),
		    path = json_text(yyjson_obj_get(yyjson_arr_get_first(content), "path"));
	bool runs = yyjson_equals_str(yyjson_obj_get(call, "kind"), "execute");
	cleanup(buf_done) struct buf text = {0};
	struct json_complaint complaint;
	struct json_object object;

	buf_init(&text, INPUT_BYTES_MAX);
	if (yyjson_obj_size(raw) > 0 &&
		(!runs || yyjson_obj_get(raw, "command") || yyjson_obj_get(raw, "cmd"))) {
		json_put_value(&text, raw);
	} else {
		if (path.len == 0)
			path = json_text(yyjson_obj_get(place, "path"));
		json_begin(&object, &text);
		json_member_string(&object, runs ? "command" : "path", runs || path.len == 0 ? title : path);
		json_member_string_if_any(&object, "title", title);
		if (content && json_put_key(&object, "content"))
			json_put_value(&text, content);
		json_end(&object);
	}
	return buf_fault(&text) < 0 ? NULL : json_read(buf_span(&text), &complaint);
}

/* A call may be told of for the first time when it has ended already. */
static void hear_call(struct agent_session *session, yyjson_val *update, bool begins)
{
	yyjson_val *status = yyjson_obj_get(update, "status");
	struct span id = json_text(yyjson_obj_get(update, "toolCallId")),
		    name = json_text(yyjson_obj_get(update, "kind"));
	bool good = yyjson_equals_str(status, "completed"), bad = yyjson_equals_str(status, "failed");

	if (begins || ((good || bad) && name.len > 0)) {
		cleanup(yyjson_doc_free_at) yyjson_doc *input = input_of(update);
		if (session->log.len > 0 && session->log.data[session->log.len - 1] != '\n')
			buf_put_byte(&session->log, '\n');
		buf_clear(&session->words);
		session_tool_began(
			session, id, name.len > 0 ? name : SPAN("tool"), yyjson_doc_get_root(input));
	}
	if (good || bad)
		session_tool_ended(session, id, good ? TOOL_GOOD : TOOL_FAILED);
}

/* Money of the whole session so far: what an earlier process has spent is not this one's. */
static void hear_cost(struct agent_session *session, yyjson_val *cost)
{
	double usd = yyjson_get_num(yyjson_obj_get(cost, "amount"));
	struct session_usage used = {.usd_known = true, .usd = usd};

	if (!yyjson_is_num(yyjson_obj_get(cost, "amount")) ||
		!yyjson_equals_str(yyjson_obj_get(cost, "currency"), "USD"))
		return;
	if (session->resumes && usd >= session->usd_before)
		used.usd -= session->usd_before;
	session->agent_usd = usd;
	session_used(session, SPAN("cost"), &used);
}

static void hear_update(struct agent_session *session, yyjson_val *update)
{
	yyjson_val *kind = yyjson_obj_get(update, "sessionUpdate");

	if (yyjson_equals_str(kind, "agent_message_chunk")) {
		struct span text = json_text(yyjson_obj_get(yyjson_obj_get(update, "content"), "text"));
		session_put(session, &session->words, text);
		session_put(session, &session->log, text);
	} else if (yyjson_equals_str(kind, "tool_call") || yyjson_equals_str(kind, "tool_call_update")) {
		hear_call(session, update, yyjson_equals_str(kind, "tool_call"));
	} else if (yyjson_equals_str(kind, "usage_update")) {
		hear_cost(session, yyjson_obj_get(update, "cost"));
	}
}

static void hear_permission(struct agent_session *session, struct span id, yyjson_val *params)
{
	yyjson_val *call = yyjson_obj_get(params, "toolCall");
	struct span kind = json_text(yyjson_obj_get(call, "kind"));
	cleanup(yyjson_doc_free_at) yyjson_doc *input = input_of(call);

	session_asked(session, id, kind.len > 0 ? kind : SPAN("tool"),
		yyjson_doc_get_root(input) ? yyjson_doc_get_root(input) : call,
		yyjson_obj_get(params, "options"));
}

static void hear_request(struct agent_session *session, yyjson_val *line, yyjson_val *method)
{
	yyjson_val *params = yyjson_obj_get(line, "params"), *id = yyjson_obj_get(line, "id");
	char number[ADAPTER_ID_BYTES];

	if (yyjson_equals_str(method, "session/update")) {
		hear_update(session, yyjson_obj_get(params, "update"));
		return;
	}
	if (!id)
		return; /* news that we do not know */
	if (yyjson_is_str(id))
		snprintf(number, sizeof number, "\"%.100s\"", yyjson_get_str(id));
	else
		snprintf(number, sizeof number, "%lld", (long long)yyjson_get_sint(id));
	if (yyjson_is_str(id) && strpbrk(yyjson_get_str(id), "\"\\\n\r\t"))
		return; /* an id that cannot be repeated as it stands */
	if (yyjson_equals_str(method, "session/request_permission"))
		hear_permission(session, span_of(number), params);
	else
		buf_printf(&session->reply,
			"{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32601,\"message\":\"not offered\"}}\n",
			number);
}

static void hear_prompted(struct agent_session *session, yyjson_val *result)
{
	yyjson_val *usage = yyjson_obj_get(result, "usage"), *reason = yyjson_obj_get(result, "stopReason");
	yyjson_val *count =
		yyjson_obj_get(yyjson_obj_get(yyjson_obj_get(result, "_meta"), "quota"), "token_count");
	struct session_usage of_turn = {.input_tokens = json_int(count, "input_tokens"),
		.output_tokens = json_int(count, "output_tokens"),
		.tokens_known = count != NULL};
	struct session_usage used = {.input_tokens = json_int(usage, "inputTokens"),
		.output_tokens = json_int(usage, "outputTokens"),
		.cache_read_tokens = json_int(usage, "cachedReadTokens"),
		.cache_write_tokens = json_int(usage, "cachedWriteTokens"),
		.tokens_known = usage != NULL};

	session_used_more(session, usage ? &used : &of_turn);
	session_turned(session);
	buf_put_byte(&session->log, '\n');
	if (yyjson_equals_str(reason, "end_turn"))
		session_ended_well(session, SPAN(""));
	else if (yyjson_equals_str(reason, "refusal"))
		session_ended_badly(session, "REFUSED", SPAN("the model declined"));
	else if (yyjson_equals_str(reason, "max_turn_requests") || yyjson_equals_str(reason, "max_tokens"))
		session_ended_badly(session, "BUDGET_EXCEEDED", json_text(reason));
	else
		session_ended_badly(
			session, "EXECUTION_ERROR", SPAN("it ended its turn in a way that is not known"));
}

static void hear_answer(struct agent_session *session, yyjson_val *line)
{
	yyjson_val *result = yyjson_obj_get(line, "result"), *error = yyjson_obj_get(line, "error");

	if (error) {
		struct span message = json_text(yyjson_obj_get(error, "message"));
		int64_t number = json_int(error,
			"code"); /* -32000: it wants a login; some say the status of the model's service */
		bool is_status = number >= 400 && number < 600;
		const char *code = session_code_of(number == -32000 ? 401 : is_status ? number : 0, message);
		session_ended_badly(session, code ? code : "EXECUTION_ERROR", message);
		return;
	}
	if (session->step == STEP_HELLO) {
		open_session(session);
	} else if (session->step == STEP_SESSION) {
		session_began(session, json_text(yyjson_obj_get(result, "sessionId")), SPAN(""), SPAN(""));
		put_prompt(session, session->prompt);
	} else {
		hear_prompted(session, result);
	}
}

static void hear(struct agent_session *session, yyjson_val *line)
{
	yyjson_val *method = yyjson_obj_get(line, "method"), *id = yyjson_obj_get(line, "id");

	if (yyjson_is_str(method))
		hear_request(session, line, method);
	else if (yyjson_is_uint(id) && yyjson_get_uint(id) == session->request && session->request > 0)
		hear_answer(session, line);
	else
		session->odd_lines++;
}

const struct adapter adapter_acp = {
	.name = "acp",
	.talk = TALK_STREAM,
	.output = OUTPUT_LINES,
	.resumes = true,
	.asks = true,
	.counts_tokens = true,
	.counts_tools = true,
	.put_argv = put_argv,
	.begin = begin,
	.go_on = put_prompt,
	.answer = answer,
	.hear = hear,
};
