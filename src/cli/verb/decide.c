/*
 * stint inbox, answer, approve, deny: what waits for a person, and the person's word. To a task that asks, an approval is
 * the answer "yes" and a denial an answer that says no; the task goes on with either. To one that was reported for
 * review they are verdicts at its gates.
 */
#include <stdio.h>
#include <string.h>

#include "base/take.h"
#include "cli/frame/spawn.h"
#include "cli/frame/text.h"
#include "cli/frame/when.h"
#include "cli/verb/task_view.h"
#include "cli/verb/verbs.h"

/* ---- inbox ------------------------------------------------------------------------------------------------------ */

/* A verdict at a gate, or an answer to a question. */
static struct span waits_for(struct cli *cli, yyjson_val *approval)
{
	struct span gate = field_text(approval, "gate"), stage = field_text(approval, "stage");

	if (gate.len == 0)
		return span_of(view_question(cli, field_get(approval, "question")));
	return span_of(cli_text(
		cli, "gate %.*s%s%.*s", SPAN_ARGS(gate), stage.len > 0 ? ", stage " : "", SPAN_ARGS(stage)));
}

static const struct column columns[] = {
	{"ID", "task", .paint = PAINT_BOLD},
	{"AGE", "since", COLUMN_AGE, .right = true, .rank = 2},
	{"WAITS FOR", .make = waits_for, .paint = PAINT_YELLOW, .shrinks = true},
	{"TITLE", "title", .shrinks = true, .rank = 1},
};

static const struct list_view approvals = {
	.path = "/api/approvals",
	.key = "approvals",
	.id = "task",
	VIEW_COLUMNS(columns),
	.none = "Nothing needs you.",
};

static const struct column people_columns[] = {
	{.name = ""},
	{.name = "ID"},
	{"NEEDS", .shrinks = true, .least = 22},
	{"AGE", .right = true},
};

static void add_need(struct cli *cli, struct table *table, yyjson_val *task)
{
	struct state_mark mark = view_state_mark(cli, field_text(task, "state"));
	const char *sign = cli_text(cli, "%.*s", (int)strcspn(mark.text.data, " "), mark.text.data);

	table_row(table);
	table_cell(table, 0, span_of(sign), mark.paint);
	table_cell(table, 1, field_text(task, "id"), PAINT_DIM);
	table_cell(table, 2, field_text(field_get(task, "why"), "text"), PAINT_NONE);
	table_cell(table, 3, view_since(cli, field_int(task, "updatedAt", 0)), PAINT_DIM);
	table_under(table, 2, field_text(task, "title"), PAINT_DIM);
}

/* What needs a person, each with what it is about; also what is blocked. */
static int show_needs(struct cli *cli)
{
	const struct ask question = {.method = HTTP_METHOD_GET,
		.path = "/api/tasks",
		.query = SPAN("state=asking,review,blocked&include=why&limit=1000")};
	cleanup(reply_done) struct reply reply = server_need(cli, &question);
	size_t at, number = yyjson_arr_size(reply.root), count;
	struct table table;
	yyjson_val *task;

	if (number == 0) {
		cli_put(cli, "Nothing needs you.\n");
		return 0;
	}
	table_init(&table, people_columns, sizeof people_columns / sizeof *people_columns, cli->term.utf8);
	table.bare = true;
	yyjson_arr_foreach(reply.root, at, count, task) add_need(cli, &table, task);
	cli_put(cli, "%zu%s %s you.\n", number, reply.next.len > 0 ? " and more" : "",
		number == 1 ? "needs" : "need");
	int r = table_put(&cli->out, &table, &cli->term);
	table_done(&table);
	cli_hint(cli, field_cstr(cli, field_get(yyjson_arr_get_first(reply.root), "why"), "try"));
	return r < 0 ? cli_fail_fault(cli, r) : 0;
}

/* ---- inbox --follow ----------------------------------------------------------------------------------------------- */

static bool needs_somebody(yyjson_val *event)
{
	static const char *const types[] = {"task.asked", "gate.opened", "task.reviewed", "task.blocked"};
	struct span type = field_text(event, "type");

	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		if (span_equal(type, span_of(types[i])))
			return true;
	}
	return span_equal(type, SPAN("task.failed")) &&
		span_equal(field_text(field_get(event, "data"), "state"), SPAN("failed"));
}

