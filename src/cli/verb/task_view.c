#include "cli/verb/task_view.h"

#include <assert.h>
#include <string.h>

#include "base/duration.h"
#include "base/take.h"
#include "cli/frame/text.h"
#include "cli/frame/when.h"

enum {
	BEGINNING_MIN = 3,
	LOOKED_AT_MAX = 1000,
	TOLD_MAX = 5,
	LIST_BYTES_MAX = 64 << 20,
};

enum paint view_state_paint(struct span state)
{
	static const struct {
		const char *state;
		enum paint paint;
	} paints[] = {{"ready", PAINT_CYAN}, {"claimed", PAINT_BLUE}, {"running", PAINT_BLUE},
		{"asking", PAINT_YELLOW}, {"review", PAINT_YELLOW}, {"blocked", PAINT_RED},
		{"failed", PAINT_RED}, {"done", PAINT_GREEN}, {"pending", PAINT_DIM},
		{"scheduled", PAINT_DIM}, {"waiting", PAINT_DIM}, {"cancelled", PAINT_DIM},
		{"active", PAINT_GREEN}, {"open", PAINT_GREEN}, {"paused", PAINT_YELLOW},
		{"draining", PAINT_YELLOW}, {"quiet", PAINT_YELLOW}, {"terminating", PAINT_YELLOW},
		{"inactive", PAINT_DIM}, {"quarantined", PAINT_RED}, {"stopping", PAINT_YELLOW},
		{"queued", PAINT_CYAN}, {"completed", PAINT_GREEN}, {"stopped", PAINT_DIM},
		{"live", PAINT_GREEN}, {"expired", PAINT_DIM}, {"revoked", PAINT_DIM}};

	for (size_t i = 0; i < sizeof paints / sizeof *paints; i++) {
		if (span_equal(span_of(paints[i].state), state))
			return paints[i].paint;
	}
	return PAINT_NONE;
}

bool view_state_is_final(struct span state)
{
	return span_equal(state, SPAN("done")) || span_equal(state, SPAN("failed")) ||
		span_equal(state, SPAN("cancelled"));
}

void view_put_task(struct cli *cli, yyjson_val *task)
{
	struct span state = field_text(task, "state");
	const char *title = field_cstr(cli, task, "title");

	cli_put_clean(cli, field_text(task, "id"));
	cli_put(cli, "  ");
	cli_put_painted(cli, view_state_paint(state), state);
	cli_put_line(cli, "%s%s", title[0] ? "  " : "", title);
}

/* The ids that begin so: how many, the first one, and the first few as a text. 0, or the ending. */
static int find_beginning(
	struct cli *cli, const char *typed, size_t *ret_found, const char **ret_id, const char **ret_ids)
{
	struct ask question = {.method = HTTP_METHOD_GET,
		.path = "/api/tasks",
		.keeps_refusal = 403 /* a claim token may see its own task and no list */};
	cleanup(reply_done) struct reply reply = {0};
	size_t at, count;
	yyjson_val *task;

	question.query = span_of(
		cli_text(cli, "limit=%d&q=%.*s", LOOKED_AT_MAX, SPAN_ARGS(cli_encode(cli, span_of(typed)))));
	int r = server_ask(cli, &question, &reply);
	if (r != 0)
		return r;
	yyjson_arr_foreach(reply.root, at, count, task)
	{
		const char *id = field_cstr(cli, task, "id");
		if (strncmp(id, typed, strlen(typed)) != 0)
			continue;
		*ret_id = *ret_found == 0 ? id : *ret_id;
		if ((*ret_found)++ < TOLD_MAX)
			*ret_ids = cli_text(cli, "%s%s%s", *ret_ids, *ret_found > 1 ? ", " : "", id);
	}
	return 0;
}

