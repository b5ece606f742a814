/*
 * stint add: queue a task, or a checklist of them. Every request carries a key, ours if the caller gave none, so
 * that one whose reply was lost is sent again and makes no second task.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/take.h"
#include "base/utf8.h"
#include "cli/verb/checklist.h"
#include "cli/verb/new_task.h"
#include "cli/verb/task_view.h"

enum {
	PARENTS_MAX = 100, /* tasks that one may wait for: the server takes no more */
	PARENTS_ROOM = CHECKLIST_ITEMS_MAX + CHECKLIST_DEPTH_MAX,
	TITLE_BYTES_MAX = 200, /* of a title that is the first line of a text */
};

static const struct flag flags[] = {
	NEW_TASK_FLAGS,
	{"agent", 0, FLAG_TEXT, .value = "NAME",
		.text = "the agent that does it: see stint agent ls. With --cwd in a git repository it gets a work tree of its own"},
	{"with-changes", 0, FLAG_SWITCH,
		.text = "the work tree of --agent begins with the changes here that are not committed"},
	{"stdin", 0, FLAG_SWITCH,
		.text = "the command reads what stands on standard input here, up to a MiB"},
	{"payload", 0, FLAG_JSON, OFFER_FILES, .value = "JSON",
		.text = "data for the worker: JSON, @FILE or -", .member = "payload"},
	{"module", 0, FLAG_TEXT, .value = "NAME",
		.text = "the part of that executor that runs it: see docs/pool.md", .member = "module"},
	{0},
};

/* ---- one task ------------------------------------------------------------------------------------------------ */

static struct span first_line(struct span text)
{
	while (text.len > 0 && strchr(" \t\r\n#", text.data[0]))
		text = (struct span){text.data + 1, text.len - 1};
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] == '\n' || text.data[i] == '\r')
			text.len = i;
	}
	return utf8_cut(text, TITLE_BYTES_MAX);
}

static bool is_blank(struct span text)
{
	while (text.len > 0 && strchr(" \t\r\n", text.data[text.len - 1]))
		text.len--;
	return text.len == 0;
}

static int add_one(struct cli *cli, const struct defaults *defaults, const char *const *words)
{
	const char *title = cli->args.before_dashes > 0 ? args_plain(&cli->args, 0) : NULL;
	const char *file = args_text(&cli->args, "file");
	const char *key = args_text(&cli->args, "key");
	struct new_task entry = {.title = span_of(title), .defaults = defaults, .words = words};
	cleanup(reply_done) struct reply reply = {0};

	if (words && args_has(&cli->args, "payload"))
		return cli_fail(cli, EXIT_USAGE, "usage", "stint help add",
			"a command is the payload of its task: leave out --payload, or the command");
	if (args_has(&cli->args, "stdin") && (!words || (file && strcmp(file, "-") == 0)))
		return cli_fail(cli, EXIT_USAGE, "usage", "stint help add",
			"--stdin is for a command behind --, and --file must be another file");
	if (args_has(&cli->args, "stdin"))
		entry.input = new_task_input(cli);
	if (file)
		entry.text = cli_read_input(cli, file);
	if (!title && file)
		entry.title = first_line(entry.text);
	if (is_blank(entry.title) && (title || !words))
		return cli_fail(cli, EXIT_USAGE, "usage", "stint add \"say hello\" --no-cwd -- echo hello",
			"a task needs a title, a file whose first line is one, or a command behind --");
	int r = new_task_add(cli, &entry, key ? key : cli_random_key(cli), &reply);
	if (r != 0)
		return r;
	new_task_tell_warnings(cli, reply.root);
	return new_task_put(cli, reply.root);
}

/* ---- a checklist --------------------------------------------------------------------------------------------- */

/* Children before their parents, and what comes first before what comes after: each names only tasks that exist. The
 * order is that of the file, with every parent moved behind the last thing below it. */
static uint32_t order(const struct checklist *list, uint32_t *ret_order)
{
	uint32_t count = 0, open[CHECKLIST_DEPTH_MAX], depth = 0;

	for (uint32_t i = 0; i <= list->count; i++) {
		int32_t parent = i < list->count ? list->items[i].parent : CHECKLIST_NONE;
		while (depth > 0 && (i == list->count || (int32_t)open[depth - 1] != parent))
			ret_order[count++] = open[--depth];
		if (i < list->count)
			open[depth++] = i;
	}
	return count;
}

