#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/take.h"
#include "exec/tree/proc.h"
#include "exec/rundir.h"
#include "exec/tree/tree.h"

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void ticked(uv_timer_t *timer)
{
	(void)timer;
}

const char *world_place(void)
{
	const char *place = getenv("TMPDIR");

	return place ? place : "/tmp";
}

void world_open_with(struct world *world, const struct host_options *given)
{
	struct host_options options = *given;
	char complaint[HOST_COMPLAINT_BYTES] = "";

	memset(world, 0, sizeof *world);
	options.shim = options.shim ? options.shim : getenv("STINT_SHIM");
	world->child = getenv("STINT_EXEC_CHILD");
	assert_non_null(world->child);
	assert_int_equal(uv_loop_init(&world->loop), 0);
	uv_timer_init(&world->loop, &world->tick);
	uv_timer_start(&world->tick, ticked, 50, 50);
	if (host_open(&world->loop, &options, &world->host, complaint) < 0)
		fail_msg("host_open: %s", complaint);
	snprintf(world->dir, sizeof world->dir, "%s/stint-exec-XXXXXX", world_place());
	assert_non_null(mkdtemp(world->dir));
	world->dir_fd = open(world->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(world->dir_fd >= 0);
	world->grants[0] = (struct grant){.path = world->child, .fd = -1, .access = GRANT_READ};
}

void world_open(struct world *world)
{
	struct host_options options = {.cgroup_unwanted = getenv("STINT_EXEC_NO_CGROUP") != NULL};

	world_open_with(world, &options);
}

void world_close(struct world *world)
{
	const char *name = strrchr(world->dir, '/') + 1;
	char above[128];

	host_close(world->host);
	uv_close((uv_handle_t *)&world->tick, NULL);
	while (uv_run(&world->loop, UV_RUN_DEFAULT))
		;
	assert_int_equal(uv_loop_close(&world->loop), 0);
	close(world->dir_fd);
	snprintf(above, sizeof above, "%.*s", (int)(name - 1 - world->dir), world->dir);
	cleanup(close_at) int fd = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(rundir_remove(fd, name), 0);
}

static void copy_program(const char *from, const char *to)
{
	cleanup(close_at) int source = open(from, O_RDONLY | O_CLOEXEC);
	cleanup(close_at) int target = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	char block[65536];
	ssize_t got;

	assert_true(source >= 0 && target >= 0);
	while ((got = read(source, block, sizeof block)) > 0)
		assert_int_equal(write(target, block, (size_t)got), got);
}

void world_make_rootfs(struct world *world, char *ret_path, size_t room)
{
	static const char *const dirs[] = {"", "/proc", "/dev", "/tmp", "/run", "/bin", "/etc"};
	char path[256];

	snprintf(ret_path, room, "%s/rootfs", world->dir);
	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		snprintf(path, sizeof path, "%.200s%s", ret_path, dirs[i]);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	snprintf(path, sizeof path, "%.200s/bin/child", ret_path);
	copy_program(getenv("STINT_EXEC_CHILD"), path);
	snprintf(path, sizeof path, "%.200s/bin/hostile", ret_path);
	copy_program(getenv("STINT_EXEC_HOSTILE"), path);
}

/* ---- one process -------------------------------------------------------------------------------------------------- */

static void on_started(void *context, struct process *process)
{
	struct running *running = context;

	running->started_ns = now_ns();
	assert_int_equal(running->order, 0);
	running->order = 1;
	running->started = true;
	process_identify(process, &running->identity);
}

static void take_output(struct running *running, enum process_stream stream)
{
	const struct output *output = process_output(running->process, stream);
	struct span part;

	while (!span_is_empty(part = output_unread(output, NULL))) {
		/* What tests look at is short; floods are only counted. */
		buf_put(&running->text[stream], part.data, part.len);
		process_advance(running->process, stream, part.len);
	}
	running->dropped[stream] = output->dropped;
}

static void on_closed(void *context, struct process *process, enum process_stream stream)
{
	struct running *running = context;

	assert_ptr_equal(process, running->process);
	assert_false(running->closed[stream] || running->gone);
	running->closed[stream] = true;
}

static void on_output(void *context, struct process *process, enum process_stream stream)
{
	struct running *running = context;

	assert_ptr_equal(process, running->process);
	if (!running->read_at_end)
		take_output(running, stream);
}

static void on_exited(void *context, struct process *process)
{
	struct running *running = context;

	running->exited_ns = now_ns();
	running->exited_peak_bytes = process_end(process)->memory_peak_bytes;
	assert_int_equal(running->order, 1);
	running->order = 2;
	running->exited = true;
}

static void on_gone(void *context, struct process *process)
{
	struct running *running = context;

	running->gone_ns = now_ns();
	assert_true(running->order < 3);
	running->order = 3;
	running->end = *process_end(process);
	running->process = process;
	take_output(running, STREAM_OUT);
	take_output(running, STREAM_ERR);
	running->gone = true;
	running->process = NULL;
	process_free(process);
}

static const struct process_events events = {
	.started = on_started,
	.output = on_output,
	.closed = on_closed,
	.exited = on_exited,
	.gone = on_gone,
};

struct world shared_world;

int shared_world_open(void **state)
{
	(void)state;
	world_open(&shared_world);
	return 0;
}

int shared_world_close(void **state)
{
	(void)state;
	world_close(&shared_world);
	return 0;
}

struct process_spec world_spec(struct world *world, struct running *running, const char *const *argv)
{
	static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
	static unsigned serial;
	static char runs[65536][40];
	struct process_spec spec = process_spec_default();
	char *run = runs[serial % 65536];

	snprintf(run, sizeof runs[0], "t%d-%u", (int)getpid(), serial++);
	memset(running, 0, sizeof *running);
	running->world = world;
	buf_init(&running->text[STREAM_OUT], 4 << 20);
	buf_init(&running->text[STREAM_ERR], 4 << 20);
	spec.run = run;
	spec.argv = argv;
	spec.env = env;
	spec.workdir_fd = world->dir_fd;
	spec.events = &events;
	spec.context = running;
	spec.confine.grants = world->grants;
	spec.confine.grant_count = 1;
	return spec;
}

void world_start(struct world *world, struct running *running, const struct process_spec *spec)
{
	int fault = process_start(world->host, spec, &running->process);

	if (fault)
		fail_msg("process_start: %s", strerror(-fault));
	process_identify(running->process, &running->identity);
}

void world_run(struct world *world, struct running *running, const char *const *argv)
{
	struct process_spec spec = world_spec(world, running, argv);

	world_start(world, running, &spec);
}

void world_finish(struct world *world, struct running *running, const char *const *argv)
{
	world_run(world, running, argv);
	world_until_gone(running);
}

void world_until(struct world *world, bool (*is_so)(void *context), void *context)
{
	uint64_t deadline = now_ns() + (uint64_t)WORLD_PATIENCE_MS * 1000000u;

	while (!is_so(context)) {
		if (now_ns() > deadline)
			fail_msg("it did not happen within %d ms", WORLD_PATIENCE_MS);
		uv_run(&world->loop, UV_RUN_ONCE);
	}
}

static bool is_gone(void *context)
{
	return ((struct running *)context)->gone;
}

void world_until_gone(struct running *running)
{
	world_until(running->world, is_gone, running);
}

static bool is_started(void *context)
{
	struct running *running = context;

	return running->started || running->gone;
}

void world_until_started(struct running *running)
{
	world_until(running->world, is_started, running);
	assert_true(running->started);
}

struct wanted {
	struct running *running;
	enum process_stream stream;
	const char *text;
};

static bool has_text(void *context)
{
	struct wanted *wanted = context;

	return strstr(running_text(wanted->running, wanted->stream), wanted->text) != NULL;
}

void world_until_text(struct running *running, enum process_stream stream, const char *text)
{
	struct wanted wanted = {running, stream, text};

	world_until(running->world, has_text, &wanted);
}

const char *running_text(struct running *running, enum process_stream stream)
{
	struct buf *text = &running->text[stream];

	assert_int_equal(buf_reserve(text, 1), 0);
	text->data[text->len] = 0;
	return text->data;
}

void running_done(struct running *running)
{
	buf_done(&running->text[STREAM_OUT]);
	buf_done(&running->text[STREAM_ERR]);
}

/* ---- what is left ------------------------------------------------------------------------------------------------- */

uint32_t marked(const char *run)
{
	char entry[128];

	snprintf(entry, sizeof entry, PROCESS_MARKER "=%s", run);
	return tree_signal_marked(entry, 0);
}

void assert_nothing_left_of(struct running *running)
{
	assert_int_equal(marked(running->identity.run), 0);
	if (running->identity.cgroup[0])
		assert_int_equal(access(running->identity.cgroup, F_OK), -1);
}

void assert_nothing_left(struct running *running)
{
	siginfo_t info = {0};

	assert_nothing_left_of(running);
	assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT), -1);
	assert_int_equal(errno, ECHILD);
}
