/*
 * stint claim: take work, for scripts. -o env prints what the task verbs look for, so that
 *
 *	eval "$(stint claim --queues demo --wait 30s -o env)"
 *
 * is all a shell worker needs before `stint task done`.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/take.h"
#include "cli/verb/task_view.h"

enum {
	SERVER_WAIT_MS = 60000, /* the longest the server waits in one go */
	CLAIMS_MAX = 100,
};

static const struct flag flags[] = {
	{"queues", 'Q', FLAG_NAMES, OFFER_QUEUES, true, .value = "NAME,…",
		.text = "from these queues (default: any)"},
	{"worker", 'w', FLAG_TEXT, OFFER_WORKERS, .value = "ID",
		.text = "who claims (default $STINT_WORKER_ID, or user@host)"},
	{"wait", 0, FLAG_DURATION, .value = "TIME", .text = "wait that long for work (default: not at all)"},
	{"lease", 0, FLAG_DURATION, .value = "TIME",
		.text = "the claim ends after that long without a report (default 15m)", .member = "leaseMs"},
	{"max", 'n', FLAG_NUMBER, .value = "N", .text = "at most so many (default 1)", .least = 1,
		.most = CLAIMS_MAX},
	{"slot", 0, FLAG_TEXT, OFFER_SLOTS, .value = "SLOT", .text = "also claim tasks for this slot",
		.member = "slot"},
	{"capabilities", 'c', FLAG_NAMES, .many = true, .value = "CAP,…",
		.text = "the capabilities of this worker", .member = "capabilities"},
	{"executors", 'x', FLAG_NAMES, .many = true, .may_be_empty = true, .value = "NAME,…",
		.text = "only tasks for these executors (default: any; '': tasks that name none)",
		.member = "executors"},
	{"include-statuses", 0, FLAG_NAMES, .many = true, .value = "ready,pending",
		.text = "parked tasks, too (default: ready)", .member = "includeStatuses"},
	{"resume-owned", 0, FLAG_SWITCH, .text = "first claim again what this worker holds already",
		.member = "resumeOwned"},
	{"request-id", 0, FLAG_TEXT, .value = "ID",
		.text = "the same id again gives the same claims, if they have not started",
		.member = "requestId"},
	{"id", 0, FLAG_TEXT, OFFER_TASKS, .value = "ID", .text = "this task, and no other"},
	{"empty-exit", 0, FLAG_SWITCH, .text = "exit status 5 when there is nothing (default 0)"},
	{0},
};

static const char *worker_name(struct cli *cli)
{
	const char *given = args_text(&cli->args, "worker"), *known = getenv("STINT_WORKER_ID");
	const char *user = getenv("USER");
	char host[128] = "localhost";

	if (given || (known && known[0]))
		return given ? given : known;
	gethostname(host, sizeof host - 1);
	return user && user[0] ? cli_text(cli, "%s@%s", user, host)
			       : cli_text(cli, "uid%u@%s", (unsigned)getuid(), host);
}

/* For a task by its id; else for the next ones. */
static struct span body_of(struct cli *cli, int64_t wait_ms)
{
	const struct args *args = &cli->args;
	struct json_object *body = cli_body(cli);

	json_member_string(body, "workerId", span_of(worker_name(cli)));
	cli_member_flags(cli, body);
	if (!args_has(args, "id")) {
		cli_member_names(cli, body, "queues", "queues");
		json_member_int(body, "max", args_number(args, "max", 1));
	}
	if (wait_ms > 0)
		json_member_int(body, "waitMs", wait_ms);
	return cli_body_end(cli);
}

/* ---- what we got ------------------------------------------------------------------------------------------------- */

static void put_env(struct cli *cli, const char *name, struct span value)
{
	cli_put(cli, "export %s=%s\n", name, cli_quote(cli, cli_text(cli, "%.*s", SPAN_ARGS(value))));
}

static void put_claim_env(struct cli *cli, yyjson_val *claim)
{
	yyjson_val *task = field_get(claim, "task");
	cleanup(buf_done) struct buf payload = {0};

	put_env(cli, "STINT_TASK_ID", field_text(task, "id"));
	put_env(cli, "STINT_FENCE", field_text(claim, "fence"));
	put_env(cli, "STINT_WORKER_ID", span_of(worker_name(cli)));
	put_env(cli, "STINT_ATTEMPT", view_number(cli, field_int(claim, "attempt", 0)));
	put_env(cli, "STINT_QUEUE", field_text(task, "queue"));
	put_env(cli, "STINT_TITLE", field_text(task, "title"));
	buf_init(&payload, 32 << 20);
	if (!field_get(task, "payload")) { /* that of the task before is not this one's */
		cli_put(cli, "unset STINT_PAYLOAD\n");
		return;
	}
	json_put_value(&payload, field_get(task, "payload"));
	put_env(cli, "STINT_PAYLOAD", cli_span(cli, &payload));
}

