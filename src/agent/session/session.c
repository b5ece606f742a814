#include "agent/session/session.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/take.h"
#include "base/utf8.h"

enum {
	SECRET_BYTES_LEAST = 8,
	INPUT_BYTES_MAX = 256 << 10,
	SUBJECT_BYTES_MAX = 64 << 10,
	SHOWN_BYTES = 300, /* of what a tool does */
	TEXT_SHOWN_BYTES = 16 << 10,
	LINE_DEPTH_MAX = 64,
};

void session_init(struct agent_session *session, const struct adapter *adapter, const struct policy *policy)
{
	*session = (struct agent_session){.adapter = adapter, .policy = policy};
	buf_init(&session->words, SESSION_WORDS_BYTES_MAX);
	buf_init(&session->log, SESSION_LOG_BYTES_MAX);
	buf_init(&session->reply, SESSION_REPLY_BYTES_MAX);
	buf_init(&session->aside, INPUT_BYTES_MAX);
	for (size_t i = 0; i < SESSION_QUESTIONS; i++) {
		buf_init(&session->questions[i].subject, SUBJECT_BYTES_MAX);
		buf_init(&session->questions[i].input, INPUT_BYTES_MAX);
		buf_init(&session->questions[i].extra, INPUT_BYTES_MAX);
	}
}

void session_done(struct agent_session *session)
{
	buf_done(&session->words);
	buf_done(&session->log);
	buf_done(&session->reply);
	buf_done(&session->aside);
	for (size_t i = 0; i < SESSION_QUESTIONS; i++) {
		buf_done(&session->questions[i].subject);
		buf_done(&session->questions[i].input);
		buf_done(&session->questions[i].extra);
	}
}

/* ---- the log ------------------------------------------------------------------------------------------------ */

void session_hide(struct agent_session *session, const char *secret)
{
	if (secret && strlen(secret) >= SECRET_BYTES_LEAST && session->secret_count < SESSION_SECRETS)
		session->secrets[session->secret_count++] = secret;
}

/* Where the next secret begins, and its length; `text.len`: there is none. */
static size_t next_secret(const struct agent_session *session, struct span text, size_t *ret_len)
{
	size_t found = text.len;

	*ret_len = 0;
	for (uint32_t i = 0; i < session->secret_count; i++) {
		size_t len = strlen(session->secrets[i]);
		const char *at = memmem(text.data, text.len, session->secrets[i], len);
		if (at && (size_t)(at - text.data) < found) {
			found = (size_t)(at - text.data);
			*ret_len = len;
		}
	}
	return found;
}

void session_put(const struct agent_session *session, struct buf *out, struct span text)
{
	while (text.len > 0) {
		size_t len, at = next_secret(session, text, &len);
		buf_put(out, text.data, at);
		if (len > 0)
			buf_put_span(out, SPAN("***"));
		text.data += at + len;
		text.len -= at + len;
	}
}

/* "00:58  ▸ Edit src/a.c": the first line with its time since the start, further ones beneath its text. */
static void put_log(struct agent_session *session, const char *mark, struct span text)
{
	int64_t seconds = (session->now_ms - session->start_ms) / 1000;
	size_t before = session->log.len;
	bool first = true;

	text = utf8_cut(text, TEXT_SHOWN_BYTES);
	while (text.len > 0 && strchr(" \t\r\n", text.data[text.len - 1]))
		text.len--;
	while (text.len > 0 || first) {
		const char *newline = text.len > 0 ? memchr(text.data, '\n', text.len) : NULL;
		struct span line = {text.data, newline ? (size_t)(newline - text.data) : text.len};
		if (first)
			buf_printf(&session->log, "%02lld:%02lld  %s", (long long)(seconds / 60),
				(long long)(seconds % 60), mark);
		else
			buf_printf(&session->log, "       ");
		session_put(session, &session->log, line);
		buf_put_byte(&session->log, '\n');
		text.data += line.len + (newline != NULL);
		text.len -= line.len + (newline != NULL);
		first = false;
	}
	if (buf_fault(&session->log) < 0)
		buf_cut(&session->log, before); /* the log has a gap; the facts have none */
}

void session_note(struct agent_session *session, struct span line)
{
	put_log(session, "", line);
}

