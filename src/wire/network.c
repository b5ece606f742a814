#include "wire/network.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* IPv4: every address is public, except those of these networks. */
static const char *const closed_v4[] = {
	"0.0.0.0/8",        /* this machine */
	"10.0.0.0/8",       /* private */
	"100.64.0.0/10",    /* behind a carrier's translation; a metadata service, too */
	"127.0.0.0/8",      /* loopback */
	"168.63.129.16/32", /* a cloud's own, in the middle of the public ones */
	"169.254.0.0/16",   /* link-local; metadata services */
	"172.16.0.0/12",    /* private */
	"192.0.0.0/24",     /* protocols; a metadata service, too */
	"192.0.2.0/24",     /* documentation */
	"192.88.99.0/24",   /* relays */
	"192.168.0.0/16",   /* private */
	"198.18.0.0/15",    /* measurements */
	"198.51.100.0/24",  /* documentation */
	"203.0.113.0/24",   /* documentation */
	"224.0.0.0/4",      /* multicast */
	"240.0.0.0/4",      /* reserved; broadcast */
};

/* IPv6: only 2000::/3 is public, minus the networks below. So the unspecified address, loopback, v4-mapped, translated,
 * unique-local, link-local and multicast addresses are closed, and whatever range is invented next. */
static const char open_v6[] = "2000::/3";
static const char *const closed_v6[] = {
	"2001::/23",     /* protocols; Teredo, which means another address */
	"2001:db8::/32", /* documentation */
	"2002::/16",     /* 6to4, which means an IPv4 address */
	"3fff::/20",     /* documentation */
};

bool network_parse(const char *text, struct network *ret_network)
{
	struct network network = {.family = strchr(text, ':') ? AF_INET6 : AF_INET};
	unsigned long most = network.family == AF_INET6 ? 128 : 32, bits = most;
	const char *slash = strchr(text, '/');
	char address[NETWORK_TEXT_BYTES], *end;

	if (snprintf(address, sizeof address, "%.*s", slash ? (int)(slash - text) : (int)strlen(text),
		    text) >= (int)sizeof address)
		return false;
	if (slash) {
		if (slash[1] < '0' || slash[1] > '9')
			return false;
		bits = strtoul(slash + 1, &end, 10);
		if (*end || bits > most)
			return false;
	}
	network.bits = (unsigned)bits;
	if (inet_pton(network.family, address, network.bytes) != 1)
		return false;
	*ret_network = network;
	return true;
}

static const unsigned char *bytes_of(const struct sockaddr *address)
{
	return address->sa_family == AF_INET
		? (const unsigned char *)&((const struct sockaddr_in *)(const void *)address)->sin_addr
		: (const unsigned char *)&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
}

bool network_has(const struct network *network, const struct sockaddr *address)
{
	unsigned whole = network->bits / 8, rest = network->bits % 8;

	if (network->family != address->sa_family)
		return false;
	const unsigned char *bytes = bytes_of(address);
	return memcmp(bytes, network->bytes, whole) == 0 &&
		(rest == 0 || (bytes[whole] ^ network->bytes[whole]) >> (8 - rest) == 0);
}

static bool is_in(const char *text, const struct sockaddr *address)
{
	struct network network;

	return network_parse(text, &network) && network_has(&network, address);
}

bool address_is_public(const struct sockaddr *address)
{
	bool six = address->sa_family == AF_INET6;
	const char *const *closed = six ? closed_v6 : closed_v4;
	size_t count = six ? sizeof closed_v6 / sizeof *closed_v6 : sizeof closed_v4 / sizeof *closed_v4;

	if ((!six && address->sa_family != AF_INET) || (six && !is_in(open_v6, address)))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (is_in(closed[i], address))
			return false;
	}
	return true;
}

void address_put(const struct sockaddr *address, char text[NETWORK_TEXT_BYTES])
{
	if ((address->sa_family != AF_INET && address->sa_family != AF_INET6) ||
		!inet_ntop(address->sa_family, bytes_of(address), text, NETWORK_TEXT_BYTES))
		snprintf(text, NETWORK_TEXT_BYTES, "an address of another kind");
}
