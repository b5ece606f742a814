/*
 * Landlock: a process gives up every path but those granted, for itself and all it starts, for good. By the system calls
 * themselves: Debian 12 knows the first two versions of it, kernels have seven.
 */
#pragma once

#include <stddef.h>

#include "exec/request/confine.h"

/*
 * Make a ruleset of these grants, as strong as the kernel's version allows: every way to the file system; from version
 * 6 on also signals and abstract sockets to the outside. Returns a descriptor, or a fault; *ret_culprit then is the
 * grant that it is about, or NULL.
 *   -EXDEV  it would open keep_out
 */
int landlock_ruleset(int abi, const struct grant *grants, size_t count, const char *keep_out,
	const struct grant **ret_culprit);

/* For the calling thread, from now on. It must have no_new_privs. */
int landlock_enforce(int ruleset);
