/*
 * stint bundle: everything about one task in one file, without its secrets, for a report of a bug.
 *
 * What the token may not see, and what a server elsewhere does not tell, is left out, and the file says so: a bundle with a gap is
 * better than none.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/files.h"
#include "base/take.h"
#include "cli/frame/spawn.h"
#include "cli/verb/redact.h"
#include "cli/verb/task_view.h"
#include "config/config.h"

enum {
	BUNDLE_BYTES_MAX = 64 << 20,
	SAID_BYTES_MAX = 4 << 20,
	EVENTS_MAX = 1000,
	EVENTS_PAGE = 100,
	ATTEMPTS_MAX = 3, /* the last ones have their logs in it */
	LOG_BYTES_MAX = 256 << 10,
	LOG_PIECE = 64 << 10,
};

struct bundle {
	struct cli *cli;
	const char *id;
	struct redactor redactor;
	struct buf text;
	struct json_object members;
	const char *missing; /* names of what is not in it */
};

static void note_missing(struct bundle *bundle, const char *what)
{
	bundle->missing =
		cli_text(bundle->cli, "%s%s%s", bundle->missing, bundle->missing[0] ? "\n" : "", what);
}

static void put_value(struct bundle *bundle, const char *key, yyjson_val *value)
{
	if (!value) {
		note_missing(bundle, key);
		return;
	}
	json_put_key(&bundle->members, key);
	redact_value(&bundle->redactor, &bundle->text, NULL, value);
}

/* What the server says at that path, as a member. */
static void put_reply(struct bundle *bundle, const char *key, const char *path, const char *name)
{
	cleanup(reply_done) struct reply reply = server_try(bundle->cli, path, name);

	put_value(bundle, key, reply.status == 200 ? reply.root : NULL);
}

static struct reply ask(struct bundle *bundle, const char *path, const char *query)
{
	struct reply reply = {0};
	struct ask question = {.method = HTTP_METHOD_GET,
		.path = path,
		.names = {bundle->id},
		.query = span_of(query),
		.optional = true};

	if (server_ask(bundle->cli, &question, &reply) != 0 || reply.status != 200)
		reply_done(&reply);
	return reply.status == 200 ? reply : (struct reply){0};
}

static void put_events(struct bundle *bundle)
{
	const char *after = "0";
	size_t i, limit, count = 0;
	bool any = false, more = true;
	yyjson_val *event;

	json_put_key(&bundle->members, "events");
	buf_put_byte(&bundle->text, '[');
	while (more && count < EVENTS_MAX) {
		cleanup(reply_done) struct reply page = ask(bundle, "/api/tasks/*/events",
			cli_text(bundle->cli, "limit=%d&after=%s", EVENTS_PAGE, after));
		if (!page.root) {
			note_missing(bundle, "events");
			break;
		}
		yyjson_arr_foreach(field_get(page.root, "events"), i, limit, event)
		{
			json_put_comma(&bundle->text, &any);
			redact_value(&bundle->redactor, &bundle->text, NULL, event);
			count++;
		}
		const char *next = field_cstr(bundle->cli, page.root, "next");
		more = strcmp(next, after) != 0;
		after = next;
	}
	buf_put_byte(&bundle->text, ']');
	if (more && count >= EVENTS_MAX)
		note_missing(bundle, "later events: there are too many");
}

/* A log that was cut begins with a whole line: half of one may be half of a secret, which nobody would know as one. */
static struct span skip_half_line(struct span text)
{
	const char *end = memchr(text.data, '\n', text.len);
	size_t skip = end ? (size_t)(end - text.data) + 1 : text.len;

	return (struct span){text.data + skip, text.len - skip};
}

/* The end of what one attempt wrote. */
static void put_log(struct bundle *bundle, int64_t attempt)
{
	struct cli *cli = bundle->cli;
	cleanup(buf_done) struct buf text = {.max = 2 * LOG_BYTES_MAX}, clean = {.max = 4 * LOG_BYTES_MAX};
	cleanup(reply_done) struct reply first = ask(bundle, "/api/tasks/*/log",
		cli_text(cli, "attempt=%lld&after=0&limit=16", (long long)attempt));
	int64_t length = field_int(first.root, "length", 0), next = 0;
	int64_t after = length > LOG_BYTES_MAX ? length - LOG_BYTES_MAX : 0;
	struct json_object log;

	for (int64_t from = after; first.root && from < length; from = next) {
		cleanup(reply_done) struct reply piece = ask(bundle, "/api/tasks/*/log",
			cli_text(cli, "attempt=%lld&after=%lld&limit=%d", (long long)attempt, (long long)from,
				LOG_PIECE));
		buf_put_span(&text, field_text(piece.root, "data"));
		next = field_int(piece.root, "next", length);
		if (next <= from)
			break;
	}
	struct span whole = cli_span(cli, &text);
	redact_text(&bundle->redactor, &clean, after > 0 && whole.len > 0 ? skip_half_line(whole) : whole);
	json_begin(&log, &bundle->text);
	json_member_int(&log, "attempt", attempt);
	json_member_int(&log, "length", length);
	json_member_int(&log, "from", after);
	json_member_string(&log, "text", cli_span(cli, &clean));
	json_end(&log);
}

