#include "attempt/verdict.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "attempt/words.h"
#include "base/take.h"
#include "base/utf8.h"
#include "wire/json/json.h"

enum {
	EXIT_LATER = 75, /* EX_TEMPFAIL */
	EXIT_NEVER = 78, /* EX_CONFIG */
	LATER_MS = 10 * 1000,
	RESULT_TEXT_BYTES = 4 << 10,
};

const char *report_verb_name(enum report_verb verb)
{
	static const char *const names[] = {
		[REPORT_COMPLETE] = "complete",
		[REPORT_FAIL] = "fail",
		[REPORT_RELEASE] = "release",
		[REPORT_REVIEW] = "review",
		[REPORT_BLOCK] = "block",
	};

	return names[verb];
}

/* ---- what it wrote ---- */

static struct span trimmed(struct span text)
{
	while (text.len > 0 && strchr(" \t\r\n", text.data[text.len - 1]))
		text.len--;
	return text;
}

static struct span last_line(struct span text)
{
	text = trimmed(text);
	const char *newline = text.len > 0 ? memrchr(text.data, '\n', text.len) : NULL;
	if (newline)
		text = (struct span){newline + 1, text.len - (size_t)(newline + 1 - text.data)};
	return text;
}

/* The last bytes, from the beginning of a character on. */
static struct span tail(struct span text, size_t most)
{
	text = trimmed(text);
	if (text.len > most) {
		text.data += text.len - most;
		text.len = most;
		while (text.len > 0 && ((unsigned char)text.data[0] & 0xc0) == 0x80) {
			text.data++;
			text.len--;
		}
	}
	return text;
}

static int put_result(struct buf *members, struct span out)
{
	struct json_complaint complaint;
	struct span line = last_line(out);
	/* the report is a level around it */
	cleanup(yyjson_doc_free_at) yyjson_doc *doc =
		line.len > 0 ? json_read_to(line, JSON_DEPTH_MAX - 1, &complaint) : NULL;

	int r = buf_put_span(members, SPAN("\"result\":"));
	if (r < 0)
		return r;
	return doc ? json_put_value(members, yyjson_doc_get_root(doc))
		   : json_put_string(members, tail(out, RESULT_TEXT_BYTES));
}

/* ---- failures ---- */

struct complaint {
	const char *code;
	char message[2048];
	const char *details; /* JSON; NULL: none */
	int64_t retry_at_ms; /* or RETRY_USUAL, RETRY_NEVER */
};

static int put_failure(struct buf *members, const struct complaint *complaint)
{
	struct json_object error;

	assert(complaint->code[0]);
	assert(complaint->retry_at_ms >= RETRY_NEVER);
	int r = buf_put_span(members, SPAN("\"error\":"));
	if (r < 0)
		return r;
	json_begin(&error, members);
	json_member_string(&error, "code", span_of(complaint->code));
	json_member_string(&error, "message", span_of(complaint->message));
	if (complaint->details)
		json_member_raw(&error, "details", span_of(complaint->details));
	if (complaint->retry_at_ms == RETRY_NEVER)
		json_member_bool(&error, "retry", false);
	else if (complaint->retry_at_ms != RETRY_USUAL)
		json_member_int(&error, "retryAt", complaint->retry_at_ms);
	return json_end(&error);
}

int failure_put(struct buf *members, const char *code, const char *message, int64_t retry_at_ms)
{
	struct complaint complaint = {.code = code, .retry_at_ms = retry_at_ms};

	snprintf(complaint.message, sizeof complaint.message, "%s", message);
	return put_failure(members, &complaint);
}

bool failure_is_of_host(const char *code)
{
	return strcmp(code, "WORKER_INIT_FAILED") == 0;
}

int failure_put_refused(struct buf *members, const char *code, const char *message, int64_t wall_ms)
{
	return failure_put(
		members, code, message, failure_is_of_host(code) ? wall_ms + HOST_TROUBLE_MS : RETRY_NEVER);
}

/* ---- what was not even made ---- */

