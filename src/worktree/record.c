/* The record of a work tree, and the lock of the process that works with it. */
#include "worktree/parts.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/take.h"
#include "wire/json/json.h"

enum {
	RECORD_BYTES_MAX = 64 << 10,
	JOBS_MS = 10 * 1000,
	JOBS_LOOK_MS = 5,
	ALONE_MS = 30 * 1000,
	ALONE_LOOK_MS = 5,
};

const char *worktree_state_name(enum worktree_state state)
{
	static const char *const names[] = {[TREE_MAKING] = "making",
		[TREE_LIVE] = "live",
		[TREE_KEPT] = "kept",
		[TREE_REMOVING] = "removing"};

	return names[state];
}

static int open_dir(int parent_fd, const char *name)
{
	if (mkdirat(parent_fd, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
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

/* Its texts, as they are written down. */
#define TEXT(name_) \
	{#name_, offsetof(struct worktree_record, name_), sizeof((struct worktree_record *)0)->name_}
static const struct {
	const char *name;
	size_t at, room;
} texts[] = {TEXT(task), TEXT(fence), TEXT(source), TEXT(common), TEXT(path), TEXT(git), TEXT(branch),
	TEXT(base), TEXT(tip), TEXT(kept)};

enum { TEXT_COUNT = sizeof texts / sizeof *texts };

/* Before the deed: a successor must find it. */
int worktree_write_record(struct worktree *tree, enum worktree_state state)
{
	struct worktree_record *record = &tree->record;
	cleanup(buf_done) struct buf text = {0};
	struct json_object object;

	/* What it may become. One that is kept is live again for the next attempt of its task; one that is being removed has no work. */
	static const unsigned next[] = {
		[TREE_MAKING] = 1 << TREE_MAKING | 1 << TREE_LIVE | 1 << TREE_REMOVING,
		[TREE_LIVE] = 1 << TREE_LIVE | 1 << TREE_KEPT | 1 << TREE_REMOVING,
		[TREE_KEPT] = 1 << TREE_KEPT | 1 << TREE_LIVE | 1 << TREE_REMOVING,
		[TREE_REMOVING] = 1 << TREE_REMOVING,
	};
	assert(next[record->state] >> state & 1);
	assert(tree->lock_fd >= 0); /* nobody else works with it */
	record->state = state;
	buf_init(&text, RECORD_BYTES_MAX);
	json_begin(&object, &text);
	json_member_string(&object, "state", span_of(worktree_state_name(state)));
	for (size_t i = 0; i < TEXT_COUNT; i++)
		json_member_string(&object, texts[i].name, span_of((const char *)record + texts[i].at));
	json_member_bool(&object, "walled", record->walled);
	json_member_int(&object, "since", record->since_ms);
	int r = json_end(&object);
	if (r == 0)
		r = file_write(tree->dir_fd, "record", buf_span(&text), true);
	tree->unwritten = r < 0;
	return r;
}

int worktree_read_record(int dir_fd, const char *name, struct worktree_record *record)
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
	*record = (struct worktree_record){.since_ms = yyjson_get_sint(yyjson_obj_get(root, "since")),
		.walled = yyjson_get_bool(yyjson_obj_get(root, "walled"))};
	snprintf(record->name, sizeof record->name, "%s", name);
	json_copy_text(root, "state", state, sizeof state);
	for (size_t i = 0; i < TEXT_COUNT; i++)
		json_copy_text(root, texts[i].name, (char *)record + texts[i].at, texts[i].room);
	while (record->state < TREE_REMOVING && strcmp(worktree_state_name(record->state), state) != 0)
		record->state++;
	return strcmp(worktree_state_name(record->state), state) == 0 && record->path[0] == '/' &&
			record->common[0] == '/'
		? 0
		: -EPROTO;
}

int worktree_record_read(int records_fd, const char *name, struct worktree_record *ret_record)
{
	cleanup(close_at) int dir_fd =
		openat(records_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return dir_fd < 0 ? -errno : worktree_read_record(dir_fd, name, ret_record);
}

static int open_lock(const struct worktree *tree, const char *name)
{
	int fd = openat(tree->dir_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

/* Ours, and then that of whatever the one before us had running: that comes to its end within seconds. */
int worktree_take_lock(struct worktree *tree)
{
	int r = tree->lock_fd = open_lock(tree, "lock");

	if (r >= 0)
		r = tree->jobs_fd = open_lock(tree, "jobs");
	if (r < 0)
		return r;
	if (flock(tree->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return -EBUSY;
	for (int waited_ms = 0; flock(tree->jobs_fd, LOCK_EX | LOCK_NB) < 0; waited_ms += JOBS_LOOK_MS) {
		if (waited_ms >= JOBS_MS)
			return -EBUSY;
		poll(NULL, 0, JOBS_LOOK_MS);
	}
	return 0;
}

/* A process that waits for the lock finds no record then. */
void worktree_forget_record(struct worktree *tree)
{
	tree->gone = true;
	unlinkat(tree->dir_fd, "record", 0);
	unlinkat(tree->dir_fd, "made", 0);
	unlinkat(tree->dir_fd, "jobs", 0);
	unlinkat(tree->dir_fd, "lock", 0);
	unlinkat(tree->records_fd, tree->record.name, AT_REMOVEDIR);
}

/* ---- one repository at a time ---- */

static int open_alone(const struct worktree *tree)
{
	char name[40];

	if (mkdirat(tree->records_fd, "../locks", 0700) < 0 && errno != EEXIST)
		return -1;
	snprintf(name, sizeof name, "../locks/%016llx",
		(unsigned long long)worktree_fingerprint(tree->record.common));
	return openat(tree->records_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static void try_alone(struct worktree *tree);

static void on_alone_again(uv_timer_t *timer)
{
	struct job *job = timer->data;

	try_alone(job->context);
}

/* Without a lock, too: on a full disk, or beside somebody who does not end. git may fail then, and says so. */
static void try_alone(struct worktree *tree)
{
	if (tree->alone_fd >= 0 && tree->alone_waited_ms < ALONE_MS &&
		flock(tree->alone_fd, LOCK_EX | LOCK_NB) < 0) {
		tree->alone_waited_ms += ALONE_LOOK_MS;
		uv_timer_start(&tree->job.clock, on_alone_again, ALONE_LOOK_MS, 0);
		return;
	}
	tree->alone(tree);
}

void worktree_when_alone(struct worktree *tree, void (*then)(struct worktree *tree))
{
	assert(tree->alone_fd < 0); /* or the lock that we have would keep us waiting */
	tree->alone_fd = open_alone(tree);
	tree->alone_waited_ms = 0;
	tree->alone = then;
	try_alone(tree);
}

void worktree_let_others(struct worktree *tree)
{
	close_at(&tree->alone_fd);
	tree->alone_fd = -1;
}
