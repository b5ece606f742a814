/*
 * stint worker ls, show, quiet, stop: who works here, how fresh their word is, and sending them away.
 */
#include "base/take.h"
#include "cli/verb/task_view.h"

/* How many tasks it holds, of how many it may. */
static struct span held(struct cli *cli, yyjson_val *worker)
{
	int64_t count = field_int(worker, "held", 0), room = field_int(worker, "maxConcurrent", 0);

	return room > 0 ? span_of(cli_text(cli, "%lld/%lld", (long long)count, (long long)room))
			: view_number(cli, count);
}

/* How long ago it was heard. */
static struct span heard(struct cli *cli, yyjson_val *worker)
{
	int64_t age_ms = field_int(worker, "heartbeatAgeMs", -1);

	return age_ms >= 0 ? view_duration(cli, age_ms) : SPAN("-");
}

static struct span executors(struct cli *cli, yyjson_val *worker)
{
	yyjson_val *list = field_get(worker, "executors");

	return yyjson_is_arr(list) ? view_or_dash(span_of(cli_join(cli, list, ","))) : SPAN("any");
}

static struct span pid(struct cli *cli, yyjson_val *worker)
{
	int64_t number = field_int(worker, "pid", 0);

	return number > 0 ? view_number(cli, number) : SPAN("-");
}

static struct span version(struct cli *cli, yyjson_val *worker)
{
	struct span own = field_text(worker, "version");

	(void)cli;
	return own.len > 0 ? own : view_or_dash(field_text(field_get(worker, "metadata"), "version"));
}

/* The queues that it takes work of, as far as is known. */
struct span view_worker_serves(struct cli *cli, yyjson_val *worker)
{
	if (field_bool(worker, "anyQueue"))
		return SPAN("any queue");
	return span_of(cli_join(cli, field_get(worker, "queues"), " "));
}

static struct span serves_or_dash(struct cli *cli, yyjson_val *worker)
{
	return view_or_dash(view_worker_serves(cli, worker));
}

struct span view_worker_runs(struct cli *cli, yyjson_val *worker)
{
	yyjson_val *list = field_get(worker, "executors");

	return yyjson_is_arr(list) ? span_of(cli_join(cli, list, " ")) : SPAN("anything");
}

/* The tasks that it holds, the first of them by their ids. */
struct span view_worker_holds(struct cli *cli, yyjson_val *worker)
{
	yyjson_val *tasks = field_get(worker, "tasks");
	int64_t rest = field_int(worker, "held", 0) - (int64_t)yyjson_arr_size(tasks);
	const char *ids = cli_join(cli, tasks, " ");

	return span_of(rest > 0 ? cli_text(cli, "%s +%lld", ids, (long long)rest) : ids);
}

static struct span holds_or_dash(struct cli *cli, yyjson_val *worker)
{
	return view_or_dash(view_worker_holds(cli, worker));
}

enum {
	LEASE_BAR = 8,
};

/* What is left of its lease; or what it was told. */
static struct span lease_left(struct cli *cli, yyjson_val *worker)
{
	int64_t left_ms = field_int(worker, "leaseMs", 0),
		granted_ms = field_int(worker, "leaseGrantedMs", 0);
	struct span state = field_text(worker, "state");

	if (!span_equal(state, SPAN("active")))
		return state;
	return span_of(cli_text(cli, "%.*s %.*s", SPAN_ARGS(view_bar(cli, left_ms, granted_ms, LEASE_BAR)),
		SPAN_ARGS(view_countdown(cli, left_ms))));
}

static const struct column people_columns[] = {
	{"WORKER", "workerId", .shrinks = true, .least = 16},
	{"LEASE LEFT", .make = lease_left},
	{"HOLDS", .make = view_worker_holds, .shrinks = true},
	{"SERVES", .make = view_worker_serves, .shrinks = true},
	{"RUNS", .make = view_worker_runs, .shrinks = true},
	{"BEAT", .make = heard, .right = true, .from = 110},
	{"RESTARTS", "restarts", COLUMN_NUMBER, .right = true, .from = 110},
};

static const struct column columns[] = {
	{"WORKER", "workerId", .paint = PAINT_BOLD, .shrinks = true},
	{"STATE", "state", .kind = COLUMN_STATE},
	{"SLOT", "slot", COLUMN_DASH, .shrinks = true, .rank = 2},
	{"HELD", .make = held, .right = true, .rank = 1},
	{"LEASE", "leaseMs", COLUMN_DURATION, .right = true, .rank = 4},
	{"HEARD", .make = heard, .right = true, .rank = 3},
	{"CAPABILITIES", "capabilities", COLUMN_NAMES, .shrinks = true, .rank = 5},
	{"EXECUTORS", .make = executors, .shrinks = true, .rank = 6},
	{"QUEUES", .make = serves_or_dash, .shrinks = true, .rank = 6},
	{"HOLDS", .make = holds_or_dash, .shrinks = true, .rank = 6},
	{"HOST", "host", COLUMN_DASH, .shrinks = true, .rank = 8}, /* from here on with -o wide */
	{"PID", .make = pid, .right = true, .rank = 9},
	{"VERSION", .make = version, .shrinks = true, .rank = 10},
	{"RESTARTS", "restarts", COLUMN_NUMBER, .right = true, .rank = 11},
	{"SINCE", "registeredAt", COLUMN_MOMENT, .right = true, .rank = 7},
};

