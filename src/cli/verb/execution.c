/*
 * stint arm, disarm: the kill switch. It stops the handing out of work and nothing else.
 */
#include "cli/verb/task_view.h"

static const struct flag flags[] = {
	{"reason", 'r', FLAG_TEXT, .value = "TEXT", .text = "kept in the event, for the record",
		.member = "reason"},
	{0},
};

static int set(struct cli *cli, bool armed, const char *done)
{
	struct json_object *body = cli_body(cli);
	struct reply reply;

	json_member_bool(body, "armed", armed);
	cli_member_flags(cli, body);
	int r = server_post(cli, "/api/execution", NULL, cli_body_end(cli), &reply);
	if (r != 0)
		return r;
	if (cli->form == FORM_JSON)
		r = cli_put_json(cli, "execution", reply.root);
	else
		cli_say(cli, "%s", done);
	reply_done(&reply);
	return r;
}

static int run_arm(struct cli *cli)
{
	return set(cli, true, "execution is armed: work is handed out");
}

static int run_disarm(struct cli *cli)
{
	return set(cli, false, "execution is disarmed: nothing is handed out until stint arm");
}

const struct verb verb_arm = {
	.name = "arm",
	.group = GROUP_WORKERS,
	.gives = GIVES_JSON,
	.brief = "hand work out again",
	.text = "Arms execution: work is handed out again after stint disarm.",
	.flags = flags,
	.examples = "stint arm\n",
	.run = run_arm,
};

const struct verb verb_disarm = {
	.name = "disarm",
	.group = GROUP_WORKERS,
	.gives = GIVES_JSON,
	.brief = "hand nothing out",
	.text = "Disarms execution: every claim of every queue is refused with EXECUTION_DISARMED, and workers "
		"that wait for work are told so at once. What is running runs on, and may report; nothing is lost. It stays so "
		"over restarts, until stint arm.",
	.flags = flags,
	.examples = "stint disarm --reason \"the agents went wild\"\n",
	.run = run_disarm,
};
