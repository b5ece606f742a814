#include "worker/pool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/take.h"
#include "exec/proc.h"
#include "exec/rundir.h"
#include "wire/frame.h"
#include "worker/beat_text.h"
#include "worker/environment.h"
#include "worker/pool_worker.h"
#include "worker/supervisor.h"
#include "worker/walls.h"

CLEANUP_AT(yyjson_doc, yyjson_doc_free);

enum {
	NAME_BYTES = 160,
	SLOT_BYTES = 300,
	TASK_BYTES = 128 + 1,
	LETTER_BYTES = PROCESS_RUN_BYTES_MAX + 16,
	MEMBERS_BYTES_MAX = (1 << 20) - 4096, /* a report is a request, and has a head of its own */
	WORDS_BYTES_MAX = 4 << 10,
	LINE_BYTES_MAX = 300,
	CALL_MS = 10 * 1000,
	SPAWN_ARENA_BYTES = 1 << 20,
};

struct pool_seat {
	struct pools *pools;
	const struct executor *executor;
	char name[NAME_BYTES]; /* airi-1: as the worker is called */
	char slot[SLOT_BYTES]; /* host/airi-1: as the server knows it */
	struct pool_worker worker;
	struct frame_reader frames;
	struct process *process;
	char run[PROCESS_RUN_BYTES_MAX + 1];
	char letter[LETTER_BYTES]; /* the word of its crash, on its way; empty: none */
	struct pool_job *job;
	char last_task[TASK_BYTES]; /* the one that it had before */
	char dropped
		[POOL_REASON_BYTES]; /* why the last of its frames was, since its start or its task; "": none was */
	struct buf modules;          /* each with a NUL */
	uint32_t module_count;
	uint64_t words_from; /* where what it wrote for its task begins */
	int64_t grace_ms;    /* of the stop that was asked for */
	bool asks;           /* to enter: its turn to ask comes */
	bool quarantine_told;
	char barred
		[WALLS_COMPLAINT_BYTES]; /* why it cannot be started as its executor is; "": as far as is known it can */
	const char *barred_code;
	char leftover[PROCESS_RUN_BYTES_MAX + 1]; /* the run whose directory is being removed; empty: none */
	uv_timer_t timer, clear_timer;
};

struct pools {
	struct supervisor *supervisor;
	struct pool_seat *seats;
	uint32_t seat_count;
	struct pool_job *waiting;
	struct line *line; /* for seats that ask to enter */
	struct pool_seat *asking;
	bool retiring;
	int64_t started_ms; /* wall */
};

static void perform(struct pool_seat *seat, uint32_t todo, const struct pool_message *message);
static void place_waiting(struct pools *pools, const struct executor *executor);

/* A machine that was asleep was so with all its workers: their silence is counted by the clock that stands still then. */
static int64_t clock_ms(void)
{
	return (int64_t)(uv_hrtime() / 1000000);
}

static int64_t wall_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- modules ------------------------------------------------------------------------------------------------- */

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

/* The one that the worker would run this as; NULL: none. */
static const char *module_for(const struct pool_seat *seat, const char *module)
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

static bool is_alive(const struct pool_seat *seat)
{
	return seat->worker.state == POOL_IDLE || seat->worker.state == POOL_BUSY ||
		seat->worker.state == POOL_ANSWERED;
}

/* It is not known yet what it can do. */
static bool is_coming(const struct pool_seat *seat)
{
	switch (seat->worker.state) {
	case POOL_ENTERING:
	case POOL_STARTING:
	case POOL_TELLING:
	case POOL_WAITING:
		return true;
	case POOL_LEAVING:
		return !seat->worker.retiring;
	case POOL_OFF:
	case POOL_QUARANTINED:
	case POOL_IDLE:
	case POOL_BUSY:
	case POOL_ANSWERED:
		break;
	}
	return false;
}

/* ---- jobs ------------------------------------------------------------------------------------------------------ */

static void end_job(struct pool_job *job, enum report_verb verb, const struct buf *members)
{
	struct pool_job_end end = {.verb = verb, .members = buf_span(members)};

	job->seat = NULL;
	job->events->ended(job->context, &end);
}

static void refuse_job(struct pool_job *job, const char *code, const char *message)
{
	cleanup(buf_done) struct buf members = {0};
	bool host = strcmp(code, "WORKER_INIT_FAILED") == 0;

	buf_init(&members, MEMBERS_BYTES_MAX);
	if (failure_put(&members, code, message, host ? wall_ms() + HOST_TROUBLE_MS : RETRY_NEVER) < 0)
		buf_clear(&members);
	end_job(job, REPORT_FAIL, &members);
}

static void refuse_quarantined(struct pools *pools, struct pool_job *job)
{
	const char *slot = NULL;
	char message[700];

	for (uint32_t i = 0; i < pools->seat_count && !slot; i++) {
		const struct pool_seat *seat = &pools->seats[i];
		if (seat->executor == job->executor && seat->worker.state == POOL_QUARANTINED)
			slot = seat->slot;
	}
	snprintf(message, sizeof message, "no worker of the pool \"%.100s\" can be started%s%s",
		job->executor->name, slot ? "; mended: stint slot unquarantine " : "", slot ? slot : "");
	refuse_job(job, "WORKER_INIT_FAILED", message);
}

/* Nobody here can do it, now or soon: why. */
static void refuse_homeless(struct pools *pools, struct pool_job *job, bool alive)
{
	char message[700];
	size_t used;

	if (!alive) {
		refuse_quarantined(pools, job);
		return;
	}
	used = (size_t)snprintf(message, sizeof message,
		job->module
			? "no worker of the pool \"%.100s\" has the module \"%.100s\"; they have"
			: "the task names no module, and the pool \"%.100s\" has more than one, or none:%.0s",
		job->executor->name, job->module ? job->module : "");
	for (uint32_t i = 0; i < pools->seat_count; i++) {
		const struct pool_seat *seat = &pools->seats[i];
		const char *at = seat->modules.data;
		if (seat->executor != job->executor || !is_alive(seat))
			continue;
		for (uint32_t k = 0; k < seat->module_count && used < sizeof message - 140; k++) {
			used += (size_t)snprintf(
				message + used, sizeof message - used, "%s %s", k > 0 ? "," : "", at);
			at += strlen(at) + 1;
		}
		break;
	}
	refuse_job(job, "EXECUTOR_NOT_FOUND", message);
}

