/*
 * An attempt begins with task.claimed and ends with the next event that frees the task. Its bar has a cell for each share of the
 * time between the first attempt and the last: waiting in the queue, work, and a person. The words about its end stand where
 * there is room: behind the bar, or before it.
 */
#include "cli/verb/story.h"

#include <string.h>

#include "base/take.h"
#include "cli/frame/text.h"
#include "cli/frame/when.h"
#include "cli/verb/event_view.h"
#include "cli/verb/task_view.h"

enum {
	ATTEMPTS_MAX = 50, /* drawn; older ones are counted */
	ASKS_MAX = 8,      /* times with a person that are drawn in one attempt */
	BAR_CELLS_MIN = 12,
	BAR_CELLS_MAX = 90,
	WIDTH_ELSEWHERE = 80,
	SECONDS_SHOWN_MS = 10 * 60 * 1000, /* a story that is shorter has seconds in its times */
	WORKER_WIDTH_MAX = 20,
};

struct attempt {
	int64_t number, ready_ms, begin_ms, end_ms; /* end 0: it goes on */
	const char *worker, *end;                   /* how it ended, with its sign */
	enum paint paint;
	struct {
		int64_t from_ms, to_ms;
	} asks[ASKS_MAX];
	size_t ask_count;
};

struct drawing {
	struct cli *cli;
	struct attempt attempts[ATTEMPTS_MAX];
	size_t count, left_out;
	int64_t from_ms, to_ms;
	size_t worker_width, time_width, cells;
	size_t room; /* columns behind the cells: the words about an end stand there even if its bar is as long as all */
};

static bool is(yyjson_val *event, const char *type)
{
	return span_equal(field_text(event, "type"), span_of(type));
}

static int64_t time_of(yyjson_val *event)
{
	return field_int(event, "time", 0);
}

/* The words that fit into so many columns. */
static const char *fitting(struct cli *cli, const char *text, size_t width)
{
	cleanup(buf_done) struct buf clean = {0}, cut = {0};

	buf_init(&clean, 1 << 20);
	buf_init(&cut, 1 << 20);
	text_clean(&clean, span_of(text), cli->term.utf8, false);
	text_fit(&cut, cli_span(cli, &clean), width, cli->term.utf8);
	return cli_text(cli, "%.*s", SPAN_ARGS(cli_span(cli, &cut)));
}

/* ---- attempts ---------------------------------------------------------------------------------------------------- */

static const struct {
	const char *type, *sign, *text;
} ends[] = {
	{"task.completed", "done", "done"},
	{"task.reviewed", "review", "reported"},
	{"task.failed", "failed", "[$message]"},
	{"task.blocked", "blocked", "[$message]"},
	{"task.released", NULL, "given back[: $reason]"},
	{"task.expired", "failed", "its lease ran out"},
	{"task.cancelled", "cancelled", "cancelled"},
	{"task.requeued", NULL, "taken back"},
	{"claim.unconfirmed", NULL, "taken back: nobody confirmed the claim"},
};

/* The first of the words about its end; more are in the timeline. */
static const char *first_line(struct cli *cli, struct span text)
{
	const char *end = text.len > 0 ? memchr(text.data, '\n', text.len) : NULL;

	return cli_text(cli, "%.*s", end ? (int)(end - text.data) : (int)text.len, text.data);
}

static void end_attempt(struct cli *cli, struct attempt *attempt, yyjson_val *event)
{
	cleanup(buf_done) struct buf text = {0};

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		if (!is(event, ends[i].type))
			continue;
		struct state_mark mark = view_state_mark(cli, span_of(ends[i].sign ? ends[i].sign : "ready"));
		buf_init(&text, 1 << 20);
		event_put_text(&text, ends[i].text, event);
		const char *sign = ends[i].sign
			? cli_text(cli, "%.*s", (int)strcspn(mark.text.data, " "), mark.text.data)
			: cli->term.glyphs ? "–"
					   : "-";
		attempt->end = cli_text(cli, "%s %s", sign, first_line(cli, cli_span(cli, &text)));
		attempt->paint = ends[i].sign ? mark.paint : PAINT_NONE;
		attempt->end_ms = time_of(event);
		if (attempt->ask_count > 0 && attempt->asks[attempt->ask_count - 1].to_ms == 0)
			attempt->asks[attempt->ask_count - 1].to_ms = attempt->end_ms;
		return;
	}
}

