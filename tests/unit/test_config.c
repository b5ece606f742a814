#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/take.h"
#include "config/config.h"
#include "../skip.h"

/* ---- a place with files in it ---- */

static char top[64]; /* of this test alone */
static struct config config;
static struct config_request request;
static char path_of_system[128], path_of_home[128];

static const char *in_top(const char *name)
{
	static char paths[8][256];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof paths[0], "%s/%s", top, name);
	return path;
}

static int set_up(void **state)
{
	(void)state;
	strcpy(top, "/tmp/stint-config-XXXXXX");
	assert_non_null(mkdtemp(top));
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(mkdir(in_top((const char *[]){"home", "user", "user/stint"}[i]), 0700), 0);
	for (int key = 0; key < CONFIG_KEY_COUNT; key++)
		unsetenv(config_keys[key].variable);
	unsetenv("STINT_HOME");
	setenv("XDG_CONFIG_HOME", in_top("user"), 1);
	strcpy(path_of_system, in_top("system.json"));
	strcpy(path_of_home, in_top("home"));
	request = (struct config_request){.home = path_of_home, .system_file = path_of_system};
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	config_done(&config);
	snprintf(command, sizeof command, "rm -rf '%s'", top);
	return system(command);
}

static void write_file(const char *name, const char *text)
{
	FILE *file = fopen(in_top(name), "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(in_top(name), 0600), 0);
}

static const char *origin_of(enum config_key key)
{
	static char text[512];
	cleanup(buf_done) struct buf out;

	buf_init(&out, sizeof text - 1);
	config_put_origin(&out, &config.values[key].origin);
	snprintf(text, sizeof text, "%.*s", (int)out.len, out.data);
	return text;
}

static void expect(enum config_key key, const char *value, const char *origin)
{
	assert_string_equal(config.values[key].text, value);
	assert_string_equal(origin_of(key), origin);
}

/* The one problem there is: where it is below the top, and all that is said. */
static void expect_problem(const char *name, const char *place_and_text)
{
	cleanup(buf_done) struct buf out;
	char expected[1024];

	buf_init(&out, 1 << 20);
	assert_int_equal(config_put_problems(&out, &config, ""), 0);
	assert_int_equal(buf_put_byte(&out, 0), 0);
	snprintf(expected, sizeof expected, "%s%s\n", name ? in_top(name) : "", place_and_text);
	assert_string_equal(out.data, expected);
}

static void expect_file_problem(const char *text, const char *place_and_text)
{
	write_file("home/config.json", text);
	config_done(&config);
	config_read(&config, &request);
	expect_problem("home/config.json", place_and_text);
}

/* ---- precedence ---- */

static void everything_has_a_default(void **state)
{
	(void)state;
	config_read(&config, &request);
	assert_int_equal(config.problem_count, 0);
	expect(CONFIG_LISTEN, "127.0.0.1:8787", "default");
	assert_int_equal(config_number(&config, CONFIG_CLAIM_VERIFY_AFTER_MS), 120000);
	assert_true(config_bool(&config, CONFIG_WORKER_RESCHEDULE_ON_EXPIRY));
	assert_int_equal(config_number(&config, CONFIG_LOG_LEVEL), 2); /* info */
}

static void whoever_stands_higher_is_heard(void **state)
{
	static const char line_1[] = "{\"retry\":{\"baseMs\":%d}}";
	char text[100];
	const struct config_flag flag = {"--set", "retry.baseMs", "5"};

	(void)state;
	snprintf(text, sizeof text, line_1, 1);
	write_file("system.json", text);
	config_read(&config, &request);
	expect(CONFIG_RETRY_BASE_MS, "1", in_top("system.json:1:11"));
	snprintf(text, sizeof text, line_1, 2);
	write_file("user/stint/config.json", text);
	config_done(&config);
	config_read(&config, &request);
	expect(CONFIG_RETRY_BASE_MS, "2", in_top("user/stint/config.json:1:11"));
	snprintf(text, sizeof text, line_1, 3);
	write_file("home/config.json", text);
	config_done(&config);
	config_read(&config, &request);
	expect(CONFIG_RETRY_BASE_MS, "3", in_top("home/config.json:1:11"));
	setenv("STINT_RETRY_BASE_MS", "4", 1);
	config_done(&config);
	config_read(&config, &request);
	expect(CONFIG_RETRY_BASE_MS, "4", "STINT_RETRY_BASE_MS");
	request.flags = &flag;
	request.flag_count = 1;
	config_done(&config);
	config_read(&config, &request);
	expect(CONFIG_RETRY_BASE_MS, "5", "--set");
	assert_int_equal(config_number(&config, CONFIG_RETRY_BASE_MS), 5);
	assert_int_equal(config.problem_count, 0);
}

static void files_add_up_key_by_key(void **state)
{
	(void)state;
	write_file("system.json", "{\"task\":{\"crashBudget\":7},\"log\":{\"level\":\"debug\"}}");
	write_file("home/config.json", "{\"task\":{\"timeoutMs\":9}}");
	config_read(&config, &request);
	expect(CONFIG_TASK_CRASH_BUDGET, "7", in_top("system.json:1:10"));
	expect(CONFIG_TASK_TIMEOUT_MS, "9", in_top("home/config.json:1:10"));
	expect(CONFIG_LOG_LEVEL, "debug", in_top("system.json:1:34"));
}

static void a_named_file_replaces_all_of_them(void **state)
{
	(void)state;
	write_file("system.json", "{\"retry\":{\"baseMs\":1}}");
	write_file("home/config.json", "{\"retry\":{\"maxMs\":2}}");
	write_file("named.json", "{}");
	request.file = in_top("named.json");
	config_read(&config, &request);
	assert_int_equal(config.problem_count, 0);
	expect(CONFIG_RETRY_BASE_MS, "10000", "default");
	expect(CONFIG_RETRY_MAX_MS, "300000", "default");
}

static void an_empty_variable_counts_as_unset(void **state)
{
	(void)state;
	setenv("STINT_LOG_LEVEL", "", 1);
	config_read(&config, &request);
	expect(CONFIG_LOG_LEVEL, "info", "default");
	assert_int_equal(config.problem_count, 0);
}

static void an_empty_variable_is_a_text_where_an_empty_text_means_something(void **state)
{
	(void)state;
	unsetenv("CLAWNSOLE_DEFAULT_QUEUES");
	config_read(&config, &request);
	expect(CONFIG_WORKQUEUE_DEFAULT_QUEUES, "dev-team", "default");
	config_done(&config);
	setenv("CLAWNSOLE_DEFAULT_QUEUES", "", 1);
	config_read(&config, &request);
	expect(CONFIG_WORKQUEUE_DEFAULT_QUEUES, "", "CLAWNSOLE_DEFAULT_QUEUES");
	assert_int_equal(config.problem_count, 0);
	unsetenv("CLAWNSOLE_DEFAULT_QUEUES");
}

static void the_home_comes_from_the_flag_the_variable_or_the_user(void **state)
{
	(void)state;
	setenv("STINT_HOME", in_top("variable"), 1);
	config_read(&config, &request);
	assert_string_equal(config.home.text, path_of_home);
	assert_string_equal(config.home.origin.name, "--home");
	request.home = NULL;
	config_done(&config);
	config_read(&config, &request);
	assert_string_equal(config.home.text, in_top("variable"));
	assert_string_equal(config.home.origin.name, "STINT_HOME");
	unsetenv("STINT_HOME");
	setenv("XDG_STATE_HOME", in_top("state"), 1);
	config_done(&config);
	config_read(&config, &request);
	assert_string_equal(config.home.text, in_top("state/stint"));
	unsetenv("XDG_STATE_HOME");
}

/* ---- what is wrong, and where ---- */

static void an_unknown_key_is_told_with_its_line_and_a_guess(void **state)
{
	(void)state;
	expect_file_problem("// one\n{\n\t/* \"retry\": { */\n\t\"retry\": { \"basMs\": 1 },\n}\n",
		":4:13: retry.basMs is not a known key; did you mean retry.baseMs?");
	expect_file_problem("{\"Listen\":\"\"}", ":1:2: Listen is not a known key; did you mean listen?");
	expect_file_problem("{\"umbrella\":{\"parkMs\":1}}",
		":1:2: umbrella is not a known key; stintd --help lists the keys");
	expect_file_problem("{\"retry\":{\"\\u0062aseMs\\u0000\":1}}",
		":1:11: retry.baseMs is not a known key; did you mean retry.baseMs?");
}

static void a_value_of_the_wrong_kind_is_told_with_what_is_allowed(void **state)
{
	(void)state;
	expect_file_problem("{\n \"retry\": {\n  \"baseMs\":\n   \"10s\"\n }\n}",
		":3:3: retry.baseMs must be a whole number of ms from 1 to 86400000; it is \"10s\"");
	expect_file_problem("{\"retry\":{\"baseMs\":1.5}}",
		":1:11: retry.baseMs must be a whole number of ms from 1 to 86400000; it is 1.5");
	expect_file_problem("{\"task\":{\"crashBudget\":null}}",
		":1:10: task.crashBudget must be a whole number from 1 to 1000; it is null");
	expect_file_problem("{\"behindProxy\":1}", ":1:2: behindProxy must be true or false; it is 1");
	expect_file_problem(
		"{\"listen\":[\"a\"]}", ":1:2: listen must be a string: ADDRESS:PORT; it is a list of 1");
	expect_file_problem("{\"log\":{\"level\":\"loud\"}}",
		":1:9: log.level must be \"error\", \"warn\", \"info\" or \"debug\"; it is \"loud\"");
	expect_file_problem("{\"log\":\"debug\"}",
		":1:2: log is a group of keys: { \"NAME\": VALUE, … }; it is \"debug\"");
	expect_file_problem("{\"retry.baseMs\":1}",
		":1:2: retry.baseMs: in a file, write groups as objects: { \"retry\": { \"baseMs\": … } }");
}

static void a_value_out_of_range_is_told_with_the_range(void **state)
{
	(void)state;
	expect_file_problem("{\"task\":{\"crashBudget\":0}}",
		":1:10: task.crashBudget must be a whole number from 1 to 1000; it is 0");
	expect_file_problem("{\"task\":{\"crashBudget\":-1}}",
		":1:10: task.crashBudget must be a whole number from 1 to 1000; it is -1");
	expect_file_problem("{\"task\":{\"crashBudget\":18446744073709551615}}",
		":1:10: task.crashBudget must be a whole number from 1 to 1000; it is 18446744073709551615");
}

static void what_is_not_json_is_told_with_its_line(void **state)
{
	(void)state;
	expect_file_problem("", ":1:1: The text is empty.");
	expect_file_problem("[]", ":1:1: a configuration is one object: { \"KEY\": VALUE, … }");
	expect_file_problem("{\"a\":1,\n \"a\":2}", ":2:2: The key \"a\" is repeated.");
	write_file("home/config.json", "{\n\"retry\" 1}");
	config_done(&config);
	config_read(&config, &request);
	assert_int_equal(config.problems[0].where.line, 2);
	assert_int_equal(config.problems[0].where.column, 9);
}

static void a_wrong_variable_or_flag_is_told_by_its_name(void **state)
{
	struct config_flag flag = {"--set", "retry.baseMs", "0x10"};

	(void)state;
	setenv("STINT_TASK_CRASH_BUDGET", "many", 1);
	config_read(&config, &request);
	expect_problem(NULL,
		"STINT_TASK_CRASH_BUDGET: task.crashBudget must be a whole number from 1 to 1000; it is \"many\"");
	unsetenv("STINT_TASK_CRASH_BUDGET");
	request.flags = &flag;
	request.flag_count = 1;
	config_done(&config);
	config_read(&config, &request);
	expect_problem(
		NULL, "--set: retry.baseMs must be a whole number of ms from 1 to 86400000; it is \"0x10\"");
	flag.key = "retry.basems";
	config_done(&config);
	config_read(&config, &request);
	expect_problem(NULL, "--set: retry.basems is not a known key; did you mean retry.baseMs?");
}

static void everything_that_is_wrong_is_told_at_once(void **state)
{
	cleanup(buf_done) struct buf out;

	(void)state;
	write_file("system.json", "{\n");
	write_file("home/config.json", "{\"a\":1,\n\"b\":2,\n\"retry\":{\"baseMs\":0}}");
	setenv("STINT_LOG_LEVEL", "loud", 1);
	config_read(&config, &request);
	unsetenv("STINT_LOG_LEVEL");
	assert_int_equal(config.problem_count, 5);
	assert_int_equal(config.problems[2].where.line, 2);
	assert_int_equal(config.problems[3].where.line, 3);
	expect(CONFIG_LOG_LEVEL, "info", "default"); /* a wrong value leaves the key as it was */
	buf_init(&out, 1 << 20);
	assert_int_equal(config_put_json(&out, &config), 0);
}

static void many_problems_are_counted(void **state)
{
	cleanup(buf_done) struct buf text, out;

	(void)state;
	buf_init(&text, 1 << 20);
	for (int i = 0; i < 100; i++)
		assert_int_equal(buf_printf(&text, "%c\"a%d\":1", i ? ',' : '{', i), 0);
	assert_int_equal(buf_put(&text, "}", 2), 0);
	write_file("home/config.json", text.data);
	config_read(&config, &request);
	buf_init(&out, 1 << 20);
	assert_int_equal(config_put_problems(&out, &config, "stintd: "), 0);
	assert_int_equal(buf_put_byte(&out, 0), 0);
	assert_non_null(strstr(out.data, "\nstintd: and 36 more\n"));
}

static void control_characters_do_not_reach_the_terminal(void **state)
{
	(void)state;
	expect_file_problem(
		"{\"\\u001b[2J\":1}", ":1:2: ?[2J is not a known key; stintd --help lists the keys");
	expect_file_problem("{\"store\":\"sqlite:\\u001b\"}",
		":1:2: store must be a string: sqlite:PATH or postgres://…; it is \"sqlite:?\"");
}

/* ---- others ---- */

static void keys_of_other_programs_are_left_to_them(void **state)
{
	(void)state;
	write_file("home/config.json",
		"{\"$schema\":\"x\",\n\"roots\":[\"~\"],\n\"executors\":{\"a\":{\"kind\":1}},\n\"queues\":{}}");
	config_read(&config, &request);
	assert_int_equal(config.problem_count, 0);
	assert_int_equal(config.foreign_count, 4);
	assert_string_equal(config.foreign[2].name, "executors");
	assert_string_equal(config.foreign[2].program, "stint-worker");
	assert_int_equal(config.foreign[2].where.line, 3);
}

static void their_keys_are_nothing_inside_a_group(void **state)
{
	(void)state;
	expect_file_problem("{\"task\":{\"queues\":{}}}",
		":1:10: task.queues is not a known key; stintd --help lists the keys");
}

/* ---- whose file it is ---- */

static void a_file_that_others_may_write_is_refused(void **state)
{
	char expected[512];

	(void)state;
	write_file("home/config.json", "{}");
	assert_int_equal(chmod(in_top("home/config.json"), 0620), 0);
	config_read(&config, &request);
	snprintf(expected, sizeof expected, ": others may write to it (mode 620); fix: chmod go-w %s",
		in_top("home/config.json"));
	expect_problem("home/config.json", expected);
}

static void a_file_in_a_directory_that_others_may_write_is_refused(void **state)
{
	(void)state;
	write_file("user/stint/config.json", "{}");
	assert_int_equal(chmod(in_top("user"), 0777), 0);
	config_read(&config, &request);
	assert_int_equal(config.problem_count, 1);
	assert_non_null(strstr(config.problems[0].what, "replace this file; fix: chmod go-w "));
	assert_int_equal(chmod(in_top("user"), 01777), 0); /* sticky: nobody replaces what is not theirs */
	config_done(&config);
	config_read(&config, &request);
	assert_int_equal(config.problem_count, 0);
}

static void a_file_of_somebody_else_is_refused(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip_because("only root can give files away");
	write_file("home/config.json", "{}");
	assert_int_equal(chown(in_top("home/config.json"), 65534, 65534), 0);
	config_read(&config, &request);
	expect_problem("home/config.json",
		": belongs to user 65534; a configuration must belong to root or to user 0");
}

static void a_link_into_an_open_place_is_refused(void **state)
{
	(void)state;
	assert_int_equal(mkdir(in_top("open"), 0700), 0);
	write_file("open/real.json", "{}");
	assert_int_equal(chmod(in_top("open"), 0777), 0);
	assert_int_equal(symlink(in_top("open/real.json"), in_top("home/config.json")), 0);
	config_read(&config, &request);
	assert_int_equal(config.problem_count, 1);
	assert_non_null(strstr(config.problems[0].what, "/open and replace this file"));
}

static void what_cannot_be_read_is_refused(void **state)
{
	(void)state;
	assert_int_equal(mkfifo(in_top("home/config.json"), 0600), 0); /* and does not hang */
	config_read(&config, &request);
	expect_problem("home/config.json", ": is not a file");
	request.file = in_top("nowhere.json");
	config_done(&config);
	config_read(&config, &request);
	expect_problem("nowhere.json", ": cannot be read: No such file or directory");
}

static void a_huge_file_is_refused(void **state)
{
	(void)state;
	write_file("home/config.json", "{}");
	assert_int_equal(truncate(in_top("home/config.json"), CONFIG_FILE_BYTES_MAX + 1), 0);
	config_read(&config, &request);
	expect_problem("home/config.json", ": is larger than a configuration may be: 1048576 bytes");
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(everything_has_a_default),
		CASE(whoever_stands_higher_is_heard),
		CASE(files_add_up_key_by_key),
		CASE(a_named_file_replaces_all_of_them),
		CASE(an_empty_variable_counts_as_unset),
		CASE(an_empty_variable_is_a_text_where_an_empty_text_means_something),
		CASE(the_home_comes_from_the_flag_the_variable_or_the_user),
		CASE(an_unknown_key_is_told_with_its_line_and_a_guess),
		CASE(a_value_of_the_wrong_kind_is_told_with_what_is_allowed),
		CASE(a_value_out_of_range_is_told_with_the_range),
		CASE(what_is_not_json_is_told_with_its_line),
		CASE(a_wrong_variable_or_flag_is_told_by_its_name),
		CASE(everything_that_is_wrong_is_told_at_once),
		CASE(many_problems_are_counted),
		CASE(control_characters_do_not_reach_the_terminal),
		CASE(keys_of_other_programs_are_left_to_them),
		CASE(their_keys_are_nothing_inside_a_group),
		CASE(a_file_that_others_may_write_is_refused),
		CASE(a_file_in_a_directory_that_others_may_write_is_refused),
		CASE(a_file_of_somebody_else_is_refused),
		CASE(a_link_into_an_open_place_is_refused),
		CASE(what_cannot_be_read_is_refused),
		CASE(a_huge_file_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
