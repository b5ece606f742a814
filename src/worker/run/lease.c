/*
 * How long a run may go on without us: we may be stopped ourselves, and then its shim ends it in time
 * (exec/shim/deadline.h). The shim gets a lease when it starts a process, and a new one whenever we have reason to go on:
 *
 *	a heartbeat was accepted           for a lease from the sending of that beat on
 *	no answer, on the server's host    for a lease from now on: work goes on there while the server is away
 *	its claim was renewed              the same for a pass of run-once, which does not beat
 *	otherwise                          no new lease: after nine tenths of it we stop the run, and its shim does if we cannot
 *
 * A claim that no heartbeat has bound yet lives under a lease of its own besides, and ends with the first of the two.
 *
 *	├───────── nine tenths of the lease ─────────┼── TERM ────┼ KILL ──┤
 *	the lease counts from here      we stop it ──┘  its shim ─┘        └── somebody else may have the task
 */
#include "worker/run/parts.h"

#include "base/log.h"

enum { RESUME_MS = 30 * 1000 }; /* the server's window after a sleep of its machine, at the most */

/* Ours is the first word: of what is kept for stopping a quarter is over before the shim acts. */
static int64_t used_ms(int64_t lease_ms)
{
	return lease_ms - lease_spare_ms(lease_ms) / 4 * 3;
}

static struct process_lease lease_from(const struct run *run, int64_t from_ms, int64_t lease_ms)
{
	bool same_host = run->supervisor->options->same_host;

	return (struct process_lease){
		.until_ms = from_ms + used_ms(lease_ms),
		.grace_ms = (uint32_t)earliest(run->executor->grace_ms, lease_spare_ms(lease_ms) * 3 / 8),
		.window_ms = same_host ? (uint32_t)used_ms(earliest(lease_ms, RESUME_MS)) : 0,
	};
}

struct process_lease run_lease(struct run *run)
{
	const struct supervisor *supervisor = run->supervisor;
	int64_t from_ms, lease_ms;

	if (supervisor->once) {
		once_lease(supervisor->once, &from_ms, &lease_ms);
		return lease_from(run, from_ms, lease_ms);
	}
	struct process_lease of_claim = lease_from(run, run->claimed_ms, run->lease_ms);
	if (!heartbeat_lease(supervisor->heartbeat, &from_ms, &lease_ms))
		return of_claim;
	struct process_lease of_worker = lease_from(run, from_ms, lease_ms);
	run->bound = run->bound || heartbeat_is_bound(supervisor->heartbeat, span_of(run->task));
	if (run->bound || heartbeat_is_away(supervisor->heartbeat) || of_worker.until_ms < of_claim.until_ms)
		return of_worker;
	return of_claim;
}

bool run_is_past_lease(struct run *run)
{
	return worker_clock_ms() >= run_lease(run).until_ms;
}

void run_push(struct run *run)
{
	if (run->phase > RUN_STARTED || !run->executor)
		return;
	struct process_lease lease = run_lease(run);
	if (run_is_pooled(run))
		pool_job_push(&run->job, &lease);
	else if (run->process && process_lease(run->process, &lease))
		log_warn("its shim had been stopped; it goes on", log_cstr("task", run->task));
}

void run_heed_lapse(struct run *run, const struct process_end *end)
{
	if (!end->lapsed)
		return;
	/* its clocks may have told us to stop it since, which was too late */
	if (run->stop != STOP_LOST && run->stop != STOP_CANCELLED)
		run->stop = STOP_LAPSED;
	log_warn("its lease was not renewed in time, and its shim has ended it", log_cstr("task", run->task));
}
