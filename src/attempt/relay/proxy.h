/*
 * The rules of the supervisor's proxy: which host a request wants (CONNECT, or a plain http:// request), whether the executor's list
 * of hosts has it, and which addresses it may lead to. No sockets: relay.c does what is decided here.
 *
 *	"network": ["pypi.org", "*.pythonhosted.org", "10.1.2.3"]
 *
 * An entry is a name, `*.` and a name (every name that ends so, not that name itself), or an address. A name never leads to an address
 * of this machine or of a private network, unless the list has that address, too.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/buf.h"

enum {
	PROXY_HOSTS_MAX = 256,
	PROXY_HOST_BYTES = 256, /* with its NUL */
	PROXY_WHY_BYTES = 512,
};

struct proxy_wish {
	char host[PROXY_HOST_BYTES]; /* in small letters, without brackets and without a dot at its end */
	uint16_t port;
	bool tunnel;     /* CONNECT; else a plain request */
	size_t head_len; /* bytes of its head */
};

/* Is this an entry of a list? */
bool proxy_is_host(const char *entry);

/* 0; -EAGAIN: the head goes on; -EPROTO: it is no request for a proxy. */
int proxy_read(struct span bytes, struct proxy_wish *ret_wish);

/* The head of a plain request, as the host itself wants it: with its path alone, and without what was said to the proxy. The
 * connection serves one request. Faults as buf_put(). */
int proxy_put_head(struct span head, const struct proxy_wish *wish, struct buf *out);

/* `hosts` has NULL at its end. */
bool proxy_lists(const char *const *hosts, const char *host);
bool proxy_lists_address(const char *const *hosts, const struct sockaddr *address);
