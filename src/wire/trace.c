#include "wire/trace.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"

enum {
	VERSION_AT = 0,
	ID_AT = 3,
	PARENT_AT = 36,
	FLAGS_AT = 53,
	LENGTH = 55,
};

static bool is_hex(struct span text, size_t at, size_t len)
{
	for (size_t i = at; i < at + len; i++) {
		char byte = text.data[i];
		if (!((byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f')))
			return false;
	}
	return true;
}

static bool is_zero(struct span text, size_t at, size_t len)
{
	for (size_t i = at; i < at + len; i++) {
		if (text.data[i] != '0')
			return false;
	}
	return true;
}

static unsigned digit(char byte)
{
	return byte <= '9' ? (unsigned)(byte - '0') : (unsigned)(byte - 'a' + 10);
}

/* A later version may be longer; what we read of it stands where version 00 has it. */
bool trace_read(struct span text, struct trace *ret_trace)
{
	if (text.len < LENGTH || text.data[2] != '-' || text.data[35] != '-' || text.data[52] != '-')
		return false;
	if (!is_hex(text, VERSION_AT, 2) || !is_hex(text, ID_AT, 32) || !is_hex(text, PARENT_AT, 16) ||
		!is_hex(text, FLAGS_AT, 2))
		return false;
	bool is_first = is_zero(text, VERSION_AT, 2), is_none = memcmp(text.data, "ff", 2) == 0;
	if (is_none || (is_first && text.len > LENGTH) || (text.len > LENGTH && text.data[LENGTH] != '-'))
		return false;
	if (is_zero(text, ID_AT, 32) || is_zero(text, PARENT_AT, 16))
		return false;
	*ret_trace = (struct trace){.sampled = digit(text.data[FLAGS_AT + 1]) & 1};
	memcpy(ret_trace->id, text.data + ID_AT, 32);
	memcpy(ret_trace->parent, text.data + PARENT_AT, 16);
	return true;
}

/* Never 0, which means "no span". The keys are fixed: two programs must come to the same number. */
static uint64_t number_of(uint64_t kind, const char *trace, struct span task, int64_t which)
{
	const struct hash_key key = {kind, (uint64_t)which};
	char text[TRACE_ID_BYTES + 256];
	size_t len = task.len < 255 ? task.len : 255;
	int head = snprintf(text, sizeof text, "%s/%.*s", trace, (int)len, task.data ? task.data : "");
	uint64_t number = hash_bytes(&key, text, (size_t)head);

	return number ? number : 1;
}

enum { KIND_TRACE_HIGH = 1, KIND_TRACE_LOW, KIND_TASK, KIND_ATTEMPT };

void trace_of_task(struct span task, int64_t created_ms, struct span traceparent, struct trace *ret_trace)
{
	if (traceparent.len > 0 && trace_read(traceparent, ret_trace))
		return;
	*ret_trace = (struct trace){.sampled = true};
	snprintf(ret_trace->id, sizeof ret_trace->id, "%016" PRIx64 "%016" PRIx64,
		number_of(KIND_TRACE_HIGH, "", task, created_ms),
		number_of(KIND_TRACE_LOW, "", task, created_ms));
}

void trace_task_span(const struct trace *trace, struct span task, char ret_span[TRACE_SPAN_BYTES])
{
	snprintf(ret_span, TRACE_SPAN_BYTES, "%016" PRIx64, number_of(KIND_TASK, trace->id, task, 0));
}

void trace_attempt_span(
	const struct trace *trace, struct span task, uint32_t attempt, char ret_span[TRACE_SPAN_BYTES])
{
	snprintf(
		ret_span, TRACE_SPAN_BYTES, "%016" PRIx64, number_of(KIND_ATTEMPT, trace->id, task, attempt));
}

void trace_put(const struct trace *trace, const char *span, char ret_text[TRACEPARENT_BYTES])
{
	assert(strlen(span) == TRACE_SPAN_BYTES - 1);
	snprintf(ret_text, TRACEPARENT_BYTES, "00-%s-%s-%02x", trace->id, span, trace->sampled ? 1u : 0u);
}
