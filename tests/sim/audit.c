#include "proof/check.h"
#include "sim/audit.h"

#include <errno.h>

#include "sim/sim.h"

enum {
	AUDIT_STEPS = 16,
	FOLD_STEPS = 64,
	LATE_MS = 1000,
};

struct audit {
	struct sim *sim;
	struct moment now;
	bool timely; /* a turn has just run: nothing may be overdue */
	uint32_t rows;
	int64_t last;
};

/* The first moment at which a lease may be called lost, as the simulator reckons. */
static int64_t lease_over_ms(const struct sim *sim, const struct lease *lease)
{
	const struct rules *rules = &sim->options.rules;
	const struct server *server = &sim->server;
	uint32_t window =
		lease->granted_ms < rules->resume_grace_ms ? lease->granted_ms : rules->resume_grace_ms;
	int64_t end_ms = lease->deadline_ms;

	if (end_ms < server->started_ms + rules->restart_grace_ms)
		end_ms = server->started_ms + rules->restart_grace_ms;
	if (server->woke_ms != INT64_MIN && end_ms < server->woke_ms + window)
		end_ms = server->woke_ms + window;
	return end_ms;
}

static void audit_lease(struct audit *audit, const struct task *task)
{
	const struct claim *claim = &task->claim;
	struct lease verification = {claim->verify_at_ms, audit->sim->options.rules.verify_after_ms};
	int64_t late_ms = audit->now.lease_ms - LATE_MS;

	if (task->claim.clock == CLOCK_CLAIM && lease_over_ms(audit->sim, &claim->lease) <= late_ms)
		sim_violate(audit->sim, "B7", task->seq, "its lease ended %lld ms ago",
			(long long)(audit->now.lease_ms - lease_over_ms(audit->sim, &claim->lease)));
	if (claim->verify_at_ms != 0 && lease_over_ms(audit->sim, &verification) <= late_ms)
		sim_violate(audit->sim, "B6", task->seq, "never confirmed, and not taken back");
}

static void audit_times(struct audit *audit, const struct task *task)
{
	int64_t late_ms = audit->now.wall_ms - LATE_MS;

	/* what this turn brought about, the next one looks at */
	if (task_state_is_final(task->state) || task->version > audit->sim->server.before)
		return;
	if (task->state == TASK_SCHEDULED && task->ready_at_ms <= late_ms)
		sim_violate(audit->sim, "B7", task->seq, "its time came and it is still scheduled");
	if (task->state == TASK_READY && task->resume_until_ms != 0 && task->resume_until_ms <= late_ms)
		sim_violate(audit->sim, "B7", task->seq, "still kept for the host that asked");
	if (task->claim.clock != 0)
		return;
	if (task->finish_by_ms != 0 && task->finish_by_ms <= late_ms)
		sim_violate(audit->sim, "B7", task->seq, "finishBy passed unnoticed");
	if (task->start_by_ms != 0 && task->attempt == 0 && task->start_by_ms <= late_ms)
		sim_violate(audit->sim, "B7", task->seq, "startBy passed unnoticed");
}

static int audit_row(void *context, const struct task *task, struct span holder)
{
	struct audit *audit = context;
	struct sim *sim = audit->sim;
	const struct model_task *known = model_task(&sim->model, task->seq);

	audit->rows++;
	audit->last = task->seq;
	if (!known || known->fold.task.state == TASK_NOWHERE) {
		sim_violate(sim, "A2", task->seq, "a row that no event explains");
		return -EPROTO;
	}
	const char *differs = fold_difference(&known->fold, task, holder);
	if (differs)
		sim_violate(sim, "A2", task->seq, "the events give another %s than the row has", differs);
	if (audit->timely && task->claim.clock != 0)
		audit_lease(audit, task);
	if (audit->timely)
		audit_times(audit, task);
	return sim->violation.found ? -EPROTO : 0;
}

static void audit_rows(struct sim *sim, bool timely)
{
	struct audit audit = {.sim = sim, .now = clocks_now(&sim->clock), .timely = timely};
	uint32_t rows;

	do {
		rows = audit.rows;
		int r = store_page_tasks(sim->server.store, audit.last, 256, audit_row, &audit);
		if (r < 0 && !sim->violation.found)
			sim_violate(sim, "A2", 0, "the rows cannot be read: %d", r);
	} while (!sim->violation.found && audit.rows > rows);
	if (!sim->violation.found && audit.rows != sim->model.existing)
		sim_violate(sim, "A2", 0, "%u rows, and the events know %u tasks", audit.rows,
			sim->model.existing);
}

static int audit_worker(void *context, struct span id, const struct worker *worker)
{
	struct audit *audit = context;
	const struct model_worker *known = model_worker(&audit->sim->model, id);

	if (worker->state == WORKER_UNKNOWN)
		return 0;
	if (!known || known->state != worker->state)
		sim_violate(audit->sim, "A2", 0, "the events give another state of %.*s", SPAN_ARGS(id));
	if (known && known->held != worker->held)
		sim_violate(audit->sim, "A2", 0, "%.*s holds %u tasks, the events say %u", SPAN_ARGS(id),
			worker->held, known->held);
	if (audit->timely && worker_is_alive(worker) &&
		lease_over_ms(audit->sim, &worker->lease) <= audit->now.lease_ms - LATE_MS)
		sim_violate(audit->sim, "B7", 0, "the lease of %.*s is over", SPAN_ARGS(id));
	return audit->sim->violation.found ? -EPROTO : 0;
}

static void audit_workers(struct sim *sim, bool timely)
{
	struct audit audit = {.sim = sim, .now = clocks_now(&sim->clock), .timely = timely};

	store_each_worker(sim->server.store, audit_worker, &audit);
}

static void audit_memory(struct sim *sim)
{
	char complaint[256] = "";

	if (store_check_memory(sim->server.store, complaint, sizeof complaint) < 0)
		sim_violate(sim, "A2", 0, "memory and rows: %s", complaint);
}

static void audit_fold(struct sim *sim)
{
	char complaint[256] = "";

	if (store_check_fold(sim->server.store, complaint, sizeof complaint) < 0)
		sim_violate(sim, "A2", 0, "events and rows: %s", complaint);
}

void audit_turn(struct sim *sim)
{
	struct server *server = &sim->server;

	if (sim->violation.found || sim->step < server->audited_step + AUDIT_STEPS)
		return;
	server->audited_step = sim->step;
	audit_rows(sim, !server->degraded && !server->full);
	audit_workers(sim, !server->degraded && !server->full);
	audit_memory(sim);
	if (sim->step < server->folded_step + FOLD_STEPS)
		return;
	server->folded_step = sim->step;
	audit_fold(sim);
}

void audit_all(struct sim *sim)
{
	if (sim->violation.found)
		return;
	audit_rows(sim, false);
	audit_workers(sim, false);
	audit_memory(sim);
	audit_fold(sim);
}