/* Hand it to the worker. False: it was not taken, and waits for another one. */
static bool assign(struct pool_seat *seat, struct pool_job *job)
{
	cleanup(buf_done) struct buf frame = {0};
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc =
		json_read_to(job->text, JSON_REPLY_DEPTH_MAX, &complaint);
	unsigned char random[16] = {0};
	char id[POOL_UUID_BYTES + 1];
	struct pool_order order = {
		.id = id,
		.worker = seat->name,
		.module = module_for(seat, job->module),
		.level = wall_level_name(seat->executor->wall.level),
		.wall_ms = wall_ms(),
		.deadline_ms = job->deadline_ms,
	};

	if (getrandom(random, sizeof random, 0) < 0)
		memcpy(random, &order.wall_ms, sizeof order.wall_ms); /* it tells messages apart, no more */
	pool_text_uuid(random, id);
	buf_init(&frame, FRAME_HEAD_BYTES + FRAME_BYTES_MAX);
	int r = pool_text_execute(&frame, &order, yyjson_doc_get_root(doc));
	if (r == -EMSGSIZE) {
		refuse_job(job, "EXECUTION_ERROR", "the task is too long for a frame of 1 MiB");
		return true;
	}
	process_budget(seat->process, true); /* a whole one for each task */
	if (r == 0)
		r = process_write(seat->process, buf_span(&frame));
	if (r < 0) {
		perform(seat, pool_worker_break(&seat->worker, POOL_FAULT_DEAF, clock_ms()), NULL);
		return false;
	}
	seat->job = job;
	job->seat = seat;
	seat->dropped[0] = 0;
	seat->words_from = process_output(seat->process, STREAM_ERR)->end;
	pool_worker_assign(&seat->worker, clock_ms());
	log_info("started", log_cstr("task", job->task), log_cstr("executor", job->executor->name),
		log_cstr("poolWorker", seat->name), log_cstr("module", order.module));
	job->events->started(job->context);
	return true;
}

/* True: it has found its seat, or its end. */
static bool place(struct pools *pools, struct pool_job *job)
{
	const struct pool_seat *barred = NULL;
	bool alive = false, hope = false;

	for (uint32_t i = 0; i < pools->seat_count; i++) {
		struct pool_seat *seat = &pools->seats[i];
		if (seat->executor != job->executor)
			continue;
		bool able = is_alive(seat) && module_for(seat, job->module);
		if (able && seat->worker.state == POOL_IDLE && !pools->retiring && assign(seat, job)) {
			perform(seat, 0, NULL);
			return true;
		}
		alive |= is_alive(seat);
		hope |= able || is_coming(seat);
		barred = seat->barred[0] ? seat : barred;
	}
	if (barred && !alive && !pools->retiring) {
		refuse_job(job, barred->barred_code, barred->barred);
		return true;
	}
	if (hope || pools->retiring)
		return false;
	refuse_homeless(pools, job, alive);
	return true;
}

static void unlink_job(struct pools *pools, struct pool_job *job)
{
	struct pool_job **at = &pools->waiting;

	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	job->waits = false;
}

/* In the order in which they came. Whoever is told may come back here: the list is looked at from its beginning again. */
static void place_waiting(struct pools *pools, const struct executor *executor)
{
	struct pool_job *job = pools->waiting;

	while (job) {
		struct pool_job *next = job->next;
		if (job->executor == executor) {
			unlink_job(pools, job);
			if (place(pools, job)) {
				job = pools->waiting;
				continue;
			}
			struct pool_job **at = &pools->waiting;
			while (*at != next)
				at = &(*at)->next;
			job->next = next;
			job->waits = true;
			*at = job;
		}
		job = next;
	}
}

/* ---- its end, in words ----------------------------------------------------------------------------------------- */

static struct span last_line(const struct buf *text)
{
	struct span line = buf_span(text);

	while (line.len > 0 && strchr(" \t\r\n", line.data[line.len - 1]))
		line.len--;
	const char *newline = line.len > 0 ? memrchr(line.data, '\n', line.len) : NULL;
	if (newline)
		line = (struct span){newline + 1, line.len - (size_t)(newline + 1 - line.data)};
	if (line.len > LINE_BYTES_MAX)
		line.len = LINE_BYTES_MAX;
	return line;
}

/* How it ended, and what it said last, if it said that for this task. */
static void describe_end(const struct pool_seat *seat, char *out, size_t room)
{
	const struct process_end *end = process_end(seat->process);
	const struct output *words = process_output(seat->process, STREAM_ERR);
	uint64_t said = words->end - seat->words_from;
	cleanup(buf_done) struct buf text = {0};
	int used = 0;

	if (end->how == ENDED_UNSTARTED) {
		start_fault_text(&end->fault, out, room);
		if (end->fault.stage != STAGE_WALL)
			return;
		used = (int)strlen(out); /* what should have made the wall has words of its own */
	} else if (seat->worker.fault != POOL_FAULT_ENDED && seat->worker.fault != POOL_FAULT_NONE)
		used = snprintf(out, room, "%s%s%s", pool_fault_text(seat->worker.fault),
			seat->dropped[0] ? "; of its frames this one was dropped last: " : "", seat->dropped);
	else if (end->how == ENDED_SIGNAL)
		used = snprintf(out, room, "ended by signal %d (SIG%s)", end->code,
			sigabbrev_np(end->code) ? sigabbrev_np(end->code) : "?");
	else if (end->how == ENDED_EXIT)
		used = snprintf(out, room, "exit status %d without an answer", end->code);
	else
		used = snprintf(out, room, "its shim died, and how it ended nobody knows");
	buf_init(&text, WORDS_BYTES_MAX);
	if ((size_t)used < room && said > 0 &&
		output_tail(words, said < WORDS_BYTES_MAX ? (size_t)said : WORDS_BYTES_MAX, &text) == 0) {
		struct span line = last_line(&text);
		if (line.len > 0)
			snprintf(out + used, room - (size_t)used, ": %.*s", SPAN_ARGS(line));
	}
}

