/*
 * stint doctor: what is wrong here, one line per thing that was looked at, each with what to do about it. It changes
 * nothing without --fix (doctor_home.c). With --security it sends requests that must be refused, as an attacker would
 * who means harm.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "base/take.h"
#include "cli/frame/spawn.h"
#include "cli/verb/doctor.h"
#include "cli/verb/task_view.h"
#include "config/config.h"

enum {
	CALL_MS = 5000,
	SLOW_MS = 250,
	SLOTS_NAMED_MAX = 5,
	FINDINGS_SHOWN_MAX = 10,
	CERTIFICATE_WARN_MS = 14 * 24 * 3600 * 1000, /* as the server warns */
	STORE_IN_USE = 75,                           /* status of stintd --check-store */
	VERDICT_WIDTH = 6,
	NAME_WIDTH = 13,
	TEXT_COLUMN = VERDICT_WIDTH + NAME_WIDTH,
};

#define SPACE_LEAST ((uint64_t)64 << 20)
#define SPACE_GOOD  ((uint64_t)1 << 30)

void doctor_note(struct examination *exam, enum check_verdict verdict, const char *group, const char *name,
	const char *fix, const char *format, ...)
{
	char text[512];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	if (exam->count < CHECKS_MAX)
		exam->checks[exam->count++] = (struct doctor_check){
			group, name, cli_text(exam->cli, "%s", text), verdict < WARN ? NULL : fix, verdict};
}

/* ---- the host ------------------------------------------------------------------------------------------------------ */

static void check_space(struct examination *exam)
{
	struct statvfs space;

	if (statvfs(exam->home, &space) < 0)
		return;
	uint64_t left = (uint64_t)space.f_bavail * space.f_frsize;
	enum check_verdict verdict = left < SPACE_LEAST ? FAIL : left < SPACE_GOOD ? WARN : PASS;
	doctor_note(exam, verdict, "store", "disk space",
		cli_text(exam->cli, "df -h %s", cli_quote(exam->cli, exam->home)),
		verdict == PASS ? "%llu MiB free"
				: "only %llu MiB free: make room, or move the state directory",
		(unsigned long long)(left >> 20));
}

static void check_clock(struct examination *exam)
{
	struct timex clock = {0};
	int64_t least_ms = INT64_C(1735689600000); /* 2025 */

	if (exam->cli->now_ms < least_ms) {
		doctor_note(exam, FAIL, "host", "clock", "timedatectl set-ntp true",
			"the clock says it is before 2025");
		return;
	}
	if (adjtimex(&clock) >= 0 && !(clock.status & STA_UNSYNC))
		doctor_note(exam, PASS, "host", "clock", NULL, "synchronised");
	else
		doctor_note(exam, WARN, "host", "clock", "timedatectl set-ntp true",
			"not synchronised; planned times may be off, leases are not affected");
}

/* ---- the server ------------------------------------------------------------------------------------------------------ */

/* Sends a request. */
static int knock(struct examination *exam, const struct http_call *wanted, struct http_answer **ret_answer)
{
	struct cli *cli = exam->cli;
	struct http_call call = *wanted;
	enum http_reach reach;

	call.timeout_ms = CALL_MS;
	call.may_repeat = true;
	return http_client_call(cli->client, &call, ret_answer, &reach);
}

static int64_t monotonic_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static bool check_reach(struct examination *exam)
{
	struct http_call call = {.method = HTTP_METHOD_GET, .target = SPAN("/livez")};
	struct http_answer *answer;
	int64_t began_us = monotonic_us();

	int r = knock(exam, &call, &answer);
	int64_t took_us = monotonic_us() - began_us;
	if (r < 0) {
		doctor_note(exam, FAIL, "server", "reachable", "stint up", "no server answers at %s: %s",
			exam->cli->place.url, strerror(-r));
		return false;
	}
	doctor_note(exam, took_us > SLOW_MS * 1000 ? WARN : PASS, "server", "reachable",
		"uptime   # is the machine busy?", "%s answers in %lld.%lld ms", exam->cli->place.url,
		(long long)(took_us / 1000), (long long)(took_us % 1000 / 100));
	return true;
}

/* The reply to GET `path`, with our token. Its status is 0 if none came, which is noted under `name`. */
static struct reply look(struct examination *exam, const char *name, const char *path)
{
	struct http_call call = {
		.method = HTTP_METHOD_GET, .target = span_of(path), .token = server_token(exam->cli)};
	struct http_answer *answer;
	struct reply reply = {0};