/* One event may come behind another of the same turn: what the task needs now is asked for, and told once. */
struct news {
	struct cli *cli;
	char told[200]; /* what was told last */
};

/* Nothing that it makes stays: it goes on for days. */
static void tell_need(struct news *news, yyjson_val *event, yyjson_val *task)
{
	struct cli *cli = news->cli;
	yyjson_val *why = field_get(task, "why");
	struct span id = field_text(task, "id"), said = field_text(why, "text"),
		    help = field_text(why, "try");
	cleanup(buf_done) struct buf clock = {0}, text = {0}, clean = {0};
	char told[sizeof news->told];

	buf_init(&clock, 64);
	buf_init(&text, 1 << 20);
	buf_init(&clean, 1 << 20);
	struct span state = field_text(task, "state");
	snprintf(told, sizeof told, "%.*s %.*s %.*s", SPAN_ARGS(id), SPAN_ARGS(state), SPAN_ARGS(said));
	if (strcmp(news->told, told) == 0)
		return;
	strcpy(news->told, told);
	when_put_time(&clock, field_int(event, "time", cli->now_ms), cli->now_ms);
	buf_printf(&text, "%.*s is %.*s. %.*s", SPAN_ARGS(id), SPAN_ARGS(state), SPAN_ARGS(said));
	text_clean(&clean, cli_span(cli, &text), cli->term.utf8, false);
	size_t indent = text_width(cli_span(cli, &clock)) + 2;
	cli_put_painted(cli, PAINT_DIM, buf_span(&clock));
	cli_put(cli, "  ");
	text_wrap(&cli->out, cli_span(cli, &clean), cli->term.tty ? cli->term.width : 0, indent, indent);
	cli_put(cli, "\n");
	buf_clear(&text);
	buf_printf(&text, "%.*s", SPAN_ARGS(help));
	buf_put_byte(&text, 0);
	cli_hint(cli, help.len > 0 ? cli_span(cli, &text).data : NULL);
	if (cli->term.tty && buf_put_byte(&clean, 0) == 0)
		spawn_notice("stint needs you", clean.data);
}

static int on_news(void *context, yyjson_val *event)
{
	struct news *news = context;
	struct cli *cli = news->cli;
	cleanup(reply_done) struct reply reply = {0};

	if (!needs_somebody(event))
		return 0;
	if (cli->output == OUTPUT_JSONL) {
		cli_put_value(cli, event);
		cli_put(cli, "\n");
		return cli_flush(cli);
	}
	const struct ask question = {.method = HTTP_METHOD_GET,
		.path = "/api/tasks/*",
		.names = {field_cstr(cli, event, "task")},
		.query = SPAN("include=why"),
		.optional = true};
	if (server_ask(cli, &question, &reply) == 0)
		tell_need(news, event, reply.root);
	return cli_flush(cli);
}

static int on_quiet(void *context)
{
	(void)context;
	return cli_reader_is_gone() ? FOLLOW_DONE : 0;
}

static int begin_anew(void *context, struct span *ret_after)
{
	struct news *news = context;

	return server_newest_cursor(news->cli, ret_after);
}

static int follow_needs(struct cli *cli)
{
	struct news news = {.cli = cli};
	struct follow follow = {.each = on_news, .idle = on_quiet, .lost = begin_anew, .context = &news};

	int r = server_newest_cursor(cli, &follow.after);
	if (r == 0)
		r = server_follow(cli, &follow);
	return r == FOLLOW_DONE ? 0 : r;
}

static const struct flag inbox_flags[] = {
	{"follow", 'f', FLAG_SWITCH,
		.text = "a line, and a notice on the desktop, each time that something needs you; until a signal"},
	{0},
};

static int run_inbox(struct cli *cli)
{
	if (args_has(&cli->args, "follow"))
		return follow_needs(cli);
	bool people = cli->output == OUTPUT_TABLE || (cli->output == OUTPUT_AUTO && cli->term.tty);

	return people ? show_needs(cli) : view_run_list(cli);
}

