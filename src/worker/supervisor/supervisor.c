#include "worker/supervisor/parts.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "agent/session/memory.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/service.h"
#include "base/take.h"
#include "base/utf8.h"
#include "worker/report/report_file.h"
#include "worker/run/run.h"
#include "worktree/worktrees.h"

enum {
	CRASH_ID_BYTES_MAX = REPORT_NAME_BYTES - (int)sizeof "crash-of-"
}; /* of a worker's id, in the name of a report */

enum {
	INHERITANCE_MS = 30 * 1000, /* how long what a predecessor left may keep us from registering */
	GRACE_OVER_MS = 2000,       /* for work that is somebody else's by now */
	AGENT_KEPT_MS = 7 * 24 * 3600 * 1000, /* homes of agents whose tasks are final */
};

static void begin_heartbeat(struct supervisor *supervisor);

/* ---- runs ---- */

bool supervisor_has_other(const struct supervisor *supervisor, const struct run *run)
{
	for (uint32_t i = 0; i < supervisor->run_count; i++) {
		if (supervisor->runs[i] != run && span_equal(run_task(supervisor->runs[i]), run_task(run)))
			return true;
	}
	return false;
}

/* The newest of that task: an older one is on its way out. */
static struct run *find_newest(const struct supervisor *supervisor, struct span task)
{
	for (uint32_t i = supervisor->run_count; i > 0; i--) {
		if (span_equal(run_task(supervisor->runs[i - 1]), task))
			return supervisor->runs[i - 1];
	}
	return NULL;
}

void supervisor_list(struct supervisor *supervisor, struct run *run)
{
	assert(supervisor->run_count < CONCURRENCY_MAX);
	supervisor->runs[supervisor->run_count++] = run;
}

void supervisor_forget(struct supervisor *supervisor, struct run *run)
{
	uint32_t i = 0;

	while (i < supervisor->run_count && supervisor->runs[i] != run)
		i++;
	assert(i < supervisor->run_count);
	supervisor->run_count--;
	memmove(&supervisor->runs[i], &supervisor->runs[i + 1], (supervisor->run_count - i) * sizeof run);
	run_free(run);
	if (supervisor->once)
		once_run_over(supervisor->once);
	supervisor_look_for_end(supervisor);
	supervisor_claim(supervisor);
}

struct api_client *supervisor_take_client(struct supervisor *supervisor)
{
	assert(supervisor->idle_count <= IDLE_CLIENTS_MAX);
	return supervisor->idle_count > 0
		? supervisor->idle[--supervisor->idle_count]
		: api_client_new(supervisor->loop, &supervisor->options->address, NULL);
}

void supervisor_give_client(struct supervisor *supervisor, struct api_client *client)
{
	assert(supervisor->step < SUPERVISOR_WAITING);
	if (!client || supervisor->idle_count == IDLE_CLIENTS_MAX) {
		api_client_free(client);
		return;
	}
	api_client_drop(client);
	supervisor->idle[supervisor->idle_count++] = client;
}

/* One run in each iteration of the loop, so that input is read in between: to remove a thousand files takes as long as a sync. */
static void on_clean_up(uv_idle_t *cleaner)
{
	struct supervisor *supervisor = cleaner->data;

	for (uint32_t i = 0; i < supervisor->run_count; i++) {
		if (run_clean_up(supervisor->runs[i]))
			return;
	}
	uv_idle_stop(cleaner);
}

void supervisor_clean_up(struct supervisor *supervisor)
{
	uv_idle_start(&supervisor->cleaner, on_clean_up);
}

static void on_saved(void *context, void *owner, int fault)
{
	(void)context;
	if (owner)
		run_saved(owner, fault);
}

