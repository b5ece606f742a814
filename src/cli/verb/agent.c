/*
 * stint agent: becomes stint-worker, which knows the agents of this machine; `stint` itself links none of that.
 */
#include "cli/frame/cli.h"

static const struct flag flags[] = {
	{"config", 0, FLAG_TEXT, OFFER_FILES, .value = "FILE", .text = "instead of the configuration files"},
	{0},
};

static int become_agent(struct cli *cli)
{
	return program_become(cli, "stint-worker", cli->verb->name);
}

const struct verb verb_agent_ls = {
	.name = "agent ls",
	.gives = GIVES_JSON,
	.brief = "the agents of this machine",
	.text = "Lists the agents that are installed here (claude, codex, gemini, opencode, openclaw) and those of the configuration, "
		"with version and login. A worker that `stint up` starts offers each of them: stint add TITLE --agent NAME.",
	.flags = flags,
	.examples = "stint agent ls\nstint agent ls --json\n",
	.run = become_agent,
};

const struct verb verb_agent_show = {
	.name = "agent show",
	.arguments = "NAME",
	.gives = GIVES_JSON,
	.brief = "its login, policy and grants",
	.text = "Shows one agent: its program and version, which login it runs with, its policy, and what it is granted.",
	.flags = flags,
	.examples = "stint agent show claude\n",
	.run = become_agent,
};

const struct verb verb_agent_test = {
	.name = "agent test",
	.arguments = "NAME",
	.gives = GIVES_JSON,
	.brief = "could it run here?",
	.text = "Checks that the agent's program is there, that it starts, and that it has a login. It asks no model, so it costs "
		"nothing. If they are, a hold of its account that a failed login opened is ended. Exit status 1: something is missing, "
		"and it says what.",
	.flags = flags,
	.examples = "stint agent test claude\n",
	.run = become_agent,
};

const struct verb verb_agent_login = {
	.name = "agent login",
	.arguments = "NAME",
	.gives = GIVES_JSON,
	.brief = "keep a token for it",
	.text = "Reads a long-lived token of the agent (as claude setup-token makes one) from standard input and keeps it for its sessions, readable by you alone. "
		"The agent's own refresh token never reaches a session.",
	.flags = flags,
	.examples = "stint agent login claude < token.txt\n",
	.run = become_agent,
};
