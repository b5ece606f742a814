/* What a claim says: which task, with which executor, for how long. */
#include "worker/run/parts.h"

#include <errno.h>
#include <string.h>

#include "base/take.h"
#include "wire/task_env.h"
#include "wire/trace.h"
#include "attempt/walls.h"

enum { TASK_BYTES_MAX = 4 << 20 };

static const char *keep(struct run *run, yyjson_val *object, const char *key)
{
	yyjson_val *value = yyjson_obj_get(object, key);
	struct span kept;

	if (!yyjson_is_str(value) || strlen(yyjson_get_str(value)) != yyjson_get_len(value) ||
		arena_copy(&run->arena, span_of(yyjson_get_str(value)), &kept) < 0)
		return NULL;
	return kept.data;
}

static void add_member(struct buf *text, const char *key, yyjson_val *value)
{
	if (!value || yyjson_is_null(value) || buf_fault(text) < 0)
		return;
	buf_drop(text, 1); /* the brace comes after it */
	buf_printf(text, ",\"%s\":", key);
	json_put_value(text, value);
	buf_put_byte(text, '}');
}

/* The task as its child reads it, with what its last attempt left, and the work that it judges. */
static int keep_input(struct run *run, yyjson_val *claim)
{
	yyjson_val *task = yyjson_obj_get(claim, "task");
	cleanup(buf_done) struct buf text = {0};

	buf_init(&text, TASK_BYTES_MAX);
	json_put_value(&text, task);
	if (!yyjson_obj_get(task, "checkpoint"))
		add_member(&text, "checkpoint", yyjson_obj_get(claim, "checkpoint"));
	add_member(&text, "judges", yyjson_obj_get(claim, "judges"));
	int r = buf_put_byte(&text, '\n');
	return r < 0 ? r : arena_copy(&run->arena, buf_span(&text), &run->input);
}

static int keep_target(struct run *run)
{
	cleanup(buf_done) struct buf text = {0};

	buf_init(&text, 1024);
	int r = http_put_path(&text, "/api/tasks/", span_of(run->task), "/log");
	return r < 0 ? r : arena_copy(&run->arena, buf_span(&text), &run->log_target);
}

/* {"argv":["make","test"]} */
static const char *const *payload_argv(struct run *run, yyjson_val *payload)
{
	yyjson_val *list = yyjson_obj_get(payload, "argv"), *item;
	size_t index, count = yyjson_arr_size(list);
	const char **argv =
		count > 0 && count <= ARGV_MAX ? arena_alloc(&run->arena, (count + 1) * sizeof *argv) : NULL;
	struct span kept;

	if (!argv)
		return NULL;
	yyjson_arr_foreach(list, index, count, item)
	{
		const char *text = yyjson_get_str(item);
		if (!text || strlen(text) != yyjson_get_len(item) || (index == 0 && !text[0]) ||
			arena_copy(&run->arena, span_of(text), &kept) < 0)
			return NULL;
		argv[index] = kept.data;
	}
	return argv;
}

/* What the command reads: {"argv":[…],"stdin":"text"}, or "stdinBase64" for bytes that are no text. False: it was refused. */
static bool read_stdin(struct run *run, yyjson_val *payload)
{
	yyjson_val *text = yyjson_obj_get(payload, "stdin"), *coded = yyjson_obj_get(payload, "stdinBase64");
	cleanup(buf_done) struct buf bytes = {0};
	int r = 0;

	run->input = (struct span){0};
	if (!text && !coded)
		return true;
	buf_init(&bytes, TASK_BYTES_MAX);
	if ((text && coded) || !yyjson_is_str(text ? text : coded))
		r = -EINVAL;
	else if (text)
		r = buf_put_span(&bytes, json_text(text));
	else
		r = json_read_base64(json_text(coded), &bytes);
	if (r == -EINVAL)
		return run_refuse(run, "EXECUTION_ERROR",
			"payload.stdin must be a text; payload.stdinBase64, instead of it, bytes in base64");
	if (r == 0)
		r = arena_copy(&run->arena, buf_span(&bytes), &run->input);
	return r == 0 || run_refuse(run, "WORKER_INIT_FAILED", strerror(-r));
}

