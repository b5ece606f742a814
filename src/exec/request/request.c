/* A request as bytes; of the limits those that a shim or its child sees to. Strings carry their NUL, so that the shim can point into them. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "exec/request/request.h"

/* The buffer keeps its first fault: request_encode() asks for it at the end. */

static void put_text(struct buf *buf, const char *text)
{
	buf_put_bytes(buf, (struct span){text, strlen(text) + 1});
}

static void put_list(struct buf *buf, const char *const *list)
{
	uint64_t count = 0;

	while (list[count])
		count++;
	buf_put_uvarint(buf, count);
	for (uint64_t i = 0; i < count; i++)
		put_text(buf, list[i]);
}

static void put_grant(struct buf *buf, const struct grant *grant)
{
	put_text(buf, grant->path ? grant->path : "");
	buf_put_uvarint(buf, grant_has_fd(grant) ? (uint64_t)grant->fd : 0);
	buf_put_byte(buf, (unsigned char)grant->access);
	buf_put_byte(buf, grant->optional);
	buf_put_byte(buf, grant->direct);
	buf_put_byte(buf, grant->outside);
	buf_put_byte(buf, grant->held);
	buf_put_byte(buf, grant->is_directory);
	buf_put_uvarint(buf, grant->place.dev);
	buf_put_uvarint(buf, grant->place.ino);
}

static void put_wall(struct buf *buf, const struct request_wall *wall)
{
	static const char *const none[] = {NULL};

	put_list(buf, wall->argv ? wall->argv : none);
	put_list(buf, wall->env ? wall->env : none);
	put_text(buf, wall->workdir ? wall->workdir : "");
	put_text(buf, wall->fixed ? wall->fixed : "");
	put_text(buf, wall->cover ? wall->cover : "");
	buf_put_byte(buf, wall->own_user);
	buf_put_byte(buf, wall->loose);
	buf_put_uvarint(buf, wall->bind_count);
	for (size_t i = 0; i < wall->bind_count; i++) {
		put_text(buf, wall->binds[i].path);
		buf_put_uvarint(buf, (uint64_t)wall->binds[i].fd);
	}
}

int request_encode(const struct request *request, struct buf *buf)
{
	const struct limits *limits = &request->limits;
	const uint64_t numbers[] = {request->umask, request->linger_ms, request->drop_user, request->uid,
		request->gid, limits->files, limits->core_bytes, limits->file_bytes, limits->tasks,
		limits->memory_bytes, limits->cpu_us, (uint64_t)request->landlock_abi,
		request->cgroups_needed, request->budget_later, request->finishes,
		(uint64_t)request->lease.until_ms, request->lease.grace_ms, request->lease.window_ms,
		request->search_from};

	put_text(buf, REQUEST_VERSION);
	put_list(buf, request->argv);
	put_list(buf, request->env);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		buf_put_uvarint(buf, numbers[i]);
	buf_put_uvarint(buf, request->grant_count);
	for (size_t i = 0; i < request->grant_count; i++)
		put_grant(buf, &request->grants[i]);
	put_text(buf, request->keep_out);
	put_wall(buf, &request->wall);
	buf_put_bytes(buf, request->filter);
	return buf_fault(buf);
}

/* Never NULL; breaks the reader if the NUL is missing. */
static const char *read_text(struct reader *reader)
{
	struct span text = reader_bytes(reader);

	if (text.len && text.data[text.len - 1] == 0)
		return text.data;
	reader->broken = true;
	return "";
}

static const char *const *read_list(struct reader *reader, uint64_t most)
{
	uint64_t count = reader_uvarint(reader);
	const char **list = count <= most ? calloc(count + 1, sizeof *list) : NULL;

	if (!list)
		reader->broken = true;
	for (uint64_t i = 0; list && i < count; i++)
		list[i] = read_text(reader);
	return list;
}

