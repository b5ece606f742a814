/*
 * stint schedule: tasks at planned times. Times are shown on the clock of the schedule's own zone, because its line is written
 * in it.
 */
#include <stdio.h>
#include <string.h>

#include "base/take.h"
#include "base/zone.h"
#include "cli/frame/when.h"
#include "cli/verb/new_task.h"
#include "cli/verb/task_view.h"

enum {
	MARKS_SHOWN = 15,
	NEXT_DEFAULT = 5,
	DAY_S = 86400,
};

/* ---- add ---------------------------------------------------------------------------------------------------- */

// clang-format off
static const struct flag add_flags[] = {
	{"cron", 'c', FLAG_TEXT, .value = "LINE",
		.text = "minute hour day month weekday, or six fields with the second first, or @daily and its kin"},
	{"every", 'e', FLAG_TEXT, .value = "TIME", .text = "one task each time that this much time has passed, from now on: 30s, 1h30m"},
	{"at", 0, FLAG_MOMENT, .value = "TIME", .text = "once: 30m from now, or 2026-12-31T18:00"},
	{"tz", 0, FLAG_TEXT, .value = "ZONE", .text = "the time zone of --cron, like Europe/Berlin (default UTC)"},
	{"jitter", 0, FLAG_DURATION, .value = "TIME", .text = "each task begins up to that much later"},
	{"catch-up", 0, FLAG_CHOICE, .value = "one|skip|all",
		.text = "what is made of times that the server missed: the newest, none, or the newest hundred (default one)"},
	{"overlap", 0, FLAG_CHOICE, .value = "skip|allow|queue|cancel",
		.text = "while a task of it is open: skip the next, make it, make it wait, or cancel the open one (default skip)"},
	{"paused", 0, FLAG_SWITCH, .text = "make nothing before stint schedule resume"},
	{"queue", 'Q', FLAG_TEXT, OFFER_QUEUES, .value = "NAME",
		.text = "the queue of the tasks (default \"default\"; of a command \"shell\")", .member = "queue"},
	{"executor", 'x', FLAG_TEXT, .value = "NAME",
		.text = "the executor that runs them (default: the worker chooses; of a command \"shell\")", .member = "executor"},
	{"agent", 0, FLAG_TEXT, .value = "NAME",
		.text = "the agent that does them: see stint agent ls. With --cwd in a git repository each gets a work tree of its own"},
	{"cwd", 0, FLAG_TEXT, OFFER_FILES, .value = "DIR",
		.text = "the directory to work in; a relative path starts here (default of a command: here)"},
	{"no-cwd", 0, FLAG_SWITCH, .text = "run the command in an empty directory"},
	{"env", 0, FLAG_TEXT, .many = true, .value = "NAME[=VALUE]",
		.text = "a variable for the command; without =VALUE as it is here. Not for secrets: who may read the task reads it"},
	{"worktree", 0, FLAG_SWITCH, .text = "in a git work tree of its own, on a branch of its own", .member = "worktree"},
	{"file", 'f', FLAG_TEXT, OFFER_FILES, .value = "FILE", .text = "instructions from a file; - is standard input"},
	{"payload", 0, FLAG_JSON, OFFER_FILES, .value = "JSON",
		.text = "data for the worker: JSON, @FILE or -", .member = "payload"},
	{"priority", 'p', FLAG_PRIORITY, .value = "N",
		.text = "higher first; or urgent, high, normal, low, P0 to P3", .member = "priority"},
	{"start-by", 0, FLAG_DURATION, .value = "TIME",
		.text = "a task fails if no worker has started it so long after its planned time", .member = "startBy"},
	{"finish-by", 0, FLAG_DURATION, .value = "TIME",
		.text = "a task fails if it is not done so long after its planned time", .member = "finishBy"},
	{"timeout", 0, FLAG_DURATION, .value = "TIME",
		.text = "time limit of one attempt (default 30m)", .member = "timeoutMs"},
	{"max-attempts", 0, FLAG_NUMBER, .value = "N",
		.text = "failures before a task is given up (default 3)", .least = 1, .most = 1000000, .member = "maxAttempts"},
	{"needs", 0, FLAG_NAMES, .many = true, .value = "CAP,…",
		.text = "capabilities that a worker must have", .member = "requires"},
	{"isolation", 0, FLAG_TEXT, OFFER_LEVELS, .value = "LEVEL",
		.text = "at least that: process, sandbox, container or vm; see docs/isolation.md", .member = "isolationLevel"},
	{"owner", 0, FLAG_TEXT, OFFER_SLOTS, .value = "SLOT", .text = "only for the worker in this slot", .member = "owner"},
	{"label", 'l', FLAG_NAMES, .many = true, .value = "LABEL,…", .text = "labels to find them by", .member = "labels"},
	{"unique", 'u', FLAG_TEXT, .value = "KEY",
		.text = "at most one unfinished task of this key: while there is one, the next is skipped", .member = "uniqueKey"},
	{"on-conflict", 0, FLAG_CHOICE, .value = "existing|reject|replace",
		.text = "while another task holds the unique key: skip (existing, reject), or take its place", .member = "onConflict"},
	{"concurrency-key", 0, FLAG_TEXT, .value = "KEY",
		.text = "what the limits of the queue count its tasks under: a customer, a repository; see stint queue limit", .member = "concurrencyKey"},
	{"gate", 0, FLAG_NAMES, .many = true, .value = "NAME,…",
		.text = "a task is done only when somebody has approved it at each gate", .member = "gates"},
	{"group", 'g', FLAG_TEXT, OFFER_GROUPS, .value = "GROUP",
		.text = "its tasks are members of this group; once it is closed they are skipped", .member = "group"},
	{"unique-for", 0, FLAG_DURATION, .value = "TIME",
		.text = "each task holds the unique key so long from its creation, even if it is done before", .member = "uniqueForMs"},
	{0},
};
// clang-format on