static const struct start_row {
	int error;
	bool walled; /* only with walls around it: without them it is trouble of the host */
	const char *code, *reason;
} start_rows[] = {
	{EOPNOTSUPP, false, "ISOLATION_UNAVAILABLE",
		"a limit of its executor cannot be enforced here any more"},
	{E2BIG, false, "EXECUTION_ERROR", NULL},
	{EINVAL, false, "EXECUTION_ERROR", NULL},
	{EILSEQ, false, "EXECUTION_ERROR",
		"at level \"vm\" an argument or a value of the environment cannot have a line break: it goes in as one line"},
	{EXDEV, false, "ISOLATION_UNAVAILABLE",
		"its work dir, or another path that it may use, contains the state directory or lies in it"},
	{ELOOP, false, "ISOLATION_UNAVAILABLE",
		"a symbolic link appeared on a path of its executor after the worker was started; restart the worker if the link is meant"},
	{ENOENT, true, "ISOLATION_UNAVAILABLE", NULL},
	{EACCES, true, "ISOLATION_UNAVAILABLE", NULL},
	{ENOTDIR, true, "ISOLATION_UNAVAILABLE", NULL},
};

const char *start_refused(
	int fault, bool names_dir, enum wall_level level, char ret_reason[START_REASON_BYTES])
{
	const struct start_row *row = NULL;

	for (size_t i = 0; i < sizeof start_rows / sizeof *start_rows && !row; i++) {
		if (start_rows[i].error == -fault && (!start_rows[i].walled || level != WALL_PROCESS))
			row = &start_rows[i];
	}
	if (row && row->reason)
		snprintf(ret_reason, START_REASON_BYTES, "%s", row->reason);
	else if (row && row->walled)
		snprintf(ret_reason, START_REASON_BYTES,
			"level \"%s\": a path that it may use cannot be opened: %s", wall_level_name(level),
			strerror(-fault));
	else
		snprintf(ret_reason, START_REASON_BYTES, "cannot be started: %s", strerror(-fault));
	if (fault == -EXDEV && names_dir)
		return "BAD_WORKDIR";
	return row ? row->code : "WORKER_INIT_FAILED";
}

int release_put(struct buf *members, const char *reason, int64_t delay_ms)
{
	struct json_object object = {.buf = members};

	assert(reason[0]);
	assert(delay_ms >= 0);
	json_member_string(&object, "reason", span_of(reason));
	if (delay_ms > 0)
		json_member_int(&object, "delayMs", delay_ms);
	return buf_fault(members);
}

/* What it said of it, on standard error or else on standard output. */
static void add_last_words(struct complaint *complaint, const struct attempt_end *attempt)
{
	char words[WORDS_BYTES];
	size_t used = strlen(complaint->message);

	if (last_words(attempt->err, words) > 0 || last_words(attempt->out, words) > 0)
		snprintf(complaint->message + used, sizeof complaint->message - used, ": %s", words);
}

/* A sentence of its own, behind what happened. */
static void add_hint(struct complaint *complaint, const struct attempt_end *attempt)
{
	size_t used = strlen(complaint->message);

	while (attempt->hint && used > 0 && complaint->message[used - 1] == '.')
		used--;
	if (attempt->hint)
		snprintf(complaint->message + used, sizeof complaint->message - used, ". %s", attempt->hint);
}

static int put_exit(const struct attempt_end *attempt, enum report_verb *ret_verb, struct buf *members)
{
	int code = attempt->end->code;
	char details[40];
	struct complaint complaint = {.code = "EXECUTION_ERROR",
		.details = details,
		.retry_at_ms = code == EXIT_NEVER ? RETRY_NEVER : RETRY_USUAL};

	if (code == 0) {
		*ret_verb = REPORT_COMPLETE;
		return put_result(members, attempt->out);
	}
	if (code == EXIT_LATER) {
		*ret_verb = REPORT_RELEASE;
		return release_put(members, "exit status 75: try again later", LATER_MS);
	}
	*ret_verb = REPORT_FAIL;
	snprintf(details, sizeof details, "{\"exit\":%d}", code);
	snprintf(complaint.message, sizeof complaint.message, "exit status %d%s", code,
		code == EXIT_NEVER ? ", do not retry" : "");
	add_last_words(&complaint, attempt);
	add_hint(&complaint, attempt);
	return put_failure(members, &complaint);
}

