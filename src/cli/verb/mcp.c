/*
 * stint mcp: MCP on standard input and output, for an agent that starts its servers as programs. The server speaks the protocol
 * (POST /mcp); this verb passes one message per line to it and writes each reply on a line. It ends with its standard input, or
 * with a signal. It never beats: under a supervisor that is the supervisor's work.
 *
 * A message that the server did not take (no server, a wrong token) is answered here with an error of JSON-RPC, because an agent
 * does not show what its servers write to standard error.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/take.h"
#include "cli/frame/cli.h"
#include "cli/verb/verbs.h"

enum {
	LINE_MAX_BYTES = 1 << 20,
	CALL_MS = 45 * 1000, /* clients give up after 60 s */
	RPC_UNREACHABLE = -32000,
	RPC_UNREADABLE = -32700,
};

static void put_id(struct json_object *message, yyjson_val *id)
{
	json_put_key(message, "id");
	if (id)
		json_put_value(message->buf, id);
	else
		buf_put_span(message->buf, SPAN("null"));
}

static void put_error(struct cli *cli, yyjson_val *id, int code, const char *text)
{
	struct json_object message, error;

	json_begin(&message, &cli->out);
	json_member_word(&message, "jsonrpc", "2.0");
	put_id(&message, id);
	json_put_key(&message, "error");
	json_begin(&error, &cli->out);
	json_member_int(&error, "code", code);
	json_member_string(&error, "message", span_of(text));
	json_end(&error);
	json_end(&message);
	cli_put(cli, "\n");
}

/* A reply of the server is a message of JSON-RPC, or a problem of HTTP, or from somebody in between. */
static void put_reply(struct cli *cli, yyjson_val *id, const struct http_answer *answer)
{
	struct span body = http_answer_body(answer);
	yyjson_doc *doc = NULL;

	if (body.len == 0)
		return;
	int r = json_read_reply(body, &doc);
	yyjson_val *root = yyjson_doc_get_root(doc);
	if (r == 0 && yyjson_obj_get(root, "jsonrpc"))
		cli_put_value(cli, root);
	else if (field_text(root, "detail").len > 0)
		put_error(cli, id, RPC_UNREACHABLE,
			cli_text(cli, "%.*s", SPAN_ARGS(field_text(root, "detail"))));
	else
		put_error(cli, id, RPC_UNREACHABLE,
			cli_text(cli, "The server answers %d.", http_answer_status(answer)));
	if (r == 0 && yyjson_obj_get(root, "jsonrpc"))
		cli_put(cli, "\n");
	yyjson_doc_free(doc);
}

/* One message. 0, or the ending. */
static int pass_on(struct cli *cli, struct span line)
{
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(line, &complaint);
	yyjson_val *id = yyjson_obj_get(yyjson_doc_get_root(doc), "id");
	struct http_answer *answer;
	enum http_reach reach;

	if (!doc) {
		put_error(cli, NULL, RPC_UNREADABLE, complaint.reason);
		return cli_flush(cli);
	}
	struct http_call request = {
		.method = HTTP_METHOD_POST,
		.target = args_has(&cli->args, "admin") ? SPAN("/mcp?transport=stdio&admin=true")
							: SPAN("/mcp?transport=stdio"),
		.body = line,
		.token = server_token(cli),
		.accept = SPAN("application/json"),
		.timeout_ms = CALL_MS,
	};
	int r = http_client_call(cli->client, &request, &answer, &reach);
	if (r == 0)
		put_reply(cli, id, answer);
	else if (id)
		put_error(cli, id, RPC_UNREACHABLE,
			cli_text(cli, "The server at %s does not answer (%s); %s.", cli->place.url,
				strerror(-r),
				reach == HTTP_REACH_NOTHING ? "nothing was changed"
							    : "whether anything was changed is not known"));
	return cli_flush(cli);
}

/* All whole lines of the input, each with its reply. 0, or the ending. */
static int pass_on_lines(struct cli *cli, struct buf *input)
{
	size_t at = 0;
	const char *end;

	while ((end = memchr(input->data + at, '\n', input->len - at))) {
		struct span line = {input->data + at, (size_t)(end - input->data) - at};
		if (line.len > 0 && line.data[line.len - 1] == '\r')
			line.len--;
		int r = line.len > 0 ? pass_on(cli, line) : 0;
		if (r != 0)
			return r;
		at = (size_t)(end - input->data) + 1;
	}
	memmove(input->data, input->data + at, input->len - at);
	input->len -= at;
	return 0;
}

static int run(struct cli *cli)
{
	cleanup(buf_done) struct buf input = {.max = 2 * LINE_MAX_BYTES};
	int r = server_find(cli);

	while (r == 0) {
		char piece[16 << 10];
		ssize_t len = read(STDIN_FILENO, piece, sizeof piece);
		if (len < 0 && errno == EINTR)
			continue;
		if (len <= 0)
			return 0;
		buf_put_span(&input, (struct span){piece, (size_t)len});
		if (buf_fault(&input))
			return cli_fail(cli, EXIT_USAGE, "too_large", NULL,
				"a message may have %d bytes at most", LINE_MAX_BYTES);
		r = pass_on_lines(cli, &input);
	}
	return r;
}

static const struct flag flags[] = {
	{"admin", 0, FLAG_SWITCH, .text = "let the agent use the token of an admin"},
	{0},
};

const struct verb verb_mcp = {
	.name = "mcp",
	.brief = "tools for an agent, by MCP",
	.text = "Speaks the Model Context Protocol on standard input and output, until its input ends: agents start it as one of "
		"their servers. The token decides which tools there are. In a task (STINT_TOKEN_FILE) they are about that task: get_task, "
		"progress, done, review, fail, block, release, ask_approval. Any other token gets list_tasks, get_task, enqueue and "
		"what else it may do; never the passing of gates. The token of an admin is refused without --admin. docs/mcp.md has "
		"the configuration of agents; POST /mcp of the server is the same over HTTP.",
	.flags = flags,
	.examples = "claude mcp add stint -- stint mcp --token-file ~/agent.token\n"
		    "echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}' | stint mcp\n",
	.run = run,
};
