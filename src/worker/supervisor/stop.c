/*
 * How a supervisor ends: no new claims; what runs has its time; then it is stopped; then the last reports; then goodbye. Each
 * step has a clock, and what it cannot wait for is on disk.
 */
#include "worker/supervisor/parts.h"

#include <assert.h>
#include <stdnoreturn.h>
#include <unistd.h>

#include "base/log.h"
#include "base/service.h"
#include "base/take.h"
#include "worker/run/run.h"

enum {
	LEAVE_MS = 3 * 1000,
	REPORTS_MS = 10 * 1000, /* for the last reports, after everything has ended */
	LOOK_MS = 200,
	HURRIED_REPORTS_MS =
		1000, /* the same after a second signal; none at all of a server that does not answer */
	KILL_SLACK_MS = 15 * 1000,
	POOL_DRAIN_MS = 5 * 1000,
};

static void supervisor_move(struct supervisor *supervisor, enum supervisor_stage to)
{
	assert(to > supervisor->step); /* no way back, and no step twice */
	assert(to != SUPERVISOR_HURRYING || supervisor->step == SUPERVISOR_DRAINING);
	assert(to <= SUPERVISOR_DRAINING || supervisor->step >= SUPERVISOR_DRAINING);
	assert(to < SUPERVISOR_WAITING ||
		supervisor->run_count == 0); /* each report is on disk or with the server */
	supervisor->step = to;
}

void supervisor_stop_all(struct supervisor *supervisor, enum stop_reason reason, int64_t grace_ms)
{
	/* from the end: a run that has no process yet may be over at once */
	for (uint32_t i = supervisor->run_count; i > 0; i--)
		run_stop(supervisor->runs[i - 1], reason, grace_ms);
}

/* Nothing runs and nothing is to be said: the loop ends. */
static void close_all(struct supervisor *supervisor)
{
	assert(supervisor->step >= SUPERVISOR_WAITING);
	assert(supervisor->run_count == 0);
	assert(leftovers_are_idle(&supervisor->leftovers));
	heartbeat_free(supervisor->heartbeat);
	outbox_free(supervisor->outbox);
	api_client_free(supervisor->claims);
	supervisor_end_renewals(supervisor);
	while (supervisor->idle_count > 0)
		api_client_free(supervisor->idle[--supervisor->idle_count]);
	if (supervisor->once)
		supervisor->status = once_close(supervisor->once);
	api_client_free(supervisor->pool_client);
	host_close(supervisor->host);
	uv_stop(supervisor->loop); /* supervisor_run() closes the handles that are left */
}

static void on_goodbye(void *context, int fault, const struct http_answer *answer)
{
	(void)fault;
	(void)answer;
	close_all(context);
}

static void on_left(uv_timer_t *timer)
{
	close_all(timer->data);
}

static void say_goodbye(struct supervisor *supervisor)
{
	cleanup(buf_done) struct buf target = {0};
	bool known = supervisor->heartbeat && heartbeat_is_alive(supervisor->heartbeat);

	buf_init(&target, 1024);
	if (known)
		heartbeat_leave(supervisor->heartbeat);
	int r = http_put_path(&target, "/api/workers/", span_of(supervisor->worker_id), "");
	struct http_call call = {
		.method = HTTP_METHOD_DELETE,
		.target = buf_span(&target),
		.token = span_of(supervisor->token),
		.timeout_ms = LEAVE_MS,
	};
	if (r < 0 || !known || api_client_call(supervisor->claims, &call, on_goodbye, supervisor) < 0)
		close_all(supervisor);
}

static void leave(struct supervisor *supervisor)
{
	bool registering = supervisor->heartbeat && heartbeat_is_registering(supervisor->heartbeat);

	supervisor_move(
		supervisor, registering && !supervisor->once ? SUPERVISOR_WAITING : SUPERVISOR_LEAVING);
	uv_timer_stop(&supervisor->stop_timer);
	supervisor_drop_claim(supervisor);
	if (supervisor->once) { /* it was never registered; and the outbox may have called us */
		uv_timer_start(&supervisor->stop_timer, on_left, 0, 0);
	} else if (registering) {
		/* a goodbye that overtook it would be forgotten, and the slot be taken for a lease */
		uv_timer_start(&supervisor->stop_timer, on_left, LEAVE_MS, 0);
	} else {
		say_goodbye(supervisor);
	}
}

