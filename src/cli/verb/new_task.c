#include "cli/verb/new_task.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/take.h"
#include "base/utf8.h"
#include "cli/verb/own_tree.h"
#include "cli/verb/task_view.h"

enum {
	PARENTS_BYTES_MAX = 16 << 20,
	TITLE_BYTES_MAX = 200,    /* of a command that is its own title */
	BODY_BYTES_MAX = 1 << 20, /* of a request: the server takes no more */
	SILENT_MS = 2000,
};

/* ---- a command ------------------------------------------------------------------------------------------------ */

const char *const *new_task_words(struct cli *cli, size_t from)
{
	size_t count = cli->args.plain_count - from;
	const char **words = arena_alloc(&cli->arena, (count + 1) * sizeof *words);

	if (count == 0)
		return NULL;
	if (!words)
		cli_exit(cli, cli_fail_fault(cli, -ENOMEM));
	for (size_t i = 0; i < count; i++) {
		words[i] = args_plain(&cli->args, from + i);
		if (!utf8_is_text(span_of(words[i]))) /* JSON has texts alone: it would be another command */
			cli_die(cli, EXIT_USAGE, "invalid", NULL,
				"word %zu of the command is not UTF-8 and cannot be sent; put the command into a script",
				i + 1);
	}
	words[count] = NULL;
	return words;
}

static struct span title_of(struct cli *cli, const char *const *words)
{
	const char *title = words[0];

	for (size_t i = 1; words[i] && strlen(title) < TITLE_BYTES_MAX; i++)
		title = cli_text(cli, "%s %s", title, words[i]);
	return utf8_cut(span_of(title), TITLE_BYTES_MAX);
}

/* Is there anything that a command could read? A terminal is the person's, who may want to type on. */
static bool has_input(void)
{
	struct stat found;

	return fstat(STDIN_FILENO, &found) == 0 && !isatty(STDIN_FILENO) &&
		!(S_ISCHR(found.st_mode) && found.st_rdev == makedev(1, 3)); /* /dev/null */
}

static _Noreturn void die_of_input(struct cli *cli)
{
	cli_die(cli, EXIT_USAGE, "too_large", NULL,
		"standard input is more than fits into a task (%d MiB, with the command): put it into a file that the command reads. "
		"Nothing was queued.",
		BODY_BYTES_MAX >> 20);
}

struct span new_task_input(struct cli *cli)
{
	cleanup(buf_done) struct buf text = {0};
	struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
	char block[16 << 10];
	struct span kept;
	ssize_t got = 0;

	if (!has_input())
		return (struct span){0};
	if (poll(&ready, 1, SILENT_MS) == 0)
		cli_say(cli,
			"stint: the command gets what stands on standard input, and nothing comes; < /dev/null gives it nothing");
	buf_init(&text, BODY_BYTES_MAX);
	while (!buf_fault(&text) && (got = read(STDIN_FILENO, block, sizeof block)) > 0)
		buf_put(&text, block, (size_t)got);
	if (got < 0 && errno != EINTR)
		cli_die(cli, EXIT_USAGE, "unreadable", "stint help run", "cannot read standard input: %s",
			strerror(errno));
	if (got < 0)
		cli_exit(cli, EXIT_INTERRUPTED);
	if (buf_fault(&text) == -E2BIG)
		die_of_input(cli);
	int r = arena_copy(&cli->arena, cli_span(cli, &text), &kept);
	if (r < 0)
		cli_exit(cli, cli_fail_fault(cli, r));
	return kept;
}

/* "payload":{"argv":[…]}, and what the command reads: as a text, or in base64 if it is none */
static void put_payload(struct json_object *task, const char *const *words, struct span input)
{
	struct json_object payload;
	bool any = false;

	if (!json_put_key(task, "payload"))
		return;
	json_begin(&payload, task->buf);
	json_put_key(&payload, "argv");
	buf_put_byte(task->buf, '[');
	for (size_t i = 0; words[i]; i++) {
		json_put_comma(task->buf, &any);
		json_put_string(task->buf, span_of(words[i]));
	}
	buf_put_byte(task->buf, ']');
	if (input.len > 0 && utf8_is_text(input))
		json_member_string(&payload, "stdin", input);
	else if (input.len > 0 && json_put_key(&payload, "stdinBase64"))
		json_put_base64(task->buf, input);
	json_end(&payload);
}

/* Where a command runs: here, or where --cwd says. NULL: in an empty directory. */
static const char *command_dir(struct cli *cli)
{
	const char *cwd = args_text(&cli->args, "cwd");

	if (args_has(&cli->args, "no-cwd"))
		return NULL;
	const char *dir = cli_path(cli, cwd ? cwd : ".");
	if (dir && place_holds_state(cli, dir))
		cli_die(cli, EXIT_USAGE, "usage", NULL,
			"cannot run in %s: stint's own data is inside it. cd into a project, or pass --no-cwd for an empty directory.",
			dir);
	return dir;
}

/* ---- the document ---------------------------------------------------------------------------------------------- */

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

/* The value of one --env. */
static const char *env_value(struct cli *cli, const char *said, size_t name_len)
{
	const char *value = said[name_len] == '=' ? said + name_len + 1 : getenv(said);

	if (!value)
		cli_die(cli, EXIT_USAGE, "usage", NULL,
			"--env %s: no variable %s is set here; set it, or say --env %s=VALUE", said, said,
			said);
	if (!utf8_is_text(span_of(said)) || !utf8_is_text(span_of(value)))
		cli_die(cli, EXIT_USAGE, "invalid", NULL,
			"--env %.*s: the variable is not UTF-8 and cannot be sent", (int)name_len, said);
	return value;
}

