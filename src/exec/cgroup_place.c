#include "exec/cgroup_place.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/take.h"
#include "exec/tree/proc.h"

enum {
	CPU_PERIOD_US = 100000,
	END_EVERY_US = 10000, /* between two looks at what was killed */
	END_LOOKS = 200,
};

#define ASIDE "stint-worker" /* the leaf into which we step to open the controllers of ours */

static const char *const controllers[BOUND_COUNT] = {
	[BOUND_MEMORY] = "memory", [BOUND_PIDS] = "pids", [BOUND_CPU] = "cpu"};

static void fclose_at(FILE **file)
{
	if (*file)
		fclose(*file);
}

/* ---- where we are ------------------------------------------------------------------------------------------------- */

/* One word of a list; "" is the only word of an empty one. cpu is not in cpuacct. */
static bool has_word(const char *list, const char *separators, const char *word)
{
	size_t len = strlen(word);

	if (!len)
		return !list[0];
	for (const char *at = list; *at; at += strspn(at, separators)) {
		size_t size = strcspn(at, separators);
		if (size == len && strncmp(at, word, len) == 0)
			return true;
		at += size;
	}
	return false;
}

/* Our own path within the hierarchy that has this controller ("" is the second version's). */
static bool own_path(const char *controller, char *ret_path, size_t room)
{
	cleanup(fclose_at) FILE *file = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX];

	while (file && fgets(line, sizeof line, file)) {
		char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
		if (!path)
			continue;
		*names++ = 0;
		*path++ = 0;
		path[strcspn(path, "\n")] = 0;
		if (has_word(names, ",", controller))
			return (size_t)snprintf(ret_path, room, "%s", path) < room;
	}
	return false;
}

/* Where that hierarchy is mounted, and which part of it. The fields of mountinfo: 4 root, 5 mount point, after " - "
 * type, source, options. */
static bool mounted(const char *type, const char *option, char *ret_root, char *ret_point, size_t room)
{
	cleanup(fclose_at) FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[PATH_MAX], root[1024], point[1024], found[64], options[1024];

	while (file && fgets(line, sizeof line, file)) {
		const char *rest = strstr(line, " - ");
		if (!rest || sscanf(line, "%*s %*s %*s %1023s %1023s", root, point) != 2 ||
			sscanf(rest + 3, "%63s %*s %1023s", found, options) != 2)
			continue;
		if (strcmp(found, type) == 0 && (!option[0] || has_word(options, ",", option)))
			return (size_t)snprintf(ret_root, room, "%s", root) < room &&
				(size_t)snprintf(ret_point, room, "%s", point) < room;
	}
	return false;
}

static bool own_directory(const char *type, const char *controller, char path[CGROUP_PATH_BYTES])
{
	char own[CGROUP_PATH_BYTES], root[CGROUP_PATH_BYTES], point[CGROUP_PATH_BYTES];
	size_t skip, end;

	if (!own_path(controller, own, sizeof own) || !mounted(type, controller, root, point, sizeof own))
		return false;
	skip = strcmp(root, "/") == 0
		? 0
		: strlen(root); /* a part of the hierarchy: our path counts from there */
	if (strncmp(own, root, skip) != 0)
		return false;
	end = strlen(own);
	if (!controller[0] && end >= sizeof ASIDE && strcmp(own + end - sizeof ASIDE + 1, ASIDE) == 0)
		own[end - sizeof ASIDE] = 0; /* we have stepped aside: ours is the one above */
	int len = snprintf(path, CGROUP_PATH_BYTES, "%s%s", point, strcmp(own, "/") == 0 ? "" : own + skip);
	return len > 0 && len < CGROUP_PATH_BYTES;
}

/* May we make a leaf there, and move our children from here into it? */
static bool usable(const char *place)
{
	char path[CGROUP_PATH_BYTES], procs[CGROUP_PATH_BYTES + 16], run[32];
	int fd;

	snprintf(procs, sizeof procs, "%s/cgroup.procs", place);
	snprintf(run, sizeof run, "probe-%d", (int)getpid());
	if (access(procs, W_OK) < 0 || cgroup_make(place, run, path, &fd) < 0)
		return false;
	close(fd);
	return cgroup_remove(path) == 0;
}

