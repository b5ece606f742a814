#include "worker/settings/flags.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command_line.h"
#include "worker/supervisor/supervisor.h"

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

int flags_take_number(const char *flag, const char *text, int64_t least, int64_t most, int64_t *ret_number)
{
	char *end;

	errno = 0;
	long long number = strtoll(text, &end, 10);
	if (errno || end == text || *end || number < least || number > most)
		return worker_complain("%s must be a whole number from %lld to %lld; it is \"%s\"", flag,
			(long long)least, (long long)most, text);
	*ret_number = number;
	return 0;
}

static int take_set(struct flags *flags, const char *value)
{
	return config_sets_take(&flags->sets, value) == 0
		? 0
		: worker_complain("--set wants KEY=VALUE; it is \"%s\"", value);
}

static int take_root(struct flags *flags, const char *value)
{
	if (value[0] != '/' || flags->root_count == ROOTS_MAX)
		return worker_complain(
			"--root wants an absolute path, %d times at most; it is \"%s\"", ROOTS_MAX, value);
	flags->roots[flags->root_count++] = value;
	return 0;
}

/* Of sweep-prs. */
static int take_sweep(struct flags *flags, const char *flag, const char *value)
{
	if (strcmp(flag, "--repository") == 0) {
		flags->sweep.repository = value;
		return settings_is_repository(value)
			? 0
			: worker_complain("--repository must be owner/name; it is \"%s\"", value);
	}
	*(strcmp(flag, "--queue") == 0 ? &flags->sweep.queue : &flags->sweep.executor) = value;
	return settings_is_name(value)
		? 0
		: worker_complain("%s must be a name: letters, digits and -._:; it is \"%s\"", flag, value);
}

static int take_text(struct flags *flags, const char *flag, const char *value)
{
	const struct {
		const char *name;
		const char **text;
	} texts[] = {
		{"--slot", &flags->slot},
		{"--queues", &flags->queues},
		{"--capabilities", &flags->capabilities},
		{"--name", &flags->name},
		{"--home", &flags->home},
		{"--url", &flags->url},
		{"--token", &flags->token},
		{"--token-file", &flags->token_file},
		{"--config", &flags->config},
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		if (strcmp(texts[i].name, flag) == 0) {
			*texts[i].text = value;
			return 0;
		}
	}
	return -ENOENT;
}

static int take_value(struct flags *flags, const char *flag, const char *value)
{
	char complaint[ONCE_COMPLAINT_BYTES];
	int r = take_text(flags, flag, value);

	if (r != -ENOENT)
		return r;
	if (strcmp(flag, "--config-object") == 0)
		return 0; /* it was read before */
	r = flags->once ? once_config_flag(&flags->pass, flag, value, &flags->arena, complaint) : -ENOENT;
	if (r != -ENOENT)
		return r < 0 ? worker_complain("%s", complaint) : 0;
	if (strcmp(flag, "--set") == 0)
		return take_set(flags, value);
	if (strcmp(flag, "--root") == 0)
		return take_root(flags, value);
	if (strcmp(flag, "--concurrency") == 0)
		return flags_take_number(flag, value, 1, CONCURRENCY_MAX, &flags->concurrency);
	if (strcmp(flag, "--drain-ms") == 0)
		return flags_take_number(flag, value, 0, INT64_C(24) * 3600 * 1000, &flags->drain_ms);
	if (strcmp(flag, "--lease-ms") == 0)
		return flags_take_number(flag, value, 1000, INT64_C(24) * 3600 * 1000, &flags->lease_ms);
	return take_sweep(flags, flag, value);
}

static int take_switch(struct flags *flags, const char *flag)
{
	const struct {
		const char *name;
		bool *on;
	} switches[] = {
		{"--remote", &flags->remote},
		{"--shell", &flags->shell},
		{"--check-config", &flags->check_config},
		{"--check-isolation", &flags->check_isolation},
		{"--prune", &flags->prune},
		{"--json", &flags->json},
		{"--help", &flags->help},
		{"--version", &flags->version},
	};

	for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
		if (strcmp(switches[i].name, flag) == 0)
			*switches[i].on = true;
	}
	return 0;
}

static int take_flag(void *context, const char *flag, const char *value)
{
	return value ? take_value(context, flag, value) : take_switch(context, flag);
}

