/*
 * What only admins do to the server as a whole: a backup, and questions in the store's own language. Both leave an
 * event before anything is done; the audit of what was looked at is worth as much as the answer.
 */
#include "api/form.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/take.h"

enum {
	SQL_BYTES_MAX = 60000,
	SQL_AUDITED_MAX = 2000,     /* bytes of a question that its event repeats */
	ANSWER_BYTES_MAX = 4 << 20, /* then no more rows are told */
	BACKUP_NAME_MAX = 128,
};

#define EXACT_MAX (INT64_C(1) << 53) /* larger numbers lose digits in many readers of JSON */

#define BACKUP_RUNS "A backup is being made; try again when it is complete."
#define NO_ROOM     "There is no room for the backup; what was written of it was removed."

/* ---- backup --------------------------------------------------------------------------------------------- */

struct backup_body {
	struct span file;
};

static const struct field backup_fields[] = {
	FIELD(backup_body, file, "file", FIELD_NAME, .max = BACKUP_NAME_MAX),
};

/* A name and no path: letters, digits, '.', '_' and '-', and nothing that hides or that we use ourselves. */
static bool is_file_name(struct span name)
{
	static const char partial[] = ".partial";
	size_t tail = sizeof partial - 1;

	for (size_t i = 0; i < name.len; i++) {
		char byte = name.data[i];
		if (!isalnum((unsigned char)byte) && byte != '.' && byte != '_' && byte != '-')
			return false;
	}
	if (name.len >= tail && memcmp(name.data + name.len - tail, partial, tail) == 0)
		return false;
	return name.len > 0 && isalnum((unsigned char)name.data[0]);
}

void backup_begin(struct api_call *call)
{
	const struct api_services *host = call->host;
	struct backup_body body = {0};

	if (!form_read_body(call, FIELDS(backup_fields), &body) ||
		!call_require_field(call, body.file.len == 0 || is_file_name(body.file), "file",
			"must be a name without a path: letters, digits, '.', '_' or '-', beginning with a letter or digit") ||
		!call_require(call, !host->is_backing_up || !host->is_backing_up(host->context),
			REFUSED_BACKUP_RUNNING, BACKUP_RUNS))
		return;
	call->backup_file = body.file;
	call_audit_begin(call, "", (struct span){0}, body.file);
}

void backup_finish(struct api_call *call, const struct result *results)
{
	if (!call_is_refused(call, &results[0]))
		call->step = API_BACKUP;
}

static void refuse_backup(struct api_call *call, int fault)
{
	static const struct {
		int fault;
		enum refusal refusal;
		const char *detail;
	} rows[] = {
		{-EALREADY, REFUSED_BACKUP_RUNNING, BACKUP_RUNS},
		{-EEXIST, REFUSED_BACKUP_EXISTS, "There is a backup of that name; it stays as it is."},
		{-ENOSPC, REFUSED_UNAVAILABLE, NO_ROOM},
		{-EDQUOT, REFUSED_UNAVAILABLE, NO_ROOM},
		{-ECANCELED, REFUSED_UNAVAILABLE, "The server is stopping; what was written was removed."},
		{-ENOTSUP, REFUSED_UNAVAILABLE,
			"This store makes no backups here; PostgreSQL has its own tools (pg_dump, pg_basebackup)."},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (rows[i].fault == fault) {
			api_refuse(call, rows[i].refusal, rows[i].detail);
			return;
		}
	}
	api_refuse(call, REFUSED_UNAVAILABLE,
		"The backup could not be written; what was written of it was removed. The server's log says why.");
}

void api_finish_backup(struct api_call *call, int fault, const struct backup_made *made)
{
	struct json_object object;

	assert(call->step == API_BACKUP);
	call->step = API_REPLY;
	if (fault < 0) {
		refuse_backup(call, fault);
		return;
	}
	json_begin(&object, call->body);
	json_member_string(&object, "file", made->file);
	json_member_string(&object, "path", made->path);
	json_member_int(&object, "bytes", made->bytes);
	json_member_int(&object, "lastEvent", made->last_event);
	call_reply(call, 201, json_end(&object));
}

/* ---- questions ------------------------------------------------------------------------------------------- */

struct query_body {
	struct span sql;
	yyjson_val *params;
};

static const struct field query_fields[] = {
	FIELD_MUST_BE(query_body, sql, "sql", FIELD_TEXT, .max = SQL_BYTES_MAX),
	FIELD(query_body, params, "params", FIELD_NODE, .max = 0),
};

static bool read_param(yyjson_val *value, struct cell *ret_cell)
{
	double real;

	if (yyjson_is_null(value)) {
		*ret_cell = (struct cell){.kind = CELL_NULL};
	} else if (yyjson_is_bool(value)) {
		*ret_cell = (struct cell){.kind = CELL_INT, .integer = yyjson_get_bool(value)};
	} else if (yyjson_is_sint(value) || (yyjson_is_uint(value) && yyjson_get_uint(value) <= INT64_MAX)) {
		*ret_cell = (struct cell){.kind = CELL_INT, .integer = yyjson_get_sint(value)};
	} else if (json_number(value, &real)) {
		*ret_cell = (struct cell){.kind = CELL_REAL, .real = real};
	} else if (yyjson_is_str(value)) {
		*ret_cell = (struct cell){.kind = CELL_TEXT, .text = json_text(value)};
	} else {
		return false;
	}
	return true;
}