static void on_settled(void *context, void *owner, const char *name, const struct outbox_answer *answer)
{
	struct supervisor *supervisor = context;
	struct run *run = owner;

	if (!run && pools_settled(supervisor->pools, name, answer->status, answer->body)) {
		supervisor_look_for_end(supervisor);
		return;
	}
	if (answer->status >= 300 && !supervisor->once) /* a pass says in its result what became of it */
		log_warn("the server did not accept how an attempt ended", log_cstr("run", name),
			log_span("task", run ? run_task(run) : (struct span){0}),
			log_int("status", answer->status), log_span("code", answer->code));
	if (run) {
		if (supervisor->once)
			once_settled(supervisor->once, answer->status, answer->body);
		run_report_answered(run, answer);
		return;
	}
	if (!supervisor->heartbeat && outbox_waiting(supervisor->outbox) == 0)
		begin_heartbeat(supervisor);
	supervisor_look_for_end(supervisor);
}

static void on_ready(void *context)
{
	supervisor_claim(context);
}

static const struct outbox_events outbox_events = {
	.saved = on_saved, .settled = on_settled, .ready = on_ready};

/* ---- news ---- */

static void on_signal(uv_signal_t *signal, int number)
{
	(void)number;
	supervisor_hear_signal(signal->data);
}

/* For the next worker in this slot. If the record cannot be written that one waits for a lease to end; we go on. */
static void note_standing(struct supervisor *supervisor, bool let_in)
{
	struct state_dir *state = &supervisor->state_dir;
	int r = !let_in           ? state_dir_note_refused(state)
		: state->not_ours ? state_dir_note_worker(state, supervisor->worker_id)
				  : 0;

	if (r < 0)
		log_warn("who has the slot cannot be written down", log_cstr("reason", strerror(-r)));
}

static void on_serve_again(uv_timer_t *timer)
{
	supervisor_serve(timer->data);
}

/* Neither the instance's credential nor ours is good any more: nothing that is done from now on can be reported, and the server has
 * cut the leases. */
static void hear_revoked(struct supervisor *supervisor, const struct heartbeat_event *news)
{
	if (supervisor->step != SUPERVISOR_SERVING)
		return;
	log_error("the credential of this worker is no longer valid; everything is stopped",
		log_int("runs", supervisor->run_count), log_span("code", news->code),
		log_span("reason", news->detail));
	supervisor_stop(supervisor, EXIT_NO_PERMISSION);
	supervisor_stop_all(supervisor, STOP_LAPSED, GRACE_OVER_MS);
}

static void hear_refused(struct supervisor *supervisor, const struct heartbeat_event *news)
{
	bool alive = heartbeat_is_alive(supervisor->heartbeat);

	if (news->status == 401 && supervisor_reread_token(supervisor)) {
		if (!alive)
			uv_timer_start(&supervisor->claim_timer, on_serve_again, 0, 0);
		return;
	}
	if (!alive && news->status == 401 && supervisor_renew_credential(supervisor))
		return;
	if (alive && news->status == 401 && !supervisor->once) {
		hear_revoked(supervisor, news);
		return;
	}
	if (!alive)
		note_standing(supervisor, false); /* before it is logged: a reader of the log may end us */
	log_at(alive ? LEVEL_WARN : LEVEL_ERROR,
		alive ? "a heartbeat is refused" : "the worker is not registered",
		log_int("status", news->status), log_span("code", news->code),
		log_span("holder", news->holder), log_span("reason", news->detail));
	if (alive || span_equal(news->code, SPAN("slot_quarantined")))
		return; /* it is asked again */
	supervisor_stop(supervisor,
		news->status == 401 || news->status == 403 ? EXIT_NO_PERMISSION
			: news->status == 409              ? EXIT_TEMPORARY
							   : EXIT_CONFIG);
}

static void hear_standing(struct supervisor *supervisor, enum beat_standing standing)
{
	supervisor->standing = standing;
	if (standing == BEAT_TERMINATING) {
		log_info("told to stop");
		supervisor_stop(supervisor, 0);
	} else if (standing == BEAT_QUIET) {
		log_info("told to take nothing new");
		supervisor_drop_claim(supervisor);
	}
}

