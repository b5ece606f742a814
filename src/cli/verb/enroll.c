/*
 * stint worker invite, on the server's side: a code for machines that shall become workers. stint worker enroll, on such a machine: it
 * shows the code, gets a credential, and a worker is started that goes on by itself.
 *
 *	stint-worker enroll ──▶ what may it run? ──nothing──▶ say what to write, and how to start it then
 *	                             └──▶ systemd of the machine (as root, with the unit of the package)
 *	                               or systemd of the user
 *	                               or a process of ours, which starts the worker again when it dies
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/take.h"
#include "cli/frame/spawn.h"
#include "cli/verb/task_view.h"
#include "config/config.h"

enum {
	SAID_BYTES_MAX = 1 << 20,
	WORDS_MAX = 32,
	BEGIN_MS = 1500, /* a worker that cannot run says so at once */
	AGAIN_MS = 1000,
	AGAIN_MS_MAX = 32000,
	STEADY_MS = 60000,
	LOOK_MS = 20,
	STATUS_USAGE = 2,
	STATUS_REFUSED = 77,
	STATUS_CONFIG = 78,
};

/* ---- invite ---------------------------------------------------------------------------------------------------------- */

static const struct flag invite_flags[] = {
	{"name", 'n', FLAG_TEXT, .value = "NAME",
		.text = "what the machine is called (default: as it calls itself)", .member = "name"},
	{"queues", 'Q', FLAG_NAMES, OFFER_QUEUES, true, .value = "NAME,…",
		.text = "its worker serves only these queues", .member = "queues"},
	{"for", 0, FLAG_DURATION, .value = "TIME",
		.text = "how long the code is good (default 15m, at most 7d)", .member = "expiresInMs"},
	{"uses", 0, FLAG_NUMBER, .value = "N", .text = "for so many machines (default 1)", .least = 1,
		.most = 10000, .member = "uses"},
	{"token-lives", 0, FLAG_DURATION, .value = "TIME",
		.text = "how long each secret of their credentials lives; they renew themselves at half of it (default 30d)",
		.member = "tokenLivesMs"},
	{0},
};

static int run_invite(struct cli *cli)
{
	cleanup(reply_done) struct reply reply = {0};
	struct json_object *body = cli_body(cli);

	json_member_string(body, "kind", SPAN("join"));
	cli_member_flags(cli, body);
	struct ask question = {.method = HTTP_METHOD_POST, .path = "/api/tokens", .body = cli_body_end(cli)};
	int r = server_ask(cli, &question, &reply);
	if (r != 0)
		return r;
	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "token", reply.root);
	struct span code = field_text(reply.root, "code"), url = field_text(reply.root, "url");
	int64_t uses = field_int(reply.root, "uses", 1);
	const char *life = cli_text(cli, "%.*s",
		SPAN_ARGS(view_duration(cli, field_int(reply.root, "expiresAt", 0) - cli->now_ms)));
	cli_put(cli, "%.*s\n", SPAN_ARGS(code));
	cli_say(cli, "good %s, for %s; it is not shown again, and stint token revoke %.*s ends it",
		uses == 1 ? "once" : cli_text(cli, "for %lld machines", (long long)uses), life,
		SPAN_ARGS(field_text(reply.root, "id")));
	cli_say(cli, "on the other machine: stint worker enroll %.*s CODE",
		SPAN_ARGS(url.len > 0 ? url : SPAN("https://THIS-MACHINE:PORT")));
	return 0;
}

const struct verb verb_worker_invite = {
	.name = "worker invite",
	.gives = GIVES_JSON,
	.brief = "a code for a new machine",
	.text = "Makes a code with which another machine becomes a worker of this server: stint worker enroll URL CODE. The code is good "
		"once, for 15 minutes, unless said otherwise, and it is printed once. If the server speaks TLS with an authority of its own "
		"(tls.ca), the code names that authority, so that the machine knows the server before it sends anything.",
	.flags = invite_flags,
	.examples = "stint worker invite --queues ci --name ci-7\n"
		    "stint worker invite --uses 20 --for 1d\n",
	.run = run_invite,
};

