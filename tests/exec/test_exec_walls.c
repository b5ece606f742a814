/*
 * A hostile child behind a wall: test_exec_walls sandbox|container [RUNTIME]. docs/isolation.md has a line for each of these, and
 * each test runs at both levels; STINT_EXEC_TESTS says which, by a pattern. Where the machine cannot make the wall the test is skipped, and says why.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/take.h"
#include "exec/cgroup_place.h"
#include "exec/request/confine.h"
#include "exec/tree/proc.h"
#include "exec/request/request.h"
#include "exec/wall/wall.h"
#include "exec/wall/plan.h"
#include "scene.h"
#include "../skip.h"

/* With the server's socket; the sibling is behind a wall of its own. */
static struct scene scene;
static struct wall wall, sibling_wall;
static char rootfs[200], socket_path[sizeof(((struct sockaddr_un *)0)->sun_path)];
static int listener, tcp, port;
static const char *child, *hostile;
static struct cgroup_place place;

/* ---- the world ------------------------------------------------------------------------------------------------------ */

static void listen_here(void)
{
	struct sockaddr_un unix_address = {.sun_family = AF_UNIX};
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof address;

	assert_true(snprintf(socket_path, sizeof socket_path, "%.90s/stint.sock", scene.own) > 0);
	memcpy(unix_address.sun_path, socket_path, sizeof socket_path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&unix_address, sizeof unix_address), 0);
	assert_int_equal(listen(listener, 64), 0);
	tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(tcp, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(tcp, 64), 0);
	assert_int_equal(getsockname(tcp, (struct sockaddr *)&address, &len), 0);
	port = ntohs(address.sin_port);
}

static struct process_spec walled_spec(struct running *running, const char *const *argv)
{
	struct process_spec spec = world_spec(&scene.world, running, argv);

	spec.workdir_fd = scene.own_fd;
	spec.wall = &wall;
	spec.confine.keep_out = scene.home;
	scene.world.grants[0] = (struct grant){
		.path = getenv("STINT_EXEC_CHILD"), .fd = -1, .access = GRANT_READ, .optional = true};
	scene.world.grants[1] = (struct grant){
		.path = getenv("STINT_EXEC_HOSTILE"), .fd = -1, .access = GRANT_READ, .optional = true};
	scene.world.grants[2] = (struct grant){.path = scene.own, .fd = -1, .access = GRANT_READ};
	spec.confine.grant_count = 3;
	return spec;
}

static void start_sibling(void)
{
	struct process_spec spec = walled_spec(&scene.sibling, (const char *const[]){child, "hang", NULL});

	sibling_wall = wall;
	sibling_wall.run_path = scene.beside;
	spec.wall = &sibling_wall;
	spec.workdir_fd = scene.sibling_fd;
	scene.world.grants[2] = (struct grant){.path = scene.beside, .fd = -1, .access = GRANT_READ};
	world_start(&scene.world, &scene.sibling, &spec);
	world_until_text(&scene.sibling, STREAM_OUT, "ready");
}

/* With all that this machine can bound; on the second version of cgroups that must be said when the host is opened. */
static void open_bounded(void)
{
	struct host_options options = {.cgroup_unwanted = getenv("STINT_EXEC_NO_CGROUP") != NULL};

	cgroup_look(&place);
	for (int bound = 0; bound < BOUND_COUNT && !options.cgroup_unwanted; bound++)
		options.bounds |= place.bounds[bound][0] ? 1u << bound : 0;
	scene_open(&scene, &options);
	cgroup_look(&place);
}

static int open_scene(void **state)
{
	(void)state;
	open_bounded();
	world_make_rootfs(&scene.world, rootfs, sizeof rootfs);
	listen_here();
	wall.run_path = scene.own;
	wall.socket = socket_path;
	wall.rootfs = rootfs;
	child = wall.level == WALL_CONTAINER ? "/bin/child" : getenv("STINT_EXEC_CHILD");
	hostile = wall.level == WALL_CONTAINER ? "/bin/hostile" : getenv("STINT_EXEC_HOSTILE");
	start_sibling();
	return 0;
}

static int close_scene(void **state)
{
	(void)state;
	close(listener);
	close(tcp);
	scene_close(&scene);
	return 0;
}

static void run(struct running *running, const char *const *argv)
{
	struct process_spec spec = walled_spec(running, argv);

	world_start(&scene.world, running, &spec);
	world_until_gone(running);
}

/* The two walls stop it in different ways: any of the words will do. */
static void attempt(const char *expected, const char *name, const char *first, const char *second)
{
	scene_attempt(
		&scene, walled_spec, (const char *const[]){hostile, name, first, second, NULL}, expected);
}

/* ---- it is a process like any other ------------------------------------------------------------------------------- */

static void how_it_ended_is_told_exactly(void **state)
{
	struct running running;

	(void)state;
	run(&running, (const char *const[]){child, "exit", "7", NULL});
	assert_int_equal(running.end.how, ENDED_EXIT);
	assert_int_equal(running.end.code, 7);
	assert_int_equal(running.end.strays, 0);
	assert_false(running.end.kill_used);
	assert_nothing_left_of(&running);
	running_done(&running);
	run(&running, (const char *const[]){child, "signal", "11", NULL});
	assert_int_equal(running.end.how, ENDED_SIGNAL);
	assert_int_equal(running.end.code, SIGSEGV);
	running_done(&running);
}

