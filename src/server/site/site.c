#include "server/site/site.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/take.h"

enum {
	NAME_BYTES = 100,
	DISK_FILE_BYTES = 4 << 20,
};

static const struct {
	const char *end, *type;
} types[] = {
	{".html", "text/html; charset=utf-8"},
	{".js", "text/javascript; charset=utf-8"},
	{".css", "text/css; charset=utf-8"},
	{".svg", "image/svg+xml"},
};

static const char *type_of(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		size_t end = strlen(types[i].end);
		if (len > end && strcmp(name + len - end, types[i].end) == 0)
			return types[i].type;
	}
	return NULL;
}

/* A plain name: no path leads out of the directory. */
static bool is_plain(struct span name)
{
	for (size_t i = 0; i < name.len; i++) {
		char byte = name.data[i];
		bool is_word = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
			(byte >= '0' && byte <= '9') || byte == '-' || byte == '_';
		if (!is_word && !(byte == '.' && i > 0))
			return false;
	}
	return name.len > 0 && name.len < NAME_BYTES;
}

static bool find_on_disk(const char *dir, struct span name, struct arena *arena, struct site_file *ret_file)
{
	cleanup(buf_done) struct buf bytes = {.max = DISK_FILE_BYTES};
	char text[NAME_BYTES];

	if (!is_plain(name))
		return false;
	snprintf(text, sizeof text, "%.*s", SPAN_ARGS(name));
	const char *type = type_of(text);
	cleanup(close_at) int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!type || dir_fd < 0 || file_read(dir_fd, text, &bytes) < 0)
		return false;
	*ret_file = (struct site_file){.type = span_of(type)};
	return arena_copy(arena, buf_span(&bytes), &ret_file->bytes) == 0;
}

bool site_find(const char *dir, struct span name, struct arena *arena, struct site_file *ret_file)
{
	if (dir)
		return find_on_disk(dir, name, arena, ret_file);
	for (const struct embedded_file *file = site_files; file->name; file++) {
		if (!span_equal(name, span_of(file->name)))
			continue;
		*ret_file = (struct site_file){
			.bytes = {(const char *)file->bytes, file->len},
			.type = span_of(file->type),
			.encoding = SPAN("gzip"),
			.immutable = strcmp(file->name, "index.html") != 0,
		};
		return true;
	}
	return false;
}
