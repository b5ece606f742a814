/*
 * Which events go to a target, and their form: CloudEvents 1.0 in JSON, or a line for people.
 */
#pragma once

#include <stdbool.h>

#include "notify/targets.h"
#include "wire/json/json.h"

enum {
	MESSAGE_BYTES_MAX = 64 << 10,
	MESSAGE_ID_BYTES = 128,
};

/* For spans: what ends an attempt or a task. Else the end of a session whose channel is the target's name; what `events` of the target has. What a process prints is never
 * sent: nobody knows what is in it. */
bool message_is_wanted(const struct target *target, yyjson_val *event);

/* SOURCE-GENERATION-SEQ: the same however often it is sent, and never that of another event. */
void message_id(char id[MESSAGE_ID_BYTES], const char *source, int64_t generation, int64_t seq);

/* As the target's format has it. An event that would make it too long goes without its own data, and says so. -ENOMEM,
 * -E2BIG. */
int message_put(
	struct buf *out, const struct target *target, const char *source, const char *id, yyjson_val *event);

/* The Content-Type of it. */
const char *message_type(const struct target *target);
