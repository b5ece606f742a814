#include "api_fixture.h"

static void events_are_told_from_a_cursor(void **state)
{
	struct dialogue *d = *state;

	get(d, "/api/events?after=0&limit=2");
	reply_is(d, 200);
	assert_true(is(d->call.reply.body,
		"{\"events\":[{\"seq\":1,\"time\":1001,\"type\":\"task.claimed\",\"task\":\"t-1\",\"actor\":\"alice\","
		"\"data\":{\"from\":\"ready\",\"state\":\"claimed\",\"leaseMs\":60000,\"note\":\"half\"}},"
		"{\"seq\":2,\"time\":1002,\"type\":\"queue.paused\",\"actor\":\"alice\",\"data\":{\"queue\":\"q\","
		"\"leaseMs\":60000}}],\"next\":\"2\"}"));
	get(d, "/api/events?after=3");
	assert_true(is(d->call.reply.body, "{\"events\":[],\"next\":\"3\"}"));
}

static void now_is_the_cursor_of_the_last_event(void **state)
{
	struct dialogue *d = *state;

	get(d, "/api/events?after=now&limit=1");
	assert_true(is(d->call.reply.body, "{\"events\":[],\"next\":\"3\"}"));
	d->request.accept = SPAN("text/event-stream");
	assert_int_equal(say(d, HTTP_METHOD_GET, "/api/events?after=now", NULL), API_STREAM);
	assert_int_equal(d->call.stream_after, 3);
	d->request.last_event_id = SPAN("2"); /* whoever comes back goes on from where it was */
	assert_int_equal(say(d, HTTP_METHOD_GET, "/api/events?after=now", NULL), API_STREAM);
	assert_int_equal(d->call.stream_after, 2);
}

static void without_a_cursor_the_oldest_kept_come_first(void **state)
{
	struct dialogue *d = *state;

	d->base = 2;
	get(d, "/api/events");
	reply_is(d, 200);
	reply_says(d, "{\"events\":[{\"seq\":3");
	d->request.last_event_id = SPAN("3");
	get(d, "/api/events");
	reply_says(d, "{\"events\":[],\"next\":\"3\"}");
	get(d, "/api/events?after=2"); /* as with a stream, the header counts */
	reply_says(d, "{\"events\":[],\"next\":\"3\"}");
	get(d, "/api/events?after=y"); /* but what is no cursor is told */
	refuses_field(d, "after");
	d->request.last_event_id = SPAN("x");
	get(d, "/api/events?after=2");
	refuses_field(d, "after");
}

static void a_cursor_that_is_gone_is_never_skipped_silently(void **state)
{
	struct dialogue *d = *state;

	d->base = 2;
	get(d, "/api/events?after=1");
	refused_with(d, 410, "cursor_gone");
	reply_says(d, "\"oldest\":\"2\"");
	get(d, "/api/events?after=4"); /* from before a restore */
	refused_with(d, 410, "cursor_gone");
}

static void wrong_parameters_of_events_are_named(void **state)
{
	struct dialogue *d = *state;

	get(d, "/api/events?after=x");
	refuses_field(d, "after");
	get(d, "/api/events?limit=0");
	refuses_field(d, "limit");
	get(d, "/api/events?limit=1001");
	refuses_field(d, "limit");
	get(d, "/api/events?since=1");
	refuses_field(d, "since");
}

/* Task 1 has the events 1, 8, 15, …, 1800. */
static void give_history(struct dialogue *d)
{
	d->last = 1803;
	d->every = 7;
	d->task.version = 1800;
}

static void the_events_of_one_task_are_those_and_no_others(void **state)
{
	struct dialogue *d = *state;

	give_history(d);
	get(d, "/api/tasks/t-1/events?limit=3");
	reply_is(d, 200);
	reply_says(d, "{\"events\":[{\"seq\":1,");
	reply_says(d, "{\"seq\":8,");
	reply_hides(d, "\"seq\":22,");
	reply_says(d, "\"next\":\"15\"}");
	get(d, "/api/tasks/t-1/events?after=15&limit=1000");
	reply_says(d, "{\"events\":[{\"seq\":22,");
	reply_hides(d, "\"seq\":23,");
	reply_says(d, "{\"seq\":1800,");
	reply_says(d, "\"next\":\"1803\"}"); /* there is nothing more of it up to there */
	get(d, "/api/tasks/t-1/events?after=1800");
	assert_true(is(d->call.reply.body, "{\"events\":[],\"next\":\"1803\"}"));
	get(d, "/api/tasks/x/events");
	refused_with(d, 404, "not_found");
}

