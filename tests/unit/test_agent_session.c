/* The parsers of all adapters over recorded streams, and what the verdict makes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/session/verdict.h"
#include "base/take.h"

static void read_file(const char *name, struct buf *text)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", AGENT_STREAMS, name);
	FILE *file = fopen(path, "r");
	char part[4096];
	size_t len;

	assert_non_null(file);
	while ((len = fread(part, 1, sizeof part, file)) > 0)
		buf_put(text, part, len);
	fclose(file);
	assert_int_equal(buf_fault(text), 0);
}

static void hear_text(struct agent_session *session, struct span text)
{
	while (text.len > 0) {
		const char *newline = memchr(text.data, '\n', text.len);
		size_t len = newline ? (size_t)(newline - text.data) : text.len;
		session_hear(session, (struct span){text.data, len}, 1000);
		text.data += len + (newline != NULL);
		text.len -= len + (newline != NULL);
	}
}

/* As a run does it: begins, hears all of the file, and the process ends with that status. */
static void play(struct agent_session *session, const struct adapter *adapter, const char *name, int status)
{
	cleanup(buf_done) struct buf text = {0};

	buf_init(&text, 1 << 20);
	read_file(name, &text);
	session_init(session, adapter, &policy_default);
	session->prompt = SPAN("the prompt");
	session->cwd = "/w";
	if (adapter->begin)
		adapter->begin(session);
	if (adapter->output == OUTPUT_LINES)
		hear_text(session, buf_span(&text));
	session_hear_all(session, buf_span(&text), 1000);
	if (adapter->ended)
		adapter->ended(session, status);
}

static enum report_verb judge(const struct agent_session *session, const struct process_end *process,
	enum stop_reason stop, bool worked, struct buf *members)
{
	struct attempt_end attempt = {.stop = stop, .end = process, .err = SPAN("Error: it went wrong\n")};
	struct session_end end = {
		.session = session, .attempt = &attempt, .worked = worked, .account = "team"};
	enum report_verb verb;

	buf_init(members, 1 << 20);
	assert_int_equal(session_judge(&end, &verb, members), 0);
	buf_put_byte(members, 0);
	return verb;
}

static enum report_verb judge_exit(
	const struct agent_session *session, int status, bool worked, struct buf *members)
{
	struct process_end process = {.how = ENDED_EXIT, .code = status};

	return judge(session, &process, STOP_NOT, worked, members);
}

