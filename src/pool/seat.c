/*
 * One seat: the machine of worker.h over a process. What the process writes is read here, what the machine says is done here.
 */
#include "pool/seat.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/take.h"

CLEANUP_AT(yyjson_doc, yyjson_doc_free);

enum {
	LEFTOVER_MS = 10,     /* until it is looked again whether what the one before it left is gone */
	NOISE_BYTES_MAX = 60, /* of what came in place of a frame, where it is quoted */
};

int64_t pool_clock_ms(void)
{
	return (int64_t)(uv_hrtime() / 1000000);
}

/* ---- what it can do, and when ---- */

static void keep_modules(struct pool_seat *seat, const struct pool_message *message)
{
	seat->barred[0] = 0;
	buf_clear(&seat->modules);
	seat->module_count = 0;
	for (uint32_t i = 0; i < message->module_count; i++) {
		if (buf_put_span(&seat->modules, message->modules[i]) < 0 ||
			buf_put_byte(&seat->modules, 0) < 0)
			return;
		seat->module_count++;
	}
}

const char *pool_seat_module(const struct pool_seat *seat, const char *module)
{
	const char *at = seat->modules.data;

	if (!module)
		return seat->module_count == 1 ? at : NULL;
	for (uint32_t i = 0; i < seat->module_count; i++, at += strlen(at) + 1) {
		if (strcmp(at, module) == 0)
			return at;
	}
	return NULL;
}

void pool_seat_note_trouble(struct pool_seat *seat, const char *why)
{
	snprintf(seat->trouble, sizeof seat->trouble, "%.*s", (int)sizeof seat->trouble - 1, why);
	seat->trouble_ms = clock_wall_ms();
}

/* ---- what it says ---- */

/* Lines that belong to no task go into our own log. */
static void log_words(const struct pool_seat *seat, struct span bytes)
{
	static struct log_limit said = {.level = LEVEL_INFO, .msg = "a worker of a pool says", .most = 20};

	while (bytes.len > 0) {
		const char *newline = memchr(bytes.data, '\n', bytes.len);
		size_t len = newline ? (size_t)(newline - bytes.data) : bytes.len;
		struct span line = {bytes.data, len < SEAT_LINE_BYTES_MAX ? len : SEAT_LINE_BYTES_MAX};
		if (line.len > 0)
			log_limited(&said, log_cstr("poolWorker", seat->name), log_span("text", line));
		bytes.data += newline ? len + 1 : len;
		bytes.len -= newline ? len + 1 : len;
	}
}

static void take_words(struct pool_seat *seat)
{
	for (;;) {
		struct span bytes = output_unread(process_output(seat->process, STREAM_ERR), NULL);
		if (bytes.len == 0)
			return;
		if (seat->job)
			seat->job->events->wrote(seat->job->context, bytes);
		else
			log_words(seat, bytes);
		process_advance(seat->process, STREAM_ERR, bytes.len);
	}
}

static void note_dropped(struct pool_seat *seat, const struct pool_complaint *complaint)
{
	static struct log_limit dropped = {
		.level = LEVEL_WARN, .msg = "a frame of a worker of a pool is dropped", .most = 5};

	log_limited(&dropped, log_cstr("poolWorker", seat->name), log_cstr("reason", complaint->reason));
	memcpy(seat->dropped, complaint->reason, sizeof seat->dropped);
}

static enum pool_subject subject_of(const struct pool_seat *seat, const struct pool_message *message)
{
	if (message->kind < POOL_PROGRESS)
		return POOL_OF_NONE;
	if (seat->job && span_is(message->task, seat->job->task))
		return POOL_OF_ITS_TASK;
	return span_is(message->task, seat->last_task) ? POOL_OF_THE_LAST : POOL_OF_ANOTHER;
}

/* If it did answer, in its own mind, this is all that anybody will find before the task counts as stalled. */
static void log_crossed(const struct pool_seat *seat)
{
	static struct log_limit crossed = {.level = LEVEL_WARN,
		.msg = "a worker of a pool is ready although it has a task; it may have said so before it read it",
		.most = 5};

	log_limited(&crossed, log_cstr("poolWorker", seat->name), log_cstr("task", seat->job->task));
}

static void note_goodbye(struct pool_seat *seat, struct span reason)
{
	if (reason.len > 0)
		snprintf(seat->quote, sizeof seat->quote, "its reason: %.*s", SPAN_ARGS(reason));
	log_info("a worker of a pool says goodbye", log_cstr("poolWorker", seat->name),
		log_span("reason", reason.len > 0 ? reason : SPAN("none given")));
}

