#include "cli/top/board.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/take.h"
#include "base/utf8.h"
#include "cli/frame/text.h"
#include "cli/frame/when.h"
#include "cli/verb/task_view.h"

enum {
	ROOMY = 110, /* from here on a row has its attempts, its worker and its lease */
	WIDTH_MAX = 200,
	TALL = 32, /* from here on the pane has more lines */
	PANE_SHORT = 3,
	PANE_TALL = 6,
	LINES_ABOVE = 4, /* of the list, at most: head, tabs, banner, names of columns */
	LINES_BELOW = 3, /* of the pane: its rule, the command, the keys */
	LEASE_CELLS = 4,
	PANE_LEASE_CELLS = 12,
	ID_WIDTH_MAX = 24,
};

/* ---- which rows there are ------------------------------------------------------------------------------------- */

static const struct board_view {
	const char *name, *key; /* key: the member that names a row */
	const char *groups[STAND_GROUPS];
} views[TAB_COUNT] = {
	[TAB_TASKS] = {"Tasks", "id", {"Needs you", "Running", "Waiting", NULL}},
	[TAB_INBOX] = {"Inbox", "id", {"Needs you", NULL}},
	[TAB_WORKERS] = {"Workers", "workerId", {"Look here", "Here", NULL}},
	[TAB_QUEUES] = {"Queues", "name", {"Held back", "Flowing", NULL}},
};

/* The lists that a tab looks at, and the group of an item; STAND_GROUPS: it is not shown. */
static yyjson_val *list_of(const struct board *board, size_t index)
{
	switch (board->tab) {
	case TAB_TASKS:
		return index < STAND_ENDED ? board->tasks[index] : NULL;
	case TAB_INBOX:
		return index == 0 ? board->tasks[STAND_NEEDS] : NULL;
	case TAB_WORKERS:
		return index == 0 ? board->workers : NULL;
	case TAB_QUEUES:
		return index == 0 ? board->queues : NULL;
	case TAB_COUNT:
		break;
	}
	return NULL;
}

static bool is_held_back(yyjson_val *queue)
{
	yyjson_val *why = field_get(queue, "why");
	bool flows = !why || (span_equal(field_text(why, "reason"), SPAN("ready")) && !field_get(why, "try"));

	return !flows || !span_equal(field_text(queue, "state"), SPAN("open"));
}

static size_t group_of(const struct board *board, size_t list, yyjson_val *item)
{
	struct span state = field_text(item, "state");

	switch (board->tab) {
	case TAB_TASKS:
	case TAB_INBOX:
		return list;
	case TAB_WORKERS:
		if (span_equal(state, SPAN("inactive")))
			return STAND_GROUPS;
		return view_worker_is_silent(item) || !span_equal(state, SPAN("active")) ? 0 : 1;
	case TAB_QUEUES:
		return is_held_back(item) ? 0 : 1;
	case TAB_COUNT:
		break;
	}
	return STAND_GROUPS;
}

static struct span id_of(const struct board *board, yyjson_val *item)
{
	return field_text(item, views[board->tab].key);
}

static struct board_row *find_row(struct board *board, struct span id)
{
	for (size_t i = 0; i < board->row_count; i++) {
		if (span_equal(span_of(board->rows[i].id), id))
			return &board->rows[i];
	}
	return NULL;
}

static void add_row(struct board *board, size_t group, yyjson_val *item)
{
	struct span id = id_of(board, item);
	struct board_row *row = &board->rows[board->row_count];

	if (board->row_count == BOARD_ROWS_MAX || id.len == 0 || id.len >= sizeof row->id)
		return;
	snprintf(row->id, sizeof row->id, "%.*s", SPAN_ARGS(id));
	row->group = (uint8_t)group;
	row->item = item;
	board->row_count++;
}

/* All rows of the tab, group by group. */
static void fill(struct board *board)
{
	size_t at, count;
	yyjson_val *item;

	board->row_count = 0;
	for (size_t group = 0; group < STAND_ENDED; group++) {
		for (size_t list = 0; list < STAND_ENDED; list++) {
			yyjson_arr_foreach(list_of(board, list), at, count, item)
			{
				if (group_of(board, list, item) == group)
					add_row(board, group, item);
			}
		}
	}
}

/* The rows that are there, with what the server says of them now. */
static void renew(struct board *board)
{
	size_t at, count, kept = 0;
	yyjson_val *item;

	for (size_t i = 0; i < board->row_count; i++)
		board->rows[i].item = NULL;
	for (size_t list = 0; list < STAND_ENDED; list++) {
		yyjson_arr_foreach(list_of(board, list), at, count, item)
		{
			size_t group = group_of(board, list, item);
			struct board_row *row = find_row(board, id_of(board, item));
			if (group == STAND_GROUPS)
				continue;
			if (!row || row->item)
				board->fresh += !row;
			else
				board->moved += row->group != group;
			if (row)
				row->item = item;
		}
	}
	/* what has ended is shown once more where it stood */
	yyjson_arr_foreach(board->tasks[STAND_ENDED], at, count, item)
	{
		bool tasks = board->tab == TAB_TASKS || board->tab == TAB_INBOX;
		struct board_row *row = tasks ? find_row(board, id_of(board, item)) : NULL;
		if (row && !row->item) {
			row->item = item;
			board->moved++;
		}
	}
	for (size_t i = 0; i < board->row_count; i++) {
		if (board->rows[i].item)
			board->rows[kept++] = board->rows[i];
	}
	board->row_count = kept;
}

