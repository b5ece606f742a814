#include "cli/frame/run.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/frame/cli.h"
#include "base/suggest.h"
#include "cli/verb/task_view.h"
#include "cli/verb/verbs.h"

enum {
	ARENA_BYTES_MAX = 512 << 20,
	OUT_BYTES_MAX = 256 << 20,
	BODY_BYTES_MAX = 32 << 20,
	WORDS_MAX = 4096,
	WATCH_MS = 2000,
};

/* ---- what was meant --------------------------------------------------------------------------------------- */

/* "ls, pause, resume or drain" */
static const char *verbs_of(struct cli *cli, const char *noun)
{
	const char *list = "", *last = NULL;
	size_t len = strlen(noun);

	for (size_t i = 0; i < verb_count; i++) {
		const char *name = verbs[i]->name;
		if (verbs[i]->hidden || strncmp(name, noun, len) != 0 || name[len] != ' ')
			continue;
		if (last)
			list = cli_text(cli, "%s%s%s", list, list[0] ? ", " : "", last);
		last = name + len + 1;
	}
	return cli_text(cli, "%s%s%s", list, list[0] ? " or " : "", last);
}

/* The verb as it can be typed: by itself, or how to learn what it needs. */
static const char *typed_so(struct cli *cli, const char *noun, const char *name)
{
	char *words[] = {(char *)(noun ? noun : name), (char *)name};
	int used;
	const struct verb *verb = verb_find(noun ? 2 : 1, words, &used);

	return cli_text(cli, "stint %s%s%s%s", verb && verb_least(verb) == 0 ? "" : "help ", noun ? noun : "",
		noun ? " " : "", name);
}

/* The word that could have been meant instead: a verb of the noun, or without one what a command begins with. NULL: the
 * verb has none to offer. */
static const char *candidate(struct cli *cli, const struct verb *verb, const char *noun)
{
	size_t len = strcspn(verb->name, " ");

	if (verb->hidden)
		return NULL;
	if (!noun)
		return cli_text(cli, "%.*s", (int)len, verb->name);
	return verb->name[len] && strlen(noun) == len && strncmp(verb->name, noun, len) == 0
		? verb->name + len + 1
		: NULL;
}

/* What other programs call our verbs. */
static const struct synonym {
	const char *words; /* with blanks between */
	const char *verb;  /* that is meant … */
	const char *alone; /* … and when no word follows; NULL: the same */
} synonyms[] = {
	{"create enqueue insert new push put submit", "add", NULL},
	{"abort del delete kill remove rm", "cancel", NULL},
	{"jobs list ps tasks", "ls", NULL},
	{"stat status state", "why", "ls"},
	{"follow log output tail", "logs", NULL},
	{"daemon serve server", "up", NULL},
	{"start", "why", "up"},
	{"halt quit shutdown", "down", NULL},
	{"stop", "cancel", "down"},
	{"describe get info inspect view", "show", NULL},
	{"redo rerun restart", "retry", NULL},
	{"hold pause suspend", "park", NULL},
	{"continue resume unhold", "unpark", NULL},
	{"exec", "run", NULL},
	{"await join", "wait", NULL},
	{"questions", "inbox", NULL},
	{"reply", "answer", NULL},
	{"accept", "approve", NULL},
	{"reject", "deny", NULL},
	{"history", "events", NULL},
	{"check diagnose health", "doctor", NULL},
};

static bool has_word(const char *words, const char *word)
{
	for (const char *at = words; *at; at += strspn(at, " ")) {
		size_t len = strcspn(at, " ");
		if (strlen(word) == len && strncmp(at, word, len) == 0)
			return true;
		at += len;
	}
	return false;
}

static const char *meant_by(const char *word, bool alone)
{
	for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++) {
		if (has_word(synonyms[i].words, word))
			return alone && synonyms[i].alone ? synonyms[i].alone : synonyms[i].verb;
	}
	return NULL;
}

