/* A call of an HTTP client without a network: the test is the owner, and says what came of each step. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "wire/http/transfer.h"

#define REPLY "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

static const struct http_answer_limits limits = {.head_bytes_max = 256, .body_bytes_max = 64};
static const struct http_call reading = {
	.method = HTTP_METHOD_GET, .target = SPAN("/a"), .may_repeat = true, .timeout_ms = 900};
static const struct http_call changing = {
	.method = HTTP_METHOD_POST, .target = SPAN("/a"), .body = SPAN("{}"), .timeout_ms = 900};

static int set_up(void **state)
{
	static struct http_transfer transfer;
	const struct http_address address = {.host = "h", .port = 80};

	*state = &transfer;
	return http_transfer_init(&transfer, &address, &limits, 4096);
}

static int tear_down(void **state)
{
	http_transfer_done(*state);
	return 0;
}

static void begin(struct http_transfer *transfer, const struct http_call *call, bool connected)
{
	assert_int_equal(http_transfer_prepare(transfer, call), 0);
	http_transfer_start(transfer, connected, 0);
}

static void expect_end(const struct http_transfer *transfer, int fault, enum http_reach reach)
{
	assert_int_equal(transfer->state, HTTP_TRANSFER_DONE);
	assert_int_equal(transfer->fault, fault);
	assert_int_equal(http_transfer_reach(transfer), reach);
}

static void a_call_goes_from_its_address_to_its_reply(void **state)
{
	struct http_transfer *transfer = *state;

	begin(transfer, &changing, false);
	assert_int_equal(transfer->state, HTTP_TRANSFER_FIND);
	http_transfer_found(transfer, 1, 0);
	assert_int_equal(transfer->state, HTTP_TRANSFER_CONNECT);
	http_transfer_connected(transfer);
	http_transfer_sent(transfer);
	assert_true(span_equal(buf_span(&transfer->out),
		SPAN("POST /a HTTP/1.1\r\nHost: h:80\r\nContent-Type: application/json\r\n"
		     "Content-Length: 2\r\n\r\n{}")));
	http_transfer_received(transfer, SPAN("HTTP/1.1 200 OK\r\nContent-"));
	assert_true(http_transfer_is_under_way(transfer));
	http_transfer_received(transfer, SPAN("Length: 2\r\n\r\n{}"));
	expect_end(transfer, 0, HTTP_REACH_REPLY);
	assert_true(http_transfer_keeps(transfer));
}

static void an_address_that_does_not_answer_leaves_time_for_the_next(void **state)
{
	struct http_transfer *transfer = *state;

	begin(transfer, &changing, false);
	http_transfer_found(transfer, 3, 0);
	assert_int_equal(http_transfer_until(transfer), 300);
	http_transfer_late(transfer, 300);
	assert_int_equal(transfer->state, HTTP_TRANSFER_CONNECT);
	assert_int_equal(transfer->place, 1);
	assert_int_equal(http_transfer_until(transfer), 600);
	http_transfer_unconnected(transfer, -ECONNREFUSED, 400); /* what it did not need is for the last */
	assert_int_equal(transfer->place, 2);
	assert_int_equal(http_transfer_until(transfer), 900);
	http_transfer_connected(transfer);
	assert_int_equal(transfer->state, HTTP_TRANSFER_TALK);
	assert_int_equal(http_transfer_until(transfer), 900);
}

static void the_fault_of_the_last_address_is_that_of_the_call(void **state)
{
	struct http_transfer *transfer = *state;

	begin(transfer, &changing, false);
	http_transfer_found(transfer, 2, 0);
	http_transfer_late(transfer, 450);
	http_transfer_unconnected(transfer, -ECONNREFUSED, 500);
	expect_end(transfer, -ECONNREFUSED, HTTP_REACH_NOTHING);
	begin(transfer, &changing, false);
	http_transfer_found(transfer, 0, 0);
	expect_end(transfer, -EHOSTUNREACH, HTTP_REACH_NOTHING);
}

static void no_address_is_tried_when_the_time_is_over(void **state)
{
	struct http_transfer *transfer = *state;

	begin(transfer, &reading, false);
	http_transfer_found(transfer, 3, 0);
	http_transfer_late(transfer, 900); /* somebody slept */
	expect_end(transfer, -ETIMEDOUT, HTTP_REACH_NOTHING);
}