bool board_arrange(struct board *board, bool adopt)
{
	const struct board_row *focus = board_focus(board);
	char id[BOARD_ID_BYTES] = "";

	if (focus)
		memcpy(id, focus->id, sizeof id);
	board->fresh = board->moved = 0;
	if (adopt || board->row_count == 0)
		fill(board);
	else
		renew(board);
	struct board_row *same = id[0] ? find_row(board, span_of(id)) : NULL;
	if (same)
		board->focus = (size_t)(same - board->rows);
	else if (board->focus >= board->row_count)
		board->focus = board->row_count > 0 ? board->row_count - 1 : 0;
	return !same;
}

const struct board_row *board_focus(const struct board *board)
{
	return board->focus < board->row_count ? &board->rows[board->focus] : NULL;
}

void board_move_focus(struct board *board, int64_t by)
{
	int64_t to = (int64_t)board->focus + by, last = (int64_t)board->row_count - 1;

	board->focus = (size_t)(to < 0 || last < 0 ? 0 : to > last ? last : to);
}

static bool is_task(const struct board *board)
{
	return board->tab == TAB_TASKS || board->tab == TAB_INBOX;
}

/* ---- what may be done ------------------------------------------------------------------------------------------ */

bool board_may_retry(yyjson_val *task)
{
	struct span state = field_text(task, "state");

	return span_equal(state, SPAN("blocked")) || view_state_is_final(state);
}

bool board_may_cancel(yyjson_val *task)
{
	return !view_state_is_final(field_text(task, "state"));
}

bool board_is_asking(yyjson_val *task)
{
	return span_equal(field_text(task, "state"), SPAN("asking"));
}

bool board_is_in_review(yyjson_val *task)
{
	return span_equal(field_text(task, "state"), SPAN("review"));
}

/* ---- drawing ---------------------------------------------------------------------------------------------------- */

/* One frame in the making. */
struct frame {
	struct board *board;
	struct cli *cli;
	struct screen *screen;
	size_t width; /* no wider than is read with ease */
	bool roomy, stale;
	int64_t age_ms; /* of what the server said */
};

/* The sign, or what stands for it in ASCII. */
static const char *sign(const struct frame *frame, const char *glyph, const char *ascii)
{
	return frame->cli->term.glyphs ? glyph : ascii;
}

/* A pen that goes to the right along a row. */
struct line {
	struct frame *frame;
	size_t row, column;
};

static void put(struct line *line, struct span text, enum paint paint)
{
	size_t room = line->column < line->frame->width ? line->frame->width - line->column : 0;

	line->column += screen_put(line->frame->screen, line->row, line->column, room, text, paint);
}

static void put_text(struct line *line, const char *text, enum paint paint)
{
	put(line, span_of(text), paint);
}

/* A cell of a column: it takes its whole width. */
static void put_cell(struct line *line, size_t width, struct span text, enum paint paint, bool right)
{
	if (right)
		screen_put_right(line->frame->screen, line->row, line->column, width, text, paint);
	else
		screen_put(line->frame->screen, line->row, line->column, width, text, paint);
	line->column += width;
}

/* Against the right edge of the frame, over whatever stands there. */
static void put_at_edge(struct frame *frame, size_t row, const char *text, enum paint paint)
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
	const char *dot = sign(frame, " · ", " | ");

	if (counts[STAND_NEEDS] > 0)
		put_text(line,
			cli_text(cli, "%lld %s you", (long long)counts[STAND_NEEDS],
				counts[STAND_NEEDS] == 1 ? "needs" : "need"),
			PAINT_YOU_BOLD);
	else
		put_text(line, "Nothing needs you", PAINT_NONE);
	put_text(line,
		cli_text(cli, "%s%lld running%s%lld waiting", dot, (long long)counts[STAND_RUNNING], dot,
			(long long)counts[STAND_WAITING]),
		PAINT_NONE);
	if (failed[0]) {
		put_text(line, dot, PAINT_NONE);
		put_text(line, failed, PAINT_RED);
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
	put_text(&line, " stint", PAINT_BOLD);
	put_text(&line, cli_text(cli, "%s%.*s  ", sign(frame, " · ", " | "), SPAN_ARGS(board->server)),
		PAINT_DIM);
	if (!frame->roomy)
		draw_counts(&line, counts, failed);
	put_at_edge(frame, 0, cli_text(cli, "  %s", clock_text(cli, cli->now_ms)), PAINT_DIM);
	if (!frame->roomy)
		return 1;
	const char *text = stand_sentences(cli, counts, failed, board->workers, board->tasks[STAND_WAITING]);
	size_t first = strcspn(text, ".") + 1;
	line = (struct line){frame, 1, 1};
	put(&line, (struct span){text, first}, counts[STAND_NEEDS] > 0 ? PAINT_YOU_BOLD : PAINT_NONE);
	put_text(&line, text + first, PAINT_NONE);
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
			put_text(&line,
				cli_text(cli, color ? " %s %lld " : "[%s %lld]", views[tab].name,
					(long long)count),
				PAINT_REVERSE);
		} else {
			put_text(&line, cli_text(cli, " %s ", views[tab].name), PAINT_DIM);
			put_text(&line, cli_text(cli, "%lld ", (long long)count),
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
		put(&line, span_of(cli_text(cli, "%-*s", (int)frame->width, text)), PAINT_YOU_REVERSE);
		return 1;
	}
	if (!board->filter[0] && board->fresh + board->moved == 0)
		return 0;
	if (board->filter[0]) {
		put_text(&line, " / ", PAINT_BOLD);
		put_text(&line, board->filter, PAINT_NONE);
		put_text(&line, cli_text(cli, "  %zu match", board->row_count), PAINT_DIM);
	}
	if (board->fresh + board->moved > 0)
		put_at_edge(frame, row, cli_text(cli, "%zu new, %zu moved  .", board->fresh, board->moved),
			PAINT_RUN);
	return 1;
}

