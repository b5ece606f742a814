#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"

/* ---- somebody who reads the log ---- */

static int ends[2];
static char heard[1 << 20];

static void listen_as(enum log_format format, enum log_level level)
{
	assert_int_equal(pipe(ends), 0);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	log_start(ends[1], format, level);
}

static const char *hear(void)
{
	size_t len = 0;
	ssize_t got;

	while ((got = read(ends[0], heard + len, sizeof heard - 1 - len)) > 0)
		len += (size_t)got;
	heard[len] = 0;
	return heard;
}

static int hang_up(void **state)
{
	(void)state;
	log_start(STDERR_FILENO, LOG_FORMAT_TEXT, LEVEL_INFO);
	close(ends[0]);
	close(ends[1]);
	return 0;
}

/* What follows the time. */
static const char *hear_after_time(void)
{
	const char *line = hear();
	const char *rest = strchr(line, line[0] == '{' ? ',' : ' ');

	assert_non_null(rest);
	return rest + 1;
}

/* ---- the line ---- */

static void a_line_is_json_with_its_fields(void **state)
{
	(void)state;
	listen_as(LOG_FORMAT_JSON, LEVEL_INFO);
	log_info("listening", log_cstr("url", "http://127.0.0.1:8787"), log_int("tasks", -3));
	assert_string_equal(hear_after_time(),
		"\"level\":\"info\",\"msg\":\"listening\",\"url\":\"http://127.0.0.1:8787\",\"tasks\":-3}\n");
}

static void a_line_for_people_is_short(void **state)
{
	(void)state;
	listen_as(LOG_FORMAT_TEXT, LEVEL_INFO);
	log_warn("slow turn", log_int("ms", 1200), log_cstr("why", "a \"b\""), log_cstr("none", ""));
	assert_string_equal(hear_after_time(), "warn  slow turn ms=1200 why=\"a \\\"b\\\"\" none=\"\"\n");
}

static void what_is_no_terminal_gets_json(void **state)
{
	(void)state;
	listen_as(LOG_FORMAT_AUTO, LEVEL_INFO);
	log_info("here");
	assert_int_equal(hear()[0], '{');
}

static int never(int *calls)
{
	return ++*calls;
}

static void a_level_that_is_not_wanted_costs_nothing(void **state)
{
	int calls = 0;

	(void)state;
	listen_as(LOG_FORMAT_JSON, LEVEL_WARN);
	log_info("no", log_int("calls", never(&calls)));
	log_debug("no", log_int("calls", never(&calls)));
	assert_string_equal(hear(), "");
	assert_int_equal(calls, 0);
	log_error("yes", log_int("calls", never(&calls)));
	assert_non_null(strstr(hear(), "\"calls\":1"));
}

static void control_characters_cannot_leave_their_string(void **state)
{
	(void)state;
	listen_as(LOG_FORMAT_JSON, LEVEL_INFO);
	log_info("m", log_span("a", SPAN("x\n{\"level\":\"error\"}\x1b[2J\x7f\0y")),
		log_span("b",
			SPAN("\xc2\x9b"
			     "2J \xc3\xbc \xff")));
	assert_non_null(strstr(hear(),
		"\"a\":\"x\\n{\\\"level\\\":\\\"error\\\"}\\u001b[2J\\u007f\\u0000y\",\"b\":\"\\u009b2J \xc3\xbc \xef\xbf\xbd\"}\n"));
}

static void a_long_line_is_cut_and_says_so(void **state)
{
	static char text[10000];

	(void)state;
	memset(text, 'x', sizeof text - 1);
	memset(text + 3000, '"', 3000);
	listen_as(LOG_FORMAT_JSON, LEVEL_INFO);
	log_info("m", log_cstr("text", text), log_int("after", 1));
	const char *line = hear();
	assert_true(strlen(line) <= LOG_LINE_BYTES_MAX);
	assert_true(strlen(line) > LOG_LINE_BYTES_MAX - 64);
	static const char end[] = "…\",\"cut\":true}\n";
	assert_string_equal(line + strlen(line) - strlen(end), end);
	assert_null(strstr(line, "after"));
}

static void every_length_ends_well(void **state)
{
	static char text[LOG_LINE_BYTES_MAX + 100];

	(void)state;
	listen_as(LOG_FORMAT_JSON, LEVEL_INFO);
	for (size_t len = LOG_LINE_BYTES_MAX - 200; len < sizeof text - 1; len++) {
		memset(text, 'x', len);
		text[len] = 0;
		log_info("m", log_cstr("a", text), log_cstr("b", "\xc3\xbc"), log_int("c", INT64_MIN));
		const char *line = hear();
		size_t end = strlen(line);
		assert_true(end > 2 && end <= LOG_LINE_BYTES_MAX);
		assert_string_equal(line + end - 2, "}\n");
		assert_ptr_equal(strchr(line, '\n'), line + end - 1);
	}
}

/* ---- secrets ---- */

static void a_token_comes_out_as_stars(void **state)
{
	(void)state;
	listen_as(LOG_FORMAT_JSON, LEVEL_INFO);
	log_info("stint_admin_0011_AbC-_x is here", log_cstr("a", "Bearer stint_worker_00ff_se-c_ret, more"),
		log_cstr("b", "stint_gate:merge_1_x"), log_cstr("c", "stint_admin_half"),
		log_cstr("d", "stint_ stint_x stint__y /stint.db"));
	assert_string_equal(hear_after_time(),
		"\"level\":\"info\",\"msg\":\"*** is here\",\"a\":\"Bearer ***, more\",\"b\":\"***\",\"c\":\"***\","
		"\"d\":\"stint_ stint_x stint__y /stint.db\"}\n");
}

