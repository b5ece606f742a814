#include "server/front.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_BYTES = 64, PORT_MAX = 65535 };

/* ---- publicUrl ---------------------------------------------------------------------------------------------- */

static bool is_of(const char *text, size_t len, const char *allowed)
{
	for (size_t i = 0; i < len; i++) {
		bool is_plain = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= '0' && text[i] <= '9');
		if (!is_plain && (text[i] == 0 || !strchr(allowed, text[i])))
			return false;
	}
	return true;
}

/* "stint.example:8443": lower case, as browsers send it, and without the port that goes without saying. */
static bool take_host(struct front *front, const char *text, size_t len)
{
	if (len == 0 || len >= sizeof front->host)
		return false;
	for (size_t i = 0; i < len; i++)
		front->host[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
	front->host[len] = 0;
	size_t name_len = front->host[0] == '[' ? strcspn(front->host, "]") + 1 : strcspn(front->host, ":");
	if (name_len > len || name_len == 0 ||
		!is_of(front->host, name_len, front->host[0] == '[' ? "[]:." : "-."))
		return false;
	if (name_len == len)
		return true;
	char *colon = front->host + name_len;
	size_t digits = strspn(colon + 1, "0123456789");
	long port = strtol(colon + 1, NULL, 10);
	if (*colon != ':' || digits == 0 || digits > 5 || colon[1 + digits] != 0 || port == 0 ||
		port > PORT_MAX)
		return false;
	if (port == (front->secure ? 443 : 80))
		*colon = 0;
	return true;
}

/* "/board" of "/board/". */
static bool take_prefix(struct front *front, const char *text)
{
	size_t len = strlen(text);

	while (len > 0 && text[len - 1] == '/')
		len--;
	if (len >= sizeof front->prefix)
		return false;
	for (size_t i = 0; i < len; i++) {
		bool is_letter = text[i] >= 'A' && text[i] <= 'Z';
		if (!is_letter && !is_of(text + i, 1, "-_/"))
			return false;
		if (text[i] == '/' && i + 1 < len && text[i + 1] == '/')
			return false;
	}
	memcpy(front->prefix, text, len);
	front->prefix[len] = 0;
	return true;
}

static bool is_of_this_machine(const char *host)
{
	size_t len = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
	struct span name = {host, len};

	return span_equal(name, SPAN("localhost")) || span_equal(name, SPAN("127.0.0.1")) ||
		span_equal(name, SPAN("[::1]"));
}

bool front_read_url(struct front *front, const char *text)
{
	struct front read = *front;
	bool secure = strncmp(text, "https://", 8) == 0;

	if (!secure && strncmp(text, "http://", 7) != 0)
		return false;
	read.secure = secure;
	text += secure ? 8 : 7;
	size_t len = strcspn(text, "/?#");
	if (!take_host(&read, text, len) || !take_prefix(&read, text + len))
		return false;
	if (!secure && !is_of_this_machine(read.host))
		return false;
	snprintf(read.origin, sizeof read.origin, "%s%s", secure ? "https://" : "http://", read.host);
	*front = read;
	return true;
}

enum front_path front_strip(const struct front *front, struct span *path)
{
	size_t len = strlen(front->prefix);

	if (len == 0 || path->len < len || memcmp(path->data, front->prefix, len) != 0)
		return FRONT_PATH_OURS;
	if (path->len == len)
		return FRONT_PATH_SLASH;
	if (path->data[len] == '/')
		*path = (struct span){path->data + len, path->len - len};
	return FRONT_PATH_OURS;
}

/* ---- proxy.from --------------------------------------------------------------------------------------------- */

static bool read_address(const char *text, unsigned char ret_address[ADDRESS_BYTES], uint32_t *ret_bits)
{
	memset(ret_address, 0, ADDRESS_BYTES);
	*ret_bits = 128;
	if (inet_pton(AF_INET6, text, ret_address) == 1)
		return true;
	ret_address[10] = ret_address[11] = 0xff;
	*ret_bits = 32;
	return inet_pton(AF_INET, text, ret_address + 12) == 1;
}

/* "10.0.0.0/8", "::1". */
static bool read_net(char *word, struct front_net *ret_net)
{
	char *slash = strchr(word, '/');
	uint32_t bits;

	if (slash)
		*slash = 0;
	if (!read_address(word, ret_net->bytes, &bits))
		return false;
	uint32_t before = 128 - bits; /* of an IPv4 address: ::ffff */
	if (slash) {
		size_t digits = strspn(slash + 1, "0123456789");
		if (digits == 0 || digits > 3 || slash[1 + digits] != 0)
			return false;
		uint32_t wanted = (uint32_t)strtoul(slash + 1, NULL, 10);
		if (wanted > bits)
			return false;
		bits = wanted;
	}
	ret_net->bits = before + bits;
	return true;
}

const char *front_read_proxies(struct front *front, const char *text)
{
	char word[WORD_BYTES];

	front->proxy_count = 0;
	for (text += strspn(text, " ,"); *text; text += strspn(text, " ,")) {
		size_t len = strcspn(text, " ,");
		if (len >= sizeof word || front->proxy_count == FRONT_PROXIES_MAX)
			return text;
		memcpy(word, text, len);
		word[len] = 0;
		if (!read_net(word, &front->proxies[front->proxy_count]))
			return text;
		front->proxy_count++;
		text += len;
	}
	return NULL;
}

static bool net_has(const struct front_net *net, const unsigned char address[ADDRESS_BYTES])
{
	uint32_t whole = net->bits / 8, rest = net->bits % 8;
	unsigned mask = rest ? 0xffu << (8 - rest) & 0xffu : 0;

	return memcmp(net->bytes, address, whole) == 0 &&
		(rest == 0 || (net->bytes[whole] & mask) == (address[whole] & mask));
}

bool front_is_proxy(const struct front *front, const unsigned char address[ADDRESS_BYTES])
{
	for (uint32_t i = 0; i < front->proxy_count; i++)
		if (net_has(&front->proxies[i], address))
			return true;
	return false;
}

/* From its end on: what stands before an address that is not a proxy's, somebody else may have written. */
bool front_client(
	const struct front *front, struct span forwarded_for, unsigned char ret_address[ADDRESS_BYTES])
{
	while (forwarded_for.len > 0) {
		const char *comma = memrchr(forwarded_for.data, ',', forwarded_for.len);
		struct span last = forwarded_for;
		char word[WORD_BYTES];
		uint32_t bits;

		if (comma)
			last = (struct span){
				comma + 1, (size_t)(forwarded_for.data + forwarded_for.len - comma - 1)};
		forwarded_for.len = comma ? (size_t)(comma - forwarded_for.data) : 0;
		while (last.len > 0 && last.data[0] == ' ')
			last.data++, last.len--;
		while (last.len > 0 && last.data[last.len - 1] == ' ')
			last.len--;
		if (last.len == 0 || last.len >= sizeof word)
			return false;
		memcpy(word, last.data, last.len);
		word[last.len] = 0;
		if (!read_address(word, ret_address, &bits))
			return false;
		if (!front_is_proxy(front, ret_address))
			return true;
	}
	return false;
}
