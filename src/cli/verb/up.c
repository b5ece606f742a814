/*
 * stint up: a server and a worker here, for a laptop, and stint-notify if the configuration has targets; in the foreground, or
 * with --detach in the background.
 *
 *	look ──a server runs here──▶ say where, end
 *	  └──▶ start stintd ──it is ready──▶ start stint-worker, stint-notify ──▶ say where and what to try ──▶ wait
 *	          └──it ends first──▶ its own words are on the terminal already; say what helps
 *	wait ──one of the programs is killed, or a companion cannot start now──▶ say so; start it again, after a while
 *	  ├──a companion ends──▶ say so; the server goes on
 *	  ├──the server ends by itself──▶ stop the companions, end with its status
 *	  └──a signal──▶ the stages below; the server is stopped after the worker, which reports to it to the last
 *
 *	RUNNING ──USR1, of stint down──▶ DRAINING ──TERM──▶ HURRYING ──Ctrl-C, TERM──▶ KILLING
 *	   └──Ctrl-C, TERM──▶ STOPPING ──Ctrl-C, TERM, or 5 s──▶ ┘ └──after a while──────┘
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/service.h"
#include "base/take.h"
#include "cli/frame/cli.h"
#include "cli/frame/spawn.h"
#include "cli/frame/text.h"
#include "cli/verb/dashboard.h"
#include "cli/verb/demo.h"
#include "cli/verb/here.h"
#include "config/config.h"

enum {
	START_MS = 60000, /* a store of a million tasks takes a second */
	STOP_MS = 10000,
	WORK_MS = 5000,         /* what runs may take to end after Ctrl-C … */
	DRAIN_MS = 300000,      /* … and after stint down */
	WORKER_STOP_MS = 30000, /* it gives its children ten seconds */
	LOOK_MS = 5,
	RACE_MS = 10000,
	AGAIN_MS =
		1000, /* a companion that was killed is started again after that; twice as long each time … */
	AGAIN_MS_MAX = 32000,
	STEADY_MS = 60000, /* … unless it had run for so long */
	SETS_MAX = 64,
	LOG_SHOWN_MAX = 16 << 10,
	ROW_INDENT = 8,
	STATUS_CONFIG = 78, /* of stintd: something it was told is wrong */
	STATUS_STORE = 74,  /* its store cannot be used */
	STATUS_NOT_NOW = 75,
};

static const struct flag flags[] = {
	{"home", 0, FLAG_TEXT, OFFER_FILES, .value = "DIR",
		.text = "the state directory (default $STINT_HOME, or ~/.local/state/stint)"},
	{"listen", 0, FLAG_TEXT, .value = "ADDRESS:PORT",
		.text = "default 127.0.0.1:8787; port 0 picks a free one"},
	{"config", 0, FLAG_TEXT, OFFER_FILES, .value = "FILE",
		.text = "instead of config.json in the state directory"},
	{"set", 0, FLAG_TEXT, .many = true, .value = "KEY=VALUE", .text = "a setting of the server"},
	{"no-worker", 0, FLAG_SWITCH, .text = "start the server alone; no task runs here"},
	{"no-demo", 0, FLAG_SWITCH, .text = "do not add the three demo tasks to a new store"},
	{"no-open", 0, FLAG_SWITCH, .text = "print the link to the dashboard; do not open a browser"},
	{"detach", 'd', FLAG_SWITCH,
		.text = "in the background; logs/up.log of the state directory has what it says; stint down stops it"},
	{0},
};

struct running;
struct command_words;

enum up_stage { RUNNING, DRAINING, STOPPING, HURRYING, KILLING };

enum { SERVER, WORKER, NOTIFY, NEWS, PROGRAMS };

/* One of the programs that run here. One that is killed is started again. */
struct program {
	const char *name, *goes_on; /* what goes on while it is away */
	void (*words)(const struct running *running, struct command_words *words); /* its command line */
	pid_t pid;                                                                 /* 0: it does not run */
	int64_t since_ms, again_at_ms; /* the second: when it is started again; 0: it is not */
	int again_ms;
	int status; /* of its last end */
};

