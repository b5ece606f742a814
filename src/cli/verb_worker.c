/*
 * stint worker ls, show, quiet, stop, and stint slot: who works here, how fresh their word is, and sending them away. And
 * stint worker run, or stint worker alone: become one.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/take.h"
#include "cli/task_view.h"
#include "cli/verbs.h"

enum {
	C_ID,
	C_STATE,
	C_SLOT,
	C_HELD,
	C_LEASE,
	C_BEAT,
	C_CAPABILITIES,
	C_EXECUTORS,
	C_HOST,
	C_PID,
	C_VERSION,
	C_RESTARTS,
	C_REGISTERED,
	C_COUNT
};

static const struct column columns[C_COUNT] = {
	[C_ID] = {.name = "WORKER", .shrinks = true},
	[C_STATE] = {.name = "STATE"},
	[C_SLOT] = {.name = "SLOT", .shrinks = true, .rank = 2},
	[C_HELD] = {.name = "HELD", .right = true, .rank = 1},
	[C_LEASE] = {.name = "LEASE", .right = true, .rank = 4},
	[C_BEAT] = {.name = "HEARD", .right = true, .rank = 3},
	[C_CAPABILITIES] = {.name = "CAPABILITIES", .shrinks = true, .rank = 5},
	[C_EXECUTORS] = {.name = "EXECUTORS", .shrinks = true, .rank = 6},
	[C_HOST] = {.name = "HOST", .shrinks = true, .rank = 8},
	[C_PID] = {.name = "PID", .right = true, .rank = 9},
	[C_VERSION] = {.name = "VERSION", .shrinks = true, .rank = 10},
	[C_RESTARTS] = {.name = "RESTARTS", .right = true, .rank = 11},
	[C_REGISTERED] = {.name = "SINCE", .right = true, .rank = 7},
};

static struct span joined(struct cli *cli, yyjson_val *list, const char *otherwise)
{
	const char *text = "";
	size_t at, count;
	yyjson_val *name;

	if (!yyjson_is_arr(list))
		return span_of(otherwise);
	yyjson_arr_foreach(list, at, count, name)
	{
		text = text_of(cli, "%s%s%s", text, at > 0 ? "," : "", yyjson_get_str(name));
	}
	return text[0] ? span_of(text) : SPAN("-");
}

static struct span or_dash(struct span text)
{
	return text.len > 0 ? text : SPAN("-");
}

/* Which process it is, as far as it said so. */
static void add_process(struct cli *cli, struct table *table, yyjson_val *worker)
{
	int64_t pid = field_int(worker, "pid", 0), restarts = field_int(worker, "restarts", 0);
	bool utf8 = cli->term.utf8;

	table_cell(table, C_HOST, or_dash(field_text(worker, "host")), PAINT_NONE, utf8);
	table_cell(table, C_PID, pid > 0 ? span_of(text_of(cli, "%lld", (long long)pid)) : SPAN("-"),
		PAINT_NONE, utf8);
	table_cell(table, C_VERSION, or_dash(field_text(worker, "version")), PAINT_NONE, utf8);
	table_cell(table, C_RESTARTS, span_of(text_of(cli, "%lld", (long long)restarts)), PAINT_NONE, utf8);
}

/* How long ago it was heard. */
static struct span heard(struct cli *cli, yyjson_val *worker)
{
	int64_t age_ms = field_int(worker, "heartbeatAgeMs", -1);

	return age_ms >= 0 ? duration(cli, age_ms) : SPAN("-");
}

static void add_row(struct cli *cli, struct table *table, yyjson_val *worker)
{
	struct span state = field_text(worker, "state"), slot = field_text(worker, "slot");
	int64_t room = field_int(worker, "maxConcurrent", 0);
	bool utf8 = cli->term.utf8;
	const char *held = room > 0
		? text_of(cli, "%lld/%lld", (long long)field_int(worker, "held", 0), (long long)room)
		: text_of(cli, "%lld", (long long)field_int(worker, "held", 0));

	table_row(table);
	table_cell(table, C_ID, field_text(worker, "workerId"), PAINT_BOLD, utf8);
	table_cell(table, C_STATE, state, state_paint(state), utf8);
	table_cell(table, C_SLOT, or_dash(slot), PAINT_NONE, utf8);
	table_cell(table, C_HELD, span_of(held), PAINT_NONE, utf8);
	table_cell(table, C_LEASE, duration(cli, field_int(worker, "leaseMs", 0)), PAINT_NONE, utf8);
	table_cell(table, C_BEAT, heard(cli, worker), PAINT_NONE, utf8);
	table_cell(table, C_CAPABILITIES, joined(cli, field(worker, "capabilities"), "-"), PAINT_NONE, utf8);
	if (table->column_count <= C_EXECUTORS)
		return;
	table_cell(table, C_EXECUTORS, joined(cli, field(worker, "executors"), "any"), PAINT_NONE, utf8);
	add_process(cli, table, worker);
	table_cell(
		table, C_REGISTERED, relative(cli, field_int(worker, "registeredAt", 0)), PAINT_NONE, utf8);
}

