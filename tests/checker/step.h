/*
 * A step: one event of one task. Each rule looks at it, complains or not, and says what the columns are
 * afterwards where the event does not.
 */
#pragma once

#include "checker/fold.h"

struct step {
	struct checker *checker;
	const struct record *event;
	struct task *task;
	uint32_t kind;
	uint32_t from;
	uint32_t to;
	uint32_t holder; /* before; WORD_NONE = nobody */
	bool resumes;    /* the holder takes its own claim up again */
	int64_t after[COLUMN_COUNT];
};

static inline int64_t step_before(const struct step *step, enum key column)
{
	return step->task->column[column];
}

bool ck_state_is_final(uint32_t state);
bool ck_step_is_held_from(const struct step *step); /* a live claim stood before it */

/* The column must be that afterwards. */
int ck_step_expect(
	struct step *step, enum key column, int64_t value, const char *invariant, const char *sentence);

/* claim_rules.c */
int ck_rule_one_holder(struct step *step);   /* B1 */
int ck_rule_holder_acts(struct step *step);  /* B3, D7 */
int ck_rule_fence(struct step *step);        /* B2 */
int ck_rule_claimant(struct step *step);     /* A4 of workers, B9, B10, C3 */
int ck_rule_expiry(struct step *step);       /* B7 */
int ck_rule_verification(struct step *step); /* B6 */

/* budget_rules.c */
int ck_rule_attempt(struct step *step);       /* C1 */
int ck_rule_outcome(struct step *step);       /* C1 */
int ck_rule_spent(struct step *step);         /* C1, C2 */
int ck_rule_crashes(struct step *step);       /* C2, C5 */
int ck_rule_interruptions(struct step *step); /* C2 */
int ck_rule_time(struct step *step);          /* C4 */