static void every_recorded_stream_has_its_verdict(void **state)
{
	static const struct {
		const char *file;
		const struct adapter *adapter;
		int status;
		const char *id;
		enum report_verb verb;
		const char *says;
	} rows[] = {
		{"claude-done.jsonl", &adapter_claude, 0, "11111111-2222-4333-8444-555555555555",
			REPORT_COMPLETE, "\"result\":\"All tests pass.\""},
		{"claude-401.jsonl", &adapter_claude, 1, NULL, REPORT_FAIL, "\"code\":\"AUTH\""},
		{"claude-429-key.jsonl", &adapter_claude, 1, NULL, REPORT_FAIL, "\"code\":\"QUOTA\""},
		{"claude-429-subscription.jsonl", &adapter_claude, 1, NULL, REPORT_FAIL,
			"\"retryAt\":1770000000000"},
		{"claude-529.jsonl", &adapter_claude, 1, NULL, REPORT_FAIL, "\"code\":\"UPSTREAM\""},
		{"claude-unknown-id.jsonl", &adapter_claude, 1, NULL, REPORT_FAIL, "No conversation found"},
		{"codex-done.jsonl", &adapter_codex, 0, "0199a213-81c0-7800-8aa1-bbab2a035a53",
			REPORT_COMPLETE, "\"result\":\"There is one directory.\""},
		{"codex-401.jsonl", &adapter_codex, 1, NULL, REPORT_FAIL, "\"code\":\"AUTH\""},
		{"codex-529.jsonl", &adapter_codex, 1, NULL, REPORT_FAIL, "\"code\":\"UPSTREAM\""},
		{"codex-limit.jsonl", &adapter_codex, 1, NULL, REPORT_FAIL, "\"code\":\"QUOTA\""},
		{"codex-crippled.jsonl", &adapter_codex, 0, NULL, REPORT_FAIL, "tool calls failed"},
		{"codex-server-asks.jsonl", &adapter_codex_asking, 0, NULL, REPORT_COMPLETE,
			"\"result\":\"so be it\""},
		{"codex-server-denied.jsonl", &adapter_codex_asking, 0, NULL, REPORT_COMPLETE,
			"\"result\":\"I was not allowed to.\""},
		{"codex-server-401.jsonl", &adapter_codex_asking, 0, NULL, REPORT_FAIL, "\"code\":\"AUTH\""},
		{"codex-server-limit.jsonl", &adapter_codex_asking, 0, NULL, REPORT_FAIL,
			"\"code\":\"QUOTA\""},
		{"codex-server-unknown-id.jsonl", &adapter_codex_asking, 0, NULL, REPORT_FAIL,
			"no rollout found"},
		{"gemini-done.jsonl", &adapter_gemini, 0, "11111111-2222-4333-8444-555555555555",
			REPORT_COMPLETE, "\"result\":\"One file.\""},
		{"gemini-401.jsonl", &adapter_gemini, 145, NULL, REPORT_FAIL, "\"code\":\"AUTH\""},
		{"gemini-529.jsonl", &adapter_gemini, 1, NULL, REPORT_FAIL, "\"code\":\"UPSTREAM\""},
		{"opencode-done.jsonl", &adapter_opencode, 0, "ses_1", REPORT_COMPLETE,
			"\"result\":\"One file.\""},
		{"opencode-401.jsonl", &adapter_opencode, 1, NULL, REPORT_FAIL, "\"code\":\"AUTH\""},
		{"openclaw-done.json", &adapter_openclaw, 0, "s-1", REPORT_COMPLETE,
			"\"result\":\"Three files changed.\""},
		{"openclaw-timeout.json", &adapter_openclaw, 2, NULL, REPORT_FAIL,
			"\"code\":\"TASK_TIMEOUT\""},
		{"acp-gemini-asks.jsonl", &adapter_acp, 0, NULL, REPORT_COMPLETE, "\"result\":\"so be it\""},
		{"acp-opencode-asks.jsonl", &adapter_acp, 0, NULL, REPORT_COMPLETE,
			"\"result\":\"so be it\""},
		{"acp-done.jsonl", &adapter_acp, 0, "sess-9", REPORT_COMPLETE, "\"result\":\"One file.\""},
	};
	static struct agent_session session;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		cleanup(buf_done) struct buf members = {0};
		play(&session, rows[i].adapter, rows[i].file, rows[i].status);
		print_message("%s\n", rows[i].file);
		assert_int_equal(judge_exit(&session, rows[i].status, true, &members), rows[i].verb);
		if (!strstr(members.data, rows[i].says))
			fail_msg("%s: %s", rows[i].file, members.data);
		if (rows[i].id)
			assert_string_equal(session.id, rows[i].id);
		session_done(&session);
	}
}

static bool replies(const struct agent_session *session, struct span text)
{
	return memmem(session->reply.data, session->reply.len, text.data, text.len) != NULL;
}

static void codex_asks_for_what_its_shell_would_run_and_hears_the_answer(void **state)
{
	static struct agent_session session;
	const struct session_question *question;

	(void)state;
	play(&session, &adapter_codex_asking, "codex-server-asks.jsonl", 0);
	question = session_open_question(&session);
	assert_non_null(question);
	assert_string_equal(question->text, "Wants to run git push origin x || echo 2 > b");
	buf_clear(&session.reply);
	session_answer(&session, false, SPAN("not today"));
	assert_true(replies(&session, SPAN("{\"id\":0,\"result\":{\"decision\":\"decline\"}}\n")));
	assert_int_equal(session.usage.output_tokens, 20);
	assert_int_equal(session.tool_calls, 1);
	session_done(&session);
}

