/*
 * Events as people read them.
 */
#pragma once

#include "cli/frame/cli.h"

/* Append what happened, as the rest of a sentence whose subject is the task: "attempt 1 begins on slot-3". Of an event about
 * something else the subject is part of it: "queue ci is paused". */
void event_put(struct buf *out, yyjson_val *event);