/* ---- bounds -------------------------------------------------------------------------------------------------------- */

static bool list_has(const char *place, const char *name, const char *word)
{
	char path[CGROUP_PATH_BYTES + 32], text[1024];

	snprintf(path, sizeof path, "%s/%s", place, name);
	return proc_text_read(AT_FDCWD, path, text, sizeof text) > 0 && has_word(text, " \n", word);
}

/* Is nobody but us in it? Also if it is not there. */
static bool is_ours_alone(const char *place, const char *leaf)
{
	char path[CGROUP_PATH_BYTES + 64], line[32];
	bool alone = true;

	snprintf(path, sizeof path, "%s%s/cgroup.procs", place, leaf);
	cleanup(fclose_at) FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file))
		alone &= strtol(line, NULL, 10) == getpid();
	return alone;
}

/* May its controllers be opened? The root of all has no such rule, nor the file that the others have. */
static bool may_be_opened(const char *place)
{
	char path[CGROUP_PATH_BYTES + 32];

	snprintf(path, sizeof path, "%s/cgroup.type", place);
	if (access(path, F_OK) < 0)
		return true;
	snprintf(path, sizeof path, "%s/cgroup.subtree_control", place);
	return is_ours_alone(place, "") && access(path, W_OK) == 0;
}

/* Is nobody but us in this cgroup? The root of a hierarchy is everybody's. A shim is in the cgroup of its worker, so if we
 * are alone no shim of a predecessor lives. */
static bool is_own(const char *place)
{
	char parent[CGROUP_PATH_BYTES + 32];

	snprintf(parent, sizeof parent, "%s/../cgroup.procs", place);
	return access(parent, F_OK) == 0 && is_ours_alone(place, "") && is_ours_alone(place, "/" ASIDE);
}

static void look_at_bound(struct cgroup_place *place, enum bound bound)
{
	const char *name = controllers[bound];
	char *path = place->bounds[bound], *why = place->why_not[bound];

	if (place->kind == CGROUP_V2 && list_has(place->tree, "cgroup.controllers", name)) {
		place->closed[bound] = !list_has(place->tree, "cgroup.subtree_control", name);
		if (!place->closed[bound] || may_be_opened(place->tree))
			memcpy(path, place->tree, CGROUP_PATH_BYTES);
		else
			snprintf(why, BOUND_REASON_BYTES,
				"other processes are in the cgroup %.150s, which keeps its %s controller "
				"closed; run the worker as a service of its own, with Delegate=yes under systemd",
				place->tree, name);
		return;
	}
	if (own_directory("cgroup", name, path) && usable(path))
		return;
	path[0] = 0;
	snprintf(why, BOUND_REASON_BYTES,
		"the %s controller of cgroups was not given to this worker%s%.150s; run it as a service, with "
		"Delegate=yes under systemd, or as root",
		name, place->tree[0] ? ": its cgroup is " : "", place->tree);
}

void cgroup_look(struct cgroup_place *ret_place)
{
	struct cgroup_place place = {.kind = CGROUP_NONE};

	if (own_directory("cgroup2", "", place.tree) && usable(place.tree))
		place.kind = CGROUP_V2;
	else if (own_directory("cgroup", "freezer", place.tree) && usable(place.tree))
		place.kind = CGROUP_V1;
	else
		place.tree[0] = 0;
	place.own = place.tree[0] && is_own(place.tree);
	for (int bound = 0; bound < BOUND_COUNT; bound++)
		look_at_bound(&place, (enum bound)bound);
	*ret_place = place;
}