static void note_person(struct attempt *attempt, yyjson_val *event)
{
	if (is(event, "task.asked") && attempt->ask_count < ASKS_MAX)
		attempt->asks[attempt->ask_count++].from_ms = time_of(event);
	else if (is(event, "task.answered") && attempt->ask_count > 0)
		attempt->asks[attempt->ask_count - 1].to_ms = time_of(event);
}

static struct attempt *begin_attempt(struct drawing *drawing, yyjson_val *event, int64_t ready_ms)
{
	struct cli *cli = drawing->cli;

	if (drawing->count == ATTEMPTS_MAX) {
		memmove(drawing->attempts, drawing->attempts + 1,
			(ATTEMPTS_MAX - 1) * sizeof *drawing->attempts);
		drawing->count--;
		drawing->left_out++;
	}
	struct attempt *attempt = &drawing->attempts[drawing->count++];
	*attempt = (struct attempt){.number = field_int(field_get(event, "data"), "attempt", 0),
		.ready_ms = ready_ms,
		.begin_ms = time_of(event),
		.worker = fitting(cli, field_cstr(cli, event, "worker"), WORKER_WIDTH_MAX),
		.end = cli_text(cli, "%s running", cli->term.glyphs ? "●" : "*"),
		.paint = PAINT_RUN};
	return attempt;
}

static bool was_asked(const struct drawing *drawing)
{
	for (size_t i = 0; i < drawing->count; i++) {
		if (drawing->attempts[i].ask_count > 0)
			return true;
	}
	return false;
}

static void gather(struct drawing *drawing, const struct story *story)
{
	struct attempt *attempt = NULL;
	int64_t ready_ms = 0;

	for (size_t i = 0; i < story->count; i++) {
		yyjson_val *event = story->events[i];
		struct span state = field_text(field_get(event, "data"), "state");
		if (is(event, "task.claimed"))
			attempt = begin_attempt(drawing, event, ready_ms);
		else if (attempt && attempt->end_ms == 0)
			note_person(attempt, event), end_attempt(drawing->cli, attempt, event);
		if (span_equal(state, SPAN("ready")))
			ready_ms = time_of(event);
	}
}

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

static size_t cell_of(const struct drawing *drawing, int64_t moment_ms)
{
	int64_t whole_ms = drawing->to_ms - drawing->from_ms;
	int64_t cell =
		(moment_ms - drawing->from_ms) * (int64_t)drawing->cells / (whole_ms > 0 ? whole_ms : 1);

	return cell < 0 ? 0 : cell < (int64_t)drawing->cells ? (size_t)cell : drawing->cells - 1;
}

static const char *sign_at(const struct drawing *drawing, const struct attempt *attempt, size_t cell)
{
	bool glyphs = drawing->cli->term.glyphs;

	for (size_t i = 0; i < attempt->ask_count; i++) {
		int64_t to_ms = attempt->asks[i].to_ms ? attempt->asks[i].to_ms : drawing->to_ms;
		if (cell >= cell_of(drawing, attempt->asks[i].from_ms) && cell <= cell_of(drawing, to_ms))
			return glyphs ? "█" : "#";
	}
	if (cell >= cell_of(drawing, attempt->begin_ms))
		return glyphs ? "━" : "=";
	return glyphs ? "─" : "-";
}

static void put_attempt(const struct drawing *drawing, const struct attempt *attempt)
{
	struct cli *cli = drawing->cli;
	int64_t end_ms = attempt->end_ms ? attempt->end_ms : cli->now_ms;
	int64_t start_ms = attempt->ready_ms > drawing->from_ms ? attempt->ready_ms : attempt->begin_ms;
	size_t first = cell_of(drawing, start_ms), last = cell_of(drawing, end_ms);
	size_t behind = drawing->cells - last - 1 + drawing->room, width = text_width(span_of(attempt->end));
	bool before = width + 1 > behind && first > behind;
	const char *end =
		fitting(cli, attempt->end, (before ? first : behind) > 1 ? (before ? first : behind) - 1 : 0);
	struct span time = view_duration(cli, end_ms - attempt->begin_ms);
	size_t at = 0;

	cli_put(cli, "%-3lld%-*s  %*.*s  ", (long long)attempt->number, (int)drawing->worker_width,
		attempt->worker, (int)drawing->time_width, (int)time.len, time.data);
	if (before) {
		cli_put(cli, "%*s", (int)(first - 1 - text_width(span_of(end))), "");
		cli_put_painted(cli, attempt->paint, span_of(end));
		cli_put(cli, " ");
		at = first;
	}
	for (; at <= last; at++)
		cli_put(cli, "%s", at < first ? " " : sign_at(drawing, attempt, at));
	if (!before && end[0]) {
		cli_put(cli, " ");
		cli_put_painted(cli, attempt->paint, span_of(end));
	}
	cli_put(cli, "\n");
}

