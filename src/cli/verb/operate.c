/*
 * stint cancel, retry, park, unpark: what a person does to tasks. Each takes any number of them; one that is refused
 * does not keep the others from it.
 */

#include "base/take.h"
#include "cli/verb/task_view.h"

static const struct flag flags[] = {
	{"reason", 'r', FLAG_TEXT, .value = "TEXT", .text = "kept in the event, for the record",
		.member = "reason"},
	{"dry-run", 'n', FLAG_SWITCH, .text = "only show the tasks; change nothing"},
	{0},
};

static const struct flag retry_flags[] = {
	{"reason", 'r', FLAG_TEXT, .value = "TEXT", .text = "kept in the event, for the record",
		.member = "reason"},
	{"fresh", 'f', FLAG_SWITCH,
		.text = "an agent begins a new session, on any host, and goes on with none that it has had",
		.member = "fresh"},
	{"dry-run", 'n', FLAG_SWITCH, .text = "only show the tasks; change nothing"},
	{0},
};

static int show_only(struct cli *cli, const char *id)
{
	cleanup(reply_done) struct reply reply = {0};
	int r = server_ask(cli, &(const struct ask){HTTP_METHOD_GET, "/api/tasks/*", .names = {id}}, &reply);

	if (r != 0)
		return r;
	if (cli->output == OUTPUT_JSON)
		cli_put_json(cli, "task", reply.root);
	else
		view_put_task(cli, reply.root);
	return 0;
}

static int operate(struct cli *cli)
{
	return args_has(&cli->args, "dry-run") ? cli_each(cli, show_only) : server_change_each(cli);
}

#define OPERATES .arguments = "ID...", .most = 1000, .offer = OFFER_TASKS, .gives = GIVES_JSON, .run = operate

const struct verb verb_cancel = {
	.name = "cancel",
	OPERATES,
	.flags = flags,
	.brief = "cancel tasks",
	.text = "Cancels tasks. A task that no worker holds is cancelled at once. If a worker with heartbeats holds it, that worker "
		"stops the work first, and then the task is cancelled. Prints the ids, or on a terminal what became of them; with --json, one object per task.",
	.examples = "stint cancel t-7k3 --reason \"superseded\"\n"
		    "stint ls --label nightly -o id | xargs -r stint cancel\n",
	.change = &(const struct change){"task", "/api/tasks/*/cancel", .done = "is cancelled",
		.many = "cancelled",
		.begun = "is being stopped by its worker; stint wait returns when it has stopped"},
};

const struct verb verb_retry = {
	.name = "retry",
	OPERATES,
	.flags = retry_flags,
	.brief = "try ended tasks again",
	.text = "Gives tasks that are blocked, failed, done or cancelled another try with fresh budgets. Parents that failed "
		"are no longer waited for. Prints the ids, or on a terminal what became of them; with --json, one object per task.",
	.examples =
		"stint retry t-7k3\n"
		"stint retry t-7k3 --fresh\n"
		"stint ls --state failed --queue ci -o id | xargs -r stint retry --reason \"runner fixed\"\n",
	.change = &(const struct change){"task", "/api/tasks/*/retry", .done = "gets another try",
		.many = "get another try"},
};

const struct verb verb_park = {
	.name = "park",
	OPERATES,
	.flags = flags,
	.brief = "hold tasks back",
	.text = "Parks tasks that no worker has claimed: only a claim with --include-statuses pending gets them. Prints the "
		"ids, or on a terminal what became of them; with --json, one object per task.",
	.examples = "stint park t-7k3 t-7k4\n",
	.change = &(const struct change){"task", "/api/tasks/*/park",
		.done = "is parked; stint unpark lets it go on", .many = "parked"},
};

const struct verb verb_unpark = {
	.name = "unpark",
	OPERATES,
	.flags = flags,
	.brief = "undo stint park",
	.text = "Unparks tasks: workers get them again. Prints the ids, or on a terminal what became of them; with --json, one object per task.",
	.examples = "stint unpark t-7k3\n",
	.change = &(const struct change){"task", "/api/tasks/*/unpark", .done = "goes on", .many = "go on"},
};
