/* The work tree that an attempt may have of its own: it is made before it starts, and ended after it or in place of it. */
#include "worker/run/parts.h"

#include <string.h>

#include "base/log.h"
#include "base/take.h"
#include "exec/workdir.h"

static void let_tree_go(struct run *run)
{
	const struct worktree_record *record = worktree_record(run->tree);

	if (!worktree_is_gone(run->tree))
		log_info("a work tree is kept", log_cstr("task", run->task), log_cstr("path", record->path),
			log_cstr("reason", record->kept));
	leftovers_add(&run->supervisor->leftovers, run->tree);
	worktree_free(run->tree);
	run->tree = NULL;
}

static void on_unused_tree_ended(void *context)
{
	struct run *run = context;

	let_tree_go(run);
	if (run->stop != STOP_NOT)
		run_end_unstarted(run);
	else
		run_refuse(run, run->refused_code, run->refused);
}

void run_drop_tree(struct run *run)
{
	worktree_end(run->tree, on_unused_tree_ended, run);
}

static void on_tree_ended(void *context)
{
	struct run *run = context;
	const struct worktree_record *record = worktree_record(run->tree);

	if (!worktree_is_gone(run->tree)) /* where somebody looks who misses the work */
		run_add_last_words(run,
			arena_text(&run->arena, "stint: its work tree is kept, on branch %s: %s (%s)\n",
				record->branch, record->path, record->kept));
	let_tree_go(run);
	log_upload_finish(&run->upload, run_log_ended, run);
}

/* The tree of an agent belongs to its task until that is final (run_agent_settled()). */
static void keep_tree(struct run *run)
{
	const struct worktree_record *record = worktree_record(run->tree);

	if (worktree_keep(run->tree, "its task has not ended") < 0)
		log_warn("the record of a work tree cannot be written", log_cstr("task", run->task));
	log_upload_add_last(&run->upload,
		span_of(arena_text(&run->arena, "stint: its work tree is %s, on branch %s\n", record->path,
			record->branch)));
	worktree_free(run->tree);
	run->tree = NULL;
	log_upload_finish(&run->upload, run_log_ended, run);
}

void run_end_tree(struct run *run)
{
	if (run->agent)
		keep_tree(run);
	else
		worktree_end(run->tree, on_tree_ended, run);
}

static void on_tree_made(void *context, int fault)
{
	struct run *run = context;
	const char *path = worktree_record(run->tree)->path;
	char why[WORKDIR_REASON_BYTES];
	cleanup(close_at) int workdir_fd = -1;

	if (fault) {
		run->refused_code = "BAD_WORKDIR";
		run->refused = arena_text(&run->arena, "%s", worktree_reason(run->tree));
		on_unused_tree_ended(run);
	} else if (run->stop != STOP_NOT) {
		run_drop_tree(run);
	} else if (workdir_open(&path, 1, run->tree_rest[0] ? run->tree_rest : ".", &workdir_fd, why) < 0) {
		run_refuse(run, "BAD_WORKDIR", arena_text(&run->arena, "in its work tree: %s", why));
	} else {
		run_start_in(run, workdir_fd);
	}
}

/* The tree of an earlier attempt of the same task. False: there is none, and a new one is made. */
static bool reuse_tree(struct run *run, const struct worktree_site *site)
{
	struct memory *memory = run->agent ? &run->agent->memory : NULL;

	if (!memory || !memory->tree[0] || worktree_open(site, memory->tree, &run->tree) < 0)
		return false;
	const struct worktree_record *record = worktree_record(run->tree);
	if (strcmp(record->task, run->task) == 0 && worktree_resume(run->tree) == 0) {
		on_tree_made(run, 0);
		return true;
	}
	log_warn("the work tree of an earlier attempt cannot be used any more", log_cstr("task", run->task),
		log_cstr("path", record->path));
	worktree_free(run->tree);
	run->tree = NULL;
	memory->tree[0] = 0;
	return false;
}

bool run_make_tree(struct run *run, int workdir_fd)
{
	const struct settings *settings = run->supervisor->settings;
	struct worktree_site site = {
		run->supervisor->loop, run->supervisor->host, run->supervisor->state_dir.home, run->name};
	struct worktree_wish wish = {.settings = &run->tree_wish,
		.task = run->task,
		.fence = run->fence,
		.walled = run->wall.level > WALL_PROCESS,
		.network = run->wall.network,
		.like_the_task = run_fill_spec};
	char top[WORKTREE_PATH_BYTES], common[WORKTREE_PATH_BYTES],
		reason[WORKTREE_REASON_BYTES] = "its repository cannot be found";

	if (!run->tree_wish.on || !run->working_dir)
		return false;
	const char *path = run_path_of(run, workdir_fd);
	if (worktree_find(settings->roots, settings->root_count, site.home, path, top, common,
		    &run->tree_rest, reason) < 0) {
		run_refuse(run, "BAD_WORKDIR", reason);
		return true;
	}
	if (reuse_tree(run, &site))
		return true;
	wish.top = arena_text(&run->arena, "%s", top);
	wish.common = arena_text(&run->arena, "%s", common);
	run->tree = worktree_make(&site, &wish, on_tree_made, run);
	if (!run->tree)
		run_refuse_start(run, -ENOMEM);
	return true;
}