/* ---- the list ------------------------------------------------------------------------------------------------------- */

/* Columns of all tabs stand two blanks apart, between a mark for the focus and one blank at the edge. */
struct widths {
	size_t state, id, task, now;
};

static size_t widest(const struct board *board, const char *member, size_t least, size_t most)
{
	size_t width = least;

	for (size_t i = 0; i < board->row_count; i++) {
		size_t own = text_width(view_state_word(field_text(board->rows[i].item, member)));
		own += strcmp(member, "state") == 0 ? 2 : 0; /* its sign */
		width = own > width ? own : width;
	}
	return width < most ? width : most;
}

static struct widths task_widths(const struct frame *frame)
{
	struct widths widths = {widest(frame->board, "state", frame->roomy ? 11 : 9, 11),
		widest(frame->board, "id", 5, ID_WIDTH_MAX), 0, 0};
	size_t taken = 1 + widths.state + 2 + widths.id + 2 + 2 + 2 + 6 + 1;

	taken += frame->roomy ? 4 + 1 + 8 + 1 + LEASE_CELLS + 3 : 0;
	size_t room = frame->width > taken ? frame->width - taken : 0;
	widths.task = frame->roomy ? room * 47 / 100 : 22;
	widths.task = widths.task > 60 ? 60 : widths.task > room ? room : widths.task;
	widths.now = room - widths.task;
	return widths;
}

static yyjson_val *worker_of(const struct board *board, yyjson_val *task)
{
	struct span id = field_text(task, "workerId");
	size_t at, count;
	yyjson_val *worker;

	yyjson_arr_foreach(board->workers, at, count, worker)
	{
		if (id.len > 0 && span_equal(field_text(worker, "workerId"), id))
			return worker;
	}
	return NULL;
}

/* What is left of the lease now; -1: the worker has none. */
static int64_t lease_left(const struct frame *frame, yyjson_val *worker)
{
	int64_t left_ms = field_int(worker, "leaseMs", -1);

	if (left_ms < 0 || field_int(worker, "leaseGrantedMs", 0) <= 0)
		return -1;
	left_ms -= frame->stale ? 0 : frame->age_ms; /* what we cannot see is not counted down */
	return left_ms > 0 ? left_ms : 0;
}

/* A bar that empties; hatched while there is no news. */
static void put_lease(struct line *line, yyjson_val *worker, size_t cells)
{
	struct frame *frame = line->frame;
	int64_t granted_ms = field_int(worker, "leaseGrantedMs", 0), left_ms = lease_left(frame, worker);
	size_t full = left_ms <= 0 || granted_ms <= 0
		? 0
		: (size_t)((left_ms * (int64_t)cells + granted_ms / 2) / granted_ms);
	bool low = left_ms * 4 < granted_ms;

	full = full > cells ? cells : full == 0 && left_ms > 0 ? 1 : full;
	for (size_t i = 0; i < cells; i++) {
		if (frame->stale)
			put_text(line, sign(frame, "┄", "."), PAINT_YELLOW);
		else
			put_text(line, i < full ? sign(frame, "━", "=") : sign(frame, "─", "-"),
				i < full && low ? PAINT_YELLOW : PAINT_DIM);
	}
}

static void put_tries(struct line *line, yyjson_val *task, size_t width)
{
	struct frame *frame = line->frame;
	struct span tries = view_tries(frame->cli, task);
	size_t begin = line->column;

	for (size_t i = 0, len; i < tries.len; i += len) {
		for (len = 1; i + len < tries.len && ((unsigned char)tries.data[i + len] & 0xc0) == 0x80;)
			len++;
		struct span one = {tries.data + i, len};
		enum paint paint = span_is(one, sign(frame, "✗", "x"))                ? PAINT_RED
			: span_is(one, sign(frame, "✓", "+")) && i + len == tries.len ? PAINT_GREEN
			: span_is(one, sign(frame, "●", "*"))                         ? PAINT_RUN
			: span_is(one, "?")                                           ? PAINT_YELLOW
										      : PAINT_DIM;
		if (line->column < begin + width)
			put(line, one, paint);
	}
	line->column = begin + width;
}

/* Somebody's move, or close to it. */
static enum paint alarm_of(yyjson_val *task)
{
	struct span state = field_text(task, "state");
	bool held = span_equal(state, SPAN("running")) || span_equal(state, SPAN("claimed"));

	if (span_equal(state, SPAN("failed")))
		return PAINT_RED;
	return board_is_asking(task) || board_is_in_review(task) || span_equal(state, SPAN("blocked")) ||
			(held && field_get(field_get(task, "why"), "try"))
		? PAINT_YELLOW
		: PAINT_NONE;
}

