#include <string.h>

#include "base/take.h"
#include "base/utf8.h"
#include "cli/frame/text.h"
#include "cli/top/draw.h"
#include "cli/verb/task_view.h"

enum {
	TALL = 32, /* a screen of so many rows has more lines here */
	PANE_SHORT = 3,
	PANE_TALL = 6,
	PANE_LEASE_CELLS = 12,
};

void pane_draw_rule(struct frame *frame, size_t row, const char *name, const char *note)
{
	struct line line = {frame, row, 0};
	const char *dash = frame_sign(frame, "─", "-");
	size_t tail = note[0] ? text_width(span_of(note)) + 4 : 0;

	for (size_t i = 0; i < frame->width; i++)
		line_put_text(&line, dash, PAINT_DIM);
	if (name[0] && frame->width > tail + 8) {
		line.column = 2;
		line.column += screen_put(frame->screen, row, 2, frame->width - tail - 6,
			span_of(cli_text(frame->cli, " %s", name)), PAINT_DIM);
		line_put_text(&line, " ", PAINT_DIM);
	}
	if (tail > 0 && frame->width > tail) {
		line.column = frame->width - tail;
		line_put_text(&line, cli_text(frame->cli, " %s ", note), PAINT_DIM);
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
	yyjson_val *worker = board_worker_of(frame->board, task);

	if (!worker || frame_lease_left(frame, worker) < 0 || !frame->roomy)
		return 0;
	const char *name = cli_text(cli, "%.*s ", SPAN_ARGS(field_text(worker, "workerId")));
	const char *rest = frame->stale
		? " unknown"
		: cli_text(cli, " %.*s left of %.*s, beat %s ago",
			  SPAN_ARGS(view_countdown(cli, frame_lease_left(frame, worker))),
			  SPAN_ARGS(view_countdown(cli, field_int(worker, "leaseGrantedMs", 0))),
			  frame_beat_text(frame, worker));
	size_t width = text_width(span_of(name)) + PANE_LEASE_CELLS + text_width(span_of(rest));
	if (width + 40 > frame->width)
		return 0;
	struct line line = {frame, row, frame->width - 1 - width};
	line_put_text(&line, name, PAINT_NONE);
	line_put_lease(&line, worker, PANE_LEASE_CELLS);
	line_put_text(&line, rest, PAINT_DIM);
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
	struct span said = board_why(task);
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

	line_put(&line, (struct span){mark.text.data, glyph}, mark.paint);
	line.column++;
	line_put_text(&line,
		cli_text(cli, "%c%.*s. ", word.data[0] - ('a' - 'A'), (int)word.len - 1, word.data + 1),
		PAINT_BOLD);
	frame->width -= draw_holder(frame, row, task);
	used = draw_prose(frame, row, room > 2 ? 2 : 1, line.column,
		cli_text(cli, "%.*s", SPAN_ARGS(board_why(task))), PAINT_NONE);
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

size_t pane_rows(const struct board *board, size_t screen_rows)
{
	size_t usual = screen_rows < TALL ? PANE_SHORT : PANE_TALL;

	if (!board->open)
		return usual;
	return screen_rows > BOARD_LINES_ABOVE + BOARD_LINES_BELOW + 8
		? screen_rows - BOARD_LINES_ABOVE - BOARD_LINES_BELOW - 5
		: usual;
}

size_t board_page(const struct board *board, size_t screen_rows)
{
	size_t taken = BOARD_LINES_ABOVE + BOARD_LINES_BELOW + pane_rows(board, screen_rows);

	return screen_rows > taken + 1 ? screen_rows - taken : 1;
}

void pane_draw(struct frame *frame, size_t row, size_t room, const struct board_row *focus)
{
	if (board_has_tasks(frame->board))
		draw_task_pane(frame, row, room, focus->item);
	else
		draw_other_pane(frame, row, room, focus->item);
}