static const char *const subject_keys[] = {"command", "cmd", "file_path", "path", "notebook_path", "pattern",
	"url", "query", "description", "prompt", NULL};

void tool_subject(yyjson_val *input, struct buf *out)
{
	for (size_t i = 0; subject_keys[i]; i++) {
		yyjson_val *value = yyjson_obj_get(input, subject_keys[i]);
		if (yyjson_is_arr(value)) { /* an argv */
			size_t index, count;
			yyjson_val *word;
			yyjson_arr_foreach(value, index, count, word)
			{
				if (index > 0)
					buf_put_byte(out, ' ');
				buf_put_span(out, json_text(word));
			}
			return;
		}
		if (yyjson_get_len(value) > 0 && yyjson_is_str(value)) {
			buf_put_span(out, json_text(value));
			return;
		}
	}
	if (input && !yyjson_is_null(input) && yyjson_obj_size(input) > 0)
		json_put_value(out, input);
}

/* ---- facts -------------------------------------------------------------------------------------------------- */

static void copy_word(char *into, size_t room, struct span text)
{
	size_t len = text.len < room ? text.len : room - 1;

	if (text.len == 0)
		return;
	memmove(into, text.data, len);
	into[len] = 0;
}

void session_began(struct agent_session *session, struct span id, struct span model, struct span version)
{
	copy_word(session->id, sizeof session->id, id);
	copy_word(session->model, sizeof session->model, model);
	copy_word(session->version, sizeof session->version, version);
}

static bool is_blank(struct span text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!strchr(" \t\r\n", text.data[i]))
			return false;
	return true;
}

static void keep_words(struct agent_session *session, struct span text)
{
	buf_clear(&session->words);
	if (text.len > SESSION_WORDS_BYTES_MAX / 2) { /* their end says what came of it */
		text.data += text.len - SESSION_WORDS_BYTES_MAX / 2;
		text.len = SESSION_WORDS_BYTES_MAX / 2;
		while (text.len > 0 && ((unsigned char)text.data[0] & 0xc0) == 0x80)
			text.data++, text.len--;
	}
	session_put(session, &session->words, text);
}

/* Would its words read as a line about a tool, or one of ours? */
static bool is_marked(struct span text)
{
	static const char *const marks[] = {"▸", "✗", "✓", "stint:"};

	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		if (text.len >= strlen(marks[i]) && memcmp(text.data, marks[i], strlen(marks[i])) == 0)
			return true;
	return false;
}

void session_said(struct agent_session *session, struct span text)
{
	if (is_blank(text))
		return;
	keep_words(session, text);
	put_log(session, is_marked(text) ? " " : "", text);
}

static uint64_t hash_of(struct span text)
{
	uint64_t hash = 14695981039346656037u;

	for (size_t i = 0; i < text.len; i++)
		hash = (hash ^ (unsigned char)text.data[i]) * 1099511628211u;
	return hash ? hash : 1;
}

static void add_usage(struct session_usage *sum, const struct session_usage *more, int sign)
{
	sum->input_tokens += sign * more->input_tokens;
	sum->output_tokens += sign * more->output_tokens;
	sum->cache_read_tokens += sign * more->cache_read_tokens;
	sum->cache_write_tokens += sign * more->cache_write_tokens;
	sum->usd += sign * more->usd;
	sum->tokens_known |= more->tokens_known;
	sum->usd_known |= more->usd_known;
}

void session_usage_add(struct session_usage *sum, const struct session_usage *more)
{
	add_usage(sum, more, 1);
}

void session_used(struct agent_session *session, struct span message, const struct session_usage *usage)
{
	uint64_t id = hash_of(message);
	uint32_t i = 0;

	while (i < SESSION_MESSAGES && session->messages[i].id != id)
		i++;
	if (i < SESSION_MESSAGES) { /* a later count of the same message takes the place of the one before */
		add_usage(&session->usage, &session->messages[i].usage, -1);
	} else {
		i = session->message_next++ % SESSION_MESSAGES;
		session->messages[i].id = id;
	}
	session->messages[i].usage = *usage;
	add_usage(&session->usage, usage, 1);
}

void session_used_more(struct agent_session *session, const struct session_usage *usage)
{
	add_usage(&session->usage, usage, 1);
}