int server_get_of_task(struct cli *cli, const char *path, const char *typed, struct reply *ret_task)
{
	struct ask question = {
		.method = HTTP_METHOD_GET, .path = path, .names = {typed}, .quiet_missing = true};
	const char *id = typed, *ids = "";
	size_t found = 0;

	int r = server_ask(cli, &question, ret_task);
	if (r != EXIT_NOT_FOUND)
		return r;
	r = strlen(typed) < BEGINNING_MIN ? 0 : find_beginning(cli, typed, &found, &id, &ids);
	if (r != 0)
		return r;
	if (found == 1) {
		cli_say(cli, "stint: %s is %s", typed, id);
		*ret_task = server_get(cli, path, id);
		return 0;
	}
	if (found > 1)
		return cli_fail(cli, EXIT_NOT_FOUND, "not_found",
			cli_text(cli, "stint %s %s", cli->verb->name, id),
			"there is no task \"%s\"; %zu begin so: %s", typed, found, ids);
	return cli_fail(cli, EXIT_NOT_FOUND, "not_found", "stint ls --all",
		"there is no task \"%s\", or none that this token may see", typed);
}

int server_get_task(struct cli *cli, const char *typed, struct reply *ret_task)
{
	return server_get_of_task(cli, "/api/tasks/*", typed, ret_task);
}

static const struct state_sign {
	const char *state, *glyph, *ascii;
	enum paint paint;
	bool whole; /* the word is painted, too */
} signs[] = {
	{"pending", "◌", "_", PAINT_DIM, true},
	{"scheduled", "◷", "@", PAINT_DIM, false},
	{"waiting", "⊸", "~", PAINT_DIM, false},
	{"ready", "○", "o", PAINT_NONE, false},
	{"claimed", "◑", "c", PAINT_RUN, false},
	{"running", "●", "*", PAINT_RUN, false},
	{"asking", "?", "?", PAINT_YOU_BOLD, false},
	{"review", "◈", "%", PAINT_YELLOW, true},
	{"blocked", "⊖", "!", PAINT_YELLOW, true},
	{"failed", "✗", "x", PAINT_RED, true},
	{"done", "✓", "+", PAINT_GREEN, false},
	{"cancelled", "⊘", "/", PAINT_DIM, true},
};

static const struct state_sign *find_sign(struct span state)
{
	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
		if (span_equal(span_of(signs[i].state), state))
			return &signs[i];
	}
	return NULL;
}

/* The sign of a state, as the terminal can show it. */
static const char *sign_of(const struct cli *cli, const char *state)
{
	const struct state_sign *row = find_sign(span_of(state));

	return cli->term.glyphs ? row->glyph : row->ascii;
}

struct state_mark view_state_mark(struct cli *cli, struct span state)
{
	const struct state_sign *row = find_sign(state);
	struct span word = view_state_word(state);

	if (!row)
		return (struct state_mark){state, PAINT_NONE, false};
	return (struct state_mark){span_of(cli_text(cli, "%s %.*s",
					   cli->term.glyphs ? row->glyph : row->ascii, SPAN_ARGS(word))),
		row->paint, !row->whole};
}

void view_say_end(struct cli *cli, yyjson_val *task, int64_t took_ms)
{
	struct span state = field_text(task, "state");
	struct state_mark mark = view_state_mark(cli, state);
	bool done = span_equal(state, SPAN("done"));
	const char *branch = field_cstr(cli, field_get(task, "evidence"), "branch");
	const char *error = field_cstr(cli, field_get(task, "error"), "message");
	const char *text = done && branch[0] ? cli_text(cli, "branch %s", branch) : done ? "" : error;

	if (took_ms >= 1000)
		text = cli_text(cli, "after %.*s%s%s", SPAN_ARGS(view_duration(cli, took_ms)),
			text[0] ? ": " : "", text);
	cli_say_mark(cli, mark.paint, mark.text,
		cli_text(cli, "  %s%s%s", field_cstr(cli, task, "id"), text[0] ? "  " : "", text));
}

enum {
	TRIES_SHOWN_MAX = 4,
};

struct span view_tries(struct cli *cli, yyjson_val *task)
{
	struct span state = field_text(task, "state");
	bool held = field_text(task, "workerId").len > 0, done = span_equal(state, SPAN("done"));
	int64_t ended = field_int(task, "attempt", 0) - held - done;
	int64_t bad = field_int(task, "spent", 0) + field_int(task, "crashes", 0) - (held ? 1 : 0);
	const char *text = "";

