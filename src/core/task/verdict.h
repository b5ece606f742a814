/*
 * Who decides how an attempt ended: its supervisor by what it saw, or the work itself by what it reported with the token of
 * its claim. spec/states.md, "By its report", has the rule as a table; verdict_weigh() is that table.
 */
#pragma once

#include "base/buf.h"
#include "core/task/task.h"

/* What a supervisor saw of the end; only the cases that the rule distinguishes. */
enum seen_end {
	SEEN_NOT_SAID,     /* the caller decides alone, whatever was reported */
	SEEN_EXIT,         /* an exit status and nothing else */
	SEEN_FAULT,        /* a crash, a time limit, an error as the last output, a failed check */
	SEEN_BUDGET_SPENT, /* a budget is spent, and no check has judged the work */
	SEEN_NOTHING_RUN,  /* nothing ran; or a budget is spent, and the checks did not pass */
};

/* The end of an attempt as it was reported. Spans are borrowed. */
struct ending {
	enum claim_end outcome; /* COMPLETE, FAIL, REVIEW, BLOCK, RELEASE or WAIT */
	struct failure failure; /* of FAIL and BLOCK */
	int64_t delay_ms;       /* of RELEASE */
	struct span data;       /* the result, or the error */
	struct span evidence;
	struct span note; /* for the event */
};

enum verdict {
	VERDICT_SEEN,     /* as the supervisor says */
	VERDICT_REPORTED, /* as the work reported */
	VERDICT_ASKED,    /* released: a question is open */
};

/* What a supervisor's report shows. `exited`: its failure is an exit status; `checked`: checks have judged the work. */
enum seen_end verdict_seen(enum claim_end outcome, const struct failure *failure, bool exited, bool checked);

/* `reported` is ENDED_NOT if the work said nothing; `asking`: a question of this claim is open. */
enum verdict verdict_weigh(enum seen_end seen, enum claim_end reported, bool asking);

/* The form in which a report is kept until the attempt ends. The faults of the buffer: -ENOMEM, -E2BIG. */
int ending_put(struct buf *out, const struct ending *ending);

/* -EPROTO: `kept` is not such a report. The spans are borrowed from it. */
int ending_read(struct span kept, struct ending *ret_ending);
