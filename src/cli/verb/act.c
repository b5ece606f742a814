/*
 * stint workflow act: what a worker runs for the tasks that a workflow begins. It reads such a task on its standard input, with the
 * work that it is about ("judges"), and does it with git and gh.
 *
 *	create_pr   pushes the branch, opens a pull request unless one is open, and waits for its checks
 *	merge       merges that pull request
 *
 * A judgement (validate) and a look at what was deployed (verify) are somebody else's: an agent's, or a command's.
 */
#include <string.h>

#include "base/take.h"
#include "base/utf8.h"
#include "cli/frame/spawn.h"
#include "cli/verb/new_task.h"
#include "cli/verb/task_view.h"

enum {
	OUTPUT_BYTES_MAX = 1 << 20,
	TITLE_BYTES = 200,
	TEXT_BYTES = 16 << 10,
	STATUS_NEVER = 78, /* of a command of a worker: do not try again */
};

struct act {
	struct cli *cli;
	yyjson_val *judged;
	const char *branch;  /* NULL: the work has none */
	const char *request; /* address of its pull request, else the branch */
};

/* What cannot be done however often it is tried. */
static _Noreturn void die(struct cli *cli, const char *what)
{
	cli_fail(cli, EXIT_FAILED, "cannot_act", NULL, "%s", what);
	cli_exit(cli, STATUS_NEVER);
}

/* A program of a few words; what it complains of is heard. Its status. */
static int hear(const char *const *argv, struct buf *out)
{
	buf_init(out, OUTPUT_BYTES_MAX);
	return spawn_and_hear(argv, out);
}

static void must(struct act *act, const char *const *argv, struct buf *out)
{
	int status = hear(argv, out);

	if (status == 127 || status == -1)
		die(act->cli, cli_text(act->cli, "cannot run %s", argv[0]));
	if (status != 0)
		cli_die(act->cli, EXIT_FAILED, "failed", NULL, "%s %s ended with status %d", argv[0], argv[1],
			status);
}

/* The last line that is not empty. */
static const char *last_line(struct act *act, const struct buf *out)
{
	struct span text = buf_span(out);

	while (text.len > 0 && strchr(" \t\r\n", text.data[text.len - 1]))
		text.len--;
	for (size_t i = text.len; i > 0; i--)
		if (text.data[i - 1] == '\n')
			return cli_text(act->cli, "%.*s", (int)(text.len - i), text.data + i);
	return cli_text(act->cli, "%.*s", SPAN_ARGS(text));
}

static bool is_request(struct span link)
{
	return memmem(link.data, link.len, "/pull/", 6) || memmem(link.data, link.len, "/pulls/", 7);
}

/* What its work reported of a branch and a pull request. */
static void find_work(struct act *act)
{
	yyjson_val *evidence = field_get(act->judged, "evidence"), *link;
	struct span branch = field_text(evidence, "branch"),
		    told = field_text(field_get(act->judged, "metadata"), "pr_url");
	size_t i, count;

	if (branch.len > 0 && branch.data[0] != '-')
		act->branch = cli_text(act->cli, "%.*s", SPAN_ARGS(branch));
	if (told.len > 0 && told.data[0] != '-')
		act->request = cli_text(act->cli, "%.*s", SPAN_ARGS(told));
	yyjson_arr_foreach(field_get(evidence, "links"), i, count, link)
	{
		struct span text = json_text(link);
		if (is_request(text) && text.data[0] != '-')
			act->request = cli_text(act->cli, "%.*s", SPAN_ARGS(text));
	}
	if (!act->request)
		act->request = act->branch;
	if (!act->request)
		die(act->cli, "the work names no branch and no pull request");
}

static void push(struct act *act)
{
	cleanup(buf_done) struct buf out = {0};

	must(act,
		(const char *const[]){"git", "push", "--quiet", "--force-with-lease", "origin",
			cli_text(act->cli, "refs/heads/%s:refs/heads/%s", act->branch, act->branch), NULL},
		&out);
}

static void find_request(struct act *act)
{
	cleanup(buf_done) struct buf out = {0};

	must(act,
		(const char *const[]){"gh", "pr", "list", "--head", act->branch, "--state", "open", "--limit",
			"1", "--json", "url", NULL},
		&out);
	yyjson_doc *doc = cli_read_made(act->cli, &out);
	struct span url = field_text(yyjson_arr_get_first(yyjson_doc_get_root(doc)), "url");
	if (url.len > 0)
		act->request = cli_text(act->cli, "%.*s", SPAN_ARGS(url));
	yyjson_doc_free(doc);
}

static const char *first_line(struct act *act, struct span text)
{
	const char *newline = text.len > 0 ? memchr(text.data, '\n', text.len) : NULL;

	return cli_text(act->cli, "%.*s", (int)(newline ? newline - text.data : (ptrdiff_t)text.len),
		text.len > 0 ? text.data : "");
}