static void hear_over(struct supervisor *supervisor)
{
	log_warn("the server counts this worker as lost; everything is stopped",
		log_int("runs", supervisor->run_count));
	supervisor->over = true;
	supervisor_drop_claim(supervisor);
	supervisor_stop_all(supervisor, STOP_LOST, GRACE_OVER_MS);
	supervisor_look_for_end(supervisor);
}

static void hear_lapsed(struct supervisor *supervisor, int64_t until_ms)
{
	int64_t left_ms = until_ms - worker_clock_ms();

	log_warn("no answer from the server for nine tenths of the lease; everything is stopped",
		log_int("runs", supervisor->run_count));
	supervisor_stop_all(supervisor, STOP_LAPSED, left_ms / 2);
}

/* No connection; or a server that is there, and says that it cannot. */
static void log_away(const struct supervisor *supervisor, const struct heartbeat_event *news)
{
	char reason[300];

	if (news->fault)
		snprintf(reason, sizeof reason, "%s", strerror(-news->fault));
	else
		snprintf(reason, sizeof reason, "it answers %d%s%.*s", news->status,
			news->detail.len > 0 ? ": " : "", SPAN_ARGS(utf8_cut(news->detail, 200)));
	log_warn(heartbeat_fault_is_ours(news->fault)
			? "heartbeats cannot be sent; everything is stopped before the lease is over"
			: news->fault ? "the server does not answer"
				      : "the server cannot take heartbeats now",
		log_cstr("url", supervisor->options->url), log_cstr("reason", reason));
}

static void on_heartbeat_event(void *context, const struct heartbeat_event *news)
{
	struct supervisor *supervisor = context;
	struct run *run = news->id.len > 0 ? find_newest(supervisor, news->id) : NULL;

	if (news->kind == HEARTBEAT_REGISTERED) {
		supervisor->credential_proved = !supervisor->once; /* a pass does not register */
		note_standing(supervisor, true);
	}
	if (supervisor->step == SUPERVISOR_WAITING &&
		(news->kind == HEARTBEAT_REGISTERED || news->kind == HEARTBEAT_REFUSED ||
			news->kind == HEARTBEAT_AWAY)) {
		supervisor_heard_late(supervisor);
		return;
	}
	/* Nothing runs any more, and the goodbye is under way: an answer that crosses it changes nothing, and must not drop it. */
	if (supervisor->step == SUPERVISOR_LEAVING)
		return;
	switch (news->kind) {
	case HEARTBEAT_REGISTERED:
		supervisor->standing = BEAT_ACTIVE;
		if (supervisor->once) {
			once_begin(supervisor->once);
			break;
		}
		log_info("registered", log_cstr("worker", supervisor->worker_id));
		if (supervisor->step != SUPERVISOR_SERVING)
			break;
		pools_begin(supervisor->pools);
		service_tell("READY=1");
		break;
	case HEARTBEAT_LOST:
		if (run)
			run_stop(run, STOP_LOST, GRACE_OVER_MS);
		break;
	case HEARTBEAT_CANCEL:
		if (run)
			run_stop(run, STOP_CANCELLED, INT64_MAX);
		break;
	case HEARTBEAT_REPORTED:
		if (run)
			run_reported(run);
		break;
	case HEARTBEAT_STOP_WAITING:
		if (run)
			run_stop(run, STOP_PARKED, INT64_MAX);
		break;
	case HEARTBEAT_TOLD:
		if (run)
			run_told(run);
		break;
	case HEARTBEAT_STANDING:
		hear_standing(supervisor, news->standing);
		break;
	case HEARTBEAT_LAPSED:
		hear_lapsed(supervisor, news->until_ms);
		break;
	case HEARTBEAT_VOUCHED:
		for (uint32_t i = 0; i < supervisor->run_count; i++)
			run_push(supervisor->runs[i]);
		break;
	case HEARTBEAT_OVER:
		hear_over(supervisor);
		break;
	case HEARTBEAT_REFUSED:
		hear_refused(supervisor, news);
		break;
	case HEARTBEAT_AWAY:
		log_away(supervisor, news);
		break;
	case HEARTBEAT_NOTIFIED:
		once_hear_news(supervisor->once);
		break;
	case HEARTBEAT_BACK:
		log_info("the server answers again");
		supervisor->claim_failures = 0;
		uv_timer_stop(&supervisor->claim_timer);
		break;
	}
	supervisor_claim(supervisor);
}

