/*
 * One run of `stint`: what was asked, what we write to, where the server is. Verbs get this and return how it ends
 * (exit.h); by then every failure has been reported.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/span.h"
#include "cli/frame/args.h"
#include "cli/frame/exit.h"
#include "cli/frame/term.h"
#include "cli/frame/verb.h"
#include "config/server_place.h"
#include "wire/http/client.h"
#include "wire/json/json.h"

enum output { OUTPUT_AUTO, OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_JSON, OUTPUT_JSONL, OUTPUT_ID, OUTPUT_ENV };

struct cli {
	const struct verb *verb;
	struct args args;
	enum output output;
	const char *fields; /* FIELDS of --json=FIELDS; NULL: all */
	bool quiet;
	bool exact; /* times are shown with their date */
	bool pages; /* what does not fit the screen goes through the pager; once */
	struct term term;
	bool progress_drawn; /* a line of progress is on the terminal */
	struct arena arena;  /* lives as long as the run */
	char home[1024];     /* the state directory; empty: none, or not looked for yet */
	bool place_known;
	struct server_place place; /* the server and the credential: see place_find() */
	struct http_client *client;
	bool met_server; /* the server has answered in this run: if it is away now, it will come back */
	struct buf out;  /* bytes to be written to standard output */
	struct buf body; /* body of the request that is being made */
	struct json_object members; /* the JSON object in `body` */
	size_t changed, begun;      /* things that this run has changed; and those that are changed later */
	int64_t now_ms;
	const char *program; /* argv[0] */
};

/* ---- saying: out.c --------------------------------------------------------------------------------------- */