/* The verb with the words that followed the wrong one, if it takes them: what we offer works when typed. */
static const char *typed_with(struct cli *cli, const char *name, int count, char *const *words)
{
	struct args_complaint complaint;
	struct args args = {0};
	int used;
	const struct verb *verb = verb_find(1, (char *[]){(char *)name}, &used);
	const char *text = cli_text(cli, "stint %s", name);

	int r = verb ? args_read(&args, verb, count, words, cli->now_ms, &complaint) : -EINVAL;
	args_done(&args);
	if (r < 0)
		return cli_text(cli, "stint help %s", name);
	for (int i = 0; i < count; i++)
		text = cli_text(cli, "%s %s", text, cli_quote(cli, words[i]));
	return text;
}

/* Nothing of that name: the verb that other programs call so, or else the nearest in spelling, of the noun if there is one. */
int help_unknown(struct cli *cli, const char *word, const char *noun, int count, char *const *words)
{
	const char *meant = noun ? NULL : meant_by(word, count == 0);
	const char *before = noun ? cli_text(cli, "%s ", noun) : "", *instead = "";
	struct suggestion best = {0};

	if (meant)
		return cli_fail(cli, EXIT_USAGE, "usage", typed_with(cli, meant, count, words),
			"there is no \"stint %s\"; it is \"stint %s\"", word, meant);
	for (size_t i = 0; i < verb_count; i++) {
		const char *name = candidate(cli, verbs[i], noun);
		if (name)
			suggest_consider(&best, word, name);
	}
	if (best.word)
		instead = cli_text(cli, "; did you mean \"%s\"?", best.word);
	else if (noun)
		instead = cli_text(cli, "; say %s", verbs_of(cli, noun));
	return cli_fail(cli, EXIT_USAGE, "usage",
		best.word      ? typed_so(cli, noun, best.word)
			: noun ? cli_text(cli, "stint help %s", noun)
			       : "stint help",
		"there is no \"stint %s%s\"%s", before, word, instead);
}

/* Does this flag before the verb take the next word as its value? A verb without flags of its own has exactly the flags
 * that may stand there. */
static bool takes_next(const char *word)
{
	static const struct verb any = {.gives = GIVES_JSON | GIVES_AGAIN};
	const struct flag *flag = word[1] == '-' ? verb_flag(&any, word + 2, strlen(word + 2))
		: !word[2]                       ? verb_letter(&any, word[1])
						 : NULL;

	return flag && flag->kind != FLAG_SWITCH && flag->kind != FLAG_FIELDS;
}

int verb_flags_before(int count, char *const *words)
{
	int first = 0;

	while (first < count && words[first][0] == '-' && words[first][1] != 0)
		first += takes_next(words[first]) && first + 1 < count ? 2 : 1;
	return first;
}

/* Flags that stand before the verb count as if they stood behind it. */
static int sort_words(int argc, char **argv, char **words)
{
	int count = 0, first = argc > 0 ? 1 + verb_flags_before(argc - 1, argv + 1) : 0;

	/* the verb is one word or two; its own words follow after the flags */
	int used = 0;
	verb_find(argc - first, argv + first, &used);
	if (used == 0)
		used = argc - first;
	for (int i = first; i < first + used; i++)
		words[count++] = argv[i];
	for (int i = 1; i < first; i++)
		words[count++] = argv[i];
	for (int i = first + used; i < argc; i++)
		words[count++] = argv[i];
	return count;
}

static int set_form(struct cli *cli)
{
	const char *output = args_text(&cli->args, "output");

	if (args_has(&cli->args, "json")) {
		cli->output = OUTPUT_JSON;
		cli->fields = args_text(&cli->args, "json");
		if (cli->fields && !cli->fields[strspn(cli->fields, ",")])
			return cli_fail(cli, EXIT_USAGE, "usage",
				cli_text(cli, "stint help %s", cli->verb->name),
				"--json= needs names of members, as in --json=id,state");
	}
	if (!output)
		return 0;
	int64_t before = args_number(&cli->args, "output", 0); /* among the forms that the verb has */
	int place = 0;
	while (!(cli->verb->gives & output_forms[place].needs) || before-- > 0) {
		place++;
		assert(place < OUTPUT_FORMS);
	}
	enum output wanted = (enum output)(OUTPUT_TABLE + place);
	if (cli->output == OUTPUT_AUTO || wanted == OUTPUT_JSONL)
		cli->output = wanted;
	return 0;
}