static void a_history_is_told_as_far_as_it_is_kept(void **state)
{
	struct dialogue *d = *state;

	give_history(d);
	d->base = 1000;
	get(d, "/api/tasks/t-1/events");
	reply_is(d, 200);
	reply_says(d, "{\"events\":[{\"seq\":1002,");
	get(d, "/api/tasks/t-1/events?after=994"); /* 995 is gone */
	refused_with(d, 410, "cursor_gone");
	reply_says(d, "\"oldest\":\"1000\"");
	get(d, "/api/tasks/t-1/events?after=995"); /* nothing of it lies between this and the log */
	reply_is(d, 200);
	get(d, "/api/tasks/t-1/events?after=1804");
	refused_with(d, 410, "cursor_gone");
}

static void a_history_compacted_behind_its_reader_is_never_skipped_silently(void **state)
{
	struct dialogue *d = *state;

	give_history(d);
	assert_int_equal(begin(d, HTTP_METHOD_GET, "/api/tasks/t-1/events?after=0", NULL), API_READ);
	api_read(&d->call);
	assert_int_equal(d->call.step, API_READ);
	d->base = 100;
	while (d->call.step == API_READ)
		api_read(&d->call);
	refused_with(d, 410, "cursor_gone");
	d->base = 0; /* without a cursor it is told what is left */
	begin(d, HTTP_METHOD_GET, "/api/tasks/t-1/events?limit=1000", NULL);
	api_read(&d->call);
	d->base = 100;
	while (d->call.step == API_READ)
		api_read(&d->call);
	reply_is(d, 200);
	reply_says(d, "{\"events\":[{\"seq\":106,");
}

static void the_last_events_of_a_task_are_told_though_the_log_begins_behind_them(void **state)
{
	struct dialogue *d = *state;

	give_history(d); /* events 1, 8, 15 … of task 1 */
	d->base = 1000;  /* 995 is the last that was taken out of the log */
	d->keeps = true;
	get(d, "/api/tasks/t-1/events?limit=1000");
	reply_is(d, 200);
	reply_says(d, "{\"events\":[{\"seq\":974,");
	reply_says(d, "{\"seq\":1002,");
	get(d, "/api/tasks/t-1/events?limit=2");
	reply_says(d, "{\"seq\":981,");
	reply_says(d, "\"next\":\"981\"}");
	get(d, "/api/tasks/t-1/events?after=981&limit=3");
	reply_says(d, "{\"events\":[{\"seq\":988,");
	reply_says(d, "{\"seq\":995,");
	reply_says(d, "\"next\":\"1002\"}");
	get(d, "/api/tasks/t-1/events?after=966"); /* 967 is gone */
	refused_with(d, 410, "cursor_gone");
	get(d, "/api/tasks/t-1/events?after=995&limit=1");
	reply_says(d, "{\"events\":[{\"seq\":1002,");
}

static void the_audit_goes_further_back_than_the_log(void **state)
{
	struct dialogue *d = *state;

	d->base = d->last = 1000;
	d->audit_base = 20;
	get(d, "/api/events?only=audit&limit=2");
	reply_is(d, 200);
	reply_says(d, "{\"events\":[{\"seq\":30,");
	reply_says(d, "\"type\":\"token.created\"");
	reply_says(d, "\"next\":\"40\"}");
	get(d, "/api/events?only=audit&after=995");
	reply_says(d, "{\"events\":[{\"seq\":1000,");
	get(d, "/api/events?only=audit&after=19");
	refused_with(d, 410, "cursor_gone");
	reply_says(d, "\"oldest\":\"20\"");
	get(d, "/api/events?only=all");
	refuses_field(d, "only");
	d->last = 1003; /* what is in the log and no audit is passed over */
	get(d, "/api/events?only=audit&after=1000");
	assert_true(is(d->call.reply.body, "{\"events\":[],\"next\":\"1003\"}"));
}

static void a_very_long_history_is_looked_through_from_the_cursor(void **state)
{
	struct dialogue *d = *state;

	d->last = d->task.version = 120001;
	d->every = 3;
	get(d, "/api/tasks/t-1/events?after=30&limit=2");
	reply_is(d, 200);
	reply_says(d, "{\"events\":[{\"seq\":31,");
	reply_says(d, "\"next\":\"34\"}");
	get(d, "/api/tasks/t-1/events?after=119990");
	reply_says(d, "{\"events\":[{\"seq\":119992,");
	reply_says(d, "\"next\":\"120001\"}");
}

