/*
 * stint-shim: stands between the supervisor and one program, and owns all that the program starts.
 *
 * It is a program of its own, because one shim lives beside every running program: it takes a few hundred kilobytes, starts
 * in well under a millisecond, and holds nothing of the supervisor (no token, no connection, no heap) that a hostile child
 * could look for.
 *
 *	WAITING ──receive_request──▶ STARTING ──tell_started──▶ RUNNING ──tell_ended──▶ ENDED ──look_at_children──▶ LEAVING
 *	                                └─────tell_unstarted──▶ REFUSED ──tell_ended──────▲
 *	any but WAITING ──finish, when no child is left──▶ GONE
 *
 * WAITING: there is no request yet. STARTING: the child has not become the program yet; the end of the status pipe says that
 * it has, or a message from behind the wall. REFUSED: the child could not become the program. ENDED: the program has ended.
 * LEAVING: what the program left running was asked to end.
 *
 * It is a subreaper: a descendant that loses its parent becomes its child, so the tree is empty when the kernel says that
 * it has no children. It ignores every signal; what ends it is the end of its tree. The tree is ended on an order, when
 * the program has ended, when the supervisor has died (the socket says so, or else the kernel by a signal), and when it is
 * silent past its lease (deadline.h).
 */
#include "exec/request/request.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/shim/budget.h"
#include "exec/tree/cgroup.h"
#include "exec/shim/child.h"
#include "exec/shim/deadline.h"
#include "exec/shim/guest.h"
#include "exec/shim/inside.h"
#include "exec/shim/landlock.h"
#include "exec/tree/proc.h"
#include "exec/tree/tree.h"

enum {
	PARENT_SIGNAL =
		SIGCONT, /* from the kernel when the supervisor has died; it wakes us if we were stopped */
	KILL_EVERY_MS =
		10, /* between rounds: each round finds processes that were born or orphaned in the last */
	/* How long to wait before reporting "started", so that a program that ends at once is reported once. */
	STARTED_WAIT_MS = 2,
	WALL_LINGER_MS = 5000, /* for the wall to take down what it built, also on a busy machine */
};

#define NEVER INT64_MAX

enum shim_phase {
	SHIM_WAITING,
	SHIM_STARTING,
	SHIM_RUNNING,
	SHIM_REFUSED,
	SHIM_ENDED,
	SHIM_LEAVING,
	SHIM_GONE
};

struct shim {
	enum shim_phase phase; /* changed by shim_enter() alone */
	/* Paths, the tree's first; known before the request, so that they go whatever happens. */
	char *const *cgroups;
	uint32_t cgroup_count;
	struct proc_self self;
	struct request request;
	int fds[REQUEST_FDS_MAX];
	int fd_count;
	pid_t parent, main;
	int signals; /* a signalfd */
	int status;  /* of the child, until it has become the program; then -1 */
	bool kill_used;
	bool asked;         /* to end */
	bool tearing;       /* what is killed now is the wall alone: nothing runs in it any more */
	bool connected;     /* the supervisor lives, as far as is known */
	int64_t kill_at_ms; /* when the tree is killed; NEVER: its end was not asked for */
	int64_t next_kill_ms;
	struct deadline deadline;
	struct budget budget;
	struct shim_report report;     /* the next one, and what the last ones said */
	int64_t tell_at_ms;            /* when it is due, if it tells anything */
	struct status_message message; /* of the child */
	size_t message_bytes;          /* read so far */
	uint32_t strays;               /* behind the wall */
};

static bool has_wall(const struct shim *shim)
{
	return shim->request.wall.argv[0] != NULL;
}

/* ---- its phases ------------------------------------------------------------------------------------------------- */

static bool has_started(const struct shim *shim)
{
	return shim->phase != SHIM_WAITING && shim->phase != SHIM_STARTING && shim->phase != SHIM_REFUSED;
}

static bool has_ended(const struct shim *shim)
{
	return shim->phase == SHIM_ENDED || shim->phase == SHIM_LEAVING || shim->phase == SHIM_GONE;
}

