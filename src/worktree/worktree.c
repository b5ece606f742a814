#include "worktree/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/take.h"

enum { ARENA_BYTES_MAX = 1 << 20 };

const char *worktree_place(struct worktree *tree)
{
	return arena_text(&tree->arena, "%.*s", (int)(strrchr(tree->record.path, '/') - tree->record.path),
		tree->record.path);
}

uint64_t worktree_fingerprint(const char *common)
{
	uint64_t hash = 14695981039346656037u;

	for (; *common; common++)
		hash = (hash ^ (unsigned char)*common) * 1099511628211u;
	return hash;
}

struct worktree *worktree_new(const struct worktree_site *site)
{
	struct worktree *tree = calloc(1, sizeof *tree);

	if (!tree)
		return NULL;
	tree->site = *site;
	tree->dir_fd = tree->lock_fd = tree->jobs_fd = tree->alone_fd = -1;
	arena_init(&tree->arena, ARENA_BYTES_MAX);
	tree->records_fd = worktree_records_open(site->home);
	job_init(&tree->job, site->loop, site->host, tree);
	return tree;
}

int worktree_open(const struct worktree_site *site, const char *name, struct worktree **ret_tree)
{
	struct worktree *tree = worktree_new(site);
	int fault = tree ? 0 : -ENOMEM;

	if (fault)
		return fault;
	if (tree->records_fd < 0)
		fault = tree->records_fd;
	if (!fault) {
		tree->dir_fd =
			openat(tree->records_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		fault = tree->dir_fd < 0 ? -errno : worktree_take_lock(tree);
	}
	if (!fault)
		fault = worktree_read_record(tree->dir_fd, name, &tree->record);
	if (fault == -ENOENT &&
		tree->dir_fd >= 0) { /* it came to nothing before it was written down, or is just gone */
		snprintf(tree->record.name, sizeof tree->record.name, "%s", name);
		worktree_forget_record(tree);
	}
	if (fault) {
		worktree_free(tree);
		return fault;
	}
	*ret_tree = tree;
	return 0;
}

int worktree_resume(struct worktree *tree)
{
	const struct worktree_record *record = &tree->record;

	if ((record->state != TREE_LIVE && record->state != TREE_KEPT) || access(record->path, F_OK) < 0 ||
		!record->git[0] || access(record->git, F_OK) < 0)
		return -ENOENT;
	if (worktree_prepare_refs(tree))
		return -ENOTDIR;
	tree->record.kept[0] = 0;
	return worktree_write_record(tree, TREE_LIVE);
}

int worktree_keep(struct worktree *tree, const char *why)
{
	snprintf(tree->record.kept, sizeof tree->record.kept, "%s", why);
	tree->record.since_ms = clock_wall_ms();
	return worktree_write_record(tree, TREE_KEPT);
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

bool worktree_is_settled(const struct worktree *tree)
{
	return tree->gone || (tree->record.state == TREE_KEPT && !tree->unwritten);
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

	worktree_add_grant(record, grants, &count, record->path, GRANT_WRITE);
	worktree_add_grant(record, grants, &count, record->common, GRANT_READ);
	worktree_add_grant(record, grants, &count, record->git, GRANT_WRITE);
	worktree_add_grant(
		record, grants, &count, arena_text(&owner->arena, "%s/objects", record->common), GRANT_WRITE);
	if (len > 0) { /* a branch without a directory of its own could not be told from the others */
		worktree_add_grant(record, grants, &count,
			arena_text(&owner->arena, "%s/refs/heads/%.*s", record->common, len, record->branch),
			GRANT_WRITE);
		worktree_add_grant(record, grants, &count,
			arena_text(&owner->arena, "%s/logs/refs/heads/%.*s", record->common, len,
				record->branch),
			GRANT_WRITE);
	}
	worktree_add_grant(record, grants, &count,
		arena_text(&owner->arena, "%s/refs/remotes", record->common), GRANT_WRITE);
	worktree_add_grant(record, grants, &count,
		arena_text(&owner->arena, "%s/logs/refs/remotes", record->common), GRANT_WRITE);
	for (size_t i = 3; i < count; i++)
		grants[i].optional = true;
	return count;
}

static void on_closed(void *context)
{
	struct worktree *tree = context;

	close_at(&tree->alone_fd);
	close_at(&tree->jobs_fd);
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
