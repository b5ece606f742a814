/*
 * stint queue: what queues there are, their limits, and stopping and starting them. Pausing stops claims and keeps what is there;
 * draining stops new tasks and lets what is there be worked off.
 */
#include <stdlib.h>
#include <string.h>

#include "base/take.h"
#include "cli/frame/when.h"
#include "cli/verb/task_view.h"

/* How many of its tasks are in one of these states. */
int64_t view_queue_tasks_in(yyjson_val *queue, const char *const states[])
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
	return view_number(
		cli, view_queue_tasks_in(queue, (const char *const[]){"claimed", "running", NULL}));
}

static struct span waiting(struct cli *cli, yyjson_val *queue)
{
	return view_number(cli,
		view_queue_tasks_in(
			queue, (const char *const[]){"ready", "waiting", "scheduled", "pending", NULL}));
}

static struct span needs_you(struct cli *cli, yyjson_val *queue)
{
	return view_number(
		cli, view_queue_tasks_in(queue, (const char *const[]){"asking", "review", "blocked", NULL}));
}

static struct span oldest(struct cli *cli, yyjson_val *queue)
{
	int64_t since_ms = field_int(queue, "oldestReadyAt", 0);

	return since_ms > 0 ? view_since(cli, since_ms) : SPAN("");
}

/* Why its next task is not taken; nothing if it will be at once. */
struct span view_queue_held_back(struct cli *cli, yyjson_val *queue)
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
	return view_or_dash(view_queue_held_back(cli, queue));
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
	{"WHAT HOLDS IT BACK", .make = view_queue_held_back, .shrinks = true, .least = 20},
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
		int64_t wait = view_queue_tasks_in(
			queue, (const char *const[]){"ready", "waiting", "scheduled", "pending", NULL});
		int64_t run = view_queue_tasks_in(
			queue, (const char *const[]){"claimed", "running", "asking", NULL});
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

/* Each limit of a queue as a sentence of its own: up to so many lines. */
static void put_limits(struct cli *cli, yyjson_val *queue)
{
	yyjson_val *limits = field_get(queue, "limits"), *key, *number;
	long long concurrency = (long long)field_int(limits, "concurrency", 0),
		  per_key = (long long)field_int(limits, "perKey", 0);
	size_t at, count;

	if (yyjson_obj_size(limits) == 0)
		cli_put_line(cli, "No limits");
	if (concurrency > 0)
		cli_put_line(cli, "Limit: %lld at a time (concurrency)", concurrency);
	if (per_key > 0)
		cli_put_line(cli, "Limit: %lld at a time of each concurrency key (perKey)", per_key);
	yyjson_obj_foreach(field_get(limits, "keys"), at, count, key, number)
		cli_put_line(cli, "Limit: %lld at a time of key %s (keys)",
			(long long)yyjson_get_sint(number), cli_text(cli, "%.*s", SPAN_ARGS(json_text(key))));
	yyjson_val *rate = field_get(limits, "rate");
	if (rate)
		cli_put_line(cli, "Limit: %lld claims in %.*s%s, up to %lld at once (rate)",
			(long long)field_int(rate, "count", 0),
			SPAN_ARGS(view_duration(cli, field_int(rate, "perMs", 0))),
			span_equal(field_text(rate, "per"), SPAN("key")) ? " of each concurrency key" : "",
			(long long)field_int(rate, "burst", 1));
	if (field_int(limits, "review", 0) > 0)
		cli_put_line(cli, "Limit: nothing while %lld are in review (review)",
			(long long)field_int(limits, "review", 0));
	if (yyjson_is_true(field_get(limits, "sequential")))
		cli_put_line(cli,
			"Limit: the next task of a key waits until the one that has begun is final (sequential)");
	if (yyjson_is_true(field_get(limits, "fair")))
		cli_put_line(cli, "Limit: concurrency keys come in turn (fair)");
	if (field_int(limits, "maxOpen", 0) > 0)
		cli_put_line(cli, "Limit: no new task while %lld are open (maxOpen)",
			(long long)field_int(limits, "maxOpen", 0));
}

static int run_show(struct cli *cli)
{
	cleanup(reply_done) struct reply reply = server_get(cli, "/api/queues/*", args_plain(&cli->args, 0));
	yyjson_val *queue = reply.root;

	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "queue", queue);
	struct span held_back = view_queue_held_back(cli, queue);
	cli_put_line(cli, "Queue %s is %s: %lld in work, %.*s waiting, %.*s for you, %lld %s",
		field_cstr(cli, queue, "name"), field_cstr(cli, queue, "state"),
		(long long)field_int(queue, "live", 0), SPAN_ARGS(waiting(cli, queue)),
		SPAN_ARGS(needs_you(cli, queue)), (long long)field_int(queue, "workers", 0),
		field_int(queue, "workers", 0) == 1 ? "worker" : "workers");
	put_limits(cli, queue);
	struct span budget = view_day_budget(cli, queue);
	if (budget.len > 0)
		cli_put_line(cli, "Budget: %.*s", SPAN_ARGS(budget));
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

