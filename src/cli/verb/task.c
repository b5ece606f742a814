/*
 * stint task: what a program inside a task says of it. Who it is and what it holds comes from the environment
 * (STINT_TASK_ID, STINT_FENCE, STINT_WORKER_ID, STINT_TOKEN_FILE), so that an agent needs to know nothing but the verb.
 * Every report may be sent again: the server knows one it has heard. So a server that is away is waited for.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/take.h"
#include "cli/verb/task_view.h"
#include "cli/frame/text.h"

enum {
	BODY_BYTES_MAX = 32 << 20,
	PATIENCE = 3,   /* 1, 2, 4 s */
	LOOK_MS = 1000, /* where the server tells no news */
	NEWS_WAIT_MS = 30 * 1000,
	NEWS_SLACK_MS = 15 * 1000,
	WAITING_PATIENCE = 10, /* about a minute */
	AWAY_MAX = 5,          /* so often in a row, about five minutes */
};

#define WHO                                                                                                \
	{"task", 0, FLAG_TEXT, OFFER_TASKS, .value = "ID", .text = "the task (default $STINT_TASK_ID)"},   \
		{"fence", 0, FLAG_TEXT, .value = "N", .text = "the claim's fence (default $STINT_FENCE)"}, \
		{"worker", 0, FLAG_TEXT, OFFER_WORKERS, .value = "ID",                                     \
			.text = "who holds it (default $STINT_WORKER_ID)"},                                \
		{0}

static const char *given_or(struct cli *cli, const char *flag, const char *variable)
{
	const char *given = args_text(&cli->args, flag), *known = getenv(variable);

	return given ? given : known && known[0] ? known : NULL;
}

static int missing(struct cli *cli, const char *flag, const char *variable)
{
	return cli_fail(cli, EXIT_USAGE, "usage", "stint claim -o env   (prints all three)",
		"stint %s is for programs inside a task: there is no $%s, and no --%s", cli->verb->name,
		variable, flag);
}

/* The beginning of a report: who says it. The token of a claim says it itself. 0, or the ending. */
static int begin(struct cli *cli, struct json_object *body)
{
	static const char claim_token[] = "stint_claim_";
	const char *fence = given_or(cli, "fence", "STINT_FENCE");
	const char *worker = given_or(cli, "worker", "STINT_WORKER_ID");

	if (!given_or(cli, "task", "STINT_TASK_ID"))
		return missing(cli, "task", "STINT_TASK_ID");
	int r = fence && worker ? 0 : server_find(cli);
	if (r != 0)
		return r;
	bool told = strncmp(cli->place.token, claim_token, sizeof claim_token - 1) == 0;
	if (!fence && !told)
		return missing(cli, "fence", "STINT_FENCE");
	if (!worker && !told)
		return missing(cli, "worker", "STINT_WORKER_ID");
	if (worker)
		json_member_string(body, "workerId", span_of(worker));
	if (fence)
		json_member_string(body, "fence", span_of(fence));
	return 0;
}

static int report_send(struct cli *cli, const char *path, struct json_object *body, struct reply *ret_reply)
{
	struct ask question = {
		.method = HTTP_METHOD_POST,
		.path = path,
		.names = {given_or(cli, "task", "STINT_TASK_ID")},
		.may_repeat = true,
		.patience = PATIENCE,
	};
	int fault = json_end(body);

	if (fault < 0)
		return cli_fail_fault(cli, fault);
	question.body = buf_span(body->buf);
	return server_ask(cli, &question, ret_reply);
}

static int send_and_tell(struct cli *cli, const char *path, struct json_object *body, const char *done)
{
	struct reply reply;

	int r = report_send(cli, path, body, &reply);
	if (r != 0)
		return r;
	if (cli->form == FORM_JSON)
		cli_put_json(cli, "task", reply.root);
	else if (field_get(reply.root, "report")) /* a supervisor ends the attempt, and may know better */
		cli_say(cli, "%.*s: noted; it counts when the process has ended",
			SPAN_ARGS(field_text(reply.root, "id")));
	else
		cli_say(cli, "%.*s %s", SPAN_ARGS(field_text(reply.root, "id")), done);
	reply_done(&reply);
	return 0;
}

/* A JSON flag as a member. */
static int put_json_flag(struct cli *cli, struct json_object *body, const char *flag, const char *key)
{
	struct span json = {0};
	int r = cli_read_json_flag(cli, flag, &json);

	if (r == 0 && json.len > 0)
		json_member_raw(body, key, json);
	return r;
}