	int r = knock(exam, &call, &answer);
	if (r == 0)
		r = json_read_reply(http_answer_body(answer), &reply.doc);
	if (r < 0)
		doctor_note(exam, FAIL, "server", name, "stint doctor", "GET %s is not answered: %s", path,
			strerror(-r));
	else
		reply.status = http_answer_status(answer);
	reply.root = yyjson_doc_get_root(reply.doc);
	return reply;
}

static void check_version(struct examination *exam)
{
	struct cli *cli = exam->cli;
	cleanup(reply_done) struct reply reply = look(exam, "version", "/api/version");
	struct span version = field_text(reply.root, "version");

	if (reply.status == 401) {
		doctor_note(exam, FAIL, "server", "token", CLI_NEW_TOKEN,
			cli->place.token[0] ? "the server does not know the token from %s"
					    : "there is no token%s",
			cli->place.token[0] ? cli->place.token_from : "");
	} else if (reply.status == 403) {
		doctor_note(exam, WARN, "server", "token", "stint token create --kind viewer",
			"the token from %s may not read", cli->place.token_from);
	} else if (reply.status != 0) {
		doctor_note(exam, PASS, "server", "token", NULL, "the server knows the token from %s",
			cli->place.token_from);
		doctor_note(exam, span_equal(version, SPAN(STINT_VERSION)) ? PASS : WARN, "server", "version",
			NULL,
			span_equal(version, SPAN(STINT_VERSION))
				? "server %.*s, command %s"
				: "server %.*s, command %s: install the same version of stint and stintd",
			SPAN_ARGS(version), STINT_VERSION);
		if (yyjson_is_false(field_get(reply.root, "armed")))
			doctor_note(exam, WARN, "server", "execution", "stint arm",
				"disarmed: nothing is handed out");
	}
}

/* ": row 7 of table task, …", or nothing if the server does not say. */
static const char *places_text(struct cli *cli, yyjson_val *places)
{
	const char *text = "";
	size_t at, count;
	yyjson_val *place;

	yyjson_arr_foreach(places, at, count, place)
	{
		if (at < FINDINGS_SHOWN_MAX)
			text = cli_text(cli, "%s%s%s", text, at == 0 ? " (" : ", ", yyjson_get_str(place));
	}
	return text[0] ? cli_text(cli, "%s)", text) : "";
}

/* Of a store that several servers share. */
static void note_leader(struct examination *exam, yyjson_val *leader)
{
	struct cli *cli = exam->cli;
	const char *name = field_cstr(cli, leader, "name"), *url = field_cstr(cli, leader, "url");
	struct span since = view_clock(cli, field_int(leader, "since", 0));

	if (yyjson_is_true(field_get(leader, "here")))
		doctor_note(exam, PASS, "server", "leader", NULL,
			"this server (%s) has led the store since %.*s, %s", name, SPAN_ARGS(since),
			field_bool(leader, "synchronous")
				? "and each commit waits for a standby of PostgreSQL"
				: "without a synchronous standby of PostgreSQL");
	else
		doctor_note(exam, url[0] ? PASS : WARN, "server", "leader",
			"stintd --set leader.url=http://HOST:PORT   # on each server: where the others reach it",
			"%s%s%s has led the store since %.*s; this server stands by%s", name,
			url[0] ? " at " : "", url, SPAN_ARGS(since),
			url[0] ? "" : ", and does not know where the leader is reached");
}

/* As the server sees it: the one that it shows, and a newer one that it cannot use. */
static void note_certificate(struct examination *exam, yyjson_val *certificate)
{
	struct cli *cli = exam->cli;
	int64_t ends_ms = field_int(certificate, "endsAt", 0), left_ms = ends_ms - cli->now_ms;
	struct span problem = field_text(certificate, "problem");
	const char *end = cli_text(cli, "%.*s", SPAN_ARGS(view_relative(cli, ends_ms)));

	if (field_bool(certificate, "stale"))
		doctor_note(exam, FAIL, "server", "newer certificate",
			"stint tls init HOST...   # with all names",
			"the server does not use the newer TLS certificate%s%.*s",
			problem.len > 0 ? ": " : "", SPAN_ARGS(problem));
	if (left_ms <= 0)
		doctor_note(exam, FAIL, "server", "certificate", "stint tls init HOST...   # with all names",
			"the TLS certificate has ended %s: no client speaks with this server", end);
	else
		doctor_note(exam, left_ms < CERTIFICATE_WARN_MS ? WARN : PASS, "server", "certificate",
			"stint tls init HOST...   # with all names", "the TLS certificate ends %s", end);
}

