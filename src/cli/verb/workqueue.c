/*
 * stint workqueue: the commands, flags, outputs and exit statuses of `clawnsole workqueue`, so that scripts and agents
 * that know it find what they know. Output is always JSON over several lines; whatever goes wrong is one sentence on
 * standard error, exit status 1, and nothing on standard output.
 *
 * What came after: a fence with every item that is held, which --fence shows again. Two processes under one name are
 * one to the server unless they do.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/take.h"
#include "cli/frame/cli.h"
#include "cli/verb/verbs.h"

enum {
	PAGE_ITEMS = 500,
};

#define JSON_FLAG {"json", 0, FLAG_SWITCH, .text = "accepted everywhere: the output is always JSON"}

static const struct flag enqueue_flags[] = {
	{"queue", 0, FLAG_TEXT, OFFER_QUEUES, .value = "QUEUE", .text = "where it goes; required",
		.must = true, .member = "queue"},
	{"instructions", 0, FLAG_TEXT, .value = "TEXT", .text = "what is to be done; required", .must = true,
		.member = "instructions"},
	{"title", 0, FLAG_TEXT, .value = "TEXT", .text = "a line for people (default \"(untitled)\")",
		.member = "title"},
	{"priority", 0, FLAG_TEXT, .value = "N", .text = "higher goes first (default 0)",
		.member = "priority"},
	{"dedupeKey", 0, FLAG_TEXT, .value = "KEY",
		.text = "if an item of the queue that is not over has it, that one is the answer",
		.member = "dedupeKey"},
	JSON_FLAG,
	{0},
};

#define AGENT                                                                                \
	{"agent", 0, FLAG_TEXT, .value = "NAME", .text = "who asks; required", .must = true, \
		.member = "agentId"}
#define LEASE \
	{"leaseMs", 0, FLAG_TEXT, .value = "MS", .text = "for how long (default 900000)", .member = "leaseMs"}
#define FENCE                                                                              \
	{"fence", 0, FLAG_TEXT, .value = "FENCE",                                          \
		.text = "of the item as it was claimed; without it the name alone counts", \
		.member = "fence"}

static const struct flag claim_flags[] = {
	AGENT,
	{"queues", 0, FLAG_TEXT, OFFER_QUEUES, .value = "QUEUE,QUEUE",
		.text = "from these (default: those assigned to the agent, else $CLAWNSOLE_DEFAULT_QUEUES, else dev-team)"},
	LEASE,
	{"includeStatuses", 0, FLAG_TEXT, .value = "STATUS,STATUS",
		.text = "ready, pending or both (default ready)", .member = "includeStatuses"},
	{"resumeOwned", 0, FLAG_SWITCH, .text = "first what this agent holds already, with a new fence",
		.member = "resumeOwned"},
	{"preferOwned", 0, FLAG_SWITCH, .text = "the same"},
	JSON_FLAG,
	{0},
};

static const struct flag progress_flags[] = {
	AGENT,
	{"note", 0, FLAG_TEXT, .value = "TEXT", .text = "how it goes; required", .must = true,
		.member = "note"},
	LEASE,
	FENCE,
	JSON_FLAG,
	{0},
};

static const struct flag done_flags[] = {
	AGENT,
	{"result", 0, FLAG_TEXT, OFFER_FILES, .value = "JSON|@FILE|TEXT", .text = "what came of it"},
	FENCE,
	JSON_FLAG,
	{0},
};

static const struct flag fail_flags[] = {
	AGENT,
	{"error", 0, FLAG_TEXT, .value = "TEXT",
		.text = "what went wrong; required. The item is not tried again", .must = true,
		.member = "error"},
	FENCE,
	JSON_FLAG,
	{0},
};

static const struct flag inspect_flags[] = {
	JSON_FLAG,
	{0},
};

static const struct flag list_flags[] = {
	{"queue", 0, FLAG_TEXT, OFFER_QUEUES, .value = "QUEUE", .text = "of this queue only"},
	{"status", 0, FLAG_TEXT, .value = "STATUS,STATUS",
		.text = "of ready, pending, claimed, in_progress, done, failed"},
	JSON_FLAG,
	{0},
};

static const struct flag assignments_flags[] = {
	{"agent", 0, FLAG_TEXT, .value = "NAME", .text = "of set: whose", .member = "agentId"},
	{"queues", 0, FLAG_TEXT, OFFER_QUEUES, .value = "QUEUE,QUEUE",
		.text = "of set: which, in that order"},
	JSON_FLAG,
	{0},
};

/* ---- what is asked --------------------------------------------------------------------------------------------- */

