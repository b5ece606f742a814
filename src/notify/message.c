#include "notify/message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/iso_time.h"
#include "base/take.h"
#include "base/utf8.h"
#include "notify/spans.h"

enum {
	LINE_SAID_MAX = 1000, /* bytes of what somebody said, in a line for people */
	TITLE_SHOWN_MAX = 200,
};

static struct span text_of(yyjson_val *object, const char *key)
{
	return json_text(yyjson_obj_get(object, key));
}

/* ---- who wants what ---------------------------------------------------------------------------------------- */

/* What needs a person: somebody asks or is stuck, work has failed for good, a worker is lost, a slot crashes, the disk is
 * full, a schedule fails again and again, an account is held until a person acts, the budget of a day is used up. */
static bool is_alert(struct span type, yyjson_val *data)
{
	static const char *const always[] = {"task.asked", "task.blocked", "gate.opened", "slot.quarantined",
		"server.degraded", "schedule.failing", "budget.spent"};

	for (size_t i = 0; i < sizeof always / sizeof *always; i++) {
		if (span_is(type, always[i]))
			return true;
	}
	if (span_is(type, "hold.opened") || span_is(type, "hold.extended"))
		return !yyjson_obj_get(data, "retryAt");
	if (span_is(type, "worker.inactive"))
		return span_is(text_of(data, "ended"), "expired");
	return (span_is(type, "task.failed") || span_is(type, "task.expired")) &&
		span_is(text_of(data, "state"), "failed");
}

static bool matches(const char *pattern, struct span type, yyjson_val *data)
{
	size_t len = strlen(pattern);

	if (strcmp(pattern, "alerts") == 0)
		return is_alert(type, data);
	if (pattern[len - 1] == '*')
		return type.len >= len - 1 && memcmp(type.data, pattern, len - 1) == 0;
	return span_is(type, pattern);
}

bool message_is_wanted(const struct target *target, yyjson_val *event)
{
	struct span type = text_of(event, "type");
	yyjson_val *data = yyjson_obj_get(event, "data");

	if (target->format == FORMAT_OTLP)
		return spans_are_due(event);
	bool ends = span_is(type, "session.ended") || span_is(type, "session.gone");

	if (span_is(type, "session.output"))
		return false;
	if (ends && span_equal(text_of(data, "channel"), span_of(target->name)))
		return true;
	for (size_t i = 0; target->events && target->events[i]; i++) {
		if (matches(target->events[i], type, data))
			return true;
	}
	return false;
}

/* ---- the message for programs ----------------------------------------------------------------------------------------- */

void message_id(char id[MESSAGE_ID_BYTES], const char *source, int64_t generation, int64_t seq)
{
	snprintf(id, MESSAGE_ID_BYTES, "%s-%" PRId64 "-%" PRId64, source, generation, seq);
}

/* Whom it is about; nothing, if it is about the server. */
static struct span subject_of(yyjson_val *event)
{
	static const char *const keys[] = {"task", "worker"},
				 *const inner[] = {
					 "slot", "queue", "schedule", "group", "credential", "bulk"};
	struct span subject = {0};

	for (size_t i = 0; i < sizeof keys / sizeof *keys && subject.len == 0; i++)
		subject = text_of(event, keys[i]);
	for (size_t i = 0; i < sizeof inner / sizeof *inner && subject.len == 0; i++)
		subject = text_of(yyjson_obj_get(event, "data"), inner[i]);
	return subject;
}

/* The event; `shortened`, all of it but its data. */
static void put_event(struct buf *out, yyjson_val *event, bool shortened)
{
	struct json_object object;
	size_t index, count;
	yyjson_val *key, *value;

	if (!shortened && !yyjson_obj_get(event, "trace")) {
		json_put_value(out, event);
		return;
	}
	json_begin(&object, out);
	yyjson_obj_foreach(event, index, count, key, value)
	{
		bool is_data = yyjson_equals_str(key, "data"), is_for_spans = yyjson_equals_str(key, "trace");
		if (!(shortened && is_data) && !is_for_spans)
			json_member_node(&object, key, value);
	}
	if (shortened)
		json_member_bool(&object, "shortened", true);
	json_end(&object);
}

