/*
 * The login codes and browser sessions of a store in memory, in order of id.
 */
#pragma once

#include "base/span.h"
#include "core/worker/login.h"

struct logins {
	struct browser_login *items;
	uint32_t count, cap;
};

void logins_done(struct logins *logins);

/* NULL: no such login. Valid until the next turn. */
struct browser_login *logins_find(const struct logins *logins, struct span id);

/* Room for so many more; -ENOMEM. */
int logins_reserve(struct logins *logins, uint32_t more);

/* A copy replaces the one of its id, whose last request is remembered; there is room for it. */
void logins_set(struct logins *logins, const struct browser_login *login);

void logins_drop(struct logins *logins, struct span id);
