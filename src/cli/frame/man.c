/*
 * The manual pages, as source for scdoc: stint(1) with all verbs, and a page for each word that can stand first. Made
 * at build time, from the rows of the verbs.
 */
#include <string.h>

#include "cli/frame/cli.h"

/* scdoc reads \, _, *, #, and blanks at the head of a line in its own way. */
static void put_text(struct cli *cli, const char *text)
{
	for (; *text; text++) {
		if (strchr("\\_*#<>[]~-.|`!", *text))
			cli_put(cli, "\\");
		cli_put(cli, "%c", *text);
	}
}

static void put_title(struct cli *cli, const char *name, const char *section, const char *text)
{
	cli_put(cli, "%s(%s) \"\" \"stint %s\"\n\n# NAME\n\n%s - ", name, section, STINT_VERSION, name);
	put_text(cli, text);
	cli_put(cli, "\n\n");
}

static void put_flag(struct cli *cli, const struct flag *flag)
{
	cli_put(cli, "*--%s*", flag->name);
	if (flag->letter)
		cli_put(cli, ", *-%c*", flag->letter);
	if (flag->kind != FLAG_SWITCH) {
		cli_put(cli, flag->kind == FLAG_FIELDS ? "\\[=_" : " _");
		put_text(cli, flag->value);
		cli_put(cli, flag->kind == FLAG_FIELDS ? "_\\]" : "_");
	}
	cli_put(cli, "\n\t");
	put_text(cli, flag->text);
	cli_put(cli, "%s\n\n", flag->many ? "; may be repeated" : "");
}

static void put_flags(struct cli *cli, const struct flag *flags)
{
	for (const struct flag *flag = flags; flag && flag->name; flag++)
		put_flag(cli, flag);
}

static void put_verb(struct cli *cli, const struct verb *verb)
{
	cli_put(cli, "*stint %s* ", verb->name);
	put_text(cli, verb_arguments(verb));
	cli_put(cli, "\n\n");
	put_text(cli, verb->text ? verb->text : verb->brief);
	cli_put(cli, "\n\n");
	put_flags(cli, verb->flags);
	if (verb->examples)
		cli_put(cli, "```\n%s```\n\n", verb->examples);
}

static void put_common(struct cli *cli)
{
	cli_put(cli, "# FLAGS OF MOST VERBS\n\n");
	put_flags(cli, flags_of_output);
	put_flags(cli, flags_of_clients);
	put_flags(cli, flags_of_all);
}

static void put_environment(struct cli *cli)
{
	cli_put(cli,
		"# ENVIRONMENT\n\n"
		"*STINT\\_HOME*\n\tThe state directory: where the server's socket, address and admin token are.\n\n"
		"*STINT\\_URL*\n\tThe server: http://HOST:PORT or unix:/PATH.\n\n"
		"*STINT\\_TOKEN*, *STINT\\_TOKEN\\_FILE*\n\tThe credential, or a file with it.\n\n"
		"*STINT\\_TASK\\_ID*, *STINT\\_FENCE*, *STINT\\_WORKER\\_ID*\n\tThe task that a program works on; for stint task.\n\n"
		"*NO\\_COLOR*, *CLICOLOR\\_FORCE*, *COLUMNS*, *TERM*\n\tAs usual.\n\n");
}

static void put_exits(struct cli *cli)
{
	static const struct {
		int number;
		const char *text;
	} exits[] = {
#define X(name, number, text) {number, text},
		EXITS(X)
#undef X
	};

	cli_put(cli, "# EXIT STATUS\n\n");
	for (size_t i = 0; i < sizeof exits / sizeof *exits; i++) {
		cli_put(cli, "*%d*\n\t", exits[i].number);
		put_text(cli, exits[i].text);
		cli_put(cli, "\n\n");
	}
}

static void put_whole(struct cli *cli)
{
	put_title(cli, "stint", "1", "durable work for agents and programs");
	cli_put(cli,
		"# SYNOPSIS\n\n*stint* _VERB_ \\[_FLAGS_\\] \\[_ARGUMENTS_\\]\n\n"
		"# DESCRIPTION\n\n"
		"stint is the command line of a stint server: a durable work queue and worker supervisor. Data goes to standard "
		"output and talk to standard error. On a terminal a list is a table; elsewhere it is one line per row with tabs "
		"between. *--json* is for programs; its shapes are a promise, marked by \"schema\":1.\n\n");
	for (int group = 0; group < GROUP_COUNT; group++) {
		cli_put(cli, "# %s\n\n", verb_group_name((enum verb_group)group));
		for (size_t i = 0; i < verb_count; i++) {
			if (verb_groups[i] == (enum verb_group)group && !verbs[i]->hidden)
				put_verb(cli, verbs[i]);
		}
	}
	put_common(cli);
	put_environment(cli);
	put_exits(cli);
}

/* stint-add(1), or stint-queue(1) with all of its verbs. */
static int put_page(struct cli *cli, const char *first)
{
	size_t len = strlen(first);
	bool any = false;

	for (size_t i = 0; i < verb_count; i++) {
		const char *name = verbs[i]->name;
		if (verbs[i]->hidden || strncmp(name, first, len) != 0 ||
			(name[len] != 0 && name[len] != ' '))
			continue;
		if (!any) {
			put_title(cli, cli_text(cli, "stint-%s", first), "1",
				name[len] == ' ' ? help_verbs_of_noun(cli, i) : verbs[i]->brief);
			cli_put(cli, "# DESCRIPTION\n\n");
		}
		any = true;
		put_verb(cli, verbs[i]);
	}
	if (!any)
		return help_unknown(cli, first, NULL, 0, NULL);
	put_common(cli);
	cli_put(cli, "# SEE ALSO\n\n*stint*(1)\n");
	return EXIT_GOOD;
}

/* Without a word the names of the pages. */
static int run(struct cli *cli)
{
	const char *word = args_plain(&cli->args, 0);
	const char *last = "";

	if (word && strcmp(word, "stint") == 0) {
		put_whole(cli);
		return EXIT_GOOD;
	}
	if (word)
		return put_page(cli, word);
	for (size_t i = 0; i < verb_count; i++) {
		const char *first = cli_text(cli, "%.*s", (int)strcspn(verbs[i]->name, " "), verbs[i]->name);
		if (!verbs[i]->hidden && strcmp(first, last) != 0)
			cli_put(cli, "%s\n", first);
		last = first;
	}
	return EXIT_GOOD;
}

const struct verb verb_man = {
	.name = "__man",
	.arguments = "[PAGE]",
	.gives = NEEDS_NO_SERVER,
	.brief = "the source of a manual page",
	.run = run,
	.hidden = true,
};
