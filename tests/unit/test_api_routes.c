#include "api_fixture.h"

static void an_unknown_path_is_not_found(void **state)
{
	struct dialogue *d = *state;

	get(d, "/api/nothing");
	refused_with(d, 404, "not_found");
	get(d, "/api/tasks/t-1/nothing");
	refused_with(d, 404, "not_found");
	get(d, "/api/tasks/");
	refused_with(d, 404, "not_found");
}

static void a_known_path_with_another_method_names_those_it_has(void **state)
{
	struct dialogue *d = *state;

	say(d, HTTP_METHOD_DELETE, "/api/tasks/t-1", NULL);
	refused_with(d, 405, "method_not_allowed");
	assert_true(is(d->call.reply.allow, "GET, HEAD, PUT, PATCH"));
	say(d, HTTP_METHOD_OTHER, "/api/claims", NULL);
	refused_with(d, 405, "method_not_allowed");
	assert_true(is(d->call.reply.allow, "POST"));
}

static void without_a_credential_only_health_answers(void **state)
{
	struct dialogue *d = *state;

	d->call.who = (struct principal){0};
	get(d, "/api/tasks");
	refused_with(d, 401, "unauthorized");
	assert_true(is(d->call.reply.authenticate, "Bearer"));
	get(d, "/api/nothing");
	refused_with(d, 401, "unauthorized");
	get(d, "/api/version");
	refused_with(d, 401, "unauthorized");
	assert_int_equal(get(d, "/livez"), 200);
	assert_int_equal(get(d, "/readyz"), 200);
}

static void every_route_asks_for_its_scope(void **state)
{
	struct dialogue *d = *state;

	d->call.who.scopes = SCOPE_BIT(SCOPE_READ);
	post(d, "/api/tasks", "{}");
	refused_with(d, 403, "forbidden");
	post(d, "/api/claims", "{}");
	refused_with(d, 403, "forbidden");
	post(d, "/api/tasks/t-1/cancel", NULL);
	refused_with(d, 403, "forbidden");
	d->call.who.scopes = SCOPE_BIT(SCOPE_WORK);
	get(d, "/api/events");
	refused_with(d, 403, "forbidden");
	get(d, "/api/workers");
	refused_with(d, 403, "forbidden");
	assert_int_equal(get(d, "/api/tasks"), 200); /* either of two will do */
	d->call.who.scopes = SCOPE_BIT(SCOPE_ADMIN);
	assert_int_equal(get(d, "/api/tasks"), 200);
}

static void any_credential_may_read_the_contract(void **state)
{
	struct dialogue *d = *state;

	d->call.who = (struct principal){0};
	get(d, "/api/openapi.json");
	refused_with(d, 401, "unauthorized");
	d->call.who.scopes = SCOPE_BIT(SCOPE_METRICS);
	assert_int_equal(get(d, "/api/openapi.json"), 200);
	reply_is(d, 200);
	reply_says(d, "\"openapi\": \"3.1.0\"");
	assert_true(d->call.reply.revalidate);
	struct span etag = d->call.reply.etag;
	assert_true(etag.len > 2);
	d->request.if_none_match = etag;
	assert_int_equal(get(d, "/api/openapi.json"), 304);
	assert_int_equal(d->call.reply.body.len, 0);
	d->request.if_none_match = SPAN("\"another\"");
	assert_int_equal(get(d, "/api/openapi.json"), 200);
}

static void a_body_must_be_declared_as_json(void **state)
{
	struct dialogue *d = *state;

	d->request.content_type = SPAN("text/plain");
	post(d, "/api/tasks", "{}");
	refused_with(d, 415, "unsupported_media_type");
	d->request.content_type = (struct span){0};
	post(d, "/api/tasks", "{}");
	refused_with(d, 415, "unsupported_media_type");
	assert_int_equal(post(d, "/api/tasks/t-1/cancel", NULL), API_TURN);
	d->request.content_type = SPAN("Application/JSON; charset=utf-8");
	assert_int_equal(post(d, "/api/tasks", "{}"), API_TURN);
	d->request.content_type = SPAN("application/merge-patch+json");
	post(d, "/api/tasks", "{}");
	refused_with(d, 415, "unsupported_media_type");
	assert_int_equal(say(d, HTTP_METHOD_PATCH, "/api/queues/q", "{\"review\":1}"), API_TURN);
}

