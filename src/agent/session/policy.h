/*
 * Which tool calls an agent may make. Rules are tried in order and the first that matches decides; a command line is split into
 * its simple commands, each is decided on its own, and the strictest decision counts. A policy is no wall: isolation is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"

enum policy_act { POLICY_ALLOW, POLICY_ASK, POLICY_DENY }; /* each stricter than the one before */

struct policy_rule {
	const char *tool;  /* its name, or a pattern of names; NULL: any */
	const char *match; /* pattern for the command or the path; NULL: any */
	int act;           /* enum policy_act */
};

struct policy {
	int otherwise; /* enum policy_act, where no rule matches */
	const struct policy_rule *rules;
	size_t count;
};

/* `ret_rule` is the pattern of the rule that decided, or NULL; it may be NULL itself. */
enum policy_act policy_decide(
	const struct policy *policy, const char *tool, struct span subject, const char **ret_rule);

/* Does it ever say anything but allow? Then the agent must be able to ask us. */
bool policy_asks(const struct policy *policy);

/* What holds where nothing is configured: work is allowed, pushing and publishing are asked. */
extern const struct policy policy_default;

/* The same for an agent that cannot ask: there is nothing that such an agent would heed. */
extern const struct policy policy_open;
