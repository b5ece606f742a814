#include "cli/verb/task_view.h"

#include <assert.h>
#include <string.h>

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

int server_get_task(struct cli *cli, const char *typed, struct reply *ret_task)
{
	struct ask question = {
		.method = HTTP_METHOD_GET, .path = "/api/tasks/*", .names = {typed}, .quiet_missing = true};
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
		*ret_task = server_get(cli, "/api/tasks/*", id);
		return 0;
	}
	if (found > 1)
		return cli_fail(cli, EXIT_NOT_FOUND, "not_found",
			cli_text(cli, "stint %s %s", cli->verb->name, id),
			"there is no task \"%s\"; %zu begin so: %s", typed, found, ids);
	return cli_fail(cli, EXIT_NOT_FOUND, "not_found", "stint ls --all",
		"there is no task \"%s\", or none that this token may see", typed);
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
	const char *text = field_cstr(cli, question, "question");
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
	buf_init(&text, 64);
	when_put_relative(&text, moment_ms, cli->now_ms);
	return kept(cli, &text);
}

struct span view_since(struct cli *cli, int64_t moment_ms)
{
	return moment_ms == 0 ? SPAN("-") : view_duration(cli, cli->now_ms - moment_ms);
}

struct span view_duration(struct cli *cli, int64_t ms)
{
	cleanup(buf_done) struct buf text = {0};

	buf_init(&text, 64);
	when_put_duration(&text, ms, false);
	return kept(cli, &text);
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
	cleanup(reply_done) struct reply reply = server_get(cli, view->path, NULL);
	struct table table;
	size_t at, count;
	yyjson_val *item;

	yyjson_doc *shown = pick(cli, view, reply.root);
	bool narrow = view->narrow > 0 && cli->output != OUTPUT_WIDE;
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
	struct span id = field_text(task, "id");

	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "task", task);
	cli_put(cli, "%.*s\n", SPAN_ARGS(id));
	cli_say(cli, "%.*s %s", SPAN_ARGS(id), what);
	return 0;
}
