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

#include "base/files.h"
#include "base/take.h"
#include "cli/verb/task_view.h"
#include "config/machine.h"

static const struct flag create_flags[] = {
	{"kind", 'k', FLAG_TEXT, .value = "KIND",
		.text = "what it may do: admin, operator, producer, worker, viewer, approver, gate:NAME, emit, metrics, claim",
		.member = "kind"},
	{"name", 'n', FLAG_TEXT, .value = "NAME",
		.text = "the name of its holder, shown in events (default: the kind)", .member = "name"},
	{"queues", 'Q', FLAG_NAMES, OFFER_QUEUES, true, .value = "NAME,…", .text = "only these queues",
		.member = "queues"},
	{"expires", 0, FLAG_DURATION, .value = "TIME",
		.text = "valid for that long; 0 is for ever (default: workers 30d, others for ever)",
		.member = "expiresInMs"},
	{"task", 0, FLAG_TEXT, OFFER_TASKS, .value = "ID",
		.text = "the task of a claim (default $STINT_TASK_ID)"},
	{"fence", 0, FLAG_TEXT, .value = "N", .text = "the fence of a claim (default $STINT_FENCE)"},
	{"out", 0, FLAG_TEXT, OFFER_FILES, .value = "FILE",
		.text = "into a new file that only you can read, instead of the terminal"},
	{0},
};

/* A claim is named as in stint task; any other token has a name. */
static void put_body(struct cli *cli, struct json_object *body)
{
	const struct args *args = &cli->args;
	const char *kind = args_text(args, "kind");
	const char *task = args_text(args, "task"), *fence = args_text(args, "fence");

	cli_member_flags(cli, body);
	if (strcmp(kind, "claim") == 0) {
		cli_member_text(body, "task", task ? task : getenv("STINT_TASK_ID"));
		cli_member_text(body, "fence", fence ? fence : getenv("STINT_FENCE"));
	} else if (!args_has(args, "name")) {
		json_member_string(body, "name", span_of(kind));
	}
}

/* The file is made before the token: a token that cannot be written anywhere would be valid and lost. */
static int make_file(struct cli *cli, const char *path, int *ret_fd)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 && errno == EEXIST)
		return cli_fail(
			cli, EXIT_USAGE, "exists", NULL, "%s exists already; no token was made", path);
	if (fd < 0)
		return cli_fail(cli, EXIT_FAILED, "failed", NULL, "cannot make %s: %s; no token was made",
			path, strerror(errno));
	*ret_fd = fd;
	return 0;
}

static int write_file(struct cli *cli, int fd, const char *path, yyjson_val *token)
{
	const char *line = cli_text(cli, "%.*s\n", SPAN_ARGS(field_text(token, "token")));

	int r = file_write_all(fd, span_of(line));
	if (r == 0)
		return 0;
	unlink(path);
	return cli_fail(cli, EXIT_FAILED, "failed",
		cli_text(cli, "stint token revoke %.*s", SPAN_ARGS(field_text(token, "id"))),
		"cannot write the token to %s: %s", path, strerror(-r));
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
	cleanup(close_at) int fd = -1;
	cleanup(reply_done) struct reply reply = {0};

	if (!args_has(&cli->args, "kind"))
		return cli_fail(cli, EXIT_USAGE, "usage", "stint token create --kind worker --name ci-1",
			"a token needs --kind: what it may do");
	if (args_has(&cli->args, "queues") &&
		!args_text(&cli->args, "queues")[strspn(args_text(&cli->args, "queues"), ",")])
		return cli_fail(cli, EXIT_USAGE, "usage", "stint queue ls",
			"--queues names no queue; leave it out for all of them");
	put_body(cli, cli_body(cli));
	struct ask question = {.method = HTTP_METHOD_POST, .path = "/api/tokens", .body = cli_body_end(cli)};
	int r = out ? make_file(cli, out, &fd) : 0;
	if (r != 0)
		return r;
	r = server_ask(cli, &question, &reply);
	if (r != 0) {
		if (out)
			unlink(out);
		return r;
	}
	struct span token = field_text(reply.root, "token");
	if (out)
		r = write_file(cli, fd, out, reply.root);
	if (r == 0 && cli->output == OUTPUT_JSON)
		r = put_token(cli, reply.root, !out);
	else if (r == 0)
		cli_put(cli, "%.*s\n", SPAN_ARGS(out ? span_of(out) : token));
	if (r == 0)
		cli_say(cli, "token %.*s; it is not shown again, and stint token revoke %.*s ends it",
			SPAN_ARGS(field_text(reply.root, "id")), SPAN_ARGS(field_text(reply.root, "id")));
	return r;
}

