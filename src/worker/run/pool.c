/* A run that a worker of a pool works off: it has a job in place of a process. */
#include "worker/run/parts.h"

#include <errno.h>

#include "base/clock.h"
#include "base/take.h"

bool run_is_pooled(const struct run *run)
{
	return run->executor && run->executor->size > 0;
}

static void on_job_started(void *context)
{
	struct run *run = context;

	run_move(run, RUN_STARTED);
	run->supervisor->troubles = 0;
	run->heard_ms = worker_clock_ms();
	run->spoke = true; /* that it starts in time was its worker's to show */
	log_upload_begin(&run->upload, NULL, &run->words);
	run_arm_clock(run);
}

static void on_job_wrote(void *context, struct span bytes)
{
	struct run *run = context;

	run->heard_ms = worker_clock_ms();
	output_put(&run->words, bytes);
	log_upload_look(&run->upload);
}

/* One note a second at the most: of several the newest counts. */
static void on_job_progress(void *context, int percent, struct span note)
{
	struct run *run = context;
	struct json_object object;

	run->heard_ms = worker_clock_ms();
	buf_clear(&run->note);
	json_begin(&object, &run->note);
	json_member_string(&object, "workerId", heartbeat_worker_id(run->supervisor->heartbeat));
	json_member_string(&object, "fence", span_of(run->fence));
	if (percent >= 0)
		json_member_int(&object, "percent", percent);
	if (note.len > 0)
		json_member_string(&object, "note", note);
	run->note_waits = json_end(&object) == 0;
	run_send_progress(run);
}

static int write_stopped(struct run *run, enum report_verb *ret_verb, struct buf *members)
{
	struct attempt_end attempt = {.stop = run->stop,
		.end = &run->end,
		.limit_ms = run->limit_ms,
		.limit_is_budget = run->timeout_is_budget};

	return verdict_put(&attempt, ret_verb, members);
}

static int write_answer(struct run *run, enum report_verb *ret_verb, struct buf *members)
{
	*ret_verb = run->answer_verb;
	return run->answer_lost ? -ENODATA : buf_put_span(members, buf_span(&run->answer));
}

static void on_job_ended(void *context, const struct pool_job_end *end)
{
	struct run *run = context;
	bool started = run->phase == RUN_STARTED;

	run->end = (struct process_end){.stop_asked = !end->lapsed, .lapsed = end->lapsed};
	run->has_end = true;
	run_heed_lapse(run, &run->end);
	uv_timer_stop(&run->clock);
	uv_timer_stop(&run->note_timer);
	run_move(run, started ? RUN_ENDED : RUN_SENDING);
	if (run->stop != STOP_LOST) {
		run->answer_verb = end->verb;
		run->answer_lost = buf_put_span(&run->answer, end->report) < 0;
		run_report(run, end->stopped ? write_stopped : write_answer);
	} else {
		run_let_go(run);
		run_log_end(run, "lost");
	}
	if (started)
		log_upload_finish(&run->upload, run_log_ended, run);
}

static const struct pool_job_events job_events = {
	.started = on_job_started,
	.progress = on_job_progress,
	.wrote = on_job_wrote,
	.ended = on_job_ended,
};

void run_start_pooled(struct run *run)
{
	if (run->working_dir) {
		run_refuse(run, "BAD_WORKDIR",
			"the workers of a pool stay in the directory of their executor; the task must not ask for another");
		return;
	}
	int r = run_note(run);
	if (r < 0) {
		run_refuse_start(run, r);
		return;
	}
	run->job = (struct pool_job){
		.executor = run->executor,
		.task = run->task,
		.module = run->module,
		.text = run->input,
		.deadline_ms = clock_wall_ms() + (run->claimed_ms + run->timeout_ms - worker_clock_ms()),
		.lease = run_lease(run),
		.events = &job_events,
		.context = run,
	};
	pools_submit(run->supervisor->pools, &run->job);
}
