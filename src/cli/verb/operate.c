/*
 * stint cancel, retry, park, unpark: what a person does to tasks. Each takes any number of them; one that is refused
 * does not keep the others from it.
 */

#include "base/take.h"
#include "cli/verb/task_view.h"

static const struct flag flags[] = {
	{"reason", 'r', FLAG_TEXT, .value = "TEXT", .text = "kept in the event, for the record"},
	{"dry-run", 'n', FLAG_SWITCH, .text = "only show which tasks it would be"},
	{0},
};

static int show_only(struct cli *cli, const char *id)
{
	struct reply reply;
	int r = server_get(cli, "/api/tasks/*", id, &reply);

	if (r != 0)
		return r;
	if (cli->form == FORM_JSON)
		cli_put_json(cli, "task", reply.root);
	else
		view_put_task(cli, reply.root);
	reply_done(&reply);
	return 0;
}

static int operate(struct cli *cli, const char *id, const char *path, const char *done, const char *begun)
{
	const char *reason = args_text(&cli->args, "reason");
	cleanup(buf_done) struct buf body = {0};
	struct json_object object;
	struct reply reply;

	buf_init(&body, 64 << 10);
	json_begin(&object, &body);
	if (reason)
		json_member_string(&object, "reason", span_of(reason));
	json_end(&object);
	int r = server_post(cli, path, id, cli_span(cli, &body), &reply);
	if (r != 0)
		return r;
	r = view_put_task_done(cli, reply.root, reply.status == 202 ? begun : done);
	reply_done(&reply);
	return r;
}

static int operate_all(struct cli *cli, const char *path, const char *done, const char *begun)
{
	int status = 0;

	for (size_t i = 0; i < cli->args.plain_count; i++) {
		const char *id = args_plain(&cli->args, i);
		int r = args_has(&cli->args, "dry-run") ? show_only(cli, id)
							: operate(cli, id, path, done, begun);
		status = status != 0 ? status : r;
		if (r == EXIT_UNREACHABLE || r == EXIT_UNAUTHORISED)
			break; /* it would be the same for all */
	}
	return status;
}

static int run_cancel(struct cli *cli)
{
	return operate_all(
		cli, "/api/tasks/*/cancel", "is cancelled", "is told to stop; stint wait says when it has");
}

static int run_retry(struct cli *cli)
{
	return operate_all(cli, "/api/tasks/*/retry", "gets another try", "");
}

static int run_park(struct cli *cli)
{
	return operate_all(cli, "/api/tasks/*/park", "is parked; stint unpark lets it go on", "");
}

static int run_unpark(struct cli *cli)
{
	return operate_all(cli, "/api/tasks/*/unpark", "goes on", "");
}

#define OPERATES                                                                                   \
	.group = GROUP_WORK, .arguments = "ID...", .least = 1, .most = 1000, .offer = OFFER_TASKS, \
	.gives = GIVES_JSON, .flags = flags

const struct verb verb_cancel = {
	.name = "cancel",
	OPERATES,
	.brief = "call tasks off",
	.text = "Calls tasks off. One that nobody works on is cancelled at once; under a worker that beats, the worker is "
		"told, and the task is cancelled when it has stopped. Prints the ids; with --json, one object per task.",
	.examples = "stint cancel t-7k3 --reason \"superseded\"\n"
		    "stint ls --label nightly -o id | xargs -r stint cancel\n",
	.run = run_cancel,
};

const struct verb verb_retry = {
	.name = "retry",
	OPERATES,
	.brief = "try ended tasks again",
	.text = "Gives tasks that are blocked, failed, done or cancelled another try with fresh budgets. Parents that failed "
		"are no longer waited for. Prints the ids; with --json, one object per task.",
	.examples =
		"stint retry t-7k3\n"
		"stint ls --state failed --queue ci -o id | xargs -r stint retry --reason \"runner fixed\"\n",
	.run = run_retry,
};

const struct verb verb_park = {
	.name = "park",
	OPERATES,
	.brief = "hold tasks back",
	.text = "Holds tasks back that nobody has taken yet: only a claim that asks for pending ones gets them. Prints the "
		"ids; with --json, one object per task.",
	.examples = "stint park t-7k3 t-7k4\n",
	.run = run_park,
};

const struct verb verb_unpark = {
	.name = "unpark",
	OPERATES,
	.brief = "let them go on",
	.text = "Lets parked tasks go on. Prints the ids; with --json, one object per task.",
	.examples = "stint unpark t-7k3\n",
	.run = run_unpark,
};
