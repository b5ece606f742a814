/*
 * The scribe: brings what a process writes into the log of its attempt, as it comes. Output and errors go into one log,
 * in the order in which they were read. What the server does not take in time is pushed out of the bounded buffers of the
 * process and shows in the log as a gap, with its size. Bytes that are no text become U+FFFD.
 */
#pragma once

#include <uv.h>

#include "base/rng.h"
#include "exec/process.h"
#include "worker/line.h"
#include "worker/beat/pulse.h"

struct scribe {
	struct line *line;   /* borrowed; nobody else uses it meanwhile */
	struct pulse *pulse; /* for the credential and the id */
	struct process *process;
	struct output *own;        /* instead of a process: what somebody else gathers for this attempt */
	struct span target, fence; /* borrowed */
	struct buf piece, body;    /* under way; it is repeated until it was taken */
	int64_t offset;            /* in the log, in bytes of text */
	int64_t dropped;           /* before the piece */
	uint64_t dropped_seen[2];
	uint32_t failures;
	struct span last; /* borrowed: our own line, after all that it wrote */
	bool amid_line;   /* what it wrote last did not end one */
	bool closed;      /* the log takes no more */
	bool finishing;   /* nothing more comes */
	void (*finished)(void *context);
	void *context;
	struct rng rng;
	uv_timer_t timer;
};

/* `target` is /api/tasks/ID/log. */
void scribe_init(struct scribe *scribe, uv_loop_t *loop, struct line *line, struct pulse *pulse,
	struct span target, struct span fence);
void scribe_begin(struct scribe *scribe, struct process *process);
void scribe_begin_own(struct scribe *scribe, struct output *own);

/* There is something new. */
void scribe_look(struct scribe *scribe);

/* A line of ours for the end of the log; the text is borrowed until `finished`. */
void scribe_add_last(struct scribe *scribe, struct span line);

/* The process is gone: the rest, then `finished`, from the loop. */
void scribe_finish(struct scribe *scribe, void (*finished)(void *context), void *context);

/* Frees what it holds; the timer must be closed by the caller, whose memory it is in. */
void scribe_done(struct scribe *scribe);
