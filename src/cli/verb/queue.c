/*
 * stint queue: what queues there are, and stopping and starting them. Pausing stops claims and keeps what is there;
 * draining stops new tasks and lets what is there be worked off.
 */
#include "cli/verb/task_view.h"

static const struct column columns[] = {
	{"QUEUE", "name", .paint = PAINT_BOLD, .shrinks = true},
	{"STATE", "state", .kind = COLUMN_STATE},
	{"READY", "ready", COLUMN_NUMBER, .right = true},
};

static const struct list_view queues = {
	.path = "/api/queues",
	.key = "queues",
	.id = "name",
	VIEW_COLUMNS(columns),
	.none = "no queues: nothing waits, and none is paused",
};

const struct verb verb_queue_ls = {
	.name = "queue ls",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "the queues",
	.text = "Lists the queues that have tasks waiting or were paused or drained, and how many tasks are ready in each.",
	.examples = "stint queue ls\n",
	.list = &queues,
};

#define CHANGES .arguments = "QUEUE...", .most = 100, .offer = OFFER_QUEUES, .gives = GIVES_JSON

const struct verb verb_queue_pause = {
	.name = "queue pause",
	CHANGES,
	.brief = "hand nothing out of it",
	.text = "Nothing in the queue is handed out until it is resumed. What is running runs on; new tasks may come in.",
	.examples = "stint queue pause ci\n",
	.change = &(const struct change){"queue", "/api/queues/*/pause",
		.done = "is paused: nothing in it is handed out"},
};

const struct verb verb_queue_resume = {
	.name = "queue resume",
	CHANGES,
	.brief = "open it again",
	.text = "Opens a queue that was paused or is draining.",
	.examples = "stint queue resume ci\n",
	.change = &(const struct change){"queue", "/api/queues/*/resume", .done = "is open"},
};

const struct verb verb_queue_drain = {
	.name = "queue drain",
	CHANGES,
	.brief = "take nothing new into it",
	.text = "The queue takes no new tasks; what is in it is worked off.",
	.examples = "stint queue drain ci\n",
	.change = &(const struct change){"queue", "/api/queues/*/drain",
		.done = "is draining: it takes nothing new"},
};
