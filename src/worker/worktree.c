#include "worker/worktree.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/files.h"
#include "base/take.h"
#include "exec/workdir.h"
#include "wire/json.h"
#include "worker/job.h"

CLEANUP_AT(yyjson_doc, yyjson_doc_free);

enum {
	GIT_MS = 2 * 60 * 1000,
	CHECKOUT_MS = 15 * 60 * 1000,
	REMOVE_MS = 15 * 60 * 1000,
	RECORD_BYTES_MAX = 64 << 10,
	INCLUDED_MAX = 20000, /* files */
	ADMIN_MAX = 10000,    /* trees of one repository that are looked through */
	ARGS_MAX = 16,
	ENV_OWN_MAX = 40,
	ARENA_BYTES_MAX = 1 << 20,
	ENTRY_BYTES_MAX = PATH_MAX + 64,
};

struct worktree {
	struct worktree_site site;
	struct worktree_wish wish;
	struct worktree_record record;
	char tip[80]; /* where its branch is; "": there is none */
	struct arena arena;
	struct job job;
	int records_fd, dir_fd, lock_fd; /* of all, of its own record, held */
	bool cancelled, gone, cleared;
	int fault; /* of making */
	char reason[WORKTREE_REASON_BYTES];
	void (*made)(void *context, int fault);
	void (*ended)(void *context);
	void *context;
};