static void what_is_not_json_is_a_bad_request(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/tasks", "{\"title\":");
	refused_with(d, 400, "bad_request");
	post(d, "/api/claims", "{\"workerId\":\"w\",\"workerId\":\"v\"}");
	refused_with(d, 400, "bad_request");
	post(d, "/api/claims", "[]");
	refuses_field(d, "");
}

static void a_body_above_the_limit_of_its_route_is_too_large(void **state)
{
	struct dialogue *d = *state;
	size_t len = 65 << 10;
	char *body = arena_alloc(&d->arena, len + 1);

	memset(body, ' ', len);
	post(d, "/api/workers/heartbeat", body);
	refused_with(d, 413, "too_large");
	say(d, HTTP_METHOD_GET, "/api/tasks", "{}");
	refused_with(d, 413, "too_large");
	post(d, "/api/tasks", body);
	refused_with(d, 400, "bad_request"); /* within its limit, and no JSON */
}

static void path_parameters_are_decoded(void **state)
{
	struct dialogue *d = *state;

	post(d, "/api/slots/w1%2Fpool-1/crash", NULL);
	assert_true(is(becomes(d, COMMAND_SLOT_CRASH)->slot, "w1/pool-1"));
	post(d, "/api/slots/w1%2/crash", NULL);
	refused_with(d, 400, "bad_request");
	post(d, "/api/slots/w1%ff/crash", NULL);
	refused_with(d, 400, "bad_request"); /* nobody could name it in JSON */
	post(d, "/api/queues/%ed%a0%80/pause", NULL);
	refused_with(d, 400, "bad_request");
	post(d, "/api/queues/gr%C3%BCn/pause", NULL);
	assert_true(is(becomes(d, COMMAND_QUEUE_SET)->queue_set.queue, "gr\xc3\xbcn"));
	post(d, "/api/queues/a%0Ab/pause", NULL);
	refuses_field(d, "name");
}

static void an_id_that_nothing_can_have_is_not_found(void **state)
{
	struct dialogue *d = *state;
	char url[256];

	snprintf(url, sizeof url, "/api/tasks/%0129d/cancel", 0);
	post(d, url, NULL);
	refused_with(d, 404, "not_found");
	post(d, "/api/workers/a%0Ab/quiet", NULL);
	refused_with(d, 404, "not_found");
}

static void head_is_get_without_the_body(void **state)
{
	struct dialogue *d = *state;

	say(d, HTTP_METHOD_HEAD, "/api/tasks/t-1", NULL);
	reply_is(d, 200);
	assert_true(d->call.reply.head);
	say(d, HTTP_METHOD_HEAD, "/api/tasks/t-2", NULL);
	reply_is(d, 404);
	assert_true(d->call.reply.head);
}

static void an_unknown_parameter_of_a_query_is_named(void **state)
{
	struct dialogue *d = *state;

	get(d, "/api/tasks?staus=todo");
	refuses_field(d, "staus");
	get(d, "/api/workers?x=1");
	refuses_field(d, "x");
	get(d, "/api/tasks?limit=1&limit=2");
	refuses_field(d, "limit");
	get(d, "/api/tasks/t-1?verbose=1");
	refuses_field(d, "verbose");
	get(d, "/livez?x");
	refuses_field(d, "x");
	post(d, "/api/tasks?queue=q", "{}");
	refuses_field(d, "queue");
	say(d, HTTP_METHOD_PATCH, "/api/tasks/t-1?force=1", "{\"title\":\"new\"}");
	refuses_field(d, "force");
}

