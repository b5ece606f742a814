/*
 * What a child of level `process` may do: the limits, the paths and the system calls.
 *
 * Nothing here weakens itself. A path that cannot be granted, a filter that cannot be loaded, a limit that the system
 * refuses: the child does not start, and process_end() says why.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exec/request/ancestors.h"

/* The version of Landlock that the kernel has; 0: none, or it is switched off. */
int landlock_abi(void);

enum { GRANTS_MAX = 2048 };

enum grant_access {
	GRANT_READ,   /* read and execute what lies beneath */
	GRANT_WRITE,  /* and change it */
	GRANT_DEVICE, /* read, write and control one device */
};

/* One path beneath which a child may go. By descriptor where the caller has one, so that nothing is resolved twice. */
struct grant {
	const char *path; /* NULL: fd */
	int fd;
	enum grant_access access;
	bool optional; /* left out if it does not exist, or lies where we may not go: neither may the child */
	/* For a configured path that tasks may be able to change: */
	bool direct;        /* follow no link: the path was resolved once, before any task could change it */
	bool outside;       /* it may not lie in confine.keep_out either */
	const char *inside; /* its name behind a wall; NULL: path */
	/* held: the descriptor counts and not the path (grant_hold()). */
	bool held, is_directory;
	struct place place;
};

/* Is it given by its descriptor? */
static inline bool grant_has_fd(const struct grant *grant)
{
	return grant->held || !grant->path;
}

/* `fault` is the result of grant_open(): is the grant left out? */
static inline bool grant_is_left_out(const struct grant *grant, int fault)
{
	return grant->optional && (fault == -ENOENT || fault == -EACCES);
}

/* A descriptor of the path, which the caller closes, or a negative errno; -ELOOP: a direct path has a link in it. */
int grant_open(const struct grant *grant);

/* From now on the grant is its descriptor, which the caller keeps open: nobody can put something else in its place. */
int grant_hold(struct grant *grant);

/* Would the grant open keep_out? `fd` is from grant_open(), `place` its place, `ancestors` those of keep_out by
 * ancestors_find_path(). */
bool grant_opens(const struct grant *grant, int fd, struct place place, const char *keep_out,
	const struct place *ancestors, int ancestor_count);

/* Programs, libraries, /etc, /proc, /sys and the usual devices: what nearly every program reads. No home, no /tmp, no
 * /var, no /run. */
extern const struct grant grants_system[];
extern const size_t grants_system_count;

#define LIMIT_UNCHANGED UINT64_MAX

/*
 * The one list of what a tree may use, at every level of isolation. Files, core dumps and the size of a file are limits of
 * each process. Tasks and processors are bounds of the whole tree that it runs into: no more processes, no faster. Memory,
 * processor time and output are its budget: a tree that uses one up is ended, and process_end.spent says which.
 */
struct limits {
	uint64_t files;      /* open at a time */
	uint64_t core_bytes; /* of a core dump */
	uint64_t file_bytes; /* of any file it writes */
	uint64_t tasks; /* processes and threads at a time. Where no cgroup counts them: of this user, beyond
	                      * those of the whole machine at the start */
	uint64_t cpu_milli; /* thousandths of a processor: 1500 is one and a half */
	uint64_t memory_bytes;
	uint64_t cpu_us; /* processor time */
	uint64_t output_bytes;
};

/* 1024 files, 512 tasks, no core dump, 1 GiB files; the rest unchanged. */
struct limits limits_default(void);

/* What only a cgroup can count or hold back (cgroup_place.h). */
enum bound { BOUND_MEMORY, BOUND_PIDS, BOUND_CPU, BOUND_COUNT };

/* The bounds that these limits need, as bits. BOUND_PIDS is not needed: a limit of the user counts tasks, too. */
unsigned limits_bounds(const struct limits *limits);

struct confine {
	struct limits limits;
	const struct grant
		*grants; /* besides grants_system and the working directory, which is GRANT_WRITE */
	size_t grant_count;
	/* $STINT_HOME. A grant that would open it, by naming it or anything above it, is a fault: -EXDEV. Grants
	 * beneath it (the run dir, a worktree) are the caller's word, unless they say `outside`; a working directory there
	 * must lie in one of them. NULL: nothing to keep out of. */
	const char *keep_out;
	bool workdir_read_only;
	/* A file, without links, that the system's own grants must not show: the token of the worker, say, in /etc. NULL: none. */
	const char *hidden;
};
