/*
 * The heartbeats of all slots as a file, for programs that read nothing else: worker-heartbeats.json as their own
 * document has it.
 *
 * The server asks its own API for the document, a slice at a time while nobody else wants anything, writes it beside the
 * file and renames it into its place: a reader sees the old one or the new one. It does so when something may have
 * changed, not more often than it was told, and if a document takes long to make, not more often than for a twentieth of
 * the time. What it wrote says so in its first member, and it replaces nothing else: the directory belongs to others.
 *
 * It is a copy for readers, so nothing waits for a disk here. What a power cut leaves behind, an empty file at worst, is
 * replaced by the next start.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/take.h"
#include "server/server.h"

enum {
	ARENA_MAX = 64 << 20,
	DOCUMENT_MAX = 64 << 20,
	COST_SHARE = 20, /* of the time, one part at most */
	MARK_ROOM = 256, /* the mark stands within so many bytes of the beginning */
};

static const char mark[] = "\"writtenBy\":\"stint\"";
static const char temporary[] = ".stint-new"; /* behind the name, until it is whole */

/* ---- the file ------------------------------------------------------------------------------------------ */

/* Is there nothing, or a file that we may replace? -EEXIST: it is somebody else's. */
static int check_file(const char *path, struct stat *ret_stat)
{
	char text[MARK_ROOM + 1];

	cleanup(close_at) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT ? -ENOENT : errno == ELOOP ? -EEXIST : -errno;
	if (fstat(fd, ret_stat) < 0)
		return -errno;
	if (!S_ISREG(ret_stat->st_mode))
		return -EEXIST;
	ssize_t len = read(fd, text, MARK_ROOM);
	if (len < 0)
		return -errno;
	text[len] = 0;
	return len == 0 || strstr(text, mark) ? 0 : -EEXIST;
}

/* A file of ours keeps the mode that somebody gave it. */
static int write_temporary(const char *path, struct span text, const struct stat *old)
{
	unlink(path); /* left by a server that was killed */
	cleanup(close_at) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (fd < 0)
		return -errno;
	if (old && fchmod(fd, old->st_mode & 0777) < 0)
		return -errno;
	return file_write_all(fd, text);
}

/* Nothing of somebody else's is lost even if it appears at this very moment. */
static int put_in_place(const char *from, const char *to, bool replaces)
{
	if (replaces)
		return rename(from, to) < 0 ? -errno : 0;
	if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL &&
		errno != ENOSYS) /* a file system that does not know that: a link knows it too */
		return -errno;
	return link(from, to) < 0 ? -errno : 0;
}

static int replace_file(const char *path, struct span text)
{
	char beside[OPTIONS_PATH_MAX + sizeof temporary];
	struct stat old;

	int r = check_file(path, &old);
	bool replaces = r == 0;
	if (r < 0 && r != -ENOENT)
		return r;
	snprintf(beside, sizeof beside, "%s%s", path, temporary);
	r = write_temporary(beside, text, replaces ? &old : NULL);
	if (r == 0)
		r = put_in_place(beside, path, replaces);
	if (r < 0 || !replaces)
		unlink(beside);
	return r;
}

/* ---- log lines about it ---------------------------------------------------------------------------------- */

/* Once, until it works again. Somebody else's file is left alone for good. */
static void complain(struct heartbeat_file *file, int fault)
{
	if (fault == file->fault)
		return;
	file->fault = fault;
	if (fault == 0)
		log_info("the heartbeats are written again", log_cstr("path", file->path));
	else if (fault == -EEXIST)
		log_error(
			"the heartbeats are not written: there is a file that stint did not create; move it away and start again",
			log_cstr("path", file->path));
	else
		log_error("the heartbeats cannot be written", log_cstr("path", file->path),
			log_cstr("reason", strerror(-fault)));
	file->is_off = fault == -EEXIST;
}

/* ---- the document ---------------------------------------------------------------------------------------- */