static void check_ready(struct examination *exam)
{
	cleanup(reply_done) struct reply reply = look(exam, "writable", "/readyz");
	yyjson_val *leader = field_get(reply.root, "leader");

	if (leader)
		note_leader(exam, leader);
	if (field_get(reply.root, "certificate"))
		note_certificate(exam, field_get(reply.root, "certificate"));
	if (span_is(field_text(reply.root, "status"), "standby"))
		return; /* what else there is to know the leader says */
	if (reply.status == 200)
		doctor_note(exam, PASS, "store", "writable", NULL, "the server accepts changes");
	else if (reply.status != 0)
		doctor_note(exam, FAIL, "store", "writable",
			cli_text(exam->cli, "df -h %s", cli_quote(exam->cli, exam->home)), "%.*s",
			SPAN_ARGS(field_text(reply.root, "detail")));
	int damaged = yyjson_get_int(field_get(reply.root, "damage"));
	if (damaged > 0)
		doctor_note(exam, FAIL, "store", "damage",
			cli_text(exam->cli, "stintd --home %s --check-store",
				cli_quote(exam->cli, exam->home)),
			"%d damaged %s%s: what is lost is refused, the rest is served; stop the server, look, and restore a backup",
			damaged, damaged == 1 ? "place" : "places",
			places_text(exam->cli, field_get(reply.root, "places")));
}

/* ---- the store, while no server has it ------------------------------------------------------------------------------ */

/* "row 7 of table task: ", as far as the finding says. */
static const char *finding_place(struct cli *cli, yyjson_val *finding)
{
	struct span table = field_text(finding, "table"), key = field_text(finding, "key");
	int64_t row = field_int(finding, "row", 0);

	if (table.len == 0)
		return "";
	if (key.len > 0)
		return cli_text(cli, "row \"%.*s\" of table %.*s: ", SPAN_ARGS(key), SPAN_ARGS(table));
	if (row != 0)
		return cli_text(cli, "row %lld of table %.*s: ", (long long)row, SPAN_ARGS(table));
	return cli_text(cli, "table %.*s: ", SPAN_ARGS(table));
}

static void note_finding(struct examination *exam, struct span line)
{
	struct cli *cli = exam->cli;
	yyjson_doc *doc = NULL;

	if (json_read_reply(line, &doc) < 0)
		return;
	yyjson_val *finding = yyjson_doc_get_root(doc);
	doctor_note(exam, FAIL, "store", "damage",
		cli_text(cli,
			"stintd --home %s --restore FILE   # a backup; or --accept-loss, or --new-store",
			cli_quote(cli, exam->home)),
		"%s: %s%.*s", field_cstr(cli, finding, "file"), finding_place(cli, finding),
		SPAN_ARGS(field_text(finding, "what")));
	yyjson_doc_free(doc);
}

/* A server that does not start because of its store says so in its log; here it is said again. The server's own program looks. */
static void check_store(struct examination *exam)
{
	cleanup(buf_done) struct buf said = {0};
	const char *store = cli_text(exam->cli, "%s/stint.db", exam->home);
	const char *mark = cli_text(exam->cli, "%s/store.mark", exam->home);
	int shown = 0;

	if (access(store, F_OK) != 0 && access(mark, F_OK) != 0)
		return; /* no server ever ran here */
	buf_init(&said, 4 << 20);
	const char *argv[] = {
		program_beside(exam->cli, "stintd"), "--home", exam->home, "--check-store", NULL};
	int status = spawn_and_read(argv, &said);
	struct span rest = cli_span(exam->cli, &said);
	if (status == 0)
		doctor_note(exam, PASS, "store", "damage", NULL, "%s is whole", store);
	while (rest.len > 0 && shown < FINDINGS_SHOWN_MAX) {
		const char *end = memchr(rest.data, '\n', rest.len);
		size_t len = end ? (size_t)(end - rest.data) : rest.len;
		note_finding(exam, (struct span){rest.data, len});
		shown++;
		rest = end ? (struct span){end + 1, rest.len - len - 1} : (struct span){0};
	}
	if (status != 0 && status != STORE_IN_USE && shown == 0)
		doctor_note(exam, FAIL, "store", "damage",
			cli_text(exam->cli, "stintd --home %s --check-store",
				cli_quote(exam->cli, exam->home)),
			"%s cannot be checked", store);
}

