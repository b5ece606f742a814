/* The home of a person: which of its paths are open, and where a program is installed. */
#include <errno.h>
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

#include "attempt/git_identity.h"
#include "attempt/hint.h"
#include "attempt/program.h"

static const struct person_home ann = {.path = "/home/ann", .state = "/home/ann/.local/state/stint"};

static void every_path_of_the_home_has_its_kind(void **state)
{
	static const struct {
		const char *path;
		enum home_kind kind;
	} rows[] = {
		{"/srv", HOME_OUTSIDE},
		{"/home/annabel", HOME_OUTSIDE},
		{"/", HOME_ABOVE},
		{"/home", HOME_ABOVE},
		{"/home/ann", HOME_ABOVE},
		{"/home/ann/work", HOME_OPEN},
		{"/home/ann/work/.git", HOME_OPEN},
		{"/home/ann/.tomorrow", HOME_CLOSED},
		{"/home/ann/.config/tomorrow/x", HOME_CLOSED},
		{"/home/ann/.pyenv/shims/python3", HOME_TOOLCHAIN},
		{"/home/ann/.pyenv2", HOME_CLOSED},
		{"/home/ann/.cargo/bin", HOME_TOOLCHAIN},
		{"/home/ann/.cargo/credentials.toml", HOME_SECRET},
		{"/home/ann/.cargo", HOME_SECRET}, /* it holds one */
		{"/home/ann/.ssh", HOME_SECRET},
		{"/home/ann/.ssh/id_rsa", HOME_SECRET},
		{"/home/ann/.bash_history", HOME_SECRET},
		{"/home/ann/.claude.json", HOME_SECRET},
		{"/home/ann/.config/google-chrome-beta/x", HOME_SECRET},
		{"/home/ann/.config", HOME_SECRET},
		{"/home/ann/.local/share/claude", HOME_TOOLCHAIN},
		{"/home/ann/server.key", HOME_SECRET},
		{"/home/ann/work/server.key", HOME_OPEN},
		{"/home/ann/.local/state", HOME_STATE},
		{"/home/ann/.local/state/stint/runs", HOME_STATE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (person_home_kind(&ann, rows[i].path) != rows[i].kind)
			fail_msg("%s is of another kind", rows[i].path);
}

static void where_the_link_of_a_secret_leads_is_one_too(void **state)
{
	static const char *const led[] = {"/home/ann/dotfiles/ssh"};
	struct person_home home = ann;

	(void)state;
	home.led = led;
	home.led_count = 1;
	assert_int_equal(person_home_kind(&home, "/home/ann/dotfiles"), HOME_SECRET);
	assert_int_equal(person_home_kind(&home, "/home/ann/dotfiles/ssh/id"), HOME_SECRET);
	assert_int_equal(person_home_kind(&home, "/home/ann/dotfiles/vim"), HOME_OPEN);
}

static void a_work_dir_is_barred_unless_a_root_names_it(void **state)
{
	static const char *const roots[] = {"/nonexistent/ann/.config/nvim", "/nonexistent/ann"};
	const struct person_home home = {.path = "/nonexistent/ann"};

	(void)state;
	assert_null(person_home_bars(&home, roots, 2, "/nonexistent/ann/work"));
	assert_null(person_home_bars(&home, roots, 2, "/nonexistent/ann/.config/nvim/lua"));
	assert_non_null(person_home_bars(&home, roots, 2, "/nonexistent/ann/.config/other"));
	assert_non_null(person_home_bars(&home, roots, 2, "/nonexistent/ann/.ssh"));
	assert_null(person_home_bars(&home, roots, 2, "/nonexistent/ann"));
	assert_non_null(person_home_bars(&home, roots, 1, "/nonexistent/ann"));
	assert_non_null(person_home_bars(&home, roots, 2, "/nonexistent"));
	assert_null(person_home_bars(&home, roots, 2, "/srv/work"));
}

/* ---- programs ------------------------------------------------------------------------------------------------------ */

struct world {
	char top[64];
	struct arena arena;
	struct person_home home;
	struct program_place place;
	struct grant items[64];
	struct grant_list list;
};

static bool tasks_write(const void *context, const char *dir)
{
	const struct world *w = context;

	return strstr(dir, "/work") != NULL && strncmp(dir, w->top, strlen(w->top)) == 0;
}

static int set_up(void **state)
{
	static struct world world;

	world = (struct world){.top = "/tmp/stint-person-XXXXXX"};
	if (!mkdtemp(world.top))
		return -1;
	arena_init(&world.arena, 1 << 20);
	world.home.path = world.top;
	world.place = (struct program_place){&world.home, "/usr/bin:/bin", tasks_write, &world};
	world.list = (struct grant_list){world.items, 0, 64};
	*state = &world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;
	char command[100];

	snprintf(command, sizeof command, "rm -rf %s", w->top);
	arena_done(&w->arena);
	return system(command) == 0 ? 0 : -1;
}

static void put(struct world *w, const char *name, const char *text)
{
	char path[300];

	snprintf(path, sizeof path, "%s/%s", w->top, name);
	for (char *at = path + strlen(w->top) + 1; (at = strchr(at, '/')); *at++ = '/') {
		*at = 0;
		assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
		*at = '/';
	}
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(chmod(path, 0755), 0);
}

static void put_link(struct world *w, const char *name, const char *target)
{
	char path[300];

	put(w, name, "");
	snprintf(path, sizeof path, "%s/%s", w->top, name);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(target, path), 0);
}

/* The grants are exactly these, beneath the home; NULL at the end. */
static void grants_are(struct world *w, const char *program, const char *const *names)
{
	char path[300];
	size_t count = 0;

	snprintf(path, sizeof path, "%s/%s", w->top, program);
	w->list.count = 0;
	program_grant(&w->place, &w->arena, path, &w->list);
	for (; names[count]; count++) {
		snprintf(path, sizeof path, "%s/%s", w->top, names[count]);
		assert_true(count < w->list.count);
		assert_string_equal(w->items[count].path, path);
		assert_true(w->items[count].direct);
		assert_int_equal(w->items[count].access, GRANT_READ);
	}
	assert_int_equal(w->list.count, count);
}

#define ARE(world, program, ...) grants_are(world, program, (const char *const[]){__VA_ARGS__, NULL})

static void the_install_tree_of_a_program_is_what_its_bin_lies_in(void **state)
{
	struct world *w = *state;
	char line[200];

	put(w, ".nvm/versions/v20/bin/node", "ELF");
	put(w, ".pyenv/shims/python3", "#!/usr/bin/env bash\n");
	put(w, "tools/tool", "ELF");
	ARE(w, ".nvm/versions/v20/bin/node", ".nvm/versions/v20");
	ARE(w, ".pyenv/shims/python3", ".pyenv");
	ARE(w, "tools/tool", "tools/tool");
	snprintf(line, sizeof line, "#!%s/.nvm/versions/v20/bin/node --flag\n", w->top);
	put(w, ".local/bin/script", line);
	ARE(w, ".local/bin/script", ".local/bin/script", ".nvm/versions/v20");
	put_link(w, ".npm-global/bin/tsc", "../lib/ts/bin/tsc.js");
	put(w, ".npm-global/lib/ts/bin/tsc.js", "#!/usr/bin/env node\n");
	ARE(w, ".npm-global/bin/tsc", ".npm-global", ".npm-global/lib/ts");
}

static void a_tree_that_is_too_much_is_the_file_alone(void **state)
{
	struct world *w = *state;

	put(w, "bin/own", "ELF");
	put(w, ".cargo/bin/cargo", "ELF");
	put_link(w, ".local/bin/claude", "../share/claude/versions/2");
	put(w, ".local/share/claude/versions/2", "ELF");
	ARE(w, "bin/own", "bin/own");
	ARE(w, ".cargo/bin/cargo", ".cargo/bin/cargo");
	ARE(w, ".local/bin/claude", ".local/share/claude/versions/2"); /* of a link what it leads to */
	put_link(w, ".local/bin/bad", "../../.ssh/id_rsa");
	put(w, ".ssh/id_rsa", "key");
	grants_are(w, ".local/bin/bad", (const char *const[]){NULL});
}

static void what_a_task_can_write_leads_nowhere(void **state)
{
	struct world *w = *state;

	put(w, ".private/bin/x", "ELF");
	put_link(w, "work/bin/x", "../../.private/bin/x");
	put(w, "work/bin/y", "#!/home/ann/.private/bin/x\n");
	ARE(w, "work/bin/x", "work");
	ARE(w, "work/bin/y", "work");
}

/* ---- hints --------------------------------------------------------------------------------------------------------- */

static const char *says(struct world *w, const char *words, const struct grant *grants, size_t count)
{
	struct hint_site site = {.home = &w->home,
		.grants = grants,
		.grant_count = count,
		.workdir = "/nonexistent",
		.executor = "x",
		.file = "/etc/stint/config.json",
		.configured = true};

	return hint_from_words(&site, &w->arena, span_of(words));
}

static void a_hint_names_what_to_grant_and_where(void **state)
{
	struct world *w = *state;
	char words[400], wanted[600];

	put(w, ".pyenv/libexec/pyenv", "");
	put(w, "scripts/job.js", "");
	snprintf(words, sizeof words,
		"%s/.pyenv/shims/python3: line 12: %s/.pyenv/libexec/pyenv: Permission denied\n", w->top,
		w->top);
	snprintf(wanted, sizeof wanted,
		"It says that %s/.pyenv/libexec/pyenv was refused: isolation hides %s/.pyenv; grant it with \"read\" of "
		"executors.x in /etc/stint/config.json, and restart the worker",
		w->top, w->top);
	assert_string_equal(says(w, words, NULL, 0), wanted);
	snprintf(words, sizeof words,
		"Error: EACCES: permission denied, open '%s/scripts/job.js'\n    at x (node:fs:1)\n\nNode.js v20\n",
		w->top);
	assert_non_null(strstr(says(w, words, NULL, 0), "/scripts; grant it with \"read\""));
}

static void no_hint_recommends_a_secret_or_a_private_entry(void **state)
{
	static const char *const names[] = {
		".ssh/id", ".tomorrow/token", ".bash_history", ".cargo/credentials.toml"};
	struct world *w = *state;
	char words[400];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		put(w, names[i], "");
		snprintf(words, sizeof words, "cat: %s/%s: Permission denied", w->top, names[i]);
		assert_null(says(w, words, NULL, 0));
	}
	snprintf(words, sizeof words, "ls: cannot open directory '%s': Permission denied", w->top);
	assert_null(says(w, words, NULL, 0));
	assert_null(says(w, "cat: /etc/shadow: Permission denied", NULL, 0));
	assert_null(says(w, "Permission denied", NULL, 0));
	assert_null(says(w, "", NULL, 0));
}

