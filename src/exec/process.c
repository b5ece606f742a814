/*
 * Our side of a process. The shim does the work. Here its reports become events, the output is read, and a shim that fails
 * is dealt with.
 *
 * A process is gone when its shim has said so and has been waited for. A shim that dies without a report is lost: then the
 * host ends what it left. A shim that does not answer in time is killed, and then it is lost too.
 */
#include "exec/process.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
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

/* For each state, the states that may follow it. */
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
	/* A number that was waited for is another's: the pidfd is open for exactly as long as the shim is ours to signal. */
	assert((process->shim > 0) == (process->pidfd.fd >= 0));
	assert(!over || process->shim == 0);
	assert(!over || process->input.fd < 0);
	assert(!over || process->streams[STREAM_OUT].watch.fd < 0);
	assert(!over || process->streams[STREAM_ERR].watch.fd < 0);
	assert(process->state != PROCESS_LEFT || process->control.fd < 0); /* nobody is there to be told */
	assert(!over || process->control.fd < 0);
	assert(process->state != PROCESS_LOST ||
		process->end.how != ENDED_NOT_YET); /* how it ended is settled */
}

static void process_enter(struct process *process, enum process_state state)
{
	assert(next_states[process->state] >> state &
		1); /* gone() is called once, and the process freed once */
	process->state = state;
	process_check(process);
}

/* ---- its descriptors ---------------------------------------------------------------------------------------------- */

/* A descriptor that is not wanted now has EPOLLONESHOT: its hang-up is reported once, and not in every
 * iteration of the loop. */
static uint32_t epoll_events(uint32_t wanted)
{
	return wanted ? wanted : EPOLLONESHOT;
}

static int watch_add(struct watch *watch, uint32_t events)
{
	struct epoll_event event = {.events = epoll_events(events), .data.ptr = watch};

	assert(watch->ready != NULL);
	assert(watch->fd >= 0);
	watch->events = events;
	return epoll_ctl(watch->process->host->epoll, EPOLL_CTL_ADD, watch->fd, &event) < 0 ? -errno : 0;
}

static void watch_want(struct watch *watch, uint32_t events)
{
	struct epoll_event event = {.events = epoll_events(events), .data.ptr = watch};

	assert(watch->fd >= 0);
	if (watch->events == events)
		return;
	watch->events = events;
	epoll_ctl(watch->process->host->epoll, EPOLL_CTL_MOD, watch->fd,
		&event); /* it is in the epoll: this cannot fail */
}

static void watch_close(struct watch *watch)
{
	if (watch->fd >= 0)
		close(watch->fd);
	watch->fd = -1;
}

static void free_if_done(struct process *process)
{
	if (process->state != PROCESS_FREED || !process->late_closed)
		return;
	for (int i = 0; i < 2; i++)
		output_done(&process->streams[i].output);
	buf_done(&process->stdin_waiting);
	short_link_remove(process->short_link);
	free(process);
}

static void late_closed(uv_handle_t *handle)
{
	struct process *process = handle->data;

	process->late_closed = true;
	free_if_done(process);
}