static void hear_frame(struct pool_seat *seat, struct span frame)
{
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;
	struct pool_message message;
	struct pool_complaint complaint;

	if (pool_text_read(frame, &doc, &message, &complaint) < 0) {
		note_dropped(seat, &complaint);
		pool_seat_perform(seat,
			pool_worker_hear_unknown(&seat->worker, complaint.of_itself, pool_clock_ms()), NULL);
		return;
	}
	if (message.kind == POOL_HELLO && seat->worker.state == POOL_STARTING)
		keep_modules(seat, &message);
	if (message.kind == POOL_SHUTDOWN && seat->worker.state != POOL_LEAVING)
		note_goodbye(seat, message.reason);
	enum pool_subject subject = subject_of(seat, &message);
	if (subject == POOL_OF_ANOTHER) {
		pool_complain_of_task(&complaint, &message);
		note_dropped(seat, &complaint);
	}
	uint32_t todo = pool_worker_hear(&seat->worker, &message, subject, pool_clock_ms());
	if (message.kind == POOL_READY && seat->worker.state == POOL_BUSY)
		log_crossed(seat);
	pool_seat_perform(seat, todo, &message);
}

static size_t readable_len(const char *text, size_t most)
{
	size_t len = 0;

	while (len < most && text[len] >= 0x20 && text[len] < 0x7f)
		len++;
	return len;
}

/* What came in place of a frame: most often it is a line that was meant for a log; or else the length in another order. */
static void note_noise(struct pool_seat *seat, struct span rest)
{
	const char *head = (const char *)seat->frames.head;
	size_t more = readable_len(rest.data, rest.len < NOISE_BYTES_MAX ? rest.len : NOISE_BYTES_MAX);

	if (readable_len(head, FRAME_HEAD_BYTES) == FRAME_HEAD_BYTES)
		snprintf(seat->quote, sizeof seat->quote, "it wrote \"%.*s%.*s\"", FRAME_HEAD_BYTES, head,
			(int)more, rest.data);
	else
		snprintf(seat->quote, sizeof seat->quote, "it announced %u bytes",
			frame_length(&seat->frames));
}

static void take_frames(struct pool_seat *seat)
{
	struct span bytes, frame;
	size_t used;

	while ((bytes = output_unread(process_output(seat->process, STREAM_OUT), NULL)).len > 0) {
		/* who has used up a budget is being ended: what it says now comes too late */
		bool over = seat->worker.killed || process_end(seat->process)->spent != SPENT_NOTHING;
		int r = over ? 0 : frame_read(&seat->frames, bytes, &used, &frame);
		if (r < 0)
			note_noise(seat, (struct span){bytes.data + used, bytes.len - used});
		if (over || r < 0)
			used = bytes.len; /* nothing of it will be read any more */
		process_advance(seat->process, STREAM_OUT, used);
		if (r < 0) {
			pool_seat_perform(seat,
				pool_worker_break(&seat->worker, POOL_FAULT_LENGTH, pool_clock_ms()), NULL);
		} else if (r == 1) {
			hear_frame(seat, frame);
		}
	}
}

/* ---- its process ---- */

/* The attempt is over: by its answer, by the end of its worker, or because it was told to stop. */
static void end_attempt(struct pool_seat *seat, const struct pool_message *message)
{
	cleanup(buf_done) struct buf members = {0};
	struct pool_job *job = seat->job;
	struct pool_job_end end = {.verb = REPORT_FAIL, .lapsed = process_end(seat->process)->lapsed};

	assert(job);
	buf_init(&members, MEMBERS_BYTES_MAX);
	if (message) {
		process_pull(seat->process, STREAM_ERR); /* what it wrote before it answered belongs to it */
		take_words(seat);
	}
	snprintf(seat->last_task, sizeof seat->last_task, "%s", job->task);
	if (message)
		process_work(seat->process, NULL);
	int r = 0;
	if (message)
		r = pool_end_put_answer(seat, message, &end.verb, &members);
	else if (seat->worker.stop_task)
		end.stopped = true;
	else
		r = pool_end_put_crash(seat, &members);
	if (r < 0)
		buf_clear(&members);
	end.members = buf_span(&members);
	seat->job = NULL;
	job->seat = NULL;
	job->events->ended(job->context, &end);
}

static void on_started(void *context, struct process *process)
{
	(void)process;
	pool_seat_note(context);
}

static void on_output(void *context, struct process *process, enum process_stream stream)
{
	(void)process;
	if (stream == STREAM_OUT)
		take_frames(context);
	else
		take_words(context);
}

static void on_closed(void *context, struct process *process, enum process_stream stream)
{
	struct pool_seat *seat = context;

	(void)process;
	if (stream == STREAM_OUT)
		pool_seat_perform(seat,
			pool_worker_hear_end(&seat->worker, frame_is_open(&seat->frames), pool_clock_ms()),
			NULL);
}

