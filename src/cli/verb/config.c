/*
 * stint config: what the server would be told by the files, the environment and the flags as they are here and now, and
 * who said it. It reads what stintd reads, the same way; it does not ask a server.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/take.h"
#include "cli/verb/task_view.h"
#include "config/config.h"

#define WHICH                                                                               \
	{"home", 0, FLAG_TEXT, OFFER_FILES, .value = "DIR", .text = "the state directory"}, \
		{"config", 0, FLAG_TEXT, OFFER_FILES, .value = "FILE", .text = "instead of the files"}

static const struct flag show_flags[] = {
	{"origin", 0, FLAG_SWITCH,
		.text = "also where each comes from: a flag, a variable, a line of a file, or the default"},
	WHICH,
	{"set", 0, FLAG_TEXT, .many = true, .value = "KEY=VALUE",
		.text = "as if stintd were started with it"},
	{0},
};

static const struct flag path_flags[] = {
	WHICH,
	{0},
};

/* 0, or the ending. */
static int read_sets(struct cli *cli, struct config_sets *sets)
{
	const char *set;
	size_t at = 0;

	while ((set = args_each(&cli->args, "set", &at))) {
		int r = config_sets_take(sets, set);
		if (r == -E2BIG)
			return cli_fail(cli, EXIT_USAGE, "usage", NULL, "too many settings");
		if (r < 0)
			return cli_fail(cli, EXIT_USAGE, "usage",
				"stint config show --set task.crashBudget=4",
				"--set takes KEY=VALUE, not \"%s\"", set);
	}
	return 0;
}

enum { C_KEY, C_VALUE, C_ORIGIN, C_COUNT };

static const struct column columns[C_COUNT] = {
	[C_KEY] = {.name = "KEY"},
	[C_VALUE] = {.name = "VALUE", .shrinks = true},
	[C_ORIGIN] = {.name = "ORIGIN", .shrinks = true},
};

static void add_row(struct cli *cli, struct table *table, const char *name, const char *text,
	const struct config_origin *from)
{
	cleanup(buf_done) struct buf origin = {0};

	buf_init(&origin, 8192);
	config_put_origin(&origin, from);
	table_row(table);
	table_cell(table, C_KEY, span_of(name), PAINT_BOLD);
	table_cell(table, C_VALUE, span_of(text), PAINT_NONE);
	if (table->column_count > C_ORIGIN)
		table_cell(table, C_ORIGIN, cli_span(cli, &origin),
			from->source == CONFIG_DEFAULT ? PAINT_DIM : PAINT_CYAN);
}

/* What is in the same files for a worker: `stint up` starts one with it. */
static void add_foreign(struct cli *cli, struct table *table, const struct config *config)
{
	for (uint32_t i = 0; i < config->foreign_count; i++) {
		const struct config_foreign *key = &config->foreign[i];
		add_row(cli, table, key->name,
			key->names[0] ? key->names : cli_text(cli, "(read by %s)", key->program),
			&key->where);
	}
}

static int put_config(struct cli *cli, const struct config *config)
{
	struct table table;

	table_init(&table, columns, args_has(&cli->args, "origin") ? C_COUNT : C_ORIGIN, cli->term.utf8);
	add_row(cli, &table, "home", config->home.text, &config->home.origin);
	for (int key = 0; key < CONFIG_KEY_COUNT; key++)
		add_row(cli, &table, config_keys[key].name, config->values[key].text,
			&config->values[key].origin);
	add_foreign(cli, &table, config);
	int r = view_put_rows(cli, &table, "keys", NULL, "key");
	table_done(&table);
	return r;
}

static int put_config_json(struct cli *cli, const struct config *config)
{
	cleanup(buf_done) struct buf json = {0};

	buf_init(&json, 4 << 20);
	config_put_json(&json, config);
	return cli_put_json_buf(cli, config->problem_count == 0, "config", &json);
}

