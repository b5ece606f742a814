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
#include "cli/frame/text.h"
#include "cli/verb/new_task.h"
#include "cli/verb/task_view.h"

enum {
	LOOK_MS_MIN = 20, /* doubled while nothing happens */
	LOOK_MS_MAX = 500,
	QUIET_MS = 300,   /* what ends earlier needs no word about its worker */
	LONELY_MS = 3000, /* no worker has claimed it by then: say why */
	SIGNALLED = 128,
};

static const struct flag flags[] = {
	{"detach", 'd', FLAG_SWITCH, .text = "queue it, and do not wait: as stint add does"},
	{"raw", 0, FLAG_SWITCH, .text = "print its output unchanged, colours and all, on a terminal too"},
	NEW_TASK_FLAGS,
	{0},
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
	(void)number;
	interrupted++;
}

/* ---- following ------------------------------------------------------------------------------------------------- */

struct following {
	struct cli *cli;
	struct log_reading log;
	int64_t began_ms;
	bool taken;     /* some worker has had it */
	bool told;      /* why no worker has claimed it */
	bool named;     /* the worker that has it, to a person */
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

/* Some worker has it: a person may want to know which, and how to stop it. */
static void tell_taken(struct following *following, yyjson_val *task)
{
	struct cli *cli = following->cli;
	struct span worker = field_text(task, "workerId");

	if (cli->term.talk_tty && !following->named && worker.len > 0 &&
		clock_ms(CLOCK_MONOTONIC) - following->began_ms >= QUIET_MS) {
		cli_say(cli, "%s on %.*s; Ctrl-C cancels it", following->log.id, SPAN_ARGS(worker));
		following->named = true;
	}
}

/* The task waits for a person, and that may be the person who reads its output. */
static void tell_question(struct following *following, yyjson_val *task)
{
	struct cli *cli = following->cli;
	bool asking = span_equal(field_text(task, "state"), SPAN("asking"));

	if (asking && !following->asking && log_break_line(&following->log) == 0)
		cli_say(cli, "stint: %s asks: %s\n  try  %s", following->log.id,
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

	int r = log_break_line(&following->log);
	if (r != 0)
		return r;
	if (cli->output == OUTPUT_JSON)
		cli_put_json(cli, "task", task);
	if (span_equal(state, SPAN("done")))
		return EXIT_GOOD;
	bool cancelled = span_equal(state, SPAN("cancelled"));
	if (cli->term.talk_tty)
		view_say_end(cli, task, clock_ms(CLOCK_MONOTONIC) - following->began_ms);
	else if (cancelled)
		cli_say(cli, "stint: %s was cancelled", id);
	else
		cli_say(cli, "stint: %s %.*s: %s", id, SPAN_ARGS(state), message);
	if (cancelled)
		return following->cancelled ? EXIT_INTERRUPTED : EXIT_UNSUCCESSFUL;
	int64_t code = field_int(details, "exit", 0), number = field_int(details, "signal", 0);
	if (code > 0 && code <= 255)
		return (int)code;
	return number > 0 && number < SIGNALLED ? SIGNALLED + (int)number : EXIT_UNSUCCESSFUL;
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
	int r = log_look(&following->log, task);

	if (r != 0)
		return r;
	following->taken |= field_int(task->root, "attempt", 0) > 0;
	tell_taken(following, task->root);
	r = log_read_attempts(&following->log, task->root, ret_moved);
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
		if (log_is_settled(task.root)) {
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

static int create(struct cli *cli, struct reply *ret_task)
{
	const char *key = args_text(&cli->args, "key"), *file = args_text(&cli->args, "file");
	struct defaults defaults = defaults_read(cli);
	struct new_task entry = {.defaults = &defaults,
		.words = new_task_words(cli, 0),
		.text = file ? cli_read_input(cli, file) : (struct span){0},
		.input = file && strcmp(file, "-") == 0 ? (struct span){0} : new_task_input(cli),
		.once = true}; /* a command that fails is not repeated behind one's back */

	int r = new_task_add(cli, &entry, key ? key : cli_random_key(cli), ret_task);
	if (r == 0)
		new_task_tell_warnings(cli, ret_task->root);
	return r;
}

static int run(struct cli *cli)
{
	struct sigaction action = {.sa_handler = on_interrupt};
	struct following following = {
		.cli = cli,
		.log = {.cli = cli, .patience = LOG_PATIENCE, .stop = &interrupted, .apart = true},
		.began_ms = clock_ms(CLOCK_MONOTONIC),
	};
	struct reply task;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	int r = create(cli, &task);
	if (r != 0)
		return r;
	cleanup(free_at) char *id = strdup(field_cstr(cli, task.root, "id"));
	following.log.id = id;
	if (!id || args_has(&cli->args, "detach")) {
		r = id ? new_task_put(cli, task.root) : cli_fail_fault(cli, -ENOMEM);
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
	.text = "Queues a command, prints its output and its errors as if it ran here, and exits with its status, or 128 + N after signal N. It needs a worker with an "
		"executor for commands, as the worker of stint up has (\"shell\"). No shell reads the command: write sh -c for one. "
		"The flags of stint add say when and how it runs; it is tried once unless --max-attempts says more. "
		"Ctrl-C cancels the task; a second Ctrl-C does not wait for that. If the server goes away, stint run waits until it "
		"is back. With --json the task is printed at the end.\n"
		"\n"
		"What stands on standard input goes to the command, up to a MiB: it is read to its end before the command is queued. A "
		"terminal or /dev/null gives it nothing.",
	.flags = flags,
	.examples = "stint run -- make test\n"
		    "echo hello | stint run -- cat\n"
		    "stint run --max-attempts 3 --label nightly -- make test\n"
		    "stint run --detach -- sh -c 'make && make install'\n",
	.run = run,
};
