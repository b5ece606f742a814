#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "server/options.h"

/* A file that names nothing, so that those of the machine do not count. */
static void read_defaults(struct options *options)
{
	char *arguments[] = {"stintd", "--home", "/nonexistent/stint", NULL};

	for (int key = 0; key < CONFIG_KEY_COUNT; key++)
		unsetenv(config_keys[key].variable);
	setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
	assert_int_equal(options_read(3, arguments, options), 0);
}

/* The table of keys has the defaults for people; the core has them for itself. */
static void the_defaults_are_those_of_the_rules(void **state)
{
	static struct options options;
	struct store_options wanted = store_options_default();

	(void)state;
	read_defaults(&options);
	const struct rules *rules = &options.storage.rules;
	const size_t flag = offsetof(struct rules, reschedule_on_expiry); /* padding follows it */
	const size_t rest = offsetof(struct rules, retry_base_ms);
	assert_memory_equal(rules, &wanted.rules, flag);
	assert_true(rules->reschedule_on_expiry == wanted.rules.reschedule_on_expiry);
	assert_memory_equal(
		(const char *)rules + rest, (const char *)&wanted.rules + rest, sizeof *rules - rest);
	const struct retention *retention = &options.storage.retention;
	assert_int_equal(retention->final_ms, wanted.retention.final_ms);
	assert_int_equal(retention->finals_max, wanted.retention.finals_max);
	assert_int_equal(retention->event_ms, wanted.retention.event_ms);
	assert_int_equal(retention->events_max, wanted.retention.events_max);
	assert_string_equal(options.store, "/nonexistent/stint/stint.db");
	assert_string_equal(options.host, "127.0.0.1");
	assert_int_equal(options.port, 8787);
	assert_int_equal(options.log_level, LEVEL_INFO);
	assert_int_equal(options.log_format, LOG_FORMAT_AUTO);
	options_done(&options);
}

static int status_with(char *flag, char *value)
{
	static struct options options;
	char *arguments[] = {"stintd", "--home", "/nonexistent/stint", flag, value, NULL};
	int status = options_read(5, arguments, &options);

	options_done(&options);
	return status;
}

static void values_that_do_not_go_together_are_refused(void **state)
{
	(void)state;
	assert_int_equal(status_with("--set", "retry.baseMs=300000"), 0);
	assert_int_equal(status_with("--set", "retry.baseMs=300001"), 78);
	assert_int_equal(status_with("--set", "task.timeoutMaxMs=1799999"), 78);
	assert_int_equal(status_with("--store", "postgres://host/db"), 0);
	assert_int_equal(status_with("--store", "mysql://host/db"), 78);
	assert_int_equal(status_with("--store", "sqlite:"), 78);
}

static void an_address_is_host_and_port(void **state)
{
	static const char *const bad[] = {"127.0.0.1", ":80", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
		"127.0.0.1:+1", "127.0.0.1: 1", "127.0.0.1:80x", "127.0.0.1:000080", "0.0.0.0:80", "[::]:80",
		"example.org:80", "1.2.3.4:80", "127.0.0.1.example.org:80"};
	static const char *const good[] = {"127.0.0.1:0", "127.9.9.9:65535", "[::1]:80", "localhost:80"};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(status_with("--listen", (char *)(uintptr_t)bad[i]), 78);
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_int_equal(status_with("--listen", (char *)(uintptr_t)good[i]), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_defaults_are_those_of_the_rules),
		cmocka_unit_test(values_that_do_not_go_together_are_refused),
		cmocka_unit_test(an_address_is_host_and_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
