/*
 * Which files are trusted: those of root and our own. A file that another user may write, or replace because a directory above
 * it is theirs, could be made to say anything, and the same files name programs to run. Both the path as given and
 * the one it leads to are looked at. A sticky directory (/tmp) keeps others from replacing what is not theirs.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/take.h"
#include "config/reading.h"

enum {
	PATH_BYTES = 4096,
};

struct verdict {
	char *reason;
	size_t bytes;
};

__attribute__((format(printf, 2, 3))) static int refuse(
	const struct verdict *verdict, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(verdict->reason, verdict->bytes, format, args);
	va_end(args);
	return -EACCES;
}

static bool is_ours(const struct stat *about)
{
	return about->st_uid == 0 || about->st_uid == geteuid();
}

static int judge_directory(const struct verdict *verdict, const char *path)
{
	struct stat about;

	if (lstat(path, &about) < 0)
		return refuse(verdict, "%s cannot be looked at: %s", path, strerror(errno));
	if (!is_ours(&about))
		return refuse(verdict,
			"%s belongs to user %u, who could replace this file; it must belong to root or to user %u",
			path, about.st_uid, geteuid());
	if (S_ISDIR(about.st_mode) && (about.st_mode & 022) && !(about.st_mode & S_ISVTX))
		return refuse(verdict, "others may write to %s and replace this file; fix: chmod go-w %s",
			path, path);
	return 0;
}

/* Everything above the last part of the path; and that part too, in case it is a link. */
static int judge_path(const struct verdict *verdict, const char *path)
{
	char here[PATH_BYTES] = "", whole[2 * PATH_BYTES];
	bool relative = path[0] != '/';

	if (relative && !getcwd(here, sizeof here))
		return refuse(verdict, "cannot be looked at: %s", strerror(errno));
	int len = snprintf(whole, sizeof whole, "%s%s%s", here, relative ? "/" : "", path);
	if (len >= (int)sizeof whole)
		return refuse(verdict, "its path is too long");
	int r = judge_directory(verdict, "/");
	for (int end = 1; r == 0 && end <= len; end++) {
		char byte = whole[end];
		if (byte != '/' && byte != 0)
			continue;
		whole[end] = 0;
		r = judge_directory(verdict, whole);
		whole[end] = byte;
	}
	return r;
}

int trust_file(int fd, const char *path, char *ret_reason, size_t reason_bytes)
{
	const struct verdict verdict = {ret_reason, reason_bytes};
	struct stat about;

	if (fstat(fd, &about) < 0)
		return refuse(&verdict, "cannot be looked at: %s", strerror(errno));
	if (!S_ISREG(about.st_mode))
		return refuse(&verdict, "is not a file");
	if (!is_ours(&about))
		return refuse(&verdict,
			"belongs to user %u; a configuration must belong to root or to user %u", about.st_uid,
			geteuid());
	if (about.st_mode & 022)
		return refuse(&verdict, "others may write to it (mode %03o); fix: chmod go-w %s",
			about.st_mode & 0777, path);
	cleanup(free_at) char *real = realpath(path, NULL);
	if (!real)
		return refuse(&verdict, "cannot be looked at: %s", strerror(errno));
	int r = judge_path(&verdict, path);
	return r < 0 ? r : judge_path(&verdict, real);
}
