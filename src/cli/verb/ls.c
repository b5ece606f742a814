/*
 * stint ls: what there is. For people in groups, what needs somebody first, each task with a sentence that says where it stands;
 * elsewhere in the order in which tasks are claimed, one per line, and all of them. Pages are fetched as far as they are asked for.
 */
#include <string.h>

#include "base/take.h"
#include "cli/verb/stand.h"
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
		.text = "only in these states: parked scheduled waiting ready claimed running asking review blocked failed done cancelled"},
	{"queue", 'Q', FLAG_TEXT, OFFER_QUEUES, .value = "NAME", .text = "only of this queue"},
	{"owner", 0, FLAG_TEXT, OFFER_SLOTS, .value = "SLOT", .text = "only for this slot"},
	{"label", 'l', FLAG_TEXT, .value = "LABEL", .text = "only with this label"},
	{"group", 'g', FLAG_TEXT, OFFER_GROUPS, .value = "GROUP", .text = "only of this group"},
	{"search", '/', FLAG_TEXT, .value = "TEXT",
		.text = "only with all these words, or words that begin so, in id, title, labels, queue, error or note; newest first"},
	{"limit", 'n', FLAG_NUMBER, .value = "N",
		.text = "at most so many (default 100 for tables and JSON, else all; 0: all)", .least = 0,
		.most = LIMIT_MAX},
	{0},
};

/* ---- what a row shows ---------------------------------------------------------------------------------------- */

static struct span now_of(yyjson_val *task)
{
	return field_text(field_get(task, "why"), "text");
}

/* ---- one line per task: elsewhere, and with -o wide ---------------------------------------------------------- */

/* Why it is where it is, where that says more than its state. */
static struct span reason_beside(struct cli *cli, yyjson_val *task)
{
	struct span reason = field_text(task, "reason"), state = field_text(task, "state");
	struct span code = field_text(field_get(task, "error"), "code");
	bool says_more = reason.len > 0 && !view_state_is_final(state) && !span_equal(reason, state);

	(void)cli;
	if (code.len > 0 && (span_equal(state, SPAN("failed")) || span_equal(state, SPAN("blocked"))))
		return code;
	return says_more ? reason : SPAN("-");
}

static struct span state_of(struct cli *cli, yyjson_val *task)
{
	(void)cli;
	return field_bool(task, "stopping") ? SPAN("stopping") : field_text(task, "state");
}

static struct span now_or_dash(struct cli *cli, yyjson_val *task)
{
	(void)cli;
	return view_or_dash(now_of(task));
}

static const struct column flat_columns[] = {
	{"ID", "id", .paint = PAINT_BOLD},
	{"STATE", .make = state_of, .kind = COLUMN_STATE},
	{"QUEUE", "queue", .shrinks = true, .rank = 2},
	{"PRI", "priority", COLUMN_NUMBER, .right = true, .rank = 4},
	{"AGE", "createdAt", COLUMN_AGE, .right = true, .rank = 3},
	{"TRY", "attempt", COLUMN_NUMBER, .right = true, .rank = 5},
	{"WORKER", "workerId", COLUMN_DASH, .shrinks = true, .rank = 1},
	{"WHY", .make = reason_beside, .shrinks = true, .rank = 1},
	{"TITLE", "title", .shrinks = true},
	{"NOW", .make = now_or_dash, .shrinks = true, .rank = 6},
	{"OWNER", "owner", .shrinks = true, .rank = 7}, /* from here on with -o wide */
	{"EXECUTOR", "executor", .shrinks = true, .rank = 8},
	{"ERROR", "error.code", .paint = PAINT_RED, .shrinks = true, .rank = 9},
};

enum {
	FLAT_NARROW = 10,
	FLAT_WIDE = sizeof flat_columns / sizeof *flat_columns,
};

/* ---- for people ------------------------------------------------------------------------------------------------ */

