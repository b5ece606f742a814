/*
 * stint arm, disarm: the kill switch. It stops the handing out of work and nothing else.
 */
#include "base/take.h"
#include "cli/verb/task_view.h"
#include "cli/verb/verbs.h"

static const struct flag flags[] = {
	{"reason", 'r', FLAG_TEXT, .value = "TEXT", .text = "kept in the event, for the record",
		.member = "reason"},
	{0},
};

static int set(struct cli *cli)
{
	bool armed = cli->verb == &verb_arm;
	struct json_object *body = cli_body(cli);

	json_member_bool(body, "armed", armed);
	cli_member_flags(cli, body);
	cleanup(reply_done) struct reply reply = server_post(cli, "/api/execution", NULL, cli_body_end(cli));
	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "execution", reply.root);
	cli_say(cli,
		armed ? "execution is armed: work is handed out"
		      : "execution is disarmed: nothing is handed out until stint arm");
	return 0;
}

const struct verb verb_arm = {
	.name = "arm",
	.gives = GIVES_JSON,
	.brief = "hand work out again",
	.text = "Arms execution: work is handed out again after stint disarm.",
	.flags = flags,
	.examples = "stint arm\n",
	.run = set,
};

const struct verb verb_disarm = {
	.name = "disarm",
	.gives = GIVES_JSON,
	.brief = "hand nothing out",
	.text = "Disarms execution: every claim of every queue is refused with EXECUTION_DISARMED, and workers "
		"that wait for work get that refusal at once. What is running runs on, and may report; nothing is lost. It stays so "
		"over restarts, until stint arm.",
	.flags = flags,
	.examples = "stint disarm --reason \"the agents went wild\"\n",
	.run = set,
};
