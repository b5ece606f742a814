#include "server/home.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/log.h"
#include "base/take.h"

enum {
	EXIT_CONFIG = 78,
	PATH_BYTES = 4096 + 64,
};

/* Root that does something by hand for the server of another user (a restore, say) goes on as that user: what it would leave there as
 * its own, the server could not read. */
static int become_owner(const struct stat *owner)
{
	const struct passwd *user = getpwuid(owner->st_uid);
	gid_t gid = user ? user->pw_gid : owner->st_gid;

	if ((user ? initgroups(user->pw_name, gid) : setgroups(1, &gid)) < 0 ||
		setresgid(gid, gid, gid) < 0 || setresuid(owner->st_uid, owner->st_uid, owner->st_uid) < 0)
		return -errno;
	log_info("goes on as the owner of the state directory", log_int("uid", owner->st_uid));
	return 0;
}

int home_prepare(const char *home)
{
	struct stat stat_buf;
	const char *what = "not started: the state directory cannot be used";
	int r = directory_make(home);

	if (r == 0 && stat(home, &stat_buf) < 0)
		r = -errno;
	if (r == 0 && !S_ISDIR(stat_buf.st_mode))
		r = -ENOTDIR;
	if (r == 0 && stat_buf.st_uid != geteuid() && geteuid() == 0)
		r = become_owner(&stat_buf);
	if (r == 0 && stat_buf.st_uid != geteuid()) {
		what = "not started: the state directory belongs to another user; chown it or choose another --home";
		r = -EPERM;
	}
	if (r == 0 && stat_buf.st_mode & 077 && chmod(home, 0700) < 0) {
		what = "not started: others can look into the state directory and it cannot be closed";
		r = -errno;
	}
	if (r == 0)
		return 0;
	log_error(what, log_cstr("home", home), log_cstr("reason", strerror(-r)));
	return EXIT_CONFIG;
}

int home_lock(const char *home)
{
	int fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* stays open */

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	log_error(fd >= 0 && errno == EWOULDBLOCK
			? "not started: another stintd uses this state directory; give each server a --home of its own"
			: "not started: the state directory cannot be locked",
		log_cstr("home", home), log_cstr("reason", strerror(errno)));
	if (fd >= 0)
		close(fd);
	return EXIT_CONFIG;
}

int home_write(const char *home, const char *name, const char *text)
{
	cleanup(close_at) int dir_fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return dir_fd < 0 ? -errno : file_write(dir_fd, name, span_of(text), true);
}

void home_remove(const char *home, const char *name)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof path, "%s/%s", home, name);
	unlink(path);
}

/* Others that could read it may have: closing it is not enough, so it is said at every start. */
static void check_mode(int fd, const char *path)
{
	struct stat about;
	char mode[8];

	if (fstat(fd, &about) < 0 || !(about.st_mode & 077))
		return;
	snprintf(mode, sizeof mode, "%04o", (unsigned)about.st_mode & 07777);
	log_warn(
		"others can read the admin token; close it with chmod 600, or remove the file and start again for a new one",
		log_cstr("path", path), log_cstr("mode", mode));
}

int home_admin_token(const char *home, char token[TOKEN_BYTES_MAX])
{
	char path[PATH_BYTES], line[TOKEN_BYTES_MAX + 2], id[TOKEN_ID_BYTES_MAX];

	snprintf(path, sizeof path, "%s/admin.token", home);
	cleanup(close_at) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int r = fd < 0 ? -errno : 0;
	if (r == 0) {
		check_mode(fd, path);
		ssize_t got = read(fd, line, sizeof line - 1);
		line[got > 0 ? got : 0] = 0;
		line[strcspn(line, "\r\n")] = 0;
		bool good = strncmp(line, "stint_admin_", 12) == 0 && strlen(line) < TOKEN_BYTES_MAX &&
			token_is_whole(span_of(line));
		if (good)
			strcpy(token, line);
		else
			log_error(
				"not started: the file holds no admin token; remove it and a new one is made",
				log_cstr("path", path));
		return good ? 0 : EXIT_CONFIG;
	}
	mint_token("admin", token, id);
	snprintf(line, sizeof line, "%s\n", token);
	if (r == -ENOENT)
		r = home_write(home, "admin.token", line);
	if (r < 0) {
		log_error("not started: the admin token cannot be written", log_cstr("path", path),
			log_cstr("reason", strerror(-r)));
		return EXIT_CONFIG;
	}
	log_info("admin token written", log_cstr("path", path));
	return 0;
}