struct running {
	struct cli *cli;
	char home[1024];
	struct program programs[PROGRAMS];
	int signals; /* a signalfd for INT, TERM, HUP, USR1 and CHLD */
	int lock;    /* see here_lock() */
	int log;     /* what the programs write to; -1: to our terminal */
	int ready;   /* see spawn_tell_ready(); -1: in the foreground */
	int told;    /* where the server tells us of the sockets that we keep for the next one; -1: nowhere */
	int sockets[SERVICE_SOCKETS_MAX];
	size_t socket_count;
	enum up_stage stage;
	int64_t stage_ms; /* when it began */
	bool was_ready;   /* the server was */
	bool notifies;    /* the configuration has "notify" */
	bool rooted;      /* … and "roots": then nothing is added to them */
	const char
		*roots[2]; /* else these: the home of the user, and where we are if that is outside of it */
	size_t root_count;
	bool hush; /* log.level is not set: the programs log problems only */
};

/* ---- who is here already -------------------------------------------------------------------------------------------- */

/* The command as it was called, so that the line can be pasted where stint is not installed. */
static const char *own_name(struct cli *cli)
{
	return strchr(cli->program, '/') ? cli->program : "stint";
}

/* What another terminal needs to be told first; nothing, if it would look there anyway. */
static const char *before_try(const struct running *running)
{
	struct cli *cli = running->cli;
	char usual[sizeof cli->home];

	return config_usual_home(usual, sizeof usual) && strcmp(usual, running->home) == 0
		? ""
		: cli_text(cli, "export STINT_HOME=%s; ", cli_quote(cli, running->home));
}

static int tell_running(struct running *running)
{
	struct cli *cli = running->cli;
	char url[256];

	if (!here_url(running->home, url, sizeof url))
		strcpy(url, "its socket");
	cli_put(cli, "stint is already up: %s, store in %s\n", url, here_short(cli, running->home));
	cli_put(cli, "try     %s%s ls\n", before_try(running), own_name(cli));
	return EXIT_GOOD;
}

/* ---- children ------------------------------------------------------------------------------------------------------- */

enum {
	ARGV_MAX = 2 * SETS_MAX + 24,
};

struct command_words {
	const char *items[ARGV_MAX + 1]; /* NULL behind the last */
	size_t count;
};

static void add_word(struct command_words *words, const char *word)
{
	assert(words->count < ARGV_MAX);
	words->items[words->count++] = word;
}

/* The flag, if it has a value. */
static void add_flag(struct command_words *words, const char *flag, const char *value)
{
	if (!value)
		return;
	add_word(words, flag);
	add_word(words, value);
}

static void server_words(const struct running *running, struct command_words *words)
{
	const struct args *args = &running->cli->args;
	const char *set;
	size_t at = 0;

	add_word(words, program_beside(running->cli, "stintd"));
	add_flag(words, "--home", running->home);
	add_flag(words, "--set", running->hush ? "log.level=warn" : NULL);
	add_flag(words, "--listen", args_text(args, "listen"));
	add_flag(words, "--config", args_text(args, "config"));
	for (int i = 0; i < SETS_MAX && (set = args_each(args, "set", &at)); i++)
		add_flag(words, "--set", set);
}

/* A worker that runs the commands of stint run, where its user works. */
static void worker_words(const struct running *running, struct command_words *words)
{
	static const char *const first[] = {"--shell", "--agents", "--concurrency", "4"};
	struct cli *cli = running->cli;

	add_word(words, program_beside(cli, "stint-worker"));
	add_flag(words, "--home", running->home);
	for (size_t i = 0; i < sizeof first / sizeof *first; i++)
		add_word(words, first[i]);
	add_flag(words, "--drain-ms", cli_text(cli, "%d", DRAIN_MS));
	for (size_t i = 0; i < running->root_count; i++) {
		const char *home = getenv("HOME");
		if (home && strcmp(running->roots[i], home) == 0)
			add_word(
				words, "--under-home"); /* not the home itself: its private files are in it */
		else
			add_flag(words, "--root", running->roots[i]);
	}
	add_flag(words, "--config", args_text(&cli->args, "config"));
	add_flag(words, "--set", running->hush ? "log.level=error" : NULL);
}