static struct span key_or_none(struct cli *cli, yyjson_val *key)
{
	struct span text = field_text(key, "key");

	(void)cli;
	return text.len > 0 ? text : SPAN("-");
}

static const struct column key_columns[] = {
	{"KEY", .make = key_or_none, .paint = PAINT_BOLD, .shrinks = true},
	{"IN WORK", "live", COLUMN_NUMBER, .right = true},
	{"BEGUN", "begun", COLUMN_NUMBER, .right = true},
	{"WAITING", "waiting", COLUMN_NUMBER, .right = true},
};

static const struct list_view queue_keys = {
	.path = "/api/queues/*/keys",
	.key = "keys",
	.id = "key",
	VIEW_COLUMNS(key_columns),
	.none = "No task of the queue has begun or waits for a worker.",
};

const struct verb verb_queue_keys = {
	.name = "queue keys",
	.arguments = "QUEUE",
	.offer = OFFER_QUEUES,
	.gives = GIVES_JSON | GIVES_ROWS,
	.brief = "its concurrency keys",
	.text = "Lists the concurrency keys of the queue, those with the most tasks in work first, up to a hundred: how many tasks of each are in work, have begun "
		"and are not final, and wait for a worker. The line of - is for tasks without a key.",
	.examples = "stint queue keys mail\n",
	.list = &queue_keys,
	.run = view_run_list,
};

/* ---- the inbox of a store in PostgreSQL ------------------------------------------------------------------------- */

static struct span refused_why(struct cli *cli, yyjson_val *row)
{
	yyjson_val *error = field_get(row, "error"),
		   *first = yyjson_arr_get_first(field_get(error, "errors"));

	if (first)
		return span_of(cli_text(
			cli, "%s %s", field_cstr(cli, first, "field"), field_cstr(cli, first, "message")));
	return field_text(error, "detail");
}

static struct span refused_age(struct cli *cli, yyjson_val *row)
{
	return view_since(cli, field_int(row, "refusedAt", 0));
}

static const struct column inbox_columns[] = {
	{"ROW", "id", COLUMN_NUMBER, .right = true},
	{"QUEUE", "queue", .paint = PAINT_BOLD, .shrinks = true},
	{"ROLE", "role", .shrinks = true},
	{"SINCE", .make = refused_age, .right = true},
	{"WHY", .make = refused_why, .shrinks = true, .least = 20},
};

static const struct list_view inbox_rows = {
	.path = "/api/inbox",
	.key = "inbox",
	.id = "id",
	VIEW_COLUMNS(inbox_columns),
	.none = "No row of the inbox was refused.",
};

static const struct flag inbox_flags[] = {
	{"retry", 0, FLAG_TEXT, .value = "ROW",
		.text = "make the task after all: what was in the way is gone"},
	{"drop", 0, FLAG_TEXT, .value = "ROW", .text = "remove the row: there will be no task"},
	{0},
};

static int retry_row(struct cli *cli, const char *row)
{
	cleanup(reply_done) struct reply reply = server_post(cli, "/api/inbox/*/retry", row, SPAN("{}"));

	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "task", reply.root);
	const char *task = field_cstr(cli, reply.root, "id");
	cli_put_change(cli, 1, task, cli_text(cli, "Row %s has become %s", row, task));
	return 0;
}

static int drop_row(struct cli *cli, const char *row)
{
	cleanup(reply_done) struct reply reply = server_need(
		cli, &(struct ask){.method = HTTP_METHOD_DELETE, .path = "/api/inbox/*", .names = {row}});

	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "row", reply.root);
	cli_put_change(cli, 1, row, cli_text(cli, "Row %s is dropped", row));
	return 0;
}

static int run_inbox(struct cli *cli)
{
	const char *retry = args_text(&cli->args, "retry"), *drop = args_text(&cli->args, "drop");

	if (retry && drop)
		cli_die(cli, EXIT_USAGE, "usage", "stint help queue inbox",
			"--retry and --drop exclude each other");
	return retry ? retry_row(cli, retry) : drop ? drop_row(cli, drop) : view_run_list(cli);
}

