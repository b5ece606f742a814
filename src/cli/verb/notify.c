/*
 * stint notify: becomes stint-notify, which links what speaks to the world.
 */
#include <string.h>

#include "cli/frame/cli.h"

static const struct flag flags[] = {
	{"config", 0, FLAG_TEXT, OFFER_FILES, .value = "FILE", .text = "instead of the configuration files"},
	{"set", 0, FLAG_TEXT, .many = true, .value = "KEY=VALUE", .text = "a setting, as log.level"},
	{0},
};

/* The mode of the program is the second word of the verb. */
static int become_notify(struct cli *cli)
{
	return program_become(cli, "stint-notify", strchr(cli->verb->name, ' ') + 1);
}

const struct verb verb_notify_run = {
	.name = "notify run",
	.brief = "send webhooks",
	.text = "Sends signed webhooks to the targets of the configuration (\"notify\"), until a signal stops it: to each the end "
		"of every session whose channel is its name, and the events that it lists. What cannot be delivered is tried eight "
		"times more and then given up; nothing else waits for it. After a stop it goes on where it was. `stint notify` with "
		"flags alone is the same. The program is stint-notify; docs/notify.md has the configuration and a receiver.",
	.flags = flags,
	.examples = "stint notify\nstint notify run --set log.level=warn\n",
	.run = become_notify,
};

const struct verb verb_notify_test = {
	.name = "notify test",
	.arguments = "TARGET",
	.gives = GIVES_JSON,
	.brief = "send one test message",
	.text = "Sends one signed message of type dev.stint.test to a target of the configuration and prints the answer. Exit "
		"status 1: the target did not accept it.",
	.flags = flags,
	.examples = "stint notify test ops\nstint notify test ops --json\n",
	.run = become_notify,
};

const struct verb verb_notify_ls = {
	.name = "notify ls",
	.gives = GIVES_JSON,
	.brief = "the targets of webhooks",
	.text = "Lists the targets of the configuration: the events that each gets, the last one that was sent, how many were "
		"delivered and given up, and how the last delivery went.",
	.flags = flags,
	.examples = "stint notify ls\nstint notify ls --json\n",
	.run = become_notify,
};
