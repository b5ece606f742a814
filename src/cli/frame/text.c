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
	buf_put(out, text.data, kept);
	return buf_put_span(out, utf8 ? SPAN("…") : SPAN("~"));
}

static bool is_plain(struct span text)
{
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
		if (!letter && !memchr("._:@%+,/=-", c, 10))
			return false;
	}
	return text.len > 0;
}

int text_quote(struct buf *out, struct span text)
{
	if (is_plain(text))
		return buf_put_span(out, text);
	buf_put_byte(out, '\'');
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] == '\'')
			buf_put_span(out, SPAN("'\\''"));
		else if (text.data[i] != 0) /* no shell has it */
			buf_put_byte(out, (unsigned char)text.data[i]);
	}
	return buf_put_byte(out, '\'');
}
