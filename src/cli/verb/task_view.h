/*
 * Tasks as people see them.
 */
#pragma once

#include "cli/frame/cli.h"
#include "cli/frame/table.h"
#include "cli/frame/text.h"

/* A worker with heartbeats that has sent none for half of its lease. */
bool view_worker_is_silent(yyjson_val *worker);

/* verb/worker.c, verb/queue.c: the tasks that a worker holds, the queues that it serves, what it runs; and of a queue, why its
 * next task is not taken ("": it will be), and how many of its tasks are in these states (NULL ends them). */
struct span view_worker_holds(struct cli *cli, yyjson_val *worker);
struct span view_worker_serves(struct cli *cli, yyjson_val *worker);
struct span view_worker_runs(struct cli *cli, yyjson_val *worker);
struct span view_queue_held_back(struct cli *cli, yyjson_val *queue);
int64_t view_queue_tasks_in(yyjson_val *queue, const char *const states[]);

/* The gates that a task has not passed yet, as "a, b": how many, and the last of them. */
const char *view_open_gates(struct cli *cli, yyjson_val *task, size_t *ret_count, const char **ret_last);

/* What a task asks, with the answers to choose from. */
const char *view_question(struct cli *cli, yyjson_val *question);

/* The command that answers it: with the first of the answers to choose from, or after a look at the task. */
const char *view_answer_command(struct cli *cli, yyjson_val *task);

/* A state as it is shown: sign and word, and the colour of both or of the sign alone. */
struct state_mark {
	struct span text; /* "● running" */
	enum paint paint;
	bool glyph; /* only the sign is painted */
};

struct state_mark view_state_mark(struct cli *cli, struct span state);

/* Says to a person how a task ended, or that it needs somebody: "✗ failed  t-1  after 2 s: exit status 3". Below a second it is not said how long. */
void view_say_end(struct cli *cli, yyjson_val *task, int64_t took_ms);

/* The signs of its attempts, one for each: how it ended, or that it runs. */
struct span view_tries(struct cli *cli, yyjson_val *task);

/* What people call a state, and type: "parked" is pending. */
struct span view_state_word(struct span state);

/* Why a task is where it is, as the server says it: "ID is STATE. TEXT", and the command that moves it. `why` is the reply of
 * GET /api/tasks/ID/why. */
void view_put_why(struct cli *cli, yyjson_val *why);
const char *view_why_sentence(struct cli *cli, yyjson_val *why);

/* "  try  COMMAND" as a line of the answer. */
void view_put_try(struct cli *cli, const char *command);

/* A task by its id, or by the beginning of it when no other begins so; for looking only, because what is unique today
 * need not be tomorrow. */
int server_get_task(struct cli *cli, const char *typed, struct reply *ret_task);

/* The same for what lies below a task: `path` has a * for its id. */
int server_get_of_task(struct cli *cli, const char *path, const char *typed, struct reply *ret_reply);

/* The log of an attempt, as far as it is there: what has not been read yet is printed. */
struct log_reading {
	struct cli *cli;
	const char *id;
	int64_t attempt, after; /* attempt 0: the last one; position of the next byte to read */
	uint32_t patience;      /* how often a server that is away is tried again */
	const volatile sig_atomic_t *stop;
	bool apart; /* errors go to standard error; otherwise all goes to standard output */
	bool hide_out, hide_err;
	struct text_output shown[2]; /* by descriptor, without 0 */
};

enum {
	LOG_PATIENCE = 40, /* about five minutes */
};

/* verb/logs.c. 0, or the ending. The last ends a line of the program that has not ended, before words of ours. */
int log_read_on(struct log_reading *reading);
int log_look(struct log_reading *reading, struct reply *ret_task); /* at its task */
int log_break_line(struct log_reading *reading);

/* What is new in the attempt that is read, and all of the attempts that came after it, up to that of the task. */
int log_read_attempts(struct log_reading *reading, yyjson_val *task, bool *ret_moved);

/* Is this as far as the task goes without a person? */
bool log_is_settled(yyjson_val *task);

enum paint view_state_paint(struct span state);
bool view_state_is_final(struct span state);

/* One line for the lists of people: id, state, title. */
void view_put_task(struct cli *cli, yyjson_val *task);

/* A line of -o id: as it is, and on a terminal harmless. */
void view_put_id(struct cli *cli, struct span id);

/* Rows in the form that was asked for; `id` names the member that -o id prints. */
int view_put_rows(struct cli *cli, struct table *table, const char *key, yyjson_val *list, const char *id);

/* A list that the server has, from the question to the last row; and one thing of it, a line for each column. */
struct list_view {
	const char *path;
	const char *key; /* of the list in JSON */
	const char *id;  /* the member that -o id prints */
	const struct column *columns;
	size_t column_count, narrow; /* all columns; columns without -o wide, 0: all */
	const struct column *people; /* the columns on a terminal and with -o table; NULL: the same */
	size_t people_count;
	bool (*hides)(struct cli *cli, yyjson_val *item);
	const char *none;                                /* message for an empty list; NULL: no message */
	const char *one;                                 /* the key of one thing in JSON */
	void (*rest)(struct cli *cli, yyjson_val *item); /* what is shown of one thing below its columns */
};

#define VIEW_PEOPLE(array)  .people = (array), .people_count = sizeof(array) / sizeof *(array)
#define VIEW_COLUMNS(array) .columns = (array), .column_count = sizeof(array) / sizeof *(array)

/* What a verb with a list_view does, without and with a name. */
int view_run_list(struct cli *cli);
int view_run_show(struct cli *cli);

/* A row of the table, each cell as its column says. */
void view_add_row(struct cli *cli, struct table *table, yyjson_val *item);

/* A task after something was done to it: in JSON, its id, or on a terminal a sentence. */
int view_put_task_done(struct cli *cli, yyjson_val *task, const char *what);

/* The log of the task of that very id, as the flags say. */
extern const struct flag log_flags[];
int view_put_log(struct cli *cli, const char *id);

/* "5m", "in 2h", … for a cell; and "-" for what is empty. */
struct span view_relative(struct cli *cli, int64_t moment_ms);
struct span view_clock(struct cli *cli, int64_t moment_ms); /* the date and time */
struct span view_since(struct cli *cli, int64_t moment_ms);
struct span view_duration(struct cli *cli, int64_t ms);
struct span view_number(struct cli *cli, int64_t value);
struct span view_countdown(struct cli *cli, int64_t ms);                       /* "4:12" */
struct span view_bar(struct cli *cli, int64_t part, int64_t whole, int width); /* "━━━─" */
struct span view_or_dash(struct span text);
struct span view_any(struct cli *cli, yyjson_val *value); /* a string as it is, anything else as JSON */

/* "$20.00 a day (UTC); used today: $1.20", of a queue or an account; empty: nothing is counted of it. */
struct span view_day_budget(struct cli *cli, yyjson_val *object);
