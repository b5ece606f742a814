/*
 * stint completion: a few lines for each shell that ask us, at every tab, what could come next; and the hidden verb
 * that answers them. So the shells know no more about stint than its name, and nothing of the table is copied.
 */
#include <stdlib.h>
#include <string.h>

#include "base/take.h"
#include "cli/frame/cli.h"

enum {
	SERVER_MS = 500, /* a shell waits: better nothing than late */
};

/* Bash takes a line apart at : and = and gives us its words with their quotes. So they are put together again, and of
 * what is offered only that is handed back which comes after the last of these. Names come from others: whatever means
 * something to a shell is quoted, or inside of quotes not offered at all. */
static const char bash_script[] =
	"# bash completion for stint: eval \"$(stint completion bash)\"\n"
	"_stint() {\n"
	"	local rest=${COMP_LINE:0:COMP_POINT} word cur='' i line quote='' before=''\n"
	"	local -a words=()\n"
	"	COMPREPLY=()\n"
	"	for ((i = 0; i <= COMP_CWORD; i++)); do\n"
	"		word=${COMP_WORDS[i]}\n"
	"		if ((i == 0)) || [[ $rest == [[:blank:]]* ]]; then\n"
	"			rest=${rest#\"${rest%%[![:blank:]]*}\"}\n"
	"			words+=('')\n"
	"		fi\n"
	"		((i == COMP_CWORD)) && word=$rest\n"
	"		words[${#words[@]} - 1]+=$word\n"
	"		rest=${rest#\"$word\"}\n"
	"	done\n"
	"	cur=${words[${#words[@]} - 1]}\n"
	"	[[ $cur == [\\'\\\"]* ]] && quote=${cur:0:1}\n"
	"	for i in \"${!words[@]}\"; do words[i]=${words[i]//[\\'\\\"\\\\]/}; done\n"
	"	cur=${words[${#words[@]} - 1]}\n"
	"	[[ ! $quote && $cur == *[:=]* ]] && before=${cur%\"${cur##*[:=]}\"}\n"
	"	while IFS= read -r line; do\n"
	"		if [[ $line == __files__ ]]; then compopt -o default 2>/dev/null; COMPREPLY=(); return; fi\n"
	"		line=${line%%$'\\t'*}\n"
	"		[[ $line == \"$cur\"* ]] || continue\n"
	"		line=${line#\"$before\"}\n"
	"		if [[ $line == *[!A-Za-z0-9._:@%+,/=-]* ]]; then\n"
	"			[[ $quote ]] && continue\n"
	"			printf -v line %q \"$line\"\n"
	"		fi\n"
	"		COMPREPLY+=(\"$line\")\n"
	"	done < <(\"${words[0]}\" __complete \"${words[@]:1}\" 2>/dev/null)\n"
	"}\n"
	"complete -F _stint stint\n";

static const char zsh_script[] =
	"#compdef stint\n"
	"# zsh completion for stint: stint completion zsh > ~/.zfunc/_stint (a directory of $fpath)\n"
	"_stint() {\n"
	"	local -a found\n"
	"	local line word\n"
	"	while IFS= read -r line; do\n"
	"		if [[ $line == __files__ ]]; then compset -P '-*='; _files; return; fi\n"
	"		word=${${line%%$'\\t'*}//\\\\/\\\\\\\\}\n"
	"		word=${word//:/\\\\:}\n"
	"		[[ $line == *$'\\t'* ]] && word+=:${line#*$'\\t'}\n"
	"		found+=(\"$word\")\n"
	"	done < <(\"${(Q)words[1]}\" __complete \"${(@Q)words[2,CURRENT-1]}\" \"${(Q)PREFIX}\" 2>/dev/null)\n"
	"	_describe stint found\n"
	"}\n"
	"if [[ $funcstack[1] == _stint ]]; then _stint; else compdef _stint stint; fi\n";

static const char fish_script[] =
	"# fish completion for stint: stint completion fish > ~/.config/fish/completions/stint.fish\n"
	"function __stint_complete\n"
	"	set -l words (commandline -opc) (commandline -ct)\n"
	"	set -l found ($words[1] __complete $words[2..-1] 2>/dev/null)\n"
	"	if contains -- __files__ $found\n"
	"		set -l flag (string match -r -- '^-[^=]*=' $words[-1])\n"
	"		for path in (__fish_complete_path (string replace -r -- '^-[^=]*=' '' $words[-1]))\n"
	"			printf '%s%s\\n' \"$flag\" $path\n"
	"		end\n"
	"	else if test (count $found) -gt 0\n"
	"		printf '%s\\n' $found\n"
	"	end\n"
	"end\n"
	"complete -c stint -f -a '(__stint_complete)'\n";

static int run_completion(struct cli *cli)
{
	const char *shell = args_plain(&cli->args, 0);

	if (strcmp(shell, "bash") == 0)
		cli_put(cli, "%s", bash_script);
	else if (strcmp(shell, "zsh") == 0)
		cli_put(cli, "%s", zsh_script);
	else if (strcmp(shell, "fish") == 0)
		cli_put(cli, "%s", fish_script);
	else
		return cli_fail(cli, EXIT_USAGE, "usage", "stint completion bash",
			"there is completion for bash, zsh and fish, not for %s", shell);
	return EXIT_GOOD;
}

