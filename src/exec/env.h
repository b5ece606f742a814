/* The environment of a child, from nothing. */
#pragma once

#include <stddef.h>

#include "exec/process.h"

/* The marker, the spec's `env`, and of our own environment what `env_allow` names. Borrows all texts; `room` counts the NULL.
 * -EINVAL: not of the form NAME=value, or a name given twice; -E2BIG: too many. */
int env_build(const struct process_spec *spec, const char *marker, const char **ret_env, size_t room);
