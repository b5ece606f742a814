/*
 * The configuration: what each key is worth, and who said so.
 *
 *   flag  >  environment variable  >  HOME/config.json  >  user's file  >  system's file  >  default
 *
 * A file named with --config takes the place of all three. A file must belong to root or to us and be writable by
 * nobody else, with every directory above it, because the same files say which programs a worker runs. Everything
 * that is wrong is collected, each with its place: a user who fixes one thing should not find the next only then.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "config/key.h"

struct form;
struct field;
struct yyjson_val;

enum {
	CONFIG_PROBLEMS_MAX = 64,
	CONFIG_FOREIGN_MAX = 16,
	CONFIG_FILE_BYTES_MAX = 1 << 20,
};

enum config_source { CONFIG_DEFAULT, CONFIG_FILE, CONFIG_VARIABLE, CONFIG_FLAG };

struct config_origin {
	enum config_source source;
	const char *name;      /* path, variable or flag; "default" */
	uint32_t line, column; /* in a file; 0: no particular line */
};

struct config_value {
	int64_t number;   /* also of a bool; for a choice the index of its word */
	const char *text; /* as it was given */
	struct config_origin origin;
};

/* Something that is wrong. All texts are the configuration's. */
struct config_problem {
	struct config_origin where;
	const char *what;
};

/* A top-level key that another program reads. */
struct config_foreign {
	const char *name, *program;
	const char *
		names; /* its members, or the texts in it, with commas between: "tests, claude"; "" if there are none */
	struct config_origin where;
};

/* Gets every top-level key that has more than a plain value, as its file is read; files of lower rank are read first. The
 * form keeps texts in the configuration and notes errors as its problems. Form and value live until it
 * returns. */
struct config;
typedef void (*config_foreign_read)(
	void *context, struct config *config, struct form *form, struct span key, struct yyjson_val *value);

struct config {
	struct config_value values[CONFIG_KEY_COUNT];
	struct config_value home; /* the state directory */
	struct config_problem problems[CONFIG_PROBLEMS_MAX];
	uint32_t problem_count; /* may be more than CONFIG_PROBLEMS_MAX */
	struct config_foreign foreign[CONFIG_FOREIGN_MAX];
	uint32_t foreign_count;
	config_foreign_read foreign_read; /* of the request, during config_read() */
	void *foreign_context;
	struct arena arena;
};

/* One value from the command line. */
struct config_flag {
	const char *flag; /* as the user typed it */
	const char *key;
	const char *value;
};

enum { CONFIG_SETS_MAX = 64 };

/* The values of the command line: --set, and flags that stand for a key. */
struct config_sets {
	struct config_flag flags[CONFIG_SETS_MAX];
	char keys[CONFIG_SETS_MAX][CONFIG_NAME_MAX];
	uint32_t count;
};

/* "a.b=1". -EINVAL: it is not KEY=VALUE; -E2BIG: there are too many. The text must live as long as the sets. */
int config_sets_take(struct config_sets *sets, const char *text);

/* For FIELD_BY of a flag; the struct is a config_sets. --set KEY=VALUE; a flag that has the name of a key, which is `name` of the row. */
bool config_take_set(struct form *form, const struct field *field, struct yyjson_val *value, void *at);
bool config_take_flag(struct form *form, const struct field *field, struct yyjson_val *value, void *at);

/* The value of a flag that has a key of its own. -E2BIG. The texts must live as long as the sets. */
int config_sets_add(struct config_sets *sets, const char *flag, const char *key, const char *value);

struct config_request {
	const char *home;        /* --home; NULL: STINT_HOME, XDG_STATE_HOME/stint, ~/.local/state/stint */
	const char *file;        /* --config; NULL: the three files, as far as they are there */
	const char *system_file; /* NULL: /etc/stint/config.json */
	const struct config_flag *flags; /* later ones override */
	uint32_t flag_count;
	config_foreign_read foreign_read; /* NULL: keys of other programs are skipped */
	void *foreign_context;
};

/* A variable of the environment; NULL: it is not set, or empty. */
const char *config_variable(const char *name);

/* The first line of a small file: an address, a token. -ENODATA: the file is empty. */
int config_read_line(const char *path, char *ret_line, size_t room);

/* The default state directory, and the file of the user. False: $HOME is not set, or the path is too long. */
bool config_usual_home(char *ret_path, size_t room);
bool config_user_file(char *ret_path, size_t room);

/* Reads everything; what cannot be read is a problem and leaves its key as it was. Texts of the request must live as
 * long as the configuration. To be ended with config_done() in any case. */
void config_read(struct config *config, const struct config_request *request);
void config_done(struct config *config);

int64_t config_number(const struct config *config, enum config_key key);
bool config_bool(const struct config *config, enum config_key key);
const char *config_text(const struct config *config, enum config_key key);

/* For a default that depends on other things. A value that was given stays. */
void config_fall_back(struct config *config, enum config_key key, const char *text);

/* Notes a problem; the text goes into the configuration, its control characters replaced. */
void config_note_problem(struct config *config, struct config_origin where, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The value of that key is wrong for a reason that the table does not know. */
#define config_complain(config, key, ...) \
	config_note_problem(config, (config)->values[key].origin, __VA_ARGS__)

/* Where the value that a form reads stands in its file. */
struct config_origin config_form_origin(const struct form *form);
struct config *config_of(const struct form *form);

/* A copy that lives as long as the configuration; never NULL: without memory it is a shorter text. */
const char *config_keep(struct config *config, const char *text);

/* ---- telling; -ENOMEM, -E2BIG --------------------------------------------------------------------------- */

/* "FILE:LINE:COLUMN", "STINT_LISTEN", "--set", "default" */
void config_put_origin(struct buf *out, const struct config_origin *origin);

/* All problems, one per line, each beginning with `prefix`. */
int config_put_problems(struct buf *out, const struct config *config, const char *prefix);

/* The effective configuration with its origins, for people and for programs; the latter with the problems. */
int config_put_table(struct buf *out, const struct config *config);
int config_put_json(struct buf *out, const struct config *config);

/* What a file may say, as a JSON Schema. */
int config_put_schema(struct buf *out);

/* The list of keys, for a program's help. */
int config_put_keys(struct buf *out);
