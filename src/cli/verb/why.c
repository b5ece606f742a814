/*
 * stint why: the question that everybody asks of a queue, answered in one sentence and with the command that moves
 * the task on.
 */
#include "base/take.h"
#include "cli/verb/task_view.h"

static int run_one(struct cli *cli, const char *id)
{
	cleanup(reply_done) struct reply why = {0};

	int r = server_get_of_task(cli, "/api/tasks/*/why", id, &why);
	if (r == 0 && cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "why", why.root);
	if (r == 0)
		view_put_why(cli, why.root);
	return r;
}

static int run(struct cli *cli)
{
	return cli_each(cli, run_one);
}

const struct verb verb_why = {
	.name = "why",
	.arguments = "ID...",
	.most = 1000,
	.offer = OFFER_TASKS,
	.gives = GIVES_JSON | GIVES_AGAIN,
	.brief = "why is it not running?",
	.text = "Says in one sentence why a task is where it is, and which command moves it on. With --json, one object "
		"per task.",
	.examples = "stint why t-7k3\n"
		    "stint ls --state ready -o id | xargs -r stint why\n",
	.run = run,
};
