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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/take.h"
#include "exec/parts.h"
#include "exec/tree/proc.h"
#include "exec/request/request.h"

/* After the grace. By then a shim that lives has killed everything that can be killed. */
enum { SHIM_LATE_MS = 5000 };

/* ---- its states --------------------------------------------------------------------------------------------------- */

/* By state: those that may come next. */
static const unsigned next_states[] = {
	[PROCESS_SPAWNED] = 1 << PROCESS_READY | 1 << PROCESS_LEFT | 1 << PROCESS_LOST | 1 << PROCESS_FREED,
	[PROCESS_READY] = 1 << PROCESS_LEFT | 1 << PROCESS_LOST,
	[PROCESS_LEFT] = 1 << PROCESS_GONE,
	[PROCESS_LOST] = 1 << PROCESS_GONE,
	[PROCESS_GONE] = 1 << PROCESS_FREED,
	[PROCESS_FREED] = 0,
};

/* What holds in every state. */
static void process_check(const struct process *process)
{
	bool over = process->state == PROCESS_GONE || process->state == PROCESS_FREED;

	assert(process->host != NULL);
	assert(process->run[0] != 0); /* a successor finds the tree by it */
	assert(process->shim >= 0);   /* 0 or a child of ours: never a group, never everybody */
	assert(process->main >= 0);
	assert(process->leaves.count <= CGROUP_LEAVES_MAX);
	assert(process->stdin_written <= process->stdin_waiting.len);
	assert(!over || process->shim == 0); /* the shim was waited for: its number is another's now */
	assert(!over || process->pidfd < 0); /* nobody signals it any more */
	assert(!over || process->control < 0);
	assert(!over || process->stdin_fd < 0);
	assert(process->state != PROCESS_LOST ||
		process->end.how != ENDED_NOT_YET); /* how it ended is settled */
}

static void process_enter(struct process *process, enum process_state state)
{
	assert(next_states[process->state] >> state & 1); /* gone is told once, and freed once */
	process->state = state;
	process_check(process);
}

/* ---- handles of the loop ------------------------------------------------------------------------------------------ */

static void free_if_done(struct process *process)
{
	if (process->state != PROCESS_FREED || process->handles)
		return;
	for (int i = 0; i < 2; i++)
		output_done(&process->streams[i].output);
	buf_done(&process->stdin_waiting);
	short_link_remove(process->short_link);
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
}

void process_free(struct process *process)
{
	if (!process)
		return;
	process_enter(process, PROCESS_FREED);
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

	if (got > 0) {
		output_put(&stream->output, (struct span){into, (size_t)got});
		stream->process->output_bytes += (uint64_t)got;
	}
	return got < 0 ? -errno : got;
}

/* True once: the budget of what it may write is used up. */
static bool output_is_spent(struct process *process)
{
	if (process->output_bytes <= process->output_bytes_most || process->output_free ||
		process->end.spent != SPENT_NOTHING)
		return false;
	process->end.spent = SPENT_OUTPUT;
	return true;
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
		if (output_is_spent(process))
			process_stop(process, process->linger_ms);
		if (process->events->output)
			process->events->output(
				process->context, process, (enum process_stream)(stream - process->streams));
	} else if (got != -EAGAIN && got != -EINTR) {
		poll_close(poll, &stream->fd);
		if (process->events->closed)
			process->events->closed(
				process->context, process, (enum process_stream)(stream - process->streams));
	}
}