static void notify_words(const struct running *running, struct command_words *words)
{
	add_word(words, program_beside(running->cli, "stint-notify"));
	add_flag(words, "--home", running->home);
	add_flag(words, "--set", running->hush ? "log.level=warn" : "log.format=auto");
	add_flag(words, "--config", args_text(&running->cli->args, "config"));
}

/* What needs the person, on this terminal and on the desktop. Hints that would have to name our home are left out. */
static void news_words(const struct running *running, struct command_words *words)
{
	add_word(words, program_beside(running->cli, "stint"));
	add_word(words, "inbox");
	add_word(words, "--follow");
	if (before_try(running)[0])
		add_word(words, "--quiet");
	add_flag(words, "--home", running->home);
}

/* ---- the sockets of the server ---------------------------------------------------------------------------------------- */

static const char *told_path(const struct running *running)
{
	return cli_text(running->cli, "%s/up.sock", running->home);
}

/* Without it the server does as well, but while it is away another program can take its port. */
static void hear_of_sockets(struct running *running)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = told_path(running);
	const int one = 1;

	running->told = -1;
	if (strlen(path) >= sizeof address.sun_path || directory_make(running->home) < 0)
		return;
	strcpy(address.sun_path, path);
	cleanup(close_at) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unlink(path);
	mode_t mask = umask(077);
	int r = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&address, sizeof address);
	umask(mask);
	if (r == 0 && setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &one, sizeof one) == 0)
		running->told = take_fd(fd);
}

static void keep_sockets(struct running *running)
{
	int fd = -ENOMSG;

	while (running->told >= 0 &&
		(fd = service_hear(running->told, running->programs[SERVER].pid)) != -EAGAIN) {
		if (fd >= 0 && running->socket_count < SERVICE_SOCKETS_MAX)
			running->sockets[running->socket_count++] = fd;
		else if (fd >= 0)
			close(fd);
		else if (fd != -ENOMSG)
			return;
	}
}

/* 0, or a negative errno. */
static int start_program(struct running *running, struct program *program)
{
	bool is_server = program == &running->programs[SERVER];
	struct command_words words = {0};

	program->words(running, &words);
	program->again_at_ms = 0;
	program->since_ms = clock_ms(CLOCK_MONOTONIC);
	const struct spawn_service service = {told_path(running), running->sockets, running->socket_count};
	pid_t pid = is_server && running->told >= 0 ? spawn_start_service(words.items, running->log, &service)
						    : spawn_start(words.items, is_server ? NULL : "STINT_URL",
							      running->log); /* their server is ours */
	program->pid = pid > 0 ? pid : 0;
	return pid > 0 ? 0 : pid;
}

static void start_companion(struct running *running, struct program *program)
{
	int r = start_program(running, program);

	if (r < 0)
		cli_say(running->cli, "stint: cannot start %s: %s; %s", program->name, strerror(-r),
			program->goes_on);
}

static bool is_beneath(const char *path, const char *root)
{
	size_t len = strlen(root);

	return strncmp(path, root, len) == 0 && (path[len] == 0 || path[len] == '/' || root[len - 1] == '/');
}

/* Where the worker may work, unless the configuration says it. */
static void choose_roots(struct running *running)
{
	const char *home = getenv("HOME"), *here = cli_path(running->cli, ".");
	bool has_home = home && home[0] == '/';

	if (has_home)
		running->roots[running->root_count++] = home;
	if (here && !(has_home && is_beneath(here, home)))
		running->roots[running->root_count++] = here;
}

/* What the configuration says of logs and roots, and whether it has targets for stint-notify. */
static void look_into_config(struct running *running)
{
	cleanup(config_done) struct config config = {0};
	const struct args *args = &running->cli->args;
	struct config_request request = {.home = args_text(args, "home"), .file = args_text(args, "config")};
	const char *set;
	size_t at = 0;

	config_read(&config, &request);
	running->hush = config.values[CONFIG_LOG_LEVEL].origin.source == CONFIG_DEFAULT;
	while ((set = args_each(args, "set", &at)))
		running->hush &= strncmp(set, "log.level=", 10) != 0;
	for (uint32_t i = 0; i < config.foreign_count; i++) {
		running->notifies |= strcmp(config.foreign[i].name, "notify") == 0;
		running->rooted |= strcmp(config.foreign[i].name, "roots") == 0;
	}
	if (!running->rooted)
		choose_roots(running);
}

