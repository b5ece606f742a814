#include "cli/verb/here.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/take.h"
#include "cli/frame/text.h"
#include "config/config.h"

enum {
	CALL_MS = 2000,
	TASKS_MAX = 200,
	WAITING_MAX = 1000,
	TITLE_COLUMNS = 40,
	TITLE_BYTES_MAX = 64 << 10,
	NAMED_MAX = 2,
};

int here_home(struct cli *cli, char *ret_home, size_t room)
{
	int r = place_home(cli, ret_home, room);
	const char *named = r == 0 ? cli_path(cli, ret_home) : NULL;

	if (r != 0)
		return r;
	if (!named || strlen(named) >= room)
		return cli_fail(
			cli, EXIT_USAGE, "invalid", NULL, "the path of the state directory is too long");
	memmove(ret_home, named, strlen(named) + 1);
	return 0;
}

const char *here_short(struct cli *cli, const char *path)
{
	const char *home = getenv("HOME");
	size_t len = home ? strlen(home) : 0;

	if (len < 2 || strncmp(path, home, len) != 0 || (path[len] != '/' && path[len] != 0))
		return path;
	return cli_text(cli, "~%s", path + len);
}

/* ---- the server --------------------------------------------------------------------------------------------- */

bool here_answers(const char *home)
{
	char url[1100];

	snprintf(url, sizeof url, "unix:%s/stint.sock", home);
	return server_probe(url) == 0;
}

pid_t here_listener(const char *home)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct ucred peer = {0};
	socklen_t len = sizeof peer;
	cleanup(close_at) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	int written = snprintf(address.sun_path, sizeof address.sun_path, "%s/stint.sock", home);
	if (fd < 0 || written >= (int)sizeof address.sun_path ||
		connect(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return 0;
	return peer.pid;
}

bool here_url(const char *home, char *ret_url, size_t room)
{
	char path[1100];

	snprintf(path, sizeof path, "%s/url", home);
	return config_read_line(path, ret_url, room) == 0;
}

bool here_find_server(struct cli *cli, const char *home)
{
	const struct server_place_flags flags = {
		.home = home, .token_file = cli_text(cli, "%s/admin.token", home), .looks = true};
	char complaint[SERVER_PLACE_COMPLAINT_BYTES];

	cli->place_known = server_place_find(&flags, home, &cli->place, complaint) == 0;
	return cli->place_known;
}

/* ---- the lock of stint up ----------------------------------------------------------------------------------- */

static int open_lock(const char *home, int flags)
{
	char path[1100];

	snprintf(path, sizeof path, "%s/up.lock", home);
	int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? -errno : fd;
}

int here_lock(const char *home)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = open_lock(home, O_RDWR | O_CREAT);

	if (fd < 0 || fcntl(fd, F_SETLK, &lock) == 0)
		return fd;
	int r = -errno;
	close(fd);
	return r;
}

pid_t here_locker(const char *home)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = open_lock(home, O_RDWR);

	if (fd < 0)
		return 0;
	bool held = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	close(fd);
	return held ? lock.l_pid : 0;
}

/* ---- its work ----------------------------------------------------------------------------------------------- */

/* The parent of a process of this computer; 0: it is gone. */
static pid_t parent_of(int64_t pid)
{
	char path[64], line[512];
	long parent = 0;

	snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
	if (config_read_line(path, line, sizeof line) < 0)
		return 0;
	const char *behind = strrchr(line, ')'); /* the name before it may have anything in it */
	return behind && sscanf(behind, ") %*c %ld", &parent) == 1 ? (pid_t)parent : 0;
}

static struct reply get(struct cli *cli, const char *path, const char *query)
{
	struct ask ask = {.method = HTTP_METHOD_GET,
		.path = path,
		.query = span_of(query),
		.timeout_ms = CALL_MS,
		.optional = true};
	struct reply reply = {0};

	server_ask(cli, &ask, &reply);
	return reply;
}

/* Titles come from others. */
static const char *short_title(struct cli *cli, struct span title)
{
	cleanup(buf_done) struct buf clean = {0}, cut = {0};

	buf_init(&clean, TITLE_BYTES_MAX);
	buf_init(&cut, TITLE_BYTES_MAX);
	text_clean(&clean, title, cli->term.utf8, false);
	text_fit(&cut, cli_span(cli, &clean), TITLE_COLUMNS, cli->term.utf8);
	return cli_text(cli, "%.*s", SPAN_ARGS(cli_span(cli, &cut)));
}

/* The id of the worker that this `stint up` started; NULL: it has none. */
static const char *worker_of(struct cli *cli, pid_t up)
{
	cleanup(reply_done) struct reply reply = get(cli, "/api/workers", "");
	yyjson_val *worker;
	size_t at, count;

	yyjson_arr_foreach(reply.root, at, count, worker)
	{
		if (up > 0 && parent_of(field_int(worker, "pid", 0)) == up)
			return field_cstr(cli, worker, "workerId");
	}
	return NULL;
}

/* Adds those of this worker in this state. */
static void add_work(struct cli *cli, struct here_work *work, const char *worker, const char *state)
{
	cleanup(reply_done) struct reply reply =
		get(cli, "/api/tasks", cli_text(cli, "state=%s&limit=%d", state, TASKS_MAX));
	yyjson_val *task;
	size_t at, count;

	yyjson_arr_foreach(reply.root, at, count, task)
	{
		if (!span_equal(field_text(task, "workerId"), span_of(worker)))
			continue;
		if (work->count++ < NAMED_MAX)
			work->names = cli_text(cli, "%s%s%s (%s)", work->names, work->count > 1 ? ", " : "",
				field_cstr(cli, task, "id"), short_title(cli, field_text(task, "title")));
	}
}

struct here_work here_work(struct cli *cli, pid_t up)
{
	const char *worker = worker_of(cli, up);
	struct here_work work = {0, ""};

	if (!worker)
		return work;
	add_work(cli, &work, worker, "claimed");
	add_work(cli, &work, worker, "running");
	if (work.count > NAMED_MAX)
		work.names = cli_text(cli, "%s and %zu more", work.names, work.count - NAMED_MAX);
	return work;
}

const char *here_waiting(struct cli *cli, size_t more)
{
	static const char *const states[] = {"pending", "scheduled", "waiting", "ready"};
	size_t count = more;

	for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
		cleanup(reply_done) struct reply reply =
			get(cli, "/api/tasks", cli_text(cli, "state=%s&limit=%d", states[i], WAITING_MAX));
		count += yyjson_arr_size(reply.root);
	}
	if (count == 0)
		return NULL;
	return cli_text(cli, "%s%zu task%s %s", count >= WAITING_MAX ? "at least " : "", count,
		count == 1 ? "" : "s", count == 1 ? "waits" : "wait");
}
