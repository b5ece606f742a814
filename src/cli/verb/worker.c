/*
 * stint worker ls, show, quiet, stop: who works here, how fresh their word is, and sending them away.
 */
#include "base/take.h"
#include "cli/verb/task_view.h"

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
		text = cli_text(cli, "%s%s%s", text, at > 0 ? "," : "", yyjson_get_str(name));
	}
	return text[0] ? span_of(text) : SPAN("-");
}

/* Which process it is, as far as it said so. */
static void add_process(struct cli *cli, struct table *table, yyjson_val *worker)
{
	int64_t pid = field_int(worker, "pid", 0), restarts = field_int(worker, "restarts", 0);

	table_cell(table, C_HOST, view_or_dash(field_text(worker, "host")), PAINT_NONE);
	table_cell(table, C_PID, pid > 0 ? view_number(cli, pid) : SPAN("-"), PAINT_NONE);
	struct span version = field_text(worker, "version");
	if (version.len == 0)
		version = field_text(field_get(worker, "metadata"), "version");
	table_cell(table, C_VERSION, view_or_dash(version), PAINT_NONE);
	table_cell(table, C_RESTARTS, view_number(cli, restarts), PAINT_NONE);
}

/* How long ago it was heard. */
static struct span heard(struct cli *cli, yyjson_val *worker)
{
	int64_t age_ms = field_int(worker, "heartbeatAgeMs", -1);

	return age_ms >= 0 ? view_duration(cli, age_ms) : SPAN("-");
}

static void add_row(struct cli *cli, struct table *table, yyjson_val *worker)
{
	struct span state = field_text(worker, "state"), slot = field_text(worker, "slot");
	int64_t room = field_int(worker, "maxConcurrent", 0);
	const char *held = room > 0
		? cli_text(cli, "%lld/%lld", (long long)field_int(worker, "held", 0), (long long)room)
		: cli_text(cli, "%lld", (long long)field_int(worker, "held", 0));

	table_row(table);
	table_cell(table, C_ID, field_text(worker, "workerId"), PAINT_BOLD);
	table_cell(table, C_STATE, state, view_state_paint(state));
	table_cell(table, C_SLOT, view_or_dash(slot), PAINT_NONE);
	table_cell(table, C_HELD, span_of(held), PAINT_NONE);
	table_cell(table, C_LEASE, view_duration(cli, field_int(worker, "leaseMs", 0)), PAINT_NONE);
	table_cell(table, C_BEAT, heard(cli, worker), PAINT_NONE);
	table_cell(table, C_CAPABILITIES, joined(cli, field_get(worker, "capabilities"), "-"), PAINT_NONE);
	if (table->column_count <= C_EXECUTORS)
		return;
	table_cell(table, C_EXECUTORS, joined(cli, field_get(worker, "executors"), "any"), PAINT_NONE);
	add_process(cli, table, worker);
	table_cell(table, C_REGISTERED, view_relative(cli, field_int(worker, "registeredAt", 0)), PAINT_NONE);
}

static const struct flag ls_flags[] = {
	{"all", 'a', FLAG_SWITCH, .text = "also workers that are gone"},
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

	int r = server_get(cli, "/api/workers", NULL, &reply);
	if (r != 0)
		return r;
	buf_init(&json, 64 << 20);
	table_init(&table, columns, cli->form == FORM_WIDE ? C_COUNT : C_EXECUTORS, cli->term.utf8);
	yyjson_arr_foreach(reply.root, at, count, worker)
	{
		if (!all && span_equal(field_text(worker, "state"), SPAN("inactive")))
			continue;
		add_row(cli, &table, worker);
		buf_put_byte(&json, json.len > 0 ? ',' : '[');
		json_put_value(&json, worker);
	}
	buf_put_span(&json, json.len > 0 ? SPAN("]") : SPAN("[]"));
	yyjson_doc *shown = cli_read_made(cli, &json);
	r = view_put_rows(cli, &table, "workers", yyjson_doc_get_root(shown), "workerId");
	if (r == 0 && table.row_count == 0 && cli->form == FORM_AUTO)
		cli_say(cli, "no workers");
	yyjson_doc_free(shown);
	table_done(&table);
	reply_done(&reply);
	return r;
}