static void put_plan(struct cli *cli, struct json_object *body)
{
	const struct args *args = &cli->args;

	cli_member_text(body, "cron", args_text(args, "cron"));
	cli_member_text(body, "every", args_text(args, "every"));
	if (args_has(args, "at"))
		json_member_int(body, "at", args_number(args, "at", 0));
	cli_member_text(body, "tz", args_text(args, "tz"));
	if (args_has(args, "jitter"))
		json_member_int(body, "jitterMs", args_number(args, "jitter", 0));
	cli_member_text(body, "catchUp", args_text(args, "catch-up"));
	cli_member_text(body, "overlap", args_text(args, "overlap"));
	if (args_has(args, "paused"))
		json_member_bool(body, "paused", true);
}

/* One sentence: when it comes next, or why it does not. */
static const char *sentence_of(struct cli *cli, yyjson_val *schedule)
{
	int64_t next_ms = field_int(schedule, "next", 0);
	const char *when = field_cstr(cli, schedule, "when");

	if (field_text(schedule, "problem").len > 0)
		return cli_text(cli, "%s. %s", when, field_cstr(cli, schedule, "problem"));
	if (field_bool(schedule, "paused"))
		return cli_text(cli, "%s, paused", when);
	if (next_ms == 0)
		return cli_text(cli, "%s; nothing is planned any more", when);
	return cli_text(cli, "%s; next in %.*s", when, SPAN_ARGS(view_duration(cli, next_ms - cli->now_ms)));
}

static int put_one(struct cli *cli, yyjson_val *schedule)
{
	const char *id = field_cstr(cli, schedule, "id");

	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "schedule", schedule);
	cli_put_change(cli, 1, id, cli_text(cli, "%s: %s", id, sentence_of(cli, schedule)));
	return 0;
}