/* ---- what it may run ------------------------------------------------------------------------------------------------ */

struct beginning {
	struct cli *cli;
	const char *program, *home;
	const char *config; /* NULL: the usual files */
	bool agents;        /* nothing is configured: the agents that are installed here */
};

struct words {
	const char *items[WORDS_MAX + 1];
	size_t count;
};

static void add(struct words *words, const char *word)
{
	if (words->count < WORDS_MAX)
		words->items[words->count++] = word;
}

static void add_flag(struct words *words, const char *flag, const char *value)
{
	if (!value)
		return;
	add(words, flag);
	add(words, value);
}

static void worker_words(const struct beginning *beginning, struct words *words)
{
	add(words, beginning->program);
	add_flag(words, "--home", beginning->home);
	add_flag(words, "--config", beginning->config);
	if (beginning->agents)
		add(words, "--agents");
}

/* How many executors it has: a line of --check-config each. Below 0: its configuration is wrong, and it has said so. */
static int count_executors(const struct beginning *beginning)
{
	static const char word[] = "executor ", none[] = "executor none: ";
	cleanup(buf_done) struct buf said = {.max = SAID_BYTES_MAX};
	struct words words = {0};
	int count = 0;

	worker_words(beginning, &words);
	add(&words, "--check-config");
	if (spawn_and_hear(words.items, &said) != 0 || buf_put_byte(&said, 0) < 0)
		return -1;
	for (const char *line = said.data; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		count += strncmp(line, word, sizeof word - 1) == 0 &&
			strncmp(line, none, sizeof none - 1) != 0;
	}
	return count;
}

/* What is configured; else the agents of this machine. */
static int choose(struct beginning *beginning)
{
	int count = count_executors(beginning);

	if (count == 0) {
		beginning->agents = true;
		count = count_executors(beginning);
	}
	return count;
}

/* ---- systemd -------------------------------------------------------------------------------------------------------- */

static int run_quietly(const char *const *argv)
{
	cleanup(buf_done) struct buf said = {.max = SAID_BYTES_MAX};

	return spawn_and_read(argv, &said);
}

/* A value of a unit: quotes, backslashes and percent signs mean something there. */
static const char *unit_word(struct cli *cli, const char *text)
{
	cleanup(buf_done) struct buf out = {.max = 16 << 10};

	buf_put_byte(&out, '"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			buf_put_byte(&out, '\\');
		buf_put_byte(&out, (unsigned char)*text);
		if (*text == '%')
			buf_put_byte(&out, '%');
	}
	buf_put_byte(&out, '"');
	return cli_text(cli, "%.*s", SPAN_ARGS(cli_span(cli, &out)));
}

static const char *unit_command(const struct beginning *beginning)
{
	struct words words = {0};
	const char *text = "";

	worker_words(beginning, &words);
	for (size_t i = 0; i < words.count; i++)
		text = cli_text(beginning->cli, "%s%s%s", text, i > 0 ? " " : "",
			unit_word(beginning->cli, words.items[i]));
	return text;
}

