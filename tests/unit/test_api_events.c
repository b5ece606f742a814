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

static void the_events_of_one_task_are_those_and_no_others(void **state)
{
	struct dialogue *d = *state;

	d->last = 1800;
	get(d, "/api/tasks/t-1/events");
	reply_is(d, 200);
	reply_says(d, "{\"events\":[{\"seq\":1,");
	reply_hides(d, "\"seq\":2,");
	reply_says(d, "\"next\":\"1800\"}");
	get(d, "/api/tasks/t-1/events?limit=1");
	reply_says(d, "\"next\":\"1\"}");
	get(d, "/api/tasks/x/events");
	refused_with(d, 404, "not_found");
}

static void a_full_reply_ends_the_page_early(void **state)
{
	struct dialogue *d = *state;

	d->last = 100;
	d->body.max = 2000;
	get(d, "/api/events");
	reply_is(d, 200);
	reply_says(d, "{\"events\":[{\"seq\":1,");
	reply_hides(d, "\"seq\":100,");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIALOGUE(events_are_told_from_a_cursor),
		DIALOGUE(without_a_cursor_the_oldest_kept_come_first),
		DIALOGUE(a_cursor_that_is_gone_is_never_skipped_silently),
		DIALOGUE(wrong_parameters_of_events_are_named),
		DIALOGUE(the_events_of_one_task_are_those_and_no_others),
		DIALOGUE(a_full_reply_ends_the_page_early),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
