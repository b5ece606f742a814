/*
 * What stands before this server: the address by which browsers reach it (publicUrl), and the proxies that may speak for others
 * (proxy.from). Both come from the configuration and never from a request: a header says nothing of where we are.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

enum {
	FRONT_HOST_BYTES = 264,
	FRONT_ORIGIN_BYTES = FRONT_HOST_BYTES + 8,
	FRONT_PREFIX_BYTES = 128,
	FRONT_PROXIES_MAX = 16,
	ADDRESS_BYTES = 16, /* an IPv6 address, or an IPv4 address behind ::ffff */
};

struct front_net {
	unsigned char bytes[ADDRESS_BYTES];
	uint32_t bits;
};

struct front {
	char host
		[FRONT_HOST_BYTES]; /* "stint.example:8443", without the scheme's own port; "": there is no publicUrl */
	char origin[FRONT_ORIGIN_BYTES]; /* "https://stint.example:8443" */
	char prefix[FRONT_PREFIX_BYTES]; /* "/board"; "": none */
	bool secure;                     /* by https */
	struct front_net proxies[FRONT_PROXIES_MAX];
	uint32_t proxy_count; /* 0: any peer may connect, and X-Forwarded-For is ignored */
};

/* https://HOST[:PORT][/PREFIX]; by http of this machine alone. False: it is something else, and the front is as it was. */
bool front_read_url(struct front *front, const char *text);

/* Addresses and networks with spaces between: "127.0.0.1 10.0.0.0/8 fd00::/8". NULL, or the first word that is none of them. */
const char *front_read_proxies(struct front *front, const char *text);

bool front_is_proxy(const struct front *front, const unsigned char address[ADDRESS_BYTES]);

/* Who is behind the proxies: the last address of X-Forwarded-For that is not a proxy's. False: there is none. */
bool front_client(
	const struct front *front, struct span forwarded_for, unsigned char ret_address[ADDRESS_BYTES]);

enum front_path {
	FRONT_PATH_OURS,  /* the path as it stands, or what is left of it without the prefix */
	FRONT_PATH_SLASH, /* the prefix without the slash behind it: links of the page would lead elsewhere */
};

/* Takes the prefix off the path of a request. A proxy may have done so already: then the path stays as it is. */
enum front_path front_strip(const struct front *front, struct span *path);
