#include "cli/import/intake.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/take.h"
#include "base/utf8.h"
#include "cli/frame/table.h"
#include "wire/form/form.h"

enum {
	TEXTS_BYTES_MAX = 256 << 20,
	ROWS_BYTES_MAX = 64 << 20,
	JSON_BYTES_MAX = 64 << 20,
	SLICE_ITEMS = 200,
	SLICE_BYTES = 700 << 10, /* a request has 1 MiB at most */
	TASK_BYTES_MAX = 1000 << 10,
	TITLE_BYTES_MAX = 4096,
};

enum outcome { OUTCOME_NEW, OUTCOME_EXISTS, OUTCOME_LEFT_OUT };

struct intake_row {
	size_t at, len; /* in the texts */
	const char *id, *title;
	const char *why; /* it is left out */
	struct intake_place place;
	enum outcome outcome;
};

void intake_open(struct intake *intake, struct cli *cli, const char *noun)
{
	*intake = (struct intake){.cli = cli, .noun = noun, .dry_run = args_has(&cli->args, "dry-run")};
	buf_init(&intake->texts, TEXTS_BYTES_MAX);
	buf_init(&intake->rows, ROWS_BYTES_MAX);
	ids_open(&intake->ids);
}

void intake_close(struct intake *intake)
{
	buf_done(&intake->texts);
	buf_done(&intake->rows);
	ids_close(&intake->ids);
}

/* ---- mistakes ------------------------------------------------------------------------------------------------ */

static const char *place_text(struct cli *cli, struct intake_place place)
{
	if (place.line == 0)
		return place.file;
	return cli_text(cli, "%s:%u:%u", place.file, place.line, place.column);
}

void intake_die(struct cli *cli, struct intake_place place, const char *format, ...)
{
	cleanup(buf_done) struct buf text = {.max = 64 << 10};
	va_list list;

	va_start(list, format);
	buf_vprintf(&text, format, list);
	va_end(list);
	cli_die(cli, EXIT_FAILED, "invalid", NULL, "%s: %.*s; nothing was changed", place_text(cli, place),
		SPAN_ARGS(cli_span(cli, &text)));
}

struct intake_place intake_place(const char *file, struct span text, size_t at)
{
	struct json_place found = json_place(text, at);

	return (struct intake_place){file, found.line, found.column};
}

struct span intake_read_file(struct cli *cli, const char *path)
{
	struct span text = cli_read_input(cli, path);

	if (text.len == 0)
		cli_die(cli, EXIT_FAILED, "invalid", NULL, "%s is empty; nothing was changed", path);
	return text;
}

yyjson_val *intake_read_value(struct cli *cli, const char *file, struct span text, struct span value)
{
	struct json_complaint complaint;
	yyjson_doc *doc = json_read_in(&cli->arena, value, &complaint);

	if (!doc && complaint.fault)
		cli_exit(cli, cli_fail_fault(cli, complaint.fault));
	if (!doc)
		intake_die(cli, intake_place(file, text, (size_t)(value.data - text.data) + complaint.at),
			"%s", complaint.reason);
	return yyjson_doc_get_root(doc);
}

bool intake_walk_open(
	struct intake_walk *walk, struct cli *cli, const char *file, struct span text, const char *key)
{
	struct json_walk object;
	struct span found, value;

	*walk = (struct intake_walk){.cli = cli, .file = file, .text = text};
	intake_read_value(cli, file, text, text); /* from here on the text is known to be JSON */
	if (json_walk_list(&walk->walk, text, 0))
		return true;
	if (!json_walk_object(&object, text, 0))
		intake_die(cli, intake_place(file, text, 0), "this must be an object or a list");
	while (json_walk_key(&object, &found)) {
		size_t at = object.at;
		if (span_equal(found, span_of(key))) {
			if (!json_walk_list(&walk->walk, text, at))
				intake_die(cli, intake_place(file, text, at), "\"%s\" must be a list", key);
			return true;
		}
		if (!json_walk_value(&object, &value))
			break;
	}
	return false;
}

yyjson_val *intake_walk_next(struct intake_walk *walk, struct intake_place *ret_place)
{
	struct span value;

	if (!json_walk_element(&walk->walk, &value))
		return NULL;
	*ret_place = intake_place(walk->file, walk->text, (size_t)(value.data - walk->text.data));
	return intake_read_value(walk->cli, walk->file, walk->text, value);
}

/* What a value is, for "it is …". */
static const char *value_text(struct cli *cli, yyjson_val *value)
{
	cleanup(buf_done) struct buf text = {.max = 1 << 20};

	json_put_value(&text, value);
	struct span cut = utf8_cut(cli_span(cli, &text), 60);
	return cli_text(cli, "%.*s%s", SPAN_ARGS(cut), cut.len < text.len ? "…" : "");
}

struct span intake_text(struct cli *cli, struct intake_place place, yyjson_val *object, const char *key)
{
	yyjson_val *value = field_get(object, key);

	if (value && !yyjson_is_null(value) && !yyjson_is_str(value))
		intake_die(cli, place, "\"%s\" must be a text; it is %s", key, value_text(cli, value));
	return json_text(value);
}