/* Talk, on standard error; nothing with --quiet. On a terminal it is broken between words. */
void cli_say(struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for how a task ended: `mark`, its sign and word, is painted, and the text follows behind it. */
void cli_say_mark(struct cli *cli, enum paint paint, struct span mark, const char *text);

/* The last line of an answer: "  try  COMMAND", one whole command that can be pasted. Only for people: nothing with --quiet,
 * --json, or where standard output is no terminal. NULL: nothing. */
void cli_hint(struct cli *cli, const char *command);

/* What went wrong, its code and the command that helps; with --json an object in place of the words. Returns the
 * ending. `fix` may be NULL. A verb that stands in for another program says the sentence alone, and ends with 1. */
int cli_fail(struct cli *cli, enum exit_status status, const char *code, const char *fix, const char *format,
	...) __attribute__((format(printf, 5, 6)));
int cli_fail_fault(struct cli *cli, int fault); /* no memory, no room */

/* Writes the complete lines of the output and ends the run with that status. */
_Noreturn void cli_exit(struct cli *cli, int status);

/* The same after cli_fail(): for a failure after which there is nothing left to do. */
#define cli_die(cli, ...) cli_exit(cli, cli_fail(cli, __VA_ARGS__))

/* The bytes of a text that is made elsewhere. Its fault, if it has one, ends the run: half of a text is never used. */
struct span cli_span(struct cli *cli, const struct buf *text);

/* Progress, on a line of standard error that is drawn over itself: a bar, the counts, and as much of the note as fits. What
 * is said or written next takes its place. The counts are the window's title until the run ends. Nothing with --quiet, or where a line cannot be drawn over. */
void cli_progress(struct cli *cli, int percent, const char *counts, const char *note);

/* Data, on standard output. A fault is kept until cli_flush(), which ends the run with it. */
void cli_put(struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_put_clean(struct cli *cli, struct span text); /* on one line */
void cli_put_line(struct cli *cli, const char *format, ...)
	__attribute__((format(printf, 2, 3))); /* clean, with its end */
/* A sentence, clean, with its end. On a terminal it is broken between words; the lines after the first begin in column
 * `indent`. */
void cli_put_sentence(struct cli *cli, size_t indent, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void cli_put_lines(struct cli *cli, struct span text, const char *indent);
void cli_put_painted(struct cli *cli, enum paint paint, struct span text);

/* What a program wrote to standard error, on ours, after what it wrote to standard output before. */
void cli_put_errors(struct cli *cli, struct span text);

/* Prose, clean and with its end, whose first line has reached column `indent` already and whose others begin there. It is broken
 * between words, elsewhere than on a terminal too: help and the screen of stint up are for reading. */
void cli_put_wrapped(struct cli *cli, const char *text, size_t indent);

/* The answer after a change, for one of `count` things: on a terminal its sentence, elsewhere its name. On a terminal more
 * than CHANGES_TOLD sentences are none: the caller says how many things it has changed. */
enum { CHANGES_TOLD = 5 };
void cli_put_change(struct cli *cli, size_t count, const char *name, const char *sentence);

/* Write the output: 0, or EXIT_FAILED when it cannot be written. */
int cli_flush(struct cli *cli);

/* Is the reader of our output gone? For verbs that wait without writing: a failed write would tell the others. */
bool cli_reader_is_gone(void);

/* {"schema":1,"ok":true,"KEY":value}; the members of the value are picked by --json=FIELDS. */
int cli_put_json(struct cli *cli, const char *key, yyjson_val *value);
int cli_put_json_buf(
	struct cli *cli, bool ok, const char *key, const struct buf *json); /* of a value we made */
yyjson_doc *cli_read_made(struct cli *cli, const struct buf *json);
void cli_put_value(struct cli *cli, yyjson_val *value); /* as it is, or the members that were asked for */

/* Formats a text that lives as long as the run. */
const char *cli_text(struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A path that means the same elsewhere: a worker has another directory. NULL: ours is gone. */
const char *cli_path(struct cli *cli, const char *path);

/* A name quoted for a command that may be pasted: names come from others, and a shell must find nothing in them to run. */
const char *cli_quote(struct cli *cli, const char *name);

/* ---- members of JSON: fields.c ---------------------------------------------------------------------------- */

struct span field_text(yyjson_val *object, const char *key); /* empty: not there or no string */
int64_t field_int(yyjson_val *object, const char *key, int64_t otherwise);
bool field_bool(yyjson_val *object, const char *key);
yyjson_val *field_get(yyjson_val *object, const char *key);
const char *field_cstr(struct cli *cli, yyjson_val *object, const char *key); /* "" if not there */

/* ["a","b"] as "a, b"; "" if it is empty or no list. */
const char *cli_join(struct cli *cli, yyjson_val *list, const char *between);

/* The body of the next request, without members yet; and its bytes when it is complete. A run makes one at a time. */
struct json_object *cli_body(struct cli *cli);
struct span cli_body_end(struct cli *cli);

/* An Idempotency-Key of our own: a request whose reply was lost may be sent again. NULL: the kernel gives no random bits. */
const char *cli_random_key(struct cli *cli);

/* Members that go into a request or an answer of ours: a text, if there is one; every flag that was given and names a
 * member; the names of one flag, if it was given; all members of another object but one (NULL: all). Faults are kept by the object. */
void cli_member_text(struct json_object *object, const char *key, const char *text);
void cli_member_flags(struct cli *cli, struct json_object *object);
void cli_member_names(struct cli *cli, struct json_object *object, const char *flag, const char *key);
void cli_members_of(struct json_object *object, yyjson_val *from, const char *but);

/* Appends the names of the flag to a list in JSON that has begun. */
void cli_put_names(struct buf *list, const struct args *args, const char *flag);

/* The text of a file; "-" is standard input. One that cannot be read ends the run. */
struct span cli_read_input(struct cli *cli, const char *path);

/* ---- asking: server.c -------------------------------------------------------------------------------------- */

struct reply {
	int status;
	yyjson_doc *doc;
	yyjson_val *root;
	struct span next; /* the query of Link: rel=next */
};

void reply_done(struct reply *reply);

struct ask {
	enum http_method method;
	const char *path; /* a * in it is replaced by the next of `names`, encoded */
	const char *names[2];
	struct span query; /* encoded */
	struct span body;
	struct span key;   /* Idempotency-Key */
	bool may_repeat;   /* GET always may */
	uint32_t patience; /* how often a server that is away is tried again: after 1, 2, 4, 8, 8 s */
	const volatile sig_atomic_t *stop; /* not 0: stop trying */
	int64_t timeout_ms;                /* 0: 30 s */
	bool optional;       /* failures are not reported: the caller can do without the reply */
	bool quiet_missing;  /* a 404 is not reported: the caller has a better message */
	bool keeps_refusals; /* no refusal is reported: the caller does that */
	int keeps_refusal;   /* a refusal of this status is not reported: the caller does that */
};

/* 0 and the reply; or the ending, after the failure was reported. */
int server_ask(struct cli *cli, const struct ask *ask, struct reply *ret_reply);

/* The same for a verb that can do nothing without the reply: a failure ends the run. A body without bytes is {}. */
struct reply server_need(struct cli *cli, const struct ask *ask);
struct reply server_get(struct cli *cli, const char *path, const char *name);

/* A request that the caller can do without: a failure is not reported, and the reply is empty. */
struct reply server_try(struct cli *cli, const char *path, const char *name);
struct reply server_post(struct cli *cli, const char *path, const char *name, struct span body);

/* What a verb does to each thing that was named. */
struct change {
	const char *noun;  /* key of the reply in JSON output */
	const char *path;  /* of the POST, whose body has the members of the flags */
	bool deletes;      /* DELETE instead of POST */
	const char *done;  /* message after the name; NULL: "is" and the status of the reply */
	const char *begun; /* message after the name for a 202: it is done later */
	/* The sentence for a person; NULL: the name, and `done` or `begun`. */
	const char *(*sentence)(struct cli *cli, const char *name);
	const char *many; /* "cancelled": a number of things that were changed; NULL: each has its sentence */
};

/* Does it to every name that was given. The first failure is the ending; the others are tried all the same, unless they
 * would fail too. */
int cli_each(struct cli *cli, int (*each)(struct cli *cli, const char *name));

/* Does the change of the verb to each. */
int server_change_each(struct cli *cli);

/* Does a server answer at this address? 0, or a negative errno. */
int server_probe(const char *url);

/* Find the server, so that `client` and `place` are there. 0, or the ending. The token may be empty. */
int server_find(struct cli *cli);
struct span server_token(const struct cli *cli);

/* Events from the cursor on, until `each` or `idle` returns something other than
 * 0: that is returned, or the ending. The connection is made again when it is lost. */
enum {
	FOLLOW_DONE = 1000, /* not an exit status */
};

struct follow {
	struct span after; /* the cursor */
	int (*each)(void *context, yyjson_val *event);
	int (*idle)(void *context);
	int64_t idle_ms; /* longest time between two calls of idle(); 0: one second */
	/* The events after the cursor are no longer kept: 0, with a new cursor in `ret_after`, goes on from there. NULL:
	 * following ends. */
	int (*lost)(void *context, struct span *ret_after);
	void *context;
};
int server_follow(struct cli *cli, const struct follow *follow);

/* The cursor of the last event there is. */
int server_newest_cursor(struct cli *cli, struct span *ret_cursor);

/* A path or query value, encoded, that lives as long as the run. */
struct span cli_encode(struct cli *cli, struct span text);

/* The command that helps somebody without a token. */
#define CLI_NEW_TOKEN                                                                                            \
	"stint token create --kind operator --out me.token   # by an admin, where the server runs; then export " \
	"STINT_TOKEN_FILE=me.token"

/* ---- where: place.c ---------------------------------------------------------------------------------------- */

/* The state directory that is meant. 0, or the ending. */
int place_home(struct cli *cli, char *ret_home, size_t room);
int place_find(struct cli *cli); /* fills cli->home and cli->place */

/* Is the state directory that directory (an absolute path), or beneath it? No command works there: it must not reach it. */
bool place_holds_state(struct cli *cli, const char *dir);

/* The path of another program of ours: beside this one, or else its bare name, for PATH. */
const char *program_beside(struct cli *cli, const char *name);

/* Becomes another program of ours, which has the libraries that this one lacks: all arguments are passed on, after the one or
 * two words of `mode` if that is not NULL. Returns a status only if the program cannot be run. */
int program_become(struct cli *cli, const char *program, const char *mode);

/* ---- help.c, man.c, completion.c ---------------------------------------------------------------------------- */

/* The name of a flag's value, or its choices; of --output only the forms that the verb has. */
const char *help_flag_value(struct cli *cli, const struct verb *verb, const struct flag *flag);

/* "pause resume drain": what there is to do with a noun; `index` is that of its first verb. */
const char *help_verbs_of_noun(struct cli *cli, size_t index);

void help_screen(struct cli *cli);
void help_verb(struct cli *cli, const struct verb *verb);
void help_noun(struct cli *cli, const char *noun);
int verb_flags_before(int count, char *const *words); /* how many words come before the verb */
int completion_words(struct cli *cli, int count, char *const *words);

/* There is no verb of that name, or none of that noun (NULL: none was named): say which one is meant. The words are those that
 * followed. */
int help_unknown(struct cli *cli, const char *word, const char *noun, int count, char *const *words);
