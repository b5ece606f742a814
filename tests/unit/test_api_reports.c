#include "api_fixture.h"

#define PROOF "\"workerId\":\"w1\",\"fence\":\"18446744073709551615\""

static const struct command *proven(struct dialogue *d, enum command_kind kind)
{
	const struct command *command = becomes(d, kind);

	assert_true(is(command->task, "t-1") && is(command->worker, "w1"));
	assert_true(command->fence == UINT64_MAX);
	assert_false(command->by_name);
	return command;
}

static void progress_keeps_data_and_tells_the_rest(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/tasks/t-1/progress",
		"{" PROOF ",\"note\":\"half\",\"percent\":50.5,\"leaseMs\":9000,\"event\":\"e\",\"data\":[1],"
		"\"session\":\"s\",\"usage\":{\"tokens\":5}}");
	const struct command *command = proven(d, COMMAND_PROGRESS);
	assert_int_equal(command->lease_ms, 9000);
	assert_true(is(command->data, "[1]"));
	assert_true(is(command->beside, "\"s\""));
	assert_true(is(command->note,
		"\"note\":\"half\",\"percent\":50.5,\"event\":\"e\",\"session\":\"s\",\"usage\":{\"tokens\":5}"));
}

static void progress_is_answered_with_the_lease_and_commands(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/tasks/t-1/progress", "{" PROOF "}");
	d->task.state = TASK_RUNNING;
	d->task.claim = (struct claim){
		.holder = 5, .clock = CLOCK_CLAIM, .lease = {60500, 60000}, .run_until_ms = 9999};
	d->results[0] = (struct result){.task = d->task, .id = SPAN("t-1")};
	finish(d);
	reply_is(d, 200);
	assert_true(is(d->call.reply.body, "{\"leaseMs\":60000,\"commands\":[]}"));
	post(d, "/api/tasks/t-1/progress", "{" PROOF "}");
	d->results[0].task.claim.stopping = true;
	d->results[0].worker.state = WORKER_TERMINATING;
	finish(d);
	reply_says(d, "\"commands\":[{\"type\":\"cancel\",\"task\":\"t-1\"},{\"type\":\"terminate\"}]}");
}

static void a_completion_keeps_its_result(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/tasks/t-1/complete", "{" PROOF ",\"result\":{\"pr\":7}}");
	assert_true(is(proven(d, COMMAND_COMPLETE)->data, "{\"pr\":7}"));
	finish_task(d, TASK_DONE);
	reply_is(d, 200);
	reply_says(d, "\"id\":\"t-1\"");
	reply_says(d, "\"status\":\"done\",\"state\":\"done\"");
	reply_says(d, "\"result\":{\"pr\":7}");
	assert_true(is(d->call.reply.etag, "\"3\""));
	post(d, "/api/tasks/t-1/complete", "{" PROOF ",\"result\":null}");
	assert_true(is(proven(d, COMMAND_COMPLETE)->data, "null"));
	post(d, "/api/tasks/t-1/complete", "{" PROOF "}");
	assert_int_equal(proven(d, COMMAND_COMPLETE)->data.len, 0);
}

static void what_the_supervisor_saw_is_read_from_its_error(void **state)
{
	struct dialogue *d = *state;
	static const struct {
		const char *members;
		enum seen_end seen;
	} rows[] = {
		{"\"error\":{\"code\":\"EXECUTION_ERROR\",\"details\":{\"exit\":2}}", SEEN_EXIT},
		{"\"error\":{\"code\":\"EXECUTION_ERROR\",\"details\":{\"exit\":\"2\"}}", SEEN_FAULT},
		{"\"error\":{\"code\":\"TASK_TIMEOUT\"}", SEEN_FAULT},
		{"\"error\":{\"code\":\"WORKER_INIT_FAILED\"}", SEEN_NOTHING_RUN},
		{"\"error\":{\"code\":\"BUDGET_EXCEEDED\"}", SEEN_BUDGET_SPENT},
		{"\"error\":{\"code\":\"BUDGET_EXCEEDED\"},\"evidence\":{\"checks\":[]}", SEEN_BUDGET_SPENT},
		{"\"error\":{\"code\":\"BUDGET_EXCEEDED\"},\"evidence\":{\"checks\":[{\"name\":\"test\"}]}",
			SEEN_NOTHING_RUN},
	};
	char body[512];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		snprintf(body, sizeof body, "{" PROOF ",\"byReport\":true,%s}", rows[i].members);
		post(d, "/api/tasks/t-1/fail", body);
		assert_int_equal(proven(d, COMMAND_FAIL)->seen, rows[i].seen);
	}
	post(d, "/api/tasks/t-1/complete", "{" PROOF ",\"byReport\":true}");
	assert_int_equal(proven(d, COMMAND_COMPLETE)->seen, SEEN_EXIT);
	post(d, "/api/tasks/t-1/complete", "{" PROOF ",\"evidence\":{\"branch\":\"b\"}}");
	assert_int_equal(proven(d, COMMAND_COMPLETE)->seen, SEEN_NOT_SAID);
	assert_true(is(d->call.commands[0].beside, "{\"branch\":\"b\"}"));
}