const struct verb verb_inbox = {
	.name = "inbox",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "what waits for you",
	.text = "Lists what needs a person: questions of tasks, gates of tasks in review, and tasks that are blocked. Elsewhere than on a "
		"terminal, and with --json, questions and gates alone: what stint approve takes. With --follow: what comes from now on, tasks that "
		"have failed for good, too.",
	.flags = inbox_flags,
	.examples = "stint inbox\nstint inbox -o id\nstint inbox --follow\n",
	.list = &approvals,
	.run = run_inbox,
};

/* ---- the answer -------------------------------------------------------------------------------------------------- */

enum {
	SENTENCE_BYTES = 100, /* a longer command may be cut in the sentence about it */
};

/* A diff: what goes is red, what comes is green. */
static void put_diff(struct cli *cli, struct span diff)
{
	while (diff.len > 0) {
		const char *end = memchr(diff.data, '\n', diff.len);
		struct span line = {diff.data, end ? (size_t)(end - diff.data) : diff.len};
		enum paint paint = line.len > 0 && line.data[0] == '-' ? PAINT_RED
			: line.len > 0 && line.data[0] == '+'          ? PAINT_GREEN
								       : PAINT_NONE;
		cli_put_painted(cli, paint, line);
		cli_put(cli, "\n");
		diff = end ? (struct span){end + 1, diff.len - line.len - 1} : (struct span){0};
	}
}

/* A rule as the worker gave it: a text, or JSON. */
static const char *rule_text(struct cli *cli, yyjson_val *rule)
{
	cleanup(buf_done) struct buf text = {.max = 4096};

	if (yyjson_is_str(rule))
		return cli_text(cli, "%.*s", SPAN_ARGS(json_text(rule)));
	json_put_value(&text, rule);
	return cli_text(cli, "%.*s", SPAN_ARGS(cli_span(cli, &text)));
}

/* What is decided, for the person who decides it. */
static void put_open_question(struct cli *cli, yyjson_val *task)
{
	yyjson_val *question = field_get(task, "question"), *rule = field_get(question, "rule");
	const char *words = field_cstr(cli, question, "text");

	if (!cli->term.tty || cli->output == OUTPUT_JSON)
		return;
	cli_put_sentence(cli, 0, "%s", field_cstr(cli, field_get(task, "why"), "text"));
	struct span command = field_text(field_get(question, "input"), "command");
	if (command.len > SENTENCE_BYTES || memchr(command.data ? command.data : "", '\n', command.len))
		cli_put_lines(cli, command, "  "); /* all of what will run, also where the sentence is cut */
	put_diff(cli, field_text(question, "diff"));
	if (field_get(question, "tool") && words[0])
		cli_put_sentence(cli, 0, "It says: \"%s\"", words);
	if (rule)
		cli_put_sentence(cli, 0, "Asked because of the rule %s", rule_text(cli, rule));
}

/* A question with options is answered by one of them. NULL: it is, or it takes any text; else the first option. */
static const char *option_missed(struct cli *cli, yyjson_val *question, struct span text)
{
	yyjson_val *options = field_get(question, "options"), *option;
	size_t at, count;

	if (field_get(question, "tool") || field_bool(question, "freeText"))
		return NULL;
	yyjson_arr_foreach(options, at, count, option)
	{
		if (!yyjson_is_str(option) || span_equal(json_text(option), text))
			return NULL;
	}
	return yyjson_arr_size(options) > 0
		? cli_text(cli, "%.*s", SPAN_ARGS(json_text(yyjson_arr_get_first(options))))
		: NULL;
}

static int refuse_option(struct cli *cli, yyjson_val *question, const char *first)
{
	const char *id = args_plain(&cli->args, 0), *listed = NULL;
	size_t at, count;
	yyjson_val *option;

	yyjson_arr_foreach(field_get(question, "options"), at, count, option) listed = cli_text(
		cli, "%s%s\"%.*s\"", listed ? listed : "", listed ? ", " : "", SPAN_ARGS(json_text(option)));
	return cli_fail(cli, EXIT_USAGE, "invalid",
		cli_text(cli, "stint answer %s %s", cli_quote(cli, id), cli_quote(cli, first)),
		"%s must be answered with one of its options: %s", id, listed);
}

