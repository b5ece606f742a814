/*
 * Between us and our shims: private to this room, the same build on both sides.
 *
 *	us ──request and descriptors──▶ shim          once; REQUEST_VERSION says whether we are of one build
 *	us ◀──ready──────────────────── shim          understood; until then nothing of the program has run
 *	us ◀──started | unstarted────── shim          the program runs, or why not
 *	us ──lease────────────────────▶ shim          again and again while we live: without it the tree ends (shim/deadline.h)
 *	us ──work | rest──────────────▶ shim          a worker of a pool has a task, or has none
 *	us ──stop | kill──────────────▶ shim          any time; our end of the socket closing is the last stop
 *	us ◀──exited─────────────────── shim          the program has ended; what it left gets TERM, then KILL
 *	us ◀──gone───────────────────── shim          nothing is left; the shim ends too
 *
 * A socket of packets: each of these is one, whole or not at all. A request that is large, or goes on to the shim inside of
 * a wall, comes as a memory file beside the other descriptors, and the packet is a single byte.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/span.h"
#include "exec/tree/cgroup.h"
#include "exec/request/confine.h"
#include "exec/request/terms.h"

enum {
	SHIM_ORPHAN_MS = 5000,        /* after our death the tree is gone within this time */
	SHIM_ORPHAN_TERM_MS = 2000,   /* between its TERM and its KILL */
	SHIM_ORPHAN_FINISH_MS = 4000, /* with `finishes`: its time to end by itself, before KILL */
	SHIM_CONTROL_FD = 0,
	REQUEST_BYTES_MAX = 8 << 20,
	REQUEST_PACKET_BYTES = 32 << 10, /* a longer request is sent as a file */
	REQUEST_GRANT_FDS_MAX = 224,     /* with the others fewer than the 253 that a packet carries */
	INSIDE_REQUEST_FD = 3,           /* descriptors of the shim inside a wall (exec/shim/inside.h) */
	INSIDE_STATUS_FD,
	INSIDE_BIND_FD, /* the first descriptor of request_wall.binds */
};

#define REQUEST_VERSION "stint-shim " STINT_VERSION " 14"

/* Instead of the name of a run, which does not begin so: the shim inside of a wall, at the line of a machine, and a
 * program for trying a wall. */
#define SHIM_INSIDE "--inside"
#define SHIM_GUEST  "--guest"
#define SHIM_TRIAL  "--trial"

/* For a machine (exec/shim/guest.h): qemu finds our stderr at this descriptor, because it accepts no descriptor below 3 for
 * a serial line. Where KVM does not work, the argument GUEST_KVM is replaced by GUEST_TCG. */
enum { GUEST_SAID_FD = 3 };
#define GUEST_KVM "accel=kvm"
#define GUEST_TCG "accel=tcg"
#define KVM_PATH  "/dev/kvm"

/* The descriptors of a request, in this order; those of grants follow. */
enum request_fd {
	REQUEST_FD_REQUEST, /* the request, if it is a file; else the work dir once more */
	REQUEST_FD_STDIN,
	REQUEST_FD_STDOUT,
	REQUEST_FD_STDERR,
	REQUEST_FD_WORKDIR,
	REQUEST_FD_CGROUP, /* CGROUP_LEAVES_MAX leaves; unused ones are the work dir. Their paths are arguments */
	REQUEST_FD_HOLD = REQUEST_FD_CGROUP + CGROUP_LEAVES_MAX, /* PROCESS_HOLDS of them: only kept open */
	REQUEST_FD_COUNT = REQUEST_FD_HOLD + PROCESS_HOLDS,
};

enum { REQUEST_FDS_MAX = REQUEST_FD_COUNT + REQUEST_GRANT_FDS_MAX };

enum { WALL_ENV_MAX = 8 };

/* Of the proxy, on 127.0.0.1 behind a wall (exec/shim/loopback.h). */
#define WALL_PROXY_PORT 3128

