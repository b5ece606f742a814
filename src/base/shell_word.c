#include "base/shell_word.h"

#include <stdbool.h>
#include <string.h>

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

int shell_word_put(struct buf *out, struct span text)
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