	if (bad < field_int(task, "spent", 0))
		bad = field_int(task, "spent", 0);
	for (int64_t i = 0; i < ended && ended <= TRIES_SHOWN_MAX; i++)
		text = cli_text(cli, "%s%s", text,
			i < bad                    ? sign_of(cli, "failed")
				: cli->term.glyphs ? "–"
						   : "-");
	if (ended > TRIES_SHOWN_MAX)
		text = cli_text(
			cli, "%s+%lld", sign_of(cli, bad > 0 ? "failed" : "ready"), (long long)(ended - 1));
	if (held)
		text = cli_text(cli, "%s%s", text,
			sign_of(cli, span_equal(state, SPAN("asking")) ? "asking" : "running"));
	return span_of(done ? cli_text(cli, "%s%s", text, sign_of(cli, "done")) : text);
}

struct span view_state_word(struct span state)
{
	return span_equal(state, SPAN("pending")) ? SPAN("parked") : state;
}

const char *view_why_sentence(struct cli *cli, yyjson_val *why)
{
	struct span state = view_state_word(field_text(why, "state"));

	return cli_text(cli, "%s is %s%.*s. %s", field_cstr(cli, why, "id"),
		span_equal(state, SPAN("review")) ? "in " : "", SPAN_ARGS(state),
		field_cstr(cli, why, "text"));
}

void view_put_why(struct cli *cli, yyjson_val *why)
{
	const char *command = field_cstr(cli, why, "try");

	cli_put_sentence(cli, 2, "%s", view_why_sentence(cli, why));
	if (command[0] && !cli->quiet)
		view_put_try(cli, command);
}

void view_put_try(struct cli *cli, const char *command)
{
	cli_put(cli, "  %stry%s  ", term_paint(cli->term.color, PAINT_DIM),
		term_plain(cli->term.color, PAINT_DIM));
	cli_put_line(cli, "%s", command);
}

bool view_worker_is_silent(yyjson_val *worker)
{
	return field_int(worker, "heartbeatAgeMs", 0) > field_int(worker, "leaseGrantedMs", INT64_MAX) / 2;
}

static bool has_passed(yyjson_val *task, struct span gate)
{
	size_t at, count;
	yyjson_val *passed;

	yyjson_arr_foreach(field_get(task, "gatesPassed"), at, count, passed)
	{
		if (span_equal(json_text(passed), gate))
			return true;
	}
	return false;
}

const char *view_open_gates(struct cli *cli, yyjson_val *task, size_t *ret_count, const char **ret_last)
{
	const char *all = "", *last = NULL;
	size_t at, count, left = 0;
	yyjson_val *gate;

	yyjson_arr_foreach(field_get(task, "gates"), at, count, gate)
	{
		if (has_passed(task, json_text(gate)))
			continue;
		last = cli_text(cli, "%.*s", SPAN_ARGS(json_text(gate)));
		all = cli_text(cli, "%s%s%s", all, left++ > 0 ? ", " : "", last);
	}
	*ret_count = left;
	*ret_last = last;
	return all;
}

const char *view_question(struct cli *cli, yyjson_val *question)
{
	const char *text = field_cstr(cli, question, "text");
	yyjson_val *options = field_get(question, "options"), *option;
	size_t at, count;

	yyjson_arr_foreach(options, at, count, option)
	{
		text = cli_text(cli, "%s%s%.*s", text, at == 0 ? " (" : ", ", SPAN_ARGS(json_text(option)));
	}
	return yyjson_arr_size(options) > 0 ? cli_text(cli, "%s)", text) : text;
}

const char *view_answer_command(struct cli *cli, yyjson_val *task)
{
	yyjson_val *option = yyjson_arr_get_first(field_get(field_get(task, "question"), "options"));
	const char *id = cli_quote(cli, field_cstr(cli, task, "id"));

	return option ? cli_text(cli, "stint answer %s %s", id,
				cli_quote(cli, cli_text(cli, "%.*s", SPAN_ARGS(json_text(option)))))
		      : cli_text(cli, "stint show %s   # then stint answer %s '…'", id, id);
}

/* ---- cells -------------------------------------------------------------------------------------------------- */

static struct span kept(struct cli *cli, const struct buf *text)
{
	return span_of(cli_text(cli, "%.*s", SPAN_ARGS(cli_span(cli, text))));
}

struct span view_clock(struct cli *cli, int64_t moment_ms)
{
	cleanup(buf_done) struct buf text = {0};

	buf_init(&text, 64);
	when_put_clock(&text, moment_ms);
	return kept(cli, &text);
}

