/*
 * stint run: a command as a task, and what it writes as if it ran here. It ends with the command's own status: a worker
 * says in the error of a failed attempt how the process ended.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/take.h"
#include "base/utf8.h"
#include "cli/frame/text.h"
#include "cli/verb/task_view.h"

enum {
	TITLE_BYTES_MAX = 200,
	LOOK_MS_MIN = 20, /* doubled while nothing happens */
	LOOK_MS_MAX = 500,
	LONELY_MS = 3000, /* no worker has claimed it by then: say why */
	SIGNALLED = 128,
};

static const struct flag flags[] = {
	{"queue", 'Q', FLAG_TEXT, OFFER_QUEUES, .value = "NAME", .text = "the queue (default \"shell\")"},
	{"executor", 'x', FLAG_TEXT, .value = "NAME",
		.text = "the executor that runs the command (default \"shell\")"},
	{"cwd", 0, FLAG_TEXT, OFFER_FILES, .value = "DIR", .text = "where it runs (default here)"},
	{"no-cwd", 0, FLAG_SWITCH, .text = "run it in an empty directory"},
	{"timeout", 0, FLAG_DURATION, .value = "TIME", .text = "how long it may run (default 30m)",
		.member = "timeoutMs"},
	{"priority", 'p', FLAG_PRIORITY, .value = "N", .text = "higher first", .member = "priority"},
	{"detach", 'd', FLAG_SWITCH, .text = "print the id and do not wait"},
	{"raw", 0, FLAG_SWITCH, .text = "print its output unchanged, colours and all, on a terminal too"},
	{0},
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
	(void)number;
	interrupted++;
}

/* ---- the task ------------------------------------------------------------------------------------------------ */

static struct span title_of(struct cli *cli)
{
	const char *title = "";

	for (size_t i = 0; i < cli->args.plain_count && strlen(title) < TITLE_BYTES_MAX; i++)
		title = cli_text(cli, "%s%s%s", title, i > 0 ? " " : "", args_plain(&cli->args, i));
	return utf8_cut(span_of(title), TITLE_BYTES_MAX);
}

/* "payload":{"argv":[…]} */
static void put_payload(struct cli *cli, struct json_object *task)
{
	bool any = false;

	json_put_key(task, "payload");
	buf_put_span(task->buf, SPAN("{\"argv\":["));
	for (size_t i = 0; i < cli->args.plain_count; i++) {
		json_put_comma(task->buf, &any);
		json_put_string(task->buf, span_of(args_plain(&cli->args, i)));
	}
	buf_put_span(task->buf, SPAN("]}"));
}

/* Is the state directory this directory, or beneath it? A command must not reach it, so it cannot work there. */
static bool holds_state(struct cli *cli, const char *cwd)
{
	char home[1024];
	size_t len = strlen(cwd);

	while (len > 1 && cwd[len - 1] == '/')
		len--;
	return place_home(cli, home, sizeof home) == 0 && strncmp(home, cwd, len) == 0 &&
		(home[len] == '/' || home[len] == 0 || len == 1);
}

static void put_task(struct cli *cli, struct json_object *task)
{
	const char *queue = args_text(&cli->args, "queue"), *executor = args_text(&cli->args, "executor");
	const char *cwd = args_text(&cli->args, "cwd");

	cwd = cli_path(cli, cwd ? cwd : ".");
	if (cwd && !args_has(&cli->args, "cwd") && !args_has(&cli->args, "no-cwd") && holds_state(cli, cwd)) {
		cli_say(cli,
			"stint: the command runs in an empty directory, because the state directory of stint is inside this one");
		cwd = NULL;
	}
	json_member_string(task, "title", title_of(cli));
	json_member_string(task, "queue", span_of(queue ? queue : "shell"));
	json_member_string(task, "executor", span_of(executor ? executor : "shell"));
	put_payload(cli, task);
	if (!args_has(&cli->args, "no-cwd"))
		cli_member_text(task, "workingDir", cwd);
	json_member_int(task, "maxAttempts", 1); /* a command that fails is not repeated behind one's back */
	cli_member_flags(cli, task);
}

/* It would not be the command that was meant: JSON has texts alone. */
static int check_words(struct cli *cli)
{
	for (size_t i = 0; i < cli->args.plain_count; i++) {
		if (!utf8_is_text(span_of(args_plain(&cli->args, i))))
			return cli_fail(cli, EXIT_USAGE, "invalid", NULL,
				"word %zu of the command is not UTF-8 and cannot be sent; put the command into a script",
				i + 1);
	}
	return 0;
}

static int create(struct cli *cli, struct reply *ret_task)
{
	const char *key = cli_random_key(cli);

	put_task(cli, cli_body(cli));
	struct ask question = {.method = HTTP_METHOD_POST,
		.path = "/api/tasks",
		.body = cli_body_end(cli),
		.key = span_of(key),
		.may_repeat = key != NULL};
	return server_ask(cli, &question, ret_task);
}

/* ---- following ------------------------------------------------------------------------------------------------- */

struct following {
	struct cli *cli;
	struct log_reading log;
	int64_t began_ms;
	bool taken;     /* some worker has had it */
	bool told;      /* why no worker has claimed it */
	bool cancelled; /* by us */
	bool asking;    /* that was told */
};

/* No worker has claimed the task for a while: tell the reason that the server gives. */
static void tell_lonely(struct following *following)
{
	struct cli *cli = following->cli;

	if (following->taken || following->told ||
		clock_ms(CLOCK_MONOTONIC) - following->began_ms < LONELY_MS)
		return;
	following->told = true;
	cli_say(cli, "stint: %s waits for a worker; stint up starts one, stint why %s says more",
		following->log.id, cli_quote(cli, following->log.id));
}

