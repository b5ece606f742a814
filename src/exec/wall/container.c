/*
 * By an OCI runtime: a bundle is written into the run dir, and the runtime makes of it what the file says. The system
 * inside is the executor's rootfs, read-only, so that no task leaves anything there for the next; what is ours lies
 * in WALL_PLACE, on a file system of its own, because nothing can be made in a rootfs that is not ours.
 *
 * The runtime has no part in limits: it cannot write to cgroups (child.c), its cgroup manager is off where it has a switch
 * for that, and the tree stays in the cgroup that the shim made, as at every other level. Inside there is one user, root
 * without a capability, who is our own user outside.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/files.h"
#include "base/take.h"
#include "exec/wall/plan.h"
#include "wire/json/json.h"

enum {
	CONFIG_BYTES_MAX = 256 << 10,
	RUNROOT_BYTES_MAX = 50, /* podman's */
};

static const char beginning[] =
	"{\"ociVersion\":\"1.0.0\",\"hostname\":\"stint\",\"process\":{\"terminal\":false,"
	"\"user\":{\"uid\":0,\"gid\":0},\"cwd\":\"/\",\"noNewPrivileges\":true,"
	"\"args\":[\"" WALL_PLACE "/shim\",\"" SHIM_INSIDE "\"],"
	"\"capabilities\":{\"bounding\":[],\"effective\":[],\"permitted\":[],\"inheritable\":[],"
	"\"ambient\":[]},\"env\":[";

static const char mounts[] =
	"\"readonly\":true},\"mounts\":["
	"{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\",\"options\":[\"nosuid\",\"noexec\",\"nodev\"]},"
	"{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\",\"options\":[\"nosuid\",\"mode=755\",\"size=64k\"]},"
	"{\"destination\":\"/dev/pts\",\"type\":\"devpts\",\"source\":\"devpts\",\"options\":[\"nosuid\",\"noexec\","
	"\"newinstance\",\"ptmxmode=0666\",\"mode=0620\"]},"
	"{\"destination\":\"/dev/shm\",\"type\":\"tmpfs\",\"source\":\"shm\",\"options\":[\"nosuid\",\"nodev\",\"noexec\","
	"\"mode=1777\",\"size=64m\"]},"
	"{\"destination\":\"/tmp\",\"type\":\"tmpfs\",\"source\":\"tmpfs\",\"options\":[\"nosuid\",\"nodev\",\"mode=1777\","
	"\"size=256m\"]},"
	"{\"destination\":\"/run\",\"type\":\"tmpfs\",\"source\":\"tmpfs\",\"options\":[\"nosuid\",\"nodev\",\"mode=755\","
	"\"size=1m\"]}";

static const char ending[] =
	"],\"linux\":{\"uidMappings\":[{\"containerID\":0,\"hostID\":0,\"size\":1}],"
	"\"gidMappings\":[{\"containerID\":0,\"hostID\":0,\"size\":1}],"
	"\"maskedPaths\":[\"/proc/acpi\",\"/proc/asound\",\"/proc/kcore\",\"/proc/keys\",\"/proc/latency_stats\","
	"\"/proc/timer_list\",\"/proc/sched_debug\",\"/proc/scsi\"],"
	"\"readonlyPaths\":[\"/proc/bus\",\"/proc/fs\",\"/proc/irq\",\"/proc/sys\",\"/proc/sysrq-trigger\"],"
	"\"namespaces\":[{\"type\":\"user\"},{\"type\":\"pid\"},{\"type\":\"mount\"},{\"type\":\"ipc\"},{\"type\":\"uts\"},"
	"{\"type\":\"cgroup\"}";

static void put_mount(struct buf *config, const char *source, const char *path, const char *options)
{
	buf_printf(config, ",{\"type\":\"bind\",\"source\":");
	json_put_string(config, span_of(source));
	buf_printf(config, ",\"destination\":");
	json_put_string(config, span_of(path));
	buf_printf(config, ",\"options\":[\"bind\",\"nosuid\",%s]}", options);
}

static void put_mounts(struct buf *config, struct wall_plan *plan, const char *shim)
{
	static const char *const options[] = {[GRANT_READ] = "\"nodev\",\"ro\"",
		[GRANT_WRITE] = "\"nodev\",\"rw\"",
		[GRANT_DEVICE] = "\"rw\""};

	buf_printf(config, "%s", mounts);
	for (size_t i = 0; i < plan->bind_count; i++)
		if (plan->binds[i].source)
			put_mount(config, plan->binds[i].source, plan->binds[i].path,
				options[plan->binds[i].access]);
	put_mount(config, shim, WALL_PLACE "/shim", options[GRANT_READ]);
}