static void on_late(uv_timer_t *timer)
{
	say_goodbye(timer->data);
}

void supervisor_heard_late(struct supervisor *supervisor)
{
	supervisor_move(supervisor, SUPERVISOR_LEAVING);
	uv_timer_start(&supervisor->stop_timer, on_late, 0, 0);
}

void supervisor_look_for_end(struct supervisor *supervisor)
{
	bool stopping = supervisor->step != SUPERVISOR_SERVING;

	if (supervisor->run_count > 0 || supervisor->step >= SUPERVISOR_WAITING ||
		(supervisor->once && once_is_looking(supervisor->once)))
		return;
	if (stopping && !pools_are_gone(supervisor->pools)) {
		pools_retire(supervisor->pools);
		return; /* supervisor_pools_changed() comes */
	}
	if (stopping && !leftovers_are_idle(&supervisor->leftovers))
		return; /* on_leftovers_idle() comes */
	if (stopping && outbox_waiting(supervisor->outbox) == 0) {
		leave(supervisor);
	} else if (supervisor->over && !stopping) {
		supervisor->over = false;
		snprintf(supervisor->worker_id, sizeof supervisor->worker_id, "%.100s-%.8s-%llu",
			supervisor->options->name, supervisor->instance,
			(unsigned long long)++supervisor->run_number);
		log_info("coming back under another id", log_cstr("worker", supervisor->worker_id));
		state_dir_note_worker(&supervisor->state_dir, supervisor->worker_id);
		heartbeat_renew(supervisor->heartbeat, span_of(supervisor->worker_id));
	}
}

/* Everything is gone and the server is away: what there is to say is on disk. Or something could not be killed: a disk
 * that does not answer, a bug of ours; shims and the next worker do the rest. */
static noreturn void give_up(struct supervisor *supervisor)
{
	struct host_facts facts;

	host_describe(supervisor->host, &facts);
	log_at(facts.processes > 0 ? LEVEL_ERROR : LEVEL_WARN,
		facts.processes > 0
			? "not everything could be stopped in time"
			: "the server does not take the last reports; the next worker here sends them",
		log_int("processes", facts.processes),
		log_int("reports", outbox_waiting(supervisor->outbox)));
	int status = supervisor->once ? once_close(supervisor->once) : supervisor->status;
	outbox_free(supervisor->outbox);
	state_dir_close(&supervisor->state_dir, facts.processes == 0);
	_exit(facts.processes > 0 ? 1 : status);
}

/* Nothing runs, and the server does not take what there is to say. */
static void leave_reports(struct supervisor *supervisor)
{
	if (supervisor->run_count > 0)
		give_up(supervisor);
	log_warn("the server does not take the last reports; the next worker here sends them",
		log_int("reports", outbox_waiting(supervisor->outbox)));
	leave(supervisor);
}

static bool anything_runs(const struct supervisor *supervisor)
{
	bool runs = !pools_are_gone(supervisor->pools) || !leftovers_are_idle(&supervisor->leftovers);

	for (uint32_t i = 0; i < supervisor->run_count && !runs; i++)
		runs = !run_has_ended(supervisor->runs[i]);
	return runs;
}

/* How long what there is to say may wait for the server once nothing runs. */
static int64_t reports_ms(const struct supervisor *supervisor)
{
	if (!supervisor->impatient)
		return REPORTS_MS;
	return outbox_server_is_away(supervisor->outbox) ? 0 : HURRIED_REPORTS_MS;
}

/* Running work has its time, and so has a server that answers. Reports that the server does not take stay on disk for the next
 * worker. A pass of run-once does not beat, and cannot know whether the server is away: it waits for the whole drain. */
