/*
 * Backups while the server serves: a file of its own in home/backups, which nobody else can look into. The store
 * copies a few pages at a time; between two slices there are turns. The copy has another name until it is
 * whole and on disk. A partial copy is removed: when it fails, or by the next start.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/take.h"
#include "server/server.h"

enum {
	SPARE_BYTES = 16 << 20, /* of the disk, that a backup leaves free */
	SLICE_PAGES = 64,       /* 256 KiB: well below a millisecond where the store is in memory */
};

static const char directory_name[] = "backups";
static const char partial[] = ".partial"; /* what the store calls a copy that is not whole */

/* ---- the directory ---------------------------------------------------------------------------------------- */

/* Ours, private and not a link to elsewhere. The descriptor, or a negative errno. */
static int open_directory(const char *home, bool make)
{
	char path[OPTIONS_PATH_MAX + 16];
	struct stat stat_buf;

	snprintf(path, sizeof path, "%s/%s", home, directory_name);
	if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	cleanup(close_at) int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &stat_buf) < 0)
		return -errno;
	if (stat_buf.st_uid != geteuid())
		return -EPERM;
	if (stat_buf.st_mode & 077 && fchmod(fd, 0700) < 0)
		return -errno;
	return take_fd(fd);
}

static bool is_partial(const char *name)
{
	size_t len = strlen(name), tail = sizeof partial - 1;

	return len > tail && strcmp(name + len - tail, partial) == 0;
}

void backups_prepare(struct server *server)
{
	int fd = open_directory(server->options->home, false);
	DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (!directory) {
		if (fd >= 0)
			close(fd);
		return; /* no backup was made yet; any other fault is reported by the next backup */
	}
	while ((entry = readdir(directory))) {
		if (is_partial(entry->d_name) && unlinkat(dirfd(directory), entry->d_name, 0) == 0)
			log_warn("removed a backup that was not completed", log_cstr("file", entry->d_name));
	}
	closedir(directory);
}

/* ---- one backup --------------------------------------------------------------------------------------------- */

static void put_name(struct server_backup *backup, struct span asked, int64_t wall_ms)
{
	time_t seconds = (time_t)(wall_ms / 1000);
	struct tm utc;

	if (asked.len > 0) {
		snprintf(backup->name, sizeof backup->name, "%.*s", SPAN_ARGS(asked));
		return;
	}
	gmtime_r(&seconds, &utc);
	size_t len = strftime(backup->name, sizeof backup->name, "stint-%Y%m%dT%H%M%S", &utc);
	snprintf(backup->name + len, sizeof backup->name - len, ".%03dZ.db", (int)(wall_ms % 1000));
}

/* It is over: whole, or with the fault that ended it. */
static void finish(struct server *server, int fault)
{
	struct server_backup *backup = &server->backup;
	struct exchange *exchange = backup->exchange;
	struct backup_made made = {
		.file = span_of(backup->name),
		.path = span_of(backup->path),
		.last_event = store_last_event(server->store),
	};
	struct stat stat_buf;

	if (fault < 0 && fault != -EEXIST && fault != -ECANCELED) {
		const char *why = store_complaint(server->store);
		log_error("no backup was made", log_cstr("path", backup->path),
			log_cstr("reason", why ? why : strerror(-fault)));
	}
	store_backup_end(server->store);
	uv_idle_stop(&backup->step);
	backup->exchange = NULL;
	if (fault == 0 && stat(backup->path, &stat_buf) == 0)
		made.bytes = stat_buf.st_size;
	api_finish_backup(&exchange->call, fault, &made);
	exchange_answer(server, exchange);
}

static void on_step(uv_idle_t *idle)
{
	struct server *server = idle->data;
	uint32_t remaining;

	int r = store_backup_step(server->store, SLICE_PAGES, &remaining);
	if (r == 0 && remaining > 0)
		return;
	finish(server, r);
	connections_flush(server);
}

/* A backup that cannot fit is not begun: filling the disk would stop the server itself for a while. */
static int check_room(int directory, const char *store)
{
	struct statvfs room;
	struct stat size;

	if (fstatvfs(directory, &room) < 0 || stat(store, &size) < 0)
		return -errno;
	return (uint64_t)room.f_bavail * room.f_frsize < (uint64_t)size.st_size + SPARE_BYTES ? -ENOSPC : 0;
}

static int begin(struct server *server, struct exchange *exchange)
{
	struct server_backup *backup = &server->backup;
	cleanup(close_at) int fd = open_directory(server->options->home, true);

	if (fd < 0)
		return fd;
	/* what a store in PostgreSQL takes of this disk nobody knows before */
	int r = server->options->store_url ? 0 : check_room(fd, server->options->store);
	if (r < 0)
		return r;
	put_name(backup, exchange->call.backup_file, server->now.wall_ms);
	snprintf(backup->path, sizeof backup->path, "%s/%s/%s", server->options->home, directory_name,
		backup->name);
	return store_backup_begin(server->store, backup->path);
}

void backup_start(struct server *server, struct exchange *exchange)
{
	struct server_backup *backup = &server->backup;

	if (backup->exchange) {
		api_finish_backup(&exchange->call, -EALREADY, NULL);
		exchange_answer(server, exchange);
		return;
	}
	exchange_move(exchange, EXCHANGE_BACKING_UP);
	exchange->has_waited = true; /* its time says nothing about requests */
	backup->exchange = exchange;
	int r = begin(server, exchange);
	if (r < 0)
		finish(server, r);
	else
		uv_idle_start(&backup->step, on_step);
}

void backup_abandon(struct server *server)
{
	assert(server->backup.exchange);
	store_backup_end(server->store);
	uv_idle_stop(&server->backup.step);
	server->backup.exchange = NULL;
}

void backup_stop(struct server *server)
{
	if (server->backup.exchange)
		finish(server, -ECANCELED);
}
