/*
 * Asking the server: one request, one reply, and every way in which that can fail told in one place.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/take.h"
#include "cli/frame/cli.h"
#include "wire/sse.h"
#include "wire/trace.h"

enum {
	TIMEOUT_MS = 30000,
	PROBE_MS = 2000,
	PATIENCE_MS = 1000,  /* then doubled … */
	DOUBLED_MAX = 3,     /* … so often */
	TAKE_OVER_TRIES = 4, /* of a call to servers that share a store: 15 s */
	STREAM_IDLE_MS = 1000,
	STREAM_DEAD_MS = 45000,  /* the server says something every 15 s */
	RECONNECT_MS_MAX = 5000, /* between two tries: 0.2, 1, 2, 3, … s */
	RECONNECTS_MAX = 60,     /* in a row, without an event: about five minutes */
	EVENT_BYTES_MAX = 8 << 20,
	PATH_BYTES_MAX = 16 << 10,
};

struct span cli_encode(struct cli *cli, struct span text)
{
	cleanup(buf_done) struct buf out = {0};

	buf_init(&out, PATH_BYTES_MAX);
	if (http_encode(text, &out) == -E2BIG)
		return SPAN("-"); /* longer than any name, so the server does not know it */
	return span_of(cli_text(cli, "%.*s", SPAN_ARGS(cli_span(cli, &out))));
}

int server_find(struct cli *cli)
{
	struct http_answer_limits limits = http_answer_limits_default();
	int r = cli->client ? 0 : place_find(cli);

	if (r != 0 || cli->client)
		return r;
	cli->client = http_client_new(&cli->place.address, &limits);
	return cli->client ? 0 : cli_fail_fault(cli, -ENOMEM);
}

int server_probe(const char *url)
{
	struct http_answer_limits limits = http_answer_limits_default();
	struct http_call call = {.method = HTTP_METHOD_GET, .target = SPAN("/livez"), .timeout_ms = PROBE_MS};
	struct http_address address;
	struct http_answer *answer;
	enum http_reach reach;
	const char *complaint;

	if (http_address_parse(url, &address, &complaint) < 0)
		return -EINVAL;
	bool secure = address.secure;
	address.secure = false; /* a port of TLS says so by HTTP, which is life enough, and needs no trust */
	struct http_client *client = http_client_new(&address, &limits);
	int r = client ? http_client_call(client, &call, &answer, &reach) : -ENOMEM;
	if (r == 0 && http_answer_status(answer) != (secure ? 400 : 200))
		r = -EPROTO;
	http_client_free(client);
	return r;
}

struct span server_token(const struct cli *cli)
{
	return cli->place.token[0] ? span_of(cli->place.token) : (struct span){0};
}

void reply_done(struct reply *reply)
{
	yyjson_doc_free(reply->doc);
	*reply = (struct reply){0};
}

/* ---- what can go wrong ------------------------------------------------------------------------------------ */

static int tell_fault(struct cli *cli, int fault, enum http_reach reach, bool changes)
{
	const char *url = cli->place.url;

	if (fault == -ENOMEM)
		return cli_fail(cli, EXIT_FAILED, "failed", changes ? "stint events" : NULL,
			changes && reach != HTTP_REACH_NOTHING
				? "no memory for the reply: the change may have been made or not"
				: "no memory");
	if (fault == -EINVAL)
		return cli_fail(cli, EXIT_USAGE, "invalid", NULL, "a value has a control character in it");
	if (reach == HTTP_REACH_NOTHING && fault == -EKEYREJECTED)
		return cli_fail(cli, EXIT_UNREACHABLE, "untrusted",
			"stint doctor --ca ca.crt   # with the certificate of the server's authority",
			"%s is not trusted, and nothing was sent: %s", url,
			http_client_complaint(cli->client));
	if (reach == HTTP_REACH_NOTHING && fault == -EPROTO)
		return cli_fail(cli, EXIT_UNREACHABLE, "unreachable", "stint doctor",
			"no https is spoken at %s: %s", url, http_client_complaint(cli->client));
	if (reach == HTTP_REACH_NOTHING)
		return cli_fail(cli, EXIT_UNREACHABLE, "unreachable", "stint doctor",
			"no server answers at %s: %s", url, strerror(-fault));
	if (reach == HTTP_REACH_REPLY && fault != -ETIMEDOUT)
		return cli_fail(cli, EXIT_UNREACHABLE, "unreachable", "stint doctor",
			"%s is not a stint server: %s", url,
			fault == -E2BIG ? "the reply is too large" : "the reply cannot be read");
	return cli_fail(cli, EXIT_UNREACHABLE, "unreachable", changes ? "stint events" : "stint doctor",
		changes ? "%s: %s before the reply came: the change may have been made or not"
			: "%s: %s before the reply came",
		url, fault == -ETIMEDOUT ? "no answer in time" : "the connection broke");
}