static void what_cannot_be_executed_is_told_and_why(void **state)
{
	struct running running;

	(void)state;
	run(&running, (const char *const[]){"/no/such/program", NULL});
	assert_int_equal(running.end.how, ENDED_UNSTARTED);
	assert_int_equal(running.end.fault.step, START_EXEC);
	assert_int_equal(running.end.fault.error, ENOENT);
	assert_string_equal(running.end.fault.detail, "/no/such/program");
	assert_nothing_left_of(&running);
	running_done(&running);
}

static void it_gets_its_input_and_nothing_else_of_ours(void **state)
{
	struct running running;
	struct process_spec spec = walled_spec(&running, (const char *const[]){child, "copy", NULL});

	(void)state;
	spec.stdin_from = STDIN_BYTES;
	spec.input = SPAN("the task");
	world_start(&scene.world, &running, &spec);
	world_until_gone(&running);
	assert_string_equal(running_text(&running, STREAM_OUT), "the task");
	running_done(&running);
	run(&running, (const char *const[]){child, "descriptors", NULL});
	assert_string_equal(running_text(&running, STREAM_OUT), "0 1 2 \n");
	running_done(&running);
	run(&running, (const char *const[]){child, "env", NULL});
	assert_non_null(strstr(running_text(&running, STREAM_OUT), "PATH=/usr/bin:/bin\n"));
	assert_null(strstr(running_text(&running, STREAM_OUT), "STINT_SHIM"));
	running_done(&running);
}

static void signals_session_umask_and_directory_are_fresh(void **state)
{
	char inside[256], expected[400];
	struct running running;

	(void)state;
	run(&running, (const char *const[]){child, "state", NULL});
	assert_int_equal(wall_workdir_name(&wall, scene.own, inside, sizeof inside), 0);
	snprintf(expected, sizeof expected, "blocked=0 ignored=0 umask=077 leader=1 nnp=1 cwd=%s\n", inside);
	assert_string_equal(running_text(&running, STREAM_OUT), expected);
	running_done(&running);
}

static void a_stop_is_term_with_its_grace(void **state)
{
	struct running running;
	struct process_spec spec = walled_spec(&running, (const char *const[]){child, "polite", NULL});

	(void)state;
	world_start(&scene.world, &running, &spec);
	world_until_text(&running, STREAM_OUT, "ready");
	process_stop(running.process, WORLD_PATIENCE_MS);
	world_until_gone(&running);
	assert_int_equal(running.end.how, ENDED_EXIT);
	assert_int_equal(running.end.code, 41);
	assert_false(running.end.kill_used);
	running_done(&running);
	spec = walled_spec(&running, (const char *const[]){child, "deaf", NULL});
	world_start(&scene.world, &running, &spec);
	world_until_text(&running, STREAM_OUT, "ready");
	process_stop(running.process, 50);
	world_until_gone(&running);
	assert_int_equal(running.end.how, ENDED_SIGNAL);
	assert_int_equal(running.end.code, SIGKILL);
	assert_nothing_left_of(&running);
	running_done(&running);
}

/* Often enough that one of them comes while the wall is made. */
static void a_stop_that_comes_before_it_waits_for_it(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		struct running running;
		struct process_spec spec =
			walled_spec(&running, (const char *const[]){child, "polite", NULL});
		world_start(&scene.world, &running, &spec);
		process_stop(running.process, WORLD_PATIENCE_MS);
		world_until_gone(&running);
		/* it may not have come as far as to handle it */
		assert_true((running.end.how == ENDED_EXIT && running.end.code == 41) ||
			(running.end.how == ENDED_SIGNAL && running.end.code == SIGTERM));
		assert_false(running.end.kill_used);
		assert_nothing_left_of(&running);
		running_done(&running);
	}
}

/* It exits on TERM, or is the one whom the kernel takes when memory is short. */
static void podman_may_go_before_the_program(void **state)
{
	struct running running;
	struct process_spec spec = walled_spec(&running, (const char *const[]){child, "polite", NULL});

	(void)state;
	if (!wall.runtime || strcmp(wall.runtime, "podman") != 0)
		return;
	world_start(&scene.world, &running, &spec);
	world_until_text(&running, STREAM_OUT, "ready");
	world_until_started(&running);
	assert_true(running.identity.main > 1);
	assert_int_equal(kill(running.identity.main, SIGKILL), 0);
	process_stop(running.process, WORLD_PATIENCE_MS);
	world_until_gone(&running);
	assert_int_equal(running.end.how, ENDED_EXIT);
	assert_int_equal(running.end.code, 41);
	assert_false(running.end.kill_used);
	assert_nothing_left_of(&running);
	running_done(&running);
}

/* Where exec/wall/short_link.h has its links. */
static const char *ways(const char *name)
{
	static char path[256];
	const char *own = getenv("XDG_RUNTIME_DIR");

	snprintf(path, sizeof path, "%.100s/%s", own ? own : "/tmp", name);
	return path;
}

static bool no_way_leads_there(void *context)
{
	glob_t found = {0};
	char target[256];
	bool is_so = true;

	glob(ways("stint-way-*"), 0, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		ssize_t len = readlink(found.gl_pathv[i], target, sizeof target - 1);
		target[len > 0 ? len : 0] = 0;
		is_so = is_so && strncmp(target, context, strlen(context)) != 0;
	}
	globfree(&found);
	return is_so;
}

