/*
 * stint workflow: the stages that tasks may go through, and what moves them. A workflow is data; this shows it.
 */
#include "base/take.h"
#include "cli/verb/task_view.h"

static struct span rule_count(struct cli *cli, yyjson_val *workflow)
{
	return view_number(cli, (int64_t)yyjson_arr_size(field_get(workflow, "rules")));
}

static struct span origin(struct cli *cli, yyjson_val *workflow)
{
	(void)cli;
	return field_bool(workflow, "builtIn") ? SPAN("built in") : SPAN("configuration");
}

static const struct column columns[] = {
	{"WORKFLOW", "name", .paint = PAINT_BOLD, .shrinks = true},
	{"LAST STAGE", .member = "last"},
	{"RULES", .make = rule_count, .right = true},
	{"FROM", .make = origin},
	{"TEXT", "text", .shrinks = true, .rank = 1},
};

/* Where it leads: with the claim reported, or the attempt rejected. */
static struct span end_of(struct cli *cli, yyjson_val *rule)
{
	const char *to = field_cstr(cli, rule, "to");

	if (field_bool(rule, "reports"))
		return span_of(cli_text(cli, "%s (reports)", to));
	if (field_get(rule, "onReject"))
		return span_of(cli_text(cli, "rejected: %s", field_cstr(cli, rule, "onReject")));
	return span_of(to);
}

static const struct column rule_columns[] = {
	{"EVENTS", "events", COLUMN_WORDS, .paint = PAINT_BOLD, .shrinks = true},
	{"FROM", "from", COLUMN_WORDS, .shrinks = true},
	{"TO", .make = end_of},
	{"GUARDS", "guards", COLUMN_WORDS, .shrinks = true, .rank = 1},
	{"ACTION", "action", COLUMN_DASH, .rank = 2},
};

static void put_rules(struct cli *cli, yyjson_val *workflow)
{
	yyjson_val *rules = field_get(workflow, "rules"), *rule;
	struct table table;
	size_t at, count;

	cli_put(cli, "\n");
	table_init(&table, rule_columns, sizeof rule_columns / sizeof *rule_columns, cli->term.utf8);
	yyjson_arr_foreach(rules, at, count, rule) view_add_row(cli, &table, rule);
	view_put_rows(cli, &table, "rules", rules, "to");
	table_done(&table);
}

static const struct list_view workflows = {
	.path = "/api/workflows",
	.key = "workflows",
	.id = "name",
	VIEW_COLUMNS(columns),
	.one = "workflow",
	.rest = put_rules,
};

const struct verb verb_workflow_ls = {
	.name = "workflow ls",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "the workflows",
	.text = "Lists the workflows that tasks may have: the built-in ones, and the ones of the server's configuration "
		"(\"workflows\" in config.json).",
	.examples = "stint workflow ls\n",
	.list = &workflows,
};

const struct verb verb_workflow_show = {
	.name = "workflow show",
	.arguments = "NAME",
	.offer = OFFER_WORKFLOWS,
	.gives = GIVES_JSON,
	.brief = "its rules",
	.text = "Shows one workflow with its rules in order: the first rule that has the name of the event and the stage "
		"of the task, and whose guards hold, moves the task.",
	.examples = "stint workflow show autopilot\n",
	.list = &workflows,
};