/* The task that the request, or else the command, is about; NULL: not about a task. */
static const char *task_meant(struct cli *cli, const struct ask *ask)
{
	if (strncmp(ask->path, "/api/tasks/*", strlen("/api/tasks/*")) == 0)
		return ask->names[0];
	const char *plain = cli->verb->offer == OFFER_TASKS ? args_plain(&cli->args, 0) : NULL;
	const char *flag =
		args_text(&cli->args, "id") ? args_text(&cli->args, "id") : args_text(&cli->args, "task");

	return plain ? plain : flag ? flag : getenv("STINT_TASK_ID");
}

#define NEW_APPROVER \
	"stint token create --kind approver --name reviewer --out reviewer.token   # by an admin; then --token-file reviewer.token"

/* Commands that help with a refusal, the first that fits: NULL and 0 fit all. A $word at the end is a value of the command
 * line, and a row without that value does not fit. */
static const struct refusal_fix {
	int status;
	const char *code, *verb, *command;
} refusal_fixes[] = {
	{0, "EXECUTION_DISARMED", NULL, "stint arm"},
	{403, NULL, "claim", "stint claim --worker me   # or, by an admin: stint token create --kind worker"},
	{403, NULL, "approve", NEW_APPROVER},
	{403, NULL, "deny", NEW_APPROVER},
	{403, NULL, NULL, "stint token create --kind operator   # by an admin"},
	{503, NULL, NULL, "stint doctor"},
	{429, NULL, NULL, "stint doctor"},
	{0, "cursor_gone", NULL, "stint events"},
	{0, "queue_draining", NULL, "stint queue resume $queue"},
	{0, "queue_draining", NULL, "stint queue resume default"},
	{0, "slot_quarantined", NULL, "stint slot unquarantine $slot"},
	{0, "slot_quarantined", NULL, "stint slot ls"},
	{0, "slot_taken", NULL, "stint slot ls"},
	{0, "gate_required", "task done", "stint task review   # others decide: stint inbox"},
	{0, "task_exists", NULL, "stint show $task"},
	{0, "task_exists", NULL, "stint ls"},
	{409, NULL, NULL, "stint why $task"},
};

/* The command with its value in place; NULL: that was not given. */
static const char *fill_fix(struct cli *cli, const struct ask *ask, const char *command)
{
	const char *word = strchr(command, '$');
	if (!word)
		return command;
	const char *value =
		strcmp(word, "$task") == 0 ? task_meant(cli, ask) : args_text(&cli->args, word + 1);

	return value ? cli_text(cli, "%.*s%s", (int)(word - command), command, cli_quote(cli, value)) : NULL;
}

/* The compatibility APIs name these members differently. */
static struct span first_text(yyjson_val *root, const char *first, const char *second)
{
	struct span text = field_text(root, first);

	return text.len > 0 ? text : field_text(root, second);
}

/* How to make a token of that kind. */
static const char *new_token(const char *kind)
{
	static const struct {
		const char *kind, *command;
	} rows[] = {
		{"viewer", "stint token create --kind viewer   # by an admin"},
		{"producer", "stint token create --kind producer   # by an admin"},
		{"worker", "stint token create --kind worker   # by an admin"},
		{"approver", "stint token create --kind approver   # by an admin"},
		{"emit", "stint token create --kind emit   # by an admin"},
		{"metrics", "stint token create --kind metrics   # by an admin"},
		{"admin", "stint token create --kind admin   # by an admin"},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (strcmp(rows[i].kind, kind) == 0)
			return rows[i].command;
	}
	return "stint token create --kind operator   # by an admin";
}