/* podman takes no long path, and gets a link, which is there no longer than the program. */
static void its_run_dir_may_have_a_long_path(void **state)
{
	struct wall far_wall = wall;
	struct running running;
	struct process_spec spec = walled_spec(&running, (const char *const[]){child, "exit", "7", NULL});
	char path[256], left[32];

	(void)state;
	snprintf(path, sizeof path, "%.150s/whose-path-alone-has-more-than-fifty-characters-here", scene.own);
	assert_int_equal(mkdir(path, 0700), 0);
	far_wall.run_path = path;
	spec.wall = &far_wall;
	snprintf(left, sizeof left, "stint-way-%d", (int)getpid());
	assert_int_equal(symlink("/of/somebody/who/was/killed", ways(left)), 0);
	world_start(&scene.world, &running, &spec);
	world_until_gone(&running);
	assert_int_equal(running.end.how, ENDED_EXIT);
	assert_int_equal(running.end.code, 7);
	assert_nothing_left_of(&running);
	running_done(&running);
	world_until(&scene.world, no_way_leads_there, path);
	assert_int_equal(unlink(ways(left)), wall_is_podman(wall.runtime) ? -1 : 0);
}

static void daemons_are_ended_with_it(void **state)
{
	struct running running;

	(void)state;
	run(&running, (const char *const[]){child, "daemon", "3", NULL});
	assert_int_equal(running.end.how, ENDED_EXIT);
	assert_int_equal(running.end.code, 3);
	assert_int_equal(running.end.strays, 3);
	assert_nothing_left_of(&running);
	running_done(&running);
	run(&running, (const char *const[]){child, "daemon", "2", "deaf", NULL});
	assert_int_equal(running.end.code, 3);
	assert_true(running.end.kill_used);
	assert_nothing_left_of(&running);
	running_done(&running);
}

static void a_killed_shim_leaves_nothing(void **state)
{
	struct running running;
	struct process_spec spec = walled_spec(&running, (const char *const[]){child, "deaf", NULL});

	(void)state;
	world_start(&scene.world, &running, &spec);
	world_until_text(&running, STREAM_OUT, "ready");
	assert_int_equal(kill(running.identity.shim, SIGKILL), 0);
	world_until_gone(&running);
	assert_int_equal(running.end.how, ENDED_LOST);
	assert_nothing_left_of(&running);
	running_done(&running);
}

/* What the wall is made of is killed: nobody is left who was behind it. */
static void a_killed_wall_leaves_nothing(void **state)
{
	struct running running;
	struct process_spec spec = walled_spec(&running, (const char *const[]){child, "deaf", NULL});

	(void)state;
	if (wall_is_podman(wall.runtime))
		return; /* podman_may_go_before_the_program */
	world_start(&scene.world, &running, &spec);
	world_until_text(&running, STREAM_OUT, "ready");
	world_until_started(&running);
	assert_int_equal(kill(running.identity.main, SIGKILL), 0);
	world_until_gone(&running);
	assert_int_equal(running.end.how, ENDED_SIGNAL);
	assert_int_equal(running.end.code, SIGKILL);
	assert_nothing_left_of(&running);
	running_done(&running);
}

/* ---- files ---------------------------------------------------------------------------------------------------------- */

static void its_own_directory_is_its_own(void **state)
{
	(void)state;
	attempt("done", "write", "file", NULL);
	attempt("done", "read", "file", NULL);
	attempt("done", "read", "token", NULL);
	attempt("done", "rename", "file", NULL);
	assert_int_equal(faccessat(scene.own_fd, "renamed", F_OK, 0), 0);
	attempt("done", "remove", "renamed", NULL);
	attempt("done", "write", "/dev/null", NULL);
}

static void the_system_cannot_be_changed(void **state)
{
	(void)state;
	attempt("EACCES EROFS", "write", "/etc/stint-test", NULL);
	attempt("EACCES EROFS", "write", "/bin/stint-test", NULL);
	attempt("EACCES EROFS", "write", "/stint-test", NULL);
	attempt("EACCES EROFS", "write", "/run/stint/new", NULL);
	attempt("EACCES EROFS", "write", "/proc/self/oom_score_adj", NULL);
	attempt("EACCES EROFS", "write", "/proc/sys/kernel/hostname", NULL);
	attempt("EACCES EPERM", "device", "64768", NULL);
}