static int start(struct running *running)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD};
	sigset_t wanted;

	sigemptyset(&wanted);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		sigaddset(&wanted, numbers[i]);
	sigprocmask(SIG_BLOCK, &wanted, NULL);
	running->signals = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
	int r = running->signals < 0 ? -errno : start_program(running, &running->programs[SERVER]);
	return r < 0 ? cli_fail_fault(running->cli, r) : 0;
}

/* ---- stopping ---------------------------------------------------------------------------------------------------------- */

static void signal_program(struct running *running, int which, int number)
{
	if (running->programs[which].pid > 0)
		spawn_signal(running->programs[which].pid, number);
}

/* What stint-notify has not sent by now it sends the next time. */
static void move(struct running *running, enum up_stage stage)
{
	bool kills = stage == KILLING;

	assert(stage > running->stage || kills);
	running->stage = stage;
	running->stage_ms = clock_ms(CLOCK_MONOTONIC);
	signal_program(running, WORKER, kills ? SIGKILL : SIGTERM);
	signal_program(running, NOTIFY, kills ? SIGKILL : SIGTERM);
	signal_program(running, NEWS, kills ? SIGKILL : SIGTERM);
	if (kills || running->programs[WORKER].pid == 0)
		signal_program(running, SERVER, kills ? SIGKILL : SIGTERM);
}

/* Said at once: a terminal that is silent for five seconds looks as if Ctrl-C had no effect. */
static void tell_work(struct running *running)
{
	struct cli *cli = running->cli;

	if (running->programs[WORKER].pid == 0 || !here_find_server(cli, running->home))
		return;
	struct here_work work = here_work(cli, getpid());
	if (work.count > 0)
		cli_say(cli, "stint: stopping; %s %s %d s to end; Ctrl-C again gives %s back at once",
			work.names, work.count == 1 ? "has" : "have", WORK_MS / 1000,
			work.count == 1 ? "it" : "them");
}

static void hear_signal(struct running *running, uint32_t number)
{
	if (number == SIGUSR1 && running->stage == RUNNING) {
		move(running, DRAINING);
	} else if (number != SIGUSR1 && running->stage == RUNNING) {
		move(running, STOPPING);
		tell_work(running);
	} else if (number != SIGUSR1) {
		move(running, running->stage < HURRYING ? HURRYING : KILLING);
	}
}

/* Each stage has its time. */
static void look_at_clock(struct running *running)
{
	static const int most_ms[] = {
		[DRAINING] = DRAIN_MS + WORKER_STOP_MS,
		[STOPPING] = WORK_MS,
		[HURRYING] = WORKER_STOP_MS,
		[KILLING] = STOP_MS,
	};
	int64_t spent_ms = clock_ms(CLOCK_MONOTONIC) - running->stage_ms;

	if (running->stage == HURRYING) /* two signals that come together are one to the worker */
		signal_program(running, WORKER, SIGTERM);
	if (running->stage == RUNNING || spent_ms <= most_ms[running->stage])
		return;
	move(running, running->stage < HURRYING ? HURRYING : KILLING);
}

/* ---- what ended -------------------------------------------------------------------------------------------------------- */

/* The shims have ended what a dead worker ran, and the next worker reports it. Undelivered webhooks are delivered by the
 * restarted stint-notify. A dead server comes back on its sockets, where the worker and everybody else look for it. */
static void start_again_later(struct running *running, struct program *program)
{
	int64_t now_ms = clock_ms(CLOCK_MONOTONIC);
	bool anew = program->again_ms == 0 || now_ms - program->since_ms > STEADY_MS;

	program->again_ms = anew ? AGAIN_MS : 2 * program->again_ms;
	if (program->again_ms > AGAIN_MS_MAX)
		program->again_ms = AGAIN_MS_MAX;
	program->again_at_ms = now_ms + program->again_ms;
	cli_say(running->cli, "stint: %s %s; another one is started in %d s", program->name,
		WIFSIGNALED(program->status)
			? cli_text(running->cli, "was ended by signal %d", WTERMSIG(program->status))
			: "cannot start now",
		program->again_ms / 1000);
}

