/*
 * What an attempt printed, and what others tell about a task.
 */
#include "api_fixture.h"

#define LOG_URL    "/api/tasks/t-1/log"
#define EVENTS_URL "/api/tasks/t-1/events"

static void an_append_becomes_a_command(void **state)
{
	struct dialogue *d = *state;

	post(d, LOG_URL,
		"{\"workerId\":\"w1\",\"fence\":\"12\",\"offset\":100,\"dropped\":7,\"data\":\"a\\nb\"}");
	const struct command *command = becomes(d, COMMAND_LOG);
	assert_true(is(command->task, "t-1") && is(command->worker, "w1") && is(command->data, "a\nb"));
	assert_int_equal(command->fence, 12);
	assert_int_equal(command->log.offset, 100);
	assert_int_equal(command->log.dropped, 7);
	d->results[0] = (struct result){.task = d->task};
	d->results[0].task.attempt = 2;
	finish(d);
	reply_is(d, 200);
	reply_says(d, "{\"attempt\":2,\"next\":103}");
}

static void a_wrong_offset_is_told_the_length(void **state)
{
	struct dialogue *d = *state;

	post(d, LOG_URL, "{\"fence\":\"12\",\"offset\":100,\"data\":\"\"}");
	d->results[0] = (struct result){.refusal = REFUSED_BAD_OFFSET, .task = d->task, .log_length = 42};
	finish(d);
	refused_with(d, 409, "bad_offset");
	reply_says(d, "\"length\":42");
}

static void who_says_too_much_is_told_when_to_go_on(void **state)
{
	struct dialogue *d = *state;

	post(d, LOG_URL, "{\"fence\":\"12\",\"offset\":100,\"data\":\"\"}");
	finish_refused(d, REFUSED_RATE_LIMITED);
	refused_with(d, 429, "rate_limited");
	assert_int_equal(d->call.reply.retry_after_s, 1);
}

static void every_wrong_field_of_an_append_is_named(void **state)
{
	struct dialogue *d = *state;
	static const struct {
		const char *body, *field;
	} rows[] = {
		{"{\"offset\":0,\"data\":\"\"}", "fence"},
		{"{\"fence\":\"1\",\"data\":\"\"}", "offset"},
		{"{\"fence\":\"1\",\"offset\":0}", "data"},
		{"{\"fence\":\"1\",\"offset\":-1,\"data\":\"\"}", "offset"},
		{"{\"fence\":\"1\",\"offset\":0,\"data\":3}", "data"},
		{"{\"fence\":\"1\",\"offset\":3,\"data\":\"\",\"dropped\":4}", "dropped"},
		{"{\"fence\":\"1\",\"offset\":3,\"data\":\"\",\"text\":4}", "text"},
		{"{\"fence\":\"1\",\"offset\":3,\"data\":\"ab\",\"streams\":{}}", "streams"},
		{"{\"fence\":\"1\",\"offset\":3,\"data\":\"ab\",\"streams\":[1]}", "streams"},
		{"{\"fence\":\"1\",\"offset\":3,\"data\":\"ab\",\"streams\":[3]}", "streams"},
		{"{\"fence\":\"1\",\"offset\":3,\"data\":\"ab\",\"streams\":[1,0,1]}", "streams"},
		{"{\"fence\":\"1\",\"offset\":3,\"data\":\"ab\",\"streams\":[-1,3]}", "streams"},
		{"{\"fence\":\"1\",\"offset\":3,\"data\":\"ab\",\"streams\":[1.5,0.5]}", "streams"},
		{"{\"fence\":\"1\",\"offset\":3,\"data\":\"ab\",\"streams\":[\"2\"]}", "streams"},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		post(d, LOG_URL, rows[i].body);
		refuses_field(d, rows[i].field);
	}
}

static void an_append_tells_the_streams_apart(void **state)
{
	struct dialogue *d = *state;

	post(d, LOG_URL, "{\"fence\":\"1\",\"offset\":0,\"data\":\"abcd\",\"streams\":[0,3,1]}");
	const struct log_streams *streams = &becomes(d, COMMAND_LOG)->log.streams;
	assert_int_equal(streams->count, 3);
	assert_int_equal(streams->lengths[1], 3);
	post(d, LOG_URL, "{\"fence\":\"1\",\"offset\":0,\"data\":\"abcd\"}");
	assert_int_equal(becomes(d, COMMAND_LOG)->log.streams.count, 0);
}