/* The value of a flag; NULL: the flag was not given, or has no value. */
static const char *value_of(const struct cli *cli, const char *flag)
{
	const char *text = args_text(&cli->args, flag);

	return text && text[0] ? text : NULL;
}

/* "claim-next", of "workqueue claim-next" */
static const char *command_name(const struct cli *cli)
{
	return strchr(cli->verb->name, ' ') + 1;
}

/* Tells what is missing first, in the words of the original. */
static bool has_all(struct cli *cli)
{
	if (cli->verb->offer == OFFER_TASKS && !args_plain(&cli->args, 0)) {
		cli_fail(cli, EXIT_FAILED, "usage", NULL, "%s requires <itemId>", command_name(cli));
		return false;
	}
	for (const struct flag *flag = cli->verb->flags; flag->name; flag++) {
		if (!flag->must || value_of(cli, flag->name))
			continue;
		cli_fail(cli, EXIT_FAILED, "usage", NULL, "%s requires --%s", command_name(cli), flag->name);
		return false;
	}
	return true;
}

/* "a, b" → ["a","b"]: the server trims them and drops what is blank. */
static void member_csv(struct json_object *body, const char *key, const char *text)
{
	bool any = false;

	json_put_key(body, key);
	buf_put_byte(body->buf, '[');
	for (size_t len; *text; text += len + (text[len] == ',')) {
		len = strcspn(text, ",");
		json_put_comma(body->buf, &any);
		json_put_string(body->buf, (struct span){text, len});
	}
	buf_put_byte(body->buf, ']');
}

/* ---- what is answered ------------------------------------------------------------------------------------------- */

/* Over several lines, each but the first behind that many spaces. No string has a line end in it: it is escaped. */
static void put_pretty(struct cli *cli, yyjson_val *value, int spaces)
{
	size_t len = 0;
	cleanup(free_at) char *text =
		value ? yyjson_val_write(value, YYJSON_WRITE_PRETTY_TWO_SPACES, &len) : NULL;

	for (const char *at = text; at; at = strchr(at, '\n')) {
		if (*at == '\n')
			cli_put(cli, "\n%*s", spaces, "");
		at += *at == '\n';
		cli_put(cli, "%.*s", (int)strcspn(at, "\n"), at);
	}
	if (value && !text)
		buf_fail(&cli->out, -ENOMEM);
	else if (!value)
		cli_put(cli, "null");
}

/* {"ok":true,"KEY":…,…}: the members of the reply that the original has, in its order. */
static int put_members(struct cli *cli, struct reply reply, const char *const *keys)
{
	cli_put(cli, "{\n  \"ok\": true");
	for (; *keys; keys++) {
		yyjson_val *value = field_get(reply.root, *keys);
		if (!value)
			continue;
		cli_put(cli, ",\n  \"%s\": ", *keys);
		put_pretty(cli, value, 2);
	}
	cli_put(cli, "\n}\n");
	reply_done(&reply);
	return 0;
}

static int put_item(struct cli *cli, struct reply reply)
{
	static const char *const keys[] = {"item", "reason", NULL};

	return put_members(cli, reply, keys);
}

/* ---- commands ----------------------------------------------------------------------------------------------------- */

/* JSON, @FILE with JSON in it, or a text. 0, or the ending. */
static int member_result(struct cli *cli, struct json_object *body)
{
	const char *given = args_text(&cli->args, "result");
	struct json_complaint complaint;
	struct span text = span_of(given);

	if (!args_has(&cli->args, "result"))
		return 0;
	if (!given)
		text = SPAN("true"); /* a flag without a value is that */
	bool from_file = given && given[0] == '@';
	if (from_file)
		text = cli_read_input(cli, given + 1);
	yyjson_doc *doc = json_read(text, &complaint);
	if (!doc && from_file) {
		struct json_place place = json_place(text, complaint.at);
		return cli_fail(cli, EXIT_FAILED, "invalid", NULL, "%s:%u:%u: %s", given + 1, place.line,
			place.column, complaint.reason);
	}
	if (doc)
		json_member_raw(body, "result", text);
	else
		json_member_string(body, "result", text);
	yyjson_doc_free(doc);
	return 0;
}