static void what_could_be_read_is_not_called_hidden(void **state)
{
	struct world *w = *state;
	char words[400], path[200];

	put(w, "scripts/job", "");
	snprintf(path, sizeof path, "%s/scripts", w->top);
	const struct grant granted = {.path = path, .fd = -1, .access = GRANT_READ};
	snprintf(words, sizeof words, "sh: 1: %s/scripts/job: Permission denied", w->top);
	assert_null(says(w, words, &granted, 1)); /* it lacks the bit to execute it, perhaps */
	snprintf(words, sizeof words, "touch: cannot touch '%s/scripts/new': Permission denied", w->top);
	assert_non_null(strstr(says(w, words, &granted, 1), "lets it read and not change"));
	assert_non_null(strstr(says(w, words, &granted, 1), "grant it with \"write\""));
}

static void gits_own_settings_say_who_commits(void **state)
{
	static const struct {
		const char *text, *name, *email;
	} rows[] = {
		{"[user]\n\tname = Ann Example\n\temail = a@b.c\n", "Ann Example", "a@b.c"},
		{"[User]\nName=\"Ann # no comment\" # one\nEMAIL = a@b.c ; one\r\n", "Ann # no comment",
			"a@b.c"},
		{"[user \"other\"]\nname = x\n[core]\nname = y\nemail = z\n", NULL, NULL},
		{"[user]\nname = first\n[core]\nx = y\n[user]\nname = last", "last", NULL},
		{"[user]\nname\nemail =\nusername = x\n", NULL, NULL},
		{"name = x\n", NULL, NULL},
		{"", NULL, NULL},
	};
	struct arena arena;

	(void)state;
	arena_init(&arena, 1 << 16);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct git_identity identity = {0};
		git_identity_take(&identity, &arena, span_of(rows[i].text));
		assert_string_equal(identity.name ? identity.name : "", rows[i].name ? rows[i].name : "");
		assert_string_equal(identity.email ? identity.email : "", rows[i].email ? rows[i].email : "");
	}
	arena_done(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_path_of_the_home_has_its_kind),
		cmocka_unit_test(where_the_link_of_a_secret_leads_is_one_too),
		cmocka_unit_test(gits_own_settings_say_who_commits),
		cmocka_unit_test(a_work_dir_is_barred_unless_a_root_names_it),
		cmocka_unit_test_setup_teardown(
			the_install_tree_of_a_program_is_what_its_bin_lies_in, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_tree_that_is_too_much_is_the_file_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_a_task_can_write_leads_nowhere, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_hint_names_what_to_grant_and_where, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			no_hint_recommends_a_secret_or_a_private_entry, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_could_be_read_is_not_called_hidden, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