/* For each phase, the phases that may follow it. */
static const unsigned next_phases[] = {
	[SHIM_WAITING] = 1 << SHIM_STARTING,
	[SHIM_STARTING] = 1 << SHIM_RUNNING | 1 << SHIM_REFUSED | 1 << SHIM_GONE,
	[SHIM_RUNNING] = 1 << SHIM_ENDED | 1 << SHIM_GONE,
	[SHIM_REFUSED] = 1 << SHIM_ENDED | 1 << SHIM_GONE,
	[SHIM_ENDED] = 1 << SHIM_LEAVING | 1 << SHIM_GONE,
	[SHIM_LEAVING] = 1 << SHIM_GONE,
	[SHIM_GONE] = 0,
};

/* What holds in every phase. */
static void shim_check(const struct shim *shim)
{
	bool has_request = shim->phase != SHIM_WAITING;

	assert(shim->signals > SHIM_CONTROL_FD);         /* a death of ours or of a child is heard */
	assert(shim->cgroup_count <= CGROUP_LEAVES_MAX); /* their descriptors are in the request */
	assert(!has_request || shim->main > 0);          /* the child is known: nobody else is signalled */
	assert(!has_request || shim->fd_count >= REQUEST_FD_COUNT);
	assert(!has_request || shim->request.argv[0] != NULL);
	assert(!has_request || shim->deadline.timer > SHIM_CONTROL_FD); /* the end of the lease is heard */
	assert(shim->status != SHIM_CONTROL_FD);            /* the supervisor's socket is not the child's */
	assert(shim->message_bytes < sizeof shim->message); /* the next read has room */
	assert(shim->kill_at_ms != NEVER || !shim->asked);  /* a tree that got TERM gets KILL in the end */
}

static void shim_enter(struct shim *shim, enum shim_phase phase)
{
	assert(next_phases[shim->phase] >> phase & 1); /* no phase comes twice, and none is left out */
	shim->phase = phase;
	shim_check(shim);
}

/* ---- talking ------------------------------------------------------------------------------------------------------ */

static void send_report(struct shim *shim)
{
	struct shim_report report = shim->report;

	shim->report.what = 0;
	/* Five packets at most: they always fit. If nobody is there, the loop sees it and knows what to do. */
	if (shim->connected && send(SHIM_CONTROL_FD, &report, sizeof report, MSG_NOSIGNAL) < 0)
		return;
}

/* Goes with the next packet: at once, or a little later if a start is all that there is to report. */
static void tell(struct shim *shim, uint32_t what)
{
	assert(!(shim->report.what & REPORT_GONE)); /* GONE is the last report */
	shim->report.what |= what;
	shim->tell_at_ms = shim->report.what == REPORT_STARTED ? monotonic_ms() + STARTED_WAIT_MS : 0;
}

static _Noreturn void refuse(struct shim *shim, enum start_step step, int error, const char *detail)
{
	struct start_fault *fault = &shim->report.fault;

	*fault = (struct start_fault){.step = step, .error = error};
	snprintf(fault->detail, sizeof fault->detail, "%s", detail);
	for (uint32_t i = 0; i < shim->cgroup_count; i++)
		cgroup_remove(shim->cgroups[i]);
	tell(shim, REPORT_UNSTARTED | REPORT_GONE);
	send_report(shim);
	_exit(0);
}

/* ---- beginning ---------------------------------------------------------------------------------------------------- */

/* Of what the shim inherits only the socket stays open. 1 and 2 are taken by /dev/null, so that no descriptor of
 * the request gets these numbers. */
static void settle(struct shim *shim)
{
	sigset_t all, wanted;

	syscall(SYS_close_range, 1, ~0u, 0);
	if (open("/dev/null", O_RDWR | O_CLOEXEC) != 1 || open("/dev/null", O_RDWR | O_CLOEXEC) != 2)
		refuse(shim, START_SHIM, errno, "/dev/null");
	proc_self_read(&shim->self);
	proc_heed_signals(&shim->self);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGCHLD);
	sigaddset(&wanted, PARENT_SIGNAL);
	shim->signals = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
	if (shim->signals < 0)
		refuse(shim, START_SHIM, errno, "signalfd");
	if (prctl(PR_SET_PDEATHSIG, PARENT_SIGNAL, 0, 0, 0) < 0 ||
		prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		refuse(shim, START_SHIM, errno, "prctl");
}