static struct span now_of(yyjson_val *task)
{
	return field_text(field_get(task, "why"), "text");
}

static void put_state(struct line *line, yyjson_val *task, size_t width)
{
	struct state_mark mark = view_state_mark(line->frame->cli, field_text(task, "state"));
	size_t begin = line->column, glyph = strcspn(mark.text.data, " ");

	put(line, (struct span){mark.text.data, glyph}, mark.paint);
	put(line, (struct span){mark.text.data + glyph, mark.text.len - glyph},
		mark.glyph && !board_is_asking(task) ? PAINT_NONE
			: board_is_asking(task)      ? PAINT_YELLOW
						     : mark.paint);
	line->column = begin + width;
}

static void draw_task(struct frame *frame, size_t row, yyjson_val *task, const struct board_row *at)
{
	struct widths widths = task_widths(frame);
	struct line line = {frame, row, 1};
	bool since_change = at->group == STAND_NEEDS;

	put_state(&line, task, widths.state);
	line.column += 2;
	put_cell(&line, widths.id, field_text(task, "id"), PAINT_DIM, false);
	line.column += 2;
	put_cell(&line, widths.task, field_text(task, "title"), PAINT_NONE, false);
	line.column += 2;
	put_cell(&line, widths.now, now_of(task), alarm_of(task), false);
	line.column += 2;
	if (frame->roomy) {
		yyjson_val *worker = worker_of(frame->board, task);
		put_tries(&line, task, 4);
		line.column++;
		put_cell(&line, 8, field_text(task, "workerId"), PAINT_NONE, false);
		line.column++;
		size_t begin = line.column;
		if (worker && lease_left(frame, worker) >= 0)
			put_lease(&line, worker, LEASE_CELLS);
		line.column = begin + LEASE_CELLS + 3;
	}
	put_cell(&line, 6,
		view_since(frame->cli, field_int(task, since_change ? "updatedAt" : "createdAt", 0)),
		PAINT_DIM, true);
}

static void draw_task_names(struct frame *frame, size_t row)
{
	struct widths widths = task_widths(frame);
	struct line line = {frame, row, 1};

	put_cell(&line, widths.state + 2, SPAN("STATE"), PAINT_DIM, false);
	put_cell(&line, widths.id + 2, SPAN("ID"), PAINT_DIM, false);
	put_cell(&line, widths.task + 2, SPAN("TASK"), PAINT_DIM, false);
	put_cell(&line, widths.now + 2, SPAN("NOW"), PAINT_DIM, false);
	if (frame->roomy) {
		put_cell(&line, 5, SPAN("TRY"), PAINT_DIM, false);
		put_cell(&line, 9, SPAN("WORKER"), PAINT_DIM, false);
		put_cell(&line, LEASE_CELLS + 3, SPAN("LEASE"), PAINT_DIM, false);
	}
	put_cell(&line, 6, SPAN("AGE"), PAINT_DIM, true);
}

/* How long ago it was heard. */
static const char *beat_text(struct frame *frame, yyjson_val *worker)
{
	int64_t beat_ms = field_int(worker, "heartbeatAgeMs", -1);

	if (beat_ms < 0)
		return "";
	return cli_text(frame->cli, "%.*s",
		SPAN_ARGS(view_duration(frame->cli, beat_ms + (frame->stale ? 0 : frame->age_ms))));
}

static void draw_worker(struct frame *frame, size_t row, yyjson_val *worker, bool names)
{
	struct cli *cli = frame->cli;
	struct line line = {frame, row, 1};
	bool active = span_equal(field_text(worker, "state"), SPAN("active"));
	enum paint paint = names ? PAINT_DIM : PAINT_NONE;
	size_t name = widest(frame->board, "workerId", 8, frame->roomy ? 32 : 16), begin;

	put_cell(&line, name, names ? SPAN("WORKER") : field_text(worker, "workerId"), paint, false);
	begin = line.column += 2;
	if (names || !active || lease_left(frame, worker) < 0) {
		put_cell(&line, 13, names ? SPAN("LEASE LEFT") : field_text(worker, "state"),
			names            ? PAINT_DIM
				: active ? PAINT_NONE
					 : PAINT_YELLOW,
			false);
	} else {
		put_lease(&line, worker, 6);
		put_text(&line, frame->stale ? "" : " ", PAINT_NONE);
		if (!frame->stale)
			put(&line, view_countdown(cli, lease_left(frame, worker)), PAINT_DIM);
	}
	line.column = begin + 13 + 2;
	put_cell(&line, 6, names ? SPAN("BEAT") : span_of(beat_text(frame, worker)),
		!names && view_worker_is_silent(worker) ? PAINT_YELLOW : PAINT_DIM, true);
	line.column += 2;
	size_t rest = frame->width > line.column + 1 ? frame->width - line.column - 1 : 0, part = rest / 3;
	put_cell(&line, part, names ? SPAN("HOLDS") : view_worker_holds(cli, worker), paint, false);
	line.column += 2;
	put_cell(&line, part > 2 ? part - 2 : 0, names ? SPAN("SERVES") : view_worker_serves(cli, worker),
		paint, false);
	line.column += 2;
	put_cell(&line, part > 2 ? part - 2 : 0, names ? SPAN("RUNS") : view_worker_runs(cli, worker), paint,
		false);
}