/* Which queues a claim is for, and whether it takes up what the agent holds already. */
static void put_claim(struct cli *cli, struct json_object *body)
{
	const char *defaults = getenv("CLAWNSOLE_DEFAULT_QUEUES");

	if (value_of(cli, "queues"))
		member_csv(body, "queues", value_of(cli, "queues"));
	if (defaults) /* set and empty means no queue at all */
		member_csv(body, "defaultQueues", defaults);
	if (args_has(&cli->args, "preferOwned") && !args_has(&cli->args, "resumeOwned"))
		json_member_bool(body, "resumeOwned", true);
}

/* The flags as members of a request that has the name of the command. */
static int run_change(struct cli *cli)
{
	struct json_object *body = cli_body(cli);

	if (!has_all(cli))
		return EXIT_FAILED;
	if (cli->verb->offer == OFFER_TASKS)
		cli_member_text(body, "itemId", args_plain(&cli->args, 0));
	if (cli->verb == &verb_workqueue_claim)
		put_claim(cli, body);
	cli_member_flags(cli, body);
	int r = member_result(cli, body);
	if (r != 0)
		return r;
	const char *path = cli_text(cli, "/api/workqueue/%s", command_name(cli));
	return put_item(cli, server_post(cli, path, NULL, cli_body_end(cli)));
}

static int run_inspect(struct cli *cli)
{
	if (!has_all(cli))
		return EXIT_FAILED;
	return put_item(cli, server_get(cli, "/api/workqueue/item/*", args_plain(&cli->args, 0)));
}

static const char *list_query(struct cli *cli, struct span after)
{
	const char *query = cli_text(cli, "order=oldest&limit=%d", PAGE_ITEMS);
	static const char *const flags[] = {"queue", "status"};

	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
		if (value_of(cli, flags[i]))
			query = cli_text(cli, "%s&%s=%.*s", query, flags[i],
				SPAN_ARGS(cli_encode(cli, span_of(value_of(cli, flags[i])))));
	}
	return after.len > 0 ? cli_text(cli, "%s&after=%.*s", query, SPAN_ARGS(after)) : query;
}

/* All items, oldest first, one page in memory at a time. */
static int run_list(struct cli *cli)
{
	struct ask question = {.method = HTTP_METHOD_GET, .path = "/api/workqueue/items"};
	struct span after = {0};
	bool any = false;

	do {
		yyjson_val *item;
		size_t at, count;
		question.query = span_of(list_query(cli, after));
		cleanup(reply_done) struct reply reply = server_need(cli, &question);
		if (after.len == 0)
			cli_put(cli, "{\n  \"ok\": true,\n  \"items\": [");
		yyjson_arr_foreach(field_get(reply.root, "items"), at, count, item)
		{
			cli_put(cli, "%s\n    ", any ? "," : "");
			put_pretty(cli, item, 4);
			any = true;
		}
		after = (struct span){0};
		struct span next = field_text(reply.root, "next");
		arena_reset(&cli->arena);
		if (next.len > 0)
			after = span_of(cli_text(cli, "%.*s", SPAN_ARGS(next)));
	} while (after.len > 0);
	cli_put(cli, "%s]\n}\n", any ? "\n  " : "");
	return 0;
}

static int assignments_set(struct cli *cli)
{
	static const char *const keys[] = {"agentId", "queues", NULL};
	struct json_object *body = cli_body(cli);

	if (!value_of(cli, "agent"))
		return cli_fail(cli, EXIT_FAILED, "usage", NULL, "assignments set requires --agent");
	if (!value_of(cli, "queues") ||
		strspn(value_of(cli, "queues"), ", ") == strlen(value_of(cli, "queues")))
		return cli_fail(cli, EXIT_FAILED, "usage", NULL, "assignments set requires --queues q1,q2");
	cli_member_flags(cli, body);
	member_csv(body, "queues", value_of(cli, "queues"));
	return put_members(
		cli, server_post(cli, "/api/workqueue/assignments", NULL, cli_body_end(cli)), keys);
}

