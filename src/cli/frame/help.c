/*
 * stint help: one screen of all verbs, everything about one of them, and topics that no verb has to itself. The screen says in
 * a few words each what a person looks for; a verb that it does not name stands in its last line, so that none is missing. All
 * else comes from the rows of the verbs.
 */
#include <assert.h>
#include <string.h>

#include "cli/frame/cli.h"
#include "cli/frame/text.h"

enum {
	GROUP_WIDTH = 8,
	NAME_WIDTH = 9,
	BRIEF_WIDTH = 28, /* of the left one of two columns, with a gap */
	RIGHT_NAME_WIDTH = 11,
	ONE_COLUMN_BELOW = 72,
	NAMES_WIDTH = 16, /* of one column */
	FLAG_WIDTH = 26,
	TOPIC_WIDTH = 8,
};

/* ---- all of them ------------------------------------------------------------------------------------------- */

/* Verbs, or nouns of verbs, with blanks between; and what they are for. */
struct help_entry {
	const char *names, *brief;
};

static const struct help_row {
	const char *group;
	struct help_entry left, right;
} screen[] = {
	{"Start", {"up", "server and worker, here"}, {"down", "stop them"}},
	{"", {"doctor", "what is wrong here"}, {"version", "which stint this is"}},
	{"Work", {"add", "queue a task"}, {"run", "add, follow, exit as it"}},
	{"", {"ls", "list tasks"}, {"show", "one task and its story"}},
	{"", {"why", "why is it not running"}, {"logs wait", "its words; until it ends"}},
	{"", {"edit cancel retry park unpark", NULL}, {0}},
	{"Decide", {"inbox", "what needs you"}, {"answer", "a question"}},
	{"", {"approve", "let it pass"}, {"deny", "refuse it"}},
	{"", {"tell", "say something to it"}, {0}},
	{"Watch", {"top", "live board"}, {"dashboard", "in the browser"}},
	{"", {"events", "what happens"}, {"errors", "what failed, why"}},
	{"Flow", {"queue", "pause, resume, drain"}, {"arm disarm", "hand work out, stop"}},
	{"", {"schedule", "at planned times"}, {"workflow", "the stages of a task"}},
	{"", {"group", "tasks that end together"}, {"bulk", "many tasks at once"}},
	{"Run", {"worker", "run one, list, stop"}, {"claim task", "from scripts, agents"}},
	{"", {"agent", "which are here, login"}, {"hold", "accounts that wait"}},
	{"", {"slot", "places of workers"}, {"session", "of slot workers"}},
};

/* These are looked for by name. */
static const char last_group[] = "Admin";

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

/* Is this word among the names? */
static bool names_it(const char *names, const char *word, size_t len)
{
	for (const char *at = names; at && *at; at += strspn(at, " ")) {
		size_t this_len = strcspn(at, " ");
		if (this_len == len && strncmp(at, word, len) == 0)
			return true;
		at += this_len;
	}
	return false;
}

static bool is_on_screen(const struct verb *verb)
{
	for (size_t i = 0; i < sizeof screen / sizeof *screen; i++) {
		if (names_it(screen[i].left.names, verb->name, noun_len(verb)) ||
			names_it(screen[i].right.names, verb->name, noun_len(verb)))
			return true;
	}
	return false;
}

static void put_names(struct cli *cli, const char *names, int width)
{
	int pad = width - (int)strlen(names);

	cli_put(cli, "%s%s%s%*s", term_paint(cli->term.color, PAINT_BOLD), names,
		term_plain(cli->term.color, PAINT_BOLD), pad > 0 ? pad : 0, "");
}

static void put_row(struct cli *cli, const struct help_row *row)
{
	const struct help_entry *left = &row->left, *right = &row->right;

	cli_put(cli, "%-*s", GROUP_WIDTH, row->group);
	put_names(cli, left->names, left->brief ? NAME_WIDTH : 0);
	cli_put(cli, right->names ? "%-*s" : "%.*s", right->names ? BRIEF_WIDTH : BRIEF_WIDTH * 2,
		left->brief ? left->brief : "");
	if (right->names) {
		put_names(cli, right->names, RIGHT_NAME_WIDTH);
		cli_put(cli, "%s", right->brief);
	}
	cli_put(cli, "\n");
}

