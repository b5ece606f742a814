/*
 * stint show: one task as a whole: what it is, why it is where it is, what it said, and what happened to it.
 */
#include <inttypes.h>
#include <string.h>

#include "base/take.h"
#include "cli/verb/story.h"
#include "cli/verb/task_view.h"
#include "cli/verb/tree.h"

enum {
	PAGES_MAX = 1000, /* of events looked at; the server goes through some thousands for each */
	LABEL_WIDTH = 13,
	LISTED_MAX = 5, /* of a list of files or links */
	EVENTS_BYTES_MAX = 256 << 20,
	TREE_BYTES_MAX = 1 << 20,
};

static const struct flag flags[] = {
	{"no-timeline", 0, FLAG_SWITCH, .text = "leave out the timeline"},
	{0},
};

/* ---- lines ------------------------------------------------------------------------------------------------------ */

static void put_label(struct cli *cli, const char *label)
{
	cli_put(cli, "%s%-*s%s", term_paint(cli->term.color, PAINT_DIM), LABEL_WIDTH, label,
		term_plain(cli->term.color, PAINT_DIM));
}

static void put_text(struct cli *cli, const char *label, struct span text)
{
	if (text.len == 0)
		return;
	put_label(cli, label);
	cli_put_line(cli, "%.*s", SPAN_ARGS(text));
}

/* A time: how long ago, and when. */
static void put_time(struct cli *cli, const char *label, int64_t moment_ms)
{
	if (moment_ms == 0)
		return;
	put_label(cli, label);
	if (cli->exact)
		cli_put(cli, "%.*s\n", SPAN_ARGS(view_clock(cli, moment_ms)));
	else
		cli_put(cli, "%.*s  (%.*s)\n", SPAN_ARGS(view_relative(cli, moment_ms)),
			SPAN_ARGS(view_clock(cli, moment_ms)));
}

static bool are_texts(yyjson_val *list)
{
	size_t at, count;
	yyjson_val *item;

	yyjson_arr_foreach(list, at, count, item)
	{
		if (!yyjson_is_str(item))
			return false;
	}
	return yyjson_is_arr(list);
}

/* A string that has several lines stands below its label; texts of a list have commas between them. */
static void put_any(struct cli *cli, const char *label, yyjson_val *value)
{
	if (!value || yyjson_is_null(value) || (yyjson_is_arr(value) && yyjson_arr_size(value) == 0))
		return;
	if (are_texts(value)) {
		put_text(cli, label, span_of(cli_join(cli, value, ", ")));
		return;
	}
	struct span text = view_any(cli, value);
	if (!yyjson_is_str(value) || !memchr(text.data, '\n', text.len)) {
		put_text(cli, label, text);
		return;
	}
	put_label(cli, label);
	cli_put(cli, "\n");
	cli_put_lines(cli, text, "  ");
}

static void put_error(struct cli *cli, yyjson_val *error)
{
	if (!yyjson_is_obj(error))
		return;
	put_label(cli, "error");
	cli_put_painted(cli, PAINT_RED, field_text(error, "code"));
	cli_put_line(cli, "  %s  (%s)", field_cstr(cli, error, "message"), field_cstr(cli, error, "class"));
}

static void put_question(struct cli *cli, yyjson_val *task)
{
	yyjson_val *question = field_get(task, "question");
	bool open = span_equal(field_text(task, "state"), SPAN("asking"));

	put_any(cli, open ? "asks" : "asked", field_get(question, "text"));
	if (open) {
		put_any(cli, "tool", field_get(question, "tool"));
		put_any(cli, "input", field_get(question, "input"));
		put_any(cli, "options", field_get(question, "options"));
		put_time(cli, "answer by", field_int(question, "deadline", 0));
	}
	yyjson_val *answer = field_get(task, "answer"), *text = field_get(answer, "text");
	if (text || !answer)
		put_any(cli, "answer", text);
	else
		put_text(cli, "answer",
			span_of(field_bool(answer, "late")           ? "no: nobody answered in time"
					: field_bool(answer, "deny") ? "no"
					: span_equal(field_text(answer, "allow"), SPAN("task"))
					? "allowed for this task"
					: "allowed once"));
}

static void put_stage(struct cli *cli, yyjson_val *task)
{
	const char *workflow = field_cstr(cli, task, "workflow");

	if (workflow[0])
		put_text(cli, "workflow",
			span_of(cli_text(cli, "%s, at stage %.*s", workflow,
				SPAN_ARGS(view_or_dash(field_text(task, "stage"))))));
}

/* "● running  t-1  title", and why it is there. */
static void put_head(struct cli *cli, yyjson_val *task, yyjson_val *why)
{
	struct state_mark mark = view_state_mark(cli, field_text(task, "state"));
	const char *command = field_cstr(cli, why, "try");

	cli_put_painted(cli, mark.paint, mark.text);
	cli_put(cli, "%s  ", field_bool(task, "stopping") ? " (stopping)" : "");
	cli_put_painted(cli, PAINT_BOLD, field_text(task, "id"));
	cli_put_line(cli, "  %s", field_cstr(cli, task, "title"));
	cli_put_sentence(cli, 2, "%s", field_cstr(cli, why, "text"));
	if (command[0])
		view_put_try(cli, command);
}

