/* What a worker may run, as files say it; and the environment of a child. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "attempt/environment.h"
#include "worker/settings/settings.h"

struct world {
	char home[64], file[128], lower[128];
	struct config config;
	struct settings settings;
};

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static int set_up(void **state)
{
	static struct world world;

	world = (struct world){.home = "/tmp/stint-settings-XXXXXX"};
	unsetenv("STINT_HOME");
	setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
	if (!mkdtemp(world.home))
		return -1;
	snprintf(world.file, sizeof world.file, "%s/config.json", world.home);
	snprintf(world.lower, sizeof world.lower, "%s/system.json", world.home);
	*state = &world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	config_done(&w->config);
	unlink(w->file);
	unlink(w->lower);
	rmdir(w->home);
	return 0;
}

static void reads(struct world *w, const char *text, const char *lower)
{
	struct config_request request = {.home = w->home,
		.system_file = w->lower,
		.foreign_read = settings_read,
		.foreign_context = &w->settings};

	config_done(&w->config); /* of a reading before this one; the settings' texts are its memory */
	w->config = (struct config){0};
	w->settings = (struct settings){0};
	write_file(w->file, text);
	if (lower)
		write_file(w->lower, lower);
	config_read(&w->config, &request);
	settings_check(&w->settings, &w->config);
}

static void complains(struct world *w, const char *text, const char *part)
{
	reads(w, text, NULL);
	assert_int_equal(w->config.problem_count, 1);
	if (!strstr(w->config.problems[0].what, part))
		assert_string_equal(w->config.problems[0].what, part);
	assert_true(w->config.problems[0].where.line > 0);
}

static void an_executor_is_read_with_all_it_may_say(void **state)
{
	struct world *w = *state;

	reads(w,
		"{\"executors\":{\"t\":{\"kind\":\"command\",\"argv\":[\"make\",\"\",\"test\"],\"env\":{\"A\":\"b c\"},"
		"\"envAllow\":[\"TERM\"],\"read\":[\"/opt\"],\"write\":[\"/srv\"],\"timeoutMs\":7,\"startMs\":8,"
		"\"stallMs\":9,\"graceMs\":0,\"limits\":{\"files\":64,\"cpus\":1.5},"
		"\"budget\":{\"minutes\":0.5,\"cpuSeconds\":60,\"memoryBytes\":2000000,\"outputBytes\":1000}}}}",
		NULL);
	assert_int_equal(w->config.problem_count, 0);
	const struct executor *t = settings_executor(&w->settings, "t");
	assert_non_null(t);
	assert_string_equal(t->argv[0], "make");
	assert_string_equal(t->argv[1], "");
	assert_string_equal(t->argv[2], "test");
	assert_null(t->argv[3]);
	assert_string_equal(t->env[0], "A=b c");
	assert_string_equal(t->env_allow[0], "TERM");
	assert_string_equal(t->write[0].name, "/srv");
	assert_int_equal(t->timeout_ms, 7);
	assert_int_equal(t->start_ms, 8);
	assert_int_equal(t->stall_ms, 9);
	assert_int_equal(t->grace_ms, 0);
	assert_int_equal(t->limits.files, 64);
	assert_int_equal(t->limits.cpu_milli, 1500);
	assert_int_equal(t->budget_ms, 30000);
	assert_int_equal(t->limits.cpu_us, 60000000);
	assert_int_equal(t->limits.memory_bytes, 2000000);
	assert_int_equal(t->limits.output_bytes, 1000);
	assert_int_equal(t->bounds, 1u << BOUND_MEMORY | 1u << BOUND_CPU);
	assert_null(settings_executor(&w->settings, "x"));
}

static void the_file_above_replaces_an_executor_and_the_roots_and_leaves_the_others(void **state)
{
	struct world *w = *state;

	reads(w, "{\"executors\":{\"a\":{\"kind\":\"command\",\"argv\":[\"new\"]}},\"roots\":[\"/new\"]}",
		"{\"executors\":{\"a\":{\"kind\":\"command\",\"argv\":[\"old\"],\"stallMs\":5},"
		"\"b\":{\"kind\":\"command\",\"argv\":\"payload\"}},\"roots\":[\"/old\",\"/older\"]}");
	assert_int_equal(w->config.problem_count, 0);
	assert_int_equal(w->settings.executor_count, 2);
	assert_string_equal(settings_executor(&w->settings, "a")->argv[0], "new");
	assert_int_equal(settings_executor(&w->settings, "a")->stall_ms, 0);
	assert_null(settings_executor(&w->settings, "b")->argv);
	assert_int_equal(w->settings.root_count, 1);
	assert_string_equal(w->settings.roots[0], "/new");
}