/* The answer to the question that the task was found with: another one that it asks by now is not answered. */
static int answer(struct cli *cli, yyjson_val *task, const char *text, const char *allow, bool deny)
{
	struct span given = text && strcmp(text, "-") == 0 ? cli_read_input(cli, "-") : span_of(text);
	const char *named = args_text(&cli->args, "question"), *id = args_plain(&cli->args, 0);
	struct span question = field_text(field_get(task, "question"), "id");
	const char *first = deny ? NULL : option_missed(cli, field_get(task, "question"), given);

	if (first)
		return refuse_option(cli, field_get(task, "question"), first);
	struct json_object *body = cli_body(cli);
	if (named || question.len > 0)
		json_member_string(body, "question", named ? span_of(named) : question);
	if (given.len > 0)
		json_member_string(body, "text", given);
	if (allow)
		json_member_string(body, "allow", span_of(allow));
	if (deny)
		json_member_bool(body, "deny", true);
	cleanup(reply_done) struct reply reply =
		server_post(cli, "/api/tasks/*/answer", id, cli_body_end(cli));
	const char *word = deny ? "was denied that" : allow ? "is allowed that" : "has its answer";
	bool runs = span_equal(field_text(reply.root, "state"), SPAN("running"));
	return view_put_task_done(
		cli, reply.root, cli_text(cli, "%s and %s", word, runs ? "goes on" : "is ready again"));
}

static struct reply find_task(struct cli *cli)
{
	const struct ask question = {.method = HTTP_METHOD_GET,
		.path = "/api/tasks/*",
		.names = {args_plain(&cli->args, 0)},
		.query = SPAN("include=why")};

	return server_need(cli, &question);
}

static bool is_asking(yyjson_val *task)
{
	return span_equal(field_text(task, "state"), SPAN("asking"));
}

static int run_answer(struct cli *cli)
{
	cleanup(reply_done) struct reply reply = find_task(cli);

	return answer(cli, is_asking(reply.root) ? reply.root : NULL, args_plain(&cli->args, 1), NULL, false);
}

/* ---- the verdict -------------------------------------------------------------------------------------------------- */

/* The gate that is meant: the one that was named, or the only one that is open. NULL: the reason was told. */
static const char *gate_meant(struct cli *cli, yyjson_val *task, int *ret_ending)
{
	const char *named = args_text(&cli->args, "gate"), *open = NULL;
	size_t left = 0;

	if (named)
		return named;
	const char *all = view_open_gates(cli, task, &left, &open);
	if (left == 1)
		return open;
	if (yyjson_arr_size(field_get(task, "gates")) == 0)
		return "review";
	*ret_ending = left == 0
		? cli_fail(cli, EXIT_CONFLICT, "bad_transition", NULL,
			  "it has passed every gate and waits for its next stage")
		: cli_fail(cli, EXIT_USAGE, "usage",
			  cli_text(cli, "stint %s %s --gate %s", cli->verb->name,
				  cli_quote(cli, args_plain(&cli->args, 0)), cli_quote(cli, open)),
			  "it waits at several gates (%s): choose one with --gate", all);
	return NULL;
}

static int give_verdict(struct cli *cli, yyjson_val *task, bool passes)
{
	struct json_object *body = cli_body(cli);
	int r = 0;
	const char *gate = gate_meant(cli, task, &r);

	if (!gate)
		return r;
	json_member_string(body, "verdict", passes ? SPAN("pass") : SPAN("reject"));
	cli_member_text(body, "reason", args_plain(&cli->args, 1));
	struct ask question = {.method = HTTP_METHOD_POST,
		.path = "/api/tasks/*/gates/*",
		.names = {args_plain(&cli->args, 0), gate},
		.body = cli_body_end(cli)};
	cleanup(reply_done) struct reply reply = server_need(cli, &question);
	return view_put_task_done(cli, reply.root,
		cli_text(cli, "%s gate %s and is %s", passes ? "passed" : "was rejected at", gate,
			field_cstr(cli, reply.root, "state")));
}