/* A narrow terminal: one thing to a line. */
static void put_column(struct cli *cli, const struct help_row *row)
{
	const struct help_entry *const entries[] = {&row->left, &row->right};

	for (size_t i = 0; i < 2 && entries[i]->names; i++) {
		cli_put(cli, "%-*s", GROUP_WIDTH, i == 0 ? row->group : "");
		put_names(cli, entries[i]->names, entries[i]->brief ? NAMES_WIDTH : 0);
		cli_put(cli, "%s\n", entries[i]->brief ? entries[i]->brief : "");
	}
}

static void put_rest(struct cli *cli)
{
	const char *rest = "";

	for (size_t i = 0; i < verb_count; i++) {
		if (!verbs[i]->hidden && is_first_of_noun(i) && !is_on_screen(verbs[i]))
			rest = cli_text(cli, "%s%s%.*s", rest, rest[0] ? " " : "", (int)noun_len(verbs[i]),
				verbs[i]->name);
	}
	cli_put(cli, "%-*s", GROUP_WIDTH, last_group);
	cli_put_wrapped(cli, rest, GROUP_WIDTH);
}

void help_screen(struct cli *cli)
{
	bool narrow = cli->term.width > 0 && cli->term.width < ONE_COLUMN_BELOW;

	cli_put(cli, "stint: durable work for agents and programs\n");
	for (size_t i = 0; i < sizeof screen / sizeof *screen; i++) {
		if (narrow)
			put_column(cli, &screen[i]);
		else
			put_row(cli, &screen[i]);
	}
	put_rest(cli);
	cli_put_wrapped(
		cli, "stint help VERB: flags, examples. stint help topics: states, exit codes, times.", 0);
	cli_put(cli, "  try  stint run -- echo hello\n");
}

/* ---- topics ------------------------------------------------------------------------------------------------ */

static void put_topic_row(struct cli *cli, const char *name, const char *text, int width)
{
	cli_put(cli, "  %-*s", width, name);
	cli_put_wrapped(cli, text, 2 + width);
}

static void put_flag(struct cli *cli, const struct verb *verb, const struct flag *flag);

static void put_general_flags(struct cli *cli)
{
	/* a verb that has every flag that is not its own */
	static const struct verb any = {.gives = GIVES_JSON | GIVES_ROWS | GIVES_ENV | GIVES_AGAIN};
	const struct flag *flag;
	size_t at = 0;

	cli_put_wrapped(cli,
		"Flags of every command; they may also stand before the verb. Commands that need no server take neither an address nor a "
		"token. The first three are for commands whose help has a line \"output\".",
		0);
	cli_put(cli, "\n");
	while ((flag = verb_each_flag(&any, &at)))
		put_flag(cli, &any, flag);
}

static void put_exits(struct cli *cli)
{
	static const struct {
		int status;
		const char *text;
	} exits[] = {
#define X(name, number, meaning) {number, meaning},
		EXITS(X)
#undef X
	};

	cli_put(cli, "Exit statuses. stint run exits as its command does.\n\n");
	for (size_t i = 0; i < sizeof exits / sizeof *exits; i++)
		put_topic_row(cli, cli_text(cli, "%d", exits[i].status), exits[i].text, 5);
}

static void put_states(struct cli *cli)
{
	static const char *const states[][2] = {
		{"parked", "nothing happens until stint unpark; \"pending\" in JSON"},
		{"scheduled", "waits for its time, or backs off after a failure"},
		{"waiting", "waits for other tasks"},
		{"ready", "the next worker that fits gets it"},
		{"claimed", "a worker has it and is starting it"},
		{"running", "a worker has it and has begun"},
		{"asking", "asks a person: stint inbox"},
		{"review", "done, and waits for the verdict of a gate: stint inbox"},
		{"blocked", "a person must change something first: stint why ID says what"},
		{"failed", "final: its failures are spent, or it must not be tried again"},
		{"done", "final: it succeeded"},
		{"cancelled", "final: a person stopped it"},
	};

	cli_put(cli, "States of a task. stint why ID says in a sentence why a task is where it is.\n\n");
	for (size_t i = 0; i < sizeof states / sizeof *states; i++)
		put_topic_row(cli, states[i][0], states[i][1], 11);
}

