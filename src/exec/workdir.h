/*
 * The directory that a task asks for: beneath one of the configured roots, reached without a symbolic link, and held
 * by a descriptor from then on, so that nobody can swap it between the look and the use.
 */
#pragma once

#include <stddef.h>

enum {
	WORKDIR_ROOTS_MAX = 64,
	WORKDIR_REASON_BYTES = 320,
};

/*
 * Open `path` with O_PATH for process_spec.workdir_fd. An absolute path must begin with a root, component by component;
 * a relative one is looked up in each root in turn. Nothing is expanded: no ~, no variables. A root itself may be
 * reached through links, for the configuration says so.
 *
 * On a fault `reason` is a sentence for people about the path, fit for BAD_WORKDIR:
 *   -EXDEV   outside of every root, or it leads out of its root
 *   -ELOOP   there is a symbolic link in it
 *   -ENOSPC  it is on a disk on which there is no room for anything
 *   -ENOENT, -ENOTDIR, -EACCES, -ENAMETOOLONG, -EINVAL (empty, or it has a NUL)
 *   -EMFILE, -ENFILE, -ENOMEM  the machine, not the path
 */
int workdir_open(const char *const *roots, size_t root_count, const char *path, int *ret_fd,
	char reason[WORKDIR_REASON_BYTES]);