static int put_message(struct buf *out, const char *source, const char *id, yyjson_val *event, bool shortened)
{
	struct span subject = subject_of(event), type = text_of(event, "type");
	char when[ISO_TIME_BYTES + 1], full_type[128];
	struct json_object object;

	iso_time_put(json_int(event, "time"), when);
	snprintf(full_type, sizeof full_type, "dev.stint.%.*s", type.len < 100 ? (int)type.len : 100,
		type.data ? type.data : "");
	json_begin(&object, out);
	json_member_word(&object, "specversion", "1.0");
	json_member_string(&object, "id", span_of(id));
	json_member_string(&object, "source", span_of(source));
	json_member_word(&object, "time", when);
	json_member_word(&object, "datacontenttype", "application/json");
	json_member_string(&object, "type", span_of(full_type));
	if (subject.len > 0)
		json_member_string(&object, "subject", subject);
	json_member_string_if_any(
		&object, "traceparent", text_of(yyjson_obj_get(event, "about"), "traceparent"));
	json_member_decimal(&object, "sequence", yyjson_get_uint(yyjson_obj_get(event, "seq")));
	if (json_put_key(&object, "data"))
		put_event(out, event, shortened);
	return json_end(&object);
}

/* ---- for people -------------------------------------------------------------------------------------------------- */

/* At Slack <, > and & begin what would be more than text: a mention of everybody, a link that says another address. */
static void put_escaped(struct buf *out, struct span text)
{
	for (size_t i = 0; i < text.len; i++) {
		char byte = text.data[i];
		buf_put_span(out,
			byte == '&'           ? SPAN("&amp;")
				: byte == '<' ? SPAN("&lt;")
				: byte == '>' ? SPAN("&gt;")
					      : (struct span){&text.data[i], 1});
	}
}

/* Not in the middle of a character. */
static struct span shortened(struct span text, size_t most)
{
	struct span start = {text.data, 0};
	bool good;

	while (start.len < text.len) {
		size_t next = utf8_next((struct span){text.data + start.len, text.len - start.len}, &good);
		if (start.len + next > most)
			break;
		start.len += next;
	}
	return start;
}

/* " "Fix login" in ci (nightly, urgent)" */
static void put_about(struct buf *out, yyjson_val *about)
{
	struct span title = shortened(text_of(about, "title"), TITLE_SHOWN_MAX),
		    queue = text_of(about, "queue");
	yyjson_val *labels = yyjson_obj_get(about, "labels"), *label;
	size_t index, count;

	if (title.len > 0)
		buf_printf(out, " \"%.*s\"", SPAN_ARGS(title));
	if (queue.len > 0)
		buf_printf(out, " in %.*s", SPAN_ARGS(queue));
	yyjson_arr_foreach(labels, index, count, label)
		buf_printf(out, "%s%.*s", index == 0 ? " (" : ", ", SPAN_ARGS(json_text(label)));
	if (yyjson_arr_size(labels) > 0)
		buf_put_byte(out, ')');
}

/* A number, or a time if its member is one. */
static void put_number(struct buf *out, yyjson_val *data, const char *member)
{
	char when[ISO_TIME_BYTES + 1];

	if (strcmp(member, "retryAt") == 0) {
		iso_time_put(json_int(data, member), when);
		buf_printf(out, "%.16s UTC", when); /* to the minute */
	} else {
		json_put_value(out, yyjson_obj_get(data, member));
	}
}

/* What the event of a queue, a schedule, an account or a group says in numbers: each word with the member that stands before it. */
static void put_numbers(struct buf *out, struct span type, yyjson_val *data)
{
	static const struct {
		const char *type;
		struct {
			const char *before, *member;
		} parts[3];
	} rows[] = {
		{"schedule.failing", {{" failures or skips in a row: ", "inARow"}}},
		{"schedule.skipped", {{" times: ", "count"}}},
		{"queue.limited", {{" ready tasks wait: ", "waiting"}}},
		{"hold.opened", {{" until ", "retryAt"}}},
		{"hold.extended", {{" until ", "retryAt"}}},
		{"budget.near", {{" used ", "used"}, {" of ", "limit"}}},
		{"budget.spent", {{" used ", "used"}, {" of ", "limit"}}},
		{"bulk.ended", {{" changed ", "done"}, {" of ", "matched"}, {" skipped ", "skipped"}}},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		for (size_t part = 0; part < 3 && rows[i].parts[part].member; part++) {
			const char *member = rows[i].parts[part].member;
			if (!span_is(type, rows[i].type) || !yyjson_is_num(yyjson_obj_get(data, member)))
				continue;
			buf_printf(out, "%s", rows[i].parts[part].before);
			put_number(out, data, member);
		}
	}
}

