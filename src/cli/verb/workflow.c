/*
 * stint workflow: the stages that tasks may go through, and what moves them. A workflow is data; this shows it.
 */
#include "base/take.h"
#include "cli/verb/task_view.h"

enum { C_NAME, C_LAST, C_RULES, C_FROM, C_TEXT, C_COUNT };

static const struct column columns[C_COUNT] = {
	[C_NAME] = {.name = "WORKFLOW", .shrinks = true},
	[C_LAST] = {.name = "LAST STAGE"},
	[C_RULES] = {.name = "RULES", .right = true},
	[C_FROM] = {.name = "FROM"},
	[C_TEXT] = {.name = "TEXT", .shrinks = true, .rank = 1},
};

static void add_row(struct cli *cli, struct table *table, yyjson_val *workflow)
{
	bool built_in = yyjson_is_true(field_get(workflow, "builtIn"));

	table_row(table);
	table_cell(table, C_NAME, field_text(workflow, "name"), PAINT_BOLD);
	table_cell(table, C_LAST, field_text(workflow, "last"), PAINT_NONE);
	table_cell(table, C_RULES, view_number(cli, (int64_t)yyjson_arr_size(field_get(workflow, "rules"))),
		PAINT_NONE);
	table_cell(table, C_FROM, built_in ? SPAN("built in") : SPAN("configuration"), PAINT_NONE);
	table_cell(table, C_TEXT, field_text(workflow, "text"), PAINT_NONE);
}

static int run_ls(struct cli *cli)
{
	static const struct list_view view = {
		.path = "/api/workflows",
		.key = "workflows",
		.id = "name",
		.columns = columns,
		.column_count = C_COUNT,
		.add = add_row,
	};

	return view_put_list(cli, &view);
}

enum { R_EVENTS, R_FROM, R_TO, R_GUARDS, R_ACTION, R_COUNT };

static const struct column rule_columns[R_COUNT] = {
	[R_EVENTS] = {.name = "EVENTS", .shrinks = true},
	[R_FROM] = {.name = "FROM", .shrinks = true},
	[R_TO] = {.name = "TO"},
	[R_GUARDS] = {.name = "GUARDS", .shrinks = true, .rank = 1},
	[R_ACTION] = {.name = "ACTION", .rank = 2},
};

/* "a b" of ["a","b"]; "-" of none. */
static struct span words_of(struct cli *cli, yyjson_val *list)
{
	const char *text = "";
	size_t at, count;
	yyjson_val *word;

	yyjson_arr_foreach(list, at, count, word) text =
		cli_text(cli, "%s%s%s", text, at > 0 ? " " : "", yyjson_get_str(word));
	return count > 0 ? span_of(text) : SPAN("-");
}

/* Where it leads: with the claim reported, or the attempt rejected. */
static struct span end_of(struct cli *cli, yyjson_val *rule)
{
	const char *to = field_cstr(cli, rule, "to");

	if (yyjson_is_true(field_get(rule, "reports")))
		return span_of(cli_text(cli, "%s (reports)", to));
	if (field_get(rule, "onReject"))
		return span_of(cli_text(cli, "rejected: %s", field_cstr(cli, rule, "onReject")));
	return span_of(to);
}

static void put_rules(struct cli *cli, yyjson_val *rules)
{
	struct table table;
	size_t at, count;
	yyjson_val *rule;

	table_init(&table, rule_columns, R_COUNT, cli->term.utf8);
	yyjson_arr_foreach(rules, at, count, rule)
	{
		struct span action = field_text(rule, "action");
		table_row(&table);
		table_cell(&table, R_EVENTS, words_of(cli, field_get(rule, "events")), PAINT_BOLD);
		table_cell(&table, R_FROM, words_of(cli, field_get(rule, "from")), PAINT_NONE);
		table_cell(&table, R_TO, end_of(cli, rule), PAINT_NONE);
		table_cell(&table, R_GUARDS, words_of(cli, field_get(rule, "guards")), PAINT_NONE);
		table_cell(&table, R_ACTION, view_or_dash(action), PAINT_NONE);
	}
	view_put_rows(cli, &table, "rules", rules, "to");
	table_done(&table);
}

static int run_show(struct cli *cli)
{
	struct table table;
	struct reply reply;

	int r = server_get(cli, "/api/workflows/*", args_plain(&cli->args, 0), &reply);
	if (r != 0)
		return r;
	if (cli->form == FORM_JSON) {
		r = cli_put_json(cli, "workflow", reply.root);
		reply_done(&reply);
		return r;
	}
	table_init(&table, columns, C_COUNT, cli->term.utf8);
	add_row(cli, &table, reply.root);
	view_put_row_as_lines(cli, &table);
	cli_put(cli, "\n");
	put_rules(cli, field_get(reply.root, "rules"));
	table_done(&table);
	reply_done(&reply);
	return 0;
}

const struct verb verb_workflow_ls = {
	.name = "workflow ls",
	.group = GROUP_WORKERS,
	.arguments = "",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "the workflows",
	.text = "Lists the workflows that tasks may have: those that are built in, and those of the server's configuration "
		"(\"workflows\" in config.json).",
	.examples = "stint workflow ls\n",
	.run = run_ls,
};

const struct verb verb_workflow_show = {
	.name = "workflow show",
	.group = GROUP_WORKERS,
	.arguments = "NAME",
	.least = 1,
	.most = 1,
	.offer = OFFER_WORKFLOWS,
	.gives = GIVES_JSON,
	.brief = "its rules",
	.text = "Shows one workflow with its rules in order: the first rule that has the name of the event and the stage "
		"of the task, and whose guards hold, moves the task.",
	.examples = "stint workflow show autopilot\n",
	.run = run_show,
};
