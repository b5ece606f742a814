/*
 * A supervisor to be killed: exec-supervisor MODE... starts the helper once for each mode (MODE:ARGUMENT), prints what a
 * successor would have written down, one line for each, and waits. With --asleep every shim sleeps before it has begun
 * (late_shim.c); with --finishing each may finish, and holds the lock of $TMPDIR/held; with --leased each is under
 * a lease, which is pushed all the time, and when all are gone a line for each says whether its shim had ended it for that.
 * STINT_EXEC_LEVEL puts each behind a wall, STINT_EXEC_OWN_CGROUP (a file cgroup.procs) itself into a cgroup. Ends by itself after fifteen minutes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/wall/wall.h"
#include "world.h"

enum {
	MODES_MAX = 64,
	LEASE_MS = 500,
	PUSH_MS = 50,
	GRACE_MS = 100,
};

static void tell(const struct process_identity *identity)
{
	printf("%s %s %d %" PRIu64 " %d %" PRIu64 " %s\n", identity->run, identity->boot, (int)identity->shim,
		identity->shim_start, (int)identity->main, identity->main_start,
		identity->cgroup[0] ? identity->cgroup : "-");
	fflush(stdout);
}

static bool never(void *context)
{
	(void)context;
	return false;
}

/* Each has a run dir of its own; a container's helper is in its rootfs. */
static void run_walled(
	struct world *world, struct running *running, int level, const char *mode, const char *argument)
{
	static char rootfs[200];
	static int serial;
	char run_path[200];
	struct wall wall = {.level = (enum wall_level)level, .rootfs = rootfs, .run_path = run_path};
	const char *argv[] = {level == WALL_CONTAINER ? "/bin/child" : world->child, mode, argument, NULL};
	struct process_spec spec = world_spec(world, running, argv);

	if (!rootfs[0])
		world_make_rootfs(world, rootfs, sizeof rootfs);
	snprintf(run_path, sizeof run_path, "%s/run-%d", world->dir, serial++);
	assert_int_equal(mkdir(run_path, 0700), 0);
	world->grants[0].optional = true;
	spec.wall = &wall;
	world_start(world, running, &spec);
}

static int held(void)
{
	char path[200];

	snprintf(path, sizeof path, "%s/held", getenv("TMPDIR"));
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	return fd;
}

static void run_finishing(struct world *world, struct running *running, const char *const *argv)
{
	struct process_spec spec = world_spec(world, running, argv);

	spec.finishes = true;
	spec.hold_fds[0] = held();
	world_start(world, running, &spec);
	close(spec.hold_fds[0]);
}

static void push(struct running *running)
{
	for (int i = 0; i < MODES_MAX; i++) {
		struct process_lease lease = {
			.until_ms = clock_ms(CLOCK_BOOTTIME) + LEASE_MS, .grace_ms = GRACE_MS};
		if (running[i].world && !running[i].gone)
			process_lease(running[i].process, &lease);
	}
}

static void push_again(uv_timer_t *timer)
{
	push(timer->data);
}

/* Until its own shims have ended all. */
static int push_all(struct world *world, struct running *running, int count)
{
	uv_timer_t timer = {.data = running};

	uv_timer_init(&world->loop, &timer);
	uv_timer_start(&timer, push_again, 0, PUSH_MS);
	for (int i = 1; i < count; i++)
		world_until_gone(&running[i]);
	for (int i = 1; i < count; i++)
		printf("%s %s\n", running[i].identity.run, running[i].end.lapsed ? "lapsed" : "ended");
	fflush(stdout);
	return 0;
}

static int run(int count, char **modes)
{
	const char *level = getenv("STINT_EXEC_LEVEL");
	static struct running running[MODES_MAX];
	static struct world world;

	bool asleep = count > 0 && strcmp(modes[0], "--asleep") == 0;
	bool finishing = count > 0 && strcmp(modes[0], "--finishing") == 0;
	bool leased = count > 0 && strcmp(modes[0], "--leased") == 0;

	if (getenv("STINT_EXEC_OWN_CGROUP")) {
		FILE *procs = fopen(getenv("STINT_EXEC_OWN_CGROUP"), "we");
		assert_non_null(procs);
		fprintf(procs, "0");
		assert_int_equal(fclose(procs), 0);
	}
	struct host_options options = {.shim = asleep ? getenv("STINT_EXEC_LATE_SHIM") : NULL,
		.cgroup_unwanted = getenv("STINT_EXEC_NO_CGROUP") != NULL};
	world_open_with(&world, &options);
	for (int i = asleep || finishing || leased; i < count && i < MODES_MAX; i++) {
		char *argument = strchr(modes[i], ':');
		if (argument)
			*argument++ = 0;
		if (level)
			run_walled(&world, &running[i], wall_level_find(level), modes[i], argument);
		else if (finishing)
			run_finishing(&world, &running[i], CHILD(&world, modes[i], argument));
		else
			world_run(&world, &running[i], CHILD(&world, modes[i], argument));
		if (asleep)
			assert_int_equal(waitid(P_PID, (id_t)running[i].identity.shim, &(siginfo_t){0},
						 WSTOPPED | WNOWAIT),
				0);
		else
			world_until_text(&running[i], STREAM_OUT, "ready");
		tell(&running[i].identity);
	}
	if (leased)
		push(running);
	printf("all\n");
	fflush(stdout);
	if (leased)
		return push_all(&world, running, count);
	if (asleep)
		poll(NULL, 0, 3 * WORLD_PATIENCE_MS);
	for (int i = 0; i < 3; i++)
		world_until(&world, never, NULL);
	return 1;
}

int main(int argc, char **argv)
{
	return run(argc - 1, argv + 1);
}