static void look_around(struct cli *cli)
{
	cli->quiet = args_has(&cli->args, "quiet");
	cli->exact = args_has(&cli->args, "exact");
	term_look(&cli->term, (enum color_wish)args_number(&cli->args, "color", COLOR_AUTO));
}

/* ---- the run ----------------------------------------------------------------------------------------------- */

static int run_once(struct cli *cli)
{
	const struct verb *verb = cli->verb;

	if (verb->run)
		return verb->run(cli);
	if (verb->change)
		return server_change_each(cli);
	return verb->arguments ? view_run_show(cli) : view_run_list(cli);
}

/* Once, or every two seconds as long as all goes well. On a terminal each takes the place of the one before. */
static int run_watching(struct cli *cli)
{
	bool again = args_has(&cli->args, "watch"), clears = cli->term.moves && cli->output != OUTPUT_JSON;
	int r;

	do {
		if (again && clears)
			cli_put(cli, "\033[H\033[2J");
		r = run_once(cli);
		if (!again || r != 0)
			return r;
		r = cli_flush(cli);
		poll(NULL, 0, WATCH_MS);
		arena_reset(&cli->arena);
		cli->now_ms = clock_wall_ms();
	} while (r == 0);
	return r;
}

/* -o FORM, in any of its spellings? */
static bool asks_for_form(int count, char **words, const char *form)
{
	for (int i = 0; i < count && strcmp(words[i], "--") != 0; i++) {
		const char *word = words[i],
			   *value = strncmp(word, "--output=", 9) == 0 ? word + 9
			: strcmp(word, "-o") == 0 || strcmp(word, "--output") == 0
			? (i + 1 < count ? words[i + 1] : "")
			: strncmp(word, "-o", 2) == 0 ? word + 2
						      : "";
		if (strcmp(value, form) == 0)
			return true;
	}
	return false;
}

/* With --json a complaint about the other words is JSON, too. */
static bool asks_for_json(int count, char **words)
{
	for (int i = 0; i < count && strcmp(words[i], "--") != 0; i++) {
		if (strcmp(words[i], "--json") == 0 || strncmp(words[i], "--json=", 7) == 0)
			return true;
	}
	return asks_for_form(count, words, "json");
}

/* As the program that it stands in for: the form is always the same. */
static int run_stand_in(struct cli *cli, int count, char **words)
{
	const char *unknown;

	int r = args_read_loosely(&cli->args, cli->verb, count, words, &unknown);
	if (r < 0)
		return cli_fail_fault(cli, r);
	look_around(cli);
	if (args_has(&cli->args, "help")) {
		help_verb(cli, cli->verb);
		return EXIT_GOOD;
	}
	if (unknown)
		cli_say(cli, "stint %s does not know %s, and ignores it", cli->verb->name, unknown);
	return cli->verb->run(cli);
}

static int run_verb(struct cli *cli, int count, char **words)
{
	struct args_complaint complaint;

	if (cli->verb->stands_in)
		return run_stand_in(cli, count, words);

	cli->output = asks_for_json(count, words) ? OUTPUT_JSON : OUTPUT_AUTO;
	int r = args_read(&cli->args, cli->verb, count, words, cli->now_ms, &complaint);
	if (r == -EINVAL && asks_for_form(count, words, "yaml"))
		return cli_fail(cli, EXIT_USAGE, "usage", complaint.fix,
			"there is no -o yaml: use -o json, which a reader of YAML reads as well");
	if (r == -EINVAL)
		return cli_fail(cli, EXIT_USAGE, "usage", complaint.fix, "%s", complaint.text);
	if (r < 0)
		return cli_fail_fault(cli, r);
	cli->output = OUTPUT_AUTO;
	look_around(cli);
	if (args_has(&cli->args, "help")) {
		cli->pages = true;
		help_verb(cli, cli->verb);
		return EXIT_GOOD;
	}
	cli->pages = cli->verb->pages && !args_has(&cli->args, "watch") && !args_has(&cli->args, "follow");
	r = set_form(cli);
	return r != 0 ? r : run_watching(cli);
}