/* The plain argument as text; "-" is standard input. */
static int put_plain(struct cli *cli, struct json_object *body, const char *key)
{
	const char *plain = args_plain(&cli->args, 0);
	struct span text = span_of(plain);
	int r = plain && strcmp(plain, "-") == 0 ? cli_read_input(cli, "-", &text) : 0;

	if (r == 0 && plain)
		json_member_string(body, key, text);
	return r;
}

#define REPORT(cli, body, text)                  \
	cleanup(buf_done) struct buf text = {0}; \
	struct json_object body;                 \
	buf_init(&(text), BODY_BYTES_MAX);       \
	json_begin(&(body), &(text));            \
	int r = begin(cli, &(body));             \
	if (r != 0)                              \
	return r

/* ---- progress ----------------------------------------------------------------------------------------------------- */

static const struct flag progress_flags[] = {
	{"percent", 0, FLAG_NUMBER, .value = "N", .text = "how far it is", .least = 0, .most = 100},
	{"data", 0, FLAG_JSON, OFFER_FILES, .value = "JSON",
		.text = "a checkpoint: the next attempt gets the last one"},
	{"event", 0, FLAG_TEXT, .value = "NAME", .text = "the name of a stage, for workflows"},
	{"lease", 0, FLAG_DURATION, .value = "TIME", .text = "renew the lease for that long"},
	WHO,
};

/* "cancel" on standard output is the server's word: a script that looks for it can stop. */
static int run_progress(struct cli *cli)
{
	size_t at, count;
	yyjson_val *command;
	struct reply reply;
	REPORT(cli, body, text);

	r = put_plain(cli, &body, "note");
	if (r == 0)
		r = put_json_flag(cli, &body, "data", "data");
	if (r != 0)
		return r;
	if (args_has(&cli->args, "percent"))
		json_member_int(&body, "percent", args_number(&cli->args, "percent", 0));
	if (args_text(&cli->args, "event"))
		json_member_string(&body, "event", span_of(args_text(&cli->args, "event")));
	if (args_has(&cli->args, "lease"))
		json_member_int(&body, "leaseMs", args_number(&cli->args, "lease", 0));
	r = report_send(cli, "/api/tasks/*/progress", &body, &reply);
	if (r != 0)
		return r;
	if (cli->form == FORM_JSON)
		cli_put_json(cli, "progress", reply.root);
	else
		yyjson_arr_foreach(field_get(reply.root, "commands"), at, count, command)
			cli_put(cli, "%.*s\n", SPAN_ARGS(field_text(command, "type")));
	cli_say(cli, "noted; the lease runs for %.*s",
		SPAN_ARGS(view_duration(cli, field_int(reply.root, "leaseMs", 0))));
	reply_done(&reply);
	return 0;
}

const struct verb verb_task_progress = {
	.name = "task progress",
	.group = GROUP_PROTOCOL,
	.arguments = "[NOTE]",
	.most = 1,
	.gives = GIVES_JSON,
	.brief = "still at it",
	.text = "Says how far it is, and renews the lease. Prints what the server wants, if anything: cancel, park (the answer "
		"takes too long to wait for), quiet or terminate, one per line.",
	.flags = progress_flags,
	.examples = "stint task progress \"compiling\" --percent 40\n"
		    "[ \"$(stint task progress)\" = cancel ] && exit 1\n",
	.run = run_progress,
};

/* ---- the end of it ------------------------------------------------------------------------------------------------ */

static const struct flag done_flags[] = {
	{"result", 0, FLAG_JSON, OFFER_FILES, .value = "JSON",
		.text = "the result as JSON, @FILE or -, instead of a text"},
	WHO,
};

static int put_result(struct cli *cli, struct json_object *body)
{
	if (args_has(&cli->args, "result") && cli->args.plain_count > 0)
		return cli_fail(cli, EXIT_USAGE, "usage", "stint help task done",
			"give a text or --result, not both");
	return args_has(&cli->args, "result") ? put_json_flag(cli, body, "result", "result")
					      : put_plain(cli, body, "result");
}

static int run_done(struct cli *cli)
{
	REPORT(cli, body, text);

	r = put_result(cli, &body);
	return r != 0 ? r : send_and_tell(cli, "/api/tasks/*/complete", &body, "is done");
}

const struct verb verb_task_done = {
	.name = "task done",
	.group = GROUP_PROTOCOL,
	.arguments = "[RESULT]",
	.most = 1,
	.gives = GIVES_JSON,
	.brief = "finished, with a result",
	.text = "The work is finished. The result is a text, - for standard input, or JSON with --result.",
	.flags = done_flags,
	.examples = "stint task done \"42 tests passed\"\n"
		    "make report | stint task done -\n"
		    "stint task done --result @out.json\n",
	.run = run_done,
};