static const struct grant *read_grants(struct reader *reader, size_t *ret_count)
{
	uint64_t count = reader_uvarint(reader);
	struct grant *grants = count <= GRANTS_MAX ? calloc(count + 1, sizeof *grants) : NULL;

	if (!grants)
		reader->broken = true;
	for (uint64_t i = 0; grants && i < count; i++) {
		const char *path = read_text(reader);
		grants[i].path = path[0] ? path : NULL;
		grants[i].fd = (int)reader_uvarint(reader);
		grants[i].access = (enum grant_access)reader_byte(reader);
		grants[i].optional = reader_byte(reader);
		grants[i].direct = reader_byte(reader);
		grants[i].outside = reader_byte(reader);
		grants[i].held = reader_byte(reader);
		grants[i].is_directory = reader_byte(reader);
		grants[i].place.dev = reader_uvarint(reader);
		grants[i].place.ino = reader_uvarint(reader);
	}
	*ret_count = count;
	return grants;
}

static const struct bind *read_binds(struct reader *reader, size_t *ret_count)
{
	uint64_t count = reader_uvarint(reader);
	struct bind *binds = count <= REQUEST_GRANT_FDS_MAX ? calloc(count + 1, sizeof *binds) : NULL;

	if (!binds)
		reader->broken = true;
	for (uint64_t i = 0; binds && i < count; i++) {
		binds[i].path = read_text(reader);
		binds[i].fd = (int)reader_uvarint(reader);
		if (binds[i].fd < 0 || binds[i].fd >= REQUEST_FDS_MAX)
			reader->broken = true;
	}
	*ret_count = count;
	return binds;
}

static void read_wall(struct reader *reader, struct request_wall *wall)
{
	wall->argv = read_list(reader, PROCESS_ARGS_MAX);
	wall->env = read_list(reader, WALL_ENV_MAX);
	wall->workdir = read_text(reader);
	wall->fixed = read_text(reader);
	wall->cover = read_text(reader);
	wall->own_user = reader_byte(reader);
	wall->loose = reader_byte(reader);
	wall->binds = read_binds(reader, &wall->bind_count);
}

int request_decode(struct span bytes, struct request *ret_request)
{
	struct request request = {0};
	struct limits *limits = &request.limits;
	struct reader reader;

	reader_init(&reader, bytes);
	if (strcmp(read_text(&reader), REQUEST_VERSION) != 0)
		return -EPROTO;
	request.argv = read_list(&reader, PROCESS_ARGS_MAX);
	request.env = read_list(&reader, PROCESS_ENV_MAX);
	request.umask = (mode_t)reader_uvarint(&reader);
	request.linger_ms = (uint32_t)reader_uvarint(&reader);
	request.drop_user = reader_uvarint(&reader);
	request.uid = (uid_t)reader_uvarint(&reader);
	request.gid = (gid_t)reader_uvarint(&reader);
	limits->files = reader_uvarint(&reader);
	limits->core_bytes = reader_uvarint(&reader);
	limits->file_bytes = reader_uvarint(&reader);
	limits->tasks = reader_uvarint(&reader);
	limits->memory_bytes = reader_uvarint(&reader);
	limits->cpu_us = reader_uvarint(&reader);
	request.landlock_abi = (int)reader_uvarint(&reader);
	request.cgroups_needed = reader_uvarint(&reader);
	request.budget_later = reader_uvarint(&reader);
	request.finishes = reader_uvarint(&reader);
	request.lease.until_ms = (int64_t)reader_uvarint(&reader);
	request.lease.grace_ms = (uint32_t)reader_uvarint(&reader);
	request.lease.window_ms = (uint32_t)reader_uvarint(&reader);
	request.search_from = (uint32_t)reader_uvarint(&reader);
	request.grants = read_grants(&reader, &request.grant_count);
	request.keep_out = read_text(&reader);
	read_wall(&reader, &request.wall);
	request.filter = reader_bytes(&reader);
	if (!reader_is_done(&reader) || !request.argv[0])
		return -EPROTO;
	*ret_request = request;
	return 0;
}