static void close_all(struct process *process)
{
	watch_close(&process->pidfd);
	watch_close(&process->control);
	watch_close(&process->input);
	for (int i = 0; i < 2; i++)
		watch_close(&process->streams[i].watch);
	uv_close((uv_handle_t *)&process->late, late_closed);
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
	struct process *process = stream->watch.process;
	assert(stream->watch.fd >= 0);
	assert(most > 0); /* reading 0 bytes would look like the end of the stream */
	char *into = process->host->read;
	ssize_t got = read(stream->watch.fd, into, most < HOST_READ_BYTES ? most : HOST_READ_BYTES);

	if (got > 0) {
		output_put(&stream->output, (struct span){into, (size_t)got});
		process->output_bytes += (uint64_t)got;
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

static void stream_ready(struct watch *watch)
{
	struct process *process = watch->process;
	enum process_stream which = watch == &process->streams[STREAM_OUT].watch ? STREAM_OUT : STREAM_ERR;
	struct stream *stream = &process->streams[which];
	size_t room = room_for(stream);
	ssize_t got;

	if (room == 0) {
		watch_want(watch, 0); /* until process_advance() */
		return;
	}
	got = stream_read(stream, room);
	if (got > 0) {
		if (output_is_spent(process))
			process_stop(process, process->linger_ms);
		if (process->events->output)
			process->events->output(process->context, process, which);
	} else if (got != -EAGAIN && got != -EINTR) {
		watch_close(watch);
		if (process->events->closed)
			process->events->closed(process->context, process, which);
	}
}

void process_pull(struct process *process, enum process_stream which)
{
	struct stream *stream = &process->streams[which];
	size_t room;

	while (stream->watch.fd >= 0 && (room = room_for(stream)) > 0) {
		ssize_t got = stream_read(stream, room);
		if (got <= 0 || (size_t)got < room)
			return; /* the loop handles its end */
	}
}

/* The tree is gone: what is in the pipe is all there will be. */
static void stream_drain(struct stream *stream)
{
	int left = 0;

	if (stream->watch.fd < 0 || ioctl(stream->watch.fd, FIONREAD, &left) < 0)
		return;
	if (stream->overflow ==
		OVERFLOW_HOLDS) /* beyond its limit by what a pipe holds, at the most; nothing writes to it any more */
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
	if (read->watch.fd >= 0)
		watch_want(&read->watch, EPOLLIN);
}

/* ---- what it reads ------------------------------------------------------------------------------------------------ */

static void stdin_flush(struct process *process)
{
	struct buf *waiting = &process->stdin_waiting;

	while (process->stdin_written < waiting->len) {
		ssize_t put = write(process->input.fd, waiting->data + process->stdin_written,
			waiting->len - process->stdin_written);
		if (put < 0 && errno == EAGAIN) {
			watch_want(&process->input, EPOLLOUT);
			return;
		}
		if (put < 0 && errno != EINTR) { /* it reads no more */
			watch_close(&process->input);
			buf_clear(waiting);
			process->stdin_written = 0;
			return;
		}
		process->stdin_written += put > 0 ? (size_t)put : 0;
	}
	buf_clear(waiting);
	process->stdin_written = 0;
	if (process->stdin_closing)
		watch_close(&process->input);
	else
		watch_want(&process->input, 0);
}

static void stdin_ready(struct watch *watch)
{
	stdin_flush(watch->process);
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

	if (process->input.fd < 0 || process->stdin_closing)
		return -EPIPE;
	fault = stdin_keep(process, bytes);
	if (fault)
		return fault;
	stdin_flush(process);
	return process->input.fd < 0 ? -EPIPE : 0;
}

void process_close_stdin(struct process *process)
{
	process->stdin_closing = true;
	if (process->input.fd >= 0)
		stdin_flush(process);
}

/* ---- the end ------------------------------------------------------------------------------------------------------ */

static void unlink_process(struct process *process)
{
	struct host *host = process->host;

	assert(process->previous || host->first == process); /* it is in the list */
	if (process->previous)
		process->previous->next = process->next;
	else
		host->first = process->next;
	if (process->next)
		process->next->previous = process->previous;
	assert(host->count > 0);
	if (--host->count == 0)
		uv_unref((uv_handle_t *)&host->watches);
}

static void finish(struct process *process)
{
	assert(process->shim == 0); /* waited for */
	for (int i = 0; i < 2; i++)
		stream_drain(&process->streams[i]);
	output_is_spent(process);
	close_all(process);
	unlink_process(process);
	process_enter(process, PROCESS_GONE);
	process->events->gone(process->context, process);
}

/* The shim died without its last report. What it left is ours to end. */
static void lose(struct process *process)
{
	assert(process->shim == 0); /* what is left of its tree is ours, and no shim's, to end */
	if (process->end.how == ENDED_NOT_YET && process->state == PROCESS_READY)
		process->end.how = ENDED_LOST;
	if (process->end.how ==
		ENDED_NOT_YET) { /* killed while it was loaded: the machine is short of memory */
		process->end.how = ENDED_UNSTARTED;
		process->end.fault = (struct start_fault){.step = START_SHIM, .error = ENOMEM};
	}
	process_enter(process, PROCESS_LOST);
	host_sweep_begin(process->host);
}

void process_swept(struct process *process)
{
	assert(process->state == PROCESS_LOST);
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
		watch_close(
			&process->control); /* that the socket closes next is no news: the pidfd reports the end */
		process_enter(process, PROCESS_LEFT);
	}
}

/* False: no report has arrived. */
static bool read_report(struct process *process)
{
	struct shim_report report;
	ssize_t got = recv(process->control.fd, &report, sizeof report, MSG_DONTWAIT);

	if (got == sizeof report)
		take_report(process, &report);
	else if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
		watch_want(&process->control, 0); /* the shim has ended or will: the pidfd reports it */
	return got == sizeof report;
}

static void control_ready(struct watch *watch)
{
	(void)read_report(watch->process); /* if there are more, the loop comes again */
}

static void shim_ended(struct watch *watch)
{
	struct process *process = watch->process;
	siginfo_t info = {0};

	if (waitid(P_PIDFD, (id_t)watch->fd, &info, WEXITED | WNOHANG) < 0 && errno == EAGAIN)
		return;
	process->shim = 0;
	watch_close(watch);
	while (process->state != PROCESS_LEFT &&
		read_report(process)) /* its last report may still be in the socket */
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

	if (process->pidfd.fd >= 0)
		pidfd_signal(process->pidfd.fd, SIGKILL);
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
	assert(process->control.fd >= 0);
	if (process->end.how == ENDED_NOT_YET)
		process->end.stop_asked = true;
	/* If the socket is full the shim is asleep, and late. */
	if (send(process->control.fd, &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
		errno != EAGAIN)
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
	if (send(process->control.fd, order, sizeof *order, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return;
}

/* A shim that was stopped (SIGSTOP) goes on: nobody has reason to stop one, and the program would run on unwatched,
 * past its end and its lease. */
static bool wake_shim(struct process *process)
{
	siginfo_t info = {0};

	assert(process->pidfd.fd >= 0);
	if (waitid(P_PIDFD, (id_t)process->pidfd.fd, &info, WSTOPPED | WNOHANG) < 0 || info.si_pid == 0)
		return false;
	pidfd_signal(process->pidfd.fd, SIGCONT);
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

struct process *process_new(struct host *host, const struct process_spec *spec)
{
	struct process *process = calloc(1, sizeof *process);

	if (!process)
		return NULL;
	process->host = host;
	process->events = spec->events;
	process->context = spec->context;
	process->late_ms = INT64_MAX;
	process->linger_ms = spec->linger_ms;
	process->output_bytes_most = spec->confine.limits.output_bytes;
	process->output_free = spec->budget_later;
	process->pidfd = (struct watch){process, shim_ended, -1, 0};
	process->control = (struct watch){process, control_ready, -1, 0};
	process->input = (struct watch){process, stdin_ready, -1, 0};
	snprintf(process->run, sizeof process->run, "%s", spec->run);
	buf_init(&process->stdin_waiting, PROCESS_WRITE_BYTES_MAX);
	for (int i = 0; i < 2; i++) {
		process->streams[i].watch = (struct watch){process, stream_ready, -1, 0};
		process->streams[i].overflow = spec->overflow[i];
		output_init(&process->streams[i].output, spec->output_bytes_max[i]);
	}
	uv_timer_init(host->loop, &process->late);
	process->late.data = process;
	return process;
}

int process_attach(struct process *process)
{
	assert(process->shim > 0);
	assert(process->control.fd >= 0);
	int fault = watch_add(&process->pidfd, EPOLLIN);

	if (!fault)
		fault = watch_add(&process->control, EPOLLIN);
	for (int i = 0; i < 2 && !fault; i++)
		fault = watch_add(&process->streams[i].watch, EPOLLIN);
	if (!fault && process->input.fd >= 0)
		fault = watch_add(&process->input, 0);
	return fault;
}

void process_enlist(struct process *process)
{
	struct host *host = process->host;

	assert(process->state == PROCESS_SPAWNED);
	assert(process->shim > 0);
	assert(!process->next);
	assert(!process->previous);
	process->next = host->first;
	if (host->first)
		host->first->previous = process;
	host->first = process;
	if (host->count++ == 0)
		uv_ref((uv_handle_t *)&host->watches);
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
	process_foretell(process->host, process->run, ret_identity);
	ret_identity->shim = process->shim;
	ret_identity->main = process->main;
	ret_identity->shim_start = process->shim_start;
	ret_identity->main_start = process->main_start;
	if (process->leaves.count > 0)
		snprintf(ret_identity->cgroup, sizeof ret_identity->cgroup, "%s", process->leaves.paths[0]);
}