static const struct flag ls_flags[] = {
	{"all", 'a', FLAG_SWITCH, .text = "those that are gone, too"},
	{0},
};

static int run_ls(struct cli *cli)
{
	struct table table;
	struct reply reply;
	size_t at, count;
	yyjson_val *worker;
	bool all = args_has(&cli->args, "all");
	cleanup(buf_done) struct buf json = {0};

	int r = get(cli, "/api/workers", NULL, &reply);
	if (r != 0)
		return r;
	buf_init(&json, 64 << 20);
	buf_put_byte(&json, '[');
	table_init(&table, columns, cli->form == FORM_WIDE ? C_COUNT : C_EXECUTORS);
	yyjson_arr_foreach(reply.root, at, count, worker)
	{
		if (!all && span_equal(field_text(worker, "state"), SPAN("inactive")))
			continue;
		add_row(cli, &table, worker);
		if (json.len > 1)
			buf_put_byte(&json, ',');
		json_put_value(&json, worker);
	}
	buf_put_byte(&json, ']');
	struct json_complaint complaint;
	yyjson_doc *shown = json_read(buf_span(&json), &complaint);
	r = put_rows(cli, &table, "workers", yyjson_doc_get_root(shown), "workerId");
	if (r == 0 && table.row_count == 0 && cli->form == FORM_AUTO)
		say(cli, "no workers");
	yyjson_doc_free(shown);
	table_done(&table);
	reply_done(&reply);
	return r;
}

/* Its pools, as it told of them itself: any text may stand there. */
static void put_pools(struct cli *cli, yyjson_val *worker)
{
	yyjson_val *pools = field(field(worker, "metadata"), "pools"), *name, *pool;
	size_t at, count;

	yyjson_obj_foreach(pools, at, count, name, pool)
	{
		put(cli, "%-14s", "POOL");
		put_clean(cli, (struct span){yyjson_get_str(name), yyjson_get_len(name)});
		put(cli, ": %lld of %lld run, %lld busy; %lld done, %lld failed, %lld crashes\n",
			(long long)field_int(pool, "activeWorkers", 0),
			(long long)field_int(pool, "totalWorkers", 0),
			(long long)field_int(pool, "busyWorkers", 0),
			(long long)field_int(pool, "tasksCompleted", 0),
			(long long)field_int(pool, "tasksFailed", 0),
			(long long)field_int(pool, "workerCrashes", 0));
	}
}

static int run_show(struct cli *cli)
{
	struct table table;
	struct reply reply;

	int r = get(cli, "/api/workers/*", args_plain(&cli->args, 0), &reply);
	if (r != 0)
		return r;
	if (cli->form == FORM_JSON) {
		put_json(cli, "worker", reply.root);
		reply_done(&reply);
		return 0;
	}
	table_init(&table, columns, C_COUNT);
	add_row(cli, &table, reply.root);
	put_row_as_lines(cli, &table);
	put_pools(cli, reply.root);
	table_done(&table);
	reply_done(&reply);
	return 0;
}

static int run_quiet(struct cli *cli)
{
	return change_each(
		cli, "worker", "/api/workers/*/quiet", "finishes what it has and gets nothing new");
}

static int run_stop(struct cli *cli)
{
	return change_each(cli, "worker", "/api/workers/*/terminate", "is told to stop");
}

/* ---- being one --------------------------------------------------------------------------------------------------- */

enum {
	WORDS_MAX = 256,
};

