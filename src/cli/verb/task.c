/*
 * stint task: what a program inside a task says of it. Who it is and what it holds comes from the environment
 * (STINT_TASK_ID, STINT_FENCE, STINT_WORKER_ID, STINT_TOKEN_FILE), so that an agent needs to know nothing but the verb.
 * Every report may be sent again: the server knows one it has heard. So a server that is away is waited for.
 */
#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/take.h"
#include "cli/verb/task_said.h"
#include "cli/verb/task_view.h"
#include "cli/verb/verbs.h"
#include "cli/frame/text.h"

enum {
	PATIENCE = 3,   /* 1, 2, 4 s */
	LOOK_MS = 1000, /* where the server tells no news */
	NEWS_WAIT_MS = 30 * 1000,
	NEWS_SLACK_MS = 15 * 1000,
	WAITING_PATIENCE = 10, /* about a minute */
	AWAY_MAX = 5,          /* so often in a row, about five minutes */
};

const char *task_given_or(struct cli *cli, const char *flag, const char *variable)
{
	const char *given = args_text(&cli->args, flag), *known = getenv(variable);

	return given ? given : known && known[0] ? known : NULL;
}

static int missing(struct cli *cli, const char *flag, const char *variable)
{
	return cli_fail(cli, EXIT_USAGE, "usage", "stint claim -o env   # prints all three",
		"stint %s reports on a claimed task: set $%s, or give --%s", cli->verb->name, variable, flag);
}

int task_begin(struct cli *cli, struct json_object *body)
{
	static const char claim_token[] = "stint_claim_";
	const char *fence = task_given_or(cli, "fence", "STINT_FENCE");
	const char *worker = task_given_or(cli, "worker", "STINT_WORKER_ID");

	if (!task_given_or(cli, "task", "STINT_TASK_ID"))
		return missing(cli, "task", "STINT_TASK_ID");
	int r = fence && worker ? 0 : server_find(cli);
	if (r != 0)
		return r;
	bool told = strncmp(cli->place.token, claim_token, sizeof claim_token - 1) == 0;
	if (!fence && !told)
		return missing(cli, "fence", "STINT_FENCE");
	if (!worker && !told)
		return missing(cli, "worker", "STINT_WORKER_ID");
	cli_member_text(body, "workerId", worker);
	cli_member_text(body, "fence", fence);
	return 0;
}

/* The argument as a text ("-" is standard input), and the flags. 0, or the ending. */
static int put_said(struct cli *cli, struct json_object *object, const char *member)
{
	const char *plain = args_plain(&cli->args, 0);

	if (plain && args_has(&cli->args, "result"))
		return cli_fail(cli, EXIT_USAGE, "usage", cli_text(cli, "stint help %s", cli->verb->name),
			"give a text or --result, not both");
	if (plain)
		json_member_string(
			object, member, strcmp(plain, "-") == 0 ? cli_read_input(cli, "-") : span_of(plain));
	cli_member_flags(cli, object);
	return 0;
}

/* "error":{…} with what was said as its message. */
static int put_error(struct cli *cli, struct json_object *body, const char *code)
{
	struct json_object error;

	json_put_key(body, "error");
	json_begin(&error, body->buf);
	if (!args_has(&cli->args, "code"))
		json_member_string(&error, "code", span_of(code));
	if (args_has(&cli->args, "no-retry"))
		json_member_bool(&error, "retry", false);
	int r = put_said(cli, &error, "message");
	json_end(&error);
	return r;
}

/* What each of the verbs sends, and says when it was heard. */
struct task_report {
	const struct verb *verb;
	const char *path;
	const char *member; /* that the argument becomes; NULL: it and the flags are members of an error … */
	const char *code;   /* … of this code, unless --code says another */
	const char *done;
};