static void a_failure_has_a_code_and_the_class_of_its_code(void **state)
{
	struct dialogue *d = *state;
	static const struct {
		const char *error;
		enum failure_code code;
		enum failure_class klass;
		const char *kept;
	} rows[] = {
		{"{\"code\":\"STALLED\",\"message\":\"m\",\"class\":\"host\"}", CODE_STALLED, CLASS_TIMEOUT,
			"{\"code\":\"STALLED\",\"message\":\"m\",\"class\":\"timeout\"}"},
		{"{\"code\":\"MINE\",\"class\":\"host\"}", CODE_OTHER, CLASS_HOST,
			"{\"code\":\"MINE\",\"message\":\"\",\"class\":\"host\"}"},
		{"{\"code\":\"MINE\",\"class\":\"final\"}", CODE_OTHER, CLASS_TASK,
			"{\"code\":\"MINE\",\"message\":\"\",\"class\":\"task\"}"},
		{"{\"code\":\"DEADLINE\"}", CODE_OTHER, CLASS_TASK,
			"{\"code\":\"OTHER\",\"message\":\"\",\"class\":\"task\"}"},
		{"{}", CODE_OTHER, CLASS_TASK, "{\"code\":\"OTHER\",\"message\":\"\",\"class\":\"task\"}"},
		{"{\"code\":\"QUOTA\",\"credential\":\"c\",\"retryAt\":99,\"details\":[1]}", CODE_QUOTA,
			CLASS_QUOTA,
			"{\"code\":\"QUOTA\",\"message\":\"\",\"class\":\"quota\",\"retryAt\":99,\"credential\":\"c\","
			"\"details\":[1]}"},
	};
	char body[512];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		snprintf(body, sizeof body, "{" PROOF ",\"error\":%s}", rows[i].error);
		post(d, "/api/tasks/t-1/fail", body);
		const struct command *command = proven(d, COMMAND_FAIL);
		assert_int_equal(command->failure.code, rows[i].code);
		assert_int_equal(command->failure.klass, rows[i].klass);
		assert_true(is(command->data, rows[i].kept));
	}
	assert_int_equal(d->call.commands[0].failure.retry_at_ms, 99);
}

static void a_worker_may_say_do_not_retry(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/tasks/t-1/fail", "{" PROOF ",\"error\":{\"code\":\"MINE\",\"retry\":false}}");
	assert_true(proven(d, COMMAND_FAIL)->failure.no_retry);
	d->task.code = CODE_OTHER;
	finish_task(d, TASK_FAILED);
	reply_is(d, 200);
	reply_says(d, "\"error\":{\"code\":\"MINE\",\"message\":\"\",\"class\":\"task\",\"retry\":false}");
	post(d, "/api/tasks/t-1/fail", "{" PROOF ",\"error\":{\"code\":\"MINE\",\"retry\":true}}");
	assert_false(proven(d, COMMAND_FAIL)->failure.no_retry);
}

static void the_other_reports_become_their_commands(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/tasks/t-1/review", "{" PROOF ",\"result\":1,\"evidence\":{\"ci\":\"green\"}}");
	assert_true(is(proven(d, COMMAND_REVIEW)->data, "1"));
	assert_true(is(d->call.commands[0].note, "\"evidence\":{\"ci\":\"green\"}"));
	post(d, "/api/tasks/t-1/block", "{" PROOF ",\"error\":{\"code\":\"BAD_WORKDIR\"}}");
	assert_int_equal(proven(d, COMMAND_BLOCK)->failure.code, CODE_BAD_WORKDIR);
	post(d, "/api/tasks/t-1/release", "{" PROOF ",\"reason\":\"r\",\"delayMs\":5000}");
	assert_int_equal(proven(d, COMMAND_RELEASE)->delay_ms, 5000);
	assert_true(is(d->call.commands[0].note, "\"reason\":\"r\""));
	post(d, "/api/tasks/t-1/ask",
		"{" PROOF ",\"question\":\"q?\",\"options\":[\"a\",\"b\"],\"deadline\":5}");
	assert_true(is(
		proven(d, COMMAND_ASK)->data, "{\"text\":\"q?\",\"options\":[\"a\",\"b\"],\"deadline\":5}"));
	d->task.claim = (struct claim){.holder = 5, .clock = CLOCK_CLAIM, .lease = {1500, 1000}};
	finish_task(d, TASK_ASKING);
	reply_is(d, 200);
	reply_says(d, "\"workerId\":\"w1\"");
	reply_says(d, "\"leaseMs\":1000");
	reply_says(d, "\"question\":{\"text\":\"q?\"");
}

