/*
 * Budgets of a day: stint queue budget, stint hold budget, and stint hold accounts with what was used today.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/take.h"
#include "cli/verb/task_view.h"

static const struct flag budget_flags[] = {
	{"usd", 0, FLAG_TEXT, .value = "N|none",
		.text = "dollars, as far as the agents say them or have prices"},
	{"tokens", 0, FLAG_TEXT, .value = "N|none",
		.text = "tokens of input, of output and of what is written to a cache"},
	{"turns", 0, FLAG_TEXT, .value = "N|none", .text = "turns of agents"},
	{"tool-calls", 0, FLAG_TEXT, .value = "N|none", .text = "calls of tools"},
	{"reason", 0, FLAG_TEXT, .value = "TEXT", .text = "why, for the event", .member = "reason"},
	{0},
};

static const struct {
	const char *flag, *member;
	bool is_whole;
} parts[] = {
	{"usd", "usd", false},
	{"tokens", "tokens", true},
	{"turns", "turns", true},
	{"tool-calls", "toolCalls", true},
};

enum { PARTS = sizeof parts / sizeof *parts };

/* How many there are; a wrong one ends the run. */
static int put_parts(struct cli *cli, const char *verb, struct json_object *budget)
{
	int count = 0;

	for (size_t i = 0; i < PARTS; i++) {
		const char *text = args_text(&cli->args, parts[i].flag);
		char *end;
		if (!text)
			continue;
		count++;
		if (strcmp(text, "none") == 0) {
			json_member_raw(budget, parts[i].member, SPAN("null"));
			continue;
		}
		double number = strtod(text, &end);
		bool whole = strspn(text, "0123456789") == strlen(text);
		if (*end != 0 || !(number > 0) || !isfinite(number) || (parts[i].is_whole && !whole))
			cli_die(cli, EXIT_USAGE, "usage", cli_text(cli, "stint help %s", verb),
				"--%s must be %s, or none; it is \"%s\"", parts[i].flag,
				parts[i].is_whole ? "a whole number from 1" : "a number above 0", text);
		if (json_put_key(budget, parts[i].member))
			buf_printf(budget->buf, "%.*s", (int)strlen(text), text);
	}
	return count;
}

static struct span amount(struct cli *cli, yyjson_val *of, const char *member)
{
	double number = 0;

	json_number(yyjson_obj_get(of, member), &number);
	return span_of(strcmp(member, "usd") == 0
			? cli_text(cli, "$%.2f", number)
			: cli_text(cli, "%.0f %s", number,
				  strcmp(member, "toolCalls") == 0 ? "tool calls" : member));
}

/* "$20.00 and 500 turns", of its limits; "": it has none. */
static const char *limits_of(struct cli *cli, yyjson_val *object)
{
	yyjson_val *budget = field_get(object, "budget");
	const char *text = "";

	for (size_t i = 0; i < PARTS; i++) {
		if (yyjson_obj_get(budget, parts[i].member))
			text = cli_text(cli, "%s%s%.*s", text, text[0] ? " and " : "",
				SPAN_ARGS(amount(cli, budget, parts[i].member)));
	}
	return text;
}

/* "$1.20 and 12 turns", of what is used; only what has a limit, if anything has. */
static const char *used_of(struct cli *cli, yyjson_val *object)
{
	yyjson_val *used = field_get(object, "spentToday"), *budget = field_get(object, "budget");
	const char *text = "";
	double number;

	for (size_t i = 0; i < PARTS; i++) {
		bool any = json_number(yyjson_obj_get(used, parts[i].member), &number) && number > 0;
		if (budget ? yyjson_obj_get(budget, parts[i].member) != NULL : any)
			text = cli_text(cli, "%s%s%.*s", text, text[0] ? " and " : "",
				SPAN_ARGS(amount(cli, used, parts[i].member)));
	}
	return text[0] ? text : "nothing";
}

struct span view_day_budget(struct cli *cli, yyjson_val *object)
{
	const char *limits = limits_of(cli, object);