static void put_number(struct line *line, size_t width, int64_t number, const char *name)
{
	put_cell(line, width,
		name                 ? span_of(name)
			: number > 0 ? view_number(line->frame->cli, number)
				     : SPAN("0"),
		name || number == 0 ? PAINT_DIM : PAINT_NONE, true);
	line->column += 2;
}

static void draw_queue(struct frame *frame, size_t row, yyjson_val *queue, bool names)
{
	struct cli *cli = frame->cli;
	struct line line = {frame, row, 1};
	int64_t oldest_ms = field_int(queue, "oldestReadyAt", 0);
	struct span why = view_queue_held_back(cli, queue);

	put_cell(&line, widest(frame->board, "name", 8, frame->roomy ? 32 : 16),
		names ? SPAN("QUEUE") : field_text(queue, "name"), names ? PAINT_DIM : PAINT_NONE, false);
	line.column += 2;
	put_number(&line, 7, view_queue_tasks_in(queue, (const char *const[]){"claimed", "running", NULL}),
		names ? "IN WORK" : NULL);
	put_number(&line, 7,
		view_queue_tasks_in(
			queue, (const char *const[]){"ready", "waiting", "scheduled", "pending", NULL}),
		names ? "WAITING" : NULL);
	put_number(&line, 9,
		view_queue_tasks_in(queue, (const char *const[]){"asking", "review", "blocked", NULL}),
		names ? "NEEDS YOU" : NULL);
	put_cell(&line, 6,
		names                   ? SPAN("OLDEST")
			: oldest_ms > 0 ? view_since(cli, oldest_ms)
					: SPAN(""),
		PAINT_DIM, true);
	line.column += 2;
	put_cell(&line, frame->width > line.column + 1 ? frame->width - line.column - 1 : 0,
		names ? SPAN("WHAT HOLDS IT BACK") : why,
		names                         ? PAINT_DIM
			: is_held_back(queue) ? PAINT_YELLOW
					      : PAINT_NONE,
		false);
}

static void draw_names(struct frame *frame, size_t row)
{
	switch (frame->board->tab) {
	case TAB_TASKS:
	case TAB_INBOX:
		draw_task_names(frame, row);
		break;
	case TAB_WORKERS:
		draw_worker(frame, row, NULL, true);
		break;
	case TAB_QUEUES:
		draw_queue(frame, row, NULL, true);
		break;
	case TAB_COUNT:
		break;
	}
}

static void draw_row(struct frame *frame, size_t row, size_t index)
{
	struct board *board = frame->board;
	const struct board_row *at = &board->rows[index];
	bool focused = index == board->focus;

	if (is_task(board))
		draw_task(frame, row, at->item, at);
	else if (board->tab == TAB_WORKERS)
		draw_worker(frame, row, at->item, false);
	else
		draw_queue(frame, row, at->item, false);
	if (focused) {
		screen_emphasize(frame->screen, row, PAINT_BOLD);
		screen_put(frame->screen, row, 0, 1, span_of(sign(frame, "▌", ">")), PAINT_RUN);
	}
}

/* How many there are of a group, on the server. */
static int64_t group_count(const struct frame *frame, size_t group)
{
	const struct board *board = frame->board;
	int64_t counts[STAND_GROUPS], shown = 0;

	for (size_t i = 0; i < board->row_count; i++)
		shown += board->rows[i].group == group;
	if (!is_task(board) || board->filter[0])
		return shown;
	stand_count_among(board->queues, NULL, counts);
	return counts[group] > shown ? counts[group] : shown;
}

static void draw_group(struct frame *frame, size_t row, size_t group)
{
	struct line line = {frame, row, 1};
	bool yours =
		is_task(frame->board) ? group == STAND_NEEDS : group == 0 && frame->board->tab == TAB_WORKERS;

	put_text(&line, views[frame->board->tab].groups[group], PAINT_BOLD);
	put_text(&line, cli_text(frame->cli, " %lld", (long long)group_count(frame, group)),
		yours ? PAINT_YELLOW : PAINT_DIM);
}

static bool begins_group(const struct board *board, size_t index)
{
	return index == 0 || board->rows[index].group != board->rows[index - 1].group;
}

/* The line of a row, with the heads of the groups above it. */
static size_t line_of(const struct board *board, size_t index)
{
	size_t line = 0;

	for (size_t i = 0; i <= index && i < board->row_count; i++)
		line += begins_group(board, i) ? 2 : 1;
	return line > 0 ? line - 1 : 0;
}

/* The row in focus, and the head above it if it is the first of its group, are seen. */
static void scroll(struct board *board, size_t room)
{
	size_t line = line_of(board, board->focus),
	       top = line - (line > 0 && begins_group(board, board->focus));

	if (board->row_count == 0)
		board->first = 0;
	else if (top < board->first)
		board->first = top;
	else if (room > 0 && line >= board->first + room)
		board->first = line + 1 - room;
	size_t lines = board->row_count > 0 ? line_of(board, board->row_count - 1) + 1 : 0;
	if (lines <= room)
		board->first = 0;
	else if (board->first + room > lines)
		board->first = lines - room;
}

