/*
 * What a decision may know besides the objects it is about: the rules in force, the moment, a random
 * number. The core never asks for any of these itself, so a day of leases is tested in a millisecond.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The configured limits, with the defaults of rules_default(). */
struct rules {
	uint32_t lease_min_ms;         /* worker.leaseMinMs */
	uint32_t lease_max_ms;         /* leases are clamped to [min, max] */
	uint32_t worker_lease_ms;      /* default lease of a worker */
	uint32_t claim_lease_ms;       /* first lease of a claim by a worker that beats */
	uint32_t claim_lease_plain_ms; /* first lease of a claim by any other worker */
	uint32_t verify_after_ms;      /* claim.verifyAfterMs */
	uint32_t restart_grace_ms;     /* restart.graceMs */
	uint32_t resume_grace_ms;  /* after suspend, stall or full disk: the lesser of this and the lease */
	bool reschedule_on_expiry; /* worker.rescheduleOnExpiry */
	uint32_t retry_base_ms;    /* retry.baseMs */
	uint32_t retry_max_ms;
	uint32_t crash_budget;        /* task.crashBudget */
	uint32_t interruption_budget; /* host trouble in a row without progress */
	uint32_t timeout_ms;          /* default of a task */
	uint32_t timeout_max_ms;
	uint32_t max_attempts; /* default of a task */
	uint32_t quarantine_crashes;
	uint32_t quarantine_window_ms;
	uint32_t quarantine_trial_ms; /* quarantine.trialAfterMs; 0 = never */
	uint32_t executor_missing_ms; /* executor.missingAfterMs; 0 = never */
	uint32_t ask_park_ms;   /* ask.parkMs: how long a process may wait for an answer; 0 = for ever */
	uint32_t ask_resume_ms; /* how long after the answer only the host that asked may claim the task */
	uint32_t principal_registrations; /* limits.registrationsPerMinute: of one principal; 0 = no limit */
	uint32_t slot_registrations; /* limits.slotRegistrationsPerMinute: of one slot or id; 0 = no limit */
	uint32_t attempt_progress;   /* limits.progressPerMinute: of one attempt; 0 = no limit */
	uint32_t principal_workers;  /* limits.workers: alive, of one principal; 0 = no limit */
	uint32_t open_tasks;         /* quota.openTasks: of one principal that is no operator; 0 = no limit */
	uint32_t open_kib;           /* quota.openBytes: of these tasks; 0 = no limit */
	int64_t queue_age_ms;        /* queue.ageMs: see task_line_ms(); 0 = priority goes before age */
	uint32_t task_children;      /* task.childrenMax: subtasks of one task */
	uint32_t task_tree;          /* task.treeMax: tasks in a tree, with its root */
	uint32_t hold_release_per_minute; /* hold.releasePerMinute: claims of an account that works again */
	uint32_t log_keep_bytes;          /* task.logKeepBytes: of one attempt */
	uint32_t log_bytes_per_s;         /* task.logBytesPerSecond */
};

struct rules rules_default(void);

/* Two clocks. `wall_ms` is what people see (epoch); `lease_ms` counts time since boot, suspend included,
 * and cannot be set: leases live on it alone. */
struct moment {
	int64_t wall_ms;
	int64_t lease_ms;
};

/* Windows in which nobody may be called lost because the server itself was away. On the lease clock. */
struct grace {
	int64_t started_ms; /* this server began to serve */
	int64_t woke_ms;    /* last return from suspend, stall or full disk; INT64_MIN if never */
	bool frozen;        /* the store cannot be written: nobody expires at all */
};

struct given {
	const struct rules *rules;
	struct moment now;
	struct grace grace;
	uint32_t random;     /* for jitter */
	uint64_t next_token; /* for a heartbeat: never issued before, in any run of the server */
	uint32_t generation; /* of the store; rises with each restore */
	bool disarmed;       /* execution is disarmed: nothing is claimed */
};
