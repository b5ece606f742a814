#include "cli/top/draw.h"

#include <assert.h>
#include <string.h>
#include <time.h>

#include "cli/frame/text.h"
#include "cli/verb/task_view.h"

enum {
	ROOMY = 110, /* from here on a row has its attempts, its worker and its lease */
	WIDTH_MAX = 200,
};

const char *frame_sign(const struct frame *frame, const char *glyph, const char *ascii)
{
	return frame->cli->term.glyphs ? glyph : ascii;
}

void line_put(struct line *line, struct span text, enum paint paint)
{
	size_t room = line->column < line->frame->width ? line->frame->width - line->column : 0;

	line->column += screen_put(line->frame->screen, line->row, line->column, room, text, paint);
}

void line_put_text(struct line *line, const char *text, enum paint paint)
{
	line_put(line, span_of(text), paint);
}

void line_put_cell(struct line *line, size_t width, struct span text, enum paint paint, bool right)
{
	if (right)
		screen_put_right(line->frame->screen, line->row, line->column, width, text, paint);
	else
		screen_put(line->frame->screen, line->row, line->column, width, text, paint);
	line->column += width;
}

void frame_put_at_edge(struct frame *frame, size_t row, const char *text, enum paint paint)
{
	size_t width = text_width(span_of(text));

	if (width + 1 >= frame->width)
		return;
	screen_put(frame->screen, row, frame->width - 1 - width, width, span_of(text), paint);
	screen_put(frame->screen, row, frame->width - 1, 1, SPAN(" "), PAINT_NONE);
}

/* ---- head ---------------------------------------------------------------------------------------------------------- */

static const char *clock_text(struct cli *cli, int64_t at_ms)
{
	time_t at = (time_t)(at_ms / 1000);
	struct tm day;

	if (!localtime_r(&at, &day))
		return "";
	return cli_text(cli, "%02d:%02d:%02d", day.tm_hour, day.tm_min, day.tm_sec);
}

static void draw_counts(struct line *line, const int64_t counts[STAND_GROUPS], const char *failed)
{
	struct frame *frame = line->frame;
	struct cli *cli = frame->cli;
	const char *dot = frame_sign(frame, " · ", " | ");

	if (counts[STAND_NEEDS] > 0)
		line_put_text(line,
			cli_text(cli, "%lld %s you", (long long)counts[STAND_NEEDS],
				counts[STAND_NEEDS] == 1 ? "needs" : "need"),
			PAINT_YOU_BOLD);
	else
		line_put_text(line, "Nothing needs you", PAINT_NONE);
	line_put_text(line,
		cli_text(cli, "%s%lld running%s%lld waiting", dot, (long long)counts[STAND_RUNNING], dot,
			(long long)counts[STAND_WAITING]),
		PAINT_NONE);
	if (failed[0]) {
		line_put_text(line, dot, PAINT_NONE);
		line_put_text(line, failed, PAINT_RED);
	}
}

static size_t draw_head(struct frame *frame)
{
	struct board *board = frame->board;
	struct cli *cli = frame->cli;
	struct line line = {frame, 0, 0};
	int64_t counts[STAND_GROUPS];
	const char *failed = stand_failed_among(cli, board->tasks[STAND_ENDED], board->more_ended);

	stand_count_among(board->queues, NULL, counts);
	line_put_text(&line, " stint", PAINT_BOLD);
	line_put_text(&line,
		cli_text(cli, "%s%.*s  ", frame_sign(frame, " · ", " | "), SPAN_ARGS(board->server)),
		PAINT_DIM);
	if (!frame->roomy)
		draw_counts(&line, counts, failed);
	frame_put_at_edge(frame, 0, cli_text(cli, "  %s", clock_text(cli, cli->now_ms)), PAINT_DIM);
	if (!frame->roomy)
		return 1;
	const char *text = stand_sentences(cli, counts, failed, board->workers, board->tasks[STAND_WAITING]);
	size_t first = strcspn(text, ".") + 1;
	line = (struct line){frame, 1, 1};
	line_put(&line, (struct span){text, first}, counts[STAND_NEEDS] > 0 ? PAINT_YOU_BOLD : PAINT_NONE);
	line_put_text(&line, text + first, PAINT_NONE);
	return 2;
}

