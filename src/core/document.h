/*
 * A task as a reader gets it: its columns, and what is kept beside them.
 */
#pragma once

#include "base/span.h"
#include "core/task.h"

/* A task as it is, with what is kept beside it. Spans live in the reader's arena. */
struct task_document {
	struct task task;
	struct span id;
	struct span holder; /* worker id */
	struct span body;
	struct span result, error, checkpoint, question, answer, evidence, session;
	int64_t lease_ms; /* remaining */
};

/* A piece of the log of an attempt: what is kept from `offset` on without a gap. */
struct log_piece {
	uint32_t attempt;
	int64_t offset;
	int64_t dropped; /* bytes before it, since the position asked for, are not kept */
	struct span data;
	int64_t length; /* of the log so far, be it kept or not */
};
