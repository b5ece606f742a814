/*
 * stint backup, stint db query: a copy of the store while the server runs, and a look into it.
 */
#include <string.h>

#include "base/take.h"
#include "cli/verb/task_view.h"

enum {
	BACKUP_TIMEOUT_MS = 3600 * 1000,
};

static int run_backup(struct cli *cli)
{
	cli_member_text(cli_body(cli), "file", args_plain(&cli->args, 0));
	struct ask question = {.method = HTTP_METHOD_POST,
		.path = "/api/backup",
		.body = cli_body_end(cli),
		.timeout_ms = BACKUP_TIMEOUT_MS};
	cleanup(reply_done) struct reply reply = server_need(cli, &question);
	struct span path = field_text(reply.root, "path");
	if (cli->output == OUTPUT_JSON)
		cli_put_json(cli, "backup", reply.root);
	else
		cli_put(cli, "%.*s\n", SPAN_ARGS(path.len > 0 ? path : field_text(reply.root, "file")));
	cli_say(cli,
		"%lld bytes; with the server stopped, stintd --restore FILE makes a store of it again, and ends",
		(long long)field_int(reply.root, "bytes", 0));
	return 0;
}

const struct verb verb_backup = {
	.name = "backup",
	.arguments = "[NAME]",
	.gives = GIVES_JSON,
	.brief = "copy the store, live",
	.text = "Makes a copy of the store on the server's computer while it runs, in its directory of backups, and prints "
		"where it is. stintd --restore FILE, with the server stopped, makes a store of it again, and ends.",
	.examples = "stint backup\nstint backup before-upgrade.db\n",
	.run = run_backup,
};

/* ---- queries ---------------------------------------------------------------------------------------------------- */

static size_t read_columns(struct cli *cli, yyjson_val *names, struct column *ret_columns)
{
	size_t at, count, used = 0;
	yyjson_val *name;

	yyjson_arr_foreach(names, at, count, name)
	{
		if (used < TABLE_COLUMNS_MAX && yyjson_is_str(name))
			ret_columns[used++] = (struct column){
				.name = cli_text(cli, "%s", yyjson_get_str(name)), .shrinks = true};
	}
	return used;
}

static int put_result(struct cli *cli, yyjson_val *result)
{
	struct column columns[TABLE_COLUMNS_MAX];
	size_t width = read_columns(cli, field_get(result, "columns"), columns), at, count, cell, cells;
	yyjson_val *row, *value;
	struct table table;

	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "result", result);
	table_init(&table, columns, width, cli->term.utf8);
	yyjson_arr_foreach(field_get(result, "rows"), at, count, row)
	{
		table_row(&table);
		yyjson_arr_foreach(row, cell, cells, value)
		{
			if (cell < width && !yyjson_is_null(value))
				table_cell(&table, cell, view_any(cli, value), PAINT_NONE);
		}
	}
	int r = view_put_rows(cli, &table, "rows", field_get(result, "rows"), "id");
	table_done(&table);
	if (yyjson_arr_size(field_get(result, "columns")) > width)
		cli_say(cli, "… the first %zu columns; all of them with --json", width);
	if (field_bool(result, "truncated"))
		cli_say(cli, "… there are more rows: use LIMIT and OFFSET");
	return r;
}

static int run_query(struct cli *cli)
{
	const char *sql = args_plain(&cli->args, 0);
	struct span text = strcmp(sql, "-") == 0 ? cli_read_input(cli, "-") : span_of(sql);

	json_member_string(cli_body(cli), "sql", text);
	struct ask question = {.method = HTTP_METHOD_POST,
		.path = "/api/query",
		.body = cli_body_end(cli),
		.may_repeat = true};
	cleanup(reply_done) struct reply reply = server_need(cli, &question);
	return put_result(cli, reply.root);
}

const struct verb verb_db_query = {
	.name = "db query",
	.arguments = "SQL",
	.gives = GIVES_JSON | GIVES_ROWS,
	.brief = "look into the store",
	.text = "Asks the store in SQL. The tables are tasks, events, claims, and worker_registry and worker_task_claims of worker connectors. It reads only; the server ends a "
		"query that takes too long and cuts a result that is too large. With - the query is read from standard input.",
	.examples = "stint db query \"SELECT id, title, state FROM tasks WHERE queue = 'ci'\"\n"
		    "stint db query 'SELECT type, count(*) FROM events GROUP BY type'\n"
		    "stint db query 'SELECT * FROM worker_registry'\n",
	.run = run_query,
};
