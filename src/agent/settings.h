/*
 * What the configuration says of an executor of kind agent, besides what every executor has (attempt/executor.h).
 */
#pragma once

#include "agent/adapter/adapter.h"
#include "agent/session/policy.h"

enum {
	AGENT_RULES_MAX = 100,
	AGENT_CHECKS_MAX = 32,
	AGENT_FALLBACK_MAX = 8,
};

struct agent_check {
	const char *name;
	const char *const *argv; /* NULL at the end */
};

struct agent_settings {
	const struct adapter *adapter;
	const char *model;      /* NULL: the task's, else the agent's default */
	const char *credential; /* name of the account; NULL: none is announced */
	const char *prompt;     /* template; NULL: the usual one */
	const char *const *
		fallback; /* executors that take its place while its account is held; NULL at the end; NULL: none */
	struct policy policy;
	double usd_max; /* budget of an attempt; 0: none */
	int64_t tokens_max, turns_max, tool_calls_max;
	int asks_at_budget; /* 1: a person decides when a budget is used up; 0: the task is blocked */
	int64_t tool_ms;    /* longest tool call; 0: as long as the attempt may take */
	int64_t check_ms;   /* longest check */
	const struct agent_check *checks;
	size_t check_count;
};