/* "a.c, b.c and 3 more" */
static const char *some_of(struct cli *cli, yyjson_val *list)
{
	const char *text = "";
	size_t at, count;
	yyjson_val *item;

	yyjson_arr_foreach(list, at, count, item)
	{
		if (at == LISTED_MAX)
			return cli_text(cli, "%s and %zu more", text, count - at);
		text = cli_text(cli, "%s%s%.*s", text, at > 0 ? ", " : "", SPAN_ARGS(json_text(item)));
	}
	return text;
}

/* "$0.12, 5.2k tokens in, 310 out, 3 turns": what the agents of all attempts have used. */
static const char *used_text(struct cli *cli, yyjson_val *usage)
{
	int64_t in = field_int(usage, "inputTokens", 0) + field_int(usage, "cacheReadTokens", 0) +
		field_int(usage, "cacheWriteTokens", 0);
	int64_t out = field_int(usage, "outputTokens", 0), turns = field_int(usage, "turns", 0);
	double usd = 0;
	bool known = json_number(yyjson_obj_get(usage, "usd"), &usd);
	const char *money = !known      ? "price unknown"
		: usd > 0 && usd < 0.01 ? "under $0.01"
					: cli_text(cli, "$%.2f", usd);

	return cli_text(cli, "%s; %" PRId64 " tokens in, %" PRId64 " out; %" PRId64 " %s", money, in, out,
		turns, turns == 1 ? "turn" : "turns");
}

/* What the work has left: where it is, and what it has cost. */
static void put_evidence(struct cli *cli, yyjson_val *task)
{
	yyjson_val *evidence = field_get(task, "evidence"), *usage = field_get(task, "usage");

	put_text(cli, "branch", field_text(evidence, "branch"));
	put_text(cli, "files", span_of(some_of(cli, field_get(evidence, "files"))));
	put_text(cli, "links", span_of(some_of(cli, field_get(evidence, "links"))));
	put_text(cli, "undelivered", field_text(evidence, "undelivered"));
	if (yyjson_is_obj(usage))
		put_text(cli, "used", span_of(used_text(cli, usage)));
}

static void put_body(struct cli *cli, yyjson_val *task)
{
	put_evidence(cli, task);
	put_text(cli, "queue", field_text(task, "queue"));
	put_any(cli, "priority", field_get(task, "priority"));
	put_any(cli, "owner", field_get(task, "owner"));
	put_any(cli, "executor", field_get(task, "executor"));
	put_any(cli, "module", field_get(task, "module"));
	put_any(cli, "isolation", field_get(task, "isolationLevel"));
	put_any(cli, "requires", field_get(task, "requires"));
	put_any(cli, "labels", field_get(task, "labels"));
	put_any(cli, "unique", field_get(task, "uniqueKey"));
	put_any(cli, "replaced by", field_get(task, "supersededBy"));
	put_any(cli, "concurrency key", field_get(task, "concurrencyKey"));
	put_any(cli, "credential", field_get(task, "credential"));
	put_any(cli, "after", field_get(task, "blockedBy"));
	put_stage(cli, task);
	put_any(cli, "gates", field_get(task, "gates"));
	put_any(cli, "passed", field_get(task, "gatesPassed"));
	put_any(cli, "work dir", field_get(task, "workingDir"));
	put_any(cli, "model", field_get(task, "model"));
	put_any(cli, "thinking", field_get(task, "thinking"));
	put_text(cli, "timeout", view_duration(cli, field_int(task, "timeoutMs", 0)));
	put_label(cli, "attempts");
	cli_put(cli, "%lld, %lld of %lld failures spent\n", (long long)field_int(task, "attempt", 0),
		(long long)field_int(task, "spent", 0), (long long)field_int(task, "maxAttempts", 0));
	if (field_text(task, "workerId").len > 0)
		put_text(cli, "worker",
			span_of(cli_text(cli, "%s, lease %.*s", field_cstr(cli, task, "workerId"),
				SPAN_ARGS(view_duration(cli, field_int(task, "leaseMs", 0))))));
	put_any(cli, "session", field_get(task, "sessionId"));
	put_time(cli, "created", field_int(task, "createdAt", 0));
	put_time(cli, "changed", field_int(task, "updatedAt", 0));
	put_time(cli, "not before", field_int(task, "notBefore", 0));
	put_time(cli, "start by", field_int(task, "startBy", 0));
	put_time(cli, "finish by", field_int(task, "finishBy", 0));
	put_any(cli, "description", field_get(task, "description"));
	put_any(cli, "instructions", field_get(task, "instructions"));
	put_any(cli, "steps", field_get(task, "steps"));
	put_any(cli, "deliverables", field_get(task, "deliverables"));
	put_any(cli, "payload", field_get(task, "payload"));
	put_any(cli, "metadata", field_get(task, "metadata"));
}

