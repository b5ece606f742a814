/*
 * Permissions that an agent asks for and its policy leaves to a person. The question goes to the server, and the clocks of the
 * run stand still until the answer is there: run_look() reads the task, run_ask_see() finds the answer in it. If it takes too long
 * the server has the run parked: the process ends unanswered, and the next attempt asks the same again and is answered at once.
 */
#include "worker/run/parts.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/take.h"

enum {
	CALL_MS = 10 * 1000,
	BODY_BYTES_MAX = 512 << 10,
	DIFF_BYTES_MAX = 32 << 10,
};

/* What is being decided, for those who show it: {"tool":…,"input":…}. Without a rule, "for this task" allows exactly this. */
static void put_data(struct json_object *object, const struct session_question *question)
{
	struct json_object data;

	if (!json_put_key(object, "data"))
		return;
	json_begin(&data, object->buf);
	json_member_string(&data, "tool", span_of(question->tool));
	if (question->input.len > 0)
		json_member_raw(&data, "input", buf_span(&question->input));
	json_end(&data);
}

static int put_question(struct run *run, const struct session_question *question)
{
	struct buf *body = &run->agent->ask_body;
	struct json_object object;

	buf_clear(body);
	json_begin(&object, body);
	json_member_string(&object, "workerId", heartbeat_worker_id(run->supervisor->heartbeat));
	json_member_string(&object, "fence", span_of(run->fence));
	json_member_string(&object, "question", span_of(question->text));
	put_data(&object, question);
	return json_end(&object);
}

int run_put_ask_target(const struct run *run, struct buf *target)
{
	buf_init(target, 1024);
	buf_put(target, run->log_target.data, run->log_target.len - (sizeof "/log" - 1));
	return buf_put_span(target, SPAN("/ask"));
}

/* It cannot be asked: nobody has allowed it. */
static void give_up(struct run *run, const char *why)
{
	log_warn("a question of an agent cannot be asked", log_cstr("task", run->task),
		log_cstr("reason", why));
	run->agent->asking = ASKING_NOTHING;
	run->asks = false;
	session_answer(&run->agent->session, false, SPAN("denied: nobody could be asked"));
	run_agent_move(run);
}

static void keep_id(struct run_agent *agent, yyjson_val *task)
{
	struct span id = json_text(yyjson_obj_get(yyjson_obj_get(task, "question"), "id"));

	snprintf(agent->question, sizeof agent->question, "%.*s", SPAN_ARGS(id));
}

static void on_asked(void *context, int fault, const struct http_answer *answer)
{
	struct run *run = context;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;

	if (run->phase != RUN_STARTED || run->agent->asking != ASKING_SENDS)
		return;
	if (fault < 0) { /* the server is away: asked again when the clock strikes */
		run->agent->asking = ASKING_NOTHING;
		run->asks = true;
		run_arm_clock(run);
		return;
	}
	if (http_answer_status(answer) != 200 || json_read_reply(http_answer_body(answer), &doc) < 0) {
		give_up(run, "the server does not take it");
		return;
	}
	run->agent->asking = ASKING_WAITS;
	run->asks = true;
	keep_id(run->agent, yyjson_doc_get_root(doc));
	run_ask_withdraw(run);
	run_ask_see(run, yyjson_doc_get_root(doc));
	if (run->phase == RUN_STARTED)
		run_arm_clock(run);
}

void run_ask(struct run *run)
{
	struct run_agent *agent = run->agent;
	const struct session_question *question = session_open_question(&agent->session);
	cleanup(buf_done) struct buf target = {0};

	if (!question || agent->asking != ASKING_NOTHING || run->stop != STOP_NOT)
		return;
	if (memory_allows(&agent->memory, question->tool, buf_span(&question->subject))) {
		session_answer(&agent->session, true, SPAN(""));
		run_agent_move(run);
		return;
	}
	if (!agent->asker)
		agent->asker = supervisor_take_client(run->supervisor);
	if (!agent->asker || run_put_ask_target(run, &target) < 0 || put_question(run, question) < 0) {
		give_up(run, "there is no memory");
		return;
	}
	snprintf(agent->asked, sizeof agent->asked, "%s", question->id);
	agent->asking = ASKING_SENDS;
	if (api_client_post(agent->asker, buf_span(&target), buf_span(&agent->ask_body),
		    heartbeat_token(run->supervisor->heartbeat), CALL_MS, on_asked, run) < 0)
		give_up(run, "the request cannot be made");
}

