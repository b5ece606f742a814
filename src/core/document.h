/*
 * A task as a reader gets it: its columns, and what is kept beside them.
 */
#pragma once

#include "base/span.h"
#include "core/task.h"

/* The few columns by which a list chooses and orders tasks, before it reads any of them. */
struct task_outline {
	int64_t seq;
	int64_t created_ms;
	uint32_t queue, owner;
	int32_t priority;
	enum task_state state;
};

/* A task as it is, with what is kept beside it. Spans live in the reader's arena. */
struct task_document {
	struct task task;
	struct span id;
	struct span holder; /* worker id */
	struct span body;
	struct span result, error, checkpoint, question, answer;
	int64_t lease_ms; /* remaining */
};
