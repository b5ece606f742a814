/*
 * Events as people read them.
 */
#pragma once

#include "cli/frame/cli.h"

/* Append what happened, as the rest of a sentence whose subject is the task: "attempt 1 begins on slot-3". Of an event about
 * something else the subject is part of it: "queue ci is paused". */
void event_put(struct buf *out, yyjson_val *event);

/* Append a text in which a $word is a member of the event or of its data; what stands in brackets is left out where its word is
 * missing. */
void event_put_text(struct buf *out, const char *text, yyjson_val *event);