/* ---- taking it back ------------------------------------------------------------------------------------------ */

/* Whatever the server says: either the question is gone, or it was answered meanwhile and nobody wants to know. */
static void on_withdrawn(void *context, int fault, const struct http_answer *answer)
{
	struct run *run = context;
	struct run_agent *agent = run->agent;

	if (run->phase != RUN_STARTED || agent->asking != ASKING_WITHDRAWS)
		return;
	if (fault < 0 || http_answer_status(answer) >= 500) { /* again when the clock strikes */
		agent->asking = ASKING_WAITS;
		run_arm_clock(run);
		return;
	}
	agent->asking = ASKING_NOTHING;
	run->asks = false;
	run->heard_ms = worker_clock_ms();
	run_agent_move(run);
	run_arm_clock(run);
}

static int put_withdrawal(struct run *run)
{
	struct buf *body = &run->agent->ask_body;
	struct json_object object;

	buf_clear(body);
	json_begin(&object, body);
	json_member_string(&object, "workerId", heartbeat_worker_id(run->supervisor->heartbeat));
	json_member_string(&object, "fence", span_of(run->fence));
	json_member_string(&object, "withdraw", span_of(run->agent->question));
	return json_end(&object);
}

/* Is the question that the server was told still the open one of the session? */
static bool is_open(const struct run_agent *agent)
{
	const struct session_question *question = session_open_question(&agent->session);

	return question && strcmp(question->id, agent->asked) == 0;
}

void run_ask_withdraw(struct run *run)
{
	struct run_agent *agent = run->agent;
	cleanup(buf_done) struct buf target = {0};

	if (agent->asking != ASKING_WAITS || run->stop != STOP_NOT || !agent->question[0] || is_open(agent) ||
		api_client_is_busy(agent->asker))
		return;
	if (run_put_ask_target(run, &target) < 0 || put_withdrawal(run) < 0)
		return; /* tried again when the clock strikes */
	session_note(&agent->session, SPAN("stint: the agent has taken its question back"));
	agent->asking = ASKING_WITHDRAWS;
	if (api_client_post(agent->asker, buf_span(&target), buf_span(&agent->ask_body),
		    heartbeat_token(run->supervisor->heartbeat), CALL_MS, on_withdrawn, run) < 0)
		agent->asking = ASKING_WAITS;
}

/* ---- the answer ---------------------------------------------------------------------------------------------- */

static bool is_allowed(yyjson_val *answer)
{
	static const char *const words[] = {
		"allow", "allow once", "allow for this task", "yes", "approved", "ok"};
	struct span text = json_text(yyjson_obj_get(answer, "text"));

	if (yyjson_is_true(yyjson_obj_get(answer, "denied")) ||
		yyjson_is_true(yyjson_obj_get(answer, "deny")))
		return false;
	if (yyjson_is_str(yyjson_obj_get(answer, "allow")))
		return true;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (span_is(text, words[i]))
			return true;
	return text.len == 0;
}

void run_ask_see(struct run *run, yyjson_val *task)
{
	struct run_agent *agent = run->agent;
	yyjson_val *answer = yyjson_obj_get(task, "answer");
	const struct session_question *question = session_open_question(&agent->session);

	if (agent->asking != ASKING_WAITS)
		return;
	if (agent->question[0] && !is_open(agent)) {
		run_ask_withdraw(run);
		return;
	}
	if (yyjson_equals_str(yyjson_obj_get(task, "state"), "asking"))
		return;
	agent->asking = ASKING_NOTHING;
	run->asks = false;
	run->heard_ms = worker_clock_ms();
	if (!is_open(agent)) { /* of a server that gives questions no ids */
		run_agent_move(run);
		return;
	}
	bool allowed = yyjson_is_obj(answer) && is_allowed(answer);
	if (allowed && yyjson_equals_str(yyjson_obj_get(answer, "allow"), "task")) {
		memory_allow(&agent->memory, question->tool, buf_span(&question->subject));
		if (memory_save(&agent->memory) < 0)
			log_warn("a permission for a task cannot be kept", log_cstr("task", run->task));
	}
	session_note(&agent->session, allowed ? SPAN("stint: allowed") : SPAN("stint: denied"));
	session_answer(&agent->session, allowed, json_text(yyjson_obj_get(answer, "text")));
	run_agent_move(run);
}
