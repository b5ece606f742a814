/*
 * stint completion: a few lines for each shell that ask us, at every tab, what could come next; and the hidden verb
 * that answers them. So the shells know no more about stint than its name, and nothing of the table is copied.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

enum {
	SERVER_MS = 500, /* a shell waits: better nothing than late */
	OFFERED_MAX = 500,
};

static const char bash_script[] =
	"# bash completion for stint: eval \"$(stint completion bash)\"\n"
	"_stint() {\n"
	"	local cur=${COMP_WORDS[COMP_CWORD]} line\n"
	"	COMPREPLY=()\n"
	"	while IFS= read -r line; do\n"
	"		[[ $line == __files__ ]] && { compopt -o default; COMPREPLY=(); return; }\n"
	"		line=${line%%$'\\t'*}\n"
	"		[[ $line == \"$cur\"* ]] && COMPREPLY+=(\"$line\")\n"
	"	done < <(\"${COMP_WORDS[0]}\" __complete \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
	"}\n"
	"complete -F _stint stint\n";

static const char zsh_script[] =
	"#compdef stint\n"
	"# zsh completion for stint: stint completion zsh > ~/.zfunc/_stint (a directory of $fpath)\n"
	"_stint() {\n"
	"	local -a found\n"
	"	local line\n"
	"	while IFS= read -r line; do\n"
	"		if [[ $line == __files__ ]]; then _files; return; fi\n"
	"		local word=${line%%$'\\t'*} text=${line#*$'\\t'}\n"
	"		found+=(\"${word//:/\\\\:}:$text\")\n"
	"	done < <(\"${words[1]}\" __complete \"${(@)words[2,CURRENT]}\" 2>/dev/null)\n"
	"	_describe stint found\n"
	"}\n"
	"if [[ $funcstack[1] == _stint ]]; then _stint; else compdef _stint stint; fi\n";

static const char fish_script[] =
	"# fish completion for stint: stint completion fish > ~/.config/fish/completions/stint.fish\n"
	"function __stint_complete\n"
	"	set -l words (commandline -opc) (commandline -ct)\n"
	"	set -l found (stint __complete $words[2..-1] 2>/dev/null)\n"
	"	if contains -- __files__ $found\n"
	"		__fish_complete_path (commandline -ct)\n"
	"	else\n"
	"		printf '%s\\n' $found\n"
	"	end\n"
	"end\n"
	"complete -c stint -f -a '(__stint_complete)'\n";

static int run_completion(struct cli *cli)
{
	const char *shell = args_plain(&cli->args, 0);

	if (strcmp(shell, "bash") == 0)
		put(cli, "%s", bash_script);
	else if (strcmp(shell, "zsh") == 0)
		put(cli, "%s", zsh_script);
	else if (strcmp(shell, "fish") == 0)
		put(cli, "%s", fish_script);
	else
		return fail(cli, EXIT_USAGE, "usage", "stint completion bash",
			"there is completion for bash, zsh and fish, not for %s", shell);
	return EXIT_GOOD;
}

const struct verb verb_completion = {
	.name = "completion",
	.group = GROUP_ADMIN,
	.arguments = "bash|zsh|fish",
	.least = 1,
	.most = 1,
	.gives = TALKS_TO_NOBODY,
	.brief = "for bash, zsh, fish",
	.text = "Prints what makes a shell complete verbs, flags, ids and queues.",
	.examples = "eval \"$(stint completion bash)\"\n"
		    "stint completion zsh > ~/.zfunc/_stint\n"
		    "stint completion fish > ~/.config/fish/completions/stint.fish\n",
	.run = run_completion,
};

/* ---- what could come next ------------------------------------------------------------------------------------------------ */

static bool begins(const char *word, const char *typed)
{
	return strncmp(word, typed, strlen(typed)) == 0;
}

static void offer(struct cli *cli, struct span word, struct span text, const char *typed)
{
	if (!begins(text_of(cli, "%.*s", SPAN_ARGS(word)), typed))
		return;
	put_clean(cli, word);
	if (text.len > 0) {
		put(cli, "\t");
		put_clean(cli, text);
	}
	put(cli, "\n");
}

/* Names the server knows. Whatever goes wrong, there is nothing to offer. */
static void offer_list(
	struct cli *cli, const char *target, const char *key, const char *text, const char *typed)
{
	struct http_answer_limits limits = http_answer_limits_default();
	struct http_call call = {.method = HTTP_METHOD_GET, .timeout_ms = SERVER_MS, .may_repeat = true};
	struct json_complaint complaint;
	struct http_answer *answer;
	enum http_reach reach;
	size_t at, count;
	yyjson_val *item;

	if (place_find(cli) != 0 || !(cli->client = http_client_new(&cli->place.address, &limits)))
		return;
	call.target = span_of(target);
	call.token = cli->place.token[0] ? span_of(cli->place.token) : (struct span){0};
	if (http_client_call(cli->client, &call, &answer, &reach) < 0 || http_answer_status(answer) != 200)
		return;
	yyjson_doc *doc = json_read(http_answer_body(answer), &complaint);
	yyjson_arr_foreach(yyjson_doc_get_root(doc), at, count, item)
	{
		if (field_text(item, key).len > 0)
			offer(cli, field_text(item, key), field_text(item, text), typed);
	}
	yyjson_doc_free(doc);
}