/* Its task used up what an attempt may use. */
static int put_spent(const struct pool_seat *seat, struct buf *members)
{
	struct attempt_end attempt = {.end = process_end(seat->process), .limits = &seat->executor->limits};

	return verdict_put_budget(&attempt, members);
}

static int put_crash(const struct pool_seat *seat, struct buf *members)
{
	const struct process_end *end = process_end(seat->process);
	struct json_object error, details;
	char message[1024];

	if (end->spent != SPENT_NOTHING)
		return put_spent(seat, members);
	describe_end(seat, message, sizeof message);
	int r = buf_put_span(members, SPAN("\"error\":"));
	if (r < 0)
		return r;
	json_begin(&error, members);
	json_member_string(&error, "code", span_of(pool_fault_code(&seat->worker)));
	json_member_string(&error, "message", span_of(message));
	if (json_put_key(&error, "details")) {
		json_begin(&details, members);
		if (end->how == ENDED_EXIT)
			json_member_int(&details, "exitCode", end->code);
		else
			json_member_null(&details, "exitCode");
		if (end->how == ENDED_SIGNAL && sigabbrev_np(end->code)) {
			snprintf(message, sizeof message, "SIG%s", sigabbrev_np(end->code));
			json_member_string(&details, "signal", span_of(message));
		} else {
			json_member_null(&details, "signal");
		}
		json_member_string(&details, "worker", span_of(seat->name));
		json_note(&error, json_end(&details));
	}
	return json_end(&error);
}

static int put_answer(const struct pool_seat *seat, const struct pool_message *message,
	enum report_verb *ret_verb, struct buf *members)
{
	bool good = message->kind == POOL_RESULT && message->success;

	*ret_verb = good ? REPORT_COMPLETE : REPORT_FAIL;
	if (message->kind == POOL_READY)
		return pool_put_unanswered(members, seat->dropped);
	int r = good ? pool_put_result(members, message) : pool_put_failure(members, message);
	if (r == -E2BIG) {
		buf_clear(members);
		*ret_verb = REPORT_FAIL;
		r = failure_put(members, "EXECUTION_ERROR", "its result is too long to be kept", RETRY_NEVER);
	}
	return r;
}

static void take_words(struct pool_seat *seat);

/* The attempt is over: by its answer, by the end of its worker, or because it was told to stop. */
static void end_attempt(struct pool_seat *seat, const struct pool_message *message)
{
	cleanup(buf_done) struct buf members = {0};
	struct pool_job *job = seat->job;
	struct pool_job_end end = {.verb = REPORT_FAIL};

	assert(job);
	buf_init(&members, MEMBERS_BYTES_MAX);
	if (message) {
		process_pull(seat->process, STREAM_ERR); /* what it wrote before it answered belongs to it */
		take_words(seat);
	}
	snprintf(seat->last_task, sizeof seat->last_task, "%s", job->task);
	seat->job = NULL;
	job->seat = NULL;
	if (message)
		process_budget(seat->process, false);
	int r = 0;
	if (message)
		r = put_answer(seat, message, &end.verb, &members);
	else if (seat->worker.stop_task)
		end.stopped = true;
	else
		r = put_crash(seat, &members);
	if (r < 0)
		buf_clear(&members);
	end.members = buf_span(&members);
	job->events->ended(job->context, &end);
}

/* ---- the server: may it run; it crashed ------------------------------------------------------------------------- */

static void ask_next(struct pools *pools);

static int put_target(struct buf *target, const struct pool_seat *seat, const char *verb)
{
	buf_init(target, 4096);
	int r = http_put_path(target, "/api/slots/", span_of(seat->slot), "/");
	return r < 0 ? r : buf_put_span(target, span_of(verb));
}

static void tell_standing(struct pool_seat *seat, enum pool_entry entry)
{
	bool quarantined = entry == POOL_ENTRY_QUARANTINED;

	if (entry == POOL_ENTRY_UNKNOWN || quarantined == seat->quarantine_told)
		return;
	seat->quarantine_told = quarantined;
	if (quarantined)
		log_error("a worker of a pool crashed too often; its slot is in quarantine",
			log_cstr("slot", seat->slot));
	else
		log_info("a slot is out of quarantine", log_cstr("slot", seat->slot));
}

static void on_entered(void *context, int fault, enum http_reach reach, const struct http_answer *answer)
{
	struct pools *pools = context;
	struct pool_seat *seat = take(pools->asking);
	int status = fault == 0 ? http_answer_status(answer) : 0;
	enum pool_entry entry = status >= 200 && status < 300 ? POOL_ENTRY_FREE
		: status == 409                               ? POOL_ENTRY_QUARANTINED
							      : POOL_ENTRY_UNKNOWN;

	(void)reach;
	tell_standing(seat, entry);
	perform(seat, pool_worker_entered(&seat->worker, entry, clock_ms()), NULL);
	place_waiting(pools, seat->executor);
	ask_next(pools);
}