static void draw_empty(struct frame *frame, size_t row)
{
	static const struct {
		const char *head, *text;
	} words[TAB_COUNT] = {
		[TAB_TASKS] = {"No open tasks.", "stint run -- echo hello"},
		[TAB_INBOX] = {"Nothing needs you.", "Questions, permissions and gates appear here."},
		[TAB_WORKERS] = {"Nobody is here to work.", "Tasks wait until a worker comes: stint worker"},
		[TAB_QUEUES] = {"No queue has open tasks.", "stint add \"fix the flaky test\" --queue ci"},
	};
	struct board *board = frame->board;
	struct line line = {frame, row + 1, 1};

	put_text(&line, board->filter[0] ? "No task matches." : words[board->tab].head, PAINT_BOLD);
	line = (struct line){frame, row + 2, 1};
	put_text(&line, board->filter[0] ? "Escape clears the filter." : words[board->tab].text, PAINT_DIM);
}

/* The rows that are seen, and in words what lies below them. */
static const char *draw_list(struct frame *frame, size_t row, size_t room)
{
	struct board *board = frame->board;
	struct cli *cli = frame->cli;
	size_t line = 0, seen[STAND_GROUPS] = {0};
	const char *below = "";

	scroll(board, room);
	if (board->row_count == 0)
		draw_empty(frame, row);
	for (size_t i = 0; i < board->row_count && line < board->first + room; i++) {
		size_t group = board->rows[i].group;
		if (begins_group(board, i)) {
			if (line >= board->first)
				draw_group(frame, row + line - board->first, group);
			line++;
		}
		if (line >= board->first && line < board->first + room)
			draw_row(frame, row + line - board->first, i);
		seen[group] += line < board->first + room;
		line++;
	}
	for (size_t i = 0; i < STAND_ENDED && views[board->tab].groups[i]; i++) {
		int64_t left = group_count(frame, i) - (int64_t)seen[i];
		const char *name = views[board->tab].groups[i];
		if (left > 0)
			below = cli_text(cli, "%s%s%lld %s%c%s", below, below[0] ? ", " : "", (long long)left,
				seen[i] > 0 ? "more " : "", name[0] + ('a' - 'A'), name + 1);
	}
	return below[0] ? cli_text(cli, "%s %s", below, sign(frame, "↓", "v")) : "";
}

/* ---- the pane ------------------------------------------------------------------------------------------------------ */

static void draw_rule(struct frame *frame, size_t row, const char *name, const char *note)
{
	struct line line = {frame, row, 0};
	const char *dash = sign(frame, "─", "-");
	size_t tail = note[0] ? text_width(span_of(note)) + 4 : 0;

	for (size_t i = 0; i < frame->width; i++)
		put_text(&line, dash, PAINT_DIM);
	if (name[0] && frame->width > tail + 8) {
		line.column = 2;
		line.column += screen_put(frame->screen, row, 2, frame->width - tail - 6,
			span_of(cli_text(frame->cli, " %s", name)), PAINT_DIM);
		put_text(&line, " ", PAINT_DIM);
	}
	if (tail > 0 && frame->width > tail) {
		line.column = frame->width - tail;
		put_text(&line, cli_text(frame->cli, " %s ", note), PAINT_DIM);
	}
}

/* Prose on at most so many rows, indented below its first word. Returns the rows that it took. */
static size_t draw_prose(
	struct frame *frame, size_t row, size_t room, size_t at, const char *text, enum paint paint)
{
	cleanup(buf_done) struct buf clean = {0}, broken = {0};
	size_t used = 0;

	buf_init(&clean, 64 << 10);
	buf_init(&broken, 128 << 10);
	/* more is never seen */
	text_clean(&clean, utf8_cut(span_of(text), 16 << 10), frame->cli->term.utf8, false);
	text_wrap(&broken, cli_span(frame->cli, &clean), frame->width - 1, at, 3);
	struct span left = cli_span(frame->cli, &broken);
	while (left.len > 0 && used < room) {
		const char *end = memchr(left.data, '\n', left.len);
		size_t len = end ? (size_t)(end - left.data) : left.len;
		bool last = used + 1 == room;
		struct span shown = {left.data, last ? left.len : len};
		screen_put(frame->screen, row + used, used == 0 ? at : 0,
			frame->width - 1 - (used == 0 ? at : 0), shown, paint);
		used++;
		left = end ? (struct span){end + 1, left.len - len - 1} : (struct span){0};
	}
	return used;
}

/* "slot-3 ━━━━━━━━━━── 4:12 left of 5:00, beat 3 s ago", against the right edge. Returns the columns that it took. */
static size_t draw_holder(struct frame *frame, size_t row, yyjson_val *task)
{
	struct cli *cli = frame->cli;
	yyjson_val *worker = worker_of(frame->board, task);

	if (!worker || lease_left(frame, worker) < 0 || !frame->roomy)
		return 0;
	const char *name = cli_text(cli, "%.*s ", SPAN_ARGS(field_text(worker, "workerId")));
	const char *rest = frame->stale
		? " unknown"
		: cli_text(cli, " %.*s left of %.*s, beat %s ago",
			  SPAN_ARGS(view_countdown(cli, lease_left(frame, worker))),
			  SPAN_ARGS(view_countdown(cli, field_int(worker, "leaseGrantedMs", 0))),
			  beat_text(frame, worker));
	size_t width = text_width(span_of(name)) + PANE_LEASE_CELLS + text_width(span_of(rest));
	if (width + 40 > frame->width)
		return 0;
	struct line line = {frame, row, frame->width - 1 - width};
	put_text(&line, name, PAINT_NONE);
	put_lease(&line, worker, PANE_LEASE_CELLS);
	put_text(&line, rest, PAINT_DIM);
	return width + 2;
}