static const char *clock_text(struct cli *cli, int64_t moment_ms, bool seconds)
{
	cleanup(buf_done) struct buf text = {0};

	buf_init(&text, 64);
	if (cli->exact)
		when_put_clock(&text, moment_ms);
	else
		when_put_time(&text, moment_ms, cli->now_ms);
	struct span time = cli_span(cli, &text);
	return cli_text(cli, "%.*s", (int)(time.len - (cli->exact || seconds ? 0 : 3)), time.data);
}

static bool was_queued(const struct drawing *drawing)
{
	for (size_t i = 1; i < drawing->count; i++) {
		const struct attempt *attempt = &drawing->attempts[i];
		if (attempt->ready_ms > drawing->from_ms &&
			cell_of(drawing, attempt->ready_ms) < cell_of(drawing, attempt->begin_ms))
			return true;
	}
	return false;
}

/* When the bars begin, and what their signs mean. */
static void put_legend(const struct drawing *drawing, size_t indent)
{
	struct cli *cli = drawing->cli;
	bool glyphs = cli->term.glyphs, short_story = drawing->to_ms - drawing->from_ms < SECONDS_SHOWN_MS;

	cli_put(cli, "%*s%s%s to %s   %s work%s%s%s\n", (int)indent, "",
		term_paint(cli->term.color, PAINT_DIM), clock_text(cli, drawing->from_ms, short_story),
		clock_text(cli, drawing->to_ms, short_story), glyphs ? "━" : "=",
		was_asked(drawing) ? (glyphs ? " █ a person" : " # a person") : "",
		!was_queued(drawing) ? ""
			: glyphs     ? " ─ in the queue"
				     : " - in the queue",
		term_plain(cli->term.color, PAINT_DIM));
}

static void measure(struct drawing *drawing)
{
	struct cli *cli = drawing->cli;
	size_t width = cli->term.width > 0 ? cli->term.width : WIDTH_ELSEWHERE;

	drawing->from_ms = drawing->attempts[0].begin_ms;
	drawing->to_ms = 0;
	for (size_t i = 0; i < drawing->count; i++) {
		struct attempt *attempt = &drawing->attempts[i];
		int64_t end_ms = attempt->end_ms ? attempt->end_ms : cli->now_ms;
		size_t worker = text_width(span_of(attempt->worker));
		size_t time = view_duration(cli, end_ms - attempt->begin_ms).len;
		drawing->worker_width = worker > drawing->worker_width ? worker : drawing->worker_width;
		drawing->time_width = time > drawing->time_width ? time : drawing->time_width;
		drawing->to_ms = end_ms > drawing->to_ms ? end_ms : drawing->to_ms;
	}
	size_t used = 3 + drawing->worker_width + 2 + drawing->time_width + 2, longest = 0;
	for (size_t i = 0; i < drawing->count; i++) {
		size_t words = 1 + text_width(span_of(drawing->attempts[i].end));
		longest = words > longest ? words : longest;
	}
	drawing->cells = width > used + BAR_CELLS_MIN ? width - used : BAR_CELLS_MIN;
	drawing->cells = drawing->cells < BAR_CELLS_MAX ? drawing->cells : BAR_CELLS_MAX;
	drawing->room = longest < drawing->cells / 2 ? longest : drawing->cells / 2;
	drawing->cells -= drawing->room;
}

void story_put_attempts(struct cli *cli, const struct story *story)
{
	struct drawing *drawing = arena_alloc(&cli->arena, sizeof *drawing);

	if (!drawing)
		return;
	*drawing = (struct drawing){.cli = cli};
	gather(drawing, story);
	if (drawing->count < 2 && !was_asked(drawing))
		return;
	measure(drawing);
	cli_put(cli, "\n");
	for (size_t i = 0; i < drawing->count; i++)
		put_attempt(drawing, &drawing->attempts[i]);
	put_legend(drawing, 3 + drawing->worker_width + 2 + drawing->time_width + 2);
}

/* ---- what happened ----------------------------------------------------------------------------------------------- */