static const struct flag run_flags[] = {
	{"slot", 0, FLAG_TEXT, OFFER_SLOTS, .value = "SLOT",
		.text = "fill this slot (default $SLOT_ID): one worker at a time, a lease of 90 s"},
	{"queues", 'Q', FLAG_TEXT, OFFER_QUEUES, .value = "a,b",
		.text = "which queues to serve; high=4,low=1 asks the first one more often first"},
	{"concurrency", 0, FLAG_NUMBER, .value = "N", .text = "tasks at a time (default 1)", .least = 1,
		.most = 1000},
	{"capabilities", 0, FLAG_TEXT, .value = "a,b", .text = "what it can do, for tasks that require it"},
	{"name", 0, FLAG_TEXT, .value = "NAME", .text = "the first part of its id"},
	{"remote", 0, FLAG_SWITCH,
		.text = "the server is on another machine, whatever its address looks like"},
	{"lease-ms", 0, FLAG_NUMBER, .value = "N",
		.text = "how long the server waits for a sign of life (default 60000; 90000 in a slot)",
		.least = 1000, .most = 24 * 3600 * 1000},
	{"drain-ms", 0, FLAG_NUMBER, .value = "N",
		.text = "how long running work may go on after the first signal (default 5 min)", .least = 0,
		.most = 24 * 3600 * 1000},
	{"config", 0, FLAG_TEXT, OFFER_FILES, .value = "FILE", .text = "instead of the configuration files"},
	{"set", 0, FLAG_TEXT, .many = true, .value = "KEY=VALUE", .text = "a setting, as log.level"},
	{"shell", 0, FLAG_SWITCH, .text = "also run what stint run asks for"},
	{"root", 0, FLAG_TEXT, OFFER_FILES, .many = true, .value = "DIR",
		.text = "a directory beneath which tasks may work"},
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
	{"capabilities", 0, FLAG_TEXT, .value = "a,b", .text = "what it can do, for tasks that require it"},
	{"remote", 0, FLAG_SWITCH,
		.text = "the server is on another machine, whatever its address looks like"},
	{"drain-ms", 0, FLAG_NUMBER, .value = "N",
		.text = "how long running work may go on after the first signal (default 5 min)", .least = 0,
		.most = 24 * 3600 * 1000},
	{"config", 0, FLAG_TEXT, OFFER_FILES, .value = "FILE", .text = "instead of the configuration files"},
	{"set", 0, FLAG_TEXT, .many = true, .value = "KEY=VALUE", .text = "a setting, as log.level"},
	{"shell", 0, FLAG_SWITCH, .text = "also run what stint run asks for"},
	{"root", 0, FLAG_TEXT, OFFER_FILES, .many = true, .value = "DIR",
		.text = "a directory beneath which tasks may work"},
	{0},
};

static const struct flag trees_flags[] = {
	{"prune", 0, FLAG_SWITCH, .text = "remove those without work in them"},
	{"config", 0, FLAG_TEXT, OFFER_FILES, .value = "FILE", .text = "instead of the configuration files"},
	{"set", 0, FLAG_TEXT, .many = true, .value = "KEY=VALUE", .text = "a setting, as log.level"},
	{0},
};

static const struct flag sweep_flags[] = {
	{"repository", 0, FLAG_TEXT, .value = "OWNER/NAME",
		.text = "(default: \"prSweep\" of the configuration, else that of the current directory)"},
	{"queue", 'Q', FLAG_TEXT, OFFER_QUEUES, .value = "NAME",
		.text = "of the tasks (default: as configured, else the first that is served)"},
	{"executor", 'x', FLAG_TEXT, .value = "NAME", .text = "that is to run them"},
	{"config", 0, FLAG_TEXT, OFFER_FILES, .value = "FILE", .text = "instead of the configuration files"},
	{"set", 0, FLAG_TEXT, .many = true, .value = "KEY=VALUE", .text = "a setting, as log.level"},
	{0},
};

