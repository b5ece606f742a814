#include <string.h>

#include "cli/frame/text.h"
#include "cli/top/draw.h"
#include "cli/verb/task_view.h"

enum {
	LEASE_CELLS = 4,
	ID_WIDTH_MAX = 24,
};

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

yyjson_val *board_worker_of(const struct board *board, yyjson_val *task)
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

int64_t frame_lease_left(const struct frame *frame, yyjson_val *worker)
{
	int64_t left_ms = field_int(worker, "leaseMs", -1);

	if (left_ms < 0 || field_int(worker, "leaseGrantedMs", 0) <= 0)
		return -1;
	left_ms -= frame->stale ? 0 : frame->age_ms; /* what we cannot see is not counted down */
	return left_ms > 0 ? left_ms : 0;
}

void line_put_lease(struct line *line, yyjson_val *worker, size_t cells)
{
	struct frame *frame = line->frame;
	int64_t granted_ms = field_int(worker, "leaseGrantedMs", 0),
		left_ms = frame_lease_left(frame, worker);
	size_t full = left_ms <= 0 || granted_ms <= 0
		? 0
		: (size_t)((left_ms * (int64_t)cells + granted_ms / 2) / granted_ms);
	bool low = left_ms * 4 < granted_ms;

	full = full > cells ? cells : full == 0 && left_ms > 0 ? 1 : full;
	for (size_t i = 0; i < cells; i++) {
		if (frame->stale)
			line_put_text(line, frame_sign(frame, "┄", "."), PAINT_YELLOW);
		else
			line_put_text(line,
				i < full ? frame_sign(frame, "━", "=") : frame_sign(frame, "─", "-"),
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
		enum paint paint = span_is(one, frame_sign(frame, "✗", "x"))                ? PAINT_RED
			: span_is(one, frame_sign(frame, "✓", "+")) && i + len == tries.len ? PAINT_GREEN
			: span_is(one, frame_sign(frame, "●", "*"))                         ? PAINT_RUN
			: span_is(one, "?")                                                 ? PAINT_YELLOW
											    : PAINT_DIM;
		if (line->column < begin + width)
			line_put(line, one, paint);
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

struct span board_why(yyjson_val *task)
{
	return field_text(field_get(task, "why"), "text");
}

static void put_state(struct line *line, yyjson_val *task, size_t width)
{
	struct state_mark mark = view_state_mark(line->frame->cli, field_text(task, "state"));
	size_t begin = line->column, glyph = strcspn(mark.text.data, " ");

	line_put(line, (struct span){mark.text.data, glyph}, mark.paint);
	line_put(line, (struct span){mark.text.data + glyph, mark.text.len - glyph},
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
	line_put_cell(&line, widths.id, field_text(task, "id"), PAINT_DIM, false);
	line.column += 2;
	line_put_cell(&line, widths.task, field_text(task, "title"), PAINT_NONE, false);
	line.column += 2;
	line_put_cell(&line, widths.now, board_why(task), alarm_of(task), false);
	line.column += 2;
	if (frame->roomy) {
		yyjson_val *worker = board_worker_of(frame->board, task);
		put_tries(&line, task, 4);
		line.column++;
		line_put_cell(&line, 8, field_text(task, "workerId"), PAINT_NONE, false);
		line.column++;
		size_t begin = line.column;
		if (worker && frame_lease_left(frame, worker) >= 0)
			line_put_lease(&line, worker, LEASE_CELLS);
		line.column = begin + LEASE_CELLS + 3;
	}
	line_put_cell(&line, 6,
		view_since(frame->cli, field_int(task, since_change ? "updatedAt" : "createdAt", 0)),
		PAINT_DIM, true);
}

static void draw_task_names(struct frame *frame, size_t row)
{
	struct widths widths = task_widths(frame);
	struct line line = {frame, row, 1};

	line_put_cell(&line, widths.state + 2, SPAN("STATE"), PAINT_DIM, false);
	line_put_cell(&line, widths.id + 2, SPAN("ID"), PAINT_DIM, false);
	line_put_cell(&line, widths.task + 2, SPAN("TASK"), PAINT_DIM, false);
	line_put_cell(&line, widths.now + 2, SPAN("NOW"), PAINT_DIM, false);
	if (frame->roomy) {
		line_put_cell(&line, 5, SPAN("TRY"), PAINT_DIM, false);
		line_put_cell(&line, 9, SPAN("WORKER"), PAINT_DIM, false);
		line_put_cell(&line, LEASE_CELLS + 3, SPAN("LEASE"), PAINT_DIM, false);
	}
	line_put_cell(&line, 6, SPAN("AGE"), PAINT_DIM, true);
}

const char *frame_beat_text(struct frame *frame, yyjson_val *worker)
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

	line_put_cell(&line, name, names ? SPAN("WORKER") : field_text(worker, "workerId"), paint, false);
	begin = line.column += 2;
	if (names || !active || frame_lease_left(frame, worker) < 0) {
		line_put_cell(&line, 13, names ? SPAN("LEASE LEFT") : field_text(worker, "state"),
			names            ? PAINT_DIM
				: active ? PAINT_NONE
					 : PAINT_YELLOW,
			false);
	} else {
		line_put_lease(&line, worker, 6);
		line_put_text(&line, frame->stale ? "" : " ", PAINT_NONE);
		if (!frame->stale)
			line_put(&line, view_countdown(cli, frame_lease_left(frame, worker)), PAINT_DIM);
	}
	line.column = begin + 13 + 2;
	line_put_cell(&line, 6, names ? SPAN("BEAT") : span_of(frame_beat_text(frame, worker)),
		!names && view_worker_is_silent(worker) ? PAINT_YELLOW : PAINT_DIM, true);
	line.column += 2;
	size_t rest = frame->width > line.column + 1 ? frame->width - line.column - 1 : 0, part = rest / 3;
	line_put_cell(&line, part, names ? SPAN("HOLDS") : view_worker_holds(cli, worker), paint, false);
	line.column += 2;
	line_put_cell(&line, part > 2 ? part - 2 : 0,
		names ? SPAN("SERVES") : view_worker_serves(cli, worker), paint, false);
	line.column += 2;
	line_put_cell(&line, part > 2 ? part - 2 : 0, names ? SPAN("RUNS") : view_worker_runs(cli, worker),
		paint, false);
}

static void put_number(struct line *line, size_t width, int64_t number, const char *name)
{
	line_put_cell(line, width,
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

	line_put_cell(&line, widest(frame->board, "name", 8, frame->roomy ? 32 : 16),
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
	line_put_cell(&line, 6,
		names                   ? SPAN("OLDEST")
			: oldest_ms > 0 ? view_since(cli, oldest_ms)
					: SPAN(""),
		PAINT_DIM, true);
	line.column += 2;
	line_put_cell(&line, frame->width > line.column + 1 ? frame->width - line.column - 1 : 0,
		names ? SPAN("WHAT HOLDS IT BACK") : why,
		names                               ? PAINT_DIM
			: board_is_held_back(queue) ? PAINT_YELLOW
						    : PAINT_NONE,
		false);
}

void list_draw_names(struct frame *frame, size_t row)
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

	if (board_has_tasks(board))
		draw_task(frame, row, at->item, at);
	else if (board->tab == TAB_WORKERS)
		draw_worker(frame, row, at->item, false);
	else
		draw_queue(frame, row, at->item, false);
	if (focused) {
		screen_emphasize(frame->screen, row, PAINT_BOLD);
		screen_put(frame->screen, row, 0, 1, span_of(frame_sign(frame, "▌", ">")), PAINT_RUN);
	}
}

/* How many there are of a group, on the server. */
static int64_t group_count(const struct frame *frame, size_t group)
{
	const struct board *board = frame->board;
	int64_t counts[STAND_GROUPS], shown = 0;

	for (size_t i = 0; i < board->row_count; i++)
		shown += board->rows[i].group == group;
	if (!board_has_tasks(board) || board->filter[0])
		return shown;
	stand_count_among(board->queues, NULL, counts);
	return counts[group] > shown ? counts[group] : shown;
}

static void draw_group(struct frame *frame, size_t row, size_t group)
{
	struct line line = {frame, row, 1};
	bool yours = board_has_tasks(frame->board) ? group == STAND_NEEDS
						   : group == 0 && frame->board->tab == TAB_WORKERS;

	line_put_text(&line, board_views[frame->board->tab].groups[group], PAINT_BOLD);
	line_put_text(&line, cli_text(frame->cli, " %lld", (long long)group_count(frame, group)),
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

	line_put_text(&line, board->filter[0] ? "No task matches." : words[board->tab].head, PAINT_BOLD);
	line = (struct line){frame, row + 2, 1};
	line_put_text(
		&line, board->filter[0] ? "Escape clears the filter." : words[board->tab].text, PAINT_DIM);
}

const char *list_draw(struct frame *frame, size_t row, size_t room)
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
	for (size_t i = 0; i < STAND_ENDED && board_views[board->tab].groups[i]; i++) {
		int64_t left = group_count(frame, i) - (int64_t)seen[i];
		const char *name = board_views[board->tab].groups[i];
		if (left > 0)
			below = cli_text(cli, "%s%s%lld %s%c%s", below, below[0] ? ", " : "", (long long)left,
				seen[i] > 0 ? "more " : "", name[0] + ('a' - 'A'), name + 1);
	}
	return below[0] ? cli_text(cli, "%s %s", below, frame_sign(frame, "↓", "v")) : "";
}