static void streams_of_a_log_are_told_and_may_be_asked_for(void **state)
{
	struct dialogue *d = *state;
	uint32_t lengths[] = {1, 2, 2};

	d->log_streams = (struct log_streams){.count = 3, .max = 3, .lengths = lengths};
	get(d, LOG_URL);
	reply_says(d,
		"\"offset\":0,\"data\":\"begin\",\"streams\":[1,2,2],\"dropped\":0,\"length\":13,\"next\":5}");
	get(d, LOG_URL "?stream=stderr");
	reply_says(d, "\"offset\":0,\"data\":\"eg\",\"dropped\":0,\"length\":13,\"next\":5}");
	get(d, LOG_URL "?stream=stdout");
	reply_says(d, "\"data\":\"bin\",\"dropped\":0");
	d->log_streams = (struct log_streams){0};
	get(d, LOG_URL "?stream=stderr");
	reply_says(d, "\"data\":\"\",\"dropped\":0,\"length\":13,\"next\":5}");
	get(d, LOG_URL "?stream=both");
	refuses_field(d, "stream");
	get(d, LOG_URL "?stream=");
	refuses_field(d, "stream");
}

static void as_text_one_stream_may_be_asked_for(void **state)
{
	struct dialogue *d = *state;
	uint32_t lengths[] = {0, 3};

	d->log_streams = (struct log_streams){.count = 2, .max = 2, .lengths = lengths};
	d->request.accept = SPAN("text/plain");
	assert_int_equal(get(d, LOG_URL "?after=13&stream=stderr"), 200);
	assert_true(is(d->call.reply.body, ""));
	assert_int_equal(get(d, LOG_URL "?after=6&stream=stderr"), 200);
	assert_true(is(d->call.reply.body, "[4 bytes were dropped]\nend"));
}

static void a_log_is_read_in_pieces(void **state)
{
	struct dialogue *d = *state;

	get(d, LOG_URL);
	reply_says(
		d, "{\"attempt\":1,\"offset\":0,\"data\":\"begin\",\"dropped\":0,\"length\":13,\"next\":5}");
	get(d, LOG_URL "?attempt=1&after=5&limit=100");
	reply_says(d, "\"offset\":10,\"data\":\"end\",\"dropped\":5,\"length\":13,\"next\":13}");
	get(d, LOG_URL "?attempt=2");
	refused_with(d, 404, "not_found");
	get(d, "/api/tasks/t-2/log");
	refused_with(d, 404, "not_found");
	get(d, LOG_URL "?limit=15");
	refuses_field(d, "limit");
}

static void the_log_of_what_one_may_not_see_is_not_there(void **state)
{
	struct dialogue *d = *state;
	static const struct span queue = {"elsewhere", 9};

	d->call.who.queues = (struct name_list){&queue, 1};
	get(d, LOG_URL);
	refused_with(d, 404, "not_found");
	d->call.who.queues = (struct name_list){0};
	d->call.who.scopes = SCOPE_BIT(SCOPE_WORK);
	d->task.state = TASK_DONE;
	get(d, LOG_URL);
	reply_is(d, 200); /* its own */
	d->task.claimant = 7;
	get(d, LOG_URL);
	refused_with(d, 404, "not_found");
	d->call.who.scopes = SCOPE_BIT(SCOPE_CLAIM);
	d->call.who.task_seq = 2;
	get(d, LOG_URL);
	refused_with(d, 404, "not_found");
	d->call.who.task_seq = 1;
	get(d, LOG_URL);
	reply_is(d, 200);
}