static int write_unit(const char *dir, const char *name, const char *text)
{
	cleanup(close_at) int dir_fd = -1;
	int r = directory_make(dir);

	if (r == 0 && (dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		r = -errno;
	return r == 0 ? file_write(dir_fd, name, span_of(text), true) : r;
}

static bool is_systemd(void)
{
	return access("/run/systemd/system", F_OK) == 0;
}

/* The unit of the package has a server and a credential of its own: those of the enrolment take their place. False: not here. */
static bool begin_as_service(const struct beginning *beginning)
{
	static const char *const places[] = {"/etc/systemd/system/stint-worker.service",
		"/usr/lib/systemd/system/stint-worker.service", "/lib/systemd/system/stint-worker.service"};
	static const char *const reload[] = {"systemctl", "daemon-reload", NULL};
	static const char *const enable[] = {"systemctl", "enable", "stint-worker.service", NULL};
	static const char *const restart[] = {"systemctl", "restart", "stint-worker.service", NULL};
	struct cli *cli = beginning->cli;
	bool there = false;

	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		there |= access(places[i], F_OK) == 0;
	if (geteuid() != 0 || !is_systemd() || !there ||
		strcmp(beginning->home, "/var/lib/stint-worker") != 0)
		return false;
	int r = write_unit("/etc/systemd/system/stint-worker.service.d", "enrolled.conf",
		cli_text(cli,
			"# Written by stint worker enroll: server, credential and authority are in %s/machine.\n"
			"[Service]\nEnvironment=\nEnvironment=STINT_HOME=%s\nLoadCredential=\nExecStart=\nExecStart=%s\n",
			beginning->home, beginning->home, unit_command(beginning)));
	if (r < 0 || run_quietly(reload) != 0 || run_quietly(enable) != 0 || run_quietly(restart) != 0)
		return false;
	cli_put(cli,
		"runs      as stint-worker.service, from every start of this machine; stop it with systemctl disable --now stint-worker\n");
	return true;
}

static bool begin_as_user(const struct beginning *beginning)
{
	static const char *const reload[] = {"systemctl", "--user", "daemon-reload", NULL};
	static const char *const enable[] = {"systemctl", "--user", "enable", "stint-worker.service", NULL};
	static const char *const restart[] = {"systemctl", "--user", "restart", "stint-worker.service", NULL};
	struct cli *cli = beginning->cli;
	const char *runtime = getenv("XDG_RUNTIME_DIR"), *config = getenv("XDG_CONFIG_HOME"),
		   *home = getenv("HOME");

	if (geteuid() == 0 || !is_systemd() || !runtime || !home ||
		access(cli_text(cli, "%s/systemd/private", runtime), F_OK) < 0)
		return false;
	const char *dir = cli_text(cli, "%s/systemd/user",
		config && config[0] == '/' ? config : cli_text(cli, "%s/.config", home));
	int r = write_unit(dir, "stint-worker.service",
		cli_text(cli,
			"# Written by stint worker enroll.\n[Unit]\nDescription=stint: worker supervisor\n\n[Service]\nType=notify\n"
			"ExecStart=%s\nRestart=always\nRestartSec=5\nRestartPreventExitStatus=78\nTimeoutStopSec=330\nKillMode=mixed\n\n"
			"[Install]\nWantedBy=default.target\n",
			unit_command(beginning)));
	if (r < 0 || run_quietly(reload) != 0 || run_quietly(enable) != 0 || run_quietly(restart) != 0)
		return false;
	cli_put(cli,
		"runs      as stint-worker.service of this user; loginctl enable-linger lets it run without a login, systemctl --user "
		"disable --now stint-worker stops it\n");
	return true;
}

/* ---- a process of ours ---------------------------------------------------------------------------------------------- */

/* Some ends come again at the next start. */
static bool comes_back(int status)
{
	if (!WIFEXITED(status))
		return true;
	switch (WEXITSTATUS(status)) {
	case 0: /* the server, or a person, has told it to end */
	case STATUS_USAGE:
	case STATUS_CONFIG:
	case STATUS_REFUSED:
		return false;
	}
	return true;
}

/* True: it has ended, with *ret_status. */
static bool ends_within(pid_t pid, int patience_ms, int *ret_status)
{
	int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + patience_ms;

	while (!spawn_has_ended(pid, ret_status)) {
		if (clock_ms(CLOCK_MONOTONIC) > until_ms)
			return false;
		poll(NULL, 0, LOOK_MS);
	}
	return true;
}

static void keep_running(const struct words *words, pid_t pid, int log)
{
	int64_t since_ms = clock_ms(CLOCK_MONOTONIC);
	int again_ms = 0, status;

	while (pid > 0) {
		status = spawn_wait(pid);
		if (!comes_back(status))
			return;
		again_ms = again_ms == 0 || clock_ms(CLOCK_MONOTONIC) - since_ms > STEADY_MS ? AGAIN_MS
											     : 2 * again_ms;
		again_ms = again_ms > AGAIN_MS_MAX ? AGAIN_MS_MAX : again_ms;
		dprintf(log, "stint: the worker ended (%s %d); another one is started in %d s\n",
			WIFEXITED(status) ? "status" : "signal",
			WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), again_ms / 1000);
		poll(NULL, 0, again_ms);
		since_ms = clock_ms(CLOCK_MONOTONIC);
		pid = spawn_start(words->items, "STINT_URL", log);
	}
}

/* In the child that stays. The caller hears of a worker that cannot run. */
static int stay(const struct beginning *beginning, int ready_fd)
{
	struct cli *cli = beginning->cli;
	const char *path = cli_text(cli, "%s/worker.log", beginning->home);
	cleanup(close_at) int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct words words = {0};
	int status = 0;

	worker_words(beginning, &words);
	pid_t pid = log < 0 ? -errno : spawn_start(words.items, "STINT_URL", log);
	if (pid < 0)
		return cli_fail(cli, EXIT_FAILED, "failed", NULL, "cannot start %s: %s", beginning->program,
			strerror(-pid));
	if (ends_within(pid, BEGIN_MS, &status) && !comes_back(status))
		return cli_fail(cli, EXIT_FAILED, "ended", cli_text(cli, "tail %s", cli_quote(cli, path)),
			"the worker ended at once, with status %d", WEXITSTATUS(status));
	cli_put(cli,
		"runs      in the background as process %d, which starts the worker again when it dies; kill %d ends both. After a start "
		"of this machine: %s --home %s\n",
		(int)getpid(), (int)getpid(), beginning->program, cli_quote(cli, beginning->home));
	cli_put(cli, "log       %s\n", path);
	cli_flush(cli);
	spawn_tell_ready(ready_fd, log);
	keep_running(&words, pid, log);
	return 0;
}

static int begin_as_process(const struct beginning *beginning)
{
	bool is_child = false;
	int ready_fd = -1;

	cli_flush(beginning->cli); /* or both would print it */
	int r = spawn_detach(&is_child, &ready_fd);

	if (r < 0)
		return cli_fail_fault(beginning->cli, r);
	return is_child ? stay(beginning, ready_fd) : r;
}

/* ---- enroll --------------------------------------------------------------------------------------------------------- */

static const struct flag enroll_flags[] = {
	{"home", 0, FLAG_TEXT, OFFER_FILES, .value = "DIR",
		.text = "the state directory of the worker (default $STINT_HOME, /var/lib/stint-worker for root, else "
			"~/.local/state/stint-worker)"},
	{"name", 'n', FLAG_TEXT, .value = "NAME",
		.text = "what this machine is called (default its host name)"},
	{"ca", 0, FLAG_TEXT, OFFER_FILES, .value = "FILE",
		.text = "the authority of the server, where a proxy answers that does not show it"},
	{"plain", 0, FLAG_SWITCH,
		.text = "send the code by http to another computer: anybody on the way can use it"},
	{"config", 0, FLAG_TEXT, OFFER_FILES, .value = "FILE",
		.text = "what the worker may run (default /etc/stint/worker.json for root, if it is there, else the usual files)"},
	{"no-start", 0, FLAG_SWITCH, .text = "the credential alone; start no worker"},
	{0},
};

/* The worker that is found by its home; JSON of the enrolment into `said`. */
static int enrol(struct cli *cli, const char *program, struct buf *said)
{
	static const char *const passed[] = {"home", "name", "ca"};
	struct words words = {0};

	add(&words, program);
	add(&words, "enroll");
	add(&words, args_plain(&cli->args, 0));
	add(&words, args_plain(&cli->args, 1));
	for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
		add_flag(&words, cli_text(cli, "--%s", passed[i]), args_text(&cli->args, passed[i]));
	if (args_has(&cli->args, "plain"))
		add(&words, "--plain");
	add(&words, "--json");
	return spawn_and_hear(words.items, said);
}

/* What goes on in the background must not show a code in the list of processes that may be good for other machines. */
static void hide_code(struct cli *cli)
{
	char *code = (char *)args_plain(&cli->args, 1); /* a word of our own command line */

	memset(code, '*', strlen(code));
}

/* Of the program, whose words were printed, to ours. */
static int failed(struct cli *cli, int status)
{
	static const struct {
		int of_program;
		enum exit_status ours;
		const char *code, *fix;
	} ends[] = {
		{2, EXIT_USAGE, "usage", "stint worker enroll --help"},
		{4, EXIT_CONFLICT, "code_gone", "stint worker invite   # on the server's side"},
		{7, EXIT_UNREACHABLE, "untrusted", NULL},
		{69, EXIT_UNREACHABLE, "unreachable", NULL},
	};

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		if (status == ends[i].of_program)
			return cli_fail(
				cli, ends[i].ours, ends[i].code, ends[i].fix, "this machine is not enrolled");
	}
	return cli_fail(cli, EXIT_FAILED, status < 0 ? "not_installed" : "failed", "stint doctor",
		"this machine is not enrolled");
}