const struct verb verb_completion = {
	.name = "completion",
	.arguments = "bash|zsh|fish",
	.gives = NEEDS_NO_SERVER,
	.brief = "for bash, zsh, fish",
	.text = "Prints what makes a shell complete verbs, flags, ids and queues.",
	.examples =
		"eval \"$(stint completion bash)\"\n"
		"mkdir -p ~/.zfunc && stint completion zsh > ~/.zfunc/_stint\n"
		"stint completion fish | install -Dm644 /dev/stdin ~/.config/fish/completions/stint.fish\n",
	.run = run_completion,
};

/* ---- what could come next ------------------------------------------------------------------------------------------------ */

static bool begins(const char *word, const char *typed)
{
	return strncmp(word, typed, strlen(typed)) == 0;
}

/* What is being typed: a whole word, or what comes after `--flag=` and the commas in it, which are offered again with
 * each thing that fits. */
struct typing {
	struct cli *cli;
	const char *before, *typed;
};

static void offer(const struct typing *typing, struct span name, struct span text)
{
	struct cli *cli = typing->cli;

	if (!begins(cli_text(cli, "%.*s", SPAN_ARGS(name)), typing->typed))
		return;
	cli_put(cli, "%s", typing->before);
	cli_put_clean(cli, name);
	if (text.len > 0) {
		cli_put(cli, "\t");
		cli_put_clean(cli, text);
	}
	cli_put(cli, "\n");
}

/* Names the server knows. Whatever goes wrong, there is nothing to offer. */
static void offer_list(const struct typing *typing, const struct offer_row *row)
{
	struct ask question = {
		.method = HTTP_METHOD_GET, .path = row->path, .timeout_ms = SERVER_MS, .optional = true};
	cleanup(reply_done) struct reply reply = {0};
	size_t at, count;
	yyjson_val *item;

	server_ask(typing->cli, &question, &reply);
	yyjson_arr_foreach(reply.root, at, count, item)
	{
		if (field_text(item, row->key).len > 0)
			offer(typing, field_text(item, row->key), field_text(item, row->text));
	}
}

static void offer_words(const struct typing *typing, const char *words, char between)
{
	while (*words) {
		size_t len = strcspn(words, (char[]){between, 0});
		offer(typing, (struct span){words, len}, (struct span){0});
		words += len + (words[len] == between);
	}
}

static void offer_verbs(const struct typing *typing, const char *noun)
{
	const char *last = "";

	for (size_t i = 0; i < verb_count; i++) {
		const char *name = verbs[i]->name, *second = strchr(name, ' ');
		size_t len = strcspn(name, " ");
		if (verbs[i]->hidden)
			continue;
		if (noun) {
			if (second && strlen(noun) == len && strncmp(name, noun, len) == 0)
				offer(typing, span_of(second + 1), span_of(verbs[i]->brief));
			continue;
		}
		const char *first = cli_text(typing->cli, "%.*s", (int)len, name);
		if (strcmp(first, last) != 0)
			offer(typing, span_of(first), second ? (struct span){0} : span_of(verbs[i]->brief));
		last = first;
	}
}

const struct offer_row offers[OFFER_COUNT] = {
	[OFFER_TASKS] = {"/api/tasks?limit=500", "id", "title", "stint ls --all", .noun = "task"},
	[OFFER_QUEUES] = {"/api/queues", "name", "state", "stint queue ls", .noun = "queue"},
	[OFFER_WORKERS] = {"/api/workers", "workerId", "state", "stint worker ls --all", .noun = "worker"},
	[OFFER_SLOTS] = {"/api/slots", "name", "state", "stint slot ls", .noun = "slot"},
	[OFFER_SESSIONS] = {"/api/sessions", "id", "status", "stint session ls", .noun = "session"},
	[OFFER_WORKFLOWS] = {"/api/workflows", "name", "text", "stint workflow ls", .noun = "workflow"},
	[OFFER_SCHEDULES] = {"/api/schedules", "id", "when", "stint schedule ls", .noun = "schedule"},
	[OFFER_GROUPS] = {"/api/groups", "name", "tasks", "stint group ls", .noun = "group"},
	[OFFER_BULKS] = {"/api/bulk", "id", "action", "stint bulk ls", .noun = "bulk action"},
	[OFFER_TOKENS] = {"/api/tokens", "id", "name", "stint token ls", .noun = "token"},
	[OFFER_STATES] =
		{.words = "parked scheduled waiting ready claimed running asking review blocked failed done cancelled"},
	[OFFER_LEVELS] = {.words = "process sandbox container vm"},
	[OFFER_SKILLS] = {.words = "stint-supervise stint-task workqueue-worker"},
	[OFFER_FILES] = {.words = "__files__"}, /* the shell knows them */
};

