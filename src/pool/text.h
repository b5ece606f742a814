/*
 * What a worker of a pool says and what is said to it: the JSON in the frames of spec/stdio.md. The surface of another
 * product: its words (moduleId, execute.task) exist here and nowhere else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/uuid.h"
#include "wire/json/json.h"

enum {
	POOL_MODULES_MAX = 256,
	POOL_MODULE_BYTES_MAX = 128,
	POOL_NOTE_BYTES_MAX = 4 << 10, /* of a progress note: the rest is cut off */
	POOL_ERROR_BYTES_MAX = 4 << 10,
	POOL_DETAILS_BYTES_MAX = 64 << 10,
	POOL_REASON_BYTES = 256,
};

enum pool_message_kind {
	POOL_HELLO,
	POOL_READY,
	POOL_HEARTBEAT,
	POOL_SHUTDOWN,
	POOL_PROGRESS, /* this and the next two speak of a task */
	POOL_RESULT,
	POOL_FAILURE,
};

/* Texts and values are the document's. */
struct pool_message {
	enum pool_message_kind kind;
	struct span modules[POOL_MODULES_MAX]; /* of hello */
	uint32_t module_count;
	struct span reason; /* of shutdown; may be empty */
	struct span task;
	int percent;        /* of progress: 0 to 100, -1: not said */
	struct span note;   /* of progress; may be empty */
	bool success;       /* of result */
	yyjson_val *output; /* of result; NULL: none */
	struct span code, text;
	yyjson_val *details; /* of failure; NULL: none */
};

/* Why a frame was dropped. */
struct pool_complaint {
	char reason[POOL_REASON_BYTES];
	bool of_itself; /* the frame is about the worker, not about its task */
};

/* -EPROTO: not understood. The document is the caller's, to be freed with yyjson_doc_free(). */
int pool_text_read(struct span frame, yyjson_doc **ret_doc, struct pool_message *ret_message,
	struct pool_complaint *ret_complaint);

/* A message that was understood, but is about a task that the worker does not have, or has answered. */
void pool_complain_of_task(struct pool_complaint *complaint, const struct pool_message *message);

/* Letters, digits, - and _. */
bool pool_is_module(struct span name);

/* What goes with a task that is handed out. */
struct pool_order {
	const char *id;     /* of the message: a UUID */
	const char *worker; /* the worker's name */
	const char *module;
	const char *level;   /* of isolation */
	int64_t wall_ms;     /* now */
	int64_t deadline_ms; /* wall: when it will be stopped */
};

/* execute.task. `task` is the task as the server gave it. -EMSGSIZE: it does not fit into a frame; -ENOMEM. */
int pool_text_execute(struct buf *out, const struct pool_order *order, yyjson_val *task);

/* A version 4 UUID of 128 random bits, with a NUL. */
void pool_text_uuid(const uint64_t random[2], char text[UUID_CHARS + 1]);

/* ---- reports: the members of a body besides workerId and fence. -ENOMEM, -E2BIG ---- */

/* "result":… of a result that was a success. */
int pool_put_result(struct buf *report, const struct pool_message *message);

/* "error":{…} of a failure, or of a result without success. */
int pool_put_failure(struct buf *report, const struct pool_message *message);

/* "error":{…} of a worker that is ready and has not answered. `dropped`: why its last dropped frame was dropped; "": no frame
 * was. */
int pool_put_unanswered(struct buf *report, const char *dropped);
