/*
 * Walls: what is around a program beyond level process.
 *
 *	WALL_SANDBOX    bubblewrap      sees the system read-only, and of the rest what it was granted, at the same paths
 *	WALL_CONTAINER  crun, runc, podman  sees the executor's rootfs; what it was granted lies in WALL_PLACE
 *	WALL_VM         qemu            a machine of its own, with the executor's kernel; one serial line leads out (guest.h)
 *
 * A wall is a member of process_spec and everything else stays as it is: the shim owns the tree, what makes the wall is
 * part of it, limits are the same, and inside of sandbox and container the program is confined as at level process too.
 *
 * Nothing here weakens itself. A wall that cannot be made is a fault of the start: START_WALL, or one of those below,
 * and nothing of the program ran.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum wall_level {
	WALL_PROCESS,
	WALL_SANDBOX,
	WALL_CONTAINER,
	WALL_VM
}; /* each stricter than the one before */

enum {
	WALL_LEVELS = WALL_VM + 1,
	WALL_MACHINE_MIB_LEAST = 64, /* of memory: a kernel does not boot with less */
	WALL_REASON_BYTES = 512,
	WALL_FIX_BYTES = 256,
};

/* Where a container has what is ours: run/ (the run dir), work/ (the work dir, unless it is in the run dir),
 * door/stint.sock. */
#define WALL_PLACE "/run/stint"

/* The program that is a machine. */
#if defined __aarch64__
#define WALL_QEMU         "qemu-system-aarch64"
#define WALL_QEMU_PACKAGE "qemu-system-arm"
#else
#define WALL_QEMU         "qemu-system-x86_64"
#define WALL_QEMU_PACKAGE "qemu-system-x86"
#endif

struct wall {
	enum wall_level level;
	bool network; /* the machine's own; otherwise there is none */
	const char *
		run_path; /* the run dir of the attempt; a container's files are written into its wall/. NULL: there is
			       * none, and no container */
	const char *socket; /* of the server, reachable from inside; NULL: none */
	bool socket_alone; /* its directory holds nothing else and is shown instead: a socket that is made anew
			    * is found there */
	const char *
		runtime; /* WALL_CONTAINER: a program, looked up in our PATH if it has no slash; NULL: crun */
	const char *rootfs;
	const char *kernel, *initrd,
		*image; /* WALL_VM: the last is a disk; one of the last two may be NULL */
};

/* "process", "sandbox" ...; and back: -1 if there is no such level. */
const char *wall_level_name(enum wall_level level);
int wall_level_find(const char *name);

/*
 * Can this level be had here? Looks, and starts nothing. 0, or a negative errno with a sentence that says what is missing
 * and one that says what to do. What it cannot know by looking, the start will tell (START_WALL), and wall_try().
 */
int wall_check(const struct wall *wall, char reason[WALL_REASON_BYTES], char fix[WALL_FIX_BYTES]);

/* Would it show the state directory, by what everybody sees of this machine, or by its rootfs? Then -EXDEV, with the sentences. */
int wall_check_home(const struct wall *wall, const char *keep_out, char reason[WALL_REASON_BYTES],
	char fix[WALL_FIX_BYTES]);

/* Both, and then starts something that does nothing, and waits for it, at most ten seconds. In a program that has no
 * host open. A container without a rootfs is tried with an empty one. WALL_VM is not booted: what its image does with a
 * task nobody knows; but whether KVM works is tried, and if it does not `reason` says so ("but slow: …") while the answer is 0. */
struct wall_trial {
	const char *shim; /* as struct host_options */
	bool landlock_optional;
	const char *keep_out; /* as struct confine */
};

int wall_try(const struct wall *wall, const struct wall_trial *trial, char reason[WALL_REASON_BYTES],
	char fix[WALL_FIX_BYTES]);

/* How a path of ours is called inside; a work dir has a name of its own there. -ENAMETOOLONG. */
int wall_name(const struct wall *wall, const char *path, char *ret_name, size_t room);
int wall_workdir_name(const struct wall *wall, const char *path, char *ret_name, size_t room);
