#include "notify/cursor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/take.h"

CLEANUP_AT(yyjson_doc, yyjson_doc_free);

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

static int parse(struct span text, struct cursor *cursor)
{
	struct json_complaint complaint;
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = json_read(text, &complaint);
	yyjson_val *root = doc ? yyjson_doc_get_root(doc) : NULL;

	if (json_int(root, "generation") <= 0 || !yyjson_is_int(yyjson_obj_get(root, "seq")))
		return -EPROTO;
	*cursor = (struct cursor){
		.known = true,
		.generation = json_int(root, "generation"),
		.seq = json_int(root, "seq"),
		.time_ms = json_int(root, "time"),
		.repeats_seq = json_int(root, "repeatsSeq"),
		.repeats_ms = json_int(root, "repeatsTime"),
		.delivered = json_int(root, "delivered"),
		.given_up = json_int(root, "givenUp"),
		.missed = json_int(root, "missed"),
		.last_ms = json_int(root, "lastAt"),
		.last_status = json_int(root, "lastStatus"),
	};
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

void cursor_put_figures(struct json_object *object, const struct cursor *cursor)
{
	json_member_int(object, "delivered", cursor->delivered);
	json_member_int(object, "givenUp", cursor->given_up);
	json_member_int(object, "missed", cursor->missed);
	json_member_int(object, "lastAt", cursor->last_ms);
	json_member_int(object, "lastStatus", cursor->last_status);
	json_member_string(object, "lastId", span_of(cursor->last_id));
	json_member_string(object, "lastError", span_of(cursor->last_error));
}

int cursor_write(int dir_fd, const char *target, const struct cursor *cursor)
{
	cleanup(buf_done) struct buf text = {0};
	struct json_object object;
	char name[NAME_BYTES];

	buf_init(&text, FILE_BYTES_MAX);
	json_begin(&object, &text);
	json_member_int(&object, "generation", cursor->generation);
	json_member_int(&object, "seq", cursor->seq);
	json_member_int(&object, "time", cursor->time_ms);
	json_member_int(&object, "repeatsSeq", cursor->repeats_seq);
	json_member_int(&object, "repeatsTime", cursor->repeats_ms);
	cursor_put_figures(&object, cursor);
	int r = json_end(&object);
	snprintf(name, sizeof name, "%s.json", target);
	return r < 0 ? r : file_write(dir_fd, name, buf_span(&text), true);
}