/* The marker is in the environment of the first process, too: how a tree is found whose shim is dead. */
static int put_config(
	struct buf *config, struct wall_plan *plan, const char *shim, const struct process_spec *spec)
{
	buf_printf(config, "%s\"" PROCESS_MARKER "=%s\"]},\"root\":{\"path\":", beginning, spec->run);
	json_put_string(config, span_of(plan->rootfs));
	buf_printf(config, ",");
	put_mounts(config, plan, shim);
	buf_printf(config, "%s%s]}}\n", ending, spec->wall->network ? "" : ",{\"type\":\"network\"}");
	return buf_fault(config);
}

/* Does it lie on a file system that is made for the attempt? There the runtime can make any mount point. */
static bool is_own_place(const char *path)
{
	static const char *const own[] = {"/run/", "/tmp/", "/dev/shm/"};

	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (strncmp(path, own[i], strlen(own[i])) == 0)
			return true;
	return false;
}

/* Does every mount point exist in the rootfs? A runtime would create missing ones, and the rootfs is not ours to
 * change. */
static int check_places(const struct wall_plan *plan)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	int root = plan->binds[0].fd;

	for (size_t i = 1; i < plan->bind_count; i++) {
		if (is_own_place(plan->binds[i].path))
			continue;
		cleanup(close_at) int fd =
			(int)syscall(SYS_openat2, root, plan->binds[i].path, &how, sizeof how);
		if (fd < 0)
			return -errno;
	}
	return 0;
}

