/*
 * What clients know of the types of events is what the rules have.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/event.h"
#include "wire/event_types.h"

static void clients_know_the_types_that_the_rules_have(void **state)
{
	size_t known = 0, there = 0;

	(void)state;
	for (int kind = 1; kind < EVENT_KIND_COUNT; kind++) {
		if (!event_kind_is_known((enum event_kind)kind))
			continue;
		there++;
		if (!event_types_has(span_of(event_kind_name((enum event_kind)kind))))
			fail_msg("src/wire/event_types.c has no \"%s\"",
				event_kind_name((enum event_kind)kind));
	}
	while (event_types[known])
		known++;
	assert_int_equal(known, there);
}

static void a_noun_stands_for_all_of_its_events(void **state)
{
	static const char *const good[] = {"task.failed", "task", "task.*", "gate.*"};
	static const char *const bad[] = {
		"", ".*", "task.", "tas", "task.fail", "task.failed.*", "*", "tasks.*", "task.*.*"};

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_true(event_types_has(span_of(good[i])));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(event_types_has(span_of(bad[i])));
}

static void the_nearest_is_offered(void **state)
{
	char room[EVENT_TYPE_BYTES];

	(void)state;
	assert_string_equal(event_types_like("task.faild", room), "task.failed");
	assert_string_equal(event_types_like("Task.Completed", room), "task.completed");
	assert_string_equal(event_types_like("tasks.*", room), "task.*");
	assert_null(event_types_like("weather.changed", room));
	assert_null(event_types_like("x", room));
	assert_null(event_types_like("", room));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clients_know_the_types_that_the_rules_have),
		cmocka_unit_test(a_noun_stands_for_all_of_its_events),
		cmocka_unit_test(the_nearest_is_offered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