static int tell_nothing_to_run(const struct beginning *beginning)
{
	struct cli *cli = beginning->cli;

	cli_say(cli,
		"no worker was started: nothing says what it may run. Write executors into %s, as in\n"
		"  {\"executors\": {\"tests\": {\"kind\": \"command\", \"argv\": [\"make\", \"test\"]}}}\n"
		"and start it: %s --home %s%s%s",
		beginning->config ? beginning->config : "~/.config/stint/config.json", beginning->program,
		cli_quote(cli, beginning->home), beginning->config ? " --config " : "",
		beginning->config ? beginning->config : "");
	return 0;
}

static int begin(struct cli *cli, struct beginning *beginning)
{
	static const char usual[] = "/etc/stint/worker.json";

	beginning->config = args_text(&cli->args, "config");
	if (!beginning->config && geteuid() == 0 && access(usual, F_OK) == 0)
		beginning->config = usual;
	int count = choose(beginning);
	if (count < 0)
		return cli_fail(cli, EXIT_FAILED, "invalid", "stint worker run --check-config",
			"this machine is enrolled, and no worker was started: its configuration is wrong");
	if (count == 0)
		return tell_nothing_to_run(beginning);
	return begin_as_service(beginning) || begin_as_user(beginning) ? 0 : begin_as_process(beginning);
}