/* By a signal of somebody else: a server that was not ready yet is not started again, because it may never be. */
static bool comes_back(const struct running *running, const struct program *program)
{
	if (running->stage != RUNNING)
		return false;
	if (program == &running->programs[SERVER])
		return WIFSIGNALED(program->status) && running->was_ready;
	return WIFSIGNALED(program->status) || WEXITSTATUS(program->status) == STATUS_NOT_NOW;
}

static void look_after(struct running *running, struct program *program)
{
	bool is_server = program == &running->programs[SERVER];

	if (program->pid == 0 && program->again_at_ms > 0 && running->stage == RUNNING &&
		clock_ms(CLOCK_MONOTONIC) >= program->again_at_ms)
		start_companion(running, program);
	if (program->pid == 0 || !spawn_has_ended(program->pid, &program->status))
		return;
	program->pid = 0;
	if (comes_back(running, program))
		start_again_later(running, program);
	else if (running->stage != RUNNING && program == &running->programs[WORKER])
		signal_program(running, SERVER, SIGTERM);
	else if (running->stage == RUNNING && !is_server)
		cli_say(running->cli, "stint: %s ended, with status %d; %s", program->name,
			WEXITSTATUS(program->status), program->goes_on);
}

/* Is the server gone, and nobody starts another one? */
static bool is_over(const struct running *running)
{
	const struct program *server = &running->programs[SERVER];

	return server->pid == 0 &&
		(running->stage == RUNNING ? server->again_at_ms == 0 : running->programs[WORKER].pid == 0);
}

/* Signals that came within the time. Returns true when the server has ended for good. */
static bool pump(struct running *running, int timeout_ms)
{
	struct pollfd poll_fds[] = {
		{.fd = running->signals, .events = POLLIN}, {.fd = running->told, .events = POLLIN}};
	struct signalfd_siginfo info;

	poll(poll_fds, 2, timeout_ms);
	keep_sockets(running);
	while (read(running->signals, &info, sizeof info) == sizeof info) {
		if (info.ssi_signo != SIGCHLD)
			hear_signal(running, info.ssi_signo);
	}
	for (size_t i = 0; i < PROGRAMS; i++)
		look_after(running, &running->programs[i]);
	look_at_clock(running);
	return is_over(running);
}

/* The directory, or the nearest one above it that is there, cannot be written by us. */
static bool is_shut(const char *home)
{
	char path[1024];

	snprintf(path, sizeof path, "%s", home);
	for (char *slash; access(path, F_OK) < 0 && errno == ENOENT && (slash = strrchr(path, '/'));)
		slash[slash == path] = 0;
	return access(path, W_OK) < 0;
}

/* Does another program listen where the server was asked to listen? */
static bool is_port_taken(struct running *running, const char *listen)
{
	int r = server_probe(cli_text(running->cli, "http://%s", listen));

	return r == 0 || r == -EPROTO;
}

/* The server has ended by itself: what is the matter, as far as we can see, and what helps. Its own words are printed already. */
static int tell_ended(struct running *running, int status)
{
	struct cli *cli = running->cli;
	const char *listen = args_text(&cli->args, "listen");

	listen = listen ? listen : "127.0.0.1:8787";
	if (status == STATUS_CONFIG && is_shut(running->home))
		return cli_fail(cli, EXIT_FAILED, "ended",
			"stint up --home /tmp/stint   # a directory of your own",
			"cannot write to the state directory %s", here_short(cli, running->home));
	if (status == EXIT_FAILURE && is_port_taken(running, listen))
		return cli_fail(cli, EXIT_FAILED, "ended", "stint up --listen 127.0.0.1:0   # a free port",
			"another program listens on %s", listen);
	return cli_fail(cli, EXIT_FAILED, "ended",
		status == STATUS_CONFIG ? "stint config show --origin   # or stint doctor" : "stint doctor",
		"the server ended by itself, with status %d", status);
}