/* ---- what comes in ---------------------------------------------------------------------------------------------- */

static struct intake_row *row_at(struct intake *intake, size_t i)
{
	return (struct intake_row *)(void *)intake->rows.data + i;
}

static size_t row_count(const struct intake *intake)
{
	return intake->rows.len / sizeof(struct intake_row);
}

static void add_row(struct intake *intake, struct intake_row row)
{
	if (buf_put(&intake->rows, &row, sizeof row) < 0)
		cli_exit(intake->cli, cli_fail_fault(intake->cli, buf_fault(&intake->rows)));
	ids_add(&intake->ids, intake->cli, row.id);
}

static const char *title_text(struct cli *cli, struct span title)
{
	struct span cut = utf8_cut(title, TITLE_BYTES_MAX);

	return cut.len > 0 ? cli_text(cli, "%.*s", SPAN_ARGS(cut)) : "(untitled)";
}

struct json_object *intake_begin(
	struct intake *intake, const char *id, struct span title, struct intake_place place)
{
	struct cli *cli = intake->cli;

	if (!text_is_id(span_of(id)))
		intake_die(cli, place,
			"%s cannot be the id of a task: an id has 1 to %d letters, digits, '.', '_', ':' or '-', and begins with a "
			"letter or digit",
			cli_quote(cli, id), FORM_ID_MAX);
	int64_t twin = ids_find(&intake->ids, id);
	if (twin >= 0)
		intake_die(cli, place, "the %s %s is there twice: the first one is at %s", intake->noun, id,
			place_text(cli, row_at(intake, (size_t)twin)->place));
	struct intake_row row = {.at = intake->texts.len,
		.id = cli_text(cli, "%s", id),
		.title = title_text(cli, title),
		.place = place};
	add_row(intake, row);
	json_begin(&intake->task, &intake->texts);
	json_member_string(&intake->task, "id", span_of(row.id));
	json_member_string(&intake->task, "title", span_of(row.title));
	return &intake->task;
}

void intake_end(struct intake *intake)
{
	struct intake_row *row = row_at(intake, row_count(intake) - 1);

	int r = json_end(&intake->task);
	if (r < 0)
		cli_exit(intake->cli, cli_fail_fault(intake->cli, r));
	row->len = intake->texts.len - row->at;
	if (row->len > TASK_BYTES_MAX)
		intake_die(intake->cli, row->place, "the %s %s has %zu bytes; a task has at most %d",
			intake->noun, row->id, row->len, TASK_BYTES_MAX);
}

void intake_leave_out(struct intake *intake, const char *id, struct span title, const char *why)
{
	add_row(intake,
		(struct intake_row){.id = cli_text(intake->cli, "%s", id),
			.title = title_text(intake->cli, title),
			.why = why,
			.outcome = OUTCOME_LEFT_OUT});
	intake->left_out++;
}

void intake_begin_origin(struct json_object *task, struct json_object *metadata, struct json_object *origin,
	const char *system)
{
	json_put_key(task, "metadata");
	json_begin(metadata, task->buf);
	json_put_key(metadata, "importedFrom");
	json_begin(origin, task->buf);
	json_member_string(origin, "system", span_of(system));
}

void intake_end_origin(struct json_object *metadata, struct json_object *origin)
{
	json_end(origin);
	json_end(metadata);
}

/* ---- to the server ----------------------------------------------------------------------------------------------- */

/* "FIELD MESSAGE" of a refusal. */
static const char *refusal_sentence(struct cli *cli, yyjson_val *result)
{
	yyjson_val *error = yyjson_arr_get_first(field_get(result, "errors"));
	const char *detail = field_cstr(cli, result, "detail");

	if (error)
		return cli_text(
			cli, "%s %s", field_cstr(cli, error, "field"), field_cstr(cli, error, "message"));
	return detail[0] ? detail : field_cstr(cli, result, "code");
}

static void take_result(struct intake *intake, struct intake_row *row, yyjson_val *result)
{
	struct cli *cli = intake->cli;
	bool exists = span_equal(field_text(result, "code"), SPAN("task_exists"));

	if (!field_bool(result, "ok") && !exists)
		cli_die(cli, EXIT_FAILED, field_cstr(cli, result, "code"), NULL,
			"%s: the %s %s: %s; %llu tasks were added before it. Mend it and repeat the command: it goes on there",
			place_text(cli, row->place), intake->noun, row->id, refusal_sentence(cli, result),
			(unsigned long long)intake->imported);
	row->outcome = exists ? OUTCOME_EXISTS : OUTCOME_NEW;
	intake->imported += !exists;
	intake->existing += exists;
}