/* May the task set this one? With an argv of its own it may set any. */
static bool takes_variable(const struct executor *executor, const char *name)
{
	for (size_t i = 0; executor->env_from_task && executor->env_from_task[i]; i++) {
		if (strcmp(executor->env_from_task[i], name) == 0)
			return true;
	}
	return !executor->argv;
}

/* The variables of the task that its executor takes. False: there is no memory. */
static bool keep_env(struct run *run, yyjson_val *env)
{
	const char **kept = arena_alloc(&run->arena, (yyjson_obj_size(env) + 1) * sizeof *kept);
	const char *left_out = "";
	size_t i, count, used = 0;
	yyjson_val *key, *value;

	if (!kept)
		return false;
	yyjson_obj_foreach(env, i, count, key, value)
	{
		const char *name = yyjson_get_str(key);
		if (takes_variable(run->executor, name))
			kept[used++] = arena_text(&run->arena, "%s=%s", name, yyjson_get_str(value));
		else
			left_out = arena_text(&run->arena, "%s%s%s", left_out, left_out[0] ? ", " : "", name);
		if (used > 0 && !kept[used - 1][0])
			return false;
	}
	kept[used] = NULL;
	run->env = kept;
	if (left_out[0])
		run->first_words = arena_text(&run->arena,
			"stint: env of the task has %s, which \"envFromTask\" of executor %s does not name: not set\n",
			left_out, run->executor->name);
	return true;
}

/* False: it was refused. */
static bool read_env(struct run *run, yyjson_val *env)
{
	char wrong[TASK_ENV_WRONG_BYTES];

	if (!env || yyjson_is_null(env) || run->executor->size > 0)
		return true;
	if (task_env_check(env, wrong) <
		0) /* the server has checked it; a worker relies on no server for this */
		return run_refuse(run, "EXECUTION_ERROR", arena_text(&run->arena, "env %s", wrong));
	return keep_env(run, env) || run_refuse(run, "WORKER_INIT_FAILED", strerror(ENOMEM));
}

/* A task of a trace gives its attempt a span of its own: what the child does belongs beneath it. */
static void read_trace(struct run *run, yyjson_val *task)
{
	struct span given = json_text(yyjson_obj_get(yyjson_obj_get(task, "metadata"), "traceparent"));
	char span[TRACE_SPAN_BYTES], text[TRACEPARENT_BYTES];
	struct trace trace;

	if (given.len == 0 || !trace_read(given, &trace))
		return;
	trace_attempt_span(&trace, span_of(run->task), run->attempt, span);
	trace_put(&trace, span, text);
	run->traceparent = arena_text(&run->arena, "%s", text);
}

int run_read_claim(struct run *run, yyjson_val *claim)
{
	yyjson_val *task = yyjson_obj_get(claim, "task");

	run->task = keep(run, task, "id");
	run->queue = keep(run, task, "queue");
	run->fence = keep(run, claim, "fence");
	run->token = keep(run, claim, "token");
	run->working_dir = keep(run, task, "workingDir");
	if (!run->working_dir) /* an action of a workflow is done where the work is */
		run->working_dir = keep(run, yyjson_obj_get(claim, "judges"), "workingDir");
	run->module = keep(run, task, "module");
	run->attempt = (uint32_t)yyjson_get_uint(yyjson_obj_get(claim, "attempt"));
	run->timeout_ms = run->granted_ms = yyjson_get_sint(yyjson_obj_get(task, "timeoutMs"));
	run->lease_ms = yyjson_get_sint(yyjson_obj_get(claim, "leaseMs"));
	run->tree_unwanted = yyjson_is_false(yyjson_obj_get(yyjson_obj_get(task, "payload"), "worktree"));
	if (!run->task || !run->fence || !run->queue || run->timeout_ms <= 0)
		return -EPROTO;
	read_trace(run, task);
	int r = keep_input(run, claim);
	return r < 0 ? r : keep_target(run);
}

