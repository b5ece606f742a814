/*
 * Verbs and flags by what was typed.
 */
#include "cli/verb/verbs.h"

#include <assert.h>
#include <string.h>

#define X(group, name) &verb_##name,
const struct verb *const verbs[] = {VERBS(X)};
#undef X

#define X(group, name) GROUP_##group,
const enum verb_group verb_groups[] = {VERBS(X)};
#undef X

const size_t verb_count = sizeof verbs / sizeof *verbs;

const struct flag flags_of_all[] = {
	{"quiet", 'q', FLAG_SWITCH, .text = "print nothing but errors on standard error"},
	{"color", 0, FLAG_CHOICE, .value = "auto|always|never",
		.text = "colours: auto is on a terminal, unless NO_COLOR is set"},
	{"exact", 0, FLAG_SWITCH, .text = "times with their date instead of \"5 min ago\""},
	{"help", 'h', FLAG_SWITCH, .text = "this text"},
	{0},
};

const struct flag flags_of_clients[] = {
	{"home", 0, FLAG_TEXT, OFFER_FILES, .value = "DIR",
		.text = "the state directory of the server (default $STINT_HOME)"},
	{"url", 0, FLAG_TEXT, .value = "URL",
		.text = "the server: https://HOST:PORT, http://… or unix:/PATH; several of one store with commas (default $STINT_URL)"},
	{"token", 0, FLAG_TEXT, .value = "TOKEN",
		.text = "the credential (default $STINT_TOKEN); other users can see it: prefer --token-file"},
	{"token-file", 0, FLAG_TEXT, OFFER_FILES, .value = "FILE",
		.text = "a file with the credential (default $STINT_TOKEN_FILE)"},
	{"ca", 0, FLAG_TEXT, OFFER_FILES, .value = "FILE",
		.text = "certificates of the authorities that an https server is trusted by (default $STINT_CA)"},
	{"plain", 0, FLAG_SWITCH,
		.text = "send the credential by http to another computer: anybody on the way can read it"},
	{0},
};

const struct flag flags_of_output[] = {
	{"json", 0, FLAG_FIELDS, .value = "FIELDS", .text = "JSON; with =a,b only these members"},
	{"output", 'o', FLAG_CHOICE, .value = "table|wide|json|jsonl|id|env",
		.text = "the form of the output"},
	{"watch", 0, FLAG_SWITCH, .text = "again every two seconds, until Ctrl-C"},
	{0},
};

const struct output_form output_forms[OUTPUT_FORMS] = {
	{"table", GIVES_ROWS},
	{"wide", GIVES_ROWS},
	{"json", GIVES_JSON},
	{"jsonl", GIVES_ROWS},
	{"id", GIVES_ROWS},
	{"env", GIVES_ENV},
};

const char *verb_group_name(enum verb_group group)
{
	static const char *const names[GROUP_COUNT] = {
		[GROUP_START] = "Start",
		[GROUP_WORK] = "Work",
		[GROUP_DECIDE] = "Decide",
		[GROUP_WATCH] = "Watch",
		[GROUP_WORKERS] = "Workers",
		[GROUP_PROTOCOL] = "Protocol",
		[GROUP_ADMIN] = "Admin",
	};

	assert(group < GROUP_COUNT);
	return names[group];
}

/* ---- arguments -------------------------------------------------------------------------------------------- */

const char *verb_arguments(const struct verb *verb)
{
	return verb->arguments ? verb->arguments : "";
}

/* The words that stand for an argument; of those in brackets none, unless they count too; and maybe only those before
 * the words of a command. */
static uint32_t count_arguments(const struct verb *verb, bool optional_too, bool only_before_dashes)
{
	bool optional = false; /* within brackets */
	uint32_t count = 0;

	for (const char *at = verb_arguments(verb); *at; at += strspn(at, " ")) {
		size_t len = strcspn(at, " ");
		optional |= at[0] == '[';
		bool is_end_of_flags =
			len - (at[0] == '[') == 2 && strncmp(at + (at[0] == '['), "--", 2) == 0;
		if (is_end_of_flags && optional && only_before_dashes)
			break;
		count += !is_end_of_flags && (optional_too || !optional);
		optional &= at[len - 1] != ']';
		at += len;
	}
	return count;
}

