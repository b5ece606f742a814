#include "exec/shim/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/tree/proc.h"
#include "exec/request/request.h"
#include "exec/tree/tree.h"

enum {
	READ_BYTES = 65536,
	LINE_BYTES = 256,
	HELD_BYTES = 128,
	LEAVE_MS = 10 * 1000, /* for a machine to switch itself off after its end line */
	BOOT_MS = 60 * 1000,  /* with KVM: a guest that takes longer has hung, as machines in machines do */
	EXIT_UNUSABLE = 70,
};

struct guest {
	const char *end_token; /* a random word: a line that begins with it ends the output */
	pid_t qemu;
	int from, to; /* -1: closed */
	bool ready, ended;
	int status, signal;
	char boot_line[LINE_BYTES]; /* of what the guest prints before it is ready */
	size_t boot_line_len;
	char held[HELD_BYTES]; /* a line break, and what may be the end line */
	size_t held_len;
	bool begun; /* the line break that held[] begins with is the guest's; the first one is not */
	char out[READ_BYTES + HELD_BYTES];
	size_t out_len;
	char in[READ_BYTES]; /* from our stdin */
	size_t in_len, in_done;
};

static void write_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t put = write(fd, bytes, len);
		if (put < 0 && errno != EINTR)
			return; /* nobody reads our output; the end is reported nevertheless */
		bytes += put > 0 ? put : 0;
		len -= put > 0 ? (size_t)put : 0;
	}
}

/* ---- what comes out ------------------------------------------------------------------------------------------------- */

/* What firmware and kernel print before the guest is ready goes to stderr, a line at a time. */
static void take_boot_byte(struct guest *guest, char byte)
{
	static const char wanted[] = "stint ready";

	if (byte == '\n') {
		while (guest->boot_line_len && guest->boot_line[guest->boot_line_len - 1] == '\r')
			guest->boot_line_len--;
		guest->ready = guest->boot_line_len == sizeof wanted - 1 &&
			memcmp(guest->boot_line, wanted, sizeof wanted - 1) == 0;
		if (!guest->ready && guest->boot_line_len) {
			write_all(STDERR_FILENO, guest->boot_line, guest->boot_line_len);
			write_all(STDERR_FILENO, "\n", 1);
		}
		guest->boot_line_len = 0;
	} else if (guest->boot_line_len < LINE_BYTES) {
		guest->boot_line[guest->boot_line_len++] = byte;
	}
}

static void put_out(struct guest *guest, char byte)
{
	guest->out[guest->out_len++] = byte;
}

static void let_go(struct guest *guest)
{
	for (size_t i = guest->begun ? 0 : 1; i < guest->held_len; i++)
		put_out(guest, guest->held[i]);
	guest->begun = true;
	guest->held_len = 0;
}

/* May what is held become the end line? */
static bool is_promising(const struct guest *guest)
{
	size_t token = strlen(guest->end_token), len = guest->held_len - 1;

	if (guest->held_len == HELD_BYTES)
		return false;
	return memcmp(guest->held + 1, guest->end_token, len < token ? len : token) == 0;
}

/* A signal that only stops a process does not end it; and raised here it would stop us. */
static bool is_deadly(int number)
{
	return number > 0 && number < 65 && number != SIGSTOP && number != SIGTSTP && number != SIGTTIN &&
		number != SIGTTOU;
}

static bool is_end_line(struct guest *guest)
{
	char text[HELD_BYTES], kind[8];
	int number;

	snprintf(text, sizeof text, "%.*s", (int)guest->held_len - 1, guest->held + 1);
	if (sscanf(text + strlen(guest->end_token), " %7s %d", kind, &number) != 2 || number < 0 ||
		number > 255)
		return false;
	if (strcmp(kind, "exit") == 0)
		guest->status = number;
	else if (strcmp(kind, "signal") == 0 && is_deadly(number))
		guest->signal = number;
	else
		return false;
	return true;
}

static void take_output(struct guest *guest, char byte)
{
	if (guest->held_len == 0) {
		if (byte == '\n')
			guest->held[guest->held_len++] = byte;
		else
			put_out(guest, byte);
		return;
	}
	if (byte == '\n' && guest->held_len > strlen(guest->end_token) && is_end_line(guest)) {
		guest->ended = true;
		return;
	}
	guest->held[guest->held_len++] = byte;
	if (byte != '\n' && is_promising(guest))
		return;
	guest->held_len--;
	let_go(guest);
	take_output(guest, byte);
}

static void read_guest(struct guest *guest)
{
	char bytes[READ_BYTES];
	ssize_t got = read(guest->from, bytes, sizeof bytes);

	if (got < 0 && errno == EINTR)
		return;
	if (got <= 0) {
		close(guest->from);
		guest->from = -1;
		return;
	}
	for (ssize_t i = 0; i < got && !guest->ended; i++) {
		if (guest->ready)
			take_output(guest, bytes[i]);
		else
			take_boot_byte(guest, bytes[i]);
	}
	write_all(STDOUT_FILENO, guest->out, guest->out_len);
	guest->out_len = 0;
}

/* ---- what goes in --------------------------------------------------------------------------------------------------- */

