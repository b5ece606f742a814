/*
 * Where the kernel lists the children of a task (CONFIG_PROC_CHILDREN, as the distributions have it) a tree costs as
 * much as it is large. Elsewhere every process of the machine is asked for its parent.
 *
 * Breadth first over a static list: this also runs when there is no memory left.
 */
#include "exec/tree/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/take.h"
#include "exec/tree/proc.h"

static void closedir_at(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

uint32_t tree_pids_read(int fd, pid_t *ret_pids, uint32_t most)
{
	uint32_t count = 0;
	char text[4096];
	ssize_t got;
	int pid = 0;

	while ((got = read(fd, text, sizeof text)) > 0)
		for (ssize_t i = 0; i < got; i++) {
			if (text[i] >= '0' && text[i] <= '9')
				pid = pid * 10 + text[i] - '0';
			else if (pid) {
				if (count < most)
					ret_pids[count++] = pid;
				pid = 0;
			}
		}
	return count;
}

/* -ENOENT: this kernel has no such lists, or the process has ended. */
static int children_listed(pid_t pid, pid_t *ret_pids, uint32_t most, uint32_t *ret_count)
{
	struct dirent *entry;
	char path[300];
	uint32_t count = 0;
	int found = 0;

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	cleanup(closedir_at) DIR *tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "/proc/%d/task/%s/children", (int)pid, entry->d_name);
		cleanup(close_at) int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		found = 1;
		count += tree_pids_read(fd, ret_pids + count, most - count);
	}
	*ret_count = count;
	return found ? 0 : -ENOENT;
}

static bool lists_exist(void)
{
	static int known = -1; /* it is the kernel's for good */

	if (known < 0)
		known = access("/proc/thread-self/children", R_OK) == 0;
	return known;
}

/* Call `each` for every process of the machine that /proc shows. */
static uint32_t every_process(bool (*each)(void *context, pid_t pid), void *context)
{
	struct dirent *entry;
	uint32_t count = 0;

	cleanup(closedir_at) DIR *proc = opendir("/proc");
	while (proc && (entry = readdir(proc)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			count += each(context, (pid_t)strtol(entry->d_name, NULL, 10));
	return count;
}

struct search {
	pid_t parent;
	pid_t *pids;
	uint32_t count, most;
};

static bool take_child(void *context, pid_t pid)
{
	struct search *search = context;
	struct proc_stat stat;

	if (search->count == search->most || proc_stat_read(pid, &stat) < 0 || stat.parent != search->parent)
		return false;
	search->pids[search->count++] = pid;
	return true;
}

uint32_t tree_children(pid_t pid, pid_t *ret_pids, uint32_t most)
{
	struct search search = {.parent = pid, .pids = ret_pids, .most = most};
	uint32_t count = 0;

	if (!lists_exist())
		return every_process(take_child, &search);
	children_listed(pid, ret_pids, most, &count);
	return count;
}

/* Open it and make sure: the number could have changed hands between the list and the pidfd. */
static bool signal_child(pid_t pid, pid_t parent, int signal)
{
	cleanup(close_at) int pidfd = pidfd_open_of(pid);
	struct proc_stat stat;

	if (pidfd < 0 || proc_stat_read(pid, &stat) < 0 || stat.parent != parent || stat.state == 'Z')
		return false;
	return pidfd_signal(pidfd, signal) == 0;
}

/* Everything beneath the root with who its parent is; the lists are good until the next call. */
static uint32_t list_tree(pid_t root, const pid_t **ret_pids, const pid_t **ret_parents)
{
	static pid_t pids[TREE_PIDS_MAX], parents[TREE_PIDS_MAX];
	uint32_t count = tree_children(root, pids, TREE_PIDS_MAX);

	for (uint32_t i = 0; i < count; i++)
		parents[i] = root;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t more = tree_children(pids[i], pids + count, TREE_PIDS_MAX - count);
		for (uint32_t j = 0; j < more; j++)
			parents[count + j] = pids[i];
		count += more;
	}
	*ret_pids = pids;
	*ret_parents = parents;
	return count;
}

uint32_t tree_signal(pid_t root, int signal)
{
	const pid_t *pids, *parents;
	uint32_t count = list_tree(root, &pids, &parents), reached = 0;

	for (uint32_t i = 0; i < count; i++)
		reached += signal_child(pids[i], parents[i], signal);
	return reached;
}

uint64_t tree_cpu_us(pid_t root)
{
	const pid_t *pids, *parents;
	uint32_t count = list_tree(root, &pids, &parents);
	long per_second = sysconf(_SC_CLK_TCK);
	struct proc_stat stat;
	uint64_t ticks = 0;

	for (uint32_t i = 0; i < count; i++)
		if (proc_stat_read(pids[i], &stat) == 0 && stat.parent == parents[i])
			ticks += stat.cpu_ticks;
	return ticks * 1000000 / (uint64_t)(per_second > 0 ? per_second : 100);
}

uint32_t tree_signal_known(pid_t root, uint64_t start, int signal)
{
	cleanup(close_at) int pidfd = pidfd_open_known(root, start);
	uint32_t reached;

	if (pidfd < 0)
		return 0;
	reached = tree_signal(root, signal);
	return reached + (pidfd_signal(pidfd, signal) == 0);
}

struct marked {
	const char *entry;
	int signal;
};

static bool signal_marked(void *context, pid_t pid)
{
	const struct marked *marked = context;
	struct proc_stat stat;

	if (pid == getpid() || !proc_has_env(pid, marked->entry))
		return false;
	cleanup(close_at) int pidfd = pidfd_open_of(pid);
	/* Again, now that nobody else can get the number. */
	if (pidfd < 0 || !proc_has_env(pid, marked->entry) || proc_stat_read(pid, &stat) < 0 ||
		stat.state == 'Z')
		return false;
	return pidfd_signal(pidfd, marked->signal) == 0;
}

uint32_t tree_signal_marked(const char *entry, int signal)
{
	struct marked marked = {entry, signal};

	return every_process(signal_marked, &marked);
}