void process_pull(struct process *process, enum process_stream which)
{
	struct stream *stream = &process->streams[which];
	size_t room;

	while (stream->fd >= 0 && (room = room_for(stream)) > 0) {
		ssize_t got = stream_read(stream, room);
		if (got <= 0 || (size_t)got < room)
			return; /* its end is for the loop to see */
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
	size_t before = waiting->len;
	int fault = buf_put_span(waiting, bytes);
	if (fault)
		buf_cut(waiting, before); /* what waits is still written, and a shorter one may fit later */
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
	return process->stdin_fd < 0 ? -EPIPE : 0;
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
	output_is_spent(process);
	close_all(process);
	unlink_process(process);
	process_enter(process, PROCESS_GONE);
	process->events->gone(process->context, process);
}

/* The shim died without a word. What it left is ours to end. */
static void lose(struct process *process)
{
	if (process->end.how == ENDED_NOT_YET && process->state == PROCESS_READY)
		process->end.how = ENDED_LOST;
	if (process->end.how ==
		ENDED_NOT_YET) { /* killed while it was loaded: the machine is short of memory */
		process->end.how = ENDED_UNSTARTED;
		process->end.fault = (struct start_fault){.stage = STAGE_SHIM, .error = ENOMEM};
	}
	process_enter(process, PROCESS_LOST);
	host_sweep_begin(process->host);
}

void process_swept(struct process *process)
{
	process->end.kill_used = true;
	finish(process);
}

/* ---- what the shim says ------------------------------------------------------------------------------------------- */

static void take_usage(struct process *process, const struct shim_report *report)
{
	process->end.strays = report->strays;
	process->end.kill_used = report->kill_used;
	process->end.lapsed = report->lapsed;
	if (report->spent != SPENT_NOTHING && report->budgets != process->budgets)
		process->end.spent_before = true;
	else if (process->end.spent == SPENT_NOTHING)
		process->end.spent = (enum process_spent)report->spent;
	process->end.cpu_user_us = report->cpu_user_us;
	process->end.cpu_system_us = report->cpu_system_us;
	process->end.memory_peak_bytes = report->memory_peak_bytes;
}

static void take_report(struct process *process, const struct shim_report *report)
{
	const struct process_events *events = process->events;

	if (report->what & REPORT_READY)
		process_enter(process, PROCESS_READY);
	if (report->what & REPORT_STARTED) {
		process->main = report->main;
		process->main_start = report->main_start;
		search_found(&process->host->searches, process->search_key, process->search_common,
			report->path_index, monotonic_ms());
		if (events->started)
			events->started(process->context, process);
	}
	if (report->what & REPORT_UNSTARTED) {
		process->end.how = ENDED_UNSTARTED;
		process->end.fault = report->fault;
		process->end.fault.detail[START_DETAIL_BYTES - 1] = 0;
	}
	if (report->what & REPORT_EXITED) {
		process->end.how = report->signal ? ENDED_SIGNAL : ENDED_EXIT;
		process->end.code = report->signal ? report->signal : report->status;
		process->end.core_dumped = report->core_dumped;
		take_usage(process, report);
		if (events->exited)
			events->exited(process->context, process);
	}
	if (report->what & REPORT_GONE) {
		take_usage(process, report);
		process_enter(process, PROCESS_LEFT);
		uv_poll_stop(&process->control_poll); /* its end is nothing new: the pidfd tells */
	}
}

/* False: there is none for now. */
static bool read_report(struct process *process)
{
	struct shim_report report;
	ssize_t got = recv(process->control, &report, sizeof report, MSG_DONTWAIT);

	if (got == sizeof report)
		take_report(process, &report);
	else if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
		uv_poll_stop(&process->control_poll); /* it has ended or will: the pidfd tells */
	return got == sizeof report;
}

static void control_ready(uv_poll_t *poll, int status, int events)
{
	(void)status, (void)events;
	(void)read_report(poll->data); /* if there are more, the loop comes again */
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
	while (process->state != PROCESS_LEFT &&
		read_report(process)) /* its last words may still be in the socket */
		;
	if (process->state == PROCESS_LEFT)
		finish(process);
	else
		lose(process);
}

/* ---- orders ------------------------------------------------------------------------------------------------------- */

static void shim_is_late(uv_timer_t *timer)
{
	struct process *process = timer->data;

	if (process->pidfd >= 0)
		pidfd_signal(process->pidfd, SIGKILL);
}

static bool has_shim(const struct process *process)
{
	return process->state == PROCESS_SPAWNED || process->state == PROCESS_READY;
}

static void order(struct process *process, enum order_kind kind, uint32_t grace_ms)
{
	struct shim_order order = {.kind = kind, .grace_ms = grace_ms};
	int64_t late_ms = monotonic_ms() + grace_ms + SHIM_LATE_MS;

	if (!has_shim(process))
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

/* If the socket is full the shim is asleep, or it has ended: then the tree is, too. */
static void tell_shim(struct process *process, const struct shim_order *order)
{
	if (send(process->control, order, sizeof *order, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return;
}

/* Nobody has reason to stop one (SIGSTOP): the program runs on, and its end and that of its lease would go unseen. */
static bool wake_shim(struct process *process)
{
	siginfo_t info = {0};

	if (waitid(P_PIDFD, (id_t)process->pidfd, &info, WSTOPPED | WNOHANG) < 0 || info.si_pid == 0)
		return false;
	pidfd_signal(process->pidfd, SIGCONT);
	return true;
}

bool process_lease(struct process *process, const struct process_lease *lease)
{
	if (!has_shim(process))
		return false;
	tell_shim(process, &(struct shim_order){.kind = ORDER_LEASE, .lease = *lease});
	return wake_shim(process);
}

void process_work(struct process *process, const struct process_lease *lease)
{
	struct shim_order order = {.kind = lease ? ORDER_WORK : ORDER_REST};

	if (!has_shim(process))
		return;
	if (lease)
		order.lease = *lease;
	process->output_bytes = 0;
	process->output_free = !lease;
	process->budgets++;
	tell_shim(process, &order);
}

void process_kill(struct process *process)
{
	order(process, ORDER_KILL, 0);
}

/* ---- for a start ------------------------------------------------------------------------------------------------- */

int process_attach(struct process *process)
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

void process_watch(struct process *process)
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

void process_discard(struct process *process)
{
	close_all(process);
	process_enter(process, PROCESS_FREED);
	free_if_done(process);
}

/* ---- facts -------------------------------------------------------------------------------------------------------- */

const struct process_end *process_end(const struct process *process)
{
	return &process->end;
}

void process_foretell(const struct host *host, const char *run, struct process_identity *ret_identity)
{
	*ret_identity = (struct process_identity){0};
	snprintf(ret_identity->run, sizeof ret_identity->run, "%s", run);
	memcpy(ret_identity->boot, host->boot, sizeof ret_identity->boot);
	if (host->place.tree[0] && cgroup_path(host->place.tree, run, ret_identity->cgroup) < 0)
		ret_identity->cgroup[0] = 0;
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
	if (process->leaves.count > 0)
		snprintf(ret_identity->cgroup, sizeof ret_identity->cgroup, "%s", process->leaves.paths[0]);
}