static int count_entries(const char *directory)
{
	char path[256];
	int count = 0;

	snprintf(path, sizeof path, "%s/%s", rootfs, directory);
	DIR *dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* Who makes the wall leaves nothing there, either; and podman no locks outside of the run dir. */
static void the_rootfs_stays_as_it_was(void **state)
{
	int root = count_entries("."), dev = count_entries("dev"), run_ = count_entries("run"),
	    locks = access("/dev/shm/libpod_lock", F_OK);

	(void)state;
	attempt("done", "write", "/dev/null", NULL);
	assert_int_equal(count_entries("."), root);
	assert_int_equal(count_entries("dev"), dev);
	assert_int_equal(count_entries("run"), run_);
	assert_int_equal(access("/dev/shm/libpod_lock", F_OK), locks);
}

/* A place that the rootfs does not have is not made there for the grant. */
static void a_grant_that_has_no_place_in_the_rootfs_is_refused(void **state)
{
	struct process *process = NULL;
	struct running running;
	struct process_spec spec = walled_spec(&running, (const char *const[]){child, "exit", "0", NULL});
	int before = count_entries(".");

	(void)state;
	if (wall.level != WALL_CONTAINER)
		return;
	scene.world.grants[3] = (struct grant){.path = "/usr/share", .fd = -1, .access = GRANT_READ};
	spec.confine.grant_count = 4;
	assert_int_equal(process_start(scene.world.host, &spec, &process), -ENOENT);
	assert_int_equal(count_entries("."), before);
}

static void its_tmp_is_private_and_ends_with_it(void **state)
{
	char path[] = "/tmp/stint-walls-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	attempt("ENOENT", "read", path, NULL);
	assert_int_equal(unlink(path), 0);
	attempt("done", "write", path, NULL);
	assert_int_equal(access(path, F_OK), -1);
	attempt("ENOENT", "read", path, NULL);
	attempt("done", "write", "/dev/shm/stint-walls", NULL);
	assert_int_equal(access("/dev/shm/stint-walls", F_OK), -1);
}

/* What lies there is memory: no more of it than the manual says. */
static void its_tmp_has_a_size(void **state)
{
	(void)state;
	attempt("ENOSPC", "spread", "/tmp/large", "280000000");
	attempt("ENOSPC", "spread", "/dev/shm/large", "70000000");
}

/* Shared memory has no path, and is found by its number. */
static void its_shared_memory_is_private(void **state)
{
	int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);

	(void)state;
	assert_true(id >= 0);
	attempt("EINVAL EIDRM", "shared", number(id), NULL);
	assert_int_equal(shmctl(id, IPC_RMID, NULL), 0);
}

static void the_state_directory_does_not_exist(void **state)
{
	(void)state;
	attempt("ENOENT", "read", in_home(&scene, "stint.db"), NULL);
	attempt("ENOENT", "read", in_home(&scene, "admin.token"), NULL);
	attempt("ENOENT", "read", "../admin.token", NULL);
	attempt("ENOENT", "truncate", in_home(&scene, "stint.db"), NULL);
	/* Where the tests' home lies in /tmp, /tmp is the sandbox's own; elsewhere a path to a grant may lead by. */
	attempt("ENOENT EROFS", "remove", in_home(&scene, "admin.token"), NULL);
	attempt("ENOENT EACCES EROFS done", "write", in_home(&scene, "new"), NULL);
	assert_int_equal(faccessat(scene.home_fd, "new", F_OK, 0), -1);
	attempt("ENOENT", "link", in_home(&scene, "admin.token"), NULL);
	attempt("ENOENT", "race", in_home(&scene, "admin.token"), NULL);
	attempt("ENOENT", "hard link", in_home(&scene, "admin.token"), NULL);
	attempt("ENOENT EACCES", "proc", "1", "root/../admin.token");
	assert_int_equal(faccessat(scene.home_fd, "admin.token", F_OK, 0), 0);
}

/* Of this machine: what every program needs, in a sandbox, and nothing more. */
static void nothing_else_of_the_machine_is_there(void **state)
{
	const char *const missing[] = {"/home", "/root", "/var", "/srv", "/sys/class", "/sys/fs", "/boot"};

	(void)state;
	for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
		attempt("ENOENT", "list", missing[i], NULL);
	attempt(wall.level == WALL_SANDBOX ? "done" : "ENOENT", "read", "/etc/passwd", NULL);
}

static void what_belongs_to_a_sibling_does_not_exist(void **state)
{
	(void)state;
	attempt("ENOENT", "read", in_home(&scene, "sibling/token"), NULL);
	attempt("ENOENT", "read", "../sibling/token", NULL);
	attempt("ENOENT", "list", in_home(&scene, "sibling"), NULL);
	attempt("ENOENT EACCES EROFS", "write", in_home(&scene, "sibling/token"), NULL);
}

static void a_grant_that_opens_the_state_directory_is_refused(void **state)
{
	const char *const bad[] = {scene.home, scene.world.dir, world_place(), "/"};
	struct process *process = NULL;
	struct running running;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct process_spec spec =
			walled_spec(&running, (const char *const[]){child, "exit", "0", NULL});
		scene.world.grants[3] = (struct grant){.path = bad[i], .fd = -1, .access = GRANT_READ};
		spec.confine.grant_count = 4;
		assert_int_equal(process_start(scene.world.host, &spec, &process), -EXDEV);
		spec = walled_spec(&running, (const char *const[]){child, "exit", "0", NULL});
		spec.workdir_fd = scene.home_fd;
		assert_int_equal(process_start(scene.world.host, &spec, &process), -EXDEV);
	}
	assert_null(process);
}

static void a_grant_of_others_leads_neither_there_nor_through_a_link(void **state)
{
	struct process *process = NULL;
	struct running running;
	char link[300];

	(void)state;
	struct process_spec spec = walled_spec(&running, (const char *const[]){child, "exit", "0", NULL});
	spec.confine.grant_count = 4;
	scene.world.grants[3] = (struct grant){
		.path = in_home(&scene, "sibling"), .fd = -1, .access = GRANT_READ, .outside = true};
	assert_int_equal(process_start(scene.world.host, &spec, &process), -EXDEV);
	snprintf(link, sizeof link, "%s/swapped", scene.world.dir);
	assert_int_equal(symlink("/usr", link), 0);
	scene.world.grants[3] = (struct grant){.path = link, .fd = -1, .access = GRANT_READ, .direct = true};
	assert_int_equal(process_start(scene.world.host, &spec, &process), -ELOOP);
	unlink(link);
	assert_null(process);
}

