#include "cli/top/raw.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum {
	ROWS_DEFAULT = 24,
	COLUMNS_DEFAULT = 80,
};

/* Another screen, no cursor; no line is longer than the screen, so nothing wraps. And back. */
static const char enter[] = "\033[?1049h\033[?25l\033[?7l\033[2J";
static const char leave[] = "\033[0m\033[?7h\033[?25h\033[?1049l";

/* A signal handler needs them: it gives the terminal back. */
static struct termios before;
static volatile sig_atomic_t taken, disturbed, stop_asked;

static const int deadly[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE};

/* Only what a signal handler may do. */
static void give_back(void)
{
	if (!taken)
		return;
	taken = 0;
	if (write(STDOUT_FILENO, leave, sizeof leave - 1) < 0) {
		/* there is no terminal any more */
	}
	tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
}

static void on_deadly(int number)
{
	give_back();
	raise(number);
}

static void on_size(int number)
{
	(void)number;
	disturbed = 1;
}

static void on_stop(int number)
{
	(void)number;
	stop_asked = 1;
}

static int take_terminal(void)
{
	struct termios mode = before;

	mode.c_lflag &= (tcflag_t) ~(ICANON | ECHO | IEXTEN); /* signals stay: Ctrl-C ends us at any time */
	mode.c_iflag &= (tcflag_t) ~(IXON | ICRNL);
	mode.c_cc[VMIN] = 1;
	mode.c_cc[VTIME] = 0;
	if (tcsetattr(STDIN_FILENO, TCSADRAIN, &mode) < 0)
		return -errno;
	taken = 1;
	disturbed = 1;
	return raw_write((struct span){enter, sizeof enter - 1});
}

static void handle(int number, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, was;

	/* what our parent had us ignore stays so */
	if (sigaction(number, NULL, &was) == 0 && was.sa_handler != SIG_IGN)
		sigaction(number, &action, NULL);
}

bool raw_is_terminal(void)
{
	return isatty(STDIN_FILENO);
}

int raw_begin(void)
{
	if (tcgetattr(STDIN_FILENO, &before) < 0)
		return -errno;
	for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
		handle(deadly[i], on_deadly, (int)(SA_RESETHAND | SA_NODEFER));
	handle(SIGTSTP, on_stop, 0);
	handle(SIGWINCH, on_size, 0);
	if (atexit(give_back) != 0)
		return -ENOMEM;
	return take_terminal();
}

void raw_end(void)
{
	give_back();
}

void raw_size(size_t *ret_rows, size_t *ret_columns)
{
	struct winsize size;
	bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0;

	*ret_rows = known ? size.ws_row : ROWS_DEFAULT;
	*ret_columns = known ? size.ws_col : COLUMNS_DEFAULT;
}

bool raw_was_disturbed(void)
{
	bool was = disturbed;

	disturbed = 0;
	return was;
}

void raw_stop_if_asked(void)
{
	if (!stop_asked)
		return;
	stop_asked = 0;
	give_back();
	raise(SIGSTOP); /* until somebody has us go on */
	take_terminal();
}

int raw_read(char *bytes, size_t room, int wait_ms)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	int r = poll(&input, 1, wait_ms);

	if (r <= 0) /* a signal is looked at by the caller */
		return 0;
	ssize_t count = read(STDIN_FILENO, bytes, room);
	if (count < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	return count > 0 ? (int)count : -EPIPE;
}

int raw_write(struct span bytes)
{
	while (bytes.len > 0) {
		ssize_t count = write(STDOUT_FILENO, bytes.data, bytes.len);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -errno;
		bytes = (struct span){bytes.data + count, bytes.len - (size_t)count};
	}
	return 0;
}
