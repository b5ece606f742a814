#include "worker/run/parts.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/take.h"
#include "attempt/retry.h"

enum {
	ARENA_BYTES_MAX = 8 << 20,
	NOTE_BYTES_MAX = 32 << 10,
	WORDS_KEPT_BYTES_MAX = 1 << 20,
	UNSETTLED_MS = 1000, /* so long what it left may wait for the server to have its report */
	REPORT_TRIES = 3,    /* again, after 1, 2 and 4 s */
	REPORT_AGAIN_MS = 4000,
	REFUSALS_MAX = 2,        /* reports that the server refused; then the claim is only let go */
	TIMEOUT_SLACK_MS = 2000, /* the server's clock of the same limit started a little earlier */
};

/* ---- where it stands ---- */

static const unsigned moves[] = {
	[RUN_CLAIMED] = 1u << RUN_STARTED | 1u << RUN_SENDING | 1u << RUN_OVER,
	[RUN_STARTED] = 1u << RUN_ENDED,
	[RUN_ENDED] = 1u << RUN_SENDING | 1u << RUN_OVER,
	[RUN_SENDING] = 1u << RUN_OVER,
	[RUN_OVER] = 0,
};

/* What is true of a run in each phase, whatever the world does. */
static void run_check(const struct run *run)
{
	bool pooled = run_is_pooled(run);

	assert(run->tries <= REPORT_TRIES + 1);
	assert(!run->taken || run->in_outbox);
	assert(!run->in_outbox || run->writer);
	assert(!run->has_end || run->phase >= RUN_ENDED);
	assert(!run->log_ended || run->phase >= RUN_ENDED);
	assert(!pooled || !run->process);
	assert(!pooled || !run->tree);
	switch (run->phase) {
	case RUN_CLAIMED:
		assert(run->report);
		assert(!run->process);
		assert(!run->writer);
		assert(!run->remembered);
		break;
	case RUN_STARTED:
		assert(run->executor);
		assert(run->report);
		assert(pooled || run->process);
		assert(run->remembered); /* a successor finds what runs */
		assert(!run->writer);
		assert(!run->refused_code);
		break;
	case RUN_ENDED: /* the process is kept for what it wrote last */
		assert(run->has_end);
		assert(run->report);
		assert(pooled || run->process);
		assert(!run->writer); /* nothing was reported while something of it ran */
		assert(!run->log_ended);
		break;
	case RUN_SENDING:
		assert(run->report);
		assert(!run->process);
		assert(!run->tree);
		assert(run->in_outbox == run->log_ended); /* else nothing of it ran, and there is no log */
		break;
	case RUN_OVER:
		assert(!run->report);
		assert(!run->process);
		assert(!run->tree);
		break;
	}
}

void run_move(struct run *run, enum run_phase to)
{
	assert(moves[run->phase] >> to & 1);
	run->phase = to;
	run_check(run);
}

/* The end of a run that has no report, or whose report is settled. If the server did not take the report the task may still
 * count as ours there: the next heartbeat unbinds it. */
static void finish(struct run *run)
{
	struct supervisor *supervisor = run->supervisor;

	if (run->report)
		outbox_give_back(supervisor->outbox, run->report);
	run->report = NULL;
	run_close_sockets(run);
	run_move(run, RUN_OVER);
	uv_timer_stop(&run->clock);
	if (!supervisor_has_other(supervisor, run)) /* else the heartbeat is that one's */
		heartbeat_let_go(
			supervisor->heartbeat, span_of(run->task), run->taken || run->stop == STOP_LOST);
	if (run->remembered) {
		run_record_settle(&run->record);
		run_let_go(run);
	} else {
		supervisor_forget(supervisor, run);
	}
}

/* ---- reporting ---- */

/* Something of it ran: the server weighs what the work itself has reported, and puts a success with open gates into review. */
static bool is_by_report(const struct run *run)
{
	return run->phase == RUN_ENDED;
}