static void take_descriptors(struct shim *shim, struct msghdr *message)
{
	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		shim->fd_count = (int)((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		assert(shim->fd_count <=
			REQUEST_FDS_MAX); /* the kernel gives no more than there is room for */
		memcpy(shim->fds, CMSG_DATA(part), (size_t)shim->fd_count * sizeof(int));
	}
	if (message->msg_flags & MSG_CTRUNC)
		refuse(shim, START_SHIM, EMFILE, "");
	if (shim->fd_count < REQUEST_FD_COUNT)
		refuse(shim, START_REQUEST, EPROTO, "");
}

static struct span map_request(struct shim *shim, int fd)
{
	struct stat stat;
	void *bytes;

	if (fstat(fd, &stat) < 0 || stat.st_size <= 0)
		refuse(shim, START_REQUEST, EPROTO, "");
	bytes = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		refuse(shim, START_SHIM, errno, "");
	return (struct span){bytes, (size_t)stat.st_size};
}

static void receive_request(struct shim *shim)
{
	static char packet[REQUEST_PACKET_BYTES]; /* what is decoded points into it */
	char room[CMSG_SPACE(sizeof shim->fds)] __attribute__((aligned(8)));
	struct iovec iov = {packet, sizeof packet};
	struct msghdr message = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
	ssize_t got = recvmsg(SHIM_CONTROL_FD, &message, MSG_CMSG_CLOEXEC);

	if (got <= 0) { /* the supervisor died, or gave up this start */
		for (uint32_t i = 0; i < shim->cgroup_count; i++)
			cgroup_remove(shim->cgroups[i]);
		_exit(0);
	}
	take_descriptors(shim, &message);
	struct span bytes = got == 1 ? map_request(shim, shim->fds[REQUEST_FD_REQUEST])
				     : (struct span){packet, (size_t)got};
	if (request_decode(bytes, &shim->request) < 0)
		refuse(shim, START_REQUEST, EPROTO, "");
}

/* -1 for none. The indices of descriptors become descriptors. */
static int make_ruleset(struct shim *shim)
{
	const struct request *request = &shim->request;
	struct grant grants[GRANTS_MAX];
	const struct grant *culprit;
	int ruleset;

	assert(request->grant_count <= GRANTS_MAX); /* request_decode() */
	if (request->landlock_abi == 0 || has_wall(shim))
		return -1;
	for (size_t i = 0; i < request->grant_count; i++) {
		grants[i] = request->grants[i];
		if (!grant_has_fd(&grants[i]))
			continue;
		if (grants[i].fd < 0 || grants[i].fd >= shim->fd_count)
			refuse(shim, START_REQUEST, EPROTO, "");
		grants[i].fd = shim->fds[grants[i].fd];
	}
	ruleset = landlock_ruleset(
		request->landlock_abi, grants, request->grant_count, request->keep_out, &culprit);
	if (ruleset < 0)
		refuse(shim, START_LANDLOCK, -ruleset, culprit && culprit->path ? culprit->path : "");
	return ruleset;
}

static int compare_numbers(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Closes the descriptors of the child: a pipe ends when the child's last end of it does. What lies between those of
 * the shim is closed, a range at a time. */
static void close_the_childs(const struct shim *shim)
{
	int kept[6 + CGROUP_LEAVES_MAX + PROCESS_HOLDS] = {
		SHIM_CONTROL_FD, 1, 2, shim->signals, shim->status, shim->deadline.timer};
	int count = 6, next = 0;

	for (int i = REQUEST_FD_CGROUP; i < REQUEST_FD_COUNT; i++)
		kept[count++] = shim->fds[i];
	assert(count == sizeof kept / sizeof *kept);
	qsort(kept, (size_t)count, sizeof *kept, compare_numbers);
	for (int i = 0; i < count; i++) {
		assert(kept[i] >= next); /* each is open, and nothing else */
		if (next < kept[i])
			syscall(SYS_close_range, next, kept[i] - 1, 0);
		next = kept[i] + 1;
	}
	syscall(SYS_close_range, next, ~0u, 0);
}

static void start_child(struct shim *shim)
{
	struct child child = {.request = &shim->request,
		.self = &shim->self,
		.fds = shim->fds,
		.shim = getpid(),
		.cgroups = shim->cgroups,
		.cgroup_count = shim->cgroup_count};
	int status[2];

	assert(shim->phase == SHIM_WAITING);
	assert(shim->main == 0); /* one child, once */
	for (int i = 0; shim->request.wall.binds[i]; i++)
		if (REQUEST_FD_COUNT + i >= shim->fd_count)
			refuse(shim, START_REQUEST, EPROTO, "");
	child.ruleset = make_ruleset(shim);
	if (pipe2(status, O_CLOEXEC) < 0)
		refuse(shim, START_SHIM, errno, "");
	/* With a wall the pipe may stay open for as long as the program runs: a read must not wait. */
	if (has_wall(shim) && fcntl(status[0], F_SETFL, O_NONBLOCK) < 0)
		refuse(shim, START_SHIM, errno, "");
	child.status = status[1];
	shim->main = fork();
	if (shim->main < 0)
		refuse(shim, START_FORK, errno, "");
	if (shim->main == 0)
		child_become(&child);
	shim->status = status[0];
	close_the_childs(shim);
	shim_enter(shim, SHIM_STARTING);
}

/* ---- ending ------------------------------------------------------------------------------------------------------- */

static void want_end(struct shim *shim, uint32_t grace_ms)
{
	int64_t at_ms = monotonic_ms() + grace_ms;

	if (at_ms < shim->kill_at_ms)
		shim->kill_at_ms = at_ms;
	assert(shim->kill_at_ms <= at_ms); /* a longer grace changes nothing */
}

/* TERM to all, then CONT: a stopped process would not act on the TERM. With a wall the TERM is for the program
 * inside, so it waits until that has started. */
static uint32_t ask_to_end(struct shim *shim, uint32_t grace_ms)
{
	uint32_t reached;

	want_end(shim, grace_ms);
	shim->asked = true;
	if (has_wall(shim) && !has_started(shim))
		return 0;
	reached = tree_signal(getpid(), SIGTERM);
	tree_signal(getpid(), SIGCONT);
	return reached;
}

static void kill_round(struct shim *shim)
{
	uint32_t reached = 0;

	assert(shim->kill_at_ms != NEVER);
	assert(shim->phase != SHIM_WAITING); /* there is a tree */
	if (shim->cgroup_count > 0)
		reached = cgroup_signal(shim->fds[REQUEST_FD_CGROUP], shim->cgroups[0], SIGKILL);
	reached += tree_signal(getpid(), SIGKILL);
	shim->kill_used |= reached > 0 && !shim->tearing;
	shim->next_kill_ms = monotonic_ms() + KILL_EVERY_MS;
}

/* What it has used up to now, as the next report says it. */
static void add_usage(struct shim *shim)
{
	struct shim_report *report = &shim->report;
	struct rusage usage;

	budget_look(&shim->budget);
	report->spent = shim->budget.spent;
	report->budgets = shim->budget.orders_seen;
	report->kill_used = shim->kill_used;
	if (getrusage(RUSAGE_CHILDREN, &usage) < 0)
		return;
	report->cpu_user_us = (int64_t)usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec;
	report->cpu_system_us = (int64_t)usage.ru_stime.tv_sec * 1000000 + usage.ru_stime.tv_usec;
	report->memory_peak_bytes = (int64_t)usage.ru_maxrss * 1024;
}

/* Ends a tree that has used up its budget. */
static void enforce_budget(struct shim *shim)
{
	struct budget *budget = &shim->budget;

	if (monotonic_ms() < budget->look_at_ms)
		return;
	budget_look(budget);
	if (budget->spent != SPENT_NOTHING && !has_ended(shim))
		ask_to_end(shim, budget->spent == SPENT_MEMORY ? 0 : shim->request.linger_ms);
}

/* ---- what the child says ------------------------------------------------------------------------------------------ */

static void tell_started(struct shim *shim)
{
	struct proc_stat stat = {0};

	proc_stat_read(shim->main, &stat); /* also of one that has ended: it was not waited for yet */
	shim->report.main = shim->main;
	shim->report.main_start = stat.start;
	shim_enter(shim, SHIM_RUNNING);
	tell(shim, REPORT_STARTED);
	if (has_wall(shim) && shim->asked) {
		tree_signal(getpid(), SIGTERM);
		tree_signal(getpid(), SIGCONT);
	}
}

static void tell_unstarted(struct shim *shim, const struct start_fault *fault)
{
	shim->report.fault = *fault;
	shim_enter(shim, SHIM_REFUSED);
	tell(shim, REPORT_UNSTARTED);
}

static void tell_ended(struct shim *shim)
{
	if (shim->phase == SHIM_RUNNING)
		tell(shim, REPORT_EXITED);
	shim_enter(shim, SHIM_ENDED);
}

/* The shim inside the wall ended without reporting how the program ended. */
static void tell_ended_unsaid(struct shim *shim, int signal)
{
	shim->report.signal = signal;
	shim->strays = 1; /* nobody has counted */
	tell_ended(shim);
}

/* What makes a wall has the pipe open, too: a message that does not fit the phase is ignored. */
static void take_message(struct shim *shim, const struct status_message *message)
{
	switch ((enum status_kind)message->kind) {
	case STATUS_FAULT:
		if (shim->phase == SHIM_STARTING)
			tell_unstarted(shim, &message->fault);
		break;
	case STATUS_STARTED:
		if (shim->phase == SHIM_STARTING)
			tell_started(shim);
		break;
	case STATUS_ENDED:
		if (shim->phase != SHIM_RUNNING)
			break;
		shim->report.status = message->status;
		shim->report.signal = message->signal;
		shim->report.core_dumped = message->core_dumped;
		shim->strays = message->strays;
		tell_ended(shim);
		break;
	}
}

/* What comes out of the status pipe: messages, and its end. Without a wall that means that exec closed it. False: for now
 * there is no more. */
static bool read_status(struct shim *shim)
{
	char *into = (char *)&shim->message + shim->message_bytes;
	ssize_t got = read(shim->status, into, sizeof shim->message - shim->message_bytes);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (got > 0)
		shim->message_bytes += (size_t)got;
	if (got > 0 && shim->message_bytes < sizeof shim->message)
		return true;
	if (got > 0) {
		shim->message_bytes = 0;
		take_message(shim, &shim->message);
		return true;
	}
	assert(shim->status > SHIM_CONTROL_FD);
	close(shim->status);
	shim->status = -1;
	if (!has_wall(shim) && shim->phase == SHIM_STARTING)
		tell_started(shim);
	if (shim->request.wall.loose && (shim->phase == SHIM_RUNNING || shim->phase == SHIM_REFUSED))
		tell_ended_unsaid(shim, SIGKILL);
	return false;
}

static void tell_wall_failed(struct shim *shim, const siginfo_t *info)
{
	struct start_fault fault = {.step = START_WALL};
	const char *path = shim->request.wall.argv[0], *slash = strrchr(path, '/');

	snprintf(fault.detail, sizeof fault.detail, "%s: %s %d", slash ? slash + 1 : path,
		info->si_code == CLD_EXITED ? "exit status" : "signal", info->si_status);
	tell_unstarted(shim, &fault);
}

/* The wall has ended. If the shim inside did not report how the program ended, the program was killed with the
 * wall. */
static void wall_ended(struct shim *shim, const siginfo_t *info)
{
	while (shim->status >= 0 && read_status(shim))
		;
	if (has_ended(shim) || (shim->request.wall.loose && has_started(shim)))
		return;
	if (shim->phase == SHIM_STARTING)
		tell_wall_failed(shim, info);
	tell_ended_unsaid(shim, info->si_code == CLD_EXITED ? SIGKILL : info->si_status);
}

/* The program has ended; whatever of its tree is still there is a stray. What it used counts when it was waited for; until
 * then its pid is its own. */
static void main_ended(struct shim *shim, siginfo_t *info)
{
	struct shim_report *report = &shim->report;

	assert(info->si_pid == shim->main);
	if (has_wall(shim)) {
		waitid(P_PID, (id_t)shim->main, info, WEXITED | WNOHANG);
		wall_ended(shim, info);
		return;
	}
	while (shim->status >= 0) /* it ended right after exec, or before it */
		read_status(shim);
	waitid(P_PID, (id_t)shim->main, info, WEXITED | WNOHANG);
	report->signal = info->si_code == CLD_EXITED ? 0 : info->si_status;
	report->status = info->si_code == CLD_EXITED ? info->si_status : 0;
	report->core_dumped = info->si_code == CLD_DUMPED;
	tell_ended(shim);
}

/* Returns whether a child is left. */
static bool reap(struct shim *shim)
{
	for (;;) {
		siginfo_t info = {0};
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
			return errno != ECHILD;
		if (info.si_pid == 0)
			return true;
		if (info.si_pid == shim->main && (!has_ended(shim) || has_wall(shim)))
			main_ended(shim, &info);
		else
			waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG);
	}
}

/* It may be busy for a moment: a foreign process was moved into it, or one of ours is about to leave it. */
static void remove_cgroup(int fd, const char *path)
{
	for (int look = 0; cgroup_remove(path) == -EBUSY && look < 100; look++) {
		cgroup_signal(fd, path, SIGKILL);
		usleep(1000);
	}
}

static _Noreturn void finish(struct shim *shim)
{
	shim_enter(shim, SHIM_GONE);
	add_usage(shim); /* before the cgroups go: they count */
	for (uint32_t i = 0; i < shim->cgroup_count; i++)
		remove_cgroup(shim->fds[REQUEST_FD_CGROUP + i], shim->cgroups[i]);
	tell(shim, REPORT_GONE);
	send_report(shim);
	_exit(0);
}

/* ---- the loop ----------------------------------------------------------------------------------------------------- */

static void orphaned(struct shim *shim)
{
	if (!shim->connected)
		return;
	shim->connected = false;
	if (shim->request.finishes)
		want_end(shim, SHIM_ORPHAN_FINISH_MS);
	else
		ask_to_end(shim, SHIM_ORPHAN_TERM_MS);
}

static void push(struct shim *shim, const struct process_lease *lease)
{
	if (!shim->report.lapsed)
		deadline_push(&shim->deadline, lease);
}

static void obey(struct shim *shim, const struct shim_order *order)
{
	switch ((enum order_kind)order->kind) {
	case ORDER_STOP:
		ask_to_end(shim, order->grace_ms);
		break;
	case ORDER_KILL:
		want_end(shim, 0);
		break;
	case ORDER_LEASE:
		push(shim, &order->lease);
		break;
	case ORDER_WORK:
	case ORDER_REST:
		push(shim, &order->lease);
		budget_begin(&shim->budget, order->kind == ORDER_WORK);
		break;
	}
}

/* Reads all orders that wait: the last one may renew a lease whose deadline has passed by now. */
static void take_orders(struct shim *shim)
{
	struct shim_order order;
	ssize_t got;

	while ((got = recv(SHIM_CONTROL_FD, &order, sizeof order, MSG_DONTWAIT)) > 0) {
		if (got == sizeof order)
			obey(shim, &order);
	}
	if (got == 0 || (errno != EAGAIN && errno != EINTR))
		orphaned(shim);
}

/* The lease was not renewed in time. A tree that was asked to end before keeps its reason, and has the shorter
 * grace. */
static void look_at_deadline(struct shim *shim)
{
	uint32_t grace_ms;

	if (!deadline_is_over(&shim->deadline, &grace_ms))
		return;
	if (shim->asked) {
		want_end(shim, grace_ms);
		return;
	}
	shim->report.lapsed = !has_ended(shim);
	ask_to_end(shim, grace_ms);
}

/* Several signals of a kind may arrive as one: a signal only says that there is something to look at. */
static void take_signals(struct shim *shim)
{
	struct signalfd_siginfo info[4]; /* at most one of each kind waits */
	ssize_t got = read(shim->signals, info, sizeof info);

	for (ssize_t i = 0; i < got / (ssize_t)sizeof *info; i++)
		if (info[i].ssi_signo == PARENT_SIGNAL && getppid() != shim->parent)
			orphaned(shim);
}

static int wait_ms(const struct shim *shim)
{
	int64_t now_ms = monotonic_ms();
	int64_t at_ms = shim->kill_at_ms <= now_ms ? shim->next_kill_ms : shim->kill_at_ms;

	if (shim->budget.look_at_ms < at_ms)
		at_ms = shim->budget.look_at_ms;
	if (shim->report.what && shim->tell_at_ms < at_ms)
		at_ms = shim->tell_at_ms;
	if (at_ms == NEVER)
		return -1;
	int64_t wait_ms = at_ms > now_ms ? at_ms - now_ms : 0;
	return wait_ms < INT_MAX ? (int)wait_ms : INT_MAX;
}

/* The tree is empty: gone. The program alone has ended: what is left gets its TERM, once. */
static void look_at_children(struct shim *shim)
{
	if (!reap(shim)) {
		while (shim->status >= 0 && read_status(shim))
			;
		finish(shim);
	}
	if (shim->phase != SHIM_ENDED)
		return;
	shim_enter(shim, SHIM_LEAVING);
	if (has_wall(shim) && shim->strays == 0) { /* the wall ends by itself */
		shim->tearing = shim->request.wall.loose;
		want_end(shim, shim->tearing ? 0 : WALL_LINGER_MS);
		return;
	}
	shim->report.strays = ask_to_end(shim, shim->request.linger_ms);
	if (has_wall(shim)) /* the processes of the wall are no strays */
		shim->report.strays = shim->strays;
}

static _Noreturn void serve(struct shim *shim)
{
	for (;;) {
		enum { STATUS, SIGNALS, ORDERS, DEADLINE, COUNT };
		struct pollfd polls[COUNT] = {
			[STATUS] = {.fd = shim->status, .events = POLLIN},
			[SIGNALS] = {.fd = shim->signals, .events = POLLIN},
			[ORDERS] = {.fd = shim->connected ? SHIM_CONTROL_FD : -1, .events = POLLIN},
			[DEADLINE] = {.fd = shim->deadline.timer, .events = POLLIN},
		};
		if (poll(polls, COUNT, wait_ms(shim)) < 0 && errno != EINTR)
			usleep(KILL_EVERY_MS * 1000); /* no memory for poll(): try again in a moment */
		if (polls[STATUS].revents)
			(void)read_status(shim);
		if (polls[SIGNALS].revents)
			take_signals(shim);
		if (polls[ORDERS].revents)
			take_orders(shim);
		look_at_children(shim);
		if (polls[DEADLINE].revents)
			look_at_deadline(shim);
		enforce_budget(shim);
		if (shim->kill_at_ms <= monotonic_ms() && shim->next_kill_ms <= monotonic_ms())
			kill_round(shim);
		if (shim->report.what && shim->tell_at_ms <= monotonic_ms()) {
			add_usage(shim);
			send_report(shim);
		}
	}
}

/* stint-shim RUN [CGROUP]... */
int main(int argc, char **argv)
{
	static struct shim shim = {.status = -1, .kill_at_ms = NEVER, .connected = true};

	if (argc == 2 && strcmp(argv[1], SHIM_INSIDE) == 0)
		_exit(inside_main());
	if (argc > 3 && strcmp(argv[1], SHIM_GUEST) == 0)
		return guest_main(argv + 2);
	if (argc == 2 && strcmp(argv[1], SHIM_TRIAL) == 0)
		_exit(0);
	shim.cgroups = argv + 2;
	shim.cgroup_count = argc > 2 && argc - 2 <= CGROUP_LEAVES_MAX ? (uint32_t)argc - 2 : 0;
	shim.parent = getppid();
	settle(&shim);
	int fault = deadline_open(&shim.deadline);
	if (fault < 0)
		refuse(&shim, START_SHIM, -fault, "timerfd");
	receive_request(&shim);
	deadline_push(&shim.deadline, &shim.request.lease);
	tell(&shim, REPORT_READY);
	send_report(&shim);
	budget_init(&shim.budget, &shim.request.limits, shim.fds + REQUEST_FD_CGROUP, shim.cgroup_count,
		!shim.request.budget_later);
	start_child(&shim);
	serve(&shim);
}
