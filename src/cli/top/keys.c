#include "cli/top/keys.h"

#include <string.h>

#include "base/utf8.h"

static const struct sequence {
	const char *bytes; /* behind ESC */
	enum key key;
} sequences[] = {
	{"[A", KEY_UP},
	{"[B", KEY_DOWN},
	{"[C", KEY_RIGHT},
	{"[D", KEY_LEFT},
	{"OA", KEY_UP},
	{"OB", KEY_DOWN},
	{"OC", KEY_RIGHT},
	{"OD", KEY_LEFT},
	{"[5~", KEY_PAGE_UP},
	{"[6~", KEY_PAGE_DOWN},
	{"[H", KEY_HOME},
	{"[F", KEY_END},
	{"OH", KEY_HOME},
	{"OF", KEY_END},
	{"[1~", KEY_HOME},
	{"[4~", KEY_END},
	{"[7~", KEY_HOME},
	{"[8~", KEY_END},
	{"[Z", KEY_BACK_TAB},
};

/* ESC [ … up to a letter or ~; ESC O and one letter; ESC and one character. 0: it goes on. */
static size_t escape_len(const char *bytes, size_t len)
{
	if (len < 2)
		return 0;
	if (bytes[1] == 'O')
		return len < 3 ? 0 : 3;
	if (bytes[1] != '[')
		return 1; /* ESC, and then another key */
	for (size_t i = 2; i < len; i++) {
		if (bytes[i] >= 0x40 && bytes[i] <= 0x7e)
			return i + 1;
		if (bytes[i] < 0x20 || bytes[i] > 0x7e)
			return i;
	}
	return 0;
}

static size_t read_escape(const char *bytes, size_t len, bool ended, uint32_t *ret_key)
{
	size_t whole = escape_len(bytes, len);

	*ret_key = KEY_NONE;
	if (whole == 0 && !ended)
		return 0;
	if (whole <= 1) {
		*ret_key = len == 1 || whole == 1 ? KEY_ESCAPE : KEY_NONE;
		return whole == 1 ? 1 : len;
	}
	for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++) {
		const struct sequence *row = &sequences[i];
		if (strlen(row->bytes) == whole - 1 && memcmp(bytes + 1, row->bytes, whole - 1) == 0)
			*ret_key = row->key;
	}
	return whole;
}

static enum key control_key(unsigned char byte)
{
	switch (byte) {
	case '\r':
	case '\n':
		return KEY_ENTER;
	case '\t':
		return KEY_TAB;
	case 0x08:
	case 0x7f:
		return KEY_ERASE;
	default:
		return KEY_NONE;
	}
}

size_t key_read(const char *bytes, size_t len, bool ended, uint32_t *ret_key)
{
	unsigned char first = (unsigned char)bytes[0];
	bool good;

	if (first == 0x1b)
		return read_escape(bytes, len, ended, ret_key);
	if (first < 0x20 || first == 0x7f) {
		*ret_key = control_key(first);
		return 1;
	}
	size_t whole = utf8_next((struct span){bytes, len}, &good);
	size_t expected = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	if (!good && len < expected && !ended)
		return 0;
	*ret_key = KEY_NONE;
	if (!good)
		return whole;
	*ret_key = whole == 1 ? first : first & (0xffu >> (whole + 1));
	for (size_t i = 1; i < whole; i++)
		*ret_key = *ret_key << 6 | ((unsigned char)bytes[i] & 0x3f);
	return whole;
}
