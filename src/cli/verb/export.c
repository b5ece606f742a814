/*
 * stint export: tasks as lines of JSON, each the document of one task, as stint import tasks reads them.
 */
#include <string.h>

#include "base/take.h"
#include "cli/frame/cli.h"

enum {
	PAGE = 1000,
	QUERY_BYTES_MAX = 64 << 10,
};

static const struct flag flags[] = {
	{"queue", 'Q', FLAG_TEXT, OFFER_QUEUES, .value = "NAME", .text = "only of this queue"},
	{"label", 'l', FLAG_TEXT, .value = "LABEL", .text = "only with this label"},
	{"group", 'g', FLAG_TEXT, OFFER_GROUPS, .value = "GROUP", .text = "only of this group"},
	{"search", '/', FLAG_TEXT, .value = "TEXT", .text = "only with these words, as stint ls finds them"},
	{"all", 'a', FLAG_SWITCH, .text = "finished tasks, too"},
	{0},
};

static void put_filter(struct cli *cli, struct buf *query, const char *name, const char *value)
{
	if (value && value[0])
		buf_printf(query, "%s=%.*s&", name, SPAN_ARGS(cli_encode(cli, span_of(value))));
}

static struct span first_query(struct cli *cli)
{
	cleanup(buf_done) struct buf query = {0};

	buf_init(&query, QUERY_BYTES_MAX);
	if (!args_has(&cli->args, "all"))
		put_filter(cli, &query, "state",
			"pending,scheduled,waiting,ready,claimed,running,asking,review,blocked");
	put_filter(cli, &query, "queue", args_text(&cli->args, "queue"));
	put_filter(cli, &query, "label", args_text(&cli->args, "label"));
	put_filter(cli, &query, "group", args_text(&cli->args, "group"));
	put_filter(cli, &query, "q", args_text(&cli->args, "search"));
	buf_printf(&query, "limit=%d", PAGE);
	return span_of(cli_text(cli, "%.*s", SPAN_ARGS(cli_span(cli, &query))));
}

static int run(struct cli *cli)
{
	struct ask question = {.method = HTTP_METHOD_GET, .path = "/api/tasks", .query = first_query(cli)};
	bool is_json = cli->output == OUTPUT_JSON;
	int64_t count = 0;
	int r = 0;

	if (is_json)
		cli_put(cli, "{\"schema\":1,\"ok\":true,\"tasks\":[");
	while (r == 0 && question.query.len > 0) {
		cleanup(reply_done) struct reply reply = server_need(cli, &question);
		size_t at, tasks;
		yyjson_val *task;
		yyjson_arr_foreach(reply.root, at, tasks, task)
		{
			if (is_json && count > 0)
				cli_put(cli, ",");
			cli_put_value(cli, task);
			if (!is_json)
				cli_put(cli, "\n");
			count++;
		}
		question.query = reply.next;
		r = cli_flush(cli);
	}
	if (is_json)
		cli_put(cli, "]}\n");
	else if (r == 0)
		cli_say(cli, "%lld %s", (long long)count, count == 1 ? "task" : "tasks");
	return r;
}

const struct verb verb_export = {
	.name = "export",
	.gives = GIVES_JSON,
	.brief = "tasks as lines of JSON",
	.text = "Prints tasks as lines of JSON, each the whole document of a task: those that are not finished, or with --all every task. stint import tasks reads "
		"them. What changes while they are printed may be missing or be there as it was: for a copy of the whole store there is stint backup.",
	.flags = flags,
	.examples = "stint export > tasks.jsonl\n"
		    "stint export --queue ci --all\n",
	.run = run,
};
