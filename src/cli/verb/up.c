/*
 * stint up: a server and a worker here, in the foreground, for a laptop, and stint-notify if the configuration has targets; Ctrl-C
 * stops everything.
 *
 *	look ──a server runs here──▶ say where, end
 *	  └──▶ start stintd ──it is ready──▶ start stint-worker, stint-notify ──▶ say where and what to try ──▶ wait
 *	          └──it ends first──▶ its own words are on the terminal already; say what helps
 *	wait ──Ctrl-C, TERM──▶ TERM to the worker, then to the server ──they end, or KILL after a while──▶ end
 *	  ├──one of the others is killed, or cannot start now──▶ say so; start it again, after a while
 *	  ├──one of the others ends──▶ say so; the server goes on
 *	  └──the server ends──▶ stop the worker, end with its status
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
#include <sys/un.h>
#include <sys/wait.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/take.h"
#include "cli/frame/cli.h"
#include "cli/frame/spawn.h"
#include "cli/verb/demo.h"
#include "config/config.h"

enum {
	START_MS = 60000, /* a store of a million tasks takes a second */
	STOP_MS = 10000,
	WORKER_STOP_MS = 30000, /* it gives its children ten seconds */
	LOOK_MS = 5,
	RACE_MS = 10000,
	AGAIN_MS =
		1000, /* a companion that was killed is started again after that; twice as long each time … */
	AGAIN_MS_MAX = 32000,
	STEADY_MS = 60000, /* … unless it had run for so long */
	SETS_MAX = 64,
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
	{0},
};

struct running;
struct command_words;

enum { WORKER, NOTIFY, COMPANIONS };

/* A program that runs beside the server and is started again when it is killed. */
struct companion {
	const char *name, *without; /* what there is, if it does not come back */
	void (*words)(const struct running *running, struct command_words *words); /* its command line */
	pid_t pid;                                                                 /* 0: it does not run */
	int64_t since_ms, again_at_ms; /* the second: when it is started again; 0: it is not */
	int again_ms;
};

struct running {
	struct cli *cli;
	char home[1024];
	pid_t pid; /* of the server; 0: not started */
	struct companion companions[COMPANIONS];
	int signals; /* a signalfd for INT, TERM and CHLD */
	bool stopping;
	bool notifies; /* the configuration has "notify" */
	bool rooted;   /* … and "roots": then nothing is added to them */
	const char
		*roots[2]; /* else these: the home of the user, and where we are if that is outside of it */
	size_t root_count;
	bool hush; /* log.level is not set: the children log problems only */
};

/* ---- who is here already -------------------------------------------------------------------------------------------- */

/* Does a server answer on the socket of this home? */
static bool answers(const char *home)
{
	char url[1100];

	snprintf(url, sizeof url, "unix:%s/stint.sock", home);
	return server_probe(url) == 0;
}

/* The pid that listens on the socket of this home; 0: no process does. */
static pid_t listener(const char *home)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct ucred peer = {0};
	socklen_t len = sizeof peer;
	cleanup(close_at) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	int written = snprintf(address.sun_path, sizeof address.sun_path, "%s/stint.sock", home);
	if (fd < 0 || written >= (int)sizeof address.sun_path ||
		connect(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return 0;
	return peer.pid;
}

static bool read_url(const char *home, char *ret_url, size_t room)
{
	char path[1100];

	snprintf(path, sizeof path, "%s/url", home);
	return config_read_line(path, ret_url, room) == 0;
}

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

	if (!read_url(running->home, url, sizeof url))
		strcpy(url, "its socket");
	cli_put(cli, "already up: a server runs in %s and listens on %s\n", running->home, url);
	cli_put(cli, "try      %s%s ls\n", before_try(running), own_name(cli));
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
	static const char *const first[] = {"--shell", "--concurrency", "4", "--drain-ms", "5000"};
	struct cli *cli = running->cli;

	add_word(words, program_beside(cli, "stint-worker"));
	add_flag(words, "--home", running->home);
	for (size_t i = 0; i < sizeof first / sizeof *first; i++)
		add_word(words, first[i]);
	for (size_t i = 0; i < running->root_count; i++)
		add_flag(words, "--root", running->roots[i]);
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

static void start_companion(struct running *running, struct companion *companion)
{
	struct command_words words = {0};

	companion->words(running, &words);
	companion->again_at_ms = 0;
	companion->since_ms = clock_ms(CLOCK_MONOTONIC);
	pid_t pid = spawn_start(words.items, "STINT_URL"); /* its server is ours */
	if (pid < 0)
		cli_say(running->cli, "stint: %s could not be started: %s; %s", companion->name,
			strerror(-pid), companion->without);
	companion->pid = pid > 0 ? pid : 0;
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
	struct command_words words = {0};
	sigset_t wanted;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGINT);
	sigaddset(&wanted, SIGTERM);
	sigaddset(&wanted, SIGHUP);
	sigaddset(&wanted, SIGCHLD);
	sigprocmask(SIG_BLOCK, &wanted, NULL);
	running->signals = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
	if (running->signals < 0)
		return cli_fail_fault(running->cli, -errno);
	server_words(running, &words);
	pid_t pid = spawn_start(words.items, NULL);
	if (pid < 0)
		return cli_fail_fault(running->cli, pid);
	running->pid = pid;
	return 0;
}

