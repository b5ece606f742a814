/*
 * All of it at work: the feed of the server, a sender for each target, one loop over curl. Nothing in it waits for anything
 * else.
 */
#pragma once

#include "config/server_place.h"
#include "notify/sender.h"

/* Until SIGTERM or SIGINT. The status to end with; what went wrong was logged. */
int notifier_run(const struct targets *targets, const struct server_place *place, const char *home);

/* One message that tells nothing, now. */
struct delivery_outcome notifier_test(const struct targets *targets, const struct target *target);
