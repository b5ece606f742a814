/*
 * A hostile child at level `process`: every attempt fails. docs/isolation.md has a line for each, and for what this
 * level cannot stop. Run as root it is Landlock and seccomp alone that stop it: no permission bit does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/take.h"
#include "exec/request/confine.h"
#include "scene.h"
#include "../skip.h"

static struct scene scene;

static struct process_spec hostile_spec(struct running *running, const char *const *argv)
{
	struct process_spec spec = world_spec(&scene.world, running, argv);

	spec.workdir_fd = scene.own_fd;
	spec.confine.keep_out = scene.home;
	scene.world.grants[2] = (struct grant){
		.fd = scene.own_fd, .access = GRANT_READ}; /* the caller's word that this is its own */
	spec.confine.grant_count = 3;
	return spec;
}

static int open_scene(void **state)
{
	(void)state;
	scene_open(&scene, &(struct host_options){.cgroup_unwanted = getenv("STINT_EXEC_NO_CGROUP") != NULL});
	scene.world.grants[1] =
		(struct grant){.path = getenv("STINT_EXEC_HOSTILE"), .fd = -1, .access = GRANT_READ};
	struct process_spec spec = world_spec(&scene.world, &scene.sibling, CHILD(&scene.world, "hang"));
	spec.workdir_fd = scene.sibling_fd;
	world_start(&scene.world, &scene.sibling, &spec);
	world_until_text(&scene.sibling, STREAM_OUT, "ready");
	return 0;
}

static int close_scene(void **state)
{
	(void)state;
	scene_close(&scene);
	return 0;
}

static void attempt(const char *expected, const char *name, const char *first, const char *second)
{
	scene_attempt(&scene, hostile_spec,
		(const char *const[]){getenv("STINT_EXEC_HOSTILE"), name, first, second, NULL}, expected);
}

/* ---- files -------------------------------------------------------------------------------------------------------- */

static void its_own_directory_is_its_own(void **state)
{
	(void)state;
	attempt("done", "write", "file", NULL);
	attempt("done", "read", "file", NULL);
	attempt("done", "read", "token", NULL);
	attempt("done", "list", ".", NULL);
	attempt("done", "rename", "file", NULL);
	attempt("done", "remove", "renamed", NULL);
}

static void what_every_program_needs_is_there_and_not_writable(void **state)
{
	(void)state;
	attempt("done", "read", "/etc/passwd", NULL);
	attempt("done", "read", "/proc/self/status", NULL);
	attempt("done", "write", "/dev/null", NULL);
	attempt("EACCES", "write", "/etc/stint-test", NULL);
	attempt("EACCES", "write", "/usr/stint-test", NULL);
	attempt("EACCES", "write", "/tmp/stint-test", NULL);
	attempt("EACCES", "write", "/dev/shm/stint-test", NULL);
	attempt("EACCES", "write", "/proc/self/oom_score_adj", NULL);
	attempt("EACCES", "write", "/proc/sys/kernel/hostname", NULL);
	if (access("/sys/fs/cgroup/cgroup.procs", F_OK) == 0)
		attempt("EACCES", "write", "/sys/fs/cgroup/cgroup.procs", NULL);
}

static void the_state_directory_is_out_of_reach(void **state)
{
	(void)state;
	attempt("EACCES", "read", in_home(&scene, "stint.db"), NULL);
	attempt("EACCES", "read", in_home(&scene, "admin.token"), NULL);
	attempt("EACCES", "read", "../admin.token", NULL);
	attempt("EACCES", "write", in_home(&scene, "stint.db"), NULL);
	attempt("EACCES", "write", in_home(&scene, "new"), NULL);
	attempt("EACCES", "truncate", in_home(&scene, "stint.db"), NULL);
	attempt("EACCES", "remove", in_home(&scene, "admin.token"), NULL);
	attempt("EACCES", "list", scene.home, NULL);
	attempt("EACCES", "list", "..", NULL);
}

