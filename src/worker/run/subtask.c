/*
 * The rights of a subtask, compared once more by the worker that claims it: the server knows what a task says, and only the
 * worker's own configuration knows what its executors are. Likewise whoever judges a task.
 */
#include "worker/run/parts.h"

#include <string.h>

static const char *text_of(yyjson_val *object, const char *key)
{
	return yyjson_get_str(yyjson_obj_get(object, key));
}

/* Is it named by "subtasks" of the parent's executor? */
static bool is_named(const struct executor *parent, const char *name)
{
	for (size_t i = 0; parent->subtasks && parent->subtasks[i]; i++) {
		if (strcmp(parent->subtasks[i], name) == 0)
			return true;
	}
	return false;
}

/* The directory itself, or one beneath it. Links are looked at where the directory is opened. */
static bool is_beneath(const char *path, const char *top)
{
	size_t len = strlen(top);

	while (len > 1 && top[len - 1] == '/')
		len--;
	if (strncmp(path, top, len) != 0 || (path[len] != 0 && path[len] != '/' && len > 1))
		return false;
	for (const char *at = strstr(path, "/.."); at; at = strstr(at + 1, "/.."))
		if (at[3] == '/' || at[3] == 0)
			return false;
	return true;
}

/* The level that the parent's attempts have here: what its executor says, or the stricter one that it asked for. */
static enum wall_level level_of(const struct executor *executor, const char *asked)
{
	enum wall_level level = executor ? executor->wall.level : WALL_PROCESS;

	for (int i = WALL_PROCESS; asked && i <= WALL_VM; i++) {
		if (strcmp(wall_level_name((enum wall_level)i), asked) == 0 && (enum wall_level)i > level)
			level = (enum wall_level)i;
	}
	return level;
}

static bool refuse(struct run *run, const char *why)
{
	return run_refuse(run, "NOT_ALLOWED",
		arena_text(&run->arena, "a subtask has no more rights than its parent: %s", why));
}

/* Nobody is judge of their own work: an executor that did it does not validate it. */
static bool judges_itself(struct run *run, yyjson_val *judged)
{
	const struct settings *settings = run->supervisor->settings;
	const char *action = text_of(judged, "action"), *name = text_of(judged, "executor"),
		   *queue = text_of(judged, "queue");
	const struct executor *of = name ? settings_executor(settings, name)
		: queue                  ? settings_queue_executor(settings, queue)
					 : NULL;

	return action && strcmp(action, "validate") == 0 && of && of == run->executor;
}

bool run_check_rights(struct run *run, yyjson_val *claim)
{
	const struct settings *settings = run->supervisor->settings;
	yyjson_val *judged = yyjson_obj_get(claim, "judges");
	if (judges_itself(run, judged))
		return run_refuse(run, "NOT_ALLOWED",
			arena_text(&run->arena,
				"executor %s did the work of task %s and does not judge it: give queue %s another one",
				run->executor->name, text_of(judged, "id") ? text_of(judged, "id") : "",
				run->queue));
	yyjson_val *task = yyjson_obj_get(claim, "task"), *parent = yyjson_obj_get(claim, "parent");
	const char *name = text_of(parent, "executor"), *queue = text_of(parent, "queue");

	if (!text_of(task, "parent"))
		return true;
	if (!parent || !queue)
		return refuse(run, "the server does not say what the parent may do");
	const struct executor *of =
		name ? settings_executor(settings, name) : settings_queue_executor(settings, queue);
	const char *own = run->in_place_of ? run->in_place_of : run->executor->name;
	bool same = strcmp(of ? of->name : name ? name : "", own) == 0;
	if (!same && !(of && is_named(of, own)))
		return refuse(run,
			arena_text(&run->arena,
				"executor %s is not that of the parent, and \"subtasks\" of executor %s does not name it",
				own,
				of             ? of->name
					: name ? name
					       : "that"));
	if (run->wall.level < level_of(of, text_of(parent, "isolationLevel")))
		return refuse(run,
			arena_text(&run->arena, "isolation \"%s\" is weaker than \"%s\"",
				wall_level_name(run->wall.level),
				wall_level_name(level_of(of, text_of(parent, "isolationLevel")))));
	const char *top = text_of(parent, "workingDir");
	if (run->working_dir && (!top || !is_beneath(run->working_dir, top)))
		return refuse(run,
			arena_text(&run->arena, "work dir %s is not that of the parent, or beneath it",
				run->working_dir));
	return true;
}
