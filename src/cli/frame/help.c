/*
 * stint help: the one screen of all verbs, and everything about one of them. All of it from the rows of the verbs.
 */
#include <string.h>

#include "cli/frame/cli.h"
#include "cli/frame/text.h"

enum {
	GROUP_WIDTH = 9,
	NAME_WIDTH = 11,
	BRIEF_WIDTH = 25, /* of the left one of two columns, with a gap */
	FLAG_WIDTH = 26,
	TEXT_WIDTH = 78,
};

/* ---- all of them ------------------------------------------------------------------------------------------- */

static size_t noun_len(const struct verb *verb)
{
	return strcspn(verb->name, " ");
}

static bool is_first_of_noun(size_t index)
{
	const struct verb *verb = verbs[index];
	size_t len = noun_len(verb);

	return index == 0 || noun_len(verbs[index - 1]) != len ||
		strncmp(verbs[index - 1]->name, verb->name, len) != 0;
}

const char *help_verbs_of_noun(struct cli *cli, size_t index)
{
	size_t len = noun_len(verbs[index]);
	const char *text = "";

	for (size_t i = index; i < verb_count && strncmp(verbs[i]->name, verbs[index]->name, len + 1) == 0;
		i++)
		text = cli_text(cli, "%s%s%s", text, i > index ? " " : "", verbs[i]->name + len + 1);
	return text;
}

struct help_entry {
	const char *name, *brief;
};

static void put_entry(struct cli *cli, const struct help_entry *entry, bool left)
{
	struct span brief = span_of(entry->brief);
	int pad = left ? BRIEF_WIDTH - (int)text_width(brief) : 0;

	cli_put(cli, "%s%-*s%s%s%*s", term_paint(cli->term.color, PAINT_BOLD), NAME_WIDTH, entry->name,
		term_plain(cli->term.color, PAINT_BOLD), entry->brief, pad > 0 ? pad : 0, "");
}

static struct help_entry entry_of(struct cli *cli, size_t index)
{
	const struct verb *verb = verbs[index];

	return (struct help_entry){cli_text(cli, "%.*s", (int)noun_len(verb), verb->name),
		verb->stands_in                   ? cli_text(cli, "%s's commands", verb->stands_in)
			: strchr(verb->name, ' ') ? help_verbs_of_noun(cli, index)
						  : verb->brief};
}

/* Two entries to a line, where both are short enough. */
static void put_group(struct cli *cli, enum verb_group group)
{
	const char *label = verb_group_name(group);
	struct help_entry left = {0};

	for (size_t i = 0; i <= verb_count; i++) {
		struct help_entry entry = {0};
		if (i < verb_count && (verb_groups[i] != group || verbs[i]->hidden || !is_first_of_noun(i)))
			continue;
		if (i < verb_count)
			entry = entry_of(cli, i);
		bool pair = left.name && entry.name && strlen(left.brief) < BRIEF_WIDTH &&
			strlen(entry.brief) < BRIEF_WIDTH;
		if (left.name) {
			cli_put(cli, "%-*s", GROUP_WIDTH, label);
			put_entry(cli, &left, pair);
			if (pair)
				put_entry(cli, &entry, false);
			cli_put(cli, "\n");
			label = "";
		}
		left = pair ? (struct help_entry){0} : entry;
	}
}

void help_screen(struct cli *cli)
{
	cli_put(cli, "stint: durable work for agents and programs\n\n");
	for (int group = 0; group < GROUP_COUNT; group++)
		put_group(cli, (enum verb_group)group);
	cli_put(cli,
		"\nstint help VERB says more. --json works nearly everywhere. Try:\n"
		"  stint up\n"
		"  stint run -- echo hello\n");
}

/* ---- one noun ---------------------------------------------------------------------------------------------- */

void help_noun(struct cli *cli, const char *noun)
{
	size_t len = strlen(noun);

	for (size_t i = 0; i < verb_count; i++) {
		const struct verb *verb = verbs[i];
		if (strncmp(verb->name, noun, len) != 0 || verb->name[len] != ' ')
			continue;
		const char *usage = cli_text(cli, "stint %s %s", verb->name, verb_arguments(verb));
		cli_put(cli, "%-36s %s\n", usage, verb->brief);
	}
}

/* ---- one verb ---------------------------------------------------------------------------------------------- */