static void no_link_leads_there(void **state)
{
	char through[400];

	(void)state;
	attempt("EACCES", "link", in_home(&scene, "admin.token"), NULL);
	attempt("EACCES", "race", in_home(&scene, "admin.token"), NULL);
	attempt("EXDEV", "hard link", in_home(&scene, "admin.token"), NULL);
	attempt("EACCES", "rename", in_home(&scene, "admin.token"), NULL);
	snprintf(through, sizeof through, "/proc/self/root%s/admin.token", scene.home);
	attempt("EACCES", "read", through, NULL);
	snprintf(through, sizeof through, "/proc/self/cwd/../admin.token");
	attempt("EACCES", "read", through, NULL);
	snprintf(through, sizeof through, "root%s/admin.token", scene.home);
	attempt("EACCES", "proc", number(getpid()), through);
	attempt("EACCES", "proc", number(scene.sibling.identity.main), "cwd/token");
}

static void a_siblings_files_are_out_of_reach(void **state)
{
	(void)state;
	attempt("EACCES", "read", in_home(&scene, "sibling/token"), NULL);
	attempt("EACCES", "read", "../sibling/token", NULL);
	attempt("EACCES", "write", in_home(&scene, "sibling/token"), NULL);
	attempt("EACCES", "list", in_home(&scene, "sibling"), NULL);
	attempt("EACCES", "race", "../sibling/token", NULL);
}

/* ---- processes ---------------------------------------------------------------------------------------------------- */

static void a_sibling_cannot_be_traced_or_read(void **state)
{
	const char *pid = number(scene.sibling.identity.main);

	(void)state;
	attempt("EPERM", "trace", pid, NULL);
	attempt("EPERM", "memory", pid, NULL);
	attempt("EACCES", "proc", pid, "environ");
	attempt("EACCES", "proc", pid, "mem");
	attempt("EACCES", "proc", pid, "fd/0");
	attempt("EACCES", "proc", number(scene.sibling.identity.shim), "environ");
	attempt("EACCES", "proc", number(getpid()), "environ");
}

/* From version 6 of Landlock on; before that the manual says so. */
static void nobody_outside_can_be_signalled(void **state)
{
	const pid_t targets[] = {scene.sibling.identity.main, scene.sibling.identity.shim, getpid()};

	(void)state;
	if (landlock_abi() < 6)
		skip_because("this kernel's Landlock is of version %d, not 6", landlock_abi());
	for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
		attempt("EPERM", "signal", number(targets[i]), "15");
		attempt("EPERM", "signal", number(targets[i]), "9");
		attempt("EPERM", "pidfd", number(targets[i]), NULL);
	}
	attempt("EPERM", "signal", number(-scene.sibling.identity.main), "9");
	assert_int_equal(marked(scene.sibling.identity.run), 1);
}

/* Who may lower the limits of another may end him, on every kernel. */
static void nobody_elses_limits_can_be_changed(void **state)
{
	const pid_t targets[] = {scene.sibling.identity.main, scene.sibling.identity.shim, getpid()};

	(void)state;
	for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
		attempt("EPERM", "limit", number(targets[i]), NULL);
	attempt("done", "limit", "0", NULL);
}

static void sockets_without_a_path_stay_within(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int len = snprintf(address.sun_path + 1, 64, "stint-test-%d", (int)getpid());

	(void)state;
	if (landlock_abi() < 6)
		skip_because("this kernel's Landlock is of version %d, not 6", landlock_abi());
	cleanup(close_at) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address,
				 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)),
		0);
	assert_int_equal(listen(fd, 1), 0);
	attempt("EPERM", "abstract", address.sun_path + 1, NULL);
}

/* ---- the kernel --------------------------------------------------------------------------------------------------- */

