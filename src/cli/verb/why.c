/*
 * stint why: the question that everybody asks of a queue, answered in one sentence and with the command that moves
 * the task on.
 */
#include "base/take.h"
#include "cli/verb/task_view.h"

enum {
	OBJECT_BYTES_MAX = 1 << 20,
};

/* What the server says; `sentence` and `fix` are what `text` and `try` were called before, and stay with this schema. */
static int put_object(struct cli *cli, yyjson_val *why)
{
	cleanup(buf_done) struct buf text = {0};
	struct span command = field_text(why, "try");
	struct json_object object;

	buf_init(&text, OBJECT_BYTES_MAX);
	json_begin(&object, &text);
	cli_members_of(&object, why, NULL);
	json_member_string(&object, "sentence", span_of(view_why_sentence(cli, why)));
	json_member_string_or_null(&object, "fix", command);
	json_end(&object);
	return cli_put_json_buf(cli, true, "why", &text);
}

static int run_one(struct cli *cli, const char *id)
{
	cleanup(reply_done) struct reply why = {0};

	int r = server_get_of_task(cli, "/api/tasks/*/why", id, &why);
	if (r == 0 && cli->output == OUTPUT_JSON)
		return put_object(cli, why.root);
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