/* First the object, then the flags: those count more. */
int flags_read_object(int argc, char **argv, struct flags *flags)
{
	static const char name[] = "--config-object";
	char complaint[ONCE_COMPLAINT_BYTES];

	flags->pass = once_config_default();
	arena_init(&flags->arena, 1 << 20);
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

static const char *const words[] = {"run", "run-once", "sweep-prs", "worktrees", NULL};

static int take_word(void *context, const char *word)
{
	const struct command_line known = {.program = "stint-worker", .words = words};
	char complaint[COMMAND_COMPLAINT_BYTES];

	(void)context;
	for (size_t i = 0; words[i]; i++) {
		if (strcmp(words[i], word) == 0)
			return worker_complain(
				"\"%s\" goes before the flags, and is said once: stint-worker %s [FLAGS]",
				word, word);
	}
	command_line_unknown_word(&known, word, complaint);
	return worker_complain("%s", complaint);
}

/* What the mode has. */
static size_t known_flags(const struct flags *flags, struct command_flag known[COMMAND_FLAGS_MAX])
{
	static const struct command_flag all[] = {
		{"--slot", COMMAND_VALUE},
		{"--queues", COMMAND_VALUE},
		{"--concurrency", COMMAND_VALUE},
		{"--capabilities", COMMAND_VALUE},
		{"--name", COMMAND_VALUE},
		{"--home", COMMAND_VALUE},
		{"--url", COMMAND_VALUE},
		{"--token", COMMAND_VALUE},
		{"--token-file", COMMAND_VALUE},
		{"--remote", COMMAND_SWITCH},
		{"--lease-ms", COMMAND_VALUE},
		{"--drain-ms", COMMAND_VALUE},
		{"--config", COMMAND_VALUE},
		{"--set", COMMAND_VALUES},
		{"--shell", COMMAND_SWITCH},
		{"--root", COMMAND_VALUES},
		{"--check-config", COMMAND_SWITCH},
		{"--check-isolation", COMMAND_SWITCH},
		{"--help", COMMAND_SWITCH},
		{"--version", COMMAND_SWITCH},
	};
	static const struct command_flag trees[] = {{"--prune", COMMAND_SWITCH}, {"--json", COMMAND_SWITCH}};
	static const struct command_flag sweeps[] = {
		{"--repository", COMMAND_VALUE}, {"--queue", COMMAND_VALUE}, {"--executor", COMMAND_VALUE}};
	size_t count = sizeof all / sizeof *all;

	memcpy(known, all, sizeof all);
	if (flags->trees) {
		memcpy(known + count, trees, sizeof trees);
		count += sizeof trees / sizeof *trees;
	} else if (flags->sweeps) {
		memcpy(known + count, sweeps, sizeof sweeps);
		count += sizeof sweeps / sizeof *sweeps;
	} else if (flags->once) {
		known[count++] = (struct command_flag){"--config-object", COMMAND_VALUE};
		for (size_t i = 0; once_config_flag_name(i) && count < COMMAND_FLAGS_MAX; i++)
			known[count++] = (struct command_flag){once_config_flag_name(i), COMMAND_VALUE};
	}
	return count;
}

void flags_take_mode(int *argc, char ***argv, struct flags *flags)
{
	const char *word = *argc > 1 ? (*argv)[1] : "";

	flags->once = strcmp(word, "run-once") == 0;
	flags->sweeps = strcmp(word, "sweep-prs") == 0;
	flags->trees = strcmp(word, "worktrees") == 0;
	bool any = flags->once || flags->sweeps || flags->trees || strcmp(word, "run") == 0;
	*argc -= any;
	*argv += any;
}

int flags_read(int argc, char **argv, struct flags *flags)
{
	struct command_flag known[COMMAND_FLAGS_MAX];
	char complaint[COMMAND_COMPLAINT_BYTES];
	const struct command_line line = {
		.program = flags->once  ? "stint-worker run-once"
			: flags->sweeps ? "stint-worker sweep-prs"
			: flags->trees  ? "stint-worker worktrees"
					: "stint-worker",
		.flags = known,
		.flag_count = known_flags(flags, known),
		.words = words,
		.context = flags,
		.take_flag = take_flag,
		.take_word = take_word,
	};

	int r = command_line_read(&line, argc, argv, complaint);
	return r < 0 ? worker_complain("%s", complaint) : r;
}