static const char *fix_of(struct cli *cli, const struct ask *ask, int status, yyjson_val *problem)
{
	const char *list = offers[cli->verb->offer].command, *fix, *needs = field_cstr(cli, problem, "needs");
	struct span code = first_text(problem, "code", "error");
	bool judges = strcmp(cli->verb->name, "approve") == 0 || strcmp(cli->verb->name, "deny") == 0;

	if (status == 401)
		return cli->place.token[0] ? "stint doctor" : CLI_NEW_TOKEN;
	if (status == 404)
		return list ? list : "stint ls --all";
	if (needs[0] && !judges)
		return new_token(needs);
	for (size_t i = 0; i < sizeof refusal_fixes / sizeof *refusal_fixes; i++) {
		const struct refusal_fix *row = &refusal_fixes[i];
		if ((row->status == 0 || row->status == status) && (!row->code || span_is(code, row->code)) &&
			(!row->verb || strcmp(row->verb, cli->verb->name) == 0) &&
			(fix = fill_fix(cli, ask, row->command)))
			return fix;
	}
	return cli_text(cli, "stint help %s", cli->verb->name);
}

/* The flag that gives the request this member, or this part of its query; NULL: none. */
static const char *flag_of(const struct verb *verb, struct span member)
{
	if (verb->stands_in)
		return NULL;
	for (const struct flag *flag = verb->flags; flag && flag->name; flag++) {
		if (span_is(member, flag->member ? flag->member : flag->name))
			return flag->name;
	}
	return span_is(member, "blockedBy") ? "after" : NULL;
}

/* "errors": which fields, and what is wrong with them. */
static const char *errors_of(struct cli *cli, yyjson_val *problem)
{
	const char *text = "";
	size_t at, count;
	yyjson_val *error;

	yyjson_arr_foreach(field_get(problem, "errors"), at, count, error)
	{
		struct span name = field_text(error, "field"), message = field_text(error, "message");
		const char *flag = flag_of(cli->verb, name);
		text = cli_text(cli, "%s%s%s%.*s%s%.*s", text, at > 0 ? "; " : "", flag ? "--" : "",
			SPAN_ARGS(flag ? span_of(flag) : name), name.len > 0 ? " " : "", SPAN_ARGS(message));
		if (at == 8)
			break;
	}
	return text;
}

/* The noun of the path, with a space behind it. */
static const char *noun_of(struct cli *cli, const char *path)
{
	for (size_t i = 0; i < OFFER_COUNT; i++) {
		size_t len = offers[i].noun ? strcspn(offers[i].path, "?") : 0;
		if (len > 0 && strncmp(path, offers[i].path, len) == 0 && path[len] == '/')
			return cli_text(cli, "%s ", offers[i].noun);
	}
	return "";
}

/* 401: which token was meant, or where one would have been looked for. */
static int tell_unknown(struct cli *cli, const char *code, const char *fix)
{
	const struct server_place *place = &cli->place;

	if (place->token[0])
		return cli_fail(cli, EXIT_UNAUTHORISED, code, fix,
			"the server at %s does not know the token from %s", place->url, place->token_from);
	return cli_fail(cli, EXIT_UNAUTHORISED, code, fix,
		"no token: none of --token, --token-file, $STINT_TOKEN and $STINT_TOKEN_FILE is set%s%s%s",
		cli->home[0] ? ", and there is no readable " : "", cli->home,
		cli->home[0] ? "/admin.token" : "");
}

/* There is nothing left to do about it. */
static bool is_over(struct span state)
{
	return span_equal(state, SPAN("done")) || span_equal(state, SPAN("cancelled"));
}

/* What keeps the task from the move, as "worker vm-2 still has it (claimed)" or "it is already done". */
static const char *obstacle_of(struct cli *cli, const char *id, struct span state)
{
	cleanup(reply_done) struct reply reply = server_try(cli, "/api/tasks/*", id);
	struct span worker = field_text(reply.root, "workerId");

	return worker.len > 0
		? cli_text(cli, "worker %.*s still has it (%.*s)", SPAN_ARGS(worker), SPAN_ARGS(state))
		: cli_text(cli, "it is %s%.*s", is_over(state) ? "already " : "", SPAN_ARGS(state));
}

/* A verb that is one word of English: "approve", not "task done". */
static bool is_action(const struct verb *verb)
{
	return verb->offer == OFFER_TASKS && !strchr(verb->name, ' ');
}

