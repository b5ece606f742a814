/*
 * stint session: agents that run under a label. Each is an attempt of some task, and that task has the rest of the story.
 */
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
	{"MODEL", "model", COLUMN_DASH, .shrinks = true, .rank = 5},
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
	.none = "no sessions: none runs, and none ended in the last 24 hours",
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

const struct verb verb_session_ls = {
	.name = "session ls",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "the sessions",
	.text = "Lists the agents that were spawned under a label: agents that wait or run, and agents that ended in the last "
		"24 hours.",
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
