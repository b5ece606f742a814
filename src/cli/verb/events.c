/*
 * stint events: what happened, and with --follow what happens, without a gap. On a terminal a sentence for each, elsewhere
 * the events themselves, one JSON object per line.
 */
#include <stdio.h>
#include <string.h>

#include "base/take.h"
#include "cli/frame/text.h"
#include "cli/frame/when.h"
#include "cli/verb/event_view.h"
#include "cli/verb/task_view.h"
#include "wire/event_types.h"

enum {
	LIMIT_DEFAULT = 100,
	LIMIT_MAX = 10000000,
	PAGE = 1000,
	TITLES_KNOWN = 32,
	COMMAND_ID_BYTES = 129,
	TITLE_BYTES = 200,
};

static const struct flag flags[] = {
	{"follow", 'f', FLAG_SWITCH, .text = "go on with what happens from now on, until Ctrl-C"},
	{"after", 0, FLAG_TEXT, .value = "CURSOR",
		.text = "only what came after: the seq of an event, or now"},
	{"task", 't', FLAG_TEXT, OFFER_TASKS, .value = "ID", .text = "only about this task"},
	{"type", 0, FLAG_NAMES, .many = true, .value = "TYPE,…",
		.text = "only of these types: task.failed, or worker (or worker.*) for all about workers"},
	{"audit", 0, FLAG_SWITCH,
		.text = "only what was done to tokens, gates, execution and the server; these events are kept longest"},
	{"limit", 'n', FLAG_NUMBER, .value = "N",
		.text = "stop after so many (default 100; 0: all; with --follow: no limit)", .least = 0,
		.most = LIMIT_MAX},
	{0},
};

struct known_title {
	char task[COMMAND_ID_BYTES], title[TITLE_BYTES];
};

struct watching {
	struct cli *cli;
	int64_t limit, count;
	bool lines; /* for people */
	bool ids;   /* the cursors alone */
	bool follows;
	struct known_title titles[TITLES_KNOWN]; /* the latest; round and round */
	size_t next_title;
};

/* Is it one of --type, or about one of its nouns? */
static bool is_wanted_type(struct cli *cli, struct span type)
{
	struct args_names walk = {0};
	struct span name;

	while (args_each_name(&cli->args, "type", &walk, &name)) {
		if (name.len > 2 && memcmp(name.data + name.len - 2, ".*", 2) == 0)
			name.len -= 2;
		if (name.len <= type.len && memcmp(name.data, type.data, name.len) == 0 &&
			(type.len == name.len || type.data[name.len] == '.'))
			return true;
	}
	return !args_has(&cli->args, "type");
}

/* The title of its task, if it is known or may be asked for: not while events are followed. */
static struct span title_of(struct watching *watching, struct span task)
{
	struct known_title *known = &watching->titles[watching->next_title];

	for (size_t i = 0; i < TITLES_KNOWN; i++) {
		if (span_equal(span_of(watching->titles[i].task), task))
			return span_of(watching->titles[i].title);
	}
	if (watching->follows || task.len >= sizeof known->task)
		return SPAN("");
	snprintf(known->task, sizeof known->task, "%.*s", SPAN_ARGS(task));
	cleanup(reply_done) struct reply reply = server_try(watching->cli, "/api/tasks/*", known->task);
	snprintf(known->title, sizeof known->title, "%.*s", SPAN_ARGS(field_text(reply.root, "title")));
	watching->next_title = (watching->next_title + 1) % TITLES_KNOWN;
	return span_of(known->title);
}

/* Nothing that it makes stays: events are followed for days. */
static void put_line(struct watching *watching, yyjson_val *event)
{
	struct cli *cli = watching->cli;
	cleanup(buf_done) struct buf clock = {0}, text = {0}, clean = {0};
	struct span task = field_text(event, "task"),
		    title = task.len > 0 ? title_of(watching, task) : SPAN("");
	size_t width = cli->term.tty ? cli->term.width : 0;

	buf_init(&clock, 64);
	buf_init(&text, 4 << 20);
	buf_init(&clean, 16 << 20);
	if (cli->exact)
		when_put_clock(&clock, field_int(event, "time", 0));
	else
		when_put_time(&clock, field_int(event, "time", 0), cli->now_ms);
	if (task.len > 0)
		buf_printf(&text, "%.*s ", SPAN_ARGS(task));
	event_put(&text, event);
	if (title.len > 0)
		buf_printf(&text, "  %s%.*s", cli->term.glyphs ? "· " : "| ", SPAN_ARGS(title));
	text_clean(&clean, cli_span(cli, &text), cli->term.utf8, false);
	size_t indent = text_width(cli_span(cli, &clock)) + 2;
	cli_put(cli, "%s%.*s%s  ", term_paint(cli->term.color, PAINT_DIM), SPAN_ARGS(buf_span(&clock)),
		term_plain(cli->term.color, PAINT_DIM));
	text_wrap(&cli->out, cli_span(cli, &clean), width, indent, indent);
	cli_put(cli, "\n");
}

