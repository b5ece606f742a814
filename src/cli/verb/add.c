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
#include "cli/frame/defaults.h"
#include "cli/verb/task_view.h"

enum {
	PARENTS_BYTES_MAX = 16 << 20,
	PARENTS_MAX = 100, /* tasks that one may wait for: the server takes no more */
	PARENTS_ROOM = CHECKLIST_ITEMS_MAX + CHECKLIST_DEPTH_MAX,
	TITLE_BYTES_MAX = 200, /* of a title that is the first line of a text */
};

static const struct flag flags[] = {
	{"queue", 'Q', FLAG_TEXT, OFFER_QUEUES, .value = "NAME", .text = "the queue (default \"default\")",
		.member = "queue"},
	{"file", 'f', FLAG_TEXT, OFFER_FILES, .value = "FILE",
		.text = "instructions from a file; - is standard input"},
	{"payload", 0, FLAG_JSON, OFFER_FILES, .value = "JSON",
		.text = "data for the worker: JSON, @FILE or -", .member = "payload"},
	{"priority", 'p', FLAG_PRIORITY, .value = "N",
		.text = "higher first; or urgent, high, normal, low, P0 to P3", .member = "priority"},
	{"after", 0, FLAG_NAMES, OFFER_TASKS, true, .value = "ID,…",
		.text = "not before these tasks are done"},
	{"not-before", 0, FLAG_MOMENT, .value = "TIME",
		.text = "not before that: 30m from now, or 2026-12-31T18:00", .member = "notBefore"},
	{"start-by", 0, FLAG_MOMENT, .value = "TIME",
		.text = "the task fails if no worker has started it by then", .member = "startBy"},
	{"finish-by", 0, FLAG_MOMENT, .value = "TIME", .text = "the task fails if it is not done by then",
		.member = "finishBy"},
	{"timeout", 0, FLAG_DURATION, .value = "TIME", .text = "time limit of one attempt (default 30m)",
		.member = "timeoutMs"},
	{"max-attempts", 0, FLAG_NUMBER, .value = "N", .text = "failures before it is given up (default 3)",
		.least = 1, .most = 1000000, .member = "maxAttempts"},
	{"needs", 0, FLAG_NAMES, .many = true, .value = "CAP,…",
		.text = "capabilities that a worker must have", .member = "requires"},
	{"executor", 'x', FLAG_TEXT, .value = "NAME", .text = "the executor that runs it",
		.member = "executor"},
	{"module", 0, FLAG_TEXT, .value = "NAME",
		.text = "the part of that executor that runs it: see docs/pool.md", .member = "module"},
	{"isolation", 0, FLAG_TEXT, OFFER_LEVELS, .value = "LEVEL",
		.text = "at least that: process, sandbox, container or vm; see docs/isolation.md",
		.member = "isolationLevel"},
	{"owner", 0, FLAG_TEXT, OFFER_SLOTS, .value = "SLOT", .text = "only for the worker in this slot",
		.member = "owner"},
	{"label", 'l', FLAG_NAMES, .many = true, .value = "LABEL,…", .text = "labels to find it by",
		.member = "labels"},
	{"cwd", 0, FLAG_TEXT, OFFER_FILES, .value = "DIR",
		.text = "the directory to work in; a relative path starts here"},
	{"id", 0, FLAG_TEXT, .value = "ID", .text = "the id of the new task; an id that exists is refused",
		.member = "id"},
	{"unique", 'u', FLAG_TEXT, .value = "KEY",
		.text = "at most one unfinished task of this key: adding again gives that one",
		.member = "uniqueKey"},
	{"key", 'k', FLAG_TEXT, .value = "KEY",
		.text = "the same key again within a day gives the same task"},
	{"workflow", 0, FLAG_TEXT, OFFER_WORKFLOWS, .value = "NAME",
		.text = "its stages: see stint workflow ls", .member = "workflow"},
	{"gate", 0, FLAG_NAMES, .many = true, .value = "NAME,…",
		.text = "it is done only when somebody has approved it at each gate: see stint approve",
		.member = "gates"},
	{"hold", 0, FLAG_SWITCH, .text = "park it: no worker gets it before stint unpark"},
	{0},
};