static void system_calls_that_change_the_machine_do_not_exist(void **state)
{
	static const int calls[] = {SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp,
		SYS_pidfd_getfd, SYS_mount, SYS_umount2, SYS_move_mount, SYS_fsopen, SYS_open_tree,
		SYS_pivot_root, SYS_chroot, SYS_setns, SYS_unshare, SYS_kexec_load, SYS_init_module,
		SYS_finit_module, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup,
		SYS_io_uring_enter, SYS_open_by_handle_at, SYS_keyctl, SYS_add_key, SYS_reboot, SYS_swapon,
		SYS_sethostname, SYS_settimeofday, SYS_clock_settime, SYS_syslog, SYS_acct};

	(void)state;
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		attempt("EPERM", "call", number(calls[i]), NULL);
	attempt("EPERM", "call", number(467),
		NULL); /* open_tree_attr, which the headers of Debian 12 do not have */
	attempt("EPERM", "namespace", NULL, NULL);
	attempt("EPERM", "type", NULL, NULL);
	attempt("ENOSYS", "call", number(SYS_clone3), NULL);
}

/* Also as root: none of those that change the machine or look into other processes. */
static void privileges_of_root_are_those_of_a_container(void **state)
{
	static const int missing[] = {CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_SYS_MODULE, CAP_SYS_RAWIO,
		CAP_SYS_BOOT, CAP_SYS_TIME, CAP_SYS_RESOURCE, CAP_SYS_NICE, CAP_NET_ADMIN, CAP_MKNOD,
		CAP_DAC_READ_SEARCH, CAP_LINUX_IMMUTABLE, CAP_SYSLOG, CAP_NET_RAW};

	(void)state;
	for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
		attempt("EPERM", "capability", number(missing[i]), NULL);
	if (geteuid() == 0)
		attempt("done", "capability", number(CAP_CHOWN), NULL);
	attempt("EPERM", "sniff", NULL, NULL);
}

static void limits_hold(void **state)
{
	(void)state;
	attempt("EFBIG", "fill", "2000000000", NULL); /* the others: test_exec_budget.c */
}

/* ---- what is not granted ------------------------------------------------------------------------------------------ */

static void assert_refused(struct process_spec *spec, struct running *running, int error)
{
	world_start(&scene.world, running, spec);
	world_until_gone(running);
	assert_int_equal(running->end.how, ENDED_UNSTARTED);
	assert_int_equal(running->end.fault.step, START_LANDLOCK);
	assert_int_equal(running->end.fault.error, error);
	assert_nothing_left_of(running);
	running_done(running);
}

static void a_grant_that_opens_the_state_directory_is_refused(void **state)
{
	const char *const bad[] = {scene.home, scene.world.dir, world_place(), "/"};
	struct running running;
	struct process_spec spec;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		scene.world.grants[3] = (struct grant){.path = bad[i], .fd = -1, .access = GRANT_READ};
		spec = hostile_spec(&running, CHILD(&scene.world, "exit", "0"));
		spec.confine.grant_count = 4;
		assert_refused(&spec, &running, EXDEV);
		assert_string_equal(running.end.fault.detail, bad[i]);
	}
	scene.world.grants[3] = (struct grant){.fd = scene.home_fd, .access = GRANT_READ};
	spec = hostile_spec(&running, CHILD(&scene.world, "exit", "0"));
	spec.confine.grant_count = 4;
	assert_refused(&spec, &running, EXDEV);
	spec = hostile_spec(&running, CHILD(&scene.world, "exit", "0"));
	spec.workdir_fd = scene.world.dir_fd;
	assert_refused(&spec, &running, EXDEV);
}

/* What an executor grants is not to be mixed up with what we grant, or with what the task before has put there. */
static void the_systems_own_paths_do_not_open_the_state_directory_either(void **state)
{
	struct running running;
	struct process_spec spec = hostile_spec(&running, CHILD(&scene.world, "exit", "0"));

	(void)state;
	spec.confine.keep_out = "/usr/bin";
	assert_refused(&spec, &running, EXDEV);
	assert_string_equal(running.end.fault.detail, "/usr");
}