int become(struct cli *cli, const char *program, const char *mode)
{
	const char *argv[WORDS_MAX + 3] = {program_beside(cli, program), mode};
	size_t count = mode ? 2 : 1;

	for (size_t i = 0; i < cli->args.count && count < WORDS_MAX; i++) {
		const struct arg *arg = &cli->args.items[i];
		if (arg->flag && verb_flag(&verb_version, arg->flag->name, strlen(arg->flag->name)))
			continue; /* --quiet and --color are ours */
		if (arg->flag)
			argv[count++] = text_of(cli, "--%s", arg->flag->name);
		if (arg->text)
			argv[count++] = arg->text;
	}
	if (cli->form == FORM_JSON)
		argv[count++] = "--json";
	argv[count] = NULL;
	execvp(argv[0], (char *const *)argv);
	return fail(cli, EXIT_FAILED, "not_installed", "stint doctor", "cannot run %s: %s", argv[0],
		strerror(errno));
}

static int run_trees(struct cli *cli)
{
	return become(cli, "stint-worker", "worktrees");
}

static int run_run(struct cli *cli)
{
	return become(cli, "stint-worker", NULL);
}

static int run_once(struct cli *cli)
{
	return become(cli, "stint-worker", "run-once");
}

static int run_sweep(struct cli *cli)
{
	return become(cli, "stint-worker", "sweep-prs");
}

const struct verb verb_worker_trees = {
	.name = "worker worktrees",
	.group = GROUP_WORKERS,
	.arguments = "",
	.gives = GIVES_JSON,
	.brief = "the work trees of tasks",
	.text = "Lists the git work trees that workers of this machine have made for tasks: live, or kept because there is work in "
		"them that was not committed or not pushed; the line says what. With --prune each that nobody works with is looked "
		"at again, and those without such work are removed; nothing else ever removes one.",
	.flags = trees_flags,
	.examples = "stint worker worktrees\nstint worker worktrees --prune\n",
	.run = run_trees,
};

const struct verb verb_worker_sweep = {
	.name = "worker sweep-prs",
	.group = GROUP_WORKERS,
	.arguments = "",
	.brief = "pull requests become tasks",
	.text = "Asks gh, GitHub's command line, for the open pull requests that are no drafts and that nobody has approved, and "
		"adds a task for each: once for each commit, and never two at a time for one pull request. Prints "
		"{\"ok\":true,\"action\":\"swept\",\"queue\":...,\"found\":3,\"added\":1}. Without gh it says so and ends with "
		"status 69; nothing was changed.",
	.flags = sweep_flags,
	.examples = "stint worker sweep-prs --queue dev-team\n"
		    "stint worker sweep-prs --repository owner/name --queue dev-team --executor tests\n",
	.run = run_sweep,
};

const struct verb verb_worker_once = {
	.name = "worker run-once",
	.group = GROUP_WORKERS,
	.arguments = "",
	.brief = "one task, and how it went",
	.text = "One pass, for cron and for agents: takes up what this agent still has under its name, else claims one task; runs "
		"it with the executors of the configuration, reports, and prints a line of JSON: {\"ok\":true, \"action\":"
		"\"completed\", \"itemId\":..., \"title\":..., \"summary\":..., \"links\":[...], \"elapsedMs\":...}, with "
		"\"noop_empty\" if there was nothing, or ok false with \"failed\" or \"blocked\", \"error\" and \"nextSteps\". The "
		"status is 0 for the first two (--empty-exit changes the second) and 1 for the others. Two passes of one agent at a "
		"time are not made on one machine: the second one is blocked.",
	.flags = once_flags,
	.examples =
		"stint worker run-once --agent-id dev-3 --queues dev-team\n"
		"stint worker run-once --config-object worker.json --max-run-seconds 600\n"
		"stint worker run-once --agent-id dev-3 --queues dev-team --empty-exit 5 || echo nothing to do\n",
	.run = run_once,
};

const struct verb verb_worker_run = {
	.name = "worker run",
	.group = GROUP_WORKERS,
	.arguments = "",
	.brief = "be a worker here",
	.text = "Claims tasks and runs them with the executors of the configuration, until a signal stops it: the first one "
		"lets running work end, the second does not wait. `stint worker` with flags alone is the same. The program is "
		"stint-worker; `stint worker run --check-config` says what it would run.",
	.flags = run_flags,
	.examples = "stint worker run --queues ci --concurrency 2\n"
		    "stint worker --slot slot-1\n"
		    "stint worker run --check-config\n",
	.run = run_run,
};

