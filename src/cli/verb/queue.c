/*
 * stint queue: what queues there are, their limits, and stopping and starting them. Pausing stops claims and keeps what is there;
 * draining stops new tasks and lets what is there be worked off.
 */
#include <stdlib.h>
#include <string.h>

#include "base/take.h"
#include "cli/verb/task_view.h"

/* How many of its tasks are in one of these states. */
static int64_t tasks_in(yyjson_val *queue, const char *const states[])
{
	yyjson_val *tasks = field_get(queue, "tasks");
	int64_t sum = 0;

	for (size_t i = 0; states[i]; i++)
		sum += field_int(tasks, states[i], 0);
	return sum;
}

/* "2 of 3" in a queue with a limit. */
static struct span in_work(struct cli *cli, yyjson_val *queue)
{
	int64_t most = field_int(field_get(queue, "limits"), "concurrency", 0);

	if (most > 0)
		return span_of(cli_text(
			cli, "%lld of %lld", (long long)field_int(queue, "live", 0), (long long)most));
	return view_number(cli, tasks_in(queue, (const char *const[]){"claimed", "running", NULL}));
}

static struct span waiting(struct cli *cli, yyjson_val *queue)
{
	return view_number(cli,
		tasks_in(queue, (const char *const[]){"ready", "waiting", "scheduled", "pending", NULL}));
}

static struct span needs_you(struct cli *cli, yyjson_val *queue)
{
	return view_number(cli, tasks_in(queue, (const char *const[]){"asking", "review", "blocked", NULL}));
}

static struct span oldest(struct cli *cli, yyjson_val *queue)
{
	int64_t since_ms = field_int(queue, "oldestReadyAt", 0);

	return since_ms > 0 ? view_since(cli, since_ms) : SPAN("");
}

/* Why its next task is not taken; nothing if it will be at once. */
static struct span holds_back(struct cli *cli, yyjson_val *queue)
{
	yyjson_val *why = field_get(queue, "why");
	bool flows = span_equal(field_text(why, "reason"), SPAN("ready")) && !field_get(why, "try");
	struct span state = field_text(queue, "state"), text = flows ? SPAN("") : field_text(why, "text");

	if (span_equal(state, SPAN("paused")))
		return SPAN("Paused: nothing in it is handed out");
	if (!span_equal(state, SPAN("draining")))
		return text;
	return text.len == 0
		? SPAN("Draining: it takes no new tasks")
		: span_of(cli_text(cli, "Draining: it takes no new tasks. %.*s", SPAN_ARGS(text)));
}

static struct span holds_back_or_dash(struct cli *cli, yyjson_val *queue)
{
	return view_or_dash(holds_back(cli, queue));
}

static struct span oldest_or_dash(struct cli *cli, yyjson_val *queue)
{
	return view_or_dash(oldest(cli, queue));
}

static const struct column people_columns[] = {
	{"QUEUE", "name", .shrinks = true},
	{"IN WORK", .make = in_work, .right = true},
	{"WAITING", .make = waiting, .right = true},
	{"NEEDS YOU", .make = needs_you, .right = true, .from = 72},
	{"OLDEST", .make = oldest, .right = true},
	{"WORKERS", "workers", COLUMN_NUMBER, .right = true, .from = 110},
	{"WHAT HOLDS IT BACK", .make = holds_back, .shrinks = true, .least = 20},
};

static const struct column columns[] = {
	{"QUEUE", "name", .paint = PAINT_BOLD, .shrinks = true},
	{"STATE", "state", .kind = COLUMN_STATE},
	{"READY", "ready", COLUMN_NUMBER, .right = true},
	{"IN WORK", .make = in_work, .right = true},
	{"WAITING", .make = waiting, .right = true},
	{"NEEDS YOU", .make = needs_you, .right = true},
	{"WORKERS", "workers", COLUMN_NUMBER, .right = true},
	{"OLDEST", .make = oldest_or_dash, .right = true},
	{"WHAT HOLDS IT BACK", .make = holds_back_or_dash, .shrinks = true},
};

