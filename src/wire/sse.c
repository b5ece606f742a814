#include "wire/sse.h"

#include <string.h>

void sse_init(struct sse *sse, size_t bytes_max)
{
	*sse = (struct sse){0};
	buf_init(&sse->id, bytes_max);
	buf_init(&sse->coming_id, bytes_max);
	buf_init(&sse->line, bytes_max);
	buf_init(&sse->type, bytes_max);
	buf_init(&sse->data, bytes_max);
}

void sse_done(struct sse *sse)
{
	buf_done(&sse->id);
	buf_done(&sse->coming_id);
	buf_done(&sse->line);
	buf_done(&sse->type);
	buf_done(&sse->data);
}

void sse_restart(struct sse *sse)
{
	buf_clear(&sse->line);
	buf_clear(&sse->type);
	buf_clear(&sse->data);
	sse->has_coming_id = false;
	sse->after_cr = false;
}

static int set(struct buf *field, struct span value)
{
	buf_clear(field);
	buf_put_span(field, value);
	return buf_fault(field);
}

static int take_id(struct sse *sse, struct span value)
{
	if (memchr(value.data ? value.data : "", 0, value.len))
		return 0;
	int r = set(&sse->coming_id, value);
	sse->has_coming_id = r == 0;
	return r;
}

static void adopt_id(struct sse *sse)
{
	struct buf before = sse->id;

	if (!sse->has_coming_id)
		return;
	sse->id = sse->coming_id;
	sse->coming_id = before;
	sse->has_coming_id = false;
}

static int take_field(struct sse *sse, struct span name, struct span value)
{
	if (span_equal(name, SPAN("id")))
		return take_id(sse, value);
	if (span_equal(name, SPAN("event")))
		return set(&sse->type, value);
	if (!span_equal(name, SPAN("data")))
		return 0;
	buf_put_span(&sse->data, value);
	buf_put_byte(&sse->data, '\n');
	return buf_fault(&sse->data);
}

/* A line of a field, a comment, or the empty line that ends an event. */
static int take_line(
	struct sse *sse, int (*each)(void *context, const struct sse_event *event), void *context)
{
	struct span line = buf_span(&sse->line), value = {0};
	const char *colon = line.len > 0 ? memchr(line.data, ':', line.len) : NULL;

	if (line.len > 0) {
		struct span name = {line.data, colon ? (size_t)(colon - line.data) : line.len};
		if (colon)
			value = (struct span){colon + 1, line.len - name.len - 1};
		if (value.len > 0 && value.data[0] == ' ')
			value = (struct span){value.data + 1, value.len - 1};
		return name.len == 0 ? 0 : take_field(sse, name, value);
	}
	int r = 0;
	adopt_id(sse);
	if (sse->data.len > 0) {
		struct sse_event event = {buf_span(&sse->id), buf_span(&sse->type), buf_span(&sse->data)};
		event.data.len--; /* the last line end */
		r = each(context, &event);
	}
	buf_clear(&sse->type);
	buf_clear(&sse->data);
	return r;
}

int sse_feed(struct sse *sse, struct span bytes, int (*each)(void *context, const struct sse_event *event),
	void *context)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < bytes.len; i++) {
		char byte = bytes.data[i];
		bool second = byte == '\n' && sse->after_cr; /* CR LF is one line end */
		sse->after_cr = byte == '\r';
		if (second)
			continue;
		if (byte == '\n' || byte == '\r') {
			r = take_line(sse, each, context);
			buf_clear(&sse->line);
		} else {
			buf_put_byte(&sse->line, (unsigned char)byte);
			r = buf_fault(&sse->line);
		}
	}
	return r < 0 ? r : 0;
}