static int run_add(struct cli *cli)
{
	const struct args *args = &cli->args;
	struct defaults defaults = defaults_read(cli);
	const char *title = args->before_dashes > 1 ? args_plain(args, 1) : NULL;
	const char *file = args_text(args, "file");
	struct new_task entry = {.title = span_of(title),
		.defaults = &defaults,
		.words = new_task_words(cli, args->before_dashes)};
	struct json_object *body, task;

	if (args_has(args, "cron") + args_has(args, "every") + args_has(args, "at") != 1)
		return cli_fail(cli, EXIT_USAGE, "usage",
			"stint schedule add nightly --cron @daily -- make test",
			"say when: one of --cron, --every and --at");
	if (args->before_dashes < 1)
		return cli_fail(cli, EXIT_USAGE, "usage", "stint help schedule", "the schedule needs a name");
	if (entry.words && args_has(args, "payload"))
		return cli_fail(cli, EXIT_USAGE, "usage", "stint help schedule",
			"a command is the payload of its task: leave out --payload, or the command");
	if (file)
		entry.text = cli_read_input(cli, file);
	if (!title && !entry.words)
		entry.title = span_of(args_plain(args, 0));
	body = cli_body(cli);
	json_member_string(body, "id", span_of(args_plain(args, 0)));
	put_plan(cli, body);
	if (json_put_key(body, "task")) {
		json_begin(&task, body->buf);
		new_task_put_members(cli, &task, &entry);
		json_note(body, json_end(&task));
	}
	cleanup(reply_done) struct reply reply = server_post(cli, "/api/schedules", NULL, cli_body_end(cli));
	return put_one(cli, reply.root);
}

const struct verb verb_schedule_add = {
	.name = "schedule add",
	.arguments = "ID [TITLE] [-- COMMAND...]",
	.most = 1000,
	.gives = GIVES_JSON,
	.brief = "make a task at planned times",
	.text = "Makes a schedule: a task at each of its planned times, by cron line, after a length of time, or once. The task is "
		"described as for stint add. A planned time makes at most one task, whatever happens to the server. Times that the server "
		"was away for are caught up as --catch-up says; three failures or skips in a row write the event schedule.failing. In a gap "
		"of the clock a fixed hour fires at its end, in a repeated hour once; * or a step in the hour follows real time.",
	.flags = add_flags,
	.examples =
		"stint schedule add nightly --cron '30 2 * * *' --tz Europe/Berlin -- make test\n"
		"stint schedule add poll \"look for new mail\" --every 30s --queue mail\n"
		"stint schedule add nightly-acme --cron @daily --concurrency-key acme -- ./nightly.sh acme   # one at a time of acme: stint queue limit shell --per-key 1\n"
		"stint schedule add report \"weekly report\" --cron '0 9 * * MON' --overlap queue --finish-by 2h\n",
	.run = run_add,
};

/* ---- times on the clock of a zone ----------------------------------------------------------------------------- */

/* "Tue 13:30" within a week, else "1 Dec 04:00". Without the zone's file the time is UTC's. */
static const char *clock_in(struct cli *cli, const struct zone *zone, int64_t ms)
{
	static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
	static const char *const months[] = {
		"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	int64_t s = ms / 1000, local = s + zone->shifts[zone_find(zone, s)].offset_s, year;
	int month, day, second = (int)(local % DAY_S);

	if (ms - cli->now_ms < 7 * INT64_C(86400000) && ms >= cli->now_ms)
		return cli_text(cli, "%s %02d:%02d", days[weekday_of_days(local / DAY_S)], second / 3600,
			second / 60 % 60);
	date_of_days(local / DAY_S, &year, &month, &day);
	return cli_text(cli, "%d %s %02d:%02d", day, months[month - 1], second / 3600, second / 60 % 60);
}

static const char *time_of(struct cli *cli, yyjson_val *schedule, int64_t ms)
{
	struct zone *zone = NULL;
	const char *text;

	if (zone_load(NULL, field_text(schedule, "tz"), &zone) < 0)
		zone = NULL;
	text = clock_in(cli, zone ? zone : &zone_utc, ms);
	zone_free(zone);
	return text;
}

/* ---- ls, show --------------------------------------------------------------------------------------------------- */

static const char *mark_of(const struct cli *cli, struct span outcome)
{
	static const struct {
		const char *outcome, *glyph, *ascii;
	} marks[] = {{"done", "✓", "+"}, {"failed", "✗", "x"}, {"open", "●", "*"}, {"cancelled", "⊘", "/"},
		{"skipped", "–", "-"}};

	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		if (span_equal(span_of(marks[i].outcome), outcome))
			return cli->term.glyphs ? marks[i].glyph : marks[i].ascii;
	}
	return "?";
}

