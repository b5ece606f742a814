/*
 * stint inbox, answer, approve, deny: what waits for a person, and the person's word. To a task that asks, an approval is
 * the answer "yes" and a denial an answer that says no; the task goes on with either. To one that was reported for
 * review they are verdicts at its gates.
 */
#include <string.h>

#include "base/take.h"
#include "cli/verb/task_view.h"
#include "cli/verb/verbs.h"

/* ---- inbox ------------------------------------------------------------------------------------------------------ */

/* A verdict at a gate, or an answer to a question. */
static struct span waits_for(struct cli *cli, yyjson_val *approval)
{
	struct span gate = field_text(approval, "gate"), stage = field_text(approval, "stage");

	if (gate.len == 0)
		return span_of(view_question(cli, field_get(approval, "question")));
	return span_of(cli_text(
		cli, "gate %.*s%s%.*s", SPAN_ARGS(gate), stage.len > 0 ? ", stage " : "", SPAN_ARGS(stage)));
}

static const struct column columns[] = {
	{"ID", "task", .paint = PAINT_BOLD},
	{"AGE", "since", COLUMN_AGE, .right = true, .rank = 2},
	{"WAITS FOR", .make = waits_for, .paint = PAINT_YELLOW, .shrinks = true},
	{"TITLE", "title", .shrinks = true, .rank = 1},
};

static const struct list_view approvals = {
	.path = "/api/approvals",
	.key = "approvals",
	.id = "task",
	VIEW_COLUMNS(columns),
	.none = "Nothing needs you.",
};

static const struct column people_columns[] = {
	{.name = ""},
	{.name = "ID"},
	{"NEEDS", .shrinks = true, .least = 22},
	{"AGE", .right = true},
};

static void add_need(struct cli *cli, struct table *table, yyjson_val *task)
{
	struct state_mark mark = view_state_mark(cli, field_text(task, "state"));
	const char *sign = cli_text(cli, "%.*s", (int)strcspn(mark.text.data, " "), mark.text.data);

	table_row(table);
	table_cell(table, 0, span_of(sign), mark.paint);
	table_cell(table, 1, field_text(task, "id"), PAINT_DIM);
	table_cell(table, 2, field_text(field_get(task, "why"), "text"), PAINT_NONE);
	table_cell(table, 3, view_since(cli, field_int(task, "updatedAt", 0)), PAINT_DIM);
	table_under(table, 2, field_text(task, "title"), PAINT_DIM);
}

/* What needs a person, each with what it is about; also what is blocked. */
static int show_needs(struct cli *cli)
{
	const struct ask question = {.method = HTTP_METHOD_GET,
		.path = "/api/tasks",
		.query = SPAN("state=asking,review,blocked&include=why&limit=1000")};
	cleanup(reply_done) struct reply reply = server_need(cli, &question);
	size_t at, number = yyjson_arr_size(reply.root), count;
	struct table table;
	yyjson_val *task;

	if (number == 0) {
		cli_put(cli, "Nothing needs you.\n");
		return 0;
	}
	table_init(&table, people_columns, sizeof people_columns / sizeof *people_columns, cli->term.utf8);
	table.bare = true;
	yyjson_arr_foreach(reply.root, at, count, task) add_need(cli, &table, task);
	cli_put(cli, "%zu%s %s you.\n", number, reply.next.len > 0 ? " and more" : "",
		number == 1 ? "needs" : "need");
	int r = table_put(&cli->out, &table, &cli->term);
	table_done(&table);
	cli_hint(cli, field_cstr(cli, field_get(yyjson_arr_get_first(reply.root), "why"), "try"));
	return r < 0 ? cli_fail_fault(cli, r) : 0;
}

static int run_inbox(struct cli *cli)
{
	bool people = cli->output == OUTPUT_TABLE || (cli->output == OUTPUT_AUTO && cli->term.tty);

	return people ? show_needs(cli) : view_run_list(cli);
}

const struct verb verb_inbox = {
	.name = "inbox",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "what waits for you",
	.text = "Lists what needs a person: questions of tasks, gates of tasks in review, and tasks that are blocked. Elsewhere than on a "
		"terminal, and with --json, questions and gates alone: what stint approve takes.",
	.examples = "stint inbox\nstint inbox -o id\n",
	.list = &approvals,
	.run = run_inbox,
};

/* ---- the answer -------------------------------------------------------------------------------------------------- */