static const struct {
	const char *verb, *body, *field;
} invalid[] = {
	{"complete", NULL, "workerId"},
	{"complete", "{\"workerId\":\"w1\"}", "fence"},
	{"complete", "{\"workerId\":\"w1\",\"fence\":7}", "fence"},
	{"complete", "{\"workerId\":\"w1\",\"fence\":\"\"}", "fence"},
	{"complete", "{\"workerId\":\"w1\",\"fence\":\"-1\"}", "fence"},
	{"complete", "{\"workerId\":\"w1\",\"fence\":\"18446744073709551616\"}", "fence"},
	{"complete", "{" PROOF ",\"error\":{}}", "error"},
	{"fail", "{" PROOF "}", "error"},
	{"fail", "{" PROOF ",\"error\":\"boom\"}", "error"},
	{"fail", "{" PROOF ",\"error\":{\"message\":7}}", "error.message"},
	{"fail", "{" PROOF ",\"error\":{\"stack\":7}}", "error.stack"},
	{"fail", "{" PROOF ",\"error\":{\"retryAt\":-7}}", "error.retryAt"},
	{"fail", "{" PROOF ",\"error\":{\"retry\":7}}", "error.retry"},
	{"block", "{" PROOF "}", "error"},
	{"review", "{" PROOF ",\"note\":1}", "note"},
	{"release", "{" PROOF ",\"delayMs\":-1}", "delayMs"},
	{"release", "{" PROOF ",\"reason\":1}", "reason"},
	{"ask", "{" PROOF "}", "question"},
	{"ask", "{" PROOF ",\"question\":\"q\",\"options\":\"a\"}", "options"},
	{"ask", "{" PROOF ",\"question\":\"q\",\"deadline\":\"a\"}", "deadline"},
	{"progress", "{" PROOF ",\"percent\":101}", "percent"},
	{"progress", "{" PROOF ",\"percent\":\"5\"}", "percent"},
	{"progress", "{" PROOF ",\"note\":5}", "note"},
	{"progress", "{" PROOF ",\"usage\":5}", "usage"},
	{"progress", "{" PROOF ",\"session\":5}", "session"},
	{"progress", "{" PROOF ",\"session\":{\"name\":\"s\"}}", "session"},
	{"progress", "{" PROOF ",\"event\":\"\"}", "event"},
	{"progress", "{" PROOF ",\"leaseMs\":1.5}", "leaseMs"},
	{"progress", "{" PROOF ",\"result\":1}", "result"},
};

static void every_wrong_field_of_a_report_is_named(void **state)
{
	struct dialogue *d = *state;
	char url[64];

	for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
		snprintf(url, sizeof url, "/api/tasks/t-1/%s", invalid[i].verb);
		post(d, url, invalid[i].body);
		refuses_field(d, invalid[i].field);
	}
}

static void a_stale_claim_never_learns_the_current_fence(void **state)
{
	struct dialogue *d = *state;

	d->task.fence = 777;
	post(d, "/api/tasks/t-1/complete", "{\"workerId\":\"w1\",\"fence\":\"776\"}");
	finish_refused(d, REFUSED_STALE_CLAIM);
	refused_with(d, 409, "stale_claim");
	reply_hides(d, "777");
	reply_hides(d, "restored");
	post(d, "/api/tasks/t-1/progress", "{\"workerId\":\"w1\",\"fence\":\"776\"}");
	d->results[0] = (struct result){.refusal = REFUSED_STALE_CLAIM, .restored = true};
	finish(d);
	refused_with(d, 409, "stale_claim");
	reply_says(d, "The store was restored");
}

static void other_refusals_of_reports(void **state)
{
	struct dialogue *d = *state;
	static const enum refusal refusals[] = {
		REFUSED_NOT_FOUND, REFUSED_NOT_CLAIMED, REFUSED_ALREADY_TERMINAL, REFUSED_UNAVAILABLE};

	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		post(d, "/api/tasks/t-1/complete", "{" PROOF "}");
		finish_refused(d, refusals[i]);
		refused_with(d, refusal_http_status(refusals[i]), refusal_code(refusals[i]));
	}
	assert_int_equal(d->call.reply.retry_after_s, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIALOGUE(progress_keeps_data_and_tells_the_rest),
		DIALOGUE(progress_is_answered_with_the_lease_and_commands),
		DIALOGUE(a_completion_keeps_its_result),
		DIALOGUE(what_the_supervisor_saw_is_read_from_its_error),
		DIALOGUE(a_failure_has_a_code_and_the_class_of_its_code),
		DIALOGUE(a_worker_may_say_do_not_retry),
		DIALOGUE(the_other_reports_become_their_commands),
		DIALOGUE(every_wrong_field_of_a_report_is_named),
		DIALOGUE(a_stale_claim_never_learns_the_current_fence),
		DIALOGUE(other_refusals_of_reports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