static int64_t count_of(const struct board *board, enum board_tab tab, const int64_t counts[STAND_GROUPS])
{
	size_t at, count;
	yyjson_val *worker;
	int64_t alive = 0;

	switch (tab) {
	case TAB_TASKS:
		return counts[STAND_NEEDS] + counts[STAND_RUNNING] + counts[STAND_WAITING];
	case TAB_INBOX:
		return counts[STAND_NEEDS];
	case TAB_WORKERS:
		yyjson_arr_foreach(board->workers, at, count, worker)
		{
			alive += !span_equal(field_text(worker, "state"), SPAN("inactive"));
		}
		return alive;
	case TAB_QUEUES:
		return (int64_t)yyjson_arr_size(board->queues);
	case TAB_COUNT:
		break;
	}
	return 0;
}

static void draw_tabs(struct frame *frame, size_t row)
{
	struct cli *cli = frame->cli;
	struct line line = {frame, row, 1};
	int64_t counts[STAND_GROUPS];
	bool color = cli->term.color;

	stand_count_among(frame->board->queues, NULL, counts);
	for (enum board_tab tab = 0; tab < TAB_COUNT; tab++) {
		int64_t count = count_of(frame->board, tab, counts);
		if (tab == frame->board->tab) {
			line_put_text(&line,
				cli_text(cli, color ? " %s %lld " : "[%s %lld]", board_views[tab].name,
					(long long)count),
				PAINT_REVERSE);
		} else {
			line_put_text(&line, cli_text(cli, " %s ", board_views[tab].name), PAINT_DIM);
			line_put_text(&line, cli_text(cli, "%lld ", (long long)count),
				tab == TAB_INBOX && count > 0 ? PAINT_YOU_BOLD : PAINT_DIM);
		}
	}
}

/* No news; or what is hidden by the filter and what is new. Returns the lines that it took. */
static size_t draw_banner(struct frame *frame, size_t row)
{
	struct board *board = frame->board;
	struct cli *cli = frame->cli;
	struct line line = {frame, row, 0};
	int64_t wait_ms = board->next_try_ms - cli->now_ms;

	if (frame->stale) {
		const char *text = cli_text(cli,
			" No news from the server for %.*s. This screen shows %s. Next try: %lld s",
			SPAN_ARGS(view_duration(cli, frame->age_ms)), clock_text(cli, board->fetched_ms),
			(long long)(wait_ms > 0 ? (wait_ms + 999) / 1000 : 0));
		line_put(&line, span_of(cli_text(cli, "%-*s", (int)frame->width, text)), PAINT_YOU_REVERSE);
		return 1;
	}
	if (!board->filter[0] && board->fresh + board->moved == 0)
		return 0;
	if (board->filter[0]) {
		line_put_text(&line, " / ", PAINT_BOLD);
		line_put_text(&line, board->filter, PAINT_NONE);
		line_put_text(&line, cli_text(cli, "  %zu match", board->row_count), PAINT_DIM);
	}
	if (board->fresh + board->moved > 0)
		frame_put_at_edge(frame, row,
			cli_text(cli, "%zu new, %zu moved  .", board->fresh, board->moved), PAINT_RUN);
	return 1;
}

/* ---- the last two lines --------------------------------------------------------------------------------------------- */

const char *board_command(const struct board *board, struct cli *cli)
{
	const struct board_row *focus = board_focus(board);
	const char *id = focus ? cli_quote(cli, focus->id) : "";

	switch (board->tab) {
	case TAB_TASKS:
	case TAB_INBOX:
		return !focus ? "stint ls"
			: board_is_asking(focus->item) || board_is_in_review(focus->item)
			? cli_text(cli, "stint approve %s", id)
			: cli_text(cli, "stint show %s", id);
	case TAB_WORKERS:
		return focus ? cli_text(cli, "stint worker show %s", id) : "stint worker ls";
	case TAB_QUEUES:
		return focus ? cli_text(cli, "stint ls --queue %s", id) : "stint queue ls";
	case TAB_COUNT:
		break;
	}
	return "";
}