static int on_event(void *context, yyjson_val *event)
{
	struct watching *watching = context;
	struct cli *cli = watching->cli;
	const char *task = args_text(&cli->args, "task");

	if ((task && !span_equal(span_of(task), field_text(event, "task"))) ||
		!is_wanted_type(cli, field_text(event, "type")))
		return 0;
	if (watching->lines) {
		put_line(watching, event);
	} else if (watching->ids) {
		cli_put(cli, "%lld\n", (long long)field_int(event, "seq", 0));
	} else {
		cli_put_value(cli, event);
		cli_put(cli, "\n");
	}
	watching->count++;
	if (args_has(&cli->args, "follow") && cli_flush(cli) != 0)
		return EXIT_FAILED; /* the reader of our output is gone */
	return watching->limit > 0 && watching->count == watching->limit ? FOLLOW_DONE : 0;
}

static int on_idle(void *context)
{
	(void)context;
	return cli_reader_is_gone() ? EXIT_FAILED : 0;
}

static int read_pages(struct watching *watching)
{
	struct cli *cli = watching->cli;
	const char *task = args_text(&cli->args, "task"), *after = args_text(&cli->args, "after");
	struct ask question = {.method = HTTP_METHOD_GET,
		.path = task ? "/api/tasks/*/events" : "/api/events",
		.names = {task}};
	int r = 0;

	while (r == 0) {
		size_t at, count;
		yyjson_val *event;
		question.query = span_of(cli_text(cli, "limit=%d%s%s%.*s", PAGE,
			args_has(&cli->args, "audit") ? "&only=audit" : "", after ? "&after=" : "",
			SPAN_ARGS(cli_encode(cli, span_of(after ? after : "")))));
		cleanup(reply_done) struct reply reply = server_need(cli, &question);
		yyjson_arr_foreach(field_get(reply.root, "events"), at, count, event)
		{
			r = r == 0 ? on_event(watching, event) : r;
		}
		const char *next = field_cstr(cli, reply.root, "next");
		if (!next[0] || (after && strcmp(next, after) == 0))
			break;
		after = next;
	}
	return r == FOLLOW_DONE ? 0 : r;
}

/* A type that there is not would be waited for in vain. */
static int check_types(struct cli *cli)
{
	struct args_names walk = {0};
	char room[EVENT_TYPE_BYTES];
	struct span name;

	while (args_each_name(&cli->args, "type", &walk, &name)) {
		if (event_types_has(name))
			continue;
		const char *typed = cli_text(cli, "%.*s", SPAN_ARGS(name));
		const char *like = event_types_like(typed, room);
		return cli_fail(cli, EXIT_USAGE, "usage",
			like ? cli_text(cli, "stint events --type %s", like) : "stint help events",
			"there is no event \"%s\"%s%s%s", typed, like ? "; did you mean " : "",
			like ? like : "", like ? "?" : "");
	}
	return 0;
}

static int check_audit(struct cli *cli)
{
	const char *other = args_has(&cli->args, "follow") ? "follow"
		: args_has(&cli->args, "task")             ? "task"
							   : NULL;

	return args_has(&cli->args, "audit") && other
		? cli_fail(cli, EXIT_USAGE, "usage", "stint events --audit",
			  "--audit and --%s do not go together", other)
		: 0;
}

/* The list of a task may end between pages: its cursor moves on all the same. */
static int run(struct cli *cli)
{
	bool follow = args_has(&cli->args, "follow");
	const char *after = args_text(&cli->args, "after");
	struct watching watching = {
		.cli = cli,
		.limit = args_number(&cli->args, "limit", follow ? 0 : LIMIT_DEFAULT),
		.lines = cli->output == OUTPUT_TABLE || cli->output == OUTPUT_WIDE ||
			(cli->output == OUTPUT_AUTO && cli->term.tty),
		.ids = cli->output == OUTPUT_ID,
		.follows = follow,
	};
	struct follow stream = {.each = on_event, .idle = on_idle, .context = &watching};

	if (check_types(cli) != 0 || check_audit(cli) != 0)
		return EXIT_USAGE;
	if (!follow) {
		int r = read_pages(&watching);
		if (r == 0 && watching.limit > 0 && watching.count == watching.limit &&
			!args_has(&cli->args, "limit"))
			cli_say(cli,
				"… the first %lld; more with --limit 0, or from the last one on with --after SEQ",
				(long long)watching.limit);
		return r;
	}
	int r = 0;
	if (after && strcmp(after, "now") != 0)
		stream.after = cli_encode(cli, span_of(after));
	else
		r = server_newest_cursor(cli, &stream.after);
	if (r == 0)
		r = server_follow(cli, &stream);
	return r == FOLLOW_DONE ? 0 : r;
}

const struct verb verb_events = {
	.name = "events",
	.gives = GIVES_JSON | GIVES_ROWS,
	.pages = true,
	.brief = "what happens",
	.text = "Prints the events that are kept, oldest first. With --follow it prints "
		"what happens from now on, and misses nothing: after a broken connection it continues behind the last "
		"event. On a terminal a sentence for each; elsewhere, and with --json, one JSON object per line.",
	.flags = flags,
	.examples =
		"stint events --follow\n"
		"stint events --task t-7k3\n"
		"stint events --audit --type token --limit 0\n"
		"stint events --follow --type task.failed | while read -r event; do notify \"$event\"; done\n",
	.run = run,
};
