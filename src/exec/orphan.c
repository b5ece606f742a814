/*
 * In rounds: who is there? A shim that lives is left alone while it may still be at work; it knows its tree better than
 * we do. What has no shim is killed at once. The last round finds nobody.
 */
#include "exec/orphan.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/take.h"
#include "exec/cgroup_place.h"
#include "exec/tree/proc.h"
#include "exec/request/request.h"
#include "exec/tree/tree.h"

enum { ROUND_MS = 25 };

/* The shim, if it lives: it has its time, then it is killed like everything else. */
static uint32_t look_at_shim(const struct process_identity *record, bool out_of_time)
{
	cleanup(close_at) int pidfd = pidfd_open_known(record->shim, record->shim_start);

	if (pidfd < 0)
		return 0;
	if (out_of_time)
		pidfd_signal(pidfd, SIGKILL);
	return 1;
}

static uint32_t end_cgroup(const struct process_identity *record)
{
	uint32_t reached = 0;

	if (record->cgroup[0]) {
		cleanup(close_at) int fd = open(record->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			reached = cgroup_signal(fd, record->cgroup, SIGKILL);
		/* the last of them may be on its way out, and not listed any more */
		if (cgroup_remove(record->cgroup) == -EBUSY && reached == 0)
			reached = 1;
	}
	if (reached == 0 && record->run[0])
		cgroup_remove_of(record->run);
	return reached;
}

static uint32_t end_marked(const struct process_identity *record)
{
	char entry[sizeof PROCESS_MARKER + 1 + PROCESS_RUN_BYTES_MAX + 1];

	snprintf(entry, sizeof entry, PROCESS_MARKER "=%s", record->run);
	return record->run[0] ? tree_signal_marked(entry, SIGKILL) : 0;
}

/* How many of a record are there; those without a shim are killed. */
static uint32_t end_record(const struct process_identity *record, const char *boot, bool out_of_time)
{
	bool known = strcmp(record->boot, boot) == 0; /* pids and start times of this boot */
	uint32_t there = known ? look_at_shim(record, out_of_time) : 0;

	if (there)
		return there;
	if (known) {
		there += tree_signal_known(record->main, record->main_start, SIGKILL);
		there += end_cgroup(record);
	}
	if (known || !record->boot[0])
		there += end_marked(record);
	return there;
}

int orphans_end(
	const struct process_identity *records, size_t count, int timeout_ms, struct orphans_left *ret_left)
{
	int64_t began_ms = monotonic_ms(), now_ms = began_ms;
	struct orphans_left left = {0};
	char boot[IDENTITY_BOOT_BYTES];
	int fault = boot_id_read(boot, sizeof boot);

	if (fault)
		return fault;
	for (bool first = true;; first = false) {
		left.left = 0;
		for (size_t i = 0; i < count; i++)
			left.left += end_record(&records[i], boot, now_ms - began_ms >= SHIM_ORPHAN_MS);
		if (first)
			left.found = left.left;
		now_ms = monotonic_ms();
		if (left.left == 0 || now_ms - began_ms >= timeout_ms)
			break;
		poll(NULL, 0, ROUND_MS);
	}
	*ret_left = left;
	return 0;
}