static int put_signal(const struct attempt_end *attempt, struct buf *members)
{
	int number = attempt->end->code;
	const char *name = sigabbrev_np(number);
	char details[40];
	struct complaint complaint = {.code = "WORKER_CRASHED", .details = details};

	snprintf(details, sizeof details, "{\"signal\":%d}", number);
	snprintf(complaint.message, sizeof complaint.message, "ended by signal %d%s%s%s", number,
		name ? " (SIG" : "", name ? name : "", name ? ")" : "");
	add_last_words(&complaint, attempt);
	return put_failure(members, &complaint);
}

bool verdict_is_shortage(const struct process_end *end)
{
	static const int errors[] = {EAGAIN, ENOMEM, EMFILE, ENFILE, ENOSPC, EDQUOT};
	bool found = false;

	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		found |= end->fault.error == errors[i];
	return end->how == ENDED_UNSTARTED && found;
}

/* Whose fault it is that nothing ran. */
static const char *unstarted_code(const struct attempt_end *attempt)
{
	if (verdict_is_shortage(attempt->end))
		return "WORKER_INIT_FAILED";
	switch (attempt->end->fault.step) {
	case START_EXEC:
	case START_INTERPRETER:
		return attempt->own_argv ? "EXECUTION_ERROR" : "WORKER_INIT_FAILED";
	case START_WORKDIR:
		return "BAD_WORKDIR";
	case START_LANDLOCK:
		/* The state directory is in what it may use. If that has no name it is the work dir. */
		if (attempt->end->fault.error == EXDEV && !attempt->end->fault.detail[0])
			return "BAD_WORKDIR";
		return "ISOLATION_UNAVAILABLE";
	case START_SECCOMP:
	case START_PRIVILEGES:
	case START_USER:
	case START_WALL:
		return "ISOLATION_UNAVAILABLE";
	case START_NONE:
	case START_SHIM:
	case START_REQUEST:
	case START_FORK:
	case START_SESSION:
	case START_STDIO:
	case START_LIMITS:
		break;
	}
	return "WORKER_INIT_FAILED";
}

const char *verdict_barred(const struct process_end *end)
{
	struct attempt_end attempt = {.end = end};
	const char *code = end->how == ENDED_UNSTARTED ? unstarted_code(&attempt) : "";

	return strcmp(code, "ISOLATION_UNAVAILABLE") == 0 || strcmp(code, "BAD_WORKDIR") == 0 ? code : NULL;
}

static int put_unstarted(const struct attempt_end *attempt, struct buf *members)
{
	struct complaint complaint = {.code = unstarted_code(attempt)};

	if (strcmp(complaint.code, "EXECUTION_ERROR") == 0) { /* it will not be there in ten seconds either */
		complaint.retry_at_ms = RETRY_NEVER;
		complaint.details = "{\"exit\":127}";
	} else if (failure_is_of_host(complaint.code)) {
		complaint.retry_at_ms = attempt->wall_ms + HOST_TROUBLE_MS;
	}
	start_fault_text(&attempt->end->fault, complaint.message, sizeof complaint.message);
	if (attempt->end->fault.step == START_WALL)
		add_last_words(&complaint, attempt); /* of what should have made the wall */
	add_hint(&complaint, attempt);
	return put_failure(members, &complaint);
}

/* `limit` as the configuration has it: a tenth of a minute is no 0. */
static int put_spent(struct buf *members, const char *key, double limit, const char *text)
{
	char details[100];
	struct complaint complaint = {.code = "BUDGET_EXCEEDED", .details = details};

	snprintf(details, sizeof details, "{\"budget\":\"%s\",\"limit\":%.16g}", key, limit);
	snprintf(complaint.message, sizeof complaint.message, "budget.%s of its executor is used up: %s", key,
		text);
	return put_failure(members, &complaint);
}