static int write_file(const char *bundle, const char *name, struct span text)
{
	if (mkdir(bundle, 0700) < 0 && errno != EEXIST)
		return -errno;
	cleanup(close_at) int dir = open(bundle, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	cleanup(close_at) int fd =
		openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	return file_write_all(fd, text);
}

/* A system of its own: all of it can be read, and what was made for this attempt can be written. */
static void grant_inside(struct wall_plan *plan)
{
	plan_grant(plan, "/", GRANT_READ);
	plan_grant(plan, "/tmp", GRANT_WRITE);
	plan_grant(plan, "/dev/shm", GRANT_WRITE);
	for (size_t i = 0; i < grants_system_count; i++)
		if (grants_system[i].access == GRANT_DEVICE)
			plan_grant(plan, grants_system[i].path, GRANT_DEVICE);
}

static void put_command(struct wall_plan *plan, const char *runtime, const char *bundle, const char *run)
{
	const char *name = strrchr(runtime, '/');

	plan_words(plan, (const char *const[]){runtime, "--root", plan_text(plan, "%s/state", bundle), NULL});
	if (name && strcmp(name, "/crun") == 0)
		plan_words(plan, (const char *const[]){"--cgroup-manager", "disabled", NULL});
	else if (name &&
		strcmp(name, "/runc") == 0) /* it has no such switch; so it does not insist on cgroups */
		plan_words(plan, (const char *const[]){"--rootless", "true", NULL});
	plan_words(plan,
		(const char *const[]){"run", "--bundle", bundle, "--preserve-fds",
			plan_text(plan, "%zu", plan->bind_count + 2), run, NULL});
}

/* ---- podman --------------------------------------------------------------------------------------------------------- */

bool wall_is_podman(const char *runtime)
{
	const char *slash = runtime ? strrchr(runtime, '/') : NULL;

	return runtime && strcmp(slash ? slash + 1 : runtime, "podman") == 0;
}

static int write_text(const char *dir, const char *name, const struct buf *text)
{
	return buf_fault(text) ? buf_fault(text) : write_file(dir, name, buf_span(text));
}

/*
 * podman makes a config of its own, and writes into the rootfs. So its rootfs is an empty directory, and a hook, which may
 * replace the config, returns ours: crun gets the same file as without podman.
 */
static int write_hook(struct wall_plan *plan, const char *bundle)
{
	const char *cat = wall_program(&plan->arena, "cat");
	cleanup(buf_done) struct buf text;

	buf_init(&text, CONFIG_BYTES_MAX);
	if (!cat)
		return -ENOENT;
	buf_printf(&text,
		"{\"version\":\"1.0.0\",\"when\":{\"always\":true},\"stages\":[\"precreate\"],"
		"\"hook\":{\"path\":");
	json_put_string(&text, span_of(cat));
	buf_printf(&text, ",\"args\":[\"cat\",");
	json_put_string(&text, span_of(plan_text(plan, "%s/config.json", bundle)));
	buf_printf(&text, "]}}\n");
	return write_text(plan_text(plan, "%s/hooks", bundle), "ours.json", &text);
}

/* Replaces the machine's podman settings: state and lock files stay in the bundle, and conmon carries the run's
 * marker. */
static int write_settings(struct wall_plan *plan, const char *bundle, const char *run)
{
	cleanup(buf_done) struct buf text;

	buf_init(&text, CONFIG_BYTES_MAX);
	plan->maker_env[0] = plan_text(plan, "CONTAINERS_CONF=%s/containers.conf", bundle);
	plan->maker_env[1] = plan_text(plan, "CONTAINERS_STORAGE_CONF=%s/storage.conf", bundle);
	plan->maker_env[2] = plan_text(plan, "HOME=%s", bundle);
	buf_printf(&text,
		"[engine]\nlock_type = \"file\"\nconmon_env_vars = [\"" PROCESS_MARKER "=%s\", \"" WALL_PATH
		"\"",
		run);
	for (size_t i = 0; plan->maker_env[i]; i++) {
		buf_printf(&text, ", ");
		json_put_string(&text, span_of(plan->maker_env[i]));
	}
	buf_printf(&text, "]\n[network]\nnetwork_config_dir = ");
	json_put_string(&text, span_of(plan_text(plan, "%s/network", bundle)));
	return write_text(bundle, "containers.conf", &text);
}

static int write_storage(struct wall_plan *plan, const char *bundle, const char *runroot)
{
	cleanup(buf_done) struct buf text;

	buf_init(&text, CONFIG_BYTES_MAX);
	buf_printf(&text, "[storage]\ndriver = \"vfs\"\ngraphroot = ");
	json_put_string(&text, span_of(plan_text(plan, "%s/root", bundle)));
	buf_printf(&text, "\nrunroot = ");
	json_put_string(&text, span_of(runroot));
	return write_text(bundle, "storage.conf", &text);
}

static int podman_command(struct wall_plan *plan, const char *podman, const char *bundle, const char *run)
{
	const char *crun = wall_program(&plan->arena, "crun"), *empty = plan_text(plan, "%s/empty", bundle);
	const char *runroot = plan_text(plan, "%s/run", bundle);
	int fault = crun ? write_hook(plan, bundle) : -ENOENT;

	if (!fault)
		fault = write_settings(plan, bundle, run);
	if (!fault && strlen(runroot) > RUNROOT_BYTES_MAX) {
		fault = short_link_make(bundle, plan->short_link);
		runroot = plan_text(plan, "%s/run", plan->short_link);
	}
	if (!fault)
		fault = write_storage(plan, bundle, runroot);
	if (!fault && mkdir(empty, 0700) < 0 && errno != EEXIST)
		fault = -errno;
	if (fault)
		return fault;
	plan->loose = true; /* it exits when it is asked to end, and conmon is what stays */
	plan_words(plan,
		(const char *const[]){podman, "--root", plan_text(plan, "%s/root", bundle), "--runroot",
			runroot, "--tmpdir", plan_text(plan, "%s/tmp", bundle), "--hooks-dir",
			plan_text(plan, "%s/hooks", bundle), "--runtime", crun, "--runtime-flag",
			plan_text(plan, "root=%s/state", bundle), "--storage-driver", "vfs",
			"--events-backend", "none", "--cgroup-manager", "cgroupfs", "--log-level", "fatal",
			NULL});
	plan_words(plan,
		(const char *const[]){"run", "--rm", "--cgroups", "disabled", "--network", "none", "--ipc",
			"none", "--log-driver", "passthrough", "--security-opt", "apparmor=unconfined",
			"--security-opt", "seccomp=unconfined", "--security-opt", "label=disable",
			"--preserve-fds", plan_text(plan, "%zu", plan->bind_count + 2), "--rootfs", empty,
			WALL_PLACE "/shim", NULL});
	return 0;
}

int container_plan(struct wall_plan *plan, const char *shim, const struct process_spec *spec)
{
	const struct wall *wall = spec->wall;
	const char *runtime = wall_program(&plan->arena, wall->runtime ? wall->runtime : "crun");
	cleanup(buf_done) struct buf config;
	const char *bundle;
	int fault;

	buf_init(&config, CONFIG_BYTES_MAX);
	if (!runtime || !wall->run_path)
		return -ENOENT;
	bundle = plan_text(plan, "%s/wall", wall->run_path);
	grant_inside(plan);
	fault = check_places(plan);
	if (!fault)
		fault = put_config(&config, plan, shim, spec);
	if (!fault)
		fault = write_file(bundle, "config.json", buf_span(&config));
	if (!fault && wall_is_podman(runtime))
		return podman_command(plan, runtime, bundle, spec->run);
	put_command(plan, runtime, bundle, plan_text(plan, "stint-%s", spec->run));
	return fault;
}