/* Words of a text, in lines. */
static void put_wrapped(struct cli *cli, const char *text, int indent, int column)
{
	while (*text) {
		size_t len = strcspn(text, " \n");
		int width = (int)text_width((struct span){text, len});
		if (column > indent && column + 1 + width > TEXT_WIDTH) {
			cli_put(cli, "\n%*s", indent, "");
			column = indent;
		} else if (column > indent) {
			cli_put(cli, " ");
			column++;
		}
		cli_put(cli, "%.*s", (int)len, text);
		column += width;
		text += len;
		if (*text == '\n') { /* a line of its own */
			cli_put(cli, "\n%*s", indent, "");
			column = indent;
		}
		text += *text != 0;
	}
	cli_put(cli, "\n");
}

const char *help_flag_value(struct cli *cli, const struct verb *verb, const struct flag *flag)
{
	char forms[VERB_FORMS_BYTES];

	if (strcmp(flag->name, "output") != 0)
		return flag->value;
	verb_forms(verb, forms);
	return cli_text(cli, "%s", forms);
}

static void put_flag(struct cli *cli, const struct verb *verb, const struct flag *flag)
{
	static const int column = 2 + FLAG_WIDTH;
	const char *value = flag->kind == FLAG_SWITCH ? ""
		: flag->kind == FLAG_FIELDS           ? cli_text(cli, "[=%s]", flag->value)
					    : cli_text(cli, " %s", help_flag_value(cli, verb, flag));
	const char *left = cli_text(cli, "%s--%s%s",
		flag->letter ? cli_text(cli, "-%c, ", flag->letter) : "    ", flag->name, value);
	int pad = FLAG_WIDTH - (int)text_width(span_of(left));

	cli_put(cli, "  ");
	cli_put_clean(cli, span_of(left));
	cli_put(cli, pad > 0 ? "%*s" : "\n%*s", pad > 0 ? pad : column, "");
	put_wrapped(cli, flag->many ? cli_text(cli, "%s; may be repeated", flag->text) : flag->text, column,
		column);
}

static void put_flags(struct cli *cli, const struct verb *verb)
{
	const struct flag *flag;
	size_t at = 0;
	bool general = false;

	cli_put(cli, "\n");
	while ((flag = verb_each_flag(verb, &at))) {
		bool own = false;
		for (const struct flag *mine = verb->flags; mine && mine->name; mine++)
			own = own || mine == flag;
		if (!own && !general && verb->flags)
			cli_put(cli, "\n");
		general = general || !own;
		put_flag(cli, verb, flag);
	}
}

void help_verb(struct cli *cli, const struct verb *verb)
{
	cli_put(cli, "usage: stint %s%s%s%s\n\n", verb->name, verb->flags ? " [FLAGS]" : "",
		verb->arguments ? " " : "", verb_arguments(verb));
	put_wrapped(cli, verb->text ? verb->text : verb->brief, 0, 0);
	put_flags(cli, verb);
	if (verb->examples) {
		cli_put(cli, "\nExamples\n");
		cli_put_lines(cli, span_of(verb->examples), "  ");
	}
}

static int run(struct cli *cli)
{
	char *words[2] = {(char *)args_plain(&cli->args, 0), (char *)args_plain(&cli->args, 1)};
	int used, count = (int)cli->args.plain_count;
	const struct verb *verb = count > 0 ? verb_find(count, words, &used) : NULL;

	if (count == 0)
		help_screen(cli);
	else if (verb && used < count)
		return help_unknown(cli, cli_text(cli, "%s %s", words[0], words[1]), NULL);
	else if (verb)
		help_verb(cli, verb);
	else if (verb_is_noun(words[0]) && count == 1)
		help_noun(cli, words[0]);
	else
		return help_unknown(
			cli, words[verb_is_noun(words[0])], verb_is_noun(words[0]) ? words[0] : NULL);
	return EXIT_GOOD;
}

const struct verb verb_help = {
	.name = "help",
	.arguments = "[VERB]",
	.most = 2,
	.offer = OFFER_VERBS,
	.gives = NEEDS_NO_SERVER,
	.brief = "this list, or one verb",
	.text = "Without a verb, the list of all. With one, what it does, its flags and examples. Every verb also takes --help.",
	.examples = "stint help add\nstint help queue pause\n",
	.run = run,
};

static int run_version(struct cli *cli)
{
	if (cli->output == OUTPUT_JSON)
		cli_put(cli, "{\"schema\":1,\"ok\":true,\"version\":\"%s\"}\n", STINT_VERSION);
	else
		cli_put(cli, "stint %s\n", STINT_VERSION);
	return EXIT_GOOD;
}

const struct verb verb_version = {
	.name = "version",
	.gives = NEEDS_NO_SERVER | GIVES_JSON,
	.brief = "which stint this is",
	.text = "The version of this command. The server's is in stint doctor.",
	.examples = "stint version\n",
	.run = run_version,
};
