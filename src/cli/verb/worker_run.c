/*
 * stint worker run, or stint worker alone: be a worker. With run-once, sweep-prs and worktrees it is what stint-worker
 * does in other modes; that program links what this one does not.
 */
#include <string.h>

#include "cli/frame/cli.h"
#include "cli/frame/spawn.h"
#include "cli/verb/verbs.h"

enum {
	WORDS_MAX = 256,
};

/* Flags that more than one of its modes has. */
#define CAPABILITIES \
	{"capabilities", 0, FLAG_TEXT, .value = "a,b", .text = "what it can do, for tasks that require it"}
#define REMOTE                     \
	{"remote", 0, FLAG_SWITCH, \
		.text = "the server is on another machine, whatever its address looks like"}
#define DRAIN                                                                                     \
	{"drain-ms", 0, FLAG_NUMBER, .value = "N",                                                \
		.text = "how long running work may go on after the first signal (default 5 min)", \
		.least = 0, .most = 24 * 3600 * 1000}
#define CONFIGURATION                                          \
	{"config", 0, FLAG_TEXT, OFFER_FILES, .value = "FILE", \
		.text = "instead of the configuration files"}, \
		{"set", 0, FLAG_TEXT, .many = true, .value = "KEY=VALUE", .text = "a setting, as log.level"}
#define WHAT_IT_RUNS                                                              \
	{"shell", 0, FLAG_SWITCH, .text = "also run the commands of stint run"},  \
		{"root", 0, FLAG_TEXT, OFFER_FILES, .many = true, .value = "DIR", \
			.text = "a directory beneath which tasks may work"}

static const struct flag run_flags[] = {
	{"slot", 0, FLAG_TEXT, OFFER_SLOTS, .value = "SLOT",
		.text = "fill this slot (default $SLOT_ID): one worker at a time, a lease of 90 s"},
	{"queues", 'Q', FLAG_TEXT, OFFER_QUEUES, .value = "a,b",
		.text = "which queues to serve; high=4,low=1 asks the first one more often first"},
	{"concurrency", 0, FLAG_NUMBER, .value = "N",
		.text = "commands at a time (default 1); pools have sizes of their own", .least = 1,
		.most = 1000},
	CAPABILITIES,
	{"name", 0, FLAG_TEXT, .value = "NAME", .text = "the first part of its id"},
	REMOTE,
	{"lease-ms", 0, FLAG_NUMBER, .value = "N",
		.text = "how long the server waits for a sign of life (default 60000; 90000 in a slot)",
		.least = 1000, .most = 24 * 3600 * 1000},
	DRAIN,
	CONFIGURATION,
	WHAT_IT_RUNS,
	{"check-config", 0, FLAG_SWITCH, .text = "print what it would run, and end"},
	{0},
};

static const struct flag once_flags[] = {
	{"agent-id", 0, FLAG_TEXT, .value = "NAME", .text = "whose claims it takes up and makes"},
	{"queues", 'Q', FLAG_TEXT, OFFER_QUEUES, .value = "a,b", .text = "from which queues"},
	{"config-object", 0, FLAG_TEXT, OFFER_FILES, .value = "FILE",
		.text = "an object with agentId, queues, leaseMs and the others; flags count more"},
	{"lease-ms", 0, FLAG_NUMBER, .value = "N", .text = "the lease of the claim (default 15 min)",
		.least = 1000, .most = 24 * 3600 * 1000},
	{"progress-every-ms", 0, FLAG_NUMBER, .value = "N",
		.text = "renew it with a note that often (default 10 min)", .least = 100,
		.most = 24 * 3600 * 1000},
	{"max-iterations", 0, FLAG_NUMBER, .value = "N", .text = "passes (default 1), with a line for each",
		.least = 1, .most = 10000},
	{"poll-interval-ms", 0, FLAG_NUMBER, .value = "N", .text = "between two passes (default 2000)",
		.least = 0, .most = 24 * 3600 * 1000},
	{"enable-pr-sweep", 0, FLAG_CHOICE, .value = "true|false",
		.text = "sweep first, if a sweep is configured (default true)"},
	{"allow-statuses", 0, FLAG_TEXT, .value = "a,b", .text = "ready, pending or both (default ready)"},
	{"execution-mode", 0, FLAG_CHOICE, .value = "isolated|main",
		.text = "main needs an agent that can continue a session"},
	{"model", 0, FLAG_TEXT, .value = "NAME", .text = "for the executor, as STINT_MODEL"},
	{"thinking", 0, FLAG_CHOICE, .value = "low|medium|high",
		.text = "for the executor, as STINT_THINKING"},
	{"max-tool-calls", 0, FLAG_NUMBER, .value = "N", .text = "needs an agent whose calls can be counted",
		.least = 1, .most = 1000000},
	{"max-run-seconds", 0, FLAG_NUMBER, .value = "N", .text = "the attempt is ended after that time",
		.least = 1, .most = 30 * 24 * 3600},
	{"empty-exit", 0, FLAG_NUMBER, .value = "N", .text = "status if there was nothing to do (default 0)",
		.least = 0, .most = 125},
	CAPABILITIES,
	REMOTE,
	DRAIN,
	CONFIGURATION,
	WHAT_IT_RUNS,
	{0},
};