static void agents_of_the_protocol_ask_for_the_command_wherever_they_say_it(void **state)
{
	static const char *const files[] = {"acp-gemini-asks.jsonl", "acp-opencode-asks.jsonl"};
	static struct agent_session session;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		play(&session, &adapter_acp, files[i], 0);
		const struct session_question *question = session_open_question(&session);
		assert_non_null(question); /* the policy that nobody wrote asks for git push */
		assert_string_equal(question->text, "Wants to run git push origin x || echo 2 > b");
		assert_int_equal(session.tool_calls, 1);
		assert_int_equal(session.usage.output_tokens, i == 0 ? 20 : 10);
		assert_int_equal(session.usage.usd_known, i == 1);
		session_done(&session);
	}
}

static void the_last_words_over_the_protocol_are_those_of_the_last_turn(void **state)
{
	static struct agent_session session;

	(void)state;
	play(&session, &adapter_acp, "acp-done.jsonl", 0);
	assert_true(session_go_on(&session, SPAN("go on")));
	hear_text(&session,
		SPAN("{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"text\":\"Now it is.\"}}}}\n"));
	assert_int_equal(session.words.len, strlen("Now it is."));
	session_done(&session);
}

static void an_error_of_the_protocol_may_be_the_status_of_the_service(void **state)
{
	static struct agent_session session;

	(void)state;
	session_init(&session, &adapter_acp, &policy_open);
	session.prompt = SPAN("p");
	adapter_acp.begin(&session);
	hear_text(&session,
		SPAN("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":429,\"message\":\"says the model\"}}\n"));
	assert_string_equal(session.fault.code, "QUOTA");
	session_done(&session);
}

static void codex_is_asked_for_a_change_of_files_with_what_it_changes(void **state)
{
	static struct agent_session session;
	static const struct policy asks = {.otherwise = POLICY_ASK};

	(void)state;
	session_init(&session, &adapter_codex_asking, &asks);
	hear_text(&session,
		SPAN("{\"method\":\"item/started\",\"params\":{\"item\":{\"type\":\"fileChange\",\"id\":\"f1\",\"status\":\"inProgress\",\"changes\":[{\"path\":\"a.c\",\"diff\":\"-1\\n+2\\n\"}]}}}\n"
		     "{\"method\":\"item/fileChange/requestApproval\",\"id\":7,\"params\":{\"itemId\":\"f1\"}}\n"));
	const struct session_question *question = session_open_question(&session);
	assert_non_null(question);
	assert_string_equal(question->text, "Wants to edit a.c");
	assert_non_null(memmem(question->input.data, question->input.len, "-1\\n+2", 6));
	session_answer(&session, true, SPAN(""));
	assert_true(replies(&session, SPAN("{\"id\":7,\"result\":{\"decision\":\"accept\"}}\n")));
	session_done(&session);
}

static void an_account_is_named_only_where_it_is_to_blame(void **state)
{
	static struct agent_session session;
	cleanup(buf_done) struct buf quota = {0}, other = {0};

	(void)state;
	play(&session, &adapter_claude, "claude-429-key.jsonl", 1);
	judge_exit(&session, 1, true, &quota);
	assert_non_null(strstr(quota.data, "\"credential\":\"team\""));
	session_done(&session);
	play(&session, &adapter_codex, "codex-crippled.jsonl", 0);
	judge_exit(&session, 0, true, &other);
	assert_null(strstr(other.data, "credential"));
	session_done(&session);
}

static void usage_is_the_last_count_of_each_message(void **state)
{
	static struct agent_session session;

	(void)state;
	play(&session, &adapter_claude, "claude-done.jsonl", 0);
	assert_int_equal(session.usage.output_tokens, 42);
	assert_int_equal(session.usage.input_tokens, 15);
	assert_int_equal(session.usage.cache_write_tokens, 100);
	assert_true(session.usage.usd > 0.0122 && session.usage.usd < 0.0124);
	session_done(&session);
	play(&session, &adapter_opencode, "opencode-done.jsonl", 0);
	assert_int_equal(session.usage.output_tokens, 6);
	assert_true(session.usage.usd > 0.0029 && session.usage.usd < 0.0031);
	session_done(&session);
	play(&session, &adapter_codex, "codex-done.jsonl", 0);
	assert_false(session.usage.usd_known); /* unknown is not 0 */
	session_done(&session);
}