static int run_enroll(struct cli *cli)
{
	cleanup(buf_done) struct buf said = {.max = SAID_BYTES_MAX};
	struct beginning beginning = {.cli = cli, .program = program_beside(cli, "stint-worker")};
	yyjson_doc *doc = NULL;

	int status = enrol(cli, beginning.program, &said);
	hide_code(cli);
	if (status != 0)
		return failed(cli, status);
	if (json_read_reply(cli_span(cli, &said), &doc) < 0)
		return cli_fail(cli, EXIT_FAILED, "failed", NULL,
			"stint-worker has said something else than expected");
	yyjson_val *root = yyjson_doc_get_root(doc);
	beginning.home = field_cstr(cli, root, "home");
	if (cli->output == OUTPUT_JSON)
		status = cli_put_json(cli, "machine", root);
	else
		cli_put(cli, "enrolled  %s at %s, token %s, which renews itself\nkept in   %s/machine\n",
			field_cstr(cli, root, "name"), field_cstr(cli, root, "url"),
			field_cstr(cli, root, "id"), beginning.home);
	yyjson_doc_free(doc);
	if (status != 0 || args_has(&cli->args, "no-start"))
		return status;
	return begin(cli, &beginning);
}

const struct verb verb_worker_enroll = {
	.name = "worker enroll",
	.arguments = "URL CODE",
	.gives = NEEDS_NO_SERVER | GIVES_JSON,
	.brief = "this machine becomes a worker",
	.text = "Shows the code of stint worker invite to the server at URL, keeps a credential of this machine's own (it renews itself), and "
		"starts a worker that is started again when it dies: by systemd where that runs, else by a process in the background. The "
		"server has to show the authority that the code names before anything is sent. The same command again is safe.",
	.flags = enroll_flags,
	.examples =
		"stint worker enroll https://queue.example.org:8787 stint_join_0123456789abcdef_abcdefghijklmnopqrstuvwxyz\n",
	.run = run_enroll,
};