static int put_head(struct run *run, struct buf *text, enum report_verb verb, struct json_object *object)
{
	http_put_path(text, "/api/tasks/", span_of(run->task), "/");
	buf_printf(text, "%s\n", report_verb_name(verb));
	json_begin(object, text);
	json_member_string(object, "workerId", heartbeat_worker_id(run->supervisor->heartbeat));
	json_member_string(object, "fence", span_of(run->fence));
	if (is_by_report(run) &&
		verb != REPORT_REVIEW) /* review is what we say when the work has said nothing */
		json_member_bool(object, "byReport", true);
	return buf_fault(text);
}

static int put_report(struct run *run)
{
	cleanup(buf_done) struct buf members = {0};
	struct json_object object;

	buf_init(&members, RUN_BODY_BYTES_MAX);
	int r = run->writer(run, &run->verb, &members);
	if (r == 0)
		r = put_head(run, outbox_text(run->report), run->verb, &object);
	if (r == 0 && members.len > 0)
		json_members_raw(&object, buf_span(&members));
	return r < 0 ? r : json_end(&object);
}

/* The report cannot be written: this one says so, and the task is done again. It fits into the memory that was reserved. */
static int put_unwritten(struct run *run, int fault)
{
	struct buf *text = outbox_text(run->report);
	struct json_object object;

	run->verb = REPORT_FAIL;
	put_head(run, text, run->verb, &object);
	buf_put_byte(text, ',');
	if (fault == -E2BIG)
		failure_put(text, "EXECUTION_ERROR", "its result is too long to be kept: a report has 1 MiB",
			RETRY_NEVER);
	else
		failure_put_refused(text, "WORKER_INIT_FAILED",
			"the worker had no memory to keep how it ended: it is done again", clock_wall_ms());
	return json_end(&object);
}

/* No report at all can be written. The heartbeat lets go of the task, and the server makes it ready again. */
static void abandon(struct run *run, int fault)
{
	log_error("the report of an attempt is lost: the task is given up", log_cstr("task", run->task),
		log_cstr("reason", strerror(-fault)));
	run->writer = NULL;
	if (run->phase != RUN_ENDED)
		finish(run);
	else if (run->log_ended)
		run_log_ended(run);
}

static void try_to_report(struct run *run);

static void on_report_again(uv_timer_t *timer)
{
	try_to_report(timer->data);
}

static void try_to_report(struct run *run)
{
	int r = put_report(run);

	if (r == -ENOMEM && run->tries++ < REPORT_TRIES) {
		log_warn("there is no memory for the report of an attempt; trying again",
			log_cstr("task", run->task));
		uv_timer_start(&run->clock, on_report_again,
			(uint64_t)retry_delay_ms(run->tries, REPORT_AGAIN_MS, &run->supervisor->rng), 0);
		return;
	}
	if (r < 0) {
		log_error("how an attempt ended cannot be told", log_cstr("task", run->task),
			log_cstr("reason", strerror(-r)));
		r = put_unwritten(run, r);
	}
	if (r < 0) {
		abandon(run, r);
		return;
	}
	run->in_outbox = true;
	outbox_put(run->supervisor->outbox, run->report, run->phase == RUN_ENDED);
	if (run->log_ended && run->phase == RUN_ENDED)
		run_log_ended(run);
}

void run_report(struct run *run, report_writer writer)
{
	assert(run->report);
	assert(!run->writer);
	run->writer = writer;
	try_to_report(run);
}

/* The report goes when the log is uploaded, because the log of an attempt that has ended takes no more. */
void run_log_ended(void *context)
{
	struct run *run = context;

	run->log_ended = true;
	if (run->writer && !run->in_outbox)
		return; /* it is being tried */
	if (run->writer && run_owes_note(run))
		return; /* what it has used comes first: the report ends the claim */
	process_free(run->process);
	run->process = NULL;
	run->upload.process = NULL;
	run->upload.own = NULL;
	if (!run->writer) {
		finish(run);
		return;
	}
	run_move(run, RUN_SENDING);
	outbox_release(run->supervisor->outbox, run->report);
}