static void a_task_that_names_none_has_that_of_its_queue_or_the_only_one(void **state)
{
	struct world *w = *state;

	reads(w,
		"{\"executors\":{\"a\":{\"kind\":\"command\",\"argv\":[\"x\"]},\"b\":{\"kind\":\"command\",\"argv\":[\"y\"]}},"
		"\"queues\":{\"q\":{\"executor\":\"b\"},\"r\":{\"weight\":3}}}",
		NULL);
	assert_string_equal(settings_queue_executor(&w->settings, "q")->name, "b");
	assert_null(settings_queue_executor(&w->settings, "r"));
	w->settings.executor_count = 1;
	assert_string_equal(settings_queue_executor(&w->settings, "r")->name, "a");
}

static void the_shell_of_the_configuration_stays(void **state)
{
	struct world *w = *state;

	reads(w, "{\"executors\":{\"shell\":{\"kind\":\"command\",\"argv\":[\"mine\"]}}}", NULL);
	settings_add_payload(&w->settings, "shell");
	settings_add_payload(&w->settings, "other");
	assert_string_equal(settings_executor(&w->settings, "shell")->argv[0], "mine");
	assert_null(settings_executor(&w->settings, "other")->argv);
}

static void homes_are_expanded_in_the_configuration(void **state)
{
	struct world *w = *state;

	setenv("HOME", "/home/ann", 1);
	reads(w, "{\"roots\":[\"~/work\",\"/srv\"]}", NULL);
	assert_string_equal(w->settings.roots[0], "/home/ann/work");
	assert_string_equal(w->settings.roots[1], "/srv");
}

static void a_kind_that_there_is_not_is_told_with_those_there_are(void **state)
{
	complains(*state, "{\"executors\":{\"a\":{\"kind\":\"robot\",\"argv\":[\"x\"]}}}",
		"executors.a.kind must be \"command\", \"pool\" or \"agent\"; it is \"robot\"");
}

#define AGENT(members) "{\"executors\":{\"a\":{\"kind\":\"agent\"," members "}}}"

static void an_agent_needs_an_adapter_that_can_carry_what_is_asked_of_it(void **state)
{
	complains(*state, AGENT("\"argv\":[\"x\"]"), "executors.a.adapter is missing");
	complains(*state, AGENT("\"adapter\":\"clod\""), "executors.a.adapter must be claude, codex,");
	complains(*state, AGENT("\"adapter\":\"custom\""),
		"executors.a.argv is missing: adapter custom has no program");
	complains(*state, AGENT("\"adapter\":\"gemini\",\"policy\":{\"default\":\"ask\"}"),
		"executors.a.policy cannot be carried by adapter gemini");
	complains(*state, AGENT("\"adapter\":\"codex\",\"budget\":{\"usd\":5}"),
		"executors.a.budget.usd cannot be metered: codex says tokens and no money");
	complains(*state, AGENT("\"adapter\":\"claude\",\"isolation\":\"sandbox\",\"network\":false"),
		"executors.a.network is false");
	complains(*state, AGENT("\"adapter\":\"claude\",\"prompt\":\"{title} {titel}\""),
		"executors.a.prompt has {titel}, which is not known");
	complains(*state, AGENT("\"adapter\":\"claude\",\"policy\":{\"rules\":[{\"tool\":\"Bash\"}]}"),
		"executors.a.policy.rules[0].do is required");
	complains(*state, AGENT("\"adapter\":\"claude\",\"checks\":{\"test\":\"make\"}"),
		"executors.a.checks.test");
	complains(*state, "{\"executors\":{\"a\":{\"kind\":\"command\",\"argv\":[\"x\"],\"policy\":{}}}}",
		"executors.a.policy is only for executors of kind \"agent\"");
}

