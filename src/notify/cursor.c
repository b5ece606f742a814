#include "notify/cursor.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/take.h"

enum {
	FILE_BYTES_MAX = 4096,
	NAME_BYTES = TARGET_NAME_BYTES_MAX + 8,
};

int cursor_dir_open(const char *home)
{
	if (mkdir(home, 0700) < 0 && errno != EEXIST)
		return -errno;
	cleanup(close_at) int home_fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (home_fd < 0 || (mkdirat(home_fd, "notify", 0700) < 0 && errno != EEXIST))
		return -errno;
	int fd = openat(home_fd, "notify", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* The numbers of the file. Those from `delivered` on are for people, too. */
static const struct cursor_number {
	const char *name;
	size_t offset; /* of an int64_t in struct cursor */
	bool is_figure;
} numbers[] = {
	{"generation", offsetof(struct cursor, generation), false},
	{"seq", offsetof(struct cursor, seq), false},
	{"time", offsetof(struct cursor, time_ms), false},
	{"repeatsSeq", offsetof(struct cursor, repeats_seq), false},
	{"repeatsTime", offsetof(struct cursor, repeats_ms), false},
	{"delivered", offsetof(struct cursor, delivered), true},
	{"givenUp", offsetof(struct cursor, given_up), true},
	{"missed", offsetof(struct cursor, missed), true},
	{"lastAt", offsetof(struct cursor, last_ms), true},
	{"lastStatus", offsetof(struct cursor, last_status), true},
};

enum { NUMBERS = sizeof numbers / sizeof *numbers };

static int parse(struct span text, struct cursor *cursor)
{
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(text, &complaint);
	yyjson_val *root = doc ? yyjson_doc_get_root(doc) : NULL;

	if (json_int(root, "generation") <= 0 || !yyjson_is_int(yyjson_obj_get(root, "seq")))
		return -EPROTO;
	cursor->known = true;
	for (size_t i = 0; i < NUMBERS; i++)
		*(int64_t *)((char *)cursor + numbers[i].offset) = json_int(root, numbers[i].name);
	json_copy_text(root, "lastId", cursor->last_id, sizeof cursor->last_id);
	json_copy_text(root, "lastError", cursor->last_error, sizeof cursor->last_error);
	return 0;
}

int cursor_read(int dir_fd, const char *target, struct cursor *ret_cursor)
{
	cleanup(buf_done) struct buf text = {0};
	char name[NAME_BYTES];

	*ret_cursor = (struct cursor){0};
	buf_init(&text, FILE_BYTES_MAX);
	snprintf(name, sizeof name, "%s.json", target);
	int r = file_read(dir_fd, name, &text);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return parse(buf_span(&text), ret_cursor);
}

static void put_cursor(struct json_object *object, const struct cursor *cursor, bool figures_only)
{
	for (size_t i = 0; i < NUMBERS; i++) {
		if (numbers[i].is_figure || !figures_only)
			json_member_int(object, numbers[i].name,
				*(const int64_t *)((const char *)cursor + numbers[i].offset));
	}
	json_member_string(object, "lastId", span_of(cursor->last_id));
	json_member_string(object, "lastError", span_of(cursor->last_error));
}

void cursor_put_figures(struct json_object *object, const struct cursor *cursor)
{
	put_cursor(object, cursor, true);
}

int cursor_write(int dir_fd, const char *target, const struct cursor *cursor)
{
	cleanup(buf_done) struct buf text = {0};
	struct json_object object;
	char name[NAME_BYTES];

	buf_init(&text, FILE_BYTES_MAX);
	json_begin(&object, &text);
	put_cursor(&object, cursor, false);
	int r = json_end(&object);
	snprintf(name, sizeof name, "%s.json", target);
	return r < 0 ? r : file_write(dir_fd, name, buf_span(&text), true);
}