static void a_count_that_is_known_too_late_is_made_up_for(void **state)
{
	static struct agent_session session;

	(void)state;
	session_init(&session, &adapter_claude, &policy_default);
	hear_text(&session,
		SPAN("{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n"
		     "{\"type\":\"result\",\"usage\":{\"input_tokens\":3,\"output_tokens\":90},\"total_cost_usd\":0.5}\n"));
	assert_int_equal(session.usage.output_tokens, 90);
	assert_int_equal(session.usage.input_tokens, 3);
	session_done(&session);
}

static void money_of_a_resumed_session_is_counted_once_whichever_way_the_agent_counts(void **state)
{
	static struct agent_session session;

	(void)state;
	session_init(&session, &adapter_claude, &policy_default); /* its total is that of the whole session */
	session.resumes = true;
	session.usd_before = 0.5;
	hear_text(&session,
		SPAN("{\"type\":\"result\",\"usage\":{\"output_tokens\":10},\"total_cost_usd\":0.75,\"modelUsage\":{\"m\":{\"outputTokens\":30}}}\n"));
	assert_true(session.usage.usd > 0.249 && session.usage.usd < 0.251);
	session_done(&session);
	session_init(&session, &adapter_claude, &policy_default); /* its total is that of the process */
	session.resumes = true;
	session.usd_before = 0.5;
	hear_text(&session,
		SPAN("{\"type\":\"result\",\"usage\":{\"output_tokens\":10},\"total_cost_usd\":0.75,\"modelUsage\":{\"m\":{\"outputTokens\":10}}}\n"));
	assert_true(session.usage.usd > 0.749 && session.usage.usd < 0.751);
	session_done(&session);
}

static void without_a_report_and_without_a_change_a_person_decides(void **state)
{
	static struct agent_session session;
	cleanup(buf_done) struct buf members = {0};

	(void)state;
	play(&session, &adapter_claude, "claude-done.jsonl", 0);
	assert_int_equal(judge_exit(&session, 0, false, &members), REPORT_REVIEW);
	session_done(&session);
}

static void an_end_without_a_last_word_is_a_crash_whatever_its_status(void **state)
{
	static struct agent_session session;
	cleanup(buf_done) struct buf by_exit = {0}, by_signal = {0};
	struct process_end killed = {.how = ENDED_SIGNAL, .code = 9};

	(void)state;
	session_init(&session, &adapter_claude, &policy_default);
	assert_int_equal(judge_exit(&session, 0, true, &by_exit), REPORT_FAIL);
	assert_non_null(strstr(by_exit.data, "WORKER_CRASHED"));
	assert_non_null(strstr(by_exit.data, "it went wrong"));
	assert_int_equal(judge(&session, &killed, STOP_NOT, true, &by_signal), REPORT_FAIL);
	assert_non_null(strstr(by_signal.data, "signal 9"));
	session_done(&session);
}

static void a_session_that_the_agent_does_not_know_any_more_costs_nothing(void **state)
{
	static struct agent_session session;
	cleanup(buf_done) struct buf told = {0}, silent = {0};

	(void)state;
	play(&session, &adapter_claude, "claude-unknown-id.jsonl", 1);
	session.resumes = true;
	assert_int_equal(judge_exit(&session, 1, true, &told), REPORT_RELEASE);
	session_done(&session);
	session_init(&session, &adapter_codex, &policy_open); /* it says so on standard error alone */
	session.resumes = true;
	assert_int_equal(judge_exit(&session, 1, true, &silent), REPORT_RELEASE);
	session_done(&session);
}

static void our_own_intent_beats_what_it_says(void **state)
{
	static struct agent_session session;
	cleanup(buf_done) struct buf cancelled = {0}, stalled = {0}, lingered = {0};
	struct process_end stopped = {.how = ENDED_SIGNAL, .code = 15, .stop_asked = true};

	(void)state;
	play(&session, &adapter_claude, "claude-done.jsonl", 0);
	assert_int_equal(judge(&session, &stopped, STOP_CANCELLED, true, &cancelled), REPORT_RELEASE);
	assert_int_equal(judge(&session, &stopped, STOP_STALLED, true, &stalled), REPORT_FAIL);
	assert_non_null(strstr(stalled.data, "STALLED"));
	/* it did not go after its last word, and was ended: the word counts */
	assert_int_equal(judge(&session, &stopped, STOP_FINAL, true, &lingered), REPORT_COMPLETE);
	session_done(&session);
}