void session_tool_began(struct agent_session *session, struct span id, struct span name, yyjson_val *input)
{
	cleanup(buf_done) struct buf shown = {0};
	cleanup(buf_done) struct buf line = {0};

	for (uint32_t i = 0; i < session->tool_count; i++)
		if (id.len > 0 && span_equal(span_of(session->tools[i].id), id))
			return; /* said twice */
	session->tool_calls++;
	if (session->tool_count < SESSION_TOOLS) {
		struct session_tool *tool = &session->tools[session->tool_count++];
		*tool = (struct session_tool){0};
		copy_word(tool->id, sizeof tool->id, id);
		copy_word(tool->name, sizeof tool->name, name);
	}
	buf_init(&shown, SUBJECT_BYTES_MAX);
	buf_init(&line, SUBJECT_BYTES_MAX);
	tool_subject(input, &shown);
	struct span subject = utf8_cut(buf_span(&shown), SHOWN_BYTES);
	buf_printf(&line, "▸ %.*s %.*s%s", SPAN_ARGS(name), SPAN_ARGS(subject),
		subject.len < shown.len ? "…" : "");
	for (size_t i = 0; i < line.len; i++)
		line.data[i] = line.data[i] == '\n' ? ' ' : line.data[i];
	put_log(session, "", buf_span(&line));
}

void session_tool_ended(struct agent_session *session, struct span id, enum tool_end end)
{
	uint32_t i = 0;

	while (i < session->tool_count && !span_equal(span_of(session->tools[i].id), id))
		i++;
	if (i == session->tool_count)
		return; /* one that was never begun ends nothing */
	if (end == TOOL_FAILED && session->tools[i].denied)
		end = TOOL_DENIED;
	if (end == TOOL_FAILED)
		put_log(session, "✗ ", span_of(session->tools[i].name));
	memmove(&session->tools[i], &session->tools[i + 1],
		(--session->tool_count - i) * sizeof *session->tools);
	session->tools_failed += end == TOOL_FAILED;
	session->tools_denied += end == TOOL_DENIED;
}

bool session_has_open_tool(const struct agent_session *session)
{
	return session->tool_count > 0 && session->question_count == 0;
}

/* Its service has answered that it may not, or cannot, work: that says nothing about the session. */
static bool fails_for_account(const struct agent_session *session)
{
	const char *code = session->final == FINAL_BAD ? session->fault.code : "";

	return strcmp(code, "AUTH") == 0 || strcmp(code, "QUOTA") == 0 || strcmp(code, "UPSTREAM") == 0;
}

bool session_is_unknown(const struct agent_session *session)
{
	return session->resumes && !fails_for_account(session) && session->final != FINAL_GOOD &&
		session->turns == 0 && session->tool_calls == 0 && session->words.len == 0 &&
		session->question_count == 0;
}

void session_retried(struct agent_session *session, struct span why)
{
	session->retries++;
	put_log(session, "stint: the agent tries again: ", why.len > 0 ? why : SPAN("no reason said"));
}

void session_limited(struct agent_session *session, int64_t until_ms)
{
	session->limited = true;
	session->limit_until_ms = until_ms;
}

void session_turned(struct agent_session *session)
{
	session->turns++;
}

void session_ended_well(struct agent_session *session, struct span words)
{
	if (!is_blank(words))
		keep_words(session, words);
	session->final = FINAL_GOOD;
	session->fault = (struct session_fault){0};
	session->tool_count = 0;
}

void session_ended_badly(struct agent_session *session, const char *code, struct span message)
{
	cleanup(buf_done) struct buf hidden = {0};

	buf_init(&hidden, SESSION_WORDS_BYTES_MAX);
	session_put(session, &hidden, utf8_cut(message, SESSION_MESSAGE_BYTES));
	session->final = FINAL_BAD;
	session->fault = (struct session_fault){.code = code};
	copy_word(session->fault.message, sizeof session->fault.message,
		utf8_cut(buf_span(&hidden), SESSION_MESSAGE_BYTES - 1));
	for (char *at = session->fault.message; *at; at++)
		*at = (unsigned char)*at < ' ' ? ' ' : *at;
	if (session->limited)
		session->fault.retry_at_ms = session->limit_until_ms;
	session->tool_count = 0;
	put_log(session, "✗ ", span_of(session->fault.message));
}