static struct span last_marks(struct cli *cli, yyjson_val *schedule)
{
	yyjson_val *history = field_get(schedule, "history"), *occurrence;
	size_t at, count;
	const char *text = "";

	yyjson_arr_foreach(history, at, count, occurrence)
	{
		if (at + MARKS_SHOWN >= count)
			text = cli_text(cli, "%s%s", text, mark_of(cli, field_text(occurrence, "outcome")));
	}
	return span_of(text);
}

static struct span next_of(struct cli *cli, yyjson_val *schedule)
{
	int64_t next_ms = field_int(schedule, "next", 0);

	if (field_bool(schedule, "paused"))
		return SPAN("paused");
	if (next_ms == 0)
		return SPAN("none");
	return span_of(cli_text(cli, "%s, in %.*s", time_of(cli, schedule, next_ms),
		SPAN_ARGS(view_duration(cli, next_ms - cli->now_ms))));
}

static struct span last_or_dash(struct cli *cli, yyjson_val *schedule)
{
	return view_or_dash(last_marks(cli, schedule));
}

static struct span next_ms_of(struct cli *cli, yyjson_val *schedule)
{
	int64_t next_ms = field_int(schedule, "next", 0);

	return next_ms == 0 ? SPAN("-") : view_clock(cli, next_ms);
}

static struct span zone_of(struct cli *cli, yyjson_val *schedule)
{
	(void)cli;
	return field_text(schedule, "tz");
}

static const struct column people_columns[] = {
	{"SCHEDULE", "id", .paint = PAINT_BOLD, .shrinks = true},
	{"WHEN", "when", .shrinks = true},
	{"LAST 15", .make = last_marks},
	{"NEXT", .make = next_of},
};

static const struct column columns[] = {
	{"SCHEDULE", "id", .paint = PAINT_BOLD, .shrinks = true},
	{"WHEN", "when", .shrinks = true},
	{"ZONE", .make = zone_of},
	{"LAST 15", .make = last_or_dash},
	{"NEXT", .make = next_ms_of},
};

static int run_ls(struct cli *cli)
{
	cleanup(reply_done) struct reply reply = server_get(cli, "/api/schedules", NULL);
	bool people = cli->term.tty && cli->output != OUTPUT_WIDE;
	struct table table;
	size_t at, count;
	yyjson_val *schedule;

	if (yyjson_arr_size(reply.root) == 0 && cli->term.tty && cli->output == OUTPUT_AUTO) {
		cli_put_line(cli, "No schedules.");
		cli_hint(cli, "stint schedule add nightly --cron @daily -- make test");
		return 0;
	}
	if (people)
		table_init(&table, people_columns, sizeof people_columns / sizeof *people_columns,
			cli->term.utf8);
	else
		table_init(&table, columns, sizeof columns / sizeof *columns, cli->term.utf8);
	yyjson_arr_foreach(reply.root, at, count, schedule)
	{
		view_add_row(cli, &table, schedule);
		if (people && field_text(schedule, "problem").len > 0)
			table_under(&table, 1, field_text(schedule, "problem"), PAINT_YELLOW);
		else if (people && field_bool(schedule, "failing"))
			table_under(&table, 1,
				span_of(cli_text(cli, "failed or was skipped %lld times in a row",
					(long long)field_int(schedule, "failuresInARow", 0))),
				PAINT_RED);
	}
	int r = view_put_rows(cli, &table, "schedules", reply.root, "id");
	table_done(&table);
	return r;
}