static void put_times(struct cli *cli)
{
	cli_put_wrapped(cli,
		"A duration is a number and its unit: 90s, 30m, 2h, 7d, or several as in 1h30m. A moment, as for --not-before, is a "
		"duration from now, a time of day as 22:00, or a date: 2026-11-20, 2026-11-20T08:00 or 2026-11-20T08:00:00Z. A date without Z is in the time "
		"zone of this computer.",
		0);
}

static const struct topic {
	const char *name, *brief;
	void (*put)(struct cli *cli);
} topics[] = {
	{"flags", "the flags of every command", put_general_flags},
	{"exits", "exit statuses", put_exits},
	{"states", "the states of a task", put_states},
	{"times", "how durations and dates are written", put_times},
};

static bool help_topic(struct cli *cli, const char *name)
{
	bool all = strcmp(name, "topics") == 0;

	for (size_t i = 0; i < sizeof topics / sizeof *topics; i++) {
		if (all) {
			put_topic_row(cli, topics[i].name, topics[i].brief, TOPIC_WIDTH);
		} else if (strcmp(name, topics[i].name) == 0) {
			topics[i].put(cli);
			return true;
		}
	}
	return all;
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
	cli_put_wrapped(
		cli, flag->many ? cli_text(cli, "%s; may be repeated", flag->text) : flag->text, column);
}

/* --json[=FIELDS], -o FORM, --watch: what of it there is. */
static const char *output_of(struct cli *cli, const struct verb *verb)
{
	char forms[VERB_FORMS_BYTES];

	verb_forms(verb, forms);
	return cli_text(cli, "%s%s%s%s%s", verb->gives & GIVES_JSON ? "--json[=FIELDS]" : "",
		verb->gives & GIVES_AGAIN ? ", --watch" : "",
		forms[0] ? verb->gives & GIVES_JSON ? ", " : "" : "", forms[0] ? "-o " : "", forms);
}

static void put_flags(struct cli *cli, const struct verb *verb)
{
	const char *output = output_of(cli, verb);

	if (verb->flags)
		cli_put(cli, "\n");
	for (const struct flag *flag = verb->flags; flag && flag->name; flag++)
		put_flag(cli, verb, flag);
	if (output[0])
		cli_put(cli, "\noutput: %s\n", output);
	cli_put(cli, "%sflags of every command: stint help flags\n", output[0] ? "" : "\n");
}

void help_verb(struct cli *cli, const struct verb *verb)
{
	cli_put(cli, "usage: stint %s%s%s%s\n\n", verb->name, verb->flags ? " [FLAGS]" : "",
		verb->arguments ? " " : "", verb_arguments(verb));
	cli_put_wrapped(cli, verb->text ? verb->text : verb->brief, 0);
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
	else if (count == 1 && help_topic(cli, words[0]))
		return EXIT_GOOD;
	else if (verb && used < count)
		return help_unknown(cli, cli_text(cli, "%s %s", words[0], words[1]), NULL, 0, NULL);
	else if (verb)
		help_verb(cli, verb);
	else if (verb_is_noun(words[0]) && count == 1)
		help_noun(cli, words[0]);
	else
		return help_unknown(cli, words[verb_is_noun(words[0])],
			verb_is_noun(words[0]) ? words[0] : NULL, 0, NULL);
	return EXIT_GOOD;
}

const struct verb verb_help = {
	.name = "help",
	.arguments = "[VERB|TOPIC]",
	.most = 2,
	.offer = OFFER_VERBS,
	.gives = NEEDS_NO_SERVER,
	.pages = true,
	.brief = "this list, or one verb",
	.text = "Without a verb, the list of all. With one, what it does, its flags and examples; every verb also takes --help. Topics: "
		"flags (of every command), exits, states, times.",
	.examples = "stint help add\nstint help queue pause\nstint help flags\n",
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
