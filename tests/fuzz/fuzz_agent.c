/*
 * What an agent writes: the first byte chooses the adapter, each line is heard, questions are answered by turns. Whatever comes,
 * the facts hold together, a secret does not reach the log, and a verdict can be written.
 */
#include <assert.h>
#include <string.h>

#include "agent/session/verdict.h"
#include "base/take.h"
#include "fuzz/fuzz.h"

static const struct policy_rule rules[] = {
	{"Bash", "git *", POLICY_ASK}, {"Bash", "rm *", POLICY_DENY}, {"Write", NULL, POLICY_ASK}};
static const struct policy policy = {POLICY_ALLOW, rules, 3};

static void check(const struct agent_session *session)
{
	assert(session->question_count <= SESSION_QUESTIONS);
	assert(session->tool_count <= SESSION_TOOLS);
	assert(session->tools_failed + session->tools_denied <= session->tool_calls);
	assert(session->final != FINAL_BAD || session->fault.code);
	assert(strlen(session->id) < sizeof session->id);
	assert(buf_fault(&session->log) == 0);
	if (session->log.len > 0)
		assert(!memmem(session->log.data, session->log.len, "hushhush", 8));
}

static void judge(const struct agent_session *session, int status)
{
	struct process_end process = {.how = ENDED_EXIT, .code = status};
	struct attempt_end attempt = {.end = &process};
	struct session_end end = {.session = session, .attempt = &attempt, .worked = status & 1};
	cleanup(buf_done) struct buf members = {0};
	enum report_verb verb;

	buf_init(&members, 1 << 20);
	assert(session_judge(&end, &verb, &members) == 0);
	assert(members.len > 0);
	assert(session->final == FINAL_GOOD || verb != REPORT_COMPLETE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct agent_session session;
	size_t count = 0;

	while (adapters[count])
		count++;
	if (size == 0)
		return 0;
	const struct adapter *adapter = adapters[data[0] % count];
	struct span rest = {(const char *)data + 1, size - 1};
	session_init(&session, adapter, &policy);
	session_hide(&session, "hushhush");
	session.prompt = SPAN("a prompt");
	if (adapter->begin)
		adapter->begin(&session);
	while (rest.len > 0) {
		const char *newline = memchr(rest.data, '\n', rest.len);
		size_t len = newline ? (size_t)(newline - rest.data) : rest.len;
		session_hear(&session, (struct span){rest.data, len}, 1);
		check(&session);
		if (session_open_question(&session) && (len & 1))
			session_answer(&session, len & 2, SPAN("words"));
		buf_clear(&session.log);
		buf_clear(&session.reply);
		rest.data += len + (newline != NULL);
		rest.len -= len + (newline != NULL);
	}
	session_hear_all(&session, (struct span){(const char *)data + 1, size - 1}, 2);
	if (adapter->ended)
		adapter->ended(&session, data[0] >> 4);
	check(&session);
	judge(&session, data[0] >> 3);
	session_done(&session);
	return 0;
}
