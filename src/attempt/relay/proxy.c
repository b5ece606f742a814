#include "attempt/relay/proxy.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "wire/network.h"

static const char name_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";

static bool is_number(const char *text)
{
	struct network network;

	return !strchr(text, '/') && network_parse(text, &network);
}

bool proxy_is_host(const char *entry)
{
	const char *name = strncmp(entry, "*.", 2) == 0 ? entry + 2 : entry;
	size_t len = strlen(name);

	if (is_number(entry))
		return true;
	return len > 0 && len < PROXY_HOST_BYTES && name[0] != '.' && name[len - 1] != '.' &&
		!strstr(name, "..") && strspn(name, name_bytes) == len;
}

/* ---- what is wanted ------------------------------------------------------------------------------------------------- */

/* host:port, [address]:port; without a port the usual one, if there is a usual one. */
static int read_authority(struct span text, uint16_t usual, struct proxy_wish *wish)
{
	const char *end = text.data + text.len, *host = text.data, *host_end, *port;
	unsigned long number = 0;

	if (text.len > 0 && host[0] == '[') {
		host++;
		host_end = memchr(host, ']', (size_t)(end - host));
		port = host_end ? host_end + 1 : NULL;
	} else {
		host_end = memchr(host, ':', text.len);
		host_end = host_end ? host_end : end;
		port = host_end;
	}
	if (!host_end || host_end == host || host_end - host >= PROXY_HOST_BYTES)
		return -EPROTO;
	for (const char *at = port + 1; port < end && at < end; at++) {
		if (*at < '0' || *at > '9' || number > 65535)
			return -EPROTO;
		number = number * 10 + (unsigned long)(*at - '0');
	}
	if ((port < end && *port != ':') || number > 65535)
		return -EPROTO;
	wish->port = number > 0 ? (uint16_t)number : usual;
	size_t len = (size_t)(host_end - host);
	for (size_t i = 0; i < len; i++)
		wish->host[i] = (char)tolower((unsigned char)host[i]);
	if (wish->host[len - 1] == '.')
		len--;
	wish->host[len] = 0;
	bool named = len > 0 && strspn(wish->host, name_bytes) == len;
	return wish->port > 0 && (named || is_number(wish->host)) ? 0 : -EPROTO;
}

/* Behind the scheme: the host, and then the path. */
static struct span authority_of(struct span target)
{
	const char *end = target.data + 7;

	while (end < target.data + target.len && !strchr("/?#", *end))
		end++;
	return (struct span){target.data + 7, (size_t)(end - target.data) - 7};
}

/* METHOD TARGET HTTP/1.x */
static bool split(struct span line, struct span *ret_method, struct span *ret_target)
{
	const char *first = memchr(line.data, ' ', line.len), *end = line.data + line.len;
	const char *second = first ? memchr(first + 1, ' ', (size_t)(end - first) - 1) : NULL;

	if (!second || end - second < 9 || memcmp(second, " HTTP/1.", 8) != 0)
		return false;
	*ret_method = (struct span){line.data, (size_t)(first - line.data)};
	*ret_target = (struct span){first + 1, (size_t)(second - first) - 1};
	return ret_method->len > 0 && ret_target->len > 0 && !memchr(ret_target->data, 0, ret_target->len);
}

static bool is_plain_url(struct span target)
{
	return target.len > 7 && strncasecmp(target.data, "http://", 7) == 0;
}

int proxy_read(struct span bytes, struct proxy_wish *ret_wish)
{
	const char *end = memmem(bytes.data, bytes.len, "\r\n\r\n", 4);
	struct proxy_wish wish = {0};
	struct span method, target;

	if (!end)
		return -EAGAIN;
	const char *line_end = memmem(bytes.data, bytes.len, "\r\n", 2);
	if (!split((struct span){bytes.data, (size_t)(line_end - bytes.data)}, &method, &target))
		return -EPROTO;
	wish.head_len = (size_t)(end - bytes.data) + 4;
	wish.tunnel = span_equal(method, SPAN("CONNECT"));
	if (!wish.tunnel && !is_plain_url(target))
		return -EPROTO;
	int r = wish.tunnel ? read_authority(target, 0, &wish)
			    : read_authority(authority_of(target), 80, &wish);
	if (r == 0)
		*ret_wish = wish;
	return r;
}

/* ---- a plain request ------------------------------------------------------------------------------------------------ */

/* What was said to the proxy, or is said anew. */
static bool is_of_proxy(struct span line)
{
	static const char *const names[] = {"host:", "connection:", "keep-alive:", "proxy-"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (line.len >= strlen(names[i]) && strncasecmp(line.data, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

int proxy_put_head(struct span head, const struct proxy_wish *wish, struct buf *out)
{
	const char *at = memmem(head.data, head.len, "\r\n", 2), *end = head.data + head.len - 2;
	bool six = strchr(wish->host, ':') != NULL;
	struct span method, target;

	if (!split((struct span){head.data, (size_t)(at - head.data)}, &method, &target))
		return -EPROTO;
	struct span authority = authority_of(target);
	struct span path = {authority.data + authority.len,
		(size_t)(target.data + target.len - authority.data) - authority.len};
	bool bare = path.len == 0 || path.data[0] != '/';
	buf_printf(out, "%.*s %s%.*s HTTP/1.1\r\nHost: %s%s%s:%u\r\nConnection: close\r\n", SPAN_ARGS(method),
		bare ? "/" : "", SPAN_ARGS(path), six ? "[" : "", wish->host, six ? "]" : "", wish->port);
	for (at += 2; at < end;) {
		const char *line_end = memmem(at, (size_t)(end + 2 - at), "\r\n", 2);
		struct span line = {at, (size_t)(line_end - at)};
		if (!is_of_proxy(line))
			buf_printf(out, "%.*s\r\n", SPAN_ARGS(line));
		at = line_end + 2;
	}
	return buf_put(out, "\r\n", 2);
}

/* ---- the list ------------------------------------------------------------------------------------------------------- */

static bool is_same_number(const char *entry, const char *host)
{
	struct network one, other;

	return !strchr(entry, '/') && network_parse(entry, &one) && network_parse(host, &other) &&
		one.family == other.family &&
		memcmp(one.bytes, other.bytes, one.family == AF_INET ? 4 : 16) == 0;
}

static bool entry_has(const char *entry, const char *host)
{
	size_t host_len = strlen(host), len = strlen(entry);

	if (is_number(host)) /* no name of a list ends in a number */
		return is_same_number(entry, host);
	if (strncmp(entry, "*.", 2) != 0)
		return strcasecmp(entry, host) == 0;
	return host_len > len - 1 && strcasecmp(host + host_len - (len - 1), entry + 1) == 0;
}

bool proxy_lists(const char *const *hosts, const char *host)
{
	for (; *hosts; hosts++)
		if (entry_has(*hosts, host))
			return true;
	return false;
}

bool proxy_lists_address(const char *const *hosts, const struct sockaddr *address)
{
	char text[NETWORK_TEXT_BYTES];

	if (address_is_public(address))
		return true;
	address_put(address, text);
	return proxy_lists(hosts, text);
}