static void no_slice_of_a_long_list_is_long(void **state)
{
	struct dialogue *d = *state;

	d->last = 5000;
	get(d, "/api/events?after=0&limit=1000");
	reply_says(d, "\"next\":\"1000\"}");
	assert_true(d->slices >= 10);
	give_history(d);
	get(d, "/api/tasks/t-1/events?limit=1000");
	assert_true(d->slices >= 5);
}

static void a_full_reply_ends_the_page_early(void **state)
{
	struct dialogue *d = *state;

	d->last = 100;
	buf_set_max(&d->body, 2000);
	get(d, "/api/events");
	reply_is(d, 200);
	reply_says(d, "{\"events\":[{\"seq\":1,");
	reply_hides(d, "\"seq\":100,");
}

static void whoever_accepts_a_stream_gets_one_from_its_cursor(void **state)
{
	struct dialogue *d = *state;

	d->request.accept = SPAN("text/html, Text/Event-Stream");
	assert_int_equal(say(d, HTTP_METHOD_GET, "/api/events?after=1", NULL), API_STREAM);
	assert_int_equal(d->call.stream_after, 1);
	assert_true(d->call.reply.stream);
	assert_true(is(d->call.reply.content_type, "text/event-stream"));
	d->request.last_event_id = SPAN("2"); /* a browser that comes back keeps its address */
	assert_int_equal(say(d, HTTP_METHOD_GET, "/api/events?after=1", NULL), API_STREAM);
	assert_int_equal(d->call.stream_after, 2);
}

static void a_stream_without_a_cursor_begins_with_the_oldest_kept(void **state)
{
	struct dialogue *d = *state;

	d->base = 2;
	d->request.accept = SPAN("text/event-stream");
	assert_int_equal(say(d, HTTP_METHOD_GET, "/api/events", NULL), API_STREAM);
	assert_int_equal(d->call.stream_after, 2);
}

static void a_stream_from_a_cursor_that_is_gone_is_refused(void **state)
{
	struct dialogue *d = *state;

	d->base = 2;
	d->request.accept = SPAN("text/event-stream");
	get(d, "/api/events?after=1");
	refused_with(d, 410, "cursor_gone");
	get(d, "/api/events?after=4");
	refused_with(d, 410, "cursor_gone");
	get(d, "/api/events?limit=5");
	refuses_field(d, "limit");
}

static void an_event_of_a_stream_is_one_line_of_data(void **state)
{
	struct dialogue *d = *state;
	struct record record = {
		.seq = 7, .wall_ms = 1, .kind = EVENT_SERVER_STARTED, .note = SPAN("\"a\":\r\n\"b\\n\"")};

	assert_int_equal(api_put_stream_event(&d->body, &record), 0);
	assert_true(is(buf_span(&d->body),
		"id: 7\nevent: server.started\n"
		"data: {\"seq\":7,\"time\":1,\"type\":\"server.started\",\"data\":{\"a\":  \"b\\n\"}}\n\n"));
	buf_set_max(&d->body, d->body.len + 10);
	size_t before = d->body.len;
	assert_int_equal(api_put_stream_event(&d->body, &record), -E2BIG);
	assert_int_equal(d->body.len, before);
}