const struct verb verb_token_create = {
	.name = "token create",
	.gives = GIVES_JSON,
	.brief = "a credential for somebody",
	.text = "Makes a token and prints it, once. Kinds: admin (everything), operator (looks, cancels, retries, answers), "
		"producer (adds tasks), worker (claims and reports), viewer (looks), approver (looks, answers, passes gates), "
		"gate:NAME (passes that gate), emit (reports events from outside), metrics (/metrics alone), claim (reports on "
		"the one task that is claimed).",
	.flags = create_flags,
	.examples = "stint token create --kind worker --name ci-1 --queues ci --out ci-1.token\n"
		    "stint token create --kind viewer --name dashboard --expires 30d\n",
	.run = run_create,
};

/* ---- which there are --------------------------------------------------------------------------------------------- */

static struct span state_of(struct cli *cli, yyjson_val *token)
{
	int64_t expires_ms = field_int(token, "expiresAt", 0);

	if (field_int(token, "revokedAt", 0) != 0)
		return SPAN("revoked");
	return expires_ms != 0 && expires_ms <= cli->now_ms ? SPAN("expired") : SPAN("live");
}

static const struct column columns[] = {
	{"ID", "id", .paint = PAINT_BOLD},
	{"KIND", .member = "kind"},
	{"NAME", "name", .shrinks = true},
	{"STATE", .make = state_of, .kind = COLUMN_STATE},
	{"CREATED", "createdAt", COLUMN_MOMENT, .right = true, .rank = 3},
	{"EXPIRES", "expiresAt", COLUMN_MOMENT, .right = true, .rank = 1},
	{"BY", "createdBy", .shrinks = true, .rank = 2},
};

static const struct list_view tokens = {
	.path = "/api/tokens",
	.key = "tokens",
	.id = "id",
	VIEW_COLUMNS(columns),
	.none = "no tokens other than the one in admin.token",
};

const struct verb verb_token_ls = {
	.name = "token ls",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "the tokens there are",
	.text = "Lists the tokens that were made, and whether they are still valid. The secret texts are not kept.",
	.examples = "stint token ls\n",
	.list = &tokens,
};

const struct verb verb_token_revoke = {
	.name = "token revoke",
	.arguments = "ID...",
	.most = 100,
	.offer = OFFER_TOKENS,
	.gives = GIVES_JSON,
	.brief = "end it at once",
	.text = "Ends tokens: the next request with one of them is refused, and streams that are open end.",
	.examples = "stint token revoke 0123456789abcdef\n",
	.change = &(const struct change){"token", "/api/tokens/*", .deletes = true, .done = "is revoked"},
};

/* ---- the key that signs ------------------------------------------------------------------------------------------ */

static const struct flag rotate_flags[] = {
	{"key", 0, FLAG_SWITCH, .text = "the key that signs the tokens of worker instances and claims"},
	{0},
};

static int rotate_key(struct cli *cli)
{
	cleanup(reply_done) struct reply reply = {0};
	struct ask question = {.method = HTTP_METHOD_POST, .path = "/api/signing-keys", .body = SPAN("{}")};

	int r = server_ask(cli, &question, &reply);
	if (r != 0)
		return r;
	yyjson_val *keys = field_get(reply.root, "keys");
	struct span id = field_text(yyjson_arr_get(keys, 0), "id");
	struct span before = field_text(yyjson_arr_get(keys, 1), "id");
	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "keys", reply.root);
	cli_put(cli, "%.*s\n", SPAN_ARGS(id));
	if (before.len > 0)
		cli_say(cli,
			"key %.*s signs from now on; what %.*s signed stays valid until the next rotation, and older tokens are refused",
			SPAN_ARGS(id), SPAN_ARGS(before));
	return 0;
}

