/* What a target wants to hear, and how it is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/take.h"
#include "notify/message.h"

static const struct target machine = {.name = "machine"};

static yyjson_doc *event_of(const char *text)
{
	struct json_complaint complaint;
	yyjson_doc *doc = json_read(span_of(text), &complaint);

	assert_non_null(doc);
	return doc;
}

static bool wanted(const char *name, const char *pattern, const char *text)
{
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = event_of(text);
	const char *const events[] = {pattern, NULL};
	const struct target target = {.name = name, .events = pattern ? events : NULL};

	return message_is_wanted(&target, yyjson_doc_get_root(doc));
}

static void the_end_of_a_session_is_for_the_target_of_its_channel(void **state)
{
	(void)state;
	assert_true(wanted("ops", NULL, "{\"type\":\"session.ended\",\"data\":{\"channel\":\"ops\"}}"));
	assert_true(wanted("ops", NULL, "{\"type\":\"session.gone\",\"data\":{\"channel\":\"ops\"}}"));
	assert_false(wanted("ops", NULL, "{\"type\":\"session.ended\",\"data\":{\"channel\":\"op\"}}"));
	assert_false(wanted("ops", NULL, "{\"type\":\"session.ended\",\"data\":{}}"));
	assert_false(wanted("ops", NULL, "{\"type\":\"task.noted\",\"data\":{\"channel\":\"ops\"}}"));
}

static void events_match_whole_types_or_groups(void **state)
{
	(void)state;
	assert_true(wanted("x", "task.failed", "{\"type\":\"task.failed\"}"));
	assert_false(wanted("x", "task.fail", "{\"type\":\"task.failed\"}"));
	assert_false(wanted("x", "task.failed", "{\"type\":\"task.faile\"}"));
	assert_true(wanted("x", "task.*", "{\"type\":\"task.failed\"}"));
	assert_false(wanted("x", "task.*", "{\"type\":\"slot.assigned\"}"));
	assert_true(wanted("x", "*", "{\"type\":\"slot.assigned\"}"));
}

static void what_a_process_prints_is_never_sent(void **state)
{
	(void)state;
	assert_false(wanted("x", "*", "{\"type\":\"session.output\",\"data\":{\"text\":\"password\"}}"));
	assert_false(wanted("x", "session.*", "{\"type\":\"session.output\"}"));
}

static void alerts_are_what_needs_a_person(void **state)
{
	(void)state;
	assert_true(wanted("x", "alerts", "{\"type\":\"task.asked\"}"));
	assert_true(wanted("x", "alerts", "{\"type\":\"slot.quarantined\"}"));
	assert_true(wanted("x", "alerts", "{\"type\":\"task.failed\",\"data\":{\"state\":\"failed\"}}"));
	assert_false(wanted("x", "alerts", "{\"type\":\"task.failed\",\"data\":{\"state\":\"ready\"}}"));
	assert_true(wanted("x", "alerts", "{\"type\":\"task.expired\",\"data\":{\"state\":\"failed\"}}"));
	assert_true(wanted("x", "alerts", "{\"type\":\"worker.inactive\",\"data\":{\"ended\":\"expired\"}}"));
	assert_false(
		wanted("x", "alerts", "{\"type\":\"worker.inactive\",\"data\":{\"ended\":\"shutdown\"}}"));
	assert_false(wanted("x", "alerts", "{\"type\":\"task.completed\"}"));
	assert_true(wanted("x", "alerts", "{\"type\":\"schedule.failing\",\"data\":{\"schedule\":\"s\"}}"));
	assert_true(wanted("x", "alerts", "{\"type\":\"budget.spent\"}"));
	assert_false(wanted("x", "alerts", "{\"type\":\"budget.near\"}"));
}

static void an_account_that_opens_by_itself_needs_no_person(void **state)
{
	(void)state;
	assert_true(wanted("x", "alerts", "{\"type\":\"hold.opened\",\"data\":{\"credential\":\"team\"}}"));
	assert_false(wanted("x", "alerts",
		"{\"type\":\"hold.opened\",\"data\":{\"credential\":\"team\",\"retryAt\":5}}"));
	assert_false(wanted("x", "alerts", "{\"type\":\"hold.closed\",\"data\":{\"credential\":\"team\"}}"));
}

static void a_line_says_what_the_event_of_a_queue_or_a_schedule_is_about(void **state)
{
	static const struct target people = {.name = "people", .format = FORMAT_NTFY};
	static const struct {
		const char *event, *says;
	} rows[] = {
		{"\"type\":\"schedule.failing\",\"data\":{\"schedule\":\"nightly\",\"inARow\":3}",
			"schedule failing: nightly failures or skips in a row: 3"},
		{"\"type\":\"hold.opened\",\"data\":{\"credential\":\"team\",\"retryAt\":1700000000000,\"message\":\"usage limit\"}",
			"hold opened: team until 2023-11-14T22:13 UTC usage limit"},
		{"\"type\":\"hold.opened\",\"data\":{\"credential\":\"team\"}", "hold opened: team"},
		{"\"type\":\"queue.limited\",\"data\":{\"queue\":\"ci\",\"limit\":\"concurrency\",\"waiting\":12}",
			"queue limited: ci ready tasks wait: 12 (concurrency)"},
		{"\"type\":\"queue.idle\",\"data\":{\"queue\":\"ci\"}", "queue idle: ci"},
		{"\"type\":\"group.ended\",\"data\":{\"group\":\"nightly\"}", "group ended: nightly"},
		{"\"type\":\"budget.near\",\"data\":{\"queue\":\"q\",\"part\":\"usd\",\"limit\":1,\"used\":0.8}",
			"budget near: q used 0.8 of 1 (usd)"},
		{"\"type\":\"bulk.ended\",\"data\":{\"bulk\":\"b-7\",\"matched\":9,\"done\":7,\"skipped\":2}",
			"bulk ended: b-7 changed 7 of 9 skipped 2"},
	};
	char text[400];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		cleanup(buf_done) struct buf out = {0};
		snprintf(text, sizeof text, "{\"seq\":7,\"time\":0,%s}", rows[i].event);
		cleanup(yyjson_doc_free_at) yyjson_doc *doc = event_of(text);
		assert_int_equal(
			message_put(&out, &people, "stint", "stint-1-7", yyjson_doc_get_root(doc)), 0);
		assert_int_equal(buf_put_byte(&out, 0), 0);
		assert_string_equal(out.data, rows[i].says);
	}
}

static void an_event_is_told_as_a_cloud_event(void **state)
{
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = event_of(
		"{\"seq\":7,\"time\":0,\"type\":\"task.failed\",\"task\":\"t-1\",\"data\":{\"state\":\"failed\"}}");
	cleanup(buf_done) struct buf out = {0};
	char id[MESSAGE_ID_BYTES];

	(void)state;
	message_id(id, "stint", 3, 7);
	assert_string_equal(id, "stint-3-7");
	assert_int_equal(message_put(&out, &machine, "stint", id, yyjson_doc_get_root(doc)), 0);
	assert_true(span_equal(buf_span(&out),
		SPAN("{\"specversion\":\"1.0\",\"id\":\"stint-3-7\",\"source\":\"stint\",\"time\":\"1970-01-01T00:00:00.000Z\","
		     "\"datacontenttype\":\"application/json\",\"type\":\"dev.stint.task.failed\",\"subject\":\"t-1\","
		     "\"sequence\":\"7\",\"data\":{\"seq\":7,\"time\":0,\"type\":\"task.failed\",\"task\":\"t-1\",\"data\":{"
		     "\"state\":\"failed\"}}}")));
}

static void what_is_too_long_goes_without_its_data_and_says_so(void **state)
{
	static char text[2 * MESSAGE_BYTES_MAX], filler[MESSAGE_BYTES_MAX];
	cleanup(buf_done) struct buf out = {0};

	(void)state;
	memset(filler, 'x', sizeof filler - 1);
	snprintf(text, sizeof text,
		"{\"seq\":7,\"time\":0,\"type\":\"task.noted\",\"data\":{\"note\":\"%s\"}}", filler);
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = event_of(text);
	assert_int_equal(message_put(&out, &machine, "stint", "stint-1-7", yyjson_doc_get_root(doc)), 0);
	struct span end = SPAN("\"data\":{\"seq\":7,\"time\":0,\"type\":\"task.noted\",\"shortened\":true}}");
	assert_true(out.len > end.len);
	assert_true(span_equal((struct span){out.data + out.len - end.len, end.len}, end));
}

static void a_line_names_title_queue_and_labels_of_the_task(void **state)
{
	static const struct target people = {.name = "people", .format = FORMAT_NTFY};
	static const struct {
		const char *about, *says;
	} rows[] = {
		{"{\"title\":\"Fix login\",\"queue\":\"ci\",\"labels\":[\"nightly\",\"urgent\"]}",
			"task failed: t-1 \"Fix login\" in ci (nightly, urgent) [failed]"},
		{"{\"queue\":\"ci\"}", "task failed: t-1 in ci [failed]"},
		{"{\"queue\":\"ci\",\"labels\":[]}", "task failed: t-1 in ci [failed]"},
		{"null", "task failed: t-1 [failed]"},
	};
	cleanup(buf_done) struct buf out = {0};
	char text[400];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		snprintf(text, sizeof text,
			"{\"about\":%s,\"seq\":7,\"time\":0,\"type\":\"task.failed\",\"task\":\"t-1\",\"data\":{\"state\":\"failed\"}}",
			rows[i].about);
		cleanup(yyjson_doc_free_at) yyjson_doc *doc = event_of(text);
		assert_int_equal(
			message_put(&out, &people, "stint", "stint-1-7", yyjson_doc_get_root(doc)), 0);
		assert_int_equal(buf_put_byte(&out, 0), 0);
		assert_string_equal(out.data, rows[i].says);
	}
}

static void people_get_a_line_and_nobody_is_mentioned_in_it(void **state)
{
	static const struct {
		enum target_format format;
		const char *says;
	} rows[] = {
		{FORMAT_NTFY, "task failed: t-1 [failed CHECK_FAILED] <!channel> & \"more\""},
		{FORMAT_SLACK,
			"{\"text\":\"task failed: t-1 [failed CHECK_FAILED] &lt;!channel&gt; &amp; \\\"more\\\"\"}"},
		{FORMAT_DISCORD,
			"{\"content\":\"task failed: t-1 [failed CHECK_FAILED] <!channel> & \\\"more\\\"\",\"allowed_mentions\":{"
			"\"parse\":[]}}"},
	};
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = event_of(
		"{\"seq\":7,\"time\":0,\"type\":\"task.failed\",\"task\":\"t-1\",\"data\":{\"state\":\"failed\","
		"\"code\":\"CHECK_FAILED\",\"message\":\"<!channel> & \\\"more\\\"\"}}");
	cleanup(buf_done) struct buf out = {0};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct target target = {.name = "people", .format = rows[i].format};
		assert_int_equal(
			message_put(&out, &target, "stint", "stint-1-7", yyjson_doc_get_root(doc)), 0);
		assert_int_equal(buf_put_byte(&out, 0), 0);
		assert_string_equal(out.data, rows[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_of_a_session_is_for_the_target_of_its_channel),
		cmocka_unit_test(events_match_whole_types_or_groups),
		cmocka_unit_test(what_a_process_prints_is_never_sent),
		cmocka_unit_test(alerts_are_what_needs_a_person),
		cmocka_unit_test(an_account_that_opens_by_itself_needs_no_person),
		cmocka_unit_test(a_line_says_what_the_event_of_a_queue_or_a_schedule_is_about),
		cmocka_unit_test(an_event_is_told_as_a_cloud_event),
		cmocka_unit_test(what_is_too_long_goes_without_its_data_and_says_so),
		cmocka_unit_test(a_line_names_title_queue_and_labels_of_the_task),
		cmocka_unit_test(people_get_a_line_and_nobody_is_mentioned_in_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