static int ask(struct pools *pools, struct pool_seat *seat)
{
	struct pulse *pulse = pools->supervisor->pulse;
	cleanup(buf_done) struct buf body = {0}, target = {0};
	struct json_object object;

	buf_init(&body, 4096);
	json_begin(&object, &body);
	json_member_string(&object, "workerId", pulse_worker_id(pulse));
	int r = json_end(&object);
	if (r == 0)
		r = put_target(&target, seat, "enter");
	struct span token = pulse_token(pulse);
	struct http_call call = {
		.method = HTTP_METHOD_POST,
		.target = buf_span(&target),
		.body = buf_span(&body),
		.token = token.len > 0 ? token : (struct span){0},
		.may_repeat = true, /* a trial belongs to whom it was given to */
		.timeout_ms = CALL_MS,
	};
	return r < 0 ? r : line_call(pools->line, &call, on_entered, pools);
}

static void ask_next(struct pools *pools)
{
	for (uint32_t i = 0; !pools->asking && i < pools->seat_count; i++) {
		struct pool_seat *seat = &pools->seats[i];
		if (!seat->asks || seat->worker.state != POOL_ENTERING)
			continue;
		seat->asks = false;
		pools->asking = seat;
		if (ask(pools, seat) < 0) {
			pools->asking = NULL;
			perform(seat, pool_worker_entered(&seat->worker, POOL_ENTRY_UNKNOWN, clock_ms()),
				NULL);
		}
	}
}

static void tell_crash(struct pool_seat *seat)
{
	cleanup(buf_done) struct buf target = {0};

	snprintf(seat->letter, sizeof seat->letter, "%s-crash", seat->run);
	int r = put_target(&target, seat, "crash");
	if (r == 0)
		r = outbox_put(seat->pools->supervisor->outbox, seat->letter, YIELDS_TO_NOTHING,
			buf_span(&target), SPAN("{}"), false);
	if (r == -ENOMEM) { /* nobody will answer */
		seat->letter[0] = 0;
		perform(seat, pool_worker_told(&seat->worker, POOL_ENTRY_FREE, clock_ms()), NULL);
	}
}

bool pools_settled(struct pools *pools, const char *name, int status, struct span body)
{
	for (uint32_t i = 0; i < pools->seat_count; i++) {
		struct pool_seat *seat = &pools->seats[i];
		struct json_complaint complaint;
		if (strcmp(seat->letter, name) != 0)
			continue;
		seat->letter[0] = 0;
		cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(body, &complaint);
		yyjson_val *state = yyjson_obj_get(yyjson_doc_get_root(doc), "state");
		bool quarantined = status < 300 && yyjson_equals_str(state, "quarantined");
		enum pool_entry entry = quarantined ? POOL_ENTRY_QUARANTINED : POOL_ENTRY_FREE;
		tell_standing(seat, entry);
		perform(seat, pool_worker_told(&seat->worker, entry, clock_ms()), NULL);
		place_waiting(pools, seat->executor);
		return true;
	}
	return false;
}

/* ---- the process ---------------------------------------------------------------------------------------------- */

