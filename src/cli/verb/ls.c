/*
 * stint ls: what there is, in the order in which it would be claimed. Pages are fetched as far as they are asked for.
 */
#include <string.h>

#include "base/take.h"
#include "cli/verb/task_view.h"

enum {
	LIMIT_DEFAULT = 100,
	LIMIT_MAX = 1000000,
	PAGE_MAX = 1000,
	JSON_BYTES_MAX = 200 << 20,
};

static const struct flag flags[] = {
	{"all", 'a', FLAG_SWITCH, .text = "also tasks that have ended"},
	{"state", 's', FLAG_NAMES, OFFER_STATES, true, .value = "STATE,…",
		.text = "only in these states: pending scheduled waiting ready claimed running asking review blocked failed done cancelled"},
	{"queue", 'Q', FLAG_TEXT, OFFER_QUEUES, .value = "NAME", .text = "only of this queue"},
	{"owner", 0, FLAG_TEXT, OFFER_SLOTS, .value = "SLOT", .text = "only for this slot"},
	{"label", 'l', FLAG_TEXT, .value = "LABEL", .text = "only with this label"},
	{"search", '/', FLAG_TEXT, .value = "TEXT",
		.text = "only with this in its id, title, description or instructions"},
	{"limit", 'n', FLAG_NUMBER, .value = "N", .text = "at most so many (default 100; 0: all of them)",
		.least = 0, .most = LIMIT_MAX},
	{0},
};

/* Why it is where it is, where that says more than its state. */
static struct span reason_beside(struct cli *cli, yyjson_val *task)
{
	struct span reason = field_text(task, "reason"), state = field_text(task, "state");
	bool says_more = reason.len > 0 && !view_state_is_final(state) && !span_equal(reason, state);

	(void)cli;
	return says_more ? reason : SPAN("-");
}

static struct span state_of(struct cli *cli, yyjson_val *task)
{
	(void)cli;
	return field_bool(task, "stopping") ? SPAN("stopping") : field_text(task, "state");
}

static const struct column columns[] = {
	{"ID", "id", .paint = PAINT_BOLD},
	{"STATE", .make = state_of, .kind = COLUMN_STATE},
	{"QUEUE", "queue", .shrinks = true, .rank = 2},
	{"PRI", "priority", COLUMN_NUMBER, .right = true, .rank = 4},
	{"AGE", "createdAt", COLUMN_AGE, .right = true, .rank = 3},
	{"TRY", "attempt", COLUMN_NUMBER, .right = true, .rank = 5},
	{"WORKER", "workerId", COLUMN_DASH, .shrinks = true, .rank = 1},
	{"WHY", .make = reason_beside, .shrinks = true, .rank = 1},
	{"TITLE", "title", .shrinks = true},
	{"OWNER", "owner", .shrinks = true, .rank = 6}, /* from here on with -o wide */
	{"EXECUTOR", "executor", .shrinks = true, .rank = 7},
	{"ERROR", "error.code", .paint = PAINT_RED, .shrinks = true, .rank = 8},
};

enum {
	COLUMNS_NARROW = 9,
	COLUMNS = sizeof columns / sizeof *columns,
};

struct task_rows {
	struct cli *cli;
	struct table table;
	struct buf json; /* elements */
	int64_t limit, count;
	bool ended, more;
};

static bool is_among(struct cli *cli, const char *flag, struct span word)
{
	struct args_names walk = {0};
	struct span name;

	while (args_each_name(&cli->args, flag, &walk, &name)) {
		if (span_equal(name, word))
			return true;
	}
	return !args_has(&cli->args, flag);
}

/* One task of a page, in whatever form it will be shown. */
static int take_task(struct task_rows *listing, yyjson_val *task)
{
	struct cli *cli = listing->cli;
	int r = 0;

	switch (cli->output) {
	case OUTPUT_JSON:
		buf_put_byte(&listing->json, listing->json.len > 0 ? ',' : '[');
		r = json_put_value(&listing->json, task);
		break;
	case OUTPUT_JSONL:
		cli_put_value(cli, task);
		cli_put(cli, "\n");
		break;
	case OUTPUT_ID:
		view_put_id(cli, field_text(task, "id"));
		break;
	case OUTPUT_AUTO:
	case OUTPUT_TABLE:
	case OUTPUT_WIDE:
	case OUTPUT_ENV:
		view_add_row(cli, &listing->table, task);
		r = listing->table.fault;
		break;
	}
	listing->count++;
	return r;
}