/* An event with that fact, or about that subject, has such a member in its data. */
static void every_fact_and_subject_has_its_name(void **state)
{
	static const struct {
		enum event_kind kind;
		enum fact fact; /* FACT_COUNT: none, but the subject "s" */
		int64_t value;
		const char *member;
	} rows[] = {
		{EVENT_TASK_CLAIMED, FACT_GRANTED, 5, "\"data\":{\"leaseMs\":5}"},
		{EVENT_TASK_CLAIMED, FACT_NAME_ONLY, 1, "\"data\":{\"nameOnly\":true}"},
		{EVENT_TASK_CLAIMED, FACT_NAME_ONLY, 0, "\"data\":{}"},
		{EVENT_TASK_CLAIMED, FACT_CLASS, CLASS_TASK, "\"data\":{\"class\":\"task\"}"},
		{EVENT_TASK_CLAIMED, FACT_CLASS, 1000, "\"data\":{}"},
		{EVENT_WORKER_INACTIVE, FACT_REASON, WORKER_EXPIRED, "\"data\":{\"ended\":\"expired\"}"},
		{EVENT_WORKER_INACTIVE, FACT_REASON, 1000, "\"data\":{}"},
		{EVENT_TASK_CLAIMED, FACT_STAGE_FROM, STAGE_BUILDING,
			"\"data\":{\"fromStage\":\"building\"}"},
		{EVENT_TASK_CLAIMED, FACT_STAGE_FROM, 1000, "\"data\":{}"},
		{EVENT_TASK_CLAIMED, FACT_ACTION, ACTION_MERGE, "\"data\":{\"action\":\"merge\"}"},
		{EVENT_TASK_CLAIMED, FACT_ACTION, 1000, "\"data\":{}"},
		{EVENT_TASK_EXPIRED, FACT_NAMED, 1, "\"event\":\"worker.claim.expired\""},
		{EVENT_TASK_EXPIRED, FACT_TRIAL, 1, "\"data\":{\"trial\":true}"},
		{EVENT_SLOT_QUARANTINED, FACT_COUNT, 0, "\"data\":{\"slot\":\"s\"}"},
		{EVENT_SLOT_UNQUARANTINED, FACT_COUNT, 0, "\"data\":{\"slot\":\"s\"}"},
		{EVENT_SLOT_ASSIGNED, FACT_COUNT, 0, "\"data\":{\"slot\":\"s\"}"},
		{EVENT_WORKER_REGISTERED, FACT_COUNT, 0, "\"data\":{\"slot\":\"s\"}"},
		{EVENT_GATE_OPENED, FACT_COUNT, 0, "\"data\":{\"gate\":\"s\"}"},
		{EVENT_GATE_PASSED, FACT_COUNT, 0, "\"data\":{\"gate\":\"s\"}"},
		{EVENT_GATE_REJECTED, FACT_COUNT, 0, "\"data\":{\"gate\":\"s\"}"},
		{EVENT_QUEUE_PAUSED, FACT_COUNT, 0, "\"data\":{\"queue\":\"s\"}"},
	};
	struct dialogue *d = *state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct record record = {.seq = 1, .kind = rows[i].kind};
		if (rows[i].fact == FACT_COUNT)
			record.subject = SPAN("s");
		else
			record_fact(&record, rows[i].fact, rows[i].value);
		buf_clear(&d->body);
		assert_int_equal(api_put_stream_event(&d->body, &record), 0);
		if (!memmem(d->body.data, d->body.len, rows[i].member, strlen(rows[i].member)))
			fail_msg("no %s in %.*s", rows[i].member, SPAN_ARGS(buf_span(&d->body)));
	}
}

/* What is known of the task stands in the event as well. */
static void an_event_tells_how_its_task_stood(void **state)
{
	struct dialogue *d = *state;
	struct record record = {.seq = 1, .kind = EVENT_TASK_FAILED, .task = 36, .from = TASK_RUNNING};

	record.columns = (struct task){.state = TASK_FAILED,
		.attempt = 2,
		.fence = 7,
		.spent = 1,
		.crashes = 3,
		.code = CODE_STALLED,
		.stage = STAGE_BUILDING};
	assert_int_equal(api_put_stream_event(&d->body, &record), 0);
	d->call.reply.body = buf_span(&d->body);
	reply_says(d, "\"task\":\"t-10\"");
	reply_says(d,
		"{\"from\":\"running\",\"state\":\"failed\",\"attempt\":2,\"fence\":\"7\",\"spent\":1,\"crashes\":3,"
		"\"code\":\"STALLED\",\"stage\":\"building\"}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIALOGUE(events_are_told_from_a_cursor),
		DIALOGUE(now_is_the_cursor_of_the_last_event),
		DIALOGUE(without_a_cursor_the_oldest_kept_come_first),
		DIALOGUE(a_cursor_that_is_gone_is_never_skipped_silently),
		DIALOGUE(wrong_parameters_of_events_are_named),
		DIALOGUE(the_events_of_one_task_are_those_and_no_others),
		DIALOGUE(a_history_is_told_as_far_as_it_is_kept),
		DIALOGUE(a_history_compacted_behind_its_reader_is_never_skipped_silently),
		DIALOGUE(the_last_events_of_a_task_are_told_though_the_log_begins_behind_them),
		DIALOGUE(the_audit_goes_further_back_than_the_log),
		DIALOGUE(a_very_long_history_is_looked_through_from_the_cursor),
		DIALOGUE(no_slice_of_a_long_list_is_long),
		DIALOGUE(a_full_reply_ends_the_page_early),
		DIALOGUE(whoever_accepts_a_stream_gets_one_from_its_cursor),
		DIALOGUE(a_stream_without_a_cursor_begins_with_the_oldest_kept),
		DIALOGUE(a_stream_from_a_cursor_that_is_gone_is_refused),
		DIALOGUE(an_event_of_a_stream_is_one_line_of_data),
		DIALOGUE(every_fact_and_subject_has_its_name),
		DIALOGUE(an_event_tells_how_its_task_stood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