/* What the programs said: in the background nobody has seen it yet. */
static void show_log(struct running *running)
{
	char text[LOG_SHOWN_MAX];
	ssize_t got = running->ready >= 0 ? pread(running->log, text, sizeof text, 0) : 0;

	if (got > 0)
		fwrite(text, 1, (size_t)got, stderr);
}

static int end_status(struct running *running)
{
	int status = running->programs[SERVER].status;

	show_log(running);
	if (running->stage != RUNNING) {
		cli_say(running->cli, "stint: stopped");
		return EXIT_GOOD;
	}
	if (WIFEXITED(status))
		return tell_ended(running, WEXITSTATUS(status));
	return cli_fail(running->cli, EXIT_FAILED, "ended", "stint up", "the server was ended by signal %d",
		WTERMSIG(status));
}

/* ---- what there is ----------------------------------------------------------------------------------------------------- */

/* The text wraps at words behind its name. */
static void put_row(struct cli *cli, const char *name, const char *text)
{
	cli_put(cli, "%-*s", ROW_INDENT, name);
	cli_put_wrapped(cli, text, ROW_INDENT);
}

/* "claude 2.1.325, your login, for 400 min more": the worker looks, because it knows the agents. */
static void put_agent(struct cli *cli, bool first, yyjson_val *agent)
{
	const char *version = field_cstr(cli, agent, "version"), *problem = field_cstr(cli, agent, "problem");
	const char *name = field_cstr(cli, agent, "name");
	bool none = yyjson_equals_str(field_get(agent, "login"), "none");

	put_row(cli, first ? "agents" : "",
		cli_text(cli, "%s%s%s%s, %s%s%s", name, version[0] ? " " : "", version,
			version[0] && !field_bool(agent, "tried") ? " (untried)" : "",
			problem[0] ? problem : field_cstr(cli, agent, "loginText"),
			none ? "; try  stint agent login " : "", none ? name : ""));
}

/* True: there is one that can be used. */
static bool put_agents(const struct running *running)
{
	struct cli *cli = running->cli;
	const char *argv[] = {program_beside(cli, "stint-worker"), "agent", "ls", "--json", "--home",
		running->home, NULL, NULL, NULL};
	const char *config = args_text(&cli->args, "config");
	cleanup(buf_done) struct buf said = {0};
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;
	size_t i, count = 0;
	yyjson_val *agent;

	if (config) {
		argv[6] = "--config";
		argv[7] = config;
	}
	buf_init(&said, 1 << 20);
	if (spawn_and_read(argv, &said) == 0)
		json_read_reply(buf_span(&said), &doc);
	yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(doc), "agents"), i, count, agent)
	{
		put_agent(cli, i == 0, agent);
	}
	if (count == 0)
		put_row(cli, "agents", "none found (looked for claude, codex, gemini, opencode, openclaw)");
	return count > 0;
}

static const char *reach_of(const char *url)
{
	struct http_address address;
	const char *complaint;

	return http_address_parse(url, &address, &complaint) == 0 && http_address_is_loopback(&address)
		? "this computer only"
		: "open to others, through the proxy in front";
}

/* Where commands may be run, and what of the home they see. */
static const char *works_where(const struct running *running)
{
	struct cli *cli = running->cli;
	const char *home = getenv("HOME");

	if (running->rooted)
		return "ready for stint run -- COMMAND in any directory under \"roots\" of the configuration";
	return cli_text(cli, "ready for stint run -- COMMAND in any directory under %s%s%s%s",
		here_short(cli, running->roots[0]), running->root_count > 1 ? " or " : "",
		running->root_count > 1 ? here_short(cli, running->roots[1]) : "",
		home && running->root_count > 0 && strcmp(running->roots[0], home) == 0
			? "; commands read your home without its dot files"
			: "");
}

/* The link to the page; without one the line says how to get it. */
static void put_page(struct running *running, const char *url)
{
	struct cli *cli = running->cli;
	const char *link =
		here_find_server(cli, running->home) ? dashboard_link(cli, url, NULL, false) : NULL;
	bool opened = link && !args_has(&cli->args, "no-open") && dashboard_open(cli, running->home, link);

	cli_put(cli, "%-*s%s%s\n", ROW_INDENT, "board", link ? link : "stint dashboard",
		opened         ? " (opened; the link works once)"
			: link ? " (works once)"
			       : "");
}

