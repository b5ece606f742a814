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
	LOOK_MS = 1000,
};

const struct flag log_flags[] = {
	{"follow", 'f', FLAG_SWITCH,
		.text = "go on until no worker has the task; wait for its first attempt"},
	{"attempt", 0, FLAG_NUMBER, .value = "N", .text = "the log of this attempt (default: the last one)",
		.least = 1, .most = UINT32_MAX},
	{"raw", 0, FLAG_SWITCH, .text = "print it unchanged, colours and all, on a terminal too"},
	{0},
};

static int put_text(struct cli *cli, struct span text)
{
	if (cli->term.tty && !args_has(&cli->args, "raw"))
		return text_clean(&cli->out, text, cli->term.utf8, true);
	return buf_put_span(&cli->out, text);
}

static int put_piece(struct log_reading *reading, yyjson_val *piece)
{
	struct cli *cli = reading->cli;
	int64_t dropped = field_int(piece, "dropped", 0);

	if (cli->output == OUTPUT_JSON) {
		cli_put_json(cli, "log", piece);
		return 0;
	}
	if (dropped > 0)
		cli_say(cli, "stint: %lld bytes were dropped here", (long long)dropped);
	return put_text(cli, field_text(piece, "data"));
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

/* Can the log still grow: is the task running, or not begun yet? 0 and the answer, or the ending. */
static int look(struct log_reading *reading, bool *ret_goes_on)
{
	struct reply task;
	int r = log_look(reading, &task);

	if (r != 0)
		return r;
	int64_t attempt = field_int(task.root, "attempt", 0);
	bool held = field_text(task.root, "workerId").len > 0;
	bool to_come = attempt == 0 && span_equal(field_text(task.root, "status"), SPAN("todo"));
	*ret_goes_on = to_come || (held && attempt <= (reading->attempt > 0 ? reading->attempt : INT64_MAX));
	reply_done(&task);
	return 0;
}

int view_put_log(struct cli *cli, const char *id)
{
	cleanup(free_at) char *kept = strdup(id);
	struct log_reading reading = {
		.cli = cli, .id = kept, .attempt = args_number(&cli->args, "attempt", 0)};
	bool goes_on = args_has(&cli->args, "follow");

	if (!kept)
		return cli_fail_fault(cli, -ENOMEM);
	reading.patience = goes_on ? LOG_PATIENCE : 0;
	for (;;) {
		bool last = !goes_on;
		arena_reset(&cli->arena); /* of the last look: this may go on for weeks */
		int r = goes_on ? look(&reading, &goes_on)
				: 0; /* before reading: what came in between is read */
		if (r == 0)
			r = log_read_on(&reading);
		if (r != 0 || last || cli_reader_is_gone())
			return r;
		if (goes_on)
			poll(NULL, 0, LOOK_MS);
	}
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
	.brief = "what it wrote",
	.text = "Prints what the last attempt of a task wrote, or the attempt of --attempt. With --follow it waits for the first "
		"attempt and goes on until no worker has the task, also when the server restarts. With --json, one object per piece.",
	.flags = log_flags,
	.examples = "stint logs t-7k3 --follow\nstint logs t-7k3 --attempt 1 | less\n",
	.run = run,
};
