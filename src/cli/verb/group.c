/*
 * stint group: tasks that belong together, counted by state.
 */
#include <string.h>

#include "base/take.h"
#include "cli/frame/text.h"
#include "cli/verb/bulk.h"
#include "cli/verb/group_view.h"
#include "cli/verb/task_view.h"

enum {
	FAILED_SHOWN = 10, /* members whose failure is shown */
	SHOW_BAR = 24,
};

static struct span is_closed(struct cli *cli, yyjson_val *group)
{
	(void)cli;
	if (field_bool(group, "ended"))
		return SPAN("ended");
	return field_bool(group, "closed") ? SPAN("closed") : SPAN("open");
}

static struct span failed(struct cli *cli, yyjson_val *group)
{
	yyjson_val *counts = field_get(group, "counts");
	int64_t count = field_int(counts, "failed", 0) + field_int(counts, "cancelled", 0);

	return count > 0 ? span_of(cli_text(cli, "%lld", (long long)count)) : (struct span){0};
}

static const struct column columns[] = {
	{"GROUP", "name", .paint = PAINT_BOLD, .shrinks = true},
	{"STATE", .make = is_closed},
	{"TASKS", "tasks", COLUMN_NUMBER, .right = true},
	{"OPEN", "open", COLUMN_NUMBER, .right = true},
	{"FAILED", .make = failed, .right = true},
};

static const struct list_view groups = {
	.path = "/api/groups",
	.key = "groups",
	.id = "name",
	VIEW_COLUMNS(columns),
	.none = "No groups.",
};

const struct verb verb_group_ls = {
	.name = "group ls",
	.gives = GIVES_JSON | GIVES_ROWS | GIVES_AGAIN,
	.brief = "all groups",
	.text = "Lists the groups: whether each is open, closed or has ended, how many tasks it has had, how many of these have not ended, "
		"and how many failed or were cancelled.",
	.examples = "stint group ls\n",
	.list = &groups,
};

const char *group_counts(struct cli *cli, yyjson_val *group)
{
	static const char *const states[] = {"done", "running", "claimed", "asking", "review", "ready",
		"waiting", "scheduled", "pending", "blocked", "failed", "cancelled"};
	yyjson_val *counts = field_get(group, "counts");
	const char *text = "";

	for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
		int64_t count = field_int(counts, states[i], 0);
		if (count > 0)
			text = cli_text(
				cli, "%s%s%lld %s", text, text[0] ? ", " : "", (long long)count, states[i]);
	}
	return text[0] ? text : "no tasks";
}

const char *group_left(struct cli *cli, yyjson_val *group, int64_t spent_ms, int64_t ended_before)
{
	int64_t tasks = field_int(group, "tasks", 0), open = field_int(group, "open", 0);
	int64_t ended = tasks - open - ended_before;

	if (open == 0 || ended <= 0 || spent_ms <= 0)
		return NULL;
	double left_ms = (double)spent_ms * (double)open / (double)ended;
	return left_ms < 1000 ? NULL
			      : cli_text(cli, "about %.*s", SPAN_ARGS(view_duration(cli, (int64_t)left_ms)));
}

void group_put_failed(struct cli *cli, const char *name)
{
	struct ask question = {.method = HTTP_METHOD_GET,
		.path = "/api/tasks",
		.query = span_of(cli_text(cli, "group=%.*s&state=failed,cancelled,blocked&limit=%d",
			SPAN_ARGS(cli_encode(cli, span_of(name))), FAILED_SHOWN)),
		.optional = true};
	cleanup(reply_done) struct reply reply = {0};
	size_t at, count;
	yyjson_val *task;

	if (server_ask(cli, &question, &reply) != 0)
		return;
	yyjson_arr_foreach(reply.root, at, count, task)
	{
		const char *id = field_cstr(cli, task, "id");
		const char *error = field_cstr(cli, field_get(task, "error"), "message");
		struct state_mark mark = view_state_mark(cli, field_text(task, "state"));
		cli_put_painted(cli, mark.paint, mark.text);
		cli_put_sentence(cli, text_width(mark.text) + 2 + strlen(id) + 2, "  %s  %s", id,
			error[0] ? error : field_cstr(cli, task, "title"));
	}
}