static int tell_refusal(struct cli *cli, const struct ask *ask, const struct reply *reply)
{
	struct span code = first_text(reply->root, "code", "error");
	struct span detail = first_text(reply->root, "detail", "message");
	struct span state = field_text(reply->root, "state");
	enum exit_status status = exit_of_refusal(reply->status, code);
	const char *errors = errors_of(cli, reply->root);
	const char *name = code.len > 0 ? cli_text(cli, "%.*s", SPAN_ARGS(code)) : "refused";
	const char *fix = fix_of(cli, ask, reply->status, reply->root);

	if (reply->status == 401)
		return tell_unknown(cli, name, fix);
	if (reply->status == 404 && ask->names[0])
		return cli_fail(cli, status, name, fix,
			"there is no %s\"%s\", or none that this token may see", noun_of(cli, ask->path),
			ask->names[0]);
	if (errors[0])
		return cli_fail(cli, status, name, fix, "%s", errors);
	if (detail.len == 0)
		return cli_fail(cli, status, name, fix, "the server answers %d", reply->status);
	bool is_state =
		span_equal(code, SPAN("bad_transition")) || span_equal(code, SPAN("already_terminal"));
	if (is_state && state.len > 0 && ask->names[0] && is_action(cli->verb))
		return cli_fail(cli, status, name, is_over(state) ? NULL : fix, "cannot %s %s: %s",
			cli->verb->name, ask->names[0], obstacle_of(cli, ask->names[0], state));
	if (state.len > 0 && ask->names[0])
		return cli_fail(cli, status, name, fix, "%s is %.*s: %.*s", ask->names[0], SPAN_ARGS(state),
			SPAN_ARGS(detail));
	return cli_fail(cli, status, name, fix, "%.*s", SPAN_ARGS(detail));
}

/* ---- one request ------------------------------------------------------------------------------------------ */

/* The path with its names in place, and the query. */
static struct span target_of(struct cli *cli, const struct ask *ask)
{
	cleanup(buf_done) struct buf out = {0};
	size_t used = 0;

	buf_init(&out, 2 * PATH_BYTES_MAX);
	for (const char *at = ask->path; *at; at++) {
		if (*at != '*')
			buf_put_byte(&out, (unsigned char)*at);
		else
			buf_put_span(&out, cli_encode(cli, span_of(ask->names[used++])));
	}
	if (ask->query.len > 0)
		buf_printf(&out, "?%.*s", SPAN_ARGS(ask->query));
	return span_of(cli_text(cli, "%.*s", SPAN_ARGS(cli_span(cli, &out))));
}

/* </api/tasks?a=b>; rel="next" → a=b */
static struct span next_of(struct cli *cli, struct span link)
{
	const char *query = link.len > 0 ? memchr(link.data, '?', link.len) : NULL;
	const char *end = query ? memchr(query, '>', link.len - (size_t)(query - link.data)) : NULL;

	if (!end || !memmem(end, link.len - (size_t)(end - link.data), "next", 4))
		return (struct span){0};
	return span_of(cli_text(cli, "%.*s", (int)(end - query - 1),
		query + 1)); /* without memory the run ends: half a list would be wrong */
}

static void wait_ms(int ms)
{
	poll(NULL, 0, ms);
}

/* Whether to try again: while the caller has patience, when the server is away or says "later"; and once in any case
 * when the connection broke amid a request that may be repeated. */
static bool tries_again(const struct ask *ask, const struct http_call *call, int fault, enum http_reach reach,
	const struct http_answer *answer, uint32_t tried)
{
	if (fault == 0)
		return tried < ask->patience &&
			(http_answer_status(answer) == 503 || http_answer_status(answer) == 429);
	if (fault == -EINVAL || fault == -ETIMEDOUT || fault == -E2BIG)
		return false;
	if (reach == HTTP_REACH_NOTHING)
		return tried < ask->patience;
	return reach == HTTP_REACH_UNKNOWN && call->may_repeat &&
		tried < (ask->patience > 1 ? ask->patience : 1);
}

/* Where several servers share a store, one of them may be about to take the lead. */
static struct ask with_patience(const struct cli *cli, const struct ask *ask)
{
	struct ask patient = *ask;

	if (cli->place.address.next && patient.patience < TAKE_OVER_TRIES && !ask->optional)
		patient.patience = TAKE_OVER_TRIES;
	return patient;
}

static int call(struct cli *cli, const struct ask *given, const struct http_call *call,
	struct http_answer **ret_answer, enum http_reach *ret_reach)
{
	struct ask patient = with_patience(cli, given), *ask = &patient;

