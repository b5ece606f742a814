/*
 * Most numbers of a task, packed into one column: of every backend that has columns.
 */
#pragma once

#include <stdbool.h>

#include "base/span.h"
#include "core/task/task.h"

enum {
	TASK_REST_BYTES_MAX = 640,
};

/* Packs into the bytes, which are borrowed. */
struct span task_rest_pack(const struct task *task, char bytes[TASK_REST_BYTES_MAX]);

/* False: no column that we wrote. */
bool task_rest_unpack(struct span bytes, struct task *task);
