/*
 * The story of a task: its attempts as bars, and what happened, line by line.
 */
#pragma once

#include "cli/frame/cli.h"

enum { STORY_EVENTS_MAX = 200 };

/* The events of one task, oldest first. They belong to the caller, who keeps them until the story is told. */
struct story {
	yyjson_val *events[STORY_EVENTS_MAX];
	size_t count;
	int64_t failures_max; /* maxAttempts of the task */
};

/* One line for each attempt, if there are several or a person was asked: who, how long, when, and how it ended. */
void story_put_attempts(struct cli *cli, const struct story *story);

/* What happened, as sentences with their times. */
void story_put_timeline(struct cli *cli, const struct story *story);