static bool contains(struct span text, const char *word)
{
	return text.len > 0 && memmem(text.data, text.len, word, strlen(word)) != NULL;
}

/* "unexpected status 401 Unauthorized", {"error":{"code":401 …: the number of the model's answer, or 0. */
static int64_t status_in(struct span text)
{
	static const char *const before[] = {"status ", "\"code\":"};

	for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
		size_t len = strlen(before[i]);
		const char *found =
			contains(text, before[i]) ? memmem(text.data, text.len, before[i], len) : NULL;
		size_t left = found ? text.len - (size_t)(found - text.data) - len : 0;
		const char *digits = found ? found + len : NULL;
		if (left < 3)
			continue;
		if (digits[0] >= '4' && digits[0] <= '5' && digits[1] >= '0' && digits[1] <= '9' &&
			digits[2] >= '0' && digits[2] <= '9' &&
			(left == 3 || digits[3] < '0' || digits[3] > '9'))
			return (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
	}
	return 0;
}

const char *session_code_of(int64_t status, struct span text)
{
	if (status == 0)
		status = status_in(text);
	if (status == 401 || status == 403 || contains(text, "authentication_failed") ||
		contains(text, "authentication_error") || contains(text, "Not logged in") ||
		contains(text, "invalid x-api-key") || contains(text, "Invalid API key") ||
		contains(text, "API key not valid") || contains(text, "UNAUTHENTICATED") ||
		contains(text, "OAuth token has expired"))
		return "AUTH";
	if (status == 429 || contains(text, "rate_limit") || contains(text, "usage limit") ||
		contains(text, "RESOURCE_EXHAUSTED") || contains(text, "quota"))
		return "QUOTA";
	if ((status >= 500 && status < 600) || status == 408 || contains(text, "overloaded") ||
		contains(text, "Overloaded") || contains(text, "ECONNREFUSED") ||
		contains(text, "Connection error") || contains(text, "stream disconnected"))
		return "UPSTREAM";
	return NULL;
}

/* ---- permissions -------------------------------------------------------------------------------------------- */

const struct session_question *session_open_question(const struct agent_session *session)
{
	return session->question_count > 0 ? &session->questions[0] : NULL;
}

/* Moves the questions behind it up; its buffers go to the end of the list. */
static void drop_question(struct agent_session *session, uint32_t at)
{
	struct session_question gone = session->questions[at];

	memmove(&session->questions[at], &session->questions[at + 1],
		(session->question_count - at - 1) * sizeof gone);
	session->questions[--session->question_count] = gone;
}

/* "Wants to run git push": what a person reads first. */
static void say_what(struct session_question *question)
{
	static const struct {
		const char *tool, *text;
	} verbs[] = {{"Bash", "run"}, {"execute", "run"}, {"Edit", "edit"}, {"MultiEdit", "edit"},
		{"edit", "edit"}, {"command_execution", "run"}, {"file_change", "edit"}, {"Write", "write"},
		{"WebFetch", "fetch"}, {"fetch", "fetch"}};
	struct span subject = utf8_cut(buf_span(&question->subject), SESSION_TEXT_BYTES - 100);
	const char *verb = NULL;
	char text[SESSION_TEXT_BYTES];

	for (size_t i = 0; i < sizeof verbs / sizeof *verbs && !verb; i++)
		if (strcmp(verbs[i].tool, question->tool) == 0)
			verb = verbs[i].text;
	if (verb && subject.len > 0)
		snprintf(text, sizeof text, "Wants to %s %.*s", verb, SPAN_ARGS(subject));
	else
		snprintf(text, sizeof text, "Wants to use %s%s%.*s", question->tool,
			subject.len > 0 ? ": " : "", SPAN_ARGS(subject));
	for (char *at = text; *at; at++)
		*at = (unsigned char)*at < ' ' ? ' ' : *at;
	memcpy(question->text, text, sizeof text);
}

/* The call that the question is about: the first open one of that tool. */
static void mark_denied(struct agent_session *session, const struct session_question *question)
{
	for (uint32_t i = 0; i < session->tool_count; i++)
		if (!session->tools[i].denied && strcmp(session->tools[i].name, question->tool) == 0) {
			session->tools[i].denied = true;
			return;
		}
}

