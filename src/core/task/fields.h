/*
 * Every field of a task, once. What packs, stores, compares or copies tasks field by field follows from these lists: the
 * memory (store/index), the row (store/sqlite/task_rest.c), events and baselines (store/record), a claim that changed.
 *
 *   X(name, column, row, memory)
 *     column   the bit of the field in the record of an event; below 0: events do not tell it. Stored: a bit keeps its meaning,
 *              a new field gets the next one.
 *     row      how the row keeps it: OWN, as a column of its own; PLAIN, as a number; AFTER, as a number counted from
 *              the creation, because moments mostly lie near it; FLAGS, as bits of the flags. Stored: the order of these
 *              numbers is that of the lists.
 *     memory   where the index keeps it: COMMON, with every task; RARE, with the few that have one; NOWHERE
 *
 * The numbers of the row are, in this order: TASK_FIELDS_FIRST, the flags as one, TASK_FIELDS_SECOND, CLAIM_FIELDS, the
 * flags of the claim as one, TASK_FIELDS_THIRD, TASK_FIELDS_FOURTH; then, if any of these or of the next is not 0, TASK_FIELDS_FIFTH;
 * then, if any of them is not 0, TASK_FIELDS_SIXTH. New ones are appended as lists of their own.
 */
#pragma once

// clang-format off
#define TASK_FIELDS_OWN(X) \
	X(state,            0, OWN,   COMMON)  \
	X(queue,            9, OWN,   COMMON)  \
	X(priority,        10, OWN,   COMMON)

#define TASK_FIELDS_FIRST(X) \
	X(version,         -1, PLAIN, COMMON)  \
	X(created_ms,      11, PLAIN, COMMON)  \
	X(updated_ms,      -2, AFTER, NOWHERE) \
	X(ready_at_ms,      5, AFTER, COMMON)  \
	X(owner,           14, PLAIN, COMMON)

#define TASK_FIELDS_SECOND(X) \
	X(requires,        15, PLAIN, COMMON)  \
	X(executor,        16, PLAIN, COMMON)  \
	X(timeout_ms,      12, PLAIN, COMMON)  \
	X(max_attempts,    13, PLAIN, COMMON)  \
	X(start_by_ms,     19, PLAIN, RARE)    \
	X(finish_by_ms,    20, PLAIN, RARE)    \
	X(attempt,          2, PLAIN, COMMON)  \
	X(spent,            6, PLAIN, COMMON)  \
	X(crashes,          3, PLAIN, COMMON)  \
	X(interruptions,    7, PLAIN, COMMON)  \
	X(open_parents,    17, PLAIN, COMMON)  \
	X(dead_parents,    18, PLAIN, COMMON)  \
	X(fence,            1, PLAIN, COMMON)  \
	X(claimant,        24, PLAIN, NOWHERE) /* with the claim, while there is one: see index.c */ \
	X(ended,            4, PLAIN, COMMON)  \
	X(code,             8, PLAIN, COMMON)

#define TASK_FIELDS_THIRD(X) \
	X(workflow,        26, PLAIN, RARE)    \
	X(stage,           27, PLAIN, RARE)    \
	X(gates,           28, PLAIN, RARE)    \
	X(gate_count,      29, PLAIN, RARE)    \
	X(gates_passed,    30, PLAIN, RARE)    \
	X(resume_host,     31, PLAIN, RARE)    \
	X(resume_until_ms, 32, PLAIN, RARE)

#define TASK_FIELDS_FOURTH(X) \
	X(charge,          -3, PLAIN, COMMON)

/* In a second part of the row, which only rows with one of them have. */
#define TASK_FIELDS_FIFTH(X) \
	X(credential,      41, PLAIN, RARE)    \
	X(group,           44, PLAIN, RARE)    \
	X(concurrency_key, 50, PLAIN, COMMON)  \
	X(subtask_of,      45, PLAIN, RARE)    \
	X(runs_anyway,     46, PLAIN, RARE)    \
	X(subtasks,        47, PLAIN, RARE)

/* In a third part, of rows that have one of them. */
#define TASK_FIELDS_SIXTH(X) \
	X(unique_until_ms, 52, PLAIN, RARE)    \
	X(superseded_by,   53, PLAIN, RARE)    \
	X(predecessor,     54, PLAIN, RARE)    \
	X(session_host,    55, PLAIN, RARE)    \
	X(begins_anew,     56, PLAIN, RARE)    \
	X(verdict_for,     57, PLAIN, RARE)    \
	X(verdict_action,  58, PLAIN, RARE)    \
	X(verdict_attempt, 59, PLAIN, RARE)

/* In the number `flags` of the row, above the flags: TASK_OCCURRENCE_SHIFT. */
#define TASK_FIELDS_IN_FLAGS(X) \
	X(occurrence,      40, FLAGS, RARE)

#define TASK_FIELDS(X) \
	TASK_FIELDS_OWN(X) TASK_FIELDS_FIRST(X) TASK_FIELDS_SECOND(X) TASK_FIELDS_THIRD(X) TASK_FIELDS_FOURTH(X) \
	TASK_FIELDS_FIFTH(X) TASK_FIELDS_SIXTH(X) TASK_FIELDS_IN_FLAGS(X)

/* X(name, column, bit): the bit is that of the number `flags` of the row and of the memory. */
#define TASK_FLAGS(X) \
	X(keyed,           21, 1) \
	X(has_parent,      22, 2) \
	X(named_id,        23, 4) \
	X(autonomous,      25, 8)
#define TASK_OCCURRENCE_SHIFT 8

/* The live claim: X(name, field, row), but its holder, whose text is in the row, and handed_again, which is in memory only. */
#define CLAIM_FIELDS(X) \
	X(clock,           clock,             PLAIN) \
	X(granted_ms,      lease.granted_ms,  PLAIN) \
	X(claimed_wall_ms, claimed_wall_ms,   AFTER) /* where there is a claim */ \
	X(deadline_ms,     lease.deadline_ms, PLAIN) \
	X(verify_at_ms,    verify_at_ms,      PLAIN) \
	X(run_until_ms,    run_until_ms,      PLAIN) \
	X(run_ms,          run_ms,            PLAIN) \
	X(asked_at_ms,     asked_at_ms,       PLAIN) \
	X(request,         request,           PLAIN)

/* X(name, bit); above these bits the same number has `reissued`. */
#define CLAIM_FLAGS(X) \
	X(named,    1) \
	X(stopping, 2) \
	X(reported, 4)
#define CLAIM_FLAG_BITS 3
// clang-format on