/* How far it is, as a bar, and how long the rest takes. */
static const char *progress_of(struct cli *cli, yyjson_val *group)
{
	int64_t tasks = field_int(group, "tasks", 0), open = field_int(group, "open", 0);
	const char *left =
		group_left(cli, group, cli->now_ms - field_int(group, "createdAt", cli->now_ms), 0);

	if (!cli->term.tty || open == 0)
		return "";
	return cli_text(cli, "  %.*s%s%s%s", SPAN_ARGS(view_bar(cli, tasks - open, tasks, SHOW_BAR)),
		left ? "  " : "", left ? left : "", left ? " left" : "");
}

static int run_show(struct cli *cli)
{
	const char *name = args_plain(&cli->args, 0);
	cleanup(reply_done) struct reply reply = server_get(cli, "/api/groups/*", name);
	long long tasks = field_int(reply.root, "tasks", 0), open = field_int(reply.root, "open", 0);

	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "group", reply.root);
	struct span state = is_closed(cli, reply.root);
	if (span_equal(state, SPAN("ended")))
		cli_put(cli, "%s has ended\n", name);
	else
		cli_put(cli, "%s is %.*s, %lld of %lld ended%s\n", name, SPAN_ARGS(state), tasks - open,
			tasks, progress_of(cli, reply.root));
	cli_put(cli, "%s\n", group_counts(cli, reply.root));
	if (cli->term.tty)
		group_put_failed(cli, name);
	return 0;
}

const struct verb verb_group_show = {
	.name = "group show",
	.arguments = "GROUP",
	.offer = OFFER_GROUPS,
	.gives = GIVES_JSON,
	.brief = "how far it is",
	.text = "Shows whether the group is open, closed or has ended, how long the rest takes at the pace so far, its tasks by state, and "
		"why tasks of it failed or are blocked. Tasks that retention has removed stay counted.",
	.examples = "stint group show nightly\nstint ls --group nightly --all\n",
	.run = run_show,
};

const struct verb verb_group_close = {
	.name = "group close",
	.arguments = "GROUP...",
	.most = 100,
	.offer = OFFER_GROUPS,
	.gives = GIVES_JSON,
	.brief = "nothing more is added",
	.text = "No task joins the group after this. When its last task has ended, the group has ended, and what waits for it goes on; if "
		"one of its tasks failed or was cancelled, what waits for it is blocked.",
	.examples = "stint group close nightly\n",
	.change = &(const struct change){"group", "/api/groups/*/close",
		.done = "is closed: nothing more is added"},
};

static void put_nothing(struct cli *cli, struct json_object *body)
{
	(void)cli;
	(void)body;
}

static int run_many(struct cli *cli)
{
	const char *action = cli->verb->name + strlen("group ");
	struct bulk_run run = {cli_text(cli, "/api/groups/*/%s", action), args_plain(&cli->args, 0),
		bulk_words_of(span_of(action)), put_nothing};

	return bulk_go(cli, &run);
}

const struct verb verb_group_cancel = {
	.name = "group cancel",
	.arguments = "GROUP",
	.offer = OFFER_GROUPS,
	.gives = GIVES_JSON,
	.brief = "cancel its tasks",
	.text = "Cancels all tasks of the group that have not ended, as a bulk action: says how many, asks, and waits until the end. Ctrl-C "
		"leaves the work to the server.",
	.flags = bulk_group_flags,
	.examples = "stint group cancel nightly --yes\n",
	.run = run_many,
};

const struct verb verb_group_retry = {
	.name = "group retry",
	.arguments = "GROUP",
	.offer = OFFER_GROUPS,
	.gives = GIVES_JSON,
	.brief = "retry its tasks",
	.text = "Retries all tasks of the group that are blocked, failed or cancelled, as a bulk action: says how many, asks, and waits until "
		"the end. Ctrl-C leaves the work to the server.",
	.flags = bulk_group_flags,
	.examples = "stint group retry nightly --yes\n",
	.run = run_many,
};

const struct verb verb_group_rm = {
	.name = "group rm",
	.arguments = "GROUP...",
	.most = 100,
	.offer = OFFER_GROUPS,
	.gives = GIVES_JSON,
	.brief = "free the name",
	.text = "Removes a group that has ended. Its tasks stay; the name may begin another group.",
	.examples = "stint group rm nightly\n",
	.change = &(const struct change){"group", "/api/groups/*", .deletes = true,
		.done = "is removed: its name is free"},
};