static void explain(struct worktree *tree, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void explain(struct worktree *tree, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(tree->reason, sizeof tree->reason, format, args);
	va_end(args);
}

/* A text that the tree owns; "" without memory, which every use of it refuses. */
static const char *text_of(struct worktree *tree, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static const char *text_of(struct worktree *tree, const char *format, ...)
{
	char text[2 * PATH_MAX];
	struct span kept;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return arena_copy(&tree->arena, span_of(text), &kept) < 0 ? "" : kept.data;
}

static int64_t wall_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- records ------------------------------------------------------------------------------------------------ */

const char *worktree_state_name(enum worktree_state state)
{
	static const char *const names[] = {[TREE_MAKING] = "making",
		[TREE_LIVE] = "live",
		[TREE_KEPT] = "kept",
		[TREE_REMOVING] = "removing"};

	return names[state];
}

static int open_dir(int above, const char *name)
{
	if (mkdirat(above, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	int fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int worktree_records_open(const char *home)
{
	cleanup(close_at) int home_fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (home_fd < 0)
		return -errno;
	cleanup(close_at) int trees_fd = open_dir(home_fd, "worktrees");
	return trees_fd < 0 ? trees_fd : open_dir(trees_fd, "records");
}

/* Before the deed: whoever comes after us must find it. */
static int write_record(struct worktree *tree, enum worktree_state state)
{
	struct worktree_record *record = &tree->record;
	cleanup(buf_done) struct buf text = {0};
	struct json_object object;

	record->state = state;
	buf_init(&text, RECORD_BYTES_MAX);
	json_begin(&object, &text);
	json_member_string(&object, "state", span_of(worktree_state_name(state)));
	json_member_string(&object, "task", span_of(record->task));
	json_member_string(&object, "fence", span_of(record->fence));
	json_member_string(&object, "source", span_of(record->source));
	json_member_string(&object, "common", span_of(record->common));
	json_member_string(&object, "path", span_of(record->path));
	json_member_string(&object, "git", span_of(record->git));
	json_member_string(&object, "branch", span_of(record->branch));
	json_member_string(&object, "base", span_of(record->base));
	json_member_string(&object, "tip", span_of(tree->tip));
	json_member_string(&object, "kept", span_of(record->kept));
	json_member_int(&object, "since", record->since_ms);
	int r = json_end(&object);
	return r < 0 ? r : file_write(tree->dir_fd, "record", buf_span(&text), true);
}

static void copy_text(yyjson_val *object, const char *key, char *out, size_t room)
{
	const char *text = yyjson_get_str(yyjson_obj_get(object, key));

	snprintf(out, room, "%s", text ? text : "");
}

static int read_record(int dir_fd, const char *name, struct worktree_record *record, char tip[80])
{
	cleanup(buf_done) struct buf text = {0};
	struct json_complaint complaint;
	char state[16];

	buf_init(&text, RECORD_BYTES_MAX);
	int r = file_read(dir_fd, "record", &text);
	if (r < 0)
		return r;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(buf_span(&text), &complaint);
	yyjson_val *root = yyjson_doc_get_root(doc);
	*record = (struct worktree_record){.since_ms = yyjson_get_sint(yyjson_obj_get(root, "since"))};
	snprintf(record->name, sizeof record->name, "%s", name);
	copy_text(root, "state", state, sizeof state);
	copy_text(root, "task", record->task, sizeof record->task);
	copy_text(root, "fence", record->fence, sizeof record->fence);
	copy_text(root, "source", record->source, sizeof record->source);
	copy_text(root, "common", record->common, sizeof record->common);
	copy_text(root, "path", record->path, sizeof record->path);
	copy_text(root, "git", record->git, sizeof record->git);
	copy_text(root, "branch", record->branch, sizeof record->branch);
	copy_text(root, "base", record->base, sizeof record->base);
	copy_text(root, "kept", record->kept, sizeof record->kept);
	copy_text(root, "tip", tip, 80);
	while (record->state < TREE_REMOVING && strcmp(worktree_state_name(record->state), state) != 0)
		record->state++;
	return strcmp(worktree_state_name(record->state), state) == 0 && record->path[0] == '/' &&
			record->common[0] == '/'
		? 0
		: -EPROTO;
}

int worktree_record_read(int records_fd, const char *name, struct worktree_record *ret_record)
{
	char tip[80];

	cleanup(close_at) int dir_fd =
		openat(records_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return dir_fd < 0 ? -errno : read_record(dir_fd, name, ret_record, tip);
}

static int take_lock(struct worktree *tree)
{
	tree->lock_fd = openat(tree->dir_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (tree->lock_fd < 0)
		return -errno;
	return flock(tree->lock_fd, LOCK_EX | LOCK_NB) < 0 ? -EBUSY : 0;
}

/* Whoever waits for the lock finds no record then. */
static void forget_record(struct worktree *tree)
{
	tree->gone = true;
	unlinkat(tree->dir_fd, "record", 0);
	unlinkat(tree->dir_fd, "made", 0);
	unlinkat(tree->dir_fd, "lock", 0);
	unlinkat(tree->records_fd, tree->record.name, AT_REMOVEDIR);
}

/* ---- running git -------------------------------------------------------------------------------------------- */

/* What a repository brings along does not count: no hooks, no monitor, no network, no configuration but its own. */
static const char *const git_env[] = {
	"HOME=/nonexistent",
	"LC_ALL=C",
	"GIT_CONFIG_NOSYSTEM=1",
	"GIT_CONFIG_GLOBAL=/dev/null",
	"GIT_TERMINAL_PROMPT=0",
	"GIT_OPTIONAL_LOCKS=0",
	"GIT_CONFIG_COUNT=9",
	"GIT_CONFIG_KEY_0=core.hooksPath",
	"GIT_CONFIG_VALUE_0=/dev/null",
	"GIT_CONFIG_KEY_1=core.fsmonitor",
	"GIT_CONFIG_VALUE_1=false",
	"GIT_CONFIG_KEY_2=safe.directory",
	"GIT_CONFIG_VALUE_2=*",
	"GIT_CONFIG_KEY_3=protocol.allow",
	"GIT_CONFIG_VALUE_3=never",
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

/* One program of ours: where, and what it may change. */
struct call {
	const char *const *argv;
	const char *dir;
	bool in_tree;        /* git looks at the tree, and nowhere else for what is git's */
	bool changes_common; /* the repository */
	const char *changes; /* a path besides; NULL */
	const char *reads;   /* NULL */
	struct span input;
	int64_t timeout_ms;
	void (*done)(void *tree);
};

static void add_grant(struct grant *grants, size_t *count, const char *path, enum grant_access access)
{
	if (path && path[0])
		grants[(*count)++] = (struct grant){.path = path, .fd = -1, .access = access};
}

static int start(struct worktree *tree, const struct call *call)
{
	static const char *const allow[] = {"PATH", NULL};
	const struct worktree_record *record = &tree->record;
	struct process_spec spec = process_spec_default();
	const char *env[ENV_OWN_MAX];
	struct grant grants[4];
	size_t count = sizeof git_env / sizeof *git_env;

	memcpy(env, git_env, sizeof git_env);
	if (call->in_tree) {
		env[count++] = text_of(tree, "GIT_DIR=%s", record->git);
		env[count++] = text_of(tree, "GIT_COMMON_DIR=%s", record->common);
		env[count++] = text_of(tree, "GIT_WORK_TREE=%s", record->path);
	}
	env[count] = NULL;
	cleanup(close_at) int dir_fd = open(call->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return -errno;
	size_t granted = 0;
	add_grant(grants, &granted, record->common, call->changes_common ? GRANT_WRITE : GRANT_READ);
	add_grant(grants, &granted, call->dir, GRANT_READ);
	add_grant(grants, &granted, call->changes, GRANT_WRITE);
	add_grant(grants, &granted, call->reads, GRANT_READ);
	spec.run = tree->site.run;
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
	spec.confine.grants = grants;
	spec.confine.grant_count = granted;
	spec.confine.keep_out = tree->site.home;
	spec.confine.workdir_read_only = true;
	spec.confine.limits.file_bytes = LIMIT_UNCHANGED; /* a repository may have larger ones */
	return job_start(&tree->job, &spec, call->timeout_ms, call->done);
}

/* The first line of what it wrote. */
static void take_line(const struct job *job, char *line, size_t room)
{
	struct span out = buf_span(&job->out);
	const char *end = out.len > 0 ? memchr(out.data, '\n', out.len) : NULL;

	snprintf(line, room, "%.*s", (int)(end ? (size_t)(end - out.data) : out.len),
		out.len > 0 ? out.data : "");
}

/* ---- the repository ------------------------------------------------------------------------------------------ */

/* The text of a file of one line, after `before`; false: it is none such. */
static bool read_word(const char *path, const char *before, char *out, size_t room)
{
	cleanup(close_at) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[PATH_MAX + 32];
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	size_t skip = strlen(before);

	if (got <= (ssize_t)skip || strncmp(text, before, skip) != 0)
		return false;
	text[got] = 0;
	text[strcspn(text, "\n")] = 0;
	return (size_t)snprintf(out, room, "%s", text + skip) < room && out[0];
}

/* `name` as seen from `dir`, without . and .. in it. */
static bool resolved(const char *dir, const char *name, char out[WORKTREE_PATH_BYTES])
{
	char path[2 * PATH_MAX], real[PATH_MAX];

	snprintf(path, sizeof path, "%s%s%s", name[0] == '/' ? "" : dir, name[0] == '/' ? "" : "/", name);
	return realpath(path, real) &&
		(size_t)snprintf(out, WORKTREE_PATH_BYTES, "%s", real) < WORKTREE_PATH_BYTES;
}

/* What is git's of the tree at `top`: .git, or where that points, and what several trees share. */
static bool find_common(const char *top, char common[WORKTREE_PATH_BYTES])
{
	char at[PATH_MAX + 32], word[PATH_MAX], git[WORKTREE_PATH_BYTES];
	struct stat stat_;

	snprintf(at, sizeof at, "%s/.git", top);
	if (lstat(at, &stat_) < 0)
		return false;
	if (S_ISDIR(stat_.st_mode))
		return resolved(top, ".git", common);
	if (!S_ISREG(stat_.st_mode) || !read_word(at, "gitdir: ", word, sizeof word) ||
		!resolved(top, word, git))
		return false;
	snprintf(at, sizeof at, "%s/commondir", git);
	return read_word(at, "", word, sizeof word) ? resolved(git, word, common)
						    : (memcpy(common, git, WORKTREE_PATH_BYTES), true);
}

static bool is_in_roots(const char *const *roots, size_t root_count, const char *path)
{
	char reason[WORKDIR_REASON_BYTES], real[PATH_MAX];
	const char *resolved_roots[WORKDIR_ROOTS_MAX];
	static char names[WORKDIR_ROOTS_MAX][PATH_MAX];
	int fd = -1;

	for (size_t i = 0; i < root_count && i < WORKDIR_ROOTS_MAX; i++)
		resolved_roots[i] = realpath(roots[i], real) ? strcpy(names[i], real) : roots[i];
	if (workdir_open(resolved_roots, root_count, path, &fd, reason) < 0)
		return false;
	close(fd);
	return true;
}

int worktree_find(const char *const *roots, size_t root_count, const char *path,
	char ret_top[WORKTREE_PATH_BYTES], char ret_common[WORKTREE_PATH_BYTES], const char **ret_rest,
	char reason[WORKTREE_REASON_BYTES])
{
	char top[WORKTREE_PATH_BYTES];
	size_t len = (size_t)snprintf(top, sizeof top, "%s", path);

	if (len >= sizeof top)
		return -ENAMETOOLONG;
	while (len > 1 && !find_common(top, ret_common)) {
		while (len > 1 && top[len - 1] != '/')
			len--;
		top[len > 1 ? --len : len] = 0;
	}
	if (len <= 1 || !is_in_roots(roots, root_count, top)) {
		snprintf(reason, WORKTREE_REASON_BYTES,
			"work dir '%.300s' is in no git repository beneath a root, and its executor makes a work tree for each "
			"task; payload {\"worktree\": false} works in it as it is",
			path);
		return -ENOENT;
	}
	if (!is_in_roots(roots, root_count, ret_common)) {
		snprintf(reason, WORKTREE_REASON_BYTES,
			"the repository of work dir '%.300s' lies outside of the roots", path);
		return -EXDEV;
	}
	memcpy(ret_top, top, sizeof top);
	*ret_rest = path + len + (path[len] == '/');
	return 0;
}

/* ---- names --------------------------------------------------------------------------------------------------- */

/* A part of a name of a directory and of a branch: letters, digits, - and _ and single dots. */
static void put_clean(char *out, size_t room, const char *text)
{
	size_t len = strlen(out);

	for (; *text && len + 1 < room; text++) {
		bool good = isalnum((unsigned char)*text) || *text == '-' || *text == '_' ||
			(*text == '.' && len > 0 && out[len - 1] != '.' && out[len - 1] != '/');
		out[len++] = good ? *text : '_';
	}
	out[len] = 0;
}

static void make_branch(struct worktree_record *record, const char *pattern)
{
	size_t room = sizeof record->branch;

	record->branch[0] = 0;
	for (const char *at = pattern; *at;) {
		size_t len = strlen(record->branch);
		if (strncmp(at, "{task}", 6) == 0) {
			put_clean(record->branch, room, record->task);
			at += 6;
		} else if (strncmp(at, "{fence}", 7) == 0) {
			put_clean(record->branch, room, record->fence);
			at += 7;
		} else {
			if (len + 1 < room)
				memcpy(record->branch + len, (char[]){*at, 0}, 2);
			at++;
		}
	}
}

/* The same for the same repository, on every machine. */
static uint64_t fingerprint(const char *text)
{
	uint64_t hash = 14695981039346656037u;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 1099511628211u;
	return hash;
}

/* The directory that holds the tree; made if it is not there. */
static int make_place(struct worktree *tree)
{
	const struct settings_worktree *settings = tree->wish.settings;
	struct worktree_record *record = &tree->record;
	char place[PATH_MAX];

	int len = settings->root ? snprintf(place, sizeof place, "%s", settings->root)
				 : snprintf(place, sizeof place, "%s/worktrees", tree->site.home);
	if (len < 0 || len >= (int)sizeof place - 20)
		return -ENAMETOOLONG;
	if (mkdir(place, 0700) < 0 && errno != EEXIST)
		return -errno;
	snprintf(place + len, sizeof place - (size_t)len, "/%016llx",
		(unsigned long long)fingerprint(record->common));
	if (mkdir(place, 0700) < 0 && errno != EEXIST)
		return -errno;
	if ((size_t)snprintf(record->path, sizeof record->path, "%.3800s/%s", place, record->name) >=
		sizeof record->path)
		return -ENAMETOOLONG;
	return 0;
}

static const char *place_of(struct worktree *tree)
{
	return text_of(
		tree, "%.*s", (int)(strrchr(tree->record.path, '/') - tree->record.path), tree->record.path);
}

/* ---- ending -------------------------------------------------------------------------------------------------- */

static void finish_end(struct worktree *tree)
{
	if (tree->ended)
		tree->ended(tree->context);
	else
		tree->made(tree->context, tree->fault);
}

static void keep(struct worktree *tree, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void keep(struct worktree *tree, const char *format, ...)
{
	bool before = tree->record.state == TREE_KEPT;
	va_list args;

	va_start(args, format);
	vsnprintf(tree->record.kept, sizeof tree->record.kept, format, args);
	va_end(args);
	if (!before)
		tree->record.since_ms = wall_ms();
	/* one that is being removed stays so: what is left of it is nobody's work */
	write_record(tree, tree->record.state == TREE_REMOVING ? TREE_REMOVING : TREE_KEPT);
	finish_end(tree);
}

static void keep_for_fault(struct worktree *tree, const char *what, int fault)
{
	keep(tree, "%s cannot be run: %s", what, strerror(-fault));
}

static void after_branch(void *context)
{
	struct worktree *tree = context;

	forget_record(tree); /* if the branch has moved on meanwhile it stays: it is in the repository */
	finish_end(tree);
}

static void remove_branch(struct worktree *tree)
{
	const char *argv[] = {"git", "update-ref", "-d", text_of(tree, "refs/heads/%s", tree->record.branch),
		tree->tip, NULL};
	struct call call = {.argv = argv,
		.dir = tree->record.common,
		.changes_common = true,
		.timeout_ms = GIT_MS,
		.done = after_branch};

	if (!tree->tip[0] || !tree->record.branch[0] || start(tree, &call) < 0)
		after_branch(tree);
}

static void clear_away(struct worktree *tree);

static void after_opened_up(void *context)
{
	clear_away(context);
}

static void after_cleared(void *context)
{
	struct worktree *tree = context;
	const char *argv[] = {"chmod", "-R", "u+rwX", "--", tree->record.path, NULL};
	struct call call = {.argv = argv,
		.dir = tree->record.common,
		.changes = place_of(tree),
		.timeout_ms = REMOVE_MS,
		.done = after_opened_up};
	char why[400];

	if (job_went_well(&tree->job)) {
		remove_branch(tree);
	} else if (!tree->cleared && start(tree, &call) == 0) { /* somebody took the permissions away */
		tree->cleared = true;
	} else {
		job_explain(&tree->job, why, sizeof why);
		keep(tree, "it is being removed, and that fails: %.200s", why);
	}
}

/* git's own directory of the tree, also of one that git did not come to an end with. */
static void find_admin(struct worktree *tree)
{
	struct worktree_record *record = &tree->record;
	const char *above = text_of(tree, "%s/worktrees", record->common);
	size_t len = strlen(above);
	char gitdir[WORKTREE_PATH_BYTES + 8], word[PATH_MAX];

	snprintf(gitdir, sizeof gitdir, "%s/.git", record->path);
	if (strncmp(record->git, above, len) == 0 && record->git[len] == '/' &&
		!strchr(record->git + len + 1, '/') && record->git[len + 1] != '.')
		return;
	record->git[0] = 0;
	/* git calls it like the tree, with a number after it if that was taken */
	for (int i = 0; i < ADMIN_MAX && !record->git[0]; i++) {
		const char *name = i == 0 ? text_of(tree, "%s/%s", above, record->name)
					  : text_of(tree, "%s/%s%d", above, record->name, i);
		if (access(name, F_OK) < 0)
			return;
		if (read_word(text_of(tree, "%s/gitdir", name), "", word, sizeof word) &&
			strcmp(word, gitdir) == 0)
			snprintf(record->git, sizeof record->git, "%s", name);
	}
}

static void clear_away(struct worktree *tree)
{
	struct worktree_record *record = &tree->record;

	find_admin(tree);
	const char *argv[] = {"rm", "-rf", "--one-file-system", "--", record->path,
		record->git[0] ? record->git : NULL, NULL};
	struct call call = {.argv = argv,
		.dir = record->common,
		.changes_common = true,
		.changes = place_of(tree),
		.timeout_ms = REMOVE_MS,
		.done = after_cleared};
	int fault = start(tree, &call);
	if (fault)
		keep_for_fault(tree, "rm", fault);
}

static void remove_tree(struct worktree *tree)
{
	int fault = write_record(tree, TREE_REMOVING);

	if (fault) {
		tree->record.state = TREE_LIVE;
		keep(tree, "its record cannot be written: %s", strerror(-fault));
	} else {
		clear_away(tree);
	}
}

/* Commits that only this tree, or its branch, has. */
static void after_counted(void *context)
{
	struct worktree *tree = context;
	char count[24], why[300];

	take_line(&tree->job, count, sizeof count);
	if (!job_went_well(&tree->job)) {
		job_explain(&tree->job, why, sizeof why);
		keep(tree, "git cannot tell whether its commits were pushed: %.200s", why);
	} else if (strcmp(count, "0") != 0) {
		keep(tree, "%s commit%s on %.150s that no remote branch has", count,
			strcmp(count, "1") == 0 ? "" : "s", tree->record.branch);
	} else {
		remove_tree(tree);
	}
}

static void after_tip(void *context)
{
	struct worktree *tree = context;

	tree->tip[0] = 0;
	if (job_went_well(&tree->job))
		take_line(&tree->job, tree->tip, sizeof tree->tip);
	const char *with_tip[] = {"git", "rev-list", "--count", "HEAD", tree->tip, "--not", tree->record.base,
		"--remotes", NULL};
	const char *without[] = {
		"git", "rev-list", "--count", "HEAD", "--not", tree->record.base, "--remotes", NULL};
	struct call call = {.argv = tree->tip[0] ? with_tip : without,
		.dir = tree->record.path,
		.in_tree = true,
		.timeout_ms = GIT_MS,
		.done = after_counted};
	int fault = start(tree, &call);
	if (fault)
		keep_for_fault(tree, "git", fault);
}

/* XY path, and what the file is like: in a form that can be compared later. A directory is a repository within the tree:
 * git does not look into it, so that among what the set-up made it is left out, and counts as work for ever. */
static int put_entries(struct worktree *tree, bool made, struct buf *out)
{
	struct span text = buf_span(&tree->job.out);
	char entry[ENTRY_BYTES_MAX];
	struct stat stat_;
	int r = 0;

	cleanup(close_at) int top = open(tree->record.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	while (r == 0 && text.len > 0) {
		size_t len = strnlen(text.data, text.len);
		const char *path = len > 3 ? text.data + 3 : text.data;
		bool there = top >= 0 && fstatat(top, path, &stat_, AT_SYMLINK_NOFOLLOW) == 0;
		int put = snprintf(entry, sizeof entry, "%.*s %lld %lld.%09ld", (int)len, text.data,
			there ? (long long)stat_.st_size : -1, there ? (long long)stat_.st_mtim.tv_sec : 0,
			there ? stat_.st_mtim.tv_nsec : 0);
		if (!made || !there || !S_ISDIR(stat_.st_mode))
			r = buf_put(out, entry,
				(size_t)(put < (int)sizeof entry ? put : (int)sizeof entry - 1) + 1);
		len += len < text.len;
		text.data += len;
		text.len -= len;
	}
	return r;
}

/* How many of these are not among those that the set-up made. */
static uint32_t count_work(struct span now, struct span made)
{
	uint32_t count = 0;

	while (now.len > 0) {
		size_t len = strnlen(now.data, now.len) + 1;
		struct span left = made;
		bool known = false;
		while (!known && left.len > 0) {
			size_t size = strnlen(left.data, left.len) + 1;
			known = size == len && memcmp(left.data, now.data, len) == 0;
			size = size < left.len ? size : left.len;
			left.data += size;
			left.len -= size;
		}
		count += !known;
		len = len < now.len ? len : now.len;
		now.data += len;
		now.len -= len;
	}
	return count;
}

static void after_status(void *context)
{
	struct worktree *tree = context;
	const char *argv[] = {"git", "rev-parse", "--verify", "--quiet",
		text_of(tree, "refs/heads/%s", tree->record.branch), NULL};
	struct call call = {.argv = argv,
		.dir = tree->record.path,
		.in_tree = true,
		.timeout_ms = GIT_MS,
		.done = after_tip};
	cleanup(buf_done) struct buf now = {0}, made = {0};
	char why[300];

	buf_init(&now, 2 * JOB_OUTPUT_BYTES_MAX);
	buf_init(&made, 2 * JOB_OUTPUT_BYTES_MAX);
	if (!job_went_well(&tree->job)) {
		job_explain(&tree->job, why, sizeof why);
		keep(tree, "git cannot tell whether there is work in it: %.200s", why);
		return;
	}
	file_read(tree->dir_fd, "made", &made);
	uint32_t work =
		put_entries(tree, false, &now) < 0 ? UINT32_MAX : count_work(buf_span(&now), buf_span(&made));
	if (work > 0) {
		keep(tree, "%u uncommitted file%s", work, work == 1 ? "" : "s");
		return;
	}
	int fault = start(tree, &call);
	if (fault)
		keep_for_fault(tree, "git", fault);
}

/* What only git's own directory of the tree knows; NULL: nothing. */
static const char *half_done(struct worktree *tree)
{
	static const struct {
		const char *name, *text;
	} signs[] = {
		{"locked", "somebody has locked it"},
		{"rebase-merge", "a rebase is not finished"},
		{"rebase-apply", "a rebase is not finished"},
		{"MERGE_HEAD", "a merge is not finished"},
		{"CHERRY_PICK_HEAD", "a cherry-pick is not finished"},
		{"REVERT_HEAD", "a revert is not finished"},
		{"BISECT_LOG", "a bisection is not finished"},
		{"modules", "it has submodules"},
	};

	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
		if (access(text_of(tree, "%s/%s", tree->record.git, signs[i].name), F_OK) == 0)
			return signs[i].text;
	return NULL;
}

/* Is there work in it? */
static void look_for_work(struct worktree *tree)
{
	static const char *const argv[] = {
		"git", "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", NULL};
	struct call call = {.argv = argv,
		.dir = tree->record.path,
		.in_tree = true,
		.timeout_ms = GIT_MS,
		.done = after_status};
	const char *half = half_done(tree);
	int fault = half ? 0 : start(tree, &call);

	if (half)
		keep(tree, "%s", half);
	else if (fault)
		keep_for_fault(tree, "git", fault);
}

static void end(struct worktree *tree)
{
	const struct worktree_record *record = &tree->record;

	if (access(record->common, F_OK) < 0 && access(record->path, F_OK) == 0) {
		keep(tree, "its repository %.200s is gone", record->common);
	} else if (record->state == TREE_MAKING || record->state == TREE_REMOVING) {
		if (record->state ==
			TREE_MAKING) /* nobody has worked in it: its branch is where it began, or not ours */
			snprintf(tree->tip, sizeof tree->tip, "%s", record->base);
		if (access(record->common, F_OK) < 0)
			after_branch(tree);
		else
			remove_tree(tree);
	} else if (access(record->path, F_OK) <
		0) { /* somebody has removed it; what is on its branch stays */
		after_branch(tree);
	} else {
		look_for_work(tree);
	}
}

static void on_end_due(uv_timer_t *timer)
{
	struct job *job = timer->data;

	end(job->context);
}

void worktree_end(struct worktree *tree, void (*ended)(void *context), void *context)
{
	tree->ended = ended;
	tree->context = context;
	uv_timer_start(&tree->job.clock, on_end_due, 0, 0);
}

/* ---- making -------------------------------------------------------------------------------------------------- */

static void give_up(struct worktree *tree, int fault)
{
	tree->fault = tree->cancelled ? -ECANCELED : fault;
	end(tree);
}

/* The last job failed. */
static void give_up_after(struct worktree *tree, const char *what)
{
	char why[400];

	job_explain(&tree->job, why, sizeof why);
	explain(tree, "a work tree of '%.200s' cannot be made: %s: %s", tree->record.source, what, why);
	give_up(tree, -EIO);
}

static void go_on(struct worktree *tree, const struct call *call, const char *what)
{
	int fault = tree->cancelled ? -ECANCELED : start(tree, call);

	if (!fault)
		return;
	explain(tree, "a work tree of '%.200s' cannot be made: %s: %s", tree->record.source, what,
		strerror(-fault));
	give_up(tree, fault);
}

static void become_live(struct worktree *tree)
{
	int fault = tree->cancelled ? -ECANCELED : write_record(tree, TREE_LIVE);

	if (fault) {
		tree->record.state = TREE_MAKING;
		explain(tree, "the record of a work tree cannot be written: %s", strerror(-fault));
		give_up(tree, fault);
		return;
	}
	tree->made(tree->context, 0);
}

static void after_made(void *context)
{
	struct worktree *tree = context;
	cleanup(buf_done) struct buf made = {0};

	buf_init(&made, 2 * JOB_OUTPUT_BYTES_MAX);
	int fault = job_went_well(&tree->job) ? put_entries(tree, true, &made) : -EIO;
	if (!fault)
		fault = file_write(tree->dir_fd, "made", buf_span(&made), true);
	if (fault)
		give_up_after(tree, "git status");
	else
		become_live(tree);
}

static void after_set_up(void *context)
{
	static const char *const argv[] = {
		"git", "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", NULL};
	struct worktree *tree = context;
	struct call call = {.argv = argv,
		.dir = tree->record.path,
		.in_tree = true,
		.timeout_ms = GIT_MS,
		.done = after_made};

	if (job_went_well(&tree->job) ||
		(tree->job.end.how == ENDED_EXIT && tree->job.end.code == 0 && !tree->job.timed_out))
		go_on(tree, &call, "git status");
	else
		give_up_after(tree, "its set-up");
}

/* The hook of the configuration, or of the repository where the configuration allows it; NULL: there is none. */
static const char *const *set_up_argv(struct worktree *tree, const char *argv[3])
{
	static const char *const usual[] = {".stint/setup.sh", ".openclaw/worktree-setup.sh"};

	if (tree->wish.settings->setup)
		return tree->wish.settings->setup;
	for (size_t i = 0; tree->wish.settings->setup_of_repository && i < sizeof usual / sizeof *usual;
		i++) {
		const char *path = text_of(tree, "%s/%s", tree->record.path, usual[i]);
		int at = 0;
		if (access(path, R_OK) < 0)
			continue;
		if (access(path, X_OK) < 0)
			argv[at++] = "sh";
		argv[at++] = path;
		argv[at] = NULL;
		return argv;
	}
	return NULL;
}

static const char **set_up_env(struct worktree *tree, const char *const *env)
{
	const struct worktree_record *record = &tree->record;
	size_t count = 0;

	while (env[count])
		count++;
	const char **all = arena_alloc(&tree->arena, (count + 4) * sizeof *all);
	if (!all)
		return NULL;
	memcpy(all, env, count * sizeof *all);
	all[count++] = text_of(tree, "STINT_SOURCE_TREE=%s", record->source);
	all[count++] = text_of(tree, "OPENCLAW_SOURCE_TREE_PATH=%s", record->source);
	all[count++] = text_of(tree, "OPENCLAW_WORKTREE_PATH=%s", record->path);
	all[count] = NULL;
	return all;
}

static int start_set_up(struct worktree *tree, const char *const *argv)
{
	struct process_spec spec = process_spec_default();
	struct grant grants[GRANTS_MAX];

	cleanup(close_at) int dir_fd = open(tree->record.path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir_fd < 0)
		return -errno;
	int fault = tree->wish.like_the_task(tree->context, dir_fd, &spec);
	if (fault)
		return fault;
	if (spec.confine.grant_count + 1 >= GRANTS_MAX)
		return -E2BIG;
	memcpy(grants, spec.confine.grants, spec.confine.grant_count * sizeof *grants);
	size_t count = spec.confine.grant_count;
	add_grant(grants, &count, tree->record.source, GRANT_READ);
	spec.confine.grants = grants;
	spec.confine.grant_count = count;
	spec.argv = argv;
	spec.env = set_up_env(tree, spec.env);
	spec.stdin_from = STDIN_NULL;
	spec.run = tree->site.run;
	return spec.env ? job_start(&tree->job, &spec, tree->wish.settings->setup_ms, after_set_up) : -ENOMEM;
}

static void set_up(struct worktree *tree)
{
	const char *room[3];
	const char *const *argv = set_up_argv(tree, room);
	int fault = tree->cancelled ? -ECANCELED : argv ? start_set_up(tree, argv) : 0;

	if (fault) {
		explain(tree, "the set-up of a work tree of '%.200s' cannot be run: %s", tree->record.source,
			strerror(-fault));
		give_up(tree, fault);
	} else if (!argv) {
		become_live(tree);
	}
}

static void after_included(void *context)
{
	struct worktree *tree = context;

	if (job_went_well(&tree->job))
		set_up(tree);
	else
		give_up_after(tree, "files of its include file");
}

/* Those that are ignored, and that the tree does not have yet. */
static void after_ignored(void *context)
{
	struct worktree *tree = context;
	const char *argv[] = {"xargs", "-0", "cp", "--parents", "-P", "--preserve=mode,timestamps", "-t",
		tree->record.path, "--", NULL};
	struct call call = {.argv = argv,
		.dir = tree->record.source,
		.changes = tree->record.path,
		.timeout_ms = CHECKOUT_MS,
		.done = after_included};
	cleanup(buf_done) struct buf list = {0};
	struct span text = buf_span(&tree->job.out);
	uint32_t count = 0;

	if (!job_went_well(&tree->job) && !(tree->job.end.how == ENDED_EXIT && tree->job.end.code == 1)) {
		give_up_after(tree, "git check-ignore");
		return;
	}
	buf_init(&list, JOB_OUTPUT_BYTES_MAX);
	cleanup(close_at) int top = open(tree->record.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	while (text.len > 0) {
		size_t len = strnlen(text.data, text.len);
		if (len < text.len && faccessat(top, text.data, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && ++count)
			buf_put(&list, text.data, len + 1);
		len += len < text.len;
		text.data += len;
		text.len -= len;
	}
	call.input = buf_span(&list);
	if (count > INCLUDED_MAX) {
		explain(tree, "the include file of '%.200s' names more than %d files", tree->record.source,
			INCLUDED_MAX);
		give_up(tree, -E2BIG);
	} else if (count == 0) {
		set_up(tree);
	} else {
		go_on(tree, &call, "cp");
	}
}

static void after_listed(void *context)
{
	static const char *const argv[] = {"git", "check-ignore", "-z", "--stdin", NULL};
	struct worktree *tree = context;
	cleanup(buf_done) struct buf list = {0};
	struct call call = {
		.argv = argv, .dir = tree->record.source, .timeout_ms = GIT_MS, .done = after_ignored};

	if (!job_went_well(&tree->job)) {
		give_up_after(tree, "its include file");
		return;
	}
	if (tree->job.out.len == 0) {
		set_up(tree);
		return;
	}
	buf_init(&list, JOB_OUTPUT_BYTES_MAX);
	buf_put_span(&list, buf_span(&tree->job.out)); /* the job's own goes when it starts again */
	call.input = buf_span(&list);
	go_on(tree, &call, "git check-ignore");
}

/* Files that git ignores and that the new tree shall have all the same: those that the include file names. */
static void include(struct worktree *tree)
{
	static const char *const usual[] = {".worktreeinclude", ".stint/include"};
	const char *chosen = tree->wish.settings->include, *path = NULL;

	for (size_t i = 0; i < sizeof usual / sizeof *usual && !path; i++) {
		const char *name = chosen ? chosen : usual[i];
		path = text_of(tree, "%s/%s", tree->record.source, name);
		if (access(path, R_OK) < 0)
			path = NULL;
	}
	const char *argv[] = {"git", "ls-files", "-z", "--others", "--ignored",
		text_of(tree, "--exclude-from=%s", path ? path : ""), NULL};
	struct call call = {
		.argv = argv, .dir = tree->record.source, .timeout_ms = GIT_MS, .done = after_listed};
	if (path)
		go_on(tree, &call, "git ls-files");
	else
		set_up(tree);
}

/* git says that a file cannot be written, and not why. */
static const char *room_left(struct worktree *tree)
{
	struct statvfs disk;
	const char *place = place_of(tree);

	if (statvfs(place, &disk) < 0)
		return "git";
	return text_of(tree, "git, with %llu KiB left on the disk of %.300s",
		(unsigned long long)disk.f_bavail * disk.f_frsize / 1024, place);
}

static void after_added(void *context)
{
	struct worktree *tree = context;

	if (!job_went_well(&tree->job)) {
		give_up_after(tree, room_left(tree));
		return;
	}
	find_admin(tree);
	int fault = tree->record.git[0] ? write_record(tree, TREE_MAKING) : -ENOENT;
	if (fault) {
		explain(tree, "a work tree of '%.200s' cannot be made: %s", tree->record.source,
			strerror(-fault));
		give_up(tree, fault);
	} else {
		include(tree);
	}
}

static void fail_early(struct worktree *tree, int fault)
{
	tree->gone = true;
	tree->made(tree->context, tree->cancelled ? -ECANCELED : fault);
}

/* From here on there is something to find for whoever comes after us. */
static int begin_record(struct worktree *tree)
{
	int fault = make_place(tree);

	if (fault)
		return fault;
	if (mkdirat(tree->records_fd, tree->record.name, 0700) < 0)
		return -errno;
	tree->dir_fd =
		openat(tree->records_fd, tree->record.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (tree->dir_fd < 0)
		return -errno;
	fault = take_lock(tree);
	if (!fault && mkdir(tree->record.path, 0700) < 0)
		fault = -errno; /* what lies there is somebody else's, and is not to be cleared away */
	if (fault)
		return fault;
	fault = write_record(tree, TREE_MAKING);
	if (fault)
		rmdir(tree->record.path);
	return fault;
}

static void after_looked(void *context)
{
	struct worktree *tree = context;
	struct worktree_record *record = &tree->record;
	char why[400];

	if (tree->job.end.how != ENDED_EXIT || tree->job.end.code != 1) {
		job_explain(&tree->job, why, sizeof why);
		if (job_went_well(&tree->job))
			snprintf(why, sizeof why, "there is a branch '%s' already", record->branch);
		explain(tree, "a work tree of '%.200s' cannot be made: %s", record->source, why);
		fail_early(tree, -EEXIST);
		return;
	}
	int fault = begin_record(tree);
	if (fault) {
		if (tree->dir_fd >= 0)
			forget_record(tree);
		explain(tree, "a work tree of '%.200s' cannot be made beneath %.200s: %s", record->source,
			tree->wish.settings->root ? tree->wish.settings->root : tree->site.home,
			strerror(-fault));
		fail_early(tree, fault);
		return;
	}
	const char *argv[] = {
		"git", "worktree", "add", "--quiet", "-b", record->branch, record->path, record->base, NULL};
	struct call call = {.argv = argv,
		.dir = record->source,
		.changes_common = true,
		.changes = place_of(tree),
		.timeout_ms = CHECKOUT_MS,
		.done = after_added};
	go_on(tree, &call, "git");
}

/* A step before there is a record: nothing is to be cleared away. */
static void begin_with(struct worktree *tree, const struct call *call)
{
	int fault = tree->cancelled    ? -ECANCELED
		: tree->records_fd < 0 ? tree->records_fd
				       : start(tree, call);

	if (!fault)
		return;
	explain(tree, "a work tree of '%.200s' cannot be made: %s", tree->record.source, strerror(-fault));
	fail_early(tree, fault);
}

/* A server that was begun anew gives a task the same name and fence again: its branch may be somebody else's. */
static void after_base(void *context)
{
	struct worktree *tree = context;
	struct worktree_record *record = &tree->record;
	const char *argv[] = {"git", "show-ref", "--verify", "--quiet",
		text_of(tree, "refs/heads/%s", record->branch), NULL};
	struct call call = {.argv = argv, .dir = record->source, .timeout_ms = GIT_MS, .done = after_looked};
	char why[400];

	if (!job_went_well(&tree->job)) {
		job_explain(&tree->job, why, sizeof why);
		explain(tree, "a work tree of '%.200s' cannot be made: it has no commit '%.60s': %s",
			record->source, tree->wish.settings->base, why);
		fail_early(tree, -ENOENT);
		return;
	}
	take_line(&tree->job, record->base, sizeof record->base);
	begin_with(tree, &call);
}

static struct worktree *tree_new(const struct worktree_site *site)
{
	struct worktree *tree = calloc(1, sizeof *tree);

	if (!tree)
		return NULL;
	tree->site = *site;
	tree->dir_fd = tree->lock_fd = -1;
	arena_init(&tree->arena, ARENA_BYTES_MAX);
	tree->records_fd = worktree_records_open(site->home);
	job_init(&tree->job, site->loop, site->host, tree);
	return tree;
}

static void on_make_due(uv_timer_t *timer)
{
	struct job *job = timer->data;
	struct worktree *tree = job->context;
	const char *argv[] = {"git", "rev-parse", "--verify", "--quiet",
		text_of(tree, "%s^{commit}", tree->wish.settings->base), NULL};
	struct call call = {
		.argv = argv, .dir = tree->record.source, .timeout_ms = GIT_MS, .done = after_base};

	begin_with(tree, &call);
}

struct worktree *worktree_make(const struct worktree_site *site, const struct worktree_wish *wish,
	void (*made)(void *context, int fault), void *context)
{
	struct worktree *tree = tree_new(site);

	if (!tree)
		return NULL;
	struct worktree_record *record = &tree->record;
	tree->wish = *wish;
	tree->made = made;
	tree->context = context;
	record->since_ms = wall_ms();
	snprintf(record->task, sizeof record->task, "%s", wish->task);
	snprintf(record->fence, sizeof record->fence, "%s", wish->fence);
	snprintf(record->source, sizeof record->source, "%s", wish->top);
	snprintf(record->common, sizeof record->common, "%s", wish->common);
	put_clean(record->name, 120, wish->task);
	strcat(record->name, "-");
	put_clean(record->name, sizeof record->name, wish->fence);
	make_branch(record, wish->settings->branch);
	uv_timer_start(&tree->job.clock, on_make_due, 0, 0);
	return tree;
}

int worktree_open(const struct worktree_site *site, const char *name, struct worktree **ret_tree)
{
	struct worktree *tree = tree_new(site);
	int fault = tree ? 0 : -ENOMEM;

	if (fault)
		return fault;
	if (tree->records_fd < 0)
		fault = tree->records_fd;
	if (!fault) {
		tree->dir_fd =
			openat(tree->records_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		fault = tree->dir_fd < 0 ? -errno : take_lock(tree);
	}
	if (!fault)
		fault = read_record(tree->dir_fd, name, &tree->record, tree->tip);
	if (fault == -ENOENT &&
		tree->dir_fd >= 0) { /* it came to nothing before it was written down, or is just gone */
		snprintf(tree->record.name, sizeof tree->record.name, "%s", name);
		forget_record(tree);
	}
	if (fault) {
		worktree_free(tree);
		return fault;
	}
	*ret_tree = tree;
	return 0;
}

void worktree_cancel(struct worktree *tree)
{
	if (tree->ended || tree->fault) /* it goes already */
		return;
	tree->cancelled = true;
	job_kill(&tree->job);
}

const struct worktree_record *worktree_record(const struct worktree *tree)
{
	return &tree->record;
}

bool worktree_is_gone(const struct worktree *tree)
{
	return tree->gone;
}

const char *worktree_reason(const struct worktree *tree)
{
	return tree->reason;
}

size_t worktree_grants(const struct worktree *tree, struct grant grants[WORKTREE_GRANTS_MAX])
{
	struct worktree *owner = (struct worktree *)tree; /* of the texts */
	const struct worktree_record *record = &tree->record;
	int len = (int)(strrchr(record->branch, '/') ? strrchr(record->branch, '/') - record->branch : 0);
	size_t count = 0;

	add_grant(grants, &count, record->path, GRANT_WRITE);
	add_grant(grants, &count, record->common, GRANT_READ);
	add_grant(grants, &count, record->git, GRANT_WRITE);
	add_grant(grants, &count, text_of(owner, "%s/objects", record->common), GRANT_WRITE);
	if (len > 0) { /* a branch without a directory of its own could not be told from the others */
		add_grant(grants, &count,
			text_of(owner, "%s/refs/heads/%.*s", record->common, len, record->branch),
			GRANT_WRITE);
		add_grant(grants, &count,
			text_of(owner, "%s/logs/refs/heads/%.*s", record->common, len, record->branch),
			GRANT_WRITE);
	}
	add_grant(grants, &count, text_of(owner, "%s/refs/remotes", record->common), GRANT_WRITE);
	add_grant(grants, &count, text_of(owner, "%s/logs/refs/remotes", record->common), GRANT_WRITE);
	for (size_t i = 3; i < count; i++)
		grants[i].optional = true;
	return count;
}

static void on_closed(void *context)
{
	struct worktree *tree = context;

	close_at(&tree->lock_fd);
	close_at(&tree->dir_fd);
	close_at(&tree->records_fd);
	arena_done(&tree->arena);
	free(tree);
}

void worktree_free(struct worktree *tree)
{
	if (tree)
		job_close(&tree->job, on_closed);
}
