/*
 * stint logs: what an attempt wrote. Positions are bytes, so nothing is shown twice and what is missing is said. Programs
 * write what they like: on a terminal it is made harmless, unless --raw says otherwise.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/take.h"
#include "cli/verb/task_view.h"
#include "cli/frame/text.h"

enum {
	PIECE_BYTES = 256 << 10,
	PIECE_TEXT_MAX = 4 << 20, /* every byte may need three to be shown */
	LOOK_MS_MIN = 20,         /* doubled while nothing happens */
	LOOK_MS_MAX = 1000,
};

const struct flag log_flags[] = {
	{"follow", 'f', FLAG_SWITCH,
		.text = "go on over all attempts until the task has ended or needs a person; with --attempt, to the end of that one"},
	{"attempt", 0, FLAG_NUMBER, .value = "N", .text = "the log of this attempt (default: the last one)",
		.least = 1, .most = UINT32_MAX},
	{"stdout", 0, FLAG_SWITCH, .text = "only what was written to standard output"},
	{"stderr", 0, FLAG_SWITCH, .text = "only what was written to standard error"},
	{"raw", 0, FLAG_SWITCH, .text = "print it unchanged, colours and all, on a terminal too"},
	{0},
};

/* Text of the program, on standard output or, with `errors`, on standard error; on a terminal harmless. NULL: what was held
 * back, and the end of a colour. */
static int put_text(struct log_reading *reading, const struct span *text, bool errors)
{
	struct cli *cli = reading->cli;
	const struct term *term = &cli->term;
	struct text_output *shown = &reading->shown[errors];
	cleanup(buf_done) struct buf err = {.max = PIECE_TEXT_MAX};
	struct buf *out = errors ? &err : &cli->out;
	bool color = errors ? term->talk_color : term->color;

	if (!(errors ? term->talk_tty : term->tty) || args_has(&cli->args, "raw")) {
		if (text && text->len > 0) {
			buf_put_span(out, *text);
			shown->amid_line = text->data[text->len - 1] != '\n';
		}
	} else if (text) {
		text_put_output(out, shown, *text, term->utf8, color);
	} else {
		text_end_output(out, shown, term->utf8, color);
	}
	if (errors && err.len > 0 && buf_fault(&err) == 0)
		cli_put_errors(cli, buf_span(&err));
	return buf_fault(out);
}

int log_break_line(struct log_reading *reading)
{
	static const struct span line_end = SPAN("\n");
	int r = 0;

	for (int errors = 0; r == 0 && errors < 2; errors++) {
		r = put_text(reading, NULL, errors);
		/* in a pipe the bytes are the program's, and nobody else's */
		if (r == 0 && reading->shown[errors].amid_line &&
			(errors ? reading->cli->term.talk_tty : reading->cli->term.tty))
			r = put_text(reading, &line_end, errors);
		reading->shown[errors].amid_line = false;
	}
	return r < 0 ? cli_fail_fault(reading->cli, r) : cli_flush(reading->cli);
}

/* A part of the piece that was written to one stream. */
static int put_part(struct log_reading *reading, struct span text, bool errors)
{
	if (text.len == 0 || (errors ? reading->hide_err : reading->hide_out))
		return 0;
	bool apart = errors && reading->apart;
	if (reading->shown[!apart].painted) /* its colour is not that of the other stream */
		put_text(reading, NULL, !apart);
	return put_text(reading, &text, apart);
}

/* The lengths of the streams are by turns, standard output first; what they do not reach is output. */
static int put_streams(struct log_reading *reading, struct span text, yyjson_val *streams)
{
	size_t i, count;
	yyjson_val *length;
	int r = 0;

	yyjson_arr_foreach(streams, i, count, length)
	{
		size_t bytes =
			yyjson_get_uint(length) < text.len ? (size_t)yyjson_get_uint(length) : text.len;
		if (r == 0)
			r = put_part(reading, (struct span){text.data, bytes}, i % 2 == 1);
		text = (struct span){text.data + bytes, text.len - bytes};
	}
	return r < 0 ? r : put_part(reading, text, false);
}