struct making {
	struct cli *cli;
	const struct defaults *defaults;
	const struct checklist *list;
	struct span *ids; /* of the tasks that were made */
	const char *key;
	uint32_t count;  /* of items that are not done */
	struct buf made; /* JSON, with commas between */
};

/* The nearest task before an item; items that are done already have no task. NULL: no task before it. */
static const struct span *made_before(const struct making *making, int32_t item)
{
	int32_t before = making->list->items[item].before;

	while (before != CHECKLIST_NONE && making->ids[before].len == 0)
		before = making->list->items[before].before;
	return before != CHECKLIST_NONE ? &making->ids[before] : NULL;
}

/* What an item waits for: all that lies below it, the number before it, and the numbers before the items above it. */
static uint32_t parents_of(const struct making *making, uint32_t item, struct span *ret_parents)
{
	const struct checklist *list = making->list;
	uint32_t count = 0;

	for (uint32_t i = 0; i < list->count; i++) {
		if (list->items[i].parent == (int32_t)item && making->ids[i].len > 0)
			ret_parents[count++] = making->ids[i];
	}
	for (int32_t at = (int32_t)item; at != CHECKLIST_NONE; at = list->items[at].parent) {
		const struct span *before = made_before(making, at);
		if (before && count < PARENTS_ROOM)
			ret_parents[count++] = *before;
	}
	return count;
}

static uint32_t count_names(const struct args *args, const char *flag)
{
	struct args_names walk = {0};
	struct span name;
	uint32_t count = 0;

	while (args_each_name(args, flag, &walk, &name))
		count++;
	return count;
}

/* Before the first request: the server would refuse an item that waits for too many, and half of the list would be there. */
static int check_parents(struct making *making)
{
	const struct checklist *list = making->list;
	uint32_t named = count_names(&making->cli->args, "after");
	struct span parents[PARENTS_ROOM];
	int r = 0;

	for (uint32_t i = 0; i < list->count; i++)
		making->ids[i] = list->items[i].done ? (struct span){0} : SPAN("?"); /* as if it were made */
	for (uint32_t i = 0; r == 0 && i < list->count; i++) {
		uint32_t count = named + parents_of(making, i, parents);
		if (!list->items[i].done && count > PARENTS_MAX)
			r = cli_fail(making->cli, EXIT_USAGE, "invalid", "stint help add",
				"line %u of the checklist waits for %u tasks, and a task can wait for %d: put some of them below an "
				"item of their own",
				list->items[i].line, count, PARENTS_MAX);
	}
	memset(making->ids, 0, list->count * sizeof *making->ids);
	return r;
}

static int make_item(struct making *making, uint32_t item)
{
	struct cli *cli = making->cli;
	const struct checklist_item *what = &making->list->items[item];
	struct span parents[PARENTS_ROOM];
	uint32_t count = parents_of(making, item, parents);
	struct reply reply;

	struct new_task entry = {.title = what->title,
		.text = what->text,
		.parents = parents,
		.parent_count = count,
		.defaults = making->defaults};
	int r = new_task_add(
		cli, &entry, making->key ? cli_text(cli, "%s/%u", making->key, item) : NULL, &reply);
	if (r != 0) {
		cli_say(cli, "stint: line %u was not added, nor what comes after it", what->line);
		return r;
	}
	making->ids[item] = span_of(field_cstr(cli, reply.root, "id"));
	if (making->made.len > 0)
		buf_put_byte(&making->made, ',');
	json_put_value(&making->made, reply.root);
	if (cli->output != OUTPUT_JSON && making->count <= CHANGES_TOLD)
		r = new_task_put(cli, reply.root);
	else if (cli->output != OUTPUT_JSON)
		cli_put_change(cli, making->count, making->ids[item].data, "");
	reply_done(&reply);
	return r;
}

static int make_all(struct making *making, const uint32_t *sequence, uint32_t count)
{
	int r = 0;

	for (uint32_t i = 0; i < count; i++)
		making->count += !making->list->items[sequence[i]].done;
	for (uint32_t i = 0; r == 0 && i < count; i++) {
		if (!making->list->items[sequence[i]].done)
			r = make_item(making, sequence[i]);
	}
	if (making->cli->output == OUTPUT_JSON && r == 0) {
		cli_put(making->cli, "{\"schema\":1,\"ok\":true,\"tasks\":[");
		buf_put_span(&making->cli->out, cli_span(making->cli, &making->made));
		cli_put(making->cli, "]}\n");
	} else if (making->cli->term.tty && r == 0 && making->count > CHANGES_TOLD) {
		cli_put(making->cli, "%u tasks added\n", making->count);
	}
	return r;
}

