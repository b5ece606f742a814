/*
 * stint token: credentials for others. The text of a new one is printed once and kept nowhere: not by the server, and
 * not by us.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/take.h"
#include "cli/verb/task_view.h"

static const struct flag create_flags[] = {
	{"kind", 'k', FLAG_TEXT, .value = "KIND",
		.text = "what it may do: admin, operator, producer, worker, viewer, approver, gate:NAME, emit, metrics, claim"},
	{"name", 'n', FLAG_TEXT, .value = "NAME",
		.text = "the name of its holder, shown in events (default: the kind)"},
	{"queues", 'Q', FLAG_NAMES, OFFER_QUEUES, true, .value = "NAME,…", .text = "only these queues"},
	{"expires", 0, FLAG_DURATION, .value = "TIME",
		.text = "good for that long; 0 is for ever (default: workers 30d, others for ever)"},
	{"task", 0, FLAG_TEXT, OFFER_TASKS, .value = "ID",
		.text = "the task of a claim (default $STINT_TASK_ID)"},
	{"fence", 0, FLAG_TEXT, .value = "N", .text = "the fence of a claim (default $STINT_FENCE)"},
	{"out", 0, FLAG_TEXT, OFFER_FILES, .value = "FILE",
		.text = "into a new file that only you can read, instead of the terminal"},
	{0},
};

/* Which claim: as in stint task. */
static void put_claim(struct cli *cli, struct json_object *body)
{
	const char *task = args_text(&cli->args, "task"), *fence = args_text(&cli->args, "fence");

	task = task ? task : getenv("STINT_TASK_ID");
	fence = fence ? fence : getenv("STINT_FENCE");
	if (task)
		json_member_string(body, "task", span_of(task));
	if (fence)
		json_member_string(body, "fence", span_of(fence));
}

static int put_body(struct cli *cli, struct buf *text)
{
	const struct args *args = &cli->args;
	const char *name = args_text(args, "name");
	struct json_object body;

	json_begin(&body, text);
	json_member_string(&body, "kind", span_of(args_text(args, "kind")));
	if (strcmp(args_text(args, "kind"), "claim") == 0)
		put_claim(cli, &body);
	if (name || strcmp(args_text(args, "kind"), "claim") != 0)
		json_member_string(&body, "name", span_of(name ? name : args_text(args, "kind")));
	if (args_has(args, "expires"))
		json_member_int(&body, "expiresInMs", args_number(args, "expires", 0));
	cli_member_names(cli, &body, "queues", "queues");
	return json_end(&body);
}

/* The file is made before the token: a token that cannot be written anywhere would be valid and lost. */
static int make_file(struct cli *cli, const char *path, int *ret_fd)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 && errno == EEXIST)
		return cli_fail(
			cli, EXIT_USAGE, "exists", NULL, "%s is there already; nothing was made", path);
	if (fd < 0)
		return cli_fail(cli, EXIT_FAILED, "failed", NULL, "cannot make %s: %s; no token was made",
			path, strerror(errno));
	*ret_fd = fd;
	return 0;
}

static int write_file(struct cli *cli, int fd, const char *path, yyjson_val *token)
{
	const char *line = cli_text(cli, "%.*s\n", SPAN_ARGS(field_text(token, "token")));

	if (write(fd, line, strlen(line)) == (ssize_t)strlen(line))
		return 0;
	int fault = errno;
	unlink(path);
	return cli_fail(cli, EXIT_FAILED, "failed",
		cli_text(cli, "stint token revoke %.*s", SPAN_ARGS(field_text(token, "id"))),
		"cannot write the token to %s: %s", path, strerror(fault));
}

/* The token as JSON; its text only where it goes nowhere else. */
static int put_token(struct cli *cli, yyjson_val *token, bool with_text)
{
	cleanup(buf_done) struct buf json = {0};
	struct json_object object;

	buf_init(&json, 1 << 20);
	json_begin(&object, &json);
	cli_members_of(&object, token, with_text ? NULL : "token");
	json_end(&object);
	return cli_put_json_buf(cli, true, "token", &json);
}

static int run_create(struct cli *cli)
{
	const char *out = args_text(&cli->args, "out");
	cleanup(buf_done) struct buf body = {0};
	cleanup(close_at) int fd = -1;
	struct reply reply;

	if (!args_has(&cli->args, "kind"))
		return cli_fail(cli, EXIT_USAGE, "usage", "stint token create --kind worker --name ci-1",
			"say what the token is for: --kind");
	if (args_has(&cli->args, "queues") &&
		!args_text(&cli->args, "queues")[strspn(args_text(&cli->args, "queues"), ",")])
		return cli_fail(cli, EXIT_USAGE, "usage", "stint queue ls",
			"--queues names no queue; leave it out for all of them");
	buf_init(&body, 128 << 10);
	put_body(cli, &body);
	int r = out ? make_file(cli, out, &fd) : 0;
	if (r != 0)
		return r;
	r = server_post(cli, "/api/tokens", NULL, cli_span(cli, &body), &reply);
	if (r != 0) {
		if (out)
			unlink(out);
		return r;
	}
	struct span token = field_text(reply.root, "token");
	if (out)
		r = write_file(cli, fd, out, reply.root);
	if (r == 0 && cli->form == FORM_JSON)
		r = put_token(cli, reply.root, !out);
	else if (r == 0)
		cli_put(cli, "%.*s\n", SPAN_ARGS(out ? span_of(out) : token));
	if (r == 0)
		cli_say(cli, "token %.*s; it is not shown again, and stint token revoke %.*s ends it",
			SPAN_ARGS(field_text(reply.root, "id")), SPAN_ARGS(field_text(reply.root, "id")));
	reply_done(&reply);
	return r;
}

