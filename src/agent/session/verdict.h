/*
 * What became of an attempt of an agent, from three witnesses: its last word, how its process ended, and what we intended.
 *
 *	stopped by us, budget of the process, never started   as any process (attempt/verdict.h)
 *	last word good, with a report or a change             complete, its last words are the result
 *	last word good, neither, after a nudge                review
 *	last word good, every tool call failed                a failed attempt
 *	last word good, a check failed                        CHECK_FAILED
 *	last word good, and it cannot be delivered            review
 *	last word bad                                         a failure with its code
 *	a budget is used up, and all checks pass              complete: the work in hand is good
 *	a budget is used up, and a person was asked for more  released: the answer starts the next attempt
 *	no last word, and it ended by itself                  a crash
 *	it was to go on with a session, and said nothing      released: the next attempt begins anew
 */
#pragma once

#include "agent/session/session.h"
#include "attempt/verdict.h"

struct session_end {
	const struct agent_session *session;
	const struct attempt_end *attempt;
	bool worked;         /* it has reported, or something has changed */
	const char *account; /* of the executor; NULL: none */
	const char *over;    /* the budget that was used up, as "usd"; NULL: none */
	double over_limit;
	bool asked_for_budget; /* a person was asked whether it may have more */
	const char *check_code,
		*check_failed; /* of a check that failed: its code, and what it said; NULL: none did */
	bool checks_passed;    /* all of them */
	const char
		*undelivered; /* the work is done, and this kept it from being delivered; NULL: nothing did */
	struct span evidence; /* JSON; empty: none */
};

/* The verb and the members of the body besides workerId and fence. -ENOMEM, -E2BIG. */
int session_judge(const struct session_end *end, enum report_verb *ret_verb, struct buf *members);

/* Did it go well, so that checks are worth running? */
bool session_went_well(const struct session_end *end);

/* What the processes of an attempt have used so far. */
struct session_spending {
	struct session_usage usage;
	int64_t turns, tool_calls;
};

/* {"inputTokens":…}; tokens and money that are not known are left out. `model` may be empty. */
void session_put_usage(struct buf *out, const struct session_spending *spending, const char *model);