static void an_append_is_as_the_credential_says(void **state)
{
	struct dialogue *d = *state;

	d->call.who.scopes = SCOPE_BIT(SCOPE_WORK);
	d->call.who.worker = SPAN("w1");
	post(d, LOG_URL, "{\"fence\":\"12\",\"offset\":0,\"data\":\"x\"}");
	assert_true(is(becomes(d, COMMAND_LOG)->worker, "w1"));
	post(d, LOG_URL, "{\"workerId\":\"w2\",\"fence\":\"12\",\"offset\":0,\"data\":\"x\"}");
	refused_with(d, 403, "forbidden");
	d->call.who.scopes = SCOPE_BIT(SCOPE_CLAIM);
	d->call.who.task = SPAN("t-1");
	d->call.who.fence = 12;
	post(d, LOG_URL, "{\"offset\":0,\"data\":\"x\"}");
	assert_int_equal(becomes(d, COMMAND_LOG)->fence, 12);
	post(d, LOG_URL, "{\"fence\":\"13\",\"offset\":0,\"data\":\"x\"}");
	refused_with(d, 403, "forbidden");
}

static void as_text_a_gap_is_a_line(void **state)
{
	struct dialogue *d = *state;

	d->request.accept = SPAN("text/html, Text/Plain;q=0.5");
	assert_int_equal(get(d, LOG_URL), 200);
	assert_true(is(d->call.reply.content_type, "text/plain; charset=utf-8"));
	assert_true(is(d->call.reply.body, "begin\n[5 bytes were dropped]\nend"));
}

static void what_is_told_travels_in_the_event(void **state)
{
	struct dialogue *d = *state;

	post(d, EVENTS_URL,
		"{\"id\":\"e1\",\"type\":\"ci.passed\",\"status\":\"success\",\"data\":{\"n\":1}}");
	const struct command *command = becomes(d, COMMAND_EMIT);
	assert_true(is(command->note,
		"\"event\":\"ci.passed\",\"status\":\"success\",\"id\":\"e1\",\"data\":{\"n\":1}"));
	assert_true(is(command->emit.id, "e1"));
	uint64_t digest = command->emit.digest;
	assert_int_not_equal(digest, 0);
	d->results[0] = (struct result){.task = d->task, .id = SPAN("t-1"), .noted_seq = 9, .noted_ms = 77};
	finish(d);
	reply_is(d, 200);
	reply_says(d, "{\"task\":\"t-1\",\"seq\":9,\"time\":77,\"type\":\"task.noted\"}");
	post(d, EVENTS_URL, "{\"id\":\"e1\",\"type\":\"other\"}");
	assert_int_equal(becomes(d, COMMAND_EMIT)->emit.digest, digest);
	post(d, EVENTS_URL, "{\"type\":\"other\"}");
	assert_int_equal(becomes(d, COMMAND_EMIT)->emit.id.len, 0);
}

static void telling_has_a_scope_and_limits_of_its_own(void **state)
{
	struct dialogue *d = *state;
	static char large[80000];

	post(d, EVENTS_URL, "{}");
	refuses_field(d, "type");
	post(d, EVENTS_URL, "{\"type\":\"x\",\"stage\":\"y\"}");
	refuses_field(d, "stage");
	int len = snprintf(large, sizeof large, "{\"type\":\"x\",\"data\":\"");
	memset(large + len, 'x', 65536);
	strcpy(large + len + 65536, "\"}");
	post(d, EVENTS_URL, large);
	refuses_field(d, "data");
	d->call.who.scopes = SCOPE_BIT(SCOPE_WORK);
	post(d, EVENTS_URL, "{\"type\":\"x\"}");
	refused_with(d, 403, "forbidden");
	d->call.who.scopes = SCOPE_BIT(SCOPE_EMIT);
	post(d, EVENTS_URL, "{\"type\":\"x\"}");
	becomes(d, COMMAND_EMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIALOGUE(an_append_becomes_a_command),
		DIALOGUE(a_wrong_offset_is_told_the_length),
		DIALOGUE(who_says_too_much_is_told_when_to_go_on),
		DIALOGUE(every_wrong_field_of_an_append_is_named),
		DIALOGUE(an_append_tells_the_streams_apart),
		DIALOGUE(a_log_is_read_in_pieces),
		DIALOGUE(streams_of_a_log_are_told_and_may_be_asked_for),
		DIALOGUE(as_text_one_stream_may_be_asked_for),
		DIALOGUE(the_log_of_what_one_may_not_see_is_not_there),
		DIALOGUE(an_append_is_as_the_credential_says),
		DIALOGUE(as_text_a_gap_is_a_line),
		DIALOGUE(what_is_told_travels_in_the_event),
		DIALOGUE(telling_has_a_scope_and_limits_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
