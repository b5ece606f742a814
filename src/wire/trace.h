/*
 * W3C trace context: which trace a task belongs to, and the ids of its spans.
 *
 * The ids are made of what every program knows of a task (its id, when it was created, the number of the attempt), so the worker that
 * gives one to a child and the notifier that exports the span agree without a word between them, also after a restart.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

enum {
	TRACE_ID_BYTES = 33, /* with a zero behind it */
	TRACE_SPAN_BYTES = 17,
	TRACEPARENT_BYTES = 56,
};

struct trace {
	char id[TRACE_ID_BYTES];
	char parent[TRACE_SPAN_BYTES]; /* the span of who made the task; empty: nobody said */
	bool sampled;
};

/* "00-<32 hex>-<16 hex>-<2 hex>". False: it is none, and by the standard that is as if none had been sent. */
bool trace_read(struct span traceparent, struct trace *ret_trace);

/* The trace of a task: that of its traceparent, or one of its own without a valid one. */
void trace_of_task(struct span task, int64_t created_ms, struct span traceparent, struct trace *ret_trace);

/* The span of the task, from its creation to its end; and that of one attempt, whose parent it is. */
void trace_task_span(const struct trace *trace, struct span task, char ret_span[TRACE_SPAN_BYTES]);
void trace_attempt_span(
	const struct trace *trace, struct span task, uint32_t attempt, char ret_span[TRACE_SPAN_BYTES]);

/* What a child of that span is told. */
void trace_put(const struct trace *trace, const char *span, char ret_text[TRACEPARENT_BYTES]);
