/* git, and the few other programs of ours, at work on a tree: confined, and without anything that a repository brings along. */
#include "worktree/parts.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/take.h"
#include "exec/request/ancestors.h"
#include "attempt/program.h"

enum {
	ENV_OWN_MAX = 40,
	ADMIN_MAX = 10000, /* trees of one repository that are looked through */
	ENTRY_BYTES_MAX = PATH_MAX + 64,
};

/* What a repository brings along does not count: no hooks, no monitor, no network, no configuration but its own. */
static const char *const git_env[] = {
	"HOME=/nonexistent",
	"LC_ALL=C",
	"GIT_CONFIG_NOSYSTEM=1",
	"GIT_CONFIG_GLOBAL=/dev/null",
	"GIT_TERMINAL_PROMPT=0",
	"GIT_OPTIONAL_LOCKS=0",
	"GIT_ALLOW_PROTOCOL=none", /* counts more than protocol.*.allow, which a repository can set */
	"GIT_CONFIG_COUNT=9",
	"GIT_CONFIG_KEY_0=core.hooksPath",
	"GIT_CONFIG_VALUE_0=/dev/null",
	"GIT_CONFIG_KEY_1=core.fsmonitor",
	"GIT_CONFIG_VALUE_1=false",
	"GIT_CONFIG_KEY_2=safe.directory",
	"GIT_CONFIG_VALUE_2=*",
	"GIT_CONFIG_KEY_3=worktree.useRelativePaths",
	"GIT_CONFIG_VALUE_3=false",
	"GIT_CONFIG_KEY_4=gc.auto",
	"GIT_CONFIG_VALUE_4=0",
	"GIT_CONFIG_KEY_5=maintenance.auto",
	"GIT_CONFIG_VALUE_5=false",
	"GIT_CONFIG_KEY_6=submodule.recurse",
	"GIT_CONFIG_VALUE_6=false",
	"GIT_CONFIG_KEY_7=core.attributesFile",
	"GIT_CONFIG_VALUE_7=/dev/null",
	"GIT_CONFIG_KEY_8=core.sshCommand",
	"GIT_CONFIG_VALUE_8=false",
};

/* Does the path lie in the repository, or in the tree that the task named? Others can change these: such a path was resolved once,
 * and a link that appears on the way later is not followed. */
static bool is_of_others(const struct worktree_record *record, const char *path)
{
	return path_lies_in(path, record->common) ||
		(path_lies_in(path, record->source) && !path_lies_in(path, record->path));
}

void worktree_add_grant(const struct worktree_record *record, struct grant *grants, size_t *count,
	const char *path, enum grant_access access)
{
	if (path && path[0])
		grants[(*count)++] = (struct grant){.path = path,
			.fd = -1,
			.access = access,
			.direct = is_of_others(record, path),
			.outside = is_of_others(record, path)};
}

static bool changes(const struct worktree_call *call, const struct worktree_record *record, const char *path)
{
	return (call->changes_common && strcmp(path, record->common) == 0) ||
		(call->changes && strcmp(path, call->changes) == 0);
}