static const struct flag review_flags[] = {
	{"result", 0, FLAG_JSON, OFFER_FILES, .value = "JSON",
		.text = "the result as JSON, @FILE or -, instead of a text"},
	{"evidence", 0, FLAG_JSON, OFFER_FILES, .value = "JSON", .text = "what shows that it is right"},
	WHO,
};

static int run_review(struct cli *cli)
{
	REPORT(cli, body, text);

	r = put_result(cli, &body);
	if (r == 0)
		r = put_json_flag(cli, &body, "evidence", "evidence");
	return r != 0 ? r : send_and_tell(cli, "/api/tasks/*/review", &body, "waits for a verdict");
}

const struct verb verb_task_review = {
	.name = "task review",
	.group = GROUP_PROTOCOL,
	.arguments = "[RESULT]",
	.most = 1,
	.gives = GIVES_JSON,
	.brief = "finished; somebody must look",
	.text = "The work is finished and somebody else must say that it is right.",
	.flags = review_flags,
	.examples = "stint task review \"see the pull request\" --evidence '{\"pr\":17}'\n",
	.run = run_review,
};

/* ---- failure ------------------------------------------------------------------------------------------------------- */

static const struct flag fail_flags[] = {
	{"code", 0, FLAG_TEXT, .value = "CODE",
		.text = "such as EXECUTION_ERROR (default), CHECK_FAILED, TASK_TIMEOUT, QUOTA"},
	{"class", 0, FLAG_CHOICE, .value = "task|timeout|crash|host|quota|policy",
		.text = "the class of a code of your own"},
	{"retry-at", 0, FLAG_MOMENT, .value = "TIME", .text = "no new attempt before that"},
	{"no-retry", 0, FLAG_SWITCH, .text = "another attempt would fail the same way"},
	{"credential", 0, FLAG_TEXT, .value = "NAME", .text = "the account that is exhausted, with QUOTA"},
	{"details", 0, FLAG_JSON, OFFER_FILES, .value = "JSON", .text = "anything more"},
	WHO,
};

static const struct flag block_flags[] = {
	{"code", 0, FLAG_TEXT, .value = "CODE",
		.text = "such as BAD_WORKDIR, BUDGET_EXCEEDED (default STOPPED)"},
	{"details", 0, FLAG_JSON, OFFER_FILES, .value = "JSON", .text = "anything more"},
	WHO,
};

/* "error":{…}; the message is the plain argument. */
static int put_error(struct cli *cli, struct json_object *body, const char *code)
{
	const struct args *args = &cli->args;
	cleanup(buf_done) struct buf text = {0};
	struct json_object error;

	buf_init(&text, BODY_BYTES_MAX);
	json_begin(&error, &text);
	json_member_string(&error, "code", span_of(args_text(args, "code") ? args_text(args, "code") : code));
	int r = put_plain(cli, &error, "message");
	if (r == 0)
		r = put_json_flag(cli, &error, "details", "details");
	if (r != 0)
		return r;
	if (args_text(args, "class"))
		json_member_string(&error, "class", span_of(args_text(args, "class")));
	if (args_has(args, "retry-at"))
		json_member_int(&error, "retryAt", args_number(args, "retry-at", 0));
	if (args_has(args, "no-retry"))
		json_member_bool(&error, "retry", false);
	if (args_text(args, "credential"))
		json_member_string(&error, "credential", span_of(args_text(args, "credential")));
	json_end(&error);
	json_member_buf(body, "error", &text);
	return 0;
}

static int run_fail(struct cli *cli)
{
	REPORT(cli, body, text);

	r = put_error(cli, &body, "EXECUTION_ERROR");
	return r != 0 ? r : send_and_tell(cli, "/api/tasks/*/fail", &body, "has failed this time");
}

static int run_block(struct cli *cli)
{
	REPORT(cli, body, text);

	r = put_error(cli, &body, "STOPPED");
	return r != 0 ? r : send_and_tell(cli, "/api/tasks/*/block", &body, "is blocked until a person acts");
}

const struct verb verb_task_fail = {
	.name = "task fail",
	.group = GROUP_PROTOCOL,
	.arguments = "MESSAGE",
	.least = 1,
	.most = 1,
	.gives = GIVES_JSON,
	.brief = "this attempt failed",
	.text = "This attempt failed. Whether there is another one depends on the class of the failure and on how many are "
		"left.",
	.flags = fail_flags,
	.examples = "stint task fail \"2 tests failed\" --code CHECK_FAILED\n"
		    "stint task fail \"rate limited\" --code QUOTA --credential work --retry-at 1h\n",
	.run = run_fail,
};