static void read_params(struct form *form, yyjson_val *params, struct admin_query *question)
{
	size_t count = yyjson_arr_size(params), i, max;
	yyjson_val *value;

	if (!params)
		return;
	if (!yyjson_is_arr(params) || count > ADMIN_QUERY_PARAMS_MAX) {
		form_error(form, "params", "must be a list of up to %d values", ADMIN_QUERY_PARAMS_MAX);
		return;
	}
	struct cell *cells = arena_alloc(form->arena, (count + 1) * sizeof *cells);
	if (!cells) {
		form_short(form, -ENOMEM);
		return;
	}
	yyjson_arr_foreach(params, i, max, value)
	{
		if (!read_param(value, &cells[i]))
			form_error(form, "params", "must be strings, numbers, true, false or null");
	}
	question->params = cells;
	question->param_count = (uint32_t)count;
}

void query_begin(struct api_call *call)
{
	struct query_body body = {0};
	struct admin_query *question = call_detail(call, sizeof *question);
	cleanup(form_done) struct form form = {0};

	if (!question || !form_open(&form, call, false))
		return;
	*question = (struct admin_query){.rows_max = ADMIN_QUERY_ROWS_MAX};
	form_read(&form, form.root, FIELDS(query_fields), &body);
	read_params(&form, body.params, question);
	if (!form_is_good(&form))
		return;
	question->text = body.sql;
	if (body.sql.len > SQL_AUDITED_MAX)
		body.sql.len = SQL_AUDITED_MAX;
	call_audit_begin(call, "sql", body.sql, (struct span){0});
}

struct answer {
	struct buf *out;
	bool any;
};

static int put_columns(void *context, const struct span *names, uint32_t count)
{
	struct buf *out = ((struct answer *)context)->out;

	buf_printf(out, "{\"columns\":");
	json_put_strings(out, names, count);
	buf_printf(out, ",\"rows\":[");
	return buf_fault(out);
}

static int put_int(struct buf *out, int64_t value)
{
	const char *quote = value > EXACT_MAX || value < -EXACT_MAX ? "\"" : "";

	return buf_printf(out, "%s%lld%s", quote, (long long)value, quote);
}

static int put_cell(struct buf *out, const struct cell *cell)
{
	switch (cell->kind) {
	case CELL_NULL:
		break;
	case CELL_INT:
		return put_int(out, cell->integer);
	case CELL_REAL:
		if (!isfinite(cell->real))
			break; /* JSON has no word for it */
		return buf_printf(out, "%.17g", cell->real);
	case CELL_TEXT:
		return json_put_string(out, cell->text);
	case CELL_BYTES: {
		buf_printf(out, "{\"base64\":");
		json_put_base64(out, cell->text);
		buf_put_byte(out, '}');
		return buf_fault(out);
	}
	}
	return buf_printf(out, "null");
}

static int put_row(void *context, const struct cell *cells, uint32_t count)
{
	struct answer *answer = context;
	struct buf *out = answer->out;

	if (out->len > ANSWER_BYTES_MAX)
		return 1;
	buf_printf(out, answer->any ? ",[" : "[");
	answer->any = true;
	for (uint32_t i = 0; i < count; i++) {
		if (i > 0)
			buf_put_byte(out, ',');
		put_cell(out, &cells[i]);
	}
	buf_put_byte(out, ']');
	return buf_fault(out);
}

static void refuse_query(struct api_call *call, int fault, const struct admin_query *question)
{
	char message[ADMIN_QUERY_COMPLAINT_MAX + 100];

	buf_clear(call->body);
	switch (fault) {
	case -ETIME:
		snprintf(message, sizeof message, "ran longer than %d ms and was ended; ask for less",
			ADMIN_QUERY_RUN_MS);
		call_refuse_field(call, "sql", message);
		break;
	case -EINVAL:
	case -EPERM:
	case -E2BIG:
		snprintf(message, sizeof message, "cannot be answered: %s",
			question->complaint[0] ? question->complaint : "the answer is too large");
		call_refuse_field(call, "sql", message);
		break;
	case -ENOTSUP:
		api_refuse(call, REFUSED_UNAVAILABLE,
			"This store is not asked here; PostgreSQL is asked with psql.");
		break;
	default:
		api_refuse(call, REFUSED_UNAVAILABLE, "The store cannot be read.");
	}
}

void query_finish(struct api_call *call, const struct result *results)
{
	const struct api_services *host = call->host;
	struct admin_query *question = call->detail;
	struct answer answer = {.out = call->body};

	if (call_is_refused(call, &results[0]))
		return;
	question->columns = put_columns;
	question->row = put_row;
	question->context = &answer;
	int r = host->ask ? host->ask(host->context, question) : -ENOTSUP;
	if (r < 0)
		refuse_query(call, r, question);
	else
		call_reply(call, 200,
			buf_printf(
				call->body, "],\"truncated\":%s}", question->truncated ? "true" : "false"));
}