static const struct flag trees_flags[] = {
	{"prune", 0, FLAG_SWITCH, .text = "remove the trees without unsaved work"},
	CONFIGURATION,
	{0},
};

static const struct flag sweep_flags[] = {
	{"repository", 0, FLAG_TEXT, .value = "OWNER/NAME",
		.text = "(default: \"prSweep\" of the configuration, else that of the current directory)"},
	{"queue", 'Q', FLAG_TEXT, OFFER_QUEUES, .value = "NAME",
		.text = "of the tasks (default: as configured, else the first that is served)"},
	{"executor", 'x', FLAG_TEXT, .value = "NAME", .text = "that is to run them"},
	CONFIGURATION,
	{0},
};

int program_become(struct cli *cli, const char *program, const char *mode)
{
	const char *argv[WORDS_MAX + 4] = {program_beside(cli, program)};
	size_t count = 1;

	for (const char *word = mode; word; word = strchr(word, ' ') ? strchr(word, ' ') + 1 : NULL)
		argv[count++] = cli_text(cli, "%.*s", (int)strcspn(word, " "), word);
	for (size_t i = 0; i < cli->args.count && count < WORDS_MAX; i++) {
		const struct arg *arg = &cli->args.items[i];
		if (arg->flag && verb_flag(&verb_version, arg->flag->name, strlen(arg->flag->name)))
			continue; /* --quiet and --color are ours */
		if (arg->flag)
			argv[count++] = cli_text(cli, "--%s", arg->flag->name);
		if (arg->text)
			argv[count++] = arg->text;
	}
	if (cli->output == OUTPUT_JSON)
		argv[count++] = "--json";
	argv[count] = NULL;
	int r = spawn_become(argv);
	return cli_fail(cli, EXIT_FAILED, "not_installed", "stint doctor", "cannot run %s: %s", argv[0],
		strerror(-r));
}

/* The mode of the program is the second word of the verb; a worker that is meant to go on has none. */
static int become_worker(struct cli *cli)
{
	return program_become(
		cli, "stint-worker", cli->verb == &verb_worker_run ? NULL : strchr(cli->verb->name, ' ') + 1);
}

const struct verb verb_worker_trees = {
	.name = "worker worktrees",
	.gives = GIVES_JSON,
	.brief = "the work trees of tasks",
	.text = "Lists the git work trees that workers of this machine have made for tasks: live, or kept because there is work in "
		"them that was not committed or not pushed; the line says what. --prune checks the trees that are not in use again and "
		"removes those without such work; nothing else removes a work tree.",
	.flags = trees_flags,
	.examples = "stint worker worktrees\nstint worker worktrees --prune\n",
	.run = become_worker,
};

const struct verb verb_worker_sweep = {
	.name = "worker sweep-prs",
	.gives = GIVES_JSON,
	.brief = "pull requests become tasks",
	.text = "Asks gh, GitHub's command line, for the open pull requests that are neither drafts nor approved, and "
		"adds a task for each: once for each commit, and never two at a time for one pull request. Prints "
		"{\"ok\":true,\"action\":\"swept\",\"queue\":...,\"found\":3,\"added\":1}. Without gh it says so and ends with "
		"status 69; nothing was changed.",
	.flags = sweep_flags,
	.examples = "stint worker sweep-prs --queue dev-team\n"
		    "stint worker sweep-prs --repository owner/name --queue dev-team --executor tests\n",
	.run = become_worker,
};

const struct verb verb_worker_once = {
	.name = "worker run-once",
	.gives = GIVES_JSON,
	.brief = "one task, and how it went",
	.text = "One pass, for cron and for agents: continues what this agent still holds, else claims one task; runs "
		"it with the executors of the configuration, reports, and prints a line of JSON: {\"ok\":true, \"action\":"
		"\"completed\", \"itemId\":..., \"title\":..., \"summary\":..., \"links\":[...], \"elapsedMs\":...}, with "
		"\"noop_empty\" if there was nothing, or ok false with \"failed\" or \"blocked\", \"error\" and \"nextSteps\". The "
		"status is 0 for the first two (--empty-exit changes the second) and 1 for the others. On one machine an agent "
		"makes one pass at a time; a second one reports \"blocked\".",
	.flags = once_flags,
	.examples =
		"stint worker run-once --agent-id dev-3 --queues dev-team\n"
		"stint worker run-once --config-object worker.json --max-run-seconds 600\n"
		"stint worker run-once --agent-id dev-3 --queues dev-team --empty-exit 5 || echo nothing to do\n",
	.run = become_worker,
};

const struct verb verb_worker_run = {
	.name = "worker run",
	.brief = "be a worker here",
	.text = "Claims tasks and runs them with the executors of the configuration, until a signal stops it: the first one "
		"lets running work end, the second does not wait. `stint worker` with flags alone is the same. The program is "
		"stint-worker; `stint worker run --check-config` says what it would run.",
	.flags = run_flags,
	.examples = "stint worker run --queues ci --concurrency 2\n"
		    "stint worker --slot slot-1\n"
		    "stint worker run --check-config\n",
	.run = become_worker,
};