const struct verb verb_worker_ls = {
	.name = "worker ls",
	.group = GROUP_WORKERS,
	.arguments = "",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "the workers",
	.text = "Lists the workers that have registered: their slot, how much they hold, how long their lease still runs and "
		"when they were last heard.",
	.flags = ls_flags,
	.examples = "stint worker ls\nstint worker ls -o wide\n",
	.run = run_ls,
};

const struct verb verb_worker_show = {
	.name = "worker show",
	.group = GROUP_WORKERS,
	.arguments = "WORKER",
	.least = 1,
	.most = 1,
	.offer = OFFER_WORKERS,
	.gives = GIVES_JSON,
	.brief = "one worker",
	.examples = "stint worker show host-1\n",
	.run = run_show,
};

#define CHANGES                                                                                            \
	.group = GROUP_WORKERS, .arguments = "WORKER...", .least = 1, .most = 100, .offer = OFFER_WORKERS, \
	.gives = GIVES_JSON

const struct verb verb_worker_quiet = {
	.name = "worker quiet",
	CHANGES,
	.brief = "give it nothing new",
	.text = "The worker finishes what it has and gets nothing new. It is told with its next heartbeat.",
	.examples = "stint worker quiet host-1\n",
	.run = run_quiet,
};

const struct verb verb_worker_stop = {
	.name = "worker stop",
	CHANGES,
	.brief = "tell it to stop",
	.text = "The worker is told with its next heartbeat to stop: it finishes or gives back what it has, and leaves.",
	.examples = "stint worker stop host-1\n",
	.run = run_stop,
};

/* ---- slots ------------------------------------------------------------------------------------------------------ */

enum { S_NAME, S_STATE, S_WORKER, S_RESTARTS, S_UNTIL, S_COUNT };

static const struct column slot_columns[S_COUNT] = {
	[S_NAME] = {.name = "SLOT", .shrinks = true},
	[S_STATE] = {.name = "STATE"},
	[S_WORKER] = {.name = "WORKER", .shrinks = true, .rank = 1},
	[S_RESTARTS] = {.name = "CRASHES", .right = true, .rank = 2},
	[S_UNTIL] = {.name = "TRIAL", .right = true, .rank = 3},
};

static int run_slots(struct cli *cli)
{
	struct table table;
	struct reply reply;
	size_t at, count;
	yyjson_val *slot;

	int r = get(cli, "/api/slots", NULL, &reply);
	if (r != 0)
		return r;
	table_init(&table, slot_columns, S_COUNT);
	yyjson_arr_foreach(reply.root, at, count, slot)
	{
		struct span state = field_text(slot, "state");
		struct span worker = field_text(slot, "workerId");
		bool utf8 = cli->term.utf8;
		table_row(&table);
		table_cell(&table, S_NAME, field_text(slot, "name"), PAINT_BOLD, utf8);
		table_cell(&table, S_STATE, state, state_paint(state), utf8);
		table_cell(&table, S_WORKER, worker.len > 0 ? worker : SPAN("-"), PAINT_NONE, utf8);
		table_cell(&table, S_RESTARTS, number(cli, field_int(slot, "crashes", 0)), PAINT_NONE, utf8);
		table_cell(&table, S_UNTIL, relative(cli, field_int(slot, "trialAt", 0)), PAINT_NONE, utf8);
	}
	r = put_rows(cli, &table, "slots", reply.root, "name");
	if (r == 0 && table.row_count == 0 && cli->form == FORM_AUTO)
		say(cli, "no slots");
	table_done(&table);
	reply_done(&reply);
	return r;
}

static int run_unquarantine(struct cli *cli)
{
	return change_each(cli, "slot", "/api/slots/*/unquarantine", "may work again");
}

const struct verb verb_slot_ls = {
	.name = "slot ls",
	.group = GROUP_WORKERS,
	.arguments = "",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "the slots",
	.text = "Lists the slots: who fills them, how often they crashed lately, and which are quarantined.",
	.examples = "stint slot ls\n",
	.run = run_slots,
};

const struct verb verb_slot_unquarantine = {
	.name = "slot unquarantine",
	.group = GROUP_WORKERS,
	.arguments = "SLOT",
	.least = 1,
	.most = 1,
	.offer = OFFER_SLOTS,
	.gives = GIVES_JSON,
	.brief = "let it work again",
	.text = "Lets a slot work again that crashed too often.",
	.examples = "stint slot unquarantine slot-1\n",
	.run = run_unquarantine,
};