/* A serial line has no end of file: it stays open, and the header before the input says how long that is. */
static void feed_guest(struct guest *guest)
{
	ssize_t put;

	if (guest->in_done == guest->in_len) {
		ssize_t got = read(STDIN_FILENO, guest->in, sizeof guest->in);
		guest->in_done = 0;
		guest->in_len = got > 0 ? (size_t)got : 0;
		if (got == 0 || (got < 0 && errno != EINTR)) {
			guest->in_len = guest->in_done = SIZE_MAX; /* no more */
			return;
		}
	}
	put = write(guest->to, guest->in + guest->in_done, guest->in_len - guest->in_done);
	if (put > 0)
		guest->in_done += (size_t)put;
	else if (put < 0 && errno != EAGAIN && errno != EINTR)
		guest->in_len = guest->in_done = SIZE_MAX;
}

static bool is_hungry(const struct guest *guest)
{
	return guest->ready && !guest->ended && guest->in_len != SIZE_MAX;
}

/* ---- the machine ---------------------------------------------------------------------------------------------------- */

static int start_qemu(struct guest *guest, char **argv)
{
	int to[2], from[2];
	pid_t parent = getpid();

	if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
		return -errno;
	guest->qemu = fork();
	if (guest->qemu < 0)
		return -errno;
	if (guest->qemu == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (getppid() != parent || dup2(to[0], STDIN_FILENO) < 0 ||
			dup2(from[1], STDOUT_FILENO) < 0 || dup2(STDERR_FILENO, GUEST_SAID_FD) < 0)
			_exit(EXIT_UNUSABLE);
		execv(argv[0], argv);
		_exit(EXIT_UNUSABLE);
	}
	close(to[0]);
	close(from[1]);
	guest->to = to[1];
	guest->from = from[0];
	return fcntl(guest->to, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static void stop_qemu(struct guest *guest)
{
	int pidfd = pidfd_open_of(guest->qemu), status; /* ours, and not waited for: it is nobody else */

	if (pidfd >= 0) {
		pidfd_signal(pidfd, SIGKILL);
		close(pidfd);
	}
	while (waitpid(guest->qemu, &status, 0) < 0 && errno == EINTR)
		;
	if (guest->from >= 0)
		close(guest->from);
	close(guest->to);
	guest->boot_line_len = 0;
}

/* Until its end line, the end of qemu, or the time by which it should have been ready. */
static void converse(struct guest *guest, int64_t ready_ms)
{
	while (guest->from >= 0 && !guest->ended) {
		int64_t left_ms = ready_ms - monotonic_ms();
		struct pollfd polls[] = {
			{.fd = guest->from, .events = POLLIN},
			{.fd = is_hungry(guest) ? guest->to : -1, .events = POLLOUT},
		};
		if (!guest->ready && left_ms <= 0)
			return;
		if (poll(polls, 2, guest->ready || left_ms > INT32_MAX ? -1 : (int)left_ms) < 0 &&
			errno != EINTR)
			return;
		if (polls[0].revents)
			read_guest(guest);
		if (polls[1].revents && is_hungry(guest))
			feed_guest(guest);
	}
}

/* KVM can be there and not work: then qemu dies at once, or the guest never becomes ready. Nothing was sent to the
 * guest before that, so the machine can be started again without KVM. */
static int run_machine(struct guest *guest, char **argv)
{
	char **accel = argv;
	int fault;

	while (*accel && strcmp(*accel, GUEST_KVM) != 0)
		accel++;
	if (*accel && access(KVM_PATH, R_OK | W_OK) == 0) {
		fault = start_qemu(guest, argv);
		if (fault)
			return fault;
		converse(guest, monotonic_ms() + BOOT_MS);
		if (guest->ready)
			return 0;
		fprintf(stderr, "KVM does not work here: software emulation, which is slow\n");
		stop_qemu(guest);
	}
	if (*accel)
		*accel = GUEST_TCG;
	fault = start_qemu(guest, argv);
	if (!fault)
		converse(guest, INT64_MAX);
	return fault;
}

/* It switches itself off, or is left to the shim. */
static void see_off(struct guest *guest)
{
	int64_t until_ms = monotonic_ms() + LEAVE_MS;
	char bytes[4096];

	while (guest->from >= 0 && monotonic_ms() < until_ms) {
		struct pollfd wait = {.fd = guest->from, .events = POLLIN};
		if (poll(&wait, 1, (int)(until_ms - monotonic_ms())) > 0 &&
			read(guest->from, bytes, sizeof bytes) <= 0)
			break;
	}
}

static int end_like_it(const struct guest *guest)
{
	int number = guest->ended ? guest->signal : SIGABRT;

	if (!guest->ended)
		fprintf(stderr, "the machine went off before it said how the program ended%s\n",
			guest->ready ? "" : "; it was never ready");
	if (number == 0)
		return guest->status;
	signal(number, SIG_DFL);
	raise(number);
	return 128 + number;
}

int guest_main(char **argv)
{
	static struct guest guest;
	int fault;

	guest.end_token = argv[0];
	guest.held[guest.held_len++] = '\n';
	signal(SIGPIPE, SIG_IGN);
	fault = strlen(guest.end_token) > 64 ? -EINVAL : run_machine(&guest, argv + 1);
	if (fault) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-fault));
		return EXIT_UNUSABLE;
	}
	if (guest.ended)
		see_off(&guest);
	else
		let_go(&guest);
	write_all(STDOUT_FILENO, guest.out, guest.out_len);
	return end_like_it(&guest);
}