uint32_t verb_least(const struct verb *verb)
{
	return count_arguments(verb, false, false);
}

uint32_t verb_most(const struct verb *verb)
{
	return verb->most > 0 ? verb->most : count_arguments(verb, true, false);
}

uint32_t verb_most_before_dashes(const struct verb *verb)
{
	return strstr(verb_arguments(verb), "[-- ") ? count_arguments(verb, true, true) : verb_most(verb);
}

/* ---- words to verbs -------------------------------------------------------------------------------------- */

/* Does the name begin with this whole word? */
static bool begins(const char *name, const char *word)
{
	size_t len = strlen(word);

	return strncmp(name, word, len) == 0 && (name[len] == 0 || name[len] == ' ');
}

const struct verb *verb_find(int count, char *const *words, int *ret_used)
{
	for (size_t i = 0; count > 0 && i < verb_count; i++) {
		const char *name = verbs[i]->name, *second = strchr(name, ' ');
		if (!begins(name, words[0]) || strlen(words[0]) == 0)
			continue;
		if (second && (count < 2 || strcmp(second + 1, words[1]) != 0))
			continue;
		*ret_used = second ? 2 : 1;
		return verbs[i];
	}
	return NULL;
}

bool verb_is_noun(const char *word)
{
	for (size_t i = 0; i < verb_count; i++) {
		if (word[0] && begins(verbs[i]->name, word) && strchr(verbs[i]->name, ' '))
			return true;
	}
	return false;
}

bool verb_noun_stands_in(const char *word)
{
	for (size_t i = 0; i < verb_count; i++) {
		if (word[0] && verbs[i]->stands_in && begins(verbs[i]->name, word))
			return true;
	}
	return false;
}

/* ---- flags ------------------------------------------------------------------------------------------------ */

static bool has_output(const struct verb *verb, const struct flag *flag)
{
	if (strcmp(flag->name, "json") == 0)
		return verb->gives & GIVES_JSON;
	if (strcmp(flag->name, "watch") == 0)
		return verb->gives & GIVES_AGAIN;
	return verb->gives & (GIVES_JSON | GIVES_ROWS | GIVES_ENV);
}

void verb_forms(const struct verb *verb, char ret_words[VERB_FORMS_BYTES])
{
	char *at = ret_words;

	*at = 0;
	for (size_t i = 0; i < OUTPUT_FORMS; i++) {
		if (verb->gives & output_forms[i].needs) {
			assert(at + 1 + strlen(output_forms[i].name) < ret_words + VERB_FORMS_BYTES);
			at = stpcpy(stpcpy(at, at > ret_words ? "|" : ""), output_forms[i].name);
		}
	}
}

const struct flag *verb_each_flag(const struct verb *verb, size_t *at)
{
	static const struct flag no_flags[] = {{0}};
	const struct flag *const lists[] = {verb->flags ? verb->flags : no_flags, flags_of_output,
		verb->gives & NEEDS_NO_SERVER ? no_flags : flags_of_clients, flags_of_all};
	size_t skip = (*at)++;

	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		for (const struct flag *flag = lists[i]; flag->name; flag++) {
			if (lists[i] == flags_of_output && !has_output(verb, flag))
				continue;
			if (skip-- == 0)
				return flag;
		}
	}
	return NULL;
}

const struct flag *verb_flag(const struct verb *verb, const char *name, size_t len)
{
	const struct flag *flag;
	size_t at = 0;

	while ((flag = verb_each_flag(verb, &at))) {
		if (strlen(flag->name) == len && strncmp(flag->name, name, len) == 0)
			return flag;
	}
	return NULL;
}

const struct flag *verb_letter(const struct verb *verb, char letter)
{
	const struct flag *flag;
	size_t at = 0;

	while ((flag = verb_each_flag(verb, &at))) {
		if (flag->letter == letter)
			return flag;
	}
	return NULL;
}
