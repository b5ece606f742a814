/*
 * stint down: stops what `stint up` started here. It asks that `stint up` to end (USR1: when the running work has ended), says
 * what it waits for, and waits for the end. After a while, or with Ctrl-C, running work is given back to its queue.
 *
 *	who holds up.lock? ──nobody──▶ nothing to stop, or a server that somebody else started: say so
 *	  └──▶ USR1 ──its work ends──▶ it ends
 *	         └──Ctrl-C, or the time is over──▶ TERM: its work is given back ──▶ it ends
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/take.h"
#include "cli/frame/spawn.h"
#include "cli/verb/here.h"

enum {
	PATIENCE_MS = 300000,
	END_MS = 60000, /* after that even what was killed is gone */
};

static const struct flag flags[] = {
	{"home", 0, FLAG_TEXT, OFFER_FILES, .value = "DIR",
		.text = "the state directory (default $STINT_HOME, or ~/.local/state/stint)"},
	{"wait", 0, FLAG_DURATION, .value = "TIME", .most = 24 * 3600 * INT64_C(1000),
		.text = "how long running work may take to end (default 5m)"},
	{"now", 0, FLAG_SWITCH, .text = "give running work back to its queue at once"},
	{0},
};

/* The answer: a sentence, or {"stopped":…,"home":…}. */
static int put_answer(struct cli *cli, const char *home, bool stopped, const char *sentence)
{
	cleanup(buf_done) struct buf json = {0};
	struct json_object object;

	if (cli->output != OUTPUT_JSON) {
		cli_put(cli, "%s\n", sentence);
		return EXIT_GOOD;
	}
	buf_init(&json, 16 << 10);
	json_begin(&object, &json);
	json_member_bool(&object, "stopped", stopped);
	json_member_string(&object, "home", span_of(home));
	json_end(&object);
	return cli_put_json_buf(cli, true, "down", &json);
}

static int tell_nothing(struct cli *cli, const char *home)
{
	pid_t server = here_listener(home);

	if (server == 0)
		return put_answer(cli, home, false,
			cli_text(cli, "Nothing to stop: no server runs in %s", here_short(cli, home)));
	return cli_fail(cli, EXIT_FAILED, "not_ours", cli_text(cli, "kill %d", (int)server),
		"the server in %s was not started by stint up; it is process %d", here_short(cli, home),
		(int)server);
}

static const char *minutes(struct cli *cli, int64_t ms)
{
	return ms >= 60000 ? cli_text(cli, "%lld min", (long long)(ms / 60000))
			   : cli_text(cli, "%lld s", (long long)(ms / 1000));
}

static void tell_work(struct cli *cli, const struct here_work *work, int64_t patience_ms)
{
	if (work->count > 0 && patience_ms > 0)
		cli_say(cli, "Stopping: %s %s and %s %s to end; Ctrl-C gives %s back at once", work->names,
			work->count == 1 ? "runs" : "run", work->count == 1 ? "has" : "have",
			minutes(cli, patience_ms), work->count == 1 ? "it" : "them");
	else if (work->count > 0)
		cli_say(cli, "Stopping: %s %s back to the queue", work->names,
			work->count == 1 ? "goes" : "go");
}

/* Ctrl-C is read, not suffered: it is meant for the work that is waited for. */
static int catch_interrupts(void)
{
	sigset_t wanted;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGINT);
	sigprocmask(SIG_BLOCK, &wanted, NULL);
	return signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Until the process has ended; true: it has. */
static bool wait_end(int pid_fd, int interrupts, int64_t patience_ms)
{
	int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + patience_ms, end_ms = until_ms + END_MS, now_ms;
	struct signalfd_siginfo info;
	bool hurries = false;

	while ((now_ms = clock_ms(CLOCK_MONOTONIC)) < end_ms) {
		struct pollfd fds[] = {
			{.fd = pid_fd, .events = POLLIN}, {.fd = interrupts, .events = POLLIN}};
		int64_t left_ms = (hurries ? end_ms : until_ms) - now_ms;
		poll(fds, 2, left_ms > 0 ? (int)left_ms : 0);
		if (fds[0].revents)
			return true;
		bool asked = interrupts >= 0 && read(interrupts, &info, sizeof info) == sizeof info;
		if (!asked && (hurries || clock_ms(CLOCK_MONOTONIC) < until_ms))
			continue;
		spawn_signal_open(pid_fd, SIGTERM);
		hurries = true;
	}
	return false;
}

static int stop(struct cli *cli, const char *home, pid_t up, int pid_fd)
{
	int64_t patience_ms = args_has(&cli->args, "now") ? 0 : args_number(&cli->args, "wait", PATIENCE_MS);
	bool found = here_find_server(cli, home);
	struct here_work work = found ? here_work(cli, up) : (struct here_work){0};
	const char *waiting = found ? here_waiting(cli, patience_ms > 0 ? 0 : work.count) : NULL;
	cleanup(close_at) int interrupts = catch_interrupts();

	int r = spawn_signal_open(pid_fd, SIGUSR1);
	if (r == -EPERM)
		return cli_fail(cli, EXIT_UNAUTHORISED, "forbidden", NULL,
			"stint up in %s belongs to another user", here_short(cli, home));
	tell_work(cli, &work, patience_ms);
	if (r == 0 && !wait_end(pid_fd, interrupts, patience_ms))
		return cli_fail(cli, EXIT_FAILED, "timed_out", cli_text(cli, "kill -9 %d", (int)up),
			"stint up (process %d) does not end", (int)up);
	return put_answer(cli, home, true,
		waiting ? cli_text(cli, "Stopped. %s for the next stint up", waiting) : "Stopped.");
}

static int run(struct cli *cli)
{
	char home[1024];

	int r = here_home(cli, home, sizeof home);
	if (r != 0)
		return r;
	pid_t up = here_locker(home);
	cleanup(close_at) int pid_fd = up > 0 ? spawn_open(up) : -ESRCH;
	/* the pid may have gone to another process before it had a descriptor */
	if (pid_fd < 0 || here_locker(home) != up)
		return tell_nothing(cli, home);
	return stop(cli, home, up, pid_fd);
}

const struct verb verb_down = {
	.name = "down",
	.gives = NEEDS_NO_SERVER | GIVES_JSON,
	.brief = "stop them",
	.text = "Stops the server and the worker that stint up started here, in the background or in another terminal. Running work "
		"may end first; stint down says what it waits for. After the time of --wait, or with Ctrl-C, running work goes back "
		"to its queue and the next stint up begins it again. Tasks that wait are kept.",
	.flags = flags,
	.examples = "stint down\nstint down --now\n",
	.run = run,
};
