#include "cli/frame/text.h"

#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

struct point_range {
	uint32_t first, last;
};

/* Two columns wide: East Asian scripts and most pictures. */
static const struct point_range wide[] = {{0x1100, 0x115f}, {0x231a, 0x231b}, {0x2329, 0x232a},
	{0x23e9, 0x23ec}, {0x2705, 0x2705}, {0x274c, 0x274c}, {0x2e80, 0x303e}, {0x3041, 0xa4cf},
	{0xa960, 0xa97c}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe10, 0xfe19}, {0xfe30, 0xfe6f},
	{0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff},
	{0x1fa70, 0x1faff}, {0x20000, 0x3fffd}};

/* No column of their own: they are drawn over what stands before them. */
static const struct point_range none[] = {{0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd},
	{0x0610, 0x061a}, {0x064b, 0x065f}, {0x200b, 0x200d}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f},
	{0xfe20, 0xfe2f}, {0xe0100, 0xe01ef}};

/* Directions of writing and other orders to the terminal that no text needs. */
static const struct point_range hidden[] = {{0x00, 0x1f}, {0x7f, 0x9f}, {0x061c, 0x061c}, {0x200e, 0x200f},
	{0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};

#define IS_IN(ranges, point) is_in(ranges, sizeof(ranges) / sizeof *(ranges), point)

static bool is_in(const struct point_range *ranges, size_t count, uint32_t point)
{
	for (size_t i = 0; i < count; i++) {
		if (point >= ranges[i].first && point <= ranges[i].last)
			return true;
	}
	return false;
}

/* The character at the head of the text, and its bytes; 0 bytes: no UTF-8. */
static size_t decode(struct span text, uint32_t *ret_point)
{
	const unsigned char *byte = (const unsigned char *)text.data;
	bool good;
	size_t len = utf8_next(text, &good);

	if (!good)
		return 0;
	*ret_point = len == 1 ? byte[0] : byte[0] & (0xffu >> (len + 1));
	for (size_t i = 1; i < len; i++)
		*ret_point = *ret_point << 6 | (byte[i] & 0x3f);
	return len;
}

static size_t width_of(uint32_t point)
{
	if (point < 0x300)
		return 1;
	return IS_IN(none, point) ? 0 : IS_IN(wide, point) ? 2 : 1;
}

size_t text_width(struct span text)
{
	size_t width = 0;

	while (text.len > 0) {
		uint32_t point = '?';
		size_t len = decode(text, &point);
		if (len == 0)
			len = 1;
		width += width_of(point);
		text = (struct span){text.data + len, text.len - len};
	}
	return width;
}

static int put_point(struct buf *out, struct span bytes, uint32_t point, bool utf8, bool lines)
{
	if (point == '\n' && lines)
		return buf_put_byte(out, '\n');
	if (point == '\n' || point == '\t')
		return buf_put_byte(out, ' ');
	if (point == '\r')
		return 0;
	if (point < 0x80 && !IS_IN(hidden, point))
		return buf_put_span(out, bytes);
	if (!utf8)
		return buf_put_byte(out, '?');
	return IS_IN(hidden, point) ? buf_put_span(out, SPAN("\xef\xbf\xbd")) : buf_put_span(out, bytes);
}

int text_clean(struct buf *out, struct span text, bool utf8, bool lines)
{
	int r = 0;

	while (r == 0 && text.len > 0) {
		uint32_t point = 0; /* hidden, as is what cannot be read */
		size_t len = decode(text, &point);
		if (len == 0)
			len = 1;
		r = put_point(out, (struct span){text.data, len}, point, utf8, lines);
		text = (struct span){text.data + len, text.len - len};
	}
	return r;
}

/* ---- output of programs ---------------------------------------------------------------------------------- */

enum escape { ESCAPE_OTHER, ESCAPE_OPEN, ESCAPE_COLOUR };

/* ESC [ 0 1 ; 3 1 m: a colour; OPEN: it may become one. */
static enum escape escape_kind(const char *bytes, size_t len)
{
	if (len > 1 && bytes[1] != '[')
		return ESCAPE_OTHER;
	for (size_t i = 2; i < len; i++) {
		if (bytes[i] == 'm')
			return i + 1 == len ? ESCAPE_COLOUR : ESCAPE_OTHER;
		if ((bytes[i] < '0' || bytes[i] > '9') && bytes[i] != ';' && bytes[i] != ':')
			return ESCAPE_OTHER;
	}
	return len < TEXT_ESCAPE_MAX ? ESCAPE_OPEN : ESCAPE_OTHER;
}

static int put_escape_sign(struct buf *out, bool utf8)
{
	return buf_put_span(out, utf8 ? SPAN("\u241b") : SPAN("?"));
}

/* What was held is no colour: it is shown, and does nothing. */
static int show_held(struct buf *out, struct text_output *state, bool utf8)
{
	struct span rest = {state->escape + 1, state->held > 0 ? state->held - 1 : 0};

	if (state->held == 0)
		return 0;
	state->held = 0;
	state->amid_line = true;
	put_escape_sign(out, utf8);
	return buf_put_span(out, rest);
}

static int put_colour(struct buf *out, struct text_output *state, bool color)
{
	struct span sequence = {state->escape, state->held};

	state->held = 0;
	if (!color)
		return 0;
	state->painted = !span_equal(sequence, SPAN("\033[m")) && !span_equal(sequence, SPAN("\033[0m"));
	return buf_put_span(out, sequence);
}

static int put_output_point(
	struct buf *out, struct text_output *state, struct span bytes, uint32_t point, bool utf8)
{
	if (point == '\n' && state->painted)
		buf_put_span(out, SPAN("\033[0m"));
	state->painted &= point != '\n';
	if (point == '\r')
		return 0;
	state->amid_line = point != '\n';
	if (point == '\n' || point == '\t' || (point < 0x80 && !IS_IN(hidden, point)))
		return buf_put_span(out, bytes);
	if (IS_IN(hidden, point))
		return put_escape_sign(out, utf8);
	return utf8 ? buf_put_span(out, bytes) : buf_put_byte(out, '?');
}

int text_put_output(struct buf *out, struct text_output *state, struct span text, bool utf8, bool color)
{
	while (text.len > 0) {
		uint32_t point = 0;
		size_t len = decode(text, &point);
		if (len == 0)
			len = 1;
		if (point == '\033')
			show_held(out, state, utf8);
		if (point == '\033' || (state->held > 0 && len == 1))
			state->escape[state->held++] = text.data[0];
		enum escape kind = state->held > 0 ? escape_kind(state->escape, state->held) : ESCAPE_OTHER;
		if (state->held > 0 && len == 1 && kind == ESCAPE_COLOUR) {
			put_colour(out, state, color);
		} else if (state->held == 0 || len > 1 || kind == ESCAPE_OTHER) {
			state->held -= state->held > 0 && len == 1; /* it did not belong to it */
			show_held(out, state, utf8);
			put_output_point(out, state, (struct span){text.data, len}, point, utf8);
		}
		text = (struct span){text.data + len, text.len - len};
	}
	return buf_fault(out);
}

int text_end_output(struct buf *out, struct text_output *state, bool utf8, bool color)
{
	show_held(out, state, utf8);
	if (state->painted && color)
		buf_put_span(out, SPAN("\033[0m"));
	state->painted = false;
	return buf_fault(out);
}

/* Line ends stand between documents; in a string they, and all else below U+0020, are escaped already. */
int text_clean_json(struct buf *out, struct span json)
{
	while (json.len > 0) {
		uint32_t point = 0;
		size_t len = decode(json, &point);
		if (len > 0 && point >= 0x7f && IS_IN(hidden, point))
			if (point < 0x10000)
				buf_printf(out, "\\u%04x", point);
			else
				buf_printf(out, "\\u%04x\\u%04x", 0xd800 + ((point - 0x10000) >> 10),
					0xdc00 + ((point - 0x10000) & 0x3ff));
		else
			buf_put(out, json.data, len ? len : 1);
		len += len == 0;
		json = (struct span){json.data + len, json.len - len};
	}
	return buf_fault(out);
}

int text_fit(struct buf *out, struct span text, size_t width, bool utf8)
{
	size_t columns = 0, kept = 0, at = 0;

	if (text_width(text) <= width)
		return buf_put_span(out, text);
	if (width == 0)
		return 0;
	while (at < text.len) {
		uint32_t point = '?';
		size_t len = decode((struct span){text.data + at, text.len - at}, &point);
		columns += width_of(point);
		if (columns > width - 1) /* one for the mark */
			break;
		at += len == 0 ? 1 : len;
		kept = at;
	}
	while (kept > 0 && text.data[kept - 1] == ' ')
		kept--;
	buf_put(out, text.data, kept);
	return buf_put_span(out, utf8 ? SPAN("…") : SPAN(">"));
}

/* The next word, and how many blanks stand before it; line ends count as words of their own. */
static struct span next_word(struct span *text, size_t *ret_blanks)
{
	size_t blanks = 0, len = 0;

	while (blanks < text->len && text->data[blanks] == ' ')
		blanks++;
	const char *word = text->data + blanks;
	while (blanks + len < text->len && word[len] != ' ' && word[len] != '\n')
		len++;
	if (len == 0 && blanks < text->len)
		len = 1; /* a line end */
	*ret_blanks = blanks;
	*text = (struct span){word + len, text->len - blanks - len};
	return (struct span){word, len};
}

int text_wrap(struct buf *out, struct span text, size_t width, size_t at, size_t indent)
{
	bool fresh = true; /* nothing stands on this line but its indent */
	size_t blanks;

	while (text.len > 0) {
		struct span word = next_word(&text, &blanks);
		size_t columns = text_width(word);
		bool ends = word.len == 1 && word.data[0] == '\n';
		if (ends || (!fresh && width > 0 && at + blanks + columns > width)) {
			buf_printf(out, "\n%*s", (int)indent, "");
			at = indent;
			blanks = 0;
			fresh = true;
		}
		if (ends || word.len == 0)
			continue;
		buf_printf(out, "%*s%.*s", (int)blanks, "", SPAN_ARGS(word));
		at += blanks + columns;
		fresh = false;
	}
	return buf_fault(out);
}