static void create_request(struct act *act)
{
	cleanup(buf_done) struct buf out = {0};
	struct span title = utf8_cut(field_text(act->judged, "title"), TITLE_BYTES),
		    said = utf8_cut(field_text(act->judged, "result"), TEXT_BYTES),
		    id = field_text(act->judged, "id");

	must(act,
		(const char *const[]){"gh", "pr", "create", "--head", act->branch, "--title",
			first_line(act, title), "--body",
			cli_text(act->cli, "%.*s\n\nTask %.*s of stint.\n", SPAN_ARGS(said), SPAN_ARGS(id)),
			NULL},
		&out);
	act->request = last_line(act, &out);
}

/* The checks of the code host decide: a repository that has none has passed them. */
static bool wait_for_checks(struct act *act)
{
	cleanup(buf_done) struct buf out = {0};
	cleanup(buf_done) struct buf list = {0};

	int status = hear(
		(const char *const[]){"gh", "pr", "checks", act->request, "--watch", "--fail-fast", NULL},
		&out);
	if (status == 0)
		return true;
	/* which of the two it is, it says on standard error alone */
	status = hear((const char *const[]){"gh", "pr", "view", act->request, "--json", "statusCheckRollup",
			      "--jq", ".statusCheckRollup | length", NULL},
		&list);
	return status == 0 && strcmp(last_line(act, &list), "0") == 0;
}

/* To the server, by the token of the claim: the work itself says why it failed, and the worker ends the attempt. */
static _Noreturn void fail_checks(struct act *act)
{
	cleanup(buf_done) struct buf out = {0};
	const char *message = cli_text(act->cli, "the checks of %s have failed", act->request);

	hear((const char *const[]){act->cli->program, "task", "fail", message, "--code", "CHECK_FAILED",
		     "--no-retry", NULL},
		&out);
	cli_die(act->cli, EXIT_FAILED, "CHECK_FAILED", NULL, "%s", message);
}

static int create_pr(struct act *act)
{
	if (act->branch) {
		push(act);
		find_request(act);
		if (strcmp(act->request, act->branch) == 0)
			create_request(act);
	}
	if (!wait_for_checks(act))
		fail_checks(act);
	return 0;
}

static int merge(struct act *act)
{
	cleanup(buf_done) struct buf out = {0};
	const char *way = args_text(&act->cli->args, "strategy");

	must(act,
		(const char *const[]){"gh", "pr", "merge", act->request,
			cli_text(act->cli, "--%s", way ? way : "merge"), NULL},
		&out);
	return 0;
}

static int put_result(struct act *act, const char *action)
{
	cleanup(buf_done) struct buf json = {0};
	struct json_object object;

	buf_init(&json, TEXT_BYTES);
	json_begin(&object, &json);
	json_member_string(&object, "action", span_of(action));
	json_member_string(&object, "task", field_text(act->judged, "id"));
	json_member_string(&object, "link", span_of(act->request));
	json_end(&object);
	cli_put(act->cli, "%.*s\n", SPAN_ARGS(cli_span(act->cli, &json)));
	return 0;
}

static int act_on(struct cli *cli)
{
	struct span input = new_task_input(cli);
	struct json_complaint complaint;
	yyjson_doc *doc = input.len > 0 ? json_read_to(input, JSON_REPLY_DEPTH_MAX, &complaint) : NULL;
	struct act act = {.cli = cli, .judged = field_get(yyjson_doc_get_root(doc), "judges")};
	struct span action = field_text(act.judged, "action");

	if (!act.judged)
		die(cli,
			"standard input has no task that a workflow has begun: this is for \"argv\" of an executor");
	find_work(&act);
	if (span_is(action, "create_pr"))
		create_pr(&act);
	else if (span_is(action, "merge"))
		merge(&act);
	else
		die(cli,
			cli_text(cli, "%.*s is not done by this: let an agent or a command do it",
				SPAN_ARGS(action)));
	put_result(&act, cli_text(cli, "%.*s", SPAN_ARGS(action)));
	yyjson_doc_free(doc);
	return 0;
}

static const struct flag flags[] = {
	{"strategy", 0, FLAG_CHOICE, .value = "merge|squash|rebase",
		.text = "how a pull request is merged (merge)"},
	{0},
};

const struct verb verb_workflow_act = {
	.name = "workflow act",
	.brief = "do create_pr and merge, by gh",
	.text = "For \"argv\" of a worker's executor: reads a task that a workflow has begun on standard input. create_pr pushes the "
		"branch of the work, opens a pull request unless one is open, and waits for its checks; merge merges it. Other actions "
		"are for an agent or a command.",
	.flags = flags,
	.examples = "stint workflow act --strategy squash < task.json\n",
	.run = act_on,
};