	if (!field_get(object, "spentToday"))
		return SPAN("");
	return span_of(limits[0]
			? cli_text(cli, "%s a day (UTC); used today: %s", limits, used_of(cli, object))
			: cli_text(cli, "none; used today: %s", used_of(cli, object)));
}

static int run_budget(struct cli *cli, const char *verb, const char *noun, const char *path)
{
	const char *name = args_plain(&cli->args, 0);
	struct ask question = {
		.method = HTTP_METHOD_PATCH, .path = path, .names = {name}, .may_repeat = true};
	struct json_object *body = cli_body(cli), budget;
	cleanup(reply_done) struct reply reply = {0};

	json_put_key(body, "budget");
	json_begin(&budget, body->buf);
	int count = put_parts(cli, verb, &budget);
	json_note(body, json_end(&budget));
	if (count == 0)
		return cli_fail(cli, EXIT_USAGE, "usage", cli_text(cli, "stint help %s", verb),
			"nothing to change: name a part, as --usd 20");
	cli_member_flags(cli, body);
	question.body = cli_body_end(cli);
	int r = server_ask(cli, &question, &reply);
	if (r != 0)
		return r;
	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, noun, reply.root);
	cli_put_change(cli, 1, name,
		cli_text(cli, "Budget of %s %s: %.*s", noun, name,
			SPAN_ARGS(view_day_budget(cli, reply.root))));
	return 0;
}

static int run_queue_budget(struct cli *cli)
{
	return run_budget(cli, "queue budget", "queue", "/api/queues/*");
}

const struct verb verb_queue_budget = {
	.name = "queue budget",
	.arguments = "QUEUE",
	.offer = OFFER_QUEUES,
	.gives = GIVES_JSON,
	.brief = "what agents may use in a day",
	.text = "Sets what the agents that work on tasks of the queue may use from midnight to midnight, UTC. When a part is spent nothing more of the "
		"queue is handed out that day; what runs goes on. Parts that are not named stay.",
	.flags = budget_flags,
	.examples = "stint queue budget code --usd 20\nstint queue budget code --usd none --turns 500\n",
	.run = run_queue_budget,
};

static int run_hold_budget(struct cli *cli)
{
	return run_budget(cli, "hold budget", "account", "/api/credentials/*");
}

const struct verb verb_hold_budget = {
	.name = "hold budget",
	.arguments = "ACCOUNT",
	.gives = GIVES_JSON,
	.brief = "what it may cost in a day",
	.text = "Sets what may be used on the account from midnight to midnight, UTC. When a part is spent the account is held until the next day begins, and "
		"a fallback of its executor serves; what runs goes on. A larger budget ends that hold. Parts that are not named stay.",
	.flags = budget_flags,
	.examples = "stint hold budget team-account --usd 20\nstint hold budget team-account --usd none\n",
	.run = run_hold_budget,
};

/* ---- accounts ---------------------------------------------------------------------------------------------------- */

static struct span make_budget(struct cli *cli, yyjson_val *account)
{
	const char *limits = limits_of(cli, account);

	return span_of(limits[0] ? limits : "none");
}

static struct span make_used(struct cli *cli, yyjson_val *account)
{
	return span_of(used_of(cli, account));
}

static const struct column columns[] = {
	{"ACCOUNT", "name", .paint = PAINT_BOLD, .shrinks = true},
	{"EXECUTOR", "executor", .shrinks = true},
	{"USED TODAY", .make = make_used, .shrinks = true},
	{"BUDGET", .make = make_budget, .shrinks = true},
	{"WORKER", "worker", .shrinks = true, .rank = 1},
};

static const struct list_view accounts = {
	.path = "/api/credentials",
	.key = "accounts",
	.id = "name",
	VIEW_COLUMNS(columns),
	.none = "No worker has announced an account.",
};

const struct verb verb_hold_accounts = {
	.name = "hold accounts",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "accounts, and what they used",
	.text = "Lists the accounts that workers announced, or that have a budget or were used today: what was used since midnight, UTC, and the budget of a day.",
	.examples = "stint hold accounts\n",
	.list = &accounts,
};
