/*
 * stint-checker [--states FILE] [--set LIMIT=VALUE]... [FILE|-]
 *
 * Prints `OK n_events`, or the first violated invariant and the lines that show it. Exit status 0, 1; 2 for
 * what is not a history or cannot be read.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checker/checker.h"

enum {
	SETS_MAX = 32,
};

struct options {
	const char *states;
	const char *file;
	const char *sets[SETS_MAX];
	int set_count;
};

static int usage(void)
{
	fputs("usage: stint-checker [--states spec/states.md] [--set LIMIT=VALUE]... [FILE|-]\n", stderr);
	return 2;
}

static int read_options(struct options *options, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--states") == 0 && i + 1 < argc)
			options->states = argv[++i];
		else if (strcmp(argv[i], "--set") == 0 && i + 1 < argc && options->set_count < SETS_MAX)
			options->sets[options->set_count++] = argv[++i];
		else if ((argv[i][0] != '-' || strcmp(argv[i], "-") == 0) && !options->file)
			options->file = argv[i];
		else
			return usage();
	}
	return 0;
}

static int apply_set(struct checker *checker, const char *set)
{
	char name[64];
	const char *equals = strchr(set, '=');
	char *end = NULL;

	if (!equals || (size_t)(equals - set) >= sizeof name)
		return usage();
	memcpy(name, set, (size_t)(equals - set));
	name[equals - set] = '\0';
	long long value = strtoll(equals + 1, &end, 10);
	if (end == equals + 1 || *end != '\0' || checker_set(checker, name, value) < 0) {
		fprintf(stderr, "stint-checker: no such limit: %s\n", set);
		return 2;
	}
	return 0;
}

static int judge(struct checker *checker, FILE *in)
{
	char *line = NULL;
	size_t room = 0;
	int verdict = CHECKER_OK;
	ssize_t len;

	while (verdict == CHECKER_OK && (len = getline(&line, &room, in)) >= 0)
		verdict = checker_line(checker, line, (size_t)len);
	free(line);
	if (verdict == CHECKER_OK && ferror(in)) {
		fputs("stint-checker: cannot read the history\n", stderr);
		return CHECKER_MALFORMED;
	}
	if (verdict == CHECKER_OK)
		verdict = checker_finish(checker);
	if (verdict == CHECKER_OK)
		printf("OK %" PRIu64 "\n", checker_events(checker));
	else
		fputs(checker_complaint(checker), stdout);
	return verdict;
}

static int run(const struct options *options, struct checker *checker)
{
	bool standard = !options->file || strcmp(options->file, "-") == 0;

	for (int i = 0; i < options->set_count; i++) {
		if (apply_set(checker, options->sets[i]) != 0)
			return 2;
	}
	FILE *in = standard ? stdin : fopen(options->file, "re");
	if (!in) {
		fprintf(stderr, "stint-checker: %s: %s\n", options->file, strerror(errno));
		return 2;
	}
	int verdict = judge(checker, in);
	if (!standard)
		fclose(in);
	return verdict;
}

int main(int argc, char **argv)
{
	struct options options = {0};

	if (read_options(&options, argc, argv) != 0)
		return 2;
	struct checker *checker = checker_new(options.states);
	if (!checker) {
		fprintf(stderr, "stint-checker: no table of moves: %s\n", strerror(errno));
		return 2;
	}
	int status = run(&options, checker);
	checker_free(checker);
	return status;
}