/* The answers to choose from, with their keys; or what wants to run, whole. */
static const char *question_text(struct cli *cli, yyjson_val *task)
{
	yyjson_val *question = field_get(task, "question"), *option;
	struct span command = field_text(field_get(question, "input"), "command");
	const char *text = "";
	size_t at, count;

	if (!board_is_asking(task))
		return "";
	yyjson_arr_foreach(field_get(question, "options"), at, count, option)
	{
		if (at < 9)
			text = cli_text(cli, "%s%s%zu %.*s", text, at > 0 ? "   " : "", at + 1,
				SPAN_ARGS(json_text(option)));
	}
	if (text[0])
		return text;
	/* the sentence has the beginning of a long command only */
	struct span said = now_of(task);
	bool whole = command.len > 0 && memmem(said.data, said.len, command.data, command.len);
	return field_get(question, "tool") && command.len > 0 && !whole
		? cli_text(cli, "%.*s", SPAN_ARGS(command))
		: field_cstr(cli, question, "text");
}

/* The last lines of its output, as many as fit. */
static void draw_log(struct frame *frame, size_t row, size_t room)
{
	struct span log = frame->board->log;
	struct cli *cli = frame->cli;

	while (log.len > 0 && (log.data[log.len - 1] == '\n' || log.data[log.len - 1] == '\r'))
		log.len--;
	size_t begin = log.len, lines = 0;
	while (begin > 0 && lines < room) {
		begin--;
		lines += log.data[begin] == '\n';
	}
	struct span left = {log.data + begin, log.len - begin};
	if (lines == room && left.len > 0)
		left = (struct span){left.data + 1, left.len - 1};
	for (size_t used = 0; left.len > 0 && used < room; used++) {
		const char *end = memchr(left.data, '\n', left.len);
		size_t len = end ? (size_t)(end - left.data) : left.len;
		cleanup(buf_done) struct buf shown = {.max = 1 << 20};
		struct text_output state = {0};
		/* its colours go, and whatever else a terminal would obey */
		text_put_output(&shown, &state, (struct span){left.data, len}, cli->term.utf8, false);
		text_end_output(&shown, &state, cli->term.utf8, false);
		screen_put(frame->screen, row + used, 3, frame->width > 4 ? frame->width - 4 : 0,
			cli_span(cli, &shown), PAINT_DIM);
		left = end ? (struct span){end + 1, left.len - len - 1} : (struct span){0};
	}
}

static void draw_task_pane(struct frame *frame, size_t row, size_t room, yyjson_val *task)
{
	struct cli *cli = frame->cli;
	struct state_mark mark = view_state_mark(cli, field_text(task, "state"));
	size_t glyph = strcspn(mark.text.data, " ");
	struct span word = {mark.text.data + glyph + 1, mark.text.len - glyph - 1};
	struct line line = {frame, row, 1};
	size_t used = 1, width = frame->width;

	put(&line, (struct span){mark.text.data, glyph}, mark.paint);
	line.column++;
	put_text(&line,
		cli_text(cli, "%c%.*s. ", word.data[0] - ('a' - 'A'), (int)word.len - 1, word.data + 1),
		PAINT_BOLD);
	frame->width -= draw_holder(frame, row, task);
	used = draw_prose(frame, row, room > 2 ? 2 : 1, line.column,
		cli_text(cli, "%.*s", SPAN_ARGS(now_of(task))), PAINT_NONE);
	frame->width = width;
	used = used > 0 ? used : 1;
	const char *question = question_text(cli, task);
	if (question[0] && used < room)
		used += draw_prose(frame, row + used, room - used, 3, question, PAINT_NONE);
	if (used < room)
		draw_log(frame, row + used, room - used);
}

/* "Holds 1 of 2 on atlas, pid 4711. 3 restarts." */
static const char *worker_text(struct cli *cli, yyjson_val *worker)
{
	int64_t held = field_int(worker, "held", 0), room = field_int(worker, "maxConcurrent", 0),
		pid = field_int(worker, "pid", 0), restarts = field_int(worker, "restarts", 0);
	const char *host = field_cstr(cli, worker, "host"),
		   *text = cli_text(cli, "Holds %lld", (long long)held);

	if (room > 0)
		text = cli_text(cli, "%s of %lld", text, (long long)room);
	if (host[0])
		text = cli_text(cli, "%s on %s", text, host);
	if (pid > 0)
		text = cli_text(cli, "%s, pid %lld", text, (long long)pid);
	return restarts > 0
		? cli_text(cli, "%s. %lld restart%s.", text, (long long)restarts, restarts == 1 ? "" : "s")
		: cli_text(cli, "%s.", text);
}