/* The noun alone is a question, and anything else a mistake: as the other program has it. */
static int run_noun_standing_in(struct cli *cli, int count, char **words)
{
	bool asks = count < 2 || strcmp(words[1], "help") == 0 || strncmp(words[1], "-", 1) == 0;

	if (asks) {
		help_noun(cli, words[0]);
		return EXIT_GOOD;
	}
	fprintf(stderr, "unknown %s command: %s\n", words[0], words[1]);
	return EXIT_FAILED;
}

static bool asks_for_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int run_words(struct cli *cli, int count, char **words)
{
	int used = 0;

	if (count > 0 && asks_for_help(words[0])) {
		cli->pages = true;
		help_screen(cli);
		return EXIT_GOOD;
	}
	bool version = count > 0 && (strcmp(words[0], "--version") == 0 || strcmp(words[0], "-V") == 0);
	if (count == 0 || (words[0][0] == '-' && !version)) {
		cli->verb = &verb_stand;
		return run_verb(cli, count, words);
	}
	cli->verb = verb_find(count, words, &used);
	if (cli->verb == &verb_complete)
		return completion_words(cli, count - 1, words + 1);
	if (cli->verb)
		return run_verb(cli, count - used, words + used);
	if (version) {
		cli_put(cli, "stint %s\n", STINT_VERSION);
		return EXIT_GOOD;
	}
	if (verb_noun_stands_in(words[0]))
		return run_noun_standing_in(cli, count, words);
	/* with flags alone, or with nothing, a worker is meant to be one; and so is a notifier */
	bool asks_help = count > 1 && asks_for_help(words[1]);
	bool alone = (count == 1 || words[1][0] == '-') && !asks_help;
	if (alone && (strcmp(words[0], "worker") == 0 || strcmp(words[0], "notify") == 0)) {
		cli->verb = words[0][0] == 'w' ? &verb_worker_run : &verb_notify_run;
		return run_verb(cli, count - 1, words + 1);
	}
	if (verb_is_noun(words[0])) {
		if (count > 1 && words[1][0] != '-')
			return help_unknown(cli, words[1], words[0], count - 2, words + 2);
		if (asks_help) {
			help_noun(cli, words[0]);
			return EXIT_GOOD;
		}
		cli->output = asks_for_json(count, words) ? OUTPUT_JSON : OUTPUT_AUTO;
		return cli_fail(cli, EXIT_USAGE, "usage", cli_text(cli, "stint help %s", words[0]),
			"stint %s needs a verb: %s", words[0], verbs_of(cli, words[0]));
	}
	cli->output = asks_for_json(count, words) ? OUTPUT_JSON : OUTPUT_AUTO;
	return help_unknown(cli, words[0], NULL, count - 1, words + 1);
}

int cli_run(int argc, char **argv)
{
	struct cli cli = {.now_ms = clock_wall_ms(), .program = argc > 0 ? argv[0] : "stint"};
	char **words = argc < WORDS_MAX ? calloc((size_t)argc + 1, sizeof *words) : NULL;

	arena_init(&cli.arena, ARENA_BYTES_MAX);
	buf_init(&cli.out, OUT_BYTES_MAX);
	buf_init(&cli.body, BODY_BYTES_MAX);
	term_look(&cli.term, COLOR_AUTO);
	int status = words ? run_words(&cli, sort_words(argc, argv, words), words)
			   : cli_fail(&cli, EXIT_USAGE, "usage", NULL, "too many words");
	int wrote = cli_flush(&cli);
	term_title_back();
	http_client_free(cli.client);
	args_done(&cli.args);
	buf_done(&cli.out);
	buf_done(&cli.body);
	arena_done(&cli.arena);
	free(words);
	return status != 0 ? status : wrote;
}
