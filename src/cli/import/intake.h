/*
 * Things of another system on their way to become tasks. An importer reads all of them first, and then they are added in slices.
 *
 *	intake_open(&intake, cli, "issue");
 *	struct json_object *task = intake_begin(&intake, id, title, place);
 *	json_member_string(task, "instructions", text);
 *	intake_end(&intake);
 *	return intake_finish(&intake);
 *
 * Each has an id that says what it was elsewhere. A task of that id stays as it is: so an import may be repeated, and one that was cut off
 * goes on.
 */
#pragma once

#include "cli/frame/cli.h"
#include "cli/frame/json_walk.h"
#include "cli/import/ids.h"

/* Where something stands, for a sentence about a mistake. */
struct intake_place {
	const char *file;
	uint32_t line, column; /* 0: the file has no lines that a person could look at */
};

struct intake {
	struct cli *cli;
	const char *noun; /* "issue": what one of them is called */
	bool dry_run;
	struct buf texts;        /* the tasks, one JSON object behind the other */
	struct buf rows;         /* a struct intake_row for each */
	struct ids ids;          /* of the rows */
	struct json_object task; /* the one that is being written */
	uint64_t imported, existing, left_out;
};

void intake_open(struct intake *intake, struct cli *cli, const char *noun);
void intake_close(struct intake *intake);

/* A task without members but its id and title. An id that no task may have, or that came before, ends the run. */
struct json_object *intake_begin(
	struct intake *intake, const char *id, struct span title, struct intake_place place);
void intake_end(struct intake *intake);

/* Not taken over, because of `why`: "closed". */
void intake_leave_out(struct intake *intake, const char *id, struct span title, const char *why);

/* Adds them, or with --dry-run says which would be added, and prints what became of each. The ending. */
int intake_finish(struct intake *intake);

/* Something in the file is wrong: says where, and ends the run. Nothing was changed. */
_Noreturn void intake_die(struct cli *cli, struct intake_place place, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A file of text; one that cannot be read ends the run. */
struct span intake_read_file(struct cli *cli, const char *path);

/* The place of a byte of the file. */
struct intake_place intake_place(const char *file, struct span text, size_t at);

/* Reads a value that lies in the text of the file; a mistake in it ends the run. The document lives as long as the run. */
yyjson_val *intake_read_value(struct cli *cli, const char *file, struct span text, struct span value);

/* Walks the list at the top of a file of JSON, or the one that is its member `key`. */
struct intake_walk {
	struct cli *cli;
	const char *file;
	struct span text;
	struct json_walk walk;
};

/* False: the file is an object without such a member. What is no JSON, or neither a list nor an object, ends the run. */
bool intake_walk_open(
	struct intake_walk *walk, struct cli *cli, const char *file, struct span text, const char *key);
/* NULL: that was the last one. */
yyjson_val *intake_walk_next(struct intake_walk *walk, struct intake_place *ret_place);

/* A member that must be a text, or missing; anything else ends the run. Empty: it is missing, or null. */
struct span intake_text(struct cli *cli, struct intake_place place, yyjson_val *object, const char *key);

/* {"importedFrom":{"system":…, members}} for the metadata of a task: the caller writes the members and ends both objects. */
void intake_begin_origin(struct json_object *task, struct json_object *metadata, struct json_object *origin,
	const char *system);
void intake_end_origin(struct json_object *metadata, struct json_object *origin);

#define INTAKE_DRY_RUN {"dry-run", 'n', FLAG_SWITCH, .text = "read and check everything, and change nothing"}
