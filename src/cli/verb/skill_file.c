#include "cli/verb/skill_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/crc32c.h"
#include "base/files.h"
#include "base/take.h"

enum {
	FILE_BYTES_MAX = 1 << 20,
	MARK_BYTES_MAX = 200,
};

static const char file_name[] = "SKILL.md";

/* ---- the mark ---------------------------------------------------------------------------------------------- */

int skill_put(struct buf *out, const struct skill *skill, const char *version)
{
	buf_put_span(out, skill->text);
	return buf_printf(out,
		"<!-- stint-skill %s crc32c:%08x; stint skill install wrote this file, and keeps one that was changed -->\n",
		version, crc32c(0, skill->text));
}

struct marked_text {
	struct span text;   /* without the mark */
	char version[32];   /* empty: no mark */
	bool is_as_written; /* the checksum is that of the text */
};

static struct marked_text read_mark(struct span bytes)
{
	struct marked_text marked = {.text = bytes};
	const char *end = bytes.len > 1 ? memrchr(bytes.data, '\n', bytes.len - 1) : NULL;
	struct span above = {bytes.data, end ? (size_t)(end + 1 - bytes.data) : 0};
	char line[MARK_BYTES_MAX];
	unsigned crc;

	if (bytes.len - above.len >= sizeof line)
		return marked;
	memcpy(line, bytes.data + above.len, bytes.len - above.len);
	line[bytes.len - above.len] = 0;
	if (sscanf(line, "<!-- stint-skill %31s crc32c:%8x;", marked.version, &crc) != 2) {
		marked.version[0] = 0;
		return marked;
	}
	marked.text = above;
	marked.is_as_written = crc == crc32c(0, above);
	return marked;
}

/* ---- what differs ------------------------------------------------------------------------------------------ */

/* The first line, with its end; the rest stays. */
static struct span take_line(struct span *text)
{
	const char *end = text->len > 0 ? memchr(text->data, '\n', text->len) : NULL;
	struct span line = {text->data, end ? (size_t)(end + 1 - text->data) : text->len};

	text->data += line.len;
	text->len -= line.len;
	return line;
}

static struct span take_last_line(struct span *text)
{
	const char *end = text->len > 1 ? memrchr(text->data, '\n', text->len - 1) : NULL;
	size_t begin = end ? (size_t)(end + 1 - text->data) : 0;
	struct span line = {text->data + begin, text->len - begin};

	text->len = begin;
	return line;
}

static uint32_t count_lines(struct span text)
{
	uint32_t count = 0;

	for (; text.len > 0; count++)
		take_line(&text);
	return count;
}

/* The lines of `theirs` between those that both begin with and those that both end with. */
static void find_difference(struct span theirs, struct span ours, struct skill_found *found)
{
	found->first_line = 1;
	while (theirs.len > 0 && ours.len > 0) {
		struct span mine = ours, other = theirs;
		if (!span_equal(take_line(&other), take_line(&mine)))
			break;
		theirs = other;
		ours = mine;
		found->first_line++;
	}
	while (theirs.len > 0 && ours.len > 0) {
		struct span mine = ours, other = theirs;
		if (!span_equal(take_last_line(&other), take_last_line(&mine)))
			break;
		theirs = other;
		ours = mine;
	}
	found->last_line = found->first_line + count_lines(theirs) - 1;
}

void skill_judge(struct span bytes, const struct skill *skill, struct skill_found *ret_found)
{
	struct marked_text marked = read_mark(bytes);
	struct skill_found found = {.state = SKILL_CHANGED};

	memcpy(found.version, marked.version, sizeof found.version);
	if (marked.is_as_written) /* the version alone is no reason to write: a project keeps the file in git */
		found.state = span_equal(marked.text, skill->text) ? SKILL_CURRENT : SKILL_OUTDATED;
	else
		find_difference(marked.text, skill->text, &found);
	*ret_found = found;
}

/* ---- files ------------------------------------------------------------------------------------------------- */

