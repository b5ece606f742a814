#include "base/secret.h"

#include <string.h>

enum {
	SECRET_LEN_MIN = 43, /* 256 bits in base64url */
};

static const struct span prefix = {"stint_", 6};

static bool is_letter_or_digit(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');
}

size_t secret_word_end(struct span text, size_t at, const char *others)
{
	while (at < text.len &&
		(is_letter_or_digit(text.data[at]) || memchr(others, text.data[at], strlen(others))))
		at++;
	return at;
}

/* The end of a part that is followed by `_`, or 0. */
static size_t part_end(struct span text, size_t at, const char *others)
{
	size_t end = at > 0 ? secret_word_end(text, at, others) : 0;

	return end > at && end < text.len && text.data[end] == '_' ? end + 1 : 0;
}

bool secret_may_be_in(struct span text)
{
	size_t last =
		prefix.len - 1; /* of the prefix, and rare in texts: a search for one byte is the fastest */
	const char *at = text.data, *end = text.data + text.len;

	if (text.len <= prefix.len + SECRET_LEN_MIN)
		return false;
	for (at += last; at < end && (at = memchr(at, prefix.data[last], (size_t)(end - at))); at++) {
		if (memcmp(at - last, prefix.data, last) == 0)
			return true;
	}
	return false;
}

void secret_blank(char *text, size_t len)
{
	struct span all = {text, len};
	size_t at = 0;

	while (at < len) {
		const char *found = memmem(text + at, len - at, prefix.data, prefix.len);
		if (!found)
			return;
		at = (size_t)(found - text) + prefix.len;
		size_t secret = part_end(all, part_end(all, at, ":.-"), ".-");
		size_t end = secret > 0 ? secret_word_end(all, secret, "_-") : 0;
		if (end < secret + SECRET_LEN_MIN)
			continue;
		memset(text + secret, '*', end - secret);
		at = end;
	}
}