static int step_aside(int tree)
{
	if (mkdirat(tree, ASIDE, 0755) < 0 && errno != EEXIST)
		return -errno;
	cleanup(close_at) int aside = openat(tree, ASIDE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return aside < 0 ? -errno : cgroup_enter(aside);
}

static int open_bound(struct cgroup_place *place, enum bound bound)
{
	char word[16];
	int fault;

	cleanup(close_at) int tree = open(place->tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tree < 0)
		return -errno;
	snprintf(word, sizeof word, "+%s", controllers[bound]);
	fault = cgroup_write(tree, "cgroup.subtree_control", word);
	if (fault == -EBUSY) {
		fault = step_aside(tree);
		if (!fault)
			fault = cgroup_write(tree, "cgroup.subtree_control", word);
	}
	if (!fault)
		place->closed[bound] = false;
	return fault;
}

int cgroup_open_bounds(struct cgroup_place *place, unsigned bounds, char *complaint, size_t room)
{
	for (int bound = 0; bound < BOUND_COUNT; bound++) {
		int fault = 0;
		if (!(bounds >> bound & 1))
			continue;
		if (place->bounds[bound][0] && place->closed[bound])
			fault = open_bound(place, (enum bound)bound);
		if (fault || !place->bounds[bound][0]) {
			if (fault)
				snprintf(complaint, room,
					"the %s controller of cgroup %s cannot be opened: %s",
					controllers[bound], place->tree, strerror(-fault));
			else
				snprintf(complaint, room, "%s", place->why_not[bound]);
			return -EOPNOTSUPP;
		}
	}
	/* Once we have stepped aside the rest costs nothing. */
	if (bounds && place->closed[BOUND_PIDS] && place->bounds[BOUND_PIDS][0])
		open_bound(place, BOUND_PIDS);
	return 0;
}

/* ---- the leaves of a process -------------------------------------------------------------------------------------- */

static int put_number(int fd, const char *name, uint64_t number)
{
	char text[32];

	snprintf(text, sizeof text, "%" PRIu64, number);
	return cgroup_write(fd, name, text);
}

/* Without swap: what is written out is memory, too. Where it is not counted it is at least not used. */
static int wall_memory(int fd, bool second, uint64_t bytes)
{
	int fault = put_number(fd, second ? "memory.max" : "memory.limit_in_bytes", bytes);

	if (fault)
		return fault;
	if (second) {
		put_number(fd, "memory.swap.max", 0);
		put_number(fd, "memory.oom.group", 1);
	} else if (put_number(fd, "memory.memsw.limit_in_bytes", bytes) < 0) {
		put_number(fd, "memory.swappiness", 0);
	}
	return 0;
}

static int wall_cpu(int fd, bool second, uint64_t milli)
{
	uint64_t quota_us = milli * CPU_PERIOD_US / 1000;
	char text[64];

	snprintf(text, sizeof text, "%" PRIu64 " %d", quota_us, CPU_PERIOD_US);
	if (second)
		return cgroup_write(fd, "cpu.max", text);
	int fault = put_number(fd, "cpu.cfs_period_us", CPU_PERIOD_US);
	return fault ? fault : put_number(fd, "cpu.cfs_quota_us", quota_us);
}

static int put_bound(int fd, bool second, enum bound bound, const struct limits *limits)
{
	switch (bound) {
	case BOUND_MEMORY:
		return wall_memory(fd, second, limits->memory_bytes);
	case BOUND_PIDS:
		return put_number(fd, "pids.max", limits->tasks);
	case BOUND_CPU:
		return wall_cpu(fd, second, limits->cpu_milli);
	case BOUND_COUNT:
		break;
	}
	return -EINVAL;
}

/* The leaf beneath that place; it is made if it does not exist. Two bounds may share a hierarchy. */
static int leaf_in(const char *place, const char *run, struct cgroup_leaves *leaves, int *ret_fd)
{
	size_t len = strlen(place);
	uint32_t i = 0;

	while (i < leaves->count &&
		(strncmp(leaves->paths[i], place, len) != 0 || strchr(leaves->paths[i] + len + 1, '/')))
		i++;
	if (i == leaves->count) {
		assert(i < CGROUP_LEAVES_MAX); /* the tree's, and one for each bound */
		int fault = cgroup_make(place, run, leaves->paths[i], &leaves->fds[i]);
		if (fault)
			return fault;
		leaves->count++;
	}
	*ret_fd = leaves->fds[i];
	return 0;
}

static int add_bound(const struct cgroup_place *place, const char *run, enum bound bound,
	const struct limits *limits, struct cgroup_leaves *leaves)
{
	bool second = place->kind == CGROUP_V2 && strcmp(place->bounds[bound], place->tree) == 0;
	int fd, fault;

	if (!place->bounds[bound][0] || place->closed[bound])
		return -EOPNOTSUPP;
	leaves->bounded = true;
	leaves->counts_tasks |= bound == BOUND_PIDS;
	fault = leaf_in(place->bounds[bound], run, leaves, &fd);
	return fault ? fault : put_bound(fd, second, bound, limits);
}

int cgroup_make_leaves(const struct cgroup_place *place, const char *run, const struct limits *limits,
	struct cgroup_leaves *ret_leaves)
{
	struct cgroup_leaves leaves = {0};
	unsigned needed = limits_bounds(limits);
	int fault = 0, fd;

	if (place->kind != CGROUP_NONE)
		fault = leaf_in(place->tree, run, &leaves, &fd);
	if (limits->tasks != LIMIT_UNCHANGED && place->bounds[BOUND_PIDS][0] && !place->closed[BOUND_PIDS])
		needed |= 1u << BOUND_PIDS;
	for (int bound = 0; bound < BOUND_COUNT && !fault; bound++)
		if (needed >> bound & 1)
			fault = add_bound(place, run, (enum bound)bound, limits, &leaves);
	if (fault) {
		cgroup_leaves_remove(&leaves);
		cgroup_leaves_close(&leaves);
		return fault;
	}
	*ret_leaves = leaves;
	return 0;
}

void cgroup_leaves_close(struct cgroup_leaves *leaves)
{
	for (uint32_t i = 0; i < leaves->count; i++) {
		close_at(&leaves->fds[i]);
		leaves->fds[i] = -1;
	}
}

void cgroup_leaves_remove(const struct cgroup_leaves *leaves)
{
	for (uint32_t i = 0; i < leaves->count; i++)
		cgroup_remove(leaves->paths[i]);
}

/* The kernel ends all that is in it in one stroke; then it can be removed. */
static void end_leaf(const char *path)
{
	cleanup(close_at) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int look = 0; fd >= 0 && look < END_LOOKS; look++) {
		cgroup_signal(fd, path, SIGKILL);
		if (cgroup_remove(path) != -EBUSY)
			return;
		usleep(END_EVERY_US);
	}
}

static void end_leaves(const char *place)
{
	char path[CGROUP_PATH_BYTES + 256];
	DIR *dir = opendir(place);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "stint-", 6) != 0 || strcmp(entry->d_name, ASIDE) == 0)
			continue;
		snprintf(path, sizeof path, "%s/%s", place, entry->d_name);
		end_leaf(path);
	}
	if (dir)
		closedir(dir);
}

void cgroup_sweep_place(const struct cgroup_place *place)
{
	if (place->own)
		end_leaves(place->tree);
	if (place->tree[0])
		cgroup_sweep(place->tree);
	for (int bound = 0; bound < BOUND_COUNT; bound++)
		if (place->bounds[bound][0] && strcmp(place->bounds[bound], place->tree) != 0)
			cgroup_sweep(place->bounds[bound]);
}

void cgroup_remove_of(const char *run)
{
	char place[CGROUP_PATH_BYTES], path[CGROUP_PATH_BYTES + 128];

	for (int bound = 0; bound < BOUND_COUNT; bound++) {
		if (!own_directory("cgroup", controllers[bound], place))
			continue;
		snprintf(path, sizeof path, "%s/stint-%.100s", place, run);
		cgroup_remove(path);
	}
}