/* ---- a new secret for the token that is used ---------------------------------------------------------------------- */

static int no_secret(struct cli *cli, int fault, const char *file)
{
	if (fault == -ENOSYS)
		return cli_fail(cli, EXIT_FAILED, "no_openssl", "apt install libssl3",
			"a new secret needs OpenSSL 3 (libssl.so.3), which is not installed here");
	if (fault == -EINVAL)
		return cli_fail(cli, EXIT_USAGE, "usage", "stint token rotate --token-file FILE",
			"there is no token here that could get a new secret");
	return cli_fail(cli, EXIT_FAILED, "failed", NULL,
		"cannot keep the new secret beside %s: %s; nothing was changed", file ? file : "the token",
		strerror(-fault));
}

/* One that waits beside the file, of a try whose answer was lost, is shown again. */
static int make_secret(struct cli *cli, const char *file, char token[MACHINE_TOKEN_BYTES])
{
	struct span own = span_of(cli->place.token);
	int r = file ? machine_read_next(file, token) : -ENOENT;

	if (r == 0 && span_equal(machine_token_id(span_of(token)), machine_token_id(own)))
		return 0;
	if (own.len == 0)
		return -EINVAL;
	r = machine_mint(own, token);
	return r == 0 && file ? machine_keep_next(file, token) : r;
}

/* The new secret is on disk before the server hears of it, and takes the place of the old one when the server has it. */
static int rotate_own(struct cli *cli)
{
	cleanup(reply_done) struct reply reply = {0};
	char token[MACHINE_TOKEN_BYTES], hash[MACHINE_HASH_BYTES];

	int r = place_find(cli);
	if (r != 0)
		return r;
	const char *file = strchr(cli->place.token_from, '/') ? cli->place.token_from : NULL;
	if (file && strcmp(strrchr(file, '/'), "/admin.token") == 0)
		return cli_fail(cli, EXIT_USAGE, "usage", "stint token rotate --token-file FILE",
			"%s is replaced by removing it and starting the server again; name another token",
			file);
	r = make_secret(cli, file, token);
	if (r == 0)
		r = machine_hash(span_of(token), hash);
	if (r < 0)
		return no_secret(cli, r, file);
	json_member_string(cli_body(cli), "hash", span_of(hash));
	struct ask question = {.method = HTTP_METHOD_POST, .path = "/api/renew", .body = cli_body_end(cli)};
	r = server_ask(cli, &question, &reply);
	if (r == 0 && file && (r = machine_take_next(file)) < 0)
		return cli_fail(cli, EXIT_FAILED, "failed", NULL,
			"the new secret is in %s.next and cannot take the place of %s: %s", file, file,
			strerror(-r));
	if (r != 0)
		return r;
	if (cli->output == OUTPUT_JSON)
		r = put_token(cli, reply.root, true);
	else
		cli_put(cli, "%s\n", file ? file : token);
	cli_say(cli,
		"token %.*s has a new secret%s; the one before is valid until this one is used, at most for 24 h",
		SPAN_ARGS(field_text(reply.root, "id")), file ? " in that file" : "");
	return r;
}

static int run_rotate(struct cli *cli)
{
	return args_has(&cli->args, "key") ? rotate_key(cli) : rotate_own(cli);
}

const struct verb verb_token_rotate = {
	.name = "token rotate",
	.gives = GIVES_JSON,
	.brief = "a new secret, or signing key",
	.text = "Gives the token that this command uses a new secret: in its file (--token-file, STINT_TOKEN_FILE), or printed if it came "
		"without one. The secret before stays valid until the new one is used, at most for 24 hours. With --key it makes a new key "
		"that signs the tokens of worker instances and of claims instead. The key before it stays valid, so running work "
		"goes on. Rotating twice ends every token that was signed before: workers register again. The server makes a new key "
		"by itself after 90 days, and after a restore.",
	.flags = rotate_flags,
	.examples = "stint token rotate --token-file ci-1.token\nstint token rotate --key\n",
	.run = run_rotate,
};