static void a_token_is_hidden_in_text_as_well(void **state)
{
	(void)state;
	listen_as(LOG_FORMAT_TEXT, LEVEL_INFO);
	log_info("m", log_cstr("a", "stint_admin_0011_AbC"), log_cstr("b", "x stint_admin_0011_AbC"));
	assert_string_equal(hear_after_time(), "info  m a=*** b=\"x ***\"\n");
	log_info("m", log_cstr("a", "stint_claim_00ff.1.cre-2.1-0a0b_AbC, more")); /* a derived one */
	assert_string_equal(hear_after_time(), "info  m a=\"***, more\"\n");
}

static void a_token_at_the_cut_does_not_show_half_of_itself(void **state)
{
	static char text[LOG_LINE_BYTES_MAX + 200];

	(void)state;
	listen_as(LOG_FORMAT_JSON, LEVEL_INFO);
	for (size_t before = LOG_LINE_BYTES_MAX - 200; before < LOG_LINE_BYTES_MAX; before++) {
		memset(text, 'x', before);
		snprintf(text + before, sizeof text - before, " stint_admin_0011_SeCrEtSeCrEtSeCrEt");
		log_info("m", log_cstr("a", text));
		assert_null(strstr(hear(), "SeC"));
	}
}

/* ---- nobody reads ---- */

static void write_many(int count)
{
	for (int i = 0; i < count; i++)
		log_info("a line that somebody might have read", log_int("number", i));
}

static void a_pipe_that_nobody_reads_stops_nobody(void **state)
{
	uint64_t before = log_dropped();

	(void)state;
	listen_as(LOG_FORMAT_JSON, LEVEL_INFO);
	write_many(10000); /* more than a pipe holds: would wait for ever */
	uint64_t dropped = log_dropped() - before;
	assert_true(dropped > 0);
	hear();
	assert_non_null(strstr(heard, "\"number\":0}"));
	log_info("again");
	char expected[100];
	snprintf(expected, sizeof expected, "\"count\":%llu}\n", (unsigned long long)dropped);
	assert_non_null(strstr(hear(), expected));
	assert_non_null(strstr(heard, "\"msg\":\"again\"}\n"));
	assert_int_equal(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0); /* others may share it */
}

static void a_socket_that_nobody_reads_stops_nobody(void **state)
{
	uint64_t before = log_dropped();

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	log_start(ends[1], LOG_FORMAT_JSON, LEVEL_INFO);
	write_many(10000);
	assert_true(log_dropped() > before);
	hear();
	assert_int_equal(heard[strlen(heard) - 1], '\n');
}

static void a_reader_that_went_away_stops_nobody(void **state)
{
	uint64_t before = log_dropped();

	(void)state;
	listen_as(LOG_FORMAT_JSON, LEVEL_INFO);
	close(ends[0]);
	ends[0] = -1;
	write_many(3);
	assert_int_equal(log_dropped(), before + 3);
}

/* ---- messages that others can provoke ---- */

static void a_flood_is_counted_instead_of_told(void **state)
{
	struct log_limit limit = {.level = LEVEL_WARN, .msg = "refused", .most = 2};

	(void)state;
	listen_as(LOG_FORMAT_JSON, LEVEL_INFO);
	for (int i = 0; i < 1000; i++)
		log_limited(&limit, log_int("number", i));
	hear();
	assert_non_null(strstr(heard, "\"number\":0}"));
	assert_true(limit.suppressed > 0);
	limit.second--; /* a second later */
	int64_t left_out = limit.suppressed;
	log_limit_settle(&limit);
	char expected[100];
	snprintf(
		expected, sizeof expected, "\"msg\":\"refused\",\"suppressed\":%lld}\n", (long long)left_out);
	assert_non_null(strstr(hear(), expected));
	log_limit_settle(&limit);
	assert_string_equal(hear(), "");
}

static void the_next_line_tells_what_was_left_out_before_it(void **state)
{
	struct log_limit limit = {.level = LEVEL_INFO, .msg = "refused", .most = 1, .suppressed = 7};

	(void)state;
	listen_as(LOG_FORMAT_TEXT, LEVEL_INFO);
	log_limited(&limit, log_cstr("why", "full"));
	assert_string_equal(hear_after_time(), "info  refused why=full suppressed=7\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_line_is_json_with_its_fields, hang_up),
		cmocka_unit_test_teardown(a_line_for_people_is_short, hang_up),
		cmocka_unit_test_teardown(what_is_no_terminal_gets_json, hang_up),
		cmocka_unit_test_teardown(a_level_that_is_not_wanted_costs_nothing, hang_up),
		cmocka_unit_test_teardown(control_characters_cannot_leave_their_string, hang_up),
		cmocka_unit_test_teardown(a_long_line_is_cut_and_says_so, hang_up),
		cmocka_unit_test_teardown(every_length_ends_well, hang_up),
		cmocka_unit_test_teardown(a_token_comes_out_as_stars, hang_up),
		cmocka_unit_test_teardown(a_token_is_hidden_in_text_as_well, hang_up),
		cmocka_unit_test_teardown(a_token_at_the_cut_does_not_show_half_of_itself, hang_up),
		cmocka_unit_test_teardown(a_pipe_that_nobody_reads_stops_nobody, hang_up),
		cmocka_unit_test_teardown(a_socket_that_nobody_reads_stops_nobody, hang_up),
		cmocka_unit_test_teardown(a_reader_that_went_away_stops_nobody, hang_up),
		cmocka_unit_test_teardown(a_flood_is_counted_instead_of_told, hang_up),
		cmocka_unit_test_teardown(the_next_line_tells_what_was_left_out_before_it, hang_up),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