/* ---- what happened ---------------------------------------------------------------------------------------------- */

/* The first events of the task as a list in JSON, page by page. */
static void read_events(struct cli *cli, const char *id, struct buf *list)
{
	struct ask question = {.method = HTTP_METHOD_GET, .path = "/api/tasks/*/events", .names = {id}};
	const char *after = "";
	int read = 0;

	buf_put_byte(list, '[');
	for (int page = 0; page < PAGES_MAX && read < STORY_EVENTS_MAX; page++) {
		size_t at, count;
		yyjson_val *event;
		question.query =
			after[0] ? span_of(cli_text(cli, "limit=200&after=%s", after)) : SPAN("limit=200");
		cleanup(reply_done) struct reply reply = server_need(cli, &question);
		yyjson_arr_foreach(field_get(reply.root, "events"), at, count, event)
		{
			if (read++ > 0)
				buf_put_byte(list, ',');
			json_put_value(list, event);
		}
		const char *next = field_cstr(cli, reply.root, "next");
		if (!next[0] || strcmp(next, after) == 0)
			break;
		after = next;
	}
	buf_put_byte(list, ']');
}

/* ---- the verb ---------------------------------------------------------------------------------------------------- */

static void show_json(struct cli *cli, const char *id, yyjson_val *task, yyjson_val *why)
{
	cleanup(buf_done) struct buf events = {0};

	buf_init(&events, EVENTS_BYTES_MAX);
	cli_put(cli, "{\"schema\":1,\"ok\":true,\"task\":");
	cli_put_value(cli, task);
	cli_put(cli, ",\"why\":");
	json_put_value(&cli->out, why);
	if (!args_has(&cli->args, "no-timeline")) {
		read_events(cli, id, &events);
		cli_put(cli, ",\"events\":");
		buf_put_span(&cli->out, cli_span(cli, &events));
	}
	if (yyjson_arr_size(field_get(task, "children")) > 0) {
		cleanup(buf_done) struct buf tree = {0};
		buf_init(&tree, TREE_BYTES_MAX);
		tree_read(cli, task, &tree);
		cli_put(cli, ",\"subtasks\":");
		buf_put_span(&cli->out, cli_span(cli, &tree));
	}
	cli_put(cli, "}\n");
}

static void put_subtasks(struct cli *cli, yyjson_val *task)
{
	cleanup(buf_done) struct buf tree = {0};
	size_t children = yyjson_arr_size(field_get(task, "children"));

	if (children == 0)
		return;
	buf_init(&tree, TREE_BYTES_MAX);
	tree_read(cli, task, &tree);
	yyjson_doc *doc = cli_read_made(cli, &tree);
	tree_put(cli, yyjson_doc_get_root(doc), children);
	yyjson_doc_free(doc);
}

static void put_story(struct cli *cli, const char *id, yyjson_val *task)
{
	struct story story = {.failures_max = field_int(task, "maxAttempts", 0)};
	cleanup(buf_done) struct buf events = {0};
	size_t at, count;
	yyjson_val *event;

	buf_init(&events, EVENTS_BYTES_MAX);
	read_events(cli, id, &events);
	yyjson_doc *doc = cli_read_made(cli, &events);
	yyjson_arr_foreach(yyjson_doc_get_root(doc), at, count, event)
	{
		if (story.count < STORY_EVENTS_MAX)
			story.events[story.count++] = event;
	}
	story_put_attempts(cli, &story);
	story_put_timeline(cli, &story);
	yyjson_doc_free(doc);
}

/* First what became of it, then what it is. */
static void show_people(struct cli *cli, const char *id, yyjson_val *task, yyjson_val *why)
{
	put_head(cli, task, why);
	if (!args_has(&cli->args, "no-timeline"))
		put_story(cli, id, task);
	put_subtasks(cli, task);
	cli_put(cli, "\n");
	put_error(cli, field_get(task, "error"));
	put_any(cli, "result", field_get(task, "result"));
	put_question(cli, task);
	put_body(cli, task);
}

static int run(struct cli *cli)
{
	cleanup(reply_done) struct reply task = {0};

	int r = server_get_task(cli, args_plain(&cli->args, 0), &task);
	if (r != 0)
		return r;
	const char *id = field_cstr(cli, task.root, "id");
	cleanup(reply_done) struct reply why = server_get(cli, "/api/tasks/*/why", id);
	(cli->output == OUTPUT_JSON ? show_json : show_people)(cli, id, task.root, why.root);
	return 0;
}

const struct verb verb_show = {
	.name = "show",
	.arguments = "ID",
	.offer = OFFER_TASKS,
	.gives = GIVES_JSON | GIVES_AGAIN,
	.pages = true,
	.brief = "one task, its timeline",
	.text = "Shows one task: what it is, why it is where it is, its result or error, what happened to it, and the tree of its subtasks.",
	.flags = flags,
	.examples = "stint show t-7k3\n"
		    "stint show t-7k3 --json=result\n",
	.run = run,
};