static void put_up(struct running *running, bool created, bool demo)
{
	struct cli *cli = running->cli;
	bool works = running->programs[WORKER].pid > 0;
	char url[256] = "";

	here_url(running->home, url, sizeof url);
	cli_put(cli, "stint %s, %sstore in %s; %s stops it\n", STINT_VERSION, created ? "new " : "",
		here_short(cli, running->home), running->ready >= 0 ? "stint down" : "Ctrl-C");
	put_row(cli, "server", cli_text(cli, "%s, %s", url, reach_of(url)));
	put_page(running, url);
	put_agents(running);
	if (works)
		put_row(cli, "worker", works_where(running));
	if (running->programs[NOTIFY].pid > 0)
		put_row(cli, "notify", "sends webhooks to the targets of the configuration: stint notify ls");
	if (demo)
		put_row(cli, "demo", "3 tasks: one works, one is killed and recovers, one asks you");
	cli_put(cli, "try     %s%s %s\n", before_try(running), own_name(cli),
		!works ? "ls"
			: running->rooted || place_holds_state(cli, cli_path(cli, "."))
			? "run --no-cwd -- echo hello"
			: "run -- echo hello");
	cli_flush(cli);
}

/* ---- the verb ------------------------------------------------------------------------------------------------------------ */

static bool is_store_in_use(const char *home)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[1100];

	snprintf(path, sizeof path, "%s/stint.db", home);
	cleanup(close_at) int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	return fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* Did another `stint up`, started in the same moment, win the store? Then its server answers soon. */
static bool lost_the_race(const struct running *running)
{
	int status = running->programs[SERVER].status;
	int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + RACE_MS;
	bool other = false;

	if (running->stage != RUNNING || !WIFEXITED(status) || WEXITSTATUS(status) != STATUS_STORE)
		return false;
	while (!(other = here_answers(running->home)) && is_store_in_use(running->home) &&
		clock_ms(CLOCK_MONOTONIC) < until_ms)
		poll(NULL, 0, LOOK_MS);
	return other;
}

static int wait_ready(struct running *running, bool *ret_ended)
{
	int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + START_MS;
	const struct program *server = &running->programs[SERVER];
	char url[256];

	while (!(*ret_ended = pump(running, LOOK_MS))) {
		if (running->stage != RUNNING)
			return 0;
		/* the server that answers may be that of another `stint up` */
		if (here_listener(running->home) == server->pid && here_answers(running->home) &&
			here_url(running->home, url, sizeof url)) {
			running->was_ready = true;
			return 0;
		}
		if (clock_ms(CLOCK_MONOTONIC) > until_ms) {
			spawn_end(server->pid, STOP_MS);
			return cli_fail(running->cli, EXIT_FAILED, "timed_out", "stint doctor",
				"the server is not ready after %d s", START_MS / 1000);
		}
	}
	return 0;
}

/* How long to wait for a signal: until a program is due to be started; -1: for ever. */
static int patience_ms(const struct running *running)
{
	int64_t now_ms = clock_ms(CLOCK_MONOTONIC), least_ms = -1;

	if (running->stage != RUNNING)
		return 100;
	for (size_t i = 0; i < PROGRAMS; i++) {
		int64_t again_at_ms = running->programs[i].again_at_ms, in_ms = again_at_ms - now_ms;
		if (again_at_ms != 0 && (least_ms < 0 || in_ms < least_ms))
			least_ms = in_ms > 0 ? in_ms : 0;
	}
	return (int)least_ms;
}

static int wait_end(struct running *running)
{
	while (!pump(running, patience_ms(running)))
		;
	for (size_t i = 0; i < PROGRAMS; i++) {
		if (running->programs[i].pid > 0)
			spawn_end(running->programs[i].pid, STOP_MS);
	}
	return end_status(running);
}