/* What is shown besides the grants counts as much: the system of a sandbox, the rootfs of a container. */
static void a_system_that_holds_the_state_directory_is_refused(void **state)
{
	const char *const bad[] = {scene.home, scene.world.dir, "/"};
	struct process *process = NULL;
	struct running running;
	struct process_spec spec = walled_spec(&running, (const char *const[]){child, "exit", "0", NULL});

	(void)state;
	if (wall.level == WALL_SANDBOX) {
		spec.confine.keep_out = "/usr/lib";
		assert_int_equal(process_start(scene.world.host, &spec, &process), -EXDEV);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad && wall.level == WALL_CONTAINER; i++) {
		wall.rootfs = bad[i];
		assert_int_equal(process_start(scene.world.host, &spec, &process), -EXDEV);
	}
	wall.rootfs = rootfs;
	assert_null(process);
}

/* ---- processes ------------------------------------------------------------------------------------------------------ */

static void nobody_else_is_there(void **state)
{
	const pid_t targets[] = {scene.sibling.identity.main, scene.sibling.identity.shim, getpid()};

	(void)state;
	attempt("ESRCH", "others", NULL, NULL);
	for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
		attempt("ESRCH", "signal", number(targets[i]), "9");
		attempt("ESRCH", "pidfd", number(targets[i]), NULL);
		attempt("EPERM", "trace", number(targets[i]), NULL);
		attempt("EPERM", "memory", number(targets[i]), NULL);
		attempt("EPERM", "limit", number(targets[i]), NULL);
		attempt("ENOENT", "proc", number(targets[i]), "cmdline");
	}
	assert_int_equal(marked(scene.sibling.identity.run) > 0, 1);
}

/* The first process inside is ours: it holds what was passed in, and tells how the program ended. */
static void the_first_process_is_out_of_reach(void **state)
{
	(void)state;
	attempt("EPERM EACCES", "proc", "1", "mem");
	attempt("EPERM EACCES", "proc", "1", "environ");
	attempt("EPERM EACCES ENOENT", "proc", "1", "fd/3");
	attempt("EPERM", "trace", "1", NULL);
	attempt("EPERM done", "signal", "1", "9"); /* before Linux 6.12 it is sent, and the kernel drops it */
}

/* Those of its user are not there: what is typed into them could be read. */
static void its_terminals_are_its_own(void **state)
{
	cleanup(close_at) int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	char name[64];

	(void)state;
	if (terminal < 0)
		skip_because("there is no terminal: %s", strerror(errno));
	assert_int_equal(ptsname_r(terminal, name, sizeof name), 0);
	attempt("ENOENT", "list", name, NULL); /* it is no directory, but that is another error */
}

/* ---- the network ---------------------------------------------------------------------------------------------------- */

static void there_is_no_network_unless_it_is_granted(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int len = snprintf(address.sun_path + 1, 64, "stint-walls-%d", (int)getpid());

	(void)state;
	cleanup(close_at) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address,
				 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)),
		0);
	assert_int_equal(listen(fd, 1), 0);
	attempt("ECONNREFUSED ENETUNREACH", "tcp", number(port), NULL);
	attempt("ECONNREFUSED EPERM", "abstract", address.sun_path + 1, NULL);
	attempt("EPERM", "socket", number(AF_VSOCK), NULL);
	wall.network = true;
	attempt("done", "tcp", number(port), NULL);
	attempt("done EAFNOSUPPORT", "socket", number(AF_VSOCK), NULL);
	if (landlock_abi() >= 6)
		attempt("EPERM", "abstract", address.sun_path + 1, NULL);
	wall.network = false;
}

static void the_socket_of_its_run_dir_is_the_one_way_out(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char inside[256];

	(void)state;
	snprintf(address.sun_path, sizeof address.sun_path, "%.90s/stint.sock", scene.home);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(fd, 64), 0);
	assert_int_equal(wall_name(&wall, socket_path, inside, sizeof inside), 0);
	attempt("done", "unix", inside, NULL);
	attempt("ENOENT", "unix", address.sun_path, NULL);
	close(fd);
	unlink(address.sun_path);
}

static void a_socket_whose_path_is_too_long_for_an_address_has_a_short_one_inside(void **state)
{
	char dir[400], path[420], inside[256];

	(void)state;
	if (wall.level != WALL_SANDBOX)
		skip();
	snprintf(dir, sizeof dir, "%s/%0120d", scene.own, 0);
	snprintf(path, sizeof path, "%s/stint.sock", dir);
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(link(socket_path, path), 0);
	wall.socket = path;
	assert_int_equal(wall_name(&wall, path, inside, sizeof inside), 0);
	attempt("done", "unix", inside, NULL);
	wall.socket = socket_path;
}

/* ---- the kernel ----------------------------------------------------------------------------------------------------- */