/* "task failed: t-1 "Fix login" in ci (nightly) [scheduled CHECK_FAILED] two tests fail" */
static int put_line(struct buf *out, yyjson_val *event)
{
	yyjson_val *data = yyjson_obj_get(event, "data");
	struct span session = text_of(event, "session"),
		    said = shortened(text_of(data, "message"), LINE_SAID_MAX);
	struct span about = session.len > 0 ? session : subject_of(event), code = text_of(data, "code");
	/* an event that leaves the state as it was has it in `from` */
	struct span state = text_of(data, yyjson_obj_get(data, "state") ? "state" : "from");

	buf_put_span(out, text_of(event, "type"));
	for (size_t i = 0; i < out->len; i++)
		out->data[i] = out->data[i] == '.' || out->data[i] == '_' ? ' ' : out->data[i];
	buf_printf(out, "%s%.*s", about.len > 0 ? ": " : ":", SPAN_ARGS(about));
	put_about(out, yyjson_obj_get(event, "about"));
	if (state.len + code.len > 0)
		buf_printf(out, " [%.*s%s%.*s]", SPAN_ARGS(state), state.len > 0 && code.len > 0 ? " " : "",
			SPAN_ARGS(code));
	put_numbers(out, text_of(event, "type"), data);
	struct span which = text_of(data, yyjson_obj_get(data, "part") ? "part" : "limit");
	if (session.len == 0 && which.len > 0)
		buf_printf(out, " (%.*s)", SPAN_ARGS(which));
	if (said.len > 0)
		buf_printf(out, " %.*s", SPAN_ARGS(said));
	return buf_fault(out);
}

static int put_for_people(struct buf *out, enum target_format format, yyjson_val *event)
{
	cleanup(buf_done) struct buf line = {0}, escaped = {0};
	struct json_object object;

	buf_init(&line, MESSAGE_BYTES_MAX);
	buf_init(&escaped, MESSAGE_BYTES_MAX);
	int r = put_line(&line, event);
	if (r < 0)
		return buf_fail(out, r);
	if (format == FORMAT_NTFY) {
		buf_put_span(out, buf_span(&line));
		return buf_fault(out);
	}
	json_begin(&object, out);
	if (format == FORMAT_SLACK) {
		put_escaped(&escaped, buf_span(&line));
		json_note(&object, buf_fault(&escaped));
		json_member_string(&object, "text", buf_span(&escaped));
	} else {
		json_member_string(&object, "content", buf_span(&line));
		json_member_raw(&object, "allowed_mentions", SPAN("{\"parse\":[]}"));
	}
	return json_end(&object);
}

const char *message_type(const struct target *target)
{
	static const char *const types[] = {
		[FORMAT_CLOUDEVENTS] = "application/cloudevents+json",
		[FORMAT_SLACK] = "application/json",
		[FORMAT_DISCORD] = "application/json",
		[FORMAT_NTFY] = "text/plain; charset=utf-8",
		[FORMAT_OTLP] = "application/json",
	};

	return types[target->format];
}

int message_put(
	struct buf *out, const struct target *target, const char *source, const char *id, yyjson_val *event)
{
	buf_clear(out);
	buf_set_max(out, MESSAGE_BYTES_MAX);
	if (target->format == FORMAT_OTLP)
		return spans_put(out, source, event);
	if (target->format != FORMAT_CLOUDEVENTS)
		return put_for_people(out, target->format, event);
	int r = put_message(out, source, id, event, false);
	if (r != -E2BIG)
		return r;
	buf_clear(out);
	return put_message(out, source, id, event, true);
}