const struct verb verb_queue_inbox = {
	.name = "queue inbox",
	.gives = GIVES_JSON | GIVES_ROWS,
	.brief = "rows that became no task",
	.text = "A store in PostgreSQL takes tasks from other programs' own transactions: SELECT stint.enqueue('ci', '{\"title\":\"nightly\"}'). "
		"Lists the rows that cannot become a task, oldest first, up to a hundred: who put them there, and why they were refused. A row stays until it is tried again with "
		"success, or dropped.",
	.flags = inbox_flags,
	.examples = "stint queue inbox\nstint queue inbox --retry 12\n",
	.list = &inbox_rows,
	.run = run_inbox,
};

static const struct flag limit_flags[] = {
	{"concurrency", 0, FLAG_TEXT, .value = "N|none",
		.text = "so many tasks of the queue are in work at a time; none: as many as workers take"},
	{"per-key", 0, FLAG_TEXT, .value = "N|none",
		.text = "so many tasks of each concurrency key are in work at a time"},
	{"for-key", 0, FLAG_TEXT, .many = true, .value = "KEY=N",
		.text = "so many of this concurrency key, in place of --per-key; KEY=none takes its number away"},
	{"sequential", 0, FLAG_TEXT, .value = "yes|no",
		.text = "the next task of a concurrency key waits until the one that has begun is final: failed attempts, questions and reviews too"},
	{"rate", 0, FLAG_TEXT, .value = "N/TIME|none", .text = "so many claims in that time, evenly: 30/1m"},
	{"burst", 0, FLAG_NUMBER, .value = "N", .least = 1, .most = 1000000,
		.text = "with --rate: so many at once after a pause (default 1)"},
	{"rate-per", 0, FLAG_TEXT, .value = "queue|key",
		.text = "with --rate: the queue as a whole (default), or each concurrency key by itself"},
	{"review", 0, FLAG_TEXT, .value = "N|none",
		.text = "nothing is handed out while so many tasks of the queue are in review"},
	{"fair", 0, FLAG_TEXT, .value = "yes|no",
		.text = "its concurrency keys come in turn: the one with the fewest tasks in work is next, then the one served longest ago; tasks without a key are one key"},
	{"max-open", 0, FLAG_TEXT, .value = "N|none",
		.text = "no new task is taken while so many of the queue are open: not done, failed or cancelled"},
	{"reason", 0, FLAG_TEXT, .value = "TEXT", .text = "why, for the event", .member = "reason"},
	{0},
};

/* Flags with a number or none, and flags with yes or no. */
static const struct {
	const char *flag, *member;
	bool is_switch;
} limits[] = {
	{"concurrency", "concurrency", false},
	{"per-key", "perKey", false},
	{"sequential", "sequential", true},
	{"review", "review", false},
	{"fair", "fair", true},
	{"max-open", "maxOpen", false},
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

static bool put_switch(struct json_object *body, const char *name, const char *text)
{
	json_member_bool(body, name, strcmp(text, "yes") == 0);
	return strcmp(text, "yes") == 0 || strcmp(text, "no") == 0;
}

/* How many there are; a wrong one ends the run. */
static int put_plain_limits(struct cli *cli, struct json_object *body)
{
	int count = 0;

	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		const char *text = args_text(&cli->args, limits[i].flag);
		if (!text)
			continue;
		bool ok = limits[i].is_switch ? put_switch(body, limits[i].member, text)
					      : put_limit(body, limits[i].member, text);
		if (!ok)
			cli_die(cli, EXIT_USAGE, "usage", "stint help queue limit",
				"--%s must be %s; it is \"%s\"", limits[i].flag,
				limits[i].is_switch ? "yes or no" : "a whole number from 1, or none", text);
		count++;
	}
	return count;
}

/* --for-key KEY=N, again and again. */
static int put_key_limits(struct cli *cli, struct json_object *body)
{
	struct json_object keys;
	const char *text;
	size_t at = 0;
	int count = 0;

	while ((text = args_each(&cli->args, "for-key", &at))) {
		const char *cut = strrchr(text, '=');
		char *end;
		long long number = cut ? strtoll(cut + 1, &end, 10) : 0;
		bool lifts = cut && strcmp(cut + 1, "none") == 0;
		if (!cut || cut == text || (!lifts && (*end != 0 || number < 1)))
			cli_die(cli, EXIT_USAGE, "usage", "stint help queue limit",
				"--for-key must be KEY=N with a whole number from 1, or KEY=none; it is \"%s\"",
				text);
		if (count++ == 0) {
			json_put_key(body, "keys");
			json_begin(&keys, body->buf);
		}
		json_put_comma(keys.buf, &keys.any);
		json_put_string(keys.buf, (struct span){text, (size_t)(cut - text)});
		buf_put_byte(keys.buf, ':');
		if (lifts)
			buf_put_span(keys.buf, SPAN("null"));
		else
			buf_put_decimal(keys.buf, (uint64_t)number);
	}
	if (count > 0)
		json_note(body, json_end(&keys));
	return count;
}