/* What is left to say of a worker or a queue that its row has no room for. */
static void draw_other_pane(struct frame *frame, size_t row, size_t room, yyjson_val *item)
{
	struct cli *cli = frame->cli;
	yyjson_val *why = field_get(item, "why");
	bool queue = frame->board->tab == TAB_QUEUES;
	const char *text;

	if (queue)
		text = cli_text(cli, "%.*s", SPAN_ARGS(view_queue_held_back(cli, item)));
	else
		text = worker_text(cli, item);
	size_t used = draw_prose(frame, row, room, 1, text[0] ? text : "Nothing holds it back.", PAINT_NONE);
	const char *command = queue ? field_cstr(cli, why, "try") : "";
	if (command[0] && used < room)
		draw_prose(frame, row + used, room - used, 1, cli_text(cli, "try  %s", command), PAINT_DIM);
}

static size_t pane_rows(const struct board *board, size_t screen_rows)
{
	size_t usual = screen_rows < TALL ? PANE_SHORT : PANE_TALL;

	if (!board->open)
		return usual;
	return screen_rows > LINES_ABOVE + LINES_BELOW + 8 ? screen_rows - LINES_ABOVE - LINES_BELOW - 5
							   : usual;
}

size_t board_page(const struct board *board, size_t screen_rows)
{
	size_t taken = LINES_ABOVE + LINES_BELOW + pane_rows(board, screen_rows);

	return screen_rows > taken + 1 ? screen_rows - taken : 1;
}

/* ---- the last two lines --------------------------------------------------------------------------------------------- */

static const char *command_of(const struct frame *frame)
{
	const struct board *board = frame->board;
	const struct board_row *focus = board_focus(board);
	const char *id = focus ? cli_quote(frame->cli, focus->id) : "";

	switch (board->tab) {
	case TAB_TASKS:
	case TAB_INBOX:
		return !focus ? "stint ls"
			: board_is_asking(focus->item) || board_is_in_review(focus->item)
			? cli_text(frame->cli, "stint approve %s", id)
			: cli_text(frame->cli, "stint show %s", id);
	case TAB_WORKERS:
		return focus ? cli_text(frame->cli, "stint worker show %s", id) : "stint worker ls";
	case TAB_QUEUES:
		return focus ? cli_text(frame->cli, "stint ls --queue %s", id) : "stint queue ls";
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
	const char *news = frame->stale ? cli_text(cli, "%s no news for %.*s", sign(frame, "•", "*"),
						  SPAN_ARGS(view_duration(cli, frame->age_ms)))
					: cli_text(cli, "%s live%sevent %.*s", sign(frame, "•", "*"),
						  sign(frame, " · ", " | "), SPAN_ARGS(board->event));

	if (board->said[0])
		put_text(&line, board->said, board->said_is_bad ? PAINT_RED : PAINT_NONE);
	else
		put_text(&line, cli_text(cli, "$ %s", command_of(frame)), PAINT_NONE);
	put_at_edge(frame, row, cli_text(cli, "  %s", news), frame->stale ? PAINT_YELLOW : PAINT_DIM);
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
	yyjson_val *task = focus && is_task(board) ? focus->item : NULL,
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
	if (is_task(board))
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
		put_text(&line, keys[i].key, PAINT_BOLD);
		put_text(&line, cli_text(frame->cli, " %s", keys[i].text), PAINT_DIM);
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

	put_text(&line, board->asks, PAINT_YOU_BOLD);
	line.column++;
	while (text_width(typed) > room && typed.len > 0) /* its end is what is looked at */
		typed = (struct span){typed.data + 1, typed.len - 1};
	while (typed.len > 0 && ((unsigned char)typed.data[0] & 0xc0) == 0x80)
		typed = (struct span){typed.data + 1, typed.len - 1};
	put(&line, typed, PAINT_NONE);
	put_text(&line, sign(frame, "▌", "_"), PAINT_RUN);
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
		{"/", "filter tasks by words; Escape clears"}, {".", "show new rows, and the order of now"},
		{"q, Ctrl-C", "quit"}};
	struct line line = {frame, 1, 2};

	put_text(&line, "Keys", PAINT_BOLD);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		line = (struct line){frame, 3 + i, 2};
		put_cell(&line, 20, span_of(keys[i].key), PAINT_BOLD, false);
		put_text(&line, keys[i].text, PAINT_NONE);
	}
	line = (struct line){frame, frame->screen->rows - 1, 2};
	put_text(&line, "Any key goes back.", PAINT_DIM);
}

static void draw_too_small(struct frame *frame)
{
	struct line line = {frame, 0, 0};

	put_text(&line, "The board needs 80 x 24.", PAINT_NONE);
	line = (struct line){frame, 1, 0};
	put_text(&line, cli_text(frame->cli, "here: %zu x %zu", frame->screen->columns, frame->screen->rows),
		PAINT_NONE);
	line = (struct line){frame, 2, 0};
	put_text(&line, "q quits; stint ls fits", PAINT_DIM);
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
	draw_names(&frame, row++);
	size_t room = screen->rows - row - LINES_BELOW - pane;
	const char *below = draw_list(&frame, row, room), *name = "";
	if (focus)
		name = is_task(board)
			? cli_text(cli, "%s %.*s", focus->id, SPAN_ARGS(field_text(focus->item, "title")))
			: focus->id;
	row += room;
	draw_rule(&frame, row++, name, below);
	if (focus && is_task(board))
		draw_task_pane(&frame, row, pane, focus->item);
	else if (focus)
		draw_other_pane(&frame, row, pane, focus->item);
	row += pane;
	draw_command(&frame, row++);
	if (board->prompt == PROMPT_NONE)
		draw_keys(&frame, row);
	else
		draw_prompt(&frame, row);
}