static void draw_command(struct frame *frame, size_t row)
{
	struct board *board = frame->board;
	struct cli *cli = frame->cli;
	struct line line = {frame, row, 1};
	const char *news = frame->stale ? cli_text(cli, "%s no news for %.*s", frame_sign(frame, "•", "*"),
						  SPAN_ARGS(view_duration(cli, frame->age_ms)))
					: cli_text(cli, "%s live%sevent %.*s", frame_sign(frame, "•", "*"),
						  frame_sign(frame, " · ", " | "), SPAN_ARGS(board->event));

	if (board->said[0])
		line_put_text(&line, board->said, board->said_is_bad ? PAINT_RED : PAINT_NONE);
	else
		line_put_text(&line, cli_text(cli, "$ %s", board_command(board, cli)), PAINT_NONE);
	frame_put_at_edge(frame, row, cli_text(cli, "  %s", news), frame->stale ? PAINT_YELLOW : PAINT_DIM);
}

struct key_help {
	const char *key, *text;
};

enum { KEYS_MAX = 16 };

/* The keys that the row in focus takes. */
static size_t keys_of(const struct frame *frame, struct key_help ret_keys[KEYS_MAX])
{
	const struct board *board = frame->board;
	const struct board_row *focus = board_focus(board);
	yyjson_val *task = focus && board_has_tasks(board) ? focus->item : NULL,
		   *question = field_get(task, "question");
	size_t count = 0;

	if (task && board_is_asking(task) && field_get(question, "tool")) {
		ret_keys[count++] = (struct key_help){"a", "allow"};
		ret_keys[count++] = (struct key_help){"A", "for task"};
		ret_keys[count++] = (struct key_help){"d", "deny"};
	} else if (task && board_is_asking(task)) {
		if (yyjson_arr_size(field_get(question, "options")) > 0)
			ret_keys[count++] = (struct key_help){"1-9", "answer"};
		ret_keys[count++] = (struct key_help){"a", "answer"};
		ret_keys[count++] = (struct key_help){"d", "deny"};
	} else if (task && board_is_in_review(task)) {
		ret_keys[count++] = (struct key_help){"a", "pass"};
		ret_keys[count++] = (struct key_help){"d", "reject"};
	}
	if (task && board_may_retry(task))
		ret_keys[count++] = (struct key_help){"r", "retry"};
	if (task && board_may_cancel(task))
		ret_keys[count++] = (struct key_help){"C", "cancel"};
	if (focus && board->tab == TAB_QUEUES)
		ret_keys[count++] = (struct key_help){
			"p", span_equal(field_text(focus->item, "state"), SPAN("open")) ? "pause" : "resume"};
	ret_keys[count++] = (struct key_help){"j k", "move"};
	if (task)
		ret_keys[count++] = (struct key_help){"Enter", board->open ? "close" : "open"};
	ret_keys[count++] = (struct key_help){"Tab", "next page"};
	if (board_has_tasks(board))
		ret_keys[count++] = (struct key_help){"/", "filter"};
	if (board->fresh + board->moved > 0)
		ret_keys[count++] = (struct key_help){".", "show new"};
	ret_keys[count++] = (struct key_help){"?", "keys"};
	ret_keys[count++] = (struct key_help){"q", "quit"};
	assert(count <= KEYS_MAX);
	return count;
}

/* Whole pairs only; what has no room is left out before the last one. */
static void draw_keys(struct frame *frame, size_t row)
{
	struct key_help keys[KEYS_MAX];
	size_t count = keys_of(frame, keys), width = 0;
	struct line line = {frame, row, 1};

	for (size_t i = 0; i < count; i++)
		width += strlen(keys[i].key) + strlen(keys[i].text) + 3;
	while (width > frame->width && count > 2) {
		count--;
		width -= strlen(keys[count - 1].key) + strlen(keys[count - 1].text) + 3;
		keys[count - 1] = keys[count];
	}
	for (size_t i = 0; i < count; i++) {
		line_put_text(&line, keys[i].key, PAINT_BOLD);
		line_put_text(&line, cli_text(frame->cli, " %s", keys[i].text), PAINT_DIM);
		line.column += 2;
	}
}

