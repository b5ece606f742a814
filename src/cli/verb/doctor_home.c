/*
 * The state directory, as stint doctor sees it. With --fix it closes to others what is ours, makes the directory if there is
 * none, and removes the socket and the address of a server that is gone. It goes no further: nothing in which data or a
 * credential stands is written, moved or removed, and nothing that belongs to another user, or is a link, is touched.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/files.h"
#include "base/take.h"
#include "cli/verb/doctor.h"
#include "config/config.h"

/* ---- modes -------------------------------------------------------------------------------------------------------- */

/* Takes the rights of other users away. It works on a descriptor, so the file that was checked is the file that is changed.
 * A negative errno. */
static int close_to_others(const char *path)
{
	char self[64];
	struct stat stat_buf;
	cleanup(close_at) int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &stat_buf) < 0)
		return -errno;
	if (S_ISLNK(stat_buf.st_mode) || stat_buf.st_uid != geteuid())
		return -EPERM;
	snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
	return chmod(self, stat_buf.st_mode & 0700) < 0 ? -errno : 0;
}

/* What --fix repairs: `fault` is how the repair ended, if there was one. Says whether it is repaired; if not, the caller
 * notes what is wrong, with `ret_why` behind it. */
static bool is_repaired(struct examination *exam, int fault, const char *cannot, const char **ret_why)
{
	*ret_why = fault < 0 ? cli_text(exam->cli, ", and %s: %s", cannot, strerror(-fault)) : "";
	exam->repairable += !exam->repairs;
	return exam->repairs && fault == 0;
}

static void check_closed(
	struct examination *exam, const char *shown, const char *path, const struct stat *found)
{
	unsigned mode = (unsigned)found->st_mode & 07777;
	const char *why;

	if (!(mode & 077))
		doctor_note(exam, PASS, "files", shown, NULL, "%s, mode %04o", path, mode);
	else if (is_repaired(exam, exam->repairs ? close_to_others(path) : 0, "it cannot be closed", &why))
		doctor_note(exam, FIXED, "files", shown, NULL,
			"others could open %s (mode %04o); it is %04o now", path, mode, mode & 0700);
	else
		doctor_note(exam, FAIL, "files", shown,
			cli_text(exam->cli, "chmod %o %s", mode & 0700, cli_quote(exam->cli, path)),
			"others can open %s (mode %04o)%s", path, mode, why);
}

/* A file of the state directory: ours, and closed to others. */
static void check_file(struct examination *exam, const char *shown, const char *path, bool must_be)
{
	struct stat found;

	if (lstat(path, &found) < 0) {
		if (errno != ENOENT || must_be)
			doctor_note(exam, errno == ENOENT ? FAIL : WARN, "files", shown,
				"stint up   # after stopping a server that still runs", "%s: %s", path,
				strerror(errno));
		return;
	}
	if (S_ISREG(found.st_mode) && found.st_size == 0)
		doctor_note(exam, FAIL, "files", shown,
			cli_text(exam->cli, "rm %s   # and start the server again",
				cli_quote(exam->cli, path)),
			"%s is empty", path);
	else if (found.st_uid != geteuid())
		doctor_note(exam, WARN, "files", shown,
			"export STINT_HOME=~/.local/state/stint   # a directory of your own",
			"%s belongs to another user", path);
	else if (S_ISLNK(found.st_mode)) /* its own mode means nothing */
		doctor_note(exam, PASS, "files", shown, NULL, "%s, a link", path);
	else
		check_closed(exam, shown, path, &found);
}

/* ---- what a server has left ---------------------------------------------------------------------------------------- */

/* Is the socket dead? Only when connecting is refused: any other failure proves nothing. */
static bool is_left_over(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	cleanup(close_at) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || strlen(path) >= sizeof address.sun_path)
		return false;
	memcpy(address.sun_path, path, strlen(path) + 1);
	return connect(fd, (struct sockaddr *)&address, sizeof address) < 0 && errno == ECONNREFUSED;
}