static void log_unstarted(const struct run *run, const char *as)
{
	char reason[START_DETAIL_BYTES + 200];

	start_fault_text(&run->end.fault, reason, sizeof reason);
	log_warn("ended", log_cstr("task", run->task), log_cstr("as", as), log_cstr("reason", reason));
}

void run_log_end(struct run *run, const char *as)
{
	bool signal = run->end.how == ENDED_SIGNAL;

	if (run->logged || run->phase < RUN_ENDED)
		return;
	run->logged = true;
	if (run_is_pooled(run))
		log_info("ended", log_cstr("task", run->task), log_cstr("as", as));
	else if (run->end.how == ENDED_UNSTARTED)
		log_unstarted(run, as);
	else
		log_info("ended", log_cstr("task", run->task), log_cstr("as", as),
			log_int(signal ? "signal" : "exit", run->end.code),
			log_int("strays", run->end.strays));
}

void run_end(struct run *run, const struct process_end *end, report_writer writer)
{
	run->end = *end;
	run->has_end = true;
	run_move(run, RUN_ENDED);
	run_heed_lapse(run, end);
	if (run->stop != STOP_LOST) {
		run_report(run, writer);
	} else {
		run_let_go(run);
		run_log_end(run, "lost");
	}
	if (verdict_is_shortage(end))
		supervisor_back_off(run->supervisor);
	if (run->tree)
		run_end_tree(run);
	else
		log_upload_finish(&run->upload, run_log_ended, run);
}

/* What it left on disk goes when nothing more urgent is to be done. */
void run_let_go(struct run *run)
{
	run->unneeded = true;
	if (run->remembered)
		supervisor_clean_up(run->supervisor);
}

static void on_unsettled(uv_timer_t *timer)
{
	run_let_go(timer->data);
}

bool run_has_ended(const struct run *run)
{
	return run->phase == RUN_ENDED || run->phase == RUN_SENDING || run->phase == RUN_OVER;
}

void run_saved(struct run *run, int fault)
{
	if (run->has_end)
		run_log_end(run, report_verb_name(run->verb));
	if (fault == 0) { /* in a moment the server has it; else it does not wait for that */
		if (run->phase != RUN_OVER)
			uv_timer_start(&run->clock, on_unsettled, UNSETTLED_MS, 0);
		return;
	}
	if (run->cleared)
		return;
	log_error("the report of an attempt is in memory alone", log_cstr("task", run->task),
		log_cstr("reason", strerror(-fault)));
	run->cleared = true; /* perhaps it was the work that filled the disk */
	state_dir_clear_run(&run->supervisor->state_dir, run->name);
	outbox_save(run->supervisor->outbox);
}

bool run_clean_up(struct run *run)
{
	if (!run->remembered || !run->unneeded)
		return false;
	run->remembered = state_dir_forget_run(&run->supervisor->state_dir, run->name) == -EAGAIN;
	if (!run->remembered) /* its report is on disk, or settled */
		run_record_close(&run->record);
	if (!run->remembered && run->phase == RUN_OVER)
		supervisor_forget(run->supervisor, run);
	return true;
}

static int write_refused(struct run *run, enum report_verb *ret_verb, struct buf *members)
{
	*ret_verb = REPORT_FAIL;
	return failure_put_refused(members, run->refused_code, run->refused, clock_wall_ms());
}

bool run_refuse(struct run *run, const char *code, const char *message)
{
	struct span kept;

	run->refused_code = code;
	run->refused = arena_copy(&run->arena, span_of(message), &kept) < 0 ? "" : kept.data;
	if (run->tree) { /* what was made for it goes first */
		run_drop_tree(run);
		return false;
	}
	log_warn("a task cannot be run here", log_cstr("task", run->task), log_cstr("code", code),
		log_cstr("reason", message));
	run_move(run, RUN_SENDING);
	if (failure_is_of_host(code))
		supervisor_back_off(run->supervisor);
	run_report(run, write_refused);
	return false;
}