static void draw_prompt(struct frame *frame, size_t row)
{
	struct board *board = frame->board;
	struct line line = {frame, row, 1};
	size_t asked = text_width(span_of(board->asks)),
	       room = frame->width > asked + 4 ? frame->width - asked - 4 : 0;
	struct span typed = span_of(board->typed);

	line_put_text(&line, board->asks, PAINT_YOU_BOLD);
	line.column++;
	while (text_width(typed) > room && typed.len > 0) /* its end is what is looked at */
		typed = (struct span){typed.data + 1, typed.len - 1};
	while (typed.len > 0 && ((unsigned char)typed.data[0] & 0xc0) == 0x80)
		typed = (struct span){typed.data + 1, typed.len - 1};
	line_put(&line, typed, PAINT_NONE);
	line_put_text(&line, frame_sign(frame, "▌", "_"), PAINT_RUN);
}

static void draw_help(struct frame *frame)
{
	static const struct key_help keys[] = {{"j k, arrows", "move"}, {"PgUp PgDn Home End", "move far"},
		{"Enter, f", "more of the task: its output"},
		{"Tab, Shift Tab", "the next page, the one before"},
		{"g t i w q", "tasks, inbox, workers, queues"}, {"a", "allow, pass, or answer in words"},
		{"A", "allow for this task"}, {"d", "deny or reject, with words"},
		{"1-9", "choose an answer"}, {"r", "retry a task that has ended or is blocked"},
		{"C", "cancel a task"}, {"p", "pause or resume a queue"},
		{"u, c", "call back the last change; copy the command"},
		{"/", "filter tasks by words; Escape clears"}, {".", "show new rows, and the order of now"},
		{"q, Ctrl-C", "quit"}};
	struct line line = {frame, 1, 2};

	line_put_text(&line, "Keys", PAINT_BOLD);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		line = (struct line){frame, 3 + i, 2};
		line_put_cell(&line, 20, span_of(keys[i].key), PAINT_BOLD, false);
		line_put_text(&line, keys[i].text, PAINT_NONE);
	}
	line = (struct line){frame, frame->screen->rows - 1, 2};
	line_put_text(&line, "Any key goes back.", PAINT_DIM);
}

static void draw_too_small(struct frame *frame)
{
	struct line line = {frame, 0, 0};

	line_put_text(&line, "The board needs 80 x 24.", PAINT_NONE);
	line = (struct line){frame, 1, 0};
	line_put_text(&line,
		cli_text(frame->cli, "here: %zu x %zu", frame->screen->columns, frame->screen->rows),
		PAINT_NONE);
	line = (struct line){frame, 2, 0};
	line_put_text(&line, "q quits; stint ls fits", PAINT_DIM);
}

void board_draw(struct board *board, struct cli *cli, struct screen *screen)
{
	struct frame frame = {.board = board,
		.cli = cli,
		.screen = screen,
		.width = screen->columns < WIDTH_MAX ? screen->columns : WIDTH_MAX,
		.roomy = screen->columns >= ROOMY,
		.age_ms = cli->now_ms - board->fetched_ms};
	const struct board_row *focus = board_focus(board);

	frame.age_ms = frame.age_ms > 0 ? frame.age_ms : 0;
	frame.stale = frame.age_ms > BOARD_STALE_MS;
	if (screen->columns < BOARD_COLUMNS_LEAST || screen->rows < BOARD_ROWS_LEAST) {
		draw_too_small(&frame);
		return;
	}
	if (board->prompt == PROMPT_KEYS) {
		draw_help(&frame);
		return;
	}
	size_t row = draw_head(&frame), pane = pane_rows(board, screen->rows);
	draw_tabs(&frame, row++);
	row += draw_banner(&frame, row);
	list_draw_names(&frame, row++);
	size_t room = screen->rows - row - BOARD_LINES_BELOW - pane;
	const char *below = list_draw(&frame, row, room), *name = "";
	if (focus)
		name = board_has_tasks(board)
			? cli_text(cli, "%s %.*s", focus->id, SPAN_ARGS(field_text(focus->item, "title")))
			: focus->id;
	row += room;
	pane_draw_rule(&frame, row++, name, below);
	if (focus)
		pane_draw(&frame, row, pane, focus);
	row += pane;
	draw_command(&frame, row++);
	if (board->prompt == PROMPT_NONE)
		draw_keys(&frame, row);
	else
		draw_prompt(&frame, row);
}