static void a_permission_is_answered_in_the_words_of_the_protocol(void **state)
{
	static struct agent_session session;
	static const struct policy asks = {POLICY_ASK, NULL, 0};

	(void)state;
	session_init(&session, &adapter_claude, &asks);
	hear_text(&session,
		SPAN("{\"type\":\"control_request\",\"request_id\":\"r1\",\"request\":{\"subtype\":\"can_use_tool\",\"tool_name\":\"Bash\",\"input\":{\"command\":\"git push\"}}}\n"));
	assert_non_null(session_open_question(&session));
	assert_string_equal(session_open_question(&session)->text, "Wants to run git push");
	session_answer(&session, true, SPAN(""));
	buf_put_byte(&session.reply, 0);
	assert_string_equal(session.reply.data,
		"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"r1\",\"response\":"
		"{\"behavior\":\"allow\",\"updatedInput\":{\"command\":\"git push\"}}}}\n");
	assert_null(session_open_question(&session));
	session_done(&session);
}

static void a_call_that_a_person_denied_has_not_failed_by_itself(void **state)
{
	static struct agent_session session;
	static const struct policy asks = {POLICY_ASK, NULL, 0};
	cleanup(buf_done) struct buf members = {0};

	(void)state;
	session_init(&session, &adapter_claude, &asks);
	hear_text(&session,
		SPAN("{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"Bash\",\"input\":{\"command\":\"x\"}}]}}\n"
		     "{\"type\":\"control_request\",\"request_id\":\"r\",\"request\":{\"subtype\":\"can_use_tool\",\"tool_name\":\"Bash\",\"input\":{\"command\":\"x\"}}}\n"));
	session_answer(&session, false, SPAN("not today"));
	hear_text(&session,
		SPAN("{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c\",\"is_error\":true,\"content\":\"not today\"}]}}\n"
		     "{\"type\":\"result\",\"is_error\":false,\"result\":\"so be it\"}\n"));
	assert_int_equal(session.tools_denied, 1);
	assert_int_equal(judge_exit(&session, 0, false, &members), REPORT_REVIEW);
	session_done(&session);
}

static void questions_wait_for_the_one_before_and_may_be_withdrawn(void **state)
{
	static struct agent_session session;
	static const struct policy asks = {POLICY_ASK, NULL, 0};
	char line[400];

	(void)state;
	session_init(&session, &adapter_claude, &asks);
	for (int i = 1; i <= 3; i++) {
		int len = snprintf(line, sizeof line,
			"{\"type\":\"control_request\",\"request_id\":\"r%d\",\"request\":{\"subtype\":\"can_use_tool\","
			"\"tool_name\":\"Bash\",\"input\":{\"command\":\"c%d\"}}}",
			i, i);
		session_hear(&session, (struct span){line, (size_t)len}, 0);
	}
	assert_string_equal(session_open_question(&session)->id, "r1");
	session_withdrew(&session, SPAN("r2"));
	session_answer(&session, false, SPAN("no"));
	assert_string_equal(session_open_question(&session)->id, "r3");
	session_done(&session);
}

static void acp_answers_with_an_option_that_was_offered(void **state)
{
	static struct agent_session session;

	(void)state;
	play(&session, &adapter_acp, "acp-done.jsonl", 0);
	buf_put_byte(&session.reply, 0);
	assert_non_null(strstr(session.reply.data, "\"method\":\"initialize\""));
	assert_non_null(strstr(session.reply.data, "\"method\":\"session/new\""));
	assert_non_null(strstr(session.reply.data, "\"text\":\"the prompt\""));
	assert_non_null(strstr(session.reply.data, "{\"outcome\":\"selected\",\"optionId\":\"yes\"}"));
	session_done(&session);
}

static void a_secret_never_reaches_the_log(void **state)
{
	static struct agent_session session;

	(void)state;
	session_init(&session, &adapter_custom, &policy_open);
	session_hide(&session, "sk-secret-value");
	session_hide(&session, "short");
	hear_text(&session,
		SPAN("{\"type\":\"text\",\"text\":\"a sk-secret-value b sk-secret-value short\"}\nplain sk-secret-value\n"));
	buf_put_byte(&session.log, 0);
	assert_string_equal(session.log.data, "00:01  a *** b *** short\n00:01  plain ***\n");
	session_done(&session);
}