/* The task waits for a person, and that may be the person who reads its output. */
static void tell_question(struct following *following, yyjson_val *task)
{
	struct cli *cli = following->cli;
	bool asking = span_equal(field_text(task, "state"), SPAN("asking"));

	if (asking && !following->asking)
		cli_say(cli, "stint: %s asks: %s\n  try: %s", following->log.id,
			view_question(cli, field_get(task, "question")), view_answer_command(cli, task));
	following->asking = asking;
}

/* How it ended, as a status of ours. */
static int ending(struct following *following, yyjson_val *task)
{
	struct cli *cli = following->cli;
	struct span state = field_text(task, "state");
	yyjson_val *error = field_get(task, "error"), *details = field_get(error, "details");
	const char *id = following->log.id, *message = field_cstr(cli, error, "message");

	if (cli->output == OUTPUT_JSON)
		cli_put_json(cli, "task", task);
	if (span_equal(state, SPAN("done")))
		return EXIT_GOOD;
	if (span_equal(state, SPAN("cancelled"))) {
		cli_say(cli, "stint: %s was cancelled", id);
		return following->cancelled ? EXIT_INTERRUPTED : EXIT_UNSUCCESSFUL;
	}
	cli_say(cli, "stint: %s %.*s: %s", id, SPAN_ARGS(state), message);
	int64_t code = field_int(details, "exit", 0), number = field_int(details, "signal", 0);
	if (code > 0 && code <= 255)
		return (int)code;
	return number > 0 && number < SIGNALLED ? SIGNALLED + (int)number : EXIT_UNSUCCESSFUL;
}

/* Is this as far as it goes without a person? */
static bool is_settled(struct span state)
{
	return view_state_is_final(state) || span_equal(state, SPAN("blocked")) ||
		span_equal(state, SPAN("review"));
}

static int cancel(struct following *following)
{
	struct cli *cli = following->cli;
	struct ask question = {.method = HTTP_METHOD_POST,
		.path = "/api/tasks/*/cancel",
		.names = {following->log.id},
		.body = SPAN("{}")};
	cleanup(reply_done) struct reply reply = {0};

	if (following->cancelled)
		return 0;
	following->cancelled = true;
	return server_ask(cli, &question, &reply);
}

/* One look: the state first, then what was written until then. */
static int look(struct following *following, struct reply *task, bool *ret_moved)
{
	struct log_reading *log = &following->log;
	int64_t before = log->after;

	int r = log_look(log, task);
	if (r != 0)
		return r;
	int64_t attempt = field_int(task->root, "attempt", 0);
	following->taken |= attempt > 0;
	if (attempt > 0 && log->attempt > 0 && attempt != log->attempt) {
		log_read_on(log); /* the rest of the last one */
		log->attempt = attempt;
		log->after = before = 0;
	}
	if (attempt > 0)
		r = log_read_on(log);
	*ret_moved = log->after != before;
	if (r != 0)
		reply_done(task);
	return r;
}

static int follow(struct following *following)
{
	int wait_ms = LOOK_MS_MIN;

	for (;;) {
		struct reply task;
		bool moved;
		arena_reset(&following->cli->arena); /* of the last look: it may run for weeks */
		int r = look(following, &task, &moved);
		if (r != 0) { /* no server any more, or a token that may only add */
			cli_say(following->cli, "stint: %s is still queued and goes on without this command",
				following->log.id);
			return interrupted > 0 ? EXIT_INTERRUPTED : r;
		}
		if (is_settled(field_text(task.root, "state"))) {
			r = ending(following, task.root);
			reply_done(&task);
			return r;
		}
		tell_question(following, task.root);
		reply_done(&task);
		tell_lonely(following);
		if (interrupted > 1 || (interrupted == 1 && cancel(following) != 0))
			return EXIT_INTERRUPTED;
		poll(NULL, 0, wait_ms);
		wait_ms = moved ? LOOK_MS_MIN : wait_ms * 2 < LOOK_MS_MAX ? wait_ms * 2 : LOOK_MS_MAX;
	}
}

static int run(struct cli *cli)
{
	struct sigaction action = {.sa_handler = on_interrupt};
	struct following following = {
		.cli = cli,
		.log = {.cli = cli, .patience = LOG_PATIENCE, .stop = &interrupted},
		.began_ms = clock_ms(CLOCK_MONOTONIC),
	};
	struct reply task;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	int r = check_words(cli);
	if (r == 0)
		r = create(cli, &task);
	if (r != 0)
		return r;
	cleanup(free_at) char *id = strdup(field_cstr(cli, task.root, "id"));
	following.log.id = id;
	if (!id) {
		reply_done(&task);
		return cli_fail_fault(cli, -ENOMEM);
	}
	if (args_has(&cli->args, "detach")) {
		if (cli->output == OUTPUT_JSON)
			r = cli_put_json(cli, "task", task.root);
		else
			cli_put(cli, "%s\n", following.log.id);
		reply_done(&task);
		return r;
	}
	reply_done(&task);
	return follow(&following);
}

const struct verb verb_run = {
	.name = "run",
	.arguments = "-- COMMAND...",
	.most = 1000,
	.gives = GIVES_JSON,
	.brief = "run a command as a task",
	.text = "Queues a command, prints its output and exits with its status, or 128 + N after signal N. It needs a worker with an "
		"executor for commands, as the worker of stint up has (\"shell\"). No shell reads the command: write sh -c '…' for one. "
		"Ctrl-C cancels the task; a second Ctrl-C does not wait for that. If the server goes away, stint run waits until it "
		"is back. With --json the task is printed at the end.",
	.flags = flags,
	.examples = "stint run -- make test\n"
		    "stint run --detach -- sh -c 'make && make install'\n",
	.run = run,
};