enum {
	COLUMNS_NARROW = 10,
};

static const struct flag ls_flags[] = {
	{"all", 'a', FLAG_SWITCH, .text = "also workers that are gone"},
	{0},
};

static bool is_gone(struct cli *cli, yyjson_val *worker)
{
	return !args_has(&cli->args, "all") && span_equal(field_text(worker, "state"), SPAN("inactive"));
}

static void put_trouble(struct cli *cli, yyjson_val *trouble)
{
	if (!yyjson_is_obj(trouble))
		return;
	cli_put_line(cli, "%-14s%s, %.*s: %s", "", field_cstr(cli, trouble, "worker"),
		SPAN_ARGS(view_relative(cli, field_int(trouble, "at", 0))),
		field_cstr(cli, trouble, "reason"));
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
		const char *task = field_cstr(cli, seat, "task");
		cli_put_line(cli, "%-14s%s is %s%s%s", "", field_cstr(cli, seat, "id"),
			field_cstr(cli, seat, "state"), task[0] ? " with " : "", task);
	}
}

/* Its pools, as it told of them itself: any text may stand there. */
static void put_pools(struct cli *cli, yyjson_val *worker)
{
	yyjson_val *pools = field_get(field_get(worker, "metadata"), "pools"), *name, *pool;
	size_t at, count;

	yyjson_obj_foreach(pools, at, count, name, pool)
	{
		cli_put_line(cli,
			"%-14s%s: %lld of %lld run, %lld busy; %lld done, %lld failed, %lld crashes", "POOL",
			yyjson_get_str(name), (long long)field_int(pool, "activeWorkers", 0),
			(long long)field_int(pool, "totalWorkers", 0),
			(long long)field_int(pool, "busyWorkers", 0),
			(long long)field_int(pool, "tasksCompleted", 0),
			(long long)field_int(pool, "tasksFailed", 0),
			(long long)field_int(pool, "workerCrashes", 0));
		put_trouble(cli, field_get(pool, "lastTrouble"));
		put_seats(cli, pool);
	}
}

static void put_rest(struct cli *cli, yyjson_val *worker)
{
	cli_put_line(cli, "%-14s%.*s", "TASKS",
		SPAN_ARGS(view_or_dash(span_of(cli_join(cli, field_get(worker, "tasks"), ", ")))));
	put_pools(cli, worker);
}

static const struct list_view workers = {
	.path = "/api/workers",
	.key = "workers",
	.id = "workerId",
	VIEW_COLUMNS(columns),
	.narrow = COLUMNS_NARROW,
	VIEW_PEOPLE(people_columns),
	.hides = is_gone,
	.none = "No workers. stint up starts one here; docs/worker.md says how to configure others.",
	.one = "worker",
	.rest = put_rest,
};

const struct verb verb_worker_ls = {
	.name = "worker ls",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "the workers",
	.text = "Lists the workers that have registered: what is left of their lease, the tasks they hold, the queues they serve and what "
		"they can run. A worker serves the queues that it has asked for work since the server runs.",
	.flags = ls_flags,
	.examples = "stint worker ls\nstint worker ls -o wide\n",
	.list = &workers,
};

const struct verb verb_worker_show = {
	.name = "worker show",
	.arguments = "WORKER",
	.offer = OFFER_WORKERS,
	.gives = GIVES_JSON | GIVES_AGAIN,
	.brief = "one worker",
	.text = "Shows one worker: which process it is, how old its last heartbeat is, the tasks that it holds, and how its pools stand, "
		"with the reason why the last of their workers crashed.",
	.examples = "stint worker show host-1\n",
	.list = &workers,
};

#define CHANGES .arguments = "WORKER...", .most = 100, .offer = OFFER_WORKERS, .gives = GIVES_JSON

const struct verb verb_worker_quiet = {
	.name = "worker quiet",
	CHANGES,
	.brief = "give it nothing new",
	.text = "The worker finishes what it has and gets nothing new, from now on.",
	.examples = "stint worker quiet host-1\n",
	.change = &(const struct change){"worker", "/api/workers/*/quiet",
		.done = "finishes what it has and gets nothing new"},
};

const struct verb verb_worker_stop = {
	.name = "worker stop",
	CHANGES,
	.brief = "tell it to stop",
	.text = "Stops the worker now: it finishes or gives back what it has, and leaves.",
	.examples = "stint worker stop host-1\n",
	.change = &(const struct change){"worker", "/api/workers/*/terminate",
		.done = "is stopping: it finishes or gives back what it has"},
};
