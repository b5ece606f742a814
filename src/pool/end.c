/*
 * How a worker ended, or answered, as the members of a report: spec/stdio.md, "What is ignored, and what kills".
 */
#include "pool/member.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "attempt/words.h"
#include "base/take.h"

enum { WORDS_BYTES_MAX = 4 << 10 };

static void say_fault(const struct pool_member *member, char *out, size_t room)
{
	snprintf(out, room, "%s%s%s%s%s", pool_fault_text(&member->worker), member->quote[0] ? "; " : "",
		member->quote, member->dropped[0] ? "; of its frames this one was dropped last: " : "",
		member->dropped);
}

/* What it should have said before it ended by itself. */
static const char *say_what_is_missing(const struct pool_member *member)
{
	const struct process_end *end = process_end(member->process);
	bool good = end->how == ENDED_EXIT && end->code == 0;

	if (!member->worker.said_hello)
		return good ? " before its worker.hello; a worker stays in the foreground"
			    : " before its worker.hello";
	if (member->job)
		return end->how == ENDED_EXIT ? " without an answer" : "";
	return " without worker.shutdown, while it had no task";
}

static void say_how(const struct pool_member *member, char *out, size_t room)
{
	const struct process_end *end = process_end(member->process);
	enum pool_fault fault = member->worker.fault;

	if (end->how == ENDED_UNSTARTED)
		start_fault_text(&end->fault, out, room);
	else if (fault != POOL_FAULT_ENDED && fault != POOL_FAULT_NONE)
		say_fault(member, out, room);
	else if (end->how == ENDED_SIGNAL)
		snprintf(out, room, "ended by signal %d (SIG%s)%s", end->code,
			sigabbrev_np(end->code) ? sigabbrev_np(end->code) : "?", say_what_is_missing(member));
	else if (end->how == ENDED_EXIT)
		snprintf(out, room, "exit status %d%s", end->code, say_what_is_missing(member));
	else
		snprintf(out, room, "its shim died; how it ended is not known");
}

void pool_end_describe(const struct pool_member *member, char *out, size_t room)
{
	const struct process_end *end = process_end(member->process);
	const struct output *words = process_output(member->process, STREAM_ERR);
	uint64_t said = words->end - member->words_from;
	cleanup(buf_done) struct buf text = {0};

	say_how(member, out, room);
	if (end->how == ENDED_UNSTARTED && end->fault.step != START_WALL)
		return; /* nothing of it ran; what should have made a wall has words of its own */
	buf_init(&text, WORDS_BYTES_MAX);
	if (said == 0 ||
		output_tail(words, said < WORDS_BYTES_MAX ? (size_t)said : WORDS_BYTES_MAX, &text) < 0)
		return;
	char line[WORDS_BYTES];
	size_t used = strlen(out);
	if (last_words(buf_span(&text), line) > 0)
		snprintf(out + used, room - used, ": %s", line);
}

/* Its task used up what an attempt may use. */
static int put_spent(const struct pool_member *member, struct buf *report)
{
	struct attempt_end attempt = {
		.end = process_end(member->process), .limits = &member->executor->limits};

	return verdict_put_budget(&attempt, report);
}

static int put_details(const struct pool_member *member, struct buf *report)
{
	const struct process_end *end = process_end(member->process);
	struct json_object details;
	char signal[32];

	json_begin(&details, report);
	if (end->how == ENDED_EXIT)
		json_member_int(&details, "exitCode", end->code);
	else
		json_member_null(&details, "exitCode");
	if (end->how == ENDED_SIGNAL && sigabbrev_np(end->code)) {
		snprintf(signal, sizeof signal, "SIG%s", sigabbrev_np(end->code));
		json_member_string(&details, "signal", span_of(signal));
	} else {
		json_member_null(&details, "signal");
	}
	json_member_string(&details, "worker", span_of(member->name));
	return json_end(&details);
}

int pool_end_put_crash(const struct pool_member *member, struct buf *report)
{
	struct json_object error;
	char message[MEMBER_END_BYTES];

	if (process_end(member->process)->spent != SPENT_NOTHING)
		return put_spent(member, report);
	pool_end_describe(member, message, sizeof message);
	int r = buf_put_span(report, SPAN("\"error\":"));
	if (r < 0)
		return r;
	json_begin(&error, report);
	json_member_string(&error, "code", span_of(pool_fault_code(&member->worker)));
	json_member_string(&error, "message", span_of(message));
	if (json_put_key(&error, "details"))
		json_note(&error, put_details(member, report));
	return json_end(&error);
}

int pool_end_put_answer(const struct pool_member *member, const struct pool_message *message,
	enum report_verb *ret_verb, struct buf *report)
{
	bool good = message->kind == POOL_RESULT && message->success;

	*ret_verb = good ? REPORT_COMPLETE : REPORT_FAIL;
	if (message->kind == POOL_READY)
		return pool_put_unanswered(report, member->dropped);
	int r = good ? pool_put_result(report, message) : pool_put_failure(report, message);
	if (r == -E2BIG) {
		buf_clear(report);
		*ret_verb = REPORT_FAIL;
		r = failure_put(report, "EXECUTION_ERROR",
			"its result is too long to be kept: a report has 1 MiB", RETRY_NEVER);
	}
	return r;
}
