/*
 * stint queue: what queues there are, and stopping and starting them. Pausing stops claims and keeps what is there;
 * draining stops new tasks and lets what is there be worked off.
 */
#include "cli/verb/task_view.h"

enum { C_NAME, C_STATE, C_READY, C_COUNT };

static const struct column columns[C_COUNT] = {
	[C_NAME] = {.name = "QUEUE", .shrinks = true},
	[C_STATE] = {.name = "STATE"},
	[C_READY] = {.name = "READY", .right = true},
};

static void add_row(struct cli *cli, struct table *table, yyjson_val *queue)
{
	struct span state = field_text(queue, "state");

	table_row(table);
	table_cell(table, C_NAME, field_text(queue, "name"), PAINT_BOLD);
	table_cell(table, C_STATE, state, view_state_paint(state));
	table_cell(table, C_READY, view_number(cli, field_int(queue, "ready", 0)), PAINT_NONE);
}

static int run_ls(struct cli *cli)
{
	static const struct list_view view = {
		.path = "/api/queues",
		.key = "queues",
		.id = "name",
		.columns = columns,
		.column_count = C_COUNT,
		.add = add_row,
		.none = "no queues: nothing waits, and none is paused",
	};

	return view_put_list(cli, &view);
}

static int run_pause(struct cli *cli)
{
	return server_change_each(
		cli, "queue", "/api/queues/*/pause", "is paused: nothing in it is handed out");
}

static int run_resume(struct cli *cli)
{
	return server_change_each(cli, "queue", "/api/queues/*/resume", "is open");
}

static int run_drain(struct cli *cli)
{
	return server_change_each(cli, "queue", "/api/queues/*/drain", "is draining: it takes nothing new");
}

const struct verb verb_queue_ls = {
	.name = "queue ls",
	.group = GROUP_WORKERS,
	.arguments = "",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "the queues",
	.text = "Lists the queues that have tasks waiting or were paused or drained, and how many tasks are ready in each.",
	.examples = "stint queue ls\n",
	.run = run_ls,
};

#define CHANGES                                                                                          \
	.group = GROUP_WORKERS, .arguments = "QUEUE...", .least = 1, .most = 100, .offer = OFFER_QUEUES, \
	.gives = GIVES_JSON

const struct verb verb_queue_pause = {
	.name = "queue pause",
	CHANGES,
	.brief = "hand nothing out of it",
	.text = "Nothing in the queue is handed out until it is resumed. What is running runs on; new tasks may come in.",
	.examples = "stint queue pause ci\n",
	.run = run_pause,
};

const struct verb verb_queue_resume = {
	.name = "queue resume",
	CHANGES,
	.brief = "open it again",
	.text = "Opens a queue that was paused or is draining.",
	.examples = "stint queue resume ci\n",
	.run = run_resume,
};

const struct verb verb_queue_drain = {
	.name = "queue drain",
	CHANGES,
	.brief = "take nothing new into it",
	.text = "The queue takes no new tasks; what is in it is worked off.",
	.examples = "stint queue drain ci\n",
	.run = run_drain,
};