static void system_calls_that_change_the_machine_do_not_exist(void **state)
{
	static const int calls[] = {SYS_ptrace, SYS_process_vm_readv, SYS_pidfd_getfd, SYS_mount, SYS_umount2,
		SYS_pivot_root, SYS_chroot, SYS_setns, SYS_unshare, SYS_init_module, SYS_bpf,
		SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup, SYS_open_by_handle_at, SYS_keyctl,
		SYS_reboot, SYS_sethostname, SYS_clock_settime, SYS_syslog};

	(void)state;
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		attempt("EPERM", "call", number(calls[i]), NULL);
	attempt("EPERM", "namespace", NULL, NULL);
	attempt("EPERM", "type", NULL, NULL);
}

/* Can this machine bound it? */
static bool is_bounded(enum bound bound)
{
	if (place.bounds[bound][0] && !place.closed[bound])
		return true;
	print_message("skipped: %s\n", place.why_not[bound]);
	return false;
}

static void limits_are_the_same(void **state)
{
	struct running running;

	(void)state;
	attempt("EFBIG", "fill", "2000000000", NULL);
	run(&running, (const char *const[]){child, "limits", NULL});
	assert_string_equal(running_text(&running, STREAM_OUT), "files=1024 core=0 file=1073741824\n");
	running_done(&running);
}

static void it_has_no_privileges(void **state)
{
	(void)state;
	attempt("EPERM", "capability", "-1", NULL);
}

static void memory_is_bounded(void **state)
{
	struct running running;
	struct process_spec spec =
		walled_spec(&running, (const char *const[]){hostile, "touch", "300000000", NULL});

	(void)state;
	if (!is_bounded(BOUND_MEMORY))
		skip();
	spec.confine.limits.memory_bytes = 64 << 20;
	world_start(&scene.world, &running, &spec);
	world_until_gone(&running);
	assert_string_equal(running_text(&running, STREAM_OUT), "");
	assert_int_equal(running.end.how, ENDED_SIGNAL);
	assert_int_equal(running.end.spent, SPENT_MEMORY);
	assert_nothing_left_of(&running);
	running_done(&running);
}

/* What the wall itself is made of counts, too: a handful. */
static void processes_are_bounded(void **state)
{
	struct running running;
	struct process_spec spec =
		walled_spec(&running, (const char *const[]){hostile, "forks", "100", NULL});

	(void)state;
	if (!is_bounded(BOUND_PIDS))
		skip();
	spec.confine.limits.tasks = 40;
	world_start(&scene.world, &running, &spec);
	world_until_gone(&running);
	assert_string_equal(running_text(&running, STREAM_OUT), "EAGAIN");
	assert_nothing_left_of(&running);
	running_done(&running);
}

static void processor_time_is_bounded(void **state)
{
	struct running running;
	struct process_spec spec = walled_spec(&running, (const char *const[]){child, "spin", "1", NULL});

	(void)state;
	spec.confine.limits.cpu_us = 100000;
	world_start(&scene.world, &running, &spec);
	world_until_gone(&running);
	assert_int_equal(running.end.spent, SPENT_CPU);
	running_done(&running);
}

/* ---- what is not as it should be ------------------------------------------------------------------------------------ */

/* Somebody swapped what a path leads to after it was opened: who is inside sees it, and starts nothing. */
static void a_path_that_leads_elsewhere_starts_nothing(void **state)
{
	const char *argv[] = {child, "exit", "0", NULL}, *env[] = {"STINT_RUN=swapped", NULL};
	const char *const maker[] = {"bwrap", NULL};
	const char *const swapped[] = {scene.beside, NULL};
	struct request request = {.argv = argv,
		.env = env,
		.limits = limits_default(),
		.keep_out = "",
		.wall = {.argv = maker, .workdir = "/", .binds = swapped}};
	struct status_message message = {0};
	struct buf buf;
	int status[2], exit_status;

	(void)state;
	buf_init(&buf, 1 << 20);
	assert_int_equal(request_encode(&request, &buf), 0);
	int bytes = memfd_create("request", 0);
	assert_int_equal(write(bytes, buf.data, buf.len), (ssize_t)buf.len);
	assert_int_equal(pipe(status), 0);
	pid_t pid = fork();
	if (pid == 0) {
		int meant = fcntl(scene.own_fd, F_DUPFD, 100), request_fd = fcntl(bytes, F_DUPFD, 100),
		    status_fd = fcntl(status[1], F_DUPFD, 100);
		dup2(request_fd, INSIDE_REQUEST_FD);
		dup2(status_fd, INSIDE_STATUS_FD);
		dup2(meant, INSIDE_BIND_FD);
		execl(getenv("STINT_SHIM"), "stint-shim", SHIM_INSIDE, (char *)NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &exit_status, 0), pid);
	assert_int_equal(read(status[0], &message, sizeof message), sizeof message);
	assert_int_equal(message.kind, STATUS_FAULT);
	assert_int_equal(message.fault.step, START_WALL);
	assert_int_equal(message.fault.error, ESTALE);
	assert_string_equal(message.fault.detail, scene.beside);
	close(bytes);
	close(status[0]);
	close(status[1]);
	buf_done(&buf);
}

static const char *maker(void)
{
	return wall.level == WALL_SANDBOX ? "bwrap" : wall.runtime ? wall.runtime : "crun";
}