static void on_gone(void *context, struct process *process)
{
	struct pool_seat *seat = context;
	const struct process_end *end = process_end(process);
	char how[SEAT_END_BYTES];

	take_frames(seat);
	take_words(seat);
	if (end->lapsed)
		pool_worker_lapse(&seat->worker);
	if (end->spent_before || (end->spent != SPENT_NOTHING && (seat->job || end->spent != SPENT_MEMORY)))
		pool_worker_excuse(&seat->worker);
	/* a machine that is short of something, or cannot make the wall, is no fault of the program */
	bool starting = seat->worker.state == POOL_STARTING;
	const char *barred = starting ? verdict_barred(end) : NULL;
	uint32_t todo = barred || (starting && verdict_is_shortage(end))
		? pool_worker_unspawned(&seat->worker, pool_clock_ms())
		: pool_worker_gone(&seat->worker, frame_is_open(&seat->frames), pool_clock_ms());
	pool_end_describe(seat, how, sizeof how);
	if (barred)
		pool_seat_bar(seat, barred, how);
	else if (todo & POOL_DO_TELL || starting)
		pool_seat_note_trouble(seat, how);
	log_at(todo & POOL_DO_TELL ? LEVEL_WARN : LEVEL_INFO,
		todo & POOL_DO_TELL ? "a worker of a pool crashed" : "a worker of a pool ended",
		log_cstr("poolWorker", seat->name),
		log_cstr("reason",
			end->lapsed                               ? "its lease was over"
				: todo & POOL_DO_TELL || starting ? how
								  : "as asked"));
	if (!seat->worker.said_hello && todo & POOL_DO_TELL)
		pool_jobs_give_up(seat);
	pool_seat_perform(seat, todo & POOL_DO_END, NULL);
	pool_seat_clear_up(seat);
	process_free(process);
	seat->process = NULL;
	pool_seat_perform(seat, todo & ~(uint32_t)POOL_DO_END, NULL);
	pool_jobs_place(seat->pools, seat->executor);
}

const struct process_events pool_seat_events = {
	.started = on_started,
	.output = on_output,
	.closed = on_closed,
	.gone = on_gone,
};

/* ---- doing what the machine says ---- */

static void on_timer(uv_timer_t *timer)
{
	struct pool_seat *seat = timer->data;

	if (!seat->process && seat->leftover[0]) { /* one that litters and dies would be faster than we are */
		uv_timer_start(timer, on_timer, LEFTOVER_MS, 0);
		return;
	}
	if (seat->process) { /* if we were late ourselves, its words may have been waiting for us */
		process_pull(seat->process, STREAM_OUT);
		take_frames(seat);
	}
	pool_seat_perform(seat, pool_worker_look(&seat->worker, pool_clock_ms()), NULL);
}

static void arm(struct pool_seat *seat)
{
	int64_t due_ms = pool_worker_due_ms(&seat->worker), now_ms = pool_clock_ms();

	if (uv_is_closing((uv_handle_t *)&seat->timer))
		return;
	if (due_ms == INT64_MAX)
		uv_timer_stop(&seat->timer);
	else
		uv_timer_start(&seat->timer, on_timer, due_ms > now_ms ? (uint64_t)(due_ms - now_ms) : 0, 0);
}

void pool_seat_perform(struct pool_seat *seat, uint32_t todo, const struct pool_message *message)
{
	struct pools *pools = seat->pools;

	if (todo & POOL_DO_NOTE)
		seat->job->events->progress(seat->job->context, message->percent, message->note);
	if (todo & POOL_DO_CLOSE)
		process_close_stdin(seat->process);
	if (todo & POOL_DO_TERM)
		process_stop(seat->process, (uint32_t)seat->worker.stop_grace_ms);
	if (todo & POOL_DO_KILL)
		process_kill(seat->process);
	if (todo & POOL_DO_END)
		end_attempt(seat, message);
	if (todo & POOL_DO_TELL)
		pool_entry_tell_crash(seat);
	if (todo & POOL_DO_SPAWN)
		pool_seat_spawn(seat);
	if (todo & POOL_DO_ENTER) {
		seat->asks = true;
		pool_entry_ask(pools);
	}
	arm(seat);
	if (todo & POOL_DO_WORK)
		pool_jobs_place(pools, seat->executor);
	pools_tell_changed(pools);
}

void pool_seat_init(struct pools *pools, struct pool_seat *seat, const struct executor *executor, int64_t n)
{
	struct pool_rules rules = pool_rules_default();

	rules.hello_ms = executor->start_ms;
	rules.silence_ms = executor->silence_ms;
	rules.grace_ms = executor->grace_ms;
	*seat = (struct pool_seat){.pools = pools, .executor = executor};
	snprintf(seat->name, sizeof seat->name, "%.130s-%lld", executor->name, (long long)n);
	snprintf(seat->slot, sizeof seat->slot, "%.110s/%s", pools->site.slot, seat->name);
	pool_worker_init(&seat->worker, &rules);
	frame_reader_init(&seat->frames);
	buf_init(&seat->modules, POOL_MODULES_MAX * (POOL_MODULE_BYTES_MAX + 1));
	uv_timer_init(pools->site.loop, &seat->timer);
	uv_timer_init(pools->site.loop, &seat->clear_timer);
	seat->timer.data = seat->clear_timer.data = seat;
}
