/*
 * stint edit: other words, another place in the line or other limits for tasks that have not ended. Only what a flag names is
 * changed.
 */
#include <string.h>

#include "base/take.h"
#include "cli/verb/task_view.h"

static const struct flag flags[] = {
	{"title", 0, FLAG_TEXT, .value = "TEXT", .text = "another title", .member = "title"},
	{"file", 'f', FLAG_TEXT, OFFER_FILES, .value = "FILE",
		.text = "other instructions from a file; - is standard input"},
	{"queue", 'Q', FLAG_TEXT, OFFER_QUEUES, .value = "NAME", .text = "move it to this queue",
		.member = "queue"},
	{"priority", 'p', FLAG_PRIORITY, .value = "N",
		.text = "higher first; or urgent, high, normal, low, P0 to P3", .member = "priority"},
	{"executor", 'x', FLAG_TEXT, .value = "NAME", .text = "another executor", .member = "executor"},
	{"owner", 0, FLAG_TEXT, OFFER_SLOTS, .value = "SLOT", .text = "only for the worker in this slot",
		.member = "owner"},
	{"after", 0, FLAG_NAMES, OFFER_TASKS, true, true, .value = "ID,…",
		.text = "not before these tasks are done, in place of those before; empty: none"},
	{"not-before", 0, FLAG_MOMENT, .value = "TIME",
		.text = "not before that: 30m from now, 02:30, or 2026-12-31T18:00", .member = "notBefore"},
	{"start-by", 0, FLAG_MOMENT, .value = "TIME",
		.text = "the task fails if no worker has started it by then", .member = "startBy"},
	{"finish-by", 0, FLAG_MOMENT, .value = "TIME", .text = "the task fails if it is not done by then",
		.member = "finishBy"},
	{"timeout", 0, FLAG_DURATION, .value = "TIME", .text = "time limit of one attempt",
		.member = "timeoutMs"},
	{"max-attempts", 0, FLAG_NUMBER, .value = "N", .text = "failures before it is given up", .least = 1,
		.most = 1000000, .member = "maxAttempts"},
	{"needs", 0, FLAG_NAMES, .many = true, .may_be_empty = true, .value = "CAP,…",
		.text = "capabilities that a worker must have, in place of those before; empty: none",
		.member = "requires"},
	{"label", 'l', FLAG_NAMES, .many = true, .may_be_empty = true, .value = "LABEL,…",
		.text = "labels, in place of those before; empty: none", .member = "labels"},
	{0},
};

static bool changes_anything(const struct cli *cli)
{
	for (const struct flag *flag = flags; flag->name; flag++) {
		if (args_has(&cli->args, flag->name))
			return true;
	}
	return false;
}

static int edit_one(struct cli *cli, const char *id)
{
	struct ask question = {
		.method = HTTP_METHOD_PATCH, .path = "/api/tasks/*", .names = {id}, .may_repeat = true};
	const char *file = args_text(&cli->args, "file");
	struct json_object *body = cli_body(cli);
	cleanup(reply_done) struct reply reply = {0};

	cli_member_flags(cli, body);
	if (args_has(&cli->args, "after"))
		cli_member_names(cli, body, "after", "blockedBy");
	if (file)
		json_member_string(body, "instructions", cli_read_input(cli, file));
	question.body = cli_body_end(cli);
	int r = server_ask(cli, &question, &reply);
	if (r != 0)
		return r;
	cli->changed++;
	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "task", reply.root);
	cli_put_change(cli, cli->args.plain_count, id, cli_text(cli, "%s is changed", id));
	return 0;
}

static int run(struct cli *cli)
{
	if (!changes_anything(cli))
		return cli_fail(cli, EXIT_USAGE, "usage", "stint help edit",
			"nothing to change: name it with a flag, as --priority high");
	if (cli->args.plain_count > 1 && args_has(&cli->args, "file") &&
		strcmp(args_text(&cli->args, "file"), "-") == 0)
		return cli_fail(cli, EXIT_USAGE, "usage", "stint help edit",
			"standard input can be read once: give --file - with one task");
	int r = cli_each(cli, edit_one);
	if (cli->output != OUTPUT_JSON && cli->term.tty && cli->args.plain_count > CHANGES_TOLD &&
		cli->changed > 0)
		cli_put(cli, "%zu tasks changed\n", cli->changed);
	return r;
}

const struct verb verb_edit = {
	.name = "edit",
	.arguments = "ID...",
	.most = 1000,
	.offer = OFFER_TASKS,
	.gives = GIVES_JSON,
	.brief = "change tasks that wait",
	.text = "Changes what the flags name of tasks that have not ended, and nothing else. What a worker runs already goes on as it was "
		"begun; the next attempt sees the change. Prints the ids, or on a terminal what was done; with --json, one object per task.",
	.flags = flags,
	.examples = "stint edit t-7k3 --priority urgent\n"
		    "stint edit t-7k3 --title \"port the parser\" --not-before 22:00\n"
		    "stint ls --queue ci -o id | xargs -r stint edit --queue slow\n",
	.run = run,
};