static const struct column columns[] = {
	{"ID", "task.id", .paint = PAINT_BOLD},
	{"FENCE", .member = "fence"},
	{"LEASE", "leaseMs", COLUMN_DURATION, .right = true},
	{"TRY", "attempt", COLUMN_NUMBER, .right = true, .rank = 1},
	{"TITLE", "task.title", .shrinks = true},
};

static int put_table(struct cli *cli, yyjson_val *claims)
{
	struct table table;
	size_t at, count;
	yyjson_val *claim;

	table_init(&table, columns, sizeof columns / sizeof *columns, cli->term.utf8);
	yyjson_arr_foreach(claims, at, count, claim) view_add_row(cli, &table, claim);
	int r = view_put_rows(cli, &table, "claims", claims, "id");
	table_done(&table);
	return r;
}

static int put_claims(struct cli *cli, yyjson_val *claims)
{
	yyjson_val *first = yyjson_arr_get_first(claims), *claim;
	size_t at, count;

	if (!first && cli->output != OUTPUT_JSON)
		cli_say(cli, "nothing to claim");
	if (cli->output == OUTPUT_ENV && first) {
		put_claim_env(cli, first);
	} else if (cli->output == OUTPUT_JSON) {
		cli_put(cli, "{\"schema\":1,\"ok\":true,\"claim\":");
		cli_put_value(cli, first);
		cli_put(cli, ",\"claims\":");
		cli_put_value(cli, claims);
		cli_put(cli, "}\n");
	} else if (cli->output == OUTPUT_ID) {
		yyjson_arr_foreach(claims, at, count, claim)
			view_put_id(cli, field_text(field_get(claim, "task"), "id"));
	} else if (cli->output != OUTPUT_ENV) {
		return put_table(cli, claims);
	}
	return 0;
}

/* ---- the claim --------------------------------------------------------------------------------------------------- */

/* The server waits a minute at most: longer waits are several. */
static struct reply claim_next(struct cli *cli)
{
	int64_t left_ms = args_number(&cli->args, "wait", 0);

	for (;;) {
		int64_t wait_ms = left_ms < SERVER_WAIT_MS ? left_ms : SERVER_WAIT_MS;
		struct ask question = {.method = HTTP_METHOD_POST,
			.path = "/api/claims",
			.body = body_of(cli, wait_ms),
			.timeout_ms = wait_ms + 30000,
			.may_repeat = args_has(&cli->args, "request-id")};
		struct reply reply = server_need(cli, &question);
		left_ms -= wait_ms;
		if (yyjson_arr_size(field_get(reply.root, "claims")) > 0 || left_ms <= 0)
			return reply;
		reply_done(&reply);
	}
}

static int claim_some(struct cli *cli)
{
	cleanup(reply_done) struct reply reply = claim_next(cli);
	yyjson_val *claims = field_get(reply.root, "claims");
	bool empty = yyjson_arr_size(claims) == 0;

	int r = put_claims(cli, claims);
	return r == 0 && empty && args_has(&cli->args, "empty-exit") ? EXIT_EMPTY : r;
}

static int claim_task(struct cli *cli)
{
	cleanup(reply_done) struct reply reply =
		server_post(cli, "/api/tasks/*/claim", args_text(&cli->args, "id"), body_of(cli, 0));
	cleanup(buf_done) struct buf list = {0};

	buf_init(&list, 64 << 20);
	buf_put_byte(&list, '[');
	json_put_value(&list, reply.root);
	buf_put_byte(&list, ']');
	yyjson_doc *claims = cli_read_made(cli, &list);
	int r = put_claims(cli, yyjson_doc_get_root(claims));
	yyjson_doc_free(claims);
	return r;
}

static int run(struct cli *cli)
{
	if (cli->output == OUTPUT_ENV && args_number(&cli->args, "max", 1) > 1)
		return cli_fail(cli, EXIT_USAGE, "usage", "stint help claim",
			"-o env is for one claim: leave out --max");
	return args_has(&cli->args, "id") ? claim_task(cli) : claim_some(cli);
}

const struct verb verb_claim = {
	.name = "claim",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_ENV,
	.brief = "take work, in a script",
	.text = "Claims the next task, or as many as --max says, and prints it with its fence: the proof that it is ours. "
		"If there is nothing to claim, nothing is printed (with --json, \"claim\":null) and the exit status is 0, or 5 "
		"with --empty-exit.\n"
		"\n"
		"-o env prints export lines for a shell: STINT_TASK_ID, STINT_FENCE and STINT_WORKER_ID, which stint task "
		"reads, and STINT_ATTEMPT, STINT_QUEUE, STINT_TITLE and STINT_PAYLOAD.",
	.flags = flags,
	.examples =
		"stint claim --queues ci,default --wait 1m\n"
		"claim=$(stint claim -Q demo --empty-exit -o env) && eval \"$claim\" && make test && stint task done\n"
		"stint claim --id t-7k3 --json\n",
	.run = run,
};
