/*
 * Walls: what is around a program beyond level process.
 *
 *	WALL_SANDBOX    bubblewrap      sees the system read-only, and of the rest what it was granted, at the same paths
 *	WALL_CONTAINER  crun, runc, podman  sees the executor's rootfs; what it was granted lies in WALL_PLACE
 *	WALL_VM         qemu            a machine of its own, with the executor's kernel; one serial line leads out (shim/guest.h)
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

/* Where a container has what is ours: run/ (the run dir), work/ (the work dir, unless it is in the run dir). A sandbox has the
 * shim there, and the socket if its path is too long for an address. */
#define WALL_PLACE  "/run/stint"
#define WALL_SOCKET WALL_PLACE "/stint.sock"
#define WALL_PROXY  WALL_PLACE "/proxy.sock"

#define WALL_PROXY_URL "http://127.0.0.1:3128" /* WALL_PROXY_PORT */

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
	bool network; /* true: the machine's network; false: none, besides the proxy if there is one */
	/* The run dir of the attempt; a container's files are written into its wall/. NULL: no run dir, and no container. */
	const char *run_path;
	const char *socket; /* in the run dir: the way to the server; NULL: none */
	const char *
		proxy; /* in the run dir: the supervisor's proxy, which programs find at WALL_PROXY_URL; NULL: none */
	const char *
		runtime; /* WALL_CONTAINER: a program, looked up in our PATH if it has no slash; NULL: crun */
	const char *rootfs;
	const char *kernel, *initrd, *image; /* WALL_VM: `image` is a disk; `initrd` or `image` may be NULL */
	bool emulate;                        /* WALL_VM: without KVM, also where it seems to work */
};

/* "process", "sandbox" ...; and back: -1 if there is no such level. */
const char *wall_level_name(enum wall_level level);
int wall_level_find(const char *name);

/*
 * Is this level available here? Looks, and starts nothing. 0, or a negative errno with a sentence that says what is missing
 * and one that says what to do. What looking cannot find out shows at the start (START_WALL), and in wall_try().
 */
int wall_check(const struct wall *wall, char reason[WALL_REASON_BYTES], char fix[WALL_FIX_BYTES]);

/* -EXDEV, with the two sentences: the wall would show the state directory, as part of the system's paths or of its rootfs. */
int wall_check_home(const struct wall *wall, const char *keep_out, char reason[WALL_REASON_BYTES],
	char fix[WALL_FIX_BYTES]);

/* Both checks, and then a start of a program that does nothing, which may take ten seconds. The caller has no host open.
 * A container without a rootfs is tried with an empty one. WALL_VM is not booted, because nobody knows what its image
 * does with a task; but KVM is tried. If KVM fails the result is 0 and `reason` says so ("but slow: …"). */
struct wall_trial {
	const char *shim; /* as struct host_options */
	bool landlock_optional;
	const char *keep_out; /* as struct confine */
};

int wall_try(const struct wall *wall, const struct wall_trial *trial, char reason[WALL_REASON_BYTES],
	char fix[WALL_FIX_BYTES]);

/* Is this path of a socket too long for an address? NULL is not. */
bool wall_is_long(const char *socket);

/* The name inside of a path outside; and of a work dir, which has a name of its own there. -ENAMETOOLONG. */
int wall_name(const struct wall *wall, const char *path, char *ret_name, size_t room);
int wall_workdir_name(const struct wall *wall, const char *path, char *ret_name, size_t room);
