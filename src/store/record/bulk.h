/*
 * Bulk actions as rows: two small records of each. SMALL_BULK has what was asked for and is written once; SMALL_BULK_STATE has how
 * far it is and is written with every step.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "core/flow/bulk.h"

/* All but the number, which is the key. -EPROTO: not what we wrote; -ENOMEM. Spans are borrowed from `data`, lists are in the
 * arena. */
int bulk_row_put(const struct bulk *bulk, struct buf *out);
int bulk_row_read(struct span data, struct arena *arena, struct bulk *ret_bulk);

int bulk_progress_put(const struct bulk_progress *progress, struct buf *out);
int bulk_progress_read(struct span data, struct bulk_progress *ret_progress);
