/*
 * The log of an agent as records. Its worker writes the log so that people can read it, in one form (agent/session/session.c), which
 * is read back here:
 *
 *	00:58  The special case can go.       message
 *	       It has two callers.            … of more than one line
 *	00:58  ▸ Edit src/http/parse.c        tool, with its name
 *	01:02  ✗ Edit                         tool_failed
 *	01:52  stint: the agent tries again   retry
 *	04:28  stint: its checks start        stint
 *	anything else                         output, of a program that is no agent, say
 *
 * A record is whole: where a piece of the log ends within one, the piece before it is given.
 */
#include <ctype.h>
#include <string.h>

#include "api/task/log_records.h"
#include "base/take.h"

enum { INDENT = 7 }; /* of the lines behind the first of a record */

struct record_line {
	bool begins;   /* a record of its own; else it goes on with the one before */
	int64_t at_ms; /* since the start of the attempt; -1: not said */
	const char *kind;
	struct span name, text;
};

static bool starts(struct span text, const char *with)
{
	return text.len >= strlen(with) && memcmp(text.data, with, strlen(with)) == 0;
}

static struct span behind(struct span text, size_t len)
{
	return (struct span){text.data + len, text.len - len};
}

/* "00:58  " at the beginning: its length; 0: there is none. */
static size_t read_time(struct span line, int64_t *ret_ms)
{
	size_t at = 0;
	int64_t minutes = 0;

	while (at < line.len && at < 7 && isdigit((unsigned char)line.data[at]))
		minutes = minutes * 10 + (line.data[at++] - '0');
	if (at < 2 || line.len < at + 5 || line.data[at] != ':' ||
		!isdigit((unsigned char)line.data[at + 1]) || !isdigit((unsigned char)line.data[at + 2]) ||
		line.data[at + 3] != ' ' || line.data[at + 4] != ' ')
		return 0;
	*ret_ms = (minutes * 60 + (line.data[at + 1] - '0') * 10 + (line.data[at + 2] - '0')) * 1000;
	return at + 5;
}

static void read_kind(struct record_line *line)
{
	struct span rest = line->text;

	line->kind = "message";
	if (starts(rest, "stint: ")) {
		line->text = behind(rest, 7);
		line->kind = starts(line->text, "the agent tries again") ? "retry" : "stint";
		return;
	}
	bool tool = starts(rest, "▸ "), failed = starts(rest, "✗ ");
	if (!tool && !failed)
		return;
	line->kind = tool ? "tool" : "tool_failed";
	rest = behind(rest, sizeof "▸ " - 1);
	const char *blank = rest.len > 0 ? memchr(rest.data, ' ', rest.len) : NULL;
	size_t len = blank ? (size_t)(blank - rest.data) : rest.len;
	line->name = (struct span){rest.data, len};
	line->text = behind(rest, blank ? len + 1 : len);
}

static struct record_line read_line(struct span text, bool follows)
{
	struct record_line line = {.begins = true, .at_ms = -1, .kind = "output", .text = text};
	size_t time = read_time(text, &line.at_ms);

	if (time > 0) {
		line.text = behind(text, time);
		read_kind(&line);
	} else if (follows && starts(text, "       ")) {
		line.begins = false;
		line.text = behind(text, INDENT);
	}
	return line;
}

struct writer {
	struct buf *out;
	struct buf *text; /* of the open record */
	struct record_line open;
	bool any, is_open;
};

static void close_record(struct writer *writer)
{
	struct json_object object;

	if (!writer->is_open)
		return;
	json_put_comma(writer->out, &writer->any);
	json_begin(&object, writer->out);
	json_member_cstr(&object, "kind", writer->open.kind);
	if (writer->open.at_ms >= 0)
		json_member_int(&object, "atMs", writer->open.at_ms);
	json_member_string_if_any(&object, "name", writer->open.name);
	json_member_string(&object, "text", buf_span(writer->text));
	json_note(&object, json_end(&object));
	buf_clear(writer->text);
	writer->is_open = false;
}

static struct span next_line(struct span *data)
{
	const char *newline = memchr(data->data, '\n', data->len);
	struct span line = {data->data, newline ? (size_t)(newline - data->data) : data->len};

	*data = behind(*data, line.len + (newline != NULL));
	return line;
}

/* Where the last record of the piece begins, if it may go on behind the piece; else its length. */
static size_t whole_part(struct span data, bool is_end)
{
	struct span rest = data;
	size_t begin = data.len;
	bool follows = false;

	if (is_end)
		return data.len;
	while (rest.len > 0) {
		size_t at = data.len - rest.len;
		struct record_line line = read_line(next_line(&rest), follows);
		begin = line.begins ? at : begin;
		follows = follows ? line.at_ms >= 0 || !line.begins : line.at_ms >= 0;
	}
	return begin > 0 ? begin : data.len; /* one record fills it: it is cut */
}

int log_records_put(struct buf *out, struct span data, bool is_end, size_t *ret_taken)
{
	cleanup(buf_done) struct buf text = {0};
	struct writer writer = {.out = out, .text = &text};
	bool follows = false;

	*ret_taken = data.len = whole_part(data, is_end);
	buf_init(&text, data.len + 1);
	buf_put_byte(out, '[');
	while (data.len > 0) {
		struct record_line line = read_line(next_line(&data), follows);
		if (line.begins) {
			close_record(&writer);
			writer.open = line;
			writer.is_open = true;
			follows = line.at_ms >= 0;
		} else {
			buf_put_byte(&text, '\n');
		}
		buf_put_span(&text, line.text);
	}
	close_record(&writer);
	int r = buf_fault(&text) < 0 ? buf_fault(&text) : buf_put_byte(out, ']');
	return r < 0 ? r : buf_fault(out);
}