enum {
	WIDTH_LEAST = 60,
	WIDTH_MOST = 200,
	WIDTH_ONE_LINE = 72, /* less: the sentence stands below each row */
	WIDTH_BESIDE = 110,  /* less: below those that need somebody */
};

enum people_column { P_STATE, P_ID, P_TASK, P_NOW, P_TRY, P_WORKER, P_QUEUE, P_AGE, P_COLUMNS };

static const struct column people_columns[P_COLUMNS] = {
	[P_STATE] = {.name = "STATE"},
	[P_ID] = {.name = "ID"},
	[P_TASK] = {"TASK", .shrinks = true, .least = 22, .most = 60, .flows = true},
	[P_NOW] = {"NOW", .shrinks = true, .most = 80, .from = WIDTH_ONE_LINE},
	[P_TRY] = {"TRY", .from = WIDTH_BESIDE},
	[P_WORKER] = {"WORKER", .from = WIDTH_BESIDE, .shrinks = true},
	[P_QUEUE] = {"QUEUE", .from = 140, .shrinks = true},
	[P_AGE] = {"AGE", .right = true},
};

static const struct task_group {
	const char *name, *one, *many; /* its head; and its part of the line below the list */
	bool since_change;             /* AGE counts from the last change */
} groups[STAND_GROUPS] = {
	[STAND_NEEDS] = {"Needs you", "needs you", "need you", true},
	[STAND_RUNNING] = {"Running", "running", "running", false},
	[STAND_WAITING] = {"Waiting", "waiting", "waiting", false},
	[STAND_ENDED] = {"Finished", "finished", "finished", true},
};

/* ---- the list -------------------------------------------------------------------------------------------------- */

struct task_rows {
	struct cli *cli;
	struct table table;
	struct term term;     /* as wide as the list may be */
	struct buf json;      /* elements */
	int64_t limit, count; /* limit 0: all */
	bool ended, more, people;
	const struct task_group *group;
	int64_t shown[STAND_GROUPS]; /* rows of each group */
	bool cut[STAND_GROUPS];      /* the group has more than that */
};

/* A task that is somebody's move, or ended badly. */
static enum paint alarm_of(yyjson_val *task)
{
	struct span state = field_text(task, "state");
	bool held = span_equal(state, SPAN("running")) || span_equal(state, SPAN("claimed"));

	if (span_equal(state, SPAN("failed")))
		return PAINT_RED;
	if (span_equal(state, SPAN("asking")) || span_equal(state, SPAN("review")) ||
		span_equal(state, SPAN("blocked")) || (held && field_get(field_get(task, "why"), "try")))
		return PAINT_YELLOW;
	return PAINT_NONE;
}

static void add_row(struct task_rows *listing, yyjson_val *task)
{
	struct cli *cli = listing->cli;
	struct table *table = &listing->table;
	struct state_mark mark = view_state_mark(cli, field_text(task, "state"));
	struct span now = now_of(task);
	size_t width = listing->term.width;
	enum paint alarm = alarm_of(task);
	bool under = width > 0 && (width < WIDTH_ONE_LINE || (width < WIDTH_BESIDE && alarm != PAINT_NONE));

	table_row(table);
	(mark.glyph ? table_glyph_cell : table_cell)(table, P_STATE, mark.text, mark.paint);
	table_cell(table, P_ID, field_text(task, "id"), PAINT_DIM);
	table_cell(table, P_TASK, field_text(task, "title"), PAINT_NONE);
	table_cell(table, P_NOW, under ? SPAN("") : now, alarm);
	table_cell(table, P_TRY, view_tries(cli, task), PAINT_NONE);
	table_cell(table, P_WORKER, field_text(task, "workerId"), PAINT_NONE);
	table_cell(table, P_QUEUE, field_text(task, "queue"), PAINT_NONE);
	table_cell(table, P_AGE,
		view_since(cli, field_int(task, listing->group->since_change ? "updatedAt" : "createdAt", 0)),
		PAINT_DIM);
	if (under)
		table_under(table, P_TASK, now, alarm);
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
		if (listing->people)
			add_row(listing, task);
		else
			view_add_row(cli, &listing->table, task);
		r = listing->table.fault;
		break;
	}
	listing->count++;
	if (listing->group)
		listing->shown[listing->group - groups]++;
	return r;
}