static void begin(struct server *server, struct heartbeat_file *file)
{
	file->request = (struct http_request){
		.method = HTTP_METHOD_GET,
		.path = SPAN("/api/heartbeats"),
		.query = file->is_array ? SPAN("shape=array") : (struct span){0},
	};
	file->call = host_call(server, &file->request, &file->arena, &file->body);
	file->call.who = (struct principal){.name = SPAN("stint"), .scopes = SCOPE_BIT(SCOPE_READ)};
	file->spent_ns = 0;
	api_begin(&file->call);
}

/* Of the slots: when the document was made is no change. */
static uint64_t digest(const struct buf *body)
{
	static const struct hash_key key = {0x6865617274, 0x6265617473};
	const char *slots = memmem(body->data, body->len, "\"workers\":", 10);
	size_t before = slots ? (size_t)(slots - body->data) : 0;

	return hash_bytes(&key, body->data + before, body->len - before);
}

/* The document with the mark as its first member. */
static int save(struct heartbeat_file *file)
{
	cleanup(buf_done) struct buf text = {0};
	struct span body = buf_span(&file->body);

	buf_init(&text, DOCUMENT_MAX + MARK_ROOM);
	buf_printf(&text, "{%s,", mark);
	buf_put_span(&text, (struct span){body.data + 1, body.len - 1});
	buf_put_byte(&text, '\n');
	int r = buf_fault(&text);
	return r < 0 ? r : replace_file(file->path, buf_span(&text));
}

static void end(struct server *server, struct heartbeat_file *file)
{
	assert(file->is_busy);
	int64_t cost_ms = (int64_t)(file->spent_ns / 1000000);
	uint64_t is = digest(&file->body);
	int r = file->call.reply.status == 200 ? 0 : -EIO;

	if (r == 0 && (is != file->saved || file->fault != 0))
		r = save(file);
	if (r == 0)
		file->saved = is;
	complain(file, r);
	uv_idle_stop(&file->step);
	file->is_busy = false;
	arena_reset(&file->arena);
	buf_clear(&file->body);
	int64_t wait_ms = COST_SHARE * cost_ms;
	file->not_before_ms =
		server->now.lease_ms + (wait_ms > file->interval_ms ? wait_ms : file->interval_ms);
}

static void on_step(uv_idle_t *idle)
{
	struct server *server = idle->data;
	struct heartbeat_file *file = &server->heartbeat_file;
	uint64_t began_ns = uv_hrtime();

	if (file->call.step == API_READ)
		api_read(&file->call);
	file->spent_ns += uv_hrtime() - began_ns;
	if (file->call.step != API_READ)
		end(server, file);
}

void heartbeat_file_look(struct server *server)
{
	struct heartbeat_file *file = &server->heartbeat_file;
	uint64_t changes = (uint64_t)store_last_event(server->store) + store_worker_changes(server->store);

	if (!file->path || file->is_off || file->is_busy || server->now.lease_ms < file->not_before_ms)
		return;
	if (changes == file->seen_changes && file->fault == 0)
		return;
	file->seen_changes = changes;
	file->is_busy = true;
	begin(server, file);
	uv_idle_start(&file->step, on_step);
}

void heartbeat_file_start(struct server *server)
{
	struct heartbeat_file *file = &server->heartbeat_file;
	const struct options *options = server->options;
	struct stat found;

	uv_idle_init(&server->loop, &file->step);
	file->step.data = server;
	if (!options->heartbeat_file[0])
		return;
	file->path = options->heartbeat_file;
	file->is_array = options->heartbeat_array;
	file->interval_ms = options->heartbeat_interval_ms;
	arena_init(&file->arena, ARENA_MAX);
	buf_init(&file->body, DOCUMENT_MAX);
	if (check_file(file->path, &found) == -EEXIST)
		complain(file, -EEXIST);
}

void heartbeat_file_done(struct server *server)
{
	struct heartbeat_file *file = &server->heartbeat_file;

	if (!file->path)
		return;
	arena_done(&file->arena);
	buf_done(&file->body);
}
