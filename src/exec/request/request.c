/*
 * A request as bytes. The same build reads and writes it: a struct goes as it is, without its pointers, and what they point to
 * follows. Strings carry their NUL, so that the shim can point into them.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "exec/request/request.h"

/* The buffer keeps its first fault: request_encode() asks for it at the end. */

static void put_text(struct buf *buf, const char *text)
{
	buf_put_bytes(buf, (struct span){text ? text : "", text ? strlen(text) + 1 : 1});
}

/* NULL is a list with nothing in it. */
static void put_list(struct buf *buf, const char *const *list)
{
	uint64_t count = 0;

	while (list && list[count])
		count++;
	buf_put_uvarint(buf, count);
	for (uint64_t i = 0; i < count; i++)
		put_text(buf, list[i]);
}

static void put_grant(struct buf *buf, const struct grant *grant)
{
	struct grant plain = *grant;

	plain.path = plain.inside = NULL;
	buf_put_bytes(buf, (struct span){(const char *)&plain, sizeof plain});
	put_text(buf, grant->path);
}

int request_encode(const struct request *request, struct buf *buf)
{
	const struct request_wall *wall = &request->wall;
	struct request plain = *request;

	assert(request->argv[0]);
	assert(request->grant_count <= GRANTS_MAX);
	plain.argv = plain.env = NULL;
	plain.program = NULL;
	plain.grants = NULL;
	plain.keep_out = NULL;
	plain.filter = (struct span){0};
	plain.wall = (struct request_wall){.own_user = wall->own_user, .loose = wall->loose};
	put_text(buf, REQUEST_VERSION);
	buf_put_bytes(buf, (struct span){(const char *)&plain, sizeof plain});
	put_list(buf, request->argv);
	put_list(buf, request->env);
	put_text(buf, request->program);
	for (size_t i = 0; i < request->grant_count; i++)
		put_grant(buf, &request->grants[i]);
	put_text(buf, request->keep_out);
	buf_put_bytes(buf, request->filter);
	put_list(buf, wall->argv);
	put_list(buf, wall->env);
	put_text(buf, wall->workdir);
	put_text(buf, wall->fixed);
	put_text(buf, wall->cover);
	put_text(buf, wall->proxy);
	put_list(buf, wall->binds);
	return buf_fault(buf);
}

static void read_struct(struct reader *reader, void *ret_struct, size_t size)
{
	struct span bytes = reader_bytes(reader);

	if (bytes.len == size)
		memcpy(ret_struct, bytes.data, size);
	else
		reader->broken = true;
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

/* NULL breaks the reader. */
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

static const struct grant *read_grants(struct reader *reader, size_t count)
{
	struct grant *grants = count <= GRANTS_MAX ? calloc(count + 1, sizeof *grants) : NULL;

	if (!grants)
		reader->broken = true;
	for (size_t i = 0; grants && i < count; i++) {
		read_struct(reader, &grants[i], sizeof grants[i]);
		const char *path = read_text(reader);
		grants[i].path = path[0] ? path : NULL;
	}
	return grants;
}

int request_decode(struct span bytes, struct request *ret_request)
{
	struct request request = {0};
	struct request_wall *wall = &request.wall;
	struct reader reader;

	reader_init(&reader, bytes);
	if (strcmp(read_text(&reader), REQUEST_VERSION) != 0)
		return -EPROTO;
	read_struct(&reader, &request, sizeof request);
	request.argv = read_list(&reader, PROCESS_ARGS_MAX);
	request.env = read_list(&reader, PROCESS_ENV_MAX);
	request.program = read_text(&reader);
	request.grants = read_grants(&reader, request.grant_count);
	request.keep_out = read_text(&reader);
	request.filter = reader_bytes(&reader);
	wall->argv = read_list(&reader, PROCESS_ARGS_MAX);
	wall->env = read_list(&reader, WALL_ENV_MAX);
	wall->workdir = read_text(&reader);
	wall->fixed = read_text(&reader);
	wall->cover = read_text(&reader);
	wall->proxy = read_text(&reader);
	wall->binds = read_list(&reader, REQUEST_GRANT_FDS_MAX);
	if (!reader_is_done(&reader) || !request.argv[0])
		return -EPROTO;
	*ret_request = request;
	return 0;
}