int worktree_run(struct worktree *tree, const struct worktree_call *call)
{
	static const char *const allow[] = {"PATH", NULL};
	static const struct wall alone = {.level = WALL_SANDBOX},
				 online = {.level = WALL_SANDBOX, .network = true};
	const struct worktree_record *record = &tree->record;
	struct process_spec spec = process_spec_default();
	const char *env[ENV_OWN_MAX];
	struct grant grants[5];
	size_t count = sizeof git_env / sizeof *git_env;

	assert(!call->changes_common || tree->lock_fd >= 0); /* its record is ours */
	memcpy(env, git_env, sizeof git_env);
	if (call->in_tree) {
		env[count++] = arena_text(&tree->arena, "GIT_DIR=%s", record->git);
		env[count++] = arena_text(&tree->arena, "GIT_COMMON_DIR=%s", record->common);
		env[count++] = arena_text(&tree->arena, "GIT_WORK_TREE=%s", record->path);
	}
	env[count] = NULL;
	const char *dir = call->dir ? call->dir : call->in_tree ? record->path : record->common;
	const struct grant here = {.path = dir, .direct = is_of_others(record, dir)};
	cleanup(close_at) int dir_fd = grant_open(&here);
	if (dir_fd < 0)
		return dir_fd;
	/* behind a wall the last of two mounts at one path counts: they say the same */
	bool dir_changes = changes(call, record, dir);
	size_t granted = 0;
	worktree_add_grant(
		record, grants, &granted, record->common, call->changes_common ? GRANT_WRITE : GRANT_READ);
	worktree_add_grant(record, grants, &granted, dir, dir_changes ? GRANT_WRITE : GRANT_READ);
	worktree_add_grant(record, grants, &granted, call->changes, GRANT_WRITE);
	if (call->checks_out) {
		const char *lfs = arena_text(&tree->arena, "%s/lfs", record->common);
		worktree_add_grant(record, grants, &granted, record->git, GRANT_WRITE);
		if (lfs && access(lfs, F_OK) == 0)
			worktree_add_grant(record, grants, &granted, lfs, GRANT_WRITE);
	}
	/* A task or the set-up can have put into a tree, and one that worked there before into the repository, what git runs when it
	 * reads or writes files: filters. They get no further than the task, and have no network but where it has one. */
	spec.wall = !record->walled || !call->in_tree    ? NULL
		: call->checks_out && tree->wish.network ? &online
							 : &alone;
	spec.run = tree->site.run;
	spec.finishes = true; /* git that is killed leaves its locks in somebody's repository */
	spec.hold_fds[0] = tree->jobs_fd;
	spec.hold_fds[1] = tree->alone_fd;
	spec.argv = call->argv;
	spec.env = env;
	spec.env_allow = allow;
	spec.workdir_fd = dir_fd;
	spec.output_bytes_max[STREAM_OUT] = PROCESS_OUTPUT_BYTES_MAX;
	spec.umask = 022;
	if (call->input.len > 0) {
		spec.stdin_from = STDIN_BYTES;
		spec.input = call->input;
	}
	assert(granted <= sizeof grants / sizeof *grants);
	spec.program = program_within(&tree->arena, getenv("PATH"), call->argv[0], grants, granted);
	spec.confine.grants = grants;
	spec.confine.grant_count = granted;
	spec.confine.keep_out = tree->site.home;
	spec.confine.workdir_read_only = !dir_changes;
	spec.confine.limits.file_bytes = LIMIT_UNCHANGED; /* a repository may have larger ones */
	return job_start(&tree->job, &spec, call->timeout_ms ? call->timeout_ms : GIT_MS, call->done);
}

/* The first line of what it wrote. */
void worktree_take_line(const struct job *job, char *line, size_t room)
{
	struct span out = buf_span(&job->out);
	const char *end = out.len > 0 ? memchr(out.data, '\n', out.len) : NULL;

	snprintf(line, room, "%.*s", (int)(end ? (size_t)(end - out.data) : out.len),
		out.len > 0 ? out.data : "");
}

/* git looks at no file that begins with a dot. */
const char *worktree_ref_keeper(struct worktree *tree)
{
	const struct worktree_record *record = &tree->record;
	const char *slash = strrchr(record->branch, '/');

	return slash ? arena_text(&tree->arena, "%s/refs/heads/%.*s/.%s", record->common,
			       (int)(slash - record->branch), record->branch, record->name)
		     : NULL;
}

