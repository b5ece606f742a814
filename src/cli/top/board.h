/*
 * The frame of stint top: what the server said last, which rows stand where, and how all of it is drawn. It knows no server and no
 * terminal; top.c has both.
 *
 * Rows keep their place while somebody reads: one that changes is drawn anew where it stands, new ones are only counted, until the
 * list is adopted.
 */
#pragma once

#include "cli/frame/cli.h"
#include "cli/top/screen.h"
#include "cli/verb/stand.h"

enum board_tab { TAB_TASKS, TAB_INBOX, TAB_WORKERS, TAB_QUEUES, TAB_COUNT };

enum {
	BOARD_ROWS_MAX = 600,
	BOARD_ID_BYTES = 160, /* the longest name of a task, worker or queue, and more */
	BOARD_TEXT_BYTES = 1024,
	BOARD_COLUMNS_LEAST = 60,
	BOARD_ROWS_LEAST = 16,
	BOARD_STALE_MS = 5000, /* so long without an answer is said */
	BOARD_LINES_ABOVE = 4, /* of the list, at most: head, tabs, banner, names of columns */
	BOARD_LINES_BELOW = 3, /* of the pane: its rule, the command, the keys */
};

struct board_row {
	char id[BOARD_ID_BYTES];
	uint8_t group;
	yyjson_val *item; /* as the server showed it last */
};

/* What the last line asks for. */
enum board_prompt { PROMPT_NONE, PROMPT_CONFIRM, PROMPT_TEXT, PROMPT_KEYS };

struct board {
	/* Borrowed; NULL: not known. */
	yyjson_val *tasks[STAND_GROUPS], *workers, *queues;
	bool more_ended;    /* … than the list of ended tasks has */
	struct span log;    /* the end of the output of the task in focus */
	struct span server; /* where it is */
	struct span event;  /* the number of the newest one */
	int64_t fetched_ms; /* when all of that was so */
	int64_t next_try_ms;

	enum board_tab tab;
	bool open;          /* what is in focus has most of the screen */
	const char *filter; /* "": none */
	struct board_row rows[BOARD_ROWS_MAX];
	size_t row_count;
	size_t fresh, moved; /* rows that are not shown yet, and those that belong elsewhere by now */
	size_t focus;        /* index of a row */
	size_t first;        /* the first line of the list that is seen */

	enum board_prompt prompt;
	const char *asks;  /* "Cancel t-1? y" */
	const char *typed; /* so far */
	const char *said;  /* what came of the last key; "": the command of what is seen */
	bool said_is_bad;
};

/* The command that shows the row in focus, or does what it asks for. */
const char *board_command(const struct board *board, struct cli *cli);

/* Where the rows of the tab now belong. `adopt`: in that order, all of them; otherwise those that are there stay where they are. The
 * focus stays with its row; if that is gone, it goes to the row in its place, and true is returned. */
bool board_arrange(struct board *board, bool adopt);

/* The row in focus; NULL: there is none. */
const struct board_row *board_focus(const struct board *board);
void board_move_focus(struct board *board, int64_t by);

/* The rows of the tab are tasks. */
bool board_has_tasks(const struct board *board);

/* Something keeps the tasks of the queue. */
bool board_is_held_back(yyjson_val *queue);

/* How many rows a list has on a screen of that height. */
size_t board_page(const struct board *board, size_t screen_rows);

/* What may be done to the task: its state allows it. */
bool board_may_retry(yyjson_val *task);
bool board_may_cancel(yyjson_val *task);
bool board_is_asking(yyjson_val *task);
bool board_is_in_review(yyjson_val *task);

/* The frame, on all of the screen. Needs the terminal and the time of `cli`; its texts are gone when its arena is reset. */
void board_draw(struct board *board, struct cli *cli, struct screen *screen);