static void put_logs(struct bundle *bundle, int64_t attempts)
{
	bool any = false;

	json_put_key(&bundle->members, "logs");
	buf_put_byte(&bundle->text, '[');
	for (int64_t at = attempts > ATTEMPTS_MAX ? attempts - ATTEMPTS_MAX + 1 : 1; at <= attempts; at++) {
		json_put_comma(&bundle->text, &any);
		put_log(bundle, at);
	}
	buf_put_byte(&bundle->text, ']');
}

/* What the rules of the server are here: only of one whose files we can read. */
static void put_config(struct bundle *bundle)
{
	struct cli *cli = bundle->cli;
	cleanup(config_done) struct config config = {0};
	cleanup(buf_done) struct buf json = {.max = SAID_BYTES_MAX};
	struct config_request request = {.home = cli->home[0] ? cli->home : NULL};

	if (!cli->home[0] || access(cli->home, F_OK) != 0) {
		note_missing(bundle, "config: the server's files are not here");
		return;
	}
	config_read(&config, &request);
	config_put_json(&json, &config);
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = cli_read_made(cli, &json);
	put_value(bundle, "config", yyjson_doc_get_root(doc));
}

static void put_doctor(struct bundle *bundle)
{
	struct cli *cli = bundle->cli;
	cleanup(buf_done) struct buf said = {.max = SAID_BYTES_MAX};
	const char *argv[] = {program_beside(cli, "stint"), "doctor", "--all", "--json",
		cli->home[0] ? "--home" : NULL, cli->home, NULL};
	yyjson_doc *doc = NULL;

	int status = spawn_and_read(argv, &said);
	if (status < 0 || status > 1 || json_read_reply(cli_span(cli, &said), &doc) < 0)
		note_missing(bundle, "doctor");
	else
		put_value(bundle, "doctor", field_get(yyjson_doc_get_root(doc), "checks"));
	yyjson_doc_free(doc);
}

static void put_versions(struct bundle *bundle)
{
	cleanup(reply_done) struct reply reply = server_try(bundle->cli, "/api/version", NULL);
	struct json_object versions;
	struct utsname about;

	json_put_key(&bundle->members, "versions");
	json_begin(&versions, &bundle->text);
	json_member_string(&versions, "stint", SPAN(STINT_VERSION));
	if (uname(&about) == 0)
		json_member_string(&versions, "system",
			span_of(cli_text(
				bundle->cli, "%s %s %s", about.sysname, about.release, about.machine)));
	if (reply.root && json_put_key(&versions, "server"))
		redact_value(&bundle->redactor, &bundle->text, NULL, reply.root);
	json_end(&versions);
}

/* The last worker that held it, which a task that ended names no more: its events do. */
static const char *worker_of(struct bundle *bundle, yyjson_val *task)
{
	cleanup(reply_done) struct reply page = {0};
	const char *found = field_cstr(bundle->cli, task, "workerId");
	size_t i, limit;
	yyjson_val *event;

	if (found[0])
		return found;
	page = ask(bundle, "/api/tasks/*/events", cli_text(bundle->cli, "limit=%d&after=0", EVENTS_PAGE));
	yyjson_arr_foreach(field_get(page.root, "events"), i, limit, event)
	{
		if (field_text(event, "worker").len > 0)
			found = field_cstr(bundle->cli, event, "worker");
	}
	return found;
}

static void put_rest(struct bundle *bundle)
{
	const char *rest = bundle->missing;
	bool any = false;

	json_put_key(&bundle->members, "missing");
	buf_put_byte(&bundle->text, '[');
	while (*rest) {
		size_t len = strcspn(rest, "\n");
		json_put_comma(&bundle->text, &any);
		json_put_string(&bundle->text, (struct span){rest, len});
		rest += len + (rest[len] == '\n');
	}
	buf_put_byte(&bundle->text, ']');
	json_member_int(&bundle->members, "removed", (int64_t)bundle->redactor.removed);
}