static bool answers_nowhere(const char *url)
{
	struct http_address address;
	const char *complaint;

	return http_address_parse(url, &address, &complaint) == 0 && http_address_is_loopback(&address) &&
		server_probe(url) == -ECONNREFUSED;
}

/* A server that starts in this moment may have put its own file there: only the file that was checked is removed. */
static int remove_left_over(struct cli *cli, const char *path, const struct stat *looked_at)
{
	const char *aside = cli_text(cli, "%s.left-over", path);
	struct stat found;

	if (rename(path, aside) < 0)
		return -errno;
	if (lstat(aside, &found) == 0 && found.st_ino == looked_at->st_ino &&
		found.st_dev == looked_at->st_dev)
		return unlink(aside) < 0 ? -errno : 0;
	return rename(aside, path) < 0 ? -errno : -EBUSY;
}

static void note_left_over(
	struct examination *exam, const char *name, const char *path, const struct stat *looked_at)
{
	const char *why;
	int r = exam->repairs ? remove_left_over(exam->cli, path, looked_at) : 0;

	if (is_repaired(exam, r, "cannot be removed", &why))
		doctor_note(exam, FIXED, "files", name, NULL, "%s was left by a server that is gone; removed",
			path);
	else
		doctor_note(exam, WARN, "files", name, "stint up   # its files replace the old ones",
			"%s was left by a server that is gone%s", path, why);
}

static void check_left_over(struct examination *exam)
{
	const char *path = cli_text(exam->cli, "%s/stint.sock", exam->home);
	const char *url_path = cli_text(exam->cli, "%s/url", exam->home);
	struct stat socket_found, url_found;
	char url[1280];
	bool has_url = lstat(url_path, &url_found) == 0 && config_read_line(url_path, url, sizeof url) == 0;
	bool has_socket = lstat(path, &socket_found) == 0 && S_ISSOCK(socket_found.st_mode);

	if (has_socket && !is_left_over(path))
		return;
	if (has_socket)
		note_left_over(exam, "old socket", path, &socket_found);
	if (has_url && answers_nowhere(url))
		note_left_over(exam, "old url", url_path, &url_found);
}

/* ---- all of it -------------------------------------------------------------------------------------------------------- */

/* Whether there is a directory to look into. */
static bool check_directory(struct examination *exam)
{
	struct stat found;

	if (lstat(exam->home, &found) == 0 || errno != ENOENT) {
		check_file(exam, "home", exam->home, true);
		return true;
	}
	const char *why;
	if (is_repaired(exam, exam->repairs ? directory_make(exam->home) : 0, "it cannot be made", &why))
		doctor_note(
			exam, FIXED, "files", "home", NULL, "there was no %s; made, mode 0700", exam->home);
	else
		doctor_note(exam, FAIL, "files", "home", "stint up", "there is no %s%s", exam->home, why);
	return false;
}

/* Where the credential comes from, if that is another file. */
static void check_token_file(struct examination *exam)
{
	const char *path = args_text(&exam->cli->args, "token-file");

	if (!path)
		path = config_variable("STINT_TOKEN_FILE");
	if (path)
		check_file(exam, "token file", path, true);
}

void doctor_look_at_home(struct examination *exam)
{
	static const struct {
		const char *name;
		bool must_be;
	} files[] = {{"admin.token", true}, {"stint.db", false} /* the store may be elsewhere */,
		{"stint.sock", false}, {"config.json", false}};

	if (check_directory(exam)) {
		check_left_over(exam);
		for (size_t i = 0; i < sizeof files / sizeof *files; i++)
			check_file(exam, files[i].name,
				cli_text(exam->cli, "%s/%s", exam->home, files[i].name), files[i].must_be);
	}
	check_token_file(exam);
	if (strlen(exam->home) + sizeof "/stint.sock" > sizeof((struct sockaddr_un *)0)->sun_path)
		doctor_note(exam, FAIL, "files", "socket",
			"export STINT_HOME=~/.stint   # or another short path",
			"the path of the state directory is too long for a socket");
}