static void unknown_keys_are_named_with_those_there_are(void **state)
{
	complains(*state, "{\"executors\":{\"a\":{\"kind\":\"command\",\"argv\":[\"x\"],\"cwd\":\"/\"}}}",
		"executors.a.cwd is not a known key; known are kind, argv,");
}

static void a_budget_that_nobody_counts_is_a_mistake(void **state)
{
	complains(*state,
		"{\"executors\":{\"a\":{\"kind\":\"command\",\"argv\":[\"x\"],\"budget\":{\"usd\":5}}}}",
		"executors.a.budget.usd cannot be enforced: this is counted for agents only");
}

static void a_work_tree_is_made_as_it_says(void **state)
{
	struct world *w = *state;

	reads(w,
		"{\"executors\":{\"a\":{\"kind\":\"command\",\"argv\":[\"x\"],\"worktree\":{\"root\":\"/srv/trees\","
		"\"branch\":\"bots/{fence}\",\"base\":\"origin/main\",\"setup\":[\"npm\",\"ci\"],\"setupMs\":9}},"
		"\"b\":{\"kind\":\"command\",\"argv\":[\"x\"],\"worktree\":true},\"c\":{\"kind\":\"command\",\"argv\":[\"x\"]}}}",
		NULL);
	assert_int_equal(w->config.problem_count, 0);
	const struct settings_worktree *a = &settings_executor(&w->settings, "a")->worktree;
	assert_string_equal(a->root, "/srv/trees");
	assert_string_equal(a->branch, "bots/{fence}");
	assert_string_equal(a->base, "origin/main");
	assert_string_equal(a->setup[1], "ci");
	assert_int_equal(a->setup_ms, 9);
	assert_true(settings_executor(&w->settings, "b")->worktree.on);
	assert_string_equal(settings_executor(&w->settings, "b")->worktree.branch, "stint/{task}-{fence}");
	assert_false(settings_executor(&w->settings, "c")->worktree.on);
}

static void a_branch_that_two_attempts_would_share_is_a_mistake(void **state)
{
	complains(*state,
		"{\"executors\":{\"a\":{\"kind\":\"command\",\"argv\":[\"x\"],\"worktree\":{\"branch\":\"bots/{task}\"}}}}",
		"executors.a.worktree.branch must be a name of a branch with a / and with {fence} in it");
}

static void a_branch_that_git_would_not_take_is_a_mistake(void **state)
{
	static const char *const branches[] = {"a/{fence}/", "a/{fence}.", "a/{fence}.lock", "a.lock/{fence}",
		"a/{fence}{attempt}", "a/{fence}}", "a/.{fence}", "a//{fence}"};
	struct world *w = *state;
	char text[300];

	for (size_t i = 0; i < sizeof branches / sizeof *branches; i++) {
		snprintf(text, sizeof text,
			"{\"executors\":{\"a\":{\"kind\":\"command\",\"argv\":[\"x\"],\"worktree\":{\"branch\":\"%s\"}}}}",
			branches[i]);
		complains(w, text, "executors.a.worktree.branch must be a name of a branch");
		config_done(&w->config); /* whose memory the settings are */
		w->config = (struct config){0};
		w->settings = (struct settings){0};
	}
}

static void a_set_up_begins_with_a_program(void **state)
{
	complains(*state,
		"{\"executors\":{\"a\":{\"kind\":\"command\",\"argv\":[\"x\"],\"worktree\":{\"setup\":[\"\"]}}}}",
		"executors.a.worktree.setup must be a list that begins with a program");
}

static void what_is_a_budget_is_no_limit(void **state)
{
	complains(*state,
		"{\"executors\":{\"a\":{\"kind\":\"command\",\"argv\":[\"x\"],\"limits\":{\"memoryBytes\":5000000}}}}",
		"executors.a.limits.memoryBytes is a part of \"budget\"");
}

static void our_own_variables_are_ours(void **state)
{
	complains(*state,
		"{\"executors\":{\"a\":{\"kind\":\"command\",\"argv\":[\"x\"],\"envAllow\":[\"STINT_TOKEN\"]}}}",
		"STINT_");
	complains(*state,
		"{\"executors\":{\"a\":{\"kind\":\"command\",\"argv\":[\"x\"],\"envFromTask\":[\"LD_PRELOAD\"]}}}",
		"LD_");
	complains(*state,
		"{\"executors\":{\"a\":{\"kind\":\"pool\",\"argv\":[\"x\"],\"envFromTask\":[\"A\"]}}}",
		"envFromTask is not for pools");
}