struct span view_relative(struct cli *cli, int64_t moment_ms)
{
	cleanup(buf_done) struct buf text = {0};

	if (moment_ms == 0)
		return SPAN("-");
	if (cli->exact)
		return view_clock(cli, moment_ms);
	buf_init(&text, 64);
	when_put_relative(&text, moment_ms, cli->now_ms);
	return kept(cli, &text);
}

struct span view_since(struct cli *cli, int64_t moment_ms)
{
	if (moment_ms == 0)
		return SPAN("-");
	return cli->exact ? view_clock(cli, moment_ms) : view_duration(cli, cli->now_ms - moment_ms);
}

struct span view_duration(struct cli *cli, int64_t ms)
{
	cleanup(buf_done) struct buf text = {0};

	buf_init(&text, 64);
	when_put_duration(&text, ms, false);
	return kept(cli, &text);
}

struct span view_countdown(struct cli *cli, int64_t ms)
{
	cleanup(buf_done) struct buf text = {0};

	buf_init(&text, 64);
	duration_put_countdown(&text, ms);
	return kept(cli, &text);
}

struct span view_bar(struct cli *cli, int64_t part, int64_t whole, int width)
{
	int64_t full = whole > 0 ? (part * width + whole / 2) / whole : 0;
	const char *text = "";

	for (int i = 0; i < width; i++)
		text = cli_text(cli, "%s%s", text,
			i < full ? (cli->term.glyphs ? "━" : "=") : (cli->term.glyphs ? "─" : "-"));
	return span_of(text);
}

struct span view_number(struct cli *cli, int64_t value)
{
	return span_of(cli_text(cli, "%lld", (long long)value));
}

struct span view_or_dash(struct span text)
{
	return text.len > 0 ? text : SPAN("-");
}

struct span view_any(struct cli *cli, yyjson_val *value)
{
	cleanup(buf_done) struct buf json = {0};

	if (yyjson_is_str(value))
		return json_text(value);
	buf_init(&json, LIST_BYTES_MAX);
	json_put_value(&json, value);
	return kept(cli, &json);
}

/* ---- lists -------------------------------------------------------------------------------------------------- */

void view_put_id(struct cli *cli, struct span id)
{
	if (cli->term.tty)
		cli_put_clean(cli, id);
	else
		cli_put(cli, "%.*s", SPAN_ARGS(id));
	cli_put(cli, "\n");
}

int view_put_rows(struct cli *cli, struct table *table, const char *key, yyjson_val *list, const char *id)
{
	size_t at, count;
	yyjson_val *item;
	int r = 0;

	switch (cli->output) {
	case OUTPUT_JSON:
		return cli_put_json(cli, key, list);
	case OUTPUT_JSONL:
		yyjson_arr_foreach(list, at, count, item)
		{
			cli_put_value(cli, item);
			cli_put(cli, "\n");
		}
		return 0;
	case OUTPUT_ID:
		yyjson_arr_foreach(list, at, count, item) view_put_id(cli, field_text(item, id));
		return 0;
	case OUTPUT_AUTO:
		if (!cli->term.tty) {
			r = table_put_tabs(&cli->out, table);
			break;
		}
		__attribute__((fallthrough));
	case OUTPUT_TABLE:
	case OUTPUT_WIDE:
	case OUTPUT_ENV:
		r = table->row_count > 0 ? table_put(&cli->out, table, &cli->term) : 0;
		break;
	}
	return r < 0 ? cli_fail_fault(cli, r) : 0;
}

/* A member, or a member of a member. */
static yyjson_val *member_at(yyjson_val *item, const char *path)
{
	for (size_t len; item && *path; path += len + (path[len] == '.')) {
		len = strcspn(path, ".");
		item = yyjson_obj_getn(item, path, len);
	}
	return item;
}

static struct span cell_text(struct cli *cli, const struct column *column, yyjson_val *item)
{
	yyjson_val *value = member_at(item, column->member);
	int64_t number = yyjson_is_int(value) ? yyjson_get_sint(value) : 0;

