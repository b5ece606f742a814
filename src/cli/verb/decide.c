/*
 * stint inbox, answer, approve, deny: what waits for a person, and the person's word. To a task that asks, an approval is
 * the answer "yes" and a denial an answer that says no; the task goes on with either. To one that was reported for
 * review they are verdicts at its gates.
 */
#include <string.h>

#include "base/take.h"
#include "cli/verb/task_view.h"

/* ---- inbox ------------------------------------------------------------------------------------------------------ */

enum { C_ID, C_AGE, C_WAITS_FOR, C_TITLE, C_COUNT };

static const struct column columns[C_COUNT] = {
	[C_ID] = {.name = "ID"},
	[C_AGE] = {.name = "AGE", .right = true, .rank = 2},
	[C_WAITS_FOR] = {.name = "WAITS FOR", .shrinks = true},
	[C_TITLE] = {.name = "TITLE", .shrinks = true, .rank = 1},
};

/* A verdict at a gate, or an answer to a question. */
static struct span waits_for(struct cli *cli, yyjson_val *approval)
{
	struct span gate = field_text(approval, "gate"), stage = field_text(approval, "stage");

	if (gate.len == 0)
		return span_of(view_question(cli, field_get(approval, "question")));
	return span_of(cli_text(
		cli, "gate %.*s%s%.*s", SPAN_ARGS(gate), stage.len > 0 ? ", stage " : "", SPAN_ARGS(stage)));
}

static void add_row(struct cli *cli, struct table *table, yyjson_val *approval)
{
	table_row(table);
	table_cell(table, C_ID, field_text(approval, "task"), PAINT_BOLD);
	table_cell(table, C_AGE, view_since(cli, field_int(approval, "since", 0)), PAINT_NONE);
	table_cell(table, C_WAITS_FOR, waits_for(cli, approval), PAINT_YELLOW);
	table_cell(table, C_TITLE, field_text(approval, "title"), PAINT_NONE);
}

static int run_inbox(struct cli *cli)
{
	static const struct list_view view = {
		.path = "/api/approvals",
		.key = "approvals",
		.id = "task",
		.columns = columns,
		.column_count = C_COUNT,
		.add = add_row,
		.none = "inbox empty: no questions, no approvals",
	};

	return view_put_list(cli, &view);
}

const struct verb verb_inbox = {
	.name = "inbox",
	.group = GROUP_DECIDE,
	.arguments = "",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "what waits for you",
	.text = "Lists what waits for a person: the questions of tasks that ask, and the gates of tasks that were reported.",
	.examples = "stint inbox\nstint inbox -o id\n",
	.run = run_inbox,
};

/* ---- the answer -------------------------------------------------------------------------------------------------- */

static int answer(struct cli *cli, const char *text, bool deny)
{
	cleanup(buf_done) struct buf body = {0};
	struct json_object object;
	struct span given = span_of(text);
	struct reply reply;

	int r = text && strcmp(text, "-") == 0 ? cli_read_input(cli, "-", &given) : 0;
	if (r != 0)
		return r;
	buf_init(&body, 32 << 20);
	json_begin(&object, &body);
	if (given.len > 0)
		json_member_string(&object, "text", given);
	if (deny)
		json_member_bool(&object, "deny", true);
	json_end(&object);
	r = server_post(cli, "/api/tasks/*/answer", args_plain(&cli->args, 0), cli_span(cli, &body), &reply);
	if (r != 0)
		return r;
	r = view_put_task_done(cli, reply.root,
		span_equal(field_text(reply.root, "state"), SPAN("running"))
			? "has its answer and goes on"
			: "has its answer and is ready again");
	reply_done(&reply);
	return r;
}

static int run_answer(struct cli *cli)
{
	return answer(cli, args_plain(&cli->args, 1), false);
}

/* ---- the verdict -------------------------------------------------------------------------------------------------- */

static bool lists(yyjson_val *names, struct span name)
{
	size_t at, count;
	yyjson_val *each;

	yyjson_arr_foreach(names, at, count, each)
	{
		if (span_equal(name, json_text(each)))
			return true;
	}
	return false;
}

