/*
 * stint session: agents that run under a label. Each is an attempt of some task, and that task has the rest of the story.
 */
#include "cli/verb/task_view.h"

enum { C_ID, C_STATUS, C_TASK, C_WORKER, C_SINCE, C_MODEL, C_ERROR, C_COUNT };

static const struct column columns[C_COUNT] = {
	[C_ID] = {.name = "SESSION", .shrinks = true},
	[C_STATUS] = {.name = "STATUS"},
	[C_TASK] = {.name = "TASK", .shrinks = true, .rank = 2},
	[C_WORKER] = {.name = "WORKER", .shrinks = true, .rank = 3},
	[C_SINCE] = {.name = "SINCE", .right = true, .rank = 1},
	[C_MODEL] = {.name = "MODEL", .shrinks = true, .rank = 5},
	[C_ERROR] = {.name = "ERROR", .shrinks = true, .rank = 4},
};

static enum paint status_paint(struct span status)
{
	static const struct {
		const char *status;
		enum paint paint;
	} paints[] = {{"queued", PAINT_CYAN}, {"running", PAINT_BLUE}, {"stopping", PAINT_YELLOW},
		{"asking", PAINT_YELLOW}, {"completed", PAINT_GREEN}, {"failed", PAINT_RED}};

	for (size_t i = 0; i < sizeof paints / sizeof *paints; i++) {
		if (span_equal(span_of(paints[i].status), status))
			return paints[i].paint;
	}
	return PAINT_DIM;
}

/* Since when it is what it is: ended, running, waiting. */
static int64_t since_ms(yyjson_val *session)
{
	int64_t ended_ms = field_int(session, "endedAt", 0);

	return ended_ms != 0 ? ended_ms : field_int(session, "startedAt", field_int(session, "createdAt", 0));
}

static void add_row(struct cli *cli, struct table *table, yyjson_val *session)
{
	struct span status = field_text(session, "status");

	table_row(table);
	table_cell(table, C_ID, field_text(session, "id"), PAINT_BOLD);
	table_cell(table, C_STATUS, status, status_paint(status));
	table_cell(table, C_TASK, field_text(session, "taskId"), PAINT_NONE);
	table_cell(table, C_WORKER, view_or_dash(field_text(session, "workerId")), PAINT_NONE);
	table_cell(table, C_SINCE, view_relative(cli, since_ms(session)), PAINT_NONE);
	table_cell(table, C_MODEL, view_or_dash(field_text(session, "model")), PAINT_NONE);
	table_cell(table, C_ERROR, view_or_dash(field_text(session, "error")), PAINT_NONE);
}

static int run_ls(struct cli *cli)
{
	static const struct list_view view = {
		.path = "/api/sessions",
		.key = "sessions",
		.id = "id",
		.columns = columns,
		.column_count = C_COUNT,
		.add = add_row,
		.none = "no sessions: none runs, and none ended in the last 24 hours",
	};

	return view_put_list(cli, &view);
}

static int run_show(struct cli *cli)
{
	struct table table;
	struct reply reply;

	int r = server_get(cli, "/api/sessions/*", args_plain(&cli->args, 0), &reply);
	if (r != 0)
		return r;
	if (cli->form == FORM_JSON) {
		cli_put_json(cli, "session", reply.root);
		reply_done(&reply);
		return 0;
	}
	table_init(&table, columns, C_COUNT, cli->term.utf8);
	add_row(cli, &table, reply.root);
	view_put_row_as_lines(cli, &table);
	struct span prompt = field_text(reply.root, "prompt");
	if (prompt.len > 0) {
		cli_put(cli, "\n");
		cli_put_lines(cli, prompt, "  ");
	}
	table_done(&table);
	reply_done(&reply);
	return 0;
}

static int stop_one(struct cli *cli, const char *label)
{
	struct ask question = {.method = HTTP_METHOD_DELETE,
		.path = "/api/sessions/*",
		.names = {label},
		.may_repeat = true};
	struct reply reply;

	int r = server_ask(cli, &question, &reply);
	if (r != 0)
		return r;
	if (cli->form == FORM_JSON)
		cli_put_json(cli, "session", reply.root);
	else
		cli_put(cli, "%s\n", label);
	if (reply.status == 202)
		cli_say(cli, "%s is stopping: its worker has been told", label);
	else
		cli_say(cli, "%s is %.*s", label, SPAN_ARGS(field_text(reply.root, "status")));
	reply_done(&reply);
	return 0;
}

static int run_stop(struct cli *cli)
{
	int status = 0;

	for (size_t i = 0; i < cli->args.plain_count; i++) {
		int r = stop_one(cli, args_plain(&cli->args, i));
		status = status != 0 ? status : r;
	}
	return status;
}

/* Its log is its task's. */
static int run_logs(struct cli *cli)
{
	struct reply reply;

	int r = server_get(cli, "/api/sessions/*", args_plain(&cli->args, 0), &reply);
	if (r != 0)
		return r;
	const char *task = field_cstr(cli, reply.root, "taskId");
	reply_done(&reply);
	return view_put_log(cli, task);
}

const struct verb verb_session_ls = {
	.name = "session ls",
	.group = GROUP_WORKERS,
	.arguments = "",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "the sessions",
	.text = "Lists the agents that were spawned under a label: those that wait or run, and those that ended in the last "
		"24 hours.",
	.examples = "stint session ls\nstint session ls -o id\n",
	.run = run_ls,
};

const struct verb verb_session_show = {
	.name = "session show",
	.group = GROUP_WORKERS,
	.arguments = "SESSION",
	.least = 1,
	.most = 1,
	.offer = OFFER_SESSIONS,
	.gives = GIVES_JSON | GIVES_AGAIN,
	.brief = "one session",
	.examples = "stint session show agent:main:worker-slot-1:5f0c\n",
	.run = run_show,
};

const struct verb verb_session_stop = {
	.name = "session stop",
	.group = GROUP_WORKERS,
	.arguments = "SESSION...",
	.least = 1,
	.most = 100,
	.offer = OFFER_SESSIONS,
	.gives = GIVES_JSON,
	.brief = "stop it",
	.text = "A task that was made for the session is cancelled; another one is blocked until a person retries it. Under a "
		"worker that beats, a cancel takes effect once the worker has stopped.",
	.examples = "stint session stop agent:main:worker-slot-1:5f0c\n",
	.run = run_stop,
};

const struct verb verb_session_logs = {
	.name = "session logs",
	.group = GROUP_WORKERS,
	.arguments = "SESSION",
	.least = 1,
	.most = 1,
	.offer = OFFER_SESSIONS,
	.gives = GIVES_JSON,
	.brief = "what it wrote",
	.text = "Prints what the agent wrote, as stint logs does for a task.",
	.flags = log_flags,
	.examples = "stint session logs agent:main:worker-slot-1:5f0c --follow\n",
	.run = run_logs,
};