/* The list has the unfinished ones first: without --all the first ended one is its end. */
static int take_page(struct task_rows *listing, yyjson_val *page)
{
	struct cli *cli = listing->cli;
	bool all = listing->group || args_has(&cli->args, "all") || args_has(&cli->args, "state");
	size_t at, count;
	yyjson_val *task;
	int r = 0;

	yyjson_arr_foreach(page, at, count, task)
	{
		if (!all && view_state_is_final(field_text(task, "state"))) {
			listing->ended = true;
			return 0;
		}
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
	if (value && value[0])
		buf_printf(query, "%s=%.*s&", name, SPAN_ARGS(cli_encode(cli, span_of(value))));
}

/* The states that were asked for, as the server calls them; "" for any. */
static const char *states_wanted(struct cli *cli)
{
	struct args_names walk = {0};
	const char *states = "";
	struct span name;

	while (args_each_name(&cli->args, "state", &walk, &name)) {
		if (span_equal(name, SPAN("parked")))
			name = SPAN("pending");
		states = cli_text(cli, "%s%s%.*s", states, states[0] ? "," : "", SPAN_ARGS(name));
	}
	return states;
}

/* Of those, the states of this group. */
static const char *states_of_group(struct cli *cli, size_t group, const char *wanted)
{
	const char *states = "";

	if (!wanted[0])
		return stand_states[group];
	for (const char *word = stand_states[group]; *word;
		word += strcspn(word, ",") + (word[strcspn(word, ",")] == ',')) {
		size_t len = strcspn(word, ",");
		if (stand_is_listed(wanted, word, len))
			states = cli_text(cli, "%s%s%.*s", states, states[0] ? "," : "", (int)len, word);
	}
	return states;
}

static struct span first_query(struct task_rows *listing, const char *states)
{
	struct cli *cli = listing->cli;
	const struct args *args = &cli->args;
	cleanup(buf_done) struct buf query = {0};
	int64_t left = listing->limit > 0 ? listing->limit - listing->count : PAGE_MAX;

	buf_init(&query, 64 << 10);
	put_filter(cli, &query, "state", states);
	put_filter(cli, &query, "queue", args_text(args, "queue"));
	put_filter(cli, &query, "owner", args_text(args, "owner"));
	put_filter(cli, &query, "label", args_text(args, "label"));
	put_filter(cli, &query, "group", args_text(args, "group"));
	put_filter(cli, &query, "q", args_text(args, "search"));
	if (cli->output != OUTPUT_ID)
		put_filter(cli, &query, "include", "why");
	/* one more than is shown: so we know whether there is more */
	buf_printf(&query, "limit=%lld", (long long)(left < PAGE_MAX ? left + 1 : PAGE_MAX));
	return span_of(cli_text(cli, "%.*s", SPAN_ARGS(cli_span(cli, &query))));
}

static int fetch(struct task_rows *listing, const char *states)
{
	struct cli *cli = listing->cli;
	struct ask question = {.method = HTTP_METHOD_GET, .path = "/api/tasks"};
	int fault = 0;

	listing->ended = false;
	question.query = first_query(listing, states);
	while (fault == 0 && !listing->ended) {
		cleanup(reply_done) struct reply reply = server_need(cli, &question);
		fault = take_page(listing, reply.root);
		question.query = reply.next;
		listing->ended = listing->ended || reply.next.len == 0;
	}
	return fault < 0 ? cli_fail_fault(cli, fault) : 0;
}

/* ---- groups ---------------------------------------------------------------------------------------------------- */

/* Has the caller asked for some of the tasks only? The queue does not count: the counts know it. */
static bool is_filtered(const struct cli *cli)
{
	const struct args *args = &cli->args;

	return args_has(args, "state") || args_has(args, "owner") || args_has(args, "label") ||
		args_has(args, "group") || args_has(args, "search");
}

/* The rows of a group, below its head. */
static int fetch_group(struct task_rows *listing, size_t index, const char *states, int64_t known)
{
	struct cli *cli = listing->cli;
	struct table *table = &listing->table;
	size_t head = table->row_count;

	listing->group = &groups[index];
	listing->more = false;
	table_group(table, SPAN(" "));
	int r = fetch(listing, states);
	listing->cut[index] = listing->more;
	if (r != 0 || table->fault < 0)
		return r;
	if (listing->shown[index] == 0) {
		table->row_count = head;
		return 0;
	}
	const char *text = known > listing->shown[index] && !is_filtered(cli)
		? cli_text(cli, "%s %lld", groups[index].name, (long long)known)
		: cli_text(cli, "%s %lld%s", groups[index].name, (long long)listing->shown[index],
			  listing->more ? "+" : "");
	table->extras[head].head = span_of(text);
	return 0;
}

/* What there is, on one line: "2 need you · 3 waiting". */
static const char *sum_up(
	const struct task_rows *listing, const int64_t counts[STAND_GROUPS], const char *failed)
{
	struct cli *cli = listing->cli;
	const char *between = cli->term.glyphs ? " · " : " | ", *text = "";

	for (size_t i = 0; i < STAND_GROUPS; i++) {
		if (counts[i] > 0)
			text = cli_text(cli, "%s%s%lld %s", text, text[0] ? between : "",
				(long long)counts[i], counts[i] == 1 ? groups[i].one : groups[i].many);
	}
	return failed[0] ? cli_text(cli, "%s%s%s", text, text[0] ? between : "", failed) : text;
}

static void say_nothing(struct cli *cli, const int64_t counts[STAND_GROUPS], bool any_ended)
{
	int64_t hidden = counts[0] + counts[1] + counts[2];

	if (is_filtered(cli) || args_has(&cli->args, "queue")) {
		if (hidden > 0)
			cli_say(cli, "No task matches. %lld %s hidden by the filter.", (long long)hidden,
				hidden == 1 ? "is" : "are");
		else
			cli_say(cli, "No task matches.");
	} else if (any_ended) {
		cli_say(cli, "No open tasks; stint ls --all also lists those that have ended.");
	} else {
		cli_say(cli, "No tasks yet.");
		cli_hint(cli, "stint run -- echo hello");
	}
}

static void say_sum(struct task_rows *listing, const int64_t counts[STAND_GROUPS])
{
	struct cli *cli = listing->cli;
	bool any_ended = false, narrowed = is_filtered(cli) || args_has(&cli->args, "queue");
	const char *failed =
		narrowed || args_has(&cli->args, "all") ? "" : stand_failed_today(cli, &any_ended);
	int64_t open = counts[0] + counts[1] + counts[2],
		hidden = open + listing->shown[STAND_ENDED] - listing->count;

	if (listing->count == 0) {
		say_nothing(cli, counts, any_ended);
		return;
	}
	if (!is_filtered(cli))
		cli_say(cli, "%s", sum_up(listing, counts, failed));
	for (size_t i = 0; i < STAND_GROUPS; i++) {
		if (!listing->cut[i])
			continue;
		if (is_filtered(cli) || hidden <= 0 || i == STAND_ENDED)
			cli_say(cli, "There are more: stint ls --limit 0 lists all of them.");
		else
			cli_say(cli, "%lld more: stint ls --limit 0 lists all of them.", (long long)hidden);
		break;
	}
}

static bool is_state(const char *word, size_t len)
{
	for (size_t i = 0; i < STAND_GROUPS; i++) {
		if (stand_is_listed(stand_states[i], word, len))
			return true;
	}
	return false;
}

static int show_groups(struct task_rows *listing)
{
	struct cli *cli = listing->cli;
	const char *wanted = states_wanted(cli);
	bool all = args_has(&cli->args, "all") || wanted[0];
	int64_t counts[STAND_GROUPS];
	int r = 0;

	for (const char *word = wanted; *word;
		word += strcspn(word, ",") + (word[strcspn(word, ",")] == ',')) {
		if (!is_state(word, strcspn(word, ",")))
			return fetch(listing, wanted); /* the server says which states there are */
	}
	if (!stand_count(cli, args_text(&cli->args, "queue"), counts))
		memset(counts, 0, sizeof counts);
	for (size_t i = 0; r == 0 && i < (all ? STAND_GROUPS : STAND_ENDED); i++) {
		const char *states = states_of_group(cli, i, wanted);
		bool full = listing->limit > 0 && listing->count == listing->limit;
		if (full)
			listing->cut[i] = counts[i] > 0;
		else if (states[0])
			r = fetch_group(listing, i, states, counts[i]);
	}
	if (r == 0 && listing->count > 0)
		r = table_put(&cli->out, &listing->table, &listing->term);
	if (r < 0)
		return cli_fail_fault(cli, r);
	if (r == 0)
		say_sum(listing, counts);
	return r;
}

/* ---- the other forms ------------------------------------------------------------------------------------------- */

static int show_flat(struct task_rows *listing)
{
	struct cli *cli = listing->cli;
	int r = fetch(listing, states_wanted(cli));

	if (r != 0)
		return r;
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

/* What was left out of a list without groups. */
static void say_rest(const struct task_rows *listing)
{
	struct cli *cli = listing->cli;

	if (cli->output != OUTPUT_AUTO && cli->output != OUTPUT_WIDE)
		return;
	if (listing->count == 0)
		cli_say(cli,
			args_has(&cli->args, "all")
				? "No tasks."
				: "No open tasks; stint ls --all also lists those that have ended.");
	if (listing->more)
		cli_say(cli, "There are more: stint ls --limit 0 lists all of them.");
}

/* A person reads a screen; a pipe gets everything. JSON says itself whether there is more. */
static int64_t limit_of(const struct cli *cli, bool people)
{
	bool cuts = people || cli->output == OUTPUT_WIDE || cli->output == OUTPUT_JSON;

	return args_number(&cli->args, "limit", cuts ? LIMIT_DEFAULT : 0);
}

static int run(struct cli *cli)
{
	bool people = cli->output == OUTPUT_TABLE || (cli->output == OUTPUT_AUTO && cli->term.tty);
	struct task_rows listing = {
		.cli = cli, .people = people, .limit = limit_of(cli, people), .term = cli->term};
	size_t width = cli->term.width;

	listing.term.width = width == 0 ? 0
		: width < WIDTH_LEAST   ? WIDTH_LEAST
		: width > WIDTH_MOST    ? WIDTH_MOST
					: width;
	if (people)
		table_init(&listing.table, people_columns, P_COLUMNS, cli->term.utf8);
	else
		table_init(&listing.table, flat_columns, cli->output == OUTPUT_WIDE ? FLAT_WIDE : FLAT_NARROW,
			cli->term.utf8);
	buf_init(&listing.json, JSON_BYTES_MAX);
	int r = people ? show_groups(&listing) : show_flat(&listing);
	if (r == 0 && !people)
		say_rest(&listing);
	table_done(&listing.table);
	buf_done(&listing.json);
	return r;
}

const struct verb verb_ls = {
	.name = "ls",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.pages = true,
	.brief = "list tasks",
	.text = "Lists the tasks that have not ended: what needs you, what runs, what waits; with --all or --state, also "
		"ended tasks, the newest first. NOW says where a task stands, as stint why does. "
		"On a terminal it is a table; elsewhere one line per task, all of them in the order in which they are claimed, with "
		"tabs between: id, state, queue, priority, age, attempts, worker, reason, title, now.",
	.flags = flags,
	.examples = "stint ls\n"
		    "stint ls --queue ci --state ready,running\n"
		    "stint ls --state failed -o id | xargs -r stint retry\n"
		    "stint ls --all --json=id,state,title\n",
	.run = run,
};
