/*
 * Our side of a process. All the doing is the shim's; here its reports become events, the output is read, and what
 * happens when a shim does not do its part is decided.
 *
 * A process is gone when its shim has said so and has been waited for. A shim that dies without a word is lost: then the
 * host ends what it left. A shim that does not answer in time is killed, and then it is lost too.
 */
#include "exec/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/take.h"
#include "exec/env.h"
#include "exec/host_parts.h"
#include "exec/proc.h"
#include "exec/shim.h"

enum {
	SHIM_LATE_MS =
		5000, /* after the grace: by then a shim that lives has killed everything that can be killed */
	SHIM_LOADER_FAILED = 127,
	LINGER_DEFAULT_MS = 1000,
	OUTPUT_DEFAULT_BYTES = 1 << 20,
};

struct stream {
	struct process *process;
	uv_poll_t poll;
	int fd; /* -1 when it is at its end */
	enum output_overflow overflow;
	struct output output;
};

struct process {
	struct host *host;
	struct process *next, *previous;
	const struct process_events *events;
	void *context;
	char run[PROCESS_RUN_BYTES_MAX + 1];

	pid_t shim; /* 0: waited for */
	uint64_t shim_start;
	pid_t main;
	uint64_t main_start;
	char cgroup[CGROUP_PATH_BYTES];
	int cgroup_fd;

	int pidfd, control;
	uv_poll_t pidfd_poll, control_poll;
	uv_timer_t late;
	int64_t late_ms; /* when it fires; INT64_MAX: never */

	struct stream streams[2];
	int stdin_fd;
	uv_poll_t stdin_poll;
	struct buf stdin_waiting;
	size_t stdin_written; /* of those */
	bool stdin_closing;

	struct process_end end;
	bool gone_told; /* the shim said so */
	bool lost, gone, freed;
	uint32_t handles; /* that the loop has not closed yet */
};

/* ---- handles of the loop ------------------------------------------------------------------------------------------ */

static void free_if_done(struct process *process)
{
	if (!process->freed || process->handles)
		return;
	for (int i = 0; i < 2; i++)
		output_done(&process->streams[i].output);
	buf_done(&process->stdin_waiting);
	free(process);
}

static void handle_closed(uv_handle_t *handle)
{
	struct process *process = handle->data;

	process->handles--;
	free_if_done(process);
}

static int poll_add(struct process *process, uv_poll_t *poll, int fd)
{
	int fault = uv_poll_init(process->host->loop, poll, fd);

	if (fault)
		return fault; /* libuv's faults are ours on Linux */
	poll->data = process;
	process->handles++;
	return 0;
}