/* The list has the unfinished ones first: without --all the first ended one is its end. */
static int take_page(struct task_rows *listing, yyjson_val *page)
{
	struct cli *cli = listing->cli;
	bool all = args_has(&cli->args, "all") || args_has(&cli->args, "state");
	size_t at, count;
	yyjson_val *task;
	int r = 0;

	yyjson_arr_foreach(page, at, count, task)
	{
		struct span state = field_text(task, "state");
		if (!all && view_state_is_final(state)) {
			listing->ended = true;
			return 0;
		}
		if (!is_among(cli, "state", state))
			continue;
		if (listing->limit > 0 && listing->count == listing->limit) {
			listing->more = listing->ended = true;
			return 0;
		}
		r = take_task(listing, task);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- the question ------------------------------------------------------------------------------------------- */

static void put_filter(struct cli *cli, struct buf *query, const char *name, const char *value)
{
	if (value)
		buf_printf(query, "%s=%.*s&", name, SPAN_ARGS(cli_encode(cli, span_of(value))));
}

static struct span first_query(struct cli *cli, int64_t limit)
{
	const struct args *args = &cli->args;
	cleanup(buf_done) struct buf query = {0};
	const char *state = args_text(args, "state");
	size_t at = 0;
	int states = 0;

	while (args_each(args, "state", &at))
		states++;
	buf_init(&query, 64 << 10);
	if (states == 1 && !strchr(state, ','))
		put_filter(cli, &query, "state",
			state); /* one the server can look for; more we sift ourselves */
	put_filter(cli, &query, "queue", args_text(args, "queue"));
	put_filter(cli, &query, "owner", args_text(args, "owner"));
	put_filter(cli, &query, "label", args_text(args, "label"));
	put_filter(cli, &query, "q", args_text(args, "search"));
	/* one more than is shown: so we know whether there is more */
	buf_printf(&query, "limit=%lld",
		(long long)(limit > 0 && limit < PAGE_MAX && states < 2 ? limit + 1 : PAGE_MAX));
	return span_of(cli_text(cli, "%.*s", SPAN_ARGS(cli_span(cli, &query))));
}

static int fetch(struct task_rows *listing)
{
	struct cli *cli = listing->cli;
	struct ask question = {.method = HTTP_METHOD_GET, .path = "/api/tasks"};
	int fault = 0;

	question.query = first_query(cli, listing->limit);
	while (fault == 0 && !listing->ended) {
		cleanup(reply_done) struct reply reply = server_need(cli, &question);
		fault = take_page(listing, reply.root);
		question.query = reply.next;
		listing->ended = listing->ended || reply.next.len == 0;
	}
	return fault < 0 ? cli_fail_fault(cli, fault) : 0;
}

static int show(struct task_rows *listing)
{
	struct cli *cli = listing->cli;

	if (cli->output != OUTPUT_JSON)
		return view_put_rows(cli, &listing->table, "tasks", NULL, "id");
	buf_put_span(&listing->json, listing->json.len > 0 ? SPAN("]") : SPAN("[]"));
	cli_put(cli, "{\"schema\":1,\"ok\":true,\"tasks\":");
	if (!cli->fields) {
		buf_put_span(&cli->out, cli_span(cli, &listing->json));
	} else {
		yyjson_doc *doc = cli_read_made(cli, &listing->json);
		cli_put_value(cli, yyjson_doc_get_root(doc));
		yyjson_doc_free(doc);
	}
	cli_put(cli, ",\"more\":%s}\n", listing->more ? "true" : "false");
	return 0;
}

static int run(struct cli *cli)
{
	struct task_rows listing = {.cli = cli, .limit = args_number(&cli->args, "limit", LIMIT_DEFAULT)};

	table_init(&listing.table, columns, cli->output == OUTPUT_WIDE ? COLUMNS : COLUMNS_NARROW,
		cli->term.utf8);
	buf_init(&listing.json, JSON_BYTES_MAX);
	int r = fetch(&listing);
	if (r == 0)
		r = show(&listing);
	bool people = cli->output == OUTPUT_AUTO || cli->output == OUTPUT_TABLE || cli->output == OUTPUT_WIDE;
	if (r == 0 && people && listing.count == 0)
		cli_say(cli,
			args_has(&cli->args, "all") ? "no tasks"
						    : "no open tasks; stint ls --all also shows ended tasks");
	if (r == 0 && people && listing.more)
		cli_say(cli, "… there are more: stint ls --limit 0");
	table_done(&listing.table);
	buf_done(&listing.json);
	return r;
}

const struct verb verb_ls = {
	.name = "ls",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "list tasks",
	.text = "Lists the tasks that have not ended, in the order in which they would be claimed; with --all or --state, "
		"also ended tasks, the newest first. WHY names what a task waits for; stint why ID says it in a sentence. "
		"On a terminal it is a table; elsewhere one line per task with "
		"tabs between.",
	.flags = flags,
	.examples = "stint ls\n"
		    "stint ls --queue ci --state ready,running\n"
		    "stint ls --state failed -o id | xargs -r stint retry\n"
		    "stint ls --all --json=id,state,title\n",
	.run = run,
};
