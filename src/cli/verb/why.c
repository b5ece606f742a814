/*
 * stint why: the question that everybody asks of a queue, answered in one sentence and with the command that moves
 * the task on.
 */
#include "base/take.h"
#include "cli/verb/reason.h"
#include "cli/verb/task_view.h"

enum {
	OBJECT_BYTES_MAX = 1 << 20,
};

/* What the server says, and what we make of it. */
static int put_object(struct cli *cli, yyjson_val *why, const struct answer_why *told)
{
	cleanup(buf_done) struct buf text = {0};
	struct json_object object;

	buf_init(&text, OBJECT_BYTES_MAX);
	json_begin(&object, &text);
	cli_members_of(&object, why, NULL);
	json_member_string(&object, "sentence", span_of(told->sentence));
	if (told->fix)
		json_member_string(&object, "fix", span_of(told->fix));
	else
		json_member_raw(&object, "fix", SPAN("null"));
	json_end(&object);
	return cli_put_json_buf(cli, true, "why", &text);
}

static int put_why(struct cli *cli, yyjson_val *why, const struct answer_why *told)
{
	if (cli->output == OUTPUT_JSON)
		return put_object(cli, why, told);
	cli_put_line(cli, "%s", told->sentence);
	if (told->fix)
		cli_put_line(cli, "  try: %s", told->fix);
	return 0;
}

static int run_one(struct cli *cli, const char *id)
{
	cleanup(reply_done) struct reply task = {0};

	int r = server_get_task(cli, id, &task);
	if (r != 0)
		return r;
	cleanup(reply_done) struct reply why =
		server_get(cli, "/api/tasks/*/why", field_cstr(cli, task.root, "id"));
	struct answer_why told = reason_tell(cli, why.root, task.root);
	return put_why(cli, why.root, &told);
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
