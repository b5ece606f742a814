/*
 * The environment of a child: built from nothing but what is named here, its executor's own variables, and what that
 * executor lets through.
 */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "attempt/executor.h"
#include "attempt/person_home.h"

struct environment {
	const char *url, *token_file, *workspace, *home, *tmp; /* NULL: left out */
	const char *task, *fence, *queue; /* task NULL: a worker of a pool, which has no task yet */
	const char *path;                 /* NULL: our own PATH */
	const struct person_home *person; /* for an executor that is shown it; NULL: for none */
	const char *proxy;                /* URL of the proxy to the hosts of its executor; NULL: none */
	const char *cache;                /* where its programs keep caches; NULL: nowhere */
	const char *worker;
	const char *pool_child;  /* its name in its pool; NULL: not in a pool */
	const char *traceparent; /* NULL: its task belongs to no trace */
	uint32_t attempt;
	int64_t deadline_ms;                           /* wall */
	const char *model, *thinking, *execution_mode; /* NULL: not given */
	const char *const *of_agent;  /* NAME=value, NULL at the end: what its agent needs; NULL: none */
	const char *const *from_task; /* NAME=value, NULL at the end: variables of the task; NULL: none */
};

/* NAME=value, NULL at the end; in the arena. NULL: no memory. */
const char *const *environment_make(
	struct arena *arena, const struct environment *about, const struct executor *executor);

/* Names that are copied from our own environment, NULL at the end. */
const char *const *environment_allowed(struct arena *arena, const struct executor *executor);