const struct verb verb_token_create = {
	.name = "token create",
	.group = GROUP_ADMIN,
	.arguments = "",
	.gives = GIVES_JSON,
	.brief = "a credential for somebody",
	.text = "Makes a token and prints it, once. Kinds: admin (everything), operator (looks, cancels, retries, answers), "
		"producer (adds tasks), worker (claims and reports), viewer (looks), approver (looks, answers, passes gates), "
		"gate:NAME (passes that gate), emit (tells of events from outside), metrics (/metrics alone), claim (reports on "
		"the one task that is claimed).",
	.flags = create_flags,
	.examples = "stint token create --kind worker --name ci-1 --queues ci --out ci-1.token\n"
		    "stint token create --kind viewer --name dashboard --expires 30d\n",
	.run = run_create,
};

/* ---- which there are --------------------------------------------------------------------------------------------- */

enum { C_ID, C_KIND, C_NAME, C_STATE, C_CREATED, C_EXPIRES, C_BY, C_COUNT };

static const struct column columns[C_COUNT] = {
	[C_ID] = {.name = "ID"},
	[C_KIND] = {.name = "KIND"},
	[C_NAME] = {.name = "NAME", .shrinks = true},
	[C_STATE] = {.name = "STATE"},
	[C_CREATED] = {.name = "CREATED", .right = true, .rank = 3},
	[C_EXPIRES] = {.name = "EXPIRES", .right = true, .rank = 1},
	[C_BY] = {.name = "BY", .shrinks = true, .rank = 2},
};

static struct span state_of(struct cli *cli, yyjson_val *token)
{
	int64_t expires_ms = field_int(token, "expiresAt", 0);

	if (field_int(token, "revokedAt", 0) != 0)
		return SPAN("revoked");
	return expires_ms != 0 && expires_ms <= cli->now_ms ? SPAN("expired") : SPAN("live");
}

static void add_row(struct cli *cli, struct table *table, yyjson_val *token)
{
	struct span state = state_of(cli, token);
	enum paint paint = span_equal(state, SPAN("live")) ? PAINT_GREEN : PAINT_DIM;

	table_row(table);
	table_cell(table, C_ID, field_text(token, "id"), PAINT_BOLD);
	table_cell(table, C_KIND, field_text(token, "kind"), PAINT_NONE);
	table_cell(table, C_NAME, field_text(token, "name"), PAINT_NONE);
	table_cell(table, C_STATE, state, paint);
	table_cell(table, C_CREATED, view_relative(cli, field_int(token, "createdAt", 0)), PAINT_NONE);
	table_cell(table, C_EXPIRES, view_relative(cli, field_int(token, "expiresAt", 0)), PAINT_NONE);
	table_cell(table, C_BY, field_text(token, "createdBy"), PAINT_NONE);
}

static int run_ls(struct cli *cli)
{
	static const struct list_view view = {
		.path = "/api/tokens",
		.key = "tokens",
		.id = "id",
		.columns = columns,
		.column_count = C_COUNT,
		.add = add_row,
		.none = "no tokens other than the one in admin.token",
	};

	return view_put_list(cli, &view);
}

const struct verb verb_token_ls = {
	.name = "token ls",
	.group = GROUP_ADMIN,
	.arguments = "",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "who has which",
	.text = "Lists the tokens that were made, and whether they are still good. The tokens themselves are not kept.",
	.examples = "stint token ls\n",
	.run = run_ls,
};

static int run_revoke(struct cli *cli)
{
	int status = 0;

	for (size_t i = 0; i < cli->args.plain_count; i++) {
		const char *id = args_plain(&cli->args, i);
		struct ask question = {.method = HTTP_METHOD_DELETE,
			.path = "/api/tokens/*",
			.names = {id},
			.body = SPAN("{}"),
			.may_repeat = true};
		struct reply reply;
		int r = server_ask(cli, &question, &reply);
		if (r == 0) {
			if (cli->form == FORM_JSON)
				cli_put_json(cli, "token", reply.root);
			else
				cli_put(cli, "%s\n", id);
			cli_say(cli, "%s is revoked", id);
			reply_done(&reply);
		}
		status = status != 0 ? status : r;
	}
	return status;
}

const struct verb verb_token_revoke = {
	.name = "token revoke",
	.group = GROUP_ADMIN,
	.arguments = "ID...",
	.least = 1,
	.most = 100,
	.offer = OFFER_TOKENS,
	.gives = GIVES_JSON,
	.brief = "end it at once",
	.text = "Ends tokens: the next request with one of them is refused, and streams that are open end.",
	.examples = "stint token revoke 0123456789abcdef\n",
	.run = run_revoke,
};
