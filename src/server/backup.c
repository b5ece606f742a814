/*
 * Backups while the server serves: a file of its own in home/backups, which nobody else can look into. The store
 * copies a few pages at a time; between two slices there are turns. The copy has another name until it is
 * whole and on disk. A partial copy is removed: when it fails, or by the next start.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/take.h"
#include "server/moved.h"
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

static bool ends_with(const char *name, const char *ending)
{
	size_t len = strlen(name), tail = strlen(ending);

	return len > tail && strcmp(name + len - tail, ending) == 0;
}

static void remove_half(const struct server *server, const char *name)
{
	char path[OPTIONS_PATH_MAX + 300];

	snprintf(path, sizeof path, "%s/%s/%s", server->options->home, directory_name, name);
	moved_clear(path);
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
		if (ends_with(entry->d_name, moved_half))
			remove_half(server, entry->d_name);
		else if (ends_with(entry->d_name, partial) &&
			unlinkat(dirfd(directory), entry->d_name, 0) == 0)
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
static void finish_with(struct server *server, int fault, const char *complaint, int64_t last_event)
{
	struct server_backup *backup = &server->backup;
	struct exchange *exchange = backup->exchange;
	struct backup_made made = {
		.file = span_of(backup->name),
		.path = span_of(backup->path),
		.last_event = last_event,
	};
	struct stat stat_buf;

	if (fault < 0 && fault != -EEXIST && fault != -ECANCELED) {
		log_error("no backup was made", log_cstr("path", backup->path),
			log_cstr("reason", complaint ? complaint : strerror(-fault)));
	}
	store_backup_end(server->store);
	uv_idle_stop(&backup->step);
	backup->exchange = NULL;
	if (fault == 0 && stat(backup->path, &stat_buf) == 0)
		made.bytes = stat_buf.st_size;
	api_finish_backup(&exchange->call, fault, &made);
	exchange_answer(server, exchange);
}

static void finish(struct server *server, int fault)
{
	finish_with(server, fault, store_complaint(server->store), store_last_event(server->store));
}

/* ---- of a store in PostgreSQL ------------------------------------------------------------------------------- */

/* The thread has these, and nothing of the server. */
struct backup_job {
	uv_work_t work;
	struct server *server;
	char *url;
	char path[sizeof((struct server_backup *)0)->path];
	atomic_bool gives_up;
	int fault;
	char *complaint;
	struct copied copied;
};

static int go_on(void *context, uint64_t rows)
{
	struct backup_job *job = context;

	(void)rows;
	return atomic_load(&job->gives_up) ? -ECANCELED : 0;
}

static void run_job(uv_work_t *work)
{
	struct backup_job *job = work->data;
	const struct copy_options options = {.go_on = go_on, .context = job};

	job->fault = moved_to_file(job->url, job->path, &options, &job->copied, &job->complaint);
}

static void after_job(uv_work_t *work, int status)
{
	struct backup_job *job = work->data;
	struct server *server = job->server;

	(void)status; /* it is never taken back before it began */
	server->backup.job = NULL;
	if (server->backup.exchange) {
		finish_with(server, job->fault, job->complaint, job->copied.last_event);
		connections_flush(server);
	}
	free(job->complaint);
	free(job->url);
	free(job);
}

static int begin_job(struct server *server)
{
	struct backup_job *job = calloc(1, sizeof *job);

	if (!job)
		return -ENOMEM;
	job->server = server;
	job->work.data = job;
	job->url = strdup(server->options->store_url);
	snprintf(job->path, sizeof job->path, "%s", server->backup.path);
	int r = job->url ? uv_queue_work(&server->loop, &job->work, run_job, after_job) : -ENOMEM;
	if (r < 0) {
		free(job->url);
		free(job);
		return r;
	}
	server->backup.job = job;
	return 0;
}

static void give_up_job(struct server *server)
{
	if (server->backup.job)
		atomic_store(&server->backup.job->gives_up, true);
}

/* ---- of a file ---------------------------------------------------------------------------------------------- */

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
	return server->options->store_url ? begin_job(server)
					  : store_backup_begin(server->store, backup->path);
}

void backup_start(struct server *server, struct exchange *exchange)
{
	struct server_backup *backup = &server->backup;

	if (backup->exchange || backup->job) {
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
	else if (!backup->job)
		uv_idle_start(&backup->step, on_step);
}

void backup_abandon(struct server *server)
{
	assert(server->backup.exchange);
	give_up_job(server);
	store_backup_end(server->store);
	uv_idle_stop(&server->backup.step);
	server->backup.exchange = NULL;
}

void backup_stop(struct server *server)
{
	give_up_job(server);
	if (server->backup.exchange)
		finish(server, -ECANCELED);
}
