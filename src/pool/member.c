/*
 * One member: the machine of child.h over a process. What the process writes is read here, what the machine says is done here.
 */
#include "pool/member.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/take.h"

enum {
	LEFTOVER_MS = 10,     /* until it is looked again whether what the one before it left is gone */
	NOISE_BYTES_MAX = 60, /* of what came in place of a frame, where it is quoted */
};

int64_t pool_clock_ms(void)
{
	return (int64_t)(uv_hrtime() / 1000000);
}

/* ---- what it can do, and when ---- */

static void keep_modules(struct pool_member *member, const struct pool_message *message)
{
	member->barred[0] = 0;
	buf_clear(&member->modules);
	member->module_count = 0;
	for (uint32_t i = 0; i < message->module_count; i++) {
		if (buf_put_span(&member->modules, message->modules[i]) < 0 ||
			buf_put_byte(&member->modules, 0) < 0)
			return;
		member->module_count++;
	}
}

const char *pool_member_module(const struct pool_member *member, const char *module)
{
	const char *at = member->modules.data;

	if (!module)
		return member->module_count == 1 ? at : NULL;
	for (uint32_t i = 0; i < member->module_count; i++, at += strlen(at) + 1) {
		if (strcmp(at, module) == 0)
			return at;
	}
	return NULL;
}

void pool_member_note_trouble(struct pool_member *member, const char *why)
{
	snprintf(member->trouble, sizeof member->trouble, "%.*s", (int)sizeof member->trouble - 1, why);
	member->trouble_ms = clock_wall_ms();
}

/* ---- what it says ---- */

/* Lines that belong to no task go into our own log. */
static void log_words(const struct pool_member *member, struct span bytes)
{
	static struct log_limit said = {.level = LEVEL_INFO, .msg = "a worker of a pool says", .most = 20};

	while (bytes.len > 0) {
		const char *newline = memchr(bytes.data, '\n', bytes.len);
		size_t len = newline ? (size_t)(newline - bytes.data) : bytes.len;
		struct span line = {bytes.data, len < MEMBER_LINE_BYTES_MAX ? len : MEMBER_LINE_BYTES_MAX};
		if (line.len > 0)
			log_limited(&said, log_cstr("poolWorker", member->name), log_span("text", line));
		bytes.data += newline ? len + 1 : len;
		bytes.len -= newline ? len + 1 : len;
	}
}

static void take_words(struct pool_member *member)
{
	for (;;) {
		struct span bytes = output_unread(process_output(member->process, STREAM_ERR), NULL);
		if (bytes.len == 0)
			return;
		if (member->job)
			member->job->events->wrote(member->job->context, bytes);
		else
			log_words(member, bytes);
		process_advance(member->process, STREAM_ERR, bytes.len);
	}
}

static void note_dropped(struct pool_member *member, const struct pool_complaint *complaint)
{
	static struct log_limit dropped = {
		.level = LEVEL_WARN, .msg = "a frame of a worker of a pool is dropped", .most = 5};

	log_limited(&dropped, log_cstr("poolWorker", member->name), log_cstr("reason", complaint->reason));
	memcpy(member->dropped, complaint->reason, sizeof member->dropped);
}

static enum pool_subject subject_of(const struct pool_member *member, const struct pool_message *message)
{
	if (message->kind < POOL_PROGRESS)
		return POOL_OF_NONE;
	if (member->job && span_is(message->task, member->job->task))
		return POOL_OF_ITS_TASK;
	return span_is(message->task, member->last_task) ? POOL_OF_THE_LAST : POOL_OF_ANOTHER;
}

/* If it did answer, in its own mind, this is all that anybody will find before the task counts as stalled. */
static void log_crossed(const struct pool_member *member)
{
	static struct log_limit crossed = {.level = LEVEL_WARN,
		.msg = "a worker of a pool is ready although it has a task; it may have said so before it read it",
		.most = 5};

	log_limited(&crossed, log_cstr("poolWorker", member->name), log_cstr("task", member->job->task));
}

static void note_goodbye(struct pool_member *member, struct span reason)
{
	if (reason.len > 0)
		snprintf(member->quote, sizeof member->quote, "its reason: %.*s", SPAN_ARGS(reason));
	log_info("a worker of a pool says goodbye", log_cstr("poolWorker", member->name),
		log_span("reason", reason.len > 0 ? reason : SPAN("none given")));
}