	for (uint32_t tried = 0;; tried++) {
		int r = http_client_call(cli->client, call, ret_answer, ret_reach);
		if (!tries_again(ask, call, r, *ret_reach, r == 0 ? *ret_answer : NULL, tried))
			return r;
		if (tried == 0)
			cli_say(cli, "stint: the server at %s is away; trying again", cli->place.url);
		wait_ms(PATIENCE_MS << (tried < DOUBLED_MAX ? tried : DOUBLED_MAX));
		if (ask->stop && *ask->stop)
			return r;
	}
}

static int read_reply(struct cli *cli, const struct http_answer *answer, struct reply *ret_reply)
{
	struct span body = http_answer_body(answer);

	*ret_reply = (struct reply){.status = http_answer_status(answer)};
	ret_reply->next = next_of(cli, http_answer_field(answer, HTTP_ANSWER_LINK));
	int r = body.len > 0 ? json_read_reply(body, &ret_reply->doc) : -EPROTO;
	ret_reply->root = yyjson_doc_get_root(ret_reply->doc);
	return r == -EPROTO && ret_reply->status >= 300 ? 0 : r; /* a proxy in front need not speak JSON */
}

/* What we run in may belong to a trace: then a task that we make belongs to it, too. */
static struct span own_trace(void)
{
	const char *text = getenv("TRACEPARENT");
	struct trace trace;

	return text && trace_read(span_of(text), &trace) ? span_of(text) : (struct span){0};
}

int server_ask(struct cli *cli, const struct ask *ask, struct reply *ret_reply)
{
	struct http_answer *answer;
	enum http_reach reach = HTTP_REACH_NOTHING;
	struct reply reply = {0};

	int r = server_find(cli);
	if (r != 0)
		return r;
	struct http_call request = {
		.method = ask->method,
		.body = ask->body,
		.token = server_token(cli),
		.idempotency_key = ask->key,
		.traceparent = ask->method == HTTP_METHOD_POST ? own_trace() : (struct span){0},
		.may_repeat = ask->may_repeat || ask->method == HTTP_METHOD_GET,
		.timeout_ms = ask->timeout_ms > 0 ? ask->timeout_ms : TIMEOUT_MS,
	};
	request.target = target_of(cli, ask);
	r = call(cli, ask, &request, &answer, &reach);
	cli->met_server |= r == 0;
	if (r == 0)
		r = read_reply(cli, answer, &reply);
	if (r < 0 && ask->optional && r != -ENOMEM)
		return EXIT_UNREACHABLE;
	if (r < 0) {
		int status = tell_fault(cli, r, reach, ask->method != HTTP_METHOD_GET);
		if (ask->optional)
			cli_exit(cli, status);
		return status;
	}
	if (reply.status >= 300 && ask->optional && !ask->keeps_refusals) {
		reply_done(&reply);
		return EXIT_FAILED;
	}
	if (reply.status >= 300 && reply.status != ask->keeps_refusal && !ask->keeps_refusals) {
		int status = reply.status == 404 && ask->quiet_missing ? EXIT_NOT_FOUND
								       : tell_refusal(cli, ask, &reply);
		reply_done(&reply);
		return status;
	}
	*ret_reply = reply;
	return 0;
}

struct reply server_need(struct cli *cli, const struct ask *ask)
{
	struct reply reply;
	int r = server_ask(cli, ask, &reply);

	if (r != 0)
		cli_exit(cli, r);
	return reply;
}

struct reply server_get(struct cli *cli, const char *path, const char *name)
{
	return server_need(
		cli, &(const struct ask){.method = HTTP_METHOD_GET, .path = path, .names = {name}});
}

struct reply server_try(struct cli *cli, const char *path, const char *name)
{
	struct ask question = {.method = HTTP_METHOD_GET, .path = path, .names = {name}, .optional = true};
	struct reply reply = {0};

	server_ask(cli, &question, &reply);
	return reply;
}

struct reply server_post(struct cli *cli, const char *path, const char *name, struct span body)
{
	return server_need(cli,
		&(const struct ask){.method = HTTP_METHOD_POST,
			.path = path,
			.names = {name},
			.body = body.data ? body : SPAN("{}")});
}

