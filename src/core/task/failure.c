#include "core/task/failure.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

static const struct {
	const char *name;
	const char *text;
} classes[FAILURE_CLASS_COUNT] = {
#define X(name, wire, text) [CLASS_##name] = {wire, text},
	FAILURE_CLASSES(X)
#undef X
};

static const struct {
	const char *name;
	enum failure_class klass;
} codes[FAILURE_CODE_COUNT] = {
#define X(name, number, wire, klass) [number] = {wire, CLASS_##klass},
	FAILURE_CODES(X)
#undef X
};

static bool same(const char *known, const char *name, unsigned long len)
{
	return strlen(known) == len && memcmp(known, name, len) == 0;
}

const char *failure_code_name(enum failure_code code)
{
	assert(code > CODE_NONE);
	assert(code < FAILURE_CODE_COUNT);
	return codes[code].name;
}

const char *failure_class_name(enum failure_class klass)
{
	assert(klass > FAILURE_CLASS_NONE);
	assert(klass < FAILURE_CLASS_COUNT);
	return classes[klass].name;
}

const char *failure_code_text(enum failure_code code)
{
	static const char *const texts[FAILURE_CODE_COUNT] = {
		[CODE_TASK_TIMEOUT] = "it ran longer than it may",
		[CODE_LEASE_LOST] = "its worker sent no heartbeat or progress until the lease was over",
		[CODE_INTERRUPTED_TOO_OFTEN] =
			"it was given back too often without progress (exit status 75, or its worker stopped)",
		[CODE_EXECUTOR_NOT_FOUND] = "no active worker of its queue has its executor",
		[CODE_STOPPED] = "a person or a program stopped it",
		[CODE_DEPENDENCY_FAILED] = "a task that it comes after has failed or was cancelled",
		[CODE_DEADLINE] = "it was not begun by startBy, or not done by finishBy",
	};

	assert(code > CODE_NONE);
	assert(code < FAILURE_CODE_COUNT);
	return texts[code] ? texts[code] : classes[failure_code_class(code)].text;
}

enum failure_code failure_code_from_name(const char *name, unsigned long len)
{
	for (int code = CODE_OTHER; code < FAILURE_CODE_COUNT; code++) {
		if (same(codes[code].name, name, len))
			return (enum failure_code)code;
	}
	return CODE_OTHER;
}

enum failure_class failure_class_from_name(const char *name, unsigned long len)
{
	for (int klass = CLASS_TASK; klass < CLASS_FINAL; klass++) {
		if (same(classes[klass].name, name, len))
			return (enum failure_class)klass;
	}
	return FAILURE_CLASS_NONE;
}

enum failure_class failure_code_class(enum failure_code code)
{
	assert(code > CODE_NONE);
	assert(code < FAILURE_CODE_COUNT);
	return codes[code].klass;
}

int64_t backoff_ms(const struct rules *rules, uint32_t k, uint32_t random)
{
	assert(k >= 1);
	int64_t wait = rules->retry_base_ms;
	for (uint32_t i = 1; i < k && wait < rules->retry_max_ms; i++)
		wait *= 2;
	if (wait > rules->retry_max_ms)
		wait = rules->retry_max_ms;
	int64_t jitter_max = wait / 5;
	return wait + (int64_t)((uint64_t)random * (uint64_t)(jitter_max + 1) >> 32);
}
