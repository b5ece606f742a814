/*
 * The checker: reads a history of stint line by line and says whether it keeps the promises.
 *
 * It shares no code with the product, so that a mistake there is not made again here. What it knows of the
 * rules is the published table of moves in spec/states.md and the invariants written in this directory;
 * history.md says how a history is written and which invariant is judged from what. One pass, a constant
 * amount of work per line.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct checker;

enum checker_verdict {
	CHECKER_OK = 0,
	CHECKER_VIOLATION = 1,
	CHECKER_MALFORMED = 2, /* the line is not part of a history: nothing is said about the promises */
};

/* Reads the legal moves from that file; NULL takes $STINT_STATES_MD, and without it spec/states.md.
 * NULL if the file cannot be read (errno) or has no such table (EINVAL). */
struct checker *checker_new(const char *states_md_path);
void checker_free(struct checker *checker);

/* Another limit than the default one: retry_base_ms, retry_max_ms, retry_jitter_percent, crash_budget,
 * interruption_budget, verify_after_ms, restart_grace_ms, verify_slack_ms (how late a claim may be taken
 * back that was never confirmed; -1, the default, judges that not at all). 0, or -EINVAL for no such name. */
int checker_set(struct checker *checker, const char *name, int64_t value);

/* One line, with or without its newline. Once a verdict is not OK, it stays. */
int checker_line(struct checker *checker, const char *line, size_t len);

/* The history is complete: what had time until now to be explained has not been. */
int checker_finish(struct checker *checker);

/* After a verdict that is not OK: the id of the invariant, a sentence, and the last lines that led there.
 * Belongs to the checker. */
const char *checker_complaint(const struct checker *checker);

/* Events read so far. */
uint64_t checker_events(const struct checker *checker);