/* ---- environments ---- */

static const char *value_of(const char *const *env, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; env[i]; i++) {
		if (strncmp(env[i], name, len) == 0 && env[i][len] == '=')
			return env[i] + len + 1;
	}
	return NULL;
}

static void an_environment_has_what_is_ours_and_what_its_executor_says(void **state)
{
	static const char *const own[] = {"PATH=/mine", "X=y", NULL}, *const allow[] = {"TERM", "LANG", NULL};
	struct executor executor = {.env = own, .env_allow = allow};
	struct environment about = {.url = "unix:/s",
		.task = "t",
		.fence = "7",
		.queue = "q",
		.worker = "w",
		.workspace = "/ws",
		.home = "/h",
		.tmp = "/t",
		.attempt = 2,
		.deadline_ms = 9};
	struct arena arena;

	(void)state;
	arena_init(&arena, 1 << 20);
	const char *const *env = environment_make(&arena, &about, &executor);
	assert_string_equal(value_of(env, "PATH"), "/mine");
	assert_string_equal(value_of(env, "X"), "y");
	assert_string_equal(value_of(env, "STINT_ATTEMPT"), "2");
	assert_string_equal(value_of(env, "STINT_DEADLINE_MS"), "9");
	assert_null(value_of(env, "STINT_TOKEN_FILE"));
	const char *const *names = environment_allowed(&arena, &executor);
	size_t langs = 0;
	for (size_t i = 0; names[i]; i++)
		langs += strcmp(names[i], "LANG") == 0;
	assert_int_equal(langs, 1);
	arena_done(&arena);
}

static void variables_of_a_task_give_way_to_the_executor_and_outrank_the_rest(void **state)
{
	static const char *const own[] = {"X=operator", NULL};
	static const char *const of_task[] = {"X=task", "XY=1", "PATH=/theirs", NULL};
	struct executor executor = {.env = own};
	struct environment about = {.task = "t", .home = "/h", .from_task = of_task};
	struct arena arena;

	(void)state;
	arena_init(&arena, 1 << 20);
	const char *const *env = environment_make(&arena, &about, &executor);
	assert_string_equal(value_of(env, "X"), "operator");
	assert_string_equal(value_of(env, "XY"), "1");
	assert_string_equal(value_of(env, "PATH"), "/theirs");
	assert_string_equal(value_of(env, "HOME"), "/h");
	size_t count = 0;
	for (size_t i = 0; env[i]; i++)
		count += strncmp(env[i], "X=", 2) == 0 || strncmp(env[i], "PATH=", 5) == 0;
	assert_int_equal(count, 2); /* none of them twice */
	arena_done(&arena);
}

static void grants(struct world *w, const char *key, const char *path, const char *complaint)
{
	char text[600];

	snprintf(text, sizeof text,
		"{\"executors\":{\"t\":{\"kind\":\"command\",\"argv\":[\"x\"],\"%s\":[\"/usr\",\"%s\"]}}}",
		key, path);
	if (complaint)
		complains(w, text, complaint);
	else
		reads(w, text, NULL);
	assert_int_equal(w->config.problem_count, complaint != NULL);
	config_done(&w->config);
	w->settings = (struct settings){0}; /* its texts were the configuration's */
}

static void a_grant_that_opens_the_state_directory_is_a_mistake(void **state)
{
	struct world *w = *state;
	char path[200], link[100], wanted[300];

	snprintf(wanted, sizeof wanted, "executors.t.read has \"/\", which holds the state directory %s",
		w->home);
	grants(w, "read", "/", wanted);
	grants(w, "read", "/tmp", "name the directories in it that are needed");
	grants(w, "write", w->home, "holds the state directory");
	snprintf(path, sizeof path, "%s/backups", w->home);
	snprintf(wanted, sizeof wanted, "executors.t.write has \"%s\", which lies in the state directory",
		path);
	grants(w, "write", path, wanted);
	snprintf(path, sizeof path, "/usr/..%s/config.json", w->home);
	grants(w, "read", path, "lies in the state directory");
	snprintf(link, sizeof link, "%s.link", w->home);
	assert_int_equal(symlink(w->home, link), 0);
	grants(w, "read", link, "holds the state directory");
	snprintf(path, sizeof path, "%s/not/there/yet", link);
	grants(w, "read", path, "lies in the state directory");
	unlink(link);
}