static const struct task_report reports[] = {
	{&verb_task_progress, "/api/tasks/*/progress", "note", NULL, NULL},
	{&verb_task_done, "/api/tasks/*/complete", "result", NULL, "is done"},
	{&verb_task_review, "/api/tasks/*/review", "result", NULL, "waits for a verdict"},
	{&verb_task_fail, "/api/tasks/*/fail", NULL, "EXECUTION_ERROR", "has failed this time"},
	{&verb_task_block, "/api/tasks/*/block", NULL, "STOPPED", "is blocked until a person acts"},
	{&verb_task_ask, "/api/tasks/*/ask", "question", NULL, NULL},
	{&verb_task_release, "/api/tasks/*/release", "reason", NULL, "is given back"},
};

static const struct task_report *report_of(const struct verb *verb)
{
	const struct task_report *report = reports;

	while (report->verb != verb) {
		report++;
		assert(report < reports + sizeof reports / sizeof *reports);
	}
	return report;
}

static int report_send(struct cli *cli, struct reply *ret_reply)
{
	const struct task_report *report = report_of(cli->verb);
	struct json_object *body = cli_body(cli);

	int r = task_begin(cli, body);
	if (r == 0)
		r = report->member ? put_said(cli, body, report->member) : put_error(cli, body, report->code);
	if (r != 0)
		return r;
	struct ask question = {
		.method = HTTP_METHOD_POST,
		.path = report->path,
		.names = {task_given_or(cli, "task", "STINT_TASK_ID")},
		.body = cli_body_end(cli),
		.may_repeat = true,
		.patience = PATIENCE,
	};
	return server_ask(cli, &question, ret_reply);
}

static int run_report(struct cli *cli)
{
	cleanup(reply_done) struct reply reply = {0};
	int r = report_send(cli, &reply);

	if (r != 0)
		return r;
	struct span id = field_text(reply.root, "id");
	if (cli->output == OUTPUT_JSON)
		cli_put_json(cli, "task", reply.root);
	else if (field_get(reply.root, "report")) /* a supervisor ends the attempt, and may know better */
		cli_say(cli, "%.*s: saved; it counts when the process has ended", SPAN_ARGS(id));
	else
		cli_say(cli, "%.*s %s", SPAN_ARGS(id), report_of(cli->verb)->done);
	return 0;
}

#define OF_A_TASK    .gives = GIVES_JSON
#define ENDS_ATTEMPT OF_A_TASK, .run = run_report

/* ---- progress ----------------------------------------------------------------------------------------------------- */

static const struct flag progress_flags[] = {
	{"percent", 0, FLAG_NUMBER, .value = "N", .text = "progress in percent", .least = 0, .most = 100,
		.member = "percent"},
	{"data", 0, FLAG_JSON, OFFER_FILES, .value = "JSON",
		.text = "a checkpoint: the next attempt gets the last one", .member = "data"},
	{"event", 0, FLAG_TEXT, .value = "NAME", .text = "the name of a stage, for workflows",
		.member = "event"},
	{"lease", 0, FLAG_DURATION, .value = "TIME", .text = "renew the lease for that long",
		.member = "leaseMs"},
	WHO,
};

/* "cancel" on standard output is the server's word: a script that looks for it can stop. */
static int run_progress(struct cli *cli)
{
	cleanup(reply_done) struct reply reply = {0};
	size_t at, count;
	yyjson_val *command;
	int r = report_send(cli, &reply);

	if (r != 0)
		return r;
	if (cli->output == OUTPUT_JSON)
		cli_put_json(cli, "progress", reply.root);
	else
		yyjson_arr_foreach(field_get(reply.root, "commands"), at, count, command)
			cli_put(cli, "%.*s\n", SPAN_ARGS(field_text(command, "type")));
	cli_say(cli, "progress saved; the claim lasts another %.*s",
		SPAN_ARGS(view_duration(cli, field_int(reply.root, "leaseMs", 0))));
	return 0;
}

