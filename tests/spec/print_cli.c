/*
 * The tables of the command line, from the rows of its verbs.
 */
#include <stdio.h>
#include <string.h>

#include "cli/frame/exit.h"
#include "cli/frame/verb.h"
#include "print.h"

/* A | would end the cell. */
static void print_text(const char *text)
{
	for (; *text; text++) {
		if (*text == '|')
			putchar('\\');
		putchar(*text == '\n' ? ' ' : *text);
	}
}

static void print_verbs(void)
{
	puts("<!-- table: cli-verbs -->\n| command | what it does | output |\n| --- | --- | --- |");
	for (size_t i = 0; i < verb_count; i++) {
		const struct verb *verb = verbs[i];
		if (verb->hidden)
			continue;
		printf("| `stint %s%s", verb->name, verb->arguments ? " " : "");
		print_text(verb_arguments(verb));
		printf("` | ");
		print_text(verb->text ? verb->text : verb->brief);
		printf(" | %s%s%s |\n", verb->gives & GIVES_JSON ? "json" : "text",
			verb->gives & GIVES_ROWS ? " table wide jsonl id" : "",
			verb->gives & GIVES_ENV ? " env" : "");
	}
	puts("<!-- end -->");
}

static void print_flag(const char *verb, const struct flag *flag)
{
	printf("| %s | `--%s", verb, flag->name);
	if (flag->kind != FLAG_SWITCH) {
		printf(flag->kind == FLAG_FIELDS ? "[=" : " ");
		print_text(flag->value);
		printf("%s", flag->kind == FLAG_FIELDS ? "]" : "");
	}
	printf("`");
	if (flag->letter)
		printf(" `-%c`", flag->letter);
	printf(" | ");
	print_text(flag->text);
	printf("%s |\n", flag->many ? "; may be repeated" : "");
}

static void print_flags(void)
{
	char name[64];

	puts("<!-- table: cli-flags -->\n| command | flag | what |\n| --- | --- | --- |");
	for (size_t i = 0; i < verb_count; i++) {
		snprintf(name, sizeof name, "`%s`", verbs[i]->name);
		for (const struct flag *flag = verbs[i]->flags; flag && flag->name; flag++)
			print_flag(name, flag);
	}
	for (const struct flag *flag = flags_of_output; flag->name; flag++)
		print_flag("those with such output", flag);
	for (const struct flag *flag = flags_of_clients; flag->name; flag++)
		print_flag("those that ask a server", flag);
	for (const struct flag *flag = flags_of_all; flag->name; flag++)
		print_flag("all", flag);
	puts("<!-- end -->");
}

static void print_exits(void)
{
	puts("<!-- table: cli-exits -->\n| status | meaning |\n| --- | --- |");
#define X(name, number, text) printf("| %d | %s |\n", number, text);
	EXITS(X)
#undef X
	puts("<!-- end -->");
}

void print_cli(void)
{
	print_verbs();
	print_flags();
	print_exits();
}
