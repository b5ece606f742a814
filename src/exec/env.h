/* The environment of a child, from nothing. */
#pragma once

#include <stddef.h>

#include "exec/process.h"

/* The marker, those that the spec gives, those that it allows and we have. Borrows all of them; `room` counts the NULL.
 * -EINVAL: not of the form NAME=value, or a name given twice; -E2BIG: too many. */
int env_build(const struct process_spec *spec, const char *marker, const char **ret_env, size_t room);