const struct verb verb_schedule_ls = {
	.name = "schedule ls",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "the schedules",
	.text = "Lists the schedules: when, how the last 15 occurrences went (done, failed, open, cancelled, skipped), and when the next one "
		"is planned, on the clock of the schedule's zone. Elsewhere than on a terminal: id, when, zone, last 15, next, with tabs "
		"between.",
	.examples = "stint schedule ls\n",
	.run = run_ls,
};

static void put_occurrence(struct cli *cli, yyjson_val *schedule, yyjson_val *occurrence)
{
	int64_t at_ms = field_int(occurrence, "at", field_int(occurrence, "to", 0));
	struct span outcome = field_text(occurrence, "outcome"), task = field_text(occurrence, "task");
	struct span reason = field_text(occurrence, "reason");
	int64_t times = field_int(occurrence, "count", 1);

	cli_put_line(cli, "  %s %-12s %.*s%s%.*s%s", mark_of(cli, outcome), time_of(cli, schedule, at_ms),
		SPAN_ARGS(outcome), task.len + reason.len > 0 ? "  " : "",
		SPAN_ARGS(task.len > 0 ? task : reason),
		times > 1 ? cli_text(cli, ", %lld times", (long long)times) : "");
}

static int run_show(struct cli *cli)
{
	cleanup(reply_done) struct reply reply =
		server_get(cli, "/api/schedules/*", args_plain(&cli->args, 0));
	yyjson_val *history = field_get(reply.root, "history"), *occurrence;
	size_t at, count;

	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "schedule", reply.root);
	cli_put_sentence(cli, 2, "%s: %s", field_cstr(cli, reply.root, "id"), sentence_of(cli, reply.root));
	cli_put_line(cli, "Zone %s; catch-up %s, overlap %s; %lld made, %lld skipped, %lld open",
		field_cstr(cli, reply.root, "tz"), field_cstr(cli, reply.root, "catchUp"),
		field_cstr(cli, reply.root, "overlap"), (long long)field_int(reply.root, "made", 0),
		(long long)field_int(reply.root, "skipped", 0),
		(long long)field_int(reply.root, "openTasks", 0));
	cli_put_line(cli, "Task %.*s", SPAN_ARGS(view_any(cli, field_get(reply.root, "task"))));
	if (field_bool(reply.root, "failing"))
		cli_put_line(cli, "Failing: %lld failures or skips in a row",
			(long long)field_int(reply.root, "failuresInARow", 0));
	yyjson_arr_foreach(history, at, count, occurrence) put_occurrence(cli, reply.root, occurrence);
	return 0;
}

const struct verb verb_schedule_show = {
	.name = "schedule show",
	.arguments = "ID",
	.offer = OFFER_SCHEDULES,
	.gives = GIVES_JSON,
	.brief = "one of them, and how it went",
	.text = "Shows one schedule: when it comes next, or why it is silent; the task that it makes; and its last occurrences, each with "
		"its task or why it was skipped.",
	.examples = "stint schedule show nightly\n",
	.run = run_show,
};

static const struct flag next_flags[] = {
	{"count", 'n', FLAG_NUMBER, .value = "N", .text = "how many (default 5)", .least = 1, .most = 100},
	{0},
};

