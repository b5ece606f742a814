/*
 * The position of a target in the stream of events, on disk: a small file of its own in HOME/notify/, written whole before
 * anything follows from it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "notify/message.h"
#include "wire/json/json.h"

enum {
	CURSOR_ERROR_BYTES = 256,
};

struct cursor {
	bool known;         /* false: it has never met the server */
	int64_t generation; /* of the store that `seq` counts */
	int64_t seq;        /* everything up to it is delivered, given up, or not for this target */
	int64_t time_ms;    /* of the last event that was looked at */
	int64_t repeats_seq,
		repeats_ms; /* after a restore: up to event repeats_seq, only events after repeats_ms are new */
	int64_t delivered, given_up, missed;
	int64_t last_ms; /* time of the last delivery attempt; 0: never */
	int64_t last_status;
	char last_id[MESSAGE_ID_BYTES];
	char last_error[CURSOR_ERROR_BYTES]; /* of the last attempt; empty: it was delivered */
};

/* HOME/notify/, made if it is missing. A descriptor, or the fault. */
int cursor_dir_open(const char *home);

/* A missing file is a cursor with `known` false. -EPROTO: not a cursor; or a fault of open(). */
int cursor_read(int dir_fd, const char *target, struct cursor *ret_cursor);
int cursor_write(int dir_fd, const char *target, const struct cursor *cursor);

/* The counts and the last outcome of its deliveries. */
void cursor_put_figures(struct json_object *object, const struct cursor *cursor);