/* --rate COUNT/TIME with --burst and --rate-per. */
static int put_rate(struct cli *cli, struct json_object *body)
{
	const char *text = args_text(&cli->args, "rate"), *per = args_text(&cli->args, "rate-per");
	const char *cut = text ? strchr(text, '/') : NULL;
	int64_t burst = args_number(&cli->args, "burst", 0), per_ms = 0;
	struct json_object rate;
	char *end;

	if (!text && (per || burst != 0))
		cli_die(cli, EXIT_USAGE, "usage", "stint help queue limit",
			"--burst and --rate-per belong to --rate");
	if (!text)
		return 0;
	if (strcmp(text, "none") == 0) {
		json_member_raw(body, "rate", SPAN("null"));
		return 1;
	}
	long long count = strtoll(text, &end, 10);
	if (!cut || end != cut || count < 1 || when_duration(cut + 1, &per_ms) < 0 || per_ms < 1)
		cli_die(cli, EXIT_USAGE, "usage", "stint help queue limit",
			"--rate must be N/TIME, as 30/1m, or none; it is \"%s\"", text);
	json_put_key(body, "rate");
	json_begin(&rate, body->buf);
	json_member_int(&rate, "count", count);
	json_member_int(&rate, "perMs", per_ms);
	if (burst > 0)
		json_member_int(&rate, "burst", burst);
	if (per)
		json_member_string(&rate, "per", span_of(per));
	json_note(body, json_end(&rate));
	return 1;
}

/* "Queue deploy has limits: concurrency, perKey". */
static const char *say_limits(struct cli *cli, const char *queue, yyjson_val *reply)
{
	yyjson_val *limits_now = field_get(reply, "limits"), *key, *value;
	const char *text = NULL;
	size_t at, count;

	yyjson_obj_foreach(limits_now, at, count, key, value) text =
		text ? cli_text(cli, "%s, %s", text, yyjson_get_str(key)) : yyjson_get_str(key);
	if (!text)
		return cli_text(cli, "Queue %s has no limit", queue);
	int64_t most = field_int(limits_now, "concurrency", 0);
	if (most > 0 && yyjson_obj_size(limits_now) == 1)
		return cli_text(cli, "Queue %s hands out %lld at a time; %lld in work now", queue,
			(long long)most, (long long)field_int(reply, "live", 0));
	return cli_text(cli, "Queue %s has limits (%s); %lld in work now", queue, text,
		(long long)field_int(reply, "live", 0));
}

static int run_limit(struct cli *cli)
{
	const char *queue = args_plain(&cli->args, 0);
	struct ask question = {
		.method = HTTP_METHOD_PATCH, .path = "/api/queues/*", .names = {queue}, .may_repeat = true};
	struct json_object *body = cli_body(cli);
	cleanup(reply_done) struct reply reply = {0};

	if (put_plain_limits(cli, body) + put_key_limits(cli, body) + put_rate(cli, body) == 0)
		return cli_fail(cli, EXIT_USAGE, "usage", "stint help queue limit",
			"nothing to change: name a limit, as --concurrency 2");
	cli_member_flags(cli, body);
	question.body = cli_body_end(cli);
	int r = server_ask(cli, &question, &reply);
	if (r != 0)
		return r;
	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "queue", reply.root);
	cli_put_change(cli, 1, queue, say_limits(cli, queue, reply.root));
	return 0;
}

const struct verb verb_queue_limit = {
	.name = "queue limit",
	.arguments = "QUEUE",
	.offer = OFFER_QUEUES,
	.gives = GIVES_JSON,
	.brief = "how many run at a time",
	.text = "Sets how many tasks of the queue, or of each concurrency key in it, may be in work at a time, on all workers together. A task counts while a worker holds it, "
		"also while it asks with its process alive, or stops; in review, parked or waiting it does not count. Tasks over a "
		"limit stay ready and are taken when another has ended. Lowering a limit stops nobody. Limits that are not named stay.",
	.flags = limit_flags,
	.examples = "stint queue limit deploy --concurrency 1\nstint queue limit deploy --concurrency none\n"
		    "stint queue limit mail --per-key 2 --for-key big=10\n"
		    "stint queue limit merge --sequential yes\n"
		    "stint queue limit api --rate 60/1m --burst 10 --rate-per key\n"
		    "stint queue limit code --review 5\n"
		    "stint queue limit tenants --fair yes --max-open 100000\n",
	.run = run_limit,
};