/* With all that it started. */
int verdict_put_budget(const struct attempt_end *attempt, struct buf *members)
{
	const struct limits *limits = attempt->limits;
	char text[200];

	switch (attempt->end ? attempt->end->spent : SPENT_NOTHING) {
	case SPENT_MEMORY:
		snprintf(text, sizeof text,
			"it needed more than %llu bytes of memory, and the kernel killed what asked for more",
			(unsigned long long)limits->memory_bytes);
		return put_spent(members, "memoryBytes", (double)limits->memory_bytes, text);
	case SPENT_CPU:
		snprintf(text, sizeof text, "it used %g s of processor time", (double)limits->cpu_us / 1e6);
		return put_spent(members, "cpuSeconds", (double)limits->cpu_us / 1e6, text);
	case SPENT_OUTPUT:
		snprintf(text, sizeof text, "it wrote more than %llu bytes",
			(unsigned long long)limits->output_bytes);
		return put_spent(members, "outputBytes", (double)limits->output_bytes, text);
	case SPENT_NOTHING:
		break;
	}
	snprintf(text, sizeof text, "it ran longer than %lld ms", (long long)attempt->limit_ms);
	return put_spent(members, "minutes", (double)attempt->limit_ms / 60000, text);
}

static bool is_over_budget(const struct attempt_end *attempt)
{
	const struct process_end *end = attempt->end;

	if (attempt->stop == STOP_CANCELLED || attempt->stop == STOP_LOST)
		return false;
	return (end && attempt->limits && end->spent != SPENT_NOTHING) ||
		(attempt->stop == STOP_TIMED_OUT && attempt->limit_is_budget && (!end || end->stop_asked));
}

/* By us, or by its shim in our place. */
static bool was_stopped(const struct process_end *end)
{
	return end->stop_asked || end->lapsed;
}

static int put_timeout(const struct attempt_end *attempt, struct buf *members)
{
	bool stalled = attempt->stop == STOP_STALLED;
	struct complaint complaint = {.code = stalled ? "STALLED" : "TASK_TIMEOUT"};

	snprintf(complaint.message, sizeof complaint.message,
		stalled ? "no sign of life for %lld ms" : "ran longer than %lld ms",
		(long long)attempt->limit_ms);
	return put_failure(members, &complaint);
}

static int put_ended(const struct attempt_end *attempt, enum report_verb *ret_verb, struct buf *members)
{
	*ret_verb = REPORT_FAIL;
	switch (attempt->end->how) {
	case ENDED_EXIT:
		return put_exit(attempt, ret_verb, members);
	case ENDED_SIGNAL:
		return put_signal(attempt, members);
	case ENDED_UNSTARTED:
		return put_unstarted(attempt, members);
	case ENDED_LOST:
	case ENDED_NOT_YET:
		break;
	}
	return failure_put(
		members, "WORKER_CRASHED", "its shim died; how the program ended is not known", RETRY_USUAL);
}

int verdict_put(const struct attempt_end *attempt, enum report_verb *ret_verb, struct buf *members)
{
	bool by_itself = attempt->end && attempt->end->how != ENDED_NOT_YET && !was_stopped(attempt->end);

	if (is_over_budget(attempt)) {
		*ret_verb = REPORT_FAIL;
		return verdict_put_budget(attempt, members);
	}
	if (by_itself) /* it ended before our word reached it: what it says of itself counts */
		return put_ended(attempt, ret_verb, members);
	*ret_verb = REPORT_RELEASE;
	switch (attempt->stop) {
	case STOP_CANCELLED:
		return release_put(members, "cancelled", 0);
	case STOP_SHUTDOWN:
		return release_put(members, "the worker stops", 0);
	case STOP_PARKED:
		return release_put(members, "it waits for an answer", 0);
	case STOP_LAPSED:
		if (attempt->end && attempt->end->lapsed)
			return release_put(members, "its worker did not renew its lease in time", 0);
		return release_put(members, "no answer from the server in time", 0);
	case STOP_FINAL:
	case STOP_LOST:
		return release_put(members, "no answer from the server in time", 0);
	case STOP_TIMED_OUT:
	case STOP_STALLED:
		*ret_verb = REPORT_FAIL;
		return put_timeout(attempt, members);
	case STOP_NOT:
		break;
	}
	return put_ended(attempt, ret_verb, members);
}
