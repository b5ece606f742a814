/*
 * The last deliveries to a target, one entry for each message however often it was tried, on disk beside its cursor. For people: nothing
 * is decided by it, so a file that cannot be read or written costs the history and nothing else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "notify/message.h"

enum {
	HISTORY_MAX = 50,
	HISTORY_TYPE_BYTES = 64,
	HISTORY_TASK_BYTES = 132,
	HISTORY_ERROR_BYTES = 256,
	HISTORY_BYTES_MAX = 60 << 10, /* as JSON; then the oldest are left out */
};

struct history_entry {
	char id[MESSAGE_ID_BYTES];
	char type[HISTORY_TYPE_BYTES], task[HISTORY_TASK_BYTES]; /* of the event; no task: "" */
	char error[HISTORY_ERROR_BYTES];                         /* empty: delivered */
	int64_t at_ms, again_ms; /* of the last try, and of the next; 0: there is none */
	int64_t status, tries;
};

struct history {
	struct history_entry entries[HISTORY_MAX];
	uint32_t first, count; /* the newest is the one before `first` */
	uint64_t version;      /* rises with each change */
};

/* Without a file, or with one that is damaged, it is empty. */
void history_open(struct history *history, int dir_fd, const char *target);

/* The next try of the same message takes the place of the one before. */
void history_note(struct history *history, const struct history_entry *entry);

/* [{"id",…},…], the newest first. */
void history_put(struct buf *out, const struct history *history);

/* Not synced: after a loss of power it may be older. */
void history_keep(const struct history *history, int dir_fd, const char *target);