static void put_trouble(struct cli *cli, yyjson_val *trouble)
{
	if (!yyjson_is_obj(trouble))
		return;
	cli_put(cli, "%-14s", "");
	cli_put_clean(cli, field_text(trouble, "worker"));
	cli_put(cli, ", %.*s: ", SPAN_ARGS(view_relative(cli, field_int(trouble, "at", 0))));
	cli_put_clean(cli, field_text(trouble, "reason"));
	cli_put(cli, "\n");
}

/* The workers of the pool that are not idle. */
static void put_seats(struct cli *cli, yyjson_val *pool)
{
	size_t at, count;
	yyjson_val *seat;

	yyjson_arr_foreach(field_get(pool, "workers"), at, count, seat)
	{
		if (span_equal(field_text(seat, "state"), SPAN("ready")))
			continue;
		cli_put(cli, "%-14s", "");
		cli_put_clean(cli, field_text(seat, "id"));
		cli_put(cli, " is ");
		cli_put_clean(cli, field_text(seat, "state"));
		cli_put(cli, "%s", field_text(seat, "task").len > 0 ? " with " : "");
		cli_put_clean(cli, field_text(seat, "task"));
		cli_put(cli, "\n");
	}
}

/* Its pools, as it told of them itself: any text may stand there. */
static void put_pools(struct cli *cli, yyjson_val *worker)
{
	yyjson_val *pools = field_get(field_get(worker, "metadata"), "pools"), *name, *pool;
	size_t at, count;

	yyjson_obj_foreach(pools, at, count, name, pool)
	{
		cli_put(cli, "%-14s", "POOL");
		cli_put_clean(cli, json_text(name));
		cli_put(cli, ": %lld of %lld run, %lld busy; %lld done, %lld failed, %lld crashes\n",
			(long long)field_int(pool, "activeWorkers", 0),
			(long long)field_int(pool, "totalWorkers", 0),
			(long long)field_int(pool, "busyWorkers", 0),
			(long long)field_int(pool, "tasksCompleted", 0),
			(long long)field_int(pool, "tasksFailed", 0),
			(long long)field_int(pool, "workerCrashes", 0));
		put_trouble(cli, field_get(pool, "lastTrouble"));
		put_seats(cli, pool);
	}
}

static void put_held(struct cli *cli, yyjson_val *worker)
{
	size_t at, count;
	yyjson_val *task;

	cli_put(cli, "%-14s", "TASKS");
	yyjson_arr_foreach(field_get(worker, "tasks"), at, count, task)
	{
		cli_put(cli, "%s", at > 0 ? ", " : "");
		cli_put_clean(cli, json_text(task));
	}
	cli_put(cli, "%s\n", yyjson_arr_size(field_get(worker, "tasks")) == 0 ? "-" : "");
}

static int run_show(struct cli *cli)
{
	struct table table;
	struct reply reply;

	int r = server_get(cli, "/api/workers/*", args_plain(&cli->args, 0), &reply);
	if (r != 0)
		return r;
	if (cli->form == FORM_JSON) {
		cli_put_json(cli, "worker", reply.root);
		reply_done(&reply);
		return 0;
	}
	table_init(&table, columns, C_COUNT, cli->term.utf8);
	add_row(cli, &table, reply.root);
	view_put_row_as_lines(cli, &table);
	put_held(cli, reply.root);
	put_pools(cli, reply.root);
	table_done(&table);
	reply_done(&reply);
	return 0;
}

static int run_quiet(struct cli *cli)
{
	return server_change_each(
		cli, "worker", "/api/workers/*/quiet", "finishes what it has and gets nothing new");
}

static int run_stop(struct cli *cli)
{
	return server_change_each(cli, "worker", "/api/workers/*/terminate", "is told to stop");
}

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
	.gives = GIVES_JSON | GIVES_AGAIN,
	.brief = "one worker",
	.text = "Shows one worker: which process it is, how old its last heartbeat is, the tasks that it holds, and how its pools stand, "
		"with the reason why the last of their workers crashed.",
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
	.text = "The worker finishes what it has and gets nothing new. It is told at once.",
	.examples = "stint worker quiet host-1\n",
	.run = run_quiet,
};

const struct verb verb_worker_stop = {
	.name = "worker stop",
	CHANGES,
	.brief = "tell it to stop",
	.text = "The worker is told at once to stop: it finishes or gives back what it has, and leaves.",
	.examples = "stint worker stop host-1\n",
	.run = run_stop,
};
