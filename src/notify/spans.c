#include "notify/spans.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/take.h"
#include "wire/trace.h"

static struct span text_of(yyjson_val *object, const char *key)
{
	return json_text(yyjson_obj_get(object, key));
}

static bool is_one_of(struct span text, const char *const *words)
{
	for (; *words; words++) {
		if (span_is(text, *words))
			return true;
	}
	return false;
}

/* ---- what ends ------------------------------------------------------------------------------------------------ */

bool spans_end_attempt(yyjson_val *event)
{
	static const char *const types[] = {"task.completed", "task.failed", "task.blocked", "task.released",
		"task.expired", "task.requeued", "task.reviewed", "task.suspended", "task.cancelled",
		"claim.unconfirmed", NULL};
	static const char *const held[] = {"claimed", "running", "asking", NULL};

	return is_one_of(text_of(event, "type"), types) &&
		is_one_of(text_of(yyjson_obj_get(event, "data"), "from"), held);
}

static bool ends_task(yyjson_val *event)
{
	static const char *const final[] = {"done", "failed", "cancelled", NULL};
	yyjson_val *data = yyjson_obj_get(event, "data");
	struct span type = text_of(event, "type");

	return type.len > 5 && memcmp(type.data, "task.", 5) == 0 && yyjson_obj_get(data, "from") &&
		is_one_of(text_of(data, "state"), final);
}

bool spans_are_due(yyjson_val *event)
{
	struct span given = text_of(yyjson_obj_get(event, "about"), "traceparent");
	struct trace trace;

	if (given.len > 0 && trace_read(given, &trace) && !trace.sampled)
		return false;
	return spans_end_attempt(event) || ends_task(event);
}

void spans_follow(struct spans_attempt *attempt, yyjson_val *event)
{
	if (span_is(text_of(event, "type"), "task.claimed")) {
		int64_t number = json_int(yyjson_obj_get(event, "data"), "attempt");
		if (number != attempt->number) /* the same one: its holder took it up again */
			attempt->began_ms = json_int(event, "time");
		attempt->number = number;
		attempt->worker = text_of(event, "worker");
	} else if (spans_end_attempt(event)) {
		*attempt = (struct spans_attempt){0};
	}
}

/* ---- spans -------------------------------------------------------------------------------------------------------- */

struct attributes {
	struct buf *out;
	bool any;
};

static void attribute_begin(struct attributes *attributes, const char *key)
{
	json_put_comma(attributes->out, &attributes->any);
	buf_printf(attributes->out, "{\"key\":\"%s\",\"value\":{", key);
}

static void put_text(struct attributes *attributes, const char *key, struct span text)
{
	if (text.len == 0)
		return;
	attribute_begin(attributes, key);
	buf_put_span(attributes->out, SPAN("\"stringValue\":"));
	json_put_string(attributes->out, text);
	buf_put_span(attributes->out, SPAN("}}"));
}

/* 64-bit numbers are texts in this JSON. */
static void put_number(struct attributes *attributes, const char *key, int64_t number)
{
	attribute_begin(attributes, key);
	buf_printf(attributes->out, "\"intValue\":\"%" PRId64 "\"}}", number);
}

/* What there is to say of one span. */
struct about_span {
	const struct trace *trace;
	const char *id, *parent;
	char name[128];
	int64_t begin_ms, end_ms;
	int64_t attempt; /* 0: it is the task's */
	bool failed;
};

static void put_attributes(struct buf *out, const struct about_span *span, yyjson_val *event)
{
	yyjson_val *about = yyjson_obj_get(event, "about"), *data = yyjson_obj_get(event, "data");
	struct attributes attributes = {.out = out};
	struct span code = text_of(data, "code");

	put_text(&attributes, "stint.task.id", text_of(event, "task"));
	put_text(&attributes, "stint.task.title", text_of(about, "title"));
	put_text(&attributes, "stint.queue", text_of(about, "queue"));
	put_text(&attributes, "stint.event", text_of(event, "type"));
	put_text(&attributes, "stint.state", text_of(data, "state"));
	put_text(&attributes, "error.type", code);
	if (span->attempt > 0) {
		put_number(&attributes, "stint.attempt", span->attempt);
		put_text(&attributes, "stint.worker", text_of(event, "worker"));
		put_text(&attributes, "stint.session", text_of(event, "session"));
	}
}