static int put_piece(struct log_reading *reading, yyjson_val *piece)
{
	struct cli *cli = reading->cli;
	int64_t dropped = field_int(piece, "dropped", 0);

	if (cli->output == OUTPUT_JSON) {
		cli_put_json(cli, "log", piece);
		return 0;
	}
	if (dropped > 0 && log_break_line(reading) == 0)
		cli_say(cli, "stint: %lld bytes were dropped here", (long long)dropped);
	return put_streams(reading, field_text(piece, "data"), field_get(piece, "streams"));
}

int log_read_on(struct log_reading *reading)
{
	struct cli *cli = reading->cli;
	struct ask question = {.method = HTTP_METHOD_GET,
		.path = "/api/tasks/*/log",
		.names = {reading->id},
		.patience = reading->patience,
		.stop = reading->stop,
		.quiet_missing = reading->attempt > 0};
	int64_t next = 0, length = 0;

	do {
		struct reply reply;
		question.query =
			span_of(cli_text(cli, "limit=%d&after=%lld", PIECE_BYTES, (long long)reading->after));
		if (reading->attempt > 0)
			question.query = span_of(cli_text(cli, "%.*s&attempt=%lld", SPAN_ARGS(question.query),
				(long long)reading->attempt));
		int r = server_ask(cli, &question, &reply);
		if (r == EXIT_NOT_FOUND && question.quiet_missing)
			return cli_fail(cli, r, "not_found", cli_text(cli, "stint show %s", reading->id),
				"%s has had no attempt %lld", reading->id, (long long)reading->attempt);
		if (r != 0)
			return r;
		next = field_int(reply.root, "next", 0);
		length = field_int(reply.root, "length", 0);
		reading->attempt = field_int(reply.root, "attempt", reading->attempt);
		int fault = next > reading->after ? put_piece(reading, reply.root) : 0;
		reply_done(&reply);
		if (fault < 0)
			return cli_fail_fault(cli, fault);
		if (next <= reading->after)
			break;
		reading->after = next;
	} while (next < length);
	return cli_flush(cli);
}

int log_look(struct log_reading *reading, struct reply *ret_task)
{
	struct ask question = {.method = HTTP_METHOD_GET,
		.path = "/api/tasks/*",
		.names = {reading->id},
		.patience = reading->patience,
		.stop = reading->stop};

	return server_ask(reading->cli, &question, ret_task);
}

/* Words of ours between two attempts. The error of a task is that of its last attempt. */
static int tell_next_attempt(struct log_reading *reading, yyjson_val *task, int64_t next)
{
	struct cli *cli = reading->cli;
	bool last = next == field_int(task, "attempt", 0);
	const char *error = last ? field_cstr(cli, field_get(task, "error"), "message") : "";
	const char *worker = last ? field_cstr(cli, task, "workerId") : "";
	int r = log_break_line(reading);

	if (r == 0)
		cli_say(cli, "stint: attempt %lld %s%s; attempt %lld%s%s", (long long)reading->attempt,
			error[0] ? "failed: " : "has ended", error, (long long)next, worker[0] ? " on " : "",
			worker);
	return r;
}

int log_read_attempts(struct log_reading *reading, yyjson_val *task, bool *ret_moved)
{
	int64_t current = field_int(task, "attempt", 0), attempt = reading->attempt, after = reading->after;
	int r = 0;

	while (r == 0 && reading->attempt > 0 && reading->attempt < current) {
		r = log_read_on(reading); /* the rest of this one */
		if (r == 0)
			r = tell_next_attempt(reading, task, reading->attempt + 1);
		reading->attempt++;
		reading->after = 0;
	}
	if (r == 0 && current > 0)
		r = log_read_on(reading);
	*ret_moved = reading->attempt != attempt || reading->after != after;
	return r;
}

bool log_is_settled(yyjson_val *task)
{
	struct span state = field_text(task, "state");

	return view_state_is_final(state) || span_equal(state, SPAN("blocked")) ||
		span_equal(state, SPAN("review"));
}