const struct verb verb_task_progress = {
	.name = "task progress",
	OF_A_TASK,
	.arguments = "[NOTE]",
	.brief = "report progress",
	.text = "Reports progress and renews the lease. Prints what the server wants, if anything: cancel, park (the answer "
		"takes too long to wait for), quiet or terminate, one per line.",
	.flags = progress_flags,
	.examples = "stint task progress \"compiling\" --percent 40\n"
		    "[ \"$(stint task progress)\" = cancel ] && exit 1\n",
	.run = run_progress,
};

/* ---- the end of it ------------------------------------------------------------------------------------------------ */

static const struct flag done_flags[] = {
	{"result", 0, FLAG_JSON, OFFER_FILES, .value = "JSON",
		.text = "the result as JSON, @FILE or -, instead of a text", .member = "result"},
	WHO,
};

const struct verb verb_task_done = {
	.name = "task done",
	ENDS_ATTEMPT,
	.arguments = "[RESULT]",
	.brief = "finished, with a result",
	.text = "The work is finished. The result is a text, - for standard input, or JSON with --result.",
	.flags = done_flags,
	.examples = "stint task done \"42 tests passed\"\n"
		    "make report | stint task done -\n"
		    "stint task done --result @out.json\n",
};

static const struct flag review_flags[] = {
	{"result", 0, FLAG_JSON, OFFER_FILES, .value = "JSON",
		.text = "the result as JSON, @FILE or -, instead of a text", .member = "result"},
	{"evidence", 0, FLAG_JSON, OFFER_FILES, .value = "JSON", .text = "what shows that it is right",
		.member = "evidence"},
	WHO,
};

const struct verb verb_task_review = {
	.name = "task review",
	ENDS_ATTEMPT,
	.arguments = "[RESULT]",
	.brief = "finished; somebody must look",
	.text = "The work is finished and somebody else must say that it is right.",
	.flags = review_flags,
	.examples = "stint task review \"see the pull request\" --evidence '{\"pr\":17}'\n",
};

/* ---- failure ------------------------------------------------------------------------------------------------------- */

static const struct flag fail_flags[] = {
	{"code", 0, FLAG_TEXT, .value = "CODE",
		.text = "such as EXECUTION_ERROR (default), CHECK_FAILED, TASK_TIMEOUT, QUOTA",
		.member = "code"},
	{"class", 0, FLAG_CHOICE, .value = "task|timeout|crash|host|quota|policy",
		.text = "the class of a code of your own", .member = "class"},
	{"retry-at", 0, FLAG_MOMENT, .value = "TIME", .text = "no new attempt before that",
		.member = "retryAt"},
	{"no-retry", 0, FLAG_SWITCH, .text = "another attempt would fail the same way"},
	{"credential", 0, FLAG_TEXT, .value = "NAME", .text = "the account that is exhausted, with QUOTA",
		.member = "credential"},
	{"details", 0, FLAG_JSON, OFFER_FILES, .value = "JSON", .text = "more about it, as JSON",
		.member = "details"},
	WHO,
};

static const struct flag block_flags[] = {
	{"code", 0, FLAG_TEXT, .value = "CODE",
		.text = "such as BAD_WORKDIR, BUDGET_EXCEEDED (default STOPPED)", .member = "code"},
	{"details", 0, FLAG_JSON, OFFER_FILES, .value = "JSON", .text = "more about it, as JSON",
		.member = "details"},
	WHO,
};

const struct verb verb_task_fail = {
	.name = "task fail",
	ENDS_ATTEMPT,
	.arguments = "MESSAGE",
	.brief = "this attempt failed",
	.text = "This attempt failed. Whether there is another one depends on the class of the failure and on how many are "
		"left.",
	.flags = fail_flags,
	.examples = "stint task fail \"2 tests failed\" --code CHECK_FAILED\n"
		    "stint task fail \"rate limited\" --code QUOTA --credential work --retry-at 1h\n",
};