static const struct list_view queues = {
	.path = "/api/queues",
	.key = "queues",
	.id = "name",
	VIEW_COLUMNS(columns),
	VIEW_PEOPLE(people_columns),
	.none = "No queues: no task is open, and no queue is paused or limited.",
};

const struct verb verb_queue_ls = {
	.name = "queue ls",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "the queues",
	.text = "Lists the queues that have open tasks or limits, or were paused or drained: how many tasks are in work (of how many that may be), wait and need you, since "
		"when the oldest is ready, how many workers serve the queue, and what holds it back. Elsewhere than on a terminal: name, state, "
		"ready, in work, waiting, needs you, workers, oldest, what holds it back, with tabs between.",
	.examples = "stint queue ls\n",
	.list = &queues,
};

/* ---- changes ---------------------------------------------------------------------------------------------------- */

/* "3 tasks wait", "1 task waits"; and the same for what runs. */
static const char *count_text(struct cli *cli, int64_t count, const char *one, const char *many)
{
	return cli_text(cli, "%lld %s", (long long)count, count == 1 ? one : many);
}

/* What a change means for the tasks that are there: "Queue ci is paused. 1 task waits, 3 go on to their end". */
static const char *say_state(struct cli *cli, const char *name)
{
	cleanup(reply_done) struct reply reply = server_try(cli, "/api/queues", NULL);
	size_t at, count;
	yyjson_val *queue;

	yyjson_arr_foreach(reply.root, at, count, queue)
	{
		if (!span_equal(field_text(queue, "name"), span_of(name)))
			continue;
		int64_t wait = tasks_in(
			queue, (const char *const[]){"ready", "waiting", "scheduled", "pending", NULL});
		int64_t run = tasks_in(queue, (const char *const[]){"claimed", "running", "asking", NULL});
		const char *text = cli_text(cli, "Queue %s is %s.", name, field_cstr(cli, queue, "state"));
		if (wait > 0)
			text = cli_text(
				cli, "%s %s", text, count_text(cli, wait, "task waits", "tasks wait"));
		if (run > 0)
			text = cli_text(cli, "%s%s%s", text, wait > 0 ? ", " : " ",
				count_text(cli, run,
					wait > 0 ? "goes on to its end" : "task goes on to its end",
					wait > 0 ? "go on to their end" : "tasks go on to their end"));
		return text;
	}
	return cli_text(cli, "Queue %s is open.", name);
}

#define CHANGES .arguments = "QUEUE...", .most = 100, .offer = OFFER_QUEUES, .gives = GIVES_JSON

const struct verb verb_queue_pause = {
	.name = "queue pause",
	CHANGES,
	.brief = "hand nothing out of it",
	.text = "Nothing in the queue is handed out until it is resumed. What is running runs on; new tasks may come in.",
	.examples = "stint queue pause ci\n",
	.change = &(const struct change){"queue", "/api/queues/*/pause",
		.done = "is paused: nothing in it is handed out", .sentence = say_state},
};

const struct verb verb_queue_resume = {
	.name = "queue resume",
	CHANGES,
	.brief = "open it again",
	.text = "Opens a queue that was paused or is draining.",
	.examples = "stint queue resume ci\n",
	.change = &(const struct change){"queue", "/api/queues/*/resume", .done = "is open",
		.sentence = say_state},
};

const struct verb verb_queue_drain = {
	.name = "queue drain",
	CHANGES,
	.brief = "take nothing new into it",
	.text = "The queue takes no new tasks; what is in it is worked off.",
	.examples = "stint queue drain ci\n",
	.change = &(const struct change){"queue", "/api/queues/*/drain",
		.done = "is draining: it takes nothing new", .sentence = say_state},
};

/* ---- limits ----------------------------------------------------------------------------------------------------- */

static void put_limits(struct cli *cli, yyjson_val *queue)
{
	int64_t concurrency = field_int(field_get(queue, "limits"), "concurrency", 0);

	if (concurrency > 0)
		cli_put_line(cli, "Limit: %lld at a time (concurrency)", (long long)concurrency);
	else
		cli_put_line(cli, "No limits");
}