/* ---- starting ---- */

static void make_ids(struct supervisor *supervisor)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	uint64_t random[2] = {(uint64_t)getpid(), uv_hrtime()};

	if (getrandom(random, sizeof random, 0) < 0)
		log_warn("the system has no random numbers to give");
	rng_seed(&supervisor->rng, random[1]);
	for (int i = 0; i < 8; i++) {
		supervisor->instance[i] = digits[random[0] % 36];
		random[0] /= 36;
	}
	if (supervisor->options->once)
		snprintf(supervisor->worker_id, sizeof supervisor->worker_id, "%.128s",
			supervisor->options->once->agent_id);
	else
		snprintf(supervisor->worker_id, sizeof supervisor->worker_id, "%.100s-%s",
			supervisor->options->name, supervisor->instance);
}

static void begin_heartbeat(struct supervisor *supervisor)
{
	const struct supervisor_options *options = supervisor->options;
	cleanup(buf_done) struct buf about = {0};

	if (supervisor->heartbeat || supervisor->step != SUPERVISOR_SERVING)
		return;
	buf_init(&about, SUPERVISOR_BODY_BYTES_MAX);
	int r = supervisor_put_about(supervisor, &about);
	struct heartbeat_options heartbeat = {
		.address = options->address,
		.worker_id = span_of(supervisor->worker_id),
		.token = span_of(supervisor->token),
		.about = buf_span(&about),
		.rules =
			{
				.lease_ms = options->lease_ms,
				.idle_ms = options->slot ? 30 * 1000 : 0,
				.working_ms = options->slot || !options->same_host ? 15 * 1000 : 5 * 1000,
				.same_host = options->same_host,
			},
		.plain = options->once != NULL,
		.tasks_max = 2 * CONCURRENCY_MAX,
		.seed = rng_u64(&supervisor->rng),
	};
	supervisor->heartbeat =
		r < 0 ? NULL : heartbeat_new(supervisor->loop, &heartbeat, on_heartbeat_event, supervisor);
	if (!supervisor->heartbeat) {
		log_error("not started: no memory");
		supervisor_stop(supervisor, EXIT_UNAVAILABLE);
	}
}

static void on_inheritance_due(uv_timer_t *timer)
{
	begin_heartbeat(timer->data);
}

/* The last worker in our slot did not end cleanly. The server stops the slot after the third such end within a minute. */
static void report_predecessor(struct supervisor *supervisor)
{
	const struct supervisor_options *options = supervisor->options;
	const char *id = supervisor->state_dir.before.worker_id;
	size_t len = strlen(id);
	cleanup(buf_done) struct buf target = {0};
	char name[REPORT_NAME_BYTES];

	if (!options->slot || len == 0)
		return;
	buf_init(&target, 1024);
	/* by the end of its name, which is its own: told again, by the next one if we are not let in, it counts once */
	snprintf(name, sizeof name, "crash-of-%s",
		len > CRASH_ID_BYTES_MAX ? id + len - CRASH_ID_BYTES_MAX : id);
	int r = http_put_path(&target, "/api/slots/", span_of(options->slot), "/crash");
	if (r == 0)
		r = outbox_post(supervisor->outbox, name, buf_span(&target), SPAN("{}"));
	log_warn("the worker that had this slot did not end cleanly", log_cstr("slot", options->slot),
		log_cstr("worker", id), log_cstr("untold", r < 0 ? strerror(-r) : ""));
}

