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
	int64_t repeats_seq, repeats_ms; /* after a restore: up to that event, only what is younger is new */
	int64_t delivered, given_up, missed;
	int64_t last_ms; /* when it was last tried to deliver something; 0: never */
	int64_t last_status;
	char last_id[MESSAGE_ID_BYTES];
	char last_error[CURSOR_ERROR_BYTES]; /* empty: it went well */
};

/* HOME/notify/, made if it is missing. A descriptor, or the fault. */
int cursor_dir_open(const char *home);

/* One that is not there is not known. -EPROTO: that is not a cursor; what open() says. */
int cursor_read(int dir_fd, const char *target, struct cursor *ret_cursor);
int cursor_write(int dir_fd, const char *target, const struct cursor *cursor);

/* What became of its deliveries. */
void cursor_put_figures(struct json_object *object, const struct cursor *cursor);
