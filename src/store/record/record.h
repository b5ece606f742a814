/*
 * Event records: how a change is written down, and how writing it down again gives the state.
 *
 * A record carries what changed in the lifecycle columns of a task (only that), who did it, and a few
 * numbers that explain it. Its encoding is known here and nowhere else. Folding the records of a task in
 * order gives its columns: that is what compaction keeps as a baseline, and what every crash test compares.
 *
 * The records of one task are linked backwards by `previous`, so that its history is read without an index.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"
#include "core/record.h"
#include "core/task/task.h"

/* Lifecycle columns of a task as folded from its events. */
struct fold {
	struct task task;
	char holder[129]; /* worker id of the live claim, or "" */
};

/* Note what differs between the two. */
void record_diff(struct record *record, const struct task *before, const struct task *after);

/* Does the event say who claimed? It does when that is another principal than before. */
bool record_changes_claimant(const struct record *record);

/* Does a claim end with it? Its worker is the one that held the task. */
bool record_ends_claim(const struct record *record);

/* Appends the encoding; all but seq, which is the row's key. */
int record_encode(const struct record *record, struct buf *buf);

/* Spans are borrowed from `data`. -EPROTO: not a record. */
int record_decode(int64_t seq, struct span data, struct record *ret_record);

/* Apply one event of the task. The fold starts zeroed. */
void fold_apply(struct fold *fold, const struct record *record);

/* A fold as a baseline row, and back. */
int fold_encode(const struct fold *fold, struct buf *buf);
int fold_decode(int64_t seq, struct span data, struct fold *ret_fold);

/* Do the columns that events determine agree? Names the first one that does not. */
const char *fold_difference(const struct fold *fold, const struct task *task, struct span holder);