/* The policy has decided the question in the last place of the list. */
static void decide_last(struct agent_session *session, bool allow, struct span words)
{
	struct session_question first = session->questions[0];

	if (!allow)
		mark_denied(session, &session->questions[session->question_count - 1]);
	/* answer() speaks of the first one */
	session->questions[0] = session->questions[session->question_count - 1];
	session->questions[session->question_count - 1] = first;
	session->adapter->answer(session, allow, words);
	first = session->questions[0];
	session->questions[0] = session->questions[session->question_count - 1];
	session->questions[session->question_count - 1] = first;
	session->question_count--;
}

void session_asked(
	struct agent_session *session, struct span id, struct span tool, yyjson_val *input, yyjson_val *extra)
{
	struct session_question *question;

	if (!session->adapter->answer)
		return;
	if (session->question_count == SESSION_QUESTIONS) {
		session->odd_lines++; /* the agent waits for an answer and is ended by its clocks */
		return;
	}
	question = &session->questions[session->question_count++];
	buf_clear(&question->subject);
	buf_clear(&question->input);
	buf_clear(&question->extra);
	question->id[0] = question->tool[0] = 0;
	copy_word(question->id, sizeof question->id, id);
	copy_word(question->tool, sizeof question->tool, tool);
	tool_subject(input, &question->subject);
	if (input)
		json_put_value(&question->input, input);
	if (extra)
		json_put_value(&question->extra, extra);
	say_what(question);
	if (buf_fault(&question->subject) < 0 || buf_fault(&question->input) < 0) {
		decide_last(session, false, SPAN("denied: this call is too long to be shown to a person"));
		return;
	}
	switch (policy_decide(
		session->policy, question->tool, buf_span(&question->subject), &question->rule)) {
	case POLICY_ALLOW:
		decide_last(session, true, SPAN(""));
		return;
	case POLICY_DENY:
		put_log(session, "stint: denied by the policy: ", span_of(question->text));
		decide_last(session, false,
			SPAN("denied by the policy of this executor; do not try another way"));
		return;
	case POLICY_ASK:
		break;
	}
	if (session->questions_asked++ >= SESSION_QUESTIONS_MAX) {
		decide_last(session, false, SPAN("denied: this attempt has asked 50 questions already"));
		return;
	}
	put_log(session, "stint: it asks: ", span_of(question->text));
}

void session_answer(struct agent_session *session, bool allow, struct span words)
{
	assert(session->question_count > 0);
	if (!allow)
		mark_denied(session, &session->questions[0]);
	session->adapter->answer(session, allow, words);
	drop_question(session, 0);
}

void session_withdrew(struct agent_session *session, struct span id)
{
	for (uint32_t i = 0; i < session->question_count; i++)
		if (span_equal(span_of(session->questions[i].id), id)) {
			drop_question(session, i);
			return;
		}
}

/* ---- lines -------------------------------------------------------------------------------------------------- */

static void hear_value(struct agent_session *session, struct span text, bool is_line)
{
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc =
		text.len > 0 && text.data[0] == '{' ? json_read_to(text, LINE_DEPTH_MAX, &complaint) : NULL;

	if (doc) {
		session->adapter->hear(session, yyjson_doc_get_root(doc));
		return;
	}
	session->odd_lines++;
	if (is_line)
		put_log(session, "", text);
}

void session_hear(struct agent_session *session, struct span line, int64_t now_ms)
{
	session->now_ms = now_ms;
	if (is_blank(line))
		return;
	session->lines++;
	if (session->adapter->output == OUTPUT_LINES)
		hear_value(session, line, true);
	else
		put_log(session, "", line);
}

void session_hear_all(struct agent_session *session, struct span text, int64_t now_ms)
{
	session->now_ms = now_ms;
	if (session->adapter->output == OUTPUT_WHOLE) {
		while (text.len > 0 && text.data[0] != '{') /* what it printed before its answer */
			text.data++, text.len--;
		hear_value(session, text, false);
	} else if (session->adapter->ended && session->words.len == 0 && !is_blank(text)) {
		keep_words(session, text); /* plain text: its end is its last word */
	}
}

bool session_go_on(struct agent_session *session, struct span text)
{
	if (!session->adapter->go_on)
		return false;
	session->final = FINAL_NONE;
	session->adapter->go_on(session, text);
	return true;
}