/* The descriptor goes too, after the loop has let go of it. */
static void poll_close(uv_poll_t *poll, int *fd)
{
	if (poll->data && !uv_is_closing((uv_handle_t *)poll))
		uv_close((uv_handle_t *)poll, handle_closed);
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_all(struct process *process)
{
	poll_close(&process->pidfd_poll, &process->pidfd);
	poll_close(&process->control_poll, &process->control);
	poll_close(&process->stdin_poll, &process->stdin_fd);
	for (int i = 0; i < 2; i++)
		poll_close(&process->streams[i].poll, &process->streams[i].fd);
	if (process->late.data && !uv_is_closing((uv_handle_t *)&process->late))
		uv_close((uv_handle_t *)&process->late, handle_closed);
	if (process->cgroup_fd >= 0)
		close(process->cgroup_fd);
	process->cgroup_fd = -1;
}

void process_free(struct process *process)
{
	if (!process)
		return;
	assert(process->gone);
	process->freed = true;
	free_if_done(process);
}

/* ---- what it writes ----------------------------------------------------------------------------------------------- */

static size_t room_for(const struct stream *stream)
{
	size_t waiting = output_waiting(&stream->output);

	if (stream->overflow == OVERFLOW_DROPS)
		return HOST_READ_BYTES;
	return stream->output.max - waiting < HOST_READ_BYTES ? stream->output.max - waiting
							      : HOST_READ_BYTES;
}

/* Read once. Returns what read() did, 0 at the end. */
static ssize_t stream_read(struct stream *stream, size_t most)
{
	char *into = stream->process->host->read;
	ssize_t got = read(stream->fd, into, most < HOST_READ_BYTES ? most : HOST_READ_BYTES);

	if (got > 0)
		output_put(&stream->output, (struct span){into, (size_t)got});
	return got < 0 ? -errno : got;
}

static void stream_ready(uv_poll_t *poll, int status, int events)
{
	struct process *process = poll->data;
	struct stream *stream = poll == &process->streams[STREAM_OUT].poll ? &process->streams[STREAM_OUT]
									   : &process->streams[STREAM_ERR];
	size_t room = room_for(stream);
	ssize_t got;

	(void)status, (void)events; /* reading tells the same */
	if (room == 0) {
		uv_poll_stop(poll); /* until process_advance() */
		return;
	}
	got = stream_read(stream, room);
	if (got > 0) {
		if (process->events->output)
			process->events->output(
				process->context, process, (enum process_stream)(stream - process->streams));
	} else if (got != -EAGAIN && got != -EINTR) {
		poll_close(poll, &stream->fd);
	}
}

/* The tree is gone: what is in the pipe is all there will be. */
static void stream_drain(struct stream *stream)
{
	int left = 0;

	if (stream->fd < 0 || ioctl(stream->fd, FIONREAD, &left) < 0)
		return;
	if (stream->overflow ==
		OVERFLOW_HOLDS) /* at most what a pipe holds more, and nobody is kept waiting by it */
		stream->output.max += (size_t)left;
	while (left > 0) {
		ssize_t got = stream_read(stream, (size_t)left);
		if (got <= 0)
			return;
		left -= (int)got;
	}
}

const struct output *process_output(const struct process *process, enum process_stream stream)
{
	return &process->streams[stream].output;
}

void process_advance(struct process *process, enum process_stream stream, size_t bytes)
{
	struct stream *read = &process->streams[stream];

	output_advance(&read->output, bytes);
	if (read->overflow == OVERFLOW_HOLDS && read->fd >= 0 && !uv_is_active((uv_handle_t *)&read->poll))
		uv_poll_start(&read->poll, UV_READABLE, stream_ready);
}

/* ---- what it reads ------------------------------------------------------------------------------------------------ */

static void stdin_ready(uv_poll_t *poll, int status, int events);

static void stdin_flush(struct process *process)
{
	struct buf *waiting = &process->stdin_waiting;

	while (process->stdin_written < waiting->len) {
		ssize_t put = write(process->stdin_fd, waiting->data + process->stdin_written,
			waiting->len - process->stdin_written);
		if (put < 0 && errno == EAGAIN) {
			uv_poll_start(&process->stdin_poll, UV_WRITABLE, stdin_ready);
			return;
		}
		if (put < 0 && errno != EINTR) { /* it reads no more */
			poll_close(&process->stdin_poll, &process->stdin_fd);
			buf_clear(waiting);
			process->stdin_written = 0;
			return;
		}
		process->stdin_written += put > 0 ? (size_t)put : 0;
	}
	buf_clear(waiting);
	process->stdin_written = 0;
	if (process->stdin_closing)
		poll_close(&process->stdin_poll, &process->stdin_fd);
	else
		uv_poll_stop(&process->stdin_poll);
}

static void stdin_ready(uv_poll_t *poll, int status, int events)
{
	(void)status, (void)events;
	stdin_flush(poll->data);
}

/* What was written moves out of the way only when the room is needed. */
static int stdin_keep(struct process *process, struct span bytes)
{
	struct buf *waiting = &process->stdin_waiting;

	if (process->stdin_written) {
		waiting->len -= process->stdin_written;
		memmove(waiting->data, waiting->data + process->stdin_written, waiting->len);
		process->stdin_written = 0;
	}
	int fault = buf_put_span(waiting, bytes);
	return fault == -E2BIG ? -ENOBUFS : fault;
}

int process_write(struct process *process, struct span bytes)
{
	int fault;

	if (process->stdin_fd < 0 || process->stdin_closing)
		return -EPIPE;
	fault = stdin_keep(process, bytes);
	if (fault)
		return fault;
	stdin_flush(process);
	return 0;
}

void process_close_stdin(struct process *process)
{
	process->stdin_closing = true;
	if (process->stdin_fd >= 0)
		stdin_flush(process);
}

/* ---- the end ------------------------------------------------------------------------------------------------------ */

static void unlink_process(struct process *process)
{
	struct host *host = process->host;

	if (process->previous)
		process->previous->next = process->next;
	else
		host->first = process->next;
	if (process->next)
		process->next->previous = process->previous;
	host->count--;
}

static void finish(struct process *process)
{
	for (int i = 0; i < 2; i++)
		stream_drain(&process->streams[i]);
	close_all(process);
	unlink_process(process);
	process->gone = true;
	process->events->gone(process->context, process);
}

/* The shim died without a word. What it left is ours to end. */
static void lose(struct process *process, const siginfo_t *info)
{
	bool never_ran =
		info->si_code == CLD_EXITED && info->si_status == SHIM_LOADER_FAILED && !process->main;

	if (process->end.how == ENDED_NOT_YET)
		process->end.how = never_ran ? ENDED_UNSTARTED : ENDED_LOST;
	if (never_ran)
		process->end.fault = (struct start_fault){.stage = STAGE_SHIM, .error = ENOEXEC};
	process->lost = true;
	host_sweep_begin(process->host);
}

void process_swept(struct process *process)
{
	process->end.kill_used = true;
	finish(process);
}

struct process *process_next(const struct process *process)
{
	return process->next;
}

bool process_is_lost(const struct process *process)
{
	return process->lost;
}

pid_t process_shim(const struct process *process)
{
	return process->shim;
}

bool process_sweep_cgroup(struct process *process)
{
	if (!process->cgroup[0])
		return true;
	cgroup_signal(process->cgroup_fd, process->cgroup, SIGKILL);
	return cgroup_remove(process->cgroup) != -EBUSY;
}

/* ---- what the shim says ------------------------------------------------------------------------------------------- */

static void take_usage(struct process *process, const struct shim_report *report)
{
	process->end.strays = report->strays;
	process->end.kill_used = report->kill_used;
	process->end.cpu_user_us = report->cpu_user_us;
	process->end.cpu_system_us = report->cpu_system_us;
	process->end.memory_peak_bytes = report->memory_peak_bytes;
}

static void take_report(struct process *process, const struct shim_report *report)
{
	const struct process_events *events = process->events;

	switch ((enum report_kind)report->kind) {
	case REPORT_STARTED:
		process->main = report->main;
		process->main_start = report->main_start;
		if (events->started)
			events->started(process->context, process);
		break;
	case REPORT_UNSTARTED:
		process->end.how = ENDED_UNSTARTED;
		process->end.fault = report->fault;
		process->end.fault.detail[START_DETAIL_BYTES - 1] = 0;
		break;
	case REPORT_EXITED:
		process->end.how = report->signal ? ENDED_SIGNAL : ENDED_EXIT;
		process->end.code = report->signal ? report->signal : report->status;
		process->end.core_dumped = report->core_dumped;
		take_usage(process, report);
		if (events->exited)
			events->exited(process->context, process);
		break;
	case REPORT_GONE:
		process->gone_told = true;
		take_usage(process, report);
		break;
	}
}

static void read_reports(struct process *process)
{
	struct shim_report report;
	ssize_t got;

	while ((got = recv(process->control, &report, sizeof report, MSG_DONTWAIT)) == sizeof report)
		take_report(process, &report);
	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
		uv_poll_stop(&process->control_poll); /* it has ended or will: the pidfd tells */
}

static void control_ready(uv_poll_t *poll, int status, int events)
{
	(void)status, (void)events;
	read_reports(poll->data);
}

static void shim_ended(uv_poll_t *poll, int status, int events)
{
	struct process *process = poll->data;
	siginfo_t info = {0};

	(void)status, (void)events;
	if (waitid(P_PIDFD, (id_t)process->pidfd, &info, WEXITED | WNOHANG) < 0 && errno == EAGAIN)
		return;
	process->shim = 0;
	uv_poll_stop(poll);
	read_reports(process); /* its last words may still be in the socket */
	if (process->gone_told)
		finish(process);
	else
		lose(process, &info);
}

/* ---- orders ------------------------------------------------------------------------------------------------------- */

static void shim_is_late(uv_timer_t *timer)
{
	struct process *process = timer->data;

	if (process->pidfd >= 0)
		pidfd_signal(process->pidfd, SIGKILL);
}

static void order(struct process *process, enum order_kind kind, uint32_t grace_ms)
{
	struct shim_order order = {kind, grace_ms};
	int64_t late_ms = monotonic_ms() + grace_ms + SHIM_LATE_MS;

	if (process->gone || process->lost || process->gone_told)
		return;
	if (process->end.how == ENDED_NOT_YET)
		process->end.stop_asked = true;
	/* If the socket is full the shim is asleep, and late. */
	if (send(process->control, &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN)
		return; /* it has ended: the pidfd tells */
	if (late_ms < process->late_ms) {
		process->late_ms = late_ms;
		uv_update_time(process->host->loop);
		uv_timer_start(&process->late, shim_is_late, (uint64_t)grace_ms + SHIM_LATE_MS, 0);
	}
}

void process_stop(struct process *process, uint32_t grace_ms)
{
	order(process, ORDER_STOP, grace_ms);
}

void process_kill(struct process *process)
{
	order(process, ORDER_KILL, 0);
}

/* ---- starting ----------------------------------------------------------------------------------------------------- */

/* Our ends and the child's; whatever is left in it when a start ends is closed. */
struct start {
	struct process *process;
	const struct process_spec *spec;
	int request, shim_control;
	int child[3]; /* stdin, stdout, stderr */
};

static void start_done(struct start *start)
{
	close_at(&start->request);
	close_at(&start->shim_control);
	for (int i = 0; i < 3; i++)
		close_at(&start->child[i]);
}

struct process_spec process_spec_default(void)
{
	return (struct process_spec){
		.workdir_fd = -1,
		.output_bytes_max = {OUTPUT_DEFAULT_BYTES, OUTPUT_DEFAULT_BYTES},
		.umask = 077,
		.linger_ms = LINGER_DEFAULT_MS,
		.confine = {.limits = limits_default()},
	};
}

static bool run_is_good(const char *run)
{
	size_t len = run ? strlen(run) : 0;

	return len > 0 && len <= PROCESS_RUN_BYTES_MAX && run[0] != '.' &&
		strspn(run, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == len;
}

static int check_spec(const struct process_spec *spec)
{
	size_t args = 0;

	if (!run_is_good(spec->run) || !spec->argv || !spec->argv[0] || spec->workdir_fd < 0 ||
		!spec->events || !spec->events->gone)
		return -EINVAL;
	if (spec->drop_user && geteuid() != 0)
		return -EPERM;
	while (spec->argv[args])
		args++;
	if (args > PROCESS_ARGS_MAX || spec->input.len > PROCESS_INPUT_BYTES_MAX ||
		spec->confine.grant_count + grants_system_count + 1 > GRANTS_MAX)
		return -E2BIG;
	for (int i = 0; i < 2; i++)
		if (spec->output_bytes_max[i] == 0 || spec->output_bytes_max[i] > PROCESS_OUTPUT_BYTES_MAX)
			return -EINVAL;
	return 0;
}

/* A file in memory with these bytes, to be read from its beginning. Never -1. */
static int memory_file(const char *name, struct span bytes)
{
	cleanup(close_at) int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t done = 0;

	if (fd < 0)
		return -errno;
	while (done < bytes.len) {
		ssize_t put = pwrite(fd, bytes.data + done, bytes.len - done, (off_t)done);
		if (put < 0 && errno != EINTR)
			return -errno;
		done += put > 0 ? (size_t)put : 0;
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return -errno;
	return take_fd(fd);
}

static int open_stdin(struct start *start)
{
	int pair[2], fd;

	switch (start->spec->stdin_from) {
	case STDIN_NULL:
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		fd = fd < 0 ? -errno : fd;
		break;
	case STDIN_BYTES:
		fd = memory_file("stint-input", start->spec->input);
		break;
	case STDIN_PIPE:
		if (pipe2(pair, O_CLOEXEC) < 0)
			return -errno;
		fd = pair[0];
		start->process->stdin_fd = pair[1];
		break;
	default:
		return -EINVAL;
	}
	if (fd < 0)
		return fd;
	start->child[0] = fd;
	return 0;
}

static int open_pipes(struct start *start)
{
	struct process *process = start->process;
	int fault = open_stdin(start), pair[2];

	for (int i = 0; i < 2 && !fault; i++) {
		if (pipe2(pair, O_CLOEXEC) < 0)
			return -errno;
		process->streams[i].fd = pair[0];
		start->child[i + 1] = pair[1];
	}
	if (!fault && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	if (fault)
		return fault;
	process->control = pair[0];
	start->shim_control = pair[1];
	return 0;
}

static void list_grants(const struct start *start, struct grant *grants, size_t *ret_count)
{
	const struct confine *confine = &start->spec->confine;
	int next_fd = REQUEST_FD_COUNT;
	size_t count = grants_system_count;

	memcpy(grants, grants_system, sizeof *grants * count);
	grants[count++] = (struct grant){
		.fd = REQUEST_FD_WORKDIR, .access = confine->workdir_read_only ? GRANT_READ : GRANT_WRITE};
	for (size_t i = 0; i < confine->grant_count; i++) {
		grants[count] = confine->grants[i];
		if (!grants[count].path)
			grants[count].fd = next_fd++;
		count++;
	}
	*ret_count = count;
}

static int write_request(struct start *start)
{
	const struct process_spec *spec = start->spec;
	struct process *process = start->process;
	struct grant grants[GRANTS_MAX];
	const char *env[PROCESS_ENV_MAX + 1];
	char marker[sizeof PROCESS_MARKER + 1 + PROCESS_RUN_BYTES_MAX + 1];
	struct request request = {
		.argv = spec->argv,
		.env = env,
		.umask = spec->umask,
		.linger_ms = spec->linger_ms,
		.drop_user = spec->drop_user,
		.uid = spec->uid,
		.gid = spec->gid,
		.limits = spec->confine.limits,
		.landlock_abi = process->host->landlock_abi,
		.grants = grants,
		.keep_out = spec->confine.keep_out ? spec->confine.keep_out : "",
		.cgroup = process->cgroup,
		.filter = buf_span(&process->host->filter),
	};
	cleanup(buf_done) struct buf buf;
	int fault;

	buf_init(&buf, REQUEST_BYTES_MAX);
	snprintf(marker, sizeof marker, PROCESS_MARKER "=%s", spec->run);
	fault = env_build(spec, marker, env, sizeof env / sizeof *env);
	list_grants(start, grants, &request.grant_count);
	if (!fault)
		fault = request_encode(&request, &buf);
	if (fault)
		return fault;
	start->request = memory_file("stint-request", buf_span(&buf));
	return start->request < 0 ? start->request : 0;
}

/* It begins with nothing but its end of the socket, in a session of its own, deaf to signals. */
static int spawn_shim(struct start *start)
{
	char *argv[] = {"stint-shim", start->process->run, NULL}, *env[] = {NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t all;
	int error;

	sigfillset(&all);
	if ((error = posix_spawn_file_actions_init(&actions)))
		return -error;
	if ((error = posix_spawnattr_init(&attr))) {
		posix_spawn_file_actions_destroy(&actions);
		return -error;
	}
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
	posix_spawnattr_setsigmask(&attr, &all);
	error = posix_spawn_file_actions_adddup2(&actions, start->shim_control, SHIM_CONTROL_FD);
	if (!error)
		error = posix_spawn(
			&start->process->shim, start->process->host->shim, &actions, &attr, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	if (error)
		start->process->shim = 0;
	return -error;
}

static int send_request(const struct start *start)
{
	const struct process_spec *spec = start->spec;
	const struct process *process = start->process;
	int fds[REQUEST_FDS_MAX] = {
		[REQUEST_FD_REQUEST] = start->request,
		[REQUEST_FD_STDIN] = start->child[0],
		[REQUEST_FD_STDOUT] = start->child[1],
		[REQUEST_FD_STDERR] = start->child[2],
		[REQUEST_FD_WORKDIR] = spec->workdir_fd,
		[REQUEST_FD_CGROUP] = process->cgroup_fd >= 0 ? process->cgroup_fd : spec->workdir_fd,
	};
	size_t count = REQUEST_FD_COUNT;
	char room[CMSG_SPACE(sizeof fds)] __attribute__((aligned(8))) = {0};
	struct iovec iov = {"R", 1};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = room};
	struct cmsghdr *rights;

	for (size_t i = 0; i < spec->confine.grant_count; i++) {
		if (spec->confine.grants[i].path)
			continue;
		if (count == REQUEST_FDS_MAX)
			return -E2BIG;
		fds[count++] = spec->confine.grants[i].fd;
	}
	message.msg_controllen = CMSG_SPACE(count * sizeof *fds);
	rights = CMSG_FIRSTHDR(&message);
	*rights = (struct cmsghdr){
		.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(count * sizeof *fds)};
	memcpy(CMSG_DATA(rights), fds, count * sizeof *fds);
	return sendmsg(process->control, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int add_handles(struct process *process)
{
	int fault = uv_timer_init(process->host->loop, &process->late);

	process->late.data = process;
	process->handles++;
	if (!fault)
		fault = poll_add(process, &process->pidfd_poll, process->pidfd);
	if (!fault)
		fault = poll_add(process, &process->control_poll, process->control);
	for (int i = 0; i < 2 && !fault; i++)
		fault = poll_add(process, &process->streams[i].poll, process->streams[i].fd);
	if (!fault && process->stdin_fd >= 0)
		fault = poll_add(process, &process->stdin_poll, process->stdin_fd);
	return fault;
}

static void watch(struct process *process)
{
	struct host *host = process->host;

	uv_poll_start(&process->pidfd_poll, UV_READABLE, shim_ended);
	uv_poll_start(&process->control_poll, UV_READABLE, control_ready);
	for (int i = 0; i < 2; i++)
		uv_poll_start(&process->streams[i].poll, UV_READABLE, stream_ready);
	process->next = host->first;
	if (host->first)
		host->first->previous = process;
	host->first = process;
	host->count++;
}

static int start_shim(struct start *start)
{
	struct process *process = start->process;
	struct proc_stat stat = {0};
	int fault = spawn_shim(start);

	if (fault)
		return fault;
	process->pidfd = pidfd_open_of(process->shim); /* ours, and not waited for: it is nobody else */
	if (process->pidfd < 0)
		return process->pidfd;
	proc_stat_read(process->shim, &stat);
	process->shim_start = stat.start;
	fault = add_handles(process);
	return fault ? fault : send_request(start);
}

/* A shim that was never asked ends by itself when the socket closes. */
static void abandon(struct start *start)
{
	struct process *process = start->process;
	pid_t shim = process->shim;
	int status;

	close_at(&start->shim_control);
	start->shim_control = -1;
	close_all(process);
	while (shim && waitpid(shim, &status, 0) < 0 && errno == EINTR)
		;
	cgroup_remove(process->cgroup);
	process->freed = true;
	free_if_done(process);
}

static struct process *process_new(struct host *host, const struct process_spec *spec)
{
	struct process *process = calloc(1, sizeof *process);

	if (!process)
		return NULL;
	process->host = host;
	process->events = spec->events;
	process->context = spec->context;
	process->late_ms = INT64_MAX;
	process->pidfd = process->control = process->stdin_fd = process->cgroup_fd = -1;
	snprintf(process->run, sizeof process->run, "%s", spec->run);
	buf_init(&process->stdin_waiting, PROCESS_WRITE_BYTES_MAX);
	for (int i = 0; i < 2; i++) {
		process->streams[i].process = process;
		process->streams[i].fd = -1;
		process->streams[i].overflow = spec->overflow[i];
		output_init(&process->streams[i].output, spec->output_bytes_max[i]);
	}
	return process;
}

int process_start(struct host *host, const struct process_spec *spec, struct process **ret_process)
{
	cleanup(start_done) struct start start = {
		.spec = spec, .request = -1, .shim_control = -1, .child = {-1, -1, -1}};
	int fault = check_spec(spec);

	if (fault)
		return fault;
	if (host->count >= HOST_PROCESSES_MAX)
		return -EBUSY;
	start.process = process_new(host, spec);
	if (!start.process)
		return -ENOMEM;
	fault = open_pipes(&start);
	if (!fault && host->cgroup != CGROUP_NONE)
		fault = cgroup_make(
			host->cgroup_place, spec->run, start.process->cgroup, &start.process->cgroup_fd);
	if (!fault)
		fault = write_request(&start);
	if (!fault)
		fault = start_shim(&start);
	if (fault) {
		abandon(&start);
		return fault;
	}
	watch(start.process);
	*ret_process = start.process;
	return 0;
}

/* ---- facts -------------------------------------------------------------------------------------------------------- */

const struct process_end *process_end(const struct process *process)
{
	return &process->end;
}

const char *process_run(const struct process *process)
{
	return process->run;
}

void *process_context(const struct process *process)
{
	return process->context;
}

void process_identify(const struct process *process, struct process_identity *ret_identity)
{
	*ret_identity = (struct process_identity){
		.shim = process->shim,
		.main = process->main,
		.shim_start = process->shim_start,
		.main_start = process->main_start,
	};
	memcpy(ret_identity->run, process->run, sizeof ret_identity->run);
	memcpy(ret_identity->boot, process->host->boot, sizeof ret_identity->boot);
	snprintf(ret_identity->cgroup, sizeof ret_identity->cgroup, "%s", process->cgroup);
}

static const char *stage_text(enum start_stage stage)
{
	switch (stage) {
	case STAGE_NONE:
		return "started";
	case STAGE_SHIM:
		return "the shim did not start";
	case STAGE_REQUEST:
		return "the shim is of another version";
	case STAGE_FORK:
		return "no process could be made";
	case STAGE_SESSION:
		return "cannot make a session";
	case STAGE_STDIO:
		return "cannot set up input and output";
	case STAGE_LIMITS:
		return "cannot set the limits";
	case STAGE_WORKDIR:
		return "cannot enter the work dir";
	case STAGE_USER:
		return "cannot change the user";
	case STAGE_LANDLOCK:
		return "cannot confine it by Landlock";
	case STAGE_SECCOMP:
		return "cannot confine it by seccomp";
	case STAGE_EXEC:
		return "cannot execute";
	case STAGE_INTERPRETER:
		return "the interpreter is missing of";
	}
	return "failed";
}

void start_fault_text(const struct start_fault *fault, char *text, size_t room)
{
	const char *reason = fault->error == EXDEV && fault->stage == STAGE_LANDLOCK
		? "it would open the state directory"
		: strerror(fault->error);

	if (fault->detail[0])
		snprintf(text, room, "%s '%s': %s", stage_text(fault->stage), fault->detail, reason);
	else
		snprintf(text, room, "%s: %s", stage_text(fault->stage), reason);
}