const struct verb verb_task_block = {
	.name = "task block",
	ENDS_ATTEMPT,
	.arguments = "MESSAGE",
	.brief = "a person must act first",
	.text = "The task needs a person to change something first; stint retry starts it again.",
	.flags = block_flags,
	.examples = "stint task block \"no access to the repository\"\n",
};

/* ---- asking, giving back --------------------------------------------------------------------------------------------- */

static const struct flag ask_flags[] = {
	{"option", 0, FLAG_TEXT, .many = true, .value = "TEXT", .text = "an answer to choose from",
		.member = "options"},
	{"free-text", 0, FLAG_SWITCH, .text = "with --option: another answer is fine, too",
		.member = "freeText"},
	{"deadline", 0, FLAG_MOMENT, .value = "TIME", .text = "the answer is needed by then",
		.member = "deadline"},
	{"wait", 'w', FLAG_SWITCH, .text = "wait for the answer and print it"},
	{"timeout", 't', FLAG_DURATION, .value = "TIME",
		.text = "with --wait: give up after that long, with exit status 8; the question stays open"},
	WHO,
};

/* The answer, as text: what a person typed may be on several lines. Exit status 9: it is no. */
static int put_answer(struct cli *cli, yyjson_val *task)
{
	yyjson_val *answer = field_get(task, "answer");
	struct span text = field_text(answer, "text");
	bool denied = field_bool(answer, "deny");

	if (cli->output == OUTPUT_JSON)
		cli_put_json(cli, "task", task);
	else if (cli->term.tty)
		text_clean(&cli->out, text, cli->term.utf8, true);
	else
		buf_put_span(&cli->out, text);
	if (cli->output != OUTPUT_JSON && text.len > 0)
		cli_put(cli, "\n");
	if (denied)
		cli_say(cli, "the answer is no");
	return denied ? EXIT_UNSUCCESSFUL : EXIT_GOOD;
}

/* Is the question still open, and ours? */
static bool is_waiting(yyjson_val *task, struct span fence)
{
	return span_equal(field_text(task, "state"), SPAN("asking")) &&
		span_equal(field_text(task, "fence"), fence) && field_text(task, "workerId").len > 0;
}

/* What the question came to: an answer, or the claim that it was asked with has ended. */
static int tell_answer(struct cli *cli, yyjson_val *task, struct span fence)
{
	if (span_equal(field_text(task, "fence"), fence) && yyjson_is_obj(field_get(task, "answer")))
		return put_answer(cli, task);
	return cli_fail(cli, EXIT_CONFLICT, "stale_claim",
		cli_text(cli, "stint why %s", field_cstr(cli, task, "id")),
		"the claim has ended while its question was open; the next attempt gets the answer");
}

/* Until something has happened to what the worker of the task holds, at most so long. The server tells it for its own; for
 * others, and for older servers, it is a short while. `seq` is the place of the last answer. 0, or the ending. */
static int wait_for_news(struct cli *cli, const char *worker, int64_t most_ms, int64_t *seq)
{
	int64_t wait_ms = most_ms < NEWS_WAIT_MS ? most_ms : NEWS_WAIT_MS,
		begun_ms = clock_ms(CLOCK_MONOTONIC);
	struct ask question = {.method = HTTP_METHOD_GET,
		.path = "/api/workers/*/news",
		.names = {worker},
		.query =
			span_of(cli_text(cli, "after=%lld&waitMs=%lld", (long long)*seq, (long long)wait_ms)),
		.patience = WAITING_PATIENCE,
		.timeout_ms = wait_ms + NEWS_SLACK_MS,
		.quiet_missing = true,
		.keeps_refusal = 410};
	struct reply reply;
	int r = server_ask(cli, &question, &reply);
	bool waited =
		r == 0 && (field_bool(reply.root, "news") || clock_ms(CLOCK_MONOTONIC) - begun_ms >= wait_ms);

	if (r == 0) {
		*seq = field_int(reply.root, "seq", *seq);
		reply_done(&reply);
	}
	if (!waited && (r == 0 || r == EXIT_NOT_FOUND))
		poll(NULL, 0, (int)(most_ms < LOOK_MS ? most_ms : LOOK_MS));
	return r == EXIT_NOT_FOUND ? 0 : r;
}

