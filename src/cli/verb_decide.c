/*
 * stint inbox, answer, approve, deny: what waits for a person, and the person's word. An approval is the answer "yes",
 * a denial an answer that says no; the task goes on with either.
 */
#include <string.h>

#include "base/take.h"
#include "cli/task_view.h"

/* ---- inbox ------------------------------------------------------------------------------------------------------ */

enum { C_ID, C_AGE, C_QUESTION, C_TITLE, C_COUNT };

static const struct column columns[C_COUNT] = {
	[C_ID] = {.name = "ID"},
	[C_AGE] = {.name = "AGE", .right = true, .rank = 2},
	[C_QUESTION] = {.name = "QUESTION", .shrinks = true},
	[C_TITLE] = {.name = "TITLE", .shrinks = true, .rank = 1},
};

static int run_inbox(struct cli *cli)
{
	struct ask question = {
		.method = HTTP_METHOD_GET, .path = "/api/tasks", .query = SPAN("state=asking&limit=1000")};
	struct table table;
	struct reply reply;
	size_t at, count;
	yyjson_val *task;

	int r = ask(cli, &question, &reply);
	if (r != 0)
		return r;
	table_init(&table, columns, C_COUNT);
	yyjson_arr_foreach(reply.root, at, count, task)
	{
		table_row(&table);
		table_cell(&table, C_ID, field_text(task, "id"), PAINT_BOLD, cli->term.utf8);
		table_cell(&table, C_AGE, since(cli, field_int(task, "createdAt", 0)), PAINT_NONE,
			cli->term.utf8);
		table_cell(&table, C_QUESTION, field_text(field(task, "question"), "question"), PAINT_YELLOW,
			cli->term.utf8);
		table_cell(&table, C_TITLE, field_text(task, "title"), PAINT_NONE, cli->term.utf8);
	}
	r = put_rows(cli, &table, "tasks", reply.root, "id");
	if (r == 0 && table.row_count == 0 && cli->form == FORM_AUTO)
		say(cli, "nobody waits for you");
	table_done(&table);
	reply_done(&reply);
	return r;
}

const struct verb verb_inbox = {
	.name = "inbox",
	.group = GROUP_DECIDE,
	.arguments = "",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "what waits for you",
	.text = "Lists the tasks that wait for a person's answer, and what they ask.",
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

	int r = text && strcmp(text, "-") == 0 ? read_input(cli, "-", &given) : 0;
	if (r != 0)
		return r;
	buf_init(&body, 32 << 20);
	json_begin(&object, &body);
	if (given.len > 0)
		json_member_string(&object, "text", given);
	if (deny)
		json_member_bool(&object, "deny", true);
	int fault = json_end(&object);
	if (fault < 0)
		return fail_fault(cli, fault);
	r = post(cli, "/api/tasks/*/answer", args_plain(&cli->args, 0), buf_span(&body), &reply);
	if (r != 0)
		return r;
	r = put_task_done(cli, reply.root,
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

static int run_approve(struct cli *cli)
{
	const char *text = args_plain(&cli->args, 1);

	return answer(cli, text ? text : "yes", false);
}

static int run_deny(struct cli *cli)
{
	return answer(cli, args_plain(&cli->args, 1), true);
}

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
		"still waits goes on with it; otherwise the task is ready again, and whoever takes it gets the answer.",
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
	.brief = "answer yes",
	.text = "Answers \"yes\", or the text, to a task that asks.",
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
	.brief = "answer no",
	.text = "Says no to a task that asks; the text says why. The task goes on with the denial: it is for its worker to "
		"find another way or to give up.",
	.examples = "stint deny t-7k3 \"not on a Friday\"\n",
	.run = run_deny,
};