/* A signal asks to stop; the second one asks to stop at once. The server is stopped after the worker, which reports to it to
 * the last. What stint-notify has not sent by now it sends the next time. */
static void pass_on(struct running *running)
{
	int number = running->stopping ? SIGKILL : SIGTERM;

	for (size_t i = 0; i < COMPANIONS; i++) {
		if (running->companions[i].pid > 0)
			spawn_signal(running->companions[i].pid, number);
	}
	if (running->companions[WORKER].pid == 0 || running->stopping)
		spawn_signal(running->pid, number);
	running->stopping = true;
}

/* The shims have ended what the dead worker ran, and the next worker reports it. Undelivered webhooks are delivered by the
 * restarted stint-notify. */
static void start_again_later(struct running *running, struct companion *companion, int status)
{
	int64_t now_ms = clock_ms(CLOCK_MONOTONIC);
	bool anew = companion->again_ms == 0 || now_ms - companion->since_ms > STEADY_MS;

	companion->again_ms = anew ? AGAIN_MS : 2 * companion->again_ms;
	if (companion->again_ms > AGAIN_MS_MAX)
		companion->again_ms = AGAIN_MS_MAX;
	companion->again_at_ms = now_ms + companion->again_ms;
	cli_say(running->cli, "stint: %s %s; another one is started in %d s", companion->name,
		WIFSIGNALED(status) ? cli_text(running->cli, "was ended by signal %d", WTERMSIG(status))
				    : "cannot start now",
		companion->again_ms / 1000);
}

static void look_after(struct running *running, struct companion *companion)
{
	int status;

	if (companion->pid == 0 && companion->again_at_ms > 0 && !running->stopping &&
		clock_ms(CLOCK_MONOTONIC) >= companion->again_at_ms)
		start_companion(running, companion);
	if (companion->pid == 0 || !spawn_has_ended(companion->pid, &status))
		return;
	companion->pid = 0;
	if (running->stopping && companion == &running->companions[WORKER])
		spawn_signal(running->pid, SIGTERM);
	else if (!running->stopping && (WIFSIGNALED(status) || WEXITSTATUS(status) == STATUS_NOT_NOW))
		start_again_later(running, companion, status);
	else if (!running->stopping)
		cli_say(running->cli, "stint: %s ended, with status %d; %s", companion->name,
			WEXITSTATUS(status), companion->without);
}

/* Signals that came within the time. Returns true when the server has ended; its status is in *ret_status. */
static bool pump(struct running *running, int timeout_ms, int *ret_status)
{
	struct pollfd poll_fd = {.fd = running->signals, .events = POLLIN};
	struct signalfd_siginfo info;

	poll(&poll_fd, 1, timeout_ms);
	while (read(running->signals, &info, sizeof info) == sizeof info) {
		if (info.ssi_signo != SIGCHLD)
			pass_on(running);
	}
	for (size_t i = 0; i < COMPANIONS; i++)
		look_after(running, &running->companions[i]);
	return spawn_has_ended(running->pid, ret_status);
}

/* A command that helps when the server ended with that status. */
static const char *fix_of(int status)
{
	if (status == STATUS_CONFIG)
		return "stint config show --origin   # or stint doctor";
	return status == STATUS_STORE
		? "stint doctor"
		: "stint up --listen 127.0.0.1:0   # if the port is taken; else stint doctor";
}