static int run_next(struct cli *cli)
{
	const char *id = args_plain(&cli->args, 0);
	struct ask ask = {.method = HTTP_METHOD_GET,
		.path = "/api/schedules/*/next",
		.names = {id},
		.query = span_of(
			cli_text(cli, "n=%lld", (long long)args_number(&cli->args, "count", NEXT_DEFAULT)))};
	cleanup(reply_done) struct reply reply = server_need(cli, &ask);
	yyjson_val *list = field_get(reply.root, "next"), *moment;
	size_t at, count;

	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "schedule", reply.root);
	if (yyjson_arr_size(list) == 0)
		cli_put_line(cli, "%s: nothing is planned any more", id);
	const char *text = "";
	yyjson_arr_foreach(list, at, count, moment) text = cli_text(cli, "%s%s%s", text,
		at == 0                    ? ""
			: cli->term.glyphs ? " · "
					   : " | ",
		time_of(cli, reply.root, yyjson_get_sint(moment)));
	if (text[0])
		cli_put_sentence(cli, 0, "%s  %s%s", text, field_cstr(cli, reply.root, "tz"),
			field_bool(reply.root, "paused") ? " (paused)" : "");
	return 0;
}

const struct verb verb_schedule_next = {
	.name = "schedule next",
	.arguments = "ID",
	.offer = OFFER_SCHEDULES,
	.gives = GIVES_JSON,
	.brief = "its next planned times",
	.text = "Prints the next planned times of a schedule, on the clock of its zone.",
	.flags = next_flags,
	.examples = "stint schedule next nightly -n 3\n",
	.run = run_next,
};

/* ---- run, pause, resume, rm ------------------------------------------------------------------------------------ */

static const struct flag run_flags[] = {
	{"at", 0, FLAG_MOMENT, .value = "TIME",
		.text = "for this planned time, which was skipped: see stint schedule show"},
	{0},
};

static int run_run(struct cli *cli)
{
	struct json_object *body = cli_body(cli);

	if (args_has(&cli->args, "at"))
		json_member_int(body, "at", args_number(&cli->args, "at", 0));
	cleanup(reply_done) struct reply reply =
		server_post(cli, "/api/schedules/*/run", args_plain(&cli->args, 0), cli_body_end(cli));
	return new_task_put(cli, reply.root);
}

const struct verb verb_schedule_run = {
	.name = "schedule run",
	.arguments = "ID",
	.offer = OFFER_SCHEDULES,
	.gives = GIVES_JSON,
	.brief = "make its task now",
	.text = "Makes the task of a schedule now, beside the planned ones, also while it is paused. With --at it is made for a planned time "
		"that was skipped; a planned time makes at most one task.",
	.flags = run_flags,
	.examples = "stint schedule run nightly\n",
	.run = run_run,
};

#define CHANGES .arguments = "ID...", .most = 100, .offer = OFFER_SCHEDULES, .gives = GIVES_JSON

const struct verb verb_schedule_pause = {
	.name = "schedule pause",
	CHANGES,
	.brief = "make nothing for a while",
	.text = "The schedule makes no tasks until it is resumed. The tasks that it has made go on.",
	.examples = "stint schedule pause nightly\n",
	.change = &(const struct change){"schedule", "/api/schedules/*/pause",
		.done = "is paused: it makes no tasks"},
};

const struct verb verb_schedule_resume = {
	.name = "schedule resume",
	CHANGES,
	.brief = "go on from now",
	.text = "The schedule goes on from now. What was planned during the pause is not caught up.",
	.examples = "stint schedule resume nightly\n",
	.change = &(const struct change){"schedule", "/api/schedules/*/resume", .done = "goes on from now"},
};

const struct verb verb_schedule_rm = {
	.name = "schedule rm",
	CHANGES,
	.brief = "remove it",
	.text = "Removes a schedule. Tasks of it that still wait for the one before are cancelled; all others go on.",
	.examples = "stint schedule rm nightly\n",
	.change = &(const struct change){"schedule", "/api/schedules/*", .deletes = true,
		.done = "is removed; its tasks go on"},
};