/* ---- the document ------------------------------------------------------------------------------------------ */

/* The tasks of --after, and the tasks that the checklist puts before this one. */
static void put_parents(
	struct cli *cli, struct json_object *task, const struct span *more, uint32_t more_count)
{
	cleanup(buf_done) struct buf list = {0};

	buf_init(&list, PARENTS_BYTES_MAX);
	buf_put_byte(&list, '[');
	cli_put_names(&list, &cli->args, "after");
	for (uint32_t i = 0; i < more_count; i++) {
		if (list.len > 1)
			buf_put_byte(&list, ',');
		json_put_string(&list, more[i]);
	}
	buf_put_byte(&list, ']');
	if (cli_span(cli, &list).len > 2)
		json_member_raw(task, "blockedBy", buf_span(&list));
}

/* What one task has beside the flags, which count for all of them. */
struct new_task {
	struct span title, text;
	const struct span *parents;
	uint32_t parent_count;
	const struct defaults *defaults;
};

static void put_task(struct cli *cli, struct json_object *task, const struct new_task *entry)
{
	const struct args *args = &cli->args;
	const struct defaults *defaults = entry->defaults;

	if (entry->title.len > 0)
		json_member_string(task, "title", entry->title);
	if (entry->text.len > 0)
		json_member_string(task, "instructions", entry->text);
	if (args_text(args, "cwd"))
		cli_member_text(task, "workingDir", cli_path(cli, args_text(args, "cwd")));
	if (!args_has(args, "queue"))
		cli_member_text(task, "queue", defaults->queue);
	if (!args_has(args, "executor"))
		cli_member_text(task, "executor", defaults->executor);
	if (!args_has(args, "label") && defaults->labels.len > 0)
		json_member_raw(task, "labels", defaults->labels);
	put_parents(cli, task, entry->parents, entry->parent_count);
	if (args_has(args, "hold"))
		json_member_string(task, "state", SPAN("pending"));
	cli_member_flags(cli, task);
}

/* ---- the request -------------------------------------------------------------------------------------------- */

static int create(struct cli *cli, const struct new_task *entry, const char *key, struct reply *ret_reply)
{
	put_task(cli, cli_body(cli), entry);
	struct ask question = {
		.method = HTTP_METHOD_POST,
		.path = "/api/tasks",
		.body = cli_body_end(cli),
		.key = span_of(key),
		.may_repeat = key != NULL,
	};
	return server_ask(cli, &question, ret_reply);
}

static void tell_warnings(struct cli *cli, yyjson_val *task)
{
	size_t at, count;
	yyjson_val *warning;

	yyjson_arr_foreach(field_get(task, "warnings"), at, count, warning)
	{
		cli_say(cli, "stint: %s", yyjson_get_str(warning));
	}
}

/* What came out otherwise than it was asked for, or cannot come out well. */
static void tell_times(struct cli *cli, yyjson_val *task)
{
	static const char *const ends[] = {"start-by", "finish-by"};
	int64_t timeout_ms = field_int(task, "timeoutMs", 0);

	if (args_number(&cli->args, "timeout", 0) > timeout_ms)
		cli_say(cli, "stint: %.*s is the longest that the server allows one attempt to run",
			SPAN_ARGS(view_duration(cli, timeout_ms)));
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		if (args_number(&cli->args, ends[i], INT64_MAX) <= cli->now_ms)
			cli_say(cli, "stint: --%s has passed already: the task fails at once", ends[i]);
	}
}