static void health_and_version(void **state)
{
	struct dialogue *d = *state;

	get(d, "/livez");
	reply_is(d, 200);
	get(d, "/api/version");
	reply_is(d, 200);
	reply_says(d, "\"name\":\"stint\"");
	d->degraded = true;
	get(d, "/readyz");
	refused_with(d, 503, "unavailable");
	d->degraded = false;
	d->draining = true;
	get(d, "/readyz");
	refused_with(d, 503, "unavailable");
	assert_int_equal(get(d, "/livez"), 200);
}

static void queues_are_listed_and_set(void **state)
{
	struct dialogue *d = *state;

	get(d, "/api/queues");
	reply_is(d, 200);
	reply_says(d,
		"[{\"name\":\"q\",\"state\":\"open\",\"ready\":7,\"tasks\":{\"pending\":0,\"scheduled\":0,\"waiting\":0,\"ready\":7,");
	reply_says(d,
		"\"running\":2,\"asking\":0,\"review\":0,\"blocked\":0},\"live\":0,\"workers\":3},{\"name\":\"later\",\"state\":\"paused\"");
	post(d, "/api/queues/q/pause", NULL);
	assert_int_equal(becomes(d, COMMAND_QUEUE_SET)->queue_set.state, QUEUE_PAUSED);
	post(d, "/api/queues/q/resume", "{}");
	assert_int_equal(becomes(d, COMMAND_QUEUE_SET)->queue_set.state, QUEUE_OPEN);
	post(d, "/api/queues/q/drain", NULL);
	assert_true(is(becomes(d, COMMAND_QUEUE_SET)->queue_set.queue, "q"));
	finish(d);
	reply_is(d, 200);
	reply_says(d, "{\"name\":\"q\",\"state\":\"draining\"}");
	post(d, "/api/queues/q/drain", "{\"now\":true}");
	refuses_field(d, "now");
}

static void problems_before_there_is_a_call(void **state)
{
	struct dialogue *d = *state;

	struct http_request request = {.path = SPAN("/api/tasks")};

	d->call = (struct api_call){.request = &request, .body = &d->body};
	api_refuse(&d->call, REFUSED_WRONG_HOST, "say \"localhost\"");
	reply_says(d, "\"title\":\"the Host header names no name of this server\"");
	reply_says(d, "\"status\":421,\"code\":\"wrong_host\",\"detail\":\"say \\\"localhost\\\"\"}");
	request.path = SPAN("/api/workqueue/done");
	api_refuse(&d->call, REFUSED_TOO_LARGE, "The body is too large.");
	reply_says(
		d, "{\"ok\":false,\"error\":\"request_too_large\",\"message\":\"The body is too large.\"}");
	request.path = (struct span){0}; /* it was never understood */
	api_refuse_early(&d->call, 431, "no");
	reply_says(d, "\"title\":\"the request cannot be read\",\"status\":431,\"code\":\"bad_request\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIALOGUE(an_unknown_path_is_not_found),
		DIALOGUE(a_known_path_with_another_method_names_those_it_has),
		DIALOGUE(without_a_credential_only_health_answers),
		DIALOGUE(every_route_asks_for_its_scope),
		DIALOGUE(any_credential_may_read_the_contract),
		DIALOGUE(a_body_must_be_declared_as_json),
		DIALOGUE(what_is_not_json_is_a_bad_request),
		DIALOGUE(a_body_above_the_limit_of_its_route_is_too_large),
		DIALOGUE(path_parameters_are_decoded),
		DIALOGUE(an_id_that_nothing_can_have_is_not_found),
		DIALOGUE(head_is_get_without_the_body),
		DIALOGUE(an_unknown_parameter_of_a_query_is_named),
		DIALOGUE(health_and_version),
		DIALOGUE(queues_are_listed_and_set),
		DIALOGUE(problems_before_there_is_a_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