static int answer(struct cli *cli, const char *text, bool deny)
{
	struct span given = text && strcmp(text, "-") == 0 ? cli_read_input(cli, "-") : span_of(text);
	struct json_object *body = cli_body(cli);

	if (given.len > 0)
		json_member_string(body, "text", given);
	if (deny)
		json_member_bool(body, "deny", true);
	cleanup(reply_done) struct reply reply =
		server_post(cli, "/api/tasks/*/answer", args_plain(&cli->args, 0), cli_body_end(cli));
	return view_put_task_done(cli, reply.root,
		span_equal(field_text(reply.root, "state"), SPAN("running"))
			? "has its answer and goes on"
			: "has its answer and is ready again");
}

static int run_answer(struct cli *cli)
{
	return answer(cli, args_plain(&cli->args, 1), false);
}

/* ---- the verdict -------------------------------------------------------------------------------------------------- */

/* The gate that is meant: the one that was named, or the only one that is open. NULL: the reason was told. */
static const char *gate_meant(struct cli *cli, yyjson_val *task, int *ret_ending)
{
	const char *named = args_text(&cli->args, "gate"), *open = NULL;
	size_t left = 0;

	if (named)
		return named;
	const char *all = view_open_gates(cli, task, &left, &open);
	if (left == 1)
		return open;
	if (yyjson_arr_size(field_get(task, "gates")) == 0)
		return "review";
	*ret_ending = left == 0
		? cli_fail(cli, EXIT_CONFLICT, "bad_transition", NULL,
			  "it has passed every gate and waits for its next stage")
		: cli_fail(cli, EXIT_USAGE, "usage",
			  cli_text(cli, "stint %s %s --gate %s", cli->verb->name,
				  cli_quote(cli, args_plain(&cli->args, 0)), cli_quote(cli, open)),
			  "it waits at several gates (%s): choose one with --gate", all);
	return NULL;
}

static int give_verdict(struct cli *cli, yyjson_val *task, bool passes)
{
	struct json_object *body = cli_body(cli);
	int r = 0;
	const char *gate = gate_meant(cli, task, &r);

	if (!gate)
		return r;
	json_member_string(body, "verdict", passes ? SPAN("pass") : SPAN("reject"));
	cli_member_text(body, "reason", args_plain(&cli->args, 1));
	struct ask question = {.method = HTTP_METHOD_POST,
		.path = "/api/tasks/*/gates/*",
		.names = {args_plain(&cli->args, 0), gate},
		.body = cli_body_end(cli)};
	cleanup(reply_done) struct reply reply = server_need(cli, &question);
	return view_put_task_done(cli, reply.root,
		cli_text(cli, "%s gate %s and is %s", passes ? "passed" : "was rejected at", gate,
			field_cstr(cli, reply.root, "state")));
}

/* To a task in review it is a verdict, to any other an answer. */
static int decide(struct cli *cli)
{
	bool passes = cli->verb == &verb_approve;
	const char *text = args_plain(&cli->args, 1);
	cleanup(reply_done) struct reply reply = server_get(cli, "/api/tasks/*", args_plain(&cli->args, 0));

	if (span_equal(field_text(reply.root, "state"), SPAN("review")) || args_text(&cli->args, "gate"))
		return give_verdict(cli, reply.root, passes);
	return answer(cli, passes && !text ? "yes" : text, !passes);
}

static const struct flag flags[] = {
	{"gate", 0, FLAG_TEXT, .value = "NAME", .text = "the gate of a task that waits at several"},
	{0},
};

const struct verb verb_answer = {
	.name = "answer",
	.arguments = "ID TEXT",
	.offer = OFFER_TASKS,
	.gives = GIVES_JSON,
	.brief = "answer a question",
	.text = "Answers the question that a task waits for. With - the answer is read from standard input. A worker that "
		"still waits goes on with it; otherwise the task is ready again, and its next attempt gets the answer.",
	.examples = "stint answer t-7k3 \"use the staging database\"\n",
	.run = run_answer,
};

const struct verb verb_approve = {
	.name = "approve",
	.arguments = "ID [TEXT]",
	.offer = OFFER_TASKS,
	.gives = GIVES_JSON,
	.brief = "say yes, or let it pass",
	.text = "Answers \"yes\", or the text, to a task that asks. A task in review passes the gate it waits at; the text is "
		"the reason. A worker that held an attempt of the task may not approve it.",
	.flags = flags,
	.examples = "stint approve t-7k3\n",
	.run = decide,
};

const struct verb verb_deny = {
	.name = "deny",
	.arguments = "ID [TEXT]",
	.offer = OFFER_TASKS,
	.gives = GIVES_JSON,
	.brief = "say no, or send it back",
	.text = "Says no to a task that asks; the text is the reason. The task goes on with that answer. A task in review "
		"is rejected at the gate it waits at: it gets its next attempt, if one is left.",
	.flags = flags,
	.examples = "stint deny t-7k3 \"not on a Friday\"\n",
	.run = decide,
};
