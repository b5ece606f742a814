/*
 * Events as people read them: a sentence for each, and no JSON.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "cli/verb/event_view.h"
#include "wire/event_types.h"

static void assert_says(const char *json, const char *sentence)
{
	struct buf text;
	yyjson_doc *doc = yyjson_read(json, strlen(json), 0);

	assert_non_null(doc);
	buf_init(&text, 4096);
	event_put(&text, yyjson_doc_get_root(doc));
	assert_int_equal(buf_fault(&text), 0);
	assert_int_equal(text.len, strlen(sentence));
	assert_memory_equal(text.data, sentence, text.len);
	buf_done(&text);
	yyjson_doc_free(doc);
}

static void a_sentence_has_the_words_that_the_event_gives(void **state)
{
	(void)state;
	assert_says("{\"type\":\"task.failed\",\"data\":{\"message\":\"no disk\",\"code\":\"X\"}}",
		"has failed: no disk (X)");
	assert_says("{\"type\":\"task.failed\",\"data\":{}}", "has failed");
	assert_says(
		"{\"type\":\"token.created\",\"actor\":\"admin\",\"data\":{\"principal\":\"admin\",\"kind\":\"worker\",\"name\":\"vm\"}}",
		"token vm is made: of kind worker, by admin");
}

static void a_type_of_a_newer_server_is_shown_by_its_words_and_numbers(void **state)
{
	(void)state;
	assert_says(
		"{\"type\":\"hold.probing_again\",\"data\":{\"credential\":\"team\",\"list\":[1],\"count\":3,\"none\":null}}",
		"hold probing again: credential team, count 3");
	assert_says("{\"type\":\"hold.opened\"}", "hold opened");
}

static void no_event_is_shown_as_json(void **state)
{
	(void)state;
	for (const char *const *type = event_types; *type; type++) {
		char json[200];
		struct buf text;
		snprintf(json, sizeof json, "{\"type\":\"%s\",\"data\":{\"more\":{\"a\":1}}}", *type);
		yyjson_doc *doc = yyjson_read(json, strlen(json), 0);
		buf_init(&text, 4096);
		event_put(&text, yyjson_doc_get_root(doc));
		assert_int_equal(buf_fault(&text), 0);
		assert_true(text.len == 0 || !memchr(text.data, '{', text.len));
		assert_true(text.len == 0 || !memchr(text.data, '[', text.len));
		buf_done(&text);
		yyjson_doc_free(doc);
	}
}

int main(void)
{
	static const struct CMUnitTest cases[] = {
		cmocka_unit_test(a_sentence_has_the_words_that_the_event_gives),
		cmocka_unit_test(a_type_of_a_newer_server_is_shown_by_its_words_and_numbers),
		cmocka_unit_test(no_event_is_shown_as_json),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