static void tell_created(struct cli *cli, yyjson_val *task)
{
	struct span id = field_text(task, "id"), state = field_text(task, "state"),
		    queue = field_text(task, "queue");

	tell_warnings(cli, task);
	if (!field_bool(task, "deduplicated"))
		tell_times(cli, task);
	if (cli->term.talk_tty)
		cli_say(cli, "%s: %.*s in queue %.*s; stint why %.*s says what it waits for",
			field_bool(task, "deduplicated") ? "there already" : "queued", SPAN_ARGS(state),
			SPAN_ARGS(queue), SPAN_ARGS(id));
}

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

static int add_one(struct cli *cli, const struct defaults *defaults)
{
	const char *title = args_plain(&cli->args, 0), *file = args_text(&cli->args, "file");
	const char *key = args_text(&cli->args, "key");
	struct new_task entry = {.title = span_of(title), .defaults = defaults};
	cleanup(reply_done) struct reply reply = {0};

	if (file)
		entry.text = cli_read_input(cli, file);
	if (!title)
		entry.title = first_line(entry.text);
	if (is_blank(entry.title))
		return cli_fail(cli, EXIT_USAGE, "usage", "stint add \"say hello\" --queue demo",
			"a task needs a title, or a file whose first line is one");
	int r = create(cli, &entry, key ? key : cli_random_key(cli), &reply);
	if (r != 0)
		return r;
	tell_created(cli, reply.root);
	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "task", reply.root);
	cli_put(cli, "%.*s\n", SPAN_ARGS(field_text(reply.root, "id")));
	return 0;
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

	struct new_task entry = {what->title, what->text, parents, count, making->defaults};
	int r = create(cli, &entry, making->key ? cli_text(cli, "%s/%u", making->key, item) : NULL, &reply);
	if (r != 0) {
		cli_say(cli, "stint: line %u was not added, nor what comes after it", what->line);
		return r;
	}
	making->ids[item] = span_of(field_cstr(cli, reply.root, "id"));
	if (making->made.len > 0)
		buf_put_byte(&making->made, ',');
	json_put_value(&making->made, reply.root);
	if (cli->output != OUTPUT_JSON)
		view_put_task(cli, reply.root);
	reply_done(&reply);
	return 0;
}

static int make_all(struct making *making, const uint32_t *sequence, uint32_t count)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < count; i++) {
		if (!making->list->items[sequence[i]].done)
			r = make_item(making, sequence[i]);
	}
	if (making->cli->output == OUTPUT_JSON && r == 0) {
		cli_put(making->cli, "{\"schema\":1,\"ok\":true,\"tasks\":[");
		buf_put_span(&making->cli->out, cli_span(making->cli, &making->made));
		cli_put(making->cli, "]}\n");
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
	const char *title = args_plain(&cli->args, 0);
	struct defaults defaults = defaults_read(cli);

	return title && strcmp(title, "-") == 0 ? add_checklist(cli, &defaults) : add_one(cli, &defaults);
}

const struct verb verb_add = {
	.name = "add",
	.arguments = "[TITLE|-]",
	.gives = GIVES_JSON,
	.brief = "queue a task",
	.text = "Queues a task and prints its id. With - it reads a Markdown checklist, from standard input or from the file "
		"of --file, and makes a task of every open item. An item waits for everything that is indented below it; "
		"numbered items run one after the other, bullets side by side; items with [x] are skipped. The flags apply to "
		"each task.\n"
		"\n"
		"If a checklist fails half-way, repeat the command with the same --key: it goes on where it stopped.\n"
		"\n"
		"In a git repository .stint/config.json may set the default queue, executor and labels. The file comes with the "
		"clone and is not trusted with more: any other key in it is an error.",
	.flags = flags,
	.examples = "stint add \"say hello\" --queue demo --payload '{\"name\":\"world\"}'\n"
		    "stint add \"port to C23\" --after t-7k3 --priority high --timeout 1h\n"
		    "stint add -f instructions.md --needs gpu --label nightly\n"
		    "stint add \"look at what came in\" --executor claude --isolation sandbox --cwd ~/inbox\n"
		    "printf -- '- [ ] release\\n  - [ ] build\\n  - [ ] test\\n' | stint add -\n",
	.run = run,
};
