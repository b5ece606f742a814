#include "core/task/given.h"

#define SECONDS(n) ((n) * 1000u)
#define MINUTES(n) ((n) * 60u * 1000u)

struct rules rules_default(void)
{
	return (struct rules){
		.lease_min_ms = SECONDS(5),
		.lease_max_ms = MINUTES(24 * 60),
		.worker_lease_ms = SECONDS(60),
		.claim_lease_ms = SECONDS(60),
		.claim_lease_plain_ms = MINUTES(15),
		.verify_after_ms = MINUTES(2),
		.restart_grace_ms = SECONDS(60),
		.resume_grace_ms = SECONDS(30),
		.reschedule_on_expiry = true,
		.retry_base_ms = SECONDS(10),
		.retry_max_ms = MINUTES(5),
		.crash_budget = 3,
		.interruption_budget = 10,
		.timeout_ms = MINUTES(30),
		.timeout_max_ms = MINUTES(120),
		.max_attempts = 3,
		.quarantine_crashes = 3,
		.quarantine_window_ms = SECONDS(60),
		.quarantine_trial_ms = MINUTES(10),
		.principal_registrations = 20000,
		.slot_registrations = 20,
		.attempt_progress = 600,
		.principal_workers = 20000,
		.open_tasks = 100000,
		.task_children = 100,
		.task_tree = 1000,
		.open_kib = 1 << 20,
		.executor_missing_ms = MINUTES(5),
		.ask_park_ms = MINUTES(2),
		.ask_resume_ms = MINUTES(10),
		.hold_release_per_minute = 30,
		.log_keep_bytes = 1 << 20,
		.log_bytes_per_s = 1 << 20,
	};
}