/* Lines that belong to no task go into our own log. */
static void log_words(const struct pool_seat *seat, struct span bytes)
{
	static struct log_limit said = {.level = LEVEL_INFO, .msg = "a worker of a pool says", .most = 20};

	while (bytes.len > 0) {
		const char *newline = memchr(bytes.data, '\n', bytes.len);
		size_t len = newline ? (size_t)(newline - bytes.data) : bytes.len;
		struct span line = {bytes.data, len < LINE_BYTES_MAX ? len : LINE_BYTES_MAX};
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

static void hear_frame(struct pool_seat *seat, struct span frame)
{
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;
	struct pool_message message;
	struct pool_complaint complaint;

	if (pool_text_read(frame, &doc, &message, &complaint) < 0) {
		note_dropped(seat, &complaint);
		perform(seat, pool_worker_hear_unknown(&seat->worker, complaint.of_itself, clock_ms()), NULL);
		return;
	}
	if (message.kind == POOL_HELLO && seat->worker.state == POOL_STARTING)
		keep_modules(seat, &message);
	if (message.kind == POOL_SHUTDOWN && seat->worker.state != POOL_LEAVING)
		log_info("a worker of a pool says goodbye", log_cstr("poolWorker", seat->name),
			log_span("reason", message.reason.len > 0 ? message.reason : SPAN("none given")));
	enum pool_subject subject = subject_of(seat, &message);
	if (subject == POOL_OF_ANOTHER) {
		pool_complain_of_task(&complaint, &message);
		note_dropped(seat, &complaint);
	}
	perform(seat, pool_worker_hear(&seat->worker, &message, subject, clock_ms()), &message);
}

/* What came instead of a length, if people can read it: most often it is a line that was meant for a log. */
static void log_noise(const struct pool_seat *seat)
{
	struct span head = {(const char *)seat->frames.head, FRAME_HEAD_BYTES};

	for (size_t i = 0; i < head.len; i++) {
		if ((unsigned char)head.data[i] < 0x20 || (unsigned char)head.data[i] > 0x7e)
			head.len = 0;
	}
	log_error("a worker of a pool broke the protocol", log_cstr("poolWorker", seat->name),
		log_cstr("reason", pool_fault_text(POOL_FAULT_LENGTH)), log_span("instead", head));
}

static void take_frames(struct pool_seat *seat)
{
	struct span bytes, frame;
	size_t used;

	while ((bytes = output_unread(process_output(seat->process, STREAM_OUT), NULL)).len > 0) {
		/* who has used up a budget is being ended: what it says now comes too late */
		bool over = seat->worker.killed || process_end(seat->process)->spent != SPENT_NOTHING;
		int r = over ? 0 : frame_read(&seat->frames, bytes, &used, &frame);
		if (over || r < 0)
			used = bytes.len; /* nothing of it will be read any more */
		process_advance(seat->process, STREAM_OUT, used);
		if (r < 0) {
			log_noise(seat);
			perform(seat, pool_worker_break(&seat->worker, POOL_FAULT_LENGTH, clock_ms()), NULL);
		} else if (r == 1) {
			hear_frame(seat, frame);
		}
	}
}

static int note_process(struct pool_seat *seat)
{
	struct process_identity identity = {0};
	struct nest_attempt nobody = {pulse_worker_id(seat->pools->supervisor->pulse).data, "", ""};

	if (seat->process)
		process_identify(seat->process, &identity);
	else
		process_foretell(seat->pools->supervisor->host, seat->run, &identity);
	int r = nest_note_run(&seat->pools->supervisor->nest, &identity, &nobody);
	if (r < 0)
		log_warn("a process cannot be written down", log_cstr("poolWorker", seat->name),
			log_cstr("reason", strerror(-r)));
	return r;
}

static void on_clear_again(uv_timer_t *timer)
{
	struct pool_seat *seat = timer->data;

	if (nest_forget_run(&seat->pools->supervisor->nest, seat->leftover) == -EAGAIN) {
		uv_timer_start(timer, on_clear_again, 1, 0);
		return;
	}
	seat->leftover[0] = 0;
	supervisor_pools_changed(seat->pools->supervisor);
}

/* Its directory goes, in steps if there is much in it. */
static void clear_up(struct pool_seat *seat)
{
	struct nest *nest = &seat->pools->supervisor->nest;

	while (seat->leftover[0] && nest_forget_run(nest, seat->leftover) == -EAGAIN)
		; /* one that died sooner than what the one before it left could be removed */
	snprintf(seat->leftover, sizeof seat->leftover, "%s", seat->run);
	if (nest_forget_run(nest, seat->leftover) == -EAGAIN)
		uv_timer_start(&seat->clear_timer, on_clear_again, 1, 0);
	else
		seat->leftover[0] = 0;
}

static void on_started(void *context, struct process *process)
{
	(void)process;
	note_process(context);
}

static void on_output(void *context, struct process *process, enum process_stream stream)
{
	(void)process;
	if (stream == STREAM_OUT)
		take_frames(context);
	else
		take_words(context);
}

/* It cannot be had here as its executor is: whoever asks for a worker of the pool is told so. */
static void bar(struct pool_seat *seat, const char *code, const char *why)
{
	snprintf(seat->barred, sizeof seat->barred, "%s", why);
	seat->barred_code = code;
	log_error("a worker of a pool cannot be started as its executor says",
		log_cstr("poolWorker", seat->name), log_cstr("code", code), log_cstr("reason", why));
}

/* Its process could not be started. What its executor asks for will not change by itself; what this machine is short of will. */
static void hear_fault(struct pool_seat *seat, int fault, bool of_workdir)
{
	const struct executor *executor = seat->executor;
	bool path = fault == -ENOENT || fault == -EACCES || fault == -ENOTDIR || fault == -ELOOP;
	char why[WALLS_COMPLAINT_BYTES];

	if (path && of_workdir && executor->working_dir) {
		snprintf(why, sizeof why, "the workingDir of its executor, \"%.300s\", cannot be opened: %s",
			executor->working_dir, strerror(-fault));
		bar(seat, "BAD_WORKDIR", why);
	} else if (fault == -EXDEV) {
		bar(seat, executor->working_dir ? "BAD_WORKDIR" : "ISOLATION_UNAVAILABLE",
			"its work dir, or another path that it may use, contains the state directory or lies in it");
	} else if (fault == -EOPNOTSUPP) {
		bar(seat, "ISOLATION_UNAVAILABLE",
			"a limit of its executor cannot be enforced here any more");
	} else if (path && executor->wall.level != WALL_PROCESS) {
		snprintf(why, sizeof why, "level \"%s\": a path that it may use cannot be opened: %s",
			wall_level_name(executor->wall.level), strerror(-fault));
		bar(seat, "ISOLATION_UNAVAILABLE", why);
	} else {
		log_error("a worker of a pool cannot be started", log_cstr("poolWorker", seat->name),
			log_cstr("reason", strerror(-fault)));
	}
}

/* One that never came to life: those who wait for it are told, unless others live. */
static void give_up_waiting(struct pool_seat *seat)
{
	struct pools *pools = seat->pools;
	char message[1200], how[1024];

	for (uint32_t i = 0; i < pools->seat_count; i++) {
		if (pools->seats[i].executor == seat->executor && is_alive(&pools->seats[i]))
			return;
	}
	describe_end(seat, how, sizeof how);
	snprintf(message, sizeof message, "a worker of the pool \"%.100s\" did not start: %s",
		seat->executor->name, how);
	for (struct pool_job *job = pools->waiting; job;) {
		struct pool_job *next = job->next;
		if (job->executor == seat->executor) {
			unlink_job(pools, job);
			refuse_job(job, "WORKER_INIT_FAILED", message);
			next = pools->waiting;
		}
		job = next;
	}
}

static void on_gone(void *context, struct process *process)
{
	struct pool_seat *seat = context;
	char how[1024];

	take_frames(seat);
	take_words(seat);
	if (frame_is_open(&seat->frames) && !seat->worker.planned &&
		(seat->worker.fault == POOL_FAULT_NONE || seat->worker.fault == POOL_FAULT_SILENT))
		seat->worker.fault = POOL_FAULT_HALF;
	const struct process_end *end = process_end(process);
	if (end->spent_before || (end->spent != SPENT_NOTHING && (seat->job || end->spent != SPENT_MEMORY)))
		seat->worker.planned = true; /* it was ended for its task, and did not crash */
	describe_end(seat, how, sizeof how);
	/* a machine that is short of something, or cannot make the wall, is no fault of the program */
	bool starting = seat->worker.state == POOL_STARTING;
	bool barred = starting && verdict_is_barred(end);
	if (barred)
		bar(seat, "ISOLATION_UNAVAILABLE", how);
	uint32_t todo = barred || (starting && verdict_is_shortage(end))
		? pool_worker_unspawned(&seat->worker, clock_ms())
		: pool_worker_gone(&seat->worker, clock_ms());
	log_at(todo & POOL_DO_TELL ? LEVEL_WARN : LEVEL_INFO,
		todo & POOL_DO_TELL ? "a worker of a pool crashed" : "a worker of a pool ended",
		log_cstr("poolWorker", seat->name),
		log_cstr("reason", todo & POOL_DO_TELL || starting ? how : "as asked"));
	if (!seat->worker.said_hello && todo & POOL_DO_TELL)
		give_up_waiting(seat);
	perform(seat, todo & POOL_DO_END, NULL);
	clear_up(seat);
	process_free(process);
	seat->process = NULL;
	perform(seat, todo & ~(uint32_t)POOL_DO_END, NULL);
	place_waiting(seat->pools, seat->executor);
}

static const struct process_events events = {
	.started = on_started,
	.output = on_output,
	.gone = on_gone,
};

static int open_workdir(const struct pool_seat *seat, int run_fd, int *ret_fd)
{
	const char *dir = seat->executor->working_dir;

	if (!dir && mkdirat(run_fd, "work", 0700) < 0)
		return -errno;
	*ret_fd = openat(run_fd, dir ? dir : "work", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

static const char *join(struct arena *arena, const char *a, const char *b)
{
	char text[4096 + 256];
	struct span kept;

	snprintf(text, sizeof text, "%s%s", a, b);
	return arena_copy(arena, span_of(text), &kept) < 0 ? NULL : kept.data;
}

static int fill_grants(
	const struct executor *executor, const char *run_path, struct arena *arena, struct confine *confine)
{
	struct grant *grants = arena_alloc(arena, GRANTS_MAX * sizeof *grants);
	size_t count = 0;

	_Static_assert(3 + 2 * PATHS_MAX <= GRANTS_MAX, "those of an executor fit beside its own");
	if (!grants)
		return -ENOMEM;
	grants[count++] = (struct grant){run_path, -1, GRANT_READ, false};
	grants[count++] = (struct grant){join(arena, run_path, "/home"), -1, GRANT_WRITE, false};
	grants[count++] = (struct grant){join(arena, run_path, "/tmp"), -1, GRANT_WRITE, false};
	for (size_t i = 0; executor->read && executor->read[i]; i++)
		grants[count++] = (struct grant){executor->read[i], -1, GRANT_READ, false};
	for (size_t i = 0; executor->write && executor->write[i]; i++)
		grants[count++] = (struct grant){executor->write[i], -1, GRANT_WRITE, false};
	confine->grants = grants;
	confine->grant_count = count;
	return grants[1].path && grants[2].path ? 0 : -ENOMEM;
}

static int start_process(struct pool_seat *seat, int workdir_fd, struct arena *arena)
{
	struct supervisor *supervisor = seat->pools->supervisor;
	const struct executor *executor = seat->executor;
	struct process_spec spec = process_spec_default();
	const char *run_path = join(arena, supervisor->nest.home, "/runs/");

	run_path = run_path ? join(arena, run_path, seat->run) : NULL;
	if (!run_path)
		return -ENOMEM;
	struct environment about = {
		.worker = pulse_worker_id(supervisor->pulse).data,
		.pool_worker = seat->name,
		.workspace = executor->working_dir ? executor->working_dir : join(arena, run_path, "/work"),
		.home = join(arena, run_path, "/home"),
		.tmp = join(arena, run_path, "/tmp"),
	};
	struct wall wall = executor->wall;
	walls_settle(&wall, run_path, NULL, false);
	if (walls_rename(arena, &wall, &about) < 0)
		return -ENOMEM;
	spec.wall = &wall;
	spec.run = seat->run;
	spec.argv = executor->argv;
	spec.env = environment_make(arena, &about, executor);
	spec.env_allow = environment_allowed(arena, executor);
	spec.workdir_fd = workdir_fd;
	spec.stdin_from = STDIN_PIPE;
	spec.overflow[STREAM_OUT] = OVERFLOW_HOLDS;
	spec.confine.limits = executor->limits;
	spec.budget_later = true; /* what it needs to begin with is nobody's */
	spec.confine.keep_out = supervisor->nest.home;
	spec.confine.workdir_read_only = executor->working_dir != NULL;
	spec.events = &events;
	spec.context = seat;
	int r = fill_grants(executor, run_path, arena, &spec.confine);
	if (r < 0 || !spec.env || !spec.env_allow)
		return -ENOMEM;
	return process_start(supervisor->host, &spec, &seat->process);
}

static void spawn(struct pool_seat *seat)
{
	struct supervisor *supervisor = seat->pools->supervisor;
	char complaint[WALLS_COMPLAINT_BYTES];
	cleanup(close_at) int run_fd = -1, workdir_fd = -1;
	struct arena arena;
	struct wall wall;

	if (walls_choose(seat->executor, NULL, &wall, complaint) < 0) {
		bar(seat, "ISOLATION_UNAVAILABLE", complaint);
		perform(seat, pool_worker_unspawned(&seat->worker, clock_ms()), NULL);
		return;
	}
	snprintf(seat->run, sizeof seat->run, "%s-%llu", supervisor->instance,
		(unsigned long long)++supervisor->run_number);
	frame_reader_done(&seat->frames);
	frame_reader_init(&seat->frames);
	buf_clear(&seat->modules);
	seat->module_count = 0;
	seat->last_task[0] = seat->dropped[0] = 0;
	seat->words_from = 0;
	arena_init(&arena, SPAWN_ARENA_BYTES);
	int r = note_process(seat);
	if (r == 0)
		r = rundir_make(supervisor->nest.runs_fd, seat->run, &run_fd);
	if (r == 0)
		r = open_workdir(seat, run_fd, &workdir_fd);
	if (r == 0)
		r = start_process(seat, workdir_fd, &arena);
	arena_done(&arena);
	if (r < 0) {
		hear_fault(seat, r, run_fd >= 0 && workdir_fd < 0);
		clear_up(seat);
		perform(seat, pool_worker_unspawned(&seat->worker, clock_ms()), NULL);
		return;
	}
	note_process(seat);
}

/* ---- doing what the machine says ---------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer)
{
	struct pool_seat *seat = timer->data;

	if (seat->process) { /* if we were late ourselves, its words may have been waiting for us */
		process_pull(seat->process, STREAM_OUT);
		take_frames(seat);
	}
	perform(seat, pool_worker_look(&seat->worker, clock_ms()), NULL);
}

static void arm(struct pool_seat *seat)
{
	int64_t due_ms = pool_worker_due_ms(&seat->worker), now_ms = clock_ms();

	if (uv_is_closing((uv_handle_t *)&seat->timer))
		return;
	if (due_ms == INT64_MAX)
		uv_timer_stop(&seat->timer);
	else
		uv_timer_start(&seat->timer, on_timer, due_ms > now_ms ? (uint64_t)(due_ms - now_ms) : 0, 0);
}

static void perform(struct pool_seat *seat, uint32_t todo, const struct pool_message *message)
{
	struct pools *pools = seat->pools;

	if (todo & POOL_DO_NOTE)
		seat->job->events->progress(seat->job->context, message->percent, message->note);
	if (todo & POOL_DO_CLOSE)
		process_close_stdin(seat->process);
	if (todo & POOL_DO_TERM)
		process_stop(seat->process, (uint32_t)seat->grace_ms);
	if (todo & POOL_DO_KILL)
		process_kill(seat->process);
	if (todo & POOL_DO_END)
		end_attempt(seat, message);
	if (todo & POOL_DO_TELL)
		tell_crash(seat);
	if (todo & POOL_DO_SPAWN)
		spawn(seat);
	if (todo & POOL_DO_ENTER) {
		seat->asks = true;
		ask_next(pools);
	}
	arm(seat);
	if (todo & POOL_DO_WORK)
		place_waiting(pools, seat->executor);
	supervisor_pools_changed(pools->supervisor);
}

/* ---- for the supervisor -------------------------------------------------------------------------------------------- */

static void init_seat(struct pools *pools, struct pool_seat *seat, const struct executor *executor, int64_t n)
{
	struct supervisor *supervisor = pools->supervisor;
	const struct supervisor_options *options = supervisor->options;
	struct pool_rules rules = pool_rules_default();

	rules.hello_ms = executor->start_ms;
	rules.silence_ms = executor->silence_ms;
	rules.grace_ms = executor->grace_ms;
	*seat = (struct pool_seat){.pools = pools, .executor = executor, .grace_ms = executor->grace_ms};
	snprintf(seat->name, sizeof seat->name, "%.130s-%lld", executor->name, (long long)n);
	snprintf(seat->slot, sizeof seat->slot, "%.110s/%s",
		options->slot           ? options->slot
			: options->once ? options->once->agent_id
					: options->name,
		seat->name);
	pool_worker_init(&seat->worker, &rules);
	frame_reader_init(&seat->frames);
	buf_init(&seat->modules, POOL_MODULES_MAX * (POOL_MODULE_BYTES_MAX + 1));
	uv_timer_init(supervisor->loop, &seat->timer);
	uv_timer_init(supervisor->loop, &seat->clear_timer);
	seat->timer.data = seat->clear_timer.data = seat;
}

struct pools *pools_new(struct supervisor *supervisor)
{
	struct http_answer_limits limits = {.head_bytes_max = 64 << 10, .body_bytes_max = 1 << 20};
	const struct settings *settings = supervisor->settings;
	struct pools *pools = calloc(1, sizeof *pools);
	uint32_t count = 0;

	for (uint32_t i = 0; i < settings->executor_count; i++)
		count += (uint32_t)settings->executors[i].size;
	if (pools) {
		pools->supervisor = supervisor;
		pools->started_ms = wall_ms();
		pools->seats = calloc(count + 1, sizeof *pools->seats);
		pools->line = line_new(supervisor->loop, &supervisor->options->address, &limits);
	}
	if (!pools || !pools->seats || !pools->line) {
		if (pools) {
			line_free(pools->line);
			free(pools->seats);
		}
		free(pools);
		return NULL;
	}
	for (uint32_t i = 0; i < settings->executor_count; i++) {
		for (int64_t n = 1; n <= settings->executors[i].size; n++)
			init_seat(pools, &pools->seats[pools->seat_count++], &settings->executors[i], n);
	}
	return pools;
}

void pools_close(struct pools *pools)
{
	line_free(take(pools->line));
	for (uint32_t i = 0; i < pools->seat_count; i++) {
		uv_close((uv_handle_t *)&pools->seats[i].timer, NULL);
		uv_close((uv_handle_t *)&pools->seats[i].clear_timer, NULL);
	}
}

void pools_free(struct pools *pools)
{
	if (!pools)
		return;
	for (uint32_t i = 0; i < pools->seat_count; i++) {
		frame_reader_done(&pools->seats[i].frames);
		buf_done(&pools->seats[i].modules);
	}
	free(pools->seats);
	free(pools);
}

void pools_begin(struct pools *pools)
{
	for (uint32_t i = 0; i < pools->seat_count && !pools->retiring; i++)
		perform(&pools->seats[i], pool_worker_begin(&pools->seats[i].worker, clock_ms()), NULL);
}

uint32_t pools_room(const struct pools *pools, const struct executor *executor)
{
	uint32_t idle = 0, waiting = 0;
	bool alive = false, barred = false;

	for (uint32_t i = 0; i < pools->seat_count; i++) {
		const struct pool_seat *seat = &pools->seats[i];
		if (seat->executor != executor)
			continue;
		idle += seat->worker.state == POOL_IDLE;
		alive |= is_alive(seat);
		barred |= seat->barred[0] != 0;
	}
	if (barred && !alive)
		idle = 1; /* a task that comes is told why */
	for (const struct pool_job *job = pools->waiting; job; job = job->next)
		waiting += job->executor == executor;
	return idle > waiting && !pools->retiring ? idle - waiting : 0;
}

void pools_submit(struct pools *pools, struct pool_job *job)
{
	struct pool_job **end = &pools->waiting;

	job->seat = NULL;
	job->next = NULL;
	job->waits = false;
	if (job->module && !pool_is_module(span_of(job->module))) {
		refuse_job(job, "EXECUTOR_NOT_FOUND", "the module must be a name: letters, digits, - and _");
		return;
	}
	for (uint32_t i = 0; pools->supervisor->once && i < pools->seat_count; i++) {
		if (pools->seats[i].executor != job->executor)
			continue;
		perform(&pools->seats[i], pool_worker_begin(&pools->seats[i].worker, clock_ms()), NULL);
		break; /* a pass has one task, and starts a worker when it has it */
	}
	if (place(pools, job))
		return;
	while (*end)
		end = &(*end)->next;
	*end = job;
	job->waits = true;
	supervisor_pools_changed(pools->supervisor);
}

bool pools_withdraw(struct pools *pools, struct pool_job *job, int64_t grace_ms)
{
	struct pool_seat *seat = job->seat;

	if (!seat) {
		if (job->waits)
			unlink_job(pools, job);
		return false;
	}
	seat->grace_ms = grace_ms < seat->executor->grace_ms ? grace_ms : seat->executor->grace_ms;
	seat->worker.rules.grace_ms = seat->grace_ms;
	uint32_t todo = pool_worker_stop_task(&seat->worker, clock_ms());
	perform(seat, todo, NULL);
	if (todo == 0) /* it is going already: perhaps not fast enough */
		process_stop(seat->process, (uint32_t)seat->grace_ms);
	seat->worker.rules.grace_ms = seat->grace_ms = seat->executor->grace_ms;
	return true;
}

void pools_retire(struct pools *pools)
{
	if (pools->retiring)
		return;
	pools->retiring = true;
	for (uint32_t i = 0; i < pools->seat_count; i++)
		perform(&pools->seats[i], pool_worker_retire(&pools->seats[i].worker, clock_ms()), NULL);
}

bool pools_are_gone(const struct pools *pools)
{
	for (uint32_t i = 0; i < pools->seat_count; i++) {
		if (pools->seats[i].worker.state != POOL_OFF || pools->seats[i].leftover[0])
			return false;
	}
	return true;
}

/* ---- how it stands -------------------------------------------------------------------------------------------------- */

struct tally {
	int64_t total, active, idle, busy, completed, failed, crashes, dropped, starts, up_ms;
};

static void count_seat(struct tally *tally, const struct pool_worker *worker)
{
	tally->total++;
	tally->active += pool_worker_has_process(worker);
	tally->idle += worker->state == POOL_IDLE;
	tally->busy += worker->state == POOL_BUSY || worker->state == POOL_ANSWERED;
	tally->completed += (int64_t)worker->completed;
	tally->failed += (int64_t)worker->failed;
	tally->crashes += (int64_t)worker->crashes;
	tally->dropped += (int64_t)(worker->unknown + worker->strays);
	tally->starts += (int64_t)worker->starts;
	tally->up_ms += worker->up_ms;
	if (pool_worker_has_process(worker))
		tally->up_ms += clock_ms() - worker->spawned_ms;
}

static void put_tally(struct json_object *object, const struct tally *tally, int64_t started_ms)
{
	json_member_int(object, "totalWorkers", tally->total);
	json_member_int(object, "activeWorkers", tally->active);
	json_member_int(object, "idleWorkers", tally->idle);
	json_member_int(object, "busyWorkers", tally->busy);
	json_member_int(object, "tasksCompleted", tally->completed);
	json_member_int(object, "tasksFailed", tally->failed);
	json_member_int(object, "workerCrashes", tally->crashes);
	json_member_int(object, "framesDropped", tally->dropped);
	json_member_int(
		object, "averageWorkerUptimeMs", tally->starts > 0 ? tally->up_ms / tally->starts : 0);
	json_member_int(object, "startedAt", started_ms);
}

static int put_seats(struct buf *out, const struct pools *pools, const struct executor *executor)
{
	int r = buf_put_byte(out, '[');
	bool any = false;

	for (uint32_t i = 0; r == 0 && i < pools->seat_count; i++) {
		const struct pool_seat *seat = &pools->seats[i];
		struct json_object object;
		if (seat->executor != executor)
			continue;
		if (any)
			r = buf_put_byte(out, ',');
		any = true;
		json_begin(&object, out);
		json_member_string(&object, "id", span_of(seat->name));
		json_member_string(&object, "slot", span_of(seat->slot));
		json_member_string(&object, "state", span_of(pool_state_name(&seat->worker)));
		if (seat->job)
			json_member_string(&object, "task", span_of(seat->job->task));
		r = json_end(&object);
	}
	return r < 0 ? r : buf_put_byte(out, ']');
}

int pools_put(struct buf *out, const struct pools *pools)
{
	const struct settings *settings = pools->supervisor->settings;
	struct json_object all, one;

	json_begin(&all, out);
	for (uint32_t i = 0; i < settings->executor_count; i++) {
		const struct executor *executor = &settings->executors[i];
		struct tally tally = {0};
		if (executor->size == 0 || !json_put_key(&all, executor->name))
			continue;
		for (uint32_t k = 0; k < pools->seat_count; k++) {
			if (pools->seats[k].executor == executor)
				count_seat(&tally, &pools->seats[k].worker);
		}
		json_begin(&one, out);
		put_tally(&one, &tally, pools->started_ms);
		if (json_put_key(&one, "workers"))
			json_note(&one, put_seats(out, pools, executor));
		json_note(&all, json_end(&one));
	}
	return json_end(&all);
}