/* The status to end with. */
static int not_started(struct supervisor *supervisor, const char *action, const char *reason, int status)
{
	log_error("not started", log_cstr("reason", reason));
	if (supervisor->once)
		once_failed(supervisor->once, action, reason);
	return status;
}

static int open_parts(struct supervisor *supervisor)
{
	const struct supervisor_options *options = supervisor->options;
	struct host_options host = {.landlock_optional = supervisor->settings->landlock_optional,
		.bounds = settings_bounds(supervisor->settings)};
	char complaint[STATE_DIR_COMPLAINT_BYTES];

	int r = state_dir_open(&supervisor->state_dir, options->home, options->slot, supervisor->worker_id,
		options->once != NULL, complaint);
	if (r < 0)
		return not_started(supervisor, r == -EBUSY ? "blocked" : "failed", complaint,
			r == -EBUSY || r == -ENOSPC || r == -EDQUOT ? EXIT_TEMPORARY : EXIT_CONFIG);
	if (supervisor->state_dir.adopted > 0)
		log_warn("took over from a worker that died",
			log_int("attempts", supervisor->state_dir.adopted),
			log_int("orphans", supervisor->state_dir.orphans));
	worktrees_heal(options->home, supervisor->settings->landlock_optional);
	memory_sweep(options->home, clock_wall_ms(), AGENT_KEPT_MS);
	r = host_open(supervisor->loop, &host, &supervisor->host, complaint);
	if (r < 0)
		return not_started(supervisor, "failed", complaint, EXIT_CONFIG);
	accept_share_init(&supervisor->accepts, supervisor->loop);
	r = supervisor_open_pools(supervisor);
	supervisor->claims = api_client_new(supervisor->loop, &options->address, NULL);
	supervisor->outbox = outbox_new(supervisor->loop, &options->address, (struct span){0},
		supervisor->state_dir.outbox_fd, &outbox_events, supervisor);
	if (r < 0 || !supervisor->claims || !supervisor->outbox) {
		log_error("not started: no memory");
		return EXIT_UNAVAILABLE;
	}
	return 0;
}

/* The loop runs: the service manager's watchdog gets a sign of life, at half the time that it set. */
static void on_watchdog(uv_timer_t *timer)
{
	(void)timer;
	service_tell("WATCHDOG=1");
}

static void start_watchdog(struct supervisor *supervisor)
{
	const char *text = getenv("WATCHDOG_USEC");
	int64_t every_ms = text ? strtoll(text, NULL, 10) / 2000 : 0;

	uv_timer_init(supervisor->loop, &supervisor->watchdog);
	if (every_ms > 0)
		uv_timer_start(&supervisor->watchdog, on_watchdog, 0, (uint64_t)every_ms);
}

/* Before anything is taken over: a signal that comes during the take-over is handled when the loop runs, after it. */
static int catch_signals(struct supervisor *supervisor)
{
	sigset_t caught;
	int r = uv_signal_init(supervisor->loop, &supervisor->term);

	if (r == 0)
		r = uv_signal_init(supervisor->loop, &supervisor->interrupt);
	supervisor->term.data = supervisor->interrupt.data = supervisor;
	if (r == 0)
		r = uv_signal_start(&supervisor->term, on_signal, SIGTERM);
	if (r == 0)
		r = uv_signal_start(&supervisor->interrupt, on_signal, SIGINT);
	if (r < 0)
		return r;
	sigemptyset(&caught);
	sigaddset(&caught, SIGTERM);
	sigaddset(&caught, SIGINT);
	sigprocmask(SIG_UNBLOCK, &caught, NULL); /* blocked since main() began, or by our parent */
	return 0;
}