static void hear_frame(struct pool_member *member, struct span frame)
{
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;
	struct pool_message message;
	struct pool_complaint complaint;

	if (pool_text_read(frame, &doc, &message, &complaint) < 0) {
		note_dropped(member, &complaint);
		pool_member_perform(
			member, pool_child_hear_unknown(&member->worker, complaint.of_itself), NULL);
		return;
	}
	if (message.kind == POOL_HELLO && member->worker.state == POOL_STARTING)
		keep_modules(member, &message);
	if (message.kind == POOL_SHUTDOWN && member->worker.state != POOL_LEAVING)
		note_goodbye(member, message.reason);
	enum pool_subject subject = subject_of(member, &message);
	if (subject == POOL_OF_ANOTHER) {
		pool_complain_of_task(&complaint, &message);
		note_dropped(member, &complaint);
	}
	uint32_t todo = pool_child_hear(&member->worker, &message, subject, pool_clock_ms());
	if (message.kind == POOL_READY && member->worker.state == POOL_BUSY)
		log_crossed(member);
	pool_member_perform(member, todo, &message);
}

static size_t readable_len(const char *text, size_t most)
{
	size_t len = 0;

	while (len < most && text[len] >= 0x20 && text[len] < 0x7f)
		len++;
	return len;
}

/* What came in place of a frame: most often it is a line that was meant for a log; or else the length in another order. */
static void note_noise(struct pool_member *member, struct span rest)
{
	const char *head = (const char *)member->frames.head;
	size_t more = readable_len(rest.data, rest.len < NOISE_BYTES_MAX ? rest.len : NOISE_BYTES_MAX);

	if (readable_len(head, FRAME_HEAD_BYTES) == FRAME_HEAD_BYTES)
		snprintf(member->quote, sizeof member->quote, "it wrote \"%.*s%.*s\"", FRAME_HEAD_BYTES, head,
			(int)more, rest.data);
	else
		snprintf(member->quote, sizeof member->quote, "it announced %u bytes",
			frame_length(&member->frames));
}

static void take_frames(struct pool_member *member)
{
	struct span bytes, frame;
	size_t used;

	while ((bytes = output_unread(process_output(member->process, STREAM_OUT), NULL)).len > 0) {
		/* who has used up a budget is being ended: what it says now comes too late */
		bool over = member->worker.killed || process_end(member->process)->spent != SPENT_NOTHING;
		int r = over ? 0 : frame_read(&member->frames, bytes, &used, &frame);
		if (r < 0)
			note_noise(member, (struct span){bytes.data + used, bytes.len - used});
		if (over || r < 0)
			used = bytes.len; /* nothing of it will be read any more */
		process_advance(member->process, STREAM_OUT, used);
		if (r < 0) {
			pool_member_perform(
				member, pool_child_break(&member->worker, POOL_FAULT_LENGTH), NULL);
		} else if (r == 1) {
			hear_frame(member, frame);
		}
	}
}

/* ---- its process ---- */

/* The attempt is over: by its answer, by the end of its worker, or because it was told to stop. */
static void end_attempt(struct pool_member *member, const struct pool_message *message)
{
	cleanup(buf_done) struct buf report = {0};
	struct pool_job *job = member->job;
	struct pool_job_end end = {.verb = REPORT_FAIL, .lapsed = process_end(member->process)->lapsed};

	assert(job);
	assert(job->member == member);
	assert(!job->waits);
	buf_init(&report, REPORT_BYTES_MAX);
	if (message) {
		process_pull(
			member->process, STREAM_ERR); /* what it wrote before it answered belongs to it */
		take_words(member);
	}
	snprintf(member->last_task, sizeof member->last_task, "%s", job->task);
	if (message)
		process_work(member->process, NULL);
	int r = 0;
	if (message)
		r = pool_end_put_answer(member, message, &end.verb, &report);
	else if (member->worker.stop_task)
		end.stopped = true;
	else
		r = pool_end_put_crash(member, &report);
	if (r < 0)
		buf_clear(&report);
	end.report = buf_span(&report);
	member->job = NULL;
	job->member = NULL;
	job->events->ended(job->context, &end);
}

static void on_started(void *context, struct process *process)
{
	(void)process;
	pool_member_note(context);
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
	struct pool_member *member = context;

	(void)process;
	if (stream == STREAM_OUT)
		pool_member_perform(member,
			pool_child_hear_end(&member->worker, frame_is_open(&member->frames), pool_clock_ms()),
			NULL);
}