static void make_bundle(struct bundle *bundle, yyjson_val *task)
{
	struct cli *cli = bundle->cli;
	const char *worker = worker_of(bundle, task), *session = field_cstr(cli, task, "sessionId");

	json_begin(&bundle->members, &bundle->text);
	json_member_string(&bundle->members, "form", SPAN("stint-bundle/1"));
	json_member_int(&bundle->members, "madeAt", cli->now_ms);
	put_versions(bundle);
	put_value(bundle, "task", task);
	put_reply(bundle, "why", "/api/tasks/*/why", bundle->id);
	put_events(bundle);
	put_logs(bundle, field_int(task, "attempt", 0));
	if (session[0])
		put_reply(bundle, "session", "/api/sessions/*", session);
	if (worker[0])
		put_reply(bundle, "worker", "/api/workers/*", worker);
	put_reply(bundle, "queue", "/api/queues/*", field_cstr(cli, task, "queue"));
	put_config(bundle);
	put_doctor(bundle);
	put_rest(bundle);
	json_end(&bundle->members);
	buf_put_byte(&bundle->text, '\n');
}

/* ---- the file ------------------------------------------------------------------------------------------------------- */

static int write_file(struct cli *cli, const char *path, struct span text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return cli_fail(cli, errno == EEXIST ? EXIT_CONFLICT : EXIT_FAILED,
			errno == EEXIST ? "exists" : "failed", NULL, "cannot write %s: %s", path,
			errno == EEXIST ? "it is there already; --out FILE names another" : strerror(errno));
	int r = file_write_all(fd, text);
	if (close(fd) < 0 && r == 0)
		r = -errno;
	if (r == 0)
		return 0;
	unlink(path);
	return cli_fail(cli, EXIT_FAILED, "failed", NULL, "cannot write %s: %s", path, strerror(-r));
}

static int tell(struct bundle *bundle, const char *path)
{
	struct cli *cli = bundle->cli;
	cleanup(buf_done) struct buf json = {.max = 64 << 10};
	struct json_object object;

	if (cli->output != OUTPUT_JSON) {
		cli_put(cli, "%s\n", path);
		cli_say(cli,
			"%zu bytes; %llu secrets were removed. Read it before you send it: what a task was told to do, and its logs, are "
			"in it",
			bundle->text.len, (unsigned long long)bundle->redactor.removed);
		return 0;
	}
	json_begin(&object, &json);
	json_member_string(&object, "file", span_of(path));
	json_member_int(&object, "bytes", (int64_t)bundle->text.len);
	json_member_int(&object, "removed", (int64_t)bundle->redactor.removed);
	json_end(&object);
	return cli_put_json_buf(cli, true, "bundle", &json);
}

static int run_bundle(struct cli *cli)
{
	const char *id = args_plain(&cli->args, 0), *out = args_text(&cli->args, "out");
	static struct bundle bundle;

	bundle = (struct bundle){.cli = cli, .id = id, .missing = ""};
	cleanup(reply_done) struct reply task = server_get(cli, "/api/tasks/*", id);
	buf_init(&bundle.text, BUNDLE_BYTES_MAX);
	redact_init(&bundle.redactor);
	redact_know(&bundle.redactor, server_token(cli));
	make_bundle(&bundle, task.root);
	struct span text = cli_span(cli, &bundle.text);
	int r = 0;
	if (out && strcmp(out, "-") == 0) {
		cli_put(cli, "%.*s", SPAN_ARGS(text));
	} else {
		const char *path = out ? out : cli_text(cli, "stint-bundle-%s.json", id);
		r = write_file(cli, path, text);
		r = r == 0 ? tell(&bundle, path) : r;
	}
	buf_done(&bundle.text);
	return r;
}

static const struct flag flags[] = {
	{"out", 0, FLAG_TEXT, OFFER_FILES, .value = "FILE",
		.text = "the file (default stint-bundle-ID.json here); - is standard output"},
	{0},
};

const struct verb verb_bundle = {
	.name = "bundle",
	.arguments = "ID",
	.offer = OFFER_TASKS,
	.gives = GIVES_JSON,
	.brief = "a task, for a bug report",
	.text = "Writes one file of JSON about a task, for a report of a bug: the task, why it is where it is, its events, the logs of its last three "
		"attempts, its session, its worker and its queue, the settings of the server, the versions and what stint doctor says.\n"
		"\n"
		"Secrets are removed: tokens and keys of known forms, values of variables and members whose name says so, the environment and the "
		"standard input of the task, and passwords in addresses; the home directory becomes ~. Nobody can know every secret: read the file "
		"before you send it. What could not be had stands under \"missing\".",
	.flags = flags,
	.examples = "stint bundle t-7k3\nstint bundle t-7k3 --out report.json\n",
	.run = run_bundle,
};