const struct verb verb_task_block = {
	.name = "task block",
	.group = GROUP_PROTOCOL,
	.arguments = "MESSAGE",
	.least = 1,
	.most = 1,
	.gives = GIVES_JSON,
	.brief = "a person must act first",
	.text = "It cannot go on before a person has changed something; stint retry lets it go on then.",
	.flags = block_flags,
	.examples = "stint task block \"no access to the repository\"\n",
	.run = run_block,
};

/* ---- asking, giving back --------------------------------------------------------------------------------------------- */

static const struct flag ask_flags[] = {
	{"option", 0, FLAG_TEXT, .many = true, .value = "TEXT", .text = "an answer to choose from"},
	{"deadline", 0, FLAG_MOMENT, .value = "TIME", .text = "the answer is needed by then"},
	{"wait", 'w', FLAG_SWITCH, .text = "until it is there, and print it"},
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

	if (cli->form == FORM_JSON)
		cli_put_json(cli, "task", task);
	else if (cli->term.tty)
		text_clean(&cli->out, text, cli->term.utf8, true);
	else
		buf_put_span(&cli->out, text);
	if (cli->form != FORM_JSON && text.len > 0)
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
		.names = {given_or(cli, "task", "STINT_TASK_ID")},
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
	if (cli->form == FORM_JSON)
		cli_put_json(cli, "task", task);
	else
		cli_say(cli, "%.*s waits for an answer", SPAN_ARGS(field_text(task, "id")));
	return 0;
}

static int run_ask(struct cli *cli)
{
	struct reply reply;
	cleanup(buf_done) struct buf options = {0};
	const char *option;
	size_t at = 0;
	REPORT(cli, body, text);

	r = put_plain(cli, &body, "question");
	if (r != 0)
		return r;
	buf_init(&options, 1 << 20);
	while ((option = args_each(&cli->args, "option", &at))) {
		buf_put_byte(&options, options.len > 0 ? ',' : '[');
		json_put_string(&options, span_of(option));
	}
	if (cli_span(cli, &options).len > 0) {
		buf_put_byte(&options, ']');
		json_member_buf(&body, "options", &options);
	}
	if (args_has(&cli->args, "deadline"))
		json_member_int(&body, "deadline", args_number(&cli->args, "deadline", 0));
	r = report_send(cli, "/api/tasks/*/ask", &body, &reply);
	if (r != 0)
		return r;
	r = hear_asked(cli, reply.root);
	reply_done(&reply);
	return r;
}

const struct verb verb_task_ask = {
	.name = "task ask",
	.group = GROUP_PROTOCOL,
	.arguments = "QUESTION",
	.least = 1,
	.most = 1,
	.gives = GIVES_JSON,
	.brief = "ask a person",
	.text = "Asks a person (stint inbox, stint answer). With --wait it prints the answer when it is there; without, it ends "
		"at once and prints nothing. Exit status 9: the answer is no.\n\n"
		"The time limit of the attempt stands still meanwhile. After two minutes (ask.parkMs) a worker ends the waiting process; the question stays "
		"open, and the answer begins the next attempt. Asked there again, in the same words, it is answered at once: a "
		"script may begin anew from its first line.",
	.flags = ask_flags,
	.examples = "stint task ask \"which branch?\" --option main --option release\n"
		    "branch=$(stint task ask \"which branch?\" --wait)\n",
	.run = run_ask,
};

static const struct flag release_flags[] = {
	{"delay", 0, FLAG_DURATION, .value = "TIME", .text = "no worker gets it before that"},
	WHO,
};

static int run_release(struct cli *cli)
{
	REPORT(cli, body, text);

	r = put_plain(cli, &body, "reason");
	if (r != 0)
		return r;
	if (args_has(&cli->args, "delay"))
		json_member_int(&body, "delayMs", args_number(&cli->args, "delay", 0));
	return send_and_tell(cli, "/api/tasks/*/release", &body, "is given back");
}

const struct verb verb_task_release = {
	.name = "task release",
	.group = GROUP_PROTOCOL,
	.arguments = "[REASON]",
	.most = 1,
	.gives = GIVES_JSON,
	.brief = "give it back unfinished",
	.text = "Gives the task back: nothing is spent, and somebody else may take it.",
	.flags = release_flags,
	.examples = "stint task release \"the machine is going down\" --delay 5m\n",
	.run = run_release,
};