/* $n is the number of the attempt. A type without a text is not told here: it says nothing new. */
static const struct {
	const char *type, *text;
} lines[] = {
	{"task.created", "Created[ by $actor]"},
	{"task.updated", "Changed[ by $actor]"},
	{"task.claimed", "Attempt $n[ on $worker]"},
	{"task.confirmed", NULL},
	{"task.progressed", "Attempt $n goes on[, $percent %][: $note]"},
	{"task.asked", "Attempt $n asks[: $question]"},
	{"task.answered", "Answered[ by $actor][: $answer]"},
	{"task.reviewed", "Attempt $n reports its work and needs a verdict"},
	{"task.completed", "Attempt $n is done"},
	{"task.failed", "Attempt $n failed[: $message][ ($code)]"},
	{"task.blocked", "Blocked[: $message][ ($code)]"},
	{"task.released", "Attempt $n is given back[: $reason]"},
	{"task.expired", "Attempt $n is lost: the lease[ of $worker] ran out"},
	{"task.requeued", "In line again"},
	{"task.cancelled", "Cancelled[ by $actor][: $reason]"},
	{"task.retried", "Opened again[ by $actor][: $reason]"},
	{"task.parked", "Parked[ by $actor][: $reason]"},
	{"task.unparked", "Unparked[ by $actor][: $reason]"},
	{"task.orphan_result", "A result[ of $worker] came too late and is kept apart"},
	{"task.stage_changed", "Stage $stage[, after $fromStage]"},
	{"claim.unconfirmed", "Attempt $n is taken back[ from $worker]: nobody confirmed the claim"},
	{"gate.opened", "Needs a verdict on gate $gate"},
	{"gate.passed", "Gate $gate is passed[ by $actor][: $reason]"},
	{"gate.rejected", "Gate $gate is refused[ by $actor][: $reason]"},
};

/* The text with $n filled in. */
static const char *numbered(struct cli *cli, const char *text, int64_t attempt)
{
	const char *mark = strstr(text, "$n");

	if (!mark || (mark[2] >= 'a' && mark[2] <= 'z'))
		return text;
	return cli_text(cli, "%.*s%lld%s", (int)(mark - text), text, (long long)attempt, mark + 2);
}

/* Progress that says nothing: an agent's session and what it has used so far. */
static bool is_silent(yyjson_val *event)
{
	yyjson_val *data = field_get(event, "data");

	return is(event, "task.progressed") && field_text(data, "note").len == 0 &&
		!field_get(data, "percent");
}

/* False: it is not told. */
static bool put_line(struct cli *cli, struct buf *out, yyjson_val *event, int64_t attempt)
{
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		if (!is(event, lines[i].type))
			continue;
		if (!lines[i].text || is_silent(event))
			return false;
		event_put_text(out, numbered(cli, lines[i].text, attempt), event);
		return true;
	}
	event_put(out, event);
	return true;
}

/* What is worth adding: how long it waited for its worker, and what a failure cost. */
static void add_number(
	struct cli *cli, struct buf *out, const struct story *story, yyjson_val *event, int64_t ready_ms)
{
	int64_t waited_ms = time_of(event) - ready_ms,
		spent = field_int(field_get(event, "data"), "spent", 0);

	if (is(event, "task.claimed") && ready_ms > 0 && waited_ms >= 1000)
		buf_printf(out, ", after %.*s in the queue", SPAN_ARGS(view_duration(cli, waited_ms)));
	if (is(event, "task.failed") && spent > 0)
		buf_printf(out, ". %lld of %lld failures spent", (long long)spent,
			(long long)story->failures_max);
}

void story_put_timeline(struct cli *cli, const struct story *story)
{
	int64_t attempt = 0, ready_ms = 0;
	bool seconds = story->count > 0 &&
		time_of(story->events[story->count - 1]) - time_of(story->events[0]) < SECONDS_SHOWN_MS;

	if (story->count > 0)
		cli_put(cli, "\n");
	for (size_t i = 0; i < story->count; i++) {
		yyjson_val *event = story->events[i], *data = field_get(event, "data");
		cleanup(buf_done) struct buf text = {0};
		buf_init(&text, 4 << 20);
		if (is(event, "task.claimed"))
			attempt = field_int(data, "attempt", attempt);
		if (put_line(cli, &text, event, attempt)) {
			const char *time = clock_text(cli, time_of(event), seconds);
			add_number(cli, &text, story, event, ready_ms);
			cli_put_sentence(
				cli, strlen(time) + 2, "%s  %.*s", time, SPAN_ARGS(cli_span(cli, &text)));
		}
		if (span_equal(field_text(data, "state"), SPAN("ready")))
			ready_ms = time_of(event);
	}
}
