/*
 * Uploads what a process writes to the log of its attempt, as it comes. Output and errors go into one log, in the order
 * in which they were read, and the log knows which is which. What the server does not take in time is pushed out of the bounded buffers of the
 * process and shows in the log as a gap, with its size. Bytes that are no text become U+FFFD.
 */
#pragma once

#include <uv.h>

#include "base/rng.h"
#include "exec/process.h"
#include "worker/api_client.h"
#include "worker/beat/heartbeat.h"

enum {
	LOG_MARKS_MAX = 256,         /* changes of stream that wait; with more the order among them is lost */
	LOG_PIECE_LENGTHS_MAX = 512, /* changes of stream in one piece */
};

/* The stream was read up to that position before the next mark. */
struct log_mark {
	enum process_stream stream;
	uint64_t end;
};

struct log_upload {
	struct api_client *client;          /* borrowed, and used by nobody else */
	struct heartbeat_client *heartbeat; /* for the credential and the id */
	struct process *process;
	struct output *own;        /* instead of a process: what somebody else gathers for this attempt */
	struct span target, fence; /* borrowed */
	struct buf piece, body;    /* under way; it is repeated until it was taken */
	int64_t offset;            /* in the log, in bytes of text */
	int64_t dropped;           /* before the piece */
	uint64_t dropped_seen[2];
	uint32_t mark_first, mark_count;
	struct log_mark marks[LOG_MARKS_MAX]; /* a ring */
	uint32_t length_count;
	uint32_t lengths
		[LOG_PIECE_LENGTHS_MAX]; /* of the piece: bytes of output, of errors, and so on by turns */
	uint32_t failures;
	struct span first; /* borrowed: our own line, before all that it writes */
	struct span last;  /* borrowed: our own line, after all that it wrote */
	bool amid_line;    /* what it wrote last did not end one */
	bool closed;       /* the log takes no more */
	bool finishing;    /* nothing more comes */
	void (*finished)(void *context);
	void *context;
	struct rng rng;
	uv_timer_t timer;
};

/* `target` is /api/tasks/ID/log. */
void log_upload_init(struct log_upload *upload, uv_loop_t *loop, struct api_client *client,
	struct heartbeat_client *heartbeat, struct span target, struct span fence);

/* What the process writes; or, without one, what its owner gathers for this attempt. */
void log_upload_begin(struct log_upload *upload, struct process *process, struct output *own);

/* The process has written something to this stream. */
void log_upload_hear(struct log_upload *upload, enum process_stream stream);

/* There is something new. */
void log_upload_look(struct log_upload *upload);

/* A line of ours for the head of the log; the text is borrowed until it is sent. */
void log_upload_add_first(struct log_upload *upload, struct span line);

/* A line of ours for the end of the log; the text is borrowed until `finished`. */
void log_upload_add_last(struct log_upload *upload, struct span line);

/* The process is gone: the rest, then `finished`, from the loop. */
void log_upload_finish(struct log_upload *upload, void (*finished)(void *context), void *context);

/* Frees what it holds; the timer must be closed by the caller, whose memory it is in. */
void log_upload_done(struct log_upload *upload);
