#include "worker/settings/flags.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/form/command_line.h"

int worker_complain(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("stint-worker: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	return EXIT_USAGE;
}

static void note_on_stderr(struct form *form, const char *name, const char *message)
{
	(void)form;
	worker_complain("%s %s", name, message);
}

int flags_take_number(const char *flag, const char *text, int64_t least, int64_t most, int64_t *ret_number)
{
	const struct field field = {.name = flag, .kind = FIELD_INT, .min = least, .max = most};
	struct form form;

	form_start(&form, NULL);
	form.note = note_on_stderr;
	return form_take_word(&form, &field, text, ret_number) ? 0 : EXIT_USAGE;
}

static bool take_root(struct form *form, const struct field *field, yyjson_val *value, void *at)
{
	struct worker_flags *flags = at;
	const char *text = yyjson_get_str(value);

	if (!text || text[0] != '/' || flags->root_count == ROOTS_MAX)
		return form_wrong(form, field, value);
	flags->roots[flags->root_count++] = text;
	return true;
}

#define DAY_MS (INT64_C(24) * 3600 * 1000)

static const struct field flag_fields[] = {
	FIELD(worker_flags, slot, "", FIELD_STRING, .flag = "--slot"),
	FIELD(worker_flags, queues, "", FIELD_STRING, .flag = "--queues"),
	FIELD(worker_flags, concurrency, "", FIELD_INT, .min = 1, .max = CONCURRENCY_MAX,
		.flag = "--concurrency"),
	FIELD(worker_flags, capabilities, "", FIELD_STRING, .flag = "--capabilities"),
	FIELD(worker_flags, name, "", FIELD_STRING, .flag = "--name"),
	FIELD(worker_flags, home, "", FIELD_STRING, .flag = "--home"),
	FIELD(worker_flags, url, "", FIELD_STRING, .flag = "--url"),
	FIELD(worker_flags, token, "", FIELD_STRING, .flag = "--token"),
	FIELD(worker_flags, token_file, "", FIELD_STRING, .flag = "--token-file"),
	FIELD(worker_flags, ca, "", FIELD_STRING, .flag = "--ca"),
	FIELD(worker_flags, plain, "", FIELD_BOOL, .bare = true, .flag = "--plain"),
	FIELD(worker_flags, config, "", FIELD_STRING, .flag = "--config"),
	FIELD(worker_flags, lease_ms, "", FIELD_INT, .min = 1000, .max = DAY_MS, .unit = "ms",
		.flag = "--lease-ms"),
	FIELD(worker_flags, drain_ms, "", FIELD_INT, .max = DAY_MS, .unit = "ms", .flag = "--drain-ms"),
	FIELD(worker_flags, sets, "", FIELD_BY, .by = config_take_set, .many = true, .allowed = "KEY=VALUE",
		.flag = "--set"),
	{"", FIELD_BY, .by = take_root, .many = true, .allowed = "an absolute path, at most 32 times",
		.flag = "--root"},
	FIELD(worker_flags, remote, "", FIELD_BOOL, .bare = true, .flag = "--remote"),
	FIELD(worker_flags, shell, "", FIELD_BOOL, .bare = true, .flag = "--shell"),
	FIELD(worker_flags, agents, "", FIELD_BOOL, .bare = true, .flag = "--agents"),
	FIELD(worker_flags, under_home, "", FIELD_BOOL, .bare = true, .flag = "--under-home"),
	FIELD(worker_flags, check_config, "", FIELD_BOOL, .bare = true, .flag = "--check-config"),
	FIELD(worker_flags, check_isolation, "", FIELD_BOOL, .bare = true, .flag = "--check-isolation"),
	FIELD(worker_flags, help, "", FIELD_BOOL, .bare = true, .flag = "--help"),
	FIELD(worker_flags, version, "", FIELD_BOOL, .bare = true, .flag = "--version"),
};

static_assert(ROOTS_MAX == 32, "as --root says");

#define NAME_ALLOWED "a name: letters, digits and -._:"

/* For those that print; run-once and sweep-prs print nothing else. */
#define AS_JSON FIELD(worker_flags, json, "", FIELD_BOOL, .bare = true, .flag = "--json")

/* What only one of the words has. */
static const struct field tree_fields[] = {
	FIELD(worker_flags, prune, "", FIELD_BOOL, .bare = true, .flag = "--prune"),
	AS_JSON,
};

static const struct field agent_flag_fields[] = {AS_JSON};

static const struct field sweep_fields[] = {
	FIELD(worker_flags, sweep.repository, "", FIELD_STRING, .accepts = settings_is_repository,
		.allowed = "owner/name", .flag = "--repository"),
	FIELD(worker_flags, sweep.queue, "", FIELD_STRING, .accepts = settings_is_name,
		.allowed = NAME_ALLOWED, .flag = "--queue"),
	FIELD(worker_flags, sweep.executor, "", FIELD_STRING, .accepts = settings_is_name,
		.allowed = NAME_ALLOWED, .flag = "--executor"),
	AS_JSON,
};

static const struct field object_fields[] = {
	FIELD(worker_flags, config_object, "", FIELD_STRING,
		.flag = "--config-object"), /* it was read before */
	AS_JSON,
};

/* First the object, then the flags: those count more. */
int flags_read_object(int argc, char **argv, struct worker_flags *flags)
{
	static const char name[] = "--config-object";
	char complaint[ONCE_COMPLAINT_BYTES];

	flags->pass = once_config_default();
	for (int i = 1; i < argc; i++) {
		const char *path = strncmp(argv[i], name, sizeof name - 1) != 0 ? NULL
			: argv[i][sizeof name - 1] == '='                       ? argv[i] + sizeof name
			: argv[i][sizeof name - 1] == 0 && i + 1 < argc         ? argv[i + 1]
										: NULL;
		if (path && once_config_read(&flags->pass, path, &flags->arena, complaint) < 0) {
			worker_complain("%s", complaint);
			return EXIT_CONFIG;
		}
	}
	return 0;
}

void flags_take_mode(int *argc, char ***argv, struct worker_flags *flags)
{
	const char *word = *argc > 1 ? (*argv)[1] : "";

	arena_init(&flags->arena, 1 << 20);
	flags->once = strcmp(word, "run-once") == 0;
	flags->sweeps = strcmp(word, "sweep-prs") == 0;
	flags->trees = strcmp(word, "worktrees") == 0;
	flags->asks_agents = strcmp(word, "agent") == 0;
	flags->enrols = strcmp(word, "enroll") == 0;
	bool any = flags->once || flags->sweeps || flags->trees || flags->asks_agents || flags->enrols ||
		strcmp(word, "run") == 0;
	*argc -= any;
	*argv += any;
	const char **const words[2][2] = {
		{&flags->agent_action, &flags->agent_name}, {&flags->enrol_url, &flags->enrol_code}};
	bool has_words = flags->asks_agents || flags->enrols;
	for (size_t i = 0; i < 2 && has_words && *argc > 1 && (*argv)[1][0] != '-'; i++, --*argc, ++*argv)
		*words[flags->enrols][i] = (*argv)[1];
}

int flags_read(int argc, char **argv, struct worker_flags *flags)
{
	static const char *const words[] = {
		"run", "run-once", "sweep-prs", "worktrees", "agent", "enroll", NULL};
	struct command_line line = {
		.program = flags->once       ? "stint-worker run-once"
			: flags->sweeps      ? "stint-worker sweep-prs"
			: flags->trees       ? "stint-worker worktrees"
			: flags->asks_agents ? "stint-worker agent"
			: flags->enrols      ? "stint-worker enroll"
					     : "stint-worker",
		.tables = {[1] = {FIELDS(flag_fields), flags}},
		.arena = &flags->arena,
		.words = words,
	};
	char complaint[COMMAND_COMPLAINT_BYTES];

	if (flags->trees)
		line.tables[0] = (struct command_table){FIELDS(tree_fields), flags};
	else if (flags->asks_agents || flags->enrols)
		line.tables[0] = (struct command_table){FIELDS(agent_flag_fields), flags};
	else if (flags->sweeps)
		line.tables[0] = (struct command_table){FIELDS(sweep_fields), flags};
	else if (flags->once) {
		line.tables[0] = once_config_table(&flags->pass);
		line.tables[2] = (struct command_table){FIELDS(object_fields), flags};
	}
	int r = command_line_read(&line, argc, argv, NULL, complaint);
	return r < 0 ? worker_complain("%s", complaint) : 0;
}