static void what_the_policy_says_of_a_line_is_its_strictest_command(void **state)
{
	static const struct policy_rule rules[] = {{"Bash", "git push*", POLICY_ASK},
		{"Bash", "rm *", POLICY_DENY}, {"Edit", "/etc/*", POLICY_DENY}};
	static const struct policy policy = {POLICY_ALLOW, rules, 3};
	static const struct {
		const char *tool, *subject;
		enum policy_act act;
	} rows[] = {
		{"Bash", "make test", POLICY_ALLOW},
		{"Bash", "git   push origin", POLICY_ASK},
		{"execute", "git push origin", POLICY_ASK},
		{"Bash", "make && git push", POLICY_ASK},
		{"Bash", "git push; rm -rf x", POLICY_DENY},
		{"Bash", "echo 'rm -rf x; git push'", POLICY_ALLOW},
		{"Bash", "echo $(git push)", POLICY_ASK},
		{"Bash", "sh -c 'git push'", POLICY_ASK},
		{"Bash", "echo 'open", POLICY_ASK},
		{"Bash", "", POLICY_ALLOW},
		{"Edit", "/etc/passwd", POLICY_DENY},
		{"Edit", "src/a.c", POLICY_ALLOW},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (policy_decide(&policy, rows[i].tool, span_of(rows[i].subject), NULL) != rows[i].act)
			fail_msg("%s %s", rows[i].tool, rows[i].subject);
}

static void versions_are_compared_by_their_numbers(void **state)
{
	char version[48];

	(void)state;
	assert_true(version_compare("2.1.197", "2.1.325") < 0);
	assert_true(version_compare("2.1.1000", "2.1.325") > 0);
	assert_int_equal(version_compare("0.61.0", "0.61.0"), 0);
	assert_true(adapter_version(SPAN("codex-cli 0.166.0\n"), version, sizeof version) > 0);
	assert_string_equal(version, "0.166.0");
	assert_true(adapter_has_tried(&adapter_claude, "2.1.200"));
	assert_false(adapter_has_tried(&adapter_claude, "3.0.0"));
	assert_false(adapter_has_tried(&adapter_custom, "1.0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_recorded_stream_has_its_verdict),
		cmocka_unit_test(codex_asks_for_what_its_shell_would_run_and_hears_the_answer),
		cmocka_unit_test(agents_of_the_protocol_ask_for_the_command_wherever_they_say_it),
		cmocka_unit_test(the_last_words_over_the_protocol_are_those_of_the_last_turn),
		cmocka_unit_test(an_error_of_the_protocol_may_be_the_status_of_the_service),
		cmocka_unit_test(codex_is_asked_for_a_change_of_files_with_what_it_changes),
		cmocka_unit_test(an_account_is_named_only_where_it_is_to_blame),
		cmocka_unit_test(usage_is_the_last_count_of_each_message),
		cmocka_unit_test(a_count_that_is_known_too_late_is_made_up_for),
		cmocka_unit_test(money_of_a_resumed_session_is_counted_once_whichever_way_the_agent_counts),
		cmocka_unit_test(without_a_report_and_without_a_change_a_person_decides),
		cmocka_unit_test(an_end_without_a_last_word_is_a_crash_whatever_its_status),
		cmocka_unit_test(a_session_that_the_agent_does_not_know_any_more_costs_nothing),
		cmocka_unit_test(our_own_intent_beats_what_it_says),
		cmocka_unit_test(a_permission_is_answered_in_the_words_of_the_protocol),
		cmocka_unit_test(a_call_that_a_person_denied_has_not_failed_by_itself),
		cmocka_unit_test(questions_wait_for_the_one_before_and_may_be_withdrawn),
		cmocka_unit_test(acp_answers_with_an_option_that_was_offered),
		cmocka_unit_test(a_secret_never_reaches_the_log),
		cmocka_unit_test(what_the_policy_says_of_a_line_is_its_strictest_command),
		cmocka_unit_test(versions_are_compared_by_their_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
