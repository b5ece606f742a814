/*
 * Verbs: each is one sealed file with one row that says all there is to know about it. The rows (verbs.c) yield the
 * help, the manual pages, the completion and spec/cli.md; nothing about a verb is written down twice.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cli;

enum flag_kind {
	FLAG_SWITCH = 0, /* takes no value */
	FLAG_TEXT,
	FLAG_NAMES,    /* a,b; may be repeated */
	FLAG_NUMBER,   /* from .least to .most */
	FLAG_DURATION, /* 30m */
	FLAG_MOMENT,   /* 30m from now, or a date */
	FLAG_PRIORITY, /* a number or a word */
	FLAG_JSON,     /* text, @FILE or - */
	FLAG_CHOICE,   /* one of .value, which has them with | between */
	FLAG_FIELDS,   /* may have a value, only with = : --json, --json=id,state */
};

/* What the shell offers for a value. */
enum offer {
	OFFER_NOTHING = 0,
	OFFER_TASKS,
	OFFER_QUEUES,
	OFFER_WORKERS,
	OFFER_SLOTS,
	OFFER_SESSIONS,
	OFFER_WORKFLOWS,
	OFFER_SCHEDULES,
	OFFER_GROUPS,
	OFFER_BULKS,
	OFFER_TOKENS,
	OFFER_STATES,
	OFFER_LEVELS, /* of isolation */
	OFFER_SKILLS,
	OFFER_FILES,
	OFFER_VERBS,
	OFFER_COUNT
};

/* Where the values are: a list of the server and the members of each that are shown, or words that are always the same. */
struct offer_row {
	const char *path, *key, *text;
	const char *command; /* that shows the same list to a person */
	const char *noun;    /* what one of them is called */
	const char *words;   /* with spaces between */
};

extern const struct offer_row offers[OFFER_COUNT];

struct flag {
	const char *name; /* without --; NULL ends a list */
	char letter;      /* 0: no short form */
	enum flag_kind kind;
	enum offer offer;
	bool many;         /* may be given more than once */
	bool may_be_empty; /* a list of names may have no name */
	const char *value; /* how help calls it: ID, or the choices */
	const char *text;
	int64_t least, most;
	bool must; /* of a verb that stands in for another program's: it is refused without this flag */
	const char
		*member; /* of the request: see cli_member_flags(); NULL: only the verb looks at the flag */
};

enum verb_group {
	GROUP_START,
	GROUP_WORK,
	GROUP_DECIDE,
	GROUP_WATCH,
	GROUP_WORKERS,
	GROUP_PROTOCOL,
	GROUP_ADMIN,
	GROUP_COUNT
};

/* Forms of output beside the one for people. */
enum {
	GIVES_JSON = 1 << 0,
	GIVES_ROWS = 1 << 1,      /* -o table, wide, jsonl, id: it is a list */
	GIVES_ENV = 1 << 2,       /* -o env: for eval in a shell */
	GIVES_AGAIN = 1 << 4,     /* --watch: looking twice does no harm */
	NEEDS_NO_SERVER = 1 << 3, /* has no --url and no --token */
};

struct verb {
	const char *name; /* "add", or noun and verb: "queue pause" */
	const char *
		arguments; /* as in a usage line: [X] may be left out, X... be repeated; NULL: it takes none */
	uint32_t most;     /* of X..., or of one that is written as two words; 0: as many as are named */
	enum offer offer;
	unsigned gives;
	const char *brief; /* a line in the list of verbs */
	const char *text;  /* paragraphs; NULL: the brief says it */
	const struct flag *flags;
	const char *examples; /* lines */
	int (*run)(struct
		cli *cli); /* NULL: it does its change to each thing, or shows its list or one thing of it */
	const struct list_view *list; /* verb/task_view.h */
	const struct change *change;  /* frame/cli.h */
	bool hidden;
	bool pages; /* what it prints may be longer than a screen: then a person gets a pager */
	/* The program whose verb this one replaces: flags are read and failures told as that program does. NULL: our own verb. See
	 * args_read_loosely() and cli_fail(). */
	const char *stands_in;
};

extern const struct verb *const verbs[];
extern const enum verb_group verb_groups[]; /* of each */
extern const size_t verb_count;
extern const struct flag flags_of_all[];     /* every verb has these */
extern const struct flag flags_of_clients[]; /* and these, if it talks to a server */
extern const struct flag flags_of_output[];

/* The words of --output and what a verb must give for each, in the order of enum output. */
struct output_form {
	const char *name;
	unsigned needs;
};

enum {
	OUTPUT_FORMS = 6,
};

extern const struct output_form output_forms[OUTPUT_FORMS];

/* The forms that the verb has, with | between. */
enum { VERB_FORMS_BYTES = 40 };
void verb_forms(const struct verb *verb, char ret_words[VERB_FORMS_BYTES]);

/* The arguments as in a usage line, never NULL, and how many there must and may be. */
const char *verb_arguments(const struct verb *verb);
uint32_t verb_least(const struct verb *verb);
uint32_t verb_most(const struct verb *verb);
uint32_t verb_most_before_dashes(const struct verb *verb); /* of a verb with [-- COMMAND...] */

const char *verb_group_name(enum verb_group group);

/* The verb of these words, and how many of them name it; NULL: there is no such verb. */
const struct verb *verb_find(int count, char *const *words, int *ret_used);

/* The flag of that name or letter, among those of the verb and of all; NULL. */
const struct flag *verb_flag(const struct verb *verb, const char *name, size_t len);
const struct flag *verb_letter(const struct verb *verb, char letter);

/* Walk them all. Start with 0; NULL at the end. */
const struct flag *verb_each_flag(const struct verb *verb, size_t *at);

/* Is this the first word of verbs of two words? */
bool verb_is_noun(const char *word);

/* … and do those verbs replace the verbs of another program? */
bool verb_noun_stands_in(const char *word);