static void a_kept_connection_that_was_closed_is_replaced_once(void **state)
{
	struct http_transfer *transfer = *state;

	begin(transfer, &reading, true);
	assert_int_equal(transfer->state, HTTP_TRANSFER_TALK);
	http_transfer_sent(transfer);
	http_transfer_closed(transfer, 0);
	assert_int_equal(transfer->state, HTTP_TRANSFER_FIND);
	assert_int_equal(http_transfer_reach(transfer), HTTP_REACH_NOTHING);
	http_transfer_found(transfer, 1, 10);
	http_transfer_connected(transfer);
	http_transfer_sent(transfer);
	http_transfer_closed(transfer, -EPIPE);
	expect_end(transfer, -EPIPE, HTTP_REACH_UNKNOWN);
}

static void a_call_that_changes_something_is_sent_once(void **state)
{
	struct http_transfer *transfer = *state;

	begin(transfer, &changing, true);
	http_transfer_sent(transfer);
	http_transfer_closed(transfer, 0);
	expect_end(transfer, -ECONNRESET, HTTP_REACH_UNKNOWN);
	assert_false(http_transfer_keeps(transfer));
}

static void a_reply_that_began_is_not_asked_for_again(void **state)
{
	struct http_transfer *transfer = *state;

	begin(transfer, &reading, true);
	http_transfer_sent(transfer);
	http_transfer_received(transfer, SPAN("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"));
	http_transfer_closed(transfer, 0);
	expect_end(transfer, -EPROTO, HTTP_REACH_REPLY);
	begin(transfer, &reading, true);
	http_transfer_sent(transfer);
	http_transfer_received(transfer, SPAN("nonsense"));
	expect_end(transfer, -EPROTO, HTTP_REACH_REPLY);
}

static void a_stream_is_over_with_its_head_and_goes_on(void **state)
{
	struct http_transfer *transfer = *state;

	begin(transfer, &reading, false);
	http_transfer_found(transfer, 1, 0);
	http_transfer_connected(transfer);
	http_transfer_sent(transfer);
	http_transfer_received(
		transfer, SPAN("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nda"));
	assert_int_equal(transfer->state, HTTP_TRANSFER_STREAM);
	assert_false(http_transfer_is_under_way(transfer));
	http_transfer_received(transfer, SPAN("ta"));
	assert_true(span_equal(http_answer_body(transfer->answer), SPAN("data")));
	http_transfer_closed(transfer, 0);
	expect_end(transfer, 0, HTTP_REACH_REPLY);
	assert_false(http_transfer_keeps(transfer));
}

static void a_reply_that_does_not_come_is_late(void **state)
{
	struct http_transfer *transfer = *state;

	begin(transfer, &reading, true);
	http_transfer_sent(transfer);
	http_transfer_late(transfer, 900);
	expect_end(transfer, -ETIMEDOUT, HTTP_REACH_UNKNOWN);
}