/* The server is ready: start what runs beside it, add the demo to a new store, and say what there is. */
static void start_companions(struct running *running, bool created)
{
	struct cli *cli = running->cli;

	running->lock = here_lock(running->home); /* stint down finds us by it */
	if (!args_has(&cli->args, "no-worker"))
		start_companion(running, &running->programs[WORKER]);
	if (running->notifies)
		start_companion(running, &running->programs[NOTIFY]);
	if (cli->term.tty && running->ready < 0)
		start_companion(running, &running->programs[NEWS]);
	bool works = running->programs[WORKER].pid > 0;
	put_up(running, created,
		created && works && !args_has(&cli->args, "no-demo") && demo_add(cli, running->home));
	if (running->ready >= 0)
		spawn_tell_ready(running->ready, running->log);
	running->ready = -1;
}

/* What the last one in the background said stays beside it. */
static int open_log(struct running *running)
{
	const char *dir = cli_text(running->cli, "%s/logs", running->home);
	const char *path = cli_text(running->cli, "%s/up.log", dir);

	int r = directory_make(running->home);
	if (r == 0)
		r = directory_make(dir);
	if (r < 0)
		return r;
	if (rename(path, cli_text(running->cli, "%s.1", path)) < 0 && errno != ENOENT)
		return -errno;
	running->log = open(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	return running->log < 0 ? -errno : 0;
}

/* The server, and what runs beside it, to its end. */
static int serve(struct running *running)
{
	bool ended;

	bool created = access(cli_text(running->cli, "%s/stint.db", running->home), F_OK) != 0;
	look_into_config(running);
	hear_of_sockets(running);
	int r = start(running);
	if (r == 0)
		r = wait_ready(running, &ended);
	if (r == 0 && ended) {
		r = lost_the_race(running) ? tell_running(running) : end_status(running);
	} else if (r == 0) {
		if (running->stage == RUNNING)
			start_companions(running, created);
		r = wait_end(running);
	}
	if (running->told >= 0)
		unlink(told_path(running));
	return r;
}

/* In the background: what follows is done by a child, and the caller ends when that is up. */
static int serve_detached(struct running *running)
{
	bool is_child = false;

	int r = open_log(running);
	if (r == 0)
		r = spawn_detach(&is_child, &running->ready);
	if (r < 0)
		return cli_fail(running->cli, EXIT_FAILED, "fault", "stint doctor",
			"cannot start in the background: %s", strerror(-r));
	return is_child ? serve(running) : r;
}

static int run(struct cli *cli)
{
	struct running running = {
		.cli = cli,
		.signals = -1,
		.lock = -1,
		.log = -1,
		.ready = -1,
		.programs = {{"the server", "the worker waits for it", .words = server_words},
			{"the worker", "the server goes on without a worker", .words = worker_words},
			{"stint-notify", "no webhooks are sent", .words = notify_words},
			{"stint inbox", "what needs you is not shown here", .words = news_words}},
	};

	int r = here_home(cli, running.home, sizeof running.home);
	if (r != 0)
		return r;
	if (here_answers(running.home))
		return tell_running(&running);
	r = args_has(&cli->args, "detach") ? serve_detached(&running) : serve(&running);
	int fds[] = {running.signals, running.lock, running.log, running.ready};
	for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	return r;
}

const struct verb verb_up = {
	.name = "up",
	.gives = NEEDS_NO_SERVER,
	.brief = "server and worker, here",
	.text = "Starts a server and a worker for this computer only, and stint-notify if the configuration has \"notify\". The worker "
		"runs the commands of stint run and the executors of the configuration. Prints where they are and a command to try. A "
		"new store gets three tasks that show how it works: one is done at once, one is killed in its first attempt and "
		"recovers, one asks you a question. On a terminal it says what needs you as it comes, with a notice on the desktop.\n"
		"\n"
		"Ctrl-C stops everything: running work has five seconds to end, then it goes back to its queue; a second Ctrl-C does "
		"not wait. With --detach everything runs in the background and stint down stops it. A server, a worker or a "
		"stint-notify that is killed is started again, the server on the same address. If a server is already running, it "
		"says where and exits 0.",
	.flags = flags,
	.examples = "stint up\n"
		    "stint up --detach\n"
		    "stint up --home /tmp/stint --listen 127.0.0.1:0\n",
	.run = run,
};