static void offer_words(struct cli *cli, const char *words, char between, const char *typed)
{
	while (*words) {
		size_t len = strcspn(words, (char[]){between, 0});
		offer(cli, (struct span){words, len}, (struct span){0}, typed);
		words += len + (words[len] == between);
	}
}

static void offer_verbs(struct cli *cli, const char *noun, const char *typed)
{
	const char *last = "";

	for (size_t i = 0; i < verb_count; i++) {
		const char *name = verbs[i]->name, *second = strchr(name, ' ');
		size_t len = strcspn(name, " ");
		if (verbs[i]->hidden)
			continue;
		if (noun) {
			if (second && strlen(noun) == len && strncmp(name, noun, len) == 0)
				offer(cli, span_of(second + 1), span_of(verbs[i]->brief), typed);
			continue;
		}
		const char *word = text_of(cli, "%.*s", (int)len, name);
		if (strcmp(word, last) != 0)
			offer(cli, span_of(word), second ? (struct span){0} : span_of(verbs[i]->brief),
				typed);
		last = word;
	}
}

static void offer_for(struct cli *cli, enum offer what, const char *typed)
{
	switch (what) {
	case OFFER_NOTHING:
		return;
	case OFFER_TASKS:
		offer_list(cli, text_of(cli, "/api/tasks?limit=%d", OFFERED_MAX), "id", "title", typed);
		return;
	case OFFER_QUEUES:
		offer_list(cli, "/api/queues", "name", "state", typed);
		return;
	case OFFER_WORKERS:
		offer_list(cli, "/api/workers", "workerId", "state", typed);
		return;
	case OFFER_SLOTS:
		offer_list(cli, "/api/slots", "name", "state", typed);
		return;
	case OFFER_TOKENS:
		offer_list(cli, "/api/tokens", "id", "name", typed);
		return;
	case OFFER_STATES:
		offer_words(cli,
			"pending scheduled waiting ready claimed running asking review blocked failed done cancelled",
			' ', typed);
		return;
	case OFFER_FILES:
		put(cli, "__files__\n");
		return;
	case OFFER_VERBS:
		offer_verbs(cli, NULL, typed);
		return;
	}
}

static void offer_flags(struct cli *cli, const struct verb *verb, const char *typed)
{
	const struct flag *flag;
	size_t at = 0;

	while ((flag = verb_each_flag(verb, &at)))
		offer(cli, span_of(text_of(cli, "--%s", flag->name)), span_of(flag->text), typed);
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

static void offer_value(struct cli *cli, const struct flag *flag, const char *typed)
{
	if (flag->kind == FLAG_CHOICE)
		offer_words(cli, flag->value, '|', typed);
	else if (flag->kind == FLAG_PRIORITY)
		offer_words(cli, "urgent high normal low", ' ', typed);
	else
		offer_for(cli, flag->offer, typed);
}

/* --home and --url that were typed lead to the server we ask; the other flags are not ours to understand. */
static void take_place(struct cli *cli, int count, char *const *words)
{
	for (int i = 0; i + 1 < count; i++) {
		if (strcmp(words[i], "--home") == 0)
			setenv("STINT_HOME", words[i + 1], 1);
		else if (strcmp(words[i], "--url") == 0)
			setenv("STINT_URL", words[i + 1], 1);
		else if (strcmp(words[i], "--token-file") == 0)
			setenv("STINT_TOKEN_FILE", words[i + 1], 1);
	}
	(void)cli;
}

/* The words are what stands on the line; the last one is being typed, and may be empty. */
int complete_words(struct cli *cli, int count, char *const *words)
{
	const char *typed = count > 0 ? words[count - 1] : "";
	int used = 0;
	const struct verb *verb = verb_find(count - 1, words, &used);

	cli->quiet = true;
	cli->form = FORM_AUTO;
	take_place(cli, count, words);
	if (count <= 1)
		offer_verbs(cli, NULL, typed);
	else if (!verb && count == 2 && verb_is_noun(words[0]))
		offer_verbs(cli, words[0], typed);
	if (!verb)
		return EXIT_GOOD;
	const struct flag *flag = count - 1 > used ? flag_before(verb, words[count - 2]) : NULL;
	if (flag)
		offer_value(cli, flag, typed);
	else if (typed[0] == '-')
		offer_flags(cli, verb, typed);
	else if (strcmp(verb->name, "completion") == 0)
		offer_words(cli, "bash zsh fish", ' ', typed);
	else if (verb->most > 0)
		offer_for(cli, verb->offer, typed);
	return EXIT_GOOD;
}

static int run_nothing(struct cli *cli)
{
	(void)cli;
	return EXIT_GOOD; /* run.c hands the words over before flags are read */
}

const struct verb verb_complete = {
	.name = "__complete",
	.group = GROUP_ADMIN,
	.arguments = "WORD...",
	.most = 1000,
	.brief = "what could come next",
	.run = run_nothing,
	.hidden = true,
};