	switch (column->kind) {
	case COLUMN_TEXT:
	case COLUMN_STATE:
		return json_text(value);
	case COLUMN_DASH:
		return view_or_dash(json_text(value));
	case COLUMN_NUMBER:
		return view_number(cli, number);
	case COLUMN_DURATION:
		return view_duration(cli, number);
	case COLUMN_AGE:
		return view_since(cli, number);
	case COLUMN_MOMENT:
		return view_relative(cli, number);
	case COLUMN_NAMES:
	case COLUMN_WORDS:
		return view_or_dash(span_of(cli_join(cli, value, column->kind == COLUMN_NAMES ? "," : " ")));
	}
	assert(0 && "a cell has a kind");
	return SPAN("");
}

void view_add_row(struct cli *cli, struct table *table, yyjson_val *item)
{
	table_row(table);
	for (size_t c = 0; c < table->column_count; c++) {
		const struct column *column = &table->columns[c];
		struct span text = column->make ? column->make(cli, item) : cell_text(cli, column, item);
		table_cell(table, c, text,
			column->kind == COLUMN_STATE ? view_state_paint(text) : column->paint);
	}
}

/* The items that the verb shows, as a document of their own. */
static yyjson_doc *pick(struct cli *cli, const struct list_view *view, yyjson_val *list)
{
	cleanup(buf_done) struct buf json = {0};
	bool any = false;
	size_t at, count;
	yyjson_val *item;

	buf_init(&json, LIST_BYTES_MAX);
	buf_put_byte(&json, '[');
	yyjson_arr_foreach(list, at, count, item)
	{
		if (view->hides && view->hides(cli, item))
			continue;
		json_put_comma(&json, &any);
		json_put_value(&json, item);
	}
	buf_put_byte(&json, ']');
	return cli_read_made(cli, &json);
}

int view_run_list(struct cli *cli)
{
	const struct list_view *view = cli->verb->list;
	cleanup(reply_done) struct reply reply =
		server_get(cli, view->path, strchr(view->path, '*') ? args_plain(&cli->args, 0) : NULL);
	struct table table;
	size_t at, count;
	yyjson_val *item;

	yyjson_doc *shown = pick(cli, view, reply.root);
	bool narrow = view->narrow > 0 && cli->output != OUTPUT_WIDE;
	bool people = cli->output == OUTPUT_TABLE || (cli->output == OUTPUT_AUTO && cli->term.tty);
	if (people && view->people)
		table_init(&table, view->people, view->people_count, cli->term.utf8);
	else
		table_init(&table, view->columns, narrow ? view->narrow : view->column_count, cli->term.utf8);
	yyjson_arr_foreach(yyjson_doc_get_root(shown), at, count, item) view_add_row(cli, &table, item);
	int r = view_put_rows(cli, &table, view->key, yyjson_doc_get_root(shown), view->id);
	if (r == 0 && view->none && table.row_count == 0 && cli->output == OUTPUT_AUTO)
		cli_say(cli, "%s", view->none);
	table_done(&table);
	yyjson_doc_free(shown);
	return r;
}

/* Every column on a line of its own. */
static void put_lines(struct cli *cli, const struct list_view *view, yyjson_val *item)
{
	struct table table;

	table_init(&table, view->columns, view->column_count, cli->term.utf8);
	view_add_row(cli, &table, item);
	if (table.fault < 0)
		buf_fail(&cli->out, table.fault);
	for (size_t c = 0; table.fault == 0 && c < table.column_count; c++) {
		cli_put(cli, "%-14s", table.columns[c].name);
		cli_put_painted(cli, table.cells[c].paint, table.cells[c].text);
		cli_put(cli, "\n");
	}
	table_done(&table);
}

int view_run_show(struct cli *cli)
{
	const struct list_view *view = cli->verb->list;
	cleanup(reply_done) struct reply reply =
		server_get(cli, cli_text(cli, "%s/*", view->path), args_plain(&cli->args, 0));

	if (cli->output == OUTPUT_JSON) {
		cli_put_json(cli, view->one, reply.root);
	} else {
		put_lines(cli, view, reply.root);
		view->rest(cli, reply.root);
	}
	return 0;
}

int view_put_task_done(struct cli *cli, yyjson_val *task, const char *what)
{
	const char *id = field_cstr(cli, task, "id");

	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "task", task);
	cli_put_change(cli, 1, id, cli_text(cli, "%s %s", id, what));
	return 0;
}
