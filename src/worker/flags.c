#include "worker/flags.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/supervisor.h"

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

static int take_value(struct flags *flags, const char *flag, const char *value)
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
	if (flags->once && strcmp(flag, "--config-object") == 0)
		return 0; /* it was read before */
	if (flags->once) {
		char complaint[ONCE_COMPLAINT_BYTES];
		int r = once_config_flag(&flags->pass, flag, value, complaint);
		if (r != -ENOENT)
			return r < 0 ? worker_complain("%s", complaint) : 0;
	}
	if (flags->sweeps && strcmp(flag, "--repository") == 0 && settings_is_repository(value)) {
		flags->sweep.repository = value;
		return 0;
	}
	if (flags->sweeps && strcmp(flag, "--repository") == 0)
		return worker_complain("--repository must be owner/name; it is \"%s\"", value);
	if (flags->sweeps && (strcmp(flag, "--queue") == 0 || strcmp(flag, "--executor") == 0)) {
		if (!settings_is_name(value))
			return worker_complain(
				"%s must be a name: letters, digits and -._:; it is \"%s\"", flag, value);
		*(strcmp(flag, "--queue") == 0 ? &flags->sweep.queue : &flags->sweep.executor) = value;
		return 0;
	}
	if (strcmp(flag, "--set") == 0)
		return config_sets_take(&flags->sets, value) == 0
			? 0
			: worker_complain("--set wants KEY=VALUE; it is \"%s\"", value);
	if (strcmp(flag, "--root") == 0) {
		if (value[0] != '/' || flags->root_count == ROOTS_MAX)
			return worker_complain("--root wants an absolute path; it is \"%s\"", value);
		flags->roots[flags->root_count++] = value;
		return 0;
	}
	if (strcmp(flag, "--concurrency") == 0)
		return flags_take_number(flag, value, 1, CONCURRENCY_MAX, &flags->concurrency);
	if (strcmp(flag, "--drain-ms") == 0)
		return flags_take_number(flag, value, 0, INT64_C(24) * 3600 * 1000, &flags->drain_ms);
	if (strcmp(flag, "--lease-ms") == 0)
		return flags_take_number(flag, value, 1000, INT64_C(24) * 3600 * 1000, &flags->lease_ms);
	return worker_complain("there is no flag %s; stint-worker --help lists those there are", flag);
}

static bool take_switch(struct flags *flags, const char *flag)
{
	const struct {
		const char *name;
		bool *on;
	} switches[] = {
		{"--remote", &flags->remote},
		{"--shell", &flags->shell},
		{"--check-config", &flags->check_config},
		{"--check-isolation", &flags->check_isolation},
		{flags->trees ? "--prune" : "", &flags->prune},
		{flags->trees ? "--json" : "", &flags->json},
		{"--help", &flags->help},
		{"-h", &flags->help},
		{"--version", &flags->version},
	};

	for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
		if (strcmp(switches[i].name, flag) == 0)
			return *switches[i].on = true;
	}
	return false;
}

/* First the object, then the flags: those count more. */
int flags_read_object(int argc, char **argv, struct flags *flags)
{
	static const char name[] = "--config-object";
	static struct arena arena;
	char complaint[ONCE_COMPLAINT_BYTES];

	flags->pass = once_config_default();
	arena_init(&arena, 1 << 20);
	for (int i = 1; i < argc; i++) {
		const char *path = strncmp(argv[i], name, sizeof name - 1) != 0 ? NULL
			: argv[i][sizeof name - 1] == '='                       ? argv[i] + sizeof name
			: argv[i][sizeof name - 1] == 0 && i + 1 < argc         ? argv[i + 1]
										: NULL;
		if (path && once_config_read(&flags->pass, path, &arena, complaint) < 0) {
			worker_complain("%s", complaint);
			return EXIT_CONFIG;
		}
	}
	return 0;
}

int flags_read(int argc, char **argv, struct flags *flags)
{
	char name[64];
	int r = 0;

	for (int i = 1; r == 0 && i < argc; i++) {
		const char *equals = strchr(argv[i], '=');
		if (take_switch(flags, argv[i]))
			continue;
		if (strncmp(argv[i], "--", 2) != 0)
			return worker_complain("\"%s\" is no flag; stint-worker --help lists them", argv[i]);
		if (equals && equals - argv[i] < (ptrdiff_t)sizeof name) {
			snprintf(name, sizeof name, "%.*s", (int)(equals - argv[i]), argv[i]);
			r = take_value(flags, name, equals + 1);
		} else if (i + 1 < argc) {
			r = take_value(flags, argv[i], argv[i + 1]);
			i++;
		} else {
			r = worker_complain(
				"%s wants a value, or is no flag; stint-worker --help lists them", argv[i]);
		}
	}
	return r;
}