/* A directory below another one: a descriptor, or a negative errno. */
static int open_below(int root_fd, const char *path, bool beneath)
{
	struct open_how how = {.flags = O_DIRECTORY | O_RDONLY | O_CLOEXEC,
		.resolve = beneath ? RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS : 0};
	long fd;

	do
		fd = syscall(SYS_openat2, root_fd, path, &how, sizeof how);
	while (fd < 0 && (errno == EAGAIN || errno == EINTR));
	return fd < 0 ? -errno : (int)fd;
}

static int open_root(const struct skill_dir *dir)
{
	int fd = open(dir->root, O_DIRECTORY | O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int skill_look(const struct skill_dir *dir, const struct skill *skill, struct skill_found *ret_found)
{
	cleanup(buf_done) struct buf bytes = {.max = FILE_BYTES_MAX};
	cleanup(close_at) int root_fd = open_root(dir);
	cleanup(close_at) int dir_fd = root_fd < 0 ? root_fd : open_below(root_fd, dir->path, dir->beneath);
	int r = dir_fd < 0 ? dir_fd : file_read(dir_fd, file_name, &bytes);

	if (r == -ENOENT)
		*ret_found = (struct skill_found){.state = SKILL_ABSENT};
	else if (dir_fd >= 0 && r == -ELOOP)
		*ret_found = (struct skill_found){.state = SKILL_CHANGED, .is_link = true, .first_line = 1};
	else if (r == 0)
		skill_judge(buf_span(&bytes), skill, ret_found);
	else
		return r;
	return 0;
}

/* The directory of this name in the one above it, made if it is missing: for everybody that the umask lets in, because a
 * project is shared. `path` is the way to it from the root. */
static int make_one(int root_fd, int above_fd, const char *path, bool beneath)
{
	const char *slash = strrchr(path, '/');
	int fd = open_below(root_fd, path, beneath);

	if (fd != -ENOENT)
		return fd;
	if (mkdirat(above_fd, slash ? slash + 1 : path, 0777) < 0 && errno != EEXIST)
		return -errno;
	return open_below(root_fd, path, beneath);
}

static int make_below(int root_fd, const char *path, bool beneath)
{
	char part[PATH_MAX];
	int fd = -1;

	if (strlen(path) >= sizeof part)
		return -ENAMETOOLONG;
	for (size_t len = 0; len <= strlen(path); len++) {
		if (path[len] != '/' && path[len] != 0)
			continue;
		snprintf(part, sizeof part, "%.*s", (int)len, path);
		cleanup(close_at) int above_fd = fd;
		fd = make_one(root_fd, above_fd >= 0 ? above_fd : root_fd, part, beneath);
		if (fd < 0)
			return fd;
	}
	return fd;
}

static int write_fresh(int dir_fd, const char *fresh, struct span text)
{
	cleanup(close_at) int fd =
		openat(dir_fd, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);

	if (fd < 0)
		return -errno;
	int r = file_write_all(fd, text);
	return r == 0 && fsync(fd) < 0 ? -errno : r;
}

int skill_write(const struct skill_dir *dir, const struct skill *skill, const char *version)
{
	cleanup(buf_done) struct buf bytes = {.max = FILE_BYTES_MAX};
	cleanup(close_at) int root_fd = open_root(dir);
	cleanup(close_at) int dir_fd = root_fd < 0 ? root_fd : make_below(root_fd, dir->path, dir->beneath);
	char fresh[64];

	if (dir_fd < 0)
		return dir_fd;
	int r = skill_put(&bytes, skill, version);
	if (r < 0)
		return r;
	/* of this process: another one that installs at the same time has its own */
	snprintf(fresh, sizeof fresh, ".%s.%ld", file_name, (long)getpid());
	unlinkat(dir_fd, fresh, 0);
	r = write_fresh(dir_fd, fresh, buf_span(&bytes));
	if (r == 0 && renameat(dir_fd, fresh, dir_fd, file_name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(dir_fd, fresh, 0);
	return r;
}