int worktree_open_in_common(const struct worktree_record *record, const char *path, bool make)
{
	cleanup(close_at) int at = open(record->common, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char part[NAME_MAX + 1];

	while (at >= 0 && *path) {
		size_t len = strcspn(path, "/");
		if (len > NAME_MAX)
			return -ENAMETOOLONG;
		snprintf(part, sizeof part, "%.*s", (int)len, path);
		if (make)
			mkdirat(at, part, 0755); /* as git does when it needs it */
		int next = openat(at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close_at(&at);
		at = next;
		path += len + (path[len] == '/');
	}
	return at < 0 ? -errno : take_fd(at);
}

/* That it is there is all. */
static void make_file(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	close_at(&fd);
}

const char *worktree_prepare_refs(struct worktree *tree)
{
	static const char *const dirs[] = {"refs/remotes", "logs/refs/remotes"};
	const struct worktree_record *record = &tree->record;
	const char *slash = strrchr(record->branch, '/');

	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		cleanup(close_at) int fd = worktree_open_in_common(record, dirs[i], true);
		if (fd < 0)
			return dirs[i];
	}
	const char *logs = arena_text(&tree->arena, "worktrees/%s/logs", strrchr(record->git, '/') + 1);
	cleanup(close_at) int logs_fd = worktree_open_in_common(record, logs, true);
	make_file(logs_fd, "HEAD");
	if (!slash)
		return NULL;
	const char *own =
		arena_text(&tree->arena, "refs/heads/%.*s", (int)(slash - record->branch), record->branch);
	cleanup(close_at) int own_fd = worktree_open_in_common(record, own, true);
	make_file(own_fd, arena_text(&tree->arena, ".%s", record->name));
	return own_fd < 0 ? own : NULL;
}

/* git's own directory of the tree, also of one that git did not come to an end with. */
void worktree_find_admin(struct worktree *tree)
{
	struct worktree_record *record = &tree->record;
	const char *trees = arena_text(&tree->arena, "%s/worktrees", record->common);
	size_t len = strlen(trees);
	char gitdir[WORKTREE_PATH_BYTES + 8], word[PATH_MAX];

	snprintf(gitdir, sizeof gitdir, "%s/.git", record->path);
	if (strncmp(record->git, trees, len) == 0 && record->git[len] == '/' &&
		!strchr(record->git + len + 1, '/') && record->git[len + 1] != '.')
		return;
	record->git[0] = 0;
	/* git calls it like the tree, with a number after it if that was taken */
	for (int i = 0; i < ADMIN_MAX && !record->git[0]; i++) {
		const char *name = i == 0 ? arena_text(&tree->arena, "%s/%s", trees, record->name)
					  : arena_text(&tree->arena, "%s/%s%d", trees, record->name, i);
		if (access(name, F_OK) < 0)
			return;
		if (worktree_read_word(arena_text(&tree->arena, "%s/gitdir", name), "", word, sizeof word) &&
			strcmp(word, gitdir) == 0)
			snprintf(record->git, sizeof record->git, "%s", name);
	}
}

/*
 * What git says is changed or new; and what it would not say: files that it was told to look away from (h: assume-unchanged, S:
 * skip-worktree), and repositories in the places of submodules or in directories of its own files (G), whose branches and stashes
 * it does not look at. It does not go into those: what they have configured would be run.
 */
const char *const worktree_look[] = {"sh", "-c",
	"git status --porcelain -z --untracked-files=all --no-renames --ignore-submodules=dirty && "
	"{ git ls-files -s -v -z || echo 'h 0 0 0\tindex'; } | "
	"sed -nz 's/^\\([a-zS]\\) [0-7]* [0-9a-f]* [0-3]\\t/\\1- /p; "
	"s/^H 160000 [0-9a-f]* [0-3]\\t\\(.*\\)$/G- \\1\\/.git/p' && "
	"git ls-files -z | sed -nz ':up; s/\\/[^/]*$//; T; p; b up' | LC_ALL=C sort -zu | "
	"xargs -0 -r sh -c 'for dir; do [ -e \"$dir/.git\" ] && printf \"G- %s/.git\\\\0\" \"$dir\"; done; true' sh",
	NULL};

/* S: the file need not exist, as in a sparse checkout. G: a submodule that nobody has filled is no work. */
static bool is_nothing(const char *entry, bool there)
{
	return !there && (entry[0] == 'S' || entry[0] == 'G') && entry[1] == '-';
}

struct span worktree_take_entry(struct span *list)
{
	size_t len = strnlen(list->data, list->len);
	struct span entry = {list->data, len + (len < list->len)};

	list->data += entry.len;
	list->len -= entry.len;
	return entry;
}

/* XY path, and what the file is like: in a form that can be compared later. A directory is a repository within the tree:
 * git does not look into it, so that among what the set-up made it is left out, and counts as work for ever. */
int worktree_put_entries(struct worktree *tree, bool made, struct buf *out)
{
	struct span text = buf_span(&tree->job.out);
	char entry[ENTRY_BYTES_MAX];
	struct stat stat_;

	cleanup(close_at) int top = open(tree->record.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	while (text.len > 0) {
		struct span found = worktree_take_entry(&text);
		size_t len = strnlen(found.data, found.len);
		const char *path = len > 3 ? found.data + 3 : found.data;
		bool there = top >= 0 && fstatat(top, path, &stat_, AT_SYMLINK_NOFOLLOW) == 0;
		int put = snprintf(entry, sizeof entry, "%.*s %lld %lld.%09ld", (int)len, found.data,
			there ? (long long)stat_.st_size : -1, there ? (long long)stat_.st_mtim.tv_sec : 0,
			there ? stat_.st_mtim.tv_nsec : 0);
		if (!is_nothing(found.data, there) && (!made || !there || !S_ISDIR(stat_.st_mode)))
			buf_put(out, entry,
				(size_t)(put < (int)sizeof entry ? put : (int)sizeof entry - 1) + 1);
	}
	return buf_fault(out);
}