static int run_show(struct cli *cli)
{
	cleanup(reply_done) struct reply reply = server_get(cli, "/api/queues/*", args_plain(&cli->args, 0));
	yyjson_val *queue = reply.root;

	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "queue", queue);
	struct span held_back = holds_back(cli, queue);
	cli_put_line(cli, "Queue %s is %s: %lld in work, %.*s waiting, %.*s for you, %lld %s",
		field_cstr(cli, queue, "name"), field_cstr(cli, queue, "state"),
		(long long)field_int(queue, "live", 0), SPAN_ARGS(waiting(cli, queue)),
		SPAN_ARGS(needs_you(cli, queue)), (long long)field_int(queue, "workers", 0),
		field_int(queue, "workers", 0) == 1 ? "worker" : "workers");
	put_limits(cli, queue);
	if (held_back.len > 0)
		cli_put_sentence(cli, 2, "%.*s", SPAN_ARGS(held_back));
	return 0;
}

const struct verb verb_queue_show = {
	.name = "queue show",
	.arguments = "QUEUE",
	.offer = OFFER_QUEUES,
	.gives = GIVES_JSON,
	.brief = "one queue and its limits",
	.text = "Shows how many tasks of the queue are in work, wait and need you, how many workers serve it, its limits, and what holds it back.",
	.examples = "stint queue show ci\n",
	.run = run_show,
};

static const struct flag limit_flags[] = {
	{"concurrency", 0, FLAG_TEXT, .value = "N|none",
		.text = "so many tasks of the queue are in work at a time; none: as many as workers take"},
	{"reason", 0, FLAG_TEXT, .value = "TEXT", .text = "why, for the event", .member = "reason"},
	{0},
};

/* A number, or null for "none". False: it is neither. */
static bool put_limit(struct json_object *body, const char *name, const char *text)
{
	char *end;
	long long number = strtoll(text, &end, 10);

	if (strcmp(text, "none") == 0)
		json_member_raw(body, name, SPAN("null"));
	else
		json_member_int(body, name, number);
	return strcmp(text, "none") == 0 || (text[0] != 0 && *end == 0 && number > 0);
}

static int run_limit(struct cli *cli)
{
	const char *queue = args_plain(&cli->args, 0), *concurrency = args_text(&cli->args, "concurrency");
	struct ask question = {
		.method = HTTP_METHOD_PATCH, .path = "/api/queues/*", .names = {queue}, .may_repeat = true};
	struct json_object *body = cli_body(cli);
	cleanup(reply_done) struct reply reply = {0};

	if (!concurrency)
		return cli_fail(cli, EXIT_USAGE, "usage", "stint help queue limit",
			"nothing to change: name a limit, as --concurrency 2");
	if (!put_limit(body, "concurrency", concurrency))
		return cli_fail(cli, EXIT_USAGE, "usage", "stint help queue limit",
			"--concurrency must be a whole number from 1, or none; it is \"%s\"", concurrency);
	cli_member_flags(cli, body);
	question.body = cli_body_end(cli);
	int r = server_ask(cli, &question, &reply);
	if (r != 0)
		return r;
	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "queue", reply.root);
	int64_t most = field_int(field_get(reply.root, "limits"), "concurrency", 0);
	cli_put_change(cli, 1, queue,
		most > 0 ? cli_text(cli, "Queue %s hands out %lld at a time; %lld in work now", queue,
				   (long long)most, (long long)field_int(reply.root, "live", 0))
			 : cli_text(cli, "Queue %s has no limit", queue));
	return 0;
}

const struct verb verb_queue_limit = {
	.name = "queue limit",
	.arguments = "QUEUE",
	.offer = OFFER_QUEUES,
	.gives = GIVES_JSON,
	.brief = "how many run at a time",
	.text = "Sets how many tasks of the queue may be in work at a time, on all workers together. A task counts while a worker holds it, "
		"also while it asks with its process alive, or stops; in review, parked or waiting it does not count. Tasks over the "
		"limit stay ready and are taken when another has ended. Lowering the limit stops nobody.",
	.flags = limit_flags,
	.examples = "stint queue limit deploy --concurrency 1\nstint queue limit deploy --concurrency none\n",
	.run = run_limit,
};
