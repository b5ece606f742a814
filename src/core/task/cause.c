#include "core/task/cause.h"

#include <stdbool.h>

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

/* Is the byte inside a character of UTF-8, and not its first? */
static bool is_inner(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

size_t cause_put(struct span message, char text[CAUSE_BYTES_MAX])
{
	size_t at = 0, len = 0;

	while (at < message.len && is_blank(message.data[at]))
		at++;
	while (at < message.len && len < CAUSE_BYTES_MAX && message.data[at] != '\n') {
		bool number = is_digit(message.data[at]);
		text[len++] = number ? 'N' : message.data[at];
		at++;
		while (number && at < message.len && is_digit(message.data[at]))
			at++;
	}
	if (len == CAUSE_BYTES_MAX && at < message.len && is_inner(message.data[at])) {
		while (len > 0 && is_inner(text[len - 1]))
			len--;
		len -= len > 0;
	}
	while (len > 0 && is_blank(text[len - 1]))
		len--;
	return len;
}