static void note_workers(struct examination *exam, yyjson_val *workers)
{
	struct cli *cli = exam->cli;
	size_t at, count, live = 0;
	const char *silent = NULL;
	yyjson_val *worker;

	yyjson_arr_foreach(workers, at, count, worker)
	{
		if (!span_equal(field_text(worker, "state"), SPAN("active")))
			continue;
		live++;
		if (!silent && view_worker_is_silent(worker))
			silent = field_cstr(cli, worker, "workerId");
	}
	if (silent)
		doctor_note(exam, WARN, "server", "workers",
			cli_text(cli, "stint worker show %s", cli_quote(cli, silent)),
			"%zu registered, but %s sent no heartbeat for more than half of its lease", live,
			silent);
	else
		doctor_note(exam, PASS, "server", "workers", NULL, "%zu registered and alive%s", live,
			live == 0 ? "; scripts that only claim are not counted" : "");
}

/* Slots that crashed too often: nothing is run there, however much waits. */
static void note_slots(struct examination *exam, yyjson_val *slots)
{
	struct cli *cli = exam->cli;
	const char *names = "", *first = NULL;
	size_t at, count, shut = 0;
	yyjson_val *slot;

	yyjson_arr_foreach(slots, at, count, slot)
	{
		if (!span_equal(field_text(slot, "state"), SPAN("quarantined")))
			continue;
		const char *name = field_cstr(cli, slot, "name");
		first = first ? first : name;
		if (shut++ < SLOTS_NAMED_MAX)
			names = cli_text(cli, "%s%s%s", names, shut > 1 ? ", " : "", name);
	}
	if (shut > 0)
		doctor_note(exam, WARN, "server", "slots",
			cli_text(cli,
				"stint slot unquarantine %s   # when it is mended; stint worker show says what was wrong",
				cli_quote(cli, first)),
			"%zu in quarantine, because %s crashed too often: %s%s", shut,
			shut > 1 ? "they" : "it", names, shut > SLOTS_NAMED_MAX ? ", …" : "");
}

/* A list that this token may not see is passed over. */
static void check_list(struct examination *exam, const char *name, const char *path,
	void (*note)(struct examination *exam, yyjson_val *list))
{
	cleanup(reply_done) struct reply reply = look(exam, name, path);

	if (reply.status == 200)
		note(exam, reply.root);
}

/* ---- isolation ---------------------------------------------------------------------------------------------------------- */

static void note_level(struct examination *exam, yyjson_val *answer)
{
	struct cli *cli = exam->cli;
	struct span level = field_text(answer, "level"), text = field_text(answer, "text");
	struct span executor = field_text(answer, "executor"), fix = field_text(answer, "fix");
	struct span note = field_text(answer, "note"), problem = field_text(answer, "problem");
	const char *name = cli_text(cli, "%.*s", SPAN_ARGS(level));
	const char *whose = executor.len > 0 ? cli_text(cli, " for executor %.*s", SPAN_ARGS(executor)) : "";

	if (problem.len > 0)
		doctor_note(exam, FAIL, "isolation", name, cli_text(cli, "%.*s", SPAN_ARGS(fix)), "%.*s",
			SPAN_ARGS(problem));
	else if (note.len > 0)
		doctor_note(exam, PASS, "isolation", name, NULL, "%.*s", SPAN_ARGS(note));
	else if (yyjson_is_true(field_get(answer, "works")))
		doctor_note(exam, PASS, "isolation", name, NULL, "available%s%s%.*s", whose,
			text.len ? " " : "", SPAN_ARGS(text));
	else
		doctor_note(exam, executor.len > 0 ? FAIL : WARN, "isolation", name,
			cli_text(cli, "%.*s", SPAN_ARGS(fix)), "not available here%s: %.*s", whose,
			SPAN_ARGS(text));
}

static void check_isolation(struct examination *exam)
{
	cleanup(buf_done) struct buf said = {0};
	size_t at, count;
	yyjson_val *answer;

	buf_init(&said, 256 << 10);
	const char *argv[] = {
		program_beside(exam->cli, "stint-worker"), "--check-isolation", "--home", exam->home, NULL};
	int status = spawn_and_read(argv, &said); /* the worker knows: it tries each level */
	yyjson_doc *doc = NULL;
	int r = status == 0 ? json_read_reply(cli_span(exam->cli, &said), &doc) : 0;
	if (status != 0 || r < 0)
		doctor_note(exam, WARN, "isolation", "worker", "stint worker run --check-config",
			status > 0 ? "stint-worker rejects its configuration" : "stint-worker cannot be run");
	yyjson_arr_foreach(yyjson_doc_get_root(doc), at, count, answer)
	{
		note_level(exam, answer);
	}
	yyjson_doc_free(doc);
}

