/* Beats as JSON: what is written, and what is made of the server's words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "worker/beat/text.h"
#include "attempt/retry.h"

struct world {
	struct http_answer *http;
	struct arena arena;
	struct buf out;
	struct beat_answer answer;
	struct beat_said said;
};

static int set_up(void **state)
{
	static struct world world;
	struct http_answer_limits limits = http_answer_limits_default();

	world = (struct world){.http = http_answer_new(&limits)};
	arena_init(&world.arena, 1 << 20);
	buf_init(&world.out, 1 << 20);
	*state = &world;
	return world.http ? 0 : -1;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	http_answer_free(w->http);
	arena_done(&w->arena);
	buf_done(&w->out);
	return 0;
}

static void writes(struct world *w, const struct beat_request *request, const char *expected)
{
	assert_int_equal(beat_put(&w->out, request, SPAN("w"), SPAN("\"slot\":\"s\"")), 0);
	assert_int_equal(buf_put_byte(&w->out, 0), 0);
	assert_string_equal(w->out.data, expected);
}

static void hears(struct world *w, const char *head, const char *body)
{
	char text[4096];

	snprintf(text, sizeof text, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s", head, strlen(body), body);
	http_answer_reset(w->http);
	assert_int_equal(http_answer_feed(w->http, span_of(text)), 0);
	beat_read(w->http, &w->arena, &w->answer, &w->said);
}

static void who_it_is_goes_with_the_registration_alone(void **state)
{
	struct beat_request request = {.registers = true, .lease_ms = 60000};

	writes(*state, &request, "{\"workerId\":\"w\",\"leaseMs\":60000,\"slot\":\"s\"}");
}

static void a_beat_has_its_token_and_what_changed(void **state)
{
	struct beat_request request = {.token = SPAN("7"),
		.lease_ms = 60000,
		.bound = {SPAN("a"), SPAN("b\"")},
		.bound_count = 2,
		.unbound = {SPAN("c")},
		.unbound_count = 1};

	writes(*state, &request,
		"{\"workerId\":\"w\",\"leaseMs\":60000,\"token\":\"7\",\"boundTasks\":[\"a\",\"b\\\"\"],"
		"\"unboundTasks\":[\"c\"]}");
}

static void an_accepted_beat_is_read_with_what_is_lost_and_what_to_do(void **state)
{
	struct world *w = *state;

	hears(w, "200 OK",
		"{\"workerId\":\"w\",\"state\":\"quiet\",\"token\":\"8\",\"leaseMs\":60000,\"lost\":[\"a\"],"
		"\"commands\":[{\"type\":\"cancel\",\"task\":\"b\"},{\"type\":\"park\",\"task\":\"c\"},{\"type\":\"tell\",\"task\":\"d\"},{\"type\":\"dance\"},{\"type\":\"quiet\"}]}");
	assert_int_equal(w->answer.outcome, BEAT_ACCEPTED);
	assert_true(span_equal(w->answer.token, SPAN("8")));
	assert_int_equal(w->answer.lease_ms, 60000);
	assert_int_equal(w->answer.lost_count, 1);
	assert_true(span_equal(w->answer.lost[0], SPAN("a")));
	assert_int_equal(w->answer.command_count, 3);
	assert_int_equal(w->answer.commands[0].kind, BEAT_CANCEL);
	assert_true(span_equal(w->answer.commands[0].task, SPAN("b")));
	assert_int_equal(w->answer.commands[1].kind, BEAT_PARK);
	assert_true(span_equal(w->answer.commands[1].task, SPAN("c")));
	assert_int_equal(w->answer.commands[2].kind, BEAT_TOLD);
	assert_int_equal(w->answer.standing, BEAT_QUIET);
}

static void the_refusals_of_the_protocol_are_told_apart(void **state)
{
	struct world *w = *state;

	hears(w, "409 Conflict", "{\"code\":\"TOKEN_MISMATCH\",\"token\":\"9\"}");
	assert_int_equal(w->answer.outcome, BEAT_TOKEN_MISMATCH);
	assert_true(span_equal(w->answer.token, SPAN("9")));
	hears(w, "410 Gone", "{\"code\":\"WORKER_INACTIVE\"}");
	assert_int_equal(w->answer.outcome, BEAT_WORKER_INACTIVE);
	hears(w, "409 Conflict", "{\"code\":\"slot_taken\",\"detail\":\"taken\",\"holder\":\"other\"}");
	assert_int_equal(w->answer.outcome, BEAT_REFUSED);
	assert_true(span_equal(w->said.slot_holder, SPAN("other")));
}

static void a_server_that_is_busy_says_when(void **state)
{
	struct world *w = *state;

	hears(w, "503 Service Unavailable\r\nRetry-After: 7", "{}");
	assert_int_equal(w->answer.outcome, BEAT_BUSY);
	assert_int_equal(w->answer.retry_after_ms, 7000);
	hears(w, "429 Too Many Requests\r\nRetry-After: 99999999999999999999", "{}");
	assert_int_equal(w->answer.outcome, BEAT_BUSY);
	assert_int_equal(w->answer.retry_after_ms, 24 * 3600 * 1000);
	hears(w, "503 Service Unavailable", "{}");
	assert_int_equal(w->answer.outcome, BEAT_UNANSWERED);
}

static void what_cannot_be_understood_is_no_answer(void **state)
{
	struct world *w = *state;
	static const char *const bodies[] = {"", "{", "[]", "{}", "{\"token\":\"8\"}", "{\"leaseMs\":60000}",
		"{\"token\":8,\"leaseMs\":60000}", "{\"token\":\"8\",\"leaseMs\":\"long\"}"};

	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		hears(w, "200 OK", bodies[i]);
		assert_int_equal(w->answer.outcome, BEAT_UNANSWERED);
	}
	hears(w, "500 Internal Server Error", "");
	assert_int_equal(w->answer.outcome, BEAT_UNANSWERED);
	hears(w, "400 Bad Request", "what?");
	assert_int_equal(w->answer.outcome, BEAT_REFUSED);
}

static void news_are_asked_for_by_the_place_of_the_last_answer(void **state)
{
	struct world *w = *state;
	int64_t seq = 7;

	assert_int_equal(news_put_target(&w->out, SPAN("a/b"), seq), 0);
	assert_int_equal(buf_put_byte(&w->out, 0), 0);
	assert_string_equal(w->out.data, "/api/workers/a%2Fb/news?after=7&waitMs=30000");
	hears(w, "200 OK", "{\"workerId\":\"a/b\",\"news\":true,\"seq\":12}");
	assert_true(news_read(w->http, &seq));
	assert_int_equal(seq, 12);
	hears(w, "200 OK", "{\"news\":false,\"seq\":15}");
	assert_false(news_read(w->http, &seq));
	assert_int_equal(seq, 15);
	hears(w, "200 OK", "<html>");
	assert_false(news_read(w->http, &seq));
	hears(w, "200 OK", "{\"news\":\"true\",\"seq\":-1}");
	assert_false(news_read(w->http, &seq));
	assert_int_equal(seq, 15);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(who_it_is_goes_with_the_registration_alone),
		T(a_beat_has_its_token_and_what_changed),
		T(an_accepted_beat_is_read_with_what_is_lost_and_what_to_do),
		T(the_refusals_of_the_protocol_are_told_apart),
		T(a_server_that_is_busy_says_when),
		T(what_cannot_be_understood_is_no_answer),
		T(news_are_asked_for_by_the_place_of_the_last_answer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