static void on_stopping(uv_timer_t *timer)
{
	struct supervisor *supervisor = timer->data;
	int64_t now_ms = worker_clock_ms();
	int64_t heard_ms = supervisor->heartbeat ? heartbeat_heard_ms(supervisor->heartbeat) : INT64_MIN;
	bool runs = anything_runs(supervisor), hurrying = supervisor->step == SUPERVISOR_HURRYING;

	if (runs || (supervisor->once && !hurrying))
		supervisor->last_ran_ms = now_ms;
	else if (heard_ms > supervisor->last_ran_ms && !hurrying)
		supervisor->last_ran_ms = heard_ms;
	if (!runs && now_ms - supervisor->last_ran_ms >= reports_ms(supervisor))
		leave_reports(supervisor);
	else if (!hurrying && now_ms >= supervisor->drain_until_ms)
		supervisor_hurry(supervisor);
	else if (hurrying && runs && now_ms >= supervisor->kill_until_ms)
		give_up(supervisor);
}

void supervisor_hurry(struct supervisor *supervisor)
{
	int64_t grace_ms = 0, now_ms = worker_clock_ms();

	supervisor_move(supervisor, SUPERVISOR_HURRYING);
	supervisor_stop_all(supervisor, STOP_SHUTDOWN, INT64_MAX);
	if (supervisor->step >= SUPERVISOR_WAITING) /* the last run was over at once */
		return;
	for (uint32_t i = 0; i < supervisor->settings->executor_count; i++) {
		int64_t its_ms = supervisor->settings->executors[i].grace_ms;
		grace_ms = its_ms > grace_ms ? its_ms : grace_ms;
	}
	supervisor->kill_until_ms = now_ms + grace_ms + KILL_SLACK_MS;
	supervisor->last_ran_ms = now_ms;
	uv_timer_start(&supervisor->stop_timer, on_stopping, 0, LOOK_MS);
}

void supervisor_hear_signal(struct supervisor *supervisor)
{
	if (supervisor->step == SUPERVISOR_SERVING) {
		supervisor_stop(supervisor, 0);
		return;
	}
	supervisor->impatient = true;
	if (supervisor->step == SUPERVISOR_DRAINING)
		supervisor_hurry(supervisor);
}

/* Workers of pools keep nobody waiting for as long as a command may. */
static void on_pools_drained(uv_timer_t *timer)
{
	struct supervisor *supervisor = timer->data;

	for (uint32_t i = supervisor->run_count; i > 0; i--) {
		if (run_is_pooled(supervisor->runs[i - 1]))
			run_stop(supervisor->runs[i - 1], STOP_SHUTDOWN, INT64_MAX);
	}
}

static void begin_drain(struct supervisor *supervisor)
{
	supervisor->last_ran_ms = worker_clock_ms();
	supervisor->drain_until_ms = supervisor->last_ran_ms + supervisor->options->drain_ms;
	uv_timer_start(&supervisor->stop_timer, on_stopping,
		(uint64_t)(supervisor->options->drain_ms < LOOK_MS ? supervisor->options->drain_ms : LOOK_MS),
		LOOK_MS);
}

void supervisor_stop(struct supervisor *supervisor, int status)
{
	if (supervisor->step != SUPERVISOR_SERVING)
		return;
	supervisor_move(supervisor, SUPERVISOR_DRAINING);
	supervisor->status = status;
	service_tell("STOPPING=1");
	log_info("stopping", log_int("runs", supervisor->run_count));
	supervisor_drop_claim(supervisor);
	uv_timer_stop(&supervisor->claim_timer);
	leftovers_stop(&supervisor->leftovers);
	pools_retire(supervisor->pools);
	uv_timer_start(&supervisor->drain_timer, on_pools_drained,
		(uint64_t)(supervisor->options->drain_ms < POOL_DRAIN_MS ? supervisor->options->drain_ms
									 : POOL_DRAIN_MS),
		0);
	if (supervisor->run_count == 0)
		supervisor_hurry(supervisor);
	else
		begin_drain(supervisor);
	supervisor_look_for_end(supervisor);
}

void supervisor_end(struct supervisor *supervisor)
{
	if (!supervisor->host) /* it has not begun */
		return;
	supervisor_stop(supervisor, supervisor->status);
	supervisor_look_for_end(supervisor);
}
