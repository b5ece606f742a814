/*
 * stint task add, stint task wait: what a program inside a task says of its subtasks.
 *
 * Both may be said again by the next attempt: a subtask with the same id is the same one, and what has ended is waited for no
 * more. So a script that begins anew goes on where the last one was.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/take.h"
#include "cli/verb/new_task.h"
#include "cli/verb/task_said.h"
#include "cli/verb/task_view.h"
#include "cli/verb/verbs.h"

enum {
	PATIENCE = 3, /* 1, 2, 4 s */
	LOOK_MS = 1000,
	WAITING_PATIENCE = 10, /* about a minute */
};

/* A subtask is created with the token of the claim. Somebody else who holds the claim gets that token first. 0, or the ending. */
static int take_claim_token(struct cli *cli)
{
	static const char claim_token[] = "stint_claim_";
	const char *task = task_given_or(cli, "task", "STINT_TASK_ID");
	const char *fence = task_given_or(cli, "fence", "STINT_FENCE");
	struct reply reply = {0};
	int r = server_find(cli);

	if (r != 0 || strncmp(cli->place.token, claim_token, sizeof claim_token - 1) == 0)
		return r;
	if (!task || !fence)
		return cli_fail(cli, EXIT_USAGE, "usage", "stint claim -o env   # prints both",
			"stint %s is for a program that works on a task: set $STINT_TASK_ID and $STINT_FENCE, or give --task and --fence",
			cli->verb->name);
	struct json_object *body = cli_body(cli);
	json_member_string(body, "kind", SPAN("claim"));
	json_member_string(body, "task", span_of(task));
	json_member_string(body, "fence", span_of(fence));
	struct ask question = {.method = HTTP_METHOD_POST,
		.path = "/api/tokens",
		.body = cli_body_end(cli),
		.patience = PATIENCE};
	r = server_ask(cli, &question, &reply);
	if (r != 0)
		return r;
	snprintf(cli->place.token, sizeof cli->place.token, "%.*s",
		SPAN_ARGS(field_text(reply.root, "token")));
	reply_done(&reply);
	return 0;
}

/* ---- add ------------------------------------------------------------------------------------------------------ */

static const struct flag add_flags[] = {
	{"id", 0, FLAG_TEXT, .value = "ID",
		.text = "its id: the next attempt that adds the same id gets this subtask", .member = "id"},
	{"executor", 'x', FLAG_TEXT, .value = "NAME",
		.text = "the executor (default: that of the task); another one must be allowed by the worker",
		.member = "executor"},
	{"queue", 'Q', FLAG_TEXT, OFFER_QUEUES, .value = "NAME",
		.text = "the queue (default: that of the task)", .member = "queue"},
	{"file", 'f', FLAG_TEXT, OFFER_FILES, .value = "FILE",
		.text = "instructions from a file; - is standard input"},
	{"payload", 0, FLAG_JSON, OFFER_FILES, .value = "JSON",
		.text = "data for the worker: JSON, @FILE or -", .member = "payload"},
	{"priority", 'p', FLAG_PRIORITY, .value = "N",
		.text = "not higher than that of the task, which is the default", .member = "priority"},
	{"after", 0, FLAG_NAMES, .many = true, .value = "ID,…", .text = "not before these subtasks are done",
		.member = "blockedBy"},
	{"on-parent-failure", 0, FLAG_CHOICE, .value = "block|run",
		.text = "when one that it is after has failed: blocked (default), or run once all have ended",
		.member = "onParentFailure"},
	{"budget", 0, FLAG_JSON, OFFER_FILES, .value = "JSON",
		.text = "out of what the task has left, such as {\"usd\":1}", .member = "budget"},
	{"cwd", 0, FLAG_TEXT, OFFER_FILES, .value = "DIR",
		.text = "the work dir of the task, or a directory beneath it", .member = "workingDir"},
	{"isolation", 0, FLAG_TEXT, OFFER_LEVELS, .value = "LEVEL", .text = "at least that of the task",
		.member = "isolationLevel"},
	{"timeout", 0, FLAG_DURATION, .value = "TIME", .text = "time limit of one attempt (default 30m)",
		.member = "timeoutMs"},
	{"max-attempts", 0, FLAG_NUMBER, .value = "N", .text = "failures before it is given up (default 3)",
		.least = 1, .most = 1000000, .member = "maxAttempts"},
	{"key", 'k', FLAG_TEXT, .value = "KEY",
		.text = "the same key again within a day gives the same subtask"},
	WHO,
};

static int run_add(struct cli *cli)
{
	const char *key = args_text(&cli->args, "key"), *file = args_text(&cli->args, "file");
	const char *title = cli->args.before_dashes > 0 ? args_plain(&cli->args, 0) : NULL;
	const char *const *words = new_task_words(cli, cli->args.before_dashes);
	cleanup(reply_done) struct reply reply = {0};

	if (!title && !words)
		return cli_fail(cli, EXIT_USAGE, "usage", "stint help task add",
			"the subtask needs a title, or a command behind --");
	if (words && args_has(&cli->args, "payload"))
		return cli_fail(cli, EXIT_USAGE, "usage", "stint help task add",
			"a command is the payload of its task: leave out --payload, or the command");
	int r = take_claim_token(cli);
	if (r != 0)
		return r;
	struct json_object *body = cli_body(cli);
	new_task_put_command(cli, body, title, words);
	if (file)
		json_member_string(body, "instructions", cli_read_input(cli, file));
	cli_member_flags(cli, body);
	struct ask question = {
		.method = HTTP_METHOD_POST,
		.path = "/api/tasks",
		.body = cli_body_end(cli),
		.key = span_of(key ? key : cli_random_key(cli)),
		.may_repeat = true,
		.patience = PATIENCE,
	};
	r = server_ask(cli, &question, &reply);
	if (r != 0)
		return r;
	new_task_tell_warnings(cli, reply.root);
	return new_task_put(cli, reply.root);
}

