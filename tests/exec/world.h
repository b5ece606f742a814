/*
 * A loop, a host and a private directory for tests with real processes, and one record per process that notes what
 * happened to it. Nothing here sleeps: world_until() runs the loop until something is so, or fails after a deadline.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "exec/host.h"
#include "exec/process.h"

enum {
	WORLD_PATIENCE_MS = 300000, /* ends a hang and judges nothing */
	WORLD_ARGS_MAX = 32,
};

struct world {
	uv_loop_t loop;
	uv_timer_t tick; /* so that a deadline is noticed */
	struct host *host;
	char dir[128]; /* private; holds the work dirs */
	int dir_fd;
	const char *child; /* the helper program */
	struct grant grants[4];
};

struct running {
	struct world *world;
	struct process *process; /* NULL after gone */
	struct process_identity identity;
	bool started, exited, gone, closed[2];
	int order; /* 1 started, 2 exited, 3 gone: events came in this order */
	struct buf text[2];
	uint64_t dropped[2];
	struct process_end end;
	bool read_at_end;          /* leaves the output where it is until then */
	int64_t exited_peak_bytes; /* as told at its exit */
	uint64_t started_ns, exited_ns, gone_ns;
};

/* Where a world's directory is made: beneath TMPDIR, which need not be /tmp. */
const char *world_place(void);

/* Both skip or fail the test themselves. */
void world_open(struct world *world);
void world_open_with(struct world *world, const struct host_options *options);
void world_close(struct world *world);

/* One for all tests of a program: its set-up and tear-down as a group. */
extern struct world shared_world;
int shared_world_open(void **state);
int shared_world_close(void **state);

/* A directory for containers with the smallest system there is: /bin/child and /bin/hostile, which need nothing. */
void world_make_rootfs(struct world *world, char *ret_path, size_t room);

/* The helper with these arguments, NULL at the end. */
#define CHILD(world, ...) ((const char *const[]){(world)->child, __VA_ARGS__, NULL})

/* A spec as tests want it: argv, a fresh run, the private directory to work in, PATH. */
struct process_spec world_spec(struct world *world, struct running *running, const char *const *argv);

/* Start with it; fails the test if it cannot. */
void world_start(struct world *world, struct running *running, const struct process_spec *spec);
void world_run(struct world *world, struct running *running, const char *const *argv);

/* Start, and wait until it is gone. */
void world_finish(struct world *world, struct running *running, const char *const *argv);

/* Run the loop until it is so. */
void world_until(struct world *world, bool (*is_so)(void *context), void *context);
void world_until_gone(struct running *running);
void world_until_text(struct running *running, enum process_stream stream, const char *text);
void world_until_started(struct running *running);

void running_done(struct running *running);
const char *running_text(struct running *running, enum process_stream stream);

/* How many processes carry the marker of this run. */
uint32_t marked(const char *run);
/* No process of the run is left, nor its cgroup. */
void assert_nothing_left_of(struct running *running);
/* Nor any child of ours. */
void assert_nothing_left(struct running *running);
uint64_t now_ns(void);