/* Will nothing be added any more: to the one attempt that was asked for, or to all of them without a person? */
static bool is_over(const struct log_reading *reading, yyjson_val *task, bool one)
{
	int64_t attempt = field_int(task, "attempt", 0);

	if (one && attempt > reading->attempt)
		return true;
	if (one && attempt == reading->attempt && field_text(task, "workerId").len == 0)
		return true;
	return log_is_settled(task);
}

/* How the task stands at the end of its log. */
static int tell_end(struct log_reading *reading, yyjson_val *task)
{
	struct cli *cli = reading->cli;
	const char *error = field_cstr(cli, field_get(task, "error"), "message");
	bool done = span_equal(field_text(task, "state"), SPAN("done"));
	int r = log_break_line(reading);

	if (r == 0 && cli->term.talk_tty)
		view_say_end(cli, task, 0);
	else if (r == 0)
		cli_say(cli, "%s is %.*s%s%s", reading->id, SPAN_ARGS(field_text(task, "state")),
			error[0] && !done ? ": " : "", done ? "" : error);
	return r;
}

static int follow(struct log_reading *reading, bool one)
{
	struct cli *cli = reading->cli;
	int wait_ms = LOOK_MS_MIN;

	for (;;) {
		bool moved = false;
		cleanup(reply_done) struct reply task = {0};
		arena_reset(&cli->arena); /* of the last look: this may go on for weeks */
		int r = log_look(reading, &task);
		if (r != 0)
			return r;
		bool over =
			is_over(reading, task.root, one); /* before reading: what came in between is read */
		r = one ? log_read_on(reading) : log_read_attempts(reading, task.root, &moved);
		if (r == 0 && over)
			r = one ? log_break_line(reading) : tell_end(reading, task.root);
		if (r != 0 || over || cli_reader_is_gone())
			return r;
		poll(NULL, 0, wait_ms);
		wait_ms = moved ? LOOK_MS_MIN : wait_ms * 2 < LOOK_MS_MAX ? wait_ms * 2 : LOOK_MS_MAX;
	}
}

int view_put_log(struct cli *cli, const char *id)
{
	const struct args *args = &cli->args;
	cleanup(free_at) char *kept = strdup(id);
	struct log_reading reading = {.cli = cli,
		.id = kept,
		.attempt = args_number(args, "attempt", 0),
		.hide_out = args_has(args, "stderr") && !args_has(args, "stdout"),
		.hide_err = args_has(args, "stdout") && !args_has(args, "stderr"),
		.patience = args_has(args, "follow") ? LOG_PATIENCE : 0};

	if (!kept)
		return cli_fail_fault(cli, -ENOMEM);
	if (args_has(args, "follow"))
		return follow(&reading, reading.attempt > 0);
	int r = log_read_on(&reading);
	if (r == 0 && reading.after == 0 && cli->term.tty && cli->output != OUTPUT_JSON)
		cli_say(cli, "%s has printed nothing", id);
	return r != 0 ? r : log_break_line(&reading);
}

static int run(struct cli *cli)
{
	cleanup(reply_done) struct reply task = {0};

	int r = server_get_task(cli, args_plain(&cli->args, 0), &task);
	return r != 0 ? r : view_put_log(cli, field_cstr(cli, task.root, "id"));
}

const struct verb verb_logs = {
	.name = "logs",
	.arguments = "ID",
	.offer = OFFER_TASKS,
	.gives = GIVES_JSON,
	.pages = true,
	.brief = "what it wrote",
	.text = "Prints what the last attempt of a task wrote, or the attempt of --attempt: output and errors, in the order in which they "
		"came. With --follow it waits for the first attempt and goes on over all of them until the task has ended, or needs a "
		"person, also when the worker changes or the server restarts. On a terminal colours stay and everything else that the "
		"terminal would obey is shown as a sign. With --json, one object per piece.",
	.flags = log_flags,
	.examples =
		"stint logs t-7k3 --follow\nstint logs t-7k3 --attempt 1 | less\nstint logs t-7k3 --stderr | tail\n",
	.run = run,
};