static int add_checklist(struct cli *cli, const struct defaults *defaults)
{
	const char *file = args_text(&cli->args, "file"), *key = args_text(&cli->args, "key");
	struct checklist list = {0};
	struct checklist_complaint complaint;

	if (args_has(&cli->args, "id") || args_has(&cli->args, "unique") || args_has(&cli->args, "payload"))
		return cli_fail(cli, EXIT_USAGE, "usage", "stint help add",
			"--id, --unique and --payload are for one task, not for a checklist");
	int r = checklist_parse(cli_read_input(cli, file ? file : "-"), &cli->arena, &list, &complaint);
	if (r == -EINVAL && complaint.line > 0)
		return cli_fail(cli, EXIT_USAGE, "invalid", "stint help add", "line %u of the checklist %s",
			complaint.line, complaint.reason);
	if (r == -EINVAL)
		return cli_fail(
			cli, EXIT_USAGE, "invalid", "stint help add", "the checklist: %s", complaint.reason);
	struct making making = {
		.cli = cli, .defaults = defaults, .list = &list, .key = key ? key : cli_random_key(cli)};
	uint32_t *sequence = arena_alloc(&cli->arena, (list.count + 1) * sizeof *sequence);
	making.ids = arena_alloc(&cli->arena, (list.count + 1) * sizeof *making.ids);
	if (r < 0 || !sequence || !making.ids)
		return cli_fail_fault(cli, r < 0 ? r : -ENOMEM);
	buf_init(&making.made, 64 << 20);
	r = check_parents(&making);
	if (r == 0)
		r = make_all(&making, sequence, order(&list, sequence));
	buf_done(&making.made);
	return r;
}

static int run(struct cli *cli)
{
	const struct args *args = &cli->args;
	const char *title = args->before_dashes > 0 ? args_plain(args, 0) : NULL;
	struct defaults defaults = defaults_read(cli);
	const char *const *words = new_task_words(cli, args->before_dashes);

	if (!title || strcmp(title, "-") != 0)
		return add_one(cli, &defaults, words);
	if (words)
		return cli_fail(cli, EXIT_USAGE, "usage", "stint help add",
			"a checklist makes tasks of its items, and a command is one task: add them one by one");
	return add_checklist(cli, &defaults);
}

const struct verb verb_add = {
	.name = "add",
	.arguments = "[TITLE|-] [-- COMMAND...]",
	.most = 1000,
	.gives = GIVES_JSON,
	.brief = "queue a task",
	.text = "Queues a task and prints its id, or on a terminal where it stands. With a command behind -- the task is to run that "
		"command, in this directory, with the executor \"shell\" that the worker of stint up has; no shell reads it: write sh -c for "
		"one. stint run does the same and waits.\n"
		"\n"
		"With - as its title it reads a Markdown checklist, from standard input or from the file of --file, and makes a task of "
		"every open item. An item waits for everything that is indented below it; numbered items run one after the other, "
		"bullets side by side; items with [x] are skipped. The flags apply to each task. If a checklist fails half-way, repeat "
		"the command with the same --key: it goes on where it stopped.\n"
		"\n"
		"In a git repository .stint/config.json may set the default queue, executor and labels. The file comes with the "
		"clone and is not trusted with more: any other key in it is an error.",
	.flags = flags,
	.examples = "stint add \"nightly tests\" --not-before 30m --max-attempts 2 -- make test\n"
		    "stint add \"port to C23\" --after t-7k3 --priority high --timeout 1h\n"
		    "stint add \"say hello\" --queue demo --payload '{\"name\":\"world\"}'\n"
		    "stint add -f instructions.md --needs gpu --label nightly\n"
		    "stint add \"look at what came in\" --executor claude --isolation sandbox --cwd ~/inbox\n"
		    "printf -- '- [ ] release\\n  - [ ] build\\n  - [ ] test\\n' | stint add -\n",
	.run = run,
};
