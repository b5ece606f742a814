/* What a claim says: which task, with which executor, for how long. */
#include "worker/run/parts.h"

#include <errno.h>
#include <string.h>

#include "base/take.h"
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

/* The task as its child reads it, with what its last attempt left. */
static int keep_input(struct run *run, yyjson_val *task, yyjson_val *checkpoint)
{
	cleanup(buf_done) struct buf text = {0};

	buf_init(&text, TASK_BYTES_MAX);
	int r = json_put_value(&text, task);
	if (r == 0 && checkpoint && !yyjson_is_null(checkpoint) && !yyjson_obj_get(task, "checkpoint")) {
		buf_drop(&text, 1); /* the brace comes after it */
		buf_put_span(&text, SPAN(",\"checkpoint\":"));
		json_put_value(&text, checkpoint);
		buf_put_byte(&text, '}');
	}
	r = buf_put_byte(&text, '\n');
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

int run_read_claim(struct run *run, yyjson_val *claim)
{
	yyjson_val *task = yyjson_obj_get(claim, "task");

	run->task = keep(run, task, "id");
	run->queue = keep(run, task, "queue");
	run->fence = keep(run, claim, "fence");
	run->token = keep(run, claim, "token");
	run->working_dir = keep(run, task, "workingDir");
	run->module = keep(run, task, "module");
	run->attempt = (uint32_t)yyjson_get_uint(yyjson_obj_get(claim, "attempt"));
	run->timeout_ms = run->granted_ms = yyjson_get_sint(yyjson_obj_get(task, "timeoutMs"));
	run->lease_ms = yyjson_get_sint(yyjson_obj_get(claim, "leaseMs"));
	run->tree_unwanted = yyjson_is_false(yyjson_obj_get(yyjson_obj_get(task, "payload"), "worktree"));
	if (!run->task || !run->fence || !run->queue || run->timeout_ms <= 0)
		return -EPROTO;
	int r = keep_input(run, task, yyjson_obj_get(claim, "checkpoint"));
	return r < 0 ? r : keep_target(run);
}

bool run_find_executor(struct run *run, yyjson_val *task)
{
	const struct settings *settings = run->supervisor->settings;
	const char *name = yyjson_get_str(yyjson_obj_get(task, "executor"));
	const char *level = yyjson_get_str(yyjson_obj_get(task, "isolationLevel"));
	char complaint[WALLS_COMPLAINT_BYTES];

	run->executor = name ? settings_executor(settings, name) : settings_fallback(settings, run->queue);
	if (!run->executor)
		return run_refuse(run, "EXECUTOR_NOT_FOUND",
			name ? arena_text(&run->arena, "this worker has no executor \"%s\"", name)
			     : arena_text(&run->arena,
				       "the task names no executor, and the worker has none for tasks of queue \"%s\" that do not",
				       run->queue));
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
	if (run->executor->timeout_ms > 0)
		run->timeout_ms = earliest(run->timeout_ms, run->executor->timeout_ms);
	if (run->supervisor->options->once && run->supervisor->options->once->max_run_s > 0)
		run->timeout_ms = earliest(run->timeout_ms, run->supervisor->options->once->max_run_s * 1000);
	if (run->executor->budget_ms > 0 && run->executor->budget_ms < run->timeout_ms) {
		run->timeout_ms = run->executor->budget_ms;
		run->timeout_is_budget = true;
	}
	return true;
}