static void put_span(struct buf *out, const struct about_span *span, yyjson_val *event)
{
	yyjson_val *data = yyjson_obj_get(event, "data");
	struct span said = text_of(data, "message");
	struct json_object object, status;

	json_begin(&object, out);
	json_member_string(&object, "traceId", span_of(span->trace->id));
	json_member_string(&object, "spanId", span_of(span->id));
	if (span->parent[0])
		json_member_string(&object, "parentSpanId", span_of(span->parent));
	json_member_string(&object, "name", span_of(span->name));
	json_member_int(&object, "kind", span->attempt > 0 ? 5 : 1); /* consumer, internal */
	if (json_put_key(&object, "startTimeUnixNano"))
		buf_printf(out, "\"%" PRId64 "000000\"", span->begin_ms);
	if (json_put_key(&object, "endTimeUnixNano"))
		buf_printf(out, "\"%" PRId64 "000000\"",
			span->end_ms > span->begin_ms ? span->end_ms : span->begin_ms);
	if (json_put_key(&object, "attributes")) {
		buf_put_byte(out, '[');
		put_attributes(out, span, event);
		buf_put_byte(out, ']');
	}
	if (json_put_key(&object, "status")) {
		json_begin(&status, out);
		json_member_int(&status, "code", span->failed ? 2 : 1);
		if (span->failed && said.len > 0)
			json_member_string(&status, "message", said);
		json_end(&status);
	}
	json_end(&object);
}

static bool attempt_failed(yyjson_val *event)
{
	static const char *const bad[] = {
		"task.failed", "task.blocked", "task.expired", "claim.unconfirmed", NULL};

	return is_one_of(text_of(event, "type"), bad);
}

static void put_spans(struct buf *out, yyjson_val *event, const struct trace *trace, struct span queue)
{
	yyjson_val *told = yyjson_obj_get(event, "trace"), *attempt = yyjson_obj_get(told, "attempt");
	char of_task[TRACE_SPAN_BYTES], of_attempt[TRACE_SPAN_BYTES];
	struct span task = text_of(event, "task");
	int64_t time_ms = json_int(event, "time"), number = json_int(attempt, "number");
	bool any = false;

	trace_task_span(trace, task, of_task);
	if (number > 0 && spans_end_attempt(event)) {
		struct about_span span = {.trace = trace,
			.id = of_attempt,
			.parent = of_task,
			.begin_ms = json_int(attempt, "began"),
			.end_ms = time_ms,
			.attempt = number,
			.failed = attempt_failed(event)};
		trace_attempt_span(trace, task, (uint32_t)number, of_attempt);
		snprintf(span.name, sizeof span.name, "attempt %.*s", queue.len < 100 ? (int)queue.len : 100,
			queue.data ? queue.data : "");
		json_put_comma(out, &any);
		put_span(out, &span, event);
	}
	if (ends_task(event) && json_int(told, "createdAt") > 0) {
		struct about_span span = {.trace = trace,
			.id = of_task,
			.parent = trace->parent,
			.begin_ms = json_int(told, "createdAt"),
			.end_ms = time_ms,
			.failed = !span_is(text_of(yyjson_obj_get(event, "data"), "state"), "done")};
		snprintf(span.name, sizeof span.name, "task %.*s", queue.len < 100 ? (int)queue.len : 100,
			queue.data ? queue.data : "");
		json_put_comma(out, &any);
		put_span(out, &span, event);
	}
}

int spans_put(struct buf *out, const char *source, yyjson_val *event)
{
	yyjson_val *about = yyjson_obj_get(event, "about"), *told = yyjson_obj_get(event, "trace");
	struct attributes resource = {.out = out};
	struct trace trace;

	trace_of_task(
		text_of(event, "task"), json_int(told, "createdAt"), text_of(about, "traceparent"), &trace);
	buf_put_span(out, SPAN("{\"resourceSpans\":[{\"resource\":{\"attributes\":["));
	put_text(&resource, "service.name", SPAN("stint"));
	put_text(&resource, "service.instance.id", span_of(source));
	buf_put_span(out,
		SPAN("]},\"scopeSpans\":[{\"scope\":{\"name\":\"stint-notify\",\"version\":\"" STINT_VERSION
		     "\"},\"spans\":["));
	put_spans(out, event, &trace, text_of(about, "queue"));
	buf_put_span(out, SPAN("]}]}]}"));
	return buf_fault(out);
}