static void on_leftovers_idle(void *context)
{
	supervisor_look_for_end(context);
}

static void start_loop(struct supervisor *supervisor)
{
	struct worktree_site site = {
		supervisor->loop, supervisor->host, supervisor->state_dir.home, supervisor->instance};

	start_watchdog(supervisor);
	uv_timer_init(supervisor->loop, &supervisor->claim_timer);
	uv_timer_init(supervisor->loop, &supervisor->stop_timer);
	uv_timer_init(supervisor->loop, &supervisor->pools_timer);
	uv_timer_init(supervisor->loop, &supervisor->drain_timer);
	uv_timer_init(supervisor->loop, &supervisor->renewal_timer);
	supervisor->renewal_timer.data = supervisor;
	supervisor->pools_timer.data = supervisor->drain_timer.data = supervisor;
	supervisor->claim_timer.data = supervisor->stop_timer.data = supervisor;
	uv_idle_init(supervisor->loop, &supervisor->cleaner);
	supervisor->cleaner.data = supervisor;
	leftovers_init(&supervisor->leftovers, &site, on_leftovers_idle, supervisor);
	supervisor_find_credential(supervisor);
}

void supervisor_serve(struct supervisor *supervisor)
{
	outbox_set_token(supervisor->outbox, span_of(supervisor->token));
	if (supervisor->served) { /* with another token than before */
		heartbeat_free(supervisor->heartbeat);
		supervisor->heartbeat = NULL;
		begin_heartbeat(supervisor);
		return;
	}
	supervisor->served = true;
	supervisor_begin_renewals(supervisor);
	outbox_load(supervisor->outbox);
	report_predecessor(supervisor);
	if (outbox_waiting(supervisor->outbox) > 0) /* first what the dead had to say, then who we are */
		uv_timer_start(&supervisor->stop_timer, on_inheritance_due, INHERITANCE_MS, 0);
	else
		begin_heartbeat(supervisor);
}

static void close_walked(uv_handle_t *handle, void *context)
{
	(void)context;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static void close_loop(uv_loop_t *loop)
{
	uv_walk(loop, close_walked, NULL);
	uv_run(loop, UV_RUN_DEFAULT);
	uv_loop_close(loop);
}

int supervisor_run(struct supervisor *supervisor, const struct supervisor_options *options)
{
	uv_loop_t loop;

	settings_assert(options->settings);
	assert(options->concurrency >= 1);
	assert(options->concurrency <= CONCURRENCY_MAX);
	assert(options->lease_ms > 0);
	assert(options->drain_ms >= 0);
	*supervisor = (struct supervisor){.options = options,
		.settings = options->settings,
		.loop = &loop,
		.request_number = 1,
		.credential_fd = -1,
		.renewal_fd = -1};
	buf_init(&supervisor->body, SUPERVISOR_CLAIM_BYTES_MAX);
	int r = uv_loop_init(&loop);
	if (r < 0)
		return not_started(supervisor, "failed", uv_strerror(r), EXIT_UNAVAILABLE);
	make_ids(supervisor);
	r = catch_signals(supervisor);
	if (r < 0) {
		close_loop(&loop);
		return not_started(supervisor, "failed", uv_strerror(r), EXIT_UNAVAILABLE);
	}
	supervisor->once = options->once ? once_new(supervisor, options->once) : NULL;
	int status = options->once && !supervisor->once ? EXIT_UNAVAILABLE : open_parts(supervisor);
	if (status == 0) {
		start_loop(supervisor);
		uv_run(&loop, UV_RUN_DEFAULT);
		status = supervisor->status;
	} else if (supervisor->once) {
		status = once_close(supervisor->once);
	}
	state_dir_close(&supervisor->state_dir, true);
	close_loop(&loop);
	pools_free(supervisor->pools);
	once_free(supervisor->once);
	buf_done(&supervisor->body);
	log_info("stopped");
	return status;
}