static int run_show(struct cli *cli)
{
	cleanup(config_done) struct config config = {0};
	cleanup(buf_done) struct buf problems = {0};
	struct config_sets sets = {0};

	int r = read_sets(cli, &sets);
	if (r != 0)
		return r;
	struct config_request request = {.home = args_text(&cli->args, "home"),
		.file = args_text(&cli->args, "config"),
		.flags = sets.flags,
		.flag_count = sets.count};
	config_read(&config, &request);
	r = cli->output == OUTPUT_JSON ? put_config_json(cli, &config) : put_config(cli, &config);
	if (r != 0 || config.problem_count == 0)
		return r;
	buf_init(&problems, 1 << 20);
	config_put_problems(&problems, &config, "stint: ");
	cli_flush(cli);
	fprintf(stderr, "%.*s", SPAN_ARGS(cli_span(cli, &problems)));
	return EXIT_FAILED;
}

const struct verb verb_config_show = {
	.name = "config show",
	.gives = NEEDS_NO_SERVER | GIVES_JSON,
	.brief = "every setting in force",
	.text = "Prints every setting that a server started here and now would have, from files, environment and flags; with "
		"--origin, where each comes from. Last come the roots, executors and queues that the same files have for a worker, by "
		"name; `stint worker run --check-config` checks them and prints what they say. Exit status 1 when something in them is wrong. A server that runs already has what it "
		"was started with.",
	.flags = show_flags,
	.examples = "stint config show --origin\nstint config show --set task.crashBudget=4 --json\n",
	.run = run_show,
};

/* ---- paths --------------------------------------------------------------------------------------------- */

static void put_path(struct cli *cli, struct buf *json, const char *path)
{
	bool there = access(path, F_OK) == 0;
	struct json_object object;

	if (cli->output != OUTPUT_JSON) {
		cli_put(cli, "%s\t%s\n", path, there ? "there" : "not there");
		return;
	}
	buf_put_byte(json, json->len == 0 ? '[' : ',');
	json_begin(&object, json);
	json_member_string(&object, "path", span_of(path));
	json_member_bool(&object, "exists", there);
	json_end(&object);
}

static int run_path(struct cli *cli)
{
	const char *file = args_text(&cli->args, "config");
	cleanup(buf_done) struct buf json = {0};
	char home[1024], user[4096];

	int r = file ? 0 : place_home(cli, home, sizeof home);
	if (r != 0)
		return r;
	buf_init(&json, 64 << 10);
	put_path(cli, &json, file ? file : cli_text(cli, "%s/config.json", home));
	if (!file && config_user_file(user, sizeof user))
		put_path(cli, &json, user);
	if (!file)
		put_path(cli, &json, "/etc/stint/config.json");
	if (cli->output != OUTPUT_JSON)
		return EXIT_GOOD;
	buf_put_byte(&json, ']');
	return cli_put_json_buf(cli, true, "files", &json);
}

const struct verb verb_config_path = {
	.name = "config path",
	.gives = NEEDS_NO_SERVER | GIVES_JSON,
	.brief = "the files it comes from",
	.text = "Prints the files of the configuration, the one that wins first, and whether they are there.",
	.flags = path_flags,
	.examples = "stint config path\n",
	.run = run_path,
};

/* ---- schema -------------------------------------------------------------------------------------------- */

static int run_schema(struct cli *cli)
{
	cleanup(buf_done) struct buf json = {0};

	buf_init(&json, 1 << 20);
	config_put_schema(&json);
	if (cli->output == OUTPUT_JSON)
		return cli_put_json_buf(cli, true, "document", &json);
	cli_put(cli, "%.*s\n", SPAN_ARGS(cli_span(cli, &json)));
	return EXIT_GOOD;
}

const struct verb verb_config_schema = {
	.name = "config schema",
	.gives = NEEDS_NO_SERVER | GIVES_JSON,
	.brief = "what a file may say",
	.text = "Prints a JSON Schema of config.json. An editor that finds it, by a member \"$schema\" in the file, "
		"checks what is written and explains the keys. With --json, it is the member \"document\".",
	.examples = "stint config schema > config.schema.json\n",
	.run = run_schema,
};