static int write_unstarted(struct run *run, enum report_verb *ret_verb, struct buf *members)
{
	return verdict_put(&(struct attempt_end){.stop = run->stop}, ret_verb, members);
}

void run_end_unstarted(struct run *run)
{
	if (run->stop == STOP_LOST) {
		finish(run);
		return;
	}
	run_move(run, RUN_SENDING);
	run_report(run, write_unstarted);
}

/* ---- a report that the server refuses ---- */

/* The claim is another's, or it has ended: there is nothing left to end. */
static bool claim_is_gone(struct span code)
{
	static const char *const codes[] = {"stale_claim", "not_found", "already_terminal", "forbidden"};

	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
		if (span_equal(code, span_of(codes[i])))
			return true;
	}
	return false;
}

static int write_unaccepted(struct run *run, enum report_verb *ret_verb, struct buf *members)
{
	*ret_verb = REPORT_FAIL;
	return failure_put(members, "EXECUTION_ERROR", run->refused, RETRY_USUAL);
}

static int write_given_back(struct run *run, enum report_verb *ret_verb, struct buf *members)
{
	*ret_verb = REPORT_RELEASE;
	return release_put(
		members, run->refused, HOST_TROUBLE_MS); /* not at once: it would be refused again */
}

/* The claim would stay until its lease is over: another report ends it now. */
static bool report_otherwise(struct run *run, const struct outbox_answer *answer)
{
	const char *why;

	if (run->refusals == REFUSALS_MAX || run->stop == STOP_LOST || claim_is_gone(answer->code))
		return false;
	run->report = outbox_reserve(run->supervisor->outbox, run->name, run);
	if (!run->report)
		return false;
	run->refusals++;
	run->in_outbox = false;
	why = arena_text(&run->arena, "the server did not accept how the attempt ended (%s): %.*s",
		report_verb_name(run->verb), SPAN_ARGS(answer->code));
	run->refused = why ? why : "the server did not accept how the attempt ended";
	run->writer = run->verb == REPORT_FAIL ? write_given_back : write_unaccepted;
	try_to_report(run);
	return true;
}

void run_report_answered(struct run *run, const struct outbox_answer *answer)
{
	bool taken = answer->status >= 200 && answer->status < 300;

	assert(run->in_outbox);
	assert(run->phase == RUN_SENDING);
	run->report = NULL;
	if (!taken && report_otherwise(run, answer))
		return;
	run->taken = taken;
	if (taken && run->agent)
		run_agent_settled(run, answer->state);
	finish(run);
}

void run_refuse_start(struct run *run, int fault)
{
	char reason[START_REASON_BYTES];
	const char *code = start_refused(fault, run->working_dir != NULL, run->wall.level, reason);

	run_refuse(run, code, reason);
}

/* ---- for the supervisor ---- */

static const char *const reasons[] = {
	[STOP_NOT] = "",
	[STOP_CANCELLED] = "cancelled",
	[STOP_TIMED_OUT] = "timeout",
	[STOP_STALLED] = "stalled",
	[STOP_SHUTDOWN] = "shutdown",
	[STOP_LAPSED] = "no answer",
	[STOP_PARKED] = "it waits for an answer",
	[STOP_FINAL] = "its last word was said",
	[STOP_LOST] = "lost",
};

