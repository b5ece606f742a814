/*
 * How `stint` ends: one number per kind of ending, the same for every verb. spec/cli.md has the table.
 */
#pragma once

#include "base/span.h"

// clang-format off
#define EXITS(X) \
	X(GOOD,         0,   "it was done") \
	X(FAILED,       1,   "it failed or was refused") \
	X(USAGE,        2,   "the command line, or a value in it, cannot be understood; nothing was changed") \
	X(NOT_FOUND,    3,   "there is no such task, worker, queue or token") \
	X(CONFLICT,     4,   "the state of the task, or who holds it, does not allow this") \
	X(EMPTY,        5,   "nothing to claim (only with --empty-exit; otherwise that is 0)") \
	X(UNAUTHORISED, 6,   "no token, a token that is not known, or one that may not do this") \
	X(UNREACHABLE,  7,   "no server answers, or it cannot take changes now") \
	X(TIMED_OUT,    8,   "what was waited for has not ended in time") \
	X(UNSUCCESSFUL, 9,   "a task that was waited for ended and did not succeed, or the answer was no") \
	X(INTERRUPTED,  130, "Ctrl-C")
// clang-format on

enum exit_status {
#define X(name, number, text) EXIT_##name = (number),
	EXITS(X)
#undef X
};

/* The ending for a refusal of the server. */
enum exit_status exit_of_refusal(int http_status, struct span code);
