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

enum {
	C_ID,
	C_STATE,
	C_QUEUE,
	C_PRIORITY,
	C_AGE,
	C_TRIES,
	C_WORKER,
	C_WHY,
	C_TITLE,
	C_OWNER,
	C_EXECUTOR,
	C_ERROR,
	C_COUNT
};

static const struct column columns[C_COUNT] = {
	[C_ID] = {.name = "ID"},
	[C_STATE] = {.name = "STATE"},
	[C_QUEUE] = {.name = "QUEUE", .shrinks = true, .rank = 2},
	[C_PRIORITY] = {.name = "PRI", .right = true, .rank = 4},
	[C_AGE] = {.name = "AGE", .right = true, .rank = 3},
	[C_TRIES] = {.name = "TRY", .right = true, .rank = 5},
	[C_WORKER] = {.name = "WORKER", .shrinks = true, .rank = 1},
	[C_WHY] = {.name = "WHY", .shrinks = true, .rank = 1},
	[C_TITLE] = {.name = "TITLE", .shrinks = true},
	[C_OWNER] = {.name = "OWNER", .shrinks = true, .rank = 6},
	[C_EXECUTOR] = {.name = "EXECUTOR", .shrinks = true, .rank = 7},
	[C_ERROR] = {.name = "ERROR", .shrinks = true, .rank = 8},
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
	const char *names;
	size_t at = 0;
	bool any = false;

	while ((names = args_each(&cli->args, flag, &at))) {
		any = true;
		while (*names) {
			size_t len = strcspn(names, ",");
			if (span_equal((struct span){names, len}, word))
				return true;
			names += len + (names[len] == ',');
		}
	}
	return !any;
}

/* Why it is where it is, where that says more than its state. */
static struct span reason_beside(yyjson_val *task, struct span state)
{
	struct span reason = field_text(task, "reason");

	return reason.len == 0 || view_state_is_final(state) || span_equal(reason, state) ? SPAN("-")
											  : reason;
}

static void add_cells(struct task_rows *listing, yyjson_val *task)
{
	struct cli *cli = listing->cli;
	struct table *table = &listing->table;
	struct span state = field_text(task, "state"), worker = field_text(task, "workerId");

	table_row(table);
	table_cell(table, C_ID, field_text(task, "id"), PAINT_BOLD);
	table_cell(table, C_STATE, field_bool(task, "stopping") ? SPAN("stopping") : state,
		view_state_paint(state));
	table_cell(table, C_QUEUE, field_text(task, "queue"), PAINT_NONE);
	table_cell(table, C_PRIORITY, view_number(cli, field_int(task, "priority", 0)), PAINT_NONE);
	table_cell(table, C_AGE, view_since(cli, field_int(task, "createdAt", 0)), PAINT_NONE);
	table_cell(table, C_TRIES, view_number(cli, field_int(task, "attempt", 0)), PAINT_NONE);
	table_cell(table, C_WORKER, view_or_dash(worker), PAINT_NONE);
	table_cell(table, C_WHY, reason_beside(task, state), PAINT_NONE);
	table_cell(table, C_TITLE, field_text(task, "title"), PAINT_NONE);
	if (table->column_count <= C_OWNER)
		return;
	table_cell(table, C_OWNER, field_text(task, "owner"), PAINT_NONE);
	table_cell(table, C_EXECUTOR, field_text(task, "executor"), PAINT_NONE);
	table_cell(table, C_ERROR, field_text(field_get(task, "error"), "code"), PAINT_RED);
}

/* One task of a page, in whatever form it will be shown. */
static int take_task(struct task_rows *listing, yyjson_val *task)
{
	struct cli *cli = listing->cli;
	int r = 0;

	switch (cli->form) {
	case FORM_JSON:
		buf_put_byte(&listing->json, listing->json.len > 0 ? ',' : '[');
		r = json_put_value(&listing->json, task);
		break;
	case FORM_JSONL:
		cli_put_value(cli, task);
		cli_put(cli, "\n");
		break;
	case FORM_ID:
		view_put_id(cli, field_text(task, "id"));
		break;
	case FORM_AUTO:
	case FORM_TABLE:
	case FORM_WIDE:
	case FORM_ENV:
		add_cells(listing, task);
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
	struct reply reply;
	int r = 0;

	question.query = first_query(cli, listing->limit);
	while (r == 0 && !listing->ended) {
		r = server_ask(cli, &question, &reply);
		if (r != 0)
			return r;
		int fault = take_page(listing, reply.root);
		question.query = reply.next;
		listing->ended = listing->ended || reply.next.len == 0;
		reply_done(&reply);
		if (fault < 0)
			return cli_fail_fault(cli, fault);
	}
	return r;
}

static int show(struct task_rows *listing)
{
	struct cli *cli = listing->cli;

	if (cli->form != FORM_JSON)
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

	table_init(&listing.table, columns, cli->form == FORM_WIDE ? C_COUNT : C_OWNER, cli->term.utf8);
	buf_init(&listing.json, JSON_BYTES_MAX);
	int r = fetch(&listing);
	if (r == 0)
		r = show(&listing);
	bool people = cli->form == FORM_AUTO || cli->form == FORM_TABLE || cli->form == FORM_WIDE;
	if (r == 0 && people && listing.count == 0)
		cli_say(cli,
			args_has(&cli->args, "all")
				? "no tasks"
				: "no open tasks; stint ls --all also shows those that have ended");
	if (r == 0 && people && listing.more)
		cli_say(cli, "… there are more: stint ls --limit 0");
	table_done(&listing.table);
	buf_done(&listing.json);
	return r;
}

const struct verb verb_ls = {
	.name = "ls",
	.group = GROUP_WORK,
	.arguments = "",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "list tasks",
	.text = "Lists the tasks that have not ended, in the order in which they would be claimed; with --all or --state, "
		"also those that have, the newest first. WHY names what a task waits for; stint why ID says it in a sentence. "
		"On a terminal it is a table; elsewhere one line per task with "
		"tabs between.",
	.flags = flags,
	.examples = "stint ls\n"
		    "stint ls --queue ci --state ready,running\n"
		    "stint ls --state failed -o id | xargs -r stint retry\n"
		    "stint ls --all --json=id,state,title\n",
	.run = run,
};
