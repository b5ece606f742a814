/* What the process of a run does, and what follows when it is gone. */
#include "worker/run/parts.h"

#include <string.h>

#include "base/clock.h"
#include "base/take.h"
#include "attempt/hint.h"

enum {
	RESULT_BYTES_MAX = 256 << 10, /* of a last line */
	WORDS_BYTES_MAX = 4 << 10,    /* of what it said last */
};

static void on_started(void *context, struct process *process)
{
	struct run *run = context;

	(void)process;
	run->supervisor->troubles = 0;
	run_note(run);
}

static void on_output(void *context, struct process *process, enum process_stream stream)
{
	struct run *run = context;

	(void)process;
	run->heard_ms = worker_clock_ms();
	run->spoke = true;
	log_upload_hear(&run->upload, stream);
	log_upload_look(&run->upload);
}

/* Did its isolation make it fail? NULL: that cannot be told. */
static const char *find_hint(struct run *run, const struct process_end *end, struct span err)
{
	const struct settings *settings = run->supervisor->settings;
	struct hint_site site = {.home = &run->reach.home,
		.grants = run->grants.items,
		.grant_count = run->grants.count,
		.workdir = run->workspace,
		.level = run->wall.level,
		.executor = run->executor->name};
	struct config_origin origin = settings_origin_of(settings, run->executor);

	bool unstarted = end->how == ENDED_UNSTARTED && end->fault.step == START_EXEC;

	if (run->wall.level > WALL_SANDBOX || run->stop != STOP_NOT ||
		!(unstarted || (end->how == ENDED_EXIT && end->code != 0)) ||
		person_home_look(&run->reach.home, &run->arena) < 0)
		return NULL;
	site.file = settings_file_of(settings, origin);
	site.configured = origin.source == CONFIG_FILE;
	return unstarted ? hint_from_program(&site, &run->arena, end->fault.detail)
			 : hint_from_words(&site, &run->arena, err);
}

/* Its process is there until the report is in the outbox. */
static int judge(struct run *run, enum report_verb *ret_verb, struct buf *members)
{
	cleanup(buf_done) struct buf out = {0}, err = {0};

	buf_init(&out, RESULT_BYTES_MAX);
	buf_init(&err, WORDS_BYTES_MAX);
	int r = output_tail(process_output(run->process, STREAM_OUT), RESULT_BYTES_MAX, &out);
	if (r == 0)
		r = output_tail(process_output(run->process, STREAM_ERR), WORDS_BYTES_MAX, &err);
	struct attempt_end attempt = {
		.stop = run->stop,
		.end = process_end(run->process),
		.out = buf_span(&out),
		.err = buf_span(&err),
		.limit_ms = run->limit_ms,
		.limit_is_budget = run->timeout_is_budget,
		.limits = &run->executor->limits,
		.wall_ms = clock_wall_ms(),
		.own_argv = !run->executor->argv,
		.hint = r < 0 ? NULL : find_hint(run, process_end(run->process), buf_span(&err)),
	};
	return r < 0 ? r : verdict_put(&attempt, ret_verb, members);
}

static void on_gone(void *context, struct process *process)
{
	struct run *run = context;
	const struct process_end *end = process_end(process);

	uv_timer_stop(&run->clock);
	run_close_sockets(run);
	run_end(run, end, judge);
}

const struct process_events run_process_events = {
	.started = on_started,
	.output = on_output,
	.gone = on_gone,
};