/* Run it with a program of that name which does something else; podman looks for others besides. */
static void run_with_maker(struct running *running, const char *script, uint32_t stop_ms)
{
	const char *const names[] = {maker(), "crun", "cat"};
	char *usual = strdup(getenv("PATH"));
	struct process_spec spec = walled_spec(running, (const char *const[]){child, "exit", "0", NULL});

	cleanup(close_at) int dir = openat(scene.world.dir_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup(close_at) int fd = openat(dir, "maker", O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	assert_true(write(fd, script, strlen(script)) > 0);
	close(take_fd(fd));
	for (size_t i = 0; i < 3; i++)
		assert_true(symlinkat("maker", dir, names[i]) == 0 || errno == EEXIST);
	setenv("PATH", scene.world.dir, 1);
	world_start(&scene.world, running, &spec);
	setenv("PATH", usual, 1);
	free(usual);
	if (stop_ms)
		process_stop(running->process, stop_ms);
	world_until_gone(running);
	for (size_t i = 0; i < 3; i++)
		unlinkat(dir, names[i], 0);
	assert_int_equal(unlinkat(dir, "maker", 0), 0);
}

static void without_what_makes_it_a_wall_is_told(void **state)
{
	char *usual = strdup(getenv("PATH")), reason[WALL_REASON_BYTES], fix[WALL_FIX_BYTES];
	struct process *process = NULL;
	struct running running;
	struct process_spec spec = walled_spec(&running, (const char *const[]){child, "exit", "0", NULL});

	(void)state;
	setenv("PATH", scene.world.dir, 1);
	assert_int_equal(process_start(scene.world.host, &spec, &process), -ENOENT);
	assert_int_equal(wall_check(&wall, reason, fix), -ENOENT);
	assert_non_null(strstr(reason, maker()));
	assert_non_null(strstr(fix, "apt-get install"));
	setenv("PATH", usual, 1);
	free(usual);
}

/* Nothing runs without the wall, and the words of who should have made it are kept. */
static void a_wall_that_cannot_be_made_starts_nothing(void **state)
{
	struct running running;

	(void)state;
	run_with_maker(&running, "#!/bin/sh\necho not today >&2\nexit 9\n", 0);
	assert_int_equal(running.end.how, ENDED_UNSTARTED);
	assert_int_equal(running.end.fault.step, START_WALL);
	assert_non_null(strstr(running.end.fault.detail, "exit status 9"));
	assert_non_null(strstr(running_text(&running, STREAM_ERR), "not today"));
	assert_nothing_left_of(&running);
	running_done(&running);
}

static void a_wall_that_is_never_done_is_stopped_like_any_program(void **state)
{
	struct running running;

	(void)state;
	run_with_maker(&running, "#!/bin/sh\nwhile :; do /bin/sleep 100; done\n", 50);
	assert_int_equal(running.end.how, ENDED_UNSTARTED);
	assert_int_equal(running.end.fault.step, START_WALL);
	assert_true(running.end.stop_asked);
	assert_nothing_left_of(&running);
	running_done(&running);
}

/* By somebody who may write where it lies, while the wall is being made; or before, by a link. */
static void a_rootfs_that_somebody_swaps_starts_nothing(void **state)
{
	char script[1200], was[240], link[240];
	struct process *process = NULL;
	struct running running;

	(void)state;
	if (wall.level != WALL_CONTAINER || wall.runtime)
		return;
	snprintf(was, sizeof was, "%s.was", rootfs);
	snprintf(script, sizeof script,
		"#!/bin/sh\nPATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
		"mv '%s' '%s' && cp -a '%s' '%s' && exec crun \"$@\"\n",
		rootfs, was, was, rootfs);
	run_with_maker(&running, script, 0);
	assert_int_equal(running.end.how, ENDED_UNSTARTED);
	assert_int_equal(running.end.fault.step, START_WALL);
	assert_int_equal(running.end.fault.error, ESTALE);
	assert_string_equal(running.end.fault.detail, "/");
	assert_nothing_left_of(&running);
	running_done(&running);
	snprintf(script, sizeof script, "rm -r '%s' && mv '%s' '%s'", rootfs, was, rootfs);
	assert_int_equal(system(script), 0);

	snprintf(link, sizeof link, "%s.link", rootfs);
	assert_int_equal(symlink(rootfs, link), 0);
	struct process_spec spec = walled_spec(&running, (const char *const[]){child, "exit", "0", NULL});
	wall.rootfs = link;
	assert_int_equal(process_start(scene.world.host, &spec, &process), -ELOOP);
	wall.rootfs = rootfs;
	unlink(link);
}

static void a_rootfs_that_is_none_is_told(void **state)
{
	char reason[WALL_REASON_BYTES], fix[WALL_FIX_BYTES];
	struct wall bad = {.level = WALL_CONTAINER, .rootfs = "/no/such/rootfs"};

	(void)state;
	if (wall.level != WALL_CONTAINER)
		return;
	assert_int_equal(wall_check(&bad, reason, fix), -ENOENT);
	assert_non_null(strstr(reason, "/no/such/rootfs"));
	bad.rootfs = scene.home;
	assert_int_equal(wall_check(&bad, reason, fix), -ENOTDIR);
	assert_non_null(strstr(reason, "has no directory proc"));
	assert_non_null(strstr(fix, "&& mkdir -p proc dev tmp run"));
	bad.rootfs = NULL;
	assert_int_equal(wall_check(&bad, reason, fix), -EINVAL);
	assert_non_null(strstr(fix, "rootfs"));
	bad.runtime = "/no/such/runtime";
	assert_int_equal(wall_check(&bad, reason, fix), -ENOENT);
	assert_null(strstr(fix, "apt-get")); /* a path is no package */
}

/* Each file by the key that names it. */
static void a_machine_without_a_file_says_which(void **state)
{
	char reason[WALL_REASON_BYTES], fix[WALL_FIX_BYTES];
	struct wall bad = {.level = WALL_VM, .kernel = "/etc/passwd", .initrd = "/no/such/initrd"};

	(void)state;
	if (wall_check(&bad, reason, fix) == -ENOENT && strstr(reason, WALL_QEMU))
		return; /* there is no qemu */
	assert_string_equal(reason, "initrd /no/such/initrd: No such file or directory");
	bad.initrd = NULL;
	bad.image = "/no/such/image";
	assert_int_equal(wall_check(&bad, reason, fix), -ENOENT);
	assert_string_equal(reason, "image /no/such/image: No such file or directory");
	bad.image = NULL;
	assert_int_equal(wall_check(&bad, reason, fix), -EINVAL);
	assert_string_equal(reason, "the executor has no image");
}

/* What stint doctor says. */
static bool can_be_had(void)
{
	char reason[WALL_REASON_BYTES] = "", fix[WALL_FIX_BYTES];
	struct wall trial = {.level = wall.level, .runtime = wall.runtime};
	int fault = wall_try(&trial, &(struct wall_trial){.shim = getenv("STINT_SHIM")}, reason, fix);

	if (fault)
		printf("skipped: level %s cannot be had here: %s\n", wall_level_name(wall.level), reason);
	return fault == 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(how_it_ended_is_told_exactly),
		cmocka_unit_test(what_cannot_be_executed_is_told_and_why),
		cmocka_unit_test(it_gets_its_input_and_nothing_else_of_ours),
		cmocka_unit_test(signals_session_umask_and_directory_are_fresh),
		cmocka_unit_test(a_stop_is_term_with_its_grace),
		cmocka_unit_test(a_stop_that_comes_before_it_waits_for_it),
		cmocka_unit_test(podman_may_go_before_the_program),
		cmocka_unit_test(its_run_dir_may_have_a_long_path),
		cmocka_unit_test(daemons_are_ended_with_it),
		cmocka_unit_test(a_killed_shim_leaves_nothing),
		cmocka_unit_test(a_killed_wall_leaves_nothing),
		cmocka_unit_test(its_own_directory_is_its_own),
		cmocka_unit_test(the_system_cannot_be_changed),
		cmocka_unit_test(the_rootfs_stays_as_it_was),
		cmocka_unit_test(a_grant_that_has_no_place_in_the_rootfs_is_refused),
		cmocka_unit_test(its_tmp_is_private_and_ends_with_it),
		cmocka_unit_test(its_tmp_has_a_size),
		cmocka_unit_test(its_shared_memory_is_private),
		cmocka_unit_test(the_state_directory_does_not_exist),
		cmocka_unit_test(nothing_else_of_the_machine_is_there),
		cmocka_unit_test(what_belongs_to_a_sibling_does_not_exist),
		cmocka_unit_test(a_grant_that_opens_the_state_directory_is_refused),
		cmocka_unit_test(a_grant_of_others_leads_neither_there_nor_through_a_link),
		cmocka_unit_test(a_system_that_holds_the_state_directory_is_refused),
		cmocka_unit_test(nobody_else_is_there),
		cmocka_unit_test(the_first_process_is_out_of_reach),
		cmocka_unit_test(its_terminals_are_its_own),
		cmocka_unit_test(there_is_no_network_unless_it_is_granted),
		cmocka_unit_test(the_socket_of_its_run_dir_is_the_one_way_out),
		cmocka_unit_test(a_socket_whose_path_is_too_long_for_an_address_has_a_short_one_inside),
		cmocka_unit_test(system_calls_that_change_the_machine_do_not_exist),
		cmocka_unit_test(it_has_no_privileges),
		cmocka_unit_test(limits_are_the_same),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(processes_are_bounded),
		cmocka_unit_test(processor_time_is_bounded),
		cmocka_unit_test(a_path_that_leads_elsewhere_starts_nothing),
		cmocka_unit_test(without_what_makes_it_a_wall_is_told),
		cmocka_unit_test(a_wall_that_cannot_be_made_starts_nothing),
		cmocka_unit_test(a_wall_that_is_never_done_is_stopped_like_any_program),
		cmocka_unit_test(a_rootfs_that_is_none_is_told),
		cmocka_unit_test(a_machine_without_a_file_says_which),
		cmocka_unit_test(a_rootfs_that_somebody_swaps_starts_nothing),
	};

	wall.level = (enum wall_level)wall_level_find(argc > 1 ? argv[1] : "sandbox");
	wall.runtime = argc > 2 ? argv[2] : NULL;
	if (!can_be_had())
		return 77;
	if (getenv("STINT_EXEC_TESTS"))
		cmocka_set_test_filter(getenv("STINT_EXEC_TESTS"));
	return cmocka_run_group_tests(tests, open_scene, close_scene);
}