static void a_header_with_a_line_end_is_not_sent(void **state)
{
	struct http_transfer *transfer = *state;
	struct http_call call = reading;

	call.token = SPAN("a\r\nb: c");
	assert_int_equal(http_transfer_prepare(transfer, &call), -EINVAL);
	call = reading;
	call.target = SPAN("/a b");
	assert_int_equal(http_transfer_prepare(transfer, &call), -EINVAL);
	begin(transfer, &reading, true); /* and the next one is as good as any */
	http_transfer_sent(transfer);
	http_transfer_received(transfer, SPAN(REPLY));
	expect_end(transfer, 0, HTTP_REACH_REPLY);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void every_header_of_a_call_is_written(void **state)
{
	const struct http_address address = {.host = "::1", .port = 80, .prefix = "/p"};
	struct http_call call = changing;
	struct buf out;

	(void)state;
	buf_init(&out, 4096);
	call.method = HTTP_METHOD_GET; /* with a body, of which the server is told */
	assert_int_equal(http_put_request(&out, &address, &call), 0);
	assert_true(span_equal(buf_span(&out),
		SPAN("GET /p/a HTTP/1.1\r\nHost: [::1]:80\r\nContent-Type: application/json\r\n"
		     "Content-Length: 2\r\n\r\n{}")));
	call = (struct http_call){.method = HTTP_METHOD_DELETE,
		.target = SPAN("/a"),
		.host = SPAN("h"),
		.origin = SPAN("o"),
		.content_type = SPAN("t")};
	assert_int_equal(http_put_request(&out, &address, &call), 0);
	assert_true(span_equal(buf_span(&out),
		SPAN("DELETE /p/a HTTP/1.1\r\nHost: h\r\nOrigin: o\r\nContent-Length: 0\r\n\r\n")));
	buf_done(&out);
}

static void control_bytes_are_sent_nowhere(void **state)
{
	const struct http_address local = {.local = true};
	struct http_call call = reading;
	struct buf out;

	(void)state;
	buf_init(&out, 4096);
	call.target = SPAN("/a\x7f");
	assert_int_equal(http_put_request(&out, &local, &call), -EINVAL);
	call.target = SPAN("/a\n");
	assert_int_equal(http_put_request(&out, &local, &call), -EINVAL);
	call.target = SPAN("/a");
	assert_int_equal(http_put_request(&out, &local, &call), 0);
	assert_true(span_equal(buf_span(&out), SPAN("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n")));
	buf_done(&out);
}

static void only_a_good_reply_of_that_type_is_a_stream(void **state)
{
	static const char *const heads[] = {"HTTP/1.1 503 No\r\nContent-Type: text/event-stream\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Type: text/event\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Type: application/json; a=b\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"};
	struct http_transfer *transfer = *state;

	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		begin(transfer, &reading, true);
		http_transfer_sent(transfer);
		http_transfer_received(transfer, span_of(heads[i]));
		assert_int_equal(transfer->state, HTTP_TRANSFER_TALK);
		http_transfer_closed(transfer, 0);
		expect_end(transfer, 0, HTTP_REACH_REPLY);
		assert_false(http_transfer_keeps(transfer));
	}
}

static void an_owner_may_end_a_call_for_reasons_of_its_own(void **state)
{
	struct http_transfer *transfer = *state;

	begin(transfer, &reading, false);
	assert_false(http_transfer_keeps(transfer));
	http_transfer_fail(transfer, -ECANCELED);
	expect_end(transfer, -ECANCELED, HTTP_REACH_NOTHING);
	begin(transfer, &reading, false);
	http_transfer_found(transfer, 1, 1000); /* the look-up took longer than the call may */
	assert_int_equal(http_transfer_until(transfer), 1000);
}

/* ---- several servers of one store ---- */

#define NOT_LEADER                                                                        \
	"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 21\r\nConnection: close\r\n" \
	"\r\n{\"code\":\"not_leader\"}"

static struct http_address two; /* the first of two servers */

static int set_up_two(void **state)
{
	static struct http_transfer transfer;
	const char *complaint;

	*state = &transfer;
	assert_int_equal(http_address_parse_all("http://a:1,http://b:2/p", &two, &complaint), 0);
	return http_transfer_init(&transfer, &two, &limits, 4096);
}

static int tear_down_two(void **state)
{
	int r = tear_down(state);

	http_address_done(&two);
	return r;
}

static void reply(struct http_transfer *transfer, struct span bytes)
{
	http_transfer_found(transfer, 1, 0);
	http_transfer_connected(transfer);
	http_transfer_sent(transfer);
	http_transfer_received(transfer, bytes);
}

static void a_server_that_is_not_reached_leaves_the_call_to_the_next(void **state)
{
	struct http_transfer *transfer = *state;

	begin(transfer, &changing, false);
	http_transfer_found(transfer, 1, 0);
	assert_int_equal(http_transfer_until(transfer), 450); /* the other one has half of the time */
	http_transfer_unconnected(transfer, -ECONNREFUSED, 10);
	assert_int_equal(transfer->state, HTTP_TRANSFER_FIND);
	assert_string_equal(transfer->address.host, "b");
	assert_true(span_equal(buf_span(&transfer->out),
		SPAN("POST /p/a HTTP/1.1\r\nHost: b:2\r\nContent-Type: application/json\r\n"
		     "Content-Length: 2\r\n\r\n{}")));
	reply(transfer, SPAN(REPLY));
	expect_end(transfer, 0, HTTP_REACH_REPLY);
	begin(transfer, &changing, true); /* and the next call goes to the one that answered */
	assert_string_equal(transfer->address.host, "b");
}

