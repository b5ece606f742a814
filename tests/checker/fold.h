/*
 * What the checker remembers of a history, and the parts that judge it. Only the files of the checker
 * include this. Their functions begin with ck_, because the checker may be linked beside the product.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checker/checker.h"
#include "checker/names.h"
#include "checker/published.h"
#include "checker/record.h"
#include "checker/words.h"

enum {
	SLICE_LINES = 5, /* of each task, for the complaint */
};

#define FENCE_GENERATION_STEP INT64_C(1000000000000)

struct limits {
	int64_t retry_base_ms;
	int64_t retry_max_ms;
	int64_t retry_jitter_percent;
	int64_t crash_budget;
	int64_t interruption_budget;
	int64_t verify_after_ms;
	int64_t verify_slack_ms;
	int64_t restart_grace_ms;
};

struct line {
	char *text;
	size_t len;
	size_t room;
};

struct task {
	bool exists;
	bool was_created; /* ever; stays after a purge */
	bool was_called_off;
	int64_t column[COLUMN_COUNT];
	int64_t last_seq;
	int64_t baseline_fence; /* claims up to it are not in this history */
	int64_t highest_fence;  /* also of what a restore took back */
	int64_t ready_wall_ms;  /* when it became ready */
	uint32_t lease_boot;    /* the boot its claim's lease was last granted in */
	int64_t granted_at_ms;
	int64_t granted_ms;   /* 0 = not known */
	int64_t verify_by_ms; /* 0 = confirmed, or never verified */
	uint64_t outcomes;    /* bit per word: how claims of it have ended */
	uint32_t progressed;
	uint32_t listed; /* round of the last S line */
	struct line slice[SLICE_LINES];
	uint32_t slice_next;
};

enum worker_life { WORKER_STRANGE, WORKER_ALIVE, WORKER_QUIET, WORKER_TERMINATING, WORKER_GONE };

struct worker {
	enum worker_life life;
	bool lease_ran_out;       /* that is why it is gone */
	int64_t ran_out_ms;       /* … and when */
	int64_t renewed_until_ms; /* what it was told by the answer to a beat, counted from before it asked */
	int64_t max;              /* 0 = no limit */
	int64_t held;
	uint32_t slot;
};

struct claim {
	uint32_t task;
	int64_t fence; /* 0 = this place is free */
	uint32_t worker;
	uint32_t outcome; /* WORD_NONE while it lives */
	uint32_t progressed;
	uint32_t progress_acked;
	bool taken_alive; /* it was lost although its holder was not */
	bool unbinds;     /* … who had asked for that, if it was heard */
};

/* An acknowledgement that no event explains yet. */
struct ack {
	struct record record;
	char *line; /* owned */
};

struct checker {
	struct names names; /* begins with the words */
	struct names keys;
	struct published published;
	struct limits limits;

	struct task **tasks; /* by name; NULL = never heard of */
	uint32_t tasks_room;
	struct worker **workers; /* by name */
	uint32_t workers_room;
	bool *quarantined; /* by name of the slot */
	uint32_t quarantined_room;
	struct claim *claims; /* hash table */
	uint32_t claims_count;
	uint32_t claims_room;
	struct ack *acks;
	uint32_t acks_count;
	uint32_t acks_room;

	bool started; /* an event was read */
	bool rewound; /* a restore took events back: baselines follow */
	bool partial; /* the history began with a baseline */
	int64_t seq;
	uint64_t events;
	bool generation_known;
	int64_t generation;
	bool start_known;
	uint32_t start_boot;
	int64_t start_ms;
	uint32_t boot;
	int64_t lease_ms;
	uint32_t round; /* of S lines */

	const char *line; /* being judged */
	size_t line_len;
	int verdict;
	char *complaint; /* owned */
};

/* checker.c: ck_complain() sets the verdict and tells the last lines of that task (WORD_NONE: of none). */
__attribute__((format(printf, 4, 5))) int ck_complain(
	struct checker *checker, const char *invariant, uint32_t task, const char *format, ...);
struct task *ck_task_named(struct checker *checker, uint32_t name);
struct worker *ck_worker_named(struct checker *checker, uint32_t name);
const char *ck_text(const struct checker *checker, int64_t name);

/* Each judges one record and folds it in; a verdict. */
int ck_task_event(struct checker *checker, const struct record *event);                 /* task_rules.c */
int ck_worker_event(struct checker *checker, const struct record *event);               /* worker_rules.c */
int ck_slot_event(struct checker *checker, const struct record *event);                 /* worker_rules.c */
int ck_server_event(struct checker *checker, const struct record *event);               /* worker_rules.c */
int ck_baseline_record(struct checker *checker, const struct record *record);           /* table_rules.c */
int ck_state_record(struct checker *checker, const struct record *record);              /* table_rules.c */
int ck_quiet_point(struct checker *checker);                                            /* table_rules.c */
int ck_client_record(struct checker *checker, const struct record *record);             /* client_rules.c */
int ck_client_finish(struct checker *checker);                                          /* client_rules.c */
int ck_verification_is_late(struct checker *checker, uint32_t name, struct task *task); /* claim_rules.c */

/* claim_rules.c: what a claim is judged by. */
bool ck_slot_is_quarantined(const struct checker *checker, uint32_t slot);
bool ck_before_restart_grace(const struct checker *checker, const struct record *event);

/* client_rules.c: the claims of all tasks, by task and fence. */
struct claim *ck_claim_find(struct checker *checker, uint32_t task, int64_t fence);
void ck_claim_begin(struct checker *checker, uint32_t task, int64_t fence, uint32_t worker);
void ck_claim_end(struct checker *checker, uint32_t task, int64_t fence, uint32_t outcome);
int ck_lease_is_kept(struct checker *checker, uint32_t worker);
