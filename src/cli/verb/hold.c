/*
 * stint hold: accounts whose tasks are passed over, because the account is exhausted, logged out, or its service is down.
 */
#include "base/take.h"
#include "cli/verb/task_view.h"

static struct span until(struct cli *cli, yyjson_val *hold)
{
	int64_t until_ms = field_int(hold, "until", 0);
	const char *state = field_cstr(cli, hold, "state");

	if (!span_equal(span_of(state), SPAN("held")))
		return span_of(state[0] == 'p' ? "one task tries it" : "works again, a few at a time");
	if (until_ms == 0)
		return SPAN("a person acts");
	return span_of(cli_text(cli, "%.*s, %.*s", SPAN_ARGS(view_clock(cli, until_ms)),
		SPAN_ARGS(view_relative(cli, until_ms))));
}

static struct span cause(struct cli *cli, yyjson_val *hold)
{
	const char *code = field_cstr(cli, hold, "code");

	if (span_equal(span_of(code), SPAN("AUTH")))
		return SPAN("login gone (AUTH)");
	if (span_equal(span_of(code), SPAN("UPSTREAM")))
		return SPAN("its service is down (UPSTREAM)");
	if (span_equal(span_of(code), SPAN("BUDGET_EXCEEDED")))
		return SPAN("its budget for today is used up");
	return span_of(code[0] ? "limit reached (QUOTA)" : "held by a person");
}

static const struct column columns[] = {
	{"ACCOUNT", "credential", .paint = PAINT_BOLD, .shrinks = true},
	{"UNTIL", .make = until, .shrinks = true},
	{"TASKS", "tasks", COLUMN_NUMBER, .right = true},
	{"WHY", .make = cause, .shrinks = true, .rank = 1},
};

static const struct list_view holds = {
	.path = "/api/holds",
	.key = "holds",
	.id = "credential",
	VIEW_COLUMNS(columns),
	.none = "No account is held.",
};

const struct verb verb_hold_ls = {
	.name = "hold ls",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "accounts that are held",
	.text = "Lists the accounts that are held: until when, how many tasks that name the account wait, and why.",
	.examples = "stint hold ls\n",
	.list = &holds,
};

static const struct flag add_flags[] = {
	{"until", 0, FLAG_MOMENT, .value = "TIME", .text = "lift it by itself then", .member = "until"},
	{"reason", 0, FLAG_TEXT, .value = "TEXT", .text = "why, for the event", .member = "reason"},
	{0},
};

static int run_add(struct cli *cli)
{
	struct json_object *body = cli_body(cli);
	const char *account = args_plain(&cli->args, 0);

	json_member_string(body, "credential", span_of(account));
	cli_member_flags(cli, body);
	cleanup(reply_done) struct reply reply = server_post(cli, "/api/holds", NULL, cli_body_end(cli));
	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "hold", reply.root);
	cli_put_change(cli, 1, account,
		cli_text(cli, "Account %s is held; its tasks wait, what runs goes on", account));
	return 0;
}

const struct verb verb_hold_add = {
	.name = "hold add",
	.arguments = "ACCOUNT",
	.gives = GIVES_JSON,
	.brief = "pass over its tasks",
	.text = "Tasks of the account stay ready and are not handed out until the time has come, or until stint hold rm. What runs goes "
		"on. When the time has come one task tries the account first.",
	.flags = add_flags,
	.examples = "stint hold add team-account --until 2h\n",
	.run = run_add,
};

const struct verb verb_hold_rm = {
	.name = "hold rm",
	.arguments = "ACCOUNT...",
	.most = 100,
	.gives = GIVES_JSON,
	.brief = "lift a hold",
	.text = "The tasks of the account are handed out again at once.",
	.examples = "stint hold rm team-account\n",
	.change = &(const struct change){"hold", "/api/holds/*", .deletes = true,
		.done = "is no longer held: its tasks are handed out"},
};
