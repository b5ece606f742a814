#include "notify/history.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/files.h"
#include "base/log.h"
#include "base/take.h"

enum { NAME_BYTES = TARGET_NAME_BYTES_MAX + 8 };

/* The n-th from the newest. */
static const struct history_entry *newest(const struct history *history, uint32_t n)
{
	return &history->entries[(history->first + HISTORY_MAX - 1 - n) % HISTORY_MAX];
}

void history_note(struct history *history, const struct history_entry *entry)
{
	bool again = history->count > 0 && strcmp(newest(history, 0)->id, entry->id) == 0;
	uint32_t place = again ? (history->first + HISTORY_MAX - 1) % HISTORY_MAX : history->first;

	history->entries[place] = *entry;
	history->version++;
	if (again)
		return;
	history->first = (history->first + 1) % HISTORY_MAX;
	history->count += history->count < HISTORY_MAX;
}

static void put_entry(struct buf *out, const struct history_entry *entry)
{
	struct json_object object;

	json_begin(&object, out);
	json_member_string(&object, "id", span_of(entry->id));
	json_member_string(&object, "type", span_of(entry->type));
	if (entry->task[0])
		json_member_string(&object, "task", span_of(entry->task));
	json_member_int(&object, "at", entry->at_ms);
	json_member_string(&object, "outcome",
		entry->error[0] == 0          ? SPAN("delivered")
			: entry->again_ms > 0 ? SPAN("retrying")
					      : SPAN("given-up"));
	json_member_int(&object, "tries", entry->tries);
	if (entry->status > 0)
		json_member_int(&object, "status", entry->status);
	if (entry->error[0])
		json_member_string(&object, "error", span_of(entry->error));
	if (entry->again_ms > 0)
		json_member_int(&object, "againAt", entry->again_ms);
	json_end(&object);
}

void history_put(struct buf *out, const struct history *history)
{
	bool any = false;

	buf_put_byte(out, '[');
	for (uint32_t i = 0; i < history->count; i++) {
		size_t before = out->len;
		json_put_comma(out, &any);
		put_entry(out, newest(history, i));
		if (out->len <= HISTORY_BYTES_MAX)
			continue;
		buf_cut(out, before);
		break;
	}
	buf_put_byte(out, ']');
}

static void name_of(char name[NAME_BYTES], const char *target)
{
	snprintf(name, NAME_BYTES, "%s.last", target);
}

void history_keep(const struct history *history, int dir_fd, const char *target)
{
	cleanup(buf_done) struct buf text = {0};
	char name[NAME_BYTES];

	buf_init(&text, HISTORY_BYTES_MAX + 4096);
	history_put(&text, history);
	name_of(name, target);
	int r = buf_fault(&text);
	if (r == 0)
		r = file_write(dir_fd, name, buf_span(&text), false);
	if (r < 0)
		log_warn("the last deliveries cannot be written", log_cstr("target", target),
			log_cstr("error", strerror(-r)));
}

static void take_entry(struct history *history, yyjson_val *item)
{
	struct history_entry entry = {
		.at_ms = json_int(item, "at"),
		.again_ms = json_int(item, "againAt"),
		.status = json_int(item, "status"),
		.tries = json_int(item, "tries"),
	};

	json_copy_text(item, "id", entry.id, sizeof entry.id);
	json_copy_text(item, "type", entry.type, sizeof entry.type);
	json_copy_text(item, "task", entry.task, sizeof entry.task);
	json_copy_text(item, "error", entry.error, sizeof entry.error);
	if (entry.id[0] && entry.type[0] && entry.tries > 0)
		history_note(history, &entry);
}

void history_open(struct history *history, int dir_fd, const char *target)
{
	cleanup(buf_done) struct buf text = {0};
	cleanup(yyjson_doc_free_at) yyjson_doc *doc = NULL;
	char name[NAME_BYTES];

	*history = (struct history){0};
	buf_init(&text, HISTORY_BYTES_MAX + 4096);
	name_of(name, target);
	if (file_read(dir_fd, name, &text) < 0 || json_read_reply(buf_span(&text), &doc) < 0)
		return;
	yyjson_val *list = yyjson_doc_get_root(doc);
	for (size_t i = yyjson_arr_size(list); i > 0; i--)
		take_entry(history, yyjson_arr_get(list, i - 1));
}
