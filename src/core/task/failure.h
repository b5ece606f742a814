/*
 * Why an attempt failed: the codes, the class each belongs to, and how long to wait before the next try.
 *
 * The class decides what a failure costs; a code that this table does not know is of class `task`.
 * The numbers are stored, so rows are only ever appended.
 */
#pragma once

#include <stdint.h>

#include "core/task/given.h"

// clang-format off
#define FAILURE_CLASSES(X) \
	X(TASK,    "task",    "the work itself failed: spends an attempt") \
	X(TIMEOUT, "timeout", "it took too long: spends an attempt") \
	X(CRASH,   "crash",   "the worker died: spends the crash budget") \
	X(HOST,    "host",    "trouble of the host: spends nothing, but ten in a row block the task") \
	X(QUOTA,   "quota",   "an account is exhausted: spends nothing, waits for the reset") \
	X(POLICY,  "policy",  "not allowed as it stands: blocked until a person acts") \
	X(FINAL,   "final",   "no further attempt can help")

#define FAILURE_CODES(X) \
	X(OTHER,                   1, "OTHER",                   TASK) \
	X(EXECUTION_ERROR,         2, "EXECUTION_ERROR",         TASK) \
	X(CHECK_FAILED,            3, "CHECK_FAILED",            TASK) \
	X(TASK_TIMEOUT,            4, "TASK_TIMEOUT",            TIMEOUT) \
	X(STALLED,                 5, "STALLED",                 TIMEOUT) \
	X(WORKER_CRASHED,          6, "WORKER_CRASHED",          CRASH) \
	X(PROTOCOL_ERROR,          7, "PROTOCOL_ERROR",          CRASH) \
	X(LEASE_LOST,              8, "LEASE_LOST",              CRASH) \
	X(WORKER_INIT_FAILED,      9, "WORKER_INIT_FAILED",      HOST) \
	X(INTERRUPTED_TOO_OFTEN,  10, "INTERRUPTED_TOO_OFTEN",   POLICY) \
	X(QUOTA,                  11, "QUOTA",                   QUOTA) \
	X(EXECUTOR_NOT_FOUND,     12, "EXECUTOR_NOT_FOUND",      POLICY) \
	X(ISOLATION_UNAVAILABLE,  13, "ISOLATION_UNAVAILABLE",   POLICY) \
	X(BAD_WORKDIR,            14, "BAD_WORKDIR",             POLICY) \
	X(BUDGET_EXCEEDED,        15, "BUDGET_EXCEEDED",         POLICY) \
	X(STOPPED,                16, "STOPPED",                 POLICY) \
	X(DEPENDENCY_FAILED,      17, "DEPENDENCY_FAILED",       POLICY) \
	X(DEADLINE,               18, "DEADLINE",                FINAL) \
	X(AUTH,                   19, "AUTH",                    QUOTA) \
	X(UPSTREAM,               20, "UPSTREAM",                QUOTA) \
	X(NOT_ALLOWED,            21, "NOT_ALLOWED",             POLICY) \
	X(REFUSED,                22, "REFUSED",                 TASK)
// clang-format on

enum failure_class {
	FAILURE_CLASS_NONE = 0,
#define X(name, wire, text) CLASS_##name,
	FAILURE_CLASSES(X)
#undef X
		FAILURE_CLASS_COUNT
};

enum failure_code {
	CODE_NONE = 0,
#define X(name, number, wire, klass) CODE_##name = number,
	FAILURE_CODES(X)
#undef X
		FAILURE_CODE_COUNT
};

const char *failure_code_name(enum failure_code code);
const char *failure_class_name(enum failure_class klass);
/* The sentence for a failure that the server finds itself, and that no worker explains. */
const char *failure_code_text(enum failure_code code);

/* The code or class of that name; for an unknown name CODE_OTHER, or FAILURE_CLASS_NONE. The class `final` is unknown here:
 * it belongs to the server's own codes. */
enum failure_code failure_code_from_name(const char *name, unsigned long len);
enum failure_class failure_class_from_name(const char *name, unsigned long len);

enum failure_class failure_code_class(enum failure_code code);

/* How long to wait before try number k + 1: base · 2^(k−1) up to the maximum, plus 0 to 20 % jitter. */
int64_t backoff_ms(const struct rules *rules, uint32_t k, uint32_t random);
