/*
 * The variables that a task brings for its command ("env"). The server asks here before it takes a task, and the worker
 * asks again before it runs one: a worker trusts no server with the variables that steer stint and the loader.
 */
#pragma once

#include <stddef.h>
#include <yyjson.h>

#include "base/span.h"

enum {
	TASK_ENV_NAMES_MAX = 64,
	TASK_ENV_BYTES_MAX = 32 << 10, /* of all names and values */
	TASK_ENV_WRONG_BYTES = 256,
};

/* 0; or -EINVAL and what is wrong, as the end of a sentence that begins with the name of the field. */
int task_env_check(yyjson_val *env, char ret_wrong[TASK_ENV_WRONG_BYTES]);
