/*
 * The door of the clawnsole workqueue: what its files share. Its words stand in them and nowhere else: an item is a
 * task, an agent is the worker of that id, a dedupeKey is a unique key within a queue.
 *
 *   workqueue.c   adding, taking, reporting
 *   operate.c     what an operator does: update, delete, assignments
 *   import.c      items with a past in a file of the original
 *   item.c        an item as JSON; refusals
 *   list.c        lists of items, queues and counts
 *
 * Unknown fields are ignored, as the original does; a wrong value of a known field is refused.
 */
#pragma once

#include "api/form.h"

enum {
	TITLE_BYTES_MAX = 4096,
	NOTE_BYTES_MAX = 64 << 10,
	DEDUPE_KEY_BYTES_MAX = COMMAND_NAME_MAX - 5, /* together with the queue: "3:qqq:key" is a name */
};

/* Member of the metadata of an imported task: the fields of the item that a task does not have. */
#define IMPORTED_KEY "clawnsoleItem"

/* ---- fields of a request -------------------------------------------------------------------------------- */

struct span text_trim(struct span text);

/* FIELD_BY of a struct span: a text without the space around it, of up to max bytes, in the arena; and one that is an id, or
 * empty. */
field_take workqueue_take_text, workqueue_take_id;

#define ITEM_TEXT(type, member, name, bytes) \
	FIELD(type, member, name, FIELD_BY, .max = (bytes), .by = workqueue_take_text)
#define ITEM_ID(type, member, name) \
	FIELD(type, member, name, FIELD_BY, .max = COMMAND_ID_MAX, .by = workqueue_take_id)
#define ITEM_WHOLE(type, member, name, least, most) \
	FIELD(type, member, name, FIELD_BY, .min = (least), .max = (most), .by = workqueue_take_whole)

/* Such a text of up to COMMAND_ID_MAX bytes, at the top of the body; empty: absent or wrong. */
struct span workqueue_text(struct form *form, const char *name);

/* FIELD_BY of an int64_t: a whole number from min to max, as a number or as digits in a string. */
field_take workqueue_take_whole;

/* Names in a list, trimmed; blank ones are left out. Absent or null: an empty list. */
struct name_list field_queues(struct form *form, yyjson_val *object, const char *name);

/* The same of "a,b", with any separator; what cannot be a name is left out. -ENOMEM. */
int split_names(struct arena *arena, struct span text, char separator, struct name_list *ret_names);

/* The queues that an agent is assigned, one after the other; false: no more queues. */
bool assigned_next(struct span *rest, struct span *ret_queue);

/* A member that must be there and is not: {"error":"itemId_required"}. */
void workqueue_missing(struct api_call *call, const char *code, const char *message);

/* A task with everything that an item shows. -ENOENT. */
int item_read(
	const struct api_call *call, int64_t seq, struct arena *arena, struct task_document *ret_document);

/* The same for that id, if the caller may see the task. */
int item_find(struct api_call *call, struct span id, struct task_document *ret_document);

/* The document of an item, or the call was refused. */
bool workqueue_find(struct api_call *call, struct span id, struct task_document *ret_document);

/* ---- items ------------------------------------------------------------------------------------------------ */

/* The word for its state, as old clients know it. */
const char *item_status(enum task_state state);

/* States of that status, a bit each; 0: unknown status. */
uint32_t item_states(struct span status);

/* The unique key of a task for the "dedupeKey" of an item in that queue, in the arena; empty: the item has no dedupeKey. */
struct span item_key(struct form *form, struct span key, struct span queue);

int item_put(const struct api_call *call, struct buf *out, const struct task_document *document,
	bool deduplicated);

/* {"ok":true,"item":…} with the task as that command left it; `more`: members behind them. */
void item_reply(struct api_call *call, const struct result *result, bool deduplicated, struct span more);

/* The same of a task as it was read. */
void item_reply_document(struct api_call *call, const struct task_document *document);

/* Our error as an item's error, which is a text. And the other way round, in the arena. */
int item_error_put(struct buf *out, struct span message);
