#include "agent/session/verdict.h"

#include <stdio.h>
#include <string.h>

#include "attempt/words.h"
#include "base/take.h"
#include "base/utf8.h"

enum { RESULT_TEXT_BYTES = 32 << 10 };

/* Our own intent decides: it was stopped, or nothing of it ran. After its last word a stop only ends what is left. */
static bool is_ours(const struct session_end *end)
{
	const struct attempt_end *attempt = end->attempt;

	if (attempt->stop == STOP_FINAL && end->session->final != FINAL_NONE)
		return false;
	if (attempt->end->spent != SPENT_NOTHING || attempt->end->how == ENDED_UNSTARTED ||
		attempt->end->lapsed)
		return true;
	return attempt->stop != STOP_NOT && attempt->end->stop_asked;
}

/* Cancelled, say, after its budget was spent. */
static bool is_stopped_otherwise(const struct session_end *end)
{
	return end->attempt->stop != STOP_NOT && end->attempt->stop != STOP_FINAL;
}

/* Every call failed, and none by a denial: it could not work at all. */
static bool is_crippled(const struct agent_session *session)
{
	return session->tool_calls > 0 && session->tools_failed >= session->tool_calls &&
		session->tools_denied == 0;
}

bool session_went_well(const struct session_end *end)
{
	return !is_ours(end) && end->session->final == FINAL_GOOD && !is_crippled(end->session) && !end->over;
}

static int put_error(struct buf *members, const struct session_end *end, const char *code,
	const char *message, int64_t retry_at_ms)
{
	bool of_account =
		strcmp(code, "QUOTA") == 0 || strcmp(code, "AUTH") == 0 || strcmp(code, "UPSTREAM") == 0;
	struct json_object error;

	buf_put_span(members, SPAN("\"error\":"));
	json_begin(&error, members);
	json_member_word(&error, "code", code);
	json_member_string(&error, "message", span_of(message));
	if (retry_at_ms > 0)
		json_member_int(&error, "retryAt", retry_at_ms);
	if (of_account && end->account)
		json_member_string(&error, "credential", span_of(end->account));
	if (end->over) {
		json_put_key(&error, "details");
		buf_printf(members, "{\"budget\":\"%s\",\"limit\":%.16g}", end->over, end->over_limit);
	}
	return json_end(&error);
}

static int put_budget(const struct session_end *end, struct buf *members)
{
	char message[4000];

	snprintf(message, sizeof message, "budget.%s is used up: the limit is %g%s%s", end->over,
		end->over_limit, end->check_failed ? "; and " : "",
		end->check_failed ? end->check_failed : "");
	return put_error(members, end, "BUDGET_EXCEEDED", message, 0);
}

/* No last word. What it said on standard error, or last of all, says why. */
static int put_crash(const struct session_end *end, struct buf *members)
{
	const struct process_end *process = end->attempt->end;
	char message[1200], words[WORDS_BYTES];
	int len = snprintf(message, sizeof message, "the agent ended without a last word (%s %d)",
		process->how == ENDED_SIGNAL ? "signal" : "exit status", process->code);

	if (last_words(end->attempt->err, words) > 0)
		snprintf(message + len, sizeof message - (size_t)len, ": %s", words);
	else if (end->session->words.len > 0)
		snprintf(message + len, sizeof message - (size_t)len, "; it said last: %.*s",
			SPAN_ARGS(utf8_cut(buf_span(&end->session->words), 300)));
	const char *code = session_code_of(0, end->attempt->err);
	return put_error(
		members, end, code && strcmp(code, "AUTH") == 0 ? code : "WORKER_CRASHED", message, 0);
}

static void put_result(struct buf *members, const struct agent_session *session)
{
	struct span words = buf_span(&session->words);

	while (words.len > 0 && strchr(" \t\r\n", words.data[words.len - 1]))
		words.len--;
	if (words.len > RESULT_TEXT_BYTES) {
		words.data += words.len - RESULT_TEXT_BYTES;
		words.len = RESULT_TEXT_BYTES;
		while (words.len > 0 && ((unsigned char)words.data[0] & 0xc0) == 0x80)
			words.data++, words.len--;
	}
	buf_put_span(members, SPAN("\"result\":"));
	json_put_string(members, words);
}

static int put_success(const struct session_end *end, enum report_verb *ret_verb, struct buf *members)
{
	*ret_verb = end->worked && !end->undelivered ? REPORT_COMPLETE : REPORT_REVIEW;
	put_result(members, end->session);
	return buf_fault(members);
}

static int judge(const struct session_end *end, enum report_verb *ret_verb, struct buf *members)
{
	const struct agent_session *session = end->session;

	*ret_verb = REPORT_FAIL;
	if (end->over && end->checks_passed && !is_stopped_otherwise(end))
		return put_success(end, ret_verb, members);
	if (end->over && end->asked_for_budget) {
		*ret_verb = REPORT_RELEASE;
		return release_put(
			members, "its budget is used up, and a person is asked whether it may have more", 0);
	}
	if (end->over)
		return put_budget(end, members);
	if (is_ours(end))
		return verdict_put(end->attempt, ret_verb, members);
	if (session_is_unknown(session)) {
		*ret_verb = REPORT_RELEASE;
		return release_put(
			members, "the agent does not know its session any more: it begins anew", 0);
	}
	if (session->final == FINAL_NONE)
		return put_crash(end, members);
	if (session->final == FINAL_BAD)
		return put_error(members, end, session->fault.code, session->fault.message,
			session->fault.retry_at_ms);
	if (is_crippled(session)) {
		char message[200];
		snprintf(message, sizeof message,
			"the agent says that it is done, but each of its %u tool calls failed",
			session->tool_calls);
		return put_error(members, end, "EXECUTION_ERROR", message, 0);
	}
	if (end->check_failed)
		return put_error(members, end, end->check_code, end->check_failed, 0);
	return put_success(end, ret_verb, members);
}

int session_judge(const struct session_end *end, enum report_verb *ret_verb, struct buf *members)
{
	int r = judge(end, ret_verb, members);

	if (r == 0 && end->evidence.len > 0 && *ret_verb != REPORT_RELEASE && *ret_verb != REPORT_BLOCK) {
		buf_put_span(members, SPAN(",\"evidence\":"));
		buf_put_span(members, end->evidence);
	}
	return r < 0 ? r : buf_fault(members);
}

void session_put_usage(struct buf *out, const struct session_spending *spending, const char *model)
{
	const struct session_usage *usage = &spending->usage;
	struct json_object object;

	json_begin(&object, out);
	if (usage->tokens_known) {
		json_member_int(&object, "inputTokens", usage->input_tokens);
		json_member_int(&object, "outputTokens", usage->output_tokens);
		json_member_int(&object, "cacheReadTokens", usage->cache_read_tokens);
		json_member_int(&object, "cacheWriteTokens", usage->cache_write_tokens);
	}
	if (usage->usd_known && json_put_key(&object, "usd"))
		buf_printf(out, "%.9g", usage->usd);
	json_member_int(&object, "turns", spending->turns);
	json_member_int(&object, "toolCalls", spending->tool_calls);
	if (model[0])
		json_member_string(&object, "model", span_of(model));
	json_end(&object);
}
