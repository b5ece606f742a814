/*
 * stint errors: what failed and why, counted by cause.
 */
#include "base/take.h"
#include "cli/verb/task_view.h"

static struct span cause(struct cli *cli, yyjson_val *error)
{
	struct span code = field_text(error, "code"), message = field_text(error, "message");

	if (message.len == 0)
		return code;
	return span_of(cli_text(cli, "%-16.*s %.*s", SPAN_ARGS(code), SPAN_ARGS(message)));
}

static const struct column columns[] = {
	{"TASKS", "tasks", COLUMN_NUMBER, .right = true},
	{"LAST", "lastAt", COLUMN_AGE, .right = true},
	{"ID", "id", .paint = PAINT_DIM, .shrinks = true, .rank = 1, .from = 110},
	{"CAUSE", .make = cause, .shrinks = true},
};

static const struct list_view errors = {
	.path = "/api/errors",
	.key = "errors",
	.id = "id",
	VIEW_COLUMNS(columns),
	.none = "No task has failed or is blocked.",
};

const struct verb verb_errors = {
	.name = "errors",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "what failed, and why",
	.text = "Lists why tasks have failed or are blocked: how many have the same cause, when the last of them came to it, the code, and the "
		"message with N in place of its numbers. stint bulk retry --error takes the code, or the id of one cause (-o id).",
	.examples = "stint errors\n"
		    "stint errors --json=id,tasks,message\n"
		    "stint bulk retry --error CHECK_FAILED --yes\n",
	.list = &errors,
};
