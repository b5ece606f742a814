/*
 * SMALL_INBOX: a row of the inbox that cannot become a task. The key is its number, so that they stand in order.
 */
#pragma once

#include "base/buf.h"
#include "core/task/document.h"

enum {
	INBOX_KEY_BYTES = 20,
};

struct span inbox_key(int64_t id, char text[INBOX_KEY_BYTES]);
/* -EPROTO: not what we wrote. */
int inbox_id_of(struct span key, int64_t *ret_id);

int inbox_put(const struct inbox_document *document, struct buf *out);
/* All but the number. -EPROTO: not what we wrote. Spans are borrowed from `data`. */
int inbox_read(struct span data, struct inbox_document *ret_document);
