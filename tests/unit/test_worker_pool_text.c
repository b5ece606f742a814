/* The messages of spec/stdio.md: what is understood, what is not and why, and what is said. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/take.h"
#include "base/utf8.h"
#include "wire/frame.h"
#include "pool/text.h"

#define HEAD "{\"id\":\"1\",\"timestamp\":\"now\",\"type\":"

static struct world {
	yyjson_doc *doc;
	struct pool_message message;
	struct pool_complaint complaint;
	struct buf out;
} world;

static int set_up(void **state)
{
	buf_init(&world.out, 4 << 20);
	*state = &world;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	yyjson_doc_free(world.doc);
	buf_done(&world.out);
	world = (struct world){0};
	return 0;
}

static int hears(const char *text)
{
	yyjson_doc_free(take(world.doc));
	return pool_text_read(span_of(text), &world.doc, &world.message, &world.complaint);
}

static void a_hello_says_what_it_can_do(void **state)
{
	(void)state;
	assert_int_equal(hears(HEAD "\"worker.hello\",\"workerId\":\"w\",\"capabilities\":{\"moduleIds\":"
				    "[\"a\",\"b_2-C\"],\"maxConcurrent\":9,\"colour\":1}}"),
		0);
	assert_int_equal(world.message.kind, POOL_HELLO);
	assert_int_equal(world.message.module_count, 2);
	assert_true(span_equal(world.message.modules[1], SPAN("b_2-C")));
}

static void the_others_are_understood_with_no_more_than_they_need(void **state)
{
	static const struct {
		const char *text;
		enum pool_message_kind kind;
	} rows[] = {
		{HEAD "\"worker.ready\"}", POOL_READY},
		{HEAD "\"worker.heartbeat\"}", POOL_HEARTBEAT},
		{HEAD "\"worker.shutdown\"}", POOL_SHUTDOWN},
		{HEAD "\"task.progress\",\"taskId\":\"t\",\"progress\":1}", POOL_PROGRESS},
		{HEAD "\"task.progress\",\"taskId\":\"t\",\"message\":\"m\"}", POOL_PROGRESS},
		{HEAD "\"task.result\",\"taskId\":\"t\",\"result\":{\"success\":true}}", POOL_RESULT},
		{HEAD "\"task.failure\",\"taskId\":\"t\",\"error\":{}}", POOL_FAILURE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(hears(rows[i].text), 0);
		assert_int_equal(world.message.kind, rows[i].kind);
	}
}

static void what_is_not_understood_has_a_reason(void **state)
{
	static const struct {
		const char *text, *reason;
	} rows[] = {
		{"", "no JSON"},
		{"{", "no JSON"},
		{"[]", "id, type and timestamp"},
		{"{\"id\":1,\"type\":\"worker.ready\",\"timestamp\":\"x\"}", "id, type and timestamp"},
		{"{\"type\":\"worker.ready\",\"timestamp\":\"x\"}", "id, type and timestamp"},
		{HEAD "\"worker.dance\"}", "not one that a worker sends (worker.dance)"},
		{HEAD "\"execute.task\"}", "not one that a worker sends"},
		{HEAD "\"worker.hello\"}", "moduleIds must be"},
		{HEAD "\"worker.hello\",\"capabilities\":{\"moduleIds\":[\"a b\"]}}",
			"not a name of a module"},
		{HEAD "\"worker.hello\",\"capabilities\":{\"moduleIds\":[\"\"]}}", "not a name of a module"},
		{HEAD "\"worker.hello\",\"capabilities\":{\"moduleIds\":[7]}}", "not a name of a module"},
		{HEAD "\"task.progress\",\"progress\":1}", "taskId"},
		{HEAD "\"task.progress\",\"taskId\":\"t\"}", "a progress must have"},
		{HEAD "\"task.progress\",\"taskId\":\"t\",\"progress\":\"1\"}", "a progress must have"},
		{HEAD "\"task.result\",\"taskId\":\"t\"}", "result.success"},
		{HEAD "\"task.result\",\"taskId\":\"t\",\"result\":{\"success\":1}}", "result.success"},
		{HEAD "\"task.failure\",\"taskId\":\"t\",\"error\":\"no\"}", "error must be"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(hears(rows[i].text), -EPROTO);
		assert_non_null(strstr(world.complaint.reason, rows[i].reason));
	}
}

static void a_complaint_says_whether_it_is_about_the_worker_or_its_task(void **state)
{
	static const struct {
		const char *text;
		bool of_itself;
	} rows[] = {
		{HEAD "\"worker.dance\"}", true},
		{HEAD "\"worker.hello\"}", true},
		{"{\"type\":\"worker.ready\"}", true},
		{HEAD "\"worker\"}", false},
		{HEAD "\"task.complete\"}", false},
		{HEAD "\"task.result\",\"taskId\":\"t\"}", false},
		{"NaN", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(hears(rows[i].text), -EPROTO);
		assert_int_equal(world.complaint.of_itself, rows[i].of_itself);
	}
}

static void a_complaint_about_a_long_word_is_cut_off_between_characters(void **state)
{
	char text[1000] = HEAD "\"";

	(void)state;
	for (size_t at = strlen(text); at < 900; at += 2)
		memcpy(text + at, "\xc3\xa4", 3);
	strcat(text, "\"}");
	assert_int_equal(hears(text), -EPROTO);
	assert_true(utf8_is_text(span_of(world.complaint.reason)));
	world.message.task = SPAN("t-7");
	pool_complain_of_task(&world.complaint, &world.message);
	assert_non_null(strstr(world.complaint.reason, "(t-7)"));
}

static void a_progress_lies_between_none_and_all(void **state)
{
	static const struct {
		const char *number;
		int percent;
	} rows[] = {{"0", 0}, {"-1", 0}, {"99.9", 99}, {"100", 100}, {"1e300", 100}};
	char text[200];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		snprintf(text, sizeof text, HEAD "\"task.progress\",\"taskId\":\"t\",\"progress\":%s}",
			rows[i].number);
		assert_int_equal(hears(text), 0);
		assert_int_equal(world.message.percent, rows[i].percent);
	}
}

static void reports(const char *message, bool good, const char *expected)
{
	assert_int_equal(hears(message), 0);
	buf_clear(&world.out);
	assert_int_equal(good ? pool_put_result(&world.out, &world.message)
			      : pool_put_failure(&world.out, &world.message),
		0);
	buf_put_byte(&world.out, 0);
	assert_string_equal(world.out.data, expected);
}

static void an_output_is_the_result(void **state)
{
	(void)state;
	reports(HEAD "\"task.result\",\"taskId\":\"t\",\"result\":{\"success\":true,\"output\":{\"n\": 1}}}",
		true, "\"result\":{\"n\":1}");
	reports(HEAD "\"task.result\",\"taskId\":\"t\",\"result\":{\"success\":true}}", true,
		"\"result\":null");
}

static void a_failure_keeps_its_code_if_that_is_one(void **state)
{
	(void)state;
	reports(HEAD
		"\"task.failure\",\"taskId\":\"t\",\"error\":{\"code\":\"NO_BOARD\",\"message\":\"why\",\"details\":[1]}}",
		false, "\"error\":{\"code\":\"NO_BOARD\",\"message\":\"why\",\"details\":[1]}");
	reports(HEAD
		"\"task.failure\",\"taskId\":\"t\",\"error\":{\"code\":\"two words\",\"message\":\"why\"}}",
		false, "\"error\":{\"code\":\"EXECUTION_ERROR\",\"message\":\"why\"}");
	reports(HEAD "\"task.failure\",\"taskId\":\"t\",\"error\":{}}", false,
		"\"error\":{\"code\":\"EXECUTION_ERROR\",\"message\":\"the worker says that it failed, and not why\"}");
}

static void no_success_is_a_failure_and_its_output_says_why(void **state)
{
	(void)state;
	reports(HEAD
		"\"task.result\",\"taskId\":\"t\",\"result\":{\"success\":false,\"output\":\"no room\"}}",
		false,
		"\"error\":{\"code\":\"EXECUTION_ERROR\",\"message\":\"no room\",\"details\":\"no room\"}");
}

static const struct pool_order order = {
	.id = "i", .worker = "p-1", .module = "chess", .level = "sandbox", .wall_ms = 0, .deadline_ms = 9};

static yyjson_doc *execute(const char *task)
{
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(span_of(task), &complaint);

	assert_non_null(doc);
	assert_int_equal(pool_text_execute(&world.out, &order, yyjson_doc_get_root(doc)), 0);
	struct span body = {world.out.data + 4, world.out.len - 4};
	return json_read(body, &complaint);
}

static void a_task_is_told_in_the_words_of_the_protocol(void **state)
{
	(void)state;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc =
		execute("{\"id\":\"t\",\"title\":\"x\",\"priority\":50,\"module\":\"chess\",\"payload\":[1],"
			"\"sessionId\":null,\"workerId\":\"host-1\",\"crashes\":2,\"fence\":\"7\"}");
	yyjson_val *root = yyjson_doc_get_root(doc), *task = yyjson_obj_get(root, "task");
	assert_true(yyjson_equals_str(yyjson_obj_get(root, "type"), "execute.task"));
	assert_true(yyjson_equals_str(yyjson_obj_get(root, "moduleId"), "chess"));
	assert_true(yyjson_equals_str(yyjson_obj_get(root, "timestamp"), "1970-01-01T00:00:00.000Z"));
	assert_true(yyjson_equals_str(yyjson_obj_get(task, "priority"), "high"));
	assert_true(yyjson_equals_str(yyjson_obj_get(task, "moduleId"), "chess"));
	assert_true(yyjson_equals_str(yyjson_obj_get(task, "workerId"), "p-1"));
	assert_int_equal(yyjson_get_int(yyjson_obj_get(task, "executionAttempt")), 1);
	assert_true(yyjson_is_obj(yyjson_obj_get(task, "metadata")));
	assert_int_equal(yyjson_arr_size(yyjson_obj_get(task, "payload")), 1);
	assert_true(yyjson_equals_str(yyjson_obj_get(task, "isolationLevel"), "sandbox"));
	assert_null(yyjson_obj_get(task, "sessionId"));
	assert_null(yyjson_obj_get(task, "module"));
}

static void a_task_that_fits_into_no_frame_is_not_sent(void **state)
{
	cleanup(buf_done) struct buf text;
	struct json_complaint complaint;

	(void)state;
	buf_init(&text, 4 << 20);
	assert_int_equal(buf_printf(&text, "{\"payload\":\"%0*d\"}", FRAME_BYTES_MAX, 0), 0);
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(buf_span(&text), &complaint);
	assert_non_null(doc);
	assert_int_equal(pool_text_execute(&world.out, &order, yyjson_doc_get_root(doc)), -EMSGSIZE);
	assert_int_equal(world.out.len, 0);
}

static void a_uuid_is_one_of_version_four(void **state)
{
	uint64_t random[2];
	char text[UUID_CHARS + 1];

	(void)state;
	memset(random, 0xff, sizeof random);
	pool_text_uuid(random, text);
	assert_string_equal(text, "ffffffff-ffff-4fff-bfff-ffffffffffff");
	memset(random, 0, sizeof random);
	pool_text_uuid(random, text);
	assert_string_equal(text, "00000000-0000-4000-8000-000000000000");
}

#define TEXT(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEXT(a_hello_says_what_it_can_do),
		TEXT(the_others_are_understood_with_no_more_than_they_need),
		TEXT(what_is_not_understood_has_a_reason),
		TEXT(a_complaint_says_whether_it_is_about_the_worker_or_its_task),
		TEXT(a_complaint_about_a_long_word_is_cut_off_between_characters),
		TEXT(a_progress_lies_between_none_and_all),
		TEXT(an_output_is_the_result),
		TEXT(a_failure_keeps_its_code_if_that_is_one),
		TEXT(no_success_is_a_failure_and_its_output_says_why),
		TEXT(a_task_is_told_in_the_words_of_the_protocol),
		TEXT(a_task_that_fits_into_no_frame_is_not_sent),
		TEXT(a_uuid_is_one_of_version_four),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