void run_stop(struct run *run, enum stop_reason reason, int64_t grace_ms)
{
	/* the server's clock of the same limit: it says "cancel" and means "too long" */
	if (reason == STOP_CANCELLED && run->timeout_ms > 0 &&
		worker_clock_ms() >= run_times_out_ms(run) - TIMEOUT_SLACK_MS) {
		reason = STOP_TIMED_OUT;
		run->limit_ms = run->timeout_ms;
	}
	bool first = run->stop == STOP_NOT;
	if (first || reason == STOP_LOST)
		run->stop = reason;
	if (run->agent && run->agent->checking)
		job_kill(&run->agent->check);
	if (run->phase == RUN_STARTED) {
		int64_t grace = earliest(grace_ms, run->executor->grace_ms);
		if (first)
			log_info("stopping", log_cstr("task", run->task),
				log_cstr("reason", reasons[run->stop]));
		if (run_is_pooled(run))
			pools_withdraw(run->supervisor->pools, &run->job, grace > 0 ? grace : 0);
		else
			process_stop(run->process, (uint32_t)(grace > 0 ? grace : 0));
	} else if (run->phase == RUN_CLAIMED && run->tree) {
		worktree_cancel(run->tree); /* and on_tree_made() ends it */
	} else if (run->phase == RUN_CLAIMED) {
		uv_timer_stop(&run->clock);
		if (run_is_pooled(run))
			pools_withdraw(run->supervisor->pools, &run->job, 0);
		run_end_unstarted(run);
	}
}

bool run_takes_place(const struct run *run, const struct executor *executor)
{
	if (run->report && outbox_is_with_claim(run->report))
		return false;
	return executor->size > 0 ? run->executor == executor : !run_is_pooled(run);
}

struct span run_task(const struct run *run)
{
	return span_of(run->task);
}

bool run_take(struct supervisor *supervisor, yyjson_val *claim)
{
	struct run *run = calloc(1, sizeof *run);

	if (!run)
		return false;
	arena_init(&run->arena, ARENA_BYTES_MAX);
	run->supervisor = supervisor;
	run->record.fd = run->dir_fd = -1;
	run->claimed_ms = run->heard_ms = worker_clock_ms();
	run->client = supervisor_take_client(supervisor);
	supervisor_name_run(supervisor, run->name);
	run->report = outbox_reserve(supervisor->outbox, run->name, run);
	if (!run->client || !run->report || run_read_claim(run, claim) < 0) {
		if (run->report)
			outbox_give_back(supervisor->outbox, run->report);
		supervisor_give_client(supervisor, run->client);
		arena_done(&run->arena);
		free(run);
		return false;
	}
	uv_timer_init(supervisor->loop, &run->clock);
	run->clock.data = run;
	log_upload_init(&run->upload, supervisor->loop, run->client, supervisor->heartbeat, run->log_target,
		span_of(run->fence));
	uv_timer_init(supervisor->loop, &run->note_timer);
	run->note_timer.data = run;
	buf_init(&run->note, NOTE_BYTES_MAX);
	buf_init(&run->answer, RUN_BODY_BYTES_MAX);
	output_init(&run->words, WORDS_KEPT_BYTES_MAX);
	run->open_handles = 3;
	run_check(run);
	supervisor_list(supervisor, run); /* before it begins: one that is refused may be over at once */
	heartbeat_bind(supervisor->heartbeat, span_of(run->task));
	if (run_find_executor(run, claim) && run_check_rights(run, claim))
		run_begin(run);
	return true;
}

void run_handle_closed(struct run *run)
{
	if (--run->open_handles > 0)
		return;
	run_agent_free(run);
	log_upload_done(&run->upload);
	buf_done(&run->note);
	buf_done(&run->answer);
	output_done(&run->words);
	arena_done(&run->arena);
	free(run);
}

static void on_handle_closed(uv_handle_t *handle)
{
	run_handle_closed(handle->data);
}

void run_free(struct run *run)
{
	assert(run->phase == RUN_OVER);
	assert(!run->process);
	assert(!run->report);
	assert(!run->socket);
	assert(!run->proxy);
	assert(run->record.fd < 0);
	close_at(&run->dir_fd);
	run_agent_release(run);
	supervisor_give_client(run->supervisor, run->client);
	supervisor_give_client(run->supervisor, run->looks);
	supervisor_give_client(run->supervisor, run->notes);
	run->clock.data = run->upload.timer.data = run;
	uv_close((uv_handle_t *)&run->note_timer, on_handle_closed);
	uv_close((uv_handle_t *)&run->clock, on_handle_closed);
	uv_close((uv_handle_t *)&run->upload.timer, on_handle_closed);
}