#define WALL_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* The program that makes the wall. What it starts inside is the shim once more (exec/shim/inside.h). */
struct request_wall {
	const char *const *argv; /* NULL at the end; empty: there is no wall */
	const char *const *env;  /* its environment beyond the marker and PATH; NULL at the end */
	const char *workdir;     /* the work dir's name inside */
	const char *fixed;       /* a directory that it must not change; "": none */
	const char *cover;       /* a directory that it must not see; "": none */
	const char *proxy;       /* inside: the socket of the supervisor's proxy; "": none */
	bool own_user;           /* we are not root: it gets a user namespace in which it is root */
	bool loose; /* it may end while the program runs, and is not waited for after the program */
	/* Paths inside, NULL at the end. Before anything runs, each is compared with the descriptor that was opened outside:
	 * those after REQUEST_FD_COUNT, in the same order. */
	const char *const *binds;
};

/* What a shim is asked for. The sender owns all that it points to. */
struct request {
	const char *const *argv, *const *env; /* NULL at the end */
	const char
		*program; /* the file to execute; "": argv[0], which the child looks up if it has no slash */
	mode_t umask;
	uint32_t linger_ms;
	bool drop_user;
	uid_t uid;
	gid_t gid;
	struct limits limits;
	int landlock_abi; /* 0: no Landlock, and the host allows that */
	/* Includes the system's grants and the work dir. `fd` indexes the descriptors of the message. Behind a wall: paths as
	 * seen inside, no descriptors. */
	const struct grant *grants;
	size_t grant_count;
	const char *keep_out; /* "": none */
	bool cgroups_needed;  /* they hold limits: a child that cannot enter them does not start */
	bool budget_later;    /* processor time counts when an order says so */
	bool finishes;        /* an orphan gets no TERM */
	struct process_lease lease;
	struct span filter; /* the seccomp program */
	struct request_wall wall;
};

/* Faults as buf_put(). */
int request_encode(const struct request *request, struct buf *buf);

/* Borrows the bytes; argv, env and grants are malloc'ed and never freed: a shim decodes one request in its life.
 * -EPROTO: not of our build. */
int request_decode(struct span bytes, struct request *ret_request);

/* A message on the status pipe of a child. Without a wall only STATUS_FAULT is sent, and the end of the pipe means that the
 * program runs. */
enum status_kind { STATUS_FAULT, STATUS_STARTED, STATUS_ENDED };

struct status_message {
	uint32_t kind;
	int32_t status, signal; /* STATUS_ENDED */
	bool core_dumped;
	uint32_t strays; /* inside of the wall, when the program had ended */
	struct start_fault fault;
};

enum order_kind { ORDER_STOP, ORDER_KILL, ORDER_LEASE, ORDER_WORK, ORDER_REST };

struct shim_order {
	uint32_t kind;
	uint32_t grace_ms;          /* of ORDER_STOP */
	struct process_lease lease; /* of ORDER_LEASE and ORDER_WORK */
};

/* What one packet tells, in this order: a program that ends at once is started, exited and gone in one. */
enum {
	REPORT_READY = 1 << 0,
	REPORT_STARTED = 1 << 1,
	REPORT_UNSTARTED = 1 << 2,
	REPORT_EXITED = 1 << 3,
	REPORT_GONE = 1 << 4,
};

struct shim_report {
	uint32_t what;
	/* started */
	pid_t main;
	uint64_t main_start;
	/* unstarted */
	struct start_fault fault;
	/* exited */
	int signal; /* 0: it left by itself with `status` */
	int status;
	bool core_dumped;
	/* exited and gone */
	uint32_t strays;
	uint32_t spent;   /* enum process_spent */
	uint32_t budgets; /* that orders had begun or ended by then */
	bool kill_used, lapsed;
	int64_t cpu_user_us, cpu_system_us, memory_peak_bytes;
};