/* The rows from `from` on, as many as fit into a request. Returns the row behind them. */
static size_t send_slice(struct intake *intake, size_t from)
{
	struct json_object *body = cli_body(intake->cli);
	size_t until = from, i, limit, at = 0;
	bool any = false;
	yyjson_val *result;

	json_put_key(body, "tasks");
	buf_put_byte(body->buf, '[');
	for (; until < row_count(intake) && until - from < SLICE_ITEMS; until++) {
		const struct intake_row *row = row_at(intake, until);
		if (row->outcome == OUTCOME_LEFT_OUT)
			continue;
		if (any && body->buf->len + row->len > SLICE_BYTES)
			break;
		json_put_comma(body->buf, &any);
		buf_put(body->buf, intake->texts.data + row->at, row->len);
	}
	buf_put_byte(body->buf, ']');
	struct span text = cli_body_end(intake->cli);
	if (!any)
		return until;
	struct ask question = {.method = HTTP_METHOD_POST,
		.path = "/api/tasks/batch",
		.body = text,
		.may_repeat = true, /* an id that is there already stays as it is */
		.patience = 3};
	cleanup(reply_done) struct reply reply = server_need(intake->cli, &question);
	yyjson_arr_foreach(field_get(reply.root, "results"), i, limit, result)
	{
		while (from + at < until && row_at(intake, from + at)->outcome == OUTCOME_LEFT_OUT)
			at++;
		if (from + at < until)
			take_result(intake, row_at(intake, from + at++), result);
	}
	return until;
}

/* Is there a task of that id? */
static void look_for(struct intake *intake, struct intake_row *row)
{
	struct ask question = {
		.method = HTTP_METHOD_GET, .path = "/api/tasks/*", .names = {row->id}, .keeps_refusal = 404};

	if (row->outcome == OUTCOME_LEFT_OUT)
		return;
	cleanup(reply_done) struct reply reply = server_need(intake->cli, &question);
	row->outcome = reply.status == 404 ? OUTCOME_NEW : OUTCOME_EXISTS;
	intake->imported += reply.status == 404;
	intake->existing += reply.status != 404;
}

static void pass_all(struct intake *intake)
{
	for (size_t i = 0; i < row_count(intake);) {
		if (intake->dry_run)
			look_for(intake, row_at(intake, i++));
		else
			i = send_slice(intake, i);
		if (i % SLICE_ITEMS == 0)
			cli_progress(intake->cli, (int)(i * 100 / row_count(intake)),
				cli_text(intake->cli, "%zu %ss", i, intake->noun),
				intake->dry_run ? "looking" : "importing");
	}
}

/* ---- the answer ------------------------------------------------------------------------------------------------------ */

static const char *outcome_text(struct cli *cli, const struct intake *intake, const struct intake_row *row)
{
	switch (row->outcome) {
	case OUTCOME_NEW:
		return intake->dry_run ? "would be added" : "added";
	case OUTCOME_EXISTS:
		return "is there already";
	case OUTCOME_LEFT_OUT:
		return cli_text(cli, "left out: %s", row->why);
	}
	return "";
}

static const char *const outcome_words[] = {
	[OUTCOME_NEW] = "new", [OUTCOME_EXISTS] = "existing", [OUTCOME_LEFT_OUT] = "leftOut"};

static int put_json(struct intake *intake)
{
	cleanup(buf_done) struct buf json = {.max = JSON_BYTES_MAX};
	struct json_object object, task;
	bool any = false;

	json_begin(&object, &json);
	json_member_bool(&object, "dryRun", intake->dry_run);
	json_member_int(&object, "items", (int64_t)row_count(intake));
	json_member_int(&object, "imported", (int64_t)intake->imported);
	json_member_int(&object, "existing", (int64_t)intake->existing);
	json_member_int(&object, "leftOut", (int64_t)intake->left_out);
	json_put_key(&object, "tasks");
	buf_put_byte(&json, '[');
	for (size_t i = 0; i < row_count(intake); i++) {
		const struct intake_row *row = row_at(intake, i);
		json_put_comma(&json, &any);
		json_begin(&task, &json);
		json_member_string(&task, "id", span_of(row->id));
		json_member_string(&task, "title", span_of(row->title));
		json_member_string(&task, "outcome", span_of(outcome_words[row->outcome]));
		if (row->why)
			json_member_string(&task, "why", span_of(row->why));
		json_end(&task);
	}
	buf_put_byte(&json, ']');
	json_end(&object);
	return cli_put_json_buf(intake->cli, true, "import", &json);
}

static int put_text(struct intake *intake)
{
	struct cli *cli = intake->cli;
	const char *would = intake->dry_run ? "would be: " : "";

	for (size_t i = 0; i < row_count(intake) && (intake->dry_run || !cli->term.tty); i++) {
		const struct intake_row *row = row_at(intake, i);
		cli_put_line(cli, "%s\t%s\t%s", row->id, outcome_text(cli, intake, row), row->title);
	}
	cli_say(cli, "%s%llu of %zu %ss added, %llu there already, %llu left out", would,
		(unsigned long long)intake->imported, row_count(intake), intake->noun,
		(unsigned long long)intake->existing, (unsigned long long)intake->left_out);
	return EXIT_GOOD;
}

int intake_finish(struct intake *intake)
{
	pass_all(intake);
	return intake->cli->output == OUTPUT_JSON ? put_json(intake) : put_text(intake);
}