static int change_one(struct cli *cli, const char *name)
{
	const struct change *change = cli->verb->change;
	struct ask question = {.method = change->deletes ? HTTP_METHOD_DELETE : HTTP_METHOD_POST,
		.path = change->path,
		.names = {name},
		.may_repeat = change->deletes};
	cleanup(reply_done) struct reply reply = {0};

	cli_member_flags(cli, cli_body(cli));
	question.body = cli_body_end(cli);
	int r = server_ask(cli, &question, &reply);
	if (r != 0)
		return r;
	bool begun = reply.status == 202 && change->begun;
	cli->changed += !begun;
	cli->begun += begun;
	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, change->noun, reply.root);
	const char *how = begun ? change->begun
		: change->done  ? change->done
				: cli_text(cli, "is %s", field_cstr(cli, reply.root, "status"));
	const char *sentence = change->sentence && cli->term.tty ? change->sentence(cli, name)
								 : cli_text(cli, "%s %s", name, how);
	cli_put_change(cli, change->many ? cli->args.plain_count : 1, name, sentence);
	return 0;
}

int cli_each(struct cli *cli, int (*each)(struct cli *cli, const char *name))
{
	int status = 0, r = 0;

	for (size_t i = 0; i < cli->args.plain_count; i++) {
		r = each(cli, args_plain(&cli->args, i));
		status = status != 0 ? status : r;
		if (r == EXIT_UNREACHABLE || r == EXIT_UNAUTHORISED)
			break; /* it would be the same for all */
	}
	return status;
}

int server_change_each(struct cli *cli)
{
	const struct change *change = cli->verb->change;
	int r = cli_each(cli, change_one);

	if (cli->output == OUTPUT_JSON || !cli->term.tty || !change->many ||
		cli->args.plain_count <= CHANGES_TOLD || cli->changed + cli->begun == 0)
		return r;
	cli_put(cli, "%zu tasks %s", cli->changed, change->many);
	if (cli->begun > 0)
		cli_put(cli, ", %zu are being stopped by their workers", cli->begun);
	cli_put(cli, "\n");
	return r;
}

/* ---- the stream -------------------------------------------------------------------------------------------- */

struct follow_stream {
	struct cli *cli;
	const struct follow *follow;
	struct span after; /* from here, until an event came with its own place */
	struct sse sse;
	int ended;                 /* what the caller returned */
	bool moved;                /* an event came since the last connection */
	bool met;                  /* the server was there once: it will come back */
	bool said;                 /* … that it is away */
	struct http_client *other; /* for what the caller asks meanwhile */
};

/* The caller may ask the server for something while the stream goes on: by a connection of its own. */
static void begin_call(struct follow_stream *stream)
{
	struct http_client *streams = stream->cli->client;

	stream->cli->client = stream->other;
	stream->other = streams;
}

static void end_call(struct follow_stream *stream)
{
	begin_call(stream); /* the same way back */
}

static int on_event(void *context, const struct sse_event *event)
{
	struct follow_stream *stream = context;
	yyjson_doc *doc;

	int r = json_read_reply(event->data, &doc);
	if (r < 0)
		return r;
	stream->moved = true;
	begin_call(stream);
	stream->ended = stream->follow->each(stream->follow->context, yyjson_doc_get_root(doc));
	end_call(stream);
	yyjson_doc_free(doc);
	return stream->ended != 0 ? -ECANCELED : 0;
}

/* What came, until the stream ends (0), the caller has enough (-ECANCELED), or it breaks. */
static int read_stream(struct follow_stream *stream, struct http_answer *answer)
{
	struct cli *cli = stream->cli;
	int64_t idle_ms = stream->follow->idle_ms > 0 ? stream->follow->idle_ms : STREAM_IDLE_MS;
	int64_t silent_ms = 0;

	for (;;) {
		struct span body = http_answer_body(answer);
		int r = sse_feed(&stream->sse, body, on_event, stream);
		if (r < 0)
			return r;
		http_answer_take(answer, body.len);
		silent_ms = body.len > 0 ? 0 : silent_ms + idle_ms;
		if (stream->follow->idle) {
			begin_call(stream);
			stream->ended = stream->follow->idle(stream->follow->context);
			end_call(stream);
		}
		if (stream->ended != 0)
			return -ECANCELED;
		r = silent_ms > STREAM_DEAD_MS ? -ETIMEDOUT : http_client_more(cli->client, idle_ms);
		if (r == 0 || (r < 0 && (r != -ETIMEDOUT || silent_ms > STREAM_DEAD_MS)))
			return r;
	}
}