static int end_status(struct running *running, int status)
{
	if (running->stopping) {
		cli_say(running->cli, "stint: stopped");
		return EXIT_GOOD;
	}
	if (WIFEXITED(status))
		return cli_fail(running->cli, EXIT_FAILED, "ended", fix_of(WEXITSTATUS(status)),
			"the server ended by itself, with status %d", WEXITSTATUS(status));
	return cli_fail(running->cli, EXIT_FAILED, "ended", "stint up", "the server was ended by signal %d",
		WTERMSIG(status));
}

/* ---- what there is ----------------------------------------------------------------------------------------------------- */

static bool is_in_path(const char *name)
{
	const char *path = getenv("PATH");
	char file[1200];

	while (path && *path) {
		size_t len = strcspn(path, ":");
		snprintf(file, sizeof file, "%.*s/%s", (int)len, path, name);
		if (len > 0 && access(file, X_OK) == 0)
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

static void put_agents(struct cli *cli)
{
	static const char *const agents[] = {"claude", "codex", "gemini", "opencode", "openclaw"};
	const char *found = "", *missing = "";

	for (size_t i = 0; i < sizeof agents / sizeof *agents; i++) {
		const char **list = is_in_path(agents[i]) ? &found : &missing;
		*list = cli_text(cli, "%s%s%s", *list, **list ? ", " : "", agents[i]);
	}
	if (found[0])
		cli_put(cli, "agents   %s\n", found);
	else
		cli_put(cli, "agents   none found in PATH (looked for %s)\n", missing);
}

static const char *reach_of(const char *url)
{
	struct http_address address;
	const char *complaint;

	return http_address_parse(url, &address, &complaint) == 0 && http_address_is_loopback(&address)
		? "this computer only"
		: "open to others, through the proxy in front";
}

static void put_up(struct running *running, bool created, bool demo)
{
	struct cli *cli = running->cli;
	bool works = running->companions[WORKER].pid > 0;
	char url[256] = "";

	read_url(running->home, url, sizeof url);
	cli_put(cli, "stint %s is up; Ctrl-C stops it\n", STINT_VERSION);
	cli_put(cli, "store    %s/stint.db (%s)\n", running->home, created ? "new" : "was there");
	cli_put(cli, "url      %s (%s)\n", url, reach_of(url));
	cli_put(cli, "token    %s/admin.token\n", running->home);
	put_agents(cli);
	if (works)
		cli_put(cli, "worker   ready for `stint run -- COMMAND` in any directory under %s%s%s\n",
			running->rooted ? "\"roots\" of the configuration" : running->roots[0],
			running->root_count > 1 ? " or " : "",
			running->root_count > 1 ? running->roots[1] : "");
	if (running->companions[NOTIFY].pid > 0)
		cli_put(cli, "notify   sends webhooks to the targets of the configuration; %s notify ls\n",
			own_name(cli));
	if (demo)
		cli_put(cli,
			"demo     three tasks: demo-hello is done at once, demo-crash is killed and recovers, demo-ask asks you "
			"(stint inbox)\n");
	cli_put(cli, "try      %s%s %s\n", before_try(running), own_name(cli),
		!works                    ? "ls"
			: running->rooted ? "run --no-cwd -- echo hello"
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
static bool lost_the_race(const struct running *running, int status)
{
	int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + RACE_MS;
	bool other = false;

	if (running->stopping || !WIFEXITED(status) || WEXITSTATUS(status) != STATUS_STORE)
		return false;
	while (!(other = answers(running->home)) && is_store_in_use(running->home) &&
		clock_ms(CLOCK_MONOTONIC) < until_ms)
		poll(NULL, 0, LOOK_MS);
	return other;
}

static int wait_ready(struct running *running, bool *ret_ended, int *ret_status)
{
	int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + START_MS;

	while (!(*ret_ended = pump(running, LOOK_MS, ret_status))) {
		char url[256];
		/* the server that answers may be that of another `stint up` */
		if (running->stopping ||
			(listener(running->home) == running->pid && answers(running->home) &&
				read_url(running->home, url, sizeof url)))
			return 0;
		if (clock_ms(CLOCK_MONOTONIC) > until_ms) {
			spawn_signal(running->pid, SIGTERM);
			*ret_status = spawn_wait(running->pid);
			*ret_ended = true;
			return cli_fail(running->cli, EXIT_FAILED, "timed_out", "stint doctor",
				"the server is not ready after %d s", START_MS / 1000);
		}
	}
	return 0;
}

/* How long to wait for a signal: until a companion is due to be started; -1: for ever. */
static int patience_ms(const struct running *running)
{
	int64_t now_ms = clock_ms(CLOCK_MONOTONIC), least_ms = -1;

	if (running->stopping)
		return 100;
	for (size_t i = 0; i < COMPANIONS; i++) {
		int64_t again_at_ms = running->companions[i].again_at_ms, in_ms = again_at_ms - now_ms;
		if (again_at_ms != 0 && (least_ms < 0 || in_ms < least_ms))
			least_ms = in_ms > 0 ? in_ms : 0;
	}
	return (int)least_ms;
}

static int wait_end(struct running *running)
{
	int64_t killed_ms = 0;
	int status;

	while (!pump(running, patience_ms(running), &status)) {
		if (running->stopping && killed_ms == 0)
			killed_ms = clock_ms(CLOCK_MONOTONIC) +
				(running->companions[WORKER].pid > 0 ? WORKER_STOP_MS : STOP_MS);
		if (running->stopping && clock_ms(CLOCK_MONOTONIC) > killed_ms)
			pass_on(running);
	}
	for (size_t i = 0; i < COMPANIONS; i++) {
		if (running->companions[i].pid > 0)
			spawn_end(running->companions[i].pid, STOP_MS);
	}
	return end_status(running, status);
}

/* As an absolute path, because it is printed for other terminals. */
static int find_home(struct cli *cli, char *ret_home, size_t room)
{
	int r = place_home(cli, ret_home, room);
	const char *named = r == 0 ? cli_path(cli, ret_home) : NULL;

	if (r != 0)
		return r;
	if (!named || strlen(named) >= room)
		return cli_fail(
			cli, EXIT_USAGE, "invalid", NULL, "the path of the state directory is too long");
	memmove(ret_home, named, strlen(named) + 1);
	return 0;
}

/* The server is ready: start what runs beside it, add the demo to a new store, and say what there is. */
static void start_companions(struct running *running, bool created)
{
	struct cli *cli = running->cli;
	if (!args_has(&cli->args, "no-worker"))
		start_companion(running, &running->companions[WORKER]);
	if (running->notifies)
		start_companion(running, &running->companions[NOTIFY]);
	bool works = running->companions[WORKER].pid > 0;
	put_up(running, created,
		created && works && !args_has(&cli->args, "no-demo") && demo_add(cli, running->home));
}

static int run(struct cli *cli)
{
	struct running running = {
		.cli = cli,
		.signals = -1,
		.companions = {{"the worker", "the server goes on without a worker", .words = worker_words},
			{"stint-notify", "no webhooks are sent", .words = notify_words}},
	};
	char store[1100];
	bool ended;
	int status;

	int r = find_home(cli, running.home, sizeof running.home);
	if (r != 0)
		return r;
	if (answers(running.home))
		return tell_running(&running);
	snprintf(store, sizeof store, "%s/stint.db", running.home);
	bool created = access(store, F_OK) != 0;
	look_into_config(&running);
	r = start(&running);
	if (r == 0)
		r = wait_ready(&running, &ended, &status);
	if (r == 0 && ended) {
		r = lost_the_race(&running, status) ? tell_running(&running) : end_status(&running, status);
	} else if (r == 0) {
		if (!running.stopping)
			start_companions(&running, created);
		r = wait_end(&running);
	}
	if (running.signals >= 0)
		close(running.signals);
	return r;
}

const struct verb verb_up = {
	.name = "up",
	.gives = NEEDS_NO_SERVER,
	.brief = "server and worker, here",
	.text = "Starts a server and a worker in the foreground, for this computer only, and stint-notify if the configuration has "
		"\"notify\". The worker runs the commands of stint run and the executors of the configuration. Prints where they are "
		"and a command to try. A new store gets three tasks that show how it works: one is done at once, one is killed in its "
		"first attempt and recovers, one asks you a question.\n"
		"\n"
		"Ctrl-C stops everything: running work has five seconds to end, then it goes back to its queue; a second Ctrl-C does "
		"not wait. A worker or a stint-notify that is killed is started again. If a server runs here already, it prints where "
		"and exits with status 0.",
	.flags = flags,
	.examples = "stint up\n"
		    "stint up --no-demo\n"
		    "stint up --home /tmp/stint --listen 127.0.0.1:0\n",
	.run = run,
};