/* "worktree" of the task: true, false, or {"base":REF}. False: it was refused. */
static bool read_worktree(struct run *run, yyjson_val *wish)
{
	const char *base = keep(run, wish, "base");

	run->tree_wish = run->executor->worktree;
	run->tree_wish.on = (run->tree_wish.on || yyjson_is_true(wish) || yyjson_is_obj(wish)) &&
		!yyjson_is_false(wish) && !run->tree_unwanted && !run_is_main(run);
	if (base && base[0] != '-')
		run->tree_wish.base = base;
	if (run->tree_wish.on && run->wall.level > WALL_SANDBOX)
		return run_refuse(run, "ISOLATION_UNAVAILABLE",
			"a work tree is part of a repository, which only levels \"process\" and \"sandbox\" can reach");
	if (run->executor->size == 0 && !run->working_dir && (yyjson_is_true(wish) || yyjson_is_obj(wish)))
		return run_refuse(run, "BAD_WORKDIR",
			"the task wants a work tree and names no directory of a repository");
	return true;
}

/* The one that the task names, or that takes its place. NULL: it was refused. */
static const struct executor *find_executor(struct run *run, const char *name, const char *fallback)
{
	const struct settings *settings = run->supervisor->settings;
	const struct executor *named =
		name ? settings_executor(settings, name) : settings_queue_executor(settings, run->queue);

	if (!named)
		run_refuse(run, "EXECUTOR_NOT_FOUND",
			name ? arena_text(&run->arena, "this worker has no executor \"%s\"", name)
			     : arena_text(&run->arena,
				       "the task names no executor, and the worker has none for tasks of queue \"%s\" that do not",
				       run->queue));
	if (!named || !fallback)
		return named;
	run->in_place_of = named->name;
	for (const char *const *list = named->agent ? named->agent->fallback : NULL; list && *list; list++) {
		if (strcmp(*list, fallback) == 0)
			return settings_executor(settings, fallback);
	}
	run_refuse(run, "WORKER_INIT_FAILED", /* its configuration has changed since it told the server */
		arena_text(&run->arena, "executor %s is no longer in \"fallback\" of executor %s", fallback,
			named->name));
	return NULL;
}

bool run_find_executor(struct run *run, yyjson_val *claim)
{
	yyjson_val *task = yyjson_obj_get(claim, "task");
	const char *name = yyjson_get_str(yyjson_obj_get(task, "executor"));
	const char *level = yyjson_get_str(yyjson_obj_get(task, "isolationLevel"));
	char complaint[WALLS_COMPLAINT_BYTES];

	run->anew = yyjson_is_true(yyjson_obj_get(claim, "fresh"));
	run->executor = find_executor(run, name, yyjson_get_str(yyjson_obj_get(claim, "fallback")));
	if (!run->executor)
		return false;
	if (walls_choose(run->executor, level, run->supervisor->state_dir.home, &run->wall, complaint) < 0)
		return run_refuse(run, "ISOLATION_UNAVAILABLE", complaint);
	if (run->wall.level == WALL_VM && run->working_dir)
		return run_refuse(run, "BAD_WORKDIR",
			"at level \"vm\" no directory is shared: the task must not name one");
	run->argv = run->executor->argv ? run->executor->argv
					: payload_argv(run, yyjson_obj_get(task, "payload"));
	if (!run->argv)
		return run_refuse(run, "EXECUTION_ERROR",
			"payload.argv must be a list of a program and its arguments, as texts");
	if (!read_env(run, yyjson_obj_get(task, "env")) ||
		!read_worktree(run, yyjson_obj_get(task, "worktree")))
		return false;
	if (!run->executor->argv && !read_stdin(run, yyjson_obj_get(task, "payload")))
		return false;
	if (run->executor->timeout_ms > 0)
		run->timeout_ms = earliest(run->timeout_ms, run->executor->timeout_ms);
	if (run->supervisor->options->once && run->supervisor->options->once->max_run_s > 0)
		run->timeout_ms = earliest(run->timeout_ms, run->supervisor->options->once->max_run_s * 1000);
	if (run->executor->budget_ms > 0 && run->executor->budget_ms < run->timeout_ms) {
		run->timeout_ms = run->executor->budget_ms;
		run->timeout_is_budget = true;
	}
	return run->executor->agent || run_check_plain_budget(run, yyjson_obj_get(task, "budget"));
}