static int open_stream(
	struct follow_stream *stream, struct http_answer **ret_answer, enum http_reach *ret_reach)
{
	struct cli *cli = stream->cli;
	struct span id = buf_span(&stream->sse.id);
	struct http_call request = {
		.method = HTTP_METHOD_GET,
		.accept = SPAN("text/event-stream"),
		.token = server_token(cli),
		.may_repeat = true,
		.timeout_ms = TIMEOUT_MS,
	};
	const char *target = stream->after.len > 0 || id.len > 0
		? cli_text(cli, "/api/events?after=%.*s", SPAN_ARGS(id.len > 0 ? id : stream->after))
		: "/api/events";

	request.target = span_of(target);
	return http_client_call(cli->client, &request, ret_answer, ret_reach);
}

/* Between two connections. The caller may end the wait at any time. */
static int wait_again(struct follow_stream *stream, uint32_t failures)
{
	const struct follow *follow = stream->follow;
	int64_t left_ms = failures < 2 ? 200 : (int64_t)(failures - 1) * PATIENCE_MS;
	int64_t slice_ms = follow->idle_ms > 0 ? follow->idle_ms : STREAM_IDLE_MS;

	if (failures >= 2 && !stream->said)
		cli_say(stream->cli, "stint: the server at %s is away; trying again", stream->cli->place.url);
	stream->said = failures >= 2;
	for (left_ms = left_ms < RECONNECT_MS_MAX ? left_ms : RECONNECT_MS_MAX; left_ms > 0;
		left_ms -= slice_ms) {
		if (follow->idle)
			stream->ended = follow->idle(follow->context);
		if (stream->ended != 0)
			break;
		wait_ms((int)(left_ms < slice_ms ? left_ms : slice_ms));
	}
	return stream->ended;
}

/* One connection's worth. 0: try again. */
static int follow_once(struct follow_stream *stream, uint32_t *failures)
{
	struct cli *cli = stream->cli;
	static const struct ask question = {.path = "/api/events"};
	struct http_answer *answer;
	enum http_reach reach;

	int r = open_stream(stream, &answer, &reach);
	if (r == 0 && http_answer_status(answer) != 200 && http_answer_status(answer) != 503) {
		struct reply reply;
		read_reply(cli, answer, &reply);
		bool lost = reply.status == 410 && stream->follow->lost;
		stream->ended = lost ? 0 : tell_refusal(cli, &question, &reply);
		reply_done(&reply);
		if (!lost)
			return stream->ended;
		buf_clear(&stream->sse.id); /* the cursor is too old: the caller reads the state again */
		return stream->follow->lost(stream->follow->context, &stream->after);
	}
	stream->moved = false;
	if (r == 0 && http_answer_status(answer) == 200) {
		stream->met = true;
		stream->said = false;
		r = read_stream(stream, answer);
	}
	if (stream->ended != 0)
		return stream->ended;
	*failures = stream->moved ? 0 : *failures + 1;
	if (*failures > RECONNECTS_MAX || !stream->met)
		return tell_fault(cli, r < 0 ? r : -ECONNRESET, reach, false);
	sse_restart(&stream->sse);
	http_client_hang_up(cli->client);
	return wait_again(stream, *failures);
}

int server_newest_cursor(struct cli *cli, struct span *ret_cursor)
{
	struct ask question = {
		.method = HTTP_METHOD_GET, .path = "/api/events", .query = SPAN("after=now&limit=1")};
	cleanup(reply_done) struct reply reply = {0};
	int r = server_ask(cli, &question, &reply);

	*ret_cursor = span_of(field_cstr(cli, reply.root, "next"));
	return r;
}

int server_follow(struct cli *cli, const struct follow *follow)
{
	struct follow_stream stream = {
		.cli = cli, .follow = follow, .after = follow->after, .met = cli->met_server};
	uint32_t failures = 0;
	int r = server_find(cli);

	if (r != 0)
		return r;
	sse_init(&stream.sse, EVENT_BYTES_MAX);
	while (r == 0)
		r = follow_once(&stream, &failures);
	sse_done(&stream.sse);
	http_client_hang_up(cli->client);
	http_client_free(stream.other);
	return r;
}
