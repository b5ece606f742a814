/*
 * stint session: agents that run under a label. Each is an attempt of some task, and that task has the rest of the story.
 */
#include <unistd.h>

#include "base/take.h"
#include "cli/verb/task_view.h"

/* Since when it is what it is: ended, running, waiting. */
static struct span since(struct cli *cli, yyjson_val *session)
{
	int64_t ended_ms = field_int(session, "endedAt", 0);
	int64_t created_ms = field_int(session, "createdAt", 0);

	return view_relative(cli, ended_ms != 0 ? ended_ms : field_int(session, "startedAt", created_ms));
}

static const struct column columns[] = {
	{"SESSION", "id", .paint = PAINT_BOLD, .shrinks = true},
	{"STATUS", "status", .kind = COLUMN_STATE},
	{"TASK", "taskId", .shrinks = true, .rank = 2},
	{"WORKER", "workerId", COLUMN_DASH, .shrinks = true, .rank = 3},
	{"SINCE", .make = since, .right = true, .rank = 1},
	{"AGENT", "adapter", COLUMN_DASH, .rank = 5},
	{"MODEL", "model", COLUMN_DASH, .shrinks = true, .rank = 6},
	{"ERROR", "error", COLUMN_DASH, .shrinks = true, .rank = 4},
};

static void put_prompt(struct cli *cli, yyjson_val *session)
{
	struct span prompt = field_text(session, "prompt");

	cli_put(cli, "%s", prompt.len > 0 ? "\n" : "");
	cli_put_lines(cli, prompt, "  ");
}

static const struct list_view sessions = {
	.path = "/api/sessions",
	.key = "sessions",
	.id = "id",
	VIEW_COLUMNS(columns),
	.none = "No sessions: none runs, and none ended in the last 24 hours.",
	.one = "session",
	.rest = put_prompt,
};

/* Its log is its task's. */
static int run_logs(struct cli *cli)
{
	cleanup(reply_done) struct reply reply =
		server_get(cli, "/api/sessions/*", args_plain(&cli->args, 0));

	return view_put_log(cli, field_cstr(cli, reply.root, "taskId"));
}

/* What the agent was told first. */
static int run_prompt(struct cli *cli)
{
	cleanup(reply_done) struct reply reply =
		server_get(cli, "/api/sessions/*/prompt", args_plain(&cli->args, 0));
	struct span prompt = field_text(reply.root, "prompt");

	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "prompt", reply.root);
	if (prompt.len == 0)
		return cli_fail(cli, EXIT_NOT_FOUND, "not_found", NULL,
			"session %s has no prompt yet: no worker has started its agent",
			args_plain(&cli->args, 0));
	cli_put_lines(cli, prompt, "");
	return 0;
}

/* The agent's own command, as its worker says it: it goes on with the session by hand. */
static int run_attach(struct cli *cli)
{
	cleanup(reply_done) struct reply reply =
		server_get(cli, "/api/sessions/*", args_plain(&cli->args, 0));
	struct span attach = field_text(reply.root, "attach"), host = field_text(reply.root, "host");
	char here[65] = "";

	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "session", reply.root);
	if (attach.len == 0)
		return cli_fail(cli, EXIT_NOT_FOUND, "not_found", NULL,
			"session %s cannot be continued by hand: its worker has said no command for that",
			args_plain(&cli->args, 0));
	gethostname(here, sizeof here - 1);
	if (span_is(field_text(reply.root, "status"), "running"))
		cli_say(cli, "Its agent still runs: stop it first, or two write into one session\n");
	if (host.len > 0 && !span_equal(host, span_of(here)))
		cli_say(cli, "This command is for host %.*s\n", SPAN_ARGS(host));
	cli_put_lines(cli, attach, "");
	return 0;
}

const struct verb verb_session_ls = {
	.name = "session ls",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "the sessions",
	.text = "Lists agents that wait or run, and agents that ended in the last 24 hours: those that were spawned under a label, and "
		"those that a worker runs for other tasks, under the session id of the task.",
	.examples = "stint session ls\nstint session ls -o id\n",
	.list = &sessions,
};

const struct verb verb_session_show = {
	.name = "session show",
	.arguments = "SESSION",
	.offer = OFFER_SESSIONS,
	.gives = GIVES_JSON | GIVES_AGAIN,
	.brief = "one session",
	.text = "Shows one session: its task, worker, model and error, and the prompt that it was given.",
	.examples = "stint session show agent:main:worker-slot-1:5f0c\n",
	.list = &sessions,
};

const struct verb verb_session_stop = {
	.name = "session stop",
	.arguments = "SESSION...",
	.most = 100,
	.offer = OFFER_SESSIONS,
	.gives = GIVES_JSON,
	.brief = "stop it",
	.text = "A task that was made for the session is cancelled; another one is blocked until a person retries it. If a "
		"worker with heartbeats holds it, it is cancelled when that worker has stopped it.",
	.examples = "stint session stop agent:main:worker-slot-1:5f0c\n",
	.change = &(const struct change){"session", "/api/sessions/*", .deletes = true,
		.begun = "is being stopped by its worker"},
};

const struct verb verb_session_logs = {
	.name = "session logs",
	.arguments = "SESSION",
	.offer = OFFER_SESSIONS,
	.gives = GIVES_JSON,
	.brief = "what it wrote",
	.text = "Prints what the agent wrote, as stint logs does for a task.",
	.flags = log_flags,
	.examples = "stint session logs agent:main:worker-slot-1:5f0c --follow\n",
	.run = run_logs,
};

const struct verb verb_session_prompt = {
	.name = "session prompt",
	.arguments = "SESSION",
	.offer = OFFER_SESSIONS,
	.gives = GIVES_JSON,
	.brief = "what its agent was told",
	.text = "Prints what the agent of the last attempt was told first, made from the task.",
	.examples = "stint session prompt agent:main:worker-slot-1:5f0c\n",
	.run = run_prompt,
};

const struct verb verb_session_attach = {
	.name = "session attach",
	.arguments = "SESSION",
	.offer = OFFER_SESSIONS,
	.gives = GIVES_JSON,
	.brief = "go on by hand",
	.text = "Prints the agent's own command that goes on with its session, in its directory and with its home, as you type it on the host "
		"of its worker.",
	.examples = "stint session attach agent:main:worker-slot-1:5f0c\n",
	.run = run_attach,
};
