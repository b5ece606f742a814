#include "attempt/walls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/complain.h"
#include "exec/cgroup_place.h"
#include "wire/json/json.h"

/* ---- for an attempt --------------------------------------------------------------------------------------------- */

int walls_choose(const struct executor *executor, const char *asked, const char *home, struct wall *ret_wall,
	char complaint[WALLS_COMPLAINT_BYTES])
{
	int level = asked ? wall_level_find(asked) : WALL_PROCESS;
	char reason[WALL_REASON_BYTES], fix[WALL_FIX_BYTES];
	struct wall wall = executor->wall;

	if (level < 0)
		return complain(complaint, WALLS_COMPLAINT_BYTES, -EINVAL,
			"this worker knows no level \"%.64s\"", asked);
	if ((int)wall.level < level)
		wall.level = (enum wall_level)level;
	const char *unfit = executor_unfit(executor, wall.level);
	if (unfit)
		return complain(complaint, WALLS_COMPLAINT_BYTES, -EOPNOTSUPP,
			"level \"%s\" is not available from executor \"%.128s\": %s",
			wall_level_name(wall.level), executor->name, unfit);
	int r = wall_check(&wall, reason, fix);
	if (r == 0 && wall.level != WALL_PROCESS) /* there Landlock says it */
		r = wall_check_home(&wall, home, reason, fix);
	if (r < 0)
		return complain(complaint, WALLS_COMPLAINT_BYTES, r,
			"level \"%s\" is not available here: %s; try: %s", wall_level_name(wall.level),
			reason, fix);
	*ret_wall = wall;
	return 0;
}

void walls_settle(struct wall *wall, const char *run_path, const char *socket, const char *proxy)
{
	wall->run_path = run_path;
	wall->socket = socket;
	wall->proxy = proxy;
}

static int rename_one(struct arena *arena, const struct wall *wall, const char **path,
	int (*name)(const struct wall *, const char *, char *, size_t))
{
	char inside[4096];

	if (!*path)
		return 0;
	if (name(wall, *path, inside, sizeof inside) < 0)
		return -ENOMEM;
	*path = arena_text(arena, "%s", inside);
	return (*path)[0] ? 0 : -ENOMEM;
}

static int name_server(struct arena *arena, const struct wall *wall, struct environment *about)
{
	char inside[4096];

	about->proxy = wall->proxy ? WALL_PROXY_URL : NULL;
	if (!wall->socket)
		return 0;
	if (wall_name(wall, wall->socket, inside, sizeof inside) < 0)
		return -ENOMEM;
	about->url = arena_text(arena, "unix:%s", inside);
	return about->url[0] ? 0 : -ENOMEM;
}

int walls_rename(struct arena *arena, const struct wall *wall, struct environment *about)
{
	if (wall->level == WALL_VM) { /* nothing of ours is in there, and nothing leads to us */
		about->url = about->token_file = about->home = about->tmp = about->workspace = NULL;
		return 0;
	}
	int r = name_server(arena, wall, about);
	if (r == 0)
		r = rename_one(arena, wall, &about->token_file, wall_name);
	if (r == 0)
		r = rename_one(arena, wall, &about->home, wall_name);
	if (r == 0)
		r = rename_one(arena, wall, &about->tmp, wall_name);
	return r < 0 ? r : rename_one(arena, wall, &about->workspace, wall_workdir_name);
}

/* ---- for doctors ------------------------------------------------------------------------------------------------ */

static int put_answer(
	struct buf *out, const struct wall *wall, const char *executor, const struct wall_trial *trial)
{
	char reason[WALL_REASON_BYTES] = "", fix[WALL_FIX_BYTES] = "";
	int fault = wall_try(wall, trial, reason, fix);
	struct json_object object;

	if (out->len > 1)
		buf_put_byte(out, ',');
	json_begin(&object, out);
	json_member_word(&object, "level", wall_level_name(wall->level));
	if (executor)
		json_member_string(&object, "executor", span_of(executor));
	else
		json_member_null(&object, "executor");
	json_member_bool(&object, "works", fault == 0);
	json_member_string(&object, "text", span_of(reason));
	json_member_string(&object, "fix", span_of(fix));
	return json_end(&object);
}

/* What a level needs of the machine; a rootfs or a kernel is an executor's. */
static bool is_asked_bare(enum wall_level level)
{
	return level == WALL_PROCESS || level == WALL_SANDBOX;
}

static bool is_of_some(const struct executor *executors, uint32_t count, enum wall_level level)
{
	for (uint32_t i = 0; i < count; i++)
		if (executors[i].wall.level == level)
			return true;
	return false;
}

/* What becomes of a tree whose worker and shim are killed at the same moment: nobody is left to end it at once. */
static int put_tree(struct buf *out)
{
	static struct cgroup_place place;
	struct json_object object;

	cgroup_look(&place);
	buf_put_byte(out, ',');
	json_begin(&object, out);
	json_member_word(&object, "level", "tree");
	json_member_null(&object, "executor");
	json_member_bool(&object, "works", true);
	json_member_word(&object, "text", "");
	json_member_word(&object, "note",
		place.own
			? "a worker that is started here has a cgroup of its own: if it is killed together with its shims, its next start "
			  "ends all that they left"
			: "a worker that is started here has no cgroup of its own: if it is killed together with its shims, what they ran "
			  "goes on until the next start, which may not find a process that left its environment behind");
	json_member_word(&object, "fix", "");
	return json_end(&object);
}

int walls_report(
	const struct executor *executors, uint32_t count, const struct wall_trial *trial, struct buf *out)
{
	int r = buf_put_byte(out, '[');

	for (int level = 0; level < WALL_LEVELS && r == 0; level++) {
		struct wall wall = {.level = (enum wall_level)level};
		if (is_asked_bare(wall.level) || !is_of_some(executors, count, wall.level))
			r = put_answer(out, &wall, NULL, trial);
		for (uint32_t i = 0; i < count && r == 0; i++)
			if ((int)executors[i].wall.level == level && !is_asked_bare(wall.level))
				r = put_answer(out, &executors[i].wall, executors[i].name, trial);
	}
	if (r == 0)
		r = put_tree(out);
	return r;
}