static void on_gone(void *context, struct process *process)
{
	struct pool_member *member = context;
	const struct process_end *end = process_end(process);
	char how[MEMBER_END_BYTES];

	assert(member->process == process);
	take_frames(member);
	take_words(member);
	if (end->lapsed)
		pool_child_lapse(&member->worker);
	if (end->spent_before || (end->spent != SPENT_NOTHING && (member->job || end->spent != SPENT_MEMORY)))
		pool_child_excuse(&member->worker);
	/* a machine that is short of something, or cannot make the wall, is no fault of the program */
	bool starting = member->worker.state == POOL_STARTING;
	const char *barred = starting ? verdict_barred(end) : NULL;
	uint32_t todo = barred || (starting && verdict_is_shortage(end))
		? pool_child_unspawned(&member->worker, pool_clock_ms())
		: pool_child_gone(&member->worker, frame_is_open(&member->frames), pool_clock_ms());
	pool_end_describe(member, how, sizeof how);
	if (barred)
		pool_member_bar(member, barred, how);
	else if (todo & POOL_DO_TELL || starting)
		pool_member_note_trouble(member, how);
	log_at(todo & POOL_DO_TELL ? LEVEL_WARN : LEVEL_INFO,
		todo & POOL_DO_TELL ? "a worker of a pool crashed" : "a worker of a pool ended",
		log_cstr("poolWorker", member->name),
		log_cstr("reason",
			end->lapsed                               ? "its lease was over"
				: todo & POOL_DO_TELL || starting ? how
								  : "as asked"));
	if (!member->worker.said_hello && todo & POOL_DO_TELL)
		pool_jobs_give_up(member);
	pool_member_perform(member, todo & POOL_DO_END, NULL);
	assert(!member->job); /* no attempt outlives its worker */
	pool_member_clear_up(member);
	process_free(process);
	member->process = NULL;
	pool_member_perform(member, todo & ~(uint32_t)POOL_DO_END, NULL);
	pool_jobs_place(member->pools, member->executor);
}

const struct process_events pool_member_events = {
	.started = on_started,
	.output = on_output,
	.closed = on_closed,
	.gone = on_gone,
};

/* ---- doing what the machine says ---- */

static void on_timer(uv_timer_t *timer)
{
	struct pool_member *member = timer->data;

	if (!member->process &&
		member->leftover[0]) { /* one that litters and dies would be faster than we are */
		uv_timer_start(timer, on_timer, LEFTOVER_MS, 0);
		return;
	}
	if (member->process) { /* if we were late ourselves, its words may have been waiting for us */
		process_pull(member->process, STREAM_OUT);
		take_frames(member);
	}
	pool_member_perform(member, pool_child_look(&member->worker, pool_clock_ms()), NULL);
}

static void arm(struct pool_member *member)
{
	int64_t due_ms = pool_child_due_ms(&member->worker), now_ms = pool_clock_ms();

	if (uv_is_closing((uv_handle_t *)&member->timer))
		return;
	if (due_ms == INT64_MAX)
		uv_timer_stop(&member->timer);
	else
		uv_timer_start(
			&member->timer, on_timer, due_ms > now_ms ? (uint64_t)(due_ms - now_ms) : 0, 0);
}

void pool_member_perform(struct pool_member *member, uint32_t todo, const struct pool_message *message)
{
	struct pools *pools = member->pools;

	assert(!(todo & POOL_DO_NOTE) || message);
	assert(!(todo & (POOL_DO_NOTE | POOL_DO_END)) || member->job); /* an attempt ends once */
	assert(!(todo & (POOL_DO_CLOSE | POOL_DO_TERM | POOL_DO_KILL)) || member->process);
	assert(!(todo & (POOL_DO_SPAWN | POOL_DO_ENTER | POOL_DO_TELL)) || !member->process);
	if (todo & POOL_DO_NOTE)
		member->job->events->progress(member->job->context, message->percent, message->note);
	if (todo & POOL_DO_CLOSE)
		process_close_stdin(member->process);
	if (todo & POOL_DO_TERM)
		process_stop(member->process, (uint32_t)member->worker.stop_grace_ms);
	if (todo & POOL_DO_KILL)
		process_kill(member->process);
	if (todo & POOL_DO_END)
		end_attempt(member, message);
	if (todo & POOL_DO_TELL)
		pool_entry_tell_crash(member);
	if (todo & POOL_DO_SPAWN)
		pool_member_spawn(member);
	if (todo & POOL_DO_ENTER) {
		member->asks = true;
		pool_entry_ask(pools);
	}
	arm(member);
	if (todo & POOL_DO_WORK)
		pool_jobs_place(pools, member->executor);
	pools_tell_changed(pools);
}

void pool_member_init(
	struct pools *pools, struct pool_member *member, const struct executor *executor, int64_t n)
{
	struct pool_rules rules = pool_rules_default();

	rules.hello_ms = executor->start_ms;
	rules.silence_ms = executor->silence_ms;
	rules.grace_ms = executor->grace_ms;
	*member = (struct pool_member){.pools = pools, .executor = executor};
	snprintf(member->name, sizeof member->name, "%.130s-%lld", executor->name, (long long)n);
	snprintf(member->slot, sizeof member->slot, "%.110s/%s", pools->site.slot, member->name);
	pool_child_init(&member->worker, &rules);
	frame_reader_init(&member->frames);
	buf_init(&member->modules, POOL_MODULES_MAX * (POOL_MODULE_BYTES_MAX + 1));
	uv_timer_init(pools->site.loop, &member->timer);
	uv_timer_init(pools->site.loop, &member->clear_timer);
	member->timer.data = member->clear_timer.data = member;
}