/* Is a variable of that name given again further on? Then the last one counts, as for env(1). */
static bool env_comes_again(struct cli *cli, size_t at, const char *said, size_t name_len)
{
	const char *other;

	while ((other = args_each(&cli->args, "env", &at))) {
		if (strcspn(other, "=") == name_len && strncmp(other, said, name_len) == 0)
			return true;
	}
	return false;
}

static void put_env(struct cli *cli, struct json_object *task)
{
	struct json_object env;
	const char *said;
	size_t at = 0;

	if (!args_has(&cli->args, "env") || !json_put_key(task, "env"))
		return;
	json_begin(&env, task->buf);
	while ((said = args_each(&cli->args, "env", &at))) {
		size_t len = strcspn(said, "=");
		if (!env_comes_again(cli, at, said, len))
			json_member_string(&env, cli_text(cli, "%.*s", (int)len, said),
				span_of(env_value(cli, said, len)));
	}
	json_end(&env);
}

/* Of stint add alone. An agent and a command, or another executor, exclude each other. NULL: none is named. */
static const char *agent_of(struct cli *cli, const struct new_task *entry)
{
	const char *agent = verb_flag(cli->verb, "agent", 5) ? args_text(&cli->args, "agent") : NULL;

	if (agent && (entry->words || args_has(&cli->args, "executor")))
		cli_die(cli, EXIT_USAGE, "usage", "stint help add",
			"--agent names who does the task: leave out %s",
			entry->words ? "the command" : "--executor");
	return agent;
}

/* A default of the repository says who does what people write down; a command has an executor of its own. */
static void put_place(struct cli *cli, struct json_object *task, const struct new_task *entry)
{
	const struct args *args = &cli->args;
	const struct defaults *defaults = entry->defaults;
	const char *cwd = args_text(args, "cwd");

	const char *agent = agent_of(cli, entry);
	if (!args_has(args, "queue"))
		cli_member_text(task, "queue",
			entry->words                        ? "shell"
				: agent && !defaults->queue ? agent
							    : defaults->queue);
	if (!args_has(args, "executor"))
		cli_member_text(task, "executor",
			agent                  ? agent
				: entry->words ? "shell"
					       : defaults->executor);
	if (!args_has(args, "label") && defaults->labels.len > 0)
		json_member_raw(task, "labels", defaults->labels);
	if (entry->words)
		cli_member_text(task, "workingDir", command_dir(cli));
	else if (cwd)
		cli_member_text(task, "workingDir", cli_path(cli, cwd));
	if (agent && cwd)
		own_tree_put(cli, task, cli_path(cli, cwd));
	else if (takes_changes(cli))
		cli_die(cli, EXIT_USAGE, "usage", "stint help add",
			"--with-changes is for an agent in a git repository: say --agent and --cwd, too");
}

void new_task_put_command(
	struct cli *cli, struct json_object *task, const char *title, const char *const *words)
{
	json_member_string(task, "title", title ? span_of(title) : title_of(cli, words));
	if (words)
		put_payload(task, words, (struct span){0});
}

void new_task_put_members(struct cli *cli, struct json_object *task, const struct new_task *entry)
{
	const struct args *args = &cli->args;
	struct span title =
		entry->title.len == 0 && entry->words ? title_of(cli, entry->words) : entry->title;

	if (title.len > 0)
		json_member_string(task, "title", title);
	if (entry->text.len > 0)
		json_member_string(task, "instructions", entry->text);
	if (entry->words)
		put_payload(task, entry->words, entry->input);
	put_place(cli, task, entry);
	put_env(cli, task);
	put_parents(cli, task, entry->parents, entry->parent_count);
	if (args_has(args, "hold"))
		json_member_string(task, "state", SPAN("pending"));
	if (entry->once && !args_has(args, "max-attempts"))
		json_member_int(task, "maxAttempts", 1);
	cli_member_flags(cli, task);
}

int new_task_add(struct cli *cli, const struct new_task *entry, const char *key, struct reply *ret_reply)
{
	new_task_put_members(cli, cli_body(cli), entry);
	struct ask question = {
		.method = HTTP_METHOD_POST,
		.path = "/api/tasks",
		.body = cli_body_end(cli),
		.key = span_of(key),
		.may_repeat = key != NULL,
	};
	if (entry->input.len > 0 && question.body.len > BODY_BYTES_MAX)
		die_of_input(cli);
	return server_ask(cli, &question, ret_reply);
}

/* ---- the answer ------------------------------------------------------------------------------------------------- */

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

void new_task_tell_warnings(struct cli *cli, yyjson_val *task)
{
	size_t at, count;
	yyjson_val *warning;

	yyjson_arr_foreach(field_get(task, "warnings"), at, count, warning)
	{
		cli_say(cli, "stint: %s", yyjson_get_str(warning));
	}
	if (!field_bool(task, "deduplicated")) {
		tell_times(cli, task);
		if (verb_flag(cli->verb, "agent", 5) && args_has(&cli->args, "agent"))
			own_tree_tell(cli, task);
	}
}

int new_task_put(struct cli *cli, yyjson_val *task)
{
	const char *id = field_cstr(cli, task, "id");

	if (cli->output == OUTPUT_JSON)
		return cli_put_json(cli, "task", task);
	if (!cli->term.tty) {
		cli_put(cli, "%s\n", id);
		return 0;
	}
	cleanup(reply_done) struct reply why = server_try(cli, "/api/tasks/*/why", id);
	if (why.root)
		cli_put_sentence(cli, 2, "%s", view_why_sentence(cli, why.root));
	else /* a token that may add and not look */
		cli_put_line(cli, "%s is %.*s", id, SPAN_ARGS(field_text(task, "state")));
	if (field_bool(task, "deduplicated"))
		cli_say(cli, "stint: %s was there already; nothing was added", id);
	return 0;
}