/* To a task in review it is a verdict, to any other an answer. */
static int decide(struct cli *cli)
{
	bool passes = cli->verb == &verb_approve, for_task = args_has(&cli->args, "for-task");
	const char *text = args_plain(&cli->args, 1);
	cleanup(reply_done) struct reply reply = find_task(cli);
	yyjson_val *task = is_asking(reply.root) ? reply.root : NULL;
	/* a tool is allowed what it wants; a question in words is answered in words */
	bool allows = passes && (for_task || field_get(field_get(task, "question"), "tool"));

	if (span_equal(field_text(reply.root, "state"), SPAN("review")) || args_text(&cli->args, "gate"))
		return give_verdict(cli, reply.root, passes);
	put_open_question(cli, task);
	if (allows)
		return answer(cli, task, text, for_task ? "task" : "once", false);
	return answer(cli, task, passes && !text ? "yes" : text, NULL, !passes);
}

#define GATE {"gate", 0, FLAG_TEXT, .value = "NAME", .text = "the gate of a task that waits at several"}
#define QUESTION                                  \
	{"question", 0, FLAG_TEXT, .value = "ID", \
		.text = "the question that is meant; without it, the one that the task asks when stint looks"}

static const struct flag answer_flags[] = {
	QUESTION,
	{0},
};

static const struct flag approve_flags[] = {
	GATE,
	QUESTION,
	{"for-task", 0, FLAG_SWITCH, .text = "allow it until the task is final, and not only once"},
	{0},
};

static const struct flag deny_flags[] = {
	GATE,
	QUESTION,
	{0},
};

static int run_tell(struct cli *cli)
{
	const char *text = args_plain(&cli->args, 1), *id = args_plain(&cli->args, 0);
	struct json_object *body = cli_body(cli);

	json_member_string(body, "text", strcmp(text, "-") == 0 ? cli_read_input(cli, "-") : span_of(text));
	cleanup(reply_done) struct reply reply = server_post(cli, "/api/tasks/*/tell", id, cli_body_end(cli));
	bool held = field_text(reply.root, "workerId").len > 0;
	return view_put_task_done(cli, reply.root,
		held ? "has the message: its agent gets it at its next turn"
		     : "has the message: its next attempt begins with it");
}

const struct verb verb_tell = {
	.name = "tell",
	.arguments = "ID TEXT",
	.offer = OFFER_TASKS,
	.gives = GIVES_JSON,
	.brief = "say something to the agent",
	.text = "Sends a message to the worker of the task: a running agent gets it at its next turn, otherwise the next attempt begins "
		"with it. With - the message is read from standard input.",
	.examples = "stint tell t-7k3 \"the tests are in tests/unit\"\n",
	.run = run_tell,
};

const struct verb verb_answer = {
	.name = "answer",
	.arguments = "ID TEXT",
	.offer = OFFER_TASKS,
	.gives = GIVES_JSON,
	.brief = "answer a question",
	.text = "Answers the question that a task waits for. With - the answer is read from standard input. A worker that "
		"still waits goes on with it; otherwise the task is ready again, and its next attempt gets the answer. If the "
		"task asks another question by then than the one that stint found, nothing is answered.",
	.flags = answer_flags,
	.examples = "stint answer t-7k3 \"use the staging database\"\n",
	.run = run_answer,
};

const struct verb verb_approve = {
	.name = "approve",
	.arguments = "ID [TEXT]",
	.offer = OFFER_TASKS,
	.gives = GIVES_JSON,
	.brief = "say yes, or let it pass",
	.text = "Allows a task what it asks for, or answers \"yes\", or the text, to a question in words. A task in review passes "
		"the gate it waits at; the text is the reason. A worker that held an attempt of the task may not approve it. "
		"If the task asks another question by then than the one that stint shows, nothing is allowed.",
	.flags = approve_flags,
	.examples = "stint approve t-7k3\nstint approve t-7k3 --for-task\n",
	.run = decide,
};

const struct verb verb_deny = {
	.name = "deny",
	.arguments = "ID [TEXT]",
	.offer = OFFER_TASKS,
	.gives = GIVES_JSON,
	.brief = "say no, or send it back",
	.text = "Says no to a task that asks; the text is the reason. The task goes on with that answer. A task in review "
		"is rejected at the gate it waits at: it gets its next attempt, if one is left.",
	.flags = deny_flags,
	.examples = "stint deny t-7k3 \"not on a Friday\"\n",
	.run = decide,
};