/* The gate that is meant: the one that was named, or the only one that is open. NULL: the reason was told. */
static const char *gate_meant(struct cli *cli, yyjson_val *task, int *ret_ending)
{
	const char *named = args_text(&cli->args, "gate"), *open = NULL, *all = "";
	yyjson_val *passed = field_get(task, "gatesPassed");
	size_t at, count, left = 0;
	yyjson_val *gate;

	if (named)
		return named;
	yyjson_arr_foreach(field_get(task, "gates"), at, count, gate)
	{
		struct span name = json_text(gate);
		if (lists(passed, name))
			continue;
		open = cli_text(cli, "%.*s", SPAN_ARGS(name));
		all = cli_text(cli, "%s%s%s", all, left++ > 0 ? ", " : "", open);
	}
	if (left == 1)
		return open;
	if (count == 0)
		return "review";
	*ret_ending = left == 0 ? cli_fail(cli, EXIT_CONFLICT, "bad_transition", NULL,
					  "every gate of it is passed: it waits for its next stage")
				: cli_fail(cli, EXIT_USAGE, "usage", NULL,
					  "it waits at several gates (%s): say at which with --gate", all);
	return NULL;
}

static int give_verdict(struct cli *cli, yyjson_val *task, bool passes)
{
	const char *id = args_plain(&cli->args, 0), *reason = args_plain(&cli->args, 1);
	cleanup(buf_done) struct buf body = {0};
	struct json_object object;
	struct reply reply;
	int r = 0;
	const char *gate = gate_meant(cli, task, &r);

	if (!gate)
		return r;
	buf_init(&body, 1 << 20);
	json_begin(&object, &body);
	json_member_string(&object, "verdict", passes ? SPAN("pass") : SPAN("reject"));
	if (reason)
		json_member_string(&object, "reason", span_of(reason));
	json_end(&object);
	struct ask question = {.method = HTTP_METHOD_POST,
		.path = "/api/tasks/*/gates/*",
		.names = {id, gate},
		.body = cli_span(cli, &body)};
	r = server_ask(cli, &question, &reply);
	if (r != 0)
		return r;
	r = view_put_task_done(cli, reply.root,
		cli_text(cli, "%s gate %s and is %s", passes ? "passed" : "was rejected at", gate,
			field_cstr(cli, reply.root, "state")));
	reply_done(&reply);
	return r;
}

/* To a task in review it is a verdict, to any other an answer. */
static int decide(struct cli *cli, bool passes)
{
	const char *text = args_plain(&cli->args, 1);
	struct reply reply;
	int r = server_get(cli, "/api/tasks/*", args_plain(&cli->args, 0), &reply);

	if (r != 0)
		return r;
	if (span_equal(field_text(reply.root, "state"), SPAN("review")) || args_text(&cli->args, "gate"))
		r = give_verdict(cli, reply.root, passes);
	else
		r = answer(cli, passes && !text ? "yes" : text, !passes);
	reply_done(&reply);
	return r;
}

static int run_approve(struct cli *cli)
{
	return decide(cli, true);
}

static int run_deny(struct cli *cli)
{
	return decide(cli, false);
}

static const struct flag flags[] = {
	{"gate", 0, FLAG_TEXT, .value = "NAME", .text = "the gate of a task that waits at several"},
	{0},
};

const struct verb verb_answer = {
	.name = "answer",
	.group = GROUP_DECIDE,
	.arguments = "ID TEXT",
	.least = 2,
	.most = 2,
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
	.group = GROUP_DECIDE,
	.arguments = "ID [TEXT]",
	.least = 1,
	.most = 2,
	.offer = OFFER_TASKS,
	.gives = GIVES_JSON,
	.brief = "say yes, or let it pass",
	.text = "Answers \"yes\", or the text, to a task that asks. A task that was reported passes the gate it waits at; the "
		"text is the reason. A worker that held an attempt of the task may not judge it.",
	.flags = flags,
	.examples = "stint approve t-7k3\n",
	.run = run_approve,
};

const struct verb verb_deny = {
	.name = "deny",
	.group = GROUP_DECIDE,
	.arguments = "ID [TEXT]",
	.least = 1,
	.most = 2,
	.offer = OFFER_TASKS,
	.gives = GIVES_JSON,
	.brief = "say no, or send it back",
	.text = "Says no to a task that asks; the text says why. The task goes on with the denial: it is for its worker to "
		"find another way or to give up. A task that was reported is rejected at the gate it waits at: its next "
		"attempt begins, if it has one left.",
	.flags = flags,
	.examples = "stint deny t-7k3 \"not on a Friday\"\n",
	.run = run_deny,
};