/* ---- doors ------------------------------------------------------------------------------------------------------------ */

static void check_door(struct examination *exam, const char *name, const char *what,
	const struct http_call *call, int wanted)
{
	struct http_answer *answer;
	int r = knock(exam, call, &answer);

	if (r < 0)
		doctor_note(exam, WARN, "security", name, "stint doctor", "%s: no answer (%s)", what,
			strerror(-r));
	else if (http_answer_status(answer) == wanted)
		doctor_note(exam, PASS, "security", name, NULL, "%s: refused with %d", what, wanted);
	else
		doctor_note(exam, FAIL, "security", name, NULL,
			"%s: answered with %d instead of %d. Keep this server away from others, and report it (SECURITY.md)",
			what, http_answer_status(answer), wanted);
}

/* The configuration may allow requests without a token. */
static void check_no_token(struct examination *exam, const struct http_call *call)
{
	struct http_answer *answer;

	if (knock(exam, call, &answer) < 0 || http_answer_status(answer) != 200)
		check_door(exam, "no token", "a request without a token", call, 401);
	else
		doctor_note(exam, WARN, "security", "no token",
			"stint config path   # the file to set \"auth\": \"token\" in; if it is set, report this (SECURITY.md)",
			"a request without a token: answered; every user of this computer may use the server");
}

