#include "wire/http/forward.h"

#include <string.h>
#include <strings.h>

static bool is_named(struct span line, const char *name)
{
	size_t len = strlen(name);

	return line.len > len && line.data[len] == ':' && strncasecmp(line.data, name, len) == 0;
}

/* The next line of a head, without its end. False: that was the last one. */
static bool next_line(struct span *rest, struct span *ret_line)
{
	const char *end = memmem(rest->data, rest->len, "\r\n", 2);

	if (!end || end == rest->data)
		return false;
	*ret_line = (struct span){rest->data, (size_t)(end - rest->data)};
	rest->len -= ret_line->len + 2;
	rest->data = end + 2;
	return true;
}

/* False: it is no length. */
static bool read_length(struct span line, uint64_t *ret_length)
{
	size_t at = sizeof "content-length:" - 1;
	uint64_t length = 0;

	while (at < line.len && line.data[at] == ' ')
		at++;
	if (at == line.len || line.len - at > 15)
		return false;
	for (; at < line.len; at++) {
		if (line.data[at] < '0' || line.data[at] > '9')
			return false;
		length = length * 10 + (uint64_t)(line.data[at] - '0');
	}
	*ret_length = length;
	return true;
}

static void put_first_line(const struct http_address *server, struct span line, struct buf *out)
{
	const char *blank = memchr(line.data, ' ', line.len);
	size_t before = blank ? (size_t)(blank - line.data) + 1 : 0;

	if (!blank || before == line.len || line.data[before] != '/') {
		buf_printf(out, "%.*s\r\n", SPAN_ARGS(line));
		return;
	}
	buf_put(out, line.data, before);
	buf_printf(out, "%s", server->prefix);
	buf_put(out, line.data + before, line.len - before);
	buf_put(out, "\r\n", 2);
}

static void put_head(
	struct http_forward *forward, const struct http_address *server, struct span head, struct buf *out)
{
	struct span line;

	forward->state = HTTP_FORWARD_HEAD;
	forward->left = 0;
	if (!next_line(&head, &line)) {
		buf_put_span(out, head);
		return;
	}
	put_first_line(server, line, out);
	http_put_host(out, server);
	while (next_line(&head, &line)) {
		if (is_named(line, "host"))
			continue;
		if (is_named(line, "transfer-encoding") ||
			(is_named(line, "content-length") && !read_length(line, &forward->left)))
			forward->state = HTTP_FORWARD_RAW;
		buf_printf(out, "%.*s\r\n", SPAN_ARGS(line));
	}
	if (forward->state == HTTP_FORWARD_HEAD && forward->left > 0)
		forward->state = HTTP_FORWARD_BODY;
	buf_put(out, "\r\n", 2);
}

/* How many of the bytes were taken. */
static size_t collect(
	struct http_forward *forward, const struct http_address *server, struct span in, struct buf *out)
{
	size_t room = sizeof forward->head - forward->head_len, before = forward->head_len;
	size_t taken = in.len < room ? in.len : room;

	memcpy(forward->head + before, in.data, taken);
	forward->head_len += taken;
	const char *end = memmem(forward->head, forward->head_len, "\r\n\r\n", 4);
	if (end) {
		size_t len = (size_t)(end - forward->head) + 4;
		forward->head_len = 0;
		put_head(forward, server, (struct span){forward->head, len}, out);
		return len - before;
	}
	if (forward->head_len == sizeof forward->head) {
		forward->state = HTTP_FORWARD_RAW;
		buf_put(out, forward->head, forward->head_len);
	}
	return taken;
}

int http_forward(
	struct http_forward *forward, const struct http_address *server, struct span in, struct buf *out)
{
	while (in.len > 0) {
		size_t taken = in.len;
		switch (forward->state) {
		case HTTP_FORWARD_HEAD:
			taken = collect(forward, server, in, out);
			break;
		case HTTP_FORWARD_BODY:
			taken = in.len < forward->left ? in.len : (size_t)forward->left;
			buf_put(out, in.data, taken);
			forward->left -= taken;
			if (forward->left == 0)
				forward->state = HTTP_FORWARD_HEAD;
			break;
		case HTTP_FORWARD_RAW:
			buf_put(out, in.data, in.len);
			break;
		}
		in.data += taken;
		in.len -= taken;
	}
	return buf_fault(out);
}