/* The server may be away for a while; a wait for a person has the time. */
static int wait_for_answer(struct cli *cli, struct span fence)
{
	int64_t timeout_ms =
		args_has(&cli->args, "timeout") ? args_number(&cli->args, "timeout", 0) : INT64_MAX;
	int64_t begun_ms = clock_ms(CLOCK_MONOTONIC), seq = 0;
	struct ask question = {.method = HTTP_METHOD_GET,
		.path = "/api/tasks/*",
		.names = {task_given_or(cli, "task", "STINT_TASK_ID")},
		.patience = WAITING_PATIENCE};
	struct reply reply;
	uint32_t away = 0;

	for (;;) {
		int r = server_ask(cli, &question, &reply);
		if (r == EXIT_UNREACHABLE && ++away < AWAY_MAX)
			continue;
		if (r != 0)
			return r;
		away = 0;
		bool waits = is_waiting(reply.root, fence);
		const char *worker = field_cstr(cli, reply.root, "workerId");
		r = waits ? 0 : tell_answer(cli, reply.root, fence);
		reply_done(&reply);
		if (!waits)
			return r;
		int64_t left_ms = timeout_ms - (clock_ms(CLOCK_MONOTONIC) - begun_ms);
		if (left_ms <= 0)
			return cli_fail(cli, EXIT_TIMED_OUT, "timed_out", NULL, "no answer came in time");
		r = wait_for_news(cli, worker, left_ms, &seq);
		if (r != 0 && r != EXIT_UNREACHABLE)
			return r;
	}
}

/* What became of the question: answered already, waited for with --wait, or left for a person. */
static int hear_asked(struct cli *cli, yyjson_val *task)
{
	struct span fence = span_of(field_cstr(cli, task, "fence"));

	if (!span_equal(field_text(task, "state"), SPAN("asking")))
		return tell_answer(cli, task, fence);
	if (args_has(&cli->args, "wait"))
		return wait_for_answer(cli, fence);
	if (cli->output == OUTPUT_JSON)
		cli_put_json(cli, "task", task);
	else
		cli_say(cli, "%.*s waits for an answer", SPAN_ARGS(field_text(task, "id")));
	return 0;
}

static int run_ask(struct cli *cli)
{
	cleanup(reply_done) struct reply reply = {0};
	int r = report_send(cli, &reply);

	return r != 0 ? r : hear_asked(cli, reply.root);
}

const struct verb verb_task_ask = {
	.name = "task ask",
	OF_A_TASK,
	.arguments = "QUESTION",
	.brief = "ask a person",
	.text = "Asks a person (stint inbox, stint answer). With --wait it prints the answer when it is there; without, it ends "
		"at once and prints nothing. Exit status 9: the answer is no.\n\n"
		"The time limit of the attempt is paused while the question is open. After two minutes (ask.parkMs) the worker ends "
		"the waiting process: the question stays open, and the answer starts the next attempt. There the same question is "
		"answered at once, so a script can start again from its first line.",
	.flags = ask_flags,
	.examples = "stint task ask \"which branch?\" --option main --option release\n"
		    "branch=$(stint task ask \"which branch?\" --wait)\n",
	.run = run_ask,
};

static const struct flag release_flags[] = {
	{"delay", 0, FLAG_DURATION, .value = "TIME", .text = "no worker gets it before that",
		.member = "delayMs"},
	WHO,
};

const struct verb verb_task_release = {
	.name = "task release",
	ENDS_ATTEMPT,
	.arguments = "[REASON]",
	.brief = "give it back unfinished",
	.text = "Gives the task back: nothing is spent, and somebody else may take it.",
	.flags = release_flags,
	.examples = "stint task release \"the machine is going down\" --delay 5m\n",
};