static void check_doors(struct examination *exam)
{
	struct http_call call = {.method = HTTP_METHOD_GET, .target = SPAN("/api/tasks?limit=1")};

	check_no_token(exam, &call);
	call.token = SPAN("stint_admin_0000000000000000_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
	check_door(exam, "wrong token", "a request with a made-up token", &call, 401);
	call.token = server_token(exam->cli);
	call.host = SPAN("attacker.example");
	check_door(exam, "other host", "a request for another host (DNS rebinding)", &call, 421);
	call.host = (struct span){0};
	call.origin = SPAN("http://attacker.example");
	check_door(exam, "other origin", "a request of another site's page", &call, 403);
	call = (struct http_call){.method = HTTP_METHOD_POST,
		.target = SPAN("/api/tasks"),
		.token = server_token(exam->cli),
		.body = SPAN("{}"),
		.content_type = SPAN("text/plain")};
	check_door(exam, "form post", "a change that is not JSON (a form of some page)", &call, 415);
}

static void check_listener(struct examination *exam)
{
	struct http_address address;
	const char *complaint;
	char url[300];

	if (config_read_line(cli_text(exam->cli, "%s/url", exam->home), url, sizeof url) < 0 ||
		http_address_parse(url, &address, &complaint) < 0)
		return;
	doctor_note(exam, address.secure || http_address_is_loopback(&address) ? PASS : WARN, "security",
		"listener",
		"stint config show --origin   # \"listen\"; or stint tls init, or a proxy that speaks TLS in front",
		"%s", url);
}

/* ---- the verdict --------------------------------------------------------------------------------------------------------- */

static const char *const verdict_names[VERDICTS] = {
	[PASS] = "pass", [FIXED] = "fixed", [WARN] = "warn", [FAIL] = "fail"};

static void put_line(struct cli *cli, const struct doctor_check *check)
{
	static const enum paint paints[VERDICTS] = {
		[PASS] = PAINT_GREEN, [FIXED] = PAINT_GREEN, [WARN] = PAINT_YELLOW, [FAIL] = PAINT_RED};

	cli_put_painted(cli, paints[check->verdict], span_of(verdict_names[check->verdict]));
	cli_put(cli, "%*s%-*s", VERDICT_WIDTH - (int)strlen(verdict_names[check->verdict]), "", NAME_WIDTH,
		check->name);
	cli_put_wrapped(cli, check->text, TEXT_COLUMN);
	if (check->fix)
		cli_put(cli, "%*stry  %s\n", TEXT_COLUMN, "", check->fix);
}

static void put_object(struct buf *json, const struct doctor_check *check)
{
	struct json_object object;

	buf_put_byte(json, json->len == 0 ? '[' : ',');
	json_begin(&object, json);
	json_member_string(&object, "group", span_of(check->group));
	json_member_string(&object, "name", span_of(check->name));
	json_member_string(&object, "verdict", span_of(verdict_names[check->verdict]));
	json_member_string(&object, "text", span_of(check->text));
	if (check->fix)
		json_member_string(&object, "fix", span_of(check->fix));
	json_end(&object);
}

static int tell(struct examination *exam)
{
	struct cli *cli = exam->cli;
	cleanup(buf_done) struct buf json = {0};
	bool all = args_has(&cli->args, "all");
	size_t counts[VERDICTS] = {0};
	int r = 0;

	buf_init(&json, 1 << 20);
	for (size_t i = 0; i < exam->count; i++) {
		counts[exam->checks[i].verdict]++;
		if (cli->output == OUTPUT_JSON)
			put_object(&json, &exam->checks[i]);
		else if (all || exam->checks[i].verdict != PASS)
			put_line(cli, &exam->checks[i]);
	}
	if (cli->output == OUTPUT_JSON) {
		buf_put_byte(&json, ']');
		r = cli_put_json_buf(cli, counts[FAIL] == 0, "checks", &json);
	}
	cli_say(cli, "%zu passed%s%s", counts[PASS], all || counts[PASS] == 0 ? "" : " (--all lists them)",
		exam->repairable > 0
			? cli_text(cli, "; stint doctor --fix repairs %zu of the others", exam->repairable)
			: "");
	return r != 0 ? r : counts[FAIL] > 0 ? EXIT_FAILED : EXIT_GOOD;
}

static const struct flag flags[] = {
	{"all", 0, FLAG_SWITCH, .text = "also what is right"},
	{"fix", 0, FLAG_SWITCH,
		.text = "repair what is safe to repair: close files to others, make the state directory, remove files that a "
			"dead server has left; data is never touched"},
	{"security", 0, FLAG_SWITCH,
		.text = "also test that the server refuses wrong hosts, origins, tokens and form posts"},
	{0},
};

static bool looks_at_home(struct cli *cli)
{
	return http_address_is_loopback(&cli->place.address) && !args_text(&cli->args, "url");
}

/* Is it the state directory that says where the server is, and does it not? */
static bool nobody_home(struct examination *exam)
{
	struct cli *cli = exam->cli;
	const char *url = getenv("STINT_URL");

	if (args_text(&cli->args, "url") || (url && url[0] && !args_text(&cli->args, "home")))
		return false;
	return access(cli_text(cli, "%s/stint.sock", exam->home), F_OK) != 0 &&
		access(cli_text(cli, "%s/url", exam->home), F_OK) != 0;
}

static void check_server(struct examination *exam)
{
	if (!check_reach(exam)) {
		if (looks_at_home(exam->cli))
			check_store(exam);
		return;
	}
	check_version(exam);
	check_ready(exam);
	check_list(exam, "workers", "/api/workers", note_workers);
	check_list(exam, "slots", "/api/slots", note_slots);
	if (args_has(&exam->cli->args, "security"))
		check_doors(exam);
}

static int run(struct cli *cli)
{
	struct examination exam = {.cli = cli, .repairs = args_has(&cli->args, "fix")};

	int r = place_home(cli, exam.home, sizeof exam.home);
	if (r != 0)
		return r;
	bool nobody = nobody_home(&exam);
	if (!nobody)
		r = server_find(cli);
	if (r != 0)
		return r;
	check_clock(&exam);
	if (nobody || looks_at_home(cli)) {
		doctor_look_at_home(&exam);
		check_space(&exam);
		check_isolation(&exam);
	}
	if (nobody) {
		doctor_note(
			&exam, FAIL, "server", "reachable", "stint up", "no server runs in %s", exam.home);
		check_store(&exam);
	} else
		check_server(&exam);
	if (args_has(&cli->args, "security") && !nobody && looks_at_home(cli))
		check_listener(&exam);
	return tell(&exam);
}

const struct verb verb_doctor = {
	.name = "doctor",
	.gives = GIVES_JSON,
	.brief = "what is wrong here?",
	.text = "Looks at the state directory, the disk, the clock, the levels of isolation and the server, and prints what is wrong: "
		"warn or fail, and what to do. Exit status 1 when something fails. Changes nothing unless --fix is given; --fix "
		"lists every change.",
	.flags = flags,
	.examples = "stint doctor\nstint doctor --fix\nstint doctor --security\n",
	.run = run,
};
