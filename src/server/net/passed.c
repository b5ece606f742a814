#include "server/net/passed.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

size_t passed_put(char line[PASSED_LINE_MAX], int64_t term, const struct passed *passed)
{
	char source[2 * SOURCE_BYTES + 1];

	sodium_bin2hex(source, sizeof source, passed->source.bytes, sizeof passed->source.bytes);
	return (size_t)snprintf(
		line, PASSED_LINE_MAX, PASSED_WORD "%" PRId64 " %s %s\r\n", term, source, passed->host);
}

/* Up to the next space, or the end. */
static struct span next_word(struct span *rest)
{
	const char *end = memchr(rest->data, ' ', rest->len);
	size_t len = end ? (size_t)(end - rest->data) : rest->len;
	struct span word = {rest->data, len};

	*rest = (struct span){rest->data + len + (end != NULL), rest->len - len - (end != NULL)};
	return word;
}

static bool is_term(struct span word, int64_t term)
{
	char ours[24];
	int len = snprintf(ours, sizeof ours, "%" PRId64, term);

	return word.len == (size_t)len && sodium_memcmp(word.data, ours, word.len) == 0;
}

static bool read_line(struct span line, int64_t term, struct passed *ret_passed)
{
	size_t len = 0;
	bool right = is_term(next_word(&line), term);
	struct span source = next_word(&line), host = next_word(&line);

	if (!right || line.len > 0 || host.len == 0 || host.len >= sizeof ret_passed->host ||
		sodium_hex2bin(ret_passed->source.bytes, sizeof ret_passed->source.bytes, source.data,
			source.len, NULL, &len, NULL) != 0 ||
		len != sizeof ret_passed->source.bytes)
		return false;
	memcpy(ret_passed->host, host.data, host.len);
	ret_passed->host[host.len] = 0;
	return true;
}

int passed_read(struct span bytes, int64_t term, struct passed *ret_passed)
{
	const size_t word = sizeof PASSED_WORD - 1;
	size_t len = bytes.len < word ? bytes.len : word;

	if (memcmp(bytes.data, PASSED_WORD, len) != 0)
		return -EINVAL;
	const char *end = memmem(bytes.data, bytes.len, "\r\n", 2);
	if (!end)
		return bytes.len < PASSED_LINE_MAX ? 0 : -EINVAL;
	size_t line = (size_t)(end - bytes.data);
	return line >= word && line < PASSED_LINE_MAX &&
			read_line((struct span){bytes.data + word, line - word}, term, ret_passed)
		? (int)line + 2
		: -EINVAL;
}