static void a_grant_of_others_leads_neither_there_nor_through_a_link(void **state)
{
	const char *const bad[] = {in_home(&scene, "sibling"), in_home(&scene, "sibling/token")};
	struct process_spec spec;
	struct running running;
	char link[300];

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		scene.world.grants[3] =
			(struct grant){.path = bad[i], .fd = -1, .access = GRANT_READ, .outside = true};
		spec = hostile_spec(&running, CHILD(&scene.world, "exit", "0"));
		spec.confine.grant_count = 4;
		assert_refused(&spec, &running, EXDEV);
	}
	snprintf(link, sizeof link, "%s/swapped", scene.world.dir);
	assert_int_equal(symlink("/usr", link), 0);
	scene.world.grants[3] = (struct grant){.path = link, .fd = -1, .access = GRANT_READ, .direct = true};
	spec = hostile_spec(&running, CHILD(&scene.world, "exit", "0"));
	spec.confine.grant_count = 4;
	assert_refused(&spec, &running, ELOOP);
	unlink(link);
}

/* A root above it, and a task that asks for what is in there. */
static void a_work_dir_within_the_state_directory_is_refused(void **state)
{
	const int bad[] = {scene.sibling_fd, scene.home_fd};
	struct process *process = NULL;
	struct running running;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct process_spec spec = hostile_spec(&running, CHILD(&scene.world, "exit", "0"));
		spec.workdir_fd = bad[i];
		assert_int_equal(process_start(scene.world.host, &spec, &process), -EXDEV);
		assert_null(process);
	}
}

static void a_grant_that_does_not_exist_is_refused_unless_optional(void **state)
{
	struct running running;
	struct process_spec spec;

	(void)state;
	scene.world.grants[3] = (struct grant){.path = "/no/such/path", .fd = -1, .access = GRANT_READ};
	spec = hostile_spec(&running, CHILD(&scene.world, "exit", "0"));
	spec.confine.grant_count = 4;
	assert_refused(&spec, &running, ENOENT);
	scene.world.grants[3].optional = true;
	spec = hostile_spec(&running, CHILD(&scene.world, "exit", "0"));
	spec.confine.grant_count = 4;
	world_start(&scene.world, &running, &spec);
	world_until_gone(&running);
	assert_int_equal(running.end.how, ENDED_EXIT);
	running_done(&running);
}

/* A directory of PATH that we may not enter, say: the child may not either, so there is nothing to grant. */
static void an_optional_grant_that_cannot_be_reached_is_left_out(void **state)
{
	struct running running;

	(void)state;
	if (geteuid() == 0)
		skip_because("root may enter anything; exec_hostile_as_nobody does it");
	assert_int_equal(mkdirat(scene.world.dir_fd, "barred", 0), 0);
	char path[400];
	snprintf(path, sizeof path, "%s/barred/bin", scene.world.dir);
	scene.world.grants[3] = (struct grant){
		.path = path, .fd = -1, .access = GRANT_READ, .optional = true, .direct = true};
	struct process_spec spec = hostile_spec(&running, CHILD(&scene.world, "exit", "0"));
	spec.confine.grant_count = 4;
	world_start(&scene.world, &running, &spec);
	world_until_gone(&running);
	assert_int_equal(running.end.how, ENDED_EXIT);
	running_done(&running);
	scene.world.grants[3].optional = false;
	spec = hostile_spec(&running, CHILD(&scene.world, "exit", "0"));
	spec.confine.grant_count = 4;
	assert_refused(&spec, &running, EACCES);
	unlinkat(scene.world.dir_fd, "barred", AT_REMOVEDIR);
}

static void a_work_dir_can_be_read_only(void **state)
{
	const char *argv[] = {getenv("STINT_EXEC_HOSTILE"), "write", "file", NULL};
	struct running running;
	struct process_spec spec = hostile_spec(&running, argv);

	(void)state;
	spec.confine.workdir_read_only = true;
	world_start(&scene.world, &running, &spec);
	world_until_gone(&running);
	assert_string_equal(running_text(&running, STREAM_OUT), "EACCES");
	running_done(&running);
}