static void offer_for(const struct typing *typing, enum offer what)
{
	const struct offer_row *row = &offers[what];

	if (what == OFFER_VERBS)
		offer_verbs(typing, NULL);
	else if (what == OFFER_FILES)
		cli_put(typing->cli, "%s\n", row->words);
	else if (row->words)
		offer_words(typing, row->words, ' ');
	else if (row->path)
		offer_list(typing, row);
}

static void offer_flags(const struct typing *typing, const struct verb *verb)
{
	const struct flag *flag;
	size_t at = 0;

	while ((flag = verb_each_flag(verb, &at)))
		offer(typing, span_of(cli_text(typing->cli, "--%s", flag->name)), span_of(flag->text));
}

/* The flag whose value is being typed, if one is. */
static const struct flag *flag_before(const struct verb *verb, const char *word)
{
	const struct flag *flag = NULL;

	if (begins(word, "--"))
		flag = verb_flag(verb, word + 2, strlen(word + 2));
	else if (word[0] == '-' && word[1] && !word[2])
		flag = verb_letter(verb, word[1]);
	return flag && flag->kind != FLAG_SWITCH && flag->kind != FLAG_FIELDS ? flag : NULL;
}

static void offer_value(struct typing typing, const struct verb *verb, const struct flag *flag)
{
	const char *comma = flag->kind == FLAG_NAMES ? strrchr(typing.typed, ',') : NULL;

	if (comma) {
		typing.before = cli_text(
			typing.cli, "%s%.*s", typing.before, (int)(comma + 1 - typing.typed), typing.typed);
		typing.typed = comma + 1;
	}
	if (flag->kind == FLAG_CHOICE)
		offer_words(&typing, help_flag_value(typing.cli, verb, flag), '|');
	else if (flag->kind == FLAG_PRIORITY)
		offer_words(&typing, "urgent high normal low", ' ');
	else
		offer_for(&typing, flag->offer);
}

/* --flag=VALUE: the flag, and the value as what is typed. */
static const struct flag *flag_within(const struct verb *verb, struct typing *typing)
{
	const char *equals = begins(typing->typed, "--") ? strchr(typing->typed, '=') : NULL;
	size_t len = equals ? (size_t)(equals - typing->typed - 2) : 0;
	const struct flag *flag = equals ? verb_flag(verb, typing->typed + 2, len) : NULL;

	if (!flag || flag->kind == FLAG_SWITCH || flag->kind == FLAG_FIELDS)
		return NULL;
	typing->before = cli_text(typing->cli, "--%s=", flag->name);
	typing->typed = equals + 1;
	return flag;
}

/* --home and --url that were typed lead to the server we ask; the other flags are not ours to understand. */
static void take_place(int count, char *const *words)
{
	static const char *const places[][2] = {
		{"--home", "STINT_HOME"}, {"--url", "STINT_URL"}, {"--token-file", "STINT_TOKEN_FILE"}};

	for (int i = 0; i < count; i++) {
		for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
			size_t len = strlen(places[p][0]);
			const char *value = strncmp(words[i], places[p][0], len) != 0 ? NULL
				: words[i][len] == '='                                ? words[i] + len + 1
				: words[i][len] == 0 && i + 1 < count                 ? words[i + 1]
										      : NULL;
			if (!value)
				continue;
			if (p == 0)
				unsetenv("STINT_URL"); /* --home stands above it */
			setenv(places[p][1], value, 1);
		}
	}
}

static void offer_arguments(
	const struct typing *typing, const struct verb *verb, int count, char *const *words)
{
	if (strcmp(verb->name, "completion") == 0)
		offer_words(typing, "bash zsh fish", ' ');
	else if (verb->offer == OFFER_VERBS && count == 3) /* help queue … */
		offer_verbs(typing, words[1]);
	else if (verb_most(verb) > 0)
		offer_for(typing, verb->offer);
}

/* The words are what stands on the line; the last one is being typed, and may be empty. */
int completion_words(struct cli *cli, int count, char *const *words)
{
	struct typing typing = {cli, "", count > 0 ? words[count - 1] : ""};
	int skipped = count > 0 ? verb_flags_before(count - 1, words) : 0, used = 0;

	cli->quiet = true;
	cli->output = OUTPUT_AUTO;
	take_place(count - 1, words);
	words += skipped;
	count -= skipped;
	const struct verb *verb = verb_find(count - 1, words, &used);
	if (count <= 1)
		offer_verbs(&typing, NULL);
	else if (!verb && count == 2 && verb_is_noun(words[0]))
		offer_verbs(&typing, words[0]);
	if (!verb)
		return EXIT_GOOD;
	const struct flag *flag = count - 1 > used ? flag_before(verb, words[count - 2]) : NULL;
	if (!flag)
		flag = flag_within(verb, &typing);
	if (flag)
		offer_value(typing, verb, flag);
	else if (typing.typed[0] == '-')
		offer_flags(&typing, verb);
	else
		offer_arguments(&typing, verb, count, words);
	return EXIT_GOOD;
}

/* run.c hands its words to completion_words() before flags are read. */
const struct verb verb_complete = {
	.name = "__complete",
	.arguments = "WORD...",
	.most = 1000,
	.brief = "what could come next",
	.hidden = true,
};