static int run_assignments(struct cli *cli)
{
	static const char *const keys[] = {"assignments", NULL};
	const char *what = args_plain(&cli->args, 0);

	if (!what || strcmp(what, "help") == 0) {
		help_verb(cli, cli->verb);
		return 0;
	}
	if (strcmp(what, "set") == 0)
		return assignments_set(cli);
	if (strcmp(what, "list") != 0)
		return cli_fail(
			cli, EXIT_FAILED, "usage", NULL, "unknown workqueue assignments command: %s", what);
	return put_members(cli, server_get(cli, "/api/workqueue/assignments", NULL), keys);
}

/* ---- rows ------------------------------------------------------------------------------------------------------------ */

const struct verb verb_workqueue_enqueue = {
	.name = "workqueue enqueue",
	.stands_in = "clawnsole",
	.brief = "add an item",
	.text = "As clawnsole workqueue enqueue. Prints {ok,item}; an item that was there already has \"_deduped\": true.",
	.flags = enqueue_flags,
	.examples =
		"stint workqueue enqueue --queue dev-team --title \"Review open PRs\" --instructions \"Review and ship any safe PRs.\" --priority 50\n",
	.run = run_change,
};

const struct verb verb_workqueue_claim = {
	.name = "workqueue claim-next",
	.stands_in = "clawnsole",
	.brief = "take the next item",
	.text = "As clawnsole workqueue claim-next. Prints {ok,item}; \"item\": null when there is none, with \"reason\": \"NO_QUEUES\" when "
		"no queue is named, assigned or the default. The exit status is 0 all the same. The item carries a fence: show it again "
		"with --fence, and a process that has lost the item can change nothing.",
	.flags = claim_flags,
	.examples =
		"stint workqueue claim-next --agent dev-3 --queues dev-team --leaseMs 900000\n"
		"stint workqueue claim-next --agent dev-3 --resumeOwned --includeStatuses ready,pending\n",
	.run = run_change,
};

#define OF_AN_ITEM .arguments = "ID", .offer = OFFER_TASKS, .stands_in = "clawnsole"

const struct verb verb_workqueue_progress = {
	.name = "workqueue progress",
	OF_AN_ITEM,
	.brief = "extend the lease, with a note",
	.text = "As clawnsole workqueue progress: says how an item goes and extends its lease.",
	.flags = progress_flags,
	.examples = "stint workqueue progress t-7k3 --agent dev-3 --note \"tests pass\" --leaseMs 900000\n",
	.run = run_change,
};

const struct verb verb_workqueue_done = {
	.name = "workqueue done",
	OF_AN_ITEM,
	.brief = "an item is done",
	.text = "As clawnsole workqueue done. A result that is no JSON is a text; @FILE is read and must be JSON. What is over stays as "
		"it is: an item that was done, or failed, is refused.",
	.flags = done_flags,
	.examples = "stint workqueue done t-7k3 --agent dev-3 --result '{\"pr\":17}'\n"
		    "stint workqueue done t-7k3 --agent dev-3 --result @result.json\n",
	.run = run_change,
};

const struct verb verb_workqueue_fail = {
	.name = "workqueue fail",
	OF_AN_ITEM,
	.brief = "an item has failed, for good",
	.flags = fail_flags,
	.examples = "stint workqueue fail t-7k3 --agent dev-3 --error \"the build is broken\"\n",
	.run = run_change,
};

const struct verb verb_workqueue_inspect = {
	.name = "workqueue inspect",
	OF_AN_ITEM,
	.brief = "show an item",
	.text = "As clawnsole workqueue inspect. Prints {ok,item}; \"item\": null when there is none of that id, and the exit status is 0.",
	.flags = inspect_flags,
	.examples = "stint workqueue inspect t-7k3 --json\n",
	.run = run_inspect,
};

const struct verb verb_workqueue_list = {
	.name = "workqueue list",
	.stands_in = "clawnsole",
	.brief = "show items, oldest first",
	.flags = list_flags,
	.examples = "stint workqueue list --queue dev-team --status ready,claimed\n",
	.run = run_list,
};

const struct verb verb_workqueue_assignments = {
	.name = "workqueue assignments",
	.arguments = "list|set",
	.stands_in = "clawnsole",
	.brief = "queues that agents work for",
	.text = "As clawnsole workqueue assignments: list prints {ok,assignments}, set prints {ok,agentId,queues}.",
	.flags = assignments_flags,
	.examples = "stint workqueue assignments set --agent dev-3 --queues dev-team,qa\n"
		    "stint workqueue assignments list\n",
	.run = run_assignments,
};
