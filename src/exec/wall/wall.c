#include "exec/wall/wall.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/take.h"
#include "exec/process.h"
#include "exec/rundir.h"
#include "exec/tree/proc.h"
#include "exec/wall/plan.h"

enum { TRY_MS = 10 * 1000 };

static const char *const names[] = {
	[WALL_PROCESS] = "process",
	[WALL_SANDBOX] = "sandbox",
	[WALL_CONTAINER] = "container",
	[WALL_VM] = "vm",
};

const char *wall_level_name(enum wall_level level)
{
	return names[level];
}

int wall_level_find(const char *name)
{
	for (int i = 0; i < WALL_LEVELS; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

/* ---- names ---------------------------------------------------------------------------------------------------------- */

/* What is left of a path after the run dir; NULL: it is not in it. */
static const char *beneath_run(const struct wall *wall, const char *path)
{
	return wall->run_path && path_lies_in(path, wall->run_path) ? path + strlen(wall->run_path) : NULL;
}

static int put_name(char *name, size_t room, const char *first, const char *second)
{
	return (size_t)snprintf(name, room, "%s%s", first, second) < room ? 0 : -ENAMETOOLONG;
}

bool wall_is_long(const char *socket)
{
	return socket && strlen(socket) >= sizeof((struct sockaddr_un){0}).sun_path;
}

int wall_name(const struct wall *wall, const char *path, char *ret_name, size_t room)
{
	const char *rest = wall->level == WALL_CONTAINER ? beneath_run(wall, path) : NULL;

	if (wall->level == WALL_SANDBOX && wall_is_long(wall->socket) && strcmp(path, wall->socket) == 0)
		return put_name(ret_name, room, WALL_SOCKET, "");
	if (wall->level == WALL_SANDBOX && wall_is_long(wall->proxy) && strcmp(path, wall->proxy) == 0)
		return put_name(ret_name, room, WALL_PROXY, "");
	return put_name(ret_name, room, rest ? WALL_PLACE "/run" : path, rest ? rest : "");
}

int wall_workdir_name(const struct wall *wall, const char *path, char *ret_name, size_t room)
{
	if (wall->level == WALL_CONTAINER && !beneath_run(wall, path))
		return put_name(ret_name, room, WALL_PLACE "/work", "");
	return wall_name(wall, path, ret_name, room);
}

/* ---- is it available? ------------------------------------------------------------------------------------------------- */

struct wall_answer {
	char *reason, *fix;
};

static int no(const struct wall_answer *answer, int fault, const char *fix, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static int no(const struct wall_answer *answer, int fault, const char *fix, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(answer->reason, WALL_REASON_BYTES, format, args);
	va_end(args);
	snprintf(answer->fix, WALL_FIX_BYTES, "%s", fix);
	return fault;
}

/* A number of the kernel's settings; `otherwise` if there is no such setting. */
static long setting(const char *path, long otherwise)
{
	char text[32];

	return proc_text_read(AT_FDCWD, path, text, sizeof text) > 0 ? strtol(text, NULL, 10) : otherwise;
}

static int check_program(const struct wall_answer *answer, const char *name, const char *package)
{
	struct arena arena;
	const char *found;
	char fix[WALL_FIX_BYTES];

	arena_init(&arena, 64 << 10);
	found = wall_program(&arena, name);
	bool there = found != NULL;
	arena_done(&arena);
	if (there)
		return 0;
	if (strchr(name, '/')) /* no package is called like that */
		snprintf(fix, sizeof fix,
			"\"runtime\": \"crun\" in the executor, or the path of a program that can be run");
	else
		snprintf(fix, sizeof fix,
			"apt-get install %s   (or put it into the PATH of the worker, and not where tasks may write)",
			package);
	return no(answer, -ENOENT, fix, "there is no %s", name);
}

static int check_namespaces(const struct wall_answer *answer)
{
	if (setting("/proc/sys/user/max_user_namespaces", 0) == 0)
		return no(answer, -EOPNOTSUPP, "sysctl user.max_user_namespaces=10000",
			"this kernel makes no user namespaces (user.max_user_namespaces is 0)");
	if (geteuid() != 0 && setting("/proc/sys/kernel/unprivileged_userns_clone", 1) == 0)
		return no(answer, -EOPNOTSUPP, "sysctl kernel.unprivileged_userns_clone=1",
			"this kernel makes user namespaces for root alone (kernel.unprivileged_userns_clone is 0)");
	return 0;
}

static int check_path(
	const struct wall_answer *answer, const char *key, const char *path, mode_t type, const char *what)
{
	struct stat stat_;
	char fix[WALL_FIX_BYTES];

	snprintf(fix, sizeof fix, "\"%s\": \"/path\" in the executor: %s", key, what);
	if (!path)
		return no(answer, -EINVAL, fix, "the executor has no %s", key);
	if (stat(path, &stat_) < 0)
		return no(answer, -errno, fix, "%s %.300s: %s", key, path, strerror(errno));
	if ((stat_.st_mode & S_IFMT) != type || access(path, type == S_IFDIR ? X_OK : R_OK) < 0)
		return no(answer, -EINVAL, fix, "%s %.300s is not %s that can be read", key, path,
			type == S_IFDIR ? "a directory" : "a file");
	return 0;
}

enum { ROOTFS_PLACES = 4 };

static const char *const rootfs_places[ROOTFS_PLACES] = {"proc", "dev", "tmp", "run"};

static int check_rootfs(const struct wall_answer *answer, const struct wall *wall)
{
	int fault = check_path(answer, "rootfs", wall->rootfs, S_IFDIR,
		"a directory with a system in it, as debootstrap makes one");
	char path[4096 + 8], fix[WALL_FIX_BYTES];
	struct stat stat_;

	for (size_t i = 0; i < ROOTFS_PLACES && !fault; i++) {
		snprintf(path, sizeof path, "%.4095s/%s", wall->rootfs, rootfs_places[i]);
		snprintf(fix, sizeof fix, "cd %.200s && mkdir -p proc dev tmp run", wall->rootfs);
		if (lstat(path, &stat_) < 0 || !S_ISDIR(stat_.st_mode))
			fault = no(answer, -ENOTDIR, fix, "rootfs %.300s has no directory %s", wall->rootfs,
				rootfs_places[i]);
	}
	return fault;
}

static int check_machine(const struct wall_answer *answer, const struct wall *wall)
{
	int fault = check_program(answer, WALL_QEMU, WALL_QEMU_PACKAGE);

	if (!fault)
		fault = check_path(answer, "kernel", wall->kernel, S_IFREG, "a Linux kernel for qemu");
	if (!fault && wall->initrd)
		fault = check_path(answer, "initrd", wall->initrd, S_IFREG, "what the kernel boots with");
	if (!fault && (wall->image || !wall->initrd))
		fault = check_path(
			answer, "image", wall->image, S_IFREG, "a disk for the guest, or \"initrd\"");
	return fault;
}

int wall_check(const struct wall *wall, char reason[WALL_REASON_BYTES], char fix[WALL_FIX_BYTES])
{
	struct wall_answer answer = {reason, fix};
	int fault = 0;

	switch (wall->level) {
	case WALL_PROCESS:
		break;
	case WALL_SANDBOX:
		fault = check_program(&answer, "bwrap", "bubblewrap");
		break;
	case WALL_CONTAINER:
		fault = check_program(&answer, wall->runtime ? wall->runtime : "crun",
			wall->runtime ? wall->runtime : "crun");
		if (!fault && wall_is_podman(wall->runtime))
			fault = check_program(&answer, "crun", "crun");
		if (!fault)
			fault = check_rootfs(&answer, wall);
		break;
	case WALL_VM:
		return check_machine(&answer, wall);
	}
	return fault || wall->level == WALL_PROCESS ? fault : check_namespaces(&answer);
}

int wall_check_home(const struct wall *wall, const char *keep_out, char reason[WALL_REASON_BYTES],
	char fix[WALL_FIX_BYTES])
{
	struct wall_answer answer = {reason, fix};
	int fault = wall->level == WALL_VM ? 0 : wall_system_check(wall, keep_out);

	if (fault == -EXDEV && wall->level == WALL_CONTAINER)
		return no(&answer, fault, "use a directory as rootfs that does not hold it",
			"rootfs %.300s would show the state directory", wall->rootfs);
	if (fault == -EXDEV)
		return no(&answer, fault, "keep the state directory elsewhere",
			"what every program may read of this machine would show the state directory %.300s",
			keep_out);
	return fault ? no(&answer, fault, "", "the state directory: %s", strerror(-fault)) : 0;
}

/* ---- trying it ------------------------------------------------------------------------------------------------------ */

struct trial {
	uv_loop_t loop;
	uv_timer_t late;
	struct process *process;
	struct process_end end;
	char words[200]; /* the last that it wrote */
	bool gone;
};

/* Its last line: what comes before is how it got there. */
static void take_words(struct trial *trial, struct process *process)
{
	char *line = trial->words;
	struct buf tail;

	buf_init(&tail, sizeof trial->words);
	if (output_tail(process_output(process, STREAM_ERR), sizeof trial->words - 1, &tail) == 0)
		snprintf(trial->words, sizeof trial->words, "%.*s", SPAN_ARGS(buf_span(&tail)));
	buf_done(&tail);
	for (char *end = strchr(line, 0); end > line && end[-1] == '\n';)
		*--end = 0;
	line = strrchr(line, '\n');
	if (line)
		memmove(trial->words, line + 1, strlen(line));
}

static void trial_gone(void *context, struct process *process)
{
	struct trial *trial = context;

	trial->end = *process_end(process);
	take_words(trial, process);
	trial->gone = true;
	uv_close((uv_handle_t *)&trial->late, NULL);
	process_free(process);
}

static void trial_late(uv_timer_t *timer)
{
	struct trial *trial = timer->data;

	process_kill(trial->process);
}

/* A machine that is created and never started: a broken KVM fails when the virtual processor is created. */
static const char *const bare_machine[] = {WALL_QEMU, "-nodefaults", "-no-user-config", "-display", "none",
	"-machine", GUEST_KVM, "-cpu", "max", "-S", "-monitor", "stdio", NULL};
static const struct grant kvm_grant = {.path = KVM_PATH, .fd = -1, .access = GRANT_DEVICE};

static int run_trial(struct trial *trial, struct host *host, const struct wall *wall,
	const struct wall_trial *given, int workdir_fd)
{
	static const struct process_events events = {.gone = trial_gone};
	static const char *const shim[] = {WALL_PLACE "/shim", SHIM_TRIAL, NULL};
	const char *const path[] = {"PATH", NULL};
	struct process_spec spec = process_spec_default();
	bool machine = wall->level == WALL_VM;
	char run[40];

	snprintf(run, sizeof run, "trial-%d", (int)getpid());
	spec.run = run;
	spec.argv = machine ? bare_machine : shim;
	spec.env_allow = path;
	spec.workdir_fd = workdir_fd;
	if (machine) {
		spec.stdin_from = STDIN_BYTES;
		spec.input = SPAN("quit\n");
		spec.confine.grants = &kvm_grant;
		spec.confine.grant_count = 1;
	} else {
		spec.wall = wall;
		spec.confine.keep_out = given->keep_out;
	}
	spec.events = &events;
	spec.context = trial;
	int fault = process_start(host, &spec, &trial->process);
	if (fault)
		return fault;
	uv_timer_init(&trial->loop, &trial->late);
	trial->late.data = trial;
	uv_timer_start(&trial->late, trial_late, TRY_MS, 0);
	while (!trial->gone)
		uv_run(&trial->loop, UV_RUN_ONCE);
	return 0;
}

static int judge_trial(const struct wall_answer *answer, const struct trial *trial, const struct wall *wall)
{
	static const char *const fixes[] = {[WALL_PROCESS] = "",
		[WALL_SANDBOX] = "run bwrap --unshare-all --ro-bind / / true by hand: it says more",
		[WALL_CONTAINER] = "look at what the runtime said, and at the rootfs",
		[WALL_VM] = ""};
	char text[200];

	if (trial->end.how == ENDED_EXIT && trial->end.code == 0)
		return 0;
	if (wall->level == WALL_VM && trial->end.how != ENDED_UNSTARTED) /* it runs all the same */
		return no(answer, 0, "", "but slow: KVM fails here, so machines are emulated%s%s",
			trial->words[0] ? ": " : "", trial->words);
	if (trial->end.how == ENDED_UNSTARTED)
		start_fault_text(&trial->end.fault, text, sizeof text);
	else
		snprintf(text, sizeof text, "it does not end, or dies");
	const char *fix = wall->level != WALL_VM && geteuid() != 0 &&
			setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0) != 0
		? "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or a profile of AppArmor that lets it make user namespaces"
		: fixes[wall->level];
	return no(answer, -EOPNOTSUPP, fix, "%s%s%s", text, trial->words[0] ? ": " : "", trial->words);
}

/* A system with nothing in it but the places that a container needs: enough for a trial, whose program is ours. */
static int make_bare_rootfs(const char *place, char *path, size_t room)
{
	snprintf(path, room, "%s/rootfs", place);
	if (mkdir(path, 0755) < 0)
		return -errno;
	cleanup(close_at) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < ROOTFS_PLACES; i++)
		if (fd < 0 || mkdirat(fd, rootfs_places[i], 0755) < 0)
			return -errno;
	return 0;
}

static void remove_place(const char *place)
{
	cleanup(close_at) int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	rundir_remove(tmp, strrchr(place, '/') + 1);
}

static int try_in(const struct wall_answer *answer, const struct wall *given, const struct wall_trial *by,
	const char *place)
{
	struct host_options options = {.shim = by->shim, .landlock_optional = by->landlock_optional};
	char complaint[HOST_COMPLAINT_BYTES], rootfs[4096 + 16];
	struct trial trial = {0};
	struct wall wall = *given;
	struct host *host = NULL;

	cleanup(close_at) int workdir_fd = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);
	wall.run_path = place;
	if (wall.level == WALL_CONTAINER && !wall.rootfs)
		wall.rootfs = make_bare_rootfs(place, rootfs, sizeof rootfs) < 0 ? "" : rootfs;
	int fault = wall.level == WALL_VM && !wall.kernel
		? check_program(answer, WALL_QEMU, WALL_QEMU_PACKAGE)
		: wall_check(&wall, answer->reason, answer->fix);
	if (!fault)
		fault = wall_check_home(&wall, by->keep_out, answer->reason, answer->fix);
	if (fault || wall.level == WALL_PROCESS)
		return fault;
	if (wall.level == WALL_VM && wall.emulate)
		return no(answer, 0, "", "but slow: machines are emulated, as \"emulate\" asks");
	if (wall.level == WALL_VM && access(KVM_PATH, R_OK | W_OK) < 0)
		return no(answer, 0, "",
			"but slow: machines are emulated, because KVM cannot be used (%s: %s)", KVM_PATH,
			strerror(errno));
	if (uv_loop_init(&trial.loop) < 0)
		return no(answer, -ENOMEM, "", "no memory");
	fault = host_open(&trial.loop, &options, &host, complaint);
	if (fault) {
		no(answer, fault, "", "%s", complaint);
	} else {
		fault = run_trial(&trial, host, &wall, by, workdir_fd);
		fault = fault ? no(answer, fault, "", "%s", strerror(-fault))
			      : judge_trial(answer, &trial, &wall);
		host_close(host);
	}
	while (uv_run(&trial.loop, UV_RUN_DEFAULT))
		;
	uv_loop_close(&trial.loop);
	return fault;
}

int wall_try(const struct wall *wall, const struct wall_trial *trial, char reason[WALL_REASON_BYTES],
	char fix[WALL_FIX_BYTES])
{
	char place[] = "/tmp/stint-trial-XXXXXX", real[4096];
	struct wall_answer answer = {reason, fix};

	if (landlock_abi() == 0 && !trial->landlock_optional)
		return no(&answer, -EOPNOTSUPP,
			"boot with lsm=landlock,..., or allow \"landlock\":\"optional\"",
			"this kernel has no Landlock, or it is switched off");
	if (!mkdtemp(place))
		return no(&answer, -errno, "make room in /tmp", "%s: %s", place, strerror(errno));
	int fault = try_in(&answer, wall, trial, realpath(place, real) ? real : place);
	remove_place(place);
	return fault;
}
