/*
 * The clocks of a run: too long, silent for too long, and still there after its last word. While it waits for an answer none
 * of them counts, and whether it does the server knows alone.
 */
#include "worker/run/parts.h"

#include "base/take.h"

enum {
	CALL_MS = 10 * 1000,
	FINAL_MS = 10 * 1000, /* after the final word */
	LOOK_MS = 5 * 1000,   /* while it asks: is there an answer? */
	AGENT_LOOK_MS = 1000, /* the same, where we hand the answer over */
};

static void on_clock(uv_timer_t *timer);

/* When silence is too long; INT64_MAX: there is no such clock. */
static int64_t silent_until_ms(const struct run *run)
{
	int64_t limit_ms = run->spoke ? run->executor->stall_ms : run->executor->start_ms;

	if (run->agent)
		return run_agent_silent_until_ms(run);
	if (!run->spoke && limit_ms == 0)
		limit_ms = run->executor->stall_ms;
	return limit_ms > 0 ? run->heard_ms + limit_ms : INT64_MAX;
}

int64_t run_times_out_ms(const struct run *run)
{
	return run->claimed_ms + run->timeout_ms + run->waited_ms;
}

/* Of an agent whose process is gone no clock counts but those of its checks. */
static bool is_timed(const struct run *run)
{
	return run->phase == RUN_STARTED && !(run->agent && run->agent->gone);
}

void run_arm_clock(struct run *run)
{
	int64_t now_ms = worker_clock_ms();

	if (run->agent && run->agent->gone)
		return;
	int64_t look_ms = run->agent ? AGENT_LOOK_MS : LOOK_MS;
	int64_t due_ms = run->asks ? now_ms + look_ms : earliest(run_times_out_ms(run), silent_until_ms(run));

	if (run->final_ms > 0)
		due_ms = earliest(due_ms, run->final_ms);
	int64_t wait_ms = due_ms > now_ms ? due_ms - now_ms : 0;

	uv_timer_start(&run->clock, on_clock, (uint64_t)earliest(wait_ms, 3600 * 1000), 0);
}

/* Its time is up, unless it waits for an answer. */
static void judge_time(struct run *run)
{
	int64_t now_ms = worker_clock_ms();

	if (!is_timed(run) || run->stop != STOP_NOT)
		return;
	if (!run->asks && now_ms >= run_times_out_ms(run)) {
		run->limit_ms = run->timeout_ms;
		run_stop(run, STOP_TIMED_OUT, INT64_MAX);
	} else if (!run->asks && now_ms >= silent_until_ms(run)) {
		run->limit_ms = now_ms - run->heard_ms;
		run_stop(run, STOP_STALLED, INT64_MAX);
	} else {
		run_arm_clock(run);
	}
}

/* A task under another claim than ours is ignored. */
static void see(struct run *run, yyjson_val *task)
{
	int64_t now_ms = worker_clock_ms();
	yyjson_val *left = yyjson_obj_get(task, "runMs");

	if (!yyjson_equals_str(yyjson_obj_get(task, "fence"), run->fence) || !yyjson_is_int(left))
		return;
	/* what the server leaves it beyond what our clock says is what it has waited */
	int64_t waited_ms = yyjson_get_sint(left) - (run->granted_ms - (now_ms - run->claimed_ms));
	run->asks = yyjson_equals_str(yyjson_obj_get(task, "state"), "asking");
	if (waited_ms <= run->waited_ms)
		return;
	run->heard_ms = earliest(run->heard_ms + waited_ms - run->waited_ms, now_ms);
	run->waited_ms = waited_ms;
}

static void on_looked(void *context, int fault, const struct http_answer *answer)
{
	struct run *run = context;
	const struct supervisor *supervisor = run->supervisor;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;

	if (fault == 0 && http_answer_status(answer) == 200 &&
		json_read_reply(http_answer_body(answer), &doc) == 0) {
		see(run, yyjson_doc_get_root(doc));
		if (supervisor->once)
			once_seen(supervisor->once, run, yyjson_doc_get_root(doc));
	}
	if (run->agent)
		run_agent_see(run, yyjson_doc_get_root(doc));
	judge_time(run);
}

/* Before anything is stopped for its age or its silence: does it wait for a person? Whatever it has asked it has asked
 * the server, and not us. */
void run_look(struct run *run)
{
	struct supervisor *supervisor = run->supervisor;
	struct span target = run->log_target;

	target.len -= sizeof "/log" - 1;
	if (!run->looks)
		run->looks = supervisor_take_client(supervisor);
	if (run->looks && api_client_is_busy(run->looks))
		return;
	if (!run->looks ||
		api_client_get(run->looks, target, heartbeat_token(supervisor->heartbeat), CALL_MS, on_looked,
			run) < 0) {
		if (run->agent)
			run_agent_see(run, NULL);
		judge_time(run);
	}
}

static void on_clock(uv_timer_t *timer)
{
	struct run *run = timer->data;
	int64_t now_ms = worker_clock_ms();

	if (run->phase != RUN_STARTED || run->stop != STOP_NOT)
		return;
	if (run->final_ms > 0 && now_ms >= run->final_ms)
		run_stop(run, STOP_FINAL, INT64_MAX);
	else if (run->asks || now_ms >= run_times_out_ms(run) || now_ms >= silent_until_ms(run))
		run_look(run);
	else
		run_arm_clock(run);
}

void run_reported(struct run *run)
{
	if (run->agent) { /* it may go on: its last word ends it, and not its report */
		run->agent->reported = true;
		return;
	}
	if (run->final_ms > 0 || run->phase != RUN_STARTED)
		return;
	run->final_ms = worker_clock_ms() + FINAL_MS;
	run_arm_clock(run);
}