const struct verb verb_task_add = {
	.name = "task add",
	.gives = GIVES_JSON,
	.arguments = "[TITLE] [-- COMMAND...]",
	.most = 1000,
	.brief = "create a subtask",
	.text = "Creates a subtask of the task that this program works on, and prints its id. A subtask has no more rights than its "
		"task: the same executor, or one that the worker's configuration names for it; no weaker isolation; the same "
		"directory or one beneath. With a command behind -- the subtask is to run that command. With --id the next attempt that adds it again gets the same subtask.",
	.flags = add_flags,
	.examples = "stint task add \"check the links\" --id links\n"
		    "stint task add --id lint -- make lint\n"
		    "stint task add \"sum up\" --id sum --after links --on-parent-failure run\n",
	.run = run_add,
};

/* ---- wait ----------------------------------------------------------------------------------------------------- */

static bool is_final(struct span state)
{
	return span_equal(state, SPAN("done")) || span_equal(state, SPAN("failed")) ||
		span_equal(state, SPAN("cancelled"));
}

static bool all_ended(yyjson_val *task)
{
	size_t at, count;
	yyjson_val *child;

	yyjson_arr_foreach(field_get(task, "children"), at, count, child)
	{
		if (!is_final(field_text(child, "state")))
			return false;
	}
	return true;
}

static int ask_server(struct cli *cli, bool says, struct reply *ret_reply)
{
	struct json_object *body = cli_body(cli);
	int r = task_begin(cli, body);
	struct ask question = {
		.method = says ? HTTP_METHOD_POST : HTTP_METHOD_GET,
		.path = says ? "/api/tasks/*/wait" : "/api/tasks/*",
		.names = {task_given_or(cli, "task", "STINT_TASK_ID")},
		.may_repeat = true,
		.patience = WAITING_PATIENCE,
	};

	if (r == 0 && says)
		question.body = cli_body_end(cli);
	return r == 0 ? server_ask(cli, &question, ret_reply) : r;
}

/* A line for each: its id, its state, its result. Exit status 9: one of them is not done. */
static int put_children(struct cli *cli, yyjson_val *task)
{
	bool good = true;
	size_t at, count;
	yyjson_val *child;

	if (cli->output == OUTPUT_JSON)
		cli_put_json(cli, "task", task);
	yyjson_arr_foreach(field_get(task, "children"), at, count, child)
	{
		struct span id = field_text(child, "id"), state = field_text(child, "state");
		good = good && span_equal(state, SPAN("done"));
		if (cli->output == OUTPUT_JSON)
			continue;
		cli_put(cli, "%.*s %.*s ", SPAN_ARGS(id), SPAN_ARGS(state));
		json_put_value(&cli->out, field_get(child, "result"));
		cli_put(cli, "\n");
	}
	return good ? EXIT_GOOD : EXIT_UNSUCCESSFUL;
}

/* Is this attempt still the one that waits? */
static bool is_held(yyjson_val *task)
{
	return field_text(task, "workerId").len > 0;
}

static int run_wait(struct cli *cli)
{
	struct reply reply = {0};
	bool says =
		true; /* that it waits; and once more when all have ended, so that the server knows that the work goes on */
	int r;

	for (;;) {
		r = ask_server(cli, says, &reply);
		if (r != 0)
			return r;
		bool ended = all_ended(reply.root), held = is_held(reply.root);
		if (ended && held && says)
			break;
		reply_done(&reply);
		if (!held)
			return cli_fail(cli, EXIT_TIMED_OUT, "timed_out", NULL,
				"the claim was given up until the subtasks have ended; the next attempt gets their results");
		says = ended;
		if (!ended)
			poll(NULL, 0, LOOK_MS);
	}
	r = put_children(cli, reply.root);
	reply_done(&reply);
	return r;
}

static const struct flag wait_flags[] = {WHO};

const struct verb verb_task_wait = {
	.name = "task wait",
	.gives = GIVES_JSON,
	.brief = "wait for the subtasks",
	.text = "Waits until all subtasks of the task have ended, and prints a line for each: its id, its state and its result as JSON. "
		"Exit status 9: one of them failed or was cancelled.\n\n"
		"The time limit of the attempt is paused meanwhile. After two minutes (ask.parkMs) the worker ends the waiting process "
		"and gives up the claim; when the subtasks have ended the next attempt starts, and there this verb returns at once, "
		"so a script can start again from its first line.",
	.flags = wait_flags,
	.examples = "stint task wait\n"
		    "stint task wait --json\n",
	.run = run_wait,
};