/* Runs in a child of its own, because the filter that hides Landlock stays. 0 if all is as it should be. */
static int without_landlock(void)
{
	struct host_options strict = {.shim = getenv("STINT_SHIM"), .cgroup_unwanted = true},
			    lenient = strict;
	char complaint[HOST_COMPLAINT_BYTES] = "";
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	struct host_facts facts;
	struct host *host = NULL;
	uv_loop_t loop;

	lenient.landlock_optional = true;
	if (!filter ||
		seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(landlock_create_ruleset), 0) < 0 ||
		seccomp_load(filter) < 0 || uv_loop_init(&loop) < 0)
		return 1;
	seccomp_release(filter);
	if (host_open(&loop, &strict, &host, complaint) != -EOPNOTSUPP || host ||
		!strstr(complaint, "Landlock"))
		return 2;
	if (host_open(&loop, &lenient, &host, complaint) != 0)
		return 3;
	host_describe(host, &facts);
	if (facts.landlock_abi != 0)
		return 4;
	host_close(host);
	while (uv_run(&loop, UV_RUN_DEFAULT))
		;
	return uv_loop_close(&loop) ? 5 : 0;
}

static void a_kernel_without_landlock_is_refused_unless_it_is_optional(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(without_landlock());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void a_shim_that_is_missing_or_anybodys_is_refused(void **state)
{
	struct host_options options = {.shim = "/no/such/shim"};
	char complaint[HOST_COMPLAINT_BYTES], path[200];
	struct host *host = NULL;

	(void)state;
	assert_int_equal(host_open(&scene.world.loop, &options, &host, complaint), -ENOENT);
	snprintf(path, sizeof path, "%s/shim", scene.world.dir);
	cleanup(close_at) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	assert_int_equal(fchmod(fd, 0777), 0);
	options.shim = path;
	assert_int_equal(host_open(&scene.world.loop, &options, &host, complaint), -ENOENT);
	assert_non_null(strstr(complaint, "can be changed by other users"));
	assert_null(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_own_directory_is_its_own),
		cmocka_unit_test(what_every_program_needs_is_there_and_not_writable),
		cmocka_unit_test(the_state_directory_is_out_of_reach),
		cmocka_unit_test(no_link_leads_there),
		cmocka_unit_test(a_siblings_files_are_out_of_reach),
		cmocka_unit_test(a_sibling_cannot_be_traced_or_read),
		cmocka_unit_test(nobody_outside_can_be_signalled),
		cmocka_unit_test(nobody_elses_limits_can_be_changed),
		cmocka_unit_test(sockets_without_a_path_stay_within),
		cmocka_unit_test(system_calls_that_change_the_machine_do_not_exist),
		cmocka_unit_test(privileges_of_root_are_those_of_a_container),
		cmocka_unit_test(limits_hold),
		cmocka_unit_test(a_grant_that_opens_the_state_directory_is_refused),
		cmocka_unit_test(the_systems_own_paths_do_not_open_the_state_directory_either),
		cmocka_unit_test(a_grant_of_others_leads_neither_there_nor_through_a_link),
		cmocka_unit_test(a_work_dir_within_the_state_directory_is_refused),
		cmocka_unit_test(a_grant_that_does_not_exist_is_refused_unless_optional),
		cmocka_unit_test(an_optional_grant_that_cannot_be_reached_is_left_out),
		cmocka_unit_test(a_work_dir_can_be_read_only),
		cmocka_unit_test(a_kernel_without_landlock_is_refused_unless_it_is_optional),
		cmocka_unit_test(a_shim_that_is_missing_or_anybodys_is_refused),
	};

	if (landlock_abi() == 0) {
		print_message("this kernel has no Landlock\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, open_scene, close_scene);
}