static void a_server_that_does_not_lead_leaves_the_call_to_the_next(void **state)
{
	struct http_transfer *transfer = *state;

	begin(transfer, &changing,
		false); /* nothing was done, so it need not be a call that may be repeated */
	reply(transfer, SPAN(NOT_LEADER));
	assert_int_equal(transfer->state, HTTP_TRANSFER_FIND);
	assert_string_equal(transfer->address.host, "b");
	reply(transfer, SPAN(REPLY));
	expect_end(transfer, 0, HTTP_REACH_REPLY);
	assert_int_equal(http_answer_status(transfer->answer), 200);
}

static void each_server_is_asked_once(void **state)
{
	struct http_transfer *transfer = *state;

	begin(transfer, &changing, false);
	reply(transfer, SPAN(NOT_LEADER));
	reply(transfer, SPAN(NOT_LEADER));
	expect_end(transfer, 0, HTTP_REACH_REPLY);
	assert_int_equal(http_answer_status(transfer->answer), 503);
	begin(transfer, &changing, false);
	http_transfer_found(transfer, 0, 0);
	http_transfer_found(transfer, 0, 0);
	expect_end(transfer, -EHOSTUNREACH, HTTP_REACH_NOTHING);
}

static void a_change_whose_reply_was_lost_is_told_and_not_repeated_elsewhere(void **state)
{
	struct http_transfer *transfer = *state;

	begin(transfer, &changing, false);
	http_transfer_found(transfer, 1, 0);
	http_transfer_connected(transfer);
	http_transfer_sent(transfer);
	http_transfer_closed(transfer, -ECONNRESET);
	expect_end(transfer, -ECONNRESET, HTTP_REACH_UNKNOWN);
	begin(transfer, &changing, false);
	assert_string_equal(transfer->address.host, "b"); /* that server may be dead */
}

static void several_addresses_are_on_this_computer_if_all_are(void **state)
{
	static const char *const bad[] = {"http://a:1,", ",http://a:1", "http://a:1,ftp://b"};
	struct http_address address;
	const char *complaint;

	(void)state;
	assert_int_equal(http_address_parse_all("http://127.0.0.1:1, unix:/a.sock", &address, &complaint), 0);
	assert_true(http_address_is_loopback(&address));
	assert_string_equal(address.next->path, "/a.sock");
	http_address_done(&address);
	assert_int_equal(http_address_parse_all("http://127.0.0.1:1,http://b:2", &address, &complaint), 0);
	assert_false(http_address_is_loopback(&address));
	http_address_done(&address);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(http_address_parse_all(bad[i], &address, &complaint), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_call_goes_from_its_address_to_its_reply),
		TEST(an_address_that_does_not_answer_leaves_time_for_the_next),
		TEST(the_fault_of_the_last_address_is_that_of_the_call),
		TEST(no_address_is_tried_when_the_time_is_over),
		TEST(a_kept_connection_that_was_closed_is_replaced_once),
		TEST(a_call_that_changes_something_is_sent_once),
		TEST(a_reply_that_began_is_not_asked_for_again),
		TEST(a_stream_is_over_with_its_head_and_goes_on),
		TEST(a_reply_that_does_not_come_is_late),
		TEST(a_header_with_a_line_end_is_not_sent),
		TEST(every_header_of_a_call_is_written),
		TEST(control_bytes_are_sent_nowhere),
		TEST(only_a_good_reply_of_that_type_is_a_stream),
		TEST(an_owner_may_end_a_call_for_reasons_of_its_own),
		cmocka_unit_test_setup_teardown(
			a_server_that_is_not_reached_leaves_the_call_to_the_next, set_up_two, tear_down_two),
		cmocka_unit_test_setup_teardown(
			a_server_that_does_not_lead_leaves_the_call_to_the_next, set_up_two, tear_down_two),
		cmocka_unit_test_setup_teardown(each_server_is_asked_once, set_up_two, tear_down_two),
		cmocka_unit_test_setup_teardown(
			a_change_whose_reply_was_lost_is_told_and_not_repeated_elsewhere, set_up_two,
			tear_down_two),
		cmocka_unit_test(several_addresses_are_on_this_computer_if_all_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