static void a_neighbour_of_the_state_directory_is_none_of_it(void **state)
{
	struct world *w = *state;
	char path[200];

	snprintf(path, sizeof path, "%s.not", w->home);
	assert_int_equal(mkdir(path, 0700), 0);
	grants(w, "read", path, NULL);
	assert_int_equal(rmdir(path), 0);
	grants(w, "read", path, "executors.t.read names /tmp/");
	grants(w, "write", path, ".not, which does not exist");
}

static void home_is_a_word_of_read_alone(void **state)
{
	struct world *w = *state;

	grants(w, "write", "home", "executors.t.write must be a list of absolute paths");
	grants(w, "read", "home", NULL);
	reads(w,
		"{\"executors\":{\"t\":{\"kind\":\"command\",\"argv\":\"payload\",\"read\":[\"home\",\"/usr\"]}}}",
		NULL);
	assert_true(w->settings.executors[0].reads_home);
	assert_string_equal(w->settings.executors[0].read[0].name, "/usr");
	assert_null(w->settings.executors[0].read[1].name);
}

static void a_tilde_in_an_argv_is_a_mistake(void **state)
{
	struct world *w = *state;

	complains(w, "{\"executors\":{\"t\":{\"kind\":\"command\",\"argv\":[\"node\",\"~/job.js\"]}}}",
		"executors.t.argv has \"~/job.js\": no shell reads it");
}

static void where_a_granted_path_leads_is_looked_up_once(void **state)
{
	struct world *w = *state;
	struct grant found[2 * PATHS_MAX];
	char link[200], path[300], text[600];

	snprintf(link, sizeof link, "%s.link", w->home);
	assert_int_equal(symlink("/usr/bin", link), 0);
	snprintf(path, sizeof path, "%s/../lib", link);
	snprintf(text, sizeof text,
		"{\"executors\":{\"t\":{\"kind\":\"command\",\"argv\":[\"x\"],\"write\":[\"%s\"]}}}", path);
	reads(w, text, NULL);
	unlink(link);
	assert_int_equal(executor_grants(settings_executor(&w->settings, "t"), found), 1);
	assert_string_equal(found[0].path, "/usr/lib");
	assert_string_equal(found[0].inside, path);
	assert_int_equal(found[0].access, GRANT_WRITE);
	assert_true(found[0].direct);
	assert_true(found[0].outside);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(an_executor_is_read_with_all_it_may_say),
		T(the_file_above_replaces_an_executor_and_the_roots_and_leaves_the_others),
		T(a_task_that_names_none_has_that_of_its_queue_or_the_only_one),
		T(the_shell_of_the_configuration_stays),
		T(homes_are_expanded_in_the_configuration),
		T(a_kind_that_there_is_not_is_told_with_those_there_are),
		T(an_agent_needs_an_adapter_that_can_carry_what_is_asked_of_it),
		T(unknown_keys_are_named_with_those_there_are),
		T(a_budget_that_nobody_counts_is_a_mistake),
		T(a_work_tree_is_made_as_it_says),
		T(a_branch_that_two_attempts_would_share_is_a_mistake),
		T(a_branch_that_git_would_not_take_is_a_mistake),
		T(a_set_up_begins_with_a_program),
		T(what_is_a_budget_is_no_limit),
		T(a_grant_that_opens_the_state_directory_is_a_mistake),
		T(a_neighbour_of_the_state_directory_is_none_of_it),
		T(home_is_a_word_of_read_alone),
		T(a_tilde_in_an_argv_is_a_mistake),
		T(where_a_granted_path_leads_is_looked_up_once),
		T(our_own_variables_are_ours),
		T(an_environment_has_what_is_ours_and_what_its_executor_says),
		T(variables_of_a_task_give_way_to_the_executor_and_outrank_the_rest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
